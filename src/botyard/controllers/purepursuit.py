"""Pure pursuit: drive along a path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from botyard.api import arguments
from botyard.controllers.route import checked_points, checked_reached, checked_speed
from botyard.controllers.steering import HEADING_GAIN, halt
from botyard.errors import WorldError
from botyard.navigation import local
from botyard.numerics.elementary import atan2
from botyard.sim.simulation import Robot

BEHIND: Final = 0.5 * math.pi
"""A robot whose pursued point is more than this angle off turns in place first, rad."""


class PurePursuit:
    """Controller that drives one robot along a path (Coulter 1992).

    See `botyard.navigation.local.pure_pursuit`. It ignores obstacles.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    points : sequence of [x, y]
        The path, at least 2 points, m.
    lookahead : float
        Lookahead distance, m.
    speed : float
        Maximum speed, m/s. The robot drives slower where it cannot turn fast enough.
    order : str
        ``loop``: repeat the path, from the last point to the first; ``once``: stop at
        the last point.
    reached : float
        Distance from the last point at which the robot stops, m.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]],
        lookahead: float = 0.5,
        speed: float = 0.5,
        order: str = "once",
        reached: float = 0.1,
    ) -> None:
        path = checked_points(points, least=2)
        kinematics = robot.spec.kinematics
        if not kinematics.drives:
            raise WorldError(
                f"expected a robot that drives, found {robot.name}, which does not"
            )

        self._loops = arguments.one_of(order, "order", ("loop", "once")) == "loop"
        self._round = float(len(path))
        if (
            self._loops
            # Two rounds, so that the pursued point can lie beyond the end of the first
            # round.
        ):
            path = path + path + path[:1]

        self._path = np.array([path])
        self._robot = robot
        self._lookahead = np.array(
            [arguments.number(lookahead, "lookahead", low=0.0, above=True, unit="m")]
        )
        self._reached = checked_reached(reached)
        self._speed = min(checked_speed(speed), kinematics.limits.max_speed.x)
        self._turn = kinematics.limits.max_speed.a
        self._progress = np.zeros(1)
        self._is_at_end = False

    def act(self) -> None:
        """Command the arc to the pursued point."""
        robot = self._robot
        if self._is_at_end:
            halt(robot)
            return

        curvature, ahead, left, end = local.pure_pursuit(
            self._path, np.array([tuple(robot.truth)]), self._lookahead, self._progress
        )[0].tolist()
        if self._loops:
            # The path has two rounds: back to the same point of the first one.
            if self._progress[0] >= self._round:
                self._progress[0] -= self._round
        # The end may be near the start of the path: the robot must be on the last
        # segment.
        elif end <= self._reached and self._progress[0] > self._path.shape[1] - 2:
            self._is_at_end = True
            halt(robot)
            return

        turn = self._turn
        # Pure pursuit has no arc to a point behind the robot.
        off = atan2(left, ahead)
        if abs(off) > BEHIND:
            robot.command(v=0.0, w=max(-turn, min(turn, HEADING_GAIN * off)))
            return

        speed = (
            self._speed if self._loops else min(self._speed, max(end, self._reached))
        )
        if abs(curvature) * speed > turn:
            # Slower on the same arc, so that the robot stays on the path.
            speed = turn / abs(curvature)
        robot.command(v=speed, w=curvature * speed)

    def get_state(self) -> list[Any]:
        """Return the state, see `botyard.controllers.base.Controller`."""
        return [float(self._progress[0]), self._is_at_end]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`."""
        progress, is_at_end = state
        if not 0.0 <= progress <= self._path.shape[1] - 1:
            raise ValueError(f"expected a position on the path, found {progress}")
        self._progress[0], self._is_at_end = float(progress), bool(is_at_end)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""


__all__ = ["PurePursuit"]
