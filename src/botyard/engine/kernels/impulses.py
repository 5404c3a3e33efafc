"""Impulses at the contacts of bodies with mass.

Impulses are found one contact after the other, in repeated rounds (sequential impulses;
Catto, "Iterative dynamics with temporal coherence", 2005). Along the normal they never
pull; along the edge they are limited by Coulomb's law. They start with the impulses of
the previous substep. A separate velocity removes overlaps. It is dropped afterwards, so
that it adds no energy. Allocates nothing; one thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.islands import (
    bound_islands,
    is_pusher,
    is_stopped,
    limit_islands,
)
from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.layout import (
    F8,
    I8,
)
from botyard.engine.masslayout import (
    AWAKE,
    AX,
    AY,
    BOUNCE,
    CX,
    CY,
    DEEPNESS,
    FT,
    FX,
    FY,
    GRIP,
    GW,
    GX,
    GY,
    II,
    IM,
    JN,
    JP,
    JT,
    JW,
    JX,
    JY,
    KG,
    KGM2,
    KIND,
    LF,
    LT,
    MN,
    MOST,
    MT,
    NX,
    NY,
    PUSH,
    PW,
    PX,
    PY,
    SOFT,
    TH,
    VX,
    VY,
    W,
    X,
    Y,
)
from botyard.numerics.exponentials import exp, log

SLOP = 5e-4
"""Allowed overlap of resting bodies, m, which keeps contacts from flickering."""
# This is enough for stacks of some bodies; larger stacks converge in the next substeps.
ITERATIONS = 20
"""Highest number of rounds over the impulses of a substep."""
CONVERGED = 1e-10
"""Change of velocity, m/s, below which impulses have converged."""
CORRECTION_RATE = 60.0 * log(1.0 / 0.9)
"""Rate at which overlaps are removed, 1/s: a tenth in 1/60 s."""
RESTITUTION_THRESHOLD = 0.01
"""Impact speed below which there is no restitution, m/s.

Otherwise a body that lies against something would never come to rest.
"""


@merged_kernel
def apply_impulse(
    slots: F8, a: int, b: int, touch: F8, t: int, jx: float, jy: float
) -> None:
    """Apply an impulse to the second body of a contact, and its opposite to the first.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`. In-place: velocities.
    a, b : int
        Slots of the contact.
    touch : (k, TOUCHES) float64
        `Workspace.touch`.
    t : int
        Row of the contact.
    jx, jy : float
        Impulse in world axes, N·s.
    """
    slots[a, VX] -= jx * slots[a, IM]
    slots[a, VY] -= jy * slots[a, IM]
    slots[a, W] -= slots[a, II] * (touch[t, AX] * jy - touch[t, AY] * jx)
    slots[b, VX] += jx * slots[b, IM]
    slots[b, VY] += jy * slots[b, IM]
    slots[b, W] += slots[b, II] * (touch[t, CX] * jy - touch[t, CY] * jx)


@merged_kernel
def relative_velocity(
    slots: F8, a: int, b: int, touch: F8, t: int
) -> tuple[float, float]:
    """Return the velocity of the second body relative to the first at a contact, m/s.

    It is in world axes.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`.
    a, b : int
        Slots of the contact.
    touch : (k, TOUCHES) float64
        `Workspace.touch`.
    t : int
        Row of the contact.
    """
    vx = (
        slots[b, VX]
        - slots[b, W] * touch[t, CY]
        - slots[a, VX]
        + slots[a, W] * touch[t, AY]
    )
    vy = (
        slots[b, VY]
        + slots[b, W] * touch[t, CX]
        - slots[a, VY]
        - slots[a, W] * touch[t, AX]
    )

    return vx, vy


@kernel
def prepare_impulses(
    slots: F8,
    flags: I8,
    count: int,
    touch: F8,
    ends: I8,
    touches: int,
    h: float,
    scale: float,
    pushed: bool,
    pinched: bool,
) -> None:
    """Prepare the impulses of a substep.

    Compute the speeds of restitution from the present velocities, then bound the impulses.
    After that, apply forces, and apply the impulses of the previous substep.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: velocities.
    count : int
        Number of slots in use.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`. In-place.
    touches : int
        Number of contacts.
    h : float
        Duration of a substep, s.
    scale : float
        Factor of the previous impulses: ratio of the durations of both substeps.
    pushed, pinched : bool
        See `find_islands`.
    """
    # The correction does not depend on the length of a substep: overlaps decay
    # exponentially.
    part = (1.0 - exp(-CORRECTION_RATE * h)) / h
    for t in range(touches):
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        im = slots[a, IM] + slots[b, IM]
        ra, rb = (
            touch[t, AX] * ny - touch[t, AY] * nx,
            touch[t, CX] * ny - touch[t, CY] * nx,
        )
        # The effective mass along the normal is the inverse of the change of speed per
        # impulse.
        touch[t, MN] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        ra, rb = (
            touch[t, AX] * nx + touch[t, AY] * ny,
            touch[t, CX] * nx + touch[t, CY] * ny,
        )
        touch[t, MT] = 1.0 / (im + slots[a, II] * ra * ra + slots[b, II] * rb * rb)
        # An overlap below the slop remains, so that resting contacts persist.
        touch[t, PUSH] = part * max(0.0, touch[t, DEEPNESS] - SLOP)
        vx, vy = relative_velocity(slots, a, b, touch, t)
        speed = vx * nx + vy * ny
        touch[t, BOUNCE] = (
            touch[t, SOFT] * speed if speed < -RESTITUTION_THRESHOLD else 0.0
        )
        # Store the class of the contact for `order_contacts`.
        ends[t, 3] = 1 if flags[a, KIND] == AWAKE and flags[b, KIND] == AWAKE else 2
        if is_pusher(slots, flags, a) or is_pusher(slots, flags, b):
            ends[t, 3] = 0

        # If the bodies separate, do not start from the impulse of the last step: it was
        # an impact, or the mover has been stopped.
        if (
            speed > RESTITUTION_THRESHOLD
            or is_stopped(flags, a)
            or is_stopped(flags, b)
        ):
            touch[t, JN] = touch[t, JT] = 0.0

    if pushed:
        bound_islands(slots, flags, touch, ends, touches, h, pinched)
    for s in range(count):
        if flags[s, KIND] == AWAKE:
            slots[s, VX] += slots[s, FX] * slots[s, IM] * h
            slots[s, VY] += slots[s, FY] * slots[s, IM] * h
            slots[s, W] += slots[s, FT] * slots[s, II] * h
            # Like contacts, friction of the floor starts with the impulse of the last
            # substep.
            if slots[s, LF] > 0.0:
                slots[s, JX], slots[s, JY], slots[s, JW] = (
                    slots[s, JX] * scale,
                    slots[s, JY] * scale,
                    slots[s, JW] * scale,
                )
                slots[s, VX] += slots[s, JX] * slots[s, IM]
                slots[s, VY] += slots[s, JY] * slots[s, IM]
                slots[s, W] += slots[s, JW] * slots[s, II]
            else:
                slots[s, JX] = slots[s, JY] = slots[s, JW] = 0.0

    for t in range(touches):
        nx, ny, jn, jt = touch[t, NX], touch[t, NY], touch[t, JN], touch[t, JT]
        if jn > touch[t, MOST]:
            # The bound may have fallen since the last substep; friction must fall with
            # it.
            jn = touch[t, JN] = touch[t, MOST]
            jt = touch[t, JT] = min(touch[t, GRIP] * jn, max(-touch[t, GRIP] * jn, jt))

        if jn != 0.0 or jt != 0.0:
            apply_impulse(
                slots,
                ends[t, 0],
                ends[t, 1],
                touch,
                t,
                jn * nx - jt * ny,
                jn * ny + jt * nx,
            )


@merged_kernel
def order_contacts(ends: I8, touches: int) -> None:
    """Write the order of contacts to the last column of `ends`.

    Contacts of moving movers come first, then of bodies with mass, then of standing
    things. Between a mover and a wall, or a standing mover, there may be no solution.
    In this case, the contact that is solved last is fulfilled, so that nothing is
    pressed through standing things. The bodies between the mover and the wall get
    closer in each substep until the mover counts as jammed.

    Parameters
    ----------
    ends : (k, 4) int64
        `Workspace.ends`. Column 3 has the group of each contact, 0 … 2. In-place:
        column 2.
    touches : int
        Number of contacts.
    """
    n = 0
    # Three passes over the few contacts replace a sort.
    for turn in range(3):
        for t in range(touches):
            if ends[t, 3] == turn:
                ends[n, 2] = t
                n += 1


@kernel
def solve_contacts(slots: F8, touch: F8, ends: I8, touches: int) -> bool:
    """Process all contacts once; return whether an impulse has changed a velocity.

    Parameters
    ----------
    slots : (p, SLOTS) float64
        `Workspace.slots`. In-place: velocities, and velocities that remove overlaps.
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`. In-place: impulses, N·s.
    touches : int
        Number of contacts.
    """
    changed = False
    for n in range(touches):
        t = ends[n, 2]
        a, b = ends[t, 0], ends[t, 1]
        nx, ny = touch[t, NX], touch[t, NY]
        # Remove the overlap of the two bodies.
        if touch[t, PUSH] > 0.0:
            ra, rb = (
                touch[t, AX] * ny - touch[t, AY] * nx,
                touch[t, CX] * ny - touch[t, CY] * nx,
            )
            speed = (
                (slots[b, PX] - slots[a, PX]) * nx
                + (slots[b, PY] - slots[a, PY]) * ny
                + slots[b, PW] * rb
                - slots[a, PW] * ra
            )
            was = touch[t, JP]
            # Clamp the sum of impulses and not each impulse, because a later round may
            # take a part of it back.
            touch[t, JP] = max(0.0, was + (touch[t, PUSH] - speed) * touch[t, MN])
            j = touch[t, JP] - was
            # Compare relative to the effective mass, so that the bound is a velocity.
            changed |= abs(j) > CONVERGED * touch[t, MN]
            slots[a, PX] -= j * nx * slots[a, IM]
            slots[a, PY] -= j * ny * slots[a, IM]
            slots[a, PW] -= j * ra * slots[a, II]
            slots[b, PX] += j * nx * slots[b, IM]
            slots[b, PY] += j * ny * slots[b, IM]
            slots[b, PW] += j * rb * slots[b, II]

        vx, vy = relative_velocity(slots, a, b, touch, t)
        was, was_t = touch[t, JN], touch[t, JT]
        # Contacts push bodies apart, but never pull them together.
        touch[t, JN] = min(
            touch[t, MOST],
            max(0.0, was - (vx * nx + vy * ny + touch[t, BOUNCE]) * touch[t, MN]),
        )

        # Along the edge, Coulomb's law limits friction.
        most = touch[t, GRIP] * touch[t, JN]
        touch[t, JT] = min(most, max(-most, was_t - (vy * nx - vx * ny) * touch[t, MT]))
        jn, jt = touch[t, JN] - was, touch[t, JT] - was_t
        if jn != 0.0 or jt != 0.0:
            changed |= (
                abs(jn) > CONVERGED * touch[t, MN] or abs(jt) > CONVERGED * touch[t, MT]
            )
            apply_impulse(slots, a, b, touch, t, jn * nx - jt * ny, jn * ny + jt * nx)

    return changed


@kernel
def solve_floor_friction(slots: F8, flags: I8, count: int, h: float) -> bool:
    """Process the friction of all bodies on the floor, or of their wheels, once.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`. In-place: impulses of the floor, and
        velocities.
    count : int
        Number of slots in use.
    h : float
        Duration of a substep, s.

    Returns
    -------
    bool
        Whether an impulse has changed a velocity.
    """
    changed = False
    for s in range(count):
        # Bodies without friction, such as on air cushions, glide on.
        if flags[s, KIND] != AWAKE or slots[s, LF] == 0.0:
            continue
        most, most_w, m, inertia = (
            slots[s, LF] * h,
            slots[s, LT] * h,
            slots[s, KG],
            slots[s, KGM2],
        )
        jx, jy = (
            slots[s, JX] + (slots[s, GX] - slots[s, VX]) * m,
            slots[s, JY] + (slots[s, GY] - slots[s, VY]) * m,
        )
        size = math.sqrt(jx * jx + jy * jy)

        # Friction exceeds its bound, so the body slides.
        if size > most:
            jx, jy = jx * (most / size), jy * (most / size)
        jw = min(
            most_w, max(-most_w, slots[s, JW] + (slots[s, GW] - slots[s, W]) * inertia)
        )
        dx, dy, dw = jx - slots[s, JX], jy - slots[s, JY], jw - slots[s, JW]
        changed |= abs(dx) + abs(dy) > CONVERGED * m or abs(dw) > CONVERGED * inertia
        slots[s, JX], slots[s, JY], slots[s, JW] = jx, jy, jw
        slots[s, VX] += dx * slots[s, IM]
        slots[s, VY] += dy * slots[s, IM]
        slots[s, W] += dw * slots[s, II]

    return changed


@kernel
def solve_impulses(
    slots: F8,
    flags: I8,
    count: int,
    touch: F8,
    ends: I8,
    touches: int,
    h: float,
    pushed: bool,
) -> None:
    """Find the impulses of a substep, then remove overlaps.

    At most `ITERATIONS` rounds are made.

    Parameters
    ----------
    slots, flags, count, touch, ends, touches, h, pushed
        See `prepare_impulses`, which comes before.
    """
    order_contacts(ends, touches)
    for _ in range(ITERATIONS):
        changed = solve_contacts(slots, touch, ends, touches)
        if not (solve_floor_friction(slots, flags, count, h) or changed):
            break

    # Only movers can add energy without bound.
    if pushed:
        limit_islands(slots, flags, touch, ends, touches, h)
    for s in range(count):
        if slots[s, PX] != 0.0 or slots[s, PY] != 0.0 or slots[s, PW] != 0.0:
            slots[s, X] += slots[s, PX] * h
            slots[s, Y] += slots[s, PY] * h
            slots[s, TH] += slots[s, PW] * h
            # Clear this velocity after its use: it must not become motion.
            slots[s, PX] = slots[s, PY] = slots[s, PW] = 0.0
