"""Free space of maps, from which places for robots are drawn."""

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
from botyard.sim.rasterframe import Frame

CELL_M: Final = 0.1
"""Least edge of a raster cell, m."""
MAX_CELLS: Final = 4e6
"""Highest number of cells in a raster: larger maps get larger cells."""
MAX_SPACES: Final = 8
"""Number of clearances whose free space is cached, most recently used first.

The free space of a large map takes up to 32 MB, or 5 MB in blocks.
"""
AROUND_M: Final = 5.0
"""Width of the margin around the walls of an open world, m.

The clearance is added to it.

Places in this margin are free.
"""
TOLERANCE: Final = 1e-6
"""Rounding error of a whole number of cells, as a fraction of a cell."""
NO_MAP: Final = (-10.0, -10.0, 10.0, 10.0)
"""Bounds of places in a world without walls, m, as in `Places.random`.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FreeSpace:
    """Cells of a raster in which every place is free.

    Attributes
    ----------
    x0, y0 : float
        Lower left corner of the raster, m.
    cell : float
        Edge of a cell, m.
    columns : int
        Number of cells in a row.
    cells : (k,) int64
        Numbers of free cells, row by row.
    """

    x0: float
    y0: float
    cell: float
    columns: int
    cells: I8


def free_space(
    scene: Scene, grid: Grid, radius: float, clearance: float, *, reachable: bool
) -> FreeSpace:
    """Return the free space of a map for a robot.

    Parameters
    ----------
    scene, grid
        The map.
    radius : float
        Radius of the circle that represents the robot, m.
    clearance : float
        Distance of places from walls, m. Paths between places need no clearance.
    reachable : bool
        Whether all places must be in one region, see `Simulation.random_free_poses`.
    """
    (cells,), raster = _cells(scene, grid, [radius], clearance, reachable)
    return FreeSpace(*raster, cells)


class Around:
    """Floor around a place, divided into regions by walls that a robot cannot pass.

    Parameters
    ----------
    scene, grid
        The map.
    near : Pose
        Centre of the floor.
    radius : float
        Radius of a circle in the robot, m; narrower passages separate regions.
    reach : float
        Half the edge of the square floor, m. Regions that are connected only outside of the
        square count as separate.
    """

    def __init__(
        self, scene: Scene, grid: Grid, near: Pose, radius: float, reach: float
    ) -> None:
        # The square floor then has at most `MAX_CELLS` cells.
        cell = max(CELL_M, 2.0 * reach / math.sqrt(MAX_CELLS))
        edge = math.ceil(2.0 * reach / cell)
        # A square around the place, without a margin
        self._frame = Frame(
            near.x - reach, near.y - reach, cell, edge, edge, 0, 0, 0, 0
        )
        self._stride = hypot(radius, cell / 2.0)
        self._labels = _regions(
            _far_from_walls(grid, self._frame, _solid(scene, self._frame), self._stride)
        )

    def region(self, place: Pose) -> int:
        """Return the number of the region of a place.

        It is 0 if the place is in no region because the robot does not fit.
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
    """Return the free space of a map for circular robots of several radii.

    Parameters
    ----------
    scene, grid
        The map.
    radii : sequence of float
        Radius of each robot, m.
    clearance : float
        Distance of places from walls, m. Paths between places need no clearance.
    reachable : bool
        Whether all places must be in one region, see `Simulation.random_free_poses`.
    boxes : sequence of float
        Radius of each box, m. Boxes come before the robots in `Spaces.radius`, as in
        the rows of the engine.

    Returns
    -------
    Spaces
        Arrays for the kernel that draws places. Robots of equal radius share their
        cells.

    Raises
    ------
    ArgumentError
        There is no room for a robot.
    """
    # Robots of the same radius share their free space.
    different = list(dict.fromkeys(radii))
    found, (x0, y0, cell, columns) = _cells(
        scene, grid, different, clearance, reachable
    )
    spaces = dict(zip(different, found, strict=True))
    blocks: dict[float, tuple[int, int]] = {}
    parts: list[tuple[I4, I4, U1]] = []
    for radius, cells in spaces.items():
        # Kernels require at least one free cell per robot.
        if not len(cells):
            raise ArgumentError(
                f'no place in the map "{scene.name}" is '
                f"{radius + clearance:.3g} m from all walls"
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


def _frame_of(scene: Scene, clearance: float) -> Frame:
    traced = corners_of(scene)
    # Boxes that stand at walls would widen the bounds beyond the walls.
    box = replace(scene, boxes=()).bounds or scene.bounds
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
        # Long thin maps: neither side may have more cells than that.
        width / MAX_CELLS,
        height / MAX_CELLS,
    )
    columns, rows = (
        max(1, math.ceil((x1 - x0) / cell)),
        max(1, math.ceil((y1 - y0) / cell)),
    )
    around = [math.ceil(margin / cell)] * 4
    # The margin ends at the raster of the map, which does not cover the world beyond.
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
    return Frame(x0, y0, cell, columns, rows, left, low, right, high)


def _cells(
    scene: Scene, grid: Grid, radii: Sequence[float], clearance: float, reachable: bool
) -> tuple[list[I8], tuple[float, float, float, int]]:
    """Return numbers of the free cells for each radius, and the raster they refer to.

    Parameters
    ----------
    scene, grid
        The map.
    radii : sequence of float
        Different radii of robots, m.
    clearance : float
        Distance of places from walls, m.
    reachable : bool
        Whether all places must be in one region.

    Returns
    -------
    cells : list of (k,) int64
        Numbers of the free cells for each radius, row by row, ascending.
    raster : (float, float, float, int)
        Lower left corner x, y and edge of a cell, m, and number of columns.
    """
    around = _frame_of(scene, clearance)
    # The margin is expensive and seldom matters, so that the bounds alone are tried
    # first.
    for frame in (around.without_margin, around):
        solid = _solid(scene, frame)
        found = []
        for radius in radii:
            places = _places(scene, grid, frame, solid, radius, clearance, reachable)
            # Without the margin no place was found, so search with it.
            if places is None:
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


def blocked_cells(
    scene: Scene, grid: Grid, raster: tuple[float, float, float, int, int], reach: float
) -> NDArray[np.bool_]:
    """Return the cells of a raster that are solid or near walls.

    Parameters
    ----------
    scene, grid
        The map.
    raster : (float, float, float, int, int)
        Lower left corner x, y and edge of a cell, m; number of columns and rows.
    reach : float
        Distance from the centre of a cell within which a wall is near, m.

    Returns
    -------
    (rows, columns) bool
        True for the cells that are solid or near walls.
    """
    frame = Frame(*raster, 0, 0, 0, 0)
    return ~_far_from_walls(grid, frame, _solid(scene, frame), reach)


def _solid(scene: Scene, frame: Frame) -> NDArray[np.bool_]:
    """Return the cells of a raster whose centres are in something known to be solid."""
    solid = np.zeros(frame.shape, np.bool_)
    for part in solids(scene, Visible.OBSTACLE):
        mark_solid(solid, part, frame.corner, frame.cell)
    mark_points(solid, scene, frame.corner, frame.cell)
    return solid


def _places(
    scene: Scene,
    grid: Grid,
    frame: Frame,
    solid: NDArray[np.bool_],
    radius: float,
    clearance: float,
    reachable: bool,
) -> NDArray[np.bool_] | None:
    """Return the cells in which all places are free, in space that robots can use.

    Parameters
    ----------
    scene, grid
        The map.
    frame : Frame
        Raster, with or without the margin.
    solid : (rows, columns) bool
        Cells whose centres lie in something solid.
    radius : float
        Radius of the circle that represents the robot, m.
    clearance : float
        Distance of places from walls, m.
    reachable : bool
        Whether all places must be in one region.

    Returns
    -------
    (rows, columns) bool or None
        None if the space around the bounds must be searched also, which needs the margin.
    """
    # If the centres of two neighbours are farther than this from walls, a circle on the
    # line between them touches no wall (Pythagoras).
    stride = hypot(radius, frame.cell / 2.0)
    there: NDArray[np.bool_]
    passable = _far_from_walls(grid, frame, solid, stride)
    home = scene.start if reachable else None
    # Robots could leave the bounds, or need the space outside.
    if frame.is_cut and (
        _leads_out(passable)
        or not passable.any()
        or (home is not None and not frame.holds(home))
    ):
        return None

    # Half a diagonal is added, because every place in a free cell must be free.
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

    # Space beyond the walls is free only if robots get from there to space between the
    # walls.
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
    """Return whether a passable cell lies at the border of a raster."""
    return any(
        bool(edge.any())
        for edge in (passable[0], passable[-1], passable[:, 0], passable[:, -1])
    )


def _far_from_walls(
    grid: Grid, frame: Frame, solid: NDArray[np.bool_], reach: float
) -> NDArray[np.bool_]:
    """Return the cells that are neither solid nor near walls.

    Parameters
    ----------
    grid : Grid
        Walls of the map.
    frame : Frame
        Raster.
    solid : (rows, columns) bool
        Cells whose centres lie in something solid.
    reach : float
        Distance from the centre of a cell within which a wall is near, m.

    Returns
    -------
    (rows, columns) bool
        Cells whose centres are farther than `reach` from all walls.
    """
    near: U1 = solid.astype(np.uint8)
    mark_near_walls(Pack(grid), *frame.corner, frame.cell, reach, near)
    far: NDArray[np.bool_] = near == 0
    return far


def _regions(passable: NDArray[np.bool_]) -> I4:
    """Return the region of each cell, from 1 on; 0 for cells in no region."""
    near: U1 = (~passable).astype(np.uint8)
    labels: I4 = np.zeros(near.shape, np.int32)
    label_regions(near, labels, np.zeros(near.size, np.int64))
    return labels


def _numbers(labels: I4) -> I8:
    """Return the numbers of the regions that some cells are in, ascending."""
    return np.flatnonzero(np.bincount(labels.reshape(-1), minlength=1)[1:]) + 1


def _region(
    home: Pose | None, frame: Frame, labels: I4, free: NDArray[np.bool_], stride: float
) -> int:
    """Return the home's region, otherwise the largest within the map's bounds.

    Space around the walls does not count for the size, because it would exceed any
    hall. It counts for a robot that fits nowhere between the walls.
    """
    sizes = np.bincount(labels[free], minlength=int(labels.max()) + 1)
    at_home = 0 if home is None else _label_at(home, frame, labels, stride)
    # The home's region must also have room for starts.
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


def _label_at(home: Pose, frame: Frame, labels: I4, stride: float) -> int:
    """Return the region of the nearest passable cell centre, with no wall in between.

    Each passable centre is farther than `stride` from all walls. Return 0 if there is
    none.
    """
    (x0, y0), cell = frame.corner, frame.cell
    x, y = (home.x - x0) / cell - 0.5, (home.y - y0) / cell - 0.5
    # The centre of the cell that contains the place is never farther away than this.
    reach = max(stride / cell, math.sqrt(0.5))
    rows, columns = (
        np.arange(max(0, math.ceil(at - reach)), min(most, math.floor(at + reach) + 1))
        for at, most in zip((y, x), labels.shape, strict=True)
    )
    away = np.square(rows - y)[:, None] + np.square(columns - x)
    there = labels[np.ix_(rows, columns)]
    # Cells outside of all regions are never the nearest.
    away[there == 0] = math.inf
    if not away.size or not away.min() <= reach * reach:
        return 0
    return int(there.reshape(-1)[away.argmin()])


def _blocks(cells: I8) -> tuple[I4, I4, U1]:
    """Return `Spaces.begin`, `Spaces.before` and `Spaces.runs` of ascending cells.

    A run of cells may continue in the next row.

    Parameters
    ----------
    cells : (k,) int64
        Numbers of free cells, ascending, at least one.

    Returns
    -------
    first : (b,) int32
        Number of the first cell of each block of runs.
    before : (b,) int32
        Number of free cells before each block of runs.
    runs : (b, RUNS_IN_BLOCK, 2) uint8
        Number of occupied cells before each run, and number of free cells in it. Zeros
        fill the last block.
    """
    at = np.flatnonzero(np.diff(cells, prepend=-2) != 1)
    free = np.diff(at, append=len(cells))
    taken = np.diff(cells[at], prepend=0)
    taken[1:] -= free[:-1]
    # A byte holds at most `MAX_RUN`, so longer runs are split into several entries. A
    # longer run of occupied cells starts with entries without free cells; a longer run
    # of free cells ends with entries without occupied cells.
    waiting = np.maximum(taken - 1, 0) // MAX_RUN
    count = waiting + (free + MAX_RUN - 1) // MAX_RUN
    run = np.repeat(np.arange(len(at)), count)
    # Step 0 holds the last of the occupied cells and the first free ones.
    step = (
        np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count) - waiting[run]
    )
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
    """Return a distance between places, m. Raise ArgumentError if it is not valid."""
    return arguments.number(value, "clearance", low=0.0, high=1000.0, unit="m")


__all__ = [
    "AROUND_M",
    "Around",
    "FreeSpace",
    "blocked_cells",
    "checked_clearance",
    "free_space",
    "spaces_of",
]
