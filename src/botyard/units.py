"""Conversion of units, and wrapping of angles; no other module defines their rules.

Inside botyard, all values are SI (metres, radians, seconds, volts). Millimetres,
degrees and the Pioneer protocol's scaled integers appear only at the interfaces, which
convert them with these functions.
"""

from __future__ import annotations

import math
from typing import Final

TWO_PI: Final = 2.0 * math.pi
"""One turn, rad."""
DEG: Final = math.pi / 180.0
"""One degree, rad."""


def mm(metres: float) -> float:
    """Convert metres to millimetres.

    Parameters
    ----------
    metres : float
        Length, m. The result is not rounded; see `to_int_wrapped` for integers in messages.
    """
    return metres * 1000.0


def from_mm(millimetres: float) -> float:
    """Convert millimetres to metres.

    The function divides by 1000 instead of multiplying by 0.001: whole millimetres then
    give the float nearest to the decimal value.

    Parameters
    ----------
    millimetres : float
        Length, mm.
    """
    return millimetres / 1000.0


def deg(radians: float) -> float:
    """Convert radians to degrees.

    Parameters
    ----------
    radians : float
        Angle, rad; it is not wrapped.
    """
    return math.degrees(radians)


def from_deg(degrees: float) -> float:
    """Convert degrees to radians.

    Parameters
    ----------
    degrees : float
        Angle, °; it is not wrapped.
    """
    return math.radians(degrees)


def wrap_angle(angle: float) -> float:
    """Wrap an angle into (−π, π] (REP-103).

    Parameters
    ----------
    angle : float
        Any finite angle, rad.

    Returns
    -------
    float
        The equivalent angle, rad, −π < result ≤ π.
    """
    if -math.pi < angle <= math.pi:
        return angle
    # The IEEE remainder is exact and lies in [−π, π].
    wrapped = math.remainder(angle, TWO_PI)
    return math.pi if wrapped <= -math.pi else wrapped


def clamp(value: float, low: float, high: float) -> float:
    """Return `value` limited to [`low`, `high`].

    Parameters
    ----------
    value : float
        Number in any unit. NaN stays NaN.
    low, high : float
        Ends of the range in the same unit, low ≤ high.
    """
    return low if value < low else high if value > high else value


def to_int_wrapped(value: float, bits: int) -> int:
    """Truncate towards zero and wrap into a signed integer, as counters in messages do.

    Values that are not finite give 0, so that each reading can be sent.

    Parameters
    ----------
    value : float
        Number in units of the protocol.
    bits : int
        Number of bits of the integer.

    Returns
    -------
    int
        Integer in −2ᵇⁱᵗˢ⁻¹ … 2ᵇⁱᵗˢ⁻¹ − 1 (two's complement).
    """
    if not math.isfinite(value):
        return 0
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if whole >> (bits - 1) else whole


def to_int_saturated(value: float, low: int, high: int) -> int:
    """Round to the nearest integer and limit to [`low`, `high`].

    NaN gives 0, limited to the range too.

    Parameters
    ----------
    value : float
        Number in units of the protocol; it may be infinite. A half is rounded to the even
        neighbour.
    low, high : int
        Least and greatest integer, such as the range of the field in a message.
    """
    if math.isnan(value):
        return int(clamp(0, low, high))
    if value <= low:
        return low
    if value >= high:
        return high
    return round(value)
