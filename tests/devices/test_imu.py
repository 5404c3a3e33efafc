"""Inertial measurement unit: true values, white noise, bias, walk, integrated heading."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.drawing import normals
from botyard.devices.imu import GRAVITY, IMU, ImuSpec
from botyard.formats.models import find_robot
from botyard.geometry import Pose

DT = 0.1


def driving(
    spec: ImuSpec, v: float = 0.4, w: float = 0.5, count: int = 1, **options: Any
) -> tuple[Any, list[Any]]:
    sim = botyard.Simulation(seed=3, step=DT, **options)
    model = find_robot("p3dx").fitted(spec)
    robots = [
        sim.add_robot(model, f"r{k}", pose=(3.0 * k, 0.0, 0.4)) for k in range(count)
    ]
    for robot in robots:
        robot.command(v=v, w=w)
    return sim, robots


def test_a_unit_on_an_arc_measures_turn_rate_and_centripetal_acceleration() -> None:
    """a = ω² ρ towards the centre; the mean over a step is smaller by sin(ωΔ/2) / (ωΔ/2).

    The mounting point is at ρ = (−y, v/ω + …) from the centre of the arc.
    """
    at = Pose(0.3, -0.1, 0.7)
    sim, (robot,) = driving(ImuSpec(pose=at))
    sim.step(40)
    w = robot.velocity.w
    assert w == pytest.approx(0.5)
    found = robot.devices["imu"].read()
    # Centre of the arc in the robot's frame: (0, v/ω).
    to_centre = (0.0 - at.x, 0.4 / w - at.y)
    share = math.sin(w * DT / 2) / (w * DT / 2)
    ax, ay = (w * w * share * part for part in to_centre)
    c, s = math.cos(at.th), math.sin(at.th)
    assert found.turn_rate == pytest.approx(w)
    assert found.acceleration == pytest.approx(
        (c * ax + s * ay, c * ay - s * ax, GRAVITY), abs=1e-9
    )
    assert found.heading == pytest.approx(
        math.remainder(robot.truth.th + at.th, 2 * math.pi)
    )


def test_a_ramp_is_measured_as_acceleration() -> None:
    sim, (robot,) = driving(ImuSpec(), v=1.0, w=0.0)
    sim.step(3)
    accel = find_robot("p3dx").kinematics.limits.accel.x
    assert robot.devices["imu"].read().acceleration[0] == pytest.approx(accel)


def test_white_noise_has_its_density_and_the_heading_is_the_integral() -> None:
    """σ of a mean over dt is d / √dt; the heading's error is the sum of the rates' errors."""
    spec = ImuSpec(gyro_noise=0.01, accel_noise=0.05)
    sim, (robot,) = driving(spec, v=0.0, w=0.0)
    rates, ahead = [], []
    for _ in range(400):
        sim.step()
        found = robot.devices["imu"].read()
        rates.append(found.turn_rate)
        ahead.append(found.acceleration[0])
    assert np.std(rates) == pytest.approx(0.01 / math.sqrt(DT), rel=0.12)
    assert np.std(ahead) == pytest.approx(0.05 / math.sqrt(DT), rel=0.12)
    assert found.heading == pytest.approx(
        robot.truth.th + DT * math.fsum(rates), abs=1e-12
    )
    assert found.variances == pytest.approx((1e-4 / DT, 2.5e-3 / DT))


def test_biases_begin_at_random_and_walk() -> None:
    """Over 60 units: the spread of the bias grows as √(σ₀² + q² t)."""
    sim, robots = driving(
        ImuSpec(gyro_bias=0.02, gyro_walk=0.01), v=0.0, w=0.0, count=60
    )
    sim.step()
    first = np.array([r.devices["imu"].read().turn_rate for r in robots])
    assert first.std() == pytest.approx(0.02, rel=0.3)
    assert abs(first.mean()) < 3 * 0.02 / math.sqrt(60)
    sim.step(100)
    walked = np.array([r.devices["imu"].read().turn_rate for r in robots]) - first
    assert walked.std() == pytest.approx(0.01 * math.sqrt(10.0), rel=0.3)


def test_without_sensor_noise_it_is_exact() -> None:
    spec = ImuSpec(gyro_noise=1.0, gyro_bias=1.0, accel_walk=1.0, gyro_walk=1.0)
    sim, (robot,) = driving(spec, v=0.0, w=0.0, sensor_noise=False)
    sim.step(5)
    found = robot.devices["imu"].read()
    assert found[:2] == (0.0, (0.0, 0.0, GRAVITY))
    assert found.heading == pytest.approx(0.4)


def test_draws_of_a_table_are_those_of_its_views() -> None:
    sim, robots = driving(ImuSpec(), count=3)
    sim.step(2)
    table = sim.core.engine.tables["imu"]
    for part in (0, 2):
        drawn = normals(sim.core.engine, table, 2, part)
        for k, robot in enumerate(robots):
            view = robot.devices["imu"]._view
            assert view.memory.number == k
            assert drawn[k].tolist() == view.normal(2, part).tolist()


def test_placing_a_robot_is_no_acceleration() -> None:
    sim, (robot,) = driving(ImuSpec(), v=0.0, w=0.0)
    sim.step(2)
    sim.put("r0", (5.0, 5.0, 1.0))
    sim.step()
    assert robot.devices["imu"].read().acceleration == (0.0, 0.0, GRAVITY)


def test_messages_mark_a_missing_orientation() -> None:
    spec = ImuSpec(has_orientation=False, gyro_noise=0.1)
    sim, (robot,) = driving(spec)
    sim.step()
    (ros,) = IMU.ros_messages
    message = ros.fields(spec, robot.devices["imu"].read())
    assert message["orientation_covariance"][0] == -1.0
    assert message["angular_velocity_covariance"][::4] == pytest.approx([0.1] * 3)
