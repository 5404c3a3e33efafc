"""Drive cars and robots with trailers to goals, on paths that their turning circle allows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from botyard.controllers.base import finite
from botyard.controllers.goto import APPROACH_S, SLOWEST, GoTo
from botyard.controllers.steering import command_turn, halt
from botyard.engine.layout import ANGLE, F8, RATE
from botyard.geometry import Pose, WorldPose
from botyard.model.robot import RobotSpec
from botyard.model.trailers import TrailerSpec, steady_radii, swept_width
from botyard.navigation import local
from botyard.navigation.carplanning import (
    Discs,
    check_distance,
    discs_of,
    find_car_path,
)
from botyard.navigation.planning import BLOCKED, Costmap, NoPathError, Obstruction
from botyard.numerics.elementary import cosine_sine, hypot
from botyard.sim.simulation import Robot
from botyard.sim.trips import TripState
from botyard.units import deg

RESERVE: Final = 1.1
"""Reserve of steering for corrections on planned paths.

The radius of planned arcs is this multiple of the radius of the turning circle. The
limit of a hitch's angle is this multiple of the greatest angle on a planned path.
"""
LOOKAHEAD: Final = 0.4
"""Distance of the pursued point as a share of the radius of planned arcs."""
LEAST_LOOKAHEAD_M, MOST_LOOKAHEAD_M = 0.2, 1.5
"""Least and greatest distance of the pursued point, m; see `LOOKAHEAD`."""
LEG_END_M: Final = 0.03
"""Greatest distance from the end of a leg at which the robot starts the next leg, m.

A leg is a part of the path in one direction: forward or in reverse.
"""
LEG_END_TURN: Final = 0.3
"""Share of the permitted heading error that the tightest arc may turn in this distance."""
STEERING_SHARE: Final = 0.4
"""Share of the distance of the pursued point that the robot may drive until its wheels have
turned."""
BRAKING: Final = 0.8
"""Share of the robot's deceleration that it uses before the end of a leg."""
MAX_RADIUS_M: Final = 1000.0
"""Greatest radius of planned arcs, m."""
TRIES: Final = 3
"""Number of paths that are tried until the heading at one goal is right.

After the last one, any heading at the goal counts as reached.
"""
STOP_GAP_M: Final = 0.3
"""Distance of another robot from the path ahead below which the robot waits, m."""


def needs_arcs(spec: RobotSpec) -> bool:
    """Return whether a robot cannot turn on the spot: it steers, or pulls trailers.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    """
    return spec.kinematics.steers or bool(spec.trailers)


def go_to(robot: Robot, seed: int, **options: Any) -> GoTo:
    """Return the controller that drives a robot to goals, for its kind of drive.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    **options
        See `botyard.controllers.goto.GoTo`.
    """
    return (CarGoTo if needs_arcs(robot.spec) else GoTo)(robot, seed, **options)


# The registry and `help` read the options from the signature.
go_to.__signature__ = inspect.signature(GoTo)  # type: ignore[attr-defined]


def train_radius(trailers: Sequence[TrailerSpec], least: float) -> float:
    """Return the radius of the tightest arc that a train can drive without end, m.

    See `botyard.model.trailers.steady_radii`.

    Parameters
    ----------
    trailers : sequence of TrailerSpec
        Trailers behind the robot.
    least : float
        Radius of the tightest arc of the robot alone, m.

    Returns
    -------
    float
        Radius of the origin of the robot, at most `MAX_RADIUS_M`.
    """
    low, high = least, MAX_RADIUS_M
    if steady_radii(trailers, low) is not None:
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = steady_radii(trailers, middle) is not None
        low, high = (low, middle) if fits else (middle, high)
    return high


class CarGoTo(GoTo):
    """Controller of `go_to` for robots that cannot turn on the spot.

    It plans by hybrid A* (`botyard.navigation.carplanning`) and follows the path by pure
    pursuit, forward and in reverse. A robot with trailers never drives in reverse. The
    robot waits for other robots on the path ahead, and after a while plans again around
    them. It follows a given path on arcs that its turning circle allows.

    Parameters
    ----------
    robot, seed, **options
        See `botyard.controllers.goto.GoTo`.
    """

    def __init__(self, robot: Robot, seed: int, **options: Any) -> None:
        super().__init__(robot, seed, **options)
        spec = robot.spec
        self._trailers = [
            replace(one, limit=one.limit / RESERVE) for one in spec.trailers
        ]
        self._alone = RESERVE * max(spec.kinematics.turning_radius, 0.05)
        """Radius of the tightest arcs of the robot without its trailers, m."""
        self._radius = train_radius(self._trailers, self._alone)
        self._discs: Discs = discs_of(
            (spec.outline, *spec.parts), *((one.outline,) for one in spec.trailers)
        )
        self._girth = self._discs.radius
        self._lookahead = min(
            max(LOOKAHEAD * self._radius, LEAST_LOOKAHEAD_M), MOST_LOOKAHEAD_M
        )
        self._leg_end = min(LEG_END_M, LEG_END_TURN * self._turned * self._radius)
        self._way: F8 | None = None
        """Points of the path, (n, 4): x, y, heading, direction; see `find_car_path`."""
        self._tries = 0

    def _make_avoidance(self, seed: int) -> None:
        """Return None: ORCA may choose velocities to the side, which a car cannot drive."""

    def _floor(self, margin: float, pose: WorldPose) -> Costmap:
        # Refuse a far goal before the floor up to it is made, which takes long.
        if self._given is None:
            check_distance(pose[:2], self._route.point)
        return super()._floor(margin, pose)

    def _find_path(self, costs: Costmap, pose: WorldPose) -> F8:
        robot, trailers = self._robot, self._trailers
        rows = robot.simulation.snapshot.rows
        train = [
            rows[name] for name in robot.simulation.core.engine.trailers_of(robot.name)
        ]
        places = robot.simulation.snapshot.state.pose[[rows[robot.name], *train]]
        floor = self._opened(costs, places)

        def search(
            radius: float, trailers: Sequence[TrailerSpec], *, reverses: bool
        ) -> F8:
            return find_car_path(
                floor,
                self._discs.offsets[: 1 + len(trailers)],
                Pose(*pose),
                self._route.point,
                self._headings[self._route.index],
                radius,
                trailers=trailers,
                headings=places[1 : 1 + len(trailers), 2].tolist(),
                reverses=reverses,
            )

        try:
            self._way = search(self._radius, trailers, reverses=not trailers)
        except NoPathError as error:
            if not trailers or error.reason is not Obstruction.NO_ARC:
                raise
            # Find the cause: search again without the trailers' width, then also
            # without their limit of curvature, then also in reverse. The first path
            # found names the cause.
            for radius, reverses, reason, note in (
                (self._radius, False, Obstruction.NO_SWEPT, self._width_note()),
                (self._alone, False, Obstruction.NO_BEND, self._bend_note()),
                (self._alone, True, Obstruction.NO_REVERSE, ""),
            ):
                try:
                    search(radius, (), reverses=reverses)
                except NoPathError as found:
                    error = found
                    continue
                error = NoPathError(reason, self._route.point, note=note)
                break
            raise error from None
        path: F8 = self._way[:, :2].copy()
        return path

    def _width_note(self) -> str:
        """Return a sentence on the width that the trailers sweep in the tightest planned turn."""
        spec, radius = self._robot.spec, self._radius
        radii = steady_radii(spec.trailers, radius)
        if radii is None:
            return f"the tightest turn of the train has a radius of {radius:.3f} m"
        width = swept_width(
            (spec.outline, *(one.outline for one in spec.trailers)), radii
        )
        off = radius - radii[-1]
        side = "inside" if off >= 0.0 else "outside"
        return (
            f"in the tightest turn, of radius {radius:.3f} m, the last trailer runs "
            f"{abs(off):.3f} m farther {side}, and the train sweeps {width:.3f} m"
        )

    def _bend_note(self) -> str:
        """Return a sentence on how much tighter the robot turns without its trailers."""
        limits = ", ".join(f"{deg(one.limit):.0f}" for one in self._robot.spec.trailers)
        return (
            f"the robot alone turns on a radius of {self._alone:.3f} m, the train on "
            f"{self._radius:.3f} m, because hitches bend up to {limits} degrees"
        )

    def _opened(self, costs: Costmap, places: F8) -> Costmap:
        """Return a costmap in which the cells under the robot and its trailers are free.

        The discs that represent a robot are larger than its body, so at a wall they
        would start in blocked cells.
        """
        free = costs.costs.copy()
        spec = self._robot.spec
        outlines = [spec.outline, *(one.outline for one in spec.trailers)]
        rows, columns = free.shape
        for (x, y, th), offsets, outline in zip(
            places.tolist(), self._discs.offsets, outlines, strict=False
        ):
            half = max(abs(side) for _, side in outline)
            reach = max(int(half / costs.resolution), 1)
            c, s = cosine_sine(th)
            for one in offsets:
                cell = costs.cell((x + one * c, y + one * s))
                if cell is None:
                    continue
                i, j = cell
                j0, j1 = max(j - reach, 0), min(j + reach + 1, rows)
                i0, i1 = max(i - reach, 0), min(i + reach + 1, columns)
                free[j0:j1, i0:i1][free[j0:j1, i0:i1] == BLOCKED] = 0
        return Costmap(free, costs.x, costs.y, costs.resolution)

    def _arrive(self, pose: WorldPose) -> None:
        # A car cannot turn to the heading at the end of a given path.
        self._take_next()

    def act(self) -> None:
        """Command the robot for the next step."""
        if self._given is not None:
            super().act()
            return
        robot, route = self._robot, self._route
        sim = robot.simulation
        if route.is_at_end or sim.time < self._rest_until:
            halt(robot)
            return

        pose = robot.truth
        grid = sim.core.engine.grid
        # A new map makes the path invalid, and may open one.
        if self._map is not grid:
            self._map, self._path, self._progress[0] = grid, None, 0.0
            self._state, self._message = TripState.DRIVING, ""
        if self._is_there(pose):
            self._tries = 0
            self._take_next()
            return
        if self._path is not None and self._is_at_end:
            # The robot is at the end of the path, but not close enough to its goal:
            # plan again.
            self._tries, self._path = self._tries + 1, None
        if self._path is None and (
            self._state is TripState.NO_PATH or not self._plan(pose)
        ):
            halt(robot)
            return

        self._follow(pose)

    @property
    def _is_at_end(self) -> bool:
        assert self._path is not None
        return float(self._progress[0]) >= len(self._path) - 1

    def _is_there(self, pose: WorldPose) -> bool:
        goal, heading = self._route.point, self._headings[self._route.index]
        if hypot(goal[0] - pose.x, goal[1] - pose.y) > self._reached:
            return False
        error = (
            0.0 if heading is None else math.remainder(heading - pose.th, 2.0 * math.pi)
        )
        return abs(error) <= self._turned or (
            self._tries >= TRIES and self._path is not None and self._is_at_end
        )

    def _leg(self) -> tuple[int, int]:
        """Return the indices of the first and the last point of the present leg.

        A leg is a part of the path in one direction: forward or in reverse.
        """
        assert self._way is not None
        ways = self._way[:, 3]
        last = len(ways) - 1
        first = min(int(self._progress[0]), last - 1)
        # The direction of a point belongs to the segment that ends at it.
        end = first + 1
        while end < last and ways[end + 1] == ways[first + 1]:
            end += 1
        while first > 0 and ways[first] == ways[end]:
            first -= 1
        return first, end

    def _follow(self, pose: WorldPose) -> None:
        if self._given is not None:
            super()._follow(pose)
            return
        robot, way = self._robot, self._way
        assert way is not None
        assert self._path is not None
        now = robot.simulation.time
        first, end = self._leg()
        direction = float(way[end, 3])
        # In reverse the robot drives forward with its heading turned round.
        th = pose.th if direction > 0.0 else pose.th + math.pi
        leg = self._extended(way[first : end + 1], direction)
        progress = np.array([float(self._progress[0]) - first])
        curvature, _, _, _ = local.pure_pursuit(
            leg[None],
            np.array([(pose.x, pose.y, th)]),
            np.array([self._lookahead]),
            progress,
        )[0].tolist()
        self._progress[0] = first + min(float(progress[0]), end - first)
        rest = self._rest_of(end, pose, th)
        if rest <= self._leg_end:
            self._progress[0] = float(end)

        to_go = self._left(self._path)
        if to_go < self._shortest - 0.1:
            self._shortest, self._since = to_go, now
            self._state = TripState.DRIVING
        elif now - self._since > self._patience:
            self._state = TripState.BLOCKED
            self._replans += 1
            self._plan(pose, around=True)
            return

        if self._is_occupied(pose, end):
            # A car only stops, and keeps its steering. For a robot with trailers the
            # turn rate must also be 0, or it would turn on the spot.
            if robot.spec.kinematics.steers:
                robot.command(v=0.0)
            else:
                halt(robot)
            return
        speed = self._speed_for(rest, curvature, end)
        tightest = self._tightest
        curvature = max(-tightest, min(tightest, curvature))
        speed = min(speed, self._steering_speed(curvature, direction))
        command_turn(robot, direction * speed, curvature * self._next_speed(speed))

    def _steering_speed(self, curvature: float, direction: float) -> float:
        """Return the speed at which the wheels have turned before the robot has left its path.

        Parameters
        ----------
        curvature : float
            Curvature of the wanted arc as the robot drives it, 1/m.
        direction : float
            1 forward, −1 in reverse.
        """
        robot, state = self._robot, self._robot.simulation.snapshot.state
        if robot.spec.steering is None:
            return math.inf
        steer = state.steer[robot.simulation.snapshot.rows[robot.name]]
        wanted = robot.spec.kinematics.steering_angle(direction, curvature)
        turned, rate = abs(wanted - float(steer[ANGLE])), float(steer[RATE])
        # A rate of 0 has no limit.
        if turned == 0.0 or rate == 0.0:
            return math.inf
        return STEERING_SHARE * self._lookahead * rate / turned

    def _next_speed(self, wanted: float) -> float:
        """Return the speed of the robot after the next step, m/s.

        The commanded turn rate is the curvature times this speed. With the final speed
        instead, a robot with trailers would first turn nearly on the spot, because its
        turn rate rises faster than its speed.
        """
        robot = self._robot
        accel = robot.spec.kinematics.limits.accel.x
        if robot.spec.kinematics.steers or accel <= 0.0:
            return wanted
        return min(wanted, abs(robot.velocity.vx) + accel * robot.simulation.dt)

    @property
    def _tightest(self) -> float:
        """Greatest curvature that the robot can drive, 1/m."""
        return RESERVE / self._radius

    def _extended(self, leg: F8, direction: float) -> F8:
        """Return the points of a leg, (n, 2), m, and one point more in the heading of its end.

        The pursued point then does not stop at the end, so that the robot arrives with
        this heading.
        """
        c, s = cosine_sine(float(leg[-1, 2]))
        beyond = 2.0 * self._lookahead * direction
        x, y = leg[-1, :2].tolist()
        return np.concatenate([leg[:, :2], [[x + beyond * c, y + beyond * s]]])

    def _rest_of(self, end: int, pose: WorldPose, th: float) -> float:
        """Return the distance along the path to the leg's end, m; negative beyond it."""
        assert self._path is not None
        at = min(int(self._progress[0]) + 1, end)
        along = self._path[at : end + 1]
        steps = np.diff(along, axis=0)
        c, s = cosine_sine(th)
        dx, dy = along[0, 0] - pose.x, along[0, 1] - pose.y
        lengths = (hypot(float(a), float(b)) for a, b in steps)
        return float(c * dx + s * dy) + math.fsum(lengths)

    def _speed_for(self, rest: float, curvature: float, end: int) -> float:
        """Return the highest speed from which the robot can stop at the end of a leg, m/s."""
        limits = self._robot.spec.kinematics.limits
        speed = self._speed
        decel = limits.decel.x
        if decel > 0.0:
            speed = min(speed, math.sqrt(2.0 * BRAKING * decel * max(rest, 0.0)))
        speed = min(speed, max(rest, 0.0) / APPROACH_S * 2.0)
        if abs(curvature) * speed > limits.max_speed.a:
            speed = limits.max_speed.a / abs(curvature)
        return max(speed, SLOWEST)

    def _is_occupied(self, pose: WorldPose, end: int) -> bool:
        """Return whether another robot is on the path within the stopping distance."""
        avoided = self._avoided(pose)
        if not avoided.any():
            return False
        robot, way = self._robot, self._way
        assert way is not None
        sim = robot.simulation
        speed, decel = abs(robot.velocity.vx), robot.spec.kinematics.limits.decel.x
        ahead = self._discs.radius + STOP_GAP_M + speed * sim.dt
        if decel > 0.0:
            ahead += speed * speed / (2.0 * decel)
        first = int(self._progress[0])
        gone, x0, y0 = 0.0, pose.x, pose.y
        rows = np.flatnonzero(avoided)
        others = sim.snapshot.state.pose[rows, :2]
        radii = sim.core.engine.bodies.radius[rows]
        for x, y, th, _ in way[first + 1 : end + 1].tolist():
            gone += hypot(x - x0, y - y0)
            x0, y0 = x, y
            if gone > ahead:
                break
            c, s = cosine_sine(th)
            for one in self._discs.offsets[0]:
                dx, dy = others[:, 0] - x - one * c, others[:, 1] - y - one * s
                gaps = np.sqrt(dx * dx + dy * dy) - radii - self._discs.radius
                if (gaps < self._safety).any():
                    return True
        return False

    def get_state(self) -> list[Any]:
        """Return the state, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of `GoTo`, path with headings and directions, and number of tries.
        """
        return [
            super().get_state(),
            None if self._way is None else self._way.tolist(),
            self._tries,
        ]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        base, points, tries = state
        way = None if points is None else np.array(points, np.float64)
        if way is not None and (
            way.ndim != 2
            or way.shape[1] != 4
            or len(way) < 2
            or not np.isfinite(way).all()
            or not (np.abs(way[:, 3]) == 1.0).all()
        ):
            raise ValueError(
                "expected a path of at least two finite points x, y, th, direction (1 or −1)"
            )
        count = int(finite(tries))
        super().set_state(base)
        if self._path is not None and (way is None or len(way) != len(self._path)):
            raise ValueError(
                "expected as many points with heading and direction as points of the path"
            )
        self._way, self._tries = way, count


__all__ = ["CarGoTo", "go_to", "needs_arcs", "train_radius"]
