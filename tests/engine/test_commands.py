"""A command for many bodies equals one command for each, for any rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine import demand
from botyard.engine.layout import Control, Mode, allocate_state
from botyard.engine.velocities import SetVelocities

N = 9
speeds = st.floats(-2.0, 2.0)
run = st.tuples(st.integers(0, N), st.integers(0, N)).map(
    lambda ends: list(range(*sorted(ends)))
)
rows = st.one_of(run, st.lists(st.integers(0, N - 1), unique=True))


@given(rows, st.lists(st.integers(0, N - 1), unique=True, max_size=3), st.data())
def test_many_at_once_are_each_by_itself(
    who: list[int], by_themselves: list[int], data: st.DataObject
) -> None:
    together, apart = allocate_state(N)[0], allocate_state(N)[0]
    switches = st.lists(st.booleans(), min_size=N, max_size=N)
    motors, estop, massive = (data.draw(switches) for _ in range(3))
    v, w, vy = (
        data.draw(
            st.none()
            | st.lists(speeds, min_size=len(who), max_size=len(who)).map(np.array)
        )
        for _ in range(3)
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


@given(rows, st.lists(st.integers(0, N - 1), unique=True, max_size=4), st.data())
def test_velocities_of_many_stay_with_their_bodies_when_others_are_removed(
    who: list[int], removed: list[int], data: st.DataObject
) -> None:
    """The twin stores names where the command stores rows."""
    v = data.draw(st.lists(speeds, min_size=len(who), max_size=len(who)))
    command, names = (
        SetVelocities(np.array(who, np.int64), v=np.array(v)),
        list(range(N)),
    )
    for name in removed:
        command = command.renumbered(names.index(name))
        names.remove(name)

    state = allocate_state(len(names))[0]
    state.motors[:] = 1
    state.target[:] = 7.0
    command.apply(state, np.zeros(0, np.int64))
    wanted = dict(zip(who, v, strict=True))
    assert state.target[:, 0].tolist() == [wanted.get(name, 7.0) for name in names]


MOTIONS = (
    cmd.SetVelocity(v=0.5),
    cmd.MoveBy(1.0),
    cmd.TurnTo(1.0),
    cmd.TurnBy(1.0),
    cmd.Stop(),
    cmd.EmergencyStop(),
)


@pytest.mark.parametrize("command", MOTIONS, ids=lambda command: type(command).__name__)
def test_a_motion_command_ends_what_pushes_a_body_with_mass(
    command: cmd.Command,
) -> None:
    state = allocate_state(2)[0]
    state.motors[:] = 1
    state.control[:] = Control.MOTORS, Control.NONE
    push = demand.Demand(Control.FORCE, (1.0, 2.0, 3.0))
    for row in range(2):
        push.apply(state, row)
    assert state.control.tolist() == [Control.FORCE, Control.NONE]
    assert state.demand.tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], (
        "what has no mass cannot be pushed"
    )
    for row in range(2):
        command.apply(state, row)
    assert state.control.tolist() == [Control.MOTORS, Control.NONE]


def test_a_halt_leaves_nothing_of_a_motion() -> None:
    state = allocate_state(2)[0]
    for column in (
        state.vel,
        state.target,
        state.mode_x,
        state.mode_a,
        state.stall,
        state.estop,
    ):
        column[:] = 1

    cmd.Halt().apply(state, 1)
    for column in (state.vel, state.target, state.stall, state.estop):
        assert (column[0] == 1).all() and (column[1] == 0).all()
    assert (state.mode_x[1], state.mode_a[1]) == (Mode.VELOCITY, Mode.VELOCITY)
