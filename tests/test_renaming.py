"""Robots with new names: the same robot for all that it was, another one for its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from botyard.engine import commands as cmd
from botyard.errors import (
    NameRuleError,
    NameTakenError,
    StateError,
    UnknownNameError,
    WorldError,
)
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.model.trailers import TrailerSpec
from botyard.sim import renaming
from botyard.sim.journal import Entry, RenameRobots
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Robot, Simulation


def world() -> Simulation:
    sim = Simulation.load("office", seed=1)
    sim.add_robot("p3dx-equipped", "ann", pose=(10, 14, 0))
    sim.add_robot("p3dx", "bob", pose=(12, 14, 0))
    sim.add_robot("turtlebot4", "tom", pose=(14, 14, 0))
    return sim


def rename(sim: Simulation, names: Mapping[str, str]) -> dict[str, str]:
    return sim.core.states.rename_robots(names)


def facts(robot: Robot) -> tuple[Any, ...]:
    return (
        tuple(robot.truth),
        tuple(robot.odom),
        tuple(robot.velocity),
        robot.start,
        robot.electrics.charge,
        robot._teleports,
        robot.is_kept_off,
    )


def test_a_renamed_robot_is_as_it_was() -> None:
    sim = world()
    ann, bob = sim.robots["ann"], sim.robots["bob"]
    ann.command(v=0.3, w=0.2)
    bob.set_parameters(wheel_ratio=1.01)
    ann.set_parameters(command_latency=0.2)
    sim.core.unserve(["tom"])
    sim.put("ann", (10.5, 14, 0))
    sim.step(20)
    ann.electrics.battery.write(charge=40.0)
    sim.core.accept_command("bob", cmd.SetVelocity(v=0.1, w=0.0))
    before = {n: facts(r) for n, r in sim.robots.items()}
    parameters = dict(sim.core.parameters)
    got = rename(sim, {"ann": "anna", "tom": "timo"})
    assert got == {"ann": "anna", "tom": "timo"}
    assert list(sim.robots) == list(sim.snapshot.rows)[-3:] == ["anna", "bob", "timo"]
    # A robot that keeps its name keeps its handle, with its command under way.
    assert sim.robots["bob"] is bob
    after = {n: facts(r) for n, r in sim.robots.items()}
    assert list(after.values()) == list(before.values())
    assert sim.core.parameters == {
        got.get(n, n): values for n, values in parameters.items()
    }
    assert parameters.keys() == {"ann", "bob"}
    assert not sim.core.is_served("timo") and sim.core.is_served("anna")
    sim.step()
    assert bob.velocity.vx > 0
    with pytest.raises(UnknownNameError, match=r'renamed: use robots\["anna"\]'):
        _ = ann.truth


def test_names_are_swapped_and_checked() -> None:
    sim = world()
    poses = {n: tuple(r.truth) for n, r in sim.robots.items()}
    rename(sim, {"ann": "bob", "bob": "ann"})
    assert tuple(sim.robots["bob"].truth) == poses["ann"]
    assert tuple(sim.robots["ann"].truth) == poses["bob"]
    state = sim.save_state()
    for names, error in (
        ({"ann": "tom"}, NameTakenError),
        ({"ann": "x", "bob": "x"}, NameTakenError),
        ({"ann": ""}, NameRuleError),
        ({"ann": "a\nb"}, NameRuleError),
        ({"eve": "x"}, UnknownNameError),
        ({"bob": "x", "ann": next(iter(sim.core.box_names), "tom")}, NameTakenError),
    ):
        with pytest.raises(error):
            rename(sim, names)
        assert sim.save_state() == state
    assert rename(sim, {"ann": "ann"}) == {}


def test_robots_of_one_model_swap_their_names() -> None:
    sim = Simulation(seed=1)
    for y, name in enumerate(("ann", "bob", "tom")):
        sim.add_robot("p3dx", name, pose=(0, 3 * y, 0))
    former = dict(sim.robots)
    sim.step(2)
    rename(sim, {"ann": "bob", "bob": "ann"})
    assert {n: r.truth.y for n, r in sim.robots.items()} == {
        "bob": 0.0,
        "ann": 3.0,
        "tom": 6.0,
    }
    assert sim.robots["tom"] is former["tom"]
    sim.robots["bob"].command(v=0.3)
    sim.step(5)
    assert sim.robots["bob"].velocity.vx > 0 == sim.robots["ann"].velocity.vx
    with pytest.raises(UnknownNameError, match=r'renamed: use robots\["bob"\]'):
        _ = former["ann"].truth


def test_trailers_have_the_name_of_their_robot() -> None:
    sim = Simulation()
    box = ((-0.3, -0.25), (0.3, -0.25), (0.3, 0.25), (-0.3, 0.25))
    trailer = TrailerSpec(outline=box, hitch=0.5, length=1.0)
    spec = replace(find_robot("p3dx"), trailers=(trailer, trailer))
    sim.add_robot(spec, "tug", pose=(0, 0, 0))
    got = rename(sim, {"tug": "pull"})
    assert got["tug_trailer_1"] == "pull_trailer_1"
    assert list(sim.robots) == ["pull", "pull_trailer_1", "pull_trailer_2"]
    sim.robots["pull"].command(v=0.5)
    sim.step(60)
    assert sim.robots["pull_trailer_2"].truth.x > sim.robots["pull_trailer_2"].start.x
    with pytest.raises(WorldError, match="is a trailer"):
        rename(sim, {"pull_trailer_1": "cart"})


def test_programs_go_on() -> None:
    sim = world()
    calls: list[str] = []

    def twirl(robot: Robot) -> None:
        calls.append(robot.name)
        robot.command(w=0.5)

    sim.robots["bob"].go_to(12.0, 10.0)
    sim.robots["ann"].set_controller(twirl)
    sim.step(30)
    trip = sim.robots["bob"].trip
    assert trip is not None
    rename(sim, {"bob": "bert", "ann": "anna"})
    again = sim.robots["bert"].trip
    assert again is not None and again.goals_reached == trip.goals_reached
    sim.step(3)
    assert calls[-1] == "anna" and sim.robots["bert"].velocity.vx > 0


class Stubborn:
    """Controller that turns, and refuses its state."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def act(self) -> None:
        self.robot.command(w=0.5)

    def get_state(self) -> int:
        return 1

    def set_state(self, state: int) -> None:
        raise RuntimeError("no such state")


def test_a_program_that_refuses_its_state_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sim = world()
    sim.robots["ann"].set_controller(Stubborn)
    sim.robots["bob"].set_controller("wander")
    sim.step(10)
    rename(sim, {"ann": "anna", "bob": "bert"})
    assert "robot anna cannot continue, and the robot stops: " in caplog.text
    assert list(sim.robots) == ["anna", "bert", "tom"]
    assert sim.core.programs.crashed.keys() == {"anna"}
    assert sim.core.programs.by_robot.keys() == {"bert"}
    sim.step(60)
    assert sim.robots["anna"].velocity == (0.0, 0.0, 0.0)


def test_programs_go_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = world()
    sim.robots["bob"].go_to(12.0, 10.0)
    sim.step(30)
    monkeypatch.setattr(renaming, "Budget", lambda: Budget(robots=1))
    state = sim.save_state()
    with pytest.raises(StateError, match="expected at most 1 robots"):
        rename(sim, {"ann": "anna", "bob": "bert"})
    assert sim.save_state() == state
    assert sim.robots["bob"].trip is not None


def test_a_run_with_new_names_simulates_again() -> None:
    sim, again = world(), world()
    entries: list[Entry] = []
    sim.core.journal.listen(entries.append)
    sim.robots["bob"].set_controller("wander")
    digests = []
    for tick in range(60):
        if tick == 20:
            rename(sim, {"ann": "anna", "bob": "bert", "tom": "tim"})
        if tick == 40:
            rename(sim, {"anna": "bert", "bert": "anna"})
        sim.step()
        digests.append(sim.digest())
    assert sum(isinstance(e.change, RenameRobots) for e in entries) == 2
    assert list(resimulate(again, entries, 60)) == digests
    assert list(again.robots) == list(sim.robots) == ["bert", "anna", "tim"]
