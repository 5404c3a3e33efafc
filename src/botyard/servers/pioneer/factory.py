"""Robot factories: ports that create a robot for each client (HSK-025).

The robot is removed when its client disconnects. To add a robot to a thousand others,
or to remove one, takes milliseconds, and the next step also takes longer. All factories
of a simulator therefore share a budget of processing time. Clients beyond the budget
wait in queues, one for each address, which are served round-robin.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError, WorldError
from botyard.geometry import Pose
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.model.robot import RobotSpec
from botyard.names import shown
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.tokenbucket import RateLimit, TokenBucket
from botyard.servers.hub import Hub
from botyard.servers.pioneer.robotclient import RobotClient, RobotPortServer
from botyard.sim.simulation import Robot

MAX_FACTORY_ROBOTS: Final = 1000
"""Maximum number of robots of a factory."""
SHARE: Final = 0.1
"""Token bucket of the time to create and remove robots: sustained share of time."""
BURST: Final = 0.05
"""Token bucket of the time to create and remove robots: burst, s."""
SOURCE_RATE: Final = 10.0
"""Token bucket of new robots for one address: sustained rate, 1/s."""
SOURCE_BURST: Final = 500.0
"""Token bucket of new robots for one address: burst."""
MAX_WAITING: Final = 1000
"""Maximum number of clients that wait for their robots; further ones are refused."""
REMOVAL_DELAY_S: Final = 0.02
"""Delay (debounce) before robots of disconnected clients are removed together, s.

Removing many robots at once costs little more than removing one.
"""
REMOVAL_BATCH: Final = 50
"""Batch size: robots to remove at once; each takes about 0.1 ms."""
CREATION_BATCH: Final = 16
"""Batch size: robots to create at once for one address."""
POLL_INTERVAL_S: Final = 0.01
"""Poll interval while clients wait, s."""


log = logging.getLogger("botyard.pioneer")


class Workshop:
    """Creates and removes the robots of all factories, within a budget of time.

    Parameters
    ----------
    hub : Hub
        Event loop that runs the simulation.
    clock : callable
        Clock that measures the cost of the work, s.
    """

    def __init__(
        self, hub: Hub, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._room = TokenBucket(SHARE, BURST)
        self._sources = RateLimit(SOURCE_RATE, SOURCE_BURST)
        self._waiting: dict[tuple[FactoryServer, str], deque[RobotClient]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._unwanted: dict[str, Robot] = {}
        self._removal: asyncio.TimerHandle | None = None
        self._barrier = ErrorBarrier(log, "robots of factories")

    def want(self, factory: FactoryServer, client: RobotClient) -> None:
        """Create a robot for a client, at once or when its turn comes.

        The client is refused if `MAX_WAITING` clients wait already.

        Parameters
        ----------
        factory : FactoryServer
            Factory whose `make` creates the robot.
        client : RobotClient
            Client that has sent its first valid packet.
        """
        now = asyncio.get_running_loop().time()
        # Without a queue and within both budgets, the client gets its robot at once.
        if (
            not self._count
            and not self._room.wait(now)
            and self._sources.allows(client.source, now)
        ):
            self._work(factory.make, [client])
            return

        if self._count >= MAX_WAITING:
            client.refuse("too many clients wait for robots")
            return

        self._waiting.setdefault((factory, client.source), deque()).append(client)
        self._count += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def give_up(self, factory: FactoryServer, client: RobotClient) -> None:
        """Remove a client from the queue; it no longer needs a robot.

        Parameters
        ----------
        factory : FactoryServer
            Factory from which the client requested a robot.
        client : RobotClient
            The client. A client that does not wait is ignored.
        """
        queue = self._waiting.get((factory, client.source), deque())
        if client in queue:
            queue.remove(client)
            self._count -= 1
            if not queue:
                del self._waiting[factory, client.source]

    def remove(self, robot: Robot) -> None:
        """Schedule a robot for removal, together with others.

        Parameters
        ----------
        robot : Robot
            Robot without a client. It stays in the world for `REMOVAL_DELAY_S` or
            longer.
        """
        self._unwanted[robot.name] = robot
        if self._removal is None:
            self._removal = asyncio.get_running_loop().call_later(
                REMOVAL_DELAY_S, self._clear_some
            )

    def _clear_some(self) -> None:
        self._removal = None
        later = dict(list(self._unwanted.items())[REMOVAL_BATCH:])
        for name in later:
            del self._unwanted[name]
        self.clear()
        for robot in later.values():
            self.remove(robot)

    def clear(self) -> None:
        """Remove all scheduled robots now.

        Robots that were already removed from the world are ignored.
        """
        if self._removal is not None:
            self._removal.cancel()
            self._removal = None

        unwanted, self._unwanted = self._unwanted, {}
        robots = self._hub.sim.robots
        # Another robot may have the same name by now, so compare by identity.
        names = [name for name, robot in unwanted.items() if robots.get(name) is robot]
        if names:
            self._work(self._hub.sim.remove_robots, names)

    def _work(self, act: Callable[..., object], *args: object) -> None:
        started = self._clock()
        self._barrier.run(act, *args)
        now = asyncio.get_running_loop().time()
        self._room.spend(now, self._clock() - started)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._count:
                now = loop.time()
                if not self._room.wait(now):
                    self._serve(now)
                await asyncio.sleep(POLL_INTERVAL_S)
        finally:
            self._task = None

    def _serve(self, now: float) -> None:
        """Create robots for clients of the next address, within its rate limit.

        Robots of one address are created together, because many robots cost little more
        time than one.
        """
        for key, queue in tuple(self._waiting.items()):
            factory, source = key
            clients: list[RobotClient] = []
            while (
                queue
                and len(clients) < CREATION_BATCH
                and self._sources.allows(source, now)
            ):
                clients.append(queue.popleft())

            if not clients:
                continue
            self._count -= len(clients)
            del self._waiting[key]
            # The queue moves to the end, so that addresses take turns.
            if queue:
                self._waiting[key] = queue
            self._work(factory.make, clients)
            return


def check_factory_model(spec: RobotSpec) -> None:
    """Raise an error if a factory cannot create robots of this model.

    Raises
    ------
    WorldError
        The model has no drive.
    """
    if not spec.drive:
        raise WorldError(
            f"robot factory: {shown(spec.name)} cannot drive, so no client could use it"
        )


class FactoryServer(RobotPortServer):
    """A port that creates a robot for each client.

    Parameters
    ----------
    model : RobotSpec
        Model of the robots.
    places : callable
        Function from the model and a number of robots to their start poses.
    workshop : Workshop
        Scheduler that all factories of the simulator share.
    """

    max_strangers = MAX_FACTORY_ROBOTS
    # All clients may connect at the same moment. A connection that the system drops
    # retries only after a second (TCP's first retransmission timeout).
    backlog = 128

    def __init__(
        self,
        hub: Hub,
        model: RobotSpec,
        settings: PioneerSettings,
        desk: PioneerRequests,
        places: Callable[[RobotSpec, int], Sequence[Pose]],
        workshop: Workshop,
    ) -> None:
        super().__init__(hub, f"{model.name} factory", settings, desk)
        self.model = model
        self.remembered: dict[str, Pose] = {}
        """Start poses by name, each used once.

        They are the poses of robots that existed before a restart of the simulator.
        """
        self.made: set[Robot] = set()
        """Robots that this factory created and that still exist."""
        self._places = places
        self._workshop = workshop

    def refusal(self) -> str:
        """Return the reason to refuse a client if the factory is full, otherwise ""."""
        made = len(self.connected)
        return (
            f"the factory already serves {made} clients"
            if made >= MAX_FACTORY_ROBOTS
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """Queue the client for a new robot."""
        self._workshop.want(self, client)

    def make(self, clients: Sequence[RobotClient]) -> None:
        """Create a robot for each of these clients, which share one address.

        The robots' names derive from the address (FRM-021).

        If the robots cannot be added to the world, all of these clients are refused
        with the reason.

        Parameters
        ----------
        clients : sequence of RobotClient
            Clients of one address, at least one.
        """
        sim = self.hub.sim
        names = sim.core.unique_names(clients[0].peer.address, len(clients))
        try:
            poses = [
                self.remembered.pop(name, pose)
                for name, pose in zip(
                    names, self._places(self.model, len(names)), strict=True
                )
            ]
            robots = sim.add_robots(self.model, poses, names)
        except BotyardError as error:
            for client in clients:
                client.refuse(str(error))
            return

        self.made.update(robots)
        for client, robot in zip(clients, robots, strict=True):
            client.begin(robot)

    def release(self, name: str) -> bool:
        """End the session of the client whose robot has this name.

        Parameters
        ----------
        name : str
            Name of the robot, which is removed at once.

        Returns
        -------
        bool
            False if this factory has no such client.
        """
        client = next((c for c in self.connected if c.robot_name == name), None)
        if client is not None:
            client.shut()
            self._workshop.clear()

        return client is not None

    def forget(self, robots: Mapping[str, Robot]) -> None:
        """Forget robots that were removed, and end their clients' sessions.

        Parameters
        ----------
        robots : mapping of str to Robot
            All robots in the world, by name.
        """
        gone = {robot for robot in self.made if robots.get(robot.name) is not robot}
        self.made -= gone
        for client in [client for client in self.connected if client.robot in gone]:
            client.shut()

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove the robot of a client that has disconnected.

        Parameters
        ----------
        client : RobotClient
            Client that has disconnected, perhaps while it waited for a robot.
        robot : Robot or None
            Its robot, which is scheduled for removal; None if it had none.
        """
        super().gone(client, robot)
        self._workshop.give_up(self, client)
        if robot is not None:
            self._workshop.remove(robot)
