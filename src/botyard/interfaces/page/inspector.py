"""Debug views of the engine for the page.

The views show the grid, clearances, rays and collision candidates.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec
import numpy as np

from botyard.api.revisions import Subject
from botyard.engine.inspection import (
    Squares,
    cells,
    clearances,
    collision_candidates,
    occupied_cells,
    ray_walk,
)
from botyard.errors import WorldError
from botyard.geometry import compose
from botyard.interfaces.page.viewsource import drawn_devices
from botyard.protocols.webgui.messages import Debug
from botyard.protocols.webgui.pushes import DebugResult, encoder
from botyard.sim.simulation import Simulation

SHOWN_RAYS = 9
"""Number of rays of a laser for which the page shows the visited grid cells."""


CACHE_SIZE: Final = 8
"""Largest number of cached answers about parts of the map (LRU cache)."""


class Inspector:
    """Answers to the page's debug requests about the engine.

    Answers about the map are cached until it changes.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._map = -1
        self._cache: OrderedDict[tuple[object, ...], msgspec.Raw] = OrderedDict()

    def answer(self, request: Debug) -> DebugResult | msgspec.Raw:
        """Return the answer to a debug request; cached answers are JSON text.

        Parameters
        ----------
        request : Debug
            Kind of the view, and the robot or region that it shows.

        Raises
        ------
        KeyError, WorldError
            The robot is unknown, or has no laser.
        """
        # Only the views of the map are cached: the other views change with every step.
        if request.what not in ("grid", "clearance"):
            return look_into(self._sim, request)
        grid, revision = (
            self._sim.core.engine.grid,
            self._sim.core.feed.last(Subject.MAP),
        )
        if revision != self._map:
            self._map = revision
            self._cache.clear()

        # Requests for slightly different boxes that cover the same cells share an
        # answer.
        key = (
            request.what,
            *cells(grid, (request.x0, request.y0, request.x1, request.y1)),
        )
        made = self._cache.get(key)
        if made is None:
            made = self._cache[key] = msgspec.Raw(
                encoder.encode(look_into(self._sim, request))
            )
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)

        self._cache.move_to_end(key)
        return made


def look_into(sim: Simulation, request: Debug) -> DebugResult:
    """Return the answer to a debug request, newly computed.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read.
    request : Debug
        Kind of the view, and the robot or region that it shows.

    Raises
    ------
    KeyError, WorldError
        The robot is unknown, or has no laser.
    """
    engine = sim.core.engine
    box = (request.x0, request.y0, request.x1, request.y1)
    if request.what == "grid":
        return DebugResult(squares=_flat(occupied_cells(engine.grid, box)))
    if request.what == "clearance":
        return DebugResult(squares=_flat(clearances(engine.grid, box)))
    row = engine.rows[request.name]
    if request.what == "rays":
        return _rays(sim, request.name)
    names = {row: name for name, row in engine.rows.items()}
    rows = collision_candidates(
        # Index 2 of `reach` is the largest reach of all bodies, m.
        engine.state,
        engine.bodies,
        row,
        float(engine.bins.reach[2]),
    )
    x, y, _ = engine.state.pose[row].tolist()
    poses = engine.state.pose
    return DebugResult(
        names=[names[i] for i in rows],
        lines=[(x, y, float(poses[i, 0]), float(poses[i, 1])) for i in rows],
    )


def _flat(squares: Squares) -> list[float]:
    """Return the corners of squares as one flat list of numbers, m, rounded to 1 mm.

    Thousands of small tuples would trigger the garbage collector, which delays a step.
    """
    return squares.round(3).ravel().tolist()


def _rays(sim: Simulation, name: str) -> DebugResult:
    robot = sim.robots[name]
    reader = next(
        (one for one in drawn_devices(robot) if one.kind.layer == "laser"), None
    )
    if reader is None:
        raise WorldError(f"{name}: expected a robot with a laser, found none")
    beams, *_ = sim.fleet.bundles(reader.key)
    # `ranges` holds the first echo of each ray, and then the further echoes.
    ranges = reader.ranges[: beams.count]
    origin = compose(robot.truth, beams.mount)
    walks = []

    # The step is at least 1, because a laser may have fewer rays than `SHOWN_RAYS`.
    for k in range(0, len(ranges), max(1, len(ranges) // SHOWN_RAYS)):
        bearing = origin.th + beams.angle0 + k * beams.step
        walks.append(
            ray_walk(
                sim.core.engine.grid, origin.x, origin.y, bearing, float(ranges[k])
            )
        )

    return DebugResult(squares=_flat(np.concatenate(walks)) if walks else [])
