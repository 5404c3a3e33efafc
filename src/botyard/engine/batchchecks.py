"""Checks of the arrays of a world of a batch, which callers may have written."""

from __future__ import annotations

import math

from botyard.engine.batchlayout import (
    BAD_KIND,
    BAD_LATENCY,
    BAD_LIMITS,
    BAD_POSE,
    BAD_RATE,
    BAD_SENSOR,
    BAD_VELOCITY,
    NO_FAULT,
    Masses,
)
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.latency import Lateness
from botyard.engine.kernels.latency_checks import are_latencies, are_rates, are_rings
from botyard.engine.layout import (
    ACKERMANN,
    ANGLE,
    BY_ANGLE,
    DIFF,
    F8,
    FIRST_WITH_WHEELS,
    LIMIT,
    MECANUM,
    NO_CONTROL,
    NO_DRIVE,
    OFFSET,
    RATE,
    SIDE,
    TOP_RATE,
    TWIST,
    WHEELBASE,
    State,
)
from botyard.engine.masslayout import MASS, MassShapes
from botyard.model.kinematics import (
    MAX_STEERING,
    MAX_STEERING_OFFSET,
    MAX_WHEELBASE,
    MIN_WHEELBASE,
)

MAX_COORDINATE = 1e7
"""Greatest coordinate of a body, m, as in `botyard.engine.commands`.

Kernels cannot number cells beyond it.
"""
MAX_SPEED = 1e3
"""Greatest speed limit, m/s and rad/s, as in `botyard.model.robot`."""
MAX_RAMP = 1e6
"""Greatest acceleration and deceleration, m/s² and rad/s²."""
MAX_RANGE = 1e6
"""Greatest range, and greatest error of a range, that a sensor may have, m."""
MAX_TARGET = 1e15
"""Greatest magnitude of a number in `State.target`."""
MAX_DEMAND = 1e9
"""Greatest magnitude of a number in `State.demand`, as in `botyard.engine.demand`."""
MAX_WHEEL_RATIO = 2.0
"""Greatest ratio of the diameters of two wheels, as in `botyard.model.robot`."""


@inline_kernel
def within(values: F8, row: int, low: float, high: float) -> bool:
    """Return whether all three numbers of a row are in a range; NaN is not.

    Parameters
    ----------
    values : (n, 3) float64
        Numbers of all bodies.
    row : int
        Row of the body.
    low, high : float
        Ends of the range, which belong to it, in the unit of `values`.
    """
    a, b, c = values[row, 0], values[row, 1], values[row, 2]
    return bool(
        (a >= low) & (a <= high) & (b >= low) & (b <= high) & (c >= low) & (c <= high)
    )


@inline_kernel
def is_motion(state: State, wheels: F8, i: int) -> bool:
    """Return whether a body's limits of motion and odometry errors are in range.

    Parameters
    ----------
    state : State
        State of one world.
    wheels : (n, 2) float64
        `Bodies.wheels`. Only odometry by two wheels may have wheels of two sizes.
    i : int
        Row of the body.
    """
    return (
        within(state.max_vel, i, 0.0, MAX_SPEED)
        and within(state.top_vel, i, 0.0, MAX_SPEED)
        and within(state.accel, i, 0.0, MAX_RAMP)
        and within(state.decel, i, 0.0, MAX_RAMP)
        and within(state.err_lo, i, -MAX_SPEED, MAX_SPEED)
        and within(state.err_hi, i, -MAX_SPEED, MAX_SPEED)
        and bool(
            (wheels[i, 0] >= 1.0 / MAX_WHEEL_RATIO) & (wheels[i, 0] <= MAX_WHEEL_RATIO)
        )
        and (
            wheels[i, 0] == 1.0 or state.drive[i] == DIFF or state.drive[i] == ACKERMANN
        )
    )


@merged_kernel
def is_steering(steer: F8, i: int) -> bool:
    """Return whether the steering of a body is in range; NaN is not.

    Parameters
    ----------
    steer : (n, 7) float64
        `State.steer`.
    i : int
        Row of a body that steers.
    """
    angle, limit = steer[i, ANGLE], steer[i, LIMIT]
    base, offset = abs(steer[i, WHEELBASE]), abs(steer[i, OFFSET])
    return bool(
        (limit >= 0.0)
        & (limit + offset <= MAX_STEERING)
        & (offset <= MAX_STEERING_OFFSET)
        & (abs(angle) <= limit)
        & (base >= MIN_WHEELBASE)
        & (base <= MAX_WHEELBASE)
        & (steer[i, RATE] >= 0.0)
        & (steer[i, RATE] <= MAX_SPEED)
        & (steer[i, TOP_RATE] >= 0.0)
        & (steer[i, TOP_RATE] <= MAX_SPEED)
        & (steer[i, BY_ANGLE] >= 0.0)
        & (steer[i, BY_ANGLE] <= 1.0)
    )


@merged_kernel
def fault_of_wheels(state: State, i: int) -> int:
    """Return the `Fault` of the row of wheels of a body.

    Parameters
    ----------
    state : State
        State of one world.
    i : int
        Row of a body with a row of wheels in `State.steer`.
    """
    # Kernels index the row.
    if i >= state.steer.shape[0]:
        return BAD_KIND
    if state.drive[i] == MECANUM:
        # The comparison is false for NaN.
        is_right = bool(abs(state.steer[i, SIDE]) <= MAX_TARGET)
    else:
        is_right = is_steering(state.steer, i)
    return NO_FAULT if is_right else BAD_LIMITS


@merged_kernel
def fault_of(
    state: State, wheels: F8, fans: Fans, late: Lateness, dt: float, has_masses: bool
) -> int:
    """Return the `Fault` of a world whose arrays a caller may have written.

    Kernels do not check indices, but compute them from these numbers: a wrong number
    would read or write other memory.

    Parameters
    ----------
    state : State
        State of one world.
    wheels : (n, 2) float64
        `Bodies.wheels`.
    fans : Fans
        Range sensors of the world.
    late : Lateness
        Delays and rates of the world.
    dt : float
        Duration of a step, s.
    has_masses : bool
        Whether the arrays of bodies with mass exist; otherwise no body may have mass.

    Returns
    -------
    int
        The fault found last, `NO_FAULT` if there is none.
    """
    fault = NO_FAULT if are_latencies(late, dt) else BAD_LATENCY
    if not are_rates(late, dt):
        fault = BAD_RATE
    if not are_rings(late):
        fault = BAD_KIND

    for i in range(state.pose.shape[0]):
        if (
            not within(state.pose, i, -MAX_COORDINATE, MAX_COORDINATE)
            or abs(state.pose[i, 2]) > math.pi
        ):
            fault = BAD_POSE

        if (
            not within(state.vel, i, -MAX_SPEED, MAX_SPEED)
            or not within(state.target, i, -MAX_TARGET, MAX_TARGET)
            or not within(late.command, i, -MAX_TARGET, MAX_TARGET)
        ):
            fault = BAD_VELOCITY

        if not is_motion(state, wheels, i):
            fault = BAD_LIMITS
        if (
            (state.control[i] != NO_CONTROL and not has_masses)
            or state.drive[i] < NO_DRIVE
            or state.drive[i] > MECANUM
        ):
            fault = BAD_KIND
        if state.drive[i] >= FIRST_WITH_WHEELS:
            of_wheels = fault_of_wheels(state, i)
            fault = of_wheels if of_wheels != NO_FAULT else fault

    for b in range(fans.r_max.shape[0]):
        if not (
            (fans.r_min[b] >= 0.0)
            & (fans.r_min[b] <= fans.r_max[b])
            & (fans.r_max[b] <= MAX_RANGE)
            & (fans.r_noise[b] >= 0.0)
            & (fans.r_noise[b] <= MAX_RANGE)
            & (fans.a_noise[b] >= 0.0)
            & (fans.a_noise[b] <= math.pi)
            & (fans.missing[b] >= 0.0)
            & (fans.missing[b] <= 1.0)
        ):
            fault = BAD_SENSOR

    return fault


@merged_kernel
def fault_of_masses(state: State, shapes: MassShapes, masses: Masses) -> int:
    """Return the `Fault` of the additional data of bodies with mass; see `fault_of`.

    Parameters
    ----------
    state : State
        State of one world.
    shapes, masses : MassShapes, Masses
        Masses of the bodies, and contacts of the world.
    """
    # The count bounds loops over the table.
    if masses.table.size[0] < 0 or masses.table.size[0] > masses.table.key.shape[0]:
        return BAD_KIND
    for i in range(state.control.shape[0]):
        control = state.control[i]
        if (
            control < NO_CONTROL
            or control > TWIST
            or (control != NO_CONTROL) != (shapes.values[i, MASS] > 0.0)
        ):
            return BAD_KIND

        if control != NO_CONTROL and not within(
            state.demand, i, -MAX_DEMAND, MAX_DEMAND
        ):
            return BAD_VELOCITY

    return NO_FAULT


__all__ = ["fault_of", "fault_of_masses"]
