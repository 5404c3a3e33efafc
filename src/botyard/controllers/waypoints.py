"""Controller that drives a robot from point to point, repeatedly or once (`Waypoints`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botyard.controllers.base import finite
from botyard.controllers.route import (
    Route,
    checked_pause,
    checked_reached,
    checked_speed,
)
from botyard.controllers.steering import halt, steer
from botyard.sim.simulation import Robot


class Waypoints:
    """Controller that drives one robot or moving obstacle along points of the world.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    points : sequence of [x, y]
        The points, m.
    speed : float
        Maximum speed, m/s.
    pause : float
        Pause at every point, s.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``:
        stop at the last point.
    reached : float
        Distance at which a point counts as reached, m.

    Raises
    ------
    ArgumentError
        There is no point, or an option is not valid.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]],
        speed: float = 0.5,
        pause: float = 0.0,
        order: str = "loop",
        reached: float = 0.05,
    ) -> None:
        self._robot = robot
        self._route = Route(points, order)
        self._speed, self._pause, self._reached = (
            checked_speed(speed),
            checked_pause(pause),
            checked_reached(reached),
        )
        self._rest_until = -1.0

    def act(self) -> None:
        """Drive towards the current point, or pause at it."""
        robot, route = self._robot, self._route
        now = robot.simulation.time
        if route.is_at_end or now < self._rest_until:
            halt(robot)
            return

        if steer(robot, *route.point, self._speed) <= self._reached:
            self._rest_until = now + self._pause
            # At the end the robot stops in the same step.
            if not route.advance():
                halt(robot)

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            Index of the current point, direction, end of the pause (s), and whether the
            last point was reached.
        """
        return [
            self._route.index,
            self._route.direction,
            self._rest_until,
            self._route.is_at_end,
        ]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`, of a route with the same number of points.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        point, step, rest_until, arrived = state
        self._route.set_state(point, step, arrived)
        self._rest_until = finite(rest_until)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""
