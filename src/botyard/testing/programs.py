"""Programs under test: processes with their output in files, ended with all that they
have started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

TERMINATE_S: Final = 3.0
"""A program that is told to end is killed after so much wall time, s."""
LAST_BYTES: Final = 20_000
"""At most so much of the end of a program's output is read."""


class Program:
    """A process.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    log : Path
        File for its output and errors.
    env : mapping of str
        Variables beside those of this process. A Python program writes what it prints
        at once (``PYTHONUNBUFFERED``), unless they say else.
    cwd : Path or None
        Its working folder.

    Raises
    ------
    OSError
        It cannot be started.
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
                start_new_session=os.name != "nt",
            )

    @property
    def pid(self) -> int:
        """Its process id, and where there are such that of its process group."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status; None while it runs. Negative: it was ended by that signal."""
        return self._process.poll()

    @property
    def has_failed(self) -> bool:
        """Whether it has ended by itself, with a status other than 0."""
        return not self._stopped and self.status not in (None, 0)

    def wait(self, timeout: float) -> int | None:
        """Wait for its end, `timeout` s of wall time at most; None: it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.status

    def lines(self, count: int = 20) -> list[str]:
        """The last lines of its output."""
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LAST_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()[-count:]

    def stop(self) -> None:
        """End it and what it has started: first politely."""
        if self.status is None:
            self._stopped = True
            self._signal(signal.SIGTERM)
            if self.wait(TERMINATE_S) is None:
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
                self._process.wait()
        elif os.name != "nt":  # it may have left others behind
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "nt":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, number)

    def __str__(self) -> str:
        return " ".join(self.command)


__all__ = ["Program"]
