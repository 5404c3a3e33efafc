"""Grid of the walls of a scene; kernels search for walls in its cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from botyard.engine.build import starts_of
from botyard.engine.kernels import grid as grid_kernels
from botyard.engine.layout import (
    F8,
    I2,
    I4,
    U2,
    WALL_LANES,
    Grid,
)
from botyard.model.floor import Floor
from botyard.model.materials import CODES
from botyard.model.obstacles import Returns, Visible
from botyard.model.scene import Scene
from botyard.model.tracing import squares_to_segments

MIN_CELL = 0.1
"""Least edge of a grid cell, m: of all edges measured, rays are fastest with this one."""
# Four clearances of a byte each, and an offset, take 8 bytes for a cell.
MAX_CELLS = 4e6
"""Highest number of cells in a grid: larger maps get larger cells."""
MAX_ENTRIES = 2e7
"""Highest number of wall entries in all cells together, 44 bytes each.

Maps with many long walls get larger cells.
"""
CELLS_PER_ENTRY = 4.0
"""Number of cells in a grid per entry.

Maps with few walls get larger cells, so that the whole grid fits into a cache of the
processor.
"""
MAX_LISTED_WALLS = 1_000_000
"""Highest number of walls that are also listed one by one, 36 bytes each.

Maps with more walls are dense, and beams walk through the cells of the grid instead.
"""
MAX_LONG_WALLS, MAX_LONG_SHARE = 8, 0.02
"""Limits on the walls that are longer than two wide cells: a number, plus a share of all walls."""
MAX_ENDS_PER_CELL = 50.0
"""Highest mean number of wall ends that share the cell of another end.

With more, cells get smaller than `CELLS_PER_ENTRY` demands. Otherwise a few stray
points far outside would put the whole map into one cell.
"""
SAMPLED_ENDS = 20_000
"""Number of wall ends in the sample for the estimate of `MAX_ENDS_PER_CELL`."""
# Rays from places at the map's bounds stay within the grid in spite of rounding.
GRID_PADDING = 2
"""Number of empty cells around the map's bounds."""
GRID_PHASE = 3 / 32
"""Offset of cell borders from multiples of the cell's edge, in cells.

Outlines of map points lie on such multiples. On a border each of them would be entered
in the cells of both sides.
"""


def build_grid(scene: Scene) -> Grid:
    """Return the static world of a scene as a grid.

    Its walls and the outlines of its points are sorted into cells.

    Parameters
    ----------
    scene : Scene
        Static world; walls that no sensor sees and no robot hits are left out. Movable
        boxes are no part of the grid.
    """
    return _grid_with(scene, 1, lambda returns: returns.laser)


def wall_materials(scene: Scene) -> I2:
    """Return the material of each entry of the grid of a scene.

    Parameters
    ----------
    scene : Scene
        Static world.

    Returns
    -------
    (k,) int16 or (0,)
        Codes of `botyard.model.materials`, in the order of `Grid.seg`; without elements
        if no wall names a material.
    """
    # A second grid of the same walls has the same order of entries; its `bright` holds
    # codes of materials.
    return (
        _grid_with(scene, 0, lambda returns: CODES[returns.material]).bright
        if any(wall.returns.material for wall in scene.special_walls)
        else np.zeros(0, np.int16)
    )


def _grid_with(scene: Scene, usual: int, carried: Callable[[Returns], int]) -> Grid:
    """Return the grid of a scene, with a number for each wall as its laser return.

    Parameters
    ----------
    scene : Scene
        Static world.
    usual : int
        Value of `Grid.bright` for ordinary walls and points.
    carried : callable
        Takes the `Returns` of a special wall; returns its value of `Grid.bright`.
    """
    segments = np.concatenate(
        [scene.segments, squares_to_segments(scene.points, scene.resolution)]
    )
    mask = np.full(len(segments), int(Visible.ALL), np.uint16)
    bright = np.full(len(segments), usual, np.int16)
    for wall in scene.special_walls:
        mask[wall.first : wall.last] = int(wall.returns.mask)
        bright[wall.first : wall.last] = carried(wall.returns)

    # Walls that no sensor and no robot notices cost time only.
    seen = mask != int(Visible.NONE)
    grid = grid_of_segments(segments[seen], mask[seen], bright[seen])
    return with_floor(grid, scene.floor)


def with_floor(grid: Grid, floor: Floor | None) -> Grid:
    """Return a grid with the zones of another floor.

    Parameters
    ----------
    grid : Grid
        Static world; the walls are shared.
    floor : Floor or None
        Floor of the world.
    """
    return grid._replace(**zones_of(floor))


def zones_of(floor: Floor | None) -> dict[str, Any]:
    """Return the fields of `Grid` that hold the zones of a floor that act on robots.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world.
    """
    zones = [zone for zone in (() if floor is None else floor.zones) if zone.acts]
    corners = [np.array(zone.corners, np.float64) for zone in zones]
    rows = [
        (
            *of.min(axis=0),
            *of.max(axis=0),
            math.inf if zone.speed_limit is None else zone.speed_limit,
            math.nan if zone.slip is None else zone.slip,
            math.nan if zone.odometry_scale is None else zone.odometry_scale,
        )
        for zone, of in zip(zones, corners, strict=True)
    ]
    return {
        "zones": np.array(rows, np.float64).reshape(-1, 7),
        "zone_start": starts_of(np.array([len(of) for of in corners], np.int64)),
        "zone_verts": np.concatenate([np.zeros((0, 2)), *corners]),
    }


def _neighbours(ends: F8, h: float) -> float:
    """Estimate how many ends of walls share the cell of another end, on average.

    With c points in a cell the mean is Σ c·(c − 1) / n. A sample of the fraction f has
    f² of the pairs in a cell, so that it allows an estimate.

    Parameters
    ----------
    ends : (n, 2) float64
        Ends of all walls in the frame of the world, m; n > 0.
    h : float
        Edge of a cell, m.
    """
    # A fixed stride and no random sample: the same map gives the same grid.
    every = max(1, len(ends) // SAMPLED_ENDS)
    sample = ends[::every]
    x, y = np.floor((sample - sample.min(axis=0)) / h).astype(np.int64).T
    _, counts = np.unique(x * (int(y.max()) + 1) + y, return_counts=True)
    return float((counts * (counts - 1)).sum()) * every / len(sample)


def crowding(grid: Grid) -> float:
    """Return the mean number of walls in an occupied cell; 0 without walls.

    Parameters
    ----------
    grid : Grid
        Static world.
    """
    occupied = int(np.count_nonzero(grid.clear[0] == 0)) if grid.clear.size else 0
    return len(grid.seg) / occupied if occupied else 0.0


def _wide_cells(walls: F8, nx: int, ny: int) -> dict[str, Any]:
    """Return the fields of `Grid` that list each wall once, in large ("wide") cells.

    Parameters
    ----------
    walls : (n, 4) float64
        Start points and vectors to the end points, in cells of the grid.
    nx, ny : int
        Number of cells of the grid.
    """
    middle, half = (
        walls[:, :2] + 0.5 * walls[:, 2:],
        0.5 * np.abs(walls[:, 2:]).max(1, initial=0),
    )
    # Choose the size of cells so that each holds about one wall.
    side = max(1.0, math.sqrt(nx * ny / max(len(walls), 1)))

    # Each search tests all long walls, so there should be few of them.
    while np.count_nonzero(half > side) > MAX_LONG_SHARE * len(walls) + MAX_LONG_WALLS:
        side *= 2.0
    columns, rows = (max(1, math.ceil(n / side)) for n in (nx, ny))
    ix, iy = (middle / side).astype(np.int64).T
    cell = np.clip(iy, 0, rows - 1) * columns + np.clip(ix, 0, columns - 1)
    # The list after the last cell has the long walls.
    cell[half > side] = columns * rows
    start = np.zeros(columns * rows + 2, np.int32)
    start[1:] = np.cumsum(np.bincount(cell, minlength=columns * rows + 1))

    # Kernels read whole groups of walls. No beam reaches the padding.
    listed = np.full((4, len(walls) + WALL_LANES if len(walls) else 0), np.inf)
    listed[:, : len(walls)] = walls[np.argsort(cell, kind="stable")].T
    return {
        "wall_cell": side,
        "wall_half": float(half[half <= side].max(initial=0.0)),
        "wall_nx": columns,
        "wall_ny": rows,
        "wall_start": start,
        "walls": listed,
    }


def grid_of_segments(segments: F8, mask: U2, bright: I2) -> Grid:
    """Return a grid over segments.

    Parameters
    ----------
    segments : (n, 4) float64 array
        x1, y1, x2, y2, m.
    mask : (n,) uint16 array
        `Visible` classes.
    bright : (n,) int16 array
        Laser returns.

    Returns
    -------
    Grid
        Grid whose cells have an edge of at least `MIN_CELL`; without segments a grid
        without cells.
    """
    # Minima of empty arrays do not exist.
    if not len(segments):
        return Grid(
            x0=0.0,
            y0=0.0,
            h=1.0,
            nx=0,
            ny=0,
            start=np.zeros(1, np.int32),
            seg=np.zeros((0, 4)),
            mask=np.zeros(0, np.uint16),
            bright=np.zeros(0, np.int16),
            plain=True,
            clear=np.zeros((4, 0, 0), np.uint8),
            clear_flat=np.zeros(0, np.uint8),
            near=np.zeros(0, np.int32),
            **_wide_cells(np.zeros((0, 4)), 0, 0),
            **zones_of(None),
        )

    segments = np.ascontiguousarray(segments, np.float64)
    ends = segments.reshape(-1, 2)
    low, high = ends.min(axis=0), ends.max(axis=0)
    # The added metre keeps the area of a single straight wall positive.
    area = float((high[0] - low[0] + 1.0) * (high[1] - low[1] + 1.0))
    # A wall has an entry in each cell along its length. The number of entries
    # depends on the edge of a cell, the edge on the number: a fixed-point iteration.
    ways = float(np.abs(segments[:, 2:] - segments[:, :2]).sum())
    least = h = max(MIN_CELL, math.sqrt(area / MAX_CELLS), ways / MAX_ENTRIES)

    # A few rounds are enough: the edge only needs to be about right.
    for _ in range(8):
        h = max(least, math.sqrt(area / (CELLS_PER_ENTRY * (len(segments) + ways / h))))
    # The loop ends, because `h` does not fall below `least`.
    while h > least and _neighbours(ends, h) > MAX_ENDS_PER_CELL:
        h = max(least, 0.5 * h)
    x0, y0 = (float(v) for v in (np.floor(low / h - GRID_PADDING) - GRID_PHASE) * h)
    nx, ny = (int(v) for v in np.ceil((high - (x0, y0)) / h) + GRID_PADDING)
    start: I4 = np.zeros(nx * ny + 1, np.int32)
    # The first pass counts entries, the second writes them.
    grid_kernels.cover(segments, x0, y0, h, nx, ny, start, start, False)
    grid_kernels.prefix_sum(start)
    entries: I4 = np.zeros(int(start[-1]), np.int32)
    # Copy the offsets, because this pass advances them.
    grid_kernels.cover(segments, x0, y0, h, nx, ny, start.copy(), entries, True)
    seg, seg_mask, seg_bright = (
        np.zeros((len(entries), 4)),
        np.zeros(len(entries), np.uint16),
        np.zeros(len(entries), np.int16),
    )
    grid_kernels.gather(
        segments, mask, bright, entries, x0, y0, h, seg, seg_mask, seg_bright
    )
    clear = np.zeros((4, ny, nx), np.uint8)
    grid_kernels.quadrant_clearance(start, nx, ny, clear)
    plain = bool((mask == int(Visible.ALL)).all() and (bright == 1).all())

    # The same arithmetic as in `gather`: ranges do not depend on how a wall is found.
    inv = 1.0 / h
    cells = (segments - (x0, y0, x0, y0)) * inv
    cells[:, 2:] -= cells[:, :2]
    # If two different walls are hit at the same range, the order of the tests matters.
    if not plain or len(cells) > MAX_LISTED_WALLS:
        cells = cells[:0]

    return Grid(
        x0=x0,
        y0=y0,
        h=h,
        nx=nx,
        ny=ny,
        start=start,
        seg=seg,
        mask=seg_mask,
        bright=seg_bright,
        plain=plain,
        clear=clear,
        clear_flat=clear.reshape(-1),
        near=np.zeros(len(entries), np.int32),
        **_wide_cells(cells, nx, ny),
        **zones_of(None),
    )
