"""Robots of a running simulator, with their TCP ports and controllers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from botyard.api.revisions import Subject
from botyard.control.adding import ROBOTS_PER_BATCH, check_robot_count
from botyard.control.parts import Portions
from botyard.controllers.assignment import employ
from botyard.errors import BotyardError, PortError, WorldError, did_you_mean
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.model.robot import RobotSpec
from botyard.model.world import PlacedRobot, Program, World
from botyard.names import shown
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.hub import Hub
from botyard.servers.interface_switches import InterfaceSwitches
from botyard.servers.pioneer.factory import FactoryServer, Workshop, check_factory_model
from botyard.servers.pioneer.robotclient import RobotPortServer
from botyard.servers.pioneer.tcp import PioneerServer
from botyard.servers.sockets import file_limit
from botyard.sim.simulation import Robot
from botyard.sim.worldfiles import populate

PORT_ATTEMPTS = 3
PORT_PAUSE = 2.0
"""Attempts to bind a taken port, and the pause between them, s.

After these attempts, a `patient` instance tries the next port (FRM-015).
"""
MAX_SKIPPED = 100
"""Maximum number of taken ports to skip for a robot that is added at run time."""
SPARE_FILES = 100
"""Number of file descriptors for other uses than the ports and clients of robots."""
MAX_CLOSED = 1000
"""Maximum number of removed robots whose ports are remembered (the latest ones)."""

log = logging.getLogger("botyard")

T = TypeVar("T")


class RobotServers:
    """Robots of a running simulator and their ports.

    Parameters
    ----------
    hub : Hub
        Event loop that runs the simulation.
    desk : PioneerRequests
        Handler of requests that concern the whole simulation. Its control surface uses
        this object to add, remove and serve robots.
    settings : PioneerSettings
        Protocol settings of the sessions.
    host : str
        Address to listen on.
    port : int
        TCP port of the first robot; 0: the system assigns a free port to each robot.
    patient : bool
        If a port is taken, retry it and then try the next port, instead of raising an
        error.
    equip : callable, optional
        Function from a model's specification to the specification of its robots; it
        adds, for example, a battery that drains.
    program : Program, optional
        Controller of robots that have neither a client nor a program of their own.
    """

    def __init__(
        self,
        hub: Hub,
        desk: PioneerRequests,
        settings: PioneerSettings,
        *,
        host: str = "127.0.0.1",
        port: int = 8101,
        patient: bool = False,
        equip: Callable[[RobotSpec], RobotSpec] = lambda spec: spec,
        program: Program | None = None,
    ) -> None:
        self.hub = hub
        self._feed = hub.sim.core.feed
        self.desk = desk
        hub.reporter.tap(desk.taps)
        self.control = desk.control
        self.settings = settings
        self.host = host
        self.port = port
        self.servers: dict[str, PioneerServer] = {}
        self.factories: list[FactoryServer] = []
        self.interfaces = InterfaceSwitches(hub.background)
        """Interfaces that can be started and stopped, by name."""
        self._closed: dict[str, int] = {}
        """Former ports of removed robots, by name; the latest one last."""
        self.is_serving = True
        """Whether robots have open ports."""
        self._arrived: tuple[int, list[Robot]] = -1, []
        self._run = -1, 0
        """Revision of the latest map that was loaded at run time, and the robots that it added."""
        self._patient = patient
        self._equip = equip
        self._program = program
        self._workshop = Workshop(hub)
        self.control.robot_host = self
        hub.follow(self._follow, Subject.BODIES, Subject.SERVED)

    # -- Robots

    def find_model(self, name: str) -> RobotSpec:
        """Return a model by name, with its equipment.

        Raises
        ------
        ModelError, ModelFileError
            See `botyard.formats.models.find_robot`.
        """
        return self._equip(find_robot(name))

    def add(
        self, model: str | RobotSpec, name: str | None = None, pose: Pose | None = None
    ) -> Robot:
        """Add a robot or an obstacle to the world.

        Call `open` to give it a port. A `RobotSpec` is used unchanged. A model's name stands for
        its specification with the equipment of this simulator's robots (`equip`).

        Raises
        ------
        BotyardError
            The model does not exist, the name is taken, or the pose is out of range.
        """
        spec = self.find_model(model) if isinstance(model, str) else model
        robot = self.hub.sim.add_robot(spec, name, pose=pose)
        self._prepare(robot)
        return robot

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """Return a specification with the equipment of this simulator's robots."""
        return self._equip(spec)

    def add_robots(
        self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]
    ) -> list[Robot]:
        """Add robots of one model at true poses (m, m, rad); `serve` gives them ports.

        The specification is used unchanged.

        Raises
        ------
        BotyardError
            A name is taken or a pose is out of range; in this case, no robot is added.
        """
        robots = self.hub.sim.add_robots(spec, poses, names)
        for robot in robots:
            self._prepare(robot)
        return robots

    def serve(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> Future[None]:
        """Open the ports of robots that were added at run time.

        `ports` maps names of robots to preferred ports. A robot whose preferred port is
        taken gets another port. The future raises `PortError` if no port is free.
        """
        return self.hub.background.future(
            self._open_each(robots, ports), "ports of robots"
        )

    async def _open_each(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Open a port for each robot, if possible the one that `ports` names for it."""
        for robot in robots:
            server = self.servers.get(robot.name)
            if server is not None:
                await self.open_somewhere(server, ports.get(robot.name))

    def work(self, portions: Portions[T]) -> Future[T]:
        """Run work in portions, and serve clients in between.

        See `Background.portions`.
        """
        return self.hub.background.portions(portions, "robots that clients add")

    def populate(self, world: World) -> list[Robot]:
        """Add the robots of a world and their controllers.

        A robot that exists already moves to its pose in the world file and keeps its
        identity.

        Raises
        ------
        BotyardError
            A pose is out of range, or a program does not know an option. Some robots
            may have been added by then.
        """
        sim = self.hub.sim
        for placed in world.robots:
            if placed.name in sim.robots and placed.pose is not None:
                sim.put(placed.name, placed.pose, "world")

        # Equip each model once, so that its robots share one specification: the engine
        # adds robots of one specification together.
        models = {id(p.spec): self._equip(p.spec) for p in world.robots}
        fresh = [
            replace(p, spec=models[id(p.spec)])
            for p in world.robots
            if p.name not in sim.robots
        ]
        try:
            robots = populate(sim, replace(world, robots=tuple(fresh)))
        except BotyardError:
            # Robots that were added before the error still get ports.
            for placed in fresh:
                if placed.served and placed.name in sim.robots:
                    self._prepare(sim.robots[placed.name])

            raise

        for robot, placed in zip(robots, fresh, strict=True):
            if placed.served:
                self._prepare(robot)

        self._start_traffic(world)
        return robots

    def _start_traffic(self, world: World) -> None:
        """Let robots of a world drive on its sector paths."""
        run, traffic = world.traffic, self.control.traffic
        if run is None or traffic is None:
            return
        # Paths start at the true poses, so placements that wait must take effect first.
        if self.hub.sim.core.is_pending:
            self.hub.sim.settle()
        try:
            traffic.run(dict(run.paths), run.supervisor, run.speed)
            self._run = self._feed.last(Subject.MAP), traffic.version
        except BotyardError as error:
            log.warning(
                "the traffic of %s was not started: %s", world.scene.source, error
            )

    def add_robots_of(self, world: World) -> None:
        """Add the robots of a world that was loaded at run time, and open their ports.

        A small world is added at once, a large one in portions.
        """
        arrived: list[Robot] = []
        self._arrived = self._feed.last(Subject.MAP), arrived
        try:
            check_robot_count(
                self.control,
                sum(p.name not in self.hub.sim.robots for p in world.robots),
            )
        except WorldError as error:
            log.warning(
                "the robots of %s were not added: %s", world.scene.source, error
            )
            return

        if len(world.robots) <= ROBOTS_PER_BATCH:
            robots = self._add_placed(world.robots)
            arrived += robots
            self._start_traffic(world)
            if not robots:
                return
            self.hub.background.start(self._open_for(robots), "ports of robots")
        else:
            self.hub.background.start(
                self._add_in_portions(world, arrived), "robots of a map"
            )

    @property
    def arrived(self) -> Sequence[Robot]:
        """Robots that the current map added, if it was loaded at run time."""
        revision, robots = self._arrived
        return robots if revision == self._feed.last(Subject.MAP) else ()

    @property
    def traffic_version(self) -> int:
        """Version of the run of traffic that the current map started; 0: it started none."""
        revision, version = self._run
        return version if revision == self._feed.last(Subject.MAP) else 0

    def _add_placed(self, some: Sequence[PlacedRobot]) -> list[Robot]:
        sim = self.hub.sim
        before = frozenset(sim.robots)
        try:
            return self.populate(World(scene=sim.scene, robots=tuple(some)))
        except BotyardError as error:
            log.warning(
                "some robots of %s differ from the file: %s", sim.scene.source, error
            )
            return [robot for name, robot in sim.robots.items() if name not in before]

    async def _add_in_portions(self, world: World, arrived: list[Robot]) -> None:
        sim, revision = self.hub.sim, self._feed.last(Subject.MAP)
        placed = world.robots
        added: list[tuple[Robot, PlacedRobot]] = []
        for first in range(0, len(placed), ROBOTS_PER_BATCH):
            # Another map was loaded during the pause: drop the rest of this one.
            if self._feed.last(Subject.MAP) != revision:
                return

            some = placed[first : first + ROBOTS_PER_BATCH]
            fresh = [p for p in some if p.name not in sim.robots]
            robots = self._add_placed([replace(p, program=None) for p in some])
            if len(robots) < len(fresh):
                fresh = [p for robot in robots for p in fresh if p.name == robot.name]
            added += zip(robots, fresh, strict=False)
            arrived += robots
            await asyncio.sleep(0)

        # A program may refer to other robots, so programs start after all robots exist.
        for robot, one in added:
            try:
                if one.program is not None and robot.name in sim.robots:
                    employ(robot, one.program)
            except BotyardError as error:
                log.warning("%s", error)

        self._start_traffic(world)
        await self._open_for([robot for robot, _ in added])

    async def _open_for(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        try:
            await self._open_each(robots, ports)
        except PortError as error:
            log.warning("%s", error)

    def adopt(self) -> list[Robot]:
        """Prepare ports and controllers for robots that other code has added to the world.

        Returns
        -------
        list of Robot
            Robots that had no port so far; the caller opens their ports.
        """
        sim = self.hub.sim
        made = {robot for factory in self.factories for robot in factory.made}
        fresh = [
            robot
            for name, robot in sim.robots.items()
            if name not in self.servers
            and sim.core.is_served(name)
            and robot not in made
            and robot.spec.drive
        ]
        for robot in fresh:
            self._prepare(robot)
        return fresh

    def _follow(self) -> None:
        """Update the ports after robots were added to or removed from the world.

        Not all changes are made through this class: `Simulation.restore` and programs
        also add and remove robots.
        """
        # A robot of the same name may be a different object after `restore`, so compare
        # by identity.
        sim = self.hub.sim
        gone = [
            n
            for n, s in self.servers.items()
            if sim.robots.get(n) is not s.robot or not sim.core.is_served(n)
        ]
        for name in gone:
            self._close(name)
        for factory in self.factories:
            factory.forget(sim.robots)
        if gone:
            self._feed.record_change(Subject.PORTS)
        # A robot that is added again gets its former port, because its client
        # reconnects to that port.
        fresh = self.adopt()
        if fresh:
            ports = {
                robot.name: self._closed[robot.name]
                for robot in fresh
                if robot.name in self._closed
            }
            self.hub.background.start(self._open_for(fresh, ports), "ports of robots")

    def _close(self, name: str) -> None:
        """Close the port of a removed robot, and remember its number.

        The robot may be added again: it then gets the same port.
        """
        server = self.servers.pop(name)
        if server.is_open:
            # Remove the entry first: a re-inserted key moves to the end of the
            # dictionary.
            self._closed.pop(name, None)
            self._closed[name] = server.address[1]
            if len(self._closed) > MAX_CLOSED:
                del self._closed[next(iter(self._closed))]

        server.close()

    def _prepare(self, robot: Robot) -> None:
        if not robot.spec.drive:
            return
        self._add_server(robot)
        if (
            self._program is not None
            and robot.name not in self.hub.sim.core.programs.by_robot
        ):
            employ(robot, self._program)

    def _add_server(self, robot: Robot) -> None:
        self.servers[robot.name] = PioneerServer(
            self.hub, robot, self.settings, self.desk
        )

    def add_factory(
        self,
        model: str,
        places: Callable[[RobotSpec, int], Sequence[Pose]] | None = None,
    ) -> FactoryServer:
        """Add a port that creates a robot for each client.

        Raises
        ------
        WorldError
            The model has no drive.
        """
        spec = self.find_model(model)
        check_factory_model(spec)
        factory = FactoryServer(
            self.hub,
            spec,
            self.settings,
            self.desk,
            places or self.hub.sim.core.places.next,
            self._workshop,
        )
        self.factories.append(factory)
        return factory

    def remove(self, names: Sequence[str]) -> None:
        """Remove robots, obstacles or boxes of the map; close their ports.

        Raises
        ------
        WorldError
            No robot or box has one of these names; in this case, no robot is removed.
        """
        sim = self.hub.sim
        # Check all names before the first removal, so that an error leaves the world
        # unchanged.
        names = list(dict.fromkeys(names))
        for name in names:
            if name not in sim.robots and name not in sim.core.box_names:
                raise WorldError(
                    f'there is no robot or box "{shown(name)}"{did_you_mean(name, sim.robots)}'
                )

        robots = []
        for name in names:
            if name in sim.core.box_names:
                sim.remove_box(name)
            # The robot of a factory is removed together with its client's session.
            elif not any(factory.release(name) for factory in self.factories):
                robots.append(name)

        for name in robots:
            if name in self.servers:
                self._close(name)

        sim.remove_robots(robots)
        self._feed.record_change(Subject.PORTS)

    def keep_ports(self, names: Mapping[Robot, str]) -> None:
        """Give robots that got other names the ports that they had.

        Parameters
        ----------
        names : mapping of Robot to str
            New names by the former handles of the robots.
        """
        ports = {
            new: self.port_of(robot.name)
            for robot, new in names.items()
            if robot.name in self.servers
        }
        # Closed first: an old name may be the new name of another robot.
        for robot in names:
            if robot.name in self.servers:
                self._close(robot.name)
        # Their controllers, or none, are as before, so they do not get the default one.
        robots = [self.hub.sim.robots[name] for name in ports]
        for robot in robots:
            self._add_server(robot)
        if robots:
            self.hub.background.start(self._open_for(robots, ports), "ports of robots")
        _, arrived = self._arrived
        arrived[:] = [
            self.hub.sim.robots[names[robot]] if robot in names else robot
            for robot in arrived
        ]

    def uses_of(self, robots: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield robots to which something is connected by their name, and what that is.

        These are clients, and readers of their topics.
        """
        census = self.hub.census
        for client in census.clients():
            if client.robot in robots:
                address = shown(client.address)
                yield (
                    client.robot,
                    f"a client ({client.protocol}, {address}) is connected to it",
                )
        for topic in () if census.topics is None else census.topics.topics():
            if topic.readers and topic.robot in robots:
                yield topic.robot, f"a ROS node reads {shown(topic.name)}"

    def port_of(self, robot: str) -> int:
        """Return the TCP port of a robot; 0 if it has none."""
        server = self.servers.get(robot)
        return server.address[1] if server is not None else 0

    # -- Ports

    @property
    def all_servers(self) -> Sequence[RobotPortServer]:
        """Servers of robots in the order in which they were added, then factories."""
        return [*self.servers.values(), *self.factories]

    async def open(
        self, wanted: Mapping[RobotPortServer, int] = MappingProxyType({})
    ) -> None:
        """Open the ports of all robots and factories that have none, in order.

        A server in `wanted` gets its preferred port if that port is free, otherwise
        another.

        Raises
        ------
        PortError
            A port is taken.
        """
        if not self.is_serving:
            return
        # Each robot needs a file descriptor for its port and one for its client.
        files = 2 * len(self.servers) + SPARE_FILES
        if files > file_limit():
            robots = f"{len(self.servers)} robots with clients"
            log.warning(
                "%s need %d open files, but the limit is %d (see ulimit -n)",
                robots,
                files,
                file_limit(),
            )
        for server, port in wanted.items():
            try:
                await server.listen(self.host, port)
                self._feed.record_change(Subject.PORTS)
            except PortError as error:
                log.warning("%s; trying another port", error)

        # Port numbers continue after the highest open port, so that the order of the
        # ports is the order of the robots.
        used = {s.address[1] for s in self.all_servers if s.is_open}
        port = max(used, default=self.port - 1) + 1
        for server in self.all_servers:
            if not server.is_open and wanted:
                await self.open_somewhere(server)
            elif not server.is_open and not self.port:
                await self._open_one(server, 0)
            elif not server.is_open:
                port = await self._open_one(server, port) + 1

    async def _open_one(self, server: RobotPortServer, port: int) -> int:
        """Open one server and return its port number.

        The number is `port`, or a later one if `patient` is set and `port` is taken.
        """
        for attempt in itertools.count(1):
            try:
                await server.listen(self.host, port)
                self._feed.record_change(Subject.PORTS)
                break
            except PortError as error:
                if not self._patient or port >= 65535:
                    raise
                log.warning("%s", error)
                if attempt % PORT_ATTEMPTS:
                    await asyncio.sleep(PORT_PAUSE)
                else:
                    port += 1

        return port

    async def open_somewhere(
        self, server: RobotPortServer, wanted: int | None = None
    ) -> None:
        """Open the port of a robot that was added at run time.

        The port is `wanted` if that port is free, otherwise the next free port.

        Raises
        ------
        PortError
            None of the next `MAX_SKIPPED` ports is free.
        """
        if not self.is_serving:
            return
        if wanted:
            with contextlib.suppress(PortError):
                await server.listen(self.host, wanted)
                self._feed.record_change(Subject.PORTS)
                return

        first = (
            max(
                (s.address[1] for s in self.all_servers if s.is_open),
                default=self.port - 1,
            )
            + 1
        )
        first = first if first <= 65535 and self.port else self.port
        last = min(first + MAX_SKIPPED, 65535)
        for port in range(first, last + 1):
            try:
                await server.listen(self.host, port)
                self._feed.record_change(Subject.PORTS)
                return
            except PortError:
                if port == last:
                    raise

    async def open_ports(
        self, wanted: Mapping[RobotPortServer, int] = MappingProxyType({})
    ) -> None:
        """Open the TCP ports of robots: all of them, or none if one cannot be opened.

        Raises
        ------
        PortError
            A port is taken.
        """
        self.is_serving = True
        try:
            await self.open(wanted)
        except BaseException:
            await self.close_ports()
            raise

    async def close_ports(self) -> None:
        """Close all ports, and open none until `open_ports` is called."""
        self.is_serving = False
        self.close()

    def close(self) -> None:
        """Close all ports and end the sessions of their clients."""
        self._feed.record_change(Subject.PORTS)
        for server in self.all_servers:
            server.close()

    def switch_interface(self, interface: str, on: bool) -> Future[None]:
        """Start or stop an interface in the background."""
        return self.interfaces.switch_later(interface, on)
