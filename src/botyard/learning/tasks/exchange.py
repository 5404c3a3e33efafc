"""Learning task Exchange: robots on a circle swap places."""

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
)
from botyard.learning.tasks.geometry import between, distances, touching
from botyard.learning.tasks.team import DrivenTeam
from botyard.numerics import elementwise
from botyard.numerics.elementary import sin
from botyard.worlds.worlds import Worlds


class Exchange(DrivenTeam):
    """Robots on a circle swap places with the opposite robots without contact.

    There are no walls.

    Observation of each robot, float32, (7 + 4 k,) with k = min(robots − 1,
    `neighbours`):

    - its goal, ahead and to the left, and the goal's distance, as fractions of the
      circle's diameter;
    - sine and cosine of the goal's bearing;
    - its linear and angular velocity as fractions of their maximum;
    - for each of the k nearest robots, nearest first: position ahead and to the left,
      as fractions of the diameter, and velocity ahead and to the left in the observing
      robot's axes, m/s.

    Action of each robot, (2,): linear and angular velocity, −1 … 1.

    The reward of each robot is its progress towards its goal, m, minus 1 while it
    touches another robot (both robots pay), minus 0.01 for each step away from its
    goal. An episode ends when all robots are at their goals. Each robot then gets 5,
    and infos have ``success``.

    Parameters
    ----------
    robots : int
        Number of robots.
    diameter : float
        Diameter of the circle of start positions, m.
    neighbours : int
        Maximum number of other robots that each robot observes.
    goal_m : float
        Distance at which a goal counts as reached, m.
    max_steps : int
        Maximum number of steps of an episode.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    CONTACT_COST: ClassVar[float] = 1.0
    STEP_COST: ClassVar[float] = 0.01
    LEAST_APART_M: ClassVar[float] = 0.55
    """Minimum distance between the centres of neighbours at the start, m.

    The robots are 0.4 m wide.
    """

    OWN_BOUNDS = (10.0, 10.0, 10.0, 1.0, 1.0, 2.0, 2.0)
    FARTHEST = 10.0

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
        # Neighbours on the circle are diameter · sin(π / robots) apart.
        self.diameter: float = arguments.number(
            diameter,
            "diameter",
            low=self.LEAST_APART_M / sin(math.pi / count),
            high=1e4,
            unit="m",
        )
        self._set_team(count, neighbours)
        self.goal_m: float = arguments.number(
            goal_m, "goal_m", low=0.0, above=True, unit="m"
        )
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        self.poses = self._starts

    def _angles(self, seeds: NDArray[np.uint64]) -> F8:
        """Return the angles of start positions on the circle.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, m) float64
            Angle of each robot, rad, counterclockwise from the x axis.
        """
        count = len(self.robots)
        first = EpisodeDraws(seeds, START_STREAM).uniform(-math.pi, math.pi)
        return np.asarray(first[:, None] + 2.0 * math.pi / count * np.arange(count))

    def _starts(self, seeds: NDArray[np.uint64]) -> F8:
        """Return start poses: evenly spaced on the circle, facing its centre.

        A random angle turns the circle.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, m, 3) float64
            Poses of the robots: m, m, rad.
        """
        angles = self._angles(seeds)
        c, s = elementwise.cosine_sine(angles)
        return np.stack(
            [0.5 * self.diameter * c, 0.5 * self.diameter * s, angles + math.pi],
            axis=-1,
        )

    def begin(self, w: Worlds) -> None:
        """Make the arrays of the robots' goals."""
        self.goals: F8 = np.zeros((len(w), len(self.robots), 2))
        self._far: F8 = np.zeros(self.goals.shape[:2])
        self._before = self._far

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Set the goal of each robot opposite to its start, where an episode has started."""
        self.goals[mask] = -w.pose[mask, :, :2]
        self._far = distances(w.pose, self.goals)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command, actions)
        self._before = self._far

    def rewards(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for progress and the end, minus costs of contacts and steps."""
        self._far = distances(w.pose, self.goals)
        arrived = self._arrived()
        out[:] = (
            self._before
            - self._far
            - self.CONTACT_COST * touching(w)
            - self.STEP_COST * ~arrived
        )
        out += self.GOAL_REWARD * self.succeeded()[:, None]

    def _arrived(self) -> B1:
        arrived: B1 = self._far < self.goal_m
        return arrived

    def succeeded(self) -> B1:
        """Return whether all robots of each world are at their goals."""
        return np.asarray(self._arrived().all(axis=1))

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        own = w.pose
        to = between(own, self.goals)
        out[..., :2], out[..., 2] = to / self.diameter, self._far / self.diameter
        # A robot on its goal has no bearing: the floor avoids a division by 0.
        far = np.maximum(self._far, 1e-9)
        out[..., 3], out[..., 4] = to[..., 1] / far, to[..., 0] / far
        self.observe_team(w, out, self.diameter)

    def marks(self, world: int) -> ArrayLike:
        """Return the goals of the robots, which images of the world mark."""
        goals: F8 = self.goals[world]
        return goals

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (all robots have arrived) and ``arrived`` (number of these robots)."""
        return {"success": self.succeeded(), "arrived": self._arrived().sum(axis=1)}


__all__ = ["Exchange"]
