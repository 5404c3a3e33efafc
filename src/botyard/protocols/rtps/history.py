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
    """Sample in a history, as the bytes of its submessage."""

    data: bytes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Fragmented:
    """Long sample in a history, which is sent in fragments; their size depends on the address.

    Attributes
    ----------
    payload, inline : bytes
        Payload, and inline QoS.
    """

    payload: bytes
    inline: bytes

    def __len__(self) -> int:
        return len(self.payload)

    def count(self, size: int) -> int:
        """Return the number of fragments.

        Parameters
        ----------
        size : int
            Size of a fragment, bytes.
        """
        # The integer division is rounded up, which is exact for any length.
        return -(-len(self.payload) // size)


@dataclass(frozen=True, slots=True)
class Directed:
    """Sample in a history that is for a single reader.

    Attributes
    ----------
    sample : Submessage or Fragmented
        Sample as it is sent.
    reader : bytes
        GUID of the reader.
    """

    sample: Submessage | Fragmented
    reader: bytes

    def __len__(self) -> int:
        return len(self.sample)


Kept = bytes | Submessage | Fragmented | Directed
"""Sample in a history.

Plain bytes are the payload of a sample for all readers, without inline QoS. Most
samples are of this kind. Their submessage is made again for the few repetitions.
"""


class History(Protocol):
    """Samples that a writer keeps."""

    def first(self, last: int) -> int:
        """Return the lowest kept sequence number; `last + 1` if there is none.

        Parameters
        ----------
        last : int
            Number of the writer's last sample.
        """
        ...

    def get(self, number: int) -> Kept | None:
        """Return a sample; None if it is not kept, so that readers skip its number.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        """
        ...

    def next(self, number: int, last: int) -> int:
        """Return the lowest kept number from `number` on; `last + 1` if there is none.

        Parameters
        ----------
        number : int
            Sequence number, kept or not.
        last : int
            Number of the writer's last sample.
        """
        ...

    def clear(self) -> None:
        """Drop all samples."""
        ...

    def __len__(self) -> int:
        """Return the number of kept samples."""
        ...


class KeepLast:
    """History of the last samples of a writer, without gaps in the sequence numbers.

    Parameters
    ----------
    depth : int
        Number of samples.
    min_age : float
        Age below which samples beyond `depth` are also kept, s; up to
        `MAX_YOUNG_BYTES`.
    """

    __slots__ = ("_bytes", "_depth", "_kept", "_last", "_min_age", "_times")

    def __init__(self, depth: int, min_age: float = 0.0) -> None:
        # At least one sample is kept, otherwise no sample could be repeated.
        self._depth = max(1, depth)
        self._min_age = min_age
        self._kept: deque[Kept] = deque()
        self._times: deque[float] = deque()
        self._last = 0
        self._bytes = 0

    def add(self, number: int, sample: Kept, now: float) -> None:
        """Add the next sample.

        Parameters
        ----------
        number : int
            Sequence number: the last one + 1.
        sample : Kept
            Sample as it is sent.
        now : float
            Time, s, for `min_age`.
        """
        kept, times = self._kept, self._times
        self._last = number
        kept.append(sample)
        times.append(now)
        self._bytes += len(sample)
        # Keep young samples longer: they may get lost in the network, and a reader then
        # requests them again.
        while len(kept) > self._depth and (
            times[0] <= now - self._min_age or self._bytes > MAX_YOUNG_BYTES
        ):
            self.drop_first()

        # Keep the newest sample in any case, however long it is.
        while self._bytes > MAX_HISTORY_BYTES and len(kept) > 1:
            self.drop_first()

    def drop_first(self) -> None:
        """Drop the oldest sample."""
        self._times.popleft()
        self._bytes -= len(self._kept.popleft())

    def first(self, last: int) -> int:
        """Return the lowest kept sequence number; see `History`."""
        return last - len(self._kept) + 1

    def get(self, number: int) -> Kept | None:
        """Return a sample; see `History`."""
        # Numbers follow each other without gaps, so the index is a difference.
        at = number - self._last - 1 + len(self._kept)
        return self._kept[at] if 0 <= at < len(self._kept) else None

    def next(self, number: int, last: int) -> int:
        """Return the next kept sequence number; see `History`."""
        return max(number, self.first(last))

    def clear(self) -> None:
        """Drop all samples; see `History`."""
        self._kept.clear()
        self._times.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)


class KeepInstances:
    """History of the newest sample of each instance (key).

    An instance ends with a disposal, which is kept until all readers have acknowledged
    it.
    """

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._numbers: dict[bytes, int] = {}
        self._disposals: deque[int] = deque()
        self._order: list[int] | None = None

    def add(self, number: int, key: bytes, sample: Kept) -> None:
        """Add a sample of an instance, which replaces its older sample.

        Parameters
        ----------
        number : int
            Sequence number, above all earlier ones.
        key : bytes
            Key of the instance: a GUID.
        sample : Kept
            Sample as it is sent.
        """
        self._order = None
        # Sequence numbers start at 1, so 0 stands for an instance without a sample.
        self._kept.pop(self._numbers.pop(key, 0), None)
        self._numbers[key] = number
        self._kept[number] = sample

    def dispose(self, number: int, key: bytes, sample: Kept) -> None:
        """Add the disposal of an instance, which replaces its last sample.

        Parameters
        ----------
        number : int
            Sequence number, above all earlier ones.
        key : bytes
            Key of the instance: a GUID.
        sample : Kept
            Disposal as it is sent.
        """
        self.add(number, key, sample)
        # Forget the instance: a later sample of the same key starts a new instance.
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
        """Drop disposals up to a number that all readers have acknowledged.

        Parameters
        ----------
        acknowledged : int
            Number up to which all readers have acknowledged.
        """
        while self._disposals and self._disposals[0] <= acknowledged:
            self._order = None
            del self._kept[self._disposals.popleft()]

    def _sorted(self) -> list[int]:
        if self._order is None:
            # Numbers rise as they are added, so a dict has them in order.
            self._order = list(self._kept)
        return self._order

    def first(self, last: int) -> int:
        """Return the lowest kept sequence number; see `History`."""
        # The dictionary is in the order of the numbers, so the first key is the lowest.
        return next(iter(self._kept), last + 1)

    def get(self, number: int) -> Kept | None:
        """Return a sample; see `History`."""
        return self._kept.get(number)

    def next(self, number: int, last: int) -> int:
        """Return the next kept sequence number; see `History`."""
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
