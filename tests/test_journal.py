"""The journal:

repeating its entries gives the same run, and changes outside it are detected
(TODO-031).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.controllers.assignment import employ
from botyard.devices.grippertable import Grippers
from botyard.engine import commands as cmd
from botyard.engine.commands import SetVelocity
from botyard.errors import CommandError, StateError, WorldError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.readings import Action
from botyard.model.scene import Scene
from botyard.model.world import PlacedRobot, Program, World
from botyard.protocols.pioneer.packet import command as packet
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim import journal
from botyard.sim.journal import (
    AddRobots,
    Change,
    Claim,
    Entry,
    Restore,
    Submit,
    SubmitEach,
    WriteDevice,
    acting,
)
from botyard.sim.resimulation import REPLAYS, apply, resimulate
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate
from tests.journaled import watching
from tests.test_state import SCENE, THIRSTY, deeds, do, world


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
    unregister = sim.core.journal.listen(told.append)
    robot = sim.add_robot("p3dx-equipped", "r", pose=(0.0, 0.0, 0.0))
    sim.step(2)
    robot.port("me").issue_command(cmd.Stop())
    robot.claim("me")
    robot.gripper.act(Action.CLOSE)  # type: ignore[union-attr]
    with pytest.raises(WorldError):
        sim.add_robot("p3dx", "r", pose=(2.0, 0.0, 0.0))
    unregister()
    robot.command.stop()
    assert [(e.tick, e.order, e.source, type(e.change)) for e in told] == [
        (0, 1, "api", AddRobots),
        (2, 2, "me", Submit),
        (2, 3, "me", Claim),
        (2, 4, "api", WriteDevice),
        (2, 5, "api", WriteDevice),
    ]
    unregister()


def _halt(sim: Simulation) -> None:
    sim.core.engine.queue_command("a", cmd.Halt())
    sim.core.engine.settle()


POKES: dict[str, Callable[[Simulation], object]] = {
    "pose": lambda sim: sim.core.engine.state.pose.__setitem__((0, 0), 0.5),
    "limits": lambda sim: sim.core.engine.state.max_vel.__setitem__((0, 0), 0.1),
    "battery": lambda sim: sim.robots["b"].electrics.battery.table.charge.__setitem__(
        0, 50.0
    ),
    "gripper": lambda sim: sim.core.engine.table(Grippers).left_goal.__setitem__(
        0, 0.01
    ),
    "queue": lambda sim: sim.core.engine.queue_command("a", cmd.SetVelocity(v=0.2)),
    "settle": _halt,
    "claims": lambda sim: sim.robots["a"]._claims.append("nobody"),
    "clock": lambda sim: setattr(sim.core.engine.clock, "tick", sim.tick + 1),
    "bodies": lambda sim: sim.core.engine.remove_bodies(["c"]),
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
        assert [type(e.change).__name__ for e in watched[0].entries] == [
            "AddRobots",
            "SubmitVelocities",
            "Submit",
        ]


def again(sim: Simulation, act: Callable[[Simulation], object]) -> list[Entry]:
    """Change a world, and repeat the change in its clone from the journal alone."""
    first, told = sim.clone(), list[Entry]()
    sim.core.journal.listen(told.append)
    act(sim)
    list(resimulate(first, told, sim.tick))
    assert first.digest() == sim.digest()
    return told


def test_journals_with_restores_in_them() -> None:
    """Time goes back, models come from elsewhere, and restored programs do not act
    twice.
    """
    sim = world()
    other = world()
    other.add_robot(replace(THIRSTY, name="odd"), "o", pose=(2.0, -2.0, 0.0))
    employ(other.robots["o"], Program(name="wander"))
    other.step(2)
    sim.core.states.know([other.robots["o"].spec])

    def act(sim: Simulation) -> None:
        sim.step(3)
        early = sim.save_state()
        sim.robots["a"].command(v=0.2)
        sim.step(2)
        sim.restore(early)
        sim.robots["a"].command(v=0.1)
        sim.step()
        sim.restore(other.save_state())
        sim.step(4)
        sim.robots["a"].command.stop()

    told = again(sim, act)
    assert [e.tick for e in told if isinstance(e.change, Restore)] == [5, 4]
    with pytest.raises(
        StateError, match="expected a change of tick 6 or later, found one of tick 3"
    ):
        list(resimulate(sim, told, 9))


def test_robots_that_clients_cannot_reach_are_told() -> None:
    placed = (
        PlacedRobot(spec=THIRSTY, name="u", pose=Pose(1.0, -3.0, 0.0), served=False),
    )
    again(world(), lambda sim: populate(sim, World(scene=SCENE, robots=placed)))


def test_who_acts_is_told_also_of_what_says_nothing_itself() -> None:
    """Devices, new robots and maps are attributed, also in tasks that start meanwhile;
    clients and pages need do nothing.
    """
    sim, told = world(), list[Entry]()
    sim.core.journal.listen(told.append)
    with acting("page"):
        sim.robots["b"].electrics.temperature = 20
        sim.add_robot("p3dx", "p", pose=(2.0, -2.0, 0.0))

    sim.robots["b"].electrics.temperature = 21
    modem = NullModem(sim)
    line = modem.connect("b")
    for number in (0, 1, 2, 1):
        line.send(packet(number))
    line.send(packet(30, 0xFF00))
    modem.run(0.3)
    writes = [e.source for e in told if isinstance(e.change, (WriteDevice, AddRobots))]
    assert writes[:3] == ["page", "page", "api"] and set(writes[3:]) == {"pioneer"}


@pytest.mark.parametrize(
    "act",
    [
        lambda sim: sim.replace_scene(Scene()),
        lambda sim: sim.masses.set_dynamics("a", DynamicsSpec(mass=3.0)),
        lambda sim: sim.remove_robot("a"),
        lambda sim: sim.attach("d", "other"),
        lambda sim: sim.robots["a"].command(v=0.1),
        lambda sim: sim.restore(sim.save_state()),
        lambda sim: sim.robots["b"].gripper.act(Action.CLOSE),
        lambda sim: sim.robots["a"].claim("x"),
    ],
)
def test_a_listener_that_fails_changes_nothing(
    act: Callable[[Simulation], object], caplog: pytest.LogCaptureFixture
) -> None:
    sim, other, told = world(), world(), list[Entry]()

    def fail(entry: Entry) -> None:
        raise RuntimeError("mine")

    sim.core.journal.listen(fail)
    sim.core.journal.listen(told.append)
    act(sim)
    act(other)
    sim.settle()
    other.settle()
    assert sim.digest() == other.digest() and sim.scene is sim.core.engine.scene
    assert (
        len(told) >= 2 and caplog.text.count("a listener of the journal failed") == 1
    ), "it is told no more"


def test_each_kind_of_change_can_be_done_again() -> None:
    kinds = [
        k
        for k in vars(journal).values()
        if isinstance(k, type) and issubclass(k, Change) and k is not Change
    ]
    assert {AddRobots, Claim, Restore, Submit, WriteDevice} <= set(kinds)
    assert set(kinds) == set(REPLAYS)

    class Unknown(Change):
        pass

    with pytest.raises(StateError, match="no function is registered to replay Unknown"):
        apply(Unknown(), Simulation(), "api")


def test_a_listener_of_velocities_gets_them_without_entries_and_others_as_before() -> (
    None
):
    sim = Simulation()
    sim.add_robot("p3dx", "ann")
    entries, driven = list[Entry](), list[tuple[object, ...]]()
    ends = [
        sim.core.journal.listen(entries.append),
        sim.core.journal.listen(
            lambda entry: driven.append((entry.order,)), lambda *one: driven.append(one)
        ),
    ]
    sim.robots["ann"].command(v=0.25, w=-0.5)
    sim.robots["ann"].command.stop()
    sim.step()
    sim.robots["ann"].command(v=0.5)
    assert driven == [
        (0, 1, "api", "ann", SetVelocity(v=0.25, w=-0.5)),
        (2,),
        (1, 3, "api", "ann", SetVelocity(v=0.5)),
    ]
    assert [(e.tick, e.order, type(e.change)) for e in entries] == [
        (0, 1, Submit),
        (0, 2, Submit),
        (1, 3, Submit),
    ]
    for end in ends:
        end()
    sim.robots["ann"].command(v=0.1)
    assert len(driven) == len(entries) == 3


def test_velocities_that_were_noted_together_are_done_one_after_the_other() -> None:
    sims = [Simulation(seed=1), Simulation(seed=1)]
    for sim in sims:
        for name in ("ann", "bob"):
            sim.add_robot("p3dx", name)

    each = SubmitEach(
        ("ann", "bob", "ann"), (0.2, 0.3, None), (None, -0.1, 0.4), (None, None, None)
    )
    apply(each, sims[0], "me")
    for name, command in each.each():
        sims[1].core.accept_command(name, command, "me")
    assert sims[0].digest() == sims[1].digest()
    for sim in sims:
        sim.step(5)
    assert sims[0].digest() == sims[1].digest()
    with pytest.raises(CommandError, match="expected 2 numbers for each axis"):
        apply(
            SubmitEach(("ann", "bob"), (0.2,), (None, None), (None, None)),
            sims[0],
            "me",
        )
