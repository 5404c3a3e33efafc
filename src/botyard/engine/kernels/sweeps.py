"""Sweep of a body along its arc: the part of it before the first contact."""

from __future__ import annotations

import math
from typing import NamedTuple

from botyard.engine.kernels.jit import (
    inline_kernel,
)
from botyard.engine.kernels.motion import turning
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.kernels.polygons import (
    CONTACT,
    length,
    polygon_gap,
    segment_distance,
    segment_gap,
)
from botyard.engine.layout import F8, Bodies, Grid

ALONG = 1e-9
"""Tolerance for rounding of a body that moves along an overlap, not away from it, m."""
MARCH, AT_START, ESCAPE, REFINE = 0, 1, 2, 3
"""Stages of the search for the first contact, see `free_fraction`."""


class Sweep(NamedTuple):
    """Arc along which one body moves in a step, and near things.

    The broad phase has found these things.

    Attributes
    ----------
    row : int
        Row of the body.
    x, y, cosine, sine : float
        Start of the arc, m; cosine and sine of the heading there.
    dx, dy, dth : float
        Body twist times dt, m, m, rad.
    segments, bodies : int
        Number of first entries of `Grid.near` and `Bodies.near` that are near;
        `Bodies.world` holds the corners of those bodies.
    """

    row: int
    x: float
    y: float
    cosine: float
    sine: float
    dx: float
    dy: float
    dth: float
    segments: int
    bodies: int


@inline_kernel
def clearance(
    grid: Grid,
    pose: F8,
    bodies: Bodies,
    sweep: Sweep,
    part: float,
    enough: float,
    escaping: bool,
) -> float:
    """Return the distance of a body from things near its arc, m.

    This is the narrow phase. The distance is not positive if the body touches
    something. See `polygon_gap`.

    Parameters
    ----------
    grid : Grid
        Static world; the first `sweep.segments` entries of `near` are tested.
    pose : (n, 3) float64
        Poses of all bodies: m, m, rad.
    bodies : Bodies
        Outlines; `world` has the corners of other bodies. Output: `scratch`, the
        corners of this body at that part of its arc, m.
    sweep : Sweep
        Arc of the body.
    part : float
        Part of the arc at which the body stands, 0 … 1.
    enough : float
        Distance above which the result need not be exact, m.
    escaping : bool
        Ignore things that the body's origin does not approach: a body that already
        overlaps something may move away from it.
    """
    dx, dy, dth = sweep.dx * part, sweep.dy * part, sweep.dth * part
    seg, x0, y0, h, world = grid.seg, grid.x0, grid.y0, grid.h, bodies.world
    part_start, vert_start, turn, edge, placed = (
        bodies.part_start,
        bodies.vert_start,
        bodies.turn,
        bodies.edge,
        bodies.scratch,
    )
    cosine, sine, old_x, old_y = sweep.cosine, sweep.sine, sweep.x, sweep.y
    u, v = turning(dth)
    ax, ay = u * dx - v * dy, v * dx + u * dy
    x, y = old_x + cosine * ax - sine * ay, old_y + sine * ax + cosine * ay

    # Sine and cosine of the turn.
    u, v = u * dth, 1.0 - v * dth
    c, s = cosine * v - sine * u, sine * v + cosine * u
    p0, p1, radius = (
        part_start[sweep.row],
        part_start[sweep.row + 1],
        bodies.radius[sweep.row],
    )
    v0 = vert_start[p0]
    place_corners(bodies.verts, v0, vert_start[p1], x, y, c, s, placed, 0)
    gap = math.inf

    for n in range(sweep.segments):
        k = grid.near[n]
        ax, ay = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
        bx, by = ax + seg[k, 2] * h, ay + seg[k, 3] * h
        # Bodies and walls that it moves away from cannot stop it.
        if (
            not escaping
            or segment_distance(x, y, ax, ay, bx, by)
            < segment_distance(old_x, old_y, ax, ay, bx, by) - ALONG
        ):
            for p in range(p0, p1):
                w0, w1 = vert_start[p] - v0, vert_start[p + 1] - v0
                gap = min(
                    gap,
                    segment_gap(
                        placed, edge, w0, w1, vert_start[p], turn[p], ax, ay, bx, by
                    ),
                )

    for n in range(sweep.bodies):
        other = bodies.near[n]
        ox, oy = pose[other, 0], pose[other, 1]
        apart = length(x - ox, y - oy)
        beyond = apart - radius - bodies.radius[other]
        # The circles are so far apart that the exact gap does not matter.
        if beyond > enough:
            gap = min(gap, beyond)
        elif not escaping or apart < length(old_x - ox, old_y - oy) - ALONG:
            for q in range(part_start[other], part_start[other + 1]):
                for p in range(p0, p1):
                    w0, w1 = vert_start[p] - v0, vert_start[p + 1] - v0
                    gap = min(
                        gap,
                        polygon_gap(
                            placed,
                            edge,
                            w0,
                            w1,
                            vert_start[p],
                            turn[p],
                            world,
                            vert_start[q],
                            vert_start[q + 1],
                            turn[q],
                        ),
                    )

    return gap


@inline_kernel
def free_fraction(grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep) -> float:
    """Return the part of its arc that a body can travel, 0 … 1; 1 is the whole arc.

    This is continuous collision detection by marching, then root finding. The arc is
    tested at places so close that nothing fits between them. Between the last free and
    the first blocked place, the search looks for a place at most `CONTACT` away from
    the obstacle. It tries the place expected from the gaps at both ends (regula falsi)
    two times, then the middle (bisection) once, and so on. A body that overlaps
    something before it moves may move away from it (COL-009). All trials are made in
    one place of the loop, so that `clearance` is compiled once.

    Parameters
    ----------
    grid, pose, bodies
        See `clearance`; `Bodies.scratch` is workspace.
    sweep : Sweep
        Arc of the body; its length must be greater than 0.
    """
    reach = length(sweep.dx, sweep.dy)
    # A move shorter than half the body's width cannot jump over anything.
    steps = max(1, int(math.ceil(reach / bodies.inner[sweep.row])))
    n, low, high, f = 1, 0.0, 1.0, 0.0
    gap_low, gap_high = reach, -reach

    # Pass a number that is compared in the call: for a literal False, Numba would
    # compile all of `clearance` once more.
    escaping = 0
    stage, expected = MARCH, 0
    while True:
        if stage == MARCH:
            f = n / steps
        elif stage == AT_START:
            f = 0.0
        elif stage == ESCAPE:
            f = CONTACT / reach
        elif expected < 2:
            # Regula falsi: the gap is nearly linear between two positions.
            f = low + (high - low) * (gap_low - 0.5 * CONTACT) / (gap_low - gap_high)
        else:
            # Bisect after two trials by regula falsi, which bounds the number of trials.
            f = 0.5 * (low + high)

        gap = clearance(grid, pose, bodies, sweep, f, reach, escaping == 1)
        if stage == MARCH:
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
                # The whole arc is free.
                if n == steps:
                    break
                n += 1
                continue

            high, gap_high = f, min(gap, -ALONG)
            # The body is blocked at the first position: perhaps it overlapped an
            # obstacle before it moved.
            stage = AT_START if n == 1 and escaping == 0 else REFINE
        elif stage == AT_START:
            # The body overlapped an obstacle at its start: test whether it moves away.
            if gap <= 0.0:
                escaping, stage = 1, ESCAPE
                continue

            gap_low, stage = min(gap, reach), REFINE
        elif stage == ESCAPE:
            # The body approaches an obstacle that it touches already.
            if gap <= 0.0:
                break
            low, gap_low, stage = f, min(gap, reach), MARCH
        else:
            expected = expected + 1 if expected < 2 else 0
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
            else:
                high, gap_high = f, min(gap, -ALONG)

        # The position is near enough: to the obstacle, or to the exact position along
        # the arc.
        if stage == REFINE and (gap_low <= CONTACT or (high - low) * reach <= CONTACT):
            break

    return low
