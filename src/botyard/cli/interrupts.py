"""Ctrl-C, at any moment: one line, status 130, and no trace; 0 and no word once the
simulator has said that it is ready.

Imports next to nothing, because it is there before everything else. The program is told
in three ways, one after the other:

* Until a command begins, the process ends at once: there is nothing to tidy up.
* A command gets `Interrupted` raised in the main thread, or, in an event loop
  (`run_loop`), the loop's task is cancelled. Whatever comes of that, an error on the
  way out, or an end that looks like a good one, `main` says that it was an
  interruption. Whoever swallows it, or sits in C code that does not come back, has
  `SHUTDOWN_GRACE_S` seconds: then a thread ends the process.
* A simulator that is ready ends in its own way (`ready`), for good: later signals ask
  for the same again. What keeps its event loop from coming to that is ended: by a
  second signal, and, if it is one and the same call of a controller, after
  `SHUTDOWN_GRACE_S` without one. The controller ends as by a crash, and the simulator
  then in its own way; one that stays all the same ends with the process.

Signals wake a thread through a pipe, so that this holds while the main thread is in C
code, too.
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
"""Exit status after Ctrl-C, as shells have it."""
SHUTDOWN_GRACE_S: Final = 3.0
"""Grace period for an interrupted command to clean up, s."""
REPEAT_WINDOW_S: Final = 0.5
"""Signals within this time, s, count as the first one (a terminal and a supervisor both
send it); a later one ends the process at once.
"""
LINE: Final = "botyard: interrupted\n"


class Interrupted(BaseException):
    """Ctrl-C, in the main thread. No `Exception`, so that nobody takes it for an error
    that can be handled.
    """


class Held(Protocol):
    """A call that the main thread is in, and that may keep the simulator from ending."""

    @property
    def frame(self) -> FrameType:
        """The caller's frame: the same one as long as the call is the same."""

    @property
    def what(self) -> str:
        """What is called, in words."""

    @property
    def error(self) -> BaseException:
        """What ends it, and it alone, when it is raised there."""


class _Interrupts:
    """The state of this process."""

    def __init__(self) -> None:
        self.has_begun = False
        self.is_final = False
        """Signals do what they do for good: the simulator is ready, or another part has
        taken them over.
        """
        self.raises = False
        """`Interrupted` is raised in the main thread, once."""
        self.action: Callable[[], None] = self.end
        """What the first signal does, in any thread; what is settled is done at each.
        """
        self.since: float | None = None
        """When the first one came (`time.monotonic`)."""
        self.status, self.line = STATUS, LINE
        """With what to end after it."""
        self.held: Callable[[FrameType | None], Held | None] = lambda _frame: None
        """Finds the call that a thread is in, by its present frame."""
        self.is_heard = True
        """The event loop of a simulator that is ready has come to ending it; or there
        is none.
        """
        self.is_watched = False
        """A thread sees signals when they come: Python's handler comes late while the
        main thread is in C code.
        """
        self._asked: float | None = None
        """When a simulator that is ready was first asked to end (`time.monotonic`)."""
        self._frame: FrameType | None = None
        """Of the call that the main thread was in then, or that it was told to leave.
        """
        self._look_at: float | None = None
        """When the watching thread looks whether the loop has come to it."""
        self._insists = ""
        """What the main thread is to end: the ``call`` that it is in, or ``all``."""
        self._is_told = False
        """The main thread was told to leave its call."""
        self._is_raised = False
        """`Interrupted` was raised in it."""
        self.pokes = 0
        """Signals that this process has sent to its main thread, and that count as
        none.
        """
        self._lock = threading.RLock()
        self._printing = threading.RLock()
        self._is_printed = False

    def on_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Python's handler, in the main thread."""
        if not (self.is_final and self.is_watched):
            self.note(number)
        if self.is_final:
            self._end_what_holds(frame)
        if self.raises and not self.is_final:
            self.raises = False
            raise Interrupted

    def note(self, number: int) -> None:
        """A signal has come; before all is settled called twice for each, in the main
        thread and in the one that watches.
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
                if number == signal.SIGTERM:  # who sends that wants no word
                    self.status, self.line = 0, ""

        if is_first:
            self.action()
        elif self.since is not None and now - self.since > REPEAT_WINDOW_S:
            self.end()

    def left(self) -> float | None:
        """How long the watching thread waits for the next signal before it looks
        (`look`), s; None: for ever.
        """
        if self.is_final:
            at = None if self.is_heard else self._look_at
        else:
            at = None if self.since is None else self.since + SHUTDOWN_GRACE_S

        return None if at is None else max(0.0, at - time.monotonic())

    def look(self) -> None:
        """In the watching thread: the time is over in which the process should have
        ended, or the event loop should have come to it.
        """
        if not self.is_final:
            self.end()
        self._look_at = None
        held = self._held()
        if held is None or held.frame is not self._frame:
            return
        if self._is_told:
            self.line = (
                f"botyard: {held.what} does not return: the process ends "
                "at once, and what it had open is not complete\n"
            )
            self.end()

        self._insist("call")

    def _held(self) -> Held | None:
        """The call that keeps the main thread from its event loop."""
        return (
            None
            if self.is_heard
            else self.held(
                sys._current_frames().get(threading.main_thread().ident or 0)
            )
        )

    def _remember(self, held: Held | None) -> None:
        self._frame = None if held is None else held.frame

    def _insist(self, on: str) -> None:
        """Let the main thread end what holds it up."""
        self._insists, self._is_told = on, True
        self._remember(self._held())
        if self.is_watched:
            self._look_at = time.monotonic() + SHUTDOWN_GRACE_S
            self.pokes += 1
            signal.pthread_kill(
                threading.main_thread().ident or 0, signal.SIGINT
            )  # that also ends what waits

    def _end_what_holds(self, frame: FrameType | None) -> None:
        """In the main thread, between two instructions of Python: raise there what ends
        it, if that is wanted.
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
            text = (
                "\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else ""
            )  # a line of progress goes, the cursor comes back
            os.write(2, (text + self.line).encode())


_state: Final = _Interrupts()


def begin() -> None:
    """Take Ctrl-C over, before anything else is done. A signal that whoever has started
    us had blocked comes now.
    """
    _state.has_begun = True
    if os.name == "posix":
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        threading.Thread(
            target=_watch, args=(read,), name="signals", daemon=True
        ).start()
        _state.is_watched = True

    signal.signal(signal.SIGINT, _state.on_signal)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(
            signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        )


def _watch(read: int) -> None:
    """Thread: act on signals also while the main thread does not come to it, and see to
    the time limit.
    """
    import select

    if hasattr(
        signal, "pthread_sigmask"
    ):  # the main thread is to get them: only there they end what waits
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    while True:
        if not select.select([read], [], [], _state.left())[0]:
            _state.look()
            continue

        for number in os.read(read, 64):
            if _state.pokes:
                _state.pokes -= 1
            elif signal.getsignal(number) == _state.on_signal:
                _state.note(number)


def command() -> None:
    """A command begins: from now on it is told, and may tidy up."""
    if not _state.has_begun:
        return
    before = sys.unraisablehook

    def unraisable(found: Any) -> None:
        if not isinstance(
            found.exc_value, Interrupted
        ):  # raised where Python cannot hand it on; the time limit counts
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
    """Whether this process is the command line's own, and no program that calls
    `botyard.cli.main.main`.
    """
    return _state.has_begun


def was_interrupted() -> bool:
    """Whether a signal has come to end the program before the simulator was ready."""
    return _state.since is not None


@contextlib.contextmanager
def during(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` at the first signal instead, in any thread, until the block is
    left, or all is settled.

    `action` may not raise. Where `begin` was not called, Ctrl-C is taken over for so
    long.
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
    with contextlib.closing(
        work
    ):  # also if Ctrl-C comes during the import: no warning that it was never awaited
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


def ready(
    stop: Callable[[], object],
    held: Callable[[FrameType | None], Held | None] = lambda _frame: None,
) -> None:
    """The simulator is up: from now on, SIGINT and SIGTERM make the running event loop
    call `stop`, and nothing else.

    Parameters
    ----------
    stop : callable
        Ends the simulator.
    held : callable
        Finds the call of a user's code that a thread is in, by its present frame. If it
        keeps the loop from ending, it is ended.

    Raises
    ------
    Interrupted
        It was interrupted before.
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


def leave(status: int) -> NoReturn:
    """End the program with a status; signals have nothing to interrupt any more."""
    _state.is_heard = True
    if _state.has_begun:
        if was_interrupted() and not _state.is_final:
            leave_interrupted()
        _ignore()

    sys.exit(status)


def leave_interrupted() -> NoReturn:
    """End the program because of Ctrl-C."""
    _state.is_heard = True
    if _state.has_begun:
        _ignore()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    _state.say()
    sys.exit(_state.status)


def _ignore() -> None:
    """Nothing is left to be interrupted; ignored signals stay so while Python ends,
    others would end it in the middle of that.
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
    "hand_over",
    "is_own_program",
    "leave",
    "leave_interrupted",
    "ready",
    "run_loop",
    "terminate_too",
    "was_interrupted",
]
