"""Beams of range sensors: their description, directions, and readings.

Ranges are float64 metres. A beam that hits nothing keeps its highest range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import gaussian, symmetric
from botyard.engine.layout import F8, I2, I8, U2, U8
from botyard.numerics.elementary import cosine_sine

MIN_COMPONENT = 1e-12
"""Least magnitude of direction components, which keeps 1/d finite."""
BEARING_ERROR = 2e-5
"""Bound of the error of `about_atan2`, rad."""
MISSING_DRAWS = 1 << 32
"""Number of the first draw for missing readings in the stream of a device.

Draws of ranges and bearings precede it.
"""
GAUSSIAN_DRAWS = 1 << 33
"""Number of the first Gaussian draw in that stream.

Gaussian draws take the uniform draws from twice this number on.
"""
SECTORS = 32
"""Number of directions in which a device notes the reach of its beams; see `sector_of`.
"""


class Fans(NamedTuple):
    """All devices of one kind of sensor, with their beams.

    Devices with the same beams share a *kind*. A kind has bundles (beams from one
    origin), a bundle has beams. Everything is in the frame of the body that carries the
    device.

    Attributes
    ----------
    row : (n_devices,) int64
        Body that carries the device.
    key : (n_devices,) uint64
        Device number in the random streams.
    mask : (n_devices,) uint16
        `Visible` class that the device senses.
    kind : (n_devices,) int64
        Kind of the device.
    out : (n_devices,) int64
        Start of its readings in the output.
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
    r_std, r_share : (n_bundles,) float64
        Standard deviation of the Gaussian error of range, m, and its part in proportion to
        the range. Both add up as variances.
    missing : (n_bundles,) float64
        Fraction of readings without a return, 0 … 1.
    bright_range, bright_cos : (n_bundles,) float64
        Highest range, m, and least cosine of the incidence of bright returns.
    bright_as : (n_bundles,) int16
        Reported value of a laser return of 2.
    readings : (n_bundles + 1,) int64
        Bundle b gives readings[b + 1] − readings[b] readings. A bundle with one reading and
        several beams gives the shortest.
    beam_x, beam_y : (n_beams,) float64
        Origin of each beam, m.
    beam_cos, beam_sin : (n_beams,) float64
        Direction of each beam.
    beam_r_max : (n_beams,) float64
        Highest range of each beam, m.
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
    r_std: F8
    r_share: F8
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
    """Workspace for the beams of one device in the world; each thread has one.

    It is small, and stays in the L1 cache.

    Attributes
    ----------
    org_x, org_y : (n,) float64
        Origin of each beam, m; n is the highest number of beams of a device.
    dir_x, dir_y : (n,) float64
        Direction of each beam.
    raw : (n,) float64
        Exact range of each beam, m.
    bright : (n,) int16
        Laser return of the obstacle of each beam; 0 for none.
    cosine : (n,) float64
        Cosine of the incidence at bright surfaces.
    ahead : (n,) float64
        Ranges in cells of the grid during the search for walls; see `wallspans`.
    slots : (`wallspans.WALL_SLOTS`,) int64
        Entries of the grid that were tested last.
    reach : (m, SECTORS) float64
        Highest range, m, of the beams of each bundle in each sector and its two neighbours;
        m is the highest number of bundles of a device.
    """

    org_x: F8
    org_y: F8
    dir_x: F8
    dir_y: F8
    raw: F8
    bright: I2
    cosine: F8
    ahead: F8
    slots: I8
    reach: F8


@inline_kernel
def away_from_zero(d: float) -> float:
    """Return `d`, or ± the least allowed component."""
    if abs(d) < MIN_COMPONENT:
        return -MIN_COMPONENT if d < 0.0 else MIN_COMPONENT
    return d


@merged_kernel
def aim_beams(
    fans: Fans, beams: Beams, b0: int, b1: int, x: float, y: float, th: float, key: int
) -> None:
    """Write origins and directions of all beams of the bundles `b0` … `b1` − 1.

    The beams get their highest ranges. `x`, `y`, `th`: pose of the body that carries
    them; `key`: random stream of the device.
    """
    dir_x, dir_y, org_x, org_y = beams.dir_x, beams.dir_y, beams.org_x, beams.org_y
    raw, bright, cosine = beams.raw, beams.bright, beams.cosine
    beam_cos, beam_sin, beam_x, beam_y, r_max = (
        fans.beam_cos,
        fans.beam_sin,
        fans.beam_x,
        fans.beam_y,
        fans.beam_r_max,
    )
    beam_first, wobbles = fans.beam_first, fans.a_noise
    first, last = beam_first[b0], beam_first[b1]
    c, s = cosine_sine(th)
    # Short loops over few arrays, which the compiler turns into vector instructions
    for j in range(first, last):
        bc, bs = beam_cos[j], beam_sin[j]
        dir_x[j - first], dir_y[j - first] = (
            away_from_zero(c * bc - s * bs),
            away_from_zero(s * bc + c * bs),
        )

    for j in range(first, last):
        bx, by = beam_x[j], beam_y[j]
        org_x[j - first], org_y[j - first] = x + c * bx - s * by, y + s * bx + c * by

    for j in range(first, last):
        raw[j - first], bright[j - first], cosine[j - first] = r_max[j], 0, 0.0
    for b in range(b0, b1):
        wobble = wobbles[b]
        # Errors of bearing: each beam is rotated by its own draw.
        if wobble > 0.0:
            for j in range(beam_first[b] - first, beam_first[b + 1] - first):
                error = wobble * symmetric(np.uint64(key), np.uint64(2 * j))
                ec, es = cosine_sine(error)
                dx, dy = dir_x[j], dir_y[j]
                dir_x[j], dir_y[j] = (
                    away_from_zero(dx * ec - dy * es),
                    away_from_zero(dx * es + dy * ec),
                )


@inline_kernel
def about_atan2(y: float, x: float) -> float:
    """Return atan2(y, x) with an error below `BEARING_ERROR`, in a third of its time.

    See Abramowitz & Stegun, 4.4.49.
    """
    ax, ay = abs(x), abs(y)
    z = min(ax, ay) / max(ax, ay)
    q = z * z
    a = z * (
        0.9998660
        + q * (-0.3302995 + q * (0.1801410 + q * (-0.0851330 + q * 0.0208351)))
    )
    a = 0.5 * math.pi - a if ay > ax else a
    a = math.pi - a if x < 0.0 else a
    return -a if y < 0.0 else a


@inline_kernel
def seen_half(u: float) -> float:
    """Return an upper bound for half the angle that a circle covers.

    The radius of the circle is `u` of its distance, 0 ≤ u < 1; the exact value is
    asin(u).
    """
    return u * (1.0 + 0.25 * u * u if u < 0.6 else 0.5 * math.pi) + BEARING_ERROR


@inline_kernel
def sector_of(x: float, y: float) -> int:
    """Return the number of the sector, 0 … SECTORS − 1, of the direction (x, y).

    Each quarter circle has a quarter of the sectors. They are equal parts of y / (x +
    y), which needs no arctangent. The narrowest sector has 4 / SECTORS rad.
    """
    ax, ay = abs(x), abs(y)
    part = ay / max(ax + ay, MIN_COMPONENT)
    part = 2.0 - part if x < 0.0 else part
    part = 4.0 - part if y < 0.0 else part
    return min(int(part * (0.25 * SECTORS)), SECTORS - 1)


@inline_kernel
def longest(raw: F8, count: int) -> float:
    """Return the longest of the first `count` beams, m."""
    most = 0.0
    for j in range(count):
        most = max(most, raw[j])
    return most


@merged_kernel
def note_reach(fans: Fans, beams: Beams, b0: int, b1: int) -> float:
    """Write `Beams.reach` for the bundles `b0` … `b1` − 1; return the greatest, m."""
    raw, reach, sectors, beam_first = (
        beams.raw,
        beams.reach,
        fans.beam_sector,
        fans.beam_first,
    )
    first = beam_first[b0]
    most = 0.0
    for b in range(b0, b1):
        n = b - b0
        for k in range(SECTORS):
            reach[n, k] = 0.0
        for j in range(beam_first[b], beam_first[b + 1]):
            k = sectors[j]
            reach[n, k] = max(reach[n, k], raw[j - first])

        # Beams of the next sector may hit a body at the border of its sector: each
        # sector gets the greatest value of itself and both neighbours.
        head, before = reach[n, 0], reach[n, SECTORS - 1]
        for k in range(SECTORS):
            here = reach[n, k]
            after = reach[n, k + 1] if k + 1 < SECTORS else head
            reach[n, k] = max(max(before, here), after)
            most = max(most, here)
            before = here

    return most


class Noise(NamedTuple):
    """Range errors of a bundle.

    They are the half-width of the uniform error, m; the standard deviation of the
    Gaussian error, m; and the latter's proportional part.
    """

    half: float
    std: float
    share: float


@kernel
def finish_reading(
    r: float, r_min: float, r_max: float, noise: Noise, key: int, j: int
) -> float:
    """Return the exact range `r`, m, with errors and limits applied.

    A beam that hit nothing has no error.
    """
    if r < r_max:
        # The proportional deviation refers to the true range, not to the noisy one.
        exact = r
        if noise.half > 0.0:
            r += noise.half * symmetric(np.uint64(key), np.uint64(2 * j + 1))
        if noise.std > 0.0 or noise.share > 0.0:
            spread = math.sqrt(
                noise.std * noise.std + noise.share * exact * (noise.share * exact)
            )
            r += spread * gaussian(np.uint64(key), np.uint64(GAUSSIAN_DRAWS + j))

    return min(max(r, r_min), r_max)


@inline_kernel
def is_missing(share: float, key: int, j: int) -> bool:
    """Return whether reading `j` of a bundle gets no return.

    `share` is the probability.
    """
    return (
        share > 0.0
        and 0.5 * (symmetric(np.uint64(key), np.uint64(MISSING_DRAWS + j)) + 1.0)
        < share
    )


@kernel
def finish_bright(
    bright: int,
    r: float,
    cosine: float,
    max_range: float,
    min_cos: float,
    strength: int,
) -> int:
    """Return the reported laser return.

    Bright surfaces count only within the device's range and incidence (SEN-007).
    """
    if bright > 1:
        # Too far or too oblique: like any wall.
        if r > max_range or cosine < min_cos:
            return 1
        # A plain reflector: reported as `ReflectorRule.strength`
        if bright == 2:
            return strength

    return bright


@merged_kernel
def finish_bundles(
    fans: Fans,
    beams: Beams,
    b0: int,
    b1: int,
    out: int,
    key: int,
    ranges: F8,
    bright: I2,
) -> None:
    """Write the readings of the bundles `b0` … `b1` − 1 from place `out` on.

    They are made from the exact ranges of the beams.
    """
    raw, raw_bright, raw_cos = beams.raw, beams.bright, beams.cosine
    beam_first, readings = fans.beam_first, fans.readings
    r_mins, r_maxs = fans.r_min, fans.r_max
    fars, cosines, strengths = fans.bright_range, fans.bright_cos, fans.bright_as
    for b in range(b0, b1):
        r_min, r_max, missing = r_mins[b], r_maxs[b], fans.missing[b]
        noise = Noise(fans.r_noise[b], fans.r_std[b], fans.r_share[b])
        far, cosine, strength = fars[b], cosines[b], int(strengths[b])
        first, last = beam_first[b] - beam_first[b0], beam_first[b + 1] - beam_first[b0]
        at = out + readings[b] - readings[b0]
        # One reading for each beam: lasers
        if readings[b + 1] - readings[b] == last - first:
            for j in range(first, last):
                ranges[at + j - first] = finish_reading(
                    raw[j], r_min, r_max, noise, key, j
                )
                bright[at + j - first] = finish_bright(
                    int(raw_bright[j]), raw[j], raw_cos[j], far, cosine, strength
                )
        else:
            # One reading for the bundle, the shortest: beams fill the cone of a sonar
            # transducer.
            nearest = r_max
            for j in range(first, last):
                nearest = min(nearest, raw[j])
            ranges[at] = finish_reading(nearest, r_min, r_max, noise, key, first)
            bright[at] = 1 if nearest < r_max else 0

        if missing > 0.0:
            for j in range(readings[b + 1] - readings[b]):
                if is_missing(missing, key, first + j):
                    ranges[at + j], bright[at + j] = r_max, 0


__all__ = [
    "MIN_COMPONENT",
    "SECTORS",
    "Beams",
    "Fans",
    "Noise",
    "about_atan2",
    "aim_beams",
    "away_from_zero",
    "finish_bundles",
    "longest",
    "note_reach",
    "sector_of",
    "seen_half",
]
