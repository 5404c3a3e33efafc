"""Checks of rings and delays of a batch, which callers may have written."""

from __future__ import annotations

from botyard.engine.kernels.delayrings import COUNT, FIRST, delay_steps, is_slower
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.latency import JITTER, LATENCY, RATE, SCALE, Lateness
from botyard.engine.layout import I8

MAX_LATENCY_S = 60.0
"""Highest latency, s, as in `botyard.model.sensors`."""
MAX_RATE_HZ = 1e6
"""Highest rate, Hz, as in `botyard.model.sensors`."""
MAX_SCALE = 100.0
"""Highest factor of commands, as in `botyard.model.robot`."""


@inline_kernel
def is_latency(latency: float, jitter: float, most: int, dt: float) -> bool:
    """Return whether a latency and its jitter are in range; NaN is not.

    Parameters
    ----------
    latency, jitter : float
        Mean latency, and half-width of its uniform error, s.
    most : int
        Highest number of steps of both together, for which there is room.
    dt : float
        Duration of a step, s.
    """
    if not ((jitter >= 0.0) & (jitter <= latency) & (latency <= MAX_LATENCY_S)):
        return False
    return delay_steps(latency, jitter, 1.0, dt) <= most if latency > 0.0 else True


@inline_kernel
def is_rate(rate: float, room: int, dt: float) -> bool:
    """Return whether a rate is in range; NaN is not.

    Parameters
    ----------
    rate : float
        Rate, Hz.
    room : int
        Number of slots for values that wait for a cycle of the rate; with 0 slots, the
        rate must not be below the rate of steps.
    dt : float
        Duration of a step, s.
    """
    return bool(
        (rate >= 0.0) & (rate <= MAX_RATE_HZ) & ((room > 0) | (not is_slower(rate, dt)))
    )


@inline_kernel
def is_ring(ring: I8) -> bool:
    """Return whether the header of a ring is valid.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Header and slots.
    """
    first, count, room = ring[0, FIRST], ring[0, COUNT], ring.shape[0] - 1
    return bool((first >= 0) & (first < max(room, 1)) & (count >= 0) & (count <= room))


@merged_kernel
def are_latencies(late: Lateness, dt: float) -> bool:
    """Return whether latencies and scales are in range.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world.
    dt : float
        Duration of a step, s.
    """
    found = True
    for i in range(late.channel.shape[0]):
        # One row of a ring is its header, one is for a value that waits for a cycle, and
        # one for a value that is sent now.
        found = found and is_latency(
            late.channel[i, LATENCY],
            late.channel[i, JITTER],
            late.sent_times.shape[1] - 3,
            dt,
        )
        for axis in range(3):
            found = found and abs(late.channel[i, SCALE + axis]) <= MAX_SCALE

    for g in range(late.delay.shape[0]):
        found = found and is_latency(
            late.delay[g, LATENCY],
            late.delay[g, JITTER],
            late.late_times.shape[1] - 3,
            dt,
        )

    return found


@merged_kernel
def are_rates(late: Lateness, dt: float) -> bool:
    """Return whether rates are in range.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world.
    dt : float
        Duration of a step, s.
    """
    found = True
    for i in range(late.channel.shape[0]):
        found = found and is_rate(
            late.channel[i, RATE], late.sent_times.shape[1] - 1, dt
        )
    for g in range(late.delay.shape[0]):
        found = found and is_rate(late.delay[g, RATE], late.late_times.shape[1] - 1, dt)
    return found


@merged_kernel
def are_rings(late: Lateness) -> bool:
    """Return whether rings are valid: their indices are used without a check.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world.
    """
    found = True
    for i in range(late.sent_times.shape[0]):
        found = found and is_ring(late.sent_times[i])
    for g in range(late.late_times.shape[0]):
        found = found and is_ring(late.late_times[g])
    return found


__all__ = ["MAX_RATE_HZ", "MAX_SCALE", "are_latencies", "are_rates", "are_rings"]
