"""Step of one world of a batch (many worlds that one call advances).

The bodies of each world have the arrays, the layout and the kernels of a `Simulation`,
so that a world of a batch and a `Simulation` give the same bits. One call from Python
runs the kernel for each row of many worlds (`botyard.native.rows.RowsEntry`).
"""

from __future__ import annotations

import numpy as np

from botyard.engine.batchchecks import fault_of, fault_of_masses
from botyard.engine.batchlayout import (
    BAD_MAP,
    BODY_CONTACT,
    BOXES,
    FAILED,
    FETCHES,
    MAP,
    NO_FAULT,
    ONLY_MAP,
    STEPS,
    TICK,
    TOO_MANY_CONTACTS,
    WALL_CONTACT,
    Masses,
    MassRoom,
    Own,
)
from botyard.engine.batchstarts import begin_bodies, begin_masses, begin_steps
from botyard.engine.kernels.beams import Beams, Fans
from botyard.engine.kernels.jit import merged_kernel, rows_kernel
from botyard.engine.kernels.latency import (
    ALL,
    LATE,
    NEW,
    Lateness,
    has_late_readings,
    hold_back,
    lacks_readings,
    measures,
    take_commands,
)
from botyard.engine.kernels.masses import step_masses
from botyard.engine.kernels.prefetch import MIN_BEAMS, fetch_cells, fetch_walls
from botyard.engine.kernels.raycast import cast_groups
from botyard.engine.layout import (
    NO_BODY,
    U1,
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
def note_contacts(state: State, bins: Bins, own: Own) -> None:
    """Store the obstacles that stopped bodies in a step.

    Parameters
    ----------
    state, bins : State, Bins
        Arrays of one world after a step.
    own : Own
        Data of the world. Output: `contact` and `other` of bodies that are blocked. All
        other bodies keep the values of earlier steps of the call.
    """
    # Rows have boxes first, but callers number robots first; see `other` below.
    count, boxes = state.stall.shape[0], own.task[BOXES]
    for i in range(count):
        # Test the flag first, because reading `met` of each world costs a twentieth of
        # its step.
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

    Parameters
    ----------
    state, grid, fans : State, Grid, Fans
        Poses, static world and range sensors of one world.
    own : Own
        Data of the world.
    filled : int
        0 prefetches the cells, 1 the walls in them, which needs the cells.
    """
    # Grids of a few maps stay in the cache anyway, and prefetching them costs time.
    for n in range(own.devices.shape[0] if own.task[FETCHES] == 1 else 0):
        first, row = fans.first[fans.kind[own.devices[n]]], fans.row[own.devices[n]]
        # The first bundle stands for its device: lasers have one bundle, and sonars too
        # few beams to matter.
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
    """Measure with some devices, and apply the delays of their readings.

    A new reading of a sensor with a delay is stored. In its place, `raw` gets the reading
    whose delay has passed.

    Parameters
    ----------
    world : World
        Arrays of one world.
    fans : Fans
        Range sensors of the world.
    beams : Beams
        Workspace of the thread.
    own : Own
        Data of the world. Output: `raw`, m, and `bright`: the readings available now.
    late : Lateness
        Delays and rates of the sensors. In-place: readings that wait.
    which : int
        Devices to measure with: `ALL`, `LATE` or `NEW`.
    """
    tick, dt, count = own.counts[TICK], own.step[0], own.devices.shape[0]
    # If readings of any device are late, each device may measure at another step.
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
    """Measure after a step if a reading is needed.

    The last step gives readings to the caller. Earlier steps are measured only if a
    sensor has a delay: its readings become available later.

    Parameters
    ----------
    world : World
        Arrays of one world.
    fans, beams : Fans, Beams
        Range sensors, and workspace of the thread.
    own, late : Own, Lateness
        Data of the world, and delays of its sensors.
    k : int
        Number of the step within the call; −1 stands for the state before the first
        step.
    last : int
        Number of the last step of the call.
    """
    # The cells were prefetched before the steps, so they have arrived by now.
    if k >= last:
        fetch(world.state, world.grid, fans, own, 1)
    # Late readings that are measured now become available later.
    if k < 0 or k >= last or has_late_readings(late, own.step[0]):
        measure(
            world, fans, beams, own, late, NEW if k < 0 else ALL if k >= last else LATE
        )


@merged_kernel
def publish(own: Own) -> None:
    """Write the readings to the array that callers read.

    Parameters
    ----------
    own : Own
        Data of one world. Output: `single` or `double`, m, from `raw`; the array of the
        other type has no elements.
    """
    # Both loops run; the array that the caller did not ask for is empty.
    for j in range(own.single.shape[0]):
        own.single[j] = np.float32(own.raw[j])
    for j in range(own.double.shape[0]):
        own.double[j] = own.raw[j]


@merged_kernel
def copy_bytes(source: U1, to: U1) -> None:
    """Copy a row of bytes.

    Parameters
    ----------
    source : (n,) uint8
        Bytes to copy.
    to : (n,) uint8
        Output.
    """
    for k in range(to.shape[0]):
        to[k] = source[k]


@merged_kernel
def keep_places(state: State, room: MassRoom) -> None:
    """Copy the poses and velocities of all bodies before those without mass move.

    Parameters
    ----------
    state : State
        Arrays of one world.
    room : MassRoom
        Workspace of the thread. Output: `before` and `before_vel`.
    """
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
    """Move bodies with mass, after all other bodies have moved.

    Parameters
    ----------
    state, bodies, bins : State, Bodies, Bins
        Arrays of one world, after the moves of bodies without mass.
    walls : Walls
        Static world, as contacts need it.
    shapes, masses : MassShapes, Masses
        Outlines and masses; state and contacts of the world.
    room : MassRoom
        Workspace of the thread, with the places before the step.
    dt : float
        Duration of the step, s.

    Returns
    -------
    bool
        False if there is no room for all contacts; in this case, the state is
        incomplete.
    """
    world = moving(state, bodies, bins, room.before, room.before_vel, room.order)
    return bool(
        step_masses(world, walls, shapes, masses.state, masses.table, room.work, dt)
        <= OK
    )


@merged_kernel
def is_stopped(own: Own, fault: int) -> bool:
    """Store the `Fault` of a world; return whether there is one.

    Parameters
    ----------
    own : Own
        Data of the world. Output: `fault`, and `FAILED` in `task`.
    fault : int
        Result of `fault_of`. A map that does not exist is also a fault.
    """
    own.fault[0] = (
        BAD_MAP if own.task[ONLY_MAP] == 1 and own.counts[MAP] != 0 else fault
    )
    if own.fault[0] != NO_FAULT:
        own.task[FAILED] = 1
    return bool(own.fault[0] != NO_FAULT)


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

    Then take all readings. Steps are the steps of `botyard.engine.step`. A world with a
    `Fault` does not change.

    Parameters
    ----------
    state, bodies, bins : State, Bodies, Bins
        Arrays of the world. In-place.
    grid : Grid
        Static world, which worlds with one map share. Each thread has its own tuple,
        because its array `near` is workspace.
    fans : Fans
        Range sensors; their limits and errors belong to the world.
    beams : Beams
        Workspace of the thread.
    own : Own
        Data of the world. In-place: seeds, counts, contacts, readings, fault.
    late : Lateness
        Delays of commands and sensors of the world. In-place: commands and readings
        that wait.
    """
    dt = own.step[0]
    begins = begin_bodies(state, bodies, bins, own, late)
    # Check before anything else changes, so that a world with a fault stays as it was.
    if is_stopped(own, fault_of(state, bodies.wheels, fans, late, dt, False)):
        return
    world = World(state, bodies, bins, grid)
    fetch(state, grid, fans, own, 0)
    begin_steps(bodies, own, begins)
    steps = 1 if begins else own.task[STEPS]

    # Step −1 takes first readings of late devices that were added since the last call.
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
                # The start of an episode is not a step: its readings belong to tick 0.
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
    """Advance all bodies by a step, bodies with mass last.

    At the start of an episode, derive data from their poses instead.

    Parameters
    ----------
    world : World
        Arrays of one world. In-place.
    own : Own
        Data of the world: seed of the episode and number of the step.
    walls, shapes, masses : Walls, MassShapes, Masses
        Static world, outlines and masses, state and contacts of the world.
    room : MassRoom
        Workspace of the thread.
    dt : float
        Duration of the step, s.

    Returns
    -------
    bool
        False if there is no room for all contacts; in this case, the state is
        incomplete.
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

        # Odometry comes last, because it must include pushes.
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

    It is a separate kernel, because passing the arrays of masses takes a fifth of a
    step without them.

    Parameters
    ----------
    state, bodies, bins, grid, fans, beams, own, late
        See `advance_world`.
    walls, shapes : Walls, MassShapes
        Static world, and outlines and masses of all bodies.
    masses : Masses
        State and contacts of the world. In-place.
    room : MassRoom
        Workspace of the thread.
    """
    dt = own.step[0]
    begins = begin_bodies(state, bodies, bins, own, late)
    if begins:
        begin_masses(masses)
    fault = fault_of(state, bodies.wheels, fans, late, dt, True)
    # Checks of masses assume finite poses, which the first check establishes.
    if fault == NO_FAULT:
        fault = fault_of_masses(state, shapes, masses)
    if is_stopped(own, fault):
        return
    world = World(state, bodies, bins, grid)
    fetch(state, grid, fans, own, 0)
    # Contacts may run out of room in the middle of a step. Keep a copy, to which the
    # world can return.
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
