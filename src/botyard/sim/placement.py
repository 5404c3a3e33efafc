"""Search for free places for robots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from botyard.devices.gripper import open_paddles
from botyard.elementary import hypot
from botyard.engine.build import BodySpec, robot_body
from botyard.engine.simulation import Engine
from botyard.geometry import Pose, distance
from botyard.model.robot import RobotSpec

ROBOT_SPACING = 1.0
"""Spacing of robots without a start pose, m (decisions, "Start")."""


class FreePlaces:
    """Generator of free places for robots of a model, nearest first, each only once.

    Parameters
    ----------
    engine : Engine
        The world.
    spec, near
        See `Simulation.free_places`.
    """

    def __init__(self, engine: Engine, spec: RobotSpec, near: Pose) -> None:
        self._engine = engine
        self._near = near
        self._body = on_trial(spec)
        self._apart = 2.0 * max(hypot(x, y) for part in self._body.parts for x, y in part)
        self._spiral = _spiral(near, ROBOT_SPACING)
        self._given: list[Pose] = []

    @property
    def is_exact(self) -> bool:
        """Whether places of the grid are far enough apart for robots of this model; larger ones are kept apart by bounding circles."""
        return self._apart <= ROBOT_SPACING

    def take(self, count: int) -> list[Pose]:
        """The next `count` free places at present; `near` for each that is missing."""
        is_free = self._engine.trial(self._body)
        found: list[Pose] = []
        while len(found) < count and (place := next(self._spiral, None)) is not None:
            crowded = not self.is_exact and any(distance(place, p) < self._apart for p in self._given)
            if not crowded and is_free(place):
                found.append(place)
                self._given.append(place)
        return found + [self._near] * (count - len(found))


def on_trial(spec: RobotSpec) -> BodySpec:
    """The body for testing places for a robot: its outline with open gripper."""
    body = robot_body(spec, " placing ")
    return replace(body, parts=(*body.parts, *open_paddles(spec)))


@cache
def _offsets(rings: int) -> tuple[tuple[int, int], ...]:
    """Offsets of a square grid, nearest first; ties go to lower y, as the original lines robots up (1 m lower in y each)."""
    offsets = [(i, j) for i in range(-rings, rings + 1) for j in range(-rings, rings + 1)]
    offsets.sort(key=lambda o: (o[0] * o[0] + o[1] * o[1], o[1] > 0, abs(o[0]), o[0]))
    return tuple(offsets)


def _spiral(home: Pose, spacing: float, rings: int = 60) -> Iterator[Pose]:
    """Places of a square grid around `home`, nearest first; the same heading everywhere."""
    for i, j in _offsets(rings):
        yield Pose(home.x + i * spacing, home.y + j * spacing, home.th)
