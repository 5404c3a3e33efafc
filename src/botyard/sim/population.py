"""Robots, boxes and the map of a simulation, which change between two steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.engine import commands as cmd
from botyard.engine.bodyspec import box_body
from botyard.engine.layout import F8, Grid
from botyard.errors import ArgumentError, WorldError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.library import load_laser
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene, check_extent
from botyard.model.trailers import trailer_name, trailer_poses
from botyard.names import body_name, check_name
from botyard.numerics.elementary import hypot
from botyard.sim.bodies import Bodies
from botyard.sim.floorview import FloorView
from botyard.sim.freespace import checked_clearance
from botyard.sim.journal import AddBox, AddRobots, RemoveBox
from botyard.sim.placement import on_trial
from botyard.sim.placement_warnings import doubtful_fields, doubtful_places
from botyard.sim.places import bounds_of
from botyard.sim.probing import MAX_NEAR_WALLS, MAX_RANGE, MAX_WALL_REACH_M, Probe
from botyard.sim.programs import Controlling
from botyard.sim.robot import R
from botyard.sim.simulationcore import SimulationCore

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike

MAX_FREE_POSES = 1_000_000
"""Highest number of free poses in one draw."""


class Population(Bodies, Generic[R]):
    """Robots and boxes of a simulation, free places for more, and the map."""

    def __init__(self, core: SimulationCore) -> None:
        super().__init__(core)
        self._probe = Probe(core)

    @property
    def robots(self) -> Mapping[str, R]:
        """All robots by name, in order of creation."""
        return MappingProxyType(self.core.robots)

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
            Laser models in place of the model's own, mounted at the pose of its first laser, or
            at its centre without a laser.
        controller : str, class, function, optional
            Controller that drives the robot while no client does. See
            `botyard.Robot.set_controller`, also for its errors.
        controller_options : mapping
            Options of the controller by name. Without a controller they raise ArgumentError.

        Raises
        ------
        ModelError, ModelFileError
            The model is unknown, or its file has errors.
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
            The robot starts in a wall, on something else, or far outside of the map, or a
            device of it has a pheromone that the floor does not have.
        """
        core, spec = self.core, _equipped(model, lasers)
        start = core.places.next(spec, 1)[0] if pose is None else arguments.pose(pose)
        name = core.unique_name(spec.name) if name is None else name
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
        trailers: bool = True,
    ) -> list[R]:
        """Add many robots of one model in one call, between two steps.

        This is much faster than separate calls of `add_robot`. Nothing is added if an
        argument is wrong. The trailers of a model are robots without a drive, in a straight
        line behind it, which clients cannot claim.

        Parameters
        ----------
        poses : (n, 3) array or sequence of poses
            True poses x, y (m), th (rad).
        names : sequence of str, optional
            Unique names. Default: the model's name with numbers.
        trailers : bool
            Whether the trailers of the model are added as well.
        model, lasers, controller, controller_options
            See `add_robot`, also for errors.
        """
        core = self.core
        spec = _equipped(model, lasers)
        starts = arguments.poses(poses)
        for start in starts:
            # All arguments are checked before the first change.
            cmd.check_pose(start)
        if names is None:
            names = core.unique_names(spec.name, len(starts))
        # A text is also a sequence: of one-letter names.
        elif isinstance(names, str) or len(names) != len(starts):
            n = arguments.found(names) if isinstance(names, str) else len(names)
            raise WorldError(
                f"names: expected one for each of {len(starts)} poses, found {n}"
            )

        for name in names:
            check_name(name)
        behind = _behind(spec, names, starts) if trailers else []
        for one in behind:
            for name in one.names:
                if name in core.engine.rows:
                    raise WorldError(
                        f'a body named "{name}" already exists; a trailer needs this name'
                    )
        if controller_options and controller is None:
            raise ArgumentError(
                "controller: expected the controller of these controller_options, "
                "found None"
            )
        if not isinstance(controller_options, Mapping):
            raise ArgumentError(
                "controller_options: expected names with values, found "
                f"{arguments.found(controller_options)}"
            )

        core.check_thread()
        # Handles of sensors record their rays, which the entry below includes.
        with core.journal:
            robots = core.insert_robots(spec, names, starts)
        core.note(None, AddRobots, spec, tuple(names), tuple(starts))
        for one in behind:
            core.insert_robots(one.spec, one.names, one.starts)
            core.note(None, AddRobots, one.spec, tuple(one.names), tuple(one.starts))
            core.unserve(one.names)
        if controller is not None:
            try:
                for robot in robots:
                    robot.set_controller(controller, **controller_options)
            except BaseException:
                # A wrong controller leaves no robots behind.
                self.remove_robots(names)
                raise

        placed = [*names, *(name for one in behind for name in one.names)]
        for doubt in doubtful_places(core.engine, placed, bounds_of(core.scene)):
            core.warn(doubt)
        if names:
            for doubt in doubtful_fields(spec, names, core.scene.floor):
                core.warn(doubt)
        return robots

    def remove_robot(self, name: str) -> None:
        """Remove a robot between two steps.

        Its handle and the handles of its sensors raise UnknownNameError from then on.

        Raises
        ------
        UnknownNameError
            A KeyError: no robot has that name.
        """
        self.remove_robots([name])

    def remove_robots(self, names: Sequence[str]) -> None:
        """Remove many robots in one call, which is much faster than one call for each.

        Raises
        ------
        UnknownNameError
            A KeyError: a robot does not exist. In this case, no robot is removed.
        """
        core = self.core
        core.check_thread()
        # A text is also a sequence: of one-letter names.
        if isinstance(names, str):
            raise arguments.unknown([names], core.robots, "robot")
        for name in names:
            if not isinstance(name, str) or name not in core.robots:
                raise arguments.unknown(name, core.robots, "robot")

        # Trailers leave with the robot that pulls them.
        trailers = [one for name in names for one in core.engine.trailers_of(name)]
        core.remove_robots([*dict.fromkeys([*names, *trailers])])

    # -- Map

    @property
    def floor(self) -> FloorView:
        """The floor: colours, zones, and pheromone fields to read and write."""
        return self.core.floor

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Replace the map between two steps (MAP-014).

        Robots keep their poses. Boxes of the old map are removed.

        Parameters
        ----------
        scene : Scene
            New map.
        grid : Grid, optional
            Result of `botyard.engine.wallgrid.build_grid` for the map, if it was already computed,
            for example in another thread.

        Raises
        ------
        ArgumentError
            `scene` is not a Scene.
        """
        self.core.check_thread()
        arguments.instance(
            scene, "scene", Scene, "botyard.load_scene(name) reads one from a file"
        )
        self.core.replace_scene(scene, grid)

    def add_wall(self, *points: tuple[float, float]) -> None:
        """Add thin walls from point to point, x and y in m.

        Movable objects keep their places, and stop. The map is replaced, as by
        `replace_scene`. For many walls, build a map with all of them
        (`botyard.MapBuilder`).

        Parameters
        ----------
        *points : tuple of float
            Corners x, y of a polyline in the frame of the map, m. Each pair of
            successive corners is a wall; a closed outline repeats its first corner at
            the end.

        Raises
        ------
        ArgumentError
            There are fewer than two points, a point is not valid, or is farther than
            `botyard.model.scene.MAX_EXTENT_M` from the origin or from another one.
        """
        core = self.core
        corners = arguments.array(points, "points", 2)
        check_extent(corners, "points")
        if len(corners) < 2:
            raise ArgumentError(f"points: expected at least two, found {len(corners)}")
        # Movable objects stay where they are now, not where the map has them.
        scene, snapshot = core.scene, core.snapshot
        state, rows = snapshot.state, snapshot.rows
        segments = np.concatenate(
            [scene.segments, np.column_stack((corners[:-1], corners[1:]))]
        )
        boxes = tuple(
            replace(box, name=name, pose=Pose(*state.pose[rows[name]].tolist()))
            for name, box in zip(core.box_names, scene.boxes, strict=True)
        )
        self.replace_scene(replace(scene, segments=segments, boxes=boxes))

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
        core = self.core
        core.check_thread()
        arguments.instance(box, "box", BoxObject)
        cmd.check_pose(box.pose)
        name = core.unique_name(body_name(box.name)) if name is None else name
        check_name(name)
        core.engine.add_bodies([(replace(box_body(box), name=name), box.pose)])
        core.set_boxes([*core.box_names, name], [*core.scene.boxes, box])
        core.feed.record_change(Subject.BODIES)
        core.note(None, AddBox, name, box)
        return name

    def remove_box(self, name: str) -> None:
        """Remove a box of the map between two steps.

        Parameters
        ----------
        name : str
            Name of the box's body, as `add_box` returned it.

        Raises
        ------
        UnknownNameError
            A KeyError: no box has that name.
        """
        core = self.core
        core.check_thread()
        if name not in core.box_names:
            raise arguments.unknown(name, core.box_names, "box")
        core.note(None, RemoveBox, name)
        core.engine.remove_box(name)
        core.holds.pop(name, None)
        core.scene = core.engine.scene
        core.feed.record_change(Subject.BODIES)

    # -- Queries of the map

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
        fit nowhere between walls. The margin is 5 m plus the clearance, but ends at the
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
            (`scene.start`) if the home is free and the region has room. Otherwise it is the
            largest region within the bounds of the walls. False: any region, also closed ones.
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
            The model is unknown, or its file has errors.
        """
        n, index = (
            arguments.whole(n, "n", low=0, high=MAX_FREE_POSES),
            arguments.whole(index, "index", low=0, high=arguments.MAX_SEED),
        )
        clearance = checked_clearance(clearance)
        reachable = arguments.flag(reachable, "reachable")
        body = on_trial(_equipped(model, None))
        radius = max(hypot(x, y) for part in body.parts for x, y in part)
        return self._probe.free_poses(n, radius, clearance, reachable, index)

    def cast(
        self, xy: ArrayLike, bearing: ArrayLike, *, range_max: float, boxes: bool = True
    ) -> F8:
        """Return exact ranges from any places to the walls of the map, without robots.

        The method serves mapping and particle filters.

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


class _Behind(NamedTuple):
    """Trailers with one number, behind several robots of a model."""

    spec: RobotSpec
    names: list[str]
    starts: list[Pose]


def _behind(
    spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]
) -> list[_Behind]:
    """Return the trailers of robots of one model, by number."""
    poses = [trailer_poses(spec.trailers, start) for start in starts]
    return [
        _Behind(
            spec.trailer_spec(k + 1),
            [trailer_name(name, k + 1) for name in names],
            [one[k] for one in poses],
        )
        for k in range(len(spec.trailers))
    ]


def _equipped(model: str | Path | RobotSpec, lasers: Sequence[str] | None) -> RobotSpec:
    """Return the model of a robot, with other lasers if any are named.

    Parameters
    ----------
    model : str, Path or RobotSpec
        As for `Population.add_robot`.
    lasers : sequence of str or None
        Laser models that replace the lasers of the model. All have the pose of its
        first laser, or the robot's origin if it has none. None: keep the model's own.

    Raises
    ------
    ModelError, ModelFileError
        The model is unknown, or its file has errors.
    ArgumentError
        `model` or `lasers` is of another type.
    """
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
