"""Controller that moves a robot at random like a pedestrian (`Walk`).

The pedestrian walks straight to a random free position, pauses, and walks to the next
one. If blocked, it chooses another destination.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from botyard.controllers.base import finite, point, random_state, set_random_state
from botyard.controllers.route import (
    checked_area,
    checked_pause,
    checked_speed,
    random_destination,
)
from botyard.controllers.steering import halt, steer
from botyard.sim.simulation import Robot


class Walk:
    """Controller that moves one robot or moving obstacle at random.

    The walk is repeatable by the seed.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    speed : float
        Mean walking speed, m/s. The speed to each destination is random, 80 to 120 % of
        it.
    pause : float
        Maximum pause at a destination, s. Each pause is random, from 0 to this maximum.
    area : [x0, y0, x1, y1], optional
        Area of the destinations, m. The default is within 10 m of the robot and within
        the bounds of the map.

    Raises
    ------
    ArgumentError
        An option is not valid.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        speed: float = 1.2,
        pause: float = 3.0,
        area: Sequence[float] | None = None,
    ) -> None:
        self._robot = robot
        self._random = random.Random(f"{seed} walk {robot.name}")
        self._speed, self._pause = checked_speed(speed), checked_pause(pause)
        self._area = checked_area(area)
        self._target: tuple[float, float] | None = None
        self._pace = self._speed
        self._rest_until = self._random.uniform(0.0, self._pause)

    def act(self) -> None:
        """Command the robot towards its destination, or choose a new one."""
        robot = self._robot
        now = robot.simulation.time
        if now < self._rest_until:
            halt(robot)
            return

        if self._target is None or robot.stalled:
            self._target = random_destination(robot, self._random, self._area)
            self._pace = self._speed * self._random.uniform(0.8, 1.2)
            # The robot is enclosed: it tries again after a moment.
            if self._target is None:
                self._rest_until = now + 0.5
                halt(robot)
                return

        # The tolerance is 0.1 m, because a pedestrian does not aim at an exact point.
        if steer(robot, *self._target, self._pace) <= 0.1:
            self._target = None
            self._rest_until = now + self._random.uniform(0.0, self._pause)

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of the random generator; destination, m, or None; speed of the leg,
            m/s; and end of the pause, s.
        """
        return [random_state(self._random), self._target, self._pace, self._rest_until]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
        draw, target, pace, rest_until = state
        set_random_state(self._random, draw)
        self._target, self._pace, self._rest_until = (
            point(target),
            finite(pace),
            finite(rest_until),
        )

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""
