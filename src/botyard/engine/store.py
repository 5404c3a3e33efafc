"""The arrays of `State` with room for more bodies than there are, and two buffers in which snapshots are made of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.layout import I8, State, allocate_state, changing_bytes

SPARE: Final = 4
"""When bodies need more room, there is room for a quarter (1 / `SPARE`) more than are there: adding one seldom copies all."""
FEW: Final = 8
"""So many rows are removed one by one, each by moving those behind it; more at once by picking those that stay."""


class StateStore:
    """Rows of `State` that come and go.

    Attributes
    ----------
    state : State
        The rows in use; written by the engine only. Another object whenever rows have come or gone.
    """

    def __init__(self) -> None:
        self._reallocate(0)
        self.state = self._fitted(0)

    def grow(self, count: int) -> None:
        """Add `count` zeroed rows."""
        old = self.state
        n = len(old.pose)
        if n + count > self._capacity:
            self._reallocate(n + count if n == 0 else n + max(count, n // SPARE))
            for name, array in old._asdict().items():
                getattr(self._room[0], name)[:n] = array
        self.state = self._fitted(n + count)
        for array in self.state:
            array[n:] = 0

    def remove(self, rows: I8) -> None:
        """Take rows out, (k,) int64, ascending; those behind them move up."""
        n = len(self.state.pose)
        m = n - len(rows)
        keep = None if len(rows) <= FEW else np.delete(np.arange(n), rows)
        for array in self.state:
            if keep is None:
                for row in rows[::-1].tolist():
                    array[row : n - 1] = array[row + 1 : n]
            else:
                array[:m] = array[keep]
        self.state = self._fitted(m)

    def arrange(self, index: I8) -> None:
        """Put the rows into another order: `index`, (n,) int64, has the present row of each."""
        for array in self.state:
            array[...] = array[index]
        self.touch()

    def touch(self) -> None:
        """Something was changed that a step does not change: both buffers need a whole copy."""
        self._stale = len(self._buffers)

    def publish(self) -> State:
        """A read-only copy of the state, which stays as it is until the next copy but one."""
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
        self._room, self._blocks = [state for state, _ in made], [block for _, block in made]
        self._block = self._blocks[0]
        for room in self._room[1:]:
            for array in room:
                array.flags.writeable = False

    def _fitted(self, n: int) -> State:
        """Show the first `n` rows."""
        state, *views = (State._make(array[:n] for array in room) for room in self._room)
        self._buffers = list(zip(views, self._blocks[1:], strict=True))
        self.touch()
        return state


__all__ = ["StateStore"]
