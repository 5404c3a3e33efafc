"""Check of a whole world against the limits, before it is built."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from botyard.errors import (
    FormatError,
    MapError,
    WorldFileError,
)
from botyard.formats.budget import Meter
from botyard.geometry import Outline, Pose
from botyard.model.raster import corners_of
from botyard.model.robot import RobotSpec
from botyard.model.world import World


def kind_of_error(world: World) -> type[FormatError]:
    """Return the class of errors for a world: with robots, or without them (a map)."""
    return WorldFileError if world.robots else MapError


def check_world(world: World, meter: Meter) -> None:
    """Check a whole world against the limits, before it is built.

    Readers check only while they read.

    Parameters
    ----------
    world : World
        Content of a file, also from a reader of another package.
    meter : Meter
        Limits. It must be a new one, because everything is counted again.

    Raises
    ------
    BudgetError
        The world has too many walls, points, corners, robots or beams, or is too large.
    """
    scene = world.scene
    meter.add("vertices", 2 * len(scene.segments) + len(scene.points))
    meter.add("robots", len(world.robots))
    for lines in (scene.segments.reshape(-1, 2), scene.points, corners_of(scene)):
        if len(lines):
            low, high = lines.min(axis=0), lines.max(axis=0)
            for far in (high - low, np.abs(low), np.abs(high)):
                meter.check("extent", float(far.max()))

    specs: dict[int, tuple[int, int, float]] = {}
    bodies: list[tuple[Pose | None, float]] = []
    for box in scene.boxes:
        meter.add("vertices", sum(map(len, box.outlines)))
        bodies.append((box.pose, _farthest_coordinate(box.outlines)))

    # Thousands of robots may share a model, which is measured once.
    for robot in world.robots:
        known = specs.get(id(robot.spec))
        if known is None:
            outlines = (robot.spec.outline, *robot.spec.parts)
            reach = max(
                _farthest_coordinate(outlines),
                _farthest_coordinate((_mounts(robot.spec),)),
            )
            known = specs[id(robot.spec)] = (
                sum(map(len, outlines)),
                _beams(robot.spec),
                reach,
            )

        meter.add("vertices", known[0])
        meter.add("beams", known[1])
        bodies.append((robot.pose, known[2]))

    floor = scene.floor
    if floor is not None:
        if floor.picture is not None:
            meter.add(
                "cells", len(floor.picture.pixels) * floor.picture.pixels.shape[1]
            )
        for one in floor.fields:
            meter.add("cells", one.shape[0] * one.shape[1])
        for zone in floor.zones:
            meter.add("vertices", len(zone.corners))
            bodies.append((None, _farthest_coordinate((zone.corners,))))

    for area in scene.areas:
        meter.add("vertices", len(area.corners))
        bodies.append((None, _farthest_coordinate((area.corners,))))

    bodies += [(place.pose, 0.0) for place in scene.places]
    bodies.append((scene.start, 0.0))
    for _, points in () if world.traffic is None else world.traffic.paths:
        meter.add("vertices", len(points))
        bodies += [(Pose(x, y, 0.0), 0.0) for x, y in points]
    for pose, reach in bodies:
        x, y, th = pose or (0.0, 0.0, 0.0)
        # A heading that is not finite makes the sum NaN, which the check refuses.
        meter.check("extent", max(abs(x), abs(y), 0.0 * abs(th)) + reach)


def _farthest_coordinate(outlines: Iterable[Outline]) -> float:
    """Return the largest absolute coordinate of outlines, m; NaN if any is NaN.

    Parameters
    ----------
    outlines : iterable of outlines
        Corners, m. Without any corner the result is 0.
    """
    values = [abs(v) for outline in outlines for corner in outline for v in corner]
    return math.nan if any(map(math.isnan, values)) else max(values, default=0.0)


def _mounts(spec: RobotSpec) -> Outline:
    """Return the mounting positions of a robot's range sensors, m."""
    poses = [laser.pose for laser in spec.lasers]
    if spec.sonar is not None:
        poses += [transducer.pose for transducer in spec.sonar.transducers]
    return tuple((p.x, p.y) for p in poses)


def _beams(spec: RobotSpec) -> int:
    """Return the number of beams of all range sensors of a robot."""
    sonar = (
        0
        if spec.sonar is None
        else sum(map(spec.sonar.rays_of, spec.sonar.transducers))
    )
    return sonar + sum(laser.samples for laser in spec.lasers)
