"""TCP servers for the Pioneer protocol (pioneer-protocol §2).

Each robot and each robot factory has a port of its own.
"""

from __future__ import annotations

from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.hub import Hub
from botyard.servers.pioneer.robotclient import RobotClient, RobotPortServer
from botyard.sim.simulation import Robot


class PioneerServer(RobotPortServer):
    """The port of one robot, with one client at a time.

    Parameters
    ----------
    hub : Hub
        Event loop that runs the simulation.
    robot : Robot
        The robot; its name is the name in the log.
    settings : PioneerSettings
        Protocol settings of the user.
    desk : PioneerRequests
        Handler of requests that concern the whole simulation.
    """

    def __init__(
        self, hub: Hub, robot: Robot, settings: PioneerSettings, desk: PioneerRequests
    ) -> None:
        super().__init__(hub, robot.name, settings, desk)
        self.robot = robot
        self._asking: dict[RobotClient, None] = {}
        self._is_looking = False

    def refusal(self) -> str:
        """Return a reason to refuse further clients while the robot has a client.

        A client that never sends OPEN cannot reserve the robot for long. For a flooding
        client, `admit` first checks whether it is still connected.

        Returns
        -------
        str
            Empty if the robot is free, or if its client is silent or floods.
        """
        holder = self.client
        return (
            "the robot has a client already"
            if holder is not None and not (holder.dawdles or holder.floods)
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """Assign the robot to the client, unless the robot already has a client.

        If the holder of the robot floods its connection, the answer waits until it is
        known whether the holder is still connected.

        Parameters
        ----------
        client : RobotClient
            Client that has sent its first valid packet.
        """
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
        """Assign the robot to the next client if the flooding one has disconnected."""
        self._is_looking = False
        asking, self._asking = self._asking, {}
        for client in asking:
            if client in self.connected and self.client is None:
                client.begin(self.robot)
            else:
                client.refuse("the robot has a client already")

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client, also from the clients that wait for the robot."""
        super().gone(client, robot)
        self._asking.pop(client, None)

    def settled(self, client: RobotClient) -> None:
        """Refuse all other clients: this one has the robot.

        Parameters
        ----------
        client : RobotClient
            Client whose handshake is complete.
        """
        for other in tuple(self.connected):
            if other is not client:
                other.refuse("another client has taken the robot")


__all__ = ["PioneerServer"]
