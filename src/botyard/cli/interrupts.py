"""Ctrl-C, at any moment: one line, status 130, and no trace; 0 and no word once the simulator has said that it is ready.

Imports next to nothing, because it is there before everything else. The program is told in three ways, one after the other:

* Until a command begins, the process ends at once: there is nothing to tidy up.
* A command gets `Interrupted` raised in the main thread, or, in an event loop (`run_loop`), the loop's task is cancelled. Whatever comes
  of that, an error on the way out, or an end that looks like a good one, `main` says that it was an interruption. Whoever swallows
  it, or sits in C code that does not come back, has `SHUTDOWN_GRACE_S` seconds: then a thread ends the process.
* A simulator that is ready ends in its own way (`ready`), for good: later signals ask for the same again.

Signals wake a thread through a pipe, so that this holds while the main thread is in C code, too.
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
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")

STATUS: Final = 130
"""Exit status after Ctrl-C, as shells have it."""
SHUTDOWN_GRACE_S: Final = 3.0
"""Grace period for an interrupted command to clean up, s."""
REPEAT_WINDOW_S: Final = 0.5
"""Signals within this time, s, count as the first one (a terminal and a supervisor both send it); a later one ends the process at once."""
LINE: Final = "botyard: interrupted\n"


class Interrupted(BaseException):
    """Ctrl-C, in the main thread. No `Exception`, so that nobody takes it for an error that can be handled."""


class _Interrupts:
    """The state of this process."""

    def __init__(self) -> None:
        self.has_begun = False
        self.is_final = False
        """Signals do what they do for good: the simulator is ready, or another part has taken them over."""
        self.raises = False
        """`Interrupted` is raised in the main thread, once."""
        self.action: Callable[[], None] = self.end
        """What the first signal does, in any thread; what is settled is done at each."""
        self.since: float | None = None
        """When the first one came (`time.monotonic`)."""
        self.status, self.line = STATUS, LINE
        """With what to end after it."""
        self._lock = threading.RLock()
        self._printing = threading.RLock()
        self._is_printed = False

    def on_signal(self, number: int, _frame: FrameType | None = None) -> None:
        """Python's handler, in the main thread."""
        self.note(number)
        if self.raises and not self.is_final:
            self.raises = False
            raise Interrupted

    def note(self, number: int) -> None:
        """A signal has come; called twice for each, in the main thread and in the one that watches."""
        if self.is_final:
            self.action()
            return
        now = time.monotonic()
        with self._lock:
            is_first = self.since is None
            if is_first:
                self.since = now
                if number == signal.SIGTERM:  # who sends that wants no word
                    self.status, self.line = 0, ""
        if is_first:
            self.action()
        elif self.since is not None and now - self.since > REPEAT_WINDOW_S:
            self.end()

    def end(self) -> None:
        """End the process now."""
        self.say()
        os._exit(self.status)

    def say(self) -> None:
        """Write the line, once."""
        # who ends the process waits for another thread that writes the line
        with self._printing, contextlib.suppress(OSError, ValueError, AttributeError):
            if self._is_printed:
                return
            self._is_printed = True
            text = "\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else ""  # a line of progress goes, the cursor comes back
            os.write(2, (text + self.line).encode())


_state: Final = _Interrupts()


def begin() -> None:
    """Take Ctrl-C over, before anything else is done. A signal that whoever has started us had blocked comes now."""
    _state.has_begun = True
    if os.name == "posix":
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(read,), name="signals", daemon=True).start()
    signal.signal(signal.SIGINT, _state.on_signal)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def _watch(read: int) -> None:
    """Thread: act on signals also while the main thread does not come to it, and see to the time limit."""
    import select

    if hasattr(signal, "pthread_sigmask"):  # the main thread is to get them: only there they end what waits
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        left = (
            None
            if _state.since is None or _state.is_final
            else max(0.0, _state.since + SHUTDOWN_GRACE_S - time.monotonic())
        )
        if not select.select([read], [], [], left)[0]:
            _state.end()
        for number in os.read(read, 64):
            if signal.getsignal(number) == _state.on_signal:
                _state.note(number)


def command() -> None:
    """A command begins: from now on it is told, and may tidy up."""
    if not _state.has_begun:
        return
    before = sys.unraisablehook

    def unraisable(found: Any) -> None:
        if not isinstance(found.exc_value, Interrupted):  # raised where Python cannot hand it on; the time limit counts
            before(found)

    sys.unraisablehook = unraisable
    _state.action, _state.raises = _no_action, True


def _no_action() -> None:
    """What is done besides raising."""


def terminate_too() -> None:
    """SIGTERM does the same, without a word and with status 0."""
    if _state.has_begun:
        signal.signal(signal.SIGTERM, _state.on_signal)


def hand_over() -> None:
    """Another part takes signals over for good, by handlers of its own."""
    _state.action, _state.is_final = _no_action, True


def is_own_program() -> bool:
    """Whether this process is the command line's own, and no program that calls `botyard.cli.main.main`."""
    return _state.has_begun


def was_interrupted() -> bool:
    """Whether a signal has come to end the program before the simulator was ready."""
    return _state.since is not None


@contextlib.contextmanager
def during(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` at the first signal instead, in any thread, until the block is left, or all is settled.

    `action` may not raise. Where `begin` was not called, Ctrl-C is taken over for so long.
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
    """Run an event loop with one task, which Ctrl-C cancels; like ``asyncio.run``.

    Raises
    ------
    Interrupted
        It was.
    """
    with contextlib.closing(work):  # also if Ctrl-C comes during the import: no warning that it was never awaited
        import asyncio

        async def guarded() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            with during(lambda: _soon(loop, task.cancel)):
                return await work

        try:
            with contextlib.closing(guarded()) as main:
                return asyncio.run(main)
        except asyncio.CancelledError:
            if _state.has_begun and not was_interrupted():
                raise
            raise Interrupted from None


def _soon(loop: Any, action: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(action)


def check() -> None:
    """Let nobody go on who has been interrupted, whoever swallowed it.

    Raises
    ------
    Interrupted
        It was.
    """
    if was_interrupted() and not _state.is_final:
        raise Interrupted


def ready(stop: Callable[[], object]) -> None:
    """The simulator is up: from now on, SIGINT and SIGTERM make the running event loop call `stop`, and nothing else.

    Raises
    ------
    Interrupted
        It was interrupted before.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    check()
    _state.action = lambda: _soon(loop, stop)
    _state.is_final = _state.has_begun
    if not _state.has_begun and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _state.action())


def leave(status: int) -> NoReturn:
    """End the program with a status; signals have nothing to interrupt any more."""
    if _state.has_begun:
        if was_interrupted() and not _state.is_final:
            leave_interrupted()
        _ignore()
    sys.exit(status)


def leave_interrupted() -> NoReturn:
    """End the program because of Ctrl-C."""
    if _state.has_begun:
        _ignore()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
    _state.say()
    sys.exit(_state.status)


def _ignore() -> None:
    """Nothing is left to be interrupted; ignored signals stay so while Python ends, others would end it in the middle of that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


__all__ = [
    "Interrupted", "begin", "check", "command", "during", "hand_over", "is_own_program", "leave", "leave_interrupted", "ready",
    "run_loop", "terminate_too", "was_interrupted",
]  # fmt: skip
