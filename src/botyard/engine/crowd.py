"""Limits how many bodies clients may put on top of each other: those who may teleport
robots, but do not own the machine.

Bodies that overlap are all tested against each other and by each other's sensors, which
costs the square of their number: a thousand on one place take ten seconds a step.
Driving never brings them there.
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
"""Bodies whose origins are nearer to each other than this, m, are on one place."""
MAX_PER_PLACE: Final = 4
"""Bodies on one place."""


class Crowd:
    """Positions of all bodies, with those that commands of this step will put
    elsewhere.

    Parameters
    ----------
    engine : Engine
        Whose bodies they are.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._of: tuple[int, Mapping[str, int] | None] = (-1, None)
        self._places: dict[str, tuple[float, float]] = {}
        self._cells: dict[tuple[int, int], set[str]] = {}

    def place(self, name: str) -> tuple[float, float]:
        """Where a body is, or where a command of this step puts it, m. KeyError when
        there is none of that name.
        """
        self._look()
        return self._places[name]

    def enter(self, name: str, x: float, y: float) -> None:
        """Note that a command of this step puts a body at (`x`, `y`), m.

        Raises
        ------
        KeyError
            There is none of that name.
        CommandError
            There are `MAX_PER_PLACE` others already.
        """
        self._look()
        old = self._places[name]
        if not _is_in_world(x, y):
            return  # the command reports it
        self.check(name, x, y)
        self._cells[_cell(*old)].discard(name)
        self._places[name] = (x, y)
        self._cells.setdefault(_cell(x, y), set()).add(name)

    def check(self, name: str, x: float, y: float) -> None:
        """Check that a body, which may be new, can be put at (`x`, `y`), m.

        Raises
        ------
        CommandError
            There are `MAX_PER_PLACE` others already.
        """
        self._look()
        if not _is_in_world(x, y):
            return
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
                f"{shown(name)} cannot be put at x={x:zg} m, y={y:zg} m: "
                f"{others} others stand on that place already"
            )

    def forget(self) -> None:
        """Read all positions again: the world has gone on from another state."""
        self._of = (-1, None)

    def _look(self) -> None:
        """Read all positions again if there has been a step, or bodies have come or
        gone.
        """
        engine = self._engine
        now = (engine.clock.tick, engine.rows)
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
    """Whether a body can be there at all: farther out a number of a cell may be none."""
    return abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE


def _cell(x: float, y: float) -> tuple[int, int]:
    return math.floor(x / PLACE_RADIUS), math.floor(y / PLACE_RADIUS)


__all__ = ["MAX_PER_PLACE", "PLACE_RADIUS", "Crowd"]
