"""Values that are kept as long as they were used recently."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values of at most `most` keys: the least recently used one goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}

    def of(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key; `make` makes one that is not kept."""
        value = self._values.pop(key) if key in self._values else make()
        # the last one: it was used most recently
        self._values[key] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value

    def values(self) -> list[V]:
        """All values that are kept."""
        return list(self._values.values())

    def clear(self) -> None:
        """Forget all of them."""
        self._values.clear()


__all__ = ["Recent"]
