"""Choice of how many runs a worker gets at a time.

Large groups keep the cost of handing out runs low. Towards the end of a study, groups
shrink so that all workers stay busy.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, TypeVar

T = TypeVar("T")
GROUP_S: Final = 1.0
"""Minimum time that a group of runs should take, s."""
MAX_GROUP: Final = 10_000
"""Maximum number of runs in a group."""
GROUPS_PER_S: Final = 200
"""Approximate number of groups per second that the study hands out at most.

With many workers, each group therefore takes longer than `GROUP_S`.
"""
_NEW_SHARE: Final = 0.2
"""Weight of the newest run in the moving average of wall times."""


class Pace:
    """Estimate of the wall time of a run: an exponential moving average."""

    def __init__(self) -> None:
        self._mean_s = 0.0

    def add(self, wall: float) -> None:
        """Add the wall time of a finished run.

        Parameters
        ----------
        wall : float
            Wall time, s; 0 is valid.
        """
        mean = (
            wall
            if not self._mean_s
            else (1.0 - _NEW_SHARE) * self._mean_s + _NEW_SHARE * wall
        )
        # Runs faster than the clock's resolution must not cause a division by zero.
        self._mean_s = max(mean, 1e-6)

    def runs_in(self, seconds: float) -> int:
        """Return how many runs fit into a time, rounded up.

        Parameters
        ----------
        seconds : float
            The time, s.

        Returns
        -------
        int
            Number of runs; 1 while no run has finished, because their pace is unknown.
        """
        return math.ceil(seconds / self._mean_s) if self._mean_s else 1


def group_size(waiting: int, workers: int, pace: Pace, least: float = GROUP_S) -> int:
    """Return the number of runs in the next group.

    Parameters
    ----------
    waiting : int
        Runs that no worker has received yet.
    workers : int
        Number of worker processes. Each should receive at least two more groups.
    pace : Pace
        Average wall time of the runs so far.
    least : float
        Minimum time of a group, s, as long as enough runs are left.

    Returns
    -------
    int
        From 1 to `MAX_GROUP`; it is 1 even if no run waits.
    """
    # Leave two more groups per worker: if one group turns out slow, the other workers
    # still have runs to carry out.
    share = math.ceil(waiting / (2 * max(1, workers)))
    return max(1, min(pace.runs_in(group_seconds(workers, least)), share, MAX_GROUP))


def group_seconds(workers: int, least: float = GROUP_S) -> float:
    """Return the wall time that a group should take.

    Parameters
    ----------
    workers : int
        Number of worker processes. Above `least` · `GROUPS_PER_S` workers, groups take
        longer, so that the study hands out at most `GROUPS_PER_S` of them per second.
    least : float
        Minimum time of a group, s.

    Returns
    -------
    float
        The time, s.
    """
    return max(least, workers / GROUPS_PER_S)


def take_group(
    waiting: deque[T], workers: int, pace: Pace, least: float = GROUP_S
) -> list[T]:
    """Remove the next group of runs from the queue and return it.

    Parameters
    ----------
    waiting : deque
        Runs that no worker has received yet; changed.
    workers : int
        Number of worker processes.
    pace : Pace
        Average wall time of the runs so far.
    least : float
        Minimum time of a group, s.

    Returns
    -------
    list
        Runs from the front of the queue, in order (`group_size` of them, or all if
        fewer wait); empty for an empty queue.
    """
    return [
        waiting.popleft()
        for _ in range(
            min(len(waiting), group_size(len(waiting), workers, pace, least))
        )
    ]


__all__ = [
    "GROUPS_PER_S",
    "GROUP_S",
    "MAX_GROUP",
    "Pace",
    "group_seconds",
    "group_size",
    "take_group",
]
