"""Topics, inputs and services of a robot and of the world, for all transports.

Topics without subscribers cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final

import numpy as np

from botyard.geometry import Pose
from botyard.model.links import BASE
from botyard.model.robotport import RobotPort
from botyard.protocols.ros_messages.devices import (
    Encoders,
    Shown,
    device_message,
    device_transforms,
    frame_of,
    learn_types,
    period_of,
    shown_devices,
)
from botyard.protocols.ros_messages.frames import MAP, MovingFrames
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import (
    NO_COVARIANCE,
    ODOMETRY_COVARIANCE,
    TRUTH_COVARIANCE,
    Covariances,
    Messages,
    Placed,
    Stamp,
    Transform,
)
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.quick import QuickOdometry
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import Types

# REP-107 expects diagnostics at about 1 Hz.
DIAGNOSTICS_PERIOD: Final = 1.0
"""Period of diagnostics in simulated time, s."""
AMCL_STEP_M: Final = 0.25
"""Distance after which AMCL by default publishes its pose, m (``update_min_d``)."""
AMCL_STEP_RAD: Final = 0.2
"""Angle after which AMCL by default publishes its pose, rad (``update_min_a``)."""


def _late(
    age_us: Callable[[], int],
    make: Callable[[Stamp], Any],
    quick: Callable[[str, Stamp], bytes] | None,
) -> tuple[Callable[[Stamp], Any], Callable[[str, Stamp], bytes] | None]:
    """Return message factories for a sensor whose readings may be older than the last step.

    The factories stamp messages with the time of the measurement.

    Parameters
    ----------
    age_us : callable
        Returns the age of the measurement, µs of simulated time; 0 for the present
        step.
    make : callable
        Makes the message object at a stamp.
    quick : callable or None
        Fast encoder of the same message.
    """

    def measured(stamp: Stamp) -> Stamp:
        age = age_us()
        return stamp.before_us(age) if age else stamp

    def quick_late(wire: str, stamp: Stamp) -> bytes:
        assert quick is not None
        return quick(wire, measured(stamp))

    return lambda stamp: make(measured(stamp)), None if quick is None else quick_late


class RobotTopics:
    """Topics of a robot.

    Parameters
    ----------
    port : RobotPort
        Robot with these topics.
    names : Names
        Names of the robot in ROS.
    messages, types : Messages, Types
        Message factory and types.
    data : StepData
        Data of a step that the messages of all robots share.
    scan_rate : float, optional
        See `botyard.protocols.ros_messages.devices.period_of`.
    """

    def __init__(
        self,
        port: RobotPort,
        names: Names,
        messages: Messages,
        types: Types,
        data: StepData,
        scan_rate: float | None = None,
    ) -> None:
        self._scan_rate = scan_rate
        self.data = data
        self.port = port
        self.names = names
        self._m = messages
        self._types = types

        n = names
        self._odom, self._base = n.frame_id("odom"), n.frame_id(n.profile.base)
        self._truth_frame = (
            self._odom if n.profile.truth_frame == "odom" else n.profile.truth_frame
        )

        self.problems = learn_types(port, types)
        """Devices that have no topics, with the reasons.

        `topics` adds devices whose topic has the name of another topic.
        """

        self._encoders = Encoders(port.fleet, types, messages, data)
        self._wanted: dict[str, set[str]] = {}
        """Names of the topics that have subscribers, by name of their device."""

        self.frames = MovingFrames(port, names, data.frames.is_localized)
        data.frames.add(self.frames)
        self._models_covariance = n.profile.covariance == "model"
        if self._models_covariance:
            data.covariance.add(port.fleet, port.name)
        self._moved: tuple[int, tuple[float, ...]] = 0, ()
        """Time, µs, of the last joint states, and positions of joints of unknown velocity."""

    def close(self) -> None:
        """Release the data of a removed robot."""
        self._encoders.close()
        self.data.frames.remove(self.frames)
        if self._models_covariance:
            self.data.covariance.remove(self.port.name)

    # -- topics

    def topics(self) -> list[Topic]:
        """Return all topics of the robot.

        The topics of the robot itself come first, then the topics of devices. A device
        whose topic has the name of another topic is left out, and added to `problems`.
        """
        n = self.names
        found: list[Topic] = []
        odometry = self._quick_odometry(False)

        def add(
            name: str,
            type_name: str,
            make: Callable[[Stamp], Any],
            about: str,
            **options: Any,
        ) -> None:
            # A profile selects the topics, so that the robot has the same topics as the
            # program that the profile imitates.
            if n.offers(name):
                found.append(Topic(n.topic(name), type_name, make, about, **options))

        believed = "pose by odometry, and velocity"
        add("pose", "nav_msgs/Odometry", self._odometry, believed, quick=odometry)
        usual = "the same as pose, with the name that most programs expect"
        add("odom", "nav_msgs/Odometry", self._odometry, usual, quick=odometry)

        exact = self._quick_odometry(True)
        add(
            "base_pose_ground_truth",
            "nav_msgs/Odometry",
            self._truth,
            "true pose and velocity",
            quick=exact,
        )
        add(
            "motors_state",
            "std_msgs/Bool",
            self._motors_state,
            "whether the motors are on",
            version=self._motors_on,
        )
        add(
            "joint_states",
            "sensor_msgs/JointState",
            self._joint_states,
            "positions and velocities of the wheels and the gripper",
        )

        if self.data.frames.is_localized:
            about = "estimated pose, by --localization"
            kind = "geometry_msgs/PoseWithCovarianceStamped"
            add("amcl_pose", kind, self._believed, about, version=self._believed_place)

        # Topics of the robot itself have priority over topics of devices.
        names = {topic.name for topic in found}
        for one in shown_devices(self.port, n):
            topic = self._device_topic(one)
            # Two publishers of one name and different types would confuse subscribers.
            if topic.name in names:
                self.problems.setdefault(
                    one.reader.name, f"another topic already has the name {topic.name}"
                )

            if one.reader.name not in self.problems:
                names.add(topic.name)
                found.append(topic)

        return found

    def _device_topic(self, one: Shown) -> Topic:
        """Return a topic of a device, with its period, factories and subscription.

        Parameters
        ----------
        one : Shown
            Device and declaration of the topic.
        """
        frame, version = frame_of(one, self.names), one.ros.version
        name = self.names.topic(one.place.named(one.ros.topic))
        period = period_of(one, self._scan_rate)
        # A subscribed sensor measures in every step. For a topic with a longer period,
        # do not subscribe to its sensor: it then measures only when a message is due.
        is_seldom = (
            period > 0.0 and version is None and one.reader.kind.beams is not None
        )

        def make(stamp: Stamp) -> Any:
            return device_message(one, self._types, self._m, stamp, frame, period)

        def wanted(on: bool) -> None:
            if not is_seldom:
                self._want(one.reader.name, name, on)

        whole: Callable[[Stamp], Any] = make
        quick = self._encoders.of(one, make)
        age_us = None
        if one.reader.kind.beams is not None:
            age_us = partial(self.port.fleet.age_us, one.reader.key)
            whole, quick = _late(age_us, make, quick)

        return Topic(
            name,
            one.ros.type_name,
            whole,
            one.ros.about or one.reader.kind.about,
            version=None if version is None else lambda: version(one.reader.read()),
            period=period,
            wanted=wanted,
            quick=quick,
            device=one.reader.name,
            age_us=age_us,
            sensor=one.reader.key if is_seldom else None,
        )

    def _want(self, device: str, topic: str, on: bool) -> None:
        """Subscribe to a device while one of its topics has a subscriber.

        Parameters
        ----------
        device : str
            Name of the device.
        topic : str
            Name of one of its topics.
        on : bool
            Whether the topic has a subscriber.
        """
        wanted = self._wanted.setdefault(device, set())
        # A device may have several topics, for example a scan and a point cloud.
        (wanted.add if on else wanted.discard)(topic)
        self.port.subscribe_device(device, bool(wanted))

    def transforms(self) -> list[Placed]:
        """Return the transforms that change with every step."""
        return self.data.frames.placed(self.frames)

    def static_transforms(self) -> list[Transform]:
        """Return the fixed transforms: base_link → sensors and so on."""
        names = self.names
        body = names.frame_id(BASE)
        fixed = [Transform(self._base, body, Pose())] if self._base != body else []
        return [*fixed, *device_transforms(self.port, names, body)]

    def _covariances(self) -> Covariances:
        """Return the covariances of pose and velocity by odometry.

        They are zero in the profiles of AMRISim and stage_ros, as in these programs.
        """
        if self._models_covariance:
            poses, velocities = (
                np.frombuffer(m, np.float64)
                for m in self.data.covariance.of(self.port.name)
            )
            return poses, velocities

        one = (
            ODOMETRY_COVARIANCE
            if self.names.profile.covariance == "fixed"
            else NO_COVARIANCE
        )
        return one, one

    def _odometry(self, stamp: Stamp) -> Any:
        state = self.port.state()
        child = self._base if self.names.profile.odometry_child else ""
        return self._m.odometry(
            stamp, state.pose_odom, state.twist, self._odom, child, self._covariances()
        )

    def _truth(self, stamp: Stamp) -> Any:
        state, exact = self.port.state(), (TRUTH_COVARIANCE, TRUTH_COVARIANCE)
        return self._m.odometry(
            stamp, state.pose_world, state.twist, self._truth_frame, self._base, exact
        )

    def _joint_states(self, stamp: Stamp) -> Any:
        """Return the sensor_msgs/JointState of the moving joints."""
        fleet, spec, joints = (
            self.port.fleet,
            self.port.spec,
            (
                *self.frames.wheels,
                *self.frames.steered,
                *self.frames.trailers,
                *self.frames.paddles,
            ),
        )
        # The row is looked up each time, because rows change when robots are added or
        # removed.
        row = fleet.rows[self.port.name]
        v, left, w = fleet.state.vel[row].tolist()
        kinematics, radius = spec.kinematics, spec.wheel_radius
        positions = [*self.frames.rolled]
        velocities = [one / radius for one in kinematics.all_wheel_speeds(v, left, w)]

        gripper = self.port.gripper
        moved = self.frames.steering + self.frames.bends
        if gripper is not None and self.frames.paddles:
            moved += tuple(gripper.positions[:2])
        if moved:
            (last, before), now = self._moved, self.port.time_us
            elapsed = (now - last) / 1e6
            positions += moved
            # The state has no velocities of these joints: compute them from their last
            # two positions.
            velocities += [
                (a - b) / elapsed if last and elapsed > 0.0 else 0.0
                for a, b in zip(moved, before or moved, strict=True)
            ]
            if now != last:
                # Store positions only in a new step: otherwise a second call in the
                # step would give a velocity of 0.
                self._moved = now, moved

        return self._m.joints(
            stamp, [joint.name for joint in joints], positions, velocities
        )

    def _believed(self, stamp: Stamp) -> Any:
        return self._m.located(stamp, self.frames.pose, MAP, TRUTH_COVARIANCE)

    def _believed_place(self) -> Hashable:
        """Return a value that changes when AMCL would publish its pose again.

        AMCL does so after a motion of ``update_min_d`` or ``update_min_a``, and when
        its pose is set.
        """
        pose = self.frames.pose
        return (
            self.frames.offset,
            # Round the pose to cells of a grid: this has a similar effect, without a
            # stored pose.
            round(pose.x / AMCL_STEP_M),
            round(pose.y / AMCL_STEP_M),
            round(pose.th / AMCL_STEP_RAD),
        )

    # -- fast encoders

    def _quick_odometry(self, exact: bool) -> Callable[[str, Stamp], bytes]:
        """Return the fast encoder of odometry or ground truth, from the state's arrays.

        Parameters
        ----------
        exact : bool
            Whether the true pose is encoded, not the pose by odometry.
        """
        fleet, name, data = self.port.fleet, self.port.name, self.data
        which, is_modelled = (
            "pose" if exact else "odom",
            self._models_covariance and not exact,
        )
        template: QuickOdometry | None = None

        def quick(wire: str, stamp: Stamp) -> bytes:
            nonlocal template
            # Make the template at the first message: robots without subscribers need
            # none.
            if template is None:
                template = self._odometry_template(exact)
            pose, twist = data.odometry(fleet, which, name)
            return template.bytes(
                wire,
                stamp,
                pose,
                twist,
                data.covariance.of(name) if is_modelled else None,
            )

        return quick

    def _odometry_template(self, exact: bool) -> QuickOdometry:
        if exact:
            known = TRUTH_COVARIANCE, TRUTH_COVARIANCE
            return QuickOdometry(
                self._types, self._m, self._truth_frame, self._base, known
            )

        child = self._base if self.names.profile.odometry_child else ""
        return QuickOdometry(
            self._types, self._m, self._odom, child, self._covariances()
        )

    def _motors_on(self) -> bool:
        """Return whether the motors are on.

        The value is read in every step, so `RobotPort.state`, which gathers everything,
        would be too slow.
        """
        # The column holds integers, but JSON clients expect true or false.
        return bool(self.data.of(self.port.fleet, "motors", self.port.name))

    def _motors_state(self, stamp: Stamp) -> Any:
        return self._m.value("Bool", self._motors_on())

    def diagnostics(self) -> tuple[str, int, str, list[tuple[str, str]]]:
        """Return name, level, message and values for /diagnostics.

        Returns
        -------
        tuple of (str, int, str, list of (str, str))
            Level 0 is OK, 1 warning (stalled, motors off, emergency stop), 2 error
            (battery empty). Values are texts: flags, voltage in V, charge in %.
        """
        state, electrics = self.port.state(), self.port.electrics
        level, text = (0, "OK")
        # The first true condition is shown, so they are in the order of severity.
        if electrics.battery.is_low:
            level, text = 2, "battery empty"
        elif electrics.estop_pressed or state.estop:
            level, text = 1, "emergency stop"
        elif state.stalled:
            level, text = 1, "stalled"
        elif not state.motors:
            level, text = 1, "motors off"

        values = [
            ("motors", str(state.motors)),
            ("stalled", str(state.stalled)),
            ("voltage", f"{electrics.volts:.2f}"),
        ]
        return (
            self.port.name,
            level,
            text,
            [*values, ("charge", f"{electrics.charge:.0f}")],
        )
