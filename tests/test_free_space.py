"""Free places of robots in a map: region, distance to walls, and extent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import botyard
from botyard.errors import ArgumentError
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.sim.freespace import AROUND_M, MAX_CELLS, free_space
from botyard.worlds.worlds import Worlds

RADIUS = 0.3
ROBOT = replace(
    botyard.load_robot("p3dx"),
    name="round",
    outline=tuple(
        (RADIUS * x, RADIUS * y) for x, y in ((1, 0), (0, 1), (-1, 0), (0, -1))
    ),
)
Places = NDArray[np.float64]
Draw = Callable[..., Places]


def of_simulation(
    scene: Scene, *, clearance: float = 0.1, reachable: bool = True
) -> Places:
    """Return the centres of all free cells, (n, 2)."""
    space = free_space(
        scene,
        botyard.Simulation(scene).core.engine.grid,
        RADIUS,
        clearance,
        reachable=reachable,
    )
    rows, columns = np.divmod(space.cells, space.columns)
    return np.column_stack(
        [space.x0 + (columns + 0.5) * space.cell, space.y0 + (rows + 0.5) * space.cell]
    )


def drawn_by_simulation(scene: Scene, **how: object) -> Places:
    return botyard.Simulation(scene, seed=3).random_free_poses(12, model=ROBOT, **how)[
        :, :2
    ]  # type: ignore[arg-type]


def drawn_by_worlds(scene: Scene, **how: object) -> Places:
    return Worlds(scene, [ROBOT], 40, seeds=1).sample_free(**how)[:, 0, :2]  # type: ignore[arg-type]


both = pytest.mark.parametrize("draw", [drawn_by_simulation, drawn_by_worlds])


def cells(*solid: tuple[int, int, int, int], size: int = 100) -> Scene:
    """A walled square of cells of 0.1 m with solid blocks: columns and rows."""
    found = np.zeros((size, size), np.bool_)
    found[[0, -1]] = found[:, [0, -1]] = True
    for x0, y0, x1, y1 in solid:
        found[y0:y1, x0:x1] = True
    return Scene.from_array(found, 0.1)


def within(
    places: Places, x0: float, y0: float, x1: float, y1: float
) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = ((places >= (x0, y0)) & (places <= (x1, y1))).all(axis=1)
    return found


# -- the region


@both
@pytest.mark.parametrize("reachable", [True, False])
@pytest.mark.parametrize("start", [None, botyard.Pose(5.0, 5.0, 0.0)])
def test_nobody_is_put_into_what_is_solid(
    draw: Draw, reachable: bool, start: botyard.Pose | None
) -> None:
    """A solid block at the map's centre, and a home inside it."""
    scene = replace(cells((30, 30, 70, 70)), start=start)
    assert not within(draw(scene, reachable=reachable), 3.0, 3.0, 7.0, 7.0).any()
    points = (
        np.stack(np.meshgrid(np.arange(60), np.arange(60)), -1).reshape(-1, 2) * 0.05
        + 3.0
    )
    hall = botyard.MapBuilder().rectangle(0, 0, 10, 10).scene()
    scene = replace(hall, points=points, resolution=0.05, start=start)
    assert not within(draw(scene, reachable=reachable), 3.0, 3.0, 6.0, 6.0).any()


def test_what_robots_drive_through_is_free() -> None:
    scene = cells((30, 30, 70, 70))
    ghost = replace(
        scene,
        special_walls=(
            SpecialWalls(
                first=0, last=len(scene.segments), returns=Returns(obstacle=False)
            ),
        ),
    )
    assert within(of_simulation(ghost), 4.0, 4.0, 6.0, 6.0).any()


@both
def test_without_a_home_it_is_the_largest_region(draw: Draw) -> None:
    """The map's centre is in a closed room: only a home in it selects that room."""
    walls = botyard.MapBuilder().rectangle(0, 0, 20, 20).rectangle(8, 8, 4, 4)
    assert not within(draw(walls.scene()), 8, 8, 12, 12).any()
    assert within(draw(walls.home(10, 10).scene()), 8, 8, 12, 12).all()


def test_a_home_in_a_wall_or_without_room_counts_as_none() -> None:
    walls = botyard.MapBuilder().rectangle(0, 0, 20, 20).rectangle(8, 8, 1.2, 1.2)
    for home in ((8.0, 8.5), (8.6, 8.6)):
        scene = replace(walls.scene(), start=botyard.Pose(*home, 0.0))
        assert not within(of_simulation(scene, clearance=0.3), 8, 8, 9.2, 9.2).any()


@pytest.mark.parametrize("x", [0.1, 0.15, 0.31, 0.349, 0.35, 0.38])
def test_a_home_near_a_wall_is_on_its_side(x: float) -> None:
    """For example a dock: the centre of its cell may be too near to the wall."""
    walls = botyard.MapBuilder().rectangle(0, 0, 20, 20).line((4, 0), (4, 20)).scene()
    assert (
        of_simulation(replace(walls, start=botyard.Pose(4.0 - x, 7.03, 0.0)))[:, 0]
        < 4.0
    ).all()
    assert (
        of_simulation(replace(walls, start=botyard.Pose(4.0 + x, 7.03, 0.0)))[:, 0]
        > 4.0
    ).all()


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.05, 0.07])
@pytest.mark.parametrize(
    ("door", "is_open"), [(0.58, False), (0.72, True), (0.9, True)]
)
def test_doors_are_as_wide_as_they_are(
    door: float, is_open: bool, shift: float
) -> None:
    """A robot of 0.6 m passes a door if a cell fits next to it, whatever clearance its
    places have.

    It passes none that is too narrow.
    """
    y = 5.0 + shift
    walls = (
        botyard.MapBuilder()
        .rectangle(0, 0, 10, 10)
        .line((4, 0), (4, y))
        .line((4, y + door), (4, 10))
        .home(2, 5)
    )
    for clearance in (0.0, 0.1, 1.0):
        places = of_simulation(walls.scene(), clearance=clearance)
        assert (places[:, 0] > 4).any() == is_open
        for x in (0.0, 4.0, 10.0):
            beside = (
                np.abs(places[:, 1] - y - door / 2) > door / 2
                if x == 4.0
                else np.ones(len(places), np.bool_)
            )
            assert np.abs(places[beside, 0] - x).min() > RADIUS + clearance


def test_all_of_the_office_is_reached() -> None:
    scene = botyard.load_scene("office")
    assert len(of_simulation(scene)) > 0.98 * len(of_simulation(scene, reachable=False))


def test_small_robots_in_large_cells_do_not_get_through_walls() -> None:
    """A map so large that a cell is wider than the robot."""
    scene = (
        botyard.MapBuilder()
        .rectangle(0, 0, 4000, 2000)
        .line((1000.1, 0), (1000.1, 2000))
        .home(5, 5)
        .scene()
    )
    places = of_simulation(scene)
    assert 0 < len(places) < MAX_CELLS and places[:, 0].max() < 1000.1


# -- the bounds


@both
@pytest.mark.parametrize("reachable", [True, False])
def test_places_are_around_the_walls_of_an_open_world(
    draw: Draw, reachable: bool
) -> None:
    wall = Scene(segments=np.array([[0.0, 0.0, 5.0, 0.0]]))
    for clearance in (0.1, 2.5):
        places = draw(wall, clearance=clearance, reachable=reachable)
        away = np.hypot(places[:, 0] - places[:, 0].clip(0, 5), places[:, 1])
        assert away.min() > RADIUS + clearance
        around = AROUND_M + clearance + 0.1
        assert within(places, -around, -around, 5 + around, around).all()
        assert (places[:, 1] > 0).any() and (places[:, 1] < 0).any()


def test_a_closed_hall_has_no_places_around_it() -> None:
    """Nor does it get any when it is full."""
    hall = botyard.MapBuilder().rectangle(0, 0, 6, 6).scene()
    for reachable in (True, False):
        assert within(
            of_simulation(hall, reachable=reachable), 0.4, 0.4, 5.6, 5.6
        ).all()
        assert len(of_simulation(hall, reachable=reachable, clearance=4.0)) == 0

    with pytest.raises(
        ArgumentError, match=r"no place in the map is 4\.3 m from all walls"
    ):
        drawn_by_simulation(hall, clearance=4.0)

    turned = Scene(
        segments=np.array(
            [[0, 5, 5, 0], [5, 0, 10, 5], [10, 5, 5, 10], [5, 10, 0, 5]], float
        )
    )
    places = of_simulation(turned)
    assert (np.abs(places - 5).sum(axis=1) < 5).all(), (
        "what is in the corners of the bounds is smaller"
    )


def test_a_gap_opens_a_hall_for_those_who_get_through() -> None:
    hall = botyard.MapBuilder().line((4, 0), (0, 0), (0, 6), (6, 6), (6, 0), (4.5, 0))
    assert within(of_simulation(hall.scene()), 0, 0, 6, 6).all(), "0.5 m: too narrow"
    hall = botyard.MapBuilder().line((4, 0), (0, 0), (0, 6), (6, 6), (6, 0), (5, 0))
    for reachable in (True, False):
        places = of_simulation(hall.scene(), reachable=reachable)
        assert not within(places, 0, 0, 6, 6).all() and within(places, 0, 0, 6, 6).any()

    small, large = (
        Worlds(
            botyard.MapBuilder()
            .line((4, 0), (0, 0), (0, 6), (6, 6), (6, 0), (5, 0))
            .scene(),
            [ROBOT, "seekur"],
            60,
            seeds=1,
        )
        .sample_free()
        .transpose(1, 0, 2)[..., :2]
    )
    assert not within(small, 0, 0, 6, 6).all() and within(large, 0, 0, 6, 6).all()


def test_a_box_has_places_around_it_and_does_not_open_a_hall() -> None:
    box = BoxObject(
        name="box", pose=botyard.Pose(20.0, 5.0, 0.0), length=0.5, width=0.5
    )
    places = of_simulation(Scene(boxes=(box,)))
    assert np.ptp(places, axis=0).min() > 2 * AROUND_M and places.mean(
        axis=0
    ) == pytest.approx((20.0, 5.0), abs=0.1)
    at_wall = replace(box, pose=botyard.Pose(5.8, 3.0, 0.0), length=3.0)
    hall = replace(botyard.MapBuilder().rectangle(0, 0, 6, 6).scene(), boxes=(at_wall,))
    assert within(of_simulation(hall, reachable=False), 0, 0, 6, 6).all()


def test_places_are_not_beyond_what_was_traced() -> None:
    solid = np.zeros((40, 300), np.bool_)
    places = of_simulation(Scene.from_array(solid, 0.1, (1.0, 2.0)))
    assert places.min(axis=0) == pytest.approx((1.05, 2.05)) and places.max(
        axis=0
    ) == pytest.approx((30.95, 5.95))
    solid[20, 200] = True
    places = of_simulation(Scene.from_array(solid, 0.1, (1.0, 2.0)))
    assert places.min(axis=0) == pytest.approx((21.0 - 5.1 + 0.05, 2.05)) and places[
        :, 1
    ].max() == pytest.approx(5.95)


def test_the_free_space_of_a_long_wall_has_no_more_cells_than_others() -> None:
    scene = Scene(segments=np.array([[0.0, 0.0, 90_000.0, 0.0]]))
    assert 0 < len(of_simulation(scene)) < 1.1 * MAX_CELLS


def test_a_random_place_beside_a_wall() -> None:
    sim = botyard.Simulation(seed=1)
    sim.add_wall((0, 0), (5, 0))
    assert abs(sim.core.places.random(ROBOT).y) > 0.1
