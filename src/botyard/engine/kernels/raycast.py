"""Exact ray casting against the static world's grid and against moving bodies.

Moving bodies are never in the grid. Each body near a sensor is turned into an interval
or a set of beams, and tested against these only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import (
    SECTORS,
    Beams,
    Device,
    Fans,
    about_atan2,
    aim_beams,
    finish_bundles,
    longest,
    note_reach,
    place_beams,
    sector_of,
    seen_half,
)
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.gridwalk import walk_beams
from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key
from botyard.engine.kernels.wallspans import meet_walls_at_once
from botyard.engine.layout import F8, I2, I8, Bins, Bodies, Grid, State
from botyard.numerics.elementary import cosine_sine, hypot

TWO_PI = 2.0 * math.pi
FEW_BEAMS = 6
"""Number of beams per origin above which the interval of beams at a body is computed.

With fewer beams, all beams are tested.
"""
FIRST_SHELL = 2.0
"""Distance of bodies that are tested before the walls, m.

Beams that they stop need not be walked any farther.
"""
SHELL_GROWTH = 2.5
"""Growth factor of the squares around a device in which bodies are searched."""


@inline_kernel
def meets_circle(
    rx: float, ry: float, dx: float, dy: float, radius: float, r: float
) -> bool:
    """Return whether a beam may touch a circle around (`rx`, `ry`), without branches.

    The beam has length `r` and direction (`dx`, `dy`).
    """
    along = rx * dx + ry * dy
    return (
        (abs(rx * dy - ry * dx) <= radius) & (along >= -radius) & (along - radius < r)
    )


class Target(NamedTuple):
    """Body that beams may hit.

    Attributes
    ----------
    x, y, radius : float
        Circle around the body, m.
    bright : int
        Laser return of the body.
    first, end : int
        Polygons of the body: first … end − 1.
    """

    x: float
    y: float
    radius: float
    bright: int
    first: int
    end: int


@inline_kernel
def shorten(beams: Beams, j: int, target: Target, bodies: Bodies) -> None:
    """Shorten beam `j` to the nearest edge of a body's outline that it hits."""
    world, vert_start = bodies.world, bodies.vert_start
    ox, oy, dx, dy, exact = (
        beams.org_x[j],
        beams.org_y[j],
        beams.dir_x[j],
        beams.dir_y[j],
        beams.raw[j],
    )
    best, hit_x, hit_y = exact, 0.0, 0.0
    for p in range(target.first, target.end):
        v0, v1 = vert_start[p], vert_start[p + 1]
        ax, ay = world[v1 - 1, 0] - ox, world[v1 - 1, 1] - oy
        a = ax * dy - ay * dx
        for v in range(v0, v1):
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            b = bx * dy - by * dx
            # Without branches, which could not be predicted here: a division for each
            # edge is cheaper.
            t = (ax * by - ay * bx) / (a - b)
            nearer = ((a < 0.0) != (b < 0.0)) & (t < best) & (t >= 0.0)
            best, hit_x, hit_y = (
                (t if nearer else best),
                (bx - ax if nearer else hit_x),
                (by - ay if nearer else hit_y),
            )
            ax, ay, a = bx, by, b

    if best < exact:
        beams.raw[j], beams.bright[j] = best, target.bright
        # Devices need the incidence at reflectors.
        if target.bright > 1:
            beams.cosine[j] = abs(dx * hit_y - dy * hit_x) / hypot(hit_x, hit_y)


@inline_kernel
def shorten_beams(
    beams: Beams,
    first: int,
    end: int,
    circle: tuple[float, float, float],
    target: Target,
    bodies: Bodies,
) -> None:
    """Shorten the beams `first` … `end` − 1 of a bundle as `shorten` does, all at once.

    `circle`: middle of the body from their origin, and distance of its circle, m. The
    loops over beams have no branches, and become vector instructions.
    """
    dir_x, dir_y, raw, ahead = beams.dir_x, beams.dir_y, beams.raw, beams.ahead
    world, vert_start, bright = bodies.world, bodies.vert_start, beams.bright
    rx, ry, near = circle
    ox, oy, count = beams.org_x[first], beams.org_y[first], end - first
    for n in range(count):
        k = np.uint64(first + n)
        r = raw[k]
        may = meets_circle(rx, ry, dir_x[k], dir_y[k], target.radius, r)
        # No edge is nearer than −1: the beam is left alone.
        ahead[n] = r if may & (r > near) else -1.0

    for p in range(target.first, target.end):
        v0, v1 = vert_start[p], vert_start[p + 1]
        ax, ay = world[v1 - 1, 0] - ox, world[v1 - 1, 1] - oy
        for v in range(v0, v1):
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            cross = ax * by - ay * bx
            for n in range(count):
                k = np.uint64(first + n)
                a, b = ax * dir_y[k] - ay * dir_x[k], bx * dir_y[k] - by * dir_x[k]
                t = cross / (a - b)
                nearer = ((a < 0.0) != (b < 0.0)) & (t >= 0.0) & (t < ahead[n])
                ahead[n] = t if nearer else ahead[n]

            ax, ay = bx, by

    for n in range(count):
        k = np.uint64(first + n)
        hit = (ahead[n] >= 0.0) & (ahead[n] < raw[k])
        bright[k] = target.bright if hit else bright[k]
    for n in range(count):
        k = np.uint64(first + n)
        hit = (ahead[n] >= 0.0) & (ahead[n] < raw[k])
        raw[k] = ahead[n] if hit else raw[k]


@inline_kernel
def meet_by_bearing(
    fans: Fans, beams: Beams, bodies: Bodies, device: Device, b: int, target: Target
) -> None:
    """Shorten the beams of bundle `b` that hit a body.

    Tests of increasing cost exclude beams: sectors in which no beam reaches the body's
    circle, the interval of beams that the circle covers, beams that end before it, the
    circle, the outline.
    """
    dir_x, dir_y, raw, mount = beams.dir_x, beams.dir_y, beams.raw, fans.mount
    b0, c, s, radius = device.first, device.cosine, device.sine, target.radius
    ex, ey = target.x - device.x, target.y - device.y
    # From the origin of the bundle
    rx, ry = (
        ex - c * mount[b, 0] + s * mount[b, 1],
        ey - s * mount[b, 0] - c * mount[b, 1],
    )
    distance = math.sqrt(rx * rx + ry * ry)
    near = distance - radius
    # Only beams of its sector and the two neighbours hit a body that is not wider than
    # the narrowest sector.
    narrow = 1.01 * radius + fans.a_noise[b] * distance < (4.0 / SECTORS) * distance
    if narrow & (
        near >= beams.reach[b - b0, sector_of(c * rx + s * ry, c * ry - s * rx)]
    ):
        return

    start, end = (
        fans.beam_first[b] - fans.beam_first[b0],
        fans.beam_first[b + 1] - fans.beam_first[b0],
    )
    lo, hi, turns = start, end - 1, 1
    bearing = half = per_step = 0.0
    if near > 0.0:
        # The bearings of the body's circle as an interval of beams, which may cross the
        # cut of the angle
        half = seen_half(radius / distance) + fans.a_noise[b]
        bearing = about_atan2(ry, rx) - (device.heading + mount[b, 2] + fans.angle0[b])
        bearing -= TWO_PI * math.floor(bearing / TWO_PI)
        if bearing > math.pi:
            bearing -= TWO_PI
        per_step = 1.0 / fans.step[b]
        turns = 2

    for _ in range(turns):
        # Otherwise the origin is within the circle, and every beam may hit it.
        if near > 0.0:
            low, high = (bearing - half) * per_step, (bearing + half) * per_step
            bearing += TWO_PI
            # Outside of the fan
            if high < 0.0 or low > end - start - 1:
                continue
            lo, hi = start + int(max(low, 0.0)), min(end - 1, start + int(high) + 1)

        # Devices need the incidence at reflectors.
        if target.bright > 1:
            for j in range(lo, hi + 1):
                # Otherwise the beam ends before the circle.
                if raw[j] > near and meets_circle(
                    rx, ry, dir_x[j], dir_y[j], radius, raw[j]
                ):
                    shorten(beams, j, target, bodies)
        else:
            shorten_beams(beams, lo, hi + 1, (rx, ry, near), target, bodies)


@inline_kernel
def meet_by_all(beams: Beams, bodies: Bodies, count: int, target: Target) -> None:
    """Shorten the first `count` beams that hit a body.

    All beams are tested against the circle at once by vector instructions, which takes
    less time than computing the ones that may hit it.
    """
    dir_x, dir_y, org_x, org_y, raw = (
        beams.dir_x,
        beams.dir_y,
        beams.org_x,
        beams.org_y,
        beams.raw,
    )
    for first in range(0, count, 64):
        met = np.uint64(0)
        for n in range(min(count - first, 64)):
            # Unsigned: saves the test for an index that counts from the end.
            k = np.uint64(first + n)
            hit = meets_circle(
                target.x - org_x[k],
                target.y - org_y[k],
                dir_x[k],
                dir_y[k],
                target.radius,
                raw[k],
            )
            met |= np.uint64(hit) << np.uint64(n)

        j = first
        while met != np.uint64(0):
            if met & np.uint64(1):
                shorten(beams, j, target, bodies)
            met = met >> np.uint64(1)
            j += 1


@inline_kernel
def meet_bin_row(
    bodies: Bodies,
    bins: Bins,
    brights: I2,
    fans: Fans,
    beams: Beams,
    device: Device,
    begin: int,
    end: int,
    reach: float,
) -> None:
    """Shorten the beams of a device to bodies in adjacent bins, within `reach` m.

    The bins are `begin` … `end`.
    """
    at, part_start = bins.at, bodies.part_start
    for n in range(bins.start[begin], bins.start[end + 1] if end >= begin else 0):
        ex, ey, radius = at[n, 0] - device.x, at[n, 1] - device.y, at[n, 2]
        far = reach + radius
        other = bins.rows[n]
        # Most bodies in these bins are out of reach. Some are invisible, and a body
        # does not see itself.
        if (
            ex * ex + ey * ey > far * far
            or not int(bins.classes[n]) & device.mask
            or other == device.row
        ):
            continue

        target = Target(
            at[n, 0],
            at[n, 1],
            radius,
            int(brights[other]),
            part_start[other],
            part_start[other + 1],
        )
        # A laser; otherwise a sonar ring
        if has_many_beams(device):
            for b in range(device.first, device.end):
                meet_by_bearing(fans, beams, bodies, device, b, target)
        else:
            meet_by_all(beams, bodies, device.n_beams, target)


@inline_kernel
def has_many_beams(device: Device) -> bool:
    """Return whether computing the beams that may hit a body saves time.

    Otherwise all beams are tested at once.
    """
    return device.n_beams > FEW_BEAMS * (device.end - device.first)


@inline_kernel
def far_now(beams: Beams, count: int, seen: int, far: float) -> float:
    """Return the present range of the longest beam, m.

    Only bodies shorten beams here: while none is seen, it is `far`.
    """
    return longest(beams.raw, count) if seen else far


@merged_kernel
def meet_walls(
    grid: Grid, fans: Fans, beams: Beams, device: Device, many: bool, reach: float
) -> None:
    """Shorten the beams of a device to the static world, within `reach` m."""
    for b in range(device.first, device.end if many else device.first + 1):
        first, end = (
            fans.beam_first[b] - fans.beam_first[device.first],
            fans.beam_first[b + 1] - fans.beam_first[device.first]
            if many
            else device.n_beams,
        )
        if not many or not meet_walls_at_once(grid, fans, beams, device, b, reach):
            place_beams(fans, beams, device, first, end)
            walk_beams(grid, beams, first, end, device.mask)


@inline_kernel
def bodies_in(bins: Bins, box: tuple[int, int, int, int]) -> int:
    """Return the number of bodies in columns and rows of bins: first and last of each."""
    i0, i1, j0, j1 = box
    nx, found = bins.shape[0], 0
    for j in range(j0, j1 + 1 if i1 >= i0 else j0):
        found += bins.start[j * nx + i1 + 1] - bins.start[j * nx + i0]
    return found


@merged_kernel
def meet_bodies(
    bodies: Bodies,
    bins: Bins,
    brights: I2,
    fans: Fans,
    beams: Beams,
    device: Device,
    box: tuple[int, int, int, int],
    hole: tuple[int, int, int, int],
    reach: float,
) -> None:
    """Shorten the beams of a device to bodies in a box of bins, but not in a hole in it.

    The bodies are within `reach` m. `box` and `hole` are first and last column, first
    and last row.
    """
    i0, i1, j0, j1 = box
    last_i0, last_i1, last_j0, last_j1 = hole
    nx = bins.shape[0]
    for jy in range(j0, j1 + 1 if i1 >= i0 else j0):
        is_split = last_i1 >= last_i0 and last_j0 <= jy <= last_j1
        # A row of bins, or its parts on both sides of the hole
        for side in range(2 if is_split else 1):
            begin, end = (
                (last_i1 + 1, i1)
                if side == 1
                else (i0, last_i0 - 1 if is_split else i1)
            )
            meet_bin_row(
                bodies,
                bins,
                brights,
                fans,
                beams,
                device,
                jy * nx + begin,
                jy * nx + end,
                reach,
            )


@merged_kernel
def cast_beams(
    grid: Grid,
    bodies: Bodies,
    bins: Bins,
    brights: I2,
    fans: Fans,
    beams: Beams,
    device: Device,
    offset: float,
    far: float,
) -> None:
    """Shorten the beams of a device to the map and to other bodies.

    `offset`: distance of its farthest origin, m; `far`: its greatest range, m. Bodies
    are searched in growing squares of bins around the device, each without the previous
    one. Near bodies shorten beams, which then need no test against farther ones.
    """
    x, y, count, many = device.x, device.y, device.n_beams, has_many_beams(device)
    frame, nx, ny = bins.frame, bins.shape[0], bins.shape[1]
    # A square always has the body itself.
    met, hole = 1, (0, -1, 0, -1)
    open_space = (
        wall_distance(grid.clear, grid.x0, grid.y0, grid.h, grid.nx, grid.ny, x, y)
        - offset
    )
    # A body does not see itself.
    seen = (int(bins.seen[0]) & device.mask) * int(bins.rows.shape[0] > 1)
    # Few beams, or no visible bodies: one search covers the whole reach.
    shell = FIRST_SHELL if many and seen else math.inf
    walked = False
    place_beams(fans, beams, device, 0, count * int(seen > 0))
    while True:
        # Walls come after the bodies of the first square: see `FIRST_SHELL`.
        if not walked and shell > FIRST_SHELL:
            walked = True
            far = far_now(beams, count, seen, far)
            # Otherwise all beams end before the nearest wall.
            if far > open_space:
                meet_walls(grid, fans, beams, device, many, far)

        # No body has a class that the device senses.
        if not seen:
            return
        reach = offset + longest(beams.raw, count)
        # Bodies extend beyond their bins, and may have moved since they were sorted.
        wide = min(reach, shell) + bins.reach[0] + bins.reach[1]
        i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], nx)
        j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], ny)
        found = bodies_in(bins, (i0, i1, j0, j1))
        # Bodies that were not in the last square
        if found > met:
            if many:
                note_reach(fans, beams, device.first, device.end)
            meet_bodies(
                bodies,
                bins,
                brights,
                fans,
                beams,
                device,
                (i0, i1, j0, j1),
                hole,
                reach,
            )
            # Bodies of this square have been tested: the next square leaves them out.
            met, hole = found, (i0, i1, j0, j1)

        # No beam leaves this square.
        if walked and shell >= reach:
            return
        shell *= SHELL_GROWTH


@kernel
def cast_groups(
    grid: Grid,
    bodies: Bodies,
    bins: Bins,
    state: State,
    fans: Fans,
    beams: Beams,
    active: I8,
    seed: np.uint64,
    tick: int,
    ranges: F8,
    bright: I2,
) -> None:
    """Take all readings of the devices listed in `active`, one after the other.

    They are written to `ranges` (m) and `bright`. Several threads may do so at once
    with different devices and their own workspaces: each device has its own places in
    the output.
    """
    for n in range(active.shape[0]):
        g = active[n]
        row, kind, mask = fans.row[g], fans.kind[g], int(fans.mask[g])
        b0, b1 = fans.first[kind], fans.first[kind + 1]
        key = stream_key(seed, state.uid[row], fans.key[g], np.uint64(tick))
        x, y, heading = state.pose[row, 0], state.pose[row, 1], state.pose[row, 2]
        c, s = cosine_sine(heading)
        device = Device(
            row,
            mask,
            x,
            y,
            heading,
            c,
            s,
            b0,
            b1,
            fans.beam_first[b1] - fans.beam_first[b0],
        )
        far = aim_beams(fans, beams, device, key)
        cast_beams(
            grid,
            bodies,
            bins,
            state.bright,
            fans,
            beams,
            device,
            fans.offset[kind],
            far,
        )
        finish_bundles(fans, beams, b0, b1, fans.out[g], key, ranges, bright)


__all__ = ["cast_groups"]
