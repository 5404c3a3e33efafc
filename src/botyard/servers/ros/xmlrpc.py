"""XML-RPC over sockets: a server for anybody, and calls to others
(`botyard.protocols.tcpros.http` has the protocol).

Everything has a bound: connections, of each address and in all; the time for a call and
for taking its answer; the bytes of calls that are under way and of answers that are not
taken; and the part of the time that all calls together may take
(`botyard.servers.timeshare`).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, cast

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError, PortError
from botyard.interfaces.http_admission import Pool, source_of
from botyard.protocols.tcpros import http, xmlrpc
from botyard.protocols.tcpros.http import Call, Calls, HttpError
from botyard.servers.addresses import is_loopback
from botyard.servers.outlet import Outlet
from botyard.servers.sockets import has_unread, note_port, read_in_pieces, reason_of
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

CALL_TIMEOUT: Final = 3.0
"""Longest wait for an answer of a master or a node, s."""
MAX_CONNECTIONS: Final = 512
"""Most connections to a server."""
MAX_EACH: Final = 256
"""The same of one address (IPv6: one /64 network); beyond it the one that has been
silent for longest is dropped.
"""
CALL_TIME: Final = 30.0
"""Deadline of a call, from its first byte to its last, s."""
ANSWER_TIME: Final = 30.0
"""Deadline for the peer to read the answer, s."""
IDLE_TIME: Final = 600.0
"""Time-out of an idle connection (keep-alive), s."""
BYTES_PER_TURN: Final = 4096
"""Bytes of a call that are parsed in one turn."""
MAX_WAITING: Final = 64 << 10
"""Back-pressure: reading from a peer pauses while this many of its bytes are queued."""
MAX_UNDER_WAY: Final = 16 << 20
"""Most bytes of all unfinished calls to a server."""
MAX_ANSWER: Final = 32 << 20
"""Longest answer, bytes."""
LARGE_ANSWER: Final = 256 << 10
"""Size from which an answer counts as large, bytes."""
MAX_LARGE: Final = 2
"""Most large answers at a time for one address; its others wait."""
MAX_LARGE_SOURCES: Final = 8
"""Most addresses with large answers at a time."""
MAX_OWN_ANSWER: Final = 1 << 20
"""Longest accepted answer to our own calls, bytes."""
SWEEP_INTERVAL_S: Final = 0.5
"""Interval of checking deadlines, s."""
SHARE: Final = 0.1
"""Share of time for all XML-RPC calls together."""

log = logging.getLogger("botyard.ros")
_names = ThreadPoolExecutor(4, "botyard-names")
"""Looks up names of hosts: apart from the threads that read maps, as a name server may
keep them waiting for long.
"""


class Peer(NamedTuple):
    """Who calls.

    Attributes
    ----------
    address : str
        Its address; empty if it cannot be told.
    is_local : bool
        It is on this machine.
    """

    address: str
    is_local: bool

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> Peer:
        """The other end of a connection."""
        peer, own = (
            transport.get_extra_info("peername"),
            transport.get_extra_info("sockname"),
        )
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        here = str(own[0]) if isinstance(own, tuple) else ""
        return cls(address, bool(address) and (is_loopback(address) or address == here))


Answer = Callable[[str, tuple[Any, ...], Peer], Any]
"""Answers a call: its method, its arguments, and who calls."""


class _Rpc(asyncio.Protocol):
    """One connection to us."""

    def __init__(self, server: RpcServer) -> None:
        self._server = server
        self._calls = Calls()
        self._inbox = bytearray()
        self._under_way = 0
        self._pieces: Iterator[str] | None = None
        self._body = bytearray()
        self._is_large = self._is_reading_paused = self._is_ending = False
        self._transport: asyncio.Transport | None = None
        self._outlet: Outlet | None = None
        self.peer = Peer("", False)
        self.source = ""
        self.deadline: float | None = None
        self.fence = ErrorBarrier(log, "an XML-RPC call", self.drop)

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
        self._transport = cast(asyncio.Transport, transport)
        read_in_pieces(transport)
        self._outlet = Outlet(self._transport)
        self.peer = Peer.of(transport)
        self.source = source_of(self.peer.address)
        self._give(CALL_TIME)
        self._server.comes(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ending = True
        self._server.goes(self)
        self._let_go()

    def pause_writing(self) -> None:
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        if self._outlet is not None and self._outlet.resume():
            self._taken()

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        if self._calls.is_idle and not self._inbox:  # a call begins
            self._give(CALL_TIME)
        self._inbox += data
        self._read_on()
        self._server.turns.wants(self)

    # -- its turn

    def turn(self) -> bool:
        """Look at some bytes, or carry a call out, or say some of the answer."""
        outlet = self._outlet
        if self._is_ending or outlet is None:
            return False
        try:
            if self._pieces is not None:
                return self._say_more(self._pieces)
            # the next call when the last answer is taken
            if outlet.is_full:
                return False
            call = self._calls.next_call()
            if call is not None:
                self._obey(call)
                return True

            outlet.write(self._calls.interim())
            if self._calls.is_over:
                self._end()
                return False

            if self._inbox:
                self._take(bytes(self._inbox[:BYTES_PER_TURN]))
                return True
        except HttpError as error:
            self._server.throttled_log.log(
                logging.WARNING,
                "ROS 1: an XML-RPC connection of %s: %s",
                self.peer.address,
                error,
            )
            outlet.write(self._calls.refuse(error))
            self._end()

        return False

    def _take(self, piece: bytes) -> None:
        del self._inbox[: len(piece)]
        self._read_on()
        self._under_way += len(piece)
        self._server.under_way += len(piece)
        if self._server.under_way > MAX_UNDER_WAY:
            self._server.make_room()
        self._calls.receive(piece)

    @property
    def holds(self) -> int:
        """Bytes of a call of its that is under way."""
        return self._under_way

    def give_up(self) -> None:
        """Its call takes up too much of what all have together."""
        self._server.throttled_log.log(
            logging.WARNING,
            "ROS 1: a call of %s is given up: more than %d bytes of calls are "
            "under way, most of them of it",
            self.peer.address,
            MAX_UNDER_WAY,
        )
        self.drop()

    def _obey(self, call: Call) -> None:
        self._call_ends()
        try:
            self._pieces = xmlrpc.response(
                self._server.answer(call.method, call.args, self.peer)
            )
        except PeerError as error:
            raise HttpError(500, str(error)) from None

        self._give(ANSWER_TIME)

    def _say_more(self, pieces: Iterator[str]) -> bool:
        if len(self._body) > LARGE_ANSWER and not self._is_large:
            if not self._server.makes_large(self):
                # others have long answers; it is woken when they are done
                return False

            self._is_large = True

        try:
            piece = next(pieces, None)
        except PeerError as error:
            raise HttpError(500, str(error)) from None

        if piece is not None:
            self._body += piece.encode("utf-8", "replace")
            if len(self._body) > MAX_ANSWER:
                raise HttpError(500, f"an answer of more than {MAX_ANSWER} bytes")
            return True

        body, self._body, self._pieces = self._body, bytearray(), None
        assert self._outlet is not None
        for part in self._calls.answer(body):
            self._outlet.write(part)
        if not self._outlet.is_full:
            self._taken()
        return not self._outlet.is_full

    def _taken(self) -> None:
        """An answer is on its way."""
        if self._is_ending or self._pieces is not None:
            return
        self._let_large_go()
        self._server.touch(self)
        self._give(IDLE_TIME if self._calls.is_idle and not self._inbox else CALL_TIME)
        self._server.turns.wants(self)

    # -- its part

    def _give(self, seconds: float) -> None:
        self.deadline = asyncio.get_running_loop().time() + seconds

    def _read_on(self) -> None:
        """Read from the peer as long as not too much of it waits."""
        if self._transport is None or self._transport.is_closing():
            return
        if len(self._inbox) > MAX_WAITING and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        elif len(self._inbox) <= MAX_WAITING // 2 and self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def _call_ends(self) -> None:
        self._server.under_way -= self._under_way
        self._under_way = 0

    def _let_large_go(self) -> None:
        if self._is_large:
            self._is_large = False
            self._server.large_done(self)

    def _let_go(self) -> None:
        self._call_ends()
        self._let_large_go()
        self._inbox.clear()
        self._body.clear()
        self._pieces = None
        if self._outlet is not None:
            self._outlet.drop()
        self._server.turns.forget(self)

    def _end(self) -> None:
        """Close it when everything is written."""
        self._is_ending = True
        self._call_ends()
        self._inbox.clear()
        self._pieces = None
        self._body.clear()
        self._let_large_go()
        if self._outlet is not None:
            self._outlet.finish()
        self._give(CALL_TIMEOUT)

    def drop(self) -> None:
        """End it at once."""
        self._is_ending = True
        if self._transport is not None:
            self._transport.abort()


class RpcServer:
    """Answers XML-RPC calls on a port.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        TCP port; 0: any.
    answer : callable
        Answers a call; a `PeerError` ends the connection.
    turns : TimeShare
        Shares time among all calls.
    service : str
        The service that it belongs to, for errors.

    Raises
    ------
    PortError
        The address is not ours, or the port is taken.
    """

    def __init__(
        self,
        host: str,
        port: int,
        answer: Answer,
        turns: TimeShare,
        service: str = "ROS 1",
    ) -> None:
        self._socket = listening_socket(host, port, service)
        self.port: int = self._socket.getsockname()[1]
        self.answer = answer
        self.turns = turns
        self.throttled_log = ThrottledLog(log)
        self.under_way = 0
        self._connections: Pool[_Rpc] = Pool(MAX_CONNECTIONS, MAX_EACH)
        self._large: Counter[str] = Counter()
        self._for_large: deque[_Rpc] = deque()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    def make_room(self) -> None:
        """Calls that are under way take up too much: of the source that has most of
        them the longest is given up.

        So who holds bytes back is cut off, and not who comes with a short call.
        """
        held: dict[str, int] = {}
        for connection in self._connections:
            held[connection.source] = held.get(connection.source, 0) + connection.holds
        most = max(held, key=held.__getitem__)
        max(
            (c for c in self._connections if c.source == most), key=lambda c: c.holds
        ).give_up()

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Rpc(self), sock=self._socket)

    def close(self) -> None:
        """Accept no more, and end those that are open; who does not read what was said
        last is given a moment.
        """
        if self._server is not None:
            self._server.close()
        else:
            self._socket.close()

        for one in self._connections:
            one._end()

    # -- its connections

    def __len__(self) -> int:
        return len(self._connections)

    def comes(self, one: _Rpc) -> None:
        """A connection is there."""
        gone = self._connections.add(one)
        if gone is not None:
            self.throttled_log.log(
                logging.WARNING,
                "ROS 1: more XML-RPC connections than are served (%s)",
                gone.peer.address,
            )
            gone.drop()

        if self._sweep is None:
            self._sweep_later()

    def goes(self, one: _Rpc) -> None:
        """It is gone."""
        self._connections.remove(one)
        with contextlib.suppress(ValueError):
            self._for_large.remove(one)

    def touch(self, one: _Rpc) -> None:
        """It has said something: the others were silent for longer."""
        if self._connections.remove(one):
            self._connections.add(one)

    def makes_large(self, one: _Rpc) -> bool:
        """Whether it may make a long answer now; else it is woken when it may.

        Who does not read its answers holds up those at its own address only.
        """
        if not self._has_room(one.source):
            if one not in self._for_large:
                self._for_large.append(one)
            return False

        self._large[one.source] += 1
        return True

    def _has_room(self, source: str) -> bool:
        there = self._large.get(source, 0)
        return there < MAX_LARGE and (
            there > 0 or len(+self._large) < MAX_LARGE_SOURCES
        )

    def large_done(self, one: _Rpc) -> None:
        """A long answer is taken, or given up: the first of those who wait and have
        room now is woken.
        """
        self._large -= Counter({one.source: 1})
        following = next(
            (other for other in self._for_large if self._has_room(other.source)), None
        )
        if following is not None:
            self._for_large.remove(following)
            self.turns.wants(following)

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(
            SWEEP_INTERVAL_S, self._sweep_now
        )

    def _sweep_now(self) -> None:
        self._sweep = None
        for one in self._connections.overdue(asyncio.get_running_loop().time()):
            one.drop()
        if len(self._connections):
            self._sweep_later()


def listening_socket(host: str, port: int = 0, service: str = "ROS 1") -> socket.socket:
    """A bound socket, for a service.

    Raises
    ------
    PortError
        The address is not ours, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise PortError(
            f"cannot listen on {host}:{port} for {service}: {reason_of(error, port)}"
        ) from None

    note_port(bound, service)
    return bound


async def connected(
    host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a peer whose address somebody else has named.

    Raises
    ------
    OSError
        There is none.
    """
    try:
        ipaddress.ip_address(host)
        hosts = [host]
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            _names, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))

    last = OSError(f"no address for {host}")
    for one in hosts:
        try:
            return await asyncio.open_connection(one, port)
        except OSError as error:
            last = error

    raise last


async def converse(asking: http.ClientCall) -> tuple[Any, str]:
    """Make a call; what is answered, and the address that answered.

    Raises
    ------
    PeerError
        The peer cannot be reached, does not answer in time, or answers nonsense.
    """
    host, port = asking.address
    try:
        async with asyncio.timeout(CALL_TIMEOUT):
            reader, writer = await connected(host, port)
            try:
                peer = Peer.of(writer.transport)
                writer.write(asking.request)
                while not asking.is_complete:
                    asking.receive(await reader.read(16384))
                    # a long answer must not keep others waiting
                    await asyncio.sleep(0)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise PeerError(f"{asking.uri} does not answer") from None
    except (OSError, UnicodeError) as error:
        # UnicodeError: a host's name that is none
        raise PeerError(
            f"{asking.uri} cannot be reached: {getattr(error, 'strerror', None) or error}"
        ) from None

    return asking.value(), peer.address


async def ask(uri: str, method: str, *args: Any) -> tuple[Any, str]:
    """Call a method of a node or a master, see `converse`."""
    return await converse(http.ClientCall(uri, method, args, MAX_OWN_ANSWER))


async def call(uri: str, method: str, *args: Any) -> Any:
    """Call a method of a node or a master.

    Raises
    ------
    PeerError
        It cannot be reached, does not answer in time, or answers nonsense.
    """
    value, _ = await ask(uri, method, *args)
    return value


__all__ = [
    "MAX_OWN_ANSWER",
    "SHARE",
    "Answer",
    "Peer",
    "RpcServer",
    "ask",
    "call",
    "connected",
    "converse",
    "listening_socket",
]
