"""Kernels that find how much of each pixel a shape covers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.pictures.kernels.jit import entry_kernel, kernel

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

LINES: Final = 4
"""Number of scan lines in each row of pixels, as in Chromium's software renderer.

Coverage along a scan line is exact. A polygon covers the scan lines from below its
upper end down to its lower end, which is included.
"""


@kernel
def _lay_row(row: F8, left: int, right: int, share: float, below: F4) -> None:
    """Lay the coverage of a row of pixels over the mask's row.

    Parameters
    ----------
    row : (width + 2,) array
        Difference between the coverage of each pixel and of the pixel left of it; 0
        afterwards.
    left, right : int
        First pixel with a difference, and the pixel after the last one.
    share : float
        Opacity of the shape, 0 to 1.
    below : (width,) array
        Row of the mask; it is changed.
    """
    total = 0.0
    for column in range(left, right):
        total += row[column]
        row[column] = 0.0
        if column < len(below) and total > 1e-9:
            old = below[column]
            below[column] = old + share * min(total, 1.0) * (1.0 - old)


@entry_kernel
def cover_polygons(
    edges: F8, share: float, active: I8, at: F8, row: F8, mask: F4
) -> None:
    """Lay polygons over a mask: all places with a winding number other than 0.

    All polygons of one call are drawn as one shape, so overlaps are not more opaque.

    Parameters
    ----------
    edges : (n, 5) array
        Edges of all polygons, pixels: x and y of the upper end, x and y of the lower
        end, and 1 if the polygon goes down along the edge, otherwise −1. They are
        sorted by the y of the upper end.
    share : float
        Opacity of the shape, 0 to 1.
    active, at : (n,) arrays
        Work memory: the edges that reach the current row, and their x on the scan line.
    row : (width + 2,) array
        Work memory for the coverage of a row (see `_lay_row`); it must be 0 before, and
        is 0 afterwards.
    mask : (height, width) array
        Coverage, 0 to 1; it is changed.
    """
    height, width = mask.shape
    count = taken = 0
    n = len(edges)
    r = int(min(max(np.floor(edges[0, 1]), 0.0), float(height))) if n else height
    while r < height and (count or taken < n):
        while taken < n and edges[taken, 1] < r + 1.0:
            if edges[taken, 3] > r:
                active[count] = taken
                count += 1
            taken += 1

        left, right = width, 0
        for line in range(LINES):
            y = r + (line + 0.5) / LINES
            for i in range(count):
                e = active[i]
                x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
                # An edge that does not cross the scan line gets the x of its nearer end.
                along = min(max((y - y0) / (y1 - y0), 0.0), 1.0)
                x = min(max(x0 + along * (x1 - x0), 0.0), float(width))
                # Between scan lines the order of edges changes little, so an insertion sort is
                # fast.
                j = i
                while j > 0 and at[j - 1] > x:
                    at[j], active[j] = at[j - 1], active[j - 1]
                    j -= 1
                at[j], active[j] = x, e

            winding, start = 0, 0.0
            for i in range(count):
                e = active[i]
                if edges[e, 1] < y <= edges[e, 3]:
                    before = winding
                    winding += int(edges[e, 4])
                    if before == 0:
                        start = at[i]
                    elif winding == 0 and at[i] > start:
                        a, b = int(start), int(at[i])
                        in_a, in_b = start - a, at[i] - b
                        # Store differences: `_lay_row` sums them along the row.
                        row[a] += (1.0 - in_a) / LINES
                        row[a + 1] += in_a / LINES
                        row[b] -= (1.0 - in_b) / LINES
                        row[b + 1] -= in_b / LINES
                        left, right = min(left, a), max(right, b + 2)

        _lay_row(row, left, right, share, mask[r])

        kept = 0
        for i in range(count):
            if edges[active[i], 3] > r + 1.0:
                active[kept] = active[i]
                kept += 1
        count = kept
        r += 1


@entry_kernel
def cover_boxes(boxes: F8, share: float, mask: F4) -> None:
    """Lay rectangles over a mask, one over the other.

    Parameters
    ----------
    boxes : (n, 4) array
        Left, upper, right and lower edge of each rectangle, pixels.
    share : float
        Opacity of the rectangles, 0 to 1.
    mask : (height, width) array
        Coverage, 0 to 1; it is changed.
    """
    height, width = mask.shape
    for k in range(len(boxes)):
        x0, x1 = max(boxes[k, 0], 0.0), min(boxes[k, 2], float(width))
        y0, y1 = max(boxes[k, 1], 0.0), min(boxes[k, 3], float(height))
        if x0 >= x1 or y0 >= y1:
            continue
        for r in range(int(y0), int(np.ceil(y1))):
            high = min(y1, r + 1.0) - max(y0, float(r))
            for column in range(int(x0), int(np.ceil(x1))):
                wide = min(x1, column + 1.0) - max(x0, float(column))
                below = mask[r, column]
                mask[r, column] = below + share * high * wide * (1.0 - below)


__all__ = ["LINES", "cover_boxes", "cover_polygons"]
