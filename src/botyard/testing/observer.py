"""What really happened to robots, step by step: the way they went, what they touched,
how near they came to it, what they have covered.

A `TruthLog` listens to the steps of a simulation; it reads true poses and changes
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
"""Most poses of a way that are kept; after that every second one is dropped."""


@dataclass
class Truth:
    """What happened to one robot.

    Attributes
    ----------
    distance : float
        Length of its way, m.
    stall_time : float
        Time for which something stopped it, s.
    contacts : list of Contact
        What it touched while it was driving, and what touched it.
    clearance : float
        Least distance of its outline to walls and other bodies, m, since
        `TruthLog.watch_clearance`; inf: it was not watched.
    way : list of (x, y, th)
        Its true poses, one for each step; of very long ways every 2nd, 4th, … one. m,
        m, rad.
    """

    distance: float = 0.0
    stall_time: float = 0.0
    contacts: list[Contact] = field(default_factory=list)
    clearance: float = math.inf
    way: list[tuple[float, float, float]] = field(default_factory=list)
    _stride: int = 1
    _steps: int = 0

    def _add(self, pose: tuple[float, float, float]) -> None:
        if self._steps % self._stride == 0:
            self.way.append(pose)
            if len(self.way) > MAX_WAY:
                del self.way[1::2]
                self._stride *= 2

        self._steps += 1

    def positions(self) -> F8:
        """Positions of the way, (n, 2), m."""
        return np.array(self.way, np.float64).reshape(-1, 3)[:, :2]


class TruthLog:
    """Watches all robots of a simulation from now on; made and closed in the thread
    that steps the world.

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
        self._log = ContactLog(sim, sim._episodes)
        self._shared = 0
        self._watched: dict[str, float] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self.contacts: list[Contact] = []
        self._end = sim.after_step(self._step)
        self._look(sim.snapshot, 0.0)

    def __getitem__(self, name: str) -> Truth:
        """Raises UnknownNameError (a KeyError) when there never was such a robot."""
        if name not in self._robots:
            raise UnknownNameError(
                f'there was no robot "{name}" (there were: {", ".join(self._robots) or "none"})'
            )

        return self._robots[name]

    def __contains__(self, name: object) -> bool:
        return name in self._robots

    @property
    def robots(self) -> Mapping[str, Truth]:
        """All robots that there were, by their names."""
        return self._robots

    def watch_clearance(self, name: str, within: float) -> None:
        """Measure the distance of a robot to what is around it in each step, as far as
        it is at most `within`, m.
        """
        self[name]
        self._watched[name] = max(within, self._watched.get(name, 0.0))

    def close(self) -> None:
        """Watch no longer."""
        self._end()

    def _step(self, snapshot: Snapshot) -> None:
        self._look(snapshot, self._sim.dt)

    def _look(self, snapshot: Snapshot, dt: float) -> None:
        state, rows = snapshot.state, snapshot.rows
        for name in self._sim.robots:
            row = rows[name]
            x, y, th = state.pose[row].tolist()
            truth = self._robots.setdefault(name, Truth())
            if dt:
                before = self._last.get(name, (x, y))
                truth.distance += distance(before, (x, y))

            self._last[name] = x, y
            truth._add((x, y, th))
            if state.stall[row]:
                truth.stall_time += dt
            within = self._watched.get(name)
            if within is not None:
                truth.clearance = min(
                    truth.clearance, nearest(self._sim, row, within)[0]
                )

        self._log.look(snapshot)
        new = self._log.total - len(self.contacts)
        if new:
            self.contacts += self._log[-new:]
            self._share()

    def _share(self) -> None:
        """Give new contacts to the robots that are in them."""
        for contact in self.contacts[self._shared :]:
            self._shared += 1
            for name in (contact.robot, contact.other):
                if name in self._robots:
                    self._robots[name].contacts.append(contact)


__all__ = ["Truth", "TruthLog"]
