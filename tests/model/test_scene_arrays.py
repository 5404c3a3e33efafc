"""Scenes from arrays of cells, and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import botyard
from botyard.errors import ArgumentError, WorldError
from botyard.model.scene import Scene

cells = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=12))


@settings(max_examples=100)
@given(cells, st.sampled_from([0.05, 0.1, 0.5]), st.floats(-50, 50), st.floats(-50, 50))
def test_an_array_comes_back(solid: NDArray[np.bool_], resolution: float, x: float, y: float) -> None:
    """As far as something is solid in it, at its place."""
    scene = Scene.from_array(solid, resolution, (x, y))
    if not solid.any():
        assert scene.is_empty
        return
    rows, columns = (np.flatnonzero(solid.any(axis=axis)) for axis in (1, 0))
    back = scene.to_array(resolution)
    assert (back.solid == solid[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]).all()
    corner = x + columns[0] * resolution, y + rows[0] * resolution
    assert [back.x, back.y, back.resolution] == pytest.approx([*corner, resolution])


def test_a_robot_sees_the_array() -> None:
    """The lowest row is at the origin; turned, the array lies on its side."""
    solid = np.zeros((4, 30), np.bool_)
    solid[0, 20] = True
    for origin, pose, expected in (
        ((1.0, 2.0), (1.05, 2.05, 0.0), 1.95),
        ((1.0, 2.0, math.pi / 2), (0.95, 2.05, math.pi / 2), 1.95),
    ):
        sim = botyard.Simulation(Scene.from_array(solid, 0.1, origin), seed=1, sensor_noise=False)
        robot = sim.add_robot("p3dx", lasers=["lms200"], pose=pose)
        scan = robot.laser.read()
        assert scan.ranges[90] + robot.spec.lasers[0].pose.x == pytest.approx(expected)


def test_what_is_no_array_of_cells() -> None:
    for solid in (np.zeros(3, np.bool_), np.zeros((2, 2)), [[1, 0]], np.zeros((1, 1, 1), np.bool_)):
        with pytest.raises(ArgumentError, match="expected a two-dimensional array of bool"):
            Scene.from_array(solid, 0.1)
    for resolution in (0.0, -1.0, math.nan, "x"):
        with pytest.raises(ArgumentError, match="resolution"):
            Scene.from_array(np.ones((2, 2), np.bool_), resolution)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        Scene.from_array(np.ones((2, 2), np.bool_), 0.1, (math.inf, 0.0))
    with pytest.raises(WorldError, match="nothing to draw"):
        Scene().to_array(0.1)
