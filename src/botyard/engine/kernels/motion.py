"""Velocity of a step from commands: targets, limits, ramps.

See pioneer-protocol §11.1–11.2.

The scalar kernels read like the formulas; `plan_velocities` applies them to all rows.
They allocate nothing, and run in any thread.

A step moves at its final velocity (semi-implicit Euler, as in the original). From rest
to v by a ramp a, the distance is v dt / 2 longer than v² / (2 a). Robots with exact
ramps (`Bodies.exact`) move by the integral of the velocity, which changes linearly
until it reaches its target.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.layout import (
    NO_DRIVE,
    OMNI,
    POSITION_MODE,
    VELOCITY_MODE,
    Bodies,
    State,
)
from botyard.numerics.elementary import cosine_sine

SNAP_LINEAR = 0.010
"""Difference from its target below which a velocity takes it at once, m/s (§11.2)."""
SNAP_ANGULAR = 0.05
"""The same for rotation, rad/s."""
ESTOP_LINEAR = 9.999
"""Deceleration of an emergency stop, m/s² (§4.1, command 55)."""
ESTOP_ANGULAR = math.radians(9999.0)
"""The same for rotation, rad/s²."""
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
    """Return `angle` wrapped to (−π, π], rad."""
    # In the usual case the angle keeps all its bits.
    if -math.pi < angle <= math.pi:
        return angle
    turns = math.floor((angle + math.pi) / (2.0 * math.pi))
    angle -= 2.0 * math.pi * turns
    # −π itself, or an angle that rounding left just outside
    if angle <= -math.pi or angle > math.pi:
        return math.pi

    return angle


@kernel
def clip(value: float, limit: float) -> float:
    """Return `value` clamped to ± `limit`."""
    return max(-limit, min(limit, value))


@kernel
def ramp(
    current: float, desired: float, accel: float, decel: float, dt: float, snap: float
) -> float:
    """Return the velocity after `dt` s of a ramp from `current` towards `desired`.

    See pioneer-protocol §11.2. Within `snap` the target is taken at once. A change of
    sign passes through zero. A ramp of 0 is immediate.
    """
    if abs(current - desired) <= snap:
        return desired
    # Slowing down, towards zero or a smaller speed
    if current * desired < 0.0 or abs(desired) < abs(current):
        # Immediate
        if decel <= 0.0:
            return desired
        speed = abs(current) - decel * dt
        # A change of direction stops at zero first.
        floor = 0.0 if current * desired < 0.0 else abs(desired)
        return math.copysign(max(speed, floor), current)

    # Immediate
    if accel <= 0.0:
        return desired
    return math.copysign(min(abs(current) + accel * dt, abs(desired)), desired)


@kernel
def ramp_lead(
    before: float, after: float, accel: float, decel: float, dt: float
) -> float:
    """Return the integral of a ramping velocity within a step minus `after` times dt.

    The velocity ramps from `before` to `after` within `dt` s, m or rad. It ramps at
    once, then stays; a ramp of 0 is immediate. A snap to `after` is treated in the same
    way.
    """
    slows = before * after < 0.0 or abs(after) < abs(before)
    rate = decel if slows else accel
    if rate <= 0.0 or before == after:
        return 0.0
    return 0.5 * (before - after) * min(dt, abs(after - before) / rate)


@kernel
def move_speed(remaining: float, limit: float, decel: float, dt: float) -> float:
    """Return the speed of a distance move, m/s, signed as `remaining` (m).

    It is the highest allowed one that can still stop at the target: the largest v with
    v·dt + v²/(2·decel) ≤ abs(remaining). One more step at v and then braking ends
    exactly at the target. So v² ≤ 2·decel·remaining always holds (decisions, "MOVE"),
    and the ramp never has to brake harder than `decel`.
    """
    distance = abs(remaining)
    # It can stop at once: it may arrive at full speed.
    if decel <= 0.0:
        speed = distance / dt
    else:
        # Positive root of v² / (2 decel) + v dt = distance
        speed = decel * (math.sqrt(dt * dt + 2.0 * distance / decel) - dt)

    return math.copysign(min(speed, limit), remaining)


@kernel
def heading_rate(error: float, limit: float, dt: float) -> float:
    """Return the turn rate of a heading target, rad/s, for a heading error in rad.

    It is proportional and limited, and never passes the target.
    """
    size = abs(error)
    if size <= HEADING_DONE:
        return 0.0
    # The last bound reaches the target within this step, but never passes it.
    rate = min(max(size * HEADING_GAIN, HEADING_MIN), limit, size / dt)
    return math.copysign(rate, error)


@merged_kernel
def plan_velocities(state: State, bodies: Bodies, dt: float) -> None:
    """Write the velocities of this step for all rows with a drive.

    Also ends finished distance moves and emergency stops, and writes `Bodies.lead` of
    bodies with exact ramps.
    """
    exact, lead = bodies.exact, bodies.lead
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
    for i in range(drive.shape[0]):
        # There are no motors.
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
        # A finished distance move continues with velocity 0.
        if mode_x[i] == POSITION_MODE and abs(target[i, 0]) <= MOVE_DONE:
            mode_x[i] = VELOCITY_MODE
            target[i, 0] = 0.0

        # The robot stops, with any targets.
        if estop[i] == 1 or motors[i] == 0:
            want_x = want_y = want_a = 0.0
        else:
            # The target is the remaining distance.
            if mode_x[i] == POSITION_MODE:
                # Half of the change counts in this step, see `ramp_lead`.
                if exact[i] == 1 and decel[i, 0] > 0.0:
                    most = abs(target[i, 0]) - 0.5 * dt * abs(vel[i, 0])
                    want_x = move_speed(
                        math.copysign(max(most, 0.0), target[i, 0]),
                        lim_x,
                        decel[i, 0],
                        0.5 * dt,
                    )
                else:
                    want_x = move_speed(target[i, 0], lim_x, decel[i, 0], dt)
            else:
                want_x = clip(target[i, 0], lim_x)

            # Others cannot move sideways.
            want_y = (
                clip(target[i, 1], min(max_vel[i, 1], top_vel[i, 1]))
                if drive[i] == OMNI
                else 0.0
            )
            # The target is a heading in the odometry frame.
            if mode_a[i] == POSITION_MODE:
                error = wrap(target[i, 2] - odom[i, 2])
                want_a = heading_rate(error, min(heading_speed[i], top_vel[i, 2]), dt)
            else:
                want_a = clip(target[i, 2], lim_a)

        dec_x, dec_y, dec_a = decel[i, 0], decel[i, 1], decel[i, 2]
        # The highest deceleration of the robot, not of its ramps.
        if estop[i] == 1:
            dec_x = dec_y = ESTOP_LINEAR
            dec_a = ESTOP_ANGULAR

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
def turning(dth: float) -> tuple[float, float]:
    """Return sin(θ)/θ and (1 − cos θ)/θ."""
    if abs(dth) < 0.25:
        # Taylor series up to θ¹⁰, because the quotients are 0/0 at 0: the omitted terms
        # are below 1e-16.
        q = dth * dth
        return 1.0 + q * (S1 + q * (S2 + q * (S3 + q * (S4 + q * S5)))), dth * (
            0.5 + q * (C1 + q * (C2 + q * (C3 + q * C4)))
        )

    c, s = cosine_sine(dth)
    return s / dth, (1.0 - c) / dth


@kernel
def arc(dx: float, dy: float, dth: float) -> tuple[float, float]:
    """Return the end point of a constant body twist in the frame of its start, m.

    It is the exponential map of SE(2), see `geometry.exp`.
    """
    s, c = turning(dth)
    return s * dx - c * dy, c * dx + s * dy
