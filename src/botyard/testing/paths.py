"""Shortest paths on a map, as a reference for a robot's path."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from botyard.errors import WorldError
from botyard.geometry import distance
from botyard.model.raster import Raster
from botyard.model.scene import Scene
from botyard.navigation.planning import Costmap, NoPathError


def shortest_path(
    scene: Scene,
    start: Sequence[float],
    end: Sequence[float],
    radius: float,
    resolution: float = 0.05,
) -> list[tuple[float, float]]:
    """Return the shortest path of a disc between the walls of a map.

    Movable objects are ignored. The path is found by theta*, see
    `botyard.navigation.planning`: it is within about one per cent of the shortest path.

    Parameters
    ----------
    scene : Scene
        The map.
    start, end : sequence of float
        x and y, m.
    radius : float
        Radius of the disc, m.
    resolution : float
        Edge length of a cell, m.

    Returns
    -------
    list of (x, y)
        Corners of the path, from `start` to `end`, m.

    Raises
    ------
    WorldError
        There is no path, or the map has too many cells.
    """
    raster = scene.to_array(resolution, filled=False)

    # The path may lead around the outermost walls, which needs room for the disc.
    margin = 2 + math.ceil(radius / resolution)
    points = [
        ((p[0] - raster.x) / resolution, (p[1] - raster.y) / resolution)
        for p in (start, end)
    ]
    rows, columns = raster.solid.shape
    low = [max(0, math.ceil(-min(p[k] for p in points))) + margin for k in (0, 1)]
    high = [
        max(0, math.ceil(max(p[k] for p in points)) - size) + margin
        for k, size in ((0, columns), (1, rows))
    ]
    solid = np.pad(raster.solid, ((low[1], high[1]), (low[0], high[0])))
    x, y = raster.x - low[0] * resolution, raster.y - low[1] * resolution
    around = Costmap.of(Raster(solid, x, y, resolution), radius)

    # The first and the last cell may be blocked, because a robot may stand close to a
    # wall.
    costs = around.costs.copy()
    for point in (start, end):
        cell = around.cell(point)
        if cell is not None:
            costs[cell[1], cell[0]] = 0
    try:
        path = Costmap(costs, x, y, resolution).path(start, end)
    except NoPathError:
        raise WorldError(
            f"no path for a disc of radius {radius:g} m from ({start[0]:g}, "
            f"{start[1]:g}) to ({end[0]:g}, {end[1]:g})"
        ) from None

    return [(float(x), float(y)) for x, y in path.tolist()]


def path_length(path: Sequence[tuple[float, float]]) -> float:
    """Return the length of a path, m.

    Parameters
    ----------
    path : sequence of (float, float)
        Corners of the path in order, m.
    """
    return sum(distance(p, q) for p, q in itertools.pairwise(path))


__all__ = ["path_length", "shortest_path"]
