"""Start of an episode and of a call in a world of a batch."""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.batchlayout import (
    BEGINS,
    EPISODE,
    MAP,
    NO_CONTACT,
    SAMPLES,
    TICK,
    Masses,
    Own,
)
from botyard.engine.kernels.jit import merged_kernel
from botyard.engine.kernels.latency import (
    Lateness,
    drop_all,
)
from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.noise import episode_seed
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_errors
from botyard.engine.layout import (
    ANGLE,
    CONSTANT,
    PERFECT,
    RANDOM_INIT,
    VELOCITY_MODE,
    Bins,
    Bodies,
    State,
)


@merged_kernel
def begin_masses(masses: Masses) -> None:
    """Write the initial state of bodies with mass, and clear their contacts.

    The state is equal to the results of `botyard.engine.masslayout.mass_state` and
    `impulses`.

    Parameters
    ----------
    masses : Masses
        Data of one world. Output: `state` and `table`.
    """
    mass, table = masses.state, masses.table
    for i in range(mass.depth.shape[0]):
        mass.depth[i], mass.resting[i] = 0.0, 0
        for k in range(3):
            # NaN differs from every pose, so that the first step computes all contacts.
            mass.seen[i, k] = math.nan
            mass.floor[i, k] = mass.wrench[i, k] = 0.0

    table.size[0], table.span[0] = 0, 0.0
    for t in range(table.key.shape[0]):
        table.impulse[t, 0] = table.impulse[t, 1] = 0.0
        # Keys of the last episode would warm-start contacts that do not exist any more.
        table.key[t, 0] = table.key[t, 1] = table.key[t, 2] = np.uint64(0)


@merged_kernel
def begin_episode(state: State, bodies: Bodies, bins: Bins, own: Own) -> None:
    """Put all bodies at their starts, at rest, as if they had just been added.

    Limits and errors of odometry keep their values.

    Parameters
    ----------
    state, bodies, bins : State, Bodies, Bins
        Arrays of one world. In-place: poses are `Own.start`, and values derived from
        poses are marked as unknown.
    own : Own
        Data of the world. In-place: headings of `start` are wrapped, the seed of the
        episode is written, `TICK` is 0.
    """
    start, seed = own.start, episode_seed(own.seeds[0], own.counts[EPISODE])
    # Set the seed before the draws below, which use it.
    own.seeds[1] = seed
    for i in range(start.shape[0]):
        start[i, 2] = wrap(start[i, 2])
        for axis in range(3):
            state.pose[i, axis] = start[i, axis]
            state.odom[i, axis] = (
                start[i, axis] if state.err_mode[i] == PERFECT else 0.0
            )
            # Perfect odometry is in the world frame, other odometry in the frame of the
            # start pose.
            state.odom_frame[i, axis] = (
                0.0 if state.err_mode[i] == PERFECT else start[i, axis]
            )
            state.vel[i, axis] = state.target[i, axis] = state.disp[
                i, axis
            ] = state.err[i, axis] = 0.0
            if state.err_mode[i] == CONSTANT:
                low, high = state.err_lo[i, axis], state.err_hi[i, axis]
                # Symmetric limits mean that only the magnitude is given; it is then the
                # constant error.
                state.err[i, axis] = high if low == -high else (low + high) / 2.0

        # These errors are drawn once in an episode, with a number that is no number of a
        # step: so they do not repeat the errors of a step.
        if state.err_mode[i] == RANDOM_INIT:
            draw_errors(
                state.uid,
                state.err_lo,
                state.err_hi,
                state.err,
                i,
                seed,
                BEFORE_ALL_TICKS,
            )

        state.path[i, 0] = state.path[i, 1] = state.spin[i] = 0.0
        state.contact[i] = np.uint64(0)
        state.mode_x[i] = state.mode_a[i] = VELOCITY_MODE
        state.stall[i] = state.estop[i] = state.held[i] = 0
        # Robots of a batch have no client that could enable their motors.
        state.motors[i] = 1
        bodies.placed[i, 0] = math.nan

    for i in range(state.steer.shape[0]):
        state.steer[i, ANGLE] = 0.0

    # A reach of 0 makes the next step build the bins again.
    bins.reach[0] = bins.reach[1] = bins.reach[2] = 0.0
    own.counts[TICK] = 0


@merged_kernel
def begin_bodies(
    state: State, bodies: Bodies, bins: Bins, own: Own, late: Lateness
) -> bool:
    """Start an episode if the task of the call says so.

    This comes first, because it corrects invalid poses and velocities.

    Parameters
    ----------
    state, bodies, bins : State, Bodies, Bins
        Arrays of one world.
    own : Own
        Data of the world; `BEGINS` in `task` decides.
    late : Lateness
        Delays of the world. In-place: commands and readings under way are dropped.

    Returns
    -------
    bool
        Whether an episode starts.
    """
    if own.task[BEGINS] == 0:
        return False
    if own.task[BEGINS] == 2:
        # Only the number of the episode changes. Counting here saves the caller two array
        # writes.
        own.counts[EPISODE] += 1
        own.counts[MAP] = own.counts[SAMPLES] = 0

    begin_episode(state, bodies, bins, own)
    drop_all(late)
    return True


@merged_kernel
def begin_steps(bodies: Bodies, own: Own, begins: bool) -> None:
    """Reset values known for another map or episode, and contacts of the last call.

    Parameters
    ----------
    bodies : Bodies
        Shapes of one world. In-place: `leeway` is 0 after a change of map.
    own : Own
        Data of the world. In-place: `known`, `contact`, `other`.
    """
    # Free distances to walls are valid for one map only.
    if begins or own.known[0] != own.counts[MAP]:
        own.known[0] = own.counts[MAP]
        for i in range(bodies.leeway.shape[0]):
            bodies.leeway[i] = 0.0

    for i in range(own.contact.shape[0]):
        own.contact[i], own.other[i] = NO_CONTACT, -1
