"""Arrays of `State` with spare room, and two buffers for snapshots."""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.layout import I8, State, allocate_state, changing_bytes

GROWTH_DIVISOR: Final = 4
"""Divisor of the growth: a full store grows by 1 / `GROWTH_DIVISOR` of its rows.

Adding bodies one by one then seldom copies all rows.
"""
MAX_ONE_BY_ONE: Final = 8
"""Number of rows up to which removal moves up the following rows for each.

Removing more rows at once copies the remaining ones.
"""


class StateStore:
    """Owner of the arrays of `State`, which adds and removes rows.

    Attributes
    ----------
    state : State
        Rows in use; written by the engine only. It is a new object whenever rows were added
        or removed.
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
                # A first call usually adds all bodies of a world: no spare room is
                # needed.
                n + count if n == 0 else n + max(count, n // GROWTH_DIVISOR)
            )
            for name, array in old._asdict().items():
                getattr(self._room[0], name)[:n] = array

        self.state = self._fitted(n + count)
        for array in self.state:
            array[n:] = 0

    def remove(self, rows: I8) -> None:
        """Remove rows, (k,) int64, ascending; later rows move up."""
        n = len(self.state.pose)
        m = n - len(rows)
        keep = None if len(rows) <= MAX_ONE_BY_ONE else np.delete(np.arange(n), rows)
        for array in self.state:
            if keep is None:
                # In descending order, so that the rows still to be removed keep their
                # numbers.
                for row in rows[::-1].tolist():
                    array[row : n - 1] = array[row + 1 : n]
            else:
                array[:m] = array[keep]

        self.state = self._fitted(m)

    def arrange(self, index: I8) -> None:
        """Permute the rows.

        `index`, (n,) int64, holds the present row of each new one.
        """
        for array in self.state:
            array[...] = array[index]
        self.touch()

    def touch(self) -> None:
        """Note that a column was written that steps do not write.

        The next copy into each buffer then copies all columns.
        """
        self._stale = len(self._buffers)

    def publish(self) -> State:
        """Return a read-only copy of the state, valid until the next call but one."""
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
        # One is the state, two are the buffers of snapshots.
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
        """Return views of the first `n` rows, of the state and of the buffers."""
        state, *views = (
            State._make(array[:n] for array in room) for room in self._room
        )
        self._buffers = list(zip(views, self._blocks[1:], strict=True))
        self.touch()
        return state


__all__ = ["StateStore"]
