"""Ring buffers of delayed values, and the steps at which a device with a rate acts.

A value is available from the step at which it is due. Cycles are the steps of a rate.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel
from botyard.engine.layout import I8

CYCLE_EXCESS = 1.0 + 1e-12
"""Factor of rates that compensates for rounding.

A cycle that starts with a step belongs to that step, although a product of floats may
be slightly less.
"""
FIRST, COUNT = 0, 1
"""Header of a ring: index of its first used slot, and number of used slots."""
DUE, SINCE = 0, 1
"""Columns of a slot: step from which its value is available, and step at which it was
sent or measured.
"""


@inline_kernel
def delay_steps(latency: float, jitter: float, draw: float, dt: float) -> int:
    """Return a latency with jitter, rounded to steps.

    Parameters
    ----------
    latency, jitter : float
        Mean latency, and half-width of its uniform error, s.
    draw : float
        Random number in −1 … 1.
    dt : float
        Duration of a step, s.

    Returns
    -------
    int
        Number of steps, at least 0.
    """
    # Jitter may exceed the latency; a value never arrives before it is sent.
    return int(max(0.0, math.floor((latency + jitter * draw) / dt + 0.5)))


@inline_kernel
def is_slower(rate: float, dt: float) -> bool:
    """Return whether a rate has fewer cycles than there are steps.

    Parameters
    ----------
    rate : float
        Rate, Hz; 0 stands for a cycle in each step.
    dt : float
        Duration of a step, s.
    """
    # `&` instead of `and`: both sides are cheap, and the kernel gets no branch.
    return bool((rate > 0.0) & (rate * dt * CYCLE_EXCESS < 1.0))


@inline_kernel
def is_cycle(tick: int, rate: float, dt: float) -> bool:
    """Return whether a cycle of a rate falls on a step.

    Cycle k starts k / rate after tick 0, and falls on the first step at or after that
    time. It is computed from the number of the step, not accumulated, so that a period
    that is not a whole number of steps causes no drift.

    Parameters
    ----------
    tick : int
        Number of the step.
    rate : float
        Rate, Hz; 0: each step is a cycle.
    dt : float
        Duration of a step, s.
    """
    # Tick 0 starts a cycle of every rate, so that the first reading never waits.
    if tick <= 0 or not is_slower(rate, dt):
        return True
    cycles = rate * dt * CYCLE_EXCESS
    return bool(math.floor(tick * cycles) > math.floor((tick - 1) * cycles))


@inline_kernel
def newest(ring: I8) -> int:
    """Return the slot of the newest value of a ring that is not empty.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots; at least one slot is in use.
    """
    # Row 0 is the header, so a ring of n rows has n − 1 slots.
    return int((ring[0, FIRST] + ring[0, COUNT] - 1) % (ring.shape[0] - 1))


@inline_kernel
def put(ring: I8, due: int, tick: int) -> int:
    """Append a value to a ring, and return its slot.

    In a full ring it replaces the newest value.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots, k > 0. In-place.
    due : int
        Step from which the value is available. It is raised to the step of the value
        before, because values never overtake each other.
    tick : int
        Step in which the value was sent or measured.
    """
    if ring[0, COUNT] > 0:
        due = max(due, ring[1 + newest(ring), DUE])
    # A full ring overwrites its newest value: the oldest ones are due first, and are
    # never lost.
    if ring[0, COUNT] < ring.shape[0] - 1:
        ring[0, COUNT] += 1
    slot = newest(ring)
    ring[1 + slot, DUE], ring[1 + slot, SINCE] = due, tick
    return slot


@inline_kernel
def is_next_due(ring: I8, offset: int, tick: int) -> bool:
    """Return whether a ring has a further value that is due.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots.
    offset : int
        Number of values before it; 0 is the oldest one.
    tick : int
        Number of the step.
    """
    # The test comes first, because an empty ring may have no slots, and a remainder by
    # 0 is undefined.
    if ring[0, COUNT] <= offset:
        return False
    slot = (ring[0, FIRST] + offset) % (ring.shape[0] - 1)
    return bool(ring[1 + slot, DUE] <= tick)


@inline_kernel
def drop_oldest(ring: I8) -> None:
    """Remove the oldest value of a ring.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots; at least one slot is in use. In-place.
    """
    ring[0, FIRST] = (ring[0, FIRST] + 1) % (ring.shape[0] - 1)
    ring[0, COUNT] -= 1


__all__ = [
    "COUNT",
    "DUE",
    "FIRST",
    "SINCE",
    "delay_steps",
    "drop_oldest",
    "is_cycle",
    "is_next_due",
    "is_slower",
    "newest",
    "put",
]
