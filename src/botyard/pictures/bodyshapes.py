"""Marks and sizes of bodies in pictures."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from botyard.geometry import Outline
from botyard.pictures.clipping import Point
from botyard.pictures.still import Looks

LINE_M: Final = 0.03
"""Largest width of a body that pictures draw as a line, m.

The page uses the same limit (``web/src/view/shape.ts``).
"""


def heading_mark(outline: Outline) -> list[Point]:
    """Return the triangle that marks the front of a body, in the body's frame, m.

    Parameters
    ----------
    outline : sequence of (float, float)
        Outline of the body, m; its front is in the direction of x.
    """
    nose = max(0.0, *(x for x, _ in outline))
    half = max(abs(y) for _, y in outline)
    return [(nose * 0.94, 0.0), (nose * 0.42, half * 0.42), (nose * 0.42, -half * 0.42)]


def reach(looks: Looks) -> float:
    """Return the distance of a body's farthest point from its origin, m."""
    return max(0.05, *(math.hypot(x, y) for part in looks.parts for x, y in part))


def is_line(looks: Looks) -> bool:
    """Return whether a body is so thin that it looks like a line, such as a reflector of a map.

    A thin body gets an edge in its own colour, because the edge covers all of it.

    Parameters
    ----------
    looks : Looks
        Appearance of the model.
    """
    corners = np.array(
        [corner for part in looks.parts for corner in part], np.float64
    ).reshape(-1, 2)
    return (
        not looks.drives
        and len(corners) > 0
        and float(np.ptp(corners, axis=0).min()) <= LINE_M
    )


__all__ = ["heading_mark", "reach"]
