"""Arrays of a traffic run: their columns, kinds of events, policies and results."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
PLACE_TOLERANCE = 1e-9
"""Positions along a path that are closer than this are the same position, m."""
INFINITE = math.inf
# Columns of f, one row per robot.
(
    T,
    X,
    V,
    VMAX,
    ACC,
    DEC,
    LIMIT,
    REST,
    BASE,
    OLD_T,
    OLD_X,
    OLD_V,
    RADIUS,
    WAIT,
    FINISHED,
) = range(15)
# Sixteen columns of 8 bytes fill two cache lines.
N_F = 16
# Columns of i, one row per robot.
POINT, LAST, MODE, ALLOWED, ASKED, TAIL, HEAD, DONE, STOPS = range(9)
N_I = 16
GOING, BRAKING, GONE = 1, 0, 2
# Kinds of events. The first four are points of a path; their numbers are the order at
# one position.
RELEASE, CRITICAL, ENTER, FINISH, GRANT, STOP, START, COLLISION = range(8)
# Control: counters and options.
(
    N_DONE,
    OUT,
    SEQUENCE,
    POLICY,
    AT_END,
    LEAVES,
    GOES_ON,
    NOTICE,
    NOTICE_ROBOT,
    NOTICE_SECTOR,
    COLLISIONS,
    LOGS,
    EVENTS,
    LOST,
    TESTS,
) = range(15)
# fmt: on
N_C = 15
# Policies. The comparisons `>= EVERYTHING` and `>= RESERVE` below depend on their
# order.
NOBODY, EXTERNAL, EVERYTHING, RESERVE, ORDER, BANKERS = range(6)
# Reasons for which `advance` returns.
IDLE, TIME, FULL, NOTIFY, ALL_DONE, COLLIDED = range(6)


class World(NamedTuple):
    """All arrays of a run.

    A robot has one row. Sectors of all robots have global numbers, robot by robot.

    Attributes
    ----------
    f, i : (n, N_F) float64, (n, N_I) int32
        Robots; the constants above name the columns.
    c, d : (N_C,) int64, (1,) float64
        Counters and options; the time of the last event.
    heap, key, slot : (n,) int64, float64, int64
        Event queue: robots, the times of their next events in the same order, and the
        index of each robot in the queue.
    points : (p, 2) float64
        Points of all paths in the order of passing: position, m, and 4 · sector of the
        robot + kind. They are side by side, so that an event reads one cache line.
    first, ends, owner : (n + 1,) int32, (s,) float64, (s,) int32
        First sector of each robot; end of each sector, m; its robot.
    starts, others : (s + 1,), (m,) int32
        Conflicts of sector g: ``others[starts[g]:starts[g + 1]]``.
    inside, held : (s,) uint8
        Whether its robot is in a sector; whether it is reserved.
    chain, rank, need : (s,) int32
        Last sector that is granted together with this one; rank of its request, the
        lowest is served first; number of sectors that must be released before.
    after_starts, after : (s + 1,), (q,) int32
        Sectors that come after sector g in a fixed order.
    sim, done, why, queue : (s,) uint8, (n,) uint8, (n,) int64, (n,) int64
        Workspace.
    et, er, ek, es : (e,) float64, int32, int8, int32
        Event buffer: time, robot, kind, sector.
    """

    f: F8
    i: I4
    c: I8
    d: F8
    heap: I8
    key: F8
    slot: I8
    points: F8
    first: I4
    ends: F8
    owner: I4
    starts: I4
    others: I4
    inside: NDArray[np.uint8]
    held: NDArray[np.uint8]
    chain: I4
    rank: I4
    need: I4
    after_starts: I4
    after: I4
    sim: NDArray[np.uint8]
    done: NDArray[np.uint8]
    why: I8
    queue: I8
    et: F8
    er: I4
    ek: NDArray[np.int8]
    es: I4
