"""Contacts of bodies with mass: near pairs, contact points, and impulses.

Impulses are found one contact after the other, in repeated rounds (sequential impulses;
Catto, "Iterative dynamics with temporal coherence", 2005). Along the normal they never
pull; along the edge they are limited by Coulomb's law. They start with the impulses of
the previous substep. A separate velocity removes overlaps. It is dropped afterwards, so
that it adds no energy.

A mover cannot yield. Between two movers, or between a mover and a wall, no impulses
fulfil all conditions: they would grow with each round. Three rules keep them finite.
The impulse of a moving mover is bounded by the needs of the bodies before it
(`bound_islands`). A mover makes no body faster than an elastic impact does
(`limit_speeds`). A mover that presses into something that does not yield is stopped
(`botyard.engine.kernels.masses.jam_movers`). Allocates nothing; one thread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.manifolds import (
    KEEP,
    SKIP,
    feature_key,
    manifold,
    manifold_with_side,
    side_at_joint,
)
from botyard.engine.kernels.neighbours import overlap
from botyard.engine.layout import F8, I8, U8
from botyard.engine.masslayout import (
    ANCHOR,
    AWAKE,
    AX,
    AY,
    BOUNCE,
    CONTROL,
    CORNERS,
    COUNTED,
    CX,
    CY,
    DEEP,
    DEEPNESS,
    DRIVEN,
    FT,
    FX,
    FY,
    GRIP,
    GW,
    GX,
    GY,
    HEFT,
    II,
    IM,
    ISLAND,
    JAMMED,
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
    LT,
    MN,
    MOST,
    MOTORS,
    MOVER,
    MT,
    MU,
    NX,
    NY,
    PUSH,
    PW,
    PX,
    PY,
    ROW,
    SHOVE,
    SOFT,
    SPEED,
    TH,
    TOP,
    VX,
    VY,
    WALL_0,
    WALL_1,
    X_HI,
    X_LO,
    Y_HI,
    Y_LO,
    E,
    MassShapes,
    R,
    W,
    Workspace,
    X,
    Y,
)
from botyard.numerics.elementary import exp, log

SLOP = 5e-4
"""Allowed overlap of resting bodies, m, which keeps contacts from flickering."""
ITERATIONS = 20
"""Highest number of rounds over the impulses of a substep."""
CONVERGED = 1e-10
"""Change of velocity, m/s, below which impulses have converged."""
CORRECTION_RATE = 60.0 * log(1.0 / 0.9)
"""Rate at which overlaps are removed, 1/s: a tenth in 1/60 s."""
IMPACT_RATIO = 2.0
"""Highest ratio of the speeds of a pushed body at rest and its mover.

It is the ratio of an elastic impact with an infinite mass.
"""
MAX_LEVERAGE = 4.0
"""Highest impulse of a mover, relative to the necessary one.

The necessary impulse brings all pushed bodies to their highest speed against forces.
Levers and wedges need more than one.
"""
RESTITUTION_THRESHOLD = 0.01
"""Impact speed below which there is no restitution, m/s.

Otherwise a body that lies against something would never come to rest.
"""
WALL_BIT = np.uint64(1 << 63)
"""Bit of a contact's key: the second partner is a wall."""


# -- Contact points


class Before(NamedTuple):
    """Contacts of the previous substep, for warm starting.

    Attributes
    ----------
    size : int
        Number of contacts in `Workspace.old` and `old_key`.
    scale : float
        Factor of their impulses: ratio of the lengths of both substeps.
    """

    size: int
    scale: float


@merged_kernel
def is_before(
    old: U8, o: int, first: np.uint64, second: np.uint64, feature: np.uint64
) -> bool:
    """Return whether a contact of the last substep sorts before this one.

    Walls follow bodies; then both partners and the feature count.
    """
    old_wall, wall = old[o, 2] & WALL_BIT, feature & WALL_BIT
    if old_wall != wall:
        return old_wall < wall
    if old[o, 0] != first:
        return old[o, 0] < first
    if old[o, 1] != second:
        return old[o, 1] < second
    return old[o, 2] < feature


@inline_kernel
def add_contacts(
    work: Workspace,
    a: int,
    b: int,
    ids: tuple[np.uint64, np.uint64, np.uint64],
    n: int,
    at: int,
    before: Before,
    o: int,
) -> int:
    """Write the `n` contacts of `Workspace.point` between two slots from row `at` on.

    The caller must have checked the room. `ids`: uid of the first one, of the second
    one or hash of the wall, and feature. Impulses of the previous substep are searched
    from row `o` on, because both are sorted, and scaled (warm starting). Returns the
    row from which to search the next ones.
    """
    slots, point, touch, ends, key, old_key = (
        work.slots,
        work.point,
        work.touch,
        work.ends,
        work.key,
        work.old_key,
    )
    for k in range(n):
        t = at + k
        feature = ids[2] | np.uint64(point[k, 3])
        key[t, 0], key[t, 1], key[t, 2] = ids[0], ids[1], feature
        ends[t, 0], ends[t, 1] = a, b
        touch[t, NX], touch[t, NY] = point[2, 0], point[2, 1]
        touch[t, AX], touch[t, AY] = (
            point[k, 0] - slots[a, X],
            point[k, 1] - slots[a, Y],
        )
        touch[t, CX], touch[t, CY] = (
            point[k, 0] - slots[b, X],
            point[k, 1] - slots[b, Y],
        )
        touch[t, DEEPNESS] = point[k, 2]
        touch[t, GRIP], touch[t, SOFT] = (
            slots[a, MU] * slots[b, MU],
            slots[a, E] * slots[b, E],
        )
        touch[t, JN] = touch[t, JT] = touch[t, JP] = 0.0
        touch[t, MOST] = math.inf
        while o < before.size and is_before(old_key, o, ids[0], ids[1], feature):
            o += 1
        if (
            o < before.size
            and old_key[o, 0] == ids[0]
            and old_key[o, 1] == ids[1]
            and old_key[o, 2] == feature
        ):
            touch[t, JN], touch[t, JT] = (
                work.old[o, 0] * before.scale,
                work.old[o, 1] * before.scale,
            )

    return o


@merged_kernel
def find_body_contacts(
    work: Workspace, shapes: MassShapes, uid: U8, count: int, pairs: int, before: Before
) -> tuple[int, int]:
    """Write the contacts of all pairs of bodies.

    Returns their count, −1 without room for all, and the row from which to search older
    impulses.
    """
    slots, flags, pair, corners = work.slots, work.flags, work.pair, work.corners
    piece_start, corner_start = shapes.piece_start, shapes.corner_start
    at = o = np.int64(0)
    for p in range(pairs):
        a = int(pair[p]) // count
        b = int(pair[p]) - a * count
        # Nothing happens between two bodies that do not move by themselves.
        if (flags[a, KIND] != AWAKE and flags[b, KIND] != AWAKE) or not overlap(
            slots, a, b
        ):
            continue

        ra, rb = flags[a, ROW], flags[b, ROW]
        off_a = flags[a, CORNERS] - corner_start[piece_start[ra]]
        off_b = flags[b, CORNERS] - corner_start[piece_start[rb]]
        for pa in range(piece_start[ra], piece_start[ra + 1]):
            for pb in range(piece_start[rb], piece_start[rb + 1]):
                n, turned, edge, other = manifold(
                    corners,
                    corner_start[pa] + off_a,
                    corner_start[pa + 1] + off_a,
                    corner_start[pb] + off_b,
                    corner_start[pb + 1] + off_b,
                    work.point,
                )
                # Only their bounds overlap.
                if n == 0:
                    continue
                if at + n > work.touch.shape[0]:
                    return -1, 0
                feature = feature_key(
                    pa - piece_start[ra], pb - piece_start[rb], turned, edge, other, 0
                )
                o = add_contacts(
                    work, a, b, (uid[ra], uid[rb], feature), n, at, before, o
                )
                at += n

    return int(at), int(o)


@merged_kernel
def find_wall_contacts(
    work: Workspace,
    shapes: MassShapes,
    uid: U8,
    count: int,
    at: int,
    before: Before,
    o: int,
) -> int:
    """Write the contacts with walls after the contacts of bodies.

    Returns the total count, or −1 without room for all.
    """
    slots, flags, wall, corners, point = (
        work.slots,
        work.flags,
        work.wall,
        work.corners,
        work.point,
    )
    piece_start, corner_start = shapes.piece_start, shapes.corner_start
    # The rows of a wall
    w0, w1 = np.int64(0), np.int64(2)
    for s in range(count):
        # Walls push only bodies that can move.
        if flags[s, KIND] != AWAKE:
            continue
        row = flags[s, ROW]
        off = flags[s, CORNERS] - corner_start[piece_start[row]]
        for w in range(flags[s, WALL_0], flags[s, WALL_1]):
            ax, ay, bx, by = wall[w, 0], wall[w, 1], wall[w, 2], wall[w, 3]
            ex, ey = bx - ax, by - ay
            size = math.sqrt(ex * ex + ey * ey)
            # A wall without length has no normal. Most others are beyond the bounds.
            if (
                size == 0.0
                or max(ax, bx) < slots[s, X_LO]
                or min(ax, bx) > slots[s, X_HI]
                or max(ay, by) < slots[s, Y_LO]
                or min(ay, by) > slots[s, Y_HI]
            ):
                continue

            corners[0, 0], corners[0, 1], corners[0, 2], corners[0, 3] = (
                ax,
                ay,
                ey / size,
                -ex / size,
            )
            corners[1, 0], corners[1, 1], corners[1, 2], corners[1, 3] = (
                bx,
                by,
                -ey / size,
                ex / size,
            )
            for p in range(piece_start[row], piece_start[row + 1]):
                v0, v1 = corner_start[p] + off, corner_start[p + 1] + off
                n, turned, edge, other = manifold(corners, v0, v1, w0, w1, point)
                # The normal belongs to the body: it touches an end of the wall, at
                # which others may continue.
                if n > 0 and turned == 0:
                    side = side_at_joint(
                        corners,
                        v0,
                        v1,
                        wall,
                        flags[s, WALL_0],
                        flags[s, WALL_1],
                        w,
                        point[2, 0],
                        point[2, 1],
                    )
                    if side == SKIP:
                        continue
                    if side != KEEP:
                        there, facing = manifold_with_side(corners, side, v0, v1, point)
                        # Otherwise it lies too deep to slide along that side, and the
                        # contact stays.
                        if there >= 0:
                            n, turned, edge, other = there, 1, side, facing

                if n == 0:
                    continue
                if at + n > work.touch.shape[0]:
                    return -1
                feature = WALL_BIT | feature_key(
                    p - piece_start[row], 0, turned, edge, other, 0
                )
                o = add_contacts(
                    work,
                    s,
                    count,
                    (uid[row], work.wall_id[w], feature),
                    n,
                    at,
                    before,
                    o,
                )
                at += n

    return at


# -- Impulses


@merged_kernel
def apply_impulse(
    slots: F8, a: int, b: int, touch: F8, t: int, jx: float, jy: float
) -> None:
    """Apply an impulse to the second body of a contact, and its opposite to the first."""
    slots[a, VX] -= jx * slots[a, IM]
    slots[a, VY] -= jy * slots[a, IM]
    slots[a, W] -= slots[a, II] * (touch[t, AX] * jy - touch[t, AY] * jx)
    slots[b, VX] += jx * slots[b, IM]
    slots[b, VY] += jy * slots[b, IM]
    slots[b, W] += slots[b, II] * (touch[t, CX] * jy - touch[t, CY] * jx)


@merged_kernel
def relative_velocity(
    slots: F8, a: int, b: int, touch: F8, t: int
) -> tuple[float, float]:
    """Return the velocity of the second body relative to the first at a contact, m/s.

    It is in world axes.
    """
    vx = (
        slots[b, VX]
        - slots[b, W] * touch[t, CY]
        - slots[a, VX]
        + slots[a, W] * touch[t, AY]
    )
    vy = (
        slots[b, VY]
        + slots[b, W] * touch[t, CX]
        - slots[a, VY]
        - slots[a, W] * touch[t, AX]
    )
    return vx, vy


@merged_kernel
def is_pusher(slots: F8, flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that moves now."""
    return flags[s, KIND] == MOVER and slots[s, SPEED] > 0.0 and flags[s, JAMMED] < 0


@merged_kernel
def is_stopped(flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that was jammed in this step."""
    return flags[s, KIND] == MOVER and flags[s, JAMMED] >= 0


@merged_kernel
def contact_velocity(
    slots: F8, s: int, touch: F8, t: int, side: int
) -> tuple[float, float]:
    """Return the velocity of the first (`side` 0) or second slot at a contact, m/s.

    It is in world axes.
    """
    ax, ay = touch[t, AX + 2 * side], touch[t, AY + 2 * side]
    return slots[s, VX] - slots[s, W] * ay, slots[s, VY] + slots[s, W] * ax


@merged_kernel
def island_of(flags: I8, s: int) -> int:
    """Return the slot that represents the island of a slot."""
    while flags[s, ISLAND] != s:
        s = flags[s, ISLAND]
    return s


@merged_kernel
def energy_speed(slots: F8, s: int) -> float:
    """Return the speed at which a body has its kinetic energy without rotation, m/s."""
    w2 = slots[s, W] * slots[s, W] * slots[s, KGM2] * slots[s, IM]
    return math.sqrt(slots[s, VX] * slots[s, VX] + slots[s, VY] * slots[s, VY] + w2)


@kernel
def find_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int
) -> tuple[bool, bool]:
    """Find the islands: groups of bodies with mass that touch each other.

    Writes the deepest overlap at all contacts of an island, also with walls and movers,
    to the slot that represents it. The first result states whether a moving mover
    touches a body; otherwise nothing is written. The second one states whether an
    island is pinched: it touches two things that cannot yield, movers or walls. The
    search runs over contacts only, because few bodies touch anything.
    """
    pushed = False
    for t in range(touches):
        if is_pusher(slots, flags, ends[t, 0]) or is_pusher(slots, flags, ends[t, 1]):
            pushed = True
            break

    if not pushed:
        return False, False
    pinched = False
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            flags[s, ISLAND], flags[s, ANCHOR], slots[s, DEEP] = s, -1, 0.0

    for t in range(touches):
        if flags[ends[t, 0], KIND] == AWAKE and flags[ends[t, 1], KIND] == AWAKE:
            a, b = island_of(flags, ends[t, 0]), island_of(flags, ends[t, 1])
            # Union of two islands; the lower slot represents both.
            flags[max(a, b), ISLAND] = min(a, b)

    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] == AWAKE:
                i = flags[s, ISLAND] = island_of(flags, s)
                slots[i, DEEP] = max(slots[i, DEEP], touch[t, DEEPNESS])
                # A mover or a wall; all walls count as one.
                if flags[other, KIND] != AWAKE:
                    pinched |= flags[i, ANCHOR] >= 0 and flags[i, ANCHOR] != other
                    flags[i, ANCHOR] = other

    return True, pinched


@kernel
def bound_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int, h: float
) -> None:
    """Bound the impulses of moving movers at pinched islands.

    Call it after forces were applied, and before impulses are found.

    Writes for each island: its mass; the impulse of all forces in this substep; the
    speed of the fastest mover at a contact with the island; the highest speed of its
    bodies afterwards. The latter is `IMPACT_RATIO` times the speed of that mover, or
    the highest speed of its bodies before the contacts.
    """
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            slots[s, HEFT] = slots[s, SHOVE] = slots[s, TOP] = slots[s, DRIVEN] = 0.0
            flags[s, COUNTED] = 0

    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] == AWAKE and flags[s, COUNTED] == 0:
                i, flags[s, COUNTED] = flags[s, ISLAND], 1
                force = math.sqrt(
                    slots[s, FX] * slots[s, FX] + slots[s, FY] * slots[s, FY]
                )
                slots[i, HEFT] += slots[s, KG]
                slots[i, SHOVE] += (
                    slots[s, LF] + force + abs(slots[s, FT]) / slots[s, R]
                ) * h
                slots[i, TOP] = max(slots[i, TOP], energy_speed(slots, s))

            if flags[other, KIND] == AWAKE and is_pusher(slots, flags, s):
                i = flags[other, ISLAND]
                vx, vy = contact_velocity(slots, s, touch, t, side)
                speed = math.sqrt(vx * vx + vy * vy)
                slots[i, DRIVEN] = max(slots[i, DRIVEN], speed)
                slots[i, TOP] = max(slots[i, TOP], IMPACT_RATIO * speed)

    for t in range(touches):
        for side in range(2):
            s, i = ends[t, side], flags[ends[t, 1 - side], ISLAND]
            if flags[i, KIND] == AWAKE and is_pusher(slots, flags, s):
                touch[t, MOST] = MAX_LEVERAGE * (
                    slots[i, HEFT] * slots[i, TOP] + slots[i, SHOVE]
                )


@kernel
def limit_speeds(slots: F8, flags: I8, ends: I8, touches: int, h: float) -> None:
    """Remove energy of pushed bodies that movers cannot have provided.

    Rounds of impulses leave such energy in a jam.
    """
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            if flags[s, KIND] == AWAKE and slots[flags[s, ISLAND], DRIVEN] > 0.0:
                most, speed = slots[flags[s, ISLAND], TOP], energy_speed(slots, s)
                if speed <= most:
                    continue
                # The wheels also accelerate it.
                if flags[s, CONTROL] == MOTORS:
                    reach = slots[s, LT] / math.sqrt(slots[s, KGM2] * slots[s, IM])
                    most += (slots[s, LF] + reach) * slots[s, IM] * h

                part = min(1.0, most / speed)
                slots[s, VX], slots[s, VY], slots[s, W] = (
                    slots[s, VX] * part,
                    slots[s, VY] * part,
                    slots[s, W] * part,
                )


@kernel
def prepare_impulses(
    slots: F8,
    flags: I8,
    count: int,
    touch: F8,
    ends: I8,
    touches: int,
    h: float,
    scale: float,
    pinched: bool,
) -> None:
    """Prepare the impulses of a substep.

    In order: bounces by the velocities before; forces; bounds; previous impulses.
    """
    # Independent of the length of a substep: overlaps decay exponentially.
    part = (1.0 - exp(-CORRECTION_RATE * h)) / h
    for t in range(touches):
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        im = slots[a, IM] + slots[b, IM]
        ra, rb = (
            touch[t, AX] * ny - touch[t, AY] * nx,
            touch[t, CX] * ny - touch[t, CY] * nx,
        )
        touch[t, MN] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        ra, rb = (
            touch[t, AX] * nx + touch[t, AY] * ny,
            touch[t, CX] * nx + touch[t, CY] * ny,
        )
        touch[t, MT] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        touch[t, PUSH] = part * max(0.0, touch[t, DEEPNESS] - SLOP)
        vx, vy = relative_velocity(slots, a, b, touch, t)
        speed = vx * nx + vy * ny
        touch[t, BOUNCE] = (
            touch[t, SOFT] * speed if speed < -RESTITUTION_THRESHOLD else 0.0
        )
        ends[t, 3] = 1 if flags[a, KIND] == AWAKE and flags[b, KIND] == AWAKE else 2
        if is_pusher(slots, flags, a) or is_pusher(slots, flags, b):
            ends[t, 3] = 0
        # They separate: the previous impulse was an impact. Or the mover has been
        # stopped.
        if (
            speed > RESTITUTION_THRESHOLD
            or is_stopped(flags, a)
            or is_stopped(flags, b)
        ):
            touch[t, JN] = touch[t, JT] = 0.0

    for s in range(count):
        if flags[s, KIND] == AWAKE:
            slots[s, VX] += slots[s, FX] * slots[s, IM] * h
            slots[s, VY] += slots[s, FY] * slots[s, IM] * h
            slots[s, W] += slots[s, FT] * slots[s, II] * h

    if pinched:
        bound_islands(slots, flags, touch, ends, touches, h)
    for s in range(count):
        if flags[s, KIND] == AWAKE:
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
        if jn > touch[t, MOST]:
            jn = touch[t, JN] = touch[t, MOST]
            jt = touch[t, JT] = min(touch[t, GRIP] * jn, max(-touch[t, GRIP] * jn, jt))

        if jn != 0.0 or jt != 0.0:
            apply_impulse(
                slots,
                ends[t, 0],
                ends[t, 1],
                touch,
                t,
                jn * nx - jt * ny,
                jn * ny + jt * nx,
            )


@merged_kernel
def order_contacts(ends: I8, touches: int) -> None:
    """Write the order of contacts to the last column of `ends`.

    Contacts of moving movers come first, then of bodies with mass, then of standing
    things. Between a mover and a wall, or a standing mover, there may be no solution.
    The last contact holds then: nothing is pressed through standing things. The bodies
    in between get closer in each substep until the mover counts as jammed.
    """
    n = 0
    for turn in range(3):
        for t in range(touches):
            if ends[t, 3] == turn:
                ends[n, 2] = t
                n += 1


@kernel
def solve_contacts(slots: F8, touch: F8, ends: I8, touches: int) -> bool:
    """Process all contacts once; return whether an impulse has changed a velocity."""
    changed = False
    for n in range(touches):
        t = ends[n, 2]
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        # Remove the overlap.
        if touch[t, PUSH] > 0.0:
            ra, rb = (
                touch[t, AX] * ny - touch[t, AY] * nx,
                touch[t, CX] * ny - touch[t, CY] * nx,
            )
            speed = (
                (slots[b, PX] - slots[a, PX]) * nx
                + (slots[b, PY] - slots[a, PY]) * ny
                + slots[b, PW] * rb
                - slots[a, PW] * ra
            )
            was = touch[t, JP]
            touch[t, JP] = max(0.0, was + (touch[t, PUSH] - speed) * touch[t, MN])
            j = touch[t, JP] - was
            changed |= abs(j) > CONVERGED * touch[t, MN]
            slots[a, PX] -= j * nx * slots[a, IM]
            slots[a, PY] -= j * ny * slots[a, IM]
            slots[a, PW] -= j * ra * slots[a, II]
            slots[b, PX] += j * nx * slots[b, IM]
            slots[b, PY] += j * ny * slots[b, IM]
            slots[b, PW] += j * rb * slots[b, II]

        vx, vy = relative_velocity(slots, a, b, touch, t)
        was, was_t = touch[t, JN], touch[t, JT]
        # Along the normal they only push each other.
        touch[t, JN] = min(
            touch[t, MOST],
            max(0.0, was - (vx * nx + vy * ny + touch[t, BOUNCE]) * touch[t, MN]),
        )
        # Along the edge, Coulomb's law limits friction.
        most = touch[t, GRIP] * touch[t, JN]
        touch[t, JT] = min(most, max(-most, was_t - (vy * nx - vx * ny) * touch[t, MT]))
        jn, jt = touch[t, JN] - was, touch[t, JT] - was_t
        if jn != 0.0 or jt != 0.0:
            changed |= (
                abs(jn) > CONVERGED * touch[t, MN] or abs(jt) > CONVERGED * touch[t, MT]
            )
            apply_impulse(slots, a, b, touch, t, jn * nx - jt * ny, jn * ny + jt * nx)

    return changed


@kernel
def solve_floor_friction(slots: F8, flags: I8, count: int, h: float) -> bool:
    """Process the friction of all bodies on the floor, or of their wheels, once.

    Returns whether an impulse has changed a velocity.
    """
    changed = False
    for s in range(count):
        if flags[s, KIND] != AWAKE or slots[s, LF] == 0.0:
            continue
        most, most_w, m, inertia = (
            slots[s, LF] * h,
            slots[s, LT] * h,
            slots[s, KG],
            slots[s, KGM2],
        )
        jx, jy = (
            slots[s, JX] + (slots[s, GX] - slots[s, VX]) * m,
            slots[s, JY] + (slots[s, GY] - slots[s, VY]) * m,
        )
        size = math.sqrt(jx * jx + jy * jy)
        # It slides.
        if size > most:
            jx, jy = jx * (most / size), jy * (most / size)
        jw = min(
            most_w, max(-most_w, slots[s, JW] + (slots[s, GW] - slots[s, W]) * inertia)
        )
        dx, dy, dw = jx - slots[s, JX], jy - slots[s, JY], jw - slots[s, JW]
        changed |= abs(dx) + abs(dy) > CONVERGED * m or abs(dw) > CONVERGED * inertia
        slots[s, JX], slots[s, JY], slots[s, JW] = jx, jy, jw
        slots[s, VX] += dx * slots[s, IM]
        slots[s, VY] += dy * slots[s, IM]
        slots[s, W] += dw * slots[s, II]

    return changed


@kernel
def solve_impulses(
    slots: F8,
    flags: I8,
    count: int,
    touch: F8,
    ends: I8,
    touches: int,
    h: float,
    pinched: bool,
) -> None:
    """Find the impulses of a substep, then remove overlaps.

    At most `ITERATIONS` rounds are made.

    `pinched`: see `find_islands`.
    """
    order_contacts(ends, touches)
    for _ in range(ITERATIONS):
        changed = solve_contacts(slots, touch, ends, touches)
        if not (solve_floor_friction(slots, flags, count, h) or changed):
            break

    if pinched:
        limit_speeds(slots, flags, ends, touches, h)
    for s in range(count):
        if slots[s, PX] != 0.0 or slots[s, PY] != 0.0 or slots[s, PW] != 0.0:
            slots[s, X] += slots[s, PX] * h
            slots[s, Y] += slots[s, PY] * h
            slots[s, TH] += slots[s, PW] * h
            slots[s, PX] = slots[s, PY] = slots[s, PW] = 0.0
