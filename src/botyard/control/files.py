"""Operation on the files of a run: read a file that a client has written."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, text
from botyard.control.site import Site
from botyard.errors import WorldError
from botyard.names import shown

MAX_FILES: Final = 100
"""Maximum number of files of one run that clients can read; these are the newest files."""


@dataclass(frozen=True, kw_only=True)
class ReadFile(Operation[Path]):
    """Read a picture, movie or recording that an operation of this run has written.

    These operations are `WritePicture`, `WriteMovie`, `StopRecording` and
    `SaveRecording`. The file is named by its path, as these operations return it. No
    other file can be read; of each run, the newest 100 can.

    Parameters
    ----------
    file : str
        Path, as the operation that wrote the file has returned it.
    """

    file: str = argument(text(4096))
    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Path:
        """Return the path of the file, after a check that this run has written it.

        Raises
        ------
        WorldError
            No such file was written, or it no longer exists.
        """
        # Compare with known paths and open no path of a client, so that no other file
        # is exposed.
        path = next((path for path in control.files if str(path) == self.file), None)
        if path is None:
            raise WorldError(
                f"{shown(self.file, 200)}: expected a file that this run has written"
            )

        # The file may have been replaced by a link to another file.
        if path.is_symlink() or not path.is_file():
            raise WorldError(f"{shown(str(path), 200)}: the file no longer exists")
        return path

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return f"the file {result} is read"


__all__ = ["MAX_FILES", "ReadFile"]
