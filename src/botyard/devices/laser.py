"""Scanning lasers: from a spec to beams, and from beams to a scan in the terms of ``sensor_msgs/LaserScan``."""

from __future__ import annotations

from typing import Final

from botyard.model.beams import Bundle
from botyard.model.devices import Device, Field
from botyard.model.sensors import LaserSpec

STREAM = 16
"""Lasers use the random streams 16, 17 … of their body, by index."""


def laser_bundle(spec: LaserSpec, noise: bool = True) -> Bundle:
    """The beams of a laser: `samples` of them over `fov`, the outer ones at ± fov/2 (SEN-001, SEN-002)."""
    return Bundle(
        mount=spec.pose,
        angle0=-spec.fov / 2 if spec.samples > 1 else 0.0,
        step=spec.increment,
        count=spec.samples,
        r_min=spec.range_min,
        r_max=spec.range_max,
        r_noise=spec.range_noise if noise else 0.0,
        a_noise=spec.angle_noise if noise else 0.0,
        reflector=spec.reflector,
    )


LASER: Final = Device(
    name="laser",
    about="ranges around a scanning laser",
    spec=LaserSpec,
    read=lambda _spec, view: view.part_of_robot.read(),
    fields=(Field("bearing", "rad"), Field("range", "m"), Field("intensity", kind=int)),
    rows=lambda scan: zip(scan.angles.tolist(), scan.ranges.tolist(), scan.intensities.tolist(), strict=True),
    beams=lambda spec, errs: [laser_bundle(spec, errs)],
    on_page=False,
)
"""Interfaces read the arrays of the step instead: the page's layers, ROS's LaserScan, Pioneer's packets of readings."""
