"""Sensor objects of AMBF for lasers, sonar rings and described rays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from botyard.geometry import Pose
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import SOURCE
from botyard.interfaces.ambf.rangesensors import SensorObject
from botyard.sim.simulation import Robot


def laser_object(
    ambf: ObjectContext, label: str, robot: Robot, index: int
) -> SensorObject:
    """Return the AMBF object for a laser of a robot.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    label : str
        Name of the object.
    robot : Robot
        Robot that carries the laser.
    index : int
        Number of the laser on the robot, from 0.

    Returns
    -------
    SensorObject
        Object whose rays follow when a client changes the field of view or the
        resolution of the laser.
    """
    laser, spec = robot.lasers[index], robot.spec.lasers[index]

    # Each state needs the rays, but they change only when a client changes the laser's
    # settings.
    @lru_cache(maxsize=1)
    def rays_of(first: float, increment: float, count: int) -> Any:
        angles = first + increment * np.arange(count) + spec.pose.th
        return np.column_stack(
            [np.full(count, spec.pose.x), np.full(count, spec.pose.y), angles]
        )

    def rays() -> Any:
        scan = laser.view()
        return rays_of(scan.angle_min, scan.angle_increment, len(scan.ranges))

    def subscribe(on: bool) -> None:
        laser.subscribe(SOURCE, on)

    return SensorObject(
        ambf,
        label,
        robot.name,
        spec.pose,
        rays,
        lambda: laser.view().ranges,
        spec.range_max,
        subscribe,
        ambf.offer("sensors/"),
    )


def sonar_object(ambf: ObjectContext, robot: Robot) -> SensorObject:
    """Return the AMBF object for a robot's sonar ring.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    robot : Robot
        Robot with a sonar ring; without one an assertion fails.

    Returns
    -------
    SensorObject
        Object with a ray along the axis of each transducer.
    """
    sonar, spec = robot.sonar, robot.spec.sonar
    assert sonar is not None
    assert spec is not None
    rays = np.array([t.pose for t in spec.transducers], np.float64)
    return SensorObject(
        ambf,
        f"{robot.name}_sonar",
        robot.name,
        Pose(),
        lambda: rays,
        lambda: sonar.ranges,
        spec.range_max,
        lambda on: sonar.subscribe(SOURCE, on),
        ambf.offer("sensors/"),
    )


def ray_object(ambf: ObjectContext, spec: Any) -> SensorObject:
    """Return the AMBF object for a ray sensor of a description file.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    spec : RaySensorSpec
        Description: name, parent, rays (m, m, rad) and range, m.
    """
    sensor = ambf.sim.core.descriptions.rays[spec.name]
    rays = np.array(spec.rays, np.float64)
    return SensorObject(
        ambf,
        spec.name,
        spec.parent,
        Pose(),
        lambda: rays,
        lambda: sensor.ranges,
        spec.range,
        lambda on: sensor.subscribe(SOURCE, on),
        ambf.rated(spec.offer),
    )


__all__ = ["laser_object", "ray_object", "sonar_object"]
