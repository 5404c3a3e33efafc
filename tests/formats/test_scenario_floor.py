"""The key ``floor`` of scenarios: read, written, and wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from botyard.engine.objectdigest import object_digest
from botyard.errors import FormatError, WorldFileError
from botyard.formats.base import Options
from botyard.formats.budget import Budget
from botyard.formats.registry import load_world
from botyard.formats.saving import packed, save

TEXT = """botyard: 1
floor:
  color: gray90
  picture: {file: mat.png, resolution: 0.1, origin: [1, 2, 90]}
  zones:
    - {name: ice, area: [1, 1, 2, 2], slip: 0.5, color: light blue}
    - {polygon: [[3, 3], [4, 3], [4, 4]], hole: true, speed_limit: 0.2, odometry_scale: 1.1}
  pheromones:
    - {name: trail, area: [0, 0, 5, 5], half_life: 10, cell: 0.1, color: red, full: 2}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(1).integers(0, 255, (4, 6, 4)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "mat.png")
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    return path


def test_a_floor_is_read_and_written_and_read_again(file: Path) -> None:
    world = load_world(file)
    floor = world.scene.floor
    assert floor is not None and floor.picture is not None
    assert floor.picture.pixels.shape == (4, 6, 4)
    assert floor.picture.size == pytest.approx((0.6, 0.4))
    assert [zone.name for zone in floor.zones] == ["ice", ""]
    assert floor.zones[1].hole and floor.zones[1].odometry_scale == 1.1
    assert floor.fields[0].shape == (50, 50)

    assert save(world, file.with_name("b.yaml")) == []
    again = load_world(file.with_name("b.yaml"))
    assert object_digest(again.scene.floor) == object_digest(floor)
    # A second time, the program replaces its own picture.
    save(world, file.with_name("b.yaml"))
    assert sorted(p.name for p in file.parent.glob("*.png")) == [
        "b-floor.png",
        "mat.png",
    ]


def test_an_archive_has_the_picture(file: Path) -> None:
    world = load_world(file)
    path = file.with_name("c.zip")
    path.write_bytes(packed(world))
    assert object_digest(load_world(path).scene.floor) == (
        object_digest(world.scene.floor)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("slip: 0.5", "slip: 1.5", r"floor\.zones\[0\].*slip: expected 0 … 0.99"),
        ("slip: 0.5", "slop: 0.5", "slip"),
        ("gray90", "nocolor", 'floor: color: expected .* found "nocolor"'),
        ("light blue", "nocolor", r'zones\[0\]: color: expected .* found "nocolor"'),
        (
            "color: red",
            "color: noc",
            r'pheromones\[0\]: color: expected .* found "noc"',
        ),
        ("area: [1, 1, 2, 2]", "area: [2, 1, 1, 2]", "x0 < x1"),
        ("area: [1, 1, 2, 2], ", "", "expected area or polygon, found neither"),
        ("[[3, 3], [4, 3], [4, 4]]", "[[3, 3], [4, 3]]", "three different corners"),
        ("cell: 0.1", "cell: 0.00001", "cell"),
        ("mat.png", "none.png", r"none\.png"),
        ("mat.png", "a.yaml", "picture cannot be read"),
        ("origin: [1, 2, 90]", "origin: [1]", "origin"),
        ("resolution: 0.1", "resolution: 0", "resolution"),
    ],
)
def test_an_error_names_the_place(file: Path, old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new))
    with pytest.raises((WorldFileError, FormatError), match=message) as found:
        load_world(file)
    assert "a.yaml" in str(found.value)


def test_a_picture_counts_against_the_budget(file: Path) -> None:
    with pytest.raises(FormatError, match="cells"):
        load_world(file, Options(budget=Budget(cells=20)))


def test_robots_fill_an_area(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("botyard: 1\nrobots:\n  - {count: 6, area: [0, 0, 3, 2]}\n")
    poses = [robot.pose for robot in load_world(path).robots]
    assert [tuple(p[:2]) for p in poses if p] == [
        (x, y) for y in (0.5, 1.5) for x in (0.5, 1.5, 2.5)
    ]
    path.write_text("botyard: 1\nrobots:\n  - {count: 6, area: [3, 0, 0, 2]}\n")
    with pytest.raises(WorldFileError, match=r"robots\[0\]\.area"):
        load_world(path)
    path.write_text("botyard: 1\nrobots:\n  - {area: [0, 0, 1, 1], pose: [0, 0, 0]}\n")
    with pytest.raises(
        WorldFileError, match="expected either area or pose, found both"
    ):
        load_world(path)
