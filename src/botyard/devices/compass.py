"""Compass: heading against map north (+y), clockwise, without error (UNS-010)."""

from __future__ import annotations

import math


def bearing(th: float) -> float:
    """Compass heading, rad in [0, 2π), of a robot whose true heading is `th` rad (counter-clockwise from +x, which is east)."""
    return (math.pi / 2 - th) % (2.0 * math.pi)
