"""Beams of range sensors: their description, directions, and readings.

Ranges are float64 metres. A beam that hits nothing keeps its highest range.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.noise import symmetric
from botyard.engine.layout import F8, I2, I4, I8, U2, U8
from botyard.numerics.elementary import cosine_sine

MIN_COMPONENT = 1e-12
"""Least magnitude of direction components, which keeps 1/d finite."""
BEARING_ERROR = 2e-5
"""Bound of the error of `about_atan2`, rad."""
SECTORS = 32
"""Number of sectors of directions around a device; see `sector_of`.

For each sector, `Beams.reach` has the longest range of the beams in it.
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
        Standard deviation of the Gaussian error of range, m, and standard deviation of a
        second one, as a ratio to the range. Both add up as variances.
    missing : (n_bundles,) float64
        Fraction of readings without a return, 0 … 1.
    bright_range, bright_cos : (n_bundles,) float64
        Highest range, m, and least cosine of the incidence, at which reflectors are
        recognized.
    bright_as : (n_bundles,) int16
        Value that is reported for a plain reflector, whose laser return is 2.
    readings : (n_bundles + 1,) int64
        Bundle b gives readings[b + 1] − readings[b] readings. A bundle with one reading
        and several beams gives the shortest range.
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
    lanes : (`strides.LANE_FIELDS` · `strides.LANES`,) float64
        Beams on their walks through the grid; see `strides`.
    waiting : (`strides.LANES`,) int32
        Lanes whose beams have entered cells with walls.
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
    lanes: F8
    waiting: I4
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
    """Return a component of a direction, moved to at least ± `MIN_COMPONENT`.

    Parameters
    ----------
    d : float
        Component of a unit vector. Directions stay unit vectors within 1e-12.
    """
    if abs(d) < MIN_COMPONENT:
        return -MIN_COMPONENT if d < 0.0 else MIN_COMPONENT
    return d


@merged_kernel
def aim_beams(fans: Fans, beams: Beams, device: Device, key: int) -> float:
    """Write the directions of all beams of a device, and their highest ranges.

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Output: `dir_x` and `dir_y` in the frame of the world with errors of bearing;
        `raw`, the highest range of each, m; `bright`, 0.
    device : Device
        Device and pose of its body.
    key : int
        Key of the device's random stream, see `stream_key`. Beam j takes draw 2·j.

    Returns
    -------
    float
        Greatest range of all beams, m.
    """
    dir_x, dir_y, raw, bright = beams.dir_x, beams.dir_y, beams.raw, beams.bright
    beam_cos, beam_sin, beam_first = fans.beam_cos, fans.beam_sin, fans.beam_first
    wobbles, r_max, c, s = fans.a_noise, fans.r_max, device.cosine, device.sine
    first, most = beam_first[device.first], 0.0
    # These short loops over few arrays can be compiled to vector instructions.
    for j in range(device.n_beams):
        # An unsigned index saves the test for negative indices, which count from the
        # end.
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
        # With errors of bearing, each beam is rotated by its own draw.
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

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Output: `org_x` and `org_y` in the frame of the world, m.
    device : Device
        Device and pose of its body.
    lo, hi : int
        Beams of the device, counted from 0 over all its bundles.
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

    Parameters
    ----------
    y, x : float
        Components of a vector in one unit, not both 0.

    Returns
    -------
    float
        Angle of the vector from +x, rad in [−π, π].
    """
    ax, ay = abs(x), abs(y)
    # The polynomial is valid for 0 … 1; other octants follow by symmetry.
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
    # Both bounds of asin(u) / u hold on their interval; the larger one near u = 1 is
    # π/2.
    return u * (1.0 + 0.25 * u * u if u < 0.6 else 0.5 * math.pi) + BEARING_ERROR


@inline_kernel
def sector_of(x: float, y: float) -> int:
    """Return the number of the sector, 0 … SECTORS − 1, of the direction (x, y).

    Each quarter circle has a quarter of the sectors. They are equal parts of y / (x +
    y), which needs no arctangent. The narrowest sector has 4 / SECTORS rad.

    Parameters
    ----------
    x, y : float
        Vector of any length, in the frame of the body that carries the device.
    """
    ax, ay = abs(x), abs(y)
    # The bound protects a zero vector from a division by 0.
    part = ay / max(ax + ay, MIN_COMPONENT)
    part = 2.0 - part if x < 0.0 else part
    part = 4.0 - part if y < 0.0 else part
    # Just below the +x axis, rounding may give 4.0, which is one past the last sector.
    return min(int(part * (0.25 * SECTORS)), SECTORS - 1)


@inline_kernel
def longest(raw: F8, count: int) -> float:
    """Return the longest of the first `count` beams, m.

    The processor computes four independent maxima at the same time.

    Parameters
    ----------
    raw : (n,) float64
        Present ranges, m, not negative.
    count : int
        Number of beams, at most n; 0 gives 0.
    """
    # Ranges are not negative, so 0 is a neutral start.
    a = b = c = d = 0.0
    for j in range(0, count - 3, 4):
        a, b = max(a, raw[j]), max(b, raw[j + 1])
        c, d = max(c, raw[j + 2]), max(d, raw[j + 3])
    for j in range(count - count % 4, count):
        a = max(a, raw[j])
    return max(max(a, b), max(c, d))


@merged_kernel
def note_reach(fans: Fans, beams: Beams, b0: int, b1: int) -> float:
    """Write `Beams.reach` for some bundles.

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Beams of the device. Output: `reach`.
    b0, b1 : int
        Bundles b0 … b1 − 1 in `fans`: all bundles of the device.

    Returns
    -------
    float
        Present range of the longest beam of these bundles, m.
    """
    raw, reach, sectors, beam_first = (
        beams.raw,
        beams.reach,
        fans.beam_sector,
        fans.beam_first,
    )
    # `raw` counts from the device's first beam, but `beam_first` from the first beam of
    # all.
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


__all__ = [
    "MIN_COMPONENT",
    "SECTORS",
    "Beams",
    "Device",
    "Fans",
    "about_atan2",
    "aim_beams",
    "away_from_zero",
    "longest",
    "note_reach",
    "place_beams",
    "sector_of",
    "seen_half",
]
