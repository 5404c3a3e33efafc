"""The history of a simulation:

its extent, looking back, and continuing from a moment.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.api.revisions import Subject
from botyard.engine import commands as cmd
from botyard.errors import ArgumentError, StateError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.recording import history as history_module
from botyard.sim.journal import Entry, Restore
from botyard.sim.programs import employ
from botyard.sim.resimulation import resimulate
from botyard.sim.savedstates import sealed
from botyard.sim.simulation import Simulation

ROOM = np.array([[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]], float)
OTHER = Scene(
    name="other",
    segments=ROOM / 2,
    boxes=(BoxObject(name="crate", pose=Pose(1, 1, 0), length=0.4, width=0.4),),
)


def world(seed: int = 1) -> Simulation:
    box = BoxObject(
        name="Box:1",
        pose=Pose(8, 3, 0),
        length=0.5,
        width=0.5,
        dynamics=DynamicsSpec(mass=4.0),
    )
    sim = Simulation(
        Scene(name="room", segments=ROOM, boxes=(box,)), step=0.1, seed=seed
    )
    sim.add_robot("p3dx-sh-lms200", "ann", pose=(3, 3, 0))
    sim.add_robot("amigo", "bob", pose=(6, 6, 1))
    return sim


EVENTS = st.sampled_from(
    ["drive", "add", "remove", "map", "box", "place", "step", "step", "step", "step"]
)


def act(sim: Simulation, event: str, number: int) -> None:
    if event == "drive" and "ann" in sim.robots:
        sim.robots["ann"].command(v=0.1 * (number % 5), w=0.2)
    elif event == "add":
        sim.add_robot("p3at", pose=(1.0 + number % 7, 8.0, 0.0))
    elif event == "remove" and sim.robots:
        sim.remove_robot(list(sim.robots)[number % len(sim.robots)])
    elif event == "map":
        sim.replace_scene(OTHER)
    elif event == "box" and sim.core.box_names:
        sim.remove_box(sim.core.box_names[0])
    elif event == "place" and "bob" in sim.robots:
        sim.put("bob", (2.0 + number % 5, 2.0, 0.0))

    sim.step(1 + number % 4)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 40)), max_size=25), st.data())
@settings(max_examples=40)
def test_each_moment_is_the_world_as_it_was_and_can_be_gone_on_from(
    events: list[tuple[str, int]], data: st.DataObject
) -> None:
    sim = world()
    digests: dict[int, int] = {}
    sim.after_step(lambda _: digests.__setitem__(sim.tick, sim.digest()))
    digests[0] = sim.digest()
    sim.history.keep()
    for event, number in events:
        act(sim, event, number)
    moments = sim.history.moments
    ticks = [moment.tick for moment in moments]
    assert ticks[0] == 0 and all(
        0 < b - a <= 4 for a, b in itertools.pairwise(ticks)
    ), "no change makes a gap"
    there = None
    for moment in data.draw(st.permutations(moments)):
        there = sim.history.look(moment.time, there)
        assert there.tick == moment.tick and there.digest() == digests[moment.tick]
        assert sim.history.look(moment.time).digest() == digests[moment.tick]

    moment = data.draw(st.sampled_from(moments))
    assert sim.history.go_on_from(moment.time) == moment == sim.history.moments[-1]
    there = sim.history.look(moment.time)
    assert sim.tick == moment.tick and list(sim.core.engine.rows) == list(
        there.core.engine.rows
    )
    assert np.array_equal(sim.snapshot.state.pose, there.snapshot.state.pose)
    assert sim.scene.name == there.scene.name
    sim.step(5)
    assert sim.history.moments[-1].tick > moment.tick


def test_a_run_goes_on_as_it_did_when_nobody_was_connected() -> None:
    sim = world()
    sim.history.keep()
    employ(sim.robots["bob"], Program(name="wander"))
    sim.robots["ann"].command(v=0.3, w=0.1)
    digests = []
    for _ in range(40):
        sim.step()
        digests.append(sim.digest())

    sim.history.go_on_from(2.0)
    assert sim.tick == 20 and not sim.core.engine.is_pending
    again = []
    for _ in range(20):
        sim.step()
        again.append(sim.digest())

    # Robots count their placements, so the digests differ; the poses do not.
    reference = world()
    employ(reference.robots["bob"], Program(name="wander"))
    reference.robots["ann"].command(v=0.3, w=0.1)
    reference.step(40)
    assert np.array_equal(sim.snapshot.state.pose, reference.snapshot.state.pose)
    assert np.array_equal(sim.snapshot.state.odom, reference.snapshot.state.odom)


def test_the_past_is_another_simulation_and_changes_nothing() -> None:
    sim = world()
    sim.history.keep()
    sim.robots["ann"].command(v=0.3)
    sim.step(30)
    digest = sim.digest()
    past = sim.history.look(1.0)
    past.robots["ann"].laser.subscribe("viewer", True)
    past.settle()
    assert (
        past.time == pytest.approx(1.0)
        and past.robots["ann"].truth.x < sim.robots["ann"].truth.x
    )
    assert past.robots["ann"].laser.ranges.min() > 0.5
    assert sim.digest() == digest and not past.history.is_on


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "FRAMES_PER_KEYFRAME", 4)
    sim = world()
    sim.robots["ann"].command(v=0.1)
    sim.history.keep(minutes=0.1)
    sim.step(200)
    first, last = sim.history.span or pytest.fail("nothing is kept")
    assert (
        last.time == pytest.approx(20.0)
        and 6.0 <= last.time - first.time <= 6.0 + 4 * 0.2
    )
    assert sim.history.size == sum(len(f) for p in sim.history._parts for f in p.frames)  # type: ignore[attr-defined]
    sim.history.keep(minutes=10, megabytes=0.02)
    sim.step(200)
    assert 4 <= len(sim.history.moments) <= 50 and sim.history.size < 0.03e6
    assert (
        sim.history.moment(-5.0)
        == sim.history.moments[0]
        == sim.history.neighbour_of(sim.history.moments[2], -7)
    )
    assert sim.history.neighbour_of(sim.history.moments[0], 2) == sim.history.moments[2]
    sim.history.stop()
    sim.step(10)
    assert not sim.history.is_on and sim.history.span is None and not sim._looks
    for ask in (
        lambda: sim.history.look(0.0),
        lambda: sim.history.go_on_from(0.0),
        lambda: sim.history.moment(0.0),
    ):
        with pytest.raises(StateError, match="no moment is kept"):
            ask()

    for bad in ({"minutes": 0}, {"megabytes": -1.0}, {"minutes": float("nan")}):
        with pytest.raises(ArgumentError):
            sim.history.keep(**bad)  # type: ignore[arg-type]


def test_maps_that_are_not_there_any_more_count() -> None:
    sim = world()
    sim.history.keep(megabytes=1.0)
    for k in range(40):
        sim.replace_scene(
            Scene(name=f"map {k}", segments=np.repeat(ROOM, 1000, axis=0) + k)
        )
        sim.step(4)

    kept = {sim.history.look(moment.time).scene.name for moment in sim.history.moments}
    assert 4 <= len(kept) <= 1 + 1e6 / (4000 * 4 * 8) and f"map {k}" in kept


def test_a_short_step_is_not_kept_each_time() -> None:
    sim = Simulation(step=0.01)
    sim.history.keep()
    sim.step(100)
    assert [m.tick for m in sim.history.moments] == [0, 20, 40, 60, 80, 100]
    sim.add_robots("amigo", [(k, 0, 0) for k in range(21)])
    sim.step(200)
    assert [m.tick for m in sim.history.moments][6:] == [120, 170, 220, 270]


def test_a_world_that_cannot_be_saved_says_so_and_goes_on() -> None:
    sim = world()
    sim.history.keep()
    sim.core.assign_program("ann", lambda: None, Program(name="mine"))
    sim.step(4)
    assert (
        "its controller mine cannot be saved" in sim.history.problem
        and len(sim.history.moments) == 1
    )
    sim.core.assign_program("bob", lambda: None, Program(name="x"))
    sim.remove_robots(["ann", "bob"])
    sim.step(2)
    assert sim.history.problem == "" and sim.history.moments[-1].tick == 6


def test_states_restored_by_others_end_what_came_after() -> None:
    sim = world()
    sim.history.keep()
    sim.step(10)
    state = sim.save_state()
    sim.step(10)
    revision = sim.core.feed.last(Subject.TIME)
    sim.restore(state)
    assert sim.core.feed.last(Subject.TIME) > revision
    sim.step(1)
    assert [m.tick for m in sim.history.moments] == [0, 2, 4, 6, 8, 10, 11]


# -- connections


def test_connections_stay_as_they_are_and_robots_wait_for_the_next_command() -> None:
    sim = world()
    sim.history.keep()
    bob = sim.robots["bob"]
    bob.claim("ros")
    bob.port("ros").set_velocity(v=0.3)
    sim.hold("Box:1", True, "page")
    sim.step(30)
    ann, port = sim.robots["ann"], sim.robots["ann"].port("pioneer")
    bob.release("ros")
    sim.hold("Box:1", False, "page")
    port.claim()
    port.enable_motors(True)
    port.set_limits(v=0.2)
    port.set_ramp(0, accel=0.1)
    port.configure_laser(0, -0.5, 0.1, 11)
    port.subscribe_laser(0, True)
    sim.step(20)
    port.set_velocity(v=0.2)
    sim.step(20)
    teleports = port.teleports
    # This command still waits for the next step, so going on drops it.
    port.set_velocity(v=-0.2)
    sim.history.go_on_from(2.0)
    assert (
        sim.robots["ann"] is ann and ann.clients == ("pioneer",) and bob.clients == ()
    )
    assert port.teleports == teleports + 1, "told as of being placed"
    sim.step(30)
    row = sim.snapshot.rows["ann"]
    state = sim.snapshot.state
    assert (
        state.motors[row]
        and state.max_vel[row, 0] == 0.2
        and state.accel[row, 0] == 0.1
    )
    assert len(port.laser(0).ranges) == 11 and port.laser(0).stamp == pytest.approx(
        sim.time
    )
    assert not state.vel[row].any() and not state.vel[sim.snapshot.rows["bob"]].any(), (
        "they wait for the next command"
    )
    assert not state.held.any() and sim.core.holders("Box:1") == ()
    port.set_velocity(v=0.2)
    sim.step(30)
    assert ann.velocity.vx == pytest.approx(0.2)


def test_who_holds_a_body_now_holds_it_then() -> None:
    sim = world()
    sim.history.keep()
    sim.step(10)
    sim.hold("ann", True, "page")
    sim.step(10)
    sim.history.go_on_from(0.5)
    sim.step()
    assert sim.snapshot.state.held[sim.snapshot.rows["ann"]] and sim.core.holders(
        "ann"
    ) == ("page",)


def test_robots_of_then_come_back_and_those_of_now_go() -> None:
    sim = world()
    sim.history.keep()
    bob = sim.robots["bob"]
    bob.claim("pioneer")
    sim.step(10)
    sim.remove_robots(["bob"])
    new = sim.add_robot("p3at", "new", pose=(9, 8, 0))
    new.claim("pioneer")
    sim.step(10)
    sim.history.go_on_from(0.5)
    assert list(sim.robots) == ["ann", "bob"] and sim.robots["bob"] is not bob
    assert sim.robots["bob"].clients == (), "its client is gone"


def test_the_map_stays_while_only_its_boxes_differ() -> None:
    """Otherwise all viewers would load the map again."""
    sim = world()
    sim.history.keep()
    sim.step(10)
    sim.remove_box("Box:1")
    sim.step(10)
    past = sim.history.look(0.4)
    before = [s.core.feed.last(Subject.MAP) for s in (sim, past)]
    sim.history.look(1.8, past)
    assert past.core.box_names == ()
    sim.history.go_on_from(0.4)
    assert (
        sim.core.box_names == ("Box:1",)
        and [s.core.feed.last(Subject.MAP) for s in (sim, past)] == before
    )


def test_a_branch_is_in_the_journal() -> None:
    sim, twin, told = world(), world(), list[Entry]()
    sim.core.journal.listen(told.append)
    sim.history.keep()
    sim.robots["ann"].claim("pioneer")
    sim.robots["ann"].port("pioneer").set_velocity(v=0.3)
    sim.step(20)
    sim.replace_scene(OTHER)
    sim.core.accept_command("ann", cmd.Halt())
    sim.step(10)
    sim.history.go_on_from(1.0)
    sim.step(10)
    assert [e.tick for e in told if isinstance(e.change, Restore)] == [30]
    *_, last = resimulate(twin, told, sim.tick)
    assert last == sim.digest() and sim.scene.name == "room" == twin.scene.name


def test_a_moment_is_the_state_but_for_its_checksum() -> None:
    sim = world()
    sim.robots["ann"].command(v=0.3)
    sim.step(7)
    assert (
        sealed(sim.core.states.save_moment(3))
        == sim.save_state()
        != sim.core.states.save_moment(3)
    )
    with pytest.raises(StateError, match="checksum"):
        sim.restore(sim.core.states.save_moment(3))
