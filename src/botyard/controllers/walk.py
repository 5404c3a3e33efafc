"""Walk: random walk of a pedestrian: go straight to a random free place, stand a while, go to the next one; choose anew when blocked."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from botyard.controllers.base import finite, point, random_state, set_random_state
from botyard.controllers.steering import halt, steer
from botyard.elementary import atan2, cos, hypot, sin
from botyard.engine.commands import MAX_COORDINATE
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.sim.simulation import Robot

ATTEMPTS = 30
"""Random places that are tried for one that can be reached in a straight line."""
CLEARANCE_STEP = 0.25
"""A straight line is free if the body fits at points of it that are this far apart, m."""
LEG_LIMIT = 50.0
"""Longest leg, m: of the way to a place farther away only this much is walked."""


class Walk:
    """Moves one robot or moving obstacle at random, repeatable by the seed.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    speed : float
        Mean walking speed, m/s; that of each leg is drawn from 80 … 120 % of it.
    pause : float
        Longest pause at a place, s; each one is drawn from 0 up to it.
    area : [x0, y0, x1, y1], optional
        Area of the destinations, m; else within 10 m of where it is, and within the bounds of the map.
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
        if not (float(speed) > 0.0 and float(pause) >= 0.0):
            raise WorldError("walk: speed must be positive, pause not negative")
        if area is not None and len(area) != 4:
            raise WorldError(f"walk: area: expected [x0, y0, x1, y1], found {len(area)} numbers")
        if area is not None and not all(abs(float(v)) <= MAX_COORDINATE for v in area):
            raise WorldError(f"walk: area: expected numbers within ±{MAX_COORDINATE:g} m, found {list(area)}")
        self._robot = robot
        self._random = random.Random(f"{seed} walk {robot.name}")
        self._speed, self._pause = float(speed), float(pause)
        self._area = None if area is None else tuple(map(float, area))
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
            self._target = self._choose()
            self._pace = self._speed * self._random.uniform(0.8, 1.2)
            if self._target is None:  # enclosed: try again after a moment
                self._rest_until = now + 0.5
                halt(robot)
                return
        if steer(robot, *self._target, self._pace) <= 0.1:
            self._target = None
            self._rest_until = now + self._random.uniform(0.0, self._pause)

    def _choose(self) -> tuple[float, float] | None:
        """Choose a random place in the area that can be reached in a straight line now; None if none was found."""
        robot, draw = self._robot, self._random
        pose, sim = robot.truth, robot.simulation
        is_free = sim.is_free_for(robot)
        for _ in range(ATTEMPTS):
            if self._area is not None:
                x, y = draw.uniform(self._area[0], self._area[2]), draw.uniform(self._area[1], self._area[3])
            else:
                away, bearing = draw.uniform(1.0, 10.0), draw.uniform(-math.pi, math.pi)
                x, y = pose.x + away * cos(bearing), pose.y + away * sin(bearing)
                b = sim.scene.bounds
                if b is not None and not (b[0] <= x <= b[2] and b[1] <= y <= b[3]):
                    continue
            th, away = atan2(y - pose.y, x - pose.x), hypot(x - pose.x, y - pose.y)
            if away > LEG_LIMIT:
                x, y, away = pose.x + LEG_LIMIT * cos(th), pose.y + LEG_LIMIT * sin(th), LEG_LIMIT
            n = max(1, math.ceil(away / CLEARANCE_STEP))
            if all(
                is_free(Pose(pose.x + (x - pose.x) * k / n, pose.y + (y - pose.y) * k / n, th)) for k in range(1, n + 1)
            ):
                return x, y
        return None

    def get_state(self) -> list[Any]:
        """See `Controller`."""
        return [random_state(self._random), self._target, self._pace, self._rest_until]

    def set_state(self, state: Any) -> None:
        """See `Controller`."""
        draw, target, pace, rest_until = state
        set_random_state(self._random, draw)
        self._target, self._pace, self._rest_until = point(target), finite(pace), finite(rest_until)

    def rest(self) -> None:
        """Nothing is read."""
