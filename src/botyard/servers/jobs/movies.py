"""Movies of a part of the run that pages ask for: moments are looked up between the
steps, and drawn in a process of their own.

One is made at a time. It appears where no file is yet, when it is finished.
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
from botyard.control.movie import WriteMovie
from botyard.control.parts import Filming, Host, Portions, RunLoop
from botyard.errors import WorldError
from botyard.extras import is_installed
from botyard.names import file_stem, shown
from botyard.servers.jobs.child_jobs import Job, JobError, JobLimits
from botyard.sim.simulation import Simulation

if (
    TYPE_CHECKING
):  # most runs make no movie, and need none of what is imported below where it is used
    from botyard.pictures.reel import Reel
    from botyard.recording.player import Player
    from botyard.recording.track import Track

MAX_MOVIES: Final = 100
"""Most movies that are begun in a run."""
MAX_FRAMES: Final = 3000
"""Most frames of one."""
MAX_BYTES: Final = 128 * 2**20
"""Largest file, bytes …"""
MAX_NUMBERS: Final = 256 * 2**20
"""… and most bytes of poses and ranges of all its moments."""
MAX_TIME_S: Final = 900.0
"""Longest time to draw one, s of wall time."""
CANCELLED: Final = "the movie was given up"
_LOOKED_UP: Final = 0.3
"""Part of the work that it is to look up the moments, for the progress that is told."""


class Moments(Protocol):
    """What a movie can be made of."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Simulated time of the first and the last moment, s; None: there is none."""
        ...

    @property
    def period(self) -> float:
        """Simulated time from one moment to the next, s."""
        ...

    def tick(self, time: float) -> int:
        """Steps done at the last moment at a time, s, or before it."""
        ...

    def at(self, time: float) -> Simulation:
        """The world at the last moment at a time, s, or before it. BotyardError: it
        cannot be shown.
        """
        ...


class PastMoments:
    """The last minutes of a running simulation."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._beside: Simulation | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """See `Moments`."""
        span = self._sim.history.span if self._sim.history.is_on else None
        return None if span is None else (span[0].time, span[1].time)

    @property
    def period(self) -> float:
        """See `Moments`."""
        from botyard.recording.history import FEW_ROBOTS, LONG_PERIOD_S, PERIOD_S

        return max(
            self._sim.dt,
            PERIOD_S if len(self._sim.robots) <= FEW_ROBOTS else LONG_PERIOD_S,
        )

    def tick(self, time: float) -> int:
        """See `Moments`."""
        return self._sim.history.moment(time).tick

    def at(self, time: float) -> Simulation:
        """See `Moments`."""
        self._beside = self._sim.history.look(time, self._beside)
        return self._beside


class RecordedMoments:
    """A recording: it is played beside the one that is shown."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._player: Player | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """See `Moments`."""
        return self._track.begin * self._track.step, self._track.end * self._track.step

    @property
    def period(self) -> float:
        """See `Moments`."""
        return self._track.step

    def tick(self, time: float) -> int:
        """See `Moments`."""
        return int((time + 1e-9) / self._track.step)

    def at(self, time: float) -> Simulation:
        """See `Moments`."""
        from botyard.recording.player import Player

        if self._player is None:
            self._player = Player(self._track)
        self._player.seek(time)
        self._player.sim.settle()
        return self._player.sim


class Movies:
    """Makes movies (`botyard.control.parts.Filmer`).

    Parameters
    ----------
    hub : RunLoop
        Steps the world; moments are looked up between its steps.
    host : Host
        Where work is done beside the steps.
    folder : Path
        Where the files go.
    limits : JobLimits or None
        What the process that draws may take, but for its time; None: what jobs may by
        default.

    Attributes
    ----------
    moments : callable
        What movies are made of: makes it for each movie.
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
        """See `botyard.control.parts.Filmer.present`."""
        return Filming(self._name, self._part) if self._name else None

    def start(self, wish: WriteMovie) -> Future[Path]:
        """See `botyard.control.parts.Filmer.start`."""
        if self._name:
            raise WorldError(f"{self._name} is being made already")
        if self._begun >= MAX_MOVIES:
            raise WorldError(f"no more than {MAX_MOVIES} movies are made in a run")
        moments = self.moments()
        times, reel = _plan(wish, moments)
        # one that fails has cost as much
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
        """See `botyard.control.parts.Filmer.cancel`."""
        if not self._name:
            raise WorldError("no movie is being made")
        self._is_cancelled = True
        if self._job is not None:
            self._job.kill(CANCELLED)

    def close(self) -> None:
        """What is being made is given up."""
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
                began = time.thread_time()
                if (found := moments.tick(at)) != tick:
                    tick, sim = found, moments.at(at)
                    is_there = is_there or followed in sim.robots
                    size += reel.add(take(sim, reel.options.scans))

                reel.show()
                if size > MAX_NUMBERS:
                    raise WorldError(
                        f"its moments take more than {MAX_NUMBERS // 2**20} MiB: "
                        "choose a shorter part"
                    )

                self._part = _LOOKED_UP * (k + 1) / len(times)
                yield time.thread_time() - began  # the steps have as much time

            if followed is not None and not is_there:
                raise WorldError(
                    f'there is no robot "{shown(followed, 60)}" at these times'
                )

            job, drawn = Job(MODULE, self._limits), promise()
            self._job = job
            self._host.run_aside(
                lambda: self._draw(reel, job),
                lambda path, error: resolve(drawn, path, error),
            )
            yield drawn
            path: Path = drawn.result()
            return path
        finally:
            self._name, self._job = "", None

    def _draw(self, reel: Reel, job: Job) -> Path:
        """Have it drawn, and write the file; runs in another thread.

        Raises
        ------
        WorldError
            There is no movie, and no file of it.
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
                        file = stack.enter_context(
                            free.open("xb")
                        )  # a link is no way to somewhere else either
                        # from here on it is ours, and goes with an error
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
        """A path in the folder where no file is."""
        stem, suffix = Path(self._name).stem, Path(self._name).suffix
        paths = (
            self._folder / f"{stem}{f'-{n}' if n > 1 else ''}{suffix}" for n in count(1)
        )
        return next(
            path for path in paths if not path.exists() and not path.is_symlink()
        )


def _plan(wish: WriteMovie, moments: Moments) -> tuple[list[float], Reel]:
    """The times of the frames of a movie, s, and its reel, which is empty. WorldError:
    there is nothing to show, or too much.
    """
    from botyard.pictures.filming import FilmOptions, fps_of
    from botyard.pictures.movies import FPS_LIMITS, check_movie
    from botyard.pictures.options import PictureOptions
    from botyard.pictures.reel import Reel

    span = moments.span
    if span is None:
        raise WorldError("no moments are kept (--history)")
    if wish.begin > span[1] or wish.end < span[0]:
        raise WorldError(f"there are moments from {span[0]:.1f} s to {span[1]:.1f} s")
    begin, end = max(wish.begin, span[0]), min(wish.end, span[1])
    suffix = (
        f".{wish.format}"
        if wish.format
        else ".mp4"
        if is_installed("movie")
        else ".webp"
    )
    fps = fps_of(FilmOptions(speed=wish.speed, fps=wish.fps or None), moments.period)
    if suffix in FPS_LIMITS:
        check_movie(Path(f"movie{suffix}"), fps)  # also: an extra may be missing
    frames = (
        1
        if suffix == ".png"
        else math.floor((end - begin) * fps / wish.speed + 1e-9) + 1
    )
    if frames > MAX_FRAMES:
        raise WorldError(
            f"a movie has at most {MAX_FRAMES} frames, and this one would have "
            f"{frames}: choose a shorter part, a higher speed "
            "or fewer frames a second"
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
