"""Rings of delayed values: their columns in a table, their room, and their order."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine import commands as cmd
from botyard.engine.channels import MAX_SOURCES, MAX_UNDER_WAY, Channels
from botyard.engine.kernels.delayrings import drop_oldest, is_next_due, put
from botyard.engine.rings import RingTable, Waiting, used_slots
from botyard.engine.tables import Row
from botyard.model.robot import CommandSpec
from botyard.sim.simulation import Simulation


class Things(RingTable):
    name = "things"
    marks_type = np.int16


class Thing(Row[Things]):
    def detach(self) -> None:
        pass


@settings(max_examples=200, deadline=None)
@given(
    room=st.integers(1, 5),
    actions=st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30),
)
def test_a_ring_is_a_queue_in_which_nothing_overtakes(
    room: int, actions: list[tuple[int, bool]]
) -> None:
    ring, queue = np.zeros((1 + room, 2), np.int64), deque[tuple[int, int]]()
    for tick, (latency, takes) in enumerate(actions):
        due = max([tick + latency, *(one for one, _ in queue)])
        if len(queue) == room:
            queue.pop()
        queue.append((due, tick))
        put(ring, tick + latency, tick)
        while takes and queue and queue[0][0] <= tick:
            assert is_next_due(ring, 0, tick)
            queue.popleft()
            drop_oldest(ring)

        assert is_next_due(ring, 1, tick) == (len(queue) > 1 and queue[1][0] <= tick)
        assert ring[1:][used_slots(ring)].tolist() == [list(one) for one in queue]


def fill(table: Things, row: int, count: int, width: int) -> Waiting:
    """Put values into the ring of a row that encode their row and place."""
    times = np.arange(2 * count).reshape(count, 2)
    values = 100.0 * row + np.arange(count * width).reshape(count, width)
    waiting = Waiting(times, values, values.astype(np.int16))
    table.refill(row, waiting)
    return waiting


def same(one: Waiting, other: Waiting) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_rings_keep_their_values_while_rows_come_and_go() -> None:
    table = Things()
    for body in range(6):
        Thing(table, body, str(body))
    kept = {k: fill(table, k, count=2 + k, width=1 + k % 3) for k in range(6)}
    table.make_room(np.array([1, 4]), table.place[[1, 4], 3])
    assert all(same(table.waiting(k), one) for k, one in kept.items())
    # Bodies 0 and 3 are removed, and the others change places.
    table.renumber(np.array([-1, 3, 0, -1, 1, 2]))
    table.arrange([2, 0, 3, 1])
    found = {row.key: table.waiting(row.number) for row in table.rows}
    assert found.keys() == {"1", "2", "4", "5"}
    assert all(same(one, kept[int(str(key))]) for key, one in found.items())
    # The room of removed rows is used again.
    table.make_room(np.array([0]), int(table.place[0, 3]))
    assert len(table.times) == 1 + int((1 + table.place[:, 1]).sum())
    table.release(1)
    assert table.counts.tolist()[1] == 0
    table.empty_all()
    assert not table.counts.any()


def world(latency: float) -> Simulation:
    spec = replace(
        botyard.load_robot("p3dx"), commands=CommandSpec(latency=latency), lasers=()
    )
    sim = Simulation(warn=lambda text: None)
    sim.add_robot(spec, "a")
    return sim


@pytest.mark.parametrize("count", [MAX_UNDER_WAY - 1, MAX_UNDER_WAY + 5])
def test_the_newest_of_too_many_commands_replaces_the_last(count: int) -> None:
    sim = world(latency=1.0)
    for k in range(count):
        sim.core.accept_command("a", cmd.MoveBy(float(k)))
    sent = sim.core.engine.channels.under_way()["a"]
    moves = [one.command for one in sent if isinstance(one.command, cmd.MoveBy)]
    most = min(count, MAX_UNDER_WAY)
    assert [one.distance for one in moves] == [
        *map(float, range(most - 1)),
        count - 1.0,
    ]


def test_sources_of_commands_under_way_are_remembered_and_no_others() -> None:
    sim = world(latency=0.3)
    sim.core.accept_command("a", cmd.MoveBy(1.0), "first")
    for k in range(4 * MAX_SOURCES):
        if k % 100 == 99:
            sim.step()
            assert len(sim.core.engine.channels._sources) <= 2 * MAX_SOURCES
        sim.core.accept_command(
            "a", cmd.Stop() if k % 2 else cmd.TurnBy(0.1), f"client {k}"
        )
        if k % 100 == 99:
            sent = sim.core.engine.channels.under_way()["a"]
            assert sent[-1].source == f"client {k}"
            assert (sent[0].source == "first") == (sim.tick < 4)


def test_a_table_without_late_commands_has_no_rows() -> None:
    channels = Channels()
    channels.set("a", 0, CommandSpec())
    assert len(channels) == 0
    assert channels.is_idle
    assert not channels.is_due(10**9, 0.1)
