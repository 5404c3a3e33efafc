"""Answers pages that want to see how the engine works (GUI-031)."""

from __future__ import annotations

from botyard.engine.inspection import clearances, collision_candidates, occupied_cells, ray_walk
from botyard.errors import WorldError
from botyard.geometry import compose
from botyard.protocols.webgui.messages import Debug, DebugResult
from botyard.simulation import Simulation

SHOWN_RAYS = 9
"""Of a laser's rays so many are walked."""


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
        return DebugResult(squares=occupied_cells(engine.grid, box))
    if request.what == "clearance":
        return DebugResult(squares=clearances(engine.grid, box))
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


def _rays(sim: Simulation, name: str) -> DebugResult:
    robot = sim.robots[name]
    if not robot.lasers:
        raise WorldError(f"{name} has no laser whose rays could be followed")
    scan = robot.laser.read()
    origin = compose(robot.truth, scan.frame_pose)
    chosen = range(0, len(scan.ranges), max(1, len(scan.ranges) // SHOWN_RAYS))
    squares = []
    for k in chosen:
        bearing = origin.th + scan.angle_min + k * scan.angle_increment
        squares += ray_walk(sim.engine.grid, origin.x, origin.y, bearing, float(scan.ranges[k]))
    return DebugResult(squares=squares)
