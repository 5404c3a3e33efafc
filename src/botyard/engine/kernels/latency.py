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

from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.delayrings import (
    COUNT,
    FIRST,
    SINCE,
    delay_steps,
    drop_oldest,
    is_cycle,
    is_next_due,
    is_slower,
    newest,
    put,
)
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
LATENCY, JITTER, RATE, SCALE = 0, 1, 2, 3
"""Columns of the properties of a command channel; `SCALE` is the first of three scales.

The properties of readings are the first three columns.
"""
RING, ROOM, VALUES, WIDTH = 0, 1, 2, 3
"""Columns of `Delays.place`."""
ALL, NEW, LATE = 0, 1, 2
"""Selections of range devices.

`ALL`: all devices. `NEW`: late devices (see `is_late`) that have not measured yet.
`LATE`: all late devices.
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
        Rings of readings; the oldest reading of a ring is the available one.
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
    """Return the step from which a value is available.

    Parameters
    ----------
    latency, jitter : float
        Mean latency, and half-width of its uniform error, s.
    seed, uid, stream : uint64
        Words of the random stream, see `stream_key`.
    number : int
        Number of the draw in the stream that decides about the jitter.
    tick : int
        Step in which the value is sent or measured.
    dt : float
        Duration of a step, s.
    """
    draw = 0.0
    # Draws are addressed by number, so that leaving one out does not shift the others.
    if jitter > 0.0:
        key = stream_key(seed, uid, stream, np.uint64(tick))
        draw = symmetric(key, np.uint64(number))
    return tick + delay_steps(latency, jitter, draw, dt)


@merged_kernel
def drop_all(late: Lateness) -> None:
    """Clear commands, and values under way, at the start of an episode.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world. In-place.
    """
    late.command[:] = 0.0
    # Clearing the headers empties the rings; stale slots are never read.
    late.sent_times[:, 0] = 0
    late.late_times[:, 0] = 0


@merged_kernel
def take_commands(
    state: State, late: Lateness, is_new: bool, seed: np.uint64, tick: int, dt: float
) -> None:
    """Write the targets of robots whose commands take effect in a step.

    Parameters
    ----------
    state : State
        State of a world. In-place: targets of robots whose commands arrive.
    late : Lateness
        Commands and readings of the world. In-place: rings of commands.
    is_new : bool
        Whether commands are sent before this step, if they differ from the last ones.
        Only the first step of a call sends.
    seed : uint64
        Seed of the episode, for the jitter.
    tick : int
        Number of the step.
    dt : float
        Duration of a step, s.
    """
    for i in range(late.command.shape[0]):
        ring = late.sent_times[i]
        if (
            # Commands under way must still arrive after the latency was set to 0, so the
            # ring must be empty.
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
                # A repeated command is compared with the last one sent, which may not
                # have arrived yet.
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
            # Between two cycles, commands that a newer due one supersedes are dropped,
            # and the newest one stays.
            if takes:
                for axis in range(3):
                    state.target[i, axis] = late.sent[i, ring[0, FIRST], axis]

            drop_oldest(ring)


@inline_kernel
def is_late(delay: F8, g: int, dt: float) -> bool:
    """Return whether readings of a device may belong to an earlier step.

    Parameters
    ----------
    delay : (d, 3) float64
        `Lateness.delay`: latency and jitter, s, and rate, Hz.
    g : int
        Number of the device.
    dt : float
        Duration of a step, s.
    """
    return bool((delay[g, LATENCY] > 0.0) | is_slower(delay[g, RATE], dt))


@merged_kernel
def has_late_readings(late: Lateness, dt: float) -> bool:
    """Return whether readings of any device are late.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world.
    dt : float
        Duration of a step, s.
    """
    found = False
    for g in range(late.delay.shape[0]):
        found = found or is_late(late.delay, g, dt)
    return found


@merged_kernel
def lacks_readings(late: Lateness, dt: float) -> bool:
    """Return whether a late device has not measured yet.

    Parameters
    ----------
    late : Lateness
        Commands and readings of a world.
    dt : float
        Duration of a step, s.
    """
    found = False
    for g in range(late.delay.shape[0]):
        found = found or (
            late.late_times[g, 0, COUNT] == 0 and is_late(late.delay, g, dt)
        )

    return found


@inline_kernel
def measures(delay: F8, g: int, ring: I8, selection: int, tick: int, dt: float) -> bool:
    """Return whether a device with a ring measures in a step.

    Parameters
    ----------
    delay : (d, 3) float64
        `Lateness.delay`: latency and jitter, s, and rate, Hz.
    g : int
        Number of the device.
    ring : (1 + k, 2) int64
        Ring of the device's readings.
    selection : int
        `ALL`, `NEW` or `LATE`.
    tick : int
        Number of the step.
    dt : float
        Duration of a step, s.
    """
    if not is_late(delay, g, dt):
        return selection == ALL
    if ring[0, COUNT] == 0 or selection == NEW:
        return bool(ring[0, COUNT] == 0)
    # A device also measures again if the world was changed while time stands still.
    return is_cycle(tick, delay[g, RATE], dt) or bool(
        ring[1 + newest(ring), SINCE] == tick
    )


@inline_kernel
def reading_count(fans: Fans, g: int) -> int:
    """Return the number of readings of a device.

    Parameters
    ----------
    fans : Fans
        All range sensors.
    g : int
        Number of the device.
    """
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
    """Replace the readings of a device by the readings that are available, if there are any.

    Parameters
    ----------
    ring : (1 + k, 2) int64
        Ring of the device's readings. In-place.
    late, late_bright : (V,) float64, (V,) int16
        Readings under way, m, and their laser returns. In-place.
    at, stride : int
        Index in `late` of the readings in the first slot, and number of elements from
        one slot to the next.
    count : int
        Number of readings of the device.
    first : int
        Place of the device's first reading in `ranges`.
    is_kept : bool
        Whether the new readings are queued before the available ones are taken.
    due : int
        Step from which the new readings are available.
    tick : int
        Number of the step.
    ranges, bright : (n,) float64, (n,) int16
        New readings, m, and laser returns. In-place: the available ones.
    """
    if is_kept:
        # If the newest entry has the present tick, the device has measured again in one
        # step, and the entry keeps its time.
        if ring[0, COUNT] == 0 or ring[1 + newest(ring), SINCE] != tick:
            put(ring, due, tick)
        to = at + stride * newest(ring)
        for j in range(count):
            late[to + j], late_bright[to + j] = ranges[first + j], bright[first + j]

    # The first reading is available at once, because there is no reading before it.
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

    Parameters
    ----------
    state, fans : State, Fans
        State and range sensors of a world.
    late : Lateness
        Commands and readings of the world. In-place: rings of readings.
    selection : int
        Devices that have measured (`measures`): `ALL`, `NEW` or `LATE`.
    seed : uint64
        Seed of the episode, for the jitter.
    tick : int
        Number of the step.
    dt : float
        Duration of a step, s.
    ranges, bright : (n,) float64, (n,) int16
        Measured ranges, m, and laser returns. In-place: the available ones.
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
    """Find the devices that measure in a step.

    Parameters
    ----------
    delays : Delays
        Late readings of a simulation.
    devices : (n,) int64
        Numbers of the devices in question.
    tick : int
        Number of the step.
    dt : float
        Duration of a step, s.
    found : (n,) int8
        Output: 1 for a device that measures, otherwise 0.
    """
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
    """Replace the measurements of some devices by the available readings.

    Parameters
    ----------
    world, sensors : World, Sensors
        Arrays of the world, and its range sensors.
    delays : Delays
        Late readings of the simulation. In-place.
    devices : (n,) int64
        Numbers of the devices.
    is_kept : (n,) int8
        Whether the new measurement of each device is queued before the available one is
        taken.
    seed : uint64
        Seed of the world, for the jitter.
    tick : int
        Number of the step.
    dt : float
        Duration of a step, s.
    output : Output
        Measured readings. In-place: the available ones.
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
    "JITTER",
    "LATE",
    "LATENCY",
    "NEW",
    "RATE",
    "RING",
    "ROOM",
    "SCALE",
    "VALUES",
    "WIDTH",
    "Delays",
    "Lateness",
    "drop_all",
    "find_measuring",
    "has_late_readings",
    "hold_back",
    "hold_back_some",
    "lacks_readings",
    "measures",
    "take_commands",
]
