"""A simulator that is left alone is started again when it dies: on the same ports, with
its robots where they were (CRS-003).

The process that was started waits for another one, which simulates and keeps its state
in a file (`botyard.servers.jobs.statefile`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
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
"""Most crashes within `CRASH_WINDOW_S`; then the simulator is not restarted."""
CRASH_WINDOW_S: Final = 60.0
"""Time window of `MAX_CRASHES`, s."""
RESTART_DELAY_S: Final = 1.0
"""Delay (back-off) before a simulator that died soon after its start is restarted, s.
"""
_FORWARDED: Final = tuple(
    getattr(signal, n)
    for n in ("SIGTERM", "SIGHUP", "SIGINT", "SIGBREAK")
    if hasattr(signal, n)
)


def supervise(
    args: Sequence[str], log_file: str | None, state_file: str | None, folder: Path
) -> int:
    """Run a simulator as a process of its own, again and again while it dies of faults;
    its exit status.

    Parameters
    ----------
    args : sequence of str
        The command line of ``botyard run``.
    log_file : str, optional
        The log file; a copy of it is kept where the simulator has died without a word.
    state_file : str, optional
        Where the state is kept; None: beside the log file, or in the folder for
        temporary files.
    folder : Path
        Where the simulator is started.

    Raises
    ------
    TempFileError
        There is no place for the state.
    BusyFileError
        Another simulator keeps its state in `state_file`.
    DaemonError
        No process can be started.
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
            begin = time.monotonic()
            status = worker.run([*command, *more], folder)
            if not _is_crash(status):
                return status if status >= 0 else 128 - status  # as a shell tells it
            if status < 0:  # it had no time to do so itself
                keep_log(log_file)
            how = signal.strsignal(-status) if status < 0 else f"status {status}"
            if not state.exists():  # there is nothing to go on from
                if status < 0:
                    _say(f"botyard: the simulator has died ({how})")
                return int(ExitCode.CRASH)

            deaths.append(time.monotonic())
            if len(deaths) == MAX_CRASHES and deaths[-1] - deaths[0] < CRASH_WINDOW_S:
                _say(
                    f"botyard: the simulator has died ({how}), too often: it is not started again"
                )
                return int(ExitCode.CRASH)

            _say(f"botyard: the simulator has died ({how}): it is started again")
            if time.monotonic() - begin < 2 * RESTART_DELAY_S:
                time.sleep(RESTART_DELAY_S)
            more = ["--restarting-after-crash"]


def become_supervisor(
    args: Sequence[str], log_file: str | None, state_file: str | None, folder: Path
) -> int:
    """`supervise` in this process, but in an interpreter that has loaded nothing else:
    it stays as long as the simulator.

    Parameters and errors are those of `supervise`. Where a program cannot be replaced
    by another one (Windows), it is done here.
    """
    if os.name != "posix":
        return supervise(args, log_file, state_file, folder)
    work = os.getcwd()
    what = json.dumps([log_file, state_file, str(folder), work])
    # what comes meanwhile waits for the handlers of the new program
    with _blocked():
        os.chdir(
            folder
        )  # relative folders of PYTHONPATH count from where this program was started
        try:
            # the arguments one by one: the system limits the length of each
            os.execv(
                sys.executable,
                python_command("botyard.servers.jobs.supervise:main", what, *args),
            )
        except OSError as error:
            os.chdir(work)
            raise DaemonError(
                f"the simulator cannot be started: {error.strerror}"
            ) from None


def main() -> None:
    """The program that looks after a simulator: what `become_supervisor` hands over is
    its argument.
    """
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
    """Tell the user; a standard error that cannot be written, on a full disk, must not
    keep the simulator from being started again.
    """
    with contextlib.suppress(OSError):
        print(f"{text}\n", end="", file=sys.stderr, flush=True)


def keep_log(file: str | None) -> str:
    """Copy the log file, so that the next run does not write over it; the copy's name,
    or nothing.
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
    """Where the user says; else beside the log, or, where that cannot be written, in a
    folder for temporary files.
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
            f"the state for a restart after a crash cannot be kept in {where}: "
            f"{error.strerror}; name a file with --state-file, or say "
            "--no-crash-restart"
        ) from None


def _writable(stack: contextlib.ExitStack, name: str) -> Path:
    """The path of a file for the state: one that is not there yet, is empty, or holds a
    state. It is held as long as the stack stands.

    Raises
    ------
    BusyFileError
        Another simulator keeps its state there.
    OSError
        It cannot be written, or something else is there.
    """
    path = Path(name).absolute()
    stack.enter_context(Hold(path))
    with open_own(path, append=True, mode=PRIVATE):
        pass
    if not is_ours(path):
        raise OSError(
            errno.EEXIST, "it is a file of another kind, which is not replaced", name
        )

    return path


class _Worker:
    """The process that simulates; signals to end that come to this one go to it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted: int | None = None
        """The last signal that was to end us."""

    def run(self, command: Sequence[str], folder: Path) -> int:
        """One simulator, from its start to its end."""
        if self._wanted is not None:
            if self._wanted == signal.SIGINT:
                print("botyard: interrupted", file=sys.stderr)
            return -self._wanted

        try:
            with _blocked():
                self._process = subprocess.Popen(command, cwd=folder)
        except OSError as error:
            raise DaemonError(
                f"the simulator cannot be started: {error.strerror}"
            ) from None

        # what came while there was nobody to pass it on to
        self._forward()
        try:
            return self._process.wait()
        finally:
            self._process = None

    def _forward(self) -> None:
        if (
            self._wanted is not None and self._process is not None
        ):  # else it has died, or is about to be started
            with contextlib.suppress(OSError):
                self._process.send_signal(self._wanted)

    @contextlib.contextmanager
    def forwarding_signals(self) -> Iterator[None]:
        """Pass signals on. The process may have had a terminal's own already; it takes
        two within a moment for one.
        """

        def pass_on(number: int, _frame: FrameType | None) -> None:
            self._wanted = number
            self._forward()

        old = {number: signal.signal(number, pass_on) for number in _FORWARDED}
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(
                signal.SIG_UNBLOCK, _FORWARDED
            )  # `become_supervisor` has blocked them

        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """A process that is started begins with signals blocked: they wait until it can
    take them.
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
    """Whether a process has died of a fault: by a signal that nobody sends to end it,
    or as it tells itself.
    """
    if status < 0:
        return -status not in _FORWARDED
    return status == ExitCode.CRASH or status >= 0x8000_0000  # an exception on Windows


__all__ = ["become_supervisor", "keep_log", "main", "supervise"]
