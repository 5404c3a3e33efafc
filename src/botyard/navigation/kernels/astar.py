"""A* on a raster, with a queue of buckets.

Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost
paths", IEEE Transactions on Systems Science and Cybernetics 4(2), 1968; Dial, "Algorithm
360: shortest-path forest with topological ordering", Communications of the ACM 12(11),
1969.

Cells wait in buckets by the least length of a path through them, each a doubly linked
list. A cell may leave its bucket before another one of a lesser length there, so that it
comes again when its path gets shorter. The search ends when no path through a waiting cell is
shorter than the best one. Dijkstra's algorithm finds the same length. A binary heap
takes three times as long.

Lengths are whole numbers, in millionths of a cell times `SHARES`. They add up without
rounding, so that the path can be read from the lengths alone. See `planning.py` for the
numbers of cells, the border and the moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel, inline_kernel
from botyard.navigation.kernels.planning import BLOCKED

I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]

SHARES, STRAIGHT, DIAGONAL = 16, 1_000_000, 1_414_214
"""Lengths of moves, as whole numbers.

`SHARES`: factor of a move to a cell without cost; a cell with a cost adds the cost to it.
`STRAIGHT`, `DIAGONAL`: lengths of moves, in millionths of a cell.
"""
FAR = 1 << 62
"""Length of the path to a cell that was not found."""
WIDTH = 20
"""Binary logarithm of the width of a bucket: a sixteenth of a cell."""
BUCKETS = 512
"""Number of buckets, which are used in turn: a power of 2.

A move makes the length through a cell longer by at most 386 buckets, at the greatest
cost, 254: (254 + 2 · 16) · `DIAGONAL` / 2²⁰.
"""
NOWHERE = -1
"""Value of `Buckets.before` of a cell that waits in no bucket."""
FIRST = -2
"""Value of `Buckets.before` of the first cell of bucket 0; of bucket b it is `FIRST` − b."""
NEIGHBOURS = 8


class Buckets(NamedTuple):
    """Workspace of a search over n cells.

    Attributes
    ----------
    length : (n,) int64
        Length of the best path to each cell; `FAR` before it was found.
    before, after : (n,) int32
        Cells before and after each cell in its bucket; see `NOWHERE` and `FIRST`. `after`
        is −1 at the end of a bucket.
    heads : (`BUCKETS`,) int32
        First cell of each bucket; −1 for none.
    """

    length: I8
    before: I4
    after: I4
    heads: I4


@inline_kernel
def octile(di: int, dj: int) -> int:
    """Return the length of the shortest path over free cells; see `planning.octile`."""
    a, b = abs(di), abs(dj)
    return SHARES * (STRAIGHT * (max(a, b) - min(a, b)) + DIAGONAL * min(a, b))


@inline_kernel
def put(queue: Buckets, cell: int, bucket: int) -> None:
    """Move a cell to the start of a bucket, out of the one in which it waits."""
    last = queue.before[cell]
    if last != NOWHERE:
        following = queue.after[cell]
        if last >= 0:
            queue.after[last] = following
        else:
            queue.heads[FIRST - last] = following
        if following >= 0:
            queue.before[following] = last
    head = queue.heads[bucket]
    queue.after[cell], queue.before[cell] = head, FIRST - bucket
    if head >= 0:
        queue.before[head] = cell
    queue.heads[bucket] = cell


@inline_kernel
def take(queue: Buckets, cell: int, bucket: int) -> None:
    """Remove the first cell of a bucket from the queue."""
    following = queue.after[cell]
    queue.heads[bucket] = following
    if following >= 0:
        queue.before[following] = FIRST - bucket
    queue.before[cell] = NOWHERE


@inline_kernel
def move_of(k: int) -> tuple[int, int, int, int]:
    """Return move `k` of 8: columns, rows, length, and bits of sides that must be open."""
    if k < 4:
        return (1 - 2 * k if k < 2 else 0), (0 if k < 2 else 5 - 2 * k), STRAIGHT, 0
    needed = (1 << (k & 1)) | (4 if k < 6 else 8)
    return 1 - 2 * (k & 1), (1 if k < 6 else -1), DIAGONAL, needed


@entry_kernel
def a_star(costs: U1, columns: int, start: int, goal: int, queue: Buckets) -> int:
    """Find the length of the shortest path over neighbouring cells.

    Parameters
    ----------
    costs : (n,) uint8
        Cost of each cell, row by row, `BLOCKED` for blocked ones and at the border.
    columns : int
        Number of columns.
    start, goal : int
        Numbers of open cells, which differ.
    queue : Buckets
        Workspace. Output: the lengths, see `trace`.

    Returns
    -------
    int
        Number of cells that left the queue; −1 if there is no path.
    """
    length, before, after, heads = queue
    gi, gj = goal % columns, goal // columns
    length[start] = 0
    least = octile(gi - start % columns, gj - start // columns)
    before[start], after[start], heads[0] = FIRST, -1, start
    waiting, now, done = 1, 0, 0
    best = FAR
    while waiting > 0:
        bucket = now & (BUCKETS - 1)
        cell = heads[bucket]
        if cell < 0:
            now += 1
            if least + (now << WIDTH) >= best:
                break
            continue
        take(queue, cell, bucket)
        waiting -= 1
        gone = length[cell]
        j = cell // columns
        i = cell - j * columns
        if gone + octile(gi - i, gj - j) >= best:
            continue
        done += 1
        # Bits of open neighbours by the side: east, west, north, south
        sides = 0
        for k in range(NEIGHBOURS):
            di, dj, move, needed = move_of(k)
            # A path must not cut a corner.
            if sides & needed != needed:
                continue
            other = cell + dj * columns + di
            cost = costs[other]
            if cost == BLOCKED:
                continue
            if k < 4:
                sides |= 1 << k
            further = gone + move * (SHARES + np.int64(cost))
            if further >= length[other]:
                continue
            through = further + octile(gi - i - di, gj - j - dj)
            if through >= best:
                continue
            length[other] = further
            if other == goal:
                best = further
                continue
            if before[other] == NOWHERE:
                waiting += 1
            put(queue, other, ((through - least) >> WIDTH) & (BUCKETS - 1))
    return done if best < FAR else -1


@entry_kernel
def trace(costs: U1, columns: int, start: int, goal: int, length: I8, chain: I4) -> int:
    """Read a shortest path from the lengths of a search that has reached the goal.

    Of several cells before a cell, the one in the direction of the path is taken, and
    otherwise the one with the least number.

    Parameters
    ----------
    costs : (n,) uint8
        Cost of each cell, as in the search.
    columns : int
        Number of columns.
    start, goal : int
        Numbers of the cells at the ends.
    length : (n,) int64
        Lengths, see `Buckets`.
    chain : (n,) int32
        Output: numbers of the cells of the path, from the goal back to the start.

    Returns
    -------
    int
        Number of the path's cells.
    """
    cell, count = goal, 1
    chain[0] = goal
    ti, tj = 0, 0
    while cell != start:
        found, fi, fj = -1, 0, 0
        for k in range(10):
            # The direction of the path comes first; k − 1 counts the cells around.
            di, dj = (ti, tj) if k == 0 else ((k - 1) % 3 - 1, (k - 1) // 3 - 1)
            if di == 0 and dj == 0:
                continue
            other = cell + dj * columns + di
            move = STRAIGHT
            if costs[other] == BLOCKED:
                continue
            if di != 0 and dj != 0:
                if costs[cell + di] == BLOCKED or costs[cell + dj * columns] == BLOCKED:
                    continue
                move = DIAGONAL
            if length[other] + move * (SHARES + np.int64(costs[cell])) == length[cell]:
                found, fi, fj = other, di, dj
                break
        cell, ti, tj = found, fi, fj
        chain[count] = cell
        count += 1
    return count


__all__ = ["BUCKETS", "FAR", "Buckets", "a_star", "trace"]
