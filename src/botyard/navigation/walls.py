"""Distances between points and walls, as arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def distances_to(walls: F8, places: F8) -> F8:
    """Return the distance of each point from the nearest of its walls.

    Parameters
    ----------
    walls : (…, w, 4) float64
        End points of walls, m, as from `Worlds.near_walls`; NaN for unused rows.
    places : (…, 2) float64
        Points, m.

    Returns
    -------
    (…) float64
        Distances, m; infinite without walls.
    """
    ax, ay = walls[..., 0], walls[..., 1]
    ex, ey = walls[..., 2] - ax, walls[..., 3] - ay
    dx, dy = places[..., None, 0] - ax, places[..., None, 1] - ay
    length2 = ex * ex + ey * ey
    # A wall of length 0 is a point: the divisor must not be 0.
    along = np.clip(
        (dx * ex + dy * ey) / np.where(length2 > 0.0, length2, 1.0), 0.0, 1.0
    )
    x, y = dx - along * ex, dy - along * ey
    away = np.sqrt(x * x + y * y)
    # Unused rows are infinitely far away.
    nearest: F8 = np.where(np.isnan(away), math.inf, away).min(axis=-1)
    return nearest


__all__ = ["distances_to"]
