"""Reading pictures as maps: grey values, and which pixels are solid."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from botyard.errors import MapError

MAX_PIXELS: Final = 200_000_000
"""Larger images are refused; this is a hall of 700 m at 5 cm."""
Image.MAX_IMAGE_PIXELS = MAX_PIXELS


def read_grey(path: str | Path, file: IO[bytes] | None = None, *, what: str = "the map's image") -> NDArray[np.uint8]:
    """The grey values of an image, (rows, columns): of coloured ones the mean of their channels, as map servers take it.

    Parameters
    ----------
    path : str or Path
        The file, or its name for messages.
    file : binary file, optional
        What to read instead of `path`.
    what : str
        What it is, for messages.

    Transparent pixels are white. 16 bits are reduced to 8.

    Raises
    ------
    MapError
        It is missing, no image, or too large.
    """
    try:
        with Image.open(path if file is None else file) as image:
            if image.width * image.height > MAX_PIXELS:
                raise MapError(
                    f"an image of {image.width} × {image.height} pixels; at most {MAX_PIXELS:.0e} are read", path
                )
            if image.mode in ("1", "L"):
                return np.asarray(image.convert("L"))
            if image.mode in ("I;16", "I;16B", "I"):
                high: NDArray[np.uint8] = (np.asarray(image.convert("I")) >> 8).astype(np.uint8)
                return high
            if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
                layered = image.convert("RGBA")
                white = Image.new("RGBA", layered.size, (255, 255, 255, 255))
                return _mean(Image.alpha_composite(white, layered).convert("RGB"))
            return _mean(image.convert("RGB"))
    except FileNotFoundError:
        raise MapError(f"{what} is not there", path) from None
    except (
        UnidentifiedImageError, OSError, Image.DecompressionBombError, ValueError, SyntaxError, EOFError, OverflowError,
    ) as error:  # fmt: skip
        raise MapError(f"{what} cannot be read: {error}", path) from None


def _mean(image: Image.Image) -> NDArray[np.uint8]:
    """Mean of three channels, rounded."""
    r, g, b = (np.asarray(channel, np.uint16) for channel in image.split())
    grey: NDArray[np.uint8] = ((2 * (r + g + b) + 3) // 6).astype(np.uint8)
    return grey


__all__ = ["MAX_PIXELS", "read_grey"]
