"""The frame of the Pioneer serial protocol: header, length, checksum, and the integers
inside (pioneer-protocol §1).

``FA FB``, one byte L (number of bytes that follow it), ID, arguments, checksum high
byte first. All other numbers are little-endian.
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
"""Maximum of data bytes in a packet that is sent: a length byte of 198, beyond which
p2os refuses a packet (§1, FRM-011).
"""

MAX_TEXT: Final = 127
"""Characters of a client's text that are logged."""

ARG_POSITIVE: Final = 0x3B
ARG_NEGATIVE: Final = 0x1B
ARG_STRING: Final = 0x2B


def checksum(payload: bytes | bytearray | memoryview) -> int:
    """Checksum over ID and arguments: 16-bit sum of big-endian pairs; a byte left over
    is XORed into the low byte.
    """
    n = len(payload) & ~1
    total = (sum(payload[0:n:2]) << 8) + sum(payload[1:n:2])
    total &= 0xFFFF
    return total ^ payload[-1] if len(payload) & 1 else total


def frame(packet_id: int, data: bytes = b"") -> bytes:
    """A complete packet.

    Raises
    ------
    ValueError
        More than `MAX_DATA` data bytes: an internal error, clients would refuse the
        packet.
    """
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
    """An integer argument of a command: sign as the type byte, then its size as u16
    (−65535 … 65535).
    """
    size = min(abs(value), 0xFFFF)
    return bytes((ARG_NEGATIVE if value < 0 else ARG_POSITIVE,)) + size.to_bytes(
        2, "little"
    )


def string_argument(text: bytes) -> bytes:
    """A string argument of a command: type byte, length, characters (at most `MAX_DATA`
    − 4 are sent).
    """
    text = text[: MAX_DATA - 4]
    return bytes((ARG_STRING, len(text))) + text


def command(number: int, argument: int | bytes | None = None) -> bytes:
    """A command packet, as a client sends it, with an integer, a string, or no
    argument.
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
    """Reads the data of a packet from front to back; beyond the end everything is 0
    (FRM-006).
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return max(len(self._data) - self._at, 0)

    def _number(self, size: int, signed: bool) -> int:
        chunk = self._data[self._at : self._at + size]
        self._at += size
        if len(chunk) < size:
            return 0
        return int.from_bytes(chunk, "little", signed=signed)

    def u8(self) -> int:
        """Unsigned byte."""
        return self._number(1, False)

    def i8(self) -> int:
        """Signed byte."""
        return self._number(1, True)

    def u16(self) -> int:
        """Unsigned 16-bit integer."""
        return self._number(2, False)

    def i16(self) -> int:
        """Signed 16-bit integer."""
        return self._number(2, True)

    def u32(self) -> int:
        """Unsigned 32-bit integer."""
        return self._number(4, False)

    def i32(self) -> int:
        """Signed 32-bit integer."""
        return self._number(4, True)

    def take(self, n: int) -> bytes:
        """The next `n` bytes, fewer at the end."""
        chunk = self._data[self._at : self._at + n]
        self._at += n
        return chunk

    def text(self) -> str:
        """A NUL-terminated string (or the rest)."""
        end = self._data.find(b"\0", self._at)
        end = len(self._data) if end < 0 else end
        chunk = self._data[self._at : end]
        self._at = end + 1
        return chunk.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Packet:
    """A complete packet with a valid checksum.

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
        """A reader over the data."""
        return Reader(self.data)

    def integer(self) -> int:
        """The integer argument: type byte, then its size; 0 when absent. Any type but
        1B counts as positive (§1).
        """
        if len(self.data) < 3:
            return 0
        value: int = struct.unpack_from("<H", self.data, 1)[0]
        return -value if self.data[0] == ARG_NEGATIVE else value

    @property
    def has_argument(self) -> bool:
        """Whether an integer argument is there."""
        return len(self.data) >= 3

    def byte_pair(self) -> tuple[int, int]:
        """A "2 bytes" argument as (low byte, high byte), each 0 … 255: the signed value
        is rebuilt first (§1).
        """
        value = self.integer() & 0xFFFF
        return value & 0xFF, value >> 8

    def string(self) -> str:
        """The string argument: type byte, length, characters."""
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
        """Bad headers."""
        return self.bad_checksums + self.bad_lengths


class Parser:
    """Incremental parser of a byte stream into packets; never raises, whatever the
    bytes.

    Resynchronisation: after a bad length or checksum only the header is skipped and the
    search goes on right behind it, so a valid packet after a truncated one is found.
    The result does not depend on how the stream is split into chunks. The buffer never
    holds more than one incomplete packet (203 bytes) between calls.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.counts = ParserCounts()

    def receive(self, data: bytes) -> list[Packet]:
        """Feed bytes; returns the packets that they complete."""
        buffer, counts, packets = self._buffer, self.counts, []
        buffer += data
        at = 0
        while True:
            start = buffer.find(HEADER, at)
            if start < 0:
                # a last FA may be the first half of a header
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
            if not MIN_LENGTH <= length <= MAX_LENGTH:
                counts.bad_lengths += 1
                counts.garbage += 2
                at += 2
                continue

            end = at + 3 + length
            if len(buffer) < end:
                break
            payload = bytes(buffer[at + 3 : end - 2])
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
