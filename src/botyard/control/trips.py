"""Operations that send robots to goals: one robot, several robots, or robots to docks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botyard.api.arguments import one_of, place
from botyard.control.caller import Caller, Level
from botyard.control.operation import (
    NAMES,
    Operation,
    a_pose,
    argument,
    boolean,
    each,
    name,
    optional,
    real,
)
from botyard.control.site import Site, for_each
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.names import shown
from botyard.numerics.elementary import hypot
from botyard.sim.simulation import Robot
from botyard.sim.trips import ORDERS

MAX_GOALS: Final = 100
"""Largest number of goals of a trip."""
MAX_CORNERS: Final = 1000
"""Largest number of corners of a given path."""
MAX_GOAL_SPEED: Final = 100.0
"""Highest speed of a trip, m/s; the limits of the robot's model apply as well."""
Goal = tuple[float, ...]
"""Goal: x, y, with or without th; m and rad."""


def _goal(value: Any, what: str, /) -> tuple[float, ...]:
    x, y, th = place(value, what)
    return (x, y, th) if len(value) > 2 else (x, y)


def _order(value: Any, what: str, /) -> str:
    return one_of(value, what, ORDERS)


@dataclass(frozen=True, kw_only=True)
class GoTo(Operation[None]):
    """Send a robot to goals on planned paths, or end its trip.

    The controller ``go_to`` drives the robot while no client does.

    Parameters
    ----------
    robot : str
        Name of the robot.
    goals : tuple of (x, y) or (x, y, th)
        Goals one after the other, m and rad. Without any, the robot's controller is
        removed, and the robot stops.
    order : str
        ``once``, ``loop`` or ``back``, see `botyard.controllers.goto.GoTo`.
    speed : float, optional
        Maximum speed, m/s.
    path : tuple of (x, y)
        Path to follow to the only goal, m; empty: planned paths.
    """

    robot: str = argument(name)
    goals: tuple[tuple[float, ...], ...] = argument(each(_goal, MAX_GOALS))
    order: str = argument(_order, "once")
    speed: float | None = argument(optional(real(0.0, MAX_GOAL_SPEED, "m/s")), None)
    path: tuple[tuple[float, ...], ...] = argument(each(_goal, MAX_CORNERS), ())
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Give the robot the controller ``go_to`` with the goals, or remove its controller.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle, or does not drive and turn.
        """
        robot = control.robot(self.robot)
        if not self.goals:
            robot.set_controller(None)
            return
        options: dict[str, Any] = {} if self.speed is None else {"speed": self.speed}
        if self.path:
            options["path"] = [list(corner[:2]) for corner in self.path]
        robot.set_controller(
            "go_to",
            points=[list(goal) for goal in self.goals],
            order=self.order,
            **options,
        )


@dataclass(frozen=True, kw_only=True)
class SendRobots(Operation[None]):
    """Send several robots to goals, each to a place of its own at every goal.

    One robot drives to the goals themselves. Of several robots, each gets the free
    place at a goal that is nearest to it. Each robot drives as after `GoTo`.

    Parameters
    ----------
    robots : tuple of str
        Names of the robots.
    goals : tuple of (x, y) or (x, y, th)
        Goals one after the other, m and rad. Without any, the controllers of the robots
        are removed, and the robots stop.
    order : str
        ``once``, ``loop`` or ``back``, see `botyard.controllers.goto.GoTo`.
    speed : float, optional
        Maximum speed, m/s.
    queue : bool
        Whether the goals come after those that a robot has not reached yet.
    """

    robots: tuple[str, ...] = argument(NAMES)
    goals: tuple[Goal, ...] = argument(each(_goal, MAX_GOALS))
    order: str = argument(_order, "once")
    speed: float | None = argument(optional(real(0.0, MAX_GOAL_SPEED, "m/s")), None)
    queue: bool = argument(boolean, False)
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Send the robots.

        Raises
        ------
        UnknownNameError
            The only robot is unknown.
        WorldError
            Some robots are unknown, or do not drive and turn; the others are sent.
        """
        names = list(dict.fromkeys(self.robots))
        robots = [control.sim.robots[n] for n in names if n in control.sim.robots]
        own = _places_at(control, robots, self.goals)

        def send(robot: str, _: None) -> None:
            GoTo(
                robot=robot,
                goals=(*_queued(control.robot(robot), self.queue), *own.get(robot, ())),
                order=self.order,
                speed=self.speed,
            ).perform(control, caller)

        for_each(dict.fromkeys(names), send, "robots")


@dataclass(frozen=True, kw_only=True)
class DockRobots(Operation[None]):
    """Send robots to the docks of the map, each to the nearest dock that is left.

    Robots that get no dock drive to free places next to the dock that is nearest to
    them.

    Parameters
    ----------
    robots : tuple of str
        Names of the robots.
    speed : float, optional
        Maximum speed, m/s.
    """

    robots: tuple[str, ...] = argument(NAMES)
    speed: float | None = argument(optional(real(0.0, MAX_GOAL_SPEED, "m/s")), None)
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Send the robots.

        Raises
        ------
        WorldError
            The map has no dock; or some robots are unknown, or do not drive and turn,
            and the others are sent.
        """
        docks = [
            (*p.pose[:2], p.pose.th) if p.has_heading else tuple(p.pose[:2])
            for p in control.sim.scene.places
            if "dock" in p.kind.lower()
        ]
        if not docks:
            raise WorldError("the map has no dock")
        names = list(dict.fromkeys(self.robots))
        robots = [control.sim.robots[n] for n in names if n in control.sim.robots]
        goals = _nearest_each(robots, docks)
        waiting: dict[Goal, list[Robot]] = {}
        for robot in robots:
            if robot.name not in goals:
                waiting.setdefault(_nearest(robot, docks), []).append(robot)
        for dock, some in waiting.items():
            goals |= {n: g[0] for n, g in _places_at(control, some, [dock]).items()}

        def send(robot: str, _: None) -> None:
            control.robot(robot)
            GoTo(robot=robot, goals=(goals[robot],), speed=self.speed).perform(
                control, caller
            )

        for_each(dict.fromkeys(names), send, "robots")


@dataclass(frozen=True, kw_only=True)
class SetPoseEstimate(Operation[None]):
    """Tell the programs of a robot where it is, as RViz's tool "2D Pose Estimate" does.

    ROS publishes the pose on ``initialpose``, or adopts it if botyard replaces the
    localization. The robot itself does not move.

    Parameters
    ----------
    robot : str
        Name of the robot.
    pose : Pose
        Pose in the frame of the map: m, m, rad.
    """

    robot: str = argument(name)
    pose: Pose = argument(a_pose)
    level = Level.DRIVE

    def perform(self, control: Site, caller: Caller) -> None:
        """Pass the pose to the programs of the robot.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            No interface takes pose estimates of the robot.
        """
        robot = control.robot(self.robot)
        taken = [take(robot.name, self.pose) for take in control.estimators]
        if not any(taken):
            raise WorldError(
                f"{shown(robot.name)}: a pose estimate is for programs of ROS, and no ROS "
                "interface has the topic initialpose of this robot here"
            )


def _nearest(robot: Robot, places: Iterable[Goal]) -> Goal:
    """Return the place that is nearest to a robot, as the crow flies."""
    at = robot.truth
    return min(places, key=lambda place: hypot(place[0] - at.x, place[1] - at.y))


def _queued(robot: Robot, queue: bool) -> tuple[Goal, ...]:
    """Return the goals that a robot has not reached yet if `queue` is set, otherwise none."""
    program, trip = robot.simulation.core.programs.by_robot.get(robot.name), robot.trip
    if not queue or program is None or trip is None:
        return ()
    goals = tuple(tuple(goal) for goal in program.options.get("points", ()))
    if program.options.get("order", "once") != "once":
        return goals
    return goals[trip.goals_reached :]


def _places_at(
    control: Site, robots: Sequence[Robot], goals: Iterable[Goal]
) -> dict[str, list[Goal]]:
    """Return the goals of each robot: of several robots, each has places of its own."""
    own: dict[str, list[Goal]] = {robot.name: [] for robot in robots}
    if len(robots) == 1:
        own[robots[0].name] = list(goals)
        return own
    if not robots:
        return own
    largest = max((robot.spec for robot in robots), key=lambda spec: spec.radius)
    for goal in goals:
        at = Pose(goal[0], goal[1], goal[2] if len(goal) > 2 else 0.0)
        places = control.sim.core.places.near(largest, at, len(robots))
        heading = goal[2:]
        found = _nearest_each(robots, [(p.x, p.y, *heading) for p in places], own)
        for robot_name, nearest in found.items():
            own[robot_name].append(nearest)
    return own


def _nearest_each(
    robots: Sequence[Robot],
    places: Sequence[Goal],
    before: Mapping[str, Sequence[Goal]] | None = None,
) -> dict[str, Goal]:
    """Assign places to robots, the shortest distance first; each place is used once.

    Parameters
    ----------
    robots : sequence of Robot
        The robots.
    places : sequence of goals
        Places, m.
    before : mapping of str to sequence of goals
        Goals that each robot reaches first, in order: it starts from the last of them. By
        default it starts where it is.
    """
    starts = {
        robot.name: ((before or {}).get(robot.name) or [robot.truth[:2]])[-1]
        for robot in robots
    }
    pairs = sorted(
        (hypot(place[0] - at[0], place[1] - at[1]), k, robot)
        for robot, at in starts.items()
        for k, place in enumerate(places)
    )
    found: dict[str, Goal] = {}
    taken: set[int] = set()
    for _, k, robot in pairs:
        if robot not in found and k not in taken:
            found[robot] = places[k]
            taken.add(k)
    return found


__all__ = ["DockRobots", "GoTo", "SendRobots", "SetPoseEstimate"]
