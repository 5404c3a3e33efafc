"""Motion of bodies with mass and of movers in a substep: demands, and new poses.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.commands import (
    MAX_COORDINATE,
)
from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import (
    wrap,
)
from botyard.engine.layout import (
    F8,
    FORCE,
    I8,
    MOTORS,
    POSE,
    TWIST,
)
from botyard.engine.masslayout import (
    A1,
    A2,
    A3,
    AD,
    AP,
    AWAKE,
    CONTROL,
    CORNERS,
    DA,
    DL,
    FORCES,
    FT,
    FX,
    FY,
    GW,
    GX,
    GY,
    II,
    IM,
    JAMMED,
    KG,
    KGM2,
    KIND,
    LD,
    LOST,
    LP,
    MOVER,
    OX,
    OY,
    PW,
    PX,
    PY,
    ROW,
    SPEED,
    STH,
    SX,
    SY,
    TH,
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
    S,
    W,
    X,
    Y,
)
from botyard.numerics.elementary import cosine_sine
from botyard.numerics.exponentials import power

MAX_SUBSTEP_TURN = 1e4
"""Turn in a substep above which a body is put back, rad, because the solver loses precision."""


@merged_kernel
def pd_force(
    p: float, d: float, error: float, velocity: float, mass: float, h: float
) -> float:
    """Return force or torque of a stable PD controller, see `Gains.force`.

    Error and velocity at the end of the substep are predicted, so that any gains are
    stable.

    Parameters
    ----------
    p, d : float
        Gains: N/m and N·s/m, or N·m/rad and N·m·s/rad.
    error : float
        Distance to the goal, m, or angle to it, rad.
    velocity : float
        Present velocity, m/s or rad/s.
    mass : float
        Mass, kg, or moment of inertia, kg·m².
    h : float
        Duration of a substep, s.
    """
    # Implicit Euler: the denominator grows with the gains, which bounds the response.
    return (p * error - (d + h * p) * velocity) / (1.0 + h * (d + h * p) / mass)


@merged_kernel
def pd_speed(p: float, d: float, error: float, h: float) -> float:
    """Return the speed of a PD controller with velocity output, see `Gains.speed`.

    Parameters
    ----------
    p, d : float
        Gains: `p` in 1/s, `d` without unit.
    error : float
        Distance to the goal, m, or angle to it, rad.
    h : float
        Duration of a substep, s.
    """
    return p * error / (1.0 + d + h * p)


@kernel
def apply_demands(slots: F8, flags: I8, count: int, h: float) -> None:
    """Apply forces, wheels, controllers and damping in a substep.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: forces, demands of wheels,
        and velocities.
    count : int
        Number of slots in use.
    h : float
        Duration of a substep, s.
    """
    for s in range(count):
        if flags[s, KIND] != AWAKE:
            continue
        c, sine, control = slots[s, C], slots[s, S], flags[s, CONTROL]
        a1, a2, a3 = slots[s, A1], slots[s, A2], slots[s, A3]
        # Vector from the body's origin, to which demands refer, to its centre of mass.
        ax, ay = (
            c * slots[s, OX] - sine * slots[s, OY],
            sine * slots[s, OX] + c * slots[s, OY],
        )
        # Forces of the last substep are not carried over.
        slots[s, FX] = slots[s, FY] = slots[s, FT] = 0.0

        # Velocity that the wheels demand from the floor, see `solve_floor_friction`.
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

            # The controller demands forces, so that obstacles can hold the body back.
            if flags[s, FORCES]:
                slots[s, FX] = pd_force(p, d, x, slots[s, VX] + w * ay, slots[s, KG], h)
                slots[s, FY] = pd_force(p, d, y, slots[s, VY] - w * ax, slots[s, KG], h)
                slots[s, FT] = pd_force(ap, ad, th, w, slots[s, KGM2], h)
            else:
                # The controller sets the velocity directly, whatever the mass.
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
    """Write the corners of a slot in the world, their normals, and its bounds.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: bounds, and cosine and sine
        of the heading.
    s : int
        Row of `slots` and `flags`: the body.
    piece_start, corner_start : (n + 1,) int64, (n_pieces + 1,) int64
        Arrays of `MassShapes`.
    local : (n_corners, 4) float64
        `MassShapes.corners`, in the frame of the body, m.
    corners : (c, 4) float64
        Output: `Workspace.corners`, m.
    """
    row = flags[s, ROW]
    first, last, off = (
        corner_start[piece_start[row]],
        corner_start[piece_start[row + 1]],
        flags[s, CORNERS],
    )
    # Store sine and cosine in the slot, because contacts and demands use them again.
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
        # Normals turn with the body, but do not move with it.
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
    """Put a mover at its place after a part of the step.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`. In-place.
    s : int
        Slot of the mover.
    part : float
        Part of the step, 0 … 1. The mover travels at constant speed.
    """
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

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place.
    count : int
        Number of slots in use.
    h : float
        Duration of a substep, s.
    part : float
        Part of the step that is over then, 0 … 1.
    piece_start, corner_start, local, corners
        See `place`.
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
                    # Small angles stay unwrapped, since wrapping rounds them.
                    wrap(th) if abs(th) > MAX_SUBSTEP_TURN else th,
                )
            # This branch also handles NaN.
            else:
                put_back(slots, flags, s)
        elif kind == MOVER and slots[s, SPEED] > 0.0:
            if flags[s, JAMMED] < 0:
                place_mover(slots, s, part)
        else:
            # A body that stands has the same corners as before.
            continue

        place(slots, flags, s, piece_start, corner_start, local, corners)


@merged_kernel
def put_back(slots: F8, flags: I8, s: int) -> None:
    """Put a body back to its start of the step, at rest for the remainder.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place.
    s : int
        Slot of the body.
    """
    # Mark the body as lost: the step reports it, so that the host can warn.
    flags[s, KIND] = LOST
    slots[s, TH] = slots[s, STH]
    c, sine = cosine_sine(slots[s, STH])
    slots[s, X] = slots[s, SX] + c * slots[s, OX] - sine * slots[s, OY]
    slots[s, Y] = slots[s, SY] + sine * slots[s, OX] + c * slots[s, OY]
    slots[s, VX] = slots[s, VY] = slots[s, W] = slots[s, PX] = slots[s, PY] = slots[
        s, PW
    ] = 0.0
    # With inverse masses of 0, impulses do not move the body.
    slots[s, IM] = slots[s, II] = 0.0
