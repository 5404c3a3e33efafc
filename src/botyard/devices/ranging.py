"""Range sensors of all bodies in common arrays: beams, subscribers and readings.

A *device* is one laser or one sonar ring of one robot. Each step computes it only while
it has a subscriber. A read without a subscription computes it on demand, so that a
sensor without readers costs nothing. Readings are double-buffered: the readings of the
last step stay valid until the step after the next. This module knows arrays and
kernels, but neither robots nor protocols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.engine.kernels.beams import MIN_COMPONENT, SECTORS, Beams, Fans
from botyard.engine.kernels.latency import delay_steps, is_cycle, is_slower
from botyard.engine.kernels.packed import Chosen, Output, Sensors, cast
from botyard.engine.kernels.wallspans import WALL_SLOTS
from botyard.engine.layout import F8, I2, I8, U2, U8
from botyard.engine.rng import draws
from botyard.engine.simulation import Engine, empty_world
from botyard.engine.tables import Column, Row, Table
from botyard.model.beams import Bundle
from botyard.model.obstacles import Visible
from botyard.model.sensors import LaserSpec, SonarSpec
from botyard.native.kinds import Pack
from botyard.numerics import elementwise
from botyard.numerics.elementary import cos, hypot
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
MAX_SHARED_BEAMS = 2000
"""Number of beams up to which a device shares cached arrays with equal devices."""
MAX_UNUSED_BEAMS = 20_000
"""Number of unused beams above which the cache drops them."""
LATENCY_PART = 2
"""Part of the draws of a device's stream for the jitter of latencies.

See `botyard.engine.rng.draws`; missing readings have part 1.
"""
_DELAY = "delay"
"""Subscriber of devices with a delay."""
MIN_SORTED_DEVICES = 64
"""Number of devices per step from which they are computed in the order of grid cells.

Cache locality saves 6 % of the time with 1000 lasers.
"""


class Ranges(Table):
    """Range devices of all bodies.

    Attributes
    ----------
    stream : (n,) uint64
        Number of the device in the body's random streams.
    senses : (n,) uint16
        `Visible` classes that it detects.
    kind : (n,) int64
        Index of its set of beams among the sets in use.
    size : (n,) int64
        Number of its readings.
    readers : (n,) int64
        Number of its subscribers.
    """

    name = "range"
    columns: ClassVar = {
        "stream": Column(np.uint64, saved=False),
        "senses": Column(np.uint16, saved=False),
        "kind": Column(np.int64, saved=False),
        "size": Column(np.int64, saved=False),
        "readers": Column(np.int64, saved=False),
    }
    stream: U8
    senses: U2
    kind: I8
    size: I8
    readers: I8

    def __init__(self) -> None:
        super().__init__()
        self.gone: list[Hashable] = []
        """Keys of devices of removed bodies, until `RangeDevices.rebuild` drops them.
        """


class _Device(Row[Ranges]):
    """Range device: its key, its beams, and its subscribers."""

    def __init__(self, table: Ranges, body: int, key: Hashable) -> None:
        self.bundles: tuple[Bundle, ...] = ()
        self.is_made = False
        """Whether the arrays hold its beams.

        The arrays are made lazily, because a client may change the beams very often
        between two steps.
        """
        self.readers: set[Hashable] = set()
        super().__init__(table, body, key)

    def detach(self) -> None:
        """Note that the body was removed."""
        self.table.gone.append(self.key)
        super().detach()


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
    """Reading that is available from the step `due` on, measured in the step `tick`."""

    due: int
    tick: int
    ranges: F8
    returns: I2


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
        self._devices: dict[Hashable, _Device] = {}
        self._unmade: dict[_Device, None] = {}
        self._kinds: dict[int, tuple[int, _Beams]] = {}
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
        self._given: dict[Hashable, Delay] = {}
        """Delays as set by the caller."""
        self._delays: dict[Hashable, Delay] = {}
        """Delays that have an effect with the present step length."""
        self._late: dict[Hashable, list[Late]] = {}
        """Available and pending readings of each device with a delay, oldest first."""

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
            device = self._devices[key] = _Device(table, row, key)
        if sum(b.n_readings for b in bundles) != sum(
            b.n_readings for b in device.bundles
        ):
            # Pending readings belong to other rays.
            self._late.pop(key, None)

        # A tuple is hashable, as the cache of beams requires.
        device.bundles = tuple(bundles)
        n = device.number
        table.body[n], table.stream[n], table.senses[n] = row, stream, int(senses)
        self._unmade[device] = None
        # Offsets of readings change, which interfaces cache.
        self._engine.feed.tell(Subject.READINGS)

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
        self._given[key] = delay
        self._apply_delay(key)

    def _apply_delay(self, key: Hashable) -> None:
        """Apply the delay of a device if it has an effect."""
        assert self._engine is not None, "an engine has these devices"
        delay = self._given[key]
        # A rate above the rate of steps has no effect.
        matters = delay.matters(self._engine.clock.dt)
        if matters:
            self._delays[key] = delay
        else:
            self._delays.pop(key, None)
            self._late.pop(key, None)

        # An own subscription makes the device measure in every step.
        if matters != (_DELAY in self._devices[key].readers):
            self.subscribe(key, _DELAY, matters)

    def late(self) -> Mapping[Hashable, Sequence[Late]]:
        """Return available and pending readings of devices with a delay.

        The oldest reading comes first.
        """
        return self._late

    def resume(self, key: Hashable, late: Sequence[Late]) -> None:
        """Continue with the readings of `late` after time was set.

        Does nothing for a device without a delay.
        """
        if key in self._delays:
            self._late[key] = list(late)

    def forget(self) -> None:
        """Drop pending readings after time was set.

        The step length may also have changed, so that delays are considered again.
        """
        self._late.clear()
        for key in self._given:
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
            self._given.pop(key, None)
            self._delays.pop(key, None)
            self._late.pop(key, None)

        self.table.gone.clear()

    @property
    def _rows(self) -> list[_Device]:
        rows: list[_Device] = self.table.rows  # type: ignore[assignment]
        return rows

    @property
    def remembers(self) -> bool:
        """Whether readings depend on earlier steps.

        They do with a delay, and with error models that may have a memory.
        """
        return bool(self._delays or self._distortions)

    def begin(self, engine: Engine) -> None:
        """Measure with delayed devices that have never measured.

        The result must not depend on whether a caller has read them.
        """
        # Only devices configured since the last step lack readings.
        if len(self._late) < len(self._delays):
            self._built(engine)
            new = np.array(
                [
                    self._devices[key].number
                    for key in self._delays
                    if key not in self._late
                ],
                np.int64,
            )
            self._cast(engine, new)
            self._queue_readings(engine, new, is_kept=True)

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

        if not self._delays:
            self._cast(engine, active)
            return

        clock = engine.clock
        rests = np.array(
            [
                self._skips_step(self._rows[n].key, clock.tick, clock.dt)
                for n in active.tolist()
            ],
            np.bool_,
        )
        measuring = active[~rests] if rests.any() else active
        self._cast(engine, measuring)
        self._queue_readings(engine, measuring, is_kept=True)
        # Their previous readings count as the readings of this step.
        self._taken[active[rests]] = True
        self._queue_readings(engine, active[rests], is_kept=False)

    def _skips_step(self, key: Hashable, tick: int, dt: float) -> bool:
        """Return whether a device does not measure in a step because of its rate.

        It measures again if the world was changed while time stands still.
        """
        delay, queue = self._delays.get(key), self._late.get(key)
        if delay is None or not queue:
            return False
        return queue[-1].tick != tick and not is_cycle(tick, delay.rate, dt)

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
        late = self._late.get(key) if self._late else None
        return late[0].tick if late else engine.clock.tick

    # -- All readings of a step at once, for interfaces that serve many robots

    def latest(self) -> tuple[F8, I2]:
        """Return ranges (m) and returns of all devices after the last step, read-only.

        `span` returns the slice of a device.
        """
        return self._out[0].value if self._out else (np.zeros(0), np.zeros(0, np.int16))

    def take(self, engine: Engine, numbers: NDArray[np.int64]) -> None:
        """Measure with the devices of these numbers, (n,) int64, unless the step did."""
        self._built(engine)
        missing = numbers[~self._taken[numbers]]
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
        if self._delays:
            self._queue_readings(engine, chosen, is_kept=False)

    def _queue_readings(self, engine: Engine, chosen: I8, *, is_kept: bool) -> None:
        """Replace measured readings of delayed devices by the available ones.

        If there is no available reading yet, the present measurement stays. With
        `is_kept`, the present measurement is queued until it becomes available.
        """
        tick, output = engine.clock.tick, self._out[0].value
        for index in chosen.tolist():
            key = self._rows[index].key
            delay = self._delays.get(key)
            if delay is None:
                continue
            span = slice(int(self._bounds[index]), int(self._bounds[index + 1]))
            ranges, returns = output.ranges[span], output.bright[span]
            queue = self._late.get(key, [])
            if is_kept:
                self._late[key] = queue
                # A second measurement in the same step replaces the first, and keeps
                # its time.
                due = (
                    queue.pop().due
                    if queue and queue[-1].tick == tick
                    else self._due(engine, index, delay, queue)
                )
                queue.append(Late(due, tick, ranges.copy(), returns.copy()))

            there = 0
            while there + 1 < len(queue) and queue[there + 1].due <= tick:
                there += 1
            # The first reading is available before it is due: there is none before it.
            del queue[:there]
            if queue:
                ranges[:], returns[:] = queue[0].ranges, queue[0].returns

    def _due(
        self, engine: Engine, index: int, delay: Delay, queue: Sequence[Late]
    ) -> int:
        """Return the step from which a present measurement is available."""
        tick, draw = engine.clock.tick, 0.0
        if delay.jitter > 0.0:
            uid, stream = (
                int(engine.state.uid[self.table.body[index]]),
                int(self.table.stream[index]),
            )
            draw = float(draws(engine.seed_word, uid, stream, tick, 1, LATENCY_PART)[0])

        due: int = tick + delay_steps(
            delay.latency, delay.jitter, draw, engine.clock.dt
        )
        # Readings never overtake each other.
        return max(due, queue[-1].due) if queue else due

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
            self._shapes = _arrays([kind for _, kind in self._kinds.values()])
        table = self.table
        self._bounds = _bounds(table.size)
        self._spans = self._measured = None
        self._known = table.layout
        n_out = int(self._bounds[-1])
        self._out = [
            # Two buffers: readings stay valid until the step after the next.
            Pack(Output(np.zeros(n_out), np.zeros(n_out, np.int16)))
            for _ in range(2)
        ]
        self._taken = np.zeros(len(table), np.bool_)
        fans = _fans(table, self._bounds, self._shapes)
        packed = Pack(fans)
        self._workspaces = [
            Pack(Sensors(packed, workspace(fans)))  # type: ignore[arg-type]
            for _ in range(PARTS_PER_THREAD * self.threads)
        ]
        return fans

    def _make(self, device: _Device) -> None:
        """Compute the beams of a device.

        Only sets of ordinary size are cached, because clients choose their size.
        """
        bundles = device.bundles
        beams = (
            _known(bundles)
            if sum(b.count for b in bundles) <= MAX_SHARED_BEAMS
            else _beams(bundles)
        )
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


def _arrays(kinds: Sequence[_Beams]) -> dict[str, NDArray[Any]]:
    """Return the fields of `Fans` that describe sets of beams."""
    columns = _joined(np.float64, [k.columns for k in kinds], len(_COLUMNS))
    counts = _joined(np.int64, [k.counts for k in kinds])
    beams = _joined(np.float64, [k.beams for k in kinds], 4)
    return {
        "first": _bounds([len(k.counts) for k in kinds]),
        "offset": np.array([k.offset for k in kinds], np.float64),
        "mount": _joined(np.float64, [k.mount for k in kinds], 3),
        "beam_first": _bounds(counts),
        **{
            name: np.ascontiguousarray(columns[:, k]) for k, name in enumerate(_COLUMNS)
        },
        "bright_as": _joined(np.int16, [k.bright_as for k in kinds]),
        "readings": _bounds(_joined(np.int64, [k.readings for k in kinds])),
        "beam_x": np.ascontiguousarray(beams[:, 0]),
        "beam_y": np.ascontiguousarray(beams[:, 1]),
        "beam_cos": np.ascontiguousarray(beams[:, 2]),
        "beam_sin": np.ascontiguousarray(beams[:, 3]),
        "beam_r_max": np.repeat(columns[:, _COLUMNS.index("r_max")], counts),
        "beam_sector": _joined(np.int64, [k.sector for k in kinds]),
    }


def _fans(table: Ranges, bounds: I8, shapes: Mapping[str, NDArray[Any]]) -> Fans:
    """Return the arrays that kernels take.

    `bounds` holds the offsets of the devices' readings, (n + 1,).
    """
    return Fans(
        row=table.body,
        key=table.stream,
        mask=table.senses,
        kind=table.kind,
        out=bounds[:-1],
        **shapes,
    )


class Fan(NamedTuple):
    """Range device for `fans_of`.

    It has the row of its body, its random stream, the detected classes, the start of
    its readings, and its beams.
    """

    row: int
    stream: int
    senses: Visible
    out: int
    bundles: tuple[Bundle, ...]


def fans_of(devices: Sequence[Fan]) -> Fans:
    """Return the arrays that kernels take, with a separate kind for each device.

    Limits and errors of each device can then be written separately.
    """
    return Fans(
        row=np.array([d.row for d in devices], np.int64),
        key=np.array([d.stream for d in devices], np.uint64),
        mask=np.array([int(d.senses) for d in devices], np.uint16),
        kind=np.arange(len(devices)),
        out=np.array([d.out for d in devices], np.int64),
        **_arrays([_beams(d.bundles) for d in devices]),
    )


def workspace(*several: Fans) -> Beams:
    """Return a workspace for the device with the most beams."""
    bundles = max(int(np.diff(fans.first).max(initial=0)) for fans in several)
    beams = max(
        int(np.diff(fans.beam_first[fans.first]).max(initial=0)) for fans in several
    )
    return Beams(
        org_x=np.zeros(beams),
        org_y=np.zeros(beams),
        dir_x=np.zeros(beams),
        dir_y=np.zeros(beams),
        raw=np.zeros(beams),
        bright=np.zeros(beams, np.int16),
        cosine=np.zeros(beams),
        ahead=np.zeros(beams),
        slots=np.zeros(WALL_SLOTS, np.int64),
        reach=np.zeros((bundles, SECTORS)),
    )


_COLUMNS: Final = (
    "angle0",
    "step",
    "r_min",
    "r_max",
    "r_noise",
    "a_noise",
    "r_std",
    "r_share",
    "missing",
    "bright_range",
    "bright_cos",
)
"""Fields of `Fans` with one number per bundle."""


@dataclass(frozen=True, slots=True, eq=False)
class _Beams:
    """Part of the fields of `Fans` for one device, without offsets.

    Devices with the same beams share it.
    """

    counts: I8
    readings: I8
    offset: float
    mount: F8
    columns: F8
    bright_as: I2
    beams: F8
    sector: I8


def _beams(bundles: tuple[Bundle, ...]) -> _Beams:
    numbers = [
        (
            b.angle0,
            b.step,
            b.r_min,
            b.r_max,
            b.r_noise,
            b.a_noise,
            b.r_std,
            b.r_share,
            b.missing,
            b.reflector.max_range,
            # Beyond 90° the cosine would admit surfaces seen from behind.
            cos(min(b.reflector.max_incidence, math.pi / 2)),
        )
        for b in bundles
    ]
    beams = [
        np.column_stack(
            [
                np.full(b.count, b.mount.x),
                np.full(b.count, b.mount.y),
                *elementwise.cosine_sine(at),
            ]
        )
        for b in bundles
        for at in [b.mount.th + b.angle0 + b.step * np.arange(b.count)]
    ]
    joined = _joined(np.float64, beams, 4)
    return _Beams(
        counts=np.array([b.count for b in bundles], np.int64),
        readings=np.array([b.n_readings for b in bundles], np.int64),
        # Bounds the search for bodies around the carrier's origin.
        offset=max((hypot(b.mount.x, b.mount.y) for b in bundles), default=0.0),
        # `reshape` gives devices without bundles a valid shape.
        mount=np.array([b.mount for b in bundles], np.float64).reshape(-1, 3),
        columns=np.array(numbers, np.float64).reshape(-1, len(_COLUMNS)),
        bright_as=np.array([b.reflector.strength for b in bundles], np.int16),
        beams=joined,
        sector=_sectors(joined[:, 2], joined[:, 3]),
    )


_known = lru_cache(maxsize=256)(_beams)


def _sectors(x: F8, y: F8) -> I8:
    """Return `sector_of` of many directions at once."""
    ax, ay = np.abs(x), np.abs(y)
    # The same arithmetic as `sector_of`: both must agree on borders.
    part = ay / np.maximum(ax + ay, MIN_COMPONENT)
    part = np.where(x < 0.0, 2.0 - part, part)
    part = np.where(y < 0.0, 4.0 - part, part)
    sectors: I8 = np.minimum((part * (0.25 * SECTORS)).astype(np.int64), SECTORS - 1)
    return sectors


def _bounds(sizes: Sequence[int] | I8) -> I8:
    """Return offsets of consecutive parts of these sizes, (n + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(
    kind: type[Any], arrays: Sequence[NDArray[Any]], width: int = 0
) -> NDArray[Any]:
    """Concatenate arrays.

    `width` is their number of columns, needed if there are no arrays.
    """
    return np.concatenate([np.zeros((0, width) if width else 0, kind), *arrays])


def warm_up() -> None:
    """Compile the kernels of range sensors, or load them, without a world."""
    fans = _fans(Ranges(), np.zeros(1, np.int64), _arrays([]))
    # An empty choice compiles the kernel without computing anything.
    nobody = Pack(Chosen(np.zeros(0, np.int64)))
    # Packs stand in for the tuples that they hold.
    sensors = Pack(Sensors(Pack(fans), workspace(fans)))  # type: ignore[arg-type]
    cast(
        empty_world(),
        sensors,
        nobody,
        np.uint64(0),
        0,
        Pack(Output(np.zeros(0), np.zeros(0, np.int16))),
    )


def _frozen(array: NDArray[T]) -> NDArray[T]:
    # A read-only view: writing to a reading would change the next reader's.
    view = array.view()
    view.flags.writeable = False
    return view
