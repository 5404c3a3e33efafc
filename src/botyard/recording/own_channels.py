"""Channels of a recording for botyard's own data, next to the topics of the robots.

Messages of these channels are also ROS messages, because readers of ROS recordings
reject files with other types. JSON is in a std_msgs/String. The layouts of
`botyard.recording.codec`, `frames` and `checks` are the data of a
std_msgs/UInt8MultiArray.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from botyard.errors import RecordingError

STATES, JOURNAL = "/botyard/states", "/botyard/journal"
"""Channels of states and of external changes.

See `botyard.recording.frames` and `botyard.recording.codec.encode_entry`.
"""
DIGESTS, EVENTS = "/botyard/digests", "/botyard/events"
"""Channels of digests and of events, in JSON; see `botyard.recording.recorder`."""
CHECKS: Final = "/botyard/checks"
"""Channel of checks of the state after every step (`botyard.recording.checks`)."""
PACKETS: Final = "/botyard/packets"
"""Channel of packets of Pioneer sessions, in JSON; see `botyard.recording.recorder`."""
TYPES: Final[Mapping[str, str]] = {
    STATES: "std_msgs/UInt8MultiArray",
    JOURNAL: "std_msgs/UInt8MultiArray",
    CHECKS: "std_msgs/UInt8MultiArray",
    DIGESTS: "std_msgs/String",
    EVENTS: "std_msgs/String",
    PACKETS: "std_msgs/String",
}
"""ROS type of each channel."""
_CDR: Final = b"\x00\x01\x00\x00"
"""Header of little-endian CDR."""
_ARRAY: Final = struct.Struct("<4sIII")
"""CDR header, number of dimensions and data offset of the layout, number of bytes."""
_STRING: Final = struct.Struct("<4sI")


def pack_bytes(data: bytes) -> bytes:
    """Return the CDR of a std_msgs/UInt8MultiArray without a layout."""
    return _ARRAY.pack(_CDR, 0, 0, len(data)) + data


def unpack_bytes(message: bytes) -> bytes:
    """Return the data that `pack_bytes` has put into a message.

    Parameters
    ----------
    message : bytes
        CDR of a std_msgs/UInt8MultiArray without a layout.

    Raises
    ------
    RecordingError
        The message has another form.
    """
    if len(message) < _ARRAY.size or _ARRAY.unpack_from(message) != (
        _CDR,
        0,
        0,
        len(message) - _ARRAY.size,
    ):
        raise RecordingError("expected a std_msgs/UInt8MultiArray, found other bytes")

    return message[_ARRAY.size :]


def pack_json(value: Mapping[str, Any]) -> bytes:
    """Return the CDR of a std_msgs/String with a value as JSON."""
    # CDR strings end with a zero byte, which counts in their length.
    data = json.dumps(value).encode() + b"\0"
    return _STRING.pack(_CDR, len(data)) + data


def unpack_json(message: bytes) -> dict[str, Any]:
    """Return the value that `pack_json` has put into a message.

    Parameters
    ----------
    message : bytes
        CDR of a std_msgs/String with a JSON object.

    Raises
    ------
    RecordingError
        The message has another form.
    """
    if len(message) < _STRING.size or _STRING.unpack_from(message) != (
        _CDR,
        len(message) - _STRING.size,
    ):
        raise RecordingError("expected a std_msgs/String, found other bytes")

    try:
        # Crafted JSON can nest too deep for the parser, which then raises
        # RecursionError.
        value = json.loads(message[_STRING.size : -1])
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"expected JSON, found other text: {error}") from None

    if not isinstance(value, dict):
        raise RecordingError("expected a JSON object, found another JSON value")
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
