"""Islands of bodies with mass, and bounds on the impulses that movers give them.

A mover cannot yield. Between two movers, or between a mover and a wall, no impulses
fulfil all conditions: they would grow with each round. Three rules keep them finite.
The impulse of a moving mover is bounded by the impulse that the bodies in front of it
need (`bound_islands`). A mover makes no body faster than an elastic impact does, and an
island that reaches a bound starts the next substep without impulses (`limit_islands`).
A mover that presses into something that does not yield is stopped
(`botyard.engine.kernels.jams`). A slot is a row of `Workspace.slots`: a body that takes
part in the step. Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.polygons import length
from botyard.engine.layout import (
    F8,
    I8,
    MOTORS,
)
from botyard.engine.masslayout import (
    ANCHOR,
    AWAKE,
    AX,
    AY,
    CONTROL,
    COUNTED,
    DEEP,
    DEEPNESS,
    FT,
    FX,
    FY,
    HEFT,
    II,
    IM,
    ISLAND,
    JAMMED,
    JN,
    KG,
    KGM2,
    KIND,
    LF,
    LT,
    MOST,
    MOVER,
    PUSHED,
    SHOVE,
    SPEED,
    TOP,
    VX,
    VY,
    R,
    W,
)

IMPACT_RATIO = 2.0
"""Highest speed of a body that a mover pushes from rest, as a ratio to the mover's speed.

It is the ratio after an elastic impact of an infinite mass.
"""
MAX_LEVERAGE = 4.0
"""Highest impulse of a mover, relative to the necessary one.

The necessary impulse brings all pushed bodies to their highest speed against forces.
Through levers and wedges, a mover needs more than that.
"""


@merged_kernel
def is_pusher(slots: F8, flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that moves now.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`.
    s : int
        Slot: row of `slots` and `flags`.
    """
    return flags[s, KIND] == MOVER and slots[s, SPEED] > 0.0 and flags[s, JAMMED] < 0


@merged_kernel
def is_stopped(flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that was jammed in this step.

    Parameters
    ----------
    flags : (p, FLAGS) int64
        `Workspace.flags`.
    s : int
        Slot: row of `slots` and `flags`.
    """
    return flags[s, KIND] == MOVER and flags[s, JAMMED] >= 0


@merged_kernel
def contact_velocity(
    slots: F8, s: int, touch: F8, t: int, side: int
) -> tuple[float, float]:
    """Return the velocity of one slot at a contact, in world axes, m/s.

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
    ax, ay = touch[t, AX + 2 * side], touch[t, AY + 2 * side]
    return slots[s, VX] - slots[s, W] * ay, slots[s, VY] + slots[s, W] * ax


@merged_kernel
def island_of(flags: I8, s: int) -> int:
    """Return the slot that represents the island of a slot.

    Parameters
    ----------
    flags : (p, FLAGS) int64
        `Workspace.flags`. Each slot refers to another one of its island, or to itself.
    s : int
        Slot: row of `slots` and `flags`.
    """
    # The search needs no path compression, because islands of few bodies are shallow.
    while flags[s, ISLAND] != s:
        s = flags[s, ISLAND]
    return s


@merged_kernel
def energy_speed2(slots: F8, s: int, vx: float, vy: float, w: float) -> float:
    """Return the square of the speed that a body would have with the same energy but no
    rotation.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`.
    s : int
        Slot of a body with mass.
    vx, vy, w : float
        Velocity of the body's centre of mass: m/s, m/s, rad/s.

    Returns
    -------
    float
        Square of the speed, m²/s².
    """
    return vx * vx + vy * vy + w * w * slots[s, KGM2] * slots[s, IM]


@kernel
def find_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int
) -> tuple[bool, bool]:
    """Find the islands: groups of bodies with mass that touch each other.

    The search runs over contacts only, because few bodies touch anything.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place, at slots with contacts: the
        island of each, and at the slot that represents an island the deepest overlap at
        all its contacts, also with walls and movers.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`.
    touches : int
        Number of contacts.

    Returns
    -------
    tuple of bool
        Whether a mover that moves, or was stopped in this step, touches a body;
        otherwise nothing is written. Whether an island is pinched: it touches two
        things that cannot yield, movers or walls.
    """
    pushed = False
    for t in range(touches):
        a, b = ends[t, 0], ends[t, 1]
        if (
            is_pusher(slots, flags, a)
            or is_pusher(slots, flags, b)
            or is_stopped(flags, a)
            or is_stopped(flags, b)
        ):
            pushed = True
            break

    if not pushed:
        return False, False
    pinched = False
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            # Reset only slots with contacts, because other slots are never read.
            flags[s, ISLAND], flags[s, ANCHOR] = s, -1
            flags[s, COUNTED] = flags[s, PUSHED] = 0
            slots[s, DEEP] = slots[s, HEFT] = slots[s, SHOVE] = slots[s, TOP] = 0.0

    for t in range(touches):
        if flags[ends[t, 0], KIND] == AWAKE and flags[ends[t, 1], KIND] == AWAKE:
            a, b = island_of(flags, ends[t, 0]), island_of(flags, ends[t, 1])
            # Join two islands; the lower slot represents both.
            flags[max(a, b), ISLAND] = min(a, b)

    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] == AWAKE:
                i = flags[s, ISLAND] = island_of(flags, s)
                slots[i, DEEP] = max(slots[i, DEEP], touch[t, DEEPNESS])
                # The other body is a mover or a wall, that is, an anchor; all walls
                # count as one.
                if flags[other, KIND] != AWAKE:
                    # An island with a single anchor can move away from it, so only a
                    # second anchor pinches it.
                    pinched |= flags[i, ANCHOR] >= 0 and flags[i, ANCHOR] != other
                    flags[i, ANCHOR] = other

    return True, pinched


@kernel
def bound_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int, h: float, pinched: bool
) -> None:
    """Bound speeds of pushed islands, and impulses of moving movers at pinched ones.

    Call it after `find_islands`, before forces and impulses are applied. The highest
    speed of an island's bodies is `IMPACT_RATIO` times the speed of the fastest mover
    at a contact with the island, or their highest speed after forces and before the
    contacts. A stopped mover gives nothing.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place, for each island: whether a
        mover that moves, or was stopped in this step, touches it; the square of the
        highest speed of its bodies.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`. In-place: the greatest impulse of a
        mover.
    touches : int
        Number of contacts.
    h : float
        Duration of a substep, s.
    pinched : bool
        Result of `find_islands`; only then impulses are bounded.
    """
    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] != AWAKE:
                continue
            i = flags[s, ISLAND]
            if flags[s, COUNTED] == 0:
                flags[s, COUNTED] = 1
                slots[i, TOP] = max(
                    slots[i, TOP],
                    energy_speed2(
                        slots,
                        s,
                        slots[s, VX] + slots[s, FX] * slots[s, IM] * h,
                        slots[s, VY] + slots[s, FY] * slots[s, IM] * h,
                        slots[s, W] + slots[s, FT] * slots[s, II] * h,
                    ),
                )

                if pinched:
                    force = length(slots[s, FX], slots[s, FY])
                    torque = abs(slots[s, FT])
                    slots[i, HEFT] += slots[s, KG]
                    slots[i, SHOVE] += (slots[s, LF] + force + torque / slots[s, R]) * h

            if is_pusher(slots, flags, other):
                vx, vy = contact_velocity(slots, other, touch, t, 1 - side)
                flags[i, PUSHED] = 1
                slots[i, TOP] = max(
                    slots[i, TOP], IMPACT_RATIO * IMPACT_RATIO * (vx * vx + vy * vy)
                )
            elif is_stopped(flags, other):
                flags[i, PUSHED] = 1

    if not pinched:
        return
    for t in range(touches):
        for side in range(2):
            s, i = ends[t, side], flags[ends[t, 1 - side], ISLAND]
            if flags[i, KIND] == AWAKE and is_pusher(slots, flags, s):
                touch[t, MOST] = MAX_LEVERAGE * (
                    slots[i, HEFT] * math.sqrt(slots[i, TOP]) + slots[i, SHOVE]
                )


@kernel
def limit_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int, h: float
) -> None:
    """Remove energy of pushed islands that movers cannot have provided.

    Rounds of impulses leave such energy in a jam, and a body that bounces between two
    movers gains it. Marks islands with such energy, or with an impulse above the
    necessary one (`MAX_LEVERAGE`). Their impulses fulfil no conditions: the next
    substep must not start with them, because they would grow without bound.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: velocities, and marks of
        islands.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`.
    touches : int
        Number of contacts.
    h : float
        Duration of a substep, s.
    """
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            i = flags[s, ISLAND]
            if flags[s, KIND] != AWAKE or flags[i, PUSHED] == 0:
                continue
            # The impulse is larger than necessary to hold the island.
            if touch[t, JN] * MAX_LEVERAGE >= touch[t, MOST]:
                flags[i, PUSHED] = 2

            speed2 = energy_speed2(slots, s, slots[s, VX], slots[s, VY], slots[s, W])
            if speed2 <= slots[i, TOP]:
                continue
            most, speed = math.sqrt(slots[i, TOP]), math.sqrt(speed2)
            # The wheels of the body also accelerate the island.
            if flags[s, CONTROL] == MOTORS:
                reach = slots[s, LT] / math.sqrt(slots[s, KGM2] * slots[s, IM])
                most += (slots[s, LF] + reach) * slots[s, IM] * h
                if speed <= most:
                    continue

            part = most / speed
            slots[s, VX], slots[s, VY], slots[s, W] = (
                slots[s, VX] * part,
                slots[s, VY] * part,
                slots[s, W] * part,
            )
            flags[i, PUSHED] = 2
