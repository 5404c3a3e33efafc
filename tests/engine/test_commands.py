"""Commands for many bodies at once are the same as one for each of them, whatever rows they are for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine.commands import SetVelocities
from botyard.engine.layout import Control, Mode, allocate_state

N = 9
speeds = st.floats(-2.0, 2.0)
run = st.tuples(st.integers(0, N), st.integers(0, N)).map(lambda ends: list(range(*sorted(ends))))
rows = st.one_of(run, st.lists(st.integers(0, N - 1), unique=True))


@given(rows, st.lists(st.integers(0, N - 1), unique=True, max_size=3), st.data())
def test_many_at_once_are_each_by_itself(who: list[int], by_themselves: list[int], data: st.DataObject) -> None:
    together, apart = allocate_state(N)[0], allocate_state(N)[0]
    switches = st.lists(st.booleans(), min_size=N, max_size=N)
    motors, estop, massive = (data.draw(switches) for _ in range(3))
    v, w, vy = (
        data.draw(st.none() | st.lists(speeds, min_size=len(who), max_size=len(who)).map(np.array)) for _ in range(3)
    )
    for state in (together, apart):
        state.motors[:], state.estop[:] = motors, estop
        state.control[:] = np.where(massive, Control.FORCE, Control.NONE)
        state.target[:] = 7.0
        state.mode_x[:], state.mode_a[:] = Mode.POSITION, Mode.POSITION
    command = SetVelocities(np.array(who, np.int64), v, w, vy)
    command.apply(together, np.array(by_themselves, np.int64))
    for index, row in enumerate(who):
        if row not in by_themselves:
            command.for_body(index).apply(apart, row)
    for field, one, other in zip(together._fields, together, apart, strict=True):
        assert np.array_equal(one, other, equal_nan=True), field
