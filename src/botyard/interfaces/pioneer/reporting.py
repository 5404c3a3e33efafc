"""`Reporter`: sends the due reports of all Pioneer sessions after a step.

One kernel finds the sessions that are due, one makes their reports, and one call hands
them to all sockets. The connection itself does all that needs more: other packets,
recordings, a peer that reads slowly.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.control.error_barrier import ErrorBarrier
from botyard.interfaces.pioneer.taps import PacketTaps
from botyard.model.robotport import RobotPort
from botyard.protocols.pioneer.batch import Batch, Made
from botyard.protocols.pioneer.kernels.schedule import EXTRA, REPEAT_PERIOD, SENT
from botyard.protocols.pioneer.roster import Roster
from botyard.protocols.pioneer.session import Session, repeat_after

I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]

MIN_TIMER_S: Final = REPEAT_PERIOD
"""Shortest timer that a session sets, s; timers need no more frequent polling."""
MIN_TOGETHER: Final = 4
"""Number of reports from which sending them together is faster."""

log = logging.getLogger("botyard.pioneer")

Send = Callable[[I8, NDArray[np.uint8], I8, I8], I8]
"""Function that sends reports together.

It takes sockets, a buffer, and offsets and sizes of reports in it. It returns the
number of bytes that each socket took; a negative one is an error.
"""


class Connection(Protocol):
    """Connection of a client (`botyard.servers.pioneer.connection`)."""

    @property
    def session(self) -> Session:
        """Protocol session of the connection."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no written bytes wait for the client to read."""
        ...

    def attend(self) -> None:
        """Let the session do its work after a step."""
        ...

    def on_timer(self, now: float) -> bool:
        """Return whether a report must be sent again; `report` must then follow.

        Called at the time of the session's next timer.
        """
        ...

    def report(self, now: float, made: Made | None = None) -> None:
        """Send the due report.

        `made` is the report that the batch encoded; if it is None, the session encodes
        it.
        """
        ...

    def send_rest(self, data: bytes) -> None:
        """Send the part of a report that the socket did not take."""
        ...

    def count_pieces(self, count: int) -> None:
        """Count reports that were sent without the connection."""
        ...


class Reporter:
    """Sends the reports of all connections of a simulation; a `Listener` of the hub.

    Parameters
    ----------
    send : callable, optional
        Sends reports together; without it, each connection sends its own.
    """

    def __init__(self, send: Send | None = None) -> None:
        self._send = send
        self._roster: Roster[Session] = Roster()
        self._connections: list[Connection | None] = []
        self._batch = Batch(self._roster)
        self._barrier = ErrorBarrier(log, "making reports in a batch")
        self._sockets: I8 = np.full(self._roster.capacity, -1)
        """Socket of each connection for reports that are sent together; -1: none."""
        self._pieces: I8 = np.zeros(self._roster.capacity, np.int64)
        """Number of reports of each connection that taps have not counted."""
        self._held: dict[int, int] = {}
        """Sockets of connections whose written bytes wait, by row."""
        self._taps: PacketTaps | None = None
        self.wake = math.inf
        """Earliest time at which `poll` has something to do, s."""

    @property
    def connections(self) -> list[Connection]:
        """All connections."""
        return [c for c in self._connections if c is not None]

    def tap(self, taps: PacketTaps) -> None:
        """Pass all bytes through the connections while `taps` record them."""
        self._taps = taps
        taps.before = self._count_pieces

    def attach(self, connection: Connection) -> None:
        """Register a connection."""
        self.wake = 0.0
        connection.session.enter(self._roster)
        row = connection.session.row
        if row == len(self._connections):
            self._connections.append(connection)
        else:
            self._connections[row] = connection
        if row >= len(self._sockets):
            more = self._roster.capacity - len(self._sockets)
            self._sockets = np.concatenate([self._sockets, np.full(more, -1)])
            self._pieces = np.concatenate([self._pieces, np.zeros(more, np.int64)])
        self._pieces[row] = 0

    def detach(self, connection: Connection) -> None:
        """Unregister a connection."""
        if self._has(connection):
            self.shut(connection)
            self._connections[connection.session.row] = None
            connection.session.leave()

    def _has(self, connection: Connection) -> bool:
        session = connection.session
        return (
            session.roster is self._roster
            and self._connections[session.row] is connection
        )

    # -- sockets

    def open(self, connection: Connection, socket: int) -> None:
        """Send reports of a connection straight to its socket from now on.

        `shut` must be called before the socket is closed.
        """
        if self._send is not None and self._has(connection):
            self._sockets[connection.session.row] = socket

    def hold(self, connection: Connection) -> None:
        """Leave reports to a connection until its written bytes are sent."""
        row = connection.session.row
        if self._has(connection) and self._sockets[row] >= 0:
            self._held[row] = int(self._sockets[row])
            self._sockets[row] = -1

    def shut(self, connection: Connection) -> None:
        """Send nothing more to the socket of a connection."""
        if self._has(connection):
            self._sockets[connection.session.row] = -1
            self._held.pop(connection.session.row, None)

    def _release(self) -> None:
        """Serve the sockets again whose bytes are sent."""
        for row, socket in tuple(self._held.items()):
            connection = self._connections[row]
            if connection is not None and connection.is_idle:
                self._sockets[row] = socket
                del self._held[row]

    # -- reports

    @property
    def is_idle(self) -> bool:
        """Whether steps are not reported to any connection."""
        return not len(self._roster)

    def on_snapshot(self, now: float) -> None:
        """Send the due reports after a step."""
        port = self._any_port()
        if port is None:
            return
        after = repeat_after(port.timing.real)
        due, asking = self._roster.due(port.time_us, now, after)
        for row in asking.tolist():
            connection = self._connections[row]
            if connection is not None:
                connection.attend()

        self._report(due, now)

    def poll(self, now: float) -> None:
        """Handle expired timers.

        One poll for all connections costs less than an event-loop timer for each.
        """
        if now < self.wake:
            return
        due, asking, wake = self._roster.expired(now)
        self.wake = min(now + MIN_TIMER_S, wake) if len(self._roster) else math.inf
        more = []
        for row in asking.tolist():
            connection = self._connections[row]
            if connection is not None and connection.on_timer(now):
                more.append(row)

        self._report(np.concatenate([due, np.array(more, np.int64)]), now)

    def _any_port(self) -> RobotPort | None:
        for session in self._roster.sessions:
            if session is not None:
                return session.port

        return None

    def _report(self, due: I8, now: float) -> None:
        if not len(due):
            return
        made = self._barrier.call(self._batch.make, due, otherwise=None)
        # The batch failed: each session makes its own report, and a new batch replaces
        # the broken state.
        if made is None:
            self._batch, made = Batch(self._roster), np.zeros(len(due), np.bool_)
        if self._send is not None and len(due) >= MIN_TOGETHER:
            left = ~self._send_together(due, made, now)
            due, made = due[left], made[left]
        for row, is_made in zip(due.tolist(), made.tolist(), strict=True):
            connection = self._connections[row]
            if connection is not None:
                connection.report(now, self._batch.made(row) if is_made else None)

    def _send_together(self, due: I8, made: B1, now: float) -> B1:
        """Send the made reports for which nothing else is needed; return which."""
        assert self._send is not None
        if self._held:
            self._release()
        if self._taps is not None and self._taps.is_recording:
            return np.zeros(len(due), np.bool_)
        is_plain = (self._roster.flags[due] & EXTRA) == 0
        sent: B1 = made & is_plain & (self._sockets[due] >= 0)
        rows = due[sent]
        at, sizes = self._batch.where(rows)
        buffer = self._batch.buffer
        taken = self._send(self._sockets[rows], buffer, at, sizes)
        self._roster.walls[rows, SENT] = now
        self._pieces[rows] += 1
        for n in np.flatnonzero(taken < sizes).tolist():
            connection = self._connections[rows[n]]
            assert connection is not None
            # The connection meets the same error, or lets the bytes wait.
            first = int(at[n] + max(taken[n], 0))
            connection.send_rest(buffer[first : int(at[n] + sizes[n])].tobytes())

        return sent

    def _count_pieces(self) -> None:
        """Let taps count the reports that were sent without them."""
        for row in np.flatnonzero(self._pieces).tolist():
            connection = self._connections[row]
            if connection is not None:
                connection.count_pieces(int(self._pieces[row]))

        self._pieces[:] = 0
