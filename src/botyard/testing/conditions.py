"""Conditions that a test of a robot program waits for or requires.

Examples: close to a place, area covered, inside an area; all by true poses. A condition
is called after each step, in the simulator's thread, with a `Scenery`. Any function of
a `Scenery` that returns a bool is a condition.
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
"""Name of a place on the map, of a robot or of a box; or a pose; or x and y, m."""
Box = tuple[float, float, float, float]
"""Rectangle: minimum x, minimum y, maximum x, maximum y, m."""


@dataclass(frozen=True, slots=True)
class Scenery:
    """World and its history, from which conditions are evaluated.

    Attributes
    ----------
    sim : Simulation
        The world, after a step.
    truth : TruthLog
        True history of its robots.
    """

    sim: Simulation
    truth: TruthLog


class Condition(Protocol):
    """Function that returns whether a condition holds now."""

    def __call__(self, scenery: Scenery, /) -> bool:
        """Return whether the condition holds."""
        ...


def pose_of(sim: Simulation, target: Target) -> Pose:
    """Return the pose of a target.

    Parameters
    ----------
    sim : Simulation
        The world. The true poses of its bodies count.
    target : str, Pose or sequence of float
        Name of a robot, a box or a place; or numbers, m and rad.

    Returns
    -------
    Pose
        Pose in the frame of the world. th is NaN for a target without a heading.

    Raises
    ------
    ArgumentError
        No object has this name, or the value is not a pose.
    """
    if not isinstance(target, str):
        values = [float(value) for value in target]
        if len(values) not in (2, 3):
            raise ArgumentError(
                f"target: expected x and y, or x, y and th, found {len(values)} numbers"
            )

        # NaN marks a target without a heading; 0 would be a valid direction.
        return Pose(values[0], values[1], values[2] if len(values) > 2 else math.nan)

    # Look up bodies before places: of a box and a place with one name, the box moves.
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
        f'target: expected a robot, a box or a place, found "{target}" (known: {", ".join(known) or "none"})'
    )


class _Named:
    """Condition with a description for messages."""

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
    """Return a condition: a robot is at most `within` from a target, m.

    With `heading`, the robot must also point in the target's direction to within this
    angle, rad. The condition raises UnknownNameError or ArgumentError if there is no
    such robot or target, or if the target has no heading.

    Parameters
    ----------
    robot : str
        Name of the robot.
    target : str, Pose or sequence of float
        Name of a robot, a box or a place; or x and y, m, with or without th, rad.
    within : float
        Greatest distance of the robot's origin, m.
    heading : float, optional
        Greatest difference of the headings, rad. By default headings do not matter.
    """

    def holds(scenery: Scenery) -> bool:
        # Looked up in each step, because the target may be another moving robot.
        here, there = scenery.sim.robots[robot].truth, pose_of(scenery.sim, target)
        if heading is not None and math.isnan(there.th):
            raise ArgumentError(f"near: the target {target} has no heading")
        return distance((here.x, here.y), (there.x, there.y)) <= within and (
            heading is None
            or abs(math.remainder(here.th - there.th, math.tau)) <= heading
        )

    return _Named(f"{robot} is within {within:g} m of {target}", holds)


def stands(robot: str, seconds: float = 1.0) -> Condition:
    """Return a condition: a robot has stood still for some simulated time, s.

    Parameters
    ----------
    robot : str
        Name of the robot.
    seconds : float
        Simulated time, s, from the start of the run.
    """
    since: list[float] = []

    def begin(scenery: Scenery) -> None:
        since[:] = [scenery.sim.time]

    def holds(scenery: Scenery) -> bool:
        v = scenery.sim.robots[robot].velocity
        # Rounding leaves tiny speeds after braking, which are no motion.
        if abs(v.vx) + abs(v.vy) + abs(v.w) > 1e-6 or not since:
            since[:] = [scenery.sim.time]
        return scenery.sim.time - since[0] >= seconds

    return _Named(f"{robot} has stood for {seconds:g} s", holds, begin)


def inside(robot: str, area: Box | Sequence[Sequence[float]]) -> Condition:
    """Return a condition: the centre of a robot is inside an area.

    Parameters
    ----------
    robot : str
        Name of the robot.
    area : four numbers or sequence of (x, y)
        Rectangle (minimum x, minimum y, maximum x, maximum y, m), or corners of a
        polygon, m.

    Raises
    ------
    ArgumentError
        `area` is neither.
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
    """Return whether a point is inside a polygon.

    The point is inside if an odd number of edges crosses the ray to its right.

    Parameters
    ----------
    corners : sequence of (float, float)
        Corners in order, m; the last corner is joined to the first.
    x, y : float
        The point, m.
    """
    found = False
    for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
        # The half-open comparison counts a corner for one of its two edges only.
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            found = not found

    return found


class Coverage:
    """Share of an area that a robot has covered.

    A condition and a measure (`share`).

    Cells of the area that contain walls do not count.

    Parameters
    ----------
    robot : str
        Name of the robot.
    area : (x0, y0, x1, y1)
        Minimum x, minimum y, maximum x, maximum y, m.
    reach : float
        Distance from its centre that the robot covers, m: its radius, or the reach of
        its tool or sensor.
    share : float
        Share of the area from which the condition holds, 0 … 1.
    resolution : float
        Edge length of a cell, m.
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
        """Add the area covered now; return whether the share is reached."""
        if self._left is None:
            self._left = self._middles(scenery.sim)
            self._all = len(self._left)

        pose = scenery.sim.robots[self._robot].truth
        # Squares instead of roots: this runs in each step, over all cells that are
        # left.
        away = np.square(self._left[:, 0] - pose.x) + np.square(
            self._left[:, 1] - pose.y
        )
        # Covered cells are removed, so that the cost falls as the robot works.
        self._left = self._left[away > self._reach * self._reach]
        return self.share >= self._share

    def _middles(self, sim: Simulation) -> NDArray[np.float64]:
        """Return the centres of those cells of the area that contain no wall.

        Parameters
        ----------
        sim : Simulation
            The world; cells with walls are left out.

        Returns
        -------
        (n, 2) float64
            x and y, m.
        """
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

        # Cells beyond the map count as free, because an area may be larger than the
        # map.
        solid = np.zeros(len(middles), bool)
        solid[there] = raster.solid[iy[there], ix[there]]
        return middles[~solid]

    @property
    def share(self) -> float:
        """Share covered so far, 0 … 1."""
        if self._left is None:
            return 0.0
        return 1.0 - len(self._left) / self._all if self._all else 1.0

    def __str__(self) -> str:
        return (
            f"{self._robot} has covered {100 * self._share:g} % of "
            f"{self._area} (it has {100 * self.share:.1f} %)"
        )


__all__ = ["Condition", "Coverage", "Scenery", "inside", "near", "pose_of", "stands"]
