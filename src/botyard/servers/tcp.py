"""TCP servers for the Pioneer protocol: one port for each robot or robot factory (pioneer-protocol §2)."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

from botyard.errors import BotyardError, PortError
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.protocols.pioneer.session import PioneerSettings, Session
from botyard.servers.connection import Connection, RobotLog
from botyard.servers.hub import Hub
from botyard.servers.intake import Inlet
from botyard.servers.worldcontrol import Loaded, WorldControl
from botyard.simulation import Robot

MAX_UNSENT = 256 * 1024
"""A client that leaves this many bytes unread gets no further reports until it has caught up."""
EXIT_DELAY = 1.5
"""SIM_EXIT takes effect after so long, s, so that its sender can say goodbye (pioneer-protocol §4.2)."""
MAX_FACTORY_ROBOTS = 1000
"""A factory makes no more robots than this at a time."""
REFUSAL = 1.0
"""A refused client that does not close its side is disconnected after so long, s."""
SWITCH_INTERVAL = 1e-4
"""While a map is read beside the steps: a thread that computes gives the interpreter up when it is asked for so long, s (usual: 5 ms)."""
MAX_STUCK = 30.0
"""A client that has not caught up for so long, s, is disconnected."""


class LoopHost:
    """The event loop as host of a `WorldControl`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_aside(
        self, job: Callable[[], Loaded | None], done: Callable[[Loaded | None, Exception | None], None]
    ) -> None:
        """Run `job` in a thread, and `done` in the loop."""
        task = asyncio.ensure_future(asyncio.to_thread(self._beside, job))
        self._hub.tasks.add(task)

        def finished(t: asyncio.Future[Loaded | None]) -> None:
            self._hub.tasks.discard(t)
            if t.cancelled():
                return
            error = t.exception()
            if error is None:
                done(t.result(), None)
            elif isinstance(error, Exception):
                done(None, error)

        task.add_done_callback(finished)

    def _beside(self, job: Callable[[], Loaded | None]) -> Loaded | None:
        """In a thread: the loop lets go of the interpreter at every packet and kernel, and gets it back after at most this time."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            return job()
        finally:
            sys.setswitchinterval(before)

    def end_soon(self, status: int, crash: bool) -> None:
        """End the run after `EXIT_DELAY`."""
        asyncio.get_running_loop().call_later(EXIT_DELAY, self._hub.stop, status, crash)


class RobotPortServer(ABC):
    """A listening port behind which clients find a robot.

    Parameters
    ----------
    hub : Hub
        Runs the simulation.
    name : str
        For the log: of the robot, or of the factory.
    settings : PioneerSettings
        Choices of the user about the protocol.
    world : WorldControl
        Takes what clients ask of the whole simulation.
    """

    def __init__(self, hub: Hub, name: str, settings: PioneerSettings, world: WorldControl) -> None:
        self.hub = hub
        self.name = name
        self.settings = settings
        self.world = world
        self.log = RobotLog(logging.getLogger("botyard.pioneer"), {"robot": name})
        self.address: tuple[str, int] = ("", 0)
        self._clients: list[_Client] = []
        self._server: asyncio.Server | None = None

    @abstractmethod
    def admit(self, peer: str) -> Robot | str:
        """The robot for a client from address `peer`, or why it is refused."""

    @abstractmethod
    def dismiss(self, robot: Robot) -> None:
        """The robot's client has gone."""

    @property
    def client(self) -> _Client | None:
        """The first of the clients that are connected."""
        return self._clients[0] if self._clients else None

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
            raise PortError(f"cannot listen on {host}:{port} for robot {self.name}: {reason}{hint}") from None
        self.address = self._server.sockets[0].getsockname()[:2]

    @property
    def is_open(self) -> bool:
        """Whether it accepts clients."""
        return self._server is not None

    def close(self) -> None:
        """Stop accepting clients and end the session."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self.address = ("", 0)
        for client in tuple(self._clients):
            client.shut()


class PioneerServer(RobotPortServer):
    """The port of one robot, with one client at a time."""

    def __init__(self, hub: Hub, robot: Robot, settings: PioneerSettings, world: WorldControl) -> None:
        super().__init__(hub, robot.name, settings, world)
        self.robot = robot

    def admit(self, peer: str) -> Robot | str:
        """The robot, unless it has a client."""
        return "the robot has a client already" if self._clients else self.robot

    def dismiss(self, robot: Robot) -> None:
        """The robot stays."""


class FactoryServer(RobotPortServer):
    """A port that makes a robot for every client, and takes it away when the client leaves (HSK-025).

    Parameters
    ----------
    model : RobotSpec
        What robots it makes.
    place : callable
        Where the next robot starts; None leaves that to the map.
    """

    def __init__(
        self,
        hub: Hub,
        model: RobotSpec,
        settings: PioneerSettings,
        world: WorldControl,
        place: Callable[[RobotSpec], Pose | None],
    ) -> None:
        super().__init__(hub, f"{model.name} factory", settings, world)
        self.model = model
        self.remembered: dict[str, Pose] = {}
        """Where robots of these names begin, once: they were there before the simulator was started again."""
        self._place = place

    def admit(self, peer: str) -> Robot | str:
        """A new robot, named after the client's address (FRM-021)."""
        if len(self._clients) >= MAX_FACTORY_ROBOTS:
            return f"the factory has made {MAX_FACTORY_ROBOTS} robots already"
        sim = self.hub.sim
        name = sim.unique_name(peer.rpartition(":")[0])
        try:
            return sim.add_robot(self.model, name, pose=self.remembered.pop(name, None) or self._place(self.model))
        except BotyardError as error:
            return str(error)

    def release(self, name: str) -> bool:
        """End the session of the client whose robot has this name; False if the factory made none."""
        client = next((c for c in self._clients if c.robot_name == name), None)
        if client is not None:
            client.shut()
        return client is not None

    def dismiss(self, robot: Robot) -> None:
        """The robot goes with its client."""
        self.hub.sim.remove_robot(robot.name)


class _Client(asyncio.Protocol):
    """One TCP connection, with a robot, or refused at once."""

    def __init__(self, server: RobotPortServer) -> None:
        self._server = server
        self._robot: Robot | None = None
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._stuck_since: float | None = None
        self._inlet: Inlet | None = None
        self._peer = "?"

    @property
    def robot_name(self) -> str:
        """Name of its robot; empty when it has none."""
        return self._robot.name if self._robot is not None else ""

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        server = self._server
        robot = server.admit(self._peer)
        if isinstance(robot, str):
            server.log.warning("client %s refused: %s", self._peer, robot)
            # say goodbye and let what it sends arrive: closing over unread bytes would reset the connection
            self._transport.write_eof()
            self._timer = self._loop.call_later(REFUSAL, self._transport.close)
            return
        self._robot = robot
        server._clients.append(self)
        _keep_alive(transport.get_extra_info("socket"))
        log = server.log if robot.name == server.name else RobotLog(server.log.logger, {"robot": robot.name})
        log.info("client %s connected", self._peer)
        session = Session(robot.port("pioneer"), server.settings, self._loop.time())
        is_local = bool(peer) and (peer[0].startswith("127.") or peer[0] == "::1")
        self._connection = Connection(session, self._write, self._finish, log, server.world, is_local)
        server.hub.reporter.attach(self._connection)
        self._inlet = Inlet(
            server.hub.intake, self._receive, self._transport.pause_reading, self._transport.resume_reading
        )

    def data_received(self, data: bytes) -> None:
        if self._inlet is not None:
            self._inlet.take(data)

    def _receive(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.receive(data, self._loop.time())

    def eof_received(self) -> bool:
        return False  # close our side too

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._inlet is not None:
            self._inlet.close()
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
        self._server.hub.dropped_reports += 1
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
            self._server.hub.reporter.detach(self._connection)
        if self in self._server._clients:
            self._server._clients.remove(self)
        if self._robot is not None:
            self._server.dismiss(self._robot)
            self._robot = None
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()

    def shut(self) -> None:
        """End the session from the server's side."""
        if self._connection is not None:
            self._connection.close("the simulator is closing")


def _keep_alive(sock: socket.socket | None) -> None:
    """Let the system notice within two minutes that a silent client's machine is gone, so that its robot becomes free."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
