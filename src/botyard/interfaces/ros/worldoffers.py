"""Topics and services that the world has in ROS: clock, map, transforms, log and control."""

from __future__ import annotations

import logging
import time as wall
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from botyard.api.revisions import Subject
from botyard.control import (
    AddedRobots,
    AddRobot,
    LoadMap,
    Operation,
    Pause,
    Place,
    Remove,
    Reset,
    Resume,
    SaveRecording,
    SetSpeed,
    StartRecording,
    Step,
    StepNow,
    StopRecording,
)
from botyard.control.later import then
from botyard.errors import ArgumentError, BotyardError, WorldError
from botyard.geometry import Pose
from botyard.interfaces.ros.members import ROS, Context, Member, Offer, limit_parameters
from botyard.interfaces.ros.simulation_interfaces import RosSimulator
from botyard.names import shown
from botyard.protocols.ros_messages.actions import ActionServer
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.messages import Stamp, Transform
from botyard.protocols.ros_messages.parameters import Parameters, Value
from botyard.protocols.ros_messages.robot import DIAGNOSTICS_PERIOD, RobotTopics
from botyard.protocols.ros_messages.transforms import Transforms


class LogLines(logging.Handler):
    """Log handler that keeps warnings and errors for /rosout of ROS 1 and ROS 2.

    Two ring buffers, `ros1` and `ros2`, hold the lines as (whether it is an error,
    text).
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        # The buffers are bounded: if lines are logged faster than published, the oldest
        # are lost.
        self.ros1: deque[tuple[bool, str]] = deque(maxlen=100)
        self.ros2: deque[tuple[bool, str]] = deque(maxlen=100)

    def emit(self, record: logging.LogRecord) -> None:
        """Append a log line to both buffers."""
        # Cut the text, because a line may quote long input of a client.
        line = (record.levelno >= logging.ERROR, record.getMessage()[:1000])
        # Each ROS version has its own topic, which empties its own buffer.
        self.ros1.append(line)
        self.ros2.append(line)


def _rates(topics: list[str], rates: list[float]) -> Mapping[str, float] | None:
    """Return the message rates of a recording by topic pattern; None if there are none.

    Raises
    ------
    ArgumentError
        The numbers of rates and patterns differ.
    """
    if len(topics) != len(rates):
        raise ArgumentError(
            f"rates: expected one rate for each of {len(topics)} rate_topics, found {len(rates)}"
        )

    # A dictionary would silently keep the last rate of a pattern.
    if len(set(topics)) < len(topics):
        raise ArgumentError(
            f"rate_topics: expected different patterns, found one twice in {', '.join(topics)}"
        )
    return dict(zip(topics, rates, strict=True)) or None


class WorldOffers:
    """Factory of the ROS node of the world.

    Parameters
    ----------
    context : Context
        Shared parts of members.
    members : mapping
        Present nodes of robots, by the robots' names.
    robots : callable
        Returns the present topics of all robots.

    Attributes
    ----------
    lines : LogLines
        Log handler whose lines are published on /rosout.
    parameters : Parameters
        ROS 2 parameters of the node.
    steps : ActionServer or None
        Action that steps the world, if it is offered.
    """

    def __init__(
        self,
        context: Context,
        members: Mapping[str, Member],
        robots: Callable[[], Sequence[RobotTopics]],
    ) -> None:
        self._c = context
        self._members = members
        self._robots = robots
        self.lines = LogLines()
        self.parameters = Parameters(
            context.profile.world_node, context.types, self.values
        )
        self.steps: ActionServer | None = None
        self._resets = 0
        """Number of jumps of simulated time so far."""
        context.hub.follow(self._reset, Subject.TIME)

    def member(self) -> Member:
        """Return the ROS node of the world, with its topics and services."""
        node, offered = self._c.profile.world_node, self._c.profile.world
        topics = [
            Topic(
                "/rosout",
                "rosgraph_msgs/Log",
                self._log_line,
                "warnings and errors of the simulator",
                queue=100,
                only="ros1",
            ),
            Topic(
                "/rosout",
                "rcl_interfaces/Log",
                self._log_line2,
                "warnings and errors",
                queue=100,
                only="cdr",
                # Keep old lines for later subscribers, as rclcpp and rclpy do (QoS
                # transient local).
                is_kept=True,
            ),
        ]
        topics.append(self.parameters.events)
        services = self.parameters.services()
        inputs: list[Input] = []
        # Some profiles have a /tf for each robot; the world then has no /tf.
        if not self._c.profile.has_own_tf:
            # simulation_interfaces names the frame of the world "world".
            fixed = [Transform("world", MAP, Pose())] if "control" in offered else []
            topics += Transforms(
                self._c.types, self._c.messages, "/tf", self._robots, fixed
            ).topics()

        # With stamps of wall time, /clock would set nodes with use_sim_time to another
        # time.
        if self._c.sim_time and "clock" in offered:
            topics.append(
                Topic(
                    "/clock",
                    "rosgraph_msgs/Clock",
                    self._clock,
                    "simulated time",
                    queue=1,
                )
            )

        if "map" in offered and self._c.has_map:
            topics.append(self._c.map_topic("/map"))
        if "diagnostics" in offered:
            topics.append(
                Topic(
                    "/diagnostics",
                    "diagnostic_msgs/DiagnosticArray",
                    self._diagnostics,
                    "state of the simulator and the robots",
                    period=DIAGNOSTICS_PERIOD,
                )
            )

        if "control" in offered:
            services += self._world_services(f"{node}/")
            standard = RosSimulator(
                node,
                self._c.types,
                self._c.messages,
                self._c.control,
                self._c.stamp,
                ROS,
            )
            services += standard.services()
            # Offer the action only with the permission to step: otherwise every goal
            # would fail.
            if self._c.control.allows(ROS, StepNow):
                self.steps = standard.action(wall.monotonic, self._c.soon)
                services += self.steps.services
                topics += self.steps.topics

            inputs += self._world_inputs(node)

        if "reset_positions" in offered:
            services.append(
                Service(
                    "/reset_positions",
                    "std_srvs/Empty",
                    self._c.empty(lambda: self._c.do(Reset())),
                    "return all robots to their start poses",
                    operation=Reset,
                )
            )

        # Filter the offers here, so that one place decides which of them ROS has
        # permission for.
        inputs = [i for i in inputs if self._c.is_allowed(i)]
        services = [s for s in services if self._c.is_allowed(s)]
        return Member(node, [Offer(t, node) for t in topics], inputs, services)

    def _world_inputs(self, node: str) -> list[Input]:
        def listen(
            name: str,
            kind: str,
            act: Callable[[Any], None],
            about: str,
            operation: type[Any],
        ) -> Input:
            return Input(
                f"{node}/{name}_cmd",
                f"std_msgs/{kind}",
                lambda m: act(m.data),
                about,
                operation=operation,
            )

        do = self._c.do
        return [
            listen(
                "pause",
                "Bool",
                lambda on: do(Pause() if on else Resume()),
                "pause or resume the simulation",
                Pause,
            ),
            listen(
                "step",
                "UInt32",
                lambda n: do(Step(steps=int(n))),
                "run a number of steps, then pause",
                Step,
            ),
            listen(
                "set_speed",
                "Float64",
                lambda x: do(SetSpeed(speed=float(x))),
                "simulated time per wall time",
                SetSpeed,
            ),
            listen("load_map", "String", self._load, "load a map or world", LoadMap),
        ]

    def values(self) -> dict[str, Value]:
        """Return the ROS 2 parameters of the world's node.

        The parameters are the motion limits of every robot, and ``use_sim_time``.

        Returns
        -------
        dict of str to Value
            Parameters by name; limits have the robot's name as prefix, and SI units.
        """
        found = self._c.parameters(None)
        for member in self._members.values():
            found |= {
                f"{member.ros_name}.{name}": value
                for name, value in limit_parameters(member.limits).items()
            }

        return found

    def _world_services(self, prefix: str) -> list[Service]:
        do = self._c.do

        def service(
            name: str,
            type_name: str,
            act: Callable[[Any], str | None],
            about: str,
            operation: type[Operation[Any]],
        ) -> Service:
            return Service(
                prefix + name,
                type_name,
                self._result(type_name, act),
                about,
                operation=operation,
            )

        def put(r: Any) -> None:
            self._c.put(str(r.name), r.pose.x, r.pose.y, r.pose.theta)

        pace = "simulated time per wall time"
        return [
            service(
                "pause",
                "std_srvs/Trigger",
                lambda _: do(Pause()),
                "pause the simulation",
                Pause,
            ),
            service(
                "resume",
                "std_srvs/Trigger",
                lambda _: do(Resume()),
                "resume the simulation",
                Resume,
            ),
            service(
                "step",
                "botyard_msgs/Step",
                lambda r: do(Step(steps=int(r.steps))),
                "run a number of steps, then pause",
                Step,
            ),
            service(
                "set_speed",
                "botyard_msgs/SetSpeed",
                lambda r: do(SetSpeed(speed=float(r.factor))),
                pace,
                SetSpeed,
            ),
            Service(
                f"{prefix}add_robot",
                "botyard_msgs/AddRobot",
                self._add_robot,
                "add a robot",
                operation=AddRobot,
            ),
            service(
                "remove_robot",
                "botyard_msgs/RemoveRobot",
                lambda r: do(Remove(names=(str(r.name),))),
                "remove a robot",
                Remove,
            ),
            service(
                "set_pose", "botyard_msgs/SetPose", put, "place a robot or a box", Place
            ),
            service(
                "load_map",
                "botyard_msgs/LoadMap",
                lambda r: self._load(r.name),
                "load a map or world",
                LoadMap,
            ),
            *self._recording_services(prefix),
            *(
                [
                    Service(
                        "/static_map",
                        "nav_msgs/GetMap",
                        self._get_map,
                        "the static map",
                    )
                ]
                if self._c.has_map
                else []
            ),
        ]

    def _recording_services(self, prefix: str) -> list[Service]:
        start, stop, save = (
            f"botyard_msgs/{name}Recording" for name in ("Start", "Stop", "Save")
        )

        def begin(r: Any) -> Operation[Any]:
            return StartRecording(
                recording=str(r.name),
                last=float(r.last),
                topics=list(r.topics),
                robots=list(r.robots),
                rate=_rates(list(r.rate_topics), [float(hertz) for hertz in r.rates]),
                on_stall=bool(r.on_stall),
            )

        return [
            Service(
                f"{prefix}start_recording",
                start,
                self._file(start, begin),
                "record to an MCAP file",
                operation=StartRecording,
            ),
            Service(
                f"{prefix}stop_recording",
                stop,
                self._file(stop, lambda _: StopRecording()),
                "end the recording",
                operation=StopRecording,
            ),
            Service(
                f"{prefix}save_recording",
                save,
                self._file(save, lambda r: SaveRecording(recording=str(r.name))),
                "write a recording that is kept in memory",
                operation=SaveRecording,
            ),
        ]

    def _file(
        self, type_name: str, make: Callable[[Any], Operation[Any]]
    ) -> Callable[[Any], Any]:
        """Return the handler of a service whose response names the written file."""
        response = self._c.types[f"{type_name}Response"]

        def answer(result: Callable[[], Any]) -> Any:
            try:
                return response(success=True, message="", file=str(result()))
            except BotyardError as error:
                return response(success=False, message=str(error), file="")

        def serve(request: Any) -> Any:
            try:
                result = self._c.control.do(ROS, make(request))
            except BotyardError as error:
                return response(success=False, message=str(error), file="")

            if not isinstance(result, Future):
                return answer(lambda: result)
            # A result that is already available is returned at once, for transports
            # that answer in the same call.
            return (
                answer(result.result)
                if result.done()
                else then(result, lambda done: answer(done.result))
            )

        return serve

    def _result(
        self, type_name: str, act: Callable[[Any], str | None]
    ) -> Callable[[Any], Any]:
        """Return the handler of a service with ``success`` and ``message``."""

        def serve(request: Any) -> Any:
            try:
                text = act(request)
            except BotyardError as error:
                return self._c.types[f"{type_name}Response"](
                    success=False, message=str(error)
                )

            return self._c.types[f"{type_name}Response"](
                success=True, message=text or ""
            )

        return serve

    def _load(self, name: Any) -> None:
        """Start to load a map; the log gets the result."""
        # Do not wait for the result: a large map takes longer than clients wait for a
        # service.
        self._c.do(LoadMap(map=str(name), reserved=False))

    def _add_robot(self, request: Any) -> Any:
        response = self._c.types["botyard_msgs/AddRobotResponse"]
        try:
            pose = (
                None
                if request.anywhere
                else Pose(request.pose.x, request.pose.y, request.pose.theta)
            )
            robot, model = str(request.name), str(request.model)
            added = self._c.control.do(
                ROS, AddRobot(model=model, robot=robot, pose=pose)
            )
        except BotyardError as error:
            return response(success=False, message=str(error), name="")

        def answer(added: Future[AddedRobots]) -> Any:
            try:
                return response(success=True, message="", name=added.result().robots[0])
            except BotyardError as error:
                return response(success=False, message=str(error), name="")

        return answer(added) if added.done() else then(added, answer)

    def _log_line(self, stamp: Stamp) -> Any:
        """Return one log line per step, so that a flood of lines does not delay other topics."""
        if not self.lines.ros1:
            return None
        is_error, text = self.lines.ros1.popleft()
        # Levels of rosgraph_msgs/Log: 4 is WARN, 8 is ERROR.
        return self._c.messages.log(
            stamp, 8 if is_error else 4, self._c.profile.world_node, text
        )

    def _log_line2(self, stamp: Stamp) -> Any:
        if not self.lines.ros2:
            return None
        is_error, text = self.lines.ros2.popleft()
        kind = self._c.types.two("rcl_interfaces/Log")
        # Levels of rcl_interfaces/Log: 30 is WARN, 40 is ERROR.
        return self._c.messages.log2(
            kind, stamp, 40 if is_error else 30, self._c.profile.world_node, text
        )

    def _clock(self, stamp: Stamp) -> Any:
        # In ROS, time 0 means that time has not started.
        return self._c.messages.clock(stamp) if stamp != (0, 0) else None

    def _diagnostics(self, stamp: Stamp) -> Any:
        robots = []
        for m in self._members.values():
            if m.robot is not None and m.driver is not None:
                name, level, text, values = m.robot.diagnostics()
                robots.append(
                    (
                        name,
                        level,
                        text,
                        [*values, ("cmd_vel refused", str(m.driver.refused))],
                    )
                )

        return self._c.messages.diagnostics(stamp, [self._health(), *robots])

    def _reset(self) -> None:
        # A subscriber of /clock may miss a jump of time; /diagnostics has the number of
        # jumps.
        self._resets += 1

    def _health(self) -> tuple[str, int, str, list[tuple[str, str]]]:
        """Return the simulator's state for the diagnostics topic: name, level, text and values."""
        hub, sim = self._c.hub, self._c.hub.sim
        ratio = hub.ratio
        # 10 % tolerance, because the measured ratio varies.
        late = not hub.is_paused and 0.0 < ratio < 0.9 * hub.speed
        level, text = (
            (1, "slower than requested")
            if late
            else (0, "paused" if hub.is_paused else "OK")
        )
        values = {
            "map": shown(sim.scene.name),
            "robots": len(sim.robots),
            "time": f"{sim.time:.3f}",
            "real-time ratio": f"{ratio:.3f}",
            "step time, ms": f"{1e3 * hub.step_time:.3f}",
            "overruns": hub.overruns,
            "reset": self._resets,
        }
        return "simulator", level, text, [(k, str(v)) for k, v in values.items()]

    def _get_map(self, _request: Any) -> Any:
        found = self._c.map_message(self._c.stamp())
        if found is None:
            raise WorldError("the map is being rasterised; try again in some seconds")
        return self._c.types["nav_msgs/GetMapResponse"](map=found)


__all__ = ["LogLines", "WorldOffers"]
