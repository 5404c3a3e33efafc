"""Exchange: robots on a circle swap places."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.learning.tasks.base import (
    B1,
    F4,
    F8,
    I8,
    START_STREAM,
    EpisodeDraws,
    TeamTask,
)
from botyard.learning.tasks.geometry import between, distances, seen_others, touching
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.numerics import elementwise
from botyard.numerics.elementary import sin
from botyard.worlds.worlds import Worlds


class Exchange(TeamTask):
    """Robots on a circle swap places with those opposite to them, without touching each
    other. There are no walls.

    Observation of each robot, float32, (7 + 4 k,) with k = min(robots − 1,
    `neighbours`): its goal, ahead and to the left, and the distance of that, as shares
    of the circle's diameter; sine and cosine of the goal's bearing; its velocities
    forward and of rotation as shares of the greatest; of each of the k nearest others,
    nearest first: place ahead and to the left, as shares of the diameter, and velocity
    ahead and to the left in the robot's own axes, m/s. Action of each robot, (2,):
    velocities forward and of rotation, −1 … 1.

    The reward of each robot is its progress towards its goal, m; 1 less while it and
    another one touch, whoever has driven into whom; and 0.01 less for each step in
    which it is not at its goal. An episode ends when all are at their goals: each gets
    5 more, and ``success`` in infos says it.

    Parameters
    ----------
    robots : int
        Number of robots.
    diameter : float
        Of the circle on which they begin, m.
    neighbours : int
        How many others each robot sees.
    goal_m : float
        Distance at which a goal is reached, m.
    max_steps : int
        Steps of an episode.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    CONTACT_COST: ClassVar[float] = 1.0
    STEP_COST: ClassVar[float] = 0.01
    LEAST_APART_M: ClassVar[float] = 0.55
    """Least distance of the middles of neighbours at the beginning, m: they are 0.4 m
    wide.
    """

    def __init__(
        self,
        *,
        robots: int = 6,
        diameter: float = 6.0,
        neighbours: int = 3,
        goal_m: float = 0.3,
        max_steps: int = 300,
    ) -> None:
        count = arguments.whole(robots, "robots", low=2, high=1000)
        self.diameter: float = arguments.number(
            diameter,
            "diameter",
            low=self.LEAST_APART_M / sin(math.pi / count),
            high=1e4,
            unit="m",
        )
        self.neighbours: int = min(
            arguments.whole(neighbours, "neighbours", low=0), count - 1
        )
        self.goal_m: float = arguments.number(
            goal_m, "goal_m", low=0.0, above=True, unit="m"
        )
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        spec = lidar_robot(0)
        self.robots = (spec,) * count
        self.poses = self._starts
        self._drive = Driving(spec)

    def _angles(self, seeds: NDArray[np.uint64]) -> F8:
        """Where robots begin on the circle, rad, (k, m)."""
        count = len(self.robots)
        first = EpisodeDraws(seeds, START_STREAM).uniform(-math.pi, math.pi)
        return np.asarray(first[:, None] + 2.0 * math.pi / count * np.arange(count))

    def _starts(self, seeds: NDArray[np.uint64]) -> F8:
        """Where robots begin: evenly on the circle, which is turned at random; all look
        to its middle.
        """
        angles = self._angles(seeds)
        c, s = elementwise.cosine_sine(angles)
        return np.stack(
            [0.5 * self.diameter * c, 0.5 * self.diameter * s, angles + math.pi],
            axis=-1,
        )

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """See the class."""
        high = np.array(
            [10.0, 10.0, 10.0, 1.0, 1.0, 2.0, 2.0]
            + [10.0, 10.0, 5.0, 5.0] * self.neighbours,
            np.float32,
        )
        highs = np.tile(high, (len(self.robots), 1))
        return -highs, highs

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Shares of the greatest velocities."""
        high = np.ones((len(self.robots), 2), np.float32)
        return -high, high

    def begin(self, w: Worlds) -> None:
        """Make the arrays of goals."""
        self.goals: F8 = np.zeros((len(w), len(self.robots), 2))
        self._far: F8 = np.zeros(self.goals.shape[:2])
        self._before = self._far

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """The goal of each robot is opposite to its start."""
        self.goals[mask] = -w.pose[mask, :, :2]
        self._far = distances(w.pose, self.goals)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Take velocities."""
        self._drive(w.command, actions)
        self._before = self._far

    def rewards(self, w: Worlds, out: F8) -> None:
        """Progress, contacts, the step, the end."""
        self._far = distances(w.pose, self.goals)
        arrived = self._far < self.goal_m
        out[:] = (
            self._before
            - self._far
            - self.CONTACT_COST * touching(w)
            - self.STEP_COST * ~arrived
        )
        out += self.GOAL_REWARD * np.asarray(arrived.all(axis=1))[:, None]

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """When all are at their goals; after `max_steps`."""
        terminated[:] = (self._far < self.goal_m).all(axis=1)
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """See the class."""
        own = w.pose
        to = between(own, self.goals)
        out[..., :2], out[..., 2] = to / self.diameter, self._far / self.diameter
        far = np.maximum(self._far, 1e-9)
        out[..., 3], out[..., 4] = to[..., 1] / far, to[..., 0] / far
        self._drive.observe(w.vel, out[..., 5:7])
        out[..., 7:] = seen_others(w, self.neighbours, self.diameter)
        low, high = self.observation_bounds(w)
        np.clip(out, low, high, out=out)

    def marks(self, world: int) -> ArrayLike:
        """Where each robot goes."""
        goals: F8 = self.goals[world]
        return goals

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """``success``: whether all are at their goals; ``arrived``: how many are."""
        arrived = self._far < self.goal_m
        return {"success": arrived.all(axis=1), "arrived": arrived.sum(axis=1)}


__all__ = ["Exchange"]
