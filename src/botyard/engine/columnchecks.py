"""Checks of the columns of a state: ranges, poses and carriers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.batchchecks import is_steering
from botyard.engine.commands import MAX_COORDINATE
from botyard.engine.layout import (
    FIRST_WITH_WHEELS,
    MECANUM,
    Control,
    Mode,
    OdometryErrorMode,
)
from botyard.engine.tables import MAX_STATE_NUMBER, NOBODY, Column
from botyard.errors import StateError

# Far beyond each run: 300,000 years at 100 steps per second.
MAX_TICK: Final = 10**15
"""Highest number of a step that a state may have."""
MIN_SUBSTEP: Final = 1e-9
"""Least length of a substep of bodies with mass, s."""
MAX_SPAN: Final = 60.0
"""Greatest length of a substep of bodies with mass, s: the longest step of a `Clock`."""
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    # Only the rotation of a body has a steering angle as its target.
    "mode_x": (0, Mode.POSITION),
    "mode_a": (0, max(Mode)),
    "stall": (0, 1),
    "estop": (0, 1),
    "motors": (0, 1),
    "held": (0, 1),
    "drive": (0, MECANUM),
    "err_mode": (0, max(OdometryErrorMode)),
    "control": (0, max(Control)),
}
"""Least and greatest value of the columns of `State` that are flags or enumerations."""
ANY_FINITE: Final = (-MAX_STATE_NUMBER, MAX_STATE_NUMBER)


def is_span(span: float) -> bool:
    """Return whether a value of `Impulses.span`, s, is possible; 0: no substep so far."""
    return span == 0.0 or MIN_SUBSTEP <= span <= MAX_SPAN


def check_column(
    name: str, values: NDArray[Any], column: Column | None, bodies: int
) -> None:
    """Check that the numbers of a column are in its range.

    Parameters
    ----------
    name : str
        Name of the column, for the message.
    values : (n, …) array
        Numbers of the column.
    column : Column or None
        Declaration in a table; None for a column of `State`, see `_RANGES`.
    bodies : int
        Number of bodies, for columns that refer to them.

    Raises
    ------
    StateError
        A number is out of range, or NaN.
    """
    low, high = (
        _RANGES.get(name, (-math.inf, math.inf))
        if column is None
        else (column.low, column.high)
    )
    if column is not None and column.refers:
        low, high = NOBODY, bodies - 1
    # Finite bounds also refuse infinity in columns without a range of their own.
    elif values.dtype.kind == "f" and not (column is not None and column.unbounded):
        low, high = max(low, -MAX_STATE_NUMBER), min(high, MAX_STATE_NUMBER)
    elif column is not None and column.unbounded:
        return

    # NaN also fails the comparison.
    if values.size and not (float(values.min()) >= low and float(values.max()) <= high):
        # The negation `~` also counts NaN as wrong.
        wrong = values[~((values >= low) & (values <= high))]
        raise StateError(
            f"state: {name}: expected {low:g} … {high:g}, found {wrong.flat[0]}"
        )


def check_poses(pose: NDArray[Any]) -> None:
    """Check that all poses are in the bounds of the world, and headings within ±π.

    Parameters
    ----------
    pose : (n, 3) float64
        Poses: m, m, rad.

    Raises
    ------
    StateError
        A pose is out of bounds.
    """
    if len(pose) and not (
        np.abs(pose[:, :2]).max() <= MAX_COORDINATE
        # Headings are always stored wrapped: another heading means a damaged state.
        and np.abs(pose[:, 2]).max() <= math.pi
    ):
        raise StateError(
            f"state: pose: expected coordinates within ±{MAX_COORDINATE:g} m and "
            "headings within ±π rad, found magnitudes (x, y, heading) up to "
            f"{np.abs(pose).max(axis=0)}"
        )


def check_carriers(carrier: NDArray[Any]) -> None:
    """Check that carried bodies carry nothing, and hence that no body carries itself.

    Parameters
    ----------
    carrier : (n,) int64
        `State.carrier`.

    Raises
    ------
    StateError
        `carrier` does not refer to bodies, or a carried body carries another one.
    """
    if len(carrier) and not (
        int(carrier.min()) >= NOBODY and int(carrier.max()) < len(carrier)
    ):
        raise StateError(
            f"state: carrier: expected {NOBODY} … {len(carrier) - 1}, found "
            f"{carrier.min()} … {carrier.max()}"
        )

    carried = carrier[carrier != NOBODY]
    # Chains of carriers would need several passes per step, and could be circular.
    if (carrier[carried] != NOBODY).any():
        raise StateError(
            "state: carrier: expected carried bodies that carry nothing, found one that "
            "carries another body"
        )


def check_steering(drive: NDArray[Any], steer: NDArray[Any]) -> None:
    """Check that each body that steers or has a Mecanum drive has a valid row.

    Parameters
    ----------
    drive : (n,) int8
        `State.drive`.
    steer : (n, 7) float64, or without rows
        `State.steer`.

    Raises
    ------
    StateError
        A row is missing, or has a value out of range.
    """
    for row in np.flatnonzero(drive >= FIRST_WITH_WHEELS).tolist():
        # Kernels index the column by the row of the body. `check_column` has checked
        # that its numbers are finite, which is enough for a Mecanum drive.
        if row >= len(steer) or not (drive[row] == MECANUM or is_steering(steer, row)):
            raise StateError(
                "state: steer: expected a row for each body that steers, with the "
                "steering angle within its limit, and all values in the ranges of "
                f"robot models; found {steer[row : row + 1].tolist()} for body {row}"
            )


__all__ = [
    "ANY_FINITE",
    "MAX_SPAN",
    "MAX_TICK",
    "MIN_SUBSTEP",
    "check_carriers",
    "check_column",
    "check_poses",
    "check_steering",
    "is_span",
]
