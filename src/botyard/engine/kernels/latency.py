"""Commands and readings that come late in worlds of a batch: rings of what is under
way.

The rules are those of `botyard.engine.channels` and `botyard.devices.ranging` for
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
"""Number of a robot's channel of commands in its random streams."""
LATENCY_DRAWS = 2 << 32
"""Number of the draw for the jitter of readings in the stream of a device; those before
it are of ranges, bearings, missing readings.
"""
MAX_LATENCY_S = 60.0
"""Greatest latency, s, as in `botyard.model.sensors`."""
MAX_RATE_HZ = 1e6
"""Greatest rate, as in `botyard.model.sensors`."""
MAX_SCALE = 100.0
"""Greatest factor of commands, as in `botyard.model.robot`."""
CYCLE_EXCESS = 1.0 + 1e-12
"""Rates count as so much greater: a cycle that begins with a step is of that step,
although products of floats may be less.
"""
LATENCY, JITTER, RATE, SCALE = 0, 1, 2, 3
"""Columns of `Lateness.channel`; of scales there are three. `Lateness.delay` has the
first three columns.
"""
FIRST, COUNT = 0, 1
"""Of a ring: index of its first slot in use, and number of those in use."""
SLOTS = 2
"""Column of `Lateness.sent_due` that has the first slot."""
ALL, NEW, LATE = 0, 1, 2
"""Which range devices measure: all of them; those that come late and have measured
nothing yet; all that come late.
"""


class Lateness(NamedTuple):
    """Commands and readings of a world that come late; m robots, d range devices, r
    readings in all.

    Without room for what is under way (k = 0, l = 0) latencies are 0, and rates at
    least those of steps. Few arrays hold several things each, because a step of a world
    reads where each array is.

    Attributes
    ----------
    command : (m, 3) float64
        Velocities that robots are commanded to have, m/s, m/s, rad/s.
    channel : (m, 6) float64
        Of commands: `LATENCY` and `JITTER`, s; `RATE` of robots' cycles, Hz, 0: each
        step; `SCALE`, what velocities are multiplied by.
    sent_due : (m, 2 + k) int64
        `FIRST` and `COUNT` of a ring of commands that do not count yet; from when on
        each may, a step.
    sent : (m, k, 3) float64
        The commands, scaled.
    delay : (d, 3) float64
        Of readings: `LATENCY` and `JITTER`, s; `RATE` at which they are measured, Hz,
        0: in each step.
    late_due : (d, 1 + l, 2) int64
        `FIRST` and `COUNT` of a ring of readings, then of each from which step on it
        can be had, and of which it is. The first one can be had.
    late : (l, r) float64
        The readings, m.
    late_bright : (l, r) int16
        Their laser returns.
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
    """Whole steps of `dt` s, to the nearest, of a latency with jitter, s; `draw`: of −1
    … 1.
    """
    return int(max(0.0, math.floor((latency + jitter * draw) / dt + 0.5)))


@inline_kernel
def is_slower(rate: float, dt: float) -> bool:
    """Whether a rate, Hz, has fewer cycles than there are steps of `dt` s; 0: it has as
    many.
    """
    return bool((rate > 0.0) & (rate * dt * CYCLE_EXCESS < 1.0))


@inline_kernel
def is_cycle(tick: int, rate: float, dt: float) -> bool:
    """Whether a cycle of a rate, Hz, falls on a step of `dt` s; rate 0: always.

    Cycle k begins k / rate after tick 0, and falls on the first step at or after that:
    computed from the number of the step, not accumulated, so nothing drifts where a
    period is no whole number of steps.
    """
    if tick <= 0 or not is_slower(rate, dt):
        return True
    cycles = rate * dt * CYCLE_EXCESS
    return bool(math.floor(tick * cycles) > math.floor((tick - 1) * cycles))


@inline_kernel
def is_latency(latency: float, jitter: float, most: int, dt: float) -> bool:
    """Whether a latency and its jitter, s, are in range, and no more than `most` steps.
    NaN is not.
    """
    if not ((jitter >= 0.0) & (jitter <= latency) & (latency <= MAX_LATENCY_S)):
        return False
    return delay_steps(latency, jitter, 1.0, dt) <= most if latency > 0.0 else True


@inline_kernel
def is_rate(rate: float, room: int, dt: float) -> bool:
    """Whether a rate, Hz, is in range, and there is room for what waits for its cycles.
    NaN is not.
    """
    return bool(
        (rate >= 0.0) & (rate <= MAX_RATE_HZ) & ((room > 0) | (not is_slower(rate, dt)))
    )


@inline_kernel
def is_ring(first: int, count: int, room: int) -> bool:
    """Whether a ring is one."""
    return bool((first >= 0) & (first < max(room, 1)) & (count >= 0) & (count <= room))


@merged_kernel
def are_latencies(late: Lateness, dt: float) -> bool:
    """Whether latencies are in range, and scales."""
    found = True
    for i in range(late.channel.shape[0]):
        # of a ring's room one slot is for what waits for a cycle, another for what is
        # sent now
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
    """Whether rates are in range."""
    found = True
    for i in range(late.channel.shape[0]):
        found = found and is_rate(late.channel[i, RATE], late.sent.shape[1], dt)
    for g in range(late.delay.shape[0]):
        found = found and is_rate(late.delay[g, RATE], late.late.shape[0], dt)
    return found


@merged_kernel
def are_rings(late: Lateness) -> bool:
    """Whether rings are such: their indices are taken without a check."""
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
    """An episode begins: nothing is commanded, and nothing under way."""
    late.command[:] = 0.0
    late.sent_due[:, :SLOTS] = 0
    late.late_due[:, 0] = 0


@merged_kernel
def take_commands(
    state: State, late: Lateness, is_new: bool, seed: np.uint64, tick: int, dt: float
) -> None:
    """Write the targets of a step. `is_new`: commands are sent before it, if they say
    something new.
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
        # of those that wait for a cycle, the newest counts
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
    """Whether readings of a device are those of an earlier step, in some steps."""
    return bool((delay[g, LATENCY] > 0.0) | is_slower(delay[g, RATE], dt))


@merged_kernel
def has_late_readings(late: Lateness, dt: float) -> bool:
    """Whether readings of a device come late."""
    found = False
    for g in range(late.delay.shape[0]):
        found = found or is_late(late.delay, g, dt)
    return found


@merged_kernel
def lacks_readings(late: Lateness, dt: float) -> bool:
    """Whether readings of a device come late from now on, which has measured nothing
    yet.
    """
    found = False
    for g in range(late.delay.shape[0]):
        found = found or (
            late.late_due[g, 0, COUNT] == 0 and is_late(late.delay, g, dt)
        )

    return found


@inline_kernel
def measures(delay: F8, late_due: I8, g: int, which: int, tick: int, dt: float) -> bool:
    """Whether a device measures in a step; `which`: see `ALL`."""
    if not is_late(delay, g, dt):
        return which == ALL
    first, count, room = (
        late_due[g, 0, FIRST],
        late_due[g, 0, COUNT],
        late_due.shape[1] - 1,
    )
    if count == 0 or which == NEW:
        return bool(count == 0)
    # in a world that stands still, and was changed, it is measured again
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
    """Keep what was measured until it can be had, and let `ranges` and `bright` have
    what can be had now.

    `which`: devices that have measured (`measures`), see `ALL`.
    """
    room = late.late.shape[0]
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
            if (
                count == 0 or late.late_due[g, 1 + last, 1] != tick
            ):  # else it is measured again
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
