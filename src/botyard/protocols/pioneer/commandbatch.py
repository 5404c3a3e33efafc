"""Plain commands of many sessions, executed by one kernel from one buffer.

Plain commands are velocities and keep-alives. They have the same effect as through
`Session.receive_data`. Only sessions with the flag `PROMPT` take part.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard import units
from botyard.model.robotport import Fleet
from botyard.protocols.pioneer.kernels.commands import (
    AXES,
    UNCHANGED,
    take_commands,
)
from botyard.protocols.pioneer.roster import Roster
from botyard.protocols.pioneer.session import SILENCE_SECONDS, Session

I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]

_BITS: Final = np.array([1, 2, 4])
"""Bit for each axis (forward, left, turn) in a set of commanded axes."""


class CommandBatch:
    """Executor of plain commands of many sessions of one simulation.

    Parameters
    ----------
    roster : Roster
        Table of the sessions.
    """

    def __init__(self, roster: Roster[Session]) -> None:
        self._roster = roster
        self._fleet: Fleet | None = None
        self._layout = -1
        self._bodies: I8 = np.zeros(0, np.int64)
        """Row of each session's robot in the engine's state, by row of the roster."""
        self._versions: I8 = np.zeros(0, np.int64)
        """Version of each session when its robot was looked up; 0 before the first time."""

    def take(self, numbers: I8, data: NDArray[np.uint8], sizes: I8, now: float) -> B1:
        """Execute the commands of sessions whose bytes hold only plain commands.

        Parameters
        ----------
        numbers : (m,) array
            Rows of the sessions in the roster.
        data : (m, size) uint8
                Received bytes of each client.
        sizes : (m,) int64
                Number of received bytes of each client; 0 or less without any.
        now : float
            Wall time, s.

        Returns
        -------
        (m,) bool
            False for a session that must process its bytes itself.
        """
        roster = self._roster
        taken: B1 = np.zeros(len(numbers), np.bool_)
        if not len(numbers):
            return taken
        wanted: I8 = np.empty((len(numbers), AXES), np.int64)
        port = self._session(int(numbers[0])).port
        take_commands(
            numbers,
            data,
            sizes,
            now,
            port.time_us,
            SILENCE_SECONDS,
            roster.times,
            roster.walls,
            roster.flags,
            roster.motors,
            wanted,
            taken,
        )
        axes = ((wanted != UNCHANGED) @ _BITS) * taken
        # One call sets the velocities of all clients that command the same axes.
        for some in np.unique(axes[axes > 0]).tolist():
            which = axes == some
            bodies = self._bodies_of(numbers[which], port.fleet)
            v, vy, w = (
                wanted[which, axis].astype(np.float64) if some & bit else None
                for axis, bit in enumerate(_BITS.tolist())
            )
            port.set_velocities(
                bodies,
                None if v is None else v / units.mm(1.0),
                None if w is None else w * units.DEG,
                None if vy is None else vy / units.mm(1.0),
            )

        return taken

    def _bodies_of(self, numbers: I8, fleet: Fleet) -> I8:
        """Return the rows of the sessions' robots in the state, (m,)."""
        roster = self._roster
        if len(self._bodies) < roster.capacity:
            self._layout = -1
            self._bodies = np.zeros(roster.capacity, np.int64)
            self._versions = np.zeros(roster.capacity, np.int64)
        if fleet is not self._fleet or fleet.layout != self._layout:
            self._fleet, self._layout = fleet, fleet.layout
            self._versions[:] = 0
        # A row may have a new session with another robot. Versions show this, because
        # no two sessions share one.
        for i in numbers[self._versions[numbers] != roster.versions[numbers]].tolist():
            self._bodies[i] = fleet.rows[self._session(i).port.name]
            self._versions[i] = roster.versions[i]
        bodies: I8 = self._bodies[numbers]
        return bodies

    def _session(self, i: int) -> Session:
        session = self._roster.sessions[i]
        assert session is not None
        return session


__all__ = ["CommandBatch"]
