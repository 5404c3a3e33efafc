"""Odometry: the pose that a robot estimates from its true displacement and its errors.

There are two laws. The law of AMRISim (pioneer-protocol §11.4) multiplies the displacement
of each step by an error that is drawn for the step. The spread of the sum depends on
the length of a step. The other law adds Gaussian errors, with variances in proportion to
distance and angle:

    var(heading) = α1 |Δθ| + α2 d        var(distance) = α3 d + α4 |Δθ|

These are the parameters of Thrun, Burgard and Fox, "Probabilistic Robotics" (2005),
section 5.4. Variances in proportion to d and Δθ add up over steps, so that the spread
does not depend on the length of a step.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.ground import rolled_share
from botyard.engine.kernels.jit import (
    entry_kernel,
    inline_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import arc, steers, wrap
from botyard.engine.kernels.noise import gaussian, stream_key, symmetric
from botyard.engine.layout import (
    ANGLE,
    F8,
    MECANUM,
    NO_DRIVE,
    NO_ERRORS,
    PERFECT,
    POSITION_MODE,
    RANDOM_EACH_UPDATE,
    SIDE,
    U8,
    WHEELBASE,
    State,
)
from botyard.numerics.elementary import cosine_sine, tan

ODOMETRY_STREAM = 1
"""Device number of odometry in the random streams."""
DRIFT_DRAWS = 8
"""Number of the first draw of drift in the stream of odometry, after `draw_errors`."""
BEFORE_ALL_TICKS = (1 << 63) - 1
"""Tick of draws for a robot's whole life (`RANDOM_INIT`); no run reaches it."""


@entry_kernel
def draw_row_errors(
    uid: U8, low: F8, high: F8, err: F8, i: int, seed: np.uint64, tick: int
) -> None:
    """Run `draw_errors`; callable from Python, outside of a step.

    Parameters
    ----------
    uid, low, high, err, i, seed, tick
        See `draw_errors`.
    """
    draw_errors(uid, low, high, err, i, seed, tick)


@kernel
def draw_errors(
    uid: U8, low: F8, high: F8, err: F8, i: int, seed: np.uint64, tick: int
) -> None:
    """Draw the proportional errors of a robot's odometry, one per axis.

    Parameters
    ----------
    uid, low, high : (n,) uint64, (n, 3) float64, (n, 3) float64
        Columns `uid`, `err_lo` and `err_hi` of `State`.
    err : (n, 3) float64
        Output: row `i`, uniform between `low` and `high`.
    i : int
        Row of the robot.
    seed : uint64
        Seed of the world.
    tick : int
        Number of the step, or `BEFORE_ALL_TICKS`.
    """
    key = stream_key(seed, uid[i], np.uint64(ODOMETRY_STREAM), np.uint64(tick))
    for axis in range(3):
        u = 0.5 * (symmetric(key, np.uint64(axis)) + 1.0)
        err[i, axis] = low[i, axis] + u * (high[i, axis] - low[i, axis])


@kernel
def add_drift(
    drift: F8, i: int, key: np.uint64, way: tuple[float, float, float, float]
) -> tuple[float, float, float]:
    """Return the displacement of a step with the errors of `Bodies.drift`.

    The error of the distance points along the displacement, or forward for a robot that
    turns in place.

    Parameters
    ----------
    drift : (n, 4) float64
        `Bodies.drift`: α1 … α4.
    i : int
        Row of the robot.
    key : uint64
        Key of the stream of odometry in this step.
    way : tuple of float
        Forward, m, left, m, turn, rad, and turn in place, rad.

    Returns
    -------
    tuple of float
        Forward, m, left, m, and turn, rad, with errors.
    """
    dx, dy, dth, spin = way
    # Translation and rotation of the whole step determine the variances.
    far, turn = math.sqrt(dx * dx + dy * dy), abs(dth + spin)
    c, s = (dx / far, dy / far) if far > 0.0 else (1.0, 0.0)
    off = math.sqrt(drift[i, 2] * far + drift[i, 3] * turn) * gaussian(
        key, np.uint64(DRIFT_DRAWS)
    )
    dth += math.sqrt(drift[i, 0] * turn + drift[i, 1] * far) * gaussian(
        key, np.uint64(DRIFT_DRAWS + 1)
    )
    return dx + off * c, dy + off * s, dth


@inline_kernel
def by_wheels(
    forward: float, turned: float, ratio: float, half_track: float
) -> tuple[float, float]:
    """Return the odometry of a displacement with wheels of unequal diameters.

    The formula of odometry assumes equal diameters. Borenstein and Feng, "Measurement
    and correction of systematic odometry errors in mobile robots" (IEEE Trans. Robotics
    and Automation 12 (6), 1996): E_d is `ratio`; the mean of both diameters is the
    nominal one.

    Parameters
    ----------
    forward, turned : float
        True displacement: m, rad.
    ratio : float
        Right diameter divided by the left one, > 0.
    half_track : float
        Half of the distance between the wheels, m, > 0.

    Returns
    -------
    tuple of float
        Measured displacement: forward, m, and turn, rad.
    """
    left = 2.0 / (1.0 + ratio)
    by_left, by_right = (
        (forward - turned * half_track) / left,
        (forward + turned * half_track) / (ratio * left),
    )
    return 0.5 * (by_left + by_right), 0.5 * (by_right - by_left) / half_track


@inline_kernel
def by_steering(
    forward: float,
    turned: float,
    ratio: float,
    half_track: float,
    angle: float,
    wheelbase: float,
) -> tuple[float, float]:
    """Return the odometry of a displacement with errors of wheels and steering.

    Two wheels of the fixed axle measure the distance, and the heading follows from it
    and the measured steering angle: Δθ = Δx·tan(δ)/L.

    Parameters
    ----------
    forward, turned, ratio, half_track
        See `by_wheels`.
    angle : float
        Measured steering angle δ, rad.
    wheelbase : float
        Distance L of the axles, m.

    Returns
    -------
    tuple of float
        Measured displacement: forward, m, and turn, rad.
    """
    far, _ = by_wheels(forward, turned, ratio, half_track)
    return far, far * tan(angle) / wheelbase


@inline_kernel
def by_slips(
    slips: F8, i: int, forward: float, left: float, turned: float
) -> tuple[float, float, float]:
    """Return the odometry of a displacement with wheels that slip or differ.

    Parameters
    ----------
    slips : (n, 10) float64
        `Bodies.slips`.
    i : int
        Row of the body.
    forward, left, turned : float
        True displacement: m, m, rad.

    Returns
    -------
    tuple of float
        Measured displacement: forward and to the left, m, and turn, rad.
    """
    return (
        slips[i, 0] * forward + slips[i, 1] * left + slips[i, 2] * turned,
        slips[i, 3] * forward + slips[i, 4] * left + slips[i, 5] * turned,
        slips[i, 6] * forward + slips[i, 7] * left + slips[i, 8] * turned,
    )


@inline_kernel
def by_axles(
    state: State, wheels: F8, i: int, moved: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the displacement that the wheels or the steered axle of a body measure.

    Parameters
    ----------
    state : State
        State of all bodies.
    wheels : (n, 2) float64
        `Bodies.wheels`.
    i : int
        Row of the body.
    moved : tuple of float
        True displacement: forward, m, turn along the path, and spin, rad.

    Returns
    -------
    tuple of float
        Measured displacement, in the same order.
    """
    dx, dth, spin = moved
    left, right, steer = wheels[i, 0], wheels[i, 1], state.steer
    if steers(int(state.drive[i])):
        angle, base = steer[i, ANGLE], steer[i, WHEELBASE]
        dx, dth = by_steering(dx, dth, left, right, angle, base)
        dth *= 1.0 + state.err[i, 2]
    elif left != 1.0:
        dx, dth = by_wheels(dx, dth, left, right)
        slip, spin = by_wheels(0.0, spin, left, right)
        dx += slip

    return dx, dth, spin


@merged_kernel
def integrate_odometry(
    state: State,
    wheels: F8,
    drift: F8,
    slips: F8,
    ground: F8,
    on_zones: bool,
    seed: np.uint64,
    tick: int,
    first: int,
    end: int,
) -> None:
    """Advance `odom` of rows by the displacement of this step.

    Each axis of the displacement is multiplied by 1 + ε, and the wheels measure the
    result. A row without displacement does not change, so that the odometry of a
    stalled robot stands still. In mode RANDOM_EACH_UPDATE ε is drawn anew for every
    step; the other modes keep the ε set with the mode. Drift is added in that mode
    alone, because it is random.

    Parameters
    ----------
    state : State
        State of all bodies. In-place: `odom`, `path`, errors in force, and the
        remaining distance of distance moves.
    wheels, drift, slips : (n, 2) float64, (n, 4) float64, (n or 0, 10) float64
        Arrays of `Bodies`: sources of systematic and of random errors.
    ground : (n, 3) float64
        `Bodies.ground`: effects of the floor on the displacement of this step.
    on_zones : bool
        Whether `ground` has values.
    seed : uint64
        Seed of the world.
    tick : int
        Number of the step.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    pose, odom, disp, err, spins, path, target = (
        state.pose,
        state.odom,
        state.disp,
        state.err,
        state.spin,
        state.path,
        state.target,
    )
    drive, err_mode, mode_x = state.drive, state.err_mode, state.mode_x
    uid, low, high, steer = state.uid, state.err_lo, state.err_hi, state.steer

    for i in range(first, end):
        # Without wheels there is no odometry.
        if drive[i] == NO_DRIVE:
            continue
        if err_mode[i] == RANDOM_EACH_UPDATE:
            draw_errors(uid, low, high, err, i, seed, tick)
        dx = disp[i, 0] * (1.0 + err[i, 0])
        dy = disp[i, 1] * (1.0 + err[i, 1])
        dth = disp[i, 2] * (1.0 + err[i, 2])
        spin = spins[i] * (1.0 + err[i, 2])
        if on_zones:
            rolled = rolled_share(state.control[i], ground, i)
            dx, dy, dth, spin = dx * rolled, dy * rolled, dth * rolled, spin * rolled

        # Wheels that slip are few: without rows there are none.
        if slips.shape[0] > 0 and err_mode[i] != NO_ERRORS and err_mode[i] != PERFECT:
            dx, dy, dth = by_slips(slips, i, dx, dy, dth)
            more_x, more_y, spin = by_slips(slips, i, 0.0, 0.0, spin)
            dx, dy = dx + more_x, dy + more_y

        # Unequal wheels and axles are systematic errors.
        if err_mode[i] != NO_ERRORS and err_mode[i] != PERFECT:
            dx, dth, spin = by_axles(state, wheels, i, (dx, dth, spin))

        if dx == 0.0 and dy == 0.0 and dth == 0.0 and spin == 0.0:
            continue
        if (
            err_mode[i] == RANDOM_EACH_UPDATE
            and drift[i, 0] + drift[i, 1] + drift[i, 2] + drift[i, 3] > 0.0
        ):
            key = stream_key(seed, uid[i], np.uint64(ODOMETRY_STREAM), np.uint64(tick))
            dx, dy, dth = add_drift(drift, i, key, (dx, dy, dth, spin))

        # Copy the pose, because a sum of steps would drift by rounding.
        if err_mode[i] == PERFECT:
            odom[i, 0], odom[i, 1], odom[i, 2] = pose[i, 0], pose[i, 1], pose[i, 2]
        else:
            x, y = arc(dx, dy, dth)
            th = odom[i, 2]
            c, s = cosine_sine(th)
            odom[i, 0] += c * x - s * y
            odom[i, 1] += s * x + c * y
            odom[i, 2] = wrap(th + dth + spin)

        path[i, 0] += dx
        path[i, 1] += dth + spin
        if drive[i] == MECANUM:
            steer[i, SIDE] += dy
        # A distance move ends by odometry, as on a real robot.
        if mode_x[i] == POSITION_MODE:
            target[i, 0] -= dx
