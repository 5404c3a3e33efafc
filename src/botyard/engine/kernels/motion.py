"""How a commanded velocity becomes the velocity of this step: targets, limits, ramps (pioneer-protocol §11.1–11.2).

The scalar kernels read like the formulas; `plan_velocities` applies them to all rows. Allocate nothing; any thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.layout import State

SNAP_LINEAR = 0.010
"""A velocity this near to its target takes it at once, m/s (§11.2)."""
SNAP_ANGULAR = 0.05
"""The same for rotation, rad/s."""
ESTOP_LINEAR = 9.999
"""Deceleration of an emergency stop, m/s² (§4.1, command 55)."""
ESTOP_ANGULAR = math.radians(9999.0)
"""The same for rotation, rad/s²."""
MOVE_DONE = 2e-5
"""A distance move is finished when this little remains, m (§11.1)."""
HEADING_DONE = 3e-4
"""A heading error this small counts as none, rad (§11.1)."""
HEADING_GAIN = 1.0
"""Turn rate per heading error, 1/s (§11.1)."""
HEADING_MIN = 0.007
"""Least turn rate of a heading target, rad/s (§11.1)."""
S1, S2, S3, S4, S5 = -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800
C1, C2, C3, C4 = -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800
"""Coefficients of the series in `turning`."""
HALF_PI_HIGH, HALF_PI_LOW = 1.57079632673412561417, 6.07710050650619224932e-11
"""π/2 in two parts; the first has 33 bits, so that small multiples of it are exact."""
SIN1, SIN2, SIN3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
SIN4, SIN5, SIN6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
COS1, COS2, COS3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
COS4, COS5, COS6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
"""Coefficients of fdlibm's polynomials for −π/4 … π/4."""


@inline_kernel
def cosine_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine, each to within 2e-16, of an angle below 1e5 rad.

    Half the time of two calls of the C library, and the same everywhere, which that does not promise. Argument reduction and
    polynomials of fdlibm (Ng, 1993, k_sin.c and k_cos.c).
    """
    k = math.floor(angle * (2.0 / math.pi) + 0.5)
    r = (angle - k * HALF_PI_HIGH) - k * HALF_PI_LOW
    z = r * r
    s = r + r * z * (SIN1 + z * (SIN2 + z * (SIN3 + z * (SIN4 + z * (SIN5 + z * SIN6)))))
    c = 1.0 - (0.5 * z - z * z * (COS1 + z * (COS2 + z * (COS3 + z * (COS4 + z * (COS5 + z * COS6))))))
    quarter = int(k) & 3
    c, s = (s, c) if quarter & 1 else (c, s)
    return (-c if (quarter + 1) & 2 else c), (-s if quarter & 2 else s)


@kernel
def wrap(angle: float) -> float:
    """`angle` in (−π, π], rad."""
    if -math.pi < angle <= math.pi:
        return angle
    turns = math.floor((angle + math.pi) / (2.0 * math.pi))
    angle -= 2.0 * math.pi * turns
    if angle <= -math.pi or angle > math.pi:
        return math.pi
    return angle


@kernel
def clip(value: float, limit: float) -> float:
    """`value` limited to ± `limit`."""
    return max(-limit, min(limit, value))


@kernel
def ramp(current: float, desired: float, accel: float, decel: float, dt: float, snap: float) -> float:
    """Velocity after `dt` s of ramping from `current` towards `desired` (pioneer-protocol §11.2).

    Within `snap` of the target it is taken at once; a change of sign passes through zero; an acceleration of 0 is immediate.
    """
    if abs(current - desired) <= snap:
        return desired
    if current * desired < 0.0 or abs(desired) < abs(current):  # slowing down, towards zero or a smaller speed
        if decel <= 0.0:
            return desired
        speed = abs(current) - decel * dt
        floor = 0.0 if current * desired < 0.0 else abs(desired)
        return math.copysign(max(speed, floor), current)
    if accel <= 0.0:
        return desired
    return math.copysign(min(abs(current) + accel * dt, abs(desired)), desired)


@kernel
def move_speed(remaining: float, limit: float, decel: float, dt: float) -> float:
    """Speed of a distance move, m/s, signed as `remaining` (m): as fast as allowed, but able to stop at the target.

    The largest v with v·dt + v²/(2·decel) ≤ abs(remaining): one more step at v and then braking ends exactly at the target, so
    v² ≤ 2·decel·remaining always holds (decisions, "MOVE") and the ramp never has to brake harder than `decel`.
    """
    distance = abs(remaining)
    if decel <= 0.0:
        speed = distance / dt
    else:
        speed = decel * (math.sqrt(dt * dt + 2.0 * distance / decel) - dt)
    return math.copysign(min(speed, limit), remaining)


@kernel
def heading_rate(error: float, limit: float, dt: float) -> float:
    """Turn rate of a heading target, rad/s, for a heading error in rad: proportional, limited, never past the target."""
    size = abs(error)
    if size <= HEADING_DONE:
        return 0.0
    rate = min(max(size * HEADING_GAIN, HEADING_MIN), limit, size / dt)
    return math.copysign(rate, error)


@merged_kernel
def plan_velocities(state: State, dt: float) -> None:
    """Write the velocities of this step for all rows that can drive; ends finished distance moves and emergency stops."""
    vel, target, odom = state.vel, state.target, state.odom
    max_vel, top_vel, accel, decel = state.max_vel, state.top_vel, state.accel, state.decel
    mode_x, mode_a, drive = state.mode_x, state.mode_a, state.drive
    motors, estop, held, heading_speed = state.motors, state.estop, state.held, state.heading_speed
    for i in range(drive.shape[0]):
        if drive[i] == 0:
            continue
        if held[i] == 1:
            vel[i, 0] = vel[i, 1] = vel[i, 2] = 0.0
            continue
        lim_x = min(max_vel[i, 0], top_vel[i, 0])
        lim_a = min(max_vel[i, 2], top_vel[i, 2])
        if mode_x[i] == 1 and abs(target[i, 0]) <= MOVE_DONE:
            mode_x[i] = 0
            target[i, 0] = 0.0
        if estop[i] == 1 or motors[i] == 0:
            want_x = want_y = want_a = 0.0
        else:
            if mode_x[i] == 1:
                want_x = move_speed(target[i, 0], lim_x, decel[i, 0], dt)
            else:
                want_x = clip(target[i, 0], lim_x)
            want_y = clip(target[i, 1], min(max_vel[i, 1], top_vel[i, 1])) if drive[i] == 2 else 0.0
            if mode_a[i] == 1:
                error = wrap(target[i, 2] - odom[i, 2])
                want_a = heading_rate(error, min(heading_speed[i], top_vel[i, 2]), dt)
            else:
                want_a = clip(target[i, 2], lim_a)
        dec_x, dec_y, dec_a = decel[i, 0], decel[i, 1], decel[i, 2]
        if estop[i] == 1:
            dec_x = dec_y = ESTOP_LINEAR
            dec_a = ESTOP_ANGULAR
        vel[i, 0] = ramp(vel[i, 0], want_x, accel[i, 0], dec_x, dt, SNAP_LINEAR)
        vel[i, 1] = ramp(vel[i, 1], want_y, accel[i, 1], dec_y, dt, SNAP_LINEAR)
        vel[i, 2] = ramp(vel[i, 2], want_a, accel[i, 2], dec_a, dt, SNAP_ANGULAR)
        if estop[i] == 1 and vel[i, 0] == 0.0 and vel[i, 1] == 0.0 and vel[i, 2] == 0.0:
            estop[i] = 0


@inline_kernel
def turning(dth: float) -> tuple[float, float]:
    """sin(θ)/θ and (1 − cos θ)/θ."""
    if abs(dth) < 0.25:
        # as series, up to θ¹⁰: what is left out is below 1e-16
        q = dth * dth
        return 1.0 + q * (S1 + q * (S2 + q * (S3 + q * (S4 + q * S5)))), dth * (
            0.5 + q * (C1 + q * (C2 + q * (C3 + q * C4)))
        )
    return math.sin(dth) / dth, (1.0 - math.cos(dth)) / dth


@kernel
def arc(dx: float, dy: float, dth: float) -> tuple[float, float]:
    """Where a constant body twist leads: end point in the frame of the start, m (exponential map of SE(2), see `geometry.exp`)."""
    s, c = turning(dth)
    return s * dx - c * dy, c * dx + s * dy
