"""Walk: go about like a person: to some place in sight, stand a while, go to another; step aside when something is in the way."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from botyard.controllers.base import finite, point, random_state, set_random_state
from botyard.controllers.steering import halt, steer
from botyard.engine.commands import FARTHEST
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.sim.simulation import Robot

TRIES = 30
"""So many places are looked at for one that can be reached in a straight line."""
STEP = 0.25
"""A way is free if the body fits on it at points this far apart, m."""
LONGEST = 50.0
"""Nobody looks farther ahead than this, m: of a way to a place beyond it only the first part is walked."""


class Walk:
    """Moves one thing or robot at random, repeatably.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    speed : float
        Walking speed, m/s; each way is walked at 80 … 120 % of it.
    pause : float
        It stands for up to so long at a place, s.
    area : [x0, y0, x1, y1], optional
        Where it walks, m; else within 10 m of where it is, and within the bounds of the map.
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
        if area is not None and not all(abs(float(v)) <= FARTHEST for v in area):
            raise WorldError(f"walk: area: expected numbers within ±{FARTHEST:g} m, found {list(area)}")
        self._robot = robot
        self._random = random.Random(f"{seed} walk {robot.name}")
        self._speed, self._pause = float(speed), float(pause)
        self._area = None if area is None else tuple(map(float, area))
        self._target: tuple[float, float] | None = None
        self._pace = self._speed
        self._rest_until = self._random.uniform(0.0, self._pause)

    def act(self) -> None:
        """Walk on."""
        robot = self._robot
        now = robot.simulation.time
        if now < self._rest_until:
            halt(robot)
            return
        if self._target is None or robot.stalled:
            self._target = self._choose()
            self._pace = self._speed * self._random.uniform(0.8, 1.2)
            if self._target is None:  # hemmed in: look again after a moment
                self._rest_until = now + 0.5
                halt(robot)
                return
        if steer(robot, *self._target, self._pace) <= 0.1:
            self._target = None
            self._rest_until = now + self._random.uniform(0.0, self._pause)

    def _choose(self) -> tuple[float, float] | None:
        """A place in the area that can be reached in a straight line, as things stand."""
        robot, draw = self._robot, self._random
        pose, sim = robot.truth, robot.simulation
        is_free = sim.is_free_for(robot)
        for _ in range(TRIES):
            if self._area is not None:
                x, y = draw.uniform(self._area[0], self._area[2]), draw.uniform(self._area[1], self._area[3])
            else:
                away, bearing = draw.uniform(1.0, 10.0), draw.uniform(-math.pi, math.pi)
                x, y = pose.x + away * math.cos(bearing), pose.y + away * math.sin(bearing)
                b = sim.scene.bounds
                if b is not None and not (b[0] <= x <= b[2] and b[1] <= y <= b[3]):
                    continue
            th, away = math.atan2(y - pose.y, x - pose.x), math.hypot(x - pose.x, y - pose.y)
            if away > LONGEST:
                x, y, away = pose.x + LONGEST * math.cos(th), pose.y + LONGEST * math.sin(th), LONGEST
            n = max(1, math.ceil(away / STEP))
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
