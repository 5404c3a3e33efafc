"""Scanning lasers: the beams that a model describes, and scans as ``sensor_msgs/LaserScan``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from botyard.model.beams import PLAIN_OPTICS, Bundle, Optics
from botyard.model.devices import Device, Field, RosFrame, RosMessage
from botyard.model.readings import LaserScan
from botyard.model.rosmessages import SCAN, ScanArrays
from botyard.model.sensors import LaserSpec

STREAM = 16
"""Number of the first random stream of lasers: laser k of a body uses the stream 16 + k."""


# Robots of one model share their beams.
@lru_cache(maxsize=256)
def laser_bundle(spec: LaserSpec, noise: bool = True) -> Bundle:
    """Return the beams of a laser in the robot frame (SEN-001, SEN-002).

    The `samples` beams are spread evenly over `fov`; the outer beams are at ± fov/2.

    Parameters
    ----------
    spec : LaserSpec
        Model of the laser.
    noise : bool
        Whether beams have the errors of the model; otherwise they are exact.
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
        optics=_optics(spec, noise),
    )


def _optics(spec: LaserSpec, noise: bool) -> Optics:
    """Return timing and optics of a laser; `PLAIN_OPTICS` if its model has neither."""
    if not (spec.time_increment or spec.white_range or spec.intensity):
        return PLAIN_OPTICS
    return Optics(
        # A laser with a single ray does not sweep.
        pace=spec.time_increment / spec.increment if spec.increment else 0.0,
        white_range=spec.white_range,
        intensity=spec.intensity,
        echoes=spec.echoes,
        errs=noise,
    )


def _scans(
    topic: str, frame: str, *profiles: str, is_open: bool = False
) -> RosMessage[LaserSpec, LaserScan]:
    """Return the declaration of a LaserScan topic of lasers, for some name profiles.

    Parameters
    ----------
    topic, frame : str
        Templates of names: ``{others}``, ``{several}``, ``{type}`` and ``{number}``
        stand for parts that distinguish lasers.
    *profiles : str
        Name profiles that have this topic.
    is_open : bool
        Whether a beam that hits nothing is reported as infinite.
    """
    beams = ScanArrays(is_open)

    def message(_: LaserSpec, scan: LaserScan) -> dict[str, Any]:
        return {
            "angle_min": scan.angle_min,
            "angle_max": scan.angle_max,
            "angle_increment": scan.angle_increment,
            "time_increment": scan.time_increment,
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
        profiles=profiles,
        about=about,
        beams=beams,
    )


def _message_of_echoes(_: LaserSpec, scan: LaserScan) -> dict[str, Any]:
    """Return a sensor_msgs/MultiEchoLaserScan; a ray without an echo has an empty list."""
    has_echo = scan.echo_intensities > 0
    return {
        "angle_min": scan.angle_min,
        "angle_max": scan.angle_max,
        "angle_increment": scan.angle_increment,
        "time_increment": scan.time_increment,
        "scan_time": scan.scan_time,
        "range_min": scan.range_min,
        "range_max": scan.range_max,
        **{
            name: [
                {"echoes": values[has_echo[:, k], k].astype(np.float32)}
                for k in range(values.shape[1])
            ]
            for name, values in (
                ("ranges", scan.echoes),
                ("intensities", scan.echo_intensities),
            )
        },
    }


def _echoes(topic: str, frame: str, profile: str) -> RosMessage[LaserSpec, LaserScan]:
    """Return the declaration of the topic of lasers with several echoes, in one profile."""
    return RosMessage(
        topic=topic,
        type_name="sensor_msgs/MultiEchoLaserScan",
        fields=_message_of_echoes,
        frame=frame,
        profiles=(profile,),
        about="all echoes of a laser that reports several",
        applies=lambda spec: spec.echoes > 1,
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
        _scans("scan{others}", "base_scan{others}", "nav2", "loopback", is_open=True),
        _echoes("echoes{others}", "base_laser{others}", "default"),
        _echoes("echoes{others}", "base_scan{others}", "nav2"),
        _scans("base_scan{several}", "base_laser_link{several}", "stage"),
        _scans("{type}_{number}_laserscan", "base_laser{others}", "rosaria"),
    ),
    frames=(RosFrame("base_laser{others}", ("amrisim",)),),
    layer="laser",
    on_page=False,
)
"""Kind of device for lasers. Pioneer packets are made from the arrays of the step instead."""
