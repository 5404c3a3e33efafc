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
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from botyard.errorpages import with_page
from botyard.errors import (
    BotyardError,
    BusyFileError,
    DaemonError,
    ExitCode,
    TempFileError,
)
from botyard.processes.interpreter import leave_working_folder, python_command
from botyard.processes.launch import KILL, Child, Forked, ending
from botyard.processes.safefile import (
    PRIVATE,
    Hold,
    copy_own,
    is_device,
    is_ours,
    open_own,
    remove_own,
)

# A fault in the saved state crashes each restart, so the number of restarts is limited.
MAX_CRASHES: Final = 5
"""Number of crashes within `CRASH_WINDOW_S` after which the simulator is not restarted."""
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
    args: Sequence[str],
    log_file: str | None,
    state_file: str | None,
    folder: Path,
    first: First | None = None,
) -> int:
    """Run a simulator as a child process, restart it after crashes; return its status.

    Parameters
    ----------
    args : sequence of str
        Command line of ``botyard run``.
    log_file : str, optional
        Log file. If the simulator dies by a signal, a copy of this file is kept.
    state_file : str, optional
        State file; by default next to the log file, or in the folder for temporary
        files.
    folder : Path
        Working directory of the simulator.
    first : First, optional
        Simulator that runs already. Default: start one.

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
        # A state of an earlier run must not be restored after the first crash.
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
            if first is not None:
                # The first simulator runs already; `run` starts later ones.
                status = worker.adopt(first, state)
                first = None
            else:
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
            # Only an early crash gets a delay: robots of a long run should continue at
            # once.
            if time.monotonic() - started < 2 * RESTART_DELAY_S:
                time.sleep(RESTART_DELAY_S)
            more = ["--restarting-after-crash"]


class First(NamedTuple):
    """Simulator that was started by a fork of the process that is now its supervisor."""

    pid: int
    """Process id of the simulator."""
    pipe: int
    """File descriptor of a pipe to the simulator, for the path of the state file."""


def become_supervisor(
    args: Sequence[str], log_file: str | None, state_file: str | None, folder: Path
) -> Callable[[], Path]:
    """Run `supervise` in a fresh interpreter that replaces this process.

    The supervisor lives as long as the simulator, so it should not keep loaded modules
    in memory. The first simulator needs these modules: on Linux this process forks, and
    the fork returns from here to simulate. That saves a third of the time of a start.
    On other systems, system libraries do not survive a fork, so the supervisor starts
    the simulator. See `supervise` for parameters and errors.

    Returns
    -------
    callable
        Waits for the supervisor; returns the path of the state file.
    """
    work = os.getcwd()
    first: First | None = None
    # Signals that arrive meanwhile stay pending until the new program has its handlers.
    with _blocked():
        try:
            if sys.platform == "linux":
                read, write = os.pipe()
                # The pipe is made before the fork, so that both processes have an end
                # of it.
                pid = _fork()
                if pid == 0:
                    # Close the writing end here, because `_state_file_from` would never
                    # see the end of the pipe.
                    os.close(write)
                    leave_working_folder()
                    return partial(_state_file_from, read)

                os.close(read)
                # `execv` closes file descriptors that are not inheritable.
                os.set_inheritable(write, True)
                first = First(pid, write)

            # Relative folders of PYTHONPATH refer to the directory in which this
            # program was started.
            os.chdir(folder)

            # Pass arguments separately, because the system limits the length of each
            # one.
            what = json.dumps([log_file, state_file, str(folder), work, first])
            os.execv(
                sys.executable,
                python_command("botyard.servers.jobs.supervise:main", what, *args),
            )
        except OSError as error:
            if first is not None:
                Forked(first.pid).signal(KILL)
            os.chdir(work)
            raise DaemonError(f"cannot start the simulator: {error.strerror}") from None


def _fork() -> int:
    """Fork this process; return 0 in the fork."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python warns that other threads may hold locks. The only other thread of this
        # program waits for signals and holds none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()

    if pid == 0:
        # The inherited descriptor wakes a thread of the parent.
        signal.set_wakeup_fd(-1)
    return pid


def _state_file_from(pipe: int) -> Path:
    """Return the path of the state file, which the supervisor sends.

    End this process if the supervisor ends before it sends the path.
    """
    with open(pipe, "rb") as stream:
        path = stream.read()

    # The supervisor has reported its error.
    if not path:
        # End without clean-up: the fork shares files and handlers with the parent.
        os._exit(int(ExitCode.CRASH))
    return Path(os.fsdecode(path))


def main() -> None:
    """Entry point of the supervisor; `become_supervisor` passes its argument."""
    log_file, state_file, folder, work, fork = json.loads(sys.argv[1])
    os.chdir(work)
    first = First(*fork) if fork is not None else None
    try:
        status = supervise(sys.argv[2:], log_file, state_file, Path(folder), first)
    except BotyardError as error:
        if first is not None:
            Forked(first.pid).signal(KILL)
        _say(f"botyard: error: {with_page(error, str(error))}")
        status = int(error.exit_code)

    sys.stdout.flush()
    # Skip the clean-up of the interpreter, which takes time and is not needed here.
    os._exit(status)


def _say(text: str) -> None:
    """Print a line to standard error, and ignore errors.

    A failed write, for example to a full disk, must not prevent the restart of the
    simulator.
    """
    with contextlib.suppress(OSError):
        # Write text and newline at once, so that lines of two processes do not mix.
        print(f"{text}\n", end="", file=sys.stderr, flush=True)


def keep_log(file: str | None) -> str:
    """Copy the log file so that the next run does not overwrite it.

    Parameters
    ----------
    file : str or None
        Log file; None: there is none. The copy replaces an earlier one.

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
    # A missing log must not prevent the restart.
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

    The user may choose the path; by default it is next to the log. If that folder is
    not writable, it is in a temporary folder.
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
    # The file is locked before it is opened for writing, so that no other simulator's
    # state is touched.
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
        self._process: Child | Forked | None = None
        self._wanted: int | None = None
        """Last termination signal that this process received."""

    def run(self, command: Sequence[str], folder: Path) -> int:
        """Run one simulator from start to end, and return its exit status.

        Parameters
        ----------
        command : sequence of str
            Program and arguments.
        folder : Path
            Working folder of the simulator.

        Returns
        -------
        int
            Exit status, −n after signal n.

        Raises
        ------
        DaemonError
            The process cannot be started.
        """
        # A signal arrived between two runs: do not start another simulator.
        if self._wanted is not None:
            if self._wanted == signal.SIGINT:
                print("botyard: interrupted", file=sys.stderr)
            # The same status as of a process that the signal has ended.
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

        return self._wait(self._process)

    def adopt(self, first: First, state: Path) -> int:
        """Send the path of its state file to a simulator that runs already.

        Return its exit status.
        """
        # The simulator may have ended with an error.
        with contextlib.suppress(BrokenPipeError), open(first.pipe, "wb") as stream:
            stream.write(os.fsencode(state))
        return self._wait(Forked(first.pid))

    def _wait(self, process: Child | Forked) -> int:
        """Wait for the end of a simulator, and return its exit status."""
        self._process = process
        # Forward a signal that arrived before the process existed.
        self._forward()
        try:
            return process.wait() or 0
        finally:
            # A later signal must not reach another process that got the same id.
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
            # Also store the signal, because the child may not exist yet.
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
