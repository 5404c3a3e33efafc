"""Search for free places for robots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from botyard.api.revisions import Subject
from botyard.devices.grippertable import open_paddles
from botyard.engine.bodyspec import BodySpec, robot_body
from botyard.engine.simulation import Engine
from botyard.geometry import Outline, Pose, distance
from botyard.model.regions import overlaps, placed
from botyard.model.robot import RobotSpec
from botyard.model.trailers import trailer_poses
from botyard.numerics.elementary import hypot
from botyard.sim.freespace import Around

ROBOT_SPACING = 1.0
"""Spacing of robots without a start pose, m."""
Parts = Sequence[Outline]
"""Polygons of a body in its frame, m."""
MIN_PLACES: Final = 22_700
"""Fewest places of a search: all within 85 m of its centre."""
MAX_SEARCHES: Final = 8
"""Largest number of models whose latest search is remembered."""
MIN_REACH = 8.0
"""Initial half edge of the searched square of floor, m; farther places double it."""


class Occupied:
    """Outlines that stand at known places, found by the cell of their centre.

    Parameters
    ----------
    radius : float
        Radius of the largest bounding circle of all outlines, m.
    """

    def __init__(self, radius: float) -> None:
        # Two outlines overlap only if their centres lie in neighbouring cells of this
        # size, so that a lookup needs nine cells.
        self._cell = 2.0 * radius + ROBOT_SPACING
        self._cells: dict[tuple[int, int], list[tuple[Pose, float, Parts]]] = {}

    def add(self, pose: Pose, radius: float, parts: Parts) -> None:
        """Add an outline that stands at a pose.

        Parameters
        ----------
        pose : Pose
            Pose of the outline's frame in the world: m, m, rad.
        radius : float
            Radius of the bounding circle around the frame's origin, m. It is at most
            the radius with which this object was made.
        parts : sequence of outlines
            Polygons in that frame, m.
        """
        self._cells.setdefault(self._key(pose), []).append((pose, radius, parts))

    def is_clear(self, pose: Pose, radius: float, parts: Parts) -> bool:
        """Return whether an outline overlaps none that was added.

        Parameters
        ----------
        pose : Pose
            Pose to test: m, m, rad.
        radius : float
            Radius of the bounding circle around the outline's origin, m; at most the
            radius with which this object was made.
        parts : sequence of outlines
            Polygons in the frame of the outline, m.
        """
        i, j = self._key(pose)
        outline: list[Outline] | None = None
        for key in itertools.product((i - 1, i, i + 1), (j - 1, j, j + 1)):
            for where, other, others in self._cells.get(key, ()):
                # The circles are a cheap test before the outlines.
                if distance(pose, where) > radius + other:
                    continue
                outline = outline or [placed(part, pose) for part in parts]
                if any(
                    overlaps(placed(part, where), mine)
                    for part in others
                    for mine in outline
                ):
                    return False

        return True

    def _key(self, pose: Pose) -> tuple[int, int]:
        return math.floor(pose.x / self._cell), math.floor(pose.y / self._cell)


class _Searched:
    """Result of a search for a place, with a copy of all data that it depends on.

    Attributes
    ----------
    first : int
        Number of the place that was found.
    """

    def __init__(self, spec: RobotSpec, engine: Engine, first: int) -> None:
        # The reference keeps the model alive, so that no other model gets its `id`, which
        # is the key of this result.
        self.spec, self.first = spec, first
        self._specs = tuple(engine.specs)
        self._outlines = engine.feed.last(Subject.OUTLINES)
        self._pose, self._mask = engine.state.pose.copy(), engine.state.mask.copy()

    def is_valid(self, engine: Engine) -> bool:
        """Return whether the result still holds: since the search, bodies were only added."""
        n, state = len(self._specs), engine.state
        return (
            self._outlines == engine.feed.last(Subject.OUTLINES)
            and self._specs == tuple(engine.specs[:n])
            and np.array_equal(self._pose, state.pose[:n])
            and np.array_equal(self._mask, state.mask[:n])
        )


class _Grid:
    """Places of a 1 m grid for a robot: first the places within reach, nearest first.

    Only walls separate places. Robots and boxes do not, because they may move away. The
    result for each place is cached.

    Parameters
    ----------
    engine : Engine
        Engine of the world.
    near : Pose
        Place from which robots drive. If no robot fits there, they drive from the first
        place where one does.
    radius : float
        Radius of a circle around the origin that lies in the robot, m.
    """

    def __init__(self, engine: Engine, near: Pose, radius: float) -> None:
        self._scene, self.of = engine.scene, (engine.grid, near, radius)
        self._reach = MIN_REACH
        self._around: Around | None = None
        self._home: Pose = near
        self._spiral = _spiral(near, ROBOT_SPACING)
        self._reached: list[Pose] = []
        self._divided: list[Pose] = []
        self._searched: dict[int, _Searched] = {}
        """Latest search of each model, by identity."""

    def places(self, limit: int, first: int = 0) -> Iterator[tuple[int, Pose]]:
        """Yield the nearest places, those within the robot's reach first.

        Parameters
        ----------
        limit : int
            Number of places of the spiral to test, and so the greatest number
            yielded.
        first : int
            Number of the place at which to start.

        Yields
        ------
        int, Pose
            Number of the place, and its pose: m, m, rad.
        """
        k = first
        while True:
            if k < len(self._reached):
                yield k, self._reached[k]
                k += 1
            elif len(self._reached) + len(self._divided) < limit:
                place = next(self._spiral)
                (self._reached if self._is_reached(place) else self._divided).append(
                    place
                )
            else:
                break

        # Try these places last, because a robot there could not reach the others.
        yield from enumerate(self._divided, len(self._reached))

    def first_for(self, spec: RobotSpec, engine: Engine) -> int:
        """Return the number of the first place that may be free for a model.

        All places before were blocked in an earlier search, and since then bodies were
        only added. So a program that adds robots one by one does not search the places
        of all earlier ones again.
        """
        searched = self._searched.get(id(spec))
        return searched.first if searched and searched.is_valid(engine) else 0

    def remember(self, spec: RobotSpec, engine: Engine, first: int) -> None:
        """Store that all places before a number are blocked for a model.

        Parameters
        ----------
        spec : RobotSpec
            Model that was placed.
        engine : Engine
            World whose present bodies block the places.
        first : int
            Number of the first place that may be free.
        """
        # Each entry holds a copy of all poses.
        if len(self._searched) >= MAX_SEARCHES and id(spec) not in self._searched:
            self._searched.clear()
        # A place that walls separate gets another number in a longer search.
        if first < len(self._reached):
            self._searched[id(spec)] = _Searched(spec, engine, first)

    def _is_reached(self, place: Pose) -> bool:
        grid, near, radius = self.of
        # Without walls every place is reachable.
        if place == near or (
            not len(self._scene.segments) and not len(self._scene.points)
        ):
            return True

        # The flood fill covers a square. Growing it by doubling keeps the number of
        # fills logarithmic in the distance.
        away = max(abs(place.x - near.x), abs(place.y - near.y)) + ROBOT_SPACING
        if self._around is None or away > self._reach:
            while away > self._reach:
                self._reach *= 2.0
            self._around = Around(self._scene, grid, near, radius, self._reach)

        # Both regions are searched again, because a larger square numbers them anew.
        region, home = self._around.region(place), self._around.region(self._home)
        # The robot does not fit at `near`: the first place where it does becomes the
        # home.
        if region and not home:
            self._home, home = place, region
        return region != 0 and region == home


_grids: WeakKeyDictionary[Engine, _Grid] = WeakKeyDictionary()
"""Latest grid of each world.

Robots without a start pose are usually placed one after the other around the same pose,
so that one grid serves them all.
"""


def _grid_around(engine: Engine, near: Pose, radius: float) -> _Grid:
    """Return the grid of places around a pose, the latest one of the world if it fits.

    Parameters
    ----------
    engine : Engine
        World with walls.
    near : Pose
        Centre of the grid: m, m, rad.
    radius : float
        Radius of a circle around the origin that lies in the robot, m.
    """
    found = _grids.get(engine)
    if (
        found is None
        or found.of[0] is not engine.grid
        or found.of[1:] != (near, radius)
    ):
        found = _grids[engine] = _Grid(engine, near, radius)

    return found


class FreePlaces:
    """Generator of free places for robots of a model, nearest first, each only once.

    The places are the same as in a search for each robot, with the earlier robots in
    the world. Places that walls separate from `near` come last.

    Parameters
    ----------
    engine : Engine
        Engine of the world.
    spec, near
        See `Places.near`.
    count : int
        Number of places that will be taken.
    given : sequence of Pose
        Places that other robots of the model will get.
    """

    def __init__(
        self,
        engine: Engine,
        spec: RobotSpec,
        near: Pose,
        count: int,
        given: Sequence[Pose] = (),
    ) -> None:
        self._engine, self._spec = engine, spec
        self._near = near
        self._body = on_trial(spec)
        self._radius = bounding_radius(self._body)
        self._occupied = Occupied(self._radius)
        for place in given:
            self._occupied.add(place, self._radius, self._body.parts)
        # Four times the area that all bodies would cover leaves room between walls.
        width = max(1.0, 2.0 * self._radius)
        bodies = len(engine.specs) + count
        limit = MIN_PLACES + int(4.0 * width * width * bodies)
        grid = _grid_around(engine, near, _inner_radius(self._body))
        # The given robots are not in the world, so that no result is remembered.
        self._grid = None if given else grid
        self._places = grid.places(
            limit, grid.first_for(spec, engine) if self._grid else 0
        )

    def take(self, count: int) -> list[Pose]:
        """Return the next places that are free now.

        Parameters
        ----------
        count : int
            Number of places. No place is returned twice.

        Returns
        -------
        list of Pose
            `count` poses, m, m, rad. `near` fills the end of the list if the search ran
            out of places; a robot there touches something.
        """
        is_free = self._engine.trial(self._body)
        found: list[Pose] = []
        while len(found) < count and (one := next(self._places, None)) is not None:
            number, place = one
            # Robots that got an earlier place may not be in the world yet.
            if self._occupied.is_clear(
                place, self._radius, self._body.parts
            ) and is_free(place):
                if self._grid is not None:
                    self._grid.remember(self._spec, self._engine, number)
                    # Later places depend on robots that are not in the world yet.
                    self._grid = None
                found.append(place)
                self._occupied.add(place, self._radius, self._body.parts)

        return found + [self._near] * (count - len(found))


def places_back(
    engine: Engine, robots: Mapping[str, Pose], boxes: Mapping[str, Pose]
) -> dict[str, Pose]:
    """Return places for bodies that return to their starts at the same time.

    Robots are placed in the given order, and no two overlap.

    Parameters
    ----------
    engine : Engine
        Engine of the world.
    robots, boxes : mapping of str to Pose
        Start poses by name of the body. Boxes always return to their starts. A
        robot returns to its start even if that is inside a wall. If another body is there,
        or returns there, it gets the nearest free place on the 1 m grid around its start.

    Returns
    -------
    dict of str to Pose
        Place of each body, by name.
    """
    going = robots.keys() | boxes.keys()
    # Ghosts and carried bodies take up no room.
    solid = engine.state.mask != 0
    is_staying = solid.copy()
    is_staying[[engine.rows[name] for name in going]] = False
    radius = engine.bodies.radius
    occupied = Occupied(float(radius.max(initial=0.0)))

    def take(row: int, pose: Pose) -> None:
        if solid[row]:
            occupied.add(pose, radius[row], engine.outline(row))

    def is_clear(row: int, pose: Pose) -> bool:
        return occupied.is_clear(pose, radius[row], engine.outline(row))

    # Bodies that stay come first, then boxes, because their places are fixed.
    for row in np.flatnonzero(is_staying).tolist():
        take(row, Pose(*engine.state.pose[row].tolist()))
    found = dict(boxes)
    grids: dict[tuple[Pose, float], Iterator[tuple[int, Pose]]] = {}
    for name, pose in boxes.items():
        take(engine.rows[name], pose)
    for name, start in robots.items():
        row = engine.rows[name]
        found[name] = start
        if solid[row] and not is_clear(row, start):
            spec = replace(
                engine.specs[row], name=" placing ", parts=engine.outline(row)
            )
            is_free = engine.trial(spec, without=going)
            inner = _inner_radius(spec)
            # Robots that share a start continue the same search.
            if (start, inner) not in grids:
                limit = MIN_PLACES + 4 * len(engine.specs)
                grids[start, inner] = _grid_around(engine, start, inner).places(limit)
            found[name] = next(
                (p for _, p in grids[start, inner] if is_clear(row, p) and is_free(p)),
                start,
            )

        take(row, found[name])

    return found


def bounding_radius(body: BodySpec) -> float:
    """Return the radius of the circle around the origin that holds a body, m."""
    return max(hypot(x, y) for part in body.parts for x, y in part)


def _inner_radius(body: BodySpec) -> float:
    """Return the radius of a circle around the origin that lies in a body, m."""
    sides = [
        [side * p[axis] for part in body.parts for p in part]
        for axis in (0, 1)
        for side in (-1.0, 1.0)
    ]
    return max(0.0, min(map(max, sides)))


def on_trial(spec: RobotSpec) -> BodySpec:
    """Return the body for testing places for a robot.

    It has the outline with open gripper, and of trailers in a straight line.
    """
    body = robot_body(spec, " placing ")
    behind = tuple(
        placed(one.outline, pose)
        for one, pose in zip(
            spec.trailers, trailer_poses(spec.trailers, Pose()), strict=True
        )
    )
    return replace(body, parts=(*body.parts, *open_paddles(spec), *behind), trailers=())


@cache
def _ring(k: int) -> tuple[tuple[int, int], ...]:
    """Return offsets of a square grid from k to less than k + 1 away, nearest first.

    Of offsets at equal distances, negative y come first, because AMRISim lines robots up
    at 1 m steps towards negative y.

    Parameters
    ----------
    k : int
        Inner radius of the ring in steps of the grid.

    Returns
    -------
    tuple of (int, int)
        Offsets along x and y in steps of the grid.
    """
    inner, outer = k * k, (k + 1) * (k + 1)
    offsets = [(i, j) for i in range(-k, k + 1) for j in _columns(i * i, inner, outer)]
    offsets.sort(key=lambda o: (o[0] * o[0] + o[1] * o[1], o[1] > 0, abs(o[0]), o[0]))
    return tuple(offsets)


def _columns(square: int, inner: int, outer: int) -> Iterator[int]:
    """Yield each j with inner <= square + j² < outer.

    Parameters
    ----------
    square : int
        Square of the other coordinate, in steps of the grid.
    inner, outer : int
        Squares of the inner and the outer radius of the ring.
    """
    low = math.isqrt(max(0, inner - square - 1)) + 1 if inner > square else 0
    high = math.isqrt(outer - square - 1)
    for j in range(low, high + 1):
        yield j
        if j:
            yield -j


def _spiral(home: Pose, spacing: float) -> Iterator[Pose]:
    """Yield places of a square grid around `home` without end, nearest first.

    Parameters
    ----------
    home : Pose
        Centre of the grid. Each place has its heading.
    spacing : float
        Edge of the grid, m.
    """
    for k in itertools.count():
        for i, j in _ring(k):
            yield Pose(home.x + i * spacing, home.y + j * spacing, home.th)
