"""Reading of RTPS submessages, in either byte order. Source: OMG DDSI-RTPS 2.5, §9.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from botyard.protocols.rtps.limits import MAX_SET_BITS
from botyard.protocols.rtps.wire import (
    DATA_FRAG_HEAD_BYTES,
    DATA_HEAD_BYTES,
    HEADER_BYTES,
    INFO_TS,
    LITTLE,
    MAX_NUMBER,
    OCTETS_TO_INLINE_QOS,
    OCTETS_TO_INLINE_QOS_FRAG,
    PAD,
    Layout,
    MalformedError,
)


class Data(NamedTuple):
    """Head of a DATA submessage; inline QoS and payload are `packet[inline:end]`.

    Attributes
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each; `reader` is `wire.ANY` for all matched readers.
    number : int
        Sequence number, from 1.
    """

    reader: bytes
    writer: bytes
    number: int
    inline: int
    """Position of inline QoS or, without it, of the payload."""


class DataFrag(NamedTuple):
    """Head of a DATA_FRAG submessage.

    Attributes
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each; `reader` is `wire.ANY` for all matched readers.
    number : int
        Sequence number of the sample, from 1.
    inline : int
        Position of inline QoS or, without it, of the first fragment.
    fragment_size, sample_size : int
        Sizes of a fragment and of the whole sample, bytes.
    """

    reader: bytes
    writer: bytes
    number: int
    inline: int
    first: int
    """Number of the first fragment in the submessage, from 1."""
    fragments: int
    """Number of fragments in the submessage."""
    fragment_size: int
    sample_size: int


class Heartbeat(NamedTuple):
    """HEARTBEAT of a writer, which has the samples `first` to `last`; first <= last + 1."""

    reader: bytes
    writer: bytes
    first: int
    last: int
    serial: int
    """Number that rises with each HEARTBEAT; "count" in the specification."""


class AckNack(NamedTuple):
    """ACKNACK of a reader.

    Attributes
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each.
    base : int
        All samples below this number have arrived.
    missing : list of int
        Requested numbers in rising order, from `base` on.
    serial : int
        Number that rises with each ACKNACK of the reader.
    """

    reader: bytes
    writer: bytes
    base: int
    missing: list[int]
    serial: int


class Gap(NamedTuple):
    """GAP of a writer: the numbers from `start` to `base` − 1, and `numbers`, are irrelevant.

    Attributes
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each; `reader` is `wire.ANY` for all matched readers.
    start, base : int
        First irrelevant number, and the number after the irrelevant range.

                numbers : list of int
        Further irrelevant numbers in rising order, from `base` on.
    """

    reader: bytes
    writer: bytes
    start: int
    base: int
    numbers: list[int]


class NackFrag(NamedTuple):
    """NACK_FRAG of a reader.

    Attributes
    ----------
    reader, writer : bytes
        Entity ids, 4 bytes each.
    number : int
        Sequence number of the sample.
    fragments : list of int
        Requested fragments in rising order, from 1.
    serial : int
        Number that rises with each NACK_FRAG of the reader.
    """

    reader: bytes
    writer: bytes
    number: int
    fragments: list[int]
    serial: int


def submessages(packet: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield id, flags, start and end of the body of each submessage in a packet.

    Parameters
    ----------
    packet : bytes
        Whole datagram with a checked header.

    Yields
    ------
    tuple of int
        Id, flags, and positions of the body's first byte and of the byte after it.

    Raises
    ------
    MalformedError
        A submessage is longer than the packet.
    """
    # Use indices instead of slices, because a slice would copy each submessage.
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
            # PAD and INFO_TS with the flag `INVALIDATE` are the two submessages that
            # may really be empty.
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
    """Return the members of a number set, and the index after its words.

    Source: DDSI-RTPS 2.5, §9.4.2.6 and §9.4.2.8 (SequenceNumberSet, FragmentNumberSet).

    Parameters
    ----------
    packet : bytes
        Whole datagram.
    at, end : int
        Index of the set's first word, and index after the submessage.
    base : int
        Number that bit 0 represents.
    bits : int
        Number of bits, as the peer states it.
    layout : Layout
        Byte order of the submessage.
    tail : int
        Number of bytes of the submessage that must follow the set.

    Raises
    ------
    MalformedError
        The set is longer than the submessage or than 256 bits.
    """
    # Number of words: the bits, rounded up to whole words.
    n = bits + 31 >> 5
    # The count comes from the peer, so it is checked before the words are read.
    if bits > MAX_SET_BITS or at + 4 * n + tail > end:
        most = min(MAX_SET_BITS, 8 * max(end - at - tail, 0))
        raise MalformedError(
            f"number set: expected at most {most} bits, found {bits} bits"
        )
    found = []
    for i, word in enumerate(layout.words[n].unpack_from(packet, at)):
        # Skip words that are 0, as most are: testing all bits would take most of the
        # time.
        if word:
            first, last = 32 * i, min(32 * i + 32, bits)
            found += [base + k for k in range(first, last) if word >> 31 - (k & 31) & 1]

    return found, at + 4 * n


def _number(high: int, low: int) -> int:
    """Return the sequence number that consists of two 32-bit halves.

    Raises
    ------
    MalformedError
        The number is not within 1 to `MAX_NUMBER`.
    """
    # The high half is signed, so a negative number stays negative and is refused.
    number = high << 32 | low
    if not 1 <= number <= MAX_NUMBER:
        raise MalformedError(
            f"sequence number: expected 1 to {MAX_NUMBER}, found {number}"
        )
    return number


def read_data(packet: bytes, at: int, end: int, layout: Layout) -> Data:
    """Return the head of a DATA.

    Source: §9.4.5.3.

    Parameters
    ----------
    packet : bytes
        Whole datagram.
    at, end : int
        Index of the body's first byte, and index after the body.
    layout : Layout
        Byte order of the submessage.

    Raises
    ------
    MalformedError
        The bytes are not a valid DATA.
    """
    # Check the length before unpacking, because the peer may state any length.
    if end - at < DATA_HEAD_BYTES:
        raise MalformedError(
            f"DATA: expected at least {DATA_HEAD_BYTES} bytes, found {end - at}"
        )

    _, to_inline, reader, writer, high, low = layout.data.unpack_from(packet, at)

    inline = at + 4 + to_inline

    # In later versions of RTPS the head may be longer, but not shorter.
    if to_inline < OCTETS_TO_INLINE_QOS or to_inline & 3 or inline > end:
        raise MalformedError(
            f"DATA: expected a head of at least {OCTETS_TO_INLINE_QOS} bytes within the "
            f"submessage, found {to_inline} bytes"
        )
    return Data(reader, writer, _number(high, low), inline)


def read_data_frag(packet: bytes, at: int, end: int, layout: Layout) -> DataFrag:
    """Return the head of a DATA_FRAG.

    Source: §9.4.5.4.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < DATA_FRAG_HEAD_BYTES:
        raise MalformedError(
            f"DATA_FRAG: expected at least {DATA_FRAG_HEAD_BYTES} bytes, found {end - at}"
        )

    _, to_inline, reader, writer, high, low, first, count, fragment_size, size = (
        layout.data_frag.unpack_from(packet, at)
    )

    inline = at + 4 + to_inline
    if to_inline < OCTETS_TO_INLINE_QOS_FRAG or to_inline & 3 or inline > end:
        raise MalformedError(
            f"DATA_FRAG: expected a head of at least {OCTETS_TO_INLINE_QOS_FRAG} bytes "
            f"within the submessage, found {to_inline} bytes"
        )

    # Zeros would make the arithmetic of fragments meaningless.
    if not (first and count and fragment_size and size):
        raise MalformedError(
            "DATA_FRAG: expected a fragment number, count and sizes above 0, found "
            f"number {first}, count {count}, fragments of {fragment_size} bytes and a "
            f"sample of {size} bytes"
        )

    return DataFrag(
        reader, writer, _number(high, low), inline, first, count, fragment_size, size
    )


def read_heartbeat(packet: bytes, at: int, end: int, layout: Layout) -> Heartbeat:
    """Return a HEARTBEAT.

    Source: §9.4.5.7.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < 28:
        raise MalformedError(f"HEARTBEAT: expected at least 28 bytes, found {end - at}")

    reader, writer, high, low, last_high, last_low, count = (
        layout.heartbeat.unpack_from(packet, at)
    )
    # `_number` is not used, because the last number is 0 for a writer without samples.
    first, last = high << 32 | low, last_high << 32 | last_low

    # A writer without samples sends last = first − 1.
    if first < 1 or last < first - 1 or last > MAX_NUMBER:
        raise MalformedError(
            f"HEARTBEAT: expected a range of numbers, found {first} to {last}"
        )
    return Heartbeat(reader, writer, first, last, count)


def read_acknack(packet: bytes, at: int, end: int, layout: Layout) -> AckNack:
    """Return an ACKNACK. Its base may be 0, as in the first ACKNACK of Fast DDS.

    Source: §9.4.5.2.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < 24:
        raise MalformedError(f"ACKNACK: expected at least 24 bytes, found {end - at}")

    reader, writer, high, low, bits = layout.acknack.unpack_from(packet, at)

    # `_number` is not used, because a base of 0 is valid here.
    base = high << 32 | low
    if base < 0:
        raise MalformedError(f"ACKNACK: expected a base of at least 0, found {base}")
    # Most ACKNACKs request nothing, so this short path saves time.
    if bits:
        missing, at = _numbers(packet, at + 20, end, base, bits, layout, 4)
    else:
        missing, at = [], at + 20

    return AckNack(
        reader, writer, base, missing, layout.int32.unpack_from(packet, at)[0]
    )


def read_gap(packet: bytes, at: int, end: int, layout: Layout) -> Gap:
    """Return a GAP.

    Source: §9.4.5.5.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < 28:
        raise MalformedError(f"GAP: expected at least 28 bytes, found {end - at}")
    reader, writer, high, low, base_high, base_low, bits = layout.gap.unpack_from(
        packet, at
    )

    start, base = _number(high, low), _number(base_high, base_low)

    # An empty range has base = start; a negative range is not valid.
    if base < start:
        raise MalformedError(
            f"GAP: expected a range of numbers, found {start} to {base - 1}"
        )

    return Gap(
        reader,
        writer,
        start,
        base,
        _numbers(packet, at + 28, end, base, bits, layout, 0)[0],
    )


def read_nack_frag(packet: bytes, at: int, end: int, layout: Layout) -> NackFrag:
    """Return a NACK_FRAG.

    Source: §9.4.5.13.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < 28:
        raise MalformedError(f"NACK_FRAG: expected at least 28 bytes, found {end - at}")
    reader, writer, high, low, base, bits = layout.nack_frag.unpack_from(packet, at)
    number = _number(high, low)
    # Fragments are numbered from 1, so the base of the set is at least 1.
    if base < 1:
        raise MalformedError(
            f"NACK_FRAG: expected fragment numbers from 1, found {base}"
        )
    fragments, at = _numbers(packet, at + 24, end, base, bits, layout, 4)
    return NackFrag(
        reader, writer, number, fragments, layout.int32.unpack_from(packet, at)[0]
    )


def read_heartbeat_frag(
    packet: bytes, at: int, end: int, layout: Layout
) -> tuple[bytes, bytes, int, int]:
    """Return reader, writer, sequence number and last fragment of a HEARTBEAT_FRAG.

    Source: §9.4.5.8.

    Parameters
    ----------
    packet, at, end, layout
        See `read_data`.

    Raises
    ------
    MalformedError
        The bytes are not valid.
    """
    if end - at < 24:
        raise MalformedError(
            f"HEARTBEAT_FRAG: expected at least 24 bytes, found {end - at}"
        )
    # Ignore the count: a duplicate HEARTBEAT_FRAG only causes a further request for
    # fragments.
    reader, writer, high, low, last, _ = layout.heartbeat_frag.unpack_from(packet, at)
    return reader, writer, _number(high, low), last
