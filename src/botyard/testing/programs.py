"""Programs under test: processes that log to files and end with all their children."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from botyard.processes.launch import WITH_OUTPUT, Child, last_lines

TERMINATE_S: Final = 3.0
"""Wall time from asking a program to end until it is killed, s."""


class Program(Child):
    """A process under test.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    log : Path
        File for its standard output and errors.
    env : mapping of str
        Variables in addition to this process's. By default, a Python program writes its
        output without buffering (``PYTHONUNBUFFERED``).
    cwd : Path or None
        Working folder; None: the working folder of this process.

    Attributes
    ----------
    command : list of str
        Program and arguments.
    log : Path
        File with its output.

    Raises
    ------
    OSError
        The program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
    ) -> None:
        self.command = [str(word) for word in command]
        self.log = log
        self._stopped = False
        # In a process group of its own, the program can be ended together with its
        # children.
        super().__init__(
            self.command,
            output=log,
            errors=WITH_OUTPUT,
            cwd=cwd,
            env={"PYTHONUNBUFFERED": "1", **os.environ, **env},
        )

    @property
    def has_failed(self) -> bool:
        """Whether the program has ended with a status other than 0, without a call of `stop`."""
        return not self._stopped and self.status not in (None, 0)

    def lines(self, count: int = 20) -> list[str]:
        """Return the last lines of the program's output.

        Parameters
        ----------
        count : int
            Greatest number of lines.
        """
        return last_lines(self.log, count)

    def stop(self) -> None:
        """End the program and its children: first SIGTERM, then SIGKILL."""
        if self.status is None:
            self._stopped = True
            self.end(TERMINATE_S, group=True)
        else:
            # The program may have left child processes behind.
            self.signal(signal.SIGTERM, group=True)

    def __str__(self) -> str:
        return " ".join(self.command)


__all__ = ["Program"]
