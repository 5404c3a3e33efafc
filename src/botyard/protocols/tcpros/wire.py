"""The TCPROS wire format: connection headers and frames (wiki.ros.org/ROS/TCPROS,
wiki.ros.org/ROS/Connection Header).

Everything is little-endian. A connection begins with a header in each direction: its
length (4 bytes), then fields, each with its length (4 bytes) and ``name=value``. Then
messages follow, each with its length. Before a service's answer stands 1, or 0 and then
an error text.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from botyard.errors import PeerError

MAX_HEADER: Final = 64 << 10
"""Longest connection header, bytes: most of it is the definition of a message."""
MAX_FIELDS: Final = 64
"""Fields of a connection header; six are in use."""
MAX_FRAME: Final = 1 << 20
"""Longest frame after it, bytes, unless its reader says otherwise."""
_LENGTH: Final = struct.Struct("<I")


def encode_header(fields: Mapping[str, str]) -> bytes:
    """A connection header, its length included."""
    body = b"".join(
        _LENGTH.pack(len(x)) + x
        for x in (f"{k}={v}".encode() for k, v in fields.items())
    )
    return _LENGTH.pack(len(body)) + body


def decode_header(body: bytes) -> dict[str, str]:
    """The fields of a connection header without its length.

    Raises
    ------
    PeerError
        A field exceeds the header, or has no "="; too many fields.
    """
    fields: dict[str, str] = {}
    at = 0
    while at < len(body):
        if at + 4 > len(body):
            raise PeerError(
                f"connection header: expected a length at byte {at}, found the end"
            )

        (size,) = _LENGTH.unpack_from(body, at)
        at += 4
        if at + size > len(body):
            raise PeerError(
                f"connection header: a field of {size} bytes at byte {at} exceeds it"
            )

        if len(fields) >= MAX_FIELDS:
            raise PeerError(f"connection header: more than {MAX_FIELDS} fields")
        name, equals, value = body[at : at + size].partition(b"=")
        if not equals:
            raise PeerError("connection header: expected name=value, found no =")
        fields[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at += size

    return fields


def frame(body: bytes | bytearray | memoryview) -> bytes:
    """A message with its length in front."""
    return _LENGTH.pack(len(body)) + body


def numbered_frame(message: bytes, number: int) -> bytes:
    """The frame of a message that begins with a std_msgs/Header, whose first field,
    ``seq``, is this number.
    """
    return b"".join(
        (
            _LENGTH.pack(len(message)),
            _LENGTH.pack(number),
            memoryview(message)[_LENGTH.size :],
        )
    )


def success(body: bytes | bytearray | memoryview) -> bytes:
    """A service's answer."""
    return b"\x01" + frame(body)


def failure(reason: str) -> bytes:
    """A service's error."""
    return b"\x00" + frame(reason.encode())


class Frames:
    """Incremental parser of a stream into frames; the result does not depend on how the
    stream is split.

    Memory is allocated for received bytes only, not for announced lengths.

    Parameters
    ----------
    limit : int
        Longest frame after the first, which is a header, bytes.
    """

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._buffer = bytearray()
        self._limit = limit
        self._first = True

    def add(self, data: bytes) -> None:
        """Feed bytes."""
        self._buffer += data

    @property
    def is_empty(self) -> bool:
        """Whether no frame is partly received."""
        return not self._buffer

    @property
    def waiting(self) -> int:
        """Bytes that `next` has not returned yet."""
        return len(self._buffer)

    def next(self) -> bytes | None:
        """The body of the next frame, if it is complete.

        Raises
        ------
        PeerError
            The frame's length exceeds the limit; the stream cannot be parsed any
            further.
        """
        if len(self._buffer) < 4:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer)
        limit = MAX_HEADER if self._first else self._limit
        if size > limit:
            raise PeerError(f"a frame of {size} bytes; at most {limit} are taken")
        if len(self._buffer) < 4 + size:
            return None
        body = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        self._first = False
        return body

    def receive(self, data: bytes) -> list[bytes]:
        """Feed bytes; returns the bodies that they complete.

        Raises
        ------
        PeerError
            See `next`.
        """
        self.add(data)
        found = []
        while (body := self.next()) is not None:
            found.append(body)
        return found
