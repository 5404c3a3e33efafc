from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine.kernels import motion
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from tests import naive
from tests.engine.worlds import engine

speed = st.floats(-3, 3)
rate = st.floats(0, 5)
NOTHING = np.zeros((0, 4))
PERFECT = {"odometry_error_mode": OdometryErrorMode.NONE}


def one(**options) -> Engine:
    return engine(NOTHING, [(0, 0, 0)], **PERFECT, **options)


def run(e: Engine, *commands: cmd.Command, steps: int = 1) -> np.ndarray:
    for c in commands:
        e.queue_command("r0", c)
    return np.array([e.step().state.vel[0].copy() for _ in range(steps)])


@given(speed, speed, rate, rate, st.floats(0.001, 1))
def test_ramp_equals_the_twin(
    cur: float, des: float, accel: float, decel: float, dt: float
) -> None:
    assert motion.ramp(cur, des, accel, decel, dt, 0.01) == pytest.approx(
        naive.ramp(cur, des, accel, decel, dt, 0.01), abs=1e-9
    )


@given(speed, speed, st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.01, 0.2))
def test_ramp_never_exceeds_its_rates_and_passes_through_zero(
    cur, des, accel, decel, dt
) -> None:
    new = motion.ramp(cur, des, accel, decel, dt, 0.0)
    assert abs(new - cur) <= max(accel, decel) * dt + 1e-12
    if cur * des < 0:
        assert cur * new >= 0


@given(st.floats(-1e3, 1e3))
def test_wrap_equals_the_host_side_one(angle: float) -> None:
    from botyard.units import wrap_angle

    assert math.isclose(
        math.remainder(motion.wrap(angle) - wrap_angle(angle), 2 * math.pi),
        0,
        abs_tol=1e-9,
    )
    assert -math.pi < motion.wrap(angle) <= math.pi


@given(st.floats(-10, 10), st.floats(0.05, 3), st.floats(0.1, 3), st.floats(0.01, 0.5))
def test_a_distance_move_can_always_stop_in_time(
    remaining: float, limit: float, decel: float, dt: float
) -> None:
    v = motion.move_speed(remaining, limit, decel, dt)
    assert v * remaining >= 0
    assert abs(v) <= limit
    assert v * v <= 2 * decel * abs(remaining) + 1e-12, (
        "decisions: v² ≤ 2·decel·remaining"
    )
    left = abs(remaining) - abs(v) * dt
    assert left >= -1e-12
    # A robot that brakes with `decel` from now on stops at or before the target.
    assert v * v / (2 * decel) <= left + 1e-9


@given(st.floats(-math.pi, math.pi), st.floats(0.1, 3), st.floats(0.01, 0.2))
def test_heading_rate_never_passes_the_target(
    error: float, limit: float, dt: float
) -> None:
    w = motion.heading_rate(error, limit, dt)
    assert abs(w) <= limit
    assert w * error >= 0
    assert abs(w) * dt <= abs(error) + 1e-12


@pytest.mark.parametrize("distance", [1.0, -1.0, 0.03, -0.4, 2.5])
@pytest.mark.parametrize("heading", [0.0, math.pi / 2, -2.0])
def test_moves_arrive_within_a_millimetre_in_any_direction(
    distance: float, heading: float
) -> None:
    e = engine(NOTHING, [(1, 2, heading)], **PERFECT)
    e.queue_command("r0", cmd.MoveBy(distance))
    best = [abs(e.step().state.vel[0, 0]) for _ in range(200)]
    x, y, _th = e.state.pose[0]
    assert (
        math.hypot(
            x - 1 - distance * math.cos(heading), y - 2 - distance * math.sin(heading)
        )
        < 1e-3
    )
    assert e.state.vel[0].tolist() == [0, 0, 0]
    assert e.state.mode_x[0] == 0
    assert max(best) > 0


def test_negative_moves_mirror_positive_ones() -> None:
    there, back = one(), one()
    v1, v2 = (
        run(there, cmd.MoveBy(1.0), steps=100),
        run(back, cmd.MoveBy(-1.0), steps=100),
    )
    assert np.allclose(v1, -v2, atol=0)


def test_a_move_is_as_fast_as_the_ramps_allow() -> None:
    # With 0.5 m/s² to accelerate and to brake, 1 m takes at least 2·√(1/0.5) = 2.83 s.
    e = one()
    v = run(e, cmd.MoveBy(1.0), steps=60)
    assert np.flatnonzero(v[:, 0])[-1] * 0.1 < 2.83 + 0.5


def test_setv_limits_moves_and_velocities() -> None:
    e = one()
    v = run(e, cmd.SetLimits(v=0.2), cmd.SetVelocity(v=1.0), steps=20)
    assert v[:, 0].max() == pytest.approx(0.2)
    e.queue_command("r0", cmd.SetLimits(v=99.0))
    e.step()
    assert e.state.max_vel[0, 0] == e.state.top_vel[0, 0], (
        "never above the model's own limit"
    )


@pytest.mark.parametrize("heading", [0.5, -3.0, math.pi, 2.2])
def test_headings_arrive_the_short_way(heading: float) -> None:
    e = engine(NOTHING, [(0, 0, 1.0)], **PERFECT)
    e.queue_command("r0", cmd.TurnTo(heading))
    turned = np.array([e.step().state.vel[0, 2] for _ in range(150)]).sum() * 0.1
    assert e.state.odom[0, 2] == pytest.approx(heading, abs=0.002)
    assert turned == pytest.approx(math.remainder(heading, 2 * math.pi), abs=0.01)


@pytest.mark.parametrize(
    ("start", "heading", "way"),
    [(3.0, -3.0, 2 * math.pi - 6.0), (-2.5, 2.5, 5.0 - 2 * math.pi), (2.0, 1.0, -1.0)],
)
def test_headings_across_the_half_turn_arrive_the_short_way(
    start: float, heading: float, way: float
) -> None:
    """MOT-005: a turn across ±π takes the short way."""
    e = one()
    run(e, cmd.SetOdometry(Pose(0, 0, start)), steps=1)
    turned = run(e, cmd.TurnTo(heading), steps=120)[:, 2].sum() * 0.1
    assert turned == pytest.approx(way, abs=0.01)
    assert e.state.odom[0, 2] == pytest.approx(heading, abs=0.002)


@pytest.mark.parametrize("axis", ["v", "vy", "w"])
def test_every_axis_obeys_its_limit_and_the_models(axis: str) -> None:
    """MOT-007: commands beyond a limit are cut to it, in both directions."""
    column = ("v", "vy", "w").index(axis)
    for sign in (1, -1):
        e = one()
        top = float(e.state.top_vel[0, column])
        v = run(
            e,
            cmd.SetLimits(**{axis: 0.3}),
            cmd.SetVelocity(**{axis: sign * 50.0}),
            steps=30,
        )
        assert np.abs(v[:, column]).max() == pytest.approx(0.3)
        v = run(
            e,
            cmd.SetLimits(**{axis: 1e3}),
            cmd.SetVelocity(**{axis: sign * 50.0}),
            steps=120,
        )
        assert np.abs(v[:, column]).max() == pytest.approx(top)


def test_relative_headings_are_taken_at_receipt_and_cross_the_half_turn() -> None:
    e = one()
    run(e, cmd.SetOdometry(Pose(0, 0, 3.0)), steps=1)
    run(e, cmd.TurnBy(1.0), steps=120)
    assert math.remainder(e.state.odom[0, 2] - 4.0, 2 * math.pi) == pytest.approx(
        0, abs=0.002
    )


def test_stopping_distance() -> None:
    e = one()
    run(e, cmd.SetVelocity(v=1.0), steps=40)
    x = e.state.pose[0, 0]
    run(e, cmd.Stop(), steps=40)
    # The distance is v²/(2·decel) in continuous time, less half a step of travel.
    assert e.state.pose[0, 0] - x == pytest.approx(
        1.0 / (2 * 0.5) - 1.0 * 0.1 / 2, abs=0.011
    )


def test_emergency_stop_latches_until_at_rest() -> None:
    e = one()
    run(e, cmd.SetVelocity(v=3.0, w=1.0), steps=60)
    e.queue_command("r0", cmd.EmergencyStop())
    e.queue_command("r0", cmd.SetVelocity(v=1.0))
    v = run(e, steps=1)
    assert v[0, 0] == pytest.approx(3.0 - 0.9999), "9.999 m/s²"
    assert e.state.estop[0] == 1
    run(e, cmd.SetVelocity(v=1.0), steps=3)
    assert e.state.estop[0] == 0
    assert run(e, steps=5)[:, 0].max() == 0, "commands during the stop are forgotten"
    assert run(e, cmd.SetVelocity(v=1.0), steps=5)[-1, 0] > 0


def test_motors_off_ramps_down_and_forgets() -> None:
    e = one()
    run(e, cmd.SetVelocity(v=1.0), steps=40)
    v = run(e, cmd.EnableMotors(False), cmd.SetVelocity(v=1.0), steps=30)[:, 0]
    assert v[0] == pytest.approx(0.95)
    assert v[-1] == 0
    assert run(e, cmd.EnableMotors(True), steps=5)[:, 0].max() == 0


def test_halt_is_immediate() -> None:
    e = one()
    run(e, cmd.SetVelocity(v=1.0), steps=30)
    assert run(e, cmd.Halt(), steps=1)[0].tolist() == [0, 0, 0]
    e.state.stall[0] = e.state.estop[0] = 1
    e.queue_command("r0", cmd.Halt())
    e.settle()
    assert (e.state.stall[0], e.state.estop[0]) == (0, 0), (
        "nothing blocks what does not want to move"
    )


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-2, 2))
def test_arcs_are_exact(vx: float, vy: float, w: float) -> None:
    e = one()
    e.state.accel[:] = e.state.decel[:] = 0.0
    e.queue_command("r0", cmd.SetVelocity(v=vx, vy=vy, w=w))
    e.step(10)
    x, y, th = naive.exp((vx, vy, w), 1.0)
    assert e.state.pose[0, :2].tolist() == pytest.approx([x, y], abs=1e-9)
    assert math.remainder(e.state.pose[0, 2] - th, 2 * math.pi) == pytest.approx(
        0, abs=1e-9
    )
    assert e.state.odom[0].tolist() == pytest.approx(e.state.pose[0].tolist(), abs=1e-9)


def test_a_circle_closes_for_any_step_length() -> None:
    for step_us in (10_000, 100_000, 250_000):
        e = one(step_us=step_us)
        e.state.accel[:] = e.state.decel[:] = 0.0
        e.queue_command("r0", cmd.SetVelocity(v=0.5, w=2 * math.pi / 10))
        e.step(10_000_000 // step_us)
        assert np.abs(e.state.pose[0, :2]).max() < 1e-9


def test_lateral_motion_only_with_an_omnidirectional_drive() -> None:
    for vy in (0.5, -0.5):
        e = one()
        assert run(e, cmd.SetVelocity(vy=vy), steps=20)[-1] == pytest.approx(
            (0.0, vy, 0.0)
        )
        assert math.copysign(1.0, vy) * e.state.pose[0, 1] > 0.5, "y is to the left"
        e.state.drive[0] = 1
        assert run(e, cmd.SetVelocity(vy=vy), steps=20)[-1, 1] == 0


@pytest.mark.parametrize(("axis", "snap"), [(0, 0.010), (1, 0.010), (2, 0.05)])
def test_a_velocity_near_its_target_takes_it_at_once(axis: int, snap: float) -> None:
    """MOT-011: within 10 mm/s or 0.05 rad/s, and not from farther off."""
    e = one()
    name = ("v", "vy", "w")[axis]
    run(
        e,
        cmd.SetRamp(axis, accel=100.0, decel=0.01),
        cmd.SetVelocity(**{name: 0.4}),
        steps=2,
    )
    v = run(e, cmd.SetVelocity(**{name: 0.4 - 1.1 * snap}), steps=1)[0, axis]
    assert v == pytest.approx(0.399), "by its ramp"
    v = run(e, cmd.SetVelocity(**{name: v - 0.9 * snap}), steps=1)[0, axis]
    assert v == pytest.approx(0.399 - 0.9 * snap), "at once"


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_axis_has_ramps_of_its_own(axis: int) -> None:
    """Each axis speeds up with its acceleration and slows down with its deceleration;
    the others do not change (MOT-008, MOT-009).
    """
    e = one()
    accel, decel, top = 0.8, 0.4, 0.4
    command = cmd.SetVelocity(**{("v", "vy", "w")[axis]: top})
    v = run(e, cmd.SetRamp(axis, accel=accel, decel=decel), command, steps=7)
    assert v[:, axis].tolist() == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.4, 0.4, 0.4])
    v = run(e, cmd.SetVelocity(v=0.0, vy=0.0, w=0.0), steps=9)
    assert v[:8, axis].tolist() == pytest.approx(
        [0.36, 0.32, 0.28, 0.24, 0.2, 0.16, 0.12, 0.08]
    )
    assert v[8, axis] <= 0.04 + 1e-9
    assert not v[:, [k for k in range(3) if k != axis]].any()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_commands_with_values_that_make_no_sense_are_refused(value: float) -> None:
    from botyard.errors import CommandError

    makers = (
        lambda: cmd.SetVelocity(v=value),
        lambda: cmd.MoveBy(value),
        lambda: cmd.TurnTo(value),
        lambda: cmd.TurnBy(value),
        lambda: cmd.SetLimits(w=value),
        lambda: cmd.SetRamp(0, accel=value),
        lambda: cmd.SetPose(Pose(0, value, 0)),
    )
    for make in makers:
        with pytest.raises(CommandError, match="finite"):
            make()
