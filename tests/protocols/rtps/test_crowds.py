"""Crowds of participants and endpoints: the work of one call is bounded, and one
address leaves room for others.

Work is counted in calls of Python functions, not in time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from botyard.protocols.rtps import guids, limits, wire
from botyard.protocols.rtps import parameters as p
from botyard.protocols.rtps.discoverydata import EndpointData, encode_key
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.topicwriters import TopicWriter
from tests.protocols.rtps.test_delivery import CDR, RELIABLE, Got
from tests.protocols.rtps.test_hostile import alone, announcement

MANY = 1500
MOST_CALLS = 15_000
"""Calls of functions that one call of `feed` or `due` may take with a crowd: about 2
ms.
"""


def calls_of(act: Callable[[], Any]) -> int:
    """Return the number of called Python functions, including resumed generators."""
    count = 0

    def look(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)

    return count


class Stranger:
    """A participant whose packets are written by hand."""

    def __init__(
        self,
        part: Participant,
        number: int,
        host: str,
        now: float = 1.0,
        port: int = 7410,
    ) -> None:
        self.part, self.now = part, now
        self.number = number
        self.address: Address = (host, port)
        self.prefix = b"\1\x0f" + number.to_bytes(10, "big")
        self.announced = 0
        self.meet()

    def meet(self) -> None:
        """Announce the participant and answer the greeting."""
        self.part.feed(announcement(self.number, self.address), self.address, self.now)
        self.send(b"")

    @property
    def is_served(self) -> bool:
        """Return whether the stranger is one of the participants."""
        return any(peer.prefix == self.prefix and peer.host for peer in self.part.peers)

    @property
    def endpoints(self) -> int:
        """Return how many of the stranger's endpoints are known."""
        return sum(
            len(peer.endpoints)
            for peer in self.part.peers
            if peer.prefix == self.prefix
        )

    def packet(self, *parts: bytes) -> bytes:
        """Return a packet for the participant."""
        return b"".join(
            (wire.header(self.prefix), wire.info_dst(self.part.guid[:12]), *parts)
        )

    def send(self, *parts: bytes) -> None:
        """Send a packet."""
        self.part.feed(self.packet(*parts), self.address, self.now)

    def endpoint(
        self, topic: str, kind: int = 4, port: int = 0, qos: Qos = RELIABLE
    ) -> bytes:
        """Announce a reader (4) or a writer (3)."""
        self.announced += 1
        guid = self.prefix + self.announced.to_bytes(3, "big") + bytes((kind,))
        locators = ((self.address[0], port),) if port else ()
        about = EndpointData(guid, topic, "T", qos, locators=locators).encode()
        writer = guids.SUBSCRIPTIONS_WRITER if kind == 4 else guids.PUBLICATIONS_WRITER
        self.send(wire.data(wire.ANY + writer, self.announced, about))
        return guid

    def goodbye(self) -> bytes:
        """Return the packet that announces the stranger's end."""
        guid = self.prefix + guids.PARTICIPANT
        pair = guids.SPDP_READER + guids.SPDP_WRITER
        return self.packet(
            wire.data_key(
                pair, 2, p.disposal(guid), encode_key(p.PARTICIPANT_GUID, guid)
            )
        )


def crowd(
    part: Participant,
    strangers: int,
    readers: int,
    topic: str = "rt/a",
    host: str = "10.9.9.9",
) -> list[Stranger]:
    """Participants of one host with a number of readers each."""
    found = []
    for number in range(strangers):
        one = Stranger(part, number + 1, host, now=1.0 + number)
        for _ in range(readers):
            one.endpoint(topic)
        part.due(one.now)
        part.out()
        found.append(one)

    return found


def settle(part: Participant, now: float, done: Callable[[], bool]) -> int:
    """Call `due` until a condition holds; return the most function calls of one of
    them.
    """
    worst = 0
    for _ in range(10_000):
        if done():
            return worst
        later: list[float] = []
        worst = max(worst, calls_of(lambda at=now, to=later: to.append(part.due(at))))
        part.out()
        now = max(now + 1e-3, min(later[0], now + 1.0))

    pytest.fail("it never came to that")


def crowded_writer(
    strangers: int = 2, readers: int = MANY
) -> tuple[Participant, TopicWriter, list[Stranger]]:
    """A participant with a writer that a crowd reads."""
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    found = crowd(part, strangers, readers)
    assert len(writer.matched) == strangers * readers
    return part, writer, found


def test_a_match_costs_the_same_whatever_the_number_of_readers() -> None:
    """Readers send announcements, acknowledgements and goodbyes one by one."""
    part, writer, (one, _) = crowded_writer(2, 100)

    def cost() -> int:
        guid = one.endpoint("rt/a")
        acked = wire.acknack(guid[12:], writer.entity, writer.number + 1, (), 1)
        gone = wire.data_key(
            wire.ANY + guids.SUBSCRIPTIONS_WRITER,
            one.announced + 1,
            p.disposal(guid),
            encode_key(p.ENDPOINT_GUID, guid),
        )
        spent = calls_of(lambda: one.send(acked)) + calls_of(lambda: one.send(gone))
        one.announced += 1
        return spent + calls_of(lambda: one.endpoint("rt/a"))

    before = cost()
    for _ in range(MANY):
        one.endpoint("rt/a")
    writer.write(CDR, 2.0)
    part.due(2.0)
    part.out()
    assert cost() <= before + 20


def test_one_call_does_not_unmatch_a_crowd() -> None:
    """Holds when participants leave and when leases end; at the end nothing is kept of
    them.
    """
    part, writer, (one, _two) = crowded_writer()
    assert calls_of(lambda: part.feed(one.goodbye(), one.address, 3.0)) < MOST_CALLS
    assert not one.is_served
    assert settle(part, 3.0, lambda: len(writer.matched) == MANY) < MOST_CALLS
    assert settle(part, 1000.0, lambda: not writer.matched) < MOST_CALLS
    assert (
        not part.peers
        and not part._discovery._remote
        and part._discovery._remote_count == 0
    )


def test_who_is_back_before_all_is_unmatched_is_served() -> None:
    """Endpoints with the names of endpoints still to be unmatched are new ones."""
    part, writer, (one, _two) = crowded_writer()
    part.feed(one.goodbye(), one.address, 3.0)
    one.now, one.announced = 3.0, 0
    one.meet()
    mine = [one.endpoint("rt/a") for _ in range(20)]
    settle(part, 3.0, lambda: len(writer.matched) <= MANY + 20)
    assert set(mine) <= set(writer.matched)
    one.now = 3.5
    part.feed(one.goodbye(), one.address, 3.5)
    settle(part, 3.5, lambda: len(writer.matched) == MANY)


def test_one_call_does_not_match_a_crowd() -> None:
    """A new endpoint of ours that many readers await, and one that is closed."""
    part = alone()
    found = crowd(part, 2, MANY)
    for one in found:
        one.endpoint("rt/b", kind=3)
    made: list[Any] = []
    assert (
        calls_of(lambda: made.append(part.writer("rt/a", "T", RELIABLE, 4.0)))
        < MOST_CALLS
    )
    assert settle(part, 4.0, lambda: len(made[0].matched) == 2 * MANY) < MOST_CALLS
    assert calls_of(lambda: part.remove(made[0], 5.0)) < MOST_CALLS
    assert settle(part, 5.0, lambda: not made[0].matched) < MOST_CALLS


def test_one_call_does_not_remind_a_crowd() -> None:
    """Silent readers are reminded in turns, all of them."""
    part, writer, _ = crowded_writer()
    writer.write(CDR, 5.0)
    asked: set[bytes] = set()

    def all_asked() -> bool:
        asked.update(proxy.guid for proxy in writer._reliable if proxy.unanswered >= 3)
        return len(asked) == 2 * MANY

    assert settle(part, 5.0, all_asked) < MOST_CALLS


def test_one_call_does_not_ask_a_crowd() -> None:
    """Silent writers are asked in turns and left alone in the end, as is an awaited
    crowd.
    """
    part = alone()
    part.reader("rt/a", "T", Got(), RELIABLE, 0.0)
    one = Stranger(part, 1, "10.9.9.9")
    for _ in range(MANY):
        one.endpoint("rt/a", kind=3)
    assert len(part._inbox.asking) >= MANY
    assert settle(part, 1.0, lambda: not len(part._inbox.asking)) < MOST_CALLS


def test_a_moving_crowd() -> None:
    """A participant that announces new data addresses gets data there, in parts."""
    part, writer, (one, _) = crowded_writer()
    there = ("10.9.9.9", 9000)
    moved = announcement(1, one.address, 3, default=(there,))
    assert calls_of(lambda: part.feed(moved, one.address, 3.0)) < MOST_CALLS
    mine = [proxy for guid, proxy in writer._proxies.items() if guid[:12] == one.prefix]
    assert (
        settle(
            part, 3.0, lambda: all(proxy.destination.address == there for proxy in mine)
        )
        < MOST_CALLS
    )


# -- shares


@pytest.mark.parametrize("has_own_host", [True, False])
def test_a_crowd_of_participants_leaves_room(has_own_host: bool) -> None:
    """One host has taken all places: participants of other hosts enter at once.

    Those of the same host enter if its other participants have no matches.
    """
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    for number in range(limits.MAX_PARTICIPANTS):
        Stranger(part, number + 1, "10.9.9.9", now=1.0 + number / 40)
    assert len(part.peers) == limits.MAX_PARTICIPANTS
    honest = Stranger(
        part, 999, "10.7.7.7" if has_own_host else "10.9.9.9", now=10.0 + limits.IDLE_S
    )
    assert honest.is_served and len(part.peers) == limits.MAX_PARTICIPANTS
    honest.endpoint("rt/a")
    assert len(writer.matched) == 1
    # The removed participants come again.
    for number in range(40):
        Stranger(part, number + 1, "10.9.9.9", now=20.0 + limits.IDLE_S)
    assert honest.is_served and len(writer.matched) == 1


def test_participants_that_read_give_way_to_other_hosts_alone() -> None:
    """A host that has most of the places gives up its newest participant."""
    part = alone()
    part.writer("rt/a", "T", RELIABLE, 0.0)
    crowded = []
    for number in range(limits.MAX_PARTICIPANTS):
        crowded.append(Stranger(part, number + 1, "10.9.9.9", now=1.0 + number / 40))
        crowded[-1].endpoint("rt/a")

    assert not Stranger(part, 998, "10.9.9.9", now=30.0).is_served
    assert Stranger(part, 999, "10.7.7.7", now=30.0).is_served
    assert [one.number for one in crowded if not one.is_served] == [
        limits.MAX_PARTICIPANTS
    ]


@pytest.mark.parametrize("host", ["10.7.7.7", "10.9.9.9"])
def test_a_crowd_of_endpoints_leaves_room(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some participants have taken all places:

    another one gets as many as they have, and no more.
    """
    monkeypatch.setattr("botyard.protocols.rtps.endpointdiscovery.MAX_ENDPOINTS", 400)
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    others = crowd(part, 4, 150, "rt/none")
    assert sum(one.endpoints for one in others) == 400
    honest = Stranger(part, 99, host, now=9.0)
    for _ in range(50):
        honest.endpoint("rt/a")
    assert len(writer.matched) == honest.endpoints == 50
    for _ in range(500):
        honest.endpoint("rt/a")
    fair = 200 if host == "10.7.7.7" else 80
    assert abs(honest.endpoints - fair) <= 1
    assert part._discovery._remote_count == 400


def test_addresses_of_a_participant_are_bounded() -> None:
    """Each address gets a datagram of its own for each sample."""
    part = alone()
    writer = part.writer("rt/a", "T", RELIABLE, 0.0)
    one = Stranger(part, 1, "10.9.9.9")
    for port in range(8000, 8100):
        one.endpoint("rt/a", port=port)
    part.due(2.0)
    part.out()
    writer.write(CDR, 2.0)
    part.due(2.0)
    assert 0 < len({address for _, address in part.out()}) <= limits.MAX_PEER_ADDRESSES


def test_fragments_of_one_host_leave_room() -> None:
    """A host that never completes its samples does not block reassembly for others."""
    part = alone()
    got = Got()
    part.reader("rt/a", "T", got, RELIABLE, 0.0)
    hostile, honest = Stranger(part, 1, "10.9.9.9"), Stranger(part, 2, "10.7.7.7")
    size = 2 << 20
    for _ in range(40):
        guid = hostile.endpoint("rt/a", kind=3)
        for sample in range(1, 10):
            hostile.send(
                wire.data_frag(wire.ANY + guid[12:], sample, 3, 1000, size, bytes(1000))
            )

    guid = honest.endpoint("rt/a", kind=3)
    for number in range(3):
        part_of_it = CDR + bytes(996) if not number else bytes(1000)
        honest.send(
            wire.data_frag(wire.ANY + guid[12:], 1, number + 1, 1000, 3000, part_of_it)
        )

    assert len(got) == 1


def test_held_samples_of_one_host_leave_room() -> None:
    """A host that leaves out its first samples does not use up the room for held
    samples of others.
    """
    part = alone()
    got = Got()
    part.reader("rt/a", "T", got, RELIABLE, 0.0)
    hostile, honest = Stranger(part, 1, "10.9.9.9"), Stranger(part, 2, "10.7.7.7")
    for _ in range(20):
        guid = hostile.endpoint("rt/a", kind=3)
        for sample in range(2, 80):
            hostile.send(wire.data(wire.ANY + guid[12:], sample, CDR + bytes(50_000)))

    guid = honest.endpoint("rt/a", kind=3)
    for number in (2, 1):
        honest.send(wire.data(wire.ANY + guid[12:], number, CDR + bytes(50_000)))
    assert len(got) == 2
