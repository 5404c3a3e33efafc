"""Colour, holes and effects of the floor at points of the world."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Outline
from botyard.model.colors import rgb
from botyard.model.floor import OPAQUE, Floor, FloorPicture, PheromoneField
from botyard.numerics.elementary import cosine_sine

F8 = NDArray[np.float64]
U1 = NDArray[np.uint8]
I8 = NDArray[np.int64]
LUMA: Final = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the brightness (ITU-R BT.601-7, 2.5.1)."""


def inside(corners: Outline, points: F8) -> NDArray[np.bool_]:
    """Return which points lie inside a polygon, by the rule of `botyard.model.scene.in_polygon`.

    Parameters
    ----------
    corners : tuple of (float, float)
        Corners, m.
    points : (n, 2) float64
        Points in the same frame, m. A point that is not finite lies inside of no polygon.
    """
    x, y = points[:, 0], points[:, 1]
    found = np.zeros(len(points), np.bool_)
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if y1 == y2:
            continue
        crosses = (y1 > y) != (y2 > y)
        found ^= crosses & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    return found & np.isfinite(x + y)


def _pixels_at(picture: FloorPicture, points: F8) -> tuple[NDArray[np.bool_], U1]:
    """Return which points are in a picture, and the pixels of these points.

    Parameters
    ----------
    picture : FloorPicture
        Picture on the floor.
    points : (n, 2) float64
        Points in the world, m.

    Returns
    -------
    tuple of ((n,) bool, (k, 3 or 4) uint8)
        The pixels belong to the k points in the picture, in their order.
    """
    c, s = cosine_sine(picture.origin.th)
    dx, dy = points[:, 0] - picture.origin.x, points[:, 1] - picture.origin.y
    column = np.floor((c * dx + s * dy) / picture.resolution)
    row = np.floor((c * dy - s * dx) / picture.resolution)
    rows, columns, _ = picture.pixels.shape
    within = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    # Row 0 of the picture is the top one.
    at = picture.pixels[
        rows - 1 - row[within].astype(np.int64), column[within].astype(np.int64)
    ]
    return within, at


def holes_at(floor: Floor | None, points: F8) -> NDArray[np.bool_]:
    """Return at which points the floor has a hole.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world; None: it has no holes.
    points : (n, 2) float64
        Points in the world, m.
    """
    found = np.zeros(len(points), np.bool_)
    if floor is None:
        return found
    picture = floor.picture
    if picture is not None and picture.pixels.shape[2] == 4:
        within, pixels = _pixels_at(picture, points)
        found[within] = pixels[:, 3] < OPAQUE
    for zone in floor.zones:
        if zone.hole:
            found |= inside(zone.corners, points)
    return found


def colors_at(floor: Floor | None, points: F8) -> U1:
    """Return the colour of the floor at points.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world; None: it is white.
    points : (n, 2) float64
        Points in the world, m.

    Returns
    -------
    (n, 3) uint8
        Red, green, blue. A hole is black.
    """
    found: U1 = np.empty((len(points), 3), np.uint8)
    found[:] = rgb((Floor() if floor is None else floor).color)
    if floor is None:
        return found
    if floor.picture is not None:
        within, pixels = _pixels_at(floor.picture, points)
        found[within] = pixels[:, :3]
    for zone in floor.zones:
        if zone.color:
            found[inside(zone.corners, points)] = rgb(zone.color)
    found[holes_at(floor, points)] = 0
    return found


def brightness(colors: U1) -> F8:
    """Return the brightness of colours, 0 (black) to 1 (white).

    Parameters
    ----------
    colors : (n, 3) uint8
        Red, green, blue.

    Returns
    -------
    (n,) float64
        Luma of ITU-R BT.601.
    """
    red, green, blue = (colors[:, k].astype(np.float64) for k in range(3))
    found: F8 = (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue) / 255.0
    return found


def effects_at(floor: Floor | None, x: float, y: float) -> tuple[float, float, float]:
    """Return the effects of the zones at a point.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world.
    x, y : float
        Point in the world, m.

    Returns
    -------
    tuple of float
        Speed limit, m/s, infinite without one; slip; odometry scale.
    """
    limit, slip, scale = math.inf, 0.0, 1.0
    point = np.array([[x, y]])
    for zone in () if floor is None else floor.zones:
        if zone.acts and inside(zone.corners, point)[0]:
            limit = min(
                limit, math.inf if zone.speed_limit is None else zone.speed_limit
            )
            slip = slip if zone.slip is None else zone.slip
            scale = scale if zone.odometry_scale is None else zone.odometry_scale

    return limit, slip, scale


def cells_at(field: PheromoneField, points: F8) -> I8:
    """Return the cells of a pheromone field at points, (n,) int64; −1 outside.

    Parameters
    ----------
    field : PheromoneField
        The field.
    points : (n, 2) float64
        Points in the world, m.

    Returns
    -------
    (n,) int64
        Cell row · columns + column.
    """
    rows, columns = field.shape
    column = np.floor((points[:, 0] - field.area[0]) / field.cell)
    row = np.floor((points[:, 1] - field.area[1]) / field.cell)
    # Comparisons with NaN are false, so that such a point is outside.
    within = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    found: I8 = np.full(len(points), -1, np.int64)
    found[within] = (row[within] * columns + column[within]).astype(np.int64)
    return found


__all__ = [
    "LUMA",
    "brightness",
    "cells_at",
    "colors_at",
    "effects_at",
    "holes_at",
    "inside",
]
