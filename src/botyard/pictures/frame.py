"""Pixels that Pillow and kernels share (`Frame`), and images to lay over them (`Overlay`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from botyard.pictures.palette import RGBA

Words = NDArray[np.uint32]
"""Pixels, (height, width): R, G, B and opacity, one byte each, R in the lowest one."""


class Frame:
    """Picture whose pixels are an array and an image in the same memory.

    Parameters
    ----------
    width, height : int
        Size of the picture, pixels.

    Attributes
    ----------
    words : (height, width) uint32 array
        Pixels of the picture; all are transparent (0) at first.
    image : Image
        Image (RGBA) in the same memory.
    """

    def __init__(self, width: int, height: int) -> None:
        self.words: Words = np.zeros((height, width), np.uint32)
        self.image = image_of(self.words)
        # If an image is read-only, Pillow draws on a copy; here it must draw on `words`.
        self.image.readonly = 0


def image_of(words: Words) -> Image.Image:
    """Return an image (RGBA) that shares the memory of an array of pixels.

    The image is marked as read-only: when Pillow draws on it, it draws on a copy.

    Parameters
    ----------
    words : (height, width) uint32
        Pixels. The image shows later changes of them.
    """
    height, width = words.shape
    return Image.frombuffer("RGBA", (width, height), words, "raw", "RGBA", 0, 1)


class Overlay(NamedTuple):
    """Image with transparency to lay over pictures; most of its pixels are transparent.

    Attributes
    ----------
    words : (height, width) uint32 array
        Pixels of the picture.
    runs : (n, 3) int32 array
        Runs of adjacent visible pixels: row, first column, and the column after the last.
    """

    words: Words
    runs: NDArray[np.int32]


def overlay_of(words: Words) -> Overlay:
    """Return an overlay of an image: the pixels, with the runs of visible ones.

    Parameters
    ----------
    words : (height, width) uint32
        Pixels; 0 is invisible. The overlay keeps the array.
    """
    height, width = words.shape
    # A transparent column on each side makes every run start and end inside the array.
    seen = np.zeros((height, width + 2), np.int8)
    np.not_equal(words, 0, out=seen[:, 1:-1], casting="unsafe")
    flips = np.diff(seen, axis=1)
    rows, first = np.nonzero(flips == 1)
    last = np.nonzero(flips == -1)[1]
    return Overlay(
        words, np.ascontiguousarray(np.stack([rows, first, last], axis=1), np.int32)
    )


def word_of(color: RGBA) -> int:
    """Return a colour as an opaque pixel, see `Words`.

    Parameters
    ----------
    color : tuple of int
        Red, green, blue and opacity, 0 to 255; the opacity is ignored.
    """
    red, green, blue, _ = color
    return red | green << 8 | blue << 16 | 0xFF << 24


def words_of(image: Image.Image) -> Words:
    """Return a copy of an image's pixels.

    Parameters
    ----------
    image : Image
        Image of any mode.

    Returns
    -------
    (height, width) uint32
        Pixels, read-only.
    """
    return np.frombuffer(image.convert("RGBA").tobytes(), np.uint32).reshape(
        image.height, image.width
    )


__all__ = ["Frame", "Overlay", "Words", "image_of", "overlay_of", "word_of", "words_of"]
