"""Queues of outgoing datagrams, and the pace at which they leave.

Submessages to the same address share datagrams. Datagrams leave no faster than a reader
with a socket buffer of default size can receive them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final, Protocol
from weakref import WeakValueDictionary

from botyard.protocols.rtps.guids import LOOPBACK_NET, Address
from botyard.protocols.rtps.limits import (
    FRAGMENT_BYTES,
    LARGE_FRAGMENT_BYTES,
    LARGE_SAMPLE_BYTES,
    LOCAL_FRAGMENT_BYTES,
    LOCAL_PACE_BYTES_PER_S,
    MAX_DATAGRAM_BYTES,
    MAX_LOCAL_DATAGRAM_BYTES,
    MAX_QUEUED_BYTES,
    MAX_SPREAD_S,
    MAX_TOTAL_QUEUED_BYTES,
    PACE_BURST_BYTES,
    PACE_BYTES_PER_S,
)
from botyard.protocols.rtps.parameters import INFINITE
from botyard.protocols.rtps.wire import INFO_DST_NOBODY, header, info_dst, info_ts
from botyard.protocols.tokenbucket import TokenBucket

_HEAD_BYTES: Final = 32
"""Size of the header and INFO_TS of a datagram, bytes."""
_INFO_DST_BYTES: Final = 16
_MIN_COST: Final = 0.5
"""Lowest cost of a byte in a long burst, tokens of the address's token bucket.

A lower cost lets the burst of a step leave before the next step, at most at twice the
usual rate.
"""
_LATE_COST: Final = 0.25
"""Lowest cost of a byte if more than `_LATE_BYTES` are queued for an address, tokens.

Datagrams of several steps then wait, and must leave faster.
"""
_LATE_BYTES: Final = 1 << 19
_MIN_WAIT_S: Final = 1e-4
"""Waiting times below this are ignored, s: they result from rounding."""
_MAX_SINGLE: Final = 1024
"""Limit of the waiting datagrams that are sent without pacing (`Outbox.send`)."""


class Job(Protocol):
    """Long transmission that is made in slices as the pace allows.

    Examples are a sample in fragments, or requested samples.
    """

    def step(self, destination: Destination, now: float) -> bool:
        """Add about a datagram of submessages; return whether the job is finished.

        Parameters
        ----------
        destination : Destination
            Address with the current datagram.
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        bool
            True removes the job; False calls it again for the next datagram.
        """
        ...


class Destination:
    """Address with its queues; made by `Outbox.destination`.

    Parameters
    ----------
    outbox : Outbox
        Queues of all addresses.
    address : Address
        IPv4 host in numbers, and UDP port.
    limit : int
        Longest datagram, bytes.
    now : float
        Time of the caller's clock, s.

    Attributes
    ----------
    address : Address
        IPv4 host in numbers, and UDP port.
    is_local : bool
        Whether the address belongs to this host.
    jobs : deque of Job
        Long transmissions. They alternate with the queue of datagrams: otherwise a
        stream of new samples would block repeated samples, which readers need before
        the new ones.
    """

    __slots__ = (
        # `__slots__` must list this name, because the outbox holds weak references.
        "__weakref__",
        "_bucket",
        "_burst_at",
        "_burst_bytes",
        "_cost",
        "_full",
        "_is_job",
        "_is_jobs_turn",
        "_jobs_bucket",
        "_last_prefix",
        "_made",
        "_outbox",
        "_parts",
        "_queue",
        "_queued",
        "_size",
        "address",
        "is_local",
        "jobs",
        "limit",
    )

    def __init__(
        self, outbox: Outbox, address: Address, limit: int, now: float
    ) -> None:
        self._outbox = outbox
        self.address = address
        self.limit = limit
        self.is_local = limit >= MAX_LOCAL_DATAGRAM_BYTES
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

        # Each address has its own pace: a slow reader must not delay others.
        self._bucket = TokenBucket(PACE_BYTES_PER_S, PACE_BURST_BYTES, now)
        # Jobs to an address of this host have a faster pace of their own: a reader that
        # cannot keep up requests fragments again at little cost, but with the slow pace
        # it would get the samples of a stream late.
        self._jobs_bucket = (
            TokenBucket(LOCAL_PACE_BYTES_PER_S, PACE_BURST_BYTES, now)
            if self.is_local
            else self._bucket
        )
        # Let the first burst be spread like a burst after a pause of 1 s.
        self._burst_at = now - 1.0
        self._burst_bytes = 0
        self._cost = 1.0

    def fragment_size(self, length: int) -> int:
        """Return the size of the fragments of a long sample, bytes.

        Parameters
        ----------
        length : int
            Length of the sample, bytes.
        """
        if self.is_local:
            return LOCAL_FRAGMENT_BYTES
        return FRAGMENT_BYTES if length < LARGE_SAMPLE_BYTES else LARGE_FRAGMENT_BYTES

    def add(self, submessage: bytes, prefix: bytes = b"", body: bytes = b"") -> None:
        """Add a submessage to the current datagram.

        Parameters
        ----------
        submessage : bytes
            Submessage; its length is a multiple of 4.
        prefix : bytes
            GUID prefix of the addressed participant; empty for all at this address.
        body : bytes
            End of a long submessage, a multiple of 4 bytes. It is copied only once,
            into the datagram.
        """
        parts, size = self._parts, len(submessage) + len(body)
        if not parts:
            self._begin(parts)
        # Always leave room for an INFO_DST, so that the check does not depend on
        # `prefix`.
        elif self._size + size + _INFO_DST_BYTES > self.limit:
            self.flush()
            parts = self._parts
            self._begin(parts)

        # An INFO_DST applies to all submessages after it, so add one only if the prefix
        # changes.
        if prefix != self._last_prefix:
            parts.append(info_dst(prefix) if prefix else INFO_DST_NOBODY)
            self._size += _INFO_DST_BYTES
            self._last_prefix = prefix

        parts.append(submessage)
        if body:
            parts.append(body)
        self._size += size

    def _begin(self, parts: list[bytes]) -> None:
        # Placeholder for the header and timestamp that `_stamp` adds.
        parts.append(b"")
        self._size = _HEAD_BYTES
        self._last_prefix = b""
        self._outbox.busy[self] = None

    def flush(self) -> None:
        """End the current datagram.

        It is dropped if the queues are full; reliable readers request its samples
        again.
        """
        if not self._parts:
            return
        outbox = self._outbox
        # Datagrams of jobs do not count: a job makes only one at a time, so they cannot
        # pile up.
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
            # The queues are full: drop this newest datagram, because readers need the
            # older ones first.
            outbox.dropped += 1

        # A new list is needed, because the old list now belongs to `_full`.
        self._parts = []

    def start(self, job: Job) -> None:
        """Add a job.

        Parameters
        ----------
        job : Job
            Long transmission. Jobs of one address alternate.
        """
        self.jobs.append(job)
        self._outbox.busy[self] = None

    def drain(self, now: float, out: list[tuple[bytes, Address]]) -> float:
        """Move datagrams to `out` as the pace allows.

        Return the time until the next datagrams may leave, s; 0 if nothing waits.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        out : list of (bytes, Address)
            Output: datagrams are appended.
        """
        was_empty = not self._queue
        self.flush()
        self._stamp(self._queue)
        self._set_pace(was_empty, now)

        queue, made, jobs = self._queue, self._made, self.jobs
        while queue or made or jobs:
            waits = (
                self._bucket.wait(now) if queue else INFINITE,
                self._jobs_bucket.wait(now) if made or jobs else INFINITE,
            )
            may_queue, may_job = (wait <= _MIN_WAIT_S for wait in waits)
            # The pace is reached: the remaining datagrams leave in later calls.
            if not (may_queue or may_job):
                return min(waits)
            # Let a job make its datagram only now, from the present data.
            if may_job and not made and (self._is_jobs_turn or not may_queue):
                self._step(now)
            # The tokens are spent after the check, so a long datagram may leave as soon
            # as the bucket is not empty.
            if made and may_job:
                datagram = made.popleft()
                self._is_jobs_turn = False
                # Jobs to this host have no bursts that must be spread.
                cost = 1.0 if self.is_local else self._cost
                self._jobs_bucket.spend(now, len(datagram) * cost)
            elif may_queue:
                datagram = queue.popleft()
                self._queued -= len(datagram)
                self._outbox.queued -= len(datagram)
                self._is_jobs_turn = True
                self._bucket.spend(now, len(datagram) * self._cost)
            else:
                # The jobs have made no datagram: they had nothing to send, or have
                # ended.
                continue

            out.append((datagram, self.address))

        return 0.0

    def _step(self, now: float) -> None:
        """Let the jobs make their next datagram.

        The datagram waits in a separate queue, and is never dropped. Jobs make no
        further datagram before it has left.
        """
        jobs = self.jobs
        self._is_job = True
        try:
            # Call each job once at most: jobs without data must not cause an endless
            # loop.
            for _ in range(len(jobs)):
                job = jobs.popleft()
                if not job.step(self, now):
                    # The job is moved to the end of the queue, so that jobs alternate.
                    jobs.append(job)
                if self._full:
                    break

            self.flush()
        finally:
            self._is_job = False

        self._stamp(self._made)

    def _set_pace(self, was_empty: bool, now: float) -> None:
        """Set the pace of a long burst: it leaves in half of the time until the next burst.

        A long burst fills a socket buffer of default size. Without the pace, a reader
        that does not run for some ms would lose a part of it. `_cost` is set to the
        number of tokens for a byte.

        Parameters
        ----------
        was_empty : bool
            Whether all earlier datagrams have left.
        now : float
            Time of the caller's clock, s.
        """
        if not was_empty:
            # A new burst has come before all datagrams of the last burst have left.
            if self._queued > self._burst_bytes:
                self._burst_at, self._burst_bytes = now, self._queued
                self._cost = _MIN_COST if self._queued <= _LATE_BYTES else _LATE_COST
        elif self._queued > PACE_BURST_BYTES:
            spread = min((now - self._burst_at) / 2.0, MAX_SPREAD_S)
            self._burst_at, self._burst_bytes = now, self._queued
            self._cost = max(_MIN_COST, spread * PACE_BYTES_PER_S / self._queued)
        else:
            self._cost = 1.0

    def _stamp(self, queue: deque[bytes]) -> None:
        """Complete filled datagrams with header and timestamp, and append them to a queue."""
        head = self._outbox.head
        for parts in self._full:
            parts[0] = head
            # Join the parts only now, because the timestamp must be the time of
            # sending.
            queue.append(b"".join(parts))

        self._full.clear()


class Outbox:
    """Queues of all addresses.

    Parameters
    ----------
    prefix : bytes
        GUID prefix of this participant.
    hosts : collection of str
        Addresses of this host: datagrams to them may be longer.
    now : float
        Time of the caller's clock, s.

    Attributes
    ----------
    head : bytes
        Header and timestamp of the next datagrams.
    busy : dict of Destination
        Addresses with queued data.
    queued : int
        Queued bytes of all addresses.
    dropped : int
        Number of dropped datagrams.
    """

    def __init__(self, prefix: bytes, hosts: Collection[str], now: float) -> None:
        self._header = header(prefix)
        self._hosts = frozenset(hosts)
        self._now = now
        # References are weak: an address is forgotten when nothing is queued for it and
        # no endpoint uses it.
        self._destinations: WeakValueDictionary[Address, Destination] = (
            WeakValueDictionary()
        )
        self._single: list[tuple[bytes, Address]] = []
        self.head = b""
        self.busy: dict[Destination, None] = {}
        self.queued = 0
        self.dropped = 0

    def stamp(self, now: float, wall: float) -> None:
        """Set the present time, for pacing and for the timestamps of datagrams.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        wall : float
            Time since 1970, s, which peers see as the source timestamp.
        """
        if now != self._now or not self.head:
            self._now = now
            # All datagrams of one time share the header with the timestamp.
            self.head = self._header + info_ts(wall)

    def is_local(self, host: str) -> bool:
        """Return whether an address belongs to this host.

        Parameters
        ----------
        host : str
            IPv4 host in numbers.
        """
        return host in self._hosts or host.startswith(LOOPBACK_NET)

    def destination(self, address: Address) -> Destination:
        """Return the queues of an address.

        Parameters
        ----------
        address : Address
            IPv4 host in numbers, and UDP port.

        Returns
        -------
        Destination
            One object for each address, as long as it is in use.
        """
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
        """Send a separate datagram without pacing, for announcements.

        Parameters
        ----------
        address : Address
            Address of the datagram.
        *submessages : bytes
            Submessages of the datagram; each has a length that is a multiple of 4.
        """
        # Announcements are repeated, so dropping one only delays discovery by a period.
        if len(self._single) < _MAX_SINGLE:
            self._single.append((b"".join((self.head, *submessages)), address))
        else:
            self.dropped += 1

    def drain(self, now: float) -> tuple[list[tuple[bytes, Address]], float]:
        """Return the datagrams that may leave now, and the time of the next ones, s.

        The time is infinite if no others wait.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        tuple of (list of (bytes, Address), float)
            Datagrams with their addresses, and the time of the caller's clock at which
            to call again.
        """
        out, self._single = self._single, []
        later = float("inf")
        # The loop needs a copy, because finished addresses are removed.
        for destination in tuple(self.busy):
            wait = destination.drain(now, out)
            if wait > 0.0:
                later = min(later, now + wait)
            else:
                del self.busy[destination]

        return out, later
