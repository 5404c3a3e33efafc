"""`RosGraph`: topics, inputs and services of the world and all robots, offered by any number of transports.

A message is made only if a transport has a subscriber for it, and encoded once for each wire format.
"""

from __future__ import annotations

import logging
import math
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
    CommandDevice,
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
    StepNow,
    TakeRobot,
)
from botyard.control.fence import Fence
from botyard.control.later import then
from botyard.control.parts import Portions, RunLoop
from botyard.errors import BotyardError, WorldError
from botyard.feed import Subject
from botyard.geometry import Pose
from botyard.interfaces.ros.mapcells import MapCells
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.interfaces.ros.transforms import Transforms, description
from botyard.model.world import THING
from botyard.names import shown
from botyard.protocols.ros_messages.actions import ActionServer
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform, yaw_of
from botyard.protocols.ros_messages.naming import NODE, PROFILES, Names, Profile, graph_name, names_of
from botyard.protocols.ros_messages.parameters import Parameters, Value
from botyard.protocols.ros_messages.reconfigure import MAX_RAMP, PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.robot import DIAGNOSTICS_PERIOD, Driver, Input, RobotTopics, Service, Topic
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

SOURCE: Final = "ros"
"""Source of ROS's commands and sensor subscriptions."""
ROS: Final = Caller(SOURCE, Level.CHANGE, "ROS", ignores_crowd_limit=False)
"""Caller for all ROS programs: DDS and Zenoh do not identify the sender."""
NOT_OFFERED: Final[Mapping[str, str]] = {
    "AddEach": "SpawnEntities of simulation_interfaces",
    "AddRobots": "a service call adds one; call it again",
    "ClearMap": "an empty map is loaded by name",
    "CloneRobots": "add_robot with the model does it",
    "Drive": "cmd_vel is ROS's way, with its own time-out",
    "EnableMotors": "enable_motors of each robot, through TakeRobot",
    "Exit": "SetSimulationState of simulation_interfaces",
    "FreeMaps": "ROS reserves no maps",
    "Hold": "for hands: who drags a robot",
    "HoldTime": "StepSimulation of simulation_interfaces, or AMBF's World",
    "LoadWorld": "LoadWorld of simulation_interfaces",
    "MoveJoystick": "sensor_msgs/Joy goes to the robot's program, not to the simulator",
    "PlaceAxis": "set_pose has all of a pose",
    "PressEmergencyStop": "disable_motors of each robot",
    "ReloadMap": "load_map with the same name reads a changed file",
    "RotateLog": "the log belongs to whoever runs the program",
    "SendMap": "files are sent by HTTP: the page",
    "SetAnalogInput": "a habit of Pioneer boards",
    "SetBodyInfo": "SetEntityInfo of simulation_interfaces",
    "SetBodyState": "SetEntityState of simulation_interfaces",
    "SetDigitalInputs": "a habit of Pioneer boards",
    "SetGhost": "a habit of Pioneer clients",
    "SetOdometryErrors": "a setting of the run",
    "StepNow": "StepSimulation of simulation_interfaces",
    "Stop": "SetSimulationState of simulation_interfaces",
    "SwitchInterface": "a program does not switch off what it speaks through",
    "TakeBodies": "forces are AMBF's",
    "Throttle": "AMBF's",
    "UnloadWorld": "UnloadWorld of simulation_interfaces",
    "WritePicture": "files belong to whoever runs the program",
}
"""Operations without a topic or service in ROS, and why."""
CMD_VEL_TIMEOUT: Final = 0.6
"""Time-out of cmd_vel, simulated s, after which a robot stops (as with drivers of real robots)."""

log = logging.getLogger("botyard.ros")


class EncodedMessage:
    """A message of a topic, encoded lazily and once for each wire format.

    Parameters
    ----------
    types : Types
        Message types.
    topic : Topic
        The topic.
    stamp : Stamp
        Time of the present state.
    """

    def __init__(self, types: Types, topic: Topic, stamp: Stamp) -> None:
        self._types = types
        self._topic = topic
        self._stamp = stamp
        self._quick = topic.quick
        self._message = topic.make(stamp) if topic.quick is None else None
        self._ros1: bytes | None = None
        self._cdr: bytes | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether there is no message to publish."""
        return self._message is None and self._quick is None

    @property
    def stamp(self) -> Stamp:
        """Time of the state."""
        return self._stamp

    @property
    def message(self) -> Any:
        """The message as an object of its ROS 1 class, for transports with a form of their own; of the present state, like the bytes."""
        if self._message is None:
            self._message = self._topic.make(self._stamp)
        return self._message

    @property
    def ros1(self) -> bytes:
        """Encoded in ROS 1's format."""
        if self._ros1 is None:
            quick = self._quick
            self._ros1 = (
                quick("ros1", self._stamp) if quick else self._types.encode_ros1(self._message, self._topic.type_name)
            )
        return self._ros1

    @property
    def cdr(self) -> bytes:
        """Encoded as CDR (ROS 2)."""
        if self._cdr is None:
            quick = self._quick
            self._cdr = (
                quick("cdr", self._stamp) if quick else self._types.encode_cdr(self._message, self._topic.type_name)
            )
        return self._cdr


class Publication(Protocol):
    """Publisher of a topic on one transport."""

    @property
    def is_wanted(self) -> bool:
        """Whether it has a subscriber, or the transport keeps the last message for late joiners."""
        ...

    @property
    def replays_latched(self) -> bool:
        """Whether each new subscriber of a latched topic gets its present message at once; else the transport keeps it for late joiners."""
        ...

    def send(self, message: EncodedMessage) -> None:
        """Send a message; never blocks."""
        ...

    def close(self) -> None:
        """Unadvertise the topic."""
        ...


class Handle(Protocol):
    """Subscription or service server on one transport."""

    def close(self) -> None:
        """Unsubscribe, or close the service."""
        ...


class Carrier(Protocol):
    """Transport of topics."""

    @property
    def wire(self) -> str:
        """Its wire format: ``ros1`` or ``cdr``."""
        ...

    def advertise(
        self, node: str, topic: Topic, fresh: Callable[[], EncodedMessage | None], changed: Callable[[], None]
    ) -> Publication:
        """Advertise a topic.

        Parameters
        ----------
        fresh : callable
            Returns the present message of a latched topic, for a new subscriber.
        changed : callable
            The transport calls it in the simulator's thread when `Publication.is_wanted` has changed.
        """
        ...

    def listen(self, node: str, entry: Input) -> Handle:
        """Subscribe to a topic."""
        ...


class Transport(Carrier, Protocol):
    """Transport of topics and services."""

    @property
    def mixes_types(self) -> bool:
        """Whether inputs of one name may have different types, as in ROS 2; else only the first input of a name is listened to."""
        ...

    def serve(self, node: str, service: Service) -> Handle:
        """Offer a service."""
        ...


@dataclass(slots=True, eq=False)
class _Offer:
    """An advertised topic, with its publishers and the state of its publication."""

    topic: Topic
    node: str
    publications: dict[Transport, Publication] = field(default_factory=dict)
    readers: list[Publication] = field(default_factory=list)
    wanted: bool = False
    due_us: int = 0
    last_version: Hashable = None
    latched: tuple[Hashable, EncodedMessage] | None = None
    """Latched topics: version and last message, which all late joiners get."""
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        self.fence = Fence(log, f"publishing {self.topic.name}")


@dataclass(slots=True, eq=False)
class _Member:
    """Node of a robot or of the world: everything that it offers."""

    node: str
    topics: list[_Offer]
    inputs: list[Input]
    services: list[Service]
    driver: Driver | None = None
    robot: RobotTopics | None = None
    limits: Reconfigure | None = None
    ros_name: str = ""
    """The robot's unique name in ROS names."""
    handles: dict[Transport, list[Handle]] = field(default_factory=dict)
    of: Robot | None = None
    """The robot, to notice that another one has got the same name."""


def _limit(limits: Reconfigure, name: str) -> float:
    return limits.values()[name]


def _limit_parameters(limits: Reconfigure | None) -> dict[str, Value]:
    """A robot's motion limits as ROS 2 parameters."""
    if limits is None:
        return {}
    return {
        p.name: Value(partial(_limit, limits, p.name), f"{p.about}, {p.unit}", partial(limits.change, p), MAX_RAMP)
        for p in PARAMETERS
    }


class _LogLines(logging.Handler):
    """Ring buffers of warnings and errors for /rosout of ROS 1 and ROS 2: whether it is an error, and the text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.ros1: deque[tuple[bool, str]] = deque(maxlen=100)
        self.ros2: deque[tuple[bool, str]] = deque(maxlen=100)

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line to both buffers."""
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
        The control surface.
    cells : MapCells
        The map as an occupancy grid.
    types : Types
        Message types.
    profile : Profile
        What is offered, and its names, see `botyard.protocols.ros_messages.naming`.
    is_localized : bool
        botyard stands in for a localization: it sends map → odom, and listens to ``initialpose``.
    has_map : bool, optional
        It publishes the map; if it is not given, where the profile says so, and where botyard stands in for a localization.
    sim_time : bool
        Stamps are simulated time, which /clock publishes; else wall time.
    timeout : float
        Time-out of cmd_vel, simulated s; 0: none.
    """

    def __init__(
        self,
        hub: RunLoop,
        control: Control,
        cells: MapCells,
        types: Types,
        *,
        profile: Profile = PROFILES["default"],
        is_localized: bool = False,
        has_map: bool | None = None,
        sim_time: bool = True,
        timeout: float = CMD_VEL_TIMEOUT,
    ) -> None:
        self._hub = hub
        self._control = control
        self._cells = cells
        self._sim = hub.sim
        self.types = types
        self.profile = profile
        self.sim_time = sim_time
        self._timeout = timeout
        self._m = Messages(types)
        self._data = StepData(is_localized)
        self._transports: list[Transport] = []
        self._bodies = -1
        self._maps = (is_localized or "map" in profile.world) if has_map is None else has_map
        if self._sim.scene.source.startswith("ros:"):
            self._maps = False  # another program publishes it
        self._members: dict[str, _Member] = {}
        self._drivers = Fence(log, "a command by ROS")
        self._stale = True
        self._active: list[_Offer] = []
        self._steps: ActionServer | None = None
        self._own_parameters = Parameters(self.profile.world_node, types, self._parameters)
        self._world = self._world_member()
        self._robots: list[RobotTopics] = []
        """Of all members."""
        self._log = _LogLines()
        logging.getLogger("botyard").addHandler(self._log)
        hub.attach(self)
        self._unfollow = hub.follow(self._follow, Subject.BODIES)

    def close(self) -> None:
        """Withdraw everything, and unregister from the simulator."""
        self._hub.detach(self)
        self._unfollow()
        logging.getLogger("botyard").removeHandler(self._log)
        for transport in tuple(self._transports):
            self.remove(transport)

    @property
    def node(self) -> str:
        """Name of the world's node."""
        return self._world.node

    # -- transports

    def add(self, transport: Transport) -> None:
        """Add a transport, and offer everything on it."""
        self._sync()
        self._transports.append(transport)
        for member in (self._world, *self._members.values()):
            self._offer(member, transport)

    def remove(self, transport: Transport) -> None:
        """Remove a transport, and withdraw everything from it."""
        if transport in self._transports:
            self._transports.remove(transport)
        for member in (self._world, *self._members.values()):
            self._withdraw(member, transport)
            if not self._transports and member.driver is not None:
                member.driver.end()  # no client is left that could stop it

    def _offer(self, member: _Member, transport: Transport) -> None:
        known = ("", transport.wire)
        for offer in member.topics:
            if offer.topic.only in known:
                offer.publications[transport] = self._advertised(transport, offer)
        self._refresh()
        handles = member.handles.setdefault(transport, [])
        inputs = member.inputs if transport.mixes_types else {i.name: i for i in reversed(member.inputs)}.values()
        handles += [transport.listen(member.node, entry) for entry in inputs]
        handles += [transport.serve(member.node, service) for service in member.services if service.only in known]

    def _advertised(self, transport: Transport, offer: _Offer) -> Publication:
        return transport.advertise(offer.node, offer.topic, lambda: self._latched_message(offer), self._refresh)

    def _refresh(self) -> None:
        """A topic has got or lost a subscriber."""
        self._stale = True

    def _withdraw(self, member: _Member, transport: Transport) -> None:
        for offer in member.topics:
            publication = offer.publications.pop(transport, None)
            if publication is not None:
                publication.close()
        self._refresh()
        for handle in member.handles.pop(transport, []):
            handle.close()

    # -- robots added and removed

    def _follow(self) -> None:
        """Robots were added or removed: update the graph, also while the simulation is paused."""
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
        self._own_parameters.events.publish()  # robots come and go with their parameters
        self._robots = [member.robot for member in self._members.values() if member.robot is not None]

    def _unique_ros_name(self, robot: str) -> str:
        """A unique ROS name for a robot: ROS allows fewer characters, so that different names could become equal."""
        taken = {NODE: "the simulator", **{m.ros_name: f'"{name}"' for name, m in self._members.items()}}
        first = name = graph_name(robot)
        n = 2
        while name in taken:
            name, n = f"{first}_{n}", n + 1
        if name != first:
            log.warning('ROS: "%s" would have the names of %s: it is %s there', robot, taken[first], name)
        return name

    def _robot_member(self, robot: Robot, alone: bool) -> _Member:
        ros_name = self._unique_ros_name(robot.name)
        names = names_of(ros_name, self.profile, alone)
        port = self._control.do(ROS, TakeRobot(robot=robot.name))
        topics = RobotTopics(port, names, self._m, self.types, self._data)
        offered = [*topics.topics(), *self._topics_for_views(topics)]
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
            self.stamp,
            lambda text: log.warning("%s: %s", robot.name, text),
        )
        put = partial(self._place, robot.name)
        on, off = self._empty(lambda: driver.enable(True)), self._empty(lambda: driver.enable(False))
        stamped = "velocity, with a header: refused if its stamp is older than `--cmd-vel-timeout`"
        about: tuple[tuple[str, str, Callable[[Any], None], str, type[Operation[Any]] | None], ...] = (
            ("cmd_vel", "geometry_msgs/Twist", driver.twist, "velocity: m/s and rad/s", None),
            ("cmd_vel", "geometry_msgs/TwistStamped", driver.stamped, f"{stamped} (ROS 2)", None),
            ("cmd_vel_stamped", "geometry_msgs/TwistStamped", driver.stamped, stamped, None),
            ("enable_motors_cmd", "std_msgs/Bool", lambda m: driver.enable(bool(m.data)), "motors on or off", None),
            ("set_pose", "geometry_msgs/PoseStamped", put, "put it there", Place),
        )
        if self._data.frames.is_localized:
            estimate = "the robot believes to be there; --localization then errs by as much"
            believe = partial(self._believe, topics)
            about += (("initialpose", "geometry_msgs/PoseWithCovarianceStamped", believe, estimate, None),)
        inputs = [
            Input(names.topic(name), kind, act, text, operation=operation)
            for name, kind, act, text, operation in about
            if names.offers(name)
        ]
        inputs += self._device_inputs(robot, names)
        switches = {"enable_motors": (on, "motors on"), "disable_motors": (off, "motors off")}
        services = [
            Service(names.topic(name), "std_srvs/Empty", act, text)
            for name, (act, text) in switches.items()
            if names.offers(name)
        ]
        inputs = [i for i in inputs if self._is_allowed(i)]
        limits = None
        if names.offers("limits"):
            limits = Reconfigure(port, names.prefix, self.types, self._hub.settle)
            offered += limits.topics()
            services.append(limits.service())
        if names.node != self.profile.world_node:  # every node of ROS 2 has parameters
            services += Parameters(names.node, self.types, partial(self._robot_parameters, limits)).services()
        offers = [_Offer(t, names.node) for t in offered]
        return _Member(names.node, offers, inputs, services, driver, topics, limits, ros_name, of=robot)

    def _device_inputs(self, robot: Robot, names: Names) -> Iterable[Input]:
        """Topics by which actuators are commanded."""
        for device, reader in robot.devices.items():
            for command in reader.kind.commands:
                if names.profile.name in command.profiles:
                    about = f"{command.about or command.name}{f', {command.unit}' if command.unit else ''}"
                    take = partial(self._command, robot.name, device, command.name)
                    topic = names.topic(f"{device}/{command.name}_cmd")
                    yield Input(topic, "std_msgs/Float64", take, about, operation=CommandDevice)

    def _command(self, robot: str, device: str, command: str, message: Any) -> None:
        self._control.do(ROS, CommandDevice(robot=robot, device=device, command=command, value=float(message.data)))

    def _place(self, name: str, message: Any) -> None:
        pose = message.pose
        self._put(name, float(pose.position.x), float(pose.position.y), yaw_of(pose.orientation))

    def _put(self, name: str, x: float, y: float, yaw: float) -> None:
        self._control.do(ROS, Place(to=((name, Pose(x, y, yaw)),)))

    # -- the world

    def _empty(self, act: Callable[[], None]) -> Callable[[Any], Any]:
        """Handler of a std_srvs/Empty service."""

        def serve(_request: Any) -> Any:
            act()
            return self.types.empty("std_srvs/EmptyResponse")

        return serve

    def _result(self, type_name: str, act: Callable[[Any], str | None]) -> Callable[[Any], Any]:
        """Handler of a service with ``success`` and ``message`` in its response."""

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
            Topic("/rosout", "rosgraph_msgs/Log", self._log_line, "warnings and errors of the simulator", queue=100, only="ros1"),
            Topic("/rosout", "rcl_interfaces/Log", self._log_line2, "warnings and errors", queue=100, only="cdr", is_kept=True),
        ]  # fmt: skip
        topics.append(self._own_parameters.events)
        services = self._own_parameters.services()
        inputs: list[Input] = []
        if not self.profile.has_own_tf:
            # simulation_interfaces calls the frame of the world so
            fixed = [Transform("world", MAP, Pose())] if "control" in offered else []
            topics += Transforms(self.types, self._m, "/tf", lambda: self._robots, fixed).topics()
        if self.sim_time and "clock" in offered:
            topics.append(Topic("/clock", "rosgraph_msgs/Clock", self._clock, "simulated time", queue=1))
        if "map" in offered and self._maps:
            topics.append(self._map_topic("/map"))
        if "diagnostics" in offered:
            topics.append(
                Topic(
                    "/diagnostics",
                    "diagnostic_msgs/DiagnosticArray",
                    self._diagnostics,
                    "how the simulator and the robots are",
                    period=DIAGNOSTICS_PERIOD,
                )
            )
        if "control" in offered:
            services += self._world_services(f"{node}/")
            standard = RosSimulator(node, self.types, self._m, self._control, self.stamp, ROS)
            services += standard.services()
            if self._control.allows(ROS, StepNow):
                self._steps = standard.action(wall.monotonic, self._soon)
                services += self._steps.services
                topics += self._steps.topics
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
        inputs = [i for i in inputs if self._is_allowed(i)]
        services = [s for s in services if self._is_allowed(s)]
        offers = [_Offer(t, node) for t in topics]
        for offer in offers:
            offer.topic.publish = partial(self._publish_now, offer)
        return _Member(node, offers, inputs, services)

    def _soon(self, act: Callable[[], None]) -> None:
        """Call a function in the next turn of the event loop."""

        def work() -> Portions[None]:
            yield None
            act()

        self._hub.background.start(work(), "a goal of an action")

    def _map_topic(self, name: str) -> Topic:
        kind = "nav_msgs/OccupancyGrid"
        return Topic(name, kind, self._map, "the static map", version=lambda: self._cells.version, queue=1)

    def _topics_for_views(self, topics: RobotTopics) -> list[Topic]:
        """What programs need to show a robot and to steer by its map, beside its own topics."""
        names, found = topics.names, []
        if names.profile.has_own_tf:
            found += Transforms(self.types, self._m, names.tf, lambda: [topics]).topics()
        if names.offers("robot_description"):
            found.append(description(topics, self._m))
        if names.offers("map") and self._maps:
            found.append(self._map_topic(names.topic("map")))
        return found

    def _believe(self, topics: RobotTopics, message: Any) -> None:
        """``initialpose``."""
        place, frame = message.pose.pose, str(message.header.frame_id)
        pose = Pose(float(place.position.x), float(place.position.y), yaw_of(place.orientation))
        if frame not in ("", MAP) or not all(map(math.isfinite, pose)):
            text = f'initialpose: expected finite numbers in the frame "{MAP}", found {tuple(pose)} in "{shown(frame)}"'
            log.warning("%s: %s", topics.port.name, text)
            return
        topics.frames.set_pose(pose)

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
        """ROS 2 parameters of the world's node: motion limits of every robot, and ``use_sim_time``."""
        found = self._robot_parameters(None)
        for member in self._members.values():
            found |= {f"{member.ros_name}.{name}": value for name, value in _limit_parameters(member.limits).items()}
        return found

    def _robot_parameters(self, limits: Reconfigure | None) -> dict[str, Value]:
        """ROS 2 parameters of a robot's node, where it has one of its own."""
        sim_time = Value(lambda: self.sim_time, "whether stamps are simulated time")
        return {"use_sim_time": sim_time, **_limit_parameters(limits)}

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

    def _is_allowed(self, offer: Input | Service) -> bool:
        """Whether it is offered: with ``--read-only``, operations that change the world are not."""
        return offer.operation is None or self._control.allows(ROS, offer.operation)

    def _do(self, operation: Operation[Any]) -> None:
        self._control.do(ROS, operation)

    def _load(self, name: Any) -> None:
        """Begin to load a map; the result is logged."""
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

    # -- topics of the world

    def stamp(self) -> Stamp:
        """Time stamp of the present state."""
        return Stamp.of_us(self._sim.snapshot.time_us) if self.sim_time else Stamp.of_seconds(wall.time())

    def _log_line(self, stamp: Stamp) -> Any:
        """One line per step, so that a flood of lines does not delay other topics."""
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
        return self._m.clock(stamp) if stamp != (0, 0) else None  # in ROS, 0 means that time has not started

    def _diagnostics(self, stamp: Stamp) -> Any:
        robots = []
        for m in self._members.values():
            if m.robot is not None and m.driver is not None:
                name, level, text, values = m.robot.diagnostics()
                robots.append((name, level, text, [*values, ("cmd_vel refused", str(m.driver.refused))]))
        return self._m.diagnostics(stamp, [self._health(), *robots])

    def _health(self) -> tuple[str, int, str, list[tuple[str, str]]]:
        """Diagnostics of the simulator: name, level, text and values."""
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
        """The map; None while its cells are being computed."""
        raster = self._cells.get()
        return None if raster is None else self._m.map(stamp, raster, "map")

    def _get_map(self, _request: Any) -> Any:
        found = self._map(self.stamp())
        if found is None:
            raise WorldError("the map is being rasterised; ask again in some seconds")
        return self.types["nav_msgs/GetMapResponse"](map=found)

    def _publish_now(self, offer: _Offer) -> None:
        """Publish a topic between two steps, if it has subscribers."""
        if not self._transports:
            return
        if self._stale:
            self._activate()
        if offer.wanted:
            offer.fence.run(self._publish, offer, self.stamp(), self._sim.snapshot.time_us, True)

    # -- every step

    def on_snapshot(self, now: float) -> None:
        """Called after a step: publish the topics that are due and have subscribers."""
        if not self._transports:
            return
        self._sync()
        self._data.forget()
        stamp, time_us = self.stamp(), self._sim.snapshot.time_us
        if self._steps is not None:
            self._steps.expire()
        for member in self._members.values():
            if member.driver is not None:
                self._drivers.run(member.driver.tick)
        if self._stale:
            self._activate()
        for offer in self._active:
            offer.fence.run(self._publish, offer, stamp, time_us)

    def _activate(self) -> None:
        """Find the topics with subscribers; the others' sensors are unsubscribed."""
        self._stale = False
        self._active = []
        for member in (self._world, *self._members.values()):
            for offer in member.topics:
                before, offer.readers = offer.readers, [p for p in offer.publications.values() if p.is_wanted]
                new = [p for p in offer.readers if p not in before]
                if bool(offer.readers) != offer.wanted:
                    offer.wanted = bool(offer.readers)
                    offer.topic.wanted(offer.wanted)
                if new and offer.topic.version is not None:
                    if not all(p.replays_latched for p in new):
                        offer.last_version = None
                    elif len(new) == len(offer.readers):  # the transport has sent the latched message to all of them
                        offer.last_version = offer.topic.version()
                if offer.wanted:
                    self._active.append(offer)

    def _publish(self, offer: _Offer, stamp: Stamp, time_us: int, at_once: bool = False) -> None:
        topic = offer.topic
        if topic.version is not None:
            version = topic.version()
            if version == offer.last_version:
                return
            offer.last_version = version
        elif topic.period:
            if time_us < offer.due_us and not at_once:
                return
            offer.due_us = time_us + round(topic.period * 1e6)
        message = EncodedMessage(self.types, topic, stamp)
        if topic.version is not None:
            offer.latched = offer.last_version, message
        if message.is_nothing:
            return
        for publication in offer.readers:
            publication.send(message)

    def _latched_message(self, offer: _Offer) -> EncodedMessage | None:
        """The present message of a latched topic, for a late joiner."""
        version = offer.topic.version() if offer.topic.version is not None else None
        if offer.latched is None or version is None or offer.latched[0] != version:
            offer.latched = version, EncodedMessage(self.types, offer.topic, self.stamp())
        message = offer.latched[1]
        return None if message.is_nothing else message

    # -- description

    def describe(self) -> Iterable[tuple[str, str, str, str]]:
        """Yield kind, name, type and description of everything that is offered."""
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
