"""Clipping of lines and polygons to a box."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]


Box = tuple[float, float, float, float]
"""Box: smallest x, smallest y, largest x, largest y, in one unit."""


def clip_line(a: Point, b: Point, box: Box) -> tuple[Point, Point] | None:
    """Clip a line to a box; None if no part is inside (Liang and Barsky, 1984).

    Parameters
    ----------
    a, b : (float, float)
        Ends of the line.
    box : tuple of float
        Smallest x, smallest y, largest x, largest y, in the same unit.

    Returns
    -------
    tuple of points or None
        Ends of the part inside, in the direction of the line.
    """
    first, last = 0.0, 1.0
    for origin, way, low, high in (
        (a[0], b[0] - a[0], box[0], box[2]),
        (a[1], b[1] - a[1], box[1], box[3]),
    ):
        # A line parallel to an edge never crosses it.
        if way == 0.0:
            if not low <= origin <= high:
                return None
            continue

        enter, leave = sorted(((low - origin) / way, (high - origin) / way))
        first, last = max(first, enter), min(last, leave)

    if not first <= last:
        return None
    dx, dy = b[0] - a[0], b[1] - a[1]
    return (a[0] + first * dx, a[1] + first * dy), (a[0] + last * dx, a[1] + last * dy)


def clip_polygon(corners: Sequence[Point], box: Box) -> list[Point]:
    """Clip a polygon to a box edge by edge (Sutherland and Hodgman, 1974).

    Parameters
    ----------
    corners : sequence of (float, float)
        Corners in order; the last one is joined to the first.
    box : tuple of float
        Smallest x, smallest y, largest x, largest y, in the same unit.

    Returns
    -------
    list of (float, float)
        Corners of the part inside; empty if there is none.
    """
    left = list(corners)
    for axis, limit, keep_below in (
        (0, box[0], False),
        (0, box[2], True),
        (1, box[1], False),
        (1, box[3], True),
    ):
        found: list[Point] = []
        for a, b in zip(left, left[1:] + left[:1], strict=True):
            inside_a, inside_b = (
                (a[axis] <= limit) == keep_below,
                (b[axis] <= limit) == keep_below,
            )
            if inside_a:
                found.append(a)
            if inside_a != inside_b:
                share = (limit - a[axis]) / (b[axis] - a[axis])
                found.append(
                    (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
                )

        left = found

    return left


__all__ = ["Box", "Point", "clip_line", "clip_polygon"]
