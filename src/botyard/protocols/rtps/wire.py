"""RTPS messages: header, submessages, sequence numbers and number sets.

A GUID prefix has 12 bytes, an entity id 4, and a GUID both; they are bytes on the wire
and here. Messages are sent in little-endian order, and read in both orders. Source: OMG
DDSI-RTPS 2.5, §8.3 and §9.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from botyard.errors import PeerError
from botyard.protocols.rtps.limits import MAX_SET_BITS

MAGIC: Final = b"RTPS"
# Peers accept any minor version of protocol 2.
VERSION: Final = b"\x02\x03"
"""Protocol version of sent messages: 2.3."""
VENDOR: Final = b"\x01\xff"
"""Vendor id, which is not assigned.

With the id of another vendor, peers would expect that vendor's private parameters.
"""
VENDOR_FAST: Final = b"\x01\x0f"
VENDOR_CYCLONE: Final = b"\x01\x10"
HEADER_BYTES: Final = 20
PREFIX_BYTES: Final = 12
NOBODY: Final = bytes(PREFIX_BYTES)
"""Prefix in INFO_DST that addresses every participant."""
ANY: Final = bytes(4)
"""Entity id that addresses every matched endpoint."""

# Submessage ids (table 9.10).
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
"""Flag of DATA and DATA_FRAG: inline QoS precedes the payload."""
WITH_DATA: Final = 4
"""Flag of DATA: there is a payload."""
WITH_KEY: Final = 8
"""Flag of DATA: the payload is only the key. In DATA_FRAG the flag is 4."""
FRAGMENT_WITH_KEY: Final = 4

UNKNOWN_NUMBER: Final = -1 << 32
"""SEQUENCENUMBER_UNKNOWN: (-1, 0)."""
MAX_NUMBER: Final = (1 << 63) - 1 - 256
"""Highest accepted sequence number; arithmetic with it fits into 64 bits."""
MAX_COUNT: Final = 0x7FFFFFFF


class MalformedError(PeerError):
    """Bytes of a peer that are not valid RTPS."""


# Formats are parsed once, because a busy participant unpacks many heads in each step.
class Layout:
    """Formats of submessage bodies in one byte order.

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
        """Sequence number: int32 high, uint32 low."""
        self.time = Struct(order + "II")
        """Seconds, and fraction in 2^-32 s."""
        self.data = Struct(order + "HH4s4siI")
        """Extra flags, octets to inline QoS, reader, writer, sequence number."""
        self.data_frag = Struct(order + "HH4s4siIIHHI")
        """Fields of `data`, then first fragment, fragments, fragment size, sample size.
        """
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
        """Reader, writer, sequence number, base of the set and its number of bits.

        Words and count follow.
        """
        # One format for each number of words, because a set carries only the words that
        # it needs.
        self.words = tuple(
            Struct(f"{order}{n}I") for n in range(MAX_SET_BITS // 32 + 1)
        )
        self.words_and_count = tuple(
            Struct(f"{order}{n}Ii") for n in range(MAX_SET_BITS // 32 + 1)
        )


LAYOUTS: Final = (Layout(">"), Layout("<"))
"""Formats by the submessage's flag `LITTLE`."""
OURS: Final = LAYOUTS[LITTLE]
_SUB_DATA: Final = Struct("<BBHHH8siI")
_SUB_DATA_FRAG: Final = Struct("<BBHHH8siIIHHI")
_SUB_HEARTBEAT: Final = Struct("<BBH4s4siIiIi")
_SUB_HEAD: Final = Struct("<BBH")
_SUB_TIME: Final = Struct("<BBHII")
DATA_HEAD_BYTES: Final = 20
"""Bytes of a DATA head after the submessage header."""
DATA_FRAG_HEAD_BYTES: Final = 32
OCTETS_TO_INLINE_QOS: Final = 16
OCTETS_TO_INLINE_QOS_FRAG: Final = 28
INFO_DST_NOBODY: Final = _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + NOBODY

# -- building


def header(prefix: bytes) -> bytes:
    """Return the header of a message (§9.4.4)."""
    return MAGIC + VERSION + VENDOR + prefix


def info_ts(wall: float) -> bytes:
    """Return an INFO_TS of a time since 1970, s (§9.4.5.11)."""
    seconds = int(wall)
    return _SUB_TIME.pack(
        INFO_TS,
        LITTLE,
        8,
        # The wire has 32 bits of seconds, which end in the year 2106.
        seconds & 0xFFFFFFFF,
        int((wall - seconds) * 0x100000000) & 0xFFFFFFFF,
    )


def info_dst(prefix: bytes) -> bytes:
    """Return an INFO_DST (§9.4.5.9)."""
    return _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + prefix


def data(pair: bytes, number: int, payload: bytes, inline: bytes = b"") -> bytes:
    """Return a DATA with a payload (§9.4.5.3), padded to a multiple of 4 bytes.

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer.
    number : int
        Sequence number.
    payload : bytes
        Payload with its 4 bytes of encapsulation.
    inline : bytes
        Inline QoS with its sentinel, or empty.
    """
    # Submessages start at multiples of 4 bytes, so the payload is padded, not the
    # datagram.
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
    """Return the head of a DATA without inline QoS; see `data`.

    A payload of `size` bytes, a multiple of 4, must follow.
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
    """Return a DATA submessage addressed to one reader."""
    # The reader's entity id stands after the header (4 bytes), extra flags and offset
    # (2 each).
    return submessage[:8] + reader + submessage[12:]


def data_key(pair: bytes, number: int, inline: bytes, key: bytes) -> bytes:
    """Return a DATA about an instance, such as its disposal.

    It has inline QoS and the serialised key.
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
    """Return a DATA_FRAG with one fragment, counted from 1 (§9.4.5.4).

    It is padded to a multiple of 4 bytes.
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
    """Return a HEARTBEAT (§9.4.5.7)."""
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
    """Return the number of bits and the words of a set; numbers beyond it are left out."""
    words = [0] * (MAX_SET_BITS // 32)
    bits = 0
    for number in numbers:
        k = number - base
        if 0 <= k < MAX_SET_BITS:
            # Bit 0 of a set is the highest bit of its first word (§9.4.2.6).
            words[k >> 5] |= 1 << 31 - (k & 31)
            bits = max(bits, k + 1)

    # Only the words up to the last set bit are sent (§9.4.2.6).
    return bits, words[: bits + 31 >> 5]


def acknack(
    reader: bytes,
    writer: bytes,
    base: int,
    missing: Iterable[int],
    count: int,
    final: bool = False,
) -> bytes:
    """Return an ACKNACK (§9.4.5.2).

    All samples below `base` have arrived, and `missing` are requested.
    """
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
    """Return a GAP: start to base − 1 and `numbers` are irrelevant (§9.4.5.5)."""
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
    """Return a NACK_FRAG: a request for fragments of a sample (§9.4.5.13).

    `fragments` are counted from 1, in rising order, and not empty.
    """
    # A set starts at its first number, so it reaches as far as its 256 bits allow.
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
    """Head of DATA; its contents are `packet[inline:end]`."""

    reader: bytes
    writer: bytes
    number: int
    inline: int
    """Position of inline QoS or, without it, of the payload."""


class DataFrag(NamedTuple):
    """Head of DATA_FRAG."""

    reader: bytes
    writer: bytes
    number: int
    inline: int
    first: int
    """First fragment, from 1."""
    fragments: int
    """Number of fragments."""
    fragment_size: int
    sample_size: int


class Heartbeat(NamedTuple):
    """HEARTBEAT: first <= last + 1."""

    reader: bytes
    writer: bytes
    first: int
    last: int
    serial: int
    """Number that rises with each HEARTBEAT; "count" in the specification."""


class AckNack(NamedTuple):
    """ACKNACK of a reader."""

    reader: bytes
    writer: bytes
    base: int
    missing: list[int]
    serial: int


class Gap(NamedTuple):
    """GAP: start to base − 1, and `numbers`."""

    reader: bytes
    writer: bytes
    start: int
    base: int
    numbers: list[int]


class NackFrag(NamedTuple):
    """NACK_FRAG of a reader."""

    reader: bytes
    writer: bytes
    number: int
    fragments: list[int]
    serial: int


def submessages(packet: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the submessages of a message: id, flags, start and end of the body.

    Raises
    ------
    MalformedError
        A submessage is longer than the packet.
    """
    at, size = HEADER_BYTES, len(packet)
    # Fewer than 4 bytes at the end cannot be a submessage, and are ignored as padding.
    while at + 4 <= size:
        kind, flags = packet[at], packet[at + 1]
        length = (
            packet[at + 2] | packet[at + 3] << 8
            if flags & LITTLE
            else packet[at + 2] << 8 | packet[at + 3]
        )
        at += 4
        end = at + length
        # The last submessage may leave its length out (§9.4.5.1.3).
        if length == 0 and kind not in (
            PAD,
            INFO_TS,
        ):
            end = size

        if end > size:
            raise MalformedError(
                f"submessage 0x{kind:02x} has {length} bytes, but the packet ends after {size - at}"
            )

        yield kind, flags, at, end
        at = end


def _numbers(
    packet: bytes, at: int, end: int, base: int, bits: int, layout: Layout, tail: int
) -> tuple[list[int], int]:
    """Return the numbers of a set whose words start at `at`, and the end of the words.

    At least `tail` bytes must follow.
    """
    n = bits + 31 >> 5
    # The count comes from the peer, so it is checked before the words are read.
    if bits > MAX_SET_BITS or at + 4 * n + tail > end:
        raise MalformedError(f"number set: found {bits} bits in {end - at} bytes")
    found = []
    for i, word in enumerate(layout.words[n].unpack_from(packet, at)):
        # Most words of a set are 0, and a test of all 32 bits would take most of the
        # time.
        if word:
            first, last = 32 * i, min(32 * i + 32, bits)
            found += [base + k for k in range(first, last) if word >> 31 - (k & 31) & 1]

    return found, at + 4 * n


def _number(high: int, low: int) -> int:
    # The high half is signed, so a negative number stays negative and is refused.
    number = high << 32 | low
    if not 1 <= number <= MAX_NUMBER:
        raise MalformedError(
            f"sequence number: expected 1 to {MAX_NUMBER}, found {number}"
        )
    return number


def read_data(packet: bytes, at: int, end: int, layout: Layout) -> Data:
    """Return the head of a DATA.

    Raises
    ------
    MalformedError
        The bytes are not valid; so do all functions that read.
    """
    if end - at < DATA_HEAD_BYTES:
        raise MalformedError(
            f"DATA: expected at least {DATA_HEAD_BYTES} bytes, found {end - at}"
        )
    _, to_inline, reader, writer, high, low = layout.data.unpack_from(packet, at)
    inline = at + 4 + to_inline
    # The head may be longer in later versions, but not shorter.
    if to_inline < OCTETS_TO_INLINE_QOS or to_inline & 3 or inline > end:
        raise MalformedError(f"DATA: the head has {to_inline} bytes")
    return Data(reader, writer, _number(high, low), inline)


def read_data_frag(packet: bytes, at: int, end: int, layout: Layout) -> DataFrag:
    """Return the head of a DATA_FRAG."""
    if end - at < DATA_FRAG_HEAD_BYTES:
        raise MalformedError(
            f"DATA_FRAG: expected at least {DATA_FRAG_HEAD_BYTES} bytes, found {end - at}"
        )
    _, to_inline, reader, writer, high, low, first, count, fragment_size, size = (
        layout.data_frag.unpack_from(packet, at)
    )
    inline = at + 4 + to_inline
    if to_inline < OCTETS_TO_INLINE_QOS_FRAG or to_inline & 3 or inline > end:
        raise MalformedError(f"DATA_FRAG: the head has {to_inline} bytes")
    if not (first and count and fragment_size and size):
        raise MalformedError(
            "DATA_FRAG: expected a fragment number, count and sizes above 0"
        )
    return DataFrag(
        reader, writer, _number(high, low), inline, first, count, fragment_size, size
    )


def read_heartbeat(packet: bytes, at: int, end: int, layout: Layout) -> Heartbeat:
    """Return a HEARTBEAT."""
    if end - at < 28:
        raise MalformedError(f"HEARTBEAT: expected at least 28 bytes, found {end - at}")
    reader, writer, high, low, last_high, last_low, count = (
        layout.heartbeat.unpack_from(packet, at)
    )
    first, last = high << 32 | low, last_high << 32 | last_low
    # A writer without samples sends last = first − 1.
    if first < 1 or last < first - 1 or last > MAX_NUMBER:
        raise MalformedError(
            f"HEARTBEAT: found first number {first} and last number {last}"
        )
    return Heartbeat(reader, writer, first, last, count)


def read_acknack(packet: bytes, at: int, end: int, layout: Layout) -> AckNack:
    """Return an ACKNACK; its base may be 0 (the first one of Fast DDS)."""
    if end - at < 24:
        raise MalformedError(f"ACKNACK: expected at least 24 bytes, found {end - at}")
    reader, writer, high, low, bits = layout.acknack.unpack_from(packet, at)
    # Not checked by `_number`, because a base of 0 is valid here.
    base = high << 32 | low
    if base < 0:
        raise MalformedError(f"ACKNACK: expected a base of at least 0, found {base}")
    if bits:
        missing, at = _numbers(packet, at + 20, end, base, bits, layout, 4)
    else:
        missing, at = [], at + 20

    return AckNack(
        reader, writer, base, missing, layout.int32.unpack_from(packet, at)[0]
    )


def read_gap(packet: bytes, at: int, end: int, layout: Layout) -> Gap:
    """Return a GAP."""
    if end - at < 28:
        raise MalformedError(f"GAP: expected at least 28 bytes, found {end - at}")
    reader, writer, high, low, base_high, base_low, bits = layout.gap.unpack_from(
        packet, at
    )
    start, base = _number(high, low), _number(base_high, base_low)
    if base < start:
        raise MalformedError(f"GAP: found the range from {start} to {base - 1}")
    return Gap(
        reader,
        writer,
        start,
        base,
        _numbers(packet, at + 28, end, base, bits, layout, 0)[0],
    )


def read_nack_frag(packet: bytes, at: int, end: int, layout: Layout) -> NackFrag:
    """Return a NACK_FRAG."""
    if end - at < 28:
        raise MalformedError(f"NACK_FRAG: expected at least 28 bytes, found {end - at}")
    reader, writer, high, low, base, bits = layout.nack_frag.unpack_from(packet, at)
    number = _number(high, low)
    if base < 1:
        raise MalformedError("NACK_FRAG: expected fragments from 1, found 0")
    fragments, at = _numbers(packet, at + 24, end, base, bits, layout, 4)
    return NackFrag(
        reader, writer, number, fragments, layout.int32.unpack_from(packet, at)[0]
    )


def read_heartbeat_frag(
    packet: bytes, at: int, end: int, layout: Layout
) -> tuple[bytes, bytes, int, int]:
    """Return reader, writer, sequence number and last fragment of a HEARTBEAT_FRAG.

    Source: §9.4.5.8.
    """
    if end - at < 24:
        raise MalformedError(
            f"HEARTBEAT_FRAG: expected at least 24 bytes, found {end - at}"
        )
    reader, writer, high, low, last, _ = layout.heartbeat_frag.unpack_from(packet, at)
    return reader, writer, _number(high, low), last
