"""TCPROS on the wire: connection headers and frames (wiki.ros.org/ROS/TCPROS, wiki.ros.org/ROS/Connection Header).

Everything is little-endian. A connection begins with a header in each direction: its length (4 bytes), then fields, each with its length
(4 bytes) and ``name=value``. Then messages follow, each with its length. Before a service's answer stands 1, or 0 and then an error text.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from botyard.errors import PeerError

MAX_HEADER: Final = 1 << 20
MAX_MESSAGE: Final = 1 << 28
"""Longer frames are taken for garbage: 256 MiB."""
_LENGTH: Final = struct.Struct("<I")


def encode_header(fields: Mapping[str, str]) -> bytes:
    """A connection header, its length included."""
    body = b"".join(_LENGTH.pack(len(x)) + x for x in (f"{k}={v}".encode() for k, v in fields.items()))
    return _LENGTH.pack(len(body)) + body


def decode_header(body: bytes) -> dict[str, str]:
    """The fields of a connection header without its length.

    Raises
    ------
    PeerError
        A field that stands out, or has no "=".
    """
    fields: dict[str, str] = {}
    at = 0
    while at < len(body):
        if at + 4 > len(body):
            raise PeerError(f"connection header: expected a length at byte {at}, found the end")
        (size,) = _LENGTH.unpack_from(body, at)
        at += 4
        if at + size > len(body):
            raise PeerError(f"connection header: a field of {size} bytes at byte {at} stands out")
        name, equals, value = body[at : at + size].partition(b"=")
        if not equals:
            raise PeerError("connection header: expected name=value, found no =")
        fields[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at += size
    return fields


def frame(body: bytes | bytearray | memoryview) -> bytes:
    """A message with its length in front."""
    return _LENGTH.pack(len(body)) + body


def success(body: bytes | bytearray | memoryview) -> bytes:
    """A service's answer."""
    return b"\x01" + frame(body)


def failure(reason: str) -> bytes:
    """A service's error."""
    return b"\x00" + frame(reason.encode())


class Frames:
    """Cuts a stream into frames; the result does not depend on how the stream is cut into pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._first = True

    def receive(self, data: bytes) -> list[bytes]:
        """Take bytes, return the bodies that they complete.

        Raises
        ------
        PeerError
            A length that no header or message has; nothing of the stream can be understood from then on.
        """
        self._buffer += data
        found = []
        while len(self._buffer) >= 4:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > (MAX_HEADER if self._first else MAX_MESSAGE):
                raise PeerError(
                    f"a frame of {size} bytes; at most {MAX_HEADER if self._first else MAX_MESSAGE} are taken"
                )
            if len(self._buffer) < 4 + size:
                break
            found.append(bytes(self._buffer[4 : 4 + size]))
            del self._buffer[: 4 + size]
            self._first = False
        return found
