"""`Connection`: links a transport with a sans-I/O Pioneer session.

A connection passes bytes, logs events and drives timers. TCP and the null modem use the
same class: a transport supplies functions to write and to finish, and calls the
methods.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from botyard.control.census import ClientFacts
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
        """Log a line about the robot.

        Parameters
        ----------
        level : int
            Level as in `logging`.
        msg : object
            Format with ``%`` for `args`. Without `args` it is text, in which ``%`` has
            no meaning.
        *args : object
            Values for the format.
        **kwargs
            Arguments of `logging.Logger.log`; ``extra`` is replaced by the robot's
            name.
        """
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
        """Log a line, unless the rate limit is exceeded.

        Before the next line within the limit, the number of dropped lines is logged.

        Parameters
        ----------
        level : int
            Level as in `logging`.
        text : str
            Text of the line, in which ``%`` has no meaning.
        """
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
        raises, it is called a second time.
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
        self.facts: Callable[[], ClientFacts] | None = None
        """Function that describes the client to operators; the transport sets it."""
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
        """Process bytes from the client.

        Errors of the session do not reach the caller: they are logged and may end the
        session.

        Parameters
        ----------
        data : bytes
            Part of the stream; packets may be split anywhere.
        now : float
            Wall time, s.
        """
        with self._as_client:
            self._barrier.run(self._receive, data, now)

    def receive_eof(self) -> None:
        """Handle the end of the client's stream."""
        with acting(SOURCE):
            self._barrier.run(self._then_pump, self.session.receive_eof)

    def close(self, reason: str) -> None:
        """End the session from the server's side.

        Parameters
        ----------
        reason : str
            Reason for the log.
        """
        with acting(SOURCE):
            self._barrier.run(self._then_pump, self.session.close, reason)

    @property
    def is_idle(self) -> bool:
        """Whether the client has read all written bytes."""
        return self._is_idle()

    def attend(self) -> None:
        """Let the session do its work after a step."""
        self._barrier.run(self._then_pump, self.session.attend)

    def on_timer(self, now: float) -> bool:
        """Handle the timer that `next_timer` announced.

        Parameters
        ----------
        now : float
            Wall time, s.

        Returns
        -------
        bool
            Whether a report is due; if so, call `report`.
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
        """Send the rest of a report of which the socket accepted only a part.

        Parameters
        ----------
        data : bytes
            Rest of the report; the transport sends it before any later report.
        """
        self._barrier.run(self._write, data)

    def count_pieces(self, count: int) -> None:
        """Count reads and writes of the client's socket that bypassed the connection.

        Packet captures number all reads and writes (pieces) of a session in their order.

        Parameters
        ----------
        count : int
            Number of pieces since the last call.
        """
        if self._tap is not None:
            self._tap.order += count

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Report the result of loading a map to the client.

        Parameters
        ----------
        name : str
            File name as it was requested.
        loaded : int
            1 loaded, 0 not loaded again, 2 could not be loaded (pioneer-protocol §8).
        by_user : bool
            Whether a user changed the map on the page; False: a client did.
        """
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
                self._visited(f"the session ends: {event.reason}")
            elif self._desk is not None:
                self._desk.request(self, event)
            else:
                self.log.warning(
                    "the command %s is refused on this port", type(event).__name__
                )

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
