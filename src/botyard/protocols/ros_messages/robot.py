"""The topics, inputs and services of a robot and of the world, for all transports. Topics without subscribers cost nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose
from botyard.model.robotport import RobotPort
from botyard.protocols.ros_messages.devices import (
    Shown,
    device_message,
    device_transforms,
    frame_of,
    learn_types,
    shown_devices,
)
from botyard.protocols.ros_messages.limits import MAX_INPUT
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.quick import QuickCloud, QuickOdometry, QuickScan
from botyard.protocols.ros_messages.stepdata import StepData, ring_of
from botyard.protocols.ros_messages.types import Types

DIAGNOSTICS_PERIOD: Final = 1.0
"""Period of diagnostics, s of simulated time."""


@dataclass(slots=True, eq=False)
class Topic:
    """A published topic.

    Attributes
    ----------
    name : str
        Absolute name.
    type_name : str
        For example ``nav_msgs/Odometry``.
    make : callable
        Builds the message of the present state; None: there is nothing to publish.
    version : callable or None
        If given, the topic is latched: a message is published when this value changes, and new subscribers get the last one.
    queue : int
        Queue length of a slow subscriber.
    period : float
        Simulated time between two messages, s; 0: every step.
    wanted : callable
        Called with True when the first subscriber comes, with False when the last one goes.
    about : str
        One line of description.
    only : str
        ``ros1`` or ``cdr``: the wire form that knows its type; empty: both.
    quick : callable or None
        Fast encoder: the bytes of the present message in a wire form (``ros1`` or ``cdr``), without a message object.
    """

    name: str
    type_name: str
    make: Callable[[Stamp], Any]
    about: str
    version: Callable[[], Hashable] | None = None
    queue: int = 10
    period: float = 0.0
    wanted: Callable[[bool], None] = lambda _on: None
    only: str = ""
    quick: Callable[[str, Stamp], bytes] | None = None

    @property
    def latched(self) -> bool:
        """Whether new subscribers get the last message."""
        return self.version is not None


@dataclass(slots=True, eq=False)
class Input:
    """A subscribed topic. `limit`: longer messages are not decoded, bytes. `operation`: its operation of the control surface."""

    name: str
    type_name: str
    take: Callable[[Any], None]
    about: str
    limit: int = MAX_INPUT
    operation: type[Any] | None = None


@dataclass(slots=True, eq=False)
class Service:
    """A service: `serve` takes a request and returns a response, or raises a `BotyardError`.

    `operation` is its operation of the control surface; None: it only reads.
    Those of ROS 2 (`only` is ``cdr``) may give a future of a response, which is sent when it is there.
    """

    name: str
    type_name: str
    serve: Callable[[Any], Any]
    about: str
    only: str = ""
    operation: type[Any] | None = None


class RobotTopics:
    """The topics of a robot.

    Parameters
    ----------
    port : RobotPort
        The robot.
    names : Names
        Its names.
    messages, types : Messages, Types
        Make messages and their bytes.
    scan_step : callable
        Simulated time between two scans, s.
    data : StepData
        Data of a step that all robots' messages share.
    """

    def __init__(
        self,
        port: RobotPort,
        names: Names,
        messages: Messages,
        types: Types,
        scan_step: Callable[[], float],
        data: StepData,
    ) -> None:
        self.data = data
        self.port = port
        self.names = names
        self._m = messages
        self._types = types
        self._step = scan_step
        ring = port.spec.sonar
        mounts = np.array([t.pose for t in ring.transducers] if ring is not None else [], np.float64).reshape(-1, 3)
        # AMRISim leaves out readings without an echo, ROSARIA does not
        farthest = np.full(len(mounts), math.inf)
        if ring is not None and not names.profile.far_echoes:
            farthest = np.array([ring.limits_of(t)[1] if t.connected else ring.range_max for t in ring.transducers])
        self._ring = ring_of(port.name, mounts, farthest)
        data.add(self._ring)
        n = names
        self._odom, self._base = n.frame_id("odom"), n.frame_id("base_link")
        self._truth_frame = self._odom if n.profile.truth_frame == "odom" else n.profile.truth_frame
        self.problems = learn_types(port, types)
        """Devices that are not shown, with the reason; conflicts of topics are known after a call of `topics`."""

    def close(self) -> None:
        """The robot was removed."""
        self.data.remove(self._ring)

    # -- topics

    def topics(self) -> list[Topic]:
        """All topics of the robot."""
        n, spec = self.names, self.port.spec
        found: list[Topic] = []
        odometry = self._quick_odometry(False)

        def add(name: str, type_name: str, make: Callable[[Stamp], Any], about: str, **options: Any) -> None:
            if n.offers(name):
                found.append(Topic(n.topic(name), type_name, make, about, **options))

        believed = "pose by odometry, and velocity"
        add("pose", "nav_msgs/Odometry", self._odometry, believed, quick=odometry)
        usual = "the same as pose, by the name that most programs expect"
        add("odom", "nav_msgs/Odometry", self._odometry, usual, quick=odometry)
        exact = self._quick_odometry(True)
        add("base_pose_ground_truth", "nav_msgs/Odometry", self._truth, "where it really is", quick=exact)
        if spec.sonar is not None:
            subscribe = self.port.subscribe_sonar
            add("sonar", "sensor_msgs/PointCloud", self._sonar_cloud, "sonar readings as points", wanted=subscribe)
            add(
                "sonar_pointcloud2", "sensor_msgs/PointCloud2", self._sonar_cloud2, "the same as PointCloud2", wanted=subscribe,
                quick=self._quick_cloud(),
            )  # fmt: skip
        if n.offers("scan"):
            found += [self._scan_topic(i) for i in range(self.port.n_lasers)]
        add("motors_state", "std_msgs/Bool", self._motors_state, "whether the motors are on", version=self._motors_on)
        names = {topic.name for topic in found}
        for one in shown_devices(self.port, n):
            topic = self._device_topic(one)
            if topic.name in names:
                self.problems.setdefault(one.reader.name, f"another topic has its name, {topic.name}")
            if one.reader.name not in self.problems:
                names.add(topic.name)
                found.append(topic)
        return found

    def _device_topic(self, one: Shown) -> Topic:
        frame, version = frame_of(one, self.names), one.ros.version
        return Topic(
            self.names.topic(f"{one.ros.topic}{one.tail}"),
            one.ros.type_name,
            lambda stamp: device_message(one, self._types, self._m, stamp, frame),
            one.ros.about or one.reader.kind.about,
            version=None if version is None else lambda: version(one.reader.read()),
            period=one.ros.period,
            wanted=lambda on: self.port.subscribe_device(one.reader.name, on),
        )

    def transform(self) -> Transform:
        """Odom → base_link, at every step."""
        fleet = self.port.fleet
        return Transform(self._odom, self._base, Pose(*fleet.state.odom[fleet.rows[self.port.name]].tolist()))

    def static_transforms(self) -> list[Transform]:
        """base_link → sensors."""
        n = self.names
        found = [
            Transform(self._base, n.laser_frame_id(i), laser.pose) for i, laser in enumerate(self.port.spec.lasers)
        ]
        if self.port.spec.sonar is not None:
            found.append(Transform(self._base, n.frame_id("sonar"), Pose()))
        return found + device_transforms(self.port, n, self._base)

    def _scan_topic(self, i: int) -> Topic:
        n = self.names
        name = n.scan_topic(i, self.port.n_lasers, self.port.spec.lasers[i].type_name)

        def make(stamp: Stamp) -> Any:
            return self._m.scan(stamp, self.port.laser(i), n.laser_frame_id(i), self._step(), inf=n.profile.open_scans)

        return Topic(
            name,
            "sensor_msgs/LaserScan",
            make,
            f"scans of laser {i}",
            wanted=lambda on: self.port.subscribe_laser(i, on),
            quick=self._quick_scan(i, make),
        )

    def _odometry(self, stamp: Stamp) -> Any:
        state = self.port.state()
        # AMRISim and stage_ros leave the covariance zero
        child = self._base if self.names.profile.odometry_child else ""
        known = self.names.profile.covariance
        return self._m.odometry(stamp, state.pose_odom, state.twist, self._odom, child, covariance=known)

    def _truth(self, stamp: Stamp) -> Any:
        state = self.port.state()
        return self._m.odometry(stamp, state.pose_world, state.twist, self._truth_frame, self._base, exact=True)

    # -- fast encoders

    def _quick_odometry(self, exact: bool) -> Callable[[str, Stamp], bytes]:
        """Fast encoder of odometry or ground truth, from the state's arrays."""
        made: list[QuickOdometry] = []
        fleet, name, data = self.port.fleet, self.port.name, self.data
        which = "pose" if exact else "odom"

        def quick(wire: str, stamp: Stamp) -> bytes:
            if not made:
                made.append(self._odometry_template(exact))
            return made[0].bytes(wire, stamp, data.row(fleet, which, name), data.row(fleet, "vel", name))

        return quick

    def _odometry_template(self, exact: bool) -> QuickOdometry:
        if exact:
            return QuickOdometry(self._types, self._m, self._truth_frame, self._base, exact=True, covariance=True)
        profile = self.names.profile
        return QuickOdometry(
            self._types,
            self._m,
            self._odom,
            self._base if profile.odometry_child else "",
            exact=False,
            covariance=profile.covariance,
        )

    def _quick_scan(self, index: int, make: Callable[[Stamp], Any]) -> Callable[[str, Stamp], bytes]:
        """Fast encoder of a scan from the step's readings; the template is rebuilt when the laser's configuration changes."""
        made: dict[int, QuickScan] = {}
        fleet, name, data, inf = self.port.fleet, self.port.name, self.data, self.names.profile.open_scans

        def quick(wire: str, stamp: Stamp) -> bytes:
            span = fleet.span(name, "laser", index)
            if span is None or not fleet.is_exact:  # not measured in this step, or rounded
                message = make(stamp)
                data.forget_readings()
                return self._slow(wire, message, "sensor_msgs/LaserScan")
            template = made.get(fleet.layout)
            if template is None:  # its configuration may have changed
                made.clear()
                template = made[fleet.layout] = QuickScan(self._types, self._m, make)
            return template.bytes(wire, stamp, *data.scan(fleet, span, inf))

        return quick

    def _quick_cloud(self) -> Callable[[str, Stamp], bytes]:
        """Fast encoder of a sonar ring's points."""
        made: list[QuickCloud] = []
        fleet, data, ring = self.port.fleet, self.data, self._ring

        def quick(wire: str, stamp: Stamp) -> bytes:
            if not made:
                made.append(QuickCloud(self._types, self._m, self._sonar_frame()))
            points = data.cloud(fleet, ring)
            return made[0].bytes(wire, stamp, self._sonar_points().tobytes() if points is None else points)

        return quick

    def _slow(self, wire: str, message: Any, type_name: str) -> bytes:
        encode = self._types.encode_ros1 if wire == "ros1" else self._types.encode_cdr
        return encode(message, type_name)

    def _sonar_points(self) -> NDArray[np.float32]:
        """End points of readings in the robot's frame, (n, 3), m."""
        readings, ring = self.port.sonar(), self._ring
        self.data.forget_readings()
        if readings is None:
            return np.zeros((0, 3), np.float32)
        points: NDArray[np.float32] = readings.ranges.astype(np.float32)[:, None] * ring.rays
        points += ring.mounts
        return points[readings.ranges < ring.farthest]

    def _sonar_frame(self) -> str:
        return self.names.frame_id(self.names.profile.sonar_frame)

    def _sonar_cloud(self, stamp: Stamp) -> Any:
        return self._m.cloud(stamp, self._sonar_points(), self._sonar_frame())

    def _sonar_cloud2(self, stamp: Stamp) -> Any:
        return self._m.cloud2(stamp, self._sonar_points(), self._sonar_frame())

    def _motors_on(self) -> bool:
        """Read in every step, so not by `RobotPort.state`, which gathers everything."""
        fleet = self.port.fleet
        return bool(fleet.state.motors[fleet.rows[self.port.name]])

    def _motors_state(self, stamp: Stamp) -> Any:
        return self._m.value("Bool", self._motors_on())

    def diagnostics(self) -> tuple[str, int, str, list[tuple[str, str]]]:
        """Name, level, message and values for /diagnostics."""
        state, electrics = self.port.state(), self.port.electrics
        level, text = (0, "OK")
        if electrics.battery.is_low:
            level, text = 2, "battery empty"
        elif electrics.estop_pressed or state.estop:
            level, text = 1, "emergency stop"
        elif state.stalled:
            level, text = 1, "stalled"
        elif not state.motors:
            level, text = 1, "motors off"
        values = [("motors", str(state.motors)), ("stalled", str(state.stalled)), ("voltage", f"{electrics.volts:.2f}")]
        return self.port.name, level, text, [*values, ("charge", f"{electrics.charge:.0f}")]


class Driver:
    """Executes cmd_vel for a robot, with a watchdog that stops it.

    Parameters
    ----------
    port : RobotPort
        The robot.
    claim, release : callable
        Claim the robot for ROS, and release it.
    timeout : float
        Watchdog time-out: simulated time without a command, s; 0: never.
    log : callable
        Takes a warning.
    """

    def __init__(
        self,
        port: RobotPort,
        claim: Callable[[], None],
        release: Callable[[], None],
        timeout: float,
        log: Callable[[str], None],
    ) -> None:
        self._port = port
        self._claim, self._release = claim, release
        self._timeout_us = round(timeout * 1e6)
        self._log = log
        self._last_us = -1
        self._warned = False

    @property
    def is_active(self) -> bool:
        """Whether ROS commands the robot at present."""
        return self._last_us >= 0

    def twist(self, message: Any) -> None:
        """geometry_msgs/Twist: m/s and rad/s."""
        v, vy, w = float(message.linear.x), float(message.linear.y), float(message.angular.z)
        if not (math.isfinite(v) and math.isfinite(vy) and math.isfinite(w)):
            self._log("cmd_vel with values that are not finite: ignored")
            return
        if not self._port.state().motors:
            if not self._warned:
                self._log("cmd_vel ignored: the motors are off (service enable_motors)")
            self._warned = True
            return
        self._warned = False
        if self._last_us < 0:
            self._claim()
        self._last_us = self._port.time_us
        self._port.drive(v=v, w=w, vy=vy)

    def stamped(self, message: Any) -> None:
        """geometry_msgs/TwistStamped."""
        self.twist(message.twist)

    def tick(self) -> None:
        """Call after each step: checks the watchdog."""
        if self._last_us < 0 or not self._timeout_us:
            return
        if self._port.time_us - self._last_us > self._timeout_us:
            self.end()

    def end(self) -> None:
        """Stop the robot and release it."""
        if self._last_us >= 0:
            self._last_us = -1
            self._port.stop()
            self._release()

    def enable(self, on: bool) -> None:
        """Switch the motors."""
        self._port.enable_motors(on and self._port.electrics.may_drive)
