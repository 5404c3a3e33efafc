"""Kinematics: what follows from the kind of a drive, the geometry of the wheels and the
limits of motion.
"""

from __future__ import annotations

import numpy as np
import pytest

from botyard.engine.build import robot_body
from botyard.errors import ModelError
from botyard.geometry import Pose
from botyard.model.kinematics import (
    HAS_TWO_WHEELS,
    MUST_TURN,
    Axes,
    Drive,
    Kinematics,
    MotionLimits,
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
        kind: (k.drives, k.moves_sideways, k.must_turn, k.has_two_wheels)
        for kind in Drive
        for k in [kinematics(kind)]
    }
    assert found == {
        Drive.NONE: (False, False, False, False),
        Drive.DIFF: (True, False, True, True),
        Drive.OMNI: (True, True, False, False),
    }
    kinds = np.array([[2, 1], [0, 1]], np.int8)
    assert MUST_TURN[kinds].tolist() == [[False, True], [False, True]]
    assert HAS_TWO_WHEELS[kinds].tolist() == [[False, True], [False, True]]


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
        half = 1.0 / spec.pioneer.diff_conv / 1000.0
        assert spec.track is None
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
