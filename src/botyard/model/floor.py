"""Description of the floor of a world: a picture, zones, and pheromone fields.

The floor has no walls: robots drive over all of it. It has a colour, which sensors that
look down see. Zones act on the robots in them, by the position of their origin.
Pheromone fields are rasters of levels that robots raise and that evaporate.

Costmaps of planners are not part of the floor; see `botyard.sim.floors`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError, ModelError
from botyard.geometry import IDENTITY, Outline, Pose
from botyard.model.colors import known_rgb
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.names import MAX_NAME, is_name, shown

Pixels = NDArray[np.uint8]
MAX_PIXELS: Final = 16_000_000
"""Largest number of pixels of a floor picture: 64 MB, or 40 m × 40 m at 1 cm."""
MAX_ZONES: Final = 1000
"""Largest number of zones: each step tests each robot against the bounds of all zones."""
MAX_CORNERS: Final = 10_000
"""Largest number of corners of all zones together."""
MAX_FIELDS: Final = 8
"""Largest number of pheromone fields."""
MAX_FIELD_CELLS: Final = 1_000_000
"""Largest number of cells of a pheromone field: a step multiplies each of them."""
MAX_SLIP: Final = 0.99
"""Largest slip: with 1, a robot could never leave the zone."""
OPAQUE: Final = 128
"""Least alpha of a pixel that is floor; pixels below are holes."""
GROUND_COLOR: Final = "white"
"""Colour of a floor that has none."""
FIELD_COLOR: Final = "medium orchid"
"""Colour of a pheromone field that has none."""


def _check_color(color: str) -> None:
    # Colours take long to import, and most floors have the defaults.
    if color not in ("", GROUND_COLOR, FIELD_COLOR):
        known_rgb(color)


# Comparing arrays gives arrays, so pictures have no generated equality.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloorPicture:
    """Picture on the floor.

    Attributes
    ----------
    pixels : (rows, columns, 3) or (rows, columns, 4) uint8 array
        Red, green, blue, and alpha if there is a fourth number. Row 0 is the top row, as in
        image files. A pixel with an alpha below 128 is a hole in the floor.
    resolution : float
        Edge of a pixel, m.
    origin : Pose
        Pose of the lower left corner of the picture in the world: m, m, rad. The rows of
        the picture run along its x axis.

    Raises
    ------
    ArgumentError
        The array has another shape or type, or more than `MAX_PIXELS` pixels, or the
        resolution is not positive.
    """

    pixels: Pixels
    resolution: float = parameter(0.01, unit="m", low=1e-6, high=1e4)
    origin: Pose = IDENTITY

    def __post_init__(self) -> None:
        check_types(self)
        pixels = np.asarray(self.pixels)
        if (
            pixels.dtype != np.uint8
            or pixels.ndim != 3
            or pixels.shape[2] not in (3, 4)
            or not pixels.size
        ):
            raise ArgumentError(
                "pixels: expected (rows, columns, 3 or 4) numbers of uint8, found "
                f"{pixels.dtype} {pixels.shape}"
            )

        if pixels.shape[0] * pixels.shape[1] > MAX_PIXELS:
            raise ArgumentError(
                f"pixels: expected at most {MAX_PIXELS} pixels, found "
                f"{pixels.shape[0] * pixels.shape[1]}"
            )

        for problem in range_problems(self):
            raise ModelError(problem)
        arguments.place(self.origin, "origin")
        # The class is frozen, so only this call can set the checked array.
        object.__setattr__(self, "pixels", np.ascontiguousarray(pixels))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, m."""
        rows, columns, _ = self.pixels.shape
        return columns * self.resolution, rows * self.resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorZone:
    """Zone of the floor: a polygon with a colour and an effect on robots in it.

    A robot is in the zone if its origin is. Zones may overlap: the lowest speed limit
    holds, and of slip, odometry scale and colour the last zone that has one.

    Attributes
    ----------
    name : str
        Name; may be empty.
    corners : tuple of (float, float)
        At least three corners of a polygon, m. It need not be convex.
    color : str
        X11 colour name or ``#rrggbb``; empty: the zone has no colour of its own.
    slip : float or None
        Share of the wheels' motion that the robot does not make, 0 to `MAX_SLIP`: it moves
        and turns by 1 − slip of the distance that its wheels measure. Bodies with mass
        have friction instead, and do not slip.
    speed_limit : float or None
        Limit of the speed of motors, m/s. A robot that enters the zone brakes by its own
        ramp.
    odometry_scale : float or None
        Distance that the odometry measures per distance that the wheels roll, 0.1 to 10: on a
        carpet, wheels sink in, and measure more.
    hole : bool
        Whether the floor has a hole here, which cliff sensors see. Robots are not
        stopped, and do not fall.

    Raises
    ------
    ModelError
        There are fewer than three corners, or a number is out of range.
    ArgumentError
        A value has another type, or a color is unknown.
    """

    name: str = ""
    corners: Outline
    color: str = ""
    slip: float | None = parameter(None, low=0.0, high=MAX_SLIP)
    speed_limit: float | None = parameter(None, unit="m/s", low=0.0, high=1e3)
    odometry_scale: float | None = parameter(None, low=0.1, high=10.0)
    hole: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(problem)
        _check_color(self.color)
        if len(set(self.corners)) < 3:
            raise ModelError(
                "corners: expected at least three different corners, found "
                f"{len(set(self.corners))}"
            )

        if not all(math.isfinite(v) for corner in self.corners for v in corner):
            raise ModelError(
                f"corners: expected finite numbers, found {shown(self.corners, 200)}"
            )

    @property
    def acts(self) -> bool:
        """Whether the zone acts on the motion or the odometry of robots."""
        return not (
            self.slip is None
            and self.speed_limit is None
            and self.odometry_scale is None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PheromoneField:
    """Raster of levels of a pheromone, which robots raise and which evaporates.

    A level C falls by C(t) = C(0)·2^(−t / half_life).

    Attributes
    ----------
    name : str
        Name of the field, unique on the floor.
    area : (float, float, float, float)
        Bounds x0, y0, x1, y1, m. There are whole cells, so the field may extend a little
        beyond x1 and y1.
    cell : float
        Edge of a cell, m.
    half_life : float
        Time in which a level falls to its half, s; 0: nothing evaporates.
    color : str
        Colour on the page and in pictures.
    full : float
        Level that is drawn opaque.

    Raises
    ------
    ModelError
        The name is not a valid name, the area is empty, there are more than
        `MAX_FIELD_CELLS` cells, or a number is out of range.
    ArgumentError
        A value has another type, or a color is unknown.
    """

    name: str
    area: tuple[float, float, float, float]
    cell: float = parameter(0.05, unit="m", low=1e-3, high=1e3)
    half_life: float = parameter(30.0, unit="s", low=0.0, high=1e9)
    color: str = FIELD_COLOR
    full: float = parameter(1.0, low=1e-9, high=1e9)

    def __post_init__(self) -> None:
        check_types(self)
        if not is_name(self.name):
            raise ModelError(
                f"name: expected 1 to {MAX_NAME} printable characters, "
                f'found "{shown(self.name)}"'
            )
        for problem in range_problems(self):
            raise ModelError(problem)
        _check_color(self.color)
        x0, y0, x1, y1 = self.area
        if not (all(map(math.isfinite, self.area)) and x0 < x1 and y0 < y1):
            raise ModelError(
                "area: expected x0 < x1 and y0 < y1, found "
                f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}]"
            )

        rows, columns = self.shape
        if rows * columns > MAX_FIELD_CELLS:
            raise ModelError(
                f"cell: expected at most {MAX_FIELD_CELLS} cells, found {rows} × "
                f"{columns} cells of {self.cell:g} m"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns; row 0 is the lowest."""
        x0, y0, x1, y1 = self.area
        # The tolerance keeps rounding from adding a cell.
        return (
            max(1, math.ceil((y1 - y0) / self.cell - 1e-9)),
            max(1, math.ceil((x1 - x0) / self.cell - 1e-9)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Floor of a world.

    Attributes
    ----------
    color : str
        Colour outside of the picture and of coloured zones.
    picture : FloorPicture or None
        Picture on the floor.
    zones : tuple of FloorZone
        Zones, the last one on top.
    fields : tuple of PheromoneField
        Pheromone fields.

    Raises
    ------
    ModelError
        There are more than `MAX_ZONES` zones, `MAX_CORNERS` corners or `MAX_FIELDS` fields,
        or two fields have one name.
    ArgumentError
        The color is unknown.
    """

    color: str = GROUND_COLOR
    picture: FloorPicture | None = None
    zones: tuple[FloorZone, ...] = ()
    fields: tuple[PheromoneField, ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        _check_color(self.color)
        corners = sum(len(zone.corners) for zone in self.zones)
        for what, count, most in (
            ("zones", len(self.zones), MAX_ZONES),
            ("corners of zones", corners, MAX_CORNERS),
            ("pheromone fields", len(self.fields), MAX_FIELDS),
        ):
            if count > most:
                raise ModelError(
                    f"floor: expected at most {most} {what}, found {count}"
                )

        names = [one.name for one in self.fields]
        if len(set(names)) < len(names):
            raise ModelError(
                "floor: expected different names of pheromone fields, found "
                f"{', '.join(names)}"
            )

    @property
    def acts(self) -> bool:
        """Whether a zone acts on the motion or the odometry of robots."""
        return any(zone.acts for zone in self.zones)

    def with_zone(self, zone: FloorZone) -> Floor:
        """Return the floor with a zone on top, or in place of the zone of the same name.

        Parameters
        ----------
        zone : FloorZone
            Zone with a name.

        Raises
        ------
        ModelError
            The floor would have too many zones or corners.
        """
        zones = tuple(zone if one.name == zone.name else one for one in self.zones)
        # Without an equal name, the zone is new.
        if zone not in zones:
            zones = (*zones, zone)
        return replace(self, zones=zones)

    def without_zone(self, name: str) -> Floor:
        """Return the floor without the zones of a name.

        Parameters
        ----------
        name : str
            Name of zones.
        """
        return replace(self, zones=tuple(z for z in self.zones if z.name != name))


__all__ = [
    "GROUND_COLOR",
    "MAX_CORNERS",
    "MAX_FIELDS",
    "MAX_FIELD_CELLS",
    "MAX_PIXELS",
    "MAX_SLIP",
    "MAX_ZONES",
    "OPAQUE",
    "Floor",
    "FloorPicture",
    "FloorZone",
    "PheromoneField",
    "Pixels",
]
