"""Base class of learning tasks for teams of equal robots without walls."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from botyard.api import arguments
from botyard.learning.tasks.base import B1, F4, TeamTask
from botyard.learning.tasks.geometry import seen_others
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.worlds.worlds import Worlds


class DrivenTeam(TeamTask):
    """A task of equal robots, each of which observes its nearest neighbours.

    Observation of each robot, float32: values of the task, then for each of the k
    nearest robots, nearest first, position and velocity ahead and to the left.

    Action of each robot, (2,): linear and angular velocity, −1 … 1.
    """

    OWN_BOUNDS: ClassVar[tuple[float, ...]]
    """Bounds of the task's own values in an observation, without the neighbours."""
    FARTHEST: ClassVar[float] = 20.0
    """Bound of the neighbours' positions in an observation."""

    def _set_team(self, count: int, neighbours: int, radius: float = 0.2) -> None:
        """Set the robots and the number of neighbours that each of them observes.

        Parameters
        ----------
        count : int
            Number of robots.
        neighbours : int
            Wanted number of neighbours; at most the number of other robots is used.
        radius : float
            Radius of each robot, m.
        """
        self.neighbours: int = min(
            arguments.whole(neighbours, "neighbours", low=0), count - 1
        )
        spec = lidar_robot(0, radius=radius)
        self.robots = (spec,) * count
        self._drive = Driving(spec)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, which the class describes."""
        other = (self.FARTHEST, self.FARTHEST, 5.0, 5.0)
        high = np.array(self.OWN_BOUNDS + other * self.neighbours, np.float32)
        highs = np.tile(high, (len(self.robots), 1))
        return -highs, highs

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions: −1 … 1 of the maximum velocities."""
        high = np.ones((len(self.robots), 2), np.float32)
        return -high, high

    @abstractmethod
    def succeeded(self) -> B1:
        """Return whether each world has reached the end of its task.

        Returns
        -------
        (n,) bool
            True terminates the episode of the world.
        """

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """End the episodes of worlds that have succeeded, or after `max_steps`."""
        terminated[:] = self.succeeded()
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe_team(self, w: Worlds, out: F4, unit: float) -> None:
        """Write velocities and neighbours of each robot after the task's own values.

        Parameters
        ----------
        w : Worlds
            n worlds with m robots.
        out : (n, m, k) float32
            Observations, whose first values the task has written. The last two values
            of `OWN_BOUNDS` and the neighbours are written here, then all are clipped.
        unit : float
            Length by which positions are divided, m.
        """
        own = len(self.OWN_BOUNDS)
        self._drive.observe(w.vel, out[..., own - 2 : own])
        out[..., own:] = seen_others(w, self.neighbours, unit)
        # Bodies can move away without limit, because there are no walls.
        low, high = self.observation_bounds(w)
        np.clip(out, low, high, out=out)


__all__ = ["DrivenTeam"]
