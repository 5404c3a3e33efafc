"""Results of a step of bodies with mass, which are written to the state.

Allocates nothing; one thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import (
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.motion import (
    wrap,
)
from botyard.engine.kernels.polygons import (
    length,
)
from botyard.engine.layout import (
    F8,
    I8,
    MOTORS,
    NO_BODY,
    NO_DRIVE,
    WALL,
)
from botyard.engine.masslayout import (
    A1,
    A2,
    AGAINST,
    ASLEEP,
    CONTROL,
    DEPTH,
    JAMMED,
    JN,
    JX,
    KG,
    KGM2,
    KIND,
    LOST,
    LOST_SOME,
    MOVER,
    NOTHING,
    OK,
    OX,
    OY,
    QW,
    QX,
    QY,
    ROW,
    STH,
    SX,
    SY,
    TH,
    VX,
    VY,
    MassState,
    Moving,
    W,
    Workspace,
    X,
    Y,
)
from botyard.numerics.elementary import (
    cosine_sine,
    tan,
)

STALL_RATIO = 0.1
"""Fraction of the demanded speed below which a driven body is stalled."""
REST_DISTANCE = 1e-7
"""Displacement in a step below which a body is at rest, m and rad."""
REST_SPEED = 1e-6
"""Speed below which a body is at rest, m/s and rad/s: rounding after friction."""


@kernel
def end_mass(
    slots: F8,
    flags: I8,
    s: int,
    pose: F8,
    vel: F8,
    disp: F8,
    i: int,
    drives: bool,
    mass: MassState,
    dt: float,
) -> bool:
    """Write pose, velocity, displacement and wrench of a body with mass.

    Parameters
    ----------
    slots, flags : (p, SLOTS) float64, (p, FLAGS) int64
        `Workspace.slots` and `Workspace.flags`.
    s : int
        Slot of the body.
    pose, vel, disp : (n, 3) float64
        Columns of `State`. In-place: row `i`. A body without a drive has no
        displacement.
    i : int
        Row of the body.
    drives : bool
        Whether the body has a drive.
    mass : MassState
        State of bodies with mass. In-place: row `i`.
    dt : float
        Duration of the step, s.

    Returns
    -------
    bool
        Whether the motors of the body are stalled.
    """
    # After friction, a tiny velocity is a rounding error, with which the body would
    # never come to rest.
    if (
        slots[s, VX] * slots[s, VX] + slots[s, VY] * slots[s, VY]
        <= REST_SPEED * REST_SPEED
        and abs(slots[s, W]) <= REST_SPEED
    ):
        slots[s, VX] = slots[s, VY] = slots[s, W] = 0.0

    w = slots[s, W]
    th = wrap(slots[s, TH])
    c, sine = cosine_sine(th)
    ax, ay = (
        c * slots[s, OX] - sine * slots[s, OY],
        sine * slots[s, OX] + c * slots[s, OY],
    )
    x, y, turn = slots[s, X] - ax, slots[s, Y] - ay, wrap(th - slots[s, STH])
    dx, dy = x - slots[s, SX], y - slots[s, SY]
    way = length(dx, dy) + abs(turn)
    at_rest = (
        slots[s, VX] == 0.0 and slots[s, VY] == 0.0 and w == 0.0 and way < REST_DISTANCE
    )
    mass.resting[i] = 1 if at_rest and flags[s, KIND] != LOST else 0

    # A body that has not moved keeps its old pose: conversion to the centre of mass and
    # back would change its last bits.
    if flags[s, KIND] == LOST or way == 0.0:
        x, y, th = slots[s, SX], slots[s, SY], slots[s, STH]
    pose[i, 0], pose[i, 1], pose[i, 2] = x, y, th
    vx, vy = slots[s, VX] + w * ay, slots[s, VY] - w * ax
    vel[i, 0], vel[i, 1], vel[i, 2] = c * vx + sine * vy, c * vy - sine * vx, w
    # The change of momentum per time is the mean force of the whole step.
    mass.wrench[i, 0] = (slots[s, KG] * slots[s, VX] - slots[s, QX]) / dt
    mass.wrench[i, 1] = (slots[s, KG] * slots[s, VY] - slots[s, QY]) / dt
    mass.wrench[i, 2] = (slots[s, KGM2] * w - slots[s, QW]) / dt

    for k in range(3):
        mass.floor[i, k] = slots[s, JX + k]
    # Without a drive there are no odometry and no motors to stall.
    if not drives:
        return False

    # The twist that leads to the new pose is the logarithm of SE(2), see
    # `geometry.log`.
    c, sine = cosine_sine(slots[s, STH])
    along, across, half = c * dx + sine * dy, c * dy - sine * dx, 0.5 * turn
    # half·cot(half), near 0 by its series.
    cot = 1.0 - half * half / 3.0 if abs(half) < 1e-4 else half / tan(half)
    disp[i, 0], disp[i, 1], disp[i, 2] = (
        cot * along + half * across,
        cot * across - half * along,
        turn,
    )

    # Only motors can stall, not a body that is driven from outside.
    if flags[s, CONTROL] != MOTORS:
        return False
    wanted = length(slots[s, A1], slots[s, A2])
    # A robot that is commanded to crawl is not stalled by rounding.
    return wanted > 1e-3 and length(vx, vy) < STALL_RATIO * wanted


@merged_kernel
def hardest_touch(touch: F8, ends: I8, touches: int, s: int, count: int) -> int:
    """Return the slot that presses hardest on a slot.

    Parameters
    ----------
    touch, ends : (k, TOUCHES) float64, (k, 4) int64
        `Workspace.touch` and `Workspace.ends`.
    touches : int
        Number of contacts.
    s : int
        Slot in question.
    count : int
        Number of slots in use.

    Returns
    -------
    int
        The other slot; `count` for a wall, −1 if nothing presses.
    """
    found, hardest = -1, 0.0
    for t in range(touches):
        if (ends[t, 0] == s or ends[t, 1] == s) and touch[t, JN] > hardest:
            found, hardest = ends[t, 0] + ends[t, 1] - s, touch[t, JN]

    # All walls share one slot after the bodies.
    return min(found, count)


@kernel
def end_step(
    m: Moving,
    mass: MassState,
    work: Workspace,
    count: int,
    touches: int,
    substeps: int,
    dt: float,
) -> int:
    """Write the results of all participants to the state.

    Parameters
    ----------
    m, mass, work
        See `step_masses`. In-place: `m` and `mass`.
    count : int
        Number of slots in use.
    touches : int
        Number of contacts of the last substep.
    substeps : int
        Number of substeps.
    dt : float
        Duration of the step, s.

    Returns
    -------
    int
        `OK`, or `LOST_SOME` if a body was put back.
    """
    slots, flags, bits, answer = work.slots, work.flags, work.bits, OK
    for s in range(count):
        i, kind = flags[s, ROW], flags[s, KIND]
        if kind == MOVER:
            k = flags[s, JAMMED]
            # The mover got only this far: odometry and sensors must not see more.
            if k >= 0:
                m.pose[i, 0], m.pose[i, 1], m.pose[i, 2] = (
                    slots[s, X],
                    slots[s, Y],
                    wrap(slots[s, TH]),
                )
                # The mover was stopped after `k` of the substeps.
                part = k / substeps

                for axis in range(3):
                    m.disp[i, axis] *= part
                m.spin[i] *= part
                m.vel[i, 0] = m.vel[i, 1] = 0.0
                m.stall[i] = 1
                if int(m.feels[i]) & 2:
                    m.bin_met[i] = flags[flags[s, AGAINST], ROW]

            mass.depth[i] = slots[s, DEPTH]
            # The body's own move may have found contacts before.
            m.contact[i] |= bits[s]
        elif kind == ASLEEP:
            keep_resting(m, mass, i)
        else:
            if kind == LOST:
                answer = LOST_SOME
            m.stall[i] = (
                1
                if end_mass(
                    slots,
                    flags,
                    s,
                    m.pose,
                    m.vel,
                    m.disp,
                    i,
                    m.drive[i] != NO_DRIVE,
                    mass,
                    dt,
                )
                else 0
            )
            m.contact[i] = bits[s] if m.drive[i] != NO_DRIVE else np.uint64(0)

            if m.stall[i] == 1 and int(m.feels[i]) & 2:
                other = hardest_touch(work.touch, work.ends, touches, s, count)
                m.bin_met[i] = (
                    NO_BODY
                    if other < 0
                    else WALL
                    if other == count
                    else flags[other, ROW]
                )

    return answer


@merged_kernel
def keep_resting(m: Moving, mass: MassState, i: int) -> None:
    """Clear velocity, wrench and stall of a body with mass that slept through the step.

    Parameters
    ----------
    m, mass : Moving, MassState
        Arrays of the world. In-place: row `i`.
    i : int
        Row of the body.
    """
    m.stall[i] = 0
    for k in range(3):
        m.vel[i, k] = mass.wrench[i, k] = mass.floor[i, k] = 0.0


@kernel
def end_rows(m: Moving, mass: MassState, work: Workspace) -> None:
    """Write the poses of all bodies to `mass`, and clear values that do not apply to them.

    A body that is no mover has no overlap, and only an awake or sleeping body has a wrench.

    Parameters
    ----------
    m, mass, work
        See `step_masses`. In-place: `mass`. Bodies that are not solid get NaN, so that
        they count as new bodies when they become solid.
    """
    for i in range(m.pose.shape[0]):
        there = work.kind[i] != NOTHING
        # Skip bodies that are not movers, and movers without a body with mass near
        # them.
        if work.kind[i] != MOVER or work.slot_of[i] < 0:
            mass.depth[i] = 0.0

        # A held body with mass counts as a mover.
        if not there or work.kind[i] == MOVER:
            mass.resting[i] = 0
            for k in range(3):
                mass.wrench[i, k] = mass.floor[i, k] = 0.0

        for k in range(3):
            # NaN makes a body that returns count as a new body.
            mass.seen[i, k] = m.pose[i, k] if there else math.nan
