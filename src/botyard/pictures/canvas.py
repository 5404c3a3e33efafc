"""A picture of a part of the world, in metres, whose size in pixels does not follow the part's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from PIL import Image, ImageDraw

from botyard.errors import WorldError

Point = tuple[float, float]
Box = tuple[float, float, float, float]
Color = tuple[int, int, int]

GROUND: Final[Color] = (255, 255, 255)
OVERSAMPLE: Final = 2
"""Pictures are drawn this much larger and reduced, which smooths the lines."""
TALLEST: Final = 4
"""A picture is at most so many times as high as it is wide; of what is higher still, it gets narrower."""
MAX_WIDTH: Final = 20_000
"""Widest picture, pixels."""
MAX_PIXELS: Final = 100_000_000
"""Larger ones get narrower: each pixel costs twelve bytes while it is drawn."""
_BESIDE: Final = 256.0
"""Things are drawn so far beside the enlarged picture, pixels, and the rest is cut off: a line takes as long as it is."""


class Canvas:
    """A picture of a part of the world.

    Parameters
    ----------
    bounds : tuple of four floats
        Least x, least y, greatest x, greatest y, m.
    width : int
        Greatest width of the finished picture, pixels, 1 … `MAX_WIDTH`; it is `TALLEST` times as high at the most, and has at most
        `MAX_PIXELS`.
    margin : float
        Free space around the bounds, m.

    Raises
    ------
    WorldError
        The width is not allowed, or the bounds are no finite box.
    """

    def __init__(self, bounds: Box, width: int, margin: float = 0.5) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise WorldError(f"a picture is 1 … {MAX_WIDTH} pixels wide, found {width}")
        x0, y0, x1, y1 = bounds[0] - margin, bounds[1] - margin, bounds[2] + margin, bounds[3] + margin
        wide, high = x1 - x0, y1 - y0
        if not (0.0 < wide < math.inf and 0.0 < high < math.inf):
            raise WorldError(f"a picture shows a finite part of the world, found {wide:g} m × {high:g} m")
        scale = min(width / wide, TALLEST * width / high)
        scale *= min(1.0, math.sqrt(MAX_PIXELS / (wide * scale) / (high * scale)))
        self.x0, self.y1 = x0, y1
        self.size = (max(1, round(wide * scale)), max(1, round(high * scale)))
        self.scale = scale * OVERSAMPLE
        self.bounds: Box = (x0, y0, x1, y1)
        self._image = Image.new("RGB", (self.size[0] * OVERSAMPLE, self.size[1] * OVERSAMPLE), GROUND)
        self._draw = ImageDraw.Draw(self._image)
        self._frame: Box = (-_BESIDE, -_BESIDE, self._image.width + _BESIDE, self._image.height + _BESIDE)

    def pixel(self, x: float, y: float) -> Point:
        """Place of a point of the world in the enlarged picture."""
        return (x - self.x0) * self.scale, (self.y1 - y) * self.scale

    def line(self, points: Iterable[Point], color: Color, width: float = 1.0) -> None:
        """A line through points of the world; `width` in pixels of the finished picture."""
        places = [self.pixel(*p) for p in points]
        wide = max(1, round(width * OVERSAMPLE))
        if self._holds(places):
            self._draw.line(places, fill=color, width=wide)
            return
        for a, b in pairwise(places):
            part = cut_line(a, b, self._frame)
            if part is not None:
                self._draw.line(part, fill=color, width=wide)

    def polygon(self, points: Sequence[Point], fill: Color | None, outline: Color | None = None) -> None:
        """A closed polygon."""
        places = [self.pixel(*p) for p in points]
        if not self._holds(places):
            places = cut_polygon(places, self._frame)
        if len(places) > 1:
            self._draw.polygon(places, fill=fill, outline=outline, width=OVERSAMPLE)

    def squares(self, corners: Iterable[Sequence[float]], edge: float, color: Color) -> None:
        """Small squares from their lower left corners."""
        x0, y0, x1, y1 = self._frame
        for x, y in corners:
            (left, bottom), (right, top) = self.pixel(x, y), self.pixel(x + edge, y + edge)
            right, bottom = max(right, left + 1), max(bottom, top + 1)
            if left < x1 and right > x0 and top < y1 and bottom > y0:
                self._draw.rectangle((max(left, x0), max(top, y0), min(right, x1), min(bottom, y1)), fill=color)

    def text(self, x: float, y: float, text: str, color: Color) -> None:
        """Text to the right of a point of the world."""
        px, py = self.pixel(x, y)
        if self._holds([(px, py)]):
            self._draw.text((px + 6 * OVERSAMPLE, py - 6 * OVERSAMPLE), text, fill=color, font_size=11 * OVERSAMPLE)

    def finish(self) -> Image.Image:
        """The picture."""
        return self._image.resize(self.size, Image.Resampling.LANCZOS)

    def _holds(self, places: Sequence[Point]) -> bool:
        x0, y0, x1, y1 = self._frame
        return all(x0 <= x <= x1 and y0 <= y <= y1 for x, y in places)


def cut_line(a: Point, b: Point, box: Box) -> tuple[Point, Point] | None:
    """The part of a line within a box; None: there is none (Liang and Barsky, 1984)."""
    first, last = 0.0, 1.0
    for origin, way, low, high in ((a[0], b[0] - a[0], box[0], box[2]), (a[1], b[1] - a[1], box[1], box[3])):
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


def cut_polygon(corners: Sequence[Point], box: Box) -> list[Point]:
    """The part of a polygon within a box, edge by edge of the box (Sutherland and Hodgman, 1974)."""
    left = list(corners)
    for axis, limit, keep_below in ((0, box[0], False), (0, box[2], True), (1, box[1], False), (1, box[3], True)):
        found: list[Point] = []
        for a, b in zip(left, left[1:] + left[:1], strict=True):
            inside_a, inside_b = (a[axis] <= limit) == keep_below, (b[axis] <= limit) == keep_below
            if inside_a:
                found.append(a)
            if inside_a != inside_b:
                share = (limit - a[axis]) / (b[axis] - a[axis])
                found.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
        left = found
    return left


__all__ = [
    "GROUND",
    "MAX_PIXELS",
    "MAX_WIDTH",
    "OVERSAMPLE",
    "TALLEST",
    "Box",
    "Canvas",
    "Color",
    "Point",
    "cut_line",
    "cut_polygon",
]
