"""Maps of many worlds: the map of an episode, and the start poses of robots in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from botyard.api import arguments
from botyard.engine.bodyspec import BodySpec
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
    """A map of a batch of worlds, with data computed from it.

    Attributes
    ----------
    scene, grid : Scene, Grid
        Content of the map, and its walls as a grid.
    boxes : tuple of BodySpec
        Boxes of the map.
    """

    scene: Scene
    grid: Grid
    boxes: tuple[BodySpec, ...]
    _starts: dict[RobotSet, F8] = field(default_factory=dict)

    def starts(self, robot_set: RobotSet, sim: Simulation | None = None) -> F8:
        """Return the default start poses of boxes and robots.

        They are computed once for each robot set, since the search for free places
        takes long.

        Parameters
        ----------
        robot_set : RobotSet
            Robots of the world.
        sim : Simulation, optional
            Simulation of the map without robots, if there is one. This method adds the
            robots to it.

        Returns
        -------
        (b + m, 3) float64
            Poses, boxes first: m, m, rad.
        """
        # Robot sets are compared by identity, so that the lookup is cheap.
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

        Parameters
        ----------
        robot_set : RobotSet
            Robots and boxes; each needs room by its radius.
        clearance : float
            Least distance of a robot from walls, m.
        reachable : bool
            Whether all places must be in one region of the map.

        Raises
        ------
        ArgumentError
            The map has no room.
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
        """Usual robots; the thread also computes their start poses."""
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
        """Whether all maps that an episode may have are made."""
        return len(self._maps) == self.count

    @property
    def are_many(self) -> bool:
        """Whether there can be more than `size` maps, so that `spare` has maps to drop."""
        return len(self._maps) > self._size

    def numbers(self, seeds: U8, episodes: I8) -> I8:
        """Return the numbers of the maps of episodes.

        Of several maps one is drawn. With a function, the first `size` episodes of each
        world use the maps 0 … `size` − 1, the next `size` episodes the next maps, and
        so on.

        Parameters
        ----------
        seeds : (n,) uint64
            Seeds of the worlds.
        episodes : (n,) int64
            Numbers of the episodes.

        Returns
        -------
        (n,) int64
            Numbers of maps; zeros if there is one map.
        """
        numbers = np.zeros(len(seeds), np.int64)
        if self.count != 1:
            draw_numbers(
                seeds, episodes, MAP_STREAM, self.count or 0, self._size, numbers
            )

        return numbers

    def prepare(self, numbers: I8) -> None:
        """Let a thread make these maps unless they exist.

        Parameters
        ----------
        numbers : (k,) int64
            Numbers of maps, in any order and also repeated.
        """
        self._leave_to_parent()
        for number in sorted(set(numbers.tolist())):
            if number not in self._maps and number not in self._coming:
                if self._pool is None:
                    # One thread is enough: it only has to stay ahead of the episodes.
                    self._pool = ThreadPoolExecutor(1, "maps")
                self._coming[number] = self._pool.submit(self._made, number)

        # Drop the oldest of the maps that were made in advance and that no world has
        # used yet.
        while len(self._coming) > self._size:
            self._coming.pop(next(iter(self._coming))).cancel()

    def __getitem__(self, number: int) -> Map:
        """Return the map of a number; make it or wait for it if it does not exist.

        Parameters
        ----------
        number : int
            Number of the map.

        Raises
        ------
        ArgumentError
            The function did not return a scene, or the map has other boxes than the
            first map.
        """
        found = self._maps.pop(number, None)
        if found is None:
            self._leave_to_parent()
            coming = self._coming.pop(number, None)
            # An error in the other thread is raised here, in the call that needs the
            # map.
            found = self._made(number) if coming is None else coming.result()

        # A dictionary keeps the order of insertion, so the map used last stands last.
        self._maps[number] = found
        return found

    def spare(self, used: I8) -> list[int]:
        """Drop the least recently used maps, and return their numbers.

        `size` maps and the maps in `used` stay.

        Parameters
        ----------
        used : (n,) int64
            Numbers of the maps that worlds use.
        """
        excess = len(self._maps) - self._size
        if excess <= 0:
            return []
        still = set(used.tolist())
        # The order of the dictionary is the order of use, oldest first.
        gone = [number for number in self._maps if number not in still][:excess]
        for number in gone:
            del self._maps[number]
        return gone

    def _leave_to_parent(self) -> None:
        """Drop the thread and its tasks in a forked process.

        A fork has no copy of the thread, so the tasks would never finish.
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
        """Make a map, in any thread.

        Parameters
        ----------
        number : int
            Number of the map.

        Raises
        ------
        ArgumentError
            The function did not return a scene, or the map has other boxes than the
            first map.
        """
        # Code of the caller, which may return anything.
        scene = self._make(number)
        if not isinstance(scene, Scene):
            raise ArgumentError(
                f"scenes({number}): expected a Scene, found {arguments.found(scene)}"
            )

        if scene.floor is not None and scene.floor.fields:
            raise ArgumentError(
                f'scenes: the floor of the map "{scene.name}" has pheromone fields, '
                "which Worlds do not support; leave them out: "
                "dataclasses.replace(scene.floor, fields=())"
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
        """Return a grid without a workspace, and with shared arrays where possible.

        Each thread has its own workspace. Plain grids share the arrays of classes and
        laser returns.

        Parameters
        ----------
        grid : Grid
            Grid of a map; its arrays are not changed.
        """
        # A thousand maps of 1000 walls would otherwise hold two equal arrays each.
        count = len(grid.seg)
        if grid.plain:
            mask, bright = self._ordinary
            if len(mask) < count:
                # Twice as many, so that a slightly larger map needs no new arrays.
                mask, bright = self._ordinary = (
                    np.full(2 * count, Visible.ALL, np.uint16),
                    np.ones(2 * count, np.int16),
                )
                # Shared by all maps: a write would change every one.
                mask.flags.writeable = bright.flags.writeable = False

            grid = grid._replace(mask=mask[:count], bright=bright[:count])

        # Each thread has its own workspace, see `Workspace.pack`.
        return grid._replace(near=np.zeros(0, np.int32))


__all__ = ["Map", "Maps", "Scenes"]
