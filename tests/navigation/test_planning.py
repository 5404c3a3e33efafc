"""Paths on rasters against Dijkstra's algorithm and the definition of a free line."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.errors import ArgumentError
from botyard.model.raster import Raster
from botyard.navigation import planning
from botyard.navigation.paths import simplified
from botyard.navigation.planning import (
    BLOCKED,
    Costmap,
    NoPathError,
    Obstruction,
)
from tests.navigation import twins

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)
CELL = 0.5


def some_costs(rng: np.random.Generator, *, with_costs: bool = False) -> np.ndarray:
    rows, columns = rng.integers(2, 13, 2)
    costs = np.zeros((rows, columns), np.uint8)
    if with_costs:
        costs[:] = rng.integers(0, BLOCKED, costs.shape)
    costs[rng.random(costs.shape) < rng.uniform(0.0, 0.45)] = BLOCKED
    return costs


def two_free(
    rng: np.random.Generator, costs: np.ndarray
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    free = np.argwhere(costs != BLOCKED)
    if not len(free):
        return None
    a, b = free[rng.integers(len(free), size=2)].tolist()
    return tuple(a), tuple(b)


def centre(cell: tuple[int, int]) -> tuple[float, float]:
    return -1.0 + (cell[1] + 0.5) * CELL, 2.0 + (cell[0] + 0.5) * CELL


def is_free(costs: np.ndarray, path: np.ndarray) -> bool:
    cells = (path - (-1.0, 2.0)) / CELL
    return all(
        costs[cell] != BLOCKED
        for a, b in itertools.pairwise(cells)
        for cell in twins.touched(a, b)
    )


@few
@given(seeds)
def test_a_star_is_as_short_as_dijkstra_and_theta_star_is_never_longer(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    costs = some_costs(rng)
    cells = two_free(rng, costs)
    if cells is None:
        return
    wanted = twins.dijkstra(costs, *cells) * CELL
    ends = centre(cells[0]), centre(cells[1])
    planner = Costmap(costs, -1.0, 2.0, CELL)
    if math.isinf(wanted):
        for method in planning.METHODS:
            with pytest.raises(NoPathError) as found:
                planner.path(*ends, method)
            assert found.value.reason is Obstruction.NO_PASSAGE
            nearest = found.value.nearest
            assert nearest is not None
            assert planner.path(ends[0], nearest, method)[-1].tolist() == [*nearest]
        return

    paths = {method: planner.path(*ends, method) for method in planning.METHODS}
    for path in paths.values():
        assert path[0].tolist() == [*ends[0]] and path[-1].tolist() == [*ends[1]]
        assert is_free(costs, path)
    assert planning.length(paths["a_star"]) == pytest.approx(wanted, rel=1e-6)
    shortest = math.dist(*ends)
    theta, pulled, cells_ = (
        planning.length(paths[name]) for name in ("theta_star", "a_star_ps", "a_star")
    )
    assert shortest <= theta + 1e-9 <= pulled + 2e-9 <= cells_ + 3e-9


@few
@given(seeds)
def test_costs_of_cells_are_summed_along_the_shortest_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = some_costs(rng, with_costs=True)
    cells = two_free(rng, costs)
    if cells is None or math.isinf(wanted := twins.dijkstra(costs, *cells)):
        return
    planner = Costmap(costs, 0.0, 0.0, 1.0)
    start, goal = ((i + 0.5, j + 0.5) for j, i in cells)
    path = planner.path(start, goal, "a_star")
    total, at = 0.0, path[0]
    # The corners are at the ends of straight runs of cells.
    for corner in path[1:]:
        while (at != corner).any():
            move = np.sign(corner - at)
            at = at + move
            total += math.hypot(*move) * (1 + costs[int(at[1]), int(at[0])] / 16)
    assert total == pytest.approx(wanted, rel=1e-6)


@few
@given(seeds)
def test_paths_between_any_points_are_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = some_costs(rng)
    cells = two_free(rng, costs)
    if cells is None or math.isinf(twins.dijkstra(costs, *cells)):
        return
    # Points anywhere in their cells, not only in the middle.
    start, goal = (
        np.array(centre(cell)) + rng.uniform(-0.49, 0.49, 2) * CELL for cell in cells
    )
    planner = Costmap(costs, -1.0, 2.0, CELL)
    lengths = []
    for method in planning.METHODS:
        path = planner.path(start, goal, method)
        assert (path[0] == start).all() and (path[-1] == goal).all()
        assert is_free(costs, path)
        lengths.append(planning.length(path))
    # The methods are in the order of their paths, the longest first.
    assert lengths[2] <= lengths[1] + 1e-9 <= lengths[0] + 2e-9
    # The same question has the same answer, to the last bit.
    again = planner.path(start, goal)
    assert again.tobytes() == planner.path(start, goal).tobytes()


@few
@given(seeds)
def test_a_line_is_clear_if_it_touches_no_blocked_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = some_costs(rng)
    rows, columns = costs.shape
    a, b = rng.uniform(0.0, (columns, rows), (2, 2))
    planner = Costmap(costs, 0.0, 0.0, 1.0)
    assert planner.is_clear(a, b) == all(
        costs[cell] != BLOCKED for cell in twins.touched(a, b, 40_000)
    )
    assert planner.is_clear(a, b) == planner.is_clear(b, a)
    assert not planner.is_clear(a, (columns + 0.1, rows / 2)), "it leaves the raster"
    assert not planner.is_clear(a, (math.nan, 1.0))


def test_a_line_through_a_corner_touches_all_its_cells() -> None:
    costs = np.zeros((2, 2), np.uint8)
    costs[0, 1] = BLOCKED
    planner = Costmap(costs, 0.0, 0.0, 1.0)
    assert not planner.is_clear((0.5, 0.5), (1.5, 1.5))
    assert planner.path((0.5, 0.5), (1.5, 1.5)).tolist() == [
        [0.5, 0.5],
        [0.5, 1.5],
        [1.5, 1.5],
    ]


@few
@given(seeds, st.floats(0.0, 8.0))
def test_distances_are_exact(seed: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    solid = rng.random(rng.integers(1, 12, 2)) < rng.uniform(0.0, 0.4)
    found = planning.distances(solid, reach)
    cells = np.argwhere(solid)
    for at in np.ndindex(solid.shape):
        away = min((math.dist(at, cell) for cell in cells), default=math.inf)
        assert found[at] == (away if away <= reach else math.inf)


def test_a_raster_is_inflated_by_the_radius() -> None:
    solid = np.zeros((9, 9), np.bool_)
    solid[4, 4] = True
    raster = Raster(solid, 0.0, 0.0, 0.1)
    blocked = Costmap.of(raster, 0.25).costs == BLOCKED
    j, i = np.indices(solid.shape) - 4
    assert (blocked == (np.hypot(i, j) < 2.5)).all()
    costs = Costmap.of(raster, 0.25, 0.2).costs
    assert ((costs == BLOCKED) == blocked).all()
    # 0.3 m is a quarter into the clearance: 64 · ¾.
    assert costs[4, 7] == 48 and costs[4, 8] == 16 and costs[0, 0] == 0
    point = Costmap.of(raster, 0.0).costs
    assert ((point == BLOCKED) == solid).all()


def test_a_clearance_keeps_a_path_away_from_walls() -> None:
    solid = np.zeros((40, 40), np.bool_)
    solid[:25, 20] = True
    raster = Raster(solid, 0.0, 0.0, 0.1)
    ends = (0.55, 0.55), (3.55, 0.55)

    def nearest(clearance: float) -> float:
        path = planning.find_path(
            raster, *ends, radius=0.2, method="a_star", clearance=clearance
        )
        assert path.tolist()[0] == [*ends[0]]
        return min(math.dist(p, (2.05, 2.45)) for p in path.tolist())

    assert 0.2 <= nearest(0.0) < 0.4 < 0.55 <= nearest(0.5)
    with pytest.raises(ArgumentError, match='expected the method "a_star"'):
        planning.find_path(raster, *ends, radius=0.2, clearance=0.5)


def test_errors_name_the_reason_and_the_nearest_free_place() -> None:
    solid = np.zeros((10, 20), np.bool_)
    solid[:, 10] = True
    solid[3:6, 3:6] = True
    raster = Raster(solid, 0.0, 0.0, 1.0)

    def refused(*ends: tuple[float, float]) -> NoPathError:
        with pytest.raises(NoPathError) as found:
            planning.find_path(raster, *ends, radius=0.5)
        return found.value

    error = refused((4.9, 4.5), (1.5, 1.5))
    assert error.reason is Obstruction.START_BLOCKED and error.nearest == (6.5, 4.5)
    assert str(error) == (
        "no path: the robot does not fit at the start, (4.900, 4.500); "
        "the nearest free place is (6.500, 4.500)"
    )
    error = refused((1.5, 1.5), (10.7, 2.5))
    # The cell to the right of the wall is nearer, but in another region.
    assert error.reason is Obstruction.GOAL_BLOCKED and error.nearest == (9.5, 2.5)
    error = refused((1.5, 1.5), (25.0, 2.5))
    assert error.reason is Obstruction.GOAL_OUTSIDE and error.nearest == (9.5, 2.5)
    error = refused((-3.0, 1.5), (1.5, 2.5))
    assert error.reason is Obstruction.START_OUTSIDE and error.nearest == (0.5, 1.5)
    error = refused((1.5, 1.5), (15.0, 2.5))
    assert error.reason is Obstruction.NO_PASSAGE and error.nearest == (9.5, 2.5)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.reason is error.reason


@pytest.mark.parametrize("seed", range(40))
def test_the_nearest_free_place_is_the_nearest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 300, 2)
    costs = np.full((rows, columns), planning.BLOCKED, np.uint8)
    for _ in range(rng.integers(0, 4)):
        j, i = rng.integers(0, rows), rng.integers(0, columns)
        costs[j : j + 3, i : i + 3] = 0
    x, y, edge = *rng.uniform(-50.0, 50.0, 2), rng.uniform(0.02, 3.0)
    floor = planning.Costmap(costs, x, y, edge)
    for region in (0, 1):
        j, i = np.nonzero(floor.labels == region if region else costs == 0)
        places = np.stack([x + (i + 0.5) * edge, y + (j + 0.5) * edge], axis=1)
        for scale in (0.5, 3.0, 1e6):
            away = scale * edge * rng.uniform(-columns, columns, 2)
            point = (x + edge * columns / 2 + away[0], y + edge * rows / 2 + away[1])
            found = floor.nearest_free(point, region)
            if not len(places):
                assert found is None
                continue
            assert found is not None
            least = np.hypot(*(places - point).T).min()
            assert math.dist(found, point) == pytest.approx(least, rel=1e-12)
            assert np.abs(places - found).sum(axis=1).min() == 0.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"radius": -0.1}, "radius: expected"),
        ({"radius": math.nan}, "radius: expected"),
        ({"radius": 0.1, "method": "dijkstra"}, "method: expected"),
        ({"radius": 0.1, "start": (math.nan, 0.0)}, "start: x: expected"),
        ({"radius": 0.1, "raster": np.zeros((3, 3), np.float64)}, "solid: expected"),
        ({"radius": 0.1, "raster": np.zeros(3, np.bool_)}, "solid: expected"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, object], said: str) -> None:
    given = {
        "start": (0.5, 0.5),
        "goal": (1.5, 1.5),
        "raster": np.zeros((3, 3), np.bool_),
        **arguments,
    }
    raster = Raster(given.pop("raster"), 0.0, 0.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=said):
        planning.find_path(raster, **given)  # type: ignore[arg-type]


def test_a_costmap_of_another_type_is_refused() -> None:
    for costs in (np.zeros((3, 3)), np.zeros(3, np.uint8), [[0]]):
        with pytest.raises(ArgumentError, match="costs: expected an array"):
            Costmap(costs, 0.0, 0.0, 1.0)  # type: ignore[arg-type]


def gap(corner: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return the distance of a point from a line segment, by trying its points."""
    along = np.linspace(a, b, 2001)
    return float(np.linalg.norm(along - corner, axis=1).min())


@pytest.mark.parametrize("seed", range(5))
def test_a_simplified_path_stays_near_the_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = np.cumsum(rng.normal([0.05, 0.0], 0.05, (400, 2)), axis=0)
    kept = simplified(path, 0.1, 400)
    where = [np.flatnonzero((path == corner).all(axis=1))[0] for corner in kept]
    assert where[0] == 0 and where[-1] == 399 and len(kept) < 200
    assert where == sorted(where)
    for (first, a), (last, b) in itertools.pairwise(zip(where, kept, strict=True)):
        for corner in path[first : last + 1]:
            assert gap(corner, a, b) <= 0.1 + 1e-3


def test_the_simplification_of_a_path_ends_at_a_number_of_corners() -> None:
    zigzag = np.stack([np.arange(5000.0), np.arange(5000) % 2], axis=1)
    assert len(simplified(zigzag, 0.1, 100)) == 101
    straight = np.stack([np.linspace(0.0, 9.0, 50), np.linspace(0.0, 3.0, 50)], axis=1)
    assert simplified(straight, 1e-6, 100).tolist() == [[0.0, 0.0], [9.0, 3.0]]
    # A path that turns back on its line keeps its farthest point.
    back = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    assert len(simplified(back, 0.1, 100)) == 3
    assert len(simplified(np.zeros((1, 2)), 0.1, 100)) == 1
