"""Handling of Ctrl-C (SIGINT) and SIGTERM in every phase of the program.

The program ends with one line and status 130. A ready simulator ends silently with 0.
The module imports almost nothing, because it is loaded before everything else. There
are three phases:

* Before a command starts, the process ends at once: there is nothing to clean up.
* During a command, `Interrupted` is raised in the main thread, or the task of the event
  loop (`run_loop`) is cancelled. Whatever the command then does, `main` reports an
  interruption. If the command swallows the exception, or is stuck in C code, a thread
  ends the process after `SHUTDOWN_GRACE_S`.
* A ready simulator (`ready`) shuts down in an orderly manner; later signals repeat
  the request. A second signal ends a call that blocks the simulator's event loop. A call
  of a controller that blocks the loop longer than `SHUTDOWN_GRACE_S` is ended without a
  second signal: the controller ends as after a crash, and the simulator then shuts down.
  If the call still does not return, the process ends.

Signals wake a thread through a pipe, because Python runs signal handlers only when the
main thread is not in C code.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final, NoReturn, Protocol, TypeVar

T = TypeVar("T")

STATUS: Final = 130
"""Exit status after Ctrl-C: 128 + SIGINT, the convention of shells."""
SHUTDOWN_GRACE_S: Final = 3.0
"""Time that an interrupted command has to clean up, s."""
REPEAT_WINDOW_S: Final = 0.5
"""Time within which further signals count as the same interruption, s.

A terminal and a supervisor may both send one. A later signal ends the process at once.
"""
LINE: Final = "botyard: interrupted\n"
"""Message to the user after an interruption."""


class Interrupted(BaseException):
    """Exception that Ctrl-C raises in the main thread.

    It is not an `Exception`, so that no handler of ordinary errors swallows it.
    """


class Held(Protocol):
    """Call of user code in the main thread, which may keep the simulator from ending."""

    @property
    def frame(self) -> FrameType:
        """Frame of the caller; it stays the same object during one call."""

    @property
    def what(self) -> str:
        """Description of the called function, for messages."""

    @property
    def error(self) -> BaseException:
        """Exception to raise in the call. It ends only this call, not the program."""


class _Interrupts:
    """State of signal handling in this process."""

    def __init__(self) -> None:
        self.has_begun = False
        self.is_final = False
        """Whether the start-up phase is over: the simulator is ready or handles signals itself."""
        self.raises = False
        """Whether the next signal raises `Interrupted` in the main thread."""
        self.action: Callable[[], None] = self.end
        """Function that the first signal calls, in any thread.

        When `is_final` is true, every signal calls it.
        """
        self.since: float | None = None
        """Time of the first signal (`time.monotonic`), s."""
        self.status, self.line = STATUS, LINE
        """Exit status and message after an interruption."""
        self.held: Callable[[FrameType | None], Held | None] = lambda _frame: None
        """Function that finds the call that a thread is in, given the thread's current
        frame.
        """
        self.is_heard = True
        """Whether the event loop of a ready simulator has received the request to end.

        True also if there is no such loop.
        """
        self.is_watched = False
        """Whether a thread sees signals as they arrive.

        Python's own handler runs late while the main thread is in C code.
        """
        self._asked: float | None = None
        """Time of the first request to a ready simulator to end (`time.monotonic`), s.
        """
        self._frame: FrameType | None = None
        """Frame of the call in the main thread, for comparison with a later moment."""
        self._look_at: float | None = None
        """Time (`time.monotonic`, s) at which the watching thread checks whether the event loop
        reacted.
        """
        self._insists = ""
        """Exception to raise in the main thread; empty: none.

        ``call`` ends the current call of user code, ``all`` the program.
        """
        self._is_told = False
        """Whether the main thread was requested to leave its current call."""
        self._is_raised = False
        """Whether `Interrupted` was raised in the main thread."""
        self.pokes = 0
        """Number of signals that this process sent to its own main thread.

        They do not count as requests of a user.
        """
        self._lock = threading.RLock()
        self._printing = threading.RLock()
        self._is_printed = False

    def on_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal in the main thread (Python's signal handler)."""
        if not (self.is_final and self.is_watched):
            self.note(number)
        if self.is_final:
            self._end_what_holds(frame)
        if self.raises and not self.is_final:
            self.raises = False
            raise Interrupted

    def note(self, number: int) -> None:
        """Register a signal as a request to end.

        Before the final state, this runs twice per signal: in the main thread and in
        the watching thread.
        """
        now = time.monotonic()
        if self.is_final:
            if self._asked is None:
                self._asked, self._look_at = now, now + SHUTDOWN_GRACE_S
                self._remember(self._held())
            elif now - self._asked > REPEAT_WINDOW_S and not self.is_heard:
                self._insist("all")

            self.action()
            return

        with self._lock:
            is_first = self.since is None
            if is_first:
                self.since = now
                # The sender of SIGTERM is a program (init, container runtime): it needs
                # no message.
                if number == signal.SIGTERM:
                    self.status, self.line = 0, ""

        if is_first:
            self.action()
        elif self.since is not None and now - self.since > REPEAT_WINDOW_S:
            self.end()

    def left(self) -> float | None:
        """Return the time until the watching thread must call `look`.

        Returns
        -------
        float or None
            Time, s; None: no limit.
        """
        if self.is_final:
            at = None if self.is_heard else self._look_at
        else:
            at = None if self.since is None else self.since + SHUTDOWN_GRACE_S

        return None if at is None else max(0.0, at - time.monotonic())

    def look(self) -> None:
        """React to a deadline that has passed (in the watching thread).

        Before the deadline, the process should have ended, or its event loop should have received
        the request.
        """
        if not self.is_final:
            self.end()
        self._look_at = None
        held = self._held()

        # The loop has entered another call since: it makes progress, only slowly.
        if held is None or held.frame is not self._frame:
            return
        if self._is_told:
            self.line = (
                f"botyard: {held.what} does not return: the process ends "
                "now, and open files may be incomplete\n"
            )
            self.end()

        self._insist("call")

    def _held(self) -> Held | None:
        """Return the call of user code that keeps the main thread from its event loop."""
        return (
            None
            if self.is_heard
            else self.held(
                sys._current_frames().get(threading.main_thread().ident or 0)
            )
        )

    def _remember(self, held: Held | None) -> None:
        """Store the frame of a call, to recognise the same call later."""
        self._frame = None if held is None else held.frame

    def _insist(self, on: str) -> None:
        """Request that the main thread ends the call that blocks it, and wake it with a signal."""
        self._insists, self._is_told = on, True
        self._remember(self._held())
        if self.is_watched:
            self._look_at = time.monotonic() + SHUTDOWN_GRACE_S
            self.pokes += 1
            signal.pthread_kill(
                threading.main_thread().ident or 0,
                signal.SIGINT,
                # A signal to the thread itself also interrupts a blocking system call.
            )

    def _end_what_holds(self, frame: FrameType | None) -> None:
        """Raise the requested exception in the call that blocks the main thread.

        The watching thread has requested it (`_insist`).

        This method runs in the main thread, between two bytecode instructions.
        """
        on, self._insists = self._insists, ""
        if not on or self.is_heard:
            return
        held = self.held(frame)
        if held is not None:
            raise held.error
        if on == "all":
            if self._is_raised:
                self.end()
            self._is_raised = True
            raise Interrupted

    def end(self) -> None:
        """Print the message, and end the process immediately."""
        self.say()
        os._exit(self.status)

    def say(self) -> None:
        """Print the message after an interruption; later calls print nothing."""
        # The lock makes a thread that ends the process wait until another one has
        # finished writing the message.
        with self._printing, contextlib.suppress(OSError, ValueError, AttributeError):
            if self._is_printed:
                return
            self._is_printed = True
            text = (
                "\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else ""
                # Erase a progress line and show the cursor again.
            )
            os.write(2, (text + self.line).encode())


_state: Final = _Interrupts()


def begin() -> None:
    """Install the handling of Ctrl-C; the program calls this first.

    A signal that the parent process had blocked is delivered now.
    """
    _state.has_begun = True
    if os.name == "posix":
        read, write = os.pipe()
        # `set_wakeup_fd` requires a non-blocking descriptor.
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        threading.Thread(
            target=_watch, args=(read,), name="signals", daemon=True
        ).start()
        _state.is_watched = True

    signal.signal(signal.SIGINT, _state.on_signal)
    # A parent may have started this process with these signals blocked, for example
    # nohup or a daemon.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(
            signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        )


def _watch(read: int) -> None:
    """Handle signals while the main thread cannot, and check deadlines (function of a thread)."""
    import select

    if hasattr(
        signal,
        "pthread_sigmask",
        # Signals must go to the main thread: only there they interrupt blocking calls.
    ):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    while True:
        if not select.select([read], [], [], _state.left())[0]:
            _state.look()
            continue

        # `set_wakeup_fd` writes one byte, the signal's number, per signal.
        for number in os.read(read, 64):
            if _state.pokes:
                _state.pokes -= 1
            elif signal.getsignal(number) == _state.on_signal:
                _state.note(number)


def command() -> None:
    """Mark the start of a command: from now on, a signal raises `Interrupted`."""
    if not _state.has_begun:
        return
    before = sys.unraisablehook

    def unraisable(found: Any) -> None:
        if not isinstance(
            found.exc_value,
            Interrupted,
            # An `Interrupted` raised in a destructor is lost; the deadline still ends
            # the process.
        ):
            before(found)

    sys.unraisablehook = unraisable
    _state.action, _state.raises = _no_action, True


def _no_action() -> None:
    """Do nothing: the exception in the main thread is enough to end the program."""


def terminate_too() -> None:
    """Treat SIGTERM like Ctrl-C, but without a message and with status 0."""
    if _state.has_begun:
        signal.signal(signal.SIGTERM, _state.on_signal)


def hand_over() -> None:
    """Stop handling signals, because another part of the program installs its own handlers."""
    _state.action, _state.is_final = _no_action, True


def is_own_program() -> bool:
    """Return whether this process is the command line ``botyard`` itself.

    The result is False if another program calls `main`.
    """
    return _state.has_begun


def was_interrupted() -> bool:
    """Return whether a signal asked the program to end before the simulator was ready."""
    return _state.since is not None


@contextlib.contextmanager
def during(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` at the first signal, until the block ends or `ready` takes over.

    `action` may run in any thread and must not raise. Without an earlier `begin`,
    Ctrl-C is handled for the duration of the block.
    """
    before, raises = _state.action, _state.raises
    old: Any = None
    if not _state.has_begun and threading.current_thread() is threading.main_thread():
        old = signal.signal(signal.SIGINT, lambda *_: _state.action())
    _state.action, _state.raises = action, False
    try:
        yield
    finally:
        if not _state.is_final:
            _state.action, _state.raises = before, raises and _state.since is None
        if old is not None:
            signal.signal(signal.SIGINT, old)


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop, like ``asyncio.run``; Ctrl-C cancels it.

    Parameters
    ----------
    work : coroutine
        Coroutine to run; after Ctrl-C it is cancelled and may still clean up.

    Raises
    ------
    Interrupted
        Ctrl-C was pressed.
    """
    with contextlib.closing(
        work
        # If Ctrl-C arrives before the start, closing avoids the warning "never
        # awaited".
    ):
        import asyncio

        from botyard.servers.wakingloop import new_loop

        async def guarded() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            with during(lambda: _soon(loop, task.cancel)):
                return await work

        try:
            with (
                contextlib.closing(guarded()) as main,
                asyncio.Runner(loop_factory=new_loop) as runner,
            ):
                return runner.run(main)
        except asyncio.CancelledError:
            if _state.has_begun and not was_interrupted():
                raise
            raise Interrupted from None


def _soon(loop: Any, action: Callable[[], object]) -> None:
    """Call a function in an event loop, from any thread."""
    # A closed loop raises RuntimeError.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(action)


def check() -> None:
    """Raise `Interrupted` if a signal arrived, even if other code has swallowed the exception.

    Raises
    ------
    Interrupted
        The program was interrupted.
    """
    if was_interrupted() and not _state.is_final:
        raise Interrupted


def ready(
    stop: Callable[[], object],
    held: Callable[[FrameType | None], Held | None] = lambda _frame: None,
) -> None:
    """Mark the simulator as ready.

    From now on, SIGINT and SIGTERM call `stop` in its event loop.

    Parameters
    ----------
    stop : callable
        Function that shuts down the simulator.
    held : callable
        Function that finds the call of user code that a thread is in, given its current
        frame. A call that keeps the loop from ending is ended.

    Raises
    ------
    Interrupted
        A signal arrived before.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    check()

    def hear() -> None:
        _state.is_heard = True
        stop()

    _state.is_heard, _state.held = False, held
    _state.action = lambda: _soon(loop, hear)
    _state.is_final = _state.has_begun
    if not _state.has_begun and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _state.action())


def exit_program(status: int) -> NoReturn:
    """End the program with a status; later signals are ignored."""
    _state.is_heard = True
    if _state.has_begun:
        if was_interrupted() and not _state.is_final:
            exit_interrupted()
        _ignore()

    sys.exit(status)


def exit_interrupted() -> NoReturn:
    """End the program with the exit status and message of Ctrl-C."""
    _state.is_heard = True
    if _state.has_begun:
        _ignore()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    _state.say()
    sys.exit(_state.status)


def _ignore() -> None:
    """Ignore signals while Python shuts down.

    A signal at this stage would end the process in the middle of its cleanup.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


__all__ = [
    "Held",
    "Interrupted",
    "begin",
    "check",
    "command",
    "during",
    "exit_interrupted",
    "exit_program",
    "hand_over",
    "is_own_program",
    "ready",
    "run_loop",
    "terminate_too",
    "was_interrupted",
]
