"""Commands and readings that come late in worlds of a batch: rings of what is under way.

The rules are those of `botyard.engine.channels` and `botyard.devices.ranging` for simulations, to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.kernels.raycast import Fans
from botyard.engine.layout import F8, I2, I8, State

COMMAND_STREAM = 2
"""Number of a robot's channel of commands in its random streams."""
LATENCY_DRAWS = 2 << 32
"""Number of the draw for the jitter of readings in the stream of a device; those before it are of ranges, bearings, missing readings."""
MAX_LATENCY_S = 60.0
"""Greatest latency, s, as in `botyard.model.sensors`."""
MAX_SCALE = 100.0
"""Greatest factor of commands, as in `botyard.model.robot`."""


class Lateness(NamedTuple):
    """Commands and readings of a world that come late; m robots, d range devices, r readings in all.

    Without room for what is under way (k = 0, l = 0) latencies are 0.

    Attributes
    ----------
    command : (m, 3) float64
        Velocities that robots are commanded to have, m/s, m/s, rad/s.
    scale : (m, 3) float64
        What they are multiplied by.
    latency, jitter : (m,) float64
        Of commands, s.
    sent_due : (m, k) int64
        Steps before which commands count; rings.
    sent : (m, k, 3) float64
        The commands, scaled.
    sent_span : (m, 2) int64
        Index of the first command under way, and their number.
    range_latency, range_jitter : (d,) float64
        Of readings, s.
    late_due, late_tick : (d, l) int64
        From which step on readings can be had, and of which they are; rings. The first can be had.
    late : (l, r) float64
        The readings, m.
    late_bright : (l, r) int16
        Their laser returns.
    late_span : (d, 2) int64
        Index of the first reading, and their number.
    """

    command: F8
    scale: F8
    latency: F8
    jitter: F8
    sent_due: I8
    sent: F8
    sent_span: I8
    range_latency: F8
    range_jitter: F8
    late_due: I8
    late_tick: I8
    late: F8
    late_bright: I2
    late_span: I8


@inline_kernel
def delay_steps(latency: float, jitter: float, draw: float, dt: float) -> int:
    """Whole steps of `dt` s, to the nearest, of a latency with jitter, s; `draw`: of −1 … 1."""
    return int(max(0.0, math.floor((latency + jitter * draw) / dt + 0.5)))


@inline_kernel
def is_latency(latency: float, jitter: float, room: int, dt: float) -> bool:
    """Whether a latency and its jitter, s, are in range, and `room` steps are enough for them. NaN is not."""
    if not ((jitter >= 0.0) & (jitter <= latency) & (latency <= MAX_LATENCY_S)):
        return False
    return delay_steps(latency, jitter, 1.0, dt) < room if latency > 0.0 else True


@inline_kernel
def is_span(span: I8, i: int, room: int) -> bool:
    """Whether a ring is one."""
    return bool((span[i, 0] >= 0) & (span[i, 0] < max(room, 1)) & (span[i, 1] >= 0) & (span[i, 1] <= room))


@merged_kernel
def are_latencies(late: Lateness, dt: float) -> bool:
    """Whether latencies are in range, and scales."""
    for i in range(late.latency.shape[0]):
        if not is_latency(late.latency[i], late.jitter[i], late.sent_due.shape[1], dt):
            return False
        for axis in range(3):
            if not abs(late.scale[i, axis]) <= MAX_SCALE:
                return False
    for g in range(late.range_latency.shape[0]):
        if not is_latency(late.range_latency[g], late.range_jitter[g], late.late_due.shape[1] - 1, dt):
            return False
    return True


@merged_kernel
def are_rings(late: Lateness) -> bool:
    """Whether rings are such: their indices are taken without a check."""
    found = True
    for i in range(late.sent_span.shape[0]):
        found = found and is_span(late.sent_span, i, late.sent_due.shape[1])
    for g in range(late.late_span.shape[0]):
        found = found and is_span(late.late_span, g, late.late_due.shape[1])
    return found


@merged_kernel
def drop_all(late: Lateness) -> None:
    """An episode begins: nothing is commanded, and nothing under way."""
    late.command[:] = 0.0
    late.sent_span[:] = 0
    late.late_span[:] = 0


@merged_kernel
def take_commands(state: State, late: Lateness, is_new: bool, seed: np.uint64, tick: int, dt: float) -> None:
    """Write the targets of a step. `is_new`: commands are sent before it, if they say something new."""
    room = late.sent_due.shape[1]
    for i in range(late.command.shape[0]):
        if late.latency[i] <= 0.0 and late.sent_span[i, 1] == 0:
            for axis in range(3):
                state.target[i, axis] = late.command[i, axis] * late.scale[i, axis]
            continue
        first, count = late.sent_span[i, 0], late.sent_span[i, 1]
        last = (first + count - 1) % room
        if is_new:
            differs = False
            for axis in range(3):
                before = late.sent[i, last, axis] if count > 0 else state.target[i, axis]
                differs = differs or late.command[i, axis] * late.scale[i, axis] != before
            if differs:
                draw = 0.0
                if late.jitter[i] > 0.0:
                    draw = symmetric(
                        stream_key(seed, state.uid[i], np.uint64(COMMAND_STREAM), np.uint64(tick)), np.uint64(0)
                    )
                due = tick + delay_steps(late.latency[i], late.jitter[i], draw, dt)
                if count > 0:
                    due = max(due, late.sent_due[i, last])
                if count < room:
                    count += 1
                last = (first + count - 1) % room
                late.sent_due[i, last] = due
                for axis in range(3):
                    late.sent[i, last, axis] = late.command[i, axis] * late.scale[i, axis]
        while count > 0 and late.sent_due[i, first] <= tick:
            for axis in range(3):
                state.target[i, axis] = late.sent[i, first, axis]
            first = (first + 1) % room
            count -= 1
        late.sent_span[i, 0], late.sent_span[i, 1] = first, count


@merged_kernel
def has_late_readings(late: Lateness) -> bool:
    """Whether readings of a device come late."""
    found = False
    for g in range(late.range_latency.shape[0]):
        found = found or late.range_latency[g] > 0.0
    return found


@merged_kernel
def lacks_readings(late: Lateness) -> bool:
    """Whether readings of a device come late from now on, which has measured nothing yet."""
    found = False
    for g in range(late.range_latency.shape[0]):
        found = found or (late.range_latency[g] > 0.0 and late.late_span[g, 1] == 0)
    return found


@merged_kernel
def hold_back(
    state: State,
    fans: Fans,
    late: Lateness,
    are_new: bool,
    seed: np.uint64,
    tick: int,
    dt: float,
    ranges: F8,
    bright: I2,
) -> None:
    """Keep what was measured until it can be had, and let `ranges` and `bright` have what can be had now.

    `are_new`: only of devices that have measured nothing yet.
    """
    room = late.late_due.shape[1]
    if room == 0:
        return
    for g in range(late.range_latency.shape[0]):
        first, count = late.late_span[g, 0], late.late_span[g, 1]
        if late.range_latency[g] <= 0.0:
            late.late_span[g, 1] = 0
            continue
        if are_new and count > 0:
            continue
        last = (first + count - 1) % room
        if count == 0 or late.late_tick[g, last] != tick:  # else it is measured again
            draw = 0.0
            if late.range_jitter[g] > 0.0:
                key = stream_key(seed, state.uid[fans.row[g]], fans.key[g], np.uint64(tick))
                draw = symmetric(key, np.uint64(LATENCY_DRAWS))
            due = tick + delay_steps(late.range_latency[g], late.range_jitter[g], draw, dt)
            if count > 0:
                due = max(due, late.late_due[g, last])
            if count < room:
                count += 1
            last = (first + count - 1) % room
            late.late_due[g, last], late.late_tick[g, last] = due, tick
        begin, kind = fans.out[g], fans.kind[g]
        end = begin + fans.readings[fans.first[kind + 1]] - fans.readings[fans.first[kind]]
        for j in range(begin, end):
            late.late[last, j], late.late_bright[last, j] = ranges[j], bright[j]
        while count > 1 and late.late_due[g, (first + 1) % room] <= tick:
            first = (first + 1) % room
            count -= 1
        for j in range(begin, end):
            ranges[j], bright[j] = late.late[first, j], late.late_bright[first, j]
        late.late_span[g, 0], late.late_span[g, 1] = first, count


__all__ = [
    "COMMAND_STREAM",
    "Lateness",
    "are_latencies",
    "are_rings",
    "delay_steps",
    "drop_all",
    "has_late_readings",
    "hold_back",
    "lacks_readings",
    "take_commands",
]
