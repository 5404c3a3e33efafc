"""Supervisor process that restarts the simulator after a crash (CRS-003).

The restarted simulator has the same ports, and its robots are at their former poses.
The supervisor waits for a child process, which simulates and writes its state to a file
(`botyard.servers.jobs.statefile`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from botyard.errors import (
    BotyardError,
    BusyFileError,
    DaemonError,
    ExitCode,
    TempFileError,
)
from botyard.names import escaped
from botyard.processes.interpreter import python_command
from botyard.processes.launch import Child, ending
from botyard.processes.safefile import (
    PRIVATE,
    Hold,
    copy_own,
    is_device,
    is_ours,
    open_own,
    remove_own,
)

MAX_CRASHES: Final = 5
"""Maximum number of crashes within `CRASH_WINDOW_S`, then no more restarts."""
CRASH_WINDOW_S: Final = 60.0
"""Time window of `MAX_CRASHES`, s."""
RESTART_DELAY_S: Final = 1.0
"""Delay (back-off) before a restart if the simulator died soon after its start, s."""
_FORWARDED: Final = tuple(
    getattr(signal, n)
    for n in ("SIGTERM", "SIGHUP", "SIGINT", "SIGBREAK")
    if hasattr(signal, n)
)


def supervise(
    args: Sequence[str], log_file: str | None, state_file: str | None, folder: Path
) -> int:
    """Run a simulator as a child process, restart it after crashes; return its status.

    Parameters
    ----------
    args : sequence of str
        Command line of ``botyard run``.
    log_file : str, optional
        Log file. If the simulator dies by a signal, a copy of it is kept.
    state_file : str, optional
        State file; by default next to the log file, or in the folder for temporary
        files.
    folder : Path
        Working directory of the simulator.

    Raises
    ------
    TempFileError
        No state file can be written.
    BusyFileError
        Another simulator uses `state_file`.
    DaemonError
        The process cannot be started.
    """
    with contextlib.ExitStack() as stack:
        state = _state_path(stack, log_file, state_file)
        remove_own(state)
        stack.callback(_forget, state)
        own = ["--state-file", str(state), "--supervisor", str(os.getpid())]
        command = python_command("botyard.__main__:main", "run", *args, *own)
        worker = _Worker()
        stack.enter_context(worker.forwarding_signals())
        deaths: deque[float] = deque(maxlen=MAX_CRASHES)
        more: list[str] = []
        while True:
            started = time.monotonic()
            status = worker.run([*command, *more], folder)
            if not _is_crash(status):
                # 128 + signal number is the status that a shell reports.
                return status if status >= 0 else 128 - status
            # A process that died by a signal had no time to keep its log.
            if status < 0:
                keep_log(log_file)
            # Without a state, a restart would lose the run.
            if not state.exists():
                if status < 0:
                    _say(f"botyard: the simulator died ({ending(status)})")
                return int(ExitCode.CRASH)

            deaths.append(time.monotonic())
            if len(deaths) == MAX_CRASHES and deaths[-1] - deaths[0] < CRASH_WINDOW_S:
                _say(
                    f"botyard: the simulator died ({ending(status)}) too often: no further restart"
                )
                return int(ExitCode.CRASH)

            _say(f"botyard: the simulator died ({ending(status)}): restarting it")
            if time.monotonic() - started < 2 * RESTART_DELAY_S:
                time.sleep(RESTART_DELAY_S)
            more = ["--restarting-after-crash"]


def become_supervisor(
    args: Sequence[str], log_file: str | None, state_file: str | None, folder: Path
) -> int:
    """Run `supervise` in a fresh interpreter that replaces this process.

    The supervisor lives as long as the simulator, so it should not keep loaded modules
    in memory. See `supervise` for parameters and errors. Windows cannot replace a
    process, so there the supervisor runs in this one.
    """
    if os.name != "posix":
        return supervise(args, log_file, state_file, folder)
    work = os.getcwd()
    what = json.dumps([log_file, state_file, str(folder), work])
    # Signals that arrive meanwhile stay pending until the new program has its handlers.
    with _blocked():
        # Relative folders of PYTHONPATH refer to the directory in which this program
        # was started.
        os.chdir(folder)
        try:
            # Pass arguments separately, because the system limits the length of each
            # one.
            os.execv(
                sys.executable,
                python_command("botyard.servers.jobs.supervise:main", what, *args),
            )
        except OSError as error:
            os.chdir(work)
            raise DaemonError(f"cannot start the simulator: {error.strerror}") from None


def main() -> None:
    """Entry point of the supervisor; `become_supervisor` passes its argument."""
    log_file, state_file, folder, work = json.loads(sys.argv[1])
    os.chdir(work)
    try:
        status = supervise(sys.argv[2:], log_file, state_file, Path(folder))
    except BotyardError as error:
        _say(f"botyard: error: {escaped(str(error))}")
        status = int(error.exit_code)

    sys.stdout.flush()
    os._exit(status)


def _say(text: str) -> None:
    """Print a line to standard error, and ignore errors.

    A standard error on a full disk must not prevent the restart of the simulator.
    """
    with contextlib.suppress(OSError):
        print(f"{text}\n", end="", file=sys.stderr, flush=True)


def keep_log(file: str | None) -> str:
    """Copy the log file so that the next run does not overwrite it.

    Returns
    -------
    str
        Path of the copy, or "" if there is none.
    """
    if file is None:
        return ""
    kept = f"{file}-crash"
    try:
        copy_own(file, kept)
    except OSError:
        return ""

    return kept


def _forget(state: Path) -> None:
    with contextlib.suppress(OSError):
        remove_own(state)


def _state_path(
    stack: contextlib.ExitStack, log_file: str | None, state_file: str | None
) -> Path:
    """Return the path of the state file.

    It is the user's choice, by default next to the log. If that folder is not writable,
    it is in a temporary folder.
    """
    if state_file is None and log_file is not None and not is_device(log_file):
        with contextlib.suppress(OSError, BusyFileError):
            return _writable(stack, f"{log_file}-state")

    try:
        if state_file is not None:
            return _writable(stack, state_file)
        return (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="botyard-")))
            / "state"
        )
    except OSError as error:
        where = state_file or "any folder for temporary files"
        raise TempFileError(
            f"cannot write the state file for restarts after a crash in {where}: "
            f"{error.strerror}; set --state-file to another file, or use "
            "--no-crash-restart"
        ) from None


def _writable(stack: contextlib.ExitStack, name: str) -> Path:
    """Return the path of a new, empty or old state file, locked until the stack closes.

    Raises
    ------
    BusyFileError
        Another simulator uses the file.
    OSError
        The file cannot be written, or it is another kind of file.
    """
    path = Path(name).absolute()
    stack.enter_context(Hold(path))
    with open_own(path, append=True, mode=PRIVATE):
        pass
    if not is_ours(path):
        raise OSError(
            errno.EEXIST, "the file is not a state file, so it is not replaced", name
        )

    return path


class _Worker:
    """Child process with the simulator; termination signals are forwarded to it."""

    def __init__(self) -> None:
        self._process: Child | None = None
        self._wanted: int | None = None
        """Last termination signal that this process received."""

    def run(self, command: Sequence[str], folder: Path) -> int:
        """Run one simulator from start to end, and return its exit status."""
        # A signal arrived between two runs: do not start another one.
        if self._wanted is not None:
            if self._wanted == signal.SIGINT:
                print("botyard: interrupted", file=sys.stderr)
            return -self._wanted

        try:
            with _blocked():
                self._process = Child(
                    command,
                    input=None,
                    output=None,
                    errors=None,
                    cwd=folder,
                    # The terminal's signals and keys belong to the simulator.
                    has_group=False,
                )
        except OSError as error:
            raise DaemonError(f"cannot start the simulator: {error.strerror}") from None

        # Forward a signal that arrived before the process existed.
        self._forward()
        try:
            return self._process.wait() or 0
        finally:
            self._process = None

    def _forward(self) -> None:
        # Without a process, the simulator has died or is about to start.
        if self._wanted is not None and self._process is not None:
            self._process.signal(self._wanted)

    @contextlib.contextmanager
    def forwarding_signals(self) -> Iterator[None]:
        """Forward signals to the child process.

        A terminal may already have sent the same signal to the child, which treats two
        signals in quick succession as one.
        """

        def pass_on(number: int, _frame: FrameType | None) -> None:
            self._wanted = number
            self._forward()

        old = {number: signal.signal(number, pass_on) for number in _FORWARDED}
        # `become_supervisor` blocked these signals before it replaced the program.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)

        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """Block termination signals, also in child processes that are started meanwhile.

    They stay pending until the child has installed its handlers.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return

    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_crash(status: int) -> bool:
    """Return whether a process crashed, by its status or an unexpected signal."""
    if status < 0:
        return -status not in _FORWARDED
    # On Windows, exceptions have statuses of 0x8000_0000 and above.
    return status == ExitCode.CRASH or status >= 0x8000_0000


__all__ = ["become_supervisor", "keep_log", "main", "supervise"]
