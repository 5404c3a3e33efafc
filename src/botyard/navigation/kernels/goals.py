"""Observations and rewards of a robot that drives to a goal by lidar.

This is the arithmetic of `botyard.learning.Navigate`, by rows. The robot is the first
one of its world.
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
"""Indices into `units` of `observe_goal`."""
REACHED, GOAL_REWARD, STEP_COST, LAST_STEP = range(4)
"""Indices into `rules` of `judge_goal`."""
MIN_DISTANCE = 1e-9
"""Minimum distance with which the bearing of a goal is computed, m."""


class Judged(NamedTuple):
    """Reward and end of an episode, as `judge_goal` writes them.

    Attributes
    ----------
    reward : (1,) float64
        Reward of the step.
    terminated : (1,) uint8
        1 if the episode has ended by the rules of the task.
    truncated : (1,) uint8
        1 if the episode was cut off.
    """

    reward: F8
    terminated: U1
    truncated: U1


@inline_kernel
def away(pose: F8, goal: F8) -> float:
    """Return the distance between a goal and the first robot of a world, m.

    Parameters
    ----------
    pose : (m, 3) float64
        Poses of the robots: m, m, rad.
    goal : (2,) float64
        The goal, m.
    """
    x, y = goal[0] - pose[0, 0], goal[1] - pose[0, 1]
    return math.sqrt(x * x + y * y)


@rows_kernel
def distance_of_goal(pose: F8, goal: F8, far: F8) -> None:
    """Compute the distance between a goal and the first robot of a world.

    Parameters
    ----------
    pose : (m, 3) float64
        Poses of the robots: m, m, rad.
    goal : (2,) float64
        The goal, m.
    far : (1,) float64
        Output: distance from the first robot, m.
    """
    far[0] = away(pose, goal)


@rows_kernel
def observe_goal(
    pose: F8, vel: F8, ranges: F4, goal: F8, far: F8, units: F8, seen: F4
) -> None:
    """Write the observation of the first robot of a world.

    Parameters
    ----------
    pose, vel : (m, 3) float64
        Poses and velocities of the robots: m, m, rad; m/s, m/s, rad/s.
    ranges : (m, r) float32
        Ranges, m.
    goal, far : (2,), (1,) float64
        The goal and its distance, m.
    units : (4,) float64
        Divisors of ranges, of the goal's distance, and of linear and angular velocity.
    seen : (r + 5,) float32
        Output: ranges and distance, at most 1; cosine and sine of the goal's bearing;
        linear and angular velocity.
    """
    count = ranges.shape[1]
    # The division happens in float32, as NumPy does it with arrays of float32.
    unit = np.float32(units[LIDAR_RANGE])
    one = np.float32(1.0)
    for k in range(count):
        part = ranges[0, k] / unit
        seen[k] = one if part > one else part

    seen[count] = min(far[0] / units[FAR], 1.0)
    c, s = cosine_sine(pose[0, 2])
    x, y = goal[0] - pose[0, 0], goal[1] - pose[0, 1]
    # A robot on its goal has no bearing: the floor avoids a division by 0.
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
    """Write the reward of a step, and whether the episode has ended.

    Parameters
    ----------
    pose : (m, 3) float64
        Poses of the robots: m, m, rad.
    goal : (2,) float64
        The goal, m.
    tick : (1,) int64
        Number of steps of the episode so far.
    before : (1,) float64
        Distance of the goal before the step, m.
    far : (1,) float64
        Output: distance of the goal after the step, m.
    touches : (1,) uint8
        1 if the robot touches an obstacle.
    rules : (4,) float64
        Distance at which the goal counts as reached, m; reward at the goal, which is
        also the cost of a contact; cost of a step; maximum number of steps.
    judged : Judged
        Output: reward and ends.
    """
    prize = rules[GOAL_REWARD]
    far[0] = away(pose, goal)
    reached, lost = 0.0, 0.0
    # A robot that reaches its goal and touches an obstacle in one step has succeeded.
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
