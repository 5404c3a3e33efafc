"""The public API of botyard: a world with robots in it, to be stepped, commanded and read from Python.

    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    while sim.time < 10:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

Everything is in SI units and REP-103 axes. Joins engine and devices; knows no protocol, but `Robot.port` gives a session what it needs
(`botyard.model.robotport.RobotPort`).
"""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from botyard import arguments
from botyard.devices.battery import Batteries
from botyard.devices.electrics import Boards
from botyard.devices.gripper import Grippers
from botyard.devices.joints import Joint, Joints, joint_key
from botyard.devices.ranging import RangeDevices
from botyard.devices.rays import RaySensor
from botyard.engine import commands as cmd
from botyard.engine.build import crowding, robot_body
from botyard.engine.layout import F8, Control, Grid, OdometryErrorMode
from botyard.engine.rng import DEFAULT_SEED
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.engine.tables import NOBODY
from botyard.errors import ArgumentError, DoubtWarning, WorldError
from botyard.extensions import extension
from botyard.feed import SAVED, Subject
from botyard.formats import saving
from botyard.formats.base import Options, Warn
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.formats.registry import load_world
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.library import load_laser
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import THING, PlacedRobot, Program, Settings, World
from botyard.names import MAX_NAME, body_name, check_name
from botyard.sim.fleet import Fleet
from botyard.sim.journal import (
    AddRobots,
    Attach,
    Describe,
    Detach,
    RemoveBox,
    RemoveRobots,
    ReplaceScene,
    Restore,
    SetDynamics,
    Settle,
    Unserve,
)
from botyard.sim.placement import FreePlaces, on_trial
from botyard.sim.port import Port
from botyard.sim.robot import BaseRobot, Robots
from botyard.sim.state import Known, Restorable, clone, digest, parts, rebuild, restore, save

if TYPE_CHECKING:
    from PIL.Image import Image

FAR_OUTSIDE = 100.0
"""A robot that begins farther outside of the map's bounds than this, m, gets a warning."""
MAX_CROWDING = 50.0
"""Average number of walls in an occupied cell of the grid beyond which there is a warning: rays are slow then (four are usual)."""
MAX_WARNED_ROBOTS = 5
"""Robots named in warnings of one kind; of others only the number is given."""
MAX_THREADS = 1024
"""Threads that can be asked for."""
MAX_PLACED_ONE_BY_ONE = 50
"""Places of more large robots than this are found together, which is faster and leaves a little more room between them."""


class Robot(BaseRobot):
    """A robot in a simulation: commands in, readings out. Made by `Simulation.add_robot`.

    Drive it: ``robot.command(v=0.3, w=0.1)``, ``command.move``, ``turn_to``, ``turn_by``, ``stop``, ``set_pose``; see `Commands`. All
    commands take effect at the beginning of the next `Simulation.step`.

    Read it:

    ================  ==================================================================================
    `laser`           the first laser: ``robot.laser.read()`` gives a scan, ``robot.laser.ranges`` its ranges, m
    `lasers`          all of them
    `sonar`           the sonar ring, or None: ``robot.sonar.ranges``, m
    `odom`            pose by odometry, with its errors, in a frame that begins where the robot started (OdomPose)
    `truth`           true pose in the world's frame (WorldPose); `odom_in_world` compares with it
    `velocity`        in the robot's own frame: m/s forward and to the left, rad/s
    `stalled`         whether something blocks its way
    `devices`         all that it carries by their names: ``robot.devices["fiducial_finder"].read()``
    `gps`, `gripper_state`, `digital_inputs`, `electrics`
                      what else it carries; None where the model has none
    `state`           everything about its motion at once; `describe` says it in words
    ================  ==================================================================================

    `name`, `spec` and `start` say what it is and where it began. `claim`, `release`, `port` and `clients` are for interfaces that drive it.
    After it was removed from its simulation, each use of the handle says so (UnknownNameError).
    """

    _sim: Simulation

    @property
    def simulation(self) -> Simulation:
        """The world that it is in."""
        self._sim.tick  # noqa: B018 - raises when it was removed
        return self._sim

    def port(self, source: str) -> Port:
        """The access of a protocol session to this robot; `source` names the session in the order of commands and in logs."""
        return Port(self, source, self._sim.fleet)


class Simulation(Restorable):
    """A world and its robots.

    Build it (`load`, or `Simulation()` and a scene), add robots (`add_robot`, `add_robots`), then in turns: read (`Robot.laser`,
    `Robot.odom`, `fleet` for all at once), command (`Robot.command`, `Fleet.command`), `step`. `render` draws it.

    Parameters
    ----------
    scene : Scene, optional
        The static world; without it, an empty plane.
    seed : int
        Seed of all random draws; the same seed and the same commands give the same run, bit for bit.
    step : float
        Simulated time of one step, s (whole microseconds).
    odometry_error : str
        ``random_each_update``, ``random_init``, ``constant`` or ``none``: when odometry errors are drawn.
    sensor_noise : bool
        False: sensors are exact.
    threads : int
        Threads that ray casting may use; results are the same for any number.
    range_step : float
        Ranges are rounded to multiples of this, m; 0: exact.
    begin : int
        Initial number of steps done: time begins there.
    warn : callable, optional
        Receives a line for what is possible but probably a mistake, such as a robot that begins in a wall; without it, `warnings` do.

    Raises
    ------
    ArgumentError
        A parameter is out of its range or of another type.
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "scene": "call replace_scene(scene) to put another map under the robots",
        "robots": "call add_robot or remove_robot",
        "fleet": "call fleet.command, add_robots or remove_robots",
        "poses": "call put(name, pose) for each",
        "time": "call step()",
        "tick": "call step()",
        "dt": "the step is said when the simulation is made: Simulation(step=…)",
        "seed": "the seed is said when the simulation is made: Simulation(seed=…)",
        "sensor_noise": "it is said when the simulation is made: Simulation(sensor_noise=…)",
        "step": "call step(), and say its time when the simulation is made: Simulation(step=…)",
        "snapshot": "call step() or settle()",
        "colors": "a robot's model says its colour",
    }
    fleet: Fleet
    """All robots at once, as arrays."""
    _robots: Robots[Robot]

    def __init__(
        self,
        scene: Scene | None = None,
        *,
        seed: int = DEFAULT_SEED,
        step: float = 0.1,
        odometry_error: str = "random_each_update",
        sensor_noise: bool = True,
        threads: int = 1,
        range_step: float = 0.0,
        begin: int = 0,
        warn: Warn | None = None,
    ) -> None:
        if scene is not None:
            arguments.instance(scene, "scene", Scene, "Simulation.load(name) reads a map of a file")
        seed = arguments.seed(seed)
        step = arguments.number(step, "step", low=1e-6, high=60.0, unit="s")
        sensor_noise = arguments.flag(sensor_noise, "sensor_noise")
        threads = arguments.whole(threads, "threads", low=1, high=MAX_THREADS)
        range_step = arguments.number(range_step, "range_step", low=0.0, unit="m")
        begin = arguments.whole(begin, "begin", low=0)
        arguments.instance(odometry_error, "odometry_error", str)
        try:
            mode = OdometryErrorMode[odometry_error.upper()]
            if mode is OdometryErrorMode.PERFECT:
                raise KeyError(odometry_error)
        except KeyError:
            known = ", ".join(m.name.lower() for m in OdometryErrorMode if m is not OdometryErrorMode.PERFECT)
            raise WorldError(f'odometry error mode: expected one of {known}, found "{odometry_error}"') from None
        scene = scene if scene is not None else Scene()
        devices = RangeDevices(threads)
        engine = Engine(
            scene,
            seed=seed,
            step_us=round(step * 1e6),
            begin=begin,
            odometry_error_mode=mode,
            tables=(Grippers(), Joints(), Batteries(), Boards()),
            senses=(devices,),
        )
        super().__init__(scene, engine, devices, sensor_noise=sensor_noise, range_step=range_step)
        self.warn_by(warn)
        self._doubt_walls()
        self._robots = Robots[Robot]()
        object.__setattr__(self, "fleet", Fleet(self))
        self._unserved = set()
        self._known = Known()
        self._programs = {}
        self._before = []
        self.described = Described()
        """Joints and sensors of description files."""
        self.rays: dict[str, RaySensor] = {}
        """Ray sensors of description files, by their names."""

    @classmethod
    def load(
        cls,
        map: str | Path,
        *,
        seed: int | None = None,
        step: float | None = None,
        odometry_error: str | None = None,
        sensor_noise: bool | None = None,
        threads: int | None = None,
        range_step: float = 0.0,
        resolution: float | None = None,
        warn: Warn | None = None,
        budget: Budget = Budget(),
    ) -> Simulation:
        """A simulation of a map, a world file or a scenario, or of a map of the package by its name (``office``, ``warehouse``).

        The robots of a world file are in it, and the programs that drive them run.

        Parameters
        ----------
        resolution : float, optional
            Size of a map point, a pixel, a cell or a unit of a drawing whose file does not give it, m.
        warn : callable, optional
            Receives a line for everything in the file that was skipped, doubtful or assumed, and later the warnings of `Simulation`.
        budget : Budget
            Limits of what is read; ``Budget(cells=10**9)`` raises that one.

        The other parameters are those of `Simulation`; their defaults are what the file says.

        Raises
        ------
        FormatError
            No such file, or it is wrong or too large; with file and line.
        ArgumentError
            A parameter is out of its range or of another type.
        """
        arguments.path(map, "map")
        if resolution is not None:
            resolution = arguments.number(resolution, "resolution", low=0.0, above=True, unit="m")
        arguments.instance(budget, "budget", Budget, "botyard.formats.budget.Budget(cells=10**9) is one")
        options = Options(resolution=resolution, is_program=is_controller, budget=budget)
        world = load_world(map, options if warn is None else replace(options, warn=warn))
        given: dict[str, Any] = {
            "seed": seed, "step": step, "odometry_error": odometry_error, "sensor_noise": sensor_noise, "threads": threads,
        }  # fmt: skip
        settings: dict[str, Any] = {k: getattr(world.settings, k) if v is None else v for k, v in given.items()}
        sim = cls(world.scene, range_step=range_step, warn=warn, **{k: v for k, v in settings.items() if v is not None})
        sim.populate(world)
        return sim

    def populate(self, world: World) -> list[Robot]:
        """Add the robots of a world, with the programs that drive them; its scene is ignored.

        Raises
        ------
        WorldError, CommandError
            A name is taken, a pose is out of bounds, a program does not know an option.
        """
        robots: list[Robot] = []
        for _, several in groupby(world.robots, key=lambda p: (id(p.spec), p.pose is None, not p.name)):
            group = list(several)
            poses = [p.pose for p in group if p.pose is not None]
            if poses and group[0].name:  # many at once are much faster than one by one
                robots += self.add_robots(group[0].spec, poses, [p.name for p in group])
            elif not poses and len(group) > 1:
                robots += self._add_at_home(group)
            else:
                robots += [self.add_robot(p.spec, p.name or None, pose=p.pose) for p in group]
        self.unserve([r.name for r, placed in zip(robots, world.robots, strict=True) if not placed.served])
        for robot, placed in zip(
            robots, world.robots, strict=True
        ):  # after all were added: options of one may name another
            if placed.program is not None:
                employ(robot, placed.program)
        return robots

    def unserve(self, names: Sequence[str]) -> None:
        """Do not offer these robots to clients: only programs move them. Names of others are ignored."""
        self._check_thread()
        names = [name for name in names if name in self._robots and name not in self._unserved]
        if names:
            self._note(None, Unserve, tuple(names))
            self._unserved.update(names)
            self.feed.tell(Subject.SERVED)

    def is_served(self, name: str) -> bool:
        """Whether a robot is offered to clients; see `unserve`."""
        return name not in self._unserved

    def _add_at_home(self, group: Sequence[PlacedRobot]) -> list[Robot]:
        """Add robots of one model on free places around the map's home: as `add_robot` does one by one, but faster."""
        spec, names = group[0].spec, [p.name for p in group if p.name] or None
        first = self.add_robot(spec, names and names[0])
        places = FreePlaces(self._engine, spec, self.home)
        if not places.is_exact and len(group) <= MAX_PLACED_ONE_BY_ONE:
            return [first, *(self.add_robot(p.spec, p.name or None) for p in group[1:])]
        return [first, *self.add_robots(spec, places.take(len(group) - 1), names and names[1:])]

    def world(self) -> World:
        """The present world, to be saved as a scenario: what is in it and where, seed and step; without velocities and commands."""
        state, rows = self.snapshot.state, self.snapshot.rows

        def pose(name: str) -> Pose:
            return Pose(*state.pose[rows[name]].tolist())

        boxes = tuple(
            replace(box, name=box.name if name == body_name(box.name) else name, pose=pose(name))
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        )
        robots = tuple(
            PlacedRobot(
                spec=robot.spec,
                name=name,
                pose=pose(name),
                program=self._programs[name][0] if name in self._programs else None,
                served=robot.spec.name != THING and name not in self._unserved,
            )
            for name, robot in self._robots.items()
        )
        settings = Settings(
            seed=self.seed,
            step=self.dt,
            odometry_error=self._engine.odometry_error_mode.name.lower(),
            sensor_noise=self.sensor_noise,
            threads=self._devices.threads,
        )
        beside = []
        if self.described.joints or self.described.sensors:
            beside = [
                f"{len(self.described.joints)} joints and {len(self.described.sensors)} sensors of description files are left out; "
                "their bodies are written as obstacles"
            ]
        scene = replace(self.scene, boxes=boxes)
        return World(scene=scene, robots=robots, settings=settings, beside=tuple(beside))

    def save_scenario(self, path: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the present world as a scenario (YAML). Returns lines about what the file cannot hold.

        A map that is unchanged since it was read is referred to; another one is written beside the scenario, and replaces no file but the
        map that the same scenario had before.

        Parameters
        ----------
        path : str or Path
            The file.
        overwrite : bool
            Replace the file even if botyard did not write it.

        Raises
        ------
        KeptFileError
            There is a file that botyard did not write.
        WorldFileError
            It cannot be written.
        """
        return saving.save(self.world(), arguments.path(path, "path"), overwrite=arguments.flag(overwrite, "overwrite"))

    # -- robots

    def add_robot(
        self,
        model: str | Path | RobotSpec = "p3dx",
        name: str | None = None,
        *,
        pose: Pose | tuple[float, float, float] | None = None,
        lasers: Sequence[str] | None = None,
    ) -> Robot:
        """Add a robot, between two steps.

        Parameters
        ----------
        model : str, Path or RobotSpec
            Model by name (`botyard models` lists them), a ``.toml`` or ``.p`` file, or a spec.
        name : str, optional
            Unique name, 1 to 64 printable characters; else the model's, with a number if that is taken: ``p3dx``, ``p3dx_002``.
        pose : Pose or tuple, optional
            True pose x, y (m), th (rad); else the next free place at the map's home.
        lasers : sequence of str, optional
            Laser models instead of the model's own, mounted where its first laser is, or at its centre.

        Raises
        ------
        ModelError, ModelFileError
            Unknown model; a file that is wrong.
        WorldError
            The name is taken, or breaks the rule for names (`botyard.names`).
        ArgumentError
            The pose is not three finite numbers, or another argument is out of its range or of another type.
        CommandError
            The pose is out of bounds.

        Warns
        -----
        DoubtWarning
            It begins in a wall, on something else, or far outside of the map.
        """
        spec = _equipped(model, lasers)
        start = self.next_places(spec, 1)[0] if pose is None else arguments.pose(pose)
        name = self.unique_name(spec.name) if name is None else name
        return self.add_robots(spec, [start], [name])[0]

    def add_robots(
        self,
        model: str | Path | RobotSpec,
        poses: Sequence[Pose | tuple[float, float, float]] | F8,
        names: Sequence[str] | None = None,
        *,
        lasers: Sequence[str] | None = None,
    ) -> list[Robot]:
        """Add many robots of one model at once, between two steps; much faster than one by one.

        Parameters
        ----------
        poses : (n, 3) array or sequence of poses
            True poses x, y (m), th (rad).
        names : sequence of str, optional
            Unique names; else the model's with numbers.
        model, lasers
            As for `add_robot`, which also lists what is raised. Nothing is added if anything is wrong.
        """
        spec = _equipped(model, lasers)
        starts = arguments.poses(poses)
        for start in starts:
            cmd.check_pose(start)
        if names is None:
            names = self._unique_names(spec.name, len(starts))
        elif isinstance(names, str) or len(names) != len(starts):
            n = arguments.found(names) if isinstance(names, str) else len(names)
            raise WorldError(f"names: expected one for each of {len(starts)} poses, found {n}")
        for name in names:
            check_name(name)
        self._check_thread()
        with self._journal:
            robots = self._put_in(spec, names, starts)
        self._note(None, AddRobots, spec, tuple(names), tuple(starts))
        self._doubt_places(names)
        return robots

    def _put_in(self, spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]) -> list[Robot]:
        body = robot_body(spec, "")
        self._engine.add_bodies([(replace(body, name=name), start) for name, start in zip(names, starts, strict=True)])
        try:
            robots = [Robot(self, name, spec, start) for name, start in zip(names, starts, strict=True)]
        except BaseException:  # one of its devices cannot be made: leave nothing behind
            self._engine.remove_bodies(names)
            raise
        self._robots.update((robot.name, robot) for robot in robots)
        self.feed.tell(Subject.BODIES)  # once more: when the engine told it, the bodies were no robots yet
        return robots

    def _doubt_places(self, names: Sequence[str]) -> None:
        """Warn of robots that touch something where they begin, or are far outside of the map."""
        engine = self._engine
        rows = np.array([engine.rows[name] for name in names], np.int64)
        stuck = {names[i] for i in np.flatnonzero(engine.touching(rows)).tolist()}
        bounds = _bounds(self.scene)
        outside: set[str] = set()
        if bounds is not None:
            xy, limits = engine.state.pose[rows, :2], np.array(bounds)
            beyond = np.maximum(limits[:2] - xy, xy - limits[2:]).max(axis=1, initial=-math.inf) > FAR_OUTSIDE
            outside = {names[i] for i in np.flatnonzero(beyond).tolist()}
        for doubtful, what in (
            (stuck, "touches something where it begins: it may not be able to move"),
            (outside, f"begins more than {FAR_OUTSIDE:g} m outside of the map"),
        ):
            for name in sorted(doubtful)[:MAX_WARNED_ROBOTS]:
                x, y, _ = engine.state.pose[engine.rows[name]].tolist()
                self._warn(f"robot {name} at x={x:g} m, y={y:g} m {what}")
            if len(doubtful) > MAX_WARNED_ROBOTS:
                self._warn(f"{len(doubtful) - MAX_WARNED_ROBOTS} more robots: each {what}")

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Replace the map, between two steps; robots keep their poses, boxes of the old map are removed (MAP-014).

        Parameters
        ----------
        scene : Scene
            The new map.
        grid : Grid, optional
            Result of `botyard.engine.build.build_grid` for it, if that was called before, for example in another thread.

        Raises
        ------
        ArgumentError
            `scene` is not a Scene.
        """
        self._check_thread()
        arguments.instance(scene, "scene", Scene, "botyard.load_scene(name) reads one of a file")
        for name in self.box_names:
            self._holds.pop(name, None)
        self._engine.replace_scene(scene, grid)
        self._set_scene(scene)
        self.feed.tell(Subject.MAP, Subject.BODIES)
        self._note(None, ReplaceScene, scene)
        self._doubt_walls()

    def _doubt_walls(self) -> None:
        """Warn of a map whose walls are so close together, for its size, that ray casting is slow."""
        walls = crowding(self._engine.grid)
        if walls > MAX_CROWDING:
            x0, y0, x1, y1 = self.scene.bounds or (0.0, 0.0, 0.0, 0.0)
            self._warn(
                f"the map spans {x1 - x0:g} m × {y1 - y0:g} m, but most of its walls stand close together ({walls:.0f} in a cell of "
                f"{self._engine.grid.h:.3g} m): sensors will be slow. Does it hold a stray point far outside?"
            )

    def remove_robot(self, name: str) -> None:
        """Remove a robot, between two steps. UnknownNameError (a KeyError) when there is none of that name."""
        self.remove_robots([name])

    def remove_robots(self, names: Sequence[str]) -> None:
        """Remove many robots at once; much faster than one by one.

        Raises
        ------
        UnknownNameError
            A KeyError: one is not there; none is removed.
        """
        self._check_thread()
        if isinstance(names, str):
            raise arguments.unknown([names], self._robots, "robot")
        for name in names:
            if not isinstance(name, str) or name not in self._robots:
                raise arguments.unknown(name, self._robots, "robot")
        self._note(None, RemoveRobots, tuple(names))
        self._take_out(names)

    def _take_out(self, names: Sequence[str]) -> None:
        self._engine.remove_bodies(names)
        for name in names:
            self._holds.pop(name, None)
            robot = self._robots.pop(name, None)
            self._unserved.discard(name)
            if robot is not None:
                robot._leave()
            self._dismiss(name)
        self.feed.tell(Subject.BODIES, Subject.CLAIMS)

    def _dismiss(self, name: str) -> None:
        """End the program that drives a robot, if there is one, and its subscriptions of sensors."""
        _, act = self._programs.pop(name, (None, None))
        if act is None:
            return
        self.not_before_step(act)
        rest = getattr(getattr(act, "__self__", None), "rest", None)
        if rest is not None and name in self._robots:
            rest()

    def remove_box(self, name: str) -> None:
        """Remove a box of the map, between two steps. UnknownNameError (a KeyError) when there is none of that name."""
        self._check_thread()
        if name not in self.box_names:
            raise arguments.unknown(name, self.box_names, "box")
        self._note(None, RemoveBox, name)
        self._engine.remove_box(name)
        self._holds.pop(name, None)
        self._set_scene(self._engine.scene)
        self.feed.tell(Subject.BODIES)

    def put(self, name: str, pose: Pose | tuple[float, float, float], source: str = "api") -> None:
        """Teleport a robot or a box of the map to a true pose (m, m, rad) at the next step, whatever stands there.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            The pose is not three finite numbers.
        CommandError
            It is out of bounds.
        """
        self._check_there(name)
        self.submit(name, cmd.SetPose(arguments.pose(pose)), source)

    def reset(self, names: Sequence[str] | None = None, source: str = "api") -> None:
        """Put robots and boxes of the map, or all of them, back where they started, at the next step.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has one of these names.
        """
        if names is not None:
            self._check_there(*([names] if isinstance(names, str) else names))
            names = [names] if isinstance(names, str) else names
        boxes = dict(zip(self.box_names, self.scene.boxes, strict=True))
        for name in (*self._robots, *boxes) if names is None else names:
            if name in boxes:
                self.put(name, boxes[name].pose, source)
            else:
                self._robots[name].port(source).reset_pose()

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Give a robot or a box of the map a mass, between two steps; None: it has none, and is kinematic again.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            `spec` is not a DynamicsSpec.
        ModelError
            Its outline has no area.
        """
        self._check_thread()
        self._check_there(name)
        if spec is not None:
            arguments.instance(spec, "spec", DynamicsSpec)
        self._engine.set_dynamics(name, spec)
        if name in self._robots:
            robot = self._robots[name]
            object.__setattr__(robot, "spec", replace(robot.spec, dynamics=spec))
        self._set_scene(self._engine.scene)
        self.feed.tell(Subject.MASS)
        self._note(None, SetDynamics, name, spec)

    def dynamics(self, name: str) -> DynamicsSpec | None:
        """Mass, friction and damping of a robot or box; None: it has no mass. UnknownNameError (a KeyError) when nothing has that name."""
        self._check_there(name)
        return self._engine.specs[self._engine.rows[name]].dynamics

    def push(self, name: str, fx: float, fy: float = 0.0, torque: float = 0.0, source: str = "api") -> None:
        """Apply a force at the centre of mass (N) and a torque (N·m) from the next step on, until the next command.

        In the world's axes. A body without mass ignores it.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            A value is not a finite number.
        """
        self._check_there(name)
        force = arguments.triple((fx, fy, torque), "fx", "fy", "torque")
        self.submit(name, cmd.Demand(Control.FORCE, force), source)

    def pull_to(self, name: str, pose: Pose | tuple[float, float, float], source: str = "api") -> None:
        """Let the PD controller of a body with mass take it to a pose (m, m, rad) from the next step on; see `push`."""
        self._check_there(name)
        self.submit(name, cmd.Demand(Control.POSE, arguments.pose(pose)), source)

    def throw(self, name: str, vx: float, vy: float = 0.0, w: float = 0.0, source: str = "api") -> None:
        """Keep a body with mass at a velocity, in the world's axes (m/s, rad/s), from the next step on; see `push`."""
        self._check_there(name)
        twist = arguments.triple((vx, vy, w), "vx", "vy", "w")
        self.submit(name, cmd.Demand(Control.TWIST, twist), source)

    def describe(self, described: Described) -> None:
        """Add the joints and ray sensors of a description file; its bodies are boxes of the scene. KeyError if one is missing."""
        self._check_thread()
        for sensor in described.sensors:
            self._check_there(sensor.parent)
        self._note(None, Describe, described)
        self.described |= described
        self._describe_again([joint_key(joint) for joint in described.joints])
        self.feed.tell(Subject.DESCRIBED)

    def _describe_again(self, wanted: Sequence[Hashable]) -> None:
        """Create the joints in `wanted`, and all ray sensors, of description files that do not exist at present."""
        rows, joints = self._engine.rows, self._engine.table(Joints)
        there = {row.key for row in joints.rows}
        for joint in self.described.joints:
            if joint_key(joint) in wanted and joint_key(joint) not in there:
                Joint(joint, joints, rows.get(joint.parent, NOBODY))
        for sensor in self.described.sensors:
            if sensor.parent in rows and not (sensor.name in self.rays and self.rays[sensor.name].is_there):
                self.rays[sensor.name] = RaySensor(sensor, self._devices, self._engine)

    @property
    def joints(self) -> Mapping[str, Sequence[Joint]]:
        """Joints of description files, by the bodies that carry their children."""
        joints: dict[str, list[Joint]] = {}
        for joint in cast(Sequence[Joint], self._engine.table(Joints).rows):
            joints.setdefault(joint.spec.parent, []).append(joint)
        return joints

    def attach(self, carrier: str, name: str) -> None:
        """Let a body carry another one from now on, where it is; for sensors and collisions it is a part of its carrier.

        Raises
        ------
        UnknownNameError
            A KeyError: one of them is not there.
        WorldError
            It carries itself, one of them is carried already, or the other one carries something.
        """
        self._check_thread()
        self._check_there(carrier, name)
        engine = self._engine
        if name == carrier or engine.carrier_of(name) is not None or engine.carrier_of(carrier) is not None:
            raise WorldError(f"{carrier} cannot carry {name}: one of them is carried, or it is itself")
        if carried := engine.carried_by(engine.rows[name]):
            raise WorldError(f"{carrier} cannot carry {name}, which carries {engine.specs[carried[0]].name}")
        self._note(None, Attach, carrier, name)
        engine.attach(carrier, name)

    def detach(self, name: str) -> None:
        """Release a carried body, where it is. Nothing happens if it is not carried."""
        self._check_thread()
        if self._engine.carrier_of(name) is not None:
            self._note(None, Detach, name)
            self._engine.detach(name)

    def wrench(self, name: str) -> tuple[float, float, float]:
        """Net force, N, and torque, N·m, on a body with mass in the last step, in the world's axes; zero for others."""
        self._check_there(name)
        dynamics = self._engine.dynamics
        return (0.0, 0.0, 0.0) if dynamics is None else dynamics.wrench(self._engine.rows[name])

    def unique_name(self, base: str) -> str:
        """`base`, with a number behind it if that name is taken: ``p3dx``, ``p3dx_002`` (CLI-008)."""
        return self._unique_names(base, 1)[0]

    def unique_names(self, base: str, count: int) -> list[str]:
        """`count` free names: `base`, with numbers behind it."""
        return self._unique_names(base, count)

    def _unique_names(self, base: str, count: int) -> list[str]:
        names: list[str] = []
        n = 1
        while len(names) < count:
            end = "" if n == 1 else f"_{n:03d}"
            name = base[: MAX_NAME - len(end)] + end
            if name not in self._engine.rows:
                names.append(name)
            n += 1
        return names

    @property
    def home(self) -> Pose:
        """Start pose of robots: the map's home, or its centre."""
        return self.scene.center if self.scene.start is None else self.scene.start

    def next_places(self, spec: RobotSpec, count: int) -> list[Pose]:
        """Start poses of `count` more robots of a model: the map's home for the first of all, the nearest free places for others."""
        # the map's home even if something stands there: the map says so
        first = [self.scene.start] if self.scene.start is not None and not self._robots and count else []
        return first + self.free_places(spec, self.home, count - len(first))

    def free_place(self, spec: RobotSpec, near: Pose) -> Pose:
        """The place nearest to `near`, on a 1 m grid around it, where a robot touches nothing; `near` itself if there is none."""
        return self.free_places(spec, near, 1)[0]

    def free_places(self, spec: RobotSpec, near: Pose, count: int) -> list[Pose]:
        """The `count` places nearest to `near`, on a 1 m grid around it, where robots of a model touch nothing, nor each other.

        `near` itself stands for those that are missing when there are not enough.
        """
        return FreePlaces(self._engine, spec, near).take(count)

    def is_free_for(self, robot: Robot) -> Callable[[Pose], bool]:
        """Whether a robot could stand at a pose without touching anything but itself; valid until something moves, comes or goes."""
        row = self._engine.rows[robot.name]
        spec = replace(self._engine.specs[row], name=" placing ", parts=self._engine.outline(row))
        return self._engine.trial(spec, without=robot.name)

    def random_free_place(self, spec: RobotSpec, index: int = 0) -> Pose:
        """A place within the bounds of the map (20 m × 20 m without one) where a robot touches nothing.

        Drawn from the seed of the simulation and `index`, so different robots get different places and a run can be repeated.

        Raises
        ------
        WorldError
            None was found in 10,000 tries.
        """
        x0, y0, x1, y1 = _bounds(self.scene) or (-10.0, -10.0, 10.0, 10.0)
        draw = random.Random(f"{self.seed} start {index}")
        is_free = self._engine.trial(on_trial(spec))
        for _ in range(10_000):
            pose = Pose(draw.uniform(x0, x1), draw.uniform(y0, y1), draw.uniform(-math.pi, math.pi))
            if is_free(pose):
                return pose
        raise WorldError("no free place for a robot was found in this map")

    @property
    def robots(self) -> Mapping[str, Robot]:
        """All robots by name, in the order of creation."""
        return MappingProxyType(self._robots)

    # -- time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps and return its state, which is valid until the step after the next.

        Raises
        ------
        ArgumentError
            `n` is not a whole number of at least 0.
        """
        if self._is_ours is not None:
            self._check_thread()
        if type(n) is not int or n < 0:  # written out, because this is called in every step
            n = arguments.whole(n, "n", low=0)
        if not self._before:
            return self._engine.step(n)
        for _ in range(n):
            for act in tuple(self._before):
                act()
            self._engine.step()
        return self.snapshot

    def drive(self, name: str, act: Callable[[], None], program: Program) -> None:
        """Call `act` before every step, for a program that drives a robot; it replaces the robot's program so far.

        UnknownNameError (a KeyError) when there is no robot of that name.
        """
        if name not in self._robots:
            raise arguments.unknown(name, self._robots, "robot")
        arguments.function(act, "act")
        robot = self._robots[name]
        self._dismiss(robot.name)
        self._programs[name] = (program, act)
        self.before_step(act)

    @property
    def programs(self) -> Mapping[str, Program]:
        """Programs that drive robots while no client does, by the robots' names."""
        return {name: program for name, (program, _) in self._programs.items()}

    def before_step(self, act: Callable[[], None]) -> None:
        """Call `act` before every step: programs that control robots from within."""
        self._before.append(arguments.function(act, "act"))

    def not_before_step(self, act: Callable[[], None]) -> None:
        """Stop calling `act` before steps; nothing happens if it was not called."""
        if act in self._before:
            self._before.remove(act)

    def settle(self) -> Snapshot:
        """Apply queued commands and take readings, without a step: for placing bodies while time stands still."""
        self._check_thread()
        self._note(None, Settle)
        return self._engine.settle()

    @property
    def poses(self) -> F8:
        """True poses of all robots in the order of creation, (n, 3): m, m, rad. A copy."""
        return self.fleet.poses

    # -- the state as a value

    def save_state(self) -> bytes:
        """The state of the world as bytes: `restore` goes on from it, bit for bit.

        They hold all that changes, and digests of the map and of the models. What runs outside of the world is not in them: functions of
        `before_step`, clients' sessions, viewers.

        Raises
        ------
        StateError
            A robot is driven by a controller whose state cannot be saved (without ``get_state`` and ``set_state``).
        """
        return save(self)

    def restore(self, state: bytes, *, budget: Budget = Budget()) -> None:
        """Go on from a state of this simulation or of another one with the same map.

        Robots that are missing are added, those that are not in the state are removed; handles of the others stay valid.

        Parameters
        ----------
        state : bytes
            Result of `save_state`.
        budget : Budget
            Limits its size.

        Raises
        ------
        StateError
            It is not a state, is damaged, too large, of another version of botyard, of another map, or of unknown models. Nothing has
            changed then, unless a controller refuses its own state.
        """
        self._check_thread()
        arguments.instance(budget, "budget", Budget)
        tick, models = self.tick, list[object]()
        try:
            with self._journal:
                restore(self, state, budget, employ, models)
        finally:
            self.feed.tell(*SAVED)
        if self._journal.is_read:
            self._journal.note(tick, None, Restore(bytes(state), models))

    def know(self, described: Sequence[object]) -> None:
        """Remember models and boxes that states to be restored may refer to, as if they had been in this world."""
        for one in described:
            self._known.digest(one)

    def digest(self) -> int:
        """64-bit digest of the state without that of controllers, computed at each call; equal states have equal digests."""
        return digest(self)

    def clone(self, seed: int | None = None) -> Simulation:
        """Another simulation in the same state. With `seed`, its random draws differ from now on.

        Raises
        ------
        StateError
            See `save_state`; also when a function of `before_step` is not that of a program.
        """
        return clone(self, None if seed is None else arguments.seed(seed))

    def __copy__(self) -> Simulation:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Simulation:
        return self.clone()

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:  # type: ignore[override]
        return rebuild, parts(self)

    def warn_by(self, warn: Warn | None) -> None:
        """Set the function that receives warnings; None: Python's `warnings`."""
        self._warn = warn if warn is not None else _to_warnings

    def _set_boxes(self, names: Sequence[str], boxes: Sequence[BoxObject]) -> None:
        self._engine.box_names = tuple(names)
        self._engine.scene = replace(self.scene, boxes=tuple(boxes))
        self._set_scene(self._engine.scene)

    def _sort_robots(self, names: Sequence[str]) -> None:
        robots = {name: self._robots[name] for name in names}
        self._robots.clear()
        self._robots.update(robots)

    def _order_programs(self, names: Sequence[str]) -> None:
        """Call programs in this order, after the other functions of `before_step`."""
        self._programs = {name: self._programs[name] for name in names}
        acts = [act for _, act in self._programs.values()]
        self._before = [act for act in self._before if act not in acts] + acts

    # -- pictures

    def render(self, path: str | Path | None = None, *, width: int = 1000, overwrite: bool = False) -> Image:
        """Draw the world from above.

        Parameters
        ----------
        path : str or Path, optional
            Also write the picture to this file; its suffix is the format.
        width : int
            Greatest width, pixels. Of a world that is more than four times as high as wide the picture gets narrower, and so does one that
            would have more than 10⁸ pixels.
        overwrite : bool
            Replace a file at `path` that botyard did not write.

        Raises
        ------
        ArgumentError
            The width is not from 16 to 20,000, or the suffix is of no format for pictures.
        KeptFileError
            There is a file at `path` that botyard did not write.
        OSError
            It cannot be written.
        """
        width = arguments.whole(width, "width", low=16, high=20_000)
        return render(self, None if path is None else arguments.path(path, "path"), width, overwrite)


@extension("is_controller")
def is_controller(name: str) -> bool:
    """Whether there is a controller of a name."""
    raise NotImplementedError


@extension("employ")
def employ(robot: Robot, program: Program) -> None:
    """Let a program drive a robot from the next step on; raises what `Simulation.populate` raises."""
    raise NotImplementedError


@extension("render")
def render(sim: Simulation, path: str | Path | None, width: int, overwrite: bool) -> Image:
    """Draw a simulation, and write the picture to a file; see `Simulation.render`."""
    raise NotImplementedError


def _to_warnings(text: str) -> None:
    """Show a warning as a Python warning, at the line of the user's program that caused it."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "botyard":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DoubtWarning, stacklevel=level)


@lru_cache(maxsize=2)
def _bounds(scene: Scene) -> tuple[float, float, float, float] | None:
    """`Scene.bounds`, cached, as it reads all walls."""
    return scene.bounds


def _equipped(model: str | Path | RobotSpec, lasers: Sequence[str] | None) -> RobotSpec:
    """The spec of a model, with other lasers if some are named."""
    if not isinstance(model, RobotSpec):
        if not isinstance(model, (str, Path)):
            raise ArgumentError(f"model: expected a name, a file or a RobotSpec, found {arguments.found(model)}")
        model = find_robot(arguments.path(model, "model"))
    spec = model
    if lasers is None:
        return spec
    if isinstance(lasers, str) or not isinstance(lasers, Sequence) or not all(isinstance(x, str) for x in lasers):
        hint = f'; one laser is a list, too: ["{lasers}"]' if isinstance(lasers, str) else ""
        raise ArgumentError(f"lasers: expected a list of names of laser models, found {arguments.found(lasers)}{hint}")
    mount = spec.lasers[0].pose if spec.lasers else Pose()
    return replace(spec, lasers=tuple(load_laser(t, pose=mount) for t in lasers))
