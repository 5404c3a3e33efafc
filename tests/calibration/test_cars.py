"""Logs of robots with a steered axle give their errors back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from botyard.calibration import calibrate
from botyard.calibration.log import Log, Series
from botyard.calibration.robotfile import robot_text
from botyard.calibration.segments import by_steering, corrected
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot, parse_robot
from botyard.model.robot import NO_DRIFT
from botyard.sim.simulation import Simulation
from tests.calibration.making import CLOCK_S, MOCAP, STEP

COUNT = 6


def driven(model: str, seed: int) -> tuple[Log, Series, dict[str, float]]:
    """Return log and truth of a car with random errors, and these errors."""
    rng = np.random.default_rng(seed)
    base = load_robot(model)
    assert base.steering is not None
    known = {
        "steering offset": rng.uniform(-0.05, 0.05),
        "forward error": rng.uniform(-0.05, 0.05),
        "turning error": rng.uniform(-0.05, 0.05),
    }
    # A random part keeps the fit from being exact.
    middle = Axes(known["forward error"], 0.0, known["turning error"])
    spread = Axes(0.01, 0.0, 0.01)
    spec = replace(
        base,
        steering=replace(base.steering, offset=known["steering offset"]),
        odometry_error=Axes(middle.x + spread.x, 0.0, middle.a + spread.a),
        odometry_error_low=Axes(middle.x - spread.x, 0.0, middle.a - spread.a),
        odometry_drift=NO_DRIFT,
        perfect_odometry=False,
        commands=type(base.commands)(),
    )
    sim = Simulation(seed=seed, warn=None, step=STEP)
    car = sim.add_robot(spec, "car")
    time, odom, pose = [], [], []
    top, limit = 0.6 * base.limits.max_speed.x, 0.7 * base.steering.limit
    for k in range(1500):
        if k % 20 == 0:
            car.command(v=rng.uniform(-top, top), steer=rng.uniform(-limit, limit))
        sim.step()
        time.append(sim.time)
        odom.append(tuple(car.odom))
        pose.append(tuple(car.truth))
    sim.close()
    at = np.array(time)
    truth = np.array(pose) + rng.normal(0.0, 1.0, (len(at), 3)) * MOCAP
    return (
        Log(source="drive", odometry=Series(at, np.array(odom))),
        Series(at + CLOCK_S, truth),
        known,
    )


@pytest.mark.parametrize("model", ["car", "forklift", "tugger"])
def test_errors_of_the_steered_axle_come_back_within_their_intervals(
    model: str,
) -> None:
    base, hits = load_robot(model), 0
    for seed in range(COUNT):
        log, truth, known = driven(model, seed)
        found = calibrate(
            [log], base, truths=[truth], hold_out=seed == 0, odometry_law="step"
        )
        for name, value in known.items():
            assert found.value(name).is_determined, name
            hits += found.value(name).holds(value)
            assert found.value(name).value == pytest.approx(value, abs=0.01), name
        if seed == 0:
            text = robot_text(found.robot, base, "ours", [])
            again = parse_robot(text, "ours").steering
            assert again is not None
            assert again.offset == pytest.approx(known["steering offset"], abs=0.005)
            place = next(h for h in found.held_out if h.name.startswith("place"))
            assert place.after < 0.3 * place.before
    assert hits >= 0.85 * 3 * COUNT, hits


def test_the_correction_is_exact_for_large_angles() -> None:
    """The turn follows from the tangent of the sum of both angles."""
    rng = np.random.default_rng(4)
    for base in (0.33, -1.4):
        steer, offset = rng.uniform(-0.9, 0.9, 50), 0.2
        far = rng.uniform(-0.1, 0.1, 50)
        measured = far / 0.97
        odometry = measured * np.tan(steer) / base
        twists = np.stack([measured, np.zeros(50), odometry], axis=1)
        found = corrected(twists, by_steering(0.97, offset, 1.1, base))
        # With a wheelbase that is larger than the nominal one, turns are smaller.
        expected = far * np.tan(np.arctan(np.tan(steer) / 1.1) + offset) / base
        assert found[:, 0] == pytest.approx(far)
        assert found[:, 2] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    standing = corrected(np.zeros((3, 3)), by_steering(1.0, 0.2, 1.0, 0.33))
    assert not standing.any()
