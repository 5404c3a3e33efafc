"""Wheels of car-like robots in pictures."""

from __future__ import annotations

import math
from typing import Final

from botyard.geometry import Outline
from botyard.model.kinematics import Kinematics
from botyard.model.wheelplaces import fixed_places, steered_places

WHEEL_WIDTH: Final = 0.35
"""Ratio of half the width of a drawn wheel to its radius."""


def wheel_shapes(kinematics: Kinematics, steering: float) -> tuple[Outline, ...]:
    """Return the wheels of a car-like drive as rectangles in its frame, m.

    The page draws the same wheels (``web/src/view/shape.ts``).

    Parameters
    ----------
    kinematics : Kinematics
        The drive; without a steered axle the result is empty.
    steering : float
        Angle of the steered axle, rad.
    """
    if not kinematics.steers:
        return ()
    fixed = [(x, y, 0.0) for x, y in fixed_places(kinematics)]
    angles = kinematics.wheel_angles(steering)
    steered = [
        (x, y, th)
        for (x, y), th in zip(steered_places(kinematics), angles, strict=True)
    ]
    return tuple(
        _wheel(x, y, th, kinematics.wheel_radius) for x, y, th in fixed + steered
    )


def _wheel(x: float, y: float, th: float, radius: float) -> Outline:
    c, s = radius * math.cos(th), radius * math.sin(th)
    half = WHEEL_WIDTH
    return tuple(
        (x + a * c - b * s, y + a * s + b * c)
        for a, b in ((1.0, half), (-1.0, half), (-1.0, -half), (1.0, -half))
    )


__all__ = ["WHEEL_WIDTH", "wheel_shapes"]
