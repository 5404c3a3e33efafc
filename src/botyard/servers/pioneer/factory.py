"""Robot factories: ports that create a robot for every client, and remove it when the
client leaves (HSK-025), in a limited share of time.

Making a robot among a thousand others, and taking one away, costs milliseconds, and the
next step more. So all factories of a simulator together have a part of the time for
that; clients beyond it wait for their robots, those of different addresses in turns.
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
from botyard.servers.pioneer.tcp import RobotClient, RobotPortServer
from botyard.sim.simulation import Robot

MAX_FACTORY_ROBOTS: Final = 1000
"""Most robots of a factory at a time."""
SHARE: Final = 0.1
"""Token bucket of the time for creating and removing robots: sustained share of time.
"""
BURST: Final = 0.05
"""The same: burst, s."""
SOURCE_RATE: Final = 10.0
"""Token bucket of robots for one address: sustained rate, 1/s."""
SOURCE_BURST: Final = 500.0
"""The same: burst."""
MAX_WAITING: Final = 1000
"""Clients that may wait for their robots; further ones are refused."""
REMOVAL_DELAY_S: Final = 0.02
"""Delay (debounce) before the robots of clients that left are removed together, s: many
cost hardly more than one.
"""
REMOVAL_BATCH: Final = 50
"""Batch size: robots that are removed at once; each takes about 0.1 ms."""
CREATION_BATCH: Final = 16
"""Batch size: robots that are created at once for one address."""
POLL_INTERVAL_S: Final = 0.01
"""Poll interval of waiting clients, s."""


log = logging.getLogger("botyard.pioneer")


class Workshop:
    """Creates and removes the robots of all factories of a simulator, in a limited
    share of time.

    Parameters
    ----------
    hub : Hub
        Runs the simulation.
    clock : callable
        What work costs, s.
    """

    def __init__(
        self, hub: Hub, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._room: TokenBucket | None = None
        self._sources = RateLimit(SOURCE_RATE, SOURCE_BURST)
        self._waiting: dict[tuple[FactoryServer, str], deque[RobotClient]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._unwanted: dict[str, Robot] = {}
        self._removal: asyncio.TimerHandle | None = None
        self._fence = ErrorBarrier(log, "robots of factories")

    def want(self, factory: FactoryServer, client: RobotClient) -> None:
        """A client wants a robot: the factory makes it, now or when its turn comes."""
        now = asyncio.get_running_loop().time()
        if (
            not self._count
            and not self._bucket(now).wait(now)
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
        """It wants none any more."""
        queue = self._waiting.get((factory, client.source), deque())
        if client in queue:
            queue.remove(client)
            self._count -= 1
            if not queue:
                del self._waiting[factory, client.source]

    def remove(self, robot: Robot) -> None:
        """A robot is not wanted any more; it goes soon, with others."""
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
        """Remove now what is not wanted."""
        if self._removal is not None:
            self._removal.cancel()
            self._removal = None

        unwanted, self._unwanted = self._unwanted, {}
        robots = self._hub.sim.robots
        names = [name for name, robot in unwanted.items() if robots.get(name) is robot]
        if names:
            self._work(self._hub.sim.remove_robots, names)

    def _work(self, act: Callable[..., object], *args: object) -> None:
        begin = self._clock()
        self._fence.run(act, *args)
        now = asyncio.get_running_loop().time()
        self._bucket(now).spend(now, self._clock() - begin)

    def _bucket(self, now: float) -> TokenBucket:
        if self._room is None:
            self._room = TokenBucket(SHARE, BURST, now)
        return self._room

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._count:
                now = loop.time()
                if not self._bucket(now).wait(now):
                    self._serve(now)
                await asyncio.sleep(POLL_INTERVAL_S)
        finally:
            self._task = None

    def _serve(self, now: float) -> None:
        """Make robots for some clients of the next factory and address that may have
        any, together: many cost little more than one.
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
            if queue:
                self._waiting[key] = queue  # behind the others
            self._work(factory.make, clients)
            return


def check_factory_model(spec: RobotSpec) -> None:
    """Look whether a factory can make robots of this model.

    Raises
    ------
    WorldError
        It cannot drive.
    """
    if not spec.drive:
        raise WorldError(
            f"robot factory: {shown(spec.name)} cannot drive, so no client could use it"
        )


class FactoryServer(RobotPortServer):
    """A port that makes a robot for every client.

    Parameters
    ----------
    model : RobotSpec
        What robots it makes.
    places : callable
        Where the next robots start: given the model and their number.
    workshop : Workshop
        Of all factories of the simulator.
    """

    max_strangers = MAX_FACTORY_ROBOTS
    # clients may come all at once, and one that is not kept tries again only after a
    # second
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
        """Where robots of these names begin, once: they were there before the simulator
        was started again.
        """
        self.made: set[Robot] = set()
        """Its robots."""
        self._places = places
        self._workshop = workshop

    def refusal(self) -> str:
        """There are too many robots of its make."""
        made = len(self.connected)
        return (
            f"the factory has {made} clients already"
            if made >= MAX_FACTORY_ROBOTS
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """A new robot, when there is time for it."""
        self._workshop.want(self, client)

    def make(self, clients: Sequence[RobotClient]) -> None:
        """A new robot for each of these clients of one address, named after that
        (FRM-021).
        """
        sim = self.hub.sim
        names = sim.unique_names(clients[0].source, len(clients))
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
        """End the session of the client whose robot has this name; False if the factory
        made none.
        """
        client = next((c for c in self.connected if c.robot_name == name), None)
        if client is not None:
            client.shut()
            self._workshop.clear()

        return client is not None

    def forget(self, robots: Mapping[str, Robot]) -> None:
        """`robots` are in the world: those of its make that are not are forgotten, and
        their clients' sessions end.
        """
        gone = {robot for robot in self.made if robots.get(robot.name) is not robot}
        self.made -= gone
        for client in [client for client in self.connected if client.robot in gone]:
            client.shut()

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """The robot goes with its client."""
        super().gone(client, robot)
        self._workshop.give_up(self, client)
        if robot is not None:
            self._workshop.remove(robot)
