"""AMBF's topics without ROS: a TCP connection for each client carries states and commands.

The format is botyard's own; this module is sans-I/O. A frame is its length without the
length field (u32), a kind (u8) and a payload, all little-endian.

=========  ==================================  =======================================
kind       sender                              payload
=========  ==================================  =======================================
0 TOPICS   simulator, first and after changes  JSON: ``generation`` and ``topics``
1 READ     client                              number of a state (u32): start sending
2 LEAVE    client                              number of a state (u32): stop sending
3 MESSAGE  both                                number (u32), message in ROS 1's format
=========  ==================================  =======================================

``topics`` is a list of [number, name, type, "state" or "command"].
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from botyard.errors import PeerError

PORT: Final = 7707
"""Default TCP port of the simulator."""
MAX_FRAME: Final = 1 << 20
"""Longest frame, bytes."""
_HEAD = struct.Struct("<IB")
_NUMBER = struct.Struct("<I")


class Kind(IntEnum):
    """Kinds of frames, as the table of the module describes them."""

    TOPICS = 0
    READ = 1
    LEAVE = 2
    MESSAGE = 3


_MESSAGE: Final = Kind.MESSAGE


class LinkTopic(NamedTuple):
    """Topic: its number, name and type, and whether it is a state or a command.

    Attributes
    ----------
    number : int
        Number by which frames name the topic, 32 bits.
    name, type_name : str
        Name of the topic, and type such as ``ambf_msgs/ObjectState``.
    is_state : bool
        True for a topic that the simulator sends, False for commands of clients.
    """

    number: int
    name: str
    type_name: str
    is_state: bool


class Topics(msgspec.Struct):
    """JSON payload of a frame of the kind ``TOPICS``.

    Attributes
    ----------
    generation : str
        Generation of the definitions; see `messages.GENERATIONS`.
    topics : list of (int, str, str, str)
        Number, name, type, and ``state`` or ``command``.
    """

    generation: str
    topics: list[tuple[int, str, str, str]]


class Frame(NamedTuple):
    """Frame: its kind, the topic's number (0 for ``TOPICS``), and its other data."""

    kind: Kind
    number: int
    data: bytes


def frame(kind: Kind, number: int, data: bytes = b"") -> bytes:
    """Return the bytes of a frame with a number.

    Parameters
    ----------
    kind : Kind
        Any kind except ``TOPICS``, which has no number.
    number : int
        Number of a topic, 0 to 2³² − 1.
    data : bytes
        Message in the format of ROS 1; empty for READ and LEAVE.

    Returns
    -------
    bytes
        Frame with its length field: ``9 + len(data)`` bytes.
    """
    return _HEAD.pack(5 + len(data), kind) + _NUMBER.pack(number) + data


def topics_frame(generation: str, topics: Sequence[LinkTopic]) -> bytes:
    """Return the bytes of a frame of the kind ``TOPICS``.

    Parameters
    ----------
    generation : str
        Generation of the definitions; see `messages.GENERATIONS`.
    topics : sequence of LinkTopic
        All topics. The list replaces the previous list of a client.
    """
    rows = [
        (t.number, t.name, t.type_name, "state" if t.is_state else "command")
        for t in topics
    ]
    data = msgspec.json.encode(Topics(generation, rows))
    return _HEAD.pack(1 + len(data), Kind.TOPICS) + data


def parse_topics(data: bytes) -> tuple[str, list[LinkTopic]]:
    """Return generation and topics of a ``TOPICS`` payload.

    Parameters
    ----------
    data : bytes
        Payload of the frame, JSON.

    Returns
    -------
    tuple of (str, list of LinkTopic)
        Generation, which the caller has to check, and topics.

    Raises
    ------
    PeerError
        The payload is invalid.
    """
    try:
        found = msgspec.json.decode(data, type=Topics)
    except msgspec.MsgspecError as error:
        raise PeerError(f"link: expected a list of topics: {error}") from None

    return found.generation, [
        LinkTopic(n, name, kind, what == "state")
        for n, name, kind, what in found.topics
    ]


class FrameReader:
    """Incremental parser of a byte stream into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = 0
        """Number of bytes that must have arrived before parsing continues."""

    def feed_bytes(self, data: bytes) -> Iterator[Frame]:
        """Feed bytes, and yield the frames that they complete.

        After an error, the start of the next frame is unknown, so the caller must close
        the connection.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.

        Yields
        ------
        Frame
            Complete frames, oldest first.

        Raises
        ------
        PeerError
            The bytes are not valid frames.
        """
        # Bytes of an incomplete frame wait here.
        if self._rest:
            self._rest += data
            # Wait for the whole frame, so that a long frame is not copied for each of
            # its pieces.
            if len(self._rest) < self._needed:
                return

            data = bytes(self._rest)
            self._rest.clear()

        at, end = 0, len(data)
        self._needed = 4
        while end - at >= 4:
            (length,) = _NUMBER.unpack_from(data, at)
            # The length is checked before bytes are collected, so that a wrong length
            # costs no memory.
            if not 1 <= length <= MAX_FRAME:
                raise PeerError(
                    f"link: expected a frame of 1 … {MAX_FRAME} bytes, found {length}"
                )

            if end - at < 4 + length:
                self._needed = 4 + length
                break

            kind, begin = data[at + 4], at + 5
            at += 4 + length
            if kind == _MESSAGE and length >= 5:
                yield Frame(
                    _MESSAGE, _NUMBER.unpack_from(data, begin)[0], data[begin + 4 : at]
                )
            elif kind > _MESSAGE:
                raise PeerError(
                    f"link: expected a frame of kind 0 … {_MESSAGE}, found {kind}"
                )
            elif kind == Kind.TOPICS:
                yield Frame(Kind.TOPICS, 0, data[begin:at])
            elif length < 5:
                raise PeerError(
                    f"link: expected a number of 4 bytes in a frame of kind {kind}, "
                    f"found {length - 1} bytes"
                )
            else:
                yield Frame(
                    Kind(kind),
                    _NUMBER.unpack_from(data, begin)[0],
                    data[begin + 4 : at],
                )

        self._rest += data[at:]


__all__ = [
    "MAX_FRAME",
    "PORT",
    "Frame",
    "FrameReader",
    "Kind",
    "LinkTopic",
    "frame",
    "parse_topics",
    "topics_frame",
]
