"""ORCA for a robot that another method steers, and that avoids chosen bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from botyard.controllers.crowd import Orca
from botyard.engine.layout import F8


class Avoidance(Orca):
    """ORCA that follows a velocity instead of goals.

    Attributes
    ----------
    wanted : (float, float)
        Velocity (x, y) that the other method chose, in the frame of the world, m/s.
    avoided : (n,) bool
        Whether the robot avoids each body, by row of the engine.
    """

    name = "go_to"
    wanted = 0.0, 0.0
    avoided: NDArray[np.bool_]

    def _preferred(self, x: float, y: float) -> tuple[F8, bool]:
        vx, vy = self.wanted
        return np.array(
            [[vx - self._aside * vy, vy + self._aside * vx]]
        ), self.wanted != (0.0, 0.0)

    def radii(self) -> F8:
        """Return the radii of the robot and of the bodies to avoid; others are NaN."""
        chosen = self.avoided.copy()
        chosen[self._robot.simulation.snapshot.rows[self._robot.name]] = True
        return np.where(chosen, super().radii(), np.nan)

    def near_walls(self, centre: F8, reach: float, ahead: float) -> F8:
        """Return the nearby walls, moved away from the robot's disc by `ahead`.

        ORCA steers a differential robot by a disc ahead of its axle, which is larger
        than the body. Without the shift it would not pass a door that the body passes
        on a planned path. For the arguments see `CrowdController.near_walls`.
        """
        walls = super().near_walls(centre, reach, ahead)
        a = walls[0, :, :2] - centre
        along = walls[0, :, 2:] - walls[0, :, :2]
        square = (along * along).sum(axis=1)
        share = np.clip(
            -(a * along).sum(axis=1) / np.where(square > 0.0, square, 1.0), 0.0, 1.0
        )
        off = a + share[:, None] * along
        away = np.sqrt((off * off).sum(axis=1))
        shift = off * (ahead / np.where(away > 0.0, away, 1.0))[:, None]
        moved: F8 = walls + np.tile(shift, 2)
        return moved


__all__ = ["Avoidance"]
