"""Controllers that see obstacles only by a laser: the dynamic window and VFH+."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final, Unpack

import numpy as np

from botyard.api import arguments
from botyard.controllers.route import GoalDriver, GoalOptions
from botyard.controllers.steering import halt
from botyard.engine.layout import F8
from botyard.errors import ArgumentError, WorldError
from botyard.navigation import local
from botyard.numerics.elementary import atan2, cosine_sine, hypot
from botyard.sim.simulation import Robot

APPROACH_S: Final = 1.5
"""A robot slows down when it is less than this time away from its goal, s."""


class LaserController(GoalDriver, ABC):
    """Controller that drives one robot to goals by its laser.

    It knows the positions of goals relative to its own.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    **options
        See `GoalOptions`.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        **options: Unpack[GoalOptions],
    ) -> None:
        # Refused at once: without a scan the robot would drive blindly.
        if not robot.lasers:
            raise WorldError(
                f"expected a robot with a laser, found {robot.name}, which has none"
            )

        super().__init__(robot, seed, **options)
        limits = self._limits
        self._speed, self._turn = (
            min(self._goals.speed, limits.max_speed.x),
            min(limits.max_speed.a, math.pi),
        )
        self._radius = robot.spec.radius + self._safety
        self._reads = False

    @abstractmethod
    def choose(self, points: F8, goal_x: float, goal_y: float) -> tuple[float, float]:
        """Return the linear and angular velocity towards a goal, m/s and rad/s.

        Obstacles are points, (1, p, 2). Points and goal are in the robot's frame, m.
        """

    def act(self) -> None:
        """Read the scan, and command the robot for the next step."""
        robot = self._robot
        if not self._reads:
            robot.laser.subscribe(self.name)
            # Subscribed at the first call only: a robot whose client drives needs no
            # scans.
            self._reads = True

        pose = robot.truth
        goal = self._goals.goal(pose.x, pose.y)
        if goal is None:
            halt(robot)
            return

        scan = robot.laser.view()
        points = local.points_of(
            scan.ranges[None], scan.angles, scan.frame_pose, scan.range_max
        )
        c, s = cosine_sine(pose.th)
        dx, dy = goal[0] - pose.x, goal[1] - pose.y
        v, w = self.choose(points, c * dx + s * dy, c * dy - s * dx)
        robot.command(v=v, w=w)

    def rest(self) -> None:
        """Unsubscribe from the laser until `act` is called again."""
        self._robot.laser.subscribe(self.name, on=False)
        self._reads = False


class DynamicWindow(LaserController):
    """The dynamic window approach (Fox, Burgard, Thrun 1997).

    See `botyard.navigation.local.dynamic_window`.

    Parameters
    ----------
    heading, clearance, velocity : float
        Weights α, β and γ.
    **options
        See `GoalOptions`.
    """

    name = "dwa"

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        heading: float = 2.0,
        clearance: float = 0.2,
        velocity: float = 0.2,
        **options: Unpack[GoalOptions],
    ) -> None:
        super().__init__(robot, seed, **options)
        self._weights = (
            arguments.number(heading, "heading", low=0.0),
            arguments.number(clearance, "clearance", low=0.0),
            arguments.number(velocity, "velocity", low=0.0),
        )
        if not max(self._weights) > 0.0:
            raise ArgumentError(
                "heading, clearance, velocity: expected at least one above 0, found 0, 0, 0"
            )

    def choose(self, points: F8, goal_x: float, goal_y: float) -> tuple[float, float]:
        """Return the velocities, see `LaserController`."""
        robot = self._robot
        limits, moving = self._limits, robot.velocity
        v, w = local.dynamic_window(
            points,
            np.array([[goal_x, goal_y]]),
            np.array([[moving.vx, moving.w]]),
            dt=max(robot.simulation.dt, local.WINDOW_S),
            radius=self._radius,
            max_v=self._speed,
            max_w=self._turn,
            accel=(limits.accel.x, limits.accel.a),
            brake=(limits.decel.x, limits.decel.a),
            weights=self._weights,
        )[0].tolist()
        return v, w


class FieldHistogram(LaserController):
    """VFH+ (Ulrich, Borenstein 1998).

    See `botyard.navigation.local.vector_field_histogram`.

    Parameters
    ----------
    window : float
        Obstacles farther away are ignored, m; it exceeds the robot's radius plus
        `safety`.
    **options
        See `GoalOptions`.
    """

    name = "vfh"
    DEFAULTS = LaserController.DEFAULTS | GoalOptions(safety=0.1)

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        window: float = 2.0,
        **options: Unpack[GoalOptions],
    ) -> None:
        super().__init__(robot, seed, **options)
        self._window = arguments.number(
            window, "window", low=self._radius, above=True, unit="m"
        )
        self._memory = local.Histograms(1)

    def choose(self, points: F8, goal_x: float, goal_y: float) -> tuple[float, float]:
        """Return the velocities, see `LaserController`."""
        robot = self._robot
        goal = hypot(goal_x, goal_y)
        found = local.vector_field_histogram(
            # Obstacles behind the goal do not matter.
            local.before(points, np.array([goal + self._radius])),
            np.array([atan2(goal_y, goal_x)]),
            np.array([robot.truth.th]),
            self._memory,
            radius=self._radius,
            turn_radius=np.array([abs(robot.velocity.vx) / self._turn]),
            window=self._window,
        )
        v, w = local.histogram_velocities(
            found, np.array([min(self._speed, goal / APPROACH_S)]), self._turn
        )
        return float(v[0]), float(w[0])

    def get_state(self) -> list[Any]:
        """Return the state, see `botyard.controllers.base.Controller`."""
        last = float(self._memory.last[0])
        return [
            super().get_state(),
            self._memory.blocked[0].tolist(),
            None if math.isnan(last) else last,
        ]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`."""
        goals, blocked, last = state
        # A state of a version with another number of sectors cannot be restored.
        if len(blocked) != self._memory.blocked.shape[1]:
            raise ValueError(
                f"expected {self._memory.blocked.shape[1]} sectors, found {len(blocked)}"
            )

        super().set_state(goals)
        self._memory.blocked[0] = [int(bool(b)) for b in blocked]
        self._memory.last[0] = math.nan if last is None else float(last)


__all__ = ["DynamicWindow", "FieldHistogram"]
