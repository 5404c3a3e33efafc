"""Picture files with the marker by which botyard recognises its own files."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, Final

from PIL import Image, PngImagePlugin

from botyard.processes.safefile import MARK, StrPath, replacing

_SOFTWARE: Final = 0x0131
"""Number of the tag "Software", the program that made a picture (TIFF 6.0, EXIF)."""


def save_picture(image: Image.Image, path: StrPath, *, force: bool = False) -> None:
    """Write a picture in the format of the suffix.

    PNG, JPEG, WebP, TIFF, GIF, PDF, BMP and PNM get the marker; other formats cannot
    hold it.

    Parameters
    ----------
    image : Image
        The picture.
    path : path-like
        The file; its suffix decides the format.
    force : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    ValueError
        The suffix belongs to no known format.
    OSError
        The file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    kind = Image.registered_extensions().get(suffix)
    if kind is None:
        raise ValueError(
            f'path: expected a suffix of a picture format, found "{suffix}"'
        )

    # Encode in memory first: a format that fails must not leave a broken file.
    out = io.BytesIO()
    image.save(out, kind, **_marker_options(kind))
    data = _with_marker(kind, out.getvalue())
    with replacing(path, force=force) as file:
        file.write(data)


def mark_as_exif() -> bytes:
    """Return the marker as EXIF metadata."""
    exif = Image.Exif()
    exif[_SOFTWARE] = MARK
    return exif.tobytes()


def _marker_options(kind: str) -> dict[str, Any]:
    """Return the options of Pillow's `save` that add the marker.

    Parameters
    ----------
    kind : str
        Format by Pillow's name, such as ``PNG``.
    """
    if kind == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_text("Software", MARK)
        return {"pnginfo": info}

    if kind in ("JPEG", "WEBP", "TIFF"):
        return {"exif": mark_as_exif()}
    others: dict[str, dict[str, Any]] = {
        "GIF": {"comment": MARK.encode()},
        "PDF": {"producer": MARK},
    }
    return others.get(kind, {})


def _with_marker(kind: str, data: bytes) -> bytes:
    """Add the marker to the bytes of formats for which Pillow has no such option.

    BMP: the marker follows the pixels, and the file size in the header
    (BITMAPFILEHEADER ``bfSize``, bytes 2 to 5) includes it. PNM: a comment in the
    header (pbm(5): from ``#`` to the end of a line).

    Parameters
    ----------
    kind : str
        Format by Pillow's name.
    data : bytes
        Whole file.
    """
    mark = MARK.encode()
    if kind == "BMP":
        return data[:2] + struct.pack("<I", len(data) + len(mark)) + data[6:] + mark
    if kind == "PPM":
        return data[:2] + b"\n# " + mark + b"\n" + data[2:].lstrip()
    return data


__all__ = ["mark_as_exif", "save_picture"]
