"""Ranges of beams to other bodies: circles first, then the edges of outlines."""

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
    sector_of,
    seen_half,
)
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import I2, Bins, Bodies
from botyard.numerics.elementary import hypot

TWO_PI = 2.0 * math.pi
FEW_BEAMS = 6
"""Number of beams per origin above which the interval of beams at a body is computed.

With fewer beams, all beams are tested.
"""


@inline_kernel
def has_many_beams(device: Device) -> bool:
    """Return whether computing the beams that may hit a body saves time.

    Otherwise all beams are tested at once.
    """
    return device.n_beams > FEW_BEAMS * (device.end - device.first)


@inline_kernel
def meets_circle(
    rx: float, ry: float, dx: float, dy: float, radius: float, r: float
) -> bool:
    """Return whether a beam may touch a circle, without branches.

    The result is also true for a beam that ends just before the circle's edge: an exact
    test must follow.

    Parameters
    ----------
    rx, ry : float
        Middle of the circle from the origin of the beam, m.
    dx, dy : float
        Direction of the beam, a unit vector.
    radius : float
        Radius of the circle, m.
    r : float
        Present range of the beam, m.
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
def range_of_edge(cross: float, a: float, b: float) -> float:
    """Return the range at which a beam crosses an edge, without branches; else infinity, m.

    Parameters
    ----------
    cross : float
        Cross product of the ends of the edge, seen from the beam's origin, m².
    a, b : float
        Cross products of both ends with the direction of the beam, m.
    """
    # Dividing for each edge costs less than a branch that could not be predicted. The
    # compiler would make a branch of a choice between the quotient and infinity, but
    # does not of a choice between constants.
    t = cross / (a - b) + (0.0 if (a < 0.0) != (b < 0.0) else math.inf)
    return t if t >= 0.0 else math.inf


@merged_kernel
def incidence_at(beams: Beams, j: int, target: Target, bodies: Bodies) -> float:
    """Return the cosine of the incidence at which a beam ends at a body.

    Parameters
    ----------
    beams : Beams
        Beams of the device; `raw` of beam `j` is its range to the body, from `shorten`.
    j : int
        Index of the beam in `beams`.
    target : Target
        Body, with its polygons in `bodies`.
    bodies : Bodies
        Outlines; `world` has the corners in the frame of the world, m.
    """
    world, vert_start = bodies.world, bodies.vert_start
    ox, oy, dx, dy = beams.org_x[j], beams.org_y[j], beams.dir_x[j], beams.dir_y[j]
    for p in range(target.first, target.end):
        last = vert_start[p + 1] - 1
        ax, ay = world[last, 0] - ox, world[last, 1] - oy
        for v in range(vert_start[p], last + 1):
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            a, b = ax * dy - ay * dx, bx * dy - by * dx
            # The same arithmetic as in `shorten`: the first edge with this range was hit.
            if range_of_edge(ax * by - ay * bx, a, b) == beams.raw[j]:
                ux, uy = bx - ax, by - ay
                return abs(dx * uy - dy * ux) / hypot(ux, uy)
            ax, ay = bx, by

    return 0.0


@inline_kernel
def shorten(beams: Beams, j: int, target: Target, bodies: Bodies) -> None:
    """Shorten beam `j` to the nearest edge of a body's outline that it hits.

    The test solves origin + t·d = a + u·(b − a) for each edge (a, b). An edge counts if
    its ends are on different sides of the beam.

    Parameters
    ----------
    beams : Beams
        Beams of the device. In-place: `raw`, `bright` and `cosine` of beam `j`, if it
        hits.
    j : int
        Index of the beam in `beams`.
    target : Target
        Body, with its polygons in `bodies`.
    bodies : Bodies
        Outlines; `world` has the corners in the frame of the world, m.
    """
    world, vert_start = bodies.world, bodies.vert_start
    ox, oy, dx, dy, exact = (
        beams.org_x[j],
        beams.org_y[j],
        beams.dir_x[j],
        beams.dir_y[j],
        beams.raw[j],
    )
    best = exact
    for p in range(target.first, target.end):
        v, end = vert_start[p], vert_start[p + 1]
        ax, ay = world[end - 1, 0] - ox, world[end - 1, 1] - oy
        a = ax * dy - ay * dx
        # Four edges at a time: their divisions do not wait for each other.
        while v + 4 <= end:
            k = np.uint64(v)
            bx, by = world[k, 0] - ox, world[k, 1] - oy
            cx, cy = (
                world[k + np.uint64(1), 0] - ox,
                world[k + np.uint64(1), 1] - oy,
            )
            ex, ey = (
                world[k + np.uint64(2), 0] - ox,
                world[k + np.uint64(2), 1] - oy,
            )
            fx, fy = (
                world[k + np.uint64(3), 0] - ox,
                world[k + np.uint64(3), 1] - oy,
            )
            b, c = bx * dy - by * dx, cx * dy - cy * dx
            e, f = ex * dy - ey * dx, fx * dy - fy * dx
            near = min(
                range_of_edge(ax * by - ay * bx, a, b),
                range_of_edge(bx * cy - by * cx, b, c),
            )
            far = min(
                range_of_edge(cx * ey - cy * ex, c, e),
                range_of_edge(ex * fy - ey * fx, e, f),
            )
            best = min(best, min(near, far))
            ax, ay, a = fx, fy, f
            v += 4
        while v < end:
            bx, by = world[v, 0] - ox, world[v, 1] - oy
            b = bx * dy - by * dx
            best = min(best, range_of_edge(ax * by - ay * bx, a, b))
            ax, ay, a = bx, by, b
            v += 1

    if best < exact:
        beams.raw[j], beams.bright[j] = best, target.bright
        # Devices need the incidence at reflectors.
        if target.bright > 1:
            beams.cosine[j] = incidence_at(beams, j, target, bodies)


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

    The loops over beams have no branches, and become vector instructions. They do not
    write `Beams.cosine`: the target must not be a reflector.

    Parameters
    ----------
    beams : Beams
        Beams of the device. In-place: `raw` and `bright`; `ahead` is workspace.
    first, end : int
        Indices in `beams`. All these beams have one origin.
    circle : tuple of float
        Middle of the body from that origin, m, m, and distance of its circle, m.
    target : Target
        Body, with its polygons in `bodies`.
    bodies : Bodies
        Outlines; `world` has the corners in the frame of the world, m.
    """
    dir_x, dir_y, raw, ahead = beams.dir_x, beams.dir_y, beams.raw, beams.ahead
    world, vert_start, bright = bodies.world, bodies.vert_start, beams.bright
    rx, ry, near = circle
    ox, oy, count = beams.org_x[first], beams.org_y[first], end - first
    for n in range(count):
        k = np.uint64(first + n)
        r = raw[k]
        may = meets_circle(rx, ry, dir_x[k], dir_y[k], target.radius, r)
        # No edge is nearer than −1, so that such a beam stays unchanged.
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

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Beams of the device. In-place: beams that hit the body become shorter.
    bodies : Bodies
        Outlines of all bodies.
    device : Device
        Device that owns the bundle.
    b : int
        Number of the bundle in `fans`.
    target : Target
        Body that beams may hit.
    """
    dir_x, dir_y, raw, mount = beams.dir_x, beams.dir_y, beams.raw, fans.mount
    b0, c, s, radius = device.first, device.cosine, device.sine, target.radius
    ex, ey = target.x - device.x, target.y - device.y
    # Position of the body, seen from the origin of the bundle.
    rx, ry = (
        ex - c * mount[b, 0] + s * mount[b, 1],
        ey - s * mount[b, 0] - c * mount[b, 1],
    )
    distance = math.sqrt(rx * rx + ry * ry)
    near = distance - radius
    # A body that is not wider than the narrowest sector can only be hit by beams of the
    # sector of its centre, and of the two neighbours of that sector.
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
        # The bearings of the body's circle form an interval of beams. The interval may
        # cross ±π, where bearings jump.
        half = seen_half(radius / distance) + fans.a_noise[b]
        bearing = about_atan2(ry, rx) - (device.heading + mount[b, 2] + fans.angle0[b])
        bearing -= TWO_PI * math.floor(bearing / TWO_PI)
        if bearing > math.pi:
            bearing -= TWO_PI
        per_step = 1.0 / fans.step[b]
        turns = 2

    for _ in range(turns):
        # If the origin is within the circle, every beam may hit the body.
        if near > 0.0:
            low, high = (bearing - half) * per_step, (bearing + half) * per_step
            bearing += TWO_PI
            # The interval is outside of the fan of beams.
            if high < 0.0 or low > end - start - 1:
                continue
            lo, hi = start + int(max(low, 0.0)), min(end - 1, start + int(high) + 1)

        # Devices need the incidence at reflectors.
        if target.bright > 1:
            for j in range(lo, hi + 1):
                # A beam whose range is at most `near` ends before the circle.
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

    Parameters
    ----------
    beams : Beams
        Beams of the device. In-place: beams that hit the body become shorter.
    bodies : Bodies
        Outlines of all bodies.
    count : int
        Number of beams of the device.
    target : Target
        Body that beams may hit. Beams have origins of their own, so that it is given in
        the frame of the world.
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
            # An unsigned index saves the test for negative indices, which count from
            # the end.
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
    """Shorten the beams of a device to the bodies of adjacent bins.

    Parameters
    ----------
    bodies, bins : Bodies, Bins
        Outlines of all bodies, and bodies by position.
    brights : (n,) int16
        Laser return of each body.
    fans, beams : Fans, Beams
        Devices, and the beams of this one. In-place: beams that hit a body become
        shorter.
    device : Device
        Device that senses; it does not see the body that carries it.
    begin, end : int
        First and last bin. Without bins, `end` is less than `begin`.
    reach : float
        Greatest distance from the body of a point that a beam reaches, m.
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
        # A device with many beams is a laser, any other a sonar ring.
        if has_many_beams(device):
            for b in range(device.first, device.end):
                meet_by_bearing(fans, beams, bodies, device, b, target)
        else:
            meet_by_all(beams, bodies, device.n_beams, target)


@inline_kernel
def bodies_in(bins: Bins, box: tuple[int, int, int, int]) -> int:
    """Return the number of bodies in a box of bins.

    Parameters
    ----------
    bins : Bins
        Bodies by position.
    box : tuple of int
        First and last column, first and last row. A last one below its first one means
        no bins.
    """
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
    """Shorten the beams of a device to bodies in a box of bins, except in a hole of the box.

    Parameters
    ----------
    bodies, bins : Bodies, Bins
        Outlines of all bodies, and bodies by position.
    brights : (n,) int16
        Laser return of each body.
    fans, beams : Fans, Beams
        Devices, and the beams of this one. In-place: beams that hit a body become
        shorter.
    device : Device
        Device that senses.
    box, hole : tuple of int
        First and last column, first and last row of bins. Bodies in `hole` were tested
        before.
    reach : float
        Greatest distance from the body of a point that a beam reaches, m.
    """
    i0, i1, j0, j1 = box
    last_i0, last_i1, last_j0, last_j1 = hole
    nx = bins.shape[0]
    for jy in range(j0, j1 + 1 if i1 >= i0 else j0):
        is_split = last_i1 >= last_i0 and last_j0 <= jy <= last_j1
        # Read a row of bins, or its two parts on both sides of the hole (the bins that
        # were read before).
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
