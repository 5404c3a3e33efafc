"""Moving bodies without letting them pass through anything (pioneer-protocol §11.3).

A robot moves along its arc until its outline would touch something; it is then left at the last free place on the arc, and is
stalled. Outlines are exact polygons; they are tested against map segments and against the outlines of other bodies. Bodies move one
after the other, in the order of `Bodies.order`. Allocates nothing; runs in one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import entry_kernel, inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.motion import arc, cosine_sine, turning, wrap
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.layout import F8, I1, I4, I8, U2, Bins, Bodies, Grid, State, World

OBSTACLE = 1  # Visible.OBSTACLE
TRANSLATING = 2e-5
"""A robot slower than this only turns, m/s (§11.3)."""
ALONG = 1e-9
"""Rounding allowed, m, when a body that overlaps something moves along it and not away."""
CONTACT = 1e-5
"""A body is left this near to what it met, m, or this near along its arc."""
AHEAD, STANDING, NUDGE, BETWEEN = 0, 1, 2, 3
"""Stages of the search for a contact, see `free_fraction`."""
LEEWAY = 0.75
"""How far from a body others are looked for, m: the more, the longer it need not look again, and the more there are."""
SECTORS = 64
"""Sectors of bearings in which contacts are reported."""


@inline_kernel
def length(x: float, y: float) -> float:
    """Length of a vector. Not `math.hypot`: that is a call, for the sake of overflows that no place in a world causes."""
    return math.sqrt(x * x + y * y)


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


@kernel
def segment_distance(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> float:
    """Distance from the point p to the segment a–b."""
    ex, ey = bx - ax, by - ay
    length2 = ex * ex + ey * ey
    u = 0.0 if length2 == 0.0 else min(1.0, max(0.0, ((px - ax) * ex + (py - ay) * ey) / length2))
    return length(px - ax - u * ex, py - ay - u * ey)


@kernel
def polygon_hits_segment(verts: F8, v0: int, v1: int, ax: float, ay: float, bx: float, by: float) -> bool:
    """Whether the segment a–b touches the polygon verts[v0:v1] or lies inside it."""
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        if segments_cross(ax, ay, bx, by, px, py, qx, qy):
            return True
        px, py = qx, qy
    return point_in_polygon(verts, v0, v1, 0.5 * (ax + bx), 0.5 * (ay + by))


@kernel
def segment_gap(
    verts: F8, edge: F8, v0: int, v1: int, e0: int, turn: float, ax: float, ay: float, bx: float, by: float
) -> float:
    """How far apart the polygon verts[v0:v1] and the segment a–b are along the best of their axes, m; see `polygon_gap`."""
    ex, ey = bx - ax, by - ay
    size = length(ex, ey)
    least, most = math.inf, -math.inf
    for v in range(v0, v1):
        d = ex * (verts[v, 1] - ay) - ey * (verts[v, 0] - ax)
        least, most = min(least, d), max(most, d)
    gap = max(least, -most) / size if size > 0.0 else -math.inf
    if gap > 0.0:
        return gap
    if turn == 0.0:
        return -CONTACT if polygon_hits_segment(verts, v0, v1, ax, ay, bx, by) else CONTACT
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        nearest = min(-turn * side(px, py, qx, qy, ax, ay), -turn * side(px, py, qx, qy, bx, by))
        gap = max(gap, nearest * edge[e0 + v - v0])
        px, py = qx, qy
    return gap


@kernel
def edges_gap(verts: F8, edge: F8, v0: int, v1: int, e0: int, turn: float, others: F8, w0: int, w1: int) -> float:  # fmt: skip
    """How far others[w0:w1] lies beyond the best edge of the convex polygon verts[v0:v1], m."""
    gap = -math.inf
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        scale = -turn * edge[e0 + v - v0]
        nearest = math.inf
        for w in range(w0, w1):
            nearest = min(nearest, scale * side(px, py, qx, qy, others[w, 0], others[w, 1]))
            if nearest <= gap:
                break
        gap = max(gap, nearest)
        px, py = qx, qy
    return gap


@kernel
def polygon_gap(verts: F8, edge: F8, v0: int, v1: int, e0: int, turn: float, others: F8, w0: int, w1: int,
                other_turn: float) -> float:  # fmt: skip
    """How far apart two polygons are along the best of their axes, m: positive if they do not touch.

    For convex polygons, the axes are the normals of their edges (separating axes; Gottschalk, Lin & Manocha, 1996), and a gap that is
    not positive is how deep they overlap. For others it is ±CONTACT, by their edges and corners.

    Parameters
    ----------
    verts, v0, v1, e0, turn
        One polygon: its corners verts[v0:v1], where its `Bodies.edge` begins, `Bodies.turn`.
    others, w0, w1, other_turn
        The other, whose corners and edges have the same numbers.
    """
    gap = -math.inf
    if turn != 0.0:
        gap = edges_gap(verts, edge, v0, v1, e0, turn, others, w0, w1)
    if other_turn != 0.0:
        gap = max(gap, edges_gap(others, edge, w0, w1, w0, other_turn, verts, v0, v1))
    if gap > 0.0 or (turn != 0.0 and other_turn != 0.0):
        return gap
    if point_in_polygon(others, w0, w1, verts[v0, 0], verts[v0, 1]):
        return -CONTACT
    ax, ay = others[w1 - 1, 0], others[w1 - 1, 1]
    for w in range(w0, w1):
        bx, by = others[w, 0], others[w, 1]
        if polygon_hits_segment(verts, v0, v1, ax, ay, bx, by):
            return -CONTACT
        ax, ay = bx, by
    return CONTACT


@inline_kernel
def near_segments(start: I4, seg: F8, classes: U2, x0: float, y0: float, h: float, nx: int, ny: int, x: float, y: float,
                  reach: float, near: I4) -> tuple[int, float]:  # fmt: skip
    """Note in `near` the solid segments within `reach` m of (x, y), as entries of the grid.

    Returns how many, and how far the nearest one is at the least, m: others are beyond the cells that were looked at.
    """
    inv = 1.0 / h
    gx, gy, limit = (x - x0) * inv, (y - y0) * inv, reach * inv
    count = 0
    i0, i1 = bin_span(x - reach, x + reach, x0, inv, nx)
    j0, j1 = bin_span(y - reach, y + reach, y0, inv, ny)
    nearest = min(min(gx - i0, i1 + 1 - gx), min(gy - j0, j1 + 1 - gy))
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            if not (int(classes[k]) & OBSTACLE):
                continue
            ax, ay = seg[k, 0], seg[k, 1]
            distance = segment_distance(gx, gy, ax, ay, ax + seg[k, 2], ay + seg[k, 3])
            nearest = min(nearest, distance)
            if distance <= limit:
                near[count] = k
                count += 1
    return count, nearest * h


@inline_kernel
def near_bodies(rows: I8, at: F8, classes: U2, start: I8, frame: F8, shape: I8, widest: float, farthest: float,
                i: int, x: float, y: float, reach: float, near: I8) -> int:  # fmt: skip
    """Note in `near` the other solid bodies whose circle is within `reach` m of (x, y); how many.

    `widest`, `farthest`: `Bins.reach`: bodies may have moved in this step and stand beside their bin.
    """
    count = 0
    wide = reach + widest + farthest
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])
    for j in range(j0, j1 + 1):
        for k in range(start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0):
            ox, oy, apart = at[k, 0] - x, at[k, 1] - y, reach + at[k, 2]
            if ox * ox + oy * oy <= apart * apart and int(classes[k]) & OBSTACLE and rows[k] != i:
                near[count] = rows[k]
                count += 1
    return count


@inline_kernel
def leeway_among(part_start: I8, vert_start: I8, world: F8, rows: I8, at: F8, classes: U2, start: I8,
                 frame: F8, shape: I8, widest: float, farthest: float, i: int, x: float, y: float, radius: float) -> float:  # fmt: skip
    """How far body `i`, whose corners stand in `world` for a place at (x, y), is from other solid bodies there, m: by its circle.

    At most `LEEWAY`; negative where it may touch one: for bodies whose circles overlap only one axis is tried, that from the one's
    middle to the other's, which parts most that do not touch.
    """
    found = LEEWAY
    wide = radius + LEEWAY + widest + farthest
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])
    v0, v1 = vert_start[part_start[i]], vert_start[part_start[i + 1]]
    for j in range(j0, j1 + 1):
        for k in range(start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0):
            ex, ey, apart = at[k, 0] - x, at[k, 1] - y, radius + at[k, 2]
            if ex * ex + ey * ey > (apart + found) * (apart + found) or not int(classes[k]) & OBSTACLE:
                continue
            other = rows[k]
            if other == i:
                continue
            beyond = length(ex, ey) - apart
            if beyond > 0.0:
                found = min(found, beyond)
                continue
            found = 0.0
            mine, theirs = -math.inf, math.inf
            for v in range(v0, v1):
                mine = max(mine, (world[v, 0] - x) * ex + (world[v, 1] - y) * ey)
            for w in range(vert_start[part_start[other]], vert_start[part_start[other + 1]]):
                theirs = min(theirs, (world[w, 0] - x) * ex + (world[w, 1] - y) * ey)
            if theirs <= mine:
                return -1.0
    return found


@inline_kernel
def clear_of_segments(seg: F8, x0: float, y0: float, h: float, near_seg: I4, n_segments: int, world: F8, v0: int,
                      v1: int) -> bool:  # fmt: skip
    """Whether the corners world[v0:v1] lie on one side of each of the first segments of `near_seg`, or before or behind it."""
    for n in range(n_segments):
        k = near_seg[n]
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


@inline_kernel
def room(seg: F8, x0: float, y0: float, h: float, near_seg: I4, n_segments: int, pose: F8, radii: F8, part_start: I8,
         vert_start: I8, turn: F8, edge: F8, verts: F8, world: F8, near: I8, n_bodies: int, i: int, cosine: float, sine: float,
         dx: float, dy: float, dth: float, enough: float, escaping: bool, placed: F8) -> float:  # fmt: skip
    """How far body `i` is from other things, m, where the body twist (`dx`, `dy`, `dth`) takes it from its pose.

    `cosine`, `sine`: of its heading before.

    Not positive where it touches something; a distance that is larger than `enough` need not be exact. See `polygon_gap`.

    Only the first `n_segments` of `near_seg` and `n_bodies` of `near` are looked at; those bodies' corners stand in `world`. `placed` is
    workspace. With `escaping`, things that the body's origin does not come nearer to are let pass: a body that already overlaps
    something may move away from it.
    """
    old_x, old_y = pose[i, 0], pose[i, 1]
    u, v = turning(dth)
    ax, ay = u * dx - v * dy, v * dx + u * dy
    x, y = old_x + cosine * ax - sine * ay, old_y + sine * ax + cosine * ay
    u, v = u * dth, 1.0 - v * dth  # sine and cosine of what it turns
    c, s = cosine * v - sine * u, sine * v + cosine * u
    p0, p1, radius = part_start[i], part_start[i + 1], radii[i]
    v0 = vert_start[p0]
    place_corners(verts, v0, vert_start[p1], x, y, c, s, placed, 0)
    gap = math.inf
    for n in range(n_segments):
        k = near_seg[n]
        ax, ay = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
        bx, by = ax + seg[k, 2] * h, ay + seg[k, 3] * h
        if (
            not escaping
            or segment_distance(x, y, ax, ay, bx, by) < segment_distance(old_x, old_y, ax, ay, bx, by) - ALONG
        ):
            for p in range(p0, p1):
                w0, w1 = vert_start[p] - v0, vert_start[p + 1] - v0
                gap = min(gap, segment_gap(placed, edge, w0, w1, vert_start[p], turn[p], ax, ay, bx, by))
    for n in range(n_bodies):
        other = near[n]
        ox, oy = pose[other, 0], pose[other, 1]
        apart = length(x - ox, y - oy)
        beyond = apart - radius - radii[other]
        if beyond > enough:
            gap = min(gap, beyond)
        elif not escaping or apart < length(old_x - ox, old_y - oy) - ALONG:
            for q in range(part_start[other], part_start[other + 1]):
                for p in range(p0, p1):
                    w0, w1 = vert_start[p] - v0, vert_start[p + 1] - v0
                    gap = min(gap, polygon_gap(placed, edge, w0, w1, vert_start[p], turn[p],
                                               world, vert_start[q], vert_start[q + 1], turn[q]))  # fmt: skip
    return gap


@inline_kernel
def free_fraction(seg: F8, x0: float, y0: float, h: float, near_seg: I4, n_segments: int, pose: F8, radii: F8, part_start: I8,
                  vert_start: I8, turn: F8, edge: F8, verts: F8, world: F8, near: I8, n_bodies: int, i: int, cosine: float,
                  sine: float, dx: float, dy: float, dth: float, inner: float, placed: F8) -> float:  # fmt: skip
    """How much of the arc with body twist (`dx`, `dy`, `dth`) body `i` can travel from its pose: 0 … 1; 1 is all of it.

    `inner`: a move shorter than this, m, cannot jump over anything. The others are those of `room`.

    The arc is tried at places so close that nothing fits between them; between the last free and the first blocked one a place is
    looked for that is free by no more than `CONTACT`: twice where the gaps at both ends let it expect, once in the middle, and so on. A
    body that overlaps something before it moves may move away from it (COL-009). All trials are made in one place of the loop, so that
    `room` is compiled once.
    """
    reach = length(dx, dy)
    steps = max(1, int(math.ceil(reach / inner)))
    n, low, high, f = 1, 0.0, 1.0, 0.0
    gap_low, gap_high = reach, -reach
    escaping = 0  # a number, and compared in the call: for a literal False Numba would compile all of `room` once more
    stage, expected = AHEAD, 0
    while True:
        if stage == AHEAD:
            f = n / steps
        elif stage == STANDING:
            f = 0.0
        elif stage == NUDGE:
            f = CONTACT / reach
        elif expected < 2:
            f = low + (high - low) * (gap_low - 0.5 * CONTACT) / (gap_low - gap_high)
        else:
            f = 0.5 * (low + high)
        gap = room(
            seg, x0, y0, h, near_seg, n_segments, pose, radii, part_start, vert_start, turn, edge, verts, world, near, n_bodies,
            i, cosine, sine, dx * f, dy * f, dth * f, reach, escaping == 1, placed,
        )  # fmt: skip
        if stage == AHEAD:
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
                if n == steps:
                    break
                n += 1
                continue
            high, gap_high = f, min(gap, -ALONG)
            stage = STANDING if n == 1 and escaping == 0 else BETWEEN
        elif stage == STANDING:
            if gap <= 0.0:
                escaping, stage = 1, NUDGE
                continue
            gap_low, stage = min(gap, reach), BETWEEN
        elif stage == NUDGE:
            if gap <= 0.0:  # it meets at once what it moves towards
                break
            low, gap_low, stage = f, min(gap, reach), AHEAD
        else:
            expected = expected + 1 if expected < 2 else 0
            if gap > 0.0:
                low, gap_low = f, min(gap, reach)
            else:
                high, gap_high = f, min(gap, -ALONG)
        if stage == BETWEEN and (gap_low <= CONTACT or (high - low) * reach <= CONTACT):
            break
    return low


@kernel
def sector(x: float, y: float) -> int:
    """Number of the sector of the bearing of (x, y) in a body's frame."""
    turn = math.atan2(y, x) / (2.0 * math.pi)
    return int(math.floor(turn * SECTORS)) % SECTORS


@kernel
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


@kernel
def contact_sectors(seg: F8, x0: float, y0: float, h: float, near_seg: I4, n_segments: int, pose: F8, radii: F8, part_start: I8,
                    vert_start: I8, verts: F8, world: F8, near: I8, n_bodies: int, i: int, dx: float, dy: float,
                    dth: float, placed: F8) -> np.uint64:  # fmt: skip
    """Sectors, as bits, in which body `i` touches solid things at the place to which the twist (`dx`, `dy`, `dth`) takes it.

    The arguments are those of `room`.
    """
    c, s = math.cos(pose[i, 2]), math.sin(pose[i, 2])
    ax, ay = arc(dx, dy, dth)
    x, y, th = pose[i, 0] + c * ax - s * ay, pose[i, 1] + s * ax + c * ay, pose[i, 2] + dth
    c, s = math.cos(th), math.sin(th)
    p0, p1 = part_start[i], part_start[i + 1]
    v0 = vert_start[p0]
    place_corners(verts, v0, vert_start[p1], x, y, c, s, placed, 0)
    radius = radii[i]
    bits = np.uint64(0)
    for n in range(n_segments):
        k = near_seg[n]
        px, py = x0 + seg[k, 0] * h, y0 + seg[k, 1] * h
        qx, qy = px + seg[k, 2] * h, py + seg[k, 3] * h
        if segment_distance(x, y, px, py, qx, qy) <= radius:
            for p in range(p0, p1):
                bits |= chord_sectors(placed, vert_start[p] - v0, vert_start[p + 1] - v0, px, py, qx, qy, x, y, c, s)
    for n in range(n_bodies):
        other = near[n]
        for r in range(part_start[other], part_start[other + 1]):
            w0, w1 = vert_start[r], vert_start[r + 1]
            px, py = world[w1 - 1, 0], world[w1 - 1, 1]
            for w in range(w0, w1):
                qx, qy = world[w, 0], world[w, 1]
                if segment_distance(x, y, px, py, qx, qy) <= radius:
                    for p in range(p0, p1):
                        first, last = vert_start[p] - v0, vert_start[p + 1] - v0
                        bits |= chord_sectors(placed, first, last, px, py, qx, qy, x, y, c, s)
                px, py = qx, qy
    return bits


@merged_kernel
def is_blocked(grid: Grid, pose: F8, bodies: Bodies, bins: Bins, row: int) -> bool:
    """Whether body `row` touches something solid where it is."""
    radius, x, y = bodies.radius[row], pose[row, 0], pose[row, 1]
    n_segments, _ = near_segments(
        grid.start, grid.seg, grid.mask, grid.x0, grid.y0, grid.h, grid.nx, grid.ny, x, y, radius, grid.near
    )
    n_bodies = near_bodies(
        bins.rows, bins.at, bins.classes, bins.start, bins.frame, bins.shape, bins.reach[0], bins.reach[1],
        row, x, y, radius, bodies.near,
    )  # fmt: skip
    gap = room(
        grid.seg, grid.x0, grid.y0, grid.h, grid.near, n_segments, pose, bodies.radius, bodies.part_start,
        bodies.vert_start, bodies.turn, bodies.edge, bodies.verts, bodies.world, bodies.near, n_bodies, row,
        math.cos(pose[row, 2]), math.sin(pose[row, 2]), 0.0, 0.0, 0.0, 0.0, False, bodies.scratch,
    )  # fmt: skip
    return gap <= 0.0


@entry_kernel
def find_blocked(world: World, pose: F8, rows: I8, found: I1) -> None:
    """`is_blocked` for each of the bodies `rows`, (n,), into `found`, (n,), as 0 or 1; for callers outside the step."""
    for i in range(rows.shape[0]):
        found[i] = 1 if is_blocked(world.grid, pose, world.bodies, world.bins, rows[i]) else 0


@merged_kernel
def move_all(grid: Grid, state: State, bodies: Bodies, bins: Bins, dt: float) -> None:
    """Move all bodies that can drive, in the order of `Bodies.order`, as far as they can.

    Writes pose, disp, spin, stall, contact and, where something blocks the way, vel. Where nothing solid is near, the way is free
    without further tests: that is most bodies in most steps.
    """
    pose, vel, disp, spin, stall, contact, mask = (
        state.pose, state.vel, state.disp, state.spin, state.stall, state.contact, state.mask,
    )  # fmt: skip
    order, radii, near, placed = bodies.order, bodies.radius, bodies.near, bodies.placed
    rows, at, kinds, start, frame, shape = bins.rows, bins.at, bins.classes, bins.start, bins.frame, bins.shape
    clear, gx0, gy0, nx, ny = grid.clear, grid.x0, grid.y0, grid.nx, grid.ny
    grid_start, seg, classes, near_seg = grid.start, grid.seg, grid.mask, grid.near
    part_start, vert_start, verts, world = bodies.part_start, bodies.vert_start, bodies.verts, bodies.world
    turn, edge, inner, feels, scratch = bodies.turn, bodies.edge, bodies.inner, bodies.feels, bodies.scratch
    h = grid.h
    widest, farthest, other_way = bins.reach[0], bins.reach[1], bins.reach[2]
    leeway, slot, control = bodies.leeway, bins.slot, state.control
    for n in range(order.shape[0]):
        i = order[n]
        disp[i, 0] = disp[i, 1] = disp[i, 2] = 0.0
        spin[i] = 0.0
        if control[i] != 0:  # it has mass: see engine/dynamics.py
            continue
        if vel[i, 0] == 0.0 and vel[i, 1] == 0.0 and vel[i, 2] == 0.0:
            stall[i] = 0
            leeway[i] -= other_way
            continue
        dx, dy, dth = vel[i, 0] * dt, vel[i, 1] * dt, vel[i, 2] * dt
        x, y, th = pose[i, 0], pose[i, 1], pose[i, 2]
        c, s = placed[i, 3], placed[i, 4]
        ax, ay = arc(dx, dy, dth)
        to_x, to_y, to_th = x + c * ax - s * ay, y + s * ax + c * ay, wrap(th + dth)
        to_c, to_s = cosine_sine(to_th)
        v0, v1 = vert_start[part_start[i]], vert_start[part_start[i + 1]]
        place_corners(verts, v0, v1, to_x, to_y, to_c, to_s, world, v0)
        fraction, free, way = 1.0, True, 0.0
        # turning is never stopped, else a robot at a wall could not turn away (COL-005); a blocked robot turns where it stands
        if (abs(vel[i, 0]) > TRANSLATING or abs(vel[i, 1]) > TRANSLATING) and int(mask[i]) & OBSTACLE:
            way = length(dx, dy)
        if way > 0.0 and leeway[i] > way + other_way:
            leeway[i] -= way + other_way
        elif way > 0.0:
            need = radii[i] + way + CONTACT
            to_wall = wall_distance(clear, gx0, gy0, h, nx, ny, x, y) - need
            n_segments = 0
            if to_wall <= 0.0:
                n_segments, nearest = near_segments(grid_start, seg, classes, gx0, gy0, h, nx, ny, x, y, need, near_seg)
                to_wall = nearest - need
            # where it will be is asked first, in ways that are quick and mostly say yes; unless it could jump over something
            around = -1.0
            if way <= inner[i] and clear_of_segments(seg, gx0, gy0, h, near_seg, n_segments, world, v0, v1):
                around = leeway_among(
                    part_start, vert_start, world, rows, at, kinds, start, frame, shape, widest, farthest,
                    i, to_x, to_y, radii[i],
                )  # fmt: skip
            free = around >= 0.0
            leeway[i] = min(around, to_wall)
            if not free:
                n_bodies = near_bodies(rows, at, kinds, start, frame, shape, widest, farthest, i, x, y, need, near)
                fraction = free_fraction(
                    seg, gx0, gy0, h, near_seg, n_segments, pose, radii, part_start, vert_start, turn, edge, verts, world, near, n_bodies,
                    i, c, s, dx, dy, dth, inner[i], scratch,
                )  # fmt: skip
                # one that stands where it stood touches what it touched
                if fraction > 0.0 or dth != 0.0 or contact[i] == np.uint64(0):
                    contact[i] = np.uint64(0)
                    if fraction < 1.0 and feels[i] == 1:
                        g = min(1.0, fraction + 1.5 * CONTACT / way)
                        contact[i] = contact_sectors(
                            seg, gx0, gy0, h, near_seg, n_segments, pose, radii, part_start, vert_start, verts, world, near,
                            n_bodies, i, dx * g, dy * g, dth * g, scratch,
                        )  # fmt: skip
        if free:
            contact[i] = np.uint64(0)
        stall[i] = 0
        disp[i, 0], disp[i, 1], disp[i, 2] = dx * fraction, dy * fraction, dth * fraction
        if fraction < 1.0:
            stall[i] = 1
            vel[i, 0] = vel[i, 1] = 0.0
            spin[i] = dth - disp[i, 2]  # what it turns where it stands
            ax, ay = arc(disp[i, 0], disp[i, 1], disp[i, 2])
            to_x, to_y = x + c * ax - s * ay, y + s * ax + c * ay
            place_corners(verts, v0, v1, to_x, to_y, to_c, to_s, world, v0)
        pose[i, 0], pose[i, 1], pose[i, 2] = to_x, to_y, to_th
        at[slot[i], 0], at[slot[i], 1] = to_x, to_y
        placed[i, 0], placed[i, 1], placed[i, 2], placed[i, 3], placed[i, 4] = to_x, to_y, to_th, to_c, to_s
