"""Memory of many worlds, and calls of the kernel that advances them.

`botyard.worlds.worlds.Worlds` is built on it. Each world has a row in two blocks: its
state, and the values derived from the state. Shapes, beams and grids are shared arrays.
Threads get equal parts of the worlds. Each thread has its own workspaces, so that
results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from botyard.engine.batch import advance_masses, advance_world
from botyard.engine.batchlayout import (
    BEGINS,
    BOXES,
    FAILED,
    FETCHES,
    ONLY_MAP,
    ROBOT_SET,
    STEPS,
    Contact,
    Masses,
    Own,
)
from botyard.engine.batchrays import cast_rays
from botyard.engine.blocks import Blocks
from botyard.engine.build import build_bins
from botyard.engine.kernels.latency import Lateness
from botyard.engine.layout import F8, I8, U1, U8, Bins, Grid, State
from botyard.engine.masslayout import (
    Impulses,
    MassState,
    Walls,
    walls,
)
from botyard.model.obstacles import Visible
from botyard.native.kernels import RowsEntry, RowTable
from botyard.native.kinds import Pack
from botyard.navigation.kernels.walls import near_walls
from botyard.processes.parallel import Workers
from botyard.worlds.drawings import Addresses, Drawings
from botyard.worlds.workspaces import (
    DERIVED_BODIES,
    ERRING_BODIES,
    SENSOR,
    Kind,
    Plan,
    Workspace,
    shape_of,
    state_fields,
)

MAX_CACHED_MAPS: Final = 8
"""Number of maps above which a step prefetches the grid of the next world.

More grids do not fit into the caches near the processor, see
`botyard.engine.kernels.prefetch`.
"""
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
        m = plan.bodies
        self.has_masses = has_masses = any(plan.robot_sets[0].has_masses)
        self._kinds = kinds = [
            Kind(plan, robot_set, has_masses=has_masses)
            for robot_set in plan.robot_sets
        ]
        # Worlds without mass use a kernel with fewer arguments, see `advance_masses`.
        self._entry = advance_masses if has_masses else advance_world
        self._fields = state_fields(plan, kinds, has_masses=has_masses)
        self.state: Blocks = Blocks(count, self._fields)
        self._bins = build_bins(m)
        self._derived = Blocks(
            count,
            [
                *((name, np.float64, shape_of(kinds, name)) for name in DERIVED_BODIES),
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
            Workspace(plan, kinds, self.state.bytes.shape[1]) for _ in self.parts
        ]
        self._workers = Workers(len(self.parts), "worlds")
        self._everyone = [np.arange(first, end) for first, end in self.parts]
        self._bounds = np.array(bounds[1:-1], np.int64)
        self._thread_of = np.repeat(np.arange(len(self.parts)), np.diff(bounds))
        self._grids: dict[int, list[Pack[Grid]]] = {}
        self._walls: dict[int, Pack[Walls]] = {}
        self._addresses = Addresses()
        self._grid_of = np.zeros(count, np.int64)
        self._robot_set_of = np.zeros(count, np.int64)
        """Robot set whose arrays are the arguments of each world."""
        self.drawings = Drawings(
            self.state,
            self._derived,
            self._task,
            boxes=plan.boxes,
            grid_of=self._grid_of,
            robot_set_of=self._robot_set_of,
            robot_sets=len(kinds),
            has_one_map=plan.has_one_map,
        )
        """Random places for the robots of the worlds."""
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
            int(self._robot_set_of[i]),
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
        self.drawings.drop(number)

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

    def has_robot_sets(self, numbers: I8) -> bool:
        """Return whether each world has the arrays of its number's robot set, (n,)."""
        return bool((numbers == self._robot_set_of).all())

    def use_robot_sets(self, numbers: I8) -> None:
        """Give worlds the arrays of the robot sets of their numbers, (n,)."""
        table, chosen = self._table, np.flatnonzero(numbers != self._robot_set_of)
        assert table is not None, "there is a map"
        if self._words is None:
            self._words = self._words_of_robot_sets(table)
        columns, words = self._words
        self._robot_set_of[chosen] = numbers[chosen]
        table.words[chosen[:, None], columns] = words[
            self._thread_of[chosen], numbers[chosen]
        ]
        # Values derived from the previous bodies are not valid any more.
        self._derived.all("placed")[chosen] = np.nan
        self._derived.all("bins.reach")[chosen] = 0.0
        self._derived.all("known")[chosen] = -1

    def _words_of_robot_sets(self, table: RowTable) -> tuple[I8, U8]:
        """Return the argument words in which robot sets differ.

        The result is the columns of these words, (c,), and the words by thread and
        robot set, (t, l, c).
        """
        rows = []
        for first, _ in self.parts:
            before = self._robot_set_of[first]
            for number in range(len(self._kinds)):
                self._robot_set_of[first] = number
                rows.append(table.encoded(first))

            # The table was only borrowed to encode the arguments of each set.
            self._robot_set_of[first] = before

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
            # Each thread has a range of worlds, so the split needs ascending numbers.
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
        """Call a kernel for each part of the worlds, several parts in parallel threads."""
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
        """Whether the last call of `begin`, `step` or `Drawings.draw` failed for a world.

        See `faults`.
        """
        return self._asked[FAILED] != 0

    def faults(self, chosen: I8 | None) -> I8:
        """Return the `Fault` of these worlds in the last call."""
        return self._faults if chosen is None else self._faults[chosen]

    def close(self) -> None:
        """End the threads."""
        self._workers.close()


__all__ = ["Batch"]
