"""Prefetch hints for grid data that rays of range sensors will read.

They help worlds with many maps, which no cache holds. Each cell determines the next
cell of a ray, so that a ray waits for the memory at each cell. Hints are given for all
cells at once. No result depends on them.
"""

from __future__ import annotations

from botyard.engine.kernels.jit import inline_kernel
from botyard.engine.kernels.wallspans import cells_around, has_few_walls
from botyard.engine.layout import Grid
from botyard.native.hints import CACHE_LINE, prefetch

MAX_CELLS = 16.0
"""Distance up to which cells are prefetched, cells."""
MIN_BEAMS = 64
"""Least number of beams of a sensor for hints.

Fewer beams read so little of the grid that hints take longer than they save.
"""
STARTS_IN_LINE = CACHE_LINE // 4
"""Number of elements of `Grid.start` in a cache line."""
SEGMENTS_IN_LINE = CACHE_LINE // 32
"""Number of rows of `Grid.seg` in a cache line."""


@inline_kernel
def fetch_cells(grid: Grid, x: float, y: float, reach: float) -> None:
    """Prefetch list starts of cells within `reach` m of (x, y), and clearances."""
    nx, ny, start, clear = grid.nx, grid.ny, grid.start, grid.clear_flat
    i0, i1, j0, j1 = cells_around(grid, x, y, min(reach, MAX_CELLS * grid.h))
    here = int((y - grid.y0) / grid.h) * nx + int((x - grid.x0) / grid.h)
    # A sensor outside of the grid has no cell; its rays enter at the border.
    for quadrant in range(4 if 0 <= here < nx * ny else 0):
        prefetch(clear, quadrant * nx * ny + here)
    for j in range(j0, j1 + 1):
        for i in range(i0, i1 + STARTS_IN_LINE, STARTS_IN_LINE):
            prefetch(start, j * nx + min(i, i1))


@inline_kernel
def fetch_walls(grid: Grid, x: float, y: float, reach: float, beams: int) -> None:
    """Prefetch the segments of the cells within `reach` m of (x, y).

    Call it some time after `fetch_cells`, because it reads the lists.
    """
    nx, start, seg = grid.nx, grid.start, grid.seg
    cells = cells_around(grid, x, y, min(reach, MAX_CELLS * grid.h))
    i0, i1, j0, j1 = cells
    # With many walls, beams walk from cell to cell and read clearances.
    if not has_few_walls(grid, cells, beams):
        fetch_clearances(grid, x, y, cells)
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1], SEGMENTS_IN_LINE):
            prefetch(seg, k)


@inline_kernel
def fetch_clearances(
    grid: Grid, x: float, y: float, cells: tuple[int, int, int, int]
) -> None:
    """Prefetch the clearances of cells.

    Rays do not turn back, so that each quadrant of directions needs a quarter of them.
    """
    nx, ny, clear = grid.nx, grid.ny, grid.clear_flat
    i0, i1, j0, j1 = cells
    ix, iy = int((x - grid.x0) / grid.h), int((y - grid.y0) / grid.h)
    for j in range(j0, j1 + 1):
        # Quadrants towards −y, towards +y, or both in the row of the place.
        for quadrant in range(2 if j > iy else 0, 2 if j < iy else 4):
            row = (quadrant * ny + j) * nx
            prefetch(clear, row + (ix if quadrant & 1 else i0))
            prefetch(clear, row + (i1 if quadrant & 1 else ix))


__all__ = ["MIN_BEAMS", "fetch_cells", "fetch_walls"]
