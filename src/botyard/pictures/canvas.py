"""A drawing canvas in world coordinates (m) with a bounded size in pixels."""

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

BACKGROUND: Final[Color] = (255, 255, 255)
OVERSAMPLE: Final = 2
"""Supersampling factor: pictures are drawn this much larger and then reduced (anti-aliasing)."""
MAX_ASPECT: Final = 4
"""Largest ratio of height to width; a higher part of the world gives a narrower picture."""
MAX_WIDTH: Final = 20_000
"""Widest picture, pixels."""
MAX_PIXELS: Final = 100_000_000
"""Most pixels of a picture; larger ones get narrower. Each pixel takes twelve bytes while it is drawn."""
_CLIP_MARGIN: Final = 256.0
"""Shapes are clipped this far outside the enlarged picture, pixels: the time to draw a line grows with its length."""


class Canvas:
    """A canvas for a part of the world, drawn with Pillow.

    Parameters
    ----------
    bounds : tuple of four floats
        Least x, least y, greatest x, greatest y, m.
    width : int
        Greatest width of the finished picture, pixels, 1 … `MAX_WIDTH`; it is `MAX_ASPECT` times as high at the most, and has at most
        `MAX_PIXELS`.
    margin : float
        Margin around the bounds, m.

    Raises
    ------
    WorldError
        The width is out of range, or the bounds are not a finite box.
    """

    def __init__(self, bounds: Box, width: int, margin: float = 0.5) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise WorldError(f"a picture is 1 … {MAX_WIDTH} pixels wide, found {width}")
        x0, y0, x1, y1 = bounds[0] - margin, bounds[1] - margin, bounds[2] + margin, bounds[3] + margin
        wide, high = x1 - x0, y1 - y0
        if not (0.0 < wide < math.inf and 0.0 < high < math.inf):
            raise WorldError(f"a picture shows a finite part of the world, found {wide:g} m × {high:g} m")
        scale = min(width / wide, MAX_ASPECT * width / high)
        scale *= min(1.0, math.sqrt(MAX_PIXELS / (wide * scale) / (high * scale)))
        self.x0, self.y1 = x0, y1
        self.size = (max(1, round(wide * scale)), max(1, round(high * scale)))
        self.scale = scale * OVERSAMPLE
        self.bounds: Box = (x0, y0, x1, y1)
        self._image = Image.new("RGB", (self.size[0] * OVERSAMPLE, self.size[1] * OVERSAMPLE), BACKGROUND)
        self._draw = ImageDraw.Draw(self._image)
        self._frame: Box = (
            -_CLIP_MARGIN,
            -_CLIP_MARGIN,
            self._image.width + _CLIP_MARGIN,
            self._image.height + _CLIP_MARGIN,
        )

    def pixel(self, x: float, y: float) -> Point:
        """Convert a point of the world, m, to pixels of the enlarged picture."""
        return (x - self.x0) * self.scale, (self.y1 - y) * self.scale

    def line(self, points: Iterable[Point], color: Color, width: float = 1.0) -> None:
        """Draw a polyline through points of the world; `width` in pixels of the finished picture."""
        places = [self.pixel(*p) for p in points]
        wide = max(1, round(width * OVERSAMPLE))
        if self._contains(places):
            self._draw.line(places, fill=color, width=wide)
            return
        for a, b in pairwise(places):
            part = clip_line(a, b, self._frame)
            if part is not None:
                self._draw.line(part, fill=color, width=wide)

    def polygon(self, points: Sequence[Point], fill: Color | None, outline: Color | None = None) -> None:
        """Draw a closed polygon."""
        places = [self.pixel(*p) for p in points]
        if not self._contains(places):
            places = clip_polygon(places, self._frame)
        if len(places) > 1:
            self._draw.polygon(places, fill=fill, outline=outline, width=OVERSAMPLE)

    def squares(self, corners: Iterable[Sequence[float]], edge: float, color: Color) -> None:
        """Draw squares of an edge length, m, from their lower left corners."""
        x0, y0, x1, y1 = self._frame
        for x, y in corners:
            (left, bottom), (right, top) = self.pixel(x, y), self.pixel(x + edge, y + edge)
            right, bottom = max(right, left + 1), max(bottom, top + 1)
            if left < x1 and right > x0 and top < y1 and bottom > y0:
                self._draw.rectangle((max(left, x0), max(top, y0), min(right, x1), min(bottom, y1)), fill=color)

    def text(self, x: float, y: float, text: str, color: Color) -> None:
        """Write text to the right of a point of the world."""
        px, py = self.pixel(x, y)
        if self._contains([(px, py)]):
            self._draw.text((px + 6 * OVERSAMPLE, py - 6 * OVERSAMPLE), text, fill=color, font_size=11 * OVERSAMPLE)

    def finish(self) -> Image.Image:
        """Return the picture, reduced to its final size."""
        return self._image.resize(self.size, Image.Resampling.LANCZOS)

    def _contains(self, places: Sequence[Point]) -> bool:
        x0, y0, x1, y1 = self._frame
        return all(x0 <= x <= x1 and y0 <= y <= y1 for x, y in places)


def clip_line(a: Point, b: Point, box: Box) -> tuple[Point, Point] | None:
    """Clip a line to a box; None if nothing is left (Liang and Barsky, 1984)."""
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


def clip_polygon(corners: Sequence[Point], box: Box) -> list[Point]:
    """Clip a polygon to a box, edge by edge of the box (Sutherland and Hodgman, 1974)."""
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
    "BACKGROUND",
    "MAX_ASPECT",
    "MAX_PIXELS",
    "MAX_WIDTH",
    "OVERSAMPLE",
    "Box",
    "Canvas",
    "Color",
    "Point",
    "clip_line",
    "clip_polygon",
]
