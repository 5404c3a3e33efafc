"""Child processes, on the parent's side: start, watch, end.

`botyard.processes.child_process` has the side of a child that works for its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

PIPE: Final = subprocess.PIPE
QUIET: Final = subprocess.DEVNULL
WITH_OUTPUT: Final = subprocess.STDOUT
# Windows has no SIGKILL; there, SIGTERM ends a process at once.
KILL: Final[int] = getattr(signal, "SIGKILL", signal.SIGTERM)
# A child may write without end, and only its last lines explain its failure.
LAST_BYTES: Final = 20_000
"""Maximum number of bytes read from the end of a child's output."""

Stream = int | Path | IO[Any] | None
"""Standard stream of a child:

`PIPE`, `QUIET`, a file to write, an open file, or None for the parent's stream.
"""


class Child:
    """A child process.

    As a context manager, it closes the child's pipes and waits for the child's end.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    input, output : Stream
        Standard input and output.
    errors : Stream
        Standard errors; `WITH_OUTPUT`: the same as `output`.
    cwd : Path, optional
        Working folder. Default: the working folder of this process.
    env : mapping of str, optional
        All variables. Default: the variables of this process.
    has_group : bool
        Whether the child gets a new session and process group. Then signals of the
        terminal do not reach it, and `end` can also end its children (POSIX).
    **more
        Further arguments of `subprocess.Popen`.

    Raises
    ------
    OSError
        The program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        input: Stream = QUIET,
        output: Stream = QUIET,
        errors: Stream = QUIET,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        has_group: bool = True,
        **more: Any,
    ) -> None:
        with contextlib.ExitStack() as stack:
            # The child keeps its own copies, so the parent's files are closed right
            # after the start.
            files = [
                stack.enter_context(one.open("wb")) if isinstance(one, Path) else one
                for one in (input, output, errors)
            ]

            # Windows ignores start_new_session.
            self._process = subprocess.Popen(
                command,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=cwd,
                env=env,
                start_new_session=has_group,
                **more,
            )

    @property
    def pid(self) -> int:
        """Process id of the child.

        It is also the id of the child's process group, if it has one.
        """
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status of the child.

        None while the child runs. A negative status −n means that signal n ended it.
        """
        return self._process.poll()

    @property
    def input(self) -> IO[bytes]:
        """Pipe to the child's standard input."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Pipe from the child's standard output."""
        assert self._process.stdout is not None
        return self._process.stdout

    def send(self, *pieces: bytes) -> None:
        """Write bytes to the child's standard input; ignore a child that has ended."""
        with contextlib.suppress(OSError):
            self.input.writelines(pieces)
            self.input.flush()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the child ends.

        Parameters
        ----------
        timeout : float, optional
            Longest wait, s; None: without limit.

        Returns
        -------
        int or None
            Exit status, −n after signal n (POSIX); None: the child still runs.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._process.returncode

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the child, or to the child's whole process group.

        A child that has ended is ignored. Windows has no signals: there, each call ends
        the child.

        Parameters
        ----------
        number : int
            Number of the signal.
        group : bool
            Whether its own children also get the signal; the child must have been
            started with `has_group`.
        """
        # Children may outlive the process, so its group may have members after its end.
        with contextlib.suppress(OSError):
            if group and os.name != "nt":
                os.killpg(self.pid, number)
            else:
                self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask the child to end (SIGTERM)."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the child (SIGKILL)."""
        self.signal(KILL)

    def end(self, grace: float, *, group: bool = False) -> None:
        """Ask the child to end, kill it after `grace` if necessary, and wait for its end.

        Parameters
        ----------
        grace : float
            Time between SIGTERM and the kill, s.
        group : bool
            Whether its own children get the same signals.
        """
        self.signal(signal.SIGTERM, group=group)
        if self.wait(grace) is None:
            self.signal(KILL, group=group)
            self.wait()

    def close(self) -> None:
        """Close the pipes to and from the child."""
        for pipe in (self._process.stdin, self._process.stdout):
            # Closing flushes unsent bytes, which fails if the process has ended.
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.wait()


class Forked:
    """A child process that is a fork of its parent (POSIX).

    Parameters
    ----------
    pid : int
        Process id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def wait(self) -> int:
        """Wait until the child ends, and return its status as `Child.status`."""
        if self._status is None:
            # A second `waitpid` would fail, so the status is kept.
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def signal(self, number: int) -> None:
        """Send a signal to the child; ignore a child that has ended."""
        # After its end, the id may belong to another process.
        if self._status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)


def end_all(children: Iterable[Child], grace: float) -> None:
    """End children like `Child.end`, all of them within one `grace`, s.

    Parameters
    ----------
    children : iterable of Child
        Child processes. All of them are asked to end before the first wait.
    grace : float
        Time for all of them together, s; children that still run are then killed.
    """
    asked = list(children)
    for child in asked:
        child.terminate()
    # One deadline applies to all: each child has the time that earlier ones did not
    # use.
    end = time.monotonic() + grace
    for child in asked:
        if child.wait(max(0.0, end - time.monotonic())) is None:
            child.kill()
            child.wait()


def ending(status: int) -> str:
    """Return the cause of a process's end: the signal in words, or its exit status.

    Parameters
    ----------
    status : int
        Exit status as `Child.wait` returns it.
    """
    # Signals without a name give None.
    said = signal.strsignal(-status) if status < 0 else None
    return said or f"status {status}"


def last_lines(file: Path, count: int) -> list[str]:
    """Return the last lines of a file; none if it cannot be read.

    Parameters
    ----------
    file : Path
        Text file; bytes that are not UTF-8 are replaced.
    count : int
        Maximum number of lines. Only the last `LAST_BYTES` bytes are read.
    """
    try:
        with file.open("rb") as data:
            # A seek may split a character, which "replace" below makes harmless.
            data.seek(max(0, data.seek(0, os.SEEK_END) - LAST_BYTES))
            return data.read().decode("utf-8", "replace").rstrip().splitlines()[-count:]
    except OSError:
        return []


__all__ = [
    "KILL",
    "PIPE",
    "QUIET",
    "WITH_OUTPUT",
    "Child",
    "Forked",
    "end_all",
    "ending",
    "last_lines",
]
