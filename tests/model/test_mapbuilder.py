"""Maps drawn in Python, and generated maps of a given size."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine.bodyspec import BodySpec
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.model import mapbuilder
from botyard.model.mapbuilder import MapBuilder
from botyard.model.mapgenerators import GENERATORS, hall, maze, office, warehouse
from botyard.model.obstacles import disc
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation


def reached(
    scene: Scene, start: Pose, radius: float = 0.2, step: float = 0.25
) -> set[tuple[int, int]]:
    """Return the cells of a grid that a disc can reach."""
    free = Simulation(scene).core.engine.trial(
        BodySpec(name=" probe ", parts=(disc(radius, 12),))
    )
    seen = {(0, 0)}
    todo = deque(seen)
    while todo:
        i, j = todo.popleft()
        for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if cell not in seen and free(
                Pose(start.x + cell[0] * step, start.y + cell[1] * step, 0.0)
            ):
                seen.add(cell)
                todo.append(cell)

    return seen


def gets_to(scene: Scene, names: set[str]) -> None:
    assert scene.start is not None
    cells = np.array(sorted(reached(scene, scene.start))) * 0.25 + [
        scene.start.x,
        scene.start.y,
    ]
    for place in scene.places:
        if place.name in names:
            assert np.hypot(*(cells - [place.pose.x, place.pose.y]).T).min() < 0.5, (
                place.name
            )


def test_a_wall_with_doors() -> None:
    scene = (
        MapBuilder(thickness=0.2)
        .wall((0, 0), (10, 0), doors=[(6, 1), (2, 1.5)])
        .scene()
    )
    assert len(scene.segments) == 12
    assert scene.bounds == pytest.approx((0, -0.1, 10, 0.1))
    sim = Simulation(scene)
    for x, is_open in ((1, False), (2.75, True), (4, False), (6.5, True), (8, False)):
        body = BodySpec(name="b", parts=(disc(0.3),))
        assert sim.core.engine.is_free(body, Pose(x, 0, 0)) == is_open, x


@pytest.mark.parametrize("door", [(9.5, 1), (-1, 1), (3, 0)])
def test_doors_that_do_not_fit(door: tuple[float, float]) -> None:
    with pytest.raises(WorldError, match=r"no door of .* m into a wall of 10 m"):
        MapBuilder().wall((0, 0), (10, 0), doors=[door])


def test_a_room_and_its_doors() -> None:
    b = (
        MapBuilder(thickness=0.1)
        .room(1, 2, 6, 4, doors={"east": [(1, 1)], "north": [(2, 1)]})
        .home(3, 4)
    )
    cells = np.array(sorted(reached_within(b.scene()))) * 0.25 + [3, 4]
    assert (cells[:, 0] > 7.5).any() and (cells[:, 1] > 6.5).any()
    closed = np.array(
        sorted(reached(MapBuilder().room(1, 2, 6, 4).scene(), Pose(3, 4, 0)))
    ) * 0.25 + [3, 4]
    assert closed[:, 0].min() > 1.0 and closed[:, 0].max() < 7.0
    with pytest.raises(WorldError, match='found "up"'):
        MapBuilder().room(0, 0, 3, 3, doors={"up": []})


def reached_within(scene: Scene) -> set[tuple[int, int]]:
    """Return the reachable cells of a grid with a fence around it."""
    fence = MapBuilder().rectangle(-2, -2, 14, 14).scene()
    both = Scene(segments=np.concatenate([scene.segments, fence.segments]))
    assert scene.start is not None
    return reached(both, scene.start)


def test_a_corridor_keeps_its_width_around_corners() -> None:
    scene = MapBuilder().corridor([(0, 0), (10, 0), (10, 8)], width=2.0).scene()
    assert scene.segments.tolist() == [
        [0, -1, 11, -1],
        [11, -1, 11, 8],
        [0, 1, 9, 1],
        [9, 1, 9, 8],
    ] or sorted(map(tuple, scene.segments.tolist())) == sorted(
        [(0, -1, 11, -1), (11, -1, 11, 8), (0, 1, 9, 1), (9, 1, 9, 8)]
    )
    with pytest.raises(WorldError, match="found two equal ones"):
        MapBuilder().corridor([(0, 0), (0, 0)], 1.0)


@given(st.integers(0, 1000), st.integers(1, 15))
def test_obstacles_leave_room_and_are_repeatable(seed: int, count: int) -> None:
    def make() -> MapBuilder:
        return (
            MapBuilder()
            .rectangle(0, 0, 20, 20)
            .home(1, 1)
            .obstacles(count, seed=seed, clearance=0.8)
        )

    b = make()
    discs = b._discs
    assert len(discs) == count
    for i, (x, y, r) in enumerate(discs):
        assert min(x, y, 20 - x, 20 - y) >= r + 0.8 - 1e-9
        assert math.hypot(x - 1, y - 1) >= r + 0.8
        for x2, y2, r2 in discs[:i]:
            assert math.hypot(x - x2, y - y2) >= r + r2 + 0.8 - 1e-9

    assert (make().scene().segments == b.scene().segments).all()


def test_too_many_obstacles() -> None:
    with pytest.raises(WorldError, match="no room for 100 obstacles"):
        MapBuilder().rectangle(0, 0, 5, 5).obstacles(100)
    with pytest.raises(WorldError, match="the map is empty"):
        MapBuilder().obstacles(1)


@given(
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.3]),
)
def test_every_cell_of_a_maze_can_be_reached(
    columns: int, rows: int, seed: int, loops: float
) -> None:
    scene = maze(columns, rows, cell=1.5, loops=loops, seed=seed)
    walls = scene.segments / 1.5
    upright = np.zeros((rows, columns + 1), bool)
    level = np.zeros((rows + 1, columns), bool)
    for x1, y1, x2, y2 in np.rint(walls).astype(int).tolist():
        if x1 == x2:
            upright[min(y1, y2) : max(y1, y2), x1] = True
        else:
            level[y1, min(x1, x2) : max(x1, x2)] = True

    assert upright[:, [0, -1]].all() and level[[0, -1], :].all(), "the border is closed"
    seen, todo = {(0, 0)}, [(0, 0)]
    while todo:
        r, c = todo.pop()
        for cell, wall in (
            ((r, c + 1), upright[r, c + 1]),
            ((r, c - 1), upright[r, c]),
            ((r + 1, c), level[r + 1, c]),
            ((r - 1, c), level[r, c]),
        ):
            if not wall and cell not in seen:
                seen.add(cell)
                todo.append(cell)

    assert len(seen) == columns * rows
    if loops == 0.0:
        passages = (~upright[:, 1:-1]).sum() + (~level[1:-1]).sum()
        assert passages == columns * rows - 1, "one way between any two cells"


def test_robots_get_everywhere_in_generated_maps() -> None:
    gets_to(maze(5, 4, seed=3), {"Exit"})
    gets_to(warehouse(4, racks=2), {"Aisle 1", "Aisle 4"})
    gets_to(office(3, seed=5, furniture=1), {"South 1", "North 3"})
    gets_to(hall(10, 10, obstacles=6), set())


def test_a_large_warehouse() -> None:
    scene = warehouse(40, racks=3, pallets=20, docks=12)
    assert len(scene.boxes) == 20
    assert sum(p.kind == "Dock" for p in scene.places) == 12
    assert sum(p.name.startswith("Aisle") for p in scene.places) == 40
    assert scene.bounds is not None
    assert scene.bounds[2] > 180


@pytest.mark.parametrize("name", list(GENERATORS))
def test_the_same_arguments_give_the_same_map(name: str) -> None:
    a, b = GENERATORS[name](), GENERATORS[name]()
    assert (a.segments == b.segments).all()
    assert a.boxes == b.boxes and a.places == b.places
    if name != "warehouse":
        assert (
            len(GENERATORS[name](seed=2).segments) != len(a.segments)
            or (GENERATORS[name](seed=2).segments != a.segments).any()
        )


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: maze(0, 3), "columns: expected at least 1"),
        (lambda: warehouse(0), "aisles: expected at least 1"),
        (lambda: warehouse(aisle=-1), "sizes must be positive"),
        (lambda: office(door=6.0), "a door must be narrower"),
        (lambda: hall(1, 1), "at least 3 m"),
        (lambda: MapBuilder().polygon((0, 0), (1, 1)), "at least 3 corners"),
        (lambda: MapBuilder().line((0, 0)), "at least 2 points"),
    ],
)
def test_wrong_sizes(make, complaint: str) -> None:
    with pytest.raises(WorldError, match=complaint):
        make()


def test_the_old_place_of_the_generators_works_and_names_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"botyard\.model\.mapgenerators"):
        assert mapbuilder.maze is maze
    with pytest.raises(AttributeError, match="no attribute 'castle'"):
        _ = mapbuilder.castle
