"""Late commands and readings in worlds of a batch: ring buffers of values under way.

The rules equal the rules of `botyard.engine.channels` and `botyard.devices.ranging` for
simulations, to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.layout import F8, I2, I8, State

COMMAND_STREAM = 2
"""Number of a robot's command channel in its random streams."""
LATENCY_DRAWS = 2 << 32
"""Number of the draw for the jitter of readings in the stream of a device.

Draws of ranges, bearings and missing readings precede it.
"""
MAX_LATENCY_S = 60.0
"""Highest latency, s, as in `botyard.model.sensors`."""
MAX_RATE_HZ = 1e6
"""Highest rate, Hz, as in `botyard.model.sensors`."""
MAX_SCALE = 100.0
"""Highest factor of commands, as in `botyard.model.robot`."""
CYCLE_EXCESS = 1.0 + 1e-12
"""Factor of rates that compensates for rounding.

A cycle that starts with a step belongs to that step, although a product of floats may
be slightly less.
"""
LATENCY, JITTER, RATE, SCALE = 0, 1, 2, 3
"""Columns of `Lateness.channel`; there are three scales.

`Lateness.delay` has the first three columns.
"""
FIRST, COUNT = 0, 1
"""Fields of a ring: index of its first used slot, and number of used slots."""
SLOTS = 2
"""Column of `Lateness.sent_due` with the first slot."""
ALL, NEW, LATE = 0, 1, 2
"""Selections of range devices.

All devices; late devices that have not measured yet; all late devices.
"""


class Lateness(NamedTuple):
    """Late commands and readings of a world; m robots, d devices, r readings in all.

    Without room for values under way (k = 0, l = 0) latencies are 0, and rates at least
    the rate of steps. There are few arrays with several quantities each, because a step
    of a world reads the address of each array.

    Attributes
    ----------
    command : (m, 3) float64
        Commanded velocities of the robots, m/s, m/s, rad/s.
    channel : (m, 6) float64
        Properties of command channels: `LATENCY` and `JITTER`, s; `RATE` of robots' cycles,
        Hz, 0: each step; `SCALE`, factors of velocities.
    sent_due : (m, 2 + k) int64
        `FIRST` and `COUNT` of a ring of commands under way; the step at which each becomes
        effective.
    sent : (m, k, 3) float64
        Commands under way, scaled.
    delay : (d, 3) float64
        Properties of readings: `LATENCY` and `JITTER`, s; `RATE` of measurements, Hz, 0: in
        each step.
    late_due : (d, 1 + l, 2) int64
        `FIRST` and `COUNT` of a ring of readings; then for each the step at which it
        becomes available, and the step it was measured in. The first one is available.
    late : (l, r) float64
        Readings, m.
    late_bright : (l, r) int16
        Laser returns of the readings.
    """

    command: F8
    channel: F8
    sent_due: I8
    sent: F8
    delay: F8
    late_due: I8
    late: F8
    late_bright: I2


@inline_kernel
def delay_steps(latency: float, jitter: float, draw: float, dt: float) -> int:
    """Return a latency with jitter, s, rounded to steps of `dt` s; `draw`: −1 … 1."""
    return int(max(0.0, math.floor((latency + jitter * draw) / dt + 0.5)))


@inline_kernel
def is_slower(rate: float, dt: float) -> bool:
    """Return whether a rate, Hz, has fewer cycles than steps of `dt` s.

    Rate 0 stands for a cycle in each step.
    """
    return bool((rate > 0.0) & (rate * dt * CYCLE_EXCESS < 1.0))


@inline_kernel
def is_cycle(tick: int, rate: float, dt: float) -> bool:
    """Return whether a cycle of a rate, Hz, falls on a step of `dt` s; rate 0: always.

    Cycle k starts k / rate after tick 0, and falls on the first step at or after that
    time. It is computed from the number of the step, not accumulated, so that a period
    that is not a whole number of steps causes no drift.
    """
    if tick <= 0 or not is_slower(rate, dt):
        return True
    cycles = rate * dt * CYCLE_EXCESS
    return bool(math.floor(tick * cycles) > math.floor((tick - 1) * cycles))


@inline_kernel
def is_latency(latency: float, jitter: float, most: int, dt: float) -> bool:
    """Return whether a latency and its jitter, s, are in range.

    Together they must be at most `most` steps.

    NaN is not in range.
    """
    if not ((jitter >= 0.0) & (jitter <= latency) & (latency <= MAX_LATENCY_S)):
        return False
    return delay_steps(latency, jitter, 1.0, dt) <= most if latency > 0.0 else True


@inline_kernel
def is_rate(rate: float, room: int, dt: float) -> bool:
    """Return whether a rate, Hz, is in range.

    Values that wait for its cycles must have room.

    NaN is not in range.
    """
    return bool(
        (rate >= 0.0) & (rate <= MAX_RATE_HZ) & ((room > 0) | (not is_slower(rate, dt)))
    )


@inline_kernel
def is_ring(first: int, count: int, room: int) -> bool:
    """Return whether the fields of a ring are valid."""
    return bool((first >= 0) & (first < max(room, 1)) & (count >= 0) & (count <= room))


@merged_kernel
def are_latencies(late: Lateness, dt: float) -> bool:
    """Return whether latencies and scales are in range."""
    found = True
    for i in range(late.channel.shape[0]):
        # One slot of a ring is for a value that waits for a cycle, another for a value
        # that is sent now.
        found = found and is_latency(
            late.channel[i, LATENCY],
            late.channel[i, JITTER],
            late.sent.shape[1] - 2,
            dt,
        )
        for axis in range(3):
            found = found and abs(late.channel[i, SCALE + axis]) <= MAX_SCALE

    for g in range(late.delay.shape[0]):
        found = found and is_latency(
            late.delay[g, LATENCY], late.delay[g, JITTER], late.late.shape[0] - 2, dt
        )

    return found


@merged_kernel
def are_rates(late: Lateness, dt: float) -> bool:
    """Return whether rates are in range."""
    found = True
    for i in range(late.channel.shape[0]):
        found = found and is_rate(late.channel[i, RATE], late.sent.shape[1], dt)
    for g in range(late.delay.shape[0]):
        found = found and is_rate(late.delay[g, RATE], late.late.shape[0], dt)
    return found


@merged_kernel
def are_rings(late: Lateness) -> bool:
    """Return whether rings are valid: their indices are used without a check."""
    found = True
    for i in range(late.sent_due.shape[0]):
        found = found and is_ring(
            late.sent_due[i, FIRST], late.sent_due[i, COUNT], late.sent.shape[1]
        )

    for g in range(late.late_due.shape[0]):
        found = found and is_ring(
            late.late_due[g, 0, FIRST], late.late_due[g, 0, COUNT], late.late.shape[0]
        )

    return found


@merged_kernel
def drop_all(late: Lateness) -> None:
    """Clear commands and values under way, at the start of an episode."""
    late.command[:] = 0.0
    late.sent_due[:, :SLOTS] = 0
    late.late_due[:, 0] = 0


@merged_kernel
def take_commands(
    state: State, late: Lateness, is_new: bool, seed: np.uint64, tick: int, dt: float
) -> None:
    """Write the targets of a step.

    `is_new`: commands are sent before the step if they differ from the last ones.
    """
    room = late.sent.shape[1]
    for i in range(late.command.shape[0]):
        first, count = late.sent_due[i, FIRST], late.sent_due[i, COUNT]
        if (
            late.channel[i, LATENCY] <= 0.0
            and count == 0
            and not is_slower(late.channel[i, RATE], dt)
        ):
            for axis in range(3):
                state.target[i, axis] = (
                    late.command[i, axis] * late.channel[i, SCALE + axis]
                )

            continue

        last = (first + count - 1) % room
        if is_new:
            differs = False
            for axis in range(3):
                before = (
                    late.sent[i, last, axis] if count > 0 else state.target[i, axis]
                )
                differs = (
                    differs
                    or late.command[i, axis] * late.channel[i, SCALE + axis] != before
                )

            if differs:
                draw = 0.0
                if late.channel[i, JITTER] > 0.0:
                    draw = symmetric(
                        stream_key(
                            seed,
                            state.uid[i],
                            np.uint64(COMMAND_STREAM),
                            np.uint64(tick),
                        ),
                        np.uint64(0),
                    )

                due = tick + delay_steps(
                    late.channel[i, LATENCY], late.channel[i, JITTER], draw, dt
                )
                if count > 0:
                    due = max(due, late.sent_due[i, SLOTS + last])
                if count < room:
                    count += 1
                last = (first + count - 1) % room
                late.sent_due[i, SLOTS + last] = due
                for axis in range(3):
                    late.sent[i, last, axis] = (
                        late.command[i, axis] * late.channel[i, SCALE + axis]
                    )

        takes = is_cycle(tick, late.channel[i, RATE], dt)
        # If several commands wait for a cycle, the newest one counts.
        least = 0 if takes else 1
        while (
            count > least and late.sent_due[i, SLOTS + (first + least) % room] <= tick
        ):
            if takes:
                for axis in range(3):
                    state.target[i, axis] = late.sent[i, first, axis]

            first = (first + 1) % room
            count -= 1

        late.sent_due[i, FIRST], late.sent_due[i, COUNT] = first, count


@inline_kernel
def is_late(delay: F8, g: int, dt: float) -> bool:
    """Return whether readings of a device may belong to an earlier step."""
    return bool((delay[g, LATENCY] > 0.0) | is_slower(delay[g, RATE], dt))


@merged_kernel
def has_late_readings(late: Lateness, dt: float) -> bool:
    """Return whether readings of any device are late."""
    found = False
    for g in range(late.delay.shape[0]):
        found = found or is_late(late.delay, g, dt)
    return found


@merged_kernel
def lacks_readings(late: Lateness, dt: float) -> bool:
    """Return whether a late device has not measured yet."""
    found = False
    for g in range(late.delay.shape[0]):
        found = found or (
            late.late_due[g, 0, COUNT] == 0 and is_late(late.delay, g, dt)
        )

    return found


@inline_kernel
def measures(delay: F8, late_due: I8, g: int, which: int, tick: int, dt: float) -> bool:
    """Return whether a device measures in a step; `which`: see `ALL`."""
    if not is_late(delay, g, dt):
        return which == ALL
    first, count, room = (
        late_due[g, 0, FIRST],
        late_due[g, 0, COUNT],
        late_due.shape[1] - 1,
    )
    if count == 0 or which == NEW:
        return bool(count == 0)
    # It measures again if the world was changed while time stands still.
    return is_cycle(tick, delay[g, RATE], dt) or bool(
        late_due[g, 1 + (first + count - 1) % room, 1] == tick
    )


@merged_kernel
def hold_back(
    state: State,
    fans: Fans,
    late: Lateness,
    which: int,
    seed: np.uint64,
    tick: int,
    dt: float,
    ranges: F8,
    bright: I2,
) -> None:
    """Queue measurements until they are available; write available ones.

    The output is `ranges` and `bright`. `which`: devices that have measured
    (`measures`), see `ALL`.
    """
    room = late.late.shape[0]
    # Worlds without latency reserve no buffers.
    if room == 0:
        return
    for g in range(late.delay.shape[0]):
        first, count = late.late_due[g, 0, FIRST], late.late_due[g, 0, COUNT]
        if not is_late(late.delay, g, dt):
            late.late_due[g, 0, COUNT] = 0
            continue

        if which == NEW and count > 0:
            continue
        begin, kind = fans.out[g], fans.kind[g]
        end = (
            begin
            + fans.readings[fans.first[kind + 1]]
            - fans.readings[fans.first[kind]]
        )
        if measures(late.delay, late.late_due, g, which, tick, dt):
            last = (first + count - 1) % room
            # Otherwise it is measured again in the same step.
            if count == 0 or late.late_due[g, 1 + last, 1] != tick:
                draw = 0.0
                if late.delay[g, JITTER] > 0.0:
                    key = stream_key(
                        seed, state.uid[fans.row[g]], fans.key[g], np.uint64(tick)
                    )
                    draw = symmetric(key, np.uint64(LATENCY_DRAWS))

                due = tick + delay_steps(
                    late.delay[g, LATENCY], late.delay[g, JITTER], draw, dt
                )
                if count > 0:
                    due = max(due, late.late_due[g, 1 + last, 0])
                if count < room:
                    count += 1
                last = (first + count - 1) % room
                late.late_due[g, 1 + last, 0], late.late_due[g, 1 + last, 1] = due, tick

            for j in range(begin, end):
                late.late[last, j], late.late_bright[last, j] = ranges[j], bright[j]

        while count > 1 and late.late_due[g, 1 + (first + 1) % room, 0] <= tick:
            first = (first + 1) % room
            count -= 1

        for j in range(begin, end):
            ranges[j], bright[j] = late.late[first, j], late.late_bright[first, j]
        late.late_due[g, 0, FIRST], late.late_due[g, 0, COUNT] = first, count


__all__ = [
    "ALL",
    "COMMAND_STREAM",
    "COUNT",
    "FIRST",
    "JITTER",
    "LATE",
    "LATENCY",
    "NEW",
    "RATE",
    "SCALE",
    "SLOTS",
    "Lateness",
    "are_latencies",
    "are_rates",
    "are_rings",
    "delay_steps",
    "drop_all",
    "has_late_readings",
    "hold_back",
    "is_cycle",
    "is_slower",
    "lacks_readings",
    "measures",
    "take_commands",
]
