"""Kinematics:

quantities derived from the drive kind, the wheel geometry and the motion limits.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine.bodyspec import robot_body
from botyard.errors import ModelError
from botyard.geometry import Pose
from botyard.model.kinematics import (
    MEASURES_BY_PAIR,
    MUST_TURN,
    Axes,
    Drive,
    Kinematics,
    MotionLimits,
    Steering,
)
from botyard.model.library import load_robot, parse_robot, robot_names
from botyard.model.links import wheel_joints
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.shapes import digested
from botyard.sim.simulation import Simulation

LIMITS = MotionLimits(max_speed=Axes(1.0, 0.5, 2.0))


def kinematics(kind: Drive) -> Kinematics:
    return Kinematics(kind=kind, limits=LIMITS, track=0.4, wheel_radius=0.1)


def test_what_follows_from_the_kind_of_a_drive() -> None:
    found = {
        kind: (
            k.drives,
            k.moves_sideways,
            k.must_turn,
            k.has_two_wheels,
            k.steers,
            k.measures_by_pair,
        )
        for kind in Drive
        for k in [kinematics(kind)]
    }
    assert found == {
        Drive.NONE: (False, False, False, False, False, False),
        Drive.DIFF: (True, False, True, True, False, True),
        Drive.OMNI: (True, True, False, False, False, False),
        Drive.ACKERMANN: (True, False, True, False, True, True),
        Drive.TRICYCLE: (True, False, True, False, True, False),
        Drive.MECANUM: (True, True, False, False, False, False),
        Drive.SKID: (True, False, True, False, False, True),
    }
    kinds = np.array([[2, 1], [0, 1], [3, 4]], np.int8)
    assert MUST_TURN[kinds].tolist() == [[False, True], [False, True], [True, True]]
    assert MEASURES_BY_PAIR[kinds].tolist() == [
        [False, True],
        [False, True],
        [True, False],
    ]


@pytest.mark.parametrize(
    ("kind", "velocity", "expected"),
    [
        (Drive.DIFF, (1.0, 0.0, -2.0), True),
        (Drive.DIFF, (0.0, 0.1, 0.0), False),
        (Drive.DIFF, (1.1, 0.0, 0.0), False),
        (Drive.DIFF, (0.0, 0.0, 2.1), False),
        (Drive.OMNI, (-1.0, -0.5, 2.0), True),
        (Drive.OMNI, (0.0, 0.6, 0.0), False),
        (Drive.NONE, (0.0, 0.0, 0.0), True),
        (Drive.NONE, (0.1, 0.0, 0.0), False),
        (Drive.OMNI, (float("nan"), 0.0, 0.0), False),
    ],
)
def test_feasible_velocities(
    kind: Drive, velocity: tuple[float, float, float], expected: bool
) -> None:
    assert kinematics(kind).feasible(*velocity) is expected


AXLE = Steering(wheelbase=2.0, limit=0.6, rate=1.0)


def car(kind: Drive = Drive.ACKERMANN, axle: Steering = AXLE) -> Kinematics:
    return Kinematics(kind=kind, limits=LIMITS, track=0.8, steering=axle)


@given(
    st.floats(-1, 1).filter(lambda v: abs(v) > 1e-3),
    st.floats(-0.6, 0.6),
    st.sampled_from([2.0, -2.0]),
)
def test_steering_angle_and_turn_rate_are_inverses(
    v: float, steer: float, base: float
) -> None:
    k = car(axle=replace(AXLE, wheelbase=base))
    w = k.turn_rate(v, steer)
    assert w == pytest.approx(v * math.tan(steer) / base)
    assert k.steering_angle(v, w) == pytest.approx(steer, abs=1e-12)
    # Left is counter-clockwise ahead, and the opposite in reverse or with a rear axle.
    assert w * v * steer * base >= 0.0
    assert k.feasible(v * 0.999, 0.0, w * 0.998)


@given(
    st.floats(-0.6, 0.6).filter(lambda a: abs(a) > 1e-3), st.sampled_from([2.0, -2.0])
)
def test_all_wheels_roll_about_one_point(steer: float, base: float) -> None:
    k = car(axle=replace(AXLE, wheelbase=base))
    # The centre of the turn is on the fixed axle, at y = radius.
    radius = base / math.tan(steer)
    for y, angle, speed in zip(
        (0.4, -0.4), k.wheel_angles(steer), k.steered_speeds(0.5, steer), strict=True
    ):
        # The axis of the wheel at (base, y) passes through (0, radius).
        assert math.tan(angle) * (radius - y) == pytest.approx(base)
        assert speed == pytest.approx(
            math.copysign(0.5 * math.hypot(base, radius - y) / abs(radius), 0.5)
        )

    (alone,) = car(Drive.TRICYCLE, replace(AXLE, wheelbase=base)).wheel_angles(steer)
    assert alone == pytest.approx(steer)


def test_turning_circle() -> None:
    k = car()
    radius = 2.0 / math.tan(0.6)
    assert k.turning_radius == pytest.approx(radius)
    assert k.feasible(0.5, 0.0, 0.49 / radius)
    assert not k.feasible(0.5, 0.0, 0.51 / radius)
    assert not k.feasible(0.0, 0.0, 0.01)
    assert k.feasible(0.0, 0.0, 0.0)
    assert k.steering_angle(0.5, 100.0) == 0.6
    assert k.steering_angle(0.0, 1.0) == 0.0
    assert car(axle=replace(AXLE, limit=0.0)).turning_radius == math.inf
    assert kinematics(Drive.DIFF).turning_radius == 0.0
    with pytest.raises(ModelError, match="expected a drive with a steered axle"):
        kinematics(Drive.DIFF).turn_rate(1.0, 0.1)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"wheelbase": 0.0}, "wheelbase must be at least 0.001 m, found 0"),
        ({"wheelbase": 101.0}, "wheelbase"),
        ({"wheelbase": math.nan}, "wheelbase"),
        ({"limit": -0.1}, "limit"),
        ({"limit": 1.6}, "limit"),
        ({"rate": -1.0}, "rate"),
        ({"offset": 0.6}, "offset"),
        ({"limit": 1.4, "offset": 0.3}, "limit and offset must be at most"),
    ],
)
def test_steering_is_checked(changes: dict[str, float], complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        replace(AXLE, **changes)


def test_wheels_of_a_body_velocity_and_back() -> None:
    k = kinematics(Drive.DIFF)
    assert k.wheel_speeds(1.0, 2.0) == pytest.approx((0.6, 1.4))
    assert k.wheel_rates(1.0, 2.0) == pytest.approx((6.0, 14.0))
    assert k.body_velocity(*k.wheel_rates(1.0, 2.0)) == pytest.approx((1.0, 2.0))


@pytest.mark.parametrize("drive", ["diff", "omni"])
def test_the_engine_reaches_feasible_velocities_alone(drive: str) -> None:
    sim = Simulation()
    robot = sim.add_robot(
        parse_robot(
            f'extends = "p3dx"\ndrive = "{drive}"\n[limits]\nmax_speed = [0.5, 0.25, 60.0]',
            "r",
        ),
        pose=Pose(),
    )
    for v, w in ((9.0, 9.0), (-9.0, -9.0), (0.2, -9.0)):
        robot.command(v=v, w=w, vy=9.0 if drive == "omni" else 0.0)
        for _ in range(60):
            sim.step(1)
            now = robot.velocity
            assert robot.spec.kinematics.feasible(now.vx, now.vy, now.w)


def test_the_track_follows_from_the_factor_of_clients_to_the_bit() -> None:
    for name in robot_names():
        spec = load_robot(name)
        # Models that the original does not have have a track of their own.
        if spec.track is not None:
            continue
        half = 1.0 / spec.pioneer.diff_conv / 1000.0
        assert "track" not in to_table(spec)
        assert spec.kinematics.half_track == half
        assert [joint.pose.y for joint in wheel_joints(spec)] == [half, -half]

    assert (
        RobotSpec(name="r", pioneer=PioneerSpec(diff_conv=0.0)).kinematics.track == 2.0
    )


def test_a_robot_file_gives_the_track_and_the_factor_follows() -> None:
    spec = parse_robot('extends = "p3dx"\ntrack = 0.5', "r")
    assert spec.kinematics.track == 0.5
    assert robot_body(spec, "r").kinematics.half_track == 0.25
    assert [joint.pose.y for joint in wheel_joints(spec)] == [0.25, -0.25]
    assert spec.pioneer.diff_conv == 1.0 / 250.0
    assert to_table(spec)["track"] == 0.5
    assert digested(spec)["track"] == 0.5
    assert "track" not in digested(load_robot("p3dx"))


@pytest.mark.parametrize("value", ["0", "-0.5", "1e4"])
def test_a_wrong_track_is_an_error(value: str) -> None:
    with pytest.raises(ModelError, match=r"track: expected 0.001 … 1000 m, found"):
        parse_robot(f'extends = "p3dx"\ntrack = {value}', "r")
    with pytest.raises(
        ModelError, match=r"robot r: track must be from 0.001 to 1000 m, found"
    ):
        RobotSpec(name="r", track=float(value))
