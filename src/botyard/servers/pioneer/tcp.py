"""TCP servers for the Pioneer protocol (pioneer-protocol §2).

Each robot and each robot factory has a port of its own.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from abc import ABC, abstractmethod

from botyard.errors import PortError
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.hub import Hub
from botyard.servers.pioneer.connection import RobotLog
from botyard.servers.pioneer.robotclient import RobotClient
from botyard.servers.sockets import note_port, reason_of
from botyard.servers.throttledlog import ThrottledLog
from botyard.sim.simulation import Robot

MAX_STRANGERS = 16
"""Maximum number of connections on a robot's port whose handshake is incomplete.

A further connection displaces the one that was silent for longest.
"""
VISIT_LOG_BURST = 50
"""Burst of log lines about clients that connect and disconnect.

The sustained rate is one line per second, which counts the suppressed ones.
"""


class RobotPortServer(ABC):
    """A listening port that connects clients with a robot.

    A connection counts as a stranger until a valid packet has arrived, and costs no
    more than its socket. The first client to complete the handshake gets the robot, not
    the first to connect.

    Parameters
    ----------
    hub : Hub
        Event loop that runs the simulation.
    name : str
        Name of the robot or factory in the log.
    settings : PioneerSettings
        Protocol settings of the user.
    desk : PioneerRequests
        Handler of requests that concern the whole simulation.
    """

    max_strangers = MAX_STRANGERS
    backlog = 16
    """Length of the system's queue of connections to accept.

    It is also the number of connections that asyncio accepts in one iteration.
    """

    def __init__(
        self, hub: Hub, name: str, settings: PioneerSettings, desk: PioneerRequests
    ) -> None:
        self.hub = hub
        self.name = name
        self.settings = settings
        self.desk = desk
        self.log = RobotLog(logging.getLogger("botyard.pioneer"), {"robot": name})
        self.refusals = ThrottledLog(self.log)
        """Log of connections without a session.

        It is throttled because a peer can open any number of them.
        """
        self.visits = ThrottledLog(self.log, VISIT_LOG_BURST)
        """Log of clients that connect and disconnect."""
        self.address: tuple[str, int] = ("", 0)
        self.connected: dict[RobotClient, None] = {}
        """Connections that are not leaving, in order of arrival."""
        self.leaving: dict[RobotClient, float] = {}
        """Connections that sent CLOSE or were refused, with the timeout of each, s."""
        self._server: asyncio.Server | None = None
        self._closings = 0

    def refusal(self) -> str:
        """Return the reason to refuse a client now; empty if a client is welcome."""
        return ""

    @abstractmethod
    def admit(self, client: RobotClient) -> None:
        """Handle a client's first packet: call `begin` with a robot, or `refuse`.

        A factory calls `begin` later, when the robot exists.
        """

    # Not abstract, because factories need no action here.
    def settled(self, client: RobotClient) -> None:  # noqa: B027
        """Handle a client whose handshake is complete."""

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client that disconnected or whose session is over."""
        self.connected.pop(client, None)

    @property
    def client(self) -> RobotClient | None:
        """The first client that has a robot."""
        return next((c for c in self.connected if c.has_robot), None)

    async def listen(self, host: str, port: int) -> None:
        """Start to accept clients.

        Do nothing if another task opened or closed the server meanwhile.

        Raises
        ------
        PortError
            The address cannot be bound.
        """
        loop, closings = asyncio.get_running_loop(), self._closings
        try:
            # Create and start in two steps: asyncio leaks a listening socket if the
            # task is cancelled while it waits for `create_server` with
            # `start_serving=True`.
            server = await loop.create_server(
                lambda: RobotClient(self),
                host,
                port,
                backlog=self.backlog,
                start_serving=False,
            )
            try:
                await server.start_serving()
            except BaseException:
                server.close()
                raise
        except OSError as error:
            hint = (
                "; choose another first port with -p"
                if error.errno == errno.EADDRINUSE
                else ""
            )
            raise PortError(
                f"cannot listen on {host}:{port} for robot {self.name}: "
                f"{reason_of(error, port)}{hint}"
            ) from None

        # Another task may have run during the two awaits above.
        if self._server is not None or closings != self._closings:
            server.close()
            return

        note_port(server, f"robot {self.name}")
        self._server = server
        self.address = server.sockets[0].getsockname()[:2]

    @property
    def is_open(self) -> bool:
        """Whether it accepts clients."""
        return self._server is not None

    def close(self) -> None:
        """Stop accepting clients and end their sessions."""
        self._closings += 1
        if self._server is not None:
            self._server.close()
            self._server = None
            self.address = ("", 0)

        for client in (*self.connected, *self.leaving):
            client.shut()

    def make_room(self) -> None:
        """Refuse one stranger if there are too many.

        The handshake of the refused one has made no progress for longest. So neither
        silent connections nor half handshakes keep out a client that continues with its
        handshake.
        """
        strangers = [c for c in self.connected if not c.has_robot]
        if len(strangers) > self.max_strangers:
            # Bytes that the server has not read yet are no fault of the client: refuse
            # a truly silent one first.
            min(strangers, key=lambda c: (c.has_unread, c.standing_since)).refuse(
                "other clients connected before it finished the handshake"
            )


class PioneerServer(RobotPortServer):
    """The port of one robot, with one client at a time."""

    def __init__(
        self, hub: Hub, robot: Robot, settings: PioneerSettings, desk: PioneerRequests
    ) -> None:
        super().__init__(hub, robot.name, settings, desk)
        self.robot = robot
        self._asking: dict[RobotClient, None] = {}
        self._is_looking = False

    def refusal(self) -> str:
        """Return a reason to refuse further clients while the robot has one.

        A client that never sends OPEN cannot reserve the robot for long. For a flooding
        client, `admit` first checks whether it is still connected.
        """
        holder = self.client
        return (
            "the robot has a client already"
            if holder is not None and not (holder.dawdles or holder.floods)
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """Give the robot to the client, unless the robot already has one."""
        reason, holder = self.refusal(), self.client
        if reason:
            client.refuse(reason)
        elif holder is not None and holder.floods:
            self._asking[client] = None
            if not self._is_looking:
                self._is_looking = True
                holder.read_ahead(self._answer)
        else:
            client.begin(self.robot)

    def _answer(self) -> None:
        """Give the robot of a flooding client to the next client if it has gone."""
        self._is_looking = False
        asking, self._asking = self._asking, {}
        for client in asking:
            if client in self.connected and self.client is None:
                client.begin(self.robot)
            else:
                client.refuse("the robot has a client already")

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client, also from those that wait for the robot."""
        super().gone(client, robot)
        self._asking.pop(client, None)

    def settled(self, client: RobotClient) -> None:
        """Refuse all other clients: this one has the robot."""
        for other in tuple(self.connected):
            if other is not client:
                other.refuse("another client has taken the robot")


__all__ = ["PioneerServer", "RobotPortServer"]
