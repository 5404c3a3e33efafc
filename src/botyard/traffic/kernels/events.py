"""The event loop: every robot's next event in closed form, the earliest of all first, and the built-in policies.

Between two events a robot's acceleration is constant, so times follow without a time step (mmrs.md §10). Events of one time are in the
order of robots, then of points along the path, where those of one place come as release, critical, enter. A robot that brakes has a
planned place to stop at; points from there on (less `PLACE_TOLERANCE`) are not reached, which decides the tie between coming to rest at a
point and passing it. The base of a robot's motion changes only when it begins to brake or to go, so rounding errors do not add up.
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
"""Places along a path that are closer than this are one place, m."""
INFINITE = math.inf

# columns of f, one row a robot
T, X, V, VMAX, ACC, DEC, LIMIT, REST, BASE, OLD_T, OLD_X, OLD_V, RADIUS, WAIT, FINISHED = range(15)
N_F = 16  # two lines of the cache
# columns of i
POINT, LAST, MODE, ALLOWED, ASKED, TAIL, HEAD, DONE, STOPS = range(9)
N_I = 16
GOING, BRAKING, GONE = 1, 0, 2
# what stands at a point of a path, in the order in which those of one place happen; then what else happens
RELEASE, CRITICAL, ENTER, FINISH, GRANT, STOP, START, COLLISION = range(8)
# control: counters and options
# fmt: off
(N_DONE, OUT, SEQUENCE, POLICY, AT_END, LEAVES, GOES_ON, NOTICE, NOTICE_ROBOT, NOTICE_SECTOR, COLLISIONS, LOGS, EVENTS, LOST,
 TESTS) = range(15)
# fmt: on
N_C = 15
# policies
NOBODY, EXTERNAL, EVERYTHING, RESERVE, ORDER, BANKERS = range(6)
# why `advance` returned
IDLE, TIME, FULL, NOTIFY, ALL_DONE, COLLIDED = range(6)


class World(NamedTuple):
    """All arrays of a run. One robot has a row; sectors of all robots are numbered through, robot by robot.

    Attributes
    ----------
    f, i : (n, N_F) float64, (n, N_I) int32
        Robots; the constants above name the columns.
    c, d : (N_C,) int64, (1,) float64
        Counters and options; the time of the last event.
    heap, key, slot : (n,) int64, float64, int64
        The queue: robots, the times of their next events in the same order, and where in it each robot is.
    points : (p, 2) float64
        Points of all paths in the order in which they are passed: place, m, and 4 · sector of the robot + kind. Side by side, so that an
        event looks at one line of the cache.
    first, ends, owner : (n + 1,) int32, (s,) float64, (s,) int32
        First sector of each robot; end of each sector, m; its robot.
    starts, others : (s + 1,), (m,) int32
        Conflicts of sector g: ``others[starts[g]:starts[g + 1]]``.
    inside, held : (s,) uint8
        Whether its robot is in a sector; whether it is reserved.
    chain, rank, need : (s,) int32
        Up to where sectors of the robot are granted together; who is served first; how many sectors must be left before.
    after_starts, after : (s + 1,), (q,) int32
        Sectors that come after sector g in a fixed order.
    sim, done, why, queue : (s,) uint8, (n,) uint8, (n,) int64, (n,) int64
        Workspace.
    et, er, ek, es : (e,) float64, int32, int8, int32
        Buffer of events: time, robot, kind, sector.
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


# -- the queue: a heap of robots, four below each, by the time of their next event, then by number


@inline_kernel
def _move(w: World, k: int, due: float) -> None:
    """Give the robot at place k of the heap the time `due`, and move it to where that belongs."""
    i = w.heap[k]
    n = len(w.heap)
    while k > 0:  # up, while it comes before its parent
        parent = (k - 1) >> 2
        j = w.heap[parent]
        if not (due < w.key[parent] or (due == w.key[parent] and i < j)):
            break
        w.heap[k], w.key[k] = j, w.key[parent]
        w.slot[j] = k
        k = parent
    while True:  # down, while one of its children comes before it
        child = 4 * k + 1
        if child >= n:
            break
        least = w.key[child]
        for other in range(child + 1, min(child + 3, n - 1) + 1):
            if w.key[other] < least or (w.key[other] == least and w.heap[other] < w.heap[child]):
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
    """When a robot that goes is at a place ahead; it is there already if that is not ahead."""
    d = place - w.f[i, X]
    if d <= 0.0:
        return w.f[i, T]
    v, vmax, acc = w.f[i, V], w.f[i, VMAX], w.f[i, ACC]
    if v < vmax:
        run_up = (vmax * vmax - v * v) / (2.0 * acc)
        if d <= run_up:  # it still speeds up there
            return w.f[i, T] + (math.sqrt(v * v + 2.0 * acc * d) - v) / acc
        # the place is beyond where it comes to its greatest speed
        return w.f[i, T] + (vmax - v) / acc + (d - run_up) / vmax
    return w.f[i, T] + d / vmax


@inline_kernel
def _brake_place(w: World, i: int) -> float:
    """Where a robot that goes must begin to brake to stop at its limit."""
    v, vmax, acc, dec = w.f[i, V], w.f[i, VMAX], w.f[i, ACC], w.f[i, DEC]
    late = w.f[i, LIMIT] - vmax * vmax / (2.0 * dec)
    if v < vmax and late < w.f[i, X] + (vmax * vmax - v * v) / (2.0 * acc):  # still speeding up there
        return (2.0 * dec * w.f[i, LIMIT] + 2.0 * acc * w.f[i, X] - v * v) / (2.0 * (acc + dec))
    return late


@inline_kernel
def _speed_at(w: World, i: int, t: float) -> float:
    """Speed of a robot at a time, m/s."""
    dt = t - w.f[i, T]
    if w.i[i, MODE] == GOING:
        return min(w.f[i, VMAX], w.f[i, V] + w.f[i, ACC] * dt)
    return max(0.0, w.f[i, V] - w.f[i, DEC] * dt)


@inline_kernel
def _place_at(w: World, i: int, t: float) -> float:
    """Place of a robot at a time, m along its path."""
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
    if t >= w.f[i, REST]:  # it rests at its planned place, which rounding of times does not shift
        return w.f[i, BASE]
    return w.f[i, X] + dt * (v - 0.5 * w.f[i, DEC] * dt)


@inline_kernel
def _plan(w: World, i: int, now: float) -> None:
    """Find a robot's next event and put it where it belongs in the queue."""
    p = w.i[i, POINT]
    due = INFINITE
    if w.i[i, MODE] != GONE:  # one that is gone has no next event
        if w.i[i, MODE] == GOING:  # the next point of its path, or to brake, whichever is first
            if p < w.i[i, LAST]:
                due = _reach(w, i, w.points[p, 0])
            if w.f[i, LIMIT] < INFINITE:
                brake = _reach(w, i, _brake_place(w, i))
                if brake < due:
                    due = brake
        elif p < w.i[i, LAST]:
            stop = w.f[i, BASE]  # the planned place of rest
            d = w.points[p, 0] - w.f[i, X]
            if w.points[p, 0] < stop - PLACE_TOLERANCE:  # it passes the point while it brakes
                if d <= 0.0:
                    due = w.f[i, T]
                else:
                    v, dec = w.f[i, V], w.f[i, DEC]
                    due = w.f[i, T] + (v - math.sqrt(max(0.0, v * v - 2.0 * dec * d))) / dec
            # of the points where it comes to rest only the end of its path happens
            elif (int(w.points[p, 1]) & 3) == FINISH and w.points[p, 0] <= stop + PLACE_TOLERANCE:
                due = w.f[i, REST]
        if due < now:  # rounding: an event that was due in this moment
            due = now
    if due != w.key[w.slot[i]]:
        _move(w, w.slot[i], due)


# -- what happens


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
        else:  # the caller reports how many are missing
            w.c[LOST] += 1


@inline_kernel
def _brake(w: World, i: int, t: float) -> None:
    """Begin to brake: a new base of the motion, and the planned place of rest. The old base is kept for `_go`."""
    v = _speed_at(w, i, t)
    x = _place_at(w, i, t)
    w.f[i, OLD_T], w.f[i, OLD_X], w.f[i, OLD_V] = w.f[i, T], w.f[i, X], w.f[i, V]
    w.f[i, T], w.f[i, X], w.f[i, V] = t, x, v
    w.i[i, MODE] = BRAKING
    w.f[i, REST] = t + v / w.f[i, DEC]
    stop = x + v * v / (2.0 * w.f[i, DEC])
    if w.f[i, LIMIT] < INFINITE and abs(stop - w.f[i, LIMIT]) < 1e-6:
        stop = w.f[i, LIMIT]  # it brakes for its limit: without the rounding of where it began
    w.f[i, BASE] = stop
    _emit(w, t, i, STOP, w.i[i, HEAD])


@inline_kernel
def _go(w: World, i: int, t: float, limit: float) -> None:
    """Go on from braking or rest, as far as `limit`, m along the path."""
    if t == w.f[i, T]:  # it has just begun to brake: as if it had not, so that equal motions stay equal to the last bit
        t0, x, v = w.f[i, OLD_T], w.f[i, OLD_X], w.f[i, OLD_V]
        w.f[i, T], w.f[i, X], w.f[i, V] = t0, x, v
        w.f[i, REST] = INFINITE
        w.f[i, LIMIT] = limit
        w.i[i, MODE] = GOING
        _emit(w, t, i, START, w.i[i, HEAD])
        return
    if t >= w.f[i, REST]:  # it has come to rest
        x, v = w.f[i, BASE], 0.0
        p = w.i[i, POINT]
        if p < w.i[i, LAST] and abs(w.points[p, 0] - x) <= PLACE_TOLERANCE:  # it rests at that point: exactly there
            x = w.points[p, 0]
        if t > w.f[i, REST]:  # one that goes on in the moment in which it comes to rest has not waited
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
    """Limit of a robot that waits for no permission, m along its path: the end of that, or none."""
    return w.ends[w.first[i + 1] - 1] if w.c[AT_END] else INFINITE


@inline_kernel
def _allow(w: World, i: int, t: float) -> None:
    """Count one more permission for a robot."""
    w.i[i, ALLOWED] += 1
    _emit(w, t, i, GRANT, w.i[i, ALLOWED])


@inline_kernel
def _set_off(w: World, i: int, t: float) -> None:
    """Let a robot go on as far as its permissions reach, after they have changed."""
    if w.i[i, DONE] or w.i[i, MODE] == GONE:
        return
    limit = _usual_limit(w, i)
    # it has asked for sectors that are not permitted yet: it stops before the first
    if w.i[i, ALLOWED] < w.i[i, ASKED]:
        limit = min(limit, w.ends[w.first[i] + w.i[i, ALLOWED]] - w.f[i, RADIUS])
    if w.i[i, MODE] == BRAKING:
        if limit > w.f[i, BASE] + PLACE_TOLERANCE:  # farther than it comes anyway
            _go(w, i, t, limit)
            _plan(w, i, t)
    elif limit != w.f[i, LIMIT]:
        v, x = _speed_at(w, i, t), _place_at(w, i, t)
        w.f[i, T], w.f[i, X], w.f[i, V], w.f[i, LIMIT] = t, x, v, limit
        _plan(w, i, t)


# -- policies that reserve sectors


@inline_kernel
def _ranks(w: World, i: int, j: int) -> bool:
    """Whether the sector that robot i waits for ranks before that of robot j."""
    a, b = w.rank[w.first[i] + w.i[i, ALLOWED] + 1], w.rank[w.first[j] + w.i[j, ALLOWED] + 1]
    return a < b or (a == b and i < j)


@inline_kernel
def _is_free(w: World, i: int, k: int) -> bool:
    """Whether no sector is held that conflicts with sector k of a robot or with those granted together with it (its chain)."""
    for g in range(w.first[i] + k, w.first[i] + w.chain[w.first[i] + k] + 1):
        for c in range(w.starts[g], w.starts[g + 1]):
            if w.held[w.others[c]]:
                return False
    return True


@inline_kernel
def _blocking_sector(w: World, j: int, allowed: int) -> int:
    """A sector that is held in `w.sim` and conflicts with the path of robot j beyond the sector `allowed`; −1: none."""
    for g in range(w.first[j] + allowed + 1, w.first[j + 1]):
        for c in range(w.starts[g], w.starts[g + 1]):
            if w.sim[w.others[c]]:
                return w.others[c]
    return -1


@inline_kernel
def _ends_on_way(w: World, j: int) -> bool:
    """Whether the last sector of robot j conflicts with what lies ahead of a robot that has not ended."""
    last = w.first[j + 1] - 1
    for c in range(w.starts[last], w.starts[last + 1]):
        other = w.others[c]
        o = w.owner[other]
        if not w.done[o] and other - w.first[o] >= w.i[o, TAIL]:
            return True
    return False


@inline_kernel
def _is_safe(w: World, i: int, k: int) -> bool:
    """Banker's test: can all robots end, one after the other, if robot i gets sector k now?

    `sim` is what is held then. A robot can end if nobody else holds what conflicts with the rest of its path, and if its last sector,
    where it stays, is on nobody's way who has not ended. Each robot that ends gives the rest back.
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
            if w.why[j] >= 0 and w.sim[w.why[j]]:  # the sector that blocked it is still held: no need to search again
                continue
            allowed = k if j == i else w.i[j, ALLOWED]
            w.why[j] = _blocking_sector(w, j, allowed)
            if w.why[j] >= 0:  # it cannot end before others do
                continue
            if not w.c[LEAVES] and _ends_on_way(w, j):  # it would stay in their way for ever
                continue
            for g in range(w.first[j] + w.i[j, TAIL], w.first[j] + allowed + 1):
                w.sim[g] = 0
            if not w.c[LEAVES]:  # it stays in its last sector
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
    if w.c[POLICY] == ORDER:  # the plan orders all conflicts: it waits only for the sectors that come before it there
        return w.need[g] == 0
    if not _is_free(w, i, k):
        return False
    if w.c[POLICY] == BANKERS:  # free is not enough: all must still be able to end
        if w.starts[g] == w.starts[g + 1]:  # conflicts with nothing: the state stays as safe as it was
            return True
        for s in range(len(w.held)):
            w.sim[s] = w.held[s]
        w.sim[g] = 1
        return _is_safe(w, i, k)
    return True


@inline_kernel
def _serve(w: World, i: int, t: float) -> bool:
    """Permit a robot the next sector that it waits for (and its chain), if the policy does. Returns whether; `_set_off` comes later."""
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
    """Write to `w.queue` the robots, each once, that may go on now that sector g was given back. Returns how many."""
    n = 0
    if w.c[POLICY] == BANKERS:  # what was unsafe may be safe now, whatever it conflicts with
        for j in range(len(w.first) - 1):
            if _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    elif w.c[POLICY] == ORDER:  # those that come after it by plan
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            j = w.owner[w.after[c]]
            # only if that sector is its next one
            if w.first[j] + w.i[j, ALLOWED] + 1 == w.after[c] and _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    elif w.c[POLICY] == RESERVE:  # those that wait for what conflicts with it
        for c in range(w.starts[g], w.starts[g + 1]):
            j = w.owner[w.others[c]]
            if not _waits_for(w, j, w.others[c]):
                continue
            seen = False  # several of its sectors may conflict with this one
            for q in range(n):
                if w.queue[q] == j:
                    seen = True
            if not seen:
                w.queue[n] = j
                n += 1
    return n


@inline_kernel
def _freed(w: World, g: int, t: float) -> None:
    """A sector was given back: serve those who waited for it, by rank."""
    w.held[g] = 0
    if w.c[POLICY] == ORDER:  # it is no longer in the way of those that come after it
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            w.need[w.after[c]] -= 1
    n = _queue_waiting(w, g)
    for a in range(1, n):  # insertion sort by rank: they are few
        j = w.queue[a]
        b = a - 1
        while b >= 0 and _ranks(w, j, w.queue[b]):
            w.queue[b + 1] = w.queue[b]
            b -= 1
        w.queue[b + 1] = j
    a, last = 0, -1
    while a < n:
        j = w.queue[a]
        if last >= 0 and last != j:  # it has got all that it gets now
            _set_off(w, last, t)
            last = -1
        if _serve(w, j, t):
            last = j
            if _is_waiting(w, j):  # its next request has a rank of its own
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
    """A robot's front enters its next sector. Returns whether that is a collision."""
    g = w.first[i] + sector
    w.i[i, HEAD] = sector
    w.inside[g] = 1
    _emit(w, t, i, ENTER, sector)
    hit = False
    for c in range(w.starts[g], w.starts[g + 1]):
        if w.inside[w.others[c]]:  # another robot is in a sector that conflicts with it
            j = w.owner[w.others[c]]
            _emit(w, t, i, COLLISION, j)
            w.c[COLLISIONS] += 1
            # both brake
            if w.i[i, MODE] == GOING:
                _brake(w, i, t)
            if w.i[j, MODE] == GOING:
                _brake(w, j, t)
                _plan(w, j, t)
            hit = True
    return hit


@inline_kernel
def _finish(w: World, i: int, t: float) -> None:
    """A robot is at the end of its path."""
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
    """Whether a robot's next event is that it passes the next point of its path; else it begins to brake."""
    p = w.i[i, POINT]
    if p >= w.i[i, LAST]:
        return False
    if w.i[i, MODE] != GOING or w.f[i, LIMIT] == INFINITE:  # it brakes already, or nothing holds it back
        return True
    place = _brake_place(w, i)
    # a robot that ends where it must brake brakes first
    return w.points[p, 0] <= place and not (w.points[p, 0] == place and (int(w.points[p, 1]) & 3) == FINISH)


@inline_kernel
def _release(w: World, i: int, sector: int, t: float) -> None:
    """A robot's rear has left a sector."""
    w.inside[w.first[i] + sector] = 0
    _emit(w, t, i, RELEASE, sector)


@inline_kernel
def _ask(w: World, i: int, sector: int, t: float) -> None:
    """A robot is at the last place from which it can stop before a sector: it asks for it, and brakes if it is not permitted."""
    w.i[i, ASKED] = sector
    _emit(w, t, i, CRITICAL, sector)
    if w.i[i, ALLOWED] >= sector:  # permitted before
        return
    # with another limit it is planned already where it stops
    if w.i[i, MODE] == GOING and w.f[i, LIMIT] == _usual_limit(w, i):
        _brake(w, i, t)
    if w.c[POLICY] >= EVERYTHING:  # else a supervisor outside decides
        if w.c[SEQUENCE] >= 0:  # first come, first served; else ranks stay as they are
            w.c[SEQUENCE] += 1
            w.rank[w.first[i] + sector] = w.c[SEQUENCE]
        any_granted = False
        while _serve(w, i, t):
            any_granted = True
        if any_granted:
            _set_off(w, i, t)


@entry_kernel
def allow(w: World, i: int, count: int, t: float) -> None:
    """`count` permissions for robot i at time t; before the start (t < 0) they are only counted."""
    for _ in range(count):
        _allow(w, i, max(t, 0.0))
    if t >= 0.0:  # before the start `begin` has planned nothing yet
        _set_off(w, i, t)


@entry_kernel
def count_stuck(w: World) -> int:
    """How many robots are deadlocked: could not end, one after the other (Banker's test). `w.done` tells which could."""
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
    """Carry out events up to and including time `until`; see the constants for why it returns. w.d[0] is the time of the last event."""
    room = len(w.et) - 4 * len(w.first) - 4096
    policy = w.c[POLICY]
    while True:
        if w.c[N_DONE] == len(w.first) - 1:
            return ALL_DONE
        if w.c[LOGS] and w.c[OUT] > room:  # the caller takes the events and calls again
            return FULL
        i = w.heap[0]
        t = w.key[0]
        if t == INFINITE:  # nothing happens until somebody is permitted to go on
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
        first, last = 0, -1  # sectors that it gives back
        if kind == RELEASE:
            first = last = sector
        elif kind == CRITICAL:
            _ask(w, i, sector, t)
        elif kind == ENTER:
            if _enter(w, i, sector, t) and not w.c[GOES_ON]:  # it has hit another one, and that ends the run
                _plan(w, i, t)
                return COLLIDED
        else:
            _finish(w, i, t)
            if w.c[LEAVES]:  # all that it still occupies
                first, last = w.i[i, TAIL], w.i[i, HEAD]
        for s in range(first, last + 1):  # one loop for both, so that what follows is compiled once
            w.i[i, TAIL] = s + 1
            _release(w, i, s, t)
            if policy >= RESERVE:
                _freed(w, w.first[i] + s, t)
        _plan(w, i, t)
        if policy == EXTERNAL and (kind == CRITICAL or kind == RELEASE or kind == FINISH):
            w.c[NOTICE] = kind
            w.c[NOTICE_ROBOT] = i
            w.c[NOTICE_SECTOR] = sector
            return NOTIFY


@entry_kernel
def places(w: World, t: float, out_x: F8, out_v: F8) -> None:
    """Place (m) and speed (m/s) of all robots at a time after all events so far."""
    for i in range(len(out_x)):
        out_x[i] = _place_at(w, i, t)
        out_v[i] = _speed_at(w, i, t)
