"""Memory of many worlds: rows of state and derived values, and shared grids.

Shapes, beams and grids are shared arrays. Threads get equal parts of the worlds. Each
thread has its own workspaces, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from botyard.engine.batch import advance_masses, advance_world
from botyard.engine.batchlayout import (
    BOXES,
    FETCHES,
    ONLY_MAP,
    ROBOT_SET,
    Masses,
    Own,
)
from botyard.engine.blocks import Blocks
from botyard.engine.build import build_bins
from botyard.engine.kernels.latency import Lateness
from botyard.engine.layout import I8, U1, U8, Bins, Grid, State
from botyard.engine.masslayout import (
    Impulses,
    MassState,
    Walls,
    walls,
)
from botyard.native.kinds import Pack
from botyard.native.rows import RowTable
from botyard.processes.parallel import Workers
from botyard.worlds.drawings import Addresses, Drawings
from botyard.worlds.sharedworld import SharedWorld
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
GRID_ARGUMENT, WALLS_ARGUMENT = 3, 7
"""Indices of the arguments `grid` of `advance_world`, and `walls` of `advance_masses`.
"""


class Memory:
    """Memory of many worlds with the same bodies.

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
        First world of each thread's part, and the world after the last one.
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

        # Access to an item of a memoryview takes a fifth of the time of the array's.
        self._asked = memoryview(cast(Any, self._task))
        self._asked[BOXES], self._asked[ONLY_MAP] = plan.boxes, int(plan.has_one_map)
        self._one: I8 = np.zeros(1, np.int64)
        """Array with one element, for the number of a world that is advanced alone."""
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
        # With fewer worlds than threads, several threads may share a large world.
        self._workers = Workers(threads, "worlds")
        self._has_spare_threads = threads > count
        self._shared: dict[int, tuple[tuple[int, int], SharedWorld | None]] = {}
        """Shared worlds by number, each with its robot set and the number of its map.

        None stands for a world that is too small, or has masses or delays.
        """
        self._everyone = [np.arange(first, end) for first, end in self.parts]
        self._bounds = np.array(bounds[1:-1], np.int64)
        self._thread_of = np.repeat(np.arange(len(self.parts)), np.diff(bounds))
        self._grids: dict[int, list[Pack[Grid]]] = {}
        self._walls: dict[int, Pack[Walls]] = {}
        self._addresses = Addresses()
        self._grid_of = np.zeros(count, np.int64)
        self._robot_set_of = np.zeros(count, np.int64)
        """Number of the robot set whose arrays each world has as arguments."""
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
        """Return the states of worlds to which robots were just added, one row for each
        robot set.
        """
        first = Blocks(len(self._kinds), self._fields)
        for number, kind in enumerate(self._kinds):
            for name, array in kind.state.items():
                # Robot sets may have fewer bodies than the largest; the rest of the row
                # stays 0.
                first.of(number, name)[tuple(slice(size) for size in array.shape)] = (
                    array
                )

        first.all("counts")[:, ROBOT_SET] = np.arange(len(self._kinds))
        # 0 is the number of a robot, so that "none" needs another value.
        first.all("other")[:] = -1
        # A reading that was never taken must not look like an obstacle at 0 m.
        first.all("ranges")[:] = np.nan
        return first

    def shared(self, i: int) -> SharedWorld | None:
        """Return a world whose steps all threads share.

        Parameters
        ----------
        i : int
            Number of the world.

        Returns
        -------
        SharedWorld or None
            None if one thread steps the world faster, or if it has masses or delays.
        """
        using = int(self._robot_set_of[i]), int(self._grid_of[i])
        known = self._shared.get(i)
        # Another robot set or map has other arrays.
        if known is None or known[0] != using:
            world = None
            if not self.has_masses and self._plan.late_steps is None:
                world = SharedWorld(self._workers, self.arguments(i))
                world = world if world.is_large else None
            known = self._shared[i] = using, world
        return known[1]

    def kept_state(self, kept: U1) -> Blocks:
        """Return a copy of a world's state as the only row of a block.

        Parameters
        ----------
        kept : (S,) uint8
            State of a world, such as a row of `state.bytes`.
        """
        row = Blocks(1, self._fields)
        row.bytes[0] = kept
        return row

    def arguments(self, i: int) -> tuple[Any, ...]:
        """Return a world's arguments of `advance_world` or `advance_masses`.

        Parameters
        ----------
        i : int
            Number of the world.

        Returns
        -------
        tuple
            Views of the world's rows, packs of shared arrays, and workspaces of its
            thread.
        """
        derived = self._derived
        thread, robot_set = (
            self._threads[int(self._thread_of[i])],
            int(self._robot_set_of[i]),
        )
        kind = self._kinds[robot_set]
        readings: NDArray[Any] = self.state.of(i, "ranges").reshape(-1)
        # The kernel is compiled for one type of each argument, so the unused output
        # keeps its own type.
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
            """Return an array of a world's state, cut to the length that its robot set needs."""
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
        """Return the values of bodies with mass in one row of states.

        Parameters
        ----------
        state : Blocks
            States of worlds of this batch.
        i : int
            Row of the state.

        Returns
        -------
        tuple of (MassState, Impulses)
            Views of the row.
        """
        return (
            MassState._make(state.of(i, f"mass.{name}") for name in MassState._fields),
            Impulses._make(state.of(i, f"mass.{name}") for name in Impulses._fields),
        )

    # -- Grids

    def missing(self, numbers: I8) -> list[int]:
        """Return the numbers of maps that have no grid.

        Parameters
        ----------
        numbers : (n,) int64
            Numbers of maps.
        """
        return self._addresses.missing(numbers)

    def add_grid(self, number: int, grid: Grid) -> None:
        """Add the grid of a map.

        The first one completes the arguments of all worlds; before it no kernel can
        run.

        Parameters
        ----------
        number : int
            Number of the map.
        grid : Grid
            Static world; its `near` is replaced by workspaces of the threads.
        """
        # `near` is a workspace of the grid: two threads must not write to the same one.
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
            # Rows of one thread are equally far apart in memory, rows of different
            # threads are not.
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
        """Remove grid and free space of a map that no world uses, if they exist.

        Parameters
        ----------
        number : int
            Number of the map. A world that still uses it would read freed memory.
        """
        # Another map may get the number.
        self._shared = {
            i: one for i, one in self._shared.items() if one[0][1] != number
        }
        self._grids.pop(number, None)
        self._walls.pop(number, None)
        self._asked[FETCHES] = int(len(self._grids) > MAX_CACHED_MAPS)
        self._addresses.drop(number)
        self.drawings.drop(number)

    def moved(self, numbers: I8) -> I8:
        """Return the worlds that are not in the map with the given number.

        Parameters
        ----------
        numbers : (n,) int64
            Number of the map of each world.

        Returns
        -------
        (k,) int64
            Numbers of worlds, ascending.
        """
        moved: I8 = np.flatnonzero(numbers != self._grid_of)
        return moved

    def is_in(self, numbers: I8) -> bool:
        """Return whether each world is in the map with the given number.

        Parameters
        ----------
        numbers : (n,) int64
            Number of the map of each world.
        """
        return self._table is not None and bool((numbers == self._grid_of).all())

    def use_grids(self, chosen: I8, numbers: I8) -> None:
        """Give worlds the grids of other maps.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        numbers : (k,) int64
            Number of the map of each; all have grids, see `add_grid`.
        """
        addresses = self._addresses.of(numbers)
        # Only the address of the grid changes, which is one word of the row.
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
        """Return whether each world has the arrays of the given robot set.

        Parameters
        ----------
        numbers : (n,) int64
            Number of the robot set of each world.
        """
        return bool((numbers == self._robot_set_of).all())

    def use_robot_sets(self, numbers: I8) -> None:
        """Give worlds the arrays of other robot sets.

        Values derived from their bodies are computed again.

        Parameters
        ----------
        numbers : (n,) int64
            Number of the robot set of each world.
        """
        table, chosen = self._table, np.flatnonzero(numbers != self._robot_set_of)
        assert table is not None, "the worlds have no map yet"
        if self._words is None:
            self._words = self._words_of_robot_sets(table)
        columns, words = self._words
        self._robot_set_of[chosen] = numbers[chosen]
        table.words[chosen[:, None], columns] = words[
            self._thread_of[chosen], numbers[chosen]
        ]

        # Values derived from the previous bodies are not valid any more.
        self._derived.all("placed")[chosen] = np.nan
        # NaN, 0 and −1 are the marks for "unknown" of the three kinds of derived
        # values.
        self._derived.all("bins.reach")[chosen] = 0.0
        self._derived.all("known")[chosen] = -1

    def _words_of_robot_sets(self, table: RowTable) -> tuple[I8, U8]:
        """Return those words of the kernel's arguments in which robot sets differ.

        The result is the columns of these words, (c,), and the words by thread and
        robot set, (t, l, c).
        """
        rows = []
        for first, _ in self.parts:
            # `arguments` reads the robot set of the world, so each set is entered
            # temporarily.
            before = self._robot_set_of[first]
            for number in range(len(self._kinds)):
                self._robot_set_of[first] = number
                rows.append(table.encoded(first))

            # Restored, because the row was changed only to encode the arguments of each set.
            self._robot_set_of[first] = before

        words = np.array(rows).reshape(len(self.parts), len(self._kinds), -1)
        # Few of a thousand words differ, and a switch of sets writes only these.
        columns = np.flatnonzero((words != words[:, :1]).any(axis=(0, 1)))
        return columns, np.ascontiguousarray(words[..., columns])

    def equip(self, chosen: I8) -> None:
        """Set each of these worlds to the initial state for its robot set.

        Counts and seeds stay unchanged.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        """
        counts, seeds = self.state.all("counts"), self.state.all("seeds")
        # Fancy indexing copies, so the values survive the next assignment.
        kept = counts[chosen], seeds[chosen]
        self.state.bytes[chosen] = self._first.bytes[kept[0][:, ROBOT_SET]]
        counts[chosen], seeds[chosen] = kept

    def as_added(self, number: int) -> tuple[Blocks, int]:
        """Return the initial state of a world with a robot set.

        Parameters
        ----------
        number : int
            Number of the robot set.

        Returns
        -------
        tuple of (Blocks, int)
            Block of states, and the row of the state in it.
        """
        return self._first, number

    def _grid(self, i: int) -> Pack[Grid]:
        return self._grids[int(self._grid_of[i])][int(self._thread_of[i])]


__all__ = ["Memory"]
