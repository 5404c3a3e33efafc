"""Encodings of rosbridge's messages: JSON, CBOR, CBOR-RAW, PNG, and fragments of JSON.

Source: ROSBRIDGE_PROTOCOL.md, section 3.1.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.rosbridge import cbor
from botyard.protocols.rosbridge.values import json_of

COMPRESSIONS: Final = ("none", "png", "cbor", "cbor-raw")
MIN_FRAGMENT: Final = 64
"""Smallest size of a fragment, characters: each fragment is a message and has its cost."""

Wire = str | bytes
"""WebSocket message: text or bytes."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return (
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
    )


def png_of(data: bytes) -> bytes:
    """Return a PNG (ISO/IEC 15948) whose RGB pixels are the data.

    The picture is nearly square, and filled with newlines.

    Source: ROSBRIDGE_PROTOCOL.md, section 3.1.2 (compression ``png``).

    Parameters
    ----------
    data : bytes
        Any bytes. Readers must remove the newlines at the end.
    """
    # Three bytes make one RGB pixel.
    width = max(1, math.isqrt(len(data) // 3))
    height = max(1, -(-len(data) // (3 * width)))

    data = data.ljust(3 * width * height, b"\n")
    rows = b"".join(
        # Each row starts with its filter type, 0: none.
        b"\0" + data[3 * width * k : 3 * width * (k + 1)]
        for k in range(height)
    )

    header = struct.pack(
        # After width and height: 8 bits for each sample; colour type 2, RGB; and 0 for the
        # only compression and filter methods, and for no interlacing.
        ">IIBBBBB",
        width,
        height,
        8,
        2,
        0,
        0,
        0,
    )

    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def packed(operation: Mapping[str, Any], compression: str) -> Wire:
    """Return an operation of plain values in one of `COMPRESSIONS`.

    ``cbor-raw`` applies only to messages of topics.

    Parameters
    ----------
    operation : mapping of str to object
        Fields of the operation; arrays may be NumPy arrays.
    compression : str
        One of `COMPRESSIONS`.

    Returns
    -------
    str or bytes
        Text for ``none`` and ``png``, bytes for the others.
    """
    if compression.startswith("cbor"):
        return cbor.encode(dict(operation))
    return _text_or_png(json_of(operation), compression)


def _text_or_png(text: bytes, compression: str) -> str:
    if compression == "png":
        text = json_of({"op": "png", "data": base64.b64encode(png_of(text)).decode()})
    return text.decode()


class Outgoing:
    """Message of a topic, encoded only once for each spelling of the topic and compression.

    Parameters
    ----------
    plain : callable
        Returns the message as plain values (`Values.plain`).
    cdr : callable
        Returns the message as CDR with its header of four bytes.
    stamp : Stamp
        Time for ``cbor-raw``.
    """

    def __init__(
        self,
        plain: Callable[[], dict[str, Any]],
        cdr: Callable[[], bytes],
        stamp: Stamp,
    ) -> None:
        self._make_plain, self._cdr, self._stamp = plain, cdr, stamp
        self._plain: dict[str, Any] | None = None
        self._json = b""
        self._made: dict[tuple[str, str], Wire] = {}

    @property
    def values(self) -> dict[str, Any]:
        """The message as plain values, which callers must not change."""
        if self._plain is None:
            self._plain = self._make_plain()
        return self._plain

    def form(self, topic: str, compression: str) -> Wire:
        """Return the operation ``publish`` under a name of the topic.

        The names ``/odom`` and ``odom`` may mean the same topic.

        Parameters
        ----------
        topic : str
            Name of the topic as the client writes it.
        compression : str
            One of `COMPRESSIONS`.

        Returns
        -------
        str or bytes
            WebSocket message. Clients with the same name and compression share it.
        """
        # Keep encoded forms: a topic may have many clients, and encoding takes longer
        # than sending.
        key = topic, compression
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._encode(topic, compression)
        return found

    def _encode(self, topic: str, compression: str) -> Wire:
        operation: dict[str, Any] = {"op": "publish", "topic": topic}
        if compression == "cbor-raw":
            secs, nsecs = self._stamp
            return cbor.encode(
                {
                    **operation,
                    "msg": {"secs": secs, "nsecs": nsecs, "bytes": self._cdr()},
                }
            )

        if compression == "cbor":
            return cbor.encode({**operation, "msg": self.values})
        # All names of the topic share the JSON of the values.
        self._json = self._json or json_of(self.values)
        return _text_or_png(
            json_of(operation)[:-1] + b',"msg":' + self._json + b"}", compression
        )


def fragments(text: str, size: int, ident: str) -> Iterator[str]:
    """Yield the operations ``fragment`` of a text, with pieces of `size` characters.

    Source: ROSBRIDGE_PROTOCOL.md, section 3.1.1.

    Parameters
    ----------
    text : str
        JSON of an operation.
    size : int
        Characters of a piece, at least 1. JSON escapes may make a fragment longer.
    ident : str
        Id that all fragments of one operation have.
    """
    total = -(-len(text) // size)
    for num in range(total):
        piece = text[num * size : (num + 1) * size]
        yield json_of(
            {"op": "fragment", "id": ident, "data": piece, "num": num, "total": total}
        ).decode()


__all__ = [
    "COMPRESSIONS",
    "MIN_FRAGMENT",
    "Outgoing",
    "Wire",
    "fragments",
    "packed",
    "png_of",
]
