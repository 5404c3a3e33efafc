"""The one place through which loops call what belongs to one of many: a client's session, a listener, a topic.

One thread serves everybody. So an exception that comes out of what belongs to one must be the end of that one, or of this one call, and
never of the loop: each has a `Fence`, and loops call it through that alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

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


def watch_over(loop: asyncio.AbstractEventLoop, log: Log) -> None:
    """Let the loop tell `log` of exceptions that came out of callbacks and tasks: at most one a second.

    What the system refused, such as one more open file, is told without a trace.
    """
    quiet = Seldom(log)

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, text = context.get("exception"), str(context.get("message"))
        if isinstance(error, OSError):
            quiet.log(logging.WARNING, "%s: %s", text, error.strerror or error)
        else:
            quiet.log(logging.ERROR, "internal error: %s", text, exc_info=error)

    loop.set_exception_handler(handle)


class Seldom:
    """Lines of one kind, of which there may be very many: at most one a second, which says how many others there were.

    Parameters
    ----------
    log : Logger or LoggerAdapter
        Where they go.
    burst : int
        So many may come at once.
    """

    PERIOD: Final = 1.0
    """Between two lines, s."""

    def __init__(self, log: Log, burst: int = 1) -> None:
        self._log = log
        self._burst = burst
        self._room, self._since = float(burst), 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unsaid = 0
        self._last: tuple[Log, int, str, tuple[object, ...]] = (log, 0, "", ())

    def log(
        self, level: int, text: str, *args: object, to: Log | None = None, exc_info: BaseException | None = None
    ) -> None:
        """Log a line now, or count it; `to`: another log for this one. Called in an event loop."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._room = min(float(self._burst), self._room + (now - self._since) / self.PERIOD)
        self._since = now
        if self._timer is None and self._room >= 1.0:
            self._room -= 1.0
            (to or self._log).log(level, text, *args, exc_info=exc_info)
            return
        self._unsaid += 1
        self._last = to or self._log, level, text, args
        if self._timer is None:
            self._timer = loop.call_later(self.PERIOD * (1.0 - self._room), self._say)

    def _say(self) -> None:
        """Tell of those that were counted: the last one, and how many there were beside it."""
        self._timer = None
        (log, level, text, args), others = self._last, self._unsaid - 1
        self._unsaid = 0
        self._room, self._since = 0.0, asyncio.get_running_loop().time()
        more = f" (and {others} more like this)" if others else ""
        log.log(level, f"{text}%s", *args, more)


__all__ = ["AGAIN", "Fence", "Seldom", "end_all", "watch_over"]
