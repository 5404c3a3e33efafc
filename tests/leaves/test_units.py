from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard import units

finite = st.floats(-1e9, 1e9)


@given(st.floats(-1e6, 1e6))
def test_wrapped_angle_is_in_range_and_equivalent(angle: float) -> None:
    wrapped = units.wrap_angle(angle)
    assert -math.pi < wrapped <= math.pi
    assert math.isclose(math.sin(wrapped), math.sin(angle), abs_tol=1e-9)
    assert math.isclose(math.cos(wrapped), math.cos(angle), abs_tol=1e-9)


@pytest.mark.parametrize("angle", [math.pi, -math.pi, 3 * math.pi, -3 * math.pi])
def test_half_turns_wrap_to_plus_pi(angle: float) -> None:
    assert units.wrap_angle(angle) == math.pi


@given(st.integers(-10_000_000, 10_000_000))
def test_whole_millimetres_survive_the_round_trip(value: int) -> None:
    assert round(units.mm(units.from_mm(value))) == value


@given(finite)
def test_degrees_round_trip(value: float) -> None:
    assert math.isclose(
        units.deg(units.from_deg(value)), value, rel_tol=1e-12, abs_tol=1e-12
    )


@given(st.integers(-(10**7), 10**7), st.sampled_from([8, 16, 32]))
def test_wrapping_keeps_the_value_modulo_the_range(value: int, bits: int) -> None:
    wrapped = units.to_int_wrapped(float(value), bits)
    assert -(1 << (bits - 1)) <= wrapped < 1 << (bits - 1)
    assert (wrapped - value) % (1 << bits) == 0


def test_wrapping_truncates_towards_zero() -> None:
    assert units.to_int_wrapped(2.9, 16) == 2
    assert units.to_int_wrapped(-2.9, 16) == -2
    assert units.to_int_wrapped(32768.0, 16) == -32768


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_breaks_a_report(value: float) -> None:
    assert units.to_int_wrapped(value, 16) == 0
    assert -5 <= units.to_int_saturated(value, -5, 7) <= 7


@given(st.floats(allow_nan=False), st.integers(-1000, 0), st.integers(0, 1000))
def test_saturation_stays_within_limits(value: float, low: int, high: int) -> None:
    assert low <= units.to_int_saturated(value, low, high) <= high
