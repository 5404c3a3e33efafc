"""Calibration of a laser's ranges: bias, noise of ranges and of bearings.

Noise of ranges has a constant part and a part that grows with the range.

Scans are compared with the ranges that the map predicts at the true poses. The pose of
each scan is fitted again, with three parameters that absorb errors of the true poses,
of the mount and of the map's frame. Everything that these could explain is projected
out of the residuals.

The parameters are those that botyard's lasers have: a uniform error of each range
(``range_noise``) and of each bearing (``angle_noise``), and a Gaussian error in
proportion to the range (``range_share``). The device ``normal_errors`` has the bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from botyard.calibration.fitting import Value, estimated, untold
from botyard.calibration.log import Log, ScanSeries, Series
from botyard.calibration.matching import (
    MAX_UNEXPLAINED,
    MIN_BEAMS,
    UNEXPLAINED_M,
    Matcher,
    spread_scans,
)
from botyard.calibration.planar import F8, compose, inverse
from botyard.model.sensors import LaserSpec
from botyard.studies.statistics import student_quantile

MAX_SCANS: Final = 200
"""Maximum number of scans that are used of each log."""
# Minimum number of scans for a fit.
MIN_SCANS: Final = 8
FINE_SPREADS_M: Final = (0.2, 0.1, 0.05, 0.05)
"""Residual whose weight is one half in each iteration, if the true poses are known, m."""
OUTLIER: Final = 5.0
"""Residuals beyond this many standard deviations are outliers.

Their cause is objects that the map does not have.
"""
MAX_BIAS_DEVIATION_M: Final = 0.02
"""Maximum standard deviation of a bias that counts as determined, m."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeFit:
    """Fitted errors of a laser.

    Attributes
    ----------
    values : tuple of Value
        ``range_bias``, ``range_noise``, ``angle_noise``, ``range_share``.
    unexplained : float
        Fraction of ranges that the map does not explain.
    deviation : float
        Standard deviation of the residuals, m.
    scans, ranges, outliers : int
        Numbers of scans, of ranges, and of excluded ranges.
    residuals : (k,) array
        A selection of residuals for a histogram, m.
    """

    values: tuple[Value, ...]
    unexplained: float
    deviation: float
    scans: int
    ranges: int
    outliers: int
    residuals: F8

    @property
    def fits_map(self) -> bool:
        """Whether the map matches the logs."""
        return self.unexplained <= MAX_UNEXPLAINED

    def value(self, name: str) -> Value:
        """Return a fitted value by its name."""
        return next(one for one in self.values if one.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedScans:
    """Scans of a log with the pose of the laser at each scan.

    Attributes
    ----------
    matcher : Matcher
        Matcher of the map.
    scans : ScanSeries
        At most `MAX_SCANS` scans.
    poses : (n, 3) array
        Poses of the laser, fitted to the map from the true poses: m, rad.
    """

    matcher: Matcher
    scans: ScanSeries
    poses: F8


def _thinned(log: Log, truth: Series, offset: float) -> ScanSeries | None:
    assert log.scans is not None
    begin, end = float(truth.time[0]) + offset, float(truth.time[-1]) + offset
    scans = log.scans.chosen((log.scans.time >= begin) & (log.scans.time <= end))
    if not len(scans):
        return None
    return spread_scans(scans, float(scans.time[-1] - scans.time[0]) / MAX_SCANS)


def placed_scans(
    logs: Sequence[Log],
    truths: Sequence[Series],
    offsets: Sequence[float],
    markers: F8,
    matchers: Sequence[Matcher | None],
) -> list[PlacedScans]:
    """Return the scans of several logs with the pose of the laser at each scan.

    Logs without scans during the time of the true poses are left out.

    Parameters
    ----------
    logs, truths, offsets : sequences
        As for `botyard.calibration.odometry.fit_odometry`. True poses are approximately
        in the map's frame.
    markers : (3,) array
        Pose of the measured markers in the robot's frame, for logs without poses of its
        origin (`Log.has_true_origin`).
    matchers : sequence of Matcher or None
        Matcher of the map for each log.
    """
    found = []
    for log, truth, offset, matcher in zip(
        logs, truths, offsets, matchers, strict=True
    ):
        if log.scans is None or matcher is None or not len(truth):
            continue
        scans = _thinned(log, truth, offset)
        if scans is None:
            continue
        # `offset` converts the truth's times into the log's.
        robot = truth.at(scans.time - offset)
        if not log.has_true_origin:
            robot = compose(robot, inverse(markers))
        poses = matcher.match(
            matcher.laser_poses(robot),
            scans.ranges,
            has_prior=False,
            spreads=FINE_SPREADS_M,
        )
        found.append(PlacedScans(matcher, scans, poses))

    return found


def without_bias(placed: Sequence[PlacedScans], bias: float) -> list[PlacedScans]:
    """Return scans without a bias, and poses fitted again to the corrected ranges.

    A scan sees only one side of the robot, so a bias would shift the poses.

    Parameters
    ----------
    placed : sequence of PlacedScans
        Scans with poses.
    bias : float
        Mean error of ranges, m; positive: too long.
    """
    found = []
    for one in placed:
        ranges = one.scans.ranges - bias
        poses = one.matcher.match(
            one.poses, ranges, has_prior=False, spreads=FINE_SPREADS_M[-2:]
        )
        found.append(replace(one, scans=replace(one.scans, ranges=ranges), poses=poses))

    return found


def fit_ranges(placed: Sequence[PlacedScans]) -> RangeFit | None:
    """Fit the errors of the laser's ranges.

    Parameters
    ----------
    placed : sequence of PlacedScans
        Scans of all logs with poses, from `placed_scans`.

    Returns
    -------
    RangeFit or None
        None for fewer than `MIN_SCANS` scans.
    """
    sums = _ResidualSums()
    for one in placed:
        sums.add(one.matcher, one.poses, one.scans.ranges)
    return None if sums.scans < MIN_SCANS else sums.fit(placed[0].matcher.laser)


class _ResidualSums:
    """Sums over the residuals of scans, from which the laser's errors are fitted."""

    def __init__(self) -> None:
        self.scans = 0
        self._unexplained: list[tuple[float, int]] = []
        # Residuals, gradients, ranges and slopes of each scan.
        self._rows: list[tuple[F8, F8, F8, F8]] = []
        self.outliers = 0

    def add(self, matcher: Matcher, poses: F8, measured: F8) -> None:
        """Add the residuals of the scans of one log.

        Parameters
        ----------
        matcher : Matcher
            Matcher of the map.
        poses : (n, 3) float64
            Poses of the laser in the map: m, m, rad.
        measured : (n, b) float64
            Measured ranges, m; NaN for none.
        """
        self._unexplained.append((matcher.unexplained(poses, measured), len(poses)))
        expected, usable = matcher.expect(poses), matcher.usable(measured)
        where = usable & expected.good
        r = np.where(where, measured - expected.ranges, 0.0)
        near = r[where & (np.abs(r) < UNEXPLAINED_M)]
        # The median absolute deviation ignores objects that the map does not have.
        spread = (
            1.4826 * float(np.median(np.abs(near - np.median(near))))
            if len(near)
            else 0.0
        )
        inside = where & (np.abs(r) <= max(OUTLIER * spread, 1e-3))
        self.outliers += int(where.sum() - inside.sum())
        for i in range(len(poses)):
            some = inside[i]
            if some.sum() < MIN_BEAMS:
                continue
            g = expected.gradients[i, some]
            self._rows.append((r[i, some], g, expected.ranges[i, some], g[:, 2]))
            self.scans += 1

    def fit(self, laser: LaserSpec) -> RangeFit:
        """Return the four fitted values of the laser's errors."""
        bias, spread = self._bias()
        weights = [np.ones(len(row[0])) for row in self._rows]
        # Weights depend on the noise, and the estimate of the noise on the weights.
        for _ in range(3):
            coefficients, covariance = self._noise(bias, weights)
            weights = [
                1.0 / np.maximum(self._features(row) @ coefficients, 1e-10)
                for row in self._rows
            ]

        count = sum(len(row[0]) for row in self._rows)
        left = np.concatenate([row[0] - bias for row in self._rows])
        # Weight the values of each log by its number of scans.
        share = sum(a * n for a, n in self._unexplained) / sum(
            n for _, n in self._unexplained
        )
        return RangeFit(
            values=(
                self._bias_value(bias, spread),
                *_noise_values(coefficients, covariance, self.scans, laser),
            ),
            unexplained=share,
            deviation=float(np.sqrt(np.mean(left * left))),
            scans=self.scans,
            ranges=count,
            outliers=self.outliers,
            residuals=left[:: max(1, len(left) // 20_000)],
        )

    def _bias_value(self, bias: float, spread: float) -> Value:
        about = "mean error of ranges: normal_errors.range_bias"
        if spread > MAX_BIAS_DEVIATION_M:
            return untold("range_bias", "m", about, 0.0)
        return estimated("range_bias", "m", about, bias, spread, self.scans - 1, 0.0)

    def _bias(self) -> tuple[float, float]:
        """Return the mean error of ranges and its standard deviation.

        The part that the pose of each scan can explain is removed. Scans are
        independent.
        """
        upper, lower = np.zeros(len(self._rows)), np.zeros(len(self._rows))
        for i, (r, g, _, _) in enumerate(self._rows):
            # The pose absorbs most of a bias: only the component that no pose can
            # produce counts.
            rest = _projected(g, np.ones(len(r)))
            upper[i], lower[i] = rest @ r, rest @ rest

        bias = float(upper.sum() / max(lower.sum(), 1e-300))
        errors = upper - bias * lower
        n = len(self._rows)
        return bias, math.sqrt(float(errors @ errors) * n / max(1, n - 1)) / max(
            float(lower.sum()), 1e-300
        )

    @staticmethod
    def _features(row: tuple[F8, F8, F8, F8]) -> F8:
        """Return the terms whose weighted sum is the variance of a range.

        The terms are a constant, the square of the slope and the square of the range.
        """
        return np.stack([np.ones(len(row[0])), row[3] ** 2, row[2] ** 2], axis=1)

    def _noise(self, bias: float, weights: list[F8]) -> tuple[F8, F8]:
        """Return the coefficients of the variance's terms (`_features`) and their covariance.

        Scans are independent. Coefficients can be negative. Removing the part that a pose explains
        leaves residuals whose squares have the mean Σ M_ij² v_j.
        """
        normal, rights, squares = np.zeros((3, 3)), np.zeros((len(self._rows), 3)), []
        for i, (row, weight) in enumerate(zip(self._rows, weights, strict=True)):
            r, g = row[0] - bias, row[1]
            q, _ = np.linalg.qr(g)
            # Projector onto the complement of the pose's derivatives.
            m = np.eye(len(r)) - q @ q.T
            features = (m * m) @ self._features(row)
            scale = weight * weight
            normal += features.T @ (features * scale[:, None])
            rights[i] = features.T @ (scale * (m @ r) ** 2)
            squares.append(features.T @ (features * scale[:, None]))

        size = np.sqrt(np.diag(normal))
        # Scale the matrix to unit diagonal, because the terms differ by orders of
        # magnitude.
        back = np.linalg.inv(
            normal / np.outer(size, size) + 1e-12 * np.eye(3)
        ) / np.outer(size, size)
        coefficients = back @ rights.sum(axis=0)
        errors = np.stack(
            [
                right - own @ coefficients
                for right, own in zip(rights, squares, strict=True)
            ]
        )
        return coefficients, back @ (errors.T @ errors) @ back


def _projected(g: F8, v: F8) -> F8:
    """Return the component of a vector orthogonal to the columns of a matrix.

    Parameters
    ----------
    g : (n, 3) float64
        Matrix of full rank: derivatives of ranges by the components of a pose.
    v : (n,) float64
        Vector.
    """
    q, _ = np.linalg.qr(g)
    found: F8 = v - q @ (q.T @ v)
    return found


def _noise_values(
    coefficients: F8, covariance: F8, scans: int, laser: LaserSpec
) -> list[Value]:
    """Return the laser's noise parameters that follow from the fitted variance of a range.

    A standard deviation is the root of a variance. The half-width of a uniform error is
    √3 times its standard deviation.

    Parameters
    ----------
    coefficients : (3,) float64
        Constant part of a range's variance, m², and factors of the squares of the slope
        and of the range.
    covariance : (3, 3) float64
        Covariance of the coefficients.
    scans : int
        Number of scans, which are independent.
    laser : LaserSpec
        Laser of the model before the fit.
    """
    uniform = math.sqrt(3.0)
    rows = (
        (
            "range_noise",
            "m",
            "half-width of the uniform error of each range: lasers[0].range_noise",
            uniform,
            laser.range_noise,
        ),
        (
            "angle_noise",
            "rad",
            "half-width of the uniform error of each bearing: lasers[0].angle_noise (there in °)",
            uniform,
            laser.angle_noise,
        ),
        (
            "range_share",
            "",
            "part of the standard deviation that grows with the range: lasers[0].range_share",
            1.0,
            laser.range_share,
        ),
    )
    found = []
    for k, (name, unit, about, factor, before) in enumerate(rows):
        half = student_quantile(max(1, scans - 1)) * math.sqrt(
            max(0.0, float(covariance[k, k]))
        )
        middle = float(coefficients[k])
        value, low, high = (
            factor * math.sqrt(max(0.0, one))
            for one in (middle, middle - half, middle + half)
        )
        found.append(Value(name, unit, about, value, low, high, before))

    return found


__all__ = ["PlacedScans", "RangeFit", "fit_ranges", "placed_scans", "without_bias"]
