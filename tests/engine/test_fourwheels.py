"""Skid steering and Mecanum: wheels, slides, odometry, joints, encoders, saved states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.errors import ModelError
from botyard.geometry import Pose
from botyard.model.fourwheels import FourWheels
from botyard.model.kinematics import Axes, Drive, Kinematics, MotionLimits
from botyard.model.library import parse_robot
from botyard.model.links import wheel_joints
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.sim.simulation import Simulation

LIMITS = MotionLimits(max_speed=Axes(1.0, 1.0, 4.0))
RIDGEBACK = FourWheels(wheelbase=0.638)
JACKAL = FourWheels(wheelbase=0.262, track_factor=1.5)


def kinematics(kind: Drive, wheels: FourWheels, track: float = 0.551) -> Kinematics:
    return Kinematics(
        kind=kind, limits=LIMITS, track=track, wheel_radius=0.0759, wheels=wheels
    )


def spec(drive: str, wheels: str = "", head: str = "") -> RobotSpec:
    return parse_robot(
        f'extends = "p3dx"\ndrive = "{drive}"\ntrack = 0.4\n{head}\n'
        "[limits]\nmax_speed = [1.0, 1.0, 230]\naccel = [0, 0, 0]\ndecel = [0, 0, 0]\n"
        f"[wheels]\nwheelbase = 0.3\n{wheels}",
        "r",
    )


def test_properties_of_the_kinds() -> None:
    skid, mecanum = kinematics(Drive.SKID, JACKAL), kinematics(Drive.MECANUM, RIDGEBACK)
    assert (skid.must_turn, skid.moves_sideways, skid.steers) == (True, False, False)
    assert (mecanum.must_turn, mecanum.moves_sideways) == (False, True)
    assert skid.motion is Drive.DIFF and mecanum.motion is Drive.MECANUM
    assert skid.turning_radius == mecanum.turning_radius == 0.0


def test_formula_of_mecanum_wheels() -> None:
    # Standard kinematics, in the order front left, front right, rear left, rear right;
    # lx + ly of the Ridgeback is 0.5945 m.
    k = kinematics(Drive.MECANUM, RIDGEBACK)
    v, vy, w, lever = 0.3, 0.2, 0.5, 0.5945
    assert k.lever == pytest.approx(lever)
    assert k.all_wheel_speeds(v, vy, w) == pytest.approx(
        (
            v - vy - lever * w,
            v + vy + lever * w,
            v + vy - lever * w,
            v - vy + lever * w,
        )
    )


def test_formula_of_skid_steering() -> None:
    # ω = (right − left) / (track · multiplier); the Jackal has 0.37559 m · 1.5.
    k = kinematics(Drive.SKID, JACKAL, track=0.37559)
    speeds = k.all_wheel_speeds(0.4, 0.0, 0.8)
    assert speeds[0] == speeds[2] and speeds[1] == speeds[3]
    assert (speeds[1] - speeds[0]) / (0.37559 * 1.5) == pytest.approx(0.8)
    assert k.wheel_speeds(0.4, 0.8) == pytest.approx(speeds[:2])


@given(
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(-4, 4),
    st.sampled_from([Drive.MECANUM, Drive.SKID, Drive.DIFF]),
)
def test_wheel_speeds_and_back(v: float, vy: float, w: float, kind: Drive) -> None:
    k = kinematics(kind, JACKAL)
    if kind is Drive.DIFF:
        k = Kinematics(kind=kind, limits=LIMITS, track=0.5)
    vy = vy if k.moves_sideways else 0.0
    assert k.velocity_of(k.all_wheel_speeds(v, vy, w)) == pytest.approx((v, vy, w))
    # Forces do the work of the wheels.
    forces = tuple(0.1 + 0.3 * n for n in range(len(k.wheel_places)))
    power = sum(
        f * u for f, u in zip(forces, k.all_wheel_speeds(v, vy, w), strict=True)
    )
    fx, fy, torque = k.force_of(forces)
    assert fx * v + fy * vy + torque * w == pytest.approx(power)


def test_feasible_velocities() -> None:
    mecanum = kinematics(Drive.MECANUM, RIDGEBACK)
    assert mecanum.feasible(0.5, -1.0, 4.0)
    assert not mecanum.feasible(0.5, 1.1, 0.0)
    skid = kinematics(Drive.SKID, JACKAL)
    assert skid.feasible(0.5, 0.0, 1.0)
    assert not skid.feasible(0.5, 0.1, 1.0)
    # A body that turns about a point ahead slides.
    slides = kinematics(Drive.SKID, FourWheels(wheelbase=0.3, slide=0.1))
    assert slides.feasible(0.5, -0.1, 1.0)
    assert not slides.feasible(0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"wheelbase": 0.0}, "wheelbase"),
        ({"track_factor": 0.9}, "track_factor"),
        ({"slip": 0.95}, "slip"),
        ({"slip": math.nan}, "slip"),
        ({"errors": (0.0, 0.0)}, "errors: expected 4 numbers, found 2"),
        ({"errors": (0.0, 0.0, 0.0, 0.6)}, "errors"),
    ],
)
def test_wheels_are_checked(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        FourWheels(**({"wheelbase": 0.3} | changes))  # type: ignore[arg-type]


def test_wheels_belong_to_their_drives() -> None:
    with pytest.raises(ModelError, match="drive skid: expected a table"):
        parse_robot('extends = "p3dx"\ndrive = "skid"', "r")
    with pytest.raises(ModelError, match="expected wheels with the drives skid and"):
        parse_robot('extends = "p3dx"\n[wheels]\nwheelbase = 0.3', "r")
    with pytest.raises(ModelError, match="expected slide with the drive skid alone"):
        spec("mecanum", "slide = 0.1")


def test_a_robot_file_and_back() -> None:
    found = spec(
        "skid", "track_factor = 1.5\nslide = 0.05\nslip = 0.1\nerrors = [0, 0.01, 0, 0]"
    )
    assert found.wheels == FourWheels(
        wheelbase=0.3, track_factor=1.5, slide=0.05, slip=0.1, errors=(0, 0.01, 0, 0)
    )
    assert to_table(found)["wheels"] == {
        "wheelbase": 0.3,
        "track_factor": 1.5,
        "slide": 0.05,
        "slip": 0.1,
        "errors": [0, 0.01, 0, 0],
    }


def world(model: RobotSpec, mode: str = "none") -> tuple[Simulation, botyard.Robot]:
    sim = Simulation(odometry_error=mode)
    return sim, sim.add_robot(model, name="r", pose=(0, 0, 0))


def test_a_mecanum_robot_drives_sideways_and_turns_on_an_exact_arc() -> None:
    sim, robot = world(spec("mecanum"))
    robot.command(v=0.3, vy=0.2, w=0.5)
    sim.run(2.0)
    # The exponential map of a constant twist.
    th = 1.0
    s, c = math.sin(th) / th, (1 - math.cos(th)) / th
    x, y = 0.6 * s - 0.4 * c, 0.6 * c + 0.4 * s
    assert tuple(robot.truth) == pytest.approx((x, y, th))
    assert tuple(robot.odom) == pytest.approx(tuple(robot.truth))


def test_a_skid_steered_robot_slides_about_its_centre_of_rotation() -> None:
    sim, robot = world(spec("skid", "slide = 0.1"))
    robot.command(v=0.0, w=1.0)
    sim.run(1.0)
    x, y, th = robot.truth
    # The point 0.1 m ahead of the origin stands.
    assert x + 0.1 * math.cos(th) == pytest.approx(0.1)
    assert y + 0.1 * math.sin(th) == pytest.approx(0.0, abs=1e-9)
    assert robot.velocity.vy == pytest.approx(-0.1)


@settings(max_examples=20)
@given(
    st.sampled_from(["skid", "mecanum"]),
    st.floats(0, 0.3),
    st.lists(st.floats(-0.1, 0.1), min_size=4, max_size=4),
    st.floats(-0.5, 0.5),
    st.floats(-0.5, 0.5),
    st.floats(-2, 2),
)
def test_odometry_measures_the_travel_of_the_wheels(
    drive: str, slip: float, errors: list[float], v: float, vy: float, w: float
) -> None:
    vy = vy if drive == "mecanum" else 0.0
    wheels = f"slip = {slip!r}\nerrors = {errors!r}\n"
    model = spec(drive, wheels, "[odometry]\nerror = [0, 0, 0]")
    sim, robot = world(model, "constant")
    robot.command(v=v, vy=vy, w=w)
    sim.step()
    dt = sim.dt
    # A twin by hand: roll each wheel on the floor, measure it with the nominal radius.
    lever = 0.2 + (0.15 if drive == "mecanum" else 0.0)
    signs = [(-1, -1), (1, 1), (1, -1), (-1, 1)]
    rolled = [
        (v + (a * vy if drive == "mecanum" else 0.0) + b * lever * w)
        * dt
        / ((1 - slip) * (1 + e))
        for (a, b), e in zip(signs, errors, strict=True)
    ]
    dx = sum(rolled) / 4
    dy = (
        sum(a * u for (a, _), u in zip(signs, rolled, strict=True)) / 4
        if drive == "mecanum"
        else 0.0
    )
    dth = sum(b * u for (_, b), u in zip(signs, rolled, strict=True)) / (4 * lever)
    th = dth if abs(dth) > 1e-12 else 1e-12
    s, c = math.sin(th) / th, (1 - math.cos(th)) / th
    assert tuple(robot.odom) == pytest.approx(
        (dx * s - dy * c, dx * c + dy * s, dth), abs=1e-9
    )


def test_odometry_does_not_measure_a_slide() -> None:
    sim, robot = world(
        spec("skid", "slide = 0.1", "[odometry]\nerror = [0, 0, 0]"), "constant"
    )
    robot.command(v=0.0, w=1.0)
    sim.run(1.0)
    assert tuple(robot.odom) == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert robot.truth.x != pytest.approx(0.0, abs=1e-3)


def test_encoders_count_all_four_wheels() -> None:
    sim, robot = world(spec("mecanum", head='devices = [{ type = "encoders" }]'))
    robot.command(vy=0.5)
    sim.run(2.0)
    found = robot.devices["encoders"].read()
    state, row = sim.snapshot.state, sim.snapshot.rows["r"]
    assert state.steer[row, 0] == pytest.approx(1.0)
    if found is not None:
        names = [wheel.name for wheel in found]
        assert names == ["front_left", "front_right", "rear_left", "rear_right"]
        assert [wheel.distance for wheel in found] == pytest.approx([-1, 1, 1, -1])


def test_joints_of_four_wheels() -> None:
    joints = wheel_joints(spec("skid", "track_factor = 1.5"))
    assert [(j.name, j.pose.x, j.pose.y) for j in joints] == [
        ("front_left_wheel_joint", 0.15, 0.2),
        ("front_right_wheel_joint", 0.15, -0.2),
        ("rear_left_wheel_joint", -0.15, 0.2),
        ("rear_right_wheel_joint", -0.15, -0.2),
    ]


def test_saved_states_hold_the_distance_to_the_left() -> None:
    model = spec("mecanum", "errors = [0.01, 0, 0, 0]")
    sim, robot = world(model, "constant")
    sim.add_robot("p3dx", name="other", pose=(3, 0, 0))
    robot.command(v=0.2, vy=0.3, w=0.1)
    sim.run(1.0)
    saved = sim.save_state()
    sim.run(1.0)
    digest = sim.digest()
    again, _ = world(model, "constant")
    again.add_robot("p3dx", name="other", pose=(3, 0, 0))
    again.restore(saved)
    again.run(1.0)
    assert again.digest() == digest
    # Worlds that lose the robot lose the column.
    again.remove_robot("r")
    assert len(again.snapshot.state.steer) == 0
    assert len(again.core.engine.bodies.slips) == 0


def test_worlds_without_such_wheels_have_no_rows() -> None:
    sim = Simulation()
    sim.add_robot("p3dx")
    sim.add_robot(spec("skid", "track_factor = 1.5"), name="s", pose=(3, 0, 0))
    # Exact odometry needs no matrix.
    assert sim.core.engine.bodies.slips.shape == (0, 10)
    assert sim.snapshot.state.steer.shape == (0, 7)
    sim.add_robot(spec("skid", "slip = 0.1"), name="t", pose=(6, 0, 0))
    slips = sim.core.engine.bodies.slips
    assert len(slips) == 3
    assert np.array_equal(slips[0, :9].reshape(3, 3), np.eye(3))
    sim.add_robot("p3dx", name="last", pose=(9, 0, 0))
    assert len(sim.core.engine.bodies.slips) == 4
    sim.remove_robot("t")
    assert sim.core.engine.bodies.slips.shape == (0, 10)


def test_a_blocked_skid_steered_robot_turns_on_the_spot() -> None:
    walls = np.array([[0.4, -2.0, 0.4, 2.0]])
    sim = Simulation(botyard.Scene(segments=walls), odometry_error="none")
    robot = sim.add_robot(spec("skid"), name="r", pose=Pose())
    robot.command(v=0.5, w=0.0)
    sim.run(2.0)
    assert robot.stalled
    robot.command(v=0.5, w=0.5)
    before = robot.truth.th
    sim.step()
    assert robot.truth.th > before
