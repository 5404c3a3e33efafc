"""Logs of robots with skid steering, Mecanum and omnidirectional drives give their errors
back.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from botyard.calibration import calibrate
from botyard.calibration.calibration import Calibration
from botyard.calibration.log import Log, Series
from botyard.calibration.odometryvalues import ALPHAS, wheels_of
from botyard.calibration.readers import read_log
from botyard.calibration.robotfile import calibrated, robot_text
from botyard.calibration.segments import by_axes, by_wheels, corrected
from botyard.model.fourwheels import WHEELS
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot, parse_robot
from botyard.model.robot import NO_DRIFT, OdometryDrift, RobotSpec
from botyard.sim.simulation import Simulation
from tests.calibration.making import CLOCK_S, MOCAP, STEP

COUNT = 6
SLIP = 0.03
SPREAD = Axes(0.01, 0.015, 0.01)


def real(base: RobotSpec, seed: int) -> tuple[RobotSpec, dict[str, float]]:
    """Return a robot with errors of odometry, and these errors."""
    rng = np.random.default_rng(seed)
    x, y, a = rng.uniform(-0.05, 0.05, 3).tolist()
    sideways = base.kinematics.moves_sideways
    spec = replace(
        base,
        odometry_error=Axes(x + SPREAD.x, y + SPREAD.y, a + SPREAD.a),
        odometry_error_low=Axes(x - SPREAD.x, y - SPREAD.y, a - SPREAD.a),
        odometry_drift=NO_DRIFT,
        perfect_odometry=False,
        commands=type(base.commands)(),
    )
    rolls = 1.0
    known = {}
    if spec.wheels is not None:
        # Odometry measures the travel of the wheels, with slip.
        rolls = 1.0 / (1.0 - SLIP)
        wheels = replace(spec.wheels, slip=SLIP)
        if sideways:
            parts = wheels_of(*rng.uniform(-0.02, 0.02, 3).tolist())
            wheels = replace(wheels, errors=tuple(one - 1.0 for one in parts))
            for name, one in zip(WHEELS, parts, strict=True):
                known[f"{name.replace('_', ' ')} wheel"] = one
        spec = replace(spec, wheels=wheels)
    known |= {
        "forward error": (1.0 + x) * rolls - 1.0,
        "turning error": (1.0 + a) * rolls - 1.0,
    }
    if sideways:
        known["lateral error"] = (1.0 + y) * rolls - 1.0
        known["lateral spread"] = SPREAD.y * rolls
    else:
        ratio = rng.uniform(0.97, 1.03)
        spec = replace(spec, wheel_ratio=ratio)
        assert base.wheels is not None
        known["E_d"] = ratio
        known["track factor"] = base.wheels.track_factor * (1.0 + a) / (1.0 + x)
    return spec, known


def driven(spec: RobotSpec, seed: int, seconds: int = 150) -> tuple[Log, Series]:
    """Return odometry and measured poses of a robot that drives about."""
    rng = np.random.default_rng(100 + seed)
    sim = Simulation(seed=seed, warn=None, step=STEP)
    robot = sim.add_robot(spec, "bob")
    time, odom, pose = [], [], []
    top = 0.5 * np.array(spec.limits.max_speed.as_tuple())
    for k in range(round(seconds / STEP)):
        if k % 20 == 0:
            v, vy, w = (rng.uniform(-1.0, 1.0, 3) * np.minimum(top, 0.6)).tolist()
            robot.command(v=v, vy=vy, w=w)
        sim.step()
        time.append(sim.time)
        odom.append(tuple(robot.odom))
        pose.append(tuple(robot.truth))
    sim.close()
    at = np.array(time)
    truth = np.array(pose) + rng.normal(0.0, 1.0, (len(at), 3)) * MOCAP
    log = Log(source="drive", odometry=Series(at, np.array(odom)))
    return log, Series(at + CLOCK_S, truth)


def fitted(base: RobotSpec, spec: RobotSpec, seed: int, **how: object) -> Calibration:
    """Return the calibration of one drive."""
    log, truth = driven(spec, seed)
    return calibrate([log], base, truths=[truth], **how)  # type: ignore[arg-type]


def sliding(spec: RobotSpec, slide: float) -> RobotSpec:
    """Return a model with its centre of rotation in front of the origin by `slide`, m."""
    assert spec.wheels is not None
    return replace(spec, wheels=replace(spec.wheels, slide=slide))


@pytest.mark.parametrize("model", ["jackal", "husky", "ridgeback", "seekur"])
def test_errors_of_all_wheels_come_back_within_their_intervals(model: str) -> None:
    base, hits, count = load_robot(model), 0, 0
    for seed in range(COUNT):
        spec, known = real(base, seed)
        found = fitted(base, spec, seed, hold_out=seed == 0, odometry_law="step")
        for name, value in known.items():
            assert found.value(name).is_determined, name
            assert found.value(name).value == pytest.approx(value, abs=0.02), name
            hits += found.value(name).holds(value)
            count += 1
        if seed == 0:
            place = next(h for h in found.held_out if h.name.startswith("place"))
            assert place.after < 0.3 * place.before
    assert hits >= 0.85 * count, (hits, count)


@pytest.mark.parametrize("model", ["jackal", "ridgeback", "seekur"])
def test_the_file_simulates_the_errors(model: str) -> None:
    """Another fit of the calibrated robot finds what the first fit found."""
    base = load_robot(model)
    spec, known = real(base, 1)
    found = fitted(base, spec, 1, hold_out=False, odometry_law="step")
    again = parse_robot(robot_text(found.robot, base, "ours", []), "ours")
    assert again.wheels is None or again.wheels.slip == 0.0
    second = fitted(base, again, 2, hold_out=False, odometry_law="step")
    for name, value in known.items():
        assert second.value(name).value == pytest.approx(value, abs=0.008), name


def test_a_fit_of_the_same_log_with_its_own_file_changes_nothing() -> None:
    base = load_robot("ridgeback")
    spec, _ = real(base, 3)
    log, truth = driven(spec, 3)
    first = calibrate([log], spec, truths=[truth], hold_out=False).robot
    second = calibrate([log], first, truths=[truth], hold_out=False).robot
    assert first.wheels is not None
    assert second.wheels is not None
    # The fitted errors and their spread contain the slip.
    assert first.wheels.slip == 0.0
    assert second.wheels.errors == pytest.approx(first.wheels.errors, abs=1e-9)
    assert second.odometry_error.as_tuple() == pytest.approx(
        first.odometry_error.as_tuple(), abs=1e-9
    )


@pytest.mark.parametrize("model", ["jackal", "ridgeback"])
def test_values_that_a_log_does_not_determine_keep_the_odometry_of_the_model(
    model: str,
) -> None:
    base = load_robot(model)
    assert base.wheels is not None
    errors = (0.02, 0.01, 0.02, 0.01)
    base = replace(base, wheels=replace(base.wheels, slip=SLIP, errors=errors))
    # A log of a robot that stands determines nothing.
    at = np.arange(0.0, 60.0, STEP)
    still = Series(at, np.zeros((len(at), 3)))
    found = calibrate(
        [Log(source="still", odometry=still)], base, truths=[still], hold_out=False
    )
    assert not found.value("forward error").is_determined
    before, after = (
        base.kinematics.odometry_matrix,
        found.robot.kinematics.odometry_matrix,
    )
    assert before is not None
    assert after is not None
    high = found.robot.odometry_error.as_tuple()
    for k in (0, 2):
        assert (1.0 + high[k]) * after[4 * k] == pytest.approx(before[4 * k])


def test_variances_by_distance_of_a_drive_to_all_sides() -> None:
    base = replace(
        load_robot("ridgeback"), commands=type(load_robot("p3dx").commands)()
    )
    variances = (2e-4, 1e-4, 1e-4, 5e-5)
    spec = replace(
        base,
        odometry_error=Axes(),
        odometry_error_low=Axes(),
        odometry_drift=OdometryDrift(*variances),
        perfect_odometry=False,
    )
    hits = sum(
        fitted(base, spec, seed, hold_out=False).value(name).holds(value)
        for seed in range(3)
        for name, value in zip(ALPHAS, variances, strict=True)
    )
    assert hits >= 9, hits


@pytest.mark.parametrize(("before", "slide"), [(0.0, 0.05), (0.03, -0.04)])
def test_the_centre_of_rotation_comes_back_if_the_place_of_the_origin_is_known(
    before: float, slide: float
) -> None:
    base = sliding(load_robot("jackal"), before)
    log, truth = driven(sliding(real(base, 1)[0], slide), 1)
    truth = replace(truth, time=truth.time - CLOCK_S)
    log = replace(log, truth=truth, has_exact_clock=True)
    known = calibrate([replace(log, has_true_origin=True)], base)
    assert known.value("slide").value == pytest.approx(slide, abs=0.002)
    again = parse_robot(robot_text(known.robot, base, "ours", []), "ours")
    assert again.wheels is not None
    assert again.wheels.slide == pytest.approx(slide, abs=0.002)
    place = next(h for h in known.held_out if h.name.startswith("place"))
    assert place.after < 0.3 * place.before

    # Markers at an unknown place show the same motion for any centre.
    other = calibrate([log], base, hold_out=False)
    assert "slide" not in [value.name for value in other.values]
    assert other.robot.wheels is not None
    assert other.robot.wheels.slide == before
    assert other.value("E_d").value == pytest.approx(known.value("E_d").value, abs=1e-6)


def test_recordings_have_the_place_of_the_origin(tmp_path: Path) -> None:
    base = load_robot("husky")
    sim = Simulation(seed=2, warn=None, step=STEP)
    robot = sim.add_robot(sliding(base, 0.08), "bob")
    rng = np.random.default_rng(2)
    with sim.record(tmp_path / "run.mcap"):
        for _ in range(30):
            robot.command(v=rng.uniform(-0.5, 0.5), w=rng.uniform(-1.0, 1.0))
            sim.run(2.0)
    sim.close()
    found = calibrate([read_log(tmp_path / "run.mcap", base)], base, hold_out=False)
    assert found.value("slide").value == pytest.approx(0.08, abs=0.003)


# -- formulas


def test_a_centre_of_rotation_in_front_makes_the_origin_slide() -> None:
    """The motion of wheels: each side rolls, and the body turns about its centre."""
    rng = np.random.default_rng(5)
    v, w, slide, lever, longer = *rng.uniform(-1, 1, (2, 30)), 0.07, 0.3, 1.2
    left, right = (v - w * lever * longer) / 0.97, (v + w * lever * longer) / 1.01
    odometry = np.stack(
        [0.5 * (left + right), np.zeros(30), 0.5 * (right - left) / lever], axis=1
    )
    found = corrected(odometry, by_wheels(0.99, 0.02, longer, 2.0 * lever, slide))
    assert found == pytest.approx(np.stack([v, -slide * w, w], axis=1))


def test_mecanum_wheels_of_four_sizes() -> None:
    kinematics = load_robot("ridgeback").kinematics
    lever, parts = kinematics.lever, wheels_of(0.01, -0.02, 0.015)
    assert np.mean(parts) == pytest.approx(1.0)
    right = np.subtract(np.add(parts[1], parts[3]), np.add(parts[0], parts[2]))
    assert right == pytest.approx(4 * 0.01)
    true = np.random.default_rng(6).uniform(-1, 1, (30, 3))
    scales = np.array([0.9, 0.8, 1.1])
    # Odometry takes each wheel for one of nominal size: first the travel of each.
    v, vy, w = (true / scales).T
    a, b, c, d = (
        (v - vy - lever * w) / parts[0],
        (v + vy + lever * w) / parts[1],
        (v + vy - lever * w) / parts[2],
        (v - vy + lever * w) / parts[3],
    )
    odometry = np.stack(
        [a + b + c + d, -a + b + c - d, (-a + b - c + d) / lever], axis=1
    )
    found = corrected(
        0.25 * odometry, by_axes(tuple(scales.tolist()), parts, kinematics)
    )
    assert found == pytest.approx(true)


def test_a_default_replaces_the_value_of_the_model_that_a_file_extends() -> None:
    base = load_robot("jackal")
    assert base.wheels is not None
    changed = replace(base, wheels=replace(base.wheels, track_factor=1.0), name="ours")
    text = robot_text(changed, base, "ours", [])
    assert "track_factor = 1.0" in text
    again = parse_robot(text, "ours")
    assert again.wheels is not None
    assert again.wheels.track_factor == 1.0
    assert calibrated(again, None, None, None) == again
