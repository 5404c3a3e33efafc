"""Memory of many worlds, and calls of the kernel that advances them.

`botyard.worlds.worlds.Worlds` is built on it. Each world has a row in two blocks: its
state, and the values derived from the state. Shapes, beams and grids are shared arrays.
Threads get equal parts of the worlds. Each thread has its own workspaces, so that
results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.devices.fans import fans_of, workspace
from botyard.engine.batch import advance_masses, advance_world
from botyard.engine.batchlayout import (
    BEGINS,
    BOXES,
    FAILED,
    FETCHES,
    ONLY_MAP,
    ROBOT_SET,
    SAMPLES,
    STEPS,
    Contact,
    Masses,
    MassRoom,
    Own,
)
from botyard.engine.batchrays import cast_rays
from botyard.engine.blocks import Blocks
from botyard.engine.build import build_bins
from botyard.engine.dynamics import build_shapes
from botyard.engine.episode_starts import Spaces, draw_places
from botyard.engine.kernels.beams import Beams
from botyard.engine.kernels.latency import Lateness
from botyard.engine.layout import F8, I4, I8, U1, U8, Bins, Grid, State
from botyard.engine.masslayout import (
    MASS,
    Impulses,
    MassShapes,
    MassState,
    Walls,
    impulses,
    mass_state,
    walls,
)
from botyard.engine.masslayout import workspace as mass_workspace
from botyard.model.obstacles import Visible
from botyard.native.kernels import RowsEntry, RowTable
from botyard.native.kinds import Pack
from botyard.navigation.kernels.walls import near_walls
from botyard.processes.parallel import Workers
from botyard.sim.freespace import MAX_SPACES
from botyard.sim.lru import Recent
from botyard.worlds.robot_sets import RobotSet

MAX_CACHED_MAPS: Final = 8
"""Number of maps above which a step prefetches the grid of the next world.

More grids do not fit into the caches near the processor, see
`botyard.engine.kernels.prefetch`.
"""
SENSOR: Final = ("r_min", "r_max", "r_noise", "a_noise", "missing")
"""Columns of `Fans` that each world has for itself."""
ERRING_BODIES: Final = ("wheels",)
"""Arrays of `Bodies` that are a part of each world's state."""
DERIVED_BODIES: Final = ("world", "placed", "leeway")
"""Arrays of `Bodies` that each world has for itself."""
THREAD_BODIES: Final = ("scratch", "near", "lead")
"""Arrays of `Bodies` that each thread has for itself."""
STEPS_AT_ONCE: Final = 100_000
"""Highest number of steps of all worlds together in one call of a kernel.

A call cannot be interrupted; this bounds it to some tenths of a second.
"""
LEAST_PART: Final = 64
"""Least number of steps of each world in one call.

A call in parts copies all states, which must pay off.
"""
GRID_ARGUMENT, WALLS_ARGUMENT = 3, 7
"""Indices of the arguments `grid` of `advance_world`, and `walls` of `advance_masses`.
"""
CONTACTS, CONTACTS_PER_MASS = 64, 16
"""Contacts of bodies with mass that a world has room for, plus those for each body."""
PAIRS_PER_BODY: Final = 64
"""Pairs of near bodies that a thread has room for, per body."""
WALLS_PER_MASS: Final = 2048
"""Walls near bodies with mass that a thread has room for, per body with mass."""
SPACES_ARGUMENT: Final = 2
"""Index of the argument `spaces` of `draw_places`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Properties that all worlds of a batch share.

    Attributes
    ----------
    robot_sets : sequence of RobotSet
        Bodies that worlds may have.
    boxes : int
        Number of boxes, which are the first bodies; all others are robots.
    readings : int
        Number of readings of each robot; NaN fills missing ones.
    dtype : dtype
        Type of the readings.
    late_steps : int or None
        Highest latency with jitter of commands and readings, steps; None: there is no
        latency, and no rate below the rate of steps.
    has_one_map : bool
        Whether map 0 is the only map.
    """

    robot_sets: Sequence[RobotSet]
    boxes: int
    readings: int
    dtype: DTypeLike
    late_steps: int | None
    has_one_map: bool

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.robot_sets[0].state.pose)

    def lateness(self, robot_set: RobotSet) -> Lateness:
        """Return the initial commands and readings under way for a robot set."""
        m, d, r = (
            self.bodies,
            len(robot_set.fans),
            (self.bodies - self.boxes) * self.readings,
        )
        commands = [spec.commands for spec in robot_set.specs]
        # One slot for each step, and one for a value that waits for a cycle of its
        # robot or is available.
        room = 0 if self.late_steps is None else self.late_steps + 2
        return Lateness(
            command=np.zeros((m, 3)),
            channel=np.array(
                [
                    (one.latency, one.jitter, one.rate, *one.scale.as_tuple())
                    for one in commands
                ]
            ),
            sent_times=np.zeros((m, 1 + room, 2), np.int64),
            sent=np.zeros((m, room, 3)),
            delay=np.array(
                [(one.latency, one.jitter, one.rate) for one in robot_set.delays],
                np.float64,
            ).reshape(d, 3),
            late_times=np.zeros((d, 1 + room, 2), np.int64),
            late=np.zeros(room * r),
            late_bright=np.zeros(room * r, np.int16),
        )


class _Kind:
    """Data shared by worlds with the same robot set.

    `state` holds the contents of their states when robots are added, by name.
    """

    def __init__(self, plan: Plan, robot_set: RobotSet, *, has_masses: bool) -> None:
        self.bodies = robot_set.bodies
        self.fans = fans_of(robot_set.fans)
        self.devices = np.arange(len(robot_set.fans))
        self.shapes = Pack(build_shapes(robot_set.specs if has_masses else ()))
        self.state: dict[str, NDArray[Any]] = {
            **robot_set.state._asdict(),
            **{name: getattr(self.fans, name) for name in SENSOR},
            **{name: getattr(robot_set.bodies, name) for name in ERRING_BODIES},
            **plan.lateness(robot_set)._asdict(),
        }


class _Thread:
    """Workspaces of a thread. `size` is the size of a world's state, bytes."""

    def __init__(self, plan: Plan, kinds: Sequence[_Kind], size: int) -> None:
        self.bodies: dict[str, NDArray[Any]] = {
            name: np.zeros(
                _shape(kinds, name), np.int64 if name == "near" else np.float64
            )
            for name in THREAD_BODIES
        }
        self.beams: Pack[Beams] = Pack(workspace(*(kind.fans for kind in kinds)))
        self.beam_r_max: F8 = np.zeros(max(len(kind.fans.beam_r_max) for kind in kinds))
        count = (plan.bodies - plan.boxes) * plan.readings
        # Each robot set has its own array: places without a sensor stay NaN.
        self.raw = [np.full(count, np.nan) for _ in kinds]
        self.bright = np.zeros(count, np.int16)
        shapes = [kind.shapes.value for kind in kinds]
        n, masses, uid = (
            len(shapes[0].values),
            _number_of_masses(shapes[0]),
            plan.robot_sets[0].state.uid,
        )
        self.room = Pack(
            MassRoom(
                work=mass_workspace(
                    n,
                    slots=n,
                    corners=max(len(one.corners) for one in shapes),
                    # Never more than all pairs of bodies
                    pairs=min(PAIRS_PER_BODY * n, n * (n - 1) // 2),
                    walls=WALLS_PER_MASS * masses,
                    touches=_room_for_contacts(masses),
                ),
                before=np.zeros((n, 3)),
                before_vel=np.zeros((n, 3)),
                order=np.argsort(uid[:n], kind="stable"),
                # Only worlds with mass may have to return to their previous state.
                row=np.zeros(size if masses else 0, np.uint8),
            )
        )
        self._near: I4 = np.zeros(0, np.int32)

    def pack(self, grid: Grid) -> Pack[Grid]:
        """Return a grid with a workspace of this thread, which its grids share."""
        if len(self._near) < len(grid.seg):
            self._near = np.zeros(len(grid.seg), np.int32)
        return Pack(grid._replace(near=self._near))


def _shape(kinds: Sequence[_Kind], name: str) -> tuple[int, ...]:
    """Return the shape that holds an array of `Bodies` of every robot set."""
    return _greatest(getattr(kind.bodies, name) for kind in kinds)


def _greatest(arrays: Iterable[NDArray[Any]]) -> tuple[int, ...]:
    """Return the shape of an array that holds each of some arrays."""
    return tuple(
        max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)
    )


def _number_of_masses(shapes: MassShapes) -> int:
    return int((shapes.values[:, MASS] > 0.0).sum())


def _room_for_contacts(masses: int) -> int:
    """Return the number of contacts that a world with that many bodies with mass holds."""
    return CONTACTS + CONTACTS_PER_MASS * masses if masses else 0


class _Addresses:
    """Addresses by number of the map."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        """Row of each map."""
        self._addresses: U8 = np.zeros((0, 1), np.uint64)

    def missing(self, numbers: I8) -> list[int]:
        """Return the numbers that have no address, once each."""
        return sorted(set(numbers.tolist()).difference(self._rows))

    def of(self, numbers: I8) -> U8:
        """Return the addresses of known maps, (k, …)."""
        rows = self._rows
        return self._addresses[[rows[number] for number in numbers.tolist()]]

    def add(self, number: int, addresses: Sequence[int]) -> None:
        """Add a map."""
        row = np.array([addresses], np.uint64)
        self._addresses = np.concatenate([self._addresses, row]) if self._rows else row
        self._rows[number] = len(self._rows)

    def drop(self, number: int) -> None:
        """Remove a map if it is known."""
        gone = self._rows.pop(number, None)
        if gone is not None:
            self._addresses = np.delete(self._addresses, gone, axis=0)
            self._rows = {one: row - (row > gone) for one, row in self._rows.items()}


class _Drawing:
    """Calls of `draw_places` for one clearance."""

    def __init__(self) -> None:
        self.addresses = _Addresses()
        self.packs: dict[int, Pack[Spaces]] = {}
        self.table: RowTable | None = None
        self.call: Callable[[I8], object]
        """Function that draws places for worlds; set together with the table."""


class Batch:
    """Many worlds with the same bodies.

    Parameters
    ----------
    plan : Plan
        Properties that all worlds share.
    count : int
        Number of worlds.
    dt : float
        Simulated time of a step, s.
    threads : int
        Number of threads.

    Attributes
    ----------
    state : Blocks
        Values passed from step to step, and the readings: the arrays of `State` by name,
        ``counts``, ``seeds``, ``start``, ``contact``, ``other``, ``ranges`` (see `Own`),
        and `SENSOR`. If a body has mass, also the arrays of `MassState` and `Impulses` as
        ``mass.seen`` and so on.
    has_masses : bool
        Whether a body has mass.
    parts : list of (int, int)
        First world and end of each thread's part.
    """

    def __init__(self, plan: Plan, count: int, dt: float, threads: int) -> None:
        self._plan = plan
        m, r = plan.bodies, plan.readings
        self.has_masses = has_masses = any(plan.robot_sets[0].has_masses)
        self._kinds = kinds = [
            _Kind(plan, robot_set, has_masses=has_masses)
            for robot_set in plan.robot_sets
        ]
        # Worlds without mass use a kernel with fewer arguments, see `advance_masses`.
        self._entry = advance_masses if has_masses else advance_world
        shapes = kinds[0].shapes.value
        mass, table = (
            mass_state(len(shapes.values)),
            impulses(_room_for_contacts(_number_of_masses(shapes))),
        )
        self._fields: list[tuple[str, DTypeLike, tuple[int, ...]]] = [
            ("counts", np.int64, (5,)),
            ("seeds", np.uint64, (2,)),
            ("start", np.float64, (m, 3)),
            ("contact_kind", np.int8, (m,)),
            ("other", np.int64, (m,)),
            *(
                (f"mass.{name}", a.dtype, a.shape)
                for of in (mass, table)
                if has_masses
                for name, a in of._asdict().items()
            ),
            *(
                (name, a.dtype, _greatest(kind.state[name] for kind in kinds))
                for name, a in kinds[0].state.items()
            ),
            ("ranges", plan.dtype, (m - plan.boxes, r)),
        ]
        self.state: Blocks = Blocks(count, self._fields)
        self._bins = build_bins(m)
        self._derived = Blocks(
            count,
            [
                *((name, np.float64, _shape(kinds, name)) for name in DERIVED_BODIES),
                *(
                    (f"bins.{name}", a.dtype, a.shape)
                    for name, a in self._bins._asdict().items()
                ),
                ("known", np.int64, (1,)),
                ("fault", np.int64, (1,)),
                ("places", np.float64, (m, 3)),
            ],
        )
        self._step = np.array([dt])
        self._task: I8 = np.zeros(6, np.int64)
        # Items of a memoryview cost a fifth of items of the array.
        self._asked = memoryview(cast(Any, self._task))
        self._asked[BOXES], self._asked[ONLY_MAP] = plan.boxes, int(plan.has_one_map)
        self._one: I8 = np.zeros(1, np.int64)
        """Number of a world that is advanced alone."""
        self._first = self._as_added()
        self.state.bytes[:] = self._first.bytes[0]
        # NaN differs from every pose, so that the first step places all outlines.
        self._derived.all("placed")[:] = np.nan
        bounds = (
            # Parts differ by at most one world.
            np.linspace(0, count, min(threads, count) + 1).astype(np.int64).tolist()
        )
        self.parts: list[tuple[int, int]] = list(pairwise(bounds))
        self._threads = [
            _Thread(plan, kinds, self.state.bytes.shape[1]) for _ in self.parts
        ]
        self._workers = Workers(len(self.parts), "worlds")
        self._everyone = [np.arange(first, end) for first, end in self.parts]
        self._bounds = np.array(bounds[1:-1], np.int64)
        self._thread_of = np.repeat(np.arange(len(self.parts)), np.diff(bounds))
        self._grids: dict[int, list[Pack[Grid]]] = {}
        self._walls: dict[int, Pack[Walls]] = {}
        self._addresses = _Addresses()
        self._drawings: Recent[tuple[float, bool], _Drawing] = Recent(MAX_SPACES)
        self._places: F8 = self._derived.all("places")
        self._grid_of = np.zeros(count, np.int64)
        self._lineup_of = np.zeros(count, np.int64)
        """Robot set whose arrays are the arguments of each world."""
        self._faults = self._derived.all("fault")[:, 0]
        self._table: RowTable | None = None
        self._words: tuple[I8, U8] | None = None

    def _as_added(self) -> Blocks:
        """Return states of worlds with newly added robots, one row for each robot set."""
        first = Blocks(len(self._kinds), self._fields)
        for number, kind in enumerate(self._kinds):
            for name, array in kind.state.items():
                first.of(number, name)[tuple(slice(size) for size in array.shape)] = (
                    array
                )

        first.all("counts")[:, ROBOT_SET] = np.arange(len(self._kinds))
        first.all("other")[:] = -1
        first.all("ranges")[:] = np.nan
        return first

    def kept_state(self, kept: U1) -> Blocks:
        """Return a copy of a world's state, (S,) uint8, as the only row of a block."""
        row = Blocks(1, self._fields)
        row.bytes[0] = kept
        return row

    def arguments(self, i: int) -> tuple[Any, ...]:
        """Return a world's arguments of `advance_world` or `advance_masses`."""
        derived = self._derived
        thread, robot_set = (
            self._threads[int(self._thread_of[i])],
            int(self._lineup_of[i]),
        )
        kind = self._kinds[robot_set]
        readings: NDArray[Any] = self.state.of(i, "ranges").reshape(-1)
        none: NDArray[Any] = np.zeros(
            0, np.float32 if readings.dtype == np.float64 else np.float64
        )
        single: NDArray[Any]
        double: NDArray[Any]
        # The kernel writes both outputs; the unused one is empty.
        single, double = (
            (readings, none) if readings.dtype == np.float32 else (none, readings)
        )

        def own(name: str) -> NDArray[Any]:
            """Return an array of the world's state, cut to the length of its robot set."""
            return self.state.of(i, name)[: len(kind.state[name])]

        of_masses = (
            (
                self._walls[int(self._grid_of[i])],
                kind.shapes,
                Masses(*self.masses(self.state, i), self.state.bytes[i]),
                thread.room,
            )
            if self.has_masses
            else ()
        )
        return (
            State._make(own(name) for name in State._fields),
            kind.bodies._replace(
                **{
                    name: array[: len(getattr(kind.bodies, name))]
                    for name, array in thread.bodies.items()
                },
                **{
                    name: derived.of(i, name)[: len(getattr(kind.bodies, name))]
                    for name in DERIVED_BODIES
                },
                **{name: own(name) for name in ERRING_BODIES},
            ),
            Bins._make(derived.of(i, f"bins.{name}") for name in Bins._fields),
            self._grid(i),
            kind.fans._replace(
                beam_r_max=thread.beam_r_max[: len(kind.fans.beam_r_max)],
                **{name: own(name) for name in SENSOR},
            ),
            thread.beams,
            Own(
                counts=self.state.of(i, "counts"),
                seeds=self.state.of(i, "seeds"),
                start=self.state.of(i, "start"),
                contact=self.state.of(i, "contact_kind"),
                other=self.state.of(i, "other"),
                raw=thread.raw[robot_set],
                bright=thread.bright,
                single=single,
                double=double,
                devices=kind.devices,
                known=derived.of(i, "known"),
                fault=derived.of(i, "fault"),
                task=self._task,
                step=self._step,
            ),
            *of_masses,
            Lateness._make(own(name) for name in Lateness._fields),
        )

    @staticmethod
    def masses(state: Blocks, i: int) -> tuple[MassState, Impulses]:
        """Return the values of bodies with mass in a row of states that has some."""
        return (
            MassState._make(state.of(i, f"mass.{name}") for name in MassState._fields),
            Impulses._make(state.of(i, f"mass.{name}") for name in Impulses._fields),
        )

    # -- Grids

    def missing(self, numbers: I8) -> list[int]:
        """Return the numbers of maps that have no grid."""
        return self._addresses.missing(numbers)

    def add_grid(self, number: int, grid: Grid) -> None:
        """Add the grid of a map by number of the map."""
        self._grids[number] = packs = [thread.pack(grid) for thread in self._threads]
        addresses = [pack.address for pack in packs]
        if self.has_masses:
            self._walls[number] = Pack(walls(grid))
            addresses.append(self._walls[number].address)

        self._addresses.add(number, addresses)
        self._asked[FETCHES] = int(len(self._grids) > MAX_CACHED_MAPS)
        # The first grid: only now do the arguments of all worlds exist.
        if self._table is None:
            self._grid_of[:] = number
            self._table = RowTable(self._entry, len(self._grid_of), self.arguments)
            for first, end in self.parts:
                self._table.fill(first, end)
            self._advance_all = self._entry.prepared(self._table, self._everyone[0])
            self._advance_some = self._entry.caller(self._table)
            self._advance_one = self._entry.prepared(self._table, self._one)
            self._column = self._table.words[:, self._table.column(GRID_ARGUMENT)]
            if self.has_masses:
                self._walls_column = self._table.words[
                    :, self._table.column(WALLS_ARGUMENT)
                ]

    def drop_grid(self, number: int) -> None:
        """Remove grid and free space of a map that no world uses, if they exist."""
        self._grids.pop(number, None)
        self._walls.pop(number, None)
        self._asked[FETCHES] = int(len(self._grids) > MAX_CACHED_MAPS)
        self._addresses.drop(number)
        count = len(self._kinds)
        for drawing in self._drawings.values():
            for key in range(number * count, (number + 1) * count):
                if drawing.packs.pop(key, None) is not None:
                    drawing.addresses.drop(key)

    def moved(self, numbers: I8) -> I8:
        """Return the worlds, (n,), that are not in the map of their number."""
        moved: I8 = np.flatnonzero(numbers != self._grid_of)
        return moved

    def is_in(self, numbers: I8) -> bool:
        """Return whether each world is in the map of its number, (n,)."""
        return self._table is not None and bool((numbers == self._grid_of).all())

    def use_grids(self, chosen: I8, numbers: I8) -> None:
        """Move these worlds to the maps of their numbers, (k,)."""
        addresses = self._addresses.of(numbers)
        self._column[chosen] = (
            addresses[:, 0]
            if len(self.parts) == 1
            else addresses[np.arange(len(chosen)), self._thread_of[chosen]]
        )
        if self.has_masses:
            self._walls_column[chosen] = addresses[:, -1]
        self._grid_of[chosen] = numbers

    # -- Robot sets

    def has_lineups(self, numbers: I8) -> bool:
        """Return whether each world has the arrays of its number's robot set, (n,)."""
        return bool((numbers == self._lineup_of).all())

    def use_lineups(self, numbers: I8) -> None:
        """Give worlds the arrays of the robot sets of their numbers, (n,)."""
        table, chosen = self._table, np.flatnonzero(numbers != self._lineup_of)
        assert table is not None, "there is a map"
        if self._words is None:
            self._words = self._words_of_lineups(table)
        columns, words = self._words
        self._lineup_of[chosen] = numbers[chosen]
        table.words[chosen[:, None], columns] = words[
            self._thread_of[chosen], numbers[chosen]
        ]
        # Values derived from the previous bodies are not valid any more.
        self._derived.all("placed")[chosen] = np.nan
        self._derived.all("bins.reach")[chosen] = 0.0
        self._derived.all("known")[chosen] = -1

    def _words_of_lineups(self, table: RowTable) -> tuple[I8, U8]:
        """Return the argument words in which robot sets differ.

        The result is the columns of these words, (c,), and the words by thread and
        robot set, (t, l, c).
        """
        rows = []
        for first, _ in self.parts:
            before = self._lineup_of[first]
            for number in range(len(self._kinds)):
                self._lineup_of[first] = number
                rows.append(table.encoded(first))

            # The table was only borrowed to encode the arguments of each set.
            self._lineup_of[first] = before

        words = np.array(rows).reshape(len(self.parts), len(self._kinds), -1)
        columns = np.flatnonzero((words != words[:, :1]).any(axis=(0, 1)))
        return columns, np.ascontiguousarray(words[..., columns])

    def equip(self, chosen: I8) -> None:
        """Write the initial state of their robot sets into these worlds.

        Counts and seeds stay.
        """
        counts, seeds = self.state.all("counts"), self.state.all("seeds")
        kept = counts[chosen], seeds[chosen]
        self.state.bytes[chosen] = self._first.bytes[kept[0][:, ROBOT_SET]]
        counts[chosen], seeds[chosen] = kept

    def as_added(self, number: int) -> tuple[Blocks, int]:
        """Return the initial state of a world with a robot set.

        The result is a block, and the row of the state there.
        """
        return self._first, number

    # -- Places

    def draw(
        self,
        chosen: I8,
        boxes: F8 | None,
        clearance: float,
        reachable: bool,
        space: Callable[[int, int], Pack[Spaces]],
    ) -> F8:
        """Draw places for the robots of these worlds, (k, m, 3).

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        boxes : (k, b, 3) float64 or None
            Poses of the boxes, if there are any.
        clearance : float
            See `Worlds.sample_free`.
        reachable : bool
            See `Worlds.sample_free`.
        space : callable
            Returns the free space of a map for a robot set, by their numbers.

        Returns
        -------
        (k, m, 3) float64
            If `has_failed` is true afterwards, robots without room have NaN.
        """
        drawing = self._drawings.of((clearance, reachable), _Drawing)
        if drawing.table is None or not self._plan.has_one_map or len(self._kinds) > 1:
            # One key for each pair of a map and a robot set
            keys = self._grid_of[chosen] * len(self._kinds) + self._lineup_of[chosen]
            for key in drawing.addresses.missing(keys):
                drawing.packs[key] = space(*divmod(key, len(self._kinds)))
                drawing.addresses.add(key, [drawing.packs[key].address])

            if drawing.table is None:
                drawing.table = self._table_of_places(
                    drawing.packs, int(keys[0]), clearance
                )
                drawing.call = draw_places.caller(drawing.table)

            # Only the address of the free space differs from call to call.
            drawing.table.words[chosen, drawing.table.column(SPACES_ARGUMENT)] = (
                drawing.addresses.of(keys)[:, 0]
            )

        count = self._plan.boxes
        if boxes is not None:
            self._places[chosen, :count] = boxes
        self._asked[FAILED] = 0
        drawing.call(chosen)
        # A failed call leaves places unwritten. The same draw over NaN reveals which
        # ones.
        if self.has_failed:
            self.state.all("counts")[chosen, SAMPLES] -= 1
            self._places[chosen, count:] = np.nan
            drawing.call(chosen)

        places = self._places[chosen]
        return places[:, count:] if count else places

    def _table_of_places(
        self, packs: Mapping[int, Pack[Spaces]], first: int, clearance: float
    ) -> RowTable:
        """Return arguments of `draw_places`.

        All worlds start with the space of key `first`.
        """
        state, places, other = self.state.of, self._derived.of, packs[first]
        table = RowTable(
            draw_places,
            len(self._grid_of),
            lambda i: (
                state(i, "counts"),
                state(i, "seeds"),
                packs.get(
                    int(self._grid_of[i] * len(self._kinds) + self._lineup_of[i]), other
                ),
                clearance,
                places(i, "places"),
                self._task,
            ),
        )
        table.fill(0, len(self._grid_of))
        return table

    # -- Steps

    def begin(self, chosen: I8 | None, *, is_next: bool = False) -> None:
        """Start episodes of these worlds; None: of all worlds.

        `is_next` selects the next episode of each world, whose number is not written
        yet.
        """
        self._advance(chosen, 0, 2 if is_next else 1)

    def step(self, count: int, chosen: I8 | None) -> None:
        """Advance these worlds by steps; None: all worlds.

        Long calls run in parts, between which they can be interrupted.
        """
        part = max(LEAST_PART, STEPS_AT_ONCE // len(self._faults))
        if count <= part:
            self._advance(chosen, count, 0)
        else:
            self._step_in_parts(count, chosen, part)

    def _step_in_parts(self, count: int, chosen: I8 | None, part: int) -> None:
        """Step at most `part` steps in a call; results are the same as of `step`."""
        before = self.state.bytes.copy()
        kind, other = self.state.all("contact_kind"), self.state.all("other")
        left = np.arange(len(self._faults)) if chosen is None else chosen
        has_failed = False
        for done in range(0, count, part):
            kinds, others = kind[left], other[left]
            self._advance(left, min(part, count - done), 0)
            # A part without contact keeps the contact of the parts before.
            if done:
                nothing = kind[left] == Contact.NONE
                kind[left], other[left] = (
                    np.where(nothing, kinds, kind[left]),
                    np.where(nothing, others, other[left]),
                )

            if self.has_failed:
                has_failed, is_failed = True, self._faults[left] != 0
                failed, left = left[is_failed], left[~is_failed]
                # A failed world must stay as before the whole call, not as before its
                # last part.
                self.state.bytes[failed] = before[failed]
                # Distances to walls were computed at poses that are undone.
                self._derived.all("known")[failed] = -1

            if not len(left):
                break

        self._asked[FAILED] = int(has_failed)

    def _advance(self, chosen: I8 | None, count: int, begins: int) -> None:
        assert self._table is not None, "there is a map"
        asked = self._asked
        asked[STEPS], asked[BEGINS], asked[FAILED] = count, begins, 0
        # One world needs no other thread, and the prepared call takes half the time.
        if chosen is not None and len(chosen) == 1:
            self._one[0] = chosen.item()
            self._advance_one()
            return

        if len(self.parts) == 1:
            if chosen is None:
                self._advance_all()
            else:
                self._advance_some(chosen)

            return

        if chosen is None:
            parts: Sequence[NDArray[np.int64]] = self._everyone
        else:
            # Each thread has a range of worlds, so that the split needs ascending
            # numbers.
            ascending = np.sort(chosen)
            parts = np.split(ascending, np.searchsorted(ascending, self._bounds))

        self._call(self._entry, self._table, parts)

    def cast(
        self, xy: F8, bearings: F8, reach: float, ranges: F8, *, boxes: bool
    ) -> None:
        """Cast rays among the walls, and `boxes`, of each world.

        Parameters
        ----------
        xy : (n, k, 2) float64
            Places, m.
        bearings : (n, k) float64
            Directions, rad.
        reach : float
            Highest range, m.
        ranges : (n, k) float64
            Output, m.
        boxes : bool
            Whether boxes are visible.
        """
        bodies, rows = (
            Pack(self._kinds[0].bodies),
            np.arange(self._plan.boxes if boxes else 0),
        )
        table = RowTable(
            cast_rays,
            len(self._grid_of),
            lambda i: (
                self._grid(i),
                bodies,
                rows,
                self.state.of(i, "pose"),
                self.state.of(i, "mask"),
                xy[i],
                bearings[i],
                ranges[i],
                reach,
                int(Visible.LASER),
            ),
        )
        table.fill(0, len(self._grid_of))
        table.words[:, table.column(0)] = self._column
        self._call(cast_rays, table, self._everyone)

    def near_walls(self, xy: F8, reach: float, walls: F8) -> None:
        """Write the walls that stop robots and are nearest to places, (n, k, 2) m.

        They are written into `walls`, (n, k, w, 4); see the kernel.
        """
        away = np.empty(walls.shape[:3])
        table = RowTable(
            near_walls,
            len(self._grid_of),
            lambda i: (
                self._grid(i),
                xy[i],
                reach,
                int(Visible.OBSTACLE),
                walls[i],
                away[i],
            ),
        )
        table.fill(0, len(self._grid_of))
        table.words[:, table.column(0)] = self._column
        self._call(near_walls, table, self._everyone)

    def _call(
        self, entry: RowsEntry, table: RowTable, parts: Sequence[NDArray[np.int64]]
    ) -> None:
        """Call a kernel for the worlds of each thread."""
        # No thread is started for a single part.
        if len(parts) == 1:
            entry(table, parts[0])
        else:
            self._workers.run(entry, [(table, part) for part in parts])

    def rows(
        self,
        entry: RowsEntry,
        arguments: Callable[[int, Callable[[str], NDArray[Any]]], tuple[Any, ...]],
    ) -> Callable[[], object]:
        """Prepare calls of a kernel for all worlds.

        `arguments` returns the arguments of a world. It gets the number of the world,
        and a function that returns arrays of its state by name, see `state`. Arrays of
        all worlds must have equal strides in memory, and must not move.
        """
        state = self.state.of
        table = RowTable(
            entry,
            len(self._grid_of),
            lambda i: arguments(i, lambda name: state(i, name)),
        )
        table.fill(0, len(self._grid_of))
        if len(self.parts) == 1:
            return entry.prepared(table, self._everyone[0])
        return lambda: self._call(entry, table, self._everyone)

    def _grid(self, i: int) -> Pack[Grid]:
        return self._grids[int(self._grid_of[i])][int(self._thread_of[i])]

    @property
    def has_failed(self) -> bool:
        """Whether the last call of `begin`, `step` or `draw` failed for a world.

        See `faults`.
        """
        return self._asked[FAILED] != 0

    def faults(self, chosen: I8 | None) -> I8:
        """Return the `Fault` of these worlds in the last call."""
        return self._faults if chosen is None else self._faults[chosen]

    def close(self) -> None:
        """End the threads."""
        self._workers.close()


__all__ = ["SENSOR", "Batch", "Plan"]
