"""Moving bodies without letting them pass through anything (pioneer-protocol §11.3).

A robot moves along its arc until its outline would touch something; it is then left at
the last free place on the arc, and is stalled. Broad phase: what is near the arc
(`broadphase`); narrow phase: exact polygons against map segments and the outlines of
other bodies (`polygons`). Bodies move one after the other, in the order of
`Bodies.order`. Allocates nothing; runs in one thread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.broadphase import (
    OBSTACLE,
    clear_of_segments,
    leeway_among,
    near_bodies,
    near_segments,
)
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import (
    entry_kernel,
    inline_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import arc, turning, wrap
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.kernels.polygons import (
    CONTACT,
    length,
    point_in_polygon,
    polygon_gap,
    segment_distance,
    segment_gap,
    segments_cross,
    side,
)
from botyard.engine.layout import F8, I1, I8, WALL, Bodies, Grid, World
from botyard.numerics.elementary import atan2, cosine_sine

TRANSLATING = 2e-5
"""A robot slower than this only turns, m/s (§11.3)."""
ALONG = 1e-9
"""Rounding allowed, m, when a body that overlaps something moves along it and not away.
"""
MARCH, AT_START, ESCAPE, REFINE = 0, 1, 2, 3
"""Stages of the search for the first contact, see `free_fraction`."""
NEAR = 4.0 * CONTACT
"""A body that was stopped by something is nearer to it than this, m."""
SECTORS = 64
"""Sectors of bearings in which contacts are reported."""


class Sweep(NamedTuple):
    """The arc along which one body moves in a step, and what the broad phase has found
    near it.

    Attributes
    ----------
    row : int
        The body.
    x, y, cosine, sine : float
        Where it begins, m; cosine and sine of the heading there.
    dx, dy, dth : float
        Body twist times dt, m, m, rad.
    segments, bodies : int
        So many first entries of `Grid.near` and `Bodies.near` are near; corners of
        those bodies stand in `Bodies.world`.
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
    """How far a body is from what is near its arc, m, when it has gone `part` of it, 0
    … 1: the narrow phase.

    Not positive where it touches something; a distance that is larger than `enough`
    need not be exact. See `polygon_gap`. With `escaping`, things that the body's origin
    does not come nearer to are let pass: a body that already overlaps something may
    move away from it. Writes the body's corners there to `Bodies.scratch`.
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
    # sine and cosine of what it turns
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
        # what it moves away from cannot stop it
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
        if (
            beyond > enough
        ):  # their circles are so far apart that nobody wants to know how far the outlines are
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
    """How much of its arc a body can travel: 0 … 1; 1 is all of it. Continuous
    collision detection by marching, then root finding.

    The arc is tried at places so close that nothing fits between them; between the last
    free and the first blocked one a place is looked for that is free by no more than
    `CONTACT`: twice where the gaps at both ends let it expect (regula falsi), once in
    the middle (bisection), and so on. A body that overlaps something before it moves
    may move away from it (COL-009). All trials are made in one place of the loop, so
    that `clearance` is compiled once.
    """
    reach = length(sweep.dx, sweep.dy)
    steps = max(1, int(math.ceil(reach / bodies.inner[sweep.row])))
    n, low, high, f = 1, 0.0, 1.0, 0.0
    gap_low, gap_high = reach, -reach
    # a number, and compared in the call: for a literal False Numba would compile all of
    # `clearance` once more
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
            # regula falsi: the gap is nearly linear between two places
            f = low + (high - low) * (gap_low - 0.5 * CONTACT) / (gap_low - gap_high)
        else:
            # bisection: bounds the number of trials where it is not
            f = 0.5 * (low + high)

        gap = clearance(grid, pose, bodies, sweep, f, reach, escaping == 1)
        if stage == MARCH:
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
                if n == steps:  # the whole arc is free
                    break
                n += 1
                continue

            high, gap_high = f, min(gap, -ALONG)
            # blocked at the first place: perhaps it overlapped something before it
            # moved
            stage = AT_START if n == 1 and escaping == 0 else REFINE
        elif stage == AT_START:
            # it did: try whether it moves away from that
            if gap <= 0.0:
                escaping, stage = 1, ESCAPE
                continue

            gap_low, stage = min(gap, reach), REFINE
        elif stage == ESCAPE:
            # it meets at once what it moves towards
            if gap <= 0.0:
                break
            low, gap_low, stage = f, min(gap, reach), MARCH
        else:
            expected = expected + 1 if expected < 2 else 0
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
            else:
                high, gap_high = f, min(gap, -ALONG)

        # near enough: to what it meets, or along its arc
        if stage == REFINE and (gap_low <= CONTACT or (high - low) * reach <= CONTACT):
            break

    return low


@kernel
def sector(x: float, y: float) -> int:
    """Number of the sector of the bearing of (x, y) in a body's frame."""
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
    """Sectors, as bits, of the part of the segment a–b that lies in the polygon
    verts[v0:v1], seen from the body's origin (x, y).

    `c` and `s` are cosine and sine of the body's heading. The part is taken between its
    outermost crossings with the polygon.
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
    if (last - first) % SECTORS > SECTORS // 2:  # the short way round
        first, last = last, first
    for n in range((last - first) % SECTORS + 1):
        bits |= np.uint64(1) << np.uint64((first + n) % SECTORS)
    return bits


@kernel
def contact_sectors(
    grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep, part: float
) -> np.uint64:
    """Sectors, as bits, in which a body touches what is near its arc, when it has gone
    `part` of it.
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
        if (
            segment_distance(x, y, px, py, qx, qy) <= radius
        ):  # it can reach the outline at all
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
                if (
                    segment_distance(x, y, px, py, qx, qy) <= radius
                ):  # so can this edge of the other body
                    for p in range(p0, p1):
                        first, last = vert_start[p] - v0, vert_start[p + 1] - v0
                        bits |= chord_sectors(
                            placed, first, last, px, py, qx, qy, x, y, c, s
                        )

                px, py = qx, qy

    return bits


@kernel
def stopped_by(grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep, part: float) -> int:
    """What a body touches when it has gone `part` of its arc: the row of the nearest
    body, or `WALL`.

    What it does not come nearer to counts only if it touches nothing else: a body that
    overlaps something may move away from it. All trials are made in one place of the
    loop, so that `clearance` is compiled once.
    """
    near, nearest, met = bodies.near, math.inf, WALL
    for away in range(2):
        for n in range(-1, sweep.bodies):  # all walls, then each body
            if n >= 0:
                near[0], near[n] = near[n], near[0]
            one = Sweep(
                sweep.row,
                sweep.x,
                sweep.y,
                sweep.cosine,
                sweep.sine,
                sweep.dx,
                sweep.dy,
                sweep.dth,
                sweep.segments if n < 0 else 0,
                0 if n < 0 else 1,
            )
            gap = clearance(grid, pose, bodies, one, part, NEAR, away == 0)
            if gap < nearest:
                nearest, met = gap, WALL if n < 0 else near[0]

        if nearest < NEAR:
            break

    return met


@merged_kernel
def is_blocked(world: World, pose: F8, row: int) -> bool:
    """Whether body `row` touches something solid where it is; `pose` stands in place of
    `State.pose`.
    """
    grid, bodies, bins = world.grid, world.bodies, world.bins
    radius, x, y = bodies.radius[row], pose[row, 0], pose[row, 1]
    n_segments, _ = near_segments(grid, x, y, radius)
    n_bodies = near_bodies(bodies, bins, row, x, y, radius)
    cosine, sine = cosine_sine(pose[row, 2])
    stays = Sweep(row, x, y, cosine, sine, 0.0, 0.0, 0.0, n_segments, n_bodies)
    return clearance(grid, pose, bodies, stays, 0.0, 0.0, False) <= 0.0


@entry_kernel
def find_blocked(world: World, pose: F8, rows: I8, found: I1) -> None:
    """`is_blocked` for each of the bodies `rows`, (n,), into `found`, (n,), as 0 or 1;
    for callers outside the step.
    """
    for i in range(rows.shape[0]):
        found[i] = 1 if is_blocked(world, pose, rows[i]) else 0


@merged_kernel
def leads(bodies: Bodies, row: int) -> bool:
    """Whether a body with exact ramps goes some distance in this step although it has
    come to rest at its end.
    """
    lead = bodies.lead
    return bool(
        (bodies.exact[row] == 1)
        & ((lead[row, 0] != 0.0) | (lead[row, 1] != 0.0) | (lead[row, 2] != 0.0))
    )


@merged_kernel
def move_all(world: World, dt: float) -> None:
    """Move all bodies that can drive, in the order of `Bodies.order`, as far as they
    can.

    Writes pose, disp, spin, stall, contact and, where something blocks the way, vel.
    """
    state, bodies = world.state, world.bodies
    order, vel, disp, spin, stall = (
        bodies.order,
        state.vel,
        state.disp,
        state.spin,
        state.stall,
    )
    others_way = world.bins.reach[2]
    for n in range(order.shape[0]):
        row = order[n]
        disp[row, 0] = disp[row, 1] = disp[row, 2] = 0.0
        spin[row] = 0.0
        # it has mass: see engine/dynamics.py
        if state.control[row] != 0:
            continue
        # it stands; the others may come nearer
        if (
            vel[row, 0] == 0.0
            and vel[row, 1] == 0.0
            and vel[row, 2] == 0.0
            and not leads(bodies, row)
        ):
            stall[row] = 0
            bodies.leeway[row] -= others_way
        else:
            move_body(world, row, dt)


@merged_kernel
def move_body(world: World, row: int, dt: float) -> None:
    """Move one body that has a velocity, as far as it can."""
    state, bodies, bins = world.state, world.bodies, world.bins
    pose, vel, disp, placed = state.pose, state.vel, state.disp, bodies.placed
    dx, dy, dth = vel[row, 0] * dt, vel[row, 1] * dt, vel[row, 2] * dt
    if bodies.exact[row] == 1:
        dx, dy, dth = (
            dx + bodies.lead[row, 0],
            dy + bodies.lead[row, 1],
            dth + bodies.lead[row, 2],
        )

    x, y, th = pose[row, 0], pose[row, 1], pose[row, 2]
    c, s = placed[row, 3], placed[row, 4]
    ax, ay = arc(dx, dy, dth)
    to_x, to_y, to_th = x + c * ax - s * ay, y + s * ax + c * ay, wrap(th + dth)
    to_c, to_s = cosine_sine(to_th)
    v0, v1 = (
        bodies.vert_start[bodies.part_start[row]],
        bodies.vert_start[bodies.part_start[row + 1]],
    )
    place_corners(bodies.verts, v0, v1, to_x, to_y, to_c, to_s, bodies.world, v0)
    fraction = 1.0
    # turning is never stopped, else a robot at a wall could not turn away (COL-005); a
    # blocked robot turns where it stands
    translates = abs(vel[row, 0]) > TRANSLATING or abs(vel[row, 1]) > TRANSLATING
    if bodies.exact[row] == 1:
        translates = abs(dx) > TRANSLATING * dt or abs(dy) > TRANSLATING * dt
    if translates and int(state.mask[row]) & OBSTACLE:
        fraction = travel(world, Sweep(row, x, y, c, s, dx, dy, dth, 0, 0), to_x, to_y)
    else:
        # nothing stops it, but the others may come nearer
        state.contact[row] = np.uint64(0)
        bodies.leeway[row] -= bins.reach[2]

    state.stall[row] = 0
    disp[row, 0], disp[row, 1], disp[row, 2] = (
        dx * fraction,
        dy * fraction,
        dth * fraction,
    )
    # it is left where it met something, and turns there
    if fraction < 1.0:
        state.stall[row] = 1
        vel[row, 0] = vel[row, 1] = 0.0
        state.spin[row] = dth - disp[row, 2]
        ax, ay = arc(disp[row, 0], disp[row, 1], disp[row, 2])
        to_x, to_y = x + c * ax - s * ay, y + s * ax + c * ay
        place_corners(bodies.verts, v0, v1, to_x, to_y, to_c, to_s, bodies.world, v0)

    pose[row, 0], pose[row, 1], pose[row, 2] = to_x, to_y, to_th
    slot = bins.slot[row]
    bins.at[slot, 0], bins.at[slot, 1] = to_x, to_y
    placed[row, 0], placed[row, 1], placed[row, 2], placed[row, 3], placed[row, 4] = (
        to_x,
        to_y,
        to_th,
        to_c,
        to_s,
    )


@merged_kernel
def travel(world: World, arc_ahead: Sweep, to_x: float, to_y: float) -> float:
    """How much of its arc a body can travel, 0 … 1, whose corners stand in
    `Bodies.world` for the end of it, (`to_x`, `to_y`).

    Where nothing solid is near, the way is free without further tests: that is most
    bodies in most steps. Writes `State.contact`, `Bodies.leeway` and `Bins.met`.
    """
    grid, bodies, bins, pose, contact = (
        world.grid,
        world.bodies,
        world.bins,
        world.state.pose,
        world.state.contact,
    )
    row, leeway = arc_ahead.row, bodies.leeway
    way, others_way = length(arc_ahead.dx, arc_ahead.dy), bins.reach[2]
    if (
        leeway[row] > way + others_way
    ):  # nothing was so near when it looked last that it can be here now
        leeway[row] -= way + others_way
        contact[row] = np.uint64(0)
        return 1.0

    need = bodies.radius[row] + way + CONTACT
    to_wall = (
        wall_distance(
            grid.clear,
            grid.x0,
            grid.y0,
            grid.h,
            grid.nx,
            grid.ny,
            arc_ahead.x,
            arc_ahead.y,
        )
        - need
    )
    n_segments = 0
    if (
        to_wall <= 0.0
    ):  # the free squares of the grid do not say that it is far from all walls
        n_segments, nearest = near_segments(grid, arc_ahead.x, arc_ahead.y, need)
        to_wall = nearest - need

    # where it will be is asked first, in ways that are quick and mostly say yes; unless
    # it could jump over something
    around = -1.0
    if way <= bodies.inner[row] and clear_of_segments(grid, bodies, row, n_segments):
        around = leeway_among(bodies, bins, row, to_x, to_y)
    leeway[row] = min(around, to_wall)
    if around >= 0.0:
        contact[row] = np.uint64(0)
        return 1.0

    n_bodies = near_bodies(bodies, bins, row, arc_ahead.x, arc_ahead.y, need)
    sweep = Sweep(
        row,
        arc_ahead.x,
        arc_ahead.y,
        arc_ahead.cosine,
        arc_ahead.sine,
        arc_ahead.dx,
        arc_ahead.dy,
        arc_ahead.dth,
        n_segments,
        n_bodies,
    )
    fraction = free_fraction(grid, pose, bodies, sweep)
    # one that stands where it stood touches what it touched
    if fraction > 0.0 or sweep.dth != 0.0 or contact[row] == np.uint64(0):
        contact[row] = np.uint64(0)
        if (
            fraction < 1.0 and bodies.feels[row] & 1
        ):  # a little farther it touches what it was stopped by
            beyond = min(1.0, fraction + 1.5 * CONTACT / way)
            contact[row] = contact_sectors(grid, pose, bodies, sweep, beyond)

    if fraction < 1.0 and bodies.feels[row] & 2:
        bins.met[row] = stopped_by(
            grid, pose, bodies, sweep, min(1.0, fraction + 1.5 * CONTACT / way)
        )

    return fraction
