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
# Five digits of 11 bits and a top one of nine make 64 bits.
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
        Number of the point at each place of `x` and `y`.
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
    """Return a workspace for `n` points.

    Parameters
    ----------
    n : int
        Number of points that it holds at most, at least 0.
    """
    # One strip more, for a last strip that is not full.
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
    """Return a signed integer that orders like the finite number `x`.

    A float64 and its bits as an integer have the same order, except that negative
    numbers have the reverse one (IEEE 754 stores sign and magnitude).
    """
    # Adding 0 turns −0 into 0, which equals it.
    bits = int(np.float64(x + 0.0).view(np.int64))
    return bits ^ SIGN_OFF if bits < 0 else bits


@inline_kernel
def digit_of(key: int, shift: int) -> int:
    """Return the digit of a key at a bit; the highest one has its sign turned.

    Parameters
    ----------
    key : int
        Result of `key_of`.
    shift : int
        Lowest bit of the digit: a multiple of `DIGIT_BITS`, at most `TOP_SHIFT`.

    Returns
    -------
    int
        Digit, 0 … `DIGITS` − 1.
    """
    found = (key >> shift) & (DIGITS - 1)
    # The top digit has the sign and eight more bits.
    return found ^ (DIGITS >> 1) if shift == TOP_SHIFT else found


@kernel
def sort_by_key(key: I8, order: I8, digit: I8, n: int) -> None:
    """Sort `order[0]` by `key[0]` in place, stable (radix sort, least digit first).

    Parameters
    ----------
    key : (2, n) int64
        Keys in row 0. In-place; row 1 is workspace.
    order : (2 or 3, n) int64
        Values in row 0. In-place: row 0 is sorted; row 1 is workspace;
        row 2 stays unchanged.
    digit : (DIGITS,) int64
        Workspace: counts of the digits.
    n : int
        Number of keys, at least 1.
    """
    here = 0
    for turn in range(6):
        shift = DIGIT_BITS * turn
        # Clear the counts of the previous digit.
        digit[:] = 0
        for p in range(n):
            digit[digit_of(key[here, p], shift)] += 1

        # Skip a digit that all points share, as they often share the highest digits.
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

    # After an odd number of passes, the result is in the second half.
    if here == 1:
        for p in range(n):
            order[0, p] = order[1, p]


@kernel
def sort_by_place(pose: F8, strips: Strips) -> None:
    """Write the orders of points by y, and by x and then y.

    Points at one place stay in the order of their numbers.

    Parameters
    ----------
    pose : (n, 2 or more) float64
        Positions in the first two columns, m.
    strips : Strips
        Workspace for n points. Output: `order`, numbers by y in row 2, by x and then y
        in row 0.
    """
    key, order, digit = strips.key, strips.order, strips.digit
    n = pose.shape[0]
    for i in range(n):
        key[0, i], order[0, i] = key_of(pose[i, 1]), i
    # Sort by y first: the stable sort by x then keeps the order by y for points of
    # equal x.
    sort_by_key(key, order, digit, n)
    for p in range(n):
        i = order[0, p]
        order[2, p] = i
        key[0, p] = key_of(pose[i, 0])

    sort_by_key(key, order, digit, n)


@kernel
def cut_into_strips(pose: F8, strips: Strips, size: int) -> None:
    """Cut points, sorted by `sort_by_place`, into strips of `size` points.

    Parameters
    ----------
    pose : (n, 2 or more) float64
        Positions in the first two columns, m.
    strips : Strips
        Points after `sort_by_place`. Output: all that a search reads; `cursor` ends at
        the end of each strip, so that `rewind` comes before the first search.
    size : int
        Number of points per strip, at least `LEAST_SIZE`; the last strip may have
        fewer.
    """
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
        # The cursor first counts written points, and later serves searches.
        start[s] = cursor[s] = s * size
        least[s] = n
    for p in range(n):
        i = order[0, p]
        s = p // size
        # The sort has ended, so that the array of its keys is free.
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
    """Return the first strip that reaches `x`, m, given a strip `s` that reaches it."""
    bounds = strips.bounds
    # Many points may have one x. Of those the lowest numbers come first, which ends
    # searches among many points at one place.
    while s > 0 and bounds[s - 1, 1] >= x:
        s -= 1
    return s


@inline_kernel
def rewind(strips: Strips) -> None:
    """Start a new series of searches, in which y rises from search to search."""
    cursor, start = strips.cursor, strips.start
    for s in range(strips.shape[0]):
        cursor[s] = start[s]


@kernel
def order_nearest(
    away: F8, who: I8, found: int, near: I8, far: F8, wanted: int
) -> None:
    """Write the nearest of the points that a search has found, in order of distance.

    Parameters
    ----------
    away, who : (n,) float64, (n,) int64
        Squared distances, m², and numbers of the points. In-place: their order changes.
    found : int
        Number of points in `away` and `who`.
    near, far : (k,) int64, (k,) float64
        Output: numbers and squared distances, m², the nearest first. At equal
        distances, the lower number comes first.
    wanted : int
        Number of points to write, at most `found` and k.
    """
    if found <= FEW_TO_RANK:
        for i in range(found):
            a = away[i]
            rank, equal = np.int64(0), np.int64(0)
            # Two conditional sums have no branch, and a vector unit computes them at
            # once.
            for j in range(found):
                rank += 1 if away[j] < a else 0
                equal += 1 if away[j] == a else 0
            # Without a tie, the point is equal only to itself.
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
    """Write the nearest points as `order_nearest` does, with distances in m.

    Parameters
    ----------
    away, who, found, wanted
        See `order_nearest`.
    near, far : (k,) int64, (k,) float64
        Output: numbers and distances, m, the nearest first.
    """
    order_nearest(away, who, found, near, far, wanted)
    for i in range(wanted):
        far[i] = math.sqrt(far[i])


@merged_kernel
def collect(
    strips: Strips, own: int, q: int, limit: float, wanted: int, room: int
) -> int:
    """Find the points near one point, in no order.

    Searches in succession have rising y: each continues at the `Strips.cursor` of the
    last one, and `rewind` starts anew.

    Parameters
    ----------
    strips : Strips
        Points after `cut_into_strips`. Output: `away`, squared distances, m², and
        `who`, numbers of the found points.
    own, q : int
        Strip of the point, and its index in `Strips.x`. It does not find itself.
    limit : float
        Square of the greatest distance, m².
    wanted : int
        Number of nearest points that are kept when `room` points have been found.
        Equally near points count by their numbers.
    room : int
        Number of points at which all but the nearest `wanted` are dropped.

    Returns
    -------
    int
        Number of points found, less than `room`.
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
    # Visit strips outward from the point, the nearer strip first.
    while left >= 0 or right < count:
        # Gaps in x bound the distance of all points of a strip from below.
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
        # At an equal distance, all points of the strip come too late in the order.
        if square > limit or (square == limit and least[s] > last):
            continue

        middle = cursor[s]
        # The cursor moves up only: searches have rising y.
        while middle < start[s + 1] and ys[middle] < y:
            middle += 1
        cursor[s] = middle
        for turn in range(2):
            # Search upwards, then downwards.
            p, step, end = (
                (middle, 1, start[s + 1])
                if turn == 0
                else (middle - 1, -1, start[s] - 1)
            )
            while p != end:
                dy = ys[p] - y
                # All further points of the strip are even farther in y.
                if dy * dy > limit:
                    break
                dx = xs[p] - x
                square = dx * dx + dy * dy
                # Write the point in any case, because a branch could not be predicted.
                away[found], who[found] = square, item[p]
                near = (square < limit) | ((square == limit) & (item[p] <= last))
                found += 1 if near & (p != q) else 0
                p += step
                # A full list keeps the nearest ones, whose last distance is the new
                # limit.
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
