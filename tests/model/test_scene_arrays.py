"""Scenes from arrays of cells, and back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import botyard
from botyard.errors import ArgumentError, ModelError, WorldError
from botyard.model import mapgenerators
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls

cells = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=12))


@settings(max_examples=100)
@given(
    cells,
    st.sampled_from([0.05, 0.1, 0.5]),
    st.floats(-50, 50),
    st.floats(-50, 50),
    st.sampled_from([1, 2, 3]),
)
@example(np.zeros((3, 4), np.bool_), 0.1, 1.0, 2.0, 1)
@example(np.ones((3, 4), np.bool_), 0.1, 1.0, 2.0, 1)
def test_an_array_comes_back(
    solid: NDArray[np.bool_], resolution: float, x: float, y: float, parts: int
) -> None:
    """The same array at the same place, free margins included.

    With a finer resolution each cell becomes several.
    """
    scene = Scene.from_array(solid, resolution, (x, y))
    back = scene.to_array(resolution)
    assert (back.x, back.y, back.resolution) == (x, y, resolution)
    assert np.array_equal(back.solid, solid)
    finer = scene.to_array(resolution / parts)
    assert (finer.x, finer.y) == (x, y)
    assert np.array_equal(
        finer.solid, solid.repeat(parts, axis=0).repeat(parts, axis=1)
    )


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_an_array_comes_back_turned_by_quarters(quarter: int) -> None:
    solid = np.random.default_rng(quarter).random((5, 7)) < 0.4
    back = Scene.from_array(solid, 0.1, (3.0, -2.0, quarter * math.pi / 2)).to_array(
        0.1
    )
    # Rows of a map go up and rows of an array go down, so a left turn is a right turn here.
    turned = np.rot90(
        solid,
        -quarter,
    )
    assert np.array_equal(back.solid, turned)
    corner = {1: (3.0 - 0.5, -2.0), 2: (3.0 - 0.7, -2.0 - 0.5), 3: (3.0, -2.0 - 0.7)}[
        quarter
    ]
    assert (back.x, back.y) == pytest.approx(corner)


def test_a_slanting_array_is_filled() -> None:
    """A cell is occupied if its centre is in a solid cell or an outline crosses it."""
    th, block = 0.5, np.zeros((20, 30), np.bool_)
    block[4:15, 5:25] = True
    back = Scene.from_array(block, 0.1, (1.0, 2.0, th)).to_array(0.08)
    for row, column in np.ndindex(back.solid.shape):
        x, y = back.x + (column + 0.5) * 0.08 - 1.0, back.y + (row + 0.5) * 0.08 - 2.0
        u, v = (
            (math.cos(th) * x + math.sin(th) * y) / 0.1,
            (math.cos(th) * y - math.sin(th) * x) / 0.1,
        )
        deep = min(u - 5, 25 - u, v - 4, 15 - v) * 0.1
        assert back.solid[row, column] or deep <= 0, "inside"
        assert not back.solid[row, column] or deep >= -0.08, "outside"


def test_halls_and_blocks_of_lines_are_not_filled() -> None:
    """The inside of closed walls is unknown unless they were traced from cells."""

    def occupied(scene: Scene) -> NDArray[np.bool_]:
        assert np.array_equal(
            scene.to_array(0.05).solid, scene.to_array(0.05, filled=False).solid
        )
        return scene.to_array(0.05).solid

    hall = botyard.MapBuilder().rectangle(0, 0, 20, 10)
    assert occupied(hall.scene()).sum() == 2 * (401 + 199)
    pillar = occupied(hall.rectangle(5, 5, 1, 1).scene())
    assert (
        pillar.sum() == 2 * (401 + 199) + 2 * (21 + 19)
        and not pillar[110, 110]
        and not pillar[50, 50]
    )
    room = occupied(botyard.MapBuilder(thickness=0.1).room(0, 0, 4, 3).scene())
    assert room[1, :3].all() and room[:3, 1].all() and room[5, 5:70].sum() == 0, (
        "also where walls overlap in the corners"
    )
    scene = mapgenerators.warehouse()
    raster = scene.to_array(0.05)
    assert scene.start is not None and raster.solid.mean() < 0.1
    assert not raster.solid[
        round((scene.start.y - raster.y) / 0.05),
        round((scene.start.x - raster.x) / 0.05),
    ]


def test_walls_that_are_added_to_an_array_stay_walls() -> None:
    """They are drawn into the array's cells, and the traced part is filled as before,
    also with lines in front of it.
    """
    solid = np.zeros((40, 60), np.bool_)
    solid[10:20, 5:15] = True
    sim = botyard.Simulation(Scene.from_array(solid, 0.1, (0.03, 0.01)))
    sim.add_wall((2.0, 1.5), (5.0, 1.5), (5.0, 3.5), (2.0, 3.5), (2.0, 1.5))
    back = sim.scene.to_array(0.1)
    assert (back.x, back.y, back.solid.shape) == (0.03, 0.01, solid.shape)
    expected = solid.copy()
    for rows, columns in (
        ((14,), range(19, 50)),
        ((34,), range(19, 50)),
        (range(14, 35), (19,)),
        (range(14, 35), (49,)),
    ):
        expected[np.ix_(rows, columns)] = True

    assert np.array_equal(back.solid, expected)


def test_an_array_beside_others_of_another_lattice() -> None:
    """The first array keeps its cells.

    Of the other one, cells are occupied if their centre is solid or its outline crosses
    them.
    """
    one, other = (
        Scene.from_array(np.ones((4, 4), np.bool_), 0.1),
        Scene.from_array(np.ones((8, 8), np.bool_), 0.1, (1.04, 0)),
    )
    count = len(one.segments)
    both = replace(
        one,
        segments=np.concatenate([one.segments, other.segments]),
        traced=(
            *one.traced,
            *(
                replace(c, first=c.first + count, last=c.last + count)
                for c in other.traced
            ),
        ),
    )
    solid = both.to_array(0.1).solid
    assert solid.shape == (8, 19)
    assert np.array_equal(
        solid[:, :4],
        np.repeat([[True], [False]], 4, axis=0) & np.ones((8, 4), np.bool_),
    )
    assert not solid[:, 4:10].any() and solid[:, 10:].all()


def test_walls_that_are_no_longer_the_outlines_are_walls() -> None:
    """A scene whose walls were moved, rotated or partly removed since."""
    solid = np.zeros((6, 6), np.bool_)
    solid[1:5, 1:5] = True
    scene = Scene.from_array(solid, 0.1)
    for segments in (
        scene.segments[1:],
        scene.segments[:0],
        scene.segments + 0.03,
        scene.segments * 100,
        [[0, 0, 1, 1]] * 4,
        [[0, 0, 0, 0]] * 4,
    ):
        other = replace(scene, segments=np.array(segments, np.float64))
        if len(other.segments):
            assert np.array_equal(
                other.to_array(0.05).solid, other.to_array(0.05, filled=False).solid
            )
        else:
            with pytest.raises(WorldError, match="found an empty map"):
                other.to_array(0.05)

    moved = replace(
        scene,
        segments=scene.segments + 0.1,
        # The outlines are moved by a whole cell, so they are still outlines of cells.
    )
    assert np.array_equal(moved.to_array(0.1).solid, np.roll(solid, 1, axis=(0, 1)))


def test_what_no_robot_meets_and_no_laser_sees_is_not_filled() -> None:
    scene = Scene.from_array(np.ones((6, 6), np.bool_), 0.1)
    for returns, count in (
        (Returns(obstacle=False, laser=0), 0),
        (Returns(obstacle=False), 36),
    ):
        walls = SpecialWalls(first=0, last=len(scene.segments), returns=returns)
        assert replace(scene, special_walls=(walls,)).to_array(0.1).solid.sum() == count


@pytest.mark.parametrize(
    "changes",
    [
        {"first": -1},
        {"last": 0, "first": 1},
        {"rows": -1},
        {"columns": 2**70},
        {"width": 0.0},
        {"height": math.nan},
        {"width": 1e300},
        {"origin": botyard.Pose(math.nan, 0, 0)},
        {"origin": botyard.Pose(0, 1e300, 0)},
    ],
)
def test_what_is_no_raster(changes: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="traced cells: expected"):
        replace(Scene.from_array(np.ones((2, 2), np.bool_), 0.1).traced[0], **changes)


def test_a_robot_sees_the_array() -> None:
    """The lowest row is at the origin; rotated, the array lies on its side."""
    solid = np.zeros((4, 30), np.bool_)
    solid[0, 20] = True
    for origin, pose, expected in (
        ((1.0, 2.0), (1.05, 2.05, 0.0), 1.95),
        ((1.0, 2.0, math.pi / 2), (0.95, 2.05, math.pi / 2), 1.95),
    ):
        sim = botyard.Simulation(
            Scene.from_array(solid, 0.1, origin), seed=1, sensor_noise=False
        )
        robot = sim.add_robot("p3dx", lasers=["lms200"], pose=pose)
        scan = robot.laser.read()
        assert scan.ranges[90] + robot.spec.lasers[0].pose.x == pytest.approx(expected)


def test_what_is_no_array_of_cells() -> None:
    for solid in (
        np.zeros(3, np.bool_),
        np.zeros((2, 2)),
        [[1, 0]],
        np.zeros((1, 1, 1), np.bool_),
    ):
        with pytest.raises(
            ArgumentError, match="expected a two-dimensional array of bool"
        ):
            Scene.from_array(solid, 0.1)

    for resolution in (0.0, -1.0, math.nan, "x"):
        with pytest.raises(ArgumentError, match="resolution"):
            Scene.from_array(np.ones((2, 2), np.bool_), resolution)  # type: ignore[arg-type]

    with pytest.raises(ArgumentError):
        Scene.from_array(np.ones((2, 2), np.bool_), 0.1, (math.inf, 0.0))
    with pytest.raises(WorldError, match="found an empty map"):
        Scene().to_array(0.1)
