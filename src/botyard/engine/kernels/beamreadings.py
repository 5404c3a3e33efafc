"""Readings of beams: errors, limits, missing returns and bright surfaces."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import Beams, Fans
from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import GOLDEN, gaussian, mix, symmetric
from botyard.engine.layout import F8, I2

MISSING_DRAWS = 1 << 32
"""Number of the first draw for missing readings in the stream of a device.

Draws of ranges and bearings precede it.
"""


GAUSSIAN_DRAWS = 1 << 33
"""Number of the first Gaussian draw in the stream of a device.

Gaussian draw k uses the uniform draws 2·k and 2·k + 1.
"""


# Constants of `whole` and `finish_uniform`.
_LOW_HALF, _HALF, _S11 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11)


_EXPONENT_52, _EXPONENT_84 = np.uint64(0x433 << 52), np.uint64(0x453 << 52)


_OFFSET, _TWO_M52 = 2.0**84 + 2.0**52, 2.0**-52


TWICE_GOLDEN = np.uint64(2 * int(GOLDEN) & (2**64 - 1))
"""Difference of stream positions between two draws whose numbers differ by 2."""


class Noise(NamedTuple):
    """Range errors of a bundle (beams from one origin, with the same limits and errors).

    Attributes
    ----------
    half : float
        Half-width of the uniform error, m.
    std : float
        Standard deviation of the Gaussian error, m.
    share : float
        Part of the standard deviation that grows with the range: its ratio to the range.
    """

    half: float
    std: float
    share: float


@kernel
def finish_reading(
    r: float, r_min: float, r_max: float, noise: Noise, key: int, j: int
) -> float:
    """Return a range with the errors and limits of its sensor.

    A beam that hit nothing has no error.

    Parameters
    ----------
    r : float
        Exact range, m.
    r_min, r_max : float
        Lowest and highest range of the sensor, m. The result is clipped to them.
    noise : Noise
        Errors of the bundle.
    key : int
        Key of the device's random stream.
    j : int
        Number of the beam in the device. It takes the uniform draw 2·j + 1 and the
        Gaussian draw `GAUSSIAN_DRAWS` + j.
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

    # Clip after the errors, because a real sensor never reports a range beyond its
    # limits.
    return min(max(r, r_min), r_max)


@inline_kernel
def is_missing(share: float, key: int, j: int) -> bool:
    """Return whether a reading gets no return.

    Parameters
    ----------
    share : float
        Probability, 0 … 1.
    key : int
        Key of the device's random stream.
    j : int
        Number of the beam in the device. It takes draw `MISSING_DRAWS` + j.
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

    Parameters
    ----------
    bright : int
        Laser return of the obstacle: 0 for none, 1 for a plain surface, 2 for a
        reflector, more for one with a value of its own.
    r : float
        Exact range, m.
    cosine : float
        Cosine of the incidence, 1 if the beam is perpendicular to the surface.
    max_range : float
        Greatest range at which reflectors are recognized, m.
    min_cos : float
        Least cosine of the incidence at which reflectors are recognized.
    strength : int
        Value that the sensor reports for a plain reflector.
    """
    if bright > 1:
        # A reflector that is too far away, or hit at a too oblique angle, is reported
        # like any wall.
        if r > max_range or cosine < min_cos:
            return 1
        # A plain reflector is reported with the number `ReflectorRule.strength`.
        if bright == 2:
            return strength

    return bright


@inline_kernel
def whole(m: np.uint64) -> float:
    """Return an unsigned integer below 2⁵³ as a float64.

    The two halves of the integer become mantissas of numbers with the exponents 52 and
    84. Unlike the usual conversion, these steps have vector instructions on all
    processors.
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
    """Write the readings of beams with uniform errors alone: `finish_reading` for all.

    The loop has no branches, and becomes vector instructions.

    Parameters
    ----------
    raw : (n,) float64
        Exact ranges of the device's beams, m.
    first, count : int
        Beams first … first + count − 1.
    limits : tuple of float
        Lowest and highest range, m, and half-width of the uniform error, m.
    key : uint64
        Key of the device's random stream.
    ranges : (m,) float64
        Output: readings, m, from place `at` on.
    at : int
        First place in `ranges`.
    """
    r_min, r_max, half = limits
    # The draws have the odd numbers from 2·first + 1 on; see `symmetric`.
    state = key + np.uint64(2 * first) * GOLDEN
    for n in range(count):
        state += TWICE_GOLDEN
        # An unsigned index saves the test for negative indices, which would keep the
        # loop from vector instructions.
        exact = raw[np.uint64(first + n)]
        draw = whole(mix(state) >> _S11) * _TWO_M52 - 1.0
        # A beam without a hit has no error, as in `finish_reading`.
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
    """Write the laser returns of beams: `finish_bright` for all.

    Parameters
    ----------
    raw, raw_bright, raw_cos : (n,) float64, (n,) int16, (n,) float64
        Exact ranges, m, laser returns of the obstacles, and cosines of the incidence.
    rule : tuple of (float, float, int)
        Greatest range, m, least cosine of the incidence, and value of a plain
        reflector.
    first, count : int
        Beams first … first + count − 1.
    bright : (m,) int16
        Output: reported returns, from place `at` on.
    at : int
        First place in `bright`.
    """
    far, cosine, strength = rule
    most = 0
    for n in range(count):
        # A bitwise OR has no branch, unlike a maximum, and answers the only question:
        # is a return above 1?
        most |= int(raw_bright[np.uint64(first + n)])
    # In nearly all scans no beam hits a reflector.
    if most <= 1:
        for n in range(count):
            bright[np.uint64(at + n)] = raw_bright[np.uint64(first + n)]
    else:
        for n in range(count):
            j = first + n
            bright[at + n] = finish_bright(
                int(raw_bright[j]), raw[j], raw_cos[j], far, cosine, strength
            )


@inline_kernel
def run_end(fans: Fans, b: int, end: int) -> int:
    """Return the end of the run of bundles that one call of `finish_uniform` completes.

    The bundles have one reading for each beam, the same limits and rule of reflectors, and
    only uniform errors, of one width; missing readings have the same share.

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    b, end : int
        First bundle of the run, and end of the bundles of the device.

    Returns
    -------
    int
        First bundle after the run; `b` if bundle `b` does not meet these conditions.
    """
    first = b
    # The loop without branches is worthwhile for the most frequent kind of error only.
    while (
        b < end
        and fans.readings[b + 1] - fans.readings[b]
        == fans.beam_first[b + 1] - fans.beam_first[b]
        and fans.r_noise[b] > 0.0
        and not (fans.r_std[b] > 0.0 or fans.r_share[b] > 0.0)
        and fans.r_min[b] == fans.r_min[first]
        and fans.r_max[b] == fans.r_max[first]
        and fans.r_noise[b] == fans.r_noise[first]
        and fans.missing[b] == fans.missing[first]
        and fans.bright_range[b] == fans.bright_range[first]
        and fans.bright_cos[b] == fans.bright_cos[first]
        and fans.bright_as[b] == fans.bright_as[first]
    ):
        b += 1

    return b


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
    """Write the readings of a device from the exact ranges of its beams.

    Parameters
    ----------
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Beams of the device, after `cast_beams`.
    b0, b1 : int
        Bundles b0 … b1 − 1 in `fans`: all bundles of the device.
    out : int
        First place of the device in the output.
    key : int
        Key of the device's random stream.
    ranges : (n,) float64
        Output: readings, m. A missing one is the highest range of its bundle.
    bright : (n,) int16 or (0,)
        Output: laser returns, 0 where there is none; without elements none are written.
    """
    raw, raw_bright, raw_cos = beams.raw, beams.bright, beams.cosine
    beam_first, readings = fans.beam_first, fans.readings
    # Sonars and callers without interest in returns pass an empty array.
    shines = bright.shape[0] > 0
    b = b0
    while b < b1:
        r_min, r_max, missing = fans.r_min[b], fans.r_max[b], fans.missing[b]
        noise = Noise(fans.r_noise[b], fans.r_std[b], fans.r_share[b])
        first = beam_first[b] - beam_first[b0]
        at = out + readings[b] - readings[b0]
        # The transducers of a sonar are bundles of one beam each. They are alike, and are
        # completed together.
        end = run_end(fans, b, b1)
        is_run = end > b
        end = max(end, b + 1)
        last = beam_first[end] - beam_first[b0]
        # A laser has one reading for each beam.
        if readings[end] - readings[b] == last - first:
            if is_run:
                limits = (r_min, r_max, noise.half)
                key_word = np.uint64(key)
                finish_uniform(raw, first, last - first, limits, key_word, ranges, at)
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
            # The beams fill the cone of a sonar transducer, and its one reading is the
            # shortest range.
            nearest = r_max
            for j in range(first, last):
                nearest = min(nearest, raw[j])
            ranges[at] = finish_reading(nearest, r_min, r_max, noise, key, first)
            if shines:
                # Sonars have no reflectors: an echo counts as an ordinary return.
                bright[at] = 1 if nearest < r_max else 0

        if missing > 0.0:
            for j in range(readings[end] - readings[b]):
                # Losses have draws of their own, so that switching them on does not
                # change the errors of other readings.
                if is_missing(missing, key, first + j):
                    ranges[at + j] = r_max
                    if shines:
                        bright[at + j] = 0

        b = end


__all__ = ["Noise", "finish_bundles"]
