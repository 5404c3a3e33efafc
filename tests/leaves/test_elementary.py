"""Elementary functions:

accuracy, and equal bits for scalars, arrays and compiled code.
"""

from __future__ import annotations

import functools
import math
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from botyard.native.kernels import ENTRIES, entry_kernels
from botyard.numerics import elementary, elementwise, exponentials

DIGITS = 60
INF, NAN = math.inf, math.nan
numbers = st.floats(allow_nan=False, allow_infinity=False)


# -- references: sums of many digits


@functools.cache
def pi(digits: int) -> Decimal:
    """Return π by Machin's formula."""
    with localcontext() as context:
        context.prec = digits + 10

        def arccot(n: int) -> Decimal:
            term = total = Decimal(1) / n
            k, sign = 3, -1
            while abs(term) > Decimal(10) ** -(digits + 5):
                term /= n * n
                total += sign * term / k
                k, sign = k + 2, -sign

            return total

        return 4 * (4 * arccot(5) - arccot(239))


def cosine_sine(angle: float) -> tuple[Decimal, Decimal]:
    """Return cosine and sine by their series.

    The angle is reduced with as many digits of π as it has before the point, and 60
    more.
    """
    x = Decimal(angle)
    digits = DIGITS + max(0, x.adjusted())
    with localcontext() as context:
        context.prec = digits + 30
        half = pi(digits + 30) / 2
        quarters = (x / half).to_integral_value()
        r = x - quarters * half
        context.prec = DIGITS
        s, c, term, k = Decimal(0), Decimal(0), Decimal(1), 0
        while k < 4 or abs(term) > abs(r) * Decimal(10) ** -DIGITS:
            sign = -1 if k % 4 > 1 else 1
            if k % 2:
                s += sign * term
            else:
                c += sign * term

            k += 1
            term = term * r / k

    quarter = int(quarters) % 4
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarter]


def arctangent(x: Decimal) -> Decimal:
    """Return the arctangent by its series, after the angle is halved to make the
    argument small.
    """
    with localcontext() as context:
        context.prec = DIGITS
        halvings = 0
        while abs(x) > Decimal("0.01"):
            x = x / (1 + (1 + x * x).sqrt())
            halvings += 1

        total = term = x
        k = 3
        while term and abs(term) > abs(x) * Decimal(10) ** -DIGITS:
            term = -term * x * x
            total += term / k
            k += 2

        return total * 2**halvings


def direction(y: float, x: float) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        if x == 0.0:
            return pi(DIGITS) / 2 * (1 if y > 0 else -1)
        found = arctangent(Decimal(y) / Decimal(x))
        return (
            found
            if x > 0.0
            else found + pi(DIGITS) * (1 if math.copysign(1.0, y) > 0 else -1)
        )


def exact(function: Callable[[Decimal], Decimal]) -> Callable[[float], Decimal]:
    def with_digits(*values: float) -> Decimal:
        with localcontext() as context:
            context.prec, context.Emin, context.Emax = DIGITS, -10_000, 10_000
            return function(*map(Decimal, values))

    return with_digits


def off(found: float, right: Decimal) -> float:
    """Return the error in units of the last place of the nearest double."""
    # Equal values include zeros and infinities; to compute a difference below half a unit exactly
    # would take too long.
    if found == float(right):
        return 0.5

    with localcontext() as context:
        context.prec, context.Emin = DIGITS, -10_000
        return float(abs(Decimal(found) - right) / Decimal(math.ulp(float(right))))


def some(seed: str, count: int, *ranges: tuple[float, float]) -> Iterator[float]:
    draw = random.Random(seed)
    for _ in range(count):
        for low, high in ranges:
            yield draw.uniform(low, high)


NEAR_QUARTERS = [
    sign * math.nextafter(k * math.pi / 2, way)
    for k in range(1, 9)
    for way in (0.0, INF)
    for sign in (1, -1)
]
"""Doubles beside multiples of π/2, where most bits cancel."""
HARD = [
    math.pi,
    math.pi / 2,
    6381956970095103.0 * 2.0**797,
    5e5,
    math.nextafter(5e5, INF),
    411557.987,
    1e22,
    1.7976931348623157e308,
    2.0**970,
]
"""And the double that lies nearest to a multiple of π/2 of all (Ng, "Argument reduction
for huge arguments", 1992).
"""


@given(numbers)
def test_cosine_and_sine_of_any_angle(angle: float) -> None:
    c, s = elementary.cosine_sine(angle)
    right_c, right_s = cosine_sine(angle)
    assert off(c, right_c) < 1.0
    assert off(s, right_s) < 1.0
    assert (elementary.cos(angle), elementary.sin(angle)) == (c, s)


def test_cosine_and_sine_at_many_places() -> None:
    places = [
        *NEAR_QUARTERS,
        *HARD,
        *some("sine", 200, (-1.0, 1.0), (-8.0, 8.0), (-1e5, 1e5), (-1e9, 1e9)),
    ]
    places += [k * math.pi / 4 for k in range(-20, 21)]
    worst = 0.0
    for angle in places:
        right = cosine_sine(angle)
        worst = max(
            worst,
            *(
                off(f, r)
                for f, r in zip(elementary.cosine_sine(angle), right, strict=True)
            ),
        )
        assert off(elementary.tan(angle), right[1] / right[0]) < 2.5

    assert worst < 1.0


def test_directions_at_many_places() -> None:
    values = [
        *some("atan2", 15, (-1.0, 1.0), (-100.0, 100.0)),
        1e-300,
        -1e300,
        5e-324,
        1.0,
    ]
    for y in values:
        for x in values:
            right = direction(y, x)
            assert off(elementary.atan2(y, x), right) < 1.0

    for x in some("atan", 300, (-0.5, 0.5), (-3.0, 3.0), (-1e3, 1e3)):
        assert off(elementary.atan(x), arctangent(Decimal(x))) < 1.0


@given(numbers, numbers)
@example(5e-324, -5e-324)
@example(1e308, 1e308)
def test_lengths(x: float, y: float) -> None:
    right = exact(lambda a, b: (a * a + b * b).sqrt())(x, y)
    if right < Decimal("1.7e308"):
        assert off(elementary.hypot(x, y), right) < 1.5


@given(st.floats(-740.0, 705.0))
@example(0.0)
@example(5e-324)
def test_exponentials(x: float) -> None:
    found, right = exponentials.exp(x), exact(Decimal.exp)(x)
    assert off(found, right) < 1.0


@given(st.floats(0.0, exclude_min=True, allow_infinity=False))
@example(1.0)
@example(math.nextafter(1.0, 0.0))
@example(5e-324)
def test_logarithms(x: float) -> None:
    assert off(exponentials.log(x), exact(Decimal.ln)(x)) < 1.0


@given(st.floats(0.0, 1.0, exclude_min=True), st.floats(-1.0, 1.0))
@example(math.nextafter(1.0, 0.0), 1.0)
@example(5e-324, 0.5)
def test_powers_of_fractions(x: float, y: float) -> None:
    assert (
        off(exponentials.power(x, y), exact(lambda a, b: (b * a.ln()).exp())(x, y))
        < 1.0
    )


def test_powers_and_arccosines_at_many_places() -> None:
    for x, y in zip(
        some("x", 200, (0.0, 2.0), (0.0, 1e3)),
        some("y", 200, (-90.0, 90.0), (-3.0, 3.0)),
        strict=True,
    ):
        assert (
            off(exponentials.power(x, y), exact(lambda a, b: (b * a.ln()).exp())(x, y))
            < 1.0
        )

    for x in some("acos", 200, (-1.0, 1.0)):
        root = exact(lambda a: (1 - a * a).sqrt())(x)
        with localcontext() as context:
            context.prec = DIGITS
            asin = arctangent(Decimal(x) / root)
            acos = pi(DIGITS) / 2 - asin

        assert off(elementary.asin(x), asin) < 2.5
        assert off(elementary.acos(x), acos) < 2.5


# -- special values


def bits(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    5e-324,
    -5e-324,
    2.2e-308,
    1e-300,
    1e300,
    -1e300,
    INF,
    -INF,
    NAN,
    1e22,
    710.0,
    -750.0,
]


def function_of(name: str) -> Callable[..., float]:
    """Return a function of either module by its name."""
    found: Callable[..., float] = (vars(elementary) | vars(exponentials))[name]
    return found


@pytest.mark.parametrize(
    "name", ["sin", "cos", "tan", "atan", "exp", "log", "acos", "asin"]
)
@pytest.mark.parametrize("x", SPECIAL)
def test_special_values_are_those_of_c(name: str, x: float) -> None:
    found = function_of(name)(x)
    try:
        right = getattr(math, name)(x)
    # Python raises where C gives NaN or a pole.
    except ValueError:
        right = -INF if name == "log" and x == 0.0 else NAN
    except OverflowError:
        right = INF

    if math.isnan(right) or right in (0.0, INF, -INF):
        # Compare bit patterns: NaN is unequal to itself, and −0.0 == 0.0.
        assert bits(found) == bits(right)
    else:
        assert abs(found - right) <= 2.5 * math.ulp(right)


@pytest.mark.parametrize("y", SPECIAL)
@pytest.mark.parametrize("x", SPECIAL)
def test_special_pairs_are_those_of_c(x: float, y: float) -> None:
    names = [("atan2", math.atan2), ("hypot", math.hypot)]
    for name, function in names:
        found, right = function_of(name)(y, x), function(y, x)
        assert bits(found) == bits(right) or abs(found - right) <= math.ulp(right), name

    if x >= 0.0 or math.isnan(x):
        try:
            right = math.pow(x, y)
        # 0 to a negative power is a pole.
        except ValueError:
            right = INF
        except OverflowError:
            right = INF

        found = exponentials.power(abs(x), y)
        assert bits(found) == bits(right) or abs(found - right) <= math.ulp(right)


def test_plain_floats_come_out_of_numbers_of_numpy() -> None:
    one = np.float64(0.7)
    for name in ("sin", "cos", "tan", "atan", "exp", "log", "acos", "asin"):
        assert type(function_of(name)(one)) is float, name
    for name in ("atan2", "hypot", "power"):
        assert type(function_of(name)(one, one)) is float, name


# -- the same bits: arrays, and compiled

PLACES = np.array(
    [
        *SPECIAL,
        *NEAR_QUARTERS,
        *HARD,
        *some("places", 100, (-2.0, 2.0), (-100.0, 100.0), (-1e7, 1e7)),
    ]
)


def same(found: np.ndarray, right: list[float]) -> None:
    assert [hex(bits(v)) for v in found.tolist()] == [hex(bits(v)) for v in right]


@pytest.mark.parametrize("length", [1, len(PLACES)])
def test_arrays_have_the_same_bits(length: int) -> None:
    x = PLACES[:length]
    for name in ("sin", "cos", "log"):
        same(
            getattr(elementwise, name)(x),
            [function_of(name)(v) for v in x.tolist()],
        )

    other = np.roll(PLACES, 5)[:length]
    for name in ("atan2", "hypot"):
        right = [
            function_of(name)(a, b)
            for a, b in zip(x.tolist(), other.tolist(), strict=True)
        ]
        same(getattr(elementwise, name)(x, other), right)


@given(
    st.lists(
        numbers,
        min_size=elementwise.MAX_SCALAR_SIZE + 1,
        max_size=elementwise.MAX_SCALAR_SIZE + 8,
    )
)
def test_arrays_have_the_same_bits_for_any_numbers(values: list[float]) -> None:
    x, y = np.array(values), np.array(values[::-1])
    same(elementwise.sin(x), [elementary.sin(v) for v in values])
    same(elementwise.log(x), [exponentials.log(v) for v in values])
    same(elementwise.log(np.abs(x)), [exponentials.log(abs(v)) for v in values])
    same(
        elementwise.atan2(x, y),
        [elementary.atan2(a, b) for a, b in zip(values, values[::-1], strict=True)],
    )
    same(
        elementwise.hypot(x, y),
        [elementary.hypot(a, b) for a, b in zip(values, values[::-1], strict=True)],
    )


def test_arrays_of_any_shape() -> None:
    for shape in ((), (2, 3), (5, 8), (0, 3)):
        x = np.full(shape, 0.3)
        c, s = elementwise.cosine_sine(x)
        assert (
            c.shape
            == s.shape
            == elementwise.atan2(x, 1.0).shape
            == elementwise.hypot(x, x).shape
            == shape
        )

    assert elementwise.atan2(np.ones((40, 1)), np.ones(3)).shape == (40, 3)


@entry_kernels(elementary.PACKAGE)
def compute_all(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    for k in range(x.shape[0]):
        out[0, k], out[1, k] = elementary_cosine_sine(x[k])
        out[2, k] = elementary_tan(x[k])
        out[3, k] = elementary_atan2(y[k], x[k])
        out[4, k] = elementary_hypot(x[k], y[k])
        out[5, k] = elementary_exp(x[k])
        out[6, k] = elementary_log(abs(x[k]))
        out[7, k] = elementary_power(abs(x[k]), y[k])
        out[8, k] = elementary_acos(x[k])
        out[9, k] = elementary_asin(x[k])


elementary_cosine_sine, elementary_tan, elementary_atan2 = (
    elementary.cosine_sine,
    elementary.tan,
    elementary.atan2,
)
elementary_hypot, elementary_exp, elementary_log = (
    elementary.hypot,
    exponentials.exp,
    exponentials.log,
)
elementary_power, elementary_acos, elementary_asin = (
    exponentials.power,
    elementary.acos,
    elementary.asin,
)

# Remove the entry of this test, so that no other test finds it in the table.
del ENTRIES[compute_all.name]


def test_machine_code_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's code for this processor, which may have an instruction that multiplies
    and adds with one rounding.
    """
    monkeypatch.setattr("botyard.native.kernels.mode", lambda: "jit")
    x, y = PLACES, np.roll(PLACES, 7)
    out = np.zeros((10, len(x)))
    compute_all(x, y, out)
    for k, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        right = [
            *elementary.cosine_sine(a),
            elementary.tan(a),
            elementary.atan2(b, a),
            elementary.hypot(a, b),
            exponentials.exp(a),
            exponentials.log(abs(a)),
            exponentials.power(abs(a), b),
            elementary.acos(a),
            elementary.asin(a),
        ]
        same(out[:, k], right)
