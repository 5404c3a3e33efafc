"""Worlds of navground: agents, groups, samplers, scenarios, tasks, and every key."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import FormatError
from botyard.formats.base import Options, Source
from botyard.formats.importers.navground import CONTROLLERS, KINDS, read
from botyard.formats.importers.navgroundkeys import KEYS
from botyard.formats.registry import format_of
from botyard.geometry import Pose
from botyard.model.kinematics import Axes, Drive, Steering
from botyard.model.world import World
from tests.formats.importers.checks import (
    all_keys,
    check_key,
    check_page,
    description,
    loaded,
    run,
)

GROUP: dict[str, Any] = {
    "number": 2,
    "radius": 0.2,
    "position": [1, 2],
    "kinematics": {"type": "2WDiff", "wheel_axis": 0.4, "max_speed": 0.5},
    "behavior": {"type": "ORCA", "optimal_speed": 0.4},
    "task": {"type": "Waypoints", "waypoints": [[3, 2], [-3, -2]], "tolerance": 0.2},
    "state_estimation": {"type": "Lidar", "range": 4, "resolution": 9},
}


def world(table: dict[str, Any], told: list[str] | None = None) -> World:
    return loaded(yaml.safe_dump(table), "n.yaml", told)


def poses(made: World) -> list[Pose]:
    return [robot.pose for robot in made.robots if robot.pose is not None]


def test_a_group_has_robots_with_goals_and_lasers() -> None:
    told: list[str] = []
    made = world({"groups": [GROUP]}, told)
    assert told == []
    first, second = made.robots
    assert (first.name, second.name) == ("agent_0", "agent_1")
    assert first.spec is second.spec
    spec = first.spec
    assert (spec.drive, spec.track) == (Drive.DIFF, 0.4)
    # Wheels at 0.5 m/s against each other turn the body by 2·v/track.
    assert spec.limits.max_speed == Axes(0.5, 0.0, 2.5)
    assert first.program is not None
    assert (first.program.name, dict(first.program.options)) == (
        "orca",
        {
            "points": [[3.0, 2.0], [-3.0, -2.0]],
            "order": "loop",
            "reached": 0.2,
            "speed": 0.4,
        },
    )
    (laser,) = spec.lasers
    assert (laser.samples, laser.range_max, laser.fov) == (9, 4.0, 2 * math.pi)
    assert len(made.scene.places) == 4
    run(made)


def test_an_experiment_has_times_and_a_seed() -> None:
    made = world(
        {
            "scenario": {"groups": [GROUP]},
            "time_step": 0.05,
            "steps": 200,
            "run_index": 7,
        }
    )
    assert (made.settings.step, made.settings.seed) == (0.05, 7)
    assert made.settings.duration == pytest.approx(10.0)


def test_obstacles_are_discs_and_walls_are_lines() -> None:
    made = world(
        {
            "agents": [],
            "obstacles": [{"position": [4, 1], "radius": 0.5}],
            "walls": [{"line": [[0, 0], [5, 0]]}],
            "bounding_box": {"min_x": -1, "min_y": -2, "max_x": 3, "max_y": 4},
        }
    )
    assert made.scene.segments[-1].tolist() == [0, 0, 5, 0]
    away = np.hypot(*(made.scene.segments[:-1, :2] - (4, 1)).T)
    assert np.allclose(away, 0.5, atol=0.01)
    assert made.scene.view == (-1, -2, 3, 4)


def test_antipodal_robots_are_where_navground_puts_them() -> None:
    """As navground 0.7 places three robots on a circle of 3 m."""
    made = world({"type": "Antipodal", "radius": 3, "groups": [{**GROUP, "number": 3}]})
    plain = copy.deepcopy(GROUP)
    del plain["position"], plain["task"]
    made = world({"type": "Antipodal", "radius": 3, "groups": [plain | {"number": 3}]})
    found = poses(made)
    assert np.allclose(
        [(p.x, p.y) for p in found], [(3, 0), (-1.5, 2.598076), (-1.5, -2.598076)]
    )
    turns = [p.th % (2 * math.pi) for p in found]
    assert np.allclose(turns, [math.pi, 5.235988, 1.047198])
    program = made.robots[1].program
    assert program is not None
    assert np.allclose(program.options["points"], [(1.5, -2.598076)])


def test_a_corridor_has_walls_and_robots_in_both_directions() -> None:
    """Walls as navground 0.7 makes them for a length of 8 m and a width of 2 m."""
    group = {k: v for k, v in GROUP.items() if k not in ("position", "task")}
    told: list[str] = []
    made = world(
        {
            "type": "Corridor",
            "length": 8,
            "width": 2,
            "groups": [group | {"number": 6}],
        },
        told,
    )
    assert made.scene.segments.tolist() == [[-8, 0, 16, 0], [-8, 2, 16, 2]]
    assert [p.th for p in poses(made)] == [0.0, math.pi] * 3
    assert all(0 <= p.x <= 8 and 0 <= p.y <= 2 for p in poses(made))
    assert any("the plane does not repeat" in text for text in told)


def test_robots_of_a_cross_drive_between_opposite_sides() -> None:
    group = {k: v for k, v in GROUP.items() if k not in ("position", "task")}
    made = world({"type": "Cross", "side": 4, "groups": [group | {"number": 4}]})
    goals = [r.program.options["points"][0] for r in made.robots if r.program]
    assert goals == [[2, 0], [-2, 0], [0, 2], [0, -2]]
    assert all(abs(p.x) <= 2 and abs(p.y) <= 2 for p in poses(made))


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        ({"sampler": "const", "value": 0.3}, [0.3, 0.3, 0.3]),
        ({"sampler": "sequence", "values": [0.1, 0.2]}, [0.1, 0.2, 0.1]),
        ({"sampler": "regular", "from": 0.1, "step": 0.2}, [0.1, 0.3, 0.5]),
        ({"sampler": "regular", "from": 0.1, "to": 0.3, "number": 3}, [0.1, 0.2, 0.3]),
        (
            {"sampler": "sequence", "values": [0.4, 0.2], "once": True},
            [0.4, 0.4, 0.4],
        ),
    ],
)
def test_samplers_give_each_robot_its_value(
    sampler: dict[str, Any], expected: list[float]
) -> None:
    made = world({"groups": [{**GROUP, "number": 3, "radius": sampler}]})
    found = [robot.spec.radius for robot in made.robots]
    assert np.allclose(found, expected, rtol=0.02)


@given(
    low=st.tuples(st.floats(-50, 0), st.floats(-50, 0)),
    size=st.tuples(st.floats(0, 50), st.floats(0, 50)),
    seed=st.integers(0, 1000),
)
def test_uniform_positions_lie_within_and_repeat(
    low: tuple[float, float], size: tuple[float, float], seed: int
) -> None:
    high = [a + b for a, b in zip(low, size, strict=True)]
    position = {"sampler": "uniform", "from": list(low), "to": high}
    table = {
        "scenario": {"groups": [{**GROUP, "number": 5, "position": position}]},
        "run_index": seed,
    }
    made = world(table)
    for pose in poses(made):
        assert low[0] <= pose.x <= high[0] and low[1] <= pose.y <= high[1]
    assert description(made) == description(world(table))


def test_normal_and_binary_samplers_have_their_mean() -> None:
    group = {
        **GROUP,
        "number": 2000,
        "position": {"sampler": "normal", "mean": [3, -2], "std_dev": [1, 0.5]},
        "ignore_collisions": {"sampler": "binary", "probability": 0.25},
    }
    made = world({"groups": [group]})
    found = np.array([(p.x, p.y) for p in poses(made)])
    assert np.allclose(found.mean(axis=0), (3, -2), atol=0.1)
    assert np.allclose(found.std(axis=0), (1, 0.5), atol=0.05)
    passing = [not robot.spec.returns.obstacle for robot in made.robots]
    assert np.mean(passing) == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(
    ("kind", "drive"),
    [
        ("2WDiff", Drive.DIFF),
        ("Ahead", Drive.DIFF),
        ("Omni", Drive.OMNI),
        ("4WOmni", Drive.OMNI),
        ("Bicycle", Drive.TRICYCLE),
    ],
)
def test_kinematics_name_the_drive(kind: str, drive: Drive) -> None:
    told: list[str] = []
    made = world(
        {"groups": [{**GROUP, "kinematics": {"type": kind, "max_speed": 1}}]}, told
    )
    assert made.robots[0].spec.drive == drive
    run(made)


def test_a_bicycle_steers_within_its_limit() -> None:
    motion = {
        "type": "Bicycle",
        "max_speed": 1.5,
        "axis": 0.8,
        "max_steering_angle": 0.4,
    }
    told: list[str] = []
    group = {
        **GROUP,
        "kinematics": motion,
        "behavior": {"type": "HL"},
        "task": {"type": "Waypoints", "waypoints": [[3, 0]]},
    }
    made = world({"groups": [group]}, told)
    spec = made.robots[0].spec
    assert spec.steering == Steering(wheelbase=0.8, limit=0.4)
    assert spec.limits.max_speed.a == pytest.approx(1.5 * math.tan(0.4) / 0.8)
    # ORCA turns robots on the spot, which a car cannot.
    program = made.robots[0].program
    assert program is not None and program.name == "waypoints"
    assert sum('the controller "orca" turns' in text for text in told) == 1
    run(made)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"groups": [{"number": -1}]}, "a number from 0 to 20000"),
        ({"groups": [{"number": 1e9}]}, "a number from 0 to 20000"),
        ({"groups": [{**GROUP, "radius": 0}]}, "a radius greater than 0"),
        ({"groups": [{**GROUP, "radius": {"sampler": "dice"}}]}, '"const" or'),
        ({"groups": [{**GROUP, "radius": {"sampler": "const"}}]}, "the key value"),
        (
            {"groups": [{**GROUP, "radius": {"sampler": "choice", "values": []}}]},
            "with values",
        ),
        ({"groups": [{**GROUP, "position": [1]}]}, "expected 2 numbers"),
        ({"groups": [], "walls": [{"line": [[0, 0]]}]}, "a line of two points"),
        ({"groups": [], "obstacles": [{"radius": 1}]}, "a position and a radius"),
        ({"groups": [], "type": "Maze"}, '"Antipodal" or "Corridor"'),
    ],
)
def test_files_that_are_refused(table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        world(table)
    assert complaint in str(error.value)
    assert "n.yaml:" in str(error.value)


def test_files_are_recognised_by_their_keys() -> None:
    for text, name in (
        ("groups: []\n", "navground"),
        ("agents: []\nwalls: []\n", "navground"),
        ("scenario:\n  type: Cross\nruns: 3\n", "navground"),
        ("groups: []\nbotyard: 1\n", "scenario"),
    ):
        assert format_of(Source("a.yaml", text.encode())).name == name


# -- every key

AGENT = {k: v for k, v in GROUP.items() if k != "number"}
BASE: dict[str, Any] = {
    "scenario": {
        "type": "Simple",
        "obstacles": [{"position": [9, 9], "radius": 1}],
        "walls": [{"line": [[0, 9], [9, 9]]}],
        "agents": [AGENT],
        "groups": [{**GROUP, "number": 1}],
    },
    "steps": 100,
}
INFINITE = float("inf")
WITH: dict[tuple[str, str], Any] = {
    ("experiment", "scenario"): {"groups": []},
    ("experiment", "name"): "x",
    ("experiment", "time_step"): 0.3,
    ("world", "type"): "Corridor",
    ("world", "obstacles"): [],
    ("world", "walls"): [],
    ("world", "side"): 6,
    ("world", "groups"): [],
    ("world", "agents"): [],
    ("world", "bounding_box"): {"max_x": 3, "max_y": 4},
    ("obstacle", "position"): [7, 7],
    ("wall", "line"): [[0, 0], [7, 7]],
    ("kinematics", "type"): "Omni",
    ("kinematics", "max_steering_angle"): 0.3,
    ("behavior", "type"): "SocialForce",
    ("behavior", "optimal_speed"): 0.1,
    ("task", "type"): "Direction",
    ("task", "waypoints"): [[7, 7]],
    ("task", "points"): [[7, 7], [8, 8]],
    ("task", "point"): [7, 7],
    ("task", "loop"): False,
    ("task", "angular_tolerance"): 0.1,
    ("sensor", "type"): "Bounded",
    ("sensor", "position"): [0.1, 0],
}
for _kind in ("agent", "group"):
    WITH |= {
        (_kind, "position"): [5, 5],
        (_kind, "color"): "green",
        (_kind, "name"): "ann",
        (_kind, "type"): "thymio",
        (_kind, "kinematics"): {"type": "Omni"},
        (_kind, "behavior"): {"type": "SocialForce"},
        (_kind, "task"): {"type": "GoToPose", "point": [4, 4]},
        (_kind, "state_estimation"): {"type": "Lidar", "range": 9},
        (_kind, "state_estimations"): [{"type": "Lidar", "range": 9}],
        (_kind, "ignore_collisions"): True,
        (_kind, "velocity"): [1, 0],
        (_kind, "external"): True,
    }


def place_of(table: dict[str, Any], kind: str) -> dict[str, Any]:
    scenario = table["scenario"]
    found: dict[str, Any] = {
        "experiment": table,
        "world": scenario,
        "obstacle": scenario["obstacles"][0],
        "wall": scenario["walls"][0],
        "agent": scenario["agents"][0],
    }.get(kind, scenario["groups"][0])
    inner = {"sensor": "state_estimation"}.get(kind, kind)
    if kind in ("kinematics", "behavior", "task", "sensor"):
        found = found[inner]
    return found


@pytest.mark.parametrize(("kind", "key"), list(all_keys(KEYS)))
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    table = copy.deepcopy(BASE)
    scenario = table["scenario"]
    kinds = {"radius": "Antipodal", "length": "Corridor", "width": "Corridor"}
    kinds |= {"side": "Cross", "agent_margin": "Cross", "tolerance": "Antipodal"}
    if kind == "world" and key in kinds:
        scenario["type"] = kinds[key]
        scenario["groups"] = [
            {k: v for k, v in GROUP.items() if k not in ("position", "task")}
            | {"number": 5}
        ]
    motion = place_of(table, "kinematics")
    if (kind, key) in (("kinematics", "axis"), ("kinematics", "max_steering_angle")):
        motion["type"] = "Bicycle"
    if (kind, key) in (("task", "points"), ("task", "point")):
        names = {"points": "Path", "point": "GoToPose"}
        scenario["groups"][0]["task"]["type"] = names[key]
    fuller = copy.deepcopy(table)
    target = place_of(fuller, kind)
    if target is not table and key in ("record_pose", "record_world"):
        target[key] = True
    else:
        target[key] = WITH.get((kind, key), 2)

    def made(one: dict[str, Any], told: list[str]) -> World:
        text = yaml.safe_dump(one, sort_keys=False)
        return read(Source("w.yaml", text.encode()), Options(warn=told.append))

    check_key(
        KEYS, kind, key, lambda told: made(fuller, told), lambda told: made(table, told)
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "navground")
    assert all(kind in KEYS.kinds["world"]["type"].text for kind in KINDS)
    assert all(kind in KEYS.kinds["behavior"]["type"].text for kind in CONTROLLERS)
