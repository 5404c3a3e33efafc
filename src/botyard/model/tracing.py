"""Conversion of scan points and rasters to walls (tracing).

The result is the exact outline of the union of the points' squares, in as few long
segments as possible.

A map point fills the square [x, x + resolution) × [y, y + resolution). Points on a
common lattice (nearly all maps) are merged: an edge between two filled squares is not
part of the outline, and collinear edges of neighbours become one segment. The 63,311
points of columbia.map give 64,000 segments instead of 253,000. The algorithm works on
sorted keys, so its memory follows the number of points and not the extent.
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

# Map files round coordinates to millimetres.
LATTICE_TOLERANCE = 1e-3
"""Largest distance of a point from the lattice, as a fraction of the resolution."""
MAX_STEPS = 2**31
"""Largest extent of the lattice, in steps.

Points farther apart are not merged, because keys would not fit into 64 bits.
"""


MAX_SIDE = 1e12
"""Largest size of a raster, and largest distance of a raster from the origin, m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCells:
    """Raster from which walls were traced.

    It distinguishes the outline of a solid object from the walls of a hall.

    Attributes
    ----------
    first, last : int
        Rows `first` to `last` − 1 of `Scene.segments` are the outlines of the solid
        cells; there may be none.
    rows, columns : int
        Size in cells. Cells without an outline around them are free, also at the
        border.
    width, height : float
        Size of a cell, m, along the rows and across them.
    origin : Pose
        Lower left corner of cell (0, 0), and direction of the rows; m, rad.

    Raises
    ------
    ModelError
        The rows, the size or the origin are invalid.
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
                "traced cells: expected a range of rows of the segments, and "
                f"numbers of rows and columns from 0 to {MAX_STEPS}, found rows "
                f"{self.first} to {self.last}, {self.rows} × {self.columns} cells"
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
            # The comparisons are written so that NaN fails them.
        ):
            raise ModelError(
                "traced cells: expected cells larger than 0 m, and sides and an "
                f"origin within {MAX_SIDE:g} m, found {self.width:g} m × "
                f"{self.height:g} m at {tuple(self.origin)}"
            )

    @property
    def corners(self) -> Float2D:
        """Corners of the raster, (4, 2), m."""
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
    """Return the outlines of the solid cells of a raster, and a record of the raster.

    Parameters
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    edge : float
        Edge of a cell, m.
    origin : Pose
        Lower left corner of cell (0, 0), and direction of the rows: m, m, rad.
    allow : callable, optional
        Called with the number of further segments before they are made; may raise.
        Default: any number.

    Returns
    -------
    segments : (k, 4) float64
        Outlines x1, y1, x2, y2 in the frame of the world, m: `Scene.segments`.
    traced : tuple of TracedCells
        One entry for all these segments: `Scene.traced`.
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
    """Return which of some keys occur among sorted keys.

    Parameters
    ----------
    sorted_keys : (n,) int64
        Keys, ascending; at least one.
    wanted : (k,) int64
        Keys to look up.

    Returns
    -------
    (k,) bool
        Whether each wanted key is there.
    """
    at = np.searchsorted(sorted_keys, wanted)
    # A position after the end is no valid index. Index 0 replaces it: its key is
    # smaller than the wanted one, so they cannot match.
    at[at == len(sorted_keys)] = 0
    found: NDArray[np.bool_] = sorted_keys[at] == wanted
    return found


def _runs(keys: Int1D) -> tuple[Int1D, Int1D]:
    """Return the first and the last key of each run of consecutive numbers.

    Parameters
    ----------
    keys : (n,) int64
        Keys, ascending and different; there may be none.

    Returns
    -------
    first, last : (k,) int64
        Ends of the runs, both inclusive.
    """
    breaks = np.flatnonzero(np.diff(keys) != 1)
    first = np.concatenate([keys[:1], keys[breaks + 1]])
    last = np.concatenate([keys[breaks], keys[-1:]])
    return first, last


def _edges(across: Int1D, along: Int1D) -> Float2D:
    """Return the outline edges of unit squares that run along one axis.

    Parameters
    ----------
    across, along : (n,) int64
        Cell of each square, across and along the axis, not negative. Squares may
        repeat.

    Returns
    -------
    (k, 4) float64
        Across, start along, across, end along, in cells.
    """
    # The stride keeps keys of different columns from being consecutive.
    stride = int(along.max()) + 3
    # np.unique hashes, which takes ten times as long as sorting.
    keys = np.sort(across * stride + along)
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    parts = []
    # First the edges towards smaller `across`, then the edges towards larger `across`.
    for side in (0, 1):
        neighbour = keys - stride if side == 0 else keys + stride
        first, last = _runs(keys[~_contains(keys, neighbour)])
        column = (first // stride + side).astype(np.float64)
        parts.append(
            np.stack([column, first % stride, column, last % stride + 1], axis=1)
        )

    return np.concatenate(parts)


def _distinct(points: Float2D) -> Float2D:
    """Return the different points, sorted.

    The function does what np.unique does, but sorts the points as complex numbers,
    which releases the GIL.

    Parameters
    ----------
    points : (n, 2) float64
        Points, m.
    """
    keys = np.sort(np.ascontiguousarray(points).view(np.complex128).ravel())
    kept: Float2D = keys[
        np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    ].view(np.float64)
    return kept.reshape(-1, 2)


def squares_to_segments(points: Float2D, resolution: float) -> Float2D:
    """Return the outline of the union of the squares of all points.

    Parameters
    ----------
    points : (m, 2) float64 array
        Lower left corners of the squares, m.
    resolution : float
        Edge of a square, m, greater than 0.

    Returns
    -------
    (k, 4) float64 array
        Segments x1, y1, x2, y2, m, all parallel to an axis. A point that is not on the
        lattice of the others gives four edges of its own.
    """
    if not len(points):
        return np.zeros((0, 4))
    # A quarter of the limit leaves room for the stride of the keys.
    if float(np.abs(points).max()) / resolution >= MAX_STEPS / 4:
        return _four_edges(_distinct(points), resolution)
    # Most points share the phase of their coordinates within a cell. The most frequent
    # phase is the lattice; half the tolerance is added so that rounding does not split
    # a phase.
    phase = np.mod(points / resolution + LATTICE_TOLERANCE / 2, 1.0)
    bucket = np.floor(phase / LATTICE_TOLERANCE).astype(np.int64)
    code = bucket[:, 0] * int(2 / LATTICE_TOLERANCE) + bucket[:, 1]
    values, index, counts = np.unique(code, return_index=True, return_counts=True)
    common = int(np.argmax(counts))
    on_lattice = code == values[common]
    origin = points[index[common]]
    lattice = np.rint((points[on_lattice] - origin) / resolution).astype(np.int64)
    # Keys of squares must not be negative.
    low = lattice.min(axis=0)
    i, j = (lattice - low).T
    upright = _edges(i, j)
    level = _edges(j, i)[:, [1, 0, 3, 2]]
    segments = [
        np.concatenate([upright, level]) * resolution
        + np.tile(origin + low * resolution, 2)
    ]
    # Points off the lattice keep their own squares, so that no shape changes.
    rest = _distinct(points[~on_lattice])
    if len(rest):
        segments.append(_four_edges(rest, resolution))
    return np.concatenate(segments)


def _four_edges(points: Float2D, resolution: float) -> Float2D:
    """Return the four edges of the square of each point.

    Parameters
    ----------
    points : (n, 2) float64
        Lower left corners, m.
    resolution : float
        Edge of a square, m.

    Returns
    -------
    (4 · n, 4) float64
        Edges x1, y1, x2, y2, m.
    """
    x, y = points.T
    x2, y2 = x + resolution, y + resolution
    edges = ((x, y, x2, y), (x2, y, x2, y2), (x2, y2, x, y2), (x, y2, x, y))
    return np.concatenate([np.stack(edge, axis=1) for edge in edges])


def _any_number(_count: int) -> None:
    """Accept any number of segments."""


def mask_to_segments(
    solid: NDArray[np.bool_], allow: Callable[[int], None] = _any_number
) -> Float2D:
    """Return the outline of the solid cells of a raster.

    Parameters
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    allow : callable
        Called with the number of further segments before they are made; may raise.

    Returns
    -------
    (k, 4) float64 array
        Segments x1, y1, x2, y2 in cells from the lower left corner, each parallel to an
        axis and as long as possible. An edge between two solid cells is not part of the
        outline.
    """
    level = _boundary_runs(solid, allow)
    # The transposed raster turns columns into rows; the result is turned back.
    upright = _boundary_runs(solid.T, allow)
    return np.concatenate([level, upright[:, [1, 0, 3, 2]]])


def _boundary_runs(solid: NDArray[np.bool_], allow: Callable[[int], None]) -> Float2D:
    """Return the edges of solid cells that run along the rows of a raster.

    Parameters
    ----------
    solid : (rows, columns) bool
        Solid cells.
    allow : callable
        Called with the number of edges before they are made; may raise.

    Returns
    -------
    (k, 4) float64
        Start, height, end, height, in cells.
    """
    rows, columns = solid.shape
    # Row i of `edge` lies between the raster's rows i − 1 and i.
    edge = np.zeros((rows + 1, columns), np.bool_)
    edge[0] = solid[0] if rows else False
    edge[rows] = solid[rows - 1] if rows else False
    np.not_equal(solid[1:], solid[:-1], out=edge[1:rows])
    # A run starts where an edge follows no edge, and ends where no edge follows an
    # edge. Both are found in the same order, so they alternate.
    change = np.zeros((rows + 1, columns + 1), np.bool_)
    change[:, 0] = edge[:, 0] if columns else False
    change[:, columns] = edge[:, columns - 1] if columns else False
    np.not_equal(edge[:, 1:], edge[:, :-1], out=change[:, 1:columns])
    # Asked before the segments exist, since the caller may refuse their number.
    allow(int(np.count_nonzero(change)) // 2)
    height, at = np.nonzero(change)
    return np.stack([at[::2], height[::2], at[1::2], height[1::2]], axis=1).astype(
        np.float64
    )


def mask_to_rectangles(solid: NDArray[np.bool_], limit: int) -> Float2D:
    """Return the solid cells of a raster as rectangles that do not overlap.

    A rectangle joins a run of solid cells in a row with the equal runs of the rows
    above.

    Parameters
    ----------
    solid : (rows, columns) bool array
        Row 0 is the lowest, column 0 the leftmost.
    limit : int
        The search stops after more than this number of rectangles.

    Returns
    -------
    (k, 4) float64 array
        Minimum x, minimum y, maximum x, maximum y, in cells from the lower left corner.
    """
    open_runs: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int, int, int]] = []
    # The loop runs one row beyond the raster, which closes all open runs.
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
        # The work ends here, because callers refuse more than `limit` rectangles.
        if len(found) + len(open_runs) > limit:
            found += [(x0, y0, x1, row + 1) for (x0, x1), y0 in open_runs.items()]
            break

    return np.array(sorted(found), np.float64).reshape(-1, 4)


def place_segments(segments: Float2D, at: Pose) -> Float2D:
    """Transform segments from the frame of a pose to the world.

    Parameters
    ----------
    segments : (n, 4) float64
        Segments x1, y1, x2, y2 in the frame of the pose, m.
    at : Pose
        Pose of the frame in the world: m, m, rad.

    Returns
    -------
    (n, 4) float64
        Segments in the frame of the world, m; a copy.
    """
    # Without a turn coordinates keep all their bits.
    if at.th:
        c, s = cosine_sine(at.th)
        x, y = segments.reshape(-1, 2).T
        segments = np.stack([c * x - s * y, s * x + c * y], axis=1).reshape(-1, 4)

    placed: Float2D = segments + np.array([at.x, at.y, at.x, at.y])
    return placed


def closed(outline: Outline) -> Float2D:
    """Return the edges of a polygon, with the edge from the last corner to the first.

    Parameters
    ----------
    outline : tuple of (float, float)
        The n corners, m.

    Returns
    -------
    (n, 4) float64
        Edges x1, y1, x2, y2, m.
    """
    corners = np.array(outline)
    return np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1)
