"""Places of several robots of one entry of a scenario."""

from __future__ import annotations

import math
from typing import Final

from botyard.geometry import Pose
from botyard.units import wrap_angle

Box = tuple[float, float, float, float]
GOLDEN_ANGLE: Final = math.pi * (3.0 - math.sqrt(5.0))
"""Angle between the headings of successive robots, rad: no two are alike."""


def places_in(area: Box, count: int) -> list[Pose]:
    """Return places in even rows that fill a box.

    Parameters
    ----------
    area : (x0, y0, x1, y1)
        Box, m.
    count : int
        Number of places, at least 1.

    Returns
    -------
    list of Pose
        Centres of nearly square cells, row after row from the lowest one, m. Headings turn
        by the golden angle, rad.
    """
    x0, y0, x1, y1 = area
    width, height = x1 - x0, y1 - y0
    columns = max(1, min(count, math.ceil(math.sqrt(count * width / height))))
    rows = math.ceil(count / columns)
    return [
        Pose(
            x0 + (k % columns + 0.5) * width / columns,
            y0 + (k // columns + 0.5) * height / rows,
            wrap_angle(k * GOLDEN_ANGLE),
        )
        for k in range(count)
    ]


def row_from(pose: Pose, count: int) -> list[Pose]:
    """Return places in a row, 1 m apart in the direction −y, as for robots of the command line.

    Parameters
    ----------
    pose : Pose
        First place, m, m, rad.
    count : int
        Number of places.
    """
    return [Pose(pose.x, pose.y - k, pose.th) for k in range(count)]


__all__ = ["places_in", "row_from"]
