"""What a robot that drives to a goal by lidar sees, and what it is rewarded for: the
arithmetic of `botyard.learning.Navigate`, by rows.

The robot is the first one of its world.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import inline_kernel, rows_kernel
from botyard.numerics.elementary import cosine_sine

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]

LIDAR_RANGE, FAR, SPEED, TURN_RATE = range(4)
"""Indices in `units` of `observe_goal`."""
REACHED, GOAL_REWARD, STEP_COST, LAST_STEP = range(4)
"""Indices in `rules` of `judge_goal`."""
MIN_DISTANCE = 1e-9
"""Goals that are nearer count as so far away, m, where a bearing is computed."""


class Judged(NamedTuple):
    """What `judge_goal` says of a world.

    Attributes
    ----------
    reward : (1,) float64
        Reward of the step.
    terminated, truncated : (1,) uint8
        0 or 1: the episode has ended by itself; it is cut off.
    """

    reward: F8
    terminated: U1
    truncated: U1


@inline_kernel
def away(pose: F8, goal: F8) -> float:
    """Distance of a goal, (2,) m, from the first of the robots at `pose`, (m, 3), m."""
    x, y = goal[0] - pose[0, 0], goal[1] - pose[0, 1]
    return math.sqrt(x * x + y * y)


@rows_kernel
def distance_of_goal(pose: F8, goal: F8, far: F8) -> None:
    """Write `away` to `far`, (1,) m."""
    far[0] = away(pose, goal)


@rows_kernel
def observe_goal(
    pose: F8, vel: F8, ranges: F4, goal: F8, far: F8, units: F8, seen: F4
) -> None:
    """Write an observation.

    Parameters
    ----------
    pose, vel : (m, 3) float64
        Of the robots: m, m, rad; m/s, m/s, rad/s.
    ranges : (m, r) float32
        Readings, m.
    goal, far : (2,), (1,) float64
        The goal, and its distance, m.
    units : (4,) float64
        What lengths and velocities are divided by: ranges, the goal's distance,
        velocities forward and of rotation.
    seen : (r + 5,) float32
        Written: ranges and distance, at most 1; cosine and sine of the goal's bearing;
        velocities.
    """
    count = ranges.shape[1]
    unit = np.float32(units[LIDAR_RANGE])
    one = np.float32(1.0)
    for k in range(count):
        part = ranges[0, k] / unit
        seen[k] = one if part > one else part

    seen[count] = min(far[0] / units[FAR], 1.0)
    c, s = cosine_sine(pose[0, 2])
    x, y = goal[0] - pose[0, 0], goal[1] - pose[0, 1]
    unit_far = max(far[0], MIN_DISTANCE)
    seen[count + 1], seen[count + 2] = (
        (c * x + s * y) / unit_far,
        (c * y - s * x) / unit_far,
    )
    seen[count + 3], seen[count + 4] = (
        vel[0, 0] / units[SPEED],
        vel[0, 2] / units[TURN_RATE],
    )


@rows_kernel
def judge_goal(
    pose: F8,
    goal: F8,
    tick: I8,
    before: F8,
    far: F8,
    touches: U1,
    rules: F8,
    judged: Judged,
) -> None:
    """Write what a step was worth, and whether the episode has ended.

    Parameters
    ----------
    pose : (m, 3) float64
        Of the robots: m, m, rad.
    goal : (2,) float64
        The goal, m.
    tick : (1,) int64
        Steps done in the episode.
    before, far : (1,) float64
        Distance of the goal before the step, m; that after it, which is written.
    touches : (1,) uint8
        1: the robot touches an obstacle.
    rules : (4,) float64
        Distance at which the goal is reached, m; reward there, which an obstacle costs;
        what a step costs; steps of an episode.
    judged : Judged
        Written.
    """
    prize = rules[GOAL_REWARD]
    far[0] = away(pose, goal)
    reached, lost = 0.0, 0.0
    if far[0] < rules[REACHED]:
        reached = 1.0
    elif touches[0] == 1:
        lost = 1.0

    judged.reward[0] = (
        before[0] - far[0] + prize * reached - prize * lost - rules[STEP_COST]
    )
    judged.terminated[0] = 1 if reached + lost > 0.0 else 0
    judged.truncated[0] = (
        1 if reached + lost == 0.0 and tick[0] >= rules[LAST_STEP] else 0
    )


__all__ = ["Judged", "distance_of_goal", "judge_goal", "observe_goal"]
