"""Pictures and movies of a running simulation or of a recording."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from PIL import Image

from botyard.api import arguments
from botyard.errors import ArgumentError, RecordingError
from botyard.formats.budget import Budget
from botyard.model.rosmessages import CLOUDS, SCAN
from botyard.names import shown
from botyard.pictures.files import save_picture
from botyard.pictures.frame import Words, image_of
from botyard.pictures.movies import (
    FPS_LIMITS,
    MAX_FRAMES,
    SUFFIXES,
    check_frame,
    check_movie,
    writing_movie,
)
from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter
from botyard.pictures.still import take
from botyard.pictures.trails import SPACING_S
from botyard.processes.safefile import check_replaceable
from botyard.recording.fallback import open_player
from botyard.recording.player import Player
from botyard.recording.reader import Reader
from botyard.recording.samples import ros_names
from botyard.sim.simulation import Simulation

FPS: Final = 25.0
"""Default frame rate, 1/s, if the run has at least this number of steps per second."""
MAX_SPEED: Final = 10_000.0
SOURCE: Final = "picture"
"""Name with which the camera subscribes to sensors, so that they measure."""
_LASER: Final = (SCAN.replace("/", "/msg/"),)
_SONAR: Final = tuple(name.replace("/", "/msg/") for name in CLOUDS)
_ROUNDING: Final = 1e-9
"""Largest rounding error of a time, s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmOptions:
    """Part of a run that a movie shows, and its playback speed.

    Attributes
    ----------
    begin, end : float
        Simulated time of the first and the last moment, s. None: the start of the run;
        inf: its end.
    speed : float
        Simulated seconds per second of the movie.
    fps : float or None
        Frame rate, 1/s; None: 25, but at most one frame per step.
    """

    begin: float | None = None
    end: float = math.inf
    speed: float = 1.0
    fps: float | None = None


def film_options(
    *,
    begin: float | None = None,
    end: float | None = None,
    speed: float = 1.0,
    fps: float | None = None,
) -> FilmOptions:
    """Return checked options of a film; for parameters see `FilmOptions`.

    By default a film shows the whole run, at a frame rate that follows from its steps
    (`fps_of`). The speed is at most `MAX_SPEED`.

    Raises
    ------
    ArgumentError
        An option is out of its range or has another type.
    """
    begin = (
        None if begin is None else arguments.number(begin, "begin", low=0.0, unit="s")
    )
    end = math.inf if end is None else arguments.number(end, "end", low=0.0, unit="s")
    if begin is not None and end <= begin:
        raise ArgumentError(
            f"end: expected more than begin, {begin:g} s, found {end:g} s"
        )

    return FilmOptions(
        begin=begin,
        end=end,
        speed=arguments.number(speed, "speed", low=0.0, above=True, high=MAX_SPEED),
        fps=None
        if fps is None
        else arguments.number(
            fps, "fps", low=0.0, above=True, high=max(FPS_LIMITS.values())
        ),
    )


class Camera:
    """Camera that draws a frame of a running simulation at each frame time of a movie.

    Parameters
    ----------
    picture : PictureOptions
        Contents of frames.
    film : FilmOptions
        Times of frames; `fps` must not be None.
    emit : callable
        Called with the pixels of each frame.
    """

    def __init__(
        self, picture: PictureOptions, film: FilmOptions, emit: Callable[[Words], None]
    ) -> None:
        assert film.fps is not None
        self._scans = picture.scans
        self._trail_s = picture.trails
        # Check the size before drawing, because a large frame takes gigabytes.
        self._painter = Painter(picture, check_frame)
        self._film, self._emit = film, emit
        self._period = film.speed / film.fps
        self._begin = film.begin
        self._frames = 0
        self._seen = -math.inf

    def look(self, sim: Simulation, time: float) -> bool:
        """Observe the world after a step, at a time of the run, s.

        A frame shows the first step at or after the time of the frame. The method
        returns False after the end of the film.

        Parameters
        ----------
        sim : Simulation
            The world after a step.
        time : float
            Simulated time of the world, s.
        """
        if self._begin is None:
            self._begin = time
        if time > self._film.end + _ROUNDING:
            return False
        # If frame times are closer than steps, one picture serves several frames; if they
        # are farther apart, steps are skipped.
        due = 0
        while self._begin + self._frames * self._period <= time + _ROUNDING:
            due += 1
            # With an extremely long time step, the copies of one frame would fill the memory.
            self._frames += 1
            if due > MAX_FRAMES:
                break

        if due:
            frame = self._painter.paint(take(sim, self._scans))
            for _ in range(due):
                self._emit(frame)
        elif (
            self._trail_s
            and time >= self._begin - self._trail_s
            and abs(time - self._seen) >= SPACING_S - _ROUNDING
        ):
            self._seen = time
            self._painter.see(take(sim, False))

        return True


class _FinalFrame:
    """Observer of a run that draws one picture of its end, with trails.

    Parameters
    ----------
    picture : PictureOptions
        Contents of the picture.
    end : float
        Simulated time of the picture, s.
    """

    def __init__(self, picture: PictureOptions, end: float) -> None:
        self._picture, self._end = picture, end
        self._painter = Painter(picture)
        self._seen = -math.inf

    def look(self, sim: Simulation, time: float) -> bool:
        """Store the positions for trails after a step. Return False at the time of the picture."""
        if self._picture.trails and abs(time - self._seen) >= SPACING_S - _ROUNDING:
            self._seen = time
            self._painter.see(take(sim, False))

        return time < self._end - _ROUNDING

    def picture(self, sim: Simulation) -> Image.Image:
        """Draw the world as it is now, with the stored trails."""
        return self._painter.draw(take(sim, self._picture.scans))


def picture_after(
    sim: Simulation, seconds: float, picture: PictureOptions
) -> Image.Image:
    """Step a simulation for `seconds` of simulated time and draw it, with trails.

    Parameters
    ----------
    sim : Simulation
        The simulated world; its time advances.
    seconds : float
        Simulated time, s, rounded to whole steps.
    picture : PictureOptions
        Contents of the picture.

    Returns
    -------
    Image
        Picture (RGB).

    Raises
    ------
    UnknownNameError
        `picture` names a robot that does not exist.
    """
    for name in picture.named:
        if name not in sim.robots:
            raise arguments.unknown(name, sim.robots, "robot")

    last = _FinalFrame(picture, math.inf)
    last.look(sim, sim.time)
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        last.look(sim, sim.time)

    return last.picture(sim)


def film_run(
    sim: Simulation,
    target: str | Path,
    seconds: float,
    picture: PictureOptions,
    film: FilmOptions,
    *,
    force: bool = False,
    progress: Callable[[float], None] = lambda time: None,
) -> Image.Image:
    """Step a simulation while a movie of it is written, and return the last frame.

    Parameters
    ----------
    sim : Simulation
        The simulated world; its time advances.
    target : path-like
        The movie; its suffix is the format.
    seconds : float
        Simulated time, s, rounded to whole steps.
    picture : PictureOptions
        Contents of the frames.
    film : FilmOptions
        Playback speed and frame rate; the times of the first and last frame are ignored.
    force : bool
        Replace a file that botyard did not write.
    progress : callable
        Called with the simulated time of each step.

    Returns
    -------
    Image
        Last frame (RGB).

    Raises
    ------
    ArgumentError, WorldError, KeptFileError, OSError
        See `botyard.pictures.movies.writing_movie`.
    """
    film = replace(film, fps=fps_of(film, sim.dt), begin=sim.time, end=math.inf)
    last: list[Words] = []
    with writing_movie(target, film.fps or FPS, force=force) as movie:

        def emit(frame: Words) -> None:
            movie.add(frame)
            last[:] = [frame]

        camera = Camera(picture, film, emit)
        camera.look(sim, sim.time)
        for _ in range(round(seconds / sim.dt)):
            sim.step()
            camera.look(sim, sim.time)
            progress(sim.time)

    return image_of(last[0].copy()).convert("RGB")


def fps_of(film: FilmOptions, step_s: float) -> float:
    """Return the frame rate, 1/s: the given rate, or one frame per step up to `FPS`.

    Parameters
    ----------
    film : FilmOptions
        Options of the film.
    step_s : float
        Simulated duration of a step, s.
    """
    return film.fps if film.fps is not None else min(FPS, film.speed / step_s)


def render_recording(
    source: str | Path,
    target: str | Path,
    picture: PictureOptions,
    film: FilmOptions,
    *,
    budget: Budget = Budget(),
    force: bool = False,
    progress: Callable[[float], None] = lambda time: None,
) -> list[str]:
    """Draw a recorded run as a movie, or its last moment in the film's time as a picture.

    The suffix of the target decides which of both. The run is simulated again step by step
    (`botyard.recording.player`), so that each frame can show the complete state.

    Parameters
    ----------
    source : path-like
        The recording.
    target : path-like
        The movie or picture; its suffix is the format.
    picture : PictureOptions
        Contents of the picture. `scans` means: True, the sensors whose readings were
        recorded; False, none; names, all sensors of these robots.
    film : FilmOptions
        Part of the run, playback speed and frame rate.
    budget : Budget
        Limits of reading.
    force : bool
        Replace a file that botyard did not write.
    progress : callable
        Called with the simulated time of each step.

    Returns
    -------
    list of str
        Problems of reading, and the number of recorded states that the simulation did
        not reproduce.

    Raises
    ------
    RecordingError
        The recording cannot be read; it lacks a named robot, or has no data at these
        times.
    ArgumentError, WorldError
        The target has no suffix of movies or pictures; see
        `botyard.pictures.movies.writing_movie`.
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    OSError
        The file cannot be written.
    """
    is_movie = Path(target).suffix.lower() in SUFFIXES
    if is_movie:
        check_movie(target, film.fps or 1.0)
    elif Path(target).suffix.lower() not in Image.registered_extensions():
        raise ArgumentError(
            f"{target}: expected a suffix of movies ({', '.join(SUFFIXES)}) or "
            "of pictures such as .png"
        )

    # Check the target first, so that a long film does not fail only when it is complete.
    check_replaceable(target, force=force)
    player = open_player(source, budget)
    track = player.track
    if film.begin is not None and film.begin > player.end + _ROUNDING:
        raise RecordingError(
            f"begin: expected at most {player.end:g} s, the end of the "
            f"recording, found {film.begin:g} s",
            source,
        )

    if film.end < player.begin - _ROUNDING:
        raise RecordingError(
            f"end: expected at least {player.begin:g} s, the start of the "
            f"recording, found {film.end:g} s",
            source,
        )

    # The simulation computes readings only for subscribers.
    if picture.scans is True:
        _read_recorded_sensors(player.sim, source, budget)
    # Sensors measure during a step, so at least one step before the first frame must be
    # simulated.
    before = max(picture.trails, track.step)
    if is_movie:
        begin = player.begin if film.begin is None else film.begin
        film = replace(film, fps=fps_of(film, track.step), begin=begin)
        player.seek(begin - before)
        with writing_movie(target, film.fps or FPS, force=force) as movie:
            _play(
                player, source, picture, Camera(picture, film, movie.add).look, progress
            )
    else:
        end = min(film.end, player.end)
        player.seek(end - before)
        last = _FinalFrame(picture, end)
        _play(player, source, picture, last.look, progress)
        save_picture(last.picture(player.sim), target, force=force)

    if player.corrections:
        return [
            *track.problems,
            f"the simulation did not reproduce {player.corrections} recorded "
            "states; the film shows the recorded ones",
        ]

    return track.problems


def _play(
    player: Player,
    source: str | Path,
    picture: PictureOptions,
    look: Callable[[Simulation, float], bool],
    progress: Callable[[float], None],
) -> None:
    """Play a recording from its current time to the end of the film.

    Parameters
    ----------
    player : Player
        Player of the recording; it stands at the first moment of the film.
    source : path-like
        The recording, for errors.
    picture : PictureOptions
        Contents of the picture.
    look : callable
        Called with the world and the time after each step; returns False at the end.
    progress : callable
        Called with the simulated time of each step.

    Raises
    ------
    RecordingError
        `picture` names a robot that does not exist at these times.
    """
    sim, end, missing = player.sim, player.track.end, set(picture.named)
    while True:
        # A robot may exist only in a part of the film, so `missing` is updated in each step.
        missing -= sim.robots.keys()
        progress(sim.time)
        if not look(sim, sim.time) or sim.tick >= end:
            break
        sim.step()

    if missing:
        raise RecordingError(
            f'expected a robot "{shown(min(missing))}" in the recording at these times, found none',
            source,
        )


def _read_recorded_sensors(sim: Simulation, source: str | Path, budget: Budget) -> None:
    """Subscribe to the range sensors of all robots whose readings were recorded."""
    with Reader(source, budget) as file:
        recorded = {
            (*c.topic.rpartition("/")[:1], c.schema.name)
            for c in file.channels.values()
        }

    lasers, rings = (
        {topic for topic, kind in recorded if kind in types}
        for types in (_LASER, _SONAR)
    )
    before: list[str] = []

    def subscribe() -> None:
        if list(sim.robots) == before:
            return
        before[:] = sim.robots
        robots = [robot for robot in sim.robots.values() if robot.spec.drive]
        for robot, names in zip(
            robots, ros_names([robot.name for robot in robots]), strict=True
        ):
            prefix = names.prefix.rstrip("/")
            for laser in robot.lasers if prefix in lasers else ():
                laser.subscribe(SOURCE)
            if robot.sonar is not None and prefix in rings:
                robot.sonar.subscribe(SOURCE)

    subscribe()
    # Robots can appear during the run, so the subscription is repeated after each step.
    sim.after_step(lambda _: subscribe())


__all__ = [
    "FPS",
    "Camera",
    "FilmOptions",
    "film_options",
    "film_run",
    "fps_of",
    "picture_after",
    "render_recording",
]
