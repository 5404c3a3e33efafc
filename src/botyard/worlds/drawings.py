"""Random places for the robots of many worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from botyard.engine.batchlayout import FAILED, SAMPLES
from botyard.engine.blocks import Blocks
from botyard.engine.episode_starts import Spaces, draw_places
from botyard.engine.layout import F8, I8, U8
from botyard.native.kinds import Pack
from botyard.native.rows import RowTable
from botyard.sim.freespace import MAX_SPACES
from botyard.sim.lru import Recent

SPACES_ARGUMENT: Final = 2
"""Index of the argument `spaces` of `draw_places`."""


class Addresses:
    """Addresses of data of maps in memory, by number of the map."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        """Row of each map in the table of addresses, by number of the map."""
        self._addresses: U8 = np.zeros((0, 1), np.uint64)

    def missing(self, numbers: I8) -> list[int]:
        """Return the numbers that have no address, each once.

        Parameters
        ----------
        numbers : (k,) int64
            Numbers of maps.
        """
        return sorted(set(numbers.tolist()).difference(self._rows))

    def of(self, numbers: I8) -> U8:
        """Return the addresses of known maps, (k, …).

        Parameters
        ----------
        numbers : (k,) int64
            Numbers of maps.

        Raises
        ------
        KeyError
            A map has no address.
        """
        rows = self._rows
        return self._addresses[[rows[number] for number in numbers.tolist()]]

    def add(self, number: int, addresses: Sequence[int]) -> None:
        """Add a map.

        Parameters
        ----------
        number : int
            Number of the map.
        addresses : sequence of int
            Addresses of its data, the same number for each map. The owner keeps the data alive.
        """
        row = np.array([addresses], np.uint64)
        # The first row decides how many addresses a map has.
        self._addresses = np.concatenate([self._addresses, row]) if self._rows else row
        self._rows[number] = len(self._rows)

    def drop(self, number: int) -> None:
        """Remove a map if it is known."""
        gone = self._rows.pop(number, None)
        if gone is not None:
            self._addresses = np.delete(self._addresses, gone, axis=0)
            # Rows after the removed one move up by one.
            self._rows = {one: row - (row > gone) for one, row in self._rows.items()}


class _Drawing:
    """Arguments and calls of the kernel `draw_places` for one clearance."""

    def __init__(self) -> None:
        self.addresses = Addresses()
        self.packs: dict[int, Pack[Spaces]] = {}
        self.table: RowTable | None = None
        self.call: Callable[[I8], object]
        """Function that draws places for worlds with given numbers; set together with `table`."""


class Drawings:
    """Random places for the robots of a batch of worlds; the kernel `draw_places` draws them.

    Parameters
    ----------
    state : Blocks
        States of the worlds.
    derived : Blocks
        Derived values of the worlds, among them the ``places`` that the kernel writes.
    task : int64 array
        Task of the kernels of the batch; a call sets the element `FAILED`.
    boxes : int
        Number of boxes, which are the first bodies.
    grid_of, robot_set_of : (n,) int64
        Numbers of the map and of the robot set of each world; the batch changes them.
    robot_sets : int
        Number of robot sets.
    has_one_map : bool
        Whether map 0 is the only map.
    """

    def __init__(
        self,
        state: Blocks,
        derived: Blocks,
        task: I8,
        *,
        boxes: int,
        grid_of: I8,
        robot_set_of: I8,
        robot_sets: int,
        has_one_map: bool,
    ) -> None:
        self._state = state
        self._derived = derived
        self._places: F8 = derived.all("places")
        self._task = task
        # Access to an item of a memoryview takes a fifth of the time of the array's.
        self._asked = memoryview(cast(Any, task))
        self._boxes = boxes
        self._grid_of = grid_of
        self._robot_set_of = robot_set_of
        self._robot_sets = robot_sets
        self._has_one_map = has_one_map
        # Free space depends on the clearance, and is large: only a few are cached.
        self._drawings: Recent[tuple[float, bool], _Drawing] = Recent(MAX_SPACES)

    def __len__(self) -> int:
        return len(self._drawings.values())

    def drop(self, number: int) -> None:
        """Forget the free space of a map that no world uses."""
        count = self._robot_sets
        for drawing in self._drawings.values():
            # Each robot set of the map has free space of its own.
            for key in range(number * count, (number + 1) * count):
                if drawing.packs.pop(key, None) is not None:
                    drawing.addresses.drop(key)

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
            If `Batch.has_failed` is true afterwards, robots without room have NaN.
        """
        drawing = self._drawings.of((clearance, reachable), _Drawing)
        if drawing.table is None or not self._has_one_map or self._robot_sets > 1:
            # One key for each pair of a map and a robot set
            keys = self._grid_of[chosen] * self._robot_sets + self._robot_set_of[chosen]
            for key in drawing.addresses.missing(keys):
                drawing.packs[key] = space(*divmod(key, self._robot_sets))
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

        count = self._boxes
        if boxes is not None:
            self._places[chosen, :count] = boxes
        self._asked[FAILED] = 0
        drawing.call(chosen)
        # A failed call leaves places unwritten. The same draw over NaN shows which
        # places they are.
        if self._asked[FAILED]:
            # The count selects the random numbers, so that it must be as in the first
            # call.
            self._state.all("counts")[chosen, SAMPLES] -= 1
            self._places[chosen, count:] = np.nan
            drawing.call(chosen)

        places = self._places[chosen]
        return places[:, count:] if count else places

    def _table_of_places(
        self, packs: Mapping[int, Pack[Spaces]], first: int, clearance: float
    ) -> RowTable:
        """Return arguments of `draw_places` for all worlds.

        Parameters
        ----------
        packs : mapping of int to Pack of Spaces
            Free space by key of a map and a robot set.
        first : int
            Key of a known space, which unknown spaces get in their place: every row needs an
            address.
        clearance : float
            Least distance of each robot from other things, m.
        """
        state, places, other = self._state.of, self._derived.of, packs[first]
        table = RowTable(
            draw_places,
            len(self._grid_of),
            lambda i: (
                state(i, "counts"),
                state(i, "seeds"),
                packs.get(
                    int(self._grid_of[i] * self._robot_sets + self._robot_set_of[i]),
                    other,
                ),
                clearance,
                places(i, "places"),
                self._task,
            ),
        )
        table.fill(0, len(self._grid_of))

        return table


__all__ = ["Addresses", "Drawings"]
