"""Per-step cache of state rows and readings, converted once for the messages of all robots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard import elementwise
from botyard.model.robotport import Fleet

F8 = NDArray[np.float64]

_POINT: Final = 12
"""Bytes of a point: three float32."""


@dataclass(slots=True, eq=False)
class Ring:
    """A sonar ring: geometry for converting its readings to points.

    Attributes
    ----------
    robot : str
        Name of its robot.
    mounts, rays : (n, 3) float32
        Origins of the transducers in the robot's frame, m, and their directions.
    farthest : (n,) float64
        Range of each transducer from which readings have no echo and are left out, m; infinite: none is.
    """

    robot: str
    mounts: NDArray[np.float32]
    rays: NDArray[np.float32]
    farthest: F8


class StepData:
    """Rows of the state and readings of all sensors after a step, as ROS sends them.

    The publisher calls `forget` before the messages of each step.
    """

    def __init__(self) -> None:
        self._rings: list[Ring] = []
        self._rows: dict[str, list[Any]] = {}
        self._views: tuple[memoryview, memoryview, memoryview] | None = None
        self._short: NDArray[np.float32] = np.zeros(0, np.float32)
        self._points: dict[int, bytes] | None = None
        self._spans: list[tuple[int, int] | None] = []
        self._laid: tuple[Any, ...] = ()

    def forget(self) -> None:
        """Invalidate the cache: the state has changed."""
        self._rows.clear()
        self.forget_readings()

    def forget_readings(self) -> None:
        """Invalidate the readings: a sensor was measured between steps."""
        self._views = None
        self._points = None

    def add(self, ring: Ring) -> None:
        """Register a ring whose points will be published."""
        self._rings.append(ring)
        self._spans = []

    def remove(self, ring: Ring) -> None:
        """Unregister a ring."""
        self._rings.remove(ring)
        self._spans = []

    def row(self, fleet: Fleet, what: str, robot: str) -> list[float]:
        """A row of the state's ``pose``, ``odom`` or ``vel``: three numbers in SI units."""
        rows = self._rows.get(what)
        if rows is None:
            rows = self._rows[what] = getattr(fleet.state, what).tolist()
        found: list[float] = rows[fleet.rows[robot]]
        return found

    def scan(self, fleet: Fleet, span: tuple[int, int], inf: bool) -> tuple[memoryview, memoryview]:
        """Bytes of a sensor's ranges (with infinity where nothing was hit if `inf`) and of its intensities, as float32."""
        plain, infinite, seen = self._views or self._viewed(fleet)
        a, b = 4 * span[0], 4 * span[1]
        return (infinite if inf else plain)[a:b], seen[a:b]

    def _viewed(self, fleet: Fleet) -> tuple[memoryview, memoryview, memoryview]:
        ranges, returns = fleet.readings
        self._short = ranges.astype(np.float32)
        arrays = self._short, np.where(returns == 0, np.float32(np.inf), self._short), returns.astype(np.float32)
        plain, infinite, seen = (memoryview(a.tobytes()) for a in arrays)
        self._views = plain, infinite, seen
        return self._views

    def cloud(self, fleet: Fleet, ring: Ring) -> bytes | None:
        """The points of a ring that was added, 12 bytes each; None if its readings were not taken in this step."""
        if self._points is None:
            self._points = self._all_points(fleet)
        return self._points.get(id(ring))

    def _all_points(self, fleet: Fleet) -> dict[int, bytes]:
        spans = [fleet.span(ring.robot, "sonar", 0) for ring in self._rings]
        taken = [(ring, span) for ring, span in zip(self._rings, spans, strict=True) if span is not None]
        if not taken or not fleet.is_exact:
            return {}
        if self._views is None:
            self._viewed(fleet)
        if spans != self._spans:
            self._spans = spans
            self._laid = (
                np.concatenate([np.arange(*span) for _, span in taken]),
                np.concatenate([ring.rays for ring, _ in taken]),
                np.concatenate([ring.mounts for ring, _ in taken]),
                np.concatenate([ring.farthest for ring, _ in taken]),
                np.cumsum([len(ring.rays) for ring, _ in taken]) - 1,
            )
        places, rays, mounts, farthest, last = self._laid
        points = self._short[places][:, None] * rays
        points += mounts
        kept = fleet.readings[0][places] < farthest
        data = points[kept].tobytes()
        ends = (np.cumsum(kept)[last] * _POINT).tolist()
        return {id(ring): data[a:b] for (ring, _), a, b in zip(taken, [0, *ends], ends, strict=False)}


def ring_of(robot: str, mounts: F8, farthest: F8) -> Ring:
    """The ring of transducers at `mounts` (n, 3): x, y (m), bearing (rad)."""
    flat = np.zeros(len(mounts))
    origins = np.stack([mounts[:, 0], mounts[:, 1], flat], axis=1).astype(np.float32)
    rays = np.stack([*elementwise.cosine_sine(mounts[:, 2]), flat], axis=1).astype(np.float32)
    return Ring(robot, origins, rays, farthest)


__all__ = ["Ring", "StepData", "ring_of"]
