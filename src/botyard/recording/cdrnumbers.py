"""Numbers of recorded odometry and scans.

Only the values at known positions of ROS 2 messages in CDR are decoded.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import yaw_of_quaternion

F4 = NDArray[np.float32]
ODOMETRY: Final = "nav_msgs/msg/Odometry"
SCAN: Final = "sensor_msgs/msg/LaserScan"
_LITTLE_ENDIAN: Final = b"\x00\x01"
_U32: Final = struct.Struct("<I")
_POSE: Final = struct.Struct("<7d")
_SIX: Final = struct.Struct("<6d")
_SCAN: Final = struct.Struct("<7f")
_COVARIANCE: Final = 36 * 8
MAX_BEAMS: Final = 1_000_000


class BadMessageError(Exception):
    """Bytes do not have the expected form of a ROS message."""


def _behind_texts(data: bytes, count: int, align: int) -> int:
    """Return the offset of the numbers after a time stamp and strings.

    Parameters
    ----------
    data : bytes
        Message in CDR, with its header of four bytes.
    count : int
        Number of strings after the time stamp.
    align : int
        Alignment of the numbers, bytes.

    Raises
    ------
    BadMessageError
        The message is cut short, or not little-endian.
    """
    # Recorders write the byte order of their machine, and all supported ones are
    # little-endian.
    if data[:2] != _LITTLE_ENDIAN:
        raise BadMessageError("expected little-endian CDR, found another encoding")
    # The CDR header has four bytes, and the time stamp eight.
    at = 12
    for _ in range(count):
        # CDR aligns each value relative to the end of the header.
        at = 4 + (at - 4 + 3) // 4 * 4
        if at + 4 > len(data):
            raise BadMessageError("the message is cut short")
        # The length counts the terminating zero byte.
        at += 4 + _U32.unpack_from(data, at)[0]

    return 4 + (at - 4 + align - 1) // align * align


def odometry_of(
    data: bytes,
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return pose and twist of a nav_msgs/Odometry message.

    Parameters
    ----------
    data : bytes
        Message in CDR.

    Returns
    -------
    pose : (float, float, float)
        x, y, m, and yaw, rad.
    twist : (float, float, float)
        Velocity forward and to the left, m/s, and yaw rate, rad/s.

    Raises
    ------
    BadMessageError
        The message is cut short, or not little-endian.
    """
    at = _behind_texts(data, 2, 8)
    if at + _POSE.size + _SIX.size + 2 * _COVARIANCE > len(data):
        raise BadMessageError("the message is cut short")
    x, y, _, *quaternion = _POSE.unpack_from(data, at)
    # The twist follows the 6 x 6 covariance of the pose.
    vx, vy, _, _, _, w = _SIX.unpack_from(data, at + _POSE.size + _COVARIANCE)
    return (x, y, yaw_of_quaternion(*quaternion)), (vx, vy, w)


def scan_of(data: bytes) -> tuple[float, float, F4, F4]:
    """Return the angles, ranges and intensities of a sensor_msgs/LaserScan message.

    Parameters
    ----------
    data : bytes
        Message in CDR.

    Returns
    -------
    first, increment : float
        Bearing of the first beam and angle between beams, rad.
    ranges, intensities : (n,) float32
        Ranges, m, and intensities, of which there may be none. Both are read-only views
        of the message.

    Raises
    ------
    BadMessageError
        The message is cut short, or not little-endian.
    """
    at = _behind_texts(data, 1, 4)
    if at + _SCAN.size > len(data):
        raise BadMessageError("the message is cut short")
    first, _, increment, *_ = _SCAN.unpack_from(data, at)
    ranges, at = _floats(data, at + _SCAN.size)
    intensities, _ = _floats(data, at)
    return first, increment, ranges, intensities


def _floats(data: bytes, at: int) -> tuple[F4, int]:
    """Return a sequence of float32, and the offset after it.

    Parameters
    ----------
    data : bytes
        Message in CDR.
    at : int
        Offset of the length of the sequence.

    Raises
    ------
    BadMessageError
        The message is cut short, or the sequence has more than `MAX_BEAMS` numbers.
    """
    if at + 4 > len(data):
        raise BadMessageError("the message is cut short")
    count = _U32.unpack_from(data, at)[0]
    # A false length must not reserve memory before the check.
    if count > MAX_BEAMS or at + 4 + 4 * count > len(data):
        raise BadMessageError("the message is cut short")
    return np.frombuffer(data, "<f4", count, at + 4), at + 4 + 4 * count


__all__ = ["odometry_of", "scan_of"]
