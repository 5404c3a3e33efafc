"""Pedestrians ("walkers") in many worlds, which walk between random positions.

The pedestrians avoid collisions by a published method.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.layout import F8, I8
from botyard.learning.tasks.base import EpisodeDraws
from botyard.learning.tasks.geometry import distances
from botyard.learning.tasks.robots import WALKER_RADIUS_M
from botyard.navigation import crowds
from botyard.worlds.worlds import Worlds

METHODS: Final = ("orca", "socialforce")
REACHED_M: Final = 0.4
"""Distance from its goal at which a walker chooses another goal, m."""
PATIENCE_S: Final = 20.0
"""Time after which a walker chooses another goal, even if it has not arrived, s."""
APPROACH_S: Final = 1.0
"""Time to the goal below which a walker slows down, s."""
# Maximum number of walls, and the distance within which walkers consider them, m.
NEAR_WALLS: Final = 4
WALL_REACH_M: Final = 2.5
"""Distance within which walkers consider walls, m."""
SAFETY_M: Final = 0.1
"""Clearance that walkers keep around themselves, m."""
MAX_TURN: Final = 3.0
"""Maximum turn rate of walkers, rad/s."""
SIDESTEP: Final = 0.1
"""Maximum tangent of the angle between a preferred direction and the goal's direction.

Each walker draws its own angle, because in perfect symmetry walkers block each other.
"""


class Walkers:
    """Pedestrians of all worlds: the bodies after the first one of each world.

    Parameters
    ----------
    method : str
        ``orca`` or ``socialforce``.
    speeds : (float, float)
        Minimum and maximum preferred speed, m/s. Each walker draws its own in every
        episode.
    """

    def __init__(self, method: str, speeds: tuple[float, float]) -> None:
        self._method, self._speeds = method, speeds

    def begin(self, w: Worlds, radius: float) -> None:
        """Make the arrays of the walkers in these worlds.

        Parameters
        ----------
        w : Worlds
            Worlds whose first body is a robot; all others are walkers.
        radius : float
            Radius of the robot, m.
        """
        n, m = w.pose.shape[0], w.pose.shape[1]
        self.goals: F8 = np.zeros((n, m - 1, 2))
        self._due: I8 = np.zeros((n, m - 1), np.int64)
        self._speed: F8 = np.ones((n, m - 1))
        self._aside: F8 = np.zeros((n, m - 1))
        self._radius: F8 = np.full((n, m), WALKER_RADIUS_M + SAFETY_M)
        # Walkers avoid the robot by its real radius: their own radius includes the
        # margin.
        self._radius[:, 0] = radius
        self._asked: F8 = np.zeros((2, n, m - 1, 2))
        self._none: F8 = np.zeros((n, m))
        world, body = np.divmod(np.arange(n * (m - 1)), m - 1)
        self._chosen: I8 = np.stack([world, body + 1], axis=1)
        self._patience = round(PATIENCE_S / w.dt)

    def reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Choose goals and speeds of walkers in worlds where episodes have started.

        Parameters
        ----------
        w : Worlds
            All worlds.
        mask : (k,) int64
            Numbers of the worlds where episodes have started.
        rng : EpisodeDraws
            Draws with a row for each of these worlds.
        """
        count = self.goals.shape[1]
        self._speed[mask] = rng.uniforms(count, *self._speeds)
        self._aside[mask] = rng.uniforms(count, -SIDESTEP, SIDESTEP)
        self.goals[mask] = w.sample_free(mask)[:, 1:, :2]
        self._due[mask] = self._patience
        # The last command belongs to the episode that has ended.
        self._asked[:, mask] = 0.0

    def act(self, w: Worlds) -> None:
        """Write the velocities of all walkers into `Worlds.command`.

        Parameters
        ----------
        w : Worlds
            Worlds at the start of a step. The commands of the first bodies stay
            unchanged.
        """
        self._choose(w)
        n, m = w.pose.shape[0], w.pose.shape[1]
        to = self.goals - w.pose[:, 1:, :2]
        away = np.maximum(distances(w.pose[:, 1:], self.goals), 1e-9)
        pace = np.minimum(self._speed, away / APPROACH_S) / away
        preferred = np.stack(
            [
                pace * (to[..., 0] - self._aside * to[..., 1]),
                pace * (to[..., 1] + self._aside * to[..., 0]),
            ],
            axis=-1,
        ).reshape(-1, 2)
        position, velocity = crowds.discs(w.pose, w.vel, self._none)
        walls = w.near_walls(
            w.pose[:, 1:, :2], reach=WALL_REACH_M, count=NEAR_WALLS
        ).reshape(-1, NEAR_WALLS, 4)
        # Avoidance may need a speed above the preferred one. 1.3 is the social force
        # model's limit (Helbing & Molnár 1995).
        top = 1.3 * self._speed.reshape(-1)
        agents = position, velocity, self._radius, preferred, top
        if self._method == "orca":
            found = crowds.orca(*agents, dt=w.dt, walls=walls, chosen=self._chosen)
        # The social force model gives the velocity at the end of a step as well as the
        # mean one. The next step continues from the end, not from the mean that the
        # walker drove.
        else:
            velocity[:, 1:] = crowds.continued(velocity[:, 1:], *self._asked)
            ends = np.empty((len(top), 2))
            found = crowds.social_force(
                *agents, dt=w.dt, walls=walls, chosen=self._chosen, ends=ends
            )
            self._asked = np.stack([found, ends]).reshape(2, n, m - 1, 2)

        heading = w.pose[:, 1:, 2].reshape(-1)
        turn = np.full(len(heading), MAX_TURN)
        w.command[:, 1:] = crowds.commands(
            found, heading, np.zeros(len(heading)), turn, w.dt
        ).reshape(n, m - 1, 3)

    def _choose(self, w: Worlds) -> None:
        """Choose new goals for walkers that have arrived or whose time has run out."""
        there = distances(w.pose[:, 1:], self.goals) < REACHED_M
        # A goal behind pillars may be unreachable for a method without a planner.
        new = there | (w.tick[:, None] >= self._due)
        worlds = np.flatnonzero(new.any(axis=1))
        if len(worlds):
            places = w.sample_free(worlds)[:, 1:, :2]
            of = new[worlds]
            self.goals[worlds] = np.where(of[..., None], places, self.goals[worlds])
            self._due[worlds] = np.where(
                of, w.tick[worlds, None] + self._patience, self._due[worlds]
            )


__all__ = ["METHODS", "Walkers"]
