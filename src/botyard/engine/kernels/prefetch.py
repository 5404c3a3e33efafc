"""Prefetch hints for grid data that rays of range sensors will read.

They help worlds with many maps, which no cache holds. Each cell determines the next
cell of a ray, so that a ray waits for the memory at each cell. Hints are given for all
cells at once. No result depends on them.
"""

from __future__ import annotations

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.jit import inline_kernel
from botyard.engine.kernels.wallspans import has_few_walls, list_of, wide_cells
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
WALLS_IN_LINE = CACHE_LINE // 8
"""Number of columns of `Grid.walls` in a cache line."""
SEGMENTS_IN_LINE = CACHE_LINE // 32
"""Number of rows of `Grid.seg` in a cache line."""


@inline_kernel
def cells_around(
    grid: Grid, x: float, y: float, reach: float
) -> tuple[int, int, int, int]:
    """Return the columns and rows of grid cells around a place.

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Place in the frame of the world, m.
    reach : float
        Half of the edge of the square around the place, m.

    Returns
    -------
    tuple of int
        First and last column, first and last row, as for `wide_cells`.
    """
    inv = 1.0 / grid.h
    i0, i1 = bin_span(x - reach, x + reach, grid.x0, inv, grid.nx)
    j0, j1 = bin_span(y - reach, y + reach, grid.y0, inv, grid.ny)
    return i0, i1, j0, (j1 if i1 >= i0 else j0 - 1)


@inline_kernel
def wide_cells_around(
    grid: Grid, x: float, y: float, reach: float
) -> tuple[int, int, int, int]:
    """Return the `wide_cells` around a place.

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Place in the frame of the world, m.
    reach : float
        Half of the edge of the square around the place, m.
    """
    inv = 1.0 / grid.h
    gx, gy, far = (x - grid.x0) * inv, (y - grid.y0) * inv, reach * inv
    return wide_cells(grid, (gx - far, gx + far, gy - far, gy + far))


@inline_kernel
def fetch_cells(grid: Grid, x: float, y: float, reach: float) -> None:
    """Prefetch the list starts of cells around a sensor, and clearances of its cell.

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Place of the sensor in the frame of the world, m.
    reach : float
        Greatest range of the sensor, m.
    """
    nx, ny, clear = grid.nx, grid.ny, grid.clear_flat
    here = int((y - grid.y0) / grid.h) * nx + int((x - grid.x0) / grid.h)
    # A sensor outside of the grid has no cell; its rays enter at the border.
    for quadrant in range(4 if 0 <= here < nx * ny else 0):
        prefetch(clear, quadrant * nx * ny + here)
    i0, i1, j0, j1 = wide_cells_around(grid, x, y, reach)
    for j in range(j0, j1 + 1):
        for i in range(i0, i1 + STARTS_IN_LINE, STARTS_IN_LINE):
            prefetch(grid.wall_start, j * grid.wall_nx + min(i, i1))


@inline_kernel
def fetch_walls(grid: Grid, x: float, y: float, reach: float, beams: int) -> None:
    """Prefetch the walls around a sensor.

    Call it some time after `fetch_cells`, because it reads the lists.

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Place of the sensor in the frame of the world, m.
    reach : float
        Greatest range of the sensor, m.
    beams : int
        Number of the sensor's beams, which decides whether the lists of wide cells or
        the cells of the grid are prefetched.
    """
    wide = wide_cells_around(grid, x, y, reach)
    if has_few_walls(grid, wide, beams):
        fetch_listed(grid, wide)
    # With many walls, beams walk from cell to cell and read clearances.
    else:
        cells = cells_around(grid, x, y, min(reach, MAX_CELLS * grid.h))
        i0, i1, j0, j1 = cells
        fetch_clearances(grid, x, y, cells)
        for j in range(j0, j1 + 1):
            begin, end = grid.start[j * grid.nx + i0], grid.start[j * grid.nx + i1 + 1]
            for k in range(begin, end, SEGMENTS_IN_LINE):
                prefetch(grid.seg, k)


@inline_kernel
def fetch_listed(grid: Grid, wide: tuple[int, int, int, int]) -> None:
    """Prefetch the listed walls of wide cells.

    Parameters
    ----------
    grid : Grid
        Static world.
    wide : tuple of int
        First and last column, first and last row, as from `wide_cells`.
    """
    walls = grid.walls
    for j in range(wide[2], wide[3] + 2):
        begin, end = list_of(grid.wall_start, grid.wall_nx, grid.wall_ny, wide, j)
        for k in range(begin, end, WALLS_IN_LINE):
            for axis in range(4):
                prefetch(walls[axis], k)


@inline_kernel
def fetch_clearances(
    grid: Grid, x: float, y: float, cells: tuple[int, int, int, int]
) -> None:
    """Prefetch the clearances of cells.

    Rays do not turn back, so that each quadrant of directions needs a quarter of them.

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Place of the sensor in the frame of the world, m.
    cells : tuple of int
        First and last column, first and last row of the grid.
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
