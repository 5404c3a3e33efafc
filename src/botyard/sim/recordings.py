"""What a program holds of a recording in progress; `botyard.recording` makes them
(`Simulation.record`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, Self


class Recording(Protocol):
    """A recording in progress, and a context manager that ends it."""

    @property
    def files(self) -> Sequence[Path]:
        """Files that were begun or saved so far."""
        ...

    @property
    def error(self) -> str:
        """Why nothing is recorded any more; empty: all is well."""
        ...

    @property
    def lost(self) -> Mapping[str, int]:
        """How much had to be left out so far because the disk was too slow or full, by
        kinds.
        """
        ...

    def save(
        self, path: str | Path | None = None, *, overwrite: bool = False
    ) -> Future[Path]:
        """Write what is kept in memory to a file, of a recording that keeps the last
        seconds only.

        Parameters
        ----------
        path : str or Path, optional
            The file; else the one of the recording, with a number behind its name from
            the second time on.
        overwrite : bool
            Replace a file that botyard did not write.

        Returns
        -------
        Future
            Its path; or why it could not be written (OSError, KeptFileError).

        Raises
        ------
        NotNowError
            The recording is written to a file as it goes, or has ended.
        """
        ...

    def event(self, kind: str, text: str = "", **values: Any) -> None:
        """Write an event of the program's own at the present time; it stands on the
        time line of ``botyard replay`` with its text.

        Parameters
        ----------
        kind : str
            What it is, 1 to 64 printable characters.
        text : str
            For people.
        **values
            What else there is to say of it: numbers, texts, lists and mappings of them.

        Raises
        ------
        ArgumentError
            `kind` is no such text, or a value cannot be written as JSON.
        """
        ...

    def close(self) -> None:
        """Write what is left, and end the recording. Nothing happens if it has ended."""
        ...

    def __enter__(self) -> Self:
        """The recording."""
        ...

    def __exit__(self, *_: object) -> None:
        """End it."""
        ...


__all__ = ["Recording"]
