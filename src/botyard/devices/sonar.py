"""Sonar rings: each transducer looks along one central ray, or takes the closest of several over its cone (SEN-016 … SEN-019)."""

from __future__ import annotations

from typing import Final

from botyard.model.beams import Bundle
from botyard.model.devices import Device, Field, PioneerFields
from botyard.model.obstacles import Visible
from botyard.model.sensors import SonarSpec

STREAM = 8
"""Number of the ring in the random streams of its body."""


def sonar_bundles(spec: SonarSpec, noise: bool = True) -> list[Bundle]:
    """The beams of a ring, one bundle a transducer.

    An unconnected transducer gets a bundle whose range limits are both `range_max`, so that it always reads that.
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
                angle0=-fov / 2 if rays > 1 else 0.0,
                step=fov / (rays - 1) if rays > 1 else 0.0,
                count=rays,
                r_min=low if t.connected else spec.range_max,
                r_max=high if t.connected else spec.range_max,
                r_noise=error if noise and t.connected else 0.0,
                shortest=rays > 1,
            )
        )
    return bundles


SONAR: Final = Device(
    name="sonar",
    about="ranges of the sonar ring",
    spec=SonarSpec,
    read=lambda _spec, view: view.part_of_robot.read(),
    fields=(Field("transducer", kind=int), Field("range", "m")),
    rows=lambda readings: enumerate(readings.ranges.tolist()),
    beams=sonar_bundles,
    senses=Visible.SONAR,
    pioneer=PioneerFields(config=lambda _: {"front_sonar": 1, "rear_sonar": 1}),
    on_page=False,
)
"""Interfaces read the arrays of the step instead: the page's layers, ROS's point clouds, Pioneer's reports."""
