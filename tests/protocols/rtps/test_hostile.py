"""Arbitrary bytes:

no exception, bounded memory and output, and no amplification towards a victim.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.protocols.rtps import guids, limits, parameters, submessages, wire
from botyard.protocols.rtps.discoverydata import (
    EndpointData,
    ParticipantData,
    encode_key,
)
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.shares import SHARES
from tests.protocols.rtps.network import EPOCH, GROUP, Network, Node
from tests.protocols.rtps.test_delivery import (
    CDR,
    LATCHED,
    RELIABLE,
    Got,
    payload,
    wait,
)

SOURCE = ("10.9.9.9", 7410)
VICTIM = ("10.8.8.8", 7410)


class Recorder:
    """A conversation with every kind of submessage, and one of its participants in its
    final state.
    """

    def __init__(self) -> None:
        network = Network(seed=8, loss=0.2, delay=0.01)
        one, other = network.add(), network.add()
        self.packets: list[bytes] = []
        feed = other.part.feed

        def record(packet: bytes, source: Any, now: float) -> None:
            self.packets.append(packet)
            feed(packet, source, now)

        other.part.feed = record  # type: ignore[method-assign]
        for part, there in ((one.part, other.part), (other.part, one.part)):
            writer = part.writer("rt/a", "T", LATCHED, network.now)
            there.reader("rt/a", "T", Got(), LATCHED, network.now)
            for number in range(12):
                writer.write(payload(number, 40), network.now)
            writer.write(CDR + bytes(20_000), network.now)
            directed = part.writer("rr/a", "T", RELIABLE, network.now)
            reader = there.reader("rr/a", "T", Got(), RELIABLE, network.now)
            there.reader("rr/a", "T", Got(), RELIABLE, network.now)
            wait(network, lambda d=directed: len(d.matched) == 2)
            wait(network, lambda w=writer: w.matched)
            for number in range(5):
                directed.write(payload(number), network.now)
                directed.write_to(
                    reader.guid,
                    CDR,
                    network.now,
                    parameters.related_identity(parameters.Identity(reader.guid, 1)),
                )
                network.run(0.05)

            network.run(3.0)
            part.remove(directed, network.now)

        network.run(2.0)
        self.node, self.source, self.now = other, one.address, network.now
        other.part.feed = feed  # type: ignore[method-assign]

    def of_each_kind(self) -> list[bytes]:
        """Return the shortest packet with each kind of submessage."""
        best: dict[tuple[int, int], bytes] = {}
        for packet in self.packets:
            for kind, flags, _, _ in submessages.submessages(packet):
                if len(packet) < len(best.get((kind, flags), bytes(2000))):
                    best[kind, flags] = packet

        return list(dict.fromkeys(best.values()))


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """One recorder for all tests, which only feed it more."""
    return Recorder()


def swapped(packet: bytes) -> bytes:
    """Return the submessages marked as big-endian with lengths that fit:

    other numbers, well formed.
    """
    parts = [packet[:20]]
    for kind, flags, at, end in submessages.submessages(packet):
        parts.append(struct.pack(">BBH", kind, flags & ~1, end - at) + packet[at:end])
    return b"".join(parts)


def test_every_kind_was_recorded(recorder: Recorder) -> None:
    """Otherwise the tests below would cover less than they claim."""
    kinds = {
        kind
        for packet in recorder.packets
        for kind, _, _, _ in submessages.submessages(packet)
    }
    assert {
        wire.ACKNACK,
        wire.HEARTBEAT,
        wire.GAP,
        wire.INFO_TS,
        wire.INFO_DST,
        wire.NACK_FRAG,
        wire.DATA,
        wire.DATA_FRAG,
    } <= kinds


def test_cut_and_flipped(recorder: Recorder) -> None:
    """Each packet truncated at every byte, and with each byte changed."""
    part, now = recorder.node.part, recorder.now
    noise = random.Random(1)
    fed = 0
    for original in recorder.of_each_kind():
        for packet in (original, swapped(original)):
            for k in range(len(packet)):
                now += 1e-4
                part.feed(packet[:k], recorder.source, now)
                changed = bytearray(packet)
                changed[k] ^= 1 << noise.randrange(8)
                part.feed(bytes(changed), recorder.source, now)
                fed += 2

            part.due(now)
            part.out()

    assert fed > 4000
    assert part.count(EventKind.MALFORMED) > 100


headers = st.sampled_from([b"", wire.header(wire.VENDOR + bytes(10))])
kinds = st.sampled_from([1, 6, 7, 8, 9, 12, 14, 15, 18, 19, 21, 22, 48, 128])
random_submessages = st.builds(
    lambda kind, flags, body, lie: (
        struct.pack("<BB", kind, flags)
        + struct.pack("<H" if flags & 1 else ">H", (len(body) + lie) & 0xFFFF)
        + body
    ),
    kinds,
    st.integers(0, 15),
    st.binary(max_size=90),
    st.sampled_from([0, 0, 0, 1, 400]),
)


@given(headers, st.lists(random_submessages, max_size=5))
@settings(max_examples=300)
def test_anything(recorder: Recorder, head: bytes, parts: list[bytes]) -> None:
    """The GUID may also belong to a known participant."""
    part = recorder.node.part
    tail = b"".join(parts)
    known = wire.header(part.peers[0].prefix)
    for packet in (
        head + tail,
        known + tail,
        known + wire.info_dst(part.guid[:12]) + tail,
    ):
        part.feed(packet, recorder.source, recorder.now)

    part.due(recorder.now)
    part.out()


@given(st.binary(max_size=200))
def test_any_lists(data: bytes) -> None:
    """Parameter lists are read, or refused with the one error."""
    for head in (b"\0\3\0\0", b"\0\2\0\0", b""):
        for read in (ParticipantData.read, EndpointData.read, parameters.read_list):
            try:
                read(head + data)
            except wire.MalformedError:
                continue


def announcement(
    number: int, address: tuple[str, int] = SOURCE, sample: int = 1, **more: Any
) -> bytes:
    """Return the SPDP announcement of a participant."""
    prefix = b"\1\x0f" + number.to_bytes(10, "big")
    about = replace(
        ParticipantData(prefix + guids.PARTICIPANT, (address,), (address,)), **more
    )
    pair = guids.SPDP_READER + guids.SPDP_WRITER
    return wire.header(prefix) + wire.data(pair, sample, about.encode())


def alone() -> Participant:
    """Return a participant without peers."""
    return Participant(
        wire.VENDOR + bytes(10), [("10.0.0.1", 7410)], [GROUP], 0.0, EPOCH
    )


def test_participants_are_bounded() -> None:
    """For any number of announcements from any number of addresses; excess ones are not
    parsed.
    """
    part = alone()
    for number in range(5000):
        part.feed(
            announcement(number),
            (f"10.1.{number >> 8}.{number & 255}", 7410),
            number * 0.01,
        )
        part.due(number * 0.01)
        part.out()

    assert len(part.peers) <= limits.MAX_PARTICIPANTS
    assert len(part.take_events()) <= limits.MAX_EVENTS
    flooded = alone()
    for number in range(200):
        flooded.feed(announcement(number), SOURCE, 1.0)
    assert len(flooded.peers) == limits.ANNOUNCEMENTS_PER_S


@pytest.mark.parametrize(
    "more",
    [
        {"domain": 3},
        {"tag": "x"},
        {"metatraffic": (), "default": ()},
        {"builtin": None},
        {"lease": 1e9},
    ],
)
def test_strange_participants(more: dict[str, Any]) -> None:
    """Participants of another domain and similar ones are reported once and forgotten;
    an endless lease ends.
    """
    part = alone()
    packet = announcement(
        1, **{k: v for k, v in more.items() if k in ("metatraffic", "default", "lease")}
    )
    at = packet.index(bytes.fromhex("0100 0000"), 60)
    if "domain" in more:
        packet = (
            packet[:-4]
            + parameters.parameter(parameters.DOMAIN_ID, parameters.int32s(3))
            + parameters.END
        )

    if "tag" in more:
        packet = (
            packet[:-4]
            + parameters.parameter(parameters.DOMAIN_TAG, parameters.string("x"))
            + parameters.END
        )

    if "builtin" in more:
        at = packet.index(struct.pack("<HH", parameters.BUILTIN_ENDPOINT_SET, 4))
        packet = packet[:at] + packet[at + 8 :]

    # A length of 0 makes the submessage extend to the end of the packet.
    packet = packet[:22] + b"\0\0" + packet[24:]
    for _ in range(5):
        part.feed(packet, SOURCE, 1.0)
    if "lease" in more:
        assert len(part.peers) == 1
        part.due(1.0 + limits.MAX_LEASE_S + 2.0)

    assert part.peers == []
    assert part.count(EventKind.REFUSED) == (
        "domain" in more or "tag" in more or "metatraffic" in more
    )
    assert at > 0


class Attacker:
    """A peer that writes a participant's packets by hand."""

    def __init__(
        self,
        part: Participant,
        announced: tuple[str, int],
        source: tuple[str, int] = SOURCE,
        **more: Any,
    ) -> None:
        self.part, self.source, self.now = part, source, 1.0
        self.prefix = b"\1\x0f" + (7).to_bytes(10, "big")
        self.sent = 0
        self.got: list[tuple[bytes, tuple[str, int]]] = []
        self._numbers: dict[bytes, int] = {}
        self.send(announcement(7, announced, **more)[20:])

    def send(self, *parts: bytes) -> None:
        """Send a packet."""
        packet = b"".join(
            (wire.header(self.prefix), wire.info_dst(self.part.guid[:12]), *parts)
        )
        self.sent += len(packet)
        self.part.feed(packet, self.source, self.now)

    def run(self, seconds: float) -> None:
        """Advance time."""
        for _ in range(round(seconds * 100)):
            self.now += 0.01
            self.part.due(self.now)
            self.got += self.part.out()

    def endpoint(
        self,
        number: int,
        topic: str,
        *,
        is_writer: bool,
        qos: Qos = RELIABLE,
        locators: Any = (),
    ) -> bytes:
        """Announce an endpoint and return its GUID."""
        guid = self.prefix + number.to_bytes(3, "big") + bytes((3 if is_writer else 4,))
        writer = guids.PUBLICATIONS_WRITER if is_writer else guids.SUBSCRIPTIONS_WRITER
        self._numbers[writer] = self._numbers.get(writer, 0) + 1
        about = EndpointData(guid, topic, "T", qos, locators=locators).encode()
        self.send(wire.data(wire.ANY + writer, self._numbers[writer], about))
        return guid

    def to(self, address: tuple[str, int]) -> int:
        """Return the bytes sent to an address."""
        return sum(len(packet) for packet, where in self.got if where == address)


@pytest.mark.parametrize(
    ("announced", "source", "is_known"),
    [
        ("10.0.0.1", "127.0.0.1", True),
        (VICTIM[0], "127.0.0.1", False),
        ("10.0.0.1", SOURCE[0], False),
        ("127.0.0.1", SOURCE[0], False),
    ],
)
def test_all_addresses_of_this_host_are_one(
    announced: str, source: str, is_known: bool
) -> None:
    """Fast DDS sends from the loopback, and announces only the network card."""
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    attacker = Attacker(part, (announced, 7412), (source, 5555))
    attacker.endpoint(1, "rt/a", is_writer=False)
    attacker.run(1.0)
    assert bool(writer.matched) == is_known
    assert [peer.host for peer in part.peers] == [announced if is_known else ""]


def test_nobody_lets_us_send_to_a_victim() -> None:
    """A peer that announces a victim's address and requests everything makes us send
    hardly more than it sent.
    """
    part = alone()
    for number in range(1000):
        part.writer(f"rt/r{number}", "T", RELIABLE, 0.0)
    latched = part.writer("rt/map", "T", LATCHED, 0.0)
    latched.write(CDR + bytes(10**6), 0.0)
    attacker = Attacker(part, VICTIM)
    attacker.endpoint(1, "rt/map", is_writer=False, qos=LATCHED, locators=(VICTIM,))
    for count in range(1, 100):
        attacker.send(
            wire.acknack(
                guids.PUBLICATIONS_READER,
                guids.PUBLICATIONS_WRITER,
                1,
                range(1, 257),
                count,
            )
        )
        attacker.send(wire.acknack(b"\0\0\1\4", latched.entity, 1, [1], count))
        attacker.run(0.2)

    assert attacker.to(VICTIM) < attacker.sent / 2
    assert attacker.to(VICTIM) < 3000
    assert attacker.to(SOURCE) == 0
    assert latched.matched == {}


victims = st.lists(
    st.tuples(
        st.sampled_from(["10.8.8.8", "10.8.8.9", "127.0.0.1"]), st.integers(1, 65535)
    ),
    min_size=1,
    max_size=20,
)
spoofed = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 4),
        victims,
        st.binary(max_size=300),
        st.floats(0.0, 4.0),
    ),
    min_size=1,
    max_size=30,
)


@given(spoofed)
def test_little_is_sent_to_whoever_is_announced(
    packets: list[tuple[int, int, list[tuple[str, int]], bytes, float]],
) -> None:
    """For any repetition, addresses and names:

    at most three bytes for each received byte.
    """
    part = alone()
    for k in range(20):
        part.writer(f"rt/r{k}", "T", LATCHED, 0.0).write(CDR + bytes(1000), 0.0)
    now, fed, sent = 0.0, 0, 0
    for who, number, addresses, user, pause in packets:
        prefix = b"\1\x0f" + who.to_bytes(10, "big")
        about = ParticipantData(
            prefix + guids.PARTICIPANT,
            tuple(addresses),
            tuple(addresses),
            user_data=user,
        )
        packet = wire.header(prefix) + wire.data(
            guids.SPDP_READER + guids.SPDP_WRITER, number, about.encode()
        )
        fed += len(packet)
        part.feed(packet, VICTIM, now)
        for _ in range(1 + int(pause * 20)):
            now += 0.05
            part.due(now)
            out = [(len(p), where) for p, where in part.out() if where != GROUP]
            assert all(not host.startswith("127.") for _, (host, _) in out), (
                "it came from elsewhere"
            )
            sent += sum(size for size, _ in out)

        assert sent <= limits.MAX_AMPLIFICATION * fed

    part.announce_departure(now)
    assert [where for _, where in part.out()] == [GROUP]


@pytest.mark.parametrize(
    "number",
    [2**63 - 1, 2**63 - 2, 2**63 - 256, 2**63 - 257, 2**63 - 258, 2**32 - 1, 2**31],
)
def test_numbers_at_the_end_of_what_there_is(number: int) -> None:
    """Numbers at the ends of their ranges raise nothing, in any order."""
    part = alone()
    got = Got()
    part.reader("rt/a", "T", got, RELIABLE, 0.0)
    writer = part.writer("rt/b", "T", RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    guid = attacker.endpoint(1, "rt/a", is_writer=True)
    attacker.endpoint(2, "rt/b", is_writer=False)
    pair = wire.ANY + guid[12:]
    for count in range(1, 4):
        for packet in (
            wire.heartbeat(wire.ANY, guid[12:], number, number, 3 * count),
            wire.data(pair, number, CDR),
            wire.gap(wire.ANY, guid[12:], number, number, [number, number + 255]),
            wire.gap(wire.ANY, guid[12:], 1, number, [number, number + 255]),
            wire.data_frag(pair, number, 1, 100, 200, bytes(100)),
            wire.heartbeat(wire.ANY, guid[12:], 1, number, 3 * count + 1),
            wire.acknack(
                b"\0\0\2\4", writer.entity, number, [number, number + 255], count
            ),
            wire.nack_frag(b"\0\0\2\4", writer.entity, number, [1], count),
        ):
            attacker.send(packet)
            attacker.run(0.3)

    writer.write(CDR, attacker.now)
    attacker.run(1.0)


def test_two_participants_of_one_guid() -> None:
    """As with copied virtual machines:

    the first one stays served, the other one when the first is silent for its lease.
    """
    network = Network()
    server, one = network.add(), network.add()
    got = Got()
    server.part.reader("rt/a", "T", got, RELIABLE, network.now)
    first = one.part.writer("rt/a", "T", RELIABLE, network.now)
    wait(network, lambda: first.matched)
    # Count back, so that the next participant has the same prefix.
    network._made -= 1
    twin = network.add()
    assert twin.part.guid == one.part.guid and twin.address != one.address
    second = twin.part.writer("rt/a", "T", RELIABLE, network.now)
    for number in range(50):
        first.write(payload(number), network.now)
        second.write(payload(1000 + number), network.now)
        network.run(0.5)

    assert [int.from_bytes(g[4:8], "little") for g in got] == list(range(50))
    assert 1 <= server.part.count(EventKind.REFUSED) < 5
    network.remove(one)
    wait(network, lambda: second.matched)
    second.write(payload(2000), network.now)
    wait(network, lambda: got[-1] == payload(2000))


@pytest.mark.parametrize("lease", [0.0, 0.5, 2.0])
def test_short_leases(lease: float) -> None:
    """A participant whose lease ends before its next packet comes and goes, and nothing
    is kept of it.
    """
    part = alone()
    before = kept(part, set())
    got = Got()
    reader = part.reader("rt/a", "T", got, RELIABLE, 0.0)
    for number in range(20):
        attacker = Attacker(part, SOURCE, lease=lease)
        attacker.now = 1.0 + 10.0 * number
        attacker.endpoint(1, "rt/a", is_writer=True)
        attacker.run(max(3.0, 2.0 * lease))
        assert not part.peers and not reader.matched

    part.remove(reader, 1000.0)
    part.take_events()
    assert kept(part, set()) < before + 50


@pytest.mark.parametrize("size", [4097, 60_000])
def test_user_data_of_any_length(size: int) -> None:
    """Participants and endpoints with such user data are served."""
    part = alone()
    attacker = Attacker(part, SOURCE, user_data=bytes(size))
    reader = part.reader("rt/a", "T", Got(), RELIABLE, 0.0)
    about = EndpointData(
        attacker.prefix + b"\0\0\1\3", "rt/a", "T", RELIABLE, bytes(size)
    )
    attacker.send(wire.data(wire.ANY + guids.PUBLICATIONS_WRITER, 1, about.encode()))
    assert part.peers[0].data.user_data == b""
    assert len(reader.matched) == 1


def test_all_held_samples_are_bounded() -> None:
    """Of many writers that each leave out the first sample; delivered or dropped
    samples no longer count.
    """
    part = alone()
    got = Got()
    part.reader("rt/a", "T", got, RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    writers = [attacker.endpoint(k + 1, "rt/a", is_writer=True)[12:] for k in range(40)]
    for writer in writers:
        for number in range(2, 60):
            attacker.send(wire.data(wire.ANY + writer, number, CDR + bytes(50_000)))

    inbox = part._inbox
    share = limits.MAX_TOTAL_HELD_BYTES // SHARES
    assert share - 60_000 < inbox.held.used <= share
    for writer in writers[:5]:
        attacker.send(wire.data(wire.ANY + writer, 1, CDR))
        attacker.send(wire.heartbeat(wire.ANY, writer, 1, 60, 1))

    assert len(got) > 100
    attacker.now += 1000.0
    part.due(attacker.now)
    assert inbox.held.used == 0


def test_an_endpoint_elsewhere_is_not_served() -> None:
    """A verified participant may not name other hosts for its endpoints."""
    part = alone()
    latched = part.writer("rt/map", "T", LATCHED, 0.0)
    latched.write(CDR + bytes(10**6), 0.0)
    attacker = Attacker(part, SOURCE)
    guid = attacker.endpoint(
        1, "rt/map", is_writer=False, qos=LATCHED, locators=(VICTIM,)
    )
    attacker.run(5.0)
    assert attacker.to(VICTIM) == 0
    assert guid in latched.matched, "it is served at its participant's address"


def test_asking_again_and_again_is_limited() -> None:
    """A reader that repeats its request gets no more than its budget."""
    part = alone()
    writer = part.writer("rt/a", "T", replace(LATCHED, depth=100), 0.0)
    for number in range(100):
        writer.write(CDR + number.to_bytes(4, "big") * 1500, 0.0)
    attacker = Attacker(part, SOURCE)
    attacker.endpoint(1, "rt/a", is_writer=False, qos=LATCHED)
    for count in range(1, 2000):
        attacker.send(wire.acknack(b"\0\0\1\4", writer.entity, 1, range(1, 101), count))
        attacker.run(0.01)

    allowed = 600_000 + limits.RESEND_BURST_BYTES + 20.0 * limits.RESEND_BYTES_PER_S
    assert 0.5 * allowed < attacker.to(SOURCE) < 1.1 * allowed


def heartbeats(packets: list[tuple[bytes, Any]], writer: bytes) -> int:
    """Return the number of HEARTBEATs of a writer."""
    return sum(
        kind == wire.HEARTBEAT
        and submessages.read_heartbeat(packet, at, end, wire.OURS).writer == writer
        for packet, _ in packets
        for kind, _, at, end in submessages.submessages(packet)
    )


def test_a_silent_reader_is_asked_ever_less_often_until_it_speaks() -> None:
    """A reader that does not repeat its requests, as Fast DDS, is asked again soon
    after its next packet.
    """
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    attacker.endpoint(1, "rt/a", is_writer=False)
    writer.write(CDR, attacker.now)
    attacker.run(60.0)
    assert 5 < heartbeats(attacker.got, writer.entity) < 20
    attacker.got.clear()
    attacker.send(wire.acknack(b"\0\0\1\4", writer.entity, 1, [1], 1))
    attacker.run(0.6)
    assert heartbeats(attacker.got, writer.entity) >= 3
    attacker.send(wire.acknack(b"\0\0\1\4", writer.entity, 2, [], 2, final=True))
    attacker.run(1.0)
    attacker.got.clear()
    attacker.run(60.0)
    assert heartbeats(attacker.got, writer.entity) == 0, "all is acknowledged"


@pytest.mark.parametrize("with_volatile", [False, True])
def test_latched_fragments_are_for_those_who_want_them(with_volatile: bool) -> None:
    """All readers of a participant share them.

    If one of the readers must not get old samples, fragments name the other one.
    """
    part = alone()
    writer = part.writer("rt/map", "T", LATCHED, 0.0)
    writer.write(CDR + bytes(20_000), 0.0)
    attacker = Attacker(part, SOURCE)
    latched = attacker.endpoint(1, "rt/map", is_writer=False, qos=LATCHED)
    attacker.endpoint(
        2, "rt/map", is_writer=False, qos=RELIABLE if with_volatile else LATCHED
    )
    attacker.send(wire.acknack(latched[12:], writer.entity, 1, [1], 1))
    attacker.run(0.1)
    readers = {
        submessages.read_data_frag(packet, at, end, wire.OURS).reader
        for packet, _ in attacker.got
        for kind, _, at, end in submessages.submessages(packet)
        if kind == wire.DATA_FRAG
    }
    assert readers == {latched[12:] if with_volatile else wire.ANY}


def test_heartbeats_for_a_volatile_reader_keep_the_first_number_of_the_writer() -> None:
    """Cyclone DDS takes the first number of any HEARTBEAT for the whole writer: its
    latched readers would lose earlier samples.

    A GAP excludes samples for one reader.
    """
    part = alone()
    writer = part.writer("rt/map", "T", LATCHED, 0.0)
    for _ in range(3):
        writer.write(CDR, 0.0)
    attacker = Attacker(part, SOURCE)
    volatile = attacker.endpoint(1, "rt/map", is_writer=False, qos=RELIABLE)
    latched = attacker.endpoint(2, "rt/map", is_writer=False, qos=LATCHED)
    attacker.send(wire.acknack(volatile[12:], writer.entity, 0, [], 1))
    attacker.run(2.0)
    firsts, gaps = set(), {}
    for packet, _ in attacker.got:
        for kind, _, at, end in submessages.submessages(packet):
            if kind == wire.HEARTBEAT:
                said = submessages.read_heartbeat(packet, at, end, wire.OURS)
                if said.writer == writer.entity:
                    firsts.add(said.first)
                    # The GAP comes before the first HEARTBEAT that names the reader.
                    assert said.reader != volatile[12:] or volatile[12:] in gaps
            elif kind == wire.GAP:
                gap = submessages.read_gap(packet, at, end, wire.OURS)
                gaps[gap.reader] = (gap.start, gap.base)
    assert firsts == {1}
    assert gaps == {volatile[12:]: (1, 4)} and latched[12:] not in gaps


def test_what_is_for_another_participant_is_not_taken() -> None:
    """Several participants may share an address."""
    part = alone()
    got = Got()
    part.reader("rt/a", "T", got, RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    guid = attacker.endpoint(1, "rt/a", is_writer=True)
    sample = wire.data(wire.ANY + guid[12:], 1, CDR)
    attacker.send(wire.info_dst(b"x" * 12), sample)
    assert got == []
    attacker.send(wire.info_dst(b"x" * 12), wire.info_dst(wire.NOBODY), sample)
    assert got == [CDR]


def test_datagrams_leave_at_a_pace_that_a_socket_buffer_takes() -> None:
    """Datagrams of one step are spread over it, in order and complete."""
    part = alone()
    writer = part.writer("rt/a", "T", replace(RELIABLE, depth=200), 0.0)
    attacker = Attacker(part, SOURCE)
    attacker.endpoint(1, "rt/a", is_writer=False)
    for number in range(100):
        writer.write(CDR + number.to_bytes(4, "big") * 1000, attacker.now)
    begin, numbers = attacker.now, []
    while len(numbers) < 100 and attacker.now < begin + 1.0:
        part.due(attacker.now)
        packets = part.out()
        assert (
            sum(len(p) for p, _ in packets)
            <= limits.PACE_BURST_BYTES + limits.MAX_DATAGRAM_BYTES + 1000
        )
        for packet, _ in packets:
            for kind, _, at, end in submessages.submessages(packet):
                if (
                    kind == wire.DATA
                    and (
                        data := submessages.read_data(packet, at, end, wire.OURS)
                    ).writer
                    == writer.entity
                ):
                    numbers.append(data.number)

        attacker.now += 0.005

    assert numbers == list(range(1, 101))
    assert attacker.now > begin + 0.02


def test_endpoints_are_bounded() -> None:
    """The number of one participant's endpoints, and the memory of their names and
    data.
    """
    part = alone()
    attacker = Attacker(part, SOURCE)
    for number in range(limits.MAX_PEER_ENDPOINTS + 500):
        attacker.endpoint(number, f"rt/{number}", is_writer=False)
    assert len(part.peers[0].endpoints) == limits.MAX_PEER_ENDPOINTS
    assert part.count(EventKind.REFUSED) == 500
    about = EndpointData(attacker.prefix + b"\0\0\1\3", "a", "b", user_data=bytes(5000))
    with pytest.raises(wire.MalformedError):
        EndpointData.read(replace(about, topic="x" * 300).encode())
    assert EndpointData.read(about.encode()).user_data == b""


def test_fragments_are_bounded() -> None:
    """Long samples that are announced and never completed are dropped after some
    seconds.
    """
    part = alone()
    part.reader("rt/a", "T", Got(), RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    size = limits.MAX_SAMPLE_BYTES
    for number in range(40):
        guid = attacker.endpoint(number + 1, "rt/a", is_writer=True)
        for sample in range(1, 40):
            pair = wire.ANY + guid[12:]
            attacker.send(wire.data_frag(pair, sample, 3, 1000, size, bytes(1000)))
            attacker.send(wire.data_frag(pair, sample, 3, 1000, 2**32 - 1, bytes(1000)))
            attacker.send(wire.data_frag(pair, sample, 3, 1, size, bytes(1000)))

    inbox = part._inbox
    assert 0 < inbox.budget.used <= limits.MAX_ASSEMBLY_BYTES
    assert len(inbox.assemblies) <= limits.MAX_ASSEMBLY_BYTES // size
    attacker.run(limits.ASSEMBLY_TIMEOUT_S + 1.0)
    assert inbox.budget.used == 0
    assert not inbox.assemblies and not inbox.assembling


def test_held_samples_are_bounded() -> None:
    """Samples arrive after a gap that is never filled."""
    part = alone()
    reader = part.reader("rt/a", "T", Got(), RELIABLE, 0.0)
    attacker = Attacker(part, SOURCE)
    guid = attacker.endpoint(1, "rt/a", is_writer=True)
    attacker.send(wire.heartbeat(wire.ANY, guid[12:], 1, 10**6, 1))
    for number in range(2, 1000):
        attacker.send(wire.data(wire.ANY + guid[12:], number, CDR + bytes(50_000)))
    (proxy,) = reader._proxies.values()
    held = [s for s in proxy.held.values() if s is not None]
    assert 0 < sum(len(s.payload) for s in held) <= limits.MAX_HELD_BYTES
    attacker.send(wire.gap(wire.ANY, guid[12:], 2, 10**9))
    assert len(proxy.held) <= limits.MAX_HELD_SAMPLES


def kept(thing: object, seen: set[int]) -> int:
    """Return the number of objects that a participant holds."""
    if (
        id(thing) in seen
        or isinstance(thing, (str, bytes, bytearray, int, float, type(None), type))
        or callable(thing)
    ):
        return 1

    seen.add(id(thing))
    if isinstance(thing, Mapping):
        return 1 + sum(kept(k, seen) + kept(v, seen) for k, v in thing.items())
    if isinstance(thing, (list, tuple, set, frozenset, deque)):
        return 1 + sum(kept(x, seen) for x in thing)
    names = [*getattr(thing, "__dict__", ())]
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)

    return 1 + sum(
        kept(getattr(thing, n), seen)
        for n in names
        if n != "__weakref__" and hasattr(thing, n)
    )


def test_a_day_of_coming_and_going() -> None:
    """Participants and endpoints come, are used and go, some without a goodbye:

    nothing is kept of them.
    """
    network = Network(seed=2, loss=0.05)
    server = network.add()
    latched = server.part.writer("rt/map", "T", LATCHED, network.now)
    latched.write(CDR + bytes(50_000), network.now)
    got = Got()
    counts = []

    def life(number: int) -> None:
        node: Node = network.add()
        late = Got()
        node.part.reader("rt/map", "T", late, LATCHED, network.now)
        writer = node.part.writer("rt/cmd_vel", "T", RELIABLE, network.now)
        reader = server.part.reader("rt/cmd_vel", "T", got, RELIABLE, network.now)
        own = server.part.writer(
            f"rt/r{number}", "T", Qos(durability=Durability.VOLATILE), network.now
        )
        wait(network, lambda: writer.matched and late)
        writer.write(payload(number), network.now)
        wait(network, lambda: got)
        got.clear()
        server.part.remove(reader, network.now)
        server.part.remove(own, network.now)
        network.run(1.0)
        network.remove(node, politely=bool(number % 2))

    for number in range(240):
        life(number)
        # All leases end within this time.
        network.run(360.0 if number % 60 == 59 else 25.0)
        server.part.take_events()
        if number % 60 == 59:
            counts.append(kept(server.part, set()))

    assert not server.part.peers
    assert max(counts) - min(counts) < 200, counts
    assert len(server.part._discovery.publications.kept) < 5  # type: ignore[arg-type]


def test_who_has_left_is_not_met_again_by_the_rest_of_the_packet() -> None:
    """A participant says goodbye in a packet that is also addressed to us:

    nothing is kept of it.
    """
    part = alone()
    before = kept(part, set())
    for number in range(100):
        prefix = b"\1\x0f" + number.to_bytes(10, "big")
        guid = prefix + guids.PARTICIPANT
        part.feed(announcement(number), SOURCE, float(number))
        leaving = wire.data_key(
            guids.SPDP_READER + guids.SPDP_WRITER,
            2,
            parameters.disposal(guid),
            encode_key(parameters.PARTICIPANT_GUID, guid),
        )
        part.feed(
            wire.header(prefix) + leaving + wire.info_dst(part.guid[:12]),
            SOURCE,
            float(number),
        )
        part.due(float(number))
        part.out()

    part.take_events()
    assert not part.peers
    assert kept(part, set()) < before + 50
