"""Helpers of the public API for studies and lessons:

contacts, walls, neighbours, running for a time, closing.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine.simulation import Engine
from botyard.errors import ArgumentError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.world import thing
from botyard.sim.contacts import Contact


def test_contacts_and_events() -> None:
    sim = botyard.Simulation(odometry_error="none")
    ann = sim.add_robot(
        "p3dx", "ann", pose=(0, 0, 0), controller=lambda robot: robot.command(v=0.5)
    )
    bob = sim.add_robot("p3dx", "bob", pose=(2, 0, 0))
    events = sim.events
    assert (
        not events
        and repr(events) == "no contacts"
        and ann.contacts == bob.contacts == ()
    )
    sim.run(10.0)
    assert sim.time == pytest.approx(10.0)
    assert ann.contacts == ("bob",) and bob.contacts == ("ann",)
    (event,) = events
    assert (
        isinstance(event, Contact)
        and (event.robot, event.other) == ("ann", "bob")
        and 3 < event.time < 6
    )
    assert event.pose.x == pytest.approx(ann.truth.x, abs=0.01)
    bob.command.set_pose(2, 5, 0)
    sim.add_wall((4.0, -1.0), (4.0, 1.0))
    sim.run(10.0)
    assert (
        [e.other for e in events] == ["bob", "a wall"]
        and ann.contacts == ("a wall",)
        and bob.contacts == ()
    )
    assert "ann touched a wall at (3." in repr(events)
    with pytest.raises(ArgumentError, match="seconds"):
        sim.run(-1)


def test_what_cannot_be_touched_is_no_contact() -> None:
    """A ghost that overlaps a robot stopped by a wall is not a contact."""
    sim = botyard.Simulation(odometry_error="none")
    ann = sim.add_robot(
        "p3dx", "ann", pose=(0, 0, 0), controller=lambda robot: robot.command(v=0.5)
    )
    bob = sim.add_robot("p3dx", "bob", pose=(1.8, 0, 0))
    bob.ghost()
    sim.add_wall((2.0, -1.0), (2.0, 1.0))
    sim.run(10.0)
    assert ann.contacts == ("a wall",)


def test_what_is_gone_stops_nobody() -> None:
    sim = botyard.Simulation(odometry_error="none")
    ann = sim.add_robot("p3dx", "ann", pose=(0, 0, 0))
    sim.add_robot("p3dx", "bob", pose=(1.2, 0, 0))
    ann.command(v=0.5)
    sim.run(4.0)
    assert ann.contacts == ("bob",)
    sim.remove_robot("bob")
    assert ann.stalled and ann.contacts == ()


def test_who_has_moved_on_in_the_same_step_is_still_what_stopped_a_robot() -> None:
    """Two discs cross; the disc that moves later in the step has left at its end, but
    still counts as the contact.
    """
    disc = thing(
        tuple(
            (0.25 * math.cos(math.pi * k / 6), 0.25 * math.sin(math.pi * k / 6))
            for k in range(12)
        )
    )
    sim = botyard.Simulation(odometry_error="none")
    for name, pose, goal in (
        ("r0", (-4, 0, 0), (4, 0)),
        ("r1", (0, -4, math.pi / 2), (0, 4)),
    ):
        sim.add_robot(disc, name, pose=pose).set_controller(
            "orca", points=[goal], order="once"
        )

    dice = np.random.default_rng(1)
    for k in range(20):
        angle = dice.uniform(0.0, 2.0 * math.pi)
        place = (0.6 * math.cos(angle), 0.6 * math.sin(angle), angle + math.pi)
        sim.add_robot(
            disc,
            f"d{k}",
            pose=(10.0 * (k + 1), 0, 0.3),
            controller=lambda robot: robot.command(v=0.8, w=0.1),
        )
        x, y, th = place
        sim.add_robot(
            disc,
            f"e{k}",
            pose=(10.0 * (k + 1) + x, y, th),
            controller=lambda robot: robot.command(v=0.7, w=0.2),
        )

    events = sim.events
    sim.step(100)
    assert len(events) > 10 and {e.other for e in events}.isdisjoint({"a wall"})


def test_pushing_something_is_a_contact() -> None:
    """A box with mass stops a robot only when the box is stuck.

    The robot touches the box in any case, and the box touches the wall behind it.
    """
    crate = BoxObject(
        name="crate",
        pose=botyard.Pose(1.0),
        length=0.6,
        width=0.4,
        dynamics=DynamicsSpec(mass=8.0, floor_friction=0.3),
    )
    sim = botyard.Simulation(botyard.Scene(boxes=(crate,)), odometry_error="none")
    ann = sim.add_robot("p3dx", "ann", pose=(0, 0, 0))
    events = sim.events
    ann.command(v=0.4)
    sim.run(1.0)
    assert not events and ann.contacts == ()
    sim.run(3.0)
    assert (
        ann.contacts == ("crate",)
        and not ann.stalled
        and sim.snapshot.state.pose[sim.snapshot.rows["crate"], 0] > 1.2
    )
    assert [(e.robot, e.other) for e in events] == [("ann", "crate")]
    ann.command(v=-0.4)
    sim.run(2.0)
    assert ann.contacts == ()


def test_contacts_of_episodes_with_seeds_of_their_own_stay() -> None:
    sim = botyard.Simulation(
        botyard.MapBuilder("room").rectangle(0, 0, 4, 4).scene(), seed=1
    )
    robot = sim.add_robot("p3dx", pose=(2, 2, 0))
    for k in range(3):
        assert len(sim.events) == k
        robot.command(v=0.5)
        sim.run(8)
        sim.reset(seed=7)
        sim.step()

    assert [contact.episode for contact in sim.events] == [
        0,
        0,
        0,
    ] and sim.events.total == 3


def test_contacts_over_episodes_and_back_in_time() -> None:
    sim = botyard.Simulation(odometry_error="none")
    ann = sim.add_robot("p3dx", "ann", pose=(0, 0, 0))
    sim.add_wall((2.0, -1.0), (2.0, 1.0))
    events = sim.events
    ann.command(v=0.5)
    state = sim.save_state()
    sim.run(5.0)
    (first,) = events
    # The robot touches the wall when the episode starts.
    sim.reset(poses=[ann.truth])
    ann.command(v=0.5)
    sim.run(1.0)
    assert [(e.episode, e.other) for e in events] == [
        (0, "a wall"),
        (1, "a wall"),
    ] and events[1].time < first.time
    sim.restore(state)
    assert len(events) == 2
    sim.run(5.0)
    assert sim.episode == 0 and events[-1] == first and events.total == 3


@pytest.mark.parametrize("count", [1, 2, 3, 500])
def test_a_run_without_python_is_compiled_and_the_same(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first and the last step run in Python, unless a callback is set or the
    world holds more than robots.
    """
    python: list[int] = []
    step = Engine._step
    monkeypatch.setattr(
        Engine, "_step", lambda engine: (python.append(engine.clock.tick), step(engine))
    )

    def made() -> botyard.Simulation:
        sim = botyard.Simulation.load("office", seed=4)
        for k in range(3):
            robot = sim.add_robot("p3dx", pose=(8.0 + k, 8.0, k))
            robot.laser.subscribe("test")
            robot.command(v=0.3 + 0.1 * k, w=0.2 * k)

        return sim

    one, other = made(), made()
    one.run(count * 0.1)
    assert python == [0, count - 1][: min(count, 2)]
    for _ in range(count):
        other.step()
    assert one.save_state() == other.save_state() and one.digest() == other.digest()
    for a, b in zip(one.robots.values(), other.robots.values(), strict=True):
        assert (a.laser.ranges == b.laser.ranges).all() and (
            a.sonar.ranges == b.sonar.ranges
        ).all()

    python.clear()
    one.before_step(lambda: None)
    one.step(7)
    late = made()
    late.robots["p3dx"].set_parameters(command_latency=0.3, range_latency=0.2)
    late.step(7)
    assert len(python) == 14


def test_a_compiled_run_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops between two parts with a consistent world."""
    sim = botyard.Simulation()
    sim.add_robot("p3dx").command(v=0.1)
    monkeypatch.setattr("botyard.engine.simulation.MAX_ROWS_AT_ONCE", 10)
    advance, parts = sim.core.engine._advance, []

    def part(what: int, count: int = 1) -> None:
        parts.append(count)
        if len(parts) == 5:
            raise KeyboardInterrupt
        advance(what, count)

    monkeypatch.setattr(sim.core.engine, "_advance", part)
    with pytest.raises(KeyboardInterrupt):
        sim.step(1000)
    assert parts == [1, 10, 10, 10, 10] and sim.tick == sim.snapshot.tick == 31
    monkeypatch.undo()
    sim.step(2)
    assert sim.tick == 33
    with pytest.raises(ArgumentError, match="seconds: expected"):
        sim.run(1e12)


def test_walls_leave_boxes_where_they_are() -> None:
    sim = botyard.Simulation.load("office", seed=2)
    name = sim.core.box_names[0]
    sim.put(name, (3.0, 3.0, 0.5))
    sim.step()
    poses = {
        n: tuple(sim.snapshot.state.pose[sim.snapshot.rows[n]])
        for n in sim.core.box_names
    }
    count = len(sim.scene.segments)
    sim.add_wall((0, 0), (1, 0), (1, 1))
    assert len(sim.scene.segments) == count + 2
    assert {
        n: tuple(sim.snapshot.state.pose[sim.snapshot.rows[n]])
        for n in sim.core.box_names
    } == poses
    for wrong in (
        [(0, 0)],
        [],
        [(0, 0), (1, float("nan"))],
        [(0, 0, 0), (1, 1, 1)],
        [(0, 0), (1e5, 1.1e5)],
    ):
        with pytest.raises(ArgumentError, match="points"):
            sim.add_wall(*wrong)


@given(
    st.lists(
        st.tuples(st.integers(-20, 20), st.integers(-20, 20)),
        min_size=0,
        max_size=9,
        unique=True,
    ),
    st.integers(1, 9),
)
@settings(max_examples=40, deadline=None)
def test_neighbours_against_a_naive_twin(places: list[tuple[int, int]], k: int) -> None:
    sim = botyard.Simulation(warn=lambda _: None)
    if places:
        sim.add_robots("p3dx", [(float(x), float(y), 0.0) for x, y in places])
    found, away = sim.fleet.nearest(k)
    assert found.shape == away.shape == (len(places), k)
    for i, here in enumerate(places):
        others = sorted(
            (np.hypot(here[0] - x, here[1] - y), j)
            for j, (x, y) in enumerate(places)
            if j != i
        )[:k]
        n = len(others)
        assert found[i].tolist() == [j for _, j in others] + [-1] * (k - n)
        assert (
            away[i, :n].tolist() == pytest.approx([d for d, _ in others])
            and np.isinf(away[i, n:]).all()
        )


def test_a_simulation_is_closed_with_its_recordings(tmp_path: Path) -> None:
    with botyard.Simulation(seed=3) as sim:
        sim.add_robot(pose=(0, 0, 0))
        recording = sim.record(tmp_path / "run.mcap")
        sim.run(1.0)

    assert not recording.error
    loaded = botyard.recording.load(tmp_path / "run.mcap")
    assert loaded is not None
    sim.run(1.0)
    sim.close()


@pytest.mark.parametrize("map", ["office", "warehouse", None])
def test_free_poses(map: str | None) -> None:
    """Free poses touch nothing, depend on the seed alone, and with `reachable` lie in
    one region.
    """
    sim = botyard.Simulation.load(map, seed=4) if map else botyard.Simulation(seed=4)
    sim.add_robot("p3dx", "first")
    poses = sim.random_free_poses(40, clearance=0.05)
    assert (
        poses.shape == (40, 3)
        and (sim.random_free_poses(40, clearance=0.05) == poses).all()
    )
    assert not (sim.random_free_poses(40, clearance=0.05, index=1) == poses).any()
    assert (np.abs(poses[:, 2]) <= np.pi).all() and np.ptp(poses[:, 2]) > 3
    warnings: list[str] = []
    sim.core.warn_by(warnings.append)
    robots = sim.add_robots("p3dx", poses)
    assert not warnings, "none begins in something"
    xy = poses[:, :2]
    away = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1)) + np.eye(40) * 9
    assert away.min() >= 2 * max(np.hypot(*p) for p in robots[0].spec.outline) + 0.05
    with pytest.raises(ArgumentError, match=r"there is room for|no place"):
        sim.random_free_poses(100_000)
    with pytest.raises(ArgumentError, match="clearance"):
        sim.random_free_poses(1, clearance=-1)


def test_free_poses_in_one_region() -> None:
    """One region: a closed room in the corner of another room is not entered."""
    walls = botyard.MapBuilder("rooms")
    walls.rectangle(0.0, 0.0, 10.0, 10.0)
    walls.rectangle(0.0, 0.0, 4.0, 4.0)
    walls.home(2.0, 2.0)
    sim = botyard.Simulation(walls.scene())
    inside = sim.random_free_poses(5, clearance=0.2)
    assert (inside[:, :2] < 4.0).all()
    everywhere = sim.random_free_poses(30, clearance=0.2, reachable=False)
    assert (everywhere[:, :2] > 4.0).any() and (
        everywhere[:, :2].max(axis=1) < 4.0
    ).any()


def test_rays_from_anywhere_see_what_a_laser_sees() -> None:
    sim = botyard.Simulation.load("office", seed=1, sensor_noise=False)
    robot = sim.add_robot("p3dx", lasers=["lms200"])
    for name in sim.core.box_names:
        sim.put(name, (-50.0, -50.0, 0.0))
    sim.step(2)
    scan = robot.laser.read()
    pose = scan.frame_pose
    x, y, th = robot.truth
    at = (
        x + pose.x * np.cos(th) - pose.y * np.sin(th),
        y + pose.x * np.sin(th) + pose.y * np.cos(th),
    )
    found = sim.cast(at, scan.angles + pose.th + th, range_max=scan.range_max)
    seen = scan.ranges < scan.range_max
    assert found.shape == scan.ranges.shape and seen.sum() > 100
    assert found[seen] == pytest.approx(scan.ranges[seen], abs=1e-9)
    grid = sim.cast(np.zeros((3, 1, 2)) + at, np.zeros((1, 4)), range_max=5.0)
    assert grid.shape == (3, 4) and (grid == grid[0, 0]).all()
    for xy, bearing in (
        ((0, 0, 0), 0.0),
        ((0, 0), float("nan")),
        (np.zeros((3, 2)), np.zeros(4)),
    ):
        with pytest.raises(ArgumentError, match=r"xy|bearing"):
            sim.cast(xy, bearing, range_max=1.0)


def test_notebooks_show_tables() -> None:
    """Notebooks show tables of robots with a picture, and of worlds.

    Names are escaped and long tables are cut.
    """
    sim = botyard.Simulation(seed=4)
    sim.add_robot("p3dx", "a<b")
    sim.add_robots("amigo", [(k, 3.0, 0.5) for k in range(15)])
    shown = sim._repr_html_()
    assert (
        "a&lt;b" in shown
        and "a<b" not in shown
        and "data:image/png;base64,iVBOR" in shown
    )
    assert (
        shown.count("<tr>") == 13
        and "and 4 more" in shown
        and "<td>0.500</td>" in shown
    )
    shown = botyard.Worlds(botyard.Scene(), "p3dx", 20, seeds=7)._repr_html_()
    assert (
        "20 worlds of p3dx" in shown
        and shown.count("<tr>") == 13
        and "and 8 more" in shown
        and "<td>18</td>" in shown
    )


def test_of_neighbours_that_are_equally_near_the_first_ones_count() -> None:
    """Of equally near neighbours the first ones are returned, also if fewer than all
    are requested.
    """
    sim = botyard.Simulation(warn=lambda text: None)
    turns = [(1, 0), (0, 1), (-1, 0), (0, -1)] * 10
    for k, (x, y) in enumerate([(0, 0), *turns]):
        sim.add_robot("p3dx", f"r{k}", pose=(2.0 * x, 2.0 * y, 0.0))
    for k in (1, 2, 5, 39):
        assert sim.fleet.nearest(k)[0][0].tolist() == list(range(1, k + 1))


def test_numbers_beyond_all_bounds_are_refused() -> None:
    sim = botyard.Simulation()
    for call in (
        lambda: sim.fleet.nearest(10**9),
        lambda: sim.random_free_poses(1, index=2**70),
        lambda: botyard.Scene.from_array([[True], [True, False]], 0.1),
        lambda: botyard.Scene.from_array(np.ones((2, 1), bool), 6e4),
        lambda: botyard.Scene.from_array(np.ones((2, 2), bool), 1.0, (0.0, -100_001.0)),
    ):
        with pytest.raises(ArgumentError, match="expected"):
            call()
