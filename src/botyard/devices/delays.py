"""Delays of range sensors: latency, jitter and rate of their readings."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.devices.rangetable import RangeDevice, Ranges
from botyard.engine.kernels.latency import (
    COUNT,
    RING,
    ROOM,
    SINCE,
    Delays,
    find_measuring,
    hold_back_some,
    is_slower,
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
        s; see `botyard.model.sensors.LaserSpec`.
    rate : float
        Rate of measurements, Hz; 0: in each step.
    """

    latency: float = 0.0
    jitter: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, spec: LaserSpec | SonarSpec) -> Delay:
        """Return the delay of a model."""
        return cls(spec.latency, spec.jitter, spec.measurement_rate)

    def matters(self, dt: float) -> bool:
        """Return whether the delay has an effect in a world with steps of `dt` s."""
        return self.latency > 0.0 or is_slower(self.rate, dt)


class Late(NamedTuple):
    """Available and pending readings of a device with a delay, oldest first.

    Attributes
    ----------
    times : (k, 2) int64
        Step from which each reading is available, and step it was measured in.
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
        """Delays as set by the caller."""
        self._late: dict[Hashable, RangeDevice] = {}
        """Devices with a delay that has an effect."""
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
        """Set the delay of a device; `apply` lets it have an effect."""
        self._given[device.key] = delay

    def apply(self, device: RangeDevice, dt: float) -> bool:
        """Return whether the delay of a device has an effect with steps of `dt` s.

        Readings measured before keep their times if it has.
        """
        delay = self._given[device.key]
        # A rate above the rate of steps has no effect.
        matters = delay.matters(dt)
        if matters:
            self._late[device.key] = device
            self._table.delay[device.number] = delay.latency, delay.jitter, delay.rate
        else:
            self._late.pop(device.key, None)
            self._table.delay[device.number] = 0.0
            self._table.release(device.number)

        return matters

    def drop(self, key: Hashable) -> None:
        """Forget a removed device."""
        self._given.pop(key, None)
        self._late.pop(key, None)

    # -- Readings as values

    def available(self) -> list[Hashable]:
        """Return the keys of devices with available readings."""
        counts = self._table.counts if self._late else ()
        return [key for key, device in self._late.items() if counts[device.number]]

    def of(self, device: RangeDevice) -> Late:
        """Return the readings of a device."""
        return Late(*self._table.waiting(device.number))

    def resume(self, device: RangeDevice, late: Late) -> None:
        """Continue with these readings; without effect for a device without a delay."""
        if device.key in self._late:
            self._table.refill(device.number, Waiting(*late))

    def measured_at(self, device: RangeDevice) -> int | None:
        """Return the step in which the available reading of a device was measured.

        Return None if the device has no late reading.
        """
        times, at = self._table.times, int(self._table.place[device.number, RING])
        first, count = times[at].tolist()
        return int(times[at + 1 + first, SINCE]) if count else None

    # -- Calls of a step

    def lacking(self) -> I8:
        """Return the numbers of devices that have never measured, (n,)."""
        rows = self._rows()
        lacking: I8 = rows[self._table.counts[rows] == 0]
        return lacking

    def measuring(self, chosen: I8, tick: int, dt: float) -> NDArray[np.bool_]:
        """Return which of these devices measure in a step; others wait for a cycle."""
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
        """Replace measured readings of devices with delays by the available ones.

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
        """Let each ring have room for another reading."""
        table, rows = self._table, self._rows()
        full = table.times[table.place[rows, RING], COUNT] == table.place[rows, ROOM]
        if full.any():
            widths = [device.reading_count for device in self._late.values()]
            table.make_room(rows[full], np.array(widths, np.int64)[full])

    def _pack(self) -> Pack[Delays]:
        """Return the columns packed for kernels."""
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
    """Compile the kernels of late readings, or load them; all arguments are empty."""
    delays = LateReadings(table)._pack()
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.int8)
    find_measuring(delays, nothing, 0, 1.0, none)
    hold_back_some(world, sensors, delays, nothing, none, np.uint64(0), 0, 1.0, output)


__all__ = ["Delay", "Late", "LateReadings"]
