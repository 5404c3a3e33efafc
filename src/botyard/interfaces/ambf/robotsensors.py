"""Sensor objects of AMBF for lasers, sonar rings and described rays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from botyard.geometry import Pose
from botyard.interfaces.ambf.objects import SOURCE
from botyard.interfaces.ambf.rangesensors import SensorObject
from botyard.interfaces.ambf.surroundings import Surroundings
from botyard.sim.simulation import Robot


def laser_object(
    ambf: Surroundings, label: str, robot: Robot, index: int
) -> SensorObject:
    """Return the object of a laser of a robot."""
    laser, spec = robot.lasers[index], robot.spec.lasers[index]

    # Clients change the scan now and then, but its rays are needed for every state.
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


def sonar_object(ambf: Surroundings, robot: Robot) -> SensorObject:
    """Return the object of a robot's sonar ring."""
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


def ray_object(ambf: Surroundings, spec: Any) -> SensorObject:
    """Return the object of a sensor of a description file."""
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
