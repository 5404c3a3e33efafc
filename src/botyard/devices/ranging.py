"""Range sensors of all bodies in common arrays: beams, subscribers and readings.

A *device* is one laser or one sonar ring of one robot. Each step computes it only while
it has a subscriber. A read without a subscription computes it on demand, so that a
sensor without readers costs nothing. Readings are double-buffered: the readings of the
last step stay valid until the step after the next. This module knows arrays and
kernels, but neither robots nor protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.devices.delays import Delay, Late, LateReadings
from botyard.devices.delays import warm_up as warm_up_delays
from botyard.devices.fans import (
    BeamSet,
    beam_set,
    bounds,
    fans_from,
    shape_arrays,
    workspace,
)
from botyard.devices.rangetable import RangeDevice, Ranges
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.packed import Chosen, Output, Sensors, cast
from botyard.engine.layout import F8, I2, I8
from botyard.engine.simulation import Engine, empty_world
from botyard.model.beams import Bundle
from botyard.model.obstacles import Visible
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

T = TypeVar("T", bound=np.generic)

MIN_PARALLEL_BEAMS = 9000
"""Number of beams per step from which several threads are worth their overhead.

It is about 50 scans of 181 (reference performance.md §3.6).
"""
PARTS_PER_THREAD = 3
"""Number of parts of the work per thread.

More parts than threads balance the load of slow parts.
"""
MAX_UNUSED_BEAMS = 20_000
"""Number of unused beams above which the cache drops them."""
_DELAY = "delay"
"""Subscriber of devices with a delay."""
MIN_SORTED_DEVICES = 64
"""Number of devices per step from which they are computed in the order of grid cells.

Cache locality saves 6 % of the time with 1000 lasers.
"""


@dataclass(frozen=True, slots=True)
class Readings:
    """Reading of a device.

    Attributes
    ----------
    tick : int
        Number of steps done at the time of the measurement.
    ranges : (n,) float64 array
        Ranges, m; the highest range of the device if nothing was hit. Read-only.
    returns : (n,) int16 array
        Laser returns: 0 nothing, 1 ordinary, higher: bright. Read-only.
    """

    tick: int
    ranges: NDArray[np.float64]
    returns: NDArray[np.int16]


Distortion = Callable[[tuple[Bundle, ...], F8], None]


class RangeDevices:
    """All range devices of a simulation; the `SensePhase` of the engine.

    Parameters
    ----------
    threads : int
        Highest number of threads; with 1 all work runs in the caller's thread.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.table: Ranges = Ranges()
        self._engine: Engine | None = None
        self._devices: dict[Hashable, RangeDevice] = {}
        self._unmade: dict[RangeDevice, None] = {}
        """Devices whose beams are not in the arrays yet.

        The arrays are made lazily, because a client may change the beams very often
        between two steps.
        """
        self._kinds: dict[int, tuple[int, BeamSet]] = {}
        """Sets of beams in use with their numbers, by identity."""
        self._shapes: dict[str, NDArray[Any]] | None = None
        self._fans: Fans | None = None
        self._known = -1
        self._workspaces: list[Pack[Sensors]] = []
        self._out: list[Pack[Output]] = []
        self._bounds = np.zeros(1, np.int64)
        self._spans: list[tuple[int, int]] | None = None
        self._measured: tuple[bytes, dict[Hashable, tuple[int, int]]] | None = None
        """Mask of the devices measured in a step, as bytes, and their slices."""
        self._taken = np.zeros(0, np.bool_)
        self._active: I8 | None = None
        self._last_chosen: Pack[Chosen] | None = None
        self._parallel = False
        self._workers = Workers(self.threads, "rays")
        self._distortions: dict[Hashable, list[Distortion]] = {}
        self._late = LateReadings(self.table)

    # -- Devices and subscribers

    def configure(
        self,
        key: Hashable,
        body: str,
        stream: int,
        senses: Visible,
        bundles: Sequence[Bundle],
    ) -> None:
        """Add a device, or change one; its subscribers stay.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        body : str
            Name of the body that carries it.
        stream : int
            Number of the device in the body's random streams.
        senses : Visible
            Classes that it detects.
        bundles : sequence of Bundle
            Beams of the device.

        Raises
        ------
        KeyError
            There is no such body.
        """
        assert self._engine is not None, "an engine has these devices"
        device, row, table = self._devices.get(key), self._engine.rows[body], self.table
        if device is None:
            device = self._devices[key] = RangeDevice(table, row, key)
        count = device.reading_count
        # A tuple is hashable, as the cache of beams requires.
        device.bundles = tuple(bundles)
        device.reading_count = sum([bundle.n_readings for bundle in device.bundles])
        if device.reading_count != count:
            # Pending readings belong to other rays.
            table.release(device.number)
        n = device.number
        table.body[n], table.stream[n], table.senses[n] = row, stream, int(senses)
        self._unmade[device] = None
        # Offsets of readings change, which interfaces cache.
        self._engine.feed.record_change(Subject.READINGS)

    def distort(self, key: Hashable, distortion: Distortion) -> None:
        """Register a function that changes a device's measured ranges in place.

        It is called with beams and ranges (m).
        """
        self._distortions.setdefault(key, []).append(distortion)

    def delay(self, key: Hashable, delay: Delay) -> None:
        """Set the delay of a device; readings measured before keep their times.

        A device with a delay measures in every step, because a later reader cannot
        measure the past.
        """
        self._late.set(self._devices[key], delay)
        self._apply_delay(key)

    def _apply_delay(self, key: Hashable) -> None:
        """Apply the delay of a device if it has an effect."""
        assert self._engine is not None, "an engine has these devices"
        device = self._devices[key]
        matters = self._late.apply(device, self._engine.clock.dt)
        # An own subscription makes the device measure in every step.
        if matters != (_DELAY in device.readers):
            self.subscribe(key, _DELAY, matters)

    def late(self) -> Mapping[Hashable, Late]:
        """Return available and pending readings of devices with a delay."""
        return {key: self._late.of(self._devices[key]) for key in self.late_keys}

    def resume(self, key: Hashable, late: Late) -> None:
        """Restore the delayed readings of a device after a restoration of the world.

        Does nothing for a device without a delay.
        """
        self._late.resume(self._devices[key], late)

    def forget(self) -> None:
        """Drop delayed readings after the world was set to another time.

        The step length may also have changed, so that delays are considered again.
        """
        self.table.empty_all()
        for key in self._late.given:
            self._apply_delay(key)

    @property
    def is_distorted(self) -> bool:
        """Whether an error model changes the ranges of a device."""
        return bool(self._distortions)

    def subscribe(self, key: Hashable, reader: Hashable, on: bool = True) -> None:
        """Subscribe `reader` to a device, or end its subscription."""
        device = self._devices[key]
        before = len(device.readers)
        if on:
            device.readers.add(reader)
        else:
            device.readers.discard(reader)

        self.table.readers[device.number] = len(device.readers)
        if bool(device.readers) != bool(before):
            # Computed lazily, because a thousand clients may subscribe at once.
            self._active = None

    def has(self, key: Hashable) -> bool:
        """Return whether a device with that identity exists."""
        return key in self._devices

    def is_read(self, key: Hashable) -> bool:
        """Return whether a device has a subscriber."""
        return bool(self._devices[key].readers)

    # -- Calls of the engine

    def rebuild(self, engine: Engine) -> None:
        """Drop the devices of removed bodies after rows have changed."""
        self._engine = engine
        self._fans = None
        # Rows of the table are removed by the engine; caches by key are not.
        for key in self.table.gone:
            self._unmade.pop(self._devices.pop(key), None)
            self._distortions.pop(key, None)
            self._late.drop(key)

        self.table.gone.clear()

    @property
    def _rows(self) -> list[RangeDevice]:
        rows: list[RangeDevice] = self.table.rows  # type: ignore[assignment]
        return rows

    @property
    def remembers(self) -> bool:
        """Whether readings depend on earlier steps.

        They do with a delay, and with error models that may have a memory.
        """
        return bool(self._late or self._distortions)

    def begin(self, engine: Engine) -> None:
        """Measure with delayed devices that have never measured.

        The result must not depend on whether a caller has read them.
        """
        # Only devices configured since the last step lack readings.
        if self._late and len(new := self._late.lacking()):
            self._cast(engine, new)
            self._hold_back(engine, new, np.ones(len(new), np.bool_))

    def sense(self, engine: Engine) -> None:
        """Measure with all devices that have a subscriber."""
        # Readings of the last step stay readable in the other buffer.
        self._out.reverse()
        self._taken[:] = False
        if self._active is None and not self.table.readers.any():
            self._active = np.zeros(0, np.int64)
        # Return before arrays are built that no reader needs yet.
        if self._active is not None and not len(self._active):
            return

        fans, active = self._built(engine)
        # Neighbours visit the same grid cells, which are then in the CPU cache.
        if len(active) >= MIN_SORTED_DEVICES:
            active = active[
                np.argsort(engine.bins.cell[fans.row[active]], kind="stable")
            ]

        if not self._late:
            self._cast(engine, active)
            return

        measuring = self._late.measuring(active, engine.clock.tick, engine.clock.dt)
        self._cast(engine, active if measuring.all() else active[measuring])
        # The previous readings of the others count as the readings of this step.
        self._taken[active] = True
        self._hold_back(engine, active, measuring)

    def _hold_back(
        self, engine: Engine, chosen: I8, is_kept: NDArray[np.bool_]
    ) -> None:
        """Replace measured readings by the available ones; see `LateReadings`."""
        self._late.hold_back(engine, self._workspaces[0], chosen, is_kept, self._out[0])

    def read(self, engine: Engine, key: Hashable) -> Readings:
        """Return readings of a device in the present state, computed now if necessary.

        Raises
        ------
        KeyError
            There is no such device.
        """
        self._built(engine)
        index = self._devices[key].number
        if not self._taken[index]:
            self._measure_on_demand(engine, np.array([index], np.int64))
        first, last = self._bounds[index], self._bounds[index + 1]
        ranges, bright = self._out[0].value
        return Readings(
            self.measured_at(engine, key),
            _frozen(ranges[first:last]),
            _frozen(bright[first:last]),
        )

    def measured_at(self, engine: Engine, key: Hashable) -> int:
        """Return the step of the measurement of a device's available reading."""
        device = self._devices.get(key) if key in self._late else None
        tick = None if device is None else self._late.measured_at(device)
        return engine.clock.tick if tick is None else tick

    @property
    def late_keys(self) -> Sequence[Hashable]:
        """Keys of devices with a delay that have readings."""
        return self._late.available()

    # -- All readings of a step at once, for interfaces that serve many robots

    def latest(self) -> tuple[F8, I2]:
        """Return ranges (m) and returns of all devices after the last step, read-only.

        `span` returns the slice of a device.
        """
        return self._out[0].value if self._out else (np.zeros(0), np.zeros(0, np.int16))

    def take(self, engine: Engine, numbers: NDArray[np.int64]) -> None:
        """Measure with the devices of these numbers, (n,) int64, unless the step did."""
        self._built(engine)
        taken = self._taken[numbers].tobytes()
        # The same array has its pack for kernels already.
        missing = numbers if b"\1" not in taken else numbers[~self._taken[numbers]]
        if len(missing):
            self._measure_on_demand(engine, missing)

    def number(self, key: Hashable) -> int:
        """Return the number of a device among all; -1 if there is none.

        It is valid until bodies or devices are added or removed.
        """
        device = self._devices.get(key)
        return -1 if device is None else device.number

    def placed(
        self, engine: Engine
    ) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Return the keys of all devices, and their slices (first, end) of `latest`."""
        self._built(engine)
        if self._spans is None:
            self._spans = list(pairwise(self._bounds.tolist()))
        return [row.key for row in self._rows], self._spans

    def measured(self, engine: Engine) -> Mapping[Hashable, tuple[int, int]]:
        """Return the slices of all devices measured in this step, by key.

        The object stays the same as long as its content does.
        """
        self._built(engine)
        # Comparing bytes is faster than comparing dictionaries of spans.
        taken = self._taken.tobytes()
        if self._measured is None or self._measured[0] != taken:
            keys, spans = self.placed(engine)
            found = {
                key: span
                for key, span, on in zip(keys, spans, self._taken.tolist(), strict=True)
                if on
            }
            self._measured = taken, found

        return self._measured[1]

    def taken(self, engine: Engine) -> NDArray[np.bool_]:
        """Return which devices were measured in this step, (n,) bool.

        The order is the order of `placed`.
        """
        self._built(engine)
        return self._taken

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """Return the beams of a device."""
        return self._devices[key].bundles

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions to all devices."""
        return int(self.table.readers.sum())

    def span(self, key: Hashable) -> tuple[int, int] | None:
        """Return the slice (first, end) of a device's readings in `latest`.

        Return None if it was not measured in this step.
        """
        device = self._devices.get(key)
        if (
            device is None
            or device in self._unmade
            or self._known != self.table.layout
            or not self._taken[device.number]
        ):
            return None

        return int(self._bounds[device.number]), int(self._bounds[device.number + 1])

    def _cast(self, engine: Engine, chosen: NDArray[np.int64]) -> None:
        """Measure with the devices of these indices, in parallel if that saves time."""
        self._built(engine)
        output, world, seed, tick = (
            self._out[0],
            engine.packed,
            engine.seed_word,
            engine.clock.tick,
        )
        # A thread costs more than a few scans save, see `MIN_PARALLEL_BEAMS`.
        if self._parallel and len(chosen) > 1:
            # The kernel releases the GIL, and devices write to separate slices: threads
            # need no locks.
            parts = np.array_split(chosen, min(len(self._workspaces), len(chosen)))
            work = [
                (world, sensors, Pack(Chosen(part)), seed, tick, output)
                for part, sensors in zip(parts, self._workspaces, strict=False)
            ]
            self._workers.run(cast, work)
        else:
            cast(world, self._workspaces[0], self._packed(chosen), seed, tick, output)

        self._taken[chosen] = True
        if self._distortions:
            self._distort(chosen, output.value.ranges)

    def _packed(self, chosen: I8) -> Pack[Chosen]:
        """Return chosen devices packed for kernels.

        The last pack is reused while the choice is the same array.
        """
        last = self._last_chosen
        if last is None or last.value.devices is not chosen:
            last = self._last_chosen = Pack(Chosen(chosen))
        return last

    def _distort(self, chosen: NDArray[np.int64], ranges: F8) -> None:
        """Apply error models to the measured ranges."""
        for index in chosen.tolist():
            device = self._rows[index]
            for distort in self._distortions.get(device.key, ()):
                distort(
                    device.bundles,
                    ranges[self._bounds[index] : self._bounds[index + 1]],
                )

    def _measure_on_demand(self, engine: Engine, chosen: I8) -> None:
        """Measure for a read outside of a step.

        The queues of delayed readings do not change.
        """
        self._cast(engine, chosen)
        if self._late:
            self._hold_back(engine, chosen, np.zeros(len(chosen), np.bool_))

    # -- Arrays

    def _built(self, engine: Engine) -> tuple[Fans, NDArray[np.int64]]:
        """Return the arrays of all devices, and indices of devices with subscribers.

        The arrays are rebuilt if a device or a row has changed.
        """
        # Built once for any number of changes between two steps.
        if self._fans is None or self._unmade or self._known != self.table.layout:
            self._fans, self._active = self._build(), None
        if self._active is None:
            self._active = np.flatnonzero(self.table.readers)
            beams = np.array(
                [int(k.counts.sum()) for _, k in self._kinds.values()], np.int64
            )
            n_beams = int(beams[self.table.kind[self._active]].sum())
            self._parallel = self.threads > 1 and n_beams >= MIN_PARALLEL_BEAMS

        return self._fans, self._active

    def _build(self) -> Fans:
        for device in self._unmade:
            self._make(device)
        self._unmade.clear()
        self._forget_kinds()
        if self._shapes is None:
            self._shapes = shape_arrays([kind for _, kind in self._kinds.values()])
        table = self.table
        self._bounds = bounds(table.size)
        self._spans = self._measured = None
        self._known = table.layout
        n_out = int(self._bounds[-1])
        self._out = [
            # Two buffers: readings stay valid until the step after the next.
            Pack(Output(np.zeros(n_out), np.zeros(n_out, np.int16)))
            for _ in range(2)
        ]
        self._taken = np.zeros(len(table), np.bool_)
        fans = fans_from(table, self._bounds, self._shapes)
        packed = Pack(fans)
        self._workspaces = [
            Pack(Sensors(packed, workspace(fans)))  # type: ignore[arg-type]
            for _ in range(PARTS_PER_THREAD * self.threads)
        ]
        return fans

    def _make(self, device: RangeDevice) -> None:
        """Compute the beams of a device."""
        beams = beam_set(device.bundles)
        number, _ = self._kinds.setdefault(id(beams), (len(self._kinds), beams))
        if number == len(self._kinds) - 1:
            self._shapes = None
        self.table.kind[device.number], self.table.size[device.number] = (
            number,
            int(beams.readings.sum()),
        )

    def _forget_kinds(self) -> None:
        """Drop cached sets of beams that no device uses, if there are many.

        Clients may choose new sets all the time.
        """
        # `numbers` are the new kind numbers after unused kinds are dropped.
        used, numbers = np.unique(self.table.kind, return_inverse=True)
        kinds = [kind for _, kind in self._kinds.values()]
        unused = sum(len(kind.sector) for kind in kinds) - sum(
            len(kinds[k].sector) for k in used.tolist()
        )
        if unused > MAX_UNUSED_BEAMS:
            self.table.kind[:] = numbers
            self._kinds = {
                id(kinds[k]): (number, kinds[k])
                for number, k in enumerate(used.tolist())
            }
            self._shapes = None


def warm_up(*, late: bool = False) -> None:
    """Compile the kernels of range sensors, or load them, without a world.

    `late` includes the kernels of late readings, which few runs need.
    """
    table = Ranges()
    fans = fans_from(table, np.zeros(1, np.int64), shape_arrays([]))
    # An empty choice compiles the kernel without computing anything.
    nobody = Pack(Chosen(np.zeros(0, np.int64)))
    # Packs stand in for the tuples that they hold.
    sensors = Pack(Sensors(Pack(fans), workspace(fans)))  # type: ignore[arg-type]
    world, output = empty_world(), Pack(Output(np.zeros(0), np.zeros(0, np.int16)))
    cast(world, sensors, nobody, np.uint64(0), 0, output)
    if late:
        warm_up_delays(table, world, sensors, output)


def _frozen(array: NDArray[T]) -> NDArray[T]:
    # A read-only view: writing to a reading would change the next reader's.
    view = array.view()
    view.flags.writeable = False
    return view
