"""Strips: points sorted for searches of near ones, at any density.

Points in the order of x are cut into strips of equal numbers, and each strip is sorted
by y. A cluster then has as many strips as its points deserve, where a uniform grid has
one full cell. Bins (`botyard.engine.kernels.bins`) serve the step: their cells are
at least as wide as a collision needs, and lag behind the moves of a step.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.neighbours import heap_sort
from botyard.engine.layout import F8, I8

LEAST_SIZE = 8
"""Least number of points in a strip, which bounds the number of strips."""
FEW = 48
"""Number of points up to which a search compares all of them, without strips."""
FEW_TO_RANK = 192
"""Number of points up to which ranks are counted.

Counting compares each with each, but has no branches: it becomes vector instructions.
"""
DIGIT_BITS, DIGITS, TOP_SHIFT = 11, 2048, 55
"""Digits of the sort: 6 passes over 64 bits."""
SIGN_OFF = 0x7FFF_FFFF_FFFF_FFFF
MARGIN, LEAST_SQUARE = 1.0 + 1e-12, 1e-300
"""Margins of a bound of squared distances: for rounding, and for underflow."""


class Strips(NamedTuple):
    """Points sorted into strips, and the workspace of their sort and of a search.

    Attributes
    ----------
    x, y : (n,) float64
        Positions in the order of strips, and of y within a strip, m.
    item : (n,) int64
        Number of each of these points.
    shape : (1,) int64
        Number of strips.
    start : (n // LEAST_SIZE + 2,) int64
        Strip s owns the points start[s] … start[s + 1] − 1.
    bounds : (n // LEAST_SIZE + 1, 4) float64
        Least and greatest x, least and greatest y of each strip, m.
    least : (n // LEAST_SIZE + 1,) int64
        Least number of a point in each strip.
    cursor : (n // LEAST_SIZE + 1,) int64
        First point of each strip at the y of the last search or above it.
    key, order : (2, n) and (3, n) int64
        Workspace of the sort.
    digit : (DIGITS,) int64
        Workspace of the sort.
    away, who : (n,) float64, (n,) int64
        Squared distances, m², and numbers of the points that a search has found.
    kept, kept_away : (n,) int64, (n,) float64
        Workspace of a search.
    """

    x: F8
    y: F8
    item: I8
    shape: I8
    start: I8
    bounds: F8
    least: I8
    cursor: I8
    key: I8
    order: I8
    digit: I8
    away: F8
    who: I8
    kept: I8
    kept_away: F8


def build_strips(n: int) -> Strips:
    """Return a workspace for `n` points."""
    strips = n // LEAST_SIZE + 1
    return Strips(
        x=np.empty(n),
        y=np.empty(n),
        item=np.empty(n, np.int64),
        shape=np.zeros(1, np.int64),
        start=np.empty(strips + 1, np.int64),
        bounds=np.empty((strips, 4)),
        least=np.empty(strips, np.int64),
        cursor=np.empty(strips, np.int64),
        key=np.empty((2, n), np.int64),
        order=np.empty((3, n), np.int64),
        digit=np.empty(DIGITS, np.int64),
        away=np.empty(n),
        who=np.empty(n, np.int64),
        kept=np.empty(n, np.int64),
        kept_away=np.empty(n),
    )


@inline_kernel
def key_of(x: float) -> int:
    """Return a signed integer that orders like the finite number `x`."""
    # Adding 0 turns −0 into 0, which equals it.
    bits = int(np.float64(x + 0.0).view(np.int64))
    return bits ^ SIGN_OFF if bits < 0 else bits


@inline_kernel
def digit_of(key: int, shift: int) -> int:
    """Return the digit of a key at a bit; the highest one has its sign turned."""
    found = (key >> shift) & (DIGITS - 1)
    # The top digit has the sign and eight more bits.
    return found ^ (DIGITS >> 1) if shift == TOP_SHIFT else found


@kernel
def sort_by_key(key: I8, order: I8, digit: I8, n: int) -> None:
    """Sort `order[0]` by `key[0]` in place, stable (radix sort, least digit first)."""
    here = 0
    for turn in range(6):
        shift = DIGIT_BITS * turn
        digit[:] = 0
        for p in range(n):
            digit[digit_of(key[here, p], shift)] += 1

        # All points share the digit, as they often do the highest ones.
        if digit[digit_of(key[here, 0], shift)] == n:
            continue
        total = np.int64(0)
        for d in range(DIGITS):
            count = digit[d]
            digit[d] = total
            total += count
        for p in range(n):
            k = key[here, p]
            d = digit_of(k, shift)
            q = digit[d]
            digit[d] = q + 1
            key[1 - here, q], order[1 - here, q] = k, order[here, p]

        here = 1 - here

    if here == 1:
        for p in range(n):
            order[0, p] = order[1, p]


@kernel
def sort_by_place(pose: F8, strips: Strips) -> None:
    """Write the numbers of points by y to `order[2]`, and by x and then y to `order[0]`.

    Points at one place stay in the order of their numbers.
    """
    key, order, digit = strips.key, strips.order, strips.digit
    n = pose.shape[0]
    for i in range(n):
        key[0, i], order[0, i] = key_of(pose[i, 1]), i
    sort_by_key(key, order, digit, n)
    for p in range(n):
        i = order[0, p]
        order[2, p] = i
        key[0, p] = key_of(pose[i, 0])

    sort_by_key(key, order, digit, n)


@kernel
def cut_into_strips(pose: F8, strips: Strips, size: int) -> None:
    """Cut points, sorted by `sort_by_place`, into strips of `size` points."""
    n = pose.shape[0]
    order, strip = strips.order, strips.key
    x, y, item, start, bounds, least, cursor = (
        strips.x,
        strips.y,
        strips.item,
        strips.start,
        strips.bounds,
        strips.least,
        strips.cursor,
    )
    count = (n + size - 1) // size
    strips.shape[0] = count
    start[count] = n
    for s in range(count):
        start[s] = cursor[s] = s * size
        least[s] = n
    for p in range(n):
        i = order[0, p]
        s = p // size
        # The sort is over: its keys are a free array.
        strip[0, i] = s
        least[s] = min(least[s], i)
    for s in range(count):
        first, last = order[0, start[s]], order[0, start[s + 1] - 1]
        bounds[s, 0], bounds[s, 1] = pose[first, 0], pose[last, 0]
    for p in range(n):
        i = order[2, p]
        s = strip[0, i]
        q = cursor[s]
        cursor[s] = q + 1
        item[q], x[q], y[q] = i, pose[i, 0], pose[i, 1]
    for s in range(count):
        bounds[s, 2], bounds[s, 3] = y[start[s]], y[start[s + 1] - 1]


@inline_kernel
def first_at(strips: Strips, s: int, x: float) -> int:
    """Return the first strip that reaches `x`, m, from strip `s` with a point there."""
    bounds = strips.bounds
    # Many points may have one x. Of those the lowest numbers come first, which ends
    # searches among many points at one place.
    while s > 0 and bounds[s - 1, 1] >= x:
        s -= 1
    return s


@inline_kernel
def rewind(strips: Strips) -> None:
    """Start another row of searches with rising y."""
    cursor, start = strips.cursor, strips.start
    for s in range(strips.shape[0]):
        cursor[s] = start[s]


@kernel
def order_nearest(
    away: F8, who: I8, found: int, near: I8, far: F8, wanted: int
) -> None:
    """Write the nearest `wanted` of the points that a search has found, in order.

    `near` gets their numbers, `far` their squared distances, m². Changes the order of
    `away` and `who`.
    """
    if found <= FEW_TO_RANK:
        for i in range(found):
            a = away[i]
            rank, equal = np.int64(0), np.int64(0)
            for j in range(found):
                rank += 1 if away[j] < a else 0
                equal += 1 if away[j] == a else 0
            # Without a tie the point is only equal to itself.
            if equal > 1:
                for j in range(found):
                    rank += 1 if (away[j] == a) & (who[j] < who[i]) else 0
            if rank < wanted:
                near[rank], far[rank] = who[i], a
    else:
        heap_sort(away, who, found)
        for i in range(wanted):
            near[i], far[i] = who[i], away[i]


@kernel
def write_nearest(
    away: F8, who: I8, found: int, near: I8, far: F8, wanted: int
) -> None:
    """Write the nearest points as `order_nearest` does, with distances, m."""
    order_nearest(away, who, found, near, far, wanted)
    for i in range(wanted):
        far[i] = math.sqrt(far[i])


@merged_kernel
def collect(
    strips: Strips, own: int, q: int, limit: float, wanted: int, room: int
) -> int:
    """Find the points near point `q` (an index of `Strips.x`) of the strip `own`.

    They are at most √`limit` m away, and noted in `Strips.away` and `who`, in no order.
    When there are `room` of them, all but the nearest `wanted` are dropped. Equally
    near points count by their numbers. Searches in succession have rising y.

    Returns their count.
    """
    xs, ys, item, start, bounds, least, cursor, away, who, kept, kept_away = (
        strips.x,
        strips.y,
        strips.item,
        strips.start,
        strips.bounds,
        strips.least,
        strips.cursor,
        strips.away,
        strips.who,
        strips.kept,
        strips.kept_away,
    )
    count = strips.shape[0]
    x, y = xs[q], ys[q]
    last = xs.shape[0]
    found = np.int64(0)
    right = first_at(strips, own, x)
    left = right - 1
    # Strips outward from the point, the nearer one first
    while left >= 0 or right < count:
        l_gap = x - bounds[left, 1] if left >= 0 else math.inf
        r_gap = max(bounds[right, 0] - x, 0.0) if right < count else math.inf
        if l_gap < r_gap:
            s, gap = left, l_gap
            left -= 1
        else:
            s, gap = right, r_gap
            right += 1

        if gap * gap > limit:
            break
        beside = max(max(bounds[s, 2] - y, y - bounds[s, 3]), 0.0)
        square = gap * gap + beside * beside
        # An equal bound leaves only points that come too late in the order.
        if square > limit or (square == limit and least[s] > last):
            continue

        middle = cursor[s]
        while middle < start[s + 1] and ys[middle] < y:
            middle += 1
        cursor[s] = middle
        for turn in range(2):
            # Upwards, then downwards
            p, step, end = (
                (middle, 1, start[s + 1])
                if turn == 0
                else (middle - 1, -1, start[s] - 1)
            )
            while p != end:
                dy = ys[p] - y
                if dy * dy > limit:
                    break
                dx = xs[p] - x
                square = dx * dx + dy * dy
                # Written in any case: no branch could predict which are near enough.
                away[found], who[found] = square, item[p]
                near = (square < limit) | ((square == limit) & (item[p] <= last))
                found += 1 if near & (p != q) else 0
                p += step
                if found == room:
                    order_nearest(away, who, found, kept, kept_away, wanted)
                    found = np.int64(wanted)
                    for i in range(wanted):
                        away[i], who[i] = kept_away[i], kept[i]
                    limit, last = away[wanted - 1], who[wanted - 1]

    return int(found)


__all__ = [
    "FEW",
    "LEAST_SIZE",
    "LEAST_SQUARE",
    "MARGIN",
    "Strips",
    "build_strips",
    "collect",
    "cut_into_strips",
    "rewind",
    "sort_by_place",
    "write_nearest",
]
