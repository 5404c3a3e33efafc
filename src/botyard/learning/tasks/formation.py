"""Learning task Formation: robots drive in a polygon."""

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
from botyard.worlds.worlds import Worlds


class Formation(DrivenTeam):
    """Robots form a regular polygon whose centre moves in a straight line, and keep it.

    There are no walls.

    Observation of each robot, float32, (6 + 4 k,) with k = min(robots − 1,
    `neighbours`):

    - its place in the polygon, ahead and to the left, as fractions of the polygon's
      radius;
    - velocity of the place ahead and to the left, m/s;
    - linear and angular velocity of the robot as fractions of their maximum;
    - for each of the k nearest robots, nearest first: position ahead and to the left,
      as fractions of the radius, and velocity ahead and to the left in the observing
      robot's axes, m/s.

    Action of each robot, (2,): linear and angular velocity, −1 … 1.

    The reward of each robot is its progress towards its moving place, m, minus 0.1
    while it is farther than `within_m` from the place, minus 1 while it touches another
    robot (both robots pay). An episode ends when all robots have been within `within_m`
    for `hold_steps` consecutive steps. Each robot then gets 5, and infos have
    ``success``.

    Parameters
    ----------
    robots : int
        Number of robots, at least 3.
    radius : float
        Radius of the polygon, m.
    speed : float
        Speed of the polygon's centre, m/s.
    neighbours : int
        Maximum number of other robots that each robot observes.
    within_m : float
        Distance from its place at which a robot counts as in formation, m.
    hold_steps : int
        Number of consecutive steps for which the formation must hold.
    max_steps : int
        Maximum number of steps of an episode.
    """

    END_REWARD: ClassVar[float] = 5.0
    AWAY_COST: ClassVar[float] = 0.1
    """Cost of a step in which a robot is outside of the formation.

    A reward for steps in the formation would pay robots to delay the end.
    """
    CONTACT_COST: ClassVar[float] = 1.0
    LEAST_APART_M: ClassVar[float] = 0.7
    """Minimum distance between neighbouring places of the polygon, m."""

    OWN_BOUNDS = (20.0, 20.0, 1.0, 1.0, 2.0, 2.0)

    def __init__(
        self,
        *,
        robots: int = 5,
        radius: float = 1.5,
        speed: float = 0.3,
        neighbours: int = 2,
        within_m: float = 0.25,
        hold_steps: int = 20,
        max_steps: int = 300,
    ) -> None:
        count = arguments.whole(robots, "robots", low=3, high=1000)
        self.radius: float = arguments.number(
            radius,
            "radius",
            low=count * self.LEAST_APART_M / (2.0 * math.pi),
            high=1e4,
            unit="m",
        )
        self.speed: float = arguments.number(
            speed, "speed", low=0.0, high=0.8, unit="m/s"
        )
        self._set_team(count, neighbours)
        self.within_m: float = arguments.number(
            within_m, "within_m", low=0.0, above=True, unit="m"
        )
        self.hold_steps: int = arguments.whole(hold_steps, "hold_steps", low=1)
        self.max_steps = arguments.whole(max_steps, "max_steps", low=self.hold_steps)
        self.poses = self._starts
        c, s = elementwise.cosine_sine(2.0 * math.pi / count * np.arange(count))
        self._polygon: F8 = self.radius * np.stack([c, s], axis=1)

    def _starts(self, seeds: NDArray[np.uint64]) -> F8:
        """Return start poses outside of the polygon, each near its place.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, m, 3) float64
            Poses of the robots: m, m, rad. Headings are random.
        """
        rng, count = EpisodeDraws(seeds, START_STREAM), len(self.robots)
        # 0.3 to 1.3 m outside of the polygon: neighbours start apart, and progress is
        # possible.
        share = 1.0 + rng.uniforms(count, 0.3, 1.3) / self.radius
        places = self._polygon * share[..., None]
        return np.concatenate(
            [places, rng.uniforms(count, -math.pi, math.pi)[..., None]], axis=-1
        )

    def begin(self, w: Worlds) -> None:
        """Make the arrays of the robots' places."""
        n, m = len(w), len(self.robots)
        self._velocity: F8 = np.zeros((n, 2))
        self.places: F8 = np.zeros((n, m, 2))
        """Current target positions of the robots, (n, m, 2), m."""
        self._far: F8 = np.zeros((n, m))
        self._before = self._far
        self._held: I8 = np.zeros(n, np.int64)

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Draw the direction in which the polygon moves, where an episode has started."""
        c, s = elementwise.cosine_sine(rng.uniform(-math.pi, math.pi))
        self._velocity[mask] = self.speed * np.stack([c, s], axis=1)
        self._held[mask] = 0
        self._look(w)

    def _look(self, w: Worlds) -> None:
        # The places follow from the tick, so that they repeat in any copy of the world.
        middle = self._velocity * (w.tick * w.dt)[:, None]
        self.places = middle[:, None] + self._polygon
        self._far = distances(w.pose, self.places)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command, actions)
        self._before = self._far

    def rewards(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for progress and the end, minus costs of wrong places and contacts."""
        self._look(w)
        near = self._far < self.within_m
        # At tick 0 the episode has just started, so no step of it counts yet.
        self._held[:] = np.where(near.all(axis=1) & (w.tick > 0), self._held + 1, 0)
        out[:] = (
            self._before
            - self._far
            - self.AWAY_COST * ~near
            - self.CONTACT_COST * touching(w)
        )
        out += self.END_REWARD * self.succeeded()[:, None]

    def succeeded(self) -> B1:
        """Return whether the formation of each world has held long enough."""
        held: B1 = self._held >= self.hold_steps
        return held

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        out[..., :2] = between(w.pose, self.places) / self.radius
        c, s = elementwise.cosine_sine(w.pose[..., 2])
        vx, vy = self._velocity[:, None, 0], self._velocity[:, None, 1]
        out[..., 2], out[..., 3] = c * vx + s * vy, c * vy - s * vx
        self.observe_team(w, out, self.radius)

    def marks(self, world: int) -> ArrayLike:
        """Return the current target positions of the robots."""
        places: F8 = self.places[world]
        return places

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (the formation has held) and ``error``.

        ``error`` is the distance of the farthest robot from its place, m.
        """
        return {"success": self.succeeded(), "error": self._far.max(axis=1)}


__all__ = ["Formation"]
