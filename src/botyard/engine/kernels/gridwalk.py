"""Beams that walk through the grid of the static world.

They jump from cell to cell over free squares, and test the walls of the cells they
enter.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.beams import Beams
from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.layout import F8, I4, U2, Grid
from botyard.numerics.elementary import hypot

END_TOLERANCE = 1e-12
"""Extension of segments at both ends, relative to their length.

It keeps rays from passing through corners.
"""
Walk = tuple[
    float, float, float, float, float, float, int, int, int, int, int, int, float
]
"""Ray in a grid that is mirrored so that the ray runs towards +x and +y.

The elements are origin and direction; 1 / direction; the increments of the cell number
for one cell in x, one in y, and for the first cell; the offset of the clearances of its
quadrant; the first cell, and the length at which it is entered. All lengths are in
cells.
"""


@inline_kernel
def segment_range(
    ax: float, ay: float, ex: float, ey: float, dx: float, dy: float, best: float
) -> float:
    """Return the distance along a ray to a segment, or `best` if it is not nearer.

    A missed segment also gives `best`.

    Solves origin + t·d = a + u·e for t ≥ 0 and 0 ≤ u ≤ 1. A parallel segment gives
    infinite or undefined t and u, which fail the comparisons. These are joined without
    branches, because branch prediction would fail.

    Parameters
    ----------
    ax, ay : float
        Start of the segment from the origin of the ray.
    ex, ey : float
        Vector from the start to the end of the segment.
    dx, dy : float
        Direction of the ray, a unit vector.
    best : float
        Present range of the ray. All lengths are in one unit, cells or m.
    """
    scale = 1.0 / (dx * ey - dy * ex)
    t = (ax * ey - ay * ex) * scale
    u = (ax * dy - ay * dx) * scale
    return (
        t
        if (t >= 0.0) & (t < best) & (u >= -END_TOLERANCE) & (u <= 1.0 + END_TOLERANCE)
        else best
    )


@inline_kernel
def aim(
    gx: float, gy: float, dx: float, dy: float, nx: int, ny: int, t_max: float
) -> Walk:
    """Start the walk of a ray through the grid; see `Walk`.

    Method: Amanatides & Woo, 1987, with jumps over free squares.

    Parameters
    ----------
    gx, gy : float
        Origin of the ray from the lower left corner of the grid, cells.
    dx, dy : float
        Direction of the ray, a unit vector without zeros, see `away_from_zero`.
    nx, ny : int
        Number of cells of the grid.
    t_max : float
        Range of the ray, cells. A ray that does not enter the grid within it gets an
        infinite length of entry, so that its walk ends at once.
    """
    # Mirroring leaves one case instead of four in the inner loop.
    px, sx, base = (gx, 1, 0) if dx > 0.0 else (nx - gx, -1, nx - 1)
    py, sy, low = (gy, nx, 0) if dy > 0.0 else (ny - gy, -nx, (ny - 1) * nx)
    # Components are never 0, see `away_from_zero`.
    mx, my = abs(dx), abs(dy)
    inv_x, inv_y = 1.0 / mx, 1.0 / my
    t = 0.0
    ix, iy = 0, 0
    # A ray that starts outside of the grid enters it later, or never.
    if (px < 0.0) | (py < 0.0) | (px >= nx) | (py >= ny):
        # Length at which the ray has entered the grid in both coordinates.
        t = max(-px * inv_x, -py * inv_y, 0.0)
        if t < min((nx - px) * inv_x, (ny - py) * inv_y, t_max):
            ix, iy = (
                # Rounding at the border could give a cell outside of the grid.
                min(int(max(px + t * mx, 0.0)), nx - 1),
                min(int(max(py + t * my, 0.0)), ny - 1),
            )
        else:
            t = math.inf
    else:
        ix, iy = int(px), int(py)

    quadrant = ((1 if dx > 0.0 else 0) + (2 if dy > 0.0 else 0)) * nx * ny
    return px, py, mx, my, inv_x, inv_y, sx, sy, base + low, quadrant, ix, iy, t


@inline_kernel
def stride(
    walk: Walk, ix: int, iy: int, side: int, nx: int, ny: int
) -> tuple[int, int, float]:
    """Return the cell after a free square of `side` cells, and the length at its entry.

    The length is measured along the ray, and is infinite beyond the grid. The ray
    leaves the square along one axis; the coordinate along the other axis is computed
    anew, but may only grow. At a corner, rounding could otherwise move the ray one cell
    back, and the walk would never end.

    Parameters
    ----------
    walk : Walk
        Ray, as from `aim`.
    ix, iy : int
        Present cell, in the mirrored grid.
    side : int
        Edge of the free square whose near corner is this cell, at least 1, cells.
    nx, ny : int
        Number of cells of the grid.
    """
    px, py, mx, my, inv_x, inv_y = walk[0], walk[1], walk[2], walk[3], walk[4], walk[5]
    tx, ty = (ix + side - px) * inv_x, (iy + side - py) * inv_y
    t = min(tx, ty)
    jx, jy = max(ix, int(px + t * mx)), max(iy, int(py + t * my))
    jx, jy = (ix + side, jy) if tx < ty else (jx, iy + side)
    # Compute flags instead of branching, because the end of a walk cannot be predicted.
    left = (jx >= nx) | (jy >= ny)
    return (ix if left else jx), (iy if left else jy), (math.inf if left else t)


@kernel
def nearest_seen(
    start: I4,
    seg: F8,
    classes: U2,
    wanted: np.uint16,
    cell: np.uint64,
    gx: float,
    gy: float,
    dx: float,
    dy: float,
    best: float,
    hit: int,
) -> tuple[float, int]:
    """Return the nearest segment of some classes in a cell.

    Parameters
    ----------
    start : (cells + 1,) int32
        `Grid.start`.
    seg, classes : (k, 4) float64, (k,) uint16
        `Grid.seg`, cells, and `Grid.mask`.
    wanted : uint16
        `Visible` classes that the device senses.
    cell : uint64
        Number of the cell.
    gx, gy, dx, dy : float
        Origin of the ray from the corner of the grid, cells, and its direction.
    best : float
        Present range of the ray, cells.
    hit : int
        Entry that ended the ray so far; −1: none.

    Returns
    -------
    tuple of (float, int)
        Range, cells, and index of the entry: `best` and `hit` if no segment is nearer.
    """
    for k in range(start[cell], start[cell + np.uint64(1)]):
        t = segment_range(
            seg[k, 0] - gx, seg[k, 1] - gy, seg[k, 2], seg[k, 3], dx, dy, best
        )
        # The device sees only walls of the wanted classes.
        if t < best and classes[k] & wanted:
            best, hit = t, k

    return best, hit


@inline_kernel
def note_hit(grid: Grid, beams: Beams, j: int, best: float, entry: int) -> None:
    """End a beam at the wall of a grid entry.

    Parameters
    ----------
    grid : Grid
        Static world. In a plain grid all entries have the return 1, and the entry does
        not matter.
    beams : Beams
        Beams of the device. In-place: `raw`, m, `bright`, and `cosine` at reflectors.
    j : int
        Index of the beam in `beams`.
    best : float
        Distance of the wall from the beam's origin, cells.
    entry : int
        Index of the wall in `Grid.seg`.
    """
    h, seg, brights, raw, bright = (
        grid.h,
        grid.seg,
        grid.bright,
        beams.raw,
        beams.bright,
    )
    # Conversion to metres and back may round up above the former range.
    raw[j] = min(best * h, raw[j])
    bright[j] = 1 if grid.plain else brights[entry]
    # The return of a reflector depends on the incidence, see `finish_bright`.
    if bright[j] > 1:
        dx, dy, ex, ey = beams.dir_x[j], beams.dir_y[j], seg[entry, 2], seg[entry, 3]
        beams.cosine[j] = abs(dx * ey - dy * ex) / hypot(ex, ey)


@merged_kernel
def walk_beams(grid: Grid, beams: Beams, first: int, end: int, mask: int) -> None:
    """Shorten the beams `first` … `end` − 1 to the static world.

    Beams are processed in pairs. The steps of one fill the time in which the processor
    waits for the other, which makes them a fifth faster. In a plain grid, in which all
    entries are alike to any sensor, the hit entry is not noted.

    Parameters
    ----------
    grid : Grid
        Static world.
    beams : Beams
        Beams of the device, with origins and directions in the frame of the world.
        In-place: `raw`, m, and `bright` of beams that hit a wall.
    first, end : int
        Indices in `beams`.
    mask : int
        `Visible` classes that the device senses.
    """
    dir_x, dir_y, org_x, org_y = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y
    raw = beams.raw
    nx, ny, plain, x0, y0 = grid.nx, grid.ny, grid.plain, grid.x0, grid.y0
    start, seg, classes = grid.start, grid.seg, grid.mask
    clear = grid.clear_flat
    wanted = np.uint16(mask)
    inv = 1.0 / grid.h
    for j in range(first, end, 2):
        # In an odd number of beams, the last beam is paired with itself; both write the
        # same values.
        j2 = min(j + 1, end - 1)
        gx, gy, dx, dy, best = (
            (org_x[j] - x0) * inv,
            (org_y[j] - y0) * inv,
            dir_x[j],
            dir_y[j],
            raw[j] * inv,
        )
        gx2, gy2, dx2, dy2 = (
            (org_x[j2] - x0) * inv,
            (org_y[j2] - y0) * inv,
            dir_x[j2],
            dir_y[j2],
        )
        best2 = raw[j2] * inv
        # Keep the ranges, to see afterwards whether a wall has shortened the beam.
        before, before2 = best, best2
        hit, hit2 = -1, -1
        walk, walk2 = (
            aim(gx, gy, dx, dy, nx, ny, best),
            aim(gx2, gy2, dx2, dy2, nx, ny, best2),
        )
        ix, iy, t = walk[10], walk[11], walk[12]
        ix2, iy2, t2 = walk2[10], walk2[11], walk2[12]
        while (t < best) | (t2 < best2):
            # An unsigned index saves the test for negative indices, which count from
            # the end.
            cell = np.uint64(walk[8] + ix * walk[6] + iy * walk[7])
            cell2 = np.uint64(walk2[8] + ix2 * walk2[6] + iy2 * walk2[7])
            side, side2 = (
                int(clear[np.uint64(walk[9]) + cell]),
                int(clear[np.uint64(walk2[9]) + cell2]),
            )
            # A cell with side 0 has entries: test them, then continue with the next
            # cell.
            if side == 0:
                side = 1
                # A beam with t ≥ best has ended, and only the other beam continues.
                if t < best:
                    if plain:
                        for k in range(start[cell], start[cell + np.uint64(1)]):
                            e = np.uint64(k)
                            best = segment_range(
                                seg[e, 0] - gx,
                                seg[e, 1] - gy,
                                seg[e, 2],
                                seg[e, 3],
                                dx,
                                dy,
                                best,
                            )
                    else:
                        best, hit = nearest_seen(
                            start, seg, classes, wanted, cell, gx, gy, dx, dy, best, hit
                        )

            if side2 == 0:
                side2 = 1
                if t2 < best2:
                    if plain:
                        for k in range(start[cell2], start[cell2 + np.uint64(1)]):
                            e = np.uint64(k)
                            best2 = segment_range(
                                seg[e, 0] - gx2,
                                seg[e, 1] - gy2,
                                seg[e, 2],
                                seg[e, 3],
                                dx2,
                                dy2,
                                best2,
                            )
                    else:
                        best2, hit2 = nearest_seen(
                            start,
                            seg,
                            classes,
                            wanted,
                            cell2,
                            gx2,
                            gy2,
                            dx2,
                            dy2,
                            best2,
                            hit2,
                        )

            ix, iy, t = stride(walk, ix, iy, side, nx, ny)
            ix2, iy2, t2 = stride(walk2, ix2, iy2, side2, nx, ny)

        # The beam has hit a wall.
        if best < before:
            note_hit(grid, beams, j, best, hit)
        if best2 < before2:
            note_hit(grid, beams, j2, best2, hit2)


__all__ = ["aim", "note_hit", "segment_range", "stride", "walk_beams"]
