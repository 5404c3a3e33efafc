"""Sonar rings (SEN-016 … SEN-019).

A transducer measures along one central ray, or takes the shortest of several rays over
its cone.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

import numpy as np

from botyard.model.beams import Bundle
from botyard.model.devices import Device, Field, PioneerFields, RosFrame, RosMessage
from botyard.model.obstacles import Visible
from botyard.model.readings import SonarReadings
from botyard.model.rosmessages import OWN, EndPoints, Rays, point_cloud, point_cloud2
from botyard.model.sensors import SonarSpec
from botyard.numerics import elementwise

STREAM = 8
"""Number of the random stream of a body's sonar ring."""


# Robots of one model share their beams.
@lru_cache(maxsize=256)
def sonar_bundles(spec: SonarSpec, noise: bool = True) -> tuple[Bundle, ...]:
    """Return the beams of a sonar ring, one bundle for each transducer.

    Both range limits of an unconnected transducer are `range_max`, so that it always
    reads that value.

    Parameters
    ----------
    spec : SonarSpec
        Model of the ring.
    noise : bool
        Whether beams have the errors of the model; otherwise they are exact.
    """
    bundles = []
    for t in spec.transducers:
        low, high = spec.limits_of(t)
        fov = spec.fov if t.fov is None else t.fov
        error = spec.noise if t.noise is None else t.noise
        rays = spec.rays_of(t)
        bundles.append(
            Bundle(
                mount=t.pose,
                # A single ray is the axis; two or more include both edges of the cone.
                angle0=-fov / 2 if rays > 1 else 0.0,
                step=fov / (rays - 1) if rays > 1 else 0.0,
                count=rays,
                # Equal limits clamp every reading to that value.
                r_min=low if t.connected else spec.range_max,
                r_max=high if t.connected else spec.range_max,
                r_noise=error if noise and t.connected else 0.0,
                # Lost echoes are noise: without noise readings are exact.
                missing=spec.missing if noise else 0.0,
                shortest=rays > 1,
            )
        )

    return tuple(bundles)


@lru_cache(maxsize=256)
def _rays(spec: SonarSpec, far_echoes: bool) -> Rays:
    """Return the axes of a ring's transducers as rays, on which end points of readings lie.

    With `far_echoes`, readings without an echo are also points.

    Parameters
    ----------
    spec : SonarSpec
        Model of the ring.
    far_echoes : bool
        Whether readings without an echo are also points.
    """
    mounts = np.array([t.pose for t in spec.transducers], np.float64)
    flat = np.zeros(len(mounts))
    # Readings at the highest range had no echo.
    farthest = [
        spec.limits_of(t)[1] if t.connected else spec.range_max
        for t in spec.transducers
    ]
    return Rays(
        np.stack([mounts[:, 0], mounts[:, 1], flat], axis=1).astype(np.float32),
        np.stack([*elementwise.cosine_sine(mounts[:, 2]), flat], axis=1).astype(
            np.float32
        ),
        # No reading reaches an infinite limit, so that all become points.
        np.full(len(mounts), np.inf) if far_echoes else np.array(farthest),
    )


def _clouds(
    frame: str, *profiles: str, far_echoes: bool
) -> tuple[RosMessage[SonarSpec, SonarReadings], ...]:
    """Return the declarations of topics with the end points of readings, for some name profiles.

    Their types are sensor_msgs/PointCloud and PointCloud2.
    """
    rays = partial(_rays, far_echoes=far_echoes)
    beams = EndPoints(rays)
    return (
        RosMessage(
            topic="sonar",
            type_name="sensor_msgs/PointCloud",
            about="sonar readings as points",
            frame=frame,
            profiles=profiles,
            beams=beams,
            fields=lambda spec, readings: point_cloud(
                rays(spec).points(readings.ranges)
            ),
        ),
        RosMessage(
            topic="sonar_pointcloud2",
            type_name="sensor_msgs/PointCloud2",
            about="sonar readings as points, as PointCloud2",
            frame=frame,
            profiles=profiles,
            beams=beams,
            fields=lambda spec, readings: point_cloud2(
                rays(spec).points(readings.ranges)
            ),
        ),
    )


SONAR: Final = Device(
    name="sonar",
    part="sonar",
    about="ranges of the sonar ring",
    spec=SonarSpec,
    read=lambda _spec, view: view.part_of_robot.read(),
    fields=(Field("transducer", kind=int), Field("range", "m")),
    rows=lambda readings: enumerate(readings.ranges.tolist()),
    beams=sonar_bundles,
    senses=Visible.SONAR,
    # AMRISim leaves out readings without an echo, ROSARIA keeps them.
    ros=(
        *_clouds("", *OWN, "amrisim", far_echoes=False),
        *_clouds("sonar", "rosaria", far_echoes=True),
    ),
    frames=(RosFrame("sonar"),),
    pioneer=PioneerFields(config=lambda _: {"front_sonar": 1, "rear_sonar": 1}),
    layer="sonar",
    on_page=False,
)
"""Kind of device for sonar rings. Pioneer reports are made from the arrays of the step instead."""
