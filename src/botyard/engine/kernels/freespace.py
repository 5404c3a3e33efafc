"""Free space of a map on a raster: which cells are far enough from walls, and which of
them hang together. Not used in a step.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.jit import entry_kernel
from botyard.engine.kernels.polygons import segment_distance
from botyard.engine.layout import I4, I8, U1, Grid

BORDER = 0.01
"""Cells of the grid are taken for so much larger on each side, in cells: more than
rounding does.
"""


@entry_kernel
def mark_near_walls(
    grid: Grid, x0: float, y0: float, cell: float, reach: float, near: U1
) -> None:
    """Write 1 to each cell of a raster whose middle is within `reach` m of a solid
    wall.

    Cell (iy, ix) of `near`, (ny, nx), has its middle at (`x0` + (ix + ½)·`cell`, `y0` +
    (iy + ½)·`cell`), m.
    """
    ny, nx = near.shape
    seg, h = grid.seg, grid.h
    for c in range(grid.nx * grid.ny):
        # a wall has an entry in each cell of the grid that it passes: each entry stands
        # for the part of it that is there
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
    """Number the regions of cells that are 0 in `near`, (ny, nx): cells hang together
    by their sides.

    Writes 1, 2 … to `labels`, (ny, nx), which is zero before. `queue`: workspace,
    (ny·nx,). Returns how many regions there are.
    """
    ny, nx = near.shape
    count = 0
    for begin in range(ny * nx):
        if near[begin // nx, begin % nx] != 0 or labels[begin // nx, begin % nx] != 0:
            continue
        count += 1
        labels[begin // nx, begin % nx] = count
        queue[0] = begin
        first, end = 0, 1
        # breadth first: a wave from its first cell
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
