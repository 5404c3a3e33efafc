"""Carries the sans-I/O sessions of an interface over TCP and UDP
(`botyard.interfaces.interface`): limits, budgets, back pressure.

What a client has sent passes an inlet (`botyard.servers.pioneer.intake`): one that
floods waits for itself. Sessions are called through a fence: an exception ends that
connection and nothing else. A client that does not read is not read from, and its
session is asked for nothing and told of no further steps, until it has read; one that
lets too much lie, or for too long, is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Protocol, cast

from botyard.control import Control
from botyard.control.driving import client_left
from botyard.control.error_barrier import ErrorBarrier, call_all_suppressing
from botyard.errors import NotNowError, PortError, WorldError
from botyard.interfaces.http_admission import source_of
from botyard.interfaces.interface import Datagrams, Door, Interface, Session, caller_of
from botyard.names import shown
from botyard.protocols.tokenbucket import RateLimit
from botyard.servers.hub import Hub
from botyard.servers.outlet import Outlet
from botyard.servers.pioneer.intake import Inlet
from botyard.servers.sockets import (
    MAX_STUCK,
    has_hung_up,
    keep_alive,
    note_port,
    reason_of,
)
from botyard.servers.throttledlog import ThrottledLog, ThrottledLogAdapter

MAX_UNREAD: Final = 1 << 20
"""Most unread bytes of a client; beyond that it is disconnected."""
MIN_TIMER_S: Final = 0.001
"""Shortest timer of a session, s, so that one that is always due does not take the time
of others.
"""
MAX_DATAGRAM: Final = 8192
"""Longest datagram, bytes; longer ones are dropped."""
MAX_ANSWERS: Final = 16
"""Most answers to one datagram."""
MAX_VISIT_LINES: Final = 20
"""Burst of log lines about connecting clients; the sustained rate is one per second."""

log = logging.getLogger("botyard.interfaces")


class Client(Protocol):
    """A connection, as its pump sees it."""

    @property
    def source(self) -> str:
        """Its address."""
        ...

    def stepped(self, now: float) -> None:
        """A step is done."""
        ...

    def cut(self) -> None:
        """End it at once."""
        ...


class Pump(ABC):
    """Carries an interface on one port.

    Parameters
    ----------
    interface : Interface
        What is carried.
    options : mapping of str to object
        All of its options (`Interface.chosen`).
    hub, control : Hub, Control
        The running simulator, and the door to it.

    Attributes
    ----------
    kind : SocketKind
        The kind of the port.
    """

    kind = socket.SOCK_STREAM

    def __init__(
        self,
        interface: Interface,
        options: Mapping[str, Any],
        hub: Hub,
        control: Control,
    ) -> None:
        self.interface = interface
        self.hub = hub
        self.control = control
        self.visits = ThrottledLog(log, MAX_VISIT_LINES)
        """Connections that come: anybody can make any number of them …"""
        self.refusals = ThrottledLog(log)
        """… those that are refused, or cut off …"""
        self.faults = ThrottledLogAdapter(log)
        """… and exceptions of sessions."""
        self.clients: list[Client] = []
        self.address = ("", 0)
        """Where it listens."""
        self.is_open = False
        self._options = options

    async def start(self, host: str, port: int) -> None:
        """Listen; closed again if it is stopped meanwhile.

        Raises
        ------
        NotNowError
            It listens already.
        PortError
            The port cannot be had.
        WorldError
            What answers cannot be made.
        """
        name = self.interface.name
        if self.is_open:
            raise NotNowError(
                f"interface {name}: it is started already, on port {self.address[1]}"
            )

        self.is_open = True
        try:
            address = await self._listen(host, port)
        except OSError as error:
            self.is_open = False
            raise PortError(
                f"interface {name}: cannot listen on port {port} of {host}: "
                f"{reason_of(error, port, self.kind)}"
            ) from None
        except BaseException:
            self.is_open = False
            raise

        if not self.is_open:
            await self._close()
            return

        self.address = address
        self.hub.attach(self)

    async def stop(self) -> None:
        """Close the port, and disconnect the clients."""
        if not self.is_open:
            return
        self.is_open = False
        self.hub.detach(self)
        for client in tuple(self.clients):
            client.cut()
        await self._close()
        self.address = ("", 0)

    @abstractmethod
    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        """Open the port; host and port that it has."""

    @abstractmethod
    async def _close(self) -> None:
        """Close it."""

    def made(
        self, peer: str, key: object, wake: Callable[[], None] = lambda: None
    ) -> Any:
        """A session, or what answers all."""
        assert self.interface.session is not None
        source = str(getattr(key, "source", peer))
        door = Door(
            self.control,
            caller_of(self.interface, peer, key),
            self._options,
            wake,
            self.warn,
            source,
        )
        return self.interface.session(door)

    def answerer(self, kind: str) -> Any:
        """What answers all.

        Raises
        ------
        WorldError
            It cannot be made.
        """
        try:
            return self.made(kind, self)
        except Exception as error:
            # whatever a stranger's code does
            raise WorldError(
                f"interface {self.interface.name}: cannot be started: {shown(repr(error), 300)}"
            ) from error

    def warn(self, text: str) -> None:
        """Write a line into the log, in the interface's name."""
        self.refusals.log(
            logging.WARNING, "%s: %s", self.interface.name, shown(text, 300)
        )

    def fence(self, what: str, end: Callable[[], object] | None = None) -> ErrorBarrier:
        """Through which what belongs to the interface is called."""
        return ErrorBarrier(
            self.faults, f"interface {self.interface.name}: {what}", end
        )

    def has_room(self, source: str) -> bool:
        """Whether a client of an address may come."""
        most = self.interface.clients
        return (
            self.is_open
            and len(self.clients) < most
            and sum(c.source == source for c in self.clients) < max(1, most // 2)
        )

    def refused(self, peer: str) -> None:
        """A client was not let in."""
        self.warn(f"client {peer} refused: there are too many")

    def over(self, client: Client, session: Session | None) -> None:
        """Nothing of a client is left, whatever its session does."""
        with contextlib.suppress(ValueError):
            self.clients.remove(client)
        if session is not None:
            self.fence("the end of a client").run(session.close)
        client_left(self.control, cast(Hashable, client))

    def on_snapshot(self, now: float) -> None:
        """A step is done."""
        for client in tuple(self.clients):
            client.stepped(now)


def bytes_of(session: Session) -> bytes:
    """What a session has to send.

    Raises
    ------
    TypeError
        It says something else.
    """
    return as_bytes(session.data_to_send())


def as_bytes(found: object) -> bytes:
    """What a session gave to be sent.

    Raises
    ------
    TypeError
        It is not bytes.
    """
    if not isinstance(found, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"data_to_send: expected bytes, found {shown(repr(found), 100)}"
        )

    return bytes(found)


def timer_of(session: Session, now: float) -> float | None:
    """When a session is to be called again, on the clock of the event loop, s; None:
    never.

    Raises
    ------
    TypeError
        It says something else, such as a number that is none: the loop sorts by these
        times.
    """
    when = session.next_timer()
    if when is None or when == math.inf:
        return None
    if not isinstance(when, (int, float)) or math.isnan(when):
        raise TypeError(
            f"next_timer: expected a time or None, found {shown(repr(when), 100)}"
        )

    return max(float(when), now + MIN_TIMER_S)


class TcpPump(Pump):
    """A TCP port, and a session for each client."""

    _server: asyncio.Server | None = None

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: TcpClient(self), host, port
        )
        note_port(self._server, f"interface {self.interface.name}")
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return address

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await asyncio.sleep(0)  # connections hear of their end


class TcpClient(asyncio.Protocol):
    """One connection."""

    def __init__(self, pump: TcpPump) -> None:
        self._pump = pump
        self._loop = asyncio.get_running_loop()
        self._fence = pump.fence("a client", self.cut)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._inlet: Inlet | None = None
        self._outlet: Outlet | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_woken = False
        self._pauses: set[str] = set()
        """Why nothing is read from it."""
        self.peer = self.source = "?"

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._fence.run(self._made)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._inlet is not None:
            self._inlet.take(data)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._outlet is not None and self._outlet.resume():
            self._resume("unread")
            self._fence.run(self._flush)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._pump.hub.intake.soon(self._leave)

    # -- inside the fence

    def _made(self) -> None:
        transport, pump = self._transport, self._pump
        assert transport is not None
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.source = source_of(str(peer[0])) if peer else "?"
        if not pump.has_room(self.source):
            # else it was accepted in the moment of its end
            if pump.is_open:
                pump.refused(self.peer)
            transport.abort()
            return

        keep_alive(transport.get_extra_info("socket"))
        pump.clients.append(self)
        pump.visits.log(
            logging.INFO, "%s: client %s connected", pump.interface.name, self.peer
        )
        self._outlet = Outlet(transport)
        self._inlet = Inlet(
            pump.hub.intake,
            self._work,
            lambda: self._pause("intake"),
            lambda: self._resume("intake"),
            self._has_hung_up,
            self.cut,
            rate=pump.interface.byte_rate,
            cost=pump.interface.work_share,
        )
        self._session = pump.made(self.peer, self, self.wake)
        self._flush()

    def _work(self, data: bytes) -> None:
        self._fence.run(self._receive, data)

    def _receive(self, data: bytes) -> None:
        if self._session is not None and not self._session.is_closed:
            self._session.receive_data(data, self._loop.time())
            self._flush()

    def wake(self) -> None:
        """The session has something to send."""
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._fence.run, self._woken)

    def _woken(self) -> None:
        self._is_woken = False
        self._flush()

    def stepped(self, now: float) -> None:
        """A step is done."""
        self._fence.run(self._stepped, now)

    def _stepped(self, now: float) -> None:
        if self._session is None or self._outlet is None:
            return
        if self._outlet.is_full:
            if self._outlet.stuck(now) > MAX_STUCK:
                self._cut_off(f"it has not read for {MAX_STUCK:g} s")
            return

        if not self._session.is_closed:
            self._session.on_snapshot(now)
        self._flush()

    def _flush(self) -> None:
        """Send what there is, and see when to come again."""
        session, outlet, transport = self._session, self._outlet, self._transport
        if (
            session is None
            or outlet is None
            or transport is None
            or transport.is_closing()
        ):
            return

        self._stop_timer()
        if not outlet.is_full:
            outlet.write(bytes_of(session))
            if outlet.unread > MAX_UNREAD:
                self._cut_off(f"{outlet.unread} bytes lie unread")
                return

            if session.is_closed:
                outlet.finish()
                return

            self._hold_up(outlet)

        when = timer_of(session, self._loop.time())
        if when is not None:
            self._timer = self._loop.call_at(when, self._fence.run, self._on_timer)

    def _hold_up(self, outlet: Outlet) -> None:
        """Nothing is read from one that does not read."""
        if outlet.is_full:
            self._pause("unread")

    def _on_timer(self) -> None:
        self._timer = None
        if self._session is not None:
            self._session.handle_timer(self._loop.time())
            self._flush()

    def _pause(self, why: str) -> None:
        self._pauses.add(why)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self, why: str) -> None:
        self._pauses.discard(why)
        if (
            not self._pauses
            and self._transport is not None
            and not self._transport.is_closing()
        ):
            self._transport.resume_reading()

    def _has_hung_up(self) -> bool:
        sock = (
            None
            if self._transport is None
            else self._transport.get_extra_info("socket")
        )
        return sock is None or has_hung_up(sock.fileno())

    # -- the end

    def _cut_off(self, why: str) -> None:
        self._pump.warn(f"client {self.peer} is cut off: {why}")
        self.cut()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cut(self) -> None:
        """End the connection at once."""
        call_all_suppressing(
            self._leave,
            lambda: self._transport.abort() if self._transport is not None else None,
        )

    def _leave(self) -> None:
        """Nothing of it is left, whatever its session does."""
        self._stop_timer()
        session, self._session = self._session, None
        if self._inlet is not None:
            self._inlet.close()
        self._pump.over(self, session)


class UdpPump(Pump, asyncio.DatagramProtocol):
    """A UDP port, and one for all who send to it."""

    kind = socket.SOCK_DGRAM
    _transport: asyncio.DatagramTransport | None = None

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        self._datagrams: Datagrams = self.answerer("UDP")
        rate = self.interface.rate
        self._limit = RateLimit(rate, max(1.0, rate))
        self._fence = self.fence("a datagram")
        loop = asyncio.get_running_loop()
        if not self.interface.is_broadcast:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: self, (host, port)
            )
        else:
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                sock.setsockopt(
                    socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
                )  # a client on this machine binds the port too
                sock.setblocking(False)
                sock.bind(("0.0.0.0", port))
                transport, _ = await loop.create_datagram_endpoint(
                    lambda: self, sock=sock
                )
            except BaseException:
                sock.close()
                raise

        note_port(transport, f"interface {self.interface.name}")
        address: tuple[str, int] = transport.get_extra_info("socket").getsockname()[:2]
        return address

    async def _close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            await asyncio.sleep(0)  # its port is free then

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer one."""
        self._fence.run(self._received, data, addr)

    def _received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        now, source = asyncio.get_running_loop().time(), str(addr[0])
        if (
            self._transport is None
            or len(data) > MAX_DATAGRAM
            or not self._limit.allows(source_of(source), now)
        ):
            return

        for _, answer in zip(
            range(MAX_ANSWERS),
            self._datagrams.receive_datagram(data, source, now),
            strict=False,
        ):
            # a source that cannot be reached
            with contextlib.suppress(OSError):
                self._transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        """A datagram of ours was not taken: nothing to be done."""


__all__ = [
    "MAX_ANSWERS",
    "MAX_DATAGRAM",
    "MAX_UNREAD",
    "Client",
    "Pump",
    "TcpClient",
    "TcpPump",
    "UdpPump",
    "as_bytes",
    "bytes_of",
    "timer_of",
]
