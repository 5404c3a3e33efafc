"""TCPROS over sockets: subscribers of a node's topics and clients of its services
(`botyard.protocols.tcpros.session` has the protocol).

Those who have not said what they want are strangers: few, and for some seconds. A
subscriber gets what it reads; a service's request is carried out when its client has
taken the last answer, and in the part of the time that requests get together.
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
"""Most subscribers and service clients of a node."""
MAX_EACH: Final = 2000
"""The same of one address; more are refused."""
MAX_STRANGERS: Final = 256
"""Most connections before their header has been received."""
MAX_STRANGERS_EACH: Final = 128
"""The same of one address; the one that has been silent for longest is dropped."""
HEADER_TIME: Final = 10.0
"""Deadline of a connection's header, s."""
REQUEST_TIME: Final = 30.0
"""Deadline of a request, from its first byte to its last, s."""
MAX_STUCK: Final = 60.0
"""A peer that has not read for this long, s, is disconnected."""
CLOSE_TIMEOUT_S: Final = 3.0
"""Time-out of closing a connection, s; then it is aborted."""
MAX_WAITING: Final = 64 << 10
"""Back-pressure: reading from a peer pauses while this many of its bytes are queued."""
MAX_HELD: Final = 32 << 20
"""Most bytes of headers and requests of all connections that are not complete, or wait
for their turn.
"""
MAX_UNREAD: Final = 16 << 20
"""Bytes of answers that the clients of one address have not read: beyond it their next
requests wait. A map may have as many itself.
"""
MAX_ALL_UNREAD: Final = 128 << 20
"""The same of all clients."""
MAX_ANSWERING: Final = 4
"""Services that take their time for clients of one address at once; the next requests
wait.
"""
MAX_ALL_ANSWERING: Final = 16
"""The same of all clients."""
SWEEP_INTERVAL_S: Final = 0.5
"""Interval of checking deadlines, s."""
SHARE: Final = 0.1
"""Share of time for service requests and new subscribers together."""

log = logging.getLogger("botyard.ros")


class Published(TopicOffer, Protocol):
    """A topic that is published: told who reads it."""

    def welcome(self, reader: Connection) -> None:
        """A subscriber is there."""
        ...

    def lost(self, reader: Connection) -> None:
        """A subscriber has gone."""
        ...


class Served(Offer, Protocol):
    """A service."""

    def run(self, body: bytes) -> bytes | Future[bytes]:
        """Answer a request, perhaps later."""
        ...


class Connection(asyncio.Protocol):
    """A subscriber or a client of a service."""

    _numbers = itertools.count(1)

    def __init__(self, server: TcprosServer) -> None:
        self._server = server
        self.number = next(self._numbers)
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
        """A service takes its time."""
        self._messages: deque[bytes] = deque()
        self.holds = 0
        """Bytes of it that are kept until they are complete and it is its turn."""
        self.owes = 0
        """Bytes of answers that it has not read."""

    @property
    def is_held_up(self) -> bool:
        """Whether it has said something and waits for its turn."""
        return bool(self._inbox)

    @property
    def has_unread(self) -> bool:
        """The same, also if it was not read yet."""
        sock = (
            None
            if self._transport is None
            else self._transport.get_extra_info("socket")
        )
        return self.is_held_up or has_unread(sock)

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer has come."""
        self._transport = cast(asyncio.Transport, transport)
        read_in_pieces(transport)
        self._outlet = Outlet(self._transport)
        self.source = source_of(Peer.of(transport).address)
        self.deadline = asyncio.get_running_loop().time() + HEADER_TIME
        self._server.comes(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
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
        """It does not read."""
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        """It reads again."""
        outlet = self._outlet
        if outlet is None:
            return
        outlet.resume()
        while self._messages and not outlet.is_full:
            self._write(self._messages.popleft())
        if self.owes:
            self._owe(outlet.unread)
        if not outlet.is_full:
            self._server.turns.wants(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        # a subscriber has nothing more to say
        if self.session.topic is not None:
            return
        self._inbox += data
        self._count()
        self._read_on()
        self._server.turns.wants(self)

    def _count(self) -> None:
        """Count what is kept of it."""
        held = len(self._inbox) + self.session.waiting
        self._server.hold(held - self.holds)
        self.holds = held

    def _let_go(self) -> None:
        self._inbox.clear()
        self._server.hold(-self.holds)
        self.holds = 0

    def give_up(self) -> None:
        """Drop it: it takes up too much of what all have together."""
        self._server.throttled_log.log(
            logging.WARNING,
            "ROS 1: a request of %s is given up: more than %d bytes of requests "
            "are not complete, most of them of it",
            self.source,
            MAX_HELD,
        )
        self._let_go()
        self.drop()

    def close(self) -> None:
        """End it when everything is written."""
        if self._outlet is not None:
            self._outlet.finish()

    def drop(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- its turn

    def turn(self) -> bool:
        """Greet a subscriber, or carry one request out."""
        session, outlet = self.session, self._outlet
        if (
            outlet is None
            or outlet.is_full
            or self._is_answering
            or not self._is_open()
        ):
            return False

        if not self._may_go_on():
            return False
        event = session.next_event()
        if event is None and self._inbox:
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
                "ROS 1: %s (%s) is refused: %s",
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
        """Whether its next request may be carried out now; else it is woken, and has
        time until then.
        """
        if self.session.service is None or self._server.may_answer(self):
            return True
        self.deadline = None
        return False

    def _is_open(self) -> bool:
        """Whether there is anything to be done for the peer."""
        return not (
            self._transport is None
            or self._transport.is_closing()
            or self.session.is_closing
        )

    def _settles(self) -> bool:
        """It has said what it wants: no stranger any more, if there is room."""
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
        """A request that has begun must end; the time for it begins with it."""
        if not self.session.is_waited_for:
            self.deadline = None
        elif self.deadline is None or was_answered:
            self.deadline = asyncio.get_running_loop().time() + REQUEST_TIME

    def _serve(self, service: Served, body: bytes) -> None:
        def answer(act: Callable[[], bytes | Future[bytes]]) -> None:
            try:
                found = act()
                if isinstance(found, Future):
                    self.deadline = None
                    self._answers(True)
                    found.add_done_callback(be_done)
                else:
                    self.session.answer(found)
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
        """Read from the peer as long as not too much of it waits."""
        if self._transport is None or self._transport.is_closing():
            return
        if len(self._inbox) > MAX_WAITING and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        elif len(self._inbox) <= MAX_WAITING and self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()

    # -- what is sent

    def no_delay(self) -> None:
        """Send small messages at once."""
        sock = (
            self._transport.get_extra_info("socket")
            if self._transport is not None
            else None
        )
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes, queue: int) -> None:
        """Send a message; while the peer is slow, at most `queue` wait, and the oldest
        is dropped for a new one.
        """
        outlet = self._outlet
        if outlet is None:
            return
        if not outlet.is_full:
            self._write(frame)
            return

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
        """Whether the peer has not read for too long."""
        return self._outlet is not None and self._outlet.stuck(now) > MAX_STUCK


class TcprosServer:
    """The port of a node.

    Parameters
    ----------
    host : str
        Address to listen on.
    name : str
        Of the node.
    topics, services : mapping
        What it offers, by absolute name; looked at when a peer has said what it wants.
    turns : TimeShare
        Shares time among all requests.

    Raises
    ------
    PortError
        The address is not ours.
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
        """Accept no more, and end those that are open; who does not read what was said
        last is given a moment.
        """
        if self._server is not None:
            self._server.close()
        else:
            self._socket.close()

        for one in (*self._strangers, *self._settled):
            one.deadline = asyncio.get_running_loop().time() + CLOSE_TIMEOUT_S
            one.close()

    # -- its connections

    def __len__(self) -> int:
        return len(self._strangers) + len(self._settled)

    def comes(self, one: Connection) -> None:
        """A connection is there."""
        gone = self._strangers.add(one)
        if gone is not None:
            gone.drop()
        if self._sweep is None:
            self._sweep_later()

    def settles(self, one: Connection) -> bool:
        """It has said what it wants; whether there is room for it."""
        if not (self._settled.has_room(one.source) and self._strangers.remove(one)):
            return False
        self._settled.add(one)
        return True

    def hold(self, more: int) -> None:
        """Count bytes that are kept. Too many: the longest of the address that has most
        of them is given up.
        """
        self._held += more
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
        """Whether its next request may be carried out; else it is woken when answers
        have been read.
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
        """Count services that take their time, and bytes of answers that are not read."""
        self._answering += Counter({one.source: answering})  # what is 0 goes
        self._unread += Counter({one.source: unread})
        self._all_unread += unread
        if self._for_room and (answering < 0 or unread < 0):
            for waits in [
                waits for waits in self._for_room if self._has_room(waits.source)
            ]:
                del self._for_room[waits]
                self.turns.wants(waits)

    def goes(self, one: Connection) -> None:
        """It is gone."""
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

        if len(self):
            self._sweep_later()


__all__ = ["SHARE", "Connection", "TcprosServer"]
