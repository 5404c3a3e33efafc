"""Scan matching: expected ranges at a pose, and the pose that fits a scan best.

Ranges are compared, not points. The expected range of each beam is cast exactly, and
its derivatives follow from the direction of the wall that it hits. The fit is a damped
Gauss-Newton method with Cauchy weights, which ignores objects that the map does not
have.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.calibration.log import Log, ScanSeries, Series
from botyard.calibration.planar import F8, between, compose, inverse
from botyard.errors import CalibrationError
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec
from botyard.sim.simulation import Simulation

PROBE_RAD: Final = 6e-3
"""Angle on both sides of a beam at which the wall's direction is measured, rad.

It is larger than errors of bearings, so that the beam itself hits the same wall.
"""
MAX_SLOPE: Final = 4.0
"""Maximum slope at which a beam may hit a wall (tangent of the incidence)."""
MAX_CURVE_M: Final = 0.01
"""Maximum deviation of neighbouring beams from a straight wall, m.

A larger one means an edge or a corner nearby: the beam is not used.
"""
SPREADS_M: Final = (0.5, 0.2, 0.1, 0.05, 0.05, 0.05)
"""Residual with half the weight (Cauchy) in each iteration, m."""
PRIOR: Final = np.array([0.2, 0.2, 0.1])
"""Standard deviation of odometry's change of pose between two scans: m, m, rad."""
MIN_BEAMS: Final = 10
"""Minimum number of beams of a scan to use it."""
UNEXPLAINED_M: Final = 0.15
"""Largest residual at which the map still explains a range, m."""
MAX_UNEXPLAINED: Final = 0.25
"""Maximum fraction of unexplained ranges; above it, the map does not match."""
MATCH_PERIOD_S: Final = 0.5
"""Minimum time between two scans that are matched, s."""


class Expected(NamedTuple):
    """Expected scans.

    Attributes
    ----------
    ranges : (n, b) array
        Ranges, m.
    gradients : (n, b, 3) array
        Derivatives by the laser's x, y (m/m) and heading (m/rad).
    good : (n, b) bool array
        Whether each beam hits a straight wall within reach.
    """

    ranges: F8
    gradients: F8
    good: NDArray[np.bool_]


class Matcher:
    """Matcher of a laser's scans against a map.

    Parameters
    ----------
    scene : Scene
        Map with the walls that the laser saw.
    laser : LaserSpec
        The laser, with its mount pose and limits of ranges.
    bearings : (b,) array
        Bearings of its beams in its frame, rad.

    Raises
    ------
    CalibrationError
        The map has no walls.
    """

    def __init__(self, scene: Scene, laser: LaserSpec, bearings: F8) -> None:
        if scene.is_empty:
            raise CalibrationError(
                f"{scene.name}: expected a map with walls, found none"
            )

        # The simulation casts rays by the same code as a simulated laser, so both agree
        # exactly.
        self._sim = Simulation(scene, warn=None)
        self.laser, self.bearings = laser, bearings
        self.mount = np.array(laser.pose, np.float64)

    def close(self) -> None:
        """Close the simulation that casts the rays."""
        self._sim.close()

    def laser_poses(self, robot: F8) -> F8:
        """Return poses of the laser, computed from poses of the robot: m, m, rad."""
        return compose(robot, self.mount)

    def robot_poses(self, laser: F8) -> F8:
        """Return poses of the robot, computed from poses of the laser: m, m, rad."""
        return compose(laser, inverse(self.mount))

    def expect(self, poses: F8) -> Expected:
        """Return the expected scans at poses.

        Parameters
        ----------
        poses : (n, 3) float64
            Poses of the laser in the map: m, m, rad.

        Returns
        -------
        Expected
            Ranges of all beams with their derivatives.
        """
        directions = poses[:, 2, None] + self.bearings
        # Three rays per beam: two neighbours give the slope of the wall.
        fan = directions[..., None] + np.array([-PROBE_RAD, 0.0, PROBE_RAD])
        places = np.broadcast_to(poses[:, None, None, :2], (*fan.shape, 2))
        before, ranges, after = np.moveaxis(
            self._sim.cast(places, fan, range_max=self.laser.range_max), -1, 0
        )
        # Along a straight wall, 1/r is a cosine of the bearing.
        curve = np.abs(
            2.0 / (1.0 / np.maximum(before, 1e-6) + 1.0 / np.maximum(after, 1e-6))
            - ranges
        )
        slope = (after - before) / (2.0 * PROBE_RAD * np.maximum(ranges, 1e-6))
        furthest = np.maximum(np.maximum(before, after), ranges)
        good = (
            (curve < MAX_CURVE_M)
            & (np.abs(slope) < MAX_SLOPE)
            & (furthest < self.laser.range_max)
        )
        good &= ranges > self.laser.range_min
        c, s = np.cos(directions), np.sin(directions)
        # The wall's normal points along u − slope·u⊥, with u the beam's direction.
        gradients = np.stack(
            [-(c + slope * s), -(s - slope * c), slope * ranges], axis=-1
        )
        return Expected(ranges, gradients, good)

    def match(
        self,
        poses: F8,
        measured: F8,
        *,
        has_prior: bool,
        spreads: tuple[float, ...] = SPREADS_M,
    ) -> F8:
        """Return the poses of the laser at which measured scans fit the map best.

        The search starts at the given poses and stays near them.

        Parameters
        ----------
        poses : (n, 3) float64
            Initial poses of the laser in the map: m, m, rad.
        measured : (n, b) float64
            Measured ranges, m; NaN for none.
        has_prior : bool
            Whether a pose keeps its initial value where a scan does not determine it
            (`PRIOR`).
        spreads : tuple of float
            Residual with half the weight in each iteration, m.

        Returns
        -------
        (n, 3) float64
            Poses of the laser: m, m, rad.
        """
        first = poses
        # A tiny prior keeps the equations solvable in a corridor, where a scan does not
        # determine the position along it.
        prior = np.diag(1.0 / (PRIOR * PRIOR)) if has_prior else np.eye(3) * 1e-6
        usable = self.usable(measured)
        for spread in spreads:
            expected = self.expect(poses)
            r = np.where(usable & expected.good, measured - expected.ranges, 0.0)
            # Cauchy weights fall with the square of the residual, so a moved object
            # hardly counts.
            weights = np.where(
                usable & expected.good, 1.0 / (1.0 + (r / spread) ** 2), 0.0
            ) / (spread * spread)
            normal = (
                np.einsum(
                    "nbi,nb,nbj->nij", expected.gradients, weights, expected.gradients
                )
                + prior
            )
            away = between_plain(first, poses)
            right = (
                np.einsum("nbi,nb,nb->ni", expected.gradients, weights, r)
                - away @ prior
            )
            step = np.linalg.solve(normal, right[..., None])[..., 0]
            # The limits keep a step within the range in which the linearisation is
            # valid.
            poses = poses + np.clip(step, [-0.3, -0.3, -0.15], [0.3, 0.3, 0.15])

        return poses

    def usable(self, measured: F8) -> NDArray[np.bool_]:
        """Return which measured ranges are within the limits of the laser.

        Parameters
        ----------
        measured : (n, b) float64
            Measured ranges, m; NaN for none.

        Returns
        -------
        (n, b) bool
            True for each range that is a hit and within the limits of the laser.
        """
        # Missing ranges are NaN, and compare as False.
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = (measured > self.laser.range_min) & (
                measured < self.laser.range_max - 1e-3
            )

        return found

    def unexplained(self, poses: F8, measured: F8) -> float:
        """Return the fraction of measured ranges that the map does not explain.

        Parameters
        ----------
        poses : (n, 3) float64
            Poses of the laser in the map: m, m, rad.
        measured : (n, b) float64
            Measured ranges, m; NaN for none.

        Returns
        -------
        float
            Fraction from 0 to 1; 1 without ranges.
        """
        expected, usable = self.expect(poses), self.usable(measured)
        where = usable & expected.good
        # A beam that passes through a wall of the map is unexplained as well.
        through = expected.good & ~usable & np.isfinite(measured)
        count = int(where.sum() + through.sum())
        if not count:
            return 1.0
        far = np.abs(measured[where] - expected.ranges[where]) > UNEXPLAINED_M
        return float((far.sum() + through.sum()) / count)


def between_plain(first: F8, poses: F8) -> F8:
    """Return the differences of poses, component by component, with wrapped headings.

    Parameters
    ----------
    first, poses : (…, 3) float64
        Poses: m, m, rad.

    Returns
    -------
    (…, 3) float64
        `poses` − `first`: m, m, rad in [−π, π).
    """
    difference = poses - first
    difference[..., 2] = (difference[..., 2] + np.pi) % (2.0 * np.pi) - np.pi
    return difference


def spread_scans(scans: ScanSeries, period: float) -> ScanSeries:
    """Return a selection of scans that are at least a minimum time apart.

    Parameters
    ----------
    scans : ScanSeries
        Scans in order of time, at least one.
    period : float
        Minimum time between two returned scans, s.
    """
    chosen: list[int] = []
    for i, at in enumerate(scans.time.tolist()):
        if not chosen or at >= scans.time[chosen[-1]] + period - 1e-6:
            chosen.append(i)

    return scans.chosen(np.array(chosen, np.int64))


def matched_truth(log: Log, matcher: Matcher, start: F8) -> tuple[Series, float]:
    """Return true poses of the robot at the times of its scans, by matching them with the map.

    Scans are matched against the map one after the other. Odometry predicts each pose
    from the previous one.

    Parameters
    ----------
    log : Log
        A log with scans and odometry.
    matcher : Matcher
        Matcher of the map.
    start : (3,) array
        Approximate pose of the robot at the start of the log: m, m, rad.

    Returns
    -------
    Series, float
        The poses, and the fraction of ranges that the map does not explain.

    Raises
    ------
    CalibrationError
        The log has no scans.
    """
    if log.scans is None or not len(log.scans):
        raise CalibrationError(f"{log.source}: expected scans, found none")
    begin, end = log.span
    scans = spread_scans(
        log.scans.chosen((log.scans.time >= begin) & (log.scans.time <= end)),
        MATCH_PERIOD_S,
    )
    odometry = log.odometry.at(scans.time)
    pose = compose(start, between(log.odometry.at(np.array([begin]))[0], odometry[0]))
    found = []
    for i in range(len(scans)):
        if i:
            pose = compose(pose, between(odometry[i - 1], odometry[i]))
        laser = matcher.match(
            matcher.laser_poses(pose[None]), scans.ranges[i : i + 1], has_prior=True
        )
        pose = matcher.robot_poses(laser)[0]
        found.append(pose)

    poses = np.array(found)
    return Series.of(scans.time, poses), matcher.unexplained(
        matcher.laser_poses(poses), scans.ranges
    )


__all__ = ["MAX_UNEXPLAINED", "Expected", "Matcher", "matched_truth", "spread_scans"]
