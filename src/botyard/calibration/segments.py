"""Segments between true poses, and odometry's displacements over them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from botyard.calibration.log import Log, Series
from botyard.calibration.planar import (
    F8,
    arc,
    between,
    compose,
    inverse,
    rotate,
    twist_of,
)
from botyard.errors import CalibrationError
from botyard.model.kinematics import Kinematics

MAX_WAYS: Final = 2000
"""Maximum number of segments of a log."""
WAY_S: Final = 1.0
"""Minimum duration of a segment, s; true poses within this time of the last one are skipped."""
LEAST_M: Final = 1e-6
"""Distance in a piece of odometry up to which a car counts as standing, m."""
STRETCH: Final = 10
"""Number of consecutive segments over which errors add up before they are compared."""


class Segments(NamedTuple):
    """Segments between true poses of one log.

    Attributes
    ----------
    knots : (k + 1,) array
        Times of the true poses, s, by the truth's clock.
    truth : (k + 1, 3) array
        Measured poses at these times: m, m, rad.
    time, path : (n,), (n, 3) arrays
        Times of odometry, s, and the cumulative sum of its body twists (m, m, rad).
    """

    knots: F8
    truth: F8
    time: F8
    path: F8


class Pieces(NamedTuple):
    """Odometry cut at the true poses: n twists of constant velocity.

    Attributes
    ----------
    way : (n,) array
        Number of each piece's segment.
    first : (k,) array
        Number of each segment's first piece.
    twists : (n, 3) array
        Body twists, m, m, rad.
    duration : (n,) array
        Durations, s.
    """

    way: Any
    first: Any
    twists: F8
    duration: F8


def ways_of(log: Log, truth: Series, offset: float) -> Segments:
    """Return the segments between the true poses of a log.

    Parameters
    ----------
    log : Log
        A log with odometry.
    truth : Series
        True poses by their own clock.
    offset : float
        Offset from the truth's times to the log's, s.

    Raises
    ------
    CalibrationError
        Fewer than two true poses are within the time of the log.
    """
    begin, end = log.span
    inside = truth.between(begin - offset, end - offset)
    if len(inside) < 2:
        raise CalibrationError(
            f"{log.source}: expected at least 2 true poses within the time of the odometry, "
            f"{begin:.3f} to {end:.3f} s, found {len(inside)}; the true poses are from "
            f"{truth.time[0] + offset:.3f} to {truth.time[-1] + offset:.3f} s"
        )

    # Long logs get longer segments, so that the time of a fit stays bounded.
    period = max(WAY_S, (inside.time[-1] - inside.time[0]) / MAX_WAYS)
    chosen = [0]
    for i, at in enumerate(inside.time.tolist()):
        if at >= inside.time[chosen[-1]] + period - 1e-6:
            chosen.append(i)

    poses = log.odometry.values
    twists = twist_of(between(poses[:-1], poses[1:]))
    path = np.concatenate([np.zeros((1, 3)), np.cumsum(twists, axis=0)])
    return Segments(inside.time[chosen], inside.values[chosen], log.odometry.time, path)


def cut(ways: Segments, offset: float) -> Pieces:
    """Cut odometry at the true poses.

    The number of rows is the same for similar offsets, so that a fit can vary the
    offset.

    Parameters
    ----------
    ways : Segments
        Segments of one log.
    offset : float
        Time to add to the truth's times to get odometry's, s.

    Returns
    -------
    Pieces
        Odometry between successive poses of either kind.
    """
    knots = ways.knots + offset
    inner = ways.time[(ways.time > knots[0]) & (ways.time < knots[-1])]
    grid = np.concatenate([inner, knots])
    is_knot = np.concatenate([np.zeros(len(inner), bool), np.ones(len(knots), bool)])
    # Rows of odometry are first among equal times, so that a knot never precedes its
    # row.
    order = np.argsort(grid, kind="stable")
    grid, is_knot = grid[order], is_knot[order]
    path = np.stack(
        [np.interp(grid, ways.time, ways.path[:, k]) for k in range(3)], axis=1
    )
    first = np.flatnonzero(is_knot)
    way = np.cumsum(is_knot)[:-1] - 1
    return Pieces(way, first[:-1], np.diff(path, axis=0), np.diff(grid))


def chain(pieces: Pieces, twists: F8) -> tuple[F8, F8, F8]:
    """Return poses along the segments by odometry.

    Parameters
    ----------
    pieces : Pieces
        Odometry of n pieces in k segments.
    twists : (n, 3) float64
        Body twists of the pieces, possibly corrected: m, m, rad.

    Returns
    -------
    starts : (n, 3) float64
        Pose before each piece, in the frame of its segment's start: m, m, rad.
    middles : (n,) float64
        Heading at the middle of each piece in that frame, rad.
    ends : (k, 3) float64
        End pose of each segment in that frame: m, m, rad.
    """
    turned = np.cumsum(twists[:, 2])
    before = turned - twists[:, 2]
    # Each segment starts with heading 0.
    heading = before - before[pieces.first][pieces.way]
    steps = rotate(arc(twists), heading)
    places = np.cumsum(steps, axis=0)
    start = places - steps
    base = start[pieces.first]
    ends = np.concatenate(
        [
            np.add.reduceat(steps, pieces.first),
            np.add.reduceat(twists[:, 2:], pieces.first),
        ],
        axis=1,
    )
    return (
        np.concatenate([start - base[pieces.way], heading[:, None]], axis=1),
        heading + 0.5 * twists[:, 2],
        ends,
    )


class Correction(NamedTuple):
    """Correction of odometry's displacements.

    Attributes
    ----------
    matrix : (3, 3) array
        Matrix from odometry's (forward, left, turned) to corrected values.
    tilt : float
        Tangent of the steering offset times the wheelbase, m; 0 for other drives.
    """

    matrix: F8
    tilt: float = 0.0


NO_CORRECTION: Final = Correction(np.eye(3))
"""Correction that leaves odometry unchanged."""


def by_wheels(
    scale: float, skew: float, separation: float, nominal: float, slide: float = 0.0
) -> Correction:
    """Return the correction for two wheels on one axle, or for two sides of wheels.

    Parameters
    ----------
    scale, skew : float
        Mean of the factors of right and left wheel, and half their difference.
    separation : float
        Actual wheel separation as a multiple of the nominal one.
    nominal : float
        Nominal wheel separation, with scrubbing wheels the effective one, m.
    slide : float
        Place of the centre of rotation in front of the origin, m.
    """
    turned = 2.0 * skew / (separation * nominal), 0.0, scale / separation
    return Correction(
        np.array(
            [
                [scale, 0.0, skew * nominal / 2.0],
                # Odometry does not measure that the body slides.
                [-slide * turned[0], scale, -slide * turned[2]],
                turned,
            ]
        )
    )


def by_steering(
    scale: float, offset: float, wheelbase: float, nominal: float
) -> Correction:
    """Return the correction for a steered axle.

    Odometry turns by Δθ = Δx·tan(δ)/L with the measured angle δ. With the true angle
    δ + o the turn is (Δθ + Δx·tan(o)/L) / (1 − L·tan(o)·Δθ/Δx).

    Parameters
    ----------
    scale : float
        Factor of the distance.
    offset : float
        True steering angle minus the measured one, o, rad.
    wheelbase : float
        Actual wheelbase as a multiple of the nominal one.
    nominal : float
        Nominal wheelbase L, m; negative for an axle behind the fixed one.
    """
    slope = math.tan(offset)
    return Correction(
        np.array(
            [
                [scale, 0.0, 0.0],
                [0.0, scale, 0.0],
                [scale * slope / nominal, 0.0, scale / wheelbase],
            ]
        ),
        slope * nominal / wheelbase,
    )


def by_axes(
    scales: tuple[float, float, float],
    wheels: tuple[float, ...] = (),
    kinematics: Kinematics | None = None,
) -> Correction:
    """Return the correction for a drive that moves to all sides.

    Parameters
    ----------
    scales : tuple of float
        Factors of the distances forward and to the left, and of the turn.
    wheels : tuple of float
        Diameter of each Mecanum wheel divided by the mean of all. Other drives have none.
    kinematics : Kinematics, optional
        Kinematics of the Mecanum drive.
    """
    matrix = np.diag(scales)
    if kinematics is not None and kinematics.wheels is not None:
        # Odometry is the least-squares motion for the travel of all wheels.
        measured = replace(
            kinematics.wheels, slip=0.0, errors=tuple(one - 1.0 for one in wheels)
        ).measured(kinematics.lever, has_rollers=True)
        matrix = matrix @ np.linalg.inv(np.reshape(measured, (3, 3)))
    return Correction(matrix)


def corrected(twists: F8, correction: Correction) -> F8:
    """Return body twists of odometry, corrected.

    Parameters
    ----------
    twists : (n, 3) float64
        Body twists: forward and to the left, m, turned, rad.
    correction : Correction
        The correction.
    """
    matrix, tilt = correction
    found = twists @ matrix.T
    if tilt:
        # A car that stands does not turn; its odometry may still have rounding errors.
        bend = np.divide(
            twists[:, 2],
            twists[:, 0],
            out=np.zeros(len(twists)),
            where=np.abs(twists[:, 0]) > LEAST_M,
        )
        found[:, 2] /= 1.0 - tilt * bend
    return found


def true_ways_of(truth: F8, markers: F8) -> F8:
    """Return the robot's displacements from the measured poses of its markers.

    Parameters
    ----------
    truth : (k + 1, 3) float64
        Measured poses: m, m, rad.
    markers : (3,) float64
        Pose of the markers in the robot's frame: m, m, rad.

    Returns
    -------
    (k, 3) float64
        Displacements, each in the frame of its start: m, m, rad.
    """
    robot = compose(truth, inverse(markers))
    return between(robot[:-1], robot[1:])


def end_errors(
    log: Log, truth: Series, offset: float, correction: Correction, markers: F8
) -> tuple[float, float]:
    """Return RMS errors of odometry after `STRETCH` consecutive segments, m and rad.

    Parameters
    ----------
    log, truth, offset
        As for `fit_odometry`.
    correction : Correction
        Correction of odometry.
    markers : (3,) array
        Pose of the measured markers in the robot's frame.

    Raises
    ------
    CalibrationError
        There are fewer than `STRETCH` segments.
    """
    ways = ways_of(log, truth, offset)
    pieces = cut(ways, offset)
    odometry, true_ways = (
        chain(pieces, corrected(pieces.twists, correction))[2],
        true_ways_of(ways.truth, markers),
    )
    errors = []
    for first in range(0, len(odometry) - STRETCH + 1, STRETCH):
        # Both paths start at the same pose, so the difference at the end is odometry's
        # error.
        a = b = np.zeros(3)
        for k in range(first, first + STRETCH):
            a, b = compose(a, odometry[k]), compose(b, true_ways[k])
        errors.append(between(b, a))

    if not errors:
        raise CalibrationError(
            f"{log.source}: expected at least {STRETCH} segments, found {len(odometry)}"
        )

    rows = np.array(errors) ** 2
    return math.sqrt(float((rows[:, 0] + rows[:, 1]).mean())), math.sqrt(
        float(rows[:, 2].mean())
    )


def paths(
    log: Log, truth: Series, offset: float, correction: Correction, markers: F8
) -> tuple[F8, F8, F8]:
    """Return the paths of a robot by its true poses and by odometry.

    Parameters
    ----------
    log, truth, offset
        As for `fit_odometry`.
    correction : Correction
        Correction of odometry.
    markers : (3,) array
        Pose of the measured markers in the robot's frame: m, m, rad.

    Returns
    -------
    tuple of three (k + 1, 2) float64
        Positions at the true poses, m: true ones, by odometry, and by corrected
        odometry. All start at the first true pose.
    """
    ways = ways_of(log, truth, offset)
    pieces = cut(ways, offset)
    robot = compose(ways.truth, inverse(markers))
    lines = []
    for each in (NO_CORRECTION, correction):
        steps = chain(pieces, corrected(pieces.twists, each))[2]
        poses = [robot[0]]
        for one in steps:
            poses.append(compose(poses[-1], one))
        lines.append(np.array(poses)[:, :2])

    return robot[:, :2], lines[0], lines[1]


__all__ = [
    "NO_CORRECTION",
    "Correction",
    "Pieces",
    "Segments",
    "by_axes",
    "by_steering",
    "by_wheels",
    "chain",
    "corrected",
    "cut",
    "end_errors",
    "paths",
    "true_ways_of",
    "ways_of",
]
