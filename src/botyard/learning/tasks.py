"""Tasks: what is to be learned in many worlds at once, as functions of arrays.

A task sees `botyard.Worlds` and writes into arrays that it is given; nothing is called for each world. All that it draws at random is a
function of the seed of a world, of the number of its episode, and of the draw, so that any episode can be repeated alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from botyard import elementwise
from botyard.elementary import cos, sin
from botyard.engine.rng import stream_keys, uniform
from botyard.errors import ArgumentError
from botyard.model.mapbuilder import MapBuilder
from botyard.model.robot import Axes, MotionLimits, RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec
from botyard.sim.worldmaps import Scenes
from botyard.sim.worlds import Worlds

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]

TASK_STREAM: Final = (1 << 32) + 16
"""Device number of what tasks draw, in the random streams of episodes."""


class EpisodeDraws:
    """Draws for some worlds, each from the stream of its present episode; the next call gives other numbers.

    Parameters
    ----------
    worlds : Worlds
        All worlds.
    chosen : (k,) int array
        Numbers of those that it draws for.
    """

    def __init__(self, worlds: Worlds, chosen: I8) -> None:
        self._keys = stream_keys(worlds.seeds[chosen], TASK_STREAM)
        self._drawn = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> F8:
        """A number for each world, uniform in [low, high), (k,)."""
        self._drawn += 1
        return low + (high - low) * uniform(self._keys, self._drawn - 1)


class Task(ABC):
    """What is to be learned.

    One object serves one batch of worlds: it may keep arrays with a row for each world. `begin` is called once with the worlds, `on_reset`
    whenever episodes have begun (goals, for example), and after each step `reward`, `done` and `observe`.

    Attributes
    ----------
    robots : sequence of models
        Robots of each world.
    scenes : Scene, path, sequence of them, or function of a number
        The maps, as for `Worlds`.
    step : float
        Time of a step, s.
    max_steps : int
        Episodes are truncated after so many steps.
    poses : "free" or None
        Where robots begin, as for `Worlds.reset`.
    sensors : sequence of str or None
        Which sensors measure, as for `Worlds`.
    """

    robots: Sequence[str | Path | RobotSpec] = ("p3dx",)
    scenes: Scenes = Scene()
    step: float = 0.1
    max_steps: int = 300
    poses: Any = "free"
    sensors: Sequence[str] | None = None

    @abstractmethod
    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an observation, two arrays of one shape."""

    @abstractmethod
    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an action, two arrays of one shape."""

    def begin(self, w: Worlds) -> None:  # noqa: B027 - many tasks keep nothing
        """Make the arrays that the task keeps; called once."""

    @abstractmethod
    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Episodes have begun in the worlds `mask` (numbers, (k,)): choose their goals."""

    @abstractmethod
    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commands of an action for each world, (n, …), into `Worlds.command`."""

    @abstractmethod
    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observation of each world into `out`, (n, …) float32."""

    @abstractmethod
    def reward(self, w: Worlds, out: F8) -> None:
        """Write the reward of the step that was done into `out`, (n,) float64."""

    @abstractmethod
    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """Write whether each episode has ended by itself, and whether it is cut off; both (n,) bool."""

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """What else is known of each world, arrays of (n, …): not for the policy. Called after each step."""
        return {}


def lidar_robot(rays: int = 181, *, radius: float = 0.2, range_max: float = 8.0, fov: float = math.pi) -> RobotSpec:
    """A round robot with a lidar, which does at once what it is told: 1 m/s, 2 rad/s.

    Parameters
    ----------
    rays : int
        Rays of the lidar.
    radius, range_max : float
        Of the body, and of the lidar, m.
    fov : float
        Field of view, rad.
    """
    outline = tuple((radius * cos(math.pi * k / 6), radius * sin(math.pi * k / 6)) for k in range(12))
    lidar = LaserSpec(type_name="lidar", samples=rays, fov=fov, range_max=range_max, range_noise=0.01)
    limits = MotionLimits(max_speed=Axes(1.0, 0.0, 2.0), accel=Axes(), decel=Axes())
    return RobotSpec(name="lidar_robot", outline=outline, limits=limits, lasers=(lidar,))


def clutter(number: int, *, size: float = 10.0, obstacles: int = 10) -> Scene:
    """A walled square with blocks and pillars at random places; another one for each number. `size`: its edge, m."""
    builder = MapBuilder(f"clutter {number}").rectangle(-size / 2, -size / 2, size, size)
    return builder.obstacles(obstacles, seed=number + 1, size=(0.4, 1.6), clearance=0.7).scene()


class Navigate(Task):
    """Drive to a goal among walls, by lidar.

    Observation, float32: ranges divided by the lidar's range; distance of the goal divided by 10 m, at most 1; cosine and sine of its
    bearing; velocities forward and of rotation as shares of the greatest. Action: the same two velocities, −1 … 1. The reward is the
    progress towards the goal, m, 5 more at the goal and 5 less at an obstacle, and 0.01 less for each step. An episode ends at the goal and
    at an obstacle; ``success`` in infos says which. The goal is known exactly, the way to it is not.

    Parameters
    ----------
    rays : int
        Rays of the lidar.
    maps : int
        Number of different maps.
    goal_m : float
        Distance at which the goal is reached, m.
    robot : RobotSpec, optional
        Another robot with one laser.
    scenes : Scenes, optional
        Other maps.
    max_steps : int
        Steps of an episode.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    STEP_COST: ClassVar[float] = 0.01
    FAR_M: ClassVar[float] = 10.0

    def __init__(
        self,
        *,
        rays: int = 181,
        maps: int = 32,
        goal_m: float = 0.5,
        robot: RobotSpec | None = None,
        scenes: Scenes | None = None,
        max_steps: int = 300,
    ) -> None:
        spec = lidar_robot(rays) if robot is None else robot
        if not spec.lasers:
            raise ArgumentError(f"robot: expected one with a laser, found {spec.name}")
        self.robots = (spec,)
        self.scenes = [clutter(k) for k in range(maps)] if scenes is None else scenes
        self.max_steps, self.goal_m = max_steps, goal_m
        self._range = spec.lasers[0].range_max
        speed = spec.limits.max_speed
        self._speed = np.array([speed.x, speed.a])
        self.sensors = ("laser",)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """See the class."""
        rays = w.ranges.shape[2]
        low, high = np.zeros(rays + 5, np.float32), np.ones(rays + 5, np.float32)
        low[rays + 1 :] = -1.0
        low[rays + 3 :], high[rays + 3 :] = -2.0, 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Shares of the greatest velocities."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the arrays of goals."""
        n = len(w)
        self.goals: F8 = np.zeros((n, 2))
        self._far: F8 = np.zeros(n)
        self._before: F8 = np.zeros(n)
        self._to: F8 = np.zeros((n, 2))

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Choose goals."""
        self.goals[mask] = w.sample_free(mask)[:, 0, :2]
        self._look(w)

    def _look(self, w: Worlds) -> None:
        np.subtract(self.goals, w.pose[:, 0, :2], out=self._to)
        self._far = np.sqrt(self._to[:, 0] * self._to[:, 0] + self._to[:, 1] * self._to[:, 1])

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Take velocities."""
        w.command[:, 0, 0] = actions[:, 0] * self._speed[0]
        w.command[:, 0, 2] = actions[:, 1] * self._speed[1]
        self._before = self._far

    def reward(self, w: Worlds, out: F8) -> None:
        """Progress, the goal, obstacles, the step."""
        self._look(w)
        hit = w.contact[:, 0] != 0
        at_goal = self._far < self.goal_m
        out[:] = (
            self._before - self._far + self.GOAL_REWARD * at_goal - self.GOAL_REWARD * (hit & ~at_goal) - self.STEP_COST
        )

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """At the goal or at an obstacle; after `max_steps`."""
        terminated[:] = (w.contact[:, 0] != 0) | (self._far < self.goal_m)
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """See the class."""
        rays = w.ranges.shape[2]
        np.divide(w.ranges[:, 0], np.float32(self._range), out=out[:, :rays])
        np.minimum(out[:, :rays], 1.0, out=out[:, :rays])
        out[:, rays] = np.minimum(self._far / self.FAR_M, 1.0)
        c, s = elementwise.cosine_sine(w.pose[:, 0, 2])
        far = np.maximum(self._far, 1e-9)
        out[:, rays + 1] = (c * self._to[:, 0] + s * self._to[:, 1]) / far
        out[:, rays + 2] = (c * self._to[:, 1] - s * self._to[:, 0]) / far
        out[:, rays + 3] = w.vel[:, 0, 0] / self._speed[0]
        out[:, rays + 4] = w.vel[:, 0, 2] / self._speed[1]

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """``success``: whether it is at the goal; ``distance`` of the goal, m."""
        return {"success": self._far < self.goal_m, "distance": self._far.copy()}


TASKS: Final[dict[str, type[Task]]] = {"Navigate": Navigate}


def find_task(task: str | Task | type[Task], **options: Any) -> Task:
    """A task by its name, of a class, or the task itself.

    Raises
    ------
    ArgumentError
        There is none of that name; a task itself takes no options.
    """
    if isinstance(task, Task):
        if options:
            raise ArgumentError(
                f"{', '.join(options)}: options are for the name or the class of a task, not for a task itself"
            )
        return task
    kind = TASKS.get(task) if isinstance(task, str) else task
    if not (isinstance(kind, type) and issubclass(kind, Task)):
        raise ArgumentError(f"task: expected one of {', '.join(TASKS)}, a Task or a class of them, found {task!r}")
    return kind(**options)


__all__ = ["TASKS", "EpisodeDraws", "Navigate", "Task", "clutter", "find_task", "lidar_robot"]
