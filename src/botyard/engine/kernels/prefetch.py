"""Hints that begin to load what the rays of a range sensor will read of a grid: for
worlds with many maps, which no cache holds.

A ray finds out by each cell which one it reads next, and waits for the memory at each;
hints are given for all at once. Nothing that is computed depends on them.
"""

from __future__ import annotations

from botyard.engine.kernels.jit import inline_kernel
from botyard.engine.kernels.wallspans import cells_around, has_few_walls
from botyard.engine.layout import Grid
from botyard.native.hints import CACHE_LINE, prefetch

MAX_CELLS = 16.0
"""Cells that are farther away than so many cells are left out."""
MIN_BEAMS = 64
"""Sensors with fewer beams read so little of the grid that hints take longer than they
save.
"""
STARTS_IN_LINE = CACHE_LINE // 4
"""Elements of `Grid.start` that are loaded at once."""
SEGMENTS_IN_LINE = CACHE_LINE // 32
"""Rows of `Grid.seg` that are loaded at once."""


@inline_kernel
def fetch_cells(grid: Grid, x: float, y: float, reach: float) -> None:
    """Begin to load where the lists of the cells within `reach` m of (x, y) begin, and
    the clearances of its cell.
    """
    nx, ny, start, clear = grid.nx, grid.ny, grid.start, grid.clear_flat
    i0, i1, j0, j1 = cells_around(grid, x, y, min(reach, MAX_CELLS * grid.h))
    here = int((y - grid.y0) / grid.h) * nx + int((x - grid.x0) / grid.h)
    for quadrant in range(4 if 0 <= here < nx * ny else 0):
        prefetch(clear, quadrant * nx * ny + here)
    for j in range(j0, j1 + 1):
        for i in range(i0, i1 + STARTS_IN_LINE, STARTS_IN_LINE):
            prefetch(start, j * nx + min(i, i1))


@inline_kernel
def fetch_walls(grid: Grid, x: float, y: float, reach: float, beams: int) -> None:
    """Begin to load the segments of the cells within `reach` m of (x, y); some time
    after `fetch_cells`, as it reads lists.
    """
    nx, start, seg = grid.nx, grid.start, grid.seg
    cells = cells_around(grid, x, y, min(reach, MAX_CELLS * grid.h))
    i0, i1, j0, j1 = cells
    if not has_few_walls(grid, cells, beams):  # beams walk from cell to cell
        fetch_clearances(grid, x, y, cells)
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1], SEGMENTS_IN_LINE):
            prefetch(seg, k)


@inline_kernel
def fetch_clearances(
    grid: Grid, x: float, y: float, cells: tuple[int, int, int, int]
) -> None:
    """Begin to load the clearances of cells: of each quadrant of directions a quarter
    of them, as rays do not turn back.
    """
    nx, ny, clear = grid.nx, grid.ny, grid.clear_flat
    i0, i1, j0, j1 = cells
    ix, iy = int((x - grid.x0) / grid.h), int((y - grid.y0) / grid.h)
    for j in range(j0, j1 + 1):
        # towards −y, towards +y, or, in the row of the place, both
        for quadrant in range(2 if j > iy else 0, 2 if j < iy else 4):
            row = (quadrant * ny + j) * nx
            prefetch(clear, row + (ix if quadrant & 1 else i0))
            prefetch(clear, row + (i1 if quadrant & 1 else ix))


__all__ = ["MIN_BEAMS", "fetch_cells", "fetch_walls"]
