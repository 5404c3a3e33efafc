"""The special points of a path: where a robot asks, enters and releases (mmrs.md §3)."""

from __future__ import annotations

import numpy as np

from botyard.traffic.kernels import events as k
from botyard.traffic.task import F8, I8, Vehicle

Point = tuple[float, int, int]
"""Place, m; kind of the event; sector."""
Points = tuple[F8, I8, I8]
"""The same of many, by columns."""


def special_points(v: Vehicle, ahead: float) -> Points:
    """All of a vehicle's points, in no order: critical, enter, release.

    Parameters
    ----------
    ahead : float
        How far before it enters a sector it asks for it, m.
    """
    borders = v.ends[:-1]
    sectors = np.arange(len(borders))
    loc = np.concatenate([borders - v.radius - ahead, borders - v.radius, borders + v.radius])
    what = np.repeat([k.CRITICAL, k.ENTER, k.RELEASE], len(borders))
    return loc, what, np.concatenate([sectors + 1, sectors + 1, sectors])


def points_from_start(v: Vehicle, ahead: float, *, finish: bool = False) -> Points:
    """Those that are not behind where it starts, in the order in which they are passed; with the end of the path, if that is wanted."""
    loc, what, sec = special_points(v, ahead)
    ahead_of_it = np.where(what == k.RELEASE, loc > v.start, sec > v.first_sector())
    loc, what, sec = loc[ahead_of_it], what[ahead_of_it], sec[ahead_of_it]
    if finish:
        loc, what, sec = np.append(loc, v.ends[-1]), np.append(what, k.FINISH), np.append(sec, len(v.ends) - 1)
    order = np.lexsort((sec, what, loc))
    return loc[order], what[order], sec[order]


def listed(points: Points) -> list[Point]:
    """Points one by one."""
    loc, what, sec = points
    return list(zip(loc.tolist(), what.tolist(), sec.tolist(), strict=True))


__all__ = ["Point", "Points", "listed", "points_from_start", "special_points"]
