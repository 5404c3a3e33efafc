"""Many worlds as one batch: what a world has beside its bodies, and the kernel that advances one of them.

The bodies of each world are those of a `Simulation`: the same arrays, laid out in the same way, and the same kernels. So the worlds of a
batch give the bits of simulations. The kernel is called for many worlds by one call from Python (`botyard.native.kernels.RowsEntry`).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.elementary import cosine_sine
from botyard.engine.kernels.jit import inline_kernel, merged_kernel, rows_kernel
from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.noise import episode_seed, stream_key, symmetric
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_errors
from botyard.engine.kernels.raycast import Beams, Fans, away_from_zero, cast_groups
from botyard.engine.kernels.sight import wall_ahead
from botyard.engine.layout import F8, I1, I2, I4, I8, U8, Bins, Bodies, Grid, State, World
from botyard.engine.step import advance_bodies

F4 = NDArray[np.float32]

TICK, EPISODE, MAP, SAMPLES = 0, 1, 2, 3
"""Indices in `Own.counts`: steps done in this episode; number of the episode; number of the map; free places drawn in this episode."""
PLACE_STREAM = 1 << 32
"""Body number of places in the random streams."""
MAX_TRIES = 200
"""Places that are tried for a robot among the others of its world."""
STEPS, BEGINS = 0, 1
"""Indices in `Own.task`: how many steps are asked for; 1: an episode begins, without a step."""
MAX_COORDINATE = 1e7
"""Greatest coordinate of a body, m, as in `botyard.engine.commands`: beyond it kernels cannot number cells."""
MAX_SPEED = 1e3
"""Greatest speed limit, m/s and rad/s, as in `botyard.model.robot`."""
MAX_RAMP = 1e6
"""Greatest acceleration, m/s² and rad/s²."""
MAX_RANGE = 1e6
"""Greatest range of a sensor, m, and of its errors."""
MAX_TARGET = 1e15
"""Greatest target of an axis."""


class Contact(IntEnum):
    """What stopped a robot in the last steps."""

    NONE = 0
    WALL = 1
    BODY = 2


class Fault(IntEnum):
    """Why a world of a batch cannot be advanced."""

    NONE = 0
    POSE = 1
    VELOCITY = 2
    LIMITS = 3
    SENSOR = 4
    KIND = 5
    ROOM = 6


class Own(NamedTuple):
    """What a world of a batch has beside its bodies; m bodies, r readings in all.

    Attributes
    ----------
    counts : (4,) int64
        See `TICK`, `EPISODE`, `MAP`, `SAMPLES`.
    seeds : (2,) uint64
        Seed of the world; seed of the episode (`botyard.engine.rng.episode_seed`), of which all draws are made.
    start : (m, 3) float64
        Poses at which the bodies began the episode, m, m, rad.
    contact : (m,) int8
        `Contact` of each body in the last steps.
    other : (m,) int64
        Row of the body that stopped it; −1: none.
    raw, bright : (r,) float64, (r,) int16
        Workspace for readings, m, and laser returns. Where there is no sensor `raw` is NaN.
    single, double : (r,) float32, (r,) float64
        Readings, m; one of both has no elements, and is not written.
    devices : (d,) int64
        Numbers of all range devices.
    known : (1,) int64
        Map for which distances between bodies and walls are known.
    fault : (1,) int64
        `Fault`.
    task : (2,) int64
        What is to be done, see `STEPS` and `BEGINS`; the same for all worlds.
    """

    counts: I8
    seeds: U8
    start: F8
    contact: I1
    other: I8
    raw: F8
    bright: I2
    single: F4
    double: F8
    devices: I8
    known: I8
    fault: I8
    task: I8


@inline_kernel
def within(values: F8, row: int, low: float, high: float) -> bool:
    """Whether all three numbers of a row are from `low` to `high`; NaN is not."""
    a, b, c = values[row, 0], values[row, 1], values[row, 2]
    return bool((a >= low) & (a <= high) & (b >= low) & (b <= high) & (c >= low) & (c <= high))


@merged_kernel
def fault_of(state: State, fans: Fans) -> int:
    """`Fault` of a world whose arrays others have written: kernels index by numbers that follow from them."""
    fault = 0
    for i in range(state.pose.shape[0]):
        if not within(state.pose, i, -MAX_COORDINATE, MAX_COORDINATE) or abs(state.pose[i, 2]) > math.pi:
            fault = 1
        if not within(state.vel, i, -MAX_SPEED, MAX_SPEED) or not within(state.target, i, -MAX_TARGET, MAX_TARGET):
            fault = 2
        if (
            not within(state.max_vel, i, 0.0, MAX_SPEED)
            or not within(state.top_vel, i, 0.0, MAX_SPEED)
            or not within(state.accel, i, 0.0, MAX_RAMP)
            or not within(state.decel, i, 0.0, MAX_RAMP)
            or not within(state.err_lo, i, -MAX_SPEED, MAX_SPEED)
            or not within(state.err_hi, i, -MAX_SPEED, MAX_SPEED)
        ):
            fault = 3
        if state.control[i] != 0 or state.drive[i] < 0 or state.drive[i] > 2:
            fault = 5
    for b in range(fans.r_max.shape[0]):
        if not (
            (fans.r_min[b] >= 0.0)
            & (fans.r_min[b] <= fans.r_max[b])
            & (fans.r_max[b] <= MAX_RANGE)
            & (fans.r_noise[b] >= 0.0)
            & (fans.r_noise[b] <= MAX_RANGE)
            & (fans.a_noise[b] >= 0.0)
            & (fans.a_noise[b] <= math.pi)
        ):
            fault = 4
    return fault


@merged_kernel
def begin_episode(state: State, bodies: Bodies, bins: Bins, own: Own) -> None:
    """Put all bodies at their starts, at rest, as they are when they are added to a world; limits and errors of odometry stay as set."""
    start, seed = own.start, episode_seed(own.seeds[0], own.counts[EPISODE])
    own.seeds[1] = seed
    for i in range(start.shape[0]):
        start[i, 2] = wrap(start[i, 2])
        for axis in range(3):
            state.pose[i, axis] = start[i, axis]
            state.odom[i, axis] = start[i, axis] if state.err_mode[i] == 4 else 0.0  # `PERFECT`
            state.odom_frame[i, axis] = 0.0 if state.err_mode[i] == 4 else start[i, axis]
            state.vel[i, axis] = state.target[i, axis] = state.disp[i, axis] = state.err[i, axis] = 0.0
            if state.err_mode[i] == 1:  # `CONSTANT`
                low, high = state.err_lo[i, axis], state.err_hi[i, axis]
                state.err[i, axis] = high if low == -high else (low + high) / 2.0
        if state.err_mode[i] == 2:  # `RANDOM_INIT`
            draw_errors(state.uid, state.err_lo, state.err_hi, state.err, i, seed, BEFORE_ALL_TICKS)
        state.path[i, 0] = state.path[i, 1] = state.spin[i] = 0.0
        state.contact[i] = np.uint64(0)
        state.mode_x[i] = state.mode_a[i] = state.stall[i] = state.estop[i] = state.held[i] = 0
        state.motors[i] = 1
        bodies.placed[i, 0] = math.nan
    bins.reach[0] = bins.reach[1] = bins.reach[2] = 0.0
    own.counts[TICK] = 0


@merged_kernel
def note_contacts(state: State, bins: Bins, own: Own) -> None:
    """Write `Own.contact` and `Own.other` after a step."""
    for i in range(state.stall.shape[0]):
        if state.stall[i] == 1:
            met = bins.met[i]
            own.contact[i] = 1 if met < 0 else 2
            own.other[i] = met


@merged_kernel
def sense(world: World, fans: Fans, beams: Beams, own: Own) -> None:
    """Take all readings."""
    for b in range(fans.r_max.shape[0]):  # a workspace: limits of ranges may have been written
        for j in range(fans.beam_first[b], fans.beam_first[b + 1]):
            fans.beam_r_max[j] = fans.r_max[b]
    cast_groups(
        world.grid, world.bodies, world.bins, world.state, fans, beams, own.devices, own.seeds[1], own.counts[TICK], own.raw, own.bright,
    )  # fmt: skip
    for j in range(own.single.shape[0]):
        own.single[j] = np.float32(own.raw[j])
    for j in range(own.double.shape[0]):
        own.double[j] = own.raw[j]


@rows_kernel
def advance_world(
    state: State, bodies: Bodies, bins: Bins, grid: Grid, fans: Fans, beams: Beams, own: Own, dt: float
) -> None:
    """Begin an episode of a world, or advance it by steps of `dt` s, as `Own.task` says; then take all readings.

    `state`, `bodies`, `bins`, `own`, and limits and errors of `fans` are the world's own; `grid`, `beams` and workspaces its thread's.
    Steps are those of `botyard.engine.step`. A world with a `Fault` stays as it is.
    """
    begins = own.task[BEGINS] == 1
    if begins:  # first, as it puts right what is wrong with poses and velocities
        begin_episode(state, bodies, bins, own)
    own.fault[0] = fault_of(state, fans)
    if own.fault[0] != 0:
        return
    world = World(state, bodies, bins, grid)
    if begins or own.known[0] != own.counts[MAP]:
        own.known[0] = own.counts[MAP]
        for i in range(bodies.leeway.shape[0]):
            bodies.leeway[i] = 0.0
    for i in range(own.contact.shape[0]):
        own.contact[i], own.other[i] = 0, -1
    for _ in range(1 if begins else own.task[STEPS]):
        advance_bodies(world, dt, own.seeds[1], own.counts[TICK], 0 if begins else 3)
        if not begins:
            own.counts[TICK] += 1
            note_contacts(state, bins, own)
    sense(world, fans, beams, own)


class Spaces(NamedTuple):
    """Where each of the m robots of a world may be put in a map: cells of a raster, as runs of cells one after the other.

    Attributes
    ----------
    frame : (3,) float64
        Lower left corner of the raster, m, m, and edge of a cell, m.
    columns : (1,) int64
        Cells in a row.
    first : (m + 1,) int64
        Robot j has the runs first[j] … first[j + 1] − 1.
    begin : (k,) int32
        Number of the first cell of each run; cells are numbered row after row.
    before : (k,) int64
        Number of cells in the robot's runs before each one.
    cells : (m,) int64
        Number of cells of each robot; not 0.
    radius : (m,) float64
        Radius of each robot, m.
    """

    frame: F8
    columns: I8
    first: I8
    begin: I4
    before: I8
    cells: I8
    radius: F8


@inline_kernel
def cell_of(spaces: Spaces, robot: int, number: int) -> int:
    """The cell that has a number among those of a robot: by bisection."""
    low, high = spaces.first[robot], spaces.first[robot + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if spaces.before[middle] <= number:
            low = middle
        else:
            high = middle
    return int(spaces.begin[low] + number - spaces.before[low])


@rows_kernel
def draw_places(counts: I8, seeds: U8, spaces: Spaces, clearance: float, places: F8, fault: I8) -> None:
    """Draw a place for each robot of a world, (m, 3) m, m, rad, at least `clearance` m from circles around the robots before it.

    Draws are functions of the seed of the world, its episode, how often places were drawn in it, the robot, and the number of the draw.
    """
    x0, y0, cell, columns = spaces.frame[0], spaces.frame[1], spaces.frame[2], spaces.columns[0]
    seed = episode_seed(seeds[0], counts[EPISODE])
    fault[0] = 0
    for j in range(places.shape[0]):
        key = stream_key(seed, np.uint64(PLACE_STREAM), np.uint64(counts[SAMPLES]), np.uint64(j))
        is_free = False
        for k in range(0, 4 * MAX_TRIES, 4):
            part = 0.5 * (symmetric(key, np.uint64(k)) + 1.0)
            at = cell_of(spaces, j, int(part * spaces.cells[j]))
            x = x0 + (at % columns + 0.5 * (symmetric(key, np.uint64(k + 1)) + 1.0)) * cell
            y = y0 + (at // columns + 0.5 * (symmetric(key, np.uint64(k + 2)) + 1.0)) * cell
            is_free = True
            for other in range(j):
                dx, dy = x - places[other, 0], y - places[other, 1]
                apart = spaces.radius[j] + spaces.radius[other] + clearance
                is_free = is_free and dx * dx + dy * dy >= apart * apart
            if is_free:
                places[j, 0], places[j, 1], places[j, 2] = x, y, -math.pi * symmetric(key, np.uint64(k + 3))
                break
        if not is_free:
            fault[0] = 6
    counts[SAMPLES] += 1


@rows_kernel
def cast_rays(grid: Grid, xy: F8, bearings: F8, ranges: F8, reach: float, mask: int) -> None:
    """Ranges, m, to the nearest walls of the classes `mask` from places in a world, (k, 2) m, in directions, (k,) rad; else `reach`."""
    for k in range(bearings.shape[0]):
        c, s = cosine_sine(bearings[k])
        gx, gy = (xy[k, 0] - grid.x0) / grid.h, (xy[k, 1] - grid.y0) / grid.h
        ranges[k] = min(
            wall_ahead(grid, gx, gy, away_from_zero(c), away_from_zero(s), reach / grid.h, mask) * grid.h, reach
        )


__all__ = [
    "BEGINS",
    "EPISODE",
    "MAP",
    "SAMPLES",
    "STEPS",
    "TICK",
    "Contact",
    "Fault",
    "Own",
    "Spaces",
    "advance_world",
    "cast_rays",
    "draw_places",
]
