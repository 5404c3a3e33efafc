"""Pictures into files that users name, with the mark by which this program knows its own."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, Final

from PIL import Image, PngImagePlugin

from botyard.safefile import MARK, StrPath, replacing

_SOFTWARE: Final = 0x0131
"""Tag of the program that made a picture (TIFF 6.0, "Software"; EXIF uses the same tags)."""


def save_picture(image: Image.Image, path: StrPath, *, force: bool = False) -> None:
    """Write a picture; the suffix says the format. PNG, JPEG, WebP, TIFF, GIF, PDF, BMP and PNM have room for the mark, the others do not.

    Raises
    ------
    KeptFileError
        There is a file that this program did not write, and `force` is False.
    ValueError
        No format has this suffix.
    OSError
        It cannot be written.
    """
    suffix = Path(path).suffix.lower()
    kind = Image.registered_extensions().get(suffix)
    if kind is None:
        raise ValueError(f'no format of pictures has the suffix "{suffix}"')
    out = io.BytesIO()
    image.save(out, kind, **_marked(kind))
    data = _mark_put_in(kind, out.getvalue())
    with replacing(path, force=force) as file:
        file.write(data)


def _marked(kind: str) -> dict[str, Any]:
    """What puts the mark into a picture of a format of Pillow's."""
    if kind == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_text("Software", MARK)
        return {"pnginfo": info}
    if kind in ("JPEG", "WEBP", "TIFF"):
        exif = Image.Exif()
        exif[_SOFTWARE] = MARK
        return {"exif": exif}
    others: dict[str, dict[str, Any]] = {"GIF": {"comment": MARK.encode()}, "PDF": {"producer": MARK}}
    return others.get(kind, {})


def _mark_put_in(kind: str, data: bytes) -> bytes:
    """The mark in a picture of a format that Pillow puts none into.

    BMP: behind the pixels, whose place the header names (BITMAPFILEHEADER: ``bfSize``, bytes 2 … 5, counts it). PNM: a comment in
    the header (pbm(5): from ``#`` to the end of a line).
    """
    mark = MARK.encode()
    if kind == "BMP":
        return data[:2] + struct.pack("<I", len(data) + len(mark)) + data[6:] + mark
    if kind == "PPM":
        return data[:2] + b"\n# " + mark + b"\n" + data[2:].lstrip()
    return data


__all__ = ["save_picture"]
