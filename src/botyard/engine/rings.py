"""Rings of values that wait until they are due, as columns of a table.

Each row of a `RingTable` has one ring; `botyard.engine.kernels.latency` describes rings,
and has their functions. All rings of a table are parts of the same arrays, because
kernels take arrays. A ring gets more room when it is full, so that a table without
values under way takes no memory for them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.engine.kernels.delayrings import COUNT, FIRST
from botyard.engine.kernels.latency import RING, ROOM, VALUES, WIDTH
from botyard.engine.layout import F8, I8
from botyard.engine.tables import Column, Table

MIN_ROOM: Final = 4
"""Number of slots of a ring that is no longer empty."""


class Waiting(NamedTuple):
    """Values of one ring, oldest first.

    Attributes
    ----------
    times : (k, 2) int64
        Step from which each value is available, and step of its origin; steps never
        decrease.
    values : (k, w) float64
        The values.
    marks : (k, w) integers
        Integers that belong to the values.
    """

    times: I8
    values: F8
    marks: NDArray[Any]

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return the values of several parts one after another.

        Parameters
        ----------
        parts : list of Waiting
            One part or more; the values of all parts have the same width.
        """
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class RingTable(Table):
    """Table whose rows have rings.

    Attributes
    ----------
    place : (n, 4) int64
        Place of each ring in the arrays below, see `latency.Delays`. A ring without room
        has the place 0, which is an empty ring.
    times : (S, 2) int64
        Headers and slots of all rings.
    values, marks : (V,) float64, (V,) integers
        Values of all slots. The width of a ring is the number of values in each of its
        slots.
    """

    columns: ClassVar = {"place": Column(np.int64, 4, saved=False)}
    marks_type: ClassVar[DTypeLike]
    """Type of the elements of `marks`."""
    max_room: ClassVar[int] = 2**40
    """Highest number of slots of a ring."""
    place: I8

    def __init__(self) -> None:
        super().__init__()
        # Row 0 is the header of all rings without room, and is always empty.
        self._allocate(1, 0)

    def _allocate(self, slots: int, values: int) -> None:
        self.times: I8 = np.zeros((slots, 2), np.int64)
        self.values: F8 = np.zeros(values)
        self.marks: NDArray[Any] = np.zeros(values, self.marks_type)

    @property
    def counts(self) -> I8:
        """Number of values in each ring, (n,)."""
        counts: I8 = self.times[self.place[:, RING], COUNT]
        return counts

    def ring(self, row: int) -> I8:
        """Return the ring of a row, as kernels take it.

        Parameters
        ----------
        row : int
            Number of the row.

        Returns
        -------
        (1 + k, 2) int64
            View of the header and of k slots; valid until a ring of the table gets more
            room.
        """
        at, room = self.place[row, RING], self.place[row, ROOM]
        return self.times[at : at + 1 + room]

    def contents(self, row: int) -> tuple[F8, NDArray[Any]]:
        """Return values and marks of the slots of a row's ring.

        Parameters
        ----------
        row : int
            Number of the row.

        Returns
        -------
        tuple of ((k, w) float64, (k, w) integers)
            Views by slot, not by age, see `used_slots`; valid until a ring gets more
            room.
        """
        _, room, at, width = self.place[row].tolist()
        part, shape = slice(at, at + room * width), (room, width)
        return self.values[part].reshape(shape), self.marks[part].reshape(shape)

    def waiting(self, row: int) -> Waiting:
        """Return a copy of the values in the ring of a row.

        Parameters
        ----------
        row : int
            Number of the row.

        Returns
        -------
        Waiting
            Values, oldest first.
        """
        ring = self.ring(row)
        values, marks = self.contents(row)
        slots = used_slots(ring)
        return Waiting(ring[1:][slots], values[slots], marks[slots])

    def refill(self, row: int, waiting: Waiting) -> None:
        """Replace the values in the ring of a row.

        Parameters
        ----------
        row : int
            Number of the row.
        waiting : Waiting
            New values, oldest first. The ring gets the room that they need.
        """
        count, width = waiting.values.shape
        # A restored ring may have other readings than the present device.
        if width != self.place[row, WIDTH] or count > self.place[row, ROOM]:
            self.release(row)
            if count:
                self.make_room(np.array([row]), width, count)

        if count:
            ring = self.ring(row)
            values, marks = self.contents(row)
            ring[0, FIRST], ring[0, COUNT] = 0, count
            ring[1 : 1 + count] = waiting.times
            values[:count], marks[:count] = waiting.values, waiting.marks
        else:
            self.empty(row)

    def empty(self, row: int) -> None:
        """Drop the values in the ring of a row."""
        self.times[self.place[row, RING]] = 0

    def empty_all(self) -> None:
        """Drop all values."""
        self.times[self.place[:, RING]] = 0

    def release(self, row: int) -> None:
        """Give up the ring of a row, and drop its values.

        Parameters
        ----------
        row : int
            Number of the row. Its memory is used again when another ring gets more
            room.
        """
        # The room in the arrays is used again at the next growth.
        self.place[row] = 0

    def make_room(self, rows: I8, width: I8 | int, least: int = MIN_ROOM) -> None:
        """Double the room of some rings.

        All rings move: views of them are no longer valid.

        Parameters
        ----------
        rows : (k,) int64
            Rows of the rings.
        width : (k,) int64 or int
            Number of values in a slot of each ring.
        least : int
            Least number of slots of each ring. `max_room` limits it in any case.
        """
        # Copy the rings before any of them moves.
        old = [(row, self.waiting(row)) for row in np.flatnonzero(self.counts).tolist()]
        place = self.place
        place[rows, WIDTH] = width
        place[rows, ROOM] = np.minimum(
            np.maximum(2 * place[rows, ROOM], max(least, MIN_ROOM)), self.max_room
        )

        # All rings move, so that the room of removed rows is used again.
        room = place[:, ROOM]
        slots = np.where(room > 0, 1 + room, 0)
        sizes = room * place[:, WIDTH]
        # The sum starts at 1, because row 0 belongs to rings without room.
        place[:, RING] = np.where(room > 0, 1 + np.cumsum(slots) - slots, 0)
        place[:, VALUES] = np.cumsum(sizes) - sizes
        self._allocate(1 + int(slots.sum()), int(sizes.sum()))
        for row, waiting in old:
            self.refill(row, waiting)


def used_slots(ring: I8) -> I8:
    """Return the slots of the values in a ring, oldest first.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots of a ring.

    Returns
    -------
    (n,) int64
        Numbers of the slots in use, counted from 0 after the header.
    """
    first, count = ring[0].tolist()
    # The divisor is at least 1, since a ring may have no slots.
    slots: I8 = (first + np.arange(count)) % max(len(ring) - 1, 1)
    return slots


__all__ = ["RingTable", "Waiting", "used_slots"]
