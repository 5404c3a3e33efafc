"""Actions of Nav2 that the simulator itself carries out, so that no Nav2 need run.

A fleet program, an adapter of Open-RMF or ``ros2 action send_goal`` finds the actions
of a robot under Nav2's names. The simulator's planner finds paths, and the controller
``go_to`` drives the robot.
"""

from __future__ import annotations

import itertools
import math
import time as wall
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.control import GoTo
from botyard.control.trips import MAX_CORNERS
from botyard.errors import BotyardError
from botyard.geometry import Pose
from botyard.interfaces.ros.members import Context
from botyard.names import shown
from botyard.navigation.paths import simplified
from botyard.navigation.planning import NoPathError, Obstruction
from botyard.numerics.elementary import atan2, hypot
from botyard.protocols.ros_messages.actions import ActionServer, Goal, Status
from botyard.protocols.ros_messages.frames import MAP
from botyard.protocols.ros_messages.graphoffers import Topic
from botyard.protocols.ros_messages.messages import Stamp, yaw_of
from botyard.protocols.ros_messages.nav2 import PACKAGE, Code, actions
from botyard.protocols.ros_messages.typenames import snake_case
from botyard.sim.simulation import Robot
from botyard.sim.trips import Trip, TripState

F8 = NDArray[np.float64]

SPACING_M: Final = 0.1
"""Spacing of the poses of a path, m."""
FEEDBACK_S: Final = 0.1
"""Least simulated time between two messages of feedback, s."""
MAX_POSES: Final = 10_000
"""Largest number of poses of a path to follow."""
MAX_PLAN_POSES: Final = 10_000
"""Largest number of interpolated poses between the corners of a path that is sent.

The poses of a longer path have a larger spacing than `SPACING_M`.
"""
SMOOTH_M: Final = 0.005
"""Greatest deviation of the simplified path that a robot follows from the path in a goal, m."""
METHOD: Final = "a_star_ps"
"""Method of planning: theta* takes up to 30 times as long for paths 3 % shorter."""
_PLANNING: Final = {
    Obstruction.START_OUTSIDE: Code.START_OUTSIDE_MAP,
    Obstruction.GOAL_OUTSIDE: Code.GOAL_OUTSIDE_MAP,
    Obstruction.START_BLOCKED: Code.START_OCCUPIED,
    Obstruction.GOAL_BLOCKED: Code.GOAL_OCCUPIED,
    Obstruction.NO_PASSAGE: Code.NO_VALID_PATH,
}


class _Codes(NamedTuple):
    """Error codes of an action for errors of four kinds.

    Attributes
    ----------
    unknown : Code
        For all other errors.
    frame : Code
        For an unknown frame.
    invalid : Code
        For an invalid pose or path.
    outside : Code
        For a position that is too far away.
    """

    unknown: Code
    frame: Code
    invalid: Code
    outside: Code


_CODES: Final = {
    "NavigateToPose": _Codes(
        Code.UNKNOWN, Code.TF_ERROR, Code.UNKNOWN, Code.GOAL_OUTSIDE_MAP
    ),
    "NavigateThroughPoses": _Codes(
        Code.THROUGH_UNKNOWN,
        Code.THROUGH_TF_ERROR,
        Code.THROUGH_UNKNOWN,
        Code.GOAL_OUTSIDE_MAP,
    ),
    "ComputePathToPose": _Codes(
        Code.NO_VALID_PATH,
        Code.PLANNER_TF_ERROR,
        Code.PLANNER_UNKNOWN,
        Code.GOAL_OUTSIDE_MAP,
    ),
    "FollowPath": _Codes(
        Code.CONTROLLER_UNKNOWN,
        Code.CONTROLLER_TF_ERROR,
        Code.INVALID_PATH,
        Code.INVALID_PATH,
    ),
}


class _Refused(Exception):
    """Reason for which a goal is refused: an error code of Nav2 and a text."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Task(NamedTuple):
    """Goal that the robot executes now by driving.

    Attributes
    ----------
    goal : Goal
        The goal.
            action : str
        Name of the action.
    program : object
        Program (controller with options) that drives the robot for this goal.
    total : int
        Number of poses in the goal.
    """

    goal: Goal
    action: str
    program: object
    total: int


class Nav2Actions:
    """Actions of one robot that drive it or plan its paths.

    Parameters
    ----------
    context : Context
        Shared parts of the graph.
    robot : Robot
        The robot.
    topic : callable
        Returns the absolute name of a topic of the robot.
    defer : callable
        Calls a function soon, after the present request has been answered.

    Attributes
    ----------
    servers : list of ActionServer
        The actions.
    topics : list of Topic
        The topic ``plan``, and the topics of the actions.
    """

    def __init__(
        self,
        context: Context,
        robot: Robot,
        topic: Callable[[str], str],
        defer: Callable[[Callable[[], None]], object],
    ) -> None:
        self._c, self._robot = context, robot
        self._task: _Task | None = None
        self._told = 0.0
        self._path: tuple[tuple[float, float], ...] = ()
        navigate = partial(self._navigate, "NavigateToPose")
        through = partial(self._navigate, "NavigateThroughPoses")
        about: dict[str, tuple[Callable[[Goal], None], str]] = {
            "NavigateToPose": (navigate, "drive to a pose, on a planned path"),
            "NavigateThroughPoses": (through, "drive to poses, one by one"),
            "ComputePathToPose": (self._compute, "plan a path, and return it"),
            "FollowPath": (self._follow, "drive on a given path to its end"),
        }
        self.servers = [
            ActionServer(
                topic(snake_case(name)),
                f"{PACKAGE}/{name}",
                context.types,
                partial(self._execute, about[name][0]),
                stamp=context.stamp,
                clock=wall.monotonic,
                defer=defer,
                about=about[name][1],
                operation=GoTo,
                canceled=self._cancel,
            )
            for name in actions(context.types.distro)
        ]
        self._plan = Topic(
            topic("plan"),
            "nav_msgs/Path",
            lambda stamp: self._path_message(stamp, self._path),
            "path of the present trip, when it is planned",
            version=lambda: self._path,
            queue=1,
        )
        self.topics = [self._plan, *(t for s in self.servers for t in s.topics)]

    def tick(self) -> None:
        """Report the progress of the present goal, after a step."""
        for server in self.servers:
            server.expire()
        trip = self._robot.trip
        self._path = () if trip is None else trip.path
        task = self._task
        if task is None:
            return
        codes = _CODES[task.action]
        if task.goal.is_canceling or not task.goal.is_active:
            self._end(Status.CANCELED, Code.NONE, "")
        elif trip is None or self._current() is not task.program:
            text = "another controller drives the robot"
            self._end(Status.ABORTED, codes.unknown, text)
        elif trip.state is TripState.ARRIVED:
            self._end(Status.SUCCEEDED, Code.NONE, "")
        elif trip.state is TripState.NO_PATH:
            follows = task.action == "FollowPath"
            code = Code.NO_VALID_CONTROL if follows else self._why(trip)
            self._end(Status.ABORTED, code, trip.message)
        elif task.action == "FollowPath" and trip.state is TripState.BLOCKED:
            # FollowPath fails instead of planning again: its client, usually a behavior
            # tree, does that.
            text = "the robot makes no progress on the path"
            self._end(Status.ABORTED, Code.FAILED_TO_MAKE_PROGRESS, text)
        else:
            self._feedback(task, trip)

    def abort(self, why: str) -> None:
        """Abort the present goal, if there is one, and stop the robot.

        Parameters
        ----------
        why : str
            Reason for the client.
        """
        if self._task is not None:
            self._end(Status.ABORTED, _CODES[self._task.action].unknown, why)

    # -- work of goals

    def _execute(self, work: Callable[[Goal], None], goal: Goal) -> None:
        """Execute a goal. If it is refused, the present goal continues."""
        try:
            work(goal)
        except _Refused as error:
            goal.end(Status.ABORTED, error_code=int(error.code), error_msg=str(error))

    def _navigate(self, action: str, goal: Goal) -> None:
        """Execute a goal of NavigateToPose or NavigateThroughPoses."""
        request = goal.request
        poses = request.poses if hasattr(request, "poses") else [request.pose]
        goals = tuple(map(tuple, self._poses(action, poses)))
        self._check_place(self._robot.truth, Code.START_OUTSIDE_MAP, "start")
        self._drive(action, goal, len(poses), _CODES[action].unknown, goals=goals)

    def _follow(self, goal: Goal) -> None:
        """Execute a goal of FollowPath."""
        path = goal.request.path
        self._check_frame("FollowPath", path)
        if not 1 <= len(path.poses) <= MAX_POSES:
            text = f"expected a path of 1 to {MAX_POSES} poses, found {len(path.poses)}"
            raise _Refused(Code.INVALID_PATH, text)
        poses = self._poses("FollowPath", path.poses, has_frames=False)
        corners = simplified(
            np.array([pose[:2] for pose in poses]), SMOOTH_M, MAX_CORNERS
        )
        self._drive(
            "FollowPath",
            goal,
            1,
            Code.INVALID_PATH,
            goals=(tuple(poses[-1]),),
            path=tuple(map(tuple, corners.tolist())),
        )

    def _drive(
        self, action: str, goal: Goal, total: int, refused: Code, **trip: Any
    ) -> None:
        """Start the trip of a new goal, and end the present goal."""
        try:
            self._c.do(GoTo(robot=self._robot.name, **trip))
        except BotyardError as error:
            raise _Refused(refused, str(error)) from None
        # As in Nav2's servers, the replaced goal ends with an empty result (nav2_util,
        # simple_action_server.hpp).
        canceled = self._task is not None and self._task.goal.is_canceling
        status = Status.CANCELED if canceled else Status.ABORTED
        self._end(status, Code.NONE, "" if canceled else "a new goal has replaced it")
        if not total:
            goal.end(Status.SUCCEEDED, error_code=int(Code.NONE), error_msg="")
            return
        self._task, self._told = _Task(goal, action, self._current(), total), -math.inf

    def _why(self, trip: Trip) -> Code:
        """Return the planner's code for a goal without a path."""
        try:
            self._planned(self._robot.truth, trip.goal)
        except NoPathError as error:
            return _PLANNING[error.reason]
        # A path between the walls exists, so other bodies block it.
        return Code.NO_VALID_PATH

    def _planned(self, start: Sequence[float], end: Sequence[float]) -> F8:
        """Return the corners of a path between walls, (n, 2), m."""
        robot = self._robot
        floors = robot.simulation.core.floors
        floor = floors.of(robot.spec.radius, [start[:2], end[:2]])
        # Use the method of `go_to`, so that the robot drives on this path.
        return floor.path(start[:2], end[:2], METHOD)

    def _compute(self, goal: Goal) -> None:
        """Execute a goal of ComputePathToPose."""
        request, robot = goal.request, self._robot
        (end,) = self._poses("ComputePathToPose", [request.goal])
        start: Pose = robot.truth
        if request.use_start:
            (start,) = self._poses("ComputePathToPose", [request.start], is_start=True)
        else:
            self._check_place(start, Code.START_OUTSIDE_MAP, "start")
        begin = wall.perf_counter()
        try:
            path = self._planned(start, end)
        except NoPathError as error:
            raise _Refused(_PLANNING[error.reason], str(error)) from None
        except BotyardError as error:
            raise _Refused(Code.NO_VALID_PATH, str(error)) from None
        points = [(x, y) for x, y in path.tolist()]
        goal.end(
            Status.SUCCEEDED,
            path=self._path_message(self._c.stamp(), points, end.th),
            planning_time=self._duration(wall.perf_counter() - begin),
        )

    def _current(self) -> object:
        return self._c.hub.sim.core.programs.all.get(self._robot.name, (None,))[-1]

    def _cancel(self) -> None:
        """End the present goal if a client has canceled it, also without a step."""
        if self._task is not None and self._task.goal.is_canceling:
            self._end(Status.CANCELED, Code.NONE, "")

    def _end(self, status: Status, code: Code, text: str) -> None:
        """End the present goal, if there is one, and its trip."""
        task, self._task = self._task, None
        if task is None:
            return
        # Stop only the goal's own program: another controller may drive the robot now.
        if status is not Status.SUCCEEDED and self._current() is task.program:
            self._c.do(GoTo(robot=self._robot.name, goals=()))
        task.goal.end(status, error_code=int(code), error_msg=text)

    def _poses(
        self,
        action: str,
        messages: Sequence[Any],
        *,
        has_frames: bool = True,
        is_start: bool = False,
    ) -> list[Pose]:
        """Return the poses of a request; raise `_Refused` if one is invalid or too far away.

        Parameters
        ----------
        action : str
            Name of the action.
        messages : sequence of geometry_msgs/PoseStamped
            The poses.
        has_frames : bool
            Whether each pose states its frame.
        is_start : bool
            Whether `messages` are the start of a path, not goals; this selects the
            error code.
        """
        codes = _CODES[action]
        far = Code.START_OUTSIDE_MAP if is_start else codes.outside
        poses = []
        for message in messages:
            if has_frames:
                self._check_frame(action, message)
            pose = _pose(message.pose)
            if not all(map(math.isfinite, pose)):
                text = f"expected finite numbers of a pose, found {_shown(pose)}"
                raise _Refused(codes.invalid, text)
            self._check_place(pose, far, "start" if is_start else "goal")
            poses.append(pose)
        return poses

    def _check_frame(self, action: str, message: Any) -> None:
        frame = str(message.header.frame_id)
        if frame not in ("", MAP):
            text = f'expected poses in the frame "{MAP}", found {shown(frame)}'
            raise _Refused(_CODES[action].frame, text)

    def _check_place(self, pose: Sequence[float], code: Code, what: str) -> None:
        """Refuse a position outside of the map, for which the costmap would grow too large."""
        robot = self._robot
        x0, y0, x1, y1 = robot.simulation.core.floors.extent(robot.truth)
        if not (x0 <= pose[0] <= x1 and y0 <= pose[1] <= y1):
            text = (
                f"the {what} is outside of the map: expected x from {x0:g} to {x1:g} m "
                f"and y from {y0:g} to {y1:g} m, found {_shown(pose)}"
            )
            raise _Refused(code, text)

    # -- messages

    def _feedback(self, task: _Task, trip: Trip) -> None:
        now = self._c.hub.sim.time
        if now - self._told < FEEDBACK_S - 1e-6:
            return
        self._told = now
        speed = hypot(self._robot.velocity.vx, self._robot.velocity.vy)
        # The feedback of each action takes the fields that its type has.
        task.goal.feedback(
            current_pose=self._stamped(self._c.stamp(), self._robot.truth),
            navigation_time=self._duration(now - trip.started),
            # A speed near 0 gives no estimate of the remaining time.
            estimated_time_remaining=self._duration(
                trip.distance_left / speed if speed > 0.01 else 0.0
            ),
            number_of_recoveries=min(trip.replans, 32767),
            distance_remaining=trip.distance_left,
            number_of_poses_remaining=task.total - trip.goals_reached,
            distance_to_goal=trip.distance_left,
            speed=speed,
        )

    def _duration(self, seconds: float) -> Any:
        whole = math.floor(seconds)
        return self._c.types.filled(
            "builtin_interfaces/Duration",
            {"sec": whole, "nanosec": int((seconds - whole) * 1e9)},
        )

    def _stamped(self, stamp: Stamp, pose: Pose) -> Any:
        messages = self._c.messages
        return self._c.types["geometry_msgs/PoseStamped"](
            messages.header(stamp, MAP), messages.pose(pose)
        )

    def _path_message(
        self,
        stamp: Stamp,
        corners: Sequence[tuple[float, float]],
        last: float | None = None,
    ) -> Any:
        """Return a path as nav_msgs/Path, with poses along it.

        Parameters
        ----------
        stamp : Stamp
            Time for the headers.
        corners : sequence of (float, float)
            Corners, m.
        last : float, optional
            Heading of the last pose, rad; by default along the path.
        """
        poses: list[Pose] = []
        length = sum(
            hypot(bx - ax, by - ay)
            for (ax, ay), (bx, by) in itertools.pairwise(corners)
        )
        spacing = max(SPACING_M, length / MAX_PLAN_POSES)
        for (ax, ay), (bx, by) in itertools.pairwise(corners):
            away = hypot(bx - ax, by - ay)
            count = max(1, math.ceil(away / spacing))
            heading = atan2(by - ay, bx - ax)
            poses += [
                Pose(ax + s * (bx - ax), ay + s * (by - ay), heading)
                for s in np.arange(count) / count
            ]
        if corners:
            end = poses[-1].th if poses else 0.0
            poses.append(Pose(*corners[-1], end if last is None else last))
        stamped = partial(self._stamped, stamp)
        message = self._c.types.filled(
            "nav_msgs/Path", {"poses": [stamped(pose) for pose in poses]}
        )
        message.header = self._c.messages.header(stamp, MAP)
        return message


def _pose(message: Any) -> Pose:
    """Return a geometry_msgs/Pose as x, y and yaw."""
    return Pose(
        float(message.position.x),
        float(message.position.y),
        yaw_of(message.orientation),
    )


def _shown(pose: Sequence[float]) -> str:
    """Return the numbers of a pose as text."""
    return "(" + ", ".join(f"{number:g}" for number in pose) + ")"


__all__ = ["Nav2Actions"]
