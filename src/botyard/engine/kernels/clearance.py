"""Clearance of a body: the thing nearest to its outline, by the step's grid and bins.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import entry_kernel, kernel, merged_kernel
from botyard.engine.kernels.polygons import segment_distance, segments_cross
from botyard.engine.layout import F8, I8, NO_BODY, WALL, World


@kernel
def edge_distance(
    ax: float,
    ay: float,
    bx: float,
    by: float,
    px: float,
    py: float,
    qx: float,
    qy: float,
) -> float:
    """Return the distance between the segments a–b and p–q, m; 0 if they cross.

    Parameters
    ----------
    ax, ay, bx, by : float
        Ends of the first segment, m.
    px, py, qx, qy : float
        Ends of the second segment, m.
    """
    if segments_cross(ax, ay, bx, by, px, py, qx, qy):
        return 0.0
    return min(
        min(
            segment_distance(ax, ay, px, py, qx, qy),
            segment_distance(bx, by, px, py, qx, qy),
        ),
        min(
            segment_distance(px, py, ax, ay, bx, by),
            segment_distance(qx, qy, ax, ay, bx, by),
        ),
    )


@kernel
def outline_distance(
    corners: F8,
    vert_start: I8,
    first: int,
    end: int,
    ax: float,
    ay: float,
    bx: float,
    by: float,
) -> float:
    """Return the distance of a segment from the edges of an outline, m.

    Parameters
    ----------
    corners, vert_start : (n_verts, 2) float64, (n_parts + 1,) int64
        `Bodies.world`, m, and `Bodies.vert_start`.
    first, end : int
        Polygons of the outline: first … end − 1.
    ax, ay, bx, by : float
        Ends of the segment, m. Of a segment within a polygon, the distance from the edges counts.
    """
    best = math.inf
    for p in range(first, end):
        v0, v1 = vert_start[p], vert_start[p + 1]
        px, py = corners[v1 - 1, 0], corners[v1 - 1, 1]
        for v in range(v0, v1):
            qx, qy = corners[v, 0], corners[v, 1]
            best = min(best, edge_distance(ax, ay, bx, by, px, py, qx, qy))
            px, py = qx, qy

    return best


@merged_kernel
def nearest_wall(world: World, row: int, within: float, mask: int) -> float:
    """Return the distance of a body's outline from walls, m; infinite if none is near.

    Parameters
    ----------
    world : World
        Arrays of the world.
    row : int
        Row of the body.
    within : float
        Greatest distance, m.
    mask : int
        `Visible` classes of the walls that count.
    """
    grid, bodies, pose = world.grid, world.bodies, world.state.pose
    start, seg, classes, h, nx = grid.start, grid.seg, grid.mask, grid.h, grid.nx
    x, y, radius = pose[row, 0], pose[row, 1], bodies.radius[row]
    reach = radius + within
    best = math.inf
    if wall_distance(grid.clear, grid.x0, grid.y0, h, nx, grid.ny, x, y) > reach:
        return best
    inv = 1.0 / h
    i0, i1 = bin_span(x - reach, x + reach, grid.x0, inv, nx)
    j0, j1 = bin_span(y - reach, y + reach, grid.y0, inv, grid.ny)

    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            if not int(classes[k]) & mask:
                continue
            ax, ay = grid.x0 + seg[k, 0] * h, grid.y0 + seg[k, 1] * h
            bx, by = ax + seg[k, 2] * h, ay + seg[k, 3] * h
            # Most walls within a large reach are farther away than the circle around
            # the body.
            if segment_distance(x, y, ax, ay, bx, by) - radius > min(best, within):
                continue

            found = outline_distance(
                bodies.world,
                bodies.vert_start,
                bodies.part_start[row],
                bodies.part_start[row + 1],
                ax,
                ay,
                bx,
                by,
            )
            best = min(best, found)

    return best if best <= within else math.inf


@merged_kernel
def body_distance(world: World, row: int, other: int) -> float:
    """Return the distance between the outlines of two bodies, m.

    Parameters
    ----------
    world : World
        Arrays of the world; `Bodies.world` has the corners.
    row, other : int
        Rows of the bodies.
    """
    bodies = world.bodies
    corners, part_start, vert_start = (
        bodies.world,
        bodies.part_start,
        bodies.vert_start,
    )
    best = math.inf

    for p in range(part_start[other], part_start[other + 1]):
        v0, v1 = vert_start[p], vert_start[p + 1]
        px, py = corners[v1 - 1, 0], corners[v1 - 1, 1]
        for v in range(v0, v1):
            qx, qy = corners[v, 0], corners[v, 1]
            found = outline_distance(
                corners,
                vert_start,
                part_start[row],
                part_start[row + 1],
                px,
                py,
                qx,
                qy,
            )
            best = min(best, found)
            px, py = qx, qy

    return best


@entry_kernel
def find_nearest_thing(
    world: World, row: int, within: float, mask: int, walls: bool, distance: F8
) -> int:
    """Find the thing of some classes that is nearest to the outline of a body.

    Parameters
    ----------
    world : World
        Arrays of the world.
    row : int
        Row of the body.
    within : float
        Greatest distance, m.
    mask : int
        `Visible` classes of walls and bodies.
    walls : bool
        Whether walls count. A wall comes before a body at the same distance, and a
        body before bodies of higher rows.
    distance : (1,) float64
        Output, m; inf for nothing.

    Returns
    -------
    int
        Row of the nearest body, `WALL` or `NO_BODY`.
    """
    bodies, bins, pose = world.bodies, world.bins, world.state.pose
    at, start, rows, classes, frame, shape = (
        bins.at,
        bins.start,
        bins.rows,
        bins.classes,
        bins.frame,
        bins.shape,
    )
    best, thing = math.inf, NO_BODY
    if walls:
        best = nearest_wall(world, row, within, mask)
        thing = WALL if best <= within else NO_BODY

    x, y, radius = pose[row, 0], pose[row, 1], bodies.radius[row]
    # Bodies that have moved in the step may be outside of their bins.
    wide = radius + within + bins.reach[0] + bins.reach[1]
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])

    for j in range(j0, j1 + 1):
        for k in range(
            start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0
        ):
            other = rows[k]
            dx, dy = at[k, 0] - x, at[k, 1] - y
            apart = radius + at[k, 2] + min(best, within)
            if (
                dx * dx + dy * dy > apart * apart
                or other == row
                or not int(classes[k]) & mask
            ):
                continue
            found = body_distance(world, row, other)
            if found <= within and (found < best or (found == best and other < thing)):
                best, thing = found, other

    distance[0] = best
    return int(thing)


__all__ = ["find_nearest_thing"]
