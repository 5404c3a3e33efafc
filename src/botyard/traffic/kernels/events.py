"""Event loop of the traffic engine.

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

from botyard.native.hints import prefetch
from botyard.traffic.kernels.jit import entry_kernel, inline_kernel
from botyard.traffic.kernels.permissions import is_safe, serve, serve_freed
from botyard.traffic.kernels.robotmotion import (
    allow_sectors,
    brake_place,
    emit_event,
    place_at,
    plan_event,
    set_off,
    speed_at,
    start_braking,
    usual_limit,
)
from botyard.traffic.kernels.runarrays import (
    ALL_DONE,
    ALLOWED,
    ASKED,
    COLLIDED,
    COLLISION,
    COLLISIONS,
    CRITICAL,
    DONE,
    END_CONFLICT,
    ENTER,
    EVERYTHING,
    EXTERNAL,
    F8,
    FINISH,
    FINISHED,
    FIRST_CONFLICT,
    FULL,
    GOES_ON,
    GOING,
    GONE,
    HEAD,
    HELD,
    IDLE,
    INFINITE,
    INSIDE,
    LAST,
    LEAVES,
    LIMIT,
    LOGS,
    MODE,
    N_DONE,
    NOTICE,
    NOTICE_ROBOT,
    NOTICE_SECTOR,
    NOTIFY,
    OUT,
    OWNER,
    POINT,
    POLICY,
    RANK,
    RELEASE,
    RESERVE,
    SEQUENCE,
    TAIL,
    TIME,
    World,
)


@inline_kernel
def _enter(w: World, i: int, sector: int, t: float) -> bool:
    """Let a robot's front enter its next sector.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    sector : int
        Number of the sector on the robot's path.
    t : float
        Time, s.

    Returns
    -------
    bool
        Whether the robot collides: another one is in a conflicting sector.
    """
    g = w.first[i] + sector
    w.i[i, HEAD] = sector
    w.sectors[g, INSIDE] = 1
    emit_event(w, t, i, ENTER, sector)
    hit = False
    for c in range(w.sectors[g, FIRST_CONFLICT], w.sectors[g, END_CONFLICT]):
        # Another robot is in a conflicting sector.
        if w.sectors[w.others[c], INSIDE]:
            j = w.sectors[w.others[c], OWNER]
            emit_event(w, t, i, COLLISION, j)
            w.c[COLLISIONS] += 1
            # Both robots brake after a collision.
            if w.i[i, MODE] == GOING:
                start_braking(w, i, t)
            if w.i[j, MODE] == GOING:
                start_braking(w, j, t)
                plan_event(w, j, t)

            hit = True

    return hit


@inline_kernel
def _finish(w: World, i: int, t: float) -> None:
    """Record that a robot is at the end of its path.

    It brakes there, or is removed by the option `LEAVES`.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    t : float
        Time, s.
    """
    w.i[i, DONE] = 1
    w.f[i, FINISHED] = t
    w.c[N_DONE] += 1
    emit_event(w, t, i, FINISH, w.i[i, HEAD])
    if w.i[i, MODE] == GOING:
        start_braking(w, i, t)
    if w.c[LEAVES]:
        w.i[i, MODE] = GONE


@inline_kernel
def _passes_point(w: World, i: int) -> bool:
    """Return whether a robot's next event is the next point of its path.

    Otherwise it is the start of a braking.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    """
    p = w.i[i, POINT]
    if p >= w.i[i, LAST]:
        return False
    # The robot brakes already, or it has no limit.
    if w.i[i, MODE] != GOING or w.f[i, LIMIT] == INFINITE:
        return True
    place = brake_place(w, i)
    # If the robot must brake exactly at the end of its path, braking comes first.
    return w.points[p, 0] <= place and not (
        w.points[p, 0] == place and (int(w.points[p, 1]) & 3) == FINISH
    )


@inline_kernel
def _release(w: World, i: int, sector: int, t: float) -> None:
    """Record that a robot's rear has left a sector.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    sector : int
        Number of the sector on the robot's path.
    t : float
        Time, s.
    """
    w.sectors[w.first[i] + sector, INSIDE] = 0
    emit_event(w, t, i, RELEASE, sector)


@inline_kernel
def _ask(w: World, i: int, sector: int, t: float) -> None:
    """Ask for a sector at the last position from which a robot can stop before it.

    The robot brakes if the sector is not permitted. Unless a supervisor in Python decides, the
    policy may grant the sector at once.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    sector : int
        Number of the sector on the robot's path.
    t : float
        Time, s.
    """
    w.i[i, ASKED] = sector
    emit_event(w, t, i, CRITICAL, sector)
    # The sector was already permitted.
    if w.i[i, ALLOWED] >= sector:
        return
    # A robot that stops earlier has already planned the position of its stop.
    if w.i[i, MODE] == GOING and w.f[i, LIMIT] == usual_limit(w, i):
        start_braking(w, i, t)
    # For other policies, a supervisor in Python decides.
    if w.c[POLICY] >= EVERYTHING:
        # "First come, first served" numbers the requests; with other policies, ranks
        # stay fixed.
        if w.c[SEQUENCE] >= 0:
            w.c[SEQUENCE] += 1
            w.sectors[w.first[i] + sector, RANK] = w.c[SEQUENCE]

        any_granted = False
        while serve(w, i, t):
            any_granted = True
        if any_granted:
            set_off(w, i, t)


@entry_kernel
def allow(w: World, i: int, count: int, t: float) -> None:
    """Give a robot permissions.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    count : int
        Number of sectors, the next ones on its path.
    t : float
        Time, s. Permissions before the start (t < 0) are only counted.
    """
    for _ in range(count):
        allow_sectors(w, i, max(t, 0.0))
    # Before the start, `begin` has planned no event yet.
    if t >= 0.0:
        set_off(w, i, t)


@entry_kernel
def count_stuck(w: World) -> int:
    """Return the number of robots that cannot finish one after the other.

    This is the Banker's test for the sectors that are held now.

    Parameters
    ----------
    w : World
        Arrays of the run. `w.done` marks the robots that can finish; `w.sim` and
        `w.why` are overwritten.
    """
    for s in range(len(w.sectors)):
        w.sim[s] = w.sectors[s, HELD]
    is_safe(w, -1, 0)
    left = 0
    for j in range(len(w.done)):
        left += 1 - w.done[j]
    return left


@entry_kernel
def begin(w: World) -> None:
    """Plan the first event of all robots.

    Parameters
    ----------
    w : World
        Arrays of the run, before its first event.
    """
    n = len(w.heap)
    for i in range(n):
        w.heap[i] = w.slot[i] = i
        w.key[i] = INFINITE

    for i in range(n):
        plan_event(w, i, 0.0)


@inline_kernel
def _fetch_candidates(w: World) -> None:
    """Prefetch rows, next points and sectors of the robots whose events may come next.

    With thousands of robots no cache near the processor holds them.

    Parameters
    ----------
    w : World
        Arrays of the run.
    """
    # The next event usually belongs to a child of the first entry of the queue.
    for k in range(1, min(5, len(w.heap))):
        j = w.heap[k]
        prefetch(w.lines, 2 * j)
        prefetch(w.lines, 2 * j + 1)
        prefetch(w.points, w.i[j, POINT])
        prefetch(w.sectors, w.first[j] + w.i[j, HEAD])


@entry_kernel
def advance(w: World, until: float) -> int:
    """Process events up to and including a time.

    Parameters
    ----------
    w : World
        Arrays of the run. ``w.d[0]`` is the time of the last event.
    until : float
        The time, s.

    Returns
    -------
    int
        Reason to stop: `IDLE`, `TIME`, `FULL`, `NOTIFY`, `ALL_DONE` or `COLLIDED`.
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
        _fetch_candidates(w)
        if not _passes_point(w, i):
            start_braking(w, i, t)
            plan_event(w, i, t)
            continue

        p = w.i[i, POINT]
        w.i[i, POINT] = p + 1
        kind = int(w.points[p, 1]) & 3
        sector = int(w.points[p, 1]) >> 2
        # The robot releases these sectors.
        first, last = 0, -1
        if kind == RELEASE:
            first = last = sector
        elif kind == CRITICAL:
            _ask(w, i, sector, t)
        elif kind == ENTER:
            # The robot has hit another one, and this ends the run.
            if _enter(w, i, sector, t) and not w.c[GOES_ON]:
                plan_event(w, i, t)
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
                serve_freed(w, w.first[i] + s, t)

        plan_event(w, i, t)
        if policy == EXTERNAL and (
            kind == CRITICAL or kind == RELEASE or kind == FINISH
        ):
            w.c[NOTICE] = kind
            w.c[NOTICE_ROBOT] = i
            w.c[NOTICE_SECTOR] = sector
            return NOTIFY


@entry_kernel
def places(w: World, t: float, out_x: F8, out_v: F8) -> None:
    """Compute positions and speeds of all robots.

    Parameters
    ----------
    w : World
        Arrays of the run.
    t : float
        Time after all events so far, s.
    out_x, out_v : (n,) float64
        Output: positions along the paths, m, and speeds, m/s.
    """
    for i in range(len(out_x)):
        out_x[i] = place_at(w, i, t)
        out_v[i] = speed_at(w, i, t)
