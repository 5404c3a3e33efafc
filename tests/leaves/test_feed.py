"""Revisions of the world's subjects."""

from __future__ import annotations

import numpy as np
import pytest

from botyard.api.revisions import SAVED, Revisions, Subject
from botyard.controllers.assignment import employ
from botyard.controllers.wander import Wander
from botyard.engine.wallgrid import build_grid
from botyard.errors import StateError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.readings import Action
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.sim.simulation import Simulation

CRATE = BoxObject(name="crate", pose=Pose(-4.0, 4.0, 0.0), length=0.5, width=0.5)
WALLS = Scene(segments=np.array([[-9.0, -9.0, 9.0, -9.0]]), boxes=(CRATE,))


def test_revisions_grow_with_what_they_are_of() -> None:
    feed = Revisions()
    assert [feed.last(subject) for subject in Subject] == [0] * len(Subject)
    feed.record_change(Subject.MAP)
    feed.record_change(Subject.CLAIMS, Subject.PORTS)
    assert (feed.revision, feed.last(Subject.MAP), feed.last(Subject.PORTS)) == (
        2,
        1,
        2,
    )
    assert feed.last(Subject.MAP, Subject.CLAIMS, Subject.BODIES) == 2
    assert feed.changed_since(1) == {Subject.CLAIMS, Subject.PORTS}
    assert feed.changed_since(2) == frozenset()


def changed(sim: Simulation, revision: int) -> set[Subject]:
    return set(sim.core.feed.changed_since(revision))


def test_each_change_tells_what_it_is_of() -> None:
    sim = Simulation(WALLS, seed=1)
    robot = sim.add_robot("p3dx", "ann")
    bender = sim.add_robot("p3dx", "bob", lasers=["lms200"], pose=(3.0, 0.0, 0.0))
    B, M, R, C = Subject.BODIES, Subject.MAP, Subject.READINGS, Subject.CLAIMS
    acts = (
        (lambda: sim.add_robot("amigo", "eve", pose=(5.0, 5.0, 0.0)), {B, R}),
        (lambda: sim.remove_robot("eve"), {B, C}),
        (lambda: sim.replace_scene(WALLS, build_grid(WALLS)), {M, B}),
        (
            lambda: sim.masses.set_dynamics("crate", DynamicsSpec(mass=3.0)),
            {Subject.MASS},
        ),
        (lambda: sim.remove_box("crate"), {B}),
        (lambda: robot.claim("page"), {C}),
        (lambda: robot.claim("page"), set()),
        (lambda: robot.release("page"), {C}),
        (lambda: robot.release("page"), set()),
        (lambda: sim.core.unserve(["bob"]), {Subject.SERVED}),
        (lambda: sim.core.unserve(["bob"]), set()),
        (lambda: bender.laser.configure(0.0, 0.1, 5), {R}),
        (lambda: sim.attach("ann", "bob"), {Subject.OUTLINES}),
        (lambda: sim.detach("bob"), {Subject.OUTLINES}),
        (lambda: sim.restore(sim.save_state()), set(SAVED)),
    )
    for n, (act, subjects) in enumerate(acts):
        before = sim.core.feed.revision
        act()
        assert changed(sim, before) == subjects, n


def test_steps_and_commands_without_changes_tell_nothing() -> None:
    sim = Simulation(WALLS, seed=1)
    robot = sim.add_robot("p3dx", "ann")
    before = sim.core.feed.revision
    robot.command(0.3, 0.1)
    robot.command.set_pose(1.0, 1.0)
    robot.electrics.digout = 3
    sim.step(3)
    sim.settle()
    assert robot.laser.ranges.size
    assert sim.core.feed.revision == before


def test_a_gripper_that_moves_has_another_outline() -> None:
    sim = Simulation(seed=1)
    gripper = sim.add_robot("p3dx-equipped", "ann").gripper
    assert gripper is not None
    sim.step()
    before = sim.core.feed.revision
    gripper.act(Action.CLOSE)
    sim.step()
    assert changed(sim, before) == {Subject.OUTLINES}


def test_a_restore_that_fails_halfway_tells_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller that refuses its state is asked last:

    bodies have already changed.
    """
    sim = Simulation(WALLS, seed=1)
    employ(sim.add_robot("p3dx", "ann"), Program(name="wander"))
    state = sim.save_state()
    sim.add_robot("p3dx", "bob", pose=(4.0, 4.0, 0.0))

    def refuse(*_: object) -> None:
        raise ValueError("refused by the controller")

    monkeypatch.setattr(Wander, "set_state", refuse)
    before = sim.core.feed.revision
    with pytest.raises(StateError, match="cannot use its state"):
        sim.restore(state)
    assert set(sim.robots) == {"ann"}
    assert changed(sim, before) == set(SAVED)


def test_the_digest_does_not_know_the_feed() -> None:
    one, two = (Simulation(WALLS, seed=1) for _ in range(2))
    for sim in (one, two):
        sim.add_robot("p3dx", "ann")
    for _ in range(3):
        one.robots["ann"].claim("page")
        one.robots["ann"].release("page")

    assert one.core.feed.revision != two.core.feed.revision
    assert one.digest() == two.digest()
    assert one.save_state() == two.save_state()


@pytest.mark.parametrize(
    "change",
    [
        lambda sim: sim.masses.set_dynamics("crate", DynamicsSpec(mass=3.0)),
        lambda sim: sim.core.unserve(["ann"]),
        lambda sim: sim.remove_box("crate"),
        lambda sim: sim.add_robot("p3dx", "bob", pose=(4.0, 4.0, 0.0)),
    ],
)
def test_states_follow_what_is_there(change: object) -> None:
    """The roster of a state is cached until a revision changes."""
    sim = Simulation(WALLS, seed=1)
    sim.add_robot("p3dx", "ann")
    first, before = sim.save_state(), sim.digest()
    change(sim)  # type: ignore[operator]
    assert sim.digest() != before
    sim.restore(first)
    assert sim.digest() == before
    assert sim.core.is_served("ann")
