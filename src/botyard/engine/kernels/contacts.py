"""Contacts of bodies with mass: which are near each other, where they touch, and the impulses that keep them apart.

Impulses are found one contact after the other, again and again (sequential impulses; Catto, "Iterative dynamics with temporal
coherence", 2005): along the normal they never pull, along the edge they are limited by Coulomb's law. They begin with those of the small
step before. What overlaps is taken apart by a velocity of its own that is forgotten afterwards, so that it brings no energy.
Allocates nothing; one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.elementary import exp, log
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.kernels.manifolds import KEEP, SKIP, at_joint, feature_key, manifold, touch_side
from botyard.engine.kernels.noise import mix
from botyard.engine.kernels.polygons import segment_distance
from botyard.engine.layout import F8, I4, I8, U1, U2, U8
from botyard.engine.masslayout import (
    ASLEEP,
    AWAKE,
    AX,
    AY,
    BOUNCE,
    CORNERS,
    CX,
    CY,
    DEEPNESS,
    FT,
    FX,
    FY,
    GRIP,
    GW,
    GX,
    GY,
    II,
    IM,
    JN,
    JP,
    JT,
    JW,
    JX,
    JY,
    KG,
    KGM2,
    KIND,
    LF,
    LIST_TH,
    LIST_X,
    LIST_Y,
    LT,
    MN,
    MOVER,
    MT,
    MU,
    NX,
    NY,
    OX,
    OY,
    PUSH,
    PW,
    PX,
    PY,
    ROW,
    SOFT,
    STIRS,
    TH,
    VX,
    VY,
    WALL_0,
    WALL_1,
    X_HI,
    X_LO,
    Y_HI,
    Y_LO,
    C,
    E,
    R,
    S,
    W,
    X,
    Y,
)  # fmt: skip

SLOP = 5e-4
"""Bodies may overlap so much where they rest against each other, m: it keeps contacts from coming and going."""
ITERATIONS = 20
"""So often, at most, impulses are gone through in a small step."""
SETTLED = 1e-10
"""They are found when none changes a velocity by more than this, m/s."""
PART_RATE = 60.0 * log(1.0 / 0.9)
"""An overlap is taken back at this rate, 1/s: a tenth of it in 1/60 s."""
BOUNCE_FROM = 0.01
"""Slower impacts give nothing back, m/s: what lies against something would never come to rest."""
SKIN = 0.1
"""Lists of what is near are made for bodies that are so much larger, m, and hold until one has moved by half of it."""
WALL_BIT = np.uint64(1 << 63)
"""In a contact's key: the second one is a wall."""
TWELVE = np.uint64(12)


# -- what is near


@kernel
def heap_sort(key: F8, item: I8, n: int) -> None:
    """Sort the first `n` by key, then by item, in place (Williams, 1964)."""
    for turn in range(n // 2 + n):
        if turn < n // 2:  # first make a heap of it, then take its top again and again
            root, end = n // 2 - 1 - turn, n
        else:
            root, end = 0, n - 1 - (turn - n // 2)
            key[0], key[end] = key[end], key[0]
            item[0], item[end] = item[end], item[0]
        k, i = key[root], item[root]
        while True:
            child = 2 * root + 1
            if child >= end:
                break
            right = child + 1
            if right < end and (key[right] > key[child] or (key[right] == key[child] and item[right] > item[child])):
                child = right
            if key[child] < k or (key[child] == k and item[child] <= i):
                break
            key[root], item[root] = key[child], item[child]
            root = child
        key[root], item[root] = k, i


@kernel
def find_pairs(slots: F8, flags: I8, count: int, rank: F8, item: I8, pair: F8, pair_item: I8) -> int:
    """List the pairs of slots whose bounds are less than `SKIN` apart, at least one of them with mass, in the order of slots.

    Sort and sweep (Baraff, 1992). Returns how many there are; −1 when there is no room for all.
    """
    for s in range(count):
        rank[s], item[s] = slots[s, X_LO], s
    heap_sort(rank, item, count)
    found = np.int64(0)  # no literal, which would have kernels compiled twice; so below
    for p in range(count):
        a = item[p]
        end = slots[a, X_HI] + SKIN
        for q in range(p + 1, count):
            b = item[q]
            if slots[b, X_LO] > end:
                break
            if slots[b, Y_LO] > slots[a, Y_HI] + SKIN or slots[a, Y_LO] > slots[b, Y_HI] + SKIN:
                continue
            if flags[a, KIND] == MOVER and flags[b, KIND] == MOVER:  # those are no business of ours
                continue
            if found == pair.shape[0]:
                return -1
            pair[found], pair_item[found] = float(min(a, b) * count + max(a, b)), 0
            found += 1
    heap_sort(pair, pair_item, found)
    return int(found)


@merged_kernel
def list_walls(start: I4, seg: F8, bits: U8, classes: U2, clear: U1, frame: tuple[float, float, float], shape: tuple[int, int],
               place: tuple[float, float, float], rank: F8, item: I8, room: int) -> int:  # fmt: skip
    """List the solid walls within the last number of `place` from its point: hash and entry, sorted, as often as cells have them.

    `frame`: x, y and edge of the grid's cells; `shape`: how many there are. Returns how many; −1 when there is no room for all.
    """
    x0, y0, h = frame
    nx, ny = shape
    x, y, reach = place
    if wall_distance(clear, x0, y0, h, nx, ny, x, y) > reach:
        return 0
    inv = 1.0 / h
    gx, gy, limit = (x - x0) * inv, (y - y0) * inv, reach * inv
    i0, i1 = bin_span(x - reach, x + reach, x0, inv, nx)
    j0, j1 = bin_span(y - reach, y + reach, y0, inv, ny)
    found = np.int64(0)
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            if not (int(classes[k]) & OBSTACLE):
                continue
            ax, ay = seg[k, 0], seg[k, 1]
            if segment_distance(gx, gy, ax, ay, ax + seg[k, 2], ay + seg[k, 3]) > limit:
                continue
            if found == room:
                return -1
            rank[found], item[found] = float(wall_hash(bits, k)), k
            found += 1
    heap_sort(rank, item, found)
    return int(found)


@merged_kernel
def wall_hash(bits: U8, k: int) -> np.uint64:
    """52 bits for a wall, the same in each cell that has an entry of it: so many fit into a float64."""
    z = mix(bits[k, 0])
    for n in range(1, 4):
        z = mix(z ^ bits[k, n])
    return z >> TWELVE


@kernel
def find_walls(start: I4, seg: F8, bits: U8, classes: U2, clear: U1, frame: tuple[float, float, float], shape: tuple[int, int],
               slots: F8, flags: I8, count: int, lists: tuple[F8, I8, F8, U8]) -> bool:  # fmt: skip
    """List the walls near each body with mass, each once, sorted by hash. False when there is no room for all.

    `lists`: `Workspace.rank`, `item`, `wall` and `wall_id`.
    """
    rank, item, wall, wall_id = lists
    total = 0
    for s in range(count):
        flags[s, WALL_0] = flags[s, WALL_1] = total
        if flags[s, KIND] == MOVER:
            continue
        x = slots[s, X] - (slots[s, C] * slots[s, OX] - slots[s, S] * slots[s, OY])
        y = slots[s, Y] - (slots[s, S] * slots[s, OX] + slots[s, C] * slots[s, OY])
        found = list_walls(
            start, seg, bits, classes, clear, frame, shape, (x, y, slots[s, R] + SKIN), rank, item, wall.shape[0]
        )
        if found < 0:
            return False
        for n in range(found):
            k = item[n]
            if n > 0 and rank[n] == rank[n - 1]:
                k_0 = item[n - 1]
                if (seg[k, 0] == seg[k_0, 0] and seg[k, 1] == seg[k_0, 1] and seg[k, 2] == seg[k_0, 2]
                        and seg[k, 3] == seg[k_0, 3]):  # fmt: skip
                    continue  # it has entries in several cells, but is one wall
            if total == wall.shape[0]:
                return False
            wall[total, 0], wall[total, 1] = frame[0] + seg[k, 0] * frame[2], frame[1] + seg[k, 1] * frame[2]
            wall[total, 2] = wall[total, 0] + seg[k, 2] * frame[2]
            wall[total, 3] = wall[total, 1] + seg[k, 3] * frame[2]
            wall_id[total] = np.uint64(rank[n])
            total += 1
        flags[s, WALL_1] = total
    return True


@merged_kernel
def lists_hold(slots: F8, flags: I8, count: int) -> bool:
    """Whether no body has moved so far that the lists of what is near may lack something."""
    for s in range(count):
        way = abs(slots[s, X] - slots[s, LIST_X]) + abs(slots[s, Y] - slots[s, LIST_Y])
        if way + abs(slots[s, TH] - slots[s, LIST_TH]) * slots[s, R] > 0.5 * SKIN:
            return False
    return True


@merged_kernel
def overlap(slots: F8, a: int, b: int) -> bool:
    """Whether the bounds of two slots overlap."""
    return (slots[a, X_LO] <= slots[b, X_HI] and slots[b, X_LO] <= slots[a, X_HI]
            and slots[a, Y_LO] <= slots[b, Y_HI] and slots[b, Y_LO] <= slots[a, Y_HI])  # fmt: skip


@merged_kernel
def wake(slots: F8, flags: I8, count: int, pair: F8, pairs: int) -> None:
    """Wake the bodies at rest that something touches which moves, and those that touch them, and so on."""
    again = True
    while again:
        again = False
        for p in range(pairs):
            a = int(pair[p]) // count
            b = int(pair[p]) - a * count
            for _ in range(2):
                if flags[a, KIND] == ASLEEP and (
                    flags[b, KIND] == AWAKE or (flags[b, KIND] == MOVER and flags[b, STIRS])
                ):
                    if overlap(slots, a, b):
                        flags[a, KIND] = AWAKE
                        again = True
                a, b = b, a


# -- where they touch


@merged_kernel
def is_before(old: U8, o: int, first: np.uint64, second: np.uint64, feature: np.uint64) -> bool:
    """Whether a contact of the last small step comes before this one: walls behind bodies, then by both and by feature."""
    old_wall, wall = old[o, 2] & WALL_BIT, feature & WALL_BIT
    if old_wall != wall:
        return old_wall < wall
    if old[o, 0] != first:
        return old[o, 0] < first
    if old[o, 1] != second:
        return old[o, 1] < second
    return old[o, 2] < feature


@kernel
def add_touches(slots: F8, a: int, b: int, ids: tuple[np.uint64, np.uint64, np.uint64], point: F8, n: int, touch: F8, ends: I8, key: U8,
                at: int, old_key: U8, old: F8, old_count: int, o: int, scale: float) -> int:  # fmt: skip
    """Write the `n` contacts of `point` between two slots from row `at` on; there is room for them.

    `ids`: uid of the first one, of the second one or hash of the wall, and feature. Impulses of the small step before are looked for from
    row `o` on, as both are sorted, and taken times `scale`. Returns the row from which to look for the next ones.
    """
    for k in range(n):
        t = at + k
        feature = ids[2] | np.uint64(point[k, 3])
        key[t, 0], key[t, 1], key[t, 2] = ids[0], ids[1], feature
        ends[t, 0], ends[t, 1] = a, b
        touch[t, NX], touch[t, NY] = point[2, 0], point[2, 1]
        touch[t, AX], touch[t, AY] = point[k, 0] - slots[a, X], point[k, 1] - slots[a, Y]
        touch[t, CX], touch[t, CY] = point[k, 0] - slots[b, X], point[k, 1] - slots[b, Y]
        touch[t, DEEPNESS] = point[k, 2]
        touch[t, GRIP], touch[t, SOFT] = slots[a, MU] * slots[b, MU], slots[a, E] * slots[b, E]
        touch[t, JN] = touch[t, JT] = touch[t, JP] = 0.0
        while o < old_count and is_before(old_key, o, ids[0], ids[1], feature):
            o += 1
        if o < old_count and old_key[o, 0] == ids[0] and old_key[o, 1] == ids[1] and old_key[o, 2] == feature:
            touch[t, JN], touch[t, JT] = old[o, 0] * scale, old[o, 1] * scale
    return o


@kernel
def touch_bodies(slots: F8, flags: I8, count: int, uid: U8, piece_start: I8, corner_start: I8, corners: F8, pair: F8, pairs: int,
                 point: F8, touch: F8, ends: I8, key: U8, old_key: U8, old: F8, old_count: int,
                 scale: float) -> tuple[int, int]:  # fmt: skip
    """Write the contacts of all pairs of bodies.

    Returns how many, −1 when there is no room for all, and where to look for older impulses.
    """
    at = o = np.int64(0)
    for p in range(pairs):
        a = int(pair[p]) // count
        b = int(pair[p]) - a * count
        # nothing happens between two that do not move by themselves
        if (flags[a, KIND] != AWAKE and flags[b, KIND] != AWAKE) or not overlap(slots, a, b):
            continue
        ra, rb = flags[a, ROW], flags[b, ROW]
        off_a = flags[a, CORNERS] - corner_start[piece_start[ra]]
        off_b = flags[b, CORNERS] - corner_start[piece_start[rb]]
        for pa in range(piece_start[ra], piece_start[ra + 1]):
            for pb in range(piece_start[rb], piece_start[rb + 1]):
                n, turned, edge, other = manifold(
                    corners, corner_start[pa] + off_a, corner_start[pa + 1] + off_a, corner_start[pb] + off_b,
                    corner_start[pb + 1] + off_b, point,
                )  # fmt: skip
                if n == 0:
                    continue
                if at + n > touch.shape[0]:
                    return -1, 0
                feature = feature_key(pa - piece_start[ra], pb - piece_start[rb], turned, edge, other, 0)
                o = add_touches(
                    slots,
                    a,
                    b,
                    (uid[ra], uid[rb], feature),
                    point,
                    n,
                    touch,
                    ends,
                    key,
                    at,
                    old_key,
                    old,
                    old_count,
                    o,
                    scale,
                )
                at += n
    return int(at), int(o)


@kernel
def touch_walls(slots: F8, flags: I8, count: int, uid: U8, piece_start: I8, corner_start: I8, corners: F8, wall: F8, wall_id: U8,
                point: F8, touch: F8, ends: I8, key: U8, old_key: U8, old: F8, old_count: int, scale: float, at: int,
                o: int) -> int:  # fmt: skip
    """Write the contacts with walls behind those of bodies. Returns how many there are in all; −1 when there is no room for them."""
    w0, w1 = np.int64(0), np.int64(2)  # the rows of a wall
    for s in range(count):
        if flags[s, KIND] != AWAKE:
            continue
        row = flags[s, ROW]
        off = flags[s, CORNERS] - corner_start[piece_start[row]]
        for w in range(flags[s, WALL_0], flags[s, WALL_1]):
            ax, ay, bx, by = wall[w, 0], wall[w, 1], wall[w, 2], wall[w, 3]
            ex, ey = bx - ax, by - ay
            size = math.sqrt(ex * ex + ey * ey)
            if (size == 0.0 or max(ax, bx) < slots[s, X_LO] or min(ax, bx) > slots[s, X_HI]
                    or max(ay, by) < slots[s, Y_LO] or min(ay, by) > slots[s, Y_HI]):  # fmt: skip
                continue
            corners[0, 0], corners[0, 1], corners[0, 2], corners[0, 3] = ax, ay, ey / size, -ex / size
            corners[1, 0], corners[1, 1], corners[1, 2], corners[1, 3] = bx, by, -ey / size, ex / size
            for p in range(piece_start[row], piece_start[row + 1]):
                n, turned, edge, other = manifold(
                    corners, corner_start[p] + off, corner_start[p + 1] + off, w0, w1, point
                )
                if n > 0 and turned == 0:
                    side = at_joint(
                        corners, corner_start[p] + off, corner_start[p + 1] + off, wall, flags[s, WALL_0], flags[s, WALL_1], w,
                        point[2, 0], point[2, 1],
                    )  # fmt: skip
                    if side == SKIP:
                        continue
                    if side != KEEP:
                        there, facing = touch_side(
                            corners, side, corner_start[p] + off, corner_start[p + 1] + off, point
                        )
                        if there >= 0:
                            n, turned, edge, other = there, 1, side, facing
                if n == 0:
                    continue
                if at + n > touch.shape[0]:
                    return -1
                feature = WALL_BIT | feature_key(p - piece_start[row], 0, turned, edge, other, 0)
                o = add_touches(
                    slots, s, count, (uid[row], wall_id[w], feature), point, n, touch, ends, key, at, old_key, old, old_count, o, scale
                )  # fmt: skip
                at += n
    return at


# -- the impulses


@merged_kernel
def push_pair(slots: F8, a: int, b: int, touch: F8, t: int, jx: float, jy: float) -> None:
    """Let an impulse act on the second body of a contact, and its opposite on the first."""
    slots[a, VX] -= jx * slots[a, IM]
    slots[a, VY] -= jy * slots[a, IM]
    slots[a, W] -= slots[a, II] * (touch[t, AX] * jy - touch[t, AY] * jx)
    slots[b, VX] += jx * slots[b, IM]
    slots[b, VY] += jy * slots[b, IM]
    slots[b, W] += slots[b, II] * (touch[t, CX] * jy - touch[t, CY] * jx)


@merged_kernel
def approach(slots: F8, a: int, b: int, touch: F8, t: int) -> tuple[float, float]:
    """Velocity of the second body against the first at a contact, in the world's axes, m/s."""
    vx = slots[b, VX] - slots[b, W] * touch[t, CY] - slots[a, VX] + slots[a, W] * touch[t, AY]
    vy = slots[b, VY] + slots[b, W] * touch[t, CX] - slots[a, VY] - slots[a, W] * touch[t, AX]
    return vx, vy


@kernel
def prepare(slots: F8, flags: I8, count: int, touch: F8, ends: I8, touches: int, h: float, scale: float) -> None:
    """Before the impulses of a small step: what bounces, by the velocities before; forces; then the impulses of the step before."""
    part = (1.0 - exp(-PART_RATE * h)) / h
    for t in range(touches):
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        im = slots[a, IM] + slots[b, IM]
        ra, rb = touch[t, AX] * ny - touch[t, AY] * nx, touch[t, CX] * ny - touch[t, CY] * nx
        touch[t, MN] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        ra, rb = touch[t, AX] * nx + touch[t, AY] * ny, touch[t, CX] * nx + touch[t, CY] * ny
        touch[t, MT] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        touch[t, PUSH] = part * max(0.0, touch[t, DEEPNESS] - SLOP)
        vx, vy = approach(slots, a, b, touch, t)
        speed = vx * nx + vy * ny
        touch[t, BOUNCE] = touch[t, SOFT] * speed if speed < -BOUNCE_FROM else 0.0
        if speed > BOUNCE_FROM:  # they part: what was between them before was an impact
            touch[t, JN] = touch[t, JT] = 0.0
    for s in range(count):
        if flags[s, KIND] == AWAKE:
            slots[s, VX] += slots[s, FX] * slots[s, IM] * h
            slots[s, VY] += slots[s, FY] * slots[s, IM] * h
            slots[s, W] += slots[s, FT] * slots[s, II] * h
            if slots[s, LF] > 0.0:
                slots[s, JX], slots[s, JY], slots[s, JW] = (
                    slots[s, JX] * scale,
                    slots[s, JY] * scale,
                    slots[s, JW] * scale,
                )
                slots[s, VX] += slots[s, JX] * slots[s, IM]
                slots[s, VY] += slots[s, JY] * slots[s, IM]
                slots[s, W] += slots[s, JW] * slots[s, II]
            else:
                slots[s, JX] = slots[s, JY] = slots[s, JW] = 0.0
    for t in range(touches):
        nx, ny, jn, jt = touch[t, NX], touch[t, NY], touch[t, JN], touch[t, JT]
        if jn != 0.0 or jt != 0.0:
            push_pair(slots, ends[t, 0], ends[t, 1], touch, t, jn * nx - jt * ny, jn * ny + jt * nx)


@merged_kernel
def order_touches(flags: I8, ends: I8, touches: int) -> None:
    """Say in what order contacts are gone through, in the last column of `ends`: movers first, then bodies with mass, walls at last.

    Between a mover and a wall there may be no way out. What is gone through last holds then: nothing is pressed through a wall, and all
    between comes a little nearer in each small step, the mover as well, until that is found to be jammed.
    """
    n = 0
    for turn in range(2):
        for t in range(touches):
            a, b = ends[t, 0], ends[t, 1]
            pushed = flags[a, KIND] == MOVER or flags[b, KIND] == MOVER
            if pushed == (turn == 0):
                ends[n, 2] = t
                n += 1


@kernel
def solve_touches(slots: F8, touch: F8, ends: I8, touches: int) -> bool:
    """Go through all contacts once. Returns whether an impulse has changed a velocity."""
    changed = False
    for n in range(touches):
        t = ends[n, 2]
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        if touch[t, PUSH] > 0.0:  # take the overlap back
            ra, rb = touch[t, AX] * ny - touch[t, AY] * nx, touch[t, CX] * ny - touch[t, CY] * nx
            speed = (
                (slots[b, PX] - slots[a, PX]) * nx
                + (slots[b, PY] - slots[a, PY]) * ny
                + slots[b, PW] * rb
                - slots[a, PW] * ra
            )
            was = touch[t, JP]
            touch[t, JP] = max(0.0, was + (touch[t, PUSH] - speed) * touch[t, MN])
            j = touch[t, JP] - was
            changed |= abs(j) > SETTLED * touch[t, MN]
            slots[a, PX] -= j * nx * slots[a, IM]
            slots[a, PY] -= j * ny * slots[a, IM]
            slots[a, PW] -= j * ra * slots[a, II]
            slots[b, PX] += j * nx * slots[b, IM]
            slots[b, PY] += j * ny * slots[b, IM]
            slots[b, PW] += j * rb * slots[b, II]
        vx, vy = approach(slots, a, b, touch, t)
        was, was_t = touch[t, JN], touch[t, JT]
        # they only push each other
        touch[t, JN] = max(0.0, was - (vx * nx + vy * ny + touch[t, BOUNCE]) * touch[t, MN])
        # and rub no more than friction allows
        most = touch[t, GRIP] * touch[t, JN]
        touch[t, JT] = min(most, max(-most, was_t - (vy * nx - vx * ny) * touch[t, MT]))
        jn, jt = touch[t, JN] - was, touch[t, JT] - was_t
        if jn != 0.0 or jt != 0.0:
            changed |= abs(jn) > SETTLED * touch[t, MN] or abs(jt) > SETTLED * touch[t, MT]
            push_pair(slots, a, b, touch, t, jn * nx - jt * ny, jn * ny + jt * nx)
    return changed


@kernel
def solve_floor(slots: F8, flags: I8, count: int, h: float) -> bool:
    """Go through the friction of all bodies on the floor, or of their wheels, once. Returns whether an impulse has changed a velocity."""
    changed = False
    for s in range(count):
        if flags[s, KIND] != AWAKE or slots[s, LF] == 0.0:
            continue
        most, most_w, m, inertia = slots[s, LF] * h, slots[s, LT] * h, slots[s, KG], slots[s, KGM2]
        jx, jy = slots[s, JX] + (slots[s, GX] - slots[s, VX]) * m, slots[s, JY] + (slots[s, GY] - slots[s, VY]) * m
        size = math.sqrt(jx * jx + jy * jy)
        if size > most:  # it slides
            jx, jy = jx * (most / size), jy * (most / size)
        jw = min(most_w, max(-most_w, slots[s, JW] + (slots[s, GW] - slots[s, W]) * inertia))
        dx, dy, dw = jx - slots[s, JX], jy - slots[s, JY], jw - slots[s, JW]
        changed |= abs(dx) + abs(dy) > SETTLED * m or abs(dw) > SETTLED * inertia
        slots[s, JX], slots[s, JY], slots[s, JW] = jx, jy, jw
        slots[s, VX] += dx * slots[s, IM]
        slots[s, VY] += dy * slots[s, IM]
        slots[s, W] += dw * slots[s, II]
    return changed


@kernel
def solve(slots: F8, flags: I8, count: int, touch: F8, ends: I8, touches: int, h: float) -> None:
    """Find the impulses of a small step, as well as `ITERATIONS` rounds can; then take overlaps back."""
    order_touches(flags, ends, touches)
    for _ in range(ITERATIONS):
        changed = solve_touches(slots, touch, ends, touches)
        if not (solve_floor(slots, flags, count, h) or changed):
            break
    for s in range(count):
        if slots[s, PX] != 0.0 or slots[s, PY] != 0.0 or slots[s, PW] != 0.0:
            slots[s, X] += slots[s, PX] * h
            slots[s, Y] += slots[s, PY] * h
            slots[s, TH] += slots[s, PW] * h
            slots[s, PX] = slots[s, PY] = slots[s, PW] = 0.0
