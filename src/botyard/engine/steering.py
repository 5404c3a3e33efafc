"""Command that steers a car-like robot to an angle."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.engine.commands import check_finite, has_mass, may_move
from botyard.engine.layout import RATE, TOP_RATE, Control, Mode, State
from botyard.model.kinematics import STEERS


@dataclass(frozen=True, slots=True)
class SetSteering:
    """Steer a car-like robot to an angle, and drive until the next command.

    Other robots ignore it.

    Attributes
    ----------
    angle : float
        Steering angle, rad, positive to the left; beyond its limit the limit counts. The
        wheels also turn while the robot stands.
    v : float, optional
        Forward velocity, m/s; ends a distance move. None keeps the target.
    rate : float, optional
        Limit of the rate of the angle, rad/s, up to the model's own; the sign does not
        matter. 0: the model's own. None keeps the limit.
    """

    angle: float
    v: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        check_finite(
            "steering",
            self.angle,
            *(x for x in (self.v, self.rate) if x is not None),
        )

    def apply(self, state: State, row: int) -> None:
        """Set the targets of a robot that steers, unless it may not move.

        Parameters
        ----------
        state : State
            State of all bodies. In-place: targets and steering of the row.
        row : int
            Row of the body.
        """
        if not STEERS[state.drive[row]] or not may_move(state, row):
            return
        state.mode_a[row] = Mode.STEERING
        state.target[row, 2] = self.angle
        if self.v is not None:
            state.mode_x[row] = Mode.VELOCITY
            state.target[row, 0] = self.v

        if self.rate is not None:
            top = float(state.steer[row, TOP_RATE])
            rate = abs(self.rate)
            # 0 is unlimited in the state, but "as fast as possible" in a command.
            if rate == 0.0 or 0.0 < top < rate:
                rate = top
            state.steer[row, RATE] = rate

        # Ends forces and goals from outside, as each command of motion does.
        if has_mass(state, row):
            state.control[row] = Control.MOTORS


__all__ = ["SetSteering"]
