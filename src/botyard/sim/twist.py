"""Command that sets the velocity of a body immediately, as after a collision or a kick.

Implements the twist of SetEntityState of simulation_interfaces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from botyard.engine.kernels.motion import true_curvature
from botyard.engine.layout import Control, State
from botyard.errors import CommandError
from botyard.geometry import Twist
from botyard.model.kinematics import STEERS
from botyard.numerics.elementary import cosine_sine

HIGHEST: Final = 1e5
"""Highest velocity that may be set, m/s or rad/s; the same bound as for commands."""
_NO_MASS: Final = int(Control.NONE)


@dataclass(frozen=True, slots=True)
class SetTwist:
    """Set the velocity of a body in world axes.

    A robot on wheels gets the part that its wheels allow: no lateral velocity unless it
    is omnidirectional, the turn of its wheels if it steers, and at most its top speed.
    Its ramps then lead it back to the commanded velocity. A body with mass keeps
    the velocity until forces change it.

    Attributes
    ----------
    twist : Twist
        Velocity in world axes, m/s and rad/s.
    """

    twist: Twist

    def __post_init__(self) -> None:
        # NaN fails the comparison, so that it is also refused.
        if not all(
            math.isfinite(value) and abs(value) <= HIGHEST for value in self.twist
        ):
            found = ", ".join(f"{value:g}" for value in self.twist)
            raise CommandError(
                f"twist: expected values within ±{HIGHEST:g}, found {found}"
            )

    def apply(self, state: State, row: int) -> None:
        """Write the velocity into the state.

        Parameters
        ----------
        state : State
            Columns of all bodies; `vel` is changed in place.
        row : int
            Row of the body.
        """
        cos, sin = cosine_sine(float(state.pose[row, 2]))
        vx, vy, w = self.twist
        # `State.vel` is in the frame of the body.
        local = [vx * cos + vy * sin, vy * cos - vx * sin, w]
        # Bodies with mass have no top speed: only forces limit them.
        if state.control[row] == _NO_MASS:
            top = state.top_vel[row].tolist()
            local = [
                min(max(value, -most), most)
                for value, most in zip(local, top, strict=True)
            ]

            # A body that steers turns by the curvature of its wheels alone.
            if STEERS[state.drive[row]]:
                local[2] = local[0] * true_curvature(state.steer, row)
                local[2] = min(max(local[2], -top[2]), top[2])

        state.vel[row] = local


__all__ = ["HIGHEST", "SetTwist"]
