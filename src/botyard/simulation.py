"""The public face of botyard: a world with robots in it, to be stepped, commanded and read from Python.

    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    while sim.time < 10:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

Everything is in SI units and REP-103 axes. Joins engine and devices; knows no protocol, but `Robot.port` gives a session what it needs
(`botyard.protocols.robotport.RobotPort`).
"""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

import numpy as np

from botyard import arguments
from botyard.devices import compass
from botyard.devices.battery import Batteries
from botyard.devices.bumpers import pressed
from botyard.devices.electrics import Boards, Electrics
from botyard.devices.finders import Blob, Fiducial, find_blobs, find_fiducials
from botyard.devices.gps import Fix, gps_fix
from botyard.devices.gripper import Gripper, Grippers, GripperState, open_paddles
from botyard.devices.joints import Joint, Joints, joint_key
from botyard.devices.laser import STREAM as LASER_STREAM
from botyard.devices.laser import LaserScan, laser_bundle
from botyard.devices.ranging import Bundle, RangeDevices
from botyard.devices.ranging import warm_up as warm_up_ranging
from botyard.devices.rays import RaySensor
from botyard.devices.sonar import STREAM as SONAR_STREAM
from botyard.devices.sonar import SonarReadings, sonar_bundles
from botyard.devices.tables import under_table
from botyard.engine import commands as cmd
from botyard.engine.build import BodySpec, build_grid, crowding, robot_body
from botyard.engine.crowd import Crowd
from botyard.engine.layout import F8, Control, Grid, OdometryErrorMode
from botyard.engine.rng import DEFAULT_SEED
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.engine.tables import NOBODY, Row
from botyard.errors import ArgumentError, CommandError, DoubtWarning, UnknownNameError, WorldError
from botyard.fleet import Fleet
from botyard.formats import saving
from botyard.formats.base import Options, Warn
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.formats.registry import load_world
from botyard.geometry import OdomPose, Pose, Twist, WorldPose, compose
from botyard.handle import Handle
from botyard.model.dynamics import DynamicsSpec
from botyard.model.library import load_laser
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import Axes, Drive, RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import BlobFinderSpec, FiducialFinderSpec, LaserSpec
from botyard.model.world import THING, PlacedRobot, Program, Settings, World
from botyard.names import body_name, check_name
from botyard.protocols.robotport import RobotState, Timing
from botyard.sim.journal import (
    AddRobots,
    Attach,
    Change,
    Claim,
    Describe,
    Detach,
    Entry,
    Journal,
    RemoveBox,
    RemoveRobots,
    ReplaceScene,
    Restore,
    SetDynamics,
    SetRays,
    Settle,
    Submit,
    SubmitVelocities,
    WriteDevice,
)
from botyard.sim.state import Known, clone, digest, parts, rebuild, restore, save

if TYPE_CHECKING:
    from PIL.Image import Image

_TELEPORTS = (cmd.SetPose, cmd.SetPoseAxis)
FAR_OUTSIDE = 100.0
"""Robots that begin farther outside of the map's bounds than this, m, are hardly meant to."""
MAX_CROWDING = 50.0
"""More walls in an occupied cell of the grid make rays many times as slow as usual (four are usual)."""
MAX_DOUBTS = 5
"""So many robots of a kind of doubt are named; of others the number is told."""
MAX_RAYS = 100_000
"""Most rays of a laser that can be configured."""
MAX_THREADS = 1024
"""Most threads that can be asked for."""
MANY = 50
"""Of more large robots without poses the places are found together, a little farther apart than one by one."""
ROBOT_SPACING = 1.0
"""Robots without a start pose of their own are put this far apart, m (decisions, "Start")."""


class Simulation(Handle):
    """A world and its robots.

    Build it (`load`, or `Simulation()` and a scene), add robots (`add_robot`, `add_robots`), then in turns: read (`Robot.laser`,
    `Robot.odom`, `fleet` for all at once), command (`Robot.command`, `Fleet.command`), `step`. `render` draws it.

    Parameters
    ----------
    scene : Scene, optional
        The static world; without it, an empty plane.
    seed : int
        Of all random draws; the same seed and the same commands give the same run, bit for bit.
    step : float
        Simulated time of one step, s (whole microseconds).
    odometry_error : str
        ``random_each_update``, ``random_init``, ``constant`` or ``none``: when odometry errors are drawn.
    sensor_noise : bool
        False: sensors are exact.
    threads : int
        Most threads that ray casting may use; results are the same for any number.
    range_step : float
        Ranges are rounded to multiples of this, m; 0: exact.
    begin : int
        Steps that count as done: time begins there.
    warn : callable, optional
        Receives a line for what is possible but hardly meant, such as a robot that begins in a wall; without it, `warnings` do.

    Raises
    ------
    ArgumentError
        A parameter is none that it can have.
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
        "step": "call step(), and say its time when the simulation is made: Simulation(step=…)",
        "snapshot": "call step() or settle()",
        "colors": "a robot's model says its colour",
    }
    scene: Scene
    """The static world."""
    fleet: Fleet
    """All robots at once, as arrays."""

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
        self._set_scene(scene if scene is not None else Scene())
        self.warn_by(warn)
        self.sensor_noise = sensor_noise
        self.range_step = range_step
        self.timing = Timing(sim=step, real=step, last=step)
        self._devices = RangeDevices(threads)
        self._engine = Engine(
            self.scene,
            seed=seed,
            step_us=round(step * 1e6),
            begin=begin,
            odometry_error_mode=mode,
            tables=(Grippers(), Joints(), Batteries(), Boards()),
            senses=(self._devices,),
        )
        self._doubt_walls()
        self._robots = Robots()
        self.claims = 0
        """Counts how often a robot has got or lost a source of commands."""
        object.__setattr__(self, "fleet", Fleet(self))
        self.crowd = Crowd(self._engine)
        """For those who may put robots anywhere and are not the user."""
        self._unserved: set[str] = set()
        self._known = Known()
        self._journal = Journal()
        for table in self._engine.tables.values():
            table.on_write = self._note_device
        self._configured: dict[tuple[str, int], Laser] = {}
        self._programs: dict[str, tuple[Program, Callable[[], None]]] = {}
        self._before: list[Callable[[], None]] = []
        self.described = Described()
        """What description files have told of."""
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
            Receives a line for everything in the file that was skipped, doubted or assumed, and later what it does for `Simulation`.
        budget : Budget
            The limits of what is read; ``Budget(cells=10**9)`` raises that one.

        The other parameters are those of `Simulation`; what is left out is what the file says.

        Raises
        ------
        FormatError
            No such file, or it is wrong or too large; with file and line.
        ArgumentError
            A parameter is none that it can have.
        """
        arguments.path(map, "map")
        if resolution is not None:
            resolution = arguments.number(resolution, "resolution", low=0.0, above=True, unit="m")
        from botyard.controllers.registry import is_controller  # upward on purpose: a world may need them

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
        """Add the robots of a world, with the programs that drive them; its scene is not looked at.

        Raises
        ------
        WorldError, CommandError
            A name is taken, a pose is absurd, a program does not know an option.
        """
        from botyard.controllers.crew import employ  # upward on purpose: see `load`

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
        self._unserved.update(r.name for r, placed in zip(robots, world.robots, strict=True) if not placed.served)
        for robot, placed in zip(robots, world.robots, strict=True):  # when all are there: one may be told of another
            if placed.program is not None:
                employ(robot, placed.program)
        return robots

    def _add_at_home(self, group: Sequence[PlacedRobot]) -> list[Robot]:
        """Add robots of one model on free places around the map's home, as `add_robot` does one by one; faster."""
        spec, names = group[0].spec, [p.name for p in group if p.name] or None
        first = self.add_robot(spec, names and names[0])
        places = FreePlaces(self, spec, self.home)
        if not places.is_exact and len(group) <= MANY:
            return [first, *(self.add_robot(p.spec, p.name or None) for p in group[1:])]
        return [first, *self.add_robots(spec, places.take(len(group) - 1), names and names[1:])]

    def world(self) -> World:
        """The world as it is now, to be saved as a scenario: what is in it and where, seed and step; not what moves it at the moment."""
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
        """Write the world as it is now as a scenario (YAML); what the file cannot hold is returned in words.

        A map that is as its file has it is referred to; another one is written beside the scenario, over no file but the scenario's own
        map of before.

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
            The pose is not three finite numbers, or another argument is none that it can have.
        CommandError
            The pose is absurdly far away.

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
            As for `add_robot`, which also says what is raised. Nothing is added if anything is wrong.
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
        with self._journal:
            robots = self._put_in(spec, names, starts)
        self._note("api", AddRobots, spec, tuple(names), tuple(starts))
        self._doubt_places(names)
        return robots

    def _put_in(self, spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]) -> list[Robot]:
        body = robot_body(spec, "")
        self._engine.add_bodies([(replace(body, name=name), start) for name, start in zip(names, starts, strict=True)])
        robots = [Robot(self, name, spec, start) for name, start in zip(names, starts, strict=True)]
        self._robots.update((robot.name, robot) for robot in robots)
        return robots

    def _doubt_places(self, names: Sequence[str]) -> None:
        """Say which of these robots touch something where they begin, or stand far outside of the map."""
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
            for name in sorted(doubtful)[:MAX_DOUBTS]:
                x, y, _ = engine.state.pose[engine.rows[name]].tolist()
                self._warn(f"robot {name} at x={x:g} m, y={y:g} m {what}")
            if len(doubtful) > MAX_DOUBTS:
                self._warn(f"{len(doubtful) - MAX_DOUBTS} more robots: each {what}")

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Put another map under the robots, between two steps; they keep their poses, boxes of the old map go (MAP-014).

        Parameters
        ----------
        scene : Scene
            The new map.
        grid : Grid, optional
            What `botyard.engine.build.build_grid` made of it before, for example in another thread.

        Raises
        ------
        ArgumentError
            It is no scene.
        """
        arguments.instance(scene, "scene", Scene, "botyard.load_scene(name) reads one of a file")
        self._engine.replace_scene(scene, grid)
        self._note("api", ReplaceScene, scene)
        self._set_scene(scene)
        self._doubt_walls()

    def _doubt_walls(self) -> None:
        """Say when the map is so much larger than where its walls are that readings will be slow."""
        walls = crowding(self._engine.grid)
        if walls > MAX_CROWDING:
            x0, y0, x1, y1 = self.scene.bounds or (0.0, 0.0, 0.0, 0.0)
            self._warn(
                f"the map spans {x1 - x0:g} m × {y1 - y0:g} m, but most of its walls stand close together ({walls:.0f} in a cell of "
                f"{self._engine.grid.h:.3g} m): sensors will be slow. Does it hold a stray point far outside?"
            )

    def _set_scene(self, scene: Scene) -> None:
        object.__setattr__(self, "scene", scene)

    def _check_there(self, *names: str) -> None:
        """Raise UnknownNameError, a KeyError, for what is the name of no robot or box."""
        for name in names:
            if not isinstance(name, str) or name not in self._engine.rows:
                raise arguments.unknown(name, self._engine.rows)

    def remove_robot(self, name: str) -> None:
        """Take a robot out of the world, between two steps. UnknownNameError (a KeyError) when there is none of that name."""
        self.remove_robots([name])

    def remove_robots(self, names: Sequence[str]) -> None:
        """Take many robots out of the world at once; much faster than one by one.

        Raises
        ------
        UnknownNameError
            A KeyError: one is not there; then nothing is removed.
        """
        if isinstance(names, str):
            raise arguments.unknown([names], self._robots, "robot")
        for name in names:
            if not isinstance(name, str) or name not in self._robots:
                raise arguments.unknown(name, self._robots, "robot")
        self._note("api", RemoveRobots, tuple(names))
        self._take_out(names)

    def _take_out(self, names: Sequence[str]) -> None:
        self._engine.remove_bodies(names)
        for name in names:
            robot = self._robots.pop(name, None)
            self._unserved.discard(name)
            if robot is not None:
                robot._leave()
            self._dismiss(name)

    def _dismiss(self, name: str) -> None:
        """No program drives a robot any more."""
        _, act = self._programs.pop(name, (None, None))
        if act is not None:
            self.not_before_step(act)

    def remove_box(self, name: str) -> None:
        """Take a box of the map out of the world, between two steps. UnknownNameError (a KeyError) when there is none of that name."""
        if name not in self.box_names:
            raise arguments.unknown(name, self.box_names, "box")
        self._note("api", RemoveBox, name)
        self._engine.remove_box(name)
        self._set_scene(self._engine.scene)

    def put(self, name: str, pose: Pose | tuple[float, float, float], source: str = "api") -> None:
        """Put a robot or a box of the map at a true pose (m, m, rad) at the next step, whatever stands there.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            The pose is not three finite numbers.
        CommandError
            It is absurdly far away.
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
        """Give a robot or a box of the map a mass, between two steps; None: it has none, and moves as it is told again.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            `spec` is no DynamicsSpec.
        ModelError
            Its outline has no area.
        """
        self._check_there(name)
        if spec is not None:
            arguments.instance(spec, "spec", DynamicsSpec)
        self._engine.set_dynamics(name, spec)
        self._note("api", SetDynamics, name, spec)
        if name in self._robots:
            robot = self._robots[name]
            object.__setattr__(robot, "spec", replace(robot.spec, dynamics=spec))
        self._set_scene(self._engine.scene)

    def dynamics(self, name: str) -> DynamicsSpec | None:
        """Mass of a robot or box and what goes with it; None: it has none. UnknownNameError (a KeyError) when nothing has that name."""
        self._check_there(name)
        return self._engine.specs[self._engine.rows[name]].dynamics

    def push(self, name: str, fx: float, fy: float = 0.0, torque: float = 0.0, source: str = "api") -> None:
        """Let a force at the centre of mass (N) and a torque (N·m) act from the next step on, until told otherwise.

        In the world's axes. What has no mass takes no notice.

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
        """Let the controller of a body with mass take it to a pose (m, m, rad) from the next step on; see `push`."""
        self._check_there(name)
        self.submit(name, cmd.Demand(Control.POSE, arguments.pose(pose)), source)

    def throw(self, name: str, vx: float, vy: float = 0.0, w: float = 0.0, source: str = "api") -> None:
        """Keep a body with mass at a velocity, in the world's axes (m/s, rad/s), from the next step on; see `push`."""
        self._check_there(name)
        twist = arguments.triple((vx, vy, w), "vx", "vy", "w")
        self.submit(name, cmd.Demand(Control.TWIST, twist), source)

    def describe(self, described: Described) -> None:
        """Add the joints and ray sensors of a description file; its bodies are boxes of the scene. KeyError if one is missing."""
        for sensor in described.sensors:
            self._check_there(sensor.parent)
        self._note("api", Describe, described)
        self.described |= described
        self._describe_again([joint_key(joint) for joint in described.joints])

    def _describe_again(self, wanted: Sequence[Hashable]) -> None:
        """Make those joints and all ray sensors of what is described that are not there, or not any more; their bodies are."""
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
        """Let a body carry another one from now on, where it is; it is seen and felt as a part of its carrier.

        Raises
        ------
        UnknownNameError
            A KeyError: one of them is not there.
        WorldError
            It carries itself, or the other one is carried already.
        """
        self._check_there(carrier, name)
        engine = self._engine
        if name == carrier or engine.carrier_of(name) is not None or engine.carrier_of(carrier) is not None:
            raise WorldError(f"{carrier} cannot carry {name}: one of them is carried, or it is itself")
        self._note("api", Attach, carrier, name)
        engine.attach(carrier, name)
        self._reshape(carrier)

    def detach(self, name: str) -> None:
        """Let a carried body go, where it is. Nothing happens if nobody carries it."""
        carrier = self._engine.carrier_of(name)
        if carrier is not None:
            self._note("api", Detach, name)
            self._engine.detach(name)
            self._reshape(carrier)

    def _reshape(self, carrier: str) -> None:
        """Give a carrier the outline that it has with what it carries."""
        if carrier in self._robots and self._robots[carrier].gripper is not None:
            return  # a gripper minds its robot's outline itself
        engine = self._engine
        if carrier in self._robots:
            parts = robot_body(self._robots[carrier].spec, carrier).parts
        else:
            parts = self.scene.boxes[self.box_names.index(carrier)].outlines
        for row in engine.carried_by(engine.rows[carrier]):
            parts += engine.carried_outlines(row)
        engine.reshape(carrier, parts)

    def wrench(self, name: str) -> tuple[float, float, float]:
        """Net force, N, and torque, N·m, on a body with mass in the last step, in the world's axes; zero for others."""
        self._check_there(name)
        dynamics = self._engine.dynamics
        return (0.0, 0.0, 0.0) if dynamics is None else dynamics.wrench(self._engine.rows[name])

    def hold(self, name: str, on: bool = True, source: str = "api") -> None:
        """Hold a robot or a box, for example to drag it with `put`; let go, it goes on with what it was told."""
        self._check_there(name)
        self.submit(name, cmd.Hold(arguments.flag(on, "on")), source)

    def unique_name(self, base: str) -> str:
        """`base`, or with a number behind it if that name is taken: ``p3dx``, ``p3dx_002`` (CLI-008)."""
        return self._unique_names(base, 1)[0]

    def unique_names(self, base: str, count: int) -> list[str]:
        """`count` names that are free: `base`, and with numbers behind it."""
        return self._unique_names(base, count)

    def _unique_names(self, base: str, count: int) -> list[str]:
        names: list[str] = []
        n = 1
        while len(names) < count:
            name = base if n == 1 else f"{base}_{n:03d}"
            if name not in self._engine.rows:
                names.append(name)
            n += 1
        return names

    @property
    def home(self) -> Pose:
        """Where robots start: the map's home, or its centre."""
        return self.scene.center if self.scene.start is None else self.scene.start

    def next_places(self, spec: RobotSpec, count: int) -> list[Pose]:
        """Where `count` more robots of a model start: the map's home for the first of all, for others the nearest free places around it."""
        # where the map says, even when something stands there: that is the map's business
        first = [self.scene.start] if self.scene.start is not None and not self._robots and count else []
        return first + self.free_places(spec, self.home, count - len(first))

    def free_place(self, spec: RobotSpec, near: Pose) -> Pose:
        """The place nearest to `near`, on a 1 m grid around it, where a robot touches nothing; `near` itself if there is none."""
        return self.free_places(spec, near, 1)[0]

    def free_places(self, spec: RobotSpec, near: Pose, count: int) -> list[Pose]:
        """The `count` places nearest to `near`, on a 1 m grid around it, where robots of a model touch nothing, nor each other.

        `near` itself stands for those that are missing when there are not enough.
        """
        return FreePlaces(self, spec, near).take(count)

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
        is_free = self._engine.trial(_on_trial(spec))
        for _ in range(10_000):
            pose = Pose(draw.uniform(x0, x1), draw.uniform(y0, y1), draw.uniform(-math.pi, math.pi))
            if is_free(pose):
                return pose
        raise WorldError("no free place for a robot was found in this map")

    @property
    def robots(self) -> Mapping[str, Robot]:
        """All robots by name, in the order of creation."""
        return MappingProxyType(self._robots)

    @property
    def colors(self) -> dict[str, str]:
        """Colour of each robot and thing of the map by its name."""
        robots = {name: robot.spec.color for name, robot in self._robots.items()}
        return robots | {n: box.color for n, box in zip(self.box_names, self.scene.boxes, strict=True)}

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the bodies of the map's boxes, in the order of `Scene.boxes`.

        They are those of the map as `botyard.names.shown` shows them; a box gets another name where that one is taken.
        """
        return self._engine.box_names

    # -- time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps and return its state, which is valid until the step after the next.

        Raises
        ------
        ArgumentError
            `n` is no whole number of at least 0.
        """
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
        """Call `act` before every step, on behalf of a program that drives a robot, instead of what drove it so far.

        UnknownNameError (a KeyError) when there is no robot of that name.
        """
        if name not in self._robots:
            raise arguments.unknown(name, self._robots, "robot")
        arguments.function(act, "act")
        robot = self._robots[name]
        old = self._programs.pop(robot.name, None)
        if old is not None:
            self.not_before_step(old[1])
        self._programs[name] = (program, act)
        self.before_step(act)

    @property
    def programs(self) -> Mapping[str, Program]:
        """What drives which robot while no client does."""
        return {name: program for name, (program, _) in self._programs.items()}

    def before_step(self, act: Callable[[], None]) -> None:
        """Call `act` before every step: programs that control robots from within."""
        self._before.append(arguments.function(act, "act"))

    def not_before_step(self, act: Callable[[], None]) -> None:
        """Call `act` before steps no longer; nothing happens if it was not called."""
        if act in self._before:
            self._before.remove(act)

    def settle(self) -> Snapshot:
        """Let queued commands that place things take effect without letting time pass."""
        self._note("api", Settle)
        return self._engine.settle()

    @property
    def engine(self) -> Engine:
        """The engine underneath, for those who want to look into it; only the simulation changes it."""
        return self._engine

    @property
    def shapes(self) -> int:
        """Counts how often a robot has got another outline."""
        return self._engine.shapes

    @property
    def is_pending(self) -> bool:
        """Whether commands wait for the next step, or for `settle`."""
        return self._engine.is_pending

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._engine.clock.time

    @property
    def tick(self) -> int:
        """Steps done."""
        return self._engine.clock.tick

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self._engine.clock.dt

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self._engine.seed

    @property
    def snapshot(self) -> Snapshot:
        """State after the last step; valid until the step after the next."""
        return self._engine.snapshot

    @property
    def poses(self) -> F8:
        """True poses of all robots in the order of creation, (n, 3): m, m, rad. A copy."""
        return self.fleet.poses

    def _rounded(self, ranges: F8) -> F8:
        if self.range_step <= 0.0:
            return ranges
        rounded: F8 = np.rint(ranges / self.range_step) * self.range_step
        return rounded

    def submit(self, name: str, command: cmd.Command, source: str = "api") -> None:
        """Queue a command to a robot or a box for the next step; see `botyard.engine.commands`.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        """
        engine = self._engine
        if name not in engine.rows:
            self._check_there(name)
        if type(command) in _TELEPORTS and name in self._robots:
            self._robots[name]._teleports += 1
        engine.submit(name, command, source)
        if self._journal.is_read:  # asked here, too: most commands are noted by nobody, and there are many
            self._note(source, Submit, name, command)

    def submit_velocities(self, command: cmd.SetVelocities, source: str = "api") -> None:
        """Queue velocities of many bodies for the next step; its rows are those of the engine."""
        self._note(source, SubmitVelocities, command)
        self._engine.submit_velocities(command, source)

    def journal(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Call `listener` for every change of the world from outside, whoever makes it, when it is made.

        Parameters
        ----------
        listener : callable
            Given a `botyard.sim.journal.Entry`: tick, number, source and change.

        Returns
        -------
        callable
            Unregisters the listener.
        """
        return self._journal.listen(arguments.function(listener, "listener"))

    def _note(self, source: str, kind: Callable[..., Change], *values: object) -> None:
        """Tell the journal of a change, if anybody reads it."""
        if self._journal.is_read:
            self._journal.note(self.tick, source, kind(*values))

    def _note_device(self, row: Row[Any], values: Mapping[str, Any]) -> None:
        if values and self._journal.is_read:
            self._journal.note(self.tick, "api", WriteDevice(row.table.name, row.number, dict(values)))

    @property
    def threads(self) -> int:
        """Most threads that ray casting may use."""
        return self._devices.threads

    # -- the state as a value

    def save_state(self) -> bytes:
        """The state of the world as bytes: `restore` goes on from it, bit for bit.

        They hold all that changes, and digests of the map and of the models. What runs outside of the world is not in them: functions of
        `before_step`, clients' sessions, who looks on.

        Raises
        ------
        StateError
            A controller drives a robot that cannot say its state (``get_state`` and ``set_state``).
        """
        return save(self)

    def restore(self, state: bytes, *, budget: Budget = Budget()) -> None:
        """Go on from a state that `save_state` gave, of this simulation or of another one with the same map.

        Robots that are not there come, and those that are not in it go; handles of the others stay valid.

        Parameters
        ----------
        state : bytes
            What `save_state` gave.
        budget : Budget
            How many bytes it may have.

        Raises
        ------
        StateError
            It is no state, is damaged, too large, of another version of botyard, of another map, or of models that are not here. Then
            nothing has changed, unless a controller refuses its own state.
        """
        arguments.instance(budget, "budget", Budget)
        from botyard.controllers.crew import employ  # upward on purpose: see `load`

        with self._journal:
            restore(self, state, budget, employ)
        self._note("api", Restore, bytes(state))

    def digest(self) -> int:
        """64 bits over all of the state, but what controllers think; equal states have equal ones. Computed when asked for."""
        return digest(self)

    def clone(self, seed: int | None = None) -> Simulation:
        """Another simulation in the same state. With `seed`, its random draws differ from now on.

        Raises
        ------
        StateError
            See `save_state`; also when a function of `before_step` is no part of the world.
        """
        return clone(self, None if seed is None else arguments.seed(seed))

    def __copy__(self) -> Simulation:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Simulation:
        return self.clone()

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:  # type: ignore[override]
        return rebuild, parts(self)

    def warn_by(self, warn: Warn | None) -> None:
        """Let another function receive doubts from now on; None: `warnings` do."""
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
        """Let programs act in this order, after what else is called before a step."""
        self._programs = {name: self._programs[name] for name in names}
        acts = [act for _, act in self._programs.values()]
        self._before = [act for act in self._before if act not in acts] + acts

    # -- pictures

    def render(self, path: str | Path | None = None, *, width: int = 1000, overwrite: bool = False) -> Image:
        """Draw the world from above.

        Parameters
        ----------
        path : str or Path, optional
            Also write the picture there; the suffix says the format.
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
        if path is not None:
            from PIL import Image as images

            suffix = Path(arguments.path(path, "path")).suffix.lower()
            if suffix not in images.registered_extensions():
                raise ArgumentError(f'path: expected a suffix of pictures such as .png, found "{suffix}" in {path}')
        # upward on purpose, and only when asked: pictures are a convenience
        from botyard.pictures.draw import render_still
        from botyard.pictures.still import take

        image = render_still(take(self), width=width)
        if path is not None:
            from botyard.pictures.files import save_picture

            save_picture(image, path, force=overwrite)
        return image


class FreePlaces:
    """Places for robots of a model, nearest first; those that were given are not given again.

    Parameters
    ----------
    sim, spec, near
        See `Simulation.free_places`.
    """

    def __init__(self, sim: Simulation, spec: RobotSpec, near: Pose) -> None:
        self._sim = sim
        self._near = near
        self._body = _on_trial(spec)
        self._apart = 2.0 * max(math.hypot(x, y) for part in self._body.parts for x, y in part)
        self._spiral = _spiral(near, ROBOT_SPACING)
        self._given: list[Pose] = []

    @property
    def is_exact(self) -> bool:
        """Places of the grid are far enough apart for robots of this model; for larger ones a circle around each decides."""
        return self._apart <= ROBOT_SPACING

    def take(self, count: int) -> list[Pose]:
        """The next `count` places, as things stand now; `near` for each that is missing."""
        is_free = self._sim._engine.trial(self._body)
        found: list[Pose] = []
        while len(found) < count and (place := next(self._spiral, None)) is not None:
            crowded = not self.is_exact and any(math.dist(place[:2], p[:2]) < self._apart for p in self._given)
            if not crowded and is_free(place):
                found.append(place)
                self._given.append(place)
        return found + [self._near] * (count - len(found))


class Robot(Handle):
    """A robot in a simulation: commands in, readings out. Made by `Simulation.add_robot`.

    Drive it: ``robot.command(v=0.3, w=0.1)``, ``command.move``, ``turn_to``, ``turn_by``, ``stop``, ``set_pose``; see `Commands`. All
    commands take effect at the beginning of the next `Simulation.step`.

    Read it:

    ================  ==================================================================================
    `laser`           the first laser: ``robot.laser.read()`` gives a scan, ``robot.laser.ranges`` its ranges, m
    `lasers`          all of them
    `sonar`           the sonar ring, or None: ``robot.sonar.ranges``, m
    `odom`            pose by odometry, which errs, in a frame that begins where the robot started (OdomPose)
    `truth`           true pose in the world's frame (WorldPose); `odom_in_world` compares with it
    `velocity`        in the robot's own frame: m/s forward and to the left, rad/s
    `stalled`         whether something blocks its way
    `gps`, `gripper_state`, `fiducial_finder`, `blob_finder`, `digital_inputs`, `electrics`
                      further devices; None where the model has none
    `state`           everything about its motion at once; `describe` says it in words
    ================  ==================================================================================

    `name`, `spec` and `start` say what it is and where it began. `claim`, `release`, `port` and `clients` are for interfaces that drive it.
    After it was removed from its simulation, each use of the handle says so (UnknownNameError).
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "name": "a robot keeps its name; remove it and add another one",
        "spec": "a robot keeps its model; call Simulation.set_dynamics for its mass, or remove it and add another one",
        "start": "it is where the robot was added; call command.set_pose(x, y, th) to put it elsewhere",
        "truth": "call command.set_pose(x, y, th)",
        "pose": "call command.set_pose(x, y, th) to put it there; truth is where it is, odom where it believes to be",
        "position": "call command.set_pose(x, y, th) to put it there; truth is where it is",
        "speed": "call command(v=…, w=…); velocity is how fast it is",
        "odom": "call command.reset_odometry()",
        "odom_in_world": "call command.set_pose(x, y, th) or command.reset_odometry()",
        "velocity": "call command(v=…, w=…)",
        "state": "call command(v=…, w=…), command.set_pose(x, y, th) and others",
        "stalled": "it is what the last step found",
        "motors_on": "call command.enable(on)",
        "command": "call it: command(v=…, w=…)",
        "is_ghost": "call ghost(on)",
        "laser": "say the lasers when the robot is added: add_robot(model, lasers=[…])",
        "lasers": "say the lasers when the robot is added: add_robot(model, lasers=[…])",
        "simulation": "add a robot to the other simulation",
    }
    name: str
    """Its unique name."""
    spec: RobotSpec
    """Its model."""
    start: Pose
    """True pose at which it was added."""
    command: Commands
    """Commands to it."""
    lasers: tuple[Laser, ...]
    """Its lasers."""

    def __init__(self, sim: Simulation, name: str, spec: RobotSpec, start: Pose) -> None:
        vars(self).update(name=name, spec=spec, start=start, command=Commands(self, "api"))
        engine = sim._engine
        self.electrics = Electrics.of(
            spec.battery, engine.table(Batteries), engine.table(Boards), engine.rows[name], name
        )
        self._sim = sim
        self._claims: list[str] = []
        self._teleports = 0
        vars(self)["lasers"] = tuple(Laser(self, i) for i in range(len(spec.lasers)))
        self.sonar = Sonar(self) if spec.sonar is not None else None
        self.fiducial_finder = None if spec.fiducial_finder is None else FiducialFinder(self, spec.fiducial_finder)
        self.blob_finder = None if spec.blob_finder is None else BlobFinder(self, spec.blob_finder)
        self.gripper = None if spec.gripper is None else Gripper(engine, name, spec, sim._devices)

    def _leave(self) -> None:
        """It was removed: whoever uses this handle from now on is told, also when another robot gets its name."""
        self._claims.clear()
        self._sim.claims += 1
        for laser in self.lasers:
            self._sim._configured.pop((self.name, laser.index), None)
        vars(self)["_sim"] = _Removed(self.name)

    def _restored(self, teleports: int, claims: Sequence[str]) -> None:
        """It is as it was when the world was saved; its lasers have the rays of the model."""
        self._teleports = teleports
        self._claims[:] = claims
        self._sim.claims += 1
        self.electrics.write()
        for laser in self.lasers:
            if (self.name, laser.index) in self._sim._configured:
                laser.restore()

    def __repr__(self) -> str:
        if isinstance(self._sim, _Removed):
            return f"<Robot {self.name}: {self.spec.name}, removed>"
        x, y, th = self.truth
        return f"<Robot {self.name}: {self.spec.name} at x={x:.3f} m, y={y:.3f} m, th={math.degrees(th):.1f}°>"

    @property
    def simulation(self) -> Simulation:
        """The world that it is in."""
        self._sim.claims  # noqa: B018 - raises when it was removed
        return self._sim

    @property
    def laser(self) -> Laser:
        """The first laser.

        Raises
        ------
        WorldError
            The robot has none.
        """
        if not self.lasers:
            raise WorldError(f"robot {self.name} ({self.spec.name}) has no laser")
        return self.lasers[0]

    @property
    def state(self) -> RobotState:
        """Everything about the robot's motion after the last step."""
        snapshot = self._sim.snapshot
        s, row = snapshot.state, snapshot.rows[self.name]
        return RobotState(
            pose_world=Pose(*s.pose[row].tolist()),
            pose_odom=Pose(*s.odom[row].tolist()),
            twist=Twist(*s.vel[row].tolist()),
            motors=bool(s.motors[row]),
            stalled=bool(s.stall[row]),
            estop=bool(s.estop[row]),
            limits=Axes(*s.max_vel[row].tolist()),
            accel=Axes(*s.accel[row].tolist()),
            decel=Axes(*s.decel[row].tolist()),
            odometry_error=Axes(*s.err[row].tolist()),
            bumpers=pressed(self.spec.bumpers, int(s.contact[row])),
            path=(float(s.path[row, 0]), float(s.path[row, 1])),
        )

    @property
    def truth(self) -> WorldPose:
        """True pose in the world's frame, which no real robot knows: m, m, rad."""
        snapshot = self._sim.snapshot
        return WorldPose(*snapshot.state.pose[snapshot.rows[self.name]].tolist())

    @property
    def odom(self) -> OdomPose:
        """Pose by odometry, in the odometry frame: m, m, rad.

        It begins at 0, 0, 0 where the robot was added (or odometry was reset) and errs more and more. Not to be compared with `truth`,
        which is in the world's frame: `odom_in_world` is.
        """
        snapshot = self._sim.snapshot
        return OdomPose(*snapshot.state.odom[snapshot.rows[self.name]].tolist())

    @property
    def velocity(self) -> Twist:
        """Velocity in the robot's own frame: m/s forward, m/s to the left, rad/s."""
        return self.state.twist

    @property
    def stalled(self) -> bool:
        """Whether something blocks the robot's way."""
        snapshot = self._sim.snapshot
        return bool(snapshot.state.stall[snapshot.rows[self.name]])

    @property
    def motors_on(self) -> bool:
        """Whether the motors are enabled."""
        snapshot = self._sim.snapshot
        return bool(snapshot.state.motors[snapshot.rows[self.name]])

    @property
    def gps(self) -> Fix | None:
        """GPS reading; None without a georeferenced map."""
        return gps_fix(self._sim.scene, self.spec.gps, self.truth)

    @property
    def gripper_state(self) -> GripperState | None:
        """Switches of the gripper; None for a robot without one."""
        return None if self.gripper is None else self.gripper.state()

    @property
    def digital_inputs(self) -> bytes:
        """Bytes of digital inputs, 1: idle. Table sensors pull bits down (pioneer-protocol §5, field 16, and §10)."""
        inputs = bytearray(self.electrics.inputs)
        ir = self.spec.table_ir
        if ir.positions:
            left, right = (*under_table(self._sim.scene, ir, self.truth), False)[:2]
            if ir.in_io_packet:
                inputs[3] &= 0xFF ^ (2 * left + right)
            else:
                inputs[0] &= 0xFF ^ (left + 2 * right)
        return bytes(inputs)

    def ghost(self, on: bool = True) -> None:
        """Let nobody see or feel the robot from the next step on, or everybody again."""
        self.command.submit(cmd.SetVisible(Visible.NONE if on else self.spec.returns.mask))

    @property
    def is_ghost(self) -> bool:
        """Whether nobody sees or feels the robot, by command (not for a thing that is carried, as a part of its carrier)."""
        snapshot = self._sim.snapshot
        own = self.spec.returns.mask
        row = snapshot.rows[self.name]
        return bool(own) and not snapshot.state.mask[row] and bool(snapshot.state.carrier[row] == NOBODY)

    def press_estop(self, pressed: bool = True) -> None:
        """Push the red button in: the motors go off at once; after it is pulled out they must be enabled again."""
        self.electrics.estop_pressed = pressed
        if pressed:
            self.command.submit(cmd.EmergencyStop())
            self.command.submit(cmd.EnableMotors(False))

    def describe(self) -> list[str]:
        """The whole state in words and numbers, line by line (SIM-006)."""
        st = self.state
        (x, y, th), (ox, oy, oth), v = st.pose_world, st.pose_odom, st.twist
        flags = [
            name for name, on in (("motors", st.motors), ("stalled", st.stalled), ("emergency stop", st.estop)) if on
        ]
        lines = [
            f"model {self.spec.name}, time {self._sim.time:.3f} s, clients: {', '.join(self.clients) or 'none'}",
            f"true pose x={x:.3f} m y={y:.3f} m th={math.degrees(th):.2f}°",
            f"odometry x={ox:.3f} m y={oy:.3f} m th={math.degrees(oth):.2f}°",
            f"velocity {v.vx:.3f} m/s, {v.vy:.3f} m/s left, {math.degrees(v.w):.2f}°/s; on: {', '.join(flags) or 'nothing'}",
            f"limits {st.limits.x:g} m/s, {math.degrees(st.limits.a):.0f}°/s; accel {st.accel.x:g}, decel {st.decel.x:g} m/s²",
            f"battery {self.electrics.volts:.2f} V, {self.electrics.charge:.0f} %, {self.electrics.battery.charge_state.name.lower()}",
        ]
        read = [f"laser {i}" for i, laser in enumerate(self.lasers) if laser.is_read]
        read += ["sonar"] if self.sonar is not None and self.sonar.is_read else []
        lines.append(f"sensors in use: {', '.join(read) or 'none'}")
        if self.gripper is not None:
            lines.append(f"gripper holds {self.gripper.holding or 'nothing'}")
        return lines

    @property
    def clients(self) -> tuple[str, ...]:
        """Sources that command the robot at present, for example ``pioneer``."""
        return tuple(self._claims)

    def claim(self, source: str) -> None:
        """`source` commands the robot from now on: programs from within give way to it."""
        if source not in self._claims:
            self._sim._note(source, Claim, self.name, True)
            self._claims.append(source)
            self._sim.claims += 1

    def release(self, source: str) -> None:
        """`source` commands the robot no longer; nothing else changes."""
        if source in self._claims:
            self._sim._note(source, Claim, self.name, False)
            self._claims.remove(source)
            self._sim.claims += 1

    @property
    def odom_in_world(self) -> WorldPose:
        """Where in the world's frame odometry believes the robot to be: it began at the true pose, and errs since (or was carried away)."""
        snapshot = self._sim.snapshot
        row = snapshot.rows[self.name]
        return WorldPose(*compose(Pose(*snapshot.state.odom_frame[row].tolist()), self.odom))

    def port(self, source: str) -> Port:
        """What a protocol's session sees of this robot; `source` names it in the order of commands and in logs."""
        return Port(self, source)


class Robots(dict[str, Robot]):
    """Robots by name; a name that is not there gets a sentence (UnknownNameError, a KeyError)."""

    def __missing__(self, name: str) -> NoReturn:
        raise arguments.unknown(name, self, "robot")


class _Removed:
    """Stands in for the simulation of a robot that was removed: whatever is asked of it, it says so."""

    def __init__(self, robot: str) -> None:
        self._robot = robot

    def __getattr__(self, name: str) -> NoReturn:
        raise UnknownNameError(f'robot "{self._robot}" was removed from its simulation; add_robot makes another one')


def _to_warnings(text: str) -> None:
    """Show a doubt as a Python warning, at the line of the user's program that gave rise to it."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "botyard":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DoubtWarning, stacklevel=level)


class Commands(Handle):
    """Commands to a robot; they take effect at the beginning of the next step. SI units."""

    def __init__(self, robot: Robot, source: str) -> None:
        self._robot = robot
        self._source = source

    def submit(self, command: cmd.Command) -> None:
        """Queue any command of `botyard.engine.commands`."""
        self._robot._sim.submit(self._robot.name, command, self._source)

    def __call__(self, v: float | None = None, w: float | None = None, vy: float | None = None) -> None:
        """Drive with velocities (m/s, rad/s, m/s to the left) until told otherwise; what is left out stays as it is.

        Raises
        ------
        CommandError
            A value is not a finite number, or `vy` is not 0 and the robot cannot drive sideways.
        """
        if vy:
            self._check_sideways(vy)
        self.submit(cmd.SetVelocity(v=v, w=w, vy=vy))

    def _check_sideways(self, vy: float) -> None:
        spec = self._robot.spec
        if spec.drive is Drive.DIFF:
            raise CommandError(
                f"vy: robot {self._robot.name} ({spec.name}) cannot drive sideways, only omnidirectional robots can; found {vy} m/s"
            )

    def velocity(self, v: float, w: float = 0.0, vy: float = 0.0) -> None:
        """Drive with these velocities until told otherwise: m/s, rad/s, m/s to the left. Raises what calling it raises."""
        self(v, w, vy)

    def move(self, distance: float) -> None:
        """Drive straight by a signed distance, m, by odometry."""
        self.submit(cmd.MoveBy(distance))

    def turn_to(self, heading: float) -> None:
        """Turn to a heading in the odometry frame, rad."""
        self.submit(cmd.TurnTo(heading))

    def turn_by(self, angle: float) -> None:
        """Turn by an angle, rad."""
        self.submit(cmd.TurnBy(angle))

    def stop(self) -> None:
        """Come to rest with the normal deceleration."""
        self.submit(cmd.Stop())

    def emergency_stop(self) -> None:
        """Stop as hard as possible."""
        self.submit(cmd.EmergencyStop())

    def enable(self, on: bool = True) -> None:
        """Switch the motors on or off."""
        self.submit(cmd.EnableMotors(on))

    def set_pose(self, x: float, y: float, th: float = 0.0) -> None:
        """Put the robot at a true pose (m, m, rad); its odometry does not notice."""
        self.submit(cmd.SetPose(arguments.pose((x, y, th))))

    def hold(self, on: bool = True) -> None:
        """Hold the robot, for example to drag it with `set_pose`; let go, it goes on with what it was told."""
        self.submit(cmd.Hold(on))

    def reset_odometry(self) -> None:
        """Let odometry begin anew at zero."""
        self.submit(cmd.SetOdometry())

    def odometry_errors(self, on: bool) -> None:
        """Let odometry err as the simulation was told to, or not at all (TODO-033)."""
        engine = self._robot._sim._engine
        mode = engine.odometry_error_mode if on else OdometryErrorMode.NONE
        self.submit(cmd.SetOdometryErrors(mode, int(engine.seed_word)))


class Laser(Handle):
    """A laser of a robot: `read` gives a scan, `ranges` its ranges; `configure` sets its rays."""

    _instead: ClassVar[Mapping[str, str]] = {
        "ranges": "the next step takes them",
        "spec": "say the lasers when the robot is added: add_robot(model, lasers=[…])",
    }

    spec: LaserSpec
    """Its model, and where it is mounted."""

    def __init__(self, robot: Robot, index: int) -> None:
        vars(self)["spec"] = robot.spec.lasers[index]
        self.index = index
        self._robot = robot
        self._key = (robot.name, "laser", index)
        self._configure(laser_bundle(self.spec, robot._sim.sensor_noise))

    def _configure(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._robot._sim._devices.configure(
            self._key, self._robot.name, LASER_STREAM + self.index, Visible.LASER, [bundle]
        )

    def configure(self, angle_min: float, increment: float, count: int) -> None:
        """Set the rays: bearing of the first and spacing, rad (counter-clockwise), and their number, 0 to 100,000.

        Raises
        ------
        ArgumentError
            A value is not finite, or the number is none.
        """
        angle_min, increment = (
            arguments.number(angle_min, "angle_min", unit="rad"),
            arguments.number(increment, "increment", unit="rad"),
        )
        count = arguments.whole(count, "count", low=0, high=MAX_RAYS)
        self._robot._sim._note("api", SetRays, self._robot.name, self.index, (angle_min, increment, count))
        fresh = laser_bundle(self.spec, self._robot._sim.sensor_noise)
        self._configure(replace(fresh, angle0=angle_min, step=increment, count=count))
        self._robot._sim._configured[self._robot.name, self.index] = self

    def restore(self) -> None:
        """The rays of the model."""
        self._robot._sim._note("api", SetRays, self._robot.name, self.index, None)
        self._robot._sim._configured.pop((self._robot.name, self.index), None)
        self._configure(laser_bundle(self.spec, self._robot._sim.sensor_noise))

    @property
    def is_read(self) -> bool:
        """Whether somebody takes a scan in every step."""
        return self._robot._sim._devices.is_read(self._key)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Begin or end to take a scan in every step on behalf of `reader`."""
        self._robot._sim._devices.subscribe(self._key, reader, on)

    def read(self) -> LaserScan:
        """The scan of the present state; taken now if no step has taken it. Its arrays are copies: keep as many as you like."""
        scan = self.view()
        return replace(scan, ranges=scan.ranges.copy(), intensities=scan.intensities.copy())

    def view(self) -> LaserScan:
        """The same without copying: its arrays are read-only, and valid until the step after the next (for interfaces)."""
        sim, b = self._robot._sim, self._bundle
        readings = sim._devices.read(sim._engine, self._key)
        return LaserScan(
            stamp=sim.time,
            frame_pose=self.spec.pose,
            angle_min=b.angle0,
            angle_max=b.angle0 + b.step * max(b.count - 1, 0),
            angle_increment=b.step,
            range_min=b.r_min,
            range_max=b.r_max,
            ranges=sim._rounded(readings.ranges),
            intensities=readings.returns,
        )

    @property
    def ranges(self) -> F8:
        """Ranges of `read`, m."""
        return self.read().ranges


class Sonar(Handle):
    """The sonar ring of a robot."""

    def __init__(self, robot: Robot) -> None:
        assert robot.spec.sonar is not None
        self.spec = robot.spec.sonar
        self._robot = robot
        self._key = (robot.name, "sonar", 0)
        bundles = sonar_bundles(self.spec, robot._sim.sensor_noise)
        robot._sim._devices.configure(self._key, robot.name, SONAR_STREAM, Visible.SONAR, bundles)

    @property
    def is_read(self) -> bool:
        """Whether somebody takes readings in every step."""
        return self._robot._sim._devices.is_read(self._key)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Begin or end to take readings in every step on behalf of `reader`."""
        self._robot._sim._devices.subscribe(self._key, reader, on)

    def read(self) -> SonarReadings:
        """Readings of the present state; taken now if no step has taken them. Its array is a copy: keep as many as you like."""
        readings = self.view()
        return replace(readings, ranges=readings.ranges.copy())

    def view(self) -> SonarReadings:
        """The same without copying: its array is read-only, and valid until the step after the next (for interfaces)."""
        sim = self._robot._sim
        ranges = sim._rounded(sim._devices.read(sim._engine, self._key).ranges)
        return SonarReadings(
            stamp=sim.time, range_min=self.spec.range_min, range_max=self.spec.range_max, ranges=ranges
        )

    @property
    def ranges(self) -> F8:
        """Ranges of `read`, m."""
        return self.read().ranges


class FiducialFinder(Handle):
    """A fiducial finder of a robot; it costs nothing while nobody reads it."""

    def __init__(self, robot: Robot, spec: FiducialFinderSpec) -> None:
        self.spec = spec
        self._robot = robot

    def read(self) -> list[Fiducial]:
        """The marks in sight, nearest first, in the present state."""
        return find_fiducials(self._robot._sim._engine, self._robot.name, self.spec)


class BlobFinder(Handle):
    """A blob finder of a robot; it costs nothing while nobody reads it."""

    def __init__(self, robot: Robot, spec: BlobFinderSpec) -> None:
        self.spec = spec
        self._robot = robot

    def read(self) -> list[Blob]:
        """The patches of its colours in its image, from left to right, in the present state."""
        sim = self._robot._sim
        return find_blobs(sim._engine, self._robot.name, self.spec, sim.colors)


class Port:
    """A robot for a protocol's session; implements `botyard.protocols.robotport.RobotPort`."""

    def __init__(self, robot: Robot, source: str) -> None:
        self._robot = robot
        self._source = source
        self._commands = Commands(robot, source)
        self.name = robot.name
        self.spec = robot.spec
        self.electrics = robot.electrics
        self.gripper = robot.gripper
        self.fleet = robot._sim.fleet
        self.n_lasers = len(robot.lasers)

    @property
    def time_us(self) -> int:
        """Simulated time of the last snapshot, µs."""
        return self._robot._sim.snapshot.time_us

    @property
    def timing(self) -> Timing:
        """Step lengths."""
        return self._robot._sim.timing

    @property
    def has_map(self) -> bool:
        """Whether the world has a map."""
        return not self._robot._sim.scene.is_empty

    @property
    def teleports(self) -> int:
        """How often the robot was put somewhere."""
        return self._robot._teleports

    def claim(self) -> None:
        """The session begins: it commands the robot; odometry and limits start afresh."""
        self._robot.claim(self._source)
        self.submit(cmd.SetOdometry())
        self.reset_limits()

    def release(self) -> None:
        """The session ends: the robot is left at rest, motors off, odometry zero, unless another live source commands it."""
        robot = self._robot
        if self._source not in robot._claims:
            return
        robot.release(self._source)
        for laser in robot.lasers:
            laser.restore()
        if not robot._claims:
            for command in (cmd.Halt(), cmd.EnableMotors(False), cmd.SetOdometry()):
                self.submit(command)
            self.reset_limits()

    def submit(self, command: cmd.Command) -> None:
        """Queue a command for the next step."""
        self._commands.submit(command)

    def reset_limits(self) -> None:
        """Queue: speed limits and ramps of the model."""
        limits = self.spec.limits
        self.submit(cmd.RestoreLimits(limits.accel, limits.decel, limits.heading_speed))

    def reset_pose(self) -> None:
        """Queue: back to the start, odometry zero, at rest."""
        self._commands.set_pose(*self._robot.start)
        self.submit(cmd.Halt())
        self.submit(cmd.SetOdometry())

    def set_pose(self, pose: Pose) -> None:
        """Queue: put the robot at a true pose; CommandError if too many stand there."""
        self._robot._sim.crowd.enter(self.name, pose.x, pose.y)
        self._commands.set_pose(*pose)

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue: one coordinate of the true pose; CommandError if too many stand there."""
        if axis < 2:
            x, y = self._robot._sim.crowd.place(self.name)
            self._robot._sim.crowd.enter(self.name, value if axis == 0 else x, value if axis == 1 else y)
        self.submit(cmd.SetPoseAxis(axis, value))

    def state(self) -> RobotState:
        """The robot after the last step."""
        return self._robot.state

    def fix(self) -> Fix | None:
        """GPS reading."""
        return self._robot.gps

    def gripper_state(self) -> GripperState | None:
        """Switches of the gripper."""
        return self._robot.gripper_state

    def digital_inputs(self) -> bytes:
        """Bytes of digital inputs."""
        return self._robot.digital_inputs

    def compass(self) -> float | None:
        """Compass heading, rad clockwise from north."""
        return compass.bearing(self._robot.truth.th) if self.spec.compass else None

    def fiducials(self) -> list[Fiducial]:
        """Marks in sight; none without a finder."""
        finder = self._robot.fiducial_finder
        return [] if finder is None else finder.read()

    def blobs(self) -> list[Blob]:
        """Coloured patches in sight; none without a finder."""
        finder = self._robot.blob_finder
        return [] if finder is None else finder.read()

    def set_ghost(self, on: bool) -> None:
        """Queue: nobody sees or feels the robot, or everybody again."""
        self._robot.ghost(on)

    def set_odometry_errors(self, on: bool) -> None:
        """Queue: errors of odometry on or off."""
        self._commands.odometry_errors(on)

    def press_estop(self, pressed: bool) -> None:
        """The red button."""
        self._robot.press_estop(pressed)

    def describe(self) -> list[str]:
        """The whole state, line by line."""
        return self._robot.describe()

    def subscribe_sonar(self, on: bool) -> None:
        """Begin or end to read the sonar in every step."""
        if self._robot.sonar is not None:
            self._robot.sonar.subscribe(self._source, on)

    def sonar(self) -> SonarReadings | None:
        """Sonar readings of the last step."""
        return None if self._robot.sonar is None else self._robot.sonar.view()

    def configure_laser(self, index: int, angle_min: float, increment: float, count: int) -> None:
        """Set the rays of a laser."""
        self._robot.lasers[index].configure(angle_min, increment, count)

    def subscribe_laser(self, index: int, on: bool) -> None:
        """Begin or end to read a laser in every step."""
        self._robot.lasers[index].subscribe(self._source, on)

    def laser(self, index: int) -> LaserScan:
        """Scan of the last step."""
        return self._robot.lasers[index].view()


def warm_up(before_sensors: Callable[[], object] = lambda: None, *, masses: bool = True) -> None:
    """Compile all kernels, or load them from the cache, by running a small world.

    Parameters
    ----------
    before_sensors : callable
        Called before range sensors are used, for a caller who has them compiled elsewhere at the same time.
    masses : bool
        Also those for bodies with mass.
    """
    sim = Simulation()
    robot = sim.add_robot("p3dx", pose=Pose(2.0, 2.0, 0.0))
    sim.add_robot("box", pose=Pose(3.0, 1.0, 0.0))
    sim.step()
    sim.free_place(robot.spec, Pose(1.0, 1.0, 0.0))
    if masses:
        sim.set_dynamics(robot.name, DynamicsSpec(mass=9.0))
        sim.step()
    before_sensors()
    robot.laser.read()
    sim.replace_scene(Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 4.0]])))


def warm_up_sensors_and_maps() -> None:
    """The part of `warm_up` that another process can do at the same time."""
    warm_up_ranging()
    build_grid(Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0]])))


@lru_cache(maxsize=2)
def _bounds(scene: Scene) -> tuple[float, float, float, float] | None:
    """`Scene.bounds`, which looks at all walls."""
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


def _on_trial(spec: RobotSpec) -> BodySpec:
    """The body with which places for a robot are tried: all that it will need."""
    body = robot_body(spec, " placing ")
    return replace(body, parts=(*body.parts, *open_paddles(spec)))


@cache
def _offsets(rings: int) -> tuple[tuple[int, int], ...]:
    """Steps of a square grid, nearest first; those below first, as the original lines robots up (1 m lower in y each)."""
    offsets = [(i, j) for i in range(-rings, rings + 1) for j in range(-rings, rings + 1)]
    offsets.sort(key=lambda o: (o[0] * o[0] + o[1] * o[1], o[1] > 0, abs(o[0]), o[0]))
    return tuple(offsets)


def _spiral(home: Pose, spacing: float, rings: int = 60) -> Iterator[Pose]:
    """Places of a square grid around `home`, nearest first; the same heading everywhere."""
    for i, j in _offsets(rings):
        yield Pose(home.x + i * spacing, home.y + j * spacing, home.th)
