"""Range sensors of all bodies in common arrays: beams, subscribers and readings.

A *device* is one laser or one sonar ring of one robot. Each step computes it only while
it has a subscriber. A read without a subscription computes it on demand, so that a
sensor without readers costs nothing. Readings are double-buffered: the readings of the
last step stay valid until the step after the next. This module knows arrays and
kernels, but neither robots nor protocols.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.devices.delays import warm_up as warm_up_delays
from botyard.devices.fans import (
    beam_set,
    bounds,
    fans_from,
    shape_arrays,
    workspace,
)
from botyard.devices.lidars import LidarCaster
from botyard.devices.lidars import warm_up as warm_up_lidars
from botyard.devices.rangeregistry import RangeRegistry
from botyard.devices.rangetable import RangeDevice, Ranges
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.packed import Chosen, Output, Sensors, cast
from botyard.engine.layout import F8, I2, I8
from botyard.engine.simulation import Engine, empty_world
from botyard.native.kinds import Pack

T = TypeVar("T", bound=np.generic)

MIN_PARALLEL_BEAMS = 9000
"""Number of beams per step above which several threads are faster than one.

They are about 50 laser scans of 181 beams.
"""
PARTS_PER_THREAD = 3
"""Number of parts into which the work of a step is divided, per thread.

More parts than threads balance the load of slow parts.
"""
MAX_UNUSED_BEAMS = 20_000
"""Number of unused beams in the cache above which they are dropped."""
MIN_SORTED_DEVICES = 64
"""Number of devices per step above which they are computed in the order of grid cells.

Cache locality saves 6 % of the time with 1000 lasers.
"""


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one range device.

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


class RangeDevices(RangeRegistry):
    """All range devices of a simulation; the engine calls this object in each step.

    Parameters
    ----------
    workers : Workers, optional
        Threads; with at most one, which is the default, all work runs in the caller's
        thread.
    """

    # -- Calls of the engine

    @property
    def remembers(self) -> bool:
        """Whether readings of the next step depend on earlier steps.

        They do if a device has a delay, or an error model, which may have a memory.
        """
        return bool(self._late or self._distortions)

    def begin(self, engine: Engine) -> None:
        """Measure with each delayed device that has never measured.

        The measurement is made now, so that results do not depend on whether a caller has read the
        device.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors, before a step.
        """
        # Only devices configured since the last step lack readings.
        if self._late and len(new := self._late.lacking()):
            self._cast(engine, new)
            self._hold_back(engine, new, np.ones(len(new), np.bool_))

    def sense(self, engine: Engine) -> None:
        """Measure with all devices that have a subscriber.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors, after all bodies have moved.
        """
        # Readings of the last step stay readable in the other buffer.
        self._out.reverse()
        # No device has a reading of this step yet, whether the step measures with it or not.
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
        # A device that has not measured keeps its previous reading, which counts as its
        # reading of this step.
        self._taken[active] = True
        self._hold_back(engine, active, measuring)

    def _hold_back(
        self, engine: Engine, chosen: I8, is_kept: NDArray[np.bool_]
    ) -> None:
        """Replace measured readings by the delayed readings that are available; see `LateReadings`.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        chosen : (n,) int64
            Numbers of devices.
        is_kept : (n,) bool
            Whether the present measurement of each is queued.
        """
        self._late.hold_back(engine, self._workspaces[0], chosen, is_kept, self._out[0])

    def read(self, engine: Engine, key: Hashable) -> Readings:
        """Return readings of a device in the present state, computed now if necessary.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        key : hashable
            Identity of the device.

        Returns
        -------
        Readings
            Views that stay valid until the step after the next.

        Raises
        ------
        KeyError
            There is no such device.
        """
        self._built(engine)
        index = self._devices[key].number
        # A second reader in the same step gets the same reading, with the same noise.
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
        """Return the step of the measurement of a device's available reading.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        key : hashable
            Identity of the device.
        """
        device = self._devices.get(key) if key in self._late else None
        tick = None if device is None else self._late.measured_at(device)
        return engine.clock.tick if tick is None else tick

    def period(self, engine: Engine, key: Hashable) -> float:
        """Return the mean time between two measurements of a device, s; see `LateReadings`.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        key : hashable
            Identity of the device.
        """
        return self._late.period(key, engine.clock.dt)

    # -- All readings of a step at once, for interfaces that serve many robots

    def latest(self) -> tuple[F8, I2]:
        """Return ranges (m) and returns of all devices after the last step, read-only.

        `span` returns the slice of a device.
        """
        return self._out[0].value if self._out else (np.zeros(0), np.zeros(0, np.int16))

    def take(self, engine: Engine, numbers: NDArray[np.int64]) -> None:
        """Measure with some devices, unless they were measured in this step already.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        numbers : (n,) int64
            Numbers of the devices. Callers that pass the same array each time save a
            copy.
        """
        self._built(engine)
        # A search in bytes is faster than `all` for the usual handful of devices.
        taken = self._taken[numbers].tobytes()
        # The same array is already packed for kernels.
        missing = numbers if b"\1" not in taken else numbers[~self._taken[numbers]]
        if len(missing):
            self._measure_on_demand(engine, missing)

    def number(self, key: Hashable) -> int:
        """Return the number of a device in the table of all range devices; -1 if there is none.

        The number is valid until bodies or devices are added or removed.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        """
        device = self._devices.get(key)
        return -1 if device is None else device.number

    def placed(
        self, engine: Engine
    ) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Return the keys of all devices, and their slices (first, end) of `latest`.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.

        Returns
        -------
        tuple of (sequence of hashable, sequence of (int, int))
            Keys and slices in the order of the table. The sequence of slices stays the
            same object as long as it is valid.
        """
        self._built(engine)
        # Offsets change only with the layout, while interfaces ask in each step.
        if self._spans is None:
            self._spans = list(pairwise(self._bounds.tolist()))
        return [row.key for row in self._rows], self._spans

    def measured(self, engine: Engine) -> Mapping[Hashable, tuple[int, int]]:
        """Return the slices of all devices measured in this step, by key.

        The object stays the same as long as its content does.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.

        Returns
        -------
        mapping of hashable to (int, int)
            First and end in `latest`.
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

        The devices are in the order of `placed`.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.

        Returns
        -------
        (n,) bool
            Live array, not a copy: later reads in this step change it.
        """
        self._built(engine)
        return self._taken

    def span(self, key: Hashable) -> tuple[int, int] | None:
        """Return the slice of a device's readings in `latest`.

        Parameters
        ----------
        key : hashable
            Identity of the device.

        Returns
        -------
        tuple of int or None
            Index of the first reading, and index after the last one. None if the device
            has not measured in this step.
        """
        device = self._devices.get(key)
        if (
            device is None
            or device in self._unmade
            # Before the next build, offsets of the old layout would point at other
            # devices.
            or self._known != self.table.layout
            or not self._taken[device.number]
        ):
            return None

        return int(self._bounds[device.number]), int(self._bounds[device.number + 1])

    def _cast(self, engine: Engine, chosen: NDArray[np.int64]) -> None:
        """Measure with some devices, in several threads if that saves time.

        Parameters
        ----------
        engine : Engine
            Engine that has these sensors.
        chosen : (n,) int64
            Numbers of the devices.
        """
        self._built(engine)
        if self._lidars is None:
            self._cast_plain(engine, chosen)
        else:
            # Lidars with timing or optics have a kernel of their own.
            plain, lidars = self._lidars.split(chosen)
            if len(plain):
                self._cast_plain(engine, plain)
            if len(lidars):
                self._lidars.cast(
                    engine, self._workspaces, lidars, self._out[0], self._workers
                )

        self._taken[chosen] = True
        # Error models are Python functions that may keep state, so that they run after
        # all threads, one after the other.
        if self._distortions:
            self._distort(chosen, self._out[0].value.ranges)

    def _cast_plain(self, engine: Engine, chosen: NDArray[np.int64]) -> None:
        """Measure with some devices that cast all beams at one instant."""
        output, world, seed, tick = (
            self._out[0],
            engine.packed,
            engine.seed_word,
            engine.clock.tick,
        )

        # For only a few scans, threads cost more than they save, see
        # `MIN_PARALLEL_BEAMS`.
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

    def _packed(self, chosen: I8) -> Pack[Chosen]:
        """Return the data of some devices, packed for kernels.

        The last pack is reused while the choice is the same array.
        """
        last = self._last_chosen
        if last is None or last.value.devices is not chosen:
            last = self._last_chosen = Pack(Chosen(chosen))
        return last

    def _distort(self, chosen: NDArray[np.int64], ranges: F8) -> None:
        """Apply error models to the measured ranges of some devices.

        Parameters
        ----------
        chosen : (n,) int64
            Numbers of the devices.
        ranges : (r,) float64
            Ranges of all devices, m. In-place: the ranges of these devices.
        """
        for index in chosen.tolist():
            device = self._rows[index]
            for distort in self._distortions.get(device.key, ()):
                distort(
                    device.bundles,
                    ranges[self._bounds[index] : self._bounds[index + 1]],
                )

    def _measure_on_demand(self, engine: Engine, chosen: I8) -> None:
        """Measure with devices that a caller reads outside of a step.

        The queues of delayed readings do not change.
        """
        self._cast(engine, chosen)
        if self._late:
            # Nothing is queued: otherwise results would depend on whether a caller
            # reads.
            self._hold_back(engine, chosen, np.zeros(len(chosen), np.bool_))

    # -- Arrays

    def _built(self, engine: Engine) -> tuple[Fans, NDArray[np.int64]]:
        """Return the arrays of all devices, and the numbers of the devices with subscribers.

        The arrays are rebuilt if a device or a row has changed.
        """
        # Build the arrays once for any number of changes between two steps.
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
        # Only now are the kinds of all devices known, so that unused ones can be found.
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
        self._lidars = LidarCaster.of(
            table.kind, [kind for _, kind in self._kinds.values()]
        )

        return fans

    def _make(self, device: RangeDevice) -> None:
        """Find or compute the set of beams of a device, and store the set's number in the table."""
        beams = beam_set(device.bundles)
        # `id` is a cheap key. The mapping also holds the set, so that no other object gets
        # the same `id`.
        number, _ = self._kinds.setdefault(id(beams), (len(self._kinds), beams))
        # A new set of beams changes the joined arrays; a known one does not.
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

    `late` includes the kernels of late readings and of lidars, which few runs need.

    Parameters
    ----------
    late : bool
        Whether to include the kernels of late readings and of lidars.
    """
    table = Ranges()
    fans = fans_from(table, np.zeros(1, np.int64), shape_arrays([]))
    # An empty choice compiles the kernel without computing anything.
    nobody = Pack(Chosen(np.zeros(0, np.int64)))
    # A `Pack` (arrays packed for kernels) takes the place of the tuple that the type
    # declares.
    sensors = Pack(Sensors(Pack(fans), workspace(fans)))  # type: ignore[arg-type]
    world, output = empty_world(), Pack(Output(np.zeros(0), np.zeros(0, np.int16)))
    cast(world, sensors, nobody, np.uint64(0), 0, output)
    if late:
        warm_up_delays(table, world, sensors, output)
        warm_up_lidars(sensors, output)


def _frozen(array: NDArray[T]) -> NDArray[T]:
    """Return a read-only view of an array."""
    # Writing to a reading would change it for the next reader.
    view = array.view()
    view.flags.writeable = False
    return view
