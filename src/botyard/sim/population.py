"""Robots, boxes and the map of a simulation, which change between two steps."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.engine import commands as cmd
from botyard.engine.build import box_body, robot_body
from botyard.engine.layout import F8, Grid
from botyard.errors import ArgumentError, WorldError
from botyard.formats.base import Warn
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.library import load_laser
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene, check_extent
from botyard.names import MAX_NAME, body_name, check_name
from botyard.numerics.elementary import hypot
from botyard.sim.bodies import Bodies
from botyard.sim.freespace import AROUND_M, checked_clearance
from botyard.sim.journal import (
    AddBox,
    AddRobots,
    RemoveBox,
    RemoveRobots,
    ReplaceScene,
    Unserve,
)
from botyard.sim.placement import FreePlaces, on_trial
from botyard.sim.placement_warnings import doubtful_map, doubtful_places, to_warnings
from botyard.sim.probing import MAX_NEAR_WALLS, MAX_RANGE, MAX_WALL_REACH_M, Probe
from botyard.sim.programs import Controlling
from botyard.sim.robot import R, Robots

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike

MAX_FREE_POSES = 1_000_000
"""Highest number of free poses in one draw."""


class Population(Bodies, ABC, Generic[R]):
    """Robots and boxes of a simulation, free places for more, and the map.

    Parameters
    ----------
    warn : callable or None
        See `Simulation`.

    The other parameters are the parameters of `Core`.
    """

    _robots: Robots[R]

    def __init__(self, *args: Any, warn: Warn | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._robots = Robots[R]()
        self._unserved: set[str] = set()
        self._probe = Probe(self)
        self.warn_by(warn)
        self._warn_about_map()

    @abstractmethod
    def _make_robot(self, name: str, spec: RobotSpec, start: Pose) -> R:
        """Return a handle for a robot whose body exists."""

    @abstractmethod
    def _set_controller(
        self, robot: R, controller: Any, options: Mapping[str, Any]
    ) -> None:
        """Let a controller drive a robot."""

    @property
    def robots(self) -> Mapping[str, R]:
        """All robots by name, in order of creation."""
        return MappingProxyType(self._robots)

    def warn_by(self, warn: Warn | None) -> None:
        """Set the function that receives warnings; None: Python's `warnings`."""
        self._warn = warn if warn is not None else to_warnings

    # -- Robots

    def add_robot(
        self,
        model: str | Path | RobotSpec = "p3dx",
        name: str | None = None,
        *,
        pose: PoseLike | None = None,
        lasers: Sequence[str] | None = None,
        controller: Controlling | None = None,
        controller_options: Mapping[str, Any] = MappingProxyType({}),
    ) -> R:
        """Add a robot between two steps.

        Parameters
        ----------
        model : str, Path or RobotSpec
            Name of a model (`botyard models` lists them), a ``.toml`` or ``.p`` file, or a
            spec.
        name : str, optional
            Unique name, 1 to 64 printable characters. Default: the model's name, with a number
            if that is taken: ``p3dx``, ``p3dx_002``.
        pose : Pose or tuple, optional
            True pose x, y (m), th (rad). Default: the next free place at the map's home.
        lasers : sequence of str, optional
            Laser models in place of the model's own, mounted at its first laser, or at its
            centre.
        controller : str, class, function, optional
            Controller that drives the robot while no client does. See
            `botyard.Robot.set_controller`, also for its errors.
        controller_options : mapping
            Options of the controller by name. Without a controller they raise ArgumentError.

        Raises
        ------
        ModelError, ModelFileError
            Unknown model; a file with errors.
        WorldError
            The name is taken, or breaks the rule for names (`botyard.names`).
        ArgumentError
            The pose is not three finite numbers, or another argument is out of range or of
            another type.
        CommandError
            The pose is out of bounds.

        Warns
        -----
        PlacementWarning
            The robot starts in a wall, on something else, or far outside of the map.
        """
        spec = _equipped(model, lasers)
        start = self.next_places(spec, 1)[0] if pose is None else arguments.pose(pose)
        name = self.unique_name(spec.name) if name is None else name
        return self.add_robots(
            spec,
            [start],
            [name],
            controller=controller,
            controller_options=controller_options,
        )[0]

    def add_robots(
        self,
        model: str | Path | RobotSpec,
        poses: Sequence[PoseLike] | F8,
        names: Sequence[str] | None = None,
        *,
        lasers: Sequence[str] | None = None,
        controller: Controlling | None = None,
        controller_options: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[R]:
        """Add many robots of one model at once, between two steps.

        This is much faster than one by one. Nothing is added if an argument is wrong.

        Parameters
        ----------
        poses : (n, 3) array or sequence of poses
            True poses x, y (m), th (rad).
        names : sequence of str, optional
            Unique names. Default: the model's name with numbers.
        model, lasers, controller, controller_options
            See `add_robot`, also for errors.
        """
        spec = _equipped(model, lasers)
        starts = arguments.poses(poses)
        for start in starts:
            # All arguments are checked before the first change.
            cmd.check_pose(start)
        if names is None:
            names = self._unique_names(spec.name, len(starts))
        # A text is also a sequence: of one-letter names.
        elif isinstance(names, str) or len(names) != len(starts):
            n = arguments.found(names) if isinstance(names, str) else len(names)
            raise WorldError(
                f"names: expected one for each of {len(starts)} poses, found {n}"
            )

        for name in names:
            check_name(name)
        if not isinstance(controller_options, Mapping) or (
            controller_options and controller is None
        ):
            expected = (
                "names with values"
                if controller is not None
                else "a controller for them"
            )
            raise ArgumentError(
                f"controller_options: expected {expected}, found "
                f"{arguments.found(controller_options)}"
            )

        self._check_thread()
        # Handles of sensors note their rays; the entry below covers them.
        with self._journal:
            robots = self._insert_robots(spec, names, starts)
        self._note(None, AddRobots, spec, tuple(names), tuple(starts))
        if controller is not None:
            try:
                for robot in robots:
                    self._set_controller(robot, controller, controller_options)
            except BaseException:
                # A wrong controller leaves no robots behind.
                self.remove_robots(names)
                raise

        for doubt in doubtful_places(self._engine, names, _bounds(self.scene)):
            self._warn(doubt)
        return robots

    def _insert_robots(
        self, spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]
    ) -> list[R]:
        body = robot_body(spec, "")
        self._engine.add_bodies(
            [
                (replace(body, name=name), start)
                for name, start in zip(names, starts, strict=True)
            ]
        )
        try:
            robots = [
                self._make_robot(name, spec, start)
                for name, start in zip(names, starts, strict=True)
            ]
        except BaseException:
            # One of its devices cannot be made: undo the addition of the bodies.
            self._engine.remove_bodies(names)
            raise

        self._robots.update((robot.name, robot) for robot in robots)
        # Once more: at the engine's notice the bodies were not robots yet.
        self.feed.tell(Subject.BODIES)
        return robots

    def remove_robot(self, name: str) -> None:
        """Remove a robot between two steps.

        Raise UnknownNameError (a KeyError) if no robot has that name.
        """
        self.remove_robots([name])

    def remove_robots(self, names: Sequence[str]) -> None:
        """Remove many robots at once; much faster than one by one.

        Raises
        ------
        UnknownNameError
            A KeyError: a robot does not exist. None is removed then.
        """
        self._check_thread()
        # A text is also a sequence: of one-letter names.
        if isinstance(names, str):
            raise arguments.unknown([names], self._robots, "robot")
        for name in names:
            if not isinstance(name, str) or name not in self._robots:
                raise arguments.unknown(name, self._robots, "robot")

        self._note(None, RemoveRobots, tuple(names))
        self._remove_bodies(names)

    def _remove_bodies(self, names: Sequence[str]) -> None:
        self._engine.remove_bodies(names)
        for name in names:
            self._holds.pop(name, None)
            robot = self._robots.pop(name, None)
            self._unserved.discard(name)
            if robot is not None:
                # After the engine, which must still find the robot's devices.
                robot._leave()
            # Its sensors are gone, so that `end` could not unsubscribe.
            self._programs.drop(name)

        self.feed.tell(Subject.BODIES, Subject.CLAIMS)

    def unserve(self, names: Sequence[str]) -> None:
        """Hide robots from clients, so that only programs move them.

        Names of other bodies are ignored.
        """
        self._check_thread()
        names = [
            name
            for name in names
            if name in self._robots and name not in self._unserved
        ]
        if names:
            self._note(None, Unserve, tuple(names))
            self._unserved.update(names)
            self.feed.tell(Subject.SERVED)

    def is_served(self, name: str) -> bool:
        """Return whether a robot is offered to clients; see `unserve`."""
        return name not in self._unserved

    def _sort_robots(self, names: Sequence[str]) -> None:
        """Sort the robots into the order of these names."""
        robots = {name: self._robots[name] for name in names}
        self._robots.clear()
        self._robots.update(robots)

    # -- Map

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Replace the map between two steps (MAP-014).

        Robots keep their poses. Boxes of the old map are removed.

        Parameters
        ----------
        scene : Scene
            New map.
        grid : Grid, optional
            Result of `botyard.engine.build.build_grid` for the map, if it was already computed,
            for example in another thread.

        Raises
        ------
        ArgumentError
            `scene` is not a Scene.
        """
        self._check_thread()
        arguments.instance(
            scene, "scene", Scene, "botyard.load_scene(name) reads one from a file"
        )
        for name in self.box_names:
            self._holds.pop(name, None)
        self._engine.replace_scene(scene, grid)
        self._set_scene(scene)
        self.feed.tell(Subject.MAP, Subject.BODIES)
        self._note(None, ReplaceScene, scene)
        self._warn_about_map()

    def add_wall(self, *points: tuple[float, float]) -> None:
        """Add thin walls from point to point, x and y in m.

        Movable objects keep their places, and stop. The map is replaced, as by
        `replace_scene`. For many walls, build a map with all of them
        (`botyard.MapBuilder`).

        Raises
        ------
        ArgumentError
            There are fewer than two points, a point is not valid, or is farther than
            `botyard.model.scene.MAX_EXTENT_M` from the origin or from another one.
        """
        corners = arguments.array(points, "points", 2)
        check_extent(corners, "points")
        if len(corners) < 2:
            raise ArgumentError(f"points: expected at least two, found {len(corners)}")
        # Movable objects stay where they are now, not where the map has them.
        scene, state, rows = self.scene, self.snapshot.state, self.snapshot.rows
        segments = np.concatenate(
            [scene.segments, np.column_stack((corners[:-1], corners[1:]))]
        )
        boxes = tuple(
            replace(box, name=name, pose=Pose(*state.pose[rows[name]].tolist()))
            for name, box in zip(self.box_names, scene.boxes, strict=True)
        )
        self.replace_scene(replace(scene, segments=segments, boxes=boxes))

    def _warn_about_map(self) -> None:
        doubt = doubtful_map(self.scene, self._engine.grid)
        if doubt is not None:
            self._warn(doubt)

    def add_box(self, box: BoxObject, name: str | None = None) -> str:
        """Add a box to the map between two steps, and return its name.

        Parameters
        ----------
        box : BoxObject
            Box to add at its pose.
        name : str, optional
            Unique name, 1 to 64 printable characters. Default: the box's name, with a number if
            that is taken.

        Raises
        ------
        WorldError
            The name is taken, or breaks the rule for names (`botyard.names`).
        CommandError
            The pose is out of bounds.
        ArgumentError
            `box` is not a BoxObject.
        """
        self._check_thread()
        arguments.instance(box, "box", BoxObject)
        cmd.check_pose(box.pose)
        name = self.unique_name(body_name(box.name)) if name is None else name
        check_name(name)
        self._engine.add_bodies([(replace(box_body(box), name=name), box.pose)])
        self._set_boxes([*self.box_names, name], [*self.scene.boxes, box])
        self.feed.tell(Subject.BODIES)
        self._note(None, AddBox, name, box)
        return name

    def remove_box(self, name: str) -> None:
        """Remove a box of the map between two steps.

        Raise UnknownNameError (a KeyError) if no box has that name.
        """
        self._check_thread()
        if name not in self.box_names:
            raise arguments.unknown(name, self.box_names, "box")
        self._note(None, RemoveBox, name)
        self._engine.remove_box(name)
        self._holds.pop(name, None)
        self._set_scene(self._engine.scene)
        self.feed.tell(Subject.BODIES)

    def _set_boxes(self, names: Sequence[str], boxes: Sequence[BoxObject]) -> None:
        """Set the boxes of the map, whose bodies exist."""
        self._engine.box_names = tuple(names)
        self._engine.scene = replace(self.scene, boxes=tuple(boxes))
        self._set_scene(self._engine.scene)

    # -- Names and places for more

    def unique_name(self, base: str) -> str:
        """Return `base`, with a number appended if that name is taken (CLI-008).

        For example ``p3dx``, ``p3dx_002``.
        """
        return self._unique_names(base, 1)[0]

    def unique_names(self, base: str, count: int) -> list[str]:
        """Return `count` free names made of `base` and numbers."""
        return self._unique_names(base, count)

    def _unique_names(self, base: str, count: int) -> list[str]:
        names: list[str] = []
        n = 1
        while len(names) < count:
            end = "" if n == 1 else f"_{n:03d}"
            # The number must fit into the limit of names.
            name = base[: MAX_NAME - len(end)] + end
            # Names are unique among all bodies, not only among robots.
            if name not in self._engine.rows:
                names.append(name)
            n += 1

        return names

    @property
    def home(self) -> Pose:
        """Start pose of robots: the map's home, or its centre."""
        return self.scene.center if self.scene.start is None else self.scene.start

    def next_places(self, spec: RobotSpec, count: int) -> list[Pose]:
        """Return start poses of `count` more robots of a model.

        The first robot of all gets the map's home, the others the nearest free places.
        """
        # The first robot gets the home even if something is there, because the map
        # demands it.
        first = (
            [self.scene.start]
            if self.scene.start is not None and not self._robots and count
            else []
        )
        return first + self.free_places(spec, self.home, count - len(first))

    def free_place(self, spec: RobotSpec, near: Pose) -> Pose:
        """Return the nearest place, on a 1 m grid around `near`, without contact.

        Return `near` itself if there is none.
        """
        return self.free_places(spec, near, 1)[0]

    def free_places(self, spec: RobotSpec, near: Pose, count: int) -> list[Pose]:
        """Return the `count` places nearest to `near` for robots of a model.

        Places are on a 1 m grid around `near`. Robots there touch neither anything else
        nor each other. `near` itself fills missing places.
        """
        return FreePlaces(self._engine, spec, near).take(count)

    def is_free_for(self, robot: R) -> Callable[[Pose], bool]:
        """Return a function that tests a pose of a robot for contact with other things.

        It is valid until something moves, comes or goes.
        """
        row = self._engine.rows[robot.name]
        spec = replace(
            self._engine.specs[row], name=" placing ", parts=self._engine.outline(row)
        )
        return self._engine.trial(spec, without=[robot.name])

    def random_free_poses(
        self,
        n: int,
        clearance: float = 0.1,
        *,
        model: str | Path | RobotSpec = "p3dx",
        reachable: bool = True,
        index: int = 0,
    ) -> F8:
        """Draw `n` poses at which robots of a model, as circles, touch nothing.

        They do not touch each other either. Draws depend on the seed of the simulation
        and on `index`. Positions and headings are uniform in free space. Space known to
        be solid is not free: the inside of outlines traced from cells (`Scene.traced`),
        and squares of points. The inside of other closed walls is unknown.

        Places lie within the bounds of the walls, or of the boxes if there are no
        walls. They also lie around the walls if the world is open there, or if robots
        fit nowhere between walls. The margin is 5 m and the clearance, but ends at the
        raster from which the map was traced. An empty world has 20 m × 20 m around the
        origin.

        Parameters
        ----------
        n : int
            Number of poses.
        clearance : float
            Distance of the circles from walls, bodies and each other, m.
        model : str, Path or RobotSpec
            Robot model, as for `add_robot`.
        reachable : bool
            Whether all poses must be in one region, in which circles of the model get from each
            place to every other one, without the clearance. It is the region of the map's home
            (`scene.start`) if it is free and has room. Otherwise it is the largest region
            within the bounds of the walls. False: any region, also closed ones.
        index : int
            Number of the draw; another number gives other poses.

        Returns
        -------
        (n, 3) float64 array
            m, m, rad.

        Raises
        ------
        ArgumentError
            A parameter is out of range or of another type, or there is no room.
        ModelError, ModelFileError
            Unknown model; a file with errors.
        """
        n, index = (
            arguments.whole(n, "n", low=0, high=MAX_FREE_POSES),
            arguments.whole(index, "index", low=0, high=arguments.MAX_SEED),
        )
        clearance = checked_clearance(clearance)
        reachable = arguments.flag(reachable, "reachable")
        body = robot_body(_equipped(model, None), "")
        radius = max(hypot(x, y) for part in body.parts for x, y in part)
        return self._probe.free_poses(n, radius, clearance, reachable, index)

    def cast(
        self, xy: ArrayLike, bearing: ArrayLike, *, range_max: float, boxes: bool = True
    ) -> F8:
        """Return exact ranges from any places to the walls of the map, without robots.

        For mapping and particle filters.

        Parameters
        ----------
        xy : (…, 2) array
            Places, m.
        bearing : (…) array
            Directions in the world frame, rad; shapes are broadcast against each other.
        range_max : float
            Range returned if nothing is nearer, m.
        boxes : bool
            Whether boxes of the map are visible, at their present poses.

        Returns
        -------
        float64 array of the common shape
            Ranges, m.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of range or of another shape.
        """
        return self._probe.cast(
            xy,
            bearing,
            arguments.number(range_max, "range_max", low=0.0, high=MAX_RANGE, unit="m"),
            boxes=arguments.flag(boxes, "boxes"),
        )

    def near_walls(self, xy: ArrayLike, *, reach: float, count: int = 8) -> F8:
        """Return the walls nearest to places, for methods of collision avoidance.

        Only walls that stop robots count. Boxes are bodies, not walls.

        Parameters
        ----------
        xy : (…, 2) array
            Places, m.
        reach : float
            Greatest distance of a wall, m.
        count : int
            Number of walls, 1 … 64.

        Returns
        -------
        (…, count, 4) float64
            Ends of walls, x and y, m, nearest first; NaN fills missing walls.

        Raises
        ------
        ArgumentError
            An argument is not finite, out of range or of another shape.
        """
        reach = arguments.number(
            reach, "reach", low=0.0, high=MAX_WALL_REACH_M, unit="m"
        )
        return self._probe.near_walls(
            xy, reach, arguments.whole(count, "count", low=1, high=MAX_NEAR_WALLS)
        )

    def random_free_place(self, spec: RobotSpec, index: int = 0) -> Pose:
        """Draw a place within the bounds of the map at which a robot touches nothing.

        A world without a map has bounds of 20 m × 20 m. If the bounds are narrower than
        the robot, for example around a single straight wall, 5 m are added around them.

        Draws depend on the seed of the simulation and on `index`. Different robots get
        different places, and a run can be repeated.

        Raises
        ------
        WorldError
            No place was found in 10,000 tries.
        """
        x0, y0, x1, y1 = _bounds(self.scene) or (-10.0, -10.0, 10.0, 10.0)
        if min(x1 - x0, y1 - y0) <= 2.0 * spec.radius:
            x0, y0, x1, y1 = x0 - AROUND_M, y0 - AROUND_M, x1 + AROUND_M, y1 + AROUND_M
        # A text as seed is hashed with SHA-512: the same on every machine.
        draw = random.Random(f"{self.seed} start {index}")
        is_free = self._engine.trial(on_trial(spec))
        for _ in range(10_000):
            pose = Pose(
                draw.uniform(x0, x1),
                draw.uniform(y0, y1),
                draw.uniform(-math.pi, math.pi),
            )
            if is_free(pose):
                return pose

        raise WorldError("no free place for a robot was found in this map")


@lru_cache(maxsize=2)
def _bounds(scene: Scene) -> tuple[float, float, float, float] | None:
    """Return `Scene.bounds`, cached because it reads all walls."""
    return scene.bounds


def _equipped(model: str | Path | RobotSpec, lasers: Sequence[str] | None) -> RobotSpec:
    """Return the spec of a model, with other lasers if any are named."""
    if not isinstance(model, RobotSpec):
        if not isinstance(model, (str, Path)):
            raise ArgumentError(
                "model: expected a name, a file or a RobotSpec, found "
                f"{arguments.found(model)}"
            )

        model = find_robot(arguments.path(model, "model"))

    spec = model
    if lasers is None:
        return spec
    if (
        isinstance(lasers, str)
        or not isinstance(lasers, Sequence)
        or not all(isinstance(x, str) for x in lasers)
    ):
        hint = (
            f'; one laser is also a list: ["{lasers}"]'
            if isinstance(lasers, str)
            else ""
        )
        raise ArgumentError(
            "lasers: expected a list of names of laser models, found "
            f"{arguments.found(lasers)}{hint}"
        )

    mount = spec.lasers[0].pose if spec.lasers else Pose()
    return replace(spec, lasers=tuple(load_laser(t, pose=mount) for t in lasers))


__all__ = ["Population"]
