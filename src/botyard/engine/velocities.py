"""Command that sets the velocities of many bodies together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from botyard.api.arguments import found
from botyard.engine.commands import SetVelocity
from botyard.engine.layout import (
    F8,
    I8,
    NO_CONTROL,
    Control,
    Mode,
    State,
)
from botyard.errors import CommandError


@dataclass(frozen=True, slots=True)
class SetVelocities:
    """`SetVelocity` for many bodies together; axes with None keep their targets.

    Attributes
    ----------
    rows : (n,) int64 array
        Rows of the bodies, each at most once.
    v, w, vy : (n,) float64 array, optional
        As in `SetVelocity`.
    """

    rows: I8
    v: F8 | None = None
    w: F8 | None = None
    vy: F8 | None = None

    def __post_init__(self) -> None:
        for values in (self.v, self.w, self.vy):
            # The sum of squares is the fastest test that passes usual values.
            if (
                values is not None
                and not math.isfinite(np.dot(values, values))
                and not np.isfinite(values).all()
            ):
                at = int(np.flatnonzero(~np.isfinite(values))[0])
                raise CommandError(
                    f"velocity: expected finite numbers, found {values[at]} at "
                    f"index {at}"
                )

    def checked(self, count: int) -> SetVelocities:
        """Return a copy after a check of rows for `count` bodies.

        Parameters
        ----------
        count : int
            Number of bodies of the world.

        Raises
        ------
        CommandError
            Rows are not whole numbers, are out of range or given twice, or another
            array has another length.
        """
        rows = np.array(self.rows)
        # Commands of clients reach this check: rows index the state without further
        # tests.
        fits = rows.ndim == 1 and (
            not rows.size
            or (rows.dtype.kind in "iu" and rows.min() >= 0 and rows.max() < count)
        )

        if not fits or (
            rows.size > 1
            and not (np.diff(rows) > 0).all()
            and len(np.unique(rows)) < len(rows)
        ):
            raise CommandError(
                f"rows: expected rows of {count} bodies, 0 … {count - 1}, each at most once, "
                f"found {found(self.rows)}"
            )

        arrays = [
            None if a is None else np.array(a, np.float64)
            for a in (self.v, self.w, self.vy)
        ]
        if any(a is not None and a.shape != rows.shape for a in arrays):
            raise CommandError(
                f"velocity: expected {len(rows)} numbers, as many as rows, found shapes "
                f"{[a.shape for a in arrays if a is not None]}"
            )

        return SetVelocities(rows.astype(np.int64, copy=False), *arrays)

    def for_body(self, index: int) -> SetVelocity:
        """Return the command for the body ``rows[index]`` alone.

        Parameters
        ----------
        index : int
            Index in `rows`, not a row.
        """
        return SetVelocity(
            *(None if a is None else float(a[index]) for a in (self.v, self.w, self.vy))
        )

    def without(self, row: int) -> SetVelocities:
        """Return the command without the body in `row`.

        Parameters
        ----------
        row : int
            Row of the body; it need not be among `rows`.
        """
        keep = self.rows != row
        return SetVelocities(
            self.rows[keep],
            *(None if a is None else a[keep] for a in (self.v, self.w, self.vy)),
        )

    def renumbered(self, removed: int) -> SetVelocities:
        """Return the command after the removal of a body from the world.

        Parameters
        ----------
        removed : int
            Row of the removed body. Its part is dropped, and later rows move up.
        """
        left = self.without(removed)
        return replace(left, rows=left.rows - (left.rows > removed))

    def apply(self, state: State, rows_by_themselves: I8) -> None:
        """Set the targets of all rows except `rows_by_themselves`.

        Parameters
        ----------
        state : State
            State of all bodies. In-place: targets of bodies that may move.
        rows_by_themselves : (k,) int64
            Rows to leave out: bodies that also have other commands in this step, whose
            order matters.
        """
        rows = self.rows
        # Consecutive rows are a slice of the state, which takes a third of the time of
        # an index array.
        n = len(rows)
        first = int(rows[0]) if n else 0
        where: I8 | slice = slice(first, first + n) if _are_consecutive(rows) else rows
        which: NDArray[np.bool_] | slice = slice(None)

        # Searches in bytes take a third of the time of NumPy's for few bodies.
        if (
            len(rows_by_themselves)
            or b"\0" in state.motors[where].tobytes()
            or state.estop[where].tobytes().count(0) < n
        ):
            may = (state.motors[where] != 0) & (state.estop[where] == 0)
            may &= ~np.isin(rows, rows_by_themselves)
            which, where = may, rows[may]

        for axis, values, mode in (
            (0, self.v, state.mode_x),
            (1, self.vy, None),
            (2, self.w, state.mode_a),
        ):
            if values is not None:
                state.target[where, axis] = values[which]
                if mode is not None:
                    mode[where] = Mode.VELOCITY

        control = state.control[where]
        if control.tobytes().count(NO_CONTROL) < len(control):
            state.control[rows[which][control != NO_CONTROL]] = Control.MOTORS


def _are_consecutive(rows: I8) -> bool:
    """Return whether rows follow one another; cached for read-only arrays."""
    global _consecutive
    known, answer = _consecutive
    if known is not rows:
        answer = np.array_equal(rows, rows[:1] + np.arange(len(rows)))
        # A writable array may change later.
        if not rows.flags.writeable:
            _consecutive = rows, answer
    return answer


_consecutive: tuple[I8, bool] = np.zeros(0, np.int64), True
"""Latest read-only array, and whether its rows are consecutive."""
