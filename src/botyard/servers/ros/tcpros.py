"""TCPROS over sockets: subscribers of a node's topics and clients of its services.

`botyard.protocols.tcpros.session` has the protocol. Peers that have not sent their
header are strangers: few are kept, and only for some seconds. A subscriber receives
messages at the rate at which it reads. A service request runs after its client has read
the last answer, within the share of time for all requests.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final, Protocol, cast

from botyard.errors import BotyardError
from botyard.interfaces.http_admission import Pool
from botyard.names import shown
from botyard.protocols.tcpros.session import (
    Incoming,
    Offer,
    Requested,
    Subscribed,
    TopicOffer,
)
from botyard.servers.ros.peerserver import HoldingPeer, PeerServer
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
# A node that a debugger has stopped keeps its subscriptions for a minute.
MAX_STUCK: Final = 60.0
"""Time without reading after which a peer is disconnected, s."""
MAX_HELD: Final = 32 << 20
"""Maximum number of bytes of incomplete or queued headers and requests, in total."""
MAX_UNREAD: Final = 16 << 20
"""Unread bytes of answers to one address beyond which its next requests wait.

A single map may have this size.
"""
MAX_ALL_UNREAD: Final = 128 << 20
"""Unread bytes of answers to all clients beyond which their next requests wait."""
# Slow services use threads and processes of the simulator, which all clients share.
MAX_ANSWERING: Final = 4
"""Maximum number of slow services in progress for one address; further requests wait."""
MAX_ALL_ANSWERING: Final = 16
"""Maximum number of slow services in progress for all clients."""
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
        """Answer a request, now or with a future.

        Parameters
        ----------
        body : bytes
            Request in ROS 1's format, without its length.

        Returns
        -------
        bytes or Future
            Response in ROS 1's format, without its length.
        """
        ...


class Connection(HoldingPeer):
    """Connection of a subscriber or of a service's client."""

    message = "request"
    max_stuck = MAX_STUCK
    _numbers = itertools.count(1)

    def __init__(self, server: TcprosServer) -> None:
        super().__init__(server, "a TCPROS connection")
        self._server = server
        self.number = next(self._numbers)
        # The header decides whether this is a subscriber or a client of a service.
        self.session = Incoming(server.name, server.topics, server.services)
        self.sent = self.dropped = 0
        # True until the header is complete. Until then, a new connection may displace this one.
        self._is_stranger = True
        self._is_answering = False
        """Whether a service is working on this connection's request."""
        self._messages: deque[bytes] = deque()
        self.owes = 0
        """Number of bytes of answers that the peer has not read."""

    @property
    def caller(self) -> str:
        """Name of the node at the other end."""
        return self.session.caller

    def opened(self) -> None:
        """Register a new connection."""
        self.give(HEADER_TIME)
        self._server.add_connection(self)

    def closed(self) -> None:
        """Remove the connection."""
        self._server.remove_connection(self)
        # The budgets are returned first, because the topic may raise below.
        self.hold(0)
        self._messages.clear()
        self._owe(0)
        topic = self.session.topic
        if topic is not None:
            cast(Published, topic).lost(self)

    def drained(self) -> None:
        """Handle a peer that reads again: send waiting messages."""
        outlet = self.outlet
        assert outlet is not None
        # Queued messages come before new ones, to preserve their order.
        while self._messages and not outlet.is_full:
            self._write(self._messages.popleft())
        # Unread bytes count only for clients of services: a subscriber's queue bounds
        # its unread messages.
        if self.owes:
            self._owe(outlet.unread)
        # The next request must wait while queued messages still fill the buffer.
        if not outlet.is_full:
            super().drained()

    def data_received(self, data: bytes) -> None:
        """Process received bytes (callback of `asyncio.Protocol`)."""
        # The protocol of a subscriber ends with its header; ignore further bytes.
        if self.session.topic is None and not self.is_leaving:
            super().data_received(data)
            self._count()

    def _count(self) -> None:
        """Update the number of bytes held for this connection."""
        if not self.is_leaving:
            self.hold(len(self.inbox) + self.session.waiting)

    def stuck(self) -> None:
        """Drop a peer that has not read for too long."""
        self._server.throttled_log.log(
            logging.WARNING,
            "ROS 1: %s has not read for %g s: disconnected",
            self.session.caller,
            self.max_stuck,
        )
        self.drop()

    # -- turns of the time share

    def turn(self) -> bool:
        """Accept a subscriber or run one request.

        Return whether to take another turn.

        Returns
        -------
        bool
            Whether to take another turn, because more may be done at once.
        """
        session, outlet = self.session, self.outlet
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
        if event is None and self.inbox:
            # Parsing runs within the turn, so that its cost is charged to the peer's
            # address. Parse all bytes at once, because back-pressure keeps the inbox
            # short.
            session.receive_data(bytes(self.inbox))
            self.inbox.clear()
            self.read_on()
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
        # Close after the flush, so that the peer receives the reason before the
        # connection ends.
        if session.problem:
            self._server.throttled_log.log(
                logging.WARNING,
                "ROS 1: refused %s (%s): %s",
                session.caller,
                self.source,
                session.problem,
            )

        if session.is_closing:
            self.finish()
        elif session.service is not None and not self._is_answering and self._settles():
            self._wait_for_request(event is not None)

        return event is not None and self._is_open()

    def _may_go_on(self) -> bool:
        """Return whether the next request may run now.

        Otherwise the server wakes the connection later. Until then, the connection has
        no deadline.
        """
        if self.session.service is None or self._server.may_answer(self):
            return True
        self.give(None)
        return False

    def _is_open(self) -> bool:
        """Return whether the connection still accepts work."""
        return not (self.is_leaving or self.session.is_closing)

    def _settles(self) -> bool:
        """Count the connection as a known peer instead of a stranger; return whether it
        may stay.
        """
        if not self._is_stranger:
            return True
        if self._server.settles(self):
            self._is_stranger = False
            self.give(None)
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
            self.give(None)
        # A running deadline stays: bytes that trickle in must not extend it.
        elif self.deadline is None or was_answered:
            self.give(REQUEST_TIME)

    def _serve(self, service: Served, body: bytes) -> None:
        def answer(act: Callable[[], bytes | Future[bytes]]) -> None:
            try:
                found = act()
                # The service works in the background, so its client has no deadline
                # meanwhile.
                if isinstance(found, Future):
                    self.give(None)
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
            # Count the finished service first, even if the peer has disconnected
            # meanwhile.
            self._answers(False)
            self.barrier.run(say_later, done)

        def say_later(done: Future[bytes]) -> None:
            if not done.cancelled() and self._is_open():
                answer(done.result)
                self._flush()
                self._wait_for_request(True)
                # The next request may already be in the inbox.
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

    # -- output

    def send(self, frame: bytes, queue: int) -> None:
        """Send a message to a subscriber.

        Parameters
        ----------
        frame : bytes
            Message with its length.
        queue : int
            Maximum number of messages that wait while the peer is slow; a new one
            displaces the oldest. 0, unlimited in ROS 1, keeps the newest one here.
        """
        outlet = self.outlet
        if outlet is None or self.is_leaving:
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
        if self.outlet is not None:
            self.sent += len(frame)
            self.outlet.write(frame)

    def _flush(self) -> None:
        data = self.session.data_to_send()
        if data and self.outlet is not None:
            self.outlet.write(data)
            if self.session.service is not None:
                # Answers in a buffer that is not full count as read, so short answers need no
                # bookkeeping.
                self._owe(self.outlet.unread if self.outlet.is_full else 0)


class TcprosServer(PeerServer[Connection]):
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
        self.name, self.topics, self.services = name, topics, services
        self._strangers: Pool[Connection] = Pool(MAX_STRANGERS, MAX_STRANGERS_EACH)
        self._settled: Pool[Connection] = Pool(MAX_CONNECTIONS, MAX_EACH)
        super().__init__(host, 0, "ROS 1", turns, self._strangers, self._settled)
        self._answering: Counter[str] = Counter()
        self._unread: Counter[str] = Counter()
        self._all_unread = 0
        self._for_room: dict[Connection, None] = {}
        """Connections whose next request waits until clients have read earlier answers."""

    @property
    def max_held(self) -> int:
        """Maximum number of bytes of incomplete or queued headers and requests."""
        return MAX_HELD

    def accepted(self) -> Connection:
        """Return an asyncio protocol for a new connection."""
        return Connection(self)

    # -- connections

    def add_connection(self, one: Connection) -> None:
        """Add a connection; it may displace another connection."""
        gone = self._strangers.add(one)
        if gone is not None:
            gone.drop()

    def settles(self, one: Connection) -> bool:
        """Return whether there is room for a settled connection, and count it.

        Parameters
        ----------
        one : Connection
            Stranger whose header is valid.

        Returns
        -------
        bool
            False if its address has too many settled connections, or if the connection is no
            stranger any more. It is then not counted.
        """
        if not (self._settled.has_room(one.source) and self._strangers.remove(one)):
            return False
        # Settled connections have their own limits, so strangers cannot displace them.
        self._settled.add(one)
        return True

    def may_answer(self, one: Connection) -> bool:
        """Return whether a connection's next request may run now.

        Parameters
        ----------
        one : Connection
            Client of a service. If its request may not run, the connection is woken
            when answers have been read.
        """
        if self._has_room(one.source):
            return True
        # A dictionary keeps the order of arrival, so that clients are served in turn.
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
        """Count services in progress and unread bytes of answers.

        Parameters
        ----------
        one : Connection
            Client of a service.
        answering : int
            Change of the number of its services in progress.
        unread : int
            Change of the number of bytes of answers that it has not read.
        """
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

    def remove_connection(self, one: Connection) -> None:
        """Remove a connection."""
        self._for_room.pop(one, None)
        if not self._strangers.remove(one):
            self._settled.remove(one)


__all__ = ["SHARE", "Connection", "TcprosServer"]
