"""Controller that drives a robot along a path by pure pursuit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from botyard.api import arguments
from botyard.controllers.route import checked_points, checked_reached, checked_speed
from botyard.controllers.steering import HEADING_GAIN, command_turn, halt
from botyard.model.drivechecks import check_drives
from botyard.navigation import local
from botyard.numerics.elementary import atan2
from botyard.sim.simulation import Robot

BEHIND: Final = 0.5 * math.pi
"""Bearing of the pursued point above which the robot first turns in place, rad."""


def drive_arc(
    robot: Robot,
    curvature: float,
    ahead: float,
    left: float,
    speed: float,
    *,
    turn_first: float = BEHIND,
) -> None:
    """Command the arc to a pursued point, or a turn towards it in place.

    Parameters
    ----------
    robot : Robot
        The robot.
    curvature : float
        Curvature of the arc, 1/m.
    ahead, left : float
        Coordinates of the pursued point in the frame of the robot, x and y, m.
    speed : float
        Speed, m/s. The robot drives slower on arcs that it cannot turn fast enough.
    turn_first : float
        Bearing of the point above which the robot turns in place, rad.
    """
    turn = robot.spec.kinematics.limits.max_speed.a
    # Pure pursuit has no arc to a point behind the robot.
    off = atan2(left, ahead)
    kinematics = robot.spec.kinematics
    if kinematics.steers:
        # A car cannot turn on the spot: it drives the tightest arc until the point is
        # ahead.
        tightest = 1.0 / kinematics.turning_radius
        if abs(off) > BEHIND:
            curvature = math.copysign(tightest, left)
        curvature = max(-tightest, min(tightest, curvature))
    elif abs(off) > turn_first:
        robot.command(v=0.0, w=max(-turn, min(turn, HEADING_GAIN * off)))
        return

    if abs(curvature) * speed > turn:
        # Drive slower on the same arc, so that the robot stays on the path.
        speed = turn / abs(curvature)
    command_turn(robot, speed, curvature * speed)


class PurePursuit:
    """Controller that drives one robot along a path (Coulter 1992).

    See `botyard.navigation.local.pure_pursuit`. The controller ignores obstacles. A
    car-like robot drives no tighter arc than its turning circle; to a point behind it, it
    drives that circle.

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

    Raises
    ------
    ArgumentError
        The path has fewer than 2 points, or an option is not valid.
    WorldError
        The robot does not drive.
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
        check_drives(robot.name, kinematics)

        self._loops = arguments.one_of(order, "order", ("loop", "once")) == "loop"
        self._round = float(len(path))
        if (
            self._loops
            # Store a looping path twice in a row, so that the pursued point can lie
            # beyond the end of the first round.
        ):
            path = path + path + path[:1]

        self._path = np.array([path])
        self._robot = robot
        self._lookahead = np.array(
            [arguments.number(lookahead, "lookahead", low=0.0, above=True, unit="m")]
        )
        self._reached = checked_reached(reached)
        self._speed = min(checked_speed(speed), kinematics.limits.max_speed.x)
        self._progress = np.zeros(1)
        self._is_at_end = False

    def act(self) -> None:
        """Drive the robot along the arc to the pursued point, for the next step."""
        robot = self._robot
        if self._is_at_end:
            halt(robot)
            return

        curvature, ahead, left, end = local.pure_pursuit(
            self._path, np.array([tuple(robot.truth)]), self._lookahead, self._progress
        )[0].tolist()
        if self._loops:
            # The path is stored twice: continue at the same point of the first round.
            if self._progress[0] >= self._round:
                self._progress[0] -= self._round
        # The end may be near the start of the path: the robot must be on the last
        # segment.
        elif end <= self._reached and self._progress[0] > self._path.shape[1] - 2:
            self._is_at_end = True
            halt(robot)
            return

        speed = (
            self._speed if self._loops else min(self._speed, max(end, self._reached))
        )
        drive_arc(robot, curvature, ahead, left, speed)

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            Position on the path (number of the segment plus the fraction driven of it),
            and whether the robot has reached the end.
        """
        return [float(self._progress[0]), self._is_at_end]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`.

        Raises
        ------
        TypeError, ValueError
            The state is not valid, or its position is not on the path.
        """
        progress, is_at_end = state
        if not 0.0 <= progress <= self._path.shape[1] - 1:
            raise ValueError(
                f"expected a position on the path of 0 to {self._path.shape[1] - 1} segments, "
                f"found {progress}"
            )
        self._progress[0], self._is_at_end = float(progress), bool(is_at_end)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""


__all__ = ["PurePursuit", "drive_arc"]
