"""Shortest paths on a map, as a reference for a robot's path.

A* on a grid, then shortened between corners.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError
from botyard.geometry import distance
from botyard.model.scene import Scene
from botyard.numerics.elementary import hypot

Cells = NDArray[np.bool_]
_STEPS = [(dx, dy, hypot(dx, dy)) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]
"""Steps to the eight neighbours of a cell, with their lengths."""


def inflated(solid: Cells, radius: float) -> Cells:
    """Return the cells whose centre is less than `radius` cells from a solid cell's
    centre.
    """
    found = solid.copy()
    # Shifted copies of the grid replace SciPy's distance transform, because SciPy is
    # not installed everywhere.
    reach = math.floor(radius)
    rows, columns = solid.shape
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            if 0 < dx * dx + dy * dy < radius * radius:
                to = (
                    slice(max(0, dy), rows + min(0, dy)),
                    slice(max(0, dx), columns + min(0, dx)),
                )
                of = (
                    slice(max(0, -dy), rows + min(0, -dy)),
                    slice(max(0, -dx), columns + min(0, -dx)),
                )
                found[to] |= solid[of]

    return found


def shortest_path(
    scene: Scene,
    start: Sequence[float],
    end: Sequence[float],
    radius: float,
    resolution: float = 0.05,
) -> list[tuple[float, float]]:
    """Return the shortest path of a disc between the walls of a map.

    Movable objects are ignored. A* on cells with eight neighbours, then corners are cut
    where the line of sight is free (any-angle paths; Nash et al., "Theta*: Any-Angle
    Path Planning on Grids", AAAI 2007: within about one per cent of the shortest path).

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
    blocked = inflated(solid, radius / resolution)
    a, b = ((math.floor(x) + low[0], math.floor(y) + low[1]) for x, y in points)
    cells = _search(blocked, a, b)
    if cells is None:
        raise WorldError(
            f"no path for a disc of radius {radius:g} m from ({start[0]:g}, "
            f"{start[1]:g}) to ({end[0]:g}, {end[1]:g})"
        )

    tight = _pulled(blocked, cells)
    x0, y0 = (
        raster.x + (0.5 - low[0]) * resolution,
        raster.y + (0.5 - low[1]) * resolution,
    )
    middle = [(x0 + x * resolution, y0 + y * resolution) for x, y in tight[1:-1]]
    return [(float(start[0]), float(start[1])), *middle, (float(end[0]), float(end[1]))]


def path_length(path: Sequence[tuple[float, float]]) -> float:
    """Return the length of a path, m."""
    return sum(distance(p, q) for p, q in itertools.pairwise(path))


def _search(
    blocked: Cells, start: tuple[int, int], end: tuple[int, int]
) -> list[tuple[int, int]] | None:
    """Return the cells (x, y) of a path; None: there is no path.

    The first and last cell may be blocked, because a robot may stand close to a wall.
    """
    rows, columns = blocked.shape
    cost = {start: 0.0}
    before: dict[tuple[int, int], tuple[int, int]] = {}
    queue = [(distance(start, end), start)]
    done: set[tuple[int, int]] = set()
    while queue:
        _, cell = heapq.heappop(queue)
        if cell == end:
            way = [cell]
            while way[-1] != start:
                way.append(before[way[-1]])
            return way[::-1]

        if cell in done:
            continue
        done.add(cell)
        x, y = cell
        for dx, dy, length in _STEPS:
            n = x + dx, y + dy
            if not (0 <= n[0] < columns and 0 <= n[1] < rows) or n in done:
                continue
            # No diagonal step between two blocked cells: the disc would not fit
            # through.
            if n != end and (
                blocked[n[1], n[0]]
                or (dx and dy and blocked[y, n[0]] and blocked[n[1], x])
            ):
                continue

            found = cost[cell] + length
            if found < cost.get(n, math.inf):
                cost[n], before[n] = found, cell
                heapq.heappush(queue, (found + distance(n, end), n))

    return None


def _pulled(blocked: Cells, cells: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the corners of a path after removing cells that a line of sight makes
    redundant.
    """
    way = [cells[0]]
    for cell, after in zip(cells[1:], [*cells[2:], None], strict=True):
        if after is None or not _sees(blocked, way[-1], after):
            way.append(cell)

    return way


def _sees(blocked: Cells, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Return whether the line of sight between two cells is free."""
    # Two samples per cell suffice, because blocked cells were grown by the radius.
    n = 2 * max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    t = np.arange(1, n) / n
    x = np.floor(a[0] + 0.5 + t * (b[0] - a[0])).astype(np.int64)
    y = np.floor(a[1] + 0.5 + t * (b[1] - a[1])).astype(np.int64)
    inner = ~(((x == a[0]) & (y == a[1])) | ((x == b[0]) & (y == b[1])))
    return not blocked[y[inner], x[inner]].any()


__all__ = ["inflated", "path_length", "shortest_path"]
