"""Rasterisation of scenes, for occupancy grids of ROS and images of maps.

`botyard.model.rasterjob` does the same work in a child process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError
from botyard.model.obstacles import Returns, Visible
from botyard.model.tracing import TracedCells
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine

# 100 MB as bytes: enough for a building at 1 cm.
MAX_CELLS: Final = 100_000_000
MAX_POINTS_AT_ONCE: Final = 1_000_000
"""Largest number of sample points on walls in one array operation; bounds its memory.
"""
LATTICE_TOLERANCE: Final = 1e-6
"""Largest distance of a coordinate from the lattice of cells, as a fraction of a cell's edge."""
MIDDLE_TOLERANCE: Final = 1e-9
"""Length by which the squares of points are enlarged, in cells.

Without it, the centre of a cell could lie in a crack between two adjacent squares.
"""
QUARTER_TURN: Final = 1e-9
"""Largest sine or cosine by which an angle may deviate from a multiple of a quarter turn.

A raster rotated by a quarter turn is looked up row by row and column by column.
"""
DRAWN: Final = Visible.OBSTACLE | Visible.LASER
"""Classes of walls that are drawn: they stop robots, or lasers see them."""


class SpecialWalls(Protocol):
    """Interface of the walls of a map that are not ordinary; see
    `botyard.model.scene.SpecialWalls`.
    """

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def returns(self) -> Returns: ...


class Walls(Protocol):
    """Interface of the parts of a `botyard.model.scene.Scene` that are drawn."""

    @property
    def segments(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def special_walls(self) -> Sequence[SpecialWalls]: ...  # noqa: D102
    @property
    def traced(self) -> Sequence[TracedCells]: ...  # noqa: D102
    @property
    def points(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def resolution(self) -> float: ...  # noqa: D102


class Raster(NamedTuple):
    """Grid of cells, some of which are solid.

    Attributes
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    x, y : float
        Lower left corner, m.
    resolution : float
        Edge of a cell, m.
    """

    solid: NDArray[np.bool_]
    x: float
    y: float
    resolution: float


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """Solid cells that walls were traced from, cut to the bounds of the walls.

    Attributes
    ----------
    mark : TracedCells
        Walls and location of the cells.
    inside : (rows, columns) bool array
        Solid cells, starting with cell (`row`, `column`); all other cells are free.
    row, column : int
        First row and column of `inside`.
    """

    mark: TracedCells
    inside: NDArray[np.bool_]
    row: int
    column: int


def corners_of(scene: Walls) -> NDArray[np.float64]:
    """Return the corners of the rasters that the map was traced from, (k, 2), m."""
    # An entry of `traced` may refer to walls that were removed since.
    found = [mark.corners for mark in scene.traced if mark.last <= len(scene.segments)]
    return np.concatenate([np.zeros((0, 2)), *found])


def extent(scene: Walls) -> tuple[float, float]:
    """Return width and height of the area that `rasterise` draws.

    Returns
    -------
    width, height : float
        Size along x and y, m, with the square of a point; 0 without anything to draw.
    """
    parts = [
        p
        for p in (scene.segments.reshape(-1, 2), scene.points, corners_of(scene))
        if len(p)
    ]
    if not parts:
        return 0.0, 0.0
    low, high = (
        np.min([p.min(axis=0) for p in parts], axis=0),
        np.max([p.max(axis=0) for p in parts], axis=0),
    )
    # The square of a point extends one resolution beyond its corner.
    return float(high[0] - low[0]) + scene.resolution, float(
        high[1] - low[1]
    ) + scene.resolution


def is_drawn(scene: Walls) -> bool:
    """Return whether `rasterise` finds something to draw."""
    return bool(len(scene.segments) or len(scene.points) or len(corners_of(scene)))


def solids(scene: Walls, seen: Visible) -> list[Solid]:
    """Return the solid cells that the walls of a map were traced from.

    An entry of `traced` gives no cells if its walls no longer outline cells of its raster,
    because walls were moved or removed.

    Parameters
    ----------
    scene : Walls
        Map with the rasters that its walls were traced from (`traced`).
    seen : Visible
        Classes of walls that count. Cells whose walls have none of them are left out.
    """
    kept = _visible_walls(scene, seen)
    found = []
    for mark in scene.traced:
        if mark.last <= len(scene.segments) and kept[mark.first : mark.last].all():
            solid = _inside(mark, scene.segments[mark.first : mark.last])
            if solid is not None:
                found.append(solid)

    return found


def _inside(mark: TracedCells, segments: NDArray[np.float64]) -> Solid | None:
    """Return the solid cells inside of walls.

    Parameters
    ----------
    mark : TracedCells
        Raster that the walls were traced from.
    segments : (k, 4) float64
        The walls in the frame of the world: x1, y1, x2, y2, m.

    Returns
    -------
    Solid or None
        None if the walls do not outline cells of that raster, or more than `MAX_CELLS`
        cells.
    """
    if not len(segments):
        return Solid(mark, np.zeros((0, 0), np.bool_), 0, 0)
    c, s = cosine_sine(mark.origin.th)
    x, y = segments.reshape(-1, 2).T
    x, y = x - mark.origin.x, y - mark.origin.y
    cells = np.stack(
        [(c * x + s * y) / mark.width, (c * y - s * x) / mark.height], axis=1
    )
    whole = _as_integers(cells)
    if whole is None or (whole < 0).any() or (whole > (mark.columns, mark.rows)).any():
        return None
    low, high = whole.min(axis=0), whole.max(axis=0)
    columns, rows = (high - low).tolist()
    # The map states the size, which may be wrong.
    if rows * columns > MAX_CELLS:
        return None
    ends = (whole - low).reshape(-1, 4)
    upright, level = ends[:, 0] == ends[:, 2], ends[:, 1] == ends[:, 3]
    # In a closed outline an even number of ends meets in every point. An open outline
    # has no inside to fill.
    keys = np.sort((ends[:, [1, 3]] * (columns + 1) + ends[:, [0, 2]]).reshape(-1))
    if not (upright ^ level).all() or not np.array_equal(keys[::2], keys[1::2]):
        return None
    return Solid(mark, _filled(ends[upright], rows, columns), int(low[1]), int(low[0]))


def _as_integers(cells: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Return coordinates as whole numbers of cells; None if they are not on the lattice."""
    whole = np.rint(cells)
    # Rounding errors grow with the coordinates, so the tolerance does so as well.
    if float(np.abs(cells - whole).max()) > LATTICE_TOLERANCE * max(
        1.0, float(np.abs(cells).max())
    ):
        return None

    return whole.astype(np.int64)


def _filled(upright: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.bool_]:
    """Return the cells inside of closed outlines, by the even-odd rule.

    Along a row, each vertical edge toggles between inside and outside.
    """
    # One more row and column, because edges lie between cells.
    toggles = np.zeros((rows + 1, columns + 1), np.bool_)
    # An edge toggles at its lower and at its upper end; the accumulation along the
    # columns fills the rows between.
    for height in (1, 3):
        np.logical_xor.at(toggles, (upright[:, height], upright[:, 0]), True)
    np.logical_xor.accumulate(toggles, axis=0, out=toggles)
    np.logical_xor.accumulate(toggles, axis=1, out=toggles)
    return toggles[:rows, :columns]


def rasterise(scene: Walls, resolution: float, *, filled: bool = True) -> Raster:
    """Return the cells that the static map occupies; movable objects are left out.

    See `botyard.model.scene.Scene.to_array`.

    Parameters
    ----------
    scene : Walls
        Scene.
    resolution : float
        Edge of a cell, m.
    filled : bool
        False: only the cells that walls and points cross.

    Raises
    ------
    WorldError
        There are more than `MAX_CELLS` cells, or there is nothing to draw.
    """
    ends = np.concatenate(
        [
            scene.segments.reshape(-1, 2),
            scene.points,
            scene.points + scene.resolution,
            corners_of(scene),
        ]
    )
    if not len(ends):
        raise WorldError(
            "raster: expected a map with walls or points, found an empty map"
        )
    parts = solids(scene, DRAWN) if filled else []
    anchor = _anchor(scene, parts, resolution) if filled else None
    (x0, y0), (x1, y1) = ends.min(axis=0).tolist(), ends.max(axis=0).tolist()
    # Without a raster to align to, the borders of cells are multiples of their size.
    if anchor is None:
        x0, y0 = (
            math.floor(x0 / resolution) * resolution,
            math.floor(y0 / resolution) * resolution,
        )
    else:
        # Rounded up, so that the raster covers the walls; the tolerance keeps exact
        # fits exact.
        x0, y0 = (
            a - math.ceil((a - low) / resolution - LATTICE_TOLERANCE) * resolution
            for a, low in zip(anchor, (x0, y0), strict=True)
        )

    columns, rows = (
        max(1, math.ceil((b - a) / resolution - LATTICE_TOLERANCE))
        for a, b in ((x0, x1), (y0, y1))
    )
    # A wall on the upper or right border needs a further row or column.
    if anchor is None:
        columns, rows = columns + 1, rows + 1
    if rows * columns > MAX_CELLS:
        raise WorldError(
            f"raster: expected at most {MAX_CELLS:.0e} cells, found {columns} × {rows} "
            "(choose a coarser resolution)"
        )

    solid = np.zeros((rows, columns), np.bool_)
    drawn = _visible_walls(scene, DRAWN)
    for part in parts:
        mark_solid(solid, part, (x0, y0), resolution)
        walls = scene.segments[part.mark.first : part.mark.last].reshape(-1, 2)
        # If no wall crosses a cell, the solid cells are exact without their outline.
        if not len(walls) or _as_integers((walls - (x0, y0)) / resolution) is not None:
            drawn[part.mark.first : part.mark.last] = False

    _draw(solid, scene.segments[drawn], (x0, y0), resolution)
    # The rounding to a millionth of a cell keeps points on a border in their own cell.
    cells = np.rint((scene.points - (x0, y0)) / resolution * 1e6) / 1e6
    _mark_squares(
        solid,
        np.floor(cells).astype(np.int64),
        max(1, round(scene.resolution / resolution)),
    )
    return Raster(solid, x0, y0, resolution)


def _anchor(
    scene: Walls, parts: Sequence[Solid], resolution: float
) -> tuple[float, float] | None:
    """Return a grid corner with which to align the new raster, m; None if there is none.

    The first choice is the lower left corner of the first of `parts` whose cells lie on
    one grid and divide into a whole number of cells of this resolution. Otherwise it is
    the lowest x and y of the scene's points, if they lie on one grid of this resolution.
    """
    for part in parts:
        mark = part.mark
        corners = mark.corners
        low = corners.min(axis=0)
        several = np.array([mark.width, mark.height]) / resolution
        if (
            _as_integers((corners - low) / resolution) is not None
            and _as_integers(several) is not None
            # A much coarser resolution would round to zero cells, which also is a
            # whole number.
            and several.min() > 0.5
        ):
            return float(low[0]), float(low[1])

    if len(scene.points) and scene.resolution == resolution:
        low = scene.points.min(axis=0)
        if _as_integers((scene.points - low) / resolution) is not None:
            return float(low[0]), float(low[1])

    return None


def mark_solid(
    cells: NDArray[np.bool_], solid: Solid, corner: tuple[float, float], edge: float
) -> None:
    """Mark the cells of a raster whose centres are in solid cells.

    Parameters
    ----------
    cells : (rows, columns) bool array
        Raster to mark.
    solid : Solid
        Solid cells.
    corner : (float, float)
        Lower left corner of the raster, m.
    edge : float
        Edge of a cell of the raster, m.
    """
    if not solid.inside.size:
        return
    (rows, columns), mark = cells.shape, solid.mark
    c, s = cosine_sine(mark.origin.th)
    x = (np.arange(columns) + 0.5) * edge + (corner[0] - mark.origin.x)
    y = (np.arange(rows) + 0.5) * edge + (corner[1] - mark.origin.y)
    # A border of free cells represents all cells farther out.
    inside = np.pad(solid.inside, 1)
    if abs(s) < QUARTER_TURN or abs(c) < QUARTER_TURN:
        turned = abs(s) >= QUARTER_TURN
        # At a quarter turn each local coordinate depends on one axis only.
        across, up = (s * y, -s * x) if turned else (c * x, c * y)
        column, row = (
            _index(across, mark.width, solid.column, inside.shape[1]),
            _index(up, mark.height, solid.row, inside.shape[0]),
        )
        there = inside[np.ix_(row, column)]
        cells |= there.T if turned else there
        return

    # At any other angle each cell has its own index. Portions bound the memory.
    portion = max(1, MAX_POINTS_AT_ONCE // columns)
    for first in range(0, rows, portion):
        part = y[first : first + portion, None]
        column = _index(c * x + s * part, mark.width, solid.column, inside.shape[1])
        row = _index(c * part - s * x, mark.height, solid.row, inside.shape[0])
        cells[first : first + portion] |= inside[row, column]


def _index(
    local: NDArray[Any], edge: float, first: int, count: int
) -> NDArray[np.int64]:
    """Return the indices of coordinates in a padded row of cells.

    Parameters
    ----------
    local : (…) float64
        Coordinates from the corner of the raster, m.
    edge : float
        Edge of a cell along this axis, m.
    first : int
        Number of the first cell of the row.
    count : int
        Number of cells in the padded row.

    Returns
    -------
    (…) int64
        Indices; 0 and `count` − 1 represent all cells outside.
    """
    # Indices beyond both ends fall onto the free border.
    found: NDArray[np.int64] = np.clip(
        np.floor(local / edge) - (first - 1), 0, count - 1
    ).astype(np.int64)
    return found


def mark_points(
    cells: NDArray[np.bool_], scene: Walls, corner: tuple[float, float], edge: float
) -> None:
    """Mark the cells of a raster whose centres are in squares of scan points.

    Parameters
    ----------
    cells : (rows, columns) bool array
        Raster to mark; it is changed in place.
    scene : Walls
        Map with scan points and the edge of their squares.
    corner : (float, float)
        Lower left corner of the raster, m.
    edge : float
        Edge of a cell of the raster, m.
    """
    if not len(scene.points):
        return
    size = cells.shape[::-1]
    # Lower left corner of each point's square, in cells from the centre of cell (0, 0).
    at = (scene.points - corner) / edge - 0.5
    first = np.ceil(np.clip(at - MIDDLE_TOLERANCE, 0, size)).astype(np.int64)
    last = np.ceil(
        np.clip(at + (scene.resolution / edge + MIDDLE_TOLERANCE), 0, size)
    ).astype(np.int64)
    some = (first < last).all(axis=1)
    _mark_rectangles(cells, first[some], last[some])


def _visible_walls(scene: Walls, seen: Visible) -> NDArray[np.bool_]:
    """Return which walls belong to at least one of the classes `seen`."""
    keep = np.ones(len(scene.segments), np.bool_)
    for wall in scene.special_walls:
        keep[wall.first : wall.last] = bool(wall.returns.mask & seen)
    return keep


def _draw(
    solid: NDArray[np.bool_],
    walls: NDArray[np.float64],
    corner: tuple[float, float],
    resolution: float,
) -> None:
    """Mark the cells that walls cross.

    Parameters
    ----------
    solid : (rows, columns) bool
        Raster to mark; it is changed in place. Walls are sampled at most a quarter of a cell apart.
    walls : (k, 4) float64
        Walls x1, y1, x2, y2, m.
    corner : (float, float)
        Lower left corner of the raster, m.
    resolution : float
        Edge of a cell, m.
    """
    if not len(walls):
        return
    scaled = (walls - np.array([*corner, *corner])) / resolution
    counts = (
        np.ceil(
            # Four samples per cell: they miss at most a corner of a cell that a wall
            # crosses.
            4.0
            * elementwise.hypot(
                scaled[:, 2] - scaled[:, 0], scaled[:, 3] - scaled[:, 1]
            )
        ).astype(np.int64)
        + 1
    )
    for first, last in _portions(counts):
        part, n = scaled[first:last], counts[first:last]
        index = np.repeat(np.arange(len(part)), n)
        step = np.arange(len(index)) - np.repeat(np.cumsum(n) - n, n)
        # A wall without length has one sample.
        share = step / np.maximum(n[index] - 1, 1)
        x = part[index, 0] + share * (part[index, 2] - part[index, 0])
        y = part[index, 1] + share * (part[index, 3] - part[index, 1])
        # The small offset puts walls on a border into the upper or right cell despite
        # rounding.
        column = np.clip(np.floor(x + 1e-9).astype(np.int64), 0, solid.shape[1] - 1)
        row = np.clip(np.floor(y + 1e-9).astype(np.int64), 0, solid.shape[0] - 1)
        solid[row, column] = True


def _mark_squares(
    solid: NDArray[np.bool_], corners: NDArray[np.int64], reach: int
) -> None:
    """Mark the cells of squares, as far as they are in the raster.

    Parameters
    ----------
    solid : (rows, columns) bool
        Raster to mark; it is changed in place.
    corners : (k, 2) int64
        Lower left cell of each square, column and row; it may be outside.
    reach : int
        Edge of the squares, in cells, at least 1.
    """
    rows, columns = solid.shape
    # Clipping the size first keeps the sum within 64 bits.
    first = np.clip(corners, 0, (columns, rows))
    last = np.clip(corners + min(reach, rows + columns), 0, (columns, rows))
    if reach == 1:
        inside = (corners[:, 0] < columns) & (corners[:, 1] < rows)
        solid[corners[inside, 1], corners[inside, 0]] = True
        return

    _mark_rectangles(solid, first, last)


def _mark_rectangles(
    solid: NDArray[np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]
) -> None:
    """Mark the cells of rectangles.

    A two-dimensional difference array (summed-area table) makes the time independent of
    their size.

    Parameters
    ----------
    solid : (rows, columns) bool
        Raster to mark; it is changed in place.
    first, last : (n, 2) int64
        First cell, column and row, and the cell after the last one along both axes. All
        rectangles are in the raster.
    """
    rows, columns = solid.shape
    change = np.zeros((rows + 1, columns + 1), np.int32)
    # The sums over both axes turn the four corners of a rectangle into its cells.
    for x, y, sign in (
        (first, first, 1),
        (last, first, -1),
        (first, last, -1),
        (last, last, 1),
    ):
        np.add.at(change, (y[:, 1], x[:, 0]), sign)

    np.cumsum(np.cumsum(change, axis=0, out=change), axis=1, out=change)
    # Rectangles may overlap, so the sum can exceed 1.
    solid |= change[:rows, :columns] > 0


def _portions(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, end) of items that one array operation processes together.

    The `counts` of a range sum up to at most `MAX_POINTS_AT_ONCE`, unless it is a
    single item.
    """
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = max(
            # At least one item, since a single long wall may exceed the limit.
            first + 1,
            int(np.searchsorted(ends, before + MAX_POINTS_AT_ONCE, "right")),
        )
        yield first, last
        first = last


__all__ = [
    "MAX_CELLS",
    "Raster",
    "Solid",
    "Walls",
    "corners_of",
    "extent",
    "is_drawn",
    "mark_points",
    "mark_solid",
    "rasterise",
    "solids",
]
