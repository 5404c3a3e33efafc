"""Histories of writers: the last samples, or the last sample of each instance."""

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
    """Sample as the bytes of its submessage."""

    data: bytes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Fragmented:
    """Sample that is sent in fragments.

    Attributes
    ----------
    payload, inline : bytes
        Payload, and inline QoS.
    fragment_size : int
        Size of a fragment, bytes.
    """

    payload: bytes
    inline: bytes
    fragment_size: int

    def __len__(self) -> int:
        return len(self.payload)

    @property
    def count(self) -> int:
        """Number of fragments."""
        return -(-len(self.payload) // self.fragment_size)


@dataclass(frozen=True, slots=True)
class Directed:
    """Sample for a single reader.

    Attributes
    ----------
    sample : Submessage or Fragmented
        The sample.
    reader : bytes
        GUID of the reader.
    """

    sample: Submessage | Fragmented
    reader: bytes

    def __len__(self) -> int:
        return len(self.sample)


Kept = bytes | Submessage | Fragmented | Directed
"""Sample in a history.

Bytes are the payload of a sample without inline QoS for all readers. Most samples are
of this kind, and few are ever sent again.
"""


class History(Protocol):
    """Samples that a writer keeps."""

    def first(self, last: int) -> int:
        """Return the lowest kept number; `last + 1` if there is none."""
        ...

    def get(self, number: int) -> Kept | None:
        """Return a sample; None if it is not kept, and no reader needs it."""
        ...

    def next(self, number: int, last: int) -> int:
        """Return the lowest kept number from `number` on; `last + 1` if there is none."""
        ...

    def clear(self) -> None:
        """Drop all samples."""
        ...

    def __len__(self) -> int:
        """Return the number of kept samples."""
        ...


class KeepLast:
    """History of the last samples; every number has a sample.

    Parameters
    ----------
    depth : int
        Number of samples.
    min_age : float
        Further samples that are younger than this, s, are kept up to `MAX_YOUNG_BYTES`.
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
        """Add the next sample."""
        kept, times = self._kept, self._times
        self._last = number
        kept.append(sample)
        times.append(now)
        self._bytes += len(sample)
        while len(kept) > self._depth and (
            times[0] <= now - self._min_age or self._bytes > MAX_YOUNG_BYTES
        ):
            self.drop_first()

        # The newest sample stays, however long it is.
        while self._bytes > MAX_HISTORY_BYTES and len(kept) > 1:
            self.drop_first()

    def drop_first(self) -> None:
        """Drop the oldest sample."""
        self._times.popleft()
        self._bytes -= len(self._kept.popleft())

    def first(self, last: int) -> int:
        """Return the lowest kept number; see `History`."""
        return last - len(self._kept) + 1

    def get(self, number: int) -> Kept | None:
        """Return a sample; see `History`."""
        # Numbers follow each other without gaps, so the index is a difference.
        at = number - self._last - 1 + len(self._kept)
        return self._kept[at] if 0 <= at < len(self._kept) else None

    def next(self, number: int, last: int) -> int:
        """Return the next kept number; see `History`."""
        return max(number, self.first(last))

    def clear(self) -> None:
        """Drop all samples; see `History`."""
        self._kept.clear()
        self._times.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)


class KeepInstances:
    """History of the newest sample of each instance.

    It keeps disposals until all readers have acknowledged them.
    """

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._numbers: dict[bytes, int] = {}
        self._disposals: deque[int] = deque()
        self._order: list[int] | None = None

    def add(self, number: int, key: bytes, sample: Kept) -> None:
        """Add a sample of an instance in place of an older one."""
        self._order = None
        self._kept.pop(self._numbers.pop(key, 0), None)
        self._numbers[key] = number
        self._kept[number] = sample

    def dispose(self, number: int, key: bytes, sample: Kept) -> None:
        """Add the disposal of an instance in place of its last sample."""
        self.add(number, key, sample)
        del self._numbers[key]
        self._disposals.append(number)
        # A silent reader must not make the history grow without end.
        if len(self._disposals) > MAX_DISPOSALS:
            del self._kept[self._disposals.popleft()]

    @property
    def has_disposals(self) -> bool:
        """Whether a disposal is kept that not all readers have acknowledged."""
        return bool(self._disposals)

    def forget(self, acknowledged: int) -> None:
        """Drop disposals up to a number that all readers have acknowledged."""
        while self._disposals and self._disposals[0] <= acknowledged:
            self._order = None
            del self._kept[self._disposals.popleft()]

    def _sorted(self) -> list[int]:
        if self._order is None:
            # Numbers rise as they are added, so a dict has them in order.
            self._order = list(self._kept)
        return self._order

    def first(self, last: int) -> int:
        """Return the lowest kept number; see `History`."""
        return next(iter(self._kept), last + 1)

    def get(self, number: int) -> Kept | None:
        """Return a sample; see `History`."""
        return self._kept.get(number)

    def next(self, number: int, last: int) -> int:
        """Return the next kept number; see `History`."""
        order = self._sorted()
        at = bisect_left(order, number)
        return order[at] if at < len(order) else last + 1

    def clear(self) -> None:
        """Drop all samples; see `History`."""
        self._kept.clear()
        self._numbers.clear()
        self._disposals.clear()
        self._order = None

    def __len__(self) -> int:
        return len(self._kept)
