"""Robots that started to stall in a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from botyard.sim.simulation import Simulation


class Stalled(NamedTuple):
    """Column ``stall`` after and before a step in which it changed.

    Attributes
    ----------
    rows : mapping
        Row of each body.
    robots : frozenset of str
        Names of the bodies that are robots.
    before, now : bytes
        The column: a byte for each row, 0 or 1.
    """

    rows: Mapping[str, int]
    robots: frozenset[str]
    before: bytes
    now: bytes

    @property
    def names(self) -> list[str]:
        """Robots that started to stall, in the order of their rows."""
        begun = np.flatnonzero(
            np.frombuffer(self.now, np.int8) > np.frombuffer(self.before, np.int8)
        ).tolist()
        names = {row: name for name, row in self.rows.items()} if begun else {}
        return [names[row] for row in begun if names[row] in self.robots]


class Stalls:
    """Comparison of the stalled robots in each step and in the previous one.

    Only the simulation thread uses it.

    The writer thread looks up names: with many robots, some of them stall in most
    steps.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._rows: Mapping[str, int] | None = None
        self._robots: frozenset[str] = frozenset()
        self._before = b""

    def look(self) -> Stalled | None:
        """Return the changes of this step; None if none, or if bodies were replaced."""
        # Do not use the snapshot passed to listeners: an earlier listener may have
        # removed a robot.
        now, rows = self._sim.snapshot.state.stall.tobytes(), self._sim.core.engine.rows
        before, self._before = self._before, now
        # Rows have moved, so the columns of the two steps do not correspond.
        if rows is not self._rows:
            self._rows, self._robots = rows, frozenset(self._sim.robots)
        elif now != before:
            return Stalled(self._sim.core.engine.rows, self._robots, before, now)

        return None


__all__ = ["Stalled", "Stalls"]
