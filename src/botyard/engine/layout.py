"""Arrays of the engine: contents, shapes and units.

There are two kinds of data, never mixed: every step rewrites `State`; everything else
is built when bodies or the map change. All are NamedTuples of arrays, as kernels take
them. Indices are 64 bits wide, because each kernel is compiled once for one width. A
*row* is one body: a robot or a movable box. Rows are in the order of creation. Results
do not depend on that order (moves follow `Bodies.order`, random draws `State.uid`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.model.kinematics import Drive

F8 = NDArray[np.float64]
I1 = NDArray[np.int8]
I2 = NDArray[np.int16]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]
U2 = NDArray[np.uint16]
U8 = NDArray[np.uint64]

WALL_LANES: Final = 4
"""Number of walls, and of beams, that kernels process together.

It is the number of float64 in a vector register of most processors.
"""
WALL: Final = -1
"""Value in place of the row of a body: a wall."""
NO_BODY: Final = -2
"""Value in place of the row of a body: nothing."""


class Mode(IntEnum):
    """Meaning of the target of an axis."""

    # The target is a velocity, m/s or rad/s.
    VELOCITY = 0
    # The target is the remaining distance, m (x axis), or a heading in the odometry
    # frame, rad (rotation).
    POSITION = 1
    # Steering angle, rad (rotation of a body that steers)
    STEERING = 2


class Control(IntEnum):
    """Kind of drive of a body with mass.

    It defines the meaning of `State.demand`, in world axes.
    """

    # The body has no mass (it is kinematic).
    NONE = 0
    # Motors move the body, by the targets of its axes.
    MOTORS = 1
    # A force and torque act on the body, N, N, N·m.
    FORCE = 2
    # A PD controller moves the body to a goal pose, m, m, rad.
    POSE = 3
    # The body has a given velocity, m/s, m/s, rad/s.
    TWIST = 4


class OdometryErrorMode(IntEnum):
    """When the error factors of odometry are drawn (pioneer-protocol §11.4)."""

    NONE = 0
    CONSTANT = 1
    RANDOM_INIT = 2
    RANDOM_EACH_UPDATE = 3
    # Odometry is the true pose; a property of a model, not a mode for users.
    PERFECT = 4


# Kernels compare arrays with plain numbers, which compilers fold.
VELOCITY_MODE, POSITION_MODE, STEERING_MODE = map(int, Mode)
NO_CONTROL, MOTORS, FORCE, POSE, TWIST = map(int, Control)
NO_ERRORS, CONSTANT, RANDOM_INIT, RANDOM_EACH_UPDATE, PERFECT = map(
    int, OdometryErrorMode
)
# The state has no other kinds: see `Kinematics.motion`.
NO_DRIVE, DIFF, OMNI, ACKERMANN, TRICYCLE, MECANUM = map(int, list(Drive)[:6])
# Drives of these numbers steer: two comparisons test all of them.
FIRST_STEERED, LAST_STEERED = ACKERMANN, TRICYCLE
# Drives from this number on have a row in `State.steer`.
FIRST_WITH_WHEELS: Final = ACKERMANN

SIDE: Final = 0
"""Column of `State.steer` of a Mecanum drive: its odometry of the distance to the left, m."""
ANGLE, RATE, TOP_RATE, LIMIT, WHEELBASE, OFFSET, BY_ANGLE = range(7)
"""Columns of `State.steer`.

`ANGLE`: measured steering angle, rad, positive to the left. `RATE`: limit in force of
its rate, rad/s, 0: unlimited. The rest are of the model, see
`botyard.model.kinematics.Steering`: `TOP_RATE`, rad/s, `LIMIT`, rad, `WHEELBASE`, m,
`OFFSET`, rad, and `BY_ANGLE`, 0 or 1.
"""
STEER_COLUMNS: Final = 7
"""Number of columns of `State.steer`."""
LEADER, FOLLOWER = range(2)
"""Columns of `Bodies.train`: rows of the body in front of one, and of the trailer behind
it; −1: none."""
HITCH, DRAWBAR, BEND = range(3)
"""Columns of `Bodies.hitch`: distance of the hitch behind the origin of the body in front,
and of the axle from the hitch, m; greatest angle, rad."""
SLIDE: Final = 9
"""Column of `Bodies.slips`: place of the centre of rotation in front of the origin, m."""
SLIP_COLUMNS: Final = 10
"""Number of columns of `Bodies.slips`."""


SPEED, SLIP, SCALE = range(3)
"""Columns of `Bodies.ground`: limit of the speed, m/s; slip; odometry scale."""


class State(NamedTuple):
    """Dynamic state of all bodies in n rows.

    Axes are x (forward), y (left), a (rotation).

    Attributes
    ----------
    pose : (n, 3) float64
        True pose in the world: m, m, rad in (−π, π].
    vel : (n, 3) float64
        Velocity in the body frame: m/s, m/s, rad/s.
    odom : (n, 3) float64
        Odometry pose in its own frame: m, m, rad.
    target : (n, 3) float64
        Target of each axis. `mode_x` and `mode_a` define its kind; the target of the y axis
        is always a velocity.
    max_vel : (n, 3) float64
        Speed limits in force (a client may lower them): m/s, m/s, rad/s.
    top_vel : (n, 3) float64
        Speed limits of the model.
    accel, decel : (n, 3) float64
        Ramps: m/s², m/s², rad/s²; 0 is immediate.
    heading_speed : (n,) float64
        Limit of the turn rate of heading targets, rad/s.
    err_lo, err_hi : (n, 3) float64
        Range of the proportional odometry errors.
    err : (n, 3) float64
        Errors in force in the last step.
    disp : (n, 3) float64
        Displacement of the last step as a body twist times dt: m, m, rad.
    path : (n, 2) float64
        Signed distance by odometry since the body was added: forward, m, and turned, rad
        (the count of wheel encoders).
    spin : (n,) float64
        Rotation in place that followed `disp`, rad (a blocked robot may still turn).
    contact : (n,) uint64
        Sectors at which the body touched its last obstacle. Bit k is the sector of bearings
        [k, k + 1)·2π/64 in its frame; 0 after a free move.
    odom_frame : (n, 3) float64
        True pose of the origin of the odometry frame when `odom` was last set. Composed
        with `odom` it gives the estimated pose.
    uid : (n,) uint64
        Stable identity: a hash of the body's name.
    mode_x, mode_a : (n,) int8
        `Mode` of the x and the rotation axis.
    drive : (n,) int8
        `Drive`.
    err_mode : (n,) int8
        `OdometryErrorMode`.
    motors, stall, estop, held : (n,) int8
        0 or 1: motors enabled; blocked while translating; emergency stop in progress; held
        by a source that drags it.
    mask : (n,) uint16
        `Visible` classes of the body.
    bright : (n,) int16
        Laser return of the body.
    control : (n,) int8
        `Control` of a body with mass.
    demand : (n, 3) float64
        Demand of a body with mass, of the kind in `control`.
    carrier : (n,) int64
        Row of the body that carries this one; −1: none.
    hold : (n, 3) float64
        Pose of a carried body in the frame of its carrier: m, m, rad.
    steer : (n, 7) float64 or (0, 7) float64
        Steering, see `ANGLE`, or distance to the left of a Mecanum drive, see `SIDE`; 0 for
        all other bodies. Without such a body it has no rows, so that other worlds neither
        store nor copy it.
    """

    pose: F8
    vel: F8
    odom: F8
    target: F8
    err: F8
    disp: F8
    path: F8
    spin: F8
    contact: U8
    mode_x: I1
    mode_a: I1
    stall: I1
    estop: I1
    max_vel: F8
    top_vel: F8
    accel: F8
    decel: F8
    heading_speed: F8
    err_lo: F8
    err_hi: F8
    odom_frame: F8
    uid: U8
    drive: I1
    err_mode: I1
    motors: I1
    held: I1
    mask: U2
    bright: I2
    control: I1
    demand: F8
    carrier: I8
    hold: F8
    steer: F8


# Columns that a step may change come first, because the snapshot of every step copies
# only them.
_CHANGING: Final[tuple[tuple[str, DTypeLike, int], ...]] = (
    *((n, np.float64, 3) for n in ("pose", "vel", "odom", "target", "err", "disp")),
    ("path", np.float64, 2),
    ("spin", np.float64, 0),
    ("contact", np.uint64, 0),
    *((n, np.int8, 0) for n in ("mode_x", "mode_a", "stall", "estop")),
)
_FIELDS: Final[tuple[tuple[str, DTypeLike, int], ...]] = (
    *_CHANGING,
    *((n, np.float64, 3) for n in ("max_vel", "top_vel", "accel", "decel")),
    ("heading_speed", np.float64, 0),
    *((n, np.float64, 3) for n in ("err_lo", "err_hi", "odom_frame")),
    ("uid", np.uint64, 0),
    *((n, np.int8, 0) for n in ("drive", "err_mode", "motors", "held")),
    ("mask", np.uint16, 0),
    ("bright", np.int16, 0),
    ("control", np.int8, 0),
    ("demand", np.float64, 3),
    ("carrier", np.int64, 0),
    ("hold", np.float64, 3),
    ("steer", np.float64, STEER_COLUMNS),
)
assert tuple(f[0] for f in _FIELDS) == State._fields


def allocate_state(n: int, steers: bool = False) -> tuple[State, U1]:
    """Return a zeroed state of `n` rows, and the block of bytes below its arrays.

    The block allows to copy all arrays at once.

    Parameters
    ----------
    n : int
        Number of bodies.
    steers : bool
        Whether a body steers or has a Mecanum drive: otherwise `State.steer` has no rows.

    Returns
    -------
    tuple of (State, (size,) uint8)
        Arrays are views of the block, so that a copy of its bytes is a copy of the
        state.
    """
    views: dict[str, tuple[int, Any, tuple[int, ...]]] = {}
    offset = 0
    for name, dtype, columns in _FIELDS:
        kind: np.dtype[Any] = np.dtype(dtype)
        # NumPy views of 8-byte numbers must start at multiples of 8.
        offset = -(-offset // 8) * 8
        rows = n if steers or name != "steer" else 0
        shape = (rows, columns) if columns else (rows,)
        views[name] = (offset, kind, shape)
        offset += kind.itemsize * rows * max(columns, 1)

    block = np.zeros(max(offset, 1), np.uint8)
    return view_state(block, views), block


def changing_bytes(n: int) -> int:
    """Return the number of leading bytes of a state's block that a step may change.

    Only commands and callers change the rest. `State.steer`, which steps also change, is
    the last array: copy the whole block if it has rows.

    Parameters
    ----------
    n : int
        Number of bodies.
    """
    total = 0
    for _, dtype, columns in _CHANGING:
        total = -(-total // 8) * 8 + np.dtype(dtype).itemsize * n * max(columns, 1)
    return total


def view_state(block: U1, views: dict[str, tuple[int, Any, tuple[int, ...]]]) -> State:
    """Return a `State` over a block of bytes.

    Parameters
    ----------
    block : (size,) uint8
        Bytes of all arrays. Writes to the state change them.
    views : dict of str to (int, dtype, tuple of int)
        Offset, bytes, dtype and shape of each array, in the order of `State`.
    """
    arrays = []
    for offset, kind, shape in views.values():
        size = int(np.prod(shape)) * kind.itemsize
        arrays.append(block[offset : offset + size].view(kind).reshape(shape))

    return State(*arrays)


class Bodies(NamedTuple):
    """Shapes of all bodies; rebuilt when bodies are added or removed.

    Attributes
    ----------
    part_start : (n + 1,) int64
        Row i owns the polygons part_start[i] … part_start[i + 1] − 1.
    vert_start : (n_parts + 1,) int64
        Polygon p owns the corners vert_start[p] … vert_start[p + 1] − 1.
    verts : (n_verts, 2) float64
        Corners in the body frame, m.
    radius : (n,) float64
        Distance from the body's origin to its farthest corner, m.
    inner : (n,) float64
        Length of a move below which the body cannot pass through anything, m.
    order : (n,) int64
        Rows in the order in which they move (by name).
    world : (n_verts, 2) float64
        Corners in the world after the moves of the last step, m; rewritten by every step.
    turn : (n_parts,) float64
        1 for a convex polygon with counter-clockwise corners, −1 for a convex one with
        clockwise corners, 0 for any other.
    edge : (n_verts,) float64
        1 / length of the edge that ends at each corner, 1/m; 0 for an edge without length.
    wheels : (n, 2) float64
        Diameter of the right wheel divided by the left one's, and half the track width (of
        four wheels: `Kinematics.lever`), m: sources of odometry errors.
    drift : (n, 4) float64
        Random errors of odometry, α1 … α4 of `botyard.engine.kernels.odometry`: rad²/rad,
        rad²/m, m²/m, m²/rad.
    slips : (n, 10) float64 or (0, 10) float64
        Matrix from a displacement to its odometry, row by row, and `SLIDE`. Without a body
        whose wheels slip or differ it has no rows.
    train : (n, 2) int64 or (0, 2) int64
        Body in front of a trailer, and trailer behind a body, see `LEADER`. Without a
        trailer it has no rows.
    hitch : (n, 3) float64 or (0, 3) float64
        Hitch in front of each trailer, see `HITCH`; rows as in `train`.
    trail : (n, 6) float64 or (0, 6) float64
        Workspace of a step: pose of a trailer after a motion of its head, m, m, rad, and its
        body twist, m, m, rad; rows as in `train`.
    exact : (n,) int8
        1: ramps are integrated exactly, see `botyard.engine.kernels.motion`.
    lead : (n, 3) float64
        Displacement of this step beyond the final velocity times dt, for exact ramps, m, m,
        rad. Workspace of a step.
    feels : (n,) int8
        Bit 0: each step writes `State.contact` of the body, which stays 0 without this
        bit. Bit 1: each step writes `Bins.met` of the body.
    placed : (n, 6) float64
        Pose for which `world` holds each body's corners: x, y, heading, its cosine and
        sine; and its `State.mask` then. NaN: not yet.
    leeway : (n,) float64
        Lower bound of the distance, m, that a body and any other together can travel before
        it touches anything.
    scratch : (max_verts, 2) float64
        Workspace for the corners of one body.
    near : (n,) int64
        Workspace for the bodies near a moving one.
    ground : (n, 3) float64 or (0, 3) float64
        Effects of the floor on each body in this step, see `SPEED`. Workspace of a step; it
        has no rows unless a zone of the floor acts on robots.
    """

    part_start: I8
    vert_start: I8
    verts: F8
    radius: F8
    inner: F8
    order: I8
    world: F8
    turn: F8
    edge: F8
    wheels: F8
    drift: F8
    slips: F8
    train: I8
    hitch: F8
    trail: F8
    exact: I1
    lead: F8
    feels: I1
    placed: F8
    leeway: F8
    scratch: F8
    near: I8
    ground: F8


class Grid(NamedTuple):
    """Static world: segments sorted into square cells.

    It also has the free space around each cell.

    Attributes
    ----------
    x0, y0 : float
        World coordinates of the lower left corner, m.
    h : float
        Edge of a cell, m.
    nx, ny : int
        Number of cells.
    start : (nx·ny + 1,) int32
        Cell c = iy·nx + ix owns the entries start[c] … start[c + 1] − 1.
    seg : (k, 4) float64
        Entries: start point and vector to the end point, in cells from the lower left
        corner.
    mask : (k,) uint16
        `Visible` classes of each entry.
    bright : (k,) int16
        Laser return of each entry.
    plain : bool
        Whether all entries are ordinary: of every class, with laser return 1 (as in map
        files).
    clear : (4, ny, nx) uint8
        For each quadrant of directions (bit 0: towards +x, bit 1: towards +y) the edge, in
        cells, of the largest empty square that has this cell in its near corner; 0: the
        cell has entries.
    clear_flat : (4·ny·nx,) uint8
        The same array in one row.
    near : (k,) int32
        Workspace for the entries near a moving body.
    wall_cell, wall_half : float
        Edge of a wide cell, and greatest extent of a wall in it beyond its middle, in cells.
    wall_nx, wall_ny : int
        Number of wide cells.
    wall_start : (wall_nx·wall_ny + 2,) int32
        Wide cell c = iy·wall_nx + ix owns the walls wall_start[c] … wall_start[c + 1] − 1.
        The last list has the walls that extend farther than `wall_half`.
    walls : (4, w) float64
        Each wall once, in the wide cell of its middle: start point and vector to the end
        point, as in `seg`, and `WALL_LANES` infinite ones. Without any, beams walk the grid.
    zones : (z, 7) float64
        Zones of the floor that act on robots: bounds x0, y0, x1, y1, m; speed limit, m/s,
        infinite without one; slip and odometry scale, NaN without one.
    zone_start : (z + 1,) int64
        Zone k owns the corners zone_start[k] … zone_start[k + 1] − 1.
    zone_verts : (k, 2) float64
        Corners of the zones, m.
    """

    x0: float
    y0: float
    h: float
    nx: int
    ny: int
    start: I4
    seg: F8
    mask: U2
    bright: I2
    plain: bool
    clear: U1
    clear_flat: U1
    near: I4
    wall_cell: float
    wall_half: float
    wall_nx: int
    wall_ny: int
    wall_start: I4
    walls: F8
    zones: F8
    zone_start: I8
    zone_verts: F8


class Bins(NamedTuple):
    """Bodies sorted into coarse square cells by position; rebuilt in every step.

    Attributes
    ----------
    frame : (3,) float64
        World coordinates of the lower left corner, m, and cells per metre.
    shape : (2,) int64
        Number of cells in x and y in use.
    start : (max_cells + 1,) int64
        Cell c = iy·shape[0] + ix owns the entries start[c] … start[c + 1] − 1.
    rows : (n,) int64
        Rows sorted by cell.
    at : (n, 3) float64
        Position and radius of each of `rows`, m. They are adjacent, because a search reads
        many. Positions follow the moves.
    slot : (n,) int64
        Index in `rows` of each row.
    classes : (n,) uint16
        `State.mask` of each of `rows`.
    seen : (1,) uint16
        Union of the classes: sensors skip a class that no body has.
    cell : (n,) int64
        Cell of each row.
    reach : (3,) float64
        Greatest radius of a body, greatest distance of a move in this step, and greatest
        distance of a move in this or the previous step, m.
    met : (n,) int64
        Obstacle that last stopped each body: row of a body or `WALL`; `NO_BODY` for a
        stalled body with mass on which nothing presses. See `Bodies.feels`.
    """

    frame: F8
    shape: I8
    start: I8
    rows: I8
    at: F8
    slot: I8
    classes: U2
    seen: U2
    cell: I8
    reach: F8
    met: I8


class World(NamedTuple):
    """All arrays of a world, which kernels take as one `Pack`.

    Attributes
    ----------
    state : State
        Dynamic state of all bodies.
    bodies : Bodies
        Shapes of the bodies.
    bins : Bins
        Bodies by position.
    grid : Grid
        Static world.
    """

    state: State
    bodies: Bodies
    bins: Bins
    grid: Grid
