"""A step of bodies with mass (dynamic bodies): substeps in which forces, motors and
controllers act on them and contacts keep them apart.

The others have moved before, as if those with mass were not there; here they are
*movers* (kinematic bodies): they go the same way again, evenly, and push. A mover whose
overlap with something that is stuck keeps growing is *jammed*: it stays where it was,
and is stalled. Allocates nothing; one thread.
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
"""More are not made, whatever the speeds: beyond that fast bodies may pass through
things.
"""
JAM_DEPTH = 0.003
"""A mover that overlaps something with mass by more than this, m, plus what it covers
in 1.5 substeps, and more than before, is jammed.
"""
MOVER_RANGE = 0.1
"""Movers that come as near as this to a body with mass take part in the step, m."""
STALL_RATIO = 0.1
"""A driven body is stalled when it goes slower than this part of what its motors want.
"""
MAX_DRAG = 1.0
"""A body that a hand moves by less than this in a step, m, pushes what is in its way;
one that it moves farther is teleported.
"""
REST_DISTANCE = 1e-7
"""A body that moves less in a step, m and rad, is at rest."""
REST_SPEED = 1e-6
"""Slower than this is at rest, m/s and rad/s: what friction leaves of a velocity is
rounding.
"""
MAX_SUBSTEP_TURN = 1e4
"""A body that turns farther in a substep, rad, is beyond the solver's numbers: it is
put back.
"""
SOLID = OBSTACLE | 8  # Visible.PUSHED


# -- who takes part


@merged_kernel
def stands_elsewhere(row: F8, k: int, pose: F8) -> bool:
    """Whether a body stands elsewhere than `row` says; NaN is elsewhere."""
    return not (
        row[k, 0] == pose[k, 0] and row[k, 1] == pose[k, 1] and row[k, 2] == pose[k, 2]
    )


@merged_kernel
def start_pose(
    before: F8, pose: F8, seen: F8, held: bool, k: int
) -> tuple[float, float, float]:
    """Where a mover was at the beginning of the step: one in a hand is moved between
    two steps, so it was where the last one ended.
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
    """Greatest distance that a body with mass may travel in this step, m, if nobody
    pushes it.
    """
    way = length(before_vel[k, 0], before_vel[k, 1]) * dt
    a, b = demand[k, 0], demand[k, 1]
    if control == MOTORS:  # as fast as its wheels
        way += length(vel[k, 0], vel[k, 1]) * dt
    elif control == FORCE:
        # at the acceleration that the force gives
        way += length(a, b) / mass * dt * dt
    elif control == TWIST:  # at the velocity that is set
        way += length(a, b) * dt
    elif control == POSE:
        # to the pose, and as far beyond it
        way += 2.0 * length(a - before[k, 0], b - before[k, 1])

    return way


@merged_kernel
def may_rest(control: int, demand: F8, vel: F8, k: int) -> bool:
    """Whether nothing that drives a body wants it to move."""
    if control == MOTORS:
        return vel[k, 0] == 0.0 and vel[k, 1] == 0.0 and vel[k, 2] == 0.0
    # the controller of a pose goes on holding its body there
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
    """Write `Workspace.kind`: what each row is in this step.

    Returns how many bodies with mass there are, whether one is awake, whether another
    body has moved, the farthest way of any body, m, and how far a body with mass may go
    in a substep, m.
    """
    masses, awake, moved, far, thin = 0, False, False, 0.0, math.inf
    for i in range(m.pose.shape[0]):
        work.slot_of[i], work.kind[i] = -1, NOTHING
        heavy, in_hand = shapes.values[i, MASS] > 0.0, m.held[i] == 1
        if (
            heavy and in_hand
        ):  # the hand moves it, as a mover: what it had of velocity is gone
            m.vel[i, 0] = m.vel[i, 1] = m.vel[i, 2] = 0.0

        if int(m.mask[i]) & SOLID == 0:  # a ghost, or in a gripper
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
            # it came to rest, and nobody has put it elsewhere since or drives it: it
            # sleeps until it is touched
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
    """Give the movers near bodies with mass, and those bodies, the slot 0 for the time
    being. Returns whether such a mover has moved.
    """
    moved = False
    for i in range(m.pose.shape[0]):
        if (
            work.kind[i] != AWAKE and work.kind[i] != ASLEEP
        ):  # movers take part only near bodies with mass
            continue

        work.slot_of[i] = 0
        x, y = m.before[i, 0], m.before[i, 1]
        # what is pushed may go as far as what pushes it, and something light even twice
        # as far
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
                if (
                    work.kind[row] != MOVER or work.slot_of[row] == 0
                ):  # slot 0: found before, beside another body
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

    Returns how many there are, what there is no room for, and the greatest speed of a
    mover.
    """
    slots, flags, fastest = work.slots, work.flags, 0.0
    # the first two rows are for a wall
    count, corners = np.int64(0), np.int64(2)
    for n in range(m.order.shape[0]):
        i = m.order[n]
        if work.slot_of[i] < 0:  # it takes no part in this step
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
            # one that was put there, is new, or has just become solid, wakes what it
            # touches
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

    for k in range(slots.shape[1]):  # what walls are
        slots[count, k] = 0.0
    slots[count, MU] = slots[count, E] = 1.0
    flags[count, KIND] = NOTHING
    return int(count), OK, fastest


@merged_kernel
def fill_common(slots: F8, s: int, values: F8, i: int) -> None:
    """Write what slots of all kinds have: friction, restitution, and bounds that hold
    nothing yet.
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
    """Fill the slot of a mover: it goes from `begin` to its pose at a constant
    velocity; its inverse mass is 0, so nothing pushes it.
    """
    slots[s, SX], slots[s, SY], slots[s, STH] = begin
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
    """Fill the slot of a body with mass: pose and velocity of its centre of mass,
    masses, friction, damping, gains.
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
    known = seen[i, 0] == seen[i, 0]  # not NaN
    if not known or not stands_elsewhere(
        seen, i, before
    ):  # what somebody has put elsewhere is at rest
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


# -- a substep


@merged_kernel
def pd_force(
    p: float, d: float, error: float, velocity: float, mass: float, h: float
) -> float:
    """Force or torque of a stable PD controller, see `Gains.force`."""
    return (p * error - (d + h * p) * velocity) / (1.0 + h * (d + h * p) / mass)


@merged_kernel
def pd_speed(p: float, d: float, error: float, h: float) -> float:
    """Speed that a PD controller with a velocity as its output asks for, see
    `Gains.speed`.
    """
    return p * error / (1.0 + d + h * p)


@kernel
def apply_demands(slots: F8, flags: I8, count: int, h: float) -> None:
    """Apply to bodies what drives them in a substep (forces, wheels, controllers), and
    damping.
    """
    for s in range(count):
        if flags[s, KIND] != AWAKE:
            continue
        c, sine, control = slots[s, C], slots[s, S], flags[s, CONTROL]
        a1, a2, a3 = slots[s, A1], slots[s, A2], slots[s, A3]
        # from the body's origin, of which demands tell, to its centre of mass
        ax, ay = (
            c * slots[s, OX] - sine * slots[s, OY],
            sine * slots[s, OX] + c * slots[s, OY],
        )
        slots[s, FX] = slots[s, FY] = slots[s, FT] = 0.0
        if (
            control == MOTORS
        ):  # what its wheels demand of the floor, see `solve_floor_friction`
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
            if flags[
                s, FORCES
            ]:  # the controller pushes: what is in its way may hold the body up
                slots[s, FX] = pd_force(p, d, x, slots[s, VX] + w * ay, slots[s, KG], h)
                slots[s, FY] = pd_force(p, d, y, slots[s, VY] - w * ax, slots[s, KG], h)
                slots[s, FT] = pd_force(ap, ad, th, w, slots[s, KGM2], h)
            else:
                # the controller sets the velocity, whatever the mass
                w = pd_speed(ap, ad, th, h)
                slots[s, VX], slots[s, VY], slots[s, W] = (
                    pd_speed(p, d, x, h) - w * ay,
                    pd_speed(p, d, y, h) + w * ax,
                    w,
                )

        if (
            slots[s, DL] < 1.0 or slots[s, DA] < 1.0
        ):  # powers are dear, and most bodies have no damping
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
    """Put a mover where it is after this part of the step."""
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
    """Move all slots by a substep, with the velocities that they have; `part` of the
    step is over then.
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
            else:  # also where it is not a number
                put_back(slots, flags, s)
        elif kind == MOVER and slots[s, SPEED] > 0.0:
            if flags[s, JAMMED] < 0:
                place_mover(slots, s, part)
        else:
            # it stands: its corners are where they were
            continue

        place(slots, flags, s, piece_start, corner_start, local, corners)


@merged_kernel
def put_back(slots: F8, flags: I8, s: int) -> None:
    """Put a body back to where it was at the beginning of the step; it stands still for
    the rest of it.
    """
    flags[s, KIND] = LOST
    slots[s, TH] = slots[s, STH]
    c, sine = cosine_sine(slots[s, STH])
    slots[s, X] = slots[s, SX] + c * slots[s, OX] - sine * slots[s, OY]
    slots[s, Y] = slots[s, SY] + sine * slots[s, OX] + c * slots[s, OY]
    slots[s, VX] = slots[s, VY] = slots[s, W] = slots[s, PX] = slots[s, PY] = slots[
        s, PW
    ] = 0.0
    slots[s, IM] = slots[s, II] = 0.0  # no impulse moves it


@merged_kernel
def note_bearing(slots: F8, flags: I8, bits: U8, s: int, x: float, y: float) -> None:
    """Note the bearing from which a slot is touched, in the form of `State.contact`;
    `x`, `y` from its centre of mass, m.
    """
    # else nobody asks, and an arctangent is dear
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
    """Whether the first (`side` 0) or second slot of a contact moves into the other
    one, as if that stood still.
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
    """Stop the movers that only press into what does not yield.

    A mover that turns moves in at one contact and out at another of the same pair. So
    the deepest contact of a pair counts as soon as the mover moves in at one of them; a
    mover that moves out at all of them gets free. A row of bodies spreads its overlap
    over all contacts. So the deepest overlap of the island counts where the mover
    presses.
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

            # it presses: deeper than where things only touch, and than a substep
            # explains, if it was not jammed before
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
            # deeper than a substep explains, and deeper than before: what it pushes
            # does not yield
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
    """Note who is touched where in this substep."""
    for s in range(count):
        if (
            flags[s, KIND] != MOVER or flags[s, JAMMED] < 0
        ):  # one that is jammed is touched where it was then
            bits[s] = np.uint64(0)

    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            # a wall feels nothing, nor does a mover that stands, or was jammed before
            if s < count and (flags[s, KIND] != MOVER or is_pusher(slots, flags, s)):
                note_bearing(
                    slots,
                    flags,
                    bits,
                    s,
                    touch[t, AX + 2 * side],
                    touch[t, AY + 2 * side],
                )


# -- the end of a step


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
    """Write pose, velocity, displacement and wrench of a body with mass. Returns
    whether it is stalled.
    """
    # what friction leaves of a velocity is rounding: it would never come to rest
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
    # one that has not moved gets its old pose: to the centre of mass and back would
    # change its last bits
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
    # no odometry, and no motors that could stall
    if not drives:
        return False
    # the twist that leads there: the logarithm of SE(2), see `geometry.log`
    c, sine = cosine_sine(slots[s, STH])
    along, across, half = c * dx + sine * dy, c * dy - sine * dx, 0.5 * turn
    # half·cot(half), by its series near 0
    cot = 1.0 - half * half / 3.0 if abs(half) < 1e-4 else half / tan(half)
    disp[i, 0], disp[i, 1], disp[i, 2] = (
        cot * along + half * across,
        cot * across - half * along,
        turn,
    )
    # driven from outside: only motors stall
    if flags[s, CONTROL] != MOTORS:
        return False
    wanted = length(slots[s, A1], slots[s, A2])
    return wanted > 1e-3 and length(vx, vy) < STALL_RATIO * wanted


@merged_kernel
def hardest_touch(touch: F8, ends: I8, touches: int, s: int, count: int) -> int:
    """The slot that presses hardest on a slot, `count`: a wall, −1: none."""
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
    """Write what became of all who took part. Returns `OK`, or `LOST_SOME`."""
    slots, flags, bits, answer = work.slots, work.flags, work.bits, OK
    for s in range(count):
        i, kind = flags[s, ROW], flags[s, KIND]
        if kind == MOVER:
            k = flags[s, JAMMED]
            if (
                k >= 0
            ):  # it has gone only so far: odometry, and who looks, must see no more
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
    """Clear what a body with mass that slept through the step may have from before:
    velocity, wrench, stall.
    """
    m.stall[i] = 0
    for k in range(3):
        m.vel[i, k] = mass.wrench[i, k] = mass.floor[i, k] = 0.0


@kernel
def end_rows(m: Moving, mass: MassState, work: Workspace) -> None:
    """Write to `mass` where all bodies stand now, and clear what is not of their kind
    in this step.
    """
    for i in range(m.pose.shape[0]):
        there = work.kind[i] != NOTHING
        if (
            work.kind[i] != MOVER or work.slot_of[i] < 0
        ):  # no mover, or none near a body with mass
            mass.depth[i] = 0.0

        if not there or work.kind[i] == MOVER:  # what has mass may be in a hand
            mass.resting[i] = 0
            for k in range(3):
                mass.wrench[i, k] = mass.floor[i, k] = 0.0

        for k in range(3):
            mass.seen[i, k] = m.pose[i, k] if there else math.nan


@merged_kernel
def make_lists(walls: Walls, work: Workspace, count: int) -> tuple[int, int]:
    """List the pairs of slots and the walls that are near each other at present.
    Returns how many pairs, and what there is no room for.
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
    """Write all contacts: those of bodies, then those with walls. Returns how many; −1
    when there is no room for all.
    """
    touches, o = find_body_contacts(work, shapes, uid, count, pairs, before)
    if touches < 0:
        return -1
    return find_wall_contacts(work, shapes, uid, count, touches, before, o)


@merged_kernel
def recall_impulses(table: Impulses, work: Workspace) -> None:
    """Copy the contacts of the last step to where those of the first substep look for
    their impulses (warm starting).
    """
    for t in range(table.size[0]):
        for k in range(3):
            work.old_key[t, k] = table.key[t, k]
        work.old[t, 0], work.old[t, 1] = table.impulse[t, 0], table.impulse[t, 1]


@merged_kernel
def keep_impulses(key: U8, impulse: F8, work: Workspace, touches: int) -> None:
    """Copy the keys and impulses of all contacts: for the next substep, or the next
    step.
    """
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
    """All substeps, in the workspace alone. Returns what there is no room for, or `OK`.

    Each: what acts on bodies, new poses, contacts there (broad phase, narrow phase),
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
        slots[s, LIST_X] = math.inf  # no lists yet
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
        if not lists_are_valid(slots, flags, count):  # they hold for several substeps
            pairs, lack = make_lists(walls, work, count)
            if lack != OK:
                return lack

        wake_touched(slots, flags, count, work.pair, pairs)
        scale = (
            h / last_h if last_h > 0.0 else 0.0
        )  # an impulse is a force times the substep, which may be another one
        touches = find_contacts(
            work, shapes, m.uid, count, pairs, Before(last_touches, scale)
        )
        if touches < 0:
            return MORE_TOUCHES
        note_contacts(slots, flags, work.bits, count, touch, ends, touches)
        pushed, pinched = find_islands(slots, flags, touch, ends, touches)
        # before impulses are found: what does not yield never gets the speed of a mover
        # that is stopped
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
    """Move all bodies with mass by `dt` s, after the others have moved, and set back
    the movers that could not push them.

    Writes `m`, `mass` and `table`. Returns `OK`, `LOST_SOME`, or what `work` has no
    room for (`MORE_SLOTS` …): then nothing is changed, and it is to be called again
    with more.
    """
    masses, awake, moved, far, thin = classify_rows(m, shapes, mass, work, dt)
    busy = masses > 0 and (awake or moved)
    if busy:
        near = choose_movers(m, mass, work, far)
        busy = awake or near

    # everything with mass is at rest, and nobody comes near it
    if not busy:
        for i in range(m.pose.shape[0]):
            if work.kind[i] == ASLEEP:
                keep_resting(m, mass, i)

        table.size[0] = 0
        end_rows(m, mass, work)
        return OK

    count, lack, fastest = fill_slots(m, shapes, mass, work, dt)
    if lack != OK:
        return lack
    # substeps so short that nothing passes through anything in one
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
    """`step_masses`, to be called from Python."""
    return step_masses(m, walls, shapes, mass, table, work, dt)
