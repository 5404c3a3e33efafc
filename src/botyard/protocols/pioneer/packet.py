"""Frame of the Pioneer serial protocol: header, length, checksum and integers.

A packet is ``FA FB``, one byte L (number of bytes that follow it), ID, arguments, and
the checksum, high byte first. All other numbers are little-endian. Source:
pioneer-protocol §1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

HEADER: Final = b"\xfa\xfb"
MIN_LENGTH: Final = 3
"""Least value of the length byte: a packet has at least ID and checksum."""
MAX_LENGTH: Final = 200
"""Greatest length byte that is accepted."""
MAX_PACKET: Final = 3 + MAX_LENGTH
"""Longest packet that is accepted, bytes."""
MAX_DATA: Final = 195
"""Limit of the data bytes in a sent packet.

With this number of data bytes, the length byte is 198. Player's driver p2os refuses
packets with a greater length byte (pioneer-protocol §1).
"""

# Clients may send long texts, so limit the length in the log.
MAX_TEXT: Final = 127
"""Limit of the characters of a client's text that are logged."""

# Types of an argument: positive or zero integer, negative integer, string.
ARG_POSITIVE: Final = 0x3B
ARG_NEGATIVE: Final = 0x1B
ARG_STRING: Final = 0x2B


def checksum(payload: bytes | bytearray | memoryview) -> int:
    """Return the checksum over ID and arguments.

    It is the 16-bit sum of big-endian pairs; a remaining byte is XORed into the low
    byte.

    Source: pioneer-protocol §1.

    Parameters
    ----------
    payload : bytes-like
        ID and arguments, without header, length byte and the checksum itself.

    Returns
    -------
    int
        0 to 65535. On the wire the high byte comes first.
    """
    # Sums of slices run in C, unlike a loop over pairs.
    n = len(payload) & ~1
    total = (sum(payload[0:n:2]) << 8) + sum(payload[1:n:2])
    # The carries may be dropped at the end, because addition modulo 2^16 is
    # associative.
    total &= 0xFFFF
    return total ^ payload[-1] if len(payload) & 1 else total


def frame(packet_id: int, data: bytes = b"") -> bytes:
    """Return a complete packet.

    Parameters
    ----------
    packet_id : int
        Command number (client) or packet type (robot), 0 to 255.
    data : bytes
        Arguments, at most `MAX_DATA` bytes.

    Returns
    -------
    bytes
        Header, length byte, ID, arguments and checksum: ``len(data) + 6`` bytes.

    Raises
    ------
    ValueError
        There are more than `MAX_DATA` data bytes. This is an internal error, because
        clients would refuse the packet.
    """
    # Builders of packets limit their lists, so a longer packet is an internal error.
    if len(data) > MAX_DATA:
        raise ValueError(
            f"packet 0x{packet_id:02x}: expected at most {MAX_DATA} data bytes, "
            f"found {len(data)}"
        )

    payload = bytes((packet_id,)) + data
    return (
        HEADER
        + bytes((len(payload) + 2,))
        + payload
        + checksum(payload).to_bytes(2, "big")
    )


def int_argument(value: int) -> bytes:
    """Return an integer argument of a command: type byte for the sign, absolute value as u16.

    The range is −65535 to 65535.

    Parameters
    ----------
    value : int
        Argument in the unit of the command. Beyond ±65535 it is saturated.

    Returns
    -------
    bytes
        Type byte 3B (positive or 0) or 1B (negative), and the absolute value (§1).
    """
    # The sign is in the type byte, so the absolute value uses all 16 bits.
    size = min(abs(value), 0xFFFF)
    return bytes((ARG_NEGATIVE if value < 0 else ARG_POSITIVE,)) + size.to_bytes(
        2, "little"
    )


def string_argument(text: bytes) -> bytes:
    """Return a string argument of a command: type byte, length, characters.

    At most `MAX_DATA` − 4 characters are sent.

    Parameters
    ----------
    text : bytes
        Characters. A longer text is cut without an error.

    Returns
    -------
    bytes
        Type byte 2B, length and characters, without a NUL (§1).
    """
    text = text[: MAX_DATA - 4]
    return bytes((ARG_STRING, len(text))) + text


def command(number: int, argument: int | bytes | None = None) -> bytes:
    """Return a command packet of a client, with an integer, a string, or no argument.

    Parameters
    ----------
    number : int
        Command number, one of `commands.C`.
    argument : int or bytes, optional
        Integer argument in the unit of the command, saturated at ±65535, or text. By
        default there is no argument, which robots read as 0.

    Returns
    -------
    bytes
        Complete packet.
    """
    if argument is None:
        return frame(number)
    return frame(
        number,
        int_argument(argument)
        if isinstance(argument, int)
        else string_argument(argument),
    )


class Reader:
    """Reader of the data of a packet, from front to back.

    Values beyond the end of the data are 0.

    Parameters
    ----------
    data : bytes
        Arguments of the packet, without ID and checksum. They are not copied.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        """Number of bytes not yet read."""
        return max(len(self._data) - self._at, 0)

    def _number(self, size: int, signed: bool) -> int:
        chunk = self._data[self._at : self._at + size]
        # The position also moves beyond the end, so that later fields read as 0 as
        # well.
        self._at += size
        if len(chunk) < size:
            return 0
        return int.from_bytes(chunk, "little", signed=signed)

    def u8(self) -> int:
        """Read an unsigned byte."""
        return self._number(1, False)

    def i8(self) -> int:
        """Read a signed byte."""
        return self._number(1, True)

    def u16(self) -> int:
        """Read an unsigned 16-bit integer."""
        return self._number(2, False)

    def i16(self) -> int:
        """Read a signed 16-bit integer."""
        return self._number(2, True)

    def u32(self) -> int:
        """Read an unsigned 32-bit integer."""
        return self._number(4, False)

    def i32(self) -> int:
        """Read a signed 32-bit integer."""
        return self._number(4, True)

    def take(self, n: int) -> bytes:
        """Read the next `n` bytes, fewer at the end.

        Parameters
        ----------
        n : int
            Number of bytes; 0 or more.

        Returns
        -------
        bytes
            At most `n` bytes; empty beyond the end.
        """
        chunk = self._data[self._at : self._at + n]
        self._at += n
        return chunk

    def text(self) -> str:
        """Read a string up to a NUL, or to the end of the bytes.

        Returns
        -------
        str
            Characters in Latin-1, which can decode all bytes, without the NUL.
        """
        end = self._data.find(b"\0", self._at)
        # A text at the end of a packet may lack its NUL.
        end = len(self._data) if end < 0 else end
        chunk = self._data[self._at : end]
        self._at = end + 1
        return chunk.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Packet:
    """Complete packet with a valid checksum.

    Attributes
    ----------
    id : int
        Command number or packet type.
    data : bytes
        Arguments.
    """

    id: int
    data: bytes

    def reader(self) -> Reader:
        """Return a reader of the packet's arguments."""
        return Reader(self.data)

    def integer(self) -> int:
        """Return the integer argument; 0 if it is absent.

        It is a type byte and the absolute value. Any type other than 1B counts as
        positive (pioneer-protocol §1).

        Returns
        -------
        int
            −65535 to 65535, in the unit of the command.
        """
        # A truncated argument counts as absent.
        if len(self.data) < 3:
            return 0
        value: int = struct.unpack_from("<H", self.data, 1)[0]
        return -value if self.data[0] == ARG_NEGATIVE else value

    @property
    def has_argument(self) -> bool:
        """Whether there is an integer argument."""
        return len(self.data) >= 3

    def byte_pair(self) -> tuple[int, int]:
        """Return an integer argument that holds two bytes, as (low byte, high byte), each 0 to 255.

        Clients send a pair with a negative high byte as a negative integer, with type
        byte and absolute value (pioneer-protocol §1). The result is therefore taken
        from the signed integer, not from the data.

        Returns
        -------
        tuple of int
            Low and high byte. The command defines whether they are signed.
        """
        value = self.integer() & 0xFFFF
        return value & 0xFF, value >> 8

    def string(self) -> str:
        """Return the string argument: type byte, length, characters.

        Returns
        -------
        str
            Characters in Latin-1, without NULs at the end. It is shorter than the
            stated length if the packet ends before, and empty without an argument.
        """
        if len(self.data) < 2:
            return ""
        return self.data[2 : 2 + self.data[1]].rstrip(b"\0").decode("latin-1")


@dataclass(slots=True)
class ParserCounts:
    """Statistics of a `Parser`.

    Attributes
    ----------
    packets : int
        Number of valid packets.
    bad_checksums, bad_lengths : int
        Headers followed by a wrong checksum or an impossible length.
    garbage : int
        Bytes that belong to no packet.
    """

    packets: int = 0
    bad_checksums: int = 0
    bad_lengths: int = 0
    garbage: int = 0

    @property
    def errors(self) -> int:
        """Number of headers that were followed by a wrong checksum or an impossible length."""
        return self.bad_checksums + self.bad_lengths


class Parser:
    """Incremental parser of a byte stream into packets; never raises.

    After a bad length or checksum only the header is skipped, and the search continues
    right after it. A valid packet after a truncated one is therefore found. The result
    does not depend on how the stream is split into chunks. Between calls the buffer
    never holds more than one incomplete packet (203 bytes).
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.counts = ParserCounts()

    @property
    def is_empty(self) -> bool:
        """Whether no bytes of an incomplete packet are kept."""
        return not self._buffer

    def feed_bytes(self, data: bytes) -> list[Packet]:
        """Feed bytes, and return the packets that they complete.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.

        Returns
        -------
        list of Packet
            Packets with a valid checksum, oldest first. Invalid ones are counted in
            `counts`.
        """
        buffer, counts, packets = self._buffer, self.counts, []
        buffer += data
        at = 0
        while True:
            start = buffer.find(HEADER, at)
            if start < 0:
                # The last byte may be the first half of a header.
                end = (
                    len(buffer) - 1
                    if len(buffer) > at and buffer[-1] == HEADER[0]
                    else len(buffer)
                )
                counts.garbage += end - at
                at = end
                break

            counts.garbage += start - at
            at = start
            # The bytes up to here do not contain the length byte yet.
            if len(buffer) < at + 3:
                break
            length = buffer[at + 2]
            # A length out of range cannot belong to a packet; waiting for its bytes
            # would block the stream.
            if not MIN_LENGTH <= length <= MAX_LENGTH:
                # Only the two bytes of the header are skipped, because a packet may
                # start inside.
                counts.bad_lengths += 1
                counts.garbage += 2
                at += 2
                continue

            end = at + 3 + length
            if len(buffer) < end:
                break
            payload = bytes(buffer[at + 3 : end - 2])
            # The checksum is the only big-endian number of the protocol.
            if checksum(payload) == int.from_bytes(buffer[end - 2 : end], "big"):
                # `MIN_LENGTH` makes sure that there is an ID.
                packets.append(Packet(payload[0], payload[1:]))
                counts.packets += 1
                at = end
            else:
                # As after a bad length, skip only the header: a packet may start inside
                # the damaged one.
                counts.bad_checksums += 1
                counts.garbage += 2
                at += 2

        # Delete all parsed bytes at once, because each deletion copies the remaining
        # bytes.
        del buffer[:at]
        return packets
