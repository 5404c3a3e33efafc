from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from botyard.geometry import (
    IDENTITY,
    Pose,
    Twist,
    compose,
    exp,
    inverse,
    relative,
    transform_point,
)
from tests import naive

coordinate = st.floats(-100, 100)
angle = st.floats(-math.pi, math.pi)
poses = st.builds(Pose, coordinate, coordinate, angle)


def close(a: Pose, b: Pose, tolerance: float = 1e-9) -> bool:
    turn = math.remainder(a.th - b.th, 2 * math.pi)
    return math.hypot(a.x - b.x, a.y - b.y) < tolerance and abs(turn) < tolerance


@given(poses)
def test_identity(a: Pose) -> None:
    assert close(compose(a, IDENTITY), a)
    assert close(compose(IDENTITY, a), a)


@given(poses)
def test_inverse_on_both_sides(a: Pose) -> None:
    assert close(compose(a, inverse(a)), IDENTITY)
    assert close(compose(inverse(a), a), IDENTITY)


@given(poses, poses, poses)
def test_associativity(a: Pose, b: Pose, c: Pose) -> None:
    assert close(compose(compose(a, b), c), compose(a, compose(b, c)))


@given(poses, poses)
def test_relative_undoes_compose(a: Pose, b: Pose) -> None:
    assert close(compose(a, relative(a, b)), b)


@given(poses, poses, coordinate, coordinate)
def test_points_follow_composition(a: Pose, b: Pose, x: float, y: float) -> None:
    one = transform_point(compose(a, b), x, y)
    two = transform_point(a, *transform_point(b, x, y))
    assert math.dist(one, two) < 1e-9


@given(
    st.builds(Twist, st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3)),
    st.floats(0, 1),
)
def test_exponential_map_equals_the_matrix_series(twist: Twist, dt: float) -> None:
    assert close(exp(twist, dt), Pose(*naive.exp(twist, dt)))


@given(st.builds(Twist, st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3)))
def test_two_half_steps_are_one_step(twist: Twist) -> None:
    half = exp(twist, 0.5)
    assert close(compose(half, half), exp(twist, 1.0))
