"""Writers of movie files: GIF and WebP with Pillow, MP4 with PyAV.

MP4 needs the extra ``movie``. A frame of GIF and WebP contains only the part that
changed since the previous frame, so the writer keeps the previous frame in memory.
Layouts: "GIF89a Specification" (CompuServe, 1990); "WebP Container Specification"
(Google). All three formats carry the marker by which botyard recognises its files.
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
"""Suffixes of movies."""
FPS_LIMITS: Final[dict[str, float]] = {".gif": 50.0, ".webp": 100.0, ".mp4": 120.0}
"""Highest frame rate of each format, 1/s.

A GIF counts in hundredths of a second, and players slow down frames shorter than 0.02 s.
"""
MIN_FPS: Final = 0.001
"""Lowest frame rate, 1/s: a frame lasts for at most 1000 s."""
MAX_FRAMES: Final = 200_000
"""Largest number of frames of a movie."""
MAX_FRAME_PIXELS: Final = 10_000_000
"""Largest number of pixels of a frame."""
MAX_SIDE: Final = 16_383
"""Longest side of a frame, pixels.

It is the limit of WebP (2¹⁴ − 1). The limit of x264 for even sides is the same.
"""
_CRF: Final = "20"
"""Quality of MP4 (constant rate factor).

18 is almost indistinguishable from the frames, 23 is the default of x264.
"""
_SEARCH: Final = "subme=1"
"""Effort of x264's motion search.

The default of the preset takes ten times as long and saves 7 % of the file size.
"""


class Movie(Protocol):
    """Movie file that is being written."""

    def add(self, frame: Words) -> None:
        """Append a frame; its pixels may change afterwards.

        Parameters
        ----------
        frame : (height, width) uint32
            Opaque pixels, see `frame.Words`. All frames have the same size.
        """
        ...

    def close(self) -> None:
        """Write the remaining frames and close the container."""
        ...


def check_frame(width: int, height: int) -> None:
    """Raise WorldError if a frame of this size, pixels, is too large for a movie.

    Parameters
    ----------
    width, height : int
        Size, pixels.

    Raises
    ------
    WorldError
        A side exceeds `MAX_SIDE`, or the area `MAX_FRAME_PIXELS`.
    """
    if max(width, height) > MAX_SIDE:
        raise WorldError(
            f"size: expected sides of a movie frame of at most {MAX_SIDE} "
            f"pixels, found {width} × {height}"
        )

    if width * height > MAX_FRAME_PIXELS:
        raise WorldError(
            f"size: expected at most {MAX_FRAME_PIXELS} pixels in a movie frame, "
            f"found {width} × {height}"
        )


def check_movie(path: StrPath, fps: float) -> None:
    """Check that a movie can be written.

    Parameters
    ----------
    path : path-like
        Path of the movie. Nothing is written.
    fps : float
        Frame rate, 1/s.

    Raises
    ------
    ArgumentError
        The suffix belongs to no movie format, or the frame rate is out of its range.
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
    """Write a movie in the format of the suffix.

    The file is complete, and visible under its name, after the block has ended without
    an error.

    Parameters
    ----------
    path : path-like
        Path of the movie.
    fps : float
        Frame rate, 1/s.
    force : bool
        Replace the file even if another program wrote it.

    Yields
    ------
    Movie
        Movie to which frames are added. It is closed at the end of the block.

    Raises
    ------
    ArgumentError, WorldError
        See `check_movie`; or there are too many frames, or a frame is too large or
        differs in size from the first.
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    OSError
        The file cannot be written.
    """
    check_movie(path, fps)
    # Codecs need the rate as a fraction; the exact fraction of a float has huge terms.
    rate = Fraction(fps).limit_denominator(1000)
    kinds: dict[str, Any] = {".gif": _Gif, ".webp": _WebP, ".mp4": _Mp4}
    with replacing(path, force=force) as file:
        # The file must be seekable: its length goes into the header after the last frame.
        if not file.seekable():
            raise WorldError(
                f"path: expected a seekable file, found {path}, which is not seekable"
            )
        movie = _Checked(kinds[Path(path).suffix.lower()](file, rate))
        yield movie
        movie.close()


class _Checked:
    """Movie that checks the size and number of frames before it writes them."""

    def __init__(self, movie: Movie) -> None:
        self._movie = movie
        self._size: tuple[int, int] | None = None
        self._count = 0

    def add(self, frame: Words) -> None:
        """Append a frame."""
        self._count += 1
        if self._count > MAX_FRAMES:
            raise WorldError(
                f"expected at most {MAX_FRAMES} frames of a movie, found more: choose a "
                "lower frame rate or a shorter part"
            )

        height, width = frame.shape
        if self._size is None:
            check_frame(width, height)
        self._size = self._size or (width, height)
        if (width, height) != self._size:
            raise WorldError(
                f"frame: expected the size of the first frame, {self._size[0]} × "
                f"{self._size[1]} pixels, found {width} × {height}"
            )

        self._movie.add(frame)

    def close(self) -> None:
        """Write the remaining frames."""
        if not self._count:
            raise WorldError("expected at least one frame of the movie, found none")
        self._movie.close()


class _Deltas(ABC):
    """Movie whose frames contain only the changed part of the picture.

    Parameters
    ----------
    file : BinaryIO
        File to write to.
    rate : Fraction
        Frame rate, 1/s.
    unit : int
        Units of time per second in the format: 100 for hundredths of a second.
    even : bool
        Whether the left and upper edge of a changed part must be even, as in WebP.
    """

    def __init__(
        self, file: BinaryIO, rate: Fraction, unit: int, *, even: bool
    ) -> None:
        self._file, self._rate, self._unit, self._even = file, rate, unit, even
        self._last: Words | None = None
        self._part: tuple[Image.Image, tuple[int, int]] | None = None
        self._count = 0
        self._begin = 0
        """Time at which a player shows `_part`, since the start, in units of the format."""

    def add(self, frame: Words) -> None:
        """Append a frame."""
        height, width = frame.shape
        box: tuple[int, int, int, int] | None = (0, 0, width, height)
        if self._last is None:
            self._start((width, height))
            self._last = frame.copy()
        else:
            box = _box_of(frame != self._last)

        # A frame without a change makes the previous one longer.
        if box is not None:
            self._flush()
            left, top = (box[0] & ~1, box[1] & ~1) if self._even else box[:2]
            part = np.s_[top : box[3], left : box[2]]
            # The caller may change its frame afterwards.
            self._last[part] = frame[part]
            self._part = image_of(frame[part].copy()).convert("RGB"), (left, top)

        self._count += 1

    def close(self) -> None:
        """Write the last frame and the end of the file."""
        self._flush()
        self._end()

    def _flush(self) -> None:
        # Round the total time, not each duration, so that rounding errors do not add up.
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
    """GIF movie; each frame has its own palette."""

    def __init__(self, file: BinaryIO, rate: Fraction) -> None:
        super().__init__(file, rate, 100, even=False)

    def _start(self, size: tuple[int, int]) -> None:
        mark = MARK.encode()
        # 0x70: no global palette, 8 bits per colour; each frame has its own palette.
        self._file.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0))
        # The NETSCAPE extension makes players repeat the movie without end.
        self._file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
        self._file.write(b"\x21\xfe" + bytes([len(mark)]) + mark + b"\x00")

    def _write(self, part: Image.Image, at: tuple[int, int], duration: int) -> None:
        flat = part.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        longest = 0xFFFF
        # The duration has 16 bits, so a longer frame is written several times.
        while True:
            now = min(duration, longest)
            for block in GifImagePlugin.getdata(
                flat, at, duration=10 * now, disposal=1, include_color_table=True
            ):
                self._file.write(block)

            duration -= now
            if not duration:
                return
            # A repetition only extends the time, so one pixel of the frame is enough.
            flat = flat.crop((0, 0, 1, 1))

    def _end(self) -> None:
        self._file.write(b"\x3b")


class _WebP(_Deltas):
    """WebP movie with lossless frames.

    Areas of one colour need little space in lossless frames, and keep their exact
    colour.
    """

    def __init__(self, file: BinaryIO, rate: Fraction) -> None:
        super().__init__(file, rate, 1000, even=True)
        self._origin = file.tell()

    def _start(self, size: tuple[int, int]) -> None:
        # Flags of the VP8X chunk, see the container specification.
        has_animation, has_exif = 0x02, 0x08
        self._file.write(b"RIFF\0\0\0\0WEBP")
        self._chunk(
            b"VP8X",
            bytes([has_animation | has_exif, 0, 0, 0])
            + _u24(size[0] - 1)
            + _u24(size[1] - 1),
        )

        # White background, and 0 repetitions, which means an endless loop.
        self._chunk(b"ANIM", b"\xff\xff\xff\xff" + struct.pack("<H", 0))

    def _write(self, part: Image.Image, at: tuple[int, int], duration: int) -> None:
        found = io.BytesIO()
        # Quality 20 and method 0 are the fastest settings of the lossless encoder.
        part.save(found, "WEBP", lossless=True, quality=20, method=0)

        # Frames are opaque, so a player need not blend them with the picture below.
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

        # Skip the RIFF header of 12 bytes: `found` is a file with a single picture.
        self._chunk(b"ANMF", head + bytes([do_not_blend]) + found.getvalue()[12:])

    def _end(self) -> None:
        # Pillow starts EXIF data with the prefix that JPEG needs; WebP has no prefix.
        self._chunk(b"EXIF", mark_as_exif().removeprefix(b"Exif\0\0"))

        # The RIFF size does not count the 8 bytes of its own header.
        size = self._file.tell() - self._origin - 8
        self._file.seek(self._origin + 4)
        self._file.write(struct.pack("<I", size))
        self._file.seek(0, 2)

    def _chunk(self, name: bytes, data: bytes) -> None:
        # RIFF pads each chunk to an even length.
        self._file.write(
            name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        )


def _box_of(is_so: NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
    """Return the bounding box of the true pixels; None if there are none.

    Order: left, top, right and lower edge.

    Parameters
    ----------
    is_so : (height, width) bool
        Changed pixels.
    """
    rows = np.flatnonzero(is_so.any(axis=1))
    if not len(rows):
        return None
    columns = np.flatnonzero(is_so.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _u24(number: int) -> bytes:
    return number.to_bytes(3, "little")


class _Mp4:
    """Movie with H.264 video in an MP4 file.

    Both sides are even, because chroma covers two by two pixels. A frame with an odd
    side gets its last row or column repeated.
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
        # Lines of a plane may be longer than lines of the picture, for alignment.
        planes = [
            np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            for plane in video.planes
        ]

        to_yuv420(frame, *planes)
        for packet in self._stream.encode(video):
            self._container.mux(packet)

    def close(self) -> None:
        """Write the remaining frames."""
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
