"""Pixels that Pillow and kernels draw on (`Frame`), and images that are laid on them
(`Overlay`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from botyard.pictures.palette import RGBA

Words = NDArray[np.uint32]
"""Pixels, (height, width): R, G, B and opacity, a byte each, R in the lowest one."""


class Frame:
    """A picture whose pixels are an array and an image at once.

    Parameters
    ----------
    width, height : int
        Of the picture, pixels.

    Attributes
    ----------
    words : (height, width) uint32 array
        Its pixels; none is seen (0) at first.
    image : Image
        An image (RGBA) in the same memory.
    """

    def __init__(self, width: int, height: int) -> None:
        self.words: Words = np.zeros((height, width), np.uint32)
        self.image = image_of(self.words)
        self.image.readonly = 0  # else Pillow draws on a copy


def image_of(words: Words) -> Image.Image:
    """An image (RGBA) of pixels, in the same memory; who draws on it draws on a copy."""
    height, width = words.shape
    return Image.frombuffer("RGBA", (width, height), words, "raw", "RGBA", 0, 1)


class Overlay(NamedTuple):
    """An image with transparency that is laid on pictures, of most of which nothing is
    seen.

    Attributes
    ----------
    words : (height, width) uint32 array
        Its pixels.
    runs : (n, 3) int32 array
        What is seen of it: row, first column, and the column after the last.
    """

    words: Words
    runs: NDArray[np.int32]


def overlay_of(words: Words) -> Overlay:
    """Find out what is seen of an image."""
    height, width = words.shape
    # each run begins and ends inside
    seen = np.zeros((height, width + 2), np.int8)
    np.not_equal(words, 0, out=seen[:, 1:-1], casting="unsafe")
    flips = np.diff(seen, axis=1)
    rows, first = np.nonzero(flips == 1)
    last = np.nonzero(flips == -1)[1]
    return Overlay(
        words, np.ascontiguousarray(np.stack([rows, first, last], axis=1), np.int32)
    )


def word_of(color: RGBA) -> int:
    """A pixel of a colour, opaque."""
    red, green, blue, _ = color
    return red | green << 8 | blue << 16 | 0xFF << 24


def words_of(image: Image.Image) -> Words:
    """A copy of the pixels of an image."""
    return np.frombuffer(image.convert("RGBA").tobytes(), np.uint32).reshape(
        image.height, image.width
    )


__all__ = ["Frame", "Overlay", "Words", "image_of", "overlay_of", "word_of", "words_of"]
