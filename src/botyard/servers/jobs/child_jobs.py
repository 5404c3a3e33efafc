"""Jobs for clients in child processes with limits of memory and time.

A job can be killed at any time. `botyard.processes.child_process` is the child's side.
The child is a new interpreter, not a fork. It inherits no file and no socket except its
two pipes, and has a temporary folder that is removed after its end. The child ends when
this process ends, in any way. Interrupts of the terminal do not reach it.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.codec.messages import Channel, DamagedMessage, Types, write_message
from botyard.errors import BotyardError
from botyard.names import shown
from botyard.processes.child_process import OUT_OF_MEMORY
from botyard.processes.interpreter import python_command
from botyard.processes.launch import PIPE, Child, ending, last_lines

MIB: Final = 2**20
KILL_WAIT_S: Final = 5.0
"""Longest wait for a killed process, s.

A process that is blocked on a disk cannot end before the disk responds.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """Resource limits of a job.

    Attributes
    ----------
    time : float
        Maximum wall time, s.
    memory : int
        Maximum memory of the process (on Linux only), and maximum size of each of its answers (on
        any system), bytes.
    """

    time: float = 30.0
    memory: int = 2048 * MIB


class JobError(BotyardError):
    """A job failed or was killed; the text has the reason."""


class Job:
    """One job in a child process.

    Parameters
    ----------
    module : str
        Module to run; its `main` calls `botyard.processes.child_process.serve`.
    limits : JobLimits
        Resource limits of the process.
    """

    def __init__(self, module: str, limits: JobLimits) -> None:
        self._module = module
        self._limits = limits
        self._process: Child | None = None
        self._lock = threading.Lock()
        self._reason = ""
        self._over = threading.Event()
        self._over.set()

    def run(
        self, kind: str, request: object, types: Types
    ) -> Iterator[tuple[str, Any]]:
        """Send a request, and yield the answers as they arrive.

        This blocks, so call it in a thread.

        Parameters
        ----------
        kind : str
            Name of the request's type, which the child process reads first.
        request : object
            Content of the request, encoded as its own class; see
            `botyard.codec.messages.write_message`.
        types : mapping
            Types of the expected answers, see
            `botyard.codec.messages.Channel`.

        Raises
        ------
        JobError
            The process cannot be started, died, exceeded its limits, sent an invalid
            answer, or was killed.
        """
        with contextlib.ExitStack() as stack:
            self._over.clear()
            stack.callback(self._over.set)
            try:
                folder = tempfile.mkdtemp(prefix="botyard-")
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
                said = Path(folder, "said")
                process = self._begin(folder, said)
            except OSError as error:
                raise JobError(
                    f"cannot start a child process for the job: {error.strerror}"
                ) from None

            stack.callback(self._end, process)
            timer = threading.Timer(self._limits.time, self.kill, [self._too_long()])
            timer.daemon = True
            timer.start()
            stack.callback(timer.cancel)

            try:
                write_message(process.input, kind, request, type(request))
                # Keep the pipe open: the process ends when its input closes.
                process.input.flush()
                channel = Channel(process.output, types, self._limits.memory)

                while (message := channel.read()) is not None:
                    yield message
            except DamagedMessage as error:
                cause = f"the child process of the job sent an invalid answer: {error}"
            except OSError:
                cause = ""
            else:
                cause = ""

            status = process.wait(KILL_WAIT_S) if not cause else None
            if self._reason or cause or status:
                raise JobError(self._reason or cause or self._died(status or 0, said))

    def _begin(self, folder: str, said: Path) -> Child:
        environment = (
            os.environ
            | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
            | {"OPENBLAS_NUM_THREADS": "1"}
        )
        # An empty entry, as in PYTHONPATH=/a:$PYTHONPATH, means the working directory.
        if places := os.environ.get("PYTHONPATH"):
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, places.split(os.pathsep))
            )

        # The CPU limit, in whole seconds, is a fallback for the timer of this process.
        arguments = [str(self._limits.memory), str(math.ceil(self._limits.time) + 1)]
        with self._lock:
            if self._reason:
                raise JobError(self._reason)
            self._process = Child(
                python_command(f"{self._module}:main", *arguments, unbuffered=True),
                input=PIPE,
                output=PIPE,
                errors=said,
                env=environment,
                # A hint for systems that support large pipes; others ignore it.
                pipesize=MIB,
            )
            return self._process

    def kill(self, reason: str = "the simulator is closing") -> None:
        """Kill the job at once.

        This may be called from any thread, also before the job has started.

        Parameters
        ----------
        reason : str
            Reason in the `JobError` that `run` raises; the first call determines it.
        """
        with self._lock:
            self._reason = self._reason or reason
            if self._process is not None:
                self._process.kill()

    def wait(self) -> None:
        """Wait at most `KILL_WAIT_S` until a killed job has released everything."""
        self._over.wait(KILL_WAIT_S)

    def _end(self, process: Child) -> None:
        process.kill()
        process.close()
        process.wait(KILL_WAIT_S)

    def _too_long(self) -> str:
        return (
            f"the job took more than {self._limits.time:g} s (--job-time raises this "
            "limit)"
        )

    def _died(self, status: int, output: Path) -> str:
        """Return the reason why a process ended that this job has not killed."""
        if status == OUT_OF_MEMORY:
            return (
                f"the job needs more than {self._limits.memory // MIB} MiB of memory "
                "(--job-memory raises this limit)"
            )

        # The kernel sends SIGXCPU when the process reaches its limit of CPU time.
        if -status == getattr(signal, "SIGXCPU", None):
            return self._too_long()
        # An exception's message is in the last line.
        said = last_lines(output, 1)
        return f"the child process of the job died ({ending(status)})" + (
            f": {shown(said[0], 200)}" if said else ""
        )


__all__ = ["Job", "JobError", "JobLimits"]
