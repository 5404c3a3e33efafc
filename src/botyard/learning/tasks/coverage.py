"""Learning task Coverage: drive over the whole floor of a room."""

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
"""Edge length of the cells, m."""
REACH_M: Final = 0.35
"""Distance from the robot within which cells are covered by their centre, m."""


class Coverage(Task):
    """Drive over the whole floor of a square room, like a cleaning robot.

    The floor has g · g cells of 0.5 m.

    Observation, float32, (6 + g · g,):

    - x and y in the room, −1 … 1 from wall to wall;
    - cosine and sine of the heading;
    - linear and angular velocity as fractions of their maximum;
    - then 1 for each covered cell and 0 for each other one, row by row from the cell
      with the least x and y.

    Action, (2,): linear and angular velocity, −1 … 1.

    The reward is 10 times the fraction of the floor that the step has newly covered,
    minus 0.05 while the robot touches a wall, minus 0.01 for each step. An episode ends
    when the fraction `share` of the cells is covered, with a reward of 5 and
    ``success`` in infos.

    Parameters
    ----------
    size : float
        Edge length of the room, m: 1 … 100, a multiple of 0.5 m.
    share : float
        Fraction of the cells to cover, 0 … 1.
    max_steps : int
        Maximum number of steps of an episode.
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
        # Cells must fill the room exactly: partial cells at a wall could not be
        # covered.
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
        """Return the bounds of observations, which the class describes."""
        low, high = (
            np.zeros(6 + self.cells * self.cells, np.float32),
            np.ones(6 + self.cells * self.cells, np.float32),
        )
        low[:6], high[4:6] = [-1.0, -1.0, -1.0, -1.0, -2.0, -2.0], 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions: −1 … 1 of the maximum velocities."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the array of covered cells."""
        self.covered: B1 = np.zeros((len(w), self.cells, self.cells), np.bool_)
        """Whether each cell is covered, (n, g, g): rows of y, columns of x."""
        self._count: I8 = np.zeros(len(w), np.int64)
        self._before = self._count

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Clear all cells, except the cells under the robots, where an episode has started."""
        self.covered[mask] = False
        # Cover cells of all worlds, and not only of `mask`: covering cells again
        # changes nothing.
        self._cover(w)

    def _cover(self, w: Worlds) -> None:
        """Mark the cells that robots reach now as covered, and count all covered cells."""
        dx = w.pose[:, 0, 0, None] - self._middles
        dy = w.pose[:, 0, 1, None] - self._middles
        self.covered |= (dx * dx)[:, None, :] + (dy * dy)[
            :, :, None
        ] < REACH_M * REACH_M
        self._count = self.covered.sum(axis=(1, 2))

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command[:, 0], actions)
        self._before = self._count

    def _is_done(self) -> B1:
        done: B1 = self._count >= self.share * self.cells * self.cells
        return done

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for new cells and the end, minus costs of contacts and steps."""
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
        """End episodes when enough cells are covered, or after `max_steps`."""
        terminated[:] = self._is_done()
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        out[:, :2] = np.clip(w.pose[:, 0, :2] / (self.size / 2), -1.0, 1.0)
        out[:, 2], out[:, 3] = elementwise.cosine_sine(w.pose[:, 0, 2])
        self._drive.observe(w.vel[:, 0], out[:, 4:6])
        out[:, 6:] = self.covered.reshape(len(out), -1)

    def marks(self, world: int) -> ArrayLike:
        """Return the centres of cells that are not covered yet."""
        rows, columns = np.nonzero(~self.covered[world])
        return np.stack([self._middles[columns], self._middles[rows]], axis=1)

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (enough cells are covered) and ``covered`` (fraction of all cells)."""
        return {
            "success": self._is_done(),
            "covered": self._count / (self.cells * self.cells),
        }


__all__ = ["Coverage"]
