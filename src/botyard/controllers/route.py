"""Goals of controllers: points one after the other, and random places that can be
reached in a straight line.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Final

from botyard.api import arguments
from botyard.controllers.base import finite, point, random_state, set_random_state
from botyard.engine.commands import MAX_COORDINATE
from botyard.errors import ArgumentError, WorldError
from botyard.geometry import Pose
from botyard.model.robot import Drive
from botyard.numerics.elementary import atan2, cos, hypot, sin
from botyard.sim.simulation import Robot

ORDERS: Final = ("loop", "back", "once")
ATTEMPTS: Final = 30
"""Random places that are tried for one that can be reached in a straight line."""
CLEARANCE_STEP: Final = 0.25
"""A straight line is free if the body fits at points of it that are this far apart, m.
"""
MAX_SAFETY_M: Final = 100.0
"""Greatest distance from others and from walls that can be asked for."""
LEG_LIMIT: Final = 50.0
"""Longest leg, m: of the way to a place farther away only this much is gone."""
ENCLOSED_S: Final = 0.5
"""Time until it is tried again to find a place, s."""
PATIENCE: Final = 4.0
"""A random place that is not reached in so many times the time that the straight way
takes is given up.
"""
MIN_PATIENCE_S: Final = 10.0
"""Least time until then, s."""
ARRIVED: Final = -1.0
"""Stands for the time at which a random place is given up, where it is reached."""


class Route:
    """Points in an order.

    Parameters
    ----------
    points : sequence of (x, y)
        At least one, m.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``:
        the last one is the end.

    Raises
    ------
    ArgumentError
        There is no point, or no such order.
    """

    def __init__(self, points: Sequence[Sequence[float]], order: str) -> None:
        self._order = arguments.one_of(order, "order", ORDERS)
        self.points = checked_points(points)
        self.index, self.direction = 0, 1
        self.is_at_end = False

    @property
    def point(self) -> tuple[float, float]:
        """The present point, m."""
        return self.points[self.index]

    @property
    def last_reached(self) -> tuple[float, float]:
        """The point that was reached last, m; the present one at the end. Before any
        was reached, it means nothing.
        """
        if self.is_at_end:
            return self.point
        return self.points[
            self.index - (self.direction if self._order == "back" else 1)
        ]

    def advance(self) -> bool:
        """The present point is reached: take the next one. False: it was the last one."""
        count = len(self.points)
        if count == 1 or (self._order == "once" and self.index == count - 1):
            self.is_at_end = True
        elif self._order == "back":
            if not 0 <= self.index + self.direction < count:
                self.direction = -self.direction
            self.index += self.direction
        else:
            self.index = (self.index + 1) % count

        return not self.is_at_end

    def set_state(self, index: Any, direction: Any, is_at_end: Any) -> None:
        """Restore `index`, `direction` and `is_at_end`. Raises TypeError or ValueError
        if they are invalid.
        """
        if not 0 <= index < len(self.points) or direction not in (-1, 1):
            raise ValueError(
                f"expected a point of {len(self.points)} and a direction, found "
                f"{index} and {direction}"
            )

        self.index, self.direction, self.is_at_end = (
            int(index),
            int(direction),
            bool(is_at_end),
        )


def checked_points(
    points: Sequence[Sequence[float]], least: int = 1
) -> list[tuple[float, float]]:
    """Points (x, y), m, at least so many. ArgumentError: they are none; the first wrong
    one is named.
    """
    found = []
    for i, one in enumerate(arguments.several(points, "points", "points [x, y]")):
        x, y, _ = arguments.place(one, f"points[{i}]")
        found.append(
            (_coordinate(x, f"points[{i}]: x"), _coordinate(y, f"points[{i}]: y"))
        )

    if len(found) < least:
        raise ArgumentError(
            f"points: expected at least {least} of them, found {len(found)}"
        )

    return found


def checked_area(area: Sequence[float] | None) -> tuple[float, ...] | None:
    """An area [x0, y0, x1, y1], m. ArgumentError: it is none."""
    if area is None:
        return None
    given = arguments.several(area, "area", "four numbers x0, y0, x1, y1, m")
    if len(given) != 4:
        raise ArgumentError(
            f"area: expected four numbers x0, y0, x1, y1, m, found {len(given)}"
        )

    x0, y0, x1, y1 = (
        _coordinate(v, f"area: {n}")
        for v, n in zip(given, ("x0", "y0", "x1", "y1"), strict=True)
    )
    if not (x0 <= x1 and y0 <= y1):
        raise ArgumentError(
            f"area: expected x0 ≤ x1 and y0 ≤ y1, found {[x0, y0, x1, y1]}"
        )

    return x0, y0, x1, y1


def checked_speed(speed: float) -> float:
    """A speed, m/s. ArgumentError: it is not above 0."""
    return arguments.number(speed, "speed", low=0.0, above=True, unit="m/s")


def checked_pause(pause: float) -> float:
    """A pause, s. ArgumentError: it is less than 0."""
    return arguments.number(pause, "pause", low=0.0, unit="s")


def checked_reached(reached: float) -> float:
    """A distance at which something is reached, m. ArgumentError: it is not above 0."""
    return arguments.number(reached, "reached", low=0.0, above=True, unit="m")


def _coordinate(value: object, what: str) -> float:
    return arguments.number(
        value, what, low=-MAX_COORDINATE, high=MAX_COORDINATE, unit="m"
    )


def random_destination(
    robot: Robot, draw: random.Random, area: tuple[float, ...] | None
) -> tuple[float, float] | None:
    """A random place that can be reached in a straight line now; None if none was
    found.

    Parameters
    ----------
    robot : Robot
        The robot.
    draw : Random
        What it is drawn by.
    area : (x0, y0, x1, y1) or None
        Where it is, m; else within 10 m of the robot, and within the bounds of the map.
    """
    pose, sim = robot.truth, robot.simulation
    is_free = sim.is_free_for(robot)
    for _ in range(ATTEMPTS):
        if area is not None:
            x, y = draw.uniform(area[0], area[2]), draw.uniform(area[1], area[3])
        else:
            away, bearing = draw.uniform(1.0, 10.0), draw.uniform(-math.pi, math.pi)
            x, y = pose.x + away * cos(bearing), pose.y + away * sin(bearing)
            b = sim.scene.bounds
            if b is not None and not (b[0] <= x <= b[2] and b[1] <= y <= b[3]):
                continue

        th, away = atan2(y - pose.y, x - pose.x), hypot(x - pose.x, y - pose.y)
        if away > LEG_LIMIT:
            x, y, away = (
                pose.x + LEG_LIMIT * cos(th),
                pose.y + LEG_LIMIT * sin(th),
                LEG_LIMIT,
            )

        n = max(1, math.ceil(away / CLEARANCE_STEP))
        if all(
            is_free(
                Pose(pose.x + (x - pose.x) * k / n, pose.y + (y - pose.y) * k / n, th)
            )
            for k in range(1, n + 1)
        ):
            return x, y

    return None


class Goals:
    """Where a controller drives: points in an order, or random places, with pauses.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    name : str
        Name of the controller, by which its draws differ from those of others.
    points : sequence of [x, y], optional
        Points, m; without them random places that can be reached in a straight line.
    order : str
        See `Route`.
    pause : float
        Pause at a point, or longest pause at a random place, s.
    reached : float
        Distance at which a goal counts as reached, m.
    speed : float
        How fast the robot goes, m/s: random places that take much longer are given up.
    area : [x0, y0, x1, y1], optional
        Area of the random places, m.

    Raises
    ------
    ArgumentError
        An option is wrong.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        name: str,
        *,
        points: Sequence[Sequence[float]] | None,
        order: str,
        pause: float,
        reached: float,
        speed: float,
        area: Sequence[float] | None,
    ) -> None:
        arguments.one_of(order, "order", ORDERS)  # also without points
        self._robot = robot
        self._random = random.Random(f"{seed} {name} {robot.name}")
        self._route = None if points is None else Route(points, order)
        self._pause, self._reached, self.speed = (
            checked_pause(pause),
            checked_reached(reached),
            checked_speed(speed),
        )
        self._area = checked_area(area)
        self._place: tuple[float, float] | None = None
        self._rest_until, self._give_up_at = -1.0, 0.0

    def draw_sign(self) -> float:
        """A number from −1 to 1, drawn for the robot."""
        return self._random.uniform(-1.0, 1.0)

    def goal(self, x: float, y: float) -> tuple[float, float] | None:
        """The goal of a robot at (x, y), m; None: it pauses, or has come to the end."""
        now = self._robot.simulation.time
        if now < self._rest_until or (
            self._route is not None and self._route.is_at_end
        ):
            return None

        if self._route is not None:
            goal = self._route.point
            if hypot(goal[0] - x, goal[1] - y) > self._reached:
                return goal
            self._rest_until = now + self._pause
            return (
                self._route.point
                if self._route.advance() and self._pause == 0.0
                else None
            )

        place = self._place
        if (
            place is not None
            and self._give_up_at != ARRIVED
            and hypot(place[0] - x, place[1] - y) <= self._reached
        ):
            self._give_up_at = ARRIVED
            self._rest_until = now + self._random.uniform(0.0, self._pause)
            return None

        if place is None or self._robot.stalled or now > self._give_up_at:
            self._place = place = random_destination(
                self._robot, self._random, self._area
            )
            if place is None:
                self._rest_until = now + ENCLOSED_S
                return None

            way = hypot(place[0] - x, place[1] - y)
            self._give_up_at = now + max(MIN_PATIENCE_S, PATIENCE * way / self.speed)

        return place

    def resting_place(self) -> tuple[float, float] | None:
        """Where a robot stays while it has no goal: the place that it reached last, m;
        None: there is none.
        """
        return self._place if self._route is None else self._route.last_reached

    def get_state(self) -> list[Any]:
        """See `botyard.controllers.base.Controller`."""
        route = self._route
        on_route = (
            None if route is None else [route.index, route.direction, route.is_at_end]
        )
        return [
            random_state(self._random),
            on_route,
            self._place,
            self._rest_until,
            self._give_up_at,
        ]

    def set_state(self, state: Any) -> None:
        """See `botyard.controllers.base.Controller`."""
        draw, on_route, place, rest_until, give_up_at = state
        set_random_state(self._random, draw)
        if self._route is not None:
            self._route.set_state(*on_route)
        self._place = point(place)
        self._rest_until, self._give_up_at = finite(rest_until), finite(give_up_at)


class GoalDriver:
    """A controller that drives a robot to `Goals`, at a distance from what is there:
    what such controllers share.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    safety : float
        Distance from others and from walls that is kept beyond the body's edge, m.
    **goals
        See `Goals`.

    Raises
    ------
    ArgumentError
        An option is wrong.
    WorldError
        The robot does not drive.
    """

    name = ""

    def __init__(self, robot: Robot, seed: int, *, safety: float, **goals: Any) -> None:
        drive, top = robot.spec.drive, robot.spec.limits.max_speed
        if drive is Drive.NONE or not (
            top.x > 0.0 and (top.a > 0.0 or drive is Drive.OMNI)
        ):
            raise WorldError(
                f"expected a robot that drives and turns, found {robot.name}, which does not"
            )

        self._robot = robot
        self._safety = arguments.number(
            safety, "safety", low=0.0, high=MAX_SAFETY_M, unit="m"
        )
        self._goals = Goals(robot, seed, self.name, **goals)

    def get_state(self) -> Any:
        """See `botyard.controllers.base.Controller`."""
        return self._goals.get_state()

    def set_state(self, state: Any) -> None:
        """See `botyard.controllers.base.Controller`."""
        self._goals.set_state(state)
