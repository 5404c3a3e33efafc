"""Functions of `botyard.numerics.elementary` for arrays, with results equal in all bits.

The functions are plain NumPy, in the same order of operations. NumPy's `+ - * /`, `sqrt` and
comparisons are exactly rounded on every processor; its sines and arctangents are not. ``@`` is not
used either, because the order in which BLAS adds is not defined. Short arrays are computed number
by number, which is faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.numerics import elementary as one
from botyard.numerics import exponentials
from botyard.numerics.elementary import (
    ATAN_1,
    ATAN_1_LOW,
    ATAN_3_HALVES,
    ATAN_3_HALVES_LOW,
    ATAN_HALF,
    ATAN_HALF_LOW,
    CANCELLED,
    HALF_PI,
    HALF_PI_1,
    HALF_PI_1_REST,
    HALF_PI_LOW,
    LARGE_ANGLE,
    PI,
    PI_LOW,
    TO_WHOLE,
    TWO_BY_PI,
    atan_series,
)

F8 = NDArray[np.float64]
_TWO_PI: Final = 2.0 * math.pi

# Measured: below this size, NumPy's cost of a call exceeds the work.
MAX_SCALAR_SIZE: Final = 24
"""Number of elements up to which arrays are computed number by number, which is faster."""
_near_zero: Final[Any] = one.near_zero
_series: Final[Any] = atan_series
_PIECES: Final[tuple[tuple[float, float, float, float, Callable[[F8], F8]], ...]] = (
    (0.4375, 0.6875, ATAN_HALF, ATAN_HALF_LOW, lambda v: (2.0 * v - 1.0) / (2.0 + v)),
    (0.6875, 1.1875, ATAN_1, ATAN_1_LOW, lambda v: (v - 1.0) / (v + 1.0)),
    (
        1.1875,
        2.4375,
        ATAN_3_HALVES,
        ATAN_3_HALVES_LOW,
        lambda v: (v - 1.5) / (1.0 + 1.5 * v),
    ),
    (2.4375, math.nan, HALF_PI, HALF_PI_LOW, lambda v: -1.0 / v),
)
"""Intervals in which the argument of the arctangent is reduced to a reference point.

Each has its start, its end (NaN: none), the arctangent of its reference point in two
parts, and the function that reduces the argument.
"""


def cosine_sine(angles: ArrayLike) -> tuple[F8, F8]:
    """Return cosines and sines of angles.

    Parameters
    ----------
    angles : array-like of float
        Angles, rad, of any size and shape. Infinities and NaN give NaN.

    Returns
    -------
    tuple of two float64 arrays
        Cosines and sines, each with the shape of `angles`; the error is at most 1 ulp.
    """
    x = np.asarray(angles, np.float64)
    if x.size <= MAX_SCALAR_SIZE:
        both = np.array([one.cosine_sine(a) for a in x.ravel().tolist()]).reshape(
            *x.shape, 2
        )
        return both[..., 0], both[..., 1]

    with np.errstate(invalid="ignore", over="ignore"):
        small = np.abs(x) <= LARGE_ANGLE
        near = x if small.all() else np.where(small, x, 0.0)
        # Adding a large number rounds to whole quarters, exactly and in the same way on
        # every processor.
        quarters = (near * TWO_BY_PI + TO_WHOLE) - TO_WHOLE
        t = near - quarters * HALF_PI_1
        w = quarters * HALF_PI_1_REST
        r = t - w
        rest = (t - r) - w
        lost = quarters * CANCELLED
        rare = ~small | (r * r < lost * lost)
        cosine, sine = _near_zero(r, rest)
        quarter = quarters.astype(np.int64)
        odd = (quarter & 1).astype(np.bool_)
        c, s = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
        c, s = np.where((quarter + 1) & 2, -c, c), np.where(quarter & 2, -s, s)

    # Large angles and cancelled remainders are rare; the scalar function handles them.
    for at in map(tuple, np.argwhere(rare)):
        c[at], s[at] = one.cosine_sine(float(x[at]))
    return c, s


def sin(angles: ArrayLike) -> F8:
    """Return the sines of angles.

    Parameters
    ----------
    angles : array-like of float
        Angles, rad. Callers that need cosines as well save time by `cosine_sine`.
    """
    return cosine_sine(angles)[1]


def cos(angles: ArrayLike) -> F8:
    """Return the cosines of angles.

    Parameters
    ----------
    angles : array-like of float
        Angles, rad. Callers that need sines as well save time by `cosine_sine`.
    """
    return cosine_sine(angles)[0]


def atan2(y: ArrayLike, x: ArrayLike) -> F8:
    """Return the directions of the vectors (x, y), rad, in −π … π.

    Parameters
    ----------
    y, x : array-like of float
        Components, in one unit; both are broadcast. Zeros and infinities are as in
        `botyard.numerics.elementary.atan2`.
    """
    ys, xs = np.broadcast_arrays(np.asarray(y, np.float64), np.asarray(x, np.float64))
    if xs.size <= MAX_SCALAR_SIZE:
        return _each(one.atan2, ys, xs)
    size_x, size_y = np.abs(xs), np.abs(ys)
    plain = (size_x > 0.0) & (size_y > 0.0) & (size_x < math.inf) & (size_y < math.inf)

    # Values are computed also for elements that do not need them, so suppress warnings
    # about these.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        z = _atan_of_size(
            np.divide(size_y, size_x, out=np.zeros(xs.shape), where=plain)
        )
        # π has two parts, because a double alone is off by 1.2e-16.
        z = np.where(xs < 0.0, PI - (z - PI_LOW), z)

    z = np.where(ys < 0.0, -z, z)
    for at in map(tuple, np.argwhere(~plain)):
        z[at] = one.atan2(float(ys[at]), float(xs[at]))
    return z


def _atan_of_size(size: F8) -> F8:
    """Return the arctangents of numbers that are not negative, as `elementary.atan` does.

    Parameters
    ----------
    size : (…) float64
        Numbers ≥ 0, also infinite ones.
    """
    found = np.where(size < 2.0**-27, size, size - size * _series(size))
    # The series is accurate only near 0, so the argument is reduced piece by piece.
    for low, high, begin, rest, reduced in _PIECES:
        chosen = (size >= low) & ~(size >= high)
        q = reduced(size[chosen])
        found[chosen] = begin - ((q * _series(q) - rest) - q)

    return found


def hypot(x: ArrayLike, y: ArrayLike) -> F8:
    """Return the lengths of the vectors (x, y).

    Parameters
    ----------
    x, y : array-like of float
        Components, in the same unit; both are broadcast. Their squares cannot overflow
        or underflow, because the vector is scaled if necessary.
    """
    xs, ys = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        size = np.abs(xs) + np.abs(ys)
        lengths = np.asarray(np.sqrt(xs * xs + ys * ys))

    # Outside of this range, squares underflow or overflow: the scalar function scales
    # them.
    plain = (size > 1e-140) & (size < 1e150)
    if not plain.all():
        for at in map(tuple, np.argwhere(~plain)):
            lengths[at] = one.hypot(float(xs[at]), float(ys[at]))

    return lengths


def log(x: ArrayLike) -> F8:
    """Return the natural logarithms of numbers; −∞ for zero, NaN for negative numbers.

    Parameters
    ----------
    x : array-like of float
        Numbers of any size and shape.
    """
    xs = np.asarray(x, np.float64)
    if xs.size <= MAX_SCALAR_SIZE:
        return _each(exponentials.log, xs)
    # The split x = half · 2ʷʰᵒˡᵉ, with half in 1/2 … 1, is exact.
    half, whole = np.frexp(xs)
    is_upper = half >= 0.5 * exponentials.ROOT_2

    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        k = np.where(is_upper, whole, whole - 1).astype(np.float64)
        f = np.where(is_upper, half, 2.0 * half) - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        r = w * (exponentials.L2 + w * (exponentials.L4 + w * exponentials.L6)) + z * (
            exponentials.L1
            + w * (exponentials.L3 + w * (exponentials.L5 + w * exponentials.L7))
        )
        square = 0.5 * f * f
        found: F8 = k * exponentials.LN2_HIGH - (
            (square - (s * (square + r) + k * exponentials.LN2_LOW)) - f
        )

    found = np.where(xs > 0.0, found, np.where(xs == 0.0, -math.inf, math.nan))
    return np.where(xs == math.inf, math.inf, found)


def wrap_angles(angles: F8) -> F8:
    """Wrap angles into (−π, π], rad, like `botyard.units.wrap_angle`.

    Angles already in this range keep all their bits.

    Parameters
    ----------
    angles : (…) float64
        Angles, rad; infinities give NaN.

    Returns
    -------
    (…) float64
        New array; `angles` is not changed.
    """
    # `fmod` is exact, and so are the differences below (Sterbenz' lemma).
    wrapped = np.fmod(angles, _TWO_PI)
    wrapped = np.where(wrapped > math.pi, wrapped - _TWO_PI, wrapped)
    wrapped = np.where(wrapped <= -math.pi, wrapped + _TWO_PI, wrapped)
    found: F8 = np.where((angles > -math.pi) & (angles <= math.pi), angles, wrapped)
    return found


def interpolate(x: ArrayLike, xs: F8, ys: F8) -> F8:
    """Interpolate linearly between points, like `numpy.interp`.

    `numpy.interp` is not used, because on some processors it contracts a product and a
    sum, which changes the last bit.

    Parameters
    ----------
    x : array-like of float
        Positions at which to interpolate.
    xs : (n,) float64
        Positions of the points, increasing, n ≥ 2.
    ys : (n,) float64
        Values at the points.

    Returns
    -------
    float64 array with the shape of `x`
        Interpolated values. Before the first point and after the last one they are the
        value of that point.
    """
    at = np.asarray(x, np.float64)
    k = np.clip(np.searchsorted(xs, at, side="right") - 1, 0, len(xs) - 2)
    width = xs[k + 1] - xs[k]
    share = np.divide(at - xs[k], width, out=np.zeros(at.shape), where=width > 0.0)
    inside = ys[k] + share * (ys[k + 1] - ys[k])
    return np.where(at <= xs[0], ys[0], np.where(at >= xs[-1], ys[-1], inside))


def _each(function: Callable[..., float], *arrays: F8) -> F8:
    """Return the values of a function for arrays, computed number by number.

    Parameters
    ----------
    function : callable
        Function of as many floats as there are arrays.
    *arrays : float64 arrays
        Arguments, all of one shape.
    """
    found = [
        function(*numbers)
        for numbers in zip(*(a.ravel().tolist() for a in arrays), strict=True)
    ]
    return np.array(found, np.float64).reshape(arrays[0].shape)


__all__ = [
    "atan2",
    "cos",
    "cosine_sine",
    "hypot",
    "interpolate",
    "log",
    "sin",
    "wrap_angles",
]
