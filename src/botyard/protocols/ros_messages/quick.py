"""Fast encoding of odometry, laser scans and sonar clouds with templates.

The library rosbags encodes a message with marker values, which is cut at the markers: a
template. A message is then its parts joined with the real values. Its layout, with
frame names and CDR padding, is therefore the layout of rosbags; tests compare the
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from botyard.geometry import Pose, Twist
from botyard.protocols.ros_messages.covariance import SIZE as COVARIANCE_BYTES
from botyard.protocols.ros_messages.messages import Covariances, Messages, Placed, Stamp
from botyard.protocols.ros_messages.types import Types

_WIDTH, _ROW = 0x1A2B_3C4D, 0x1A2B_3C4E
"""Markers of a cloud's width and of the length of its row."""
_MARK_POINT: Final = (-7.25e33, -7.26e33, -7.27e33)
"""Marker of a cloud's points."""
_POINT: Final = 12
"""Size of a point, bytes: three float32."""
_SEC, _NSEC = 0x5EC0_5EC1, 0x5AFE_0001
"""Markers of a header's stamp."""
_MARKS: Final = tuple(-(7.25e77 + k * 1e74) for k in range(8))
"""Markers of doubles: values that occur nowhere else in a message."""


_ONE, _TWO, _DOUBLES7 = (struct.Struct(f) for f in ("<I", "<II", "<7d"))
_POSE: Final = 56
"""Size of a position and a quaternion, bytes: seven doubles."""
_TWIST: Final = 48
"""Size of linear and angular velocity, bytes: six doubles."""


class TemplateError(Exception):
    """Internal error: a marker is not found exactly once."""


def _find(data: bytes | bytearray, mark: bytes, begin: int = 0) -> int:
    """Return the offset of a marker in an encoded message.

    Raises
    ------
    TemplateError
        The marker is missing, or occurs more than once.
    """
    at = data.find(mark, begin)
    # If the marker occurs twice, one of the places is other data.
    if at < 0 or data.find(mark, at + 1) >= 0:
        raise TemplateError(
            f"expected the marker {mark.hex()} exactly once in a message"
        )
    return at


def _encode(types: Types, wire: str, message: Any, type_name: str) -> bytes:
    """Return the bytes of a message as rosbags encodes it.

    Parameters
    ----------
    types : Types
        Message types of the distribution.
    wire : str
        Wire format: ``ros1``, or any other for CDR.
    message : object
        Message of the ROS 1 classes.
    type_name : str
        Type of the message, such as ``nav_msgs/Odometry``.
    """
    return (types.encode_ros1 if wire == "ros1" else types.encode_cdr)(
        message, type_name
    )


def _stamp_at(data: bytes | bytearray, begin: int = 0) -> int:
    """Return the offset of a header's time stamp, the only one after `begin`."""
    return _find(data, _TWO.pack(_SEC, _NSEC), begin)


_MARKED: Final = Stamp(_SEC, _NSEC)


class QuickOdometry:
    """Encoder of nav_msgs/Odometry with fixed frame ids.

    Parameters
    ----------
    types, messages : Types, Messages
        Message types and factory, for the template.
    frame, child : str
        Frame ids of the pose and of the velocity.
    covariances : (36,) float64 arrays
        Covariances of pose and velocity; `bytes` may replace them.
    """

    __slots__ = ("_made", "_message", "_types")

    def __init__(
        self,
        types: Types,
        messages: Messages,
        frame: str,
        child: str,
        covariances: Covariances,
    ) -> None:
        self._types = types
        pose, twist = (
            Pose(_MARKS[0], _MARKS[1], 0.0),
            Twist(_MARKS[4], _MARKS[5], _MARKS[6]),
        )
        message = messages.odometry(_MARKED, pose, twist, frame, child, covariances)
        turn = message.pose.pose.orientation
        turn.z, turn.w = _MARKS[2], _MARKS[3]
        self._message = message
        self._made: dict[str, tuple[bytes, bytes, bytes, bytes]] = {}

    def _template(self, wire: str) -> tuple[bytes, bytes, bytes, bytes]:
        """Return the template of a wire format, built on first use.

        Building it on first use saves runs with ROS 1 alone the parsing of ROS 2's
        types, 0.5 s.
        """
        data = _encode(self._types, wire, self._message, "nav_msgs/Odometry")
        x, y, z, w, vx, vy, turning = (
            _find(data, struct.pack("<d", mark)) for mark in _MARKS[:7]
        )
        # Check the layout on which the cuts depend.
        if (y - x, z - x, w - x) != (8, 40, 48) or (vy - vx, turning - vx) != (8, 40):
            raise TemplateError(
                "expected a pose of seven consecutive numbers, and a twist of six"
            )
        if (
            vx - x != _POSE + COVARIANCE_BYTES
            or len(data) - vx != _TWIST + COVARIANCE_BYTES
        ):
            raise TemplateError("expected covariances after pose and twist")

        at = _stamp_at(data)
        made = (
            data[:at],
            data[at + _TWO.size : x],
            data[x + _POSE : vx],
            data[vx + _TWIST :],
        )
        self._made[wire] = made
        return made

    def bytes(
        self,
        wire: str,
        stamp: Stamp,
        pose: bytes,
        twist: bytes,
        covariances: tuple[bytes, bytes] | None = None,
    ) -> bytes:
        """Return the message with the bytes of a pose, a twist and their covariances.

        The pose has seven doubles, the twist six, and each covariance 36.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time of the state.
        pose : bytes
            Position x, y, z, m, and quaternion x, y, z, w; 56 bytes.
        twist : bytes
            Linear, m/s, and angular velocity, rad/s, x, y, z each; 48 bytes.
        covariances : tuple of bytes, optional
            Covariances of pose and velocity, 288 bytes each, which replace the constant
            ones.
        """
        head, frames, of_pose, of_twist = self._made.get(wire) or self._template(wire)
        if covariances is not None:
            of_pose, of_twist = covariances
        return b"".join(
            (head, _TWO.pack(*stamp), frames, pose, of_pose, twist, of_twist)
        )


class QuickTransforms:
    """Encoder of tf2_msgs/TFMessage with fixed frame ids.

    Parameters
    ----------
    types, messages : Types, Messages
        Message types and factory, for the template.
    frames : sequence of (str, str)
        Parents and children.
    """

    def __init__(
        self, types: Types, messages: Messages, frames: Sequence[tuple[str, str]]
    ) -> None:
        self._types = types
        self._message = messages.tf(
            _MARKED, [Placed(parent, child, _MARKS[:7]) for parent, child in frames]
        )
        self._made: dict[str, tuple[bytearray, list[int], list[slice]]] = {}

    def _template(self, wire: str) -> tuple[bytearray, list[int], list[slice]]:
        data = bytearray(
            _encode(self._types, wire, self._message, "tf2_msgs/TFMessage")
        )
        mark, places, stamps = _DOUBLES7.pack(*_MARKS[:7]), [], []
        end = 0
        for _ in self._message.transforms:
            at = data.find(mark, end)
            if at < 0:
                raise TemplateError("expected a transform of seven consecutive numbers")
            stamps.append(_stamp_at(data[:at], end))
            end = at + len(mark)
            places.append(slice(at, end))

        made = self._made[wire] = data, stamps, places
        return made

    def bytes(self, wire: str, stamp: Stamp, values: Iterable[memoryview]) -> bytes:
        """Return the message of translations (m) and quaternions, seven float64 each.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time of all transforms.
        values : iterable of memoryview
            Translation x, y, z and quaternion x, y, z, w of each transform, 56 bytes
            each, in the order of the frames.

        Raises
        ------
        ValueError
            There are more or fewer transforms than frames.
        """
        data, stamps, places = self._made.get(wire) or self._template(wire)
        for stamped in stamps:
            # Each transform has its own header.
            _TWO.pack_into(data, stamped, stamp.sec, stamp.nanosec)
        for place, value in zip(places, values, strict=True):
            data[place] = value
        return bytes(data)


class QuickScan:
    """Encoder of sensor_msgs/LaserScan for one laser in its present configuration.

    Parameters
    ----------
    types : Types
        Message types, for the template.
    make : callable
        Makes the laser's message at a stamp. The template keeps its header and limits.

    Attributes
    ----------
    count : int
        Number of readings.
    range_min : float
        Least range of the laser, m.
    """

    __slots__ = ("_length", "_made", "_message", "_types", "count", "range_min")

    def __init__(self, types: Types, make: Callable[[Stamp], Any]) -> None:
        message = make(_MARKED)
        self.count = len(message.ranges)
        self.range_min = float(message.range_min)
        self._types = types
        message.ranges = np.zeros(0, np.float32)
        message.intensities = np.zeros(0, np.float32)
        self._message = message
        self._made: dict[str, tuple[bytes, bytes]] = {}
        self._length = struct.pack("<I", self.count)

    def _template(self, wire: str) -> tuple[bytes, bytes]:
        data = _encode(self._types, wire, self._message, "sensor_msgs/LaserScan")
        # Both arrays are empty in the template, so two zero lengths end it.
        if data[-8:] != bytes(8):
            raise TemplateError("expected a scan to end with its two lengths")
        at = _stamp_at(data)
        made = self._made[wire] = data[:at], data[at + _TWO.size : -8] + self._length
        return made

    def bytes(
        self, wire: str, stamp: Stamp, ranges: bytes, intensities: bytes
    ) -> bytes:
        """Return the message of readings, `count` float32 each.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time of the measurement.
        ranges : bytes
            Ranges, m; `count` float32 in the order of the beams.
        intensities : bytes
            Intensities; `count` float32 in the order of the beams.
        """
        head, about = self._made.get(wire) or self._template(wire)
        return b"".join(
            (head, _TWO.pack(*stamp), about, ranges, self._length, intensities)
        )


_CloudTemplate = tuple[bytes, bytes, bytes, bytes]
"""Parts of an encoded point cloud: before and after the stamp, after the width, and
after the points.
"""


class QuickCloud:
    """Encoder of sensor_msgs/PointCloud or PointCloud2 with a fixed frame id.

    Parameters
    ----------
    types : Types
        Message types, for the template.
    type_name : str
        One of the two types.
    make : callable
        Makes a message of the type. The template keeps its header and fields besides
        points.
    """

    __slots__ = ("_has_sizes", "_made", "_message", "_points", "_type_name", "_types")

    def __init__(
        self, types: Types, type_name: str, make: Callable[[Stamp], Any]
    ) -> None:
        self._types = types
        self._type_name = type_name
        self._made: dict[str, _CloudTemplate] = {}
        message = self._message = make(_MARKED)
        self._has_sizes = type_name.endswith("2")
        mark = np.array([_MARK_POINT], "<f4")
        if self._has_sizes:
            message.width, message.row_step, message.data = (
                _WIDTH,
                _ROW,
                mark.reshape(-1).view(np.uint8),
            )
        else:
            message.points = [types["geometry_msgs/Point32"](*_MARK_POINT)]

        self._points = (
            struct.pack("<I", _POINT if self._has_sizes else 1) + mark.tobytes()
        )

    def _template(self, wire: str) -> _CloudTemplate:
        data = _encode(self._types, wire, self._message, self._type_name)
        at = _find(data, self._points)
        head, tail = data[:at], data[at + len(self._points) :]
        stamped = _stamp_at(head)
        about, fields = head[stamped + _TWO.size :], b""
        if self._has_sizes:
            width, row = (_find(about, _ONE.pack(mark)) for mark in (_WIDTH, _ROW))
            if row + _ONE.size != len(about):
                raise TemplateError("expected the length of a row before the points")
            about, fields = about[:width], about[width + _ONE.size : row]

        made = self._made[wire] = head[:stamped], about, fields, tail
        return made

    def bytes(self, wire: str, stamp: Stamp, points: bytes) -> bytes:
        """Return the message of points, three float32 each, m.

        Parameters
        ----------
        wire : str
            Wire format: ``ros1`` or ``cdr``.
        stamp : Stamp
            Time of the measurement.
        points : bytes
            x, y and z of each point, float32, m, in the frame of the cloud; may be
            empty.
        """
        head, about, fields, tail = self._made.get(wire) or self._template(wire)
        size, width = len(points), _ONE.pack(len(points) // _POINT)
        if not self._has_sizes:
            return b"".join((head, _TWO.pack(*stamp), about, width, points, tail))
        return b"".join(
            (
                head,
                _TWO.pack(*stamp),
                about,
                width,
                fields,
                _TWO.pack(size, size),
                points,
                tail,
            )
        )
