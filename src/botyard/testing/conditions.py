"""What a test of a robot's program waits for, or demands: near a place, all covered,
inside of an area, by true poses.

A condition is called after every step, in the thread of the simulation, with a
`Scenery`; any function of one is a condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.geometry import Pose, distance
from botyard.sim.simulation import Simulation
from botyard.testing.observer import TruthLog

Target = str | Pose | Sequence[float]
"""Name of a place of the map, of a robot or of a box; or a pose, or x and y, m."""
Box = tuple[float, float, float, float]
"""Least x, least y, greatest x, greatest y, m."""


@dataclass(frozen=True, slots=True)
class Scenery:
    """What conditions look at.

    Attributes
    ----------
    sim : Simulation
        The world, after a step.
    truth : TruthLog
        What has happened to its robots.
    """

    sim: Simulation
    truth: TruthLog


class Condition(Protocol):
    """Whether something holds now."""

    def __call__(self, scenery: Scenery, /) -> bool:
        """Whether it holds."""
        ...


def pose_of(sim: Simulation, target: Target) -> Pose:
    """Pose of a target. ArgumentError: nothing has that name, or it is no pose."""
    if not isinstance(target, str):
        values = [float(value) for value in target]
        if len(values) not in (2, 3):
            raise ArgumentError(
                f"target: expected x and y, or x, y and th, found {len(values)} numbers"
            )

        return Pose(values[0], values[1], values[2] if len(values) > 2 else math.nan)

    row = sim.snapshot.rows.get(target)
    if row is not None:
        return Pose(*sim.snapshot.state.pose[row].tolist())
    for place in sim.scene.places:
        if place.name == target:
            return Pose(
                place.pose.x,
                place.pose.y,
                place.pose.th if place.has_heading else math.nan,
            )

    known = [
        *sim.snapshot.rows,
        *(place.name for place in sim.scene.places if place.name),
    ]
    raise ArgumentError(
        f'target: expected a robot, a box or a place, found "{target}" (there are: {", ".join(known) or "none"})'
    )


class _Named:
    """A condition that says what it is."""

    def __init__(
        self,
        text: str,
        holds: Callable[[Scenery], bool],
        begin: Callable[[Scenery], None] | None = None,
    ) -> None:
        self._text, self._holds, self.begin = text, holds, begin

    def __call__(self, scenery: Scenery, /) -> bool:
        return self._holds(scenery)

    def __str__(self) -> str:
        return self._text


def near(
    robot: str, target: Target, within: float, heading: float | None = None
) -> Condition:
    """A robot is at most `within` m from a target, and, with `heading`, turned as the
    target is, to so many rad.

    Raises, when it is asked
    ------
    UnknownNameError, ArgumentError
        There is no such robot or target; the target has no heading.
    """

    def holds(scenery: Scenery) -> bool:
        here, there = scenery.sim.robots[robot].truth, pose_of(scenery.sim, target)
        if heading is not None and math.isnan(there.th):
            raise ArgumentError(f"near: the target {target} has no heading")
        return distance((here.x, here.y), (there.x, there.y)) <= within and (
            heading is None
            or abs(math.remainder(here.th - there.th, math.tau)) <= heading
        )

    return _Named(f"{robot} is within {within:g} m of {target}", holds)


def stands(robot: str, seconds: float = 1.0) -> Condition:
    """A robot has stood still for so much simulated time."""
    since: list[float] = []

    def begin(scenery: Scenery) -> None:
        since[:] = [scenery.sim.time]

    def holds(scenery: Scenery) -> bool:
        v = scenery.sim.robots[robot].velocity
        if abs(v.vx) + abs(v.vy) + abs(v.w) > 1e-6 or not since:
            since[:] = [scenery.sim.time]
        return scenery.sim.time - since[0] >= seconds

    return _Named(f"{robot} has stood for {seconds:g} s", holds, begin)


def inside(robot: str, area: Box | Sequence[Sequence[float]]) -> Condition:
    """The middle of a robot is in a rectangle (least x, least y, greatest x, greatest
    y, m) or in a polygon (corners x, y, m).
    """
    numbers = np.asarray(area, np.float64)
    if numbers.shape == (4,):
        x0, y0, x1, y1 = numbers.tolist()
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    elif numbers.ndim == 2 and numbers.shape[1] == 2 and len(numbers) >= 3:
        corners = [(x, y) for x, y in numbers.tolist()]
    else:
        raise ArgumentError(
            "area: expected four numbers or at least three corners x, y, found "
            f"an array of shape {numbers.shape}"
        )

    def holds(scenery: Scenery) -> bool:
        pose = scenery.sim.robots[robot].truth
        return _contains(corners, pose.x, pose.y)

    return _Named(f"{robot} is inside of {np.round(numbers, 2).tolist()}", holds)


def _contains(corners: Sequence[tuple[float, float]], x: float, y: float) -> bool:
    """Whether a point is in a polygon: an odd number of edges cross the ray to its
    right.
    """
    found = False
    for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            found = not found

    return found


class Coverage:
    """How much of an area a robot has been over: a condition, and a measure (`share`).

    Cells of the area in which there are walls do not count.

    Parameters
    ----------
    robot : str
        Its name.
    area : (x0, y0, x1, y1)
        Least x, least y, greatest x, greatest y, m.
    reach : float
        How far around its middle it covers, m: its radius, or how far its tool or its
        sensor reaches.
    share : float
        Part of the area from which on the condition holds, 0 … 1.
    resolution : float
        Edge of a cell, m.
    """

    def __init__(
        self,
        robot: str,
        area: Box,
        reach: float,
        share: float = 1.0,
        resolution: float = 0.1,
    ) -> None:
        self._robot, self._area, self._reach, self._share, self._edge = (
            robot,
            area,
            reach,
            share,
            resolution,
        )
        self._left: NDArray[np.float64] | None = None
        self._all = 0

    def __call__(self, scenery: Scenery, /) -> bool:
        """Count what is covered now; whether the share is reached."""
        if self._left is None:
            self._left = self._middles(scenery.sim)
            self._all = len(self._left)

        pose = scenery.sim.robots[self._robot].truth
        away = np.square(self._left[:, 0] - pose.x) + np.square(
            self._left[:, 1] - pose.y
        )
        self._left = self._left[away > self._reach * self._reach]
        return self.share >= self._share

    def _middles(self, sim: Simulation) -> NDArray[np.float64]:
        x0, y0, x1, y1 = self._area
        x, y = np.meshgrid(
            np.arange(x0, x1, self._edge) + self._edge / 2,
            np.arange(y0, y1, self._edge) + self._edge / 2,
        )
        middles = np.column_stack((x.ravel(), y.ravel()))
        if sim.scene.is_empty or not (len(sim.scene.segments) or len(sim.scene.points)):
            return middles
        raster = sim.scene.to_array(self._edge, filled=False)
        ix = np.floor((middles[:, 0] - raster.x) / self._edge).astype(np.int64)
        iy = np.floor((middles[:, 1] - raster.y) / self._edge).astype(np.int64)
        rows, columns = raster.solid.shape
        there = (ix >= 0) & (ix < columns) & (iy >= 0) & (iy < rows)
        solid = np.zeros(len(middles), bool)
        solid[there] = raster.solid[iy[there], ix[there]]
        return middles[~solid]

    @property
    def share(self) -> float:
        """The part that is covered so far, 0 … 1."""
        if self._left is None:
            return 0.0
        return 1.0 - len(self._left) / self._all if self._all else 1.0

    def __str__(self) -> str:
        return (
            f"{self._robot} has covered {100 * self._share:g} % of "
            f"{self._area} (it has {100 * self.share:.1f} %)"
        )


__all__ = ["Condition", "Coverage", "Scenery", "inside", "near", "pose_of", "stands"]
