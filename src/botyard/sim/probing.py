"""Queries of a world: random free poses, and ranges from any place to walls."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.engine.batchchecks import MAX_COORDINATE
from botyard.engine.batchrays import cast_rays
from botyard.engine.layout import F8, U8
from botyard.engine.rng import stream_keys, uniform
from botyard.errors import ArgumentError
from botyard.model.obstacles import Visible
from botyard.native.kinds import Pack
from botyard.native.rows import RowTable
from botyard.navigation.kernels.walls import near_walls
from botyard.sim.core import Core
from botyard.sim.freespace import MAX_SPACES, FreeSpace, free_space
from botyard.sim.lru import Recent

FREE_STREAM: Final = (1 << 32) + 2
"""Device number of random free poses in the random streams of simulations."""
MIN_DRAWN, MAX_DRAWN = 64, 4096
"""Least and greatest number of places that one round of a search draws."""
MAX_VAIN_ROUNDS: Final = 40
"""Number of unsuccessful rounds in succession after which the search ends.

A round is unsuccessful if at most one of `VAIN_SHARE` places was free.
"""
VAIN_SHARE: Final = 1000
MAX_RANGE: Final = 1e6
"""Upper bound of a range, m."""
MAX_NEAR_WALLS: Final = 64
"""Highest number of walls returned for a place."""
MAX_WALL_REACH_M: Final = 1000.0
"""Greatest distance of walls that are returned for a place, m."""


class _Taken:
    """Occupied circles, found by cells of a grid, so that only near circles are compared."""

    def __init__(self, edge: float) -> None:
        self._edge = edge
        self._cells: dict[tuple[int, int], list[tuple[float, float, float]]] = {}

    def add(self, x: float, y: float, radius: float) -> None:
        self._cells.setdefault(self._cell(x, y), []).append((x, y, radius))

    def is_free(self, x: float, y: float, radius: float) -> bool:
        """Return whether a circle overlaps no occupied circle.

        Parameters
        ----------
        x, y : float
            Centre, m.
        radius : float
            Radius, m. Its sum with the radius of any occupied circle is at most the
            edge of a cell.
        """
        # Cells are at least as large as two circles: nine cells hold all neighbours.
        i, j = self._cell(x, y)
        for a in (i - 1, i, i + 1):
            for b in (j - 1, j, j + 1):
                for other_x, other_y, other in self._cells.get((a, b), ()):
                    apart = radius + other
                    if (x - other_x) * (x - other_x) + (y - other_y) * (
                        y - other_y
                    ) < apart * apart:
                        return False

        return True

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        return math.floor(x / self._edge), math.floor(y / self._edge)


class Probe:
    """Free space of the present map, cached for several clearances.

    Parameters
    ----------
    core : Core
        Simulated world.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._map: object = None
        self._spaces: Recent[tuple[float, float, bool], FreeSpace] = Recent(MAX_SPACES)

    def _space(self, radius: float, clearance: float, reachable: bool) -> FreeSpace:
        """Return the free space of the present map, from the cache if it is there.

        Parameters
        ----------
        radius : float
            Radius of the circle that represents the robot, m.
        clearance : float
            Distance of places from walls, m.
        reachable : bool
            Whether all places must be in one region.
        """
        grid = self._core.engine.grid
        # A new map makes all cached free space invalid.
        if self._map is not grid:
            self._spaces.clear()
            self._map = grid

        return self._spaces.of(
            (radius, clearance, reachable),
            lambda: free_space(
                self._core.scene, grid, radius, clearance, reachable=reachable
            ),
        )

    def free_poses(
        self, n: int, radius: float, clearance: float, reachable: bool, index: int
    ) -> F8:
        """Return random free poses; see `Simulation.random_free_poses`.

        Parameters
        ----------
        n : int
            Number of poses.
        radius : float
            Radius of the circle that represents the robot, m.
        clearance : float
            Distance of the circles from walls, bodies and each other, m.
        reachable : bool
            Whether all poses must be in one region.
        index : int
            Number of the draw. Seed and index alone determine the poses.

        Returns
        -------
        (n, 3) float64
            Poses: x, y in m, heading in (−π, π] rad.

        Raises
        ------
        ArgumentError
            There is no room for `n` poses.
        """
        space = self._space(radius, clearance, reachable)
        if not len(space.cells):
            raise ArgumentError(
                f"no place in the map is {radius + clearance:.3g} m from all walls"
            )

        bodies, state = self._core.engine.bodies, self._core.snapshot.state
        largest = max([radius, *bodies.radius.tolist()])
        # The edge covers the largest pair of circles, so that nine cells hold all
        # neighbours.
        taken = _Taken(max(2.0 * largest + clearance, 1e-3))
        for (x, y, _), r, mask in zip(
            state.pose.tolist(),
            bodies.radius.tolist(),
            state.mask.tolist(),
            strict=True,
        ):
            # Ghosts and carried bodies take up no room of their own.
            if mask & int(Visible.OBSTACLE):
                taken.add(x, y, r + clearance)

        # Kernels take the low 64 bits of any seed.
        seed: U8 = np.array([self._core.seed & 0xFFFF_FFFF_FFFF_FFFF], np.uint64)
        found: list[tuple[float, float, float]] = []
        turn = vain = 0
        # Rejection sampling: each round has its own random stream, so that the poses
        # depend on the seed and the index alone, not on the number of places drawn
        # before.
        while len(found) < n and vain < MAX_VAIN_ROUNDS:
            before, count = len(found), min(max(n - len(found), MIN_DRAWN), MAX_DRAWN)
            keys = stream_keys(
                np.repeat(seed, count),
                FREE_STREAM,
                index,
                turn,
                np.arange(count, dtype=np.uint64),
            )
            drawn = [uniform(keys, axis) for axis in range(4)]
            cells = space.cells[(drawn[0] * len(space.cells)).astype(np.int64)]
            x = space.x0 + (cells % space.columns + drawn[1]) * space.cell
            y = space.y0 + (cells // space.columns + drawn[2]) * space.cell
            for px, py, th in zip(
                x.tolist(),
                y.tolist(),
                (math.pi - 2.0 * math.pi * drawn[3]).tolist(),
                strict=True,
            ):
                # Drawn places are clear of walls; the test keeps them clear of bodies and of
                # each other.
                if len(found) < n and taken.is_free(px, py, radius):
                    taken.add(px, py, radius + clearance)
                    found.append((px, py, th))

            turn += 1
            # Rounds with rare successes continue; only hopeless ones end the search.
            vain = 0 if (len(found) - before) * VAIN_SHARE > count else vain + 1

        if len(found) < n:
            raise ArgumentError(
                f"there is room for only {len(found)} of {n} places that are "
                f"{clearance:g} m apart"
            )

        return np.array(found, np.float64).reshape(n, 3)

    def cast(
        self, xy: ArrayLike, bearing: ArrayLike, range_max: float, *, boxes: bool
    ) -> F8:
        """Return ranges to the nearest walls and boxes; see `Simulation.cast`.

        Parameters
        ----------
        xy : (…, 2) array
            Places, m.
        bearing : (…) array
            Directions in the world frame, rad; shapes are broadcast against each other.
        range_max : float
            Range returned if nothing is nearer, m.
        boxes : bool
            Whether boxes of the map are visible, at their present poses.

        Returns
        -------
        (…) float64
            Ranges of the common shape, m.

        Raises
        ------
        ArgumentError
            `xy` or `bearing` has another shape, or is not within ±`MAX_COORDINATE`.
        """
        places, directions = (
            arguments.numbers(xy, "xy"),
            arguments.numbers(bearing, "bearing"),
        )
        if places.ndim < 1 or places.shape[-1] != 2:
            raise ArgumentError(
                f"xy: expected an array (…, 2), found one of shape {places.shape}"
            )

        try:
            shape = np.broadcast_shapes(places.shape[:-1], directions.shape)
        except ValueError:
            raise ArgumentError(
                f"bearing: expected a shape that fits {places.shape[:-1]}, "
                f"found {directions.shape}"
            ) from None

        places = np.ascontiguousarray(
            np.broadcast_to(places, (*shape, 2)).reshape(-1, 2)
        )
        directions = np.ascontiguousarray(
            np.broadcast_to(directions, shape).reshape(-1)
        )
        if (
            not (np.abs(places) <= MAX_COORDINATE).all()
            or not (np.abs(directions) <= MAX_COORDINATE).all()
        ):
            raise ArgumentError(
                f"xy, bearing: expected numbers within ±{MAX_COORDINATE:g}, found "
                f"magnitudes up to {np.abs(places).max(initial=0.0):g} and "
                f"{np.abs(directions).max(initial=0.0):g}"
            )

        ranges = np.empty(len(places))
        engine, state = self._core.engine, self._core.engine.state
        # Rays hit boxes, which belong to the map, but not robots.
        rows = np.array(
            [engine.rows[name] for name in self._core.box_names if boxes], np.int64
        )
        of_world = Pack(engine.grid), Pack(engine.bodies), rows, state.pose, state.mask
        table = RowTable(
            cast_rays,
            1,
            lambda _: (
                *of_world,
                places,
                directions,
                ranges,
                range_max,
                int(Visible.LASER),
            ),
        )
        table.fill(0, 1)
        cast_rays(table, np.zeros(1, np.int64))
        return ranges.reshape(shape)

    def near_walls(self, xy: ArrayLike, reach: float, count: int) -> F8:
        """Return the walls nearest to places; see `Simulation.near_walls`.

        Parameters
        ----------
        xy : (…, 2) array
            Places, m.
        reach : float
            Greatest distance of a wall, m.
        count : int
            Number of walls of each place.

        Returns
        -------
        (…, count, 4) float64
            Ends of walls, x and y, m, nearest first; NaN fills missing walls.

        Raises
        ------
        ArgumentError
            `xy` has another shape, or is not within ±`MAX_COORDINATE`.
        """
        places = arguments.numbers(xy, "xy")
        if places.ndim < 1 or places.shape[-1] != 2:
            raise ArgumentError(
                f"xy: expected an array (…, 2), found one of shape {places.shape}"
            )

        if not (np.abs(places) <= MAX_COORDINATE).all():
            raise ArgumentError(
                f"xy: expected numbers within ±{MAX_COORDINATE:g} m, found magnitudes up to "
                f"{np.abs(places).max():g}"
            )

        shape = places.shape[:-1]
        places = np.ascontiguousarray(places.reshape(-1, 2))
        walls, away = np.empty((len(places), count, 4)), np.empty((len(places), count))
        grid = Pack(self._core.engine.grid)
        table = RowTable(
            near_walls,
            1,
            lambda _: (grid, places, reach, int(Visible.OBSTACLE), walls, away),
        )
        table.fill(0, 1)
        near_walls(table, np.zeros(1, np.int64))
        return walls.reshape(*shape, count, 4)


__all__ = ["MAX_NEAR_WALLS", "MAX_RANGE", "MAX_WALL_REACH_M", "Probe"]
