"""The channels of a recording that are botyard's own, beside the topics of the robots.

Their messages are ROS messages, too, because readers of ROS recordings open no file
that has others: JSON is in a std_msgs/String, what `botyard.recording.codec`, `frames`
and `checks` have the layout of is the data of a std_msgs/UInt8MultiArray.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from botyard.errors import RecordingError

STATES, JOURNAL = "/botyard/states", "/botyard/journal"
"""States of the world (`botyard.recording.frames`), and changes from outside
(`botyard.recording.codec.encode_entry`).
"""
DIGESTS, EVENTS = "/botyard/digests", "/botyard/events"
"""JSON, see `botyard.recording.recorder`."""
CHECKS: Final = "/botyard/checks"
"""Checks of the state after every step (`botyard.recording.checks`)."""
PACKETS: Final = "/botyard/packets"
"""JSON, see there, too."""
TYPES: Final[Mapping[str, str]] = {
    STATES: "std_msgs/UInt8MultiArray",
    JOURNAL: "std_msgs/UInt8MultiArray",
    CHECKS: "std_msgs/UInt8MultiArray",
    DIGESTS: "std_msgs/String",
    EVENTS: "std_msgs/String",
    PACKETS: "std_msgs/String",
}
"""ROS type of each."""
_CDR: Final = b"\x00\x01\x00\x00"
"""Little-endian CDR."""
_ARRAY: Final = struct.Struct("<4sIII")
"""CDR's header, number of dimensions and offset of the layout, number of bytes."""
_STRING: Final = struct.Struct("<4sI")


def pack_bytes(data: bytes) -> bytes:
    """CDR of a std_msgs/UInt8MultiArray without a layout."""
    return _ARRAY.pack(_CDR, 0, 0, len(data)) + data


def unpack_bytes(message: bytes) -> bytes:
    """The data of `pack_bytes`. RecordingError: it is something else."""
    if len(message) < _ARRAY.size or _ARRAY.unpack_from(message) != (
        _CDR,
        0,
        0,
        len(message) - _ARRAY.size,
    ):
        raise RecordingError(
            "expected a std_msgs/UInt8MultiArray, found something else"
        )

    return message[_ARRAY.size :]


def pack_json(value: Mapping[str, Any]) -> bytes:
    """CDR of a std_msgs/String with a value as JSON."""
    data = json.dumps(value).encode() + b"\0"
    return _STRING.pack(_CDR, len(data)) + data


def unpack_json(message: bytes) -> dict[str, Any]:
    """The value of `pack_json`. RecordingError: it is something else."""
    if len(message) < _STRING.size or _STRING.unpack_from(message) != (
        _CDR,
        len(message) - _STRING.size,
    ):
        raise RecordingError("expected a std_msgs/String, found something else")

    try:
        value = json.loads(message[_STRING.size : -1])
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"expected JSON, found something else: {error}") from None

    if not isinstance(value, dict):
        raise RecordingError("expected a JSON object, found something else")
    return value


__all__ = [
    "CHECKS",
    "DIGESTS",
    "EVENTS",
    "JOURNAL",
    "PACKETS",
    "STATES",
    "TYPES",
    "pack_bytes",
    "pack_json",
    "unpack_bytes",
    "unpack_json",
]
