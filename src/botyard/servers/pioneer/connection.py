"""`Connection`: connects a transport with a sans-I/O Pioneer session: passes bytes,
logs events, drives timers.

The same for TCP and for the null modem; a transport gives it functions to write and to
finish, and calls its methods.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from botyard.control.error_barrier import ErrorBarrier, call_all_suppressing
from botyard.interfaces.pioneer.requests import SOURCE, PioneerRequests
from botyard.protocols.pioneer.batch import Made
from botyard.protocols.pioneer.events import LogLine, SessionClosed, SessionOpened
from botyard.protocols.pioneer.session import Session
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.throttledlog import ThrottledLog
from botyard.sim.journal import acting

LOG_BURST: Final = 500.0
"""Token bucket of a client's log lines: burst."""
LOG_RATE: Final = 200.0
"""Token bucket of a client's log lines: sustained rate, 1/s."""


class RobotLog(logging.LoggerAdapter[logging.Logger]):
    """Puts the robot's name in front of every line.

    The name is an argument of the line, never a part of its format: it may hold ``%``.
    """

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line about the robot."""
        if not self.isEnabledFor(level):
            return
        name = self.extra["robot"] if self.extra else ""
        form = str(msg) if args else str(msg).replace("%", "%%")
        self.logger.log(
            level, f"%s: {form}", name, *args, **{**kwargs, "extra": {"robot": name}}
        )


class _Lines:
    """Log lines that a client causes, rate-limited by a token bucket."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self._log = log
        self._room = TokenBucket(LOG_RATE, LOG_BURST, time.monotonic())
        self._lost = 0

    def log(self, level: int, text: str) -> None:
        """Log a line, unless the rate limit is exceeded."""
        if not self._log.isEnabledFor(level):
            return
        if not self._room.take(time.monotonic()):
            self._lost += 1
            return

        if self._lost:
            self._log.warning(
                "%d lines about this client were left out, there were too many",
                self._lost,
            )
            self._lost = 0

        self._log.log(level, "%s", text)


class Connection:
    """One client of one robot.

    Parameters
    ----------
    session : Session
        The protocol.
    write : callable
        Takes bytes for the client.
    finish : callable
        Called when the session is over and everything is written; once more if an
        exception came out of that.
    log : logging.LoggerAdapter
        Log of the robot.
    desk : PioneerRequests, optional
        Takes what the client asks of the whole simulation; without it such requests are
        refused.
    is_local : bool
        The client is on this machine.
    visits : ThrottledLog, optional
        Tells of clients that come and go, instead of the log: they may do so very
        often.
    """

    def __init__(
        self,
        session: Session,
        write: Callable[[bytes], None],
        finish: Callable[[], None],
        log: logging.LoggerAdapter[logging.Logger],
        desk: PioneerRequests | None = None,
        is_local: bool = True,
        visits: ThrottledLog | None = None,
    ) -> None:
        self.session = session
        self.log = log
        self.is_local = is_local
        self._write = write
        self._finish = finish
        self._desk = desk
        self._finished = False
        self._visits = visits
        self._lines = _Lines(log)
        self._tap = None if desk is None else desk.taps.session(session.port.name)
        self._fence = ErrorBarrier(log, "the session", self._break)
        if desk is not None:
            desk.attach(self)

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self._finished or self.session.is_closed

    # -- what loops call: nothing of the session but through the fence, for on these
    # loops all robots depend

    def receive(self, data: bytes, now: float) -> None:
        """Bytes came from the client."""
        with acting(SOURCE):
            self._fence.run(self._receive, data, now)

    def receive_eof(self) -> None:
        """The client is gone."""
        with acting(SOURCE):
            self._fence.run(self._then_pump, self.session.receive_eof)

    def close(self, reason: str) -> None:
        """End the session from the server's side."""
        with acting(SOURCE):
            self._fence.run(self._then_pump, self.session.close, reason)

    def is_due(self, now: float) -> bool:
        """A step is done; whether the session has a report to send: `report` must
        follow then.
        """
        return self._fence.call(self._ask, self.session.is_due, now, otherwise=False)

    def on_timer(self, now: float) -> bool:
        """The time that `next_timer` named has come; whether the session has a report
        to send again: `report` must follow then.
        """
        return self._fence.call(
            self._ask, self.session.handle_timer, now, otherwise=False
        )

    def report(self, now: float, made: Made | None = None) -> None:
        """Send what is due: what was made for the session, or what it makes itself."""
        if made is None:
            self._fence.run(self._then_pump, self.session.report, now)
        else:
            self._fence.run(
                self._then_pump, self.session.send_report, now, made.sip, made.scans
            )

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Tell the client what became of a map."""
        self._fence.run(
            self._then_pump,
            partial(self.session.map_changed, name, loaded, by_user=by_user),
        )

    def next_timer(self) -> float | None:
        """When to call `on_timer`."""
        return self._fence.call(self.session.next_timer, otherwise=None)

    # -- inside the fence

    def _receive(self, data: bytes, now: float) -> None:
        if self._tap is not None:
            self._tap(True, data)
        self.session.receive_data(data, now)
        self._pump()

    def _ask(self, wants_report: Callable[[float], bool], now: float) -> bool:
        due = wants_report(now)
        if not due:
            self._pump()
        return due

    def _then_pump(self, act: Callable[..., None], *args: object) -> None:
        act(*args)
        self._pump()

    def _pump(self) -> None:
        data = self.session.data_to_send()
        if data:
            if self._tap is not None:
                self._tap(False, data)
            self._write(data)

        while (event := self.session.next_event()) is not None:
            if isinstance(event, LogLine):
                self._lines.log(event.level, event.text)
            elif isinstance(event, SessionOpened):
                self._visited("session open")
            elif isinstance(event, SessionClosed):
                self._visited(f"session over: {event.reason}")
            elif self._desk is not None:
                self._desk.request(self, event)
            else:
                self.log.warning("%s is refused here", type(event).__name__)

        if self.session.is_closed and not self._finished:
            self._end()

    def _visited(self, what: str) -> None:
        if self._visits is None:
            self.log.info("%s", what)
        else:
            self._visits.log(logging.INFO, "%s", what, to=self.log)

    def _end(self) -> None:
        self._finished = True
        if self._desk is not None:
            self._desk.detach(self)
        self._finish()

    def _break(self) -> None:
        """End the session after an exception, and release the robot in any case."""
        self._finished = True
        call_all_suppressing(
            lambda: self.session.close("internal error"),
            self.session.port.release,
            lambda: self._desk.detach(self) if self._desk is not None else None,
            self._finish,
        )
