"""Broad phase for bodies with mass: pairs of bodies and walls near each body.

The lists are made with a margin, the skin (Verlet, 1967), so that they hold for several
substeps: until a body has moved by half of the skin. Allocates nothing; one thread.
"""

from __future__ import annotations

import numpy as np

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.kernels.noise import mix
from botyard.engine.kernels.polygons import segment_distance
from botyard.engine.layout import F8, I8, U8
from botyard.engine.masslayout import (
    ASLEEP,
    AWAKE,
    KIND,
    LIST_TH,
    LIST_X,
    LIST_Y,
    MOVER,
    OX,
    OY,
    STIRS,
    TH,
    WALL_0,
    WALL_1,
    X_HI,
    X_LO,
    Y_HI,
    Y_LO,
    C,
    R,
    S,
    Walls,
    Workspace,
    X,
    Y,
)

SKIN = 0.1
"""Margin of lists of near things, m.

They hold until a body has moved by half of it.
"""
# Shift that leaves 52 of 64 bits, as many as the mantissa of a float64 holds.
TWELVE = np.uint64(12)


@kernel
def heap_sort(key: F8, item: I8, n: int) -> None:
    """Sort pairs by key, then by item, in place (Williams, 1964).

    Parameters
    ----------
    key, item : (m,) float64, (m,) int64
        In-place: the first n elements. Keys must not be NaN.
    n : int
        Number of elements to sort.
    """
    # Both phases share one loop, so that the sift is compiled once.
    for turn in range(n // 2 + n):
        # First build a heap, then remove its top repeatedly.
        if turn < n // 2:
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
            if right < end and (
                key[right] > key[child]
                or (key[right] == key[child] and item[right] > item[child])
            ):
                child = right

            if key[child] < k or (key[child] == k and item[child] <= i):
                break
            key[root], item[root] = key[child], item[child]
            root = child

        key[root], item[root] = k, i


@kernel
def find_pairs(
    slots: F8, flags: I8, count: int, rank: F8, item: I8, pair: F8, pair_item: I8
) -> int:
    """List the pairs of slots whose bounds are less than `SKIN` apart, in slot order.

    At least one of each pair has mass. Method: sort and sweep (Baraff, 1992).

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots`, with bounds at the present poses, and `Workspace.flags`.
    count : int
        Number of slots in use.
    rank, item : (q,) float64, (q,) int64
        Workspace.
    pair, pair_item : (r,) float64, (r,) int64
        Output: pairs, see `Workspace.pair`; workspace.

    Returns
    -------
    int
        Number of pairs; −1 if the array is too small.
    """
    for s in range(count):
        rank[s], item[s] = slots[s, X_LO], s
    heap_sort(rank, item, count)
    # A typed zero: for a literal, Numba would compile the called kernels once more.
    found = np.int64(0)

    for p in range(count):
        a = item[p]
        # Add the skin at one of the two bodies only, because it is the margin of their
        # distance.
        end = slots[a, X_HI] + SKIN
        for q in range(p + 1, count):
            b = item[q]
            # The bounds are sorted, so that all following bodies start beyond this end
            # as well.
            if slots[b, X_LO] > end:
                break
            if (
                slots[b, Y_LO] > slots[a, Y_HI] + SKIN
                or slots[a, Y_LO] > slots[b, Y_HI] + SKIN
            ):
                continue

            # Two movers do not touch: their own moves have kept them apart.
            if flags[a, KIND] == MOVER and flags[b, KIND] == MOVER:
                continue

            if found == pair.shape[0]:
                return -1
            # A float64 holds the combined number exactly for up to 90 million slots.
            pair[found], pair_item[found] = float(min(a, b) * count + max(a, b)), 0
            found += 1

    # Sorted pairs make the order of contacts independent of the places of bodies.
    heap_sort(pair, pair_item, found)
    return int(found)


@merged_kernel
def list_walls(walls: Walls, work: Workspace, x: float, y: float, reach: float) -> int:
    """List the solid walls near a place in `Workspace.rank` and `item`.

    `rank` gets the hashes of walls, and `item` their entries in `Walls.seg`, sorted by
    hash. A wall has an entry in each cell that it crosses.

    Parameters
    ----------
    walls : Walls
        Static world.
    work : Workspace
        Workspace of the step. Output: `rank` and `item`.
    x, y : float
        Place in the frame of the world, m.
    reach : float
        Greatest distance, m.

    Returns
    -------
    int
        Number of entries; −1 if the array is too small.
    """
    x0, y0, h, nx, ny = walls.x0, walls.y0, walls.h, walls.nx, walls.ny
    start, seg, rank, item = walls.start, walls.seg, work.rank, work.item
    # The clear squares of the grid extend farther than the body reaches.
    if wall_distance(walls.clear, x0, y0, h, nx, ny, x, y) > reach:
        return 0

    inv = 1.0 / h
    gx, gy, limit = (x - x0) * inv, (y - y0) * inv, reach * inv
    i0, i1 = bin_span(x - reach, x + reach, x0, inv, nx)
    j0, j1 = bin_span(y - reach, y + reach, y0, inv, ny)
    found = np.int64(0)

    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1] if i1 >= i0 else 0):
            # Bodies pass through a wall of another class, although sensors may see it.
            if not int(walls.mask[k]) & OBSTACLE:
                continue

            ax, ay = seg[k, 0], seg[k, 1]
            if segment_distance(gx, gy, ax, ay, ax + seg[k, 2], ay + seg[k, 3]) > limit:
                continue
            # The host enlarges the workspace and repeats the step.
            if found == work.wall.shape[0]:
                return -1
            rank[found], item[found] = float(wall_hash(walls.bits, k)), k
            found += 1

    heap_sort(rank, item, found)
    return int(found)


@merged_kernel
def wall_hash(bits: U8, k: int) -> np.uint64:
    """Return a hash of 52 bits for a wall, the same in each cell with an entry of it.

    A float64 holds that many bits exactly.

    Parameters
    ----------
    bits : (k, 4) uint64
        `Walls.bits`.
    k : int
        Entry of the wall.
    """
    # Coordinates identify a wall, because the numbers of its entries differ from cell
    # to cell.
    z = mix(bits[k, 0])
    for n in range(1, 4):
        z = mix(z ^ bits[k, n])
    return z >> TWELVE


@kernel
def find_walls(walls: Walls, work: Workspace, count: int) -> bool:
    """List the walls near each body with mass, each once, sorted by hash.

    Parameters
    ----------
    walls : Walls
        Static world.
    work : Workspace
        Workspace of the step. Output: `wall`, m, `wall_id`, and the range of rows of
        each slot in them (`WALL_0`, `WALL_1`).
    count : int
        Number of slots in use.

    Returns
    -------
    bool
        False if the array is too small.
    """
    slots, flags, seg, rank, item, wall = (
        work.slots,
        work.flags,
        walls.seg,
        work.rank,
        work.item,
        work.wall,
    )
    total = 0

    for s in range(count):
        flags[s, WALL_0] = flags[s, WALL_1] = total
        # Walls have already stopped movers.
        if flags[s, KIND] == MOVER:
            continue
        # Convert from the centre of mass back to the origin, to which the radius
        # refers.
        x = slots[s, X] - (slots[s, C] * slots[s, OX] - slots[s, S] * slots[s, OY])
        y = slots[s, Y] - (slots[s, S] * slots[s, OX] + slots[s, C] * slots[s, OY])
        found = list_walls(walls, work, x, y, slots[s, R] + SKIN)
        if found < 0:
            return False

        for n in range(found):
            k = item[n]
            # An equal hash usually means the same wall.
            if n > 0 and rank[n] == rank[n - 1]:
                k_0 = item[n - 1]
                if (
                    seg[k, 0] == seg[k_0, 0]
                    and seg[k, 1] == seg[k_0, 1]
                    and seg[k, 2] == seg[k_0, 2]
                    and seg[k, 3] == seg[k_0, 3]
                ):
                    # Skip the further entries of a wall that lies in several cells.
                    continue

            if total == wall.shape[0]:
                return False
            wall[total, 0], wall[total, 1] = (
                walls.x0 + seg[k, 0] * walls.h,
                walls.y0 + seg[k, 1] * walls.h,
            )
            wall[total, 2] = wall[total, 0] + seg[k, 2] * walls.h
            wall[total, 3] = wall[total, 1] + seg[k, 3] * walls.h
            work.wall_id[total] = np.uint64(rank[n])
            total += 1

        flags[s, WALL_1] = total

    return True


@merged_kernel
def lists_are_valid(slots: F8, flags: I8, count: int) -> bool:
    """Return whether the lists are complete: no body has moved by half of the skin.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`.
    count : int
        Number of slots in use.
    """
    for s in range(count):
        # The sum over both axes bounds the distance from above, without a square root.
        way = abs(slots[s, X] - slots[s, LIST_X]) + abs(slots[s, Y] - slots[s, LIST_Y])
        # A turn moves a corner by at most the angle times the radius.
        if way + abs(slots[s, TH] - slots[s, LIST_TH]) * slots[s, R] > 0.5 * SKIN:
            return False

    return True


@merged_kernel
def overlap(slots: F8, a: int, b: int) -> bool:
    """Return whether the bounds of two slots overlap.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`.
    a, b : int
        Rows of `slots`.
    """
    return (
        slots[a, X_LO] <= slots[b, X_HI]
        and slots[b, X_LO] <= slots[a, X_HI]
        and slots[a, Y_LO] <= slots[b, Y_HI]
        and slots[b, Y_LO] <= slots[a, Y_HI]
    )


@merged_kernel
def wake_touched(slots: F8, flags: I8, count: int, pair: F8, pairs: int) -> None:
    """Wake the sleeping bodies that moving things touch, with their whole islands.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: `KIND` of bodies that wake.
    count : int
        Number of slots in use.
    pair : (r,) float64
        `Workspace.pair`.
    pairs : int
        Number of pairs.
    """
    again = True
    # A body that wakes up may touch further sleeping bodies.
    while again:
        again = False
        for p in range(pairs):
            a = int(pair[p]) // count
            b = int(pair[p]) - a * count
            # Either body of the pair may be the sleeping one.
            for _ in range(2):
                if flags[a, KIND] == ASLEEP and (
                    flags[b, KIND] == AWAKE
                    or (flags[b, KIND] == MOVER and flags[b, STIRS])
                ):
                    # Compare bounding boxes only: a body that wakes up without a
                    # contact falls asleep again.
                    if overlap(slots, a, b):
                        flags[a, KIND] = AWAKE
                        again = True

                a, b = b, a
