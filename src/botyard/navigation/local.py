"""Local planners for many robots: the dynamic window, VFH+ and pure pursuit.

Obstacles are points that a sensor sees.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.navigation.kernels.dwa import WindowRules
from botyard.navigation.kernels.dwa import dynamic_window as window_kernel
from botyard.navigation.kernels.purepursuit import pure_pursuit as pursuit_kernel
from botyard.navigation.kernels.vfh import HistogramRules
from botyard.navigation.kernels.vfh import vector_field_histogram as histogram_kernel
from botyard.numerics import elementwise

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]

IMMEDIATE = 1e6
"""Acceleration of a robot whose model states 0 (immediate), m/s² and rad/s²."""
WINDOW_S = 0.25
"""Time in which the velocities of a dynamic window can be reached, s (§5 of the paper).

In a shorter time, headings hardly differ, so that clearance alone decides.
"""
SLOWEST = 0.1
"""Fraction of its speed that a robot keeps at least while it has a free direction."""
LOOK_AROUND = 0.5
"""Fraction of the maximum turn rate at which a robot turns while it is blocked."""
TURN_GAIN = 2.0
"""Turn rate per radian between heading and chosen direction, 1/s."""


def points_of(
    ranges: NDArray[np.floating], angles: F8, mount: Pose, range_max: float
) -> F8:
    """Return the end points of sensor rays in the frames of robots.

    Parameters
    ----------
    ranges : (k, r) float
        Ranges, m; `range_max` or more for no hit.
    angles : (r,) float64
        Bearings of the rays in the frame of the sensor, rad.
    mount : Pose
        Pose of the sensor in the frame of the robot, m and rad.
    range_max : float
        Maximum range of the sensor, m.

    Returns
    -------
    (k, r, 2) float64
        End points, m; NaN for rays without a hit.
    """
    c, s = elementwise.cosine_sine(np.asarray(angles) + mount.th)
    size = np.where(np.asarray(ranges, np.float64) < range_max, ranges, np.nan)
    return np.stack([mount.x + size * c, mount.y + size * s], axis=2)


def dynamic_window(  # noqa: PLR0913 - a keyword for each parameter of the method
    points: F8,
    goals: F8,
    now: F8,
    *,
    dt: float,
    radius: float,
    max_v: float,
    max_w: float,
    accel: tuple[float, float] = (0.5, 1.0),
    brake: tuple[float, float] = (0.5, 1.0),
    weights: tuple[float, float, float] = (2.0, 0.2, 0.2),
    far: float = 3.0,
    samples: tuple[int, int] = (11, 21),
    turning_radius: float = 0.0,
) -> F8:
    """Return velocities by the dynamic window approach.

    The method is by Fox, Burgard, Thrun 1997.

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m, as from `points_of`.
    goals : (k, 2) float64
        Goals in the frames of the robots, m.
    now : (k, 2) float64
        Current velocities, m/s and rad/s.
    dt : float
        Time in which the velocities of the window can be reached, s: the duration of a
        step, and at least `WINDOW_S` so that robots head for their goals well.
    radius : float
        Radius of the robots plus the safety distance, m.
    max_v, max_w : float
        Maximum velocities, m/s and rad/s.
    accel, brake : (float, float)
        Linear and angular accelerations and decelerations, m/s² and rad/s²; 0 for
        immediate changes.
    weights : (float, float, float)
        α, β and γ of heading, clearance and velocity. The defaults are the paper's.
    far : float
        Clearances of this distance or more rate equally, m.
    samples : (int, int)
        Numbers of linear and of angular velocities to compare, at least 2 each.
    turning_radius : float
        Radius of the tightest arc of a car-like robot, m; 0: the robots turn on the spot.

    Returns
    -------
    (k, 2) float64
        Linear and angular velocities, m/s and rad/s.

    Raises
    ------
    ArgumentError
        An array has another shape, or a number is out of its range.
    """
    k = _count(goals, "goals", 2)
    if min(samples) < 2:
        raise ArgumentError(
            "samples: expected at least 2 linear and 2 angular velocities, "
            f"found {samples}"
        )
    if not (max_v > 0.0 and max_w > 0.0 and radius >= 0.0 and far > 0.0 and dt > 0.0):
        raise ArgumentError(
            "max_v, max_w, far, dt: expected positive numbers, and a radius of at least 0; "
            f"found {max_v}, {max_w}, {far}, {dt}, and a radius of {radius}"
        )

    heading, clearance, velocity = weights
    # The kernel divides by decelerations, so 0 must become a large number.
    limits = [float(a) if a > 0.0 else IMMEDIATE for a in (*accel, *brake)]
    rules = WindowRules(
        float(heading),
        float(clearance),
        float(velocity),
        float(max_v),
        float(max_w),
        limits[0],
        limits[1],
        limits[2],
        limits[3],
        float(radius),
        float(far),
        float(dt),
        1.0 / turning_radius if turning_radius > 0.0 else math.inf,
    )
    result = np.empty((k, 2))
    window_kernel(
        _points(points, k),
        _array(goals, "goals", (k, 2)),
        _array(now, "now", (k, 2)),
        rules,
        np.empty(samples),
        result,
    )
    return result


class Histograms:
    """Memory of VFH+ for k robots from one step to the next.

    Parameters
    ----------
    count : int
        Number k of robots.
    sectors : int
        Number s of sectors of a histogram, at least 8. 72 sectors are 5° wide.

    Attributes
    ----------
    blocked : (k, s) uint8
        Binary histograms: blocked directions, by sectors in the frame of the world.
    last : (k,) float64
        Last chosen directions, rad in the frame of the world; NaN for none.

    Raises
    ------
    ArgumentError
        There are fewer than 8 sectors.
    """

    def __init__(self, count: int, sectors: int = 72) -> None:
        if sectors < 8:
            raise ArgumentError(f"sectors: expected at least 8, found {sectors}")
        self.blocked: U1 = np.zeros((count, sectors), np.uint8)
        self.last: F8 = np.full(count, math.nan)

    def reset(self, chosen: I8 | NDArray[np.bool_]) -> None:
        """Clear the histograms and last directions of some robots.

        Parameters
        ----------
        chosen : (c,) int64 or (k,) bool
            Indices of the robots, or a mask.
        """
        self.blocked[chosen], self.last[chosen] = 0, math.nan


def vector_field_histogram(
    points: F8,
    goals: F8,
    headings: F8,
    memory: Histograms,
    *,
    radius: float,
    turn_radius: F8 | None = None,
    window: float = 2.5,
    low: float = 1.5,
    high: float = 3.0,
    wide: int = 16,
    weights: tuple[float, float, float] = (5.0, 2.0, 2.0),
) -> F8:
    """Return directions by VFH+ (Ulrich, Borenstein 1998), (k, 2).

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m, as from `points_of`.
    goals : (k,) float64
        Bearings of goals in the frames of the robots, rad.
    headings : (k,) float64
        Headings of the robots in the world, rad.
    memory : Histograms
        Memory of the last step; updated.
    radius : float
        Radius of the robots plus the safety distance, m.
    turn_radius : (k,) float64, optional
        Minimum turning radii, m. By default robots turn in place.
    window : float
        Points farther away are ignored, m.
    low, high : float
        Thresholds of the histogram. A point at the edge of the window counts 1, nearer
        points count more.
    wide : int
        Openings of at least this number of sectors are wide.
    weights : (float, float, float)
        μ1, μ2 and μ3 of the differences to the goal, to the heading and to the last
        choice. The defaults are the paper's.

    Returns
    -------
    (k, 2) float64
        Direction in the frame of the robot, rad, NaN if all directions are blocked; and
        the density of obstacles straight ahead, 0 … 1.

    Raises
    ------
    ArgumentError
        An array has another shape, or a number is out of its range.
    """
    k = len(memory.last)
    if not (0.0 <= radius < window and 0.0 < low <= high):
        raise ArgumentError(
            "radius, window, low, high: expected 0 ≤ radius < window and 0 < low ≤ high, "
            f"found {radius}, {window}, {low}, {high}"
        )

    if not 1 <= wide < memory.blocked.shape[1]:
        raise ArgumentError(
            f"wide: expected 1 … {memory.blocked.shape[1] - 1} sectors, found {wide}"
        )

    rules = HistogramRules(
        float(radius),
        float(window),
        float(low),
        float(high),
        int(wide),
        *map(float, weights),
    )
    turns = np.zeros(k) if turn_radius is None else turn_radius
    sectors = memory.blocked.shape[1]
    result = np.empty((k, 2))
    histogram_kernel(
        _points(points, k),
        _array(goals, "goals", (k,)),
        _array(headings, "headings", (k,)),
        _array(turns, "turn_radius", (k,)),
        rules,
        memory.blocked,
        memory.last,
        np.empty(sectors),
        np.empty(sectors, np.uint8),
        result,
    )
    return result


def before(points: F8, reach: F8) -> F8:
    """Return obstacles without points that are farther away than a distance.

    Obstacles behind the goal do not block the path to it.

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m.
    reach : (k,) float64
        Maximum distances from the robots, m.

    Returns
    -------
    (k, p, 2) float64
        A copy of the points, m; NaN for farther ones.
    """
    away2 = points[..., 0] * points[..., 0] + points[..., 1] * points[..., 1]
    # Missing points are NaN, and stay NaN.
    with np.errstate(invalid="ignore"):
        near = away2 <= (reach * reach)[:, None]
    return np.where(near[..., None], points, np.nan)


def histogram_velocities(found: F8, top: F8, max_w: float) -> tuple[F8, F8]:
    """Return linear and angular velocities for the result of VFH+.

    The speed falls with the density of obstacles straight ahead and with the turn, as
    in the first vector field histogram (Borenstein, Koren, "The vector field
    histogram", IEEE Transactions on Robotics and Automation 7(3), 1991: speed control).
    A robot whose directions are all blocked turns in place to look around.

    Parameters
    ----------
    found : (k, 2) float64
        Result of `vector_field_histogram`.
    top : (k,) float64
        Maximum speeds, m/s.
    max_w : float
        Maximum yaw rate, rad/s.

    Returns
    -------
    v, w : (k,) float64
        Linear and angular velocities, m/s and rad/s.
    """
    direction, ahead = found[:, 0], found[:, 1]
    blocked = np.isnan(direction)
    w = np.where(
        blocked, LOOK_AROUND * max_w, np.clip(TURN_GAIN * direction, -max_w, max_w)
    )
    # At a right angle the robot turns in place.
    turned = 1.0 - np.minimum(np.abs(direction) / (0.5 * math.pi), 1.0)
    v = np.where(blocked, 0.0, top * np.maximum(1.0 - ahead, SLOWEST) * turned)
    return v, w


def pure_pursuit(
    paths: F8, poses: F8, lookahead: F8, progress: F8, counts: I8 | None = None
) -> F8:
    """Return the arcs that lead robots onto their paths by pure pursuit (Coulter 1992).

    Parameters
    ----------
    paths : (k, p, 2) float64
        Points of the paths, at least 2, m.
    poses : (k, 3) float64
        Poses of the robots, m, m, rad.
    lookahead : (k,) float64
        Lookahead distances, m.
    progress : (k,) float64
        Position of each robot on its path: number of the segment plus the fraction of
        it. Start with 0. The array is updated: each position becomes the nearest one from there on.
    counts : (k,) int64, optional
        Number of points of each path, 2 … p.

    Returns
    -------
    (k, 4) float64
        Curvature, 1/m, positive to the left; the pursued point in the frame of the
        robot, m; the robot's distance from the end of the path, m.

    Raises
    ------
    ArgumentError
        An array has another shape, a path has fewer than two points, a lookahead
        distance is not positive, or a progress is not on its path.
    """
    k = _count(poses, "poses", 3)
    found = np.shape(paths)
    if len(found) != 3 or found[0] != k or found[1] < 2 or found[2] != 2:
        raise ArgumentError(
            f"paths: expected an array ({k}, p, 2) with p ≥ 2, found one of shape {found}"
        )

    numbers = np.full(k, found[1]) if counts is None else np.asarray(counts, np.int64)
    if numbers.shape != (k,) or (
        k and not (numbers.min() >= 2 and numbers.max() <= found[1])
    ):
        raise ArgumentError(f"counts: expected {k} numbers from 2 to {found[1]}")

    at = _array(progress, "progress", (k,))
    # The kernel uses the progress as an index.
    if not ((at >= 0.0) & (at <= numbers - 1)).all():
        raise ArgumentError(
            "progress: expected positions on the paths, from 0 to the number of segments"
        )

    ahead = _array(lookahead, "lookahead", (k,))
    if not (ahead > 0.0).all():
        raise ArgumentError("lookahead: expected positive numbers")
    result = np.empty((k, 4))
    pursuit_kernel(
        np.ascontiguousarray(paths, np.float64),
        np.ascontiguousarray(numbers),
        _array(poses, "poses", (k, 3)),
        ahead,
        at,
        result,
    )
    # `_array` may have made a copy for the kernel: the caller's array gets its result.
    progress[...] = at
    return result


def _count(array: F8, name: str, columns: int) -> int:
    """Return the number k of rows of an array after a check of its shape.

    Parameters
    ----------
    array : (k, `columns`) float64
        The array.
    name : str
        Name of the array, for the message.
    columns : int
        Expected number of columns.

    Raises
    ------
    ArgumentError
        The array has another shape.
    """
    shape = np.shape(array)
    if len(shape) != 2 or shape[1] != columns:
        raise ArgumentError(
            f"{name}: expected an array (k, {columns}), found one of shape {shape}"
        )

    return int(shape[0])


def _points(points: F8, k: int) -> F8:
    """Return points of obstacles as a contiguous array of float64.

    Parameters
    ----------
    points : (k, p, 2) float64
        The obstacles, with any number p.
    k : int
        Expected number of robots.

    Raises
    ------
    ArgumentError
        The array has another shape.
    """
    shape = np.shape(points)
    if len(shape) != 3 or shape[0] != k or shape[2] != 2:
        raise ArgumentError(
            f"points: expected an array ({k}, p, 2), found one of shape {shape}"
        )

    return np.ascontiguousarray(points, np.float64)


def _array(array: F8, name: str, shape: tuple[int, ...]) -> F8:
    """Return an array as a contiguous array of float64, after a check of its shape.

    Parameters
    ----------
    array : ndarray
        The array; it is copied only if necessary.
    name : str
        Name of the array, for the message.
    shape : tuple of int
        Expected shape.

    Raises
    ------
    ArgumentError
        The array has another shape.
    """
    if np.shape(array) != shape:
        raise ArgumentError(
            f"{name}: expected an array of shape {shape}, found one of shape {np.shape(array)}"
        )

    return np.ascontiguousarray(array, np.float64)


__all__ = [
    "Histograms",
    "before",
    "dynamic_window",
    "histogram_velocities",
    "points_of",
    "pure_pursuit",
    "vector_field_histogram",
]
