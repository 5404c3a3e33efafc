"""Declarations of ROS topics and frames of devices, which stand beside the device
(`botyard.model.devices.Device`).
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
"""The name profiles of botyard itself: with all that it has to offer, while the others
have what those programs have.
"""
CLOUDS: Final = ("sensor_msgs/PointCloud", "sensor_msgs/PointCloud2")
"""Types of messages with points."""


# -- names


@dataclass(frozen=True, slots=True)
class Place:
    """A device among those of its kind of a robot, which its names depend on.

    Attributes
    ----------
    index, count : int
        Which of them it is, from 0, and how many there are.
    tail : str
        What its name has behind that of its kind: empty, or ``_2`` and so on.
    type_name : str
        Its model, if its description names one.
    """

    index: int = 0
    count: int = 1
    tail: str = ""
    type_name: str = ""

    def named(self, pattern: str) -> str:
        """A topic or frame of the device, see `RosMessage`. ModelError: the pattern has
        other fields.
        """
        if "{" not in pattern:
            return pattern + self.tail
        try:
            return pattern.format(
                number=self.index + 1,
                type=_NOT_A_NAME.sub("", self.type_name),
                others=f"_{self.index}" if self.index else "",
                several=f"_{self.index}" if self.count > 1 else "",
            )
        except (LookupError, ValueError, AttributeError) as error:
            raise ModelError(
                f'ros: expected a name with {{number}}, {{type}}, {{others}} or {{several}}, found "{shown(pattern)}"'
            ) from error


class RosFrame(NamedTuple):
    """A frame of a device whose transform from base_link is published, also where no
    topic is in it.

    Attributes
    ----------
    name : str
        As `RosMessage.frame`.
    profiles : tuple of str
        The name profiles that have it; empty: all.
    """

    name: str
    profiles: tuple[str, ...] = ()


# -- messages made from the beams of all devices of a step


class Rays(NamedTuple):
    """Central rays of a range sensor, by which its readings become points.

    Attributes
    ----------
    origins, directions : (n, 3) float32
        Where they begin in the robot's frame, m, and unit vectors.
    farthest : (n,) float64
        Readings from this range on are left out: nothing was met. m; infinite: none is
        left out.
    """

    origins: NDArray[np.float32]
    directions: NDArray[np.float32]
    farthest: NDArray[np.float64]

    def points(self, ranges: NDArray[np.float64]) -> NDArray[np.float32]:
        """End points of ranges, (n,) m, in the robot's frame, (k, 3), m."""
        ends: NDArray[np.float32] = ranges.astype(np.float32)[:, None] * self.directions
        ends += self.origins
        return ends[ranges < self.farthest]


class ScanArrays(NamedTuple):
    """The message is a sensor_msgs/LaserScan with a range and an intensity (laser
    return) for each beam.

    Attributes
    ----------
    is_open : bool
        Ranges are infinite where nothing was met, and negative infinite where something
        is nearer than the laser measures (REP-117); else they are those that were read.
    """

    is_open: bool

    def ranges(
        self,
        ranges: NDArray[np.float64],
        returns: NDArray[np.int16],
        range_min: float = 0.0,
    ) -> NDArray[np.float32]:
        """Ranges as they stand in the message, of ranges, (n,) m, laser returns, (n,),
        and the least range, m, which nearer things read.
        """
        short = ranges.astype(np.float32)
        return (
            without_near(np.where(returns == 0, np.float32(np.inf), short), range_min)
            if self.is_open
            else short
        )


def without_near(ranges: NDArray[np.float32], range_min: float) -> NDArray[np.float32]:
    """Ranges, (n,) m, with negative infinity for those at the least range, m (REP-117);
    0: a laser that measures from its origin on.
    """
    return (
        np.where(ranges <= np.float32(range_min), np.float32(-np.inf), ranges)
        if range_min > 0.0
        else ranges
    )


class EndPoints(NamedTuple):
    """The message is a cloud (`CLOUDS`) of the points where the beams of the device
    end.

    Attributes
    ----------
    rays : callable
        Its rays, of a description.
    """

    rays: Callable[[Any], Rays]


def point_cloud(points: NDArray[np.float32]) -> dict[str, Any]:
    """The fields of a sensor_msgs/PointCloud of points (n, 3), m."""
    return {"points": [{"x": x, "y": y, "z": z} for x, y, z in points.tolist()]}


def point_cloud2(points: NDArray[np.float32]) -> dict[str, Any]:
    """The fields of a sensor_msgs/PointCloud2 of points (n, 3), m."""
    count = len(points)
    return {
        "height": 1,
        "width": count,
        "fields": [
            {"name": n, "offset": 4 * i, "datatype": 7, "count": 1}
            for i, n in enumerate("xyz")
        ],
        "point_step": 12,
        "row_step": 12 * count,
        "data": np.ascontiguousarray(points, "<f4").reshape(-1).view(np.uint8),
        "is_dense": True,
    }


# -- topics


@dataclass(frozen=True, slots=True, kw_only=True)
class RosMessage(Generic[S, R]):
    """A ROS topic with readings of a device.

    Names of a topic and of a frame may have these fields, for robots with several
    devices of the kind: ``{number}`` counts them from 1; ``{type}`` is the
    description's ``type_name``; ``{others}`` is empty for the first one, ``_1``, ``_2``
    … for the others; ``{several}`` is empty for the only one, else ``_0``, ``_1`` ….
    Names without a field get ``_2``, ``_3`` … from the second on.

    Attributes
    ----------
    topic : str
        Its name below that of the robot.
    type_name : str
        Type of its messages, for example ``botyard_msgs/FiducialArray``.
    fields : callable
        The message of a reading: values by the names of its fields, nested as the
        message is; a `Pose` for a geometry_msgs/Pose. A field ``header`` is filled in.
        None: no message.
    definitions : mapping of str to str
        Definitions of message types that are not ROS's own, in order of dependency.
    frame : str or None
        Frame of the sensor, without the robot's prefix; empty: the robot's own; None:
        the header names none.
    profiles : tuple of str
        The name profiles that have the topic.
    period : float
        Minimum simulated time between messages, s; 0: one in every step.
    about : str
        One line of description; empty: that of the kind.
    version : callable or None
        If given, the topic is latched: a message is published only when this value of
        the reading changes.
    beams : ScanArrays, EndPoints or None
        For kinds with beams: how the message follows from their ranges, so that those
        of all robots are made at once, and faster than by `fields`, which must give the
        same message.
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

    def __post_init__(self) -> None:
        """Check patterns and type. ModelError: one is invalid."""
        for pattern in (self.topic, self.frame or ""):
            Place().named(pattern)
        expected = (SCAN,) if isinstance(self.beams, ScanArrays) else CLOUDS
        if self.beams is not None and self.type_name not in expected:
            raise ModelError(
                f"ros: beams: expected {' or '.join(expected)}, found {shown(self.type_name)}"
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
