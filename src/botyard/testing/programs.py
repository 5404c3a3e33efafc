"""Programs under test: processes that log to files and end with all their children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

TERMINATE_S: Final = 3.0
"""Wall time from asking a program to end until it is killed, s."""
LAST_BYTES: Final = 20_000
"""Maximum number of bytes read from the end of a program's output."""


class Program:
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
        Working folder.

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
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={"PYTHONUNBUFFERED": "1", **os.environ, **env},
                # A process group of its own, so that all children can be ended with the
                # program.
                start_new_session=os.name != "nt",
            )

    @property
    def pid(self) -> int:
        """Process id, which on POSIX is also the id of its process group."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status.

        None while the program runs; negative: number of the signal that ended it.
        """
        return self._process.poll()

    @property
    def has_failed(self) -> bool:
        """Whether the program has ended by itself, with a status other than 0."""
        return not self._stopped and self.status not in (None, 0)

    def wait(self, timeout: float) -> int | None:
        """Wait for the end of the program; return its status.

        Parameters
        ----------
        timeout : float
            Maximum wall time to wait, s.

        Returns
        -------
        int or None
            Exit status; None: it still runs.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.status

    def lines(self, count: int = 20) -> list[str]:
        """Return the last lines of its output."""
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LAST_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()[-count:]

    def stop(self) -> None:
        """End the program and its children: first SIGTERM, then SIGKILL."""
        if self.status is None:
            self._stopped = True
            self._signal(signal.SIGTERM)
            if self.wait(TERMINATE_S) is None:
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
                self._process.wait()
        # The program may have left child processes behind.
        elif os.name != "nt":
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "nt":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, number)

    def __str__(self) -> str:
        return " ".join(self.command)


__all__ = ["Program"]
