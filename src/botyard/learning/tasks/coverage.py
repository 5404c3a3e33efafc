"""Coverage: drive over the whole floor of a room."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.learning.tasks.base import B1, F4, F8, I8, EpisodeDraws, Task
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.model.mapbuilder import MapBuilder
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds

CELL_M: Final = 0.5
"""Edge of the cells that are counted, m."""
REACH_M: Final = 0.35
"""The robot covers cells whose middles are nearer than this, m."""


class Coverage(Task):
    """Drive over the whole floor of a square room, as a robot does that cleans it.

    The floor has g · g cells of 0.5 m. Observation, float32, (6 + g · g,): x and y in
    the room, −1 … 1 from wall to wall; cosine and sine of the heading; velocities
    forward and of rotation as shares of the greatest; for each cell, row after row from
    the one with the least x and y, 1 if it is covered, else 0. Action, (2,): velocities
    forward and of rotation, −1 … 1.

    The reward is 10 times the share of the floor that the step has covered, 0.05 less
    while the robot touches a wall, and 0.01 less for each step. An episode ends when
    `share` of the cells are covered: 5 more, and ``success`` in infos.

    Parameters
    ----------
    size : float
        Edge of the room, m: 1 … 100, a multiple of 0.5 m.
    share : float
        What share of the cells is enough, 0 … 1.
    max_steps : int
        Steps of an episode.
    """

    COVERED_REWARD: ClassVar[float] = 10.0
    END_REWARD: ClassVar[float] = 5.0
    CONTACT_COST: ClassVar[float] = 0.05
    STEP_COST: ClassVar[float] = 0.01

    def __init__(
        self, *, size: float = 6.0, share: float = 0.95, max_steps: int = 1000
    ) -> None:
        size = arguments.number(size, "size", low=1.0, high=100.0, unit="m")
        self.cells: int = round(size / CELL_M)
        if abs(size - self.cells * CELL_M) > 1e-9:
            raise ArgumentError(
                f"size: expected a multiple of {CELL_M:g} m, found {size:g}"
            )

        self.size: float = self.cells * CELL_M
        self.share: float = arguments.number(share, "share", low=0.0, high=1.0)
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        spec = lidar_robot(0)
        self.robots = (spec,)
        self.scenes = (
            MapBuilder("room")
            .rectangle(-self.size / 2, -self.size / 2, self.size, self.size)
            .scene()
        )
        self._drive = Driving(spec)
        self._middles = (np.arange(self.cells) + 0.5) * CELL_M - self.size / 2

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """See the class."""
        low, high = (
            np.zeros(6 + self.cells * self.cells, np.float32),
            np.ones(6 + self.cells * self.cells, np.float32),
        )
        low[:6], high[4:6] = [-1.0, -1.0, -1.0, -1.0, -2.0, -2.0], 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Shares of the greatest velocities."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the arrays of cells."""
        self.covered: B1 = np.zeros((len(w), self.cells, self.cells), np.bool_)
        """Which cells are covered, (n, g, g): rows of y, columns of x."""
        self._count: I8 = np.zeros(len(w), np.int64)
        self._before = self._count

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Nothing is covered but what is under the robots."""
        self.covered[mask] = False
        self._cover(w)

    def _cover(self, w: Worlds) -> None:
        dx = w.pose[:, 0, 0, None] - self._middles
        dy = w.pose[:, 0, 1, None] - self._middles
        self.covered |= (dx * dx)[:, None, :] + (dy * dy)[
            :, :, None
        ] < REACH_M * REACH_M
        self._count = self.covered.sum(axis=(1, 2))

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Take velocities."""
        self._drive(w.command[:, 0], actions)
        self._before = self._count

    def _is_done(self) -> B1:
        done: B1 = self._count >= self.share * self.cells * self.cells
        return done

    def reward(self, w: Worlds, out: F8) -> None:
        """New cells, walls, the step, the end."""
        self._cover(w)
        out[:] = (
            self.COVERED_REWARD
            / (self.cells * self.cells)
            * (self._count - self._before)
            - self.STEP_COST
        )
        out += self.END_REWARD * self._is_done() - self.CONTACT_COST * (
            w.contact[:, 0] != 0
        )

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """When enough is covered; after `max_steps`."""
        terminated[:] = self._is_done()
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """See the class."""
        out[:, :2] = np.clip(w.pose[:, 0, :2] / (self.size / 2), -1.0, 1.0)
        out[:, 2], out[:, 3] = elementwise.cosine_sine(w.pose[:, 0, 2])
        self._drive.observe(w.vel[:, 0], out[:, 4:6])
        out[:, 6:] = self.covered.reshape(len(out), -1)

    def marks(self, world: int) -> ArrayLike:
        """The middles of cells that are not covered yet."""
        rows, columns = np.nonzero(~self.covered[world])
        return np.stack([self._middles[columns], self._middles[rows]], axis=1)

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """``success``: whether enough is covered; ``covered``: what share of the cells
        is.
        """
        return {
            "success": self._is_done(),
            "covered": self._count / (self.cells * self.cells),
        }


__all__ = ["Coverage"]
