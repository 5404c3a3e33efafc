"""Cache of the state and the readings of all robots in one step, in the form of messages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.model.robotport import Fleet
from botyard.model.rosmessages import Rays, without_near
from botyard.protocols.ros_messages.covariance import OdometryCovariance
from botyard.protocols.ros_messages.frames import StepFrames, planar

F8 = NDArray[np.float64]

_POINT: Final = 12
"""Size of a point, bytes: three float32."""
_POSE: Final = 56
"""Size of a position and a quaternion, bytes: seven float64."""
_TWIST: Final = 48
"""Size of linear and angular velocity, bytes: six float64."""


@dataclass(slots=True, eq=False)
class Cloud:
    """Sensor whose readings become points.

    Attributes
    ----------
    key : (str, str, int)
        Key of the sensor's readings in `Fleet`: robot, kind of sensor, and index.
    rays : Rays
        Rays of the sensor.
    """

    key: tuple[str, str, int]
    rays: Rays


class _Layout(NamedTuple):
    """Places of the readings of point clouds among all readings of a step.

    Attributes
    ----------
    spans : mapping
        Sensors that have measured, each with first and end index of its readings; see
        `Fleet.measured`. When other sensors measure, a new layout is needed.
    clouds : list of Cloud
        Point clouds of these sensors.
    places : (n,) int64
        Index of each reading of the clouds among the readings of the step.
    rays : Rays
        Rays of all clouds, (n, ...).
    last : (clouds,) int64
        Index of each cloud's last ray.
    """

    spans: Mapping[Hashable, tuple[int, int]]
    clouds: list[Cloud]
    places: NDArray[np.int64]
    rays: Rays
    last: NDArray[np.int64]

    @classmethod
    def of(
        cls, clouds: Sequence[Cloud], spans: Mapping[Hashable, tuple[int, int]]
    ) -> _Layout:
        """Return the layout of the clouds whose sensors have measured, at least one.

        Parameters
        ----------
        clouds : sequence of Cloud
            Registered sensors.
        spans : mapping of hashable to (int, int)
            First and end index of the readings of each measured sensor.
        """
        taken = [(cloud, spans[cloud.key]) for cloud in clouds if cloud.key in spans]
        found = [cloud for cloud, _ in taken]
        joined = [
            np.concatenate(columns)
            for columns in zip(*(cloud.rays for cloud in found), strict=True)
        ]
        places = np.concatenate([np.arange(*span) for _, span in taken])
        last = (
            np.cumsum([len(cloud.rays.farthest) for cloud in found], dtype=np.int64) - 1
        )
        return cls(spans, found, places, Rays(*joined), last)


class StepData:
    """State rows and readings of all sensors after a step, in the form of ROS.

    The publisher calls `forget` before the messages of each step.

    Parameters
    ----------
    is_localized : bool
        See `StepFrames`.

    Attributes
    ----------
    frames : StepFrames
        Transforms that change with every step.
    covariance : OdometryCovariance
        Covariances of odometry, for robots whose name profile has them.
    """

    def __init__(self, is_localized: bool = False) -> None:
        self.frames = StepFrames(is_localized)
        self.covariance = OdometryCovariance()
        self._clouds: list[Cloud] = []
        self._columns: dict[str, list[Any]] = {}
        self._poses: dict[str, bytes] = {}
        self._twists = b""
        self._measured: tuple[int, Mapping[Hashable, tuple[int, int]]] | None = None
        self._short: NDArray[np.float32] | None = None
        self._views: dict[bool, tuple[bytes, bytes]] = {}
        """Bytes of all ranges and intensities, float32, by whether ranges may be infinite."""
        self._points: dict[Cloud, bytes] | None = None
        self._laid: _Layout | None = None

    def forget(self) -> None:
        """Invalidate the cache after a change of state."""
        self._columns.clear()
        self._poses.clear()
        self._twists = b""
        self.frames.forget()
        self.covariance.advance()
        self.forget_readings()

    def forget_readings(self) -> None:
        """Invalidate the readings after a sensor has measured between two steps."""
        self._measured = self._short = self._points = None
        self._views.clear()

    def add(self, cloud: Cloud) -> None:
        """Register a sensor whose points are published.

        Parameters
        ----------
        cloud : Cloud
            Sensor, which identifies its points in `cloud`.
        """
        self._clouds.append(cloud)
        self._laid = None

    def remove(self, cloud: Cloud) -> None:
        """Unregister a sensor.

        Parameters
        ----------
        cloud : Cloud
            A registered sensor.
        """
        self._clouds.remove(cloud)
        self._laid = None

    def of(self, fleet: Fleet, what: str, robot: str) -> Any:
        """Return a robot's value in a column of the state, as Python numbers.

        Parameters
        ----------
        fleet : Fleet
            State of all robots.
        what : str
            Name of the column, such as ``motors``.
        robot : str
            Name of the robot.

        Returns
        -------
        float, int or list
            The element of the column; a list for columns of several numbers.
        """
        column = self._columns.get(what)
        if column is None:
            # One `tolist` for all robots costs less than an array access for each.
            column = self._columns[what] = getattr(fleet.state, what).tolist()
        return column[fleet.rows[robot]]

    def odometry(self, fleet: Fleet, what: str, robot: str) -> tuple[bytes, bytes]:
        """Return pose and velocity as bytes of nav_msgs/Odometry.

        The pose is the state's ``pose`` or ``odom``. Values are float64: x, y, z, m,
        and a quaternion x, y, z, w; linear, m/s, and angular velocity, rad/s, x, y, z
        each.

        Parameters
        ----------
        fleet : Fleet
            State of all robots.
        what : str
            ``odom`` for the pose by odometry, ``pose`` for the true pose.
        robot : str
            Name of the robot.

        Returns
        -------
        tuple of bytes
            56 and 48 bytes, in the byte order of the machine.
        """
        poses = self._poses.get(what)
        if poses is None:
            poses = self._poses[what] = planar(getattr(fleet.state, what)).tobytes()
        if not self._twists:
            velocities = fleet.state.vel
            twists = np.zeros((len(velocities), _TWIST // 8))
            twists[:, (0, 1, 5)] = velocities
            self._twists = twists.tobytes()

        row = fleet.rows[robot]
        return poses[row * _POSE : (row + 1) * _POSE], self._twists[
            row * _TWIST : (row + 1) * _TWIST
        ]

    def measured(self, fleet: Fleet) -> tuple[int, Mapping[Hashable, tuple[int, int]]]:
        """Return the version of the layout of readings, and the slices of the sensors in it.

        Only sensors that have measured in this step have a slice; there are no slices
        if readings are rounded.

        Parameters
        ----------
        fleet : Fleet
            Readings of all robots.

        Returns
        -------
        tuple of (int, mapping)
            Version, which increases when the list of sensors changes; and first and end
            index of the readings of each sensor, by its key. The same objects are
            returned until `forget`.
        """
        if self._measured is None:
            self._measured = fleet.layout, fleet.measured if fleet.is_exact else {}
        return self._measured

    def scan(
        self, fleet: Fleet, span: tuple[int, int], inf: bool, range_min: float = 0.0
    ) -> tuple[bytes, bytes]:
        """Return the bytes of a sensor's ranges and of its intensities, as float32.

        Intensities are the strengths of echoes: 0 without an echo.

        Parameters
        ----------
        fleet : Fleet
            Readings of all robots.
        span : tuple of int
            First and end index of the sensor's readings, from `measured`.
        inf : bool
            Whether a ray without an echo has an infinite range (REP-117).
        range_min : float
            Least range of the sensor, m; with `inf`, shorter readings become −∞.
        """
        ranges, seen = self._views.get(inf) or self._viewed(fleet, inf)
        a, b = 4 * span[0], 4 * span[1]
        if not inf or range_min <= 0.0:
            return ranges[a:b], seen[a:b]
        return without_near(
            np.frombuffer(ranges[a:b], np.float32), range_min
        ).tobytes(), seen[a:b]

    def _viewed(self, fleet: Fleet, inf: bool) -> tuple[bytes, bytes]:
        """Return the bytes of the ranges and of the intensities of all sensors, float32.

        With `inf`, rays without an echo have infinite ranges. The results are kept
        until the readings change.
        """
        returns, short = fleet.readings[1], self._shortened(fleet)
        ranges = np.where(returns == 0, np.float32(np.inf), short) if inf else short
        made = self._views[inf] = ranges.tobytes(), returns.astype(np.float32).tobytes()
        return made

    def _shortened(self, fleet: Fleet) -> NDArray[np.float32]:
        """Return the ranges of all sensors, converted to float32, m."""
        if self._short is None:
            self._short = fleet.readings[0].astype(np.float32)
        return self._short

    def cloud(self, fleet: Fleet, cloud: Cloud) -> bytes | None:
        """Return the points of a registered sensor, 12 bytes each.

        None means that the sensor has not measured in this step, or that readings are
        rounded.

        Parameters
        ----------
        fleet : Fleet
            Readings of all robots.
        cloud : Cloud
            A registered sensor.

        Returns
        -------
        bytes or None
            x, y and z of each hit, float32, m, in the frame of the sensor's rays.
        """
        if self._points is None:
            self._points = self._all_points(fleet)
        return self._points.get(cloud)

    def _all_points(self, fleet: Fleet) -> dict[Cloud, bytes]:
        """Return the points of each measured cloud, 12 bytes each.

        Parameters
        ----------
        fleet : Fleet
            Readings of all robots.
        """
        spans = self.measured(fleet)[1]
        laid = self._laid
        # The layout is valid as long as the same sensors measure.
        if laid is None or laid.spans is not spans:
            if not any(cloud.key in spans for cloud in self._clouds):
                return {}
            laid = self._laid = _Layout.of(self._clouds, spans)

        rays = laid.rays
        # Compute all clouds in one array operation, which costs less than an operation
        # for each.
        points = self._shortened(fleet)[laid.places][:, None] * rays.directions
        points += rays.origins
        # Rays without a hit have no point.
        kept = fleet.readings[0][laid.places] < rays.farthest
        data = points[kept].tobytes()
        ends = (np.cumsum(kept)[laid.last] * _POINT).tolist()
        return {
            cloud: data[a:b]
            for cloud, a, b in zip(laid.clouds, [0, *ends], ends, strict=False)
        }


__all__ = ["Cloud", "StepData"]
