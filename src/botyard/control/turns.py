"""Who of those that wait is served next: one thing of each source at a time, and the sources take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Things that wait, by where they come from.

    Parameters
    ----------
    most : int
        So many may wait.
    at_once : int
        So many may be served at the same time, of different sources.
    """

    def __init__(self, most: int, at_once: int) -> None:
        self._most = most
        self._at_once = at_once
        self._waiting: dict[Hashable, deque[T]] = {}
        self._served: set[Hashable] = set()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, source: Hashable, thing: T) -> T | None:
        """Let something wait. If there are too many, the last of whoever has the most of them must go: it is returned."""
        queue = self._waiting.setdefault(source, deque())
        queue.append(thing)
        if len(self) <= self._most:
            return None
        longest = max(self._waiting.values(), key=len)
        # who comes with the first thing of his may push out another; who has as many as anyone may not
        return (queue if len(queue) == len(longest) else longest).pop()

    def next(self) -> tuple[Hashable, T] | None:
        """What is to be served now, and whose it is; None: nothing. `over` must follow."""
        if len(self._served) >= self._at_once:
            return None
        for source, queue in self._waiting.items():
            if source not in self._served and queue:
                self._served.add(source)
                thing = queue.popleft()
                del self._waiting[source]
                if queue:  # the others come first
                    self._waiting[source] = queue
                return source, thing
        return None

    def over(self, source: Hashable) -> None:
        """What was served of a source is done."""
        self._served.discard(source)

    def clear(self) -> list[T]:
        """Nothing waits any more; what did."""
        left = [thing for queue in self._waiting.values() for thing in queue]
        self._waiting.clear()
        return left


__all__ = ["Turns"]
