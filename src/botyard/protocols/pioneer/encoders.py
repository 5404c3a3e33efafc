"""Wheel encoders and gyro in packets: inputs of dead reckoning (UNS-011, UNS-012)."""

from __future__ import annotations

import math
from typing import Final

from botyard.model.robot import PioneerSpec
from botyard.units import clamp, mm

GYRO_CENTER: Final = 512
"""Reading of a gyro at rest: the middle of its 10 bits (pioneer-protocol §10)."""
GYRO_SCALE: Final = math.radians(1.626)
"""Turn rate of one unit, rad/s: ``GyroScaler`` of clients (formats §2.2)."""
GYRO_TEMPERATURE: Final = 128
"""Temperature byte; clients do not use it."""


def ticks(way: float, spec: PioneerSpec) -> int:
    """Return the count of a wheel encoder after a distance of the wheel, m."""
    return round(mm(way) * spec.ticks_per_mm)


def gyro_reading(rate: float) -> int:
    """Return the 10-bit gyro reading at a turn rate, rad/s, CCW positive."""
    return round(clamp(GYRO_CENTER + rate / GYRO_SCALE, 0, 1023))
