"""Moves of car-like robots that methods of local obstacle avoidance lack.

A car backs away from obstacles, and turns to face a goal within its turning circle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from botyard.controllers.base import finite, point
from botyard.controllers.steering import INSIDE
from botyard.engine.layout import F8
from botyard.numerics.elementary import hypot
from botyard.sim.simulation import Robot

BACK_SPEED: Final = 0.3
"""Greatest speed in reverse, m/s."""
STANDING: Final = 0.02
"""Speed below which a robot counts as standing, m/s."""
SHARE: Final = 1.0
"""Distance that a robot backs away, as a multiple of the radius of its turning circle."""


class CarMoves:
    """Backing away of a car-like robot that has no free arc to its goal.

    The robot backs for one radius of its turning circle. If no arc ahead is free, it turns
    away from the nearest obstacle ahead, and then drives in this direction for one radius
    before it heads for its goal again. If its goal lies within the turning circle, it turns
    towards the goal. It sees nothing behind it, and stops when it touches something.

    Parameters
    ----------
    robot : Robot
        Robot that steers.
    speed : float
        Greatest speed, m/s.
    """

    def __init__(self, robot: Robot, speed: float) -> None:
        self._robot = robot
        self._speed = min(speed, BACK_SPEED)
        self._radius = robot.spec.kinematics.turning_radius
        self._from: tuple[float, float] | None = None
        """Position at which the robot started to back away, m; None while it does not back away."""
        self._side = 1.0
        """Side to which the robot turns while it backs away: 1 left, −1 right."""
        self._leaves_from: tuple[float, float] | None = None
        """Position at which the robot started to drive past an obstacle, m.

        It is None while the robot heads for its goal.
        """
        self._is_blocked = False
        """Whether an obstacle made the robot back away, rather than a goal within its
        turning circle.
        """

    def command(
        self,
        goal_x: float,
        goal_y: float,
        points: F8,
        choose: Callable[[float, float], tuple[float, float]],
    ) -> tuple[float, float]:
        """Return the velocities of the next step, m/s and rad/s.

        Parameters
        ----------
        goal_x, goal_y : float
            Goal in the frame of the robot, m.
        points : (p, 2) float64
            Obstacles in the frame of the robot, m; NaN for rays without a hit.
        choose : callable
            Function of the avoidance method: returns v, m/s, and w, rad/s, for a goal
            x, y, m, in the frame of the robot. v is 0 if no arc is free.
        """
        robot = self._robot
        x, y, _ = robot.truth
        if self._from is not None:
            gone = hypot(x - self._from[0], y - self._from[1])
            if gone < SHARE * self._radius and not robot.stalled:
                return self._back()
            self._from = None
            self._leaves_from = (x, y) if self._is_blocked else None
        elif hypot(goal_x, abs(goal_y) - self._radius) < INSIDE * self._radius:
            self._from, self._side = (x, y), math.copysign(1.0, goal_y)
            self._is_blocked, self._leaves_from = False, None
            return self._back()

        leaves = self._leaves_from
        if leaves is not None:
            if hypot(x - leaves[0], y - leaves[1]) < SHARE * self._radius:
                goal_x, goal_y = 2.0 * self._radius, 0.0
            else:
                self._leaves_from = None
        v, w = choose(goal_x, goal_y)
        if v <= 0.0 and abs(robot.velocity.vx) < STANDING:
            self._from, self._side = (x, y), _free_side(points)
            self._is_blocked, self._leaves_from = True, None
            return self._back()
        # With v near 0, the curvature w / v could exceed the curvature that the wheels
        # can steer.
        most = abs(v) / self._radius
        return v, max(-most, min(most, w))

    def _back(self) -> tuple[float, float]:
        return -self._speed, self._side * self._speed / self._radius

    def get_state(self) -> Any:
        """Return the state, see `botyard.controllers.base.Controller`."""
        return [self._from, self._side, self._leaves_from, self._is_blocked]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        start, side, leaves, is_blocked = state
        found = point(start), point(leaves)
        self._side = math.copysign(1.0, finite(side))
        self._from, self._leaves_from = found
        self._is_blocked = bool(is_blocked)


def _free_side(points: F8) -> float:
    """Return the side away from the nearest obstacle ahead: 1 left, −1 right."""
    ahead = points[points[:, 0] > 0.0]
    if not len(ahead):
        return 1.0
    nearest = ahead[np.argmin((ahead * ahead).sum(axis=1))]
    return -1.0 if nearest[1] > 0.0 else 1.0


__all__ = ["CarMoves"]
