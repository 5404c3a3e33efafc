"""Decoding of images for maps: bounded in size, converted to grey values."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from botyard.errors import FormatError, MapError
from botyard.formats.base import Source, reason_of
from botyard.formats.budget import Meter

FORMATS: Final = ("PNG", "PPM", "BMP", "DIB", "GIF", "JPEG", "TIFF", "WEBP")
"""Image formats that are decoded; the file's suffix does not matter.

Other formats of the library run programs (EPS) or are useless as maps.
"""
_LOCK: Final = threading.Lock()
_BAND_PIXELS: Final = 4_000_000
"""Number of pixels of a colour image that are converted at a time; bounds the memory.
"""
_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339
"""Tags of TIFF (TIFF 6.0, section 8 and page 80)."""
_WIDE: Final = ("I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow with up to 16 bits for a pixel."""
_FULL: Final = (1.0, 255.0, 32767.0, 65535.0, 2.0**31 - 1.0, 2.0**32 - 1.0)
"""Possible values of a white pixel: 1.0, or the largest integers of 8 to 32 bits.

Files of more than 8 bits do not declare which of these values they use.
"""


def read_grey(
    source: Source,
    meter: Meter,
    *,
    what: str = "the map's image",
    behind: int = 255,
    whole: bool = False,
    upright: bool = False,
    first: bool = False,
) -> NDArray[np.uint8]:
    """Return the grey values of an image, (rows, columns).

    The grey value of a coloured pixel is the mean of its channels, as in map servers.
    12 and 16 bits are reduced to 8. Pictures of 32-bit integers or floating-point values are
    scaled by the smallest full scale that holds all values (see `_FULL`).

    Parameters
    ----------
    source : Source
        Image file.
    meter : Meter
        Counts the pixels before they are decoded.
    what : str
        Name of the image in messages.
    behind : int
        Grey value behind transparent pixels.
    whole : bool
        Whether a partly transparent pixel counts as fully transparent.
    upright : bool
        Whether to rotate the picture by its EXIF orientation (EXIF 2.32, tag 0x0112),
        as viewers do. Map servers do not.
    first : bool
        Whether to use the first colour channel and ignore transparency, as Stage does.

    Raises
    ------
    MapError
        The file is not an image, is truncated, or is too large.
    """
    with open_picture(source, meter, what) as image:
        if upright:
            ImageOps.exif_transpose(image, in_place=True)
        return _grey(image, behind, whole, first)


@contextlib.contextmanager
def open_picture(source: Source, meter: Meter, what: str) -> Iterator[Image.Image]:
    """Open an image within the budget.

    Errors inside of the context become a `MapError` of this file.

    Raises
    ------
    MapError
        The file is not an image, is truncated, or is too large.
    """
    try:
        with _open(source.data) as image:
            meter.add("cells", image.width * image.height, path=source.name)
            image.load()
            yield image
    except FormatError:
        raise
    except UnidentifiedImageError:
        raise MapError(
            f"{what} cannot be read: expected {', '.join(FORMATS)}, with grey values "
            "of 1, 8, 12, 16 or 32 bits, or colours of 8 bits",
            source.name,
        ) from None
    except Exception as error:
        # The library raises exceptions of all kinds for damaged files.
        raise MapError(
            f"{what} cannot be read: {reason_of(error)}", source.name
        ) from None


def _open(data: bytes) -> Image.Image:
    """Open an image, and read only its header.

    The library's own size limit is off, because the caller checks the budget.
    """
    # The limit is a global variable of the library, so only one thread may change it.
    with _LOCK:
        usual, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(io.BytesIO(data), formats=FORMATS)
        finally:
            Image.MAX_IMAGE_PIXELS = usual


class _Numbers(NamedTuple):
    """Meaning of the pixel values of a picture with more than 8 bits.

    Attributes
    ----------
    full : float
        Value of white, or 0 for modes of 8 bits.
    unsigned : bool
        Whether numbers of 32 bits are unsigned; the library reads them as signed.
    inverted : bool
        Whether 0 is white.
    """

    full: float = 0.0
    unsigned: bool = False
    inverted: bool = False

    def of(self, image: Image.Image) -> NDArray[Any]:
        """Return the pixel values of a band of rows as an array."""
        values = np.asarray(image)
        return values.view(np.uint32) if self.unsigned else values


def _numbers(image: Image.Image, bands: list[tuple[int, int]]) -> _Numbers:
    """Return how the pixel values of a picture encode grey levels."""
    if image.mode not in (*_WIDE, "I", "F"):
        return _Numbers()
    tags = getattr(image, "tag_v2", None) or {}
    # Pillow applies this tag (0: white is zero) only to pictures of up to 8 bits.
    inverted = tags.get(_PHOTOMETRIC) == 0
    if image.mode in _WIDE:
        (bits,) = tags.get(_BITS, (16,))[:1]
        return _Numbers(float((1 << bits) - 1), inverted=inverted)
    # The library has already scaled the values to 16 bits.
    if image.mode == "I" and image.format == "PPM":
        return _Numbers(65535.0)
    # Without the tag SampleFormat, the numbers of a TIFF are unsigned.
    unsigned = image.mode == "I" and tags.get(_SAMPLE_FORMAT, (1,))[0] == 1
    found = _Numbers(unsigned=unsigned, inverted=inverted)
    scales = [_full_scale(found.of(_crop(image, *band))) for band in bands]
    return found._replace(full=max(scales, default=1.0))


def _grey(
    image: Image.Image, behind: int, whole: bool, first: bool = False
) -> NDArray[np.uint8]:
    """Return the grey values of an open image.

    Parameters
    ----------
    image : Image
        Image of Pillow, already loaded.
    behind, whole, first
        As for `read_grey`.

    Returns
    -------
    (rows, columns) uint8
        Grey values, 0 black, with the top row first.
    """
    if image.mode in ("1", "L") and (first or "transparency" not in image.info):
        return np.asarray(image.convert("L"))
    grey = np.empty((image.height, image.width), np.uint8)
    rows = max(1, _BAND_PIXELS // image.width)
    bands = [
        (top, min(top + rows, image.height)) for top in range(0, image.height, rows)
    ]
    numbers = _numbers(image, bands)
    for top, bottom in bands:
        band = _crop(image, top, bottom)
        # Modes that do not start with a red channel are converted first.
        if first and image.mode in ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
            band = band.convert("RGB")
        grey[top:bottom] = (
            np.asarray(band.getchannel(0))
            if first and len(band.getbands()) > 1
            else _band(band, behind, whole, numbers)
        )

    return grey


def _crop(image: Image.Image, top: int, bottom: int) -> Image.Image:
    return image.crop((0, top, image.width, bottom))


def _full_scale(values: NDArray[Any]) -> float:
    """Return the smallest value of `_FULL` that is at least as large as all values of a band.

    Parameters
    ----------
    values : array
        Pixel values. Infinite values and NaN are ignored.
    """
    most = float(np.max(values, where=np.isfinite(values), initial=0.0))
    return next((full for full in _FULL if most <= full), most)


def _band(
    image: Image.Image, behind: int, whole: bool, numbers: _Numbers
) -> NDArray[np.uint8]:
    """Return the grey values of a band of rows, 0 to 255.

    Parameters
    ----------
    image : Image
        Rows of an image, in any mode of Pillow.
    behind : int
        Grey value behind transparent pixels, and of pixels that are NaN or infinite.
    whole : bool
        Whether a partly transparent pixel counts as fully transparent.
    numbers : _Numbers
        Meaning of numbers of more than 8 bits in the whole image.

    Returns
    -------
    (rows, columns) uint8
        Grey values, 0 black.
    """
    if image.mode in _WIDE:
        values = np.clip(np.asarray(image.convert("I")), 0, int(numbers.full))
        high: NDArray[np.uint8] = (values * 256 // (int(numbers.full) + 1)).astype(
            np.uint8
        )
        return 255 - high if numbers.inverted else high

    if numbers.full:
        share = np.asarray(numbers.of(image), np.float64) / numbers.full
        if numbers.inverted:
            share = 1.0 - share
        # A pixel that is NaN or infinite is treated like a transparent one.
        share[~np.isfinite(share)] = behind / 255.0
        scaled: NDArray[np.uint8] = np.rint(255.0 * np.clip(share, 0.0, 1.0)).astype(
            np.uint8
        )
        return scaled

    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layered = image.convert("RGBA")
        if whole:
            layered.putalpha(
                layered.getchannel("A").point(lambda alpha: 255 if alpha == 255 else 0)
            )

        ground = Image.new("RGBA", layered.size, (behind, behind, behind, 255))
        return _mean(Image.alpha_composite(ground, layered).convert("RGB"))

    return _mean(image.convert("RGB"))


def _mean(image: Image.Image) -> NDArray[np.uint8]:
    """Return the rounded mean of three channels."""
    r, g, b = (np.asarray(channel, np.uint16) for channel in image.split())
    grey: NDArray[np.uint8] = ((2 * (r + g + b) + 3) // 6).astype(np.uint8)
    return grey


__all__ = ["FORMATS", "open_picture", "read_grey"]
