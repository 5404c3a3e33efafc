"""Islands of bodies with mass that movers push: what movers can give them.

A mover cannot yield. Between two movers, or between a mover and a wall, no impulses
fulfil all conditions: they would grow with each round. Three rules keep them finite.
The impulse of a moving mover is bounded by the needs of the bodies before it
(`bound_islands`). A mover makes no body faster than an elastic impact does
(`limit_speeds`). A mover that presses into something that does not yield is stopped
(`botyard.engine.kernels.jams`).
Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.layout import (
    F8,
    I8,
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
    DRIVEN,
    FT,
    FX,
    FY,
    HEFT,
    IM,
    ISLAND,
    JAMMED,
    KG,
    KGM2,
    KIND,
    LF,
    LT,
    MOST,
    MOTORS,
    MOVER,
    SHOVE,
    SPEED,
    TOP,
    VX,
    VY,
    R,
    W,
)

IMPACT_RATIO = 2.0
"""Highest ratio of the speeds of a pushed body at rest and its mover.

It is the ratio of an elastic impact with an infinite mass.
"""
MAX_LEVERAGE = 4.0
"""Highest impulse of a mover, relative to the necessary one.

The necessary impulse brings all pushed bodies to their highest speed against forces.
Levers and wedges need more than one.
"""


@merged_kernel
def is_pusher(slots: F8, flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that moves now."""
    return flags[s, KIND] == MOVER and slots[s, SPEED] > 0.0 and flags[s, JAMMED] < 0


@merged_kernel
def is_stopped(flags: I8, s: int) -> bool:
    """Return whether a slot is a mover that was jammed in this step."""
    return flags[s, KIND] == MOVER and flags[s, JAMMED] >= 0


@merged_kernel
def contact_velocity(
    slots: F8, s: int, touch: F8, t: int, side: int
) -> tuple[float, float]:
    """Return the velocity of the first (`side` 0) or second slot at a contact, m/s.

    It is in world axes.
    """
    ax, ay = touch[t, AX + 2 * side], touch[t, AY + 2 * side]
    return slots[s, VX] - slots[s, W] * ay, slots[s, VY] + slots[s, W] * ax


@merged_kernel
def island_of(flags: I8, s: int) -> int:
    """Return the slot that represents the island of a slot."""
    while flags[s, ISLAND] != s:
        s = flags[s, ISLAND]
    return s


@merged_kernel
def energy_speed(slots: F8, s: int) -> float:
    """Return the speed at which a body has its kinetic energy without rotation, m/s."""
    w2 = slots[s, W] * slots[s, W] * slots[s, KGM2] * slots[s, IM]
    return math.sqrt(slots[s, VX] * slots[s, VX] + slots[s, VY] * slots[s, VY] + w2)


@kernel
def find_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int
) -> tuple[bool, bool]:
    """Find the islands: groups of bodies with mass that touch each other.

    Writes the deepest overlap at all contacts of an island, also with walls and movers,
    to the slot that represents it. The first result states whether a moving mover
    touches a body; otherwise nothing is written. The second one states whether an
    island is pinched: it touches two things that cannot yield, movers or walls. The
    search runs over contacts only, because few bodies touch anything.
    """
    pushed = False
    for t in range(touches):
        if is_pusher(slots, flags, ends[t, 0]) or is_pusher(slots, flags, ends[t, 1]):
            pushed = True
            break

    if not pushed:
        return False, False
    pinched = False
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            flags[s, ISLAND], flags[s, ANCHOR], slots[s, DEEP] = s, -1, 0.0

    for t in range(touches):
        if flags[ends[t, 0], KIND] == AWAKE and flags[ends[t, 1], KIND] == AWAKE:
            a, b = island_of(flags, ends[t, 0]), island_of(flags, ends[t, 1])
            # Union of two islands; the lower slot represents both.
            flags[max(a, b), ISLAND] = min(a, b)

    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] == AWAKE:
                i = flags[s, ISLAND] = island_of(flags, s)
                slots[i, DEEP] = max(slots[i, DEEP], touch[t, DEEPNESS])
                # A mover or a wall; all walls count as one.
                if flags[other, KIND] != AWAKE:
                    pinched |= flags[i, ANCHOR] >= 0 and flags[i, ANCHOR] != other
                    flags[i, ANCHOR] = other

    return True, pinched


@kernel
def bound_islands(
    slots: F8, flags: I8, touch: F8, ends: I8, touches: int, h: float
) -> None:
    """Bound the impulses of moving movers at pinched islands.

    Call it after forces were applied, and before impulses are found.

    Writes for each island: its mass; the impulse of all forces in this substep; the
    speed of the fastest mover at a contact with the island; the highest speed of its
    bodies afterwards. The latter is `IMPACT_RATIO` times the speed of that mover, or
    the highest speed of its bodies before the contacts.
    """
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            slots[s, HEFT] = slots[s, SHOVE] = slots[s, TOP] = slots[s, DRIVEN] = 0.0
            flags[s, COUNTED] = 0

    for t in range(touches):
        for side in range(2):
            s, other = ends[t, side], ends[t, 1 - side]
            if flags[s, KIND] == AWAKE and flags[s, COUNTED] == 0:
                i, flags[s, COUNTED] = flags[s, ISLAND], 1
                force = math.sqrt(
                    slots[s, FX] * slots[s, FX] + slots[s, FY] * slots[s, FY]
                )
                slots[i, HEFT] += slots[s, KG]
                slots[i, SHOVE] += (
                    slots[s, LF] + force + abs(slots[s, FT]) / slots[s, R]
                ) * h
                slots[i, TOP] = max(slots[i, TOP], energy_speed(slots, s))

            if flags[other, KIND] == AWAKE and is_pusher(slots, flags, s):
                i = flags[other, ISLAND]
                vx, vy = contact_velocity(slots, s, touch, t, side)
                speed = math.sqrt(vx * vx + vy * vy)
                slots[i, DRIVEN] = max(slots[i, DRIVEN], speed)
                slots[i, TOP] = max(slots[i, TOP], IMPACT_RATIO * speed)

    for t in range(touches):
        for side in range(2):
            s, i = ends[t, side], flags[ends[t, 1 - side], ISLAND]
            if flags[i, KIND] == AWAKE and is_pusher(slots, flags, s):
                touch[t, MOST] = MAX_LEVERAGE * (
                    slots[i, HEFT] * slots[i, TOP] + slots[i, SHOVE]
                )


@kernel
def limit_speeds(slots: F8, flags: I8, ends: I8, touches: int, h: float) -> None:
    """Remove energy of pushed bodies that movers cannot have provided.

    Rounds of impulses leave such energy in a jam.
    """
    for t in range(touches):
        for side in range(2):
            s = ends[t, side]
            if flags[s, KIND] == AWAKE and slots[flags[s, ISLAND], DRIVEN] > 0.0:
                most, speed = slots[flags[s, ISLAND], TOP], energy_speed(slots, s)
                if speed <= most:
                    continue
                # The wheels also accelerate it.
                if flags[s, CONTROL] == MOTORS:
                    reach = slots[s, LT] / math.sqrt(slots[s, KGM2] * slots[s, IM])
                    most += (slots[s, LF] + reach) * slots[s, IM] * h

                part = min(1.0, most / speed)
                slots[s, VX], slots[s, VY], slots[s, W] = (
                    slots[s, VX] * part,
                    slots[s, VY] * part,
                    slots[s, W] * part,
                )
