"""Many beams that walk through the grid together, one stride of all at a time.

The walk of a beam is a chain of instructions that wait for each other, and processors
cannot predict where it ends. Here all beams of a device make a stride before any makes
the next one: a loop without branches, which becomes vector instructions. Beams that
have entered a cell with walls wait, are collected, and test the walls of their cells
one after the other. The cells of a beam, the tests in them and so its range are the same
as in `gridwalk.walk_beams`, to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.beams import Beams
from botyard.engine.kernels.gridwalk import segment_range
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import F8, I4, U1, Grid

LEAST_BEAMS = 24
"""Number of beams from which walking together takes less time than walking in pairs."""
LANES = 200
"""Number of beams that walk together; a multiple of `LANE_GROUP`.

With this distance, fields of a lane do not compete for the same lines of the L1 cache.
"""
LANE_GROUP = 8
"""Loops over lanes run over whole groups.

Otherwise the last lanes would need a loop without vector instructions.
"""
STRIDES = 2
"""Number of strides between two tests of walls.

Fewer leave fewer beams waiting, more have fewer loops over all beams.
"""
# Fields of a lane in `Beams.lanes`, which is one array: between fields of different
# arrays, each loop would have to check whether they overlap.
_PX, _PY, _MX, _MY = (np.uint64(n * LANES) for n in range(4))
_INV_X, _INV_Y, _IX, _IY = (np.uint64(n * LANES) for n in range(4, 8))
_T, _LIMIT, _STEP_X, _STEP_Y = (np.uint64(n * LANES) for n in range(8, 12))
_ORIGIN, _CELL, _QUADRANT, _SIDE = (np.uint64(n * LANES) for n in range(12, 16))
_BEAM, _BEST = (np.uint64(n * LANES) for n in range(16, 18))
LANE_FIELDS = 18
"""Number of fields of a lane.

The position in the mirrored grid, direction and 1 / direction (see `gridwalk.Walk`);
the cell, the length at its entry, and the length at which the walk ends; increments of
the cell number for one cell in x and in y, number of the first cell, number of the
present cell with the offset of the clearances of the quadrant, that offset, and the edge
of the free square; number of the beam. The last field belongs to the beam and not to the
lane: its range. All are float64, and lengths are in cells.
"""


@inline_kernel
def whole_part(x: float) -> float:
    """Return `x` rounded towards 0, with instructions that also exist for vectors."""
    return float(np.int32(x))


@merged_kernel
def start_lanes(grid: Grid, beams: Beams, first: int, count: int) -> None:
    """Put the beams from `first` on into lanes, each at the start of its walk.

    See `gridwalk.aim`.

    Parameters
    ----------
    grid : Grid
        Static world; a plain one.
    beams : Beams
        Beams of the device, with origins and directions in the frame of the world.
        In-place: `lanes`.
    first, count : int
        Index of the first beam in `beams`, and number of beams.
    """
    lanes, raw = beams.lanes, beams.raw
    dir_x, dir_y, org_x, org_y = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y
    x0, y0, inv, nx, ny = (
        grid.x0,
        grid.y0,
        1.0 / grid.h,
        float(grid.nx),
        float(grid.ny),
    )
    size = nx * ny
    for n in range(count):
        k, j = np.uint64(n), np.uint64(first + n)
        dx, dy, limit = dir_x[j], dir_y[j], raw[j] * inv
        gx, gy = (org_x[j] - x0) * inv, (org_y[j] - y0) * inv
        px, py = (gx if dx > 0.0 else nx - gx), (gy if dy > 0.0 else ny - gy)
        mx, my = abs(dx), abs(dy)
        inv_x, inv_y = 1.0 / mx, 1.0 / my
        # Length at which the ray has entered the grid in both coordinates.
        t = max(max(-px * inv_x, -py * inv_y), 0.0)
        meets = t < min(min((nx - px) * inv_x, (ny - py) * inv_y), limit)
        # A ray that never enters the grid waits in its first cell.
        px, py, t = (
            (px if meets else 0.0),
            (py if meets else 0.0),
            (t if meets else 0.0),
        )
        ix, iy = (
            min(whole_part(max(px + t * mx, 0.0)), nx - 1.0),
            min(whole_part(max(py + t * my, 0.0)), ny - 1.0),
        )
        step_x, step_y = (1.0 if dx > 0.0 else -1.0), (nx if dy > 0.0 else -nx)
        quadrant = (size if dx > 0.0 else 0.0) + (2.0 * size if dy > 0.0 else 0.0)
        origin = quadrant + (
            (0.0 if dx > 0.0 else nx - 1.0) + (0.0 if dy > 0.0 else size - nx)
        )
        lanes[k + _PX], lanes[k + _PY], lanes[k + _MX], lanes[k + _MY] = px, py, mx, my
        lanes[k + _INV_X], lanes[k + _INV_Y] = inv_x, inv_y
        lanes[k + _IX], lanes[k + _IY] = ix, iy
        lanes[k + _T], lanes[k + _LIMIT] = (t if meets else math.inf), limit
        lanes[k + _STEP_X], lanes[k + _STEP_Y] = step_x, step_y
        lanes[k + _ORIGIN], lanes[k + _QUADRANT] = origin, quadrant
        lanes[k + _CELL] = origin + ix * step_x + iy * step_y
        lanes[k + _BEAM], lanes[k + _BEST] = float(n), limit

    # The rest of the last group holds beams of earlier walks, perhaps in a larger grid.
    for n in range(count, (count + LANE_GROUP - 1) & -LANE_GROUP):
        k = np.uint64(n)
        lanes[k + _PX] = lanes[k + _PY] = lanes[k + _IX] = lanes[k + _IY] = 0.0
        lanes[k + _CELL] = lanes[k + _ORIGIN] = 0.0
        lanes[k + _T] = math.inf


@inline_kernel
def look_around(lanes: F8, clear: U1, count: int) -> None:
    """Read the free squares of the cells of the first `count` lanes.

    Parameters
    ----------
    lanes : (LANE_FIELDS · LANES,) float64
        `Beams.lanes`.
        In-place: edges of free squares.
    clear : (4·ny·nx,) uint8
        `Grid.clear_flat`.
    count : int
        Number of lanes.
    """
    for n in range(count):
        k = np.uint64(n)
        lanes[k + _SIDE] = float(clear[np.uint64(np.int64(lanes[k + _CELL]))])


@inline_kernel
def make_strides(lanes: F8, nx: float, ny: float, count: int) -> None:
    """Move the first `count` lanes over their free squares; see `gridwalk.stride`.

    Lanes whose walk has ended, or whose cell has walls, stay. A lane that leaves the
    grid gets an infinite length.

    Parameters
    ----------
    lanes : (LANE_FIELDS · LANES,) float64
        `Beams.lanes`.
        In-place: cells, and the lengths at their entries.
    nx, ny : float
        Number of cells of the grid.
    count : int
        Number of lanes, a multiple of `LANE_GROUP`.
    """
    for n in range(count):
        k = np.uint64(n)
        ix, iy, px, py = lanes[k + _IX], lanes[k + _IY], lanes[k + _PX], lanes[k + _PY]
        side, before = lanes[k + _SIDE], lanes[k + _T]
        # Update also a lane that stays, so that its numbers fit into integers.
        edge = max(side, 1.0)
        tx, ty = (
            (ix + edge - px) * lanes[k + _INV_X],
            (iy + edge - py) * lanes[k + _INV_Y],
        )
        t = tx if tx < ty else ty
        jx, jy = (
            max(ix, whole_part(px + t * lanes[k + _MX])),
            max(iy, whole_part(py + t * lanes[k + _MY])),
        )
        jx, jy = (ix + edge if tx < ty else jx), (jy if tx < ty else iy + edge)
        goes = (side > 0.0) & (before < lanes[k + _LIMIT])
        left = (jx >= nx) | (jy >= ny)
        moves = goes & (not left)
        jx, jy = (jx if moves else ix), (jy if moves else iy)
        lanes[k + _IX], lanes[k + _IY] = jx, jy
        lanes[k + _T] = (math.inf if left else t) if goes else before
        lanes[k + _CELL] = (
            lanes[k + _ORIGIN] + jx * lanes[k + _STEP_X] + jy * lanes[k + _STEP_Y]
        )


@inline_kernel
def list_waiting(lanes: F8, waiting: I4, count: int) -> int:
    """Write the lanes whose cells have walls into `waiting`; return their number.

    Parameters
    ----------
    lanes : (LANE_FIELDS · LANES,) float64
        `Beams.lanes`.
    waiting : (LANES,) int32
        In-place: numbers of the lanes.
    count : int
        Number of lanes.
    """
    found = 0
    for n in range(count):
        k = np.uint64(n)
        waiting[np.uint64(found)] = n
        found += int((lanes[k + _T] < lanes[k + _LIMIT]) & (lanes[k + _SIDE] == 0.0))
    return found


@merged_kernel
def meet_waiting(grid: Grid, beams: Beams, first: int, found: int) -> None:
    """Shorten the waiting lanes to the walls of their cells, and let them go on.

    Parameters
    ----------
    grid : Grid
        Static world; a plain one.
    beams : Beams
        Beams of the device, with origins and directions in the frame of the world.
        In-place: `lanes`.
    first : int
        Index in `beams` of the first beam that walks.
    found : int
        Number of lanes in `Beams.waiting`.
    """
    lanes, waiting, dir_x, dir_y = beams.lanes, beams.waiting, beams.dir_x, beams.dir_y
    start, seg, inv = grid.start, grid.seg, 1.0 / grid.h
    x0, y0, org_x, org_y = grid.x0, grid.y0, beams.org_x, beams.org_y
    for n in range(found):
        k = np.uint64(waiting[np.uint64(n)])
        beam = np.uint64(np.int64(lanes[k + _BEAM]))
        j = np.uint64(first) + beam
        gx, gy, dx, dy = (
            (org_x[j] - x0) * inv,
            (org_y[j] - y0) * inv,
            dir_x[j],
            dir_y[j],
        )
        cell = np.uint64(np.int64(lanes[k + _CELL] - lanes[k + _QUADRANT]))
        best = lanes[k + _LIMIT]
        for entry in range(start[cell], start[cell + np.uint64(1)]):
            e = np.uint64(entry)
            best = segment_range(
                seg[e, 0] - gx, seg[e, 1] - gy, seg[e, 2], seg[e, 3], dx, dy, best
            )

        lanes[k + _LIMIT] = lanes[beam + _BEST] = best
        lanes[k + _SIDE] = 1.0


@inline_kernel
def drop_ended(lanes: F8, count: int) -> int:
    """Move the lanes whose walk goes on to the front; return their number.

    Parameters
    ----------
    lanes : (LANE_FIELDS · LANES,) float64
        `Beams.lanes`.
        In-place: the order of lanes.
    count : int
        Number of lanes.
    """
    kept = 0
    for n in range(count):
        k = np.uint64(n)
        if lanes[k + _T] < lanes[k + _LIMIT]:
            if kept < n:
                for field in range(LANE_FIELDS - 1):
                    row = np.uint64(field * LANES)
                    lanes[np.uint64(kept) + row] = lanes[k + row]
            kept += 1

    return kept


@merged_kernel
def walk_lanes(grid: Grid, beams: Beams, first: int, count: int) -> None:
    """Shorten the beams from `first` on, at most `LANES`, to the static world.

    Parameters
    ----------
    grid : Grid
        Static world; a plain one.
    beams : Beams
        Beams of the device, with origins and directions in the frame of the world.
        In-place: `raw`, m, and `bright` of beams that hit a wall.
    first, count : int
        Index of the first beam in `beams`, and number of beams.
    """
    lanes, nx, ny = beams.lanes, float(grid.nx), float(grid.ny)
    start_lanes(grid, beams, first, count)
    left, whole = count, (count + LANE_GROUP - 1) & -LANE_GROUP
    look_around(lanes, grid.clear_flat, whole)
    while left > 0:
        whole = (left + LANE_GROUP - 1) & -LANE_GROUP
        for _ in range(STRIDES):
            make_strides(lanes, nx, ny, whole)
            look_around(lanes, grid.clear_flat, whole)
        found = list_waiting(lanes, beams.waiting, left)
        meet_waiting(grid, beams, first, found)
        left = drop_ended(lanes, left)

    raw, bright, h, inv = beams.raw, beams.bright, grid.h, 1.0 / grid.h
    for n in range(count):
        j, best = np.uint64(first + n), lanes[np.uint64(n) + _BEST]
        hit = best < raw[j] * inv
        bright[j] = 1 if hit else bright[j]
        raw[j] = min(best * h, raw[j]) if hit else raw[j]


@merged_kernel
def walk_together(grid: Grid, beams: Beams, first: int, end: int) -> None:
    """Shorten the beams `first` … `end` − 1 to the static world, a plain grid.

    In a plain grid, it does not matter which of its entries a beam hits.

    Parameters
    ----------
    grid : Grid
        Static world; a plain one.
    beams : Beams
        Beams of the device, with origins and directions in the frame of the world.
        In-place: `raw`, m, and `bright` of beams that hit a wall.
    first, end : int
        Indices in `beams`.
    """
    for begin in range(first, end if grid.nx > 0 else first, LANES):
        walk_lanes(grid, beams, begin, min(end - begin, LANES))


__all__ = ["LANES", "LANE_FIELDS", "LEAST_BEAMS", "walk_together"]
