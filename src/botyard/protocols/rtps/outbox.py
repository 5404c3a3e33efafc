"""What waits to be sent: submessages for one address share datagrams, which leave no
faster than a default socket buffer takes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final, Protocol
from weakref import WeakValueDictionary

from botyard.protocols.rtps.guids import LOOPBACK_NET, Address
from botyard.protocols.rtps.limits import (
    MAX_DATAGRAM_BYTES,
    MAX_LOCAL_DATAGRAM_BYTES,
    MAX_QUEUED_BYTES,
    MAX_SPREAD_S,
    MAX_TOTAL_QUEUED_BYTES,
    PACE_BURST_BYTES,
    PACE_BYTES_PER_S,
)
from botyard.protocols.rtps.wire import INFO_DST_NOBODY, header, info_dst, info_ts
from botyard.protocols.tokenbucket import TokenBucket

_HEAD_BYTES: Final = 32
"""Header and INFO_TS."""
_INFO_DST_BYTES: Final = 16
_MIN_COST: Final = 0.5
"""Least cost of a byte of a long burst, tokens: a step leaves before the next one
comes, at twice the usual rate at most.
"""
_LATE_COST: Final = 0.25
"""The same for an address for which more than `_LATE_BYTES` wait: several steps have
come before the first of them has left.
"""
_LATE_BYTES: Final = 1 << 19
_MIN_WAIT_S: Final = 1e-4
"""A shorter wait is none, s: rounding leaves such."""
_MAX_SINGLE: Final = 1024
"""Most datagrams that wait beside the addresses' own queues."""


class Job(Protocol):
    """Something long to send, of which a part is made whenever the pace allows: a
    sample in fragments, what a reader has asked for.
    """

    def step(self, destination: Destination, now: float) -> bool:
        """Add about a datagram's worth of submessages; whether that was all."""
        ...


class Destination:
    """An address, and what waits for it; made by `Outbox.destination`.

    Attributes
    ----------
    address : Address
    jobs : deque of Job
        They take turns with what waits in datagrams: what was lost is sent again
        although there is always something new, which readers can do nothing with
        before.
    """

    __slots__ = (
        "__weakref__",
        "_bucket",
        "_burst_at",
        "_burst_bytes",
        "_cost",
        "_full",
        "_is_job",
        "_is_jobs_turn",
        "_last_prefix",
        "_made",
        "_outbox",
        "_parts",
        "_queue",
        "_queued",
        "_size",
        "address",
        "jobs",
        "limit",
    )

    def __init__(
        self, outbox: Outbox, address: Address, limit: int, now: float
    ) -> None:
        self._outbox = outbox
        self.address = address
        self.limit = limit
        self.jobs: deque[Job] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._last_prefix = b""
        self._full: list[list[bytes]] = []
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._made: deque[bytes] = deque()
        self._is_job = False
        self._is_jobs_turn = False
        self._bucket = TokenBucket(PACE_BYTES_PER_S, PACE_BURST_BYTES, now)
        self._burst_at = now - 1.0
        self._burst_bytes = 0
        self._cost = 1.0

    def add(self, submessage: bytes, prefix: bytes = b"", body: bytes = b"") -> None:
        """Add a submessage to the current datagram.

        Parameters
        ----------
        submessage : bytes
            Its length is a multiple of 4.
        prefix : bytes
            GUID prefix of the participant that it is for; empty: for all at this
            address.
        body : bytes
            The end of the submessage, if it is not in `submessage`: long ones are
            copied once only, into the datagram. A multiple of 4.
        """
        parts, size = self._parts, len(submessage) + len(body)
        if not parts:
            self._begin(parts)
        elif self._size + size + _INFO_DST_BYTES > self.limit:
            self.flush()
            parts = self._parts
            self._begin(parts)

        if prefix != self._last_prefix:
            parts.append(info_dst(prefix) if prefix else INFO_DST_NOBODY)
            self._size += _INFO_DST_BYTES
            self._last_prefix = prefix

        parts.append(submessage)
        if body:
            parts.append(body)
        self._size += size

    def _begin(self, parts: list[bytes]) -> None:
        parts.append(
            b""
        )  # header and timestamp, which the datagram gets when all is sent
        self._size = _HEAD_BYTES
        self._last_prefix = b""
        self._outbox.busy[self] = None

    def flush(self) -> None:
        """End the current datagram. If too much waits already, it is dropped: reliable
        readers will ask for it.
        """
        if not self._parts:
            return
        outbox = self._outbox
        if self._is_job:
            self._full.append(self._parts)
        elif (
            self._queued + self._size <= MAX_QUEUED_BYTES
            and outbox.queued + self._size <= MAX_TOTAL_QUEUED_BYTES
        ):
            self._full.append(self._parts)
            self._queued += self._size
            outbox.queued += self._size
        else:
            outbox.dropped += 1

        self._parts = []

    def start(self, job: Job) -> None:
        """Take a job on."""
        self.jobs.append(job)
        self._outbox.busy[self] = None

    def drain(self, now: float, out: list[tuple[bytes, Address]]) -> float:
        """Move datagrams to `out` as the pace allows; how long to wait for the next
        ones, s, or 0: nothing waits.
        """
        was_empty = not self._queue
        self.flush()
        self._stamp(self._queue)
        self._set_pace(was_empty, now)
        bucket, queue, made, jobs = self._bucket, self._queue, self._made, self.jobs
        while queue or made or jobs:
            wait = bucket.wait(now)
            if wait > _MIN_WAIT_S:
                return wait
            if jobs and not made and (self._is_jobs_turn or not queue):
                self._step(now)
            if made:
                datagram = made.popleft()
                self._is_jobs_turn = False
            elif queue:
                datagram = queue.popleft()
                self._queued -= len(datagram)
                self._outbox.queued -= len(datagram)
                self._is_jobs_turn = True
            else:
                continue

            bucket.spend(now, len(datagram) * self._cost)
            out.append((datagram, self.address))

        return 0.0

    def _step(self, now: float) -> None:
        """A datagram's worth of what jobs make. It waits apart, and is not dropped: no
        more is made before it has left.
        """
        jobs = self.jobs
        self._is_job = True
        try:
            for _ in range(len(jobs)):
                job = jobs.popleft()
                if not job.step(self, now):
                    jobs.append(job)
                if self._full:
                    break

            self.flush()
        finally:
            self._is_job = False

        self._stamp(self._made)

    def _set_pace(self, was_empty: bool, now: float) -> None:
        """Spread a burst that fills a default socket buffer over half of the time until
        the next one.

        A reader that is not scheduled for some ms would lose a part of it otherwise.
        `_cost`: tokens of the bucket for a byte.
        """
        if not was_empty:
            if (
                self._queued > self._burst_bytes
            ):  # the next burst has come before all of the last one has left
                self._burst_at, self._burst_bytes = now, self._queued
                self._cost = _MIN_COST if self._queued <= _LATE_BYTES else _LATE_COST
        elif self._queued > PACE_BURST_BYTES:
            spread = min((now - self._burst_at) / 2.0, MAX_SPREAD_S)
            self._burst_at, self._burst_bytes = now, self._queued
            self._cost = max(_MIN_COST, spread * PACE_BYTES_PER_S / self._queued)
        else:
            self._cost = 1.0

    def _stamp(self, queue: deque[bytes]) -> None:
        """Put header and timestamp before what was written since the last time: it is
        sent now, or as soon as the pace allows.
        """
        head = self._outbox.head
        for parts in self._full:
            parts[0] = head
            queue.append(b"".join(parts))

        self._full.clear()


class Outbox:
    """All addresses.

    Parameters
    ----------
    prefix : bytes
        GUID prefix of our participant.
    hosts : collection of str
        Addresses of this host: datagrams to them may be longer.
    now : float
        The caller's clock, s.

    Attributes
    ----------
    head : bytes
        Header and timestamp of the next datagrams.
    busy : dict of Destination
        Addresses for which something waits.
    queued : int
        Bytes that wait for all addresses.
    dropped : int
        Datagrams for which there was no room.
    """

    def __init__(self, prefix: bytes, hosts: Collection[str], now: float) -> None:
        self._header = header(prefix)
        self._hosts = frozenset(hosts)
        self._now = now
        # an address is forgotten when nothing waits for it and no endpoint is there
        self._destinations: WeakValueDictionary[Address, Destination] = (
            WeakValueDictionary()
        )
        self._single: list[tuple[bytes, Address]] = []
        self.head = b""
        self.busy: dict[Destination, None] = {}
        self.queued = 0
        self.dropped = 0

    def stamp(self, now: float, wall: float) -> None:
        """It is `now`; `wall`: since 1970, s, as peers are told."""
        if now != self._now or not self.head:
            self._now = now
            self.head = self._header + info_ts(wall)

    def is_local(self, host: str) -> bool:
        """Whether an address is one of this host."""
        return host in self._hosts or host.startswith(LOOPBACK_NET)

    def destination(self, address: Address) -> Destination:
        """What waits for an address."""
        destination = self._destinations.get(address)
        if destination is None:
            limit = (
                MAX_LOCAL_DATAGRAM_BYTES
                if self.is_local(address[0])
                else MAX_DATAGRAM_BYTES
            )
            destination = self._destinations[address] = Destination(
                self, address, limit, self._now
            )

        return destination

    def send(self, address: Address, *submessages: bytes) -> None:
        """Send a datagram of its own, without pace: for announcements, which are few
        and short.
        """
        if len(self._single) < _MAX_SINGLE:
            self._single.append((b"".join((self.head, *submessages)), address))
        else:
            self.dropped += 1

    def drain(self, now: float) -> tuple[list[tuple[bytes, Address]], float]:
        """Datagrams that may leave now, and when the next ones may, s (infinity: there
        are none).
        """
        out, self._single = self._single, []
        later = float("inf")
        for destination in tuple(self.busy):
            wait = destination.drain(now, out)
            if wait > 0.0:
                later = min(later, now + wait)
            else:
                del self.busy[destination]

        return out, later
