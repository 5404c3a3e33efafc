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
"""Minimum of the length byte: ID and checksum."""
MAX_LENGTH: Final = 200
"""Maximum of the length byte that is accepted (FRM-010)."""
MAX_PACKET: Final = 3 + MAX_LENGTH
"""Longest packet that is accepted, bytes."""
MAX_DATA: Final = 195
"""Limit of the data bytes in a sent packet.

The length byte is then 198, beyond which p2os refuses a packet (§1, FRM-011).
"""

MAX_TEXT: Final = 127
"""Limit of the characters of a client's text that are logged."""

ARG_POSITIVE: Final = 0x3B
ARG_NEGATIVE: Final = 0x1B
ARG_STRING: Final = 0x2B


def checksum(payload: bytes | bytearray | memoryview) -> int:
    """Return the checksum over ID and arguments.

    It is the 16-bit sum of big-endian pairs; a remaining byte is XORed into the low
    byte.
    """
    # Sums of slices run in C, unlike a loop over pairs.
    n = len(payload) & ~1
    total = (sum(payload[0:n:2]) << 8) + sum(payload[1:n:2])
    total &= 0xFFFF
    return total ^ payload[-1] if len(payload) & 1 else total


def frame(packet_id: int, data: bytes = b"") -> bytes:
    """Return a complete packet.

    Raises
    ------
    ValueError
        There are more than `MAX_DATA` data bytes. This is an internal error, because
        clients would refuse the packet.
    """
    # Checked in one place: builders of packets limit their own lists before.
    if len(data) > MAX_DATA:
        raise ValueError(
            f"packet 0x{packet_id:02x}: at most {MAX_DATA} data bytes, found {len(data)}"
        )

    payload = bytes((packet_id,)) + data
    return (
        HEADER
        + bytes((len(payload) + 2,))
        + payload
        + checksum(payload).to_bytes(2, "big")
    )


def int_argument(value: int) -> bytes:
    """Return an integer argument of a command: sign as the type byte, then size as u16.

    The range is −65535 to 65535.
    """
    # The sign is in the type byte, so the size uses all 16 bits.
    size = min(abs(value), 0xFFFF)
    return bytes((ARG_NEGATIVE if value < 0 else ARG_POSITIVE,)) + size.to_bytes(
        2, "little"
    )


def string_argument(text: bytes) -> bytes:
    """Return a string argument of a command: type byte, length, characters.

    At most `MAX_DATA` − 4 characters are sent.
    """
    text = text[: MAX_DATA - 4]
    return bytes((ARG_STRING, len(text))) + text


def command(number: int, argument: int | bytes | None = None) -> bytes:
    """Return a command packet of a client, with an integer, a string, or no argument."""
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

    Values beyond the end are 0 (FRM-006).
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
        """Read the next `n` bytes, fewer at the end."""
        chunk = self._data[self._at : self._at + n]
        self._at += n
        return chunk

    def text(self) -> str:
        """Read a NUL-terminated string, or the rest."""
        end = self._data.find(b"\0", self._at)
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
        """Return a reader of the data."""
        return Reader(self.data)

    def integer(self) -> int:
        """Return the integer argument: type byte, then size; 0 if absent.

        Any type other than 1B counts as positive (§1).
        """
        if len(self.data) < 3:
            return 0
        value: int = struct.unpack_from("<H", self.data, 1)[0]
        return -value if self.data[0] == ARG_NEGATIVE else value

    @property
    def has_argument(self) -> bool:
        """Whether there is an integer argument."""
        return len(self.data) >= 3

    def byte_pair(self) -> tuple[int, int]:
        """Return a "2 bytes" argument as (low byte, high byte), each 0 to 255.

        The signed value is rebuilt first (§1).
        """
        value = self.integer() & 0xFFFF
        return value & 0xFF, value >> 8

    def string(self) -> str:
        """Return the string argument: type byte, length, characters."""
        if len(self.data) < 2:
            return ""
        return self.data[2 : 2 + self.data[1]].rstrip(b"\0").decode("latin-1")


@dataclass(slots=True)
class ParserCounts:
    """Statistics of a `Parser`.

    Attributes
    ----------
    packets : int
        Valid packets.
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
        """Number of bad headers."""
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

    def feed_bytes(self, data: bytes) -> list[Packet]:
        """Feed bytes, and return the packets that they complete."""
        buffer, counts, packets = self._buffer, self.counts, []
        buffer += data
        at = 0
        while True:
            start = buffer.find(HEADER, at)
            if start < 0:
                # A last FA may be the first half of a header.
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
                packets.append(Packet(payload[0], payload[1:]))
                counts.packets += 1
                at = end
            else:
                counts.bad_checksums += 1
                counts.garbage += 2
                at += 2

        del buffer[:at]
        return packets
