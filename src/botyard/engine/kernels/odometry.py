"""Odometry: the pose that a robot estimates from its true displacement and its errors.

There are two laws. The original's (pioneer-protocol §11.4) multiplies the displacement
of each step by an error that is drawn for the step. The spread of the sum depends on
the length of a step. The other one adds Gaussian errors with variances in proportion to
distance and angle:

    var(heading) = α1 |Δθ| + α2 d        var(distance) = α3 d + α4 |Δθ|

These are the parameters of Thrun, Burgard and Fox, "Probabilistic Robotics" (2005),
section 5.4. Variances in proportion to d and Δθ add up over steps, so that the spread
does not depend on the length of a step.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import (
    entry_kernel,
    inline_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import arc, wrap
from botyard.engine.kernels.noise import gaussian, stream_key, symmetric
from botyard.engine.layout import (
    F8,
    NO_DRIVE,
    NO_ERRORS,
    PERFECT,
    POSITION_MODE,
    RANDOM_EACH_UPDATE,
    U8,
    State,
)
from botyard.numerics.elementary import cosine_sine

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
    """Run `draw_errors`; callable from Python, outside of a step."""
    draw_errors(uid, low, high, err, i, seed, tick)


@kernel
def draw_errors(
    uid: U8, low: F8, high: F8, err: F8, i: int, seed: np.uint64, tick: int
) -> None:
    """Write err[i], uniform between low[i] and high[i], one draw per axis.

    The arrays are columns of `State`.
    """
    key = stream_key(seed, uid[i], np.uint64(ODOMETRY_STREAM), np.uint64(tick))
    for axis in range(3):
        u = 0.5 * (symmetric(key, np.uint64(axis)) + 1.0)
        err[i, axis] = low[i, axis] + u * (high[i, axis] - low[i, axis])


@kernel
def add_drift(
    drift: F8, i: int, key: np.uint64, way: tuple[float, float, float, float]
) -> tuple[float, float, float]:
    """Return the displacement `way` of a step with the errors of `Bodies.drift`.

    `way` is (forward m, left m, turn rad, turn in place rad). The error of the distance
    points along the displacement, or forward for a robot that turns in place. Returns
    forward, left and turn.
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

    The displacement is in m and rad.

    The formula of odometry assumes equal diameters. Borenstein and Feng, "Measurement
    and correction of systematic odometry errors in mobile robots" (IEEE Trans. Robotics
    and Automation 12 (6), 1996): E_d is `ratio`, the right diameter divided by the left
    one; their mean is the nominal one. `half_track`: m.
    """
    left = 2.0 / (1.0 + ratio)
    by_left, by_right = (
        (forward - turned * half_track) / left,
        (forward + turned * half_track) / (ratio * left),
    )
    return 0.5 * (by_left + by_right), 0.5 * (by_right - by_left) / half_track


@merged_kernel
def integrate_odometry(
    state: State, wheels: F8, drift: F8, seed: np.uint64, tick: int
) -> None:
    """Advance `odom` of every row by the displacement of this step.

    Also reduces the remaining distance of distance moves. `wheels`, `drift`: see
    `Bodies`. Each axis of the displacement is multiplied by 1 + ε, and the wheels
    measure the result. A row without displacement does not change, so that the odometry
    of a stalled robot stands still. In mode RANDOM_EACH_UPDATE ε is drawn anew for
    every step; the other modes keep the ε set with the mode. Drift is added in that
    mode alone, because it is random.
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
    uid, low, high = state.uid, state.err_lo, state.err_hi
    for i in range(pose.shape[0]):
        # Without wheels there is no odometry.
        if drive[i] == NO_DRIVE:
            continue
        if err_mode[i] == RANDOM_EACH_UPDATE:
            draw_errors(uid, low, high, err, i, seed, tick)
        dx = disp[i, 0] * (1.0 + err[i, 0])
        dy = disp[i, 1] * (1.0 + err[i, 1])
        dth = disp[i, 2] * (1.0 + err[i, 2])
        spin = spins[i] * (1.0 + err[i, 2])
        if wheels[i, 0] != 1.0 and err_mode[i] != NO_ERRORS and err_mode[i] != PERFECT:
            dx, dth = by_wheels(dx, dth, wheels[i, 0], wheels[i, 1])
            slip, spin = by_wheels(0.0, spin, wheels[i, 0], wheels[i, 1])
            dx += slip

        if dx == 0.0 and dy == 0.0 and dth == 0.0 and spin == 0.0:
            continue
        if (
            err_mode[i] == RANDOM_EACH_UPDATE
            and drift[i, 0] + drift[i, 1] + drift[i, 2] + drift[i, 3] > 0.0
        ):
            key = stream_key(seed, uid[i], np.uint64(ODOMETRY_STREAM), np.uint64(tick))
            dx, dy, dth = add_drift(drift, i, key, (dx, dy, dth, spin))

        # Copied, because a sum would drift by rounding.
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
        # A distance move ends by odometry, as on a real robot.
        if mode_x[i] == POSITION_MODE:
            target[i, 0] -= dx
