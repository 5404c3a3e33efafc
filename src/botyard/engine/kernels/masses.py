"""Step of bodies with mass (dynamic bodies) in substeps.

Forces, motors and controllers act on them, and contacts keep them apart. The other
bodies have moved before, as if bodies with mass did not exist. Here they are *movers*
(kinematic bodies): they move along the same path again, at constant speed, and push. A
mover whose overlap with a stuck body keeps growing is *jammed*: it stays in place, and
is stalled. Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.contacts import (
    Before,
    find_body_contacts,
    find_wall_contacts,
)
from botyard.engine.kernels.drives import (
    apply_demands,
    integrate,
    place,
)
from botyard.engine.kernels.impulses import (
    prepare_impulses,
    solve_impulses,
)
from botyard.engine.kernels.islands import (
    find_islands,
)
from botyard.engine.kernels.jams import (
    JAM_DEPTH,
    jam_movers,
    note_contacts,
)
from botyard.engine.kernels.jit import (
    entry_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.massresults import (
    end_rows,
    end_step,
    keep_resting,
)
from botyard.engine.kernels.neighbours import (
    find_pairs,
    find_walls,
    lists_are_valid,
    wake_touched,
)
from botyard.engine.kernels.participants import (
    choose_movers,
    classify_rows,
    farthest_way,
)
from botyard.engine.kernels.slots import (
    fill_slots,
)
from botyard.engine.layout import (
    U8,
)
from botyard.engine.masslayout import (
    ASLEEP,
    AWAKE,
    ISLAND,
    JN,
    JT,
    LIMIT,
    LIST_TH,
    LIST_X,
    LIST_Y,
    MASS,
    MORE_PAIRS,
    MORE_TOUCHES,
    MORE_WALLS,
    OK,
    PUSHED,
    SPEED,
    TH,
    Impulses,
    MassShapes,
    MassState,
    Moving,
    Walls,
    Workspace,
    X,
    Y,
)
from botyard.model.dynamics import (
    SUBSTEP,
)

MAX_SUBSTEPS = 1000
"""Highest number of substeps at any speed: very fast bodies may pass through things."""


@merged_kernel
def make_lists(walls: Walls, work: Workspace, count: int) -> tuple[int, int]:
    """List the pairs of slots and the walls that are near each other now.

    Parameters
    ----------
    walls : Walls
        Static world.
    work : Workspace
        Workspace of the step. In-place: `pair`, `wall`, and poses for which the lists
        hold.
    count : int
        Number of slots in use.

    Returns
    -------
    tuple of int
        Number of pairs, and `OK` or the array that is too small.
    """
    slots = work.slots
    pairs = find_pairs(
        slots, work.flags, count, work.rank, work.item, work.pair, work.pair_item
    )
    # The host enlarges the workspace and repeats the step.
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

    Parameters
    ----------
    work, shapes, uid, count, pairs, before
        See `find_body_contacts`.

    Returns
    -------
    int
        Number of contacts; −1 if the array is too small.
    """
    touches, o = find_body_contacts(work, shapes, uid, count, pairs, before)
    if touches < 0:
        return -1
    return find_wall_contacts(work, shapes, uid, count, touches, before, o)


@merged_kernel
def recall_impulses(table: Impulses, work: Workspace) -> None:
    """Copy the contacts of the last step for warm starting of the first substep.

    Parameters
    ----------
    table : Impulses
        Contacts of the last step.
    work : Workspace
        Workspace of the step. Output: `old_key` and `old`.
    """
    for t in range(table.size[0]):
        for k in range(3):
            work.old_key[t, k] = table.key[t, k]
        work.old[t, 0], work.old[t, 1] = table.impulse[t, 0], table.impulse[t, 1]


@merged_kernel
def keep_impulses(work: Workspace, touches: int, pushed: bool) -> None:
    """Copy the contacts of a substep for warm starting of the next one.

    Impulses of an island at its bounds start from 0: see `limit_islands`.

    Parameters
    ----------
    work : Workspace
        Workspace of the step. Output: `old_key` and `old`.
    touches : int
        Number of contacts.
    pushed : bool
        Whether a mover pushes an island, see `find_islands`.
    """
    for t in range(touches):
        for k in range(3):
            work.old_key[t, k] = work.key[t, k]
        work.old[t, 0], work.old[t, 1] = work.touch[t, JN], work.touch[t, JT]

    if pushed:
        for t in range(touches):
            for side in range(2):
                if work.flags[work.flags[work.ends[t, side], ISLAND], PUSHED] == 2:
                    work.old[t, 0] = work.old[t, 1] = 0.0


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
    """Run all substeps in the workspace.

    Each substep has drives, new poses, contacts there (broad phase, narrow phase), and
    impulses.

    Parameters
    ----------
    m, walls, shapes, table, work
        See `step_masses`. In-place: `work`, and at the end `table`.
    count : int
        Number of slots in use.
    substeps : int
        Number of substeps, at least 1.
    dt : float
        Duration of the step, s.

    Returns
    -------
    int
        `OK`, or the array of the workspace that is too small.
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
    # The last substep of the step before may have had another length.
    h, last_h, last_touches = dt / substeps, table.span[0], table.size[0]
    pairs, touches = 0, 0
    recall_impulses(table, work)

    for s in range(count):
        # An infinite coordinate marks a slot without lists of pairs and walls.
        slots[s, LIST_X] = math.inf
        slots[s, LIMIT] = JAM_DEPTH + 1.5 * slots[s, SPEED] * h
        # Bodies at rest do not move below, but need corners for contacts.
        place(slots, flags, s, piece_start, corner_start, local, corners)

    for k in range(substeps):
        apply_demands(slots, flags, count, h)
        integrate(
            slots,
            flags,
            count,
            h,
            # Divide instead of adding: in the last substep the movers are then exactly
            # at their ends.
            (k + 1) / substeps,
            piece_start,
            corner_start,
            local,
            corners,
        )

        # A list of pairs stays valid for several substeps.
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

        # Jam movers before the impulses: a body that cannot move away must never get
        # the speed of a mover that is stopped.
        if pushed:
            jam_movers(slots, flags, count, touch, ends, touches, k, substeps)
        prepare_impulses(
            slots, flags, count, touch, ends, touches, h, scale, pushed, pinched
        )
        solve_impulses(slots, flags, count, touch, ends, touches, h, pushed)
        last_h, last_touches = h, touches
        keep_impulses(work, touches, pushed)

    # The impulses are part of the state, so that a restored world continues with the
    # same bits.
    table.size[0], table.span[0] = touches, h
    for t in range(touches):
        for k in range(3):
            table.key[t, k] = work.old_key[t, k]
        table.impulse[t, 0], table.impulse[t, 1] = work.old[t, 0], work.old[t, 1]

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
    """Move all bodies with mass by a step.

    The other bodies have moved before. Movers that could not push them are set back.

    Parameters
    ----------
    m : Moving
        Arrays of the world. In-place: poses, velocities, contacts, stalls.
    walls : Walls
        Static world.
    shapes : MassShapes
        Masses and convex pieces of all bodies.
    mass : MassState
        State of bodies with mass. In-place.
    table : Impulses
        Contacts of the last substep. In-place.
    work : Workspace
        Workspace.
    dt : float
        Duration of the step, s.

    Returns
    -------
    int
        `OK`, `LOST_SOME`, or the array of `work` that is too small (`MORE_SLOTS` …).
        Nothing has changed then, and the caller must call again with more room.
    """
    # Classify the rows first, because in most steps all bodies with mass are at rest.
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
    # Substeps are so short that no body can pass through another in a single one.
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
        # The small tolerance keeps rounding from adding a substep.
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
    """Run `step_masses`, for calls from Python.

    Parameters
    ----------
    m, walls, shapes, mass, table, work, dt
        See `step_masses`.
    """
    return step_masses(m, walls, shapes, mass, table, work, dt)
