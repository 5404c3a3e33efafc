"""Search for paths of straight lines on a raster, lazy theta*, and its queue.

Nash, Koenig, Tovey, "Lazy Theta*: any-angle path planning and path length analysis in
3D", AAAI 2010.

A cell (j, i) has the number j · columns + i, and its centre is at (i + ½, j + ½) in
cells. The cells at the border of the raster are blocked, so that no index leaves it. A
move between two neighbours that share a corner needs both cells next to that corner, so
that a path never cuts a corner.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]

BLOCKED = 255
"""Cost of a cell that no path enters."""
STRAIGHT, DIAGONAL = 1_000_000.0, 1_414_214.0
"""Lengths of moves, in millionths of a cell.

Whole numbers add up without rounding, so that paths of equal length have equal sums.
"""
CLOSED = -1
"""Position of a cell that left the queue."""
TOLERANCE = 1e-9
"""Distance from a cell within which a line touches the cell, in cells."""


class Search(NamedTuple):
    """Workspace of a search over n cells.

    Attributes
    ----------
    length : (n,) float64
        Length of the best path to each cell that was found, infinite before.
    before : (n,) int32
        Cell before each cell on its path.
    heap : (n,) int32
        Queue of cells as a binary heap.
    key : (n,) float64
        Length of the path to each cell of the queue plus the least length to the goal, in
        the order of the queue.
    position : (n,) int32
        1 + position of each cell in the queue, 0 before, `CLOSED` after.
    """

    length: F8
    before: I4
    heap: I4
    key: F8
    position: I4


@inline_kernel
def precedes(length: F8, key: float, a: int, other_key: float, b: int) -> bool:
    """Return whether cell a leaves the queue before cell b.

    Of two cells with equal keys, the one farther from the start is nearer to the goal.
    The number of the cell decides the rest, so that results can be repeated.

    Parameters
    ----------
    length : (n,) float64
        Length of the path to each cell.
    key, other_key : float
        Keys of a and b.
    a, b : int
        The cells.
    """
    if key != other_key:
        return key < other_key
    if length[a] != length[b]:
        return bool(length[a] > length[b])
    return a < b


@kernel
def put(search: Search, cell: int, key: float, count: int) -> int:
    """Add a cell to a queue, or move it after its key has fallen.

    Parameters
    ----------
    search : Search
        Workspace.
    cell : int
        The cell, not closed.
    key : float
        Key of the cell, see `Search.key`.
    count : int
        Number of cells in the queue.

    Returns
    -------
    int
        New number of cells in the queue.
    """
    heap, keys, position = search.heap, search.key, search.position
    at = position[cell] - 1
    if at < 0:
        at = count
        count += 1
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        if not precedes(search.length, key, cell, keys[above], other):
            break
        heap[at], keys[at] = other, keys[above]
        position[other] = at + 1
        at = above
    heap[at], keys[at] = cell, key
    position[cell] = at + 1
    return count


@kernel
def take_first(search: Search, count: int) -> int:
    """Remove the first cell from a queue of `count` cells, and return it.

    Parameters
    ----------
    search : Search
        Workspace.
    count : int
        Number of cells in the queue, at least 1.
    """
    heap, keys, position = search.heap, search.key, search.position
    first = int(heap[0])
    position[first] = CLOSED
    last = count - 1
    if last == 0:
        return first
    cell, key = heap[last], keys[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and precedes(
            search.length,
            keys[below + 1],
            heap[below + 1],
            keys[below],
            heap[below],
        ):
            below += 1
        other = heap[below]
        if not precedes(search.length, keys[below], other, key, cell):
            break
        heap[at], keys[at] = other, keys[below]
        position[other] = at + 1
        at = below
    heap[at], keys[at] = cell, key
    position[cell] = at + 1
    return first


@inline_kernel
def is_move(costs: U1, i: int, j: int, di: int, dj: int) -> bool:
    """Return whether a path may go from an open cell to its neighbour (i + di, j + dj)."""
    return (
        costs[j + dj, i + di] != BLOCKED
        and costs[j, i + di] != BLOCKED
        and costs[j + dj, i] != BLOCKED
    )


@inline_kernel
def touches_blocked(costs: U1, ax: float, ay: float, bx: float, by: float) -> bool:
    """Return whether a line touches a blocked cell.

    Parameters
    ----------
    costs : (rows, columns) uint8
        Raster.
    ax, ay, bx, by : float
        Ends of the line, in cells, inside of the raster.
    """
    if ax > bx:
        ax, ay, bx, by = bx, by, ax, ay
    dx, dy = bx - ax, by - ay
    first, last = int(math.floor(ax - TOLERANCE)), int(math.floor(bx + TOLERANCE))
    for i in range(first, last + 1):
        # The part of the line in column i
        s, t = 0.0, 1.0
        if dx > 0.0:
            s, t = max(0.0, (i - ax) / dx), min(1.0, (i + 1.0 - ax) / dx)
        low, high = ay + min(s, 1.0) * dy, ay + max(t, 0.0) * dy
        if low > high:
            low, high = high, low
        j0, j1 = int(math.floor(low - TOLERANCE)), int(math.floor(high + TOLERANCE))
        for j in range(j0, j1 + 1):
            if costs[j, i] == BLOCKED:
                return True
    return False


@entry_kernel
def is_clear(costs: U1, ax: float, ay: float, bx: float, by: float) -> bool:
    """Return whether a line touches no blocked cell; see `touches_blocked`."""
    return not touches_blocked(costs, ax, ay, bx, by)


@inline_kernel
def sees(costs: U1, a: int, b: int) -> bool:
    """Return whether a straight line between the centres of two cells touches no blocked cell."""
    columns = costs.shape[1]
    return not touches_blocked(
        costs,
        a % columns + 0.5,
        a // columns + 0.5,
        b % columns + 0.5,
        b // columns + 0.5,
    )


@inline_kernel
def straight(di: int, dj: int) -> float:
    """Return the distance of the centres of two cells, in cells."""
    return math.sqrt(float(di * di + dj * dj))


@entry_kernel
def theta_star(costs: U1, start: int, goal: int, bound: float, search: Search) -> int:
    """Find a short path of straight lines between centres of cells: lazy theta*.

    The costs of open cells do not count.

    Parameters
    ----------
    costs : (rows, columns) uint8
        Raster; `BLOCKED` marks blocked cells and the border.
    start, goal : int
        Numbers of open cells.
    bound : float
        Length of a known path, in cells: longer paths are not searched.
    search : Search
        Workspace. Output: `before` leads from the goal back to the start.

    Returns
    -------
    int
        Number of cells that left the queue; −1 if no shorter path was found.
    """
    columns = costs.shape[1]
    gi, gj = goal % columns, goal // columns
    search.length[start] = 0.0
    search.before[start] = start
    count = put(search, start, 0.0, 0)
    done = 0
    while count > 0:
        cell = take_first(search, count)
        count -= 1
        done += 1
        i, j = cell % columns, cell // columns
        # The line to the cell before was only assumed: check it now.
        if not sees(costs, int(search.before[cell]), cell):
            search.length[cell] = math.inf
            for dj in range(-1, 2):
                for di in range(-1, 2):
                    other = cell + dj * columns + di
                    # The cell itself has no length.
                    length = search.length[other] + straight(di, dj)
                    if (
                        search.position[other] == CLOSED
                        and length < search.length[cell]
                        and is_move(costs, i, j, di, dj)
                    ):
                        search.length[cell], search.before[cell] = length, other
        if cell == goal:
            return done if search.length[cell] < bound else -1
        origin = int(search.before[cell])
        oi, oj = origin % columns, origin // columns
        for dj in range(-1, 2):
            for di in range(-1, 2):
                other = cell + dj * columns + di
                # The cell itself is closed.
                if search.position[other] == CLOSED or not is_move(costs, i, j, di, dj):
                    continue
                length = search.length[origin] + straight(i + di - oi, j + dj - oj)
                key = length + straight(gi - i - di, gj - j - dj)
                if length < search.length[other] and key < bound:
                    search.length[other], search.before[other] = length, origin
                    count = put(search, other, key, count)
    return -1


__all__ = [
    "BLOCKED",
    "DIAGONAL",
    "STRAIGHT",
    "Search",
    "is_clear",
    "theta_star",
]
