"""Conversion of states and readings to ROS messages.

Units and axes follow REP-103, frames REP-105.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.geometry import Pose, Twist, yaw_of_quaternion
from botyard.model.raster import Raster
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ros_messages.types import Types

F4 = np.float32
Covariances = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Covariances of a pose and of a velocity, 36 numbers each."""


def _diagonal(*values: float) -> NDArray[np.float64]:
    matrix = np.zeros(36)
    matrix[::7] = values
    return matrix


NO_COVARIANCE: Final = np.zeros(36)
"""Covariance that stands for "unknown" in ROS messages."""
ODOMETRY_COVARIANCE: Final = _diagonal(1e-3, 1e-3, 1e6, 1e6, 1e6, 1e3)
"""Covariance of poses and velocities by odometry, with the values of the p2os driver.

The large variances of z, roll and pitch mean that odometry does not measure them.
"""
TRUTH_COVARIANCE: Final = _diagonal(1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9)
"""Covariance of true poses: nearly 0, because filters cannot use a singular matrix."""


class Stamp(NamedTuple):
    """Time in whole seconds and nanoseconds.

    Attributes
    ----------
    sec : int
        Whole seconds; since the epoch, or of simulated time.
    nanosec : int
        Remaining nanoseconds, 0 to 999 999 999.
    """

    sec: int
    nanosec: int

    @classmethod
    def of(cls, time: Any) -> Stamp:
        """Return the stamp of a builtin_interfaces/Time, or of ROS 1's time.

        Parameters
        ----------
        time : object
            Message with ``sec`` and ``nanosec``. All types of rosbags use these names.
        """
        return cls(int(time.sec), int(time.nanosec))

    @classmethod
    def of_us(cls, microseconds: int) -> Stamp:
        """Return the stamp of a number of microseconds.

        Parameters
        ----------
        microseconds : int
            Time, µs; usually simulated.
        """
        sec, rest = divmod(microseconds, 1_000_000)
        return cls(sec, rest * 1000)

    def before_us(self, microseconds: int) -> Stamp:
        """Return the stamp of a time that is some microseconds earlier, at least 0.

        Parameters
        ----------
        microseconds : int
            Time to subtract, µs.
        """
        # ROS 1's times are unsigned.
        whole = max(0, self.sec * 1_000_000_000 + self.nanosec - microseconds * 1000)
        return Stamp(*divmod(whole, 1_000_000_000))

    @classmethod
    def of_seconds(cls, seconds: float) -> Stamp:
        """Return the stamp of seconds since the epoch.

        Parameters
        ----------
        seconds : float
            Time, s. A float of the present time has a resolution of about 0.2 µs.
        """
        sec = math.floor(seconds)
        # Rounding may give 1e9 ns, which is not valid.
        return cls(sec, min(999_999_999, int((seconds - sec) * 1e9)))


class Transform(NamedTuple):
    """Pose of a child frame in its parent, m and rad, and its height, m."""

    parent: str
    child: str
    pose: Pose
    z: float = 0.0

    @property
    def values(self) -> tuple[float, ...]:
        """Translation and quaternion: x, y, z, m, and x, y, z, w."""
        w, z = cosine_sine(self.pose.th / 2.0)
        return self.pose.x, self.pose.y, self.z, 0.0, 0.0, z, w


class Placed(NamedTuple):
    """Transform of a child frame, given by translation and quaternion as in `Transform.values`."""

    parent: str
    child: str
    values: tuple[float, ...]


def yaw_of(turn: Any) -> float:
    """Return the yaw of a geometry_msgs/Quaternion, rad; roll and pitch are ignored."""
    return yaw_of_quaternion(turn.x, turn.y, turn.z, turn.w)


class Messages:
    """Factory of messages, as objects of the ROS 1 classes, which every transport can encode.

    See `Types`.

    Parameters
    ----------
    types : Types
        Message types of the distribution.
    """

    def __init__(self, types: Types) -> None:
        t = types.__getitem__
        self._time = t("builtin_interfaces/Time")
        self._duration = t("builtin_interfaces/Duration")

        self._header_type = t("std_msgs/Header")
        self._point, self._quaternion, self._vector = (
            t(f"geometry_msgs/{n}") for n in ("Point", "Quaternion", "Vector3")
        )

        self._pose, self._twist = t("geometry_msgs/Pose"), t("geometry_msgs/Twist")
        self._pose_cov, self._twist_cov = (
            t("geometry_msgs/PoseWithCovariance"),
            t("geometry_msgs/TwistWithCovariance"),
        )

        self._odometry, self._scan = t("nav_msgs/Odometry"), t("sensor_msgs/LaserScan")
        self._cloud, self._cloud2 = (
            t("sensor_msgs/PointCloud"),
            t("sensor_msgs/PointCloud2"),
        )
        self._point32 = t("geometry_msgs/Point32")

        self._transform, self._stamped = (
            t("geometry_msgs/Transform"),
            t("geometry_msgs/TransformStamped"),
        )
        self._tf = t("tf2_msgs/TFMessage")

        field = t("sensor_msgs/PointField")
        # Type 7 is FLOAT32 (sensor_msgs/PointField).
        self._xyz = [field(name, 4 * i, 7, 1) for i, name in enumerate("xyz")]
        self._types = t

    def header(self, stamp: Stamp, frame: str) -> Any:
        """Return a std_msgs/Header; its sequence number (ROS 1) is set by the publisher.

        Parameters
        ----------
        stamp : Stamp
            Time of the data.
        frame : str
            Frame id, without a leading slash; empty for none.
        """
        return self._header_type(0, self._time(*stamp), frame)

    def _turn(self, yaw: float) -> Any:
        w, z = cosine_sine(yaw / 2.0)
        return self._quaternion(0.0, 0.0, z, w)

    def pose(self, pose: Pose) -> Any:
        """Return a geometry_msgs/Pose.

        Parameters
        ----------
        pose : Pose
            Pose in the plane, m and rad. z is 0.
        """
        return self._pose(self._point(pose.x, pose.y, 0.0), self._turn(pose.th))

    def vector(self, x: float, y: float, z: float = 0.0) -> Any:
        """Return a geometry_msgs/Vector3.

        Parameters
        ----------
        x, y, z : float
            Components, in the unit that the message defines.
        """
        return self._vector(x, y, z)

    def twist(self, twist: Twist) -> Any:
        """Return a geometry_msgs/Twist.

        Parameters
        ----------
        twist : Twist
            Velocity in the frame of the body, m/s and rad/s.
        """
        return self._twist(
            self._vector(twist.vx, twist.vy, 0.0), self._vector(0.0, 0.0, twist.w)
        )

    def odometry(
        self,
        stamp: Stamp,
        pose: Pose,
        twist: Twist,
        frame: str,
        child: str,
        covariances: Covariances,
    ) -> Any:
        """Return a nav_msgs/Odometry.

        It has a pose in `frame`, a velocity in `child`, and the covariances of both.

        Parameters
        ----------
        stamp : Stamp
            Time of the state.
        pose : Pose
            Pose of `child` in `frame`, m and rad.
        twist : Twist
            Velocity in `child`, m/s and rad/s.
        frame, child : str
            Frame ids, without a leading slash; `child` may be empty.
        covariances : tuple of (36,) float64
            Covariances of pose and velocity, 6×6 by rows.
        """
        of_pose, of_twist = covariances
        return self._odometry(
            self.header(stamp, frame),
            child,
            self._pose_cov(self.pose(pose), of_pose),
            self._twist_cov(self.twist(twist), of_twist),
        )

    def tf(self, stamp: Stamp, transforms: Iterable[Transform | Placed]) -> Any:
        """Return a tf2_msgs/TFMessage.

        Parameters
        ----------
        stamp : Stamp
            Time of all transforms.
        transforms : iterable of Transform or Placed
            Transforms from parents to children.
        """
        made = []
        for one in transforms:
            values = one.values
            place = self._transform(
                self._vector(*values[:3]), self._quaternion(*values[3:])
            )
            made.append(self._stamped(self.header(stamp, one.parent), one.child, place))

        return self._tf(made)

    def posed(self, stamp: Stamp, pose: Pose, frame: str) -> Any:
        """Return a geometry_msgs/PoseStamped.

        Parameters
        ----------
        stamp : Stamp
            Time of the pose.
        pose : Pose
            Pose, m and rad.
        frame : str
            Frame of the pose.
        """
        kind = self._types("geometry_msgs/PoseStamped")
        return kind(self.header(stamp, frame), self.pose(pose))

    def located(
        self, stamp: Stamp, pose: Pose, frame: str, covariance: NDArray[np.float64]
    ) -> Any:
        """Return a geometry_msgs/PoseWithCovarianceStamped.

        Parameters
        ----------
        stamp : Stamp
            Time of the pose.
        pose : Pose
            Pose, m and rad.
        frame : str
            Frame of the pose.
        covariance : (36,) float64
            Covariance, 6×6 by rows: m², m rad and rad².
        """
        kind = self._types("geometry_msgs/PoseWithCovarianceStamped")
        return kind(
            self.header(stamp, frame), self._pose_cov(self.pose(pose), covariance)
        )

    def joints(
        self,
        stamp: Stamp,
        names: Sequence[str],
        positions: ArrayLike,
        velocities: ArrayLike,
    ) -> Any:
        """Return a sensor_msgs/JointState without efforts.

        Parameters
        ----------
        stamp : Stamp
            Time of the state.
        names : sequence of str
            Names of the joints.
        positions, velocities : (n,) array_like
            Value of each joint: rad and rad/s, or m and m/s for a prismatic joint.
        """
        kind = self._types("sensor_msgs/JointState")
        values = (np.array(a, np.float64) for a in (positions, velocities, ()))
        return kind(self.header(stamp, ""), list(names), *values)

    def clock(self, stamp: Stamp) -> Any:
        """Return a rosgraph_msgs/Clock."""
        return self._types("rosgraph_msgs/Clock")(self._time(*stamp))

    def value(self, name: str, value: Any) -> Any:
        """Return a message of a std_msgs type that holds one value.

        Parameters
        ----------
        name : str
            Name of the type, such as ``Bool``.
        value : object
            Value of the field ``data``.
        """
        return self._types(f"std_msgs/{name}")(value)

    def map(self, stamp: Stamp, raster: Raster, frame: str) -> Any:
        """Return a nav_msgs/OccupancyGrid: 100 is solid, 0 is free.

        Parameters
        ----------
        stamp : Stamp
            Time at which the map was loaded.
        raster : Raster
            Cells; its resolution is in m, and its origin the lower left corner, m.
        frame : str
            Frame of the map.
        """
        rows, columns = raster.solid.shape
        # The origin is the lower left corner of cell (0, 0).
        info = self._types("nav_msgs/MapMetaData")(
            self._time(*stamp),
            raster.resolution,
            columns,
            rows,
            self.pose(Pose(raster.x, raster.y, 0.0)),
        )
        # Rows start at the bottom, as in the standard.
        cells = np.where(raster.solid, np.int8(100), np.int8(0)).reshape(-1)
        return self._types("nav_msgs/OccupancyGrid")(
            self.header(stamp, frame), info, cells
        )

    def diagnostics(
        self,
        stamp: Stamp,
        entries: Iterable[tuple[str, int, str, Iterable[tuple[str, str]]]],
    ) -> Any:
        """Return a diagnostic_msgs/DiagnosticArray.

        Entries are (name, level, message, values); level 0 is OK, 1 warning, 2 error.

        Parameters
        ----------
        stamp : Stamp
            Time of the diagnostics.
        entries : iterable of (str, int, str, iterable of (str, str))
            Name, level, message, and pairs of key and value.
        """
        pair, status = (
            self._types("diagnostic_msgs/KeyValue"),
            self._types("diagnostic_msgs/DiagnosticStatus"),
        )
        made = [
            status(level, name, text, name, [pair(k, v) for k, v in values])
            for name, level, text, values in entries
        ]
        return self._types("diagnostic_msgs/DiagnosticArray")(
            self.header(stamp, ""), made
        )

    def log(
        self, stamp: Stamp, level: int, node: str, text: str, topics: Sequence[str] = ()
    ) -> Any:
        """Return a rosgraph_msgs/Log, the log line of ROS 1.

        Parameters
        ----------
        stamp : Stamp
            Time of the line.
        level : int
            1 debug, 2 info, 4 warning, 8 error, 16 fatal.
        node, text : str
            Name of the node, and the line.
        topics : sequence of str
            Topics of the node.
        """
        return self._types("rosgraph_msgs/Log")(
            self.header(stamp, ""), level, node, text, "", "", 0, list(topics)
        )

    def log2(self, kind: Any, stamp: Stamp, level: int, node: str, text: str) -> Any:
        """Return a rcl_interfaces/Log, the log line of ROS 2.

        Parameters
        ----------
        kind : type
            Class of the message, from `Types.two`.
        stamp : Stamp
            Time of the line.
        level : int
            10 debug, 20 info, 30 warning, 40 error, 50 fatal.
        node : str
            Absolute name of the node. ROS 2 names its logger with dots instead of
            slashes.
        text : str
            Text of the log line.
        """
        return kind(
            self._time(*stamp),
            level,
            node.lstrip("/").replace("/", "."),
            text,
            "",
            "",
            0,
        )
