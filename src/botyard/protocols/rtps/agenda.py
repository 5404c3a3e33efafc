"""Schedule of the requests (ACKNACK and NACK_FRAG) that readers must send to writers."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

P = TypeVar("P")
_MIN_SORTED_OUT: Final = 16
"""Number of invalid entries that the heap may always have before it is rebuilt."""


class Agenda(Generic[P]):
    """Times at which requests to writers are due, the earliest first.

    The schedule is a heap with lazy deletion: a cancelled or changed entry is invalid,
    and is removed when it reaches the top.
    """

    __slots__ = ("_at", "_heap")

    def __init__(self) -> None:
        self._at: dict[P, float] = {}
        self._heap: list[tuple[float, int, P]] = []

    def set(self, proxy: P, at: float) -> None:
        """Set the time of the request to a writer, s; it replaces an earlier time.

        Parameters
        ----------
        proxy : P
            State that a reader keeps of the writer; a hashable object.
        at : float
            Time of the caller's clock, s.
        """
        self._at[proxy] = at
        heap = self._heap
        heappush(heap, (at, id(proxy), proxy))
        # Rebuild the heap when more than half of its entries are invalid, so that its
        # length stays in proportion to the number of writers.
        if len(heap) > 2 * len(self._at) + _MIN_SORTED_OUT:
            heap[:] = [(at, id(proxy), proxy) for proxy, at in self._at.items()]
            heapify(heap)

    def at(self, proxy: P) -> float:
        """Return the time of a writer's request, s; infinity if there is none."""
        return self._at.get(proxy, float("inf"))

    def discard(self, proxy: P) -> None:
        """Cancel a writer's request."""
        self._at.pop(proxy, None)
        if not self._at:
            self._heap.clear()

    def next(self) -> float:
        """Return the time of the first request, s; infinity if there is none."""
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else float("inf")

    def take(self, now: float, most: int) -> list[P]:
        """Remove and return at most `most` writers whose requests are due.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        most : int
            Limit of the number of writers.

        Returns
        -------
        list
            Writers in the order of their times.
        """
        found: list[P] = []
        while len(found) < most and self.next() <= now:
            proxy = heappop(self._heap)[2]
            del self._at[proxy]
            found.append(proxy)

        return found

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[P]:
        return iter(self._at)
