"""Operations on movies of the run: write one of a part of it, cancel that."""

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
"""Formats of movies, and of a picture of the last moment; "": MP4 if this installation
has it, else WebP.
"""
TIMES: Final = (0.0, 1e12)
"""Least and greatest simulated time, s."""
SPEEDS: Final = (0.01, 1000.0)
"""Slowest and fastest movie, simulated per shown time."""
MAX_FPS: Final = 50.0
WIDTHS: Final = (64, 1920)
"""Narrowest and widest movie, pixels."""
MAX_SCANNED: Final = 20
"""Most robots whose sensors are in a movie."""
THEMES: Final = ("light", "dark")


def _one_of(choices: tuple[str, ...]) -> Any:
    return lambda value, what: one_of(value, what, choices)


@dataclass(frozen=True, kw_only=True)
class WriteMovie(Operation[Future[Path]]):
    """Write a movie of a part of the run, from `begin` to `end`, simulated s, next to
    the log file; the name may set the stem of the file.

    The part is of the recording that is shown, or of the history of the simulation.
    With the format ``png``, a picture of the end.
    """

    begin: float = argument(real(*TIMES, unit="s"))
    end: float = argument(real(*TIMES, unit="s"))
    movie: str = argument(text(1000), "")
    format: str = argument(_one_of(FORMATS), "")
    speed: float = argument(real(*SPEEDS), 1.0)
    fps: float = argument(real(0.0, MAX_FPS), 0.0)
    """Frames a second; 0: 25, and no more than there are moments."""
    width: int = argument(count(*WIDTHS), 1000)
    theme: str = argument(_one_of(THEMES), "light")
    follow: str = argument(name, "")
    scans: tuple[str, ...] = argument(each(name, MAX_SCANNED), ())
    audit = logging.INFO
    settles = False
    writes = True
    in_recordings = True

    def __post_init__(self) -> None:
        """Validate the arguments."""
        super().__post_init__()
        if self.end < self.begin:
            raise ArgumentError(
                f"end: expected at least begin, {self.begin:g} s, found {self.end:g} s"
            )

    def perform(self, control: Site, caller: Caller) -> Future[Path]:
        """Carry it out. WorldError if one is being made, there were too many, or there
        is nothing to show; the future, if it fails.
        """
        return control.part(control.filmer, NO_MOVIES).start(self)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"movie written to {result}"


@dataclass(frozen=True, kw_only=True)
class CancelMovie(Operation[None]):
    """Give up the movie that is being made."""

    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out. WorldError if none is being made."""
        control.part(control.filmer, NO_MOVIES).cancel()

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return "movie given up"


__all__ = ["CancelMovie", "WriteMovie"]
