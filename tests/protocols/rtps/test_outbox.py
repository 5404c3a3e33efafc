"""The pace of outgoing datagrams."""

from __future__ import annotations

import pytest

from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.limits import (
    LOCAL_PACE_BYTES_PER_S,
    MAX_QUEUED_BYTES,
    MAX_TOTAL_QUEUED_BYTES,
    PACE_BYTES_PER_S,
)
from botyard.protocols.rtps.outbox import Destination, Outbox

READER = ("127.0.0.1", 7412)
SUBMESSAGE = bytes(868)
BUFFER_BYTES = 212_992
"""Linux's default socket buffer."""


def sent(
    period: float, count: int, seconds: float
) -> tuple[list[tuple[float, int]], int]:
    """Return the times and lengths of datagrams for a number of submessages in each
    period, and the bytes left over.
    """
    outbox = Outbox(bytes(12), (), 0.0)
    # A destination is kept as long as an endpoint exists.
    destination = outbox.destination(READER)
    left: list[tuple[float, int]] = []
    steps = 0
    for k in range(round(seconds * 1000.0)):
        now = k * 0.001
        outbox.stamp(now, now)
        while steps * period <= now:
            steps += 1
            for _ in range(count):
                destination.add(SUBMESSAGE)

        out: list[tuple[bytes, Address]] = outbox.drain(now)[0]
        left += [(now, len(datagram)) for datagram, _ in out]

    return left, steps * count * len(SUBMESSAGE) - sum(size for _, size in left)


def most_within(left: list[tuple[float, int]], seconds: float) -> int:
    """Return the most bytes within any interval of a length."""
    return max(
        sum(size for at, size in left if begin <= at < begin + seconds)
        for begin, _ in left
    )


@pytest.mark.parametrize(
    ("period", "count", "stall"), [(0.1, 300, 0.025), (0.02, 100, 0.025)]
)
def test_bursts_are_spread(period: float, count: int, stall: float) -> None:
    """A reader that is not scheduled for a while loses nothing, and a burst has left
    before the next one.
    """
    left, rest = sent(period, count, 20 * period)
    assert most_within(left, stall) < BUFFER_BYTES
    assert rest <= 0, "headers count as sent"
    # By the fifth period the outbox knows how long a period is.
    late = [(at + 1e-6) % period for at, _ in left if at > 5 * period]
    assert max(late) <= 0.7 * period


def test_short_bursts_leave_at_once() -> None:
    """20 objects at 1 kHz."""
    left, rest = sent(0.001, 14, 1.0)
    assert rest <= 0
    assert len({at for at, _ in left}) == 1000


def test_more_than_the_spread_carries_leaves_faster() -> None:
    """Bursts that come before the last one has left do not accumulate."""
    left, rest = sent(0.02, 200, 2.0)
    assert rest <= 200 * len(SUBMESSAGE)
    assert left


class Repairs:
    """Jobs of many readers with little to send each."""

    def __init__(self) -> None:
        self.left = 0

    def step(self, destination: Destination, now: float) -> bool:
        """See `Job`."""
        self.left += 1
        destination.add(b"R" * 400)
        return True


def test_what_was_lost_is_sent_again_while_new_samples_wait() -> None:
    """Half of the datagrams are for repairs, well filled.

    Otherwise a stream that fills its share of the network would never be repaired.
    """
    outbox = Outbox(bytes(12), (), 0.0)
    destination = outbox.destination(READER)
    repairs = Repairs()
    left: list[bytes] = []
    for k in range(200):
        now = k * 0.001
        outbox.stamp(now, now)
        # Keep the queue half full, so that it never becomes empty.
        while destination._queued < MAX_QUEUED_BYTES // 2:
            destination.add(SUBMESSAGE)
        if k == 100:
            for _ in range(300):
                destination.start(repairs)

        left += [datagram for datagram, _ in outbox.drain(now)[0]]

    assert repairs.left == 300
    repaired = [datagram for datagram in left if b"RRRR" in datagram]
    assert len(repaired) < 6, "they share datagrams"
    begin, end = left.index(repaired[0]), left.index(repaired[-1])
    assert end - begin < 2 * len(repaired), "they take turns"


class Fragments:
    """A job of long datagrams."""

    def __init__(self, count: int) -> None:
        self.left = count

    def step(self, destination: Destination, now: float) -> bool:
        """See `Job`."""
        self.left -= 1
        destination.add(b"F" * (destination.limit - 100))
        return not self.left


@pytest.mark.parametrize(
    ("reader", "pace"),
    [(READER, LOCAL_PACE_BYTES_PER_S), (("10.0.0.1", 7412), PACE_BYTES_PER_S)],
)
def test_pace_of_long_samples(reader: Address, pace: float) -> None:
    """Long samples leave faster to this host; a burst of a stream is spread meanwhile."""
    outbox = Outbox(bytes(12), (), 0.0)
    destination = outbox.destination(reader)
    destination.start(Fragments(9_000_000 // destination.limit))
    size, now = 0, 0.0
    streamed: list[tuple[float, int]] = []
    while outbox.busy or not now:
        outbox.stamp(now, now)
        if not streamed:
            for _ in range(100):
                destination.add(SUBMESSAGE)
        for datagram, _ in outbox.drain(now)[0]:
            size += len(datagram)
            if SUBMESSAGE in datagram[: 2 * len(SUBMESSAGE)]:
                streamed.append((now, len(datagram)))
        now += 0.0001

    assert 0.8 * pace < size / now < 1.1 * pace
    assert most_within(streamed, 0.004) <= 2 * 64_000


def test_what_waits_is_bounded() -> None:
    """The limit holds for each address, and in total."""
    outbox = Outbox(bytes(12), (), 0.0)
    outbox.stamp(0.0, 0.0)
    destinations = [outbox.destination(("127.0.0.1", 1000 + k)) for k in range(100)]
    for destination in destinations:
        for _ in range(2 * MAX_QUEUED_BYTES // len(SUBMESSAGE)):
            destination.add(SUBMESSAGE)

    assert max(destination._queued for destination in destinations) <= MAX_QUEUED_BYTES
    assert (
        MAX_TOTAL_QUEUED_BYTES - MAX_QUEUED_BYTES
        < outbox.queued
        <= MAX_TOTAL_QUEUED_BYTES
    )
    assert outbox.dropped
    for k in range(10_000):
        outbox.drain(k * 0.01)
    assert outbox.queued == 0 and not outbox.busy
