"""Costmaps of the present map, on which paths of robots are planned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from botyard.engine.layout import U1
from botyard.model.raster import corners_of
from botyard.model.scene import Scene
from botyard.navigation.planning import BLOCKED, Costmap
from botyard.sim.core import Core
from botyard.sim.freespace import blocked_cells
from botyard.sim.lru import Recent

CELL_M: Final = 0.05
"""Least edge of a cell, m."""
MAX_FLOOR_CELLS: Final = 2e6
"""Largest number of cells: a larger map gets larger cells."""
MARGIN_M: Final = 2.0
"""Width of the floor around the walls, besides two radii, m."""
BLOCK_M: Final = 20.0
"""Edge of the blocks by which a costmap grows beyond the margin, m.

So near places outside of the map share one costmap.
"""
OUTSIDE_M: Final = 20.0
"""Greatest distance from the map of places that a costmap may grow to cover, m.

See `Floors.extent`.
"""
EMPTY_M: Final = 500.0
"""`OUTSIDE_M` for a world without a map, m: there it is a distance from the robot."""
MAX_FLOORS: Final = 8
"""Number of costmaps that are kept, most recently used first."""

Key = tuple[float, tuple[float, float, float, float]]


class Floors:
    """Costmaps for circular robots between the walls of the present map.

    They are made when they are first asked for, and kept until the map changes.

    Parameters
    ----------
    core : Core
        Simulated world.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._map: object = None
        self._bounds: tuple[float, float, float, float] | None = None
        self._floors: Recent[Key, Costmap] = Recent(MAX_FLOORS)

    def of(self, radius: float, points: Sequence[Sequence[float]]) -> Costmap:
        """Return the costmap for a robot.

        A disc of this radius whose centre is anywhere in a free cell touches no wall that
        stops robots.

        Parameters
        ----------
        radius : float
            Radius of the robot with its clearance, m.
        points : sequence of (x, y)
            Places that the costmap covers, besides the map, m.

        Returns
        -------
        Costmap
            Cells have 5 cm, or more on a large map. Bodies are left out.
        """
        box = _covering(self._present(), MARGIN_M + 2.0 * radius, points)
        return self._floors.of((radius, box), lambda: self._made(radius, box))

    def extent(self, home: Sequence[float]) -> tuple[float, float, float, float]:
        """Return the area (x0, y0, x1, y1) to which requests may let a costmap grow, m.

        Parameters
        ----------
        home : sequence of float
            Place of the robot, x and y, m: the area surrounds it if there is no map.
        """
        bounds = self._present()
        far = EMPTY_M if bounds is None else OUTSIDE_M
        x0, y0, x1, y1 = bounds or (home[0], home[1], home[0], home[1])
        return x0 - far, y0 - far, x1 + far, y1 + far

    def _present(self) -> tuple[float, float, float, float] | None:
        """Return the bounds of the present map; forget costmaps of the map before."""
        grid = self._core.engine.grid
        if self._map is not grid:
            self._floors.clear()
            self._map, self._bounds = grid, _bounds(self._core.scene)
        return self._bounds

    def _made(self, radius: float, box: tuple[float, float, float, float]) -> Costmap:
        x0, y0, x1, y1 = box
        width, height = x1 - x0, y1 - y0
        cell = max(
            CELL_M,
            math.sqrt(width * height / MAX_FLOOR_CELLS),
            width / MAX_FLOOR_CELLS,
            height / MAX_FLOOR_CELLS,
        )
        columns, rows = (max(1, math.ceil(size / cell)) for size in (width, height))
        # Half a diagonal is added, because every place in a free cell must be free.
        blocked = blocked_cells(
            self._core.scene,
            self._core.engine.grid,
            (x0, y0, cell, columns, rows),
            radius + cell * math.sqrt(0.5),
        )
        costs: U1 = np.where(blocked, BLOCKED, 0).astype(np.uint8)
        return Costmap(costs, x0, y0, cell)


def _bounds(scene: Scene) -> tuple[float, float, float, float] | None:
    """Return the bounds of the walls of a map and of its rasters; None without any."""
    walls = replace(scene, boxes=()).bounds
    traced = corners_of(scene)
    parts = [] if walls is None else [np.reshape(walls, (2, 2))]
    parts += [traced] if len(traced) else []
    if not parts:
        return None
    corners = np.concatenate(parts)
    x0, y0 = corners.min(axis=0).tolist()
    x1, y1 = corners.max(axis=0).tolist()
    return x0, y0, x1, y1


def _covering(
    bounds: tuple[float, float, float, float] | None,
    margin: float,
    points: Sequence[Sequence[float]],
) -> tuple[float, float, float, float]:
    """Return bounds with a margin that cover points.

    Parameters
    ----------
    bounds : (x0, y0, x1, y1) or None
        Bounds of the map, m.
    margin : float
        Width of the margin, m.
    points : sequence of (x, y)
        Places, m. Bounds grow in blocks towards places outside.
    """
    low, high = [], []
    for axis in (0, 1):
        values = [float(p[axis]) for p in points]
        if bounds is None:
            # Whole blocks around the places, so that near places have equal bounds.
            a = math.floor((min(values) - margin) / BLOCK_M) * BLOCK_M
            b = math.ceil((max(values) + margin) / BLOCK_M) * BLOCK_M
        else:
            a, b = bounds[axis] - margin, bounds[axis + 2] + margin
            under, over = a - (min(values) - margin), max(values) + margin - b
            # A place at the very edge of the map needs the margin alone.
            a -= max(0, math.ceil((under - margin) / BLOCK_M)) * BLOCK_M
            b += max(0, math.ceil((over - margin) / BLOCK_M)) * BLOCK_M
        low.append(a)
        high.append(b)
    return low[0], low[1], high[0], high[1]


__all__ = ["Floors"]
