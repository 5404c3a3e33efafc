"""Captured packets of Fast DDS and Cyclone DDS peers, replayed to a participant:
discovery, matching, samples, fragments, requests, leaving.

`tests.ros.captures` records them again.
"""

from __future__ import annotations

import random

import pytest

from botyard.protocols.rtps import guids, submessages, wire
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.participant import Participant
from tests.protocols.rtps import capture
from tests.protocols.rtps.capture import ANSWER, TIMES, VENDORS, WORDS, Moment, Scene

GROUP = (guids.GROUP, guids.discovery_port(0))


class Replay:
    """A participant that is fed a capture.

    Attributes
    ----------
    out : list of (bytes, Address)
        Sent packets.
    met : set of bytes
        GUID prefixes of participants that were verified.
    matched : dict of set of str
        Topics of remote endpoints that were matched with ours, by participant.
    """

    def __init__(self, moments: list[Moment]) -> None:
        self.part = Participant(capture.PREFIX, [capture.ADDRESS], [GROUP], 0.0, 1.7e9)
        self.scene = Scene(self.part, 0.0)
        self.out: list[tuple[bytes, guids.Address]] = []
        self.met: set[bytes] = set()
        self.matched: set[str] = set()
        self.acknowledged = 0
        for moment in moments:
            self.now = moment.at
            self.scene.now = moment.at
            if moment.packet is None:
                self.scene.tick(moment.at)
            else:
                self.part.feed(moment.packet, moment.source, moment.at)

            self._look()

        for _ in range(100):
            self.now += 0.01
            self._look()

    def _look(self) -> None:
        self.part.due(self.now)
        self.out += self.part.out()
        for event in self.part.take_events():
            if event.kind is EventKind.MET:
                self.met.add(event.guid[:12])
            elif event.kind is EventKind.MATCHED:
                self.matched.add(event.text)

        acked = [p.acked for p in self.scene.ours._proxies.values()]
        self.acknowledged = max(self.acknowledged, *acked, 0)


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_peers_sent_is_understood(vendor: str) -> None:
    """All packets have the same effect as at the recording."""
    replay = Replay(capture.read(capture.path_of(vendor)))
    part, scene = replay.part, replay.scene
    assert len(replay.met) >= 2
    assert (
        part.count(EventKind.MALFORMED)
        == part.count(EventKind.REFUSED)
        == part.count(EventKind.QOS)
        == 0
    )
    streams = {"rt/stream"} if vendor == "fastdds" else set()
    assert {
        "rt/ours",
        "rt/latched",
        "rq/mini/triggerRequest",
        "rr/mini/triggerReply",
    } | streams <= replay.matched
    text = (WORDS * TIMES).encode() + b"\0"
    latched = b"\0\1\0\0" + len(text).to_bytes(4, "little") + text
    assert scene.samples["rt/latched"]
    assert {s[: len(latched)] for s in scene.samples["rt/latched"]} == {latched}
    assert (len(scene.samples["rt/stream"]) >= 5) == bool(streams)
    assert replay.acknowledged >= 1
    assert [call.header is None for call in scene.calls] == [vendor == "fastdds"] * 3
    assert not scene.refused
    answers = {
        (number, address[0])
        for packet, address in replay.out
        for kind, _, at, end in submessages.submessages(packet)
        if kind == wire.DATA
        and (data := submessages.read_data(packet, at, end, wire.OURS)).writer
        == scene.server.writer.entity
        and ANSWER[8:] in packet[at:end]
        for number in [data.number]
    }
    assert len(answers) == 3, "each to its client"
    assert not part.peers, "they have said that they leave, or their lease has ended"
    assert part.count(EventKind.LEFT) + part.count(EventKind.LOST) >= 2


@pytest.mark.parametrize("vendor", VENDORS)
def test_captures_twice_and_out_of_order(vendor: str) -> None:
    """Repeated and reordered packets have the same effect, and no sample is delivered
    twice.
    """
    moments = capture.read(capture.path_of(vendor))
    dice = random.Random(3)
    late = [(m.at + dice.random() * 0.004, m) for m in moments] + [
        (m.at + dice.random() * 0.004, m) for m in moments if m.packet is not None
    ]
    order = [
        Moment(at, m.source, m.packet)
        for at, m in sorted(late, key=lambda entry: entry[0])
    ]
    replay, once = Replay(order), Replay(moments)
    for (
        topic,
        samples,
    ) in (
        once.scene.samples.items()
        # A sample whose fragments came before its writer was known is not sent again here.
    ):
        again = replay.scene.samples[topic]
        assert set(again) == set(samples) and len(samples) - 3 <= len(again) <= len(
            samples
        )

    calls = [call.sample[1:3] for call in replay.scene.calls]
    assert len(calls) == len(set(calls)) and 1 <= len(calls) <= len(once.scene.calls)
    assert replay.part.count(EventKind.MALFORMED) == 0


@pytest.mark.parametrize("vendor", VENDORS)
def test_captures_with_bytes_flipped(vendor: str) -> None:
    """One flipped bit in each packet, and each packet truncated:

    no exception, and undamaged parts still count.
    """
    moments = capture.read(capture.path_of(vendor))
    for seed in range(3):
        dice = random.Random(seed)
        order = []
        for moment in moments:
            order.append(moment)
            if moment.packet is not None:
                changed = bytearray(moment.packet)
                changed[dice.randrange(20, len(changed))] ^= 1 << dice.randrange(8)
                order += [
                    Moment(
                        moment.at,
                        moment.source,
                        bytes(changed[: dice.randrange(len(changed))]),
                    )
                ]
                order += [Moment(moment.at, moment.source, bytes(changed))]

        replay = Replay(order)
        assert replay.part.count(EventKind.MALFORMED) > 10
        assert replay.met
