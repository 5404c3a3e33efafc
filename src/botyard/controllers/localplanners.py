"""Controllers that avoid obstacles by a laser alone: the dynamic window and VFH+."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final, Unpack

import numpy as np

from botyard.api import arguments
from botyard.controllers.carmoves import CarMoves
from botyard.controllers.route import GoalDriver, GoalOptions
from botyard.controllers.steering import command_turn, halt
from botyard.engine.layout import F8
from botyard.errors import ArgumentError, WorldError
from botyard.navigation import local
from botyard.numerics.elementary import atan2, cosine_sine, hypot
from botyard.sim.simulation import Robot

APPROACH_S: Final = 1.5
"""Time to the goal below which a robot slows down, s."""


class LaserController(GoalDriver, ABC):
    """Controller that drives one robot to goals and avoids obstacles by the robot's laser.

    The controller knows the positions of goals relative to the robot.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    **options
        See `GoalOptions`.

    Raises
    ------
    ArgumentError
        An option is not valid.
    WorldError
        The robot has no laser or does not drive.
    """

    DRIVES_CARS = True

    def __init__(
        self,
        robot: Robot,
        seed: int,
        **options: Unpack[GoalOptions],
    ) -> None:
        # Refuse such a robot at once: without a scan it would drive blindly.
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
        kinematics = robot.spec.kinematics
        self._circle = kinematics.turning_radius
        self._car = CarMoves(robot, self._speed) if kinematics.steers else None

    @abstractmethod
    def choose(self, points: F8, goal_x: float, goal_y: float) -> tuple[float, float]:
        """Return the velocities towards a goal.

        Parameters
        ----------
        points : (1, p, 2) float64
            Obstacles in the robot's frame, m; NaN for rays without a hit.
        goal_x, goal_y : float
            Goal in the robot's frame, m.

        Returns
        -------
        v, w : float
            Linear velocity, m/s, and angular velocity, rad/s.
        """

    def act(self) -> None:
        """Read the scan, and command the robot for the next step."""
        robot = self._robot
        if not self._reads:
            robot.laser.subscribe(self.name)
            # Subscribe at the first call: a robot whose client drives needs no scans.
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
        ahead, left = c * dx + s * dy, c * dy - s * dx
        if self._car is None:
            v, w = self.choose(points, ahead, left)
        else:
            v, w = self._car.command(
                ahead, left, points[0], lambda x, y: self.choose(points, x, y)
            )
        command_turn(robot, v, w)

    def get_state(self) -> Any:
        """Return the state of the controller, see `botyard.controllers.base.Controller`."""
        goals = super().get_state()
        return goals if self._car is None else [goals, self._car.get_state()]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
        if self._car is not None:
            state, moves = state
            self._car.set_state(moves)
        super().set_state(state)

    def rest(self) -> None:
        """Unsubscribe from the laser until `act` is called again."""
        self._robot.laser.subscribe(self.name, on=False)
        self._reads = False


class DynamicWindow(LaserController):
    """Controller that uses the dynamic window approach (Fox, Burgard, Thrun 1997).

    See `botyard.navigation.local.dynamic_window`.

    Parameters
    ----------
    heading, clearance, velocity : float
        Weights α of the heading to the goal, β of the distance to obstacles, and γ of
        the speed.
    **options
        See `GoalOptions`.

    Raises
    ------
    ArgumentError
        A weight is below 0, all are 0, or an option is not valid.
    WorldError
        The robot has no laser or does not drive.
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
        """Return the velocities by the dynamic window, see `LaserController.choose`."""
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
            turning_radius=self._circle,
        )[0].tolist()
        return v, w


class FieldHistogram(LaserController):
    """Controller that uses VFH+ (Ulrich, Borenstein 1998).

    See `botyard.navigation.local.vector_field_histogram`.

    Parameters
    ----------
    window : float
        Distance beyond which obstacles are ignored, m; it must exceed the robot's radius plus
        `safety`.
    **options
        See `GoalOptions`.

    Raises
    ------
    ArgumentError
        The window is not larger than the robot's radius plus `safety`, or an option is not valid.
    WorldError
        The robot has no laser or does not drive.
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
        """Return the velocities by VFH+, see `LaserController.choose`."""
        robot = self._robot
        goal = hypot(goal_x, goal_y)
        found = local.vector_field_histogram(
            # Obstacles behind the goal do not matter.
            local.before(points, np.array([goal + self._radius])),
            np.array([atan2(goal_y, goal_x)]),
            np.array([robot.truth.th]),
            self._memory,
            radius=self._radius,
            turn_radius=np.array(
                [max(abs(robot.velocity.vx) / self._turn, self._circle)]
            ),
            window=self._window,
        )
        v, w = local.histogram_velocities(
            found, np.array([min(self._speed, goal / APPROACH_S)]), self._turn
        )
        if self._car is not None and not math.isnan(found[0, 0]):
            # A car cannot turn in place, so it must keep a least speed.
            v[0] = max(float(v[0]), local.SLOWEST * self._speed)
        return float(v[0]), float(w[0])

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of the goals; 1 for each blocked and 0 for each free sector of the
            histogram; and the last direction, rad, or None.
        """
        last = float(self._memory.last[0])
        return [
            super().get_state(),
            self._memory.blocked[0].tolist(),
            None if math.isnan(last) else last,
        ]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`.

        Raises
        ------
        TypeError, ValueError
            The state is not valid, or has another number of sectors.
        """
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
