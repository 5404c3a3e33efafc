"""Walls as spans of beams: the beams between the bearings of a wall's ends.

Walls within reach are read once, from lists by wide cells (`Grid.walls`), and turned
into spans, several at a time. Each is tested against the beams of its span only, again
several at a time. Both loops have no branches and become vector instructions, without
which the results are the same. Ranges equal the ranges of `gridwalk` to the last bit,
because the arithmetic of a beam and a wall is the same. Only the choice and the order
of tested walls differ. The method therefore requires that all walls are alike
(`Grid.plain`): if two are hit at the same range, the order determines which one is
seen. For a beam exactly along a wall, rounding determines whether and where it hits, in
both methods; here never before the start of the wall.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import (
    Beams,
    Device,
    Fans,
    about_atan2,
    place_beams,
)
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.gridwalk import END_TOLERANCE, walk_beams
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import F8, I4, WALL_LANES, Grid

WALLS_PER_BEAM = 10
"""Number of walls in the searched cells per beam above which walking takes less time."""
FEW_PER_BEAM, MORE_PER_CELL = 4.0, 0.3
"""Number of walls per beam above which a walk may take less time, for beams that end at
their origin, and what each cell of their length adds to it.

Measured in a hospital with 1000 robots, where beams are short, and in squares with 100
to 3000 walls.
"""
BEAMS_PER_PROBE = 45
"""Number of beams for each beam that is walked to estimate the length of all."""
WALLS_AT_ONCE = 64
"""Number of walls whose spans are computed together; a multiple of `WALL_LANES`."""
NEAR_END_2, NEAR_END_SHARE_2 = 2e-8, 2e-14
"""Squared distance, in cells and relative to a wall's length, below which all beams are
tested.

The bearings of the wall's ends are too inaccurate there.
"""
MARGIN = 1e-4
"""Margin of a span at both ends, rad.

It covers errors of `about_atan2`, and the tolerance of `wall_range` at ends.
"""
BEYOND = 1e300
"""Range of a wall that is missed: greater than all ranges."""
ROUND_UP = 1.0 - 1e-6
"""Part of a beam to add before a number of beams is rounded down.

The rest is far less than `MARGIN`.
"""
NEVER = 1e15
"""First beam of a span without beams."""
UNKNOWN = 1 << 62
"""Number of walls that takes too long to count."""
TWO_PI = 2.0 * math.pi


class View(NamedTuple):
    """How a bundle of beams sees walls. All lengths are in cells of the grid.

    Attributes
    ----------
    x, y : float
        Origin of the beams.
    cosine, sine : float
        Direction of the beam `middle`.
    middle : float
        Number of that beam in the bundle.
    per_step : float
        Beams per radian.
    margin : float
        Margin of spans at both ends, rad.
    reach : float
        Range of the longest beam.
    beams : int
        Number of beams.
    """

    x: float
    y: float
    cosine: float
    sine: float
    middle: float
    per_step: float
    margin: float
    reach: float
    beams: int


@merged_kernel
def view_of(grid: Grid, fans: Fans, device: Device, b: int, reach: float) -> View:
    """Return the view of bundle `b` of a device whose beams reach at most `reach` m."""
    x, y, c, s = device.x, device.y, device.cosine, device.sine
    first, count, inv = (
        fans.beam_first[b],
        fans.beam_first[b + 1] - fans.beam_first[b],
        1.0 / grid.h,
    )
    middle = first + (count - 1) // 2
    bx, by, bc, bs = (
        fans.beam_x[middle],
        fans.beam_y[middle],
        fans.beam_cos[middle],
        fans.beam_sin[middle],
    )
    return View(
        (x + c * bx - s * by - grid.x0) * inv,
        (y + s * bx + c * by - grid.y0) * inv,
        c * bc - s * bs,
        s * bc + c * bs,
        float(middle - first),
        1.0 / fans.step[b],
        MARGIN + fans.a_noise[b],
        # The margin keeps walls that rounding moves just beyond the longest beam.
        reach * inv * (1.0 + 1e-9),
        count,
    )


@merged_kernel
def box_in_view(
    fans: Fans, device: Device, b: int, view: View
) -> tuple[float, float, float, float]:
    """Return bounds of all points that a view reaches: least and greatest x, then y."""
    c, s, reach = device.cosine, device.sine, view.reach
    first, last = fans.beam_first[b], fans.beam_first[b + 1] - 1
    bc, bs, ec, es = (
        fans.beam_cos[first],
        fans.beam_sin[first],
        fans.beam_cos[last],
        fans.beam_sin[last],
    )
    # Directions of the first and the last beam.
    fx, fy, lx, ly = c * bc - s * bs, s * bc + c * bs, c * ec - s * es, s * ec + c * es
    vx, vy = view.cosine, view.sine
    # Cosine of the widest angle from the middle; errors of bearing may widen it.
    widest = min(fx * vx + fy * vy, lx * vx + ly * vy) - 1e-9
    widest = -1.0 if fans.a_noise[b] > 0.0 or widest < -0.9 else widest
    # The box touches the circle where an axis lies within the fan.
    return (
        view.x - reach * (1.0 if -vx >= widest else max(0.0, -fx, -lx)),
        view.x + reach * (1.0 if vx >= widest else max(0.0, fx, lx)),
        view.y - reach * (1.0 if -vy >= widest else max(0.0, -fy, -ly)),
        view.y + reach * (1.0 if vy >= widest else max(0.0, fy, ly)),
    )


@inline_kernel
def wide_cells(
    grid: Grid, box: tuple[float, float, float, float]
) -> tuple[int, int, int, int]:
    """Return the columns and rows of wide cells whose walls may extend into a box.

    They are first and last column, first and last row. If there are none, a last one is
    less than its first one. All lengths are in cells of the grid.
    """
    inv, half = 1.0 / grid.wall_cell, grid.wall_half
    i0, i1 = bin_span(box[0] - half, box[1] + half, 0.0, inv, grid.wall_nx)
    j0, j1 = bin_span(box[2] - half, box[3] + half, 0.0, inv, grid.wall_ny)
    return i0, i1, j0, (j1 if i1 >= i0 else j0 - 1)


@inline_kernel
def list_of(
    start: I4, nx: int, ny: int, cells: tuple[int, int, int, int], j: int
) -> tuple[int, int]:
    """Return the first wall, and the end, of row `j` of some wide cells.

    The row after the last one has the long walls.
    """
    i0, i1, _, j1 = cells
    return (
        (start[j * nx + i0], start[j * nx + i1 + 1])
        if j <= j1
        else (start[nx * ny], start[nx * ny + 1])
    )


@inline_kernel
def count_walls(grid: Grid, cells: tuple[int, int, int, int], beams: int) -> int:
    """Return the number of walls in these wide cells; the greatest integer if unknown.

    It is unknown if a scene has no lists, and if there are more rows of cells than
    beams: to count their walls takes too long.
    """
    if grid.walls.shape[1] == 0 or cells[3] - cells[2] > beams:
        return UNKNOWN
    count = 0
    for j in range(cells[2], cells[3] + 2):
        begin, end = list_of(grid.wall_start, grid.wall_nx, grid.wall_ny, cells, j)
        count += end - begin
    return count


@inline_kernel
def has_few_walls(grid: Grid, cells: tuple[int, int, int, int], beams: int) -> bool:
    """Return whether the number of walls in these wide cells permits spans."""
    return count_walls(grid, cells, beams) <= WALLS_PER_BEAM * beams


@inline_kernel
def few_for_spans(walls: int, beams: int, length: float) -> bool:
    """Return whether spans of these walls save time, by the length of beams in cells."""
    return walls <= beams * (FEW_PER_BEAM + MORE_PER_CELL * length)


@inline_kernel
def probe_length(
    grid: Grid, fans: Fans, beams: Beams, device: Device, first: int, count: int
) -> float:
    """Return the mean length in cells of a few beams of a bundle, after a walk.

    They are spread evenly over its `count` beams from `first` on. They get the same
    ranges that the search by spans finds for them.
    """
    probes, total = 2 + count // BEAMS_PER_PROBE, 0.0
    for n in range(probes):
        k = first + (2 * n + 1) * count // (2 * probes)
        place_beams(fans, beams, device, k, k + 1)
        walk_beams(grid, beams, k, k + 1, device.mask)
        total += beams.raw[k]
    return total / (grid.h * probes)


@merged_kernel
def find_spans(walls: F8, view: View, row: int, groups: int, spans: F8) -> None:
    """Write the spans of `groups` · `WALL_LANES` walls from `row` on into `spans`.

    See `Beams.spans`. A wall beyond the reach gets `NEVER`.
    """
    start_x, start_y, vector_x, vector_y = walls[0], walls[1], walls[2], walls[3]
    lows, highs, squares = spans[0], spans[1], spans[2]
    x, y, c, s = view.x, view.y, view.cosine, view.sine
    middle, per_step, margin = view.middle, view.per_step, view.margin
    far, last = view.reach * view.reach, float(view.beams)
    for n in range(groups * WALL_LANES):
        # Unsigned indices save the test for negative ones, which count from the end.
        k, m = np.uint64(row + n), np.uint64(n)
        ax, ay, ex, ey = start_x[k] - x, start_y[k] - y, vector_x[k], vector_y[k]
        bx, by, length2 = ax + ex, ay + ey, ex * ex + ey * ey
        # The nearest point, for a wall without length its start.
        u = min(max(-(ax * ex + ay * ey) / length2, 0.0), 1.0)
        u = u if length2 > 0.0 else 0.0
        px, py = ax + u * ex, ay + u * ey
        square = px * px + py * py
        # The bearings of both ends in the frame of the view. The wall covers less than
        # half a circle, counter-clockwise from one to the other.
        a, b = (
            about_atan2(c * ay - s * ax, c * ax + s * ay),
            about_atan2(c * by - s * bx, c * bx + s * by),
        )
        is_left = ax * ey - ay * ex >= 0.0
        first, width = (a if is_left else b), (b - a if is_left else a - b)
        width = width + TWO_PI if width < 0.0 else width
        # A larger width is a small one that an error made negative.
        width = 0.0 if width > 1.5 * math.pi else width
        # Too near for bearings of the ends: test all beams.
        is_near = square <= NEAR_END_2 + NEAR_END_SHARE_2 * length2
        low = (first - margin) * per_step + middle
        high = low + (width + 2.0 * margin) * per_step
        low, high = (0.0 if is_near else low), (last if is_near else high)
        # Also a padded wall, whose distance is not a number.
        lows[m] = low if square <= far else NEVER
        highs[m] = high
        squares[m] = square


@inline_kernel
def wall_range(
    ax: float,
    ay: float,
    ex: float,
    ey: float,
    cross: float,
    dx: float,
    dy: float,
    least: float,
) -> float:
    """Return `segment_range` of a wall with ax·ey − ay·ex = `cross`, or `BEYOND`.

    The wall is at least `least` away. The walk does not reach a wall behind another
    one. Seen along its length, such a wall could appear anywhere.
    """
    scale = 1.0 / (dx * ey - dy * ex)
    t = cross * scale
    u = (ax * dy - ay * dx) * scale
    return (
        t
        if (t >= least) & (u >= -END_TOLERANCE) & (u <= 1.0 + END_TOLERANCE)
        else BEYOND
    )


@inline_kernel
def shorten_span(
    dir_x: F8,
    dir_y: F8,
    ahead: F8,
    first: int,
    lo: int,
    hi: int,
    wall: tuple[float, float, float, float],
    square: float,
) -> None:
    """Shorten the beams `lo` … `hi` − 1 of a bundle to a wall.

    The directions of the bundle start at `first`. Whole groups of `WALL_LANES` are
    tested, because the test is exact for any beam. `square`: squared distance of the
    wall.
    """
    ax, ay, ex, ey = wall
    cross = ax * ey - ay * ex
    # Less the possible effect of rounding. A wall at a near end may be anywhere.
    least = (
        math.sqrt(square) * (1.0 - 1e-9)
        if square > NEAR_END_2 + NEAR_END_SHARE_2 * (ex * ex + ey * ey)
        else 0.0
    )
    lo &= -WALL_LANES
    for n in range((hi - lo + WALL_LANES - 1) & -WALL_LANES):
        k, m = np.uint64(first + lo + n), np.uint64(lo + n)
        t = wall_range(ax, ay, ex, ey, cross, dir_x[k], dir_y[k], least)
        ahead[m] = t if t < ahead[m] else ahead[m]


@merged_kernel
def meet_listed(
    grid: Grid, beams: Beams, view: View, cells: tuple[int, int, int, int], first: int
) -> None:
    """Shorten the beams of a bundle to the walls that the lists of wide cells hold.

    The ranges are in `Beams.ahead`; directions of the bundle start at index `first`.
    """
    walls, spans, ahead = grid.walls, beams.spans, beams.ahead
    dir_x, dir_y = beams.dir_x, beams.dir_y
    last, turn = float(view.beams - 1), TWO_PI * view.per_step
    for j in range(cells[2], cells[3] + 2):
        row, row_end = list_of(grid.wall_start, grid.wall_nx, grid.wall_ny, cells, j)
        for k in range(row, row_end, WALLS_AT_ONCE):
            count = min(row_end - k, WALLS_AT_ONCE)
            find_spans(walls, view, k, (count + WALL_LANES - 1) // WALL_LANES, spans)
            for n in range(count):
                low, high = spans[0, n], spans[1, n]
                # A span may cross the cut of the angle, behind the middle beam.
                for t in range(
                    -1 if high >= turn else 0, 2 if low + turn <= last else 1
                ):
                    begin, end = (
                        int(max(low + t * turn, 0.0) + ROUND_UP),
                        int(min(high + t * turn, last) + 1.0),
                    )
                    # Small walls lie between two beams.
                    if begin < end:
                        shorten_span(
                            dir_x,
                            dir_y,
                            ahead,
                            first,
                            begin,
                            end,
                            (
                                walls[0, k + n] - view.x,
                                walls[1, k + n] - view.y,
                                walls[2, k + n],
                                walls[3, k + n],
                            ),
                            spans[2, n],
                        )


@merged_kernel
def meet_walls_at_once(
    grid: Grid, fans: Fans, beams: Beams, device: Device, b: int, reach: float
) -> bool:
    """Shorten the beams of bundle `b` to the walls that they hit, within `reach` m.

    Returns
    -------
    bool
        False if too many walls are near for this to save time; nothing is changed then.
    """
    raw, bright, ahead, h, inv = (
        beams.raw,
        beams.bright,
        beams.ahead,
        grid.h,
        1.0 / grid.h,
    )
    first, count, step = (
        fans.beam_first[b] - fans.beam_first[device.first],
        fans.beam_first[b + 1] - fans.beam_first[b],
        fans.step[b],
    )
    # Beyond a circle, a wall may have several spans.
    if not (step > 0.0 and (count - 1) * step <= TWO_PI * (1.0 + 1e-9)):
        return False
    view = view_of(grid, fans, device, b, reach)
    cells = wide_cells(grid, box_in_view(fans, device, b, view))
    walls = count_walls(grid, cells, count)
    if walls > WALLS_PER_BEAM * count:
        return False
    # Bodies and near walls may end all beams before most of these walls. Then the walk,
    # which takes as long as beams are, looks at fewer walls.
    if not few_for_spans(walls, count, 0.0) and not few_for_spans(
        walls, count, probe_length(grid, fans, beams, device, first, count)
    ):
        return False
    for n in range(count):
        ahead[n] = raw[np.uint64(first + n)] * inv
    meet_listed(grid, beams, view, cells, first)
    for n in range(count):
        k = np.uint64(first + n)
        bright[k] = 1 if ahead[n] < raw[k] * inv else bright[k]
    for n in range(count):
        k = np.uint64(first + n)
        raw[k] = min(ahead[n] * h, raw[k]) if ahead[n] < raw[k] * inv else raw[k]

    return True


__all__ = [
    "WALLS_AT_ONCE",
    "has_few_walls",
    "list_of",
    "meet_walls_at_once",
    "wide_cells",
]
