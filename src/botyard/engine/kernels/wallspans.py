"""Walls turned into intervals of beams: where few are near, this takes a quarter of the
time of walking the grid beam by beam.

Each wall within reach is read once, and tested only against the beams between the
bearings of its ends, by vector instructions. Ranges are those of `gridwalk` to the last
bit, because the arithmetic of a beam and a wall is the same; only which walls are tried
differs, and in which order. So it is done where all walls are alike (`Grid.plain`): of
two that are met at the same range the order tells which is seen. For a beam that goes
exactly along a wall rounding decides whether and where it is met, here as there; here
never before the wall begins.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.beams import Beams, Fans, about_atan2, longest
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.gridwalk import note_hit, segment_range
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import F8, I8, Grid

ENTRIES_PER_BEAM = 2
"""With more entries of the grid than so many for each beam it takes less time to walk.
"""
MAX_ENTRIES = 2000
"""With more it takes less time to walk, however many beams there are."""
WALL_SLOTS = 64
"""Length of the table by which entries of the same wall are recognised; a power of two.
"""
NEAR_END, NEAR_END_SHARE = 1e-4, 1e-7
"""Of walls this near, in cells and relative to their length, all beams are tried: there
the bearings of ends say too little.
"""
MARGIN = 1e-4
"""Added to an interval at both ends, rad: errors of `about_atan2`, and the tolerance of
`segment_range` at ends.
"""
TWO_PI = 2.0 * math.pi


@inline_kernel
def cells_around(
    grid: Grid, x: float, y: float, reach: float
) -> tuple[int, int, int, int]:
    """First and last column, first and last row of the cells within `reach` m of (x,
    y); without any a last is less than its first.
    """
    inv = 1.0 / grid.h
    i0, i1 = bin_span(x - reach, x + reach, grid.x0, inv, grid.nx)
    j0, j1 = bin_span(y - reach, y + reach, grid.y0, inv, grid.ny)
    return i0, i1, j0, (j1 if i1 >= i0 else j0 - 1)


@inline_kernel
def has_few_walls(grid: Grid, cells: tuple[int, int, int, int], beams: int) -> bool:
    """Whether so few walls are in these cells that it saves time to meet them at once,
    with so many beams.
    """
    nx, start = grid.nx, grid.start
    i0, i1, j0, j1 = cells
    if not grid.plain or j1 - j0 > beams:
        return False
    count, most = 0, min(ENTRIES_PER_BEAM * beams, MAX_ENTRIES)
    for j in range(j0, j1 + 1):
        count += start[j * nx + i1 + 1] - start[j * nx + i0]
        if count > most:
            return False

    return True


@inline_kernel
def is_repeated(seg: F8, slots: I8, k: int) -> bool:
    """Whether entry `k` is of a wall of which an entry was asked for lately; notes it.

    A wall has an entry in each cell that it touches. It may be forgotten for another
    one; to test it again changes nothing.
    """
    x, y, ex, ey = seg[k, 0], seg[k, 1], seg[k, 2], seg[k, 3]
    # any mixture of the four: it only decides who shares a slot
    slot = int(abs(x * 37.0 + y * 101.0 + ex * 59.0 + ey * 17.0)) & (WALL_SLOTS - 1)
    last = slots[slot]
    slots[slot] = k
    return (
        last >= 0
        and seg[last, 0] == x
        and seg[last, 1] == y
        and seg[last, 2] == ex
        and seg[last, 3] == ey
    )


@inline_kernel
def span_of(
    ax: float, ay: float, ex: float, ey: float, far: float
) -> tuple[float, float, float]:
    """First bearing of the segment that starts at (ax, ay) with vector (ex, ey), seen
    from the origin, and the angle to its last one, rad.

    `MARGIN` is included. The angle is negative if all of the segment is farther off
    than the root of `far`. The third number is the distance of its nearest point, less
    what rounding may add to it. All lengths in cells.
    """
    length2 = ex * ex + ey * ey
    u = min(max(-(ax * ex + ay * ey) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    px, py = ax + u * ex, ay + u * ey
    distance2 = px * px + py * py
    if distance2 > far:
        return 0.0, -1.0, 0.0
    near = NEAR_END + NEAR_END_SHARE * math.sqrt(length2)
    if distance2 <= near * near:
        return 0.0, TWO_PI, 0.0
    a, b = about_atan2(ay, ax), about_atan2(ay + ey, ax + ex)
    first, width = (a, b - a) if ax * ey - ay * ex >= 0.0 else (b, a - b)
    width += TWO_PI if width < 0.0 else 0.0
    # no segment is seen under more than half a circle: this is nothing that an error
    # made negative
    return (
        first - MARGIN,
        (0.0 if width > 1.5 * math.pi else width) + 2.0 * MARGIN,
        math.sqrt(distance2) * (1.0 - 1e-9),
    )


@inline_kernel
def shorten_span(
    beams: Beams,
    first: int,
    last: int,
    ax: float,
    ay: float,
    ex: float,
    ey: float,
    least: float,
) -> None:
    """Shorten the beams `first` … `last` − 1 to a segment that is `least` cells away or
    farther, given as for `segment_range`.

    The walk does not come to a wall that lies behind another one. Seen along its length
    such a wall could seem to be anywhere.
    """
    dir_x, dir_y, ahead = (
        beams.dir_x[first:last],
        beams.dir_y[first:last],
        beams.ahead[first:last],
    )
    for n in range(last - first):
        t = segment_range(ax, ay, ex, ey, dir_x[n], dir_y[n], ahead[n])
        ahead[n] = t if t >= least else ahead[n]


@merged_kernel
def meet_walls_at_once(
    grid: Grid, fans: Fans, beams: Beams, b: int, first: int, heading: float
) -> bool:
    """Shorten the beams of bundle `b`, from place `first` of the workspace on, to what
    they meet of the static world.

    Returns
    -------
    bool
        False if too many walls are near for this to save time: then nothing is done.
    """
    nx, start, seg, slots = grid.nx, grid.start, grid.seg, beams.slots
    raw, ahead = beams.raw, beams.ahead
    count, inv = fans.beam_first[b + 1] - fans.beam_first[b], 1.0 / grid.h
    x, y, reach = beams.org_x[first], beams.org_y[first], longest(raw[first:], count)
    cells = cells_around(grid, x, y, reach)
    if not fans.step[b] > 0.0 or not has_few_walls(grid, cells, count):
        return False
    i0, i1, j0, j1 = cells
    gx, gy = (x - grid.x0) * inv, (y - grid.y0) * inv
    for n in range(first, first + count):
        ahead[n] = raw[n] * inv
    for n in range(WALL_SLOTS):
        slots[n] = -1
    farthest = reach * inv * (1.0 + 1e-9)
    bearing0, wobble, per_step = (
        heading + fans.mount[b, 2] + fans.angle0[b],
        fans.a_noise[b],
        1.0 / fans.step[b],
    )
    for j in range(j0, j1 + 1):
        for k in range(start[j * nx + i0], start[j * nx + i1 + 1]):
            if is_repeated(seg, slots, k):
                continue
            ax, ay, ex, ey = seg[k, 0] - gx, seg[k, 1] - gy, seg[k, 2], seg[k, 3]
            low, width, least = span_of(ax, ay, ex, ey, farthest * farthest)
            if width < 0.0:
                continue
            low -= bearing0 + wobble
            low -= TWO_PI * math.floor(low / TWO_PI)
            width += 2.0 * wobble
            # the interval may reach across the cut of the angle
            for _ in range(2):
                if low * per_step < count and low + width >= 0.0:
                    begin, end = (
                        int(max(low * per_step, 0.0)),
                        int(min((low + width) * per_step + 2.0, float(count))),
                    )
                    shorten_span(
                        beams, first + begin, first + end, ax, ay, ex, ey, least
                    )

                low -= TWO_PI

    for n in range(first, first + count):
        if ahead[n] < raw[n] * inv:
            note_hit(grid, beams, n, ahead[n], -1)

    return True


__all__ = ["WALL_SLOTS", "cells_around", "has_few_walls", "meet_walls_at_once"]
