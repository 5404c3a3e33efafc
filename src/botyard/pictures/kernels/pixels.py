"""Kernels over the pixels of opaque pictures.

Pixels are words of four bytes, see `botyard.pictures.frame`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from botyard.pictures.kernels.jit import entry_kernel, inline_kernel

U1 = NDArray[np.uint8]
U4 = NDArray[np.uint32]
F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]


@inline_kernel
def mixed(below: int, above: int, opacity: int) -> int:
    """Return the mixture of a colour and another one above it, both as words of four bytes.

    The opacity is 0 to 256. Two channels are computed at a time.
    """
    rest = 256 - opacity
    # The mask keeps every second channel, so that each product has room in the 8 bits
    # above its channel. Adding 0x80 rounds.
    even = ((below & 0xFF00FF) * rest + (above & 0xFF00FF) * opacity + 0x800080) >> 8
    odd = (
        ((below >> 8) & 0xFF00FF) * rest
        + ((above >> 8) & 0xFF00FF) * opacity
        + 0x800080
    )
    return (even & 0xFF00FF) | (odd & 0xFF00FF00)


@entry_kernel
def mark_fields(places: F8, begins: I8, turns: I8, marks: U1) -> None:
    """Mark in each row of pixels where polygons start and end, from left to right.

    The sum of the marks up to a pixel is the number of polygons that contain the pixel's
    centre. A polygon that overlaps itself counts as often as its edge winds around the
    pixel.

    Parameters
    ----------
    places : (n, 2) array
        Corners of all polygons, pixels; the last one of each is joined to its first.
    begins : (m + 1,) array
        Index of each polygon's first corner in `places`, then the number of corners.
    turns : (m,) array
        Direction of each polygon in the picture: 1 clockwise, −1 counter-clockwise.
    marks : (height, width) array
        Output, modulo 256; it must be 0 before the call.
    """
    height, width = marks.shape
    for m in range(len(turns)):
        first, last = begins[m], begins[m + 1]
        for b in range(first, last):
            a = last - 1 if b == first else b - 1
            ax, ay, bx, by = places[a, 0], places[a, 1], places[b, 0], places[b, 1]
            if ay == by:
                continue
            step = -turns[m]
            if ay > by:
                ax, ay, bx, by, step = bx, by, ax, ay, -step
            # Mark the rows whose centre is in [ay, by). Without by, a row through a corner
            # of two edges is marked once.
            low = int(np.ceil(min(max(ay - 0.5, 0.0), float(height))))
            high = int(np.ceil(min(max(by - 0.5, 0.0), float(height))))
            slope = (bx - ax) / (by - ay)
            for row in range(low, high):
                x = ax + (row + 0.5 - ay) * slope - 0.5
                if x < width:
                    column = int(np.ceil(x)) if x > 0.0 else 0
                    if column < width:
                        marks[row, column] = (int(marks[row, column]) + step) & 255


@entry_kernel
def tint_fields(marks: U1, rows: I8, color: int, opacities: I8, pixels: U4) -> None:
    """Lay a colour over the polygons of `mark_fields`, more opaque where more overlap.

    Parameters
    ----------
    marks : (height, width) array
        Output of `mark_fields`; the call sets it to 0.
    rows : (2,) array
        First row that can have marks, and the row after the last one.
    color : int
        The colour, an opaque pixel.
    opacities : (256,) array
        Opacity of the colour, 0 to 256, for each number of overlapping polygons.
    pixels : (height, width) array
        The picture.
    """
    width = marks.shape[1]
    for row in range(rows[0], rows[1]):
        count = 0
        for column in range(width):
            count = (count + int(marks[row, column])) & 255
            marks[row, column] = 0
            if count:
                pixels[row, column] = mixed(
                    int(pixels[row, column]), color, opacities[count]
                )


@entry_kernel
def lay_over(above: U4, runs: I4, left: int, top: int, pixels: U4) -> None:
    """Lay a part of an image with transparency over a picture.

    Parameters
    ----------
    above : (h, w) array
        The image.
    runs : (n, 3) array
        Runs of adjacent visible pixels of the image: row, first column, and the column
        after the last.
    left, top : int
        Pixel of the image that lies over the upper left pixel of the picture.
    pixels : (height, width) array
        The picture.
    """
    height, width = pixels.shape
    for k in range(len(runs)):
        row = runs[k, 0] - top
        if 0 <= row < height:
            for column in range(
                max(runs[k, 1] - left, 0), min(runs[k, 2] - left, width)
            ):
                word = int(above[top + row, left + column])
                opacity = word >> 24
                # An opacity of 255 must become 256, the full share of `mixed`.
                pixels[row, column] = mixed(
                    int(pixels[row, column]),
                    word | 0xFF000000,
                    opacity + (opacity >> 7),
                )


@entry_kernel
def to_yuv420(pixels: U4, luma: U1, blue: U1, red: U1) -> None:
    """Convert a picture to the planes of YUV 4:2:0 video: luma Y′, chroma C_B and C_R.

    Each chroma value covers two by two pixels.

    Parameters
    ----------
    pixels : (height, width) array
        The picture. If a side is odd, its last row or column is repeated.
    luma : (2 ⌈height / 2⌉, ≥ 2 ⌈width / 2⌉) array
        Output Y′, 16 to 235, of ITU-R BT.601, in fixed point with 16 bits.
    blue, red : (⌈height / 2⌉, ≥ ⌈width / 2⌉) arrays
        Output C_B and C_R, 16 to 240, of the mean of four pixels.
    """
    height, width = pixels.shape
    for row in range(luma.shape[0]):
        y = min(row, height - 1)
        # The weights are 219 / 255 · (0.299, 0.587, 0.114).
        for x in range(width):
            word = int(pixels[y, x])
            luma[row, x] = (
                16829 * (word & 255)
                + 33039 * (word >> 8 & 255)
                + 6416 * (word >> 16 & 255)
                + 0x108000
            ) >> 16

        if width % 2:
            luma[row, width] = luma[row, width - 1]

    for row in range(blue.shape[0]):
        y0, y1 = 2 * row, min(2 * row + 1, height - 1)
        for x in range((width + 1) // 2):
            x0, x1 = 2 * x, min(2 * x + 1, width - 1)
            a0, a1 = int(pixels[y0, x0]), int(pixels[y0, x1])
            b0, b1 = int(pixels[y1, x0]), int(pixels[y1, x1])
            # Sum red and blue of four pixels in one word: 16 bits for each sum.
            both = (a0 & 0xFF00FF) + (a1 & 0xFF00FF) + (b0 & 0xFF00FF) + (b1 & 0xFF00FF)
            g = (a0 >> 8 & 255) + (a1 >> 8 & 255) + (b0 >> 8 & 255) + (b1 >> 8 & 255)
            r, b = both & 0xFFFF, both >> 16
            # The weights are 224 / 255 / 2 of (B − Y) / (1 − 0.114) and (R − Y) / (1 −
            # 0.299), for a sum of four pixels.
            blue[row, x] = (-9714 * r - 19070 * g + 28784 * b + 0x2020000) >> 18
            red[row, x] = (28784 * r - 24103 * g - 4681 * b + 0x2020000) >> 18


__all__ = ["lay_over", "mark_fields", "mixed", "tint_fields", "to_yuv420"]
