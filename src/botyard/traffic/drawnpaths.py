"""Sector paths of robots from the points that a user has drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from botyard.errors import WorldError
from botyard.model.robot import RobotSpec
from botyard.names import shown
from botyard.numerics.elementary import hypot
from botyard.sim.simulation import Robot
from botyard.traffic.task import Task, Vehicle

MIN_STEP_M: Final = 0.05
"""Least distance between points of a path, m; nearer ones are left out."""
MAX_LENGTH: Final = 100_000.0
"""Largest length of all paths of a run together, m."""
MAX_PAIRS: Final = 500_000
"""Largest number of pairs of pieces to compare; 2 to 20 µs each."""

Points = Sequence[Sequence[float]]


def task_of(robots: Sequence[Robot], paths: Sequence[Points], speed: float) -> Task:
    """Divide the paths of robots into sectors.

    Parameters
    ----------
    robots : sequence of Robot
        Robots that drive the paths, from where they stand.
    paths : sequence of (k, 2) arrays
        Points of each path, m.
    speed : float
        Highest speed, m/s; the robots' own limits apply as well.

    Raises
    ------
    TaskError
        The paths are too often near each other.
    WorldError
        A path has no length, or the paths are too long; the optional package is not
        installed.
    """
    from botyard.traffic.geometry import SearchLimit, task_of_paths

    lines, length = [], 0.0
    for robot, points in zip(robots, paths, strict=True):
        corners = [robot.truth[:2]]
        for x, y in points:
            step = hypot(x - corners[-1][0], y - corners[-1][1])
            # A point where the robot stands has no direction.
            if step > MIN_STEP_M:
                corners.append((float(x), float(y)))
                length += step
        if len(corners) < 2:
            raise WorldError(f"the path of {shown(robot.name)} has no length")
        lines.append(np.array(corners, np.float64))
    if not length <= MAX_LENGTH:
        raise WorldError(
            f"expected paths of at most {MAX_LENGTH:g} m together, found {length:g} m"
        )
    return task_of_paths(
        lines,
        [_vehicle(robot.spec, speed) for robot in robots],
        name="drawn paths",
        limit=SearchLimit(MAX_PAIRS),
    )


def _vehicle(spec: RobotSpec, speed: float) -> Vehicle:
    """Return radius and motion of a robot model; 0 stands for no limit in a model."""
    usual, limits = Vehicle(ends=np.ones(1)), spec.limits
    return Vehicle(
        ends=np.ones(1),
        radius=spec.radius,
        velocity=min(speed, limits.max_speed.x),
        acceleration=limits.accel.x or usual.acceleration,
        deceleration=limits.decel.x or usual.deceleration,
    )


__all__ = ["task_of"]
