"""Controllers inside the simulator: their motion, and equal results in every run."""

from __future__ import annotations

import inspect
import math
import pydoc
from collections.abc import Callable

import numpy as np
import pytest

from botyard.controllers.assignment import employ
from botyard.controllers.crowd import Orca, SocialForce
from botyard.controllers.localplanners import FieldHistogram
from botyard.controllers.registry import (
    controller_names,
    find_controller,
    is_controller,
    make_controller,
)
from botyard.errors import CommandLineError, WorldError
from botyard.geometry import Pose
from botyard.model.mapbuilder import MapBuilder
from botyard.model.mapgenerators import hall
from botyard.model.world import Program, thing
from botyard.sim.places import Places
from botyard.sim.simulation import Robot, Simulation


def alone(
    model: object = "p3dx", pose: tuple[float, float, float] = (0, 0, 0)
) -> Robot:
    return Simulation(odometry_error="none").add_robot(model, "one", pose=pose)


def run(robot: Robot, seconds: float) -> np.ndarray:
    """Return the path of a robot, (n, 3)."""
    sim = robot.simulation
    way = []
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        way.append(tuple(robot.truth))

    return np.array(way)


def test_names() -> None:
    assert {"follow", "walk", "wander", "waypoints"} <= set(controller_names())
    assert is_controller("walk") and not is_controller("wandr")
    with pytest.raises(
        CommandLineError, match='no controller "wandr"; did you mean "wander"'
    ):
        find_controller("wandr")


@pytest.mark.parametrize("model", ["p3dx", thing()])
@pytest.mark.parametrize("order", ["loop", "back", "once"])
def test_waypoints(model: object, order: str) -> None:
    robot = alone(model)
    points = [(2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    employ(
        robot,
        Program(
            name="waypoints",
            options={"points": points, "speed": 0.8, "order": order, "pause": 0.5},
        ),
    )
    way = run(robot, 40)
    reached = []
    for x, y, _ in way:
        for i, point in enumerate(points):
            if math.dist((x, y), point) <= 0.051 and (not reached or reached[-1] != i):
                reached.append(i)

    wanted = {
        "loop": [0, 1, 2, 0, 1, 2],
        "back": [0, 1, 2, 1, 0, 1],
        "once": [0, 1, 2],
    }[order]
    assert reached[: len(wanted)] == wanted
    speed = np.hypot(*np.diff(way[:, :2], axis=0).T) / robot.simulation.dt
    assert speed.max() < 0.81
    if order == "once":
        assert speed[-20:].max() < 1e-6, "it stays there"


def test_a_pause_is_kept() -> None:
    robot = alone(thing())
    employ(
        robot,
        Program(
            name="waypoints",
            options={"points": [(1, 0), (2, 0)], "speed": 1.0, "pause": 3.0},
        ),
    )
    way = run(robot, 6)
    assert ((way[:, 0] > 0.94) & (way[:, 0] < 1.06)).sum() >= 29


def test_an_omnidirectional_thing_goes_straight_while_it_turns() -> None:
    robot = alone(thing(), (0, 0, 2.5))
    employ(robot, Program(name="waypoints", options={"points": [(3, 1)], "speed": 1.0}))
    way = run(robot, 5)
    off = np.abs(way[:, 0] * 1 - way[:, 1] * 3) / math.hypot(3, 1)
    assert off.max() < 0.02
    assert way[-1, :2] == pytest.approx([3, 1], abs=0.05)


def test_follow_keeps_its_distance() -> None:
    sim = Simulation(odometry_error="none")
    leader = sim.add_robot("p3dx", "leader", pose=(2, 0, 0))
    robot = sim.add_robot("p3dx", "pupil", pose=(0, 0, 1))
    employ(
        leader,
        Program(name="waypoints", options={"points": [(8, 0), (8, 6)], "speed": 0.4}),
    )
    employ(robot, Program(name="follow", options={"leader": "leader", "distance": 1.2}))
    gaps = []
    for _ in range(300):
        sim.step()
        gaps.append(math.dist(leader.truth[:2], robot.truth[:2]))

    assert min(gaps[100:]) > 0.9 and max(gaps[100:]) < 2.5
    sim.remove_robot("leader")
    before = robot.truth
    sim.step(60)
    assert math.dist(before[:2], robot.truth[:2]) < 0.5, "without a leader it waits"


def test_follow_without_a_name_takes_the_nearest() -> None:
    sim = Simulation()
    for i, x in enumerate((9.0, 3.0)):
        sim.add_robot("p3dx", f"r{i}", pose=(x, 0, 0))
    sim.add_robot("box", "box", pose=(1.0, 3.0, 0))
    robot = sim.add_robot("p3dx", "pupil", pose=(0, 0, 0))
    employ(robot, Program(name="follow"))
    sim.step(60)
    assert math.dist(robot.truth[:2], (3.0, 0.0)) == pytest.approx(1.0, abs=0.15)


def test_walkers_walk_about_and_into_nothing() -> None:
    sim = Simulation(hall(12, 12, obstacles=10, seed=2), seed=4)
    walkers = [
        sim.add_robot(thing(), f"w{i}", pose=(1.0 + i, 1.0, 0)) for i in range(4)
    ]
    for robot in walkers:
        employ(robot, Program(name="walk", options={"speed": 1.0, "pause": 1.0}))
    stalls, ways = 0, []
    for _ in range(600):
        sim.step()
        stalls += sum(r.stalled for r in walkers)
        ways.append(sim.poses[:, :2].copy())

    way = np.array(ways)
    length = np.hypot(*np.diff(way, axis=0).transpose(2, 0, 1)).sum(axis=0)
    assert (length > 15.0).all(), length
    assert stalls < 0.05 * 600 * 4
    assert way.min() > 0.0 and way.max() < 12.0


def test_a_walker_stays_in_its_area() -> None:
    robot = alone(thing(), (1, 1, 0))
    employ(robot, Program(name="walk", options={"area": [0, 0, 2, 3], "pause": 0.0}))
    way = run(robot, 60)
    assert way[:, 0].min() > -0.1 and way[:, 0].max() < 2.1
    assert way[:, 1].min() > -0.1 and way[:, 1].max() < 3.1
    assert np.ptp(way[:, 1]) > 1.5


def test_a_walker_in_a_world_without_end_looks_no_farther_than_it_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[float] = []
    robot = alone(thing(), (0, 0, 0))
    is_free_for = Places.is_free_for

    def watched(self: Places, of: Robot) -> Callable[[Pose], bool]:
        is_free = is_free_for(self, of)

        def look(pose: Pose) -> bool:
            looked.append(math.dist(pose[:2], of.truth[:2]))
            return is_free(pose)

        return look

    monkeypatch.setattr(Places, "is_free_for", watched)
    employ(
        robot,
        Program(
            name="walk",
            options={"area": [-1e7, -1e7, 1e7, 1e7], "pause": 0.0, "speed": 2.0},
        ),
    )
    run(robot, 20)
    assert 40.0 < max(looked) <= 50.0 + 1e-6
    assert len(looked) <= 200 * 30
    assert math.hypot(*robot.truth[:2]) > 10.0, "it walks there all the same"


def test_a_walker_that_is_hemmed_in_waits() -> None:
    sim = Simulation(MapBuilder().rectangle(-0.4, -0.4, 0.8, 0.8).scene())
    robot = sim.add_robot(thing(), "w", pose=(0, 0, 0))
    employ(robot, Program(name="walk", options={"pause": 0.0}))
    sim.step(50)
    assert math.hypot(*robot.truth[:2]) < 0.3


def test_the_same_seed_the_same_way() -> None:
    def way(seed: int, extra: bool) -> bytes:
        sim = Simulation(hall(10, 10, obstacles=5), seed=seed)
        robot = sim.add_robot(thing(), "w", pose=(2, 2, 0))
        if extra:
            sim.add_robot("p3dx", pose=(8, 8, 0))
        employ(robot, Program(name="walk", options={"area": [0.5, 0.5, 5, 5]}))
        return run(robot, 20).tobytes()

    assert way(1, False) == way(1, True)
    assert way(1, False) != way(2, False)


def test_a_client_takes_over_and_gives_back() -> None:
    robot = alone()
    employ(robot, Program(name="waypoints", options={"points": [(9, 0)], "speed": 0.4}))
    sim = robot.simulation
    sim.step(20)
    robot.claim("somebody")
    sim.step(20)
    x = robot.truth.x
    sim.step(20)
    assert robot.truth.x == pytest.approx(x, abs=1e-6), (
        "it stands while somebody else is there"
    )
    robot.release("somebody")
    sim.step(20)
    assert robot.truth.x > x + 0.3


def test_another_program_replaces_the_first_and_both_go_with_the_robot() -> None:
    robot = alone()
    sim = robot.simulation
    employ(robot, Program(name="waypoints", options={"points": [(9, 0)]}))
    employ(robot, Program(name="wander"))
    assert sim.core.programs.by_robot == {"one": Program(name="wander")}
    assert len(sim.core.programs.acts) == 1
    sim.remove_robot("one")
    assert not sim.core.programs.by_robot and not sim.core.programs.acts
    sim.step()


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        (
            "walk",
            {"speed": 0},
            r"walk: speed: expected a number greater than 0 m/s, found 0 \(int\)",
        ),
        (
            "walk",
            {"area": [1]},
            r"area: expected four numbers x0, y0, x1, y1, m, found 1",
        ),
        (
            "walk",
            {"area": [0, 0, math.inf, 1]},
            r"area: x1: expected a number from -1e\+07 to 1e\+07 m, found inf",
        ),
        (
            "walk",
            {"area": [0, 0, 1e300, 1]},
            r"area: x1: expected a number from -1e\+07 to 1e\+07 m, found 1e\+300",
        ),
        (
            "walk",
            {"area": [5, 5, 1, 9]},
            r"area: expected x0 ≤ x1 and y0 ≤ y1, found \[5.0, 5.0, 1.0, 9.0\]",
        ),
        (
            "walk",
            {"area": 3},
            r"area: expected a list of four numbers x0, y0, x1, y1, m, found 3",
        ),
        ("walk", {"area": ["a", 0, 1, 1]}, r"area: x0: expected a number .* found 'a'"),
        (
            "walk",
            {"speed": "fast"},
            r"robot one: controller walk: speed: expected a number .* found 'fast'",
        ),
        ("walk", {"pause": -1}, "pause: expected a number of at least 0 s, found -1"),
        (
            "follow",
            {"leader": "one"},
            "controller follow: leader: one cannot follow itself",
        ),
        (
            "follow",
            {"distance": -1},
            "distance: expected a number greater than 0 m, found -1",
        ),
        (
            "follow",
            {"speed": "x"},
            "controller follow: speed: expected a number greater than 0 m/s, found 'x'",
        ),
        (
            "waypoints",
            {"points": []},
            "controller waypoints: points: expected at least 1, found 0",
        ),
        (
            "waypoints",
            {"points": [[0, 0]], "reached": math.inf},
            "reached: expected a number greater than 0 m, found inf",
        ),
        ("wander", {"speed": 1}, r'no option "speed" \(options: it has none\)'),
    ],
)
def test_wrong_options(name: str, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(WorldError, match=complaint):
        make_controller(alone(), Program(name=name, options=options), 1)


@pytest.mark.parametrize("end", ["another", "restore", "removed"])
def test_a_program_that_is_dismissed_reads_no_sensors(end: str) -> None:
    sim = Simulation()
    robot = sim.add_robot("p3dx", "r")
    state = sim.save_state()
    employ(robot, Program(name="wander"))
    sim.step(2)
    assert sim.core.devices.subscriptions
    if end == "another":
        employ(robot, Program(name="walk"))
    elif end == "restore":
        sim.restore(state)
    else:
        sim.remove_robot("r")

    assert not sim.core.devices.subscriptions


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        (Orca, {"speed": 1.0, "safety": 0.05, "horizon": 3.0, "wall_horizon": 0.5}),
        (
            SocialForce,
            {
                "speed": None,
                "safety": 0.05,
                "relaxation": 0.5,
                "strength": 25.0,
                "range": 0.08,
            },
        ),
        (FieldHistogram, {"speed": 0.5, "safety": 0.1, "window": 2.0}),
    ],
)
def test_goal_controllers_show_all_their_options(
    kind: type, defaults: dict[str, object]
) -> None:
    """`help` and the registry read the signature, and goal controllers share most
    options.
    """
    shared = {"points": None, "order": "loop", "pause": 0.0, "reached": 0.3}
    found = {
        one.name: one.default
        for one in inspect.signature(kind).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    }
    assert found == {**shared, "area": None, **defaults}
    text = pydoc.plain(pydoc.render_doc(kind))
    assert all(f"{name}: " in text for name in found)
