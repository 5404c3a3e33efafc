"""Arrays of bodies with mass: what each holds, its shape and its unit. Worlds without
mass have none of them.

`MassState` and `Impulses` are all that a step hands on to the next one, beside `State`:
a copy of them goes on from there, bit for bit. `MassShapes` is built when bodies or
their masses change; `Workspace` holds nothing from one step to the next. Rows are those
of `State`.

A *slot* is a body that takes part in a step: one with mass, or a *mover* (a kinematic
body), which moves as commanded and pushes bodies with mass. Slots are in the order of
`State.uid`, so that results do not depend on the order in which bodies were added. All
numbers of a slot are in one row, because a contact needs all of two bodies at once; the
names of the columns are below.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from botyard.engine.layout import F8, I1, I4, I8, U1, U2, U8, Bins, Bodies, Grid, State


class MassState(NamedTuple):
    """What a step changes of bodies with mass and of their movers; n rows.

    Attributes
    ----------
    seen : (n, 3) float64
        Pose after the last step, m, m, rad; NaN of bodies that are new or not solid. A
        body that is elsewhere now was put there.
    depth : (n,) float64
        Depth to which a mover overlapped what it pushed, m.
    resting : (n,) int8
        0 or 1: a body with mass is at rest. It sleeps until something touches it or
        acts on it.
    floor : (n, 3) float64
        Friction impulses of floor or wheels in the last substep, N·s, N·s, N·m·s: the
        next one begins with them (warm starting).
    wrench : (n, 3) float64
        Net force and torque in the last step, in the world's axes, N, N, N·m.
    """

    seen: F8
    depth: F8
    resting: I1
    floor: F8
    wrench: F8


class Impulses(NamedTuple):
    """The contacts of the last substep, with which the next one begins (warm starting);
    sorted, with room for m.

    Attributes
    ----------
    size : (1,) int64
        Number of contacts.
    span : (1,) float64
        Length of that substep, s.
    key : (m, 3) uint64
        `State.uid` of the first body and of the second, or the wall's hash; and which
        corner on which edge, see `feature_key`.
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
        `DynamicsSpec`, in the columns `MASS` …; those without mass have 0 there.
    piece_start : (n + 1,) int64
        Row i owns the convex pieces piece_start[i] … piece_start[i + 1] − 1.
    corner_start : (n_pieces + 1,) int64
        Piece p owns the corners corner_start[p] … corner_start[p + 1] − 1,
        counter-clockwise; a flat one has two.
    corners : (n_corners, 4) float64
        In the body's frame: each corner, m, and the unit normal, outwards, of the edge
        from it to the next one.
    """

    values: F8
    piece_start: I8
    corner_start: I8
    corners: F8


class Moving(NamedTuple):
    """The arrays of `State`, `Bodies` and `Bins` that dynamics reads and writes, and
    three more.

    Attributes
    ----------
    before, before_vel : (n, 3) float64
        Poses and velocities before the others moved.
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
    """The walls of a `Grid`. `bits` are those of `seg`: by them the entries of one wall
    in several cells are known for the same wall.
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
    """Workspace of a step; if all but `slot_of` and `kind` are too small, the host
    doubles them and repeats the step.

    Attributes
    ----------
    slot_of, kind : (n,) int64
        Slot of each row, −1 without one; what it is in this step (`AWAKE` …).
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        Columns of each slot, see below; one more stands for walls, which do not move.
    bits : (p,) uint64
        Where each slot is touched, as `State.contact`.
    corners : (c, 4) float64
        As in `MassShapes`, in the world; the first two rows are for a wall.
    rank, item : (q,) float64, (q,) int64
        Keys and items of a sort.
    pair, pair_item : (r,) float64, (r,) int64
        Pairs of slots that are near each other, sorted: number of the first times the
        number of slots, plus number of the second.
    wall, wall_id : (w, 4) float64, (w,) uint64
        Walls near each slot: end points, m; hash.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        Contacts; their two slots, the order in which the solver goes through contacts,
        and in which turn each is.
    key, old_key : (k, 3) uint64
        Keys, see `Impulses`, of these contacts and of those of the substep before.
    old : (k, 2) float64
        Impulses of the substep before.
    point : (4, 4) float64
        The contacts of two pieces, and their normal.
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
"""Columns of `MassShapes.values`, see `DynamicsSpec`. `REACH`: lever of floor friction,
m; `BY_FORCE`: 1 where a controller has forces.
"""

# centre of mass, m; heading, rad, its cosine and sine; velocity of the centre of mass
(X, Y, TH, C, S, VX, VY, W,
 # velocity that only takes overlaps back, m/s, rad/s
 PX, PY, PW,
 # mass, moment of inertia, and their inverses: 0 for what nothing moves
 KG, KGM2, IM, II,
 A1, A2, A3,                 # what is demanded
 # force and torque in this substep
 FX, FY, FT,
 # how the floor, or the wheels on it, move under the centre of mass
 GX, GY, GW,
 # greatest force and torque of friction on the floor
 LF, LT,
 JX, JY, JW,                 # its impulses in this substep
 # centre of mass in the body's frame, m
 OX, OY,
 MU, E, R,                   # friction, restitution, radius
 # what damping leaves of the velocities in a substep
 DL, DA,
 LP, LD, AP, AD,             # gains of the controller
 # pose for which the lists of pairs and walls were made
 LIST_X, LIST_Y, LIST_TH,
 X_LO, Y_LO, X_HI, Y_HI,     # bounds of its corners, m
 # pose at the beginning of the step
 SX, SY, STH,
 # of a mover: how far it goes in it
 TX, TY, TTH,
 QX, QY, QW,                 # momentum at the beginning
 # of a mover: m/s; how deep it may overlap, how deep it did before, and does now, m
 SPEED, LIMIT, DEPTH, DEEP,
 # of an island, see `bound_islands`: kg, N·s, m/s, m/s
 HEFT, SHOVE, TOP, DRIVEN,
 SLOTS) = range(65)
"""Columns of `Workspace.slots`."""

ROW, KIND, CORNERS, CONTROL, STIRS, JAMMED, FEELS, FORCES, AGAINST, ISLAND, COUNTED, ANCHOR, WALL_0, WALL_1, FLAGS = range(15)
"""Columns of `Workspace.flags`: row; `AWAKE` …; first corner; `Control`; a mover that
has moved; the substep in which a mover was jammed, or −1; contacts are wanted; the
controller has forces; of a mover: the slot that it presses into; the slot that stands
for its island; 1: it counts there; of an island: what it touches that cannot yield; its
part of the list of walls.
"""
NOTHING, AWAKE, ASLEEP, MOVER, LOST = range(5)
"""What a body is in a step: not solid; with mass; with mass and at rest; kinematic;
with mass, and put back as it was out of bounds.
"""

MOTORS, FORCE, POSE, TWIST = 1, 2, 3, 4
"""What drives a body with mass: `botyard.engine.layout.Control`."""

# normal from the first body to the second; from their centres of mass to the contact, m
(NX, NY, AX, AY, CX, CY,
 # overlap, m; mass that the contact sees along normal and edge, kg
 DEEPNESS, MN, MT,
 # speed that takes the overlap back, speed that bounces back, m/s; friction
 PUSH, BOUNCE, GRIP,
 # impulses along normal and edge, and of what takes the overlap back; restitution
 JN, JT, JP, SOFT,
 # greatest impulse along the normal, N·s
 MOST,
 TOUCHES) = range(18)
"""Columns of `Workspace.touch`."""
# fmt: on

OK: Final = 0
MORE_SLOTS, MORE_CORNERS, MORE_PAIRS, MORE_WALLS, MORE_TOUCHES = 1, 2, 4, 8, 16
"""Results of `move_masses`: which array of the workspace is too small; nothing has been
changed then.
"""
LOST_SOME: Final = -1
"""Result of `move_masses`: the step is done, but a body went out of bounds
(`MAX_COORDINATE`) and was put back.
"""


def mass_state(n: int) -> MassState:
    """State of `n` new bodies."""
    return MassState(
        np.full((n, 3), np.nan),
        np.zeros(n),
        np.zeros(n, np.int8),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
    )


def join_states(a: MassState, b: MassState) -> MassState:
    """The rows of `a` followed by those of `b`."""
    return MassState(
        np.concatenate([a.seen, b.seen]),
        np.concatenate([a.depth, b.depth]),
        np.concatenate([a.resting, b.resting]),
        np.concatenate([a.floor, b.floor]),
        np.concatenate([a.wrench, b.wrench]),
    )


def impulses(room: int) -> Impulses:
    """An empty table with room for `room` contacts."""
    return Impulses(
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros((room, 3), np.uint64),
        np.zeros((room, 2)),
    )


def workspace(
    n: int, slots: int, corners: int, pairs: int, walls: int, touches: int
) -> Workspace:
    """A workspace for `n` bodies, with room for these numbers of slots, corners, pairs,
    walls and contacts.
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


def moving(state: State, bodies: Bodies, bins: Bins) -> Moving:
    """The arrays of a world that `Moving` names, with copies of the present poses and
    velocities.
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
        state.pose.copy(),
        state.vel.copy(),
        np.argsort(state.uid, kind="stable"),
    )


def walls(grid: Grid) -> Walls:
    """The walls of a grid."""
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
