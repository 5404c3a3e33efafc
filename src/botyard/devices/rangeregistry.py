"""Range devices of all bodies: their beams, subscribers, delays and error models."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.devices.delays import Delay, Late, LateReadings
from botyard.devices.fans import (
    BeamSet,
)
from botyard.devices.lidars import LidarCaster
from botyard.devices.rangetable import RangeDevice, Ranges
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.packed import Chosen, Output, Sensors
from botyard.engine.layout import F8, I8
from botyard.engine.simulation import Engine
from botyard.model.beams import Bundle
from botyard.model.obstacles import Visible
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

_DELAY = "delay"
"""Key under which devices with a delay are subscribed, so that each step computes them."""
Distortion = Callable[[tuple[Bundle, ...], F8], None]


class RangeRegistry:
    """All range devices of a simulation and their subscribers.

    Parameters
    ----------
    workers : Workers, optional
        Threads; with at most one, which is the default, all work runs in the caller's
        thread.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers = Workers(1, "rays") if workers is None else workers
        self.table: Ranges = Ranges()
        self._engine: Engine | None = None
        self._devices: dict[Hashable, RangeDevice] = {}
        self._unmade: dict[RangeDevice, None] = {}
        """Devices whose beams must still be written into the common arrays.

        The arrays are made lazily, because a client may change the beams very often
        between two steps.
        """
        self._kinds: dict[int, tuple[int, BeamSet]] = {}
        """Sets of beams in use and the number of each, by the identity of the set."""
        self._shapes: dict[str, NDArray[Any]] | None = None
        self._fans: Fans | None = None
        self._known = -1
        self._workspaces: list[Pack[Sensors]] = []
        self._out: list[Pack[Output]] = []
        self._lidars: LidarCaster | None = None
        """Lidars with timing or optics; None if there are none."""
        self._bounds = np.zeros(1, np.int64)
        self._spans: list[tuple[int, int]] | None = None
        self._measured: tuple[bytes, dict[Hashable, tuple[int, int]]] | None = None
        """For the last step: mask of the measured devices as bytes, and the slices of their
        readings.
        """
        self._taken = np.zeros(0, np.bool_)
        self._active: I8 | None = None
        self._last_chosen: Pack[Chosen] | None = None
        self._parallel = False
        self._distortions: dict[Hashable, list[Distortion]] = {}
        self._late = LateReadings(self.table)

    @property
    def threads(self) -> int:
        """Highest number of threads."""
        return self._workers.count

    def configure(
        self,
        key: Hashable,
        body: str,
        stream: int,
        senses: Visible,
        bundles: Sequence[Bundle],
    ) -> None:
        """Add a range device, or change an existing one; its subscribers stay.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        body : str
            Name of the body that carries the device.
        stream : int
            Number of the device in the body's random streams.
        senses : Visible
            Classes of walls and bodies that the device detects.
        bundles : sequence of Bundle
            Beams of the device.

        Raises
        ------
        KeyError
            There is no such body.
        """
        assert self._engine is not None, "this registry has no engine"
        device, row, table = self._devices.get(key), self._engine.rows[body], self.table
        # A changed device keeps its row, so that numbers held by interfaces stay valid.
        if device is None:
            device = self._devices[key] = RangeDevice(table, row, key)
        count = device.reading_count

        # A tuple is hashable, as the cache of beams requires.
        device.bundles = tuple(bundles)
        device.reading_count = sum([bundle.n_readings for bundle in device.bundles])
        if device.reading_count != count:
            # Pending readings were measured with the previous rays.
            table.release(device.number)

        n = device.number
        table.body[n], table.stream[n], table.senses[n] = row, stream, int(senses)
        self._unmade[device] = None
        # Offsets of readings change, which interfaces cache.
        self._engine.feed.record_change(Subject.READINGS)

    def distort(self, key: Hashable, distortion: Distortion) -> None:
        """Register a function that changes a device's measured ranges.

        Several functions of a device are called in the order of registration.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        distortion : callable
            Function that gets the beams of the device and its ranges, m, and changes the
            ranges in place.
        """
        self._distortions.setdefault(key, []).append(distortion)

    def delay(self, key: Hashable, delay: Delay) -> None:
        """Set the delay of a device; earlier readings keep their times.

        A device with a delay measures in every step, because a later reader cannot
        measure the past.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        delay : Delay
            Latency and jitter, s, and rate, Hz.

        Raises
        ------
        KeyError
            There is no such device.
        """
        self._late.set(self._devices[key], delay)
        self._apply_delay(key)

    def _apply_delay(self, key: Hashable) -> None:
        """Apply the stored delay of a device, and subscribe to the device if the delay has an
        effect.
        """
        assert self._engine is not None, "this registry has no engine"
        device = self._devices[key]
        matters = self._late.apply(device, self._engine.clock.dt)
        # The subscriber `_DELAY` makes the device measure in every step, without other
        # readers.
        if matters != (_DELAY in device.readers):
            self.subscribe(key, _DELAY, matters)

    @property
    def late_keys(self) -> Sequence[Hashable]:
        """Keys of devices with a delay that have readings."""
        return self._late.available()

    def late(self) -> Mapping[Hashable, Late]:
        """Return the available and pending readings of all devices with a delay, by key."""
        return {key: self._late.of(self._devices[key]) for key in self.late_keys}

    def resume(self, key: Hashable, late: Late) -> None:
        """Restore the delayed readings of a device after a restoration of the world.

        Does nothing for a device without a delay.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        late : Late
            Readings, as from `late`.

        Raises
        ------
        KeyError
            There is no such device.
        """
        self._late.resume(self._devices[key], late)

    def forget(self) -> None:
        """Drop delayed readings after the world was set to another time.

        The step length may also have changed, so it is computed again which delays have an effect.
        """
        # Times of queued readings would lie in the future of the new clock.
        self.table.empty_all()
        for key in self._late.given:
            self._apply_delay(key)

    @property
    def is_distorted(self) -> bool:
        """Whether an error model changes the ranges of a device."""
        return bool(self._distortions)

    def subscribe(self, key: Hashable, reader: Hashable, on: bool = True) -> None:
        """Subscribe a reader to a device, or end its subscription.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        reader : hashable
            Identity of the reader; each counts once.
        on : bool
            Whether to subscribe.

        Raises
        ------
        KeyError
            There is no such device.
        """
        device = self._devices[key]
        before = len(device.readers)
        if on:
            device.readers.add(reader)
        else:
            device.readers.discard(reader)

        self.table.readers[device.number] = len(device.readers)
        # Only the first and the last reader change which devices are measured.
        if bool(device.readers) != bool(before):
            # Computed lazily, because a thousand clients may subscribe at once.
            self._active = None

    def has(self, key: Hashable) -> bool:
        """Return whether a device with that identity exists."""
        return key in self._devices

    def is_read(self, key: Hashable) -> bool:
        """Return whether a device has a subscriber.

        Parameters
        ----------
        key : hashable
            Identity of the device.

        Raises
        ------
        KeyError
            There is no such device.
        """
        return bool(self._devices[key].readers)

    def read_keys(self) -> frozenset[Hashable]:
        """Return the identities of all devices that have a subscriber."""
        return frozenset(key for key, one in self._devices.items() if one.readers)

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """Return the beams of a device.

        Parameters
        ----------
        key : hashable
            Identity of the device.

        Raises
        ------
        KeyError
            There is no such device.
        """
        return self._devices[key].bundles

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions to all devices."""
        return int(self.table.readers.sum())

    def rebuild(self, engine: Engine) -> None:
        """Drop the range devices of removed bodies, after rows of bodies have changed."""
        self._engine = engine
        self._fans = None
        # Rows of the table are removed by the engine; caches by key are not.
        for key in self.table.gone:
            # A device may be removed before its beams were ever built.
            self._unmade.pop(self._devices.pop(key), None)
            self._distortions.pop(key, None)
            self._late.drop(key)

        self.table.gone.clear()

    @property
    def _rows(self) -> list[RangeDevice]:
        rows: list[RangeDevice] = self.table.rows  # type: ignore[assignment]
        return rows


__all__ = ["Distortion", "RangeRegistry"]
