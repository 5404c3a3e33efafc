"""Checks of a task: warnings, safety of the start, and solvability.

The Banker's test decides whether the start is safe. An exhaustive search decides for
few robots whether the task can be solved at all.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from botyard.native.kinds import Pack
from botyard.traffic.kernels import events as k
from botyard.traffic.rules import Rules
from botyard.traffic.task import Task

STATE_LIMIT: Final = 2_000_000
"""Largest number of states that the exhaustive search visits before it gives up."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of the checks of a task.

    Attributes
    ----------
    remarks : tuple of str
        Warnings: disks that reach into the next sector at the start, sectors too short
        to stop in.
    stuck : tuple of int
        Robots that cannot all finish one after the other; empty if the start is safe
        (see `stuck_robots`).
    solvable : bool or None
        Whether some order of moves lets all robots finish; None without a search, or if
        the search gave up.
    states : int
        Number of states that the search visited.
    """

    remarks: tuple[str, ...]
    stuck: tuple[int, ...]
    solvable: bool | None
    states: int


def remarks(task: Task) -> tuple[str, ...]:
    """Return warnings about a valid task, one line each."""
    found = []
    for i, v in enumerate(task.vehicles):
        head = v.first_sector()
        if (
            len(v.ends) > 1
            and head < len(v.ends) - 1
            and v.ends[head] - v.radius < v.start
        ):
            found.append(
                f"robot {i}: its disk reaches into sector {head + 1} at the "
                "start, without a permission for it"
            )

        # The first and the last sector do not count: a robot starts and ends inside
        # them.
        lengths = np.diff(v.ends, prepend=0.0)
        short = np.flatnonzero(lengths[1:-1] < v.braking_distance) + 1
        if len(short):
            found.append(
                f"robot {i}: {len(short)} sectors are shorter than its braking "
                f"distance of {v.braking_distance:.3f} m (the first is sector "
                f"{short[0]}): it asks for the next sector before it enters such a "
                "sector"
            )

    for i, s, j, m in task.start_conflicts.tolist():
        found.append(f"robots {i} and {j} start in conflicting sectors {s} and {m}")
    return tuple(found)


def stuck_robots(task: Task, leaves: bool = False) -> tuple[int, ...]:
    """Return the robots that cannot all finish one after the other.

    Parameters
    ----------
    task : Task
        Task to check.
    leaves : bool
        Whether a robot is removed when it has finished, see `Rules`.

    Returns
    -------
    tuple of int
        Robots that start in conflicting sectors, or otherwise robots that fail the
        Banker's test; empty if the start is safe.
    """
    from botyard.traffic.engine import Traffic
    from botyard.traffic.supervisors.reserving import Nobody

    if not len(task):
        return ()
    if len(task.start_conflicts):
        return tuple(np.unique(task.start_conflicts[:, [0, 2]]).tolist())
    # The engine builds the arrays of the test. With a supervisor that grants nothing,
    # all robots stay at their starts.
    w = Traffic(task, Nobody(), Rules(leaves=leaves), log=False).world
    left = int(k.count_stuck(Pack(w)))
    return tuple(np.flatnonzero(w.done == 0).tolist()) if left else ()


def is_safe(task: Task, leaves: bool = False) -> bool:
    """Return whether the start is safe (see `stuck_robots`)."""
    return not stuck_robots(task, leaves)


def search(
    task: Task, leaves: bool = False, limit: int = STATE_LIMIT
) -> tuple[bool | None, int]:
    """Search exhaustively whether a task can be solved.

    A move takes one robot into its next sector, if no robot is in a conflicting sector;
    the robot leaves its sector at the same time.

    Parameters
    ----------
    task : Task
        Task to solve.
    leaves : bool
        Whether a robot is removed when it has finished, see `Rules`.
    limit : int
        Number of states after which the search gives up.

    Returns
    -------
    (bool or None, int)
        The answer, None after `limit` states, and the number of visited states.
    """
    if len(task.start_conflicts):
        return False, 1
    starts, others = (a.tolist() for a in task.conflicts)
    first = task.first.tolist()
    last = [len(v.ends) - 1 for v in task.vehicles]
    owner = [task.robot_of(g)[0] for g in range(task.n_sectors)]
    begin = tuple(v.first_sector() for v in task.vehicles)
    goal = tuple(last)
    seen = {begin}
    queue = deque([begin])
    while queue:
        # Search depth first, because solutions are deep.
        state = queue.pop()
        if state == goal:
            return True, len(seen)
        for i, at in enumerate(state):
            if at == last[i]:
                continue
            g = first[i] + at + 1
            free = True
            for c in others[starts[g] : starts[g + 1]]:
                j = owner[c]
                if first[j] + state[j] == c and not (leaves and state[j] == last[j]):
                    free = False
                    break

            if free:
                after = (*state[:i], at + 1, *state[i + 1 :])
                if after not in seen:
                    # The set of states fills the memory, so its size is the limit.
                    if len(seen) >= limit:
                        return None, len(seen)
                    seen.add(after)
                    queue.append(after)

    return False, len(seen)


def check(task: Task, leaves: bool = False, exhaustive: bool | None = None) -> Report:
    """Run all checks of a task.

    Parameters
    ----------
    task : Task
        Task to check.
    leaves : bool
        Whether a robot is removed when it has finished, see `Rules`.
    exhaustive : bool, optional
        Whether to search exhaustively; by default only with at most `STATE_LIMIT`
        states.
    """
    stuck = stuck_robots(task, leaves)
    # A float cannot overflow, as the product of a large task would in integers.
    states = (
        float(np.prod([float(len(v.ends)) for v in task.vehicles]))
        if len(task)
        else 1.0
    )
    solvable, seen = None, 0
    if exhaustive or (exhaustive is None and states <= STATE_LIMIT):
        solvable, seen = search(task, leaves)
    # A safe start is solvable: the robots finish one after the other.
    elif not stuck:
        solvable = True

    return Report(remarks(task), stuck, solvable, seen)


__all__ = ["Report", "check", "is_safe", "remarks", "search", "stuck_robots"]
