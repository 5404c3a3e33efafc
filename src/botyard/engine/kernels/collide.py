"""Moving bodies without letting them pass through anything (pioneer-protocol §11.3).

A robot moves along its arc until its outline would touch something; it is then left at the last free place on the arc, and is
stalled. Outlines are exact polygons; they are tested against map segments and against the outlines of other bodies. Bodies move one
after the other, in the order of `Bodies.order`. Allocates nothing; runs in one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.jit import inline_kernel, inner_kernel, kernel
from botyard.engine.kernels.motion import arc, wrap
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.layout import F8, U2, Bins, Bodies, Grid, State

OBSTACLE = 1  # Visible.OBSTACLE
TRANSLATING = 2e-5
"""A robot slower than this only turns, m/s (§11.3)."""
ALONG = 1e-9
"""Rounding allowed, m, when a body that overlaps something moves along it and not away."""
CONTACT = 1e-5
"""The contact is found to within this distance along the arc, m."""
SECTORS = 64
"""Sectors of bearings in which contacts are reported."""


@inline_kernel
def side(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> float:
    """Twice the signed area of the triangle a, b, p: positive when p is left of a → b."""
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)


@kernel
def segments_cross(ax: float, ay: float, bx: float, by: float, px: float, py: float, qx: float, qy: float) -> bool:
    """Whether the segments a–b and p–q have a point in common, touching included; collinear overlap does not count."""
    d1, d2 = side(px, py, qx, qy, ax, ay), side(px, py, qx, qy, bx, by)
    d3, d4 = side(ax, ay, bx, by, px, py), side(ax, ay, bx, by, qx, qy)
    if d1 == 0.0 and d2 == 0.0:
        return False
    return d1 * d2 <= 0.0 and d3 * d4 <= 0.0


@kernel
def point_in_polygon(verts: F8, v0: int, v1: int, x: float, y: float) -> bool:
    """Even-odd rule (Shimrat, 1962) for the polygon verts[v0:v1]."""
    inside = False
    ax, ay = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        bx, by = verts[v, 0], verts[v, 1]
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
        ax, ay = bx, by
    return inside


@inner_kernel
def segment_distance(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> float:
    """Distance from the point p to the segment a–b."""
    ex, ey = bx - ax, by - ay
    length2 = ex * ex + ey * ey
    u = 0.0 if length2 == 0.0 else min(1.0, max(0.0, ((px - ax) * ex + (py - ay) * ey) / length2))
    return math.hypot(px - ax - u * ex, py - ay - u * ey)


@inner_kernel
def polygon_hits_segment(verts: F8, v0: int, v1: int, ax: float, ay: float, bx: float, by: float) -> bool:
    """Whether the segment a–b touches the polygon verts[v0:v1] or lies inside it."""
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        if segments_cross(ax, ay, bx, by, px, py, qx, qy):
            return True
        px, py = qx, qy
    return point_in_polygon(verts, v0, v1, 0.5 * (ax + bx), 0.5 * (ay + by))


@inner_kernel
def hits_static(grid: Grid, bodies: Bodies, row: int, placed: F8, x: float, y: float, old_x: float, old_y: float,
                escaping: bool) -> bool:  # fmt: skip
    """Whether body `row`, with corners `placed` and origin (`x`, `y`), touches a solid segment.

    With `escaping`, segments that the origin does not come nearer to than it was at (`old_x`, `old_y`) are let pass: a body that
    already overlaps something may move away from it.
    """
    if grid.nx == 0:
        return False
    # taken out of their tuples before the loops, see `move_all`
    start, seg, classes, clear = grid.start, grid.seg, grid.mask, grid.clear
    part_start, vert_start = bodies.part_start, bodies.vert_start
    x0, y0, h, nx, ny = grid.x0, grid.y0, grid.h, grid.nx, grid.ny
    inv = 1.0 / h
    radius = bodies.radius[row]
    gx, gy = (x - x0) * inv, (y - y0) * inv
    if 0.0 <= gx < nx and 0.0 <= gy < ny:
        ix, iy = int(gx), int(gy)
        free = min(min(clear[0, iy, ix], clear[1, iy, ix]), min(clear[2, iy, ix], clear[3, iy, ix]))
        if (int(free) - 1) * h > radius:
            return False
    p0, p1 = part_start[row], part_start[row + 1]
    v0 = vert_start[p0]
    i0, i1 = bin_span(x - radius, x + radius, x0, inv, nx)
    j0, j1 = bin_span(y - radius, y + radius, y0, inv, ny)
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            if not (int(classes[k]) & OBSTACLE):
                continue
            ax, ay = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
            bx, by = ax + seg[k, 2] * h, ay + seg[k, 3] * h
            near = segment_distance(x, y, ax, ay, bx, by)
            if near > radius:
                continue
            if escaping and near >= segment_distance(old_x, old_y, ax, ay, bx, by) - ALONG:
                continue
            for p in range(p0, p1):
                if polygon_hits_segment(placed, vert_start[p] - v0, vert_start[p + 1] - v0, ax, ay, bx, by):
                    return True
    return False


@inner_kernel
def outlines_overlap(bodies: Bodies, row: int, placed: F8, x: float, y: float, radius: float, other: int, ox: float, oy: float,
                     oth: float) -> bool:  # fmt: skip
    """Whether body `row` with corners `placed` touches or contains, or lies within, body `other` at its pose.

    No corner of `row` is farther than `radius` from (`x`, `y`), so edges beyond that are passed over.
    """
    # taken out of their tuple before the loops, see `move_all`
    part_start, vert_start, verts = bodies.part_start, bodies.vert_start, bodies.verts
    c, s = math.cos(oth), math.sin(oth)
    p0, p1 = part_start[row], part_start[row + 1]
    v0 = vert_start[p0]
    # one corner of `row` in the frame of `other`, for the case that it lies wholly within
    dx, dy = placed[0, 0] - ox, placed[0, 1] - oy
    lx, ly = c * dx + s * dy, c * dy - s * dx
    for q in range(part_start[other], part_start[other + 1]):
        w0, w1 = vert_start[q], vert_start[q + 1]
        if point_in_polygon(verts, w0, w1, lx, ly):
            return True
        ax = ox + c * verts[w1 - 1, 0] - s * verts[w1 - 1, 1]
        ay = oy + s * verts[w1 - 1, 0] + c * verts[w1 - 1, 1]
        for w in range(w0, w1):
            bx = ox + c * verts[w, 0] - s * verts[w, 1]
            by = oy + s * verts[w, 0] + c * verts[w, 1]
            if segment_distance(x, y, ax, ay, bx, by) <= radius:
                for p in range(p0, p1):
                    if polygon_hits_segment(placed, vert_start[p] - v0, vert_start[p + 1] - v0, ax, ay, bx, by):
                        return True
            ax, ay = bx, by
    return False


@inner_kernel
def hits_bodies(pose: F8, mask: U2, bodies: Bodies, bins: Bins, row: int, placed: F8, x: float, y: float,
                old_x: float, old_y: float, escaping: bool) -> bool:  # fmt: skip
    """Whether body `row`, with corners `placed` and origin (`x`, `y`), touches another solid body; see `hits_static`."""
    radii, rows, start = bodies.radius, bins.rows, bins.start
    radius = radii[row]
    reach = radius + bins.reach[0] + bins.reach[1]
    width = bins.shape[0]
    i0, i1 = bin_span(x - reach, x + reach, bins.frame[0], bins.frame[2], width)
    j0, j1 = bin_span(y - reach, y + reach, bins.frame[1], bins.frame[2], bins.shape[1])
    for j in range(j0, j1 + 1):
        for n in range(start[j * width + i0], start[j * width + i1 + 1] if i1 >= i0 else 0):
            other = rows[n]
            ox, oy = pose[other, 0], pose[other, 1]
            near = math.hypot(x - ox, y - oy)
            if other == row or near > radius + radii[other] or not (int(mask[other]) & OBSTACLE):
                continue
            if escaping and near >= math.hypot(old_x - ox, old_y - oy) - ALONG:
                continue
            if outlines_overlap(bodies, row, placed, x, y, radius, other, ox, oy, pose[other, 2]):
                return True
    return False


@inner_kernel
def blocked(grid: Grid, pose: F8, mask: U2, bodies: Bodies, bins: Bins, i: int, dx: float, dy: float, dth: float,
            escaping: bool) -> bool:  # fmt: skip
    """Whether body `i` cannot be where the body twist (`dx`, `dy`, `dth`) takes it from its pose."""
    c, s = math.cos(pose[i, 2]), math.sin(pose[i, 2])
    ax, ay = arc(dx, dy, dth)
    x, y = pose[i, 0] + c * ax - s * ay, pose[i, 1] + s * ax + c * ay
    placed = bodies.scratch
    v0, v1 = bodies.vert_start[bodies.part_start[i]], bodies.vert_start[bodies.part_start[i + 1]]
    place_corners(bodies.verts, v0, v1, x, y, pose[i, 2] + dth, placed, 0)
    if hits_static(grid, bodies, i, placed, x, y, pose[i, 0], pose[i, 1], escaping):
        return True
    return hits_bodies(pose, mask, bodies, bins, i, placed, x, y, pose[i, 0], pose[i, 1], escaping)


@inner_kernel
def free_fraction(grid: Grid, pose: F8, mask: U2, bodies: Bodies, bins: Bins, i: int, dx: float, dy: float,
                  dth: float, stalled: int) -> float:  # fmt: skip
    """How much of the arc with body twist (`dx`, `dy`, `dth`) body `i` can travel from its pose: 0 … 1; 1 is all of it.

    `stalled`: it was blocked in the last step already (1), and so probably cannot move at all now: that is tried first.

    The arc is tried at places so close that nothing fits between them; between the last free and the first blocked one the contact
    is found by bisection. A body that overlaps something before it moves may move away from it (COL-009).
    """
    steps = max(1, int(math.ceil(math.hypot(dx, dy) / bodies.inner[i])))
    escaping = (
        0  # a number, and compared at each call: for a literal False Numba would compile all of `blocked` once more
    )
    n = 1
    while n <= steps:
        f = n / steps
        if not blocked(grid, pose, mask, bodies, bins, i, dx * f, dy * f, dth * f, escaping == 1):
            n += 1
        elif n == 1 and escaping == 0 and blocked(grid, pose, mask, bodies, bins, i, 0.0, 0.0, 0.0, escaping == 1):
            escaping = 1
        else:
            break
    if n > steps:
        return 1.0
    lo, hi = (n - 1) / steps, n / steps
    reach = math.hypot(dx, dy)
    if stalled == 1 and n == 1 and hi * reach > CONTACT:
        f = CONTACT / reach
        if blocked(grid, pose, mask, bodies, bins, i, dx * f, dy * f, dth * f, escaping == 1):
            return 0.0
    while (hi - lo) * reach > CONTACT:
        f = 0.5 * (lo + hi)
        if blocked(grid, pose, mask, bodies, bins, i, dx * f, dy * f, dth * f, escaping == 1):
            hi = f
        else:
            lo = f
    return lo


@inner_kernel
def sector(x: float, y: float) -> int:
    """Number of the sector of the bearing of (x, y) in a body's frame."""
    turn = math.atan2(y, x) / (2.0 * math.pi)
    return int(math.floor(turn * SECTORS)) % SECTORS


@inner_kernel
def chord_sectors(verts: F8, v0: int, v1: int, ax: float, ay: float, bx: float, by: float, x: float, y: float,
                  c: float, s: float) -> np.uint64:  # fmt: skip
    """Sectors, as bits, of the part of the segment a–b that lies in the polygon verts[v0:v1], seen from the body's origin (x, y).

    `c` and `s` are cosine and sine of the body's heading. The part is taken between its outermost crossings with the polygon.
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
    first = sector(c * (ax + low * ex - x) + s * (ay + low * ey - y), c * (ay + low * ey - y) - s * (ax + low * ex - x))
    last = sector(
        c * (ax + high * ex - x) + s * (ay + high * ey - y), c * (ay + high * ey - y) - s * (ax + high * ex - x)
    )
    if (last - first) % SECTORS > SECTORS // 2:  # the short way round
        first, last = last, first
    for n in range((last - first) % SECTORS + 1):
        bits |= np.uint64(1) << np.uint64((first + n) % SECTORS)
    return bits


@inner_kernel
def contact_sectors(grid: Grid, pose: F8, mask: U2, bodies: Bodies, bins: Bins, i: int, dx: float, dy: float,
                    dth: float) -> np.uint64:  # fmt: skip
    """Sectors, as bits, in which body `i` touches solid things at the place to which the twist (`dx`, `dy`, `dth`) takes it."""
    c, s = math.cos(pose[i, 2]), math.sin(pose[i, 2])
    ax, ay = arc(dx, dy, dth)
    x, y, th = pose[i, 0] + c * ax - s * ay, pose[i, 1] + s * ax + c * ay, pose[i, 2] + dth
    c, s = math.cos(th), math.sin(th)
    placed = bodies.scratch
    v0 = bodies.vert_start[bodies.part_start[i]]
    place_corners(bodies.verts, v0, bodies.vert_start[bodies.part_start[i + 1]], x, y, th, placed, 0)
    radius = bodies.radius[i]
    bits = np.uint64(0)
    if grid.nx > 0:
        inv = 1.0 / grid.h
        i0, i1 = bin_span(x - radius, x + radius, grid.x0, inv, grid.nx)
        j0, j1 = bin_span(y - radius, y + radius, grid.y0, inv, grid.ny)
        for j in range(j0, j1 + 1):
            for k in range(grid.start[j * grid.nx + i0], grid.start[j * grid.nx + i1 + 1] if i1 >= i0 else 0):
                if not (int(grid.mask[k]) & OBSTACLE):
                    continue
                px, py = grid.x0 + grid.seg[k, 0] * grid.h, grid.y0 + grid.seg[k, 1] * grid.h
                qx, qy = px + grid.seg[k, 2] * grid.h, py + grid.seg[k, 3] * grid.h
                if segment_distance(x, y, px, py, qx, qy) > radius:
                    continue
                for p in range(bodies.part_start[i], bodies.part_start[i + 1]):
                    first, last = bodies.vert_start[p] - v0, bodies.vert_start[p + 1] - v0
                    bits |= chord_sectors(placed, first, last, px, py, qx, qy, x, y, c, s)
    reach = radius + bins.reach[0] + bins.reach[1]
    width = bins.shape[0]
    i0, i1 = bin_span(x - reach, x + reach, bins.frame[0], bins.frame[2], width)
    j0, j1 = bin_span(y - reach, y + reach, bins.frame[1], bins.frame[2], bins.shape[1])
    for j in range(j0, j1 + 1):
        for n in range(bins.start[j * width + i0], bins.start[j * width + i1 + 1] if i1 >= i0 else 0):
            other = bins.rows[n]
            ox, oy = pose[other, 0], pose[other, 1]
            if (
                other == i
                or math.hypot(x - ox, y - oy) > radius + bodies.radius[other]
                or not (int(mask[other]) & OBSTACLE)
            ):
                continue
            oc, os = math.cos(pose[other, 2]), math.sin(pose[other, 2])
            for r in range(bodies.part_start[other], bodies.part_start[other + 1]):
                w0, w1 = bodies.vert_start[r], bodies.vert_start[r + 1]
                px = ox + oc * bodies.verts[w1 - 1, 0] - os * bodies.verts[w1 - 1, 1]
                py = oy + os * bodies.verts[w1 - 1, 0] + oc * bodies.verts[w1 - 1, 1]
                for w in range(w0, w1):
                    qx = ox + oc * bodies.verts[w, 0] - os * bodies.verts[w, 1]
                    qy = oy + os * bodies.verts[w, 0] + oc * bodies.verts[w, 1]
                    if segment_distance(x, y, px, py, qx, qy) <= radius:
                        for p in range(bodies.part_start[i], bodies.part_start[i + 1]):
                            first, last = bodies.vert_start[p] - v0, bodies.vert_start[p + 1] - v0
                            bits |= chord_sectors(placed, first, last, px, py, qx, qy, x, y, c, s)
                    px, py = qx, qy
    return bits


@inner_kernel
def push_row(grid: Grid, state: State, bodies: Bodies, bins: Bins, i: int, dt: float) -> float:
    """How much of its way body `i` may go (0 … 1) where something is near; writes `contact` where that is not all."""
    vel, pose, mask, contact = state.vel, state.pose, state.mask, state.contact
    dx, dy, dth = vel[i, 0] * dt, vel[i, 1] * dt, vel[i, 2] * dt
    fraction = free_fraction(grid, pose, mask, bodies, bins, i, dx, dy, dth, int(state.stall[i]))
    if fraction == 0.0 and dth == 0.0 and contact[i] != np.uint64(0):
        return fraction  # it stands where it stood, and touches what it touched
    contact[i] = np.uint64(0)
    if fraction < 1.0:
        beyond = min(1.0, fraction + 1.5 * CONTACT / math.hypot(dx, dy))
        contact[i] = contact_sectors(grid, pose, mask, bodies, bins, i, dx * beyond, dy * beyond, dth * beyond)
    return fraction


@kernel
def is_blocked(grid: Grid, pose: F8, mask: U2, bodies: Bodies, bins: Bins, row: int, escaping: bool) -> bool:
    """Whether body `row` touches something solid where it is; for callers outside the step, with `escaping` false."""
    return blocked(grid, pose, mask, bodies, bins, row, 0.0, 0.0, 0.0, escaping)


@inner_kernel
def move_all(grid: Grid, state: State, bodies: Bodies, bins: Bins, dt: float) -> None:
    """Move all bodies that can drive, in the order of `Bodies.order`, as far as they can.

    Writes pose, disp, spin, stall, contact and, where something blocks the way, vel. Where nothing solid is near, the way is free
    without further tests: that is most bodies in most steps.
    """
    # arrays are taken out of their tuples before the loop: inside, each access would count references
    pose, vel, disp, spin, stall, contact, mask = (
        state.pose, state.vel, state.disp, state.spin, state.stall, state.contact, state.mask,
    )  # fmt: skip
    order, radii = bodies.order, bodies.radius
    rows, start, frame, shape = bins.rows, bins.start, bins.frame, bins.shape
    clear, gx0, gy0, nx, ny = grid.clear, grid.x0, grid.y0, grid.nx, grid.ny
    inv, h = 1.0 / grid.h, grid.h
    widest, farthest = bins.reach[0], bins.reach[1]
    for n in range(order.shape[0]):
        i = order[n]
        disp[i, 0] = disp[i, 1] = disp[i, 2] = 0.0
        spin[i] = 0.0
        if vel[i, 0] == 0.0 and vel[i, 1] == 0.0 and vel[i, 2] == 0.0:
            stall[i] = 0
            continue
        dx, dy, dth = vel[i, 0] * dt, vel[i, 1] * dt, vel[i, 2] * dt
        x, y = pose[i, 0], pose[i, 1]
        fraction = 1.0
        # turning is never stopped, else a robot at a wall could not turn away (COL-005); a blocked robot turns where it stands
        if (abs(vel[i, 0]) > TRANSLATING or abs(vel[i, 1]) > TRANSLATING) and int(mask[i]) & OBSTACLE:
            need = radii[i] + math.hypot(dx, dy) + CONTACT
            near = False
            cx, cy = (x - gx0) * inv, (y - gy0) * inv
            if 0.0 <= cx < nx and 0.0 <= cy < ny:
                ix, iy = int(cx), int(cy)
                free = min(min(clear[0, iy, ix], clear[1, iy, ix]), min(clear[2, iy, ix], clear[3, iy, ix]))
                near = (int(free) - 1) * h <= need
            else:
                near = (
                    nx > 0 and cx > -need * inv and cy > -need * inv and cx < nx + need * inv and cy < ny + need * inv
                )
            if not near:
                reach = need + widest + farthest
                i0, i1 = bin_span(x - reach, x + reach, frame[0], frame[2], shape[0])
                j0, j1 = bin_span(y - reach, y + reach, frame[1], frame[2], shape[1])
                for j in range(j0, j1 + 1):
                    for k in range(start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0):
                        other = rows[k]
                        ox, oy = pose[other, 0] - x, pose[other, 1] - y
                        apart = need + radii[other]
                        if ox * ox + oy * oy <= apart * apart and other != i:
                            near = True
            if near:
                fraction = push_row(grid, state, bodies, bins, i, dt)
            else:
                contact[i] = np.uint64(0)
        else:
            contact[i] = np.uint64(0)
        stall[i] = 0
        disp[i, 0], disp[i, 1], disp[i, 2] = dx * fraction, dy * fraction, dth * fraction
        ax, ay = arc(disp[i, 0], disp[i, 1], disp[i, 2])
        c, s = math.cos(pose[i, 2]), math.sin(pose[i, 2])
        pose[i, 0], pose[i, 1] = x + c * ax - s * ay, y + s * ax + c * ay
        pose[i, 2] = wrap(pose[i, 2] + disp[i, 2])
        if fraction < 1.0:
            stall[i] = 1
            vel[i, 0] = vel[i, 1] = 0.0
            spin[i] = dth - disp[i, 2]
            pose[i, 2] = wrap(pose[i, 2] + spin[i])
