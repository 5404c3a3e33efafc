"""Declarations of ROS topics and frames, which are part of a device's declaration.

See `botyard.model.devices.Device`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.names import shown

S = TypeVar("S")
R = TypeVar("R")
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
SCAN: Final = "sensor_msgs/LaserScan"
OWN: Final = ("default", "nav2")
"""Name profiles of botyard itself, which have all topics.

Each other profile has only the topics of the program that it imitates.
"""
CLOUDS: Final = ("sensor_msgs/PointCloud", "sensor_msgs/PointCloud2")
"""Names of the message types that hold points."""


# -- names


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a device among its kind on the robot, which determines its names.

    Attributes
    ----------
    index, count : int
        Index of the device, from 0, and number of devices.
    tail : str
        Suffix of the device's name after the name of its kind: empty, or ``_2`` and so
        on.
    type_name : str
        Model of the device, if its description names one.
    """

    index: int = 0
    count: int = 1
    tail: str = ""
    type_name: str = ""

    def named(self, pattern: str) -> str:
        """Return the name of a topic or frame of the device, see `RosMessage`.

        Raises
        ------
        ModelError
            The pattern has unknown fields.
        """
        # A pattern without fields gives all devices of a kind one name, so the device's
        # suffix is added.
        if "{" not in pattern:
            return pattern + self.tail
        try:
            return pattern.format(
                number=self.index + 1,
                type=_NOT_A_NAME.sub("", self.type_name),
                others=f"_{self.index}" if self.index else "",
                several=f"_{self.index}" if self.count > 1 else "",
            )
        # Patterns of plug-ins may contain any format syntax.
        except (LookupError, ValueError, AttributeError) as error:
            raise ModelError(
                "ros: expected a name with no fields but {number}, {type}, {others} and {several}, "
                f'found "{shown(pattern)}"'
            ) from error


class RosFrame(NamedTuple):
    """Frame of a device whose transform from base_link is published.

    It is published even if no topic uses it.

    Attributes
    ----------
    name : str
        Name of the frame, see `RosMessage.frame`.
    profiles : tuple of str
        Name profiles that have the frame; empty: all.
    """

    name: str
    profiles: tuple[str, ...] = ()


# -- messages made from the beams of all devices in a step


class Rays(NamedTuple):
    """Central rays of a range sensor, which turn its readings into points.

    Attributes
    ----------
    origins, directions : (n, 3) float32
        Start points in the robot's frame, m, and unit vectors.
    farthest : (n,) float64
        Readings from this range on, m, met nothing and are left out; infinite: none is.
    """

    origins: NDArray[np.float32]
    directions: NDArray[np.float32]
    farthest: NDArray[np.float64]

    def points(self, ranges: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the end points of ranges on the rays, (k, 3), m, in the robot's frame."""
        # ROS points are 32-bit floats; computing with them halves the memory.
        ends: NDArray[np.float32] = ranges.astype(np.float32)[:, None] * self.directions
        ends += self.origins
        return ends[ranges < self.farthest]


class ScanArrays(NamedTuple):
    """Declaration that a topic's message is a sensor_msgs/LaserScan with the beams' ranges.

    The message has a range and an intensity for each beam; the intensity is the laser return.

    Attributes
    ----------
    is_open : bool
        Whether a range is infinite if the beam met nothing, and negative infinite if an
        object is nearer than the laser measures (REP-117). Otherwise ranges are as
        read.
    """

    is_open: bool

    def ranges(
        self,
        ranges: NDArray[np.float64],
        returns: NDArray[np.int16],
        range_min: float = 0.0,
    ) -> NDArray[np.float32]:
        """Return the ranges of the message, (n,) m.

        Parameters
        ----------
        ranges : (n,) float64
            Ranges as read, m.
        returns : (n,) int16
            Laser returns.
        range_min : float
            Minimum range, m, which the laser reads for nearer objects.
        """
        short = ranges.astype(np.float32)
        return (
            without_near(np.where(returns == 0, np.float32(np.inf), short), range_min)
            if self.is_open
            else short
        )


def without_near(ranges: NDArray[np.float32], range_min: float) -> NDArray[np.float32]:
    """Return ranges, (n,) m, in which readings at the minimum range are negative infinity.

    See REP-117. A minimum of 0 m belongs to a laser that measures from its origin.
    """
    return (
        # Ranges are 32-bit floats, so the limit is rounded in the same way first.
        np.where(ranges <= np.float32(range_min), np.float32(-np.inf), ranges)
        if range_min > 0.0
        else ranges
    )


class EndPoints(NamedTuple):
    """Declaration that a topic's message (`CLOUDS`) has the end points of the device's beams.

    Attributes
    ----------
    rays : callable
        Rays of the device, for a description.
    """

    rays: Callable[[Any], Rays]


def point_cloud(points: NDArray[np.float32]) -> dict[str, Any]:
    """Return the fields of a sensor_msgs/PointCloud with points (n, 3), m."""
    return {"points": [{"x": x, "y": y, "z": z} for x, y, z in points.tolist()]}


def point_cloud2(points: NDArray[np.float32]) -> dict[str, Any]:
    """Return the fields of a sensor_msgs/PointCloud2 with points (n, 3), m."""
    count = len(points)
    return {
        "height": 1,
        "width": count,
        # Datatype 7 is FLOAT32 in sensor_msgs/PointField.
        "fields": [
            {"name": n, "offset": 4 * i, "datatype": 7, "count": 1}
            for i, n in enumerate("xyz")
        ],
        "point_step": 12,
        "row_step": 12 * count,
        # The field is_bigendian keeps its default, false, so floats are little-endian.
        "data": np.ascontiguousarray(points, "<f4").reshape(-1).view(np.uint8),
        "is_dense": True,
    }


# -- topics


@dataclass(frozen=True, slots=True, kw_only=True)
class RosMessage(Generic[S, R]):
    """Declaration of a ROS topic with readings of a device.

    Names of topics and frames may have these fields, for robots with several devices of
    the kind:

    - ``{number}`` counts the devices from 1.
    - ``{type}`` is the description's ``type_name``.
    - ``{others}`` is empty for the first device, and ``_1``, ``_2`` … for the others.
    - ``{several}`` is empty for a single device, otherwise ``_0``, ``_1`` ….

    From the second device on, names without a field get ``_2``, ``_3`` …

    Attributes
    ----------
    topic : str
        Name of the topic below the robot's name.
    type_name : str
        Message type, for example ``botyard_msgs/FiducialArray``.
    fields : callable
        Message of a reading: values by field name, nested as the message is; a `Pose`
        for a geometry_msgs/Pose. The field ``header`` is filled in. None: no message.
    definitions : mapping of str to str
        Definitions of message types that are not ROS's own, in order of dependency.
    frame : str or None
        Frame of the sensor, without the robot's prefix; empty: the robot's own; None:
        the header names no frame.
    profiles : tuple of str
        Name profiles that have the topic.
    period : float
        Minimum simulated time between messages, s; 0: one in every step.
    about : str
        One line of description; empty: the description of the kind.
    version : callable or None
        If given, the topic is latched: a message is published only when this value of
        the reading changes.
    beams : ScanArrays, EndPoints or None
        For kinds with beams: how the message follows from their ranges. The messages of
        all robots are then made at once, and faster than by `fields`, which must give
        the same message.
    applies : callable or None
        Whether a device with this description has the topic; None: each has it.
    """

    topic: str
    type_name: str
    fields: Callable[[S, R], Mapping[str, Any] | None]
    definitions: Mapping[str, str] = field(default_factory=dict)
    frame: str | None = ""
    profiles: tuple[str, ...] = OWN
    period: float = 0.0
    about: str = ""
    version: Callable[[R], Hashable] | None = None
    beams: ScanArrays | EndPoints | None = None
    applies: Callable[[S], bool] | None = None

    def __post_init__(self) -> None:
        """Check the name patterns and the message type.

        Raises
        ------
        ModelError
            A pattern or the message type is invalid.
        """
        # An invalid pattern fails here, and not when the first client subscribes.
        for pattern in (self.topic, self.frame or ""):
            Place().named(pattern)
        expected = (SCAN,) if isinstance(self.beams, ScanArrays) else CLOUDS
        if self.beams is not None and self.type_name not in expected:
            raise ModelError(
                f"ros: beams: expected {' or '.join(expected)}, "
                f"found {shown(self.type_name)}"
            )


__all__ = [
    "CLOUDS",
    "OWN",
    "SCAN",
    "EndPoints",
    "Place",
    "Rays",
    "RosFrame",
    "RosMessage",
    "ScanArrays",
    "point_cloud",
    "point_cloud2",
    "without_near",
]
