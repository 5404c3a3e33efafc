"""Sectors of bearings in which a stopped body touches things."""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import (
    kernel,
)
from botyard.engine.kernels.motion import arc
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.kernels.polygons import (
    point_in_polygon,
    segment_distance,
    segments_cross,
    side,
)
from botyard.engine.kernels.sweeps import Sweep
from botyard.engine.layout import F8, Bodies, Grid
from botyard.numerics.elementary import atan2, cosine_sine

SECTORS = 64
"""Number of sectors of bearings in which contacts are reported."""


@kernel
def sector(x: float, y: float) -> int:
    """Return the number of the sector of the bearing of (x, y) in a body frame.

    Parameters
    ----------
    x, y : float
        Vector of any length. The bearing 0, straight ahead, is in sector 0.
    """
    turn = atan2(y, x) / (2.0 * math.pi)
    return int(math.floor(turn * SECTORS)) % SECTORS


@kernel
def chord_sectors(
    verts: F8,
    v0: int,
    v1: int,
    ax: float,
    ay: float,
    bx: float,
    by: float,
    x: float,
    y: float,
    c: float,
    s: float,
) -> np.uint64:
    """Return sectors, as bits, of the part of a segment that lies in a polygon.

    The part lies between its outermost crossings with the polygon, and is seen from the
    body's origin.

    Parameters
    ----------
    verts : (n, 2) float64
        Corners in the frame of the world, m.
    v0, v1 : int
        The polygon is verts[v0:v1].
    ax, ay, bx, by : float
        Ends of the segment in the frame of the world, m.
    x, y : float
        Origin of the body in the frame of the world, m.
    c, s : float
        Cosine and sine of the body's heading.
    """
    ex, ey = bx - ax, by - ay
    low, high = 2.0, -1.0
    if point_in_polygon(verts, v0, v1, ax, ay):
        low, high = 0.0, 0.0
    if point_in_polygon(verts, v0, v1, bx, by):
        low, high = min(low, 1.0), 1.0
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]

    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        d1, d2 = side(px, py, qx, qy, ax, ay), side(px, py, qx, qy, bx, by)
        if d1 != d2 and segments_cross(ax, ay, bx, by, px, py, qx, qy):
            u = d1 / (d1 - d2)
            low, high = min(low, u), max(high, u)

        px, py = qx, qy

    bits = np.uint64(0)
    if high < low:
        return bits
    first = sector(
        c * (ax + low * ex - x) + s * (ay + low * ey - y),
        c * (ay + low * ey - y) - s * (ax + low * ex - x),
    )
    last = sector(
        c * (ax + high * ex - x) + s * (ay + high * ey - y),
        c * (ay + high * ey - y) - s * (ax + high * ex - x),
    )

    # Number the sectors in the shorter direction around the circle.
    if (last - first) % SECTORS > SECTORS // 2:
        first, last = last, first
    for n in range((last - first) % SECTORS + 1):
        bits |= np.uint64(1) << np.uint64((first + n) % SECTORS)
    return bits


@kernel
def contact_sectors(
    grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep, part: float
) -> np.uint64:
    """Return sectors, as bits, in which a body touches near things.

    Parameters
    ----------
    grid : Grid
        Static world.
    pose : (n, 3) float64
        Poses of all bodies, m, m, rad; for this one the start of its arc.
    bodies : Bodies
        Outlines; `scratch` is workspace.
    sweep : Sweep
        Arc of the body, with the things near it.
    part : float
        Part of the arc at which the body overlaps its obstacle a little, 0 … 1.

    Returns
    -------
    uint64
        Value for `State.contact`.
    """
    row, dx, dy, dth = sweep.row, sweep.dx * part, sweep.dy * part, sweep.dth * part
    seg, x0, y0, h, world, placed = (
        grid.seg,
        grid.x0,
        grid.y0,
        grid.h,
        bodies.world,
        bodies.scratch,
    )
    part_start, vert_start = bodies.part_start, bodies.vert_start
    c, s = cosine_sine(pose[row, 2])
    ax, ay = arc(dx, dy, dth)
    x, y, th = (
        pose[row, 0] + c * ax - s * ay,
        pose[row, 1] + s * ax + c * ay,
        pose[row, 2] + dth,
    )
    c, s = cosine_sine(th)
    p0, p1 = part_start[row], part_start[row + 1]
    v0 = vert_start[p0]
    place_corners(bodies.verts, v0, vert_start[p1], x, y, c, s, placed, 0)
    radius = bodies.radius[row]
    bits = np.uint64(0)

    for n in range(sweep.segments):
        k = grid.near[n]
        px, py = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
        qx, qy = px + seg[k, 2] * h, py + seg[k, 3] * h
        # A wall farther away than the radius cannot reach the outline.
        if segment_distance(x, y, px, py, qx, qy) <= radius:
            for p in range(p0, p1):
                bits |= chord_sectors(
                    placed,
                    vert_start[p] - v0,
                    vert_start[p + 1] - v0,
                    px,
                    py,
                    qx,
                    qy,
                    x,
                    y,
                    c,
                    s,
                )

    for n in range(sweep.bodies):
        other = bodies.near[n]
        for r in range(part_start[other], part_start[other + 1]):
            w0, w1 = vert_start[r], vert_start[r + 1]
            px, py = world[w1 - 1, 0], world[w1 - 1, 1]
            for w in range(w0, w1):
                qx, qy = world[w, 0], world[w, 1]
                # An edge farther away than the radius cannot reach the outline.
                if segment_distance(x, y, px, py, qx, qy) <= radius:
                    for p in range(p0, p1):
                        first, last = vert_start[p] - v0, vert_start[p + 1] - v0
                        bits |= chord_sectors(
                            placed, first, last, px, py, qx, qy, x, y, c, s
                        )

                px, py = qx, qy

    return bits
