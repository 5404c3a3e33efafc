"""Kernels that compute the edges of polygons, and of lines with a width.

Edges have the form that `botyard.pictures.kernels.coverage.cover_polygons` expects. A
line becomes several polygons with one orientation, so that their winding numbers
do not cancel where they overlap.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.pictures.kernels.jit import entry_kernel, inline_kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

EDGES: Final = 20
"""Largest number of edges per point: four of the segment, sixteen of a round corner or end."""
_DISC: Final = 16
"""Corners of the polygon that stands for a round end; lines are a few pixels wide."""
_COSINE: Final = 0.9238795325112867
_SINE: Final = 0.3826834323650898
"""Cosine and sine of the angle between two neighbouring corners, 2 π / `_DISC`."""
_PART: Final = 256.0
"""Steps per pixel to which y coordinates are rounded, as in Chromium's canvas."""
_SHARPEST: Final = 0.02
"""Limit for sharp corners: 1 + the cosine of the turn between the segments.

At the limit, the tip is 10 half widths from the corner (2 / 0.02 = 10²).
"""


@inline_kernel
def put_edge(edges: F8, count: int, ax: float, ay: float, bx: float, by: float) -> int:
    """Append an edge from a to b, and return the new number of edges.

    A horizontal edge is left out, because it crosses no scan line.
    """
    ay, by = np.floor(ay * _PART + 0.5) / _PART, np.floor(by * _PART + 0.5) / _PART
    if ay == by:
        return count
    edges[count, 4] = 1.0
    if ay > by:
        ax, ay, bx, by = bx, by, ax, ay
        edges[count, 4] = -1.0
    edges[count, 0], edges[count, 1] = ax, ay
    edges[count, 2], edges[count, 3] = bx, by
    return count + 1


@inline_kernel
def put_disc(edges: F8, count: int, x: float, y: float, radius: float) -> int:
    """Append the edges of a disc, and return the new number of edges."""
    ax, ay = radius, 0.0
    for k in range(_DISC):
        bx, by = _COSINE * ax + _SINE * ay, _COSINE * ay - _SINE * ax
        # Close the polygon exactly: the products have a rounding error.
        if k == _DISC - 1:
            bx, by = radius, 0.0
        count = put_edge(edges, count, x + ax, y + ay, x + bx, y + by)
        ax, ay = bx, by
    return count


@inline_kernel
def put_corner(
    edges: F8,
    count: int,
    x: float,
    y: float,
    ux: float,
    uy: float,
    vx: float,
    vy: float,
    half: float,
) -> int:
    """Append the edges that fill the outer side of a sharp corner.

    The line arrives at (x, y) in the direction u and leaves it in the direction v.
    Return the new number of edges.
    """
    if ux * vy - uy * vx > 0.0:
        # The line turns to its left: the outer side is the right one.
        ux, uy, vx, vy = -vx, -vy, -ux, -uy
    ax, ay, bx, by = -half * uy, half * ux, -half * vy, half * vx
    reach = 1.0 + ux * vx + uy * vy
    # The tip of a sharper corner would be far away, so it is cut off.
    share = 1.0 / reach if reach >= _SHARPEST else 0.5
    tx, ty = x + share * (ax + bx), y + share * (ay + by)
    count = put_edge(edges, count, x, y, x + ax, y + ay)
    count = put_edge(edges, count, x + ax, y + ay, tx, ty)
    count = put_edge(edges, count, tx, ty, x + bx, y + by)
    return put_edge(edges, count, x + bx, y + by, x, y)


@entry_kernel
def line_edges(
    points: F8,
    starts: I8,
    width: float,
    closed: bool,
    has_round_ends: bool,
    has_round_corners: bool,
    edges: F8,
) -> int:
    """Store the edges of lines with a width, and return the number of edges.

    Parameters
    ----------
    points : (n, 2) array
        Points of all lines, pixels.
    starts : (m,) array
        Index of the first point of each line, in rising order.
    width : float
        Width, pixels.
    closed : bool
        Whether the last point of each line is joined to its first.
    has_round_ends, has_round_corners : bool
        Whether ends are round instead of flat, and corners round instead of sharp.
    edges : (EDGES (n + m), 5) array
        Output.
    """
    count, half = 0, width / 2.0
    for k in range(len(starts)):
        first = starts[k]
        last = starts[k + 1] if k + 1 < len(starts) else len(points)
        sides = 0
        x0 = y0 = ux0 = uy0 = ux = uy = bx = by = 0.0
        for a in range(first, last if closed else last - 1):
            b = a + 1 if a + 1 < last else first
            ax, ay, bx, by = points[a, 0], points[a, 1], points[b, 0], points[b, 1]
            length = math.sqrt((bx - ax) * (bx - ax) + (by - ay) * (by - ay))
            # A segment of length 0 has no direction.
            if length == 0.0:
                continue
            vx, vy = (bx - ax) / length, (by - ay) / length
            sx, sy = -half * vy, half * vx
            count = put_edge(edges, count, ax + sx, ay + sy, bx + sx, by + sy)
            count = put_edge(edges, count, bx + sx, by + sy, bx - sx, by - sy)
            count = put_edge(edges, count, bx - sx, by - sy, ax - sx, ay - sy)
            count = put_edge(edges, count, ax - sx, ay - sy, ax + sx, ay + sy)
            if not sides:
                x0, y0, ux0, uy0 = ax, ay, vx, vy
            elif has_round_corners:
                count = put_disc(edges, count, ax, ay, half)
            else:
                count = put_corner(edges, count, ax, ay, ux, uy, vx, vy, half)
            ux, uy = vx, vy
            sides += 1

        if sides and closed:
            if has_round_corners:
                count = put_disc(edges, count, x0, y0, half)
            else:
                count = put_corner(edges, count, x0, y0, ux, uy, ux0, uy0, half)
        elif sides and has_round_ends:
            count = put_disc(edges, count, x0, y0, half)
            count = put_disc(edges, count, bx, by, half)
    return count


@entry_kernel
def polygon_edges(points: F8, edges: F8) -> int:
    """Store the edges of a polygon, and return the number of edges.

    Parameters
    ----------
    points : (n, 2) array
        Corners, pixels; the last one is joined to the first.
    edges : (n, 5) array
        Output.
    """
    count, a = 0, len(points) - 1
    for b in range(len(points)):
        count = put_edge(
            edges, count, points[a, 0], points[a, 1], points[b, 0], points[b, 1]
        )
        a = b
    return count


__all__ = ["EDGES", "line_edges", "polygon_edges"]
