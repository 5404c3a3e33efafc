"""Event loop of the traffic engine, with the built-in policies.

Each robot's next event has a closed form, and the earliest event of all comes first.
Between two events a robot's acceleration is constant, so times follow without a time
step (mmrs.md §10).

Events at one time are in the order of robots, then of points along the path; points at
one position come as release, critical, enter. A robot that brakes has a planned
position of rest. It does not reach points from there on (less `PLACE_TOLERANCE`), which
decides the tie between coming to rest at a point and passing it. The base of a robot's
motion changes only when it starts to brake or to go, so rounding errors do not add up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.traffic.kernels.jit import entry_kernel, inline_kernel

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


# -- event queue: a heap of robots, four children per node, by the time of the next
# event, then by robot number


@inline_kernel
def _move(w: World, k: int, due: float) -> None:
    """Set the time of the robot at index k of the heap, and restore the heap order."""
    i = w.heap[k]
    n = len(w.heap)
    # Move it up while it comes before its parent.
    while k > 0:
        parent = (k - 1) >> 2
        j = w.heap[parent]
        if not (due < w.key[parent] or (due == w.key[parent] and i < j)):
            break
        w.heap[k], w.key[k] = j, w.key[parent]
        w.slot[j] = k
        k = parent

    # Move it down while one of its children comes before it.
    while True:
        child = 4 * k + 1
        if child >= n:
            break
        least = w.key[child]
        for other in range(child + 1, min(child + 3, n - 1) + 1):
            if w.key[other] < least or (
                w.key[other] == least and w.heap[other] < w.heap[child]
            ):
                child, least = other, w.key[other]

        j = w.heap[child]
        if not (least < due or (least == due and j < i)):
            break
        w.heap[k], w.key[k] = j, least
        w.slot[j] = k
        k = child

    w.heap[k], w.key[k] = i, due
    w.slot[i] = k


@inline_kernel
def _reach(w: World, i: int, place: float) -> float:
    """Return the time at which a moving robot reaches a position.

    A position that is not ahead counts as reached.
    """
    d = place - w.f[i, X]
    if d <= 0.0:
        return w.f[i, T]
    v, vmax, acc = w.f[i, V], w.f[i, VMAX], w.f[i, ACC]
    if v < vmax:
        run_up = (vmax * vmax - v * v) / (2.0 * acc)
        # It still speeds up there.
        if d <= run_up:
            return w.f[i, T] + (math.sqrt(v * v + 2.0 * acc * d) - v) / acc
        # The position is beyond the point at which it reaches its top speed.
        return w.f[i, T] + (vmax - v) / acc + (d - run_up) / vmax

    return w.f[i, T] + d / vmax


@inline_kernel
def _brake_place(w: World, i: int) -> float:
    """Return the position at which a moving robot must start to brake for its limit."""
    v, vmax, acc, dec = w.f[i, V], w.f[i, VMAX], w.f[i, ACC], w.f[i, DEC]
    late = w.f[i, LIMIT] - vmax * vmax / (2.0 * dec)
    # It still speeds up there: the speed-up and the braking parabola meet at this
    # position.
    if v < vmax and late < w.f[i, X] + (vmax * vmax - v * v) / (2.0 * acc):
        return (2.0 * dec * w.f[i, LIMIT] + 2.0 * acc * w.f[i, X] - v * v) / (
            2.0 * (acc + dec)
        )

    return late


@inline_kernel
def _speed_at(w: World, i: int, t: float) -> float:
    """Return the speed of a robot at a time, m/s."""
    dt = t - w.f[i, T]
    if w.i[i, MODE] == GOING:
        return min(w.f[i, VMAX], w.f[i, V] + w.f[i, ACC] * dt)
    return max(0.0, w.f[i, V] - w.f[i, DEC] * dt)


@inline_kernel
def _place_at(w: World, i: int, t: float) -> float:
    """Return the position of a robot at a time, m along its path."""
    dt = t - w.f[i, T]
    v = w.f[i, V]
    if w.i[i, MODE] == GOING:
        vmax, acc = w.f[i, VMAX], w.f[i, ACC]
        if v < vmax:
            dt_up = (vmax - v) / acc
            if dt < dt_up:
                return w.f[i, X] + dt * (v + 0.5 * acc * dt)
            return w.f[i, X] + (vmax * vmax - v * v) / (2.0 * acc) + (dt - dt_up) * vmax

        return w.f[i, X] + dt * v

    # A robot at rest is at its planned position; rounding of times does not shift it.
    if t >= w.f[i, REST]:
        return w.f[i, BASE]
    return w.f[i, X] + dt * (v - 0.5 * w.f[i, DEC] * dt)


@inline_kernel
def _plan(w: World, i: int, now: float) -> None:
    """Find a robot's next event, and update its position in the queue."""
    p = w.i[i, POINT]
    due = INFINITE
    # A robot that was removed has no next event.
    if w.i[i, MODE] != GONE:
        # The next event is the next point of the path or the start of braking,
        # whichever is first.
        if w.i[i, MODE] == GOING:
            if p < w.i[i, LAST]:
                due = _reach(w, i, w.points[p, 0])
            if w.f[i, LIMIT] < INFINITE:
                brake = _reach(w, i, _brake_place(w, i))
                if brake < due:
                    due = brake
        elif p < w.i[i, LAST]:
            # This is the planned position of rest.
            stop = w.f[i, BASE]
            d = w.points[p, 0] - w.f[i, X]
            # It passes the point while it brakes.
            if w.points[p, 0] < stop - PLACE_TOLERANCE:
                if d <= 0.0:
                    due = w.f[i, T]
                else:
                    v, dec = w.f[i, V], w.f[i, DEC]
                    due = (
                        w.f[i, T]
                        + (v - math.sqrt(max(0.0, v * v - 2.0 * dec * d))) / dec
                    )
            # Of the points at the position of rest, only the end of the path becomes an
            # event.
            elif (int(w.points[p, 1]) & 3) == FINISH and w.points[
                p, 0
            ] <= stop + PLACE_TOLERANCE:
                due = w.f[i, REST]

        # Rounding can put an event of this moment slightly into the past.
        if due < now:
            due = now

    if due != w.key[w.slot[i]]:
        _move(w, w.slot[i], due)


# -- actions of robots


@inline_kernel
def _emit(w: World, t: float, robot: int, kind: int, sector: int) -> None:
    """Count an event, and write it to the buffer if events are kept."""
    w.c[EVENTS] += 1
    if w.c[LOGS]:
        k = w.c[OUT]
        if k < len(w.et):
            w.et[k] = t
            w.er[k] = robot
            w.ek[k] = kind
            w.es[k] = sector
            w.c[OUT] = k + 1
        # The caller reports the number of lost events.
        else:
            w.c[LOST] += 1


@inline_kernel
def _brake(w: World, i: int, t: float) -> None:
    """Start to brake: set a new base of the motion and the planned position of rest.

    The old base is kept for `_go`.
    """
    v = _speed_at(w, i, t)
    x = _place_at(w, i, t)
    w.f[i, OLD_T], w.f[i, OLD_X], w.f[i, OLD_V] = w.f[i, T], w.f[i, X], w.f[i, V]
    w.f[i, T], w.f[i, X], w.f[i, V] = t, x, v
    w.i[i, MODE] = BRAKING
    w.f[i, REST] = t + v / w.f[i, DEC]
    stop = x + v * v / (2.0 * w.f[i, DEC])
    # A robot that brakes for its limit stops exactly there, without the rounding of its
    # start.
    if w.f[i, LIMIT] < INFINITE and abs(stop - w.f[i, LIMIT]) < 1e-6:
        stop = w.f[i, LIMIT]
    w.f[i, BASE] = stop
    _emit(w, t, i, STOP, w.i[i, HEAD])


@inline_kernel
def _go(w: World, i: int, t: float, limit: float) -> None:
    """Continue from braking or rest up to `limit`, m along the path."""
    # Undo a braking that started at this moment: equal motions stay equal to the last
    # bit.
    if t == w.f[i, T]:
        t0, x, v = w.f[i, OLD_T], w.f[i, OLD_X], w.f[i, OLD_V]
        w.f[i, T], w.f[i, X], w.f[i, V] = t0, x, v
        w.f[i, REST] = INFINITE
        w.f[i, LIMIT] = limit
        w.i[i, MODE] = GOING
        _emit(w, t, i, START, w.i[i, HEAD])
        return

    # It has come to rest.
    if t >= w.f[i, REST]:
        x, v = w.f[i, BASE], 0.0
        p = w.i[i, POINT]
        # It rests at this point, so rounding must not leave it short of the point.
        if p < w.i[i, LAST] and abs(w.points[p, 0] - x) <= PLACE_TOLERANCE:
            x = w.points[p, 0]
        # A robot that continues at the moment of coming to rest has not waited.
        if t > w.f[i, REST]:
            w.f[i, WAIT] += t - w.f[i, REST]
            w.i[i, STOPS] += 1
    else:
        x, v = _place_at(w, i, t), _speed_at(w, i, t)

    w.f[i, T], w.f[i, X], w.f[i, V] = t, x, v
    w.f[i, REST] = INFINITE
    w.f[i, LIMIT] = limit
    w.i[i, MODE] = GOING
    _emit(w, t, i, START, w.i[i, HEAD])


@inline_kernel
def _usual_limit(w: World, i: int) -> float:
    """Return the limit of a robot that waits for no permission, m along its path.

    The limit is the end of its path, or infinite.
    """
    return w.ends[w.first[i + 1] - 1] if w.c[AT_END] else INFINITE


@inline_kernel
def _allow(w: World, i: int, t: float) -> None:
    """Count one more permission for a robot."""
    w.i[i, ALLOWED] += 1
    _emit(w, t, i, GRANT, w.i[i, ALLOWED])


@inline_kernel
def _set_off(w: World, i: int, t: float) -> None:
    """Let a robot go on up to the end of its permissions, after they have changed."""
    if w.i[i, DONE] or w.i[i, MODE] == GONE:
        return
    limit = _usual_limit(w, i)
    # It has asked for sectors that are not permitted yet, so it stops before the first
    # of them.
    if w.i[i, ALLOWED] < w.i[i, ASKED]:
        limit = min(limit, w.ends[w.first[i] + w.i[i, ALLOWED]] - w.f[i, RADIUS])
    if w.i[i, MODE] == BRAKING:
        # Continue only if the new limit is beyond the position where it stops anyway.
        if limit > w.f[i, BASE] + PLACE_TOLERANCE:
            _go(w, i, t, limit)
            _plan(w, i, t)
    elif limit != w.f[i, LIMIT]:
        v, x = _speed_at(w, i, t), _place_at(w, i, t)
        w.f[i, T], w.f[i, X], w.f[i, V], w.f[i, LIMIT] = t, x, v, limit
        _plan(w, i, t)


# -- policies that reserve sectors


@inline_kernel
def _ranks(w: World, i: int, j: int) -> bool:
    """Whether the sector that robot i waits for ranks before the one of robot j."""
    a, b = (
        w.rank[w.first[i] + w.i[i, ALLOWED] + 1],
        w.rank[w.first[j] + w.i[j, ALLOWED] + 1],
    )
    return a < b or (a == b and i < j)


@inline_kernel
def _is_free(w: World, i: int, k: int) -> bool:
    """Whether no held sector conflicts with sector k of a robot or with its chain."""
    for g in range(w.first[i] + k, w.first[i] + w.chain[w.first[i] + k] + 1):
        for c in range(w.starts[g], w.starts[g + 1]):
            if w.held[w.others[c]]:
                return False

    return True


@inline_kernel
def _blocking_sector(w: World, j: int, allowed: int) -> int:
    """Return a sector held in `w.sim` that blocks the path of robot j; −1 for none.

    The path is the part beyond the sector `allowed`.
    """
    for g in range(w.first[j] + allowed + 1, w.first[j + 1]):
        for c in range(w.starts[g], w.starts[g + 1]):
            if w.sim[w.others[c]]:
                return w.others[c]

    return -1


@inline_kernel
def _ends_on_way(w: World, j: int) -> bool:
    """Whether the last sector of robot j blocks a robot that has not finished."""
    last = w.first[j + 1] - 1
    for c in range(w.starts[last], w.starts[last + 1]):
        other = w.others[c]
        o = w.owner[other]
        if not w.done[o] and other - w.first[o] >= w.i[o, TAIL]:
            return True

    return False


@inline_kernel
def _is_safe(w: World, i: int, k: int) -> bool:
    """Banker's test: can all robots finish one by one if robot i gets sector k?

    `sim` holds the sectors that are held then. A robot can finish if no other robot
    holds a sector that conflicts with the rest of its path. Its last sector, where it
    stays, must not block a robot that has not finished. Each robot that finishes
    releases its other sectors.
    """
    w.c[TESTS] += 1
    n = len(w.first) - 1
    left = 0
    for j in range(n):
        w.done[j] = w.i[j, DONE]
        w.why[j] = -1
        if not w.done[j]:
            left += 1

    progress = True
    while left > 0 and progress:
        progress = False
        for j in range(n):
            if w.done[j]:
                continue
            # The sector that blocked it is still held, so a new search would find it
            # again.
            if w.why[j] >= 0 and w.sim[w.why[j]]:
                continue
            allowed = k if j == i else w.i[j, ALLOWED]
            w.why[j] = _blocking_sector(w, j, allowed)
            # It cannot finish before others do.
            if w.why[j] >= 0:
                continue
            # It would block other robots for ever.
            if not w.c[LEAVES] and _ends_on_way(w, j):
                continue
            for g in range(w.first[j] + w.i[j, TAIL], w.first[j] + allowed + 1):
                w.sim[g] = 0
            # It stays in its last sector.
            if not w.c[LEAVES]:
                w.sim[w.first[j + 1] - 1] = 1
            w.done[j] = 1
            left -= 1
            progress = True

    return left == 0


@inline_kernel
def _may(w: World, i: int) -> bool:
    """Whether the policy permits a robot its next sector."""
    k = w.i[i, ALLOWED] + 1
    g = w.first[i] + k
    if w.c[POLICY] == EVERYTHING:
        return True
    # The plan orders all conflicts, so it waits only for the earlier sectors of the
    # plan.
    if w.c[POLICY] == ORDER:
        return w.need[g] == 0
    if not _is_free(w, i, k):
        return False
    # A free sector is not enough: all robots must still be able to finish.
    if w.c[POLICY] == BANKERS:
        # A sector without conflicts leaves the state as safe as it was.
        if w.starts[g] == w.starts[g + 1]:
            return True
        for s in range(len(w.held)):
            w.sim[s] = w.held[s]
        w.sim[g] = 1
        return _is_safe(w, i, k)

    return True


@inline_kernel
def _serve(w: World, i: int, t: float) -> bool:
    """Permit a robot the next sector it waits for and its chain, if the policy does.

    The caller calls `_set_off` after it. Returns whether the robot got a sector.
    """
    if w.i[i, ALLOWED] >= w.i[i, ASKED] or not _may(w, i):
        return False
    k = w.i[i, ALLOWED] + 1
    for g in range(w.first[i] + k, w.first[i] + w.chain[w.first[i] + k] + 1):
        w.held[g] = 1
        _allow(w, i, t)

    return True


@inline_kernel
def _is_waiting(w: World, j: int) -> bool:
    """Whether a robot has asked for a sector that is not permitted yet."""
    return w.i[j, ALLOWED] < w.i[j, ASKED]


@inline_kernel
def _waits_for(w: World, j: int, g: int) -> bool:
    """Whether robot j waits for sector g, alone or as a part of a chain."""
    k, s = w.i[j, ALLOWED] + 1, g - w.first[j]
    return k <= w.i[j, ASKED] and k <= s and s <= w.chain[w.first[j] + k]


@inline_kernel
def _queue_waiting(w: World, g: int) -> int:
    """Write to `w.queue` the robots that may go on after the release of sector g.

    Each robot occurs once. Returns their number.
    """
    n = 0
    # A release can make any unsafe grant safe, also one without a conflict with it.
    if w.c[POLICY] == BANKERS:
        for j in range(len(w.first) - 1):
            if _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    # Only sectors that follow it in the plan can become free.
    elif w.c[POLICY] == ORDER:
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            j = w.owner[w.after[c]]
            # A robot can use this sector only if it is its next one.
            if w.first[j] + w.i[j, ALLOWED] + 1 == w.after[c] and _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    # Only robots that wait for a conflicting sector can become free.
    elif w.c[POLICY] == RESERVE:
        for c in range(w.starts[g], w.starts[g + 1]):
            j = w.owner[w.others[c]]
            if not _waits_for(w, j, w.others[c]):
                continue
            # Several sectors of a robot may conflict with this one.
            seen = False
            for q in range(n):
                if w.queue[q] == j:
                    seen = True

            if not seen:
                w.queue[n] = j
                n += 1

    return n


@inline_kernel
def _freed(w: World, g: int, t: float) -> None:
    """Release a sector, and serve the robots that waited for it, by rank."""
    w.held[g] = 0
    # It no longer blocks the sectors that follow it in the plan.
    if w.c[POLICY] == ORDER:
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            w.need[w.after[c]] -= 1

    n = _queue_waiting(w, g)
    # Insertion sort by rank, because the robots are few.
    for a in range(1, n):
        j = w.queue[a]
        b = a - 1
        while b >= 0 and _ranks(w, j, w.queue[b]):
            w.queue[b + 1] = w.queue[b]
            b -= 1

        w.queue[b + 1] = j

    a, last = 0, -1
    while a < n:
        j = w.queue[a]
        # This robot has received all that it can get now.
        if last >= 0 and last != j:
            _set_off(w, last, t)
            last = -1

        if _serve(w, j, t):
            last = j
            # Its next request has its own rank.
            if _is_waiting(w, j):
                b = a
                while b + 1 < n and _ranks(w, w.queue[b + 1], j):
                    w.queue[b] = w.queue[b + 1]
                    b += 1

                w.queue[b] = j
                continue

        a += 1

    if last >= 0:
        _set_off(w, last, t)


# -- the loop


@inline_kernel
def _enter(w: World, i: int, sector: int, t: float) -> bool:
    """Let a robot's front enter its next sector. Returns whether it collides."""
    g = w.first[i] + sector
    w.i[i, HEAD] = sector
    w.inside[g] = 1
    _emit(w, t, i, ENTER, sector)
    hit = False
    for c in range(w.starts[g], w.starts[g + 1]):
        # Another robot is in a conflicting sector.
        if w.inside[w.others[c]]:
            j = w.owner[w.others[c]]
            _emit(w, t, i, COLLISION, j)
            w.c[COLLISIONS] += 1
            # Both robots brake after a collision.
            if w.i[i, MODE] == GOING:
                _brake(w, i, t)
            if w.i[j, MODE] == GOING:
                _brake(w, j, t)
                _plan(w, j, t)

            hit = True

    return hit


@inline_kernel
def _finish(w: World, i: int, t: float) -> None:
    """Record that a robot is at the end of its path."""
    w.i[i, DONE] = 1
    w.f[i, FINISHED] = t
    w.c[N_DONE] += 1
    _emit(w, t, i, FINISH, w.i[i, HEAD])
    if w.i[i, MODE] == GOING:
        _brake(w, i, t)
    if w.c[LEAVES]:
        w.i[i, MODE] = GONE


@inline_kernel
def _passes_point(w: World, i: int) -> bool:
    """Whether a robot's next event is the next point of its path, not a braking."""
    p = w.i[i, POINT]
    if p >= w.i[i, LAST]:
        return False
    # It brakes already, or it has no limit.
    if w.i[i, MODE] != GOING or w.f[i, LIMIT] == INFINITE:
        return True
    place = _brake_place(w, i)
    # A robot whose path ends where it must brake brakes first.
    return w.points[p, 0] <= place and not (
        w.points[p, 0] == place and (int(w.points[p, 1]) & 3) == FINISH
    )


@inline_kernel
def _release(w: World, i: int, sector: int, t: float) -> None:
    """Record that a robot's rear has left a sector."""
    w.inside[w.first[i] + sector] = 0
    _emit(w, t, i, RELEASE, sector)


@inline_kernel
def _ask(w: World, i: int, sector: int, t: float) -> None:
    """Ask for a sector at the last position from which a robot can stop before it.

    The robot brakes if the sector is not permitted.
    """
    w.i[i, ASKED] = sector
    _emit(w, t, i, CRITICAL, sector)
    # The sector was permitted before.
    if w.i[i, ALLOWED] >= sector:
        return
    # With another limit, the position of its stop is already planned.
    if w.i[i, MODE] == GOING and w.f[i, LIMIT] == _usual_limit(w, i):
        _brake(w, i, t)
    # Otherwise a supervisor in Python decides.
    if w.c[POLICY] >= EVERYTHING:
        # First come, first served: number the requests. Otherwise ranks stay fixed.
        if w.c[SEQUENCE] >= 0:
            w.c[SEQUENCE] += 1
            w.rank[w.first[i] + sector] = w.c[SEQUENCE]

        any_granted = False
        while _serve(w, i, t):
            any_granted = True
        if any_granted:
            _set_off(w, i, t)


@entry_kernel
def allow(w: World, i: int, count: int, t: float) -> None:
    """Give robot i `count` permissions at time t.

    Permissions before the start (t < 0) are only counted.
    """
    for _ in range(count):
        _allow(w, i, max(t, 0.0))
    # Before the start, `begin` has planned no event yet.
    if t >= 0.0:
        _set_off(w, i, t)


@entry_kernel
def count_stuck(w: World) -> int:
    """Return the number of robots that cannot finish one after the other.

    This is the Banker's test; `w.done` marks the robots that can finish.
    """
    for s in range(len(w.held)):
        w.sim[s] = w.held[s]
    _is_safe(w, -1, 0)
    left = 0
    for j in range(len(w.done)):
        left += 1 - w.done[j]
    return left


@entry_kernel
def begin(w: World) -> None:
    """Plan the first event of all robots."""
    n = len(w.heap)
    for i in range(n):
        w.heap[i] = w.slot[i] = i
        w.key[i] = INFINITE

    for i in range(n):
        _plan(w, i, 0.0)


@entry_kernel
def advance(w: World, until: float) -> int:
    """Process events up to and including time `until`, s.

    Returns the reason to stop, see the constants. ``w.d[0]`` is the time of the last
    event.
    """
    # One event can write several rows, so the buffer keeps a margin.
    room = len(w.et) - 4 * len(w.first) - 4096
    policy = w.c[POLICY]
    while True:
        if w.c[N_DONE] == len(w.first) - 1:
            return ALL_DONE
        # The caller empties the buffer and calls again.
        if w.c[LOGS] and w.c[OUT] > room:
            return FULL
        i = w.heap[0]
        t = w.key[0]
        # No robot moves until one gets a permission.
        if t == INFINITE:
            return IDLE
        if t > until:
            return TIME
        w.d[0] = t
        if not _passes_point(w, i):
            _brake(w, i, t)
            _plan(w, i, t)
            continue

        p = w.i[i, POINT]
        w.i[i, POINT] = p + 1
        kind = int(w.points[p, 1]) & 3
        sector = int(w.points[p, 1]) >> 2
        # These are the sectors that it releases.
        first, last = 0, -1
        if kind == RELEASE:
            first = last = sector
        elif kind == CRITICAL:
            _ask(w, i, sector, t)
        elif kind == ENTER:
            # The robot has hit another one, and this ends the run.
            if _enter(w, i, sector, t) and not w.c[GOES_ON]:
                _plan(w, i, t)
                return COLLIDED
        else:
            _finish(w, i, t)
            # A robot that is removed releases all sectors that it still occupies.
            if w.c[LEAVES]:
                first, last = w.i[i, TAIL], w.i[i, HEAD]

        # One loop serves both cases, so that its body is compiled only once.
        for s in range(first, last + 1):
            w.i[i, TAIL] = s + 1
            _release(w, i, s, t)
            if policy >= RESERVE:
                _freed(w, w.first[i] + s, t)

        _plan(w, i, t)
        if policy == EXTERNAL and (
            kind == CRITICAL or kind == RELEASE or kind == FINISH
        ):
            w.c[NOTICE] = kind
            w.c[NOTICE_ROBOT] = i
            w.c[NOTICE_SECTOR] = sector
            return NOTIFY


@entry_kernel
def places(w: World, t: float, out_x: F8, out_v: F8) -> None:
    """Write position (m) and speed (m/s) of all robots at a time after all events."""
    for i in range(len(out_x)):
        out_x[i] = _place_at(w, i, t)
        out_v[i] = _speed_at(w, i, t)
