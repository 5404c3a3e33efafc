"""Pictures of the engine's structures, against a look at every cell and every body."""

from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.engine import inspection
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from botyard.model.scene import Scene
from tests.engine.worlds import OCTAGON, grid_of, random_segments, robot

SEGMENTS = random_segments(np.random.default_rng(5), 12, 6.0)
GRID = grid_of(SEGMENTS)
H = GRID.h


def same(found: np.ndarray, expected: list[tuple[float, ...]]) -> bool:
    wanted = np.array(expected, np.float64).reshape(-1, 4)
    return found.shape == wanted.shape and bool(
        np.allclose(found, wanted, rtol=0.0, atol=1e-12)
    )


def entries(ix: int, iy: int) -> int:
    """Return the entries of a cell; none outside the grid."""
    if not (0 <= ix < GRID.nx and 0 <= iy < GRID.ny):
        return 0
    cell = iy * GRID.nx + ix
    return int(GRID.start[cell + 1] - GRID.start[cell])


def corner(ix: int, iy: int) -> tuple[float, float]:
    return GRID.x0 + ix * H, GRID.y0 + iy * H


def inside(ix: int, iy: int) -> tuple[float, float]:
    return GRID.x0 + (ix + 0.5) * H, GRID.y0 + (iy + 0.5) * H


ALL = (
    GRID.x0 - 9.0,
    GRID.y0 - 9.0,
    GRID.x0 + GRID.nx * H + 9.0,
    GRID.y0 + GRID.ny * H + 9.0,
)
PART = (*inside(3, 2), *inside(9, 11))
PLACES = {
    "all": (ALL, range(GRID.nx), range(GRID.ny)),
    "part": (PART, range(3, 10), range(2, 12)),
    "one cell": ((*inside(0, 1), *inside(0, 1)), range(1), range(1, 2)),
}


@pytest.mark.parametrize(("box", "columns", "rows"), PLACES.values(), ids=PLACES)
def test_cells_of_a_box(box: inspection.Box, columns: range, rows: range) -> None:
    assert inspection.cells(GRID, box) == (columns, rows)


@pytest.mark.parametrize(("box", "columns", "rows"), PLACES.values(), ids=PLACES)
def test_cells_with_entries_are_shown_and_no_others(
    box: inspection.Box, columns: range, rows: range
) -> None:
    expected = [
        (*corner(ix, iy), H, min(1.0, entries(ix, iy) / 8))
        for iy in rows
        for ix in columns
        if entries(ix, iy)
    ]
    assert same(inspection.occupied_cells(GRID, box), expected)


def test_a_box_beside_the_grid_holds_nothing() -> None:
    for box in (
        (ALL[2] + 1.0, ALL[1], ALL[2] + 2.0, ALL[3]),
        (ALL[0], ALL[1] - 2.0, ALL[2], ALL[1] - 1.0),
    ):
        assert inspection.occupied_cells(GRID, box).shape == (0, 4)
        assert inspection.clearances(GRID, box).shape == (0, 4)


@pytest.mark.parametrize(("box", "columns", "rows"), PLACES.values(), ids=PLACES)
def test_clearances_are_the_least_of_the_four_squares(
    box: inspection.Box, columns: range, rows: range
) -> None:
    expected = [
        (*corner(ix, iy), H, min(1.0, GRID.clear[:, iy, ix].min() / 64))
        for iy in rows
        for ix in columns
        if GRID.clear[:, iy, ix].min()
    ]
    assert same(inspection.clearances(GRID, box), expected)


def test_of_a_large_region_only_some_cells_are_shown_each_for_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspection, "MAX_SQUARES", GRID.nx * GRID.ny // 4)
    found = inspection.clearances(GRID, ALL)
    step = round(found[0, 2] / H)
    assert step in (2, 3)
    assert found[:, 2] == pytest.approx(step * H)
    assert set(np.round((found[:, 0] - GRID.x0) / H).astype(int) % step) == {0}
    monkeypatch.setattr(inspection, "MAX_SQUARES", 5)
    assert len(inspection.occupied_cells(GRID, ALL)) == 5


@pytest.mark.parametrize(
    "bearing", [0.0, math.pi / 2, math.pi, -math.pi / 2, 0.3, 2.0, -2.5, -0.9]
)
def test_the_squares_of_a_ray_touch_each_other_and_lie_on_it(bearing: float) -> None:
    x, y, length = *inside(GRID.nx // 2, GRID.ny // 2), 40.0 * H
    squares = inspection.ray_walk(GRID, x, y, bearing, length)
    dx, dy = math.cos(bearing), math.sin(bearing)
    t = 0.0
    for left, low, edge, searched in squares:
        px, py = x + (t + 2e-9) * dx, y + (t + 2e-9) * dy
        assert left - 1e-6 <= px <= left + edge + 1e-6, (
            "it enters the next square where it has left this one"
        )
        assert low - 1e-6 <= py <= low + edge + 1e-6
        columns = range(round((left - GRID.x0) / H), round((left + edge - GRID.x0) / H))
        rows = range(round((low - GRID.y0) / H), round((low + edge - GRID.y0) / H))
        assert searched == float(
            any(entries(ix, iy) for ix in columns for iy in rows)
        ), "what is crossed at once is empty"
        assert not searched or len(columns) == len(rows) == 1
        out = [((left + edge if dx > 0 else left) - x) / dx] if abs(dx) > 1e-12 else []
        out += [((low + edge if dy > 0 else low) - y) / dy] if abs(dy) > 1e-12 else []
        t = min(out)

    left_grid = not (
        GRID.x0 < x + t * dx < GRID.x0 + GRID.nx * H - 1e-6
        and GRID.y0 < y + t * dy < GRID.y0 + GRID.ny * H - 1e-6
    )
    assert t >= length or left_grid, "it goes on to its end, or to that of the grid"
    assert inspection.ray_walk(GRID, ALL[0], y, 0.0, 1.0).shape == (0, 4), (
        "it begins outside"
    )


def test_bodies_that_a_step_compares_are_those_whose_circles_are_near() -> None:
    e = Engine(Scene(segments=np.zeros((0, 4))))
    places = [0.0, 0.5, 1.0, 3.0]
    e.add_bodies(
        [
            (robot(f"r{i}", (OCTAGON,)), Pose(0.6 * x, 0.8 * x, 1.0))
            for i, x in enumerate(places)
        ]
    )
    radius = float(e.bodies.radius[0])
    for row, at in enumerate(places):
        for reach in (0.0, 0.6 - 2 * radius + 1e-9, 0.5, 2.0):
            expected = [
                i
                for i, x in enumerate(places)
                if i != row and abs(x - at) <= 2 * radius + reach
            ]
            assert (
                inspection.collision_candidates(e.state, e.bodies, row, reach)
                == expected
            )

    gap = 0.5 - 2 * radius
    assert inspection.collision_candidates(e.state, e.bodies, 0, gap + 1e-9) == [1]
    assert inspection.collision_candidates(e.state, e.bodies, 0, gap - 1e-9) == []
