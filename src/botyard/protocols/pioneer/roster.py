"""Table of the timers and flags of many sessions, with a row for each session (`Roster`).

A kernel finds all sessions that have work in one call. A session is in one roster at a
time: at first alone in its own roster, until a server adds it to the common one.
"""

from __future__ import annotations

import itertools
import math
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.pioneer.kernels.schedule import (
    MIN_WALL_PERIOD,
    NEVER,
    TIMES,
    WALLS,
    find_due,
    find_expired,
)

S = TypeVar("S")

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

STAMPS: Final = itertools.count(1)
"""Numbers for versions of sessions: no two sessions get the same version."""


class Roster(Generic[S]):
    """Table of sessions; for its columns see `botyard.protocols.pioneer.kernels.schedule`.

    Parameters
    ----------
    capacity : int
        Number of rows at first; it doubles as needed.

    Attributes
    ----------
    times, walls, flags : arrays
        Columns of the kernels.
    versions : (n,) array
        Versions of the constant parts of reports.
    motors : (n,) array
        Whether the motors were on in the last report.
    sessions : list
        Session of each row; None for a free row.
    """

    min_wall_period = MIN_WALL_PERIOD

    def __init__(self, capacity: int = 16) -> None:
        self.times: I8 = np.zeros((capacity, TIMES), np.int64)
        self.walls: F8 = np.full((capacity, WALLS), math.inf)
        self.flags: I8 = np.zeros(capacity, np.int64)
        self.versions: I8 = np.zeros(capacity, np.int64)
        self.motors: I8 = np.zeros(capacity, np.int64)
        self.sessions: list[S | None] = []
        self._free: list[int] = []
        self._found: I8 = np.zeros((2, capacity), np.int64)
        self._counts: I8 = np.zeros(2, np.int64)
        self._span: I8 = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return len(self.sessions) - len(self._free)

    @property
    def capacity(self) -> int:
        """Number of rows of the columns."""
        return len(self.flags)

    def add(self, session: S) -> int:
        """Add a session, and return its row."""
        if self._free:
            row = self._free.pop()
            self.sessions[row] = session
        else:
            row = len(self.sessions)
            self.sessions.append(session)
            if row >= self.capacity:
                self._grow()

        self.times[row] = 0, 0, 0, NEVER
        self.walls[row] = math.inf
        self.flags[row] = self.motors[row] = 0
        self.versions[row] = next(STAMPS)
        return row

    def remove(self, row: int) -> None:
        """Remove the session of a row."""
        self.sessions[row] = None
        self._free.append(row)
        # Kernels find nothing to do in this row.
        self.flags[row] = 0
        self.walls[row] = math.inf

    def take_over(self, row: int, other: Roster[S], its_row: int) -> None:
        """Copy the row of a session from another roster."""
        self.times[row] = other.times[its_row]
        self.walls[row] = other.walls[its_row]
        self.flags[row] = other.flags[its_row]
        self.motors[row] = other.motors[its_row]

    def due(
        self, time_us: int, now: float, repeat_after: float, only: int | None = None
    ) -> tuple[I8, I8, float]:
        """Find the work after a step.

        Return the rows with a due report, the rows with other work, and the wall time
        of the next timer, s. For rows with other work, `Session.attend` must be called.
        `time_us` is simulated time, µs; `now` and `repeat_after` are wall times, s.
        `only` restricts the search to one row.
        """
        self._between(only)
        wake = find_due(
            self._span,
            time_us,
            now,
            repeat_after,
            self.min_wall_period,
            self.times,
            self.walls,
            self.flags,
            self._found,
            self._counts,
        )
        return *self._results(), wake

    def expired(self, now: float) -> tuple[I8, I8, float]:
        """Find the work of expired timers.

        Return the rows whose report must be repeated, the rows with a timeout, and the
        wall time of the next timer, s.
        """
        self._between(None)
        wake = find_expired(
            self._span, now, self.walls, self.flags, self._found, self._counts
        )
        return *self._results(), wake

    def _between(self, only: int | None) -> None:
        self._span[:] = (0, len(self.sessions)) if only is None else (only, only + 1)

    def _results(self) -> tuple[I8, I8]:
        # Return copies, because the caller may search again while it uses the rows.
        due, asking = self._counts.tolist()
        return self._found[0, :due].copy(), self._found[1, :asking].copy()

    def _grow(self) -> None:
        more = self.capacity
        for name in ("times", "flags", "versions", "motors"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.walls = np.concatenate([self.walls, np.full((more, WALLS), math.inf)])
        self._found = np.zeros((2, 2 * more), np.int64)


__all__ = ["Roster"]
