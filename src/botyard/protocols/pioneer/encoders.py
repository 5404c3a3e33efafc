"""Conversion of wheel distances and turn rates to the units of encoder and gyro packets."""

from __future__ import annotations

import math
from typing import Final

from botyard.model.robot import PioneerSpec
from botyard.units import clamp, mm

GYRO_CENTER: Final = 512
"""Reading of a gyro at rest: the middle of its 10 bits (pioneer-protocol §10)."""
GYRO_SCALE: Final = math.radians(1.626)
"""Turn rate for one unit of a gyro reading, rad/s.

Clients know it as the parameter ``GyroScaler``.
"""
GYRO_TEMPERATURE: Final = 128
"""Temperature byte; clients do not use it."""


def ticks(way: float, spec: PioneerSpec) -> int:
    """Return the count of a wheel encoder.

    Parameters
    ----------
    way : float
        Distance that the wheel has rolled, m; negative backwards.
    spec : PioneerSpec
        Model with `ticks_per_mm`.

    Returns
    -------
    int
        Ticks, not yet wrapped to the 32 bits of the packet.
    """
    return round(mm(way) * spec.ticks_per_mm)


def gyro_reading(rate: float) -> int:
    """Return the reading of a gyro at a turn rate.

    Parameters
    ----------
    rate : float
        Turn rate, rad/s, counter-clockwise positive.

    Returns
    -------
    int
        0 to 1023. At rest it is `GYRO_CENTER`; beyond about ±14.5 rad/s it is
        saturated.
    """
    return round(clamp(GYRO_CENTER + rate / GYRO_SCALE, 0, 1023))
