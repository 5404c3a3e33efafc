"""Sending of the due reports of all Pioneer sessions after a step (`Reporter`).

One kernel finds the sessions with a due report, a second kernel makes their reports,
and one call passes them to all sockets. Connections handle the other cases themselves:
other packets, recordings of packets, and a peer that reads slowly.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from typing import Any, Final, Protocol

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
"""Shortest timer that a session sets, s, which is also the shortest interval of polling."""
MIN_TOGETHER: Final = 4
"""Least number of reports for which one call of `Send` is faster than single calls."""

log = logging.getLogger("botyard.pioneer")

Send = Callable[[I8, NDArray[np.uint8], I8, I8], I8]
"""Type of the function that sends several reports in one call.

Its arguments are sockets, a buffer, and offsets and sizes of the reports in the buffer. It returns
the number of bytes that each socket accepted; a negative number is an error.
"""


class Connection(Protocol):
    """Interface of a client's connection (`botyard.servers.pioneer.connection`)."""

    @property
    def session(self) -> Session:
        """Protocol session of the connection."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether all written bytes have been passed to the system."""
        ...

    def attend(self) -> None:
        """Let the session process the end of a step."""
        ...

    def on_timer(self, now: float) -> bool:
        """Handle the session's timer; called at the time that the session has set.

        Parameters
        ----------
        now : float
            Wall time, s.

        Returns
        -------
        bool
            Whether a report must be sent again; the caller must then call `report`.
        """
        ...

    def report(self, now: float, made: Made | None = None) -> None:
        """Send the due report of the session.

        Parameters
        ----------
        now : float
            Wall time, s.
        made : Made, optional
            Report that the batch encoded; if it is None, the session encodes it.
        """
        ...

    def send_rest(self, data: bytes) -> None:
        """Send the part of a report that the socket did not take.

        Parameters
        ----------
        data : bytes
            Rest of the report, which must go out before any other byte.
        """
        ...

    def count_pieces(self, count: int) -> None:
        """Count pieces of data that the reporter sent directly to the socket.

        Parameters
        ----------
        count : int
            Number of pieces since the last call.
        """
        ...


class Reporter:
    """Sender of the reports of all connections of a simulation; a `Listener` of the run loop.

    Parameters
    ----------
    send : callable, optional
        Sends several reports in one call; without it, each connection sends its own
        reports.
    """

    def __init__(self, send: Send | None = None) -> None:
        self._send = send
        self.roster: Roster[Session] = Roster()
        """Table of the sessions of all connections."""
        self._connections: list[Connection | None] = []
        self._batch = Batch(self.roster)
        self._barrier = ErrorBarrier(log, "making reports in a batch")
        self._sockets: I8 = np.full(self.roster.capacity, -1)
        """File descriptor of each connection's socket, by row; −1: the connection itself sends."""
        self._pieces: I8 = np.zeros(self.roster.capacity, np.int64)
        """Number of pieces sent directly that a connection's `Tap` has not counted yet, by row."""
        self._held: dict[int, int] = {}
        """Sockets of connections with unsent bytes, by row.

        They are not in `_sockets`: a report sent directly would overtake the unsent
        bytes.
        """
        self._taps: PacketTaps | None = None
        self.wake = math.inf
        """Earliest time at which `poll` has something to do, s."""

    @property
    def connections(self) -> list[Connection]:
        """All connections."""
        return [c for c in self._connections if c is not None]

    def tap(self, taps: PacketTaps) -> None:
        """Send all reports through the connections while `taps` record the bytes.

        Parameters
        ----------
        taps : PacketTaps
            Taps of all sessions. Bytes that go straight to the sockets would not pass
            the taps.
        """
        self._taps = taps
        taps.before = self._count_pieces

    @property
    def is_tapped(self) -> bool:
        """Whether all bytes must pass through the connections."""
        return self._taps is not None and self._taps.is_recording

    def attach(self, connection: Connection) -> None:
        """Register a connection.

        Parameters
        ----------
        connection : Connection
            Connection with a new session. The session's data move to this object's
            table (`roster`).
        """
        self.wake = 0.0
        connection.session.enter(self.roster)
        row = connection.session.row
        if row == len(self._connections):
            self._connections.append(connection)
        else:
            self._connections[row] = connection
        if row >= len(self._sockets):
            more = self.roster.capacity - len(self._sockets)
            self._sockets = np.concatenate([self._sockets, np.full(more, -1)])
            self._pieces = np.concatenate([self._pieces, np.zeros(more, np.int64)])
        self._pieces[row] = 0

    def detach(self, connection: Connection) -> None:
        """Unregister a connection.

        Parameters
        ----------
        connection : Connection
            Connection whose session ends; the session's data move to a table of its
            own. A connection that is not registered is ignored.
        """
        if self._has(connection):
            self.shut(connection)
            self._connections[connection.session.row] = None
            connection.session.move_to_own_roster()

    def _has(self, connection: Connection) -> bool:
        session = connection.session
        return (
            session.roster is self.roster
            and self._connections[session.row] is connection
        )

    # -- sockets

    def open(self, connection: Connection, socket: int) -> None:
        """Start to send the reports of a connection directly to its socket.

        `shut` must be called before the socket is closed, because the system reuses its
        number.

        Parameters
        ----------
        connection : Connection
            Registered connection without unsent bytes.
        socket : int
            File descriptor of a socket that does not block.
        """
        if self._send is not None and self._has(connection):
            self._sockets[connection.session.row] = socket

    def hold(self, connection: Connection) -> None:
        """Let a connection send its own reports until its unsent bytes are sent.

        Parameters
        ----------
        connection : Connection
            Connection that has written bytes which the system has not taken. A report
            straight to the socket would overtake them.
        """
        row = connection.session.row
        if self._has(connection) and self._sockets[row] >= 0:
            self._held[row] = int(self._sockets[row])
            self._sockets[row] = -1

    def shut(self, connection: Connection) -> None:
        """Send nothing more directly to the socket of a connection.

        Parameters
        ----------
        connection : Connection
            Connection whose socket is about to be closed.
        """
        if self._has(connection):
            self._sockets[connection.session.row] = -1
            self._held.pop(connection.session.row, None)

    def _release(self) -> None:
        """Resume sending directly to sockets whose unsent bytes have been sent."""
        for row, socket in tuple(self._held.items()):
            connection = self._connections[row]
            if connection is not None and connection.is_idle:
                self._sockets[row] = socket
                del self._held[row]

    # -- reports

    @property
    def is_idle(self) -> bool:
        """Whether there are no connections, so that steps need no reports."""
        return not len(self.roster)

    def on_snapshot(self, now: float) -> None:
        """Send the due reports after a step.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        port = self._any_port()
        if port is None:
            return
        after = repeat_after(port.timing.real)
        due, asking, wake = self.roster.due(port.time_us, now, after)
        # Poll after `MIN_TIMER_S` at the latest: a session may set a new timer, but
        # none shorter.
        self.wake = min(now + MIN_TIMER_S, wake)
        for row in asking.tolist():
            connection = self._connections[row]
            if connection is not None:
                connection.attend()

        self._report(due, now)

    def poll(self, now: float) -> None:
        """Handle expired timers.

        One poll for all connections costs less than an event-loop timer for each.

        Parameters
        ----------
        now : float
            Wall time, s. Before `wake` the call does nothing.
        """
        if now < self.wake:
            return
        due, asking, wake = self.roster.expired(now)
        self.wake = min(now + MIN_TIMER_S, wake) if len(self.roster) else math.inf
        more = []
        for row in asking.tolist():
            connection = self._connections[row]
            if connection is not None and connection.on_timer(now):
                more.append(row)

        self._report(np.concatenate([due, np.array(more, np.int64)]), now)

    def _any_port(self) -> RobotPort | None:
        for session in self.roster.sessions:
            if session is not None:
                return session.port

        return None

    def _report(self, due: I8, now: float) -> None:
        """Send the reports of some sessions.

        Parameters
        ----------
        due : (n,) int64
            Rows of sessions with a due report.
        now : float
            Wall time, s.
        """
        if not len(due):
            return
        if self._held:
            self._release()
        made = self._barrier.call(self._batch.make, due, otherwise=None)
        # Making the batch failed. Each session then makes its own report, and a new
        # batch replaces the old one, whose state may be wrong.
        if made is None:
            self._batch, made = Batch(self.roster), np.zeros(len(due), np.bool_)
        # Bytes that go straight to the sockets do not pass the taps.
        is_straight = self._send is not None and not self.is_tapped
        if is_straight and len(due) >= MIN_TOGETHER:
            left = ~self._send_together(due, made, now)
            due, made = due[left], made[left]

        for row, is_made in zip(due.tolist(), made.tolist(), strict=True):
            # For a few reports the arrays of `_send_together` cost more than the calls.
            if is_straight and is_made and self._needs_no_more(row):
                self._send_alone(row, now)
                continue
            connection = self._connections[row]
            if connection is not None:
                connection.report(now, self._batch.made(row) if is_made else None)

    def _needs_no_more(self, rows: Any) -> Any:
        """Return whether encoded reports can go directly to their sockets.

        Parameters
        ----------
        rows : int or (n,) int64
            Rows of sessions in the roster.

        Returns
        -------
        bool or (n,) bool
            Whether a report's session has no other packets to send, and its socket is
            in `_sockets`.
        """
        is_plain = (self.roster.flags[rows] & EXTRA) == 0
        return is_plain & (self._sockets[rows] >= 0)

    def _send_alone(self, row: int, now: float) -> None:
        """Send an encoded report directly to its socket; see `_needs_no_more`.

        Parameters
        ----------
        row : int
            Row of the session in the roster.
        now : float
            Wall time, s.
        """
        report = self._batch.view(row)
        self.roster.walls[row, SENT] = now
        self._pieces[row] += 1
        try:
            taken = os.write(int(self._sockets[row]), report)
        except OSError:
            # The connection sends the bytes again, so it gets the same error or queues
            # them.
            taken = 0

        if taken < len(report):
            connection = self._connections[row]
            assert connection is not None
            connection.send_rest(report[taken:].tobytes())

    def _send_together(self, due: I8, made: B1, now: float) -> B1:
        """Send in one call the reports that can go directly to their sockets.

        Parameters
        ----------
        due : (n,) int64
            Rows of sessions with a due report.
        made : (n,) bool
            Whether the batch has made the report of each row.
        now : float
            Wall time, s.

        Returns
        -------
        (n,) bool
            Whether the report of each row was sent; connections must send the other
            reports.
        """
        assert self._send is not None
        sent: B1 = made & self._needs_no_more(due)
        rows = due[sent]
        at, sizes = self._batch.where(rows)
        buffer = self._batch.buffer
        taken = self._send(self._sockets[rows], buffer, at, sizes)
        self.roster.walls[rows, SENT] = now
        self.note_pieces(rows)

        for n in np.flatnonzero(taken < sizes).tolist():
            connection = self._connections[rows[n]]
            assert connection is not None
            # Sending through the connection reports the same error, or stores the bytes
            # until the socket accepts them.
            first = int(at[n] + max(taken[n], 0))
            connection.send_rest(buffer[first : int(at[n] + sizes[n])].tobytes())

        return sent

    def note_pieces(self, rows: I8) -> None:
        """Count one piece of data for each of these connections, which was sent directly."""
        self._pieces[rows] += 1

    def _count_pieces(self) -> None:
        """Let the taps count the pieces of data that were sent directly."""
        for row in np.flatnonzero(self._pieces).tolist():
            connection = self._connections[row]
            if connection is not None:
                connection.count_pieces(int(self._pieces[row]))

        self._pieces[:] = 0
