"""Movies of a part of the run, made for pages.

The states of the world at the movie's times (moments) are looked up between the steps,
and a child process draws them, one movie at a time. A finished movie gets an unused
file name.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from botyard.control.later import promise, resolve
from botyard.control.mediaparts import Filming
from botyard.control.movie import WriteMovie
from botyard.control.parts import Host, Portions, RunLoop
from botyard.errors import WorldError
from botyard.extras import is_installed
from botyard.names import file_stem, shown
from botyard.servers.jobs.child_jobs import Job, JobError, JobLimits
from botyard.sim.simulation import Simulation

# Most runs make no movie, so functions import these modules when they need them.
if TYPE_CHECKING:
    from botyard.pictures.reel import Reel
    from botyard.recording.player import Player
    from botyard.recording.track import Track

MAX_MOVIES: Final = 100
"""Maximum number of movies in a run."""
MAX_FRAMES: Final = 3000
"""Maximum number of frames of a movie."""
MAX_BYTES: Final = 128 * 2**20
"""Maximum size of a movie file, bytes."""
MAX_NUMBERS: Final = 256 * 2**20
"""Maximum size of the poses and ranges of all moments of a movie, bytes."""
MAX_TIME_S: Final = 900.0
"""Maximum wall time to draw a movie, s."""
CANCELLED: Final = "the movie was cancelled"
_LOOKED_UP: Final = 0.3
"""Part of a movie's progress that counts for looking up the moments; drawing is the rest."""


class Moments(Protocol):
    """Source of the moments of a movie: states of the world at certain simulated times."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Simulated times of the first and last moment, s; None if there is none."""
        ...

    @property
    def period(self) -> float:
        """Simulated time between two moments, s."""
        ...

    def tick(self, time: float) -> int:
        """Return the number of steps at the last moment up to a time, s.

        Parameters
        ----------
        time : float
            Simulated time, s.
        """
        ...

    def at(self, time: float) -> Simulation:
        """Return the world at the last moment up to a time, s.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Raises
        ------
        BotyardError
            The moment cannot be restored.
        """
        ...


class PastMoments:
    """Moments of a running simulation, from its history of the last minutes."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._beside: Simulation | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """Simulated times of the oldest and latest moment of the history, s; None
        without moments.
        """
        span = self._sim.history.span if self._sim.history.is_on else None
        return None if span is None else (span[0].time, span[1].time)

    @property
    def period(self) -> float:
        """Simulated time between two moments of the history, s."""
        from botyard.recording.history import FEW_ROBOTS, LONG_PERIOD_S, PERIOD_S

        return max(
            self._sim.dt,
            PERIOD_S if len(self._sim.robots) <= FEW_ROBOTS else LONG_PERIOD_S,
        )

    def tick(self, time: float) -> int:
        """Return the number of steps at the last moment of the history up to a time, s."""
        return self._sim.history.moment(time).tick

    def at(self, time: float) -> Simulation:
        """Return the world at the last moment of the history up to a time, s."""
        self._beside = self._sim.history.look(time, self._beside)
        return self._beside


class RecordedMoments:
    """Moments of a recording.

    A second player reads it, so that the player on the page keeps its position.
    """

    def __init__(self, track: Track) -> None:
        self._track = track
        self._player: Player | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """Simulated times of the first and last moment of the recording, s."""
        return self._track.begin * self._track.step, self._track.end * self._track.step

    @property
    def period(self) -> float:
        """Simulated time between two moments of the recording, s: one step."""
        return self._track.step

    def tick(self, time: float) -> int:
        """Return the number of steps at the last moment of the recording up to a time, s."""
        # Without the tolerance, 0.3 s / 0.1 s would be rounded down to step 2.
        return int((time + 1e-9) / self._track.step)

    def at(self, time: float) -> Simulation:
        """Return the world at the last moment of the recording up to a time, s."""
        from botyard.recording.player import Player

        if self._player is None:
            self._player = Player(self._track)
        self._player.seek(time)
        self._player.sim.settle()
        return self._player.sim


class Movies:
    """Makes movies (`botyard.control.mediaparts.Filmer`).

    Parameters
    ----------
    hub : RunLoop
        Event loop with the steps, between which moments are looked up.
    host : Host
        Runs slow work in threads.
    folder : Path
        Folder of the movie files.
    limits : JobLimits or None
        Resource limits of the drawing process, apart from its time; by default the
        limits of jobs.

    Attributes
    ----------
    moments : callable
        Returns the source of moments for a new movie.
    """

    def __init__(
        self,
        hub: RunLoop,
        host: Host,
        folder: Path = Path(),
        limits: JobLimits | None = None,
    ) -> None:
        self.moments: Callable[[], Moments] = lambda: PastMoments(hub.sim)
        self._hub, self._host, self._folder = hub, host, folder
        limits = limits or JobLimits()
        self._limits = JobLimits(
            time=max(limits.time, MAX_TIME_S), memory=limits.memory
        )
        self._begun = 0
        self._name = ""
        self._part = 0.0
        self._job: Job | None = None
        self._is_cancelled = False

    @property
    def present(self) -> Filming | None:
        """State of the movie in progress, see `botyard.control.mediaparts.Filmer.present`."""
        return Filming(self._name, self._part) if self._name else None

    def start(self, wish: WriteMovie) -> Future[Path]:
        """Start to make a movie, see `botyard.control.mediaparts.Filmer.start`.

        Raises
        ------
        WorldError
            Another movie is being made, or `MAX_MOVIES` were made in this run.
        """
        if self._name:
            raise WorldError(f"the movie {self._name} is already being made")
        if self._begun >= MAX_MOVIES:
            raise WorldError(f"at most {MAX_MOVIES} movies can be made in a run")
        moments = self.moments()
        times, reel = _plan(wish, moments)

        # A failed movie counts towards the limit: it has cost as much as a finished
        # one.
        self._begun += 1
        self._name, self._part, self._is_cancelled = (
            f"{file_stem(wish.movie)}{reel.suffix}",
            0.0,
            False,
        )
        return self._hub.background.portions(
            self._make(moments, times, reel), "a movie"
        )

    def cancel(self) -> None:
        """Cancel the movie in progress, see `botyard.control.mediaparts.Filmer.cancel`.

        Raises
        ------
        WorldError
            No movie is being made.
        """
        if not self._name:
            raise WorldError("no movie is being made")
        self._is_cancelled = True
        if self._job is not None:
            self._job.kill(CANCELLED)

    def close(self) -> None:
        """Cancel the movie in progress."""
        self._is_cancelled = True
        if self._job is not None:
            self._job.kill()
            self._job.wait()

    def _make(self, moments: Moments, times: list[float], reel: Reel) -> Portions[Path]:
        """Look up the moments between the steps, then have them drawn."""
        from botyard.pictures.reel import MODULE
        from botyard.pictures.still import take

        try:
            size, tick, followed, is_there = 0, None, reel.options.follow, False
            for k, at in enumerate(times):
                if self._is_cancelled:
                    raise WorldError(CANCELLED)
                started = time.thread_time()
                if (found := moments.tick(at)) != tick:
                    tick, sim = found, moments.at(at)
                    is_there = is_there or followed in sim.robots
                    size += reel.add(take(sim, reel.options.scans))

                reel.show()
                if size > MAX_NUMBERS:
                    raise WorldError(
                        "no movie: its frames take more than "
                        f"{MAX_NUMBERS // 2**20} MiB: choose a shorter part"
                    )

                self._part = _LOOKED_UP * (k + 1) / len(times)
                # Pause for as long as this moment took, so that the steps get half of
                # the time.
                yield time.thread_time() - started

            if followed is not None and not is_there:
                raise WorldError(
                    f'robot "{shown(followed, 60)}" does not exist at these times'
                )

            job, drawn = Job(MODULE, self._limits), promise()
            self._job = job
            self._host.run_in_background(
                lambda: self._draw(reel, job),
                lambda path, error: resolve(drawn, path, error),
            )
            yield drawn
            path: Path = drawn.result()
            return path
        finally:
            self._name, self._job = "", None

    def _draw(self, reel: Reel, job: Job) -> Path:
        """Draw the movie in the child process, and write its file.

        This runs in a thread.

        Raises
        ------
        WorldError
            The movie failed; no file remains.
        """
        from botyard.pictures.reel import TYPES

        path: Path | None = None
        try:
            with contextlib.ExitStack() as stack:
                file = None
                for kind, body in job.run("film", reel, TYPES):
                    if kind == "refused":
                        raise WorldError(f"no movie: {body}")
                    if kind == "drawn":
                        self._part = _LOOKED_UP + (1.0 - _LOOKED_UP) * body / len(
                            reel.frames
                        )
                        continue

                    if file is None:
                        free = self._free()
                        # Mode "x" does not follow a symbolic link to another folder.
                        file = stack.enter_context(free.open("xb"))
                        # From here on this job owns the file and removes it after an
                        # error.
                        path = free

                    file.write(body)

            if path is None:
                raise WorldError("no movie: nothing was drawn")
        except (JobError, OSError, WorldError) as error:
            if path is not None:
                path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise WorldError(
                    f"the movie {self._name} cannot be written: {error.strerror}"
                ) from None

            raise WorldError(str(error)) from None

        return path.resolve()

    def _free(self) -> Path:
        """Return an unused path in the folder."""
        stem, suffix = Path(self._name).stem, Path(self._name).suffix
        paths = (
            self._folder / f"{stem}{f'-{n}' if n > 1 else ''}{suffix}" for n in count(1)
        )
        return next(
            path for path in paths if not path.exists() and not path.is_symlink()
        )


def _plan(wish: WriteMovie, moments: Moments) -> tuple[list[float], Reel]:
    """Return the times of a movie's frames, s, and an empty reel.

    Raises
    ------
    WorldError
        The history is empty, or the movie has no frame or too many.
    """
    from botyard.pictures.filming import FilmOptions, fps_of
    from botyard.pictures.movies import FPS_LIMITS, check_movie
    from botyard.pictures.options import PictureOptions
    from botyard.pictures.reel import Reel

    span = moments.span
    if span is None:
        raise WorldError("no movie: the history is off (--history)")
    if wish.begin > span[1] or wish.end < span[0]:
        raise WorldError(f"the history holds only {span[0]:.1f} s to {span[1]:.1f} s")
    begin, end = max(wish.begin, span[0]), min(wish.end, span[1])
    suffix = (
        f".{wish.format}"
        if wish.format
        else ".mp4"
        if is_installed("movie")
        else ".webp"
    )
    fps = fps_of(FilmOptions(speed=wish.speed, fps=wish.fps or None), moments.period)

    # `check_movie` also reports a missing extra.
    if suffix in FPS_LIMITS:
        check_movie(Path(f"movie{suffix}"), fps)
    frames = (
        1
        if suffix == ".png"
        # The tolerance keeps rounding from losing the last frame.
        else math.floor((end - begin) * fps / wish.speed + 1e-9) + 1
    )
    if frames > MAX_FRAMES:
        raise WorldError(
            f"expected at most {MAX_FRAMES} frames in a movie, found {frames}: "
            "choose a shorter part, a higher speed or a lower frame rate"
        )

    times = (
        [end]
        if suffix == ".png"
        else [begin + k * wish.speed / fps for k in range(frames)]
    )
    options = PictureOptions(
        follow=wish.follow or None,
        scans=wish.scans or False,
        size=wish.width,
        theme=wish.theme,
    )
    return times, Reel(suffix, fps, options, MAX_BYTES, [], [], [], [])


__all__ = [
    "MAX_BYTES",
    "MAX_FRAMES",
    "MAX_MOVIES",
    "Moments",
    "Movies",
    "PastMoments",
    "RecordedMoments",
]
