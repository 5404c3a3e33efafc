"""Calls of a Zenoh session in a thread of their own.

Zenoh delivers declarations and answers reliably: while the buffers to a peer are full,
the call waits. Without a thread, a peer that does not read would block the simulator until Zenoh
closes the link to it, after 5 s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

MAX_ANSWERS: Final = 64 << 20
"""Maximum length of all answers that wait for the thread, bytes; one may be longer."""


class SessionThread:
    """Thread that makes calls of a session in the order in which they were queued.

    Parameters
    ----------
    failed : callable
        Called in the thread with the error of a call.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._calls: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]] | None]
        self._calls = SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        """Length of the answers that wait, bytes."""
        # A daemon: the end of the program does not wait for a peer.
        self._thread = threading.Thread(
            target=self._run, name="zenoh calls", daemon=True
        )
        self._thread.start()

    def do(self, call: Callable[..., object], *args: Any) -> None:
        """Queue a call.

        Parameters
        ----------
        call : callable
            Function of the session; its result is not used.
        *args : object
            Its arguments.
        """
        self._calls.put((call, args))

    def answer(self, size: int, call: Callable[..., object], *args: Any) -> bool:
        """Queue a call that sends an answer, unless too many bytes wait already.

        Parameters
        ----------
        size : int
            Length of the answer, bytes.
        call : callable
            Function of the session; its result is not used.
        *args : object
            Its arguments.

        Returns
        -------
        bool
            Whether the call was queued.
        """
        with self._lock:
            if self._waiting and self._waiting + size > MAX_ANSWERS:
                return False
            self._waiting += size
        self._calls.put((self._send, (size, call, args)))
        return True

    def _send(
        self, size: int, call: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        try:
            call(*args)
        finally:
            with self._lock:
                self._waiting -= size

    def end(self, last: Callable[[], object]) -> None:
        """End the thread after the queued calls.

        Parameters
        ----------
        last : callable
            Last call of the thread.
        """
        self.do(last)
        self._calls.put(None)

    def _run(self) -> None:
        while (entry := self._calls.get()) is not None:
            call, args = entry
            try:
                call(*args)
            except Exception as error:
                self._failed(error)


class Declared:
    """Entity of a session, which the session's thread declares and undeclares.

    Parameters
    ----------
    thread : SessionThread
        The thread.
    declare : callable
        Declares the entity and returns it.

    Attributes
    ----------
    made : object or None
        The entity; None before the thread has declared it.
    """

    def __init__(self, thread: SessionThread, declare: Callable[[], Any]) -> None:
        self._thread = thread
        self.made: Any = None
        thread.do(self._declare, declare)

    def _declare(self, declare: Callable[[], Any]) -> None:
        self.made = declare()

    def undeclare(self) -> None:
        """Undeclare the entity."""
        self._thread.do(self._undeclare)

    def _undeclare(self) -> None:
        made, self.made = self.made, None
        # The declaration may have failed.
        if made is not None:
            made.undeclare()


__all__ = ["MAX_ANSWERS", "Declared", "SessionThread"]
