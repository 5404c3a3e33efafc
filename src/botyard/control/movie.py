"""Operations on movies of the run: write a movie of a part of it, cancel it."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.api.arguments import one_of
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, count, each, name, real, text
from botyard.control.site import Site
from botyard.errors import ArgumentError

NO_MOVIES: Final = "no movies are made"
FORMATS: Final = ("", "mp4", "gif", "webp", "png")
"""Formats of movies, and of a picture of the last moment.

"" is MP4 if this installation supports it, otherwise WebP.
"""
TIMES: Final = (0.0, 1e12)
"""Range of simulated time, s."""
SPEEDS: Final = (0.01, 1000.0)
"""Range of a movie's speed (simulated per shown time)."""
# GIF cannot show more than 50 frames/s: its delays are multiples of 10 ms, and viewers
# slow down delays of 10 ms.
MAX_FPS: Final = 50.0
WIDTHS: Final = (64, 1920)
"""Range of a movie's width, pixels."""
MAX_SCANNED: Final = 20
"""Maximum number of robots whose sensors are in a movie."""
THEMES: Final = ("light", "dark")


def _one_of(choices: tuple[str, ...]) -> Any:
    return lambda value, what: one_of(value, what, choices)


@dataclass(frozen=True, kw_only=True)
class WriteMovie(Operation[Future[Path]]):
    """Write a movie of a part of the run next to the log file.

    The part is from `begin` to `end` (simulated time, s) of the recording that is
    shown, or of the history of the simulation. The name may set the stem of the file.
    The format ``png`` writes a picture of the end.

    Parameters
    ----------
    movie : str
        Stem of the file; empty: the program chooses it.
    format : str
        One of `FORMATS`; empty: MP4 if this installation supports it, otherwise WebP.
    speed : float
        Simulated seconds per second of the movie.
    fps : float
        Frames per second; 0: 25, but no more frames than there are stored moments.
        width : int
        Width of the picture, pixels.
    theme : str
        One of `THEMES`.
    follow : str
        Name of the robot at the centre; empty: the picture does not move.
    scans : tuple of str
        Names of robots whose laser scans are drawn.
    """

    begin: float = argument(real(*TIMES, unit="s"))
    end: float = argument(real(*TIMES, unit="s"))
    movie: str = argument(text(1000), "")
    format: str = argument(_one_of(FORMATS), "")
    speed: float = argument(real(*SPEEDS), 1.0)
    fps: float = argument(real(0.0, MAX_FPS), 0.0)
    """Frames per second; 0: 25, but no more frames than there are stored moments."""
    width: int = argument(count(*WIDTHS), 1000)
    theme: str = argument(_one_of(THEMES), "light")
    follow: str = argument(name, "")
    scans: tuple[str, ...] = argument(each(name, MAX_SCANNED), ())
    audit = logging.INFO
    settles = False
    writes = True
    in_recordings = True

    def __post_init__(self) -> None:
        """Check that the arguments are valid together."""
        super().__post_init__()
        if self.end < self.begin:
            raise ArgumentError(
                f"end: expected at least begin, {self.begin:g} s, found {self.end:g} s"
            )

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Start to write the movie.

        Raises
        ------
        WorldError
            A movie is in progress, there were too many, or there is nothing to show.
            The future fails with it if the movie cannot be made.
        """
        return control.part(control.filmer, NO_MOVIES).start(self)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"movie written to {result}"


@dataclass(frozen=True, kw_only=True)
class CancelMovie(Operation[None]):
    """Cancel the movie in progress."""

    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Cancel the movie in progress.

        Raises
        ------
        WorldError
            No movie is in progress.
        """
        control.part(control.filmer, NO_MOVIES).cancel()

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return "movie cancelled"


__all__ = ["CancelMovie", "WriteMovie"]
