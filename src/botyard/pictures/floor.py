"""Drawing of the floor: its picture and its zones, and pheromone fields above them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from botyard.model.colors import rgb
from botyard.model.floor import GROUND_COLOR, Floor, FloorPicture, FloorZone
from botyard.numerics.elementary import cosine_sine
from botyard.pictures.canvas import Mask, View
from botyard.pictures.layers import merge
from botyard.pictures.still import FieldLevels

OPACITY: Final = 217
"""Opacity of a pheromone field at its highest level, 0 to 255.

Shapes below the field must stay visible.
"""
TINT: Final = 41
"""Opacity of a zone whose colour comes from its effect, 0 to 255."""
LIMIT, SLIPPERY, CARPET = (230, 159, 0), (74, 163, 223), (139, 90, 43)
"""Colours of zones by their effect, as on the page: speed limit, slip, odometry scale."""


def draw_floor(image: Image.Image, floor: Floor | None, view: View) -> None:
    """Draw colour, picture and zones of a floor on the ground of a picture.

    Parameters
    ----------
    image : Image
        Picture of the size of the view; it is changed.
    floor : Floor or None
        Floor of the world.
    view : View
        Part of the world.
    """
    if floor is None:
        return
    if floor.color != GROUND_COLOR:
        image.paste(rgb(floor.color), (0, 0, view.width, view.height))
    if floor.picture is not None:
        _draw_picture(image, floor.picture, view)
    for zone in floor.zones:
        # One layer for each zone, because later zones cover earlier ones.
        mask = Mask(view, _fill(zone))
        mask.polygon(zone.corners)
        merge(mask.finish(), image)
        if zone.acts:
            edge = Mask(view, (*_tint(zone), 255))
            edge.line(zone.corners, closed=True)
            merge(edge.finish(), image)


def _tint(zone: FloorZone) -> tuple[int, int, int]:
    if zone.hole:
        return 0, 0, 0
    if zone.speed_limit is not None:
        return LIMIT
    return SLIPPERY if zone.slip is not None else CARPET


def _fill(zone: FloorZone) -> tuple[int, int, int, int]:
    if zone.hole:
        return 0, 0, 0, 255
    return (*rgb(zone.color), 255) if zone.color else (*_tint(zone), TINT)


def _pixel_centres(
    view: View, box: tuple[int, int, int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the world coordinates of the columns and of the rows of pixels in a box, m."""
    left, top, right, bottom = box
    x = view.left + (np.arange(left, right) + 0.5) / view.scale
    y = view.top - (np.arange(top, bottom) + 0.5) / view.scale
    return np.asarray(x, np.float64), np.asarray(y, np.float64)


def _box_of(
    view: View, x0: float, y0: float, x1: float, y1: float
) -> tuple[int, int, int, int]:
    """Return the pixels that a box of the world covers, limited to the view.

    Order: left, top, right and lower edge.
    """
    (left, bottom), (right, top) = view.pixel(x0, y0), view.pixel(x1, y1)
    return (
        min(max(math.floor(left), 0), view.width),
        min(max(math.floor(top), 0), view.height),
        min(max(math.ceil(right), 0), view.width),
        min(max(math.ceil(bottom), 0), view.height),
    )


def _draw_picture(image: Image.Image, picture: FloorPicture, view: View) -> None:
    c, s = cosine_sine(picture.origin.th)
    width, height = picture.size
    corners = [
        (
            picture.origin.x + c * u - s * v,
            picture.origin.y + s * u + c * v,
        )
        for u, v in ((0.0, 0.0), (width, 0.0), (width, height), (0.0, height))
    ]
    xs, ys = zip(*corners, strict=True)
    box = _box_of(view, min(xs), min(ys), max(xs), max(ys))
    if box[0] >= box[2] or box[1] >= box[3]:
        return
    x, y = _pixel_centres(view, box)
    dx, dy = x[None, :] - picture.origin.x, y[:, None] - picture.origin.y
    column = np.floor((c * dx + s * dy) / picture.resolution).astype(np.int64)
    row = np.floor((c * dy - s * dx) / picture.resolution).astype(np.int64)
    rows, columns, _ = picture.pixels.shape
    within = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    # Row 0 of the array is at the top of the picture, but `row` counts from below.
    found = picture.pixels[
        rows - 1 - np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)
    ]
    seen = np.where(within, 255, 0).astype(np.uint8)
    image.paste(
        Image.fromarray(np.ascontiguousarray(found[..., :3])),
        box[:2],
        Image.fromarray(seen),
    )


def draw_fields(
    image: Image.Image, fields: tuple[FieldLevels, ...], view: View
) -> None:
    """Draw the levels of pheromone fields over a picture.

    Parameters
    ----------
    image : Image
        Picture of the size of the view; it is changed.
    fields : tuple of FieldLevels
        Fields with their levels.
    view : View
        Part of the world.
    """
    for one in fields:
        x0, y0, _, _ = one.field.area
        rows, columns = one.levels.shape
        cell = one.field.cell
        box = _box_of(view, x0, y0, x0 + columns * cell, y0 + rows * cell)
        if box[0] >= box[2] or box[1] >= box[3]:
            continue
        x, y = _pixel_centres(view, box)
        column = np.clip(np.floor((x - x0) / cell), 0, columns - 1).astype(np.int64)
        row = np.clip(np.floor((y - y0) / cell), 0, rows - 1).astype(np.int64)
        opacity = np.minimum(one.levels / one.field.full, 1.0) * OPACITY
        shown = np.ceil(opacity).astype(np.uint8)[row[:, None], column[None, :]]
        image.paste(
            rgb(one.field.color), box, Image.fromarray(np.ascontiguousarray(shown))
        )


__all__ = ["draw_fields", "draw_floor"]
