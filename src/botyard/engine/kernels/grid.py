"""Grid of the static world: segments of each cell, and free space around each cell.

Method and figures: reference performance.md §2–3. All except `wall_distance` runs when
a map is loaded, never in a step.
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
    """Visit every cell that each segment touches.

    With `fill` false the visits are counted in ``start[cell + 1]``. With `fill` true
    the number of the segment is stored in ``entries[start[cell]]``, and ``start[cell]``
    advances. `seg` is (n, 4): x1, y1, x2, y2 in m.
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
            # The part within this column; a vertical segment lies in it completely.
            if abs(dx) > 1e-12:
                # The margin applies to both directions: also to columns.
                u0 = (i - e - ax) / dx
                u1 = (i + 1 + e - ax) / dx
                # The segment runs towards −x.
                if u0 > u1:
                    u0, u1 = u1, u0
                ya = ay + max(u0, 0.0) * dy
                yb = ay + min(u1, 1.0) * dy

            # The segment runs towards −y.
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

                # With the cell itself 255, the maximum of a byte
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
    """Return a lower bound of the distance from (`x`, `y`) to the nearest segment, m.

    It follows from the free squares around the cell, and may be negative.
    """
    cx, cy = (x - x0) / h, (y - y0) / h
    if 0.0 <= cx < nx and 0.0 <= cy < ny:
        ix, iy = int(cx), int(cy)
        free = min(
            min(clear[0, iy, ix], clear[1, iy, ix]),
            min(clear[2, iy, ix], clear[3, iy, ix]),
        )
        # The point may be anywhere in its cell, which costs up to one edge.
        return (int(free) - 1) * h

    # Outside of the grid: the distance from its border; infinite without walls.
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
    """Copy each entry's segment into cell units, so that a ray reads contiguous memory."""
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
    """Turn counts into offsets, in place: start[i] := start[0] + … + start[i]."""
    total = np.int64(0)
    for i in range(start.shape[0]):
        total += start[i]
        start[i] = total
