"""Remote readers that are matched with a writer, with their acknowledgements and requests."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from botyard.protocols.rtps import wire
from botyard.protocols.rtps.limits import (
    LOCAL_RESEND_FACTOR,
    MAX_DATA_BYTES,
    MAX_LOCAL_DATA_BYTES,
    MAX_UNANSWERED,
    RESEND_BURST_BYTES,
    RESEND_BYTES_PER_S,
)
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.tokenbucket import TokenBucket

_MIN_SORTED_OUT: Final = 16
"""Number of invalid entries that a heap of readers may always have before it is rebuilt."""


class ReaderProxy:
    """State that a writer keeps of a matched reader.

    Parameters
    ----------
    guid : bytes
        GUID of the reader, 16 bytes.
    destination : Destination
        Address of the reader.
    is_reliable : bool
        Whether both endpoints are reliable.
    start : int
        Samples up to this number are not for the reader.
                last : int
                    Number of the writer's last sample when the reader was matched.
    now : float
        Time of the caller's clock, s.

    Attributes
    ----------
    destination : Destination
        Address of the reader.
    start : int
        Samples up to this number are not for the reader.
                acked : int
                    Highest number up to which the reader has acknowledged all samples.
                wanted : int
                    Highest number of a sample that was sent to this reader alone.
                sent : int
                    Highest number of a sample that was sent because the reader
                    requested it.
                count, fragment_count : int
                    Field ``count`` of the reader's last ACKNACK and NACK_FRAG.
                unanswered : int
                    Number of HEARTBEATs since the reader's last answer.
                requested : list of int
                    Numbers of the samples that the reader requests, in falling order.
    """

    __slots__ = (
        "acked",
        "bucket",
        "count",
        "destination",
        "entity",
        "fragment_count",
        "guid",
        "is_reliable",
        "is_served",
        "joined",
        "prefix",
        "requested",
        "sent",
        "start",
        "unanswered",
        "wanted",
    )

    def __init__(
        self,
        guid: bytes,
        destination: Destination,
        is_reliable: bool,
        start: int,
        last: int,
        now: float,
    ) -> None:
        self.guid, self.prefix, self.entity = guid, guid[:12], guid[12:]
        self.destination = destination
        self.is_reliable = is_reliable
        self.start = self.acked = start
        self.joined = last
        self.wanted = self.sent = 0
        self.count = self.fragment_count = -wire.MAX_COUNT
        self.unanswered = 0
        self.requested: list[int] = []
        self.is_served = False
        self.bucket = TokenBucket(RESEND_BYTES_PER_S, RESEND_BURST_BYTES, now)

    @property
    def is_silent(self) -> bool:
        """Whether the reader has not answered for so long that no samples are kept for it.

        The reader still gets occasional HEARTBEATs, until its participant's lease ends.
        """
        return self.unanswered >= MAX_UNANSWERED

    def may_have(
        self, number: int, size: int, now: float, *, in_fragments: bool = False
    ) -> bool:
        """Return whether a requested sample may be sent to the reader now.

        A sample that was written before the reader was matched is sent once without a
        limit. All other repetitions count towards `RESEND_BYTES_PER_S`.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        size : int
            Number of bytes to send.
        now : float
            Time of the caller's clock, s.
        in_fragments : bool
            Whether fragments are sent.
        """
        if self.sent < number <= self.joined:
            self.sent = number
            return True

        if self.bucket.wait(now) > 0.0:
            return False
        is_cheap = in_fragments and self.destination.is_local
        self.bucket.spend(now, size / LOCAL_RESEND_FACTOR if is_cheap else size)
        return True


class _Group:
    """Readers of a writer at one address.

    Attributes
    ----------
    count : int
        Number of readers.
    reliable : dict of ReaderProxy
        Reliable readers at the address.
    start : int
        Samples above this number are for all readers of the group.
    """

    __slots__ = ("count", "reliable", "start")

    def __init__(self) -> None:
        self.count = self.start = 0
        self.reliable: dict[ReaderProxy, None] = {}


class MatchedReaders:
    """Readers of a writer, grouped by address, at a constant cost for each change."""

    __slots__ = (
        "_distant",
        "_groups",
        "_lacking",
        "_max_data",
        "_reliable",
        "_reliable_destinations",
        "_sending",
        "_slowest",
    )

    def __init__(self) -> None:
        self._groups: dict[Destination, _Group] = {}
        self._reliable: dict[ReaderProxy, None] = {}
        self._reliable_destinations: dict[Destination, None] = {}
        # Number of addresses on other hosts.
        self._distant = 0
        # Heap of (acknowledged, identity, reader) with lazy deletion. An entry is
        # invalid if its reader has left, or has acknowledged more since; it is removed
        # when it reaches the top.
        self._slowest: list[tuple[int, int, ReaderProxy]] = []
        # Readers to which the present round of repeated HEARTBEATs (`Writer.remind`)
        # has not sent one yet.
        self._lacking: list[ReaderProxy] = []
        self._max_data = MAX_DATA_BYTES
        # Numbers of samples whose fragments are being sent.
        self._sending: dict[Destination, set[int]] = {}

    def _join(self, proxy: ReaderProxy) -> None:
        """Add a reader to the group of its address, at a constant cost."""
        destination = proxy.destination
        group = self._groups.get(destination)
        if group is None:
            group = self._groups[destination] = _Group()
            self._distant += not destination.is_local
            self._fit()

        group.count += 1
        group.start = max(group.start, proxy.start)
        if proxy.is_reliable:
            group.reliable[proxy] = None
            self._reliable[proxy] = None
            self._reliable_destinations[destination] = None
            slowest = self._slowest
            heappush(slowest, (proxy.acked, id(proxy), proxy))
            # Rebuild the heap when more than half of its entries are invalid, so that
            # its length stays in proportion to the number of readers.
            if len(slowest) > 2 * len(self._reliable) + _MIN_SORTED_OUT:
                slowest[:] = [(p.acked, id(p), p) for p in self._reliable]
                heapify(slowest)

    def _part(self, proxy: ReaderProxy) -> None:
        """Remove a reader from the group of its address."""
        destination = proxy.destination
        group = self._groups[destination]
        group.count -= 1
        if proxy.is_reliable:
            del group.reliable[proxy]
            del self._reliable[proxy]
            if not group.reliable:
                del self._reliable_destinations[destination]
            if not self._reliable:
                self._slowest.clear()
                self._lacking.clear()

        if not group.count:
            del self._groups[destination]
            self._sending.pop(destination, None)
            self._distant -= not destination.is_local
            self._fit()

    def _fit(self) -> None:
        """Update the size up to which samples are sent in one piece."""
        self._max_data = (
            MAX_LOCAL_DATA_BYTES
            if self._groups and not self._distant
            else MAX_DATA_BYTES
        )

    def _lowest_acknowledged(self, last: int) -> int:
        """Return the highest number that all reliable readers have acknowledged.

        Without reliable readers, it is `last`.

        Parameters
        ----------
        last : int
            Number of the last sample.
        """
        slowest = self._slowest
        while slowest:
            acked, _, proxy = slowest[0]
            if proxy not in self._reliable:
                heappop(slowest)
            elif proxy.acked != acked:
                heapreplace(slowest, (proxy.acked, id(proxy), proxy))
            else:
                return acked

        return last
