"""Free space of a map on a raster: cells far enough from walls, and connected regions.

Not used in a step.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.jit import entry_kernel
from botyard.engine.kernels.polygons import segment_distance
from botyard.engine.layout import I4, I8, U1, Grid

BORDER = 0.01
"""Enlargement of grid cells on each side, in cells: more than the effect of rounding.
"""


@entry_kernel
def mark_near_walls(
    grid: Grid, x0: float, y0: float, cell: float, reach: float, near: U1
) -> None:
    """Mark the cells of a raster whose centres are near a solid wall.

    Parameters
    ----------
    grid : Grid
        Static world.
    x0, y0 : float
        Lower left corner of the raster, m. Cell (iy, ix) has its centre at (x0 + (ix +
        ½)·cell, y0 + (iy + ½)·cell).
    cell : float
        Edge of a cell of the raster, m.
    reach : float
        Greatest distance of a centre from a wall, m.
    near : (ny, nx) uint8
        Output: 1 for marked cells; others stay unchanged.
    """
    ny, nx = near.shape
    seg, h = grid.seg, grid.h
    for c in range(grid.nx * grid.ny):
        # A wall has an entry in each grid cell that it crosses. Each entry stands for
        # the part of the wall in its cell.
        left, low = (
            grid.x0 + (c % grid.nx - BORDER) * h,
            grid.y0 + (c // grid.nx - BORDER) * h,
        )
        right, high = left + (1.0 + 2.0 * BORDER) * h, low + (1.0 + 2.0 * BORDER) * h

        for k in range(grid.start[c], grid.start[c + 1]):
            if not int(grid.mask[k]) & OBSTACLE:
                continue
            ax, ay = grid.x0 + seg[k, 0] * h, grid.y0 + seg[k, 1] * h
            bx, by = ax + seg[k, 2] * h, ay + seg[k, 3] * h
            # Test only raster cells within reach of the part of the wall in this grid
            # cell.
            i0 = max(0, int(math.floor((max(min(ax, bx), left) - reach - x0) / cell)))
            i1 = min(
                nx - 1, int(math.floor((min(max(ax, bx), right) + reach - x0) / cell))
            )
            j0 = max(0, int(math.floor((max(min(ay, by), low) - reach - y0) / cell)))
            j1 = min(
                ny - 1, int(math.floor((min(max(ay, by), high) + reach - y0) / cell))
            )

            for j in range(j0, j1 + 1):
                for i in range(i0, i1 + 1):
                    if near[j, i] == 0 and (
                        segment_distance(
                            x0 + (i + 0.5) * cell, y0 + (j + 0.5) * cell, ax, ay, bx, by
                        )
                        <= reach
                    ):
                        near[j, i] = 1


@entry_kernel
def label_regions(near: U1, labels: I4, queue: I8) -> int:
    """Number the regions of free cells, and return their count.

    Cells of a region are connected by their sides.

    Parameters
    ----------
    near : (ny, nx) uint8
        Raster; cells with 0 are free.
    labels : (ny, nx) int32
        Output, 0 before: number of the region of each free cell, from 1 on.
    queue : (ny·nx,) int64
        Workspace.
    """
    ny, nx = near.shape
    count = 0
    for begin in range(ny * nx):
        if near[begin // nx, begin % nx] != 0 or labels[begin // nx, begin % nx] != 0:
            continue
        count += 1
        labels[begin // nx, begin % nx] = count
        # The queue needs one place per cell, because each cell enters it once.
        queue[0] = begin
        first, end = 0, 1

        # Fill the region from its first cell by a breadth-first search.
        while first < end:
            j, i = queue[first] // nx, queue[first] % nx
            first += 1
            for way in range(4):
                u, v = i + (way == 0) - (way == 1), j + (way == 2) - (way == 3)
                if (
                    0 <= u < nx
                    and 0 <= v < ny
                    and near[v, u] == 0
                    and labels[v, u] == 0
                ):
                    labels[v, u] = count
                    queue[end] = v * nx + u
                    end += 1

    return count
