"""On a network that loses, repeats and reorders, reliable readers get all samples in
order, and late readers get latched ones.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.protocols.rtps import submessages, wire
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.limits import MIN_KEPT_S
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.samples import Sample
from botyard.protocols.rtps.writer import HEARTBEAT_EVERY_S, REMIND_AFTER_S
from tests.protocols.rtps.network import EPOCH, Network, Node

RELIABLE = Qos(depth=1000)
BEST_EFFORT = Qos(reliable=False)
LATCHED = Qos(durability=Durability.TRANSIENT_LOCAL, depth=5)
CDR = b"\0\1\0\0"
networks = st.builds(
    Network,
    seed=st.integers(0, 10**6),
    loss=st.sampled_from([0.0, 0.1, 0.3]),
    twice=st.sampled_from([0.0, 0.2]),
    delay=st.sampled_from([0.0, 0.002, 0.05]),
)


def payload(number: int, size: int = 8) -> bytes:
    """Return a sample with a number in it."""
    return (
        CDR
        + number.to_bytes(4, "little")
        + bytes(k * 7 + number & 255 for k in range(min(size, 256))) * (size // 256 + 1)
    )


def wait(network: Network, holds: object, seconds: float = 120.0) -> None:
    """Advance time until a condition holds."""
    end = network.now + seconds
    while not holds():  # type: ignore[operator]
        assert network.now < end, "it did not come to hold"
        network.run(0.1)


class Got(list[bytes]):
    """Callback that keeps the samples of a reader."""

    def __call__(self, sample: Sample) -> None:
        self.append(sample.payload)


def pair(network: Network, qos: Qos = RELIABLE) -> tuple[Node, Node]:
    """Return a network with two participants."""
    return network.add(), network.add()


@given(
    networks,
    st.lists(st.integers(1, 30000), min_size=1, max_size=30),
    st.integers(0, 5),
)
@settings(max_examples=30)
def test_reliable_delivery_in_order(
    network: Network, sizes: list[int], burst: int
) -> None:
    """All samples arrive once and in order, small ones and fragmented ones.

    The network loses, duplicates and delays packets.
    """
    one, other = pair(network)
    got = Got()
    other.part.reader("rt/a", "T", got, RELIABLE, network.now)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched)
    sent = []
    for number, size in enumerate(sizes):
        sent.append(payload(number, size))
        writer.write(sent[-1], network.now)
        if number % (burst + 1) == 0:
            network.run(0.01)

    wait(network, lambda: len(got) >= len(sent))
    wait(network, lambda: writer not in one.part._pending.unacknowledged)
    network.run(1.0)
    assert [g[: len(s)] for g, s in zip(got, sent, strict=True)] == sent
    assert (
        one.part.count(EventKind.MALFORMED)
        == other.part.count(EventKind.MALFORMED)
        == 0
    )


@given(
    networks,
    st.integers(0, 12),
    st.integers(1, 8),
    st.sampled_from([1, 500, 9000, 20000]),
)
@settings(max_examples=30)
def test_latched_samples_reach_those_who_come_later(
    network: Network, count: int, depth: int, size: int
) -> None:
    """Late readers get the last kept samples in order; a volatile reader gets none of
    them.
    """
    one, other = pair(network)
    qos = Qos(durability=Durability.TRANSIENT_LOCAL, depth=depth)
    writer = one.part.writer("rt/map", "T", qos, network.now)
    sent = [payload(n, size) for n in range(count)]
    for sample in sent:
        writer.write(sample, network.now)
    network.run(1.0)
    late, volatile = Got(), Got()
    other.part.reader("rt/map", "T", late, qos, network.now)
    other.part.reader("rt/map", "T", volatile, RELIABLE, network.now)
    wait(network, lambda: len(writer.matched) == 2)
    wait(network, lambda: len(late) >= min(count, depth))
    network.run(1.0)
    assert [g[: len(s)] for g, s in zip(late, sent[-depth:], strict=True)] == sent[
        -depth:
    ]
    assert volatile == []
    last = payload(count, size)
    writer.write(last, network.now)
    wait(network, lambda: volatile)
    wait(network, lambda: len(late) > min(count, depth))
    assert late[-1][: len(last)] == volatile[0][: len(last)] == last


@given(networks)
@settings(max_examples=15)
def test_best_effort_never_goes_back(network: Network) -> None:
    """Each sample is newer than the one before; none is requested again."""
    one, other = pair(network)
    got = Got()
    other.part.reader("rt/a", "T", got, BEST_EFFORT, network.now)
    writer = one.part.writer("rt/a", "T", BEST_EFFORT, network.now)
    wait(network, lambda: writer.matched)
    for number in range(50):
        writer.write(payload(number), network.now)
        network.run(0.01)

    network.run(1.0)
    numbers = [int.from_bytes(g[4:8], "little") for g in got]
    assert numbers == sorted(set(numbers))
    assert network.loss or network.delay or len(numbers) >= 49


@given(networks, st.integers(0, 3))
@settings(max_examples=15)
def test_restarts(network: Network, restarts: int) -> None:
    """A writer's process that is killed and restarted delivers as a new participant.

    The old one is forgotten when its lease ends.
    """
    reader_node = network.add()
    got = Got()
    reader = reader_node.part.reader("rt/a", "T", got, LATCHED, network.now)
    for life in range(restarts + 1):
        node = network.add()
        writer = node.part.writer("rt/a", "T", LATCHED, network.now)
        writer.write(payload(life), network.now)
        wait(network, lambda n=life: len(got) == n + 1)
        if life < restarts:
            network.remove(node)

    assert [int.from_bytes(g[4:8], "little") for g in got] == list(range(restarts + 1))
    network.run(30.0)
    assert len(reader_node.part.peers) == len(reader.matched) == 1


@pytest.mark.parametrize("is_reader_deaf", [True, False])
@pytest.mark.parametrize("seconds", [10.0, 60.0])
def test_one_loses_sight_of_the_other(is_reader_deaf: bool, seconds: float) -> None:
    """A one-way link for less and more than a lease:

    afterwards delivery goes on, and no old sample comes twice.
    """
    network = Network()
    one, other = pair(network)
    got, latched = Got(), Got()
    other.part.reader("rt/a", "T", got, RELIABLE, network.now)
    other.part.reader("rt/map", "T", latched, LATCHED, network.now)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    map_writer = one.part.writer("rt/map", "T", LATCHED, network.now)
    map_writer.write(payload(0), network.now)
    wait(network, lambda: writer.matched and latched)
    for number in range(3):
        writer.write(payload(number), network.now)
    network.run(2.0)
    network.deaf = other if is_reader_deaf else one
    network.run(seconds)
    map_writer.write(payload(1), network.now)
    network.deaf = None
    wait(network, lambda: latched[-1] == payload(1))
    wait(network, lambda: writer.matched)
    for number in range(3, 6):
        writer.write(payload(number), network.now)
    wait(network, lambda: got[-1] == payload(5))
    network.run(5.0)
    assert got == [payload(number) for number in range(6)]


def test_a_slow_reader_gets_what_is_still_kept() -> None:
    """A writer with a history of 10 never waits, and announces lost samples.

    It keeps recent samples even beyond 10.
    """
    network = Network()
    one, other = pair(network)
    got = Got()
    reader = other.part.reader("rt/a", "T", got, RELIABLE, network.now)
    writer = one.part.writer("rt/a", "T", Qos(depth=10), network.now)
    wait(network, lambda: writer.matched and reader.matched)
    network.run(2.0)
    network.loss = 1.0
    for number in range(100):
        writer.write(payload(number), network.now)
        network.run(0.01)

    network.loss = 0.0
    wait(network, lambda: got and got[-1] == payload(99))
    numbers = [int.from_bytes(g[4:8], "little") for g in got]
    assert numbers == list(range(numbers[0], 100))
    assert len(numbers) == pytest.approx(MIN_KEPT_S / 0.01, abs=2)
    network.loss = 1.0
    for number in range(100, 200):
        writer.write(payload(number), network.now)
        network.run(0.1)

    network.loss = 0.0
    wait(network, lambda: got[-1] == payload(199))
    assert [int.from_bytes(g[4:8], "little") for g in got[len(numbers) :]] == list(
        range(190, 200)
    )


def test_a_fast_stream_bears_a_loss() -> None:
    """At 1 kHz ten samples last ten milliseconds:

    a lost sample is still kept when the reader requests it.
    """
    network = Network(delay=0.004)
    one, other = pair(network)
    got = Got()
    reader = other.part.reader("rt/a", "T", got, RELIABLE, network.now)
    writer = one.part.writer("rt/a", "T", Qos(depth=10), network.now)
    wait(network, lambda: writer.matched and reader.matched)
    network.run(2.0)
    for number in range(1000):
        network.loss = 1.0 if number % 200 == 100 else 0.0
        writer.write(payload(number), network.now)
        network.run(0.001)

    wait(network, lambda: got[-1] == payload(999))
    assert [int.from_bytes(g[4:8], "little") for g in got] == list(range(1000))


def test_a_fast_stream_has_few_heartbeats() -> None:
    """One for several samples.

    The last one is announced before a reminder is due, so that a loss is noticed soon.
    """
    network = Network()
    one, other = pair(network)
    got = Got()
    reader = other.part.reader("rt/a", "T", got, RELIABLE, network.now)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched and reader.matched)
    network.run(2.0)
    before = writer._count
    for number in range(1000):
        network.loss = 1.0 if number >= 999 else 0.0
        writer.write(payload(number), network.now)
        network.run(0.001)

    assert 0 < writer._count - before <= 1.1 / HEARTBEAT_EVERY_S
    network.loss = 0.0
    network.run(REMIND_AFTER_S / 2)
    assert got == [payload(number) for number in range(1000)]
    before = writer._count
    for number in range(10):
        writer.write(payload(number), network.now)
        network.run(0.1)

    assert writer._count - before >= 10, "one with each sample of a slow stream"


def test_for_readers_of_best_effort_nothing_is_kept() -> None:
    """Best-effort readers cannot request samples; a late reliable reader gets the
    samples from then on.
    """
    network = Network()
    one, other = pair(network)
    loose, strict = Got(), Got()
    other.part.reader("rt/a", "T", loose, BEST_EFFORT, network.now)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched)
    for number in range(20):
        writer.write(payload(number), network.now)
    network.run(0.1)
    assert len(loose) == 20
    assert len(writer.kept) == 0
    reader = other.part.reader("rt/a", "T", strict, RELIABLE, network.now)
    wait(network, lambda: len(writer.matched) == 2 and reader.matched)
    network.run(1.0)
    network.loss = 0.3
    for number in range(20, 60):
        writer.write(payload(number, 1 + number % 7), network.now)
        network.run(0.01)

    network.loss = 0.0
    wait(network, lambda: len(strict) == 40)
    assert [int.from_bytes(g[4:8], "little") for g in strict] == list(range(20, 60))


def test_what_all_have_acknowledged_is_not_kept() -> None:
    """Acknowledged volatile samples are dropped, also samples for one reader that
    others never acknowledge.

    Latched ones stay.
    """
    network = Network()
    one, other, third = network.add(), network.add(), network.add()
    readers = [
        n.part.reader("rr/a", "T", Got(), RELIABLE, network.now) for n in (other, third)
    ]
    writer = one.part.writer("rr/a", "T", RELIABLE, network.now)
    latched = one.part.writer("rt/map", "T", LATCHED, network.now)
    other.part.reader("rt/map", "T", Got(), LATCHED, network.now)
    wait(
        network,
        lambda: (
            len(writer.matched) == 2
            and latched.matched
            and all(r.matched for r in readers)
        ),
    )
    network.run(1.0)
    for number in range(20):
        writer.write(payload(number, 20_000), network.now)
        writer.write_to(readers[0].guid, payload(number, 20_000), network.now)
        latched.write(payload(number), network.now)
        network.run(0.02)

    assert len(writer.kept) > 0
    wait(network, lambda: len(writer.kept) == 0)
    assert len(latched.kept) == LATCHED.depth
    network.loss = 1.0
    writer.write_to(readers[0].guid, payload(99), network.now)
    network.run(1.0)
    assert len(writer.kept) == 1
    network.remove(other)
    wait(network, lambda: len(writer.kept) == 0)


@pytest.mark.parametrize("seed", range(8))
def test_one_that_is_announced_to_by_nobody_else(seed: int) -> None:
    """A static peer that does not name us learns of us only by our answer, which may be
    lost repeatedly.
    """
    network = Network(seed=seed, loss=0.4)
    one, other = pair(network)
    one.part._discovery._announce_to = ()
    reader = other.part.reader("rt/a", "T", Got(), RELIABLE, network.now)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched and reader.matched, 60.0)


def test_samples_say_when_they_were_sent() -> None:
    """Timestamps count from 1970 by the writer's clock, also after a pause and for
    several datagrams at once.
    """
    network = Network()
    one, other = pair(network)
    stamps: list[float] = []
    other.part.reader(
        "rt/a", "T", lambda sample: stamps.append(sample.stamp), RELIABLE, network.now
    )
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched)
    network.run(2.0)
    for _ in range(2):
        # Move the clock alone, so that no callback runs in between.
        network.now += 0.3
        for number in range(5):
            writer.write(payload(number, 3000), network.now)
        network.run(0.05)
        assert stamps[-5:] == pytest.approx(
            [network.now - 0.05 + EPOCH] * 5, rel=0, abs=2e-3
        )


def test_samples_for_one_reader() -> None:
    """Other readers do not get them, and miss nothing."""
    network = Network(loss=0.2, seed=3)
    one, other, third = network.add(), network.add(), network.add()
    gots = [Got(), Got()]
    readers = [
        node.part.reader("rr/a", "T", got, RELIABLE, network.now)
        for node, got in zip((other, third), gots, strict=True)
    ]
    writer = one.part.writer("rr/a", "T", RELIABLE, network.now)
    wait(network, lambda: len(writer.matched) == 2 and all(r.matched for r in readers))
    network.run(5.0)
    for number in range(40):
        assert writer.write_to(readers[number % 2].guid, payload(number), network.now)
        network.run(0.02)

    writer.write(payload(99), network.now)
    wait(network, lambda: all(len(g) == 21 for g in gots))
    for k, got in enumerate(gots):
        assert [int.from_bytes(g[4:8], "little") for g in got] == [*range(k, 40, 2), 99]
    assert not writer.write_to(b"x" * 16, payload(0), network.now)


def test_samples_for_one_reader_come_at_once() -> None:
    """Earlier samples for others are announced as irrelevant in the same packet, and a
    loss at the end is noticed soon.
    """
    network = Network()
    one, other, third = network.add(), network.add(), network.add()
    gots = [Got(), Got()]
    readers = [
        node.part.reader("rr/a", "T", got, RELIABLE, network.now)
        for node, got in zip((other, third), gots, strict=True)
    ]
    writer = one.part.writer("rr/a", "T", RELIABLE, network.now)
    wait(network, lambda: len(writer.matched) == 2 and all(r.matched for r in readers))
    network.run(1.0)
    for number in range(10):
        writer.write_to(readers[number % 2].guid, payload(number), network.now)
        network.run(0.002)
        assert len(gots[number % 2]) == number // 2 + 1

    network.loss = 1.0
    writer.write_to(readers[0].guid, payload(10), network.now)
    network.run(0.01)
    network.loss = 0.0
    network.run(0.5)
    assert len(gots[0]) == 6


def test_a_large_map() -> None:
    """Twenty megabytes through a lossy network, to two late readers in one process."""
    network = Network(loss=0.05, seed=1)
    one, other = pair(network)
    writer = one.part.writer("rt/map", "T", LATCHED, network.now)
    data = CDR + bytes(range(256)) * 80_000
    writer.write(data, network.now)
    gots = [Got(), Got()]
    for got in gots:
        other.part.reader("rt/map", "T", got, LATCHED, network.now, limit=1 << 26)
    wait(network, lambda: all(gots))
    assert all(got == [data] for got in gots)
    sent = one.sent
    assert sent < 2.5 * len(data), "sent once for both, but for what was lost"


@pytest.mark.parametrize("is_local", [True, False])
def test_fragments_are_as_long_as_the_path_allows(is_local: bool) -> None:
    """On one host a fragment fills a datagram, and lost ones are repeated at once."""
    network = Network(seed=3)
    hosts = ("10.0.0.1", "10.0.0.2") if is_local else ()
    one, other = network.add(hosts=hosts), network.add(hosts=hosts)
    wait(network, lambda: one.part.peers and other.part.peers)
    sizes: set[int] = set()
    feed = other.part.feed

    def watch(packet: bytes, source: Any, now: float) -> None:
        for kind, flags, at, end in submessages.submessages(packet):
            if kind == wire.DATA_FRAG:
                layout = wire.LAYOUTS[flags & wire.LITTLE]
                head = submessages.read_data_frag(packet, at, end, layout)
                sizes.add(head.fragment_size)
        feed(packet, source, now)

    other.part.feed = watch  # type: ignore[method-assign]
    network.loss = 0.3
    got = Got()
    writer = one.part.writer("rt/map", "T", LATCHED, network.now)
    data = CDR + bytes(range(256)) * 35_000
    writer.write(data, network.now)
    begin = network.now
    other.part.reader("rt/map", "T", got, LATCHED, begin, limit=1 << 26)
    wait(network, lambda: got)
    assert got == [data]
    assert sizes == {58 << 10 if is_local else 8064}
    if is_local:
        assert network.now - begin < 2.0


@pytest.mark.parametrize("limit", [1000, 10**6])
def test_samples_that_are_too_long_are_skipped(limit: int) -> None:
    """They cause an event, and later samples are delivered."""
    network = Network()
    one, other = pair(network)
    got = Got()
    other.part.reader("rt/a", "T", got, RELIABLE, network.now, limit=limit)
    writer = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: writer.matched)
    network.run(2.0)
    writer.write(CDR + bytes(100_000), network.now)
    writer.write(payload(1), network.now)
    wait(network, lambda: got and got[-1].startswith(payload(1)[:8]))
    assert len(got) == (1 if limit == 1000 else 2)
    assert other.part.count(EventKind.REFUSED) >= (limit == 1000)
