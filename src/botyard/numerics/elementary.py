"""Sine, arctangent and other functions with identical bits on every machine.

`botyard.numerics.exponentials` has the exponential, the logarithm and powers.

The C library's functions differ between systems in the last bit, so a run that uses
them repeats on one machine only. These functions use only ``+ - * /`` and `math.sqrt`
(all exactly rounded, IEEE 754-2019, §5.4.1), comparisons and integers, in the written
order. No compiler may change this order or contract a product and a sum; Numba does
neither without `fastmath`.

Algorithms and coefficients come from fdlibm (Sun Microsystems, 1993) and its successor,
FreeBSD's msun: reduction of the argument in two steps, then polynomials. Large angles
use as many bits of 2/π as they need (Payne & Hanek, "Radian reduction for trigonometric
functions", SIGNUM 1983). `tests/leaves/test_elementary.py` compares all functions with
sums of 60 digits.

========================================================  ======================
Function                                                  Error at most, ulp
========================================================  ======================
`sin`, `cos`, `cosine_sine`, `atan`, `atan2`, `exp`,      1
`log`, `power`
`hypot`                                                   1.5
`tan`, `acos`, `asin`                                     2.5
========================================================  ======================

Special values are as in C (C17, annex F), but each NaN made here is `math.nan`, because
processors produce different NaN bits. All functions are kernels: other kernels may call
them, and from Python they are plain functions of floats that take about a microsecond.
`botyard.numerics.elementwise` has the same functions for arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from botyard.native.packages import Package

PACKAGE: Final = Package(
    "elementary", [Path(__file__), Path(__file__).with_name("exponentials.py")]
)
F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Register a function as a kernel (see `Package.kernel`), with types for callers in Python.

    Parameters
    ----------
    function : callable
        Function of floats.

    Returns
    -------
    callable
        `function` itself: in Python it runs uncompiled, and other kernels call its
        compiled form.
    """
    PACKAGE.kernel(function)
    return function


def inline_kernel(function: F) -> F:
    """Register a function as an inlined kernel (see `Package.inline_kernel`), with types.

    Parameters
    ----------
    function : callable
        Function of floats, whose code is copied to its callers.

    Returns
    -------
    callable
        `function` itself, see `kernel`.
    """
    PACKAGE.inline_kernel(function)
    return function


TO_WHOLE: Final = 6755399441055744.0
"""1.5 · 2⁵²: adding and then subtracting it rounds a number below 2⁵¹ to an integer."""
SPLITTER: Final = 134217729.0
"""2²⁷ + 1: splits a number into two parts of 26 bits.

Source: Dekker, "A floating-point technique for extending the available precision",
1971.
"""

# -- sine and cosine

LARGE_ANGLE: Final = 5e5
"""Largest angle that is reduced with π/2 in parts, rad.

Products of these parts with a whole number below 2²⁰ are exact.
"""
TWO_BY_PI: Final = 0.6366197723675814
"""2/π as the nearest double: quarter turns per radian."""
HALF_PI_1, HALF_PI_1_REST = 1.5707963267341256, 6.077100506506192e-11
HALF_PI_2, HALF_PI_3, HALF_PI_3_REST = (
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
"""π/2 as a sum of parts of 33 bits; ``_REST`` is what remains after a part."""
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
"""π/2 as the nearest double, and the remainder that the double lacks."""
CANCELLED: Final = 2.0**-24
"""Least remainder, rad per subtracted quarter turn, for which two parts of π/2 suffice.

`reduce_cancelled` computes smaller remainders.
"""
S1, S2, S3 = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
)
S4, S5, S6 = (
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
C1, C2, C3 = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
)
C4, C5, C6 = (
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
"""Coefficients of fdlibm's k_sin.c and k_cos.c, for −π/4 … π/4."""
LIMB: Final = 0xFFFFFF
"""Mask of a limb (digit) of 24 bits: the sum of four products of limbs fits into 64 bits."""
TWO_BY_PI_BITS: Final = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361da9e3",
    16,
)
"""2/π · 2¹²⁹⁶."""
LIMBS: Final = np.array(
    [(TWO_BY_PI_BITS >> (1296 - 24 * k)) & LIMB for k in range(1, 55)], np.int64
)
"""Digits of 2/π in groups (limbs) of 24 bits."""


@inline_kernel
def near_zero(r: float, rest: float) -> tuple[float, float]:
    """Return cosine and sine of an angle near 0 that is given in two parts.

    The polynomials are fdlibm's k_cos.c and k_sin.c.

    Parameters
    ----------
    r : float
        Angle, rad. ``r + rest`` lies in −π/4 … π/4.
    rest : float
        Rest of the angle, rad, below half the last bit of `r`.
    """
    z = r * r
    half = 0.5 * z
    about = 1.0 - half
    cosine = about + (
        ((1.0 - about) - half)
        + (
            z * (z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * C6))))))
            - r * rest
        )
    )
    cube = z * r
    sine = r - (
        (
            z * (0.5 * rest - cube * (S2 + z * (S3 + z * (S4 + z * (S5 + z * S6)))))
            - rest
        )
        - cube * S1
    )

    return cosine, sine


@kernel
def reduce_cancelled(angle: float, quarters: float) -> tuple[float, float]:
    """Subtract quarter turns from an angle, with π/2 to 152 bits.

    The function is used for differences in which most bits cancel.

    Parameters
    ----------
    angle : float
        Angle, rad, within ± `LARGE_ANGLE`.
    quarters : float
        Whole number of quarter turns nearest to the angle.

    Returns
    -------
    tuple of float
        Difference, rad, as the nearest double and the rest.
    """
    t = angle - quarters * HALF_PI_1
    w = quarters * HALF_PI_2
    r = t - w
    back = r - t
    rest = (t - (r - back)) - (w + back)
    w = quarters * HALF_PI_3
    s = r - w
    back = s - r
    rest += (r - (s - back)) - (w + back)
    rest -= quarters * HALF_PI_3_REST
    near = s + rest
    return near, rest - (near - s)


@kernel
def reduce_large(angle: float) -> tuple[int, float, float]:
    """Return the nearest multiple of π/2 to a large angle, and the difference.

    The angle is m · 2²⁴ᵘ with an integer m of four limbs of 24 bits. Of m · 2/π, only
    the digits from the units to 2⁻¹⁴⁴ matter (Payne & Hanek, 1983).

    Parameters
    ----------
    angle : float
        Finite angle, rad, of at least 1 rad in magnitude.

    Returns
    -------
    tuple of (int, float, float)
        Number of quarter turns, of which only the two low bits count, and the
        difference, rad, as the nearest double and the rest.
    """
    bits = int(np.float64(angle).view(np.int64))
    exponent = ((bits >> 52) & 0x7FF) - 1075
    mantissa = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    u = exponent // 24
    shift = exponent - 24 * u
    m0 = (mantissa & LIMB) << shift
    m1 = (((mantissa >> 24) & LIMB) << shift) + (m0 >> 24)
    m2 = ((mantissa >> 48) << shift) + (m1 >> 24)
    m0, m1, m2, m3 = m0 & LIMB, m1 & LIMB, m2 & LIMB, m2 >> 24
    carry = 0
    ones = d1 = d2 = d3 = d4 = d5 = d6 = 0

    for place in range(-9, 1):
        k = u - 1 - place
        product = carry
        if k >= 0:
            product += m0 * int(LIMBS[k])
        if k + 1 >= 0:
            product += m1 * int(LIMBS[k + 1])
        if k + 2 >= 0:
            product += m2 * int(LIMBS[k + 2])
        if k + 3 >= 0:
            product += m3 * int(LIMBS[k + 3])
        carry = product >> 24
        ones, d1, d2, d3, d4, d5, d6 = product & LIMB, ones, d1, d2, d3, d4, d5

    first = (d1 << 24) | d2
    quarter = ones & 3
    # The fraction is above one half: round the multiple up and make the fraction
    # negative.
    if first >> 47:
        first -= 1 << 48
        quarter += 1

    a = first * 2.0**-48
    b = ((d3 << 24) | d4) * 2.0**-96
    s = a + b
    rest = (b - (s - a)) + ((d5 << 24) | d6) * 2.0**-144
    high = s + rest
    low = rest - (high - s)

    # Multiply by π/2. The error of the product is computed from halves of 26 bits
    # (Dekker).
    p = high * HALF_PI
    t = SPLITTER * high
    h1 = t - (t - high)
    h2 = high - h1
    t = SPLITTER * HALF_PI
    q1 = t - (t - HALF_PI)
    q2 = HALF_PI - q1
    rest = ((h1 * q1 - p) + h1 * q2 + h2 * q1) + h2 * q2
    rest += high * HALF_PI_LOW + low * HALF_PI
    near = p + rest
    low = rest - (near - p)
    if angle < 0.0:
        return -quarter, -near, -low

    return quarter, near, low


@kernel
def large_cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine of an angle beyond `LARGE_ANGLE`, which `cosine_sine` rarely gets.

    Parameters
    ----------
    angle : float
        Angle beyond `LARGE_ANGLE`, rad, or infinite or NaN, which give NaN.
    """
    if not abs(angle) < math.inf:
        return math.nan, math.nan
    quarter, r, rest = reduce_large(angle)
    c, s = near_zero(r, rest)
    if quarter & 1:
        c, s = -s, c
    return (-c, -s) if quarter & 2 else (c, s)


@inline_kernel
def cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine of any angle, rad, each to within 1 ulp.

    One call takes half the time of two calls of the C library.

    Parameters
    ----------
    angle : float
        Angle, rad. Infinities and NaN give NaN.
    """
    # Python floats are faster than NumPy scalars.
    angle = float(angle)
    if not -LARGE_ANGLE <= angle <= LARGE_ANGLE:
        return large_cosine_sine(angle)
    quarters = (angle * TWO_BY_PI + TO_WHOLE) - TO_WHOLE
    t = angle - quarters * HALF_PI_1
    w = quarters * HALF_PI_1_REST
    r = t - w
    rest = (t - r) - w
    lost = quarters * CANCELLED
    if r * r < lost * lost:
        r, rest = reduce_cancelled(angle, quarters)
    c, s = near_zero(r, rest)
    quarter = int(quarters)
    if quarter & 1:
        c, s = -s, c

    return (-c, -s) if quarter & 2 else (c, s)


@kernel
def sin(angle: float) -> float:
    """Return the sine of any angle, rad.

    Parameters
    ----------
    angle : float
        Angle, rad. Infinities and NaN give NaN.
    """
    return cosine_sine(angle)[1]


@kernel
def cos(angle: float) -> float:
    """Return the cosine of any angle, rad.

    Parameters
    ----------
    angle : float
        Angle, rad. Infinities and NaN give NaN.
    """
    return cosine_sine(angle)[0]


@kernel
def tan(angle: float) -> float:
    """Return the tangent of any angle, rad: sine by cosine, which is never zero.

    Parameters
    ----------
    angle : float
        Angle, rad. No double is an exact odd multiple of π/2, so that the result is
        finite.
    """
    c, s = cosine_sine(angle)
    return s / c


# -- arctangent

PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
"""π as the nearest double, and the remainder that the double lacks."""
A0, A1, A2 = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
)
A3, A4, A5 = (
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
)
A6, A7, A8 = (
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
)
A9, A10 = -3.65315727442169155270e-02, 1.62858201153657823623e-02
"""Coefficients of fdlibm's s_atan.c, for −7/16 … 7/16."""
ATAN_HALF, ATAN_HALF_LOW = 4.63647609000806093515e-01, 2.26987774529616870924e-17
ATAN_1, ATAN_1_LOW = 7.85398163397448278999e-01, 3.06161699786838301793e-17
ATAN_3_HALVES, ATAN_3_HALVES_LOW = (
    9.82793723247329054082e-01,
    1.39033110312309984516e-17,
)
"""Arctangents of 1/2, 1 and 3/2 as the nearest doubles, and the remainders."""


@inline_kernel
def atan_series(x: float) -> float:
    """Return (x − atan x) / x for x in −7/16 … 7/16.

    Parameters
    ----------
    x : float
        Number in −7/16 … 7/16; also an array, see `botyard.numerics.elementwise`.
    """
    z = x * x
    w = z * z
    return z * (A0 + w * (A2 + w * (A4 + w * (A6 + w * (A8 + w * A10))))) + w * (
        A1 + w * (A3 + w * (A5 + w * (A7 + w * A9)))
    )


@kernel
def atan(x: float) -> float:
    """Return the arctangent, rad, in −π/2 … π/2.

    Parameters
    ----------
    x : float
        Number; ±∞ gives ±π/2.
    """
    x = float(x)
    size = abs(x)
    # Intervals of fdlibm's s_atan.c: 7/16, 11/16, 19/16 and 39/16. In each, the
    # argument is reduced to a point whose arctangent is known.
    if size < 0.4375:
        return x if size < 2.0**-27 else x - x * atan_series(x)

    if size < 0.6875:
        q = (2.0 * size - 1.0) / (2.0 + size)
        found = ATAN_HALF - ((q * atan_series(q) - ATAN_HALF_LOW) - q)
    elif size < 1.1875:
        q = (size - 1.0) / (size + 1.0)
        found = ATAN_1 - ((q * atan_series(q) - ATAN_1_LOW) - q)
    elif size < 2.4375:
        q = (size - 1.5) / (1.0 + 1.5 * size)
        found = ATAN_3_HALVES - ((q * atan_series(q) - ATAN_3_HALVES_LOW) - q)
    elif size <= math.inf:
        q = -1.0 / size
        found = HALF_PI - ((q * atan_series(q) - HALF_PI_LOW) - q)
    else:
        return math.nan

    return -found if x < 0.0 else found


@kernel
def atan2(y: float, x: float) -> float:
    """Return the direction of the vector (x, y), rad, in −π … π.

    Zeros and infinities are handled as in C: a negative zero is a small negative
    number.

    Parameters
    ----------
    y, x : float
        Components of the vector, in one unit. (0, 0) has the direction 0 or ±π.
    """
    y, x = float(y), float(x)
    if not (abs(x) <= math.inf and abs(y) <= math.inf):
        return math.nan
    left = math.copysign(1.0, x) < 0.0
    if y == 0.0:
        return math.copysign(PI if left else 0.0, y)
    if x == 0.0:
        return math.copysign(HALF_PI, y)
    if abs(x) == math.inf and abs(y) == math.inf:
        return math.copysign(3.0 * ATAN_1 if left else ATAN_1, y)
    z = atan(abs(y / x))
    if left:
        z = PI - (z - PI_LOW)

    return -z if y < 0.0 else z


@kernel
def acos(x: float) -> float:
    """Return the arccosine, rad, in 0 … π; NaN outside of −1 … 1.

    Parameters
    ----------
    x : float
        Cosine, −1 … 1.
    """
    x = float(x)
    if not abs(x) <= 1.0:
        return math.nan
    return atan2(math.sqrt((1.0 - x) * (1.0 + x)), x)


@kernel
def asin(x: float) -> float:
    """Return the arcsine, rad, in −π/2 … π/2; NaN outside of −1 … 1.

    Parameters
    ----------
    x : float
        Sine, −1 … 1.
    """
    x = float(x)
    if not abs(x) <= 1.0:
        return math.nan
    return atan2(x, math.sqrt((1.0 - x) * (1.0 + x)))


# -- length


@kernel
def hypot(x: float, y: float) -> float:
    """Return the length of the vector (x, y).

    The vector is scaled if its squares would overflow or underflow.

    Parameters
    ----------
    x, y : float
        Components of the vector, in the same unit. If one is infinite, so is the
        length, even if the other is NaN.
    """
    x, y = abs(float(x)), abs(float(y))
    size = x + y
    if 1e-140 < size < 1e150:
        return math.sqrt(x * x + y * y)
    if x == math.inf or y == math.inf:
        return math.inf
    if not size >= 0.0:
        return math.nan
    if size >= 1e150:
        x, y = x * 2.0**-600, y * 2.0**-600
        return math.sqrt(x * x + y * y) * 2.0**600

    x, y = x * 2.0**600, y * 2.0**600
    return math.sqrt(x * x + y * y) * 2.0**-600


def total(numbers: Iterable[float]) -> float:
    """Return the sum of numbers, added from first to last.

    The built-in `sum` of Python 3.12 and later compensates rounding, earlier ones do
    not.

    Parameters
    ----------
    numbers : iterable of float
        Numbers. Their order matters for the last bits.
    """
    found = 0.0
    for number in numbers:
        found += number
    return found


__all__ = [
    "HALF_PI",
    "PI",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cosine_sine",
    "hypot",
    "sin",
    "tan",
    "total",
]
