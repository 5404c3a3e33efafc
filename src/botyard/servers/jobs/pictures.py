"""Pictures of the world, drawn for clients and the page.

Pictures are drawn outside the event loop, one at a time. A picture gets an unused file
name.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botyard.control.later import promise, resolve
from botyard.control.parts import Host
from botyard.errors import WorldError
from botyard.names import file_stem
from botyard.servers.jobs.child_jobs import Job, JobError, JobLimits
from botyard.sim.simulation import Simulation

if TYPE_CHECKING:
    from botyard.pictures.still import Still

MAX_PICTURES: Final = 1000
"""Maximum number of pictures in a run."""
MIN_INTERVAL_S: Final = 1.0
"""Minimum wall time between two pictures, s."""


class Pictures:
    """Draws and writes pictures.

    Parameters
    ----------
    sim : Simulation
        The world.
    host : Host
        Runs slow work in threads.
    folder : Path
        Folder of the pictures.
    limits : JobLimits or None
        Resource limits of the drawing process. None: this process draws.
    clock : callable
        Returns the wall time, s.
    """

    def __init__(
        self,
        sim: Simulation,
        host: Host,
        folder: Path = Path(),
        limits: JobLimits | None = JobLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sim = sim
        self._host = host
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._written = 0
        self._last = -math.inf
        self._busy = False
        self._job: Job | None = None

    def write(self, name: str) -> Future[Path]:
        """Write a picture of the current world.

        Parameters
        ----------
        name : str
            Stem of the file name; folders in it are ignored. No file is overwritten.

        Returns
        -------
        Future of Path
            Path of the picture, or a `WorldError`; it is set between two steps.

        Raises
        ------
        WorldError
            There are too many pictures, or one is being drawn.
        """
        if self._written >= MAX_PICTURES:
            raise WorldError(f"at most {MAX_PICTURES} pictures can be written in a run")

        now, done = self._clock(), promise()
        if self._busy:
            raise WorldError("no picture: the previous one is still being drawn")
        if now - self._last < MIN_INTERVAL_S:
            raise WorldError(
                "no picture: the previous one was requested less than "
                f"{MIN_INTERVAL_S:g} s ago"
            )

        self._last, self._busy = now, True
        # A failed picture counts towards the limit: it has cost as much as a finished
        # one.
        self._written += 1
        # The working directory may change before the picture is drawn.
        folder = self._folder.absolute()
        stem = file_stem(name)
        # The drawing modules take long to import, so only runs with pictures load them.
        from botyard.pictures import draw
        from botyard.pictures.still import take

        still = take(self._sim)
        self._job = job = (
            None if self._limits is None else Job(draw.MODULE, self._limits)
        )

        def over(path: Path | None, error: Exception | None) -> None:
            self._busy, self._job = False, None
            resolve(
                done,
                path,
                error
                if error is None or isinstance(error, WorldError)
                else WorldError(repr(error)),
            )

        self._host.run_in_background(
            lambda: _save(_render(still, job), folder, stem), over
        )
        return done

    def close(self) -> None:
        """Cancel the picture in progress."""
        if self._job is not None:
            self._job.kill()
            self._job.wait()


def _save(data: bytes, folder: Path, stem: str) -> Path:
    for n in count(1):
        path = folder / f"{stem}{f'-{n}' if n > 1 else ''}.png"
        try:
            # Mode "x" does not follow a symbolic link to another folder.
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        except OSError as error:
            raise WorldError(
                f"the picture {path} cannot be written: {error.strerror}"
            ) from None

        return path.resolve()

    # The loop above never ends without a return.
    raise AssertionError


def _render(still: Still, job: Job | None) -> bytes:
    """Return a picture as a PNG file; may run in a thread.

    Raises
    ------
    WorldError
        Drawing failed.
    """
    from botyard.pictures import draw

    if job is None:
        return draw.png(still)
    try:
        answers = [body for _, body in job.run("draw", still, draw.TYPES)]
    except JobError as error:
        raise WorldError(f"no picture: {error}") from None

    return b"".join(answers)


__all__ = ["MAX_PICTURES", "MIN_INTERVAL_S", "Pictures"]
