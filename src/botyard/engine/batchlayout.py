"""Data of a world of a batch besides its bodies, and the faults of its arrays."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8, I1, I2, I8, U1, U8
from botyard.engine.masslayout import Impulses, MassState, Workspace

F4 = NDArray[np.float32]

TICK, EPISODE, MAP, SAMPLES, ROBOT_SET = range(5)
"""Indices in `Own.counts`.

`TICK`: steps done in this episode. `EPISODE`: number of the episode. `MAP`: number of
the map. `SAMPLES`: how often free places were drawn in this episode. `ROBOT_SET`:
number of the robot set.
"""
STEPS, BEGINS, BOXES, FAILED, ONLY_MAP, FETCHES = range(6)
"""Indices in `Own.task`.

`STEPS`: number of steps. `BEGINS`: 1: start an episode, without a step; 2: start the
next episode of the world, in map 0. `BOXES`: number of boxes, which are the first
bodies. `FAILED`: 1: at least one world of the batch has a `Fault`.
`ONLY_MAP`: 1: map 0 is the only one. `FETCHES`: 1: there are more maps than the
processor's caches hold.
"""


class Contact(IntEnum):
    """Kind of obstacle that stopped a robot in the last steps."""

    NONE = 0
    WALL = 1
    BODY = 2


class Fault(IntEnum):
    """Reason why a world of a batch cannot be advanced."""

    NONE = 0
    POSE = 1
    VELOCITY = 2
    LIMITS = 3
    SENSOR = 4
    KIND = 5
    CONTACTS = 7
    LATENCY = 8
    MAP = 9
    RATE = 10


# Kernels use plain integers, not enumeration members: compilers fold them.
NO_CONTACT, WALL_CONTACT, BODY_CONTACT = map(int, Contact)
(
    NO_FAULT,
    BAD_POSE,
    BAD_VELOCITY,
    BAD_LIMITS,
    BAD_SENSOR,
    BAD_KIND,
    TOO_MANY_CONTACTS,
    BAD_LATENCY,
    BAD_MAP,
    BAD_RATE,
) = map(int, Fault)


class Own(NamedTuple):
    """Data of a world of a batch besides its bodies; m bodies, r readings in all.

    Attributes
    ----------
    counts : (5,) int64
        See `TICK`, `EPISODE`, `MAP`, `SAMPLES`, `ROBOT_SET`.
    seeds : (2,) uint64
        Seed of the world; seed of the episode (`botyard.engine.rng.episode_seed`), from
        which all draws are made.
    start : (m, 3) float64
        Poses of the bodies at the start of the episode, m, m, rad.
    contact : (m,) int8
        `Contact` of each body in the last steps.
    other : (m,) int64
        Number of the body that stopped each body: robots are counted first, then boxes;
        −1: none.
    raw, bright : (r,) float64, (r,) int16
        Workspace for readings, m, and laser returns. `raw` is NaN in places without a
        sensor.
    single, double : (r,) float32, (r,) float64
        Readings, m. Only the array of the type that the caller chose has elements.
    devices : (d,) int64
        Numbers of all range devices.
    known : (1,) int64
        Map for which distances between bodies and walls are known.
    fault : (1,) int64
        Value of `Fault` for the last call.
    task : (6,) int64
        Task of the call, see `STEPS` … `FETCHES`; the same for all worlds.
    step : (1,) float64
        Simulated time of a step, s; the same for all worlds.
    """

    counts: I8
    seeds: U8
    start: F8
    contact: I1
    other: I8
    raw: F8
    bright: I2
    single: F4
    double: F8
    devices: I8
    known: I8
    fault: I8
    task: I8
    step: F8


class Masses(NamedTuple):
    """Data of a world of a batch for its bodies with mass.

    Attributes
    ----------
    state : MassState
        State that a step changes.
    table : Impulses
        Contacts. Its room does not grow: a world that needs more has a `Fault`.
    row : (S,) uint8
        All values that a step passes to the next one, in one row of bytes.
    """

    state: MassState
    table: Impulses
    row: U1


class MassRoom(NamedTuple):
    """Workspaces of a thread for bodies with mass.

    Attributes
    ----------
    work : Workspace
        Workspace of a step.
    before, before_vel : (n, 3) float64
        Poses and velocities before bodies without mass moved.
    order : (n,) int64
        Rows by `State.uid`.
    row : (S,) uint8
        `Masses.row` before the steps. A world without room for its contacts is reset to it.
    """

    work: Workspace
    before: F8
    before_vel: F8
    order: I8
    row: U1


__all__ = [
    "BAD_KIND",
    "BAD_LATENCY",
    "BAD_LIMITS",
    "BAD_MAP",
    "BAD_POSE",
    "BAD_RATE",
    "BAD_SENSOR",
    "BAD_VELOCITY",
    "BEGINS",
    "BODY_CONTACT",
    "BOXES",
    "EPISODE",
    "FAILED",
    "FETCHES",
    "MAP",
    "NO_CONTACT",
    "NO_FAULT",
    "ONLY_MAP",
    "ROBOT_SET",
    "SAMPLES",
    "STEPS",
    "TICK",
    "TOO_MANY_CONTACTS",
    "WALL_CONTACT",
    "Contact",
    "Fault",
    "MassRoom",
    "Masses",
    "Own",
]
