"""XML-RPC over sockets: a server for untrusted peers, and calls to peers.

`botyard.protocols.tcpros.http` has the protocol. Everything is bounded: connections,
for each address and in total; the time to send a call and to read its answer; the bytes
of calls in progress and of unread answers; and the share of time of all calls together
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
from typing import Any, Final

from botyard.errors import PeerError
from botyard.interfaces.http_admission import Pool
from botyard.protocols.tcpros import http, xmlrpc
from botyard.protocols.tcpros.http import Call, Calls, HttpError
from botyard.servers.outlet import Outlet
from botyard.servers.ros.peerserver import HoldingPeer, PeerServer
from botyard.servers.streampeer import Peer
from botyard.servers.timeshare import TimeShare

# This is long enough for a busy peer on a slow network, and short enough for a user who
# waits at the start.
CALL_TIMEOUT: Final = 3.0
"""Longest wait for an answer of a master or a node, s."""
MAX_CONNECTIONS: Final = 512
"""Maximum number of connections to a server."""
MAX_EACH: Final = 256
"""Maximum number of connections from one address (IPv6: one /64 network).

A further connection displaces the one that was silent for longest.
"""
CALL_TIME: Final = 30.0
"""Deadline of a call, from its first byte to its last, s."""
ANSWER_TIME: Final = 30.0
"""Deadline for the peer to read the answer, s."""
# Python's XML-RPC clients keep their connection open between calls.
IDLE_TIME: Final = 600.0
"""Timeout of an idle connection (keep-alive), s."""
MAX_UNDER_WAY: Final = 16 << 20
"""Maximum number of bytes of all unfinished calls to a server."""
MAX_ANSWER: Final = 32 << 20
"""Maximum length of an answer, bytes."""
# Most answers are shorter, and then need no place in a queue.
LARGE_ANSWER: Final = 256 << 10
"""Size from which an answer counts as large, bytes."""
MAX_LARGE: Final = 2
"""Maximum number of concurrent large answers for one address; more of them wait."""
MAX_LARGE_SOURCES: Final = 8
"""Maximum number of addresses with large answers in progress."""
MAX_OWN_ANSWER: Final = 1 << 20
"""Maximum length of a peer's answer to a call from this simulator, bytes."""
SHARE: Final = 0.1
"""Share of time for all XML-RPC calls together."""

log = logging.getLogger("botyard.ros")
# Use four threads, so that one unresponsive name server does not block all other
# look-ups.
_names = ThreadPoolExecutor(4, "botyard-names")
"""Threads that look up host names.

They are separate from the threads that read maps, because a name server may block them
for long.
"""


Answer = Callable[[str, tuple[Any, ...], Peer], Any]
"""Function from a call's method, arguments and peer to its answer."""


class _Rpc(HoldingPeer):
    """Incoming connection of a peer that makes XML-RPC calls."""

    message = "call"

    def __init__(self, server: RpcServer) -> None:
        super().__init__(server, "an XML-RPC call")
        self._server = server
        self._calls = Calls()
        self._pieces: Iterator[str] | None = None
        self._body = bytearray()
        self._is_large = False

    def opened(self) -> None:
        """Register a new connection."""
        self.give(CALL_TIME)
        self._server.add_connection(self)

    def closed(self) -> None:
        """Remove the connection."""
        self._server.remove_connection(self)
        self._let_go_of_call()

    def data_received(self, data: bytes) -> None:
        """Process received bytes (callback of `asyncio.Protocol`)."""
        # The first byte of a call starts its deadline.
        if not self.is_leaving and self._calls.is_idle and not self.inbox:
            self.give(CALL_TIME)
        super().data_received(data)

    def drained(self) -> None:
        """Wait for the next call after the peer has read the answer."""
        # The answer is still being encoded, so the peer has read only a part of it.
        if self.is_leaving or self._pieces is not None:
            return
        self._let_large_go()
        # A connection that completes calls is the last to be displaced.
        self._server.touch(self)
        # The next call may have arrived while the last one was answered.
        self.give(IDLE_TIME if self._calls.is_idle and not self.inbox else CALL_TIME)
        super().drained()

    # -- time slices of this connection

    def turn(self) -> bool:
        """Parse some bytes, run a call, or encode a part of its answer.

        Returns
        -------
        bool
            Whether to take another turn.
        """
        outlet = self.outlet
        if self.is_leaving or outlet is None:
            return False

        try:
            if self._pieces is not None:
                return self._say_more(self._pieces, outlet)
            # The next call runs after the peer has read the last answer.
            if outlet.is_full:
                return False
            call = self._calls.next_call()
            if call is not None:
                self._obey(call)
                return True

            # A client that sends "Expect: 100-continue" waits for this before it sends
            # the body.
            outlet.write(self._calls.interim())
            if self._calls.is_over:
                self.finish()
                return False

            # `super().turn` passes a piece of the inbox to `on_bytes`. If the piece completes a
            # call, the call runs in the next turn.
            return bool(self.inbox) and (super().turn() or True)
        except HttpError as error:
            self._server.throttled_log.log(
                logging.WARNING,
                "ROS 1: an XML-RPC connection of %s: %s",
                self.peer.address,
                error,
            )
            outlet.write(self._calls.refuse(error))
            self.finish()

        return False

    def on_bytes(self, data: bytes) -> None:
        """Parse a piece of a call."""
        # Count the bytes before parsing, because the parsed values take at least as
        # much memory.
        self.hold(self.holds + len(data))
        self._calls.feed_bytes(data)

    def _obey(self, call: Call) -> None:
        self.hold(0)
        try:
            self._pieces = xmlrpc.response(
                self._server.answer(call.method, call.args, self.peer)
            )
        except PeerError as error:
            raise HttpError(500, str(error)) from None

        self.give(ANSWER_TIME)

    def _say_more(self, pieces: Iterator[str], outlet: Outlet) -> bool:
        # The size is known only while the answer is encoded, so it is checked during
        # encoding.
        if len(self._body) > LARGE_ANSWER and not self._is_large:
            if not self._server.makes_large(self):
                # Too many large answers are in progress; `large_done` wakes this
                # connection.
                return False

            self._is_large = True

        try:
            # An answer is encoded in pieces, so that a long one does not block the
            # event loop.
            piece = next(pieces, None)
        except PeerError as error:
            raise HttpError(500, str(error)) from None

        if piece is not None:
            self._body += piece.encode("utf-8", "replace")
            # Answers list registrations of peers, so their length is not under local
            # control.
            if len(self._body) > MAX_ANSWER:
                raise HttpError(
                    500,
                    f"expected an answer of at most {MAX_ANSWER} bytes, found a "
                    "longer one",
                )
            return True

        body, self._body, self._pieces = self._body, bytearray(), None
        # The length in the HTTP header is known only now.
        for part in self._calls.answer(body):
            outlet.write(part)
        # No event follows when the system has accepted all bytes at once.
        if not outlet.is_full:
            self.drained()
        return not outlet.is_full

    # -- limits

    def _let_large_go(self) -> None:
        if self._is_large:
            self._is_large = False
            self._server.large_done(self)

    def _let_go_of_call(self) -> None:
        self.hold(0)
        self._let_large_go()
        self._body.clear()
        self._pieces = None

    def finish(self, seconds: float | None = None) -> None:
        """Close the connection after all data is written.

        Parameters
        ----------
        seconds : float, optional
            Longest time to write, s; by default `CLOSE_TIMEOUT_S`.
        """
        self._let_go_of_call()
        super().finish(seconds)


class RpcServer(PeerServer[_Rpc]):
    """XML-RPC server on a port.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        TCP port; 0: a free one.
    answer : callable
        Answers a call; a `PeerError` ends the connection.
    turns : TimeShare
        Share of time for all calls.
    service : str
        Name of the service, for errors.

    Raises
    ------
    PortError
        The address does not belong to this machine, or the port is taken.
    """

    def __init__(
        self,
        host: str,
        port: int,
        answer: Answer,
        turns: TimeShare,
        service: str = "ROS 1",
    ) -> None:
        self._connections: Pool[_Rpc] = Pool(MAX_CONNECTIONS, MAX_EACH)
        super().__init__(host, port, service, turns, self._connections)
        self.answer = answer
        self._large: Counter[str] = Counter()
        self._for_large: deque[_Rpc] = deque()

    @property
    def max_held(self) -> int:
        """Maximum number of bytes of all unfinished calls."""
        return MAX_UNDER_WAY

    def accepted(self) -> _Rpc:
        """Return an asyncio protocol for a new connection."""
        return _Rpc(self)

    # -- connections

    def add_connection(self, one: _Rpc) -> None:
        """Add a connection."""
        gone = self._connections.add(one)
        if gone is not None:
            self.throttled_log.log(
                logging.WARNING,
                "ROS 1: too many XML-RPC connections: dropped a connection of %s",
                gone.peer.address,
            )
            gone.drop()

    def remove_connection(self, one: _Rpc) -> None:
        """Remove a connection."""
        self._connections.remove(one)
        with contextlib.suppress(ValueError):
            self._for_large.remove(one)

    def touch(self, one: _Rpc) -> None:
        """Mark a connection as active, so that others count as silent for longer."""
        if self._connections.remove(one):
            self._connections.add(one)

    def makes_large(self, one: _Rpc) -> bool:
        """Return whether a connection may make a large answer now.

        A peer that does not read its answers delays only peers at its own address.

        Parameters
        ----------
        one : _Rpc
            Connection with a large answer. If it may not, `large_done` wakes it later;
            if it may, call `large_done` when the answer was read or dropped.
        """
        if not self._has_room(one.source):
            # Each turn of a waiting connection asks again.
            if one not in self._for_large:
                self._for_large.append(one)
            return False

        self._large[one.source] += 1
        return True

    def _has_room(self, source: str) -> bool:
        # A source that has large answers already does not count as another source.
        there = self._large.get(source, 0)
        return there < MAX_LARGE and (
            there > 0 or len(+self._large) < MAX_LARGE_SOURCES
        )

    def large_done(self, one: _Rpc) -> None:
        """Wake the next connection after a large answer was read or dropped.

        Parameters
        ----------
        one : _Rpc
            Connection for which `makes_large` was True.
        """
        self._large -= Counter({one.source: 1})
        following = next(
            (other for other in self._for_large if self._has_room(other.source)), None
        )
        if following is not None:
            # Wake one connection only: each finished answer makes room for one.
            self._for_large.remove(following)
            self.turns.wants(following)


async def connected(
    host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a peer whose address another peer has named.

    Parameters
    ----------
    host : str
        Host name or address.
    port : int
        TCP port of the peer.

    Raises
    ------
    OSError
        The peer cannot be reached.
    """
    try:
        # A numeric address needs no resolver thread.
        ipaddress.ip_address(host)
        hosts = [host]
    except ValueError:
        # The default resolver of asyncio shares its threads with other work.
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            _names, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        # Without duplicates, in the order of preference of the system.
        hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))

    # This error is raised if the name has no address: the loop below then has no error
    # to report.
    last = OSError(f"host {host} has no address")
    # A host may have an IPv6 address although its node listens on IPv4 only.
    for one in hosts:
        try:
            return await asyncio.open_connection(one, port)
        except OSError as error:
            last = error

    raise last


async def converse(asking: http.ClientCall) -> tuple[Any, str]:
    """Make a call; return the answer and the address that answered.

    Parameters
    ----------
    asking : ClientCall
        Call with the address of the peer.

    Raises
    ------
    PeerError
        The peer cannot be reached, does not answer in time, or sends an invalid answer.
    """
    host, port = asking.address
    try:
        # One timeout covers the whole call: a peer must not prolong it with single
        # bytes.
        async with asyncio.timeout(CALL_TIMEOUT):
            reader, writer = await connected(host, port)

            try:
                peer = Peer.of(writer.transport)
                writer.write(asking.request)
                while not asking.is_complete:
                    asking.feed_bytes(await reader.read(16384))
                    # Parsing a long answer must not block the event loop.
                    await asyncio.sleep(0)
            finally:
                # Abort instead of close: an unresponsive peer must not keep the socket
                # open.
                writer.transport.abort()
    except TimeoutError:
        raise PeerError(f"{asking.uri} does not answer") from None
    except (OSError, UnicodeError) as error:
        # UnicodeError: the name is not a valid host name.
        raise PeerError(
            f"{asking.uri} cannot be reached: {getattr(error, 'strerror', None) or error}"
        ) from None

    return asking.value(), peer.address


async def ask(uri: str, method: str, *args: Any) -> tuple[Any, str]:
    """Call a method of a node or a master; see `converse`.

    Parameters
    ----------
    uri : str
        URI of the node or master.
    method : str
        Name of the method.
    *args : object
        Its arguments.

    Returns
    -------
    value : object
        Result of the call.
    address : str
        IP address of the peer that has answered.
    """
    return await converse(http.ClientCall(uri, method, args, MAX_OWN_ANSWER))


async def call(uri: str, method: str, *args: Any) -> Any:
    """Call a method of a node or a master, and return the answer.

    Parameters
    ----------
    uri : str
        URI of the node or master.
    method : str
        Name of the method.
    *args : object
        Its arguments.

    Raises
    ------
    PeerError
        The peer cannot be reached, does not answer in time, or sends an invalid answer.
    """
    value, _ = await ask(uri, method, *args)
    return value


__all__ = [
    "MAX_OWN_ANSWER",
    "SHARE",
    "Answer",
    "RpcServer",
    "ask",
    "call",
    "connected",
    "converse",
]
