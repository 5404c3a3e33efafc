"""The maps of many worlds: which one an episode has, and where robots begin in it."""

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
from botyard.worlds.robot_sets import RobotSet, silent

Scenes = Scene | str | Path | Sequence[Scene | str | Path] | Callable[[int], Scene]


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A map.

    Attributes
    ----------
    scene, grid : Scene, Grid
        What stands in it.
    boxes : tuple of BodySpec
        Its boxes.
    """

    scene: Scene
    grid: Grid
    boxes: tuple[BodySpec, ...]
    _starts: dict[RobotSet, F8] = field(default_factory=dict)

    def starts(self, robot_set: RobotSet, sim: Simulation | None = None) -> F8:
        """Where its boxes begin, and the robots of a lineup when nobody says where, (b
        + m, 3): m, m, rad.

        `sim`: a simulation of the map without robots, if there is one; they are added
        to it.
        """
        found = self._starts.get(robot_set)
        if found is None:
            sim = Simulation(self.scene, warn=silent) if sim is None else sim
            starts = [
                *(box.pose for box in self.scene.boxes),
                *(sim.add_robot(spec).start for spec in robot_set.robots),
            ]
            found = self._starts[robot_set] = np.array(starts, np.float64).reshape(
                -1, 3
            )

        return found

    def space(
        self, robot_set: RobotSet, clearance: float, *, reachable: bool
    ) -> Pack[Spaces]:
        """Free space for the bodies of a lineup; see
        `botyard.sim.freespace.free_space`.
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
    """The maps of a batch of worlds, by number. Those that are needed next are made by
    a thread.

    Parameters
    ----------
    scenes : Scene, str, Path, sequence of them, or callable
        One map, several, or a function that makes the map of a number.
    size : int
        So many maps are kept that no world is in; of a function so many maps are used
        at a time.
    boxes : sequence of BoxObject
        Boxes that stand in all maps, beside those of the map.

    Raises
    ------
    ArgumentError
        `scenes` is something else, or there is none.
    """

    def __init__(
        self, scenes: Scenes, size: int, boxes: Sequence[BoxObject] = ()
    ) -> None:
        self.robot_set: RobotSet | None = None
        """The usual robots: that thread finds out where they begin, too."""
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
        """Whether each map that an episode may have is made."""
        return len(self._maps) == self.count

    @property
    def are_many(self) -> bool:
        """Whether there are more than `size`, so that `spare` may forget some."""
        return len(self._maps) > self._size

    def numbers(self, seeds: U8, episodes: I8) -> I8:
        """Numbers of the maps of episodes, (n,), of worlds with these seeds.

        Of several maps one is drawn. Of a function's, `size` are used in the first
        `size` episodes of each world, the next `size` then, and so on.
        """
        numbers = np.zeros(len(seeds), np.int64)
        if self.count != 1:
            draw_numbers(
                seeds, episodes, MAP_STREAM, self.count or 0, self._size, numbers
            )

        return numbers

    def prepare(self, numbers: I8) -> None:
        """Let a thread make these maps, unless they are there."""
        self._leave_to_parent()
        for number in sorted(set(numbers.tolist())):
            if number not in self._maps and number not in self._coming:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(1, "maps")
                self._coming[number] = self._pool.submit(self._made, number)

        while len(self._coming) > self._size:  # nobody came for the first ones
            self._coming.pop(next(iter(self._coming))).cancel()

    def __getitem__(self, number: int) -> Map:
        """The map of a number; made now, or waited for, if it is not there."""
        found = self._maps.pop(number, None)
        if found is None:
            self._leave_to_parent()
            coming = self._coming.pop(number, None)
            found = self._made(number) if coming is None else coming.result()

        # the last one: it was used most recently
        self._maps[number] = found
        return found

    def spare(self, used: I8) -> list[int]:
        """Forget the least recently used maps, all but `size` and those in `used`;
        their numbers.
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
        """In a process that was forked: there is no thread, and nobody makes what was
        asked for before.
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
        sim = Simulation(scene, warn=silent)
        boxes = tuple(sim.engine.specs)
        if self._boxes is None:
            self._boxes = boxes
        elif boxes != self._boxes:
            raise ArgumentError(
                f'scenes: the boxes of the map "{scene.name}" are others than those of the first one; in Worlds all maps have '
                "the same boxes, at any poses"
            )

        made = Map(scene, self._sharing(sim.engine.grid), boxes)
        if self.robot_set is not None:
            made.starts(self.robot_set, sim)
        return made

    def _sharing(self, grid: Grid) -> Grid:
        """A grid without what all maps have in common: its workspace, which threads
        have, and, if it is plain, classes and returns.
        """
        count = len(grid.seg)
        if grid.plain:
            mask, bright = self._ordinary
            if len(mask) < count:
                mask, bright = self._ordinary = (
                    np.full(2 * count, Visible.ALL, np.uint16),
                    np.ones(2 * count, np.int16),
                )
                mask.flags.writeable = bright.flags.writeable = False

            grid = grid._replace(mask=mask[:count], bright=bright[:count])

        return grid._replace(near=np.zeros(0, np.int32))


__all__ = ["Map", "Maps", "Scenes"]
