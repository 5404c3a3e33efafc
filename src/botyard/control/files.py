"""Operation on the files of a run: read one that a client has had written."""

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
"""Files of a run that can be read: the newest."""


@dataclass(frozen=True, kw_only=True)
class ReadFile(Operation[Path]):
    """Read a picture, movie or recording that `WritePicture`, `WriteMovie`,
    `StopRecording` or `SaveRecording` has written in this run.

    The file is named by its path, as these operations return it. No other file can be
    read; of a run, the newest 100.
    """

    file: str = argument(text(4096))
    audit = logging.INFO
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Path:
        """Carry it out. WorldError if no such file was written, or it is gone."""
        path = next((path for path in control.files if str(path) == self.file), None)
        if path is None:
            raise WorldError(
                f"{shown(self.file, 200)}: expected a file that this run has written"
            )

        if path.is_symlink() or not path.is_file():
            raise WorldError(f"{shown(str(path), 200)}: the file is gone")
        return path

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return f"{result} is read"


__all__ = ["MAX_FILES", "ReadFile"]
