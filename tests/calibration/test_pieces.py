"""Parts of the fits against naive twins, simulated formulas and the engine's kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.calibration.clock import clock_offset
from botyard.calibration.covariance import Covariance, whitened
from botyard.calibration.fitting import Parameter, least_squares
from botyard.calibration.log import Series
from botyard.calibration.matching import Matcher
from botyard.calibration.motion import ramped
from botyard.calibration.planar import arc, between, compose, inverse, twist_of, wrap
from botyard.calibration.robotfile import calibrated, robot_text
from botyard.calibration.segments import Pieces, by_wheels, chain, corrected
from botyard.errors import CalibrationError
from botyard.model.devices import make_spec
from botyard.model.kinematics import Axes, Drive
from botyard.model.library import load_robot, parse_robot, robot_names
from tests import naive
from tests.calibration.making import HALL, twenty

POSE = st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3, 3)).map(np.array)


@given(POSE, POSE)
def test_poses_in_the_plane(a: np.ndarray, b: np.ndarray) -> None:
    def same(p: np.ndarray, q: np.ndarray) -> None:
        assert p[:2] == pytest.approx(q[:2], abs=1e-9)
        assert wrap(p[2] - q[2]) == pytest.approx(0.0, abs=1e-9)

    same(compose(a, between(a, b)), b)
    same(compose(inverse(a), a), np.zeros(3))
    twist = twist_of(a)
    same(np.append(arc(twist), twist[2]), a)


def test_a_twist_is_the_way_of_many_short_steps() -> None:
    twist = np.array([1.2, 0.1, 1.5])
    pose = np.zeros(3)
    for _ in range(20_000):
        pose = compose(pose, np.array([*twist[:2] / 20_000, twist[2] / 20_000]))
    assert arc(twist) == pytest.approx(pose[:2], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_ramp_is_that_of_the_engine(seed: int) -> None:
    """Velocities at the ends of steps equal the kernel's exactly."""
    rng = np.random.default_rng(seed)
    accel, decel, step = rng.uniform(0.2, 1.5, 3)[0], rng.uniform(0.2, 1.5), 0.1
    times = np.arange(20) * 7 * step
    targets = rng.uniform(-0.8, 0.8, 20)
    targets[0] = 0.0
    velocity, expected = 0.0, []
    for k in range(19 * 7):
        velocity = naive.ramp(velocity, targets[k // 7], accel, decel, step, 1e-9)
        expected.append(velocity)

    at = (np.arange(19 * 7) + 1) * step
    assert ramped(
        times, targets, accel, decel, step, at, is_smooth=False
    ) == pytest.approx(np.array(expected), abs=1e-9)


def dense(bands: np.ndarray) -> np.ndarray:
    n = bands.shape[1]
    whole = np.zeros((n, n))
    for d, row in enumerate(bands):
        for column in range(n - d):
            whole[column + d, column] = whole[column, column + d] = row[column]

    return whole


def test_the_covariance_is_that_of_simulated_deviations() -> None:
    """Each of the four sources alone agrees with many draws."""
    rng = np.random.default_rng(1)
    k, per, step = 4, 6, 0.1
    twists = np.stack(
        [
            rng.uniform(0.05, 0.1, k * per),
            np.zeros(k * per),
            rng.uniform(-0.2, 0.3, k * per),
        ],
        axis=1,
    )
    pieces = Pieces(
        np.repeat(np.arange(k), per), np.arange(k) * per, twists, np.full(k * per, step)
    )
    ends = chain(pieces, twists)[2]
    robot = [np.array([1.0, 2.0, 0.7])]
    for one in ends:
        robot.append(compose(robot[-1], one))
    truth = np.array(robot)
    covariance = Covariance([(pieces, twists, truth[:, 2], ends)], step)
    size, draws = 1e-3, 3000
    for source in range(4):
        rows = []
        for _ in range(draws):
            erring, poses = twists.copy(), truth.copy()
            if source < 2:
                erring[:, 2 * source] *= 1.0 + size * rng.normal(size=len(twists))
            elif source == 2:
                poses[:, :2] += size * rng.normal(size=(k + 1, 2))
            else:
                poses[:, 2] += size * rng.normal(size=k + 1)

            difference = between(poses[:-1], poses[1:]) - chain(pieces, erring)[2]
            difference[:, 2] = wrap(difference[:, 2])
            rows.append(difference.reshape(-1))

        found, determined = (
            np.cov(np.array(rows).T) / size**2,
            dense(covariance.bands[source]),
        )
        scale = np.abs(determined).max()
        assert np.abs(found - determined).max() < 0.12 * scale, source


def test_variances_come_back_from_draws_of_them() -> None:
    rng = np.random.default_rng(2)
    k, per, step = 400, 10, 0.1
    twists = np.stack(
        [
            rng.uniform(0.0, 0.06, k * per),
            np.zeros(k * per),
            rng.uniform(-0.1, 0.1, k * per),
        ],
        axis=1,
    )
    pieces = Pieces(
        np.repeat(np.arange(k), per), np.arange(k) * per, twists, np.full(k * per, step)
    )
    ends = chain(pieces, twists)[2]
    heading = np.concatenate([[0.0], np.cumsum(ends[:, 2])])
    covariance = Covariance([(pieces, twists, heading, ends)], step)
    known = np.array([4e-4, 9e-4, 1e-6, 4e-6])
    whole = np.linalg.cholesky(
        dense(np.tensordot(known, covariance.bands, 1)) + 1e-14 * np.eye(3 * k)
    )
    deviations = whole @ rng.normal(size=3 * k)
    found, spread = covariance.fit(deviations, np.full(4, 1e-5), np.full(4, 1e-5))
    away = (np.log(found) - np.log(known)) / np.sqrt(np.diag(spread))
    assert np.abs(away).max() < 3.0
    assert np.sqrt(np.diag(spread)).max() < 0.3
    assert np.std(whitened(covariance.lower(known), deviations)) == pytest.approx(
        1.0, abs=0.06
    )


def test_corrected_odometry_is_that_of_the_wheels() -> None:
    left, right, nominal, actual = 1.02, 0.97, 0.36, 0.38
    # These are the distances of the wheels as odometry reports them, m.
    dl, dr = 0.5, 0.7
    correction = by_wheels(
        (left + right) / 2, (right - left) / 2, actual / nominal, nominal
    )
    determined = corrected(
        np.array([[(dl + dr) / 2, 0.0, (dr - dl) / nominal]]), correction
    )[0]
    assert determined[0] == pytest.approx((left * dl + right * dr) / 2)
    assert determined[2] == pytest.approx((right * dr - left * dl) / actual)


def test_what_is_told_and_what_is_not() -> None:
    """Two parameters that occur only as a sum:

    one keeps its value, the other takes the whole.
    """
    x = np.linspace(0.0, 1.0, 50)
    parameters = [Parameter(name, "", "", 0.0, 1.0) for name in ("a", "b", "c")]
    data = 3.0 * x + 1.0 + np.random.default_rng(1).normal(0.0, 0.01, 50)
    fit = least_squares(
        parameters, lambda p: (p[0] + p[1]) + p[2] * x - data, is_scaled=False
    )
    assert sorted(fit.determined[:2]) == [False, True]
    assert fit["a"] + fit["b"] == pytest.approx(1.0, abs=0.02)
    assert fit.value("c").holds(3.0)
    with pytest.warns(DeprecationWarning, match="is_determined"):
        # `is_told` is the name of releases before 0.2.
        assert fit.value("c").is_told
    assert fit.directions[0].information == pytest.approx(0.0, abs=1e-6)
    assert fit.directions[0].weights["a"] == pytest.approx(0.5, abs=0.01)
    design = np.stack([np.ones(50), x], axis=1)
    expected = np.linalg.inv(design.T @ design) * 1e-4
    assert fit.covariance[2, 2] == pytest.approx(expected[1, 1], rel=0.5)


def test_expected_ranges_and_their_derivatives() -> None:
    laser = load_robot("p3dx").lasers[0]
    matcher = Matcher(HALL, laser, np.linspace(-1.5, 1.5, 91))
    poses = np.array([[5.5, 4.5, 0.3], [2.0, 3.0, -2.0], [8.0, 6.0, 1.0]])
    here = matcher.expect(poses)
    assert here.good.mean() > 0.8
    for axis, step in enumerate((1e-5, 1e-5, 1e-6)):
        there = matcher.expect(poses + step * np.eye(3)[axis]).ranges
        determined = (there - here.ranges) / step
        assert determined[here.good] == pytest.approx(
            here.gradients[..., axis][here.good], abs=0.02
        )

    moved = poses + np.array([0.15, -0.1, 0.08])
    assert matcher.match(moved, here.ranges, has_prior=True) == pytest.approx(
        poses, abs=1e-3
    )
    assert matcher.unexplained(poses, here.ranges) == 0.0
    assert matcher.unexplained(poses + np.array([1.0, 0.5, 0.0]), here.ranges) > 0.5
    matcher.close()


def test_clocks() -> None:
    one = twenty()[5]
    truth = one.truth.shifted(-5000.25)
    for shift in (-3.4, 0.0, 12.7, 1e6):
        assert clock_offset(one.log.odometry, truth.shifted(-shift)) == pytest.approx(
            shift, abs=0.06
        )

    assert clock_offset(
        one.log.odometry, truth.between(40.0, 80.0).shifted(77.0)
    ) == pytest.approx(-77.0, abs=0.06)
    still = Series(np.arange(100.0), np.zeros((100, 3)))
    with pytest.raises(CalibrationError, match="not at all"):
        clock_offset(still, truth)
    with pytest.raises(CalibrationError, match="do not match"):
        clock_offset(one.log.odometry, twenty()[6].truth)


def test_robot_files_give_the_robot_back() -> None:
    """Every shipped model with wheels on one axis is read back, as differences or in
    full when the name is taken.
    """
    for name in robot_names():
        base = load_robot(name)
        if base.drive is not Drive.DIFF:
            continue
        spec = replace(
            base,
            odometry_error=Axes(0.0312345, base.odometry_error.y, 0.02),
            odometry_error_low=Axes(0.01, -0.01, -0.01),
            limits=replace(base.limits, accel=Axes(0.4, base.limits.accel.y, 1.234567)),
            devices=(*base.devices, make_spec("normal_errors", range_bias=0.012)),
        )
        for stem in ("mine", name):
            again = parse_robot(robot_text(spec, base, stem, ["a remark"]), stem)
            assert again.odometry_error == spec.odometry_error
            assert again.odometry_error_low == spec.odometry_error_low
            assert again.limits.accel.a == pytest.approx(1.234567, rel=1e-5)
            assert again.device("normal_errors").range_bias == 0.012
            assert np.array(again.outline) == pytest.approx(
                np.array(base.outline), abs=1e-6
            )

        assert f'extends = "{name}"' in robot_text(spec, base, "mine", [])

    assert calibrated(load_robot("p3dx"), None, None, None) == load_robot("p3dx")
