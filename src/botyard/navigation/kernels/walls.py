"""Exact search for the walls near a point in the grid of a map."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import Grid
from botyard.navigation.kernels.jit import inline_kernel, rows_kernel

F8 = NDArray[np.float64]


@inline_kernel
def nearest_on(
    ax: float, ay: float, ex: float, ey: float, x: float, y: float
) -> tuple[float, float]:
    """Return the point of a segment that is nearest to a point.

    Parameters
    ----------
    ax, ay : float
        Start of the segment.
    ex, ey : float
        Vector from the start of the segment to its end; 0 for a point.
    x, y : float
        The point, in the same unit.

    Returns
    -------
    px, py : float
        The nearest point of the segment.
    """
    length2 = ex * ex + ey * ey
    t = 0.0
    if length2 > 0.0:
        t = min(1.0, max(0.0, ((x - ax) * ex + (y - ay) * ey) / length2))
    return ax + t * ex, ay + t * ey


@inline_kernel
def insert(
    walls: F8, away: F8, near: float, ax: float, ay: float, bx: float, by: float
) -> None:
    """Insert a wall into the sorted list of the nearest walls.

    Walls in the list already, and walls farther than all of a full list, are skipped.

    Parameters
    ----------
    walls : (w, 4) float64
        List of walls, the nearest first; updated.
    away : (w,) float64
        Squared distances of these walls, infinite for unused rows; updated.
    near : float
        Squared distance of the wall.
    ax, ay, bx, by : float
        Ends of the wall, in units of cells.
    """
    count = away.shape[0]
    # The list is full of nearer walls.
    if not near < away[count - 1]:
        return
    at = 0
    while away[at] <= near:
        if (
            away[at] == near
            and walls[at, 0] == ax
            and walls[at, 1] == ay
            and walls[at, 2] == bx
            and walls[at, 3] == by
        ):
            # A wall has entries in several cells, and is already in the list.
            return

        at += 1

    for k in range(count - 1, at, -1):
        away[k] = away[k - 1]
        for c in range(4):
            walls[k, c] = walls[k - 1, c]

    away[at] = near
    walls[at, 0], walls[at, 1], walls[at, 2], walls[at, 3] = ax, ay, bx, by


@rows_kernel
def near_walls(
    grid: Grid, xy: F8, reach: float, mask: int, walls: F8, away: F8
) -> None:
    """Find the walls of the classes `mask` that are nearest to points.

    Parameters
    ----------
    grid : Grid
        The map.
    xy : (k, 2) float64
        Points, m.
    reach : float
        Walls farther away are ignored, m.
    mask : int
        Classes (`Visible`).
    walls : (k, w, 4) float64
        Output: end points of the nearest walls, m, the nearest first; NaN for unused
        rows.
    away : (k, w) float64
        Workspace: squared distances, in units of cells.
    """
    # Distances are in units of cells, and squared, which saves divisions and roots.
    limit = reach / grid.h * (reach / grid.h)
    for k in range(xy.shape[0]):
        walls[k] = math.nan
        away[k] = math.inf
        x, y = (xy[k, 0] - grid.x0) / grid.h, (xy[k, 1] - grid.y0) / grid.h
        far = reach / grid.h
        x0, x1 = (
            int(min(max(x - far, 0.0), grid.nx)),
            int(min(max(x + far + 1.0, 0.0), grid.nx)),
        )
        y0, y1 = (
            int(min(max(y - far, 0.0), grid.ny)),
            int(min(max(y + far + 1.0, 0.0), grid.ny)),
        )
        for iy in range(y0, y1):
            # Cells of a row are consecutive in `start`, so one range covers a row.
            for e in range(
                grid.start[iy * grid.nx + x0], grid.start[iy * grid.nx + x1]
            ):
                if grid.mask[e] & mask == 0:
                    continue
                ax, ay, ex, ey = (
                    grid.seg[e, 0],
                    grid.seg[e, 1],
                    grid.seg[e, 2],
                    grid.seg[e, 3],
                )
                px, py = nearest_on(ax, ay, ex, ey, x, y)
                near = (px - x) * (px - x) + (py - y) * (py - y)
                if near <= limit:
                    insert(walls[k], away[k], near, ax, ay, ax + ex, ay + ey)

        for w in range(walls.shape[1]):
            walls[k, w, 0] = grid.x0 + walls[k, w, 0] * grid.h
            walls[k, w, 1] = grid.y0 + walls[k, w, 1] * grid.h
            walls[k, w, 2] = grid.x0 + walls[k, w, 2] * grid.h
            walls[k, w, 3] = grid.y0 + walls[k, w, 3] * grid.h
