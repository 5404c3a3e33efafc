"""From scan points to walls: the exact outline of the union of the points' squares, as
few long segments as possible.

A map point fills the square [x, x + resolution) × [y, y + resolution). Points on a
common lattice (nearly all maps) are merged: an edge between two filled squares is not
part of the outline, and collinear edges of neighbours become one segment.
columbia.map's 63,311 points give 64,000 segments instead of 253,000. Works on sorted
keys, so its memory follows the points, not the extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.geometry import Outline, Pose
from botyard.numerics.elementary import cosine_sine

Float2D = NDArray[np.float64]
Int1D = NDArray[np.int64]

LATTICE_TOLERANCE = 1e-3
"""A point is on the lattice when it is off by less than this part of the resolution."""
MAX_STEPS = 2**31
"""Extent of the lattice, in steps; points farther apart are not merged, because keys
would not fit into 64 bits.
"""


MAX_SIDE = 1e12
"""Greatest size of a raster, and distance from the origin, m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCells:
    """A raster that walls were traced from: what tells the outline of something solid
    from the walls of a hall.

    Attributes
    ----------
    first, last : int
        Rows `first` … `last` − 1 of `Scene.segments` are the outlines of its solid
        cells; as many as there are, also none.
    rows, columns : int
        Its size. Cells without outlines around them are free, also those at its border.
    width, height : float
        Of a cell, m: along its rows, and across.
    origin : Pose
        Lower left corner of cell (0, 0), and direction of the rows; m, rad.
    """

    first: int
    last: int
    rows: int
    columns: int
    width: float
    height: float
    origin: Pose = Pose()

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last or not (
            0 <= self.rows <= MAX_STEPS and 0 <= self.columns <= MAX_STEPS
        ):
            raise ModelError(
                "traced cells: expected rows of the segments, and a size, found "
                f"{self.first} … {self.last}, "
                f"{self.rows} × {self.columns} cells"
            )

        sides = (
            self.rows * self.height,
            self.columns * self.width,
            *map(abs, self.origin),
        )
        if not (
            self.width > 0.0
            and self.height > 0.0
            and all(side <= MAX_SIDE for side in sides)
        ):  # refuses NaN, too
            raise ModelError(
                "traced cells: expected a size of cells and an origin in m, "
                f"found {self.width:g} × {self.height:g} at "
                f"{tuple(self.origin)}"
            )

    @property
    def corners(self) -> Float2D:
        """The corners of the raster, (4, 2), m."""
        x, y = self.columns * self.width, self.rows * self.height
        return place_segments(
            np.array([[0.0, 0.0, x, 0.0], [x, y, 0.0, y]]), self.origin
        ).reshape(4, 2)


def trace(
    solid: NDArray[np.bool_],
    edge: float,
    origin: Pose = Pose(),
    allow: Callable[[int], None] | None = None,
) -> tuple[Float2D, tuple[TracedCells, ...]]:
    """Outlines of the solid cells of a raster in the world, (k, 4) m, and the mark that
    says so: `segments` and `traced` of a scene.

    Parameters
    ----------
    solid, allow
        See `mask_to_segments`.
    edge : float
        Of a cell, m.
    origin : Pose
        Lower left corner of cell (0, 0), and direction of the rows.
    """
    segments = place_segments(
        mask_to_segments(solid, allow or _any_number) * edge, origin
    )
    rows, columns = solid.shape
    cells = TracedCells(
        first=0,
        last=len(segments),
        rows=rows,
        columns=columns,
        width=edge,
        height=edge,
        origin=Pose(*origin),
    )
    return segments, (cells,)


def _contains(sorted_keys: Int1D, wanted: Int1D) -> NDArray[np.bool_]:
    """Which of the `wanted` keys occur in `sorted_keys`."""
    at = np.searchsorted(sorted_keys, wanted)
    at[at == len(sorted_keys)] = 0
    found: NDArray[np.bool_] = sorted_keys[at] == wanted
    return found


def _runs(keys: Int1D) -> tuple[Int1D, Int1D]:
    """First and last key of each run of consecutive keys; empty arrays for no keys."""
    breaks = np.flatnonzero(np.diff(keys) != 1)
    first = np.concatenate([keys[:1], keys[breaks + 1]])
    last = np.concatenate([keys[breaks], keys[-1:]])
    return first, last


def _edges(across: Int1D, along: Int1D) -> Float2D:
    """Outline edges that run in the `along` direction of unit squares: rows (across,
    along begin, across, along end).
    """
    # keys of different columns are never consecutive
    stride = int(along.max()) + 3
    keys = np.sort(
        across * stride + along
    )  # np.unique hashes, which takes ten times as long
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    parts = []
    # the squares' edge towards smaller, then larger `across`
    for side in (0, 1):
        neighbour = keys - stride if side == 0 else keys + stride
        first, last = _runs(keys[~_contains(keys, neighbour)])
        column = (first // stride + side).astype(np.float64)
        parts.append(
            np.stack([column, first % stride, column, last % stride + 1], axis=1)
        )

    return np.concatenate(parts)


def _distinct(points: Float2D) -> Float2D:
    """Unique points, sorted. Like np.unique, but sorted as complex numbers, which
    releases the GIL.
    """
    keys = np.sort(np.ascontiguousarray(points).view(np.complex128).ravel())
    kept: Float2D = keys[
        np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    ].view(np.float64)
    return kept.reshape(-1, 2)


def squares_to_segments(points: Float2D, resolution: float) -> Float2D:
    """Outline of the union of the squares of all points.

    Parameters
    ----------
    points : (m, 2) float64 array
        Lower left corners of the squares, m.
    resolution : float
        Edge of a square, m, greater than 0.

    Returns
    -------
    (k, 4) float64 array
        Segments x1, y1, x2, y2, m, all parallel to an axis. Points off the lattice of
        the others give four edges each.
    """
    if not len(points):
        return np.zeros((0, 4))
    if float(np.abs(points).max()) / resolution >= MAX_STEPS / 4:
        return _four_edges(_distinct(points), resolution)
    phase = np.mod(points / resolution + LATTICE_TOLERANCE / 2, 1.0)
    bucket = np.floor(phase / LATTICE_TOLERANCE).astype(np.int64)
    code = bucket[:, 0] * int(2 / LATTICE_TOLERANCE) + bucket[:, 1]
    values, index, counts = np.unique(code, return_index=True, return_counts=True)
    common = int(np.argmax(counts))
    on_lattice = code == values[common]
    origin = points[index[common]]
    lattice = np.rint((points[on_lattice] - origin) / resolution).astype(np.int64)
    low = lattice.min(axis=0)
    i, j = (lattice - low).T
    upright = _edges(i, j)
    level = _edges(j, i)[:, [1, 0, 3, 2]]
    segments = [
        np.concatenate([upright, level]) * resolution
        + np.tile(origin + low * resolution, 2)
    ]
    rest = _distinct(points[~on_lattice])
    if len(rest):
        segments.append(_four_edges(rest, resolution))
    return np.concatenate(segments)


def _four_edges(points: Float2D, resolution: float) -> Float2D:
    """The four edges of the square of each point."""
    x, y = points.T
    x2, y2 = x + resolution, y + resolution
    edges = ((x, y, x2, y), (x2, y, x2, y2), (x2, y2, x, y2), (x, y2, x, y))
    return np.concatenate([np.stack(edge, axis=1) for edge in edges])


def _any_number(_count: int) -> None:
    """Allow any number of segments."""


def mask_to_segments(
    solid: NDArray[np.bool_], allow: Callable[[int], None] = _any_number
) -> Float2D:
    """Outline of the solid cells of a raster.

    Parameters
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    allow : callable
        Called with the number of further segments before they are made; may raise.

    Returns
    -------
    (k, 4) float64 array
        Segments x1, y1, x2, y2 in cells from the lower left corner, all parallel to an
        axis, as long as they can be. An edge between two solid cells is not part of the
        outline.
    """
    level = _boundary_runs(solid, allow)
    upright = _boundary_runs(solid.T, allow)
    return np.concatenate([level, upright[:, [1, 0, 3, 2]]])


def _boundary_runs(solid: NDArray[np.bool_], allow: Callable[[int], None]) -> Float2D:
    """The edges along the rows of a raster: rows (begin, height, end, height)."""
    rows, columns = solid.shape
    # between a row and the one below
    edge = np.zeros((rows + 1, columns), np.bool_)
    edge[0] = solid[0] if rows else False
    edge[rows] = solid[rows - 1] if rows else False
    np.not_equal(solid[1:], solid[:-1], out=edge[1:rows])
    # a run begins where an edge is and none was before it, and ends likewise; both are
    # found in the same order
    change = np.zeros((rows + 1, columns + 1), np.bool_)
    change[:, 0] = edge[:, 0] if columns else False
    change[:, columns] = edge[:, columns - 1] if columns else False
    np.not_equal(edge[:, 1:], edge[:, :-1], out=change[:, 1:columns])
    allow(int(np.count_nonzero(change)) // 2)
    height, at = np.nonzero(change)
    return np.stack([at[::2], height[::2], at[1::2], height[1::2]], axis=1).astype(
        np.float64
    )


def mask_to_rectangles(solid: NDArray[np.bool_], limit: int) -> Float2D:
    """The solid cells of a raster as rectangles that do not overlap: runs of a row,
    joined with equal runs of the rows above.

    Parameters
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    limit : int
            The search ends when more than this number are found.

    Returns
    -------
    (k, 4) float64 array
        Least x, least y, greatest x, greatest y, in cells from the lower left corner.
    """
    open_runs: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int, int, int]] = []
    for row in range(len(solid) + 1):
        runs: set[tuple[int, int]] = set()
        if row < len(solid):
            change = np.flatnonzero(
                np.diff(np.concatenate([[False], solid[row], [False]]).astype(np.int8))
            )
            runs = set(zip(change[::2].tolist(), change[1::2].tolist(), strict=True))

        for run in [r for r in open_runs if r not in runs]:
            found.append((run[0], open_runs.pop(run), run[1], row))
        for run in runs:
            open_runs.setdefault(run, row)
        if len(found) + len(open_runs) > limit:
            found += [(x0, y0, x1, row + 1) for (x0, x1), y0 in open_runs.items()]
            break

    return np.array(sorted(found), np.float64).reshape(-1, 4)


def place_segments(segments: Float2D, at: Pose) -> Float2D:
    """Transform segments (n, 4) from the frame of a pose to the world."""
    if at.th:
        c, s = cosine_sine(at.th)
        x, y = segments.reshape(-1, 2).T
        segments = np.stack([c * x - s * y, s * x + c * y], axis=1).reshape(-1, 4)

    placed: Float2D = segments + np.array([at.x, at.y, at.x, at.y])
    return placed


def closed(outline: Outline) -> Float2D:
    """The edges of a polygon, (n, 4)."""
    corners = np.array(outline)
    return np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1)
