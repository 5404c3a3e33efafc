"""The one place through which loops call what belongs to one of many: a client's session, a listener, a topic.

One thread serves everybody. So an exception that comes out of what belongs to one must be the end of that one, or of this one call, and
never of the loop: each has a `Fence`, and loops call it through that alone.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

AGAIN: Final = 60.0
"""What fails again and again says so no more often than this, s."""


class Fence:
    """Calls on behalf of one, whose exceptions stay here.

    Parameters
    ----------
    log : Logger or LoggerAdapter
        Told of the first exception with its trace.
    what : str
        Whose code it is, for the log.
    end : callable, optional
        Ends what belongs to it, after the first exception; nothing of it is called any more then. Without this it goes on: later
        exceptions are counted, and told of without traces, one line in `AGAIN` seconds.
    """

    __slots__ = ("_end", "_log", "_next", "_unsaid", "_what", "is_broken")

    def __init__(self, log: Log, what: str, end: Callable[[], object] | None = None) -> None:
        self._log, self._what, self._end = log, what, end
        self._next = 0.0
        self._unsaid = 0
        self.is_broken = False
        """It has been ended by an exception."""

    def call(self, act: Callable[..., T], *args: object, otherwise: T) -> T:
        """What `act` returns; `otherwise` if an exception came out of it now, or had ended it before."""
        if self.is_broken:
            return otherwise
        try:
            return act(*args)
        except Exception as error:
            self._fault(error)
            return otherwise

    def run(self, act: Callable[..., object], *args: object) -> None:
        """`call` without a result."""
        if not self.is_broken:
            try:
                act(*args)
            except Exception as error:
                self._fault(error)

    def _fault(self, error: Exception) -> None:
        if self._end is not None:
            self.is_broken = True
            self._tell("%s: internal error, it is closed", self._what)
            end_all(self._end)
            return
        now = time.monotonic()
        if not self._next:
            self._tell("%s: internal error", self._what)
        elif now < self._next:
            self._unsaid += 1
            return
        else:
            self._log.error("%s: internal error again (%d times more): %r", self._what, self._unsaid + 1, error)
        self._next, self._unsaid = now + AGAIN, 0

    def _tell(self, text: str, *args: object) -> None:
        with contextlib.suppress(Exception):
            self._log.exception(text, *args)


def end_all(*acts: Callable[[], object]) -> None:
    """Call each of them, whatever comes out of the others: for ends, after which nothing is left that could be told."""
    for act in acts:
        with contextlib.suppress(Exception):
            act()


__all__ = ["AGAIN", "Fence", "Log", "end_all"]
