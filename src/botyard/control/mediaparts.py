"""Protocols of the parts that draw pictures, make movies and record the run."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Painter(Protocol):
    """Interface of the part that draws pictures in the background."""

    def write(self, name: str) -> Future[Path]:
        """Write a picture next to the log file, and return a future of its path."""
        ...


class Filming(NamedTuple):
    """Movie in progress: its name, and the part that is finished, 0 to 1."""

    name: str
    part: float


class Filmer(Protocol):
    """Interface of the part that makes movies of the run, one at a time."""

    @property
    def present(self) -> Filming | None:
        """The movie in progress; None if there is none."""
        ...

    def start(self, wish: Any) -> Future[Path]:
        """Start to make a movie, and return a future of its path.

        `wish` is the operation `botyard.control.movie.WriteMovie`, with its arguments.

        Raises
        ------
        WorldError
            A movie is in progress, there were too many, or there is nothing to show.
            The future fails with it if the movie cannot be made.
        """
        ...

    def cancel(self) -> None:
        """Cancel the movie in progress; `WorldError` if there is none."""
        ...


class Recorded(NamedTuple):
    """Description of the recording in progress.

    Attributes
    ----------
    path : Path
        Path of the first file of the recording.
    last : float
        Length of the part that is kept in memory until it is saved, simulated s; 0: all is written
        to the file immediately.
    """

    path: Path
    last: float


class Recordings(Protocol):
    """Interface of the part that records the run, one recording at a time."""

    @property
    def present(self) -> Recorded | None:
        """The recording in progress; None if there is none."""
        ...

    def start(self, wish: Any) -> Path:
        """Start a recording next to the log file, and return its path.

        `wish` is the operation `botyard.control.recording.StartRecording`, with its arguments.

        Raises
        ------
        WorldError
            A recording is in progress, or the file cannot be written.
        """
        ...

    def stop(self) -> Future[Path]:
        """Stop the recording; the future is done when all data is written.

        Raises
        ------
        WorldError
            No recording is in progress.
        """
        ...

    def save(self, name: str) -> Future[Path]:
        """Write the part of the recording in memory to a file; see `start`.

        Raises
        ------
        WorldError
            No recording is kept in memory.
        """
        ...


__all__ = [
    "Filmer",
    "Filming",
    "Painter",
    "Recorded",
    "Recordings",
]
