"""Writes movies, picture by picture: GIF and WebP by Pillow, MP4 by PyAV (the extra
``movie``).

Of GIF and WebP each frame has what has changed since the frame before, and nothing is
kept in memory but that frame. Layouts: "GIF89a Specification" (CompuServe, 1990); "WebP
Container Specification" (Google). Marks by which botyard recognises its files are in
all three.
"""

from __future__ import annotations

import io
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from botyard.errors import ArgumentError, WorldError
from botyard.extras import is_installed, lacking
from botyard.pictures.files import mark_as_exif
from botyard.pictures.frame import Words, image_of
from botyard.pictures.kernels.pixels import to_yuv420
from botyard.processes.safefile import MARK, StrPath, replacing

SUFFIXES: Final = (".gif", ".webp", ".mp4")
"""Of movies."""
FPS_LIMITS: Final[dict[str, float]] = {".gif": 50.0, ".webp": 100.0, ".mp4": 120.0}
"""Most frames a second. Times in a GIF are hundredths of a second, and players show
frames that are shorter than two of them slowly.
"""
MIN_FPS: Final = 0.001
"""Least frames a second: a frame lasts for at most 1000 s."""
MAX_FRAMES: Final = 200_000
"""Most frames of a movie."""
MAX_FRAME_PIXELS: Final = 10_000_000
"""Most pixels of a frame."""
MAX_SIDE: Final = 16_383
"""Longest side of a frame, pixels: WebP can have no longer ones, nor x264 those that
are even.
"""
_CRF: Final = "20"
"""Quality of MP4: 18 is hardly told from the pictures, 23 is x264's default."""
_SEARCH: Final = "subme=1"
"""How finely x264 looks for where things have moved: what it does else takes a tenth of
the time, for 7 % less room.
"""


class Movie(Protocol):
    """A movie that is written."""

    def add(self, frame: Words) -> None:
        """Append a frame; its pixels may change afterwards."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def check_frame(width: int, height: int) -> None:
    """Raise WorldError if a frame of this size, pixels, is too large for a movie."""
    if max(width, height) > MAX_SIDE:
        raise WorldError(
            f"sides of a frame of a movie have at most {MAX_SIDE} pixels, found {width} × {height}"
        )

    if width * height > MAX_FRAME_PIXELS:
        raise WorldError(
            f"a frame of a movie has at most {MAX_FRAME_PIXELS} pixels, found {width} × {height}"
        )


def check_movie(path: StrPath, fps: float) -> None:
    """Check that a movie can be written.

    Raises
    ------
    ArgumentError
        The suffix is of no format of movies, or that does not have so many, or so few,
        frames a second.
    WorldError
        The extra ``movie`` is missing.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(
            f'path: expected a suffix of movies ({", ".join(SUFFIXES)}), found "{suffix}" in {path}'
        )

    if not MIN_FPS <= fps <= FPS_LIMITS[suffix]:
        raise ArgumentError(
            f"fps: expected at least {MIN_FPS:g} and at most "
            f"{FPS_LIMITS[suffix]:g} with {suffix}, found {fps:g}"
        )

    if suffix == ".mp4" and not is_installed("movie"):
        raise WorldError(lacking("MP4", "movie"))


@contextmanager
def writing_movie(path: StrPath, fps: float, *, force: bool = False) -> Iterator[Movie]:
    """Write a movie in the format of the suffix; the file appears when the block has
    succeeded.

    Parameters
    ----------
    path : path-like
        The file.
    fps : float
        Frames a second.
    force : bool
        Replace it whoever wrote it.

    Raises
    ------
    ArgumentError, WorldError
        See `check_movie`; or a frame is too large or of another size than the first, or
        there are too many.
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    OSError
        It cannot be written.
    """
    check_movie(path, fps)
    rate = Fraction(fps).limit_denominator(1000)
    kinds: dict[str, Any] = {".gif": _Gif, ".webp": _WebP, ".mp4": _Mp4}
    with replacing(path, force=force) as file:
        if not file.seekable():
            raise WorldError(
                f"a movie goes to a file that can be sought in, found {path}"
            )

        movie = _Checked(kinds[Path(path).suffix.lower()](file, rate))
        yield movie
        movie.close()


class _Checked:
    """Checks frames before they are written."""

    def __init__(self, movie: Movie) -> None:
        self._movie = movie
        self._size: tuple[int, int] | None = None
        self._count = 0

    def add(self, frame: Words) -> None:
        """Append a frame."""
        self._count += 1
        if self._count > MAX_FRAMES:
            raise WorldError(
                f"a movie has at most {MAX_FRAMES} frames: take fewer a second, "
                "or a part of the time"
            )

        height, width = frame.shape
        if self._size is None:
            check_frame(width, height)
        self._size = self._size or (width, height)
        if (width, height) != self._size:
            raise WorldError(
                f"all frames have one size, {self._size}, found {(width, height)}"
            )

        self._movie.add(frame)

    def close(self) -> None:
        """Write what is left."""
        if not self._count:
            raise WorldError("a movie has at least one frame")
        self._movie.close()


class _Deltas(ABC):
    """Frames of which each has the part of the picture that has changed.

    Parameters
    ----------
    file : BinaryIO
        Where they go.
    rate : Fraction
        Frames a second.
    unit : int
        Units of time in a second.
    even : bool
        Parts begin at even pixels.
    """

    def __init__(
        self, file: BinaryIO, rate: Fraction, unit: int, *, even: bool
    ) -> None:
        self._file, self._rate, self._unit, self._even = file, rate, unit, even
        self._last: Words | None = None
        self._part: tuple[Image.Image, tuple[int, int]] | None = None
        self._count = 0
        self._begin = 0
        """Time of `_part`, units."""

    def add(self, frame: Words) -> None:
        """Append a frame."""
        height, width = frame.shape
        box: tuple[int, int, int, int] | None = (0, 0, width, height)
        if self._last is None:
            self._start((width, height))
            self._last = frame.copy()
        else:
            box = _box_of(frame != self._last)

        if box is not None:
            self._flush()
            left, top = (box[0] & ~1, box[1] & ~1) if self._even else box[:2]
            part = np.s_[top : box[3], left : box[2]]
            self._last[part] = frame[part]
            self._part = image_of(frame[part].copy()).convert("RGB"), (left, top)

        self._count += 1

    def close(self) -> None:
        """Write the last frame and the end."""
        self._flush()
        self._end()

    def _flush(self) -> None:
        now = round(self._count * self._unit / self._rate)
        if self._part is not None:
            self._write(*self._part, now - self._begin)
        self._begin = now

    @abstractmethod
    def _start(self, size: tuple[int, int]) -> None: ...

    @abstractmethod
    def _write(self, part: Image.Image, at: tuple[int, int], duration: int) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...


class _Gif(_Deltas):
    """Each frame has a palette of its own."""

    def __init__(self, file: BinaryIO, rate: Fraction) -> None:
        super().__init__(file, rate, 100, even=False)

    def _start(self, size: tuple[int, int]) -> None:
        mark = MARK.encode()
        self._file.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0))
        self._file.write(
            b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
        )  # play it again and again
        self._file.write(b"\x21\xfe" + bytes([len(mark)]) + mark + b"\x00")

    def _write(self, part: Image.Image, at: tuple[int, int], duration: int) -> None:
        flat = part.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        longest = 0xFFFF
        # a field of 16 bits: what lasts longer is said again
        while True:
            now = min(duration, longest)
            for block in GifImagePlugin.getdata(
                flat, at, duration=10 * now, disposal=1, include_color_table=True
            ):
                self._file.write(block)

            duration -= now
            if not duration:
                return
            flat = flat.crop((0, 0, 1, 1))

    def _end(self) -> None:
        self._file.write(b"\x3b")


class _WebP(_Deltas):
    """Frames without loss: areas of one colour take little room so, and stay as they
    are.
    """

    def __init__(self, file: BinaryIO, rate: Fraction) -> None:
        super().__init__(file, rate, 1000, even=True)
        self._origin = file.tell()

    def _start(self, size: tuple[int, int]) -> None:
        has_animation, has_exif = 0x02, 0x08
        self._file.write(b"RIFF\0\0\0\0WEBP")
        self._chunk(
            b"VP8X",
            bytes([has_animation | has_exif, 0, 0, 0])
            + _u24(size[0] - 1)
            + _u24(size[1] - 1),
        )
        self._chunk(b"ANIM", b"\xff\xff\xff\xff" + struct.pack("<H", 0))

    def _write(self, part: Image.Image, at: tuple[int, int], duration: int) -> None:
        found = io.BytesIO()
        part.save(found, "WEBP", lossless=True, quality=20, method=0)
        do_not_blend = 0x02
        head = b"".join(
            _u24(n)
            for n in (
                at[0] // 2,
                at[1] // 2,
                part.width - 1,
                part.height - 1,
                min(duration, 2**24 - 1),
            )
        )
        self._chunk(b"ANMF", head + bytes([do_not_blend]) + found.getvalue()[12:])

    def _end(self) -> None:
        self._chunk(b"EXIF", mark_as_exif().removeprefix(b"Exif\0\0"))
        size = self._file.tell() - self._origin - 8
        self._file.seek(self._origin + 4)
        self._file.write(struct.pack("<I", size))
        self._file.seek(0, 2)

    def _chunk(self, name: bytes, data: bytes) -> None:
        self._file.write(
            name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        )


def _box_of(is_so: NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
    """What encloses the pixels of which something is so: left, top, right and lower
    edge; None: of none.
    """
    rows = np.flatnonzero(is_so.any(axis=1))
    if not len(rows):
        return None
    columns = np.flatnonzero(is_so.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _u24(number: int) -> bytes:
    return number.to_bytes(3, "little")


class _Mp4:
    """H.264 in MP4. Sides are even: colours are of two by two pixels; a row or column
    is repeated where they are not.
    """

    def __init__(self, file: BinaryIO, rate: Fraction) -> None:
        av: Any = import_module("av")
        self._av = av
        self._container: Any = av.open(file, "w", format="mp4")
        self._container.metadata["comment"] = MARK
        self._stream: Any = self._container.add_stream("libx264", rate=rate)
        self._is_begun = False

    def add(self, frame: Words) -> None:
        """Append a frame."""
        height, width = frame.shape
        width, height = width + width % 2, height + height % 2
        if not self._is_begun:
            self._is_begun = True
            self._stream.width, self._stream.height = width, height
            self._stream.pix_fmt = "yuv420p"
            self._stream.options = {
                "preset": "veryfast",
                "crf": _CRF,
                "x264-params": _SEARCH,
            }

        video = self._av.VideoFrame(width, height, "yuv420p")
        # lines of a plane may be longer than those of the picture
        planes = [
            np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            for plane in video.planes
        ]
        to_yuv420(frame, *planes)
        for packet in self._stream.encode(video):
            self._container.mux(packet)

    def close(self) -> None:
        """Write what is left."""
        for packet in self._stream.encode():
            self._container.mux(packet)
        self._container.close()


__all__ = [
    "FPS_LIMITS",
    "MAX_FRAMES",
    "MAX_FRAME_PIXELS",
    "MAX_SIDE",
    "MIN_FPS",
    "SUFFIXES",
    "Movie",
    "check_frame",
    "check_movie",
    "writing_movie",
]
