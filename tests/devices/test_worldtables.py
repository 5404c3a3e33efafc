"""A new kind of columns in the table of tables is saved, restored, cloned and part of
digests.

No other code knows of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from botyard.devices import worldtables
from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8
from botyard.engine.simulation import Engine
from botyard.engine.state import columns_of, join
from botyard.engine.tables import Column, Row
from botyard.errors import StateError
from botyard.model.objects import Described
from botyard.model.robot import RobotSpec
from botyard.sim import core, simulation, statechecks
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.statehead import Roster, head_of


class Tyres(DeviceTable):
    """The wear of tyres, which grows with the distance."""

    name = "tyres"
    columns: ClassVar = {
        "wear": Column(np.float64, 2, low=0.0, high=1e6),
        "double": Column(np.float64, saved=False),
    }
    wear: F8
    double: F8

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return one key for each robot."""
        return set(robots)

    def act(self, engine: Engine, dt: float) -> None:
        """Wear both tyres."""
        self.wear += np.abs(engine.state.vel[self.body, :1]) * dt
        self.double[:] = 2.0 * self.wear[:, 0]

    def restored(self, engine: Engine) -> None:
        """Compute the column that is not saved from the other one."""
        self.double[:] = 2.0 * self.wear[:, 0]


# A repeated run would not find the tables of this module, so the run is not repeated.
pytestmark = pytest.mark.unwatched


@pytest.fixture
def _tyres(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tyres to robots."""
    tables = (*worldtables.WORLD_TABLES, Tyres)
    for module in (worldtables, simulation, statechecks):
        monkeypatch.setattr(module, "WORLD_TABLES", tables)
    put_in = core.Core.insert_robots

    def with_tyres(self: core.Core, *args: object) -> list[Robot]:
        robots = put_in(self, *args)  # type: ignore[arg-type]
        for robot in robots:
            Row(self.engine.table(Tyres), self.engine.rows[robot.name], robot.name)
        return robots

    monkeypatch.setattr(core.Core, "insert_robots", with_tyres)


def driven() -> Simulation:
    sim = Simulation(seed=3)
    for k, name in enumerate("abc"):
        sim.add_robot("p3dx", name, pose=(0, 2.0 * k, 0)).command(v=0.2 + 0.1 * k)
    sim.step(30)
    return sim


@pytest.mark.usefixtures("_tyres")
def test_a_new_kind_of_columns_is_a_part_of_the_state() -> None:
    sim = driven()
    worn, state, digest = (
        sim.core.engine.table(Tyres).wear.copy(),
        sim.save_state(),
        sim.digest(),
    )
    assert worn.min() > 0.1
    sim.step(10)
    goal = sim.digest()
    assert sim.core.engine.table(Tyres).wear.min() > worn.min()
    for other in (Simulation(), sim, pickle.loads(pickle.dumps(sim)), sim.clone()):
        other.restore(state)
        table = other.core.engine.table(Tyres)
        assert (table.wear == worn).all() and (table.double == 2.0 * worn[:, 0]).all()
        assert other.digest() == digest
        other.step(10)
        assert other.digest() == goal

    sim.restore(state)
    sim.core.engine.table(Tyres).wear[1, 0] += 1e-12
    assert sim.digest() != digest, "each of its numbers counts"
    sim.remove_robot("a")
    sim.restore(state)
    assert (sim.core.engine.table(Tyres).wear == worn).all(), (
        "rows are in the order of the state"
    )


@pytest.mark.usefixtures("_tyres")
@pytest.mark.parametrize(
    "keys", [["a", "b"], ["a", "b", "b"], ["a", "b", "x"], ["a", "b", "c", "d"]]
)
def test_a_state_whose_rows_are_not_those_of_its_robots_is_refused(
    keys: list[str],
) -> None:
    sim = driven()
    head = head_of(sim.core, sim.core.states.known, [])
    roster = msgspec.msgpack.decode(head.roster, type=Roster)
    roster.keys["tyres"] = keys
    head.roster = msgspec.Raw(msgspec.msgpack.encode(roster))
    wear = sim.core.engine.table(Tyres).wear
    columns = [
        np.resize(c, (len(keys), 2)) if c is wear else c
        for c in columns_of(sim.core.engine)
    ]
    digest = sim.digest()
    with pytest.raises(
        StateError,
        match="expected one row of the table tyres for each device of its robots, found other rows",
    ):
        sim.restore(join(msgspec.msgpack.encode(head), columns))

    assert sim.digest() == digest, "nothing has changed"


@pytest.mark.usefixtures("_tyres")
def test_a_number_out_of_its_range_is_refused() -> None:
    sim = driven()
    sim.core.engine.table(Tyres).wear[0, 0] = -1.0
    with pytest.raises(
        StateError, match=r"state: tyres\.wear: expected 0 … 1e\+06, found -1\.0"
    ):
        sim.clone()
