"""Per-step cache of state rows and readings, converted once for the messages of all robots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.model.robotport import Fleet
from botyard.model.rosmessages import Rays, without_near
from botyard.protocols.ros_messages.covariance import OdometryCovariance
from botyard.protocols.ros_messages.frames import StepFrames

F8 = NDArray[np.float64]

_POINT: Final = 12
"""Bytes of a point: three float32."""


@dataclass(slots=True, eq=False)
class Cloud:
    """A sensor whose readings become points.

    Attributes
    ----------
    key : (str, str, int)
        Robot, kind and index, by which `Fleet` has its readings.
    rays : Rays
        Its rays.
    """

    key: tuple[str, str, int]
    rays: Rays


class StepData:
    """Rows of the state and readings of all sensors after a step, as ROS sends them.

    The publisher calls `forget` before the messages of each step.

    Parameters
    ----------
    is_localized : bool
        See `StepFrames`.

    Attributes
    ----------
    frames : StepFrames
        Transforms.
    covariance : OdometryCovariance
        Covariances of odometry, of robots whose name profile has them.
    """

    def __init__(self, is_localized: bool = False) -> None:
        self.frames = StepFrames(is_localized)
        self.covariance = OdometryCovariance()
        self._clouds: list[Cloud] = []
        self._rows: dict[str, list[Any]] = {}
        self._views: tuple[memoryview, memoryview, memoryview] | None = None
        self._short: NDArray[np.float32] = np.zeros(0, np.float32)
        self._points: dict[int, bytes] | None = None
        self._spans: list[tuple[int, int] | None] = []
        self._laid: tuple[Any, ...] = ()

    def forget(self) -> None:
        """Invalidate the cache: the state has changed."""
        self._rows.clear()
        self.frames.forget()
        self.covariance.advance()
        self.forget_readings()

    def forget_readings(self) -> None:
        """Invalidate the readings: a sensor was measured between steps."""
        self._views = None
        self._points = None

    def add(self, cloud: Cloud) -> None:
        """Register a sensor whose points will be published."""
        self._clouds.append(cloud)
        self._spans = []

    def remove(self, cloud: Cloud) -> None:
        """Unregister a sensor."""
        self._clouds.remove(cloud)
        self._spans = []

    def row(self, fleet: Fleet, what: str, robot: str) -> list[float]:
        """A row of the state's ``pose``, ``odom`` or ``vel``: three numbers in SI units."""
        rows = self._rows.get(what)
        if rows is None:
            rows = self._rows[what] = getattr(fleet.state, what).tolist()
        found: list[float] = rows[fleet.rows[robot]]
        return found

    def scan(
        self, fleet: Fleet, span: tuple[int, int], inf: bool, range_min: float = 0.0
    ) -> tuple[memoryview, memoryview]:
        """Bytes of a sensor's ranges and of its intensities, as float32; with `inf`, infinities as `ScanArrays.is_open` says."""
        plain, infinite, seen = self._views or self._viewed(fleet)
        a, b = 4 * span[0], 4 * span[1]
        if not inf:
            return plain[a:b], seen[a:b]
        if range_min <= 0.0:
            return infinite[a:b], seen[a:b]
        near = without_near(np.frombuffer(infinite[a:b], np.float32), range_min)
        return memoryview(near.tobytes()), seen[a:b]

    def _viewed(self, fleet: Fleet) -> tuple[memoryview, memoryview, memoryview]:
        ranges, returns = fleet.readings
        self._short = ranges.astype(np.float32)
        arrays = self._short, np.where(returns == 0, np.float32(np.inf), self._short), returns.astype(np.float32)
        plain, infinite, seen = (memoryview(a.tobytes()) for a in arrays)
        self._views = plain, infinite, seen
        return self._views

    def cloud(self, fleet: Fleet, cloud: Cloud) -> bytes | None:
        """The points of a sensor that was added, 12 bytes each; None if its readings were not taken in this step, or are rounded."""
        if self._points is None:
            self._points = self._all_points(fleet)
        return self._points.get(id(cloud))

    def _all_points(self, fleet: Fleet) -> dict[int, bytes]:
        spans = [fleet.span(*cloud.key) for cloud in self._clouds]
        taken = [(cloud, span) for cloud, span in zip(self._clouds, spans, strict=True) if span is not None]
        if not taken or not fleet.is_exact:
            return {}
        if self._views is None:
            self._viewed(fleet)
        if spans != self._spans:
            self._spans = spans
            rays = [cloud.rays for cloud, _ in taken]
            joined = [np.concatenate(columns) for columns in zip(*rays, strict=True)]
            last = np.cumsum([len(r.farthest) for r in rays]) - 1
            self._laid = (np.concatenate([np.arange(*span) for _, span in taken]), Rays(*joined), last)
        places, rays_, last = self._laid
        points = self._short[places][:, None] * rays_.directions
        points += rays_.origins
        kept = fleet.readings[0][places] < rays_.farthest
        data = points[kept].tobytes()
        ends = (np.cumsum(kept)[last] * _POINT).tolist()
        return {id(cloud): data[a:b] for (cloud, _), a, b in zip(taken, [0, *ends], ends, strict=False)}


__all__ = ["Cloud", "StepData"]
