"""SE(2): poses in the plane and operations on them.

Axes follow REP-103: x forward, y left, angles counter-clockwise. A pose ``(x, y, th)``
is the transform ``T_a_b`` from coordinates in frame *b* to frame *a*: metres, metres,
radians. The functions work on floats and tuples, not on arrays; the kernels of the engine
have their own compiled versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from botyard.numerics.elementary import atan2, cosine_sine, hypot, tan
from botyard.units import wrap_angle

Outline = tuple[tuple[float, float], ...]
"""Corners of a convex or concave polygon, m, in its body's frame, in either
orientation.
"""


class Pose(NamedTuple):
    """Pose in the plane, or the transform from a body's frame to its parent frame.

    Attributes
    ----------
    x, y : float
        Position, m.
    th : float
        Heading, rad, counter-clockwise. The functions of this module return it in (−π,
        π].
    """

    x: float = 0.0
    y: float = 0.0
    th: float = 0.0


class WorldPose(Pose):
    """True pose in the world frame, which is also the frame of the map (`Robot.truth`)."""

    __slots__ = ()


class OdomPose(Pose):
    """Pose by odometry, in the odometry frame (REP-105), see `Robot.odom`.

    The frame starts where odometry started, usually at the robot's start pose. It is
    unrelated to the map frame: `Robot.odom_in_world` is this pose in the world frame,
    with the errors of odometry.
    """

    __slots__ = ()


class Twist(NamedTuple):
    """Planar velocity in the body frame, or a small displacement (velocity × time).

    Attributes
    ----------
    vx, vy : float
        Forward and leftward velocity, m/s.
    w : float
        Yaw rate, rad/s, counter-clockwise.
    """

    vx: float = 0.0
    vy: float = 0.0
    w: float = 0.0


IDENTITY = Pose(0.0, 0.0, 0.0)
"""Pose of a frame in itself."""


def yaw_of_quaternion(x: float, y: float, z: float, w: float) -> float:
    """Return the yaw of a unit quaternion, rad: the heading of its x axis in the plane.

    Source: Diebel, *Representing Attitude*, 2006, eq. 290.

    Parameters
    ----------
    x, y, z, w : float
        Components in the order of ROS messages, w last; their squares add up to 1.
    """
    return atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the distance of two points or poses, m.

    Only the first two numbers of each argument are used.

    Parameters
    ----------
    a, b : sequence of float
        Coordinates x, y, …, m, in one frame.
    """
    return hypot(a[0] - b[0], a[1] - b[1])


def compose(a: Pose, b: Pose) -> Pose:
    """Return the transform "first `b`, then `a`": ``T_a_c = compose(T_a_b, T_b_c)``.

    Parameters
    ----------
    a, b : Pose
        Transforms: m, m, rad. `b` is given in the frame of `a`.
    """
    c, s = cosine_sine(a.th)
    return Pose(
        a.x + c * b.x - s * b.y, a.y + s * b.x + c * b.y, wrap_angle(a.th + b.th)
    )


def inverse(a: Pose) -> Pose:
    """Return the inverse transform of `a`.

    Parameters
    ----------
    a : Pose
        Transform ``T_a_b``: m, m, rad.

    Returns
    -------
    Pose
        Transform ``T_b_a``: m, m, rad in (−π, π].
    """
    c, s = cosine_sine(a.th)
    return Pose(-c * a.x - s * a.y, s * a.x - c * a.y, wrap_angle(-a.th))


def relative(a: Pose, b: Pose) -> Pose:
    """Return pose `b` relative to pose `a`: ``compose(a, relative(a, b)) == b``.

    Both poses are given in the same frame.

    Parameters
    ----------
    a, b : Pose
        Poses: m, m, rad.

    Returns
    -------
    Pose
        Pose `b` in the frame of `a`: m, m, rad in (−π, π].
    """
    return compose(inverse(a), b)


def transform_point(a: Pose, x: float, y: float) -> tuple[float, float]:
    """Transform a point from the frame of `a` to the parent frame.

    Parameters
    ----------
    a : Pose
        Pose of the point's frame: m, m, rad.
    x, y : float
        Point in the frame of `a`, m.

    Returns
    -------
    tuple of float
        The same point in the frame in which `a` is given, m.
    """
    c, s = cosine_sine(a.th)
    return a.x + c * x - s * y, a.y + s * x + c * y


def log(pose: Pose) -> Twist:
    """Return the body twist that leads to `pose` in unit time.

    `exp` of the result is `pose`, for headings in (−π, π]. This is the logarithm of
    SE(2) (Lynch & Park, *Modern Robotics*, 2017, §3.3).

    Parameters
    ----------
    pose : Pose
        Displacement in the body's first frame: m, m, rad.

    Returns
    -------
    Twist
        Constant velocity, m/s and rad/s, that gives this displacement in 1 s.
    """
    half = pose.th / 2.0
    cot = 1.0 - half * half / 3.0 if abs(half) < 1e-4 else half / tan(half)
    return Twist(cot * pose.x + half * pose.y, cot * pose.y - half * pose.x, pose.th)


def exp(twist: Twist, dt: float = 1.0) -> Pose:
    """Return the displacement after moving with a constant body twist for `dt` seconds.

    The path is an exact circular arc: the exponential map of SE(2) (Lynch & Park,
    *Modern Robotics*, 2017, §3.3). With φ = ω·dt: x = (vx·sin φ − vy·(1 − cos φ)) / ω
    and y = (vx·(1 − cos φ) + vy·sin φ) / ω, by series near φ = 0.

    Parameters
    ----------
    twist : Twist
        Velocity in the body frame: m/s, m/s, rad/s.
    dt : float
        Duration, s; a negative one moves backwards.

    Returns
    -------
    Pose
        Displacement in the body's first frame: m, m, rad in (−π, π].
    """
    dx, dy, dth = twist.vx * dt, twist.vy * dt, twist.w * dt
    if abs(dth) < 1e-6:
        # second-order series: the error is below 1e-18 of the path
        sinc, cosc = 1.0 - dth * dth / 6.0, 0.5 * dth
    else:
        c, s = cosine_sine(dth)
        sinc, cosc = s / dth, (1.0 - c) / dth

    return Pose(sinc * dx - cosc * dy, cosc * dx + sinc * dy, wrap_angle(dth))
