"""Many worlds as one batch: the step of a world.

The bodies of each world have the arrays, the layout and the kernels of a `Simulation`,
so that the worlds of a batch give the same bits. One call from Python calls the kernel
for many worlds (`botyard.native.kernels.RowsEntry`).
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.batchchecks import fault_of, fault_of_masses
from botyard.engine.batchlayout import (
    BAD_MAP,
    BEGINS,
    BODY_CONTACT,
    BOXES,
    EPISODE,
    FAILED,
    FETCHES,
    MAP,
    NO_CONTACT,
    NO_FAULT,
    ONLY_MAP,
    SAMPLES,
    STEPS,
    TICK,
    TOO_MANY_CONTACTS,
    WALL_CONTACT,
    Masses,
    MassRoom,
    Own,
)
from botyard.engine.kernels.beams import Beams, Fans
from botyard.engine.kernels.jit import merged_kernel, rows_kernel
from botyard.engine.kernels.latency import (
    ALL,
    LATE,
    NEW,
    Lateness,
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
    CONSTANT,
    NO_BODY,
    PERFECT,
    RANDOM_INIT,
    U1,
    VELOCITY_MODE,
    Bins,
    Bodies,
    Grid,
    State,
    World,
)
from botyard.engine.masslayout import (
    OK,
    MassShapes,
    Walls,
    moving,
)
from botyard.engine.step import FOLLOW, MOVE, PLACE, advance_bodies


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
    for i in range(start.shape[0]):
        start[i, 2] = wrap(start[i, 2])
        for axis in range(3):
            state.pose[i, axis] = start[i, axis]
            state.odom[i, axis] = (
                start[i, axis] if state.err_mode[i] == PERFECT else 0.0
            )
            state.odom_frame[i, axis] = (
                0.0 if state.err_mode[i] == PERFECT else start[i, axis]
            )
            state.vel[i, axis] = state.target[i, axis] = state.disp[
                i, axis
            ] = state.err[i, axis] = 0.0
            if state.err_mode[i] == CONSTANT:
                low, high = state.err_lo[i, axis], state.err_hi[i, axis]
                state.err[i, axis] = high if low == -high else (low + high) / 2.0

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
                own.contact[i] = WALL_CONTACT if met < 0 else BODY_CONTACT
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
    tick, dt, count = own.counts[TICK], own.step[0], own.devices.shape[0]
    # If any device has late readings, each one is asked whether it measures now.
    is_each = which != ALL or has_late_readings(late, dt)
    together = 1 if is_each else max(count, 1)
    for n in range(0, count, together):
        if not is_each or measures(late.delay, n, late.late_times[n], which, tick, dt):
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
    world = moving(state, bodies, bins, room.before, room.before_vel, room.order)
    return bool(
        step_masses(world, walls, shapes, masses.state, masses.table, room.work, dt)
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
    own.fault[0] = (
        BAD_MAP if own.task[ONLY_MAP] == 1 and own.counts[MAP] != 0 else fault
    )
    if own.fault[0] != NO_FAULT:
        own.task[FAILED] = 1
    return bool(own.fault[0] != NO_FAULT)


@merged_kernel
def begin_steps(bodies: Bodies, own: Own, begins: bool) -> None:
    """Reset values known for another map, and contacts of the last steps."""
    if begins or own.known[0] != own.counts[MAP]:
        own.known[0] = own.counts[MAP]
        for i in range(bodies.leeway.shape[0]):
            bodies.leeway[i] = 0.0

    for i in range(own.contact.shape[0]):
        own.contact[i], own.other[i] = NO_CONTACT, -1


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
    if fault == NO_FAULT:
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
                own.fault[0], own.known[0], own.task[FAILED] = TOO_MANY_CONTACTS, -1, 1
                return

            if not begins:
                own.counts[TICK] += 1
                note_contacts(state, bins, own)

        end_step(world, fans, beams, own, late, k, steps - 1)

    publish(own)


__all__ = ["advance_masses", "advance_world"]
