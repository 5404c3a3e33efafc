"""Drive to goals on planned paths, around walls and other bodies."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.controllers.avoidance import Avoidance
from botyard.controllers.base import finite
from botyard.controllers.purepursuit import drive_arc
from botyard.controllers.route import (
    MAX_SAFETY_M,
    Route,
    checked_pause,
    checked_points,
    checked_reached,
    checked_speed,
)
from botyard.controllers.steering import HEADING_GAIN, halt
from botyard.engine.layout import F8, FOLLOWER
from botyard.errors import ArgumentError
from botyard.geometry import WorldPose
from botyard.model.drivechecks import check_drives
from botyard.model.obstacles import Visible
from botyard.names import shown
from botyard.navigation import local
from botyard.navigation.planning import Costmap, NoPathError, length
from botyard.numerics.elementary import cosine_sine, hypot
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.trips import Trip, TripState

log = logging.getLogger("botyard.controllers")

METHOD: Final = "a_star_ps"
"""Method of planning. Its paths are about 3 % longer than with theta*, which takes 5 to
30 times as long.
"""
TURN_FIRST: Final = 0.5
"""Bearing of the pursued point above which the robot turns in place first, rad.

Arcs to points at greater bearings could leave the free floor around the path.
"""
APPROACH_S: Final = 1.0
"""A robot slows down when it is less than this time away from its goal, s."""
SLOWEST: Final = 0.05
"""Least speed to which a robot slows down before its goal, m/s."""
NEAR_M: Final = 3.0
"""Distance between edges within which the robot avoids another body, m."""
BLOCKERS_M: Final = 10.0
"""Distance within which a blocked robot plans its new path around other robots, m."""
MOVED_M: Final = 0.05
"""Distance after which a moved robot is avoided again by ORCA, m.

Until then the path, which was planned around the robot, avoids it.
"""
PROGRESS_M: Final = 0.1
"""A robot makes progress if its path becomes shorter by this length, m."""
ASTRAY: Final = 2.0
"""Multiple of the distance `reached` at which a robot that turns at its goal drives back to it."""
OUT_M: Final = 1.0
"""Greatest length of the straight line to the start of a path, m.

A robot that is nearer to a wall than paths may be drives to the nearest free point
first.
"""
LOOKAHEAD_M: Final = 0.5
"""Distance of the pursued point of the path, m."""
GIVEN_SHARE: Final = 0.8
"""Distance from walls that a given path must keep, as a share of the robot's radius.

It is less than 1, because the path's planner may cut corners, or know the body's shape.
"""
JOIN_M: Final = 3.0
"""Length of the start of a given path in which the robot may join it, m."""
SHORTER: Final = (1.0, 0.5, 0.25, 0.125)
"""Shares of the lookahead distance that are tried, until the line to the point is clear."""


def _are_robots(sim: Simulation) -> NDArray[np.bool_]:
    """Return which bodies are robots or moving obstacles, (n,); the others are boxes."""
    found = np.zeros(len(sim.snapshot.rows), np.bool_)
    found[sim.fleet.robot_rows] = True
    return found


class GoTo:
    """Controller that drives one robot to goals, on shortest paths between the walls.

    The controller knows the true poses of all bodies, and the map. It plans a path
    (`botyard.navigation.planning`), follows it by pure pursuit, and avoids other bodies
    by ORCA. A robot that makes no progress plans again, around the bodies near it.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    points : sequence of [x, y] or [x, y, th]
        Goals one after the other, m. With th, rad, the robot also turns to this
        heading.
    order : str
        ``once``: stop at the last goal; ``loop``: from the last goal to the first;
        ``back``: back and forth.
    pause : float
        Pause at every goal, s.
    speed : float
        Maximum speed, m/s.
    reached : float
        Distance at which a goal counts as reached, m.
    turned : float
        Greatest error of the heading at a goal, rad.
    safety : float
        Clearance beyond the body's edge from walls and bodies, m. Where no path has it,
        the clearance from walls is 0.
    patience : float
        Time without progress after which the robot plans again, s.
    avoid : bool
        Whether the robot avoids other robots and moving obstacles by ORCA; False: only
        paths lead it around walls and boxes.
    path : sequence of [x, y], optional
        Path to follow instead of a planned one, m. `points` then has one goal, the end
        of the path. The robot never plans: it stops if the path ahead leads through a
        wall.

    Raises
    ------
    ArgumentError
        There is no goal, or an option is not valid.
    WorldError
        The robot does not drive and turn.
    """

    name = "go_to"

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]],
        order: str = "once",
        pause: float = 0.0,
        speed: float = 0.5,
        reached: float = 0.1,
        turned: float = 0.1,
        safety: float = 0.1,
        patience: float = 5.0,
        avoid: bool = True,
        path: Sequence[Sequence[float]] | None = None,
    ) -> None:
        self._robot = robot
        self._route = Route(points, order)
        self._given = None if path is None else self._checked_path(path)
        # `Route` has checked the points.
        self._headings = [float(p[2]) if len(p) > 2 else None for p in points]
        self._pause, self._reached, self._speed = (
            checked_pause(pause),
            checked_reached(reached),
            checked_speed(speed),
        )
        self._turned = arguments.number(
            turned, "turned", low=0.0, above=True, unit="rad"
        )
        self._safety = arguments.number(
            safety, "safety", low=0.0, high=MAX_SAFETY_M, unit="m"
        )
        self._patience = arguments.number(
            patience, "patience", low=0.0, above=True, unit="s"
        )
        self._avoids = arguments.flag(avoid, "avoid")
        limits = robot.spec.kinematics.limits
        check_drives(robot.name, robot.spec.kinematics, turns=True)
        self._speed = min(self._speed, limits.max_speed.x)
        self._girth = robot.spec.radius
        """Radius of the disc that represents the robot in planning, m."""
        self._avoidance = self._make_avoidance(seed)
        self._state = TripState.DRIVING
        self._message = ""
        self._path: F8 | None = None
        self._around: dict[str, tuple[float, float]] = {}
        """Robots that the path leads around, with their positions, m."""
        self._progress = np.zeros(1)
        self._margin = self._safety
        self._map: object = None
        self._is_turning = False
        self._rest_until = -1.0
        self._shortest, self._since = math.inf, robot.simulation.time
        self._reached_count, self._replans = 0, 0
        self._started = robot.simulation.time

    def _make_avoidance(self, seed: int) -> Avoidance | None:
        return Avoidance(
            self._robot,
            seed,
            points=self._route.points,
            speed=self._speed,
            safety=min(self._safety, 0.05),
        )

    def _checked_path(self, path: Sequence[Sequence[float]]) -> F8:
        """Return a given path that ends at the goal, (n, 2), m."""
        goals = self._route.points
        if len(goals) > 1:
            raise ArgumentError(
                f"points: expected one goal at the end of the path, found {len(goals)}"
            )
        corners = [*checked_points(path), goals[0]]
        # A path has two points at least, and a segment has a length.
        kept = [a for a, b in itertools.pairwise(corners) if a != b]
        return np.array([*(kept or goals), goals[0]])

    @property
    def trip(self) -> Trip:
        """State of the trip."""
        path = self._path
        return Trip(
            state=self._state,
            goal=self._route.point,
            heading=self._headings[self._route.index],
            goals_reached=self._reached_count,
            path=() if path is None else tuple((x, y) for x, y in path.tolist()),
            distance_left=0.0 if path is None else self._left(path),
            replans=self._replans,
            started=self._started,
            message=self._message,
        )

    def act(self) -> None:
        """Command the robot for the next step."""
        robot, route = self._robot, self._route
        sim = robot.simulation
        if route.is_at_end or sim.time < self._rest_until:
            halt(robot)
            return

        pose, goal = robot.truth, route.point
        away = hypot(goal[0] - pose.x, goal[1] - pose.y)
        reached = self._reached * (ASTRAY if self._is_turning else 1.0)
        if away <= reached and self._is_near_the_end():
            self._arrive(pose)
            return

        self._is_turning = False
        grid = sim.core.engine.grid
        # A new map makes the path invalid. It may also open a path to a goal that had
        # none.
        if self._map is not grid:
            self._map, self._path = grid, None
            self._state, self._message = TripState.DRIVING, ""
            if self._given is None:
                self._progress[0] = 0.0
        if self._state is TripState.NO_PATH or (
            self._path is None and not self._plan(pose)
        ):
            halt(robot)
            return

        self._follow(pose)

    def _is_near_the_end(self) -> bool:
        """Return whether the robot is on the last part of a given path; True without a given path.

        Being near the goal is not enough: a given path may start there, or pass it
        before its end.
        """
        if self._given is None:
            return True
        return self._path is not None and self._left(self._path) <= LOOKAHEAD_M

    def _arrive(self, pose: WorldPose) -> None:
        """Turn to the heading of the goal, then take the next goal."""
        robot, route = self._robot, self._route
        heading = self._headings[route.index]
        error = (
            0.0 if heading is None else math.remainder(heading - pose.th, 2.0 * math.pi)
        )
        if abs(error) > self._turned:
            self._is_turning, self._state = True, TripState.TURNING
            top = robot.spec.kinematics.limits.max_speed.a
            robot.command(v=0.0, vy=0.0, w=max(-top, min(top, HEADING_GAIN * error)))
            return

        self._take_next()

    def _take_next(self) -> None:
        """Count the goal as reached, and take the next one."""
        robot, route = self._robot, self._route
        self._reached_count += 1
        self._is_turning, self._path, self._progress[0] = False, None, 0.0
        self._rest_until = robot.simulation.time + self._pause
        if not route.advance():
            self._state = TripState.ARRIVED
        else:
            self._state = TripState.PAUSED if self._pause else TripState.DRIVING
        halt(robot)

    def _floor(self, margin: float, pose: WorldPose) -> Costmap:
        robot = self._robot
        points: list[Sequence[float]] = [pose[:2], self._route.point]
        radius = self._girth + margin
        if self._given is not None:
            points += [
                self._given.min(axis=0).tolist(),
                self._given.max(axis=0).tolist(),
            ]
            radius = GIVEN_SHARE * self._girth
        return robot.simulation.core.floors.of(radius, points)

    def _plan(self, pose: WorldPose, *, around: bool = False) -> bool:
        """Plan a path to the goal.

        Parameters
        ----------
        pose : WorldPose
            Pose of the robot.
        around : bool
            Whether other robots near this one also block the path. Boxes block it,
            unless there is no path around them.

        Returns
        -------
        bool
            Whether there is a path. If not, the robot keeps the path that it had
            before.
        """
        self._since = self._robot.simulation.time
        if self._given is not None:
            return self._take_given(self._given, pose)
        why = None
        margins = tuple(dict.fromkeys((self._safety, 0.0)))
        outlines = self._outlines(pose, around)
        # Try in this order: around boxes with clearance and without, then through
        # boxes, which the robot may push away.
        for margin, bodies in [
            *((margin, outlines) for margin in margins),
            *((margin, []) for margin in margins if outlines and not around),
        ]:
            try:
                costs = self._floor(margin, pose)
                if bodies:
                    costs = costs.with_polygons(
                        bodies, self._girth + margin + costs.resolution
                    )
                self._path = self._find_path(costs, pose)
            except NoPathError as error:
                why = why or error
                continue

            self._progress[0], self._margin = 0.0, margin
            self._shortest = math.inf
            self._around = self._near_robots(pose) if around else {}
            return True

        if not around:
            self._state, self._message = TripState.NO_PATH, str(why)
            log.warning("robot %s: %s", shown(self._robot.name), why)
        return False

    def _take_given(self, path: F8, pose: WorldPose) -> bool:
        """Follow the given path, starting from its point that is nearest to the robot.

        Returns
        -------
        bool
            Whether no wall is in the way.
        """
        self._path, self._margin, self._shortest = path, 0.0, math.inf
        if self._progress[0] == 0.0:
            # The robot may have moved since the path was planned, so search for the
            # nearest point within `JOIN_M` of the start (pure pursuit searches two
            # lookahead distances). In a longer search, a path that crosses itself would
            # be joined too late.
            lookahead = np.array([JOIN_M / 2])
            at = np.array([tuple(pose)])
            local.pure_pursuit(path[None], at, lookahead, self._progress)
        floor = self._floor(0.0, pose)
        ahead = [pose[:2], *self._rest(path).tolist()]
        # The robot may stand nearer to a wall than the path may be, so skip the points
        # there.
        while len(ahead) > 1 and not floor.is_free(ahead[0]):
            del ahead[0]
        for a, b in itertools.pairwise(ahead):
            if not floor.is_clear(a, b):
                ends = " and ".join(f"({x:.3f}, {y:.3f})" for x, y in (a, b))
                self._state = TripState.NO_PATH
                self._message = f"the path leads through a wall between {ends}"
                log.warning("robot %s: %s", shown(self._robot.name), self._message)
                return False
        return True

    def _find_path(self, costs: Costmap, pose: WorldPose) -> F8:
        """Return a path from the robot to the goal, (n, 2), m, or raise NoPathError."""
        start: Sequence[float] = pose[:2]
        if not costs.is_free(start):
            # The robot stands nearer to a wall or body than a path may be.
            out = costs.nearest_free(start)
            if out is not None and hypot(out[0] - pose.x, out[1] - pose.y) <= OUT_M:
                start = out
        path = costs.path(start, self._route.point, METHOD)
        return np.concatenate([[pose[:2]], path])

    def _outlines(self, pose: WorldPose, around: bool) -> list[F8]:
        """Return the outlines of boxes, and with `around` of near robots, each (k, 2), m."""
        sim = self._robot.simulation
        engine = sim.core.engine
        chosen = self._are_others() & ~_are_robots(sim)
        if around:
            chosen[[sim.snapshot.rows[name] for name in self._near_robots(pose)]] = True
        found = []
        for row in np.flatnonzero(chosen).tolist():
            x, y, th = sim.snapshot.state.pose[row].tolist()
            c, s = cosine_sine(th)
            for part in engine.outline(row):
                px, py = np.asarray(part, np.float64).T
                found.append(np.stack([x + c * px - s * py, y + s * px + c * py], 1))
        return found

    def _near_robots(self, pose: WorldPose) -> dict[str, tuple[float, float]]:
        """Return the robots that a blocked robot plans around, with positions, m."""
        sim = self._robot.simulation
        near = self._are_others() & (self._gaps(pose) <= BLOCKERS_M)
        poses, rows = sim.snapshot.state.pose, sim.snapshot.rows
        return {
            name: (float(poses[rows[name], 0]), float(poses[rows[name], 1]))
            for name in sim.core.robots
            if near[rows[name]]
        }

    def _are_others(self) -> NDArray[np.bool_]:
        """Return which bodies are obstacles for the robot, (n,)."""
        snapshot = self._robot.simulation.snapshot
        # Ghosts are no obstacles, and neither are the robot itself and its trailers.
        found: NDArray[np.bool_] = (snapshot.state.mask & int(Visible.OBSTACLE)) != 0
        train, row = (
            self._robot.simulation.core.engine.bodies.train,
            snapshot.rows[self._robot.name],
        )
        while row >= 0:
            found[row] = False
            # `train` has no rows if the world has no trailers.
            row = int(train[row, FOLLOWER]) if len(train) else -1
        return found

    def _gaps(self, pose: WorldPose) -> F8:
        """Return the distance of all bodies from the robot's edge, (n,), m."""
        robot = self._robot
        dx, dy, _ = (robot.simulation.snapshot.state.pose - pose).T
        gaps: F8 = (
            np.sqrt(dx * dx + dy * dy)
            - robot.simulation.core.engine.bodies.radius
            - robot.spec.radius
        )
        return gaps

    def _left(self, path: F8) -> float:
        """Return the length of the path in front of the robot, m."""
        return length(self._rest(path))

    def _rest(self, path: F8) -> F8:
        """Return the path in front of the robot, (n, 2), m."""
        k = min(int(self._progress[0]), len(path) - 2)
        here = path[k] + (self._progress[0] - k) * (path[k + 1] - path[k])
        return np.concatenate([[here], path[k + 1 :]])

    def _follow(self, pose: WorldPose) -> None:
        """Drive along the path."""
        robot = self._robot
        now = robot.simulation.time
        path = self._path
        assert path is not None
        curvature, ahead, left, end = self._pursued(path, pose)
        to_go = self._left(path)
        if to_go < self._shortest - PROGRESS_M:
            self._shortest, self._since = to_go, now
            self._state = TripState.DRIVING
        elif now - self._since > self._patience:
            self._state = TripState.BLOCKED
            if self._given is None:
                self._replans += 1
                self._plan(pose, around=True)

        speed = min(self._speed, max(end / APPROACH_S, SLOWEST))
        avoided = self._avoided(pose)
        if avoided.any() and self._avoidance is not None:
            self._avoidance.avoided = avoided
            away = hypot(ahead, left)
            c, s = cosine_sine(pose.th)
            share = speed / away if away > 0.0 else 0.0
            self._avoidance.wanted = (
                share * (c * ahead - s * left),
                share * (s * ahead + c * left),
            )
            self._avoidance.act()
            return

        drive_arc(robot, curvature, ahead, left, speed, turn_first=TURN_FIRST)

    def _avoided(self, pose: WorldPose) -> NDArray[np.bool_]:
        """Return which bodies the robot must avoid now, (n,).

        Paths lead around boxes, and around robots that still stand where they stood
        during planning. ORCA does not avoid these: it keeps more distance than a narrow
        passage has.
        """
        sim = self._robot.simulation
        if not self._avoids:
            return np.zeros(len(sim.snapshot.rows), np.bool_)
        near: NDArray[np.bool_] = (
            self._are_others() & _are_robots(sim) & (self._gaps(pose) < NEAR_M)
        )
        rows, poses = sim.snapshot.rows, sim.snapshot.state.pose
        for name, (x, y) in self._around.items():
            row = rows.get(name)
            if row is not None:
                px, py, _ = poses[row].tolist()
                near[row] &= hypot(px - x, py - y) > MOVED_M
        return near

    def _pursued(self, path: F8, pose: WorldPose) -> tuple[float, float, float, float]:
        """Return the arc to the farthest point of the path within the lookahead distance.

        The straight line to this point is free of walls.

        Returns
        -------
        tuple of float
            Curvature, 1/m; the point in the frame of the robot, x and y, m; and its
            distance from the end of the path, m. See
            `botyard.navigation.local.pure_pursuit`.
        """
        floor = self._floor(self._margin, pose)
        c, s = cosine_sine(pose.th)
        curvature = ahead = left = end = 0.0
        for share in SHORTER:
            curvature, ahead, left, end = local.pure_pursuit(
                path[None],
                np.array([tuple(pose)]),
                np.array([LOOKAHEAD_M * share]),
                self._progress,
            )[0].tolist()
            point = pose.x + c * ahead - s * left, pose.y + s * ahead + c * left
            # A robot that stands too near to a wall has no clear line at all.
            if floor.is_clear(pose[:2], point) or not floor.is_free(pose[:2]):
                break
        return curvature, ahead, left, end

    def get_state(self) -> list[Any]:
        """Return the state, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            Route, times, path with the position on it, state of the trip and of ORCA.
        """
        route = self._route
        return [
            [route.index, route.direction, route.is_at_end],
            [self._rest_until, self._since, self._started],
            None if self._path is None else self._path.tolist(),
            [float(self._progress[0]), self._margin, min(self._shortest, 1e300)],
            [self._is_turning, self._reached_count, self._replans],
            [str(self._state), self._message],
            [[name, x, y] for name, (x, y) in self._around.items()],
            None if self._avoidance is None else self._avoidance.get_state(),
        ]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`, of a trip with the same number of goals.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        on_route, times, corners, place, counts, texts, around, avoidance = state
        name, message = texts
        path = None if corners is None else np.array(corners, np.float64)
        if path is not None and (
            path.ndim != 2
            or path.shape[1] != 2
            or len(path) < 2
            or not np.isfinite(path).all()
        ):
            raise ValueError("expected a path of at least two points x, y")
        progress, margin, shortest = map(finite, place)
        if not 0.0 <= progress <= (0 if path is None else len(path) - 1):
            raise ValueError(
                "expected a position on the path (number of the segment plus a fraction), "
                f"found {progress}"
            )
        if not 0.0 <= margin <= MAX_SAFETY_M:
            raise ValueError(
                f"expected a clearance of 0 to {MAX_SAFETY_M:g} m, found {margin}"
            )
        trip_state = TripState(name)
        is_turning, reached, replans = counts
        rest_until, since, started = map(finite, times)
        near = {str(one): (finite(x), finite(y)) for one, x, y in around}
        if self._avoidance is not None:
            self._avoidance.set_state(avoidance)
        self._route.set_state(*on_route)
        self._path, self._map = path, self._robot.simulation.core.engine.grid
        self._progress[0], self._margin, self._shortest = progress, margin, shortest
        self._rest_until, self._since, self._started = rest_until, since, started
        self._is_turning, self._around = bool(is_turning), near
        self._reached_count, self._replans = int(reached), int(replans)
        self._state, self._message = trip_state, str(message)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""


__all__ = ["GoTo"]
