"""Calibration of odometry: wheel scales, wheel separation and random errors.

The displacement between two true poses (a segment) is compared with odometry's
displacement. Its deviations have three sources: the systematic errors, which are the
unknowns; the random errors of odometry, which accumulate along the segment; and the
errors of the measured poses, which neighbouring segments share. The random errors and
the errors of poses form the covariance of all deviations (block tridiagonal), whose
parameters are estimated by maximum likelihood. With that covariance, the systematic
errors are a generalised least-squares fit.

The systematic part of two wheels is UMBmark's (J. Borenstein and L. Feng, "Measurement
and correction of systematic odometry errors in mobile robots", IEEE Trans. Robotics and
Automation 12 (6), 1996): unequal wheels E_d = D_R / D_L, and the separation E_b =
b_actual / b_nominal. Skid steering has two sides instead of two wheels, and an effective
separation, because its wheels scrub. Drives that move to all sides have a factor for each
axis, and Mecanum drives also the diameters of their four wheels.

The random part is one of the two models of botyard's odometry
(`botyard.engine.kernels.odometry`): variances α1 … α4 per metre and radian; or the
original model, which multiplies each axis by a factor 1 + ε in each step, with ε
uniform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from botyard.calibration.covariance import Covariance, whitened
from botyard.calibration.fitting import Fit, Parameter, Value, least_squares
from botyard.calibration.log import Log, Series
from botyard.calibration.odometryvalues import (
    distance_values,
    step_values,
    systematic_values,
    wheels_of,
)
from botyard.calibration.planar import F8, between, compose, inverse, wrap
from botyard.calibration.segments import (
    Correction,
    Pieces,
    Segments,
    by_axes,
    by_steering,
    by_wheels,
    chain,
    corrected,
    cut,
    ways_of,
)
from botyard.errors import CalibrationError
from botyard.model.kinematics import Kinematics
from botyard.model.robot import RobotSpec

MIN_WAYS: Final = 3
"""Minimum number of segments of all logs together."""
OUTLIER: Final = 8.0
"""Ratio of deviation to usual deviation above which a true pose is an outlier.

Both segments that meet at the pose must exceed the ratio.
"""
MAX_OUTLIER_ROUNDS: Final = 5
SPARSE_S: Final = 5.0
"""Mean time between true poses, s, above which each pose counts as a single measurement.

An example is a robot that returns to known places. The clock of single measurements
counts as exact.
"""
MAX_VARIANCE_SPREAD: Final = 0.35
"""Largest standard deviation of a random error's logarithm at which it counts as determined."""
USUAL_BY_STEP: Final = (1e-4, 1e-4, 1e-4)
"""Prior variances of the error ε in each step, forward, turning and to the left (1 %)."""
USUAL_BY_DISTANCE: Final = (1e-4, 1e-5, 1e-5, 1e-6)
"""Prior variances α1 … α4: rad² per rad, rad² per m, m² per m, m² per rad."""
USUAL_MEASURED: Final = (4e-6, 4e-6)
"""Prior variances of measured positions, m² (2 mm), and headings, rad² (2 mrad)."""
# Ratio of displacements above which odometry and truth must have different units.
OTHER_UNITS: Final = 30.0
LEAST_WAY_M: Final = 0.1
"""Length below which displacements are too short for a comparison of units, m."""
ROUNDS: Final = 3
"""Number of rounds; each estimates first the systematic errors, then the covariance."""


@dataclass(frozen=True, slots=True, eq=False)
class OdometryFit:
    """Fitted odometry.

    Attributes
    ----------
    fit : Fit
        Fit of ``scale``, ``skew``, ``separation`` (as a factor), and the pose of the
        markers. A drive with a steered axle has ``offset`` and ``wheelbase`` (as a
        factor) instead of skew and separation, and a drive that moves to all sides
        ``lateral``, ``turn``, and with Mecanum wheels ``skew``, ``axles`` and
        ``diagonals``.
    values : tuple of Value
        Values for reports: systematic and random part, and the robot's parameters.
    corrected : Correction
        Correction of odometry's displacements.
    rms : (2,) array
        RMS deviation of the segments with the fitted values, m and rad.
    ways : int
        Number of segments.
    outliers : int
        Number of true poses that were excluded.
    """

    fit: Fit
    values: tuple[Value, ...]
    corrected: Correction
    rms: F8
    ways: int
    outliers: int

    def value(self, name: str) -> Value:
        """Return a fitted value by its name."""
        return next(one for one in self.values if one.name == name)


# -- the fit


_SCALE: Final = Parameter(
    "scale", "", "mean factor of the travel of all wheels", 1.0, 0.05, 0.3, 3.0
)
_OF_WHEELS: Final = (
    _SCALE,
    Parameter(
        "skew",
        "",
        "half the difference between the factors of right and left wheel",
        0.0,
        0.02,
        -0.5,
        0.5,
    ),
    Parameter(
        "separation",
        "",
        "wheel separation as a multiple of the nominal one",
        1.0,
        0.1,
        0.2,
        5.0,
    ),
)
_OF_STEERING: Final = (
    _SCALE,
    Parameter(
        "offset", "rad", "true steering angle minus measured one", 0.0, 0.02, -0.5, 0.5
    ),
    Parameter(
        "wheelbase",
        "",
        "wheelbase as a multiple of the nominal one",
        1.0,
        0.1,
        0.2,
        5.0,
    ),
)
_OF_AXES: Final = (
    _SCALE,
    Parameter("lateral", "", "factor of distances to the left", 1.0, 0.1, 0.3, 3.0),
    Parameter("turn", "", "factor of turns", 1.0, 0.1, 0.2, 5.0),
)
_OF_ROLLERS: Final = tuple(
    Parameter(
        name, "", f"half the relative difference of {pairs}", 0.0, 0.02, -0.15, 0.15
    )
    for name, pairs in (
        ("skew", "right and left wheels"),
        ("axles", "front and rear wheels"),
        ("diagonals", "wheels on one diagonal and on the other"),
    )
)
# Callers read the pose of the markers as values 3 to 5.
_MARKERS: Final = (
    *(
        Parameter(
            f"markers {axis}",
            "m",
            "position of the measured markers in the robot's frame",
            0.0,
            0.1,
            -2.0,
            2.0,
        )
        for axis in "xy"
    ),
    Parameter(
        "markers heading",
        "rad",
        "heading of the measured markers in the robot's frame",
        0.0,
        0.1,
        -4.0,
        4.0,
    ),
)


def _of_drive(kinematics: Kinematics) -> tuple[Parameter, ...]:
    """Return the three parameters of the systematic errors of a drive."""
    if kinematics.steers:
        return _OF_STEERING
    return _OF_AXES if kinematics.moves_sideways else _OF_WHEELS


class _Problem:
    """Differences between the segments by odometry and the true segments, of all logs."""

    def __init__(
        self,
        ways: Sequence[Segments],
        offsets: Sequence[float],
        clocks: Sequence[bool],
        kinematics: Kinematics,
    ) -> None:
        self.ways, self._offsets, self._kinematics = (
            list(ways),
            list(offsets),
            kinematics,
        )
        self._modes = _OF_ROLLERS if kinematics.counts_sideways else ()
        self.parameters = [
            *_of_drive(kinematics),
            *_MARKERS,
            *self._modes,
            *(
                Parameter(
                    f"clock {i + 1}",
                    "s",
                    f"offset of the truth's clock in log {i + 1}, added to its times",
                    0.0,
                    0.1,
                    -1.0,
                    1.0,
                )
                for i, fits_clock in enumerate(clocks)
                if fits_clock
            ),
        ]
        self._clock = [
            next(
                (
                    i
                    for i, one in enumerate(self.parameters)
                    if one.name == f"clock {n + 1}"
                ),
                None,
            )
            for n in range(len(ways))
        ]

    def correction(self, values: F8) -> Correction:
        """Return the correction of odometry for given parameters."""
        scale, second, third = values[:3].tolist()
        kinematics = self._kinematics
        steering, wheels = kinematics.steering, kinematics.wheels
        if steering is not None:
            return by_steering(scale, second, third, steering.wheelbase)
        if kinematics.moves_sideways:
            modes = values[6 : 6 + len(self._modes)].tolist()
            return by_axes((scale, second, third), wheels_of(*modes), kinematics)
        slide = 0.0 if wheels is None else wheels.slide
        return by_wheels(scale, second, third, 2.0 * kinematics.lever, slide)

    def pieces(self, values: F8) -> list[Pieces]:
        """Return the odometry of all logs, cut into pieces at the times of the true poses."""
        shifts = [0.0 if i is None else float(values[i]) for i in self._clock]
        return [
            cut(one, base + shift)
            for one, base, shift in zip(self.ways, self._offsets, shifts, strict=True)
        ]

    def parts(self, values: F8) -> list[tuple[Pieces, F8, F8, F8]]:
        """Return pieces, corrected twists, true headings and true segments of each log.

        Headings are at the knots.
        """
        correction, found = self.correction(values), []
        for one, pieces in zip(self.ways, self.pieces(values), strict=True):
            # The markers are measured, but odometry describes the robot's centre.
            robot = compose(one.truth, inverse(values[3:6]))
            found.append(
                (
                    pieces,
                    corrected(pieces.twists, correction),
                    robot[:, 2],
                    between(robot[:-1], robot[1:]),
                )
            )

        return found

    def deviations(self, values: F8) -> F8:
        """Return the deviations of all segments for given parameters.

        Parameters
        ----------
        values : (p,) float64
            Values of `parameters`.

        Returns
        -------
        (3 k,) float64
            True minus odometry's displacement of each segment: x and y, m, heading,
            rad.
        """
        rows = []
        for pieces, twists, _, true_ways in self.parts(values):
            difference = true_ways - chain(pieces, twists)[2]
            difference[:, 2] = wrap(difference[:, 2])
            rows.append(difference)

        return np.concatenate(rows).reshape(-1)

    def drop_outliers(self, values: F8) -> int:
        """Exclude true poses whose two segments deviate far more than usual.

        Parameters
        ----------
        values : (p,) float64
            Values of `parameters`.

        Returns
        -------
        int
            Number of excluded poses.
        """
        dropped = 0
        deviations, at = self.deviations(values).reshape(-1, 3), 0
        # The median keeps the outliers from raising the threshold.
        usual = 1.4826 * np.median(np.abs(deviations), axis=0) + 1e-6
        for n, one in enumerate(self.ways):
            own = deviations[at : at + len(one.knots) - 1] / usual
            at += len(one.knots) - 1
            size = np.abs(own).max(axis=1)
            keep = np.ones(len(one.knots), bool)
            worst = [
                i for i in range(1, len(own)) if min(size[i - 1], size[i]) > OUTLIER
            ]
            # Exclude only the worst of neighbouring outliers: a wrong pose also spoils
            # its neighbours' segments.
            for i in worst:
                if keep[i - 1] and size[i - 1] + size[i] >= max(
                    size[j - 1] + size[j] for j in worst if abs(j - i) <= 1
                ):
                    keep[i] = False

            dropped += int((~keep).sum())
            self.ways[n] = one._replace(knots=one.knots[keep], truth=one.truth[keep])

        return dropped


def fit_odometry(
    logs: Sequence[Log],
    truths: Sequence[Series],
    offsets: Sequence[float],
    spec: RobotSpec,
    step: float | None,
) -> OdometryFit:
    """Fit the odometry of all logs together.

    Parameters
    ----------
    logs : sequence of Log
        Logs with odometry.
    truths : sequence of Series
        True poses of each log, with their own clocks.
    offsets : sequence of float
        Approximate offsets from the truths' clocks to the logs', s. The fit refines
        them, unless the clock is exact or the poses are single measurements.
    spec : RobotSpec
        The robot, for its nominal wheel separation or wheelbase.
    step : float or None
        None for random errors per metre and radian. Otherwise the original model, for
        simulations with this step, s.

    Raises
    ------
    CalibrationError
        There are too few true poses.
    """
    ways = [
        ways_of(log, truth, offset)
        for log, truth, offset in zip(logs, truths, offsets, strict=True)
    ]
    clocks = [
        not log.has_exact_clock
        and (one.knots[-1] - one.knots[0]) / len(one.knots) < SPARSE_S
        for log, one in zip(logs, ways, strict=True)
    ]
    count = sum(len(one.knots) - 1 for one in ways)
    if count < MIN_WAYS:
        raise CalibrationError(
            f"expected at least {MIN_WAYS} segments between true poses, found {count}"
        )

    # Check the units before the fit, which would otherwise find absurd scales.
    for log, one, offset in zip(logs, ways, offsets, strict=True):
        _check_scale(log, one, offset)
    problem = _Problem(ways, offsets, clocks, spec.kinematics)
    values = np.array([one.start for one in problem.parameters])
    sideways = spec.kinematics.moves_sideways
    # The third error of a step is the one to the left.
    by_step = USUAL_BY_STEP[: 3 if sideways else 2]
    usual = np.array(
        (*(USUAL_BY_DISTANCE if step is None else by_step), *USUAL_MEASURED)
    )
    variances, outliers = usual, 0
    # Each round drops the worst of neighbouring poses, so several rounds may be needed.
    for _ in range(MAX_OUTLIER_ROUNDS):
        dropped = problem.drop_outliers(values)
        outliers += dropped
        if not dropped:
            break

    # The covariance depends on the systematic part, and the systematic part on the
    # covariance.
    for _ in range(ROUNDS):
        covariance = Covariance(problem.parts(values), step, sideways)
        lower = covariance.lower(variances)
        fit = least_squares(
            problem.parameters,
            lambda v, lower=lower: whitened(lower, problem.deviations(v)),  # type: ignore[misc]
            is_scaled=True,
            loss="huber",
            start=values,
        )
        values = fit.values.copy()
        variances, logs_covariance = covariance.fit(
            problem.deviations(values), usual, variances
        )

    parts = list(range(len(usual)))
    if step is None:
        parts, variances, logs_covariance = _determined_variances(
            covariance, problem.deviations(values), usual, variances, logs_covariance
        )

    lower = covariance.only(parts).lower(variances)
    fit = least_squares(
        problem.parameters,
        lambda v: whitened(lower, problem.deviations(v)),
        is_scaled=True,
        loss="huber",
        start=values,
    )
    rows = problem.deviations(fit.values).reshape(-1, 3)
    rms = np.array(
        [
            math.sqrt(float((rows[:, :2] ** 2).sum(axis=1).mean())),
            math.sqrt(float((rows[:, 2] ** 2).mean())),
        ]
    )
    # The last two variances belong to the true poses, not to the robot.
    determined = dict[int, tuple[float, float]]()
    for k, part in enumerate(parts[:-2]):
        if (spread := _spread(logs_covariance, k)) <= MAX_VARIANCE_SPREAD:
            determined[part] = float(variances[k]), spread

    random = (
        distance_values(fit, determined, spec)
        if step is None
        else step_values(fit, determined, spec)
    )
    has_origin = all(log.has_true_origin for log in logs)
    found = (*systematic_values(fit, spec, has_origin=has_origin), *random)
    return OdometryFit(
        fit, found, problem.correction(fit.values), rms, len(rows), outliers
    )


def _spread(logs_covariance: F8, k: int) -> float:
    """Return the standard deviation of a random error's logarithm.

    The random error is the k-th standard deviation. The result is infinite if the logs do not
    determine it.
    """
    variance = float(logs_covariance[k, k])
    return 0.5 * math.sqrt(variance) if variance > 0.0 else math.inf


def _determined_variances(
    covariance: Covariance,
    deviations: F8,
    usual: F8,
    variances: F8,
    logs_covariance: F8,
) -> tuple[list[int], F8, F8]:
    """Remove undetermined random errors one by one, the most uncertain first.

    Two random errors that always occur together, as of a robot that never turns in
    place, are undetermined. The remaining one absorbs both.

    Parameters
    ----------
    covariance : Covariance
        Covariance with all n matrices.
    deviations : (3 k,) float64
        Deviations of all segments.
    usual : (n,) float64
        Centres of the priors of the variances.
    variances : (n,) float64
        Fitted variances.
    logs_covariance : (n, n) float64
        Covariance of their logarithms.

    Returns
    -------
    list of int, array, array
        The remaining variances (the last two belong to measured poses), their values,
        and the covariance of their logarithms.
    """
    parts = list(range(len(usual)))
    while len(parts) > 2:
        spreads = [_spread(logs_covariance, k) for k in range(len(parts) - 2)]
        worst = max(range(len(spreads)), key=spreads.__getitem__)
        if spreads[worst] <= MAX_VARIANCE_SPREAD:
            break
        # The other variances are fitted again, because they now absorb the errors of
        # the removed variance.
        del parts[worst]
        variances = np.delete(variances, worst)
        variances, logs_covariance = covariance.only(parts).fit(
            deviations, usual[parts], variances
        )

    return parts, variances, logs_covariance


def _check_scale(log: Log, ways: Segments, offset: float) -> None:
    """Raise an error if odometry and true poses have different units.

    The error of a real robot is never that large. The upper quartiles of displacements are
    compared, so that a few wrong poses, and stops, do not matter.
    """
    places = np.stack(
        [np.interp(ways.knots + offset, ways.time, ways.path[:, k]) for k in (0, 1)],
        axis=1,
    )
    gone, true_way = (
        float(np.percentile(np.sqrt((steps * steps).sum(axis=1)), 75.0))
        for steps in (np.diff(places, axis=0), np.diff(ways.truth[:, :2], axis=0))
    )
    least, most = sorted((gone, true_way))
    if most > LEAST_WAY_M and 0.0 < least * OTHER_UNITS < most:
        raise CalibrationError(
            f"{log.source}: expected displacements of about the same length by odometry "
            f"and by the true poses, found {gone:.4g} m and "
            f"{true_way:.4g} m in the same time: their units differ"
        )


__all__ = ["SPARSE_S", "OdometryFit", "fit_odometry"]
