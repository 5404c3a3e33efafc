"""State of robots after a step, as protocols read it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose, Twist
from botyard.model.kinematics import Axes


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
        Speed limits, accelerations and decelerations in force; m/s, m/s² and rad.
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
    def odom_frame(self) -> NDArray[np.float64]:
        """World poses of odometry's origin when last set, (n, 3): m, m, rad."""
        ...

    @property
    def motors(self) -> NDArray[np.int8]:
        """Whether the motors are on, (n,): 1 if so."""
        ...

    @property
    def stall(self) -> NDArray[np.int8]:
        """Whether an obstacle stalls the body, (n,): 1 if so."""
        ...

    @property
    def contact(self) -> NDArray[np.uint64]:
        """Bit mask of the sectors in contact, (n,)."""
        ...
