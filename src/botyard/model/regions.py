"""Regions of the plane, and tests whether they overlap with the outline of a body.

Shapes that only touch count as overlapping.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from botyard.geometry import Outline, Pose, transform_point
from botyard.model.scene import in_polygon

Point = tuple[float, float]


class Disc(NamedTuple):
    """Disc-shaped region: centre and radius, m."""

    x: float
    y: float
    radius: float


Region: TypeAlias = Disc | Outline
"""Type of a region: a disc, or the corners of a polygon, m.

Two corners are a segment, and one corner is a point.
"""


def placed(outline: Outline, pose: Pose) -> Outline:
    """Return the outline of a body at a pose, in the world's frame.

    Parameters
    ----------
    outline : tuple of (float, float)
        Corners in the frame of the body, m.
    pose : Pose
        Pose of the body in the world: m, m, rad.
    """
    return tuple(transform_point(pose, x, y) for x, y in outline)


def reach(region: Region) -> tuple[float, float, float, float]:
    """Return the bounding box of a region: min x, min y, max x, max y, m."""
    if isinstance(region, Disc):
        x, y, r = region
        return x - r, y - r, x + r, y + r

    xs, ys = zip(*region, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def overlaps(region: Region, outline: Outline) -> bool:
    """Return whether a region and a polygon have a point in common.

    Parameters
    ----------
    region : Disc or tuple of (float, float)
        Disc, or corners of a polygon, m; two corners are a segment, one is a point.
    outline : tuple of (float, float)
        Corners of the polygon in the same frame, m. It need not be convex.
    """
    if isinstance(region, Disc):
        x, y, radius = region
        if in_polygon(outline, x, y):
            return True
        return any(
            _square_distance(x, y, a, b) <= radius * radius for a, b in _edges(outline)
        )

    # One shape may lie inside the other, without any crossing of edges.
    if in_polygon(region, *outline[0]) or in_polygon(outline, *region[0]):
        return True
    return any(
        _cross_each_other(a, b, c, d)
        for a, b in _edges(region)
        for c, d in _edges(outline)
    )


def _edges(outline: Outline) -> list[tuple[Point, Point]]:
    return list(zip(outline, outline[1:] + outline[:1], strict=True))


def _square_distance(x: float, y: float, a: Point, b: Point) -> float:
    """Return the squared distance from a point to a segment, m².

    Parameters
    ----------
    x, y : float
        Point, m.
    a, b : (float, float)
        Ends of the segment, m; they may be equal.
    """
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = dx * dx + dy * dy
    # Both ends of the segment may be the same point, which has no direction.
    along = ((x - a[0]) * dx + (y - a[1]) * dy) / length if length > 0.0 else 0.0
    along = min(max(along, 0.0), 1.0)
    ex, ey = x - (a[0] + along * dx), y - (a[1] + along * dy)
    return ex * ex + ey * ey


def _cross_each_other(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Return whether the segments a-b and c-d have a point in common.

    Source: Cormen et al., *Introduction to Algorithms*, §33.1.
    """
    d1, d2, d3, d4 = _turn(c, d, a), _turn(c, d, b), _turn(a, b, c), _turn(a, b, d)
    if d1 * d2 < 0.0 and d3 * d4 < 0.0:
        return True
    # The segments do not cross properly. They can still touch at an end point.
    return (
        (d1 == 0.0 and _is_between(c, d, a))
        or (d2 == 0.0 and _is_between(c, d, b))
        or (d3 == 0.0 and _is_between(a, b, c))
        or (d4 == 0.0 and _is_between(a, b, d))
    )


def _turn(o: Point, a: Point, b: Point) -> float:
    """Return twice the signed area of the triangle with the corners o, a and b, m².

    The area is positive if b lies to the left of the line from o to a.
    """
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def _is_between(a: Point, b: Point, p: Point) -> bool:
    """Return whether p lies between a and b; p must lie on the line through them."""
    return min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[
        1
    ] <= max(a[1], b[1])


__all__ = ["Disc", "Region", "overlaps", "placed", "reach"]
