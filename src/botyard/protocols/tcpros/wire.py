"""The TCPROS wire format: connection headers and frames.

All numbers are little-endian. A connection starts with a header in each direction: its
length (4 bytes), then fields, each with its length (4 bytes) and ``name=value``.
Messages follow, each with its length. A service's answer starts with the byte 1, or
with 0 if an error text follows in place of the response. Sources:
wiki.ros.org/ROS/TCPROS, wiki.ros.org/ROS/Connection Header.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from botyard.errors import PeerError

MAX_HEADER: Final = 64 << 10
"""Longest connection header, bytes; most of it is the definition of a message."""
MAX_FIELDS: Final = 64
"""Limit of the fields in a connection header; six are in use."""
MAX_FRAME: Final = 1 << 20
"""Default limit of a frame after the header, bytes."""
_LENGTH: Final = struct.Struct("<I")


def encode_header(fields: Mapping[str, str]) -> bytes:
    """Return a connection header with its length.

    Parameters
    ----------
    fields : mapping of str to str
        Fields by name; names must not contain ``=``.
    """
    body = b"".join(
        _LENGTH.pack(len(x)) + x
        for x in (f"{k}={v}".encode() for k, v in fields.items())
    )
    return _LENGTH.pack(len(body)) + body


def decode_header(body: bytes) -> dict[str, str]:
    """Return the fields of a connection header, given without its length.

    Parameters
    ----------
    body : bytes
        Fields, each with its length in front.

    Raises
    ------
    PeerError
        A field exceeds the header or has no "=", or there are too many fields.
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
        # The size comes from the peer, so it is checked before slicing.
        if at + size > len(body):
            raise PeerError(
                f"connection header: the field of {size} bytes at byte {at} exceeds the rest"
            )

        if len(fields) >= MAX_FIELDS:
            raise PeerError(f"connection header: expected at most {MAX_FIELDS} fields")
        name, equals, value = body[at : at + size].partition(b"=")
        if not equals:
            raise PeerError("connection header: expected name=value, found no =")
        fields[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at += size

    return fields


def frame(body: bytes | bytearray | memoryview) -> bytes:
    """Return a message with its length in front.

    Parameters
    ----------
    body : bytes-like
        Message in ROS 1's format.
    """
    return _LENGTH.pack(len(body)) + body


def numbered_frame(message: bytes, number: int) -> bytes:
    """Return the frame of a message with a certain ``seq`` number.

    The message must start with a std_msgs/Header, whose first field is ``seq``.

    Messages are encoded once for all subscribers of all publishers, so the number is
    inserted when a message is sent.

    Parameters
    ----------
    message : bytes
        Message in ROS 1's format.
    number : int
        Value of ``seq``, 0 to 2³² − 1.
    """
    return b"".join(
        (
            _LENGTH.pack(len(message)),
            _LENGTH.pack(number),
            memoryview(message)[_LENGTH.size :],
        )
    )


def success(body: bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of a service's successful answer.

    Parameters
    ----------
    body : bytes-like
        Response in ROS 1's format.
    """
    return b"\x01" + frame(body)


def failure(reason: str) -> bytes:
    """Return the bytes of a service's error.

    Parameters
    ----------
    reason : str
        Error text for the client.
    """
    return b"\x00" + frame(reason.encode())


class Frames:
    """Incremental parser of a stream into frames.

    The result does not depend on how the stream is split. Memory is allocated for
    received bytes only, not for announced lengths.

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
        """Feed received bytes.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.
        """
        self._buffer += data

    @property
    def is_empty(self) -> bool:
        """Whether no frame is partly received."""
        return not self._buffer

    @property
    def waiting(self) -> int:
        """Number of bytes that `next` has not returned yet."""
        return len(self._buffer)

    def next(self) -> bytes | None:
        """Return the body of the next frame; None if it is incomplete.

        Raises
        ------
        PeerError
            The frame's length exceeds the limit; the rest of the stream cannot be
            parsed.
        """
        if len(self._buffer) < 4:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer)
        # The first frame is the header, whatever the size of messages.
        limit = MAX_HEADER if self._first else self._limit
        # The length is checked before bytes are collected, so that a wrong length costs
        # no memory.
        if size > limit:
            raise PeerError(f"expected a frame of at most {limit} bytes, found {size}")
        if len(self._buffer) < 4 + size:
            return None
        body = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        self._first = False
        return body

    def feed_bytes(self, data: bytes) -> list[bytes]:
        """Feed received bytes, and return the bodies that they complete.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.

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
