"""Operation that edits the map: walls and places (`EditMap`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.api.arguments import found, number
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, each, text
from botyard.control.site import Site
from botyard.errors import ArgumentError, NotNowError, UnknownNameError
from botyard.geometry import Pose
from botyard.model.scene import MAX_EXTENT_M, Place, Scene, SpecialWalls, check_extent
from botyard.names import shown
from botyard.sim.simulation import Simulation

MAX_WALLS: Final = 100_000
"""Largest number of walls and points of a map that is edited while the world runs.

The index of the walls is built between two steps.
"""
MAX_EDITED: Final = 1000
"""Largest number of walls, and of places, in one operation."""
MAX_PLACES: Final = 10_000
"""Largest number of places of a map."""
SAME_M: Final = 1e-3
"""Difference of coordinates up to which two walls are the same, m."""

Wall = tuple[float, float, float, float]


def _numbers(value: Any, what: str, count: int) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise ArgumentError(f"{what}: expected {count} numbers, found {found(value)}")
    return tuple(
        number(one, what, low=-MAX_EXTENT_M, high=MAX_EXTENT_M, unit="m")
        for one in value
    )


def _wall(value: Any, what: str, /) -> Wall:
    x0, y0, x1, y1 = _numbers(value, what, 4)
    return x0, y0, x1, y1


def _place(value: Any, what: str, /) -> Place:
    if isinstance(value, Place):
        return value
    raise ArgumentError(f"{what}: expected a Place, found {found(value)}")


@dataclass(frozen=True, kw_only=True)
class EditMap(Operation[None]):
    """Add and remove walls and places of the map; clients stay connected.

    Removals come first, so that a wall or a place can be moved by one operation.
    Movable objects keep their places, and stop.

    Parameters
    ----------
    add_walls, remove_walls : tuple of (x0, y0, x1, y1)
        Walls, m.
    add_places : tuple of Place
        Goals, docks and homes; one replaces the place of the same name.
    remove_places : tuple of str
        Names of places.
    """

    add_walls: tuple[Wall, ...] = argument(each(_wall, MAX_EDITED), ())
    remove_walls: tuple[Wall, ...] = argument(each(_wall, MAX_EDITED), ())
    add_places: tuple[Place, ...] = argument(each(_place, MAX_EDITED), ())
    remove_places: tuple[str, ...] = argument(each(text(200), MAX_EDITED), ())
    tells = "Pioneer clients sense the new walls; ROS and pages get the new map"

    def perform(self, control: Site, caller: Caller) -> None:
        """Edit the map.

        Raises
        ------
        NotNowError
            The map is too large to be edited while the world runs.
        UnknownNameError
            The map has no such wall or place.
        ArgumentError
            The walls are too far apart, or there are too many places.
        """
        sim = control.sim
        scene = sim.scene
        if len(scene.segments) + len(scene.points) > MAX_WALLS:
            raise NotNowError(
                f"the map has more than {MAX_WALLS} walls and points: edit its file"
            )
        kept = np.ones(len(scene.segments), bool)
        for wall in self.remove_walls:
            kept[_row_of(scene.segments, kept, wall)] = False
        places = list(scene.places)
        for name in self.remove_places:
            rows = [k for k, one in enumerate(places) if one.name == name]
            if not rows:
                raise UnknownNameError(f'the map has no place "{shown(name)}"')
            del places[rows[0]]
        new = {place.name: place for place in self.add_places}
        places = [one for one in places if not one.name or one.name not in new]
        places += self.add_places
        if len(places) > MAX_PLACES:
            raise ArgumentError(
                f"places: expected at most {MAX_PLACES}, found {len(places)}"
            )
        scene = without_walls(scene, kept)
        segments = scene.segments
        if self.add_walls:
            segments = np.concatenate([segments, np.array(self.add_walls)])
            check_extent(segments.reshape(-1, 2), "add_walls")
        edited = replace(scene, segments=segments, places=tuple(places))
        replace_static(sim, edited)


def _row_of(segments: NDArray[np.float64], kept: NDArray[np.bool_], wall: Wall) -> int:
    """Return the row of a wall, whose ends may be exchanged."""
    x0, y0, x1, y1 = wall
    same = (np.abs(segments - np.array(wall)) < SAME_M).all(axis=1)
    same |= (np.abs(segments - np.array([x1, y1, x0, y0])) < SAME_M).all(axis=1)
    rows = np.flatnonzero(same & kept)
    if not len(rows):
        raise UnknownNameError(
            f"the map has no wall from {x0:g}, {y0:g} to {x1:g}, {y1:g}"
        )
    return int(rows[0])


def without_walls(scene: Scene, kept: NDArray[np.bool_]) -> Scene:
    """Return a scene with a part of its walls.

    Parameters
    ----------
    scene : Scene
        The scene.
    kept : (n,) bool array
        Walls that stay.
    """
    if kept.all():
        return scene
    # For each row, the number of kept rows before it; a last entry counts all kept rows.
    number_of = np.concatenate([[0], np.cumsum(kept)]).tolist()

    def moved(walls: Sequence[SpecialWalls]) -> tuple[SpecialWalls, ...]:
        return tuple(
            replace(one, first=number_of[one.first], last=number_of[one.last])
            for one in walls
            if number_of[one.last] > number_of[one.first]
        )

    return replace(
        scene,
        segments=scene.segments[kept],
        special_walls=moved(scene.special_walls),
        # Rows that no longer outline their cells count as other walls.
        traced=tuple(
            replace(one, first=number_of[one.first], last=number_of[one.last])
            for one in scene.traced
        ),
    )


def replace_static(sim: Simulation, scene: Scene) -> None:
    """Replace the walls and places of the map; movable objects keep their places.

    Parameters
    ----------
    sim : Simulation
        The world.
    scene : Scene
        Scene with the new walls and places; its boxes and its floor are not used.
    """
    core = sim.core
    present, snapshot = core.scene, core.snapshot
    pose, rows = snapshot.state.pose, snapshot.rows
    boxes = tuple(
        replace(box, name=name, pose=Pose(*pose[rows[name]].tolist()))
        for name, box in zip(core.box_names, present.boxes, strict=True)
    )
    sim.replace_scene(replace(scene, boxes=boxes, floor=present.floor))


__all__ = ["MAX_WALLS", "EditMap", "replace_static", "without_walls"]
