"""Upward-looking infrared sensors that see table tops (UNS-004).

Maps place tables as sectors of type ``Table`` (also ``Sim.Table``); they are no obstacles in the plane.
"""

from __future__ import annotations

from botyard.geometry import Pose, transform_point
from botyard.model.accessories import TableIrSpec
from botyard.model.scene import Scene, in_polygon

TABLES = frozenset({"table", "sim.table", "tablesector"})
"""Types of sectors that stand for tables, in lower case."""


def under_table(scene: Scene, spec: TableIrSpec, pose: Pose) -> tuple[bool, ...]:
    """For each sensor of a robot at `pose`, whether a table top is above it."""
    tables = [a.corners for a in scene.areas if a.kind.lower() in TABLES]
    points = [transform_point(pose, x, y) for x, y in spec.positions]
    return tuple(any(in_polygon(corners, x, y) for corners in tables) for x, y in points)
