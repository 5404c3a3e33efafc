"""Scanning lasers: from a spec to beams, and from beams to a scan in the terms of ``sensor_msgs/LaserScan``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose
from botyard.model.beams import Bundle
from botyard.model.sensors import LaserSpec

STREAM = 16
"""Lasers use the random streams 16, 17 … of their body, by index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaserScan:
    """One scan; field names and meanings are those of ``sensor_msgs/LaserScan`` (REP-103: counter-clockwise).

    Attributes
    ----------
    stamp : float
        Simulated time of the scan, s.
    frame_pose : Pose
        The laser in the robot's frame, m and rad.
    angle_min, angle_max, angle_increment : float
        Bearings of the first and last reading and spacing, rad, in the laser's frame.
    range_min, range_max : float
        Range limits, m.
    ranges : (n,) float64 array
        Ranges, m, counter-clockwise; `range_max` where nothing was met.
    intensities : (n,) int16 array
        Laser return of each reading: 0 nothing, 1 ordinary, more: a reflector.
    """

    stamp: float
    frame_pose: Pose
    angle_min: float
    angle_max: float
    angle_increment: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float64]
    intensities: NDArray[np.int16]

    @property
    def angles(self) -> NDArray[np.float64]:
        """Bearing of each reading, rad."""
        return self.angle_min + self.angle_increment * np.arange(len(self.ranges), dtype=np.float64)


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
