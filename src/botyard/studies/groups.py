"""How many runs are handed out at a time: enough that handing them out costs little,
and at the end so few that all workers have some.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, TypeVar

T = TypeVar("T")
GROUP_S: Final = 1.0
"""A group of runs takes about so long, at least."""
MAX_GROUP: Final = 10_000
"""Most runs of a group."""
GROUPS_PER_S: Final = 200
"""Groups that are handed out in a second, about: where many workers would need more,
each group takes longer.
"""
_NEW_SHARE: Final = 0.2
"""Weight of the newest run in the mean of wall times."""


class Pace:
    """How long runs take: the mean of their wall times, in which later ones weigh more."""

    def __init__(self) -> None:
        self._mean_s = 0.0

    def add(self, wall: float) -> None:
        """A run has taken so long, s."""
        mean = (
            wall
            if not self._mean_s
            else (1.0 - _NEW_SHARE) * self._mean_s + _NEW_SHARE * wall
        )
        self._mean_s = max(mean, 1e-6)

    def runs_in(self, seconds: float) -> int:
        """Runs that take about so long together; 1 while nothing is known."""
        return math.ceil(seconds / self._mean_s) if self._mean_s else 1


def group_size(waiting: int, workers: int, pace: Pace, least: float = GROUP_S) -> int:
    """Number of runs of the next group.

    Parameters
    ----------
    waiting : int
        Runs that have not been handed out.
    workers : int
        Processes among which they are divided: each is to get at least two more groups.
    pace : Pace
        How long runs take.
    least : float
        Time that a group takes at least, s, where there is enough to do.
    """
    share = math.ceil(waiting / (2 * max(1, workers)))
    return max(1, min(pace.runs_in(group_seconds(workers, least)), share, MAX_GROUP))


def group_seconds(workers: int, least: float = GROUP_S) -> float:
    """Wall time that a group should take, s."""
    return max(least, workers / GROUPS_PER_S)


def take_group(
    waiting: deque[T], workers: int, pace: Pace, least: float = GROUP_S
) -> list[T]:
    """The first runs of those that wait, which are taken away."""
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
