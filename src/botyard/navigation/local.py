"""Ways among obstacles that a sensor sees, as arrays over many robots: the dynamic
window, VFH+ and pure pursuit.
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
"""Acceleration of a robot whose model says 0: at once, m/s² and rad/s²."""
WINDOW_S = 0.25
"""Time in which the velocities of a dynamic window can be reached, s: that of the paper
(§5). In a shorter one headings hardly differ, so that the clearance alone decides.
"""
SLOWEST = 0.1
"""Share of its speed that a robot keeps while its way is free enough to go on."""
LOOK_AROUND = 0.5
"""Share of the greatest turn rate at which a robot turns while all directions are
blocked.
"""
TURN_GAIN = 2.0
"""Turn rate per angle of the direction, 1/s."""


def points_of(
    ranges: NDArray[np.floating], angles: F8, mount: Pose, range_max: float
) -> F8:
    """End points of rays in the frames of robots, (k, r, 2), m; NaN where nothing was
    hit.

    Parameters
    ----------
    ranges : (k, r) float
        Ranges, m; `range_max` or more where nothing was hit.
    angles : (r,) float64
        Bearings of the rays in the frame of the sensor, rad.
    mount : Pose
        The sensor in the frame of the robot, m and rad.
    range_max : float
        m.
    """
    c, s = elementwise.cosine_sine(np.asarray(angles) + mount.th)
    size = np.where(np.asarray(ranges, np.float64) < range_max, ranges, np.nan)
    return np.stack([mount.x + size * c, mount.y + size * s], axis=2)


def dynamic_window(
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
) -> F8:
    """Velocities by the dynamic window approach (Fox, Burgard, Thrun 1997): forward and
    of rotation, (k, 2), m/s and rad/s.

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m, as of `points_of`.
    goals : (k, 2) float64
        Goals in the frames of the robots, m.
    now : (k, 2) float64
        Present velocities, m/s and rad/s.
    dt : float
        Time in which the velocities of the window can be reached, s: that of a step, at
        least `WINDOW_S` to head for goals well.
    radius : float
        Of the robots with the safety distance, m.
    max_v, max_w : float
        Greatest velocities, m/s and rad/s.
    accel, brake : (float, float)
        Accelerations and decelerations of both, m/s² and rad/s²; 0: at once.
    weights : (float, float, float)
        α, β and γ of heading, clearance and velocity; defaults are the paper's.
    far : float
        Clearances from here on are the best, m.
    samples : (int, int)
        So many velocities forward by so many of rotation are compared, at least 2.

    Raises
    ------
    ArgumentError
        An array is of another shape, or a number out of its range.
    """
    k = _count(goals, "goals", 2)
    if min(samples) < 2:
        raise ArgumentError(f"samples: expected at least 2 of each, found {samples}")
    if not (max_v > 0.0 and max_w > 0.0 and radius >= 0.0 and far > 0.0 and dt > 0.0):
        raise ArgumentError(
            "max_v, max_w, far, dt: expected positive numbers, and radius not negative"
        )

    heading, clearance, velocity = weights
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
    """VFH+ of k robots: what it remembers from step to step.

    Attributes
    ----------
    blocked : (k, s) uint8
        Binary histograms: blocked directions, by sectors of the world.
    last : (k,) float64
        The last directions, rad in the world; NaN: there was none.
    """

    def __init__(self, count: int, sectors: int = 72) -> None:
        if sectors < 8:
            raise ArgumentError(f"sectors: expected at least 8, found {sectors}")
        self.blocked: U1 = np.zeros((count, sectors), np.uint8)
        self.last: F8 = np.full(count, math.nan)

    def reset(self, chosen: I8 | NDArray[np.bool_]) -> None:
        """Forget all about some robots."""
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
    """Directions by VFH+ (Ulrich, Borenstein 1998): (k, 2).

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m, as of `points_of`.
    goals, headings : (k,) float64
        Bearings of goals in the frames of the robots, and their headings in the world,
        rad.
    memory : Histograms
        What is remembered; changed.
    radius : float
        Of the robots with the safety distance, m.
    turn_radius : (k,) float64, optional
        Smallest radii of turns, m; without it robots turn on the spot.
    window : float
        Points that are farther away are not looked at, m.
    low, high : float
        Thresholds of the histogram: a point at the edge of the window counts 1, and
        nearer ones more.
    wide : int
        Openings of so many sectors are wide.
    weights : (float, float, float)
        μ1, μ2 and μ3 of the differences to the goal, to the heading and to the last
        choice; defaults are the paper's.

    Returns
    -------
    (k, 2) float64
        Directions in the frames of the robots, rad, NaN where all are blocked; how much
        is straight ahead, 0 … 1.

    Raises
    ------
    ArgumentError
        An array is of another shape, or a number out of its range.
    """
    k = len(memory.last)
    if not (0.0 <= radius < window and 0.0 < low <= high):
        raise ArgumentError("radius must be below window, and 0 < low ≤ high")
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
    """Obstacles, (k, p, 2), without those that are farther away than `reach`, (k,) m:
    behind the goal nothing is in the way.
    """
    away2 = points[..., 0] * points[..., 0] + points[..., 1] * points[..., 1]
    with np.errstate(invalid="ignore"):
        near = away2 <= (reach * reach)[:, None]
    return np.where(near[..., None], points, np.nan)


def histogram_velocities(found: F8, top: F8, max_w: float) -> tuple[F8, F8]:
    """Velocities forward and of rotation, both (k,), for what `vector_field_histogram`
    has found.

    The speed falls with what is straight ahead and with the turn, as in the first
    vector field histogram (Borenstein, Koren, "The vector field histogram", IEEE
    Transactions on Robotics and Automation 7(3), 1991: speed control). Where all is
    blocked robots look around.

    Parameters
    ----------
    found : (k, 2) float64
        Directions, rad, and how much is straight ahead.
    top : (k,) float64
        Greatest speeds, m/s.
    max_w : float
        Greatest turn rate, rad/s.
    """
    direction, ahead = found[:, 0], found[:, 1]
    blocked = np.isnan(direction)
    w = np.where(
        blocked, LOOK_AROUND * max_w, np.clip(TURN_GAIN * direction, -max_w, max_w)
    )
    turned = 1.0 - np.minimum(np.abs(direction) / (0.5 * math.pi), 1.0)
    v = np.where(blocked, 0.0, top * np.maximum(1.0 - ahead, SLOWEST) * turned)
    return v, w


def pure_pursuit(
    paths: F8, poses: F8, lookahead: F8, progress: F8, counts: I8 | None = None
) -> F8:
    """Arcs to paths by pure pursuit (Coulter 1992), (k, 4).

    Parameters
    ----------
    paths : (k, p, 2) float64
        Points of the paths, at least 2, m.
    poses : (k, 3) float64
        Poses of the robots, m, m, rad.
    lookahead : (k,) float64
        Lookahead distances, m.
    progress : (k,) float64
        Number of the segment and share of it at which each is; begin with 0. Changed:
        the nearest place from there on.
    counts : (k,) int64, optional
        Numbers of points of each path, 2 … p.

    Returns
    -------
    (k, 4) float64
        Curvature, 1/m, positive to the left; the pursued point in the frame of the
        robot, m; its distance from the end, m.

    Raises
    ------
    ArgumentError
        An array is of another shape, or a path has no two points.
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
    if not ((at >= 0.0) & (at <= numbers - 1)).all():
        raise ArgumentError(
            "progress: expected places on the paths, from 0 to the number of segments"
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
    progress[...] = at
    return result


def _count(array: F8, name: str, columns: int) -> int:
    shape = np.shape(array)
    if len(shape) != 2 or shape[1] != columns:
        raise ArgumentError(
            f"{name}: expected an array (k, {columns}), found one of shape {shape}"
        )

    return int(shape[0])


def _points(points: F8, k: int) -> F8:
    shape = np.shape(points)
    if len(shape) != 3 or shape[0] != k or shape[2] != 2:
        raise ArgumentError(
            f"points: expected an array ({k}, p, 2), found one of shape {shape}"
        )

    return np.ascontiguousarray(points, np.float64)


def _array(array: F8, name: str, shape: tuple[int, ...]) -> F8:
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
