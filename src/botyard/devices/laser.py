"""Scanning lasers: beams of a spec, and scans as ``sensor_msgs/LaserScan``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from botyard.model.beams import Bundle
from botyard.model.devices import Device, Field, RosFrame, RosMessage
from botyard.model.readings import LaserScan
from botyard.model.rosmessages import SCAN, ScanArrays
from botyard.model.sensors import LaserSpec

STREAM = 16
"""First random stream of lasers: laser k of a body uses the stream 16 + k."""


# Robots of one model share their beams.
@lru_cache(maxsize=256)
def laser_bundle(spec: LaserSpec, noise: bool = True) -> Bundle:
    """Return the beams of a laser: `samples` over `fov`, the outer ones at ± fov/2.

    See SEN-001 and SEN-002.
    """
    return Bundle(
        mount=spec.pose,
        # A single beam points straight ahead.
        angle0=-spec.fov / 2 if spec.samples > 1 else 0.0,
        step=spec.increment,
        count=spec.samples,
        r_min=spec.range_min,
        r_max=spec.range_max,
        r_noise=spec.range_noise if noise else 0.0,
        a_noise=spec.angle_noise if noise else 0.0,
        r_std=spec.range_deviation if noise else 0.0,
        r_share=spec.range_share if noise else 0.0,
        missing=spec.missing if noise else 0.0,
        reflector=spec.reflector,
    )


def _scans(
    topic: str, frame: str, profile: str, *, is_open: bool = False
) -> RosMessage[LaserSpec, LaserScan]:
    """Return the topic of a name profile, of type sensor_msgs/LaserScan."""
    beams = ScanArrays(is_open)

    def message(_: LaserSpec, scan: LaserScan) -> dict[str, Any]:
        return {
            "angle_min": scan.angle_min,
            "angle_max": scan.angle_max,
            "angle_increment": scan.angle_increment,
            "scan_time": scan.scan_time,
            "range_min": scan.range_min,
            "range_max": scan.range_max,
            "ranges": beams.ranges(scan.ranges, scan.intensities, scan.range_min),
            # LaserScan has float32 arrays.
            "intensities": scan.intensities.astype(np.float32),
        }

    about = "scans of a laser"
    return RosMessage(
        topic=topic,
        type_name=SCAN,
        fields=message,
        frame=frame,
        profiles=(profile,),
        about=about,
        beams=beams,
    )


LASER: Final = Device(
    name="laser",
    part="lasers",
    about="ranges around a scanning laser",
    spec=LaserSpec,
    read=lambda _spec, view: view.part_of_robot.read(),
    fields=(Field("bearing", "rad"), Field("range", "m"), Field("intensity", kind=int)),
    rows=lambda scan: zip(
        scan.angles.tolist(),
        scan.ranges.tolist(),
        scan.intensities.tolist(),
        strict=True,
    ),
    beams=lambda spec, errs: [laser_bundle(spec, errs)],
    ros=(
        _scans("base_scan{others}", "base_laser{others}", "default", is_open=True),
        _scans("scan{others}", "base_scan{others}", "nav2", is_open=True),
        _scans("base_scan{several}", "base_laser_link{several}", "stage"),
        _scans("{type}_{number}_laserscan", "base_laser{others}", "rosaria"),
    ),
    frames=(RosFrame("base_laser{others}", ("amrisim",)),),
    layer="laser",
    on_page=False,
)
"""Kind of device. Pioneer packets are made from the arrays of the step instead."""
