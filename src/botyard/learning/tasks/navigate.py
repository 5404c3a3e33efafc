"""Learning task Navigate: drive to a goal among walls, by lidar."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.engine.batchlayout import TICK
from botyard.engine.layout import U1
from botyard.errors import ArgumentError
from botyard.learning.tasks.base import B1, F4, F8, I8, EpisodeDraws, Task
from botyard.learning.tasks.geometry import distances
from botyard.learning.tasks.robots import (
    Driving,
    clutter,
    lidar_robot,
    steered_by_angle,
)
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.navigation.kernels.goals import (
    Judged,
    distance_of_goal,
    judge_goal,
    observe_goal,
)
from botyard.worlds.maps import Scenes
from botyard.worlds.worlds import Worlds


class Navigate(Task):
    """Drive to a goal among walls, by lidar.

    Observation, float32, (rays + 5,):

    - ranges divided by the lidar's maximum range;
    - distance of the goal divided by 10 m, at most 1;
    - cosine and sine of its bearing;
    - linear and angular velocity as fractions of their maximum.

    Action, (2,): linear and angular velocity, −1 … 1. The robot knows the goal exactly,
    but not the path to it.

    The reward is the progress towards the goal, m, plus 5 at the goal, minus 5 for a
    contact, minus 0.01 for each step. An episode ends at the goal or on contact;
    ``success`` in infos states which.

    Parameters
    ----------
    rays : int
        Number of lidar rays.
    maps : int
        Number of different maps.
    goal_m : float
        Distance at which the goal counts as reached, m.
    robot : RobotSpec, optional
        Another robot with a laser. The second action of a car-like robot is its steering
        angle.
    scenes : Scenes, optional
        Other maps.
    max_steps : int
        Maximum number of steps of an episode.
    least_m : float
        Minimum distance between start and goal, m. A nearer goal is drawn again, up to
        `MAX_DRAWS` times.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    STEP_COST: ClassVar[float] = 0.01
    FAR_M: ClassVar[float] = 10.0
    MAX_DRAWS: ClassVar[int] = 50

    def __init__(
        self,
        *,
        rays: int = 181,
        maps: int = 32,
        goal_m: float = 0.5,
        robot: RobotSpec | None = None,
        scenes: Scenes | None = None,
        max_steps: int = 300,
        least_m: float = 0.0,
    ) -> None:
        spec = (
            lidar_robot(arguments.whole(rays, "rays", low=1))
            if robot is None
            else robot
        )
        if not isinstance(spec, RobotSpec):
            raise ArgumentError(
                f"robot: expected a RobotSpec, found {arguments.found(spec)}"
            )

        if not spec.lasers:
            raise ArgumentError(
                f"robot: expected a robot with a laser, found {spec.name}"
            )
        # A car's second action is its steering angle.
        spec = steered_by_angle(spec)
        self.robots: tuple[RobotSpec, ...] = (spec,)
        self._spec = spec
        maps = arguments.whole(maps, "maps", low=1)
        self.scenes = [self._map(k) for k in range(maps)] if scenes is None else scenes
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        self.goal_m: float = arguments.number(
            goal_m, "goal_m", low=0.0, above=True, unit="m"
        )
        self._least = arguments.number(least_m, "least_m", low=0.0, unit="m")
        self._range = spec.lasers[0].range_max
        self._drive = Driving(spec)
        self.sensors = ("laser",)

    @staticmethod
    def _map(number: int) -> Scene:
        """Return the default map with a number."""
        return clutter(number)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, which the class describes."""
        rays = w.ranges.shape[2]
        low, high = np.zeros(rays + 5, np.float32), np.ones(rays + 5, np.float32)
        low[rays + 1 :] = -1.0
        low[rays + 3 :], high[rays + 3 :] = -2.0, 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions: −1 … 1 of the maximum velocities or angle."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the arrays of goals, and bind the kernels to the worlds' arrays."""
        n, rays = len(w), w.ranges.shape[2]
        self.goals: F8 = np.zeros((n, 2))
        self._far: F8 = np.zeros((n, 1))
        self._before: F8 = np.zeros((n, 1))
        self._touches: U1 = np.zeros((n, 1), np.uint8)
        self._seen: F4 = np.zeros((n, rays + 5), np.float32)
        judged = self._judged = Judged(
            np.zeros((n, 1)), np.zeros((n, 1), np.uint8), np.zeros((n, 1), np.uint8)
        )
        self._rules = np.zeros(4)
        units = np.array([self._range, self.FAR_M, *self._drive.speed])
        # In the engine's arrays, rows of boxes precede rows of robots.
        robots = slice(len(w.box_names), None)
        # The kernels read the engine's arrays without a copy: a step of 1,024 worlds is
        # two calls.
        rows = w._rows
        self._measure = rows(
            distance_of_goal,
            lambda i, of: (of("pose")[robots], self.goals[i], self._far[i]),
        )
        self._see = rows(
            observe_goal,
            lambda i, of: (
                of("pose")[robots],
                of("vel")[robots],
                of("ranges"),
                self.goals[i],
                self._far[i],
                units,
                self._seen[i],
            ),
        )
        self._judge = rows(
            judge_goal,
            lambda i, of: (
                of("pose")[robots],
                self.goals[i],
                of("counts")[TICK : TICK + 1],
                self._before[i],
                self._far[i],
                self._touches[i],
                self._rules,
                Judged._make(column[i] for column in judged),
            ),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the kernels' bindings.

        The bindings point into the arrays of one environment: `begin` makes new
        bindings for a copy.
        """
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("_measure", "_see", "_judge")
        }

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Choose the goals where an episode has started."""
        self.goals[mask] = w.sample_free(mask)[:, 0, :2]
        # A small map may have no place that is far enough, so the number of draws is
        # limited.
        for _ in range(self.MAX_DRAWS if self._least > 0.0 else 0):
            near = mask[distances(w.pose[mask, 0], self.goals[mask]) < self._least]
            if not len(near):
                break
            self.goals[near] = w.sample_free(near)[:, 0, :2]

        self._measure()

    def hit(self, w: Worlds) -> B1:
        """Return whether the robot touched an obstacle in the last step.

        Returns
        -------
        (n,) bool
            True ends the episode of the world with a cost.
        """
        return np.asarray(w.contact[:, 0] != 0)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command[:, 0], actions)
        self._before[:] = self._far

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for progress and the goal, minus costs of contacts and steps."""
        self._touches[:, 0] = self.hit(w)
        # Read the attributes in each step, because `set_attr` may change them.
        self._rules[:] = self.goal_m, self.GOAL_REWARD, self.STEP_COST, self.max_steps
        self._judge()
        out[:] = self._judged.reward[:, 0]

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """End episodes at the goal, on contact, or after `max_steps`."""
        terminated[:] = self._judged.terminated[:, 0]
        truncated[:] = self._judged.truncated[:, 0]

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        self._see()
        out[:] = self._seen

    def marks(self, world: int) -> ArrayLike:
        """Return the goal of the robot, which images of the world mark."""
        return self.goals[world, None]

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (the goal is reached) and ``distance`` (of the goal, m)."""
        far = self._far[:, 0].copy()
        return {"success": far < self.goal_m, "distance": far}


__all__ = ["Navigate"]
