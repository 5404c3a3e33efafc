"""Copies of a step for the ROS topics of a recording: columns and readings.

The simulation thread makes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from botyard.model.beams import Bundle
from botyard.model.robot import RobotSpec
from botyard.model.robotport import RobotPort
from botyard.model.rosmessages import SCAN, RosMessage
from botyard.model.world import THING
from botyard.protocols.ros_messages.devices import shown_devices
from botyard.protocols.ros_messages.naming import PROFILES, Names, graph_name, names_of
from botyard.sim.simulation import Robot, Simulation

PROFILE: Final = replace(
    PROFILES["default"],
    robot=frozenset({"pose", "odom", "base_pose_ground_truth"}),
    world=frozenset(),
)
"""Profile of topic names: ``default``, without wheels and paddles in the transforms."""
RATES_HZ: Final[Mapping[str, float]] = {
    "*/odom": 1.0,
    "*/base_pose_ground_truth": 1.0,
    "/tf": 3.0,
    "*": 10.0,
}
"""Default rates by patterns of topics, messages per simulated second.

100 robots without scans take 50 kB per simulated second. The transforms have true poses
and poses by odometry, so they are recorded more often than the topics of single robots.
"""
SPARE_READINGS: Final = 8
"""Number of arrays of readings to keep for reuse."""
USUAL: Final = (
    "*/odom",
    "*/base_pose_ground_truth",
    "*/cmd_vel",
    "/tf",
    "/tf_static",
    "/map",
    "/rosout",
)
"""Default topics of a recording, besides scans of lasers with a subscriber."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics and robots to record.

    Attributes
    ----------
    topics : tuple of str or None
        Patterns of topics (``*``, ``?``, ``[…]``; ``*`` also matches slashes); None:
        `USUAL`.
    robots : tuple of str
        Patterns of robot names.
    rates : mapping of str to float
        Maximum messages per simulated second, by patterns of topics; the first match
        counts.
    """

    topics: tuple[str, ...] | None = None
    robots: tuple[str, ...] = ("*",)
    rates: Mapping[str, float] = field(default_factory=lambda: RATES_HZ)

    def has_robot(self, name: str) -> bool:
        """Return whether a robot is recorded, by its name."""
        return any(fnmatchcase(name, pattern) for pattern in self.robots)

    def has(self, topic: str) -> bool:
        """Return whether a topic is recorded, by its full name."""
        return any(
            fnmatchcase(topic, pattern)
            for pattern in (USUAL if self.topics is None else self.topics)
        )

    def names(self, topic: str) -> bool:
        """Return whether a topic is recorded because it was named.

        A sensor with such a topic measures for the recording; a topic of `USUAL` is
        recorded only if another reader makes its sensor measure.
        """
        return self.topics is not None and self.has(topic)

    def period_us(self, topic: str) -> int:
        """Return the minimum simulated time between two messages of a topic.

        Parameters
        ----------
        topic : str
            Full name of the topic.

        Returns
        -------
        int
            Time, µs; 0: one message for every step.
        """
        for pattern, rate in self.rates.items():
            if fnmatchcase(topic, pattern):
                return round(1e6 / rate) if rate else 0

        return 0

    @property
    def shortest_us(self) -> int:
        """Minimum simulated time between two samples, µs; 0: one for every step."""
        # Without a rate for all topics, or with a rate of 0, each step needs a sample.
        rates = self.rates.values()
        return round(1e6 / max(rates)) if "*" in self.rates and all(rates) else 0


class Columns(NamedTuple):
    """Copies of the columns of all bodies that messages need, see `BodyColumns`."""

    pose: NDArray[np.float64]
    odom: NDArray[np.float64]
    vel: NDArray[np.float64]
    path: NDArray[np.float64]


Key = tuple[str, str, int]
"""Key of a range sensor: robot, kind and index."""


class Version:
    """Identity of a sensor's beams; equal only to another one of the same `Bundle` objects."""

    __slots__ = ("_bundles",)

    def __init__(self, bundles: tuple[Bundle, ...]) -> None:
        self._bundles = bundles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and list(map(id, self._bundles)) == list(
            map(id, other._bundles)
        )

    __hash__ = None  # type: ignore[assignment]


class Sensor(NamedTuple):
    """Range sensor whose topics are recorded.

    Fields: its number among all sensors, its slice of the readings, and a reading with
    its current settings.
    """

    number: int
    span: tuple[int, int]
    reading: Any


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Recorded robots, and the layout of the arrays of each step.

    A plan is valid until robots appear or disappear, or sensors are configured.

    Attributes
    ----------
    robots : mapping
        Model and devices (`Robot.devices`) by name.
    rows : mapping
        Row of each body.
    sensors : mapping
        Sensors with recorded readings, by key.
    versions : mapping
        Value by key that changes when a sensor is configured.
    """

    robots: Mapping[str, tuple[RobotSpec, Mapping[str, Any]]]
    rows: Mapping[str, int]
    sensors: Mapping[Key, Sensor]
    versions: Mapping[Key, Version]


class Readings(NamedTuple):
    """Copies of the readings of all range sensors, m.

    Further fields: laser returns, and whether each sensor has measured in this step.
    """

    ranges: NDArray[np.float64]
    returns: NDArray[np.int16]
    taken: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Copies of the results of a step.

    Attributes
    ----------
    time_us : int
        Simulated time, µs.
    plan : Plan
        Layout of the columns and readings.
    columns : Columns
        Columns of all bodies.
    readings : Readings or None
        Readings of all range sensors; None if no sensor is recorded.
    ages_us : mapping
        Age of readings that a sensor delivers late or seldom, µs, by key of the sensor.
    """

    time_us: int
    plan: Plan
    columns: Columns
    readings: Readings | None
    ages_us: Mapping[Hashable, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Size of the copies, bytes."""
        return 4 * self.columns.pose.nbytes + (
            10 * len(self.readings.ranges) if self.readings is not None else 0
        )


def _is_recorded(robot: Robot, selection: Selection) -> bool:
    return (
        robot.spec.name != THING
        and bool(robot.spec.drive)
        and selection.has_robot(robot.name)
    )


class Watcher:
    """Maker of copies of the recorded data of a step, in the simulation thread.

    Parameters
    ----------
    sim : Simulation
        The world.
    selection : Selection
        Topics and robots to record.
    source : str
        Name of the recording as a subscriber of sensors.
    """

    def __init__(self, sim: Simulation, selection: Selection, source: str) -> None:
        self._sim, self._selection, self._source = sim, selection, source
        self._plan: Plan | None = None
        self._layout = -1
        self._places: Mapping[Key, int] = {}
        self._unread = np.zeros(0, np.int64)
        self._taken = b""
        self._subscribed: dict[Robot, list[str]] = {}
        self._spare: deque[Readings] = deque(maxlen=SPARE_READINGS)

    def close(self) -> None:
        """Unsubscribe from all sensors."""
        for robot, names in self._subscribed.items():
            if self._sim.robots.get(robot.name) is robot:
                for name in names:
                    robot.devices[name].subscribe(self._source, False)

        self._subscribed.clear()

    def sample(self) -> Sample:
        """Return copies of the recorded results of the last step."""
        fleet = self._sim.fleet
        taken = None
        if fleet.layout != self._layout:
            self._survey()
        if self._places:
            taken = fleet.taken
            # Mostly the same sensors measure as in the previous step. Comparing the flags is faster
            # than looking for new sensors.
            if self._unread.size and self._taken != (bits := taken.tobytes()):
                self._taken = bits
                if taken[self._unread].any():
                    self._plan = self._planned(taken)

        plan = self._plan
        if plan is None:
            plan = self._plan = self._planned(taken)
        state = self._sim.snapshot.state
        # The next step overwrites these arrays while the writer thread still reads
        # them.
        columns = Columns(
            state.pose.copy(), state.odom.copy(), state.vel.copy(), state.path.copy()
        )
        readings = (
            self._copied(Readings(*fleet.readings, taken))
            if plan.sensors and taken is not None
            else None
        )
        return Sample(
            self._sim.snapshot.time_us,
            plan,
            columns,
            readings,
            fleet.ages_us if readings is not None else {},
        )

    def release(self, sample: Sample) -> None:
        """Return a sample for reuse of its arrays; any thread may call this.

        New arrays of this size would cause page faults each time.
        """
        if sample.readings is not None:
            self._spare.append(sample.readings)

    def _copied(self, live: Readings) -> Readings:
        try:
            # Another thread may take the last array between a check and its use, so try
            # without a check.
            spare = self._spare.pop()
        except IndexError:
            spare = None

        if (
            spare is None
            or len(spare.ranges) != len(live.ranges)
            or len(spare.taken) != len(live.taken)
        ):
            return Readings(live.ranges.copy(), live.returns.copy(), live.taken.copy())

        np.copyto(spare.ranges, live.ranges)
        np.copyto(spare.returns, live.returns)
        np.copyto(spare.taken, live.taken)
        return spare

    def _survey(self) -> None:
        """Find the recorded sensors, and subscribe to the named ones.

        Call it after robots appear or disappear, or after a sensor is configured.
        """
        places, fleet = dict[Key, int](), self._sim.fleet
        subscribed = dict[Robot, list[str]]()
        robots = [
            robot
            for robot in self._sim.robots.values()
            if _is_recorded(robot, self._selection)
        ]
        wanted = {
            one.reader.key: (robot, one.reader.name)
            for robot, names in zip(
                robots, ros_names([r.name for r in robots]), strict=True
            )
            for one in shown_devices(cast(RobotPort, robot.port(self._source)), names)
            if _is_beams(one.ros, one.reader.kind)
            and _has(
                self._selection, one.ros, names.topic(one.place.named(one.ros.topic))
            )
        }
        if self._selection.topics is not None:
            for robot, name in wanted.values():
                before = self._subscribed.get(robot, ())
                subscribed.setdefault(robot, []).append(name)
                if name not in before:
                    robot.devices[name].subscribe(self._source, True)

        self._subscribed = subscribed
        numbers = {key: i for i, key in enumerate(fleet.placed[0])}
        places = {key: numbers[key] for key in wanted if key in numbers}
        self._places, self._layout, self._plan = places, fleet.layout, None
        self._unread, self._taken = np.array(list(places.values()), np.int64), b""

    def _planned(self, taken: NDArray[np.bool_] | None) -> Plan:
        """Return the layout with all sensors that have measured at least once."""
        sim, fleet = self._sim, self._sim.fleet
        known = {} if self._plan is None else self._plan.sensors
        spans = fleet.placed[1]
        sensors, versions = dict[Key, Sensor](), dict[Key, Version]()
        for key, number in self._places.items():
            if key in known:
                sensors[key] = known[key]
            elif taken is not None and taken[number]:
                sensors[key] = Sensor(
                    number, spans[number], _reading(sim.robots[key[0]], key)
                )
            else:
                continue

            versions[key] = Version(fleet.bundles(key))

        self._unread = np.array(
            [n for key, n in self._places.items() if key not in sensors], np.int64
        )
        robots = {
            name: (robot.spec, robot.devices)
            for name, robot in sim.robots.items()
            if _is_recorded(robot, self._selection)
        }
        return Plan(robots, sim.core.engine.rows, sensors, versions)


def _reading(robot: Robot, key: Key) -> Any:
    return next(reader.read() for reader in robot.devices.values() if reader.key == key)


def _is_beams(ros: RosMessage[Any, Any], kind: Any) -> bool:
    """Return whether a topic of this kind is encoded from the arrays of all sensors."""
    return ros.beams is not None and kind.beams is not None


def _has(selection: Selection, ros: RosMessage[Any, Any], topic: str) -> bool:
    return ros.type_name == SCAN if selection.topics is None else selection.has(topic)


def ros_names(robots: Sequence[str]) -> list[Names]:
    """Return ROS names of robots; equal names get numbers."""
    found, taken = [], set[str]()
    for robot in robots:
        # ROS allows fewer characters, so two different names can become equal.
        first = name = graph_name(robot)
        n = 2
        while name in taken:
            name, n = f"{first}_{n}", n + 1
        taken.add(name)
        found.append(names_of(name, PROFILE, False))

    return found


__all__ = [
    "PROFILE",
    "USUAL",
    "Columns",
    "Key",
    "Plan",
    "Sample",
    "Selection",
    "Version",
    "Watcher",
    "ros_names",
]
