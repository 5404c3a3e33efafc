"""View of the world in a picture (`View`), and anti-aliased shapes (`Mask`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from botyard.errors import WorldError
from botyard.pictures.clipping import Box, Point, clip_line, clip_polygon
from botyard.pictures.layers import Layer
from botyard.pictures.palette import RGBA

Array = NDArray[np.float64]
Size = int | tuple[int, int]
"""Size of a picture, pixels: its largest width, or both its width and height."""

OVERSAMPLE: Final = 2
"""Factor by which masks are drawn larger and then reduced (anti-aliasing)."""
MAX_ASPECT: Final = 4
"""Largest ratio of height to width if only the width is given.

A part of the world with a greater ratio gives a narrower picture.
"""
MAX_WIDTH: Final = 20_000
"""Largest width of a picture, and largest given height, pixels."""
MAX_PIXELS: Final = 100_000_000
"""Largest number of pixels of a picture; larger ones become narrower.

Each pixel takes at most sixteen bytes during drawing.
"""
_CLIP_MARGIN: Final = 256.0
"""Margin around the enlarged picture to which shapes are clipped, pixels.

The time to draw a line grows with its length, so long lines are clipped first.
"""


class View(NamedTuple):
    """Part of the world that a picture shows.

    Attributes
    ----------
    left, top : float
        Upper left corner of the picture, m.
    scale : float
        Pixels per metre.
    width, height : int
        Size of the picture, pixels.
    """

    left: float
    top: float
    scale: float
    width: int
    height: int

    @property
    def bounds(self) -> Box:
        """Bounds of the visible part of the world, m."""
        return (
            self.left,
            self.top - self.height / self.scale,
            self.left + self.width / self.scale,
            self.top,
        )

    def pixels(self, points: ArrayLike) -> Array:
        """Convert points of the world, (n, 2), m, to positions, (n, 2), pixels.

        Parameters
        ----------
        points : (n, 2) array_like
            Points of the world, m.

        Returns
        -------
        (n, 2) float64
            Positions from the upper left corner to the right and down, pixels; they may
            be outside of the picture.
        """
        at = np.asarray(points, np.float64).reshape(-1, 2)
        places = np.stack(
            [(at[:, 0] - self.left) * self.scale, (self.top - at[:, 1]) * self.scale],
            axis=1,
        )
        # Rounding makes a point between two pixels fall on the same side in every view.
        return np.round(places, 6, out=places)

    def pixel(self, x: float, y: float) -> Point:
        """Convert a point of the world, m, to a position in the picture, pixels.

        Parameters
        ----------
        x, y : float
            Point of the world, m.
        """
        return round((x - self.left) * self.scale, 6), round(
            (self.top - y) * self.scale, 6
        )


def fit(bounds: Box, size: Size, margin: float = 0.5) -> View:
    """Return the view of a part of the world.

    Parameters
    ----------
    bounds : tuple of four floats
        The part, m.
    size : int or tuple of two
        Largest width, 1 to `MAX_WIDTH`: the picture is at most `MAX_ASPECT` times as
        high and has at most `MAX_PIXELS`. With width and height, the part is in the
        middle, and the picture shows more of the world around it.
    margin : float
        Margin around the part, m.

    Raises
    ------
    WorldError
        The size is out of range, or the bounds are not a finite box.
    """
    x0, y0, x1, y1 = (
        bounds[0] - margin,
        bounds[1] - margin,
        bounds[2] + margin,
        bounds[3] + margin,
    )
    wide, high = x1 - x0, y1 - y0
    if not (0.0 < wide < math.inf and 0.0 < high < math.inf):
        raise WorldError(
            f"bounds: expected a finite part of the world, found {wide:g} m × {high:g} m"
        )

    if isinstance(size, int):
        if not 1 <= size <= MAX_WIDTH:
            raise WorldError(
                f"size: expected a width from 1 to {MAX_WIDTH} pixels, found {size}"
            )

        scale = min(size / wide, MAX_ASPECT * size / high)
        # A picture with too many pixels shrinks in both directions.
        scale *= min(1.0, math.sqrt(MAX_PIXELS / (wide * scale) / (high * scale)))
        return View(
            x0, y1, scale, max(1, round(wide * scale)), max(1, round(high * scale))
        )

    width, height = size
    if not (
        1 <= width <= MAX_WIDTH
        and 1 <= height <= MAX_WIDTH
        and width * height <= MAX_PIXELS
    ):
        raise WorldError(
            f"size: expected sides from 1 to {MAX_WIDTH} and at most "
            f"{MAX_PIXELS} pixels, found {width} × {height}"
        )

    scale = min(width / wide, height / high)
    return View(
        (x0 + x1 - width / scale) / 2,
        (y0 + y1 + height / scale) / 2,
        scale,
        width,
        height,
    )


class Mask:
    """Shapes in one colour, drawn enlarged.

    Parameters
    ----------
    view : View
        View of the world.
    color : tuple of four
        Colour; its opacity is the default of all shapes.
    box : tuple of four ints, optional
        Part of the picture that shapes may cover: left, top, right and lower edge,
        pixels; by default the whole picture.
    oversample : int
        Factor by which it is drawn larger.
    """

    def __init__(
        self,
        view: View,
        color: RGBA,
        box: tuple[int, int, int, int] | None = None,
        oversample: int = OVERSAMPLE,
    ) -> None:
        left, top, right, bottom = box or (0, 0, view.width, view.height)

        # The image has at least one pixel, because Pillow cannot reduce an empty one.
        left, top = max(left, 0), max(top, 0)
        right, bottom = (
            max(min(right, view.width), left + 1),
            max(min(bottom, view.height), top + 1),
        )
        self._view, self._color, self._at, self._over = (
            view,
            color,
            (left, top),
            oversample,
        )

        self.image = Image.new(
            "L", ((right - left) * oversample, (bottom - top) * oversample)
        )
        self._draw = ImageDraw.Draw(self.image)
        m = _CLIP_MARGIN
        self._frame: Box = (-m, -m, self.image.width + m, self.image.height + m)

    def line(
        self, points: ArrayLike, width: float = 1.0, opacity: int | None = None
    ) -> None:
        """Draw a polyline through points of the world; `width` in picture pixels.

        Parameters
        ----------
        points : (n, 2) array_like
            Points of the world, m.
        width : float
            Width, pixels of the picture; at least one pixel of the enlarged image.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        """
        self._line(self._places(points), width, opacity)

    def dashes(self, points: ArrayLike, width: float, dash: float, gap: float) -> None:
        """Draw a dashed polyline; lengths in pixels of the picture.

        Parameters
        ----------
        points : (n, 2) array_like
            Points of the world, m.
        width, dash, gap : float
            Width of the line, and lengths of dashes and gaps, pixels of the picture.
        """
        dash, period = dash * self._over, (dash + gap) * self._over
        for a, b in pairwise(map(_point, self._places(points).tolist())):
            # Clip before cutting into dashes: a line far outside would give millions of
            # them.
            part = clip_line(a, b, self._frame)
            length = math.dist(*part) if part else 0.0
            if not part or not length:
                continue
            (ax, ay), (bx, by) = part
            ux, uy = (bx - ax) / length, (by - ay) / length
            for k in range(math.ceil(length / period)):
                s, e = k * period, min(k * period + dash, length)
                self._line(
                    np.array([[ax + s * ux, ay + s * uy], [ax + e * ux, ay + e * uy]]),
                    width,
                    None,
                )

    def polygon(self, points: ArrayLike, opacity: int | None = None) -> None:
        """Fill a polygon.

        Parameters
        ----------
        points : (n, 2) array_like
            Corners in the world, m. Fewer than two draw nothing.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        """
        places = self._places(points)
        if not self._contains(places):
            places = np.array(
                clip_polygon([_point(p) for p in places.tolist()], self._frame),
                np.float64,
            )

        if len(places) > 1:
            self._draw.polygon(places.ravel().tolist(), fill=self._fill(opacity))

    def squares(self, corners: Array, edge: float) -> None:
        """Fill squares given by their lower left corners, (n, 2).

        A square covers at least one pixel.

        Parameters
        ----------
        corners : (n, 2) float64
            Lower left corners in the world, m.
        edge : float
            Length of an edge, m.
        """
        places = self._places(corners)

        # A cell smaller than a pixel would vanish.
        side = max(edge * self._view.scale, 1.0) * self._over

        # y points down in pictures, so the lower left corner has the largest y.
        boxes = np.stack(
            [
                places[:, 0],
                places[:, 1] - side,
                places[:, 0] + side - 1,
                places[:, 1] - 1,
            ],
            axis=1,
        )

        x0, y0, x1, y1 = self._frame
        seen = (
            (boxes[:, 0] < x1)
            & (boxes[:, 2] > x0)
            & (boxes[:, 1] < y1)
            & (boxes[:, 3] > y0)
        )

        boxes = np.clip(boxes[seen], [x0, y0, x0, y0], [x1, y1, x1, y1])

        # Many cells of a fine map fall on the same pixels; each rectangle is drawn
        # once.
        for box in np.unique(np.rint(boxes).astype(np.int64), axis=0).tolist():
            self._draw.rectangle(box, fill=self._fill(None))

    def circle(
        self, x: float, y: float, radius: float, width: float | None = None
    ) -> None:
        """Draw a circle around a position of the picture, pixels.

        With a `width`, draw only the outline; otherwise fill the circle.

        Parameters
        ----------
        x, y, radius : float
            Centre and radius in the picture, pixels.
        width : float, optional
            Width of the outline, pixels.
        """
        box = self._box(x - radius, y - radius, x + radius, y + radius)
        if width is None:
            self._draw.ellipse(box, fill=self._fill(None))
        else:
            self._draw.ellipse(
                box, outline=self._fill(None), width=round(width * self._over)
            )

    def stroke(self, places: ArrayLike, width: float) -> None:
        """Draw a polyline through positions of the picture, pixels.

        Parameters
        ----------
        places : (n, 2) array_like
            Positions in the picture, pixels.
        width : float
            Width, pixels of the picture.
        """
        at = (np.asarray(places, np.float64).reshape(-1, 2) - self._at) * self._over
        self._line(at, width, None)

    def strokes(self, places: Array, begins: Sequence[int], width: float) -> None:
        """Draw polylines through positions of the picture, pixels.

        Parameters
        ----------
        places : (n, 2) float64
            Positions of all polylines in the picture, pixels.
        begins : sequence of int
            Index of the first position of each polyline, in rising order.
        width : float
            Width, pixels of the picture.
        """
        at = (places - self._at) * self._over
        wide = max(1, round(width * self._over))
        # Clipping is slow, so it is used only for positions outside the picture.
        if not self._contains(at):
            for first, last in pairwise([*begins, len(at)]):
                self._line(at[first:last], width, None)
            return

        flat = at.ravel().tolist()
        for first, last in pairwise([*begins, len(at)]):
            if last - first > 1:
                self._draw.line(
                    flat[2 * first : 2 * last], fill=self._color[3], width=wide
                )

    def fill(self, places: ArrayLike) -> None:
        """Fill a polygon whose corners are positions of the picture, pixels.

        Parameters
        ----------
        places : (n, 2) array_like
            Corners in the picture, pixels.
        """
        at = (np.asarray(places, np.float64).reshape(-1, 2) - self._at) * self._over
        if len(at) > 1:
            self._draw.polygon(at.ravel().tolist(), fill=self._color[3])

    def rectangle(self, box: Box) -> None:
        """Fill a rectangle of the picture, pixels.

        Parameters
        ----------
        box : tuple of float
            Left, top, right and lower edge in the picture, pixels.
        """
        self._draw.rectangle(self._box(*box), fill=self._fill(None))

    def finish(self) -> list[Layer]:
        """Return the reduced shapes as a layer; no layer if nothing was drawn."""
        small = self.image.reduce(self._over) if self._over > 1 else self.image
        box = small.getbbox()
        if box is None:
            return []
        return [
            Layer(
                self._color,
                (self._at[0] + box[0], self._at[1] + box[1]),
                small.crop(box),
            )
        ]

    def _fill(self, opacity: int | None) -> int:
        return self._color[3] if opacity is None else opacity

    def _places(self, points: ArrayLike) -> Array:
        return (self._view.pixels(points) - self._at) * self._over

    def _box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        (left, top), k = self._at, self._over
        return (x0 - left) * k, (y0 - top) * k, (x1 - left) * k, (y1 - top) * k

    def _line(self, places: Array, width: float, opacity: int | None) -> None:
        """Draw a polyline, clipped to the enlarged image.

        Parameters
        ----------
        places : (n, 2) float64
            Positions in the enlarged image, pixels.
        width : float
            Width, pixels of the picture.
        opacity : int or None
            Opacity, 0 to 255; None for the opacity of the colour.
        """
        wide = max(1, round(width * self._over))
        if self._contains(places):
            # Rounded joints are visible only on thick lines.
            joint = "curve" if wide > 6 else None
            self._draw.line(
                places.ravel().tolist(),
                fill=self._fill(opacity),
                width=wide,
                joint=joint,
            )
            return

        for a, b in pairwise(map(_point, places.tolist())):
            part = clip_line(a, b, self._frame)
            if part is not None:
                self._draw.line(part, fill=self._fill(opacity), width=wide)

    def _contains(self, places: Array) -> bool:
        """Return whether all positions, (n, 2), can be drawn without clipping."""
        x0, y0, x1, y1 = self._frame
        x, y = places[:, 0], places[:, 1]
        return bool(((x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)).all())


def _point(pair: Any) -> Point:
    return pair[0], pair[1]


__all__ = [
    "MAX_ASPECT",
    "MAX_PIXELS",
    "MAX_WIDTH",
    "OVERSAMPLE",
    "Mask",
    "Size",
    "View",
    "fit",
]
