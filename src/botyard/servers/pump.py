"""Carries the sans-I/O sessions of an interface over TCP and UDP (`botyard.interfaces.registry`): limits, budgets, back pressure.

What a client has sent passes an inlet (`botyard.servers.intake`): one that floods waits for itself. Sessions are called through a fence:
an exception ends that connection and nothing else. A client that does not read is not read from, and is told of no further steps, until
it has read; one that lets too much lie, or for too long, is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

from botyard.control import Control
from botyard.control.driving import leave
from botyard.control.fence import Fence, end_all
from botyard.errors import PortError, WorldError
from botyard.interfaces.registry import Carrier, Datagrams, Door, Interface, Session, caller_of
from botyard.protocols.tokenbucket import RateLimit
from botyard.servers.gate import source_of
from botyard.servers.hub import Hub
from botyard.servers.intake import Inlet
from botyard.servers.outlet import Outlet
from botyard.servers.seldom import Seldom
from botyard.servers.tcp import MAX_STUCK, has_hung_up, keep_alive

MAX_UNREAD: Final = 1 << 20
"""A client that lets more bytes lie unread than so many is cut off."""
SHORTEST_TIMER: Final = 0.001
"""A session's timer ends no earlier than so long from when it is looked at, s."""
MAX_DATAGRAM: Final = 8192
"""Longer datagrams are lost, bytes."""
MAX_ANSWERS: Final = 16
"""Datagrams that answer one."""

VISITS: Final = 20
"""Lines of the log about clients that come, at once; then one a second."""

log = logging.getLogger("botyard.interfaces")


class Pump(Protocol):
    """Carries an interface."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        ...

    async def start(self, host: str, port: int) -> None:
        """Listen; PortError when the port cannot be had."""
        ...

    async def stop(self) -> None:
        """Listen no longer; clients are disconnected."""
        ...


class TcpPump:
    """A TCP port, and a session for each client.

    Parameters
    ----------
    interface : Interface
        Whose sessions.
    options : mapping of str to object
        All of its options (`Interface.chosen`).
    hub, control : Hub, Control
        The running simulator, and the door to it.
    """

    def __init__(self, interface: Interface, options: Mapping[str, Any], hub: Hub, control: Control) -> None:
        self.interface = interface
        self.hub = hub
        self.control = control
        self.visits = Seldom(log, VISITS)
        """Connections that come: anybody can make any number of them …"""
        self.refusals = Seldom(log)
        """… and those that are refused, or cut off."""
        self.clients: list[_Client] = []
        self.address = ("", 0)
        self._options = options
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises
        ------
        PortError
            The port cannot be had.
        """
        try:
            self._server = await asyncio.get_running_loop().create_server(lambda: _Client(self), host, port)
        except OSError as error:
            raise PortError(
                f"{self.interface.name}: cannot listen on port {port} of {host}: {error.strerror}"
            ) from None
        self.address = self._server.sockets[0].getsockname()[:2]
        self.hub.attach(self)

    async def stop(self) -> None:
        """Listen no longer; clients are disconnected."""
        self.hub.detach(self)
        if self._server is not None:
            self._server.close()
        for client in tuple(self.clients):
            client.cut()
        self.address = ("", 0)
        await asyncio.sleep(0)  # connections hear of their end

    def session(self, client: _Client) -> Session:
        """A new client's session."""
        assert self.interface.session is not None
        caller = caller_of(self.interface, client.peer, client)
        return cast(Session, self.interface.session(Door(self.control, caller, self._options)))

    def has_room(self, source: str) -> bool:
        """Whether a client of an address may come."""
        most = self.interface.clients
        return len(self.clients) < most and sum(c.source == source for c in self.clients) < max(1, most // 2)

    def on_snapshot(self, now: float) -> None:
        """A step is done."""
        for client in tuple(self.clients):
            client.stepped(now)


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, pump: TcpPump) -> None:
        self._pump = pump
        self._loop = asyncio.get_running_loop()
        self._fence = Fence(log, f"a client of {pump.interface.name}", self.cut)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._inlet: Inlet | None = None
        self._outlet: Outlet | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pauses: set[str] = set()
        """Why nothing is read from it."""
        self.peer = self.source = "?"

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._fence.run(self._made)

    def data_received(self, data: bytes) -> None:
        if self._inlet is not None:
            self._inlet.take(data)

    def pause_writing(self) -> None:
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        if self._outlet is not None and self._outlet.resume():
            self._resume("unread")

    def connection_lost(self, exc: Exception | None) -> None:
        self._pump.hub.intake.soon(self._leave)

    # -- inside the fence

    def _made(self) -> None:
        transport, pump = self._transport, self._pump
        assert transport is not None
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.source = source_of(str(peer[0])) if peer else "?"
        if not pump.has_room(self.source):
            pump.refusals.log(
                logging.WARNING, "%s: client %s refused: there are too many", pump.interface.name, self.peer
            )
            transport.abort()
            return
        keep_alive(transport.get_extra_info("socket"))
        pump.clients.append(self)
        pump.visits.log(logging.INFO, "%s: client %s connected", pump.interface.name, self.peer)
        self._outlet = Outlet(transport)
        self._inlet = Inlet(
            pump.hub.intake, self._work, lambda: self._pause("intake"), lambda: self._resume("intake"), self._has_hung_up, self.cut
        )  # fmt: skip
        self._session = pump.session(self)
        self._flush()

    def _work(self, data: bytes) -> None:
        if self._session is not None and not self._session.is_closed:
            self._session.receive_data(data, self._loop.time())
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
        self._session.on_snapshot(now)
        self._flush()

    def _flush(self) -> None:
        """Send what there is, and see when to come again."""
        session, outlet, transport = self._session, self._outlet, self._transport
        if session is None or outlet is None or transport is None or transport.is_closing():
            return
        outlet.write(session.data_to_send())
        if outlet.unread > MAX_UNREAD:
            self._cut_off(f"{outlet.unread} bytes lie unread")
            return
        if session.is_closed:
            self._stop_timer()
            outlet.finish()
            return
        if outlet.is_full:
            self._pause("unread")
        self._stop_timer()
        when = session.next_timer()
        if when is not None:
            self._timer = self._loop.call_at(
                max(when, self._loop.time() + SHORTEST_TIMER), self._fence.run, self._on_timer
            )

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
        if not self._pauses and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _has_hung_up(self) -> bool:
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        return sock is None or has_hung_up(sock.fileno())

    # -- the end

    def _cut_off(self, why: str) -> None:
        self._pump.refusals.log(
            logging.WARNING, "%s: client %s is cut off: %s", self._pump.interface.name, self.peer, why
        )
        self.cut()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cut(self) -> None:
        """End the connection at once."""
        end_all(self._leave, lambda: self._transport.abort() if self._transport is not None else None)

    def _leave(self) -> None:
        """Nothing of it is left, whatever its session does."""
        self._stop_timer()
        session, self._session = self._session, None
        with contextlib.suppress(ValueError):
            self._pump.clients.remove(self)
        if self._inlet is not None:
            self._inlet.close()
        if session is not None:
            Fence(log, f"the end of a client of {self._pump.interface.name}").run(session.close)
        leave(self._pump.control, self)


class UdpPump(asyncio.DatagramProtocol):
    """A UDP port, and one for all who send to it.

    Parameters
    ----------
    name : str
        Whose, for the log.
    datagrams : Datagrams
        What answers.
    rate : float
        Datagrams of one address that are looked at, 1/s; others are lost.
    """

    def __init__(self, name: str, datagrams: Datagrams, rate: float) -> None:
        self._name = name
        self._datagrams = datagrams
        self._limit = RateLimit(rate, max(1.0, rate))
        self._fence = Fence(log, f"a datagram to {name}")
        self._transport: asyncio.DatagramTransport | None = None
        self.address = ("", 0)

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises
        ------
        PortError
            The port cannot be had.
        """
        try:
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, (host, port))
        except OSError as error:
            raise PortError(f"{self._name}: cannot listen on UDP port {port} of {host}: {error.strerror}") from None

    async def stop(self) -> None:
        """Listen no longer."""
        self.close()

    def close(self) -> None:
        """Listen no longer."""
        if self._transport is not None:
            self._transport.close()
            self._transport, self.address = None, ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)
        sock = transport.get_extra_info("socket")
        self.address = sock.getsockname()[:2] if sock is not None else ("", 0)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer one."""
        self._fence.run(self._received, data, addr)

    def _received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        now, source = asyncio.get_running_loop().time(), str(addr[0])
        if self._transport is None or len(data) > MAX_DATAGRAM or not self._limit.allows(source_of(source), now):
            return
        for _, answer in zip(range(MAX_ANSWERS), self._datagrams.receive_datagram(data, source, now), strict=False):
            with contextlib.suppress(OSError):  # a source that cannot be reached
                self._transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        """A datagram of ours was not taken: nothing to be done."""


def pump_of(interface: Interface, options: Mapping[str, Any], hub: Hub, control: Control) -> Pump:
    """What carries an interface.

    Raises
    ------
    WorldError
        It brings its own servers.
    """
    if interface.carrier is Carrier.TCP:
        return TcpPump(interface, options, hub, control)
    if interface.carrier is Carrier.UDP and interface.session is not None:
        door = Door(control, caller_of(interface, "UDP", interface.name), options)
        return UdpPump(interface.name, interface.session(door), interface.rate)
    if interface.carrier in (Carrier.HTTP, Carrier.WEBSOCKET):
        from botyard.servers.webpump import WebPump

        return WebPump(interface, options, hub, control)
    raise WorldError(f"interface {interface.name} brings its own servers")


__all__ = ["MAX_ANSWERS", "MAX_DATAGRAM", "MAX_UNREAD", "Pump", "TcpPump", "UdpPump", "pump_of"]
