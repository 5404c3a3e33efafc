"""Learning task SocialNavigate: drive to a goal among pedestrians."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.learning.tasks.base import B1, F4, F8, I8, EpisodeDraws
from botyard.learning.tasks.geometry import distances, seen_others
from botyard.learning.tasks.navigate import Navigate
from botyard.learning.tasks.robots import WALKER_RADIUS_M, plaza, walker
from botyard.learning.tasks.walkers import METHODS, Walkers
from botyard.model.scene import Scene
from botyard.worlds.maps import Scenes
from botyard.worlds.worlds import Worlds


class SocialNavigate(Navigate):
    """Drive to a goal among pedestrians.

    The pedestrians walk between random positions, and avoid each other and the robot.
    Observation, float32: as for `Navigate`, then for each of the `neighbours` nearest
    pedestrians, nearest first: position ahead and to the left, divided by 10 m, and
    velocity along these axes, m/s. The lidar also sees pedestrians.

    Actions and rewards are as for `Navigate`. In addition, a distance of less than 0.2
    m from a pedestrian costs up to 0.1 for each step. An episode also ends when a
    pedestrian and the robot touch.

    Parameters
    ----------
    walkers : int
        Number of pedestrians.
    method : str
        Method by which pedestrians avoid collisions: ``orca`` or ``socialforce``.
    neighbours : int
        Maximum number of pedestrians in an observation.
    rays, maps, goal_m, max_steps, least_m
        As for `Navigate`.
    scenes : Scenes, optional
        Other maps.
    """

    DISCOMFORT_M: ClassVar[float] = 0.2
    DISCOMFORT_COST: ClassVar[float] = 0.1
    SPEEDS: ClassVar[tuple[float, float]] = (0.5, 1.2)
    """Minimum and maximum preferred speed of pedestrians, m/s."""

    def __init__(
        self,
        *,
        walkers: int = 8,
        method: str = "orca",
        neighbours: int = 4,
        rays: int = 181,
        maps: int = 32,
        goal_m: float = 0.5,
        scenes: Scenes | None = None,
        max_steps: int = 300,
        least_m: float = 0.0,
    ) -> None:
        count = arguments.whole(walkers, "walkers", low=1, high=1000)
        arguments.one_of(method, "method", METHODS)
        super().__init__(
            rays=rays,
            maps=maps,
            goal_m=goal_m,
            scenes=scenes,
            max_steps=max_steps,
            least_m=least_m,
        )
        self.robots = (*self.robots, *(walker(),) * count)
        self.neighbours: int = min(
            arguments.whole(neighbours, "neighbours", low=0), count
        )
        self._walkers = Walkers(method, self.SPEEDS)
        self._radius = self._spec.radius

    @staticmethod
    def _map(number: int) -> Scene:
        """Return the default map with a number."""
        return plaza(number)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, which the class describes."""
        low, high = super().observation_bounds(w)
        more = np.tile(np.array([10.0, 10.0, 5.0, 5.0], np.float32), self.neighbours)
        return np.concatenate([low, -more]), np.concatenate([high, more])

    def begin(self, w: Worlds) -> None:
        """Make the arrays of the goals of robot and pedestrians."""
        super().begin(w)
        self._walkers.begin(w, self._radius)

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Choose goals of the robot and of pedestrians, where an episode has started."""
        super().on_reset(w, mask, rng)
        self._walkers.reset(w, mask, rng)

    def hit(self, w: Worlds) -> B1:
        """Return whether the robot touched an obstacle or a pedestrian in the last step, (n,)."""
        # `contact` of the robot is 0 if a pedestrian ran into it while it stood.
        touched: B1 = (w.other[:, 1:] == 0).any(axis=1)
        return super().hit(w) | touched

    def gap(self, w: Worlds) -> F8:
        """Return the distance from the nearest pedestrian.

        Returns
        -------
        (n,) float64
            Distance from edge to edge, m; negative where the circles overlap.
        """
        away: F8 = (
            distances(w.pose[:, :1], w.pose[:, 1:]).min(axis=1)
            - self._radius
            - WALKER_RADIUS_M
        )
        return away

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the robot's commanded velocities, and let pedestrians choose theirs."""
        super().act(w, actions)
        self._walkers.act(w)

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the rewards of `Navigate`, minus a cost of closeness to pedestrians."""
        super().reward(w, out)
        near = np.clip(1.0 - self.gap(w) / self.DISCOMFORT_M, 0.0, 1.0)
        out -= self.DISCOMFORT_COST * near

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        own = w.ranges.shape[2] + 5
        super().observe(w, out[:, :own])
        low, high = self.observation_bounds(w)
        np.clip(
            seen_others(w, self.neighbours, self.FAR_M)[:, 0],
            low[own:],
            high[own:],
            out=out[:, own:],
        )

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return the info of `Navigate`, and ``gap``.

        ``gap`` is the distance of the nearest pedestrian, edge to edge, m.
        """
        return super().info(w) | {"gap": self.gap(w)}


__all__ = ["SocialNavigate"]
