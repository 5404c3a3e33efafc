"""Motion of bodies without passing through anything (pioneer-protocol §11.3).

A robot moves along its arc until its outline would touch something. It then stays at
the last free place on the arc, and is stalled. The broad phase finds things near the
arc (`broadphase`). The narrow phase tests exact polygons against map segments and the
outlines of other bodies (`polygons`). Bodies move one after the other, in the order of
`Bodies.order`. Allocates nothing; runs in one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.broadphase import (
    OBSTACLE,
    clear_of_segments,
    leeway_among,
    near_bodies,
    near_segments,
)
from botyard.engine.kernels.contactsectors import contact_sectors
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.jit import (
    entry_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import arc, steers, wrap
from botyard.engine.kernels.outlines import place_corners
from botyard.engine.kernels.polygons import (
    CONTACT,
    length,
)
from botyard.engine.kernels.sweeps import Sweep, clearance, free_fraction
from botyard.engine.layout import (
    F8,
    I1,
    I8,
    SLIP,
    WALL,
    Bodies,
    Grid,
    World,
)
from botyard.numerics.elementary import cosine_sine

TRANSLATING = 2e-5
"""Speed up to which a robot only turns, m/s (§11.3)."""
NEAR = 4.0 * CONTACT
"""Distance from its obstacle within which a stopped body stays, m."""


@kernel
def stopped_by(grid: Grid, pose: F8, bodies: Bodies, sweep: Sweep, part: float) -> int:
    """Return the obstacle of a body: row of the nearest body, or `WALL`.

    A thing that the body does not approach counts only if the body touches nothing
    else, because a body that overlaps something may move away from it. All trials are
    made in one place of the loop, so that `clearance` is compiled once.

    Parameters
    ----------
    grid : Grid
        Static world.
    pose : (n, 3) float64
        Poses of all bodies: m, m, rad.
    bodies : Bodies
        Outlines. In-place: the order of `near`; `scratch` is workspace.
    sweep : Sweep
        Arc of the body, with the things near it.
    part : float
        Part of the arc at which the body touches its obstacle, 0 … 1.
    """
    near, nearest, met = bodies.near, math.inf, WALL
    for away in range(2):
        # Test all walls (−1) first, then each body.
        for n in range(-1, sweep.bodies):
            if n >= 0:
                near[0], near[n] = near[n], near[0]
            one = Sweep(
                sweep.row,
                sweep.x,
                sweep.y,
                sweep.cosine,
                sweep.sine,
                sweep.dx,
                sweep.dy,
                sweep.dth,
                sweep.segments if n < 0 else 0,
                0 if n < 0 else 1,
            )
            gap = clearance(grid, pose, bodies, one, part, NEAR, away == 0)
            if gap < nearest:
                nearest, met = gap, WALL if n < 0 else near[0]

        if nearest < NEAR:
            break

    return met


@merged_kernel
def is_blocked(world: World, pose: F8, row: int) -> bool:
    """Return whether a body touches something solid.

    Parameters
    ----------
    world : World
        Arrays of the world.
    pose : (n, 3) float64
        Poses of all bodies, m, m, rad, in place of `State.pose`.
    row : int
        Row of the body.
    """
    return touches(world, pose, row, pose[row, 0], pose[row, 1], pose[row, 2])


@merged_kernel
def touches(world: World, pose: F8, row: int, x: float, y: float, th: float) -> bool:
    """Return whether a body would touch something solid at a place.

    Parameters
    ----------
    world : World
        Arrays of the world.
    pose : (n, 3) float64
        Poses of all other bodies, m, m, rad.
    row : int
        Row of the body.
    x, y, th : float
        Place of the body, m, m, rad.
    """
    grid, bodies, bins = world.grid, world.bodies, world.bins
    radius = bodies.radius[row]
    n_segments, _ = near_segments(grid, x, y, radius)
    n_bodies = near_bodies(bodies, bins, row, x, y, radius)
    cosine, sine = cosine_sine(th)
    stays = Sweep(row, x, y, cosine, sine, 0.0, 0.0, 0.0, n_segments, n_bodies)
    return clearance(grid, pose, bodies, stays, 0.0, 0.0, False) <= 0.0


@entry_kernel
def find_blocked(world: World, pose: F8, rows: I8, found: I1) -> None:
    """Find the bodies that touch something solid, for callers outside of the step.

    Parameters
    ----------
    world : World
        Arrays of the world.
    pose : (n, 3) float64
        Poses of all bodies, m, m, rad, in place of `State.pose`: for trials of poses.
    rows : (k,) int64
        Rows of the bodies to test.
    found : (k,) int8
        Output: 1 for a body that touches something, otherwise 0.
    """
    for i in range(rows.shape[0]):
        found[i] = 1 if is_blocked(world, pose, rows[i]) else 0


@merged_kernel
def leads(bodies: Bodies, row: int) -> bool:
    """Return whether a body with exact ramps moves in a step that it ends at rest.

    Parameters
    ----------
    bodies : Bodies
        Shapes, with `lead` of this step.
    row : int
        Row of the body.
    """
    lead = bodies.lead
    return bool(
        (bodies.exact[row] == 1)
        & ((lead[row, 0] != 0.0) | (lead[row, 1] != 0.0) | (lead[row, 2] != 0.0))
    )


@merged_kernel
def move_body(world: World, row: int, dt: float) -> None:
    """Move one body with a velocity as far as it can.

    Its new place is valid immediately for the bodies that move after it: pose, `Bins.at`
    and `Bodies.world` change together.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place: the row of the body.
    row : int
        Row of the body.
    dt : float
        Duration of the step, s.
    """
    state, bodies, bins = world.state, world.bodies, world.bins
    pose, vel, disp, placed = state.pose, state.vel, state.disp, bodies.placed
    dx, dy, dth = vel[row, 0] * dt, vel[row, 1] * dt, vel[row, 2] * dt
    # Exact ramps move by the mean velocity of the step, not by its final one.
    if bodies.exact[row] == 1:
        dx, dy, dth = (
            dx + bodies.lead[row, 0],
            dy + bodies.lead[row, 1],
            dth + bodies.lead[row, 2],
        )

    # On a slippery floor the body moves by less than its wheels turn.
    if world.grid.zones.shape[0] > 0:
        grip = 1.0 - bodies.ground[row, SLIP]
        dx, dy, dth = dx * grip, dy * grip, dth * grip

    x, y, th = pose[row, 0], pose[row, 1], pose[row, 2]
    c, s = placed[row, 3], placed[row, 4]
    ax, ay = arc(dx, dy, dth)
    to_x, to_y, to_th = x + c * ax - s * ay, y + s * ax + c * ay, wrap(th + dth)
    to_c, to_s = cosine_sine(to_th)
    v0, v1 = (
        bodies.vert_start[bodies.part_start[row]],
        bodies.vert_start[bodies.part_start[row + 1]],
    )
    # Write the corners at the end of the arc in advance: nearly always the body gets
    # there.
    place_corners(bodies.verts, v0, v1, to_x, to_y, to_c, to_s, bodies.world, v0)
    fraction = 1.0

    # Turning is never stopped; otherwise a robot at a wall could not turn away
    # (COL-005). A blocked robot turns in place.
    translates = abs(vel[row, 0]) > TRANSLATING or abs(vel[row, 1]) > TRANSLATING
    if bodies.exact[row] == 1:
        translates = abs(dx) > TRANSLATING * dt or abs(dy) > TRANSLATING * dt

    if translates and int(state.mask[row]) & OBSTACLE:
        fraction = travel(world, Sweep(row, x, y, c, s, dx, dy, dth, 0, 0), to_x, to_y)
    else:
        # No obstacle stops this body, but other bodies may come nearer.
        state.contact[row] = np.uint64(0)
        bodies.leeway[row] -= bins.reach[2]

    state.stall[row] = 0
    disp[row, 0], disp[row, 1], disp[row, 2] = (
        dx * fraction,
        dy * fraction,
        dth * fraction,
    )

    # The body stops at its obstacle, and turns there.
    if fraction < 1.0:
        state.stall[row] = 1
        # A blocked robot has speed 0, from which its ramps start again (§11.3).
        vel[row, 0] = vel[row, 1] = 0.0
        # A body that steers cannot turn in place.
        if steers(int(state.drive[row])):
            vel[row, 2] = 0.0
            to_th = wrap(th + disp[row, 2])
            to_c, to_s = cosine_sine(to_th)
        else:
            state.spin[row] = dth - disp[row, 2]
        ax, ay = arc(disp[row, 0], disp[row, 1], disp[row, 2])
        to_x, to_y = x + c * ax - s * ay, y + s * ax + c * ay
        # The corners were written for the end of the arc, which a blocked body does not
        # reach.
        place_corners(bodies.verts, v0, v1, to_x, to_y, to_c, to_s, bodies.world, v0)

    pose[row, 0], pose[row, 1], pose[row, 2] = to_x, to_y, to_th
    slot = bins.slot[row]
    # Bins keep copies of positions in the order of cells, which suits the CPU cache.
    bins.at[slot, 0], bins.at[slot, 1] = to_x, to_y
    placed[row, 0], placed[row, 1], placed[row, 2], placed[row, 3], placed[row, 4] = (
        to_x,
        to_y,
        to_th,
        to_c,
        to_s,
    )


@merged_kernel
def travel(world: World, arc_ahead: Sweep, to_x: float, to_y: float) -> float:
    """Return the part of its arc that a body can travel, 0 … 1.

    If nothing solid is near, the arc is free without further tests. This is the case
    for most bodies in most steps.

    Parameters
    ----------
    world : World
        Arrays of the world. The body's corners in `Bodies.world` must belong to the end
        of the arc. In-place: `State.contact`, `Bodies.leeway` and `Bins.met` of the
        body.
    arc_ahead : Sweep
        Arc of the body; its counts of near things are not used.
    to_x, to_y : float
        End of the arc in the frame of the world, m.
    """
    grid, bodies, bins, pose, contact = (
        world.grid,
        world.bodies,
        world.bins,
        world.state.pose,
        world.state.contact,
    )
    row, leeway = arc_ahead.row, bodies.leeway
    way, others_way = length(arc_ahead.dx, arc_ahead.dy), bins.reach[2]

    # At the last search, no obstacle was near enough to be touched now.
    if leeway[row] > way + others_way:
        leeway[row] -= way + others_way
        contact[row] = np.uint64(0)
        return 1.0

    # No corner is farther than `radius` from any position on the arc.
    need = bodies.radius[row] + way + CONTACT
    to_wall = (
        wall_distance(
            grid.clear,
            grid.x0,
            grid.y0,
            grid.h,
            grid.nx,
            grid.ny,
            arc_ahead.x,
            arc_ahead.y,
        )
        - need
    )
    n_segments = 0

    # The clear squares of the grid do not rule out near walls.
    if to_wall <= 0.0:
        n_segments, nearest = near_segments(grid, arc_ahead.x, arc_ahead.y, need)
        to_wall = nearest - need

    # The end of the arc is tested first by quick tests that mostly succeed, unless the
    # body could jump over something.
    around = -1.0
    if way <= bodies.inner[row] and clear_of_segments(grid, bodies, row, n_segments):
        around = leeway_among(bodies, bins, row, to_x, to_y)
    leeway[row] = min(around, to_wall)
    if around >= 0.0:
        contact[row] = np.uint64(0)
        return 1.0

    # Make the list of near bodies only after the quick tests have failed, because it
    # costs more than they do.
    n_bodies = near_bodies(bodies, bins, row, arc_ahead.x, arc_ahead.y, need)
    sweep = Sweep(
        row,
        arc_ahead.x,
        arc_ahead.y,
        arc_ahead.cosine,
        arc_ahead.sine,
        arc_ahead.dx,
        arc_ahead.dy,
        arc_ahead.dth,
        n_segments,
        n_bodies,
    )
    fraction = free_fraction(grid, pose, bodies, sweep)

    # A body that has not moved touches the same things as before.
    if fraction > 0.0 or sweep.dth != 0.0 or contact[row] == np.uint64(0):
        contact[row] = np.uint64(0)
        # The body would touch its obstacle if it moved a little farther.
        if fraction < 1.0 and bodies.feels[row] & 1:
            # The search stops up to `CONTACT` before the obstacle.
            beyond = min(1.0, fraction + 1.5 * CONTACT / way)
            contact[row] = contact_sectors(grid, pose, bodies, sweep, beyond)

    if fraction < 1.0 and bodies.feels[row] & 2:
        bins.met[row] = stopped_by(
            grid, pose, bodies, sweep, min(1.0, fraction + 1.5 * CONTACT / way)
        )

    return fraction
