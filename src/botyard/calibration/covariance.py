"""Covariance of odometry's deviations over segments.

The covariance is a sum of known banded matrices whose factors are estimated by maximum
likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from botyard.calibration.planar import F8
from botyard.calibration.segments import Pieces, chain

NO_MOTION: Final = 1e-12
MIN_VARIANCE: Final = 1e-14
PRIOR_FOLDS: Final = 4.0
"""Standard deviation of the prior of a variance, in units of its logarithm.

The prior is weak: it only keeps undetermined variances from diverging.
"""
MAX_NEWTON_STEPS: Final = 30


class Covariance:
    """Covariance of the segments' deviations: known matrices with unknown factors.

    Each matrix is stored as lower bands, see `bands_of`.
    """

    def __init__(
        self,
        logs: Sequence[tuple[Pieces, F8, F8, F8]],
        step: float | None,
        sideways: bool = False,
    ) -> None:
        """Build the bands of all matrices.

        Parameters
        ----------
        logs : sequence of (Pieces, twists, headings, segments)
            Of each log: pieces, their corrected twists, true headings at the knots, and
            true displacements of the segments.
        step, sideways
            See `bands_of`.
        """
        self.bands = np.concatenate(
            [bands_of(*one, step, sideways) for one in logs], axis=2
        )

    def only(self, parts: Sequence[int]) -> Covariance:
        """Return a covariance that consists of only the chosen matrices."""
        # `__init__` would compute all bands again.
        found = Covariance.__new__(Covariance)
        found.bands = self.bands[list(parts)]
        return found

    def lower(self, variances: F8) -> F8:
        """Return the bands of the Cholesky factor of the covariance.

        Parameters
        ----------
        variances : (n,) float64
            Factor of each matrix.

        Returns
        -------
        (6, 3 k) float64
            Lower bands of the factor, for `whitened`.
        """
        from scipy.linalg import cholesky_banded

        whole = np.tensordot(variances, self.bands, 1)
        # A small variance on the diagonal keeps the matrix positive definite.
        whole[0] += MIN_VARIANCE
        found: F8 = cholesky_banded(whole, lower=True)
        return found

    def fit(self, deviations: F8, usual: F8, first: F8) -> tuple[F8, F8]:
        """Return the variances that maximise the likelihood of the deviations.

        Parameters
        ----------
        deviations : (3 k,) array
            Deviations of all segments: x and y, m, heading, rad.
        usual : (n,) array
            Centres of the priors of the variances (`PRIOR_FOLDS`).
        first : (n,) array
            Start of the search.

        Returns
        -------
        variances : (n,) float64
            Variances, which are positive.
        covariance : (n, n) float64
            Covariance of their logarithms.
        """
        # Logarithms keep variances positive.
        guess = np.log(usual)

        def cost(logs: F8) -> float:
            lower = self.lower(np.exp(logs))
            white = whitened(lower, deviations)
            away = (logs - guess) / PRIOR_FOLDS
            return float(
                np.log(lower[0]).sum() + 0.5 * white @ white + 0.5 * away @ away
            )

        logs, hessian = _minimise(
            cost, np.log(first), (math.log(MIN_VARIANCE), math.log(10.0))
        )
        return np.exp(logs), np.linalg.pinv(hessian)


def _minimise(
    function: Callable[[F8], float], at: F8, bounds: tuple[float, float]
) -> tuple[F8, Any]:
    """Minimise a smooth function of few variables by Newton's method.

    Parameters
    ----------
    function : callable
        Returns the cost for an array (n,).
    at : (n,) float64
        Start of the search.
    bounds : (float, float)
        Bounds of all variables.

    Returns
    -------
    (n,) float64, (n, n) float64
        The minimum, and the Hessian at it.
    """
    damping, value = 1.0, function(at)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = _derivatives(function, at)
        # Absolute eigenvalues make the step descend even if the Hessian is indefinite.
        # Damping is Levenberg's.
        sizes, vectors = np.linalg.eigh(hessian)
        while True:
            step = vectors @ ((vectors.T @ -gradient) / (np.abs(sizes) + damping))
            # The damping grows until the step improves the cost, or no step does.
            there = np.clip(at + step, *bounds)
            then = function(there)
            if then <= value or damping > 1e8:
                break
            damping *= 8.0

        moved = float(np.abs(there - at).max())
        if then <= value:
            at, value = there, then
        damping = max(damping / 8.0, 1e-6)
        if moved < 1e-3:
            break

    return at, _derivatives(function, at)[1]


def _derivatives(
    function: Callable[[F8], float], at: F8, step: float = 0.02
) -> tuple[Any, Any]:
    """Return gradient and Hessian of a function by finite differences."""
    n = len(at)
    unit = np.eye(n) * step
    up, down = (
        np.array([function(at + one) for one in unit]),
        np.array([function(at - one) for one in unit]),
    )
    middle = function(at)
    hessian = np.diag(up + down - 2.0 * middle)
    for i in range(n):
        for j in range(i):
            # f(+, +) + f(−, −) minus the single steps: a mixed difference with two more
            # values.
            both = function(at + unit[i] + unit[j]) + function(at - unit[i] - unit[j])
            hessian[i, j] = hessian[j, i] = 0.5 * (
                both - up[i] - up[j] - down[i] - down[j] + 2.0 * middle
            )

    return (up - down) / (2.0 * step), hessian / (step * step)


def whitened(lower: F8, deviations: F8) -> F8:
    """Return deviations in units of their standard deviations.

    Parameters
    ----------
    lower : (6, 3 k) float64
        Bands of the Cholesky factor of the covariance, from `Covariance.lower`.
    deviations : (3 k,) float64
        Deviations of all segments.

    Returns
    -------
    (3 k,) float64
        Uncorrelated numbers of variance 1, if the covariance is right.
    """
    from scipy.linalg import solve_banded

    found: F8 = solve_banded((len(lower) - 1, 0), lower, deviations)
    return found


def bands_of(
    pieces: Pieces,
    twists: F8,
    heading: F8,
    true_ways: F8,
    step: float | None,
    sideways: bool,
) -> F8:
    """Return lower bands of the covariance of odometry and of true poses.

    With a step, odometry has two random errors, ε forward and ε turning, and of drives that move
    sideways a third one to the left, drawn in each step (n = 4 or 5). Without one they are
    α1 … α4, variances per metre and radian (n = 6), see `botyard.model.robot.OdometryDrift`. The
    last two matrices are the errors of true positions and headings.

    Parameters
    ----------
    pieces : Pieces
        Odometry of p pieces in k segments.
    twists : (p, 3) float64
        Corrected body twists of the pieces: m, m, rad.
    heading : (k + 1,) float64
        True headings at the ends of segments, rad.
    true_ways : (k, 3) float64
        True displacements of the segments, each in the frame of its start: m, m, rad.
    step : float or None
        Step in which errors are drawn, s; None: errors per metre and radian.
    sideways : bool
        Whether the drive moves sideways: then errors of the distance point along the motion.

    Returns
    -------
    (n, 6, 3 k) float64
        Element j of band i of each matrix is its entry (j + i, j).
    """
    starts, middles, ends = chain(pieces, twists)
    k = len(ends)
    # An error of the heading in a piece rotates the rest of its segment.
    rest = ends[pieces.way, :2] - starts[:, :2]
    c, s, none = np.cos(middles), np.sin(middles), np.zeros(len(middles))
    forward, left = np.stack([c, s, none], axis=1), np.stack([-s, c, none], axis=1)
    turning = np.stack([-rest[:, 1], rest[:, 0], np.ones(len(middles))], axis=1)
    far, aside, turn_by = np.abs(twists).T
    if step is None:
        if sideways:
            far = np.hypot(far, aside)
            # A robot that turns in place has its errors forward.
            x, y = np.divide(
                twists[:, :2].T, far, out=np.stack([none + 1.0, none]), where=far > 0.0
            )
            forward = x[:, None] * forward + y[:, None] * left
        parts = [(turning, turn_by), (turning, far), (forward, far), (forward, turn_by)]
    else:
        # ε is constant for a step. The weight keeps the variance per second for pieces
        # of another duration.
        weight = step / np.maximum(pieces.duration, NO_MOTION)
        parts = [(forward, weight * far * far), (turning, weight * turn_by * turn_by)]
        if sideways:
            parts.append((left, weight * aside * aside))

    count = len(parts) + 2
    blocks = np.zeros((count, k, 3, 3))
    for n, (one, weight) in enumerate(parts):
        outer = one[:, :, None] * one[:, None, :] * weight[:, None, None]
        blocks[n] = np.add.reduceat(outer, pieces.first)

    # Covariance between a segment and the previous one.
    below = np.zeros((count, k, 3, 3))
    c, s = np.cos(heading[:-1]), np.sin(heading[:-1])
    turn = np.zeros((k, 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = c
    turn[:, 0, 1], turn[:, 1, 0] = s, -s
    blocks[-2] = 2.0 * np.eye(3) * np.array([1.0, 1.0, 0.0])
    # The end of a segment is the start of the next. In the frame of the next one the
    # covariance is −I; in the frame of the previous one it is rotated.
    before = turn[1:] @ np.swapaxes(turn[:-1], 1, 2)
    below[-2, 1:] = -before
    # An error of the heading at the start rotates the whole segment, (x, y) → (y, −x).
    # At the end it changes only the heading.
    begin = np.stack([true_ways[:, 1], -true_ways[:, 0], -np.ones(k)], axis=1)
    end = np.array([0.0, 0.0, 1.0])
    blocks[-1] = begin[:, :, None] * begin[:, None, :] + np.outer(end, end)
    below[-1, 1:] = begin[1:, :, None] * end[None, None, :]
    bands = np.zeros((count, 6, 3 * k))
    for row in range(3):
        for column in range(3):
            if row >= column:
                bands[:, row - column, column::3] = blocks[:, :, row, column]
            # Row 3 i + row, column 3 (i − 1) + column.
            bands[:, 3 + row - column, column : 3 * (k - 1) : 3] = below[
                :, 1:, row, column
            ]

    return bands


__all__ = ["Covariance", "bands_of", "whitened"]
