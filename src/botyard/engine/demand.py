"""Demands of bodies with mass: a force, a pose or a velocity until the next command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from botyard.engine.commands import MAX_COORDINATE, check_finite, has_mass, may_move
from botyard.engine.layout import (
    NO_DRIVE,
    Control,
    State,
)
from botyard.errors import CommandError

_MAX_DEMAND: Final = {
    Control.FORCE: 1e9,
    Control.POSE: MAX_COORDINATE,
    Control.TWIST: 1e5,
}
"""Highest demands: N and N·m; m; m/s and rad/s.

The contact solver has no precision left beyond them.
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """Drive a body with mass by a force, to a pose or with a velocity.

    A demand lasts until the next command; a body without mass ignores it. A force acts
    from outside. For a pose or a velocity, a robot uses its motors: it follows the
    demand only while they are on.

    Attributes
    ----------
    control : Control
        `FORCE`, `POSE` or `TWIST`: meaning of the values.
    values : (float, float, float)
        Values in world axes, see `Control`.
    """

    control: Control
    values: tuple[float, float, float]

    def __post_init__(self) -> None:
        what, most = self.control.name.lower(), _MAX_DEMAND[self.control]
        check_finite(what, *self.values)
        if max(map(abs, self.values)) > most:
            raise CommandError(
                f"{what}: expected values within ±{most:g}, "
                f"found {max(self.values, key=abs):g}"
            )

    def apply(self, state: State, row: int) -> None:
        """Set the demand of a body with mass; a body without mass ignores it.

        A robot ignores a pose or velocity while its motors are off or it stops in an
        emergency.

        Parameters
        ----------
        state : State
            State of all bodies. In-place: `control` and `demand` of the row.
        row : int
            Row of the body.
        """
        is_pushed = self.control is Control.FORCE or state.drive[row] == NO_DRIVE
        if has_mass(state, row) and (is_pushed or may_move(state, row)):
            state.control[row] = self.control
            state.demand[row] = self.values
