"""Sonar rings: each transducer looks along one central ray, or takes the closest of several over its cone (SEN-016 … SEN-019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from botyard.model.beams import Bundle
from botyard.model.sensors import SonarSpec

STREAM = 8
"""Number of the ring in the random streams of its body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SonarReadings:
    """What a ring measured.

    Attributes
    ----------
    stamp : float
        Simulated time, s.
    range_min, range_max : float
        Range limits, m.
    ranges : (n,) float64 array
        Range of each transducer, m, in the order of its index; `range_max` where nothing was met. Read-only.
    """

    stamp: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float64]


def sonar_bundles(spec: SonarSpec, noise: bool = True) -> list[Bundle]:
    """The beams of a ring, one bundle a transducer.

    An unconnected transducer gets a bundle whose range limits are both the greatest range, so it reads that and looks at nothing.
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
