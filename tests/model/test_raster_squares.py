"""Squares of points in a raster, of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.model.raster import _mark_squares, rasterise
from botyard.model.scene import Scene


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=1, max_size=8),
    st.sampled_from([1, 2, 3, 7, 40, 10**12]),
)
def test_squares_are_marked_cell_by_cell(
    corners: list[tuple[int, int]], reach: int
) -> None:
    solid, expected = np.zeros((8, 11), np.bool_), np.zeros((8, 11), np.bool_)
    _mark_squares(solid, np.array(corners), reach)
    for x, y in corners:
        expected[y : y + reach, x : x + reach] = True
    assert (solid == expected).all()


def test_points_larger_than_the_whole_raster_come_to_an_end() -> None:
    """The loop once made one turn for each cell of the square: 10^14."""
    scene = Scene(points=np.array([[0.0, 0.0], [0.013, 0.4]]), resolution=900.0)
    assert rasterise(scene, 1.0).solid.sum() == 900 * 900


@pytest.mark.parametrize("far", [1e6, 1e9, 1e15])
def test_points_far_apart_have_exact_outlines(far: float) -> None:
    """Keys of 64 bits once overflowed, and walls came out at wrong places."""
    from botyard.model.tracing import squares_to_segments

    resolution = 1e-4
    found = squares_to_segments(np.array([[0.0, 0.0], [far, far]]), resolution)
    ends = found.reshape(-1, 2)
    assert len(found) == 8
    assert ends.max() >= far and ends.min() == 0.0
    near = np.abs(ends).max(axis=1) <= 2 * resolution
    assert near.sum() == 8 and (ends[~near] >= far).all()
