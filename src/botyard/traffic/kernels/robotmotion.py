"""Motion of robots between events: the queue of next events, braking, going and permissions.

The queue is a heap of robots, four children per node, by the time of the next event,
then by robot number.
"""

from __future__ import annotations

import math

from botyard.traffic.kernels.jit import inline_kernel
from botyard.traffic.kernels.runarrays import (
    ACC,
    ALLOWED,
    ASKED,
    AT_END,
    BASE,
    BRAKING,
    DEC,
    DONE,
    EVENTS,
    FINISH,
    GOING,
    GONE,
    GRANT,
    HEAD,
    INFINITE,
    LAST,
    LIMIT,
    LOGS,
    LOST,
    MODE,
    OLD_T,
    OLD_V,
    OLD_X,
    OUT,
    PLACE_TOLERANCE,
    POINT,
    RADIUS,
    REST,
    START,
    STOP,
    STOPS,
    VMAX,
    WAIT,
    T,
    V,
    World,
    X,
)


@inline_kernel
def move_in_queue(w: World, k: int, due: float) -> None:
    """Set the time of a robot in the event queue, and restore the heap order.

    Parameters
    ----------
    w : World
        Arrays of the run.
    k : int
        Index of the robot in the heap.
    due : float
        Time of its next event, s; infinite for none.
    """
    i = w.heap[k]
    n = len(w.heap)
    # Move the entry up while it comes before its parent.
    while k > 0:
        parent = (k - 1) >> 2
        j = w.heap[parent]
        if not (due < w.key[parent] or (due == w.key[parent] and i < j)):
            break
        w.heap[k], w.key[k] = j, w.key[parent]
        w.slot[j] = k
        k = parent

    # Move the entry down while one of its children comes before it.
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

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot, in the mode `GOING`.
    place : float
        Position along its path, m. One that is not ahead counts as reached.

    Returns
    -------
    float
        Time, s, as if the robot did not brake before.
    """
    d = place - w.f[i, X]
    if d <= 0.0:
        return w.f[i, T]
    v, vmax, acc = w.f[i, V], w.f[i, VMAX], w.f[i, ACC]
    if v < vmax:
        run_up = (vmax * vmax - v * v) / (2.0 * acc)
        # The robot still speeds up at this position.
        if d <= run_up:
            return w.f[i, T] + (math.sqrt(v * v + 2.0 * acc * d) - v) / acc
        # The position is beyond the point at which it reaches its top speed.
        return w.f[i, T] + (vmax - v) / acc + (d - run_up) / vmax

    return w.f[i, T] + d / vmax


@inline_kernel
def brake_place(w: World, i: int) -> float:
    """Return the position at which a moving robot must start to brake for its limit.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot, in the mode `GOING`, with a finite limit.

    Returns
    -------
    float
        Position along its path, m.
    """
    v, vmax, acc, dec = w.f[i, V], w.f[i, VMAX], w.f[i, ACC], w.f[i, DEC]
    late = w.f[i, LIMIT] - vmax * vmax / (2.0 * dec)
    # The robot still speeds up: the speed-up and the braking parabola meet at this
    # position.
    if v < vmax and late < w.f[i, X] + (vmax * vmax - v * v) / (2.0 * acc):
        return (2.0 * dec * w.f[i, LIMIT] + 2.0 * acc * w.f[i, X] - v * v) / (
            2.0 * (acc + dec)
        )

    return late


@inline_kernel
def speed_at(w: World, i: int, t: float) -> float:
    """Return the speed of a robot at a time.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    t : float
        Time, s, between its last and its next event.

    Returns
    -------
    float
        Speed, m/s.
    """
    dt = t - w.f[i, T]
    if w.i[i, MODE] == GOING:
        return min(w.f[i, VMAX], w.f[i, V] + w.f[i, ACC] * dt)
    return max(0.0, w.f[i, V] - w.f[i, DEC] * dt)


@inline_kernel
def place_at(w: World, i: int, t: float) -> float:
    """Return the position of a robot along its path at a time.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    t : float
        Time, s, between its last and its next event.

    Returns
    -------
    float
        Position, m.
    """
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
def plan_event(w: World, i: int, now: float) -> None:
    """Find a robot's next event, and update its position in the queue.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    now : float
        Current time, s. The event is not before it.
    """
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
                brake = _reach(w, i, brake_place(w, i))
                if brake < due:
                    due = brake
        elif p < w.i[i, LAST]:
            # The robot is to rest at this position.
            stop = w.f[i, BASE]
            d = w.points[p, 0] - w.f[i, X]
            # The robot passes the point while it brakes.
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
        move_in_queue(w, w.slot[i], due)


@inline_kernel
def emit_event(w: World, t: float, robot: int, kind: int, sector: int) -> None:
    """Count an event, and write it to the buffer if events are kept.

    Parameters
    ----------
    w : World
        Arrays of the run. An event without room in the buffer counts as lost.
    t : float
        Time, s.
    robot : int
        Robot.
    kind : int
        Kind of event, `RELEASE` … `COLLISION`.
    sector : int
        Number of the sector on the robot's path; for a collision, the other robot.
    """
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
def start_braking(w: World, i: int, t: float) -> None:
    """Start to brake: set a new base of the motion and the planned position of rest.

    The old base is kept for `go`.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot, in the mode `GOING`.
    t : float
        Time, s.
    """
    v = speed_at(w, i, t)
    x = place_at(w, i, t)
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
    emit_event(w, t, i, STOP, w.i[i, HEAD])


@inline_kernel
def go(w: World, i: int, t: float, limit: float) -> None:
    """Continue from braking or rest up to a limit.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot, in the mode `BRAKING`.
    t : float
        Time, s.
    limit : float
        Position along its path at which it must stop, m; infinite for none.
    """
    # Undo a braking that started at this moment: equal motions stay equal to the last
    # bit.
    if t == w.f[i, T]:
        t0, x, v = w.f[i, OLD_T], w.f[i, OLD_X], w.f[i, OLD_V]
        w.f[i, T], w.f[i, X], w.f[i, V] = t0, x, v
        w.f[i, REST] = INFINITE
        w.f[i, LIMIT] = limit
        w.i[i, MODE] = GOING
        emit_event(w, t, i, START, w.i[i, HEAD])
        return

    # The robot has come to rest.
    if t >= w.f[i, REST]:
        x, v = w.f[i, BASE], 0.0
        p = w.i[i, POINT]
        # The robot rests at this point, so rounding must not leave it short of the
        # point.
        if p < w.i[i, LAST] and abs(w.points[p, 0] - x) <= PLACE_TOLERANCE:
            x = w.points[p, 0]
        # A robot that continues at the moment of coming to rest has not waited.
        if t > w.f[i, REST]:
            w.f[i, WAIT] += t - w.f[i, REST]
            w.i[i, STOPS] += 1
    else:
        x, v = place_at(w, i, t), speed_at(w, i, t)

    w.f[i, T], w.f[i, X], w.f[i, V] = t, x, v
    w.f[i, REST] = INFINITE
    w.f[i, LIMIT] = limit
    w.i[i, MODE] = GOING
    emit_event(w, t, i, START, w.i[i, HEAD])


@inline_kernel
def usual_limit(w: World, i: int) -> float:
    """Return the limit of a robot that waits for no permission.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.

    Returns
    -------
    float
        The end of its path, m, with the option `AT_END`; otherwise infinite.
    """
    return w.ends[w.first[i + 1] - 1] if w.c[AT_END] else INFINITE


@inline_kernel
def allow_sectors(w: World, i: int, t: float) -> None:
    """Count one more permission for a robot.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    t : float
        Time, s.
    """
    w.i[i, ALLOWED] += 1
    emit_event(w, t, i, GRANT, w.i[i, ALLOWED])


@inline_kernel
def set_off(w: World, i: int, t: float) -> None:
    """Let a robot go on up to the end of its permissions, after they have changed.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot. Nothing happens if it has finished.
    t : float
        Time, s.
    """
    if w.i[i, DONE] or w.i[i, MODE] == GONE:
        return
    limit = usual_limit(w, i)
    # The robot has asked for sectors that are not permitted yet, so it stops before the
    # first of them.
    if w.i[i, ALLOWED] < w.i[i, ASKED]:
        limit = min(limit, w.ends[w.first[i] + w.i[i, ALLOWED]] - w.f[i, RADIUS])
    if w.i[i, MODE] == BRAKING:
        # Continue only if the new limit is beyond the position where the robot stops
        # anyway.
        if limit > w.f[i, BASE] + PLACE_TOLERANCE:
            go(w, i, t, limit)
            plan_event(w, i, t)
    elif limit != w.f[i, LIMIT]:
        v, x = speed_at(w, i, t), place_at(w, i, t)
        w.f[i, T], w.f[i, X], w.f[i, V], w.f[i, LIMIT] = t, x, v, limit
        plan_event(w, i, t)
