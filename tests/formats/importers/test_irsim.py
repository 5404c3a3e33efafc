"""Worlds of ir-sim: objects, shapes, drives, sensors, behaviours, and every key."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botyard.errors import FormatError, WorldFileError
from botyard.formats.base import Options, Source
from botyard.formats.importers.irsim import DRIVES, read
from botyard.formats.importers.irsimkeys import KEYS
from botyard.formats.importers.irsimshapes import NAMES
from botyard.formats.registry import format_of
from botyard.geometry import Pose, transform_point
from botyard.model.kinematics import Axes, Drive, Steering
from botyard.model.world import World
from tests.formats.importers.checks import (
    all_keys,
    check_key,
    check_page,
    load,
    loaded,
    run,
)


def world(text: str, told: list[str] | None = None) -> World:
    return loaded(text, "my.yaml", told)


def of(table: dict[str, Any], told: list[str] | None = None) -> World:
    return world(yaml.safe_dump(table), told)


# -- objects


def test_the_example_of_the_page_has_robots_walls_goals_and_a_view() -> None:
    told: list[str] = []
    made = world(
        """
world: {height: 8, width: 12, offset: [-6, -4], step_time: 0.05, name: yard}
robot:
  - kinematics: {name: diff}
    shape: {name: circle, radius: 0.2}
    state: [1, 2, 0.5]
    goal: [3, 3, 0]
    vel_max: [2, 1.5]
    vel_min: [-2, -1.5]
    acce: [3, .inf]
    goal_threshold: 0.3
    behavior: {name: dash}
  - kinematics: {name: omni_angular}
    shape: {name: rectangle, length: 0.6, width: 0.4}
    state: [-1, 0]
    vel_max: [1, 0.5, 2]
obstacle:
  - {shape: {name: rectangle, length: 2, width: 1}, state: [3, 0, 1.5707963267948966]}
  - {shape: {name: linestring, vertices: [[0, 0], [1, 0], [1, 2]]}, state: [-4, 1, 0]}
""",
        told,
    )
    assert told == []
    assert (made.scene.name, made.scene.view) == ("yard", (-6.0, -4.0, 6.0, 4.0))
    assert made.settings.step == 0.05
    first, second = made.robots
    assert (first.name, first.pose, first.spec.drive) == (
        "robot_0",
        Pose(1.0, 2.0, 0.5),
        Drive.DIFF,
    )
    assert first.spec.limits.max_speed == Axes(2.0, 0.0, 1.5)
    assert first.spec.limits.accel == Axes(3.0, 0.0, 0.0)
    assert first.program is not None
    assert (first.program.name, first.program.options) == (
        "waypoints",
        {"speed": 2.0, "points": [[3.0, 3.0]], "order": "once", "reached": 0.3},
    )
    assert second.spec.drive == Drive.OMNI
    assert second.spec.limits.max_speed == Axes(1.0, 0.5, 2.0)
    assert [(p.name, p.pose) for p in made.scene.places] == [
        ("robot_0 goal", Pose(3.0, 3.0))
    ]
    box, line = made.scene.segments[:4], made.scene.segments[4:]
    assert np.allclose(np.abs(box.reshape(-1, 2) - (3.0, 0.0)).max(axis=0), (0.5, 1.0))
    assert line.tolist() == [[-4, 1, -3, 1], [-3, 1, -3, 3]]
    run(made)


def test_a_robot_drives_to_its_goal() -> None:
    sim = run(
        world(
            "robot: [{kinematics: {name: diff}, shape: {name: circle}, state: [1, 1, 0],"
            " goal: [3, 1, 0], behavior: {name: dash}}]"
        ),
        60,
    )
    (robot,) = sim.robots.values()
    assert math.hypot(robot.truth.x - 3.0, robot.truth.y - 1.0) < 0.15


def test_obstacles_are_walls_things_or_objects_with_a_mass() -> None:
    made = world(
        """
obstacle:
  - {shape: {name: circle, radius: 0.5}, state: [2, 2], color: k}
  - {shape: {name: circle, radius: 0.5}, state: [4, 4], mass: [2.5], friction: 0.3}
  - {shape: {name: circle, radius: 0.5}, state: [6, 6], kinematics: {name: omni}}
  - {shape: {name: circle, radius: 0.5}, state: [8, 8], kinematics: {name: omni}, static: true}
"""
    )
    (box,) = made.scene.boxes
    assert box.dynamics is not None
    assert (box.name, box.dynamics.mass, box.dynamics.floor_friction) == (
        "obstacle_1",
        2.5,
        0.3,
    )
    (mover,) = made.robots
    assert (mover.served, mover.name, mover.spec.drive) == (
        False,
        "obstacle_2",
        Drive.OMNI,
    )
    ends = made.scene.segments.reshape(-1, 2)
    assert set(np.round(ends.mean(axis=1) / 2).tolist()) == {1.0, 4.0}
    run(made)


def test_a_robot_without_a_drive_stands_and_measures() -> None:
    sim = run(
        world(
            "robot: [{state: [1, 1], shape: {name: circle, radius: 0.1},"
            " sensors: [{range_max: 5, number: 3, angle_range: 2}]}]\n"
            "obstacle: [{shape: {name: rectangle, length: 1, width: 4}, state: [4.5, 1]}]"
        )
    )
    (robot,) = sim.robots.values()
    robot.command(v=1.0, w=1.0)
    sim.step(20)
    assert robot.truth == (1.0, 1.0, 0.0)
    assert robot.laser.read().ranges[1] == pytest.approx(3.0)


def test_objects_of_an_entry_share_values_or_have_their_own() -> None:
    made = world(
        """
robot:
  - number: 3
    name: [a, b, c]
    kinematics: {name: diff}
    state: [[1, 1, 0], [2, 2, 1]]
    goal: [[5, 5], [6, 6]]
    vel_max: [0.5, 1]
    shape: [{name: circle, radius: 0.1}, {name: circle, radius: 0.3}]
    sensors: [[{name: lidar2d, number: 5}], []]
    behavior: [{name: dash}, {name: rvo}]
"""
    )
    assert [r.name for r in made.robots] == ["a", "b", "c"]
    assert [r.pose for r in made.robots] == [
        Pose(1, 1, 0),
        Pose(2, 2, 1),
        Pose(2, 2, 1),
    ]
    assert [len(r.spec.lasers) for r in made.robots] == [1, 0, 0]
    assert [r.program and r.program.name for r in made.robots] == [
        "waypoints",
        "orca",
        "orca",
    ]
    assert made.robots[1].spec is made.robots[2].spec
    assert made.robots[0].spec.radius < 0.11 < 0.3 < made.robots[1].spec.radius


def test_places_on_a_circle_face_its_centre_and_random_places_keep_apart() -> None:
    ring = world(
        "robot: [{number: 4, kinematics: {name: omni}, behavior: {name: rvo},"
        " shape: {name: circle}, distribution: {name: circle, center: [5, 5], radius: 2}}]"
    )
    found = [(round(p.x, 9), round(p.y, 9)) for p in (r.pose for r in ring.robots) if p]
    assert found == [(7, 5), (5, 7), (3, 5), (5, 3)]
    for robot in ring.robots:
        assert robot.pose is not None and robot.program is not None
        x, y = transform_point(robot.pose, 4.0, 0.0)
        assert robot.program.options["points"][0] == pytest.approx([x, y])

    text = (
        "robot: [{number: 12, kinematics: {name: diff}, shape: {name: circle},"
        " distribution: {name: random, range_low: [2, 3], range_high: [8, 9]}}]"
    )
    told: list[str] = []
    places = np.array([r.pose[:2] for r in world(text, told).robots if r.pose])
    assert "drawn once, with a fixed seed" in told[0]
    assert (places >= (2, 3)).all() and (places <= (8, 9)).all()
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    assert apart[~np.eye(12, dtype=bool)].min() >= 1.0
    again = np.array([r.pose[:2] for r in world(text).robots if r.pose])
    assert np.array_equal(places, again)


def test_cars_steer_about_their_rear_axle() -> None:
    told: list[str] = []
    made = world(
        "robot: [{kinematics: {name: acker}, state: [0, 0, 0, 0], vel_max: [4, 0.5],"
        " shape: {name: rectangle, length: 4.6, width: 1.6, wheelbase: 3}}]",
        told,
    )
    assert told == []
    spec = made.robots[0].spec
    assert spec.drive == Drive.TRICYCLE
    assert spec.steering == Steering(wheelbase=3.0, limit=0.5)
    assert spec.limits.max_speed.a == pytest.approx(4.0 * math.tan(0.5) / 3.0)
    # The origin is the rear axle.
    assert (spec.front, min(x for x, _ in spec.outline)) == pytest.approx((3.8, -0.8))
    run(made)


def test_the_second_acceleration_of_a_car_is_the_rate_of_its_steering() -> None:
    def steering(mode: str) -> Steering | None:
        motion = {"name": "acker", "wheelbase": 2, "mode": mode}
        robot = {"kinematics": motion, "vel_max": [4, 0.5], "acce": [1, 0.7]}
        return of({"robot": [robot]}).robots[0].spec.steering

    assert steering("steer") == Steering(wheelbase=2.0, limit=0.5, rate=0.7)
    assert steering("angular") == Steering(
        wheelbase=2.0, limit=math.radians(60.0), rate=0.5
    )


def test_cars_get_controllers_that_drive_cars() -> None:
    told: list[str] = []
    text = (
        "robot: [{kinematics: {name: acker}, goal: [5, 5, 0], behavior: {name: rvo, safe_radius: 1}},"
        "{kinematics: {name: acker}, goal: [5, 5, 0], behavior: {name: rvo, wander: true}},"
        "{kinematics: {name: diff}, goal: [5, 5, 0], behavior: {name: rvo}}]"
    )
    made = world(text, told)
    names = [r.program.name for r in made.robots if r.program is not None]
    assert names == ["waypoints", "walk", "orca"]
    assert any("turns robots on the spot" in text for text in told)
    run(made)


def test_a_lidar_has_ranges_errors_and_a_rate() -> None:
    made = world(
        "robot: [{kinematics: {name: diff}, shape: {name: circle}, sensors: [{type: lidar2d,"
        " range_min: 0.1, range_max: 20, angle_range: 6.2832, number: 7, noise: true,"
        " std: 0.1, angle_std: 0.02, offset: [0.1, 0, 0.5], scan_time: 0.05},"
        " {name: contact2d}]}]",
        told := [],  # type: ignore[var-annotated]
    )
    (laser,) = made.robots[0].spec.lasers
    assert (laser.samples, laser.range_min, laser.range_max) == (7, 0.1, 20.0)
    assert (laser.fov, laser.pose) == (2.0 * math.pi, Pose(0.1, 0.0, 0.5))
    assert (laser.range_deviation, laser.update_rate) == (0.1, 20.0)
    assert laser.angle_noise == pytest.approx(0.02 * math.sqrt(3.0))
    assert told == ['my.yaml:1: the sensor "contact2d" is left out']


def test_a_picture_is_as_large_as_the_world(tmp_path: Path) -> None:
    pixels = np.full((4, 8), 255, np.uint8)
    pixels[0, 7] = pixels[3, 0] = pixels[3, 1] = 0
    Image.fromarray(pixels).save(tmp_path / "m.png")
    for named in ("m.png", "{name: image, path: m.png}"):
        (tmp_path / "w.yaml").write_text(
            f"world: {{width: 16, height: 4, offset: [1, 2], obstacle_map: {named}}}\n"
        )
        made = load(tmp_path / "w.yaml")
        raster = made.scene.to_array(1.0)
        rows, columns = np.nonzero(raster.solid)
        found = {
            (raster.x + c, raster.y + r)
            for r, c in zip(rows.tolist(), columns.tolist(), strict=True)
        }
        expected = {(1, 2), (2, 2), (3, 2), (4, 2), (15, 5), (16, 5)}
        assert found == expected

    (tmp_path / "w.yaml").write_text(
        "world: {width: 16, height: 4, mdownsample: 2, obstacle_map: m.png}\n"
    )
    raster = load(tmp_path / "w.yaml").scene.to_array(1.0)
    # Of each two pixels the left one and the lower one stay.
    assert np.argwhere(raster.solid)[:, 1].max() == 3
    (tmp_path / "w.yaml").write_text("world: {obstacle_map: none.png}\n")
    with pytest.raises(WorldFileError, match="the obstacle map does not exist"):
        load(tmp_path / "w.yaml")


def test_another_generator_is_left_out_with_a_warning() -> None:
    told: list[str] = []
    made = world("world: {obstacle_map: {name: perlin, resolution: 0.1}}\n", told)
    assert len(made.scene.segments) == 0
    assert any("the obstacle map of a generator is left out" in text for text in told)


def test_shapes_of_a_compound_are_placed_in_the_body() -> None:
    made = world(
        "robot: {kinematics: {name: diff}, shape: {name: compound, parts: ["
        "{name: rectangle, length: 0.8, width: 0.3},"
        "{name: circle, radius: 0.2, pose: [-0.25, 0.3, 0]},"
        "{name: polygon, vertices: [[0, 0], [1, 0], [0, 1]], pose: [1, 0, 1.5707963267948966]}]}}"
    )
    spec = made.robots[0].spec
    assert len(spec.parts) == 2
    assert np.mean(spec.parts[0], axis=0) == pytest.approx([-0.25, 0.3])
    assert spec.parts[1] == pytest.approx(np.array([[1, 0], [1, 1], [0, 0]]))


@given(
    x=st.floats(-50, 50),
    y=st.floats(-50, 50),
    th=st.floats(-7, 7),
    corners=st.lists(
        st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
        min_size=3,
        max_size=8,
        unique=True,
    ),
)
def test_walls_are_the_placed_corners(
    x: float, y: float, th: float, corners: list[tuple[float, float]]
) -> None:
    made = of(
        {
            "obstacle": [
                {
                    "shape": {
                        "name": "polygon",
                        "vertices": [list(c) for c in corners],
                    },
                    "state": [x, y, th],
                }
            ]
        }
    )
    c, s = math.cos(th), math.sin(th)
    placed = [(x + c * a - s * b, y + s * a + c * b) for a, b in corners]
    assert np.allclose(made.scene.segments[:, :2], placed, atol=1e-9)
    assert np.allclose(made.scene.segments[:, 2:], [*placed[1:], placed[0]], atol=1e-9)


@given(radius=st.floats(0.01, 500))
def test_circles_have_the_right_area_and_stay_near_the_circle(radius: float) -> None:
    made = of({"obstacle": [{"shape": {"name": "circle", "radius": radius}}]})
    ends = made.scene.segments[:, :2] - (1.0, 1.0)
    x, y = ends.T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2.0
    assert area == pytest.approx(math.pi * radius**2)
    middle = (ends + np.roll(ends, -1, axis=0)) / 2.0
    for distance in (np.hypot(*ends.T), np.hypot(*middle.T)):
        assert np.abs(distance - radius).max() < max(0.0101, 0.0)


# -- what the file may not be


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("world: {width: 0}", "my.yaml:1: world.width: expected a number"),
        ("robot:\n- {}\n- {kinematics: {name: fly}}", "my.yaml:3: robot[1].kinematics"),
        ("robot: [{state: [1, x]}]", "robot[0].state[0]: expected 2 to 100 numbers"),
        ("obstacle: [{shape: {name: cone}}]", 'expected "circle" or "rectangle"'),
        ("obstacle: [{shape: {name: polygon}}]", "expected a shape with vertices"),
        ("obstacle: [{shape: {name: circle, radius: -1}}]", "greater than 0"),
        ("obstacle: [{shape: {name: compound, parts: []}}]", "a compound with parts"),
        ("robot: [{number: 1.5}]", "a whole number from 0 to 20000"),
        ("robot: [{number: 1e9}]", "a whole number from 0 to 20000"),
        ("robot: [7]", "expected a mapping of keys and values, found 7"),
        ("world: {step_time: .nan}", "finite number"),
        ('robot: [{name: "a\\eb"}]', "name of a robot"),
        ("robot: [{kinematics: {name: diff}, sensors: [{range_max: 0}]}]", "range"),
    ],
)
def test_files_that_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        world(text)
    assert complaint in str(error.value)


def test_a_file_cannot_ask_for_endless_tries() -> None:
    text = (
        "robot: [{number: 20000, kinematics: {name: diff},"
        " distribution: {name: random, min_distance: 100}}]"
    )
    with pytest.raises(FormatError, match="entities"):
        world(text)


def test_only_files_with_the_keys_of_ir_sim_are_recognised() -> None:
    for text, name in (
        ("world: {}\n", "irsim"),
        ("irsim: {world: {}}\nother: 1\n", "irsim"),
        ("robot: []\nobstacle: []\n", "irsim"),
        ("botyard: 1\nrobots: []\n", "scenario"),
        ("image: a.png\nresolution: 1\n", "rosmap"),
        ("world: {}\nlevels: {}\n", "scenario"),
    ):
        assert format_of(Source("a.yaml", text.encode())).name == name


# -- every key

BASE: dict[str, Any] = {
    "world": {"width": 20},
    "robot": [
        {
            "kinematics": {"name": "diff"},
            "shape": {"name": "circle"},
            "goal": [3, 3],
            "state": [4, 4],
        }
    ],
    "obstacle": [{"shape": {"name": "circle"}, "state": [7, 7]}],
}
RANDOM = {"name": "polygon", "random_shape": True}
WITH: dict[tuple[str, str], Any] = {
    ("file", "world"): {"width": 30},
    ("file", "robot"): [],
    ("file", "obstacle"): [],
    ("file", "irsim"): {"world": {}},
    ("world", "name"): "hall",
    ("world", "offset"): [1, 2],
    ("world", "friction"): 0.25,
    ("world", "restitution"): 0.25,
    ("world", "obstacle_map"): {"name": "perlin"},
    ("obstacle_map", "name"): "image",
    ("distribution", "name"): "random",
    ("distribution", "range_low"): [4, 4, 0],
    ("distribution", "range_high"): [6, 6, 0],
    ("distribution", "min_distance"): 3,
    ("distribution", "center"): [8, 8],
    ("kinematics", "name"): "omni",
    ("kinematics", "mode"): "angular",
    ("shape", "name"): "rectangle",
    ("shape", "center"): [0.5, 0.5],
    ("shape", "vertices"): [[0, 0], [2, 0], [0, 2]],
    ("shape", "parts"): [{"name": "circle"}],
    ("shape", "pose"): [1, 0, 0],
    ("shape", "random_shape"): True,
    ("shape", "is_convex"): True,
    ("shape", "radius_range"): [2, 3],
    ("shape", "center_range"): [3, 3, 4, 4],
    ("shape", "avg_radius_range"): [2, 3],
    ("shape", "irregularity_range"): [0.5, 0.6],
    ("shape", "spikeyness_range"): [0.5, 0.6],
    ("shape", "num_vertices_range"): [12, 13],
    ("behavior", "name"): "rvo",
    ("behavior", "range_low"): [1, 1],
    ("behavior", "range_high"): [5, 5],
    ("group_behavior", "name"): "sfm",
    ("group_behavior", "range_low"): [1, 1],
    ("group_behavior", "range_high"): [5, 5],
    ("sensor", "name"): "fmcw_lidar2d",
    ("sensor", "type"): "fmcw_lidar2d",
    ("sensor", "offset"): [0.1, 0, 0],
    ("sensor", "noise"): True,
    ("sensor", "number"): 7,
    ("sensor", "range_max"): 7,
}
for _kind in ("robot", "obstacle"):
    WITH |= {
        (_kind, "name"): "ann",
        (_kind, "number"): 2,
        (_kind, "distribution"): {"name": "circle"},
        (_kind, "state"): [1, 2, 3],
        (_kind, "goal"): [5, 6],
        (_kind, "velocity"): [1, 0],
        (_kind, "role"): "guest",
        (_kind, "color"): "g",
        (_kind, "static"): True,
        (_kind, "vel_min"): [-0.5, -0.5],
        (_kind, "vel_max"): [2, 2],
        (_kind, "acce"): [2, 2],
        (_kind, "arrive_mode"): "state",
        (_kind, "restitution"): 0.25,
        (_kind, "unobstructed"): True,
        (_kind, "kinematics"): {"name": "omni"},
        (_kind, "shape"): {"name": "circle", "radius": 0.4},
        (_kind, "behavior"): {"name": "sfm"},
        (_kind, "group_behavior"): {"name": "orca"},
        (_kind, "sensors"): [{"range_max": 5}],
    }
# Keys that mean something only together with others.
BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("world", "friction"): {"obstacle": {"mass": 1}},
    ("world", "restitution"): {"obstacle": {"mass": 1}},
    ("obstacle", "friction"): {"obstacle": {"mass": 1}},
    ("obstacle", "inertia"): {"obstacle": {"mass": 1}},
    ("obstacle", "restitution"): {"obstacle": {"mass": 1}},
    ("distribution", "range_low"): {"distribution": {"name": "random"}},
    ("distribution", "range_high"): {"distribution": {"name": "random"}},
    ("distribution", "min_distance"): {"distribution": {"name": "random"}},
    ("distribution", "center"): {"distribution": {"name": "circle"}},
    ("distribution", "radius"): {"distribution": {"name": "circle"}},
    ("kinematics", "mode"): {"kinematics": {"name": "acker"}},
    ("kinematics", "wheelbase"): {"kinematics": {"name": "acker"}},
    ("shape", "length"): {"shape": {"name": "rectangle"}},
    ("shape", "width"): {"shape": {"name": "rectangle"}},
    ("shape", "vertices"): {
        "shape": {"name": "polygon", "vertices": [[0, 0], [1, 0], [0, 1]]}
    },
    ("shape", "radius_range"): {"shape": {"name": "circle", "random_shape": True}},
    **{
        ("shape", key): {"shape": RANDOM}
        for key in (
            "is_convex",
            "center_range",
            "avg_radius_range",
            "irregularity_range",
            "spikeyness_range",
            "num_vertices_range",
        )
    },
    ("behavior", "range_low"): {"behavior": {"wander": True}},
    ("behavior", "range_high"): {"behavior": {"wander": True}},
    ("behavior", "vmax"): {"behavior": {"name": "sfm"}},
    ("group_behavior", "range_low"): {"group_behavior": {"wander": True}},
    ("group_behavior", "range_high"): {"group_behavior": {"wander": True}},
    ("sensor", "std"): {"sensor": {"noise": True}},
    ("sensor", "angle_std"): {"sensor": {"noise": True}},
}
# A mapping of each kind, in the table of a file.
DEFAULTS: dict[str, dict[str, Any]] = {
    "distribution": {"name": "manual"},
    "behavior": {"name": "dash"},
    "group_behavior": {"name": "orca"},
    "sensor": {},
}


def place_of(table: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the mapping of a kind in a file; make it if it is missing."""
    if kind == "file":
        return table
    if kind in ("world", "obstacle_map"):
        found: dict[str, Any] = table["world"]
        if kind == "obstacle_map":
            found = found.setdefault("obstacle_map", {"name": "perlin"})
        return found
    robot: dict[str, Any] = table["robot"][0]
    if kind == "robot":
        return robot
    if kind == "obstacle":
        obstacle: dict[str, Any] = table["obstacle"][0]
        return obstacle
    if kind == "sensor":
        sensors: list[dict[str, Any]] = robot.setdefault("sensors", [{}])
        return sensors[0]
    made: dict[str, Any] = robot.setdefault(kind, dict(DEFAULTS.get(kind, {})))
    return made


@pytest.mark.parametrize(("kind", "key"), list(all_keys(KEYS)))
def test_each_key_is_read_or_named(kind: str, key: str, tmp_path: Path) -> None:
    table = copy.deepcopy(BASE)
    moving = (
        "vel_min",
        "vel_max",
        "acce",
        "behavior",
        "group_behavior",
        "sensors",
        "goal_threshold",
    )
    if kind == "obstacle" and key in (*moving, "name", "color", "static"):
        table["obstacle"][0]["kinematics"] = {"name": "omni"}
    if key == "goal_threshold" or (kind, key) == ("behavior", "vmax"):
        place_of(table, kind if kind == "obstacle" else "robot").setdefault(
            "behavior", {"name": "dash"}
        )
    if (kind, key) == ("distribution", "min_distance"):
        table["robot"][0]["number"] = 6
    if (kind, key) in (("behavior", "loop"), ("group_behavior", "loop")):
        table["robot"][0]["goal"] = [[[1, 1], [2, 2]]]
    for other, values in BESIDE.get((kind, key), {}).items():
        place_of(table, other).update(copy.deepcopy(values))
    place_of(table, kind)
    if (kind, key) in (("shape", "parts"), ("shape", "pose")):
        place_of(table, "shape").update(
            {"name": "compound", "parts": [{"name": "rectangle"}]}
        )
    if (kind, key) in (
        ("world", "mdownsample"),
        ("obstacle_map", "path"),
        ("obstacle_map", "name"),
    ):
        draw = np.random.default_rng(1).integers(0, 2, (8, 8)).astype(np.uint8) * 255
        Image.fromarray(draw).save(tmp_path / "m.png")
        name = "perlin" if key == "name" else "image"
        table["world"]["obstacle_map"] = {"name": name, "path": "m.png"}

    fuller = copy.deepcopy(table)
    target = place_of(fuller, kind)
    if (kind, key) == ("shape", "pose"):
        target = target["parts"][0]
    if (kind, key) == ("obstacle_map", "path"):
        Image.fromarray(255 - draw).save(tmp_path / "n.png")
        target[key] = "n.png"
    elif (kind, key) == ("behavior", "name"):
        target[key] = "sfm"
    else:
        target[key] = WITH.get((kind, key), 2)
    if key in ("wander", "loop"):
        target[key] = True
    if (kind, key) in (("world", "fog_map"), ("sensor", "has_velocity")):
        target[key] = True
    if (kind, key) == ("distribution", "3d"):
        target[key] = True

    def made(one: dict[str, Any], told: list[str]) -> World:
        path = tmp_path / "w.yaml"
        path.write_text(yaml.safe_dump(one))
        return read(
            Source("w.yaml", path.read_bytes(), path),
            Options(warn=told.append),
        )

    check_key(
        KEYS, kind, key, lambda told: made(fuller, told), lambda told: made(table, told)
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "irsim")
    page = dict(KEYS.kinds["shape"])["name"].text
    assert all(name in page for name in NAMES)
    assert all(name in KEYS.kinds["kinematics"]["name"].text for name in DRIVES)


def test_unknown_keys_are_named_with_a_proposal() -> None:
    told: list[str] = []
    world("robot: [{kinematics: {name: diff}, stat: [1, 1]}]", told)
    assert told == [
        'my.yaml:1: "stat" of robot is left out: the key is not known; did you mean '
        '"state"?'
    ]
