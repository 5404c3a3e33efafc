"""What a writer keeps: the last samples, or the last one of each instance."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from botyard.protocols.rtps.limits import (
    MAX_DISPOSALS,
    MAX_HISTORY_BYTES,
    MAX_YOUNG_BYTES,
)


@dataclass(frozen=True, slots=True)
class Submessage:
    """A sample as the bytes of its submessage."""

    data: bytes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Fragmented:
    """A sample that is sent in fragments.

    Attributes
    ----------
    payload, inline : bytes
    fragment_size : int
        Bytes.
    """

    payload: bytes
    inline: bytes
    fragment_size: int

    def __len__(self) -> int:
        return len(self.payload)

    @property
    def count(self) -> int:
        """How many fragments."""
        return -(-len(self.payload) // self.fragment_size)


@dataclass(frozen=True, slots=True)
class Directed:
    """A sample for one reader alone.

    Attributes
    ----------
    sample : Submessage or Fragmented
    reader : bytes
        GUID.
    """

    sample: Submessage | Fragmented
    reader: bytes

    def __len__(self) -> int:
        return len(self.sample)


Kept = bytes | Submessage | Fragmented | Directed
"""Bytes are the payload of a sample without inline QoS for all readers: most are of
this kind, and few are ever sent again.
"""


class History(Protocol):
    """What a writer keeps."""

    def first(self, last: int) -> int:
        """Lowest number that is kept; `last + 1` if there is none."""
        ...

    def get(self, number: int) -> Kept | None:
        """A sample; None: it is not kept, nobody needs it."""
        ...

    def next(self, number: int, last: int) -> int:
        """Lowest number from `number` on that is kept; `last + 1` if there is none."""
        ...

    def clear(self) -> None:
        """Keep nothing."""
        ...

    def __len__(self) -> int:
        """How many samples are kept."""
        ...


class KeepLast:
    """The last samples; every number has one.

    Parameters
    ----------
    depth : int
        How many.
    min_age : float
        Samples younger than this, s, are kept beside them, up to `MAX_YOUNG_BYTES`.
    """

    __slots__ = ("_bytes", "_depth", "_kept", "_last", "_min_age", "_times")

    def __init__(self, depth: int, min_age: float = 0.0) -> None:
        self._depth = max(1, depth)
        self._min_age = min_age
        self._kept: deque[Kept] = deque()
        self._times: deque[float] = deque()
        self._last = 0
        self._bytes = 0

    def add(self, number: int, sample: Kept, now: float) -> None:
        """Keep the next one."""
        kept, times = self._kept, self._times
        self._last = number
        kept.append(sample)
        times.append(now)
        self._bytes += len(sample)
        while len(kept) > self._depth and (
            times[0] <= now - self._min_age or self._bytes > MAX_YOUNG_BYTES
        ):
            self.drop_first()

        while self._bytes > MAX_HISTORY_BYTES and len(kept) > 1:
            self.drop_first()

    def drop_first(self) -> None:
        """Keep the oldest one no longer."""
        self._times.popleft()
        self._bytes -= len(self._kept.popleft())

    def first(self, last: int) -> int:
        """See `History`."""
        return last - len(self._kept) + 1

    def get(self, number: int) -> Kept | None:
        """See `History`."""
        at = number - self._last - 1 + len(self._kept)
        return self._kept[at] if 0 <= at < len(self._kept) else None

    def next(self, number: int, last: int) -> int:
        """See `History`."""
        return max(number, self.first(last))

    def clear(self) -> None:
        """See `History`."""
        self._kept.clear()
        self._times.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)


class KeepInstances:
    """The newest sample of each instance, and disposals until everybody knows them."""

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._numbers: dict[bytes, int] = {}
        self._disposals: deque[int] = deque()
        self._order: list[int] | None = None

    def add(self, number: int, key: bytes, sample: Kept) -> None:
        """Keep a sample of an instance instead of an older one."""
        self._order = None
        self._kept.pop(self._numbers.pop(key, 0), None)
        self._numbers[key] = number
        self._kept[number] = sample

    def dispose(self, number: int, key: bytes, sample: Kept) -> None:
        """Keep the disposal of an instance instead of its last sample."""
        self.add(number, key, sample)
        del self._numbers[key]
        self._disposals.append(number)
        if len(self._disposals) > MAX_DISPOSALS:
            del self._kept[self._disposals.popleft()]

    @property
    def has_disposals(self) -> bool:
        """Whether there is one that not all may know."""
        return bool(self._disposals)

    def forget(self, acknowledged: int) -> None:
        """Drop disposals up to a number that all have acknowledged."""
        while self._disposals and self._disposals[0] <= acknowledged:
            self._order = None
            del self._kept[self._disposals.popleft()]

    def _sorted(self) -> list[int]:
        if self._order is None:
            self._order = list(self._kept)  # numbers rise as they are added
        return self._order

    def first(self, last: int) -> int:
        """See `History`."""
        return next(iter(self._kept), last + 1)

    def get(self, number: int) -> Kept | None:
        """See `History`."""
        return self._kept.get(number)

    def next(self, number: int, last: int) -> int:
        """See `History`."""
        order = self._sorted()
        at = bisect_left(order, number)
        return order[at] if at < len(order) else last + 1

    def clear(self) -> None:
        """See `History`."""
        self._kept.clear()
        self._numbers.clear()
        self._disposals.clear()
        self._order = None

    def __len__(self) -> int:
        return len(self._kept)
