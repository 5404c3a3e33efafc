"""Unit conversions and angle wrapping; the only place where their rules are written
down.

Inside botyard everything is SI (metres, radians, seconds, volts). Millimetres, degrees
and the Pioneer protocol's scaled integers appear only at the edges, and go through the
functions of this module. A leaf: imports nothing of botyard.
"""

from __future__ import annotations

import math
from typing import Final

TWO_PI: Final = 2.0 * math.pi
DEG: Final = math.pi / 180.0
"""Radians in one degree."""


def mm(metres: float) -> float:
    """Millimetres in `metres`."""
    return metres * 1000.0


def from_mm(millimetres: float) -> float:
    """Metres in `millimetres`. Division, so that whole millimetres give the nearest
    float to the decimal metres.
    """
    return millimetres / 1000.0


def deg(radians: float) -> float:
    """Degrees in `radians`."""
    return math.degrees(radians)


def from_deg(degrees: float) -> float:
    """Radians in `degrees`."""
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
    wrapped = math.remainder(angle, TWO_PI)  # exact, in [−π, π]
    return math.pi if wrapped <= -math.pi else wrapped


def clamp(value: float, low: float, high: float) -> float:
    """`value` limited to [`low`, `high`]."""
    return low if value < low else high if value > high else value


def to_int_wrapped(value: float, bits: int) -> int:
    """Truncate towards zero and wrap into a signed integer of `bits` bits, as a counter
    on the wire does.

    Non-finite values give 0, so that no reading can break a report.
    """
    if not math.isfinite(value):
        return 0
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if whole >> (bits - 1) else whole


def to_int_saturated(value: float, low: int, high: int) -> int:
    """Round to the nearest integer and limit to [`low`, `high`]; NaN gives 0 (limited)."""
    if math.isnan(value):
        return int(clamp(0, low, high))
    if value <= low:
        return low
    if value >= high:
        return high
    return round(value)
