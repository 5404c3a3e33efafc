"""Transports over TCP and UDP for the sans-I/O sessions of an interface.

See `botyard.interfaces.interface`. A pump applies limits, budgets and back-pressure.
A TCP client is a `StreamPeer`, whose bytes wait for their turn. Sessions are called
through an error barrier: an exception ends that connection only. While a client does
not read, nothing is read from it, and its session gets no steps and no request for
output. A client with too many unread bytes, or that does not read for too long, is
disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Protocol, cast

from botyard.control import Control
from botyard.control.census import ClientFacts
from botyard.control.driving import client_left
from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import NotNowError, PortError, WorldError
from botyard.interfaces.http_admission import source_of
from botyard.interfaces.interface import Datagrams, Door, Interface, Session, caller_of
from botyard.names import shown
from botyard.protocols.tokenbucket import RateLimit
from botyard.servers.clientfacts import TcpClient as TcpLine
from botyard.servers.clientfacts import tcp_facts
from botyard.servers.hub import Hub
from botyard.servers.sessionoutput import as_bytes, bytes_of, timer_of
from botyard.servers.sockets import (
    MAX_STUCK,
    READ_SIZE,
    keep_alive,
    note_port,
    reason_of,
)
from botyard.servers.streampeer import PIECE, Allowance, StreamPeer
from botyard.servers.throttledlog import ThrottledLog, ThrottledLogAdapter

MAX_UNREAD: Final = 1 << 20
"""Maximum number of unread bytes of a client, which is disconnected beyond it."""
MAX_DATAGRAM: Final = 8192
"""Maximum length of a datagram, bytes; longer ones are dropped."""
MAX_ANSWERS: Final = 16
"""Maximum number of answers to one datagram."""
MAX_VISIT_LINES: Final = 20
"""Burst of log lines about new clients; the sustained rate is one line per second."""

log = logging.getLogger("botyard.interfaces")


class Client(Protocol):
    """Client of a pump."""

    @property
    def source(self) -> str:
        """Address of the client."""
        ...

    @property
    def line(self) -> TcpLine:
        """Connection of the client."""
        ...

    def stepped(self, now: float) -> None:
        """Notify the client's session of a step."""
        ...

    def drop(self) -> None:
        """End the connection at once."""
        ...


class Pump(ABC):
    """Transport of an interface on one port.

    Parameters
    ----------
    interface : Interface
        Interface that the port serves.
    options : mapping of str to object
        All options of the interface (`Interface.chosen`).
    hub, control : Hub, Control
        Event loop of the simulator, and its control surface.

    Attributes
    ----------
    kind : SocketKind
        Kind of the port's socket.
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
        """Log of new connections, throttled: a peer can open any number of them."""
        self.refusals = ThrottledLog(log)
        """Log of refused and disconnected clients."""
        self.faults = ThrottledLogAdapter(log)
        """Log of exceptions from sessions."""
        self.clients: list[Client] = []
        self.address = ("", 0)
        """Address of the open port."""
        self.is_open = False
        self._options = options
        self._unlist: Callable[[], None] = lambda: None

    def _facts(self) -> list[ClientFacts]:
        """Return descriptions of the clients, for operators."""
        return [
            tcp_facts(client.line, self.interface.name, caller=id(client))
            for client in self.clients
        ]

    async def start(self, host: str, port: int) -> None:
        """Open the port; if `stop` is called meanwhile, close it again.

        Parameters
        ----------
        host : str
            Address to listen on.
        port : int
            Port; 0: the system assigns a free one (`address`).

        Raises
        ------
        NotNowError
            The port is open already.
        PortError
            The port is not available.
        WorldError
            The interface's handler cannot be created.
        """
        name = self.interface.name
        if self.is_open:
            raise NotNowError(
                f"interface {name}: it is already open on port {self.address[1]}"
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

        # `stop` was called while the port was being opened.
        if not self.is_open:
            await self._close()
            return

        self.address = address
        self.hub.attach(self)
        self._unlist = self.hub.census.add(self._facts)

    async def stop(self) -> None:
        """Close the port and disconnect the clients."""
        if not self.is_open:
            return
        self.is_open = False
        self.hub.detach(self)
        self._unlist()
        for client in tuple(self.clients):
            client.drop()
        await self._close()
        self.address = ("", 0)

    @abstractmethod
    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        """Open the port; return its host and port number."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the port."""

    def made(
        self, peer: str, key: object, wake: Callable[[], None] = lambda: None
    ) -> Any:
        """Return a new session of a client, or a new handler that answers all clients.

        Parameters
        ----------
        peer : str
            Address of the client, for messages.
        key : object
            Object that identifies the client (`Caller.key`). When the client leaves, all that it
            holds under this key is released. Limits count clients by the key's attribute `source`.
        wake : callable
            Makes the client write the session's output soon.
        """
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
        """Return a new handler that answers all clients.

        Parameters
        ----------
        kind : str
            Description of the handler in place of a client's address.

        Raises
        ------
        WorldError
            The handler cannot be created.
        """
        try:
            return self.made(kind, self)
        except Exception as error:
            # Code of plug-ins may raise any exception.
            raise WorldError(
                f"interface {self.interface.name}: cannot start: {shown(repr(error), 300)}"
            ) from error

    def warn(self, text: str) -> None:
        """Log a line under the interface's name.

        Parameters
        ----------
        text : str
            Text, perhaps from a client: it is shortened and escaped.
        """
        self.refusals.log(
            logging.WARNING, "%s: %s", self.interface.name, shown(text, 300)
        )

    def barrier(
        self, what: str, end: Callable[[], object] | None = None
    ) -> ErrorBarrier:
        """Return an error barrier for calls to the interface's code.

        Parameters
        ----------
        what : str
            Name of the code, for the log.
        end : callable, optional
            Closes the client after its first exception; without it, calls continue.
        """
        return ErrorBarrier(
            self.faults, f"interface {self.interface.name}: {what}", end
        )

    def has_room(self, source: str) -> bool:
        """Return whether another client from an address may connect.

        Parameters
        ----------
        source : str
            Source of the client as `source_of` returns it.
        """
        # One address may have at most half of the connections, so that it cannot lock
        # out all others.
        most = self.interface.clients
        return (
            self.is_open
            and len(self.clients) < most
            and sum(c.source == source for c in self.clients) < max(1, most // 2)
        )

    def refused(self, peer: str) -> None:
        """Log that a client was refused."""
        self.warn(f"client {peer} refused: too many clients are connected")

    def over(self, client: Client, session: Session | None) -> None:
        """Close the session of a client that has disconnected, and forget the client.

        Parameters
        ----------
        client : Client
            Client that has disconnected. Time, bodies and robots that it holds are
            released.
        session : Session, optional
            Its session; None if it never got one.
        """
        with contextlib.suppress(ValueError):
            self.clients.remove(client)
        if session is not None:
            self.barrier("handling the end of a client").run(session.close)
        client_left(self.control, cast(Hashable, client))

    @property
    def is_idle(self) -> bool:
        """Whether there is no client to notify of steps."""
        return not self.clients

    def on_snapshot(self, now: float) -> None:
        """Notify all clients of a step.

        Parameters
        ----------
        now : float
            Time of the event loop, s.
        """
        for client in tuple(self.clients):
            client.stepped(now)


class TcpPump(Pump):
    """TCP port, with a session for each client."""

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
        # Let the protocols handle the end of their connections.
        await asyncio.sleep(0)


class TcpClient(StreamPeer):
    """TCP connection of one client, with its session."""

    max_waiting = READ_SIZE
    piece = PIECE

    def __init__(self, pump: TcpPump) -> None:
        interface = pump.interface
        super().__init__(
            pump.hub.turns,
            pump.faults,
            f"interface {interface.name}: a client",
            Allowance(interface.byte_rate, interface.work_share),
        )
        self._pump = pump
        self._session: Session | None = None
        self._alarm: asyncio.TimerHandle | None = None
        """Timer of the session."""
        self._is_woken = False

    @property
    def line(self) -> TcpLine:
        """The connection itself."""
        return self

    # -- called through the error barrier

    def opened(self) -> None:
        """Start a session, if there is room for it."""
        pump = self._pump
        if not pump.has_room(self.source):
            # When the port closes, the system may still deliver an accepted connection.
            if pump.is_open:
                pump.refused(str(self.peer))
            self.drop()
            return

        keep_alive(self.socket)
        pump.clients.append(self)
        pump.visits.log(
            logging.INFO, "%s: client %s connected", pump.interface.name, self.peer
        )
        self._session = pump.made(str(self.peer), self, self.wake)
        self._flush()

    def on_bytes(self, data: bytes) -> None:
        """Pass bytes to the session."""
        if self._session is not None and not self._session.is_closed:
            self._session.receive_data(data, self.loop.time())
            self._flush()

    def drained(self) -> None:
        """Ask the session for more output."""
        self._flush()
        super().drained()

    def stuck(self) -> None:
        """Disconnect a client that does not read."""
        self._cut_off(f"the client has not read for {self.max_stuck:g} s")

    def closed(self) -> None:
        """Release the session."""
        self._stop_alarm()
        session, self._session = self._session, None
        self._pump.over(self, session)

    def wake(self) -> None:
        """Schedule a flush, because the session has something to send."""
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon(self.barrier.run, self._woken)

    def _woken(self) -> None:
        self._is_woken = False
        self._flush()

    def stepped(self, now: float) -> None:
        """Notify the session of a step, unless the client is slow to read."""
        self.barrier.run(self._stepped, now)

    def _stepped(self, now: float) -> None:
        if self._session is None or self.outlet is None or self.outlet.is_full:
            return
        if not self._session.is_closed:
            self._session.on_snapshot(now)
        self._flush()

    def _flush(self) -> None:
        """Send the session's output, and set its next timer."""
        session, outlet = self._session, self.outlet
        if session is None or outlet is None or self.is_leaving:
            return
        self._stop_alarm()
        # Ask for output only when the previous output is sent, so that memory stays
        # bounded.
        if not outlet.is_full:
            outlet.write(bytes_of(session))
            if outlet.unread > MAX_UNREAD:
                self._cut_off(f"the client has {outlet.unread} unread bytes")
                return

            if session.is_closed:
                self.finish(MAX_STUCK)
                return

        when = timer_of(session, self.loop.time())
        if when is not None:
            self._alarm = self.loop.call_at(when, self.barrier.run, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        if self._session is not None:
            self._session.handle_timer(self.loop.time())
            self._flush()

    def _cut_off(self, why: str) -> None:
        self._pump.warn(f"client {self.peer} disconnected: {why}")
        self.drop()

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class UdpPump(Pump, asyncio.DatagramProtocol):
    """UDP port, with one handler for all senders."""

    kind = socket.SOCK_DGRAM
    _transport: asyncio.DatagramTransport | None = None

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        self._datagrams: Datagrams = self.answerer("UDP")
        rate = self.interface.rate
        self._limit = RateLimit(rate, max(1.0, rate))
        self._barrier = self.barrier("a datagram")
        loop = asyncio.get_running_loop()
        if not self.interface.is_broadcast:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: self, (host, port)
            )
        else:
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

            try:
                # A client on this machine binds the same port for broadcasts.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
            # The transport frees the port in the next iteration.
            await asyncio.sleep(0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer a datagram."""
        self._barrier.run(self._received, data, addr)

    def _received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        now, source = asyncio.get_running_loop().time(), str(addr[0])
        # UDP has no flow control, so datagrams beyond the limits are dropped.
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
            # The source may be unreachable.
            with contextlib.suppress(OSError):
                self._transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        """Ignore errors of sent datagrams; UDP may lose them anyway."""


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
