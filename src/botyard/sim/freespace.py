"""Free space of maps, in which places for robots are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.engine.episode_starts import MAX_RUN, RUNS_IN_BLOCK, Spaces
from botyard.engine.kernels.freespace import label_regions, mark_near_walls
from botyard.engine.layout import I4, I8, U1, Grid
from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.model.obstacles import Visible
from botyard.model.raster import corners_of, mark_points, mark_solid, solids
from botyard.model.scene import Scene
from botyard.native.kinds import Pack
from botyard.numerics.elementary import hypot

CELL_M: Final = 0.1
"""Least edge of a cell of the raster, m."""
MAX_CELLS: Final = 4e6
"""Cells of a raster: larger maps get larger cells."""
MAX_SPACES: Final = 8
"""Clearances of which free space is kept, the most recently used ones: of a large map
it takes up to 32 MB, or 5 MB in blocks.
"""
AROUND_M: Final = 5.0
"""So far around the walls, and the clearance farther, places are free in a world that
is open, m.
"""
TOLERANCE: Final = 1e-6
"""As a part of a cell: what rounding makes of whole cells."""
NO_MAP: Final = (-10.0, -10.0, 10.0, 10.0)
"""Bounds of places in a world without walls, m, as for `Simulation.random_free_place`.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FreeSpace:
    """Cells of a raster in which all places are free.

    Attributes
    ----------
    x0, y0 : float
        Lower left corner of the raster, m.
    cell : float
        Edge of a cell, m.
    columns : int
        Cells in a row.
    cells : (k,) int64
        Numbers of free cells, row after row.
    """

    x0: float
    y0: float
    cell: float
    columns: int
    cells: I8


@dataclass(frozen=True, slots=True)
class _Frame:
    """A raster over the bounds of a map, and over a margin of cells around them.

    Attributes
    ----------
    x0, y0, cell : float
        Lower left corner of the bounds, and edge of a cell, m.
    columns, rows : int
        Cells over the bounds.
    left, low, right, high : int
        Columns and rows of the margin beside them.
    is_cut : bool
        There is such a margin, but it was left out.
    """

    x0: float
    y0: float
    cell: float
    columns: int
    rows: int
    left: int
    low: int
    right: int
    high: int
    is_cut: bool = False

    @property
    def has_margin(self) -> bool:
        """Whether there are cells beside the bounds."""
        return self.left + self.low + self.right + self.high > 0

    @property
    def without_margin(self) -> _Frame:
        """The cells over the bounds alone."""
        return replace(self, left=0, low=0, right=0, high=0, is_cut=self.has_margin)

    def holds(self, place: Pose) -> bool:
        """Whether a place is within the bounds."""
        across, up = (place.x - self.x0) / self.cell, (place.y - self.y0) / self.cell
        return 0.0 <= across <= self.columns and 0.0 <= up <= self.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns with the margin."""
        return self.low + self.rows + self.high, self.left + self.columns + self.right

    @property
    def corner(self) -> tuple[float, float]:
        """Lower left corner of the margin, m."""
        return self.x0 - self.left * self.cell, self.y0 - self.low * self.cell

    @property
    def bounds(self) -> tuple[slice, slice]:
        """The rows and columns over the bounds."""
        return slice(self.low, self.low + self.rows), slice(
            self.left, self.left + self.columns
        )


def free_space(
    scene: Scene, grid: Grid, radius: float, clearance: float, *, reachable: bool
) -> FreeSpace:
    """The free space of a map for a robot.

    Parameters
    ----------
    scene, grid
        The map.
    radius : float
        The robot is a circle, m.
    clearance : float
        Its places are so far from walls, m. To get from one to another it needs none.
    reachable : bool
        All are in one region, see `Simulation.random_free_poses`.
    """
    (cells,), raster = _cells(scene, grid, [radius], clearance, reachable)
    return FreeSpace(*raster, cells)


class Around:
    """The floor around a place, as far as walls divide it for a robot.

    Parameters
    ----------
    scene, grid
        The map.
    near : Pose
        The place.
    radius : float
        Radius of a circle in the robot, m: a narrower passage divides.
    reach : float
        The floor is a square of twice this edge, m. What is connected outside of it
        alone counts as divided.
    """

    def __init__(
        self, scene: Scene, grid: Grid, near: Pose, radius: float, reach: float
    ) -> None:
        cell = max(CELL_M, 2.0 * reach / math.sqrt(MAX_CELLS))
        edge = math.ceil(2.0 * reach / cell)
        self._frame = _Frame(
            near.x - reach, near.y - reach, cell, edge, edge, 0, 0, 0, 0
        )
        self._stride = hypot(radius, cell / 2.0)
        self._labels = _regions(
            _far_from_walls(grid, self._frame, _solid(scene, self._frame), self._stride)
        )

    def region(self, place: Pose) -> int:
        """The number of the region of a place; 0: it is in none, since the robot does
        not fit.
        """
        return _label_at(place, self._frame, self._labels, self._stride)


def spaces_of(
    scene: Scene,
    grid: Grid,
    radii: Sequence[float],
    clearance: float,
    *,
    reachable: bool,
    boxes: Sequence[float] = (),
) -> Spaces:
    """The free space of a map for robots, as circles of these radii, m, see
    `free_space`; radii of boxes, too.

    Raises
    ------
    ArgumentError
        There is no room for a robot.
    """
    different = list(dict.fromkeys(radii))
    found, (x0, y0, cell, columns) = _cells(
        scene, grid, different, clearance, reachable
    )
    spaces = dict(zip(different, found, strict=True))
    blocks: dict[float, tuple[int, int]] = {}
    parts: list[tuple[I4, I4, U1]] = []
    for radius, cells in spaces.items():
        if not len(cells):
            raise ArgumentError(
                f'no place in the map "{scene.name}" is {radius + clearance:.3g} m from all walls'
            )

        parts.append(_blocks(cells))
        first = max((end for _, end in blocks.values()), default=0)
        blocks[radius] = first, first + len(parts[-1][0])

    begins, before, runs = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    return Spaces(
        frame=np.array([x0, y0, cell]),
        columns=np.array([columns]),
        blocks=np.array([blocks[radius] for radius in radii]),
        begin=begins,
        before=before,
        runs=runs,
        cells=np.array([len(spaces[radius]) for radius in radii]),
        radius=np.array([*boxes, *radii]),
    )


def _frame_of(scene: Scene, clearance: float) -> _Frame:
    traced = corners_of(scene)
    box = (
        replace(scene, boxes=()).bounds or scene.bounds
    )  # of boxes the bounds reach beyond walls that they stand at
    if box is None:
        box = (
            NO_MAP
            if not len(traced)
            else (*traced.min(axis=0).tolist(), *traced.max(axis=0).tolist())
        )
        margin = 0.0
    else:
        margin = AROUND_M + clearance

    x0, y0, x1, y1 = box
    width, height = x1 - x0 + 2.0 * margin, y1 - y0 + 2.0 * margin
    cell = max(
        CELL_M,
        math.sqrt(width * height / MAX_CELLS),
        width / MAX_CELLS,
        height / MAX_CELLS,
    )
    columns, rows = (
        max(1, math.ceil((x1 - x0) / cell)),
        max(1, math.ceil((y1 - y0) / cell)),
    )
    around = [math.ceil(margin / cell)] * 4
    # what is beyond the raster that a map was traced from is not known
    if len(traced):
        least, most = traced.min(axis=0), traced.max(axis=0)
        rest = (
            x0 - least[0],
            y0 - least[1],
            most[0] - x0 - columns * cell,
            most[1] - y0 - rows * cell,
        )
        around = [
            min(n, max(0, math.floor(m / cell + TOLERANCE)))
            for n, m in zip(around, rest, strict=True)
        ]

    left, low, right, high = around
    return _Frame(x0, y0, cell, columns, rows, left, low, right, high)


def _cells(
    scene: Scene, grid: Grid, radii: Sequence[float], clearance: float, reachable: bool
) -> tuple[list[I8], tuple[float, float, float, int]]:
    """Numbers of the free cells of robots of each radius, and the raster that they are
    of: corner, edge and columns.
    """
    around = _frame_of(scene, clearance)
    for frame in (around.without_margin, around):
        solid = _solid(scene, frame)
        found = []
        for radius in radii:
            places = _places(scene, grid, frame, solid, radius, clearance, reachable)
            if places is None:  # the margin counts, too
                break
            found.append(places)
        else:
            break

    inside = [free[frame.bounds] for free in found]
    if all(
        np.count_nonzero(free) == np.count_nonzero(part)
        for free, part in zip(found, inside, strict=True)
    ):
        return [np.flatnonzero(part) for part in inside], (
            frame.x0,
            frame.y0,
            frame.cell,
            frame.columns,
        )

    return [np.flatnonzero(free) for free in found], (
        *frame.corner,
        frame.cell,
        frame.shape[1],
    )


def _solid(scene: Scene, frame: _Frame) -> NDArray[np.bool_]:
    """The cells of a raster whose middles are in something that is known to be solid."""
    solid = np.zeros(frame.shape, np.bool_)
    for part in solids(scene, Visible.OBSTACLE):
        mark_solid(solid, part, frame.corner, frame.cell)
    mark_points(solid, scene, frame.corner, frame.cell)
    return solid


def _places(
    scene: Scene,
    grid: Grid,
    frame: _Frame,
    solid: NDArray[np.bool_],
    radius: float,
    clearance: float,
    reachable: bool,
) -> NDArray[np.bool_] | None:
    """The cells of a raster in which all places are free, and in a region that counts;
    None: what is around the raster matters.
    """
    # farther from walls than this in the middles of two neighbours, a circle touches
    # none on the line between them (Pythagoras)
    stride = hypot(radius, frame.cell / 2.0)
    there: NDArray[np.bool_]
    passable = _far_from_walls(grid, frame, solid, stride)
    home = scene.start if reachable else None
    if frame.is_cut and (
        _leads_out(passable)
        or not passable.any()
        or (home is not None and not frame.holds(home))
    ):
        return None

    free = (
        _far_from_walls(
            grid, frame, solid, radius + clearance + frame.cell * math.sqrt(0.5)
        )
        & passable
    )
    if reachable:
        labels = _regions(passable)
        there = labels == _region(home, frame, labels, free, stride)
        return free & there

    # beyond the walls it is free only where robots get from there to what is between
    # them
    if frame.has_margin:
        labels = _regions(passable)
        between = np.zeros(frame.shape, np.bool_)
        between[frame.bounds] = True
        for there in (free & between, passable & between):
            if there.any():
                there = between | np.isin(labels, _numbers(labels[there]))
                return free & there

    return free


def _leads_out(passable: NDArray[np.bool_]) -> bool:
    """Whether a cell at the border of a raster is passable."""
    return any(
        bool(edge.any())
        for edge in (passable[0], passable[-1], passable[:, 0], passable[:, -1])
    )


def _far_from_walls(
    grid: Grid, frame: _Frame, solid: NDArray[np.bool_], reach: float
) -> NDArray[np.bool_]:
    """The cells of a raster that are not solid, and whose middles are farther than this
    from walls, m.
    """
    near: U1 = solid.astype(np.uint8)
    mark_near_walls(Pack(grid), *frame.corner, frame.cell, reach, near)
    far: NDArray[np.bool_] = near == 0
    return far


def _regions(passable: NDArray[np.bool_]) -> I4:
    """Numbers of the regions that cells are in, from 1 on; 0: in none."""
    near: U1 = (~passable).astype(np.uint8)
    labels: I4 = np.zeros(near.shape, np.int32)
    label_regions(near, labels, np.zeros(near.size, np.int64))
    return labels


def _numbers(labels: I4) -> I8:
    """The regions that some cells are in, ascending."""
    return np.flatnonzero(np.bincount(labels.reshape(-1), minlength=1)[1:]) + 1


def _region(
    home: Pose | None, frame: _Frame, labels: I4, free: NDArray[np.bool_], stride: float
) -> int:
    """The region that places are in: that of the home, else the one that is largest
    within the bounds of the map.

    What lies around the walls does not count there: it would be larger than any hall.
    It does for a robot that nowhere fits between them.
    """
    sizes = np.bincount(labels[free], minlength=int(labels.max()) + 1)
    at_home = 0 if home is None else _label_at(home, frame, labels, stride)
    if at_home and sizes[at_home]:
        return at_home
    within = labels[frame.bounds]
    if free[frame.bounds].any():
        between = _regions(within > 0) if frame.has_margin else within
        largest = int(np.bincount(between[free[frame.bounds]]).argmax())
        return int(within.reshape(-1)[np.argmax(between == largest)])

    numbers = _numbers(within)
    numbers = numbers if len(numbers) else np.arange(len(sizes))
    return int(numbers[sizes[numbers].argmax()])


def _label_at(home: Pose, frame: _Frame, labels: I4, stride: float) -> int:
    """The region of the nearest passable middle that no wall is before: each is farther
    than `stride` from all walls; 0: there is none.
    """
    (x0, y0), cell = frame.corner, frame.cell
    x, y = (home.x - x0) / cell - 0.5, (home.y - y0) / cell - 0.5
    reach = max(
        stride / cell, math.sqrt(0.5)
    )  # the middle of its own cell is no farther
    rows, columns = (
        np.arange(max(0, math.ceil(at - reach)), min(most, math.floor(at + reach) + 1))
        for at, most in zip((y, x), labels.shape, strict=True)
    )
    away = np.square(rows - y)[:, None] + np.square(columns - x)
    there = labels[np.ix_(rows, columns)]
    away[there == 0] = math.inf
    if not away.size or not away.min() <= reach * reach:
        return 0
    return int(there.reshape(-1)[away.argmin()])


def _blocks(cells: I8) -> tuple[I4, I4, U1]:
    """`Spaces.begin`, `Spaces.before` and `Spaces.runs` of cells, ascending. A run of
    cells may go on in the next row.
    """
    at = np.flatnonzero(np.diff(cells, prepend=-2) != 1)
    free = np.diff(at, append=len(cells))
    taken = np.diff(cells[at], prepend=0)
    taken[1:] -= free[:-1]
    # a byte holds no more than `MAX_RUN`: before a run come as many without free cells
    # as its taken cells need, after it the rest of it
    waiting = np.maximum(taken - 1, 0) // MAX_RUN
    count = waiting + (free + MAX_RUN - 1) // MAX_RUN
    run = np.repeat(np.arange(len(at)), count)
    step = (
        np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count) - waiting[run]
    )  # 0: where both begin
    runs: U1 = np.zeros((-(-len(run) // RUNS_IN_BLOCK) * RUNS_IN_BLOCK, 2), np.uint8)
    runs[: len(run), 0] = np.where(
        step < 0, MAX_RUN, np.where(step == 0, (taken - waiting * MAX_RUN)[run], 0)
    )
    runs[: len(run), 1] = np.where(
        step < 0, 0, np.minimum(free[run] - step * MAX_RUN, MAX_RUN)
    )
    runs = runs.reshape(-1, RUNS_IN_BLOCK, 2)
    sums = runs.sum(axis=1, dtype=np.int64)
    before = np.cumsum(sums, axis=0) - sums
    return before.sum(axis=1).astype(np.int32), before[:, 1].astype(np.int32), runs


def checked_clearance(value: object) -> float:
    """A distance between places, m. ArgumentError: it is none."""
    return arguments.number(value, "clearance", low=0.0, high=1000.0, unit="m")


__all__ = [
    "AROUND_M",
    "Around",
    "FreeSpace",
    "checked_clearance",
    "free_space",
    "spaces_of",
]
