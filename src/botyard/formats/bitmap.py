"""Plain pictures as maps: PNM, PNG, BMP, GIF, JPEG, TIFF, WebP.

Dark pixels are solid (formats §6, with its recommendation). The lower left corner of
the picture is the origin; x goes along its rows and y up. AMRISim's converter makes
light pixels solid and swaps the axes. botyard's ``convertBitmapToArMap`` has the same
options, but follows neither of these two rules.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.images import read_grey
from botyard.model.scene import Scene
from botyard.model.tracing import trace
from botyard.model.world import World

DEFAULT_PIXEL: Final = 0.05
"""Default size of a pixel, m, as in most maps made by SLAM."""


def solid_pixels(
    source: Source, options: Options, meter: Meter | None = None
) -> NDArray[np.bool_]:
    """Return which pixels of a picture are solid.

    Parameters
    ----------
    source : Source
        Picture.
    options : Options
        Threshold, whether light pixels are solid instead, and limits.
    meter : Meter, optional
        Counts the pixels before they are decoded. Default: a new meter for this file alone.

    Returns
    -------
    (rows, columns) bool
        Solid pixels, with row 0 at the bottom. Transparent pixels are free.

    Raises
    ------
    MapError
        The file is not an image, or is too large.
    """
    meter = meter or Meter(options.budget, source.name)
    # Transparent pixels are free: they get the value that the threshold never selects.
    behind = 0 if options.invert else 255
    grey = read_grey(source, meter, what="the picture", behind=behind, upright=True)[
        ::-1
    ]
    # The comparison is strict: a threshold of 0 selects no dark pixel.
    limit = 255.0 * options.threshold
    return grey > limit if options.invert else grey < limit


def read(source: Source, options: Options) -> World:
    """Read a picture as a world of walls: the exact outlines of its solid pixels.

    Raises
    ------
    MapError
        The file is not an image, or is too large.
    """
    meter = Meter(options.budget, source.name)
    size = options.scale(DEFAULT_PIXEL, source.name, "a pixel")
    solid = solid_pixels(source, options, meter)
    meter.check("extent", max(solid.shape) * size)
    segments, traced = trace(solid, size, allow=lambda n: meter.add("vertices", 2 * n))
    if not len(segments):
        options.warn(
            f"{source.name}: no pixel is solid; try --invert for light pixels, or "
            "another --threshold"
        )

    return World(
        scene=Scene(
            name=source.stem,
            source=source.name,
            segments=segments,
            traced=traced,
            resolution=size,
        )
    )


def read_points(source: Source, options: Options) -> Scene:
    """Read a picture as scan points, one for each solid pixel (TOL-001).

    Returns
    -------
    Scene
        Points are the lower left corners of pixels, m from the lower left corner of the
        picture.

    Raises
    ------
    MapError
        The file is not an image, or is too large.
    """
    meter = Meter(options.budget, source.name)
    size = options.scale(DEFAULT_PIXEL, source.name, "a pixel")
    solid = solid_pixels(source, options, meter)
    meter.add("vertices", int(np.count_nonzero(solid)))
    rows, columns = np.nonzero(solid)
    points = np.stack([columns, rows], axis=1).astype(np.float64) * size
    return Scene(name=source.stem, source=source.name, points=points, resolution=size)


__all__ = ["DEFAULT_PIXEL", "read", "read_points", "solid_pixels"]
