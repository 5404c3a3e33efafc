"""Limit on the number of bodies that clients put on top of each other.

Clients may teleport robots, but do not own the machine. Overlapping bodies are all
tested against each other, and by each other's sensors, which costs the square of their
number: a thousand bodies in one place take ten seconds per step. Bodies that
drive never get into one place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from botyard.engine.commands import MAX_COORDINATE
from botyard.engine.simulation import Engine
from botyard.errors import CommandError
from botyard.geometry import distance
from botyard.names import shown

PLACE_RADIUS: Final = 0.3
"""Distance below which bodies count as being in one place, m."""
MAX_PER_PLACE: Final = 4
"""Number of bodies in one place at which clients cannot add another body there."""


class OverlapLimit:
    """Positions of all bodies, including placements that wait for the next step.

    Parameters
    ----------
    engine : Engine
        Engine with the bodies.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._of: tuple[int, Mapping[str, int] | None] = (-1, None)
        self._places: dict[str, tuple[float, float]] = {}
        self._cells: dict[tuple[int, int], set[str]] = {}

    def place(self, name: str) -> tuple[float, float]:
        """Return the position of a body after a waiting placement.

        Parameters
        ----------
        name : str
            Name of the body.

        Returns
        -------
        tuple of float
            x, y in the frame of the world, m.

        Raises
        ------
        KeyError
            There is no body of that name.
        """
        self._look()
        return self._places[name]

    def enter(self, name: str, x: float, y: float) -> None:
        """Record that a command of this step puts a body at a place.

        Parameters
        ----------
        name : str
            Name of the body.
        x, y : float
            Place in the frame of the world, m. A place out of the bounds of the world
            is not recorded: the command itself reports it.

        Raises
        ------
        KeyError
            There is no body of that name.
        CommandError
            `MAX_PER_PLACE` other bodies are already there.
        """
        self._look()
        old = self._places[name]
        # The command itself reports coordinates out of bounds.
        if not _is_in_world(x, y):
            return
        self.check(name, x, y)
        self._cells[_cell(*old)].discard(name)
        self._places[name] = (x, y)
        self._cells.setdefault(_cell(x, y), set()).add(name)

    def check(self, name: str, x: float, y: float) -> None:
        """Check that a body can be put at a place.

        Parameters
        ----------
        name : str
            Name of the body, which may be new; the body itself is not counted.
        x, y : float
            Place in the frame of the world, m.

        Raises
        ------
        CommandError
            `MAX_PER_PLACE` other bodies are already there.
        """
        self._look()
        if not _is_in_world(x, y):
            return
        # Cells are as wide as the radius: near bodies are in this cell or next to it.
        i, j = _cell(x, y)
        near = (
            n
            for a in (i - 1, i, i + 1)
            for b in (j - 1, j, j + 1)
            for n in self._cells.get((a, b), ())
        )
        others = sum(
            n != name and distance(self._places[n], (x, y)) < PLACE_RADIUS for n in near
        )

        if others >= MAX_PER_PLACE:
            raise CommandError(
                f"{shown(name)} cannot be put at x={x:zg} m, y={y:zg} m: {others} "
                "other bodies already overlap at that place (at most "
                f"{MAX_PER_PLACE} bodies may be within {PLACE_RADIUS} m)"
            )

    def forget(self) -> None:
        """Discard all positions, because the world continues from another state."""
        self._of = (-1, None)

    def _look(self) -> None:
        """Read all positions again if a step was done or bodies changed."""
        engine = self._engine
        now = (engine.clock.tick, engine.rows)
        # The mapping of rows is a new object after each change of bodies.
        if now[0] == self._of[0] and now[1] is self._of[1]:
            return

        self._of = now
        xy = engine.state.pose[:, :2].tolist()
        self._places = {
            name: (xy[row][0], xy[row][1]) for name, row in engine.rows.items()
        }
        self._cells = {}
        for name, place in self._places.items():
            self._cells.setdefault(_cell(*place), set()).add(name)


def _is_in_world(x: float, y: float) -> bool:
    """Return whether coordinates are in bounds.

    The number of a cell may overflow farther out.
    """
    return abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE


def _cell(x: float, y: float) -> tuple[int, int]:
    """Return the square of edge `PLACE_RADIUS` that holds a place."""
    return math.floor(x / PLACE_RADIUS), math.floor(y / PLACE_RADIUS)


__all__ = ["MAX_PER_PLACE", "PLACE_RADIUS", "OverlapLimit"]
