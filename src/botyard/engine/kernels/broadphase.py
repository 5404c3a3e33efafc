"""Broad phase: walls and bodies near enough for exact tests, and free distances.

Walls come from the grid of the map, bodies from `Bins`. Both are tested as circles
around the moving body. The free distance bounds how far a body can move before the next
test. Allocates nothing.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.jit import inline_kernel
from botyard.engine.kernels.polygons import length, segment_distance
from botyard.engine.layout import Bins, Bodies, Grid
from botyard.model.obstacles import Visible

# Kernels take plain numbers, not members of an enumeration.
OBSTACLE, PUSHED = int(Visible.OBSTACLE), int(Visible.PUSHED)
LEEWAY = 0.75
"""Radius of the search for other bodies around a body, m.

A larger one postpones the next search, but finds more bodies.
"""


@inline_kernel
def near_segments(grid: Grid, x: float, y: float, reach: float) -> tuple[int, float]:
    """Write the solid segments near a place to `Grid.near`.

    Parameters
    ----------
    grid : Grid
        Static world. Output: the first elements of `near`, indices of entries. A wall
        that crosses several cells has an entry in each.
    x, y : float
        Place in the frame of the world, m.
    reach : float
        Greatest distance, m.

    Returns
    -------
    tuple of (int, float)
        Number of entries, and a lower bound of the distance to the nearest one, m:
        others lie beyond the searched cells.
    """
    start, seg, classes, near, x0, y0, nx = (
        grid.start,
        grid.seg,
        grid.mask,
        grid.near,
        grid.x0,
        grid.y0,
        grid.nx,
    )
    inv = 1.0 / grid.h
    gx, gy, limit = (x - x0) * inv, (y - y0) * inv, reach * inv
    count = 0
    i0, i1 = bin_span(x - reach, x + reach, x0, inv, nx)
    j0, j1 = bin_span(y - reach, y + reach, y0, inv, grid.ny)
    nearest = min(min(gx - i0, i1 + 1 - gx), min(gy - j0, j1 + 1 - gy))

    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            # Robots pass through a wall of another class, although sensors may see it.
            if not int(classes[k]) & OBSTACLE:
                continue

            ax, ay = seg[k, 0], seg[k, 1]
            distance = segment_distance(gx, gy, ax, ay, ax + seg[k, 2], ay + seg[k, 3])
            nearest = min(nearest, distance)
            if distance <= limit:
                near[count] = k
                count += 1

    return count, nearest * grid.h


@inline_kernel
def near_bodies(
    bodies: Bodies, bins: Bins, row: int, x: float, y: float, reach: float
) -> int:
    """Write the rows of the other solid bodies near a place to `Bodies.near`.

    Parameters
    ----------
    bodies, bins : Bodies, Bins
        Bodies of the world. Output: the first elements of `Bodies.near`, rows.
    row : int
        Row of a body that is left out.
    x, y : float
        Place in the frame of the world, m.
    reach : float
        Greatest distance to the bounding circle of a body, m.

    Returns
    -------
    int
        Number of bodies.
    """
    rows, at, classes, start, frame, shape = (
        bins.rows,
        bins.at,
        bins.classes,
        bins.start,
        bins.frame,
        bins.shape,
    )
    count = 0

    # Bodies that have moved in this step may be outside of their bins.
    wide = reach + bins.reach[0] + bins.reach[1]
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])
    for j in range(j0, j1 + 1):
        for k in range(
            start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0
        ):
            ox, oy, apart = at[k, 0] - x, at[k, 1] - y, reach + at[k, 2]
            if (
                ox * ox + oy * oy <= apart * apart
                and int(classes[k]) & OBSTACLE
                and rows[k] != row
            ):
                bodies.near[count] = rows[k]
                count += 1

    return count


@inline_kernel
def leeway_among(bodies: Bodies, bins: Bins, row: int, x: float, y: float) -> float:
    """Return a distance within which a body meets no other solid body, m.

    Bodies with overlapping circles are tested along one axis only, from centre to
    centre, which separates most bodies without contact.

    Parameters
    ----------
    bodies, bins : Bodies, Bins
        Bodies of the world. The corners of this one in `Bodies.world` must belong to
        (`x`, `y`).
    row : int
        Row of the body.
    x, y : float
        Place of the body in the frame of the world, m.

    Returns
    -------
    float
        Distance from the bounding circle of the body, m, at most `LEEWAY`; negative if
        the body may touch another one.
    """
    rows, at, classes, start, frame, shape = (
        bins.rows,
        bins.at,
        bins.classes,
        bins.start,
        bins.frame,
        bins.shape,
    )
    part_start, vert_start, world, radius = (
        bodies.part_start,
        bodies.vert_start,
        bodies.world,
        bodies.radius[row],
    )
    found = LEEWAY

    # Bodies extend beyond their bins, and may have moved in this step.
    wide = radius + LEEWAY + bins.reach[0] + bins.reach[1]
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])
    v0, v1 = vert_start[part_start[row]], vert_start[part_start[row + 1]]

    for j in range(j0, j1 + 1):
        for k in range(
            start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0
        ):
            ex, ey, apart = at[k, 0] - x, at[k, 1] - y, radius + at[k, 2]
            # Most bodies are farther away than the nearest body so far, and this test
            # needs no square root.
            if (
                ex * ex + ey * ey > (apart + found) * (apart + found)
                or not int(classes[k]) & OBSTACLE
            ):
                continue

            other = rows[k]
            if other == row:
                continue
            beyond = length(ex, ey) - apart
            # The circles around both bodies do not overlap, so their distance is a
            # lower bound of the gap.
            if beyond > 0.0:
                found = min(found, beyond)
                continue

            found = 0.0
            mine, theirs = -math.inf, math.inf
            for v in range(v0, v1):
                mine = max(mine, (world[v, 0] - x) * ex + (world[v, 1] - y) * ey)
            for w in range(
                vert_start[part_start[other]], vert_start[part_start[other + 1]]
            ):
                theirs = min(theirs, (world[w, 0] - x) * ex + (world[w, 1] - y) * ey)

            # The axis between the centres does not separate the bodies: the narrow
            # phase must decide.
            if theirs <= mine:
                return -1.0

    return found


@inline_kernel
def clear_of_segments(grid: Grid, bodies: Bodies, row: int, n_segments: int) -> bool:
    """Return whether none of the near segments can touch a body.

    Two axes are tested: all corners lie on one side of the segment, or before or behind
    it.

    Parameters
    ----------
    grid : Grid
        Static world, with entries in `near`.
    bodies : Bodies
        Outlines; `world` has the corners of the body, m.
    row : int
        Row of the body.
    n_segments : int
        Number of entries in `Grid.near`, see `near_segments`.
    """
    seg, near, x0, y0, h, world = (
        grid.seg,
        grid.near,
        grid.x0,
        grid.y0,
        grid.h,
        bodies.world,
    )
    v0, v1 = (
        bodies.vert_start[bodies.part_start[row]],
        bodies.vert_start[bodies.part_start[row + 1]],
    )

    for n in range(n_segments):
        k = near[n]
        ax, ay = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
        ex, ey = seg[k, 2] * h, seg[k, 3] * h
        right, left, first, last = math.inf, -math.inf, math.inf, -math.inf
        for v in range(v0, v1):
            px, py = world[v, 0] - ax, world[v, 1] - ay
            across, along = ex * py - ey * px, ex * px + ey * py
            right, left = min(right, across), max(left, across)
            first, last = min(first, along), max(last, along)

        if not (right > 0.0 or left < 0.0 or last < 0.0 or first > ex * ex + ey * ey):
            return False

    return True
