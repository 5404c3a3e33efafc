"""`ThrottledLog`: a rate-limited log for frequent lines and event loops' errors."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any, Final

from botyard.control.error_barrier import Log


def watch_over(loop: asyncio.AbstractEventLoop, log: Log) -> None:
    """Log exceptions from callbacks and tasks of an event loop, at most one per second.

    Errors of the system, such as too many open files, are logged without a traceback.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Event loop, whose exception handler is replaced.
    log : Logger or LoggerAdapter
        Log that gets the lines.
    """
    quiet = ThrottledLog(log)

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, text = context.get("exception"), str(context.get("message"))
        if isinstance(error, OSError):
            quiet.log(logging.WARNING, "%s: %s", text, error.strerror or error)
        else:
            quiet.log(logging.ERROR, "internal error: %s", text, exc_info=error)

    loop.set_exception_handler(handle)


class ThrottledLog:
    """Rate-limited log lines of one kind.

    After the burst it logs at most one line per second, with the number of suppressed
    lines.

    Parameters
    ----------
    log : Logger or LoggerAdapter
        Log that gets the lines.
    burst : int
        Number of lines that are logged at once before the rate limit of one line per
        `PERIOD` applies.
    """

    PERIOD: Final = 1.0
    """Time between two lines, s."""

    def __init__(self, log: Log, burst: int = 1) -> None:
        self._log = log
        self._burst = burst
        self._room, self._since = float(burst), 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._suppressed = 0
        self._last: tuple[Log, int, str, tuple[object, ...]] = (log, 0, "", ())

    def log(
        self,
        level: int,
        text: str,
        *args: object,
        to: Log | None = None,
        exc_info: BaseException | None = None,
    ) -> None:
        """Log a line now, or count it as suppressed.

        Call this in an event loop, which logs the number of suppressed lines later.

        Parameters
        ----------
        level : int
            Level as in `logging`.
        text : str
            Format with ``%`` for `args`.
        *args : object
            Values for the format.
        to : Logger or LoggerAdapter, optional
            Log for this line, instead of the object's own.
        exc_info : BaseException, optional
            Error whose traceback is logged.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._room = min(
            float(self._burst), self._room + (now - self._since) / self.PERIOD
        )
        self._since = now
        if self._timer is None and self._room >= 1.0:
            self._room -= 1.0
            (to or self._log).log(level, text, *args, exc_info=exc_info)
            return

        self._suppressed += 1
        self._last = to or self._log, level, text, args
        if self._timer is None:
            self._timer = loop.call_later(
                self.PERIOD * (1.0 - self._room), self._log_suppressed
            )

    def _log_suppressed(self) -> None:
        """Log the last suppressed line, with the number of earlier suppressed lines."""
        self._timer = None
        (log, level, text, args), others = self._last, self._suppressed - 1
        self._suppressed = 0
        self._room, self._since = 0.0, asyncio.get_running_loop().time()
        more = f" (and {others} more like this)" if others else ""
        log.log(level, f"{text}%s", *args, more)


class ThrottledLogAdapter(logging.LoggerAdapter[logging.Logger]):
    """Rate-limited logger of internal errors that clients can cause.

    The first line includes the traceback; then at most one line per second follows.
    """

    def __init__(self, log: logging.Logger) -> None:
        super().__init__(log, {})
        self._throttled_log = ThrottledLog(log)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line, or count it as suppressed."""
        error = sys.exc_info()[1] if kwargs.get("exc_info") else None
        self._throttled_log.log(level, str(msg), *args, exc_info=error)


__all__ = ["ThrottledLog", "ThrottledLogAdapter", "watch_over"]
