"""Many worlds as one batch: data of a world besides its bodies, and its step kernel.

The bodies of each world have the arrays, the layout and the kernels of a `Simulation`,
so that the worlds of a batch give the same bits. One call from Python calls the kernel
for many worlds (`botyard.native.kernels.RowsEntry`).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.engine.kernels.beams import Beams, Fans, away_from_zero
from botyard.engine.kernels.gridwalk import segment_range
from botyard.engine.kernels.identify import wall_ahead
from botyard.engine.kernels.jit import inline_kernel, merged_kernel, rows_kernel
from botyard.engine.kernels.latency import (
    ALL,
    LATE,
    NEW,
    Lateness,
    are_latencies,
    are_rates,
    are_rings,
    drop_all,
    has_late_readings,
    hold_back,
    lacks_readings,
    measures,
    take_commands,
)
from botyard.engine.kernels.masses import step_masses
from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.noise import episode_seed
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_errors
from botyard.engine.kernels.prefetch import MIN_BEAMS, fetch_cells, fetch_walls
from botyard.engine.kernels.raycast import cast_groups
from botyard.engine.layout import (
    F8,
    I1,
    I2,
    I8,
    NO_BODY,
    U1,
    U2,
    U8,
    Bins,
    Bodies,
    Grid,
    State,
    World,
)
from botyard.engine.masslayout import (
    MASS,
    OK,
    Impulses,
    MassShapes,
    MassState,
    Moving,
    Walls,
    Workspace,
)
from botyard.engine.step import FOLLOW, MOVE, PLACE, advance_bodies
from botyard.numerics.elementary import cosine_sine

F4 = NDArray[np.float32]

TICK, EPISODE, MAP, SAMPLES, ROBOT_SET = range(5)
"""Indices in `Own.counts`.

They are steps done in this episode; number of the episode; number of the map; free
places drawn in this episode; number of the robot set.
"""
STEPS, BEGINS, BOXES, FAILED, ONLY_MAP, FETCHES = range(6)
"""Indices in `Own.task`.

`STEPS`: number of steps. `BEGINS`: 1: start an episode, without a step; 2: start the
next episode of the world, in map 0. `BOXES`: number of boxes, which are the first
bodies. `FAILED`: 1: a world has a `Fault`; each world with a fault writes it.
`ONLY_MAP`: 1: map 0 is the only one. `FETCHES`: 1: there are more maps than the
processor's caches hold.
"""
MAX_COORDINATE = 1e7
"""Greatest coordinate of a body, m, as in `botyard.engine.commands`.

Kernels cannot number cells beyond it.
"""
MAX_SPEED = 1e3
"""Greatest speed limit, m/s and rad/s, as in `botyard.model.robot`."""
MAX_RAMP = 1e6
"""Greatest acceleration, m/s² and rad/s²."""
MAX_RANGE = 1e6
"""Greatest range of a sensor, m, and of its errors."""
MAX_TARGET = 1e15
"""Greatest target of an axis."""
MAX_DEMAND = 1e9
"""Greatest number of `State.demand`, as in `botyard.engine.commands`."""
MAX_WHEEL_RATIO = 2.0
"""Greatest ratio of the diameters of two wheels, as in `botyard.model.robot`."""


class Contact(IntEnum):
    """Kind of obstacle that stopped a robot in the last steps."""

    NONE = 0
    WALL = 1
    BODY = 2


class Fault(IntEnum):
    """Reason why a world of a batch cannot be advanced."""

    NONE = 0
    POSE = 1
    VELOCITY = 2
    LIMITS = 3
    SENSOR = 4
    KIND = 5
    CONTACTS = 7
    LATENCY = 8
    MAP = 9
    RATE = 10


class Own(NamedTuple):
    """Data of a world of a batch besides its bodies; m bodies, r readings in all.

    Attributes
    ----------
    counts : (5,) int64
        See `TICK`, `EPISODE`, `MAP`, `SAMPLES`, `ROBOT_SET`.
    seeds : (2,) uint64
        Seed of the world; seed of the episode (`botyard.engine.rng.episode_seed`), from
        which all draws are made.
    start : (m, 3) float64
        Poses of the bodies at the start of the episode, m, m, rad.
    contact : (m,) int8
        `Contact` of each body in the last steps.
    other : (m,) int64
        Number of the body that stopped it: robots are counted first, then boxes; −1: none.
    raw, bright : (r,) float64, (r,) int16
        Workspace for readings, m, and laser returns. `raw` is NaN in places without a
        sensor.
    single, double : (r,) float32, (r,) float64
        Readings, m; one of both has no elements, and is not written.
    devices : (d,) int64
        Numbers of all range devices.
    known : (1,) int64
        Map for which distances between bodies and walls are known.
    fault : (1,) int64
        `Fault`.
    task : (6,) int64
        Task of the call, see `STEPS` … `FETCHES`; the same for all worlds.
    step : (1,) float64
        Simulated time of a step, s; the same for all worlds.
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
    step: F8


class Masses(NamedTuple):
    """Data of a world of a batch for its bodies with mass.

    Attributes
    ----------
    state : MassState
        State that a step changes.
    table : Impulses
        Contacts. Its room does not grow: a world that needs more has a `Fault`.
    row : (S,) uint8
        All values that a step passes to the next one, in one row of bytes.
    """

    state: MassState
    table: Impulses
    row: U1


class MassRoom(NamedTuple):
    """Workspaces of a thread for bodies with mass.

    Attributes
    ----------
    work : Workspace
        Workspace of a step.
    before, before_vel : (n, 3) float64
        Poses and velocities before bodies without mass moved.
    order : (n,) int64
        Rows by `State.uid`.
    row : (S,) uint8
        `Masses.row` before the steps. A world without room for its contacts is reset to it.
    """

    work: Workspace
    before: F8
    before_vel: F8
    order: I8
    row: U1


@inline_kernel
def within(values: F8, row: int, low: float, high: float) -> bool:
    """Return whether all three numbers of a row are from `low` to `high`; NaN is not."""
    a, b, c = values[row, 0], values[row, 1], values[row, 2]
    return bool(
        (a >= low) & (a <= high) & (b >= low) & (b <= high) & (c >= low) & (c <= high)
    )


@inline_kernel
def is_motion(state: State, wheels: F8, i: int) -> bool:
    """Return whether a body's limits of motion and odometry errors are in range."""
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
        # The literal is `Drive.DIFF`: kernels take plain numbers.
        and (wheels[i, 0] == 1.0 or state.drive[i] == 1)
    )


@merged_kernel
def fault_of(
    state: State, wheels: F8, fans: Fans, late: Lateness, dt: float, has_masses: bool
) -> int:
    """Return the `Fault` of a world whose arrays a caller may have written.

    Kernels use numbers derived from them as indices.
    """
    # Literals are values of `Fault`.
    fault = 0 if are_latencies(late, dt) else 8
    if not are_rates(late, dt):
        fault = 10
    if not are_rings(late):
        fault = 5
    for i in range(state.pose.shape[0]):
        if (
            not within(state.pose, i, -MAX_COORDINATE, MAX_COORDINATE)
            or abs(state.pose[i, 2]) > math.pi
        ):
            fault = 1

        if (
            not within(state.vel, i, -MAX_SPEED, MAX_SPEED)
            or not within(state.target, i, -MAX_TARGET, MAX_TARGET)
            or not within(late.command, i, -MAX_TARGET, MAX_TARGET)
        ):
            fault = 2

        if not is_motion(state, wheels, i):
            fault = 3
        if (
            (state.control[i] != 0 and not has_masses)
            or state.drive[i] < 0
            or state.drive[i] > 2
        ):
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
            & (fans.missing[b] >= 0.0)
            & (fans.missing[b] <= 1.0)
        ):
            fault = 4

    return fault


@merged_kernel
def fault_of_masses(state: State, shapes: MassShapes, masses: Masses) -> int:
    """Return the `Fault` of the additional data of bodies with mass; see `fault_of`."""
    # The count bounds loops over the table.
    if masses.table.size[0] < 0 or masses.table.size[0] > masses.table.key.shape[0]:
        return 5
    for i in range(state.control.shape[0]):
        control = state.control[i]
        if (
            control < 0
            or control > 4
            or (control > 0) != (shapes.values[i, MASS] > 0.0)
        ):
            return 5

        if control > 0 and not within(state.demand, i, -MAX_DEMAND, MAX_DEMAND):
            return 2

    return 0


@merged_kernel
def begin_masses(masses: Masses) -> None:
    """Write the initial state of bodies with mass and their movers.

    It is the same as of `botyard.engine.masslayout.mass_state` and `impulses`.
    """
    mass, table = masses.state, masses.table
    for i in range(mass.depth.shape[0]):
        mass.depth[i], mass.resting[i] = 0.0, 0
        for k in range(3):
            mass.seen[i, k] = math.nan
            mass.floor[i, k] = mass.wrench[i, k] = 0.0

    table.size[0], table.span[0] = 0, 0.0
    for t in range(table.key.shape[0]):
        table.impulse[t, 0] = table.impulse[t, 1] = 0.0
        table.key[t, 0] = table.key[t, 1] = table.key[t, 2] = np.uint64(0)


@merged_kernel
def begin_episode(state: State, bodies: Bodies, bins: Bins, own: Own) -> None:
    """Put all bodies at their starts, at rest, as if they had just been added.

    Limits and errors of odometry keep their values.
    """
    start, seed = own.start, episode_seed(own.seeds[0], own.counts[EPISODE])
    own.seeds[1] = seed
    # Values of `OdometryErrorMode`: 1 `CONSTANT`, 2 `RANDOM_INIT`, 4 `PERFECT`.
    for i in range(start.shape[0]):
        start[i, 2] = wrap(start[i, 2])
        for axis in range(3):
            state.pose[i, axis] = start[i, axis]
            state.odom[i, axis] = (
                start[i, axis] if state.err_mode[i] == 4 else 0.0
            )  # `PERFECT`
            state.odom_frame[i, axis] = (
                0.0 if state.err_mode[i] == 4 else start[i, axis]
            )
            state.vel[i, axis] = state.target[i, axis] = state.disp[
                i, axis
            ] = state.err[i, axis] = 0.0
            if state.err_mode[i] == 1:  # `CONSTANT`
                low, high = state.err_lo[i, axis], state.err_hi[i, axis]
                state.err[i, axis] = high if low == -high else (low + high) / 2.0

        if state.err_mode[i] == 2:  # `RANDOM_INIT`
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
        state.mode_x[i] = state.mode_a[i] = state.stall[i] = state.estop[
            i
        ] = state.held[i] = 0
        state.motors[i] = 1
        bodies.placed[i, 0] = math.nan

    bins.reach[0] = bins.reach[1] = bins.reach[2] = 0.0
    own.counts[TICK] = 0


@merged_kernel
def note_contacts(state: State, bins: Bins, own: Own) -> None:
    """Write `Own.contact` and `Own.other` after a step."""
    count, boxes = state.stall.shape[0], own.task[BOXES]
    for i in range(count):
        # First, because reading `met` of each world costs a twentieth of its step.
        if state.stall[i] == 1:
            met = bins.met[i]
            if met != NO_BODY:
                own.contact[i] = 1 if met < 0 else 2
                own.other[i] = (
                    met
                    if met < 0
                    else met - boxes
                    if met >= boxes
                    else met + count - boxes
                )


@merged_kernel
def fetch(state: State, grid: Grid, fans: Fans, own: Own, filled: int) -> None:
    """Prefetch data of the grid that sensors will read; see `FETCHES`.

    It starts with the cells. With `filled` 1 it fetches the walls in them.
    """
    for n in range(own.devices.shape[0] if own.task[FETCHES] == 1 else 0):
        first, row = fans.first[fans.kind[own.devices[n]]], fans.row[own.devices[n]]
        beams = fans.beam_first[first + 1] - fans.beam_first[first]
        if beams >= MIN_BEAMS:
            x, y, reach = state.pose[row, 0], state.pose[row, 1], fans.r_max[first]
            if filled == 1:
                fetch_walls(grid, x, y, reach, beams)
            else:
                fetch_cells(grid, x, y, reach)


@merged_kernel
def measure(
    world: World, fans: Fans, beams: Beams, own: Own, late: Lateness, which: int
) -> None:
    """Measure with some devices, see `ALL`, and replace readings by the available ones."""
    # A workspace, because the caller may have written limits of ranges.
    for b in range(fans.r_max.shape[0]):
        for j in range(fans.beam_first[b], fans.beam_first[b + 1]):
            fans.beam_r_max[j] = fans.r_max[b]

    tick, dt, count = own.counts[TICK], own.step[0], own.devices.shape[0]
    # If any device has late readings, each one is asked whether it measures now.
    is_each = which != ALL or has_late_readings(late, dt)
    together = 1 if is_each else max(count, 1)
    for n in range(0, count, together):
        if not is_each or measures(late.delay, late.late_due, n, which, tick, dt):
            cast_groups(
                world.grid,
                world.bodies,
                world.bins,
                world.state,
                fans,
                beams,
                own.devices[n : n + together],
                own.seeds[1],
                tick,
                own.raw,
                own.bright,
            )

    hold_back(
        world.state, fans, late, which, own.seeds[1], tick, dt, own.raw, own.bright
    )


@merged_kernel
def end_step(
    world: World, fans: Fans, beams: Beams, own: Own, late: Lateness, k: int, last: int
) -> None:
    """Measure after step `k` of the steps up to `last` if needed.

    −1 stands for the state before the first step.
    """
    if k >= last:
        fetch(world.state, world.grid, fans, own, 1)
    # Late readings that are measured now become available later.
    if k < 0 or k >= last or has_late_readings(late, own.step[0]):
        measure(
            world, fans, beams, own, late, NEW if k < 0 else ALL if k >= last else LATE
        )


@merged_kernel
def publish(own: Own) -> None:
    """Write the readings."""
    for j in range(own.single.shape[0]):
        own.single[j] = np.float32(own.raw[j])
    for j in range(own.double.shape[0]):
        own.double[j] = own.raw[j]


@merged_kernel
def copy_bytes(source: U1, to: U1) -> None:
    """Copy a row of bytes."""
    for k in range(to.shape[0]):
        to[k] = source[k]


@merged_kernel
def keep_places(state: State, room: MassRoom) -> None:
    """Copy poses and velocities before bodies without mass move."""
    for i in range(room.before.shape[0]):
        for axis in range(3):
            room.before[i, axis], room.before_vel[i, axis] = (
                state.pose[i, axis],
                state.vel[i, axis],
            )


@merged_kernel
def push(
    state: State,
    bodies: Bodies,
    bins: Bins,
    walls: Walls,
    shapes: MassShapes,
    masses: Masses,
    room: MassRoom,
    dt: float,
) -> bool:
    """Move bodies with mass after the others; False without room for their contacts."""
    moving = Moving(
        state.pose,
        state.vel,
        state.disp,
        state.spin,
        state.uid,
        state.demand,
        state.contact,
        state.stall,
        state.mask,
        state.held,
        state.drive,
        state.control,
        bodies.radius,
        bodies.inner,
        bodies.feels,
        bins.rows,
        bins.at,
        bins.start,
        bins.frame,
        bins.shape,
        bins.reach,
        bins.met,
        room.before,
        room.before_vel,
        room.order,
    )
    return bool(
        step_masses(moving, walls, shapes, masses.state, masses.table, room.work, dt)
        <= OK
    )


@merged_kernel
def begin_bodies(
    state: State, bodies: Bodies, bins: Bins, own: Own, late: Lateness
) -> bool:
    """Start an episode if `Own.task` says so; return whether it does.

    This comes first, because it corrects invalid poses and velocities.
    """
    if own.task[BEGINS] == 0:
        return False
    if own.task[BEGINS] == 2:
        # The next episode has a number known in advance, which saves the host two array
        # writes.
        own.counts[EPISODE] += 1
        own.counts[MAP] = own.counts[SAMPLES] = 0

    begin_episode(state, bodies, bins, own)
    drop_all(late)
    return True


@merged_kernel
def is_stopped(own: Own, fault: int) -> bool:
    """Note the `Fault` of a world; return whether there is one.

    A map that does not exist is also a fault.
    """
    own.fault[0] = 9 if own.task[ONLY_MAP] == 1 and own.counts[MAP] != 0 else fault
    if own.fault[0] != 0:
        own.task[FAILED] = 1
    return bool(own.fault[0] != 0)


@merged_kernel
def begin_steps(bodies: Bodies, own: Own, begins: bool) -> None:
    """Reset values known for another map, and contacts of the last steps."""
    if begins or own.known[0] != own.counts[MAP]:
        own.known[0] = own.counts[MAP]
        for i in range(bodies.leeway.shape[0]):
            bodies.leeway[i] = 0.0

    for i in range(own.contact.shape[0]):
        own.contact[i], own.other[i] = 0, -1


@rows_kernel
def advance_world(
    state: State,
    bodies: Bodies,
    bins: Bins,
    grid: Grid,
    fans: Fans,
    beams: Beams,
    own: Own,
    late: Lateness,
) -> None:
    """Start an episode of a world, or advance it by steps, as `Own.task` says.

    Then take all readings. `state`, `bodies`, `bins`, `own`, `late`, and limits and
    errors of `fans` belong to the world; `grid`, `beams` and workspaces to the thread.
    Steps are the steps of `botyard.engine.step`. A world with a `Fault` does not
    change.
    """
    dt = own.step[0]
    begins = begin_bodies(state, bodies, bins, own, late)
    if is_stopped(own, fault_of(state, bodies.wheels, fans, late, dt, False)):
        return
    world = World(state, bodies, bins, grid)
    fetch(state, grid, fans, own, 0)
    begin_steps(bodies, own, begins)
    steps = 1 if begins else own.task[STEPS]
    for k in range(-1 if not begins and lacks_readings(late, dt) else 0, max(steps, 1)):
        if k >= 0 and k < steps:
            if not begins:
                take_commands(state, late, k == 0, own.seeds[1], own.counts[TICK], dt)
            advance_bodies(
                world,
                dt,
                own.seeds[1],
                own.counts[TICK],
                PLACE if begins else MOVE | FOLLOW,
            )
            if not begins:
                own.counts[TICK] += 1
                note_contacts(state, bins, own)

        end_step(world, fans, beams, own, late, k, steps - 1)

    publish(own)


@merged_kernel
def advance_step(
    world: World,
    own: Own,
    walls: Walls,
    shapes: MassShapes,
    masses: Masses,
    room: MassRoom,
    dt: float,
    begins: bool,
) -> bool:
    """Advance all bodies by a step.

    At the start of an episode, derive data from their poses instead.

    Returns False without room for contacts.
    """
    keep_places(world.state, room)
    # One call of `advance_bodies` in a loop, so that it is compiled once.
    parts = PLACE if begins else MOVE
    while True:
        advance_bodies(world, dt, own.seeds[1], own.counts[TICK], parts)
        if parts != MOVE:
            return True
        if not push(
            world.state, world.bodies, world.bins, walls, shapes, masses, room, dt
        ):
            return False

        parts = FOLLOW


@rows_kernel
def advance_masses(
    state: State,
    bodies: Bodies,
    bins: Bins,
    grid: Grid,
    fans: Fans,
    beams: Beams,
    own: Own,
    walls: Walls,
    shapes: MassShapes,
    masses: Masses,
    room: MassRoom,
    late: Lateness,
) -> None:
    """Run `advance_world` for worlds with bodies with mass.

    `masses` belongs to the world, `room` to its thread. It is a separate kernel,
    because passing the arrays of masses takes a fifth of a step without them.
    """
    dt = own.step[0]
    begins = begin_bodies(state, bodies, bins, own, late)
    if begins:
        begin_masses(masses)
    fault = fault_of(state, bodies.wheels, fans, late, dt, True)
    if fault == 0:
        fault = fault_of_masses(state, shapes, masses)
    if is_stopped(own, fault):
        return
    world = World(state, bodies, bins, grid)
    fetch(state, grid, fans, own, 0)
    copy_bytes(masses.row, room.row)
    begin_steps(bodies, own, begins)
    steps = 1 if begins else own.task[STEPS]
    for k in range(-1 if not begins and lacks_readings(late, dt) else 0, max(steps, 1)):
        if k >= 0 and k < steps:
            if not begins:
                take_commands(state, late, k == 0, own.seeds[1], own.counts[TICK], dt)
            if not advance_step(world, own, walls, shapes, masses, room, dt, begins):
                # A world without room for its contacts returns to its state before the
                # steps.
                copy_bytes(room.row, masses.row)
                own.fault[0], own.known[0], own.task[FAILED] = 7, -1, 1
                return

            if not begins:
                own.counts[TICK] += 1
                note_contacts(state, bins, own)

        end_step(world, fans, beams, own, late, k, steps - 1)

    publish(own)


@inline_kernel
def body_ahead(
    bodies: Bodies,
    pose: F8,
    row: int,
    x: float,
    y: float,
    dx: float,
    dy: float,
    best: float,
) -> float:
    """Return the range of a ray to the outline of a body, m, at most `best`.

    The ray starts at (x, y), m.

    The direction is (dx, dy).
    """
    rx, ry, radius = pose[row, 0] - x, pose[row, 1] - y, bodies.radius[row]
    along = rx * dx + ry * dy
    # The ray misses the circle around the body, points away from it, or ends before it.
    if abs(rx * dy - ry * dx) > radius or along < -radius or along - radius >= best:
        return best
    c, s = cosine_sine(pose[row, 2])
    # In the body frame, like the origin of the ray below.
    ux, uy = c * dx + s * dy, c * dy - s * dx
    ox, oy = -c * rx - s * ry, s * rx - c * ry
    for p in range(bodies.part_start[row], bodies.part_start[row + 1]):
        v0, v1 = bodies.vert_start[p], bodies.vert_start[p + 1]
        ax, ay = bodies.verts[v1 - 1, 0] - ox, bodies.verts[v1 - 1, 1] - oy
        for v in range(v0, v1):
            bx, by = bodies.verts[v, 0] - ox, bodies.verts[v, 1] - oy
            best = segment_range(ax, ay, bx - ax, by - ay, ux, uy, best)
            ax, ay = bx, by

    return best


@rows_kernel
def cast_rays(
    grid: Grid,
    bodies: Bodies,
    rows: I8,
    pose: F8,
    classes: U2,
    xy: F8,
    bearings: F8,
    ranges: F8,
    reach: float,
    mask: int,
) -> None:
    """Write ranges, m, to the nearest walls and bodies of a world.

    Rays start at `xy`, (k, 2) m, in directions `bearings`, (k,) rad; ranges are at most
    `reach`. `mask`: visible classes of walls and bodies; `rows`, (j,): bodies to test;
    `pose`, (n, 3), and `classes`, (n,): of all bodies.
    """
    for k in range(bearings.shape[0]):
        c, s = cosine_sine(bearings[k])
        gx, gy = (xy[k, 0] - grid.x0) / grid.h, (xy[k, 1] - grid.y0) / grid.h
        dx, dy = away_from_zero(c), away_from_zero(s)
        best = min(
            wall_ahead(grid, gx, gy, dx, dy, reach / grid.h, mask) * grid.h, reach
        )
        for j in range(rows.shape[0]):
            if int(classes[rows[j]]) & mask:
                best = body_ahead(
                    bodies, pose, rows[j], xy[k, 0], xy[k, 1], dx, dy, best
                )

        # Adding 0 turns the −0 of a ray that starts at a wall into 0.
        ranges[k] = best + 0.0


__all__ = [
    "BEGINS",
    "BOXES",
    "EPISODE",
    "FAILED",
    "FETCHES",
    "MAP",
    "ONLY_MAP",
    "ROBOT_SET",
    "SAMPLES",
    "STEPS",
    "TICK",
    "Contact",
    "Fault",
    "MassRoom",
    "Masses",
    "Own",
    "advance_masses",
    "advance_world",
    "cast_rays",
]
