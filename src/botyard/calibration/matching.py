"""Scans against a map: what ranges are to be expected at a pose, and the pose at which
a scan fits best.

Ranges are compared, not points: the expected range of each beam is cast exactly, its
derivatives follow from the direction of the wall that it meets. The fit is a damped
Gauss-Newton with Cauchy weights, which passes over what the map does not have.
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
"""Bearing at both sides of a beam at which the wall's direction is measured: more than
bearings err, so that no beam meets another wall.
"""
MAX_SLOPE: Final = 4.0
"""A beam that meets a wall at such a slant (tangent of the angle from its normal), is
not used.
"""
MAX_CURVE_M: Final = 0.01
"""A beam whose neighbours at both sides do not lie on a straight wall within this is
not used: an edge or a corner is near.
"""
SPREADS_M: Final = (0.5, 0.2, 0.1, 0.05, 0.05, 0.05)
"""Residuals that count half (Cauchy), of each iteration."""
PRIOR: Final = np.array([0.2, 0.2, 0.1])
"""How far odometry may be off between two scans, m, m, rad."""
MIN_BEAMS: Final = 10
"""Fewest beams with which a scan is used."""
UNEXPLAINED_M: Final = 0.15
"""A range that is farther than this from what the map lets expect is not explained by
it.
"""
MAX_UNEXPLAINED: Final = 0.25
"""If a larger share is not explained, the map does not fit."""
MATCH_PERIOD_S: Final = 0.5
"""Scans that are matched are at least so far apart in time."""


class Expected(NamedTuple):
    """What is expected of scans.

    Attributes
    ----------
    ranges : (n, b) array
        m.
    gradients : (n, b, 3) array
        Derivatives by the laser's x, y (m/m) and heading (m/rad).
    good : (n, b) bool array
        Which beams meet a straight piece of wall within reach.
    """

    ranges: F8
    gradients: F8
    good: NDArray[np.bool_]


class Matcher:
    """A map and a laser.

    Parameters
    ----------
    scene : Scene
        The map.
    laser : LaserSpec
        The laser, with its mount pose and reach.
    bearings : (b,) array
        Of its beams, in its frame, rad.

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

        self._sim = Simulation(scene, warn=None)
        self.laser, self.bearings = laser, bearings
        self.mount = np.array(laser.pose, np.float64)

    def close(self) -> None:
        """End."""
        self._sim.close()

    def laser_poses(self, robot: F8) -> F8:
        """Poses of the laser, of those of the robot."""
        return compose(robot, self.mount)

    def robot_poses(self, laser: F8) -> F8:
        """Poses of the robot, of those of the laser."""
        return compose(laser, inverse(self.mount))

    def expect(self, poses: F8) -> Expected:
        """Expected ranges at poses (n, 3) of the laser."""
        directions = poses[:, 2, None] + self.bearings
        fan = directions[..., None] + np.array([-PROBE_RAD, 0.0, PROBE_RAD])
        places = np.broadcast_to(poses[:, None, None, :2], (*fan.shape, 2))
        before, ranges, after = np.moveaxis(
            self._sim.cast(places, fan, range_max=self.laser.range_max), -1, 0
        )
        # of a straight wall 1/r is a cosine of the bearing
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
        # the wall's normal is along u − slope·u⊥, with u the beam's direction
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
        """Poses (n, 3) of the laser at which scans (n, b) fit best, near those that are
        given.

        Parameters
        ----------
        poses, measured : arrays
            Guesses; ranges, m.
        has_prior : bool
            Whether a guess is to be kept where a scan does not tell the pose (`PRIOR`).
        spreads : tuple of float
            Residuals that count half, of each iteration, m.
        """
        first = poses
        prior = np.diag(1.0 / (PRIOR * PRIOR)) if has_prior else np.eye(3) * 1e-6
        usable = self.usable(measured)
        for spread in spreads:
            expected = self.expect(poses)
            r = np.where(usable & expected.good, measured - expected.ranges, 0.0)
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
            poses = poses + np.clip(step, [-0.3, -0.3, -0.15], [0.3, 0.3, 0.15])

        return poses

    def usable(self, measured: F8) -> NDArray[np.bool_]:
        """Which ranges are those of something that the laser has met."""
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = (measured > self.laser.range_min) & (
                measured < self.laser.range_max - 1e-3
            )

        return found

    def unexplained(self, poses: F8, measured: F8) -> float:
        """The share of the ranges that the map does not explain at these poses of the
        laser; 1 if there are none.
        """
        expected, usable = self.expect(poses), self.usable(measured)
        where = usable & expected.good
        # a wall that is there and was not met is not explained, too
        through = expected.good & ~usable & np.isfinite(measured)
        count = int(where.sum() + through.sum())
        if not count:
            return 1.0
        far = np.abs(measured[where] - expected.ranges[where]) > UNEXPLAINED_M
        return float((far.sum() + through.sum()) / count)


def between_plain(first: F8, poses: F8) -> F8:
    """Differences of poses, the headings' without jumps."""
    difference = poses - first
    difference[..., 2] = (difference[..., 2] + np.pi) % (2.0 * np.pi) - np.pi
    return difference


def spread_scans(scans: ScanSeries, period: float) -> ScanSeries:
    """Scans that are at least `period` s apart."""
    chosen: list[int] = []
    for i, at in enumerate(scans.time.tolist()):
        if not chosen or at >= scans.time[chosen[-1]] + period - 1e-6:
            chosen.append(i)

    return scans.chosen(np.array(chosen, np.int64))


def matched_truth(log: Log, matcher: Matcher, start: F8) -> tuple[Series, float]:
    """True poses of the robot at its scans, by matching these one after the other
    against the map, with odometry in between.

    Parameters
    ----------
    log : Log
        With scans and odometry.
    matcher : Matcher
        Of the map.
    start : (3,) array
        Where the robot was at the begin of the log, roughly: m, m, rad.

    Returns
    -------
    Series, float
        The poses, and the share of the ranges that the map does not explain.

    Raises
    ------
    CalibrationError
        It has no scans.
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
