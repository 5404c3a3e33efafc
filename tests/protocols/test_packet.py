from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import (
    MAX_DATA,
    Packet,
    Parser,
    checksum,
    command,
    frame,
)
from botyard.protocols.pioneer.reports import sync2

VECTORS = [
    (frame(0), "FA FB 03 00 00 00"),
    (frame(1), "FA FB 03 01 00 01"),
    (frame(2), "FA FB 03 02 00 02"),
    (command(1, 1), "FA FB 06 01 3B 01 00 02 3B"),
    (command(4, 1), "FA FB 06 04 3B 01 00 05 3B"),
    (command(11, 500), "FA FB 06 0B 3B F4 01 FF 3C"),
    (command(11, -500), "FA FB 06 0B 1B F4 01 FF 1C"),
    (command(12, 90), "FA FB 06 0C 3B 5A 00 66 3B"),
    (command(18, 1), "FA FB 06 12 3B 01 00 13 3B"),
    (command(237, 2), "FA FB 06 ED 3B 02 00 EF 3B"),
    (command(230, 2), "FA FB 06 E6 3B 02 00 E8 3B"),
    (
        frame(
            224,
            bytes([0])
            + b"".join(v.to_bytes(4, "little", signed=True) for v in (1000, -1000, 90)),
        ),
        "FA FB 10 E0 00 E8 03 00 00 18 FC FF FF 5A 00 00 00 3A FE",
    ),
    (
        sync2("AMRISim", "Pioneer", "p3dx-sh"),
        "FA FB 1B 02 41 4D 52 49 53 69 6D 00 50 69 6F 6E 65 65 72 00 70 33 64 78 2D 73 68 00 5F 52",
    ),
]


@pytest.mark.parametrize(("packet", "expected"), VECTORS)
def test_known_packets(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)
    assert len(Parser().feed_bytes(packet)) == 1


def test_checksum_of_an_odd_payload() -> None:
    assert checksum(b"\x41\x42\x43") == 0x4101


@given(st.binary(min_size=1, max_size=120))
def test_checksum_equals_the_definition(payload: bytes) -> None:
    total = 0
    for i in range(0, len(payload) - 1, 2):
        total = (total + payload[i] * 256 + payload[i + 1]) % 65536
    if len(payload) % 2:
        total ^= payload[-1]
    assert checksum(payload) == total


@given(st.integers(-65535, 65535))
def test_integer_arguments_round_trip(value: int) -> None:
    (packet,) = Parser().feed_bytes(command(11, value))
    assert packet.integer() == value


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_byte_pairs_survive_the_sign_of_the_argument(left: int, right: int) -> None:
    """Clients send (high << 8) + (low & 0xFF) as a signed number; both bytes come out
    unchanged (§1).
    """
    (packet,) = Parser().feed_bytes(command(32, (left << 8) + (right & 0xFF)))
    low, high = packet.byte_pair()
    assert (low, high) == (right & 0xFF, left & 0xFF)


@given(st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=190))
def test_string_arguments_round_trip(text: str) -> None:
    (packet,) = Parser().feed_bytes(command(42, text.encode("latin-1")))
    assert packet.string() == text


def test_a_long_string_argument_is_cut() -> None:
    (packet,) = Parser().feed_bytes(command(81, b"x" * 300))
    assert packet.string() == "x" * (MAX_DATA - 4)


def test_missing_arguments_are_zero() -> None:
    packet = Packet(11, b"")
    assert (
        packet.integer(),
        packet.string(),
        packet.byte_pair(),
        packet.has_argument,
    ) == (0, "", (0, 0), False)
    r = Packet(0, b"\x05").reader()
    assert (r.u8(), r.u16(), r.i32(), r.text(), r.take(4)) == (5, 0, 0, "", b"")


def test_packets_too_long_for_clients_are_never_made() -> None:
    frame(1, bytes(MAX_DATA))
    with pytest.raises(ValueError, match="at most 195"):
        frame(1, bytes(MAX_DATA + 1))


packets = st.builds(frame, st.integers(0, 255), st.binary(max_size=60))
noise = st.binary(max_size=12) | st.sampled_from(
    [b"\xfa", b"\xfa\xfb", b"\xfa\xfb\x00", b"\xfa\xfb\xff", b"\xfa\xfb\x06\xed\x3b"]
)
streams = st.lists(packets | noise, max_size=12).map(b"".join)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(streams, st.lists(st.integers(0, 10**6), max_size=20))
def test_any_cutting_of_a_stream_gives_the_same_packets(
    data: bytes, cuts: list[int]
) -> None:
    whole, pieces, single = Parser(), Parser(), Parser()
    expected = whole.feed_bytes(data)
    assert [p for c in chunks(data, cuts) for p in pieces.feed_bytes(c)] == expected
    assert [
        p for i in range(len(data)) for p in single.feed_bytes(data[i : i + 1])
    ] == expected
    assert whole.counts == pieces.counts == single.counts


@given(st.lists(packets, min_size=1, max_size=8))
def test_clean_streams_come_through_completely(sent: list[bytes]) -> None:
    parser = Parser()
    received = parser.feed_bytes(b"".join(sent))
    assert [frame(p.id, p.data) for p in received] == sent
    assert (parser.counts.errors, parser.counts.garbage) == (0, 0)


@given(st.binary(max_size=600))
def test_arbitrary_bytes_never_raise_and_never_pile_up(data: bytes) -> None:
    parser = Parser()
    parser.feed_bytes(data)
    assert len(parser._buffer) <= 203


GOOD = command(237, 1)


@pytest.mark.parametrize(
    ("before", "lost"),
    [
        (b"\x01\x02\x03", 0),
        (b"\xfa", 0),
        (b"\xfa\xfa", 0),
        (b"\xfa\xfb\x00", 0),
        (b"\xfa\xfb\x01", 0),
        (b"\xfa\xfb\x02", 0),
        (b"\xfa\xfb\xc9", 0),
        (b"\xfa\xfb\xff", 0),
        (bytes.fromhex("fafb060b3b2c013769"), 0),
        (b"\xfa\xfb\x06\xed\x3b", 1),
    ],
)
def test_a_good_packet_after_a_bad_one_is_found(before: bytes, lost: int) -> None:
    """A truncated packet swallows the start of the next one; the packet after that is
    found at the latest.
    """
    parser = Parser()
    found = parser.feed_bytes(before + GOOD * (1 + lost))
    assert len(found) == 1 + lost
    assert parser.counts.packets == len(found)


@pytest.mark.shared
def test_numbers_of_commands_are_those_of_the_reference(shared: Path) -> None:
    text = (shared / "reference/pioneer-protocol.md").read_text()
    section = text[text.index("\n## 4. Commands") : text.index("\n## 5.")]
    rows = {
        name: int(number)
        for number, name in re.findall(
            r"^\| (\d+) \| ([A-Z0-9_]+)", section, re.MULTILINE
        )
    }
    both = rows.keys() & C.__members__.keys()
    assert len(both) >= 50
    assert {name: int(C[name]) for name in both} == {name: rows[name] for name in both}
