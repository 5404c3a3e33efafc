"""Delays of range sensors: latency, jitter and rate of their readings."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.devices.rangetable import RangeDevice, Ranges
from botyard.engine.kernels.delayrings import COUNT, SINCE, is_slower
from botyard.engine.kernels.latency import (
    RING,
    ROOM,
    Delays,
    find_measuring,
    hold_back_some,
)
from botyard.engine.kernels.packed import Output, Sensors
from botyard.engine.layout import F8, I1, I2, I8, World
from botyard.engine.rings import Waiting
from botyard.engine.simulation import Engine
from botyard.model.sensors import LaserSpec, SonarSpec
from botyard.native.kinds import LastPack, Pack


@dataclass(frozen=True, slots=True)
class Delay:
    """Measurement rate, latency and jitter of a device.

    Attributes
    ----------
    latency, jitter : float
        Latency and half-width of its random variation, s; see `botyard.model.sensors.LaserSpec`.
    rate : float
        Rate of measurements, Hz; 0: in each step.
    """

    latency: float = 0.0
    jitter: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, spec: LaserSpec | SonarSpec) -> Delay:
        """Return the delay that the model of a sensor describes.

        Parameters
        ----------
        spec : LaserSpec or SonarSpec
            Model of the sensor.
        """
        return cls(spec.latency, spec.jitter, spec.measurement_rate)

    def matters(self, dt: float) -> bool:
        """Return whether the delay has an effect.

        Parameters
        ----------
        dt : float
            Duration of a step, s. A rate above the rate of steps has no effect.
        """
        return self.latency > 0.0 or is_slower(self.rate, dt)


class Late(NamedTuple):
    """Available and pending readings of a device with a delay, oldest first.

    Attributes
    ----------
    times : (k, 2) int64
        Step from which each reading is available, and step in which it was measured.
    ranges : (k, n) float64
        Ranges, m.
    returns : (k, n) int16
        Laser returns.
    """

    times: I8
    ranges: F8
    returns: I2


class LateReadings:
    """Readings of devices with delays that have an effect.

    Parameters
    ----------
    table : Ranges
        Table of all range devices, whose columns hold the delays and the readings.
    """

    def __init__(self, table: Ranges) -> None:
        self._table = table
        self._given: dict[Hashable, Delay] = {}
        """Delay of each device by key, as the caller has set it."""
        self._late: dict[Hashable, RangeDevice] = {}
        """Devices whose delay has an effect, by key."""
        self._packed: LastPack[Delays] = LastPack()
        self._source: Delays | None = None

    def __bool__(self) -> bool:
        return bool(self._late)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._late

    @property
    def given(self) -> list[Hashable]:
        """Keys of all devices whose delay was set."""
        return list(self._given)

    def set(self, device: RangeDevice, delay: Delay) -> None:
        """Store the delay of a device; it has an effect after `apply`.

        Parameters
        ----------
        device : RangeDevice
            Device of the table.
        delay : Delay
            Latency and jitter, s, and rate, Hz.
        """
        self._given[device.key] = delay

    def apply(self, device: RangeDevice, dt: float) -> bool:
        """Put the stored delay of a device into force.

        If the delay has an effect (`Delay.matters`), earlier readings keep their times;
        otherwise they are dropped.

        Parameters
        ----------
        device : RangeDevice
            Device whose delay was set.
        dt : float
            Duration of a step, s.

        Returns
        -------
        bool
            Whether the delay has an effect.
        """
        delay = self._given[device.key]
        # A rate above the rate of steps has no effect.
        matters = delay.matters(dt)
        if matters:
            self._late[device.key] = device
            self._table.delay[device.number] = delay.latency, delay.jitter, delay.rate
        else:
            self._late.pop(device.key, None)
            # Kernels read this column, and ignore a device without a delay.
            self._table.delay[device.number] = 0.0
            # Discard waiting readings: they must not arrive when a delay is set again
            # later.
            self._table.release(device.number)

        return matters

    def drop(self, key: Hashable) -> None:
        """Forget the delay and the readings of a removed device."""
        self._given.pop(key, None)
        self._late.pop(key, None)

    # -- Readings as values

    def available(self) -> list[Hashable]:
        """Return the keys of devices with available readings."""
        counts = self._table.counts if self._late else ()
        return [key for key, device in self._late.items() if counts[device.number]]

    def of(self, device: RangeDevice) -> Late:
        """Return the readings of a device.

        Parameters
        ----------
        device : RangeDevice
            Device with a delay.

        Returns
        -------
        Late
            Copy of available and pending readings.
        """
        return Late(*self._table.waiting(device.number))

    def resume(self, device: RangeDevice, late: Late) -> None:
        """Replace the readings of a device; does nothing for a device without a delay.

        Parameters
        ----------
        device : RangeDevice
            Device of the table.
        late : Late
            Readings, as from `of`.
        """
        if device.key in self._late:
            self._table.refill(device.number, Waiting(*late))

    def period(self, key: Hashable, dt: float) -> float:
        """Return the mean time between two measurements of a device, s.

        Parameters
        ----------
        key : hashable
            Identity of the device, with or without a delay.
        dt : float
            Duration of a step, s: the shortest period.
        """
        rate = self._given.get(key, Delay()).rate
        return max(dt, 1.0 / rate) if rate > 0.0 else dt

    def measured_at(self, device: RangeDevice) -> int | None:
        """Return the step in which the available reading of a device was measured.

        Parameters
        ----------
        device : RangeDevice
            Device with or without a delay.

        Returns
        -------
        int or None
            Number of the step; None without a late reading.
        """
        times, at = self._table.times, int(self._table.place[device.number, RING])
        first, count = times[at].tolist()
        return int(times[at + 1 + first, SINCE]) if count else None

    # -- Calls of a step

    def lacking(self) -> I8:
        """Return the numbers of delayed devices that have never measured, (n,)."""
        rows = self._rows()
        lacking: I8 = rows[self._table.counts[rows] == 0]
        return lacking

    def measuring(self, chosen: I8, tick: int, dt: float) -> NDArray[np.bool_]:
        """Return which devices measure in a step; devices with a lower rate skip steps.

        Parameters
        ----------
        chosen : (n,) int64
            Numbers of devices.
        tick : int
            Number of the step.
        dt : float
            Duration of a step, s.

        Returns
        -------
        (n,) bool
            True for each device that measures. Devices without a delay always measure.
        """
        found: I1 = np.zeros(len(chosen), np.int8)
        find_measuring(self._pack(), chosen, tick, dt, found)
        return found.view(np.bool_)

    def hold_back(
        self,
        engine: Engine,
        sensors: Pack[Sensors],
        chosen: I8,
        is_kept: NDArray[np.bool_],
        output: Pack[Output],
    ) -> None:
        """Replace the readings of this step by the delayed readings that are available now.

        Only devices with a delay are affected.

        Parameters
        ----------
        engine : Engine
            The engine.
        sensors : Pack of Sensors
            Beams of all devices.
        chosen : (n,) int64
            Numbers of devices. If one has no available reading yet, the present
            measurement stays.
        is_kept : (n,) bool
            Whether the present measurement is queued until it becomes available.
        output : Pack of Output
            Measured readings of all devices.
        """
        # A kernel cannot enlarge the rings while it queues readings.
        if is_kept.any():
            self._make_room()
        hold_back_some(
            engine.packed,
            sensors,
            self._pack(),
            chosen,
            is_kept.view(np.int8),
            engine.seed_word,
            engine.clock.tick,
            engine.clock.dt,
            output,
        )

    def _rows(self) -> I8:
        return np.array([device.number for device in self._late.values()], np.int64)

    def _make_room(self) -> None:
        """Enlarge the ring of each delayed device if it has no room for another reading."""
        table, rows = self._table, self._rows()
        full = table.times[table.place[rows, RING], COUNT] == table.place[rows, ROOM]
        if full.any():
            widths = [device.reading_count for device in self._late.values()]
            table.make_room(rows[full], np.array(widths, np.int64)[full])

    def _pack(self) -> Pack[Delays]:
        """Return the columns of delays and rings, packed for kernels."""
        table, source = self._table, self._source
        # Tables make new arrays when they grow.
        if (
            source is None
            or source.delay is not table.delay
            or source.place is not table.place
            or source.times is not table.times
        ):
            self._source = source = Delays(
                table.delay, table.place, table.times, table.values, table.marks
            )

        return self._packed(source)


def warm_up(
    table: Ranges, world: Pack[World], sensors: Pack[Sensors], output: Pack[Output]
) -> None:
    """Compile the kernels of late readings, or load them; all arguments are empty.

    Parameters
    ----------
    table : Ranges
        Table without rows.
    world, sensors, output : Pack of World, of Sensors, of Output
        Empty arrays: their types decide for which types kernels are compiled.
    """
    delays = LateReadings(table)._pack()
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.int8)
    # A call without devices compiles a kernel, and computes nothing.
    find_measuring(delays, nothing, 0, 1.0, none)
    hold_back_some(world, sensors, delays, nothing, none, np.uint64(0), 0, 1.0, output)


__all__ = ["Delay", "Late", "LateReadings"]
