"""Special points of a path: robots ask for, enter and release sectors there.

See mmrs.md §3.
"""

from __future__ import annotations

import numpy as np

from botyard.traffic.kernels import runarrays
from botyard.traffic.task import F8, I8, Vehicle

Point = tuple[float, int, int]
"""Special point: position along the path, m; kind of the event; sector."""
Points = tuple[F8, I8, I8]
"""Special points as columns: positions, m; kinds of events; sectors."""


def special_points(v: Vehicle, ahead: float) -> Points:
    """Return all special points of a vehicle, unsorted: critical, enter, release.

    Parameters
    ----------
    v : Vehicle
        Vehicle with n sectors. Its first sector is never asked for, its last never
        released.
    ahead : float
        Distance before a sector at which a robot asks for it, m.

    Returns
    -------
    loc : (3 n − 3,) float64
        Positions of the centre along the path, m; they may be before the start.
    what : (3 n − 3,) int64
        Kinds of events, as in `botyard.traffic.kernels.runarrays`.
    sec : (3 n − 3,) int64
        Sectors that the events concern.
    """
    borders = v.ends[:-1]
    sectors = np.arange(len(borders))
    loc = np.concatenate(
        [borders - v.radius - ahead, borders - v.radius, borders + v.radius]
    )
    what = np.repeat(
        [runarrays.CRITICAL, runarrays.ENTER, runarrays.RELEASE], len(borders)
    )
    return loc, what, np.concatenate([sectors + 1, sectors + 1, sectors])


def points_from_start(
    v: Vehicle, ahead: float, *, finish: bool = False, stops: bool = False
) -> Points:
    """Return the special points ahead of the start, in the order of passing.

    Parameters
    ----------
    v : Vehicle
        Vehicle at its start.
    ahead : float
        Distance before a sector at which a robot asks for it, m.
    finish : bool
        Whether the end of the path is one of the points.
    stops : bool
        Whether the robot comes to rest at the end: it then reaches the end, but no
        other point at the same position.

    Returns
    -------
    loc, what, sec : (k,) float64, (k,) int64, (k,) int64
        Positions along the path, m, kinds and sectors, see `special_points`. Points at
        the same position are in the order of their kinds, then of sectors.
    """
    loc, what, sec = special_points(v, ahead)
    ahead_of_it = np.where(
        what == runarrays.RELEASE, loc > v.start, sec > v.first_sector()
    )
    loc, what, sec = loc[ahead_of_it], what[ahead_of_it], sec[ahead_of_it]
    if finish:
        loc, what, sec = (
            np.append(loc, v.ends[-1]),
            np.append(what, runarrays.FINISH),
            np.append(sec, len(v.ends) - 1),
        )

    # The end sorts before points at the same position if the robot stops there.
    where = np.where(
        (what == runarrays.FINISH) & stops, loc - 2.0 * runarrays.PLACE_TOLERANCE, loc
    )
    order = np.lexsort((sec, what, where))
    return loc[order], what[order], sec[order]


def point_list(points: Points) -> list[Point]:
    """Convert columns of points to a list.

    Parameters
    ----------
    points : tuple of arrays
        Positions, m, kinds and sectors, as `points_from_start` returns them.

    Returns
    -------
    list of (float, int, int)
        One tuple for each point.
    """
    loc, what, sec = points
    return list(zip(loc.tolist(), what.tolist(), sec.tolist(), strict=True))


__all__ = ["Point", "Points", "point_list", "points_from_start", "special_points"]
