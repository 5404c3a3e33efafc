"""The simulator as ROS sees it: the topics, inputs and services of all robots and of the world, offered by any number of transports.

A message is made once, when a transport has a reader for it, and encoded once for each wire form.
"""

from __future__ import annotations

import logging
import time as wall
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from botyard.control import (
    AddedRobots,
    AddRobot,
    Caller,
    Control,
    Level,
    LoadMap,
    Operation,
    Pause,
    Place,
    Remove,
    Reset,
    Resume,
    SetSpeed,
    Step,
    TakeRobot,
)
from botyard.control.fence import Fence
from botyard.control.later import then
from botyard.control.parts import RunLoop
from botyard.errors import BotyardError, WorldError
from botyard.feed import Subject
from botyard.geometry import Pose
from botyard.interfaces.ros.mapcells import MapCells
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.model.world import THING
from botyard.names import shown
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.naming import NODE, PROFILES, graph_name, names_of
from botyard.protocols.ros_messages.parameters import Parameters, Value
from botyard.protocols.ros_messages.reconfigure import LIMIT, PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.robot import SLOW, Driver, Input, RobotTopics, Service, Topic
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

SOURCE: Final = "ros"
"""In whose name ROS commands robots and reads sensors."""
ROS: Final = Caller(SOURCE, Level.CHANGE, "ROS", ignores_crowd_limit=False)
"""Any ROS program: who asks, and from where, is not told by DDS and Zenoh."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "AddRobots": "a service call adds one; call it again",
    "ClearMap": "an empty map is loaded by name",
    "CloneRobots": "add_robot with the model does it",
    "Drive": "cmd_vel is ROS's way, with its own time-out",
    "EnableMotors": "enable_motors of each robot, through TakeRobot",
    "Exit": "SetSimulationState of simulation_interfaces",
    "FreeMaps": "ROS reserves no maps",
    "Hold": "for hands: who drags a robot",
    "HoldTime": "StepSimulation of simulation_interfaces, or AMBF's World",
    "MoveJoystick": "sensor_msgs/Joy goes to the robot's program, not to the simulator",
    "PlaceAxis": "set_pose has all of a pose",
    "PressEmergencyStop": "disable_motors of each robot",
    "ReloadMap": "load_map with the same name reads a changed file",
    "RotateLog": "the log belongs to whoever runs the program",
    "SendMap": "files are sent by HTTP: the page",
    "SetAnalogInput": "a habit of Pioneer boards",
    "SetDigitalInputs": "a habit of Pioneer boards",
    "SetGhost": "a habit of Pioneer clients",
    "SetOdometryErrors": "a setting of the run",
    "StepNow": "StepSimulation of simulation_interfaces",
    "SwitchInterface": "a program does not switch off what it speaks through",
    "TakeBodies": "forces are AMBF's",
    "Throttle": "AMBF's",
    "WritePicture": "files belong to whoever runs the program",
}
"""Operations that ROS programs have no name for, and why."""
CMD_VEL_TIMEOUT: Final = 0.6
"""A robot stops after so much simulated time without cmd_vel, s (as the drivers of the real ones do)."""

log = logging.getLogger("botyard.ros")


class EncodedMessage:
    """A message of a topic, encoded once for each wire form, when the first transport asks for it.

    Parameters
    ----------
    types : Types
        Message types.
    topic : Topic
        What it is of.
    stamp : Stamp
        Of the present state.
    """

    def __init__(self, types: Types, topic: Topic, stamp: Stamp) -> None:
        self._types = types
        self._topic = topic
        self._stamp = stamp
        self._quick = topic.quick
        self.message = topic.make(stamp) if topic.quick is None else None
        self._ros1: bytes | None = None
        self._cdr: bytes | None = None

    @property
    def is_nothing(self) -> bool:
        """There is no message: nothing is to be published."""
        return self.message is None and self._quick is None

    @property
    def ros1(self) -> bytes:
        """ROS 1's form."""
        if self._ros1 is None:
            quick = self._quick
            self._ros1 = (
                quick("ros1", self._stamp) if quick else self._types.encode_ros1(self.message, self._topic.type_name)
            )
        return self._ros1

    @property
    def cdr(self) -> bytes:
        """CDR."""
        if self._cdr is None:
            quick = self._quick
            self._cdr = (
                quick("cdr", self._stamp) if quick else self._types.encode_cdr(self.message, self._topic.type_name)
            )
        return self._cdr


class Publication(Protocol):
    """A topic, as one transport publishes it."""

    @property
    def is_wanted(self) -> bool:
        """Whether anybody reads it there, or the transport keeps the last message for those to come."""
        ...

    @property
    def replays_latched(self) -> bool:
        """Whether each new reader of a latched topic gets its present message at once; else the transport keeps it for them."""
        ...

    def send(self, message: EncodedMessage) -> None:
        """Send a message; never blocks."""
        ...

    def close(self) -> None:
        """Publish it no longer."""
        ...


class Handle(Protocol):
    """An input or a service, as one transport offers it."""

    def close(self) -> None:
        """Offer it no longer."""
        ...


class Carrier(Protocol):
    """A way to publish topics and to listen to them."""

    @property
    def wire(self) -> str:
        """Its wire form: ``ros1`` or ``cdr``."""
        ...

    def advertise(
        self, node: str, topic: Topic, fresh: Callable[[], EncodedMessage | None], changed: Callable[[], None]
    ) -> Publication:
        """Publish a topic.

        Parameters
        ----------
        fresh : callable
            Makes the present message of a latched topic for a new reader.
        changed : callable
            To be called when `Publication.is_wanted` has changed, from the simulator's thread.
        """
        ...

    def listen(self, node: str, entry: Input) -> Handle:
        """Listen to a topic."""
        ...


class Transport(Carrier, Protocol):
    """A way to reach ROS programs."""

    def serve(self, node: str, service: Service) -> Handle:
        """Serve."""
        ...


@dataclass(slots=True, eq=False)
class _Live:
    """A topic that is offered, and what was said of it last."""

    topic: Topic
    node: str
    publications: dict[Transport, Publication] = field(default_factory=dict)
    readers: list[Publication] = field(default_factory=list)
    wanted: bool = False
    due_us: int = 0
    last_version: Hashable = None
    last: tuple[Hashable, EncodedMessage] | None = None
    """Of a latched topic: what was said last, and of which version it is. It is the same for all who come."""
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        self.fence = Fence(log, f"publishing {self.topic.name}")


@dataclass(slots=True, eq=False)
class _Member:
    """A robot, or the world."""

    node: str
    topics: list[_Live]
    inputs: list[Input]
    services: list[Service]
    driver: Driver | None = None
    robot: RobotTopics | None = None
    limits: Reconfigure | None = None
    called: str = ""
    """The robot's name as part of ROS names, which no other robot has."""
    handles: dict[Transport, list[Handle]] = field(default_factory=dict)
    of: Robot | None = None
    """Whose it is; another robot may get the same name."""


def _limit(limits: Reconfigure, name: str) -> float:
    return limits.values()[name]


class _LogLines(logging.Handler):
    """The last warnings and errors, as they wait for either ROS's log: whether it is an error, and the text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.ros1: deque[tuple[bool, str]] = deque(maxlen=100)
        self.ros2: deque[tuple[bool, str]] = deque(maxlen=100)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        line = (record.levelno >= logging.ERROR, record.getMessage()[:1000])
        self.ros1.append(line)
        self.ros2.append(line)


class RosGraph:
    """Offers the simulator to transports.

    Parameters
    ----------
    hub : RunLoop
        The running simulator.
    control : Control
        The door to it, through which passes what ROS asks for.
    cells : MapCells
        The map as cells.
    types : Types
        Message types.
    profile : str
        Names, see `botyard.protocols.ros_messages.naming`.
    sim_time : bool
        Stamps are simulated time, and /clock says it; else wall time.
    timeout : float
        Of cmd_vel, s; 0: never.
    """

    def __init__(
        self,
        hub: RunLoop,
        control: Control,
        cells: MapCells,
        types: Types,
        *,
        profile: str = "default",
        sim_time: bool = True,
        timeout: float = CMD_VEL_TIMEOUT,
    ) -> None:
        self._hub = hub
        self._control = control
        self._cells = cells
        self._sim = hub.sim
        self.types = types
        self.profile = PROFILES[profile]
        self.sim_time = sim_time
        self._timeout = timeout
        self._m = Messages(types)
        self._data = StepData()
        self._transports: list[Transport] = []
        self._bodies = -1
        self._maps = not self._sim.scene.source.startswith("ros:")  # else the topic is another's
        self._members: dict[str, _Member] = {}
        self._drivers = Fence(log, "a command by ROS")
        self._stale = True
        self._active: list[_Live] = []
        self._world = self._world_member()
        self._log = _LogLines()
        logging.getLogger("botyard").addHandler(self._log)
        hub.attach(self)
        self._unfollow = hub.follow(self._follow, Subject.BODIES)

    def close(self) -> None:
        """Offer nothing any more."""
        self._hub.detach(self)
        self._unfollow()
        logging.getLogger("botyard").removeHandler(self._log)
        for transport in tuple(self._transports):
            self.remove(transport)

    @property
    def node(self) -> str:
        """The node of the world."""
        return self._world.node

    # -- transports

    def add(self, transport: Transport) -> None:
        """Offer everything by another transport, too."""
        self._sync()
        self._transports.append(transport)
        for member in (self._world, *self._members.values()):
            self._offer(member, transport)

    def remove(self, transport: Transport) -> None:
        """Unregister it."""
        if transport in self._transports:
            self._transports.remove(transport)
        for member in (self._world, *self._members.values()):
            self._withdraw(member, transport)
            if not self._transports and member.driver is not None:
                member.driver.end()  # nobody is left who could stop it

    def _offer(self, member: _Member, transport: Transport) -> None:
        known = ("", transport.wire)
        for live in member.topics:
            if live.topic.only in known:
                live.publications[transport] = self._advertised(transport, live)
        self._refresh()
        handles = member.handles.setdefault(transport, [])
        handles += [transport.listen(member.node, entry) for entry in member.inputs]
        handles += [transport.serve(member.node, service) for service in member.services if service.only in known]

    def _advertised(self, transport: Transport, live: _Live) -> Publication:
        return transport.advertise(live.node, live.topic, lambda: self._fresh(live), self._refresh)

    def _refresh(self) -> None:
        """Somebody has begun or ended to read something."""
        self._stale = True

    def _withdraw(self, member: _Member, transport: Transport) -> None:
        for live in member.topics:
            publication = live.publications.pop(transport, None)
            if publication is not None:
                publication.close()
        self._refresh()
        for handle in member.handles.pop(transport, []):
            handle.close()

    # -- robots come and go

    def _follow(self) -> None:
        """Robots have come or gone: programs see that also while time stands still."""
        if self._transports:
            self._sync()

    def _sync(self) -> None:
        revision = self._sim.feed.last(Subject.BODIES)
        if revision == self._bodies:
            return
        self._bodies = revision
        robots = {n: r for n, r in self._sim.robots.items() if r.spec.drive and r.spec.name != THING}
        for name in [n for n, member in self._members.items() if robots.get(n) is not member.of]:
            member = self._members.pop(name)
            if member.robot is not None:
                member.robot.close()
            for transport in self._transports:
                self._withdraw(member, transport)
        for name, robot in robots.items():
            if name not in self._members:
                member = self._members[name] = self._robot_member(robot, len(robots) == 1)
                for transport in self._transports:
                    self._offer(member, transport)

    def _called(self, robot: str) -> str:
        """A robot's name in ROS, where fewer characters are allowed: different robots have different ones, and none has the world's."""
        taken = {NODE: "the simulator", **{m.called: f'"{name}"' for name, m in self._members.items()}}
        first = name = graph_name(robot)
        n = 2
        while name in taken:
            name, n = f"{first}_{n}", n + 1
        if name != first:
            log.warning('ROS: "%s" would have the names of %s: it is %s there', robot, taken[first], name)
        return name

    def _robot_member(self, robot: Robot, alone: bool) -> _Member:
        called = self._called(robot.name)
        names = names_of(called, self.profile.name, alone)
        port = self._control.do(ROS, TakeRobot(robot=robot.name))
        topics = RobotTopics(port, names, self._m, self.types, lambda: self._sim.dt, self._data)
        offered = topics.topics()
        for device, problem in topics.problems.items():
            log.warning("%s: ROS does not show %s: %s", robot.name, device, problem)

        def conflict() -> None:
            others = [s for s in robot.clients if s != SOURCE]
            if others:
                log.warning(
                    "%s: ROS and %s command it at the same time; the last command counts", robot.name, ", ".join(others)
                )
            robot.claim(SOURCE)

        driver = Driver(
            port,
            conflict,
            lambda: robot.release(SOURCE),
            self._timeout,
            lambda text: log.warning("%s: %s", robot.name, text),
        )
        put = partial(self._place, robot.name)
        on, off = self._empty(lambda: driver.enable(True)), self._empty(lambda: driver.enable(False))
        about: dict[str, tuple[str, Callable[[Any], None], str, type[Operation[Any]] | None]] = {
            "cmd_vel": ("geometry_msgs/Twist", driver.twist, "velocity: m/s and rad/s", None),
            "cmd_vel_stamped": ("geometry_msgs/TwistStamped", driver.stamped, "velocity, with a header", None),
            "enable_motors_cmd": ("std_msgs/Bool", lambda m: driver.enable(bool(m.data)), "motors on or off", None),
            "set_pose": ("geometry_msgs/PoseStamped", put, "put it there", Place),
        }
        inputs = [
            Input(names.topic(name), kind, act, text, operation=operation)
            for name, (kind, act, text, operation) in about.items()
            if names.offers(name)
        ]
        switches = {"enable_motors": (on, "motors on"), "disable_motors": (off, "motors off")}
        services = [
            Service(names.topic(name), "std_srvs/Empty", act, text)
            for name, (act, text) in switches.items()
            if names.offers(name)
        ]
        inputs = [i for i in inputs if self._may(i)]
        limits = None
        if names.offers("limits"):
            limits = Reconfigure(port, names.prefix, self.types, self._hub.settle)
            offered += limits.topics()
            services.append(limits.service())
        lives = [_Live(t, names.node) for t in offered]
        return _Member(names.node, lives, inputs, services, driver, topics, limits, called, of=robot)

    def _place(self, name: str, message: Any) -> None:
        pose = message.pose
        self._put(name, float(pose.position.x), float(pose.position.y), yaw_of(pose.orientation))

    def _put(self, name: str, x: float, y: float, yaw: float) -> None:
        self._control.do(ROS, Place(to=((name, Pose(x, y, yaw)),)))

    # -- the world

    def _empty(self, act: Callable[[], None]) -> Callable[[Any], Any]:
        """A service of std_srvs/Empty."""

        def serve(_request: Any) -> Any:
            act()
            return self.types.empty("std_srvs/EmptyResponse")

        return serve

    def _result(self, type_name: str, act: Callable[[Any], str | None]) -> Callable[[Any], Any]:
        """A service that says whether it worked, and why not."""

        def serve(request: Any) -> Any:
            try:
                text = act(request)
            except BotyardError as error:
                return self.types[f"{type_name}Response"](success=False, message=str(error))
            return self.types[f"{type_name}Response"](success=True, message=text or "")

        return serve

    def _world_member(self) -> _Member:
        node, offered = self.profile.world_node, self.profile.world
        topics = [
            Topic("/tf", "tf2_msgs/TFMessage", self._tf, "odom → base_link of every robot", queue=100),
            Topic("/tf_static", "tf2_msgs/TFMessage", self._tf_static, "base_link → sensors", version=self._latched_robots),
            Topic("/rosout", "rosgraph_msgs/Log", self._log_line, "warnings and errors of the simulator", queue=100, only="ros1"),
            Topic("/rosout", "rcl_interfaces/Log", self._log_line2, "warnings and errors of the simulator", queue=100, only="cdr"),
        ]  # fmt: skip
        services: list[Service] = []
        inputs: list[Input] = []
        if self.sim_time and "clock" in offered:
            topics.append(Topic("/clock", "rosgraph_msgs/Clock", self._clock, "simulated time", queue=1))
        if "map" in offered and self._maps:
            topics.append(
                Topic(
                    "/map",
                    "nav_msgs/OccupancyGrid",
                    self._map,
                    "the static map",
                    version=lambda: self._cells.version,
                    queue=1,
                )
            )
        if "diagnostics" in offered:
            topics.append(
                Topic(
                    "/diagnostics",
                    "diagnostic_msgs/DiagnosticArray",
                    self._diagnostics,
                    "how the simulator and the robots are",
                    period=SLOW,
                )
            )
        if "control" in offered:
            services += self._world_services(f"{node}/")
            services += Parameters(node, self.types, self._parameters).services()
            standard = RosSimulator(node, self.types, self._m, self._control, self.stamp, ROS)
            services += standard.services()
            inputs += self._world_inputs(node)
        if "reset_positions" in offered:
            services.append(
                Service(
                    "/reset_positions",
                    "std_srvs/Empty",
                    self._empty(lambda: self._do(Reset())),
                    "all robots back to their starts",
                    operation=Reset,
                )
            )
        inputs = [i for i in inputs if self._may(i)]
        services = [s for s in services if self._may(s)]
        return _Member(node, [_Live(t, node) for t in topics], inputs, services)

    def _world_inputs(self, node: str) -> list[Input]:
        def listen(name: str, kind: str, act: Callable[[Any], None], about: str, operation: type[Any]) -> Input:
            return Input(f"{node}/{name}_cmd", f"std_msgs/{kind}", lambda m: act(m.data), about, operation=operation)

        do = self._do
        return [
            listen(
                "pause", "Bool", lambda on: do(Pause() if on else Resume()), "let time stand still, or go on", Pause
            ),
            listen("step", "UInt32", lambda n: do(Step(steps=int(n))), "so many steps, then stand still", Step),
            listen("set_speed", "Float64", lambda x: do(SetSpeed(speed=float(x))), "simulated per wall time", SetSpeed),
            listen("load_map", "String", self._load, "another map or world", LoadMap),
        ]

    def _parameters(self) -> dict[str, Value]:
        """ROS 2's parameters of the node: limits of every robot, and whether time is simulated."""
        found = {"use_sim_time": Value(lambda: self.sim_time, "whether stamps are simulated time")}
        for member in self._members.values():
            if (limits := member.limits) is None:
                continue
            for p in PARAMETERS:
                get, put = partial(_limit, limits, p.name), partial(limits.change, p)
                found[f"{member.called}.{p.name}"] = Value(get, f"{p.about}, {p.unit}", put, LIMIT)
        return found

    def _world_services(self, prefix: str) -> list[Service]:
        do = self._do

        def service(
            name: str, type_name: str, act: Callable[[Any], str | None], about: str, operation: type[Operation[Any]]
        ) -> Service:
            return Service(prefix + name, type_name, self._result(type_name, act), about, operation=operation)

        def put(r: Any) -> None:
            self._put(str(r.name), r.pose.x, r.pose.y, r.pose.theta)

        pace = "simulated per wall time"
        return [
            service("pause", "std_srvs/Trigger", lambda _: do(Pause()), "let time stand still", Pause),
            service("resume", "std_srvs/Trigger", lambda _: do(Resume()), "let time go on", Resume),
            service("step", "botyard_msgs/Step", lambda r: do(Step(steps=int(r.steps))), "so many steps, then stand still", Step),
            service("set_speed", "botyard_msgs/SetSpeed", lambda r: do(SetSpeed(speed=float(r.factor))), pace, SetSpeed),
            Service(f"{prefix}add_robot", "botyard_msgs/AddRobot", self._add_robot, "another robot", operation=AddRobot),
            service("remove_robot", "botyard_msgs/RemoveRobot", lambda r: do(Remove(names=(str(r.name),))), "take it away", Remove),
            service("set_pose", "botyard_msgs/SetPose", put, "put it there", Place),
            service("load_map", "botyard_msgs/LoadMap", lambda r: self._load(r.name), "another map or world", LoadMap),
            *([Service("/static_map", "nav_msgs/GetMap", self._get_map, "the static map")] if self._maps else []),
        ]  # fmt: skip

    def _may(self, offer: Input | Service) -> bool:
        """Whether ROS programs may have it: under ``--read-only`` what changes the world is not offered."""
        return offer.operation is None or self._control.allows(ROS, offer.operation)

    def _do(self, operation: Operation[Any]) -> None:
        self._control.do(ROS, operation)

    def _load(self, name: Any) -> None:
        """Begin to load a map; what comes of it is in the log."""
        self._do(LoadMap(map=str(name), reserved=False))

    def _add_robot(self, request: Any) -> Any:
        response = self.types["botyard_msgs/AddRobotResponse"]
        try:
            pose = None if request.anywhere else Pose(request.pose.x, request.pose.y, request.pose.theta)
            robot, model = str(request.name), str(request.model)
            added = self._control.do(ROS, AddRobot(model=model, robot=robot, pose=pose))
        except BotyardError as error:
            return response(success=False, message=str(error), name="")

        def answer(added: Future[AddedRobots]) -> Any:
            try:
                return response(success=True, message="", name=added.result().robots[0])
            except BotyardError as error:
                return response(success=False, message=str(error), name="")

        return answer(added) if added.done() else then(added, answer)

    # -- what the world says

    def stamp(self) -> Stamp:
        """The time of the present state."""
        return Stamp.of_us(self._sim.snapshot.time_us) if self.sim_time else Stamp.of_seconds(wall.time())

    def _tf(self, stamp: Stamp) -> Any:
        return self._m.tf(stamp, [m.robot.transform() for m in self._members.values() if m.robot is not None])

    def _latched_robots(self) -> Hashable:
        """Changes when /tf_static does."""
        return tuple(self._members.values())

    def _tf_static(self, stamp: Stamp) -> Any:
        return self._m.tf(
            stamp, [t for m in self._members.values() if m.robot is not None for t in m.robot.static_transforms()]
        )

    def _log_line(self, stamp: Stamp) -> Any:
        """One line a step: a flood of them must not hold up what matters."""
        if not self._log.ros1:
            return None
        is_error, text = self._log.ros1.popleft()
        return self._m.log(stamp, 8 if is_error else 4, self._world.node, text)

    def _log_line2(self, stamp: Stamp) -> Any:
        if not self._log.ros2:
            return None
        is_error, text = self._log.ros2.popleft()
        kind = self.types.two("rcl_interfaces/Log")
        return self._m.log2(kind, stamp, 40 if is_error else 30, self._world.node, text)

    def _clock(self, stamp: Stamp) -> Any:
        return self._m.clock(stamp) if stamp != (0, 0) else None  # 0 means that time has not begun

    def _diagnostics(self, stamp: Stamp) -> Any:
        robots = [m.robot.diagnostics() for m in self._members.values() if m.robot is not None]
        return self._m.diagnostics(stamp, [self._health(), *robots])

    def _health(self) -> tuple[str, int, str, list[tuple[str, str]]]:
        """The simulator itself, as SIMSTAT says it to Pioneer clients."""
        hub, sim = self._hub, self._sim
        ratio = hub.ratio
        late = not hub.is_paused and 0.0 < ratio < 0.9 * hub.speed
        level, text = (1, "slower than wanted") if late else (0, "paused" if hub.is_paused else "OK")
        values = {
            "map": shown(sim.scene.name),
            "robots": len(sim.robots),
            "time": f"{sim.time:.3f}",
            "real-time ratio": f"{ratio:.3f}",
            "step time, ms": f"{1e3 * hub.step_time:.3f}",
            "overruns": hub.overruns,
        }
        return "simulator", level, text, [(k, str(v)) for k, v in values.items()]

    def _map(self, stamp: Stamp) -> Any:
        """The map; None while its cells are being made."""
        raster = self._cells.get()
        return None if raster is None else self._m.map(stamp, raster, "map")

    def _get_map(self, _request: Any) -> Any:
        found = self._map(self.stamp())
        if found is None:
            raise WorldError("the map is being drawn; ask again in some seconds")
        return self.types["nav_msgs/GetMapResponse"](map=found)

    # -- every step

    def on_snapshot(self, now: float) -> None:
        """A step is done: publish what is wanted and due."""
        if not self._transports:
            return
        self._data.forget()
        self._sync()
        stamp, time_us = self.stamp(), self._sim.snapshot.time_us
        for member in self._members.values():
            if member.driver is not None:
                self._drivers.run(member.driver.tick)
        if self._stale:
            self._activate()
        for live in self._active:
            live.fence.run(self._say, live, stamp, time_us)

    def _activate(self) -> None:
        """Find the topics that somebody reads; sensors behind the others rest."""
        self._stale = False
        self._active = []
        for member in (self._world, *self._members.values()):
            for live in member.topics:
                before, live.readers = live.readers, [p for p in live.publications.values() if p.is_wanted]
                new = [p for p in live.readers if p not in before]
                if bool(live.readers) != live.wanted:
                    live.wanted = bool(live.readers)
                    live.topic.wanted(live.wanted)
                if new and live.topic.version is not None:
                    if not all(p.replays_latched for p in new):
                        live.last_version = None
                    elif len(new) == len(live.readers):  # all of them were greeted: they have the last message already
                        live.last_version = live.topic.version()
                if live.wanted:
                    self._active.append(live)

    def _say(self, live: _Live, stamp: Stamp, time_us: int) -> None:
        topic = live.topic
        if topic.version is not None:
            version = topic.version()
            if version == live.last_version:
                return
            live.last_version = version
        elif topic.period:
            if time_us < live.due_us:
                return
            live.due_us = time_us + round(topic.period * 1e6)
        once = EncodedMessage(self.types, topic, stamp)
        if topic.version is not None:
            live.last = live.last_version, once
        if once.is_nothing:
            return
        for publication in live.readers:
            publication.send(once)

    def _fresh(self, live: _Live) -> EncodedMessage | None:
        """The present message of a latched topic, for a reader that has just come."""
        version = live.topic.version() if live.topic.version is not None else None
        if live.last is None or version is None or live.last[0] != version:
            live.last = version, EncodedMessage(self.types, live.topic, self.stamp())
        once = live.last[1]
        return None if once.is_nothing else once

    # -- for people

    def describe(self) -> Iterable[tuple[str, str, str, str]]:
        """Kind, name, type and meaning of everything that is offered."""
        self._sync()
        for member in (self._world, *self._members.values()):
            yield from (("topic", t.topic.name, t.topic.type_name, t.topic.about) for t in member.topics)
            yield from (("input", i.name, i.type_name, i.about) for i in member.inputs)
            yield from (("service", s.name, s.type_name, s.about) for s in member.services)


__all__ = [
    "CMD_VEL_TIMEOUT",
    "SOURCE",
    "Carrier",
    "EncodedMessage",
    "Handle",
    "Publication",
    "RosGraph",
    "Transport",
    "graph_name",
]
