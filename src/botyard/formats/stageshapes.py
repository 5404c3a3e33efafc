"""Outlines of Stage models: polygons, blocks and bitmaps (formats §4.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import (
    BudgetError,
    MapError,
    ModelFileError,
)
from botyard.formats.base import Source, read_bytes
from botyard.formats.budget import Meter
from botyard.formats.images import read_grey
from botyard.formats.stageprops import (
    pose,
    positive,
)
from botyard.formats.stageworld import Entity, Property, any_file, find_file
from botyard.geometry import IDENTITY, Outline, Pose, transform_point
from botyard.model.tracing import mask_to_rectangles, mask_to_segments
from botyard.names import shown

DARK_BELOW: Final = 128
"""Grey value, 0 to 255, below which pixels of a bitmap are solid (formats §4.3)."""
MAX_PARTS: Final = 400
"""Largest number of polygons of a robot's or movable object's body."""
_POLYGON = re.compile(r"polygon\[([0-9]{1,9})\]\.point\[([0-9]{1,9})\]")
_POINT = re.compile(r"point\[([0-9]{1,9})\]")
SQUARE: Final[Outline] = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))


@dataclass(slots=True)
class Shape:
    """Description of a body's outline, as the properties of a model give it.

    The description becomes polygons after all properties are known.

    Attributes
    ----------
    size : tuple of float
        Length and width, m.
    origin : Pose
        Offset of the body's centre.
    polygons : list of outlines
        Polygons as written; together they are scaled to the size and centred.
    bitmap : Property or None
        Picture whose dark pixels are solid; their bounding box is scaled to the size.
    boundary : bool
        Whether the outline of the rectangle `size` is added to the walls.
    """

    size: tuple[float, float] = (1.0, 1.0)
    origin: Pose = IDENTITY
    polygons: list[Outline] = field(default_factory=list)
    bitmap: Property | None = None
    boundary: bool = False

    def read(self, entity: Entity) -> None:
        """Set the values that an entity's properties give for the shape.

        Raises
        ------
        ModelFileError
            The polygons or the size are invalid.
        """
        props = entity.properties
        if "size" in props:
            self.size = positive(props["size"])
        if "origin" in props:
            self.origin = pose(props["origin"])
        if "bitmap" in props:
            self.bitmap = props["bitmap"]
        if "boundary" in props:
            self.boundary = props["boundary"].number() != 0
        found: dict[int, dict[int, tuple[float, ...]]] = {}
        for key, prop in props.items():
            match = _POLYGON.fullmatch(key)
            if match:
                # Points may have any order in the file; their numbers decide.
                found.setdefault(int(match[1]), {})[int(match[2])] = prop.numbers(2)

        if found:
            self.polygons = [
                _polygon(points, entity) for _, points in sorted(found.items())
            ]

        for child in entity.children:
            if child.type_name == "block":
                points = {
                    int(m[1]): p
                    for k, p in child.properties.items()
                    if (m := _POINT.fullmatch(k))
                }
                self.polygons.append(
                    _polygon({i: p.numbers(2) for i, p in points.items()}, child)
                )

    def outlines(self, pictures: Pictures) -> tuple[Outline, ...]:
        """Return the polygons of the body (formats §3.4).

        The polygons are scaled to the size, centred, and moved by the origin.

        Parameters
        ----------
        pictures : Pictures
            Cache that reads the bitmap of the body, if it has one.

        Returns
        -------
        tuple of outlines
            Polygons in the frame of the body, m; without a description, a rectangle.

        Raises
        ------
        ModelFileError
            The bitmap cannot be read, or has too many parts.
        """
        length, width = self.size
        shapes = self.polygons or [SQUARE]
        # The meter counts before any array is made, as a file may list millions of
        # points.
        pictures.meter.add("vertices", sum(map(len, shapes)))
        if self.bitmap is not None:
            shapes = _traced(self.bitmap, pictures.dark_pixels(self.bitmap))
        else:
            xs, ys = zip(*(corner for shape in shapes for corner in shape), strict=True)
            # Stage scales the polygons to `size` around the centre of their bounding
            # box.
            cx, cy = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
            # A shape without width must not divide by zero.
            dx, dy = max(max(xs) - min(xs), 1e-9), max(max(ys) - min(ys), 1e-9)
            shapes = [
                tuple(((x - cx) / dx, (y - cy) / dy) for x, y in shape)
                for shape in shapes
            ]

        return tuple(
            tuple(transform_point(self.origin, x * length, y * width) for x, y in shape)
            for shape in shapes
        )


def _traced(prop: Property, solid: NDArray[np.bool_]) -> list[Outline]:
    """Return the solid pixels of a picture as rectangles.

    Parameters
    ----------
    prop : Property
        Property that names the picture, for the error.
    solid : (rows, columns) bool
        Solid pixels, with row 0 at the bottom.

    Returns
    -------
    list of outlines
        Rectangles, scaled to unit size around the origin.

    Raises
    ------
    ModelFileError
        There are no solid pixels, or more than `MAX_PARTS` rectangles.
    """
    rows, columns = solid.shape
    found = mask_to_rectangles(solid, MAX_PARTS)
    # Without dark pixels a body would have no outline.
    if not 0 < len(found) <= MAX_PARTS:
        more = "more" if len(found) else "none"
        raise prop.fail(
            f"a picture whose dark pixels form 1 to {MAX_PARTS} rectangles (here: {more})"
        )

    # Scale the rectangles to a unit square around the origin, as polygons are scaled.
    found = found / (columns, rows, columns, rows) - 0.5
    return [
        ((x0, y0), (x1, y0), (x1, y1), (x0, y1)) for x0, y0, x1, y1 in found.tolist()
    ]


class Pictures:
    """Cache of the pictures that ``bitmap`` properties of a world refer to.

    Parameters
    ----------
    meter : Meter
        Counts pictures, their pixels and the corners of their outlines.
    allowed : callable, optional
        Returns whether the world may read a file.
    """

    def __init__(
        self, meter: Meter, allowed: Callable[[Path], bool] = any_file
    ) -> None:
        self.meter = meter
        self._allowed = allowed
        self._masks: dict[Path, NDArray[np.bool_]] = {}
        self._outlines: dict[Path, NDArray[np.float64]] = {}

    def _find(self, prop: Property) -> Path:
        path = find_file(
            prop.string(), Path(prop.folder), Path(prop.path), self._allowed
        )
        if path is not None:
            return path
        # An uploaded world may only name files of the same upload.
        if self._allowed is not any_file:
            raise prop.fail(
                "a picture that comes with this file (in one .zip, or load the file "
                "by name)"
            )

        raise ModelFileError(
            f'bitmap "{shown(prop.string())}": no such file', prop.path, prop.line
        )

    def dark_pixels(self, prop: Property) -> NDArray[np.bool_]:
        """Return which pixels of a ``bitmap`` are dark.

        Parameters
        ----------
        prop : Property
            Property that names the picture, relative to the file of the property.

        Returns
        -------
        (rows, columns) bool
            Dark pixels, with row 0 at the bottom. Light margins are removed: as in Stage, the
            bounding box of the dark pixels is scaled to the size. The first channel of a coloured
            picture counts.

        Raises
        ------
        ModelFileError
            The picture does not exist, or cannot be read.
        """
        path = self._find(prop)
        if path not in self._masks:
            self.meter.add("files", 1, prop.line, prop.path)
            try:
                data = read_bytes(path, self.meter)
                grey = read_grey(
                    Source(str(path), data, path),
                    self.meter,
                    what="the bitmap",
                    first=True,
                )
            # The message of a budget already names the limit; others get the name of
            # the bitmap.
            except BudgetError:
                raise
            except MapError as error:
                what = f'bitmap "{shown(prop.string())}": {error.reason}'
                raise ModelFileError(what, prop.path, prop.line) from None

            # Rows of pictures go down, rows of masks go up.
            self._masks[path] = _trimmed(grey[::-1] < DARK_BELOW)

        return self._masks[path]

    def outlines(self, prop: Property) -> NDArray[np.float64]:
        """Return the outlines of the solid pixels of a picture.

        Parameters
        ----------
        prop : Property
            Property that names the picture.

        Returns
        -------
        (n, 4) float64
            Segments x1, y1, x2, y2, for a picture of unit size around the origin. The
            array is cached, and must not be changed.

        Raises
        ------
        ModelFileError
            The picture does not exist, or cannot be read.
        BudgetError
            There are too many outlines.
        """
        path = self._find(prop)
        if path not in self._outlines:
            solid = self.dark_pixels(prop)
            rows, columns = solid.shape
            found = mask_to_segments(
                solid, lambda n: self.meter.add("vertices", 2 * n, prop.line, prop.path)
            )
            self._outlines[path] = found / (columns, rows, columns, rows) - 0.5
        else:
            # A picture that is used again costs no time, but its walls need memory
            # again.
            self.meter.add(
                "vertices", 2 * len(self._outlines[path]), prop.line, prop.path
            )

        return self._outlines[path]


def _trimmed(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cut a mask to the bounding box of its set pixels; without any, return the whole mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return (
        mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        if len(rows)
        else mask
    )


def _polygon(points: dict[int, tuple[float, ...]], entity: Entity) -> Outline:
    if len(points) < 3:
        raise ModelFileError(
            f"expected polygons of at least 3 points, found {len(points)}",
            entity.path,
            entity.line,
        )

    # Gaps between the numbers of points are allowed.
    return tuple((points[i][0], points[i][1]) for i in sorted(points))
