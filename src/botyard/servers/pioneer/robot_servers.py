"""`RobotServers`: the robots of a running simulator with their ports and controllers,
and the interfaces that can be started and stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from botyard.api.revisions import Subject
from botyard.control.bodies import ROBOTS_PER_BATCH, check_robot_count
from botyard.control.parts import Portions
from botyard.controllers.crew import employ
from botyard.errors import BotyardError, PortError, WorldError, did_you_mean
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.interfaces.interface import Switch
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.model.robot import RobotSpec
from botyard.model.world import PlacedRobot, Program, World
from botyard.names import shown
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.hub import Hub
from botyard.servers.pioneer.factory import FactoryServer, Workshop, check_factory_model
from botyard.servers.pioneer.tcp import PioneerServer, RobotPortServer
from botyard.sim.simulation import Robot

PORT_ATTEMPTS = 3
PORT_PAUSE = 2.0
"""A patient yard retries a taken port this often, with this pause, s, before it takes
the next port (FRM-015).
"""
MAX_SKIPPED = 100
"""Most taken ports that are skipped for a robot that is added while the simulator runs.
"""
MAX_CLOSED = 1000
"""Robots that have gone whose ports are remembered; the latest ones."""

log = logging.getLogger("botyard")

T = TypeVar("T")


class RobotServers:
    """The robots and their ports.

    Parameters
    ----------
    hub : Hub
        Runs the simulation.
    desk : PioneerRequests
        Takes what clients ask of the whole simulation; its control surface gets these
        grounds.
    settings : PioneerSettings
        Of the sessions.
    host : str
        Address to listen on.
    port : int
        Of the first robot; 0: each gets any port that is free.
    patient : bool
        Try a taken port again, and then the next one, instead of giving up.
    equip : callable, optional
        Makes of a model's spec what robots get, for example with a battery that drains.
    program : Program, optional
        What drives robots without clients that have no program of their own.
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
        self._feed = hub.sim.feed
        self.desk = desk
        self.control = desk.control
        self.settings = settings
        self.host = host
        self.port = port
        self.servers: dict[str, PioneerServer] = {}
        self.factories: list[FactoryServer] = []
        self.interfaces: dict[str, Switch] = {}
        """What serves clients, by name, and can be stopped and started."""
        self._closed: dict[str, int] = {}
        """Ports of robots that have gone, by name, the latest last."""
        self.is_serving = True
        """Robots get ports."""
        self._arrived: tuple[int, list[Robot]] = -1, []
        """Revision of a map that was loaded while the simulator ran, and the robots
        that came with it.
        """
        self._patient = patient
        self._equip = equip
        self._program = program
        self._workshop = Workshop(hub)
        self._switching = asyncio.Lock()
        self.control.grounds = self
        hub.follow(self._follow, Subject.BODIES, Subject.SERVED)

    # -- robots

    def find_model(self, name: str) -> RobotSpec:
        """A model by name, equipped.

        Raises
        ------
        ModelError, ModelFileError
            See `botyard.formats.models.find_robot`.
        """
        return self._equip(find_robot(name))

    def add(
        self, model: str | RobotSpec, name: str | None = None, pose: Pose | None = None
    ) -> Robot:
        """Add a robot or an obstacle to the world; `open` gives it a port. A spec is
        taken as it is.

        Raises
        ------
        BotyardError
            No such model, the name is taken, or the pose is absurd.
        """
        spec = self.find_model(model) if isinstance(model, str) else model
        robot = self.hub.sim.add_robot(spec, name, pose=pose)
        self._prepare(robot)
        return robot

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """What robots of a model get here, for example a battery that drains."""
        return self._equip(spec)

    def add_robots(
        self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]
    ) -> list[Robot]:
        """Add robots of one model, taken as it is, at true poses (m, m, rad); `serve`
        gives them ports.

        Raises
        ------
        BotyardError
            A name is taken, or a pose is absurd; then none is added.
        """
        robots = self.hub.sim.add_robots(spec, poses, names)
        for robot in robots:
            self._prepare(robot)
        return robots

    def serve(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> Future[None]:
        """Open the ports of robots that were added while the simulator runs; PortError
        when one cannot be had.

        Those in `ports`, by name, get theirs if they can be had.
        """
        return self.hub.background.future(
            self._open_each(robots, ports), "ports of robots"
        )

    async def _open_each(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Open the ports of robots: those of these names on these ports, if they can be
        had.
        """
        for robot in robots:
            server = self.servers.get(robot.name)
            if server is not None:
                await self.open_somewhere(server, ports.get(robot.name))

    def work(self, portions: Portions[T]) -> Future[T]:
        """Do work in portions, others are served in between; see `Background.portions`."""
        return self.hub.background.portions(portions, "robots that clients add")

    def populate(self, world: World) -> list[Robot]:
        """Add the robots of a world and what drives them; one that is there already is
        put where the world says, as itself.

        Raises
        ------
        BotyardError
            A pose is absurd, a program does not know an option; then some are there.
        """
        sim = self.hub.sim
        for placed in world.robots:
            if placed.name in sim.robots and placed.pose is not None:
                sim.put(placed.name, placed.pose, "world")

        models = {
            id(p.spec): self._equip(p.spec) for p in world.robots
        }  # robots of one model are added together
        fresh = [
            replace(p, spec=models[id(p.spec)])
            for p in world.robots
            if p.name not in sim.robots
        ]
        try:
            robots = sim.populate(replace(world, robots=tuple(fresh)))
        except BotyardError:
            # those that are there can be reached all the same
            for placed in fresh:
                if placed.served and placed.name in sim.robots:
                    self._prepare(sim.robots[placed.name])

            raise

        for robot, placed in zip(robots, fresh, strict=True):
            if placed.served:
                self._prepare(robot)

        return robots

    def receive(self, world: World) -> None:
        """A world was loaded while the simulator runs: its robots come, and get ports;
        the first ones at once, others in portions.
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
            robots = self._receive(world.robots)
            arrived += robots
            if not robots:
                return
            self.hub.background.start(self._open_for(robots), "ports of robots")
        else:
            self.hub.background.start(
                self._receive_many(world.robots, arrived), "robots of a map"
            )

    @property
    def arrived(self) -> Sequence[Robot]:
        """Robots that came with the present map, if that was loaded while the simulator
        ran.
        """
        revision, robots = self._arrived
        return robots if revision == self._feed.last(Subject.MAP) else ()

    def _receive(self, some: Sequence[PlacedRobot]) -> list[Robot]:
        sim = self.hub.sim
        before = frozenset(sim.robots)
        try:
            return self.populate(World(scene=sim.scene, robots=tuple(some)))
        except BotyardError as error:
            log.warning(
                "the robots of %s are not all as it says: %s", sim.scene.source, error
            )
            return [robot for name, robot in sim.robots.items() if name not in before]

    async def _receive_many(
        self, placed: Sequence[PlacedRobot], arrived: list[Robot]
    ) -> None:
        sim, revision = self.hub.sim, self._feed.last(Subject.MAP)
        added: list[tuple[Robot, PlacedRobot]] = []
        for first in range(0, len(placed), ROBOTS_PER_BATCH):
            if (
                self._feed.last(Subject.MAP) != revision
            ):  # another map has come: nothing more of this one
                return

            some = placed[first : first + ROBOTS_PER_BATCH]
            fresh = [p for p in some if p.name not in sim.robots]
            robots = self._receive([replace(p, program=None) for p in some])
            if len(robots) < len(fresh):
                fresh = [p for robot in robots for p in fresh if p.name == robot.name]
            added += zip(robots, fresh, strict=False)
            arrived += robots
            await asyncio.sleep(0)

        for (
            robot,
            one,
        ) in added:  # when all are there: a program may be told of other robots
            try:
                if one.program is not None and robot.name in sim.robots:
                    employ(robot, one.program)
            except BotyardError as error:
                log.warning("%s", error)

        await self._open_for([robot for robot, _ in added])

    async def _open_for(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        try:
            await self._open_each(robots, ports)
        except PortError as error:
            log.warning("%s", error)

    def adopt(self) -> list[Robot]:
        """Give robots that are in the world already, and that clients may reach, what
        those get that are added here.

        Returns
        -------
        list of Robot
            Those that had none of it; their ports are to be opened.
        """
        sim = self.hub.sim
        made = {robot for factory in self.factories for robot in factory.made}
        fresh = [
            robot
            for name, robot in sim.robots.items()
            if name not in self.servers
            and sim.is_served(name)
            and robot not in made
            and robot.spec.drive
        ]
        for robot in fresh:
            self._prepare(robot)
        return fresh

    def _follow(self) -> None:
        """Robots have come or gone, maybe without us: `Simulation.restore` brings and
        takes some, and so do programs.
        """
        sim = self.hub.sim
        gone = [
            n
            for n, s in self.servers.items()
            if sim.robots.get(n) is not s.robot or not sim.is_served(n)
        ]
        for name in gone:
            self._close(name)
        for factory in self.factories:
            factory.forget(sim.robots)
        if gone:
            self._feed.tell(Subject.PORTS)
        fresh = self.adopt()
        if fresh:
            ports = {
                robot.name: self._closed[robot.name]
                for robot in fresh
                if robot.name in self._closed
            }
            self.hub.background.start(self._open_for(fresh, ports), "ports of robots")

    def _close(self, name: str) -> None:
        """Close the port of a robot that has gone, and remember it: it may come back."""
        server = self.servers.pop(name)
        if server.is_open:
            self._closed.pop(name, None)
            self._closed[name] = server.address[1]
            if len(self._closed) > MAX_CLOSED:
                del self._closed[next(iter(self._closed))]

        server.close()

    def _prepare(self, robot: Robot) -> None:
        if not robot.spec.drive:
            return
        self.servers[robot.name] = PioneerServer(
            self.hub, robot, self.settings, self.desk
        )
        if self._program is not None and robot.name not in self.hub.sim.programs:
            employ(robot, self._program)

    def add_factory(
        self,
        model: str,
        places: Callable[[RobotSpec, int], Sequence[Pose]] | None = None,
    ) -> FactoryServer:
        """Add a port that makes a robot for every client.

        Raises
        ------
        WorldError
            The model cannot drive.
        """
        spec = self.find_model(model)
        check_factory_model(spec)
        factory = FactoryServer(
            self.hub,
            spec,
            self.settings,
            self.desk,
            places or self.hub.sim.next_places,
            self._workshop,
        )
        self.factories.append(factory)
        return factory

    def remove(self, names: Sequence[str]) -> None:
        """Take robots, obstacles or boxes of the map out of the world; ports are
        closed.

        Raises
        ------
        WorldError
            Nothing has one of these names; then nothing is removed.
        """
        sim = self.hub.sim
        names = list(dict.fromkeys(names))
        for name in names:
            if name not in sim.robots and name not in sim.box_names:
                raise WorldError(
                    f'there is no robot or box "{shown(name)}"{did_you_mean(name, sim.robots)}'
                )

        robots = []
        for name in names:
            if name in sim.box_names:
                sim.remove_box(name)
            elif not any(
                factory.release(name) for factory in self.factories
            ):  # else it goes with its client
                robots.append(name)

        for name in robots:
            if name in self.servers:
                self._close(name)

        sim.remove_robots(robots)
        self._feed.tell(Subject.PORTS)

    def port_of(self, robot: str) -> int:
        """TCP port of a robot; 0 while it has none."""
        server = self.servers.get(robot)
        return server.address[1] if server is not None else 0

    # -- ports

    @property
    def all_servers(self) -> Sequence[RobotPortServer]:
        """Robots in the order in which they were added, then factories."""
        return [*self.servers.values(), *self.factories]

    async def open(
        self, wanted: Mapping[RobotPortServer, int] = MappingProxyType({})
    ) -> None:
        """Open the ports of the robots and factories that have none, one after the
        other.

        Those in `wanted` get theirs if they can be had, else others.

        Raises
        ------
        PortError
            A port is taken.
        """
        if not self.is_serving:
            return
        for server, port in wanted.items():
            try:
                await server.listen(self.host, port)
                self._feed.tell(Subject.PORTS)
            except PortError as error:
                log.warning("%s; it gets another port", error)

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
        """Open one, on `port` or, if the yard is patient, on a later one; the port."""
        for attempt in itertools.count(1):
            try:
                await server.listen(self.host, port)
                self._feed.tell(Subject.PORTS)
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
        """Open the port of a robot that was added while the simulator runs: `wanted`,
        or else the next one that is free.

        Raises
        ------
        PortError
            None is.
        """
        if not self.is_serving:
            return
        if wanted:
            with contextlib.suppress(PortError):
                await server.listen(self.host, wanted)
                self._feed.tell(Subject.PORTS)
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
                self._feed.tell(Subject.PORTS)
                return
            except PortError:
                if port == last:
                    raise

    async def open_ports(
        self, wanted: Mapping[RobotPortServer, int] = MappingProxyType({})
    ) -> None:
        """Robots get ports from now on: all that can have them do, or none.

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
        """Robots have no ports from now on."""
        self.is_serving = False
        self.close()

    def close(self) -> None:
        """Close all ports; clients are told to go."""
        self._feed.tell(Subject.PORTS)
        for server in self.all_servers:
            server.close()

    def switch_interface(self, interface: str, on: bool) -> Future[None]:
        """Start or stop an interface; see `switch`."""
        return self.hub.background.future(
            self._switch(interface, on), f"interface {shown(interface)}"
        )

    async def _switch(self, name: str, on: bool) -> None:
        if await self.switch(name, on):
            log.info("interface %s %s", name, "started" if on else "stopped")

    async def switch(self, name: str, on: bool) -> bool:
        """Start or stop an interface; whether it was not as it is now.

        Raises
        ------
        WorldError
            There is no such interface.
        BotyardError
            It cannot be started.
        """
        interface = self.interfaces.get(name)
        if interface is None:
            raise WorldError(
                f'there is no interface "{shown(name)}"; there are: {", ".join(self.interfaces)}'
            )

        async with (
            self._switching
        ):  # one that is half open is neither opened nor closed by others
            if interface.on == on:
                return False
            interface.on = on
            try:
                await (interface.start() if on else interface.stop())
            except BaseException:
                interface.on = False
                raise

            return True
