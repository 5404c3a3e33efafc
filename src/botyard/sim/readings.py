"""Range sensors of robots: lasers and sonar rings."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.devices.delays import Delay
from botyard.devices.laser import STREAM as LASER_STREAM
from botyard.devices.laser import laser_bundle
from botyard.devices.sonar import STREAM as SONAR_STREAM
from botyard.devices.sonar import sonar_bundles
from botyard.engine.layout import F8
from botyard.model.beams import PLAIN_OPTICS, Bundle
from botyard.model.obstacles import Visible
from botyard.model.readings import LaserScan, SonarReadings
from botyard.model.sensors import LaserSpec, SonarSpec
from botyard.sim.core import Member
from botyard.sim.journal import (
    SetRays,
)

MAX_RAYS = 100_000
"""Highest number of rays that a laser can be configured to have."""


def _delay(robot: Member, key: Hashable, spec: LaserSpec | SonarSpec) -> None:
    """Give a sensor the latency and the measurement rate of its model."""
    delay = Delay.of(spec)
    # Worlds without latency must not spend time on delays.
    if delay != Delay():
        robot._core.devices.delay(key, delay)


class Laser(ReadOnly):
    """Laser of a robot: `read` returns a scan, and `configure` sets the rays."""

    _instead: ClassVar[Mapping[str, str]] = {
        "ranges": "call step(): it measures the ranges",
        "spec": "name the lasers when you add the robot: add_robot(model, lasers=[…])",
    }

    spec: LaserSpec
    """Model of the laser with its mount pose."""
    index: int
    """Number of the laser among the robot's lasers, from 0."""
    _robot: Member
    _key: tuple[str, str, int]
    _tuned: dict[str, float]

    def __init__(self, robot: Member, index: int) -> None:
        # The class is read-only for users: set attributes in the dictionary.
        vars(self).update(
            spec=robot.spec.lasers[index],
            index=index,
            _robot=robot,
            _key=(robot.name, "laser", index),
            _tuned={},
        )
        self._configure(laser_bundle(self.spec, robot._core.sensor_noise))
        _delay(robot, self._key, self.spec)

    def __repr__(self) -> str:
        b = self._bundle
        low, high = (
            math.degrees(b.angle0),
            math.degrees(b.angle0 + b.step * max(b.count - 1, 0)),
        )
        which = f" {self.index + 1}" if self.index else ""
        return (
            f"<Laser{which} of {self._robot.name}: {self.spec.type_name}, "
            f"{b.count} rays from {low:z.1f}° to {high:z.1f}°, "
            f"up to {b.r_max:g} m>"
        )

    def _configure(self, bundle: Bundle) -> None:
        if self._tuned:
            # `_tuned` holds float fields only, as `replace` requires here.
            bundle = replace(bundle, **self._tuned)  # type: ignore[arg-type]
        self._bundle = bundle
        self._robot._core.devices.configure(
            self._key,
            self._robot.name,
            LASER_STREAM + self.index,
            Visible.LASER,
            [bundle],
        )

    def _tune(self, fields: Mapping[str, Sequence[float]]) -> None:
        """Override exactly these fields of the model's beams; the rays stay unchanged.

        Parameters
        ----------
        fields : mapping of str to sequence of float
            Fields of `Bundle` with one number each. Fields that are missing get the
            values of the model back.
        """
        self._tuned = {name: values[0] for name, values in fields.items()}
        fresh, now = (
            laser_bundle(self.spec, self._robot._core.sensor_noise),
            self._bundle,
        )
        self._configure(
            replace(fresh, angle0=now.angle0, step=now.step, count=now.count)
        )
        # A saved state holds the configured beams, which must include the overrides.
        if (self._robot.name, self.index) in self._robot._core.configured:
            self._robot._core.configured[self._robot.name, self.index] = self._bundle

    def configure(self, angle_min: float, increment: float, count: int) -> None:
        """Set the rays of the laser.

        Parameters
        ----------
        angle_min, increment : float
            Bearing of the first ray and spacing of rays, rad, counter-clockwise.
        count : int
            Number of rays, 0 to 100,000.

        Raises
        ------
        ArgumentError
            A value is not finite, or the number is out of range.
        """
        angle_min, increment = (
            arguments.number(angle_min, "angle_min", unit="rad"),
            arguments.number(increment, "increment", unit="rad"),
        )
        count = arguments.whole(count, "count", low=0, high=MAX_RAYS)
        self._robot._core.note(
            None, SetRays, self._robot.name, self.index, (angle_min, increment, count)
        )
        # Start from the model, so that only the rays differ from it.
        fresh = laser_bundle(self.spec, self._robot._core.sensor_noise)
        self._configure(replace(fresh, angle0=angle_min, step=increment, count=count))
        self._robot._core.configured[self._robot.name, self.index] = self._bundle

    def restore(self) -> None:
        """Restore the rays of the model."""
        self._robot._core.note(None, SetRays, self._robot.name, self.index, None)
        self._robot._core.configured.pop((self._robot.name, self.index), None)
        self._configure(laser_bundle(self.spec, self._robot._core.sensor_noise))

    @property
    def is_read(self) -> bool:
        """Whether the laser measures in every step because it has a subscriber."""
        return self._robot._core.devices.is_read(self._key)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Subscribe a reader to a scan in every step, or unsubscribe it.

        Without a subscriber the laser measures only when it is read, which saves the
        time for its rays.

        Parameters
        ----------
        reader : str
            Name of the reader. The laser measures in every step while it has at least
            one.
        on : bool
            True subscribes, False unsubscribes.
        """
        self._robot._core.devices.subscribe(self._key, reader, on)

    def read(self) -> LaserScan:
        """Return the scan of the present state; measure it now if the last step did not.

        Returns
        -------
        LaserScan
            Its arrays are copies that the caller may keep.
        """
        scan = self.view()
        return replace(
            # The views are overwritten two steps later.
            scan,
            ranges=scan.ranges.copy(),
            intensities=scan.intensities.copy(),
            echoes=scan.echoes.copy(),
            echo_intensities=scan.echo_intensities.copy(),
        )

    def view(self) -> LaserScan:
        """Return the scan without copying, for interfaces.

        Returns
        -------
        LaserScan
            Its arrays are read-only, and valid until the step after the next.
        """
        core, b = self._robot._core, self._bundle
        readings = core.devices.read(core.engine, self._key)
        stamp, ranges, returns = (
            core.time_of(readings.tick),
            core.rounded(readings.ranges),
            readings.returns,
        )
        further: dict[str, Any] = {}
        if b.optics is not PLAIN_OPTICS:
            echoes = (b.optics.echoes, b.count)
            further = {
                "time_increment": b.time_increment,
                "echoes": ranges.reshape(echoes),
                "echo_intensities": returns.reshape(echoes),
                "white_intensity": b.optics.intensity,
            }
            # The measurement ends the sweep, and a stamp is the time of the first ray.
            stamp, ranges, returns = (
                stamp - b.lead,
                ranges[: b.count],
                returns[: b.count],
            )

        return LaserScan(
            stamp=stamp,
            frame_pose=self.spec.pose,
            angle_min=b.angle0,
            angle_max=b.angle0 + b.step * max(b.count - 1, 0),
            angle_increment=b.step,
            scan_time=core.devices.period(core.engine, self._key),
            range_min=b.r_min,
            range_max=b.r_max,
            ranges=ranges,
            intensities=returns,
            **further,
        )

    @property
    def ranges(self) -> F8:
        """Ranges that `read` returns, m."""
        return self.read().ranges


class Sonar(ReadOnly):
    """Sonar ring of a robot."""

    spec: SonarSpec
    """Model of the ring."""
    _robot: Member
    _key: tuple[str, str, int]

    def __init__(self, robot: Member) -> None:
        assert robot.spec.sonar is not None
        vars(self).update(
            spec=robot.spec.sonar, _robot=robot, _key=(robot.name, "sonar", 0)
        )
        self._tune({})
        _delay(robot, self._key, self.spec)

    def __repr__(self) -> str:
        return (
            f"<Sonar of {self._robot.name}: {len(self.spec.transducers)} "
            f"transducers, up to {self.spec.range_max:g} m>"
        )

    def _tune(self, fields: Mapping[str, Sequence[float]]) -> None:
        """Override exactly these fields of the model's beams.

        Parameters
        ----------
        fields : mapping of str to sequence of float
            Fields of `Bundle` with one number for each transducer. Fields that are
            missing get the values of the model back.
        """
        bundles = sonar_bundles(self.spec, self._robot._core.sensor_noise)
        for name, values in fields.items():
            bundles = tuple(
                replace(b, **{name: value})  # type: ignore[arg-type]
                for b, value in zip(bundles, values, strict=True)
            )

        self._robot._core.devices.configure(
            self._key, self._robot.name, SONAR_STREAM, Visible.SONAR, bundles
        )

    @property
    def is_read(self) -> bool:
        """Whether the ring measures in every step because it has a subscriber."""
        return self._robot._core.devices.is_read(self._key)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Subscribe a reader to readings in every step, or unsubscribe it.

        Without a subscriber the ring measures only when it is read.

        Parameters
        ----------
        reader : str
            Name of the reader. The ring measures in every step while it has at least
            one.
        on : bool
            True subscribes, False unsubscribes.
        """
        self._robot._core.devices.subscribe(self._key, reader, on)

    def read(self) -> SonarReadings:
        """Return the readings of the present state, measured now if necessary.

        Their array is a copy that the caller may keep.
        """
        readings = self.view()
        return replace(readings, ranges=readings.ranges.copy())

    def view(self) -> SonarReadings:
        """Return the readings without copying, for interfaces.

        Their array is read-only, and valid until the step after the next.
        """
        core = self._robot._core
        readings = core.devices.read(core.engine, self._key)
        return SonarReadings(
            stamp=core.time_of(readings.tick),
            range_min=self.spec.range_min,
            range_max=self.spec.range_max,
            ranges=core.rounded(readings.ranges),
        )

    @property
    def ranges(self) -> F8:
        """Ranges that `read` returns, m."""
        return self.read().ranges
