"""Reader of ROS 1 and ROS 2 bags as logs.

The reader supports Odometry, LaserScan, Twist and poses of motion capture, each from
the only topic of its type or from a chosen topic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.calibration.choice import Choice, one_of
from botyard.calibration.log import Log, ScanSeries, Series
from botyard.errors import FormatError
from botyard.formats.bags import BagMessage, bag_messages
from botyard.formats.budget import Budget, Meter
from botyard.geometry import yaw_of_quaternion

_ODOMETRY, _SCAN = "nav_msgs/msg/Odometry", "sensor_msgs/msg/LaserScan"
_TWISTS = ("geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped")
_POSES = (
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "geometry_msgs/msg/TransformStamped",
)
_IS_TRUTH: Final = re.compile(
    r"truth|mocap|vicon|vrpn|optitrack|qualisys", re.IGNORECASE
)
"""Topics whose poses count as ground truth unless a topic is chosen."""

UNIT_ERROR: Final = 0.1
"""Maximum difference of a quaternion's squared length from 1."""


def _stamp(one: BagMessage) -> float:
    """Return the time stamp in a message's header, otherwise the time of its recording, s."""
    header = getattr(one.message, "header", None)
    stamp = 0 if header is None else header.stamp.sec * 10**9 + header.stamp.nanosec
    return (stamp or one.time_ns) / 1e9


def _pose(pose: Any) -> tuple[float, float, float]:
    at = getattr(pose, "position", getattr(pose, "translation", None))
    q = getattr(pose, "orientation", getattr(pose, "rotation", None))
    assert at is not None
    assert q is not None
    size = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w
    # Motion capture that has lost its markers sends zeros, which is not an orientation.
    if not abs(size - 1.0) < UNIT_ERROR:
        return at.x, at.y, math.nan

    return at.x, at.y, yaw_of_quaternion(q.x, q.y, q.z, q.w)


def _pose_in(message: Any) -> tuple[float, float, float]:
    """Return the pose that a message contains: x, y (m) and heading (rad).

    The message is a PoseStamped, PoseWithCovarianceStamped, TransformStamped or
    Odometry.
    """
    if hasattr(message, "transform"):
        return _pose(message.transform)
    return _pose(message.pose.pose if hasattr(message.pose, "pose") else message.pose)


def _twist(twist: Any) -> tuple[float, float, float]:
    return twist.linear.x, twist.linear.y, twist.angular.z


def _series(rows: list[tuple[float, tuple[float, float, float]]]) -> Series:
    return Series.of(
        np.array([at for at, _ in rows]), np.array([values for _, values in rows])
    )


class _Bag:
    """Messages of a bag, sorted into topics."""

    def __init__(self) -> None:
        self.poses: dict[str, list[tuple[float, tuple[float, float, float]]]] = {}
        self.twists: dict[str, list[tuple[float, tuple[float, float, float]]]] = {}
        self.commands: dict[str, list[tuple[float, tuple[float, float, float]]]] = {}
        self.others: dict[str, list[tuple[float, tuple[float, float, float]]]] = {}
        self.scans: dict[str, list[tuple[float, Any]]] = {}

    def take(self, one: BagMessage) -> None:
        message = one.message
        # Odometry messages contain both a pose and a twist.
        if one.type == _ODOMETRY:
            self.poses.setdefault(one.topic, []).append(
                (_stamp(one), _pose(message.pose.pose))
            )
            self.twists.setdefault(one.topic, []).append(
                (_stamp(one), _twist(message.twist.twist))
            )
        elif one.type == _SCAN:
            self.scans.setdefault(one.topic, []).append((_stamp(one), message))
        elif one.type in _TWISTS:
            twist = message.twist if hasattr(message, "twist") else message
            self.commands.setdefault(one.topic, []).append((_stamp(one), _twist(twist)))
        else:
            self.others.setdefault(one.topic, []).append(
                (_stamp(one), _pose_in(message))
            )


def read_bag(path: Path, choice: Choice, budget: Budget) -> Log:
    """Read the log of one robot from a bag.

    Parameters
    ----------
    path : Path
        A ``.bag``, ``.db3`` or ``.mcap`` file, or the folder of a ROS 2 bag.
    choice : Choice
        Topics to read, if the bag has several topics of one type.
    budget : Budget
        Limits of reading.

    Raises
    ------
    FormatError, CalibrationError
        See `botyard.calibration.readers.read_log`.
    """
    bag = _Bag()
    for one in bag_messages(
        path,
        Meter(budget, str(path), FormatError),
        (_ODOMETRY, _SCAN, *_TWISTS, *_POSES),
        FormatError,
    ):
        bag.take(one)

    # Simulators and localisation publish the truth as Odometry, motion capture as
    # poses.
    every = {**bag.others, **bag.poses}
    # The truth is chosen first: its topic may also publish Odometry, and must not count
    # as the robot's odometry.
    truth_names = [name for name in every if _IS_TRUTH.search(name)]
    truth = choice.topics.get("truth")
    if truth is not None:
        one_of(every, truth, "topics of true poses", path, "--topic truth=")
    elif len(truth_names) == 1:
        (truth,) = truth_names

    odometry_names = [
        name for name in bag.poses if name not in truth_names and name != truth
    ]
    odometry = one_of(
        odometry_names,
        choice.topics.get("odometry"),
        "topics of odometry",
        path,
        "--topic odometry=",
    )

    def optional(found: Mapping[str, Any], role: str) -> str | None:
        if not found and role not in choice.topics:
            return None
        return one_of(
            found,
            choice.topics.get(role),
            f"topics of {role}",
            path,
            f"--topic {role}=",
        )

    command, scan = optional(bag.commands, "commands"), optional(bag.scans, "scans")
    return Log(
        source=str(path),
        robot=odometry.strip("/").rpartition("/")[0],
        odometry=_series(bag.poses[odometry]),
        velocities=_series(bag.twists[odometry]),
        commands=Series() if command is None else _series(bag.commands[command]),
        scans=None if scan is None else _scans_of(bag.scans[scan], path, scan),
        truth=Series() if truth is None else _series(every[truth]),
    )


def _scans_of(messages: list[tuple[float, Any]], path: Path, topic: str) -> ScanSeries:
    """Return scans as arrays, sorted by time.

    A range below the limits of its message becomes NaN, and a range above them infinite
    (REP-117).

    Parameters
    ----------
    messages : list of (float, LaserScan)
        Times, s, and messages of one topic, at least one.
    path, topic
        File and topic, for the error.

    Raises
    ------
    FormatError
        Scans have different numbers of ranges.
    """
    first = messages[0][1]
    rows, returns = [], []
    for _, one in messages:
        if len(one.ranges) != len(first.ranges):
            raise FormatError(
                f"{topic}: expected scans of {len(first.ranges)} ranges, found {len(one.ranges)}",
                path,
            )

        # The driver may write any value for a missing range: only the limits in the
        # message show which ranges are valid.
        ranges = np.asarray(one.ranges, np.float64).copy()
        ranges[ranges >= one.range_max] = np.inf
        ranges[ranges < one.range_min] = np.nan
        rows.append(ranges)
        # LaserScan permits an empty array of intensities.
        has = len(one.intensities) == len(one.ranges)
        returns.append(
            np.asarray(one.intensities, np.float64)
            if has
            else np.full(len(ranges), np.nan)
        )

    times = np.array([at for at, _ in messages])
    # Recorders write messages in the order of arrival, which may differ from their
    # stamps.
    order = np.argsort(times, kind="stable")
    intensities = np.array(returns)[order]
    return ScanSeries(
        times[order],
        np.array(rows)[order],
        float(first.angle_min),
        float(first.angle_increment),
        None if np.isnan(intensities).all() else intensities,
    )


__all__ = ["read_bag"]
