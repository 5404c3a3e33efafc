"""Shortest paths of arcs and lines between two poses, which drive forward only.

Dubins, "On curves of minimal length with a constraint on average curvature", American
Journal of Mathematics 79(3), 1957; words by Shkel, Lumelsky, "Classification of the Dubins
set", Robotics and Autonomous Systems 34, 2001.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import inline_kernel, kernel
from botyard.numerics.elementary import acos, atan2, cos, sin

F8 = NDArray[np.float64]

WORDS = 6
"""Number of kinds of Dubins paths (shortest paths of arcs and lines), see `word_of`."""


@inline_kernel
def positive(angle: float) -> float:
    """Return an angle wrapped to [0, 2π), rad."""
    turned = angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))
    # Rounding must not turn an angle of 0 into a full turn.
    return 0.0 if turned > 2.0 * math.pi - 1e-9 else turned


@kernel
def word_of(number: int, d: float, a: float, b: float, parts: F8) -> bool:
    """Write a path of Dubins for the turning radius 1, and return whether it exists.

    Parameters
    ----------
    number : int
        Parts of the path (L left, S straight, R right): 0 LSL, 1 RSR, 2 LSR, 3 RSL, 4 RLR,
        5 LRL.
    d : float
        Distance of the goal.
    a, b : float
        Headings at the start and at the goal, from the line between them, rad.
    parts : (3, 2) float64
        Output: turn (1 left, −1 right, 0 straight) and length of each part.
    """
    sa, ca, sb, cb = sin(a), cos(a), sin(b), cos(b)
    cab = cos(a - b)
    if number < 2:
        side = 1.0 if number == 0 else -1.0
        square = 2.0 + d * d - 2.0 * cab + side * 2.0 * d * (sa - sb)
        if square < 0.0:
            return False
        to = atan2(side * (cb - ca), d + side * (sa - sb))
        parts[0, 0], parts[0, 1] = side, positive(side * (to - a))
        parts[1, 0], parts[1, 1] = 0.0, math.sqrt(square)
        parts[2, 0], parts[2, 1] = side, positive(side * (b - to))
        return True
    if number < 4:
        side = 1.0 if number == 2 else -1.0
        square = -2.0 + d * d + 2.0 * cab + side * 2.0 * d * (sa + sb)
        if square < 0.0:
            return False
        p = math.sqrt(square)
        to = atan2(side * (-ca - cb), d + side * (sa + sb)) + side * atan2(2.0, p)
        parts[0, 0], parts[0, 1] = side, positive(side * (to - a))
        parts[1, 0], parts[1, 1] = 0.0, p
        parts[2, 0], parts[2, 1] = -side, positive(side * (to - b))
        return True
    side = -1.0 if number == 4 else 1.0
    # The middle circle touches both others.
    inner = (6.0 - d * d + 2.0 * cab + side * 2.0 * d * (sb - sa)) / 8.0
    if abs(inner) > 1.0:
        return False
    p = positive(2.0 * math.pi - acos(inner))
    to = atan2(side * (cb - ca), d + side * (sa - sb))
    first = positive(side * (to - a) + 0.5 * p)
    parts[0, 0], parts[0, 1] = side, first
    parts[1, 0], parts[1, 1] = -side, p
    parts[2, 0], parts[2, 1] = side, positive(side * (b - a) - first + p)
    return True
