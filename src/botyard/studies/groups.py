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
    """Exponential moving average of the runs' wall time."""

    def __init__(self) -> None:
        self._mean_s = 0.0

    def add(self, wall: float) -> None:
        """Add the wall time of a finished run, s."""
        mean = (
            wall
            if not self._mean_s
            else (1.0 - _NEW_SHARE) * self._mean_s + _NEW_SHARE * wall
        )
        # Runs faster than the clock's resolution must not cause a division by zero.
        self._mean_s = max(mean, 1e-6)

    def runs_in(self, seconds: float) -> int:
        """Return how many runs fit into a time, s; 1 while no run has finished."""
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
    """
    # Two more groups per worker: if one group turns out slow, the other workers still
    # have runs to take.
    share = math.ceil(waiting / (2 * max(1, workers)))
    return max(1, min(pace.runs_in(group_seconds(workers, least)), share, MAX_GROUP))


def group_seconds(workers: int, least: float = GROUP_S) -> float:
    """Return the wall time that a group should take, s."""
    return max(least, workers / GROUPS_PER_S)


def take_group(
    waiting: deque[T], workers: int, pace: Pace, least: float = GROUP_S
) -> list[T]:
    """Remove the next group of runs from the queue and return it."""
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
