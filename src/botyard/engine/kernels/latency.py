"""Late commands and readings: rings of values that wait until they are due.

A ring is an array of times, (1 + k, 2) int64: a header, and a row for each of its k
slots. The header has `FIRST` and `COUNT`. A slot has `DUE`, the step from which its
value is available, and `SINCE`, the step in which the value was sent or measured. The
values themselves are in other arrays. Values never overtake each other.

Worlds of a batch and simulations have the same rings, and hence the same results to the
last bit. They differ in the place of the rings: all rings of a batch have equal room
(`Lateness`), while a simulation gives each ring the room that it needs
(`botyard.engine.rings`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.jit import entry_kernel, inline_kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.kernels.packed import Output, Sensors
from botyard.engine.layout import F8, I1, I2, I8, State, World

COMMAND_STREAM = 2
"""Number of a robot's command channel in its random streams."""
LATENCY_DRAWS = 2 << 32
"""Number of the draw for the jitter of readings in the stream of a device.

Draws of ranges, bearings and missing readings precede it.
"""
CYCLE_EXCESS = 1.0 + 1e-12
"""Factor of rates that compensates for rounding.

A cycle that starts with a step belongs to that step, although a product of floats may
be slightly less.
"""
LATENCY, JITTER, RATE, SCALE = 0, 1, 2, 3
"""Columns of the properties of a command channel; there are three scales.

The properties of readings are the first three columns.
"""
FIRST, COUNT = 0, 1
"""Header of a ring: index of its first used slot, and number of used slots."""
DUE, SINCE = 0, 1
"""Times of a slot, steps."""
RING, ROOM, VALUES, WIDTH = 0, 1, 2, 3
"""Columns of `Delays.place`."""
ALL, NEW, LATE = 0, 1, 2
"""Selections of range devices.

All devices; late devices that have not measured yet; all late devices.
"""


class Lateness(NamedTuple):
    """Late commands and readings of a world; m robots, d devices, r readings in all.

    Without room for values under way (k = l = 0) latencies are 0, and rates at least
    the rate of steps. There are few arrays with several quantities each, because a step
    of a world reads the address of each array.

    Attributes
    ----------
    command : (m, 3) float64
        Commanded velocities of the robots, m/s, m/s, rad/s.
    channel : (m, 6) float64
        Properties of command channels: `LATENCY` and `JITTER`, s; `RATE` of robots' cycles,
        Hz, 0: each step; `SCALE`, factors of velocities.
    sent_times : (m, 1 + k, 2) int64
        Rings of commands under way.
    sent : (m, k, 3) float64
        Commands under way, scaled.
    delay : (d, 3) float64
        Properties of readings: `LATENCY` and `JITTER`, s; `RATE` of measurements, Hz, 0: in
        each step.
    late_times : (d, 1 + l, 2) int64
        Rings of readings; the first one is available.
    late : (l · r,) float64
        Readings, m: r for each slot.
    late_bright : (l · r,) int16
        Laser returns of the readings.
    """

    command: F8
    channel: F8
    sent_times: I8
    sent: F8
    delay: F8
    late_times: I8
    late: F8
    late_bright: I2


class Delays(NamedTuple):
    """Late readings of a simulation with d devices; S slots and V readings in all.

    Attributes
    ----------
    delay : (d, 3) float64
        As in `Lateness`.
    place : (d, 4) int64
        Place of each ring: row of its header in `times` (`RING`), number of its slots
        (`ROOM`), first element of its first slot in `late` (`VALUES`), and number of its
        readings in a slot (`WIDTH`).
    times : (S, 2) int64
        All rings, one after the other.
    late, late_bright : (V,) float64, (V,) int16
        Readings, m, and their laser returns.
    """

    delay: F8
    place: I8
    times: I8
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
def newest(ring: I8) -> int:
    """Return the slot of the newest value of a ring that is not empty."""
    return int((ring[0, FIRST] + ring[0, COUNT] - 1) % (ring.shape[0] - 1))


@inline_kernel
def put(ring: I8, due: int, tick: int) -> int:
    """Append a value to a ring, and return its slot.

    It is due no earlier than the value before. In a full ring it replaces the newest
    value.
    """
    if ring[0, COUNT] > 0:
        due = max(due, ring[1 + newest(ring), DUE])
    if ring[0, COUNT] < ring.shape[0] - 1:
        ring[0, COUNT] += 1
    slot = newest(ring)
    ring[1 + slot, DUE], ring[1 + slot, SINCE] = due, tick
    return slot


@inline_kernel
def is_next_due(ring: I8, offset: int, tick: int) -> bool:
    """Return whether the value `offset` places after the oldest one is there and due."""
    if ring[0, COUNT] <= offset:
        return False
    slot = (ring[0, FIRST] + offset) % (ring.shape[0] - 1)
    return bool(ring[1 + slot, DUE] <= tick)


@inline_kernel
def drop_oldest(ring: I8) -> None:
    """Remove the oldest value of a ring."""
    ring[0, FIRST] = (ring[0, FIRST] + 1) % (ring.shape[0] - 1)
    ring[0, COUNT] -= 1


@inline_kernel
def due_at(
    latency: float,
    jitter: float,
    seed: np.uint64,
    uid: np.uint64,
    stream: np.uint64,
    number: int,
    tick: int,
    dt: float,
) -> int:
    """Return the step from which a value of the step `tick` is available.

    The draw `number` of the stream decides about the jitter.
    """
    draw = 0.0
    if jitter > 0.0:
        key = stream_key(seed, uid, stream, np.uint64(tick))
        draw = symmetric(key, np.uint64(number))
    return tick + delay_steps(latency, jitter, draw, dt)


@merged_kernel
def drop_all(late: Lateness) -> None:
    """Clear commands and values under way, at the start of an episode."""
    late.command[:] = 0.0
    late.sent_times[:, 0] = 0
    late.late_times[:, 0] = 0


@merged_kernel
def take_commands(
    state: State, late: Lateness, is_new: bool, seed: np.uint64, tick: int, dt: float
) -> None:
    """Write the targets of a step.

    `is_new`: commands are sent before the step if they differ from the last ones.
    """
    for i in range(late.command.shape[0]):
        ring = late.sent_times[i]
        if (
            late.channel[i, LATENCY] <= 0.0
            and ring[0, COUNT] == 0
            and not is_slower(late.channel[i, RATE], dt)
        ):
            for axis in range(3):
                state.target[i, axis] = (
                    late.command[i, axis] * late.channel[i, SCALE + axis]
                )

            continue

        if is_new:
            differs = False
            for axis in range(3):
                before = (
                    late.sent[i, newest(ring), axis]
                    if ring[0, COUNT] > 0
                    else state.target[i, axis]
                )
                differs = (
                    differs
                    or late.command[i, axis] * late.channel[i, SCALE + axis] != before
                )

            if differs:
                due = due_at(
                    late.channel[i, LATENCY],
                    late.channel[i, JITTER],
                    seed,
                    state.uid[i],
                    np.uint64(COMMAND_STREAM),
                    0,
                    tick,
                    dt,
                )
                slot = put(ring, due, tick)
                for axis in range(3):
                    late.sent[i, slot, axis] = (
                        late.command[i, axis] * late.channel[i, SCALE + axis]
                    )

        takes = is_cycle(tick, late.channel[i, RATE], dt)
        # If several commands wait for a cycle, the newest one counts.
        while is_next_due(ring, 0 if takes else 1, tick):
            if takes:
                for axis in range(3):
                    state.target[i, axis] = late.sent[i, ring[0, FIRST], axis]

            drop_oldest(ring)


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
            late.late_times[g, 0, COUNT] == 0 and is_late(late.delay, g, dt)
        )

    return found


@inline_kernel
def measures(delay: F8, g: int, ring: I8, selection: int, tick: int, dt: float) -> bool:
    """Return whether a device with a ring measures in a step; `selection`: see `ALL`."""
    if not is_late(delay, g, dt):
        return selection == ALL
    if ring[0, COUNT] == 0 or selection == NEW:
        return bool(ring[0, COUNT] == 0)
    # It measures again if the world was changed while time stands still.
    return is_cycle(tick, delay[g, RATE], dt) or bool(
        ring[1 + newest(ring), SINCE] == tick
    )


@inline_kernel
def reading_count(fans: Fans, g: int) -> int:
    """Return the number of readings of a device."""
    kind = fans.kind[g]
    return int(fans.readings[fans.first[kind + 1]] - fans.readings[fans.first[kind]])


@inline_kernel
def exchange(
    ring: I8,
    late: F8,
    late_bright: I2,
    at: int,
    stride: int,
    count: int,
    first: int,
    is_kept: bool,
    due: int,
    tick: int,
    ranges: F8,
    bright: I2,
) -> None:
    """Replace the readings of a device by its available ones, if there are any.

    If `is_kept`, the new readings are queued first; they become available in step
    `due`. `at` is the place of the first slot in `late`, `stride` the distance of
    slots. `count` readings of the device start at `first` in `ranges`.
    """
    if is_kept:
        # Otherwise it is measured again in the same step, and keeps its time.
        if ring[0, COUNT] == 0 or ring[1 + newest(ring), SINCE] != tick:
            put(ring, due, tick)
        to = at + stride * newest(ring)
        for j in range(count):
            late[to + j], late_bright[to + j] = ranges[first + j], bright[first + j]

    # The first reading is available before it is due: there is none before it.
    while is_next_due(ring, 1, tick):
        drop_oldest(ring)
    if ring[0, COUNT] > 0:
        source = at + stride * ring[0, FIRST]
        for j in range(count):
            ranges[first + j], bright[first + j] = (
                late[source + j],
                late_bright[source + j],
            )


@merged_kernel
def hold_back(
    state: State,
    fans: Fans,
    late: Lateness,
    selection: int,
    seed: np.uint64,
    tick: int,
    dt: float,
    ranges: F8,
    bright: I2,
) -> None:
    """Queue measurements until they are available; write available ones.

    The output is `ranges` and `bright`. `selection`: devices that have measured
    (`measures`), see `ALL`.
    """
    # Worlds without latency reserve no rings.
    if late.late_times.shape[1] == 1:
        return
    for g in range(late.delay.shape[0]):
        ring = late.late_times[g]
        if not is_late(late.delay, g, dt):
            ring[0, COUNT] = 0
        elif selection != NEW or ring[0, COUNT] == 0:
            exchange(
                ring,
                late.late,
                late.late_bright,
                fans.out[g],
                ranges.shape[0],
                reading_count(fans, g),
                fans.out[g],
                measures(late.delay, g, ring, selection, tick, dt),
                due_at(
                    late.delay[g, LATENCY],
                    late.delay[g, JITTER],
                    seed,
                    state.uid[fans.row[g]],
                    fans.key[g],
                    LATENCY_DRAWS,
                    tick,
                    dt,
                ),
                tick,
                ranges,
                bright,
            )


@entry_kernel
def find_measuring(
    delays: Delays, devices: I8, tick: int, dt: float, found: I1
) -> None:
    """Write into `found`, (n,), which `devices`, (n,), measure in a step."""
    for k in range(devices.shape[0]):
        g = devices[k]
        at, room = delays.place[g, RING], delays.place[g, ROOM]
        found[k] = measures(
            delays.delay, g, delays.times[at : at + 1 + room], ALL, tick, dt
        )


@entry_kernel
def hold_back_some(
    world: World,
    sensors: Sensors,
    delays: Delays,
    devices: I8,
    is_kept: I1,
    seed: np.uint64,
    tick: int,
    dt: float,
    output: Output,
) -> None:
    """Replace measurements of `devices`, (n,), by the available readings.

    `is_kept`, (n,), states for each device whether its new measurement is queued first.
    """
    fans, place = sensors.fans, delays.place
    for k in range(devices.shape[0]):
        g = devices[k]
        if is_late(delays.delay, g, dt):
            exchange(
                delays.times[place[g, RING] : place[g, RING] + 1 + place[g, ROOM]],
                delays.late,
                delays.late_bright,
                place[g, VALUES],
                place[g, WIDTH],
                reading_count(fans, g),
                fans.out[g],
                is_kept[k] != 0,
                due_at(
                    delays.delay[g, LATENCY],
                    delays.delay[g, JITTER],
                    seed,
                    world.state.uid[fans.row[g]],
                    fans.key[g],
                    LATENCY_DRAWS,
                    tick,
                    dt,
                ),
                tick,
                output.ranges,
                output.bright,
            )


__all__ = [
    "ALL",
    "COMMAND_STREAM",
    "COUNT",
    "DUE",
    "FIRST",
    "JITTER",
    "LATE",
    "LATENCY",
    "NEW",
    "RATE",
    "RING",
    "ROOM",
    "SCALE",
    "SINCE",
    "VALUES",
    "WIDTH",
    "Delays",
    "Lateness",
    "delay_steps",
    "drop_all",
    "drop_oldest",
    "find_measuring",
    "has_late_readings",
    "hold_back",
    "hold_back_some",
    "is_cycle",
    "is_next_due",
    "is_slower",
    "lacks_readings",
    "measures",
    "newest",
    "put",
    "take_commands",
]
