"""Participants in a step of bodies with mass: roles of bodies, and movers nearby.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.bins import (
    bin_span,
)
from botyard.engine.kernels.broadphase import (
    OBSTACLE,
    PUSHED,
)
from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.polygons import (
    length,
)
from botyard.engine.layout import (
    F8,
    FORCE,
    MOTORS,
    POSE,
    TWIST,
)
from botyard.engine.masslayout import (
    ASLEEP,
    AWAKE,
    MASS,
    MOVER,
    NOTHING,
    MassShapes,
    MassState,
    Moving,
    Workspace,
)

MOVER_RANGE = 0.1
"""Distance from a body with mass within which movers take part in the step, m."""
MAX_DRAG = 1.0
"""Distance per step up to which a held body pushes things in its path, m.

A body that is moved farther is teleported.
"""
SOLID = OBSTACLE | PUSHED
"""`Visible` classes of bodies that stop others or are pushed by them."""


@merged_kernel
def stands_elsewhere(row: F8, k: int, pose: F8) -> bool:
    """Return whether row `k` of two arrays of poses differs; NaN differs from all.

    Parameters
    ----------
    row, pose : (n, 3) float64
        Poses: m, m, rad. They are compared bit for bit, as nothing else moves bodies.
    k : int
        Row of the body.
    """
    return not (
        row[k, 0] == pose[k, 0] and row[k, 1] == pose[k, 1] and row[k, 2] == pose[k, 2]
    )


@merged_kernel
def start_pose(
    before: F8, pose: F8, seen: F8, held: bool, k: int
) -> tuple[float, float, float]:
    """Return the pose of a mover at the start of the step: m, m, rad.

    A held body is moved between two steps, so that it starts at the end of the last
    one.

    Parameters
    ----------
    before, pose, seen : (n, 3) float64
        Poses before bodies without mass moved, after it, and after the last step.
    held : bool
        Whether a source holds the body.
    k : int
        Row of the body.
    """
    # Only a held body starts at its last seen pose: others start where the engine's
    # move started.
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
    """Return the greatest distance that a body with mass can travel in this step, m.

    Pushes by other bodies are not included.

    Parameters
    ----------
    control : int
        `Control` of the body.
    demand : (n, 3) float64
        `State.demand`, of the kind in `control`.
    vel, before_vel : (n, 3) float64
        Velocities that the motors demand, and velocities before the step, m/s, m/s,
        rad/s.
    before : (n, 3) float64
        Poses before the step: m, m, rad.
    k : int
        Row of the body.
    mass : float
        Mass of the body, kg.
    dt : float
        Duration of the step, s.
    """
    # The sum of distances bounds the distance for each combination of directions.
    way = length(before_vel[k, 0], before_vel[k, 1]) * dt
    a, b = demand[k, 0], demand[k, 1]
    # The wheels bring the body at most to their own speed.
    if control == MOTORS:
        way += length(vel[k, 0], vel[k, 1]) * dt
    elif control == FORCE:
        # The force accelerates the body during the whole step.
        way += length(a, b) / mass * dt * dt
    # The body moves at the commanded velocity at once.
    elif control == TWIST:
        way += length(a, b) * dt
    elif control == POSE:
        # The controller moves the body to the pose, and may overshoot by as much.
        way += 2.0 * length(a - before[k, 0], b - before[k, 1])

    return way


@merged_kernel
def may_rest(control: int, demand: F8, vel: F8, k: int) -> bool:
    """Return whether nothing that drives a body demands motion.

    Parameters
    ----------
    control : int
        `Control` of the body.
    demand, vel : (n, 3) float64
        `State.demand`, and velocities that the motors demand.
    k : int
        Row of the body.
    """
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

    Parameters
    ----------
    m, shapes, mass
        See `step_masses`.
    work : Workspace
        Workspace of the step. Output: `kind`; `slot_of` is −1.
    dt : float
        Duration of the step, s.

    Returns
    -------
    tuple of (int, bool, bool, float, float)
        Number of bodies with mass; whether one is awake; whether another body has
        moved; the greatest distance of any body, m; the allowed distance of a body with
        mass in a substep, m.
    """
    masses, awake, moved, far, thin = 0, False, False, 0.0, math.inf
    for i in range(m.pose.shape[0]):
        work.slot_of[i], work.kind[i] = -1, NOTHING
        # A held body is moved by the user who holds it, whatever its mass.
        heavy, in_hand = shapes.values[i, MASS] > 0.0, m.held[i] == 1
        # The user moves a held body like a mover: its own velocity is lost.
        if heavy and in_hand:
            m.vel[i, 0] = m.vel[i, 1] = m.vel[i, 2] = 0.0

        # Skip ghosts, and bodies in a gripper.
        if int(m.mask[i]) & SOLID == 0:
            continue
        if heavy and not in_hand:
            masses += 1
            # The thinnest body determines the length of substeps.
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

            # The body came to rest, and has not been moved or driven since: it sleeps
            # until another body touches it.
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
            # The fastest mover determines how far to search for movers.
            far = max(far, length(m.pose[i, 0] - x, m.pose[i, 1] - y))

    return masses, awake, moved, far, thin


@kernel
def choose_movers(m: Moving, mass: MassState, work: Workspace, far: float) -> bool:
    """Mark bodies with mass, and movers near them, with the provisional slot 0.

    Parameters
    ----------
    m, mass
        See `step_masses`.
    work : Workspace
        Workspace of the step, with `kind`. In-place: `slot_of`.
    far : float
        Greatest distance of any body in this step, m.

    Returns
    -------
    bool
        Whether such a mover has moved.
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
        # Bins have positions from the start of the step: a mover may have left its
        # cell.
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
                # Slot 0 marks a mover that was already found near another body.
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
