"""Contacts of bodies with mass: contact points of near pairs and of near walls.

Contacts are sorted, and start with the impulses of the previous substep (warm
starting). Allocates nothing; one thread.
"""

from __future__ import annotations

import math
from typing import (
    NamedTuple,
)

import numpy as np

from botyard.engine.kernels.jit import (
    inline_kernel,
    merged_kernel,
)
from botyard.engine.kernels.manifolds import (
    KEEP,
    SKIP,
    feature_key,
    manifold,
    manifold_with_side,
    side_at_joint,
)
from botyard.engine.kernels.neighbours import (
    overlap,
)
from botyard.engine.layout import (
    U8,
)
from botyard.engine.masslayout import (
    AWAKE,
    AX,
    AY,
    CORNERS,
    CX,
    CY,
    DEEPNESS,
    GRIP,
    JN,
    JP,
    JT,
    KIND,
    MOST,
    MU,
    NX,
    NY,
    ROW,
    SOFT,
    WALL_0,
    WALL_1,
    X_HI,
    X_LO,
    Y_HI,
    Y_LO,
    E,
    MassShapes,
    Workspace,
    X,
    Y,
)

WALL_BIT = np.uint64(1 << 63)
"""Bit of a contact's key: the second partner is a wall."""


class Before(NamedTuple):
    """Contacts of the previous substep, for warm starting.

    Attributes
    ----------
    size : int
        Number of contacts in `Workspace.old` and `old_key`.
    scale : float
        Factor of the previous impulses: length of this substep divided by the length of
        the previous one.
    """

    size: int
    scale: float


@merged_kernel
def is_before(
    old: U8, o: int, first: np.uint64, second: np.uint64, feature: np.uint64
) -> bool:
    """Return whether a contact of the last substep sorts before this one.

    Contacts with bodies come before contacts with walls. Within each group they are
    sorted by both partners, then by feature.

    Parameters
    ----------
    old : (k, 3) uint64
        `Workspace.old_key`.
    o : int
        Row of the contact of the last substep.
    first, second, feature : uint64
        Key of this contact: uid of the first body, uid of the second one or hash of the
        wall, and feature with `WALL_BIT` for a wall.
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
    """Write contacts between two slots, with their impulses of the previous substep.

    Parameters
    ----------
    work : Workspace
        Workspace of the step. `point` has the contacts and their normal. In-place:
        `touch`, `ends` and `key`; the caller must have checked the room.
    a, b : int
        Rows of `Workspace.slots`: the two bodies in contact. The normal points from a to
        b.
    ids : tuple of uint64
        Uid of the first body, uid of the second one or hash of the wall, and feature.
    n : int
        Number of contacts, 1 or 2.
    at : int
        First row of `touch` to write.
    before : Before
        Contacts of the previous substep, whose impulses are scaled (warm starting).
    o : int
        Row from which to search in the previous contacts: both are sorted.

    Returns
    -------
    int
        Row of the previous contacts from which to search for the next contact.
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

    Parameters
    ----------
    work : Workspace
        Workspace of the step, with corners at the present poses. In-place: `touch`,
        `ends`, `key`.
    shapes : MassShapes
        Convex pieces of all bodies.
    uid : (n,) uint64
        `State.uid`.
    count : int
        Number of slots in use.
    pairs : int
        Number of pairs in `Workspace.pair`.
    before : Before
        Contacts of the previous substep.

    Returns
    -------
    tuple of int
        Number of contacts, −1 if the array is too small, and the row from which to
        search older impulses.
    """
    slots, flags, pair, corners = work.slots, work.flags, work.pair, work.corners
    piece_start, corner_start = shapes.piece_start, shapes.corner_start
    at = o = np.int64(0)
    for p in range(pairs):
        a = int(pair[p]) // count
        b = int(pair[p]) - a * count
        # Two bodies that do not move by themselves need no contact.
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

                # Only the bounding boxes overlap, not the polygons.
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

    Parameters
    ----------
    work : Workspace
        Workspace of the step. In-place: `touch`, `ends`, `key`; rows 0 and 1 of
        `corners` hold one wall at a time.
    shapes, uid, count, before
        See `find_body_contacts`.
    at : int
        Number of contacts of bodies.
    o : int
        Row from which to search older impulses.

    Returns
    -------
    int
        Number of all contacts; −1 if the array is too small.
    """
    slots, flags, wall, corners, point = (
        work.slots,
        work.flags,
        work.wall,
        work.corners,
        work.point,
    )
    piece_start, corner_start = shapes.piece_start, shapes.corner_start

    # Rows 0 and 1 hold the ends of a wall.
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
            # A wall without length has no normal. Most other walls are outside of the
            # bounds.
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
                # The normal belongs to the body, so the body touches an end of the
                # wall, where other walls may continue.
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
                        # Without a contact on that side, the body is too deep in the
                        # wall to slide along it: the first contact stays.
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
