"""Range sensors of all bodies, taken together: the arrays behind lasers and sonar, and who reads them.

A *device* is one laser or one sonar ring of one robot; it is computed only while somebody subscribes to it, or at once when somebody
reads it in between (a sensor without a reader costs nothing). Readings are double-buffered: those of the last step stay readable until
the step after the next. Knows arrays and kernels, not robots' names or protocols.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.engine.build import build_bins, build_bodies, build_grid
from botyard.engine.kernels.raycast import LEAST_COMPONENT, SECTORS, Beams, Fans, cast_groups
from botyard.engine.layout import F8, I2, I8, allocate_state
from botyard.engine.simulation import Engine
from botyard.geometry import IDENTITY, Pose
from botyard.model.obstacles import Visible
from botyard.model.scene import Scene
from botyard.model.sensors import ReflectorRule

T = TypeVar("T", bound=np.generic)

PARALLEL_BEAMS = 9000
"""From this many beams a step several threads are worth their overhead (about 50 scans of 181; reference performance.md §3.6)."""
PARTS = 3
"""Each thread gets this many parts of the work, so that it matters less when one takes longer."""
SHARED_BEAMS = 2000
"""The arrays of devices with more beams than this are not kept for others that have the same."""
SORTED_DEVICES = 64
"""From this many devices a step they are read in the order of their places: 6 % less time with 1000 lasers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Beams from one origin.

    Attributes
    ----------
    mount : Pose
        Origin and direction in the body's frame, m and rad.
    angle0, step : float
        Bearing of the first beam and spacing, rad.
    count : int
        Number of beams.
    r_min, r_max : float
        Range limits, m.
    r_noise, a_noise : float
        Half-widths of the uniform errors of range, m, and of bearing, rad.
    shortest : bool
        Give one reading, the shortest of all beams, instead of one for each.
    reflector : ReflectorRule
        Treatment of bright returns.
    """

    mount: Pose = IDENTITY
    angle0: float = 0.0
    step: float = 0.0
    count: int = 1
    r_min: float = 0.0
    r_max: float = 8.0
    r_noise: float = 0.0
    a_noise: float = 0.0
    shortest: bool = False
    reflector: ReflectorRule = ReflectorRule()

    @property
    def n_readings(self) -> int:
        """Number of readings that it gives."""
        return 1 if self.shortest else self.count


@dataclass(slots=True)
class _Device:
    body: str
    stream: int
    senses: Visible
    bundles: tuple[Bundle, ...]
    beams: _Beams | None
    """Made when it is needed: a client may change its rays very often between two steps."""
    readers: set[Hashable]


@dataclass(frozen=True, slots=True)
class Readings:
    """What a device measured.

    Attributes
    ----------
    tick : int
        Steps that had been done.
    ranges : (n,) float64 array
        Ranges, m; the greatest range of the device where nothing was met. Read-only.
    returns : (n,) int16 array
        Laser return of what was met: 0 nothing, 1 ordinary, more: bright. Read-only.
    """

    tick: int
    ranges: NDArray[np.float64]
    returns: NDArray[np.int16]


class RangeDevices:
    """All range devices of a simulation; the `SensePhase` that the engine calls in every step.

    Parameters
    ----------
    threads : int
        Largest number of threads; 1 keeps everything in the caller's thread.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._devices: dict[Hashable, _Device] = {}
        self._index: dict[Hashable, int] = {}
        self._fans: Fans | None = None
        self._workspaces: list[Beams] = []
        self._out: list[tuple[F8, I2]] = []
        self._spans: list[tuple[int, int]] = []
        self._taken = np.zeros(0, np.bool_)
        self._active: I8 | None = None
        self._parallel = False
        self._pool: ThreadPoolExecutor | None = None
        self._layout = 0

    # -- who measures what

    def configure(self, key: Hashable, body: str, stream: int, senses: Visible, bundles: Sequence[Bundle]) -> None:
        """Add a device, or change one; its readers stay.

        Parameters
        ----------
        key : hashable
            Identity of the device.
        body : str
            Body that carries it.
        stream : int
            Number of the device in the body's random streams.
        senses : Visible
            Class of things that it sees.
        bundles : sequence of Bundle
            Its beams.
        """
        readers = self._devices[key].readers if key in self._devices else set()
        bundles = tuple(bundles)
        self._devices[key] = _Device(body, stream, senses, bundles, None, readers)
        self._fans = None

    def remove(self, key: Hashable) -> None:
        """Forget a device."""
        self._devices.pop(key, None)
        self._fans = None

    def subscribe(self, key: Hashable, reader: Hashable, on: bool = True) -> None:
        """Let `reader` begin or end to read a device in every step."""
        readers = self._devices[key].readers
        before = bool(readers)
        if on:
            readers.add(reader)
        else:
            readers.discard(reader)
        if bool(readers) != before:
            self._active = None  # found anew when it is asked for: a thousand clients may come at once

    def is_read(self, key: Hashable) -> bool:
        """Whether anybody subscribes to a device."""
        return bool(self._devices[key].readers)

    # -- the engine's side

    def rebuild(self, engine: Engine) -> None:
        """Rows have changed: devices of bodies that are gone are forgotten."""
        for key in [k for k, d in self._devices.items() if d.body not in engine.rows]:
            self.remove(key)
        self._fans = None

    def sense(self, engine: Engine) -> None:
        """Take the readings of all devices that somebody subscribes to."""
        self._out.reverse()  # those of the last step stay readable
        self._taken[:] = False
        fans, active = self._built(engine)
        if len(active) >= SORTED_DEVICES:  # neighbours look at the same cells, which are then still in the cache
            active = active[np.argsort(engine.bins.cell[fans.row[active]], kind="stable")]
        if len(active):
            self._cast(engine, active)

    def read(self, engine: Engine, key: Hashable) -> Readings:
        """Readings of a device in the present state; computed now if the step did not.

        Raises
        ------
        KeyError
            No such device.
        """
        self._built(engine)
        index = self._index[key]
        if not self._taken[index]:
            self._cast(engine, np.array([index], np.int64))
        first, last = self._spans[index]
        ranges, bright = self._out[0]
        return Readings(engine.clock.tick, _frozen(ranges[first:last]), _frozen(bright[first:last]))

    # -- all readings of a step at once, for those who serve many

    def latest(self) -> tuple[F8, I2]:
        """Ranges (m) and returns of all devices after the last step; `span` says where each one's are. Not to be written to."""
        return self._out[0] if self._out else (np.zeros(0), np.zeros(0, np.int16))

    def layout(self, engine: Engine) -> int:
        """How often the places of readings in `latest` have changed."""
        self._built(engine)
        return self._layout

    def placed(self, engine: Engine) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Keys of all devices, and where in `latest` their readings stand."""
        self._built(engine)
        return list(self._devices), self._spans

    def taken(self, engine: Engine) -> NDArray[np.bool_]:
        """Which devices were read in this step, in the order of `placed`."""
        self._built(engine)
        return self._taken

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """The beams of a device."""
        return self._devices[key].bundles

    @property
    def subscriptions(self) -> int:
        """How many devices are read in every step, counted once for each reader."""
        return sum(len(d.readers) for d in self._devices.values())

    def span(self, key: Hashable) -> tuple[int, int] | None:
        """Where the readings of a device stand in `latest`; None if they were not taken in this step."""
        if self._fans is None or key not in self._index:
            return None
        index = self._index[key]
        return self._spans[index] if self._taken[index] else None

    def _cast(self, engine: Engine, chosen: NDArray[np.int64]) -> None:
        """Take the readings of the devices with these indices."""
        fans, _ = self._built(engine)
        ranges, bright = self._out[0]

        def cast(part: NDArray[np.int64], beams: Beams) -> None:
            cast_groups(
                engine.grid, engine.bodies, engine.bins, engine.state, fans, beams, part, engine.seed_word, engine.clock.tick,
                ranges, bright,
            )  # fmt: skip

        if self._parallel and len(chosen) > 1:
            # the kernel lets go of the interpreter, and devices write to places of their own: threads need nothing of each other
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads, "rays")
            parts = np.array_split(chosen, min(len(self._workspaces), len(chosen)))
            for _ in self._pool.map(cast, parts, self._workspaces):
                pass
        else:
            cast(chosen, self._workspaces[0])
        self._taken[chosen] = True

    # -- arrays

    def _activate(self) -> I8:
        active = [i for i, d in enumerate(self._devices.values()) if d.readers]
        self._parallel = (
            self.threads > 1
            and sum(b.count for d in self._devices.values() if d.readers for b in d.bundles) >= PARALLEL_BEAMS
        )
        return np.array(active, np.int64)

    def _built(self, engine: Engine) -> tuple[Fans, NDArray[np.int64]]:
        """The arrays of all devices, built anew if a device or a row has changed, and the indices of those that are read."""
        if self._fans is None:
            self._fans, self._active = self._build(engine), None
        if self._active is None:
            self._active = self._activate()
        return self._fans, self._active

    def _build(self, engine: Engine) -> Fans:
        self._index = {key: i for i, key in enumerate(self._devices)}
        self._layout += 1
        fans = self._arrays(list(self._devices.values()), engine.rows)
        self._workspaces = [workspace(fans) for _ in range(PARTS * self.threads)]
        return fans

    def _arrays(self, devices: list[_Device], rows: Mapping[str, int]) -> Fans:
        places: dict[int, int] = {}
        made = [d.beams or _made(d) for d in devices]
        kind = np.array([places.setdefault(id(b), len(places)) for b in made], np.int64)
        kinds = list({id(b): b for b in made}.values())
        columns = _joined(np.float64, [k.columns for k in kinds], len(_COLUMNS))
        counts = _joined(np.int64, [k.counts for k in kinds])
        beams = _joined(np.float64, [k.beams for k in kinds], 4)
        places_of_readings = _bounds(np.array([k.readings.sum() for k in kinds], np.int64)[kind])
        fans = Fans(
            row=np.array([rows[d.body] for d in devices], np.int64),
            key=np.array([d.stream for d in devices], np.uint64),
            mask=np.array([int(d.senses) for d in devices], np.uint16),
            kind=kind,
            out=places_of_readings[:-1],
            first=_bounds([len(k.counts) for k in kinds]),
            offset=np.array([k.offset for k in kinds], np.float64),
            mount=_joined(np.float64, [k.mount for k in kinds], 3),
            beam_first=_bounds(counts),
            **{name: np.ascontiguousarray(columns[:, k]) for k, name in enumerate(_COLUMNS)},
            bright_as=_joined(np.int16, [k.bright_as for k in kinds]),
            readings=_bounds(_joined(np.int64, [k.readings for k in kinds])),
            beam_x=np.ascontiguousarray(beams[:, 0]),
            beam_y=np.ascontiguousarray(beams[:, 1]),
            beam_cos=np.ascontiguousarray(beams[:, 2]),
            beam_sin=np.ascontiguousarray(beams[:, 3]),
            beam_r_max=np.repeat(columns[:, _COLUMNS.index("r_max")], counts),
            beam_sector=_joined(np.int64, [k.sector for k in kinds]),
        )
        n_out = int(places_of_readings[-1])
        self._out = [(np.zeros(n_out), np.zeros(n_out, np.int16)) for _ in range(2)]
        self._spans = list(pairwise(places_of_readings.tolist()))
        self._taken = np.zeros(len(devices), np.bool_)
        return fans


def workspace(fans: Fans) -> Beams:
    """Room for the beams of the device that has most of them."""
    bundles = int(np.diff(fans.first).max(initial=0))
    beams = int(np.diff(fans.beam_first[fans.first]).max(initial=0))
    return Beams(
        org_x=np.zeros(beams), org_y=np.zeros(beams), dir_x=np.zeros(beams), dir_y=np.zeros(beams), raw=np.zeros(beams),
        bright=np.zeros(beams, np.int16), cosine=np.zeros(beams), reach=np.zeros((bundles, SECTORS)),
    )  # fmt: skip


_COLUMNS: Final = ("angle0", "step", "r_min", "r_max", "r_noise", "a_noise", "bright_range", "bright_cos")
"""Fields of `Fans` with a number for each bundle."""


@dataclass(frozen=True, slots=True, eq=False)
class _Beams:
    """What a device puts into the fields of `Fans`, but for where it stands there; devices with the same beams share it."""

    counts: I8
    readings: I8
    offset: float
    mount: F8
    columns: F8
    bright_as: I2
    beams: F8
    sector: I8


def _made(device: _Device) -> _Beams:
    """The beams of a device, which keeps them. Only those of ordinary size are kept for others, too: clients choose them."""
    bundles = device.bundles
    device.beams = _known(bundles) if sum(b.count for b in bundles) <= SHARED_BEAMS else _beams(bundles)
    return device.beams


def _beams(bundles: tuple[Bundle, ...]) -> _Beams:
    numbers = [
        (
            b.angle0, b.step, b.r_min, b.r_max, b.r_noise, b.a_noise, b.reflector.max_range,
            math.cos(min(b.reflector.max_incidence, math.pi / 2)),
        )
        for b in bundles
    ]  # fmt: skip
    beams = [
        np.column_stack([np.full(b.count, b.mount.x), np.full(b.count, b.mount.y), np.cos(at), np.sin(at)])
        for b in bundles
        for at in [b.mount.th + b.angle0 + b.step * np.arange(b.count)]
    ]
    joined = _joined(np.float64, beams, 4)
    return _Beams(
        counts=np.array([b.count for b in bundles], np.int64),
        readings=np.array([b.n_readings for b in bundles], np.int64),
        offset=max((math.hypot(b.mount.x, b.mount.y) for b in bundles), default=0.0),
        mount=np.array([b.mount for b in bundles], np.float64).reshape(-1, 3),
        columns=np.array(numbers, np.float64).reshape(-1, len(_COLUMNS)),
        bright_as=np.array([b.reflector.strength for b in bundles], np.int16),
        beams=joined,
        sector=_sectors(joined[:, 2], joined[:, 3]),
    )


_known = lru_cache(maxsize=256)(_beams)


def _sectors(x: F8, y: F8) -> I8:
    """`sector_of` of many directions at once."""
    ax, ay = np.abs(x), np.abs(y)
    part = ay / np.maximum(ax + ay, LEAST_COMPONENT)
    part = np.where(x < 0.0, 2.0 - part, part)
    part = np.where(y < 0.0, 4.0 - part, part)
    sectors: I8 = np.minimum((part * (0.25 * SECTORS)).astype(np.int64), SECTORS - 1)
    return sectors


def _bounds(sizes: Sequence[int] | I8) -> I8:
    """Where parts of these sizes begin and end, one behind the other."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(kind: type[Any], arrays: Sequence[NDArray[Any]], width: int = 0) -> NDArray[Any]:
    """Arrays one behind the other; `width`: columns of theirs, for there may be none."""
    return np.concatenate([np.zeros((0, width) if width else 0, kind), *arrays])


def warm_up() -> None:
    """Compile the kernels of range sensors, or load them from the cache, without a world."""
    state, _ = allocate_state(0)
    fans = RangeDevices()._arrays([], {})
    grid, bodies, bins = build_grid(Scene()), build_bodies(()), build_bins(0)
    nobody = np.zeros(0, np.int64)
    cast_groups(
        grid, bodies, bins, state, fans, workspace(fans), nobody, np.uint64(0), 0, np.zeros(0), np.zeros(0, np.int16)
    )


def _frozen(array: NDArray[T]) -> NDArray[T]:
    view = array.view()
    view.flags.writeable = False
    return view
