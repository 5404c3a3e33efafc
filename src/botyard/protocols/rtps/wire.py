"""RTPS messages: header, submessages, sequence numbers and number sets.

A GUID consists of a prefix, 12 bytes, and an entity id, 4 bytes. They are `bytes`
objects in this
package. Messages are sent in little-endian order, and read in both orders. Source: OMG
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
# Vendor ids are assigned from 0x0101 upwards, so 0x01FF will not be assigned soon.
VENDOR: Final = b"\x01\xff"
"""Vendor id of this implementation, a number that is not assigned.

With the id of an existing vendor, peers would expect that vendor's private parameters.
"""
VENDOR_FAST: Final = b"\x01\x0f"
VENDOR_CYCLONE: Final = b"\x01\x10"
# Magic (4 bytes), version (2), vendor (2) and GUID prefix (12); see §9.4.4.
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
"""Flag of DATA: the payload is only the key."""
# DATA_FRAG always has a payload, so the bit of `WITH_DATA` is its flag for "only the
# key" (DDSI-RTPS 2.5, §9.4.5.4).
FRAGMENT_WITH_KEY: Final = 4

UNKNOWN_NUMBER: Final = -1 << 32
"""Sequence number that means "unknown": its high word is −1, its low word 0."""
MAX_NUMBER: Final = (1 << 63) - 1 - 256
"""Highest accepted sequence number: even with 256 added it fits into a signed 64-bit number."""
# Greatest value of a field ``count``, which is a signed 32-bit number.
MAX_COUNT: Final = 0x7FFFFFFF


class MalformedError(PeerError):
    """Bytes of a peer that are not valid RTPS."""


# `Struct` objects are made once, because a busy participant unpacks many heads in each
# step.
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
        """Layout of a parameter's head: id and length."""
        self.uint16 = Struct(order + "H")
        self.uint32 = Struct(order + "I")
        self.int32 = Struct(order + "i")
        self.number = Struct(order + "iI")
        """Layout of a sequence number: int32 high, uint32 low."""
        self.time = Struct(order + "II")
        """Layout of a time: seconds, and fraction in 2^-32 s."""
        self.data = Struct(order + "HH4s4siI")
        """Layout of the head of DATA: extra flags, octets to inline QoS, reader,
        writer, sequence number.
        """
        self.data_frag = Struct(order + "HH4s4siIIHHI")
        """Layout of the head of DATA_FRAG: fields of `data`, then first fragment,
        number of fragments, fragment size, sample size.
        """
        self.heartbeat = Struct(order + "4s4siIiIi")
        """Layout of HEARTBEAT: reader, writer, first and last sequence number, count."""
        self.heartbeat_frag = Struct(order + "4s4siIIi")
        """Layout of HEARTBEAT_FRAG: reader, writer, sequence number, last fragment, count."""
        self.acknack = Struct(order + "4s4siII")
        """Layout of ACKNACK: reader, writer, base of the set and its number of bits;
        then words and count.
        """
        self.gap = Struct(order + "4s4siIiII")
        """Layout of GAP: reader, writer, start, base of the set and its number of bits;
        then words.
        """
        self.nack_frag = Struct(order + "4s4siIII")
        """Layout of NACK_FRAG: reader, writer, sequence number, base of the set and its
        number of bits.

        Words and count follow.
        """
        # A format for each number of words, because a number set has only as many words
        # as it needs.
        self.words = tuple(
            Struct(f"{order}{n}I") for n in range(MAX_SET_BITS // 32 + 1)
        )
        self.words_and_count = tuple(
            Struct(f"{order}{n}Ii") for n in range(MAX_SET_BITS // 32 + 1)
        )


LAYOUTS: Final = (Layout(">"), Layout("<"))
"""Formats for big-endian and little-endian; the index is the submessage's flag `LITTLE`."""
# Sent submessages are little-endian, the native order of nearly all peers.
OURS: Final = LAYOUTS[LITTLE]
# Formats of submessage header and body together, so that one call packs both.
_SUB_DATA: Final = Struct("<BBHHH8siI")
_SUB_DATA_FRAG: Final = Struct("<BBHHH8siIIHHI")
_SUB_HEARTBEAT: Final = Struct("<BBH4s4siIiIi")
_SUB_HEAD: Final = Struct("<BBH")
_SUB_TIME: Final = Struct("<BBHII")
DATA_HEAD_BYTES: Final = 20
"""Size of the head of a DATA after the submessage header, bytes."""
# DATA_FRAG has four fields more than DATA: first fragment, count, fragment size and
# sample size.
DATA_FRAG_HEAD_BYTES: Final = 32
# Values of the field octetsToInlineQos: number of bytes from the end of this field to
# the inline QoS or payload.
OCTETS_TO_INLINE_QOS: Final = 16
OCTETS_TO_INLINE_QOS_FRAG: Final = 28
# INFO_DST that addresses all participants; packed once, because it is sent often.
INFO_DST_NOBODY: Final = _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + NOBODY

# -- building


def header(prefix: bytes) -> bytes:
    """Return the header of a message (§9.4.4).

    Parameters
    ----------
    prefix : bytes
        GUID prefix of the sender, 12 bytes.

    Returns
    -------
    bytes
        20 bytes: magic, version, vendor and prefix.
    """
    return MAGIC + VERSION + VENDOR + prefix


def info_ts(wall: float) -> bytes:
    """Return an INFO_TS of a time since 1970, s (§9.4.5.11).

    Parameters
    ----------
    wall : float
        Time, s since 1970.
    """
    # `int` rounds down, because times since 1970 are positive.
    seconds = int(wall)
    return _SUB_TIME.pack(
        INFO_TS,
        LITTLE,
        8,
        # The field of seconds has 32 bits, which are enough until 2106.
        seconds & 0xFFFFFFFF,
        # The fraction counts 2^-32 s, like the timestamps of NTP.
        int((wall - seconds) * 0x100000000) & 0xFFFFFFFF,
    )


def info_dst(prefix: bytes) -> bytes:
    """Return an INFO_DST (§9.4.5.9).

    Parameters
    ----------
    prefix : bytes
        GUID prefix of the addressed participant, 12 bytes.
    """
    return _SUB_HEAD.pack(INFO_DST, LITTLE, PREFIX_BYTES) + prefix


def data(pair: bytes, number: int, payload: bytes, inline: bytes = b"") -> bytes:
    """Return a DATA with a payload (§9.4.5.3), padded to a multiple of 4 bytes.

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer.
    number : int
        Sequence number of the sample, from 1.
    payload : bytes
        Payload with its 4 bytes of encapsulation.
    inline : bytes
        Inline QoS with its sentinel, or empty.
    """
    # Submessages start at multiples of 4 bytes, so pad the payload.
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

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer, 8 bytes.
    number : int
        Sequence number of the sample, from 1.
    size : int
        Bytes of the payload with its padding.
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
    """Return a DATA submessage addressed to one reader.

    Parameters
    ----------
    submessage : bytes
        DATA with its submessage header.
    reader : bytes
        Entity id of the reader, 4 bytes.
    """
    # The reader's entity id follows after the header (4 bytes), extra flags and offset
    # (2 each).
    return submessage[:8] + reader + submessage[12:]


def data_key(pair: bytes, number: int, inline: bytes, key: bytes) -> bytes:
    """Return a DATA with inline QoS and the serialised key of an instance, such as a disposal.

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer, 8 bytes.
    number : int
        Sequence number of the sample, from 1.
    inline : bytes
        Inline QoS with its sentinel.
    key : bytes
        Serialised key with its 4 bytes of encapsulation.
    """
    body = inline + key + bytes(-len(key) & 3)
    # The inline QoS carries the status: whether the instance was disposed or
    # unregistered.
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

    Parameters
    ----------
    pair : bytes
        Entity ids of reader and writer, 8 bytes.
    number : int
        Sequence number of the sample.
    fragment : int
        Number of the fragment, from 1.
    fragment_size : int
        Size of all fragments except the last, bytes, below 65536.
    sample_size : int
        Size of the whole sample, bytes.
    part : bytes
        Bytes of the fragment.
    inline : bytes
        Inline QoS with its sentinel, or empty. It is sent with each fragment.
    """
    body = inline + part + bytes(-len(part) & 3)
    # Each fragment repeats the inline QoS, because any of them may arrive first.
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
    """Return a HEARTBEAT (§9.4.5.7).

    Parameters
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each; `ANY` for all matched readers.
    first, last : int
        Lowest and highest number of the samples that the writer has; `last` is `first`
        − 1 without samples.
    count : int
        Number that rises with each HEARTBEAT of the writer, at most `MAX_COUNT`.
    final : bool
        Whether readers need not answer.
    """
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
    """Return the number of bits and the words of a number set.

    Numbers beyond the 256 bits of a set are left out.

    Parameters
    ----------
    base : int
        Number that bit 0 represents.
    numbers : iterable of int
        Members of the set, in any order.
    """
    # Start with all words, because the highest member is known only at the end.
    words = [0] * (MAX_SET_BITS // 32)
    bits = 0
    for number in numbers:
        k = number - base
        # A later message requests the numbers beyond the set.
        if 0 <= k < MAX_SET_BITS:
            # Bit 0 of a set is the highest bit of its first word (§9.4.2.6).
            words[k >> 5] |= 1 << 31 - (k & 31)
            bits = max(bits, k + 1)

    # Send only the words up to the last set bit (§9.4.2.6).
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

    Parameters
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each.
    base : int
        Lowest number that has not arrived.
    missing : iterable of int
        Requested numbers; numbers beyond ``base + 255`` are left out.
    count : int
        Number that rises with each ACKNACK of the reader, at most `MAX_COUNT`.
    final : bool
        Whether the writer need not answer.
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
    """Return a GAP: start to base − 1 and `numbers` are irrelevant (§9.4.5.5).

    Parameters
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each; `ANY` for all matched readers.
    start, base : int
        First irrelevant number, and the number after the irrelevant range.
    numbers : iterable of int
        Further irrelevant numbers; numbers beyond ``base + 255`` are left out.
    """
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

    Parameters
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each.
    number : int
        Sequence number of the sample.
    fragments : list of int
        Requested fragments; numbers more than 255 above the first are left out.
    count : int
        Number that rises with each NACK_FRAG of the reader, at most `MAX_COUNT`.
    """
    # Let the set start at the first fragment, so that its 256 bits reach as far as
    # possible.
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
