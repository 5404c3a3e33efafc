"""Description of the static parts of a world: walls, points, objects and places.

Descriptions are frozen, in metres and radians, with REP-103 axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.api.extensions import extension
from botyard.errors import ArgumentError, ModelError
from botyard.geometry import Pose
from botyard.model.floor import Floor
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.parameters import check_types
from botyard.model.raster import Raster, rasterise
from botyard.model.shapes import set_fields
from botyard.model.tracing import TracedCells, trace

Float2D = NDArray[np.float64]
MAX_EXTENT_M = 100_000.0
"""Largest width and height of a map, and largest distance from its origin, m.

The limit holds for files, unless their reader is asked to accept larger ones, and for
shapes that programs draw.
"""


@dataclass(frozen=True, slots=True)
class GeoReference:
    """Position of the map's origin on Earth (WGS 84).

    Attributes
    ----------
    latitude, longitude : float
        Degrees north and east.
    altitude : float
        Metres above the ellipsoid.
    """

    latitude: float
    longitude: float
    altitude: float

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Named place on a map: a goal, a dock or a home.

    Attributes
    ----------
    kind : str
        Type as in the map, for example ``GoalWithHeading`` or ``Dock``.
    name : str
        Name; may be empty.
    pose : Pose
        Pose in the world, m and rad.
    has_heading : bool
        Whether `pose.th` is meaningful.
    """

    kind: str
    name: str
    pose: Pose
    has_heading: bool = True

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Named area or line of the map that is not an obstacle.

    Examples are a forbidden line or area, and a sector with bad GPS.

    Attributes
    ----------
    kind, name : str
        Type and name as in the map.
    corners : tuple of (float, float)
        Two end points of a line, or corners of a polygon, m.
    """

    kind: str
    name: str
    corners: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialWalls:
    """Range of walls with limited visibility: glass, curtains, mirrors or painted lines.

    Attributes
    ----------
    first, last : int
        Rows `first` to `last` − 1 of `Scene.segments`.
    returns : Returns
        Visibility of these walls.
    """

    first: int
    last: int
    returns: Returns

    def __post_init__(self) -> None:
        check_types(self)


def _empty(columns: int) -> Float2D:
    return np.zeros((0, columns))


# Old pickles of `Returns` have no material. The method is set here, because each import of
# the class's own module would count as a source of the compiled kernels.
Returns.__setstate__ = set_fields  # type: ignore[attr-defined]


# Comparing arrays gives arrays, so scenes have no generated equality.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Scene:
    """Static description of a world: everything except the robots.

    Attributes
    ----------
    name : str
        Display name of the map.
    source : str
        File that the scene was read from; empty if a program built it.
    map_file : str
        File of the map, if `source` is a scenario that adds to it.
    segments : (n, 4) float64 array
        Walls as x1, y1, x2, y2, m.
    special_walls : tuple of SpecialWalls
        Rows of `segments` that are not ordinary walls.
    traced : tuple of TracedCells
        Rows of `segments` that outline solid cells, each with its raster. `from_array`
        and the readers of images and grids set it. The inside of these outlines is
        solid; the inside of other closed walls is a hall. Rows that no longer outline
        these cells count as other walls.
    points : (m, 2) float64 array
        Scan points, m; each fills the square [x, x + resolution) × [y, y + resolution).
    resolution : float
        Edge of a point's square, m.
    boxes : tuple of BoxObject
        Movable objects.
    places : tuple of Place
        Goals, docks, homes.
    areas : tuple of Area
        Forbidden lines and areas, GPS sectors.
    view : tuple of four floats or None
        Initial view of pictures: min x, min y, max x, max y, m; None: the whole map.
    start : Pose or None
        Start pose of the first robot; None if the map has none.
    georeference : GeoReference or None
        Position of the origin on Earth.
    floor : Floor or None
        Picture, zones and pheromone fields of the floor; None: a plain floor.

    Raises
    ------
    ArgumentError
        An array has the wrong shape or a number that is not finite, or the resolution
        is not positive.
    ModelError
        The rows of special walls are not rows of `segments`.
    """

    name: str = "nomap"
    source: str = ""
    map_file: str = ""
    segments: Float2D = field(default_factory=lambda: _empty(4))
    special_walls: tuple[SpecialWalls, ...] = ()
    traced: tuple[TracedCells, ...] = ()
    points: Float2D = field(default_factory=lambda: _empty(2))
    resolution: float = 0.02
    boxes: tuple[BoxObject, ...] = ()
    places: tuple[Place, ...] = ()
    areas: tuple[Area, ...] = ()
    view: tuple[float, float, float, float] | None = None
    start: Pose | None = None
    georeference: GeoReference | None = None
    floor: Floor | None = None

    __setstate__ = set_fields

    def __post_init__(self) -> None:
        # The class is frozen, so only this call can set the converted arrays.
        object.__setattr__(
            self,
            "segments",
            arguments.array(self.segments, "segments", 4),
        )
        object.__setattr__(self, "points", arguments.array(self.points, "points", 2))
        check_types(self)
        arguments.number(self.resolution, "resolution", low=0.0, above=True, unit="m")
        for wall in self.special_walls:
            if not 0 <= wall.first <= wall.last <= len(self.segments):
                raise ModelError(
                    "special walls: expected a range within the "
                    f"{len(self.segments)} segments, found {wall.first} to "
                    f"{wall.last}"
                )

    def __repr__(self) -> str:
        counts = (
            (len(self.segments), "walls"),
            (len(self.points), "points"),
            (len(self.boxes), "boxes"),
        )
        return (
            f"<Scene {self.name!r}: "
            f"{', '.join(f'{n} {what}' for n, what in counts if n) or 'empty'}>"
        )

    @classmethod
    def from_array(
        cls,
        solid: ArrayLike,
        resolution: float,
        origin: Pose | tuple[float, ...] = (0.0, 0.0),
        *,
        name: str = "array",
    ) -> Scene:
        """Return a scene whose walls are the outlines of an array's solid cells.

        `to_array` converts it back to the same array.

        Parameters
        ----------
        solid : (rows, columns) array of bool
            Row 0 is the lowest, column 0 the leftmost, as in a nav_msgs/OccupancyGrid.
            For an image, reverse the rows: ``solid[::-1]``.
        resolution : float
            Edge of a cell, m.
        origin : Pose or tuple
            Lower left corner of cell (0, 0): x, y, m; a third number rotates the array
            about it, rad.
        name : str
            Display name.

        Raises
        ------
        ArgumentError
            The array is not two-dimensional or not of bool, the resolution is not
            positive, the origin is not two or three finite numbers, the name is not a
            str, or a cell would be farther than `MAX_EXTENT_M` from the origin of the
            world.
        """
        try:
            cells = np.asarray(solid)
        except ValueError:
            # NumPy makes no array of rows with different lengths.
            raise ArgumentError(
                "solid: expected a two-dimensional array of bool, found "
                f"{arguments.found(solid)}"
            ) from None

        # Numbers are refused, because only the user knows the threshold of solid cells.
        if cells.ndim != 2 or cells.dtype != np.bool_:
            # An image of grey values is the likely mistake.
            hint = (
                "; compare it first, as in Scene.from_array(image < 128, …)"
                if cells.ndim == 2
                else ""
            )
            raise ArgumentError(
                "solid: expected a two-dimensional array of bool, found "
                f"{cells.dtype} {cells.shape}{hint}"
            )

        resolution = arguments.number(
            resolution, "resolution", low=0.0, above=True, unit="m"
        )
        corner = arguments.place(origin, "origin")
        arguments.instance(name, "name", str)
        segments, traced = trace(cells, resolution, corner)
        # Free cells at the border also belong to the map, so the whole raster is
        # checked.
        check_extent(traced[0].corners, "solid")
        return cls(name=name, segments=segments, traced=traced, resolution=resolution)

    def to_array(self, resolution: float, *, filled: bool = True) -> Raster:
        """Return the cells that walls and points occupy.

        The `Raster` has ``solid`` (rows, columns) bool, ``x``, ``y`` and
        ``resolution``, m. Row 0 is the lowest. A cell is occupied

        - if it is crossed by a wall that stops robots or that lasers see, or by a
          point's square;
        - with `filled`, also if its centre is in a solid cell of a raster that the map
          was traced from (`traced`). `from_array` and the readers of images, ROS maps
          and other grids trace maps. The inside of other closed walls, such as halls
          and blocks made of lines, is free.

        A traced raster is returned unchanged, including free margins, if it is the whole
        map and the resolution is its own: cell borders then coincide, and outlines
        cross no cell. If the resolution is a whole fraction of the raster's resolution,
        each cell becomes several cells. Otherwise borders are multiples of the
        resolution. The array covers all walls, points and traced rasters. It leaves out
        movable objects. Files of lines (``.map``) do not store traced rasters;
        scenarios that refer to an image or a grid do.

        Parameters
        ----------
        resolution : float
            Edge of a cell, m.
        filled : bool
            False: nothing is filled, and borders are multiples of the resolution.

        Raises
        ------
        ArgumentError
            The resolution is not positive, or `filled` is not a bool.
        WorldError
            There are more than 10⁸ cells, or there is nothing to draw: no walls, no
            points and no traced raster.
        """
        return rasterise(
            self,
            arguments.number(resolution, "resolution", low=0.0, above=True, unit="m"),
            filled=arguments.flag(filled, "filled"),
        )

    @property
    def is_empty(self) -> bool:
        """Whether the map is empty: it has no walls, points or boxes."""
        return not (len(self.segments) or len(self.points) or self.boxes)

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Bounding box of walls, points and boxes; None for an empty world.

        The values are min x, min y, max x, max y, m.
        """
        lows: list[Float2D] = []
        highs: list[Float2D] = []
        if len(self.segments):
            ends = self.segments.reshape(-1, 2)
            lows.append(ends.min(axis=0))
            highs.append(ends.max(axis=0))

        if len(self.points):
            lows.append(self.points.min(axis=0))
            # A point is the lower left corner of its square.
            highs.append(self.points.max(axis=0) + self.resolution)

        for box in self.boxes:
            # A box may have any heading, so the circle around it counts.
            reach = np.array([box.radius, box.radius])
            centre = np.array([box.pose.x, box.pose.y])
            lows.append(centre - reach)
            highs.append(centre + reach)

        if not lows:
            return None
        low, high = np.min(lows, axis=0), np.max(highs, axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def center(self) -> Pose:
        """Centre of the bounds of the map, m; the origin for an empty world."""
        box = self.bounds
        return (
            Pose()
            if box is None
            else Pose((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, 0.0)
        )

    def _repr_png_(self) -> bytes:
        """Return a PNG picture of the scene, which notebooks show."""
        return scene_png(self)


# Pictures belong to a higher layer, which fills in this function.
@extension("scene_png")
def scene_png(scene: Scene) -> bytes:
    """Return a picture of a scene as a PNG file."""
    raise NotImplementedError


def in_polygon(corners: tuple[tuple[float, float], ...], x: float, y: float) -> bool:
    """Return whether a point lies inside a polygon.

    The function uses the even-odd rule (Shimrat, 1962).

    Parameters
    ----------
    corners : tuple of (float, float)
        Corners of the polygon, m. For two corners (a line) the result is False.
    x, y : float
        Point in the same frame, m.
    """
    inside = False
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            inside = not inside

    # A coordinate that is not finite lies inside of no polygon.
    return inside and len(corners) > 2 and math.isfinite(x + y)


def check_extent(lines: Float2D, what: str) -> None:
    """Raise an error for lines or points that exceed the largest size of maps.

    Parameters
    ----------
    lines : (n, 4) or (n, 2) float64
        Lines x1, y1, x2, y2, or points x, y, m.
    what : str
        Name of the parameter in error messages.

    Raises
    ------
    ArgumentError
        The lines or points are wider or higher than `MAX_EXTENT_M`, or farther than
        that from the origin.
    """
    ends = lines.reshape(-1, 2)
    if len(ends):
        far = float(max(np.abs(ends).max(), np.ptp(ends, axis=0).max()))
        # The negated comparison also refuses NaN.
        if not far <= MAX_EXTENT_M:
            raise ArgumentError(
                f"{what}: expected a size and a distance from the origin of at most "
                f"{MAX_EXTENT_M:g} m, found {far:g} m"
            )
