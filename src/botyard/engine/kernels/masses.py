"""Step of bodies with mass (dynamic bodies) in substeps.

Forces, motors and controllers act on them, and contacts keep them apart. The other
bodies have moved before, as if bodies with mass did not exist. Here they are *movers*
(kinematic bodies): they move along the same path again, at constant speed, and push. A
mover whose overlap with a stuck body keeps growing is *jammed*: it stays in place, and
is stalled. Allocates nothing; one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.commands import MAX_COORDINATE
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.broadphase import OBSTACLE
from botyard.engine.kernels.collide import SECTORS
from botyard.engine.kernels.contacts import (
    SLOP,
    Before,
    contact_velocity,
    find_body_contacts,
    find_islands,
    find_wall_contacts,
    is_pusher,
    prepare_impulses,
    solve_impulses,
)
from botyard.engine.kernels.jit import entry_kernel, kernel, merged_kernel
from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.neighbours import (
    find_pairs,
    find_walls,
    lists_are_valid,
    wake_touched,
)
from botyard.engine.kernels.polygons import length
from botyard.engine.layout import F8, I8, NO_BODY, U8, WALL
from botyard.engine.masslayout import (
    A1,
    A2,
    A3,
    AD,
    AGAINST,
    ANGULAR_D,
    ANGULAR_DAMPING,
    ANGULAR_P,
    AP,
    ASLEEP,
    AWAKE,
    AX,
    AY,
    BY_FORCE,
    CENTER_X,
    CENTER_Y,
    CONTROL,
    CORNERS,
    DA,
    DEEP,
    DEEPNESS,
    DEPTH,
    DL,
    FEELS,
    FLOOR,
    FORCE,
    FORCES,
    FRICTION,
    FT,
    FX,
    FY,
    GW,
    GX,
    GY,
    II,
    IM,
    INERTIA,
    ISLAND,
    JAMMED,
    JN,
    JT,
    JX,
    KG,
    KGM2,
    KIND,
    LD,
    LF,
    LIMIT,
    LINEAR_D,
    LINEAR_DAMPING,
    LINEAR_P,
    LIST_TH,
    LIST_X,
    LIST_Y,
    LOST,
    LOST_SOME,
    LP,
    LT,
    MASS,
    MORE_CORNERS,
    MORE_PAIRS,
    MORE_SLOTS,
    MORE_TOUCHES,
    MORE_WALLS,
    MOTORS,
    MOVER,
    MU,
    NOTHING,
    NX,
    NY,
    OK,
    OX,
    OY,
    POSE,
    PW,
    PX,
    PY,
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
    TWIST,
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
    Impulses,
    MassShapes,
    MassState,
    Moving,
    R,
    S,
    W,
    Walls,
    Workspace,
    X,
    Y,
)
from botyard.model.dynamics import GRAVITY, SUBSTEP
from botyard.numerics.elementary import atan2, cosine_sine, power, tan

MAX_SUBSTEPS = 1000
"""Highest number of substeps at any speed: very fast bodies may pass through things."""
JAM_DEPTH = 0.003
"""Overlap above which a mover is jammed, m.

The distance that it covers in 1.5 substeps is added. The overlap must also grow.
"""
MOVER_RANGE = 0.1
"""Distance from a body with mass within which movers take part in the step, m."""
STALL_RATIO = 0.1
"""Fraction of the demanded speed below which a driven body is stalled."""
MAX_DRAG = 1.0
"""Distance per step up to which a held body pushes things in its path, m.

A body that is moved farther is teleported.
"""
REST_DISTANCE = 1e-7
"""Displacement in a step below which a body is at rest, m and rad."""
REST_SPEED = 1e-6
"""Speed below which a body is at rest, m/s and rad/s: rounding after friction."""
MAX_SUBSTEP_TURN = 1e4
"""Turn in a substep above which a body is put back, rad: the solver loses precision."""
# `Visible.OBSTACLE` or `Visible.PUSHED`: kernels take plain numbers.
SOLID = OBSTACLE | 8


# -- Participants


@merged_kernel
def stands_elsewhere(row: F8, k: int, pose: F8) -> bool:
    """Return whether the pose of a body differs from `row`; NaN differs."""
    return not (
        row[k, 0] == pose[k, 0] and row[k, 1] == pose[k, 1] and row[k, 2] == pose[k, 2]
    )


@merged_kernel
def start_pose(
    before: F8, pose: F8, seen: F8, held: bool, k: int
) -> tuple[float, float, float]:
    """Return the pose of a mover at the start of the step.

    A held body is moved between two steps, so that it starts at the end of the last
    one.
    """
    if held and length(pose[k, 0] - seen[k, 0], pose[k, 1] - seen[k, 1]) < MAX_DRAG:
        return seen[k, 0], seen[k, 1], seen[k, 2]
    return before[k, 0], before[k, 1], before[k, 2]


@merged_kernel
def farthest_way(
    control: int,
    demand: F8,
    vel: F8,
    before_vel: F8,
    before: F8,
    k: int,
    mass: float,
    dt: float,
) -> float:
    """Return the greatest distance of a body with mass in this step, m, without pushes."""
    way = length(before_vel[k, 0], before_vel[k, 1]) * dt
    a, b = demand[k, 0], demand[k, 1]
    # As fast as its wheels
    if control == MOTORS:
        way += length(vel[k, 0], vel[k, 1]) * dt
    elif control == FORCE:
        # With the acceleration of the force
        way += length(a, b) / mass * dt * dt
    # At the set velocity
    elif control == TWIST:
        way += length(a, b) * dt
    elif control == POSE:
        # To the pose, and as far beyond it
        way += 2.0 * length(a - before[k, 0], b - before[k, 1])

    return way


@merged_kernel
def may_rest(control: int, demand: F8, vel: F8, k: int) -> bool:
    """Return whether nothing that drives a body demands motion."""
    if control == MOTORS:
        return vel[k, 0] == 0.0 and vel[k, 1] == 0.0 and vel[k, 2] == 0.0
    # The controller of a pose continues to hold its body there.
    return (
        control != POSE
        and demand[k, 0] == 0.0
        and demand[k, 1] == 0.0
        and demand[k, 2] == 0.0
    )


@kernel
def classify_rows(
    m: Moving, shapes: MassShapes, mass: MassState, work: Workspace, dt: float
) -> tuple[int, bool, bool, float, float]:
    """Write `Workspace.kind`, the role of each row in this step.

    Returns the number of bodies with mass, whether one is awake, whether another body
    has moved, the greatest distance of any body, m, and the allowed distance of a body
    with mass in a substep, m.
    """
    masses, awake, moved, far, thin = 0, False, False, 0.0, math.inf
    for i in range(m.pose.shape[0]):
        work.slot_of[i], work.kind[i] = -1, NOTHING
        heavy, in_hand = shapes.values[i, MASS] > 0.0, m.held[i] == 1
        # The holder moves it, as a mover: its own velocity is lost.
        if heavy and in_hand:
            m.vel[i, 0] = m.vel[i, 1] = m.vel[i, 2] = 0.0

        # A ghost, or a body in a gripper
        if int(m.mask[i]) & SOLID == 0:
            continue
        if heavy and not in_hand:
            masses += 1
            thin = min(thin, m.inner[i])
            still = (
                m.before_vel[i, 0] == 0.0
                and m.before_vel[i, 1] == 0.0
                and m.before_vel[i, 2] == 0.0
            )
            still = (
                still
                and mass.resting[i] == 1
                and not stands_elsewhere(mass.seen, i, m.before)
            )
            # It came to rest, and has not been moved or driven since: it sleeps until
            # it is touched.
            if still and may_rest(m.control[i], m.demand, m.vel, i):
                work.kind[i] = ASLEEP
                continue

            work.kind[i], awake = AWAKE, True
            far = max(
                far,
                farthest_way(
                    m.control[i],
                    m.demand,
                    m.vel,
                    m.before_vel,
                    m.before,
                    i,
                    shapes.values[i, MASS],
                    dt,
                ),
            )
        else:
            work.kind[i] = MOVER
            moved = moved or stands_elsewhere(mass.seen, i, m.pose)
            x, y, _ = start_pose(m.before, m.pose, mass.seen, in_hand, i)
            far = max(far, length(m.pose[i, 0] - x, m.pose[i, 1] - y))

    return masses, awake, moved, far, thin


@kernel
def choose_movers(m: Moving, mass: MassState, work: Workspace, far: float) -> bool:
    """Give slot 0 to bodies with mass and to movers near them, for the time being.

    Returns whether such a mover has moved.
    """
    moved = False
    for i in range(m.pose.shape[0]):
        # Movers take part only near bodies with mass.
        if work.kind[i] != AWAKE and work.kind[i] != ASLEEP:
            continue

        work.slot_of[i] = 0
        x, y = m.before[i, 0], m.before[i, 1]
        # A pushed body may move as far as its pusher, and a light one even twice as
        # far.
        near = m.radius[i] + MOVER_RANGE + 2.0 * far
        wide = near + m.bin_reach[0] + m.bin_reach[1]
        i0, i1 = bin_span(
            x - wide, x + wide, m.bin_frame[0], m.bin_frame[2], m.bin_shape[0]
        )
        j0, j1 = bin_span(
            y - wide, y + wide, m.bin_frame[1], m.bin_frame[2], m.bin_shape[1]
        )
        for j in range(j0, j1 + 1):
            for k in range(
                m.bin_start[j * m.bin_shape[0] + i0],
                m.bin_start[j * m.bin_shape[0] + i1 + 1] if i1 >= i0 else 0,
            ):
                row = m.bin_rows[k]
                # Slot 0: already found near another body.
                if work.kind[row] != MOVER or work.slot_of[row] == 0:
                    continue

                dx, dy, reach = (
                    m.bin_at[k, 0] - x,
                    m.bin_at[k, 1] - y,
                    near + far + m.bin_at[k, 2],
                )
                if dx * dx + dy * dy < reach * reach:
                    work.slot_of[row] = 0
                    moved = moved or stands_elsewhere(mass.seen, row, m.pose)

    return moved


@kernel
def fill_slots(
    m: Moving, shapes: MassShapes, mass: MassState, work: Workspace, dt: float
) -> tuple[int, int, float]:
    """Number the slots in the order of `State.uid` and fill them.

    Returns their count, the array without room, and the highest speed of a mover.
    """
    slots, flags, fastest = work.slots, work.flags, 0.0
    # The first two rows are for a wall.
    count, corners = np.int64(0), np.int64(2)
    for n in range(m.order.shape[0]):
        i = m.order[n]
        # It does not take part in this step.
        if work.slot_of[i] < 0:
            continue
        if count + 1 >= slots.shape[0]:
            return 0, MORE_SLOTS, 0.0
        size = (
            shapes.corner_start[shapes.piece_start[i + 1]]
            - shapes.corner_start[shapes.piece_start[i]]
        )
        if corners + size > work.corners.shape[0]:
            return 0, MORE_CORNERS, 0.0
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

    # Values of walls
    for k in range(slots.shape[1]):
        slots[count, k] = 0.0
    # Friction and restitution of a contact are products: a wall leaves the body's
    # values.
    slots[count, MU] = slots[count, E] = 1.0
    flags[count, KIND] = NOTHING
    return int(count), OK, fastest


@merged_kernel
def fill_common(slots: F8, s: int, values: F8, i: int) -> None:
    """Write values that all kinds of slots have.

    They are friction, restitution, and empty bounds.
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
    """Fill the slot of a mover.

    It moves from `begin` to its pose at constant velocity.

    Its inverse mass is 0, so that it cannot be pushed.
    """
    slots[s, SX], slots[s, SY], slots[s, STH] = begin
    # Like walls, movers leave the other body's friction and restitution.
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
    # Not NaN
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


# -- Substep


@merged_kernel
def pd_force(
    p: float, d: float, error: float, velocity: float, mass: float, h: float
) -> float:
    """Return force or torque of a stable PD controller, see `Gains.force`."""
    return (p * error - (d + h * p) * velocity) / (1.0 + h * (d + h * p) / mass)


@merged_kernel
def pd_speed(p: float, d: float, error: float, h: float) -> float:
    """Return the speed of a PD controller with velocity output, see `Gains.speed`."""
    return p * error / (1.0 + d + h * p)


@kernel
def apply_demands(slots: F8, flags: I8, count: int, h: float) -> None:
    """Apply forces, wheels, controllers and damping in a substep."""
    for s in range(count):
        if flags[s, KIND] != AWAKE:
            continue
        c, sine, control = slots[s, C], slots[s, S], flags[s, CONTROL]
        a1, a2, a3 = slots[s, A1], slots[s, A2], slots[s, A3]
        # From the body's origin, to which demands refer, to its centre of mass
        ax, ay = (
            c * slots[s, OX] - sine * slots[s, OY],
            sine * slots[s, OX] + c * slots[s, OY],
        )
        slots[s, FX] = slots[s, FY] = slots[s, FT] = 0.0
        # The demand of its wheels on the floor, see `solve_floor_friction`
        if control == MOTORS:
            slots[s, GX], slots[s, GY], slots[s, GW] = (
                c * a1 - sine * a2 - a3 * ay,
                sine * a1 + c * a2 + a3 * ax,
                a3,
            )
        elif control == FORCE:
            slots[s, FX], slots[s, FY], slots[s, FT] = a1, a2, a3
        elif control == TWIST:
            slots[s, VX], slots[s, VY], slots[s, W] = a1 - a3 * ay, a2 + a3 * ax, a3
        elif control == POSE:
            x, y, th = (
                a1 - (slots[s, X] - ax),
                a2 - (slots[s, Y] - ay),
                wrap(a3 - slots[s, TH]),
            )
            p, d, ap, ad, w = (
                slots[s, LP],
                slots[s, LD],
                slots[s, AP],
                slots[s, AD],
                slots[s, W],
            )
            # The controller outputs forces: obstacles may hold the body up.
            if flags[s, FORCES]:
                slots[s, FX] = pd_force(p, d, x, slots[s, VX] + w * ay, slots[s, KG], h)
                slots[s, FY] = pd_force(p, d, y, slots[s, VY] - w * ax, slots[s, KG], h)
                slots[s, FT] = pd_force(ap, ad, th, w, slots[s, KGM2], h)
            else:
                # The controller sets the velocity of any mass.
                w = pd_speed(ap, ad, th, h)
                slots[s, VX], slots[s, VY], slots[s, W] = (
                    pd_speed(p, d, x, h) - w * ay,
                    pd_speed(p, d, y, h) + w * ax,
                    w,
                )

        # Powers are expensive, and most bodies have no damping.
        if slots[s, DL] < 1.0 or slots[s, DA] < 1.0:
            linear = power(slots[s, DL], h)
            slots[s, VX], slots[s, VY], slots[s, W] = (
                slots[s, VX] * linear,
                slots[s, VY] * linear,
                slots[s, W] * power(slots[s, DA], h),
            )


@kernel
def place(
    slots: F8,
    flags: I8,
    s: int,
    piece_start: I8,
    corner_start: I8,
    local: F8,
    corners: F8,
) -> None:
    """Write the corners of a slot in the world, their normals, and its bounds."""
    row = flags[s, ROW]
    first, last, off = (
        corner_start[piece_start[row]],
        corner_start[piece_start[row + 1]],
        flags[s, CORNERS],
    )
    c, sine = cosine_sine(slots[s, TH])
    slots[s, C], slots[s, S] = c, sine
    x = slots[s, X] - (c * slots[s, OX] - sine * slots[s, OY])
    y = slots[s, Y] - (sine * slots[s, OX] + c * slots[s, OY])
    x_lo = y_lo = math.inf
    x_hi = y_hi = -math.inf
    for k in range(first, last):
        v = off + k - first
        px, py = (
            x + c * local[k, 0] - sine * local[k, 1],
            y + sine * local[k, 0] + c * local[k, 1],
        )
        corners[v, 0], corners[v, 1] = px, py
        corners[v, 2], corners[v, 3] = (
            c * local[k, 2] - sine * local[k, 3],
            sine * local[k, 2] + c * local[k, 3],
        )
        x_lo, x_hi, y_lo, y_hi = (
            min(x_lo, px),
            max(x_hi, px),
            min(y_lo, py),
            max(y_hi, py),
        )

    slots[s, X_LO], slots[s, X_HI], slots[s, Y_LO], slots[s, Y_HI] = (
        x_lo,
        x_hi,
        y_lo,
        y_hi,
    )


@merged_kernel
def place_mover(slots: F8, s: int, part: float) -> None:
    """Put a mover at its place after this part of the step."""
    slots[s, X], slots[s, Y] = (
        slots[s, SX] + part * slots[s, TX],
        slots[s, SY] + part * slots[s, TY],
    )
    slots[s, TH] = slots[s, STH] + part * slots[s, TTH]


@kernel
def integrate(
    slots: F8,
    flags: I8,
    count: int,
    h: float,
    part: float,
    piece_start: I8,
    corner_start: I8,
    local: F8,
    corners: F8,
) -> None:
    """Move all slots by a substep with their velocities.

    `part` of the step is over then.
    """
    for s in range(count):
        kind = flags[s, KIND]
        if kind == AWAKE:
            x, y, th = (
                slots[s, X] + slots[s, VX] * h,
                slots[s, Y] + slots[s, VY] * h,
                slots[s, TH] + slots[s, W] * h,
            )
            if (
                abs(x) <= MAX_COORDINATE
                and abs(y) <= MAX_COORDINATE
                and abs(slots[s, W] * h) <= MAX_SUBSTEP_TURN
            ):
                slots[s, X], slots[s, Y], slots[s, TH] = (
                    x,
                    y,
                    wrap(th) if abs(th) > MAX_SUBSTEP_TURN else th,
                )
            # Also for NaN
            else:
                put_back(slots, flags, s)
        elif kind == MOVER and slots[s, SPEED] > 0.0:
            if flags[s, JAMMED] < 0:
                place_mover(slots, s, part)
        else:
            # It stands: its corners have not moved.
            continue

        place(slots, flags, s, piece_start, corner_start, local, corners)


@merged_kernel
def put_back(slots: F8, flags: I8, s: int) -> None:
    """Put a body back to its start of the step, at rest for the remainder."""
    flags[s, KIND] = LOST
    slots[s, TH] = slots[s, STH]
    c, sine = cosine_sine(slots[s, STH])
    slots[s, X] = slots[s, SX] + c * slots[s, OX] - sine * slots[s, OY]
    slots[s, Y] = slots[s, SY] + sine * slots[s, OX] + c * slots[s, OY]
    slots[s, VX] = slots[s, VY] = slots[s, W] = slots[s, PX] = slots[s, PY] = slots[
        s, PW
    ] = 0.0
    # Impulses do not move it.
    slots[s, IM] = slots[s, II] = 0.0


@merged_kernel
def note_bearing(slots: F8, flags: I8, bits: U8, s: int, x: float, y: float) -> None:
    """Note the bearing from which a slot is touched, in the form of `State.contact`.

    `x`, `y` start at its centre of mass, m.
    """
    # Otherwise the bearing has no reader, and an arctangent is expensive.
    if flags[s, FEELS]:
        c, sine = slots[s, C], slots[s, S]
        x, y = (
            x + c * slots[s, OX] - sine * slots[s, OY],
            y + sine * slots[s, OX] + c * slots[s, OY],
        )
        bearing = atan2(c * y - sine * x, c * x + sine * y)
        bits[s] |= np.uint64(1) << np.uint64(
            int(math.floor(bearing / (2.0 * math.pi) * SECTORS)) % SECTORS
        )


@merged_kernel
def moves_into(slots: F8, s: int, touch: F8, t: int, side: int) -> bool:
    """Return whether a slot of a contact moves into the other one.

    `side` 0 selects the first slot. The other one is taken as standing still.
    """
    vx, vy = contact_velocity(slots, s, touch, t, side)
    return (1.0 - 2.0 * side) * (vx * touch[t, NX] + vy * touch[t, NY]) > 0.0


@kernel
def jam_movers(
    slots: F8,
    flags: I8,
    count: int,
    touch: F8,
    ends: I8,
    touches: int,
    k: int,
    substeps: int,
) -> None:
    """Stop movers that only press into things that do not yield.

    A turning mover moves in at one contact and out at another contact of the same pair.
    So the deepest contact of a pair counts as soon as the mover moves in at one of
    them. A mover that moves out at all of them is set free. A row of bodies spreads its
    overlap over all contacts, so that the deepest overlap of the island counts if the
    mover presses.
    """
    for s in range(count):
        if flags[s, KIND] == MOVER:
            slots[s, DEEP] = 0.0

    first = 0
    while first < touches:
        last = first + 1
        while (
            last < touches
            and ends[last, 0] == ends[first, 0]
            and ends[last, 1] == ends[first, 1]
        ):
            last += 1

        for side in range(2):
            s, other = ends[first, side], ends[first, 1 - side]
            if not is_pusher(slots, flags, s) or flags[other, KIND] != AWAKE:
                continue
            enters, deep = False, 0.0
            for t in range(first, last):
                enters |= moves_into(slots, s, touch, t, side)
                deep = max(deep, touch[t, DEEPNESS])

            # It presses if the contact is deeper than a resting one, and deeper than a
            # substep explains unless the mover was jammed before.
            if deep > (
                SLOP
                if slots[s, DEPTH] >= JAM_DEPTH
                else slots[s, LIMIT] - JAM_DEPTH + SLOP
            ):
                deep = max(deep, slots[flags[other, ISLAND], DEEP])

            if enters and deep > slots[s, DEEP]:
                slots[s, DEEP], flags[s, AGAINST] = deep, other

        first = last

    for s in range(count):
        if is_pusher(slots, flags, s):
            # Deeper than a substep explains, and deeper than before: the pushed body
            # does not yield.
            if slots[s, DEEP] > slots[s, LIMIT] and slots[s, DEEP] > slots[s, DEPTH]:
                flags[s, JAMMED], slots[s, DEPTH] = k, max(slots[s, DEPTH], JAM_DEPTH)
                place_mover(slots, s, k / substeps)
                slots[s, VX] = slots[s, VY] = slots[s, W] = 0.0
            else:
                slots[s, DEPTH] = slots[s, DEEP]


@kernel
def note_contacts(
    slots: F8, flags: I8, bits: U8, count: int, touch: F8, ends: I8, touches: int
) -> None:
    """Note the touched sectors of all slots in this substep."""
    for s in range(count):
        # A jammed mover keeps the sectors of that moment.
        if flags[s, KIND] != MOVER or flags[s, JAMMED] < 0:
            bits[s] = np.uint64(0)

    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            # Walls, standing movers, and movers jammed before feel nothing.
            if s < count and (flags[s, KIND] != MOVER or is_pusher(slots, flags, s)):
                note_bearing(
                    slots,
                    flags,
                    bits,
                    s,
                    touch[t, AX + 2 * side],
                    touch[t, AY + 2 * side],
                )


# -- End of a step


@kernel
def end_mass(
    slots: F8,
    flags: I8,
    s: int,
    pose: F8,
    vel: F8,
    disp: F8,
    i: int,
    drives: bool,
    mass: MassState,
    dt: float,
) -> bool:
    """Write pose, velocity, displacement and wrench of a body with mass.

    Returns whether it is stalled.
    """
    # After friction the velocity is rounding, with which it would never come to rest.
    if (
        slots[s, VX] * slots[s, VX] + slots[s, VY] * slots[s, VY]
        <= REST_SPEED * REST_SPEED
        and abs(slots[s, W]) <= REST_SPEED
    ):
        slots[s, VX] = slots[s, VY] = slots[s, W] = 0.0

    w = slots[s, W]
    th = wrap(slots[s, TH])
    c, sine = cosine_sine(th)
    ax, ay = (
        c * slots[s, OX] - sine * slots[s, OY],
        sine * slots[s, OX] + c * slots[s, OY],
    )
    x, y, turn = slots[s, X] - ax, slots[s, Y] - ay, wrap(th - slots[s, STH])
    dx, dy = x - slots[s, SX], y - slots[s, SY]
    way = length(dx, dy) + abs(turn)
    at_rest = (
        slots[s, VX] == 0.0 and slots[s, VY] == 0.0 and w == 0.0 and way < REST_DISTANCE
    )
    mass.resting[i] = 1 if at_rest and flags[s, KIND] != LOST else 0
    # A body that has not moved keeps its old pose: conversion to the centre of mass and
    # back would change its last bits.
    if flags[s, KIND] == LOST or way == 0.0:
        x, y, th = slots[s, SX], slots[s, SY], slots[s, STH]
    pose[i, 0], pose[i, 1], pose[i, 2] = x, y, th
    vx, vy = slots[s, VX] + w * ay, slots[s, VY] - w * ax
    vel[i, 0], vel[i, 1], vel[i, 2] = c * vx + sine * vy, c * vy - sine * vx, w
    mass.wrench[i, 0] = (slots[s, KG] * slots[s, VX] - slots[s, QX]) / dt
    mass.wrench[i, 1] = (slots[s, KG] * slots[s, VY] - slots[s, QY]) / dt
    mass.wrench[i, 2] = (slots[s, KGM2] * w - slots[s, QW]) / dt
    for k in range(3):
        mass.floor[i, k] = slots[s, JX + k]
    # Without a drive there are no odometry and no motors to stall.
    if not drives:
        return False
    # The twist that leads there: the logarithm of SE(2), see `geometry.log`.
    c, sine = cosine_sine(slots[s, STH])
    along, across, half = c * dx + sine * dy, c * dy - sine * dx, 0.5 * turn
    # half·cot(half), by its series near 0
    cot = 1.0 - half * half / 3.0 if abs(half) < 1e-4 else half / tan(half)
    disp[i, 0], disp[i, 1], disp[i, 2] = (
        cot * along + half * across,
        cot * across - half * along,
        turn,
    )
    # Driven from outside: only motors stall.
    if flags[s, CONTROL] != MOTORS:
        return False
    wanted = length(slots[s, A1], slots[s, A2])
    return wanted > 1e-3 and length(vx, vy) < STALL_RATIO * wanted


@merged_kernel
def hardest_touch(touch: F8, ends: I8, touches: int, s: int, count: int) -> int:
    """Return the slot that presses hardest on a slot, `count` for a wall, −1 for none."""
    found, hardest = -1, 0.0
    for t in range(touches):
        if (ends[t, 0] == s or ends[t, 1] == s) and touch[t, JN] > hardest:
            found, hardest = ends[t, 0] + ends[t, 1] - s, touch[t, JN]

    return min(found, count)


@kernel
def end_step(
    m: Moving,
    mass: MassState,
    work: Workspace,
    count: int,
    touches: int,
    substeps: int,
    dt: float,
) -> int:
    """Write the results of all participants; return `OK`, or `LOST_SOME`."""
    slots, flags, bits, answer = work.slots, work.flags, work.bits, OK
    for s in range(count):
        i, kind = flags[s, ROW], flags[s, KIND]
        if kind == MOVER:
            k = flags[s, JAMMED]
            # It has moved only this far: odometry and sensors must not see more.
            if k >= 0:
                m.pose[i, 0], m.pose[i, 1], m.pose[i, 2] = (
                    slots[s, X],
                    slots[s, Y],
                    wrap(slots[s, TH]),
                )
                part = k / substeps
                for axis in range(3):
                    m.disp[i, axis] *= part
                m.spin[i] *= part
                m.vel[i, 0] = m.vel[i, 1] = 0.0
                m.stall[i] = 1
                if int(m.feels[i]) & 2:
                    m.bin_met[i] = flags[flags[s, AGAINST], ROW]

            mass.depth[i] = slots[s, DEPTH]
            m.contact[i] |= bits[s]
        elif kind == ASLEEP:
            keep_resting(m, mass, i)
        else:
            if kind == LOST:
                answer = LOST_SOME
            m.stall[i] = (
                1
                if end_mass(
                    slots, flags, s, m.pose, m.vel, m.disp, i, m.drive[i] != 0, mass, dt
                )
                else 0
            )
            m.contact[i] = bits[s] if m.drive[i] != 0 else np.uint64(0)
            if m.stall[i] == 1 and int(m.feels[i]) & 2:
                other = hardest_touch(work.touch, work.ends, touches, s, count)
                m.bin_met[i] = (
                    NO_BODY
                    if other < 0
                    else WALL
                    if other == count
                    else flags[other, ROW]
                )

    return answer


@merged_kernel
def keep_resting(m: Moving, mass: MassState, i: int) -> None:
    """Clear velocity, wrench and stall of a body with mass that slept through the step."""
    m.stall[i] = 0
    for k in range(3):
        m.vel[i, k] = mass.wrench[i, k] = mass.floor[i, k] = 0.0


@kernel
def end_rows(m: Moving, mass: MassState, work: Workspace) -> None:
    """Write the poses of all bodies to `mass`, and clear values of other roles."""
    for i in range(m.pose.shape[0]):
        there = work.kind[i] != NOTHING
        # Not a mover, or not near a body with mass
        if work.kind[i] != MOVER or work.slot_of[i] < 0:
            mass.depth[i] = 0.0

        # A body with mass may be held.
        if not there or work.kind[i] == MOVER:
            mass.resting[i] = 0
            for k in range(3):
                mass.wrench[i, k] = mass.floor[i, k] = 0.0

        for k in range(3):
            mass.seen[i, k] = m.pose[i, k] if there else math.nan


@merged_kernel
def make_lists(walls: Walls, work: Workspace, count: int) -> tuple[int, int]:
    """List the pairs of slots and the walls that are near each other now.

    Returns the number of pairs, and the array without room.
    """
    slots = work.slots
    pairs = find_pairs(
        slots, work.flags, count, work.rank, work.item, work.pair, work.pair_item
    )
    if pairs < 0:
        return 0, MORE_PAIRS
    if not find_walls(walls, work, count):
        return 0, MORE_WALLS
    for s in range(count):
        slots[s, LIST_X], slots[s, LIST_Y], slots[s, LIST_TH] = (
            slots[s, X],
            slots[s, Y],
            slots[s, TH],
        )

    return pairs, OK


@merged_kernel
def find_contacts(
    work: Workspace, shapes: MassShapes, uid: U8, count: int, pairs: int, before: Before
) -> int:
    """Write all contacts of bodies, then all contacts with walls.

    Returns their count, or −1 without room for all.
    """
    touches, o = find_body_contacts(work, shapes, uid, count, pairs, before)
    if touches < 0:
        return -1
    return find_wall_contacts(work, shapes, uid, count, touches, before, o)


@merged_kernel
def recall_impulses(table: Impulses, work: Workspace) -> None:
    """Copy the contacts of the last step for warm starting of the first substep."""
    for t in range(table.size[0]):
        for k in range(3):
            work.old_key[t, k] = table.key[t, k]
        work.old[t, 0], work.old[t, 1] = table.impulse[t, 0], table.impulse[t, 1]


@merged_kernel
def keep_impulses(key: U8, impulse: F8, work: Workspace, touches: int) -> None:
    """Copy keys and impulses of all contacts for the next substep or step."""
    for t in range(touches):
        for k in range(3):
            key[t, k] = work.key[t, k]
        impulse[t, 0], impulse[t, 1] = work.touch[t, JN], work.touch[t, JT]


@kernel
def run_substeps(
    m: Moving,
    walls: Walls,
    shapes: MassShapes,
    table: Impulses,
    work: Workspace,
    count: int,
    substeps: int,
    dt: float,
) -> int:
    """Run all substeps in the workspace; return the array without room, or `OK`.

    Each substep has drives, new poses, contacts there (broad phase, narrow phase), and
    impulses.
    """
    slots, flags, corners, touch, ends = (
        work.slots,
        work.flags,
        work.corners,
        work.touch,
        work.ends,
    )
    piece_start, corner_start, local = (
        shapes.piece_start,
        shapes.corner_start,
        shapes.corners,
    )
    h, last_h, last_touches = dt / substeps, table.span[0], table.size[0]
    pairs, touches = 0, 0
    recall_impulses(table, work)
    for s in range(count):
        # No lists yet
        slots[s, LIST_X] = math.inf
        slots[s, LIMIT] = JAM_DEPTH + 1.5 * slots[s, SPEED] * h
        place(slots, flags, s, piece_start, corner_start, local, corners)

    for k in range(substeps):
        apply_demands(slots, flags, count, h)
        integrate(
            slots,
            flags,
            count,
            h,
            (k + 1) / substeps,
            piece_start,
            corner_start,
            local,
            corners,
        )
        # Lists hold for several substeps.
        if not lists_are_valid(slots, flags, count):
            pairs, lack = make_lists(walls, work, count)
            if lack != OK:
                return lack

        wake_touched(slots, flags, count, work.pair, pairs)
        # An impulse is a force times the substep, whose length may have changed.
        scale = h / last_h if last_h > 0.0 else 0.0
        touches = find_contacts(
            work, shapes, m.uid, count, pairs, Before(last_touches, scale)
        )
        if touches < 0:
            return MORE_TOUCHES
        note_contacts(slots, flags, work.bits, count, touch, ends, touches)
        pushed, pinched = find_islands(slots, flags, touch, ends, touches)
        # Before the impulses: a body that does not yield must never get the speed of a
        # mover that is stopped.
        if pushed:
            jam_movers(slots, flags, count, touch, ends, touches, k, substeps)
        prepare_impulses(slots, flags, count, touch, ends, touches, h, scale, pinched)
        solve_impulses(slots, flags, count, touch, ends, touches, h, pinched)
        last_h, last_touches = h, touches
        keep_impulses(work.old_key, work.old, work, touches)

    table.size[0], table.span[0] = touches, h
    keep_impulses(table.key, table.impulse, work, touches)
    return OK


@kernel
def step_masses(
    m: Moving,
    walls: Walls,
    shapes: MassShapes,
    mass: MassState,
    table: Impulses,
    work: Workspace,
    dt: float,
) -> int:
    """Move all bodies with mass by `dt` s.

    Movers that could not push them are set back.

    The other bodies have moved before. Writes `m`, `mass` and `table`. Returns `OK`,
    `LOST_SOME`, or the array of `work` without room (`MORE_SLOTS` …). Nothing has
    changed then, and the caller must call again with more room.
    """
    masses, awake, moved, far, thin = classify_rows(m, shapes, mass, work, dt)
    busy = masses > 0 and (awake or moved)
    if busy:
        near = choose_movers(m, mass, work, far)
        busy = awake or near

    # All bodies with mass are at rest, and no mover comes near them.
    if not busy:
        for i in range(m.pose.shape[0]):
            if work.kind[i] == ASLEEP:
                keep_resting(m, mass, i)

        # Contacts of sleeping bodies are found anew when they wake.
        table.size[0] = 0
        end_rows(m, mass, work)
        return OK

    count, lack, fastest = fill_slots(m, shapes, mass, work, dt)
    if lack != OK:
        return lack
    # Substeps are so short that nothing passes through anything in one.
    way = fastest * dt
    for i in range(m.pose.shape[0]):
        if work.kind[i] == AWAKE:
            way = max(
                way,
                farthest_way(
                    m.control[i],
                    m.demand,
                    m.vel,
                    m.before_vel,
                    m.before,
                    i,
                    shapes.values[i, MASS],
                    dt,
                ),
            )

    substeps = int(
        min(
            max(math.ceil(dt / SUBSTEP - 1e-9), math.ceil(way / thin)),
            float(MAX_SUBSTEPS),
        )
    )
    lack = run_substeps(m, walls, shapes, table, work, count, max(substeps, 1), dt)
    if lack != OK:
        return lack
    answer = end_step(m, mass, work, count, table.size[0], max(substeps, 1), dt)
    end_rows(m, mass, work)
    return answer


@entry_kernel
def move_masses(
    m: Moving,
    walls: Walls,
    shapes: MassShapes,
    mass: MassState,
    table: Impulses,
    work: Workspace,
    dt: float,
) -> int:
    """Run `step_masses`, for calls from Python."""
    return step_masses(m, walls, shapes, mass, table, work, dt)
