"""True history of robots: path, contacts, clearance and stall time.

A `TruthLog` listens to the steps of a simulation. It reads true poses and changes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.snapshot import Snapshot
from botyard.errors import UnknownNameError
from botyard.geometry import distance
from botyard.sim.contacts import Contact, ContactLog, nearest
from botyard.sim.simulation import Simulation

F8 = NDArray[np.float64]

MAX_WAY: Final = 1_000_000
"""Maximum number of kept poses of a path; beyond it, every second one is dropped."""


@dataclass
class Truth:
    """True history of one robot.

    Attributes
    ----------
    distance : float
        Length of its path, m.
    stall_time : float
        Time during which the robot was stalled, s.
    contacts : list of Contact
        Contacts of the robot, both active and passive.
    clearance : float
        Minimum distance of its outline to walls and other bodies, m, since
        `TruthLog.watch_clearance`; inf: not measured.
    way : list of (x, y, th)
        True poses, one per step, m, m, rad; of very long paths every 2nd, 4th, … pose.
    """

    distance: float = 0.0
    stall_time: float = 0.0
    contacts: list[Contact] = field(default_factory=list)
    clearance: float = math.inf
    way: list[tuple[float, float, float]] = field(default_factory=list)
    _stride: int = 1
    _steps: int = 0

    def _add(self, pose: tuple[float, float, float]) -> None:
        """Add a pose to the path, and thin out a long path."""
        if self._steps % self._stride == 0:
            self.way.append(pose)
            if len(self.way) > MAX_WAY:
                del self.way[1::2]
                # Dropping every second pose keeps the spacing uniform.
                self._stride *= 2

        self._steps += 1

    def positions(self) -> F8:
        """Return the positions of the path, (n, 2), m."""
        return np.array(self.way, np.float64).reshape(-1, 3)[:, :2]


class TruthLog:
    """Observer of all robots of a simulation.

    It must be created and closed in the thread that steps the world.

    Parameters
    ----------
    sim : Simulation
        The world.

    Attributes
    ----------
    contacts : list of Contact
        All contacts, in order of time.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._robots: dict[str, Truth] = {}
        self._log = ContactLog(sim.core, sim.core.episodes)
        self._shared = 0
        self._watched: dict[str, float] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self.contacts: list[Contact] = []
        self._end = sim.after_step(self._step)
        self._look(sim.snapshot, 0.0)

    def __getitem__(self, name: str) -> Truth:
        """Return the history of a robot.

        Raises
        ------
        UnknownNameError
            The simulation never had a robot of this name.
        """
        if name not in self._robots:
            raise UnknownNameError(
                f'unknown robot "{name}" (known: {", ".join(self._robots) or "none"})'
            )

        return self._robots[name]

    def __contains__(self, name: object) -> bool:
        return name in self._robots

    @property
    def robots(self) -> Mapping[str, Truth]:
        """Histories of all robots that ever existed, by name."""
        return self._robots

    def watch_clearance(self, name: str, within: float) -> None:
        """Measure a robot's distance to its surroundings in each step.

        Parameters
        ----------
        name : str
            Name of the robot.
        within : float
            Greatest distance that is measured, m. A larger distance from an earlier
            call is kept.

        Raises
        ------
        UnknownNameError
            The simulation never had a robot of this name.
        """
        self[name]
        self._watched[name] = max(within, self._watched.get(name, 0.0))

    def close(self) -> None:
        """Stop observing."""
        self._end()

    def _step(self, snapshot: Snapshot) -> None:
        """Store the state after a step."""
        self._look(snapshot, self._sim.dt)

    def _look(self, snapshot: Snapshot, dt: float) -> None:
        """Add the current state to the history of each robot.

        Parameters
        ----------
        snapshot : Snapshot
            State after the step.
        dt : float
            Duration of the step, s; 0 for the state before the first one.
        """
        state, rows = snapshot.state, snapshot.rows
        for name in self._sim.robots:
            row = rows[name]
            x, y, th = state.pose[row].tolist()
            truth = self._robots.setdefault(name, Truth())
            # At the first call, no step has run, so there is no motion to add.
            if dt:
                # A robot that was just added has not travelled to its start pose.
                before = self._last.get(name, (x, y))
                truth.distance += distance(before, (x, y))

            self._last[name] = x, y
            truth._add((x, y, th))
            if state.stall[row]:
                truth.stall_time += dt
            # Distances are measured only on request, because each costs a search of the
            # walls.
            within = self._watched.get(name)
            if within is not None:
                truth.clearance = min(
                    truth.clearance, nearest(self._sim.core, row, within)[0]
                )

        self._log.look(snapshot)
        new = self._log.total - len(self.contacts)
        if new:
            # The log keeps a limited number of contacts, so its total is compared, not
            # its length.
            self.contacts += self._log[-new:]
            self._share()

    def _share(self) -> None:
        """Add new contacts to the histories of their robots."""
        for contact in self.contacts[self._shared :]:
            self._shared += 1
            for name in (contact.robot, contact.other):
                if name in self._robots:
                    self._robots[name].contacts.append(contact)


__all__ = ["Truth", "TruthLog"]
