"""Pictures of the engine's structures, to explain or debug it (GUI-031).

The code is plain rather than fast, and changes nothing.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import Bodies, Grid, State
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine

Squares = NDArray[np.float64]
"""Squares, (n, 4): x, y of the lower left corner, edge, m; a value of 0 … 1."""
# A browser draws this many cells without delay.
MAX_SQUARES: Final = 20_000
"""Highest number of squares in the picture of a region."""
MAX_RAY_SQUARES: Final = 2000
"""Highest number of squares in the picture of a ray."""

Box = tuple[float, float, float, float]


def cells(grid: Grid, box: Box) -> tuple[range, range]:
    """Return index ranges of the cells that a box touches.

    Parameters
    ----------
    grid : Grid
        Static world.
    box : tuple of float
        Least x, least y, greatest x, greatest y, m.

    Returns
    -------
    tuple of (range, range)
        Columns and rows; empty outside of the grid.
    """

    def span(low: float, high: float, origin: float, n: int) -> range:
        return range(
            max(0, math.floor((low - origin) / grid.h)),
            min(n, math.floor((high - origin) / grid.h) + 1),
        )

    return span(box[0], box[2], grid.x0, grid.nx), span(
        box[1], box[3], grid.y0, grid.ny
    )


def _squares(
    grid: Grid,
    ix: NDArray[np.int64],
    iy: NDArray[np.int64],
    edge: int,
    value: NDArray[np.float64],
) -> Squares:
    """Return squares that cover cells of a grid.

    Parameters
    ----------
    grid : Grid
        Static world.
    ix, iy : (n,) int64
        Column and row of the lower left cell of each square.
    edge : int
        Edge of all squares, cells.
    value : (n,) float64
        Values of the squares; more than 1 counts as 1.
    """
    squares = np.empty((len(ix), 4))
    squares[:, 0] = grid.x0 + ix * grid.h
    squares[:, 1] = grid.y0 + iy * grid.h
    squares[:, 2] = edge * grid.h
    squares[:, 3] = np.minimum(1.0, value)
    return squares


def occupied_cells(grid: Grid, box: Box) -> Squares:
    """Return the cells of a region with entries, at most `MAX_SQUARES`.

    The value of a square grows with the number of entries.

    Parameters
    ----------
    grid : Grid
        Static world.
    box : tuple of float
        Region: least x, least y, greatest x, greatest y, m.

    Returns
    -------
    (n, 4) float64
        Squares, see `Squares`. A cell with eight entries has the value 1.
    """
    columns, rows = cells(grid, box)
    if not columns or not rows:
        return np.empty((0, 4))
    counts = np.diff(
        # Whole rows of cells, because offsets are consecutive along a row only.
        grid.start[rows.start * grid.nx : rows.stop * grid.nx + 1]
    ).reshape(len(rows), grid.nx)
    part = counts[:, columns.start : columns.stop]
    iy, ix = (k[:MAX_SQUARES] for k in np.nonzero(part))
    # Eight walls in a cell give the full colour.
    return _squares(grid, ix + columns.start, iy + rows.start, 1, part[iy, ix] / 8)


def clearances(grid: Grid, box: Box) -> Squares:
    """Return the smallest of the four empty squares at each cell of a region.

    A cell is a corner of four empty squares, one for each quadrant of directions
    (`Grid.clear`). The value is the edge of the smallest one as a fraction of 64 cells.

    Parameters
    ----------
    grid : Grid
        Static world.
    box : tuple of float
        Region: least x, least y, greatest x, greatest y, m.

    Returns
    -------
    (n, 4) float64
        Squares, see `Squares`, at most about `MAX_SQUARES`: in a large region each
        covers several cells. Occupied cells are left out.
    """
    columns, rows = cells(grid, box)
    if not columns or not rows:
        return np.empty((0, 4))
    # A large region shows every n-th cell, so that the picture stays small.
    step = max(1, math.ceil(math.sqrt(len(columns) * len(rows) / MAX_SQUARES)))
    edges = grid.clear[
        :, rows.start : rows.stop : step, columns.start : columns.stop : step
    ].min(axis=0)
    iy, ix = np.nonzero(edges)
    return _squares(
        grid,
        columns.start + step * ix,
        rows.start + step * iy,
        step,
        edges[iy, ix] / 64,
    )


def ray_walk(grid: Grid, x: float, y: float, bearing: float, length: float) -> Squares:
    """Return the squares that a ray from (x, y) visits within `length` m.

    The ray crosses empty squares in one step (value 0), and searches the others (1).

    Parameters
    ----------
    grid : Grid
        Static world.
    x, y : float
        Start of the ray in the frame of the world, m.
    bearing : float
        Direction in the frame of the world, rad.
    length : float
        Length of the ray, m. Walls do not end it.

    Returns
    -------
    (n, 4) float64
        Squares, see `Squares`, from the start on, at most `MAX_RAY_SQUARES`.
    """
    squares: list[tuple[float, float, float, float]] = []
    dx, dy = cosine_sine(bearing)
    quadrant = (1 if dx > 0 else 0) + (2 if dy > 0 else 0)
    t = 0.0
    while t < length and len(squares) < MAX_RAY_SQUARES:
        gx, gy = (x + t * dx - grid.x0) / grid.h, (y + t * dy - grid.y0) / grid.h
        ix, iy = math.floor(gx), math.floor(gy)
        # The ray has left the grid.
        if not (0 <= ix < grid.nx and 0 <= iy < grid.ny):
            break

        empty = int(grid.clear[quadrant, iy, ix])
        edge = max(1, empty)
        # The empty square extends from the cell in the direction of the ray.
        left, low = (ix if dx > 0 else ix - edge + 1), (iy if dy > 0 else iy - edge + 1)
        squares.append(
            (
                grid.x0 + left * grid.h,
                grid.y0 + low * grid.h,
                edge * grid.h,
                0.0 if empty else 1.0,
            )
        )
        out_x = ((left + edge if dx > 0 else left) - gx) / dx if dx else math.inf
        out_y = ((low + edge if dy > 0 else low) - gy) / dy if dy else math.inf
        # The offset leads into the next cell in spite of rounding.
        t += max(min(out_x, out_y) * grid.h, 0.0) + 1e-9

    return np.array(squares, np.float64).reshape(-1, 4)


def collision_candidates(
    state: State, bodies: Bodies, row: int, reach: float
) -> list[int]:
    """Return rows of bodies whose circles are within `reach` m of a body's circle.

    A step may have to compare these bodies.

    Parameters
    ----------
    state, bodies : State, Bodies
        Poses and radii of all bodies.
    row : int
        Row of the body in question; it is left out.
    reach : float
        Distance between circles, m.
    """
    away = elementwise.hypot(
        state.pose[:, 0] - state.pose[row, 0], state.pose[:, 1] - state.pose[row, 1]
    )
    near = away <= bodies.radius + bodies.radius[row] + reach
    near[row] = False
    return [int(i) for i in np.flatnonzero(near)]
