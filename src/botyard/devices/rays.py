"""Ray sensors added to a body at run time: AMBF's proximity sensors.

See ambf-messages.md §6.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from botyard.devices.ranging import RangeDevices
from botyard.engine.layout import F8
from botyard.engine.simulation import Engine
from botyard.model.beams import Bundle
from botyard.model.objects import RaySensorSpec
from botyard.model.obstacles import Visible

STREAM: Final = 3000
"""Number of these sensors in the random streams of a body; their rays have no errors."""


class RaySensor:
    """Ray sensor on a body.

    Parameters
    ----------
    spec : RaySensorSpec
        Rays of the sensor; the parent must be a body of the engine.
    ranging : RangeDevices
        Range sensors of the world.
    engine : Engine
        Engine of the world.
    """

    def __init__(
        self, spec: RaySensorSpec, ranging: RangeDevices, engine: Engine
    ) -> None:
        self.spec = spec
        self._ranging = ranging
        self._engine = engine
        # Names of sensors are unique per body only.
        self._key = (spec.parent, "rays", spec.name)

        # Each ray has its own origin and direction, hence its own bundle.
        bundles = [Bundle(mount=ray, r_max=spec.range) for ray in spec.rays]
        ranging.configure(
            self._key,
            spec.parent,
            STREAM,
            # Proximity sensors of AMBF detect every body, also bodies with mass.
            Visible.OBSTACLE | Visible.PUSHED | Visible.LASER,
            bundles,
        )

    @property
    def is_there(self) -> bool:
        """Whether the body of the sensor still exists in the world."""
        return self._ranging.has(self._key)

    def subscribe(self, reader: Hashable, on: bool = True) -> None:
        """Subscribe a reader, or end its subscription.

        Parameters
        ----------
        reader : hashable
            Identity of the reader; each counts once.
        on : bool
            Whether to subscribe.

        Raises
        ------
        KeyError
            The body of the sensor was removed.
        """
        self._ranging.subscribe(self._key, reader, on)

    @property
    def ranges(self) -> F8:
        """Range along each ray, (n,) m; the length of the ray if it hits nothing."""
        return self._ranging.read(self._engine, self._key).ranges


__all__ = ["RaySensor"]
