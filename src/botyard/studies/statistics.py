"""Confidence intervals of means and shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from botyard.numerics.elementary import atan, cosine_sine

CONFIDENCE: Final = 0.95
_NORMAL: Final = 1.959963984540054
"""Quantile 0.975 of the normal distribution."""
MANY: Final = 200
"""From so many degrees of freedom on the quantile of Student's distribution is
expanded; the error is below 1e-9.
"""


class Interval(NamedTuple):
    """An estimate with its 95 % interval.

    Attributes
    ----------
    value, low, high : float
        The estimate, and the ends of the interval; NaN where it is not known.
    number : int
        Number of values.
    """

    value: float
    low: float
    high: float
    number: int


@cache
def student_quantile(freedom: int) -> float:
    """Quantile 0.975 of Student's t distribution: between minus and plus this lie 95 %.

    The distribution is a finite sum for whole degrees of freedom (Abramowitz and
    Stegun, 26.7.3 and 26.7.4), for many the Cornish-Fisher expansion (26.7.5).
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

    low, high = 0.0, 13.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _central(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle

    return 0.5 * (low + high)


def _central(t: float, freedom: int) -> float:
    """Probability of what lies between -t and t."""
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
    """Mean of normally distributed values, by Student's distribution; of one value
    there is no interval.
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
    """Share of `good` among `n`, by Wilson's score interval (Wilson 1927)."""
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
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
