"""Waypoints: drive from point to point, in a loop, back and forth, or once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botyard.controllers.base import finite
from botyard.controllers.steering import halt, steer
from botyard.errors import WorldError
from botyard.sim.simulation import Robot

ORDERS = ("loop", "back", "once")


class Waypoints:
    """Drives one robot or moving obstacle along points of the world.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    points : sequence of [x, y]
        The points, m.
    speed : float
        Greatest speed, m/s.
    pause : float
        Pause at every point, s.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``: stop at the last point.
    reached : float
        Distance at which a point counts as reached, m.
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
        if order not in ORDERS:
            raise WorldError(f"waypoints: order: expected one of {', '.join(ORDERS)}, found {order!r}")
        self._points = [(float(p[0]), float(p[1])) for p in points]
        if not self._points:
            raise WorldError("waypoints: expected at least one point, found none")
        self._robot = robot
        self._speed, self._pause, self._reached = float(speed), float(pause), float(reached)
        if not (self._speed > 0.0 and self._pause >= 0.0 and self._reached > 0.0):
            raise WorldError("waypoints: speed and reached must be positive, pause not negative")
        self._order = order
        self._next, self._step = 0, 1
        self._rest_until = -1.0
        self._arrived = False

    def act(self) -> None:
        """Command the robot towards the next point, or let it pause."""
        robot = self._robot
        now = robot.simulation.time
        if self._arrived or now < self._rest_until:
            halt(robot)
            return
        if steer(robot, *self._points[self._next], self._speed) <= self._reached:
            self._advance(now)

    def _advance(self, now: float) -> None:
        self._rest_until = now + self._pause
        count = len(self._points)
        if count == 1 or (self._order == "once" and self._next == count - 1):
            self._arrived = True
            halt(self._robot)
        elif self._order == "back":
            if not 0 <= self._next + self._step < count:
                self._step = -self._step
            self._next += self._step
        else:
            self._next = (self._next + 1) % count

    def get_state(self) -> list[Any]:
        """See `Controller`."""
        return [self._next, self._step, self._rest_until, self._arrived]

    def set_state(self, state: Any) -> None:
        """See `Controller`."""
        point, step, rest_until, arrived = state
        if not 0 <= point < len(self._points) or step not in (-1, 1):
            raise ValueError(f"expected a point of {len(self._points)} and a direction, found {point} and {step}")
        self._next, self._step, self._rest_until, self._arrived = (
            int(point),
            int(step),
            finite(rest_until),
            bool(arrived),
        )

    def rest(self) -> None:
        """Nothing is read."""
