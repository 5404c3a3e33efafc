"""Interface of a recording in progress, as programs see it.

`botyard.recording` implements it; `Simulation.record` starts one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, Self


class Recording(Protocol):
    """Recording in progress; as a context manager, it ends with the block."""

    @property
    def files(self) -> Sequence[Path]:
        """Files that the recording has started or saved so far."""
        ...

    @property
    def error(self) -> str:
        """Reason why the recording has stopped; empty while it works."""
        ...

    @property
    def lost(self) -> Mapping[str, int]:
        """Amount of data left out so far, by kind.

        Data is left out if the disk is too slow or full.
        """
        ...

    def save(
        self, path: str | Path | None = None, *, overwrite: bool = False
    ) -> Future[Path]:
        """Write the data kept in memory to a file.

        This is possible only for a recording that keeps the last seconds.

        Parameters
        ----------
        path : str or Path, optional
            File to write. Default: the path of the recording; from the second call on, a number
            is appended to its name.
        overwrite : bool
            Also replace a file that botyard did not write.

        Returns
        -------
        Future
            Path of the file, or the error that prevented writing it (OSError, KeptFileError).

        Raises
        ------
        NotNowError
            The recording streams to a file, or has ended.
        """
        ...

    def event(self, kind: str, text: str = "", **values: Any) -> None:
        """Write an event of the program at the current simulated time.

        ``botyard replay`` shows it with its text on the timeline.

        Parameters
        ----------
        kind : str
            Kind of event, 1 to 64 printable characters.
        text : str
            Description for readers.
        **values
            Further data: numbers, texts, and lists and mappings of them.

        Raises
        ------
        ArgumentError
            `kind` is not a valid name of a kind, or a value cannot be written as JSON.
        """
        ...

    def close(self) -> None:
        """Write the remaining data and end the recording.

        The call does nothing if the recording has ended.
        """
        ...

    def __enter__(self) -> Self:
        """Return the recording, which ends with the block."""
        ...

    def __exit__(self, *_: object) -> None:
        """End the recording."""
        ...


__all__ = ["Recording"]
