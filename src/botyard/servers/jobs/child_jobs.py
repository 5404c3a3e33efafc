"""Runs jobs for clients in child processes with limits of memory and time, which can be
killed at any moment.

What such a process does, and how it answers, is in `botyard.processes.child_process`.
It is a new interpreter and no copy of this one, it inherits no file and no socket but
its own two pipes, it has a folder for temporary files that is removed after it, and it
ends with this process however that ends. Interruptions of the terminal do not reach it.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from botyard.errors import BotyardError
from botyard.names import shown
from botyard.processes.child_process import (
    OUT_OF_MEMORY,
    Channel,
    DamagedMessage,
    Types,
    write_message,
)
from botyard.processes.interpreter import python_command

MIB: Final = 2**20
KILL_WAIT_S: Final = 5.0
"""Longest wait for a killed process, s: one that is blocked on a disk cannot end before
the disk answers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """Resource limits of a job.

    Attributes
    ----------
    time : float
        Wall time, s.
    memory : int
        Bytes, where the system can see to it (Linux); also of what it answers.
    """

    time: float = 30.0
    memory: int = 2048 * MIB


class JobError(BotyardError):
    """A job failed or was killed; the text says why."""


class Job:
    """One job in a child process.

    Parameters
    ----------
    module : str
        What is run: a module whose `main` calls
        `botyard.processes.child_process.serve`.
    limits : JobLimits
        What it may take.
    """

    def __init__(self, module: str, limits: JobLimits) -> None:
        self._module = module
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._reason = ""
        self._over = threading.Event()
        self._over.set()

    def run(
        self, kind: str, request: object, types: Types
    ) -> Iterator[tuple[str, Any]]:
        """Send a request, and yield the answers as they come. Blocks: call it in a
        thread.

        Parameters
        ----------
        kind, request : str, object
            The request, see `botyard.processes.child_process.write_message`.
        types : mapping
            What answers are expected, see `botyard.processes.child_process.Channel`.

        Raises
        ------
        JobError
            The process cannot be started, has died, has taken more than it may, has
            answered nonsense, or was ended.
        """
        with contextlib.ExitStack() as stack:
            self._over.clear()
            stack.callback(self._over.set)
            try:
                folder = tempfile.mkdtemp(prefix="botyard-")
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
                said = stack.enter_context(Path(folder, "said").open("w+b"))
                process = self._begin(folder, said)
            except OSError as error:
                raise JobError(
                    f"no process for it can be started: {error.strerror}"
                ) from None

            stack.callback(self._end, process)
            timer = threading.Timer(self._limits.time, self.kill, [self._too_long()])
            timer.daemon = True
            timer.start()
            stack.callback(timer.cancel)
            source, sink = (
                cast(IO[bytes], process.stdout),
                cast(IO[bytes], process.stdin),
            )
            try:
                write_message(sink, kind, request)
                # left open: the process ends when it is closed
                sink.flush()
                channel = Channel(source, types, self._limits.memory)  # type: ignore[arg-type]
                while (message := channel.read()) is not None:
                    yield message
            except DamagedMessage as error:
                cause = f"the process for it has answered nonsense: {error}"
            except OSError:
                cause = ""
            else:
                cause = ""

            status = self._wait(process) if not cause else None
            if self._reason or cause or status:
                raise JobError(self._reason or cause or self._died(status or 0, said))

    def _begin(self, folder: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
        environment = (
            os.environ
            | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
            | {"OPENBLAS_NUM_THREADS": "1"}
        )
        if places := os.environ.get(
            "PYTHONPATH"
        ):  # an empty one is the working directory, as in PYTHONPATH=/a:$PYTHONPATH
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, places.split(os.pathsep))
            )

        arguments = [str(self._limits.memory), str(math.ceil(self._limits.time) + 1)]
        with self._lock:
            if self._reason:
                raise JobError(self._reason)
            self._process = subprocess.Popen(
                python_command(f"{self._module}:main", *arguments, unbuffered=True),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                start_new_session=True,
                # where pipes can be so large; else they are as always
                pipesize=MIB,
            )
            return self._process

    def kill(self, reason: str = "the simulator is closing") -> None:
        """End the work at once; `run` says why. May be called from any thread, also
        before it has begun.
        """
        with self._lock:
            self._reason = self._reason or reason
            if self._process is not None:
                self._process.kill()

    def wait(self) -> None:
        """Wait until nothing is left of work that was ended; not longer than
        `KILL_WAIT_S`.
        """
        self._over.wait(KILL_WAIT_S)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Nothing is left of the process."""
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet
                cast(IO[bytes], pipe).close()

        self._wait(process)

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        try:
            return process.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            return None

    def _too_long(self) -> str:
        return f"it took more than {self._limits.time:g} s (--job-time raises that)"

    def _died(self, status: int, said: IO[bytes]) -> str:
        """Why a process has ended that nobody has ended."""
        if status == OUT_OF_MEMORY:
            return (
                f"it needs more than {self._limits.memory // MIB} MiB of "
                "memory (--job-memory raises that)"
            )

        if -status == getattr(signal, "SIGXCPU", None):
            return self._too_long()
        how = (
            f"status {status}"
            if status > 0
            else signal.strsignal(-status) or f"signal {-status}"
        )
        said.seek(max(0, said.seek(0, os.SEEK_END) - 4000))
        lines = said.read().decode("utf-8", "replace").strip().splitlines()
        return f"the process for it has died ({how})" + (
            f": {shown(lines[-1], 200)}" if lines else ""
        )


__all__ = ["Job", "JobError", "JobLimits"]
