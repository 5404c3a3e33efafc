"""Transforms that change with every step, computed for all robots at once.

They are map → odom → base_link (REP-105), with base_footprint between odom and
base_link (REP-120), and the transforms of joints: wheels, trailers and paddles of a
gripper. With these, no robot_state_publisher is needed to show a robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import IDENTITY, Pose, compose, inverse
from botyard.model.kinematics import wheel_speeds
from botyard.model.links import (
    Joint,
    gripper_joints,
    steering_joints,
    trailer_joints,
    wheel_joints,
)
from botyard.model.robotport import RobotPort
from botyard.model.robotstate import wheel_path
from botyard.model.trailers import trailer_name
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ros_messages.messages import Placed
from botyard.protocols.ros_messages.naming import Names
from botyard.units import wrap_angle

F8 = NDArray[np.float64]

_NUMBERS: Final = 7
_SIZE: Final = _NUMBERS * 8
"""Size of a transform, bytes: translation and quaternion."""
MAP: Final = "map"
"""Frame of the world in ROS (REP-105)."""


class MovingFrames:
    """Changing transforms of one robot, which must be added to `StepFrames`.

    Parameters
    ----------
    port : RobotPort
        Robot with these frames.
    names : Names
        Names of the robot's frames. If their profile has no topic ``joint_states``,
        joints have no transforms.
    is_localized : bool
        Whether map → odom is the last transform.

    Attributes
    ----------
    pairs : list of (str, str)
        Parent and child of each transform.
    offset : Pose
        Error of the localization: the estimated pose is this pose composed with the
        true pose. ``initialpose`` sets it.
    """

    def __init__(self, port: RobotPort, names: Names, is_localized: bool) -> None:
        self.port = port
        self.offset: Pose = IDENTITY
        spec, profile, frame = port.spec, names.profile, names.frame_id
        has_joints = names.offers("joint_states")
        self.wheels: tuple[Joint, ...] = wheel_joints(spec) if has_joints else ()
        self.steered: tuple[Joint, ...] = steering_joints(spec) if has_joints else ()
        self.trailers: tuple[Joint, ...] = trailer_joints(spec) if has_joints else ()
        self.paddles: tuple[Joint, ...] = gripper_joints(spec) if has_joints else ()
        kinematics = spec.kinematics
        self.shape = np.array(
            [kinematics.half_track, kinematics.wheel_radius, kinematics.lever]
        )
        self.pairs = [(frame("odom"), frame(profile.base))]
        self.pairs += [
            (frame(joint.parent), frame(joint.child))
            for joint in (
                *self.wheels,
                *self.steered,
                *self.trailers,
                *self.paddles,
            )
        ]
        if is_localized:
            self.pairs.append((MAP, frame("odom")))

    def set_pose(self, pose: Pose) -> None:
        """Set the estimated pose in the map.

        Parameters
        ----------
        pose : Pose
            Pose of the robot in the frame map, m and rad.
        """
        # Keep this error while the robot moves, as if localization measured motion
        # perfectly.
        self.offset = compose(pose, inverse(self._truth))

    @property
    def steering(self) -> tuple[float, ...]:
        """Measured angle of each steered wheel, rad, in the order of `steered`."""
        if not self.steered:
            return ()
        fleet = self.port.fleet
        angle = float(fleet.state.steer[fleet.rows[self.port.name], 0])
        return self.port.spec.kinematics.wheel_angles(angle)

    @property
    def bends(self) -> tuple[float, ...]:
        """Angle of each trailer relative to the body in front, rad, in the order of `trailers`."""
        fleet, name = self.port.fleet, self.port.name
        found, leader = list[float](), float(fleet.state.pose[fleet.rows[name], 2])
        for k in range(len(self.trailers)):
            row = fleet.rows.get(trailer_name(name, k + 1))
            # A trailer that was removed stays straight.
            th = leader if row is None else float(fleet.state.pose[row, 2])
            found.append(wrap_angle(th - leader))
            leader = th
        return tuple(found)

    @property
    def rolled(self) -> tuple[float, ...]:
        """Angle by which each wheel of `wheels` has rolled, rad."""
        fleet, kinematics = self.port.fleet, self.port.spec.kinematics
        path = wheel_path(fleet.state, fleet.rows[self.port.name], kinematics)
        radius = kinematics.wheel_radius
        return tuple(one / radius for one in kinematics.all_wheel_speeds(*path))

    def rolled_wheels(self) -> list[memoryview]:
        """Return the transforms of all wheels as bytes, see `StepFrames.values`."""
        found = []
        for joint, angle in zip(self.wheels, self.rolled, strict=True):
            cosine, sine = cosine_sine(angle / 2.0)
            at = joint.pose.x, joint.pose.y, joint.z
            found.append(memoryview(np.array([*at, 0.0, sine, 0.0, cosine]).tobytes()))
        return found

    @property
    def _truth(self) -> Pose:
        fleet = self.port.fleet
        return Pose(*fleet.state.pose[fleet.rows[self.port.name]].tolist())

    @property
    def pose(self) -> Pose:
        """Estimated pose in the map."""
        return compose(self.offset, self._truth)


class StepFrames:
    """Numbers of the transforms of all robots, computed once in each step.

    Parameters
    ----------
    is_localized : bool
        Whether map → odom is included. With it, map → base_link is
        `MovingFrames.offset` composed with the true pose.
    """

    def __init__(self, is_localized: bool = False) -> None:
        self.is_localized = is_localized
        self._robots: list[MovingFrames] = []
        self._made: dict[MovingFrames, list[memoryview]] | None = None

    def add(self, robot: MovingFrames) -> None:
        """Add a robot; its transforms are computed from now on.

        Parameters
        ----------
        robot : MovingFrames
            Transforms of the robot, which identify it in `values`.
        """
        self._robots.append(robot)
        self._made = None

    def remove(self, robot: MovingFrames) -> None:
        """Remove a robot.

        Parameters
        ----------
        robot : MovingFrames
            An added robot.
        """
        self._robots.remove(robot)
        self._made = None

    def forget(self) -> None:
        """Discard the computed transforms after a change of state."""
        self._made = None

    def values(self, robot: MovingFrames) -> Sequence[memoryview]:
        """Return the numbers of a robot's transforms, seven float64 each.

        The order is the order of `MovingFrames.pairs`.

        Parameters
        ----------
        robot : MovingFrames
            An added robot.

        Returns
        -------
        sequence of memoryview
            Bytes of x, y, z, m, and of the quaternion x, y, z, w. They are views of
            arrays of the step, and stay valid while the caller keeps them.
        """
        if self._made is None:
            self._made = self._make()
        return self._made[robot]

    def placed(self, robot: MovingFrames) -> list[Placed]:
        """Return the transforms of a robot as objects.

        Parameters
        ----------
        robot : MovingFrames
            An added robot.
        """
        numbers = (tuple(v.cast("d").tolist()) for v in self.values(robot))
        return [
            Placed(*pair, values)
            for pair, values in zip(robot.pairs, numbers, strict=True)
        ]

    def _make(self) -> dict[MovingFrames, list[memoryview]]:
        robots = self._robots
        if not robots:
            return {}
        fleet = robots[0].port.fleet
        known = fleet.rows
        rows = np.array([known[r.port.name] for r in robots], np.int64)

        state = fleet.state
        odom, path = state.odom[rows], state.path[rows]
        half_track, radius, lever = np.array([r.shape for r in robots]).T

        # The order of columns is used in `_of`.
        columns = [planar(odom)]
        left, right = wheel_speeds(path[:, 0], path[:, 1], lever)

        # Compute transforms of wheels also for robots without wheels, because this
        # costs less than selecting the robots.
        columns += [
            _rolled(half_track, radius, left / radius),
            _rolled(-half_track, radius, right / radius),
        ]

        if self.is_localized:
            columns.append(planar(self._corrections(odom, state.pose[rows])))

        numbers = [memoryview(column.tobytes()) for column in columns]
        return {robot: self._of(robot, i, numbers) for i, robot in enumerate(robots)}

    def _corrections(self, odom: F8, truth: F8) -> F8:
        """Return map → odom of all robots, (n, 3), m and rad.

        It is the estimated pose, composed with the inverse of the pose by odometry.

        Parameters
        ----------
        odom, truth : (n, 3) float64
            Poses by odometry, and true poses in the map: x, y in m, heading in rad.
        """
        believed = _composed(
            np.array([r.offset for r in self._robots], np.float64), truth
        )
        c, s = elementwise.cosine_sine(odom[:, 2])
        x, y = odom[:, 0], odom[:, 1]
        return _composed(
            believed, np.column_stack([-(c * x + s * y), s * x - c * y, -odom[:, 2]])
        )

    def _of(
        self, robot: MovingFrames, i: int, numbers: list[memoryview]
    ) -> list[memoryview]:
        """Return the numbers of one robot's transforms, in the order of its pairs.

        Parameters
        ----------
        robot : MovingFrames
            Robot whose transforms are returned.
        i : int
            Index of the robot in the arrays.
        numbers : list of memoryview
            Transforms of all robots, seven float64 each. The items are: odometry, left
            wheels, right wheels, and with localization map → odom.
        """
        place = slice(i * _SIZE, (i + 1) * _SIZE)
        found = [numbers[0][place]]
        if len(robot.wheels) == 2:
            found += [numbers[1][place], numbers[2][place]]
        # Robots with four wheels are few, so their numbers are computed one by one.
        elif robot.wheels:
            found += robot.rolled_wheels()

        # Robots that steer are few, so their numbers are computed one by one.
        for joint, angle in zip(robot.steered, robot.steering, strict=True):
            cosine, sine = cosine_sine(angle / 2.0)
            at = joint.pose.x, joint.pose.y, joint.z
            found.append(memoryview(np.array([*at, 0.0, 0.0, sine, cosine]).tobytes()))

        for joint, angle in zip(robot.trailers, robot.bends, strict=True):
            cosine, sine = cosine_sine(angle / 2.0)
            at = joint.pose.x, joint.pose.y, joint.z
            found.append(memoryview(np.array([*at, 0.0, 0.0, sine, cosine]).tobytes()))

        gripper = robot.port.gripper
        if robot.paddles and gripper is not None:
            # Grippers are few, so their numbers are computed one by one.
            for joint, position in zip(
                robot.paddles, gripper.positions[:2], strict=True
            ):
                y = joint.pose.y + joint.axis[1] * position
                found.append(
                    memoryview(
                        np.array(
                            [joint.pose.x, y, joint.z, 0.0, 0.0, 0.0, 1.0]
                        ).tobytes()
                    )
                )

        if self.is_localized:
            found.append(numbers[3][place])
        return found


def _composed(a: F8, b: F8) -> F8:
    """Return poses `b`, which are in frames `a`, in the parent frame of `a`, (n, 3).

    Parameters
    ----------
    a, b : (n, 3) float64
        Poses x, y in m, heading in rad. Headings of the result are not normalised.
    """
    c, s = elementwise.cosine_sine(a[:, 2])
    return np.column_stack(
        [
            a[:, 0] + c * b[:, 0] - s * b[:, 1],
            a[:, 1] + s * b[:, 0] + c * b[:, 1],
            a[:, 2] + b[:, 2],
        ]
    )


def planar(poses: F8) -> F8:
    """Return translations and quaternions, (n, 7), of poses, (n, 3).

    Parameters
    ----------
    poses : (n, 3) float64
        Poses x, y in m, heading in rad.

    Returns
    -------
    (n, 7) float64
        x, y and z (0), m, and a quaternion x, y, z, w that turns about the z axis.
    """
    made = np.zeros((len(poses), _NUMBERS))
    made[:, :2] = poses[:, :2]
    made[:, 6], made[:, 5] = elementwise.cosine_sine(poses[:, 2] / 2.0)
    return made


def _rolled(y: F8, z: F8, angle: F8) -> F8:
    """Return translations and quaternions, (n, 7), of turned wheels.

    Wheels are at y and z, m, and turned about the y axis by `angle`, rad.

    Parameters
    ----------
    y, z : (n,) float64
        Positions of the axles in the robot's frame, m.
    angle : (n,) float64
        Turns of the wheels, rad.
    """
    made = np.zeros((len(angle), _NUMBERS))
    made[:, 1], made[:, 2] = y, z
    made[:, 6], made[:, 4] = elementwise.cosine_sine(angle / 2.0)
    return made


__all__ = ["MAP", "MovingFrames", "StepFrames", "planar"]
