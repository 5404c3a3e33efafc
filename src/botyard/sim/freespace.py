"""Free space of maps, and places drawn in it for many worlds at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from botyard.engine.kernels.freespace import label_regions, mark_near_walls
from botyard.engine.layout import F8, I4, I8, U1, U8, Grid
from botyard.engine.rng import stream_keys, uniform
from botyard.errors import ArgumentError
from botyard.model.scene import Scene
from botyard.native.kinds import Pack

CELL_M: Final = 0.1
"""Least edge of a cell of the raster, m."""
MAX_CELLS: Final = 4e6
"""Cells of a raster: larger maps get larger cells."""
MAX_TRIES: Final = 200
"""Places that are tried for a robot among the others of its world."""
NO_MAP: Final = (-10.0, -10.0, 10.0, 10.0)
"""Bounds of places in a world without walls, m, as for `Simulation.random_free_place`."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeSpace:
    """Cells of a raster in which all places are free.

    Attributes
    ----------
    x0, y0 : float
        Lower left corner of the raster, m.
    cell : float
        Edge of a cell, m.
    columns : int
        Cells in a row.
    cells : (k,) int64
        Numbers of free cells, row after row.
    """

    x0: float
    y0: float
    cell: float
    columns: int
    cells: I8


class SpaceOf(Protocol):
    """Free space of a map by distance from its walls, m."""

    def __call__(self, reach: float, *, reachable: bool) -> FreeSpace:
        """See `botyard.sim.worldmaps.Map.space`."""
        ...


def free_space(scene: Scene, grid: Grid, reach: float, begin: tuple[float, float] | None) -> FreeSpace:
    """The free space of a map.

    Parameters
    ----------
    scene, grid
        The map.
    reach : float
        All places are farther from walls than this, m.
    begin : (float, float) or None
        Only the region that this place is in, or the largest if it is in none; None: all regions.
    """
    x0, y0, x1, y1 = scene.bounds or NO_MAP
    cell = max(CELL_M, math.sqrt((x1 - x0) * (y1 - y0) / MAX_CELLS))
    nx, ny = max(1, math.ceil((x1 - x0) / cell)), max(1, math.ceil((y1 - y0) / cell))
    near: U1 = np.zeros((ny, nx), np.uint8)
    mark_near_walls(Pack(grid), x0, y0, cell, reach + cell * math.sqrt(0.5), near)
    if begin is not None:
        labels: I4 = np.zeros((ny, nx), np.int32)
        if label_regions(near, labels, np.zeros(ny * nx, np.int64)) > 1:
            sizes = np.bincount(labels.reshape(-1))
            sizes[0] = 0
            ix, iy = math.floor((begin[0] - x0) / cell), math.floor((begin[1] - y0) / cell)
            there = int(labels[iy, ix]) if 0 <= ix < nx and 0 <= iy < ny else 0
            near = (labels != (there or int(sizes.argmax()))).astype(np.uint8)
    return FreeSpace(x0, y0, cell, nx, np.flatnonzero(near.reshape(-1) == 0))


def draw_places(space_of: SpaceOf, keys: U8, radii: Sequence[float], clearance: float, *, reachable: bool) -> F8:
    """Draw a pose for each robot of many worlds with one map: (k, m, 3), m, m, rad.

    Parameters
    ----------
    space_of : callable
        The map's free space.
    keys : (k,) uint64 array
        Keys of the random streams of the worlds.
    radii : sequence of float
        Radius of each robot, m.
    clearance : float
        Distance of circles from walls and from each other, m.
    reachable : bool
        See `botyard.sim.worlds.Worlds.sample_free`.

    Raises
    ------
    ArgumentError
        There is no room.
    """
    places = np.zeros((len(keys), len(radii), 3))
    for j, radius in enumerate(radii):
        space = space_of(radius + clearance, reachable=reachable)
        if not len(space.cells):
            raise ArgumentError(f"no place in the map is {radius + clearance:.3g} m from all walls")
        of_robot = stream_keys(keys, j)
        waits: I8 = np.arange(len(keys))
        for k in range(MAX_TRIES):
            drawn = [uniform(of_robot[waits], 4 * k + axis) for axis in range(4)]
            cells = space.cells[(drawn[0] * len(space.cells)).astype(np.int64)]
            x = space.x0 + (cells % space.columns + drawn[1]) * space.cell
            y = space.y0 + (cells // space.columns + drawn[2]) * space.cell
            free = np.ones(len(waits), np.bool_)
            for other in range(j):
                apart = radius + radii[other] + clearance
                dx, dy = x - places[waits, other, 0], y - places[waits, other, 1]
                free &= dx * dx + dy * dy >= apart * apart
            taken = waits[free]
            places[taken, j, 0], places[taken, j, 1] = x[free], y[free]
            places[taken, j, 2] = math.pi - 2.0 * math.pi * drawn[3][free]
            waits = waits[~free]
            if not len(waits):
                break
        else:
            raise ArgumentError(f"there is no room for {len(radii)} robots that are {clearance:g} m apart")
    return places
