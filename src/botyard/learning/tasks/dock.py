"""Learning task Dock: drive into a dock, and stop there."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.engine.rng import draws
from botyard.learning.tasks.base import B1, F4, F8, I8, EpisodeDraws, Task
from botyard.learning.tasks.geometry import between, distances, headings
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.model.mapbuilder import MapBuilder
from botyard.model.scene import Scene
from botyard.numerics.elementary import cos
from botyard.worlds.worlds import Worlds

# Length and width of the room, m.
LENGTH_M: Final = 8.0
WIDTH_M: Final = 6.0
"""Width of the room, m."""
ARM_M: Final = 0.7
"""Length of the dock's two arms, m."""
GAP_M: Final = 0.8
"""Distance between the two arms, m."""
INSIDE_M: Final = 0.4
"""Distance between the wall and the centre of a docked robot, m."""
DOCK_SEED: Final = 26
"""Seed from which the positions of docks are drawn."""
FAR_M: Final = 5.0


def dock_room(y: float) -> Scene:
    """Return a room of 8 m × 6 m with a dock at its right wall.

    Parameters
    ----------
    y : float
        Coordinate of the dock's centre line along the wall, m; 0: the middle.
    """
    builder = MapBuilder(f"dock at {y:.2f}").rectangle(
        -LENGTH_M / 2, -WIDTH_M / 2, LENGTH_M, WIDTH_M
    )
    wall = LENGTH_M / 2
    for side in (y - GAP_M / 2, y + GAP_M / 2):
        builder.line((wall, side), (wall - ARM_M, side))
    return builder.home(0.0, 0.0).scene()


class Dock(Task):
    """Drive into a dock and stop there, like a robot that charges.

    The dock consists of two arms at a wall.

    Observation, float32, (rays + 6,):

    - ranges divided by the lidar's maximum range;
    - position of the dock, ahead and to the left, as fractions of 5 m;
    - cosine and sine of its heading relative to the robot's;
    - linear and angular velocity as fractions of their maximum.

    Action, (2,): linear and angular velocity, −1 … 1.

    The reward is the progress towards the dock, m, plus 5 in the dock, minus 5 for a
    contact, minus 0.01 for each step. An episode ends on contact, and in the dock, with
    ``success`` in infos: the robot is within `within_m` and `within_rad` of the dock's
    pose and slower than 0.05 m/s and 0.1 rad/s.

    Parameters
    ----------
    rays : int
        Number of lidar rays.
    maps : int
        Number of different positions of the dock.
    within_m, within_rad : float
        Tolerances of the docked pose, m and rad.
    max_steps : int
        Maximum number of steps of an episode.
    """

    DOCK_REWARD: ClassVar[float] = 5.0
    STEP_COST: ClassVar[float] = 0.01
    SLOW: ClassVar[tuple[float, float]] = 0.05, 0.1
    """A docked robot is slower than these velocities, m/s and rad/s."""

    def __init__(
        self,
        *,
        rays: int = 32,
        maps: int = 16,
        within_m: float = 0.05,
        within_rad: float = 0.1,
        max_steps: int = 400,
    ) -> None:
        maps = arguments.whole(maps, "maps", low=1, high=1000)
        spec = lidar_robot(arguments.whole(rays, "rays", low=1))
        self.robots = (spec,)
        self.sensors = ("laser",)
        self.within_m: float = arguments.number(
            within_m, "within_m", low=0.0, above=True, unit="m"
        )
        self.within_rad: float = arguments.number(
            within_rad, "within_rad", low=0.0, high=1.5, above=True, unit="rad"
        )
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        # The draws have a fixed seed, so that maps do not depend on the seeds of
        # worlds.
        places = draws(DOCK_SEED, 0, 0, 0, maps) * (WIDTH_M / 2 - GAP_M)
        self.scenes = [dock_room(float(y)) for y in places]
        self._docks: F8 = np.stack(
            [np.full(maps, LENGTH_M / 2 - INSIDE_M), places, np.zeros(maps)], axis=1
        )
        self._drive = Driving(spec)
        self._range = spec.lasers[0].range_max

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, which the class describes."""
        rays = w.ranges.shape[2]
        low, high = np.zeros(rays + 6, np.float32), np.ones(rays + 6, np.float32)
        low[rays:], high[rays:] = -2.0, 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions: −1 … 1 of the maximum velocities."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the array of the docks' poses."""
        self.docks: F8 = np.zeros((len(w), 3))
        """Pose of the docked robot in each world, (n, 3): m, m, rad."""
        self._far: F8 = np.zeros(len(w))
        self._before = self._far

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Read the pose of the dock from the map, where an episode has started."""
        self.docks[mask] = self._docks[w.map_id[mask]]
        self._far = distances(w.pose[:, 0], self.docks)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command[:, 0], actions)
        self._before = self._far

    def _is_docked(self, w: Worlds) -> B1:
        """Return whether the robot of each world stands in its dock, (n,) bool."""
        # cos falls from 0 to π, so a comparison of cosines replaces the angle and its
        # wrap at π.
        aligned = cos(self.within_rad) <= headings(w.pose[:, 0], self.docks)[:, 0]
        slow = (np.abs(w.vel[:, 0, 0]) < self.SLOW[0]) & (
            np.abs(w.vel[:, 0, 2]) < self.SLOW[1]
        )
        # A robot that leans on an arm is not docked.
        docked: B1 = (
            (self._far < self.within_m) & aligned & slow & (w.contact[:, 0] == 0)
        )
        return docked

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for progress and the dock, minus costs of contacts and steps."""
        self._far = distances(w.pose[:, 0], self.docks)
        out[:] = self._before - self._far - self.STEP_COST
        out += self.DOCK_REWARD * self._is_docked(w) - self.DOCK_REWARD * (
            w.contact[:, 0] != 0
        )

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """End episodes in the dock, on contact, or after `max_steps`."""
        terminated[:] = self._is_docked(w) | (w.contact[:, 0] != 0)
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        rays = w.ranges.shape[2]
        np.minimum(w.ranges[:, 0] / np.float32(self._range), 1.0, out=out[:, :rays])
        robot = w.pose[:, 0]
        out[:, rays : rays + 2] = between(robot, self.docks) / FAR_M
        out[:, rays + 2 : rays + 4] = headings(robot, self.docks)
        self._drive.observe(w.vel[:, 0], out[:, rays + 4 :])

    def marks(self, world: int) -> ArrayLike:
        """Return the pose of the robot at its dock, which images of the world mark."""
        return self.docks[world, None]

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (the robot is docked) and ``distance`` (of the dock, m)."""
        return {"success": self._is_docked(w), "distance": self._far.copy()}


__all__ = ["Dock", "dock_room"]
