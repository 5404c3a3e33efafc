"""Least-recently-used cache of computed values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Cache of at most `most` values that drops the least recently used one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}

    def of(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; make the value if the cache does not hold it.

        Parameters
        ----------
        key : hashable
            Everything that the value depends on.
        make : callable
            Returns the value of the key. If the cache is full, the value that was not
            used for the longest time is dropped for it.
        """
        value = self._values.pop(key) if key in self._values else make()
        # A dictionary keeps the order of insertion, so the key used last stands last.
        self._values[key] = value
        # One value was added at most, so that one removal is enough.
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value

    def values(self) -> list[V]:
        """Return all cached values, least recently used first."""
        return list(self._values.values())

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()


__all__ = ["Recent"]
