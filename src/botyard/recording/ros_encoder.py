"""Encoder of the ROS 2 messages of a recording, in the writer thread.

The simulation thread copies columns and readings (`botyard.recording.samples`). This
module gives them to the topic encoders of the ROS transports, through ports and a fleet
that represent the robots at the time of the copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from botyard.engine.velocities import SetVelocities
from botyard.geometry import Twist
from botyard.model.devices import DeviceSpec
from botyard.model.raster import extent, is_drawn, rasterise
from botyard.model.robot import RobotSpec
from botyard.model.robotport import RobotPort
from botyard.model.robotstate import BodyColumns
from botyard.model.rosmessages import SCAN
from botyard.model.scene import Scene
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.transforms import Transforms
from botyard.protocols.ros_messages.typenames import full
from botyard.protocols.ros_messages.types import Types
from botyard.recording.output import Output
from botyard.recording.samples import Key, Plan, Sample, Selection, Sensor, ros_names

MAP_CELL_M: Final = 0.05
"""Edge of a map cell, m; doubled until the map has at most `MAX_MAP_CELLS`."""
MAX_MAP_CELLS: Final = 4_000_000
MAX_MAP_SHAPES: Final = 200_000
"""Largest number of walls and points of a map that is recorded as cells.

More shapes would take seconds.
"""
NODE: Final = "/botyard"
LATCHED_QOS: Final = """- history: 1
  depth: 1
  reliability: 1
  durability: 1
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""
"""``offered_qos_profiles`` of a latched topic as rosbag2 writes them.

The settings mean: reliable, transient local.
"""


_TWIST: Final = struct.Struct("<6d")


class _Fleet:
    """Robots at the time of a sample; replaces `botyard.model.robotport.Fleet`."""

    layout = 0
    is_exact = True

    def __init__(self, range_step: float) -> None:
        self._range_step = range_step
        self.state: BodyColumns
        self.rows: Mapping[str, int] = {}
        self.readings: tuple[NDArray[np.float64], NDArray[np.int16]]
        self._of: tuple[Mapping[Key, Sensor], bytes] = {}, b""
        self._measured: dict[Key, tuple[int, int]] = {}
        self._ages_us: Mapping[Hashable, int] = {}

    def age_us(self, key: Hashable) -> int:
        """Return the age of a reading at the time of the sample, µs."""
        return self._ages_us.get(key, 0)

    def show(self, sample: Sample) -> None:
        """Set the sample whose data are read from now on."""
        self.state = cast(BodyColumns, sample.columns)
        self.rows = sample.plan.rows
        self._ages_us = sample.ages_us
        if sample.readings is not None:
            ranges, returns, taken = sample.readings
            sensors, which = sample.plan.sensors, taken.tobytes()
            # In most steps the same sensors measure as in the previous one, so reuse the result.
            if self._of[0] is not sensors or self._of[1] != which:
                self._of = sensors, which
                self._measured = {
                    key: sensor.span
                    for key, sensor in sensors.items()
                    if taken[sensor.number]
                }

            if self._range_step > 0.0:
                # The arrays hold exact ranges; live readings are rounded when they are
                # read.
                ranges = np.rint(ranges / self._range_step) * self._range_step
            self.readings = ranges, returns
        else:
            self._of, self._measured = ({}, b""), {}

    @property
    def measured(self) -> Mapping[Key, tuple[int, int]]:
        """Index ranges of the readings that were measured in the step, by key of the sensor."""
        return self._measured


class _Reader:
    """Device with fixed settings; replaces `botyard.model.equipmentport.DeviceReader`."""

    def __init__(self, live: Any, reading: Any) -> None:
        self.spec: DeviceSpec = live.spec
        self.kind, self.name, self.key = live.kind, live.name, live.key
        self._reading = reading

    def read(self) -> Any:
        """Return the reading of the sample."""
        return self._reading


class _Port:
    """Robot at the time of a sample.

    The class has the part of `botyard.model.robotport.RobotPort` that topics need.
    """

    gripper = None

    def __init__(
        self, name: str, spec: RobotSpec, devices: Mapping[str, _Reader], fleet: _Fleet
    ) -> None:
        self.name, self.spec, self.devices, self.fleet = name, spec, devices, fleet


@dataclass(slots=True, eq=False)
class _Line:
    """Recorded topic.

    Fields: channel, encoder, sensor, minimum time between two messages, time of the
    next one, and number of the sensor among all (−1: no sensor).
    """

    channel: int
    encode: Callable[[str, Stamp], bytes]
    key: Key | None
    period_us: int
    next_us: int = 0
    sensor: int = -1

    def is_due(self, time_us: int) -> bool:
        """Whether a message is due at a time; the next one is due a period later."""
        period = self.period_us
        if not period:
            return True
        # If time went back, the difference is larger than a period.
        if 0 < self.next_us - time_us <= period:
            return False
        self.next_us = (time_us // period + 1) * period
        return True


class _Rank:
    """Topics with the same period and without a sensor.

    In most steps, none of them is due: one comparison shows this for all.
    """

    def __init__(self, period_us: int) -> None:
        self.lines: list[_Line] = []
        self._period_us, self._next_us = period_us, 0

    def due(self, time_us: int) -> list[_Line]:
        """Return the topics with a due message."""
        if 0 < self._next_us - time_us <= self._period_us:
            return []
        found = [line for line in self.lines if line.is_due(time_us)]
        self._next_us = min(line.next_us for line in self.lines)
        return found


@dataclass(slots=True, eq=False)
class _Member:
    """Topics of a robot; they stay valid until its description or a sensor is replaced."""

    topics: RobotTopics
    lines: list[_Line]
    spec: RobotSpec
    version: tuple[Any, ...]


class RosEncoder:
    """Makes messages from samples and commands, in the writer thread.

    Parameters
    ----------
    types : Types
        Message types.
    selection : Selection
        Topics and robots to record.
    range_step : float
        See `Simulation`.
    """

    def __init__(self, types: Types, selection: Selection, range_step: float) -> None:
        self._types, self._selection = types, selection
        self._m = Messages(types)
        self._data = StepData(is_localized=True)
        self._fleet = _Fleet(range_step)
        self._members: dict[str, _Member] = {}
        self._robots: list[RobotTopics] = []
        self._plan: Plan | None = None
        self._names: dict[str, Names] = {}
        self._ranks: list[_Rank] = []
        self._scans: list[_Line] = []
        self._static: list[Transform] = []
        self._tf: _Line | None = None
        self._commanded: dict[str, list[float]] = {}
        self._command_channels: dict[str, int] = {}
        self._bodies: tuple[object, list[str]] = None, []
        twist = self._m.twist(Twist(1.0, 1.0, 1.0))
        # Only the six numbers differ between commands, so encode the rest once.
        self._twist = types.encode_cdr(twist, "geometry_msgs/Twist")[: -_TWIST.size]
        self._moving = Transforms(types, self._m, "/tf", lambda: self._robots)

    def channel(
        self, output: Output, topic: str, type_name: str, *, latched: bool = False
    ) -> int:
        """Return the number of a topic's channel; a new topic gets a new channel.

        Parameters
        ----------
        output : Output
            Files of the recording.
        topic : str
            Full name of the topic.
        type_name : str
            ROS type, for example ``nav_msgs/Odometry``.
        latched : bool
            Whether readers that start later get the last message.
        """

        def define() -> tuple[str, bytes]:
            return "ros2msg", self._types.definition2(type_name).encode()

        return output.channel(
            topic,
            "cdr",
            full(type_name),
            define,
            {"offered_qos_profiles": LATCHED_QOS} if latched else {},
        )

    # -- samples

    def write(self, sample: Sample, output: Output) -> None:
        """Write the messages of a step that are due.

        Parameters
        ----------
        sample : Sample
            Copies of the results of the step.
        output : Output
            Files of the recording.
        """
        self._fleet.show(sample)
        if sample.plan is not self._plan:
            self._arrange(sample.plan, output, sample.time_us)
        self._data.forget()
        stamp, time_us = Stamp.of_us(sample.time_us), sample.time_us
        time_ns = time_us * 1000
        for rank in self._ranks:
            for line in rank.due(time_us):
                output.message(line.channel, time_ns, line.encode("cdr", stamp))

        if sample.readings is not None:
            taken = sample.readings.taken.tolist()
            for line in self._scans:
                if taken[line.sensor] and line.is_due(time_us):
                    output.message(line.channel, time_ns, line.encode("cdr", stamp))

    def _arrange(self, plan: Plan, output: Output, time_us: int) -> None:
        """Prepare the topics for a new plan, after a change of robots or sensors."""
        self._plan = plan
        # ROS names depend on all robots, so look up the channels again.
        self._command_channels.clear()
        self._names = dict(zip(plan.robots, ros_names(list(plan.robots)), strict=True))
        members = dict[str, _Member]()
        for name, (spec, devices) in plan.robots.items():
            keys = {reader.key: reader for reader in devices.values()}
            version = (
                self._names[name],
                *((key, plan.versions[key]) for key in keys if key in plan.versions),
            )
            old = self._members.pop(name, None)
            if old is not None and old.spec is spec and old.version == version:
                # Encoders are costly to make, so unchanged robots keep their encoders.
                members[name] = old
                continue

            members[name] = self._member(name, spec, devices, plan, output, version)
            if old is not None:
                old.topics.close()
                # A new encoder for the same topic keeps its rate: the next message is
                # due as before.
                due = {line.channel: line.next_us for line in old.lines}
                for line in members[name].lines:
                    line.next_us = due.get(line.channel, 0)

        for gone in self._members.values():
            gone.topics.close()
        self._members = members
        self._robots = [member.topics for member in members.values()]
        lines = [line for member in members.values() for line in member.lines]
        if self._robots:
            lines += self._transforms(output, time_us)
        self._sort(lines, plan)

    def _sort(self, lines: list[_Line], plan: Plan) -> None:
        """Group topics: by period, or by the sensor whose readings they publish."""
        ranks = dict[int, _Rank]()
        self._scans = []
        for line in lines:
            if line.key is None:
                ranks.setdefault(line.period_us, _Rank(line.period_us)).lines.append(
                    line
                )
            else:
                line.sensor = plan.sensors[line.key].number
                self._scans.append(line)

        self._ranks = list(ranks.values())

    def _member(
        self,
        name: str,
        spec: RobotSpec,
        devices: Mapping[str, Any],
        plan: Plan,
        output: Output,
        version: tuple[Any, ...],
    ) -> _Member:
        readers = {
            n: _Reader(
                live,
                plan.sensors[live.key].reading if live.key in plan.sensors else None,
            )
            for n, live in devices.items()
        }
        port = cast(RobotPort, _Port(name, spec, readers, self._fleet))
        topics = RobotTopics(port, self._names[name], self._m, self._types, self._data)
        keys = {name: reader.key for name, reader in readers.items()}
        lines = []
        for topic in topics.topics():
            key = keys.get(topic.device)
            if topic.quick is None or (topic.device and key not in plan.sensors):
                continue
            is_usual_scan = self._selection.topics is None and topic.type_name == SCAN
            if is_usual_scan or self._selection.has(topic.name):
                lines.append(self._line(topic, key, output))

        return _Member(topics, lines, spec, version)

    def _line(self, topic: Topic, key: Key | None, output: Output) -> _Line:
        assert topic.quick is not None
        number = self.channel(output, topic.name, topic.type_name)
        return _Line(number, topic.quick, key, self._selection.period_us(topic.name))

    def _transforms(self, output: Output, time_us: int) -> list[_Line]:
        """Return the topic of moving transforms; write changed static ones."""
        moving, fixed = self._moving.topics()
        if self._selection.has(fixed.name):
            known = [t for robot in self._robots for t in robot.static_transforms()]
            # Static transforms are latched, so write them only after a change.
            if known != self._static:
                self._static = known
                number = self.channel(output, fixed.name, fixed.type_name, latched=True)
                message = self._moving.fixed(Stamp.of_us(time_us))
                output.latch(
                    number,
                    time_us * 1000,
                    self._types.encode_cdr(message, fixed.type_name),
                )

        if not self._selection.has(moving.name):
            return []
        if self._tf is None:
            self._tf = self._line(moving, None, output)
        return [self._tf]

    # -- commands, the map, the log

    def command(
        self,
        name: str,
        v: float | None,
        vy: float | None,
        w: float | None,
        time_ns: int,
        output: Output,
    ) -> None:
        """Write a velocity command of a robot as ``cmd_vel``.

        Parameters
        ----------
        name : str
            Name of the robot. Commands to other bodies are left out.
        v, vy, w : float or None
            Velocity forward and to the left, m/s, and yaw rate, rad/s. A component that
            is None keeps its last value.
        time_ns : int
            Simulated time, ns.
        output : Output
            Files of the recording.
        """
        number = self._command_channels.get(name)
        if number is None:
            number = self._command_channels[name] = self._command_channel(name, output)
        if not number:
            return
        last = self._commanded.get(name)
        if last is None:
            last = self._commanded[name] = [0.0, 0.0, 0.0]
        if v is not None:
            last[0] = v
        if vy is not None:
            last[1] = vy
        if w is not None:
            last[2] = w
        output.message(
            number,
            time_ns,
            self._twist + _TWIST.pack(last[0], last[1], 0.0, 0.0, 0.0, last[2]),
        )

    def _command_channel(self, name: str, output: Output) -> int:
        """Return the channel of a robot's commands; 0 if they are not recorded."""
        names = self._names.get(name)
        topic = "" if names is None else names.topic("cmd_vel")
        return (
            self.channel(output, topic, "geometry_msgs/Twist")
            if topic and self._selection.has(topic)
            else 0
        )

    def commands(
        self,
        command: SetVelocities,
        rows: Mapping[str, int],
        time_ns: int,
        output: Output,
    ) -> None:
        """Write a command to many bodies.

        Parameters
        ----------
        command : SetVelocities
            Rows of the bodies, and their velocities.
        rows : mapping of str to int
            Row of each body at the time of the command.
        time_ns : int
            Simulated time, ns.
        output : Output
            Files of the recording.
        """
        if self._bodies[0] is not rows:
            self._bodies = rows, sorted(rows, key=rows.__getitem__)
        bodies = self._bodies[1]
        v, vy, w = (
            repeat(None) if column is None else column.tolist()
            for column in (command.v, command.vy, command.w)
        )
        for row, forward, leftward, turning in zip(
            command.rows.tolist(), v, vy, w, strict=False
        ):
            self.command(bodies[row], forward, leftward, turning, time_ns, output)

    def map(self, scene: Scene, time_us: int, output: Output) -> None:
        """Write the map as a nav_msgs/OccupancyGrid.

        A map without walls, and one with more than `MAX_MAP_SHAPES` walls and points,
        is left out.

        Parameters
        ----------
        scene : Scene
            Map; its movable objects are not drawn.
        time_us : int
            Simulated time, µs.
        output : Output
            Files of the recording.
        """
        shapes = len(scene.segments) + len(scene.points)
        if (
            not is_drawn(scene)
            or shapes > MAX_MAP_SHAPES
            or not self._selection.has("/map")
        ):
            return

        (width, height), cell = extent(scene), MAP_CELL_M
        while (width / cell + 3.0) * (height / cell + 3.0) > MAX_MAP_CELLS:
            # A large map gets coarser cells instead of a huge message.
            cell *= 2.0
        message = self._m.map(Stamp.of_us(time_us), rasterise(scene, cell), "map")
        number = self.channel(output, "/map", "nav_msgs/OccupancyGrid", latched=True)
        output.latch(
            number,
            time_us * 1000,
            self._types.encode_cdr(message, "nav_msgs/OccupancyGrid"),
        )

    def line(self, level: int, text: str, time_us: int, output: Output) -> None:
        """Write a log line to ``/rosout``.

        Parameters
        ----------
        level : int
            Level as in Python's logging.
        text : str
            Text of the log line.
        time_us : int
            Simulated time, µs.
        output : Output
            Files of the recording.
        """
        if self._selection.has("/rosout"):
            kind = self._types.two("rcl_interfaces/Log")
            message = self._m.log2(kind, Stamp.of_us(time_us), level, NODE, text)
            number = self.channel(output, "/rosout", "rcl_interfaces/Log")
            output.message(
                number,
                time_us * 1000,
                self._types.encode_cdr(message, "rcl_interfaces/Log"),
            )


__all__ = ["RosEncoder"]
