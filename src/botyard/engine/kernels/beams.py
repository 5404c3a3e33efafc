"""Beams of range sensors: their description, directions, and readings.

Ranges are float64 metres. A beam that hits nothing keeps its highest range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import GOLDEN, gaussian, mix, symmetric
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
# Constants of `whole` and `finish_uniform`.
_LOW_HALF, _HALF, _S11 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11)
_EXPONENT_52, _EXPONENT_84 = np.uint64(0x433 << 52), np.uint64(0x453 << 52)
_OFFSET, _TWO_M52 = 2.0**84 + 2.0**52, 2.0**-52
TWICE_GOLDEN = np.uint64(2 * int(GOLDEN) & (2**64 - 1))
"""Distance of two draws of a stream whose numbers differ by 2."""
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
    beam_sector: I8


class Beams(NamedTuple):
    """Workspace for the beams of one device in the world; each thread has one.

    It is small, and stays in the L1 cache. `meet_walls_at_once` works on
    groups of `WALL_LANES` beams and may go past the last beam of a device.

    Attributes
    ----------
    org_x, org_y : (n,) float64
        Origin of each beam, m; n is the number of beams of the largest device plus
        `WALL_LANES` spare entries.
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
    spans : (3, `wallspans.WALLS_AT_ONCE`) float64
        First and last beam of the span of each wall of a group, and the square of its
        distance in cells.
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
    spans: F8
    reach: F8


class Device(NamedTuple):
    """Device whose beams are cast, and the body that carries it.

    Attributes
    ----------
    row, mask : int
        Row of the body; `Visible` class that the device senses.
    x, y, heading, cosine, sine : float
        Pose of the body, m, m, rad; cosine and sine of its heading.
    first, end : int
        Bundles of the device: first … end − 1.
    n_beams : int
        Number of beams.
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


@inline_kernel
def away_from_zero(d: float) -> float:
    """Return a component of a direction, moved to at least ± `MIN_COMPONENT`."""
    if abs(d) < MIN_COMPONENT:
        return -MIN_COMPONENT if d < 0.0 else MIN_COMPONENT
    return d


@merged_kernel
def aim_beams(fans: Fans, beams: Beams, device: Device, key: int) -> float:
    """Write the directions of all beams of a device, and their highest ranges.

    `key`: random stream of the device. Returns the greatest range, m.
    """
    dir_x, dir_y, raw, bright = beams.dir_x, beams.dir_y, beams.raw, beams.bright
    beam_cos, beam_sin, beam_first = fans.beam_cos, fans.beam_sin, fans.beam_first
    wobbles, r_max, c, s = fans.a_noise, fans.r_max, device.cosine, device.sine
    first, most = beam_first[device.first], 0.0
    # Short loops over few arrays, which the compiler turns into vector instructions
    for j in range(device.n_beams):
        # Unsigned: saves the test for an index that counts from the end.
        k = np.uint64(first + j)
        bc, bs = beam_cos[k], beam_sin[k]
        dir_x[j], dir_y[j] = (
            away_from_zero(c * bc - s * bs),
            away_from_zero(s * bc + c * bs),
        )

    for j in range(device.n_beams):
        bright[j] = 0
    for b in range(device.first, device.end):
        wobble, far = wobbles[b], r_max[b]
        begin, end = beam_first[b] - first, beam_first[b + 1] - first
        most = max(most, far)
        for j in range(begin, end):
            raw[np.uint64(j)] = far
        # Errors of bearing: each beam is rotated by its own draw.
        if wobble > 0.0:
            for j in range(begin, end):
                error = wobble * symmetric(np.uint64(key), np.uint64(2 * j))
                ec, es = cosine_sine(error)
                dx, dy = dir_x[j], dir_y[j]
                dir_x[j], dir_y[j] = (
                    away_from_zero(dx * ec - dy * es),
                    away_from_zero(dx * es + dy * ec),
                )

    return most


@inline_kernel
def place_beams(fans: Fans, beams: Beams, device: Device, lo: int, hi: int) -> None:
    """Write the origins of the beams `lo` … `hi` − 1 of a device.

    Beams that `meet_walls_at_once` shortens need no origins.
    """
    org_x, org_y, beam_x, beam_y = beams.org_x, beams.org_y, fans.beam_x, fans.beam_y
    x, y, c, s = device.x, device.y, device.cosine, device.sine
    first = fans.beam_first[device.first]
    for j in range(lo, hi):
        k, m = np.uint64(first + j), np.uint64(j)
        bx, by = beam_x[k], beam_y[k]
        org_x[m], org_y[m] = x + c * bx - s * by, y + s * bx + c * by


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

    `u` is the radius of the circle divided by its distance, 0 ≤ u < 1. The exact value
    is asin(u).
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
    """Return the longest of the first `count` beams, m.

    The processor computes four independent maxima at the same time.
    """
    a = b = c = d = 0.0
    for j in range(0, count - 3, 4):
        a, b = max(a, raw[j]), max(b, raw[j + 1])
        c, d = max(c, raw[j + 2]), max(d, raw[j + 3])
    for j in range(count - count % 4, count):
        a = max(a, raw[j])
    return max(max(a, b), max(c, d))


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


@inline_kernel
def whole(m: np.uint64) -> float:
    """Return an unsigned integer below 2⁵³ as a float64.

    Both halves become mantissas, of numbers with exponents 52 and 84. Unlike a
    conversion, this needs no instruction that many processors lack for vectors.
    """
    low = np.uint64((m & _LOW_HALF) | _EXPONENT_52).view(np.float64)
    high = np.uint64((m >> _HALF) | _EXPONENT_84).view(np.float64)
    return (high - _OFFSET) + low


@merged_kernel
def finish_uniform(
    raw: F8,
    first: int,
    count: int,
    limits: tuple[float, float, float],
    key: np.uint64,
    ranges: F8,
    at: int,
) -> None:
    """Write the readings of `count` beams from `first` on: `finish_reading` for all.

    `limits`: lowest and highest range, m, and half-width of the uniform error, m. There
    is no other error. The loop has no branches, and becomes vector instructions.
    """
    r_min, r_max, half = limits
    # The draws have the odd numbers from 2·first + 1 on; see `symmetric`.
    state = key + np.uint64(2 * first) * GOLDEN
    for n in range(count):
        state += TWICE_GOLDEN
        exact = raw[np.uint64(first + n)]
        draw = whole(mix(state) >> _S11) * _TWO_M52 - 1.0
        r = exact + half * draw if exact < r_max else exact
        ranges[np.uint64(at + n)] = min(max(r, r_min), r_max)


@merged_kernel
def finish_returns(
    raw: F8,
    raw_bright: I2,
    raw_cos: F8,
    rule: tuple[float, float, int],
    first: int,
    count: int,
    bright: I2,
    at: int,
) -> None:
    """Write the laser returns of `count` beams from `first` on; see `finish_bright`."""
    far, cosine, strength = rule
    most = 0
    for n in range(count):
        most |= int(raw_bright[np.uint64(first + n)])
    # Nothing shines: nearly always
    if most <= 1:
        for n in range(count):
            bright[np.uint64(at + n)] = raw_bright[np.uint64(first + n)]
    else:
        for n in range(count):
            j = first + n
            bright[at + n] = finish_bright(
                int(raw_bright[j]), raw[j], raw_cos[j], far, cosine, strength
            )


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

    They are made from the exact ranges of the beams. Laser returns are not written if
    `bright` has no elements.
    """
    raw, raw_bright, raw_cos = beams.raw, beams.bright, beams.cosine
    beam_first, readings = fans.beam_first, fans.readings
    shines = bright.shape[0] > 0
    for b in range(b0, b1):
        r_min, r_max, missing = fans.r_min[b], fans.r_max[b], fans.missing[b]
        noise = Noise(fans.r_noise[b], fans.r_std[b], fans.r_share[b])
        first, last = beam_first[b] - beam_first[b0], beam_first[b + 1] - beam_first[b0]
        at = out + readings[b] - readings[b0]
        # One reading for each beam: lasers
        if readings[b + 1] - readings[b] == last - first:
            if noise.half > 0.0 and not (noise.std > 0.0 or noise.share > 0.0):
                finish_uniform(
                    raw,
                    first,
                    last - first,
                    (r_min, r_max, noise.half),
                    np.uint64(key),
                    ranges,
                    at,
                )
            else:
                for j in range(first, last):
                    ranges[at + j - first] = finish_reading(
                        raw[j], r_min, r_max, noise, key, j
                    )

            if shines:
                finish_returns(
                    raw,
                    raw_bright,
                    raw_cos,
                    (fans.bright_range[b], fans.bright_cos[b], int(fans.bright_as[b])),
                    first,
                    last - first,
                    bright,
                    at,
                )
        else:
            # One reading for the bundle, the shortest: beams fill the cone of a sonar
            # transducer.
            nearest = r_max
            for j in range(first, last):
                nearest = min(nearest, raw[j])
            ranges[at] = finish_reading(nearest, r_min, r_max, noise, key, first)
            if shines:
                bright[at] = 1 if nearest < r_max else 0

        if missing > 0.0:
            for j in range(readings[b + 1] - readings[b]):
                if is_missing(missing, key, first + j):
                    ranges[at + j] = r_max
                    if shines:
                        bright[at + j] = 0


__all__ = [
    "MIN_COMPONENT",
    "SECTORS",
    "Beams",
    "Device",
    "Fans",
    "Noise",
    "about_atan2",
    "aim_beams",
    "away_from_zero",
    "finish_bundles",
    "longest",
    "note_reach",
    "place_beams",
    "sector_of",
    "seen_half",
]
