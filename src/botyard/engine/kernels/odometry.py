"""Odometry: the pose that a robot believes in, from its true displacement and proportional errors (pioneer-protocol §11.4)."""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import inner_kernel, kernel
from botyard.engine.kernels.motion import arc, wrap
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.layout import State

ODOMETRY_STREAM = 1
"""Device number of odometry in the random streams."""
BEFORE_ALL_TICKS = (1 << 63) - 1
"""The tick under which errors for a robot's whole life are drawn: one that no run reaches."""


@kernel
def draw_errors(state: State, i: int, seed: int, tick: int) -> None:
    """Write err[i], uniform between err_lo[i] and err_hi[i], one draw an axis."""
    key = stream_key(np.uint64(seed), state.uid[i], np.uint64(ODOMETRY_STREAM), np.uint64(tick))
    for axis in range(3):
        u = 0.5 * (symmetric(key, np.uint64(axis)) + 1.0)
        state.err[i, axis] = state.err_lo[i, axis] + u * (state.err_hi[i, axis] - state.err_lo[i, axis])


@inner_kernel
def integrate_odometry(state: State, seed: int, tick: int) -> None:
    """Advance `odom` of every row by the displacement of this step; also what remains of distance moves.

    Each axis of the displacement is multiplied by 1 + ε. A row that did not move is left alone, so a stalled robot's odometry
    stands still. In mode RANDOM_EACH_UPDATE ε is drawn anew for every step; the other modes keep what was set at creation.
    """
    for i in range(state.pose.shape[0]):
        if state.drive[i] == 0:
            continue
        if state.err_mode[i] == 3:
            draw_errors(state, i, seed, tick)
        dx = state.disp[i, 0] * (1.0 + state.err[i, 0])
        dy = state.disp[i, 1] * (1.0 + state.err[i, 1])
        dth = state.disp[i, 2] * (1.0 + state.err[i, 2])
        spin = state.spin[i] * (1.0 + state.err[i, 2])
        if dx == 0.0 and dy == 0.0 and dth == 0.0 and spin == 0.0:
            continue
        x, y = arc(dx, dy, dth)
        if state.err_mode[i] == 4:
            state.odom[i, 0], state.odom[i, 1] = state.pose[i, 0], state.pose[i, 1]
            state.odom[i, 2] = state.pose[i, 2]
            state.path[i, 0] += dx
            state.path[i, 1] += dth + spin
            if state.mode_x[i] == 1:
                state.target[i, 0] -= dx
            continue
        th = state.odom[i, 2]
        c, s = math.cos(th), math.sin(th)
        state.odom[i, 0] += c * x - s * y
        state.odom[i, 1] += s * x + c * y
        state.odom[i, 2] = wrap(th + dth + spin)
        state.path[i, 0] += dx
        state.path[i, 1] += dth + spin
        if state.mode_x[i] == 1:
            state.target[i, 0] -= dx
