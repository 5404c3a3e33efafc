"""Policies that reserve sectors: which robot may enter which sector, and who is served next."""

from __future__ import annotations

from botyard.traffic.kernels.jit import inline_kernel
from botyard.traffic.kernels.robotmotion import (
    allow_sectors,
    set_off,
)
from botyard.traffic.kernels.runarrays import (
    ALLOWED,
    ASKED,
    BANKERS,
    CHAIN,
    DONE,
    END_CONFLICT,
    EVERYTHING,
    FIRST_CONFLICT,
    HELD,
    LEAVES,
    NEED,
    ORDER,
    OWNER,
    POLICY,
    RANK,
    RESERVE,
    TAIL,
    TESTS,
    World,
)


@inline_kernel
def _precedes(w: World, i: int, j: int) -> bool:
    """Return whether the request of robot i is served before the one of robot j.

    Lower ranks come first; among equal ranks, the lower robot number.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i, j : int
        Robots that wait for a sector.
    """
    a, b = (
        w.sectors[w.first[i] + w.i[i, ALLOWED] + 1, RANK],
        w.sectors[w.first[j] + w.i[j, ALLOWED] + 1, RANK],
    )
    return a < b or (a == b and i < j)


@inline_kernel
def _is_free(w: World, i: int, k: int) -> bool:
    """Return whether a sector, and those granted with it (`CHAIN`), conflict with no held one.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    k : int
        Number of the sector on the robot's path.
    """
    for g in range(w.first[i] + k, w.first[i] + w.sectors[w.first[i] + k, CHAIN] + 1):
        for c in range(w.sectors[g, FIRST_CONFLICT], w.sectors[g, END_CONFLICT]):
            if w.sectors[w.others[c], HELD]:
                return False

    return True


@inline_kernel
def _blocking_sector(w: World, j: int, allowed: int) -> int:
    """Return a sector held in `w.sim` that blocks the path of a robot.

    Parameters
    ----------
    w : World
        Arrays of the run.
    j : int
        Robot.
    allowed : int
        Number of the last sector that it has; the path beyond it counts.

    Returns
    -------
    int
        Global number of the sector; −1 for none.
    """
    for g in range(w.first[j] + allowed + 1, w.first[j + 1]):
        for c in range(w.sectors[g, FIRST_CONFLICT], w.sectors[g, END_CONFLICT]):
            if w.sim[w.others[c]]:
                return w.others[c]

    return -1


@inline_kernel
def _ends_on_way(w: World, j: int) -> bool:
    """Return whether a robot's last sector blocks another one that has not finished.

    Parameters
    ----------
    w : World
        Arrays of the run; `w.done` marks the robots that have finished.
    j : int
        Robot.
    """
    last = w.first[j + 1] - 1
    for c in range(w.sectors[last, FIRST_CONFLICT], w.sectors[last, END_CONFLICT]):
        other = w.others[c]
        o = w.sectors[other, OWNER]
        if not w.done[o] and other - w.first[o] >= w.i[o, TAIL]:
            return True

    return False


@inline_kernel
def is_safe(w: World, i: int, k: int) -> bool:
    """Return whether all robots can finish one by one (the Banker's test).

    A robot can finish if no other robot holds a sector that conflicts with the rest of
    its path. Its last sector, where it stays, must not block a robot that has not
    finished. Each robot that finishes releases its other sectors.

    Parameters
    ----------
    w : World
        Arrays of the run. `w.sim` states the sectors that are held if robot i gets its
        sector; it is overwritten, like `w.done` and `w.why`.
    i : int
        Robot that gets a sector; −1 for none.
    k : int
        Number of the sector on its path.
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
            # The sector that blocked the robot is still held, so a new search would
            # find it again.
            if w.why[j] >= 0 and w.sim[w.why[j]]:
                continue
            allowed = k if j == i else w.i[j, ALLOWED]
            w.why[j] = _blocking_sector(w, j, allowed)
            # The robot cannot finish before others do.
            if w.why[j] >= 0:
                continue
            # The robot would stay at the end of its path, and block other robots for
            # ever.
            if not w.c[LEAVES] and _ends_on_way(w, j):
                continue
            for g in range(w.first[j] + w.i[j, TAIL], w.first[j] + allowed + 1):
                w.sim[g] = 0
            # A finished robot stays in its last sector.
            if not w.c[LEAVES]:
                w.sim[w.first[j + 1] - 1] = 1
            w.done[j] = 1
            left -= 1
            progress = True

    return left == 0


@inline_kernel
def _may(w: World, i: int) -> bool:
    """Return whether the policy permits a robot its next sector.

    Parameters
    ----------
    w : World
        Arrays of the run; `w.sim` is overwritten.
    i : int
        Robot.
    """
    k = w.i[i, ALLOWED] + 1
    g = w.first[i] + k
    if w.c[POLICY] == EVERYTHING:
        return True
    # The plan orders all conflicts, so a robot waits only for the earlier sectors of
    # the plan.
    if w.c[POLICY] == ORDER:
        return w.sectors[g, NEED] == 0
    if not _is_free(w, i, k):
        return False
    # A free sector is not enough: all robots must still be able to finish.
    if w.c[POLICY] == BANKERS:
        # A sector without conflicts leaves the state as safe as it was.
        if w.sectors[g, FIRST_CONFLICT] == w.sectors[g, END_CONFLICT]:
            return True
        for s in range(len(w.sectors)):
            w.sim[s] = w.sectors[s, HELD]
        w.sim[g] = 1
        return is_safe(w, i, k)

    return True


@inline_kernel
def serve(w: World, i: int, t: float) -> bool:
    """Permit a robot the next sector it waits for and its chain, if the policy does.

    The caller calls `set_off` after it.

    Parameters
    ----------
    w : World
        Arrays of the run.
    i : int
        Robot.
    t : float
        Time, s.

    Returns
    -------
    bool
        Whether the robot got a sector; it may then get the next one as well.
    """
    if w.i[i, ALLOWED] >= w.i[i, ASKED] or not _may(w, i):
        return False
    k = w.i[i, ALLOWED] + 1
    for g in range(w.first[i] + k, w.first[i] + w.sectors[w.first[i] + k, CHAIN] + 1):
        w.sectors[g, HELD] = 1
        allow_sectors(w, i, t)

    return True


@inline_kernel
def _is_waiting(w: World, j: int) -> bool:
    """Return whether a robot has asked for a sector that is not permitted yet.

    Parameters
    ----------
    w : World
        Arrays of the run.
    j : int
        Robot.
    """
    return w.i[j, ALLOWED] < w.i[j, ASKED]


@inline_kernel
def _waits_for(w: World, j: int, g: int) -> bool:
    """Return whether a robot waits for a sector, alone or as a part of a chain.

    Parameters
    ----------
    w : World
        Arrays of the run.
    j : int
        Robot.
    g : int
        Global number of one of its sectors.
    """
    k, s = w.i[j, ALLOWED] + 1, g - w.first[j]
    return k <= w.i[j, ASKED] and k <= s and s <= w.sectors[w.first[j] + k, CHAIN]


@inline_kernel
def _queue_waiting(w: World, g: int) -> int:
    """Find the robots that may go on after the release of a sector.

    Parameters
    ----------
    w : World
        Arrays of the run. Output: the robots in `w.queue`, each once.
    g : int
        Global number of the sector.

    Returns
    -------
    int
        Number of these robots.
    """
    n = 0
    # A release can make any unsafe grant safe, even of a sector without a conflict with
    # the released one.
    if w.c[POLICY] == BANKERS:
        for j in range(len(w.first) - 1):
            if _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    # Only sectors that follow the released sector in the plan can become free.
    elif w.c[POLICY] == ORDER:
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            j = w.sectors[w.after[c], OWNER]
            # A robot can use this sector only if it is its next one.
            if w.first[j] + w.i[j, ALLOWED] + 1 == w.after[c] and _is_waiting(w, j):
                w.queue[n] = j
                n += 1
    # Only robots that wait for a conflicting sector can become free.
    elif w.c[POLICY] == RESERVE:
        for c in range(w.sectors[g, FIRST_CONFLICT], w.sectors[g, END_CONFLICT]):
            j = w.sectors[w.others[c], OWNER]
            if not _waits_for(w, j, w.others[c]):
                continue
            # Several sectors of a robot may conflict with the released one: list the
            # robot once.
            seen = False
            for q in range(n):
                if w.queue[q] == j:
                    seen = True

            if not seen:
                w.queue[n] = j
                n += 1

    return n


@inline_kernel
def serve_freed(w: World, g: int, t: float) -> None:
    """Release a sector, and serve the robots that waited for it, by rank.

    Parameters
    ----------
    w : World
        Arrays of the run.
    g : int
        Global number of the sector.
    t : float
        Time, s.
    """
    w.sectors[g, HELD] = 0
    # It no longer blocks the sectors that follow it in the plan.
    if w.c[POLICY] == ORDER:
        for c in range(w.after_starts[g], w.after_starts[g + 1]):
            w.sectors[w.after[c], NEED] -= 1

    n = _queue_waiting(w, g)
    # Insertion sort by rank, because the robots are few.
    for a in range(1, n):
        j = w.queue[a]
        b = a - 1
        while b >= 0 and _precedes(w, j, w.queue[b]):
            w.queue[b + 1] = w.queue[b]
            b -= 1

        w.queue[b + 1] = j

    a, last = 0, -1
    while a < n:
        j = w.queue[a]
        # The robot has received all permissions that it can get now.
        if last >= 0 and last != j:
            set_off(w, last, t)
            last = -1

        if serve(w, j, t):
            last = j
            # The robot's next request has its own rank.
            if _is_waiting(w, j):
                b = a
                while b + 1 < n and _precedes(w, w.queue[b + 1], j):
                    w.queue[b] = w.queue[b + 1]
                    b += 1

                w.queue[b] = j
                continue

        a += 1

    if last >= 0:
        set_off(w, last, t)
