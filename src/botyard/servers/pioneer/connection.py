"""`Connection`: links a transport with a sans-I/O Pioneer session.

It passes bytes, logs events and drives timers. TCP and the null modem use the same
class: a transport supplies functions to write and to finish, and calls the methods.
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
    """Logger that prefixes each line with the robot's name.

    The name is an argument of the line, never a part of its format, because it may
    contain ``%``.
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
                "%d log lines about this client were dropped (rate limit)",
                self._lost,
            )
            self._lost = 0

        self._log.log(level, "%s", text)


class Connection:
    """One client of one robot.

    Parameters
    ----------
    session : Session
        State machine of the protocol.
    write : callable
        Sends bytes to the client.
    finish : callable
        Called when the session is over and all its bytes are written. If `finish`
        raises, it is called once more.
    log : logging.LoggerAdapter
        Log of the robot.
    desk : PioneerRequests, optional
        Handler of requests that concern the whole simulation; without it, such requests
        are refused.
    is_local : bool
        Whether the client runs on this machine.
    visits : ThrottledLog, optional
        Log for clients that connect and disconnect, used instead of `log` because these
        events may be very frequent.
    is_idle : callable
        Returns whether no written bytes wait for the client to read.
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
        is_idle: Callable[[], bool] = lambda: True,
    ) -> None:
        self.session = session
        self.log = log
        self.is_local = is_local
        self._write = write
        self._finish = finish
        self._desk = desk
        self._finished = False
        self._visits = visits
        self._is_idle = is_idle
        self._lines = _Lines(log)
        self._as_client = acting(SOURCE)
        self._tap = None if desk is None else desk.taps.session(session.port.name)
        self._barrier = ErrorBarrier(log, "the session", self._break)
        if desk is not None:
            desk.attach(self)

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self._finished or self.session.is_closed

    # -- Methods for the event loop. All of them call the session through the error
    # barrier: all robots depend on this loop, so no exception may escape.

    def receive_data(self, data: bytes, now: float) -> None:
        """Process bytes from the client."""
        with self._as_client:
            self._barrier.run(self._receive, data, now)

    def receive_eof(self) -> None:
        """Handle the end of the client's stream."""
        with acting(SOURCE):
            self._barrier.run(self._then_pump, self.session.receive_eof)

    def close(self, reason: str) -> None:
        """End the session from the server's side."""
        with acting(SOURCE):
            self._barrier.run(self._then_pump, self.session.close, reason)

    @property
    def is_idle(self) -> bool:
        """Whether no written bytes wait for the client to read."""
        return self._is_idle()

    def attend(self) -> None:
        """Let the session do its work after a step."""
        self._barrier.run(self._then_pump, self.session.attend)

    def on_timer(self, now: float) -> bool:
        """Handle the timer that `next_timer` announced.

        Return whether the session has a report to send again; if it has, call `report`.
        """
        return self._barrier.call(
            self._ask, self.session.handle_timer, now, otherwise=False
        )

    def report(self, now: float, made: Made | None = None) -> None:
        """Send the report that is due.

        Parameters
        ----------
        now : float
            Wall time, s.
        made : Made, optional
            Report that was encoded for several sessions at once; by default the session
            encodes its own.
        """
        if made is None:
            self._barrier.run(self._then_pump, self.session.report, now)
        else:
            self._barrier.run(
                self._then_pump, self.session.send_report, now, made.sip, made.scans
            )

    def send_rest(self, data: bytes) -> None:
        """Send the part of a report that the socket did not take."""
        self._barrier.run(self._write, data)

    def count_pieces(self, count: int) -> None:
        """Count reports that were sent without the connection."""
        if self._tap is not None:
            self._tap.order += count

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Report the result of loading a map to the client."""
        self._barrier.run(
            self._then_pump,
            partial(self.session.map_changed, name, loaded, by_user=by_user),
        )

    def next_timer(self) -> float | None:
        """Return the wall time at which to call `on_timer`, s; None without a timer."""
        return self._barrier.call(self.session.next_timer, otherwise=None)

    # -- called through the error barrier

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

        # Handle events after the write: a final packet has to precede the close of the
        # transport.
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
