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
LAST_BYTES: Final = 20_000
"""Maximum number of bytes read from the end of a child's output."""

Stream = int | Path | IO[Any] | None
"""`PIPE`, `QUIET`, a file to write, an open file, or None: the parent's stream."""


class Child:
    """A child process.

    It may be used as a context, which closes its pipes and waits for its end.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    input, output : Stream
        Standard input and output.
    errors : Stream
        Standard errors; `WITH_OUTPUT`: the same as `output`.
    cwd : Path, optional
        Working folder.
    env : mapping of str, optional
        All variables. Default: the variables of this process.
    has_group : bool
        Whether it gets a session and process group of its own. Then signals of the
        terminal do not reach it, and it can be ended with its own children (POSIX).
    **more
        Further arguments of `subprocess.Popen`.

    Raises
    ------
    OSError
        It cannot be started.
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
        """Process id, which with a group of its own is also the id of its group."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status.

        None while it runs; negative: number of the signal that ended it.
        """
        return self._process.poll()

    @property
    def input(self) -> IO[bytes]:
        """Pipe to its standard input."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Pipe from its standard output."""
        assert self._process.stdout is not None
        return self._process.stdout

    def send(self, *pieces: bytes) -> None:
        """Write to its standard input; a dead process is ignored."""
        with contextlib.suppress(OSError):
            self.input.writelines(pieces)
            self.input.flush()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end, at most `timeout` s; return its status.

        None: it still runs.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._process.returncode

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to its whole group; an ended process is ignored.

        On Windows, which has no signals, both end the process.
        """
        # Children may outlive the process, so its group may have members after its end.
        with contextlib.suppress(OSError):
            if group and os.name != "nt":
                os.killpg(self.pid, number)
            else:
                self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.signal(KILL)

    def end(self, grace: float, *, group: bool = False) -> None:
        """Ask it to end, kill it after `grace` s, and wait for its end.

        With `group`, its own children get the same signals.
        """
        self.signal(signal.SIGTERM, group=group)
        if self.wait(grace) is None:
            self.signal(KILL, group=group)
            self.wait()

    def close(self) -> None:
        """Close its pipes."""
        for pipe in (self._process.stdin, self._process.stdout):
            # Closing flushes unsent bytes, which fails if the process is gone.
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.wait()


def end_all(children: Iterable[Child], grace: float) -> None:
    """End children as `Child.end`, all within the same `grace`, s."""
    asked = list(children)
    for child in asked:
        child.terminate()
    # One deadline for all: each gets the time that the others have left over.
    end = time.monotonic() + grace
    for child in asked:
        if child.wait(max(0.0, end - time.monotonic())) is None:
            child.kill()
            child.wait()


def ending(status: int) -> str:
    """Return the cause of a process's end: the signal in words, or its exit status."""
    said = signal.strsignal(-status) if status < 0 else None
    return said or f"status {status}"


def last_lines(file: Path, count: int) -> list[str]:
    """Return the last lines of a file; none if it cannot be read."""
    try:
        with file.open("rb") as data:
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
    "end_all",
    "ending",
    "last_lines",
]
