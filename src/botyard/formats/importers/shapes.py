"""Outlines of imported bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from botyard.formats.importers.values import Value
from botyard.geometry import Outline, Pose, transform_point
from botyard.model.obstacles import disc, rectangle

MAX_SAGITTA: Final = 0.005
"""Largest distance between a circle and the polygon that replaces it, m."""
CORNERS: Final = (24, 36, 48, 72, 96, 144, 288, 720)
"""Numbers of corners that a circle's polygon can have, smallest first."""
MAX_SIDE: Final = 1e5
"""Largest size of a shape, m."""


def circle(radius: float) -> Outline:
    """Return a circle around the origin as a polygon of the same area.

    Larger circles have more corners, so that the polygon stays near the circle.
    """
    # The sagitta of a chord over the angle 2π/n is about r·π²/(2·n²), and half of it
    # lies on each side of the circle.
    for corners in CORNERS:
        if 5.0 * radius <= 2.0 * MAX_SAGITTA * corners * corners:
            break
    return disc(radius, corners)


def moved(outline: Outline, at: Pose) -> Outline:
    """Return an outline after the transformation from the frame of a pose to the parent's frame."""
    return tuple(transform_point(at, x, y) for x, y in outline)


def polygon(value: Value, *, least: int = 3) -> Outline:
    """Return the corners of a polygon from a list of points in a file, m.

    Raises
    ------
    WorldFileError
        There are fewer than `least` points, they are not two numbers each, or all of
        them are at one place.
    """
    corners = tuple(entry.point() for entry in value.entries())
    if len(corners) > 1 and corners[0] == corners[-1] and len(corners) > least:
        # Some programs repeat the first corner at the end.
        corners = corners[:-1]
    if len(corners) < least or len(set(corners)) < 2:
        raise value.error(
            f"expected at least {least} different points, found {len(set(corners))}"
        )
    return corners


def bounds(outlines: Iterable[Outline]) -> tuple[float, float, float, float]:
    """Return the bounding box of outlines: x0, y0, x1, y1, m."""
    xs, ys = zip(*(corner for part in outlines for corner in part), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


__all__ = ["MAX_SIDE", "bounds", "circle", "moved", "polygon", "rectangle"]
