"""Rasterisation of scenes: occupancy grids for ROS, images of maps. `botyard.model.rasterjob` does it in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard import elementwise
from botyard.errors import WorldError
from botyard.model.obstacles import Returns, Visible
from botyard.model.tracing import squares_to_segments

MAX_CELLS: Final = 100_000_000
MAX_POINTS_AT_ONCE: Final = 1_000_000
"""Sample points on walls that are processed in one array operation: bounds its memory."""
LATTICE_TOLERANCE: Final = 1e-6
"""Coordinates this close to a lattice of cells, as a part of a cell, count as on it."""


class SpecialWalls(Protocol):
    """Walls that are not ordinary, see `botyard.model.scene.SpecialWalls`."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def returns(self) -> Returns: ...


class Walls(Protocol):
    """What of a `botyard.model.scene.Scene` is drawn."""

    @property
    def segments(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def special_walls(self) -> Sequence[SpecialWalls]: ...  # noqa: D102
    @property
    def points(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def resolution(self) -> float: ...  # noqa: D102


class Raster(NamedTuple):
    """A grid of cells.

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


def extent(scene: Walls) -> tuple[float, float]:
    """Width and height of what `rasterise` draws, m."""
    parts = [p for p in (scene.segments.reshape(-1, 2), scene.points) if len(p)]
    if not parts:
        return 0.0, 0.0
    low, high = np.min([p.min(axis=0) for p in parts], axis=0), np.max([p.max(axis=0) for p in parts], axis=0)
    return float(high[0] - low[0]) + scene.resolution, float(high[1] - low[1]) + scene.resolution


def _lattice(scene: Walls, resolution: float) -> NDArray[np.int64] | None:
    """The walls in cell coordinates, if they outline cells of this size: axis-parallel, on one lattice, and closed; else None."""
    if scene.special_walls or not len(scene.segments) or (len(scene.points) and scene.resolution != resolution):
        return None
    walls = (
        np.concatenate([scene.segments, squares_to_segments(scene.points, resolution)])
        if len(scene.points)
        else scene.segments
    )
    ends = walls.reshape(-1, 2)
    low = ends.min(axis=0)
    cells = (ends - low) / resolution
    whole = np.rint(cells)
    if float(np.abs(cells - whole).max()) > LATTICE_TOLERANCE * max(1.0, float(np.abs(cells).max())):
        return None
    segments: NDArray[np.int64] = whole.astype(np.int64).reshape(-1, 4)
    upright, level = segments[:, 0] == segments[:, 2], segments[:, 1] == segments[:, 3]
    if not (upright | level).all():
        return None
    # in a closed outline an even number of ends meets in every point
    corners, counts = np.unique(segments.reshape(-1, 2), axis=0, return_counts=True)
    return segments if len(corners) and not (counts % 2).any() else None


def rasterise(scene: Walls, resolution: float, *, filled: bool = True) -> Raster:
    """The cells that the static map occupies; movable objects are left out.

    Walls traced from a raster of this resolution give that raster again, filled; of other maps, the cells that walls cross.

    Parameters
    ----------
    scene : Walls
        The scene.
    resolution : float
        Edge of a cell, m.
    filled : bool
        False: of all maps the cells that walls cross.

    Raises
    ------
    WorldError
        More than `MAX_CELLS` cells, or nothing to draw.
    """
    ends = np.concatenate([scene.segments.reshape(-1, 2), scene.points, scene.points + scene.resolution])
    if not len(ends):
        raise WorldError("a raster of an empty map: there is nothing to draw")
    lattice = _lattice(scene, resolution) if filled else None
    x0, y0 = (float(v) for v in ends.min(axis=0))
    if lattice is None:  # borders of cells on multiples of their size
        x0, y0 = math.floor(x0 / resolution) * resolution, math.floor(y0 / resolution) * resolution
    x1, y1 = (float(v) for v in ends.max(axis=0))
    columns, rows = (max(1, math.ceil((b - a) / resolution - LATTICE_TOLERANCE)) for a, b in ((x0, x1), (y0, y1)))
    if lattice is None:  # a wall on the very edge
        columns, rows = columns + 1, rows + 1
    if rows * columns > MAX_CELLS:
        raise WorldError(
            f"a raster of {columns} × {rows} cells; at most {MAX_CELLS:.0e} (a coarser --resolution helps)"
        )
    solid = np.zeros((rows, columns), np.bool_)
    if lattice is not None:
        _fill(solid, lattice)
        return Raster(solid, x0, y0, resolution)
    _draw(solid, _solid_walls(scene), (x0, y0), resolution)
    cells = np.rint((scene.points - (x0, y0)) / resolution * 1e6) / 1e6
    _mark_squares(solid, np.floor(cells).astype(np.int64), max(1, round(scene.resolution / resolution)))
    return Raster(solid, x0, y0, resolution)


def _solid_walls(scene: Walls) -> NDArray[np.float64]:
    """The walls that block robots or are visible to lasers."""
    keep = np.ones(len(scene.segments), np.bool_)
    for wall in scene.special_walls:
        keep[wall.first : wall.last] = bool(wall.returns.mask & (Visible.OBSTACLE | Visible.LASER))
    kept: NDArray[np.float64] = scene.segments[keep]
    return kept


def _fill(solid: NDArray[np.bool_], segments: NDArray[np.int64]) -> None:
    """Fill closed outlines by the even-odd rule: along a row, each vertical edge toggles inside and outside."""
    rows, columns = solid.shape
    change = np.zeros((rows + 1, columns + 1), np.int8)
    upright = segments[segments[:, 0] == segments[:, 2]]
    low, high = np.minimum(upright[:, 1], upright[:, 3]), np.maximum(upright[:, 1], upright[:, 3])
    np.add.at(change, (low, upright[:, 0]), 1)
    np.add.at(change, (high, upright[:, 0]), -1)
    edges = np.cumsum(change, axis=0)[:rows]
    solid[:] = (np.cumsum(edges, axis=1)[:, :columns] % 2).astype(np.bool_)


def _draw(solid: NDArray[np.bool_], walls: NDArray[np.float64], corner: tuple[float, float], resolution: float) -> None:
    """Mark the cells that walls cross, by samples a quarter of a cell apart."""
    if not len(walls):
        return
    scaled = (walls - np.array([*corner, *corner])) / resolution
    counts = (
        np.ceil(4.0 * elementwise.hypot(scaled[:, 2] - scaled[:, 0], scaled[:, 3] - scaled[:, 1])).astype(np.int64) + 1
    )
    for first, last in _portions(counts):
        part, n = scaled[first:last], counts[first:last]
        index = np.repeat(np.arange(len(part)), n)
        step = np.arange(len(index)) - np.repeat(np.cumsum(n) - n, n)
        share = step / np.maximum(n[index] - 1, 1)
        x = part[index, 0] + share * (part[index, 2] - part[index, 0])
        y = part[index, 1] + share * (part[index, 3] - part[index, 1])
        column = np.clip(np.floor(x + 1e-9).astype(np.int64), 0, solid.shape[1] - 1)
        row = np.clip(np.floor(y + 1e-9).astype(np.int64), 0, solid.shape[0] - 1)
        solid[row, column] = True


def _mark_squares(solid: NDArray[np.bool_], corners: NDArray[np.int64], reach: int) -> None:
    """Mark squares of `reach` cells from their lower left cells (column, row) on, as far as they are in the raster.

    By a two-dimensional difference array (summed-area table), so that the time does not depend on the squares' size.
    """
    rows, columns = solid.shape
    first = np.clip(corners, 0, (columns, rows))
    last = np.clip(corners + min(reach, rows + columns), 0, (columns, rows))
    if reach == 1:
        inside = (corners[:, 0] < columns) & (corners[:, 1] < rows)
        solid[corners[inside, 1], corners[inside, 0]] = True
        return
    change = np.zeros((rows + 1, columns + 1), np.int32)
    for x, y, sign in ((first, first, 1), (last, first, -1), (first, last, -1), (last, last, 1)):
        np.add.at(change, (y[:, 1], x[:, 0]), sign)
    np.cumsum(np.cumsum(change, axis=0, out=change), axis=1, out=change)
    solid |= change[:rows, :columns] > 0


def _portions(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges (first, end) of items to process together: their `counts` sum up to `MAX_POINTS_AT_ONCE`, or it is a single item."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + MAX_POINTS_AT_ONCE, "right")))
        yield first, last
        first = last


__all__ = ["MAX_CELLS", "Raster", "Walls", "extent", "rasterise"]
