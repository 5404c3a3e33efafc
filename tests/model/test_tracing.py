from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.model.tracing import _distinct, squares_to_segments

RES = 0.02


def raster_edges(cells: set[tuple[int, int]]) -> set[tuple[int, int, int, int]]:
    """Return unit edges of the outline of a set of cells by a look at every neighbour."""
    edges = set()
    for i, j in cells:
        if (i - 1, j) not in cells:
            edges.add((i, j, i, j + 1))
        if (i + 1, j) not in cells:
            edges.add((i + 1, j, i + 1, j + 1))
        if (i, j - 1) not in cells:
            edges.add((i, j, i + 1, j))
        if (i, j + 1) not in cells:
            edges.add((i, j + 1, i + 1, j + 1))

    return edges


def unit_edges(segments: np.ndarray) -> list[tuple[int, int, int, int]]:
    out = []
    for x1, y1, x2, y2 in np.rint(segments / RES).astype(int).tolist():
        n = abs(x2 - x1) + abs(y2 - y1)
        dx, dy = (x2 - x1) // n, (y2 - y1) // n
        out += [
            (x1 + k * dx, y1 + k * dy, x1 + (k + 1) * dx, y1 + (k + 1) * dy)
            for k in range(n)
        ]

    return out


@given(
    st.sets(
        st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=120
    )
)
def test_merged_edges_are_the_outline_exactly_once(cells: set[tuple[int, int]]) -> None:
    points = np.array(sorted(cells), float) * RES
    found = unit_edges(squares_to_segments(points, RES))
    assert sorted(found) == sorted(set(found)), "an edge occurs twice"
    assert set(found) == raster_edges(cells)


def test_a_block_is_four_segments() -> None:
    points = np.array([(i, j) for i in range(10) for j in range(5)], float) * RES
    segments = squares_to_segments(points, RES)
    assert len(segments) == 4
    assert segments.min() == pytest.approx(0.0)
    assert segments[:, [0, 2]].max() == pytest.approx(10 * RES)
    assert segments[:, [1, 3]].max() == pytest.approx(5 * RES)


def test_a_point_fills_the_square_up_and_right_of_it() -> None:
    segments = squares_to_segments(np.array([[1.0, 2.0]]), RES)
    assert segments[:, [0, 2]].min() == pytest.approx(1.0)
    assert segments[:, [1, 3]].max() == pytest.approx(2.02)


def test_points_off_the_lattice_get_a_square_each() -> None:
    points = np.array([[0.0, 0.0], [0.02, 0.0], [0.5071, 0.3033]])
    segments = squares_to_segments(points, RES)
    assert len(segments) == 4 + 4


def test_no_points_no_segments() -> None:
    assert squares_to_segments(np.zeros((0, 2)), RES).shape == (0, 4)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=30))
def test_distinct_points(points: list[tuple[int, int]]) -> None:
    array = np.array(points, np.float64).reshape(-1, 2) / 8.0
    assert np.array_equal(_distinct(array), np.unique(array, axis=0))
