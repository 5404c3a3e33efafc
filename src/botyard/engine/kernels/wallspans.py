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
"""Parameters of `few_for_spans`: walls per beam for beams without length, and their
increase for each cell of length.

Measured in a hospital with 1000 robots, where beams are short, and in squares with 100
to 3000 walls.
"""
BEAMS_PER_PROBE = 45
"""Number of beams of a bundle for each beam that is walked to estimate their mean length."""
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
"""Range of a beam that misses a wall: greater than all ranges."""
ROUND_UP = 1.0 - 1e-6
"""Part of a beam that is added before a number of beams is rounded down.

The rest is far less than `MARGIN`.
"""
# Far above the numbers of beams, and still exact when it is rounded to an integer.
NEVER = 1e15
"""First beam of the span of a wall that no beam can meet."""
UNKNOWN = 1 << 62
"""Value in place of a number of walls that would take too long to count."""
TWO_PI = 2.0 * math.pi


class View(NamedTuple):
    """Geometry of a bundle (beams from one origin), from which spans of walls are computed.

    All lengths are in cells of the grid, in its frame.

    Attributes
    ----------
    x, y : float
        Origin of the beams.
    cosine, sine : float
        Direction of the beam `middle`.
    middle : float
        Number of the bundle's middle beam, from which bearings are measured.
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
    """Return origin, direction, spacing and reach of a bundle, in cells of the grid.

    Parameters
    ----------
    grid : Grid
        Static world.
    fans, device : Fans, Device
        Devices, and the one that owns the bundle.
    b : int
        Number of the bundle in `fans`.
    reach : float
        Present range of the longest beam of the bundle, m.
    """
    x, y, c, s = device.x, device.y, device.cosine, device.sine
    first, count, inv = (
        fans.beam_first[b],
        fans.beam_first[b + 1] - fans.beam_first[b],
        1.0 / grid.h,
    )
    # Bearings jump by 2π opposite of the middle beam, far from all beams.
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
        # Errors of bearing may turn a beam out of its place by half their width.
        MARGIN + fans.a_noise[b],
        # The margin keeps walls that rounding moves just beyond the longest beam.
        reach * inv * (1.0 + 1e-9),
        count,
    )


@merged_kernel
def box_in_view(
    fans: Fans, device: Device, b: int, view: View
) -> tuple[float, float, float, float]:
    """Return bounds of all points that the beams of a bundle may reach.

    Parameters
    ----------
    fans, device : Fans, Device
        Devices, and the one that owns the bundle.
    b : int
        Number of the bundle in `fans`.
    view : View
        Result of `view_of` for this bundle.

    Returns
    -------
    tuple of float
        Least and greatest x, least and greatest y, in cells of the grid.
    """
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

    Parameters
    ----------
    grid : Grid
        Static world.
    box : tuple of float
        Least and greatest x, least and greatest y, in cells of the grid.

    Returns
    -------
    tuple of int
        First and last column, first and last row. If there are none, a last one is less
        than its first one.
    """
    inv, half = 1.0 / grid.wall_cell, grid.wall_half
    i0, i1 = bin_span(box[0] - half, box[1] + half, 0.0, inv, grid.wall_nx)
    j0, j1 = bin_span(box[2] - half, box[3] + half, 0.0, inv, grid.wall_ny)
    return i0, i1, j0, (j1 if i1 >= i0 else j0 - 1)


@inline_kernel
def list_of(
    start: I4, nx: int, ny: int, cells: tuple[int, int, int, int], j: int
) -> tuple[int, int]:
    """Return the first wall, and the end, of one row of wide cells.

    The cells of a row are adjacent in the lists, so that one interval holds their
    walls.

    Parameters
    ----------
    start : (nx·ny + 2,) int32
        `Grid.wall_start`.
    nx, ny : int
        Number of wide cells of the grid.
    cells : tuple of int
        First and last column, first and last row, as from `wide_cells`.
    j : int
        Row of cells. The row after the last one of `cells` has the long walls.
    """
    i0, i1, _, j1 = cells
    return (
        (start[j * nx + i0], start[j * nx + i1 + 1])
        if j <= j1
        else (start[nx * ny], start[nx * ny + 1])
    )


@inline_kernel
def count_walls(grid: Grid, cells: tuple[int, int, int, int], beams: int) -> int:
    """Return the number of walls in some wide cells, long walls included.

    Parameters
    ----------
    grid : Grid
        Static world.
    cells : tuple of int
        First and last column, first and last row, as from `wide_cells`.
    beams : int
        Number of beams of the bundle.

    Returns
    -------
    int
        Number of walls. `UNKNOWN` if a scene has no lists, and if there are more rows
        of cells than beams: to count their walls takes too long.
    """
    # Many rows of cells would take longer to count than to walk.
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
    """Return whether spans save time compared with a walk through the grid.

    Parameters
    ----------
    walls, beams : int
        Number of walls that spans would read, and of beams.
    length : float
        Mean length of the beams, cells: a walk takes time in proportion.
    """
    return walls <= beams * (FEW_PER_BEAM + MORE_PER_CELL * length)


@inline_kernel
def probe_length(
    grid: Grid, fans: Fans, beams: Beams, device: Device, first: int, count: int
) -> float:
    """Return the mean length of a few beams of a bundle, after a walk, in cells.

    The beams are spread evenly over the bundle. They get the same ranges that the
    search by spans finds for them.

    Parameters
    ----------
    grid : Grid
        Static world.
    fans, beams, device : Fans, Beams, Device
        Devices, the beams of this one, and the device. In-place: the walked beams
        become shorter.
    first, count : int
        Beams of the bundle in `beams`: first … first + count − 1.
    """
    probes, total = 2 + count // BEAMS_PER_PROBE, 0.0
    # Probe the middle beams of equal parts of the bundle.
    for n in range(probes):
        k = first + (2 * n + 1) * count // (2 * probes)
        place_beams(fans, beams, device, k, k + 1)
        walk_beams(grid, beams, k, k + 1, device.mask)
        total += beams.raw[k]
    return total / (grid.h * probes)


@merged_kernel
def find_spans(walls: F8, view: View, row: int, groups: int, spans: F8) -> None:
    """Write the spans of some walls, in beams of a bundle.

    Parameters
    ----------
    walls : (4, w) float64
        `Grid.walls`: start points and vectors to the end points, cells.
    view : View
        View of the bundle.
    row : int
        First wall, a column of `walls`.
    groups : int
        Number of groups of `WALL_LANES` walls; the last group may extend past the walls
        of a list, whose spans then are not read.
    spans : (3, WALLS_AT_ONCE) float64
        Output: first and last beam of each span, which are fractions and may lie
        outside of the bundle, and the squared distance of the wall, cells². A wall
        beyond the reach gets `NEVER` as its first beam.
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
        # Find the nearest point of the wall; for a wall without length it is the start.
        u = min(max(-(ax * ex + ay * ey) / length2, 0.0), 1.0)
        u = u if length2 > 0.0 else 0.0
        px, py = ax + u * ex, ay + u * ey
        square = px * px + py * py
        # The bearings of both ends relative to the middle beam. The wall covers less than
        # half a circle, counter-clockwise from one to the other.
        a, b = (
            about_atan2(c * ay - s * ax, c * ax + s * ay),
            about_atan2(c * by - s * bx, c * bx + s * by),
        )
        is_left = ax * ey - ay * ex >= 0.0
        first, width = (a if is_left else b), (b - a if is_left else a - b)
        width = width + TWO_PI if width < 0.0 else width
        # A very large width is a small width that rounding made negative.
        width = 0.0 if width > 1.5 * math.pi else width
        # The ends of a near wall have no exact bearings: test all beams.
        is_near = square <= NEAR_END_2 + NEAR_END_SHARE_2 * length2
        low = (first - margin) * per_step + middle
        high = low + (width + 2.0 * margin) * per_step
        low, high = (0.0 if is_near else low), (last if is_near else high)
        # The test also excludes padding, whose distance is NaN.
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
    """Return the distance along a ray to a wall, or `BEYOND` if it misses the wall.

    This is `segment_range` with one product computed ahead. A wall nearer than `least`
    is missed: seen along its length, a wall behind another one could appear anywhere.

    Parameters
    ----------
    ax, ay : float
        Start of the wall from the origin of the ray, cells.
    ex, ey : float
        Vector from the start to the end of the wall, cells.
    cross : float
        ax·ey − ay·ex, cells².
    dx, dy : float
        Direction of the ray, a unit vector.
    least : float
        Lower bound of the distance of the wall, cells.
    """
    # A parallel ray divides by 0; the comparisons below are then false.
    scale = 1.0 / (dx * ey - dy * ex)
    t = cross * scale
    u = (ax * dy - ay * dx) * scale
    return (
        # `&` instead of `and` keeps the loop free of branches.
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

    Whole groups of `WALL_LANES` beams are tested, because the test is exact for any
    beam.

    Parameters
    ----------
    dir_x, dir_y : (n,) float64
        Directions of the device's beams, unit vectors.
    ahead : (n,) float64
        In-place: ranges of the bundle's beams, cells.
    first : int
        Index of the bundle's first beam in `dir_x` and `dir_y`.
    lo, hi : int
        Beams of the span, counted within the bundle.
    wall : tuple of float
        Start of the wall from the origin of the beams, and vector to its end, cells.
    square : float
        Squared distance of the wall from the origin, cells².
    """
    ax, ay, ex, ey = wall
    cross = ax * ey - ay * ex
    # Least distance at which a beam may meet the wall, less the effect of rounding. If
    # an end of the wall is near the origin, `square` is too inaccurate for a bound.
    least = (
        math.sqrt(square) * (1.0 - 1e-9)
        if square > NEAR_END_2 + NEAR_END_SHARE_2 * (ex * ex + ey * ey)
        else 0.0
    )
    # Read aligned groups: the negative power of two clears the lower bits.
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

    Parameters
    ----------
    grid : Grid
        Static world.
    beams : Beams
        Beams of the device. In-place: `ahead`, ranges of the bundle's beams, cells;
        `spans` is workspace.
    view : View
        View of the bundle.
    cells : tuple of int
        First and last column, first and last row, as from `wide_cells`.
    first : int
        Index of the bundle's first beam in `beams`.
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
                # A span may cross the jump of bearings, opposite of the middle beam.
                for t in range(
                    -1 if high >= turn else 0, 2 if low + turn <= last else 1
                ):
                    begin, end = (
                        int(max(low + t * turn, 0.0) + ROUND_UP),
                        int(min(high + t * turn, last) + 1.0),
                    )
                    # A small wall between two beams has no span.
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
    """Shorten the beams of a bundle to the walls that they hit.

    Parameters
    ----------
    grid : Grid
        Static world; one that is not plain has no lists of walls, which gives False.
    fans, beams : Fans, Beams
        Devices, and the beams of this one. In-place: `raw`, m, and `bright` of beams
        that hit a wall; `ahead` and `spans` are workspace.
    device : Device
        Device that owns the bundle.
    b : int
        Number of the bundle in `fans`.
    reach : float
        Present range of the longest beam of the bundle, m.

    Returns
    -------
    bool
        False if too many walls are near for spans to save time, or if the fan is wider
        than a circle. Beams that were probed are then shorter; a walk has to do the
        rest.
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
    # If the bundle covers more than a circle, a wall may have several spans.
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
    # Convert ranges to cells, because the arithmetic of walls is in cells.
    for n in range(count):
        ahead[n] = raw[np.uint64(first + n)] * inv
    meet_listed(grid, beams, view, cells, first)
    for n in range(count):
        k = np.uint64(first + n)
        # Set the returns before the ranges: afterwards the comparison would fail.
        bright[k] = 1 if ahead[n] < raw[k] * inv else bright[k]
    for n in range(count):
        k = np.uint64(first + n)
        # Convert only shortened beams back: other beams must keep all their bits.
        raw[k] = min(ahead[n] * h, raw[k]) if ahead[n] < raw[k] * inv else raw[k]

    return True


__all__ = [
    "WALLS_AT_ONCE",
    "has_few_walls",
    "list_of",
    "meet_walls_at_once",
    "wide_cells",
]
