"""`Reporter`: sends the due reports of all Pioneer sessions after a step.

The reports are encoded in one batch, which costs less than one at a time.
"""

from __future__ import annotations

import logging
import math
from typing import Final, Protocol

from botyard.control.error_barrier import ErrorBarrier
from botyard.protocols.pioneer.batch import Batch, Made
from botyard.protocols.pioneer.session import REPEAT_PERIOD, Session

MIN_TIMER_S: Final = REPEAT_PERIOD
"""Shortest timer that a session sets, s; timers need no more frequent polling."""

log = logging.getLogger("botyard.pioneer")


class Connection(Protocol):
    """Connection of a client (`botyard.servers.pioneer.connection`)."""

    @property
    def session(self) -> Session:
        """Protocol session of the connection."""
        ...

    def is_due(self, now: float) -> bool:
        """Return whether a report is due after a step; `report` must then follow."""
        ...

    def on_timer(self, now: float) -> bool:
        """Return whether a report must be sent again; `report` must then follow.

        Called at the time of `next_timer`.
        """
        ...

    def report(self, now: float, made: Made | None = None) -> None:
        """Send the due report.

        `made` is the report that the batch encoded; if it is None, the session encodes
        it.
        """
        ...

    def next_timer(self) -> float | None:
        """Return the time at which `on_timer` must be called, s; None for never."""
        ...


class Reporter:
    """Sends the reports of all connections of a simulation; a `Listener` of the hub."""

    def __init__(self) -> None:
        self._connections: list[Connection] = []
        self._batch = Batch()
        self._barrier = ErrorBarrier(log, "making reports in a batch")
        self.wake = math.inf
        """Earliest time at which `poll` has something to do, s."""

    def attach(self, connection: Connection) -> None:
        """Register a connection."""
        self.wake = 0.0
        self._connections.append(connection)

    def detach(self, connection: Connection) -> None:
        """Unregister a connection."""
        if connection in self._connections:
            self._connections.remove(connection)

    @property
    def is_idle(self) -> bool:
        """Whether steps are not reported to any connection."""
        return not self._connections

    def on_snapshot(self, now: float) -> None:
        """Send the due reports after a step."""
        self._report([c for c in tuple(self._connections) if c.is_due(now)], now)

    def _report(self, due: list[Connection], now: float) -> None:
        if not due:
            return
        made = self._barrier.call(
            self._batch.make, [c.session for c in due], otherwise=None
        )
        # The batch failed: each session makes its own report, and a new batch replaces
        # the broken state.
        if made is None:
            self._batch, made = Batch(), [None] * len(due)
        for connection, part in zip(due, made, strict=True):
            connection.report(now, part)

    def poll(self, now: float) -> None:
        """Handle expired timers.

        One poll for all connections costs less than an event-loop timer for each.
        """
        if now < self.wake:
            return
        self.wake = now + MIN_TIMER_S if self._connections else math.inf
        due = []
        # A copy, because a connection may detach itself in its timer.
        for connection in tuple(self._connections):
            when = connection.next_timer()
            if when is None:
                continue
            if when > now:
                self.wake = min(self.wake, when)
            elif connection.on_timer(now):
                due.append(connection)

        self._report(due, now)
