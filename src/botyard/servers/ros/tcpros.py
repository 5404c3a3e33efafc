"""TCPROS over sockets: subscribers of a node's topics and clients of its services.

`botyard.protocols.tcpros.session` has the protocol. Peers that have not sent their
header are strangers: few are kept, and only for some seconds. A subscriber receives
messages at the rate at which it reads. A service request runs after its client has read
the last answer, within the share of time for all requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final, Protocol, cast

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError
from botyard.interfaces.http_admission import Pool, source_of
from botyard.names import shown
from botyard.protocols.tcpros.session import (
    Incoming,
    Offer,
    Requested,
    Subscribed,
    TopicOffer,
)
from botyard.servers.outlet import Outlet
from botyard.servers.ros.xmlrpc import Peer, listening_socket
from botyard.servers.sockets import has_unread, read_in_pieces
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

MAX_CONNECTIONS: Final = 4000
"""Maximum number of subscribers and service clients of a node."""
MAX_EACH: Final = 2000
"""Maximum number of subscribers and service clients from one address."""
MAX_STRANGERS: Final = 256
"""Maximum number of connections before their header is complete."""
MAX_STRANGERS_EACH: Final = 128
"""Maximum number of connections from one address before their header is complete.

A further connection displaces the one that was silent for longest.
"""
HEADER_TIME: Final = 10.0
"""Deadline of a connection's header, s."""
REQUEST_TIME: Final = 30.0
"""Deadline of a request, from its first byte to its last, s."""
MAX_STUCK: Final = 60.0
"""Time without reading after which a peer is disconnected, s."""
CLOSE_TIMEOUT_S: Final = 3.0
"""Timeout to close a connection, s; then it is aborted."""
MAX_WAITING: Final = 64 << 10
"""Back-pressure: reading from a peer pauses while this many of its bytes are queued."""
MAX_HELD: Final = 32 << 20
"""Maximum number of bytes of incomplete or queued headers and requests, in total."""
MAX_UNREAD: Final = 16 << 20
"""Unread bytes of answers to one address beyond which its next requests wait.

A map alone may have as many.
"""
MAX_ALL_UNREAD: Final = 128 << 20
"""Unread bytes of answers to all clients beyond which their next requests wait."""
MAX_ANSWERING: Final = 4
"""Maximum number of slow services in progress for one address; more requests wait."""
MAX_ALL_ANSWERING: Final = 16
"""Maximum number of slow services in progress for all clients."""
SWEEP_INTERVAL_S: Final = 0.5
"""Interval to check deadlines, s."""
SHARE: Final = 0.1
"""Share of time for service requests and new subscribers together."""

log = logging.getLogger("botyard.ros")


class Published(TopicOffer, Protocol):
    """Topic with subscribers."""

    def welcome(self, reader: Connection) -> None:
        """Add a subscriber."""
        ...

    def lost(self, reader: Connection) -> None:
        """Remove a subscriber."""
        ...


class Served(Offer, Protocol):
    """Service that answers requests."""

    def run(self, body: bytes) -> bytes | Future[bytes]:
        """Answer a request, now or with a future."""
        ...


class Connection(asyncio.Protocol):
    """Connection of a subscriber or of a service's client."""

    _numbers = itertools.count(1)

    def __init__(self, server: TcprosServer) -> None:
        self._server = server
        self.number = next(self._numbers)
        # The header decides whether this is a subscriber or a client of a service.
        self.session = Incoming(server.name, server.topics, server.services)
        self.sent = self.dropped = 0
        self.source = ""
        self.deadline: float | None = None
        self.fence = ErrorBarrier(log, "a TCPROS connection", self.drop)
        self._transport: asyncio.Transport | None = None
        self._outlet: Outlet | None = None
        self._inbox = bytearray()
        self._is_stranger, self._is_reading_paused = True, False
        self._is_answering = False
        """Whether a service is working on this connection's request."""
        self._messages: deque[bytes] = deque()
        self.holds = 0
        """Number of bytes that wait to be complete or for their turn."""
        self.owes = 0
        """Number of bytes of answers that the peer has not read."""

    @property
    def is_held_up(self) -> bool:
        """Whether bytes from the peer wait for their turn."""
        return bool(self._inbox)

    @property
    def has_unread(self) -> bool:
        """Whether bytes from the peer wait, in the system's buffer or here."""
        sock = (
            None
            if self._transport is None
            else self._transport.get_extra_info("socket")
        )
        return self.is_held_up or has_unread(sock)

    # -- asyncio callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register a new connection."""
        self._transport = cast(asyncio.Transport, transport)
        # By default asyncio delivers 256 KiB at once, more than `MAX_WAITING`.
        read_in_pieces(transport)
        self._outlet = Outlet(self._transport)
        self.source = source_of(Peer.of(transport).address)
        self.deadline = asyncio.get_running_loop().time() + HEADER_TIME
        self._server.comes(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._server.goes(self)
        self._let_go()
        self._messages.clear()
        if self._outlet is not None:
            self._outlet.drop()
        self._owe(0)
        topic = self.session.topic
        if topic is not None:
            self.fence.run(cast(Published, topic).lost, self)

    def pause_writing(self) -> None:
        """Handle a peer that does not read."""
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        """Handle a peer that reads again: send waiting messages."""
        outlet = self._outlet
        if outlet is None:
            return
        outlet.resume()
        # Queued messages come before new ones, to preserve their order.
        while self._messages and not outlet.is_full:
            self._write(self._messages.popleft())
        if self.owes:
            self._owe(outlet.unread)
        if not outlet.is_full:
            self._server.turns.wants(self)

    def data_received(self, data: bytes) -> None:
        """Queue bytes from the peer."""
        # The protocol of a subscriber ends with its header; ignore further bytes.
        if self.session.topic is not None:
            return
        self._inbox += data
        self._count()
        self._read_on()
        self._server.turns.wants(self)

    def _count(self) -> None:
        """Update the number of bytes held for this connection."""
        held = len(self._inbox) + self.session.waiting
        self._server.hold(held - self.holds)
        self.holds = held

    def _let_go(self) -> None:
        self._inbox.clear()
        self._server.hold(-self.holds)
        self.holds = 0

    def give_up(self) -> None:
        """Drop the connection, because it holds too much of the shared buffer."""
        self._server.throttled_log.log(
            logging.WARNING,
            "ROS 1: dropped a request of %s: the limit of %d bytes for requests "
            "in progress is exceeded, mostly by it",
            self.source,
            MAX_HELD,
        )
        self._let_go()
        self.drop()

    def close(self) -> None:
        """Close the connection after all data is written."""
        if self._outlet is not None:
            self._outlet.finish()

    def drop(self) -> None:
        """Abort the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- turns of the time share

    def turn(self) -> bool:
        """Accept a subscriber or run one request.

        Return whether to take another turn.
        """
        session, outlet = self.session, self._outlet
        if (
            outlet is None
            or outlet.is_full
            or self._is_answering
            or not self._is_open()
        ):
            return False

        # The limits may change while bytes are parsed, so they are checked again below.
        if not self._may_go_on():
            return False
        event = session.next_event()
        if event is None and self._inbox:
            # Parsing runs within the turn, so that its cost is charged to the peer's
            # address.
            session.receive_data(bytes(self._inbox))
            self._inbox.clear()
            self._read_on()
            if not self._may_go_on():
                if self._settles():
                    self._flush()
                self._count()
                return False

            event = session.next_event()
            self._count()

        if isinstance(event, Subscribed):
            if self._settles():
                self._flush()
                cast(Published, event.offer).welcome(self)
        elif isinstance(event, Requested) and self._settles():
            self._serve(cast(Served, event.offer), event.body)

        self._flush()
        if session.problem:
            self._server.throttled_log.log(
                logging.WARNING,
                "ROS 1: refused %s (%s): %s",
                session.caller,
                self.source,
                session.problem,
            )

        if session.is_closing:
            self.close()
        elif session.service is not None and not self._is_answering and self._settles():
            self._wait_for_request(event is not None)

        return event is not None and self._is_open()

    def _may_go_on(self) -> bool:
        """Return whether the next request may run now.

        Otherwise the server wakes the connection later, which has no deadline until
        then.
        """
        if self.session.service is None or self._server.may_answer(self):
            return True
        self.deadline = None
        return False

    def _is_open(self) -> bool:
        """Return whether the connection still accepts work."""
        return not (
            self._transport is None
            or self._transport.is_closing()
            or self.session.is_closing
        )

    def _settles(self) -> bool:
        """Count the connection as settled, no longer as a stranger; return success."""
        if not self._is_stranger:
            return True
        if self._server.settles(self):
            self._is_stranger, self.deadline = False, None
            return True

        self._server.throttled_log.log(
            logging.WARNING,
            "ROS 1: %s (%s): too many connections",
            self.session.caller,
            self.source,
        )
        self.drop()
        return False

    def _wait_for_request(self, was_answered: bool) -> None:
        """Set the deadline of a request that has started to arrive."""
        if not self.session.is_waited_for:
            self.deadline = None
        elif self.deadline is None or was_answered:
            self.deadline = asyncio.get_running_loop().time() + REQUEST_TIME

    def _serve(self, service: Served, body: bytes) -> None:
        def answer(act: Callable[[], bytes | Future[bytes]]) -> None:
            try:
                found = act()
                # The service works in the background, so its client has no deadline
                # meanwhile.
                if isinstance(found, Future):
                    self.deadline = None
                    self._answers(True)
                    found.add_done_callback(be_done)
                else:
                    self.session.answer(found)
            # The client receives the text of the error, as with rospy's
            # ServiceException.
            except BotyardError as error:
                self.session.fail(shown(error, 500))
            except Exception as error:
                log.exception("internal error in the service %s", service.name)
                self.session.fail(f"internal error: {error!r}")

        def be_done(done: Future[bytes]) -> None:
            self._answers(False)
            self.fence.run(say_later, done)

        def say_later(done: Future[bytes]) -> None:
            if not done.cancelled() and self._is_open():
                answer(done.result)
                self._flush()
                self._wait_for_request(True)
                self._server.turns.wants(self)

        answer(lambda: service.run(body))

    def _answers(self, is_answering: bool) -> None:
        if is_answering != self._is_answering:
            self._is_answering = is_answering
            self._server.count_answers(self, int(is_answering) * 2 - 1, 0)

    def _owe(self, unread: int) -> None:
        if unread != self.owes:
            self._server.count_answers(self, 0, unread - self.owes)
            self.owes = unread

    def _read_on(self) -> None:
        """Pause or resume reading, depending on the number of queued bytes."""
        if self._transport is None or self._transport.is_closing():
            return
        if len(self._inbox) > MAX_WAITING and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        elif len(self._inbox) <= MAX_WAITING and self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()

    # -- output

    def no_delay(self) -> None:
        """Send small messages at once (TCP_NODELAY), as the subscriber requested."""
        sock = (
            self._transport.get_extra_info("socket")
            if self._transport is not None
            else None
        )
        if sock is not None:
            with contextlib.suppress(OSError):
                # With delayed ACKs, Nagle's algorithm delays small messages by 40 ms.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes, queue: int) -> None:
        """Send a message to a subscriber.

        While the peer is slow, at most `queue` messages wait, and a new one displaces
        the oldest.
        """
        outlet = self._outlet
        if outlet is None:
            return
        if not outlet.is_full:
            self._write(frame)
            return

        # A queue size of 0 means unlimited in ROS 1; here it keeps the newest message.
        while len(self._messages) >= max(1, queue):
            self._messages.popleft()
            self.dropped += 1

        self._messages.append(frame)

    def _write(self, frame: bytes) -> None:
        if self._outlet is not None:
            self.sent += len(frame)
            self._outlet.write(frame)

    def _flush(self) -> None:
        data = self.session.data_to_send()
        if data and self._outlet is not None:
            self._outlet.write(data)
            if self.session.service is not None:
                self._owe(self._outlet.unread if self._outlet.is_full else 0)

    def stuck(self, now: float) -> bool:
        """Return whether the peer has not read for too long."""
        return self._outlet is not None and self._outlet.stuck(now) > MAX_STUCK


class TcprosServer:
    """TCPROS port of a node.

    Parameters
    ----------
    host : str
        Address to listen on.
    name : str
        Name of the node.
    topics, services : mapping
        Topics and services of the node by absolute name, looked up when a peer's header
        is complete.
    turns : TimeShare
        Share of time for all requests.

    Raises
    ------
    PortError
        The address does not belong to this machine.
    """

    def __init__(
        self,
        host: str,
        name: str,
        topics: Mapping[str, TopicOffer],
        services: Mapping[str, Offer],
        turns: TimeShare,
    ) -> None:
        self.name, self.topics, self.services, self.turns = (
            name,
            topics,
            services,
            turns,
        )
        self._socket = listening_socket(host)
        self.port: int = self._socket.getsockname()[1]
        self.throttled_log = ThrottledLog(log)
        self._strangers: Pool[Connection] = Pool(MAX_STRANGERS, MAX_STRANGERS_EACH)
        self._settled: Pool[Connection] = Pool(MAX_CONNECTIONS, MAX_EACH)
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._held = 0
        self._answering: Counter[str] = Counter()
        self._unread: Counter[str] = Counter()
        self._all_unread = 0
        self._for_room: dict[Connection, None] = {}
        """Clients of services that wait until answers are read."""

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), sock=self._socket
        )

    def close(self) -> None:
        """Stop accepting connections, and close the open ones.

        Peers have `CLOSE_TIMEOUT_S` to read the last data.
        """
        if self._server is not None:
            self._server.close()
        else:
            self._socket.close()

        for one in (*self._strangers, *self._settled):
            one.deadline = asyncio.get_running_loop().time() + CLOSE_TIMEOUT_S
            one.close()

    # -- connections

    def __len__(self) -> int:
        return len(self._strangers) + len(self._settled)

    def comes(self, one: Connection) -> None:
        """Add a connection, and start to check deadlines."""
        gone = self._strangers.add(one)
        if gone is not None:
            gone.drop()
        if self._sweep is None:
            self._sweep_later()

    def settles(self, one: Connection) -> bool:
        """Return whether there is room for a settled connection, and count it."""
        if not (self._settled.has_room(one.source) and self._strangers.remove(one)):
            return False
        # Settled connections have their own limits, so strangers cannot displace them.
        self._settled.add(one)
        return True

    def hold(self, more: int) -> None:
        """Count held bytes; drop the largest holder if there are too many.

        It is the connection that holds most, of the address that holds most.
        """
        self._held += more
        # The sum over all connections below costs time, so it runs only above the
        # limit.
        if more <= 0 or self._held <= MAX_HELD:
            return
        held: Counter[str] = Counter()
        everybody = (*self._strangers, *self._settled)
        for one in everybody:
            held[one.source] += one.holds
        most = max(held, key=held.__getitem__)
        max(
            (one for one in everybody if one.source == most), key=lambda one: one.holds
        ).give_up()

    def may_answer(self, one: Connection) -> bool:
        """Return whether a connection's next request may run now.

        If not, the connection is woken when answers have been read.
        """
        if self._has_room(one.source):
            return True
        self._for_room[one] = None
        return False

    def _has_room(self, source: str) -> bool:
        return (
            self._answering[source] < MAX_ANSWERING
            and self._answering.total() < MAX_ALL_ANSWERING
            and self._unread[source] < MAX_UNREAD
            and self._all_unread < MAX_ALL_UNREAD
        )

    def count_answers(self, one: Connection, answering: int, unread: int) -> None:
        """Count services in progress and unread bytes of answers."""
        # The addition drops counts of 0, so addresses do not accumulate.
        self._answering += Counter({one.source: answering})
        self._unread += Counter({one.source: unread})
        self._all_unread += unread
        # Only a decrease can make room for a waiting client.
        if self._for_room and (answering < 0 or unread < 0):
            for waits in [
                waits for waits in self._for_room if self._has_room(waits.source)
            ]:
                del self._for_room[waits]
                self.turns.wants(waits)

    def goes(self, one: Connection) -> None:
        """Remove a connection."""
        # A turn of a closed connection would work on a closed transport.
        self.turns.forget(one)
        self._for_room.pop(one, None)
        if not self._strangers.remove(one):
            self._settled.remove(one)

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(
            SWEEP_INTERVAL_S, self._sweep_now
        )

    def _sweep_now(self) -> None:
        self._sweep = None
        now = asyncio.get_running_loop().time()
        for one in (*self._strangers.overdue(now), *self._settled.overdue(now)):
            one.drop()
        for one in self._settled:
            if one.stuck(now):
                self.throttled_log.log(
                    logging.WARNING,
                    "ROS 1: %s has not read for %g s: disconnected",
                    one.session.caller,
                    MAX_STUCK,
                )
                one.drop()

        # Without connections there are no deadlines; the next connection restarts the
        # sweep.
        if len(self):
            self._sweep_later()


__all__ = ["SHARE", "Connection", "TcprosServer"]
