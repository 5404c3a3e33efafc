"""`Intake`: reads the sockets of many clients together, and runs their frequent commands.

A running client sends little at a time: velocities and keep-alives. Where many clients
do so, a callback of the event loop for each costs more than the step of its robot. The
intake waits for all their sockets at once, reads them in few system calls, and lets one
kernel process the commands. All other bytes, ends of streams and errors are passed to
the client's connection, which then reads its own socket until it may rejoin the intake.

A hostile client gains nothing here. Each read accepts at most `SLOT` bytes of a client,
and at most one velocity for its robot. So neither memory nor the cost of later work
grows, and the time for one client is far below its own budget
(`botyard.servers.pioneer.robotclient.TIME_SHARE`). A client that sends more is handed
back to its connection, which applies its own budgets. All clients together use at most
`TIME_SHARE` of the time: the intake rests in proportion to the time of each read, and
the system serves their sockets in turns.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.control.error_barrier import ErrorBarrier
from botyard.interfaces.pioneer.reporting import Reporter
from botyard.protocols.pioneer.commandbatch import CommandBatch
from botyard.protocols.pioneer.kernels.schedule import PROMPT
from botyard.protocols.pioneer.session import Session
from botyard.servers.pioneer.bulksockets import BulkSockets

I8 = NDArray[np.int64]

MIN_TOGETHER: Final = 256
"""Number of connections from which reading them together is faster."""
SLOT: Final = 128
"""Largest number of bytes of a client in one read."""
MAX_SOCKETS: Final = 2048
"""Largest number of sockets of one read, which then takes some milliseconds."""
INTERVAL_S: Final = 0.02
"""Shortest time between two reads, s, so that each read finds many sockets.

Velocities take effect at the next step, before which the intake reads as well. So only
answers are delayed.
"""
TIME_SHARE: Final = 0.2
"""Largest share of time for reads."""

log = logging.getLogger("botyard.pioneer")


class Client(Protocol):
    """Connection of a client, as the intake uses it; see `botyard.servers.pioneer.robotclient`."""

    def take_back(self, data: bytes) -> None:
        """Process bytes that the intake has read; the connection reads its socket again."""
        ...


class Intake:
    """Reads sockets of clients whose sessions permit it.

    Parameters
    ----------
    reporter : Reporter
        Owner of the table of sessions.
    sockets : BulkSockets or None
        Reads many sockets at once; without it, the intake admits no client.
    is_paused : callable
        Whether simulated time is paused. Clients may then step time and wait for each
        answer, so the intake reads at once.
    """

    def __init__(
        self,
        reporter: Reporter,
        sockets: BulkSockets | None,
        is_paused: Callable[[], bool],
    ) -> None:
        self._reporter = reporter
        self._bulk = sockets
        self._is_paused = is_paused
        self._batch = CommandBatch(reporter.roster)
        self._barrier = ErrorBarrier(log, "taking commands in a batch")
        self._clients: dict[int, tuple[Client, Session]] = {}
        """Connection and session of each socket."""
        self._epoll: select.epoll | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = np.zeros((0, SLOT), np.uint8)
        self._rest_until = 0.0

    def __len__(self) -> int:
        return len(self._clients)

    def admits(self, session: Session) -> bool:
        """Return whether the client of a session may be read here."""
        roster = self._reporter.roster
        return (
            len(roster) >= MIN_TOGETHER
            and self._bulk is not None
            and session.roster is roster
            and bool(roster.flags[session.row] & PROMPT)
            # Connections pass all bytes of a client, in order, to a recording; the
            # intake does not.
            and not self._reporter.is_tapped
        )

    def add(self, client: Client, session: Session, socket: int) -> None:
        """Read the socket of a client, until `remove` or `Client.take_back`."""
        if self._epoll is None:
            self._epoll = select.epoll()
            self._listen()
        self._clients[socket] = client, session
        self._epoll.register(socket, select.EPOLLIN | select.EPOLLRDHUP)

    def remove(self, socket: int) -> None:
        """Stop reading a socket; call this before the socket is closed."""
        assert self._epoll is not None
        del self._clients[socket]
        self._epoll.unregister(socket)
        if not self._clients:
            self._close()

    def _close(self) -> None:
        assert self._epoll is not None
        asyncio.get_running_loop().remove_reader(self._epoll)
        self._epoll.close()
        self._epoll = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _listen(self) -> None:
        self._timer = None
        if self._epoll is not None:
            asyncio.get_running_loop().add_reader(self._epoll, self._on_readable)

    def _on_readable(self) -> None:
        self._read()
        loop = asyncio.get_running_loop()
        due = self._rest_until
        if not self._is_paused():
            due = max(due, loop.time() + INTERVAL_S)
        # The last client may have disconnected.
        if self._epoll is not None and due > loop.time():
            loop.remove_reader(self._epoll)
            self._timer = loop.call_at(due, self._listen)

    def read_before_step(self) -> None:
        """Read what has arrived, so that it takes effect in the step that follows."""
        if self._clients and asyncio.get_running_loop().time() >= self._rest_until:
            self._read()

    def _read(self) -> None:
        assert self._epoll is not None
        assert self._bulk is not None
        clock = asyncio.get_running_loop().time
        began = clock()
        # The system moves sockets that it has reported to the end of its list.
        ready = self._epoll.poll(0, MAX_SOCKETS)
        if not ready:
            return
        sockets: I8 = np.array(ready)[:, 0]
        if len(sockets) > len(self._buffer):
            self._buffer = np.zeros((2 * len(sockets), SLOT), np.uint8)
        data = self._buffer[: len(sockets)]
        sizes = self._bulk.receive(sockets, data)
        found = [self._clients[socket] for socket in sockets.tolist()]
        numbers = np.array([session.row for _, session in found], np.int64)
        taken = np.zeros(len(numbers), np.bool_)
        if not self._reporter.is_tapped:
            taken = self._barrier.call(
                self._batch.take, numbers, data, sizes, began, otherwise=taken
            )
            self._reporter.note_pieces(numbers[taken])
        self._rest_until = clock() + (clock() - began) / TIME_SHARE
        # The connection reads again, and handles the end of the stream or the error.
        left = np.flatnonzero(~taken & (sizes != -errno.EAGAIN))
        for i in left.tolist():
            client, _ = found[i]
            # An earlier client in this loop may have ended the session of this client.
            if self._clients.get(int(sockets[i]), (None,))[0] is client:
                rest = data[i, : max(int(sizes[i]), 0)].tobytes()
                self._barrier.run(client.take_back, rest)


__all__ = ["Intake"]
