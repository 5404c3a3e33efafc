"""`ErrorBarrier`: barrier for exceptions between a loop and the code of a client.

One thread serves all clients. An exception in the code of a client, listener or topic
may end that client or that call, but never the loop. So each client has an
`ErrorBarrier`, and loops call its code only through it (bulkhead pattern).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

REPEAT_LOG_INTERVAL_S: Final = 60.0
"""Minimum time between two log lines about errors of one barrier, s."""


class ErrorBarrier:
    """Caller of one client's code, which catches and logs the exceptions of that code.

    Parameters
    ----------
    log : Logger or LoggerAdapter
        Gets the first exception with its traceback.
    what : str
        Name of the code, for the log.
    end : callable, optional
        Closes the client after its first exception; its code is then called no more.
        Without `end`, calls continue: later exceptions are counted and logged without
        traceback, at most one line in `REPEAT_LOG_INTERVAL_S` seconds.
    """

    __slots__ = ("_end", "_log", "_next", "_suppressed", "_what", "is_broken")

    def __init__(
        self, log: Log, what: str, end: Callable[[], object] | None = None
    ) -> None:
        self._log, self._what, self._end = log, what, end
        self._next = 0.0
        self._suppressed = 0
        self.is_broken = False
        """Whether an exception has closed the client."""

    def call(self, act: Callable[..., T], *args: object, otherwise: T) -> T:
        """Call `act`, and return its result.

        Parameters
        ----------
        act : callable
            Code of the client.
        *args : object
            Its arguments.
        otherwise : object
            Result if `act` raises, or if the client was closed before.
        """
        if self.is_broken:
            return otherwise
        try:
            return act(*args)
        except Exception as error:
            self.fault(error)
            return otherwise

    def run(self, act: Callable[..., object], *args: object) -> None:
        """Call `act`, and ignore its return value.

        Parameters
        ----------
        act : callable
            Code of the client. It is not called after the client was closed.
        *args : object
            Its arguments.
        """
        if not self.is_broken:
            try:
                act(*args)
            except Exception as error:
                self.fault(error)

    def fault(self, error: Exception) -> None:
        """Handle an exception of the client's code that the caller has caught.

        Loops use this method where one more function call for each client would cost too much time.

        Parameters
        ----------
        error : Exception
            The exception; call this in its ``except`` block, as the log needs its
            traceback.
        """
        if self._end is not None:
            self.is_broken = True
            self._tell("%s: internal error; its connection is closed", self._what)
            # Closing a client whose code is broken may raise again.
            call_all_suppressing(self._end)
            return

        now = time.monotonic()
        # The first error has its traceback.
        if not self._next:
            self._tell("%s: internal error", self._what)
        elif now < self._next:
            self._suppressed += 1
            return
        else:
            self._log.error(
                "%s: internal error again (%d times more): %r",
                self._what,
                self._suppressed + 1,
                error,
            )

        self._next, self._suppressed = now + REPEAT_LOG_INTERVAL_S, 0

    def _tell(self, text: str, *args: object) -> None:
        # A failing log handler must not break the barrier.
        with contextlib.suppress(Exception):
            self._log.exception(text, *args)


def call_all_suppressing(*acts: Callable[[], object]) -> None:
    """Call each of the functions, and ignore its exceptions: for clean-up."""
    for act in acts:
        with contextlib.suppress(Exception):
            act()


__all__ = ["REPEAT_LOG_INTERVAL_S", "ErrorBarrier", "Log", "call_all_suppressing"]
