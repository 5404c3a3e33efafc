"""Maps of many worlds: the map of an episode, and the start poses of robots in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from botyard.api import arguments
from botyard.engine.build import BodySpec
from botyard.engine.episode_starts import MAP_STREAM, Spaces, draw_numbers
from botyard.engine.layout import F8, I2, I8, U2, U8, Grid
from botyard.errors import ArgumentError
from botyard.formats.registry import load_scene
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.scene import Scene
from botyard.native.kinds import Pack
from botyard.sim.freespace import spaces_of
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import add_at_home
from botyard.worlds.robot_sets import RobotSet, silent

Scenes = Scene | str | Path | Sequence[Scene | str | Path] | Callable[[int], Scene]


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A map.

    Attributes
    ----------
    scene, grid : Scene, Grid
        Content of the map.
    boxes : tuple of BodySpec
        Boxes of the map.
    """

    scene: Scene
    grid: Grid
    boxes: tuple[BodySpec, ...]
    _starts: dict[RobotSet, F8] = field(default_factory=dict)

    def starts(self, robot_set: RobotSet, sim: Simulation | None = None) -> F8:
        """Return the default start poses of boxes and robots, (b + m, 3): m, m, rad.

        `sim` is a simulation of the map without robots, if there is one. The robots are
        added to it.
        """
        found = self._starts.get(robot_set)
        if found is None:
            sim = Simulation(self.scene, warn=silent) if sim is None else sim
            starts = [
                *(box.pose for box in self.scene.boxes),
                *(robot.start for robot in add_at_home(sim, robot_set.robots)),
            ]
            found = self._starts[robot_set] = np.array(starts, np.float64).reshape(
                -1, 3
            )

        return found

    def space(
        self, robot_set: RobotSet, clearance: float, *, reachable: bool
    ) -> Pack[Spaces]:
        """Return the free space for the bodies of a robot set.

        See `botyard.sim.freespace.free_space`.
        """
        count, radii = len(self.boxes), robot_set.bodies.radius.tolist()
        return Pack(
            spaces_of(
                self.scene,
                self.grid,
                radii[count:],
                clearance,
                reachable=reachable,
                boxes=radii[:count],
            )
        )


class Maps:
    """Maps of a batch of worlds by number; a thread makes the next ones in advance.

    Parameters
    ----------
    scenes : Scene, str, Path, sequence of them, or callable
        One map, several, or a function that makes the map of a number.
    size : int
        Number of cached maps that no world uses; with a function also the number of maps in
        use at a time.
    boxes : sequence of BoxObject
        Boxes that stand in all maps, in addition to the boxes of the map.

    Raises
    ------
    ArgumentError
        `scenes` is something else or empty.
    """

    def __init__(
        self, scenes: Scenes, size: int, boxes: Sequence[BoxObject] = ()
    ) -> None:
        self.robot_set: RobotSet | None = None
        """Usual robots, whose start poses the thread also computes."""
        self._size, self._more = size, tuple(boxes)
        self._boxes: tuple[BodySpec, ...] | None = None
        self._make: Callable[[int], Scene]
        if callable(scenes):
            self._make, self.count = scenes, None
        else:
            several = (
                [scenes]
                if isinstance(scenes, (Scene, str, Path))
                else arguments.several(scenes, "scenes", "maps")
            )
            if not several:
                raise ArgumentError("scenes: expected at least one map, found none")
            found = [
                one
                if isinstance(one, Scene)
                else load_scene(arguments.path(one, "scenes"))
                for one in several
            ]
            self._make, self.count = found.__getitem__, len(found)

        self._maps: dict[int, Map] = {}
        self._ordinary: tuple[U2, I2] = np.zeros(0, np.uint16), np.zeros(0, np.int16)
        self._coming: dict[int, Future[Map]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def are_all_there(self) -> bool:
        """Whether every map that an episode may have exists."""
        return len(self._maps) == self.count

    @property
    def are_many(self) -> bool:
        """Whether there are more than `size` maps, so that `spare` may drop some."""
        return len(self._maps) > self._size

    def numbers(self, seeds: U8, episodes: I8) -> I8:
        """Return the numbers of the maps of episodes, (n,), of worlds with these seeds.

        Of several maps one is drawn. With a function, the first `size` episodes of each
        world use the maps 0 … `size` − 1, the next `size` episodes the next maps, and
        so on.
        """
        numbers = np.zeros(len(seeds), np.int64)
        if self.count != 1:
            draw_numbers(
                seeds, episodes, MAP_STREAM, self.count or 0, self._size, numbers
            )

        return numbers

    def prepare(self, numbers: I8) -> None:
        """Let a thread make these maps unless they exist."""
        self._leave_to_parent()
        for number in sorted(set(numbers.tolist())):
            if number not in self._maps and number not in self._coming:
                if self._pool is None:
                    # One thread is enough: it only has to stay ahead of the episodes.
                    self._pool = ThreadPoolExecutor(1, "maps")
                self._coming[number] = self._pool.submit(self._made, number)

        # No world has asked for the oldest ones.
        while len(self._coming) > self._size:
            self._coming.pop(next(iter(self._coming))).cancel()

    def __getitem__(self, number: int) -> Map:
        """Return the map of a number; make it or wait for it if it does not exist."""
        found = self._maps.pop(number, None)
        if found is None:
            self._leave_to_parent()
            coming = self._coming.pop(number, None)
            found = self._made(number) if coming is None else coming.result()

        # A dictionary keeps the order of insertion, so the map used last stands last.
        self._maps[number] = found
        return found

    def spare(self, used: I8) -> list[int]:
        """Drop the least recently used maps, and return their numbers.

        `size` maps and the maps in `used` stay.
        """
        excess = len(self._maps) - self._size
        if excess <= 0:
            return []
        still = set(used.tolist())
        gone = [number for number in self._maps if number not in still][:excess]
        for number in gone:
            del self._maps[number]
        return gone

    def _leave_to_parent(self) -> None:
        """Drop the thread and its tasks in a forked process.

        A fork has no copy of the thread, so that the tasks would never finish.
        """
        if self._process != os.getpid():
            self._process, self._pool = os.getpid(), None
            self._coming.clear()

    def close(self) -> None:
        """End the thread that makes maps."""
        self._leave_to_parent()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _made(self, number: int) -> Map:
        scene = self._make(number)
        if not isinstance(scene, Scene):
            raise ArgumentError(
                f"scenes({number}): expected a Scene, found {arguments.found(scene)}"
            )

        if self._more:
            scene = replace(scene, boxes=(*scene.boxes, *self._more))
        # A simulation builds the grid and gives boxes their names.
        sim = Simulation(scene, warn=silent)
        boxes = tuple(sim.core.engine.specs)
        if self._boxes is None:
            self._boxes = boxes
        # Rows of the state are laid out for the boxes of the first map.
        elif boxes != self._boxes:
            raise ArgumentError(
                f'scenes: the boxes of the map "{scene.name}" differ from the boxes of '
                "the first map; in Worlds all maps have the same boxes, at any poses"
            )

        made = Map(scene, self._sharing(sim.core.engine.grid), boxes)
        if self.robot_set is not None:
            # In this thread, because the search for free places takes long.
            made.starts(self.robot_set, sim)
        return made

    def _sharing(self, grid: Grid) -> Grid:
        """Return a grid without the arrays that all maps share.

        They are the workspace, which each thread has, and, if the grid is plain,
        classes and returns.
        """
        count = len(grid.seg)
        if grid.plain:
            mask, bright = self._ordinary
            if len(mask) < count:
                mask, bright = self._ordinary = (
                    np.full(2 * count, Visible.ALL, np.uint16),
                    np.ones(2 * count, np.int16),
                )
                # Shared by all maps: a write would change every one.
                mask.flags.writeable = bright.flags.writeable = False

            grid = grid._replace(mask=mask[:count], bright=bright[:count])

        return grid._replace(near=np.zeros(0, np.int32))


__all__ = ["Map", "Maps", "Scenes"]
