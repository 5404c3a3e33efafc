"""RTPS messages: header, submessages, sequence numbers and number sets (OMG DDSI-RTPS
2.5, §8.3 and §9.4).

A GUID prefix is 12 bytes, an entity id 4, a GUID both; they are bytes on the wire and
here. What we send is little-endian; both orders are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from botyard.errors import PeerError
from botyard.protocols.rtps.limits import MAX_SET_BITS

MAGIC: Final = b"RTPS"
VERSION: Final = b"\x02\x03"
"""Protocol version of what we send: 2.3."""
VENDOR: Final = b"\x01\xff"
"""An unassigned vendor id: with another's id, peers would expect that vendor's private
parameters.
"""
VENDOR_FAST: Final = b"\x01\x0f"
VENDOR_CYCLONE: Final = b"\x01\x10"
HEADER_BYTES: Final = 20
PREFIX_BYTES: Final = 12
NOBODY: Final = bytes(PREFIX_BYTES)
"""The prefix of INFO_DST that means every participant."""
ANY: Final = bytes(4)
"""The entity id that means every matched one."""

# submessage ids (table 9.10)
PAD: Final = 0x01
ACKNACK: Final = 0x06
HEARTBEAT: Final = 0x07
GAP: Final = 0x08
INFO_TS: Final = 0x09
INFO_SRC: Final = 0x0C
INFO_DST: Final = 0x0E
NACK_FRAG: Final = 0x12
HEARTBEAT_FRAG: Final = 0x13
DATA: Final = 0x15
DATA_FRAG: Final = 0x16

LITTLE: Final = 1
"""Flag of every submessage: little-endian."""
FINAL: Final = 2
"""Flag of ACKNACK and HEARTBEAT: no answer is demanded."""
INVALIDATE: Final = 2
"""Flag of INFO_TS: there is no timestamp."""
INLINE_QOS: Final = 2
"""Flag of DATA and DATA_FRAG."""
WITH_DATA: Final = 4
"""Flag of DATA."""
WITH_KEY: Final = 8
"""Flag of DATA: the payload is the key only. In DATA_FRAG the same is said by 4."""
FRAGMENT_WITH_KEY: Final = 4

UNKNOWN_NUMBER: Final = -1 << 32
"""SEQUENCENUMBER_UNKNOWN: (-1, 0)."""
MAX_NUMBER: Final = (1 << 63) - 1 - 256
"""Highest sequence number that is taken: what is computed from it still fits into 64
bits.
"""
MAX_COUNT: Final = 0x7FFFFFFF


class MalformedError(PeerError):
    """Bytes of a peer that are not RTPS."""


class Layout:
    """Bodies of submessages in one byte order.

    Parameters
    ----------
    order : str
        ``<`` or ``>``.
    """

    def __init__(self, order: str) -> None:
        self.is_little = order == "<"
        self.pair = Struct(order + "HH")
        """Parameter id and length."""
        self.uint16 = Struct(order + "H")
        self.uint32 = Struct(order + "I")
        self.int32 = Struct(order + "i")
        self.number = Struct(order + "iI")
        """A sequence number: int32 high, uint32 low."""
        self.time = Struct(order + "II")
        """Seconds, 2^-32 s."""
        self.data = Struct(order + "HH4s4siI")
        """Extra flags, octets to inline QoS, reader, writer, sequence number."""
        self.data_frag = Struct(order + "HH4s4siIIHHI")
        """The same, then first fragment, fragments, fragment size, sample size."""
        self.heartbeat = Struct(order + "4s4siIiIi")
        """Reader, writer, first and last sequence number, count."""
        self.heartbeat_frag = Struct(order + "4s4siIIi")
        """Reader, writer, sequence number, last fragment, count."""
        self.acknack = Struct(order + "4s4siII")
        """Reader, writer, base of the set and its number of bits; then words and count.
        """
        self.gap = Struct(order + "4s4siIiII")
        """Reader, writer, start, base of the set and its number of bits; then words."""
        self.nack_frag = Struct(order + "4s4siIII")
        """Reader, writer, sequence number, base of the set and its number of bits; then
        words and count.
        """
        self.words = tuple(
            Struct(f"{order}{n}I") for n in range(MAX_SET_BITS // 32 + 1)
        )
        self.words_and_count = tuple(
            Struct(f"{order}{n}Ii") for n in range(MAX_SET_BITS // 32 + 1)
        )


LAYOUTS: Final = (Layout(">"), Layout("<"))
"""By the submessage's flag `LITTLE`."""
OURS: Final = LAYOUTS[LITTLE]
_SUB_DATA: Final = Struct("<BBHHH8siI")
_SUB_DATA_FRAG: Final = Struct("<BBHHH8siIIHHI")
_SUB_HEARTBEAT: Final = Struct("<BBH4s4siIiIi")
_SUB_HEAD: Final = Struct("<BBH")
_SUB_TIME: Final = Struct("<BBHII")
DATA_HEAD_BYTES: Final = 20
"""Of DATA, behind the submessage header."""
DATA_FRAG_HEAD_BYTES: Final = 32
OCTETS_TO_INLINE_QOS: Final = 16
OCTETS_TO_INLINE_QOS_FRAG: Final = 28
INFO_DST_NOBODY: Final = _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + NOBODY

# -- building


def header(prefix: bytes) -> bytes:
    """A message's header (§9.4.4)."""
    return MAGIC + VERSION + VENDOR + prefix


def info_ts(wall: float) -> bytes:
    """INFO_TS of a time since 1970, s (§9.4.5.11)."""
    seconds = int(wall)
    return _SUB_TIME.pack(
        INFO_TS,
        LITTLE,
        8,
        seconds & 0xFFFFFFFF,
        int((wall - seconds) * 0x100000000) & 0xFFFFFFFF,
    )


def info_dst(prefix: bytes) -> bytes:
    """INFO_DST (§9.4.5.9)."""
    return _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + prefix


def data(pair: bytes, number: int, payload: bytes, inline: bytes = b"") -> bytes:
    """DATA with a payload (§9.4.5.3), padded to a multiple of 4 bytes.

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer.
    payload : bytes
        With its 4 bytes of encapsulation.
    inline : bytes
        Inline QoS with its sentinel, or nothing.
    """
    if len(payload) & 3:
        payload += bytes(-len(payload) & 3)
    if inline:
        payload = inline + payload
        flags = LITTLE | WITH_DATA | INLINE_QOS
    else:
        flags = LITTLE | WITH_DATA

    length = DATA_HEAD_BYTES + len(payload)
    return (
        _SUB_DATA.pack(
            DATA,
            flags,
            length,
            0,
            OCTETS_TO_INLINE_QOS,
            pair,
            number >> 32,
            number & 0xFFFFFFFF,
        )
        + payload
    )


def data_head(pair: bytes, number: int, size: int) -> bytes:
    """What stands in DATA before a payload of `size` bytes, a multiple of 4, without
    inline QoS; see `data`.
    """
    return _SUB_DATA.pack(
        DATA,
        LITTLE | WITH_DATA,
        DATA_HEAD_BYTES + size,
        0,
        OCTETS_TO_INLINE_QOS,
        pair,
        number >> 32,
        number & 0xFFFFFFFF,
    )


def for_reader(submessage: bytes, reader: bytes) -> bytes:
    """A DATA submessage for one reader instead of all."""
    return submessage[:8] + reader + submessage[12:]


def data_key(pair: bytes, number: int, inline: bytes, key: bytes) -> bytes:
    """DATA that says something of an instance, such as its disposal: inline QoS and the
    serialised key.
    """
    body = inline + key + bytes(-len(key) & 3)
    flags = LITTLE | INLINE_QOS | WITH_KEY
    length = DATA_HEAD_BYTES + len(body)
    return (
        _SUB_DATA.pack(
            DATA,
            flags,
            length,
            0,
            OCTETS_TO_INLINE_QOS,
            pair,
            number >> 32,
            number & 0xFFFFFFFF,
        )
        + body
    )


def data_frag(
    pair: bytes,
    number: int,
    fragment: int,
    fragment_size: int,
    sample_size: int,
    part: bytes,
    inline: bytes = b"",
) -> bytes:
    """DATA_FRAG with one fragment, counted from 1 (§9.4.5.4), padded to a multiple of 4
    bytes.
    """
    body = inline + part + bytes(-len(part) & 3)
    flags = LITTLE | (INLINE_QOS if inline else 0)
    head = _SUB_DATA_FRAG.pack(
        DATA_FRAG,
        flags,
        DATA_FRAG_HEAD_BYTES + len(body),
        0,
        OCTETS_TO_INLINE_QOS_FRAG,
        pair,
        number >> 32,
        number & 0xFFFFFFFF,
        fragment,
        1,
        fragment_size,
        sample_size,
    )
    return head + body


def heartbeat(
    reader: bytes, writer: bytes, first: int, last: int, count: int, final: bool = False
) -> bytes:
    """HEARTBEAT (§9.4.5.7)."""
    return _SUB_HEARTBEAT.pack(
        HEARTBEAT,
        LITTLE | FINAL if final else LITTLE,
        28,
        reader,
        writer,
        first >> 32,
        first & 0xFFFFFFFF,
        last >> 32,
        last & 0xFFFFFFFF,
        count,
    )


def _words(base: int, numbers: Iterable[int]) -> tuple[int, list[int]]:
    """Number of bits and words of a set; numbers that do not fit are left out."""
    words = [0] * (MAX_SET_BITS // 32)
    bits = 0
    for number in numbers:
        k = number - base
        if 0 <= k < MAX_SET_BITS:
            words[k >> 5] |= 1 << 31 - (k & 31)
            bits = max(bits, k + 1)

    return bits, words[: bits + 31 >> 5]


def acknack(
    reader: bytes,
    writer: bytes,
    base: int,
    missing: Iterable[int],
    count: int,
    final: bool = False,
) -> bytes:
    """ACKNACK: all below `base` has come, `missing` is asked for (§9.4.5.2)."""
    bits, words = _words(base, missing)
    n = len(words)
    return (
        _SUB_HEAD.pack(ACKNACK, LITTLE | FINAL if final else LITTLE, 24 + 4 * n)
        + OURS.acknack.pack(reader, writer, base >> 32, base & 0xFFFFFFFF, bits)
        + OURS.words_and_count[n].pack(*words, count)
    )


def gap(
    reader: bytes, writer: bytes, start: int, base: int, numbers: Iterable[int] = ()
) -> bytes:
    """GAP: start … base - 1 and `numbers` are irrelevant (§9.4.5.5)."""
    bits, words = _words(base, numbers)
    n = len(words)
    return (
        _SUB_HEAD.pack(GAP, LITTLE, 28 + 4 * n)
        + OURS.gap.pack(
            reader,
            writer,
            start >> 32,
            start & 0xFFFFFFFF,
            base >> 32,
            base & 0xFFFFFFFF,
            bits,
        )
        + OURS.words[n].pack(*words)
    )


def nack_frag(
    reader: bytes, writer: bytes, number: int, fragments: list[int], count: int
) -> bytes:
    """NACK_FRAG: asks for fragments of a sample, counted from 1 (§9.4.5.13);
    `fragments` is not empty and rises.
    """
    base = fragments[0]
    bits, words = _words(base, fragments)
    n = len(words)
    return (
        _SUB_HEAD.pack(NACK_FRAG, LITTLE, 28 + 4 * n)
        + OURS.nack_frag.pack(
            reader, writer, number >> 32, number & 0xFFFFFFFF, base, bits
        )
        + OURS.words_and_count[n].pack(*words, count)
    )


# -- reading


class Data(NamedTuple):
    """Head of DATA; what lies behind is `packet[inline:end]`."""

    reader: bytes
    writer: bytes
    number: int
    inline: int
    """Where inline QoS or, without it, the payload begins."""


class DataFrag(NamedTuple):
    """Head of DATA_FRAG."""

    reader: bytes
    writer: bytes
    number: int
    inline: int
    first: int
    """First fragment, from 1."""
    fragments: int
    """How many."""
    fragment_size: int
    sample_size: int


class Heartbeat(NamedTuple):
    """HEARTBEAT: first <= last + 1."""

    reader: bytes
    writer: bytes
    first: int
    last: int
    serial: int
    """Rises with each; "count" in the specification."""


class AckNack(NamedTuple):
    """ACKNACK."""

    reader: bytes
    writer: bytes
    base: int
    missing: list[int]
    serial: int


class Gap(NamedTuple):
    """GAP: start … base - 1, and `numbers`."""

    reader: bytes
    writer: bytes
    start: int
    base: int
    numbers: list[int]


class NackFrag(NamedTuple):
    """NACK_FRAG."""

    reader: bytes
    writer: bytes
    number: int
    fragments: list[int]
    serial: int


def submessages(packet: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Submessages of a message: id, flags, where the body begins and ends.

    Raises
    ------
    MalformedError
        One is longer than the packet.
    """
    at, size = HEADER_BYTES, len(packet)
    while at + 4 <= size:
        kind, flags = packet[at], packet[at + 1]
        length = (
            packet[at + 2] | packet[at + 3] << 8
            if flags & LITTLE
            else packet[at + 2] << 8 | packet[at + 3]
        )
        at += 4
        end = at + length
        if length == 0 and kind not in (
            PAD,
            INFO_TS,
        ):  # the last one may leave its length out (§9.4.5.1.3)
            end = size

        if end > size:
            raise MalformedError(
                f"submessage 0x{kind:02x} of {length} bytes in a packet that ends after {size - at}"
            )

        yield kind, flags, at, end
        at = end


def _numbers(
    packet: bytes, at: int, end: int, base: int, bits: int, layout: Layout, tail: int
) -> tuple[list[int], int]:
    """Numbers of a set whose words begin at `at`, and where they end; `tail` bytes must
    follow.
    """
    n = bits + 31 >> 5
    if bits > MAX_SET_BITS or at + 4 * n + tail > end:
        raise MalformedError(f"a set of {bits} bits in {end - at} bytes")
    found = []
    for i, word in enumerate(layout.words[n].unpack_from(packet, at)):
        if word:
            first, last = 32 * i, min(32 * i + 32, bits)
            found += [base + k for k in range(first, last) if word >> 31 - (k & 31) & 1]

    return found, at + 4 * n


def _number(high: int, low: int) -> int:
    number = high << 32 | low
    if not 1 <= number <= MAX_NUMBER:
        raise MalformedError(f"sequence number {number}")
    return number


def read_data(packet: bytes, at: int, end: int, layout: Layout) -> Data:
    """Head of DATA.

    Raises
    ------
    MalformedError
        It is not one; so do all that read.
    """
    if end - at < DATA_HEAD_BYTES:
        raise MalformedError(f"DATA of {end - at} bytes")
    _, to_inline, reader, writer, high, low = layout.data.unpack_from(packet, at)
    inline = at + 4 + to_inline
    if to_inline < OCTETS_TO_INLINE_QOS or to_inline & 3 or inline > end:
        raise MalformedError(f"DATA whose head has {to_inline} bytes")
    return Data(reader, writer, _number(high, low), inline)


def read_data_frag(packet: bytes, at: int, end: int, layout: Layout) -> DataFrag:
    """Head of DATA_FRAG."""
    if end - at < DATA_FRAG_HEAD_BYTES:
        raise MalformedError(f"DATA_FRAG of {end - at} bytes")
    _, to_inline, reader, writer, high, low, first, count, fragment_size, size = (
        layout.data_frag.unpack_from(packet, at)
    )
    inline = at + 4 + to_inline
    if to_inline < OCTETS_TO_INLINE_QOS_FRAG or to_inline & 3 or inline > end:
        raise MalformedError(f"DATA_FRAG whose head has {to_inline} bytes")
    if not (first and count and fragment_size and size):
        raise MalformedError("DATA_FRAG of nothing")
    return DataFrag(
        reader, writer, _number(high, low), inline, first, count, fragment_size, size
    )


def read_heartbeat(packet: bytes, at: int, end: int, layout: Layout) -> Heartbeat:
    """HEARTBEAT."""
    if end - at < 28:
        raise MalformedError(f"HEARTBEAT of {end - at} bytes")
    reader, writer, high, low, last_high, last_low, count = (
        layout.heartbeat.unpack_from(packet, at)
    )
    first, last = high << 32 | low, last_high << 32 | last_low
    if first < 1 or last < first - 1 or last > MAX_NUMBER:
        raise MalformedError(f"HEARTBEAT of {first} … {last}")
    return Heartbeat(reader, writer, first, last, count)


def read_acknack(packet: bytes, at: int, end: int, layout: Layout) -> AckNack:
    """ACKNACK; its base may be 0 (Fast DDS's first one)."""
    if end - at < 24:
        raise MalformedError(f"ACKNACK of {end - at} bytes")
    reader, writer, high, low, bits = layout.acknack.unpack_from(packet, at)
    base = high << 32 | low
    if base < 0:
        raise MalformedError(f"ACKNACK from {base}")
    if bits:
        missing, at = _numbers(packet, at + 20, end, base, bits, layout, 4)
    else:
        missing, at = [], at + 20

    return AckNack(
        reader, writer, base, missing, layout.int32.unpack_from(packet, at)[0]
    )


def read_gap(packet: bytes, at: int, end: int, layout: Layout) -> Gap:
    """GAP."""
    if end - at < 28:
        raise MalformedError(f"GAP of {end - at} bytes")
    reader, writer, high, low, base_high, base_low, bits = layout.gap.unpack_from(
        packet, at
    )
    start, base = _number(high, low), _number(base_high, base_low)
    if base < start:
        raise MalformedError(f"GAP of {start} … {base - 1}")
    return Gap(
        reader,
        writer,
        start,
        base,
        _numbers(packet, at + 28, end, base, bits, layout, 0)[0],
    )


def read_nack_frag(packet: bytes, at: int, end: int, layout: Layout) -> NackFrag:
    """NACK_FRAG."""
    if end - at < 28:
        raise MalformedError(f"NACK_FRAG of {end - at} bytes")
    reader, writer, high, low, base, bits = layout.nack_frag.unpack_from(packet, at)
    number = _number(high, low)
    if base < 1:
        raise MalformedError("NACK_FRAG from fragment 0")
    fragments, at = _numbers(packet, at + 24, end, base, bits, layout, 4)
    return NackFrag(
        reader, writer, number, fragments, layout.int32.unpack_from(packet, at)[0]
    )


def read_heartbeat_frag(
    packet: bytes, at: int, end: int, layout: Layout
) -> tuple[bytes, bytes, int, int]:
    """HEARTBEAT_FRAG: reader, writer, sequence number, last fragment (§9.4.5.8)."""
    if end - at < 24:
        raise MalformedError(f"HEARTBEAT_FRAG of {end - at} bytes")
    reader, writer, high, low, last, _ = layout.heartbeat_frag.unpack_from(packet, at)
    return reader, writer, _number(high, low), last
