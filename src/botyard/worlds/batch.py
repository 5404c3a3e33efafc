"""Calls of the kernel that advances many worlds.

`botyard.worlds.worlds.Worlds` is built on it. Each world has a row in two blocks: its
state, and the values derived from the state (`botyard.worlds.memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.batchlayout import (
    BEGINS,
    FAILED,
    STEPS,
    Contact,
)
from botyard.engine.batchrays import cast_rays
from botyard.engine.layout import F8, I8
from botyard.model.obstacles import Visible
from botyard.native.kinds import Pack
from botyard.native.rows import RowsEntry, RowTable
from botyard.navigation.kernels.walls import near_walls
from botyard.worlds.memory import Memory

STEPS_AT_ONCE: Final = 100_000
"""Highest number of steps of all worlds together in one call of a kernel.

A call cannot be interrupted; this number bounds its duration to some tenths of a second.
"""
LEAST_PART: Final = 64
"""Least number of steps of each world in one call.

A call in parts copies all states, which takes too long for fewer steps.
"""


class Batch(Memory):
    """Many worlds with the same bodies, which kernels advance.

    See `Memory` for parameters and attributes.
    """

    def begin(self, chosen: I8 | None, *, is_next: bool = False) -> None:
        """Start episodes of worlds, and take the first readings.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        is_next : bool
            Whether these are the next episodes, in map 0. Then the kernel counts them;
            otherwise the caller has written their numbers.
        """
        self._advance(chosen, 0, 2 if is_next else 1)

    def step(self, count: int, chosen: I8 | None) -> None:
        """Advance worlds by steps, and take the readings of the last one.

        Long calls run in parts, between which they can be interrupted.

        Parameters
        ----------
        count : int
            Number of steps; 0 only takes readings.
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        """
        part = max(LEAST_PART, STEPS_AT_ONCE // len(self._faults))
        if count <= part:
            self._advance(chosen, count, 0)
        else:
            self._step_in_parts(count, chosen, part)

    def _step_in_parts(self, count: int, chosen: I8 | None, part: int) -> None:
        """Advance worlds in parts of a call; results are the same as of `step`.

        Parameters
        ----------
        count : int
            Number of steps.
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        part : int
            Highest number of steps in a call.
        """
        # A world that fails in a later part must return to the start of the call.
        before = self.state.bytes.copy()
        kind, other = self.state.all("contact_kind"), self.state.all("other")
        left = np.arange(len(self._faults)) if chosen is None else chosen
        has_failed = False
        for done in range(0, count, part):
            # Each call of the kernel clears the contacts of the call before.
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
                # Distances to walls were computed at poses that are undone. No map has the
                # number −1.
                self._derived.all("known")[failed] = -1

            # All worlds have failed, and an empty choice would cost a call for nothing.
            if not len(left):
                break

        # The kernel has overwritten the flag in each part.
        self._asked[FAILED] = int(has_failed)

    def _advance(self, chosen: I8 | None, count: int, begins: int) -> None:
        """Call the kernel for worlds, in parallel threads if there are several.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        count : int
            Number of steps. The last argument says whether episodes start: 0, 1 or 2,
            see `BEGINS`.
        """
        assert self._table is not None, "the worlds have no map yet"
        asked = self._asked
        asked[STEPS], asked[BEGINS], asked[FAILED] = count, begins, 0
        # Threads without a world of their own help with large worlds.
        if self._has_spare_threads and count and not begins:
            self._step_shared(chosen, count)
            return
        self._step_parts(chosen)

    def _step_parts(self, chosen: I8 | None) -> None:
        """Call the kernel for worlds, each of which one thread steps."""
        assert self._table is not None, "the worlds have no map yet"
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

    def _step_shared(self, chosen: I8 | None, count: int) -> None:
        """Advance worlds one after the other, large ones by all threads.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        count : int
            Number of steps.
        """
        numbers = np.arange(len(self._faults)) if chosen is None else chosen
        small = []
        for i in numbers.tolist():
            world = self.shared(i)
            if world is None:
                small.append(i)
            else:
                world.step(count)

        if small:
            self._step_parts(np.array(small))

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
        # `fill` assumes equal distances in memory, which grids of several maps do not have.
        table.words[:, table.column(0)] = self._column
        self._call(cast_rays, table, self._everyone)

    def near_walls(self, xy: F8, reach: float, walls: F8) -> None:
        """Write the walls that stop robots and are nearest to places.

        Parameters
        ----------
        xy : (n, k, 2) float64
            k places in each world, m.
        reach : float
            Greatest distance of a wall, m.
        walls : (n, k, w, 4) float64
            Output: ends of walls, m, nearest first; NaN for missing walls.
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
        # As in `cast`, write the words one by one: `fill` is not valid for grids of
        # several maps.
        table.words[:, table.column(0)] = self._column
        self._call(near_walls, table, self._everyone)

    def _call(
        self, entry: RowsEntry, table: RowTable, parts: Sequence[NDArray[np.int64]]
    ) -> None:
        """Call a kernel for each part of the worlds, several parts in parallel threads.

        Parameters
        ----------
        entry : RowsEntry
            Kernel.
        table : RowTable
            Arguments of all worlds.
        parts : sequence of (k,) int64
            Numbers of the worlds of each thread.
        """
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
        """Return a function that calls a kernel for all worlds.

        Parameters
        ----------
        entry : RowsEntry
            Kernel.
        arguments : callable
            Returns the arguments of a world. It gets the number of the world, and a
            function that returns arrays of its state by name, see `state`. Arrays of
            all worlds must have equal strides in memory, and must not move.

        Returns
        -------
        callable
            Calls the kernel for all worlds, in parallel threads if there are several.
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

    @property
    def has_failed(self) -> bool:
        """Whether the last call of `begin`, `step` or `Drawings.draw` failed for a world.

        See `faults`.
        """
        return self._asked[FAILED] != 0

    def faults(self, chosen: I8 | None) -> I8:
        """Return the `Fault` of worlds in the last call.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.

        Returns
        -------
        (k,) int64
            Fault of each; 0 for a world that the call has advanced.
        """
        return self._faults if chosen is None else self._faults[chosen]

    def close(self) -> None:
        """End the threads."""
        self._workers.close()


__all__ = ["Batch"]
