"""RTPS messages: header, submessages, sequence numbers and number sets.

A GUID prefix has 12 bytes, an entity id 4, and a GUID both; they are bytes on the wire
and here. Messages are sent in little-endian order, and read in both orders. Source: OMG
DDSI-RTPS 2.5, §8.3 and §9.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

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
