"""Slots of the participants in a step of bodies with mass: values at the start of the step.

A slot is a row of `Workspace.slots` and `Workspace.flags`.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import (
    wrap,
)
from botyard.engine.kernels.participants import (
    stands_elsewhere,
    start_pose,
)
from botyard.engine.kernels.polygons import (
    length,
)
from botyard.engine.layout import (
    F8,
    I8,
    MOTORS,
)
from botyard.engine.masslayout import (
    A1,
    AD,
    ANGULAR_D,
    ANGULAR_DAMPING,
    ANGULAR_P,
    AP,
    BY_FORCE,
    CENTER_X,
    CENTER_Y,
    CONTROL,
    CORNERS,
    DA,
    DEPTH,
    DL,
    FEELS,
    FLOOR,
    FORCES,
    FRICTION,
    II,
    IM,
    INERTIA,
    JAMMED,
    JX,
    KG,
    KGM2,
    KIND,
    LD,
    LF,
    LINEAR_D,
    LINEAR_DAMPING,
    LINEAR_P,
    LP,
    LT,
    MASS,
    MORE_CORNERS,
    MORE_SLOTS,
    MOVER,
    MU,
    NOTHING,
    OK,
    OX,
    OY,
    QW,
    QX,
    QY,
    REACH,
    RESTITUTION,
    ROW,
    SPEED,
    STH,
    STIRS,
    SX,
    SY,
    TH,
    TRACTION,
    TTH,
    TX,
    TY,
    VX,
    VY,
    X_HI,
    X_LO,
    Y_HI,
    Y_LO,
    C,
    E,
    MassShapes,
    MassState,
    Moving,
    R,
    S,
    W,
    Workspace,
    X,
    Y,
)
from botyard.model.dynamics import (
    GRAVITY,
)
from botyard.numerics.elementary import (
    cosine_sine,
)


@kernel
def fill_slots(
    m: Moving, shapes: MassShapes, mass: MassState, work: Workspace, dt: float
) -> tuple[int, int, float]:
    """Number the slots in the order of `State.uid` and fill them.

    Parameters
    ----------
    m, shapes, mass
        See `step_masses`.
    work : Workspace
        Workspace of the step, with `kind`, and `slot_of` ≥ 0 for participants. Output:
        `slots`, `flags` and `slot_of`.
    dt : float
        Duration of the step, s.

    Returns
    -------
    tuple of (int, int, float)
        Number of slots, `OK` or the array that is too small, and the highest speed of a
        mover, m/s.
    """
    slots, flags, fastest = work.slots, work.flags, 0.0
    # The first two rows of corners are reserved for a wall.
    count, corners = np.int64(0), np.int64(2)
    for n in range(m.order.shape[0]):
        i = m.order[n]
        # A body with a negative slot does not take part in this step.
        if work.slot_of[i] < 0:
            continue
        # One slot is reserved for the walls.
        if count + 1 >= slots.shape[0]:
            return 0, MORE_SLOTS, 0.0
        size = (
            shapes.corner_start[shapes.piece_start[i + 1]]
            - shapes.corner_start[shapes.piece_start[i]]
        )
        if corners + size > work.corners.shape[0]:
            return 0, MORE_CORNERS, 0.0

        # Clear the slot, because the workspace holds values of an earlier step.
        for k in range(slots.shape[1]):
            slots[count, k] = 0.0
        flags[count, ROW], flags[count, KIND], flags[count, CORNERS] = (
            i,
            work.kind[i],
            corners,
        )
        (
            flags[count, CONTROL],
            flags[count, FEELS],
            flags[count, STIRS],
            flags[count, JAMMED],
        ) = (
            m.control[i],
            # Bit 0 of `feels` requests contact sectors. The solver ignores bit 1.
            int(m.feels[i]) & 1,
            0,
            -1,
        )
        work.slot_of[i], work.bits[count], slots[count, R] = (
            count,
            np.uint64(0),
            m.radius[i],
        )
        fill_common(slots, count, shapes.values, i)

        if work.kind[i] == MOVER:
            begin = start_pose(m.before, m.pose, mass.seen, m.held[i] == 1, i)
            # A body that was placed, is new, or has just become solid, wakes bodies
            # that it touches.
            put = stands_elsewhere(mass.seen, i, m.before) and m.held[i] == 0
            fill_mover(slots, flags, count, begin, m.pose, i, put, mass.depth[i], dt)
            fastest = max(fastest, slots[count, SPEED])
        else:
            fill_mass(
                slots,
                flags,
                count,
                shapes.values,
                m.before,
                m.before_vel,
                m.vel,
                m.demand,
                i,
                mass.seen,
                mass.floor,
            )

        corners += size
        count += 1

    # Fill the slot of the walls.
    for k in range(slots.shape[1]):
        slots[count, k] = 0.0
    # Friction and restitution of a contact are products, so that a factor of 1 keeps
    # the body's values.
    slots[count, MU] = slots[count, E] = 1.0
    flags[count, KIND] = NOTHING
    return int(count), OK, fastest


@merged_kernel
def fill_common(slots: F8, s: int, values: F8, i: int) -> None:
    """Write values that all slots have: friction, restitution, and empty bounds.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`. In-place.
    s : int
        Slot: row of `slots` and `flags`.
    values : (n, VALUES) float64
        `MassShapes.values`.
    i : int
        Row of the body.
    """
    slots[s, MU], slots[s, E] = values[i, FRICTION], values[i, RESTITUTION]
    slots[s, X_LO] = slots[s, Y_LO] = math.inf
    slots[s, X_HI] = slots[s, Y_HI] = -math.inf


@kernel
def fill_mover(
    slots: F8,
    flags: I8,
    s: int,
    begin: tuple[float, float, float],
    pose: F8,
    i: int,
    put: bool,
    depth: float,
    dt: float,
) -> None:
    """Fill the slot of a mover, which moves to its pose at constant velocity.

    Its inverse mass is 0, so that it cannot be pushed.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place.
    s : int
        Slot: row of `slots` and `flags`.
    begin : tuple of float
        Pose at the start of the step, see `start_pose`.
    pose : (n, 3) float64
        Poses after bodies without mass have moved: m, m, rad.
    i : int
        Row of the body.
    put : bool
        Whether the mover was placed from outside. Then it wakes bodies that it touches.
    depth : float
        `MassState.depth` of the body, m.
    dt : float
        Duration of the step, s.
    """
    slots[s, SX], slots[s, SY], slots[s, STH] = begin
    # Like walls, movers have the factor 1, which keeps the other body's friction and
    # restitution.
    slots[s, MU] = slots[s, E] = 1.0
    slots[s, TX], slots[s, TY], slots[s, TTH] = (
        pose[i, 0] - begin[0],
        pose[i, 1] - begin[1],
        wrap(pose[i, 2] - begin[2]),
    )
    slots[s, VX], slots[s, VY], slots[s, W] = (
        slots[s, TX] / dt,
        slots[s, TY] / dt,
        slots[s, TTH] / dt,
    )
    slots[s, SPEED] = (
        length(slots[s, VX], slots[s, VY]) + abs(slots[s, W]) * slots[s, R]
    )
    slots[s, DEPTH] = depth
    slots[s, X], slots[s, Y], slots[s, TH] = begin
    slots[s, C], slots[s, S] = cosine_sine(begin[2])
    flags[s, STIRS] = 1 if put or slots[s, SPEED] > 0.0 else 0


@kernel
def fill_mass(
    slots: F8,
    flags: I8,
    s: int,
    values: F8,
    before: F8,
    before_vel: F8,
    vel: F8,
    demand: F8,
    i: int,
    seen: F8,
    floor: F8,
) -> None:
    """Fill the slot of a body with mass.

    It gets pose and velocity of the centre of mass, masses, friction, damping, gains.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place.
    s : int
        Slot: row of `slots` and `flags`.
    values : (n, VALUES) float64
        `MassShapes.values`.
    before, before_vel : (n, 3) float64
        Poses, m, m, rad, and velocities in the bodies' frames before the step.
    vel, demand : (n, 3) float64
        Velocities that the motors demand, and `State.demand`.
    i : int
        Row of the body.
    seen, floor : (n, 3) float64
        Columns of `MassState`.
    """
    x, y, th = before[i, 0], before[i, 1], before[i, 2]
    c, sine = cosine_sine(th)
    slots[s, SX], slots[s, SY], slots[s, STH] = x, y, th
    slots[s, TH], slots[s, C], slots[s, S] = th, c, sine
    slots[s, OX], slots[s, OY] = values[i, CENTER_X], values[i, CENTER_Y]
    ax, ay = (
        c * slots[s, OX] - sine * slots[s, OY],
        sine * slots[s, OX] + c * slots[s, OY],
    )
    slots[s, X], slots[s, Y] = x + ax, y + ay

    # Only NaN differs from itself: it marks a new body.
    known = seen[i, 0] == seen[i, 0]
    # A body that was placed from outside is at rest.
    if not known or not stands_elsewhere(seen, i, before):
        w = before_vel[i, 2]
        slots[s, VX] = c * before_vel[i, 0] - sine * before_vel[i, 1] - w * ay
        slots[s, VY] = sine * before_vel[i, 0] + c * before_vel[i, 1] + w * ax
        slots[s, W] = w

    mass, inertia = values[i, MASS], values[i, INERTIA]
    slots[s, KG], slots[s, KGM2], slots[s, IM], slots[s, II] = (
        mass,
        inertia,
        1.0 / mass,
        1.0 / inertia,
    )
    slots[s, QX], slots[s, QY], slots[s, QW] = (
        mass * slots[s, VX],
        mass * slots[s, VY],
        inertia * slots[s, W],
    )
    motors = flags[s, CONTROL] == MOTORS

    for k in range(3):
        slots[s, A1 + k] = vel[i, k] if motors else demand[i, k]
        slots[s, JX + k] = floor[i, k]

    slots[s, LF] = values[i, TRACTION if motors else FLOOR] * mass * GRAVITY
    # Torque of friction on a base whose mean lever is `REACH`
    slots[s, LT] = slots[s, LF] * values[i, REACH]
    slots[s, DL], slots[s, DA] = (
        1.0 - values[i, LINEAR_DAMPING],
        1.0 - values[i, ANGULAR_DAMPING],
    )
    slots[s, LP], slots[s, LD], slots[s, AP], slots[s, AD] = (
        values[i, LINEAR_P],
        values[i, LINEAR_D],
        values[i, ANGULAR_P],
        values[i, ANGULAR_D],
    )
    flags[s, FORCES] = int(values[i, BY_FORCE])
