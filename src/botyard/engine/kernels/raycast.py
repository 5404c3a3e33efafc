"""Exact ray casting: against the static world through its grid, and against moving bodies through their outlines.

The static part walks the grid from cell to cell, jumping over free squares; it tests the segments of the cells that it enters
(method and figures: reference performance.md §2–3). Moving bodies are never in the grid: each one near a sensor is turned into an
interval or a set of beams and tested against those only. Ranges are float64 metres; a ray that meets nothing keeps its greatest range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.elementary import cosine_sine, hypot
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.layout import F8, I2, I4, I8, U2, U8, Bins, Bodies, Grid, State

END_TOLERANCE = 1e-12
"""Segments are this much longer at both ends, relative to their length, so that no ray slips through a corner."""
MIN_COMPONENT = 1e-12
"""Direction components smaller than this are made this large, so that 1/d stays finite."""
TWO_PI = 2.0 * math.pi
BEARING_ERROR = 2e-5
"""Bound of the error of `about_atan2`, rad."""
FEW_BEAMS = 6
"""For devices with more beams per origin the interval of beams that a body covers is computed; of others all beams are tried."""
FIRST_SHELL = 2.0
"""Bodies this near, m, are tested before the walls, so that the beams they stop need not be walked any farther."""
SHELL_GROWTH = 2.5
"""Ratio of the squares around a device in which bodies are looked for, one after the other."""
MISSING_DRAWS = 1 << 32
"""Number of the first draw for missing readings in the stream of a device: those of ranges and bearings are before it."""
SECTORS = 32
"""Directions in which a device notes how far its beams reach; see `sector_of`."""


class Fans(NamedTuple):
    """All devices of one kind of sensor, and what their beams are: devices with the same beams share a *kind*.

    A kind has bundles (beams from one origin), a bundle has beams. Everything is in the frame of the body that carries the device.

    Attributes
    ----------
    row : (n_devices,) int64
        Body that carries the device.
    key : (n_devices,) uint64
        Device number in the random streams.
    mask : (n_devices,) uint16
        `Visible` class that the device senses.
    kind : (n_devices,) int64
        Its kind.
    out : (n_devices,) int64
        Where its readings begin in the output.
    first : (n_kinds + 1,) int64
        Kind k owns the bundles first[k] … first[k + 1] − 1.
    offset : (n_kinds,) float64
        Distance of the farthest origin from the body's, m.
    mount : (n_bundles, 3) float64
        Origin and direction, m and rad.
    beam_first : (n_bundles + 1,) int64
        Bundle b owns the beams beam_first[b] … beam_first[b + 1] − 1.
    angle0, step : (n_bundles,) float64
        Bearing of the first beam and spacing, rad.
    r_min, r_max : (n_bundles,) float64
        Range limits, m.
    r_noise, a_noise : (n_bundles,) float64
        Half-widths of the uniform errors of range, m, and bearing, rad.
    missing : (n_bundles,) float64
        Share of readings without a return, 0 … 1.
    bright_range, bright_cos : (n_bundles,) float64
        Bright returns count only up to this range, m, and where the cosine of the incidence is at least this.
    bright_as : (n_bundles,) int16
        What a laser return of 2 is reported as.
    readings : (n_bundles + 1,) int64
        Bundle b gives readings[b + 1] − readings[b] readings; one with one reading and several beams gives the shortest.
    beam_x, beam_y : (n_beams,) float64
        Origin of each beam, m.
    beam_cos, beam_sin : (n_beams,) float64
        Direction of each beam.
    beam_r_max : (n_beams,) float64
        Greatest range of each beam, m.
    beam_sector : (n_beams,) int64
        `sector_of` each beam's direction.
    """

    row: I8
    key: U8
    mask: U2
    kind: I8
    out: I8
    first: I8
    offset: F8
    mount: F8
    beam_first: I8
    angle0: F8
    step: F8
    r_min: F8
    r_max: F8
    r_noise: F8
    a_noise: F8
    missing: F8
    bright_range: F8
    bright_cos: F8
    bright_as: I2
    readings: I8
    beam_x: F8
    beam_y: F8
    beam_cos: F8
    beam_sin: F8
    beam_r_max: F8
    beam_sector: I8


class Beams(NamedTuple):
    """Workspace for the beams of one device, in the world; threads have one each. It is small, and stays in the L1 cache.

    Attributes
    ----------
    org_x, org_y : (n,) float64
        Origin of each beam, m; n is the greatest number of beams of a device.
    dir_x, dir_y : (n,) float64
        Direction of each beam.
    raw : (n,) float64
        Exact range of each beam, m.
    bright : (n,) int16
        Laser return of what each beam met; 0 for nothing.
    cosine : (n,) float64
        Cosine of the incidence at bright surfaces.
    reach : (m, SECTORS) float64
        How far, m, the beams of each bundle reach in each sector and the two beside it; m is the greatest number of bundles of a device.
    """

    org_x: F8
    org_y: F8
    dir_x: F8
    dir_y: F8
    raw: F8
    bright: I2
    cosine: F8
    reach: F8


Walk = tuple[float, float, float, float, float, float, int, int, int, int, int, int, float]
"""A ray in a grid that is mirrored so that it goes towards +x and +y.

Origin and direction; 1 / direction; what one cell ahead in x, one in y, and the first cell add to the number of a cell; where the
clearances of its quadrant begin; the cell in which it begins, and the length at which it enters it. All lengths in cells.
"""


@inline_kernel
def away_from_zero(d: float) -> float:
    """`d`, or ± the least component allowed."""
    if abs(d) < MIN_COMPONENT:
        return -MIN_COMPONENT if d < 0.0 else MIN_COMPONENT
    return d


@inline_kernel
def segment_range(ax: float, ay: float, ex: float, ey: float, dx: float, dy: float, best: float) -> float:
    """Distance along the ray (dx, dy) from the origin to the segment that starts at (ax, ay) with vector (ex, ey).

    Returns `best` when the segment is missed or not nearer. Solves origin + t·d = a + u·e for t ≥ 0 and 0 ≤ u ≤ 1. A parallel
    segment gives infinite or undefined t and u, which fail the comparisons; these are joined without branches, because nobody can
    predict which of them fails.
    """
    scale = 1.0 / (dx * ey - dy * ex)
    t = (ax * ey - ay * ex) * scale
    u = (ax * dy - ay * dx) * scale
    return t if (t >= 0.0) & (t < best) & (u >= -END_TOLERANCE) & (u <= 1.0 + END_TOLERANCE) else best


@inline_kernel
def aim(gx: float, gy: float, dx: float, dy: float, nx: int, ny: int, t_max: float) -> Walk:
    """Begin the walk of a ray through the grid (Amanatides & Woo, 1987, with jumps over free squares); see `Walk`."""
    px, sx, base = (gx, 1, 0) if dx > 0.0 else (nx - gx, -1, nx - 1)
    py, sy, low = (gy, nx, 0) if dy > 0.0 else (ny - gy, -nx, (ny - 1) * nx)
    mx, my = abs(dx), abs(dy)
    inv_x, inv_y = 1.0 / mx, 1.0 / my
    t = 0.0
    ix, iy = 0, 0
    if (px < 0.0) | (py < 0.0) | (px >= nx) | (py >= ny):  # it enters the grid later, or never
        t = max(-px * inv_x, -py * inv_y, 0.0)
        if t < min((nx - px) * inv_x, (ny - py) * inv_y, t_max):
            ix, iy = min(int(max(px + t * mx, 0.0)), nx - 1), min(int(max(py + t * my, 0.0)), ny - 1)
        else:
            t = math.inf
    else:
        ix, iy = int(px), int(py)
    quadrant = ((1 if dx > 0.0 else 0) + (2 if dy > 0.0 else 0)) * nx * ny
    return px, py, mx, my, inv_x, inv_y, sx, sy, base + low, quadrant, ix, iy, t


@inline_kernel
def stride(walk: Walk, ix: int, iy: int, side: int, nx: int, ny: int) -> tuple[int, int, float]:
    """The cell after a free square of `side` cells, and the length at which the ray enters it: infinite beyond the grid.

    The coordinate that does not decide is computed anew, but may only grow: at a corner rounding could put the ray one cell back, and
    it would bounce for ever.
    """
    px, py, mx, my, inv_x, inv_y = walk[0], walk[1], walk[2], walk[3], walk[4], walk[5]
    tx, ty = (ix + side - px) * inv_x, (iy + side - py) * inv_y
    t = min(tx, ty)
    jx, jy = max(ix, int(px + t * mx)), max(iy, int(py + t * my))
    jx, jy = (ix + side, jy) if tx < ty else (jx, iy + side)
    left = (jx >= nx) | (jy >= ny)
    return (ix if left else jx), (iy if left else jy), (math.inf if left else t)


@merged_kernel
def aim_beams(fans: Fans, beams: Beams, b0: int, b1: int, x: float, y: float, th: float, key: int) -> None:
    """Write origins and directions of all beams of the bundles `b0` … `b1` − 1, as long as they can be.

    `x`, `y`, `th`: pose of the body that carries them; `key`: random stream of the device.
    """
    dir_x, dir_y, org_x, org_y = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y
    raw, bright, cosine = beams.raw, beams.bright, beams.cosine
    beam_cos, beam_sin, beam_x, beam_y, r_max = fans.beam_cos, fans.beam_sin, fans.beam_x, fans.beam_y, fans.beam_r_max
    beam_first, wobbles = fans.beam_first, fans.a_noise
    first, last = beam_first[b0], beam_first[b1]
    c, s = cosine_sine(th)
    # short loops over few arrays, which the compiler turns into vector instructions
    for j in range(first, last):
        bc, bs = beam_cos[j], beam_sin[j]
        dir_x[j - first], dir_y[j - first] = away_from_zero(c * bc - s * bs), away_from_zero(s * bc + c * bs)
    for j in range(first, last):
        bx, by = beam_x[j], beam_y[j]
        org_x[j - first], org_y[j - first] = x + c * bx - s * by, y + s * bx + c * by
    for j in range(first, last):
        raw[j - first], bright[j - first], cosine[j - first] = r_max[j], 0, 0.0
    for b in range(b0, b1):
        wobble = wobbles[b]
        if wobble > 0.0:  # errors of bearing: a rotation of each beam by its own draw
            for j in range(beam_first[b] - first, beam_first[b + 1] - first):
                error = wobble * symmetric(np.uint64(key), np.uint64(2 * j))
                ec, es = cosine_sine(error)
                dx, dy = dir_x[j], dir_y[j]
                dir_x[j], dir_y[j] = away_from_zero(dx * ec - dy * es), away_from_zero(dx * es + dy * ec)


@kernel
def nearest_seen(start: I4, seg: F8, classes: U2, wanted: np.uint16, cell: np.uint64, gx: float, gy: float, dx: float, dy: float,
                 best: float, hit: int) -> tuple[float, int]:  # fmt: skip
    """The nearest segment of the classes `wanted` in a cell on a ray, if it is nearer than `best`: range in cells, and entry."""
    for k in range(start[cell], start[cell + np.uint64(1)]):
        t = segment_range(seg[k, 0] - gx, seg[k, 1] - gy, seg[k, 2], seg[k, 3], dx, dy, best)
        if t < best and classes[k] & wanted:  # the device passes through walls of other classes
            best, hit = t, k
    return best, hit


@merged_kernel
def walk_beams(grid: Grid, beams: Beams, count: int, mask: int) -> None:
    """Shorten the first `count` beams to what they meet of the static world.

    Beams go in pairs: the steps of the one fill the time in which the processor waits for the other's, which makes them a fifth
    faster. In a plain grid, where all entries are alike to any sensor, it is not noted which entry was hit. All lengths are in cells.
    """
    dir_x, dir_y, org_x, org_y = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y
    raw, bright, cosine = beams.raw, beams.bright, beams.cosine
    nx, ny, h, plain, x0, y0 = grid.nx, grid.ny, grid.h, grid.plain, grid.x0, grid.y0
    start, seg, classes, brights = grid.start, grid.seg, grid.mask, grid.bright
    clear = grid.clear_flat
    wanted = np.uint16(mask)
    inv = 1.0 / h
    for j in range(0, count, 2):
        # the last beam of an odd number goes with itself; what is written twice is the same
        j2 = min(j + 1, count - 1)
        gx, gy, dx, dy, best = (org_x[j] - x0) * inv, (org_y[j] - y0) * inv, dir_x[j], dir_y[j], raw[j] * inv
        gx2, gy2, dx2, dy2 = (org_x[j2] - x0) * inv, (org_y[j2] - y0) * inv, dir_x[j2], dir_y[j2]
        best2 = raw[j2] * inv
        before, before2 = best, best2
        hit, hit2 = -1, -1
        walk, walk2 = aim(gx, gy, dx, dy, nx, ny, best), aim(gx2, gy2, dx2, dy2, nx, ny, best2)
        ix, iy, t = walk[10], walk[11], walk[12]
        ix2, iy2, t2 = walk2[10], walk2[11], walk2[12]
        while (t < best) | (t2 < best2):
            # unsigned: saves the test for an index that counts from the end
            cell = np.uint64(walk[8] + ix * walk[6] + iy * walk[7])
            cell2 = np.uint64(walk2[8] + ix2 * walk2[6] + iy2 * walk2[7])
            side, side2 = int(clear[np.uint64(walk[9]) + cell]), int(clear[np.uint64(walk2[9]) + cell2])
            if side == 0:  # the cell has entries: test them, then go on to the next cell
                side = 1
                if t < best:  # else this beam has ended, and only the other one of the pair goes on
                    if plain:
                        for k in range(start[cell], start[cell + np.uint64(1)]):
                            e = np.uint64(k)
                            best = segment_range(seg[e, 0] - gx, seg[e, 1] - gy, seg[e, 2], seg[e, 3], dx, dy, best)
                    else:
                        best, hit = nearest_seen(start, seg, classes, wanted, cell, gx, gy, dx, dy, best, hit)
            if side2 == 0:
                side2 = 1
                if t2 < best2:
                    if plain:
                        for k in range(start[cell2], start[cell2 + np.uint64(1)]):
                            e = np.uint64(k)
                            best2 = segment_range(
                                seg[e, 0] - gx2, seg[e, 1] - gy2, seg[e, 2], seg[e, 3], dx2, dy2, best2
                            )
                    else:
                        best2, hit2 = nearest_seen(start, seg, classes, wanted, cell2, gx2, gy2, dx2, dy2, best2, hit2)
            ix, iy, t = stride(walk, ix, iy, side, nx, ny)
            ix2, iy2, t2 = stride(walk2, ix2, iy2, side2, nx, ny)
        if best < before:  # it has met a wall
            raw[j] = min(best * h, raw[j])
            bright[j] = 1 if plain else brights[hit]
            if bright[j] > 1:  # a reflector: whether it is seen depends on the incidence, see `finish_bright`
                cosine[j] = abs(dx * seg[hit, 3] - dy * seg[hit, 2]) / hypot(seg[hit, 2], seg[hit, 3])
        if best2 < before2:
            raw[j2] = min(best2 * h, raw[j2])
            bright[j2] = 1 if plain else brights[hit2]
            if bright[j2] > 1:
                cosine[j2] = abs(dx2 * seg[hit2, 3] - dy2 * seg[hit2, 2]) / hypot(seg[hit2, 2], seg[hit2, 3])


@inline_kernel
def about_atan2(y: float, x: float) -> float:
    """atan2(y, x), off by less than `BEARING_ERROR`, for a third of its time (Abramowitz & Stegun, 4.4.49)."""
    ax, ay = abs(x), abs(y)
    z = min(ax, ay) / max(ax, ay)
    q = z * z
    a = z * (0.9998660 + q * (-0.3302995 + q * (0.1801410 + q * (-0.0851330 + q * 0.0208351))))
    a = 0.5 * math.pi - a if ay > ax else a
    a = math.pi - a if x < 0.0 else a
    return -a if y < 0.0 else a


@inline_kernel
def seen_half(u: float) -> float:
    """A bound for half the angle in which a circle is seen whose radius is `u` of its distance, 0 ≤ u < 1: above asin(u)."""
    return u * (1.0 + 0.25 * u * u if u < 0.6 else 0.5 * math.pi) + BEARING_ERROR


@inline_kernel
def sector_of(x: float, y: float) -> int:
    """Number of the sector, 0 … SECTORS − 1, in which the direction (x, y) lies.

    A quarter of a circle has a quarter of them; in it they are equal parts of y / (x + y), which needs no arctangent. None is narrower
    than 4 / SECTORS rad.
    """
    ax, ay = abs(x), abs(y)
    part = ay / max(ax + ay, MIN_COMPONENT)
    part = 2.0 - part if x < 0.0 else part
    part = 4.0 - part if y < 0.0 else part
    return min(int(part * (0.25 * SECTORS)), SECTORS - 1)


@inline_kernel
def longest(raw: F8, count: int) -> float:
    """The longest of the first `count` beams, m."""
    most = 0.0
    for j in range(count):
        most = max(most, raw[j])
    return most


@merged_kernel
def note_reach(fans: Fans, beams: Beams, b0: int, b1: int) -> float:
    """Write `Beams.reach` for the bundles `b0` … `b1` − 1; the greatest of all, m."""
    raw, reach, sectors, beam_first = beams.raw, beams.reach, fans.beam_sector, fans.beam_first
    first = beam_first[b0]
    most = 0.0
    for b in range(b0, b1):
        n = b - b0
        for k in range(SECTORS):
            reach[n, k] = 0.0
        for j in range(beam_first[b], beam_first[b + 1]):
            k = sectors[j]
            reach[n, k] = max(reach[n, k], raw[j - first])
        # a body at the border of its sector may be met by beams of the next one: each gets the greatest of itself and both neighbours
        head, before = reach[n, 0], reach[n, SECTORS - 1]
        for k in range(SECTORS):
            here = reach[n, k]
            after = reach[n, k + 1] if k + 1 < SECTORS else head
            reach[n, k] = max(max(before, here), after)
            most = max(most, here)
            before = here
    return most


@inline_kernel
def meets_circle(rx: float, ry: float, dx: float, dy: float, radius: float, r: float) -> bool:
    """Whether a beam of length `r` in the direction (`dx`, `dy`) may touch a circle around (`rx`, `ry`); without branches."""
    along = rx * dx + ry * dy
    return (abs(rx * dy - ry * dx) <= radius) & (along >= -radius) & (along - radius < r)


class Device(NamedTuple):
    """A device whose beams are cast, and the body that carries it.

    Attributes
    ----------
    row, mask : int
        Row of the body; `Visible` class that the device senses.
    x, y, heading, cosine, sine : float
        Pose of the body, m, m, rad; cosine and sine of its heading.
    first, end : int
        Its bundles: first … end − 1.
    n_beams : int
        How many beams it has.
    """

    row: int
    mask: int
    x: float
    y: float
    heading: float
    cosine: float
    sine: float
    first: int
    end: int
    n_beams: int


class Target(NamedTuple):
    """A body that beams may meet.

    Attributes
    ----------
    x, y, radius : float
        Its circle, m.
    bright : int
        Its laser return.
    first, end : int
        Its polygons: first … end − 1.
    """

    x: float
    y: float
    radius: float
    bright: int
    first: int
    end: int


@inline_kernel
def shorten(beams: Beams, j: int, target: Target, bodies: Bodies) -> None:
    """Shorten beam `j` to the nearest edge of a body's outline that it meets."""
    world, vert_start = bodies.world, bodies.vert_start
    ox, oy, dx, dy, exact = beams.org_x[j], beams.org_y[j], beams.dir_x[j], beams.dir_y[j], beams.raw[j]
    best, hit_x, hit_y = exact, 0.0, 0.0
    for p in range(target.first, target.end):
        v0, v1 = vert_start[p], vert_start[p + 1]
        ax, ay = world[v1 - 1, 0] - ox, world[v1 - 1, 1] - oy
        a = ax * dy - ay * dx
        for v in range(v0, v1):
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            b = bx * dy - by * dx
            # without branches, which no processor could predict here: a division for each edge is cheaper
            t = (ax * by - ay * bx) / (a - b)
            nearer = ((a < 0.0) != (b < 0.0)) & (t < best) & (t >= 0.0)
            best, hit_x, hit_y = (t if nearer else best), (bx - ax if nearer else hit_x), (by - ay if nearer else hit_y)
            ax, ay, a = bx, by, b
    if best < exact:
        beams.raw[j], beams.bright[j] = best, target.bright
        if target.bright > 1:  # devices ask under what angle they see a reflector
            beams.cosine[j] = abs(dx * hit_y - dy * hit_x) / hypot(hit_x, hit_y)


@inline_kernel
def meet_by_bearing(fans: Fans, beams: Beams, bodies: Bodies, device: Device, b: int, target: Target) -> None:
    """Shorten the beams of bundle `b` that meet a body.

    Beams are ruled out by tests that get dearer: sectors in which no beam reaches the body's circle, the interval of beams that the circle
    covers, beams that end before it, the circle, the outline.
    """
    dir_x, dir_y, raw, mount = beams.dir_x, beams.dir_y, beams.raw, fans.mount
    b0, c, s, radius = device.first, device.cosine, device.sine, target.radius
    ex, ey = target.x - device.x, target.y - device.y
    rx, ry = ex - c * mount[b, 0] + s * mount[b, 1], ey - s * mount[b, 0] - c * mount[b, 1]  # from the bundle's origin
    distance = math.sqrt(rx * rx + ry * ry)
    near = distance - radius
    # a body no wider than the narrowest sector is met only by beams of its sector and the two beside it
    narrow = 1.01 * radius + fans.a_noise[b] * distance < (4.0 / SECTORS) * distance
    if narrow & (near >= beams.reach[b - b0, sector_of(c * rx + s * ry, c * ry - s * rx)]):
        return
    start, end = fans.beam_first[b] - fans.beam_first[b0], fans.beam_first[b + 1] - fans.beam_first[b0]
    lo, hi, turns = start, end - 1, 1
    bearing = half = per_step = 0.0
    if near > 0.0:
        # the bearings of the body's circle as an interval of beams; it may reach across the cut of the angle
        half = seen_half(radius / distance) + fans.a_noise[b]
        bearing = about_atan2(ry, rx) - (device.heading + mount[b, 2] + fans.angle0[b])
        bearing -= TWO_PI * math.floor(bearing / TWO_PI)
        if bearing > math.pi:
            bearing -= TWO_PI
        per_step = 1.0 / fans.step[b]
        turns = 2
    for _ in range(turns):
        if near > 0.0:  # else the origin is within the circle, and every beam may meet it
            low, high = (bearing - half) * per_step, (bearing + half) * per_step
            bearing += TWO_PI
            if high < 0.0 or low > end - start - 1:  # beside the fan
                continue
            lo, hi = start + int(max(low, 0.0)), min(end - 1, start + int(high) + 1)
        for j in range(lo, hi + 1):
            if raw[j] <= near:  # it ends before the circle
                continue
            if meets_circle(rx, ry, dir_x[j], dir_y[j], radius, raw[j]):
                shorten(beams, j, target, bodies)


@inline_kernel
def meet_by_all(beams: Beams, bodies: Bodies, count: int, target: Target) -> None:
    """Shorten those of the first `count` beams that meet a body.

    All beams are tried against the circle at once, by vector instructions: that takes less time than to compute which ones may meet it.
    """
    dir_x, dir_y, org_x, org_y, raw = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y, beams.raw
    for first in range(0, count, 64):
        met = np.uint64(0)
        for n in range(min(count - first, 64)):
            k = np.uint64(first + n)  # unsigned: saves the test for an index that counts from the end
            hit = meets_circle(target.x - org_x[k], target.y - org_y[k], dir_x[k], dir_y[k], target.radius, raw[k])
            met |= np.uint64(hit) << np.uint64(n)
        j = first
        while met != np.uint64(0):
            if met & np.uint64(1):
                shorten(beams, j, target, bodies)
            met = met >> np.uint64(1)
            j += 1


@inline_kernel
def meet_bin_row(bodies: Bodies, bins: Bins, brights: I2, fans: Fans, beams: Beams, device: Device, begin: int, end: int,
                 reach: float) -> None:  # fmt: skip
    """Shorten the beams of a device to bodies in the bins `begin` … `end`, which lie side by side, as far as `reach` m."""
    at, part_start = bins.at, bodies.part_start
    for n in range(bins.start[begin], bins.start[end + 1] if end >= begin else 0):
        ex, ey, radius = at[n, 0] - device.x, at[n, 1] - device.y, at[n, 2]
        far = reach + radius
        other = bins.rows[n]
        # most bodies in these bins are out of reach; some cannot be seen, and nobody sees itself
        if ex * ex + ey * ey > far * far or not int(bins.classes[n]) & device.mask or other == device.row:
            continue
        target = Target(at[n, 0], at[n, 1], radius, int(brights[other]), part_start[other], part_start[other + 1])
        if has_many_beams(device):  # a laser; else a sonar ring
            for b in range(device.first, device.end):
                meet_by_bearing(fans, beams, bodies, device, b, target)
        else:
            meet_by_all(beams, bodies, device.n_beams, target)


@inline_kernel
def has_many_beams(device: Device) -> bool:
    """Whether computing which beams of a device may meet a body saves time; else all are tried at once."""
    return device.n_beams > FEW_BEAMS * (device.end - device.first)


@merged_kernel
def cast_beams(
    grid: Grid, bodies: Bodies, bins: Bins, brights: I2, fans: Fans, beams: Beams, device: Device, offset: float
) -> None:
    """Shorten the beams of a device to what they meet, of the map and of other bodies. `offset`: of its farthest origin, m.

    Bodies are looked for in growing squares of bins around the device, each without the one before: near bodies shorten beams, which then
    need not be tested against those farther off.
    """
    x, y, count, many = device.x, device.y, device.n_beams, has_many_beams(device)
    frame, nx, ny = bins.frame, bins.shape[0], bins.shape[1]
    last_i0, last_i1, last_j0, last_j1 = 0, -1, 0, -1
    open_space = wall_distance(grid.clear, grid.x0, grid.y0, grid.h, grid.nx, grid.ny, x, y) - offset
    seen = (int(bins.seen[0]) & device.mask) * int(bins.rows.shape[0] > 1)  # nobody sees itself
    shell = FIRST_SHELL if many and seen else math.inf
    walked = False
    while True:
        # walls after the bodies of the first square: see `FIRST_SHELL`
        if not walked and shell > FIRST_SHELL:
            walked = True
            if longest(beams.raw, count) > open_space:  # else all end before the nearest wall
                walk_beams(grid, beams, count, device.mask)
        if not seen:  # no body is of a class that it senses
            return
        reach = offset + (note_reach(fans, beams, device.first, device.end) if many else longest(beams.raw, count))
        # bodies reach beyond their bins, and may have moved since they were sorted
        wide = min(reach, shell) + bins.reach[0] + bins.reach[1]
        i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], nx)
        j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], ny)
        for jy in range(j0, j1 + 1 if i1 >= i0 else j0):
            hole = last_i1 >= last_i0 and last_j0 <= jy <= last_j1
            for side in range(2 if hole else 1):  # a row of bins, or what is left of it on both sides of the hole
                begin, end = (last_i1 + 1, i1) if side == 1 else (i0, last_i0 - 1 if hole else i1)
                meet_bin_row(bodies, bins, brights, fans, beams, device, jy * nx + begin, jy * nx + end, reach)
        if walked and shell >= reach:  # no beam leaves this square
            return
        shell *= SHELL_GROWTH
        if i1 >= i0 and j1 >= j0:  # an empty square leaves no hole
            last_i0, last_i1, last_j0, last_j1 = i0, i1, j0, j1


@kernel
def finish_reading(r: float, r_min: float, r_max: float, noise: float, key: int, j: int) -> float:
    """Range error and limits applied to the exact range `r`, m; a beam that met nothing stays without error."""
    if r < r_max and noise > 0.0:
        r += noise * symmetric(np.uint64(key), np.uint64(2 * j + 1))
    return min(max(r, r_min), r_max)


@inline_kernel
def is_missing(share: float, key: int, j: int) -> bool:
    """Whether reading `j` of a bundle gets no return, of which this is the share."""
    return share > 0.0 and 0.5 * (symmetric(np.uint64(key), np.uint64(MISSING_DRAWS + j)) + 1.0) < share


@kernel
def finish_bright(bright: int, r: float, cosine: float, max_range: float, min_cos: float, strength: int) -> int:
    """Laser return reported: bright surfaces only within the device's range and incidence (SEN-007)."""
    if bright > 1:
        if r > max_range or cosine < min_cos:  # too far, or too oblique: like any wall
            return 1
        if bright == 2:  # a plain reflector: reported as `ReflectorRule.strength`
            return strength
    return bright


@merged_kernel
def finish_bundles(fans: Fans, beams: Beams, b0: int, b1: int, out: int, key: int, ranges: F8, bright: I2) -> None:
    """Write the readings of the bundles `b0` … `b1` − 1 from the exact ranges of their beams, from place `out` on."""
    raw, raw_bright, raw_cos = beams.raw, beams.bright, beams.cosine
    beam_first, readings = fans.beam_first, fans.readings
    r_mins, r_maxs, noises = fans.r_min, fans.r_max, fans.r_noise
    fars, cosines, strengths = fans.bright_range, fans.bright_cos, fans.bright_as
    for b in range(b0, b1):
        r_min, r_max, noise, missing = r_mins[b], r_maxs[b], noises[b], fans.missing[b]
        far, cosine, strength = fars[b], cosines[b], int(strengths[b])
        first, last = beam_first[b] - beam_first[b0], beam_first[b + 1] - beam_first[b0]
        at = out + readings[b] - readings[b0]
        if readings[b + 1] - readings[b] == last - first:  # a reading for each beam: lasers
            for j in range(first, last):
                ranges[at + j - first] = finish_reading(raw[j], r_min, r_max, noise, key, j)
                bright[at + j - first] = finish_bright(int(raw_bright[j]), raw[j], raw_cos[j], far, cosine, strength)
        else:  # one for the bundle, the shortest: the beams fill the cone of a sonar transducer
            nearest = r_max
            for j in range(first, last):
                nearest = min(nearest, raw[j])
            ranges[at] = finish_reading(nearest, r_min, r_max, noise, key, first)
            bright[at] = 1 if nearest < r_max else 0
        if missing > 0.0:
            for j in range(readings[b + 1] - readings[b]):
                if is_missing(missing, key, first + j):
                    ranges[at + j], bright[at + j] = r_max, 0


@kernel
def cast_groups(grid: Grid, bodies: Bodies, bins: Bins, state: State, fans: Fans, beams: Beams, active: I8, seed: np.uint64, tick: int,
                ranges: F8, bright: I2) -> None:  # fmt: skip
    """Take all readings of the devices listed in `active`, one after the other: write them to `ranges` (m) and `bright`.

    Several threads may do so at once with other devices and a workspace of their own: each device has its own places in the output.
    """
    for n in range(active.shape[0]):
        g = active[n]
        row, kind, mask = fans.row[g], fans.kind[g], int(fans.mask[g])
        b0, b1 = fans.first[kind], fans.first[kind + 1]
        key = stream_key(seed, state.uid[row], fans.key[g], np.uint64(tick))
        x, y, heading = state.pose[row, 0], state.pose[row, 1], state.pose[row, 2]
        aim_beams(fans, beams, b0, b1, x, y, heading, key)
        c, s = cosine_sine(heading)
        device = Device(row, mask, x, y, heading, c, s, b0, b1, fans.beam_first[b1] - fans.beam_first[b0])
        cast_beams(grid, bodies, bins, state.bright, fans, beams, device, fans.offset[kind])
        finish_bundles(fans, beams, b0, b1, fans.out[g], key, ranges, bright)
