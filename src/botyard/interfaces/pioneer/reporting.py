"""Serves all sessions after a step: those that have a report due get it from one batch, and each is written to once."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from botyard.control.fence import Fence
from botyard.protocols.pioneer.batch import Batch, Made
from botyard.protocols.pioneer.session import REPEAT_PERIOD, Session

SHORTEST_TIMER: Final = REPEAT_PERIOD
"""Whatever happens to a session, it sets no timer that ends earlier than this from then, s; so nobody need look in between."""

log = logging.getLogger("botyard.pioneer")


class Connection(Protocol):
    """A client's connection (`botyard.servers.connection`)."""

    @property
    def session(self) -> Session:
        """Its session."""
        ...

    def is_due(self, now: float) -> bool:
        """A step is done; whether the session has a report to send: `report` must follow then."""
        ...

    def on_timer(self, now: float) -> bool:
        """The time that `next_timer` named has come; whether there is a report to send again: `report` must follow then."""
        ...

    def report(self, now: float, made: Made | None = None) -> None:
        """Send what is due: what was made for the session, or what it makes itself."""
        ...

    def next_timer(self) -> float | None:
        """When to call `on_timer`."""
        ...


class Reporter:
    """All connections of a simulation; a `Listener` of the hub."""

    def __init__(self) -> None:
        self._connections: list[Connection] = []
        self._batch = Batch()
        self._fence = Fence(log, "reports are made one by one")
        self.wake = 0.0
        """When `poll` will have something to do, at the earliest, s."""

    def attach(self, connection: Connection) -> None:
        """Serve a connection from now on."""
        self._connections.append(connection)

    def detach(self, connection: Connection) -> None:
        """Unregister it."""
        if connection in self._connections:
            self._connections.remove(connection)

    def on_snapshot(self, now: float) -> None:
        """A step is done."""
        self._report([c for c in tuple(self._connections) if c.is_due(now)], now)

    def _report(self, due: list[Connection], now: float) -> None:
        if not due:
            return
        made = self._fence.call(self._batch.make, [c.session for c in due], otherwise=None)
        if made is None:  # each session then makes its own report
            self._batch, made = Batch(), [None] * len(due)
        for connection, part in zip(due, made, strict=True):
            connection.report(now, part)

    def poll(self, now: float) -> None:
        """Wall time has passed: call those whose time has come. One clock for all costs less than a timer for each."""
        if now < self.wake:
            return
        self.wake = now + SHORTEST_TIMER
        due = []
        for connection in tuple(self._connections):
            when = connection.next_timer()
            if when is None:
                continue
            if when > now:
                self.wake = min(self.wake, when)
            elif connection.on_timer(now):
                due.append(connection)
        self._report(due, now)
