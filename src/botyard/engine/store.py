"""Arrays of `State` with spare room, and two buffers for snapshots."""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.layout import (
    FIRST_WITH_WHEELS,
    I8,
    State,
    allocate_state,
    changing_bytes,
)

GROWTH_DIVISOR: Final = 4
"""Divisor of the growth: a full store grows by 1 / `GROWTH_DIVISOR` of its rows.

Adding bodies one by one then seldom copies all rows.
"""
MAX_ONE_BY_ONE: Final = 8
"""Highest number of rows that are removed one by one by moving later rows up.

If more rows are removed at once, the remaining rows are copied.
"""


class StateStore:
    """Owner of the arrays of `State`: it adds and removes rows.

    Attributes
    ----------
    state : State
        Rows in use; written by the engine only. It is a new object whenever rows were added
        or removed.
    """

    def __init__(self) -> None:
        self._steers = False
        """Whether `State.steer` has rows."""
        self.state, _ = allocate_state(0)
        self._reallocate(0)
        self.state = self._fitted(0)

    def grow(self, count: int, *, steers: bool = False) -> None:
        """Add `count` zeroed rows.

        Parameters
        ----------
        count : int
            Number of rows, which follow all others. `state` is a new object afterwards.
        steers : bool
            Whether one of the new bodies has a row of wheels: `State.steer` then has rows.
        """
        n = len(self.state.pose)
        # Spare room keeps the arrays in place for most additions.
        if n + count > self._capacity or steers > self._steers:
            self._steers = self._steers or steers
            self._reallocate(
                # A first call usually adds all bodies of a world: no spare room is
                # needed.
                n + count if n == 0 else n + max(count, n // GROWTH_DIVISOR)
            )

        self.state = self._fitted(n + count)
        for array in self.state:
            # Rows may hold values of removed bodies.
            array[n:] = 0

    def remove(self, rows: I8) -> None:
        """Remove rows; later rows move up.

        Parameters
        ----------
        rows : (k,) int64
            Rows to remove, ascending.
        """
        n = len(self.state.pose)
        m = n - len(rows)
        # Few rows are moved in place, many need one gather.
        keep = None if len(rows) <= MAX_ONE_BY_ONE else np.delete(np.arange(n), rows)
        for array in self.state:
            if not len(array):
                continue
            if keep is None:
                # In descending order, so that the rows still to be removed keep their
                # numbers.
                for row in rows[::-1].tolist():
                    array[row : n - 1] = array[row + 1 : n]
            else:
                array[:m] = array[keep]

        # The state must be the same as if the removed bodies had never existed: without
        # rows of `State.steer` if no body is left that needs them.
        if self._steers and (self.state.drive[:m] < FIRST_WITH_WHEELS).all():
            self._steers = False
            self._reallocate(self._capacity)
        self.state = self._fitted(m)

    def arrange(self, index: I8) -> None:
        """Permute the rows in place.

        Parameters
        ----------
        index : (n,) int64
            Present row of each new row.
        """
        for array in self.state:
            if len(array):
                array[...] = array[index]
        self.touch()

    def touch(self) -> None:
        """Report a write to a column that steps do not write.

        The next copy into each buffer then copies all columns.
        """
        self._stale = len(self._buffers)

    def publish(self) -> State:
        """Return a read-only copy of the state, valid until the call after the next one.

        Returns
        -------
        State
            Views of a buffer. Callers cannot write to them.
        """
        view, block = self._buffers[0]
        if self._stale:
            # After a write to a column that steps do not write (`touch`), each of the two
            # buffers needs one full copy.
            block[:] = self._block
            self._stale -= 1
        else:
            block[: self._changing] = self._block[: self._changing]

        self._buffers.reverse()
        return view

    def _reallocate(self, capacity: int) -> None:
        """Make new arrays, and copy the rows in use."""
        self._capacity = capacity
        # The first block is the state, the other two are the buffers of snapshots.
        made = [allocate_state(capacity, self._steers) for _ in range(3)]
        for name, old in self.state._asdict().items():
            new = getattr(made[0][0], name)
            # `State.steer` may gain or lose its rows.
            count = min(len(new), len(old))
            new[:count] = old[:count]

        self._room, self._blocks = (
            [state for state, _ in made],
            [block for _, block in made],
        )
        self._block = self._blocks[0]
        self._changing = len(self._block) if self._steers else changing_bytes(capacity)
        for room in self._room[1:]:
            for array in room:
                # Snapshots must not change; they are written through their blocks.
                array.flags.writeable = False

    def _fitted(self, n: int) -> State:
        """Return views of the first `n` rows of the state and of both buffers."""
        state, *views = (
            State._make(array[:n] for array in room) for room in self._room
        )
        self._buffers = list(zip(views, self._blocks[1:], strict=True))
        self.touch()
        return state


__all__ = ["StateStore"]
