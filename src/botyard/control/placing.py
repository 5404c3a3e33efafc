"""Operation that finds places for more robots, to show them before robots are added."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from botyard.api.arguments import found, one_of
from botyard.control.adding import (
    MAX_ROBOTS_PER_REQUEST,
    NO_ROBOT_HOST,
    library_model,
)
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, count, optional, real, text
from botyard.control.site import Site
from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.navigation.planning import Costmap
from botyard.numerics.elementary import atan2, hypot
from botyard.sim.placement import Occupied, bounding_radius, on_trial
from botyard.sim.simulation import Simulation

ARRANGEMENTS: Final = ("near", "grid", "random", "line")
"""Arrangements of places; see `FindPlaces`."""
GAP_M: Final = 0.2
"""Distance between the circles around two robots, m."""
TRIES: Final = 100
"""Number of random points that are tried for each place."""
FINER: Final = 0.9
"""Factor by which a grid becomes finer until it has enough free places."""
TESTS_PER_BATCH: Final = 200
"""Number of places that are tested at a time; then the world continues for a moment."""
MAX_SEED: Final = 2**31 - 1
Box = tuple[float, float, float, float]


def _arrangement(value: Any, what: str, /) -> str:
    return one_of(value, what, ARRANGEMENTS)


def _box(value: Any, what: str, /) -> Box:
    check = real()
    if not isinstance(value, tuple) or len(value) != 4:
        raise ArgumentError(
            f"{what}: expected two points x0, y0, x1, y1 (m), found {found(value)}"
        )
    x0, y0, x1, y1 = (check(v, what) for v in value)
    return x0, y0, x1, y1


@dataclass(frozen=True, kw_only=True)
class FindPlaces(Operation[Future[tuple[Pose, ...]]]):
    """Find free places for robots of a library model, without adding any.

    Robots at these places touch nothing, and can drive from the map's home to each of
    them. The result may have fewer places than were asked for.

    Parameters
    ----------
    model : str
        Name of the model.
    number : int
        Number of places, from 1 to `MAX_ROBOTS_PER_REQUEST`.
    arrangement : str
        ``near``: the nearest places to the first point of `area`; ``grid``: rows and
        columns in `area`; ``random``: anywhere in `area`; ``line``: along the line from
        the first to the second point of `area`, with its heading.
    area : tuple of float, optional
        Two points, x0, y0, x1, y1, m: corners of a box, or ends of a line. The default
        is the map's home for ``near``, and the bounds of the map.
    seed : int
        Seed of random places: another seed gives other places.
    """

    model: str = argument(text(1000))
    number: int = argument(count(1, MAX_ROBOTS_PER_REQUEST))
    arrangement: str = argument(_arrangement, "near")
    area: Box | None = argument(optional(_box), None)
    seed: int = argument(count(0, MAX_SEED), 0)
    settles = False

    def perform(self, control: Site, caller: Caller) -> Future[tuple[Pose, ...]]:
        """Start to search for the places.

        Raises
        ------
        ModelError
            No model has this name.
        WorldError
            This simulator adds no robots.
        """
        robot_host = control.part(control.robot_host, NO_ROBOT_HOST)
        spec = robot_host.equip(library_model(self.model))
        search = _Search(control.sim, spec)

        def work() -> Generator[Future[None] | None, None, tuple[Pose, ...]]:
            places: list[Pose] = []
            for number, candidate in enumerate(self._candidates(control.sim, search)):
                if search.take(candidate):
                    places.append(candidate)
                    if len(places) == self.number:
                        break
                # Let the world run: a test of a place takes some microseconds.
                if number % TESTS_PER_BATCH == TESTS_PER_BATCH - 1:
                    yield None
                    search.refresh()
            return tuple(places)

        return robot_host.work(work())

    def _candidates(self, sim: Simulation, search: _Search) -> Iterator[Pose]:
        if self.arrangement == "near":
            home = sim.core.places.home
            at = home if self.area is None else Pose(*self.area[:2], home.th)
            return _spiral(at, search.pitch, self.number)
        area = self.area or search.bounds
        if self.arrangement == "line":
            return _line(area, self.number)
        if self.arrangement == "grid":
            return search.grid(area, self.number)
        return _random(area, self.number, self.seed)


class _Search:
    """Test of places for robots of one model; a place that it accepts is then occupied."""

    def __init__(self, sim: Simulation, spec: RobotSpec) -> None:
        self._sim = sim
        self._body = on_trial(spec)
        self._radius = bounding_radius(self._body)
        self._occupied = Occupied(self._radius + GAP_M)
        self.pitch = 2.0 * self._radius + GAP_M
        home = sim.core.places.home
        self._floor: Costmap = sim.core.floors.of(self._radius, [home[:2]])
        self._region = self._region_of(home)
        self.refresh()

    def refresh(self) -> None:
        """Take the present poses of all bodies into account."""
        self._is_free = self._sim.core.engine.trial(self._body)

    def _region_of(self, home: Pose) -> int:
        floor = self._floor
        cell = floor.cell(home[:2])
        region = 0 if cell is None else int(floor.labels[cell[1], cell[0]])
        if region:
            return region
        # The robot does not fit at the home, so the largest region of the floor is used.
        sizes = np.bincount(floor.labels[floor.labels > 0].ravel())
        return int(sizes.argmax()) if len(sizes) else 0

    @property
    def bounds(self) -> Box:
        """Bounds of the map, m; 20 m around the home of a world without a map."""
        bounds = self._sim.scene.bounds
        if bounds is not None:
            return bounds
        x, y, _ = self._sim.core.places.home
        return x - 10.0, y - 10.0, x + 10.0, y + 10.0

    def is_reached(self, pose: Pose) -> bool:
        """Return whether robots can drive to a place from the map's home."""
        cell = self._floor.cell(pose[:2])
        # The floor ends around the walls: a world without any is free everywhere.
        if cell is None:
            return not len(self._sim.scene.segments) and not len(self._sim.scene.points)
        return int(self._floor.labels[cell[1], cell[0]]) == self._region

    def can_take(self, pose: Pose) -> bool:
        """Return whether a place can be reached, is free, and keeps apart from accepted places."""
        return (
            self.is_reached(pose)
            and self._occupied.is_clear(pose, self._radius, self._body.parts)
            and self._is_free(pose)
        )

    def take(self, pose: Pose) -> bool:
        """Accept and occupy a place if it is free; return whether it was free."""
        if not self.can_take(pose):
            return False
        self._occupied.add(pose, self._radius, self._body.parts)
        return True

    def grid(self, area: Box, number: int) -> Iterator[Pose]:
        """Return the places of the coarsest grid in a box that has enough free ones."""
        x0, x1 = sorted(area[::2])
        y0, y1 = sorted(area[1::2])
        wide, high = x1 - x0, y1 - y0
        pitch = max(self.pitch, math.sqrt(max(wide * high, 1e-9) / number))
        while True:
            columns, rows = (
                max(1, math.floor(size / pitch) + 1) for size in (wide, high)
            )
            # The grid is centred in the box.
            left = x0 + 0.5 * (wide - (columns - 1) * pitch)
            low = y0 + 0.5 * (high - (rows - 1) * pitch)
            places = [
                Pose(left + i * pitch, low + j * pitch, 0.0)
                for j in range(rows)
                for i in range(columns)
            ]
            enough = sum(map(self.can_take, places)) >= number
            if enough or pitch <= self.pitch or len(places) > 20 * number + 1000:
                return iter(places)
            pitch = max(self.pitch, FINER * pitch)


def _spiral(at: Pose, pitch: float, number: int) -> Iterator[Pose]:
    """Yield the places of a square grid around a pose, nearest first."""
    reach = 3 + 2 * math.ceil(math.sqrt(number))
    steps = [
        (hypot(float(i), float(j)), i, j)
        for i in range(-reach, reach + 1)
        for j in range(-reach, reach + 1)
    ]
    for _, i, j in sorted(steps):
        yield Pose(at.x + i * pitch, at.y + j * pitch, at.th)


def _line(area: Box, number: int) -> Iterator[Pose]:
    x0, y0, x1, y1 = area
    th = atan2(y1 - y0, x1 - x0)
    for k in range(number):
        share = 0.5 if number == 1 else k / (number - 1)
        yield Pose(x0 + share * (x1 - x0), y0 + share * (y1 - y0), th)


def _random(area: Box, number: int, seed: int) -> Iterator[Pose]:
    # A generator of its own: a preview must not change the draws of the simulation.
    draws = np.random.default_rng(seed)
    x0, y0, x1, y1 = area
    for _ in range(TRIES * number):
        u, v, w = draws.random(3).tolist()
        yield Pose(x0 + u * (x1 - x0), y0 + v * (y1 - y0), (2.0 * w - 1.0) * math.pi)


__all__ = ["ARRANGEMENTS", "FindPlaces"]
