"""View of the world in a picture (`View`), and anti-aliased shapes (`Mask`)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from botyard.errors import WorldError
from botyard.pictures.clipping import Box, Point, clip_line, clip_polygon
from botyard.pictures.kernels.coverage import cover_boxes, cover_polygons
from botyard.pictures.kernels.outlines import EDGES, line_edges, polygon_edges
from botyard.pictures.layers import Layer
from botyard.pictures.palette import RGBA

Array = NDArray[np.float64]
Size = int | tuple[int, int]
"""Size of a picture, pixels: its largest width, or both its width and height."""

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
"""Margin around the picture to which shapes that reach far away are clipped, pixels."""
_NEAR: Final = 1e9
"""Farthest position of a shape that is drawn without clipping, pixels."""
_ROUND: Final = 32
"""Corners of the polygon that stands for a circle.

Circles are parts of the symbols of places, which are a few pixels wide.
"""


Ends = Literal["flat", "round"]
Corners = Literal["sharp", "round"]


class Form(TypedDict, total=False):
    """Form of polylines.

    Attributes
    ----------
    closed : bool
        Whether the last position of each polyline is joined to its first.
    ends, corners : str
        Form of ends ("flat", "round") and of corners ("sharp", "round").
    """

    closed: bool
    ends: Ends
    corners: Corners


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
    """Shapes in one colour, as coverage of pixels.

    All shapes of one call are drawn as one shape, so overlaps between them are not more
    opaque. Shapes of a later call lie over the shapes of earlier calls; where
    transparent ones overlap, the result is more opaque. Coverage is the part of the
    pixel's area that a shape covers, as on a canvas of a browser.

    Parameters
    ----------
    view : View
        View of the world.
    color : tuple of four
        Colour; its opacity is the default of all shapes.
    box : tuple of four ints, optional
        Part of the picture that shapes may cover: left, top, right and lower edge,
        pixels; by default the whole picture.
    """

    def __init__(
        self,
        view: View,
        color: RGBA,
        box: tuple[int, int, int, int] | None = None,
    ) -> None:
        left, top, right, bottom = box or (0, 0, view.width, view.height)
        left, top = max(left, 0), max(top, 0)
        right, bottom = min(right, view.width), min(bottom, view.height)
        self._view, self._color, self._at = view, color, (left, top)
        self.coverage = np.zeros(
            (max(bottom - top, 0), max(right - left, 0)), np.float32
        )
        self._row = np.zeros(self.coverage.shape[1] + 2)

    def line(
        self,
        points: ArrayLike,
        width: float = 1.0,
        opacity: int | None = None,
        starts: ArrayLike = (0,),
        **form: Unpack[Form],
    ) -> None:
        """Draw polylines through points of the world; see `stroke`.

        Parameters
        ----------
        points : (n, 2) array_like
            Points of the world, m.
        width : float
            Width, pixels.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        starts, **form
            As for `stroke`.
        """
        self.stroke(self._view.pixels(points), width, opacity, starts, **form)

    def stroke(
        self,
        places: ArrayLike,
        width: float,
        opacity: int | None = None,
        starts: ArrayLike = (0,),
        **form: Unpack[Form],
    ) -> None:
        """Draw polylines through positions of the picture, pixels.

        Parameters
        ----------
        places : (n, 2) array_like
            Positions in the picture, pixels.
        width : float
            Width, pixels.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        starts : (m,) array_like
            Index of the first position of each polyline, in rising order.
        **form
            See `Form`.
        """
        at = np.asarray(places, np.float64).reshape(-1, 2) - self._at
        first_of = np.asarray(starts, np.int64)
        if _is_near(at):
            self._lines(at, first_of, width, opacity, **form)
            return
        # Positions so far away are not exact, so only the visible part of each segment is
        # drawn.
        pieces: list[Point] = []
        for first, last in pairwise([*first_of.tolist(), len(at)]):
            corners = [_point(p) for p in at[first:last].tolist()]
            if form.get("closed"):
                corners.append(corners[0])
            for a, b in pairwise(corners):
                pieces += clip_line(a, b, self._frame) or ()
        ends = np.array(pieces).reshape(-1, 2)
        self._lines(ends, np.arange(0, len(ends), 2), width, opacity)

    def dashes(
        self,
        points: ArrayLike,
        width: float,
        dash: float,
        gap: float,
        *,
        closed: bool = False,
    ) -> None:
        """Draw a dashed polyline.

        Parameters
        ----------
        points : (n, 2) array_like
            Points of the world, m.
        width, dash, gap : float
            Width of the line, and lengths of dashes and gaps, pixels.
        closed : bool
            Whether the last point is joined to the first.
        """
        period, walked = dash + gap, 0.0
        pieces: list[Point] = []
        places = [_point(p) for p in (self._view.pixels(points) - self._at).tolist()]
        for a, b in pairwise([*places, places[0]] if closed else places):
            # Clip before cutting into dashes: a line far outside would give millions of
            # them.
            part = clip_line(a, b, self._frame)
            length = math.dist(*part) if part else 0.0
            if part and length:
                (ax, ay), (bx, by) = part
                ux, uy = (bx - ax) / length, (by - ay) / length
                # Dashes continue around corners.
                before = math.fmod(walked + math.dist(a, part[0]), period)
                for k in range(math.ceil((before + length) / period)):
                    s = max(k * period - before, 0.0)
                    e = min(k * period + dash - before, length)
                    if s < e:
                        pieces.append((ax + s * ux, ay + s * uy))
                        pieces.append((ax + e * ux, ay + e * uy))
            walked += math.dist(a, b)

        at = np.array(pieces).reshape(-1, 2)
        self._lines(at, np.arange(0, len(at), 2), width, None)

    def polygon(self, points: ArrayLike, opacity: int | None = None) -> None:
        """Fill a polygon.

        Parameters
        ----------
        points : (n, 2) array_like
            Corners in the world, m. Fewer than three draw nothing.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        """
        self.fill(self._view.pixels(points), opacity)

    def fill(self, places: ArrayLike, opacity: int | None = None) -> None:
        """Fill a polygon whose corners are positions of the picture, pixels.

        Parameters
        ----------
        places : (n, 2) array_like
            Corners in the picture, pixels. Fewer than three draw nothing.
        opacity : int, optional
            Opacity, 0 to 255. By default it is the opacity of the colour.
        """
        at = np.asarray(places, np.float64).reshape(-1, 2) - self._at
        if not _is_near(at):
            at = np.array(
                clip_polygon([_point(p) for p in at.tolist()], self._frame),
                np.float64,
            ).reshape(-1, 2)
        if len(at) > 2:
            edges = np.empty((len(at), 5))
            self._cover(edges[: polygon_edges(at, edges)], opacity)

    def squares(self, corners: Array, edge: float) -> None:
        """Fill squares of equal size, one over the other.

        A square covers at least one pixel.

        Parameters
        ----------
        corners : (n, 2) float64
            Lower left corners in the world, m.
        edge : float
            Length of an edge, m.
        """
        # A cell smaller than a pixel would vanish.
        side = max(edge * self._view.scale, 1.0)
        # y points down in pictures, so the lower left corner has the largest y.
        upper = self._view.pixels(corners) - self._at - (0.0, side)
        self._boxes(np.concatenate([upper, upper + side], axis=1))

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
        angle = 2.0 * np.pi / _ROUND * np.arange(_ROUND)
        places = np.stack(
            [x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1
        )
        if width is None:
            self.fill(places)
        else:
            self.stroke(places, width, closed=True)

    def rectangle(self, box: Box) -> None:
        """Fill a rectangle of the picture, pixels.

        Parameters
        ----------
        box : tuple of float
            Left, top, right and lower edge in the picture, pixels.
        """
        self._boxes(np.array([box], np.float64) - (*self._at, *self._at))

    def finish(self) -> list[Layer]:
        """Return one layer with all shapes; an empty list if nothing was drawn."""
        if not self.coverage.size:
            return []
        mask = Image.fromarray(np.rint(self.coverage * 255.0).astype(np.uint8))
        box = mask.getbbox()
        if box is None:
            return []
        return [
            Layer(
                self._color,
                (self._at[0] + box[0], self._at[1] + box[1]),
                mask.crop(box),
            )
        ]

    @property
    def _frame(self) -> Box:
        """Box around the mask to which shapes that reach far away are clipped."""
        m, (height, width) = _CLIP_MARGIN, self.coverage.shape
        return -m, -m, width + m, height + m

    def _lines(
        self,
        points: Array,
        starts: NDArray[np.int64],
        width: float,
        opacity: int | None,
        *,
        closed: bool = False,
        ends: Ends = "flat",
        corners: Corners = "sharp",
    ) -> None:
        edges = np.empty((EDGES * (len(points) + len(starts)), 5))
        count = line_edges(
            np.ascontiguousarray(points),
            np.ascontiguousarray(starts),
            float(width),
            closed,
            ends == "round",
            corners == "round",
            edges,
        )
        self._cover(edges[:count], opacity)

    def _cover(self, edges: Array, opacity: int | None) -> None:
        """Lay polygons over the coverage as one shape.

        Parameters
        ----------
        edges : (n, 5) float64
            Edges of all polygons, see `coverage.cover_polygons`.
        opacity : int or None
            Opacity, 0 to 255; None: the opacity of the colour.
        """
        cover_polygons(
            edges[np.argsort(edges[:, 1], kind="stable")],
            self._share(opacity),
            np.empty(len(edges), np.int64),
            np.empty(len(edges)),
            self._row,
            self.coverage,
        )

    def _boxes(self, boxes: Array) -> None:
        cover_boxes(np.ascontiguousarray(boxes), self._share(None), self.coverage)

    def _share(self, opacity: int | None) -> float:
        return (self._color[3] if opacity is None else opacity) / 255


def _is_near(places: Array) -> bool:
    """Return whether all positions, (n, 2), pixels, are within `_NEAR`: clipping is not needed."""
    return bool((np.abs(places) <= _NEAR).all())


def _point(pair: Any) -> Point:
    return pair[0], pair[1]


__all__ = [
    "MAX_ASPECT",
    "MAX_PIXELS",
    "MAX_WIDTH",
    "Mask",
    "Size",
    "View",
    "fit",
]
