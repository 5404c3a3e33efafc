"""Exact ray casting: against the static world through its grid, and against moving bodies through their outlines.

The static part walks the grid from cell to cell, jumping over free squares; it tests the segments of the cells that it enters
(method and figures: reference performance.md §2–3). Moving bodies are never in the grid: each one near a sensor is turned into an
interval of beams and tested against those only. Ranges are float64 metres; a ray that meets nothing keeps its greatest range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.jit import inline_kernel, inner_kernel, kernel, parallel_kernel, prange
from botyard.engine.kernels.noise import renumbered, stream_key, symmetric
from botyard.engine.layout import F8, I2, I8, U2, Bins, Bodies, Grid, State

END_TOLERANCE = 1e-12
"""Segments are this much longer at both ends, relative to their length, so that no ray slips through a corner."""
LEAST_COMPONENT = 1e-12
"""Direction components smaller than this are made this large; it keeps 1/d finite."""
TWO_PI = 2.0 * math.pi
FEW_BEAMS = 6
"""Bundles of up to this many beams test each beam against a body's circle; larger ones compute a beam interval."""


class Fans(NamedTuple):
    """All beams of one kind of sensor, in three levels: group (one device of a body), bundle (one origin), beam.

    Attributes
    ----------
    row : (n_groups,) int64
        Body that carries the device.
    key : (n_groups,) uint64
        Device number in the random streams.
    mask : (n_groups,) uint16
        `Visible` class that the device senses.
    first : (n_groups + 1,) int64
        Group g owns the bundles first[g] … first[g + 1] − 1.
    mount : (n_bundles, 3) float64
        Origin and direction in the body's frame, m and rad.
    beam_first : (n_bundles + 1,) int64
        Bundle b owns the beams beam_first[b] … beam_first[b + 1] − 1.
    angle0, step : (n_bundles,) float64
        Bearing of the first beam and spacing, rad.
    r_min, r_max : (n_bundles,) float64
        Range limits, m.
    r_noise, a_noise : (n_bundles,) float64
        Half-widths of the uniform errors of range, m, and bearing, rad.
    bright_range, bright_cos : (n_bundles,) float64
        Bright returns count only up to this range, m, and where the cosine of the incidence is at least this.
    bright_as : (n_bundles,) int16
        What a laser return of 2 is reported as.
    out_first : (n_bundles + 1,) int64
        Where the bundle's readings begin in the output; a bundle with one reading and several beams gives the shortest.
    beam_cos, beam_sin : (n_beams,) float64
        Direction of each beam in the bundle's frame.
    dir_x, dir_y : (n_beams,) float64
        Workspace: direction of each beam in the world.
    raw : (n_beams,) float64
        Workspace: exact range of each beam, m.
    raw_bright : (n_beams,) int16
        Workspace: laser return of what each beam met; 0 for nothing.
    raw_cos : (n_beams,) float64
        Workspace: cosine of the incidence at bright surfaces.
    """

    row: I8
    key: np.ndarray[tuple[int], np.dtype[np.uint64]]
    mask: U2
    first: I8
    mount: F8
    beam_first: I8
    angle0: F8
    step: F8
    r_min: F8
    r_max: F8
    r_noise: F8
    a_noise: F8
    bright_range: F8
    bright_cos: F8
    bright_as: I2
    out_first: I8
    beam_cos: F8
    beam_sin: F8
    dir_x: F8
    dir_y: F8
    raw: F8
    raw_bright: I2
    raw_cos: F8


@inline_kernel
def away_from_zero(d: float) -> float:
    """`d`, or ± the least component allowed."""
    if abs(d) < LEAST_COMPONENT:
        return -LEAST_COMPONENT if d < 0.0 else LEAST_COMPONENT
    return d


@inline_kernel
def segment_range(ax: float, ay: float, ex: float, ey: float, dx: float, dy: float, best: float) -> float:
    """Distance along the ray (dx, dy) from the origin to the segment that starts at (ax, ay) with vector (ex, ey).

    Returns `best` when the segment is missed or not nearer. Solves origin + t·d = a + u·e for t ≥ 0 and 0 ≤ u ≤ 1.
    """
    den = dx * ey - dy * ex
    nt = ax * ey - ay * ex
    nu = ax * dy - ay * dx
    if den < 0.0:
        den, nt, nu = -den, -nt, -nu
    slack = END_TOLERANCE * den
    if nt >= 0.0 and nt < best * den and nu >= -slack and nu <= den + slack:
        return nt / den
    return best


@inline_kernel
def cast_ray(grid: Grid, gx: float, gy: float, dx: float, dy: float, t_max: float, mask: int) -> tuple[float, int]:
    """First static segment of class `mask` on a ray; all lengths in cells.

    Parameters
    ----------
    gx, gy : float
        Origin from the grid's lower left corner; may lie outside the grid.
    dx, dy : float
        Unit direction, neither component smaller than `LEAST_COMPONENT`.
    t_max : float
        Length to look.

    Returns
    -------
    (float, int)
        Length to the hit and its entry in ``grid.seg``; (`t_max`, −1) when there is none. In a plain grid, where all entries are
        alike to any sensor, the entry is not looked for: any number from 0 on means a hit. That saves a tenth of the time.
    """
    nx, ny, plain = grid.nx, grid.ny, grid.plain
    start, seg, clear, classes = grid.start, grid.seg, grid.clear, grid.mask
    inv_x, inv_y = 1.0 / dx, 1.0 / dy
    best, hit, t = t_max, -1, 0.0
    wanted = np.uint16(mask)
    px, py = gx, gy
    inside = True
    if gx < 0.0 or gx >= nx or gy < 0.0 or gy >= ny:  # start where the ray enters the grid, if it does
        tx0, tx1 = -gx * inv_x, (nx - gx) * inv_x
        ty0, ty1 = -gy * inv_y, (ny - gy) * inv_y
        t = max(min(tx0, tx1), min(ty0, ty1), 0.0)
        inside = t < min(max(tx0, tx1), max(ty0, ty1), t_max)
        px, py = gx + t * dx, gy + t * dy
    if inside and nx > 0:
        q = (1 if dx > 0.0 else 0) + (2 if dy > 0.0 else 0)
        # one step along an axis goes `way` cells; the border it reaches is at ix + way·side + lag
        way_x, lag_x = (1, 0) if dx > 0.0 else (-1, 1)
        way_y, lag_y = (1, 0) if dy > 0.0 else (-1, 1)
        ix = min(max(int(math.floor(px)), 0), nx - 1)
        iy = min(max(int(math.floor(py)), 0), ny - 1)
        while t < best:
            side = int(clear[q, iy, ix])
            if side == 0:
                cell = iy * nx + ix
                for k in range(start[cell], start[cell + 1]):
                    t_hit = segment_range(seg[k, 0] - gx, seg[k, 1] - gy, seg[k, 2], seg[k, 3], dx, dy, best)
                    if plain:
                        best = t_hit
                    elif t_hit < best and classes[k] & wanted:
                        best, hit = t_hit, k
                side = 1
            tx = (ix + way_x * side + lag_x - gx) * inv_x
            ty = (iy + way_y * side + lag_y - gy) * inv_y
            # the other coordinate is computed anew, but may only move forward: at a corner rounding could put the ray one cell
            # back, and it would bounce for ever
            if tx < ty:
                t = tx
                ix += way_x * side
                iy = way_y * max(way_y * iy, way_y * int(math.floor(gy + t * dy)))
            else:
                t = ty
                iy += way_y * side
                ix = way_x * max(way_x * ix, way_x * int(math.floor(gx + t * dx)))
            if ix < 0 or ix >= nx or iy < 0 or iy >= ny:
                break
    if plain and best < t_max:
        hit = 0
    return best, hit


@inner_kernel
def cast_bundles(grid: Grid, fans: Fans, b0: int, b1: int, x: float, y: float, th: float, mask: int,
                 key: int) -> float:  # fmt: skip
    """Write directions, exact static ranges and returns of all beams of the bundles `b0` … `b1` − 1; give the longest reach, m.

    `x`, `y`, `th`: pose of the body that carries them; `key`: random stream of the device. The reach is counted from the body's
    origin: the longest range and the farthest mounting.
    """
    # arrays are taken out of their tuples before the loops: inside, each access would count references
    beam_cos, beam_sin, dir_x, dir_y = fans.beam_cos, fans.beam_sin, fans.dir_x, fans.dir_y
    raw, raw_bright, raw_cos = fans.raw, fans.raw_bright, fans.raw_cos
    mount, beam_first, r_maxs, wobbles = fans.mount, fans.beam_first, fans.r_max, fans.a_noise
    seg, seg_bright = grid.seg, grid.bright
    h = grid.h
    inv = 1.0 / h
    body_c, body_s = math.cos(th), math.sin(th)
    longest, offset = 0.0, 0.0
    for b in range(b0, b1):
        mx, my = mount[b, 0], mount[b, 1]
        gx = (x + body_c * mx - body_s * my - grid.x0) * inv
        gy = (y + body_s * mx + body_c * my - grid.y0) * inv
        c, s = math.cos(th + mount[b, 2]), math.sin(th + mount[b, 2])
        r_max, wobble = r_maxs[b], wobbles[b]
        t_max = r_max * inv
        for j in range(beam_first[b], beam_first[b + 1]):
            bc, bs = beam_cos[j], beam_sin[j]
            dx, dy = c * bc - s * bs, s * bc + c * bs
            if wobble > 0.0:
                error = wobble * symmetric(np.uint64(key), np.uint64(2 * j))
                ec, es = math.cos(error), math.sin(error)
                dx, dy = dx * ec - dy * es, dx * es + dy * ec
            dx, dy = away_from_zero(dx), away_from_zero(dy)
            dir_x[j], dir_y[j] = dx, dy
            t, k = cast_ray(grid, gx, gy, dx, dy, t_max, mask)
            r, bright = r_max, 0
            if k >= 0:
                r, bright = t * h, int(seg_bright[k])
                if bright > 1:
                    raw_cos[j] = abs(dx * seg[k, 3] - dy * seg[k, 2]) / math.hypot(seg[k, 2], seg[k, 3])
            raw[j] = r
            raw_bright[j] = bright
            longest = max(longest, r)
        offset = max(offset, math.hypot(mx, my))
    return longest + offset


@inner_kernel
def beam_against_body(world: F8, vert_start: I8, p0: int, p1: int, ox: float, oy: float, dx: float, dy: float,
                      best: float) -> tuple[float, float]:  # fmt: skip
    """First edge of the polygons `p0` … `p1` − 1 on the ray from (`ox`, `oy`): range and cosine of the incidence.

    (`best`, −1) when none is nearer than `best`.
    """
    cosine = -1.0
    for p in range(p0, p1):
        v0, v1 = vert_start[p], vert_start[p + 1]
        ax, ay = world[v1 - 1, 0] - ox, world[v1 - 1, 1] - oy
        for v in range(v0, v1):
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            ex, ey = bx - ax, by - ay
            t = segment_range(ax, ay, ex, ey, dx, dy, best)
            if t < best:
                best = t
                cosine = abs(dx * ey - dy * ex) / math.hypot(ex, ey)
            ax, ay = bx, by
    return best, cosine


@inner_kernel
def meet_bodies(bodies: Bodies, bins: Bins, state: State, fans: Fans, b0: int, b1: int, row: int, mask: int,
                reach: float) -> None:  # fmt: skip
    """Shorten the beams of the bundles `b0` … `b1` − 1 of body `row` that meet another body of class `mask`.

    `reach`: no beam ends farther than this from the body's origin, m. Each body is narrowed down in steps that get dearer: its
    distance, the interval of beams that its circle covers, beams that end before it, the circle, the outline.
    """
    # taken out of their tuples before the loops, see `cast_bundles`
    pose, classes, brights, rows, start = state.pose, state.mask, state.bright, bins.rows, bins.start
    radii, part_start, vert_start, world = bodies.radius, bodies.part_start, bodies.vert_start, bodies.world
    mount, beam_first, r_max, a_noise = fans.mount, fans.beam_first, fans.r_max, fans.a_noise
    angle0, step = fans.angle0, fans.step
    dir_x, dir_y, raw, raw_bright, raw_cos = fans.dir_x, fans.dir_y, fans.raw, fans.raw_bright, fans.raw_cos
    x, y, th = pose[row, 0], pose[row, 1], pose[row, 2]
    c, s = math.cos(th), math.sin(th)
    wide = reach + bins.reach[0] + bins.reach[1]
    nx = bins.shape[0]
    i0, i1 = bin_span(x - wide, x + wide, bins.frame[0], bins.frame[2], nx)
    j0, j1 = bin_span(y - wide, y + wide, bins.frame[1], bins.frame[2], bins.shape[1])
    for jy in range(j0, j1 + 1):
        for n in range(start[jy * nx + i0], start[jy * nx + i1 + 1] if i1 >= i0 else 0):
            other = rows[n]
            bx, by, radius = pose[other, 0], pose[other, 1], radii[other]
            far = reach + radius
            if (
                (bx - x) * (bx - x) + (by - y) * (by - y) > far * far
                or other == row
                or not (int(classes[other]) & mask)
            ):
                continue
            for b in range(b0, b1):
                rx = bx - x - c * mount[b, 0] + s * mount[b, 1]
                ry = by - y - s * mount[b, 0] - c * mount[b, 1]
                first, last = beam_first[b], beam_first[b + 1]
                near = -radius
                if last - first > FEW_BEAMS:
                    distance = math.hypot(rx, ry)
                    near = distance - radius
                    if near >= r_max[b]:
                        continue
                lo, hi, turns = first, last - 1, 1
                bearing = half = per_step = 0.0
                if near > 0.0:
                    # the bearings of the body's circle as an interval of beams; a full turn less, and one more, for fields of
                    # view that reach across the cut of the angle. asin(u) ≤ u·π/2: a little wide, but cheap
                    half = 0.5 * math.pi * radius / distance + a_noise[b] + 1e-9
                    bearing = math.atan2(ry, rx) - (th + mount[b, 2] + angle0[b])
                    bearing -= TWO_PI * (math.floor(bearing / TWO_PI) + 1.0)
                    per_step = 1.0 / step[b]
                    turns = 3
                for _ in range(turns):
                    if near > 0.0:
                        begin, end = (bearing - half) * per_step, (bearing + half) * per_step
                        bearing += TWO_PI
                        if end < 0.0 or begin > last - first - 1:
                            continue
                        lo, hi = first + int(max(begin, 0.0)), min(last - 1, first + int(end) + 1)
                    for j in range(lo, hi + 1):
                        if raw[j] <= near:
                            continue
                        dx, dy = dir_x[j], dir_y[j]
                        along = rx * dx + ry * dy
                        if abs(rx * dy - ry * dx) > radius or along < -radius or along - radius >= raw[j]:
                            continue
                        r, cosine = beam_against_body(
                            world,
                            vert_start,
                            part_start[other],
                            part_start[other + 1],
                            bx - rx,
                            by - ry,
                            dx,
                            dy,
                            raw[j],
                        )
                        if cosine >= 0.0:
                            raw[j], raw_bright[j], raw_cos[j] = r, int(brights[other]), cosine


@inner_kernel
def finish_reading(r: float, r_min: float, r_max: float, noise: float, key: int, j: int) -> float:
    """Range error and limits applied to the exact range `r`, m; a beam that met nothing stays without error."""
    if r < r_max and noise > 0.0:
        r += noise * symmetric(np.uint64(key), np.uint64(2 * j + 1))
    return min(max(r, r_min), r_max)


@inner_kernel
def finish_bright(bright: int, r: float, cosine: float, max_range: float, min_cos: float, strength: int) -> int:
    """Laser return reported: bright surfaces only within the device's range and incidence (SEN-007)."""
    if bright > 1:
        if r > max_range or cosine < min_cos:
            return 1
        if bright == 2:
            return strength
    return bright


@inner_kernel
def finish_bundles(fans: Fans, b0: int, b1: int, key: int, ranges: F8, bright: I2) -> None:
    """Write the readings of the bundles `b0` … `b1` − 1 from the exact ranges of their beams."""
    raw, raw_bright, raw_cos = fans.raw, fans.raw_bright, fans.raw_cos
    beam_first, out_first = fans.beam_first, fans.out_first
    r_mins, r_maxs, noises = fans.r_min, fans.r_max, fans.r_noise
    fars, cosines, strengths = fans.bright_range, fans.bright_cos, fans.bright_as
    for b in range(b0, b1):
        r_min, r_max, noise = r_mins[b], r_maxs[b], noises[b]
        far, cosine, strength = fars[b], cosines[b], int(strengths[b])
        out, first, last = out_first[b], beam_first[b], beam_first[b + 1]
        if out_first[b + 1] - out == last - first:
            for j in range(first, last):
                ranges[out + j - first] = finish_reading(raw[j], r_min, r_max, noise, key, j)
                bright[out + j - first] = finish_bright(int(raw_bright[j]), raw[j], raw_cos[j], far, cosine, strength)
        else:
            nearest = r_max
            for j in range(first, last):
                nearest = min(nearest, raw[j])
            ranges[out] = finish_reading(nearest, r_min, r_max, noise, key, first)
            bright[out] = 1 if nearest < r_max else 0


@inner_kernel
def cast_group(grid: Grid, bodies: Bodies, bins: Bins, state: State, fans: Fans, g: int, seed: int, tick: int,
               ranges: F8, bright: I2) -> None:  # fmt: skip
    """Take all readings of device `g` and write them to `ranges` (m) and `bright` at the device's places."""
    row = fans.row[g]
    mask = int(fans.mask[g])
    b0, b1 = fans.first[g], fans.first[g + 1]
    # draws are numbered from the device's own first beam, so that a stream does not depend on other devices
    key = stream_key(np.uint64(seed), state.uid[row], fans.key[g], np.uint64(tick))
    key = renumbered(key, np.uint64(2 * fans.beam_first[b0]))
    reach = cast_bundles(grid, fans, b0, b1, state.pose[row, 0], state.pose[row, 1], state.pose[row, 2], mask, key)
    meet_bodies(bodies, bins, state, fans, b0, b1, row, mask, reach)
    finish_bundles(fans, b0, b1, key, ranges, bright)


@kernel
def cast_groups(grid: Grid, bodies: Bodies, bins: Bins, state: State, fans: Fans, active: I8, seed: int, tick: int,
                ranges: F8, bright: I2) -> None:  # fmt: skip
    """Take the readings of the devices listed in `active`, one after the other."""
    for n in range(active.shape[0]):
        cast_group(grid, bodies, bins, state, fans, active[n], seed, tick, ranges, bright)


@parallel_kernel
def cast_groups_parallel(grid: Grid, bodies: Bodies, bins: Bins, state: State, fans: Fans, active: I8, seed: int,
                         tick: int, ranges: F8, bright: I2) -> None:  # fmt: skip
    """The same on all threads; devices write disjoint parts of the output, so the result is the same."""
    for n in prange(active.shape[0]):
        cast_group(grid, bodies, bins, state, fans, active[n], seed, tick, ranges, bright)
