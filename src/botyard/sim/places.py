"""Places for more robots: the map's home, free places around it, random places."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.sim.core import Core, Member
from botyard.sim.freespace import AROUND_M
from botyard.sim.placement import (
    FreePlaces,
    Occupied,
    bounding_radius,
    on_trial,
)

MAX_TRIES = 10_000
"""Number of random poses after which the search for a free one ends."""


class Places:
    """Places of a simulation at which a robot touches nothing."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def home(self) -> Pose:
        """Start pose of robots: the map's home, or its centre."""
        scene = self._core.scene
        return scene.center if scene.start is None else scene.start

    def next(self, spec: RobotSpec, count: int) -> list[Pose]:
        """Return start poses of `count` more robots of a model.

        The first robot of all gets the map's home, the others the nearest free places.

        Parameters
        ----------
        spec : RobotSpec
            Model of all these robots.
        count : int
            Number of robots.

        Returns
        -------
        list of Pose
            Poses in the world, m, m, rad. Where no place is free, the home itself.
        """
        start = self._core.scene.start
        # The first robot gets the home even if something is there, because the map
        # demands it.
        first = [start] if start is not None and not self._core.robots and count else []
        return first + self.near(spec, self.home, count - len(first), given=first)

    def near(
        self, spec: RobotSpec, near: Pose, count: int, *, given: Sequence[Pose] = ()
    ) -> list[Pose]:
        """Return the places nearest to a pose for robots of a model.

        Places are on a 1 m grid. Robots there touch nothing else, and do not touch each
        other.

        Parameters
        ----------
        spec : RobotSpec
            Model of all these robots.
        near : Pose
            Centre of the grid: m, m, rad. All places have its heading.
        count : int
            Number of places.
        given : sequence of Pose
            Poses that other robots of the model will have; no place touches them.

        Returns
        -------
        list of Pose
            `count` poses, nearest first; `near` itself fills missing places.
        """
        return FreePlaces(self._core.engine, spec, near, count, given).take(count)

    def one_near(self, spec: RobotSpec, near: Pose) -> Pose:
        """Return the nearest place, on a 1 m grid around `near`, without contact.

        Return `near` itself if there is none.
        """
        return self.near(spec, near, 1)[0]

    def is_free_for(self, robot: Member) -> Callable[[Pose], bool]:
        """Return a function that tests a pose of a robot for contact with other things.

        Parameters
        ----------
        robot : Member
            Robot to move. Its own present place does not count as occupied.

        Returns
        -------
        callable
            Takes a pose in the world, and returns whether the robot touches nothing
            there. It is valid until a body moves, is added or is removed.
        """
        engine = self._core.engine
        row = engine.rows[robot.name]
        spec = replace(engine.specs[row], name=" placing ", parts=engine.outline(row))
        return engine.trial(spec, without=[robot.name])

    def random(self, spec: RobotSpec, index: int = 0) -> Pose:
        """Draw a place within the bounds of the map at which a robot touches nothing.

        Parameters
        ----------
        spec : RobotSpec
            Model of the robot.
        index : int
            Number of the draw; another number gives another place.

        Raises
        ------
        WorldError
            No place was found in `MAX_TRIES` tries.
        """
        return self.random_many(spec, index, 1)[0]

    def random_many(
        self, spec: RobotSpec, first: int, count: int, *, given: Sequence[Pose] = ()
    ) -> list[Pose]:
        """Draw places within the bounds of the map at which robots touch nothing.

        A world without a map has bounds of 20 m × 20 m. If the bounds are narrower than
        the robot, for example around a single straight wall, 5 m are added around them.

        Draws depend on the seed of the simulation and on the number of the place.
        Different robots get different places, and a run can be repeated.

        Parameters
        ----------
        spec : RobotSpec
            Model of all these robots.
        first : int
            Number of the first place; further places have the next numbers.
        count : int
            Number of places.
        given : sequence of Pose
            Poses that other robots of the model will have; no place touches them.

        Returns
        -------
        list of Pose
            Poses in the world, m, m, rad, which do not touch each other.

        Raises
        ------
        WorldError
            No place was found in `MAX_TRIES` tries.
        """
        core = self._core
        x0, y0, x1, y1 = bounds_of(core.scene) or (-10.0, -10.0, 10.0, 10.0)
        if min(x1 - x0, y1 - y0) <= 2.0 * spec.radius:
            x0, y0, x1, y1 = x0 - AROUND_M, y0 - AROUND_M, x1 + AROUND_M, y1 + AROUND_M
        body = on_trial(spec)
        radius = bounding_radius(body)
        occupied, is_free = Occupied(radius), core.engine.trial(body)
        for pose in given:
            occupied.add(pose, radius, body.parts)

        found: list[Pose] = []
        for number in range(first, first + count):
            # A text as seed is hashed with SHA-512: the same on every machine.
            draw = random.Random(f"{core.seed} start {number}")
            for _ in range(MAX_TRIES):
                pose = Pose(
                    draw.uniform(x0, x1),
                    draw.uniform(y0, y1),
                    draw.uniform(-math.pi, math.pi),
                )
                if occupied.is_clear(pose, radius, body.parts) and is_free(pose):
                    break
            else:
                raise WorldError(
                    "no free place for a robot was found in this map in "
                    f"{MAX_TRIES} random tries"
                )

            found.append(pose)
            occupied.add(pose, radius, body.parts)

        return found


@lru_cache(maxsize=2)
def bounds_of(scene: Scene) -> tuple[float, float, float, float] | None:
    """Return the bounds of a map, cached because `Scene.bounds` reads all walls.

    Returns
    -------
    tuple of float or None
        Least x and y, greatest x and y, m; None: the map is empty.
    """
    return scene.bounds


__all__ = ["Places", "bounds_of"]
