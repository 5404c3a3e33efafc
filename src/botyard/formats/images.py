"""Decoding of images for maps: bounded in size, converted to grey values."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from botyard.errors import FormatError, MapError
from botyard.formats.base import Source
from botyard.formats.budget import Meter
from botyard.names import shown

FORMATS: Final = ("PNG", "PPM", "BMP", "DIB", "GIF", "JPEG", "TIFF", "WEBP")
"""Image formats that are decoded, whatever the file's name: others of the library run programs (EPS) or are useless as maps."""
_LOCK: Final = threading.Lock()
_BAND_PIXELS: Final = 4_000_000
"""Pixels of a colour image that are converted at a time: bounds the memory."""


def read_grey(source: Source, meter: Meter, *, what: str = "the map's image") -> NDArray[np.uint8]:
    """The grey values of an image, (rows, columns): of coloured ones the mean of their channels, as map servers take it.

    Parameters
    ----------
    source : Source
        The file.
    meter : Meter
        Counts its pixels, before they are decoded.
    what : str
        What it is, for messages.

    Transparent pixels are white. 16 bits are reduced to 8.

    Raises
    ------
    MapError
        It is no image, cut off, or too large.
    """
    with open_picture(source, meter, what) as image:
        return _grey(image)


@contextlib.contextmanager
def open_picture(source: Source, meter: Meter, what: str) -> Iterator[Image.Image]:
    """Open an image within the budget; errors while it is open are raised as `MapError` of this file.

    Raises
    ------
    MapError
        It is no image, cut off, or too large.
    """
    try:
        with _open(source.data) as image:
            meter.add("cells", image.width * image.height, path=source.name)
            image.load()
            yield image
    except FormatError:
        raise
    except Exception as error:  # the library raises all kinds of exceptions for damaged files
        reason = shown(error, 200) if str(error) else type(error).__name__
        raise MapError(f"{what} cannot be read: {reason}", source.name) from None


def _open(data: bytes) -> Image.Image:
    """Open an image: reads the header only. The library's own size limit is off, because the caller checks the budget's."""
    with _LOCK:
        usual, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(io.BytesIO(data), formats=FORMATS)
        finally:
            Image.MAX_IMAGE_PIXELS = usual


def _grey(image: Image.Image) -> NDArray[np.uint8]:
    if image.mode in ("1", "L"):
        return np.asarray(image.convert("L"))
    grey = np.empty((image.height, image.width), np.uint8)
    rows = max(1, _BAND_PIXELS // image.width)
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        grey[top:bottom] = _band(image.crop((0, top, image.width, bottom)))
    return grey


def _band(image: Image.Image) -> NDArray[np.uint8]:
    """Grey values of a band of rows."""
    if image.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):
        high: NDArray[np.uint8] = (np.clip(np.asarray(image.convert("I")), 0, 65535) >> 8).astype(np.uint8)
        return high
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layered = image.convert("RGBA")
        white = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        return _mean(Image.alpha_composite(white, layered).convert("RGB"))
    return _mean(image.convert("RGB"))


def _mean(image: Image.Image) -> NDArray[np.uint8]:
    """Mean of three channels, rounded."""
    r, g, b = (np.asarray(channel, np.uint16) for channel in image.split())
    grey: NDArray[np.uint8] = ((2 * (r + g + b) + 3) // 6).astype(np.uint8)
    return grey


__all__ = ["FORMATS", "open_picture", "read_grey"]
