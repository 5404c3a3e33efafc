"""Base of learning tasks of equal robots that drive without walls."""

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
    """Bounds of the values of the task in an observation."""
    FARTHEST: ClassVar[float] = 20.0
    """Bound of the positions of neighbours in an observation."""

    def _set_team(self, count: int, neighbours: int, radius: float = 0.2) -> None:
        """Set the robots and the number of neighbours that each of them observes."""
        self.neighbours: int = min(
            arguments.whole(neighbours, "neighbours", low=0), count - 1
        )
        spec = lidar_robot(0, radius=radius)
        self.robots = (spec,) * count
        self._drive = Driving(spec)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, see the class."""
        other = (self.FARTHEST, self.FARTHEST, 5.0, 5.0)
        high = np.array(self.OWN_BOUNDS + other * self.neighbours, np.float32)
        highs = np.tile(high, (len(self.robots), 1))
        return -highs, highs

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions, fractions of the maximum velocities."""
        high = np.ones((len(self.robots), 2), np.float32)
        return -high, high

    @abstractmethod
    def succeeded(self) -> B1:
        """Return whether each world has reached the end of its task, (n,)."""

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """End episodes when they have succeeded, or after `max_steps`."""
        terminated[:] = self.succeeded()
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe_team(self, w: Worlds, out: F4, unit: float) -> None:
        """Write own velocities and neighbours after the values of the task.

        `unit` is the unit of positions, m.
        """
        own = len(self.OWN_BOUNDS)
        self._drive.observe(w.vel, out[..., own - 2 : own])
        out[..., own:] = seen_others(w, self.neighbours, unit)
        # Bodies can move away without limit, because there are no walls.
        low, high = self.observation_bounds(w)
        np.clip(out, low, high, out=out)


__all__ = ["DrivenTeam"]
