"""Motion of bodies without passing through anything (pioneer-protocol §11.3).

A robot moves along its arc until its outline would touch something. It then stays at
the last free place on the arc, and is stalled. The broad phase finds things near the
arc (`broadphase`). The narrow phase tests exact polygons against map segments and the
outlines of other bodies (`polygons`). Bodies move one after the other, in the order of
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
from botyard.engine.layout import F8, I1, I8, NO_CONTROL, WALL, Bodies, Grid, World
from botyard.numerics.elementary import atan2, cosine_sine

TRANSLATING = 2e-5
"""Speed up to which a robot only turns, m/s (§11.3)."""
ALONG = 1e-9
"""Tolerance for rounding of a body that moves along an overlap, not away from it, m."""
MARCH, AT_START, ESCAPE, REFINE = 0, 1, 2, 3
"""Stages of the search for the first contact, see `free_fraction`."""
NEAR = 4.0 * CONTACT
"""Distance from its obstacle within which a stopped body stays, m."""
SECTORS = 64
"""Number of sectors of bearings in which contacts are reported."""


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

    The body is at `part` of the arc, 0 … 1.

    This is the narrow phase. The distance is not positive if the body touches
    something. A distance above `enough` need not be exact. See `polygon_gap`. With
    `escaping`, things that the body's origin does not approach are ignored: a body that
    already overlaps something may move away from it. Writes the body's corners there to
    `Bodies.scratch`.
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
    # Sine and cosine of the turn
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
        # Things that it moves away from cannot stop it.
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
        # Their circles are so far apart that the exact gap does not matter.
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
    the first blocked one, a place is searched that is free by at most `CONTACT`. The
    search takes twice the place expected from the gaps at both ends (regula falsi),
    then once the middle (bisection), and so on. A body that overlaps something before
    it moves may move away from it (COL-009). All trials are made in one place of the
    loop, so that `clearance` is compiled once.
    """
    reach = length(sweep.dx, sweep.dy)
    # A move shorter than half the body's width cannot jump over anything.
    steps = max(1, int(math.ceil(reach / bodies.inner[sweep.row])))
    n, low, high, f = 1, 0.0, 1.0, 0.0
    gap_low, gap_high = reach, -reach
    # A number that is compared in the call: with a literal False Numba would compile
    # all of `clearance` once more.
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
            # Regula falsi: the gap is nearly linear between two places.
            f = low + (high - low) * (gap_low - 0.5 * CONTACT) / (gap_low - gap_high)
        else:
            # Otherwise bisection, which bounds the number of trials.
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
            # Blocked at the first place: perhaps it overlapped something before it
            # moved.
            stage = AT_START if n == 1 and escaping == 0 else REFINE
        elif stage == AT_START:
            # It did: test whether it moves away.
            if gap <= 0.0:
                escaping, stage = 1, ESCAPE
                continue

            gap_low, stage = min(gap, reach), REFINE
        elif stage == ESCAPE:
            # It hits at once an obstacle that it approaches.
            if gap <= 0.0:
                break
            low, gap_low, stage = f, min(gap, reach), MARCH
        else:
            expected = expected + 1 if expected < 2 else 0
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
            else:
                high, gap_high = f, min(gap, -ALONG)

        # Near enough: to the obstacle, or along its arc.
        if stage == REFINE and (gap_low <= CONTACT or (high - low) * reach <= CONTACT):
            break

    return low


@kernel
def sector(x: float, y: float) -> int:
    """Return the number of the sector of the bearing of (x, y) in a body frame."""
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
    """Return sectors, as bits, of the part of the segment a–b in a polygon.

    The polygon is verts[v0:v1].

    They are seen from the body's origin (x, y). `c` and `s` are cosine and sine of the
    body's heading. The part lies between its outermost crossings with the polygon.
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
    # In the shorter direction
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

    The body is at `part` of its arc.
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
        # Otherwise it cannot reach the outline.
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
                # Otherwise this edge of the other body cannot reach the outline.
                if segment_distance(x, y, px, py, qx, qy) <= radius:
                    for p in range(p0, p1):
                        first, last = vert_start[p] - v0, vert_start[p + 1] - v0
                        bits |= chord_sectors(
                            placed, first, last, px, py, qx, qy, x, y, c, s
                        )

                px, py = qx, qy

    return bits


@kernel
def stopped_by(grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep, part: float) -> int:
    """Return the obstacle of a body: row of the nearest body, or `WALL`.

    The body is at `part` of its arc.

    A thing that it does not approach counts only if it touches nothing else, because a
    body that overlaps something may move away from it. All trials are made in one place
    of the loop, so that `clearance` is compiled once.
    """
    near, nearest, met = bodies.near, math.inf, WALL
    for away in range(2):
        # All walls, then each body
        for n in range(-1, sweep.bodies):
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
    """Return whether body `row` touches something solid; `pose` replaces `State.pose`."""
    grid, bodies, bins = world.grid, world.bodies, world.bins
    radius, x, y = bodies.radius[row], pose[row, 0], pose[row, 1]
    n_segments, _ = near_segments(grid, x, y, radius)
    n_bodies = near_bodies(bodies, bins, row, x, y, radius)
    cosine, sine = cosine_sine(pose[row, 2])
    stays = Sweep(row, x, y, cosine, sine, 0.0, 0.0, 0.0, n_segments, n_bodies)
    return clearance(grid, pose, bodies, stays, 0.0, 0.0, False) <= 0.0


@entry_kernel
def find_blocked(world: World, pose: F8, rows: I8, found: I1) -> None:
    """Write `is_blocked` for the bodies `rows`, (n,), to `found`, (n,), as 0 or 1.

    For callers outside of the step.
    """
    for i in range(rows.shape[0]):
        found[i] = 1 if is_blocked(world, pose, rows[i]) else 0


@merged_kernel
def leads(bodies: Bodies, row: int) -> bool:
    """Return whether a body with exact ramps moves in a step that it ends at rest."""
    lead = bodies.lead
    return bool(
        (bodies.exact[row] == 1)
        & ((lead[row, 0] != 0.0) | (lead[row, 1] != 0.0) | (lead[row, 2] != 0.0))
    )


@merged_kernel
def move_all(world: World, dt: float) -> None:
    """Move all bodies with a drive as far as they can, in the order of `Bodies.order`.

    Writes pose, disp, spin, stall, contact and, if an obstacle stops a body, vel.
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
        # Bodies with mass: see engine/dynamics.py.
        if state.control[row] != NO_CONTROL:
            continue
        # It stands; others may come nearer.
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
    """Move one body with a velocity as far as it can."""
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
    # Turning is never stopped; otherwise a robot at a wall could not turn away
    # (COL-005). A blocked robot turns in place.
    translates = abs(vel[row, 0]) > TRANSLATING or abs(vel[row, 1]) > TRANSLATING
    if bodies.exact[row] == 1:
        translates = abs(dx) > TRANSLATING * dt or abs(dy) > TRANSLATING * dt
    if translates and int(state.mask[row]) & OBSTACLE:
        fraction = travel(world, Sweep(row, x, y, c, s, dx, dy, dth, 0, 0), to_x, to_y)
    else:
        # Nothing stops it, but others may come nearer.
        state.contact[row] = np.uint64(0)
        bodies.leeway[row] -= bins.reach[2]

    state.stall[row] = 0
    disp[row, 0], disp[row, 1], disp[row, 2] = (
        dx * fraction,
        dy * fraction,
        dth * fraction,
    )
    # It stays at its obstacle, and turns there.
    if fraction < 1.0:
        state.stall[row] = 1
        # A blocked robot has no speed, from which its ramps start again (§11.3).
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
    """Return the part of its arc that a body can travel, 0 … 1.

    The body's corners in `Bodies.world` must belong to the end of the arc, (`to_x`,
    `to_y`). If nothing solid is near, the arc is free without further tests; so it is
    for most bodies in most steps. Writes `State.contact`, `Bodies.leeway` and
    `Bins.met`.
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
    # Nothing was near enough at the last search to be here now.
    if leeway[row] > way + others_way:
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
    # The free squares of the grid do not exclude near walls.
    if to_wall <= 0.0:
        n_segments, nearest = near_segments(grid, arc_ahead.x, arc_ahead.y, need)
        to_wall = nearest - need

    # The end of the arc is tested first by quick tests that mostly succeed, unless the
    # body could jump over something.
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
    # A body that has not moved touches the same things as before.
    if fraction > 0.0 or sweep.dth != 0.0 or contact[row] == np.uint64(0):
        contact[row] = np.uint64(0)
        # A little farther it touches its obstacle.
        if fraction < 1.0 and bodies.feels[row] & 1:
            # The search stops up to `CONTACT` before the obstacle.
            beyond = min(1.0, fraction + 1.5 * CONTACT / way)
            contact[row] = contact_sectors(grid, pose, bodies, sweep, beyond)

    if fraction < 1.0 and bodies.feels[row] & 2:
        bins.met[row] = stopped_by(
            grid, pose, bodies, sweep, min(1.0, fraction + 1.5 * CONTACT / way)
        )

    return fraction
