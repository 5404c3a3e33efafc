"""The command that gives a body a velocity at once, as if it had been pushed
(simulation_interfaces, SetEntityState).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from botyard.engine.layout import Control, State
from botyard.errors import CommandError
from botyard.geometry import Twist
from botyard.numerics.elementary import cosine_sine

HIGHEST: Final = 1e5
"""Highest velocity that may be set, m/s or rad/s, as for demands."""
_NO_MASS: Final = int(Control.NONE)


@dataclass(frozen=True, slots=True)
class SetTwist:
    """Give a body this velocity, in the world's axes; what drives it goes on from
    there.

    A robot on wheels gets what its wheels can do: nothing sideways unless it is
    omnidirectional, and no more than its top speed. Then it comes back to the velocity
    that it was told, by its ramps. What has mass keeps the velocity until forces change
    it.

    Attributes
    ----------
    twist : Twist
        m/s and rad/s.
    """

    twist: Twist

    def __post_init__(self) -> None:
        if not all(
            math.isfinite(value) and abs(value) <= HIGHEST for value in self.twist
        ):
            found = ", ".join(f"{value:g}" for value in self.twist)
            raise CommandError(
                f"twist: expected values within ±{HIGHEST:g}, found {found}"
            )

    def apply(self, state: State, row: int) -> None:
        """Write the velocity."""
        cos, sin = cosine_sine(float(state.pose[row, 2]))
        vx, vy, w = self.twist
        local = [vx * cos + vy * sin, vy * cos - vx * sin, w]
        if state.control[row] == _NO_MASS:
            top = state.top_vel[row].tolist()
            local = [
                min(max(value, -most), most)
                for value, most in zip(local, top, strict=True)
            ]

        state.vel[row] = local


__all__ = ["HIGHEST", "SetTwist"]
