"""Confidence intervals of means and shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from botyard.numerics.elementary import atan, cosine_sine

CONFIDENCE: Final = 0.95
_NORMAL: Final = 1.959963984540054
"""Quantile 0.975 of the standard normal distribution."""
MANY: Final = 200
"""Least degrees of freedom for which Student's quantile is a series expansion, error below 1e-9."""


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval.

    Attributes
    ----------
    value, low, high : float
        The estimate, and the ends of the interval; NaN: unknown.
    number : int
        Number of values.
    """

    value: float
    low: float
    high: float
    number: int


@cache
def student_quantile(freedom: int) -> float:
    """Return quantile 0.975 of Student's t distribution: 95 % lie between -t and t.

    For whole degrees of freedom, the distribution is a finite sum (Abramowitz and
    Stegun, 26.7.3 and 26.7.4). For many degrees of freedom, the Cornish-Fisher
    expansion is used (26.7.5).

    Parameters
    ----------
    freedom : int
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        The quantile t, from 12.706 for one degree of freedom down to 1.960.
    """
    if freedom >= MANY:
        x, n = _NORMAL, float(freedom)
        x3, x5 = x * x * x, x * x * x * x * x
        x7 = x5 * x * x
        third = (3.0 * x7 + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / (384.0 * n * n * n)
        return (
            x
            + (x3 + x) / (4.0 * n)
            + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * n * n)
            + third
        )

    # The largest quantile is 12.706, for one degree of freedom. Sixty halvings reach
    # the resolution of a double.
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _central(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle

    return 0.5 * (low + high)


def _central(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies between -t and t.

    Parameters
    ----------
    t : float
        Limit, at least 0.
    freedom : int
        Degrees of freedom, at least 1; the sum has about `freedom` / 2 terms.
    """
    angle = atan(t / math.sqrt(freedom))
    c, s = cosine_sine(angle)
    if freedom % 2:
        term, total, k = c, 0.0, 1
        while k <= freedom - 2:
            total += term
            term *= c * c * (k + 1) / (k + 2)
            k += 2

        return (angle + s * total) * 2.0 / math.pi

    term, total, k = 1.0, 0.0, 0
    while k <= freedom - 2:
        total += term
        term *= c * c * (k + 1) / (k + 2)
        k += 2

    return s * total


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of normally distributed values, with Student's interval.

    Parameters
    ----------
    values : sequence of float
        The values; all are finite.

    Returns
    -------
    Interval
        Mean and 95 % confidence interval. A single value has no interval (NaN). Without
        values, the mean is NaN as well.
    """
    n = len(values)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, math.nan, math.nan, 1)
    variance = math.fsum((value - mean) * (value - mean) for value in values) / (n - 1)
    half = student_quantile(n - 1) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n)


def share_interval(good: int, n: int) -> Interval:
    """Return the share of `good` among `n`, with Wilson's score interval (Wilson 1927).

    Parameters
    ----------
    good : int
        Number of good values, 0 … `n`.
    n : int
        Number of all values.

    Returns
    -------
    Interval
        Share and 95 % confidence interval, all from 0 to 1; NaN if `n` is 0.
    """
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    # Unlike the normal approximation, Wilson's interval holds for few values and for
    # shares near 0 or 1.
    p, z2 = good / n, _NORMAL * _NORMAL
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _NORMAL / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Interval(p, max(0.0, middle - half), min(1.0, middle + half), n)


__all__ = [
    "CONFIDENCE",
    "Interval",
    "mean_interval",
    "share_interval",
    "student_quantile",
]
