"""Work on the corners of a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def simplified(path: F8, tolerance: float, most: int) -> F8:
    """Return a path without the corners that hardly change it.

    Douglas, Peucker, "Algorithms for the reduction of the number of points required to
    represent a digitized line or its caricature", Cartographica 10(2), 1973.

    Parameters
    ----------
    path : (n, 2) float64
        Corners, n ≥ 1, m.
    tolerance : float
        Greatest distance of a removed corner from the new path, m.
    most : int
        Number of corners at which the reduction stops, which bounds its time: a result
        with more corners is too coarse.

    Returns
    -------
    (m, 2) float64
        The corners that stay, in order, with the first and the last, m.
    """
    keeps = np.zeros(len(path), np.bool_)
    keeps[[0, -1]] = True
    parts = [(0, len(path) - 1)]
    while parts and np.count_nonzero(keeps) <= most:
        first, last = parts.pop()
        if last - first < 2:
            continue
        edge = path[last] - path[first]
        inner = path[first + 1 : last] - path[first]
        square = edge[0] * edge[0] + edge[1] * edge[1]
        # The line is a segment: a path may turn back beyond its ends.
        share = (inner * edge).sum(axis=1) / (square if square > 0.0 else 1.0)
        off = inner - np.clip(share, 0.0, 1.0)[:, None] * edge
        away = (off * off).sum(axis=1)
        farthest = int(away.argmax())
        if away[farthest] > tolerance * tolerance:
            middle = first + 1 + farthest
            keeps[middle] = True
            parts += [(first, middle), (middle, last)]
    return path[keeps]


__all__ = ["simplified"]
