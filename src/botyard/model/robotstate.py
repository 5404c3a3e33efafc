"""State of robots after a step, as protocols read it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose, Twist
from botyard.model.kinematics import Axes, Kinematics


class RobotState(NamedTuple):
    """State of a robot after the last step.

    Attributes
    ----------
    pose_world : Pose
        True pose.
    pose_odom : Pose
        Pose by odometry.
    twist : Twist
        Velocity in the robot's frame.
    motors, stalled, estop : bool
        Motors are enabled; the robot is blocked while translating; an emergency stop is
        in progress.
    limits, accel, decel : Axes
        Speed limits (m/s, rad/s), accelerations and decelerations (m/s², rad/s²) in
        force.
    odometry_error : Axes
        Proportional errors of odometry in force.
    path : (float, float)
        Signed distance, m, and rotation, rad, by odometry since the robot was added.
    """

    pose_world: Pose
    pose_odom: Pose
    twist: Twist
    motors: bool
    stalled: bool
    estop: bool
    limits: Axes
    accel: Axes
    decel: Axes
    odometry_error: Axes
    path: tuple[float, float]


class Timing(NamedTuple):
    """Durations of a step, s: simulated, requested wall time, and last wall time."""

    sim: float = 0.1
    real: float = 0.1
    last: float = 0.1


class BodyColumns(Protocol):
    """Dynamic state of all bodies as read-only arrays with a row for each body.

    `Fleet.rows` maps robots to rows.
    """

    @property
    def pose(self) -> NDArray[np.float64]:
        """True poses, (n, 3): m, m, rad."""
        ...

    @property
    def odom(self) -> NDArray[np.float64]:
        """Poses by odometry, (n, 3): m, m, rad."""
        ...

    @property
    def vel(self) -> NDArray[np.float64]:
        """Velocities in the bodies' frames, (n, 3): m/s, m/s, rad/s."""
        ...

    @property
    def path(self) -> NDArray[np.float64]:
        """Signed distance forward, m, and rotation, rad, by odometry, (n, 2)."""
        ...

    @property
    def steer(self) -> NDArray[np.float64]:
        """State of wheels, (n, 7); without rows if no body steers or has Mecanum wheels.

        The first column has steering angles, rad; for Mecanum drives, the distance to the
        left by odometry, m.
        """
        ...

    @property
    def odom_frame(self) -> NDArray[np.float64]:
        """World pose of each body's odometry origin when it was last set, (n, 3): m, m, rad."""
        ...

    @property
    def motors(self) -> NDArray[np.int8]:
        """Whether the motors of each body are on, (n,): 1 if they are, otherwise 0."""
        ...

    @property
    def stall(self) -> NDArray[np.int8]:
        """Whether an obstacle stalls each body, (n,): 1 if so, otherwise 0."""
        ...

    @property
    def contact(self) -> NDArray[np.uint64]:
        """Sectors of each body's outline that are in contact, as a bit mask, (n,)."""
        ...


def wheel_path(
    state: BodyColumns, row: int, kinematics: Kinematics
) -> tuple[float, float, float]:
    """Return the distances by odometry that wheels have rolled since a robot was added.

    Parameters
    ----------
    state : BodyColumns
        State of all bodies.
    row : int
        Row of the robot.
    kinematics : Kinematics
        Its drive.

    Returns
    -------
    tuple of float
        Distance forward and to the left, m, and rotation, rad. Only Mecanum wheels count
        the distance to the left.
    """
    forward, turned = state.path[row].tolist()
    left = float(state.steer[row, 0]) if kinematics.counts_sideways else 0.0
    return forward, left, turned
