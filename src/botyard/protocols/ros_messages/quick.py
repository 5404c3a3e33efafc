"""Bytes of the messages that are sent most, made by filling in templates: odometry, laser scans, sonar clouds.

A template is what rosbags makes of a message whose fields hold marks; where the marks are found, values are written later. So the layout,
with the frames' names and CDR's padding, is always rosbags'; tests compare the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose, Twist
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.types import Types

WIRES: Final = ("ros1", "cdr")
_SEC, _NSEC, _SEQ = 0x5EC0_5EC1, 0x5AFE_0001, 0x5E90_0001
"""Marks of a header's numbers."""
_MARKS: Final = tuple(-(7.25e77 + k * 1e74) for k in range(8))
"""Marks of doubles, which no constant of a message holds."""


class TemplateError(Exception):
    """A mark is not where exactly one must be; a fault of ours."""


def _find(data: bytes, mark: bytes) -> int:
    at = data.find(mark)
    if at < 0 or data.find(mark, at + 1) >= 0:
        raise TemplateError(f"mark {mark.hex()}")
    return at


def _encode(types: Types, wire: str, message: Any, type_name: str) -> bytes:
    return (types.encode_ros1 if wire == "ros1" else types.encode_cdr)(message, type_name)


@dataclass(slots=True)
class _Header:
    """Where a header's stamp, and in ROS 1 its sequence number, stand."""

    seq: int
    stamp: int

    @classmethod
    def of(cls, data: bytes, wire: str) -> _Header:
        return cls(
            _find(data, struct.pack("<I", _SEQ)) if wire == "ros1" else -1, _find(data, struct.pack("<II", _SEC, _NSEC))
        )

    def fill(self, data: bytearray, stamp: Stamp, sequence: int) -> None:
        struct.pack_into("<II", data, self.stamp, stamp.sec, stamp.nanosec)
        if self.seq >= 0:
            struct.pack_into("<I", data, self.seq, sequence & 0xFFFFFFFF)


_MARKED: Final = Stamp(_SEC, _NSEC)


def _marked(message: Any) -> Any:
    message.header.seq = _SEQ
    return message


class QuickOdometry:
    """nav_msgs/Odometry with these frames.

    Parameters
    ----------
    types, messages : Types, Messages
        Make the template.
    frame, child : str
        Frames.
    exact, covariance : bool
        See `Messages.odometry`.
    """

    def __init__(
        self, types: Types, messages: Messages, frame: str, child: str, *, exact: bool, covariance: bool
    ) -> None:
        self._count = 0
        pose, twist = Pose(_MARKS[0], _MARKS[1], 0.0), Twist(_MARKS[4], _MARKS[5], _MARKS[6])
        message = _marked(messages.odometry(_MARKED, pose, twist, frame, child, exact=exact, covariance=covariance))
        turn = message.pose.pose.orientation
        turn.z, turn.w = _MARKS[2], _MARKS[3]
        self._made: dict[str, tuple[bytearray, _Header, tuple[int, ...]]] = {}
        for wire in WIRES:
            data = _encode(types, wire, message, "nav_msgs/Odometry")
            at = tuple(_find(data, struct.pack("<d", mark)) for mark in _MARKS[:7])
            self._made[wire] = bytearray(data), _Header.of(data, wire), at

    def bytes(
        self,
        wire: str,
        stamp: Stamp,
        pose: tuple[float, float, float],
        velocity: tuple[float, float, float],
        turn: tuple[float, float],
    ) -> bytes:
        """The message: x, y, yaw; forward, leftward and turning velocity; sine and cosine of half the yaw."""
        data, header, at = self._made[wire]
        self._count += 1
        header.fill(data, stamp, self._count)
        struct.pack_into("<dd", data, at[0], pose[0], pose[1])
        struct.pack_into("<dd", data, at[2], turn[0], turn[1])
        struct.pack_into("<dd", data, at[4], velocity[0], velocity[1])
        struct.pack_into("<d", data, at[6], velocity[2])
        return bytes(data)


class Readings32:
    """Ranges and returns of all sensors of a step as ROS sends them, converted once for all scans and clouds of the step."""

    def __init__(self) -> None:
        self._made: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] | None = None

    def forget(self) -> None:
        """There is another state."""
        self._made = None

    def of(
        self, readings: tuple[NDArray[np.float64], NDArray[np.int16]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Ranges, ranges with infinity where nothing was met, and intensities; each (n,)."""
        if self._made is None:
            ranges, returns = readings
            plain = ranges.astype(np.float32)
            self._made = plain, np.where(returns == 0, np.float32(np.inf), plain), returns.astype(np.float32)
        return self._made


class QuickScan:
    """sensor_msgs/LaserScan of one laser as it is configured."""

    def __init__(self, types: Types, messages: Messages, make: Callable[[Stamp], Any]) -> None:
        message = make(_MARKED)
        self.count = len(message.ranges)
        self._sequence = 0
        _marked(message)
        message.ranges = np.zeros(0, np.float32)
        message.intensities = np.zeros(0, np.float32)
        self._made: dict[str, tuple[bytearray, _Header]] = {}
        for wire in WIRES:
            data = _encode(types, wire, message, "sensor_msgs/LaserScan")
            if data[-8:] != bytes(8):
                raise TemplateError("a scan ends with its two lengths")
            self._made[wire] = bytearray(data[:-8]), _Header.of(data, wire)
        self._length = struct.pack("<I", self.count)

    def bytes(self, wire: str, stamp: Stamp, ranges: NDArray[np.float32], intensities: NDArray[np.float32]) -> bytes:
        """The message of these readings."""
        head, header = self._made[wire]
        self._sequence += 1
        header.fill(head, stamp, self._sequence)
        return b"".join((head, self._length, ranges.data, self._length, intensities.data))


class QuickCloud:
    """sensor_msgs/PointCloud2 of points in one frame."""

    def __init__(self, types: Types, messages: Messages, frame: str) -> None:
        self._sequence = 0
        self._made: dict[str, tuple[bytearray, bytes, _Header, int, int]] = {}
        message = _marked(messages.cloud2(_MARKED, np.zeros((1, 3), np.float32), frame))
        width, row, size = 0x1A2B_3C4D, 0x1A2B_3C4E, 8
        message.width, message.row_step = width, row
        message.data = np.frombuffer(b"\xfe\xdc\xba\x98\x76\x54\x32\x11", np.uint8)
        for wire in WIRES:
            data = _encode(types, wire, message, "sensor_msgs/PointCloud2")
            at = _find(data, struct.pack("<I", size) + bytes(message.data))
            self._made[wire] = (
                bytearray(data[:at]), data[at + 4 + size :], _Header.of(data, wire), _find(data, struct.pack("<I", width)),
                _find(data, struct.pack("<I", row)),
            )  # fmt: skip

    def bytes(self, wire: str, stamp: Stamp, points: NDArray[np.float32]) -> bytes:
        """The message of points (n, 3) of float32, m."""
        head, tail, header, width, row = self._made[wire]
        self._sequence += 1
        n = len(points)
        header.fill(head, stamp, self._sequence)
        struct.pack_into("<I", head, width, n)
        struct.pack_into("<I", head, row, 12 * n)
        return b"".join((head, struct.pack("<I", 12 * n), points.tobytes(), tail))
