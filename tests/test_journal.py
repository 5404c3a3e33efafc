"""The journal: what was done to a world, done again, gives the same run; what passes it by is noticed (TODO-031)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.controllers.crew import employ
from botyard.devices.gripper import Action, Grippers
from botyard.engine import commands as cmd
from botyard.errors import WorldError
from botyard.model.world import Program
from botyard.protocols.pioneer.packet import command as packet
from botyard.servers.nullmodem import NullModem
from botyard.sim.journal import AddRobots, Claim, Entry, Submit, WriteDevice
from botyard.sim.simulation import Simulation
from tests.journaled import watching
from tests.test_state import SCENE, deeds, do, world


@given(st.lists(deeds(), max_size=30))
@settings(max_examples=40)
def test_what_was_done_again_gives_the_same_run(done: list[tuple[str, Any]]) -> None:
    with watching() as watched:
        sim, made = world(), [0]
        for deed in done:
            do(sim, deed, made)
        sim.step()
        assert watched[0].digests


def test_controllers_and_clients_are_told_by_their_commands() -> None:
    with watching() as watched:
        sim = world()
        employ(sim.robots["a"], Program(name="wander"))
        modem = NullModem(sim)
        line = modem.connect("d")
        for number in (0, 1, 2, 1):
            line.send(packet(number))
        modem.run(1.0)
        assert sim.robots["d"].clients
        sources = {entry.source for entry in watched[0].entries}
        assert len(sources) >= 2, sources


def test_entries_say_who_did_what_and_when() -> None:
    sim = Simulation(SCENE)
    told: list[Entry] = []
    unregister = sim.journal(told.append)
    robot = sim.add_robot("p3dx-equipped", "r", pose=(0.0, 0.0, 0.0))
    sim.step(2)
    robot.port("me").submit(cmd.Stop())
    robot.claim("me")
    robot.gripper.act(Action.CLOSE)  # type: ignore[union-attr]
    with pytest.raises(WorldError):
        sim.add_robot("p3dx", "r", pose=(2.0, 0.0, 0.0))
    unregister()
    robot.command.stop()
    assert [(e.tick, e.order, e.source, type(e.change)) for e in told] == [
        (0, 1, "api", AddRobots), (2, 2, "me", Submit), (2, 3, "me", Claim), (2, 4, "api", WriteDevice), (2, 5, "api", WriteDevice),
    ]  # fmt: skip
    unregister()


def _halt(sim: Simulation) -> None:
    sim.engine.submit("a", cmd.Halt())
    sim.engine.settle()


POKES: dict[str, Callable[[Simulation], object]] = {
    "pose": lambda sim: sim.engine.state.pose.__setitem__((0, 0), 0.5),
    "limits": lambda sim: sim.engine.state.max_vel.__setitem__((0, 0), 0.1),
    "battery": lambda sim: sim.robots["b"].electrics.battery.table.charge.__setitem__(0, 50.0),
    "gripper": lambda sim: sim.engine.table(Grippers).left_goal.__setitem__(0, 0.01),
    "queue": lambda sim: sim.engine.submit("a", cmd.SetVelocity(v=0.2)),
    "settle": _halt,
    "claims": lambda sim: sim.robots["a"]._claims.append("nobody"),
    "clock": lambda sim: setattr(sim.engine.clock, "tick", sim.tick + 1),
    "bodies": lambda sim: sim.engine.remove_bodies(["c"]),
}


def _poked(poke: Callable[[Simulation], object]) -> None:
    with watching():
        sim = world()
        sim.robots["a"].command(v=0.3)
        sim.step(2)
        poke(sim)
        sim.step(2)


@pytest.mark.pokes
@pytest.mark.parametrize("what", POKES)
def test_what_passes_the_journal_by_is_noticed(what: str) -> None:
    _poked(lambda sim: None)
    with pytest.raises((AssertionError, IndexError)):
        _poked(POKES[what])


def test_fleets_are_told_as_arrays() -> None:
    with watching() as watched:
        sim = Simulation(SCENE)
        sim.add_robots("p3dx", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)])
        sim.fleet.command(v=np.array([0.1, 0.2, 0.3]))
        sim.robots["p3dx_002"].command(w=0.5)
        sim.step(3)
        assert [type(e.change).__name__ for e in watched[0].entries] == ["AddRobots", "SubmitVelocities", "Submit"]
