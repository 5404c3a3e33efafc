"""Rows of tables and of the state stay with their bodies while bodies are added and
removed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine.bodyspec import BodySpec
from botyard.engine.build import insert_in_order, moving_order
from botyard.engine.layout import F8, I8, Control, State
from botyard.engine.simulation import Engine
from botyard.engine.store import StateStore
from botyard.engine.tables import NOBODY, Column, Row, Table, cell
from botyard.geometry import Pose
from botyard.model.scene import Scene

SQUARE = ((-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1))


class Lamps(Table):
    name = "lamp"
    columns: ClassVar = {
        "power": Column(np.float64, start=7.0),
        "color": Column(np.float64, 3),
        "friend": Column(np.int64, start=NOBODY, refers=True),
        "version": Column(np.int64),
    }
    power: F8
    color: F8
    friend: I8


class Lamp(Row[Lamps]):
    power = cell(float)
    version = cell(int)


def body(name: str) -> tuple[BodySpec, Pose]:
    return BodySpec(name=name, parts=(SQUARE,)), Pose(
        float(len(name)), float(sum(map(ord, name))), 0.0
    )


def test_a_row_is_a_view_of_columns() -> None:
    lamps = Lamps()
    lamp = Lamp(lamps, 3, color=(1.0, 2.0, 3.0))
    assert (lamp.power, lamps.body.tolist(), lamps.color.tolist()) == (
        7.0,
        [3],
        [[1.0, 2.0, 3.0]],
    )
    lamp.power = 2.5
    assert (lamps.power.tolist(), lamp.version) == ([2.5], 1)
    lamps.power[0] = 4.0
    assert (lamp.power, lamp.version) == (4.0, 1)


Change = tuple[bool, int, int]


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 12), st.integers(0, 10**6)), max_size=30
    )
)
@settings(max_examples=60)
def test_rows_stay_with_their_bodies(changes: list[Change]) -> None:
    """Compare with a twin of plain dictionaries; many bodies at once or a few, from any
    place.
    """
    lamps = Lamps()
    engine = Engine(Scene(), tables=(lamps,))
    twin: dict[str, tuple[float, str | None]] = {}
    held: dict[str, Lamp] = {}
    gone: list[tuple[Lamp, float]] = []
    made = 0
    for comes, count, draw in changes:
        names = list(twin)
        if comes or not names:
            fresh = [f"{'xyz'[(draw + k) % 3]}{made + k}" for k in range(count)]
            engine.add_bodies([body(n) for n in fresh])
            for k, n in enumerate(fresh):
                friend = names[(draw + k) % len(names)] if names and k % 2 else None
                twin[n] = (float(made + k), friend)
                row = NOBODY if friend is None else engine.rows[friend]
                held[n] = Lamp(lamps, engine.rows[n], power=twin[n][0], friend=row)

            made += count
        else:
            leave = {names[(draw + 7 * k) % len(names)] for k in range(count)}
            engine.remove_bodies(list(leave))
            gone += [(held.pop(n), twin[n][0]) for n in leave]
            twin = {
                n: (p, None if f in leave else f)
                for n, (p, f) in twin.items()
                if n not in leave
            }

        assert list(engine.rows) == list(twin) == [s.name for s in engine.specs]
        assert len(lamps) == len(twin)
        for n, (power, friend) in twin.items():
            lamp, row = held[n], engine.rows[n]
            assert lamp.power == power and lamps.body[lamp.number] == row
            there = int(lamps.friend[lamp.number])
            assert (None if there == NOBODY else engine.specs[there].name) == friend
            x, y, _ = engine.state.pose[row]
            assert (x, y) == (float(len(n)), float(sum(map(ord, n))))
            assert engine.state.uid[row] == engine.specs[row].uid
            assert (engine.snapshot.state.pose[row] == engine.state.pose[row]).all()

        assert (
            engine.bodies.order.tolist()
            == moving_order([s.name for s in engine.specs]).tolist()
        )
        assert all(lamp.power == power for lamp, power in gone), (
            "what is gone keeps its last values"
        )


@given(
    st.lists(st.text("abcxyz", min_size=1, max_size=4), unique=True, max_size=40),
    st.data(),
)
def test_new_names_find_their_places_in_the_order(
    names: list[str], data: st.DataObject
) -> None:
    n_old = data.draw(st.integers(0, len(names)))
    assert (
        insert_in_order(moving_order(names[:n_old]), names, n_old).tolist()
        == moving_order(names).tolist()
    )


def test_a_store_gives_zeroed_rows_and_keeps_the_last_copy() -> None:
    store = StateStore()
    store.grow(3)
    store.state.pose[:] = 1.0
    store.state.control[:] = Control.MOTORS
    before = store.publish()
    store.remove(np.array([0, 2]))
    assert (before.pose == 1.0).all() and len(before.pose) == 3, (
        "who looks at the last copy sees no rows move"
    )
    store.grow(2)
    for name in State._fields:
        array = getattr(store.state, name)
        assert not array[1:].any(), name

    assert (store.state.pose[0] == 1.0).all()
    after = store.publish()
    assert not after.pose.flags.writeable
    assert (after.pose == store.state.pose).all() and (
        after.control == store.state.control
    ).all()
