"""Goals of controllers: given points, or random positions on free straight lines."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Final, TypedDict, Unpack

from botyard.api import arguments
from botyard.controllers.base import finite, point, random_state, set_random_state
from botyard.engine.commands import MAX_COORDINATE
from botyard.errors import ArgumentError, WorldError
from botyard.geometry import Pose
from botyard.model.drivechecks import check_drives
from botyard.numerics.elementary import atan2, cos, hypot, sin
from botyard.sim.simulation import Robot
from botyard.sim.trips import ORDERS

ATTEMPTS: Final = 30
"""Maximum number of random positions that are tried in a search for a reachable one."""
CLEARANCE_STEP: Final = 0.25
"""Spacing of the points on a straight line at which a free place for the body is checked, m."""
MAX_SAFETY_M: Final = 100.0
"""Maximum clearance from other bodies and from walls, m."""
LEG_LIMIT: Final = 50.0
"""Maximum distance of a random destination, m; farther destinations are moved nearer."""
ENCLOSED_S: Final = 0.5
"""Time after a failed search for a destination until the next search, s."""
PATIENCE: Final = 4.0
"""Time after which a destination is given up, as a multiple of the duration of a straight drive."""
MIN_PATIENCE_S: Final = 10.0
"""Minimum time after which a destination is given up, s."""
ARRIVED: Final = -1.0
"""Value that stands in place of the time of giving up, once the destination is reached."""


class Route:
    """Sequence of points with an order.

    Parameters
    ----------
    points : sequence of (x, y)
        At least one point, m.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``:
        end at the last point.

    Raises
    ------
    ArgumentError
        There is no point, or the order is unknown.
    """

    def __init__(self, points: Sequence[Sequence[float]], order: str) -> None:
        self._order = arguments.one_of(order, "order", ORDERS)
        self.points = checked_points(points)
        self.index, self.direction = 0, 1
        self.is_at_end = False

    @property
    def point(self) -> tuple[float, float]:
        """Current point of the route, m."""
        return self.points[self.index]

    @property
    def last_reached(self) -> tuple[float, float]:
        """Point that was reached last, m; at the end of the route, the current point.

        The value is undefined until a point has been reached.
        """
        if self.is_at_end:
            return self.point
        return self.points[
            self.index - (self.direction if self._order == "back" else 1)
        ]

    def advance(self) -> bool:
        """Make the next point the current one.

        Returns
        -------
        bool
            False after the last point: the current point stays, and `is_at_end` is
            True. A route of one point ends at its first call, whatever its order.
        """
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
        """Restore the position on the route: `index`, `direction` and `is_at_end`.

        Parameters
        ----------
        index : int
            Index of the current point.
        direction : int
            1 towards the last point; −1 back towards the first, with the order
            ``back``.
        is_at_end : bool
            Whether the last point was reached.

        Raises
        ------
        TypeError, ValueError
            The values are not valid.
        """
        if not 0 <= index < len(self.points) or direction not in (-1, 1):
            raise ValueError(
                f"expected the index of one of {len(self.points)} points and a direction, "
                f"1 or −1, found {index} and {direction}"
            )

        self.index, self.direction, self.is_at_end = (
            int(index),
            int(direction),
            bool(is_at_end),
        )


def checked_points(
    points: Sequence[Sequence[float]], least: int = 1
) -> list[tuple[float, float]]:
    """Return points, checked to be valid and sufficient in number.

    Parameters
    ----------
    points : sequence of [x, y]
        The points, m.
    least : int
        Minimum number of points.

    Returns
    -------
    list of (float, float)
        The points, m.

    Raises
    ------
    ArgumentError
        There are fewer points, or a point is not valid; the message names the first
        such point.
    """
    found = []
    for i, one in enumerate(arguments.several(points, "points", "points [x, y]")):
        x, y, _ = arguments.place(one, f"points[{i}]")
        found.append(
            (_coordinate(x, f"points[{i}]: x"), _coordinate(y, f"points[{i}]: y"))
        )

    if len(found) < least:
        raise ArgumentError(f"points: expected at least {least}, found {len(found)}")

    return found


def checked_area(area: Sequence[float] | None) -> tuple[float, ...] | None:
    """Return an area, checked to be valid.

    Parameters
    ----------
    area : [x0, y0, x1, y1] or None
        The area, m, with x0 ≤ x1 and y0 ≤ y1; None is returned unchanged.

    Raises
    ------
    ArgumentError
        It is not a valid area.
    """
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
    """Return a speed, checked to be above 0, m/s.

    Parameters
    ----------
    speed : float
        The speed, m/s.

    Raises
    ------
    ArgumentError
        It is not above 0.
    """
    return arguments.number(speed, "speed", low=0.0, above=True, unit="m/s")


def checked_pause(pause: float) -> float:
    """Return a pause, checked to be at least 0, s.

    Parameters
    ----------
    pause : float
        The pause, s.

    Raises
    ------
    ArgumentError
        It is below 0.
    """
    return arguments.number(pause, "pause", low=0.0, unit="s")


def checked_reached(reached: float) -> float:
    """Return a distance at which a goal counts as reached, checked to be above 0, m.

    Parameters
    ----------
    reached : float
        The distance, m.

    Raises
    ------
    ArgumentError
        It is not above 0.
    """
    return arguments.number(reached, "reached", low=0.0, above=True, unit="m")


def _coordinate(value: object, what: str) -> float:
    return arguments.number(
        value, what, low=-MAX_COORDINATE, high=MAX_COORDINATE, unit="m"
    )


def random_destination(
    robot: Robot, draw: random.Random, area: tuple[float, ...] | None
) -> tuple[float, float] | None:
    """Return a random position that can be reached in a straight line now.

    Parameters
    ----------
    robot : Robot
        The robot.
    draw : Random
        Source of randomness; the number of draws depends on the free space.
    area : (x0, y0, x1, y1) or None
        Area of the position, m. The default is within 10 m of the robot and within the
        bounds of the map.

    Returns
    -------
    (float, float) or None
        Position, m, at most `LEG_LIMIT` away. None means that all `ATTEMPTS` failed.
    """
    pose, sim = robot.truth, robot.simulation
    is_free = sim.core.places.is_free_for(robot)
    for _ in range(ATTEMPTS):
        if area is not None:
            x, y = draw.uniform(area[0], area[2]), draw.uniform(area[1], area[3])
        else:
            away, bearing = draw.uniform(1.0, 10.0), draw.uniform(-math.pi, math.pi)
            x, y = pose.x + away * cos(bearing), pose.y + away * sin(bearing)
            b = sim.scene.bounds
            # The space outside of the map counts as free, but robots should stay within
            # it.
            if b is not None and not (b[0] <= x <= b[2] and b[1] <= y <= b[3]):
                continue

        th, away = atan2(y - pose.y, x - pose.x), hypot(x - pose.x, y - pose.y)
        if away > LEG_LIMIT:
            x, y, away = (
                pose.x + LEG_LIMIT * cos(th),
                pose.y + LEG_LIMIT * sin(th),
                LEG_LIMIT,
            )

        # Check points along the line, not a swept area: this is fast, and exact enough
        # for a random destination.
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
    """Goals of a controller: given points or random positions, with pauses at each.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    name : str
        Name of the controller, which makes its draws independent of other controllers.
    points : sequence of [x, y], optional
        Points, m. The default is random positions that can be reached in a straight
        line.
    order : str
        See `Route`.
    pause : float
        Pause at a point, or maximum pause at a random position, s.
    reached : float
        Distance at which a goal counts as reached, m.
    speed : float
        Speed of the robot, m/s: a random position that takes much longer is given up.
    area : [x0, y0, x1, y1], optional
        Area of the random positions, m.

    Raises
    ------
    ArgumentError
        An option is not valid.
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
        # Check the options even without points, so that a wrong option is never
        # ignored.
        arguments.one_of(order, "order", ORDERS)
        self._robot = robot
        # Each robot and controller has its own generator, so that other robots do not
        # change its random numbers.
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
        """Return a uniformly distributed random number from −1 to 1."""
        return self._random.uniform(-1.0, 1.0)

    def goal(self, x: float, y: float) -> tuple[float, float] | None:
        """Return the goal to which a robot must drive now.

        Parameters
        ----------
        x, y : float
            Position of the robot, m.

        Returns
        -------
        (float, float) or None
            The goal, m. None means that the robot pauses, has reached the end, or found
            no destination.
        """
        now = self._robot.simulation.time
        # Return before the search for a random destination, which a pause does not
        # need.
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
            # The robot is stalled, has no destination, or has taken too long to reach
            # it.
            self._place = place = random_destination(
                self._robot, self._random, self._area
            )
            if place is None:
                # The search is expensive: an enclosed robot does not repeat it in every
                # step.
                self._rest_until = now + ENCLOSED_S
                return None

            way = hypot(place[0] - x, place[1] - y)
            self._give_up_at = now + max(MIN_PATIENCE_S, PATIENCE * way / self.speed)

        return place

    def resting_place(self) -> tuple[float, float] | None:
        """Return the position where a robot without a goal stays, m.

        The position is the last one reached; None if no position was reached.
        """
        return self._place if self._route is None else self._route.last_reached

    def get_state(self) -> list[Any]:
        """Return the state of the goals, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of the random generator; state of the route, or None; random position,
            m, or None; end of the pause, s; and the time at which the position is given
            up, s.
        """
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
        """Restore the state of the goals, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`, of goals with the same options.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        draw, on_route, place, rest_until, give_up_at = state
        set_random_state(self._random, draw)
        if self._route is not None:
            self._route.set_state(*on_route)
        self._place = point(place)
        self._rest_until, self._give_up_at = finite(rest_until), finite(give_up_at)


FOR_CARS: Final = "dwa, follow, go_to, purepursuit, vfh, walk, wander and waypoints"
"""Controllers that drive car-like robots."""


class GoalOptions(TypedDict, total=False):
    """Options of all controllers that drive a robot to goals with a clearance.

    Attributes
    ----------
    points : sequence of [x, y], optional
        Successive goals, m. The default is random positions that can be reached in a
        straight line.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``:
        stop at the last point.
    pause : float
        Pause at a point, or maximum pause at a random position, s.
    reached : float
        Distance at which a goal counts as reached, m.
    speed : float
        Preferred speed, m/s.
    area : [x0, y0, x1, y1], optional
        Area of the random positions, m.
    safety : float
        Clearance beyond the body's edge from bodies and walls, m.
    """

    points: Sequence[Sequence[float]] | None
    order: str
    pause: float
    reached: float
    speed: float | None
    area: Sequence[float] | None
    safety: float


class GoalDriver:
    """Base class of controllers that drive a robot to `Goals` with a clearance.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    **options
        See `GoalOptions`. The signature of a subclass lists these options with its own
        `DEFAULTS`.

    Raises
    ------
    ArgumentError
        An option is not valid.
    WorldError
        The robot does not drive.
    """

    name = ""
    DRIVES_CARS: ClassVar[bool] = False
    """Whether the method chooses only velocities that a car-like robot can drive."""
    DEFAULTS: ClassVar[GoalOptions] = {
        "points": None,
        "order": "loop",
        "pause": 0.0,
        "reached": 0.3,
        "speed": 0.5,
        "area": None,
        "safety": 0.05,
    }

    def __init_subclass__(cls) -> None:
        # The registry and `help` read the options of a controller from its signature.
        own = list(signature(cls.__init__).parameters.values())[1:]
        defaults: Mapping[str, Any] = cls.DEFAULTS
        shared = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=defaults[name],
                annotation=kind.__forward_arg__,
            )
            for name, kind in GoalOptions.__annotations__.items()
        ]
        named = [one for one in own if one.kind is Parameter.KEYWORD_ONLY]
        cls.__signature__ = Signature([*own[:2], *shared, *named])  # type: ignore[attr-defined]

    def __init__(self, robot: Robot, seed: int, **options: Unpack[GoalOptions]) -> None:
        kinematics = robot.spec.kinematics
        self._limits = kinematics.limits
        top = self._limits.max_speed
        check_drives(robot.name, kinematics)
        if not (top.x > 0.0 and (top.a > 0.0 or kinematics.moves_sideways)):
            raise WorldError(
                f"expected a robot that drives and turns, found {robot.name}, which does not"
            )
        if kinematics.steers and not self.DRIVES_CARS:
            raise WorldError(
                f"expected a robot that can turn on the spot, found {robot.name}, which "
                f"steers; {FOR_CARS} drive cars, and {self.name} does not"
            )

        self._robot = robot
        goals: dict[str, Any] = {**self.DEFAULTS, **options}
        self._safety = arguments.number(
            goals.pop("safety"), "safety", low=0.0, high=MAX_SAFETY_M, unit="m"
        )
        self._goals = Goals(robot, seed, self.name, **goals)

    def get_state(self) -> Any:
        """Return the state of the controller, see `botyard.controllers.base.Controller`."""
        return self._goals.get_state()

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
        self._goals.set_state(state)
