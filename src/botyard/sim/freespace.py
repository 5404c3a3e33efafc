"""Free space of maps, in which places for robots are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard import arguments
from botyard.engine.kernels.freespace import label_regions, mark_near_walls
from botyard.engine.layout import I4, I8, U1, Grid
from botyard.engine.places import MAX_RUN, RUNS_IN_BLOCK, Spaces
from botyard.errors import ArgumentError
from botyard.model.scene import Scene
from botyard.native.kinds import Pack

CELL_M: Final = 0.1
"""Least edge of a cell of the raster, m."""
MAX_CELLS: Final = 4e6
"""Cells of a raster: larger maps get larger cells."""
MAX_SPACES: Final = 8
"""Clearances of which free space is kept, the most recently used ones: of a large map it takes up to 32 MB, or 5 MB in blocks."""
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
    cell = max(CELL_M, math.sqrt((x1 - x0) * (y1 - y0) / MAX_CELLS), (x1 - x0) / MAX_CELLS, (y1 - y0) / MAX_CELLS)
    nx, ny = max(1, math.ceil((x1 - x0) / cell)), max(1, math.ceil((y1 - y0) / cell))
    near: U1 = np.zeros((ny, nx), np.uint8)
    mark_near_walls(Pack(grid), x0, y0, cell, reach + cell * math.sqrt(0.5), near)
    free = near == 0
    if begin is not None:
        free = _region(near, math.floor((begin[0] - x0) / cell), math.floor((begin[1] - y0) / cell))
    return FreeSpace(x0, y0, cell, nx, np.flatnonzero(free.reshape(-1)))


def spaces_of(
    scene: Scene,
    grid: Grid,
    radii: Sequence[float],
    clearance: float,
    begin: tuple[float, float] | None,
    boxes: Sequence[float] = (),
) -> Spaces:
    """The free space of a map for robots, as circles of these radii, m, that are `clearance` m from its walls; radii of boxes, too.

    Raises
    ------
    ArgumentError
        There is no room for a robot.
    """
    spaces = {reach: free_space(scene, grid, reach, begin) for reach in dict.fromkeys(r + clearance for r in radii)}
    blocks: dict[float, tuple[int, int]] = {}
    parts: list[tuple[I4, I4, U1]] = []
    for reach, space in spaces.items():
        if not len(space.cells):
            raise ArgumentError(f'no place in the map "{scene.name}" is {reach:.3g} m from all walls')
        parts.append(_blocks(space.cells))
        first = max((end for _, end in blocks.values()), default=0)
        blocks[reach] = first, first + len(parts[-1][0])
    any_space = next(iter(spaces.values()))
    begins, before, runs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Spaces(
        frame=np.array([any_space.x0, any_space.y0, any_space.cell]),
        columns=np.array([any_space.columns]),
        blocks=np.array([blocks[radius + clearance] for radius in radii]),
        begin=begins,
        before=before,
        runs=runs,
        cells=np.array([len(spaces[radius + clearance].cells) for radius in radii]),
        radius=np.array([*boxes, *radii]),
    )


def _region(near: U1, ix: int, iy: int) -> NDArray[np.bool_]:
    """The region of the cells that are 0 that cell (iy, ix) is in; else the largest one."""
    ny, nx = near.shape
    labels: I4 = np.zeros((ny, nx), np.int32)
    label_regions(near, labels, np.zeros(ny * nx, np.int64))
    sizes = np.bincount(labels.reshape(-1))
    sizes[0] = 0
    there = int(labels[iy, ix]) if 0 <= ix < nx and 0 <= iy < ny else 0
    region: NDArray[np.bool_] = (labels == (there or int(sizes.argmax()))) & (labels > 0)
    return region


def _blocks(cells: I8) -> tuple[I4, I4, U1]:
    """`Spaces.begin`, `Spaces.before` and `Spaces.runs` of cells, ascending. A run of cells may go on in the next row."""
    at = np.flatnonzero(np.diff(cells, prepend=-2) != 1)
    free = np.diff(at, append=len(cells))
    taken = np.diff(cells[at], prepend=0)
    taken[1:] -= free[:-1]
    # a byte holds no more than `MAX_RUN`: before a run come as many without free cells as its taken cells need, after it the rest of it
    waiting = np.maximum(taken - 1, 0) // MAX_RUN
    count = waiting + (free + MAX_RUN - 1) // MAX_RUN
    run = np.repeat(np.arange(len(at)), count)
    step = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count) - waiting[run]  # 0: where both begin
    runs: U1 = np.zeros((-(-len(run) // RUNS_IN_BLOCK) * RUNS_IN_BLOCK, 2), np.uint8)
    runs[: len(run), 0] = np.where(step < 0, MAX_RUN, np.where(step == 0, (taken - waiting * MAX_RUN)[run], 0))
    runs[: len(run), 1] = np.where(step < 0, 0, np.minimum(free[run] - step * MAX_RUN, MAX_RUN))
    runs = runs.reshape(-1, RUNS_IN_BLOCK, 2)
    sums = runs.sum(axis=1, dtype=np.int64)
    before = np.cumsum(sums, axis=0) - sums
    return before.sum(axis=1).astype(np.int32), before[:, 1].astype(np.int32), runs


def checked_clearance(value: object) -> float:
    """A distance between places, m. ArgumentError: it is none."""
    return arguments.number(value, "clearance", low=0.0, high=1000.0, unit="m")


__all__ = ["FreeSpace", "checked_clearance", "free_space", "spaces_of"]
