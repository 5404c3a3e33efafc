"""Arrays of bodies with mass: contents, shapes and units.

Worlds without mass have none of them. `MassState` and `Impulses` are, in addition to
`State`, the values that a step passes to the next one. A copy of them continues the
run, bit for bit. `MassShapes` is built when bodies or their masses change. `Workspace`
holds nothing from one step to the next. Rows are the rows of `State`.

A *slot* is a body that takes part in a step: one with mass, or a *mover* (a kinematic
body), which moves as commanded and pushes bodies with mass. Slots are in the order of
`State.uid`, so that results do not depend on the order in which bodies were added. All
numbers of a slot are in one row, because a contact needs all numbers of two bodies at
once. The names of the columns are below.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from botyard.engine.kernels.jit import merged_kernel
from botyard.engine.layout import F8, I1, I4, I8, U1, U2, U8, Bins, Bodies, Grid, State


class MassState(NamedTuple):
    """State of bodies with mass and of their movers that a step changes; n rows.

    Attributes
    ----------
    seen : (n, 3) float64
        Pose after the last step, m, m, rad; NaN for new bodies and for bodies that are not
        solid. A body with another pose now was moved from outside.
    depth : (n,) float64
        Depth to which a mover overlapped a pushed body, m.
    resting : (n,) int8
        0 or 1: whether a body with mass is at rest. It sleeps until something touches it or
        acts on it.
    floor : (n, 3) float64
        Friction impulses of floor or wheels in the last substep, N·s, N·s, N·m·s. The next
        substep starts with them (warm starting).
    wrench : (n, 3) float64
        Net force and torque in the last step, in world axes, N, N, N·m.
    """

    seen: F8
    depth: F8
    resting: I1
    floor: F8
    wrench: F8


class Impulses(NamedTuple):
    """Contacts of the last substep, with which the next one starts (warm starting).

    The contacts are sorted; there is room for m of them.

    Attributes
    ----------
    size : (1,) int64
        Number of contacts.
    span : (1,) float64
        Length of that substep, s.
    key : (m, 3) uint64
        `State.uid` of the first body; `State.uid` of the second body, or the wall's hash;
        corner and edge, see `feature_key`.
    impulse : (m, 2) float64
        Along the normal and along the edge, N·s.
    """

    size: I8
    span: F8
    key: U8
    impulse: F8


class MassShapes(NamedTuple):
    """Masses and convex outlines of all bodies; n rows.

    Attributes
    ----------
    values : (n, VALUES) float64
        `DynamicsSpec`, in the columns `MASS` …; 0 for bodies without mass.
    piece_start : (n + 1,) int64
        Row i owns the convex pieces piece_start[i] … piece_start[i + 1] − 1.
    corner_start : (n_pieces + 1,) int64
        Piece p owns the corners corner_start[p] … corner_start[p + 1] − 1,
        counter-clockwise; a flat piece has two.
    corners : (n_corners, 4) float64
        In the body frame: each corner, m, and the outward unit normal of the edge from it
        to the next one.
    """

    values: F8
    piece_start: I8
    corner_start: I8
    corners: F8


class Moving(NamedTuple):
    """Arrays of `State`, `Bodies` and `Bins` that dynamics uses, and three more.

    Attributes
    ----------
    before, before_vel : (n, 3) float64
        Poses and velocities before the other bodies moved.
    order : (n,) int64
        Rows by `State.uid`.
    """

    pose: F8
    vel: F8
    disp: F8
    spin: F8
    uid: U8
    demand: F8
    contact: U8
    stall: I1
    mask: U2
    held: I1
    drive: I1
    control: I1
    radius: F8
    inner: F8
    feels: I1
    bin_rows: I8
    bin_at: F8
    bin_start: I8
    bin_frame: F8
    bin_shape: I8
    bin_reach: F8
    bin_met: I8
    before: F8
    before_vel: F8
    order: I8


class Walls(NamedTuple):
    """Arrays of the walls of a `Grid`.

    `bits` holds the numbers of `seg` as bit patterns. A wall in several cells has an
    entry in each of them, and these entries have equal bits.
    """

    x0: float
    y0: float
    h: float
    nx: int
    ny: int
    start: I4
    seg: F8
    bits: U8
    mask: U2
    clear: U1


class Workspace(NamedTuple):
    """Workspace of a step.

    If an array except `slot_of` and `kind` is too small, the host doubles it and
    repeats the step.

    Attributes
    ----------
    slot_of, kind : (n,) int64
        Slot of each row, −1 without one; its role in this step (`AWAKE` …).
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        Columns of each slot, see below; one more stands for walls, which do not move.
    bits : (p,) uint64
        Touched sectors of each slot, as in `State.contact`.
    corners : (c, 4) float64
        As in `MassShapes`, in the world; the first two rows are for a wall.
    rank, item : (q,) float64, (q,) int64
        Keys and items of a sort.
    pair, pair_item : (r,) float64, (r,) int64
        Pairs of near slots, sorted: number of the first one times the number of slots, plus
        number of the second one.
    wall, wall_id : (w, 4) float64, (w,) uint64
        Walls near each slot: end points, m; hash.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        Contacts; their two slots, the order of contacts in the solver, and the group of
        each in that order.
    key, old_key : (k, 3) uint64
        Keys, see `Impulses`, of these contacts and of contacts of the previous substep.
    old : (k, 2) float64
        Impulses of the previous substep.
    point : (4, 4) float64
        Contacts of two pieces, and their normal.
    """

    slot_of: I8
    kind: I8
    slots: F8
    flags: I8
    bits: U8
    corners: F8
    rank: F8
    item: I8
    pair: F8
    pair_item: I8
    wall: F8
    wall_id: U8
    touch: F8
    ends: I8
    key: U8
    old_key: U8
    old: F8
    point: F8


# fmt: off
(MASS, INERTIA, CENTER_X, CENTER_Y, REACH, FRICTION, RESTITUTION, FLOOR, TRACTION, LINEAR_DAMPING, ANGULAR_DAMPING,
 LINEAR_P, LINEAR_D, ANGULAR_P, ANGULAR_D, BY_FORCE, VALUES) = range(17)
"""Columns of `MassShapes.values`, see `DynamicsSpec`.

`REACH`: lever of floor friction, m; `BY_FORCE`: 1 if the controller outputs forces.
"""

# centre of mass, m; heading, rad, its cosine and sine; velocity of the centre of mass
(X, Y, TH, C, S, VX, VY, W,
 # separate velocity that removes overlaps, m/s, rad/s
 PX, PY, PW,
 # mass, moment of inertia, and their inverses: 0 for bodies that cannot be moved
 KG, KGM2, IM, II,
 A1, A2, A3,                 # demanded force, pose or velocity
 # force and torque in this substep
 FX, FY, FT,
 # velocity of the floor, or of the wheels on it, under the centre of mass
 GX, GY, GW,
 # greatest force and torque of friction on the floor
 LF, LT,
 JX, JY, JW,                 # impulses of that friction in this substep
 # centre of mass in the body's frame, m
 OX, OY,
 MU, E, R,                   # friction, restitution, radius
 # factors by which damping reduces velocities in a substep
 DL, DA,
 LP, LD, AP, AD,             # gains of the controller
 # pose for which the lists of pairs and walls were made
 LIST_X, LIST_Y, LIST_TH,
 X_LO, Y_LO, X_HI, Y_HI,     # bounds of the slot's corners, m
 # pose at the start of the step
 SX, SY, STH,
 # displacement of a mover in the step
 TX, TY, TTH,
 QX, QY, QW,                 # momentum at the start
 # of a mover: speed, m/s; allowed, previous and present depth of its overlap, m
 SPEED, LIMIT, DEPTH, DEEP,
 # of an island, see `bound_islands`: kg, N·s, (m/s)²
 HEFT, SHOVE, TOP,
 SLOTS) = range(64)
"""Columns of `Workspace.slots`."""

ROW, KIND, CORNERS, CONTROL, STIRS, JAMMED, FEELS, FORCES, AGAINST, ISLAND, COUNTED, PUSHED, ANCHOR, WALL_0, WALL_1, FLAGS = range(16)
"""Columns of `Workspace.flags`.

`ROW`: row of the body. `KIND`: role, see `AWAKE`. `CORNERS`: first row in
`Workspace.corners`. `CONTROL`: `Control`. `STIRS`: 1 if a mover moves or was placed, and
so wakes bodies that it touches. `JAMMED`: substep in which a mover was jammed, or −1.
`FEELS`: 1 if contact sectors are requested. `FORCES`: 1 if the controller outputs forces.
`AGAINST`: slot that a mover presses into. `ISLAND`: a slot of the same island; the slot
itself if it represents the island. `COUNTED`: 1 if the sums of the island include the
slot. At the slot that represents an island, `PUSHED`: 1 if movers push the island, 2 if
in addition its impulses are not kept; `ANCHOR`: a slot that touches the island and cannot
yield, or −1. `WALL_0`, `WALL_1`: range of rows of near walls in `Workspace.wall`.
"""
NOTHING, AWAKE, ASLEEP, MOVER, LOST = range(5)
"""Roles of bodies in a step.

In order: not solid; with mass; with mass and at rest; kinematic; with mass, and put
back because it was out of bounds.
"""

# normal from the first body to the second; from their centres of mass to the contact, m
(NX, NY, AX, AY, CX, CY,
 # overlap, m; effective mass along normal and edge, kg
 DEEPNESS, MN, MT,
 # speed that removes the overlap, rebound speed, m/s; friction
 PUSH, BOUNCE, GRIP,
 # impulses along normal and edge, and impulse that removes the overlap; restitution
 JN, JT, JP, SOFT,
 # greatest impulse along the normal, N·s
 MOST,
 TOUCHES) = range(18)
"""Columns of `Workspace.touch`."""
# fmt: on

OK: Final = 0
MORE_SLOTS, MORE_CORNERS, MORE_PAIRS, MORE_WALLS, MORE_TOUCHES = 1, 2, 4, 8, 16
"""Results of `move_masses`: the array of the workspace that is too small.

Nothing has changed then.
"""
LOST_SOME: Final = -1
"""Result of `move_masses`: a body went out of bounds (`MAX_COORDINATE`).

The step is done, and the body was put back.
"""


def mass_state(n: int) -> MassState:
    """Return the initial `MassState` of `n` bodies.

    Parameters
    ----------
    n : int
        Number of bodies, with or without mass.
    """
    return MassState(
        np.full((n, 3), np.nan),
        np.zeros(n),
        np.zeros(n, np.int8),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
    )


def join_states(a: MassState, b: MassState) -> MassState:
    """Return the `MassState` of two groups of bodies as one, with rows of `a` before `b`.

    Parameters
    ----------
    a, b : MassState
        State of the first rows, and of the rows after them. Both are copied.
    """
    return MassState(
        np.concatenate([a.seen, b.seen]),
        np.concatenate([a.depth, b.depth]),
        np.concatenate([a.resting, b.resting]),
        np.concatenate([a.floor, b.floor]),
        np.concatenate([a.wrench, b.wrench]),
    )


def impulses(room: int) -> Impulses:
    """Return an empty table with room for `room` contacts.

    Parameters
    ----------
    room : int
        Number of contacts that it holds at most.
    """
    return Impulses(
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros((room, 3), np.uint64),
        np.zeros((room, 2)),
    )


def workspace(
    n: int, slots: int, corners: int, pairs: int, walls: int, touches: int
) -> Workspace:
    """Return a workspace of zeros.

    Parameters
    ----------
    n : int
        Number of bodies of the world.
    slots : int
        Room for bodies that take part in a step.
    corners : int
        Room for the corners of their convex pieces.
    pairs : int
        Room for pairs of near bodies.
    walls : int
        Room for walls near bodies; a wall counts once for each body.
    touches : int
        Room for contacts.
    """
    return Workspace(
        slot_of=np.zeros(n, np.int64),
        kind=np.zeros(n, np.int64),
        slots=np.zeros((slots + 1, SLOTS)),
        flags=np.zeros((slots + 1, FLAGS), np.int64),
        bits=np.zeros(slots + 1, np.uint64),
        corners=np.zeros((corners + 2, 4)),
        rank=np.zeros(max(slots, walls)),
        item=np.zeros(max(slots, walls), np.int64),
        pair=np.zeros(pairs),
        pair_item=np.zeros(pairs, np.int64),
        wall=np.zeros((walls, 4)),
        wall_id=np.zeros(walls, np.uint64),
        touch=np.zeros((touches, TOUCHES)),
        ends=np.zeros((touches, 4), np.int64),
        key=np.zeros((touches, 3), np.uint64),
        old_key=np.zeros((touches, 3), np.uint64),
        old=np.zeros((touches, 2)),
        point=np.zeros((4, 4)),
    )


@merged_kernel
def moving(
    state: State, bodies: Bodies, bins: Bins, before: F8, before_vel: F8, order: I8
) -> Moving:
    """Return the arrays of a world for `Moving`.

    Parameters
    ----------
    state, bodies, bins : State, Bodies, Bins
        Arrays of the world. The result refers to the same arrays.
    before, before_vel : (n, 3) float64
        Poses, m, m, rad, and velocities, m/s, m/s, rad/s, before the other bodies
        moved.
    order : (n,) int64
        Rows by `State.uid`.
    """
    return Moving(
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
        before,
        before_vel,
        order,
    )


def walls(grid: Grid) -> Walls:
    """Return the walls of a grid.

    Parameters
    ----------
    grid : Grid
        Static world. The result refers to the same arrays.
    """
    return Walls(
        grid.x0,
        grid.y0,
        grid.h,
        grid.nx,
        grid.ny,
        grid.start,
        grid.seg,
        grid.seg.view(np.uint64),
        grid.mask,
        grid.clear,
    )
