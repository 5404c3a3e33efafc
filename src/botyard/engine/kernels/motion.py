"""Velocity of a step from commands: targets, limits, ramps.

See pioneer-protocol §11.1–11.2.

The scalar kernels read like the formulas; `plan_velocities` applies them to all rows.
They allocate nothing, and run in any thread.

A step moves at its final velocity (semi-implicit Euler, as in AMRISim). From rest
to v by a ramp a, the distance is v dt / 2 longer than v² / (2 a). Robots with exact
ramps (`Bodies.exact`) move by the integral of the velocity, which changes linearly
until it reaches its target.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.layout import (
    ANGLE,
    BY_ANGLE,
    F8,
    FIRST_STEERED,
    LAST_STEERED,
    LIMIT,
    MECANUM,
    NO_DRIVE,
    OFFSET,
    OMNI,
    POSITION_MODE,
    RATE,
    SLIDE,
    SPEED,
    STEERING_MODE,
    VELOCITY_MODE,
    WHEELBASE,
    Bodies,
    State,
)
from botyard.numerics.elementary import atan, cosine_sine, tan

SNAP_LINEAR = 0.010
"""Difference from its target below which a velocity takes the target at once, m/s (§11.2)."""
SNAP_ANGULAR = 0.05
"""Difference from its target below which a turn rate takes the target at once, rad/s."""
ESTOP_LINEAR = 9.999
"""Deceleration of an emergency stop, m/s² (§4.1, command 55)."""
ESTOP_ANGULAR = math.radians(9999.0)
"""Angular deceleration of an emergency stop, rad/s²."""
MOVE_DONE = 2e-5
"""Remaining distance at which a distance move is finished, m (§11.1)."""
HEADING_DONE = 3e-4
"""Heading error that counts as zero, rad (§11.1)."""
HEADING_GAIN = 1.0
"""Turn rate per heading error, 1/s (§11.1)."""
HEADING_MIN = 0.007
"""Least turn rate of a heading target, rad/s (§11.1)."""
S1, S2, S3, S4, S5 = -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800
C1, C2, C3, C4 = -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800
"""Taylor coefficients of sin(θ)/θ and (1 − cos θ)/θ, see `turning`."""


@kernel
def wrap(angle: float) -> float:
    """Return `angle` wrapped to (−π, π], rad.

    Parameters
    ----------
    angle : float
        Finite angle, rad.
    """
    # An angle in range, which is the usual case, keeps all its bits.
    if -math.pi < angle <= math.pi:
        return angle
    # Multiply once instead of looping, because an angle may be many turns away.
    turns = math.floor((angle + math.pi) / (2.0 * math.pi))
    angle -= 2.0 * math.pi * turns
    # The result may be −π itself, or an angle that rounding left just outside of the
    # range.
    if angle <= -math.pi or angle > math.pi:
        return math.pi

    return angle


@kernel
def clip(value: float, limit: float) -> float:
    """Return `value` clamped to ± `limit`.

    Parameters
    ----------
    value : float
        Number in any unit.
    limit : float
        Bound in the same unit, at least 0.
    """
    return max(-limit, min(limit, value))


@kernel
def ramp(
    current: float, desired: float, accel: float, decel: float, dt: float, snap: float
) -> float:
    """Return the velocity after a step of a ramp.

    See pioneer-protocol §11.2. A change of sign passes through zero.

    Parameters
    ----------
    current, desired : float
        Velocity before, and target, m/s or rad/s.
    accel, decel : float
        Ramps away from zero and towards zero, m/s² or rad/s²; 0 is immediate.
    dt : float
        Duration of the step, s.
    snap : float
        Difference within which the target is taken at once, m/s or rad/s.
    """
    # Without this snap, a ramp could alternate around its target.
    if abs(current - desired) <= snap:
        return desired
    # The speed falls, towards zero or a smaller speed.
    if current * desired < 0.0 or abs(desired) < abs(current):
        # A deceleration of 0 means an immediate change.
        if decel <= 0.0:
            return desired
        speed = abs(current) - decel * dt
        # A change of direction stops at zero first.
        floor = 0.0 if current * desired < 0.0 else abs(desired)
        return math.copysign(max(speed, floor), current)

    # An acceleration of 0 means an immediate change.
    if accel <= 0.0:
        return desired
    return math.copysign(min(abs(current) + accel * dt, abs(desired)), desired)


@kernel
def ramp_lead(
    before: float, after: float, accel: float, decel: float, dt: float
) -> float:
    """Return the integral of a ramping velocity beyond the final one times dt.

    The velocity ramps from the start of the step, then stays at `after`. A jump to
    `after` (see `ramp`) is treated in the same way.

    Parameters
    ----------
    before, after : float
        Velocities at both ends of the step, m/s or rad/s.
    accel, decel : float
        Ramps, m/s² or rad/s²; 0 is immediate.
    dt : float
        Duration of the step, s.

    Returns
    -------
    float
        Additional displacement, m or rad.
    """
    slows = before * after < 0.0 or abs(after) < abs(before)
    # The same case distinction as in `ramp`: both must describe one motion.
    rate = decel if slows else accel
    if rate <= 0.0 or before == after:
        return 0.0
    return 0.5 * (before - after) * min(dt, abs(after - before) / rate)


@kernel
def move_speed(remaining: float, limit: float, decel: float, dt: float) -> float:
    """Return the speed of a distance move, m/s.

    It is the highest allowed one that can still stop at the target: the largest v with
    v·dt + v²/(2·decel) ≤ abs(remaining). One more step at v and then braking ends
    exactly at the target. So v² ≤ 2·decel·remaining always holds, and the ramp never has
    to brake harder than `decel`.

    Parameters
    ----------
    remaining : float
        Remaining distance, m; its sign is the sign of the result.
    limit : float
        Speed limit, m/s.
    decel : float
        Deceleration, m/s²; 0 is immediate.
    dt : float
        Duration of a step, s.
    """
    distance = abs(remaining)
    # A robot that can stop at once may arrive at full speed.
    if decel <= 0.0:
        speed = distance / dt
    else:
        # Positive root of v² / (2 decel) + v dt = distance
        speed = decel * (math.sqrt(dt * dt + 2.0 * distance / decel) - dt)

    return math.copysign(min(speed, limit), remaining)


@kernel
def heading_rate(error: float, limit: float, dt: float) -> float:
    """Return the turn rate of a heading target, rad/s.

    It is proportional and limited, and never passes the target (pioneer-protocol
    §11.1).

    Parameters
    ----------
    error : float
        Target minus heading, rad in (−π, π].
    limit : float
        Limit of the turn rate, rad/s.
    dt : float
        Duration of a step, s.
    """
    size = abs(error)
    if size <= HEADING_DONE:
        return 0.0
    # The last bound reaches the target within this step, but never passes it.
    rate = min(max(size * HEADING_GAIN, HEADING_MIN), limit, size / dt)
    return math.copysign(rate, error)


@inline_kernel
def slides_sideways(drive: int) -> bool:
    """Return whether a body with this kind of drive can move sideways.

    Parameters
    ----------
    drive : int
        `State.drive` of the body.
    """
    return drive in (OMNI, MECANUM)


@inline_kernel
def forward_speed(
    state: State, bodies: Bodies, i: int, limit: float, dt: float
) -> float:
    """Return the forward velocity that the target of a body asks for, m/s.

    Parameters
    ----------
    state : State
        State of all bodies.
    bodies : Bodies
        Shapes; `exact` says whether the ramp is exact.
    i : int
        Row of the body.
    limit : float
        Highest speed, m/s.
    dt : float
        Duration of the step, s.
    """
    target, decel = state.target[i, 0], state.decel[i, 0]
    if state.mode_x[i] != POSITION_MODE:
        return clip(target, limit)
    # The target is the remaining distance. Half of the change counts in this step, see
    # `ramp_lead`.
    if bodies.exact[i] == 1 and decel > 0.0:
        most = abs(target) - 0.5 * dt * abs(state.vel[i, 0])
        return move_speed(math.copysign(max(most, 0.0), target), limit, decel, 0.5 * dt)
    return move_speed(target, limit, decel, dt)


@inline_kernel
def within_speed(x: float, y: float, limit: float) -> tuple[float, float]:
    """Return a velocity, shortened to a limit of the speed, m/s.

    The limit of the floor holds for the speed, not for each axis.
    """
    speed = math.sqrt(x * x + y * y)
    return (x * (limit / speed), y * (limit / speed)) if speed > limit else (x, y)


@merged_kernel
def plan_velocities(
    state: State, bodies: Bodies, dt: float, limited: bool, first: int, end: int
) -> None:
    """Write the velocities of this step for rows with a drive.

    Also ends finished distance moves and emergency stops, and writes `Bodies.lead` of
    bodies with exact ramps.

    Parameters
    ----------
    state : State
        State of all bodies. In-place: `vel`, and targets and modes of moves that end.
    bodies : Bodies
        Shapes. Output: `lead`.
    dt : float
        Duration of the step, s.
    limited : bool
        Whether `Bodies.ground` has speed limits of the floor.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    exact, lead, ground = bodies.exact, bodies.lead, bodies.ground
    vel, target, odom = state.vel, state.target, state.odom
    max_vel, top_vel, accel, decel = (
        state.max_vel,
        state.top_vel,
        state.accel,
        state.decel,
    )
    mode_x, mode_a, drive = state.mode_x, state.mode_a, state.drive
    motors, estop, held, heading_speed = (
        state.motors,
        state.estop,
        state.held,
        state.heading_speed,
    )

    for i in range(first, end):
        # A body without a drive has no motors.
        if drive[i] == NO_DRIVE:
            continue
        # A held body stands still, but keeps its targets for its release.
        if held[i] == 1:
            vel[i, 0] = vel[i, 1] = vel[i, 2] = 0.0
            lead[i, 0] = lead[i, 1] = lead[i, 2] = 0.0
            continue

        # Limits of a client never exceed the model's limits.
        lim_x = min(max_vel[i, 0], top_vel[i, 0])
        lim_a = min(max_vel[i, 2], top_vel[i, 2])
        # Robots that move sideways are limited below by `within_speed`, which keeps the
        # direction of their motion.
        if limited and not slides_sideways(int(drive[i])):
            lim_x = min(lim_x, ground[i, SPEED])
        # A finished distance move continues with velocity 0.
        if mode_x[i] == POSITION_MODE and abs(target[i, 0]) <= MOVE_DONE:
            mode_x[i] = VELOCITY_MODE
            target[i, 0] = 0.0

        # With the emergency stop or without motors, the robot stops, whatever its
        # targets.
        if estop[i] == 1 or motors[i] == 0:
            want_x = want_y = want_a = 0.0
        else:
            want_x, want_y = forward_speed(state, bodies, i, lim_x, dt), 0.0
            if slides_sideways(int(drive[i])):
                want_y = clip(target[i, 1], min(max_vel[i, 1], top_vel[i, 1]))
                if limited:
                    want_x, want_y = within_speed(want_x, want_y, ground[i, SPEED])

            # The target is a heading in the odometry frame.
            if mode_a[i] == POSITION_MODE:
                error = wrap(target[i, 2] - odom[i, 2])
                want_a = heading_rate(error, min(heading_speed[i], top_vel[i, 2]), dt)
            else:
                want_a = clip(target[i, 2], lim_a)

        dec_x, dec_y, dec_a = decel[i, 0], decel[i, 1], decel[i, 2]
        # The emergency stop uses the highest deceleration of the robot, not the limits
        # of its ramps.
        if estop[i] == 1:
            dec_x = dec_y = ESTOP_LINEAR
            dec_a = ESTOP_ANGULAR

        # The integral of the ramp needs the velocity before it.
        was_x, was_y, was_a = vel[i, 0], vel[i, 1], vel[i, 2]
        vel[i, 0] = ramp(vel[i, 0], want_x, accel[i, 0], dec_x, dt, SNAP_LINEAR)
        vel[i, 1] = ramp(vel[i, 1], want_y, accel[i, 1], dec_y, dt, SNAP_LINEAR)
        vel[i, 2] = ramp(vel[i, 2], want_a, accel[i, 2], dec_a, dt, SNAP_ANGULAR)
        if exact[i] == 1:
            lead[i, 0] = ramp_lead(was_x, vel[i, 0], accel[i, 0], dec_x, dt)
            lead[i, 1] = ramp_lead(was_y, vel[i, 1], accel[i, 1], dec_y, dt)
            lead[i, 2] = ramp_lead(was_a, vel[i, 2], accel[i, 2], dec_a, dt)

        # The emergency stop ends at rest.
        if estop[i] == 1 and vel[i, 0] == 0.0 and vel[i, 1] == 0.0 and vel[i, 2] == 0.0:
            estop[i] = 0


@inline_kernel
def steers(drive: int) -> bool:
    """Return whether a body with this kind of drive steers.

    Parameters
    ----------
    drive : int
        `State.drive` of the body.
    """
    return FIRST_STEERED <= drive <= LAST_STEERED


@kernel
def steering_target(state: State, i: int, dt: float) -> float:
    """Return the steering angle that a body aims at, before limits, rad.

    It follows from a steering angle, or from the curvature of a turn rate at the
    commanded speed: δ = atan(L·ω/v). A heading is reached by an arc at the present
    speed. Without a speed there is no curvature, and the wheels keep their angle.

    Parameters
    ----------
    state : State
        State of all bodies.
    i : int
        Row of a body that steers, after `plan_velocities`.
    dt : float
        Duration of the step, s.
    """
    steer, target = state.steer, state.target
    if state.estop[i] == 1 or state.motors[i] == 0:
        return float(steer[i, ANGLE])
    if state.mode_a[i] == STEERING_MODE or (
        state.mode_a[i] == VELOCITY_MODE and steer[i, BY_ANGLE] != 0.0
    ):
        return float(target[i, 2])

    if state.mode_a[i] == POSITION_MODE:
        speed = state.vel[i, 0]
        limit = min(state.heading_speed[i], state.top_vel[i, 2])
        turn = heading_rate(wrap(target[i, 2] - state.odom[i, 2]), limit, dt)
    else:
        # The commanded curvature, which neither ramps nor limits of speed change.
        speed, turn = target[i, 0], target[i, 2]
        # The target is a distance: it is driven at the limit, and slowly at its end.
        if state.mode_x[i] == POSITION_MODE:
            speed = math.copysign(
                min(state.max_vel[i, 0], state.top_vel[i, 0]), target[i, 0]
            )

    if speed == 0.0:
        return float(steer[i, ANGLE])
    return atan(steer[i, WHEELBASE] * turn / speed)


@kernel
def steered_angle(
    angle: float, desired: float, rate: float, limit: float, dt: float
) -> float:
    """Return the steering angle after a step, rad.

    Parameters
    ----------
    angle, desired : float
        Angle before, and target, rad.
    rate : float
        Limit of the rate of the angle, rad/s; 0: unlimited.
    limit : float
        Limit of the angle to both sides, rad. It holds at once.
    dt : float
        Duration of the step, s.
    """
    change = clip(desired, limit) - angle
    if rate > 0.0:
        change = clip(change, rate * dt)
    return clip(angle + change, limit)


@kernel
def plan_steering(
    state: State, bodies: Bodies, dt: float, first: int, end: int
) -> None:
    """Turn the wheels of bodies that steer, and write their turn rates.

    A step is one exact arc: the curvature at its end, tan(δ)/L, holds for all of it.
    The steering angle never demands a turn rate above its limit.

    Parameters
    ----------
    state : State
        State of all bodies after `plan_velocities`. In-place: `steer` and `vel`.
    bodies : Bodies
        Shapes. In-place: `lead`.
    dt : float
        Duration of the step, s.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    steer, vel, lead = state.steer, state.vel, bodies.lead
    for i in range(first, end):
        if not steers(int(state.drive[i])) or state.held[i] == 1:
            continue
        v, base = vel[i, 0], steer[i, WHEELBASE]
        lim_a = min(state.max_vel[i, 2], state.top_vel[i, 2])
        limit = steer[i, LIMIT]
        # At a higher speed, less steering reaches the limit of the turn rate.
        if v != 0.0:
            limit = min(limit, atan(abs(base) * lim_a / abs(v)))
        steer[i, ANGLE] = steered_angle(
            steer[i, ANGLE], steering_target(state, i, dt), steer[i, RATE], limit, dt
        )
        curvature = true_curvature(steer, i)
        # Only an offset, or rounding, leads beyond the limit here.
        if abs(v * curvature) > lim_a:
            curvature = math.copysign(lim_a / abs(v), curvature)
        vel[i, 2] = v * curvature
        if bodies.exact[i] == 1:
            lead[i, 2] = lead[i, 0] * curvature


@kernel
def plan_slides(state: State, bodies: Bodies, dt: float, first: int, end: int) -> None:
    """Write the velocities with which skid-steered bodies slide sideways in a turn.

    The centre of rotation is `SLIDE` in front of the origin: vy = −slide·ω.

    Parameters
    ----------
    state : State
        State of all bodies after `plan_velocities`. In-place: `vel`.
    bodies : Bodies
        Shapes. In-place: `lead`.
    dt : float
        Duration of the step, s.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    slips, vel, lead = bodies.slips, state.vel, bodies.lead
    for i in range(first, end):
        slide = slips[i, SLIDE]
        if slide != 0.0:
            vel[i, 1] = -slide * vel[i, 2]
            lead[i, 1] = -slide * lead[i, 2]


@kernel
def true_curvature(steer: F8, i: int) -> float:
    """Return the curvature of a body's arc by the true angle of its wheels, 1/m.

    Parameters
    ----------
    steer : (n, 7) float64
        `State.steer`.
    i : int
        Row of a body that steers.
    """
    return tan(steer[i, ANGLE] + steer[i, OFFSET]) / steer[i, WHEELBASE]


@inline_kernel
def turning(dth: float) -> tuple[float, float]:
    """Return sin(θ)/θ and (1 − cos θ)/θ.

    Parameters
    ----------
    dth : float
        Angle θ of the turn, rad.
    """
    if abs(dth) < 0.25:
        # Taylor series up to θ¹⁰, because the quotients are 0/0 at 0: the omitted terms
        # are below 1e-16.
        q = dth * dth
        return 1.0 + q * (S1 + q * (S2 + q * (S3 + q * (S4 + q * S5)))), dth * (
            0.5 + q * (C1 + q * (C2 + q * (C3 + q * C4)))
        )

    # Far from 0 the quotients lose no digits.
    c, s = cosine_sine(dth)
    return s / dth, (1.0 - c) / dth


@kernel
def arc(dx: float, dy: float, dth: float) -> tuple[float, float]:
    """Return the end point of a constant body twist in the frame of its start, m.

    It is the exponential map of SE(2), see `geometry.exp`.

    Parameters
    ----------
    dx, dy, dth : float
        Body twist times dt: m, m, rad.
    """
    s, c = turning(dth)
    return s * dx - c * dy, c * dx + s * dy
