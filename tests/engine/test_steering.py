"""Car-like robots: arcs, steering angle, commands, collisions and odometry."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine.bodyspec import BodySpec
from botyard.engine.kernels.odometry import by_steering
from botyard.engine.layout import ANGLE, OFFSET, RATE, Mode, OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.engine.steering import SetSteering
from botyard.errors import CommandError
from botyard.geometry import Pose, Twist
from botyard.model.kinematics import Axes, Drive, Kinematics, MotionLimits, Steering
from botyard.model.scene import Scene
from botyard.sim.twist import SetTwist
from tests import naive

AXLE = Steering(wheelbase=0.33, limit=0.42, rate=3.2)
LIMITS = MotionLimits(
    max_speed=Axes(2.0, 0.0, 3.0), accel=Axes(1.0, 0.0, 1.0), decel=Axes(1.0, 0.0, 1.0)
)
CAR = ((-0.1, -0.15), (0.45, -0.15), (0.45, 0.15), (-0.1, 0.15))
DT = 0.1
NOTHING = np.zeros((0, 4))


def car(
    name: str = "r0", *, axle: Steering = AXLE, kind: Drive = Drive.ACKERMANN, **changes
) -> BodySpec:
    return BodySpec(
        name=name,
        parts=(CAR,),
        kinematics=Kinematics(kind=kind, limits=LIMITS, track=0.24, steering=axle),
        **changes,
    )


def one(
    spec: BodySpec | None = None,
    *,
    walls: np.ndarray = NOTHING,
    at: Pose = Pose(),
    mode: OdometryErrorMode = OdometryErrorMode.NONE,
) -> Engine:
    e = Engine(Scene(segments=walls), odometry_error_mode=mode)
    e.add_bodies([(spec or car(), at)])
    return e


def drive(e: Engine, *commands: cmd.Command, steps: int = 1) -> None:
    for command in commands:
        e.queue_command("r0", command)
    e.step(steps)


def without_ramps(e: Engine) -> Engine:
    e.state.accel[:] = e.state.decel[:] = 0.0
    return e


KINDS = {
    "angle": lambda v, value: SetSteering(value, v),
    "rate": lambda v, value: cmd.SetVelocity(v=v, w=value),
    "heading": None,
}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*KINDS]),
            st.sampled_from([-2.5, -1.0, -0.3, 0.0, 0.2, 1.0, 2.0]),
            st.floats(-3.0, 3.0),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([0.33, -1.4]),
    st.sampled_from([0.0, 0.5, 3.2]),
    st.sampled_from([0.0, 0.03]),
)
def test_steps_equal_the_twin(
    commands, base: float, rate: float, offset: float
) -> None:
    axle = Steering(wheelbase=base, limit=0.42, rate=rate, offset=offset)
    e = one(car(axle=axle))
    pose, v, angle = np.zeros(3), 0.0, 0.0
    for kind, wanted, value in commands:
        if kind == "heading":
            value = math.remainder(value, 2 * math.pi)
            e.queue_command("r0", cmd.SetVelocity(v=wanted))
            e.queue_command("r0", cmd.TurnTo(value))
        else:
            e.queue_command("r0", KINDS[kind](wanted, value))

        for _ in range(6):
            # Odometry measures the same arcs by its own angle, so the truth stands in.
            e.state.odom[0] = e.state.pose[0]
            e.step()
            pose, v, angle, w = naive.steered_step(
                pose,
                v,
                angle,
                (kind, wanted, value),
                (base, 0.42, rate, offset),
                (2.0, 1.0, 3.0),
                DT,
            )
            assert e.state.vel[0] == pytest.approx([v, 0.0, w], abs=1e-9)
            assert e.state.steer[0, ANGLE] == pytest.approx(angle, abs=1e-9)
            assert e.state.pose[0, :2] == pytest.approx(pose[:2], abs=1e-8)
            assert math.remainder(e.state.pose[0, 2] - pose[2], math.tau) == (
                pytest.approx(0.0, abs=1e-8)
            )
            # Rules that no command breaks
            assert abs(e.state.vel[0, 0]) <= 2.0
            assert abs(e.state.vel[0, 2]) <= 3.0
            assert abs(e.state.steer[0, ANGLE]) <= 0.42


@pytest.mark.parametrize("steer", [0.3, -0.3, 0.42])
@pytest.mark.parametrize("v", [0.8, -0.8])
def test_a_constant_angle_drives_a_circle(v: float, steer: float) -> None:
    e = without_ramps(one(car(axle=replace(AXLE, rate=0.0))))
    radius = AXLE.wheelbase / math.tan(steer)
    # A whole number of steps for a turn
    steps = 50
    drive(e, SetSteering(steer, v))
    e.state.pose[0] = 0.0
    e.resumed()
    turn = v / radius * DT
    for k in range(1, steps + 1):
        e.step()
        a = k * turn
        assert e.state.pose[0, :2] == pytest.approx(
            [radius * math.sin(a), radius * (1 - math.cos(a))], abs=1e-9
        )
    # To the left is counter-clockwise forward, and clockwise in reverse.
    assert np.sign(e.state.vel[0, 2]) == np.sign(v * steer)


def test_the_angle_changes_at_its_rate_also_at_a_stand() -> None:
    e = one()
    drive(e, SetSteering(0.4, 0.0))
    assert e.state.steer[0, ANGLE] == pytest.approx(0.32)
    drive(e)
    assert e.state.steer[0, ANGLE] == pytest.approx(0.4)
    assert e.state.pose[0].tolist() == [0, 0, 0]
    # A command lowers the rate, and 0 restores the model's own.
    drive(e, SetSteering(0.0, rate=-1.0))
    assert e.state.steer[0, ANGLE] == pytest.approx(0.3)
    assert e.state.steer[0, RATE] == 1.0
    drive(e, SetSteering(0.0, rate=50.0))
    assert e.state.steer[0, RATE] == 3.2
    drive(e, SetSteering(0.0, rate=1.0), SetSteering(0.0, rate=0.0))
    assert e.state.steer[0, RATE] == 3.2


def test_nothing_turns_at_a_stand() -> None:
    e = one()
    drive(e, cmd.SetVelocity(v=0.0, w=1.0), steps=5)
    drive(e, cmd.TurnTo(1.0), steps=5)
    assert e.state.pose[0].tolist() == [0, 0, 0]
    assert e.state.steer[0, ANGLE] == 0.0


@pytest.mark.parametrize("v", [1.0, -1.0])
def test_a_twist_turns_with_its_sign_also_in_reverse(v: float) -> None:
    e = one()
    drive(e, cmd.SetVelocity(v=v, w=0.5), steps=30)
    assert e.state.vel[0] == pytest.approx([v, 0.0, 0.5])
    assert e.state.steer[0, ANGLE] == pytest.approx(math.atan(0.33 * 0.5 / v))


def test_the_curvature_of_a_twist_holds_while_it_accelerates_and_stops() -> None:
    e = one()
    drive(e, cmd.SetVelocity(v=1.0, w=1.0), steps=2)
    angle = math.atan(0.33)
    assert e.state.steer[0, ANGLE] == pytest.approx(angle)
    drive(e, steps=10)
    drive(e, cmd.Stop(), steps=3)
    # It stops on its arc.
    assert 0.0 < e.state.vel[0, 0] < 1.0
    assert e.state.steer[0, ANGLE] == pytest.approx(angle)
    assert e.state.vel[0, 2] == pytest.approx(e.state.vel[0, 0])


def test_a_heading_is_reached_by_an_arc() -> None:
    e = one()
    drive(e, cmd.SetVelocity(v=0.5), cmd.TurnTo(math.pi / 2), steps=120)
    assert e.state.pose[0, 2] == pytest.approx(math.pi / 2, abs=0.01)
    # No tighter than its turning circle
    radius = AXLE.wheelbase / math.tan(AXLE.limit)
    assert e.state.pose[0, 0] > radius


def test_a_distance_move_stops_at_its_distance() -> None:
    e = one()
    drive(e, SetSteering(0.3), steps=2)
    drive(e, cmd.MoveBy(-1.0), steps=60)
    radius = AXLE.wheelbase / math.tan(0.3)
    assert e.state.vel[0].tolist() == [0, 0, 0]
    assert e.state.path[0, 0] == pytest.approx(-1.0, abs=1e-3)
    assert e.state.pose[0, 2] == pytest.approx(-1.0 / radius, abs=1e-3)


def test_turn_rates_of_a_model_can_carry_angles() -> None:
    e = one(car(axle=replace(AXLE, by_angle=True)))
    drive(e, cmd.SetVelocity(v=0.0, w=0.25), steps=3)
    assert e.state.steer[0, ANGLE] == pytest.approx(0.25)


def test_a_blocked_car_does_not_turn_in_place_and_can_leave() -> None:
    e = one(walls=np.array([[1.0, -5.0, 1.0, 5.0]]))
    drive(e, SetSteering(0.4, 1.0), steps=40)
    assert e.state.stall[0] == 1
    rest = e.state.pose[0].copy()
    drive(e, steps=5)
    assert e.state.pose[0] == pytest.approx(rest, abs=1e-5)
    assert e.state.spin[0] == 0.0
    drive(e, SetSteering(0.4, -1.0), steps=20)
    assert e.state.stall[0] == 0
    assert math.dist(e.state.pose[0, :2], rest[:2]) > 0.5


def test_the_corners_of_a_turning_car_count_in_collisions() -> None:
    # A wall to the right of the front corner, which swings out in reverse.
    e = without_ramps(one(walls=np.array([[-1.0, -0.2, 0.6, -0.2]])))
    drive(e, SetSteering(0.42), steps=3)
    drive(e, cmd.SetVelocity(v=-0.3), steps=3)
    assert e.state.mode_a[0] == Mode.STEERING
    drive(e, steps=5)
    assert e.state.stall[0] == 1
    assert e.state.disp[0].tolist() == [0, 0, 0]
    free = without_ramps(one(walls=np.array([[-1.0, -0.2, 0.6, -0.2]])))
    drive(free, cmd.SetVelocity(v=-0.3, w=0.0), steps=8)
    assert free.state.stall[0] == 0


def test_an_emergency_stop_keeps_the_angle_and_ends() -> None:
    e = one()
    drive(e, SetSteering(0.3, 1.0), steps=20)
    drive(e, cmd.EmergencyStop(), steps=4)
    assert e.state.steer[0, ANGLE] == pytest.approx(0.3)
    assert e.state.vel[0].tolist() == [0, 0, 0]
    assert e.state.estop[0] == 0


def test_a_held_car_stands() -> None:
    e = one()
    drive(e, SetSteering(0.3, 1.0), cmd.Hold(True), steps=3)
    assert e.state.vel[0].tolist() == [0, 0, 0]
    drive(e, cmd.Hold(False), steps=3)
    assert e.state.vel[0, 2] > 0.0


def test_a_set_velocity_turns_as_the_wheels_do() -> None:
    e = one()
    drive(e, SetSteering(0.3, 0.0), steps=3)
    SetTwist(Twist(1.0, 0.5, -2.0)).apply(e.state, 0)
    assert e.state.vel[0] == pytest.approx([1.0, 0.0, math.tan(0.3) / 0.33])


# -- odometry


def test_without_errors_odometry_is_the_truth() -> None:
    e = one()
    drive(e, SetSteering(0.3, 1.0), steps=40)
    assert e.state.odom[0] == pytest.approx(e.state.pose[0], abs=1e-12)


@pytest.mark.parametrize("offset", [0.02, -0.05])
def test_a_steering_offset_bends_a_straight_line(offset: float) -> None:
    spec = car(axle=replace(AXLE, offset=offset))
    e = one(spec, mode=OdometryErrorMode.CONSTANT)
    drive(e, cmd.SetVelocity(v=1.0, w=0.0), steps=40)
    far = e.state.path[0, 0]
    assert e.state.odom[0] == pytest.approx([far, 0.0, 0.0])
    assert e.state.pose[0, 2] == pytest.approx(far * math.tan(offset) / 0.33)
    # Odometry without errors is exact for any offset.
    exact = one(spec)
    drive(exact, cmd.SetVelocity(v=1.0, w=0.0), steps=40)
    assert exact.state.odom[0] == pytest.approx(exact.state.pose[0], abs=1e-9)


def test_unequal_wheels_measure_another_distance() -> None:
    ratio = 1.1
    e = one(car(wheel_ratio=ratio), mode=OdometryErrorMode.CONSTANT)
    drive(e, SetSteering(0.3, 1.0), steps=30)
    # The mean of both wheels, by their nominal diameters
    left = 2.0 / (1.0 + ratio)
    turn = e.state.vel[0, 2] * DT
    by_left = (DT * 1.0 - turn * 0.12) / left
    by_right = (DT * 1.0 + turn * 0.12) / (ratio * left)
    before = e.state.path[0].copy()
    drive(e)
    moved = e.state.path[0] - before
    assert moved[0] == pytest.approx(0.5 * (by_left + by_right))
    assert moved[1] == pytest.approx(moved[0] * math.tan(0.3) / 0.33)


@pytest.mark.parametrize("offset", [0.0, 0.02])
def test_the_turn_follows_from_the_measured_distance_with_its_error(
    offset: float,
) -> None:
    errors = Axes(0.1, 0.0, 0.02)
    spec = car(
        axle=replace(AXLE, offset=offset),
        odometry_error=errors,
        odometry_error_low=errors,
    )
    e = one(spec, mode=OdometryErrorMode.CONSTANT)
    drive(e, SetSteering(0.3, 1.0), steps=30)
    before = e.state.path[0].copy()
    drive(e)
    far, turned = e.state.path[0] - before
    assert far == pytest.approx(1.1 * DT * 1.0)
    assert turned == pytest.approx(1.02 * far * math.tan(0.3) / 0.33)


@given(st.floats(-1, 1), st.floats(-0.4, 0.4))
def test_steering_odometry_of_equal_wheels(forward: float, angle: float) -> None:
    turned = forward * math.tan(angle) / 0.33
    assert by_steering(forward, turned, 1.0, 0.12, angle, 0.33) == pytest.approx(
        (forward, turned), abs=1e-12
    )


# -- the column


def test_the_column_has_rows_only_while_a_body_steers() -> None:
    e = Engine(Scene())
    plain = BodySpec(name="p", parts=(CAR,), kinematics=Kinematics(kind=Drive.DIFF))
    e.add_bodies([(plain, Pose(5, 5, 1))])
    assert e.state.steer.shape == (0, 7)
    e.step()
    e.add_bodies([(car("a"), Pose(0, 0, 0)), (car("b"), Pose(0, 3, 0))])
    assert e.state.steer.shape == (3, 7)
    assert e.state.pose[0].tolist() == [5, 5, 1]
    e.queue_command("b", SetSteering(0.3, 1.0))
    shown = e.step(3)
    assert shown.state.steer[2, ANGLE] == pytest.approx(0.3)
    # The next snapshot must not be an older buffer.
    e.queue_command("b", SetSteering(-0.1))
    assert e.step(2).state.steer[2, ANGLE] == pytest.approx(-0.1)
    e.arrange([2, 0, 1])
    assert e.state.steer[0, ANGLE] == pytest.approx(-0.1)
    e.remove_bodies(["a"])
    assert e.state.steer.shape == (2, 7)
    assert e.state.steer[0, ANGLE] == pytest.approx(-0.1)
    assert e.state.steer[0, OFFSET] == 0.0
    e.remove_bodies(["b"])
    assert e.state.steer.shape == (0, 7)
    assert e.state.pose[0].tolist() == [5, 5, 1]
    e.step(3)


def test_a_plain_robot_ignores_steering() -> None:
    e = Engine(Scene())
    plain = BodySpec(name="r0", parts=(CAR,), kinematics=Kinematics(kind=Drive.DIFF))
    e.add_bodies([(plain, Pose())])
    drive(e, SetSteering(0.3, 1.0), steps=3)
    assert e.state.vel[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, "x"])
def test_commands_are_finite(value) -> None:
    with pytest.raises(CommandError, match="steering"):
        SetSteering(value)
    with pytest.raises(CommandError, match="steering"):
        SetSteering(0.0, value)
    with pytest.raises(CommandError, match="steering"):
        SetSteering(0.0, rate=value)
