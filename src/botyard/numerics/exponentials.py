"""Exponential, logarithm and powers with identical bits on every machine.

`botyard.numerics.elementary` describes the method and the source of the coefficients.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from botyard.numerics.elementary import SPLITTER, TO_WHOLE, inline_kernel, kernel

BY_LN2: Final = 1.44269504088896338700e00
"""1 / ln 2."""
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts; the first has 33 bits."""
LARGEST_EXPONENT, SMALLEST_EXPONENT = (
    7.09782712893383973096e02,
    -7.45133219101941108420e02,
)
"""Exponents above which eˣ is infinite, and below which it is zero."""
P1, P2, P3 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
)
P4, P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08
"""Coefficients of fdlibm's e_exp.c."""
L1, L2, L3 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
)
L4, L5, L6 = (
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
)
L7 = 1.479819860511658591e-01
"""Coefficients of fdlibm's e_log.c."""
ROOT_2: Final = 1.4142135623730951
"""√2: a mantissa above √2 is halved, so that its logarithm is computed near 1."""
TINY: Final = 2.0**-1022
"""Smallest normal number; smaller numbers have fewer bits."""


@inline_kernel
def power_of_two(k: int) -> float:
    """Return 2ᵏ, which is exact.

    Parameters
    ----------
    k : int
        Exponent of a normal number, −1022 … 1023.
    """
    return float(np.int64((k + 1023) << 52).view(np.float64))


@inline_kernel
def scaled(x: float, k: int) -> float:
    """Return x · 2ᵏ, rounded once.

    Parameters
    ----------
    x : float
        Number in 1/2 … 2.
    k : int
        Exponent, −1080 … 1024. The result may be subnormal, zero or infinite.
    """
    if k > 1000:
        return x * power_of_two(k - 1000) * 2.0**1000
    if k < -1000:
        return x * power_of_two(k + 1000) * 2.0**-1000
    return x * power_of_two(k)


@inline_kernel
def parts_of(x: float) -> tuple[int, float]:
    """Split a number into an exponent of two and a mantissa.

    Parameters
    ----------
    x : float
        Finite number > 0, also a subnormal one.

    Returns
    -------
    tuple of (int, float)
        k and m with x = m · 2ᵏ and 1 ≤ m < 2.
    """
    k = 0
    # Subnormal numbers: scale them into the normal range first.
    if x < TINY:
        x *= 2.0**54
        k = -54

    bits = int(np.float64(x).view(np.int64))
    k += (bits >> 52) - 1023
    return k, float(
        np.int64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
    )


@kernel
def exp(x: float) -> float:
    """Return e to the power x.

    Parameters
    ----------
    x : float
        Exponent. More than 709.78 gives ∞, less than −745.13 gives 0, NaN gives NaN.
    """
    x = float(x)
    if x > LARGEST_EXPONENT:
        return math.inf
    if x < SMALLEST_EXPONENT:
        return 0.0
    if not x <= LARGEST_EXPONENT:
        return math.nan
    k = (x * BY_LN2 + TO_WHOLE) - TO_WHOLE
    high = x - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))))

    return scaled(1.0 - ((low - (r * c) / (2.0 - c)) - high), int(k))


@kernel
def log(x: float) -> float:
    """Return the natural logarithm; −∞ for zero, NaN for negative numbers.

    Parameters
    ----------
    x : float
        Number; ∞ gives ∞.
    """
    x = float(x)
    if x == 0.0:
        return -math.inf
    if not x > 0.0:
        return math.nan
    if x == math.inf:
        return math.inf
    whole, m = parts_of(x)
    if m >= ROOT_2:
        whole, m = whole + 1, 0.5 * m
    k = float(whole)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = w * (L2 + w * (L4 + w * L6)) + z * (L1 + w * (L3 + w * (L5 + w * L7)))
    half = 0.5 * f * f

    return k * LN2_HIGH - ((half - (s * (half + r) + k * LN2_LOW)) - f)


E1, E2, E3 = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
)
E4, E5, E6 = (
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
"""Coefficients of fdlibm's e_pow.c, for the logarithm to base 2."""
LN2, LN2_24, LN2_REST = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
"""ln 2; then ln 2 in two parts: its upper 24 bits, and the remainder."""
TWO_THIRDS_BY_LN2 = 9.61796693925975554329e-01
TWO_THIRDS_BY_LN2_24, TWO_THIRDS_BY_LN2_REST = (
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
"""2 / (3 · ln 2), and the same in two parts."""
LOG2_3_HALVES_24, LOG2_3_HALVES_REST = (
    5.84962487220764160156e-01,
    1.35003920212974897128e-08,
)
"""Two parts of log2(3/2): 24 bits, and the remainder."""
ROOT_3_HALVES, ROOT_3 = 1.224744871391589, 1.7320508075688772
"""√(3/2) and √3: limits between mantissas that are divided by 1, by 3/2, or halved."""


@inline_kernel
def upper(x: float) -> float:
    """Return the upper 26 bits of x (Dekker's method), for abs(x) < 2⁹⁹⁶.

    Products of two such numbers are exact.

    Parameters
    ----------
    x : float
        Number below 2⁹⁹⁶ in magnitude; beyond it the product with `SPLITTER` overflows.
    """
    t = SPLITTER * x
    return t - (t - x)


@kernel
def power(x: float, y: float) -> float:
    """Return x to the power y, for x ≥ 0; NaN for negative x.

    The method is fdlibm's e_pow.c: the logarithm of x to base 2 in two parts, times y
    in two parts, and 2 to the power of the product. Unlike there, numbers are split by
    Dekker's method.

    Parameters
    ----------
    x : float
        Base. 1 gives 1 for any `y`.
    y : float
        Exponent. 0 gives 1 for any `x`, NaN included, as in C.
    """
    x, y = float(x), float(y)
    if y == 0.0 or x == 1.0:
        return 1.0
    if not (x >= 0.0 and abs(y) <= math.inf):
        return math.nan
    if x == 0.0 or x == math.inf:
        return math.inf if (x == 0.0) == (y < 0.0) else 0.0
    if abs(y) > 1e20:
        return math.inf if (x > 1.0) == (y > 0.0) else 0.0
    whole, m = parts_of(x)
    if m >= ROOT_3:
        whole, m = whole + 1, 0.5 * m
    n = float(whole)
    base, base_high, base_low = (
        (1.5, LOG2_3_HALVES_24, LOG2_3_HALVES_REST)
        if m >= ROOT_3_HALVES
        else (1.0, 0.0, 0.0)
    )

    # s = (m - base) / (m + base) in two parts
    u = m - base
    v = 1.0 / (m + base)
    s = u * v
    s_high = upper(s)
    t_high = upper(m + base)
    t_low = m - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)

    # log2(m / base) = 2 / (3 · ln 2) · (3 · s + s³ · …) in two parts
    s2 = s * s
    r = s2 * s2 * (E1 + s2 * (E2 + s2 * (E3 + s2 * (E4 + s2 * (E5 + s2 * E6)))))
    r += s_low * (s_high + s)
    s2 = s_high * s_high
    t_high = upper(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u = s_high * t_high
    v = s_low * t_high + t_low * s
    p_high = upper(u + v)
    p_low = v - (p_high - u)
    z_high = TWO_THIRDS_BY_LN2_24 * p_high
    z_low = TWO_THIRDS_BY_LN2_REST * p_high + p_low * TWO_THIRDS_BY_LN2 + base_low
    log_high = upper(((z_high + z_low) + base_high) + n)
    log_low = z_low - (((log_high - n) - base_high) - z_high)

    # Multiply the logarithm by y.
    y_high = upper(y)
    p_low = (y - y_high) * log_high + y * log_low
    p_high = y_high * log_high
    z = p_low + p_high
    if z > 1024.0:
        return math.inf
    if z < -1080.0:
        return 0.0

    # Raise 2 to the power of the product.
    k = (z + TO_WHOLE) - TO_WHOLE
    p_high -= k
    t = upper(p_low + p_high)
    u = t * LN2_24
    v = (p_low - (t - p_high)) * LN2 + t * LN2_REST
    z = u + v
    w = v - (z - u)
    t = z * z
    c = z - t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))))

    return scaled(1.0 - (((z * c) / (c - 2.0) - (w + z * w)) - z), int(k))


__all__ = ["exp", "log", "power"]
