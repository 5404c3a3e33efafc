"""Touched sectors in a substep, and movers that press into things that cannot move.

A slot is a row of `Workspace.slots`: a body that takes part in the step.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.contactsectors import SECTORS
from botyard.engine.kernels.drives import (
    place_mover,
)
from botyard.engine.kernels.impulses import (
    SLOP,
)
from botyard.engine.kernels.islands import (
    contact_velocity,
    is_pusher,
)
from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.layout import (
    F8,
    I8,
    U8,
)
from botyard.engine.masslayout import (
    AGAINST,
    AWAKE,
    AX,
    AY,
    DEEP,
    DEEPNESS,
    DEPTH,
    FEELS,
    ISLAND,
    JAMMED,
    KIND,
    LIMIT,
    MOVER,
    NX,
    NY,
    OX,
    OY,
    VX,
    VY,
    C,
    S,
    W,
)
from botyard.numerics.elementary import (
    atan2,
)

JAM_DEPTH = 0.003
"""Overlap above which a mover is jammed, m.

The distance that it covers in 1.5 substeps is added. The overlap must also grow.
"""


@merged_kernel
def note_bearing(slots: F8, flags: I8, bits: U8, s: int, x: float, y: float) -> None:
    """Set the bit of the bearing at which a body is touched, as in `State.contact`.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`.
    bits : (p,) uint64
        `Workspace.bits`. In-place.
    s : int
        Slot: row of `slots` and `flags`.
    x, y : float
        Point of contact relative to the body's centre of mass, in world axes, m.
    """
    # Without `FEELS` no reader needs the bearing, and an arctangent is expensive.
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
    """Return whether a body would move into its partner in a contact if the partner stood
    still.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`.
    s : int
        Slot: row of `slots` and `flags`.
    touch : (k, TOUCHES) float64
        `Workspace.touch`.
    t : int
        Row of the contact.
    side : int
        0 if `s` is the first slot of the contact, 1 if it is the second one.
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
    them. A mover that moves out at all contacts of a pair is set free. A row of bodies
    spreads its overlap over all contacts, so that the deepest overlap of the island
    counts if the mover presses.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: depth of each mover's
        overlap; a jammed one is back at the start of the substep, at rest.
    count : int
        Number of slots in use.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`, sorted by pairs.
    touches : int
        Number of contacts.
    k, substeps : int
        Number of this substep, from 0 on, and number of all substeps.
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

            # A mover presses if its overlap is deeper than a resting contact. Unless it
            # was jammed before, the overlap must also be deeper than a substep
            # explains.
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
            # The overlap is deeper than a substep explains, and deeper than before: the
            # pushed body cannot move away.
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
    """Write the sectors in which all bodies are touched in this substep.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`.
    bits : (p,) uint64
        Output: `Workspace.bits`.
    count : int
        Number of slots in use.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`.
    touches : int
        Number of contacts.
    """
    for s in range(count):
        # A jammed mover keeps the contact sectors of the moment in which it jammed.
        if flags[s, KIND] != MOVER or flags[s, JAMMED] < 0:
            bits[s] = np.uint64(0)

    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            # Walls, standing movers, and movers that jammed before have no contact
            # sectors.
            if s < count and (flags[s, KIND] != MOVER or is_pusher(slots, flags, s)):
                note_bearing(
                    slots,
                    flags,
                    bits,
                    s,
                    touch[t, AX + 2 * side],
                    touch[t, AY + 2 * side],
                )
