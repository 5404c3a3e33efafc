"""Moves of all bodies in a step: single ones, and robots with trailers.

The bodies of a train move by the same part of the step: an obstacle or the limit of a
hitch that stops one stops all. Allocates nothing; runs in one thread.
"""

from __future__ import annotations

import numpy as np

from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.collide import (
    TRANSLATING,
    is_blocked,
    leads,
    move_body,
    touches,
    travel,
)
from botyard.engine.kernels.ground import sense_ground
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.motion import (
    arc,
    plan_slides,
    plan_steering,
    plan_velocities,
    wrap,
)
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.kernels.sweeps import Sweep
from botyard.engine.kernels.trains import couple, follow, head_twist, jackknifes
from botyard.engine.layout import (
    FOLLOWER,
    I8,
    LEADER,
    NO_CONTROL,
    SLIP,
    Bins,
    Bodies,
    World,
)
from botyard.numerics.elementary import cosine_sine

RETRIES = 12
"""Number of trials to find a free place for a train, each with half of the motion."""
BISECTIONS = 40
"""Number of trials to find the motion after which a hitch has its limit."""


@merged_kernel
def plan_rows(world: World, dt: float, first: int, end: int) -> None:
    """Write the velocities of a step of bodies without trailers.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: see `plan_velocities`.
    dt : float
        Duration of the step, s.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    state, bodies = world.state, world.bodies
    # Without zones the floor costs nothing.
    has_zones = world.grid.zones.shape[0] > 0
    if has_zones:
        sense_ground(state, bodies, world.grid, first, end)
    plan_velocities(state, bodies, dt, has_zones, first, end)
    # Without rows no body steers.
    if state.steer.shape[0] > 0:
        plan_steering(state, bodies, dt, first, end)
    if bodies.slips.shape[0] > 0:
        plan_slides(state, bodies, dt, first, end)


@merged_kernel
def move_rows(world: World, rows: I8, first: int, end: int, dt: float) -> None:
    """Move bodies with a drive as far as they can, one after the other.

    Writes pose, disp, spin, stall, contact and, if an obstacle stops a body, vel.

    Parameters
    ----------
    world : World
        Arrays of the world after `plan_velocities` and `sort_into_bins`. In-place.
    rows : (n,) int64
        Rows of bodies, such as `Bodies.order`.
    first, end : int
        Part of `rows`: the index of its first body, and the index after its last one.
    dt : float
        Duration of the step, s.
    """
    state, bodies = world.state, world.bodies
    vel, disp, spin, stall = (
        state.vel,
        state.disp,
        state.spin,
        state.stall,
    )
    # The longest distance that any body moves in this step: two bodies approach each
    # other by the sum of their distances.
    others_way = world.bins.reach[2]

    train = bodies.train
    has_trains = train.shape[0] > 0

    for n in range(first, end):
        row = rows[n]
        # The head of a train also moves its trailers.
        if has_trains and (train[row, LEADER] >= 0 or train[row, FOLLOWER] >= 0):
            if train[row, LEADER] < 0:
                move_train(world, row, dt)
            continue

        disp[row, 0] = disp[row, 1] = disp[row, 2] = 0.0
        spin[row] = 0.0
        # Contacts of bodies with mass are solved in engine/dynamics.py.
        if state.control[row] != NO_CONTROL:
            continue

        # This body does not move, but other bodies may come nearer.
        if (
            vel[row, 0] == 0.0
            and vel[row, 1] == 0.0
            and vel[row, 2] == 0.0
            and not leads(bodies, row)
        ):
            stall[row] = 0
            bodies.leeway[row] -= others_way
        else:
            move_body(world, row, dt)


@inline_kernel
def place_body(
    bodies: Bodies, bins: Bins, row: int, x: float, y: float, th: float
) -> None:
    """Write the corners, the copy of the position and `placed` of a body that has moved.

    Parameters
    ----------
    bodies, bins : Bodies, Bins
        Bodies of the world. In-place: `world`, `placed`, `at` of the body.
    row : int
        Row of the body.
    x, y, th : float
        New pose of the body, m, m, rad.
    """
    placed, slot = bodies.placed, bins.slot[row]
    c, s = cosine_sine(th)
    v0, v1 = (
        bodies.vert_start[bodies.part_start[row]],
        bodies.vert_start[bodies.part_start[row + 1]],
    )
    place_corners(bodies.verts, v0, v1, x, y, c, s, bodies.world, v0)
    bins.at[slot, 0], bins.at[slot, 1] = x, y
    placed[row, 0], placed[row, 1], placed[row, 2], placed[row, 3], placed[row, 4] = (
        x,
        y,
        th,
        c,
        s,
    )


@merged_kernel
def train_touches(
    world: World, head: int, part: float, dx: float, dy: float, dth: float
) -> bool:
    """Return whether a body of a train touches something after a part of its motion.

    A body that touches something at its present pose does not count.

    Parameters
    ----------
    world : World
        Arrays of the world. The classes of the train in `Bins` are 0. Output:
        `Bodies.trail`, and corners of the train in `Bodies.world`.
    head : int
        Row of the head of the train.
    part : float
        Part of the motion, 0 … 1.
    dx, dy, dth : float
        Body twist of the head times dt, m, m, rad.
    """
    state, bodies = world.state, world.bodies
    pose, trail, train = state.pose, bodies.trail, bodies.train
    follow(bodies, pose, head, part * dx, part * dy, part * dth)
    c, s = cosine_sine(pose[head, 2])
    ax, ay = arc(part * dx, part * dy, part * dth)
    trail[head, 0], trail[head, 1], trail[head, 2] = (
        pose[head, 0] + c * ax - s * ay,
        pose[head, 1] + s * ax + c * ay,
        wrap(pose[head, 2] + part * dth),
    )
    row = head
    while row >= 0:
        if (
            int(state.mask[row]) & OBSTACLE
            and touches(world, pose, row, trail[row, 0], trail[row, 1], trail[row, 2])
            and not is_blocked(world, pose, row)
        ):
            return True
        row = train[row, FOLLOWER]

    return False


@merged_kernel
def free_fraction(world: World, row: int, dx: float, dy: float, dth: float) -> float:
    """Return the part of its displacement that a body of a train can move, 0 … 1.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: corners and contact of the body.
    row : int
        Row of the body.
    dx, dy, dth : float
        Displacement in the frame of the body, m, m, rad.
    """
    pose, bodies = world.state.pose, world.bodies
    x, y, c, s = (
        pose[row, 0],
        pose[row, 1],
        bodies.placed[row, 3],
        bodies.placed[row, 4],
    )
    ax, ay = arc(dx, dy, dth)
    to_x, to_y = x + c * ax - s * ay, y + s * ax + c * ay
    to_c, to_s = cosine_sine(wrap(pose[row, 2] + dth))
    v0, v1 = (
        bodies.vert_start[bodies.part_start[row]],
        bodies.vert_start[bodies.part_start[row + 1]],
    )
    place_corners(bodies.verts, v0, v1, to_x, to_y, to_c, to_s, bodies.world, v0)
    return travel(world, Sweep(row, x, y, c, s, dx, dy, dth, 0, 0), to_x, to_y)


@merged_kernel
def put_train(world: World, head: int, dx: float, dy: float, dth: float) -> None:
    """Write the poses and displacements of a train after its move.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: `pose` and `disp` of the train.
    head : int
        Row of the robot.
    dx, dy, dth : float
        Displacement of the robot in its frame, m, m, rad.
    """
    pose, disp, bodies = world.state.pose, world.state.disp, world.bodies
    train, trail = bodies.train, bodies.trail
    disp[head, 0], disp[head, 1], disp[head, 2] = dx, dy, dth
    ax, ay = arc(dx, dy, dth)
    c, s = bodies.placed[head, 3], bodies.placed[head, 4]
    follow(bodies, pose, head, dx, dy, dth)
    pose[head, 0], pose[head, 1], pose[head, 2] = (
        pose[head, 0] + c * ax - s * ay,
        pose[head, 1] + s * ax + c * ay,
        wrap(pose[head, 2] + dth),
    )
    row = train[head, FOLLOWER]
    while row >= 0:
        pose[row, 2] = trail[row, 2]
        disp[row, 0], disp[row, 1], disp[row, 2] = (
            trail[row, 3],
            trail[row, 4],
            trail[row, 5],
        )
        row = train[row, FOLLOWER]
    # Rounding is the same as in `place_trains`, so that a train at rest stays.
    couple(bodies, pose, head)


@merged_kernel
def end_train(world: World, head: int, moved: bool, stopped: bool) -> None:
    """Make the bodies of a train obstacles again, at the ends of their moves.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: rows of the train.
    head : int
        Row of the robot.
    moved : bool
        Whether the train should move in this step.
    stopped : bool
        Whether an obstacle or the limit of a hitch has stopped it.
    """
    state, bodies, bins = world.state, world.bodies, world.bins
    pose, vel, train = state.pose, state.vel, bodies.train
    row = head
    while row >= 0:
        bins.classes[bins.slot[row]] = state.mask[row]
        if stopped:
            state.stall[row] = 1
            vel[row, 0] = vel[row, 1] = vel[row, 2] = 0.0
            # The leeway at the end of the arc does not hold where the train has stopped.
            bodies.leeway[row] = 0.0
        if moved:
            place_body(bodies, bins, row, pose[row, 0], pose[row, 1], pose[row, 2])
        row = train[row, FOLLOWER]


@merged_kernel
def move_train(world: World, head: int, dt: float) -> None:
    """Move a robot and its trailers as far as all of them can.

    If an obstacle or the limit of a hitch stops a train, its bodies do not turn either.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: rows of the train.
    head : int
        Row of the robot.
    dt : float
        Duration of the step, s.
    """
    state, bodies, bins = world.state, world.bodies, world.bins
    pose, disp = state.pose, state.disp
    train, trail = bodies.train, bodies.trail
    dx, dy, dth = head_twist(state, bodies, head, dt)
    # Slip of the robot holds for its trailers, which follow it.
    if world.grid.zones.shape[0] > 0:
        grip = 1.0 - bodies.ground[head, SLIP]
        dx, dy, dth = dx * grip, dy * grip, dth * grip
    row = head
    while row >= 0:
        disp[row, 0] = disp[row, 1] = disp[row, 2] = state.spin[row] = 0.0
        state.stall[row] = 0
        # The bodies of a train do not stop each other: class 0 hides them.
        bins.classes[bins.slot[row]] = np.uint16(0)
        row = train[row, FOLLOWER]

    moves = dx != 0.0 or dy != 0.0 or dth != 0.0
    fraction = 1.0
    if moves:
        follow(bodies, pose, head, dx, dy, dth)
        trail[head, 3], trail[head, 4], trail[head, 5] = dx, dy, dth
    row = head
    while row >= 0:
        bx, by, bth = trail[row, 3], trail[row, 4], trail[row, 5]
        if (
            moves
            and int(state.mask[row]) & OBSTACLE
            and (abs(bx) > TRANSLATING * dt or abs(by) > TRANSLATING * dt)
        ):
            free = free_fraction(world, row, bx, by, bth)
            if free < fraction:
                fraction = free
                bins.met[head] = bins.met[row]
        else:
            state.contact[row] = np.uint64(0)
            bodies.leeway[row] -= bins.reach[2]
        row = train[row, FOLLOWER]

    # Parts of an arc of a trailer differ a little from its path: test the end itself.
    for _ in range(RETRIES):
        if fraction == 1.0 or not train_touches(world, head, fraction, dx, dy, dth):
            break
        fraction *= 0.5
    if fraction < 1.0 and train_touches(world, head, fraction, dx, dy, dth):
        fraction = 0.0

    if moves:
        fraction = unbent_fraction(world, head, fraction, dx, dy, dth)
        put_train(world, head, dx * fraction, dy * fraction, dth * fraction)

    end_train(world, head, moves, fraction < 1.0)


@merged_kernel
def unbent_fraction(
    world: World, head: int, fraction: float, dx: float, dy: float, dth: float
) -> float:
    """Return the part of a motion after which no hitch is bent beyond its limit.

    Parameters
    ----------
    world : World
        Arrays of the world. `Bodies.trail` is workspace.
    head : int
        Row of the head of the train.
    fraction : float
        Greatest part, 0 … 1.
    dx, dy, dth : float
        Body twist of the head times dt, m, m, rad.
    """
    bodies, pose = world.bodies, world.state.pose
    low, high, part = 0.0, fraction, fraction
    # Bisection: the first trial is the whole part, which nearly always is free.
    for n in range(BISECTIONS):
        follow(bodies, pose, head, part * dx, part * dy, part * dth)
        if jackknifes(bodies, pose, head, wrap(pose[head, 2] + part * dth)):
            high = part
        elif n == 0:
            return fraction
        else:
            low = part
        part = 0.5 * (low + high)

    return low
