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
"""Columns of `World.f`, one row per robot.

Columns
-------
T, X, V : float64
    Base of the motion: its time, s; position along the path, m; and speed, m/s.
VMAX, ACC, DEC : float64
    Maximum speed, m/s; acceleration and deceleration, m/s².
LIMIT : float64
    Position at which the robot must stop, m; infinite for none.
REST, BASE : float64
    Time, s, and position, m, at which a braking robot comes to rest. The time is
    infinite for a robot that goes.
OLD_T, OLD_X, OLD_V : float64
    Base of the motion before the braking.
RADIUS : float64
    Radius of the robot, m.
WAIT : float64
    Total time at rest after which the robot went on, s.
FINISHED : float64
    Time at which it reached the end of its path, s.
"""
# Sixteen columns of 8 bytes fill two cache lines.
N_F = 16
POINT, LAST, MODE, ALLOWED, ASKED, TAIL, HEAD, DONE, STOPS = range(9)
"""Columns of `World.i`, one row per robot.

Columns
-------
POINT, LAST : int32
    Index into `World.points` of the next point, and the one after the last point.
MODE : int32
    `GOING`, `BRAKING` (also at rest) or `GONE` (removed).
ALLOWED, ASKED : int32
    Numbers on its path of the last sector that it may enter, and of the last one that
    it has asked for.
TAIL, HEAD : int32
    Numbers of the sectors in which its rear and its front are.
DONE : int32
    1 if it has reached the end of its path.
STOPS : int32
    Number of times it has gone on from rest.
"""
N_I = 16
(
    FIRST_CONFLICT,
    END_CONFLICT,
    CHAIN,
    RANK,
    NEED,
    OWNER,
    INSIDE,
    HELD,
) = range(8)
"""Columns of `World.sectors`, one row per sector.

Columns
-------
FIRST_CONFLICT, END_CONFLICT : int32
    Conflicts of the sector: ``others[FIRST_CONFLICT:END_CONFLICT]``.
CHAIN : int32
    Number on the robot's path of the last sector that is granted together with it.
RANK : int32
    Rank of its request; the lowest is served first.
NEED : int32
    Policy `ORDER`: number of sectors that must be released before this one is granted.
OWNER : int32
    Number of the robot whose path has the sector.
INSIDE, HELD : int32
    1 if its robot is in the sector; 1 if it is reserved.
"""
# Eight columns of 4 bytes: two rows fill a cache line.
N_SECTOR = 8
GOING, BRAKING, GONE = 1, 0, 2
# Kinds of events. The first four are points of a path; their numbers are the order at
# one position.
RELEASE, CRITICAL, ENTER, FINISH, GRANT, STOP, START, COLLISION = range(8)
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
"""Entries of `World.c`: counters and options.

Entries
-------
N_DONE, COLLISIONS, TESTS : int64
    Numbers of robots that have finished, of collisions and of Banker's tests.
OUT, EVENTS, LOST : int64
    Numbers of events in the buffer, of all events, and of events without room.
SEQUENCE : int64
    Number of requests so far, from which each gets its rank; −1 for fixed ranks.
POLICY : int64
    One of the policies below.
AT_END, LEAVES, GOES_ON, LOGS : int64
    Options: robots stop at the end of their paths; they are removed there; the run goes
    on after a collision; events are kept.
NOTICE, NOTICE_ROBOT, NOTICE_SECTOR : int64
    Kind, robot and sector of the event for which `advance` has stopped with `NOTIFY`.
"""
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
    lines : (2 n, 8) float64
        `f` with one cache line (64 bytes) per row, for prefetches.
    c, d : (N_C,) int64, (1,) float64
        Counters and options; the time of the last event.
    heap, key, slot : (n,) int64, float64, int64
        Event queue: robots, the times of their next events in the same order, and the
        index of each robot in the queue.
    points : (p, 2) float64
        Points of all paths in the order of passing: position, m, and 4 · sector of the
        robot + kind. They are side by side, so that an event reads one cache line.
    first, ends : (n + 1,) int32, (s,) float64
        First sector of each robot; end of each sector, m.
    sectors : (s, N_SECTOR) int32
        Sectors; the constants above name the columns.
    others : (m,) int32
        Sectors in conflict with each sector, one list after the other.
    after_starts, after : (s + 1,), (q,) int32
        Policy `ORDER`: sectors that wait for sector g, ``after[after_starts[g]:after_starts[g +
        1]]``.
    sim, done, why, queue : (s,) uint8, (n,) uint8, (n,) int64, (n,) int64
        Workspace of the policies: held sectors, robots that can finish, the sector that blocks each
        robot, robots to serve.
    et, er, ek, es : (e,) float64, int32, int8, int32
        Event buffer: time, robot, kind, sector.
    """

    f: F8
    lines: F8
    i: I4
    c: I8
    d: F8
    heap: I8
    key: F8
    slot: I8
    points: F8
    first: I4
    ends: F8
    sectors: I4
    others: I4
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
