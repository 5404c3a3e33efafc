"""Clock offset between a log and measured poses."""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.calibration.log import Series
from botyard.calibration.planar import F8, between, twist_of
from botyard.errors import CalibrationError

GRID_S: Final = 0.05
"""Time step of the comparison, s; the fit of odometry refines the offset further."""
MAX_GRID: Final = 1_000_000
"""Maximum number of samples of a motion on the time grid."""
MIN_OVERLAP_S: Final = 10.0
"""Minimum overlap of two motions for a comparison, s, or half of the shorter motion."""
MIN_LIKENESS: Final = 0.5
"""Minimum correlation at which two motions count as the same motion."""
SMOOTHING_S: Final = 0.3
"""Window over which motion is averaged, s: poses of motion capture are noisy."""


def _motion(poses: Series) -> tuple[F8, float]:
    """Return the motion between poses, sampled at regular times.

    Parameters
    ----------
    poses : Series
        Poses with times.

    Returns
    -------
    rates : (n, 2) float64
        Speed without its sign, and yaw rate, every `GRID_S`. Each column has mean 0 and
        standard deviation 1, or is 0 if it does not vary.
    start : float
        Time of the first row, s.

    Raises
    ------
    CalibrationError
        The poses take no time, or more than the grid covers.
    """
    twists = twist_of(between(poses.values[:-1], poses.values[1:]))
    # The limit bounds the memory for the grid.
    duration = poses.time[-1] - poses.time[0]
    if not 0.0 < duration <= GRID_S * MAX_GRID:
        raise CalibrationError(
            f"expected poses of at most {GRID_S * MAX_GRID:g} s, found {duration:g} s"
        )

    # Differences of the cumulative path are averages over the window, for any rate of
    # poses.
    path = np.concatenate(
        [
            np.zeros((1, 2)),
            np.cumsum(np.stack([twists[:, 0], twists[:, 2]], axis=1), axis=0),
        ]
    )
    grid = np.arange(poses.time[0], poses.time[-1], GRID_S)
    ends, begins = grid + SMOOTHING_S / 2.0, grid - SMOOTHING_S / 2.0
    rates = np.stack(
        [
            np.interp(ends, poses.time, p) - np.interp(begins, poses.time, p)
            for p in path.T
        ],
        axis=1,
    )
    # The sign of the speed is unknown, because markers may be mounted backward.
    rates = np.abs(rates) * np.array([1.0, 0.0]) + rates * np.array([0.0, 1.0])
    rates -= rates.mean(axis=0)
    spread = rates.std(axis=0)
    # Below 1 mm/s and 1 mrad/s, motion is noise, which must not be amplified.
    floor = np.array([1e-3, 1e-3]) * SMOOTHING_S
    return np.where(spread > floor, rates / np.maximum(spread, 1e-12), 0.0), float(
        grid[0]
    )


def clock_offset(odometry: Series, truth: Series) -> float:
    """Return the offset between the clocks of two series of poses.

    The offset maximises the correlation of speeds and yaw rates.

    Parameters
    ----------
    odometry : Series
        Poses by odometry.
    truth : Series
        True poses with times of another clock.

    Returns
    -------
    float
        Offset that converts times of `truth` into times of `odometry` when it is added,
        s.

    Raises
    ------
    CalibrationError
        The motions do not match at any offset, or there is no motion to compare.
    """
    from scipy import signal

    (a, begin_a), (b, begin_b) = _motion(odometry), _motion(truth)
    if not a.any() or not b.any():
        raise CalibrationError(
            "the clocks cannot be compared: the robot moves at a constant velocity, or not at all"
        )

    # Correlate by FFT, because the time of a direct correlation grows with the square
    # of the length.
    likeness = sum(
        signal.correlate(a[:, k], b[:, k], mode="full", method="fft") for k in range(2)
    )
    ones_a, ones_b = (
        (np.abs(one) > 0.0).any(axis=1).astype(np.float64) for one in (a, b)
    )
    common = np.maximum(
        signal.correlate(ones_a, ones_b, mode="full", method="fft"), 1.0
    )
    # A short overlap correlates well by chance.
    least = min(MIN_OVERLAP_S / GRID_S, 0.5 * min(len(a), len(b)))
    kinds = float((a.any(axis=0) & b.any(axis=0)).sum())
    likeness = np.where(common >= least, likeness / (max(1.0, kinds) * common), -np.inf)
    # Among equally good offsets, prefer the one with the largest overlap.
    best = int(np.argmax(likeness * np.minimum(1.0, 0.9 + 0.1 * common / common.max())))
    if not likeness[best] >= MIN_LIKENESS:
        raise CalibrationError(
            "the true poses do not match the odometry: the correlation of their motions is "
            f"{likeness[best]:.2f} at best, expected at least {MIN_LIKENESS:g}"
        )

    # Index len(b) − 1 of a full correlation is lag 0.
    lag = best - (len(b) - 1)
    return begin_a + lag * GRID_S - begin_b


__all__ = ["clock_offset"]
