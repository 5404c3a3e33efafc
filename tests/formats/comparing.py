"""Pixel-by-pixel comparison of drawings with the pictures that other programs make of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Mask = NDArray[np.bool_]
TOLERANCE = 2
"""Pixels that a line may be drawn beside another: both are rounded to whole ones."""


class Canvas:
    """A picture in black and white of a part of the plane.

    Parameters
    ----------
    low, high : (float, float)
        Its corners, in the units of what is drawn; y goes up.
    scale : float
        Pixels a unit.
    """

    def __init__(
        self, low: tuple[float, float], high: tuple[float, float], scale: float
    ) -> None:
        self._low, self._scale = low, scale
        width, height = (
            round((b - a) * scale) + 1 for a, b in zip(low, high, strict=True)
        )
        self._top = height - 1
        self._lines = Image.new("1", (width, height))
        self._filled = Image.new("1", (width, height))

    def _pixels(self, points: Iterable[Sequence[float]]) -> list[tuple[float, float]]:
        x0, y0 = self._low
        return [
            (
                round((p[0] - x0) * self._scale),
                self._top - round((p[1] - y0) * self._scale),
            )
            for p in points
        ]

    def line(self, points: Iterable[Sequence[float]]) -> None:
        ImageDraw.Draw(self._lines).line(self._pixels(points), fill=1)

    def fill(self, points: Iterable[Sequence[float]]) -> None:
        pixels = self._pixels(points)
        if len(pixels) > 1:
            ImageDraw.Draw(self._filled).polygon(pixels, fill=1, outline=1)

    @property
    def mask(self) -> Mask:
        """Return the pixels of the lines and of the borders of filled areas."""
        filled = np.pad(np.asarray(self._filled), 1)
        within = (
            filled[1:-1, 1:-1]
            & filled[:-2, 1:-1]
            & filled[2:, 1:-1]
            & filled[1:-1, :-2]
            & filled[1:-1, 2:]
        )
        return np.asarray(self._lines) | (filled[1:-1, 1:-1] & ~within)


def drawn(segments: NDArray[np.float64], canvas: Canvas) -> Mask:
    """Draw the walls of a scene."""
    for x0, y0, x1, y1 in segments.tolist():
        canvas.line([(x0, y0), (x1, y1)])
    return canvas.mask


def strays(mask: Mask, other: Mask, tolerance: int = TOLERANCE) -> Mask:
    """Return the pixels of a picture without a pixel of the other picture nearby."""
    image = Image.fromarray(other.astype(np.uint8) * 255)
    near = np.asarray(image.filter(ImageFilter.MaxFilter(2 * tolerance + 1))) > 0
    found: Mask = mask & ~near
    return found


def check_same(ours: Mask, theirs: Mask, tolerance: int = TOLERANCE) -> None:
    """Fail if the pictures differ, and name the places."""
    assert theirs.any(), "nothing was drawn: the comparison would show nothing"
    wrong, missing = strays(ours, theirs, tolerance), strays(theirs, ours, tolerance)
    places = [tuple(np.argwhere(m)[0].tolist()) for m in (wrong, missing) if m.any()]
    assert not places, (
        f"{wrong.sum()} pixels too many, {missing.sum()} missing, from {places}"
    )
