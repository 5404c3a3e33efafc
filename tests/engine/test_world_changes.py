"""Maps replaced under robots, ghosts, odometry modes, models with perfect odometry,
carried bodies.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine.bodyspec import robot_body
from botyard.engine.build import build_bodies, drop_bodies, keep_bodies
from botyard.engine.commands import SetPoseAxis, SetVisible
from botyard.engine.wallgrid import build_grid
from botyard.errors import CommandError
from botyard.geometry import Pose, transform_point
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.scene import Scene
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation


def walled(x: float, *boxes: BoxObject) -> Scene:
    return Scene(segments=np.array([[x, -9.0, x, 9.0]]), boxes=boxes)


def ahead(sim: Simulation, name: str = "r") -> float:
    return float(sim.robots[name].laser.read().ranges[90])


def test_another_map_under_the_robots() -> None:
    sim = Simulation(
        walled(3.0, BoxObject(name="Box:1", pose=Pose(0, 5, 0), length=1, width=1)),
        sensor_noise=False,
    )
    robot = sim.add_robot("p3dx", "r", pose=Pose())
    robot.command(v=0.3)
    sim.step(10)
    pose, scan = robot.truth, ahead(sim)
    assert scan == pytest.approx(3.0 - pose.x)
    scene = walled(5.0, BoxObject(name="Box:1", pose=Pose(0, -5, 0), length=1, width=1))
    sim.replace_scene(scene, build_grid(scene))
    assert robot.truth == pose, "robots keep their places"
    assert robot.velocity.vx == pytest.approx(0.3), "and their motion"
    assert ahead(sim) == pytest.approx(5.0 - pose.x)
    assert sim.snapshot.state.pose[sim.snapshot.rows["Box:1"], 1] == -5.0
    sim.replace_scene(Scene())
    assert set(sim.snapshot.rows) == {"r"}
    assert ahead(sim) == robot.laser.spec.range_max


def test_a_box_whose_name_a_robot_has_gets_another() -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "Box:1", pose=Pose())
    sim.replace_scene(
        walled(3.0, BoxObject(name="Box:1", pose=Pose(0, -5, 0), length=1, width=1))
    )
    assert set(sim.snapshot.rows) == {"Box:1", "Box:1_002"}
    assert sim.core.box_names == ("Box:1_002",)


def test_replacing_gives_the_same_world_as_starting_with_it() -> None:
    """A run in a replaced map equals a run in that map from the start, bit for bit."""

    def run(sim: Simulation) -> list[float]:
        robot = sim.robots["r"]
        robot.command(v=0.5, w=0.1)
        out = []
        for _ in range(60):
            sim.step()
            out += [*robot.truth, *robot.odom, *robot.laser.read().ranges]

        return out

    scene = walled(
        2.0, BoxObject(name="Box:1", pose=Pose(1.0, 1.0, 0.3), length=0.5, width=0.5)
    )
    fresh = Simulation(scene)
    fresh.add_robot("p3dx", "r", pose=Pose())
    changed = Simulation(walled(9.0))
    changed.add_robot("p3dx", "r", pose=Pose())
    changed.replace_scene(scene)
    assert run(fresh) == run(changed)


def test_a_ghost_is_neither_seen_nor_felt_and_can_come_back() -> None:
    sim = Simulation(odometry_error="none", sensor_noise=False)
    a = sim.add_robot("p3dx", "r", pose=Pose())
    b = sim.add_robot("p3dx", "b", pose=Pose(2.0, 0.0, 0.0))
    assert ahead(sim) < 2.0
    b.ghost()
    sim.step()
    assert ahead(sim) == a.laser.spec.range_max
    assert a.sonar.read().ranges.min() == 5.0
    a.command(v=1.0)
    sim.step(60)
    assert a.truth.x > 3.0, "right through it"
    assert not a.stalled
    a.command.set_pose(0.0, 0.0)
    b.ghost(False)
    sim.step(2)
    assert ahead(sim) < 2.0
    sim.step(60)
    assert a.stalled


def test_a_ghost_does_not_collide_itself() -> None:
    sim = Simulation(walled(1.0), odometry_error="none")
    robot = sim.add_robot("p3dx", "r", pose=Pose())
    robot.command.issue_command(SetVisible(Visible.NONE))
    robot.command(v=1.0)
    sim.step(40)
    assert robot.truth.x > 1.5


def test_odometry_errors_can_be_switched() -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx", "r", pose=Pose())
    robot.command(v=0.5)
    sim.step(20)
    assert robot.state.odometry_error.x != 0.0
    robot.command.odometry_errors(False)
    sim.step()
    assert robot.state.odometry_error.as_tuple() == (0.0, 0.0, 0.0)
    x, odom = robot.truth.x, robot.odom.x
    sim.step(20)
    assert robot.odom.x - odom == pytest.approx(robot.truth.x - x, abs=1e-12)
    robot.command.odometry_errors(True)
    sim.step(2)
    assert robot.state.odometry_error.x != 0.0


def test_errors_of_a_robots_life_come_back_the_same() -> None:
    sim = Simulation(odometry_error="random_init")
    robot = sim.add_robot("p3dx", "r", pose=Pose())
    before = robot.state.odometry_error
    robot.command.odometry_errors(False)
    sim.step()
    robot.command.odometry_errors(True)
    sim.step()
    assert robot.state.odometry_error == before


def test_ranges_of_errors_need_not_be_symmetric() -> None:
    spec = replace(
        load_robot("p3dx"),
        odometry_error=Axes(0.02, 0, 0),
        odometry_error_low=Axes(0.01, 0, 0),
    )
    for mode, low, high in (
        ("random_each_update", 0.01, 0.02),
        ("random_init", 0.01, 0.02),
        ("constant", 0.015, 0.015),
    ):
        sim = Simulation(odometry_error=mode)
        robot = sim.add_robot(spec, "r", pose=Pose())
        robot.command(v=0.5)
        for _ in range(50):
            sim.step()
            assert low - 1e-12 <= robot.state.odometry_error.x <= high + 1e-12


def test_perfect_odometry_is_the_true_pose() -> None:
    sim = Simulation(walled(3.0))
    robot = sim.add_robot(
        replace(load_robot("p3dx"), perfect_odometry=True),
        "r",
        pose=Pose(1.0, 2.0, 0.5),
    )
    assert robot.odom == robot.truth
    robot.command.move(0.8)
    sim.step(80)
    assert robot.odom == robot.truth
    assert math.hypot(robot.truth.x - 1.0, robot.truth.y - 2.0) == pytest.approx(
        0.8, abs=1e-3
    ), "moves end where they should"
    robot.command.odometry_errors(True)
    robot.command(w=0.5)
    sim.step(10)
    assert robot.odom == robot.truth, "it is a property of the model"
    robot.command.set_pose(-2.0, 1.0, 2.0)
    robot.command(v=0.2)
    sim.step(10)
    assert robot.odom == robot.truth, "wherever it was put"
    assert robot.truth.y > 0.9


def test_one_coordinate_of_the_pose() -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx", "r", pose=Pose(1.0, 2.0, 0.5))
    for axis, value in ((0, 4.0), (1, 5.0), (2, 1.5)):
        robot.command.issue_command(SetPoseAxis(axis, value))
    sim.step()
    assert robot.truth == Pose(4.0, 5.0, 1.5)
    assert robot.odom == Pose()


def test_carrying_is_the_same_whatever_was_added_first() -> None:
    def run(order: str) -> tuple[Pose, Pose]:
        sim = Simulation(odometry_error="none")
        for name in order:
            if name == "r":
                sim.add_robot("p3dx-equipped", "r", pose=Pose())
            else:
                sim.add_robot("small-box", "b", pose=Pose(0.3, 0.0, 0.0))

        sim.robots["r"].gripper.act(2)
        sim.step(12)
        sim.robots["r"].command(v=0.4, w=0.5)
        sim.step(30)
        return sim.robots["r"].truth, sim.robots["b"].truth

    assert run("rb") == run("br")


def test_what_is_carried_is_where_its_carrier_says() -> None:
    """Outline and pose, with a load that lies askew in the gripper."""
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx-equipped", "r", pose=Pose())
    sim.add_robot("small-box", "b", pose=Pose(0.3, 0.0, 0.2))
    assert robot.gripper is not None
    robot.gripper.act(2)
    sim.step(12)
    engine = sim.core.engine
    row, carrier = engine.rows["b"], engine.rows["r"]
    assert engine.state.carrier[row] == carrier
    for _ in range(3):
        robot.command(v=0.1, w=0.9)
        sim.step(17)
        pose, at = (Pose(*engine.state.pose[i].tolist()) for i in (row, carrier))
        assert pose.th != at.th, "askew"
        hold = engine.state.hold[row].tolist()
        assert math.remainder(pose.th - at.th - hold[2], 2 * math.pi) == pytest.approx(
            0.0, abs=1e-12
        )
        assert abs(pose.th) <= math.pi
        by_carrier = [
            [transform_point(at, *c) for c in part]
            for part in engine.carried_outlines(row)
        ]
        by_itself = [
            [transform_point(pose, *c) for c in part] for part in engine.outline(row)
        ]
        assert np.array(by_carrier) == pytest.approx(np.array(by_itself), abs=1e-9)


def test_a_robot_that_is_dragged_stands_still_and_then_goes_on() -> None:
    """MOT-015:

    its velocity is zero while it is held, and its commands are kept, also those given
    meanwhile.
    """
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", "r", pose=Pose())
    robot.command(v=0.3)
    sim.step(20)
    robot.command.hold()
    odom = None
    for x in (1.0, 2.0, 3.0):
        robot.command.set_pose(x, 1.0, 0.5)
        sim.step()
        assert robot.velocity == (0.0, 0.0, 0.0)
        assert robot.truth == Pose(x, 1.0, 0.5), "only the hand moves it"
        assert odom in (None, robot.odom)
        odom = robot.odom

    robot.command.hold(False)
    sim.step(20)
    assert robot.velocity.vx == pytest.approx(0.3)
    robot.command.hold()
    robot.command(v=0.1)
    sim.step(5)
    robot.command.hold(False)
    sim.step(10)
    assert robot.velocity.vx == pytest.approx(0.1)


def test_a_body_is_held_until_each_that_holds_it_has_let_go() -> None:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", "r", pose=Pose())

    def is_held() -> bool:
        sim.step()
        return bool(sim.snapshot.state.held[0])

    robot.command.hold()
    sim.hold("r", source="page")
    assert sim.core.holders("r") == ("api", "page")
    # A repeated call of the same source changes nothing.
    sim.hold("r", source="page")
    assert is_held()
    sim.hold("r", False, source="page")
    assert sim.core.holders("r") == ("api",)
    assert is_held(), "the other holds it still"
    # This source holds no body.
    sim.hold("r", False, source="nobody")
    assert is_held()
    # In one step, sources are sorted so that the first lets go last.
    sim.hold("r", source="page")
    robot.command.issue_command(cmd.Hold(False))
    assert is_held()
    sim.hold("r", False, source="page")
    robot.command.hold()
    assert is_held()
    robot.command.hold(False)
    assert not is_held()
    assert sim.core.holders("r") == ()
    with pytest.raises(KeyError, match='no robot or box is named "nobody"'):
        sim.core.holders("nobody")


def test_who_holds_it_is_state() -> None:
    """The holder is saved, restored, cloned and re-simulated.

    It is forgotten when the body is removed and another one gets its name.
    """
    scene = Scene(
        boxes=(BoxObject(name="b", pose=Pose(3.0, 0.0, 0.0), length=0.4, width=0.4),)
    )
    sim, again = (Simulation(scene, odometry_error="none") for _ in range(2))
    entries: list[Entry] = []
    sim.core.journal.listen(entries.append)
    sim.add_robot("p3dx", "r", pose=Pose())
    for name in ("r", "b"):
        sim.hold(name)
        sim.hold(name, source="page")

    sim.step()
    state = sim.save_state()
    for name in ("r", "b"):
        sim.hold(name, False)
    digest = sim.digest()
    assert list(resimulate(again, entries, sim.tick))
    assert again.digest() == digest
    assert (
        sim.core.holders("r")
        == again.core.holders("r")
        == sim.clone().core.holders("b")
        == ("page",)
    )
    sim.restore(state)
    assert sim.core.holders("r") == sim.core.holders("b") == ("api", "page")
    sim.remove_robot("r")
    sim.remove_box("b")
    sim.add_robot("p3dx", "r")
    sim.add_robot("p3dx", "b", pose=Pose(9.0, 9.0, 0.0))
    assert sim.core.holders("r") == sim.core.holders("b") == ()
    again.replace_scene(scene)
    assert again.core.holders("b") == ()
    assert again.core.holders("r") == ("page",)


def test_each_box_that_is_removed_leaves_the_others() -> None:
    boxes = [
        BoxObject(
            name=f"box{k}",
            pose=Pose(2.0 * k, 0.0, 0.0),
            length=0.2 + 0.1 * k,
            width=0.3,
        )
        for k in range(4)
    ]
    sim = Simulation(walled(30.0, *boxes))
    for gone in ("box1", "box3", "box0"):
        sim.remove_box(gone)
        boxes = [box for box in boxes if box.name != gone]
        assert sim.scene.boxes == tuple(boxes)
        assert (
            sim.core.box_names
            == tuple(box.name for box in boxes)
            == tuple(sim.core.engine.rows)
        )
        for box in boxes:
            row = sim.core.engine.rows[box.name]
            assert sim.core.engine.state.pose[row, 0] == box.pose.x
            assert max(
                x for part in sim.core.engine.outline(row) for x, _ in part
            ) == pytest.approx(box.length / 2)


def test_what_touches_something_is_told_of_each_body() -> None:
    """A wall, another body, nothing, and a ghost in a wall, which touches nothing."""
    sim = Simulation(walled(5.0), warn=lambda text: None)
    for name, x, y in (
        ("wall", 4.9, 0.0),
        ("one", 0.0, 0.0),
        ("other", 0.3, 0.0),
        ("free", -5.0, 0.0),
        ("ghost", 5.0, 4.0),
    ):
        sim.add_robot("p3dx", name, pose=(x, y, 0.0))

    sim.robots["ghost"].ghost()
    sim.settle()
    rows = np.array([4, 3, 2, 1, 0])
    assert sim.core.engine.touching(rows).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("again", [None, DynamicsSpec(mass=5.0)])
def test_a_force_is_forgotten_with_the_mass_that_felt_it(
    again: DynamicsSpec | None,
) -> None:
    sim = Simulation()
    for name, y in (("a", 0.0), ("b", 5.0)):
        sim.add_robot("p3dx", name, pose=(0.0, y, 0.0))
        sim.masses.set_dynamics(name, DynamicsSpec(mass=2.0))
        sim.masses.push(name, 3.0)

    sim.step()
    assert sim.masses.wrench("a") == sim.masses.wrench("b") != (0.0, 0.0, 0.0)
    felt = sim.masses.wrench("b")
    sim.masses.set_dynamics("a", again)
    assert sim.masses.wrench("a") == ((0.0, 0.0, 0.0) if again is None else felt)
    assert sim.masses.wrench("b") == felt
    if again is None:
        sim.masses.set_dynamics("a", DynamicsSpec(mass=2.0))
        assert sim.masses.wrench("a") == (0.0, 0.0, 0.0)


def test_removing_many_at_once_is_removing_them_one_by_one() -> None:
    def run(at_once: bool) -> tuple[bytes, list[str]]:
        sim = Simulation.load("office", seed=3)
        robots = sim.add_robots(
            "p3dx", [(5.0 + i % 4, 8.0 + i // 4, 0.1 * i) for i in range(12)]
        )
        sim.fleet.command(v=np.linspace(0.1, 0.5, 12), w=0.2)
        gone = [robots[i].name for i in (0, 3, 4, 11)]
        if at_once:
            sim.remove_robots(gone)
        else:
            for name in reversed(gone):
                sim.remove_robot(name)

        sim.step(20)
        return sim.poses.tobytes(), list(sim.robots)

    assert run(True) == run(False)


def test_nothing_is_removed_if_one_is_not_there() -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "ann")
    with pytest.raises(KeyError, match="bob"):
        sim.remove_robots(["ann", "bob"])
    assert list(sim.robots) == ["ann"]
    sim.remove_robots([])
    sim.remove_robots(["ann", "ann"])
    assert not sim.robots
    sim.step()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_shapes_of_those_that_stay_are_those_made_anew(data: st.DataObject) -> None:
    """Removing bodies copies arrays; building them from the descriptions gives the same
    ones.
    """
    names = data.draw(
        st.permutations([f"b{i}" for i in range(data.draw(st.integers(1, 12)))])
    )
    shapes = [
        robot_body(
            load_robot(
                data.draw(st.sampled_from(["p3dx", "box", "peoplebot", "seekur"]))
            ),
            name,
        )
        for name in names
    ]
    keep = np.array(
        sorted(data.draw(st.sets(st.integers(0, len(names) - 1)))), np.int64
    )
    kept, fresh = (
        keep_bodies(build_bodies(shapes), keep),
        build_bodies([shapes[i] for i in keep]),
    )
    for name, a, b in zip(kept._fields, kept, fresh, strict=True):
        if name == "scratch":
            assert len(a) >= len(b)
        else:
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("th", [1e300, -1e300, 1e19, 1e9, 7.0, -math.pi])
def test_a_body_that_is_added_with_any_heading_stays_where_it_is(th: float) -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx", pose=(1.25, -2.5, th))
    assert -math.pi < robot.truth.th <= math.pi
    assert math.isclose(
        math.cos(robot.truth.th), math.cos(math.remainder(th, math.tau)), abs_tol=1e-9
    )
    robot.command(v=0.3, w=0.1)
    sim.step(5)
    assert math.dist(robot.truth[:2], (1.25, -2.5)) < 0.2


def test_the_case_of_a_laser_is_a_part_of_its_robot_where_it_sticks_out() -> None:
    spec = load_robot("p3dx")
    laser = next(iter(load_robot("p3dx-equipped").lasers), None) or next(
        iter(spec.lasers)
    )

    def parts(x: float, size: tuple[float, float]) -> list[object]:
        one = replace(laser, pose=Pose(x, 0.1, 0.0), size=size)
        made = robot_body(replace(spec, lasers=(one,)), "ann").parts
        assert made[0] == spec.outline
        return list(made[1 + len(spec.parts) :])

    ((*corners,),) = parts(0.5, (0.2, 0.1))
    assert {(round(x, 9), round(y, 9)) for x, y in corners} == {
        (0.4, 0.05),
        (0.4, 0.15),
        (0.6, 0.05),
        (0.6, 0.15),
    }
    assert len(parts(0.2, (0.2, 0.1))) == 1, "a part of it sticks out"
    assert parts(0.0, (0.02, 0.02)) == [], "it lies within the outline"
    assert parts(0.5, (0.0, 0.1)) == parts(0.5, (0.2, 0.0)) == [], "it has no extent"


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e300])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_coordinate_that_no_world_has_is_refused(axis: int, value: float) -> None:
    with pytest.raises(CommandError):
        SetPoseAxis(axis, value)


def test_what_rests_is_woken_by_another_map() -> None:
    """A new wall inside a resting body moves it aside, although no body has touched it."""
    sim = Simulation()
    sim.add_robot("small-box", "thing", pose=(1.0, 0.0, 0.0))
    sim.masses.set_dynamics("thing", DynamicsSpec(mass=2.0))
    sim.step(3)
    assert (
        sim.core.engine.dynamics is not None
        and sim.core.engine.dynamics.state.resting.any()
    )
    edge = max(x for part in sim.core.engine.outline(0) for x, _ in part)
    sim.replace_scene(
        Scene(segments=np.array([[1.0 + 0.8 * edge, -2.0, 1.0 + 0.8 * edge, 2.0]]))
    )
    sim.step(10)
    assert sim.robots["thing"].truth.x < 1.0


@pytest.mark.parametrize("gone", [[0], [3], [5], [0, 1], [1, 4, 5], [0, 1, 2, 3, 4, 5]])
def test_bodies_that_go_leave_the_shapes_of_the_others(gone: list[int]) -> None:
    sim = Simulation()
    for model in ("p3dx", "small-box", "seekur", "p3dx-equipped", "amigo", "box"):
        sim.add_robot(model)
    sim.step()
    bodies, n = sim.core.engine.bodies, 6
    dropped, kept = (
        drop_bodies(bodies, np.array(gone)),
        keep_bodies(bodies, np.delete(np.arange(n), gone)),
    )
    for name, array in kept._asdict().items():
        np.testing.assert_array_equal(getattr(dropped, name), array, name)
        assert getattr(dropped, name).dtype == array.dtype
        assert getattr(dropped, name).base is None or not np.shares_memory(
            getattr(dropped, name), getattr(bodies, name)
        )
