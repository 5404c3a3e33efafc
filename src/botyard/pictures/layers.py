"""Shapes and texts in one colour (`Layer`), and their drawing on pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from botyard.pictures.palette import RGBA

FONT_SIZE: Final = 12


class Layer(NamedTuple):
    """Shapes in one colour: position in a picture, and coverage (mode L).

    Attributes
    ----------
    color : tuple of int
        Red, green, blue and opacity; only the mask decides the opacity.
    at : (int, int)
        Left and top edge of the mask in the picture, pixels.
    mask : Image
        Coverage, 0 to 255 (mode L).
    """

    color: RGBA
    at: tuple[int, int]
    mask: Image.Image

    def paste(self, image: Image.Image) -> None:
        """Draw the shape on a picture with transparency (RGBA)."""
        # Paste an image, not a colour: Pillow takes twice the time for a colour.
        image.paste(
            Image.new("RGBA", self.mask.size, self.color[:3]), self.at, self.mask
        )


@lru_cache(maxsize=4)
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def text_width(words: str) -> float:
    """Return the width of a text in a font of `FONT_SIZE`, pixels."""
    return float(_font(FONT_SIZE).getlength(words))


# Keep the results, because labels repeat in every frame of a movie.
@lru_cache(maxsize=512)
def _text(words: str, ground: int, size: int) -> tuple[Image.Image, Image.Image]:
    """Return a text and its background as masks; the baseline starts at (4, 4 + size).

    Parameters
    ----------
    words : str
        Text to draw.
    ground : int
        Opacity of the background, 0 to 255.
    size : int
        Size of the font, pixels.

    Returns
    -------
    tuple of Image
        Coverage (mode L) of the background and of the letters.
    """
    font = _font(size)
    wide = math.ceil(font.getlength(words)) + 8
    masks = []
    for halo in (True, False):
        # The margin of 4 pixels has room for the halo around the letters.
        mask = Image.new("L", (wide, size + 12))
        ImageDraw.Draw(mask).text(
            (4, 4 + size),
            words,
            fill=ground if halo else 255,
            font=font,
            anchor="ls",
            stroke_width=1.5 if halo else 0,
        )
        masks.append(mask)

    return masks[0], masks[1]


def text(words: str, x: float, y: float, color: RGBA, ground: RGBA) -> list[Layer]:
    """Return a text whose baseline starts at a position of the picture, pixels.

    Parameters
    ----------
    words : str
        Text to draw.
    x, y : float
        Start of the baseline in the picture, pixels.
    color, ground : tuple of int
        Colours of the letters, and of the halo around them.
    """
    halo, letters = _text(words, ground[3], FONT_SIZE)
    at = round(x) - 4, round(y) - 4 - FONT_SIZE
    return [Layer(ground, at, halo), Layer(color, at, letters)]


def paste(layers: Iterable[Layer], image: Image.Image) -> None:
    """Draw layers on a picture, one above the other.

    Parameters
    ----------
    layers : iterable of Layer
        Layers from below to above.
    image : Image
        Opaque picture (RGBA), which is changed.
    """
    for layer in layers:
        layer.paste(image)


def merge(layers: Iterable[Layer], image: Image.Image) -> None:
    """Draw layers one above the other on an empty image (RGBA).

    Parameters
    ----------
    layers : iterable of Layer
        Layers from below to above.
    image : Image
        Transparent image (RGBA), which is changed.
    """
    width, height = image.size
    for color, at, mask in layers:
        left, top = max(at[0], 0), max(at[1], 0)
        right, bottom = min(at[0] + mask.width, width), min(at[1] + mask.height, height)
        # A label near the edge can be partly outside the picture.
        if left < right and top < bottom:
            seen = mask.crop((left - at[0], top - at[1], right - at[0], bottom - at[1]))
            part = Image.new("RGBA", seen.size, color[:3])
            part.putalpha(seen)
            image.alpha_composite(part, (left, top))


__all__ = ["Layer", "merge", "paste", "text", "text_width"]
