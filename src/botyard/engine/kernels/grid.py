"""Grid of the static world: segments of each cell, and free space around each cell.

All except `wall_distance` runs when a map is loaded, never in a step.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import entry_kernel, inline_kernel
from botyard.engine.layout import F8, I2, I4, U1, U2

COVER_MARGIN = 1e-6
"""Margin by which segments are entered into cells beyond the edges, in cells.

Rounding then cannot lose a segment at a border.
"""


@entry_kernel
def cover(
    seg: F8,
    x0: float,
    y0: float,
    h: float,
    nx: int,
    ny: int,
    start: I4,
    entries: I4,
    fill: bool,
) -> None:
    """Visit every cell that each segment touches, to count or to enter the segments.

    Callers count first, turn the counts into offsets (`prefix_sum`), then fill.

    Parameters
    ----------
    seg : (n, 4) float64
        Segments in the frame of the world: x1, y1, x2, y2, m.
    x0, y0 : float
        Lower left corner of the grid, m.
    h : float
        Edge of a cell, m.
    nx, ny : int
        Number of cells.
    start : (nx·ny + 1,) int32
        In-place. With `fill` false, ``start[cell + 1]`` grows by 1 for each visit. With
        `fill` true it holds the next free entry of each cell, which advances.
    entries : (k,) int32
        Output with `fill`: numbers of the segments, by cell.
    fill : bool
        Whether to enter the segments; otherwise they are counted.
    """
    inv = 1.0 / h
    e = COVER_MARGIN
    for k in range(seg.shape[0]):
        ax = (seg[k, 0] - x0) * inv
        ay = (seg[k, 1] - y0) * inv
        bx = (seg[k, 2] - x0) * inv
        by = (seg[k, 3] - y0) * inv
        dx = bx - ax
        dy = by - ay
        i0 = max(0, int(math.floor(min(ax, bx) - e)))
        i1 = min(nx - 1, int(math.floor(max(ax, bx) + e)))

        for i in range(i0, i1 + 1):
            ya, yb = ay, by
            # Cut out the part of the segment within this column; a vertical segment is
            # within it completely.
            if abs(dx) > 1e-12:
                # The margin applies to both directions: also to columns.
                u0 = (i - e - ax) / dx
                u1 = (i + 1 + e - ax) / dx
                # A segment that runs towards −x has its ends in reverse order.
                if u0 > u1:
                    u0, u1 = u1, u0
                ya = ay + max(u0, 0.0) * dy
                yb = ay + min(u1, 1.0) * dy

            # A segment that runs towards −y has its ends in reverse order.
            if ya > yb:
                ya, yb = yb, ya
            j0 = max(0, int(math.floor(ya - e)))
            j1 = min(ny - 1, int(math.floor(yb + e)))
            for j in range(j0, j1 + 1):
                c = j * nx + i
                if fill:
                    entries[start[c]] = k
                    start[c] += 1
                else:
                    start[c + 1] += 1


@entry_kernel
def quadrant_clearance(start: I4, nx: int, ny: int, clear: U1) -> None:
    """Write `clear` (see `Grid.clear`) by the largest-empty-square recurrence.

    It runs once for each quadrant of directions. Side of the square ahead of a cell = 1
    + the least side of its three neighbours ahead. It is 0 if the cell has entries.
    Cells beyond the grid count as free. Sides are capped at 255.

    Parameters
    ----------
    start : (nx·ny + 1,) int32
        `Grid.start`.
    nx, ny : int
        Number of cells.
    clear : (4, ny, nx) uint8
        Output: edge of the free square ahead of each cell, by quadrant, cells.
    """
    for q in range(4):
        sx = 1 if q & 1 else -1
        sy = 1 if q & 2 else -1
        for jj in range(ny):
            j = ny - 1 - jj if sy > 0 else jj
            for ii in range(nx):
                i = nx - 1 - ii if sx > 0 else ii
                c = j * nx + i
                if start[c + 1] > start[c]:
                    clear[q, j, i] = 0
                    continue

                # Counting the cell itself gives 255, the maximum of a byte.
                side = 254
                inx = 0 <= i + sx < nx
                iny = 0 <= j + sy < ny
                if inx:
                    side = min(side, int(clear[q, j, i + sx]))
                if iny:
                    side = min(side, int(clear[q, j + sy, i]))
                if inx and iny:
                    side = min(side, int(clear[q, j + sy, i + sx]))
                clear[q, j, i] = side + 1


@inline_kernel
def wall_distance(
    clear: U1, x0: float, y0: float, h: float, nx: int, ny: int, x: float, y: float
) -> float:
    """Return a lower bound of the distance from a place to the nearest segment, m.

    It follows from the free squares around the place's cell, and may be negative.

    Parameters
    ----------
    clear : (4, ny, nx) uint8
        `Grid.clear`.
    x0, y0 : float
        Lower left corner of the grid, m.
    h : float
        Edge of a cell, m.
    nx, ny : int
        Number of cells; without cells the distance is infinite.
    x, y : float
        Place in the frame of the world, m; also one outside of the grid.
    """
    cx, cy = (x - x0) / h, (y - y0) / h
    if 0.0 <= cx < nx and 0.0 <= cy < ny:
        ix, iy = int(cx), int(cy)
        free = min(
            min(clear[0, iy, ix], clear[1, iy, ix]),
            min(clear[2, iy, ix], clear[3, iy, ix]),
        )
        # Subtract one edge, because the point may be anywhere in its cell.
        return (int(free) - 1) * h

    # A point outside of the grid is at least as far from walls as from the border;
    # without a grid there are no walls.
    return max(max(-cx, cx - nx), max(-cy, cy - ny)) * h if nx > 0 else math.inf


@entry_kernel
def gather(
    seg: F8,
    mask: U2,
    bright: I2,
    entries: I4,
    x0: float,
    y0: float,
    h: float,
    out: F8,
    out_mask: U2,
    out_bright: I2,
) -> None:
    """Copy each entry's segment into cell units, so that a ray reads contiguous memory.

    Parameters
    ----------
    seg, mask, bright : (n, 4) float64, (n,) uint16, (n,) int16
        Segments, m, their `Visible` classes and laser returns.
    entries : (k,) int32
        Numbers of the segments by cell, as from `cover`.
    x0, y0 : float
        Lower left corner of the grid, m.
    h : float
        Edge of a cell, m.
    out, out_mask, out_bright : (k, 4) float64, (k,) uint16, (k,) int16
        Output: `Grid.seg`, start points and vectors in cells; `Grid.mask`;
        `Grid.bright`.
    """
    inv = 1.0 / h
    for n in range(entries.shape[0]):
        k = entries[n]
        ax = (seg[k, 0] - x0) * inv
        ay = (seg[k, 1] - y0) * inv
        out[n, 0] = ax
        out[n, 1] = ay
        out[n, 2] = (seg[k, 2] - x0) * inv - ax
        out[n, 3] = (seg[k, 3] - y0) * inv - ay
        out_mask[n] = mask[k]
        out_bright[n] = bright[k]


@entry_kernel
def prefix_sum(start: I4) -> None:
    """Turn counts into offsets, in place: start[i] := start[0] + … + start[i].

    Parameters
    ----------
    start : (n,) int32
        Counts. In-place: offsets.
    """
    total = np.int64(0)
    for i in range(start.shape[0]):
        total += start[i]
        start[i] = total
