"""The dynamic window approach.

Fox, Burgard, Thrun, "The dynamic window approach to collision avoidance", IEEE Robotics
& Automation Magazine 4(1), 1997.

Of the velocities (v, ω) that a robot can reach within a step, a velocity is admissible
if the robot can still stop before an obstacle on its arc. The method takes the
admissible velocity with the greatest weighted sum of heading, clearance and velocity:

    G(v, ω) = σ(α · heading(v, ω) + β · dist(v, ω) + γ · vel(v, ω))
    V_a = {(v, ω) | v ≤ √(2 dist(v, ω) v̇_b)}
    V_d = {(v, ω) | v in [v_a − v̇ t, v_a + v̇ t] and ω in [ω_a − ω̇ t, ω_a + ω̇ t]}

Differences from the paper: V_a also counts the distance driven during the time t, in
which the robot does not brake yet. V_a has no condition for ω, because a disc that
stops on its arc needs none. The robot is a disc, and obstacles are points.

dist is 0 for a robot that stands: if standing counted as clear, the robot would wait
for ever. A robot that stands and has no admissible forward velocity turns away from the
nearest point ahead ("rotate away").

A car-like robot has admissible velocities only on arcs that it can steer. It brakes on its
arc, and waits at a stand if no arc is free.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.numerics.elementary import acos, atan2, cosine_sine

F8 = NDArray[np.float64]

STRAIGHT_CURVATURE = 1e-6
"""Curvature below which an arc counts as straight, 1/m."""
STANDING = 1e-9
"""Speed below which a robot counts as standing, m/s."""
NONE = -1.0
"""Score of velocities that are not admissible; real scores are at least 0."""


class WindowRules(NamedTuple):
    """Parameters of the dynamic window.

    Attributes
    ----------
    heading, clearance, velocity : float
        Weights α, β and γ of the three terms, each of which is 0 … 1.
    max_v, max_w : float
        Maximum velocities, m/s and rad/s.
    accel_v, accel_w, brake_v, brake_w : float
        Accelerations and decelerations, m/s² and rad/s².
    radius : float
        Radius of the robot plus the safety distance, m.
    far : float
        Clearances of this distance or more rate equally, m.
    dt : float
        Time t in which the velocities of the window can be reached, s.
    tightest : float
        Greatest curvature of an arc, 1/m; infinite for robots that turn on the spot.
    """

    heading: float
    clearance: float
    velocity: float
    max_v: float
    max_w: float
    accel_v: float
    accel_w: float
    brake_v: float
    brake_w: float
    radius: float
    far: float
    dt: float
    tightest: float


@kernel
def free_way(points: F8, curvature: float, radius: float, limit: float) -> float:
    """Return the distance that a disc, starting at the origin, can drive on an arc, m.

    Parameters
    ----------
    points : (p, 2) float64
        Obstacles in the frame of the disc, m; NaN for none. A point inside of the disc
        counts only if the disc would approach it.
    curvature : float
        Curvature of the arc, 1/m, positive to the left.
    radius : float
        Radius of the disc, m.
    limit : float
        Maximum distance of interest, m.

    Returns
    -------
    float
        Distance up to the first contact, `limit` or one full turn, whichever is least;
        0 if the disc touches a point ahead already.
    """
    way = limit
    size = 1.0 / abs(curvature) if abs(curvature) > STRAIGHT_CURVATURE else math.inf
    if size < math.inf:
        way = min(way, 2.0 * math.pi * size)
    # Mirroring the points turns arcs to the right into arcs to the left.
    side = 1.0 if curvature > 0.0 else -1.0
    for p in range(points.shape[0]):
        x, y = points[p, 0], points[p, 1] * side
        # A comparison with NaN is false, so `not` also skips unused rows.
        if not x * x + y * y < (way + radius) * (way + radius):
            continue
        if x * x + y * y <= radius * radius:
            if x > 0.0:
                return 0.0
            continue

        if size == math.inf:
            if x > 0.0 and abs(y) < radius:
                way = min(way, x - math.sqrt(radius * radius - y * y))
            continue

        # The centre of the arc is (0, size).
        up = size - y
        from_centre = math.sqrt(x * x + up * up)
        if abs(from_centre - size) >= radius or from_centre == 0.0:
            continue
        # The disc touches the point when its centre is this angle before the point (law
        # of cosines).
        cosine = (size * size + from_centre * from_centre - radius * radius) / (
            2.0 * size * from_centre
        )
        angle = atan2(x, up) - acos(min(1.0, max(-1.0, cosine)))
        if angle < 0.0:
            angle += 2.0 * math.pi
        way = min(way, angle * size)

    return max(way, 0.0)


@inline_kernel
def heading_of(
    v: float, w: float, goal_x: float, goal_y: float, rules: WindowRules
) -> float:
    """Return a score of a velocity for the heading towards the goal.

    The heading is measured after the step, when the rotation has come to rest (§4.1 of
    the paper).

    Parameters
    ----------
    v, w : float
        Velocities, m/s and rad/s.
    goal_x, goal_y : float
        Goal in the frame of the robot, m.
    rules : WindowRules
        Parameters.

    Returns
    -------
    float
        1 towards the goal, 0 away from it.
    """
    turn = w * rules.dt
    c, s = cosine_sine(0.5 * turn)
    reach = v * rules.dt
    x, y = goal_x - reach * c, goal_y - reach * s
    # The angle of braking from w to 0, with the sign of w.
    turned = turn + 0.5 * w * abs(w) / rules.brake_w
    # A car brakes on its arc.
    if rules.tightest < math.inf:
        turned = turn + 0.5 * w * v / rules.brake_v
    c, s = cosine_sine(turned)
    return 1.0 - abs(atan2(c * y - s * x, c * x + s * y)) / math.pi


@inline_kernel
def is_admissible(v: float, way: float, rules: WindowRules) -> bool:
    """Return whether the robot can stop on its arc in time.

    The robot starts to brake after the step. A disc turns freely in place.

    Parameters
    ----------
    v : float
        Linear velocity, m/s, at least 0.
    way : float
        Free distance on the arc, m, from `free_way`.
    rules : WindowRules
        Parameters.
    """
    return v <= STANDING or v * rules.dt + v * v / (2.0 * rules.brake_v) <= way


@inline_kernel
def window(
    now: F8, goal_x: float, goal_y: float, rules: WindowRules
) -> tuple[float, float, float, float]:
    """Return the bounds of the dynamic window.

    Parameters
    ----------
    now : (2,) float64
        Current velocities, m/s and rad/s.
    goal_x, goal_y : float
        Goal in the frame of the robot, m. The upper speed lets the robot stop there.
    rules : WindowRules
        Parameters.

    Returns
    -------
    v0, v1, w0, w1 : float
        Least and greatest linear and angular velocity, m/s and rad/s. A robot never
        drives backwards: `v0` is at least 0.
    """
    # v² = 2 a s: the speed from which the robot stops at the goal.
    stopping = math.sqrt(
        2.0 * rules.brake_v * math.sqrt(goal_x * goal_x + goal_y * goal_y)
    )
    v0 = max(0.0, now[0] - rules.brake_v * rules.dt)
    v1 = max(v0, min(min(rules.max_v, stopping), now[0] + rules.accel_v * rules.dt))
    w0 = min(rules.max_w, max(-rules.max_w, now[1] - rules.accel_w * rules.dt))
    w1 = max(-rules.max_w, min(rules.max_w, now[1] + rules.accel_w * rules.dt))
    if rules.tightest < math.inf:
        # The turn rate of a car follows from its speed.
        w1 = min(rules.max_w, v1 * rules.tightest)
        w0 = -w1
    return v0, v1, w0, w1


@inline_kernel
def sample(low: float, high: float, k: int, count: int) -> float:
    """Return one of the evenly spaced values of an interval.

    If 0 lies between them, the nearest value becomes 0: otherwise no sample would drive
    exactly straight.

    Parameters
    ----------
    low, high : float
        Ends of the interval, which are values themselves.
    k : int
        Index of the value, 0 … `count` − 1.
    count : int
        Number of values, at least 2.
    """
    step = (high - low) / (count - 1)
    value = low + step * k
    return 0.0 if abs(value) < 0.5 * step else value


@kernel
def rate(
    points: F8, goal_x: float, goal_y: float, now: F8, rules: WindowRules, scores: F8
) -> None:
    """Compute the weighted sum of scores for each velocity of the window.

    Parameters
    ----------
    points : (p, 2) float64
        Obstacles in the frame of the robot, m; NaN for none.
    goal_x, goal_y : float
        Goal in the frame of the robot, m.
    now : (2,) float64
        Current velocities, m/s and rad/s.
    rules : WindowRules
        Parameters.
    scores : (a, b) float64
        Output: scores of a linear by b angular velocities. Velocities that are not
        admissible get `NONE`.
    """
    a, b = scores.shape
    v0, v1, w0, w1 = window(now, goal_x, goal_y, rules)
    for i in range(a):
        v = sample(v0, v1, i, a)
        for j in range(b):
            w = sample(w0, w1, j, b)
            # A robot that stands has clearance 0, see the module.
            way = 0.0
            if v > STANDING:
                way = free_way(points, w / v, rules.radius, rules.far)
            scores[i, j] = NONE
            if rules.tightest < math.inf and abs(w) > v * rules.tightest + STANDING:
                continue
            if is_admissible(v, way, rules):
                scores[i, j] = (
                    rules.heading * heading_of(v, w, goal_x, goal_y, rules)
                    + rules.clearance * way / rules.far
                    + rules.velocity * v / rules.max_v
                )


@inline_kernel
def smoothed(scores: F8, i: int, j: int) -> float:
    """Return the smoothed score σ: the mean of a velocity's and its admissible neighbours' scores.

    Parameters
    ----------
    scores : (a, b) float64
        Output of `rate`.
    i, j : int
        Indices of the velocity, which is admissible. Neighbours differ by at most 1 in
        each.
    """
    total, count = 0.0, 0
    for k in range(max(i - 1, 0), min(i + 2, scores.shape[0])):
        for m in range(max(j - 1, 0), min(j + 2, scores.shape[1])):
            if scores[k, m] != NONE:
                total += scores[k, m]
                count += 1

    return total / count


@inline_kernel
def goes(scores: F8, v0: float, v1: float) -> bool:
    """Return whether at least one forward velocity is admissible.

    Parameters
    ----------
    scores : (a, b) float64
        Output of `rate`.
    v0, v1 : float
        Bounds of the window, m/s.
    """
    a, b = scores.shape
    for i in range(a):
        if sample(v0, v1, i, a) > STANDING:
            for j in range(b):
                if scores[i, j] != NONE:
                    return True

    return False


@inline_kernel
def is_left(points: F8) -> bool:
    """Return whether the nearest point ahead of the robot is on the left.

    Parameters
    ----------
    points : (p, 2) float64
        Obstacles in the frame of the robot, m; NaN for none. Without a point ahead, the
        result is False.
    """
    nearest, y = math.inf, 0.0
    for p in range(points.shape[0]):
        if points[p, 0] > 0.0:
            away = points[p, 0] * points[p, 0] + points[p, 1] * points[p, 1]
            if away < nearest:
                nearest, y = away, points[p, 1]

    return y > 0.0


@entry_kernel
def dynamic_window(
    points: F8, goals: F8, now: F8, rules: WindowRules, scores: F8, result: F8
) -> None:
    """Compute the best velocities of k robots.

    A robot without an admissible velocity brakes. When it stands, it turns away from
    the nearest obstacle.

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m; NaN for none.
    goals : (k, 2) float64
        Goals in the frames of the robots, m.
    now : (k, 2) float64
        Current velocities, m/s and rad/s.
    rules : WindowRules
        Parameters.
    scores : (a, b) float64
        Workspace: a linear velocities by b angular velocities, at least two of each.
    result : (k, 2) float64
        Output: velocities to command, m/s and rad/s.
    """
    a, b = scores.shape
    for k in range(goals.shape[0]):
        rate(points[k], goals[k, 0], goals[k, 1], now[k], rules, scores)
        v0, v1, w0, w1 = window(now[k], goals[k, 0], goals[k, 1], rules)
        if v0 <= STANDING and not goes(scores, v0, v1):
            result[k, 0], result[k, 1] = v0, w0 if is_left(points[k]) else w1
            # A car cannot turn away on the spot.
            if rules.tightest < math.inf:
                result[k, 1] = 0.0
            continue

        best = NONE
        # Without an admissible velocity: brake, and turn as little as the window
        # permits.
        result[k, 0], result[k, 1] = v0, min(w1, max(w0, 0.0))
        for i in range(a):
            for j in range(b):
                if scores[i, j] == NONE:
                    continue
                value = smoothed(scores, i, j)
                if value > best:
                    best = value
                    result[k, 0], result[k, 1] = (
                        sample(v0, v1, i, a),
                        sample(w0, w1, j, b),
                    )
