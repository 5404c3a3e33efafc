"""Walls as intervals of beams, for places with few near walls.

This takes a quarter of the time of walking the grid beam by beam. Each wall within
reach is read once, and tested by vector instructions against the beams between the
bearings of its ends only. Ranges equal the ranges of `gridwalk` to the last bit,
because the arithmetic of a beam and a wall is the same. Only the choice and the order
of tested walls differ. The method therefore requires that all walls are alike
(`Grid.plain`): if two are hit at the same range, the order determines which one is
seen. For a beam exactly along a wall, rounding determines whether and where it hits, in
both methods; here never before the start of the wall.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.beams import Beams, Fans, about_atan2, longest
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.gridwalk import note_hit, segment_range
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import F8, I8, Grid

ENTRIES_PER_BEAM = 2
"""Number of grid entries per beam above which walking takes less time."""
MAX_ENTRIES = 2000
"""Number of grid entries above which walking takes less time for any number of beams.
"""
WALL_SLOTS = 64
"""Size of the hash table that recognises entries of the same wall; a power of two."""
NEAR_END, NEAR_END_SHARE = 1e-4, 1e-7
"""Distance, in cells and relative to a wall's length, below which all beams are tested.

The bearings of the wall's ends are too inaccurate there.
"""
MARGIN = 1e-4
"""Margin of an interval at both ends, rad.

It covers errors of `about_atan2`, and the tolerance of `segment_range` at ends.
"""
TWO_PI = 2.0 * math.pi


@inline_kernel
def cells_around(
    grid: Grid, x: float, y: float, reach: float
) -> tuple[int, int, int, int]:
    """Return the columns and rows of cells within `reach` m of (x, y).

    They are first and last column, first and last row.

    Without any, a last one is less than its first one.
    """
    inv = 1.0 / grid.h
    i0, i1 = bin_span(x - reach, x + reach, grid.x0, inv, grid.nx)
    j0, j1 = bin_span(y - reach, y + reach, grid.y0, inv, grid.ny)
    return i0, i1, j0, (j1 if i1 >= i0 else j0 - 1)


@inline_kernel
def has_few_walls(grid: Grid, cells: tuple[int, int, int, int], beams: int) -> bool:
    """Return whether so few walls are in these cells that the method saves time."""
    nx, start = grid.nx, grid.start
    i0, i1, j0, j1 = cells
    # More rows of cells than beams: counting their entries alone takes too long.
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
    """Return whether the wall of entry `k` was tested lately; note the entry.

    A wall has an entry in each cell that it touches. Another wall may replace it in the
    table. Testing it again changes nothing.
    """
    x, y, ex, ey = seg[k, 0], seg[k, 1], seg[k, 2], seg[k, 3]
    # Any mixture of the four serves: it only determines which walls share a slot.
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
    """Return the first bearing and the width of a segment.

    The segment starts at (ax, ay) with vector (ex, ey).

    They are seen from the origin, rad, and include `MARGIN`. The width is negative if
    the whole segment is farther than the root of `far`. The third number is the
    distance of the nearest point, less the possible effect of rounding. All lengths are
    in cells.
    """
    length2 = ex * ex + ey * ey
    u = min(max(-(ax * ex + ay * ey) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    px, py = ax + u * ex, ay + u * ey
    distance2 = px * px + py * py
    if distance2 > far:
        return 0.0, -1.0, 0.0
    near = NEAR_END + NEAR_END_SHARE * math.sqrt(length2)
    # Too near for bearings of the ends: test all beams.
    if distance2 <= near * near:
        return 0.0, TWO_PI, 0.0
    a, b = about_atan2(ay, ax), about_atan2(ay + ey, ax + ex)
    first, width = (a, b - a) if ax * ey - ay * ex >= 0.0 else (b, a - b)
    width += TWO_PI if width < 0.0 else 0.0
    # A segment never covers more than half a circle: a larger width is a small one that
    # an error made negative.
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
    """Shorten the beams `first` … `last` − 1 to a segment at least `least` cells away.

    The segment is given as for `segment_range`. The walk does not reach a wall behind
    another one. Seen along its length, such a wall could appear anywhere.
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
    """Shorten the beams of bundle `b` to the walls that they hit.

    The beams start at place `first` of the workspace.

    Returns
    -------
    bool
        False if too many walls are near for this to save time; nothing is changed then.
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
    # The margin keeps walls that rounding moves just beyond the longest beam.
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
            # The interval may cross the cut of the angle.
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
