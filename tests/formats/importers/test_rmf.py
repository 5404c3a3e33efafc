"""Buildings of Open-RMF: scale, walls, places, robots, levels, and every key."""

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
from botyard.formats.importers.rmf import RADIUS, read
from botyard.formats.importers.rmfkeys import KEYS
from botyard.formats.registry import format_of
from botyard.geometry import Pose
from botyard.model.world import World
from tests.formats.importers.checks import all_keys, check_key, check_page, loaded, run

BASE: dict[str, Any] = {
    "name": "house",
    "levels": {
        "L1": {
            "vertices": [
                [0, 0, 0, ""],
                [100, 0, 0, ""],
                [100, 50, 0, "desk"],
                [0, 50, 0, "dock", {"is_charger": [4, True]}],
            ],
            "walls": [[0, 1, {}], [1, 2]],
            "measurements": [[0, 1, {"distance": [3, 5]}]],
            "lanes": [[3, 2, {"graph_idx": [2, 1]}]],
            "doors": [[3, 0, {"name": [1, "main"]}]],
            "floors": [{"vertices": [0, 1, 2, 3]}],
        }
    },
    "lifts": {},
}


def world(table: dict[str, Any], told: list[str] | None = None) -> World:
    return loaded(yaml.safe_dump(table), "h.building.yaml", told)


def changed(**level: Any) -> dict[str, Any]:
    table = copy.deepcopy(BASE)
    table["levels"]["L1"].update(level)
    return table


def test_a_level_has_walls_places_and_marks_on_the_floor() -> None:
    told: list[str] = []
    made = world(BASE, told)
    assert told == []
    assert made.scene.name == "house L1"
    # A pixel is 5 cm, and y points up.
    assert made.scene.segments.tolist() == [[0, 0, 5, 0], [5, 0, 5, -2.5]]
    assert [(p.kind, p.name, p.pose) for p in made.scene.places] == [
        ("Goal", "desk", Pose(5.0, -2.5)),
        ("Dock", "dock", Pose(0.0, -2.5)),
    ]
    assert [(a.kind, a.name, len(a.corners)) for a in made.scene.areas] == [
        ("Floor", "", 4),
        ("Lane", "1", 2),
        ("Door", "main", 2),
    ]
    run(made)


@given(
    places=st.lists(
        st.tuples(st.floats(-1000, 1000), st.floats(-1000, 1000)),
        min_size=4,
        max_size=8,
        unique=True,
    ),
    scales=st.tuples(st.floats(0.001, 1), st.floats(0.001, 1)),
)
def test_the_scale_is_the_mean_of_all_measurements(
    places: list[tuple[float, float]], scales: tuple[float, float]
) -> None:
    measured = []
    for k, scale in enumerate(scales):
        length = math.dist(places[2 * k], places[2 * k + 1])
        if length < 1e-3:
            return
        measured.append([2 * k, 2 * k + 1, {"distance": [3, scale * length]}])
    made = world(
        changed(
            vertices=[[x, y, 0, ""] for x, y in places],
            measurements=measured,
            lanes=[],
            doors=[],
            floors=[],
        )
    )
    pixel = sum(scales) / 2.0
    expected = np.array(places[:3]) * (pixel, -pixel)
    assert np.allclose(made.scene.segments[:, :2], expected[:2], atol=1e-9)
    assert np.allclose(made.scene.segments[:, 2:], expected[1:], atol=1e-9)


def test_without_measurements_a_warning_names_the_scale() -> None:
    told: list[str] = []
    made = world(changed(measurements=[]), told)
    assert made.scene.segments[0].tolist() == [0, 0, 100, 0]
    assert "assuming 1 m a pixel" in told[0]
    source = Source("a.yaml", yaml.safe_dump(changed(measurements=[])).encode())
    small = read(source, Options(resolution=0.1))
    assert small.scene.segments[0].tolist() == [0, 0, 10, 0]


def test_metres_are_neither_flipped_nor_scaled() -> None:
    made = world(BASE | {"coordinate_system": "cartesian_meters"})
    assert made.scene.segments[1].tolist() == [100, 0, 100, 50]


def test_robots_stand_at_their_vertices_and_look_along_the_first_lane() -> None:
    table = copy.deepcopy(BASE)
    table["levels"]["L1"]["vertices"][3][4] |= {
        "spawn_robot_type": [1, "TinyRobot"],
        "spawn_robot_name": [1, "tiny"],
    }
    table["levels"]["L1"]["lanes"] = [[3, 0, {}], [3, 2, {}]]
    told: list[str] = []
    made = world(table, told)
    (robot,) = made.robots
    assert robot.name == "tiny"
    assert robot.pose == pytest.approx(Pose(0.0, -2.5, math.pi / 2))
    assert robot.spec.radius == pytest.approx(RADIUS, rel=0.02)
    assert "has only the name of its model" in told[0]
    run(made)


def test_one_level_is_read_and_the_others_are_named() -> None:
    table = copy.deepcopy(BASE)
    table["levels"]["L2"] = changed(walls=[[0, 2]])["levels"]["L1"]
    told: list[str] = []
    assert len(world(table, told).scene.segments) == 2
    assert told == ['h.building.yaml:1: the level "L1" is read; left out: L2']
    table["reference_level_name"] = "L2"
    assert len(world(table).scene.segments) == 1


def test_holes_have_walls() -> None:
    made = world(changed(holes=[{"vertices": [0, 1, 2]}], walls=[]))
    assert len(made.scene.segments) == 3


@pytest.mark.parametrize(
    ("level", "complaint"),
    [
        ({"walls": [[0, 9]]}, "walls[0][1]: expected a whole number from 0 to 3"),
        ({"walls": [[0]]}, "two indices of vertices"),
        ({"walls": 7}, "expected a list"),
        ({"vertices": [[0]]}, "a vertex: x, y, z, name and parameters"),
        ({"vertices": []}, "expected vertices, found none"),
        ({"measurements": [[0, 0, {"distance": [3, 1]}]]}, "two places"),
        ({"measurements": [[0, 1, {"distance": [3, -1]}]]}, "greater than 0"),
        ({"measurements": [[0, 1, {"distance": 4}]]}, "a type and a value"),
        ({"floors": [{"vertices": [0, 1]}]}, "3 vertices or more"),
    ],
)
def test_files_that_are_refused(level: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        world(changed(**level))
    assert complaint in str(error.value)
    assert "h.building.yaml:" in str(error.value)


def test_other_coordinates_are_refused() -> None:
    with pytest.raises(FormatError, match='"reference_image" or "cartesian_meters"'):
        world(BASE | {"coordinate_system": "wgs84"})
    with pytest.raises(FormatError, match="a level"):
        world(BASE | {"levels": {}})


def test_buildings_are_recognised_by_their_levels() -> None:
    text = b"name: a\nlevels: {}\nlayers: {}\n"
    assert format_of(Source("a.yaml", text)).name == "rmf"
    assert format_of(Source("a.yaml", b"levels: 1\n")).name == "scenario"


# -- every key

WITH: dict[tuple[str, str], Any] = {
    ("building", "name"): "other",
    ("building", "building_name"): "other",
    ("building", "levels"): {"L9": {"vertices": [[0, 0, 0, "x"]], "measurements": []}},
    ("building", "reference_level_name"): "L1",
    ("building", "coordinate_system"): "cartesian_meters",
    ("level", "vertices"): [[0, 0], [50, 0], [50, 50], [9, 9]],
    ("level", "walls"): [[0, 2]],
    ("level", "lanes"): [],
    ("level", "doors"): [],
    ("level", "floors"): [],
    ("level", "holes"): [{"vertices": [0, 1, 2]}],
    ("level", "measurements"): [[0, 1, {"distance": [3, 9]}]],
    ("level", "models"): [{"name": "chair"}],
    ("vertex", "is_charger"): [4, False],
    ("vertex", "spawn_robot_type"): [1, "Tiny"],
    ("vertex", "spawn_robot_name"): [1, "ann"],
    ("floor", "vertices"): [0, 1, 2],
    ("measurement", "distance"): [3, 7],
    ("door", "name"): [1, "back"],
    ("lane", "graph_idx"): [2, 7],
}
PARAMETERS = {"vertex": 3, "wall": 0, "lane": 0, "door": 0, "measurement": 0}
LISTS = {
    "vertex": "vertices",
    "wall": "walls",
    "lane": "lanes",
    "door": "doors",
    "measurement": "measurements",
}


def place_of(table: dict[str, Any], kind: str) -> dict[str, Any]:
    level: dict[str, Any] = table["levels"]["L1"]
    if kind == "building":
        return table
    if kind == "level":
        return level
    if kind == "floor":
        floor: dict[str, Any] = level["floors"][0]
        return floor
    parameters: dict[str, Any] = level[LISTS[kind]][PARAMETERS[kind]][-1]
    return parameters


@pytest.mark.parametrize(("kind", "key"), list(all_keys(KEYS)))
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    table = copy.deepcopy(BASE)
    if key == "spawn_robot_name":
        place_of(table, kind)["spawn_robot_type"] = [1, "Tiny"]
    if key == "building_name":
        del table["name"]
    if key == "reference_level_name":
        table["levels"] = {"L0": {"vertices": [[0, 0]]}, **table["levels"]}
    fuller = copy.deepcopy(table)
    other: Any = [3, 2] if kind in PARAMETERS else 2
    place_of(fuller, kind)[key] = WITH.get((kind, key), other)

    def made(one: dict[str, Any], told: list[str]) -> World:
        text = yaml.safe_dump(one, sort_keys=False)
        return read(Source("w.yaml", text.encode()), Options(warn=told.append))

    check_key(
        KEYS, kind, key, lambda told: made(fuller, told), lambda told: made(table, told)
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "rmf")
