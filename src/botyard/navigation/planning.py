"""Shortest paths for a robot on a raster map: A* and theta*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.engine.kernels.freespace import label_regions
from botyard.errors import ArgumentError, WorldError
from botyard.model.raster import Raster
from botyard.navigation.kernels import planning as kernels
from botyard.navigation.kernels.astar import BUCKETS, FAR, Buckets, a_star, trace
from botyard.navigation.kernels.planning import BLOCKED, Search
from botyard.numerics.elementary import hypot

Bools = NDArray[np.bool_]
F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]
Point = tuple[float, float]
Place = Sequence[float] | F8
"""Position of a point: x and y, m."""

METHODS: Final = ("a_star", "a_star_ps", "theta_star")
MAX_CELLS: Final = 16_000_000
"""Largest number of cells of a raster: a search takes 28 bytes for each."""
FIRST_REACH: Final = 32
"""Half the width of the square in which a free cell is sought first, cells."""
MOST_COST: Final = 64
"""Cost of a cell next to an obstacle: A* counts the cell as five times as long (`Costmap.of`)."""


class Obstruction(Enum):
    """Reasons why a path cannot be found."""

    START_OUTSIDE = "the start is outside of the map"
    GOAL_OUTSIDE = "the goal is outside of the map"
    START_BLOCKED = "the robot does not fit at the start"
    GOAL_BLOCKED = "the robot does not fit at the goal"
    NO_PASSAGE = "no passage leads to the goal"
    GOAL_FAR = "the goal is too far from the robot: arcs are planned up to 10 km"
    NO_ARC = "the turning circle of the robot is too wide for a path to the goal"
    NO_TIME = "the search took too long to find a path of the robot's turning circle to the goal"
    NO_BEND = "the hitches of the trailers bend too little for a path to the goal"
    NO_REVERSE = (
        "a robot with trailers does not reverse, and no other path leads to the goal"
    )
    NO_SWEPT = "the trailers sweep more than the free floor on the way to the goal"


class NoPathError(WorldError):
    """There is no path between two points.

    Parameters
    ----------
    reason : Obstruction
        The reason.
    point : (float, float)
        Start or goal that the reason refers to, m.
    nearest : (float, float), optional
        Nearest usable point, m: it is free, and a goal is also reachable. None if there is none.
    note : str
        Figures of the reason, without a period.
    """

    def __init__(
        self,
        reason: Obstruction,
        point: Point,
        nearest: Point | None = None,
        *,
        note: str = "",
    ) -> None:
        if nearest is not None:
            note = f"the nearest free place is ({nearest[0]:.3f}, {nearest[1]:.3f})"
        hint = f"; {note}" if note else ""
        super().__init__(
            f"no path: {reason.value}, ({point[0]:.3f}, {point[1]:.3f}){hint}"
        )
        self.reason, self.point, self.nearest, self.note = reason, point, nearest, note

    def __reduce__(self) -> tuple[object, ...]:
        # A worker process may raise the error.
        return _no_path, (self.reason, self.point, self.nearest, self.note)


def _no_path(
    reason: Obstruction, point: Point, nearest: Point | None, note: str
) -> NoPathError:
    return NoPathError(reason, point, nearest, note=note)


def distances(solid: Bools, reach: float) -> F8:
    """Return the distance from each cell to the nearest solid cell.

    The distance is Euclidean and exact: the nearest solid cell is found in each row,
    then over the rows (Saito, Toriwaki, "New algorithms for Euclidean distance
    transformation of an n-dimensional digitized picture", Pattern Recognition 27(11),
    1994).

    Parameters
    ----------
    solid : (rows, columns) bool
        Solid cells.
    reach : float
        Distances above it are infinite, in cells.

    Returns
    -------
    (rows, columns) float64
        Distances between centres, in cells.
    """
    rows, columns = solid.shape
    # More than any distance in the raster: there is no solid cell.
    far = rows + columns + 1
    at = np.arange(columns)
    left = np.maximum.accumulate(np.where(solid, at, -far), axis=1)
    right = np.minimum.accumulate(np.where(solid, at, columns + far)[:, ::-1], axis=1)[
        :, ::-1
    ]
    across = np.minimum(at - left, right - at)
    square = across * across
    nearest = square.copy()
    for away in range(1, min(math.floor(min(reach, far)), rows - 1) + 1):
        np.minimum(nearest[away:], square[:-away] + away * away, out=nearest[away:])
        np.minimum(nearest[:-away], square[away:] + away * away, out=nearest[:-away])

    is_near = (nearest <= reach * reach) & (nearest < far * far)
    return np.where(is_near, np.sqrt(nearest), math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Costmap:
    """Raster of cell costs, on which paths are planned.

    Attributes
    ----------
    costs : (rows, columns) uint8
        Cost of each cell: 0 for free ones, `BLOCKED` for those that no path enters. A
        cell of cost c counts as 1 + c / 16 times as long for A*. Row 0 is the lowest.
    x, y : float
        Lower left corner, m.
    resolution : float
        Edge of a cell, m.

    Raises
    ------
    ArgumentError
        The raster has another shape or type, or more than `MAX_CELLS` cells.
    """

    costs: U1
    x: float
    y: float
    resolution: float
    _bordered: U1 = field(init=False, repr=False)
    _labels: list[I4] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        costs = self.costs
        # Kernels do not check their arrays.
        if not isinstance(costs, np.ndarray) or costs.ndim != 2 or costs.dtype != "u1":
            raise ArgumentError(
                "costs: expected an array (rows, columns) of uint8, found "
                f"{arguments.found(costs)}"
            )
        if costs.size > MAX_CELLS:
            raise ArgumentError(
                f"costs: expected at most {MAX_CELLS} cells, found {costs.size}"
            )
        # Kernels do not check indices: a blocked border keeps them inside.
        object.__setattr__(self, "_bordered", np.pad(costs, 1, constant_values=BLOCKED))

    @classmethod
    def of(cls, raster: Raster, radius: float, clearance: float = 0.0) -> Costmap:
        """Return the costmap of a raster for a robot.

        Parameters
        ----------
        raster : Raster
            Solid cells, lower left corner and resolution, as from `Scene.to_array`.
        radius : float
            Radius of the robot, m. A cell is blocked if its centre is nearer to the
            centre of a solid cell. Half a diagonal of a cell on both sides is not
            included: add 1.42 `resolution` if no part of a disc may touch a solid cell.
        clearance : float
            Distance beyond the radius within which cells have a cost, m. The cost falls
            linearly from `MOST_COST` to 0.

        Raises
        ------
        ArgumentError
            An argument is not valid.
        """
        solid = np.asarray(raster.solid)
        if solid.ndim != 2 or solid.dtype != np.bool_:
            raise ArgumentError(
                f"solid: expected an array (rows, columns) of bool, found {arguments.found(raster.solid)}"
            )
        if solid.size > MAX_CELLS:
            raise ArgumentError(
                f"solid: expected at most {MAX_CELLS} cells, found {solid.size}"
            )
        edge = arguments.number(
            raster.resolution, "resolution", low=0.0, above=True, unit="m"
        )
        near = arguments.number(radius, "radius", low=0.0, unit="m") / edge
        beyond = arguments.number(clearance, "clearance", low=0.0, unit="m") / edge
        away = distances(solid, near + beyond)
        costs = np.zeros(solid.shape, np.uint8)
        if beyond > 0.0:
            share = np.clip(1.0 - (away - near) / beyond, 0.0, 1.0)
            costs[:] = np.rint(MOST_COST * share)
        costs[(away < near) | solid] = BLOCKED
        return cls(costs, float(raster.x), float(raster.y), edge)

    def with_polygons(self, polygons: Sequence[F8], reach: float) -> Costmap:
        """Return a costmap in which polygons are obstacles as well.

        Parameters
        ----------
        polygons : sequence of (k, 2) float64
            Corners in order, m.
        reach : float
            A cell is blocked if its centre is within a polygon, or not farther than
            this from its edges, m.
        """
        costs = self.costs.copy()
        rows, columns = costs.shape
        edge = self.resolution
        for corners in polygons:
            x, y = ((corners - (self.x, self.y)) / edge).T
            far = reach / edge
            i0, i1 = (
                int(min(max(v, 0), columns)) for v in (x.min() - far, x.max() + far + 1)
            )
            j0, j1 = (
                int(min(max(v, 0), rows)) for v in (y.min() - far, y.max() + far + 1)
            )
            px = np.arange(i0, i1)[None] + 0.5
            py = np.arange(j0, j1)[:, None] + 0.5
            near = np.zeros((j1 - j0, i1 - i0), np.bool_)
            inside = near.copy()
            for ax, ay, bx, by in zip(
                x, y, np.roll(x, -1), np.roll(y, -1), strict=True
            ):
                ex, ey = bx - ax, by - ay
                square = ex * ex + ey * ey
                along = (px - ax) * ex + (py - ay) * ey
                share = np.clip(along / (square if square > 0.0 else 1.0), 0.0, 1.0)
                dx, dy = px - ax - share * ex, py - ay - share * ey
                near |= dx * dx + dy * dy <= far * far
                # An odd number of edges crosses the line to the right of a point inside.
                if ay != by:
                    inside ^= ((ay > py) != (by > py)) & (
                        px < ax + (py - ay) / (by - ay) * ex
                    )
            costs[j0:j1, i0:i1][near | inside] = BLOCKED
        return Costmap(costs, self.x, self.y, edge)

    @property
    def labels(self) -> I4:
        """Number of the region that each cell belongs to, from 1; 0 for blocked cells.

        The array is (rows, columns) int32. A path leads from each cell of a region to all others.
        """
        if not self._labels:
            blocked = (self.costs == BLOCKED).astype(np.uint8)
            labels: I4 = np.zeros(blocked.shape, np.int32)
            # A diagonal move needs both cells next to it, so that regions are connected
            # by the sides of cells.
            label_regions(blocked, labels, np.zeros(blocked.size, np.int64))
            self._labels.append(labels)
        return self._labels[0]

    def _in_cells(self, point: Place) -> Point | None:
        """Return a point in cells from the lower left corner; None for a point outside of the
        raster.
        """
        x, y = (
            (point[0] - self.x) / self.resolution,
            (point[1] - self.y) / self.resolution,
        )
        rows, columns = self.costs.shape
        return (x, y) if 0.0 <= x < columns and 0.0 <= y < rows else None

    def cell(self, point: Place) -> tuple[int, int] | None:
        """Return column and row of the cell that contains a point (m); None outside of the
        raster.
        """
        at = self._in_cells(point)
        return None if at is None else (int(at[0]), int(at[1]))

    def is_free(self, point: Place) -> bool:
        """Return whether a point (m) lies in a cell that is not blocked."""
        cell = self.cell(point)
        return cell is not None and bool(self.costs[cell[1], cell[0]] != BLOCKED)

    def is_clear(self, a: Place, b: Place) -> bool:
        """Return whether no blocked cell touches the straight line between two points (m)."""
        start, end = self._in_cells(a), self._in_cells(b)
        if start is None or end is None:
            return False
        return bool(
            kernels.is_clear(
                self._bordered,
                start[0] + 1.0,
                start[1] + 1.0,
                end[0] + 1.0,
                end[1] + 1.0,
            )
        )

    def nearest_free(self, point: Place, region: int = 0) -> Point | None:
        """Return the centre of the free cell that is nearest to a point.

        Parameters
        ----------
        point : sequence of float
            x and y, m.
        region : int
            Region in which the cell must lie, see `labels`; 0 for any region.

        Returns
        -------
        (float, float) or None
            The centre, m; None if no cell is free.
        """
        rows, columns = self.costs.shape
        edge = self.resolution
        near_x = min(max(point[0], self.x), self.x + columns * edge)
        near_y = min(max(point[1], self.y), self.y + rows * edge)
        column = min(int((near_x - self.x) / edge), columns - 1)
        row = min(int((near_y - self.y) / edge), rows - 1)
        outside = hypot(point[0] - near_x, point[1] - near_y)
        reach = FIRST_REACH
        # A square around the point is enough, unless a cell beyond it may be nearer.
        while True:
            part = (
                slice(max(row - reach, 0), row + reach + 1),
                slice(max(column - reach, 0), column + reach + 1),
            )
            free = (
                self.labels[part] == region if region else self.costs[part] != BLOCKED
            )
            j, i = np.nonzero(free)
            is_whole, width = free.size == self.costs.size, reach * edge
            if len(i):
                x = self.x + (part[1].start + i + 0.5) * edge
                y = self.y + (part[0].start + j + 0.5) * edge
                dx, dy = x - point[0], y - point[1]
                squares = dx * dx + dy * dy
                k = int(np.argmin(squares))
                is_nearest = squares[k] <= outside * outside + width * width
                if is_whole or is_nearest:
                    return float(x[k]), float(y[k])
            if is_whole:
                return None
            reach *= 4

    def path(self, start: Place, goal: Place, method: str = "theta_star") -> F8:
        """Return a shortest path between two points.

        Parameters
        ----------
        start, goal : sequence of float
            x and y, m.
        method : str
            ``a_star``: over neighbouring cells, eight directions, shortest with the
            costs of cells. ``a_star_ps``: that path without the corners that a clear
            line makes superfluous. ``theta_star``: straight lines in all directions,
            never longer than the other two; costs of free cells do not count.

        Returns
        -------
        (n, 2) float64
            Corners of the path from `start` to `goal`, n ≥ 2, m.

        Raises
        ------
        NoPathError
            There is no path.
        ArgumentError
            An argument is not valid.
        """
        arguments.one_of(method, "method", METHODS)
        a, b = _point(start, "start"), _point(goal, "goal")
        first = self._open_cell(a, Obstruction.START_OUTSIDE, Obstruction.START_BLOCKED)
        region = int(self.labels[first[1], first[0]])
        last = self._open_cell(
            b, Obstruction.GOAL_OUTSIDE, Obstruction.GOAL_BLOCKED, region
        )
        if self.labels[last[1], last[0]] != region:
            raise NoPathError(Obstruction.NO_PASSAGE, b, self.nearest_free(b, region))
        if first == last:
            return np.array([a, b])

        chain = self._shortest(first, last)
        direct = self._with_ends(a, chain, b)
        if method == "a_star":
            return direct
        tight = self._pulled(direct)
        if method == "a_star_ps":
            return tight
        # The path over cells, pulled tight, is often the best; it bounds the search.
        bound = length(tight) / self.resolution + 2.0
        other = self._lines(first, last, bound)
        if other is None:
            return tight
        lines = self._pulled(self._with_ends(a, other, b))
        return lines if length(lines) < length(tight) else tight

    def _open_cell(
        self, point: Point, outside: Obstruction, blocked: Obstruction, region: int = 0
    ) -> tuple[int, int]:
        """Return column and row of the cell at a point, after a check that the cell is not blocked.

        Raises
        ------
        NoPathError
            The point is outside of the raster, or the cell is blocked.
        """
        cell = self.cell(point)
        if cell is None:
            raise NoPathError(outside, point, self.nearest_free(point, region))
        if self.costs[cell[1], cell[0]] == BLOCKED:
            raise NoPathError(blocked, point, self.nearest_free(point, region))
        return cell

    def _numbers(
        self, first: tuple[int, int], last: tuple[int, int]
    ) -> tuple[int, int]:
        """Return the numbers of two cells, given by columns and rows, with the border."""
        columns = self._bordered.shape[1]
        a, b = ((j + 1) * columns + i + 1 for i, j in (first, last))
        return a, b

    def _cells(self, numbers: I4) -> I4:
        """Return columns and rows, (n, 2) int32, of numbers of cells, in reverse order."""
        columns = self._bordered.shape[1]
        turned = numbers[::-1]
        return np.stack([turned % columns - 1, turned // columns - 1], axis=1)

    def _shortest(self, first: tuple[int, int], last: tuple[int, int]) -> I4:
        """Return the cells of a shortest path by A*, between two cells of one region.

        Returns
        -------
        (n, 2) int32
            Columns and rows, n ≥ 2.
        """
        costs, columns = self._bordered.ravel(), self._bordered.shape[1]
        n = costs.size
        start, goal = self._numbers(first, last)
        queue = Buckets(
            length=np.full(n, FAR, np.int64),
            before=np.full(n, -1, np.int32),
            after=np.empty(n, np.int32),
            heads=np.full(BUCKETS, -1, np.int32),
        )
        done = a_star(costs, columns, start, goal, queue)
        assert done > 0, "two cells of one region have a path"
        # The queue is empty now, and its array is long enough for each path.
        count = trace(costs, columns, start, goal, queue.length, queue.after)
        return self._cells(queue.after[:count])

    def _lines(
        self, first: tuple[int, int], last: tuple[int, int], bound: float
    ) -> I4 | None:
        """Return the corners of a path by theta*; None if none is below the bound.

        Parameters
        ----------
        first, last : (int, int)
            Columns and rows of the cells at the ends of the path.
        bound : float
            Length that the path must be shorter than, in cells.

        Returns
        -------
        (n, 2) int32 or None
            Columns and rows.
        """
        costs, n = self._bordered, self._bordered.size
        start, goal = self._numbers(first, last)
        search = Search(
            length=np.full(n, math.inf),
            before=np.empty(n, np.int32),
            heap=np.empty(n, np.int32),
            key=np.empty(n),
            position=np.zeros(n, np.int32),
        )
        if kernels.theta_star(costs, start, goal, bound, search) < 0:
            return None
        chain = [goal]
        while chain[-1] != start:
            chain.append(int(search.before[chain[-1]]))
        return self._cells(np.array(chain, np.int32))

    def _with_ends(self, a: Point, chain: I4, b: Point) -> F8:
        """Return the corners of a path in m, made from the path's cells and its two ends."""
        # A cell between two equal steps is no corner.
        turns = np.diff(chain, 2, axis=0).any(axis=1)
        kept = chain[np.concatenate([[True], turns, [True]])]
        x = self.x + (kept[:, 0] + 0.5) * self.resolution
        y = self.y + (kept[:, 1] + 0.5) * self.resolution
        points = [a, *zip(x.tolist(), y.tolist(), strict=True), b]
        return np.array(
            [p for k, p in enumerate(points) if k == 0 or p != points[k - 1]]
        )

    def _pulled(self, path: F8) -> F8:
        """Return a path without the corners that are not needed, because a straight line is
        free.
        """
        points = path.tolist()
        kept = [points[0]]
        for k in range(1, len(points) - 1):
            if not self.is_clear(kept[-1], points[k + 1]):
                kept.append(points[k])
        return np.array([*kept, points[-1]])


def find_path(
    raster: Raster,
    start: Place,
    goal: Place,
    *,
    radius: float,
    method: str = "theta_star",
    clearance: float = 0.0,
) -> F8:
    """Return a shortest path for a disc-shaped robot on a raster.

    Keep a `Costmap` if you plan more than one path.

    Parameters
    ----------
    raster : Raster
        Solid cells, lower left corner and resolution, as from `Scene.to_array`.
    start, goal : sequence of float
        x and y, m.
    radius, clearance : float
        See `Costmap.of`, m. A clearance needs the method ``a_star``.
    method : str
        ``a_star``, ``a_star_ps`` or ``theta_star``, see `Costmap.path`.

    Returns
    -------
    (n, 2) float64
        Corners of the path from `start` to `goal`, m.

    Raises
    ------
    NoPathError
        There is no path.
    ArgumentError
        An argument is not valid.
    """
    if clearance and method != "a_star":
        raise ArgumentError(
            f'clearance: expected the method "a_star", found {arguments.found(method)}'
        )
    return Costmap.of(raster, radius, clearance).path(start, goal, method)


def length(path: F8) -> float:
    """Return the length of a path with corners.

    Parameters
    ----------
    path : (n, 2) float64
        Corners of the path, m.

    Returns
    -------
    float
        Length, m.
    """
    steps = np.diff(path, axis=0).tolist()
    return math.fsum(hypot(dx, dy) for dx, dy in steps)


def _point(value: Place, name: str) -> Point:
    x, y = (
        arguments.number(v, f"{name}: {axis}", unit="m")
        for v, axis in zip(value[:2], "xy", strict=True)
    )
    return x, y


__all__ = [
    "BLOCKED",
    "MAX_CELLS",
    "METHODS",
    "Costmap",
    "NoPathError",
    "Obstruction",
    "distances",
    "find_path",
    "length",
]
