"""The arrays of `State` with room for more bodies than there are, and two buffers in
which snapshots are made of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.layout import I8, State, allocate_state, changing_bytes

GROWTH_DIVISOR: Final = 4
"""A full store grows by 1 / `GROWTH_DIVISOR` of its rows, so that adding bodies one by
one seldom copies all.
"""
MAX_ONE_BY_ONE: Final = 8
"""So many rows are removed one by one, each by moving up those behind it; more at once
by copying those that stay.
"""


class StateStore:
    """Owns the arrays of `State`, and adds and removes rows.

    Attributes
    ----------
    state : State
        The rows in use; written by the engine only. Another object whenever rows have
        come or gone.
    """

    def __init__(self) -> None:
        self._reallocate(0)
        self.state = self._fitted(0)

    def grow(self, count: int) -> None:
        """Add `count` zeroed rows."""
        old = self.state
        n = len(old.pose)
        if n + count > self._capacity:
            self._reallocate(
                n + count if n == 0 else n + max(count, n // GROWTH_DIVISOR)
            )
            for name, array in old._asdict().items():
                getattr(self._room[0], name)[:n] = array

        self.state = self._fitted(n + count)
        for array in self.state:
            array[n:] = 0

    def remove(self, rows: I8) -> None:
        """Take rows out, (k,) int64, ascending; those behind them move up."""
        n = len(self.state.pose)
        m = n - len(rows)
        keep = None if len(rows) <= MAX_ONE_BY_ONE else np.delete(np.arange(n), rows)
        for array in self.state:
            if keep is None:
                for row in rows[::-1].tolist():
                    array[row : n - 1] = array[row + 1 : n]
            else:
                array[:m] = array[keep]

        self.state = self._fitted(m)

    def arrange(self, index: I8) -> None:
        """Permute the rows: `index`, (n,) int64, holds the present row of each new one."""
        for array in self.state:
            array[...] = array[index]
        self.touch()

    def touch(self) -> None:
        """Note that a column was written that steps do not write: the next copy into
        each buffer is of all columns.
        """
        self._stale = len(self._buffers)

    def publish(self) -> State:
        """A read-only copy of the state, valid until the next call but one."""
        view, block = self._buffers[0]
        if self._stale:
            block[:] = self._block
            self._stale -= 1
        else:
            block[: self._changing] = self._block[: self._changing]

        self._buffers.reverse()
        return view

    def _reallocate(self, capacity: int) -> None:
        self._capacity = capacity
        self._changing = changing_bytes(capacity)
        made = [allocate_state(capacity) for _ in range(3)]
        self._room, self._blocks = (
            [state for state, _ in made],
            [block for _, block in made],
        )
        self._block = self._blocks[0]
        for room in self._room[1:]:
            for array in room:
                array.flags.writeable = False

    def _fitted(self, n: int) -> State:
        """Views of the first `n` rows, of the state and of the buffers."""
        state, *views = (
            State._make(array[:n] for array in room) for room in self._room
        )
        self._buffers = list(zip(views, self._blocks[1:], strict=True))
        self.touch()
        return state


__all__ = ["StateStore"]
