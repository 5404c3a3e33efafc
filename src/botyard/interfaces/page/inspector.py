"""Answers pages that want to see how the engine works (GUI-031)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec
import numpy as np

from botyard.engine.inspection import Squares, cells, clearances, collision_candidates, occupied_cells, ray_walk
from botyard.errors import WorldError
from botyard.feed import Subject
from botyard.geometry import compose
from botyard.protocols.webgui.messages import Debug, DebugResult, encoder
from botyard.sim.simulation import Simulation

SHOWN_RAYS = 9
"""Of a laser's rays so many are walked."""


KEPT: Final = 8
"""Answers about the map that are kept: of so many parts of it."""


class Inspector:
    """Looks into the engine of a simulation. What it says of the map is made once for each part of it, until there is another map."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._map = -1
        self._kept: OrderedDict[tuple[object, ...], msgspec.Raw] = OrderedDict()

    def answer(self, request: Debug) -> DebugResult | msgspec.Raw:
        """What a page asked for, or its JSON text.

        Raises
        ------
        KeyError, WorldError
            No such robot; it has no laser.
        """
        if request.what not in ("grid", "clearance"):
            return look_into(self._sim, request)
        grid, revision = self._sim.engine.grid, self._sim.feed.last(Subject.MAP)
        if revision != self._map:
            self._map = revision
            self._kept.clear()
        key = (request.what, *cells(grid, (request.x0, request.y0, request.x1, request.y1)))
        made = self._kept.get(key)
        if made is None:
            made = self._kept[key] = msgspec.Raw(encoder.encode(look_into(self._sim, request)))
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return made


def look_into(sim: Simulation, request: Debug) -> DebugResult:
    """What a page asked for.

    Raises
    ------
    KeyError, WorldError
        No such robot; it has no laser.
    """
    engine = sim.engine
    box = (request.x0, request.y0, request.x1, request.y1)
    if request.what == "grid":
        return DebugResult(squares=_flat(occupied_cells(engine.grid, box)))
    if request.what == "clearance":
        return DebugResult(squares=_flat(clearances(engine.grid, box)))
    row = engine.rows[request.name]
    if request.what == "rays":
        return _rays(sim, request.name)
    names = {row: name for name, row in engine.rows.items()}
    rows = collision_candidates(engine.state, engine.bodies, row, float(engine.bins.reach[2]))
    x, y, _ = engine.state.pose[row].tolist()
    poses = engine.state.pose
    return DebugResult(
        names=[names[i] for i in rows], lines=[(x, y, float(poses[i, 0]), float(poses[i, 1])) for i in rows]
    )


def _flat(squares: Squares) -> list[float]:
    """One list of numbers, to a millimetre: thousands of small tuples would set the garbage collector to work, which holds up a step."""
    return squares.round(3).ravel().tolist()


def _rays(sim: Simulation, name: str) -> DebugResult:
    robot = sim.robots[name]
    if not robot.lasers:
        raise WorldError(f"{name} has no laser whose rays could be followed")
    scan = robot.laser.view()
    origin = compose(robot.truth, scan.frame_pose)
    chosen = range(0, len(scan.ranges), max(1, len(scan.ranges) // SHOWN_RAYS))
    walks = []
    for k in chosen:
        bearing = origin.th + scan.angle_min + k * scan.angle_increment
        walks.append(ray_walk(sim.engine.grid, origin.x, origin.y, bearing, float(scan.ranges[k])))
    return DebugResult(squares=_flat(np.concatenate(walks)))
