"""TCP servers for the Pioneer protocol: one port for each robot, one client at a time (pioneer-protocol §2)."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import cast

from botyard.errors import PortError
from botyard.protocols.pioneer.session import PioneerSettings, Session
from botyard.servers.connection import Connection, RobotLog
from botyard.servers.hub import Hub
from botyard.simulation import Robot

MAX_UNSENT = 256 * 1024
"""A client that leaves this many bytes unread gets no further reports until it has caught up."""
EXIT_DELAY = 1.5
"""SIM_EXIT takes effect after so long, s, so that its sender can say goodbye (pioneer-protocol §4.2)."""
REFUSAL = 1.0
"""A refused client that does not close its side is disconnected after so long, s."""
MAX_STUCK = 30.0
"""A client that has not caught up for so long, s, is disconnected."""


class PioneerServer:
    """The listening port of one robot.

    Parameters
    ----------
    hub : Hub
        Runs the simulation.
    robot : Robot
        The robot.
    settings : PioneerSettings
        Choices of the user about the protocol.
    """

    def __init__(self, hub: Hub, robot: Robot, settings: PioneerSettings) -> None:
        self.hub = hub
        self.robot = robot
        self.settings = settings
        self.log = RobotLog(logging.getLogger("botyard.pioneer"), {"robot": robot.name})
        self.client: _Client | None = None
        self.address: tuple[str, int] = ("", 0)
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        """Begin to accept clients.

        Raises
        ------
        PortError
            The address cannot be bound.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Client(self), host, port, backlog=16)
        except OSError as error:
            reason = error.strerror or str(error)
            if reason.startswith("error while attempting"):  # asyncio puts the address in front, we do so ourselves
                reason = reason.rpartition(": ")[2]
            hint = "; choose another first port with -p" if error.errno == errno.EADDRINUSE else ""
            raise PortError(f"cannot listen on {host}:{port} for robot {self.robot.name}: {reason}{hint}") from None
        self.address = self._server.sockets[0].getsockname()[:2]

    def close(self) -> None:
        """Stop accepting clients and end the session."""
        if self._server is not None:
            self._server.close()
        if self.client is not None:
            self.client.shut()


class _Client(asyncio.Protocol):
    """One TCP connection; refused at once when the robot has a client already."""

    def __init__(self, server: PioneerServer) -> None:
        self._server = server
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._stuck_since: float | None = None
        self._peer = "?"

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        server = self._server
        if server.client is not None:
            server.log.warning("client %s refused: the robot has a client already", self._peer)
            # say goodbye and let what it sends arrive: closing over unread bytes would reset the connection
            self._transport.write_eof()
            self._timer = self._loop.call_later(REFUSAL, self._transport.close)
            return
        server.client = self
        _keep_alive(transport.get_extra_info("socket"))
        server.log.info("client %s connected", self._peer)
        session = Session(server.robot.port("pioneer"), server.settings, self._loop.time())
        self._connection = Connection(session, self._write, self._finish, server.log, self._exit)
        server.hub.attach(self._connection)
        self._schedule()

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.receive(data, self._loop.time())
            self._schedule()

    def eof_received(self) -> bool:
        return False  # close our side too

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None:
            self._connection.receive_eof()

    # -- the connection's side

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() < MAX_UNSENT:
            self._stuck_since = None
            transport.write(data)
            return
        now = self._loop.time()
        if self._stuck_since is None:
            self._stuck_since = now
            self._server.log.warning("client %s does not read: reports are dropped until it does", self._peer)
        elif now - self._stuck_since > MAX_STUCK:
            self._server.log.warning("client %s has not read for %g s: disconnected", self._peer, MAX_STUCK)
            transport.abort()

    def _finish(self) -> None:
        """The session is over: the port is free for the next client from now on."""
        if self._connection is not None:
            self._server.hub.detach(self._connection)
        if self._server.client is self:
            self._server.client = None
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()

    def _exit(self, status: int) -> None:
        peer = self._transport.get_extra_info("peername") if self._transport else None
        if peer and (peer[0].startswith("127.") or peer[0] == "::1"):
            self._server.log.warning("client %s asked for the end of the simulation, status %d", self._peer, status)
            self._loop.call_later(EXIT_DELAY, self._server.hub.stop, status)
        else:
            self._server.log.warning("client %s asked for the end of the simulation; not obeyed from there", self._peer)

    def shut(self) -> None:
        """End the session from the server's side."""
        if self._connection is not None:
            self._connection.close("the simulator is closing")

    def _schedule(self) -> None:
        """Arrange for the session's next timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        when = None if self._connection is None or self._connection.is_over else self._connection.next_timer()
        if when is not None:
            self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._connection is not None:
            self._connection.on_timer(self._loop.time())
            self._schedule()


def _keep_alive(sock: socket.socket | None) -> None:
    """Let the system notice within two minutes that a silent client's machine is gone, so that its robot becomes free."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
