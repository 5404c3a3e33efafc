"""VFH+, the enhanced vector field histogram.

Ulrich, Borenstein, "VFH+: reliable obstacle avoidance for fast mobile robots", ICRA
1998.

The stages are: a polar histogram of obstacles, enlarged by the robot's radius and a
safety distance; a binary histogram with hysteresis; the masked histogram without
directions that the robot cannot reach by turning; and the direction of least cost among
the openings.

The paper collects sonar readings in a certainty grid. Here the points of one scan take
its place, each with the certainty 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.numerics.elementary import asin, atan2

F8 = NDArray[np.float64]
U1 = NDArray[np.uint8]


class HistogramRules(NamedTuple):
    """Parameters of VFH+.

    Attributes
    ----------
    radius : float
        Radius of the robot plus the safety distance (r_{r+s}), m.
    window : float
        Points farther away are ignored, m.
    low, high : float
        Thresholds τ_low and τ_high. A point at the edge of the window counts 1, nearer
        points count more.
    wide : int
        Openings of at least this number of sectors are wide (s_max).
    to_goal, to_heading, to_last : float
        Weights μ1, μ2 and μ3 of the differences between a direction and the goal, the
        heading and the last choice; μ1 > μ2 + μ3.
    """

    radius: float
    window: float
    low: float
    high: float
    wide: int
    to_goal: float
    to_heading: float
    to_last: float


@inline_kernel
def wrapped(angle: float) -> float:
    """Return an angle wrapped to (−π, π]."""
    turned = angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))
    return turned - 2.0 * math.pi if turned > math.pi else turned


@kernel
def fill_histogram(
    points: F8, heading: float, rules: HistogramRules, histogram: F8
) -> None:
    """Compute the primary polar histogram.

    It contains the sums of magnitudes m = c² (a − b d²) by sector, with c = 1, b = 1
    m⁻² and a such that m is 1 at the edge of the window. A point extends over
    asin(radius / d) to both sides.

    Parameters
    ----------
    points : (p, 2) float64
        Obstacles in the frame of the robot, m; NaN for none.
    heading : float
        Heading of the robot in the world, rad.
    rules : HistogramRules
        Parameters.
    histogram : (s,) float64
        Output: sums by sector, counterclockwise from the x axis of the world, on which
        the first sector is centred.
    """
    sectors = histogram.shape[0]
    width = 2.0 * math.pi / sectors
    for s in range(sectors):
        histogram[s] = 0.0
    for p in range(points.shape[0]):
        x, y = points[p, 0], points[p, 1]
        away2 = x * x + y * y
        # A comparison with NaN is false, so `not` also skips unused rows.
        if not away2 <= rules.window * rules.window:
            continue
        away = math.sqrt(away2)
        # A point within the radius blocks the whole half plane in its direction.
        reach = 0.5 * math.pi if away <= rules.radius else asin(rules.radius / away)
        bearing = atan2(y, x) + heading
        magnitude = 1.0 + rules.window * rules.window - away2
        first, last = (
            int(math.ceil((bearing - reach) / width)),
            int(math.floor((bearing + reach) / width)),
        )
        # The point is narrower than a sector: it counts in the nearest one.
        if last < first:
            first = int(math.floor(bearing / width + 0.5))
            last = first

        for s in range(first, last + 1):
            histogram[s % sectors] += magnitude


@kernel
def mask_turns(
    points: F8, heading: float, turn_radius: float, rules: HistogramRules, blocked: U1
) -> None:
    """Mark as blocked the directions that the robot cannot reach.

    If the robot turned towards these directions on its smallest circle, it would touch a point.

    Parameters
    ----------
    points : (p, 2) float64
        Obstacles in the frame of the robot, m; NaN for none.
    heading : float
        Heading of the robot in the world, rad.
    turn_radius : float
        Minimum turning radius, m; 0 for a turn in place.
    rules : HistogramRules
        Parameters.
    blocked : (s,) uint8
        Blocked sectors in the frame of the world; unreachable ones are set to 1.
    """
    sectors = blocked.shape[0]
    width = 2.0 * math.pi / sectors
    # Limits of the directions that a turn to the right, or to the left, can reach.
    right, left = -math.pi, math.pi
    limit = turn_radius + rules.radius
    for p in range(points.shape[0]):
        x, y = points[p, 0], points[p, 1]
        if not x * x + y * y <= rules.window * rules.window:
            continue
        bearing = atan2(y, x)
        if (
            bearing <= 0.0
            and bearing > right
            and x * x + (y + turn_radius) * (y + turn_radius) < limit * limit
        ):
            right = bearing

        if (
            bearing >= 0.0
            and bearing < left
            and x * x + (y - turn_radius) * (y - turn_radius) < limit * limit
        ):
            left = bearing

    for s in range(sectors):
        bearing = wrapped(s * width - heading)
        if bearing < right or bearing > left:
            blocked[s] = 1


@inline_kernel
def apart(a: float, b: float, sectors: int) -> float:
    """Return the angle between two directions, in sectors.

    Parameters
    ----------
    a, b : float
        Directions in sectors, in any turn.
    sectors : int
        Number of sectors in a turn.

    Returns
    -------
    float
        Difference in sectors, 0 … `sectors` / 2.
    """
    d = abs(a - b)
    d = d - sectors * math.floor(d / sectors)
    return min(d, sectors - d)


@kernel
def best_direction(
    blocked: U1, goal: float, heading: float, last: float, rules: HistogramRules
) -> float:
    """Return the direction of least cost among the openings.

    Parameters
    ----------
    blocked : (s,) uint8
        Masked histogram in the frame of the world: 1 for a blocked sector.
    goal, heading : float
        Directions of the goal and of the robot in the world, in sectors.
    last : float
        Last choice, in sectors; NaN for none.
    rules : HistogramRules
        Parameters.

    Returns
    -------
    float
        Direction in the world, in sectors; NaN if all sectors are blocked. If none is
        blocked, it is the direction of the goal.
    """
    sectors = blocked.shape[0]
    # The scan starts at a blocked sector, so that no opening is cut in two.
    border = -1
    for s in range(sectors):
        if blocked[s] != 0:
            border = s
            break

    # Nothing is blocked: the goal itself is the best direction.
    if border < 0:
        return goal
    best, chosen = math.inf, math.nan
    begin, size = -1, 0
    for k in range(1, sectors + 1):
        s = border + k
        if blocked[s % sectors] == 0:
            if size == 0:
                begin = s
            size += 1
            continue

        if size > 0:
            for option in range(3):
                # A narrow opening has one candidate, its middle.
                direction = begin + 0.5 * (size - 1)
                if size >= rules.wide:
                    low, high = (
                        begin + 0.5 * rules.wide,
                        begin + size - 1 - 0.5 * rules.wide,
                    )
                    if high < low:
                        low, high = direction, direction
                    direction = low
                    if option == 1:
                        direction = high
                    # The goal itself is a candidate if it lies inside of the opening.
                    elif option == 2:
                        ahead = goal - low
                        ahead = ahead - sectors * math.floor(ahead / sectors)
                        direction = low + ahead if ahead <= high - low else low

                cost = rules.to_goal * apart(
                    direction, goal, sectors
                ) + rules.to_heading * apart(direction, heading, sectors)
                if not math.isnan(last):
                    cost += rules.to_last * apart(direction, last, sectors)
                if cost < best:
                    best, chosen = cost, direction

        size = 0

    return chosen


@entry_kernel
def vector_field_histogram(
    points: F8,
    goals: F8,
    headings: F8,
    turn_radius: F8,
    rules: HistogramRules,
    blocked: U1,
    last: F8,
    work: F8,
    masked: U1,
    result: F8,
) -> None:
    """Compute the directions of k robots.

    Parameters
    ----------
    points : (k, p, 2) float64
        Obstacles in the frames of the robots, m; NaN for none.
    goals : (k,) float64
        Bearing of each robot's goal in the frame of the robot, rad.
    headings : (k,) float64
        Headings of the robots in the world, rad.
    turn_radius : (k,) float64
        Minimum turning radii, m; 0 for a turn in place.
    rules : HistogramRules
        Parameters.
    blocked : (k, s) uint8
        Binary histogram of the last step; updated.
    last : (k,) float64
        Last choice, rad in the world; NaN for none; updated.
    work, masked : (s,) float64, (s,) uint8
        Workspace.
    result : (k, 2) float64
        Output: the direction in the frame of the robot, rad, NaN if all are blocked;
        and the histogram's value straight ahead as a fraction of the threshold, at most
        1.
    """
    sectors = blocked.shape[1]
    width = 2.0 * math.pi / sectors
    for k in range(goals.shape[0]):
        heading = headings[k]
        fill_histogram(points[k], heading, rules, work)
        # Hysteresis: a value between the thresholds keeps the sector as it was.
        for s in range(sectors):
            if work[s] > rules.high:
                blocked[k, s] = 1
            elif work[s] < rules.low:
                blocked[k, s] = 0

            masked[s] = blocked[k, s]

        mask_turns(points[k], heading, turn_radius[k], rules, masked)
        direction = best_direction(
            masked,
            (goals[k] + heading) / width,
            heading / width,
            last[k] / width,
            rules,
        )
        last[k] = direction * width
        result[k, 0] = (
            math.nan if math.isnan(direction) else wrapped(direction * width - heading)
        )
        ahead = int(math.floor(heading / width + 0.5)) % sectors
        result[k, 1] = min(1.0, work[ahead] / rules.high)
