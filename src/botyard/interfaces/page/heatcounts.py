"""Counts of robots in the cells of a map (`Cells`, `Counts`): visits, times, coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.model.scene import Scene
from botyard.navigation.planning import BLOCKED, Costmap
from botyard.numerics.elementwise import cosine_sine, hypot

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bools = NDArray[np.bool_]

CELL_M: Final = 0.2
"""Least edge of a cell, m."""
CELL_STEP_M: Final = 0.05
"""Edges of cells are multiples of this length, m."""
MAX_CELLS: Final = 250_000
"""Largest number of cells: a larger map gets larger cells."""
STEPS: Final = 16
"""Number of steps of one cell that all beams advance at once (in one array operation)."""
NO_MAP: Final = (-100.0, -100.0, 100.0, 100.0)
"""Area that is counted in a world without bounds, x0, y0, x1, y1, m."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a map.

    Attributes
    ----------
    x, y : float
        Lower left corner, m.
    edge : float
        Edge of a cell, m.
    solid : (rows, columns) bool
        Cells with walls. Row 0 is the lowest.
    free : (rows, columns) bool
        Cells that a robot can reach from the given positions; all False in a world
        without walls.
    """

    x: float
    y: float
    edge: float
    solid: Bools
    free: Bools

    @classmethod
    def of(cls, scene: Scene, places: Sequence[Sequence[float]]) -> Cells:
        """Return the cells of a map.

        Parameters
        ----------
        scene : Scene
            The map.
        places : sequence of (x, y)
            Positions in the free area, m, from which the reachable cells are searched.
        """
        walled = bool(len(scene.segments) or len(scene.points))
        x0, y0, x1, y1 = scene.bounds or NO_MAP
        edge = max(CELL_M, math.sqrt((x1 - x0) * (y1 - y0) / MAX_CELLS))
        edge = math.ceil(edge / CELL_STEP_M - 1e-9) * CELL_STEP_M
        if not walled:
            rows, columns = (math.ceil(size / edge) for size in (y1 - y0, x1 - x0))
            nothing = np.zeros((rows, columns), np.bool_)
            return cls(x0, y0, edge, nothing, nothing)
        raster = scene.to_array(edge)
        solid = raster.solid
        floor = Costmap(
            np.where(solid, np.uint8(BLOCKED), np.uint8(0)),
            raster.x,
            raster.y,
            raster.resolution,
        )
        at = [cell for place in places for cell in [floor.cell(place)] if cell]
        regions = {int(floor.labels[row, column]) for column, row in at} - {0}
        free = np.isin(floor.labels, list(regions))
        return cls(raster.x, raster.y, raster.resolution, solid, free)

    def indices(self, x: F8, y: F8) -> I8:
        """Return the flat index of the cell that contains each position; −1 beyond the map."""
        rows, columns = self.solid.shape
        i = np.floor((x - self.x) / self.edge).astype(np.int64)
        j = np.floor((y - self.y) / self.edge).astype(np.int64)
        inside = (i >= 0) & (i < columns) & (j >= 0) & (j < rows)
        found: I8 = np.where(inside, j * columns + i, -1)
        return found


class Counts:
    """Sums for each cell, to which samples of all robots are added.

    Parameters
    ----------
    cells : Cells
        The cells.

    Attributes
    ----------
    visits, time, stalls, waits : (rows * columns,) float64
        For each cell: number of times that a robot has entered it; and the times that
        robots, stalled robots, and waiting robots were in it, s.
    visited : (rows * columns,) bool
        Whether a robot has covered the cell with the circle around its outline.
    duration : float
        Counted simulated time, s.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        size = cells.solid.size
        self.visits, self.time, self.stalls, self.waits = (
            np.zeros(size) for _ in range(4)
        )
        self.visited = np.zeros(size, np.bool_)
        # A border of walls around the map ends the beams at its edge.
        self._walls = np.pad(cells.solid, 1, constant_values=True)
        self._seen = np.zeros_like(self._walls)
        self.duration = 0.0
        self._offsets: dict[int, tuple[I8, I8]] = {}

    @property
    def seen(self) -> Bools:
        """Whether the beams of a robot have reached each cell, shape (rows * columns,)."""
        return self._seen[1:-1, 1:-1].ravel()

    def add(
        self, poses: F8, before: I8, stalled: Bools, waits: Bools, radii: F8, dt: float
    ) -> I8:
        """Add a sample of robots.

        Parameters
        ----------
        poses : (n, >=2) float64
            Poses of the robots; the first two columns are x and y, m.
        before : (n,) int64
            Cell of each robot in the sample before; −1 for new robots.
        stalled, waits : (n,) bool
            Whether each robot is stalled, or waits.
        radii : (n,) float64
            Radii of the robots, m.
        dt : float
            Time since the sample before, s.

        Returns
        -------
        (n,) int64
            Cell of each robot now, for `before` of the next call; −1 beyond the map.
        """
        x, y = poses[:, 0], poses[:, 1]
        at = self.cells.indices(x, y)
        inside = at >= 0
        moved = inside & (at != before)
        np.add.at(self.visits, at[moved], 1.0)
        if dt > 0.0:
            self.duration += dt
            for times, which in (
                (self.time, inside),
                (self.stalls, inside & stalled),
                (self.waits, inside & waits),
            ):
                np.add.at(times, at[which], dt)
        reach = np.ceil(radii / self.cells.edge).astype(np.int64)
        for cells in np.unique(reach[moved]).tolist():
            self._cover(x, y, radii, moved & (reach == cells), cells)
        return at

    def _cover(self, x: F8, y: F8, radii: F8, which: Bools, reach: int) -> None:
        """Mark as visited the cells whose centre is within the circle of a robot."""
        edge = self.cells.edge
        if reach not in self._offsets:
            span = np.arange(-reach, reach + 1)
            dx, dy = (grid.ravel() for grid in np.meshgrid(span, span))
            self._offsets[reach] = dx, dy
        dx, dy = self._offsets[reach]
        # Centres of the cells around each robot, shape (robots, cells).
        mx, my = (
            (np.floor((p[which] - low) / edge)[:, None] + offset + 0.5) * edge + low
            for p, low, offset in ((x, self.cells.x, dx), (y, self.cells.y, dy))
        )
        off = hypot(mx - x[which, None], my - y[which, None])
        near = (off <= radii[which, None]) | ((dx == 0) & (dy == 0))
        at = self.cells.indices(mx[near], my[near])
        self.visited[at[at >= 0]] = True

    def see(self, x: F8, y: F8, bearings: F8, reach: F8) -> None:
        """Mark as seen the cells that beams cross, up to and including their first wall.

        Parameters
        ----------
        x, y, bearings, reach : (k,) float64
            Origin, m, direction, rad, and range, m, of each beam.
        """
        cells, columns = self.cells, self._walls.shape[1]
        # u, v: origins in units of cells of the raster with its border. du, dv:
        # directions.
        u, v = (x - cells.x) / cells.edge + 1.0, (y - cells.y) / cells.edge + 1.0
        du, dv = cosine_sine(bearings)
        walls, seen = self._walls.ravel(), self._seen.ravel()
        last = reach / cells.edge
        for first in range(0, math.ceil(last.max(initial=0.0)) + 1, STEPS):
            steps = np.arange(first, first + STEPS)
            i, j = (
                np.clip((a[:, None] + da[:, None] * steps).astype(np.int64), 0, most)
                for a, da, most in (
                    (u, du, columns - 1),
                    (v, dv, self._walls.shape[0] - 1),
                )
            )
            at = j * columns + i
            ends = walls[at] | (steps > last[:, None])
            behind = np.zeros_like(ends)
            np.logical_or.accumulate(ends[:, :-1], axis=1, out=behind[:, 1:])
            seen[at[~behind]] = True
            on = ~ends.any(axis=1)
            u, v, du, dv, last = u[on], v[on], du[on], dv[on], last[on]

    def share(self, marked: Bools) -> float | None:
        """Return the share of the free cells that are marked; None without a free area."""
        free = self.cells.free.ravel()
        size = int(np.count_nonzero(free))
        return int(np.count_nonzero(marked & free)) / size if size else None


__all__ = ["MAX_CELLS", "Cells", "Counts"]
