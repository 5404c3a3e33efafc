"""Logs of known robots give their parameters back.

A wrong map, and parameters that a log cannot determine, are reported.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from botyard.calibration import calibrate
from botyard.calibration.fitting import Value
from botyard.calibration.odometryvalues import ALPHAS
from botyard.calibration.robotfile import robot_text
from botyard.errors import ArgumentError, CalibrationError
from botyard.geometry import Pose
from botyard.model.library import load_robot, parse_robot
from botyard.model.robot import NO_DRIFT
from botyard.model.scene import Scene
from tests.calibration.making import CLOCK_S, HALL, MIDDLE, Known, known_robots, twenty

BASE = load_robot("p3dx")


def test_twenty_known_robots_come_back_within_their_intervals() -> None:
    """Random parameters, an unknown clock offset of the truth, and noise of motion
    capture.
    """
    hits: dict[str, int] = {}
    for one in twenty():
        found = calibrate(
            [one.log],
            BASE,
            truths=[one.truth],
            scene=HALL,
            hold_out=False,
            odometry_law="step",
        )
        for name, value in one.values.items():
            assert found.value(name).is_determined, name
            hits[name] = hits.get(name, 0) + found.value(name).holds(value)

    assert min(hits.values()) >= 17 and sum(hits.values()) >= 0.93 * 20 * len(hits), (
        hits
    )
    assert len(hits) == 17


ALPHA_VALUES = {"alpha1": 2e-3, "alpha2": 1e-3, "alpha3": 1e-3, "alpha4": 3e-4}


@cache
def drifting(**given: float) -> list[Known]:
    """Robots whose odometry errs only by distance and angle."""
    spreads = {"forward spread": 0.0, "turning spread": 0.0}
    return known_robots(
        6, 100.0, 11, scans=False, given={**ALPHA_VALUES, **spreads, **given}
    )


def test_variances_by_distance_and_angle_come_back_within_their_intervals() -> None:
    determined, held = 0, 0
    for one in drifting():
        found = calibrate([one.log], BASE, truths=[one.truth], hold_out=False)
        for name in ALPHAS:
            determined += found.value(name).is_determined
            held += found.value(name).holds(one.values[name])

    assert determined >= 18 and held >= 0.85 * determined, (determined, held)


def test_the_robot_file_has_the_law_by_distance_unless_the_other_one_is_asked_for() -> (
    None
):
    """The heading scatters as much as in the log, for any step."""
    one = drifting()[0]
    found = calibrate([one.log], BASE, truths=[one.truth], hold_out=False)
    spec = parse_robot(robot_text(found.robot, BASE, "ours", []), "ours")
    assert spec.odometry_drift != NO_DRIFT
    assert spec.odometry_error_low is not None
    assert spec.odometry_error.x == spec.odometry_error_low.x, (
        "nothing is drawn in each step"
    )
    assert spec.odometry_error.a == spec.odometry_error_low.a
    a, b = spec.odometry_drift, one.spec.odometry_drift
    assert a.turn_by_turn + 0.5 * a.turn_by_distance == pytest.approx(
        b.turn_by_turn + 0.5 * b.turn_by_distance, rel=0.4
    )
    by_step = calibrate(
        [one.log], BASE, truths=[one.truth], hold_out=False, odometry_law="step"
    ).robot
    assert by_step.odometry_drift == NO_DRIFT
    assert by_step.odometry_error_low is not None
    assert by_step.odometry_error.a > by_step.odometry_error_low.a + 0.02


def test_errors_of_steps_become_variances() -> None:
    """The default fits any log, also of a robot with the original's errors."""
    one = twenty()[3]
    found = calibrate(
        [replace(one.log, scans=None)], BASE, truths=[one.truth], hold_out=False
    ).robot
    drift, low = found.odometry_drift, found.odometry_error_low
    assert drift.turn_by_turn > 0.0 or drift.turn_by_distance > 0.0
    assert low is not None and found.odometry_error.a == low.a


def test_variances_that_a_log_does_not_tell_stay_as_they_were() -> None:
    (one,) = known_robots(
        1,
        40.0,
        2,
        scans=False,
        turns=False,
        given={"alpha3": 1e-3, "forward spread": 0.0},
    )
    found = calibrate(
        [one.log], BASE, truths=[one.truth.shifted(-CLOCK_S)], hold_out=False
    )
    assert found.value("alpha3").holds(1e-3)
    assert (
        not found.value("alpha1").is_determined
        and not found.value("alpha4").is_determined
    )
    assert found.robot.odometry_drift.turn_by_turn == 0.0


def test_an_unknown_law_is_refused() -> None:
    one = drifting()[0]
    with pytest.raises(
        ArgumentError, match='odometry_law: expected distance or step, found "steps"'
    ):
        calibrate([one.log], BASE, odometry_law="steps")  # type: ignore[arg-type]


def test_intervals_are_no_wider_than_they_must_be() -> None:
    """Arbitrarily wide intervals would hold every value."""
    one = twenty()[0]
    found = calibrate(
        [one.log],
        BASE,
        truths=[one.truth],
        scene=HALL,
        hold_out=False,
        odometry_law="step",
    )
    widths = {
        name: found.value(name).high - found.value(name).low for name in one.values
    }
    for name in ("forward error", "turning error"):
        assert widths[name] < 0.01
    for name in ("accel x", "decel x", "accel a", "decel a"):
        assert widths[name] < 0.1 * one.values[name]
    assert widths["latency"] < 0.01
    assert widths["range_bias"] < 0.003


@pytest.mark.parametrize("factor", [1000.0, 0.01])
def test_odometry_in_other_units_is_refused(factor: float) -> None:
    """Also with wild true poses, which are otherwise left out."""
    one = twenty()[0]
    values = one.log.odometry.values * [factor, factor, 1.0]
    log = replace(
        one.log, odometry=replace(one.log.odometry, values=values), scans=None
    )
    wild = one.truth.values.copy()
    wild[100:1000:100, 0] += 500.0
    truth = replace(one.truth, values=wild)
    with pytest.raises(CalibrationError, match="their units differ"):
        calibrate([log], BASE, truths=[truth], hold_out=False)
    assert (
        calibrate([replace(one.log, scans=None)], BASE, truths=[truth], hold_out=False)
        .value("left scale")
        .is_determined
    )


def test_a_log_that_is_given_twice_is_refused() -> None:
    one = twenty()[0]
    with pytest.raises(CalibrationError, match="are the same log"):
        calibrate([one.log, one.log], BASE, truths=[one.truth] * 2)


def test_wild_numbers_are_refused() -> None:
    one = twenty()[0]
    values = one.log.velocities.values.copy()
    values[50, 0] = -1e300
    log = replace(one.log, velocities=replace(one.log.velocities, values=values))
    with pytest.raises(
        CalibrationError,
        match=r"velocities: expected numbers within ±1e\+07, found -1e\+300 at",
    ):
        calibrate([log], BASE, truths=[one.truth], hold_out=False)


def test_unequal_wheels_and_their_separation() -> None:
    """UMBmark's errors are recovered for robots whose models have them."""
    nominal, held = BASE.kinematics.track, 0
    for one in twenty()[:6]:
        found = calibrate([one.log], BASE, truths=[one.truth], hold_out=False)
        determined = [
            found.value(name)
            for name in ("left scale", "right scale", "wheel separation", "E_d", "E_b")
        ]
        scale, ratio = 1.0 / (1.0 + one.values["forward error"]), one.values["E_d"]
        left, separation = (
            2.0 * scale / (1.0 + ratio),
            scale * (1.0 + one.values["turning error"]),
        )
        known = (left, ratio * left, separation * nominal, ratio, separation)
        assert [v.value for v in determined] == pytest.approx(known, rel=0.01)
        held += sum(v.holds(k) for v, k in zip(determined, known, strict=True))

    assert held >= 26, "of 30"


def test_latency_and_unequal_wheels_are_in_the_robot_file() -> None:
    """A robot made from that file errs like the logged robot."""
    (one,) = known_robots(1, 60.0, 8, scans=False, given={"latency": 0.3, "E_d": 1.02})
    found = calibrate([one.log], BASE, truths=[one.truth], hold_out=False)
    spec = parse_robot(robot_text(found.robot, BASE, "ours", []), "ours")
    assert spec.commands.latency == pytest.approx(0.3, abs=0.01)
    assert spec.wheel_ratio == pytest.approx(1.02, abs=0.003)
    again = calibrate([one.log], spec, truths=[one.truth], hold_out=False)
    assert again.value("latency").before == spec.commands.latency
    assert again.value("E_d").before == spec.wheel_ratio
    (usual,) = known_robots(1, 60.0, 8, scans=False, given={"latency": 0.0, "E_d": 1.0})
    plain = calibrate([usual.log], BASE, truths=[usual.truth], hold_out=False)
    assert plain.robot.wheel_ratio == 1.0, (
        "what the logs do not say for certain is not written"
    )


def test_a_log_without_turns_does_not_tell_the_separation() -> None:
    (one,) = known_robots(1, 40.0, 2, scans=False, turns=False)
    found = calibrate(
        [one.log], BASE, truths=[one.truth.shifted(-CLOCK_S)], hold_out=False
    )
    assert not found.value("wheel separation").is_determined
    assert not found.value("turning error").is_determined
    assert found.value("forward error").holds(one.values["forward error"])
    assert any("the wheel separation is not observable" in note for note in found.notes)
    assert found.odometry is not None
    least = found.odometry.fit.directions[0]
    assert least.information < 1e-6
    assert least.weights["separation"] > 0.99
    # undetermined parameters keep their values
    assert found.robot.odometry_error.a == pytest.approx(BASE.odometry_error.a)


def test_where_the_markers_are_and_outliers_do_not_matter() -> None:
    from botyard.calibration.planar import compose

    one = twenty()[1]
    poses = compose(one.truth.values, np.array([0.12, -0.08, 0.4]))
    rng = np.random.default_rng(3)
    wrong = rng.choice(len(poses), 30, replace=False)
    poses[wrong, :2] += rng.uniform(0.5, 2.0, (30, 2))
    found = calibrate(
        [one.log], BASE, truths=[replace(one.truth, values=poses)], hold_out=False
    )
    assert found.odometry is not None
    for name, value in (
        ("markers x", 0.12),
        ("markers y", -0.08),
        ("markers heading", 0.4),
        ("clock 1", None),
    ):
        determined = found.odometry.fit.value(name)
        assert determined.is_determined
        assert value is None or determined.value == pytest.approx(value, abs=0.01)

    assert found.value("forward error").value == pytest.approx(
        one.values["forward error"], abs=0.006
    )
    assert found.odometry.outliers > 0


def test_returns_to_known_places_are_enough() -> None:
    """One true pose every ten seconds, as on a marked square."""
    values: list[tuple[Value, float]] = []
    for one in twenty()[:5]:
        truth = one.truth.shifted(-CLOCK_S)
        rare = replace(truth, time=truth.time[::100], values=truth.values[::100])
        found = calibrate([one.log], BASE, truths=[rare], hold_out=False)
        values += [
            (found.value(name), one.values[name])
            for name in ("forward error", "turning error")
        ]

    assert sum(v.holds(known) for v, known in values) >= 8
    assert all(v.high - v.low < 0.1 for v, _ in values)


def test_the_truth_can_come_from_scans() -> None:
    one = twenty()[2]
    found = calibrate(
        [one.log],
        BASE,
        from_scans=True,
        scene=HALL,
        start=Pose(MIDDLE[0] + 0.1, MIDDLE[1] - 0.1, 0.6),
        hold_out=False,
    )
    for name in ("forward error", "turning error"):
        assert found.value(name).value == pytest.approx(one.values[name], abs=0.01)
    assert found.ranges is not None
    assert found.ranges.unexplained < 0.02


def moved(scene: Scene) -> Scene:
    """Return the same hall with changed walls."""
    walls = scene.segments.copy()
    walls[:, [0, 2]] *= 1.25
    return Scene(name="another", segments=walls)


def test_a_wrong_map_is_noticed() -> None:
    one = twenty()[3]
    found = calibrate(
        [one.log], BASE, truths=[one.truth], scene=moved(HALL), hold_out=False
    )
    assert found.ranges is not None
    assert not found.ranges.fits_map
    assert any("the map does not match" in note for note in found.notes)
    assert found.robot.lasers == BASE.lasers
    with pytest.raises(CalibrationError, match="the map does not match"):
        calibrate(
            [one.log],
            BASE,
            from_scans=True,
            scene=moved(HALL),
            start=Pose(*MIDDLE, 0.9),
            hold_out=False,
        )


def test_what_was_held_out_is_predicted_better() -> None:
    one = twenty()[4]
    found = calibrate([one.log], BASE, truths=[one.truth])
    assert len(found.held_out) == 4
    for error in found.held_out:
        assert error.after < error.before, error
    begin, end = one.log.span
    halves = [one.log.part(*times) for times in ((begin, 0.5 * end), (0.5 * end, end))]
    assert len(calibrate(halves, BASE, truths=[one.truth, one.truth]).held_out) == 4


def test_logs_that_do_not_hold_enough_are_refused() -> None:
    one = twenty()[0]
    with pytest.raises(CalibrationError, match="do not match the odometry"):
        calibrate([one.log], BASE, truths=[twenty()[1].truth.shifted(1e4)])
    with pytest.raises(
        CalibrationError, match="expected at least 2 poses of odometry, found 0"
    ):
        calibrate(
            [replace(one.log, odometry=one.log.odometry.between(-2.0, -1.0))],
            BASE,
            truths=[one.truth],
        )

    found = calibrate(
        [replace(one.log, commands=one.log.commands.between(-2.0, -1.0), scans=None)],
        BASE,
        hold_out=False,
    )
    assert found.values == ()
    assert len(found.notes) == 3
