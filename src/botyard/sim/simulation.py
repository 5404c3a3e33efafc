"""Public API of botyard: a world with robots to step, command and read from Python.

    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    while sim.time < 10:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

Units are SI, axes follow REP-103. The module knows no protocol; `Robot.port` returns
the access of a session (`botyard.model.robotport.RobotPort`). This module creates a
world, steps it, writes it as a scenario and draws it. `Simulation` inherits the rest
from classes in the modules `core`, `bodies`, `population` and `state`, in this order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.api.extensions import extension
from botyard.api.listeners import Listeners
from botyard.api.revisions import Subject
from botyard.devices.ranging import RangeDevices
from botyard.devices.worldtables import WORLD_TABLES
from botyard.engine.layout import F8, OdometryErrorMode
from botyard.engine.rng import DEFAULT_SEED
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.errors import NotNowError, WorldError
from botyard.formats import saving
from botyard.formats.base import Options, Warn
from botyard.formats.budget import Budget
from botyard.formats.registry import load_world
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import THING, PlacedRobot, Program, Settings, World
from botyard.names import body_name
from botyard.sim.contacts import ContactLog
from botyard.sim.episodes import checked_poses
from botyard.sim.fleet import Fleet
from botyard.sim.history import History, make_history
from botyard.sim.journal import Reset, Settle
from botyard.sim.notebook import MAX_ROWS, page
from botyard.sim.placement import FreePlaces
from botyard.sim.port import Port
from botyard.sim.programs import Controlling
from botyard.sim.recordings import Recording
from botyard.sim.robot import BaseRobot
from botyard.sim.state import Restorable

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger("botyard")

MAX_THREADS = 1024
"""Highest number of threads that a caller can request."""
MAX_PLACED_ONE_BY_ONE = 50
"""Number of large robots above which their places are searched together.

That is faster, and leaves a little more room between them.
"""


class Robot(BaseRobot):
    """Robot in a simulation: commands in, readings out. Made by `Simulation.add_robot`.

    Drive it: ``robot.command(v=0.3, w=0.1)``, ``command.move``, ``turn_to``,
    ``turn_by``, ``stop``, ``set_pose``; see `Commands`. All commands take effect at the
    start of the next `Simulation.step`.

    Read it:

    ================  ==============================================================
    `laser`           first laser: ``robot.laser.read()`` returns a scan,
                      ``robot.laser.ranges`` its ranges, m
    `lasers`          all lasers
    `sonar`           sonar ring, or None: ``robot.sonar.ranges``, m
    `odom`            pose by odometry, with errors, in a frame that starts at the
                      robot's start (OdomPose)
    `truth`           true pose in the world frame (WorldPose); compare it with
                      `odom_in_world`
    `velocity`        in the robot frame: m/s forward and to the left, rad/s
    `stalled`         whether an obstacle blocks it
    `devices`         all devices by name: ``robot.devices["fiducial_finder"].read()``
    `gps`, `gripper_state`, `digital_inputs`, `electrics`
                      further devices; None if the model lacks them
    `set_controller`  lets a controller, class or function drive it without a client
    `state`           all values of its motion; `describe` returns them as text
    ================  ==============================================================

    `name`, `spec` and `start` are its name, model and start pose. `claim`, `release`,
    `port` and `clients` are for interfaces that drive it. After its removal from the
    simulation, each use of the handle raises UnknownNameError.
    """

    _sim: Simulation

    @property
    def simulation(self) -> Simulation:
        """World that contains the robot."""
        # The access raises if the robot was removed.
        self._sim.tick  # noqa: B018
        return self._sim

    def port(self, source: str) -> Port:
        """Return the access of a protocol's session to this robot.

        `source` names the session in the order of commands and in logs.
        """
        return Port(self, source, self._sim.fleet)

    def set_controller(self, controller: Controlling | None, **options: Any) -> None:
        """Let a controller drive the robot from the next step on.

        Clients have priority.

        Parameters
        ----------
        controller : str, class, function or None
            Name of a controller (``wander``, ``walk``, ``follow``, ``waypoints``, ``orca``,
            ``socialforce``, ``dwa``, ``vfh``, ``purepursuit``, or of an installed package);
            ``module:name`` or ``file.py:name``; a class, made with ``(robot, seed, **options)``
            or ``(robot, **options)``, whose ``act()`` is called before every step; a function,
            called with ``(robot, **options)`` before every step. None: remove the controller,
            and stop the robot.
        **options
            Options of the controller.

        Raises
        ------
        ArgumentError
            The controller is none of these.
        CommandLineError
            No controller has that name.
        WorldError
            An option is unknown, missing, or has an invalid value.
        """
        sim = self.simulation
        if controller is None:
            # Without a program the robot may follow the user's own commands: do not
            # stop it.
            has_driven = self.name in sim.programs
            sim.end_program(self.name)
            if has_driven and not self.clients:
                self.command.stop()
        else:
            employ(self, program_of(controller, options))
            self.take_over()

    def _repr_png_(self) -> bytes:
        """Return the picture for notebooks: robot, sensors and surroundings."""
        return png(self._sim, self.name)


class Simulation(Restorable[Robot]):
    """World with its robots.

    Create it (`load`, or `Simulation()` with a scene) and add robots (`add_robot`,
    `add_robots`). Then repeat: read (`Robot.laser`, `Robot.odom`, `fleet` for all at
    once), command (`Robot.command`, `Fleet.command`), `step`. `render` draws the world.

    Parameters
    ----------
    scene : Scene, optional
        Static world. Default: an empty plane.
    seed : int
        Seed of all random draws. The same seed and the same commands give the same run, bit
        for bit.
    step : float
        Simulated time of one step, s (whole microseconds).
    odometry_error : str
        When odometry errors are drawn: ``random_each_update``, ``random_init``,
        ``constant`` or ``none``.
    sensor_noise : bool
        Whether sensors have noise; False: they are exact.
    threads : int
        Number of threads for ray casting; results are the same for any number.
    range_step : float
        Step to which ranges are rounded, m; 0: no rounding.
    begin : int
        Initial number of steps done, at which time starts.
    warn : callable, optional
        Receives a line for each probable mistake, such as a robot that starts in a wall.
        Default: Python's `warnings`.

    Raises
    ------
    ArgumentError
        A parameter is out of range or of another type.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {
        "robot": 'robots["name"] is a robot',
        "map": "scene is the map",
    }
    _instead: ClassVar[Mapping[str, str]] = {
        "scene": "call replace_scene(scene) to put another map under the robots",
        "robots": "call add_robot or remove_robot",
        "fleet": "call fleet.command, add_robots or remove_robots",
        "poses": "call put(name, pose) for each",
        "time": "call step()",
        "tick": "call step()",
        "dt": "set the step when you make the simulation: Simulation(step=…)",
        "seed": "set the seed when you make the simulation: "
        "Simulation(seed=…), or when you start an episode: reset(seed=…)",
        "episode": "call reset()",
        "sensor_noise": "set it when you make the simulation: "
        "Simulation(sensor_noise=…)",
        "step": "call step(); set its time when you make the simulation: "
        "Simulation(step=…)",
        "snapshot": "call step() or settle()",
        "colors": "a robot's model defines its colour",
    }
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
            arguments.instance(
                scene, "scene", Scene, "Simulation.load(name) reads a map from a file"
            )

        seed = arguments.seed(seed)
        step = arguments.number(step, "step", low=1e-6, high=60.0, unit="s")
        sensor_noise = arguments.flag(sensor_noise, "sensor_noise")
        threads = arguments.whole(threads, "threads", low=1, high=MAX_THREADS)
        range_step = arguments.number(range_step, "range_step", low=0.0, unit="m")
        begin = arguments.whole(begin, "begin", low=0)
        arguments.instance(odometry_error, "odometry_error", str)
        try:
            mode = OdometryErrorMode[odometry_error.upper()]
            # It is a property of models, not a mode for users.
            if mode is OdometryErrorMode.PERFECT:
                raise KeyError(odometry_error)
        except KeyError:
            known = ", ".join(
                m.name.lower()
                for m in OdometryErrorMode
                if m is not OdometryErrorMode.PERFECT
            )
            raise WorldError(
                f"odometry error mode: expected one of {known}, "
                f'found "{odometry_error}"'
            ) from None

        scene = scene if scene is not None else Scene()
        devices = RangeDevices(threads)
        engine = Engine(
            scene,
            seed=seed,
            step_us=round(step * 1e6),
            begin=begin,
            odometry_error_mode=mode,
            tables=tuple(table() for table in WORLD_TABLES),
            senses=(devices,),
        )
        super().__init__(
            scene,
            engine,
            devices,
            sensor_noise=sensor_noise,
            range_step=range_step,
            warn=warn,
        )
        object.__setattr__(self, "fleet", Fleet(self))
        # A failing observer would otherwise log an error in each step.
        self._looks = Listeners[Snapshot](log, "steps", ends_failed=True)
        self._history: History[Simulation] | None = None
        self._contacts: ContactLog | None = None
        self._is_stepping = False
        self._closing = Listeners[None](log, "the end of a simulation")

    def _make_robot(self, name: str, spec: RobotSpec, start: Pose) -> Robot:
        return Robot(self, name, spec, start)

    def _set_controller(
        self, robot: Robot, controller: Any, options: Mapping[str, Any]
    ) -> None:
        robot.set_controller(controller, **options)

    def _employ(self, robot: Robot, program: Program) -> None:
        employ(robot, program)

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
        allow_code: bool = False,
    ) -> Simulation:
        """Return a simulation of a map, a world file or a scenario.

        Maps of the package have names (``office``, ``warehouse``). The robots of a
        world file are included, and the programs that drive them run.

        Parameters
        ----------
        resolution : float, optional
            Size of a map point, a pixel, a cell or a unit of a drawing, m, for files that do
            not define it.
        warn : callable, optional
            Receives a line for everything in the file that was skipped, doubtful or assumed,
            and later the warnings of `Simulation`.
        budget : Budget
            Limits for reading the file; ``Budget(cells=10**9)`` raises one of them.
        allow_code : bool
            Whether the file may name controllers as ``module:name`` or ``file.py:name``, which
            are imported and run. Allow it only for files that you trust.

        The other parameters are the parameters of `Simulation`. The file defines their
        defaults.

        Raises
        ------
        FormatError
            There is no such file, or it has errors or is too large; with file and line.
        ArgumentError
            A parameter is out of range or of another type.
        CommandLineError
            Allowed code that the file names cannot be imported.
        """
        arguments.path(map, "map")
        if resolution is not None:
            resolution = arguments.number(
                resolution, "resolution", low=0.0, above=True, unit="m"
            )

        arguments.instance(
            budget,
            "budget",
            Budget,
            "botyard.formats.budget.Budget(cells=10**9) is one",
        )
        allow_code = arguments.flag(allow_code, "allow_code")
        options = Options(
            resolution=resolution,
            # Reading a file must not run code that it names, unless the caller allows
            # it.
            is_program=lambda name: is_controller(name, allow_code),
            budget=budget,
        )
        world = load_world(
            map, options if warn is None else replace(options, warn=warn)
        )
        # An argument of the program takes precedence over the file.
        given: dict[str, Any] = {
            "seed": seed,
            "step": step,
            "odometry_error": odometry_error,
            "sensor_noise": sensor_noise,
            "threads": threads,
        }
        settings: dict[str, Any] = {
            k: getattr(world.settings, k) if v is None else v for k, v in given.items()
        }
        sim = cls(
            world.scene,
            range_step=range_step,
            warn=warn,
            **{k: v for k, v in settings.items() if v is not None},
        )
        sim.populate(world)
        return sim

    def populate(self, world: World) -> list[Robot]:
        """Add the robots of a world with the programs that drive them.

        The scene of the world is ignored.

        Raises
        ------
        WorldError, CommandError
            A name is taken, a pose is out of bounds, or a program does not know an option.
        """
        robots: list[Robot] = []
        for _, several in groupby(
            # Robots of one model with the same kinds of data are added together.
            world.robots,
            key=lambda p: (id(p.spec), p.pose is None, not p.name),
        ):
            group = list(several)
            poses = [p.pose for p in group if p.pose is not None]
            # Adding many robots at once is much faster than one by one.
            if poses and group[0].name:
                robots += self.add_robots(group[0].spec, poses, [p.name for p in group])
            elif not poses and len(group) > 1:
                robots += self._add_at_home(group)
            else:
                robots += [
                    self.add_robot(p.spec, p.name or None, pose=p.pose) for p in group
                ]

        self.unserve(
            [
                r.name
                for r, placed in zip(robots, world.robots, strict=True)
                if not placed.served
            ]
        )
        # All robots must exist first, because options of one may name another.
        for robot, placed in zip(robots, world.robots, strict=True):
            if placed.program is not None:
                employ(robot, placed.program)

        return robots

    def _add_at_home(self, group: Sequence[PlacedRobot]) -> list[Robot]:
        """Add robots of one model at free places around the map's home.

        The result is the same as with `add_robot` one by one, but it is faster.
        """
        spec, names = group[0].spec, [p.name for p in group if p.name] or None
        # The first robot gets the home itself, even if something is there.
        first = self.add_robot(spec, names and names[0])
        places = FreePlaces(self._engine, spec, self.home)
        if not places.is_exact and len(group) <= MAX_PLACED_ONE_BY_ONE:
            return [first, *(self.add_robot(p.spec, p.name or None) for p in group[1:])]
        return [
            first,
            *self.add_robots(spec, places.take(len(group) - 1), names and names[1:]),
        ]

    def world(self) -> World:
        """Return the present world for a scenario file.

        It has bodies with their poses, seed and step, but neither velocities nor
        commands.
        """
        state, rows = self.snapshot.state, self.snapshot.rows

        def pose(name: str) -> Pose:
            return Pose(*state.pose[rows[name]].tolist())

        boxes = tuple(
            replace(
                box,
                # The original name survives, although the body's name may be a
                # shortened form.
                name=box.name if name == body_name(box.name) else name,
                pose=pose(name),
            )
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        )
        programs = self.programs
        robots = tuple(
            PlacedRobot(
                spec=robot.spec,
                name=name,
                pose=pose(name),
                program=programs.get(name),
                # Clients cannot connect to moving objects (things).
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
                f"{len(self.described.joints)} joints and "
                f"{len(self.described.sensors)} sensors of description files are left out; "
                "their bodies are written as obstacles"
            ]

        scene = replace(self.scene, boxes=boxes)
        return World(
            scene=scene, robots=robots, settings=settings, beside=tuple(beside)
        )

    def save_scenario(self, path: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the world as a scenario (YAML), and return lines about omissions.

        The scenario refers to a map that is unchanged since it was read. Another map is
        written next to the scenario. It replaces no file except the map that the same
        scenario had before.

        Parameters
        ----------
        path : str or Path
            File to write.
        overwrite : bool
            Also replace a file that botyard did not write.

        Raises
        ------
        KeptFileError
            The file exists, and botyard did not write it.
        WorldFileError
            The file cannot be written.
        """
        return saving.save(
            self.world(),
            arguments.path(path, "path"),
            overwrite=arguments.flag(overwrite, "overwrite"),
        )

    # -- Time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps and return its state.

        The state is valid until the step after the next.

        Raises
        ------
        ArgumentError
            `n` is not a whole number of at least 0.
        NotNowError
            The call comes from within a step: from a controller or a function of `before_step`.
        """
        if self._is_ours is not None:
            self._check_thread()
        # The check is written out here, because every step runs it.
        if type(n) is not int or n < 0:
            n = arguments.whole(n, "n", low=0)

        programs, looks = self._programs, self._looks
        if not programs.acts and not looks:
            return self._engine.step(n)
        if self._is_stepping:
            raise NotNowError(
                "a step is in progress: functions that it calls cannot make another one"
            )

        # A controller that steps would make a step within a step.
        self._is_stepping = True
        try:
            for _ in range(n):
                programs.call()
                looks.tell(self._engine.step())
        # An exception of a controller must not block all later steps.
        finally:
            self._is_stepping = False

        return self.snapshot

    def drive(self, name: str, act: Callable[[], None], program: Program) -> None:
        """Call `act` before every step for a program that drives a robot.

        It replaces the robot's present program. Raise UnknownNameError (a KeyError) if
        no robot has that name.
        """
        if name not in self._robots:
            raise arguments.unknown(name, self._robots, "robot")
        arguments.function(act, "act")
        self._programs.drive(name, program, act)

    def rest_program(self, name: str) -> None:
        """End the sensor subscriptions of a robot's program until its next call."""
        self._programs.rest(name)

    def end_program(self, name: str) -> None:
        """End the program that drives a robot, if there is one."""
        self._programs.end(name)

    def crash_program(self, name: str) -> None:
        """End a robot's crashed program, if there is one, until the next `reset`."""
        self._programs.crash(name)

    @property
    def programs(self) -> Mapping[str, Program]:
        """Programs that drive robots while no client does, by name of the robot."""
        return {name: program for name, (program, _) in self._programs.driving.items()}

    def before_step(self, act: Callable[[], None]) -> None:
        """Call `act` before every step, for programs that control robots from within."""
        self._programs.add(arguments.function(act, "act"))

    def not_before_step(self, act: Callable[[], None]) -> None:
        """Stop calling `act` before steps. Does nothing if it is not called."""
        self._programs.take_off(act)

    def after_step(self, look: Callable[[Snapshot], object]) -> Callable[[], None]:
        """Call `look` with the snapshot after every step.

        For observers that change nothing, such as a recording. They are not a part of
        the world, and clones do not have them. An exception is logged, and ends the
        calls.

        Returns
        -------
        callable
            Ends the calls.
        """
        return self._looks.add(arguments.function(look, "look"))

    def run(self, seconds: float) -> Snapshot:
        """Advance the world by a simulated time, s, and return its state.

        The time is rounded to whole steps. All steps except the first and the last one
        run in compiled code, unless Python functions must be called (controllers,
        `before_step`, `after_step`, `events`, recordings). The same holds for `step`
        with a number.

        Raises
        ------
        ArgumentError
            `seconds` is not a number from 0 to 10⁹.
        """
        return self.step(
            round(
                arguments.number(seconds, "seconds", low=0.0, high=1e9, unit="s")
                / self.dt
            )
        )

    @property
    def events(self) -> ContactLog:
        """Contacts of robots with time, place and partner.

        They are logged from the first use on, over all episodes. Clones start a new
        log.
        """
        # The log costs time in each step, so that it starts with its first use.
        if self._contacts is None:
            self._contacts = ContactLog(self, self._episodes)
            self.after_step(self._contacts.look)

        return self._contacts

    def close(self) -> None:
        """End everything that belongs to this simulation, and complete its recordings.

        ``with Simulation(…) as sim:`` does so at its end.
        """
        self._closing.tell(None)

    def on_close(self, act: Callable[[None], object]) -> Callable[[], None]:
        """Call `act` with None when the simulation is closed.

        Returns a function that removes `act`.
        """
        return self._closing.add(arguments.function(act, "act"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def history(self) -> History[Simulation]:
        """The last minutes, to look back at and to continue from.

        It is off until `history.keep()` is called.
        """
        if self._history is None:
            self._history = make_history(self)
        return self._history

    def settle(self) -> Snapshot:
        """Apply queued commands and take readings without a step.

        For placing bodies while time stands still.
        """
        self._check_thread()
        self._note(None, Settle)
        return self._engine.settle()

    def reset(
        self, seed: int | None = None, poses: ArrayLike | None = None
    ) -> Snapshot:
        """Start the next episode, and return its first state.

        All bodies are at rest at their starts, odometry and tick are zero, and no
        command waits. Then sensors measure.

        The random draws of an episode are a function of the world's seed and the number
        of the episode. Episode 0 has the draws of a new simulation. `botyard.Worlds`
        counts in the same way, bit for bit. `seed` and `episode` report the present
        values. Limits, ramps and errors of odometry keep their values, and so do holds,
        ghosts and the log of `events`. Pressed stop buttons are released.

        Controllers restart, also crashed ones; functions of `before_step` are called
        on. A controller that cannot restart is logged, and its robot does not move
        until the next reset.

        Parameters
        ----------
        seed : int, optional
            Another seed of the world, whose episode 0 starts. Without it, the number of the
            episode grows by one.
        poses : (m, 3) array, optional
            Start poses of the m robots in the order of `robots`: m, m, rad. Default: the poses
            at which they were added.

        Raises
        ------
        ArgumentError
            An argument is out of range or of another shape.
        NotNowError
            The world has grippers, joints, draining batteries or devices with a memory:
            `restore` a state of its start instead.
        """
        if self._is_ours is not None:
            self._check_thread()
        world, number = self._episodes.next(
            None if seed is None else arguments.seed(seed)
        )
        return self._begin_episode(
            world,
            number,
            None if poses is None else checked_poses(poses, len(self._robots)),
        )

    def _begin_episode(self, world: int, number: int, given: F8 | None) -> Snapshot:
        """Start the episode of a number with checked poses; see `reset`."""
        tick = self.tick
        self._episodes.begin(
            world, number, self._starts, self._robots, given, self._holds
        )
        for robot in self._robots.values():
            # Clients see the start of an episode as a placement.
            robot._teleports += 1
        self.feed.tell(Subject.TIME)
        if self._journal.is_read:
            told = (
                None if given is None else tuple(Pose(*row) for row in given.tolist())
            )
            self._journal.note(tick, None, Reset(world, number, told))

        # Last: commands of restarting controllers belong to the new episode, and the
        # episode is complete even if a controller fails.
        for name, program in self._programs.again():
            employ(self._robots[name], program, anew=True)
        return self.snapshot

    def _starts(self) -> Mapping[str, Pose]:
        """Return the start poses of all bodies by name."""
        robots = {name: robot.start for name, robot in self._robots.items()}
        return robots | {
            name: box.pose
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    @property
    def episode(self) -> int:
        """Number of the present episode, see `reset`.

        It is 0 for a simulation that continued from a state of another one.
        """
        return self._episodes.seed_and_number[1]

    @property
    def poses(self) -> F8:
        """True poses of all robots in order of creation, (n, 3): m, m, rad. A copy."""
        return self.fleet.poses

    # -- Pictures

    def render(
        self,
        path: str | Path | None = None,
        *,
        area: Sequence[float] | None = None,
        follow: str | None = None,
        trails: float = 0.0,
        scans: bool | str | Sequence[str] = True,
        size: int | tuple[int, int] = 1000,
        theme: str = "light",
        colors: str = "model",
        goals: ArrayLike = (),
        overwrite: bool = False,
    ) -> Image:
        """Draw the world from above, as the page shows it.

        Parameters
        ----------
        path : str or Path, optional
            File to which the picture is also written; its suffix selects the format.
        area : four numbers, optional
            Part of the world: least x, least y, greatest x, greatest y, m; with `follow` two
            numbers, width and height, m. Default: the whole world, or 12 m around the robot.
        follow : str, optional
            Name of the robot in the centre.
        trails : float
            Length of trails, s; needs the history (``sim.history.keep()``).
        scans : bool or names of robots
            Beams of sensors with a reader (True), of no sensor (False), or of all range sensors
            of these robots.
        size : int or tuple of two
            Greatest width, or width and height, pixels. With a width alone, the picture gets
            narrower if the world is more than four times as high as wide, or if the picture
            would have more than 10⁸ pixels.
        theme : str
            ``light`` or ``dark``.
        colors : str
            Whether robots have the colour of their ``model``, or each ``robot`` its own.
        goals : (k, 2) or (k, 3) array
            Further places to mark like goals of the map: x, y, m, and a heading, rad.
        overwrite : bool
            Also replace a file at `path` that botyard did not write.

        Raises
        ------
        ArgumentError
            The size is not from 16 to 20,000 or has more than 10⁸ pixels, the area is empty,
            the theme is unknown, trails are requested without a history, or the suffix belongs
            to no picture format.
        UnknownNameError
            No robot has this name.
        KeptFileError
            The file at `path` exists, and botyard did not write it.
        OSError
            The file cannot be written.
        """
        options = {
            "area": area,
            "follow": follow,
            "trails": trails,
            "scans": scans,
            "size": size,
            "theme": theme,
            "colors": colors,
            "goals": goals,
        }
        return render(
            self,
            None if path is None else arguments.path(path, "path"),
            options,
            overwrite,
        )

    def __repr__(self) -> str:
        place, n = self.scene.name or "no map", len(self._robots)
        return (
            f"<Simulation: {place}, {n} robot{'' if n == 1 else 's'}, time "
            f"{self.time:g} s, seed {self.seed}>"
        )

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: the picture, and a table of the robots."""
        poses = self.fleet.poses.tolist()
        rows = [
            (name, robot.spec.name, *pose, "yes" if robot.stalled else "")
            for pose, (name, robot) in zip(
                poses[: MAX_ROWS + 1], self._robots.items(), strict=False
            )
        ]
        # Empty rows are only counted, see `notebook.page`.
        rows += [("", "", "", "", "", "")] * (len(poses) - len(rows))
        title = f"{self.scene.name or 'no map'}, {self.time:.2f} s, seed {self.seed}"
        return page(
            title,
            ("robot", "model", "x, m", "y, m", "heading, rad", "stalled"),
            rows,
            png(self, None),
        )

    def _repr_png_(self) -> bytes:
        """Return the picture for notebooks."""
        return png(self, None)

    # -- Recordings

    def record(
        self,
        path: str | Path,
        *,
        topics: Sequence[str] | None = None,
        robots: Sequence[str] = ("*",),
        rate: float | Mapping[str, float] | None = None,
        split_mb: float | None = None,
        split: float | None = None,
        last: float | None = None,
        on_stall: bool = False,
        overwrite: bool = False,
    ) -> Recording:
        """Record from now on to an MCAP file until the recording is closed.

        Use it as ``with sim.record("run.mcap"): …``. The file has topics as in ROS 2,
        and all data needed to repeat the run. Foxglove, PlotJuggler and ``ros2 bag``
        open it.

        Parameters
        ----------
        path : str or Path
            File to write. Further files have a number after its name.
        topics : sequence of str, optional
            Patterns of topics, such as ``"/p3dx/*"``; a sensor whose topic is named measures
            for the recording. Default: odometry, true poses, commands, transforms, the map, the
            log, and scans of lasers that have another reader.
        robots : sequence of str
            Patterns of robot names.
        rate : float or mapping of str to float, optional
            Highest number of messages per topic and simulated second, or by pattern of topics
            (the first match counts); 0: one for every step. Default: transforms 5, odometry and
            true poses 2, the rest 10.
        split_mb, split : float, optional
            Size, megabytes (10⁶ bytes), or simulated time, s, after which another file starts.
        last : float, optional
            Simulated time, s, that is kept in memory (at most 500 MiB) until `Recording.save`
            writes it.
        on_stall : bool
            Save the kept data two seconds after a robot has stalled, at most 20 times.
        overwrite : bool
            Also replace a file that botyard did not write.

        Raises
        ------
        ArgumentError
            A parameter is out of range or of another type.
        KeptFileError
            The file exists, and botyard did not write it.
        OSError
            The file cannot be written. Later errors end the recording, and nothing else.
        """
        return record(
            self,
            arguments.path(path, "path"),
            {
                "topics": topics,
                "robots": robots,
                "rate": rate,
                "split_mb": split_mb,
                "split": split,
                "last": last,
                "on_stall": on_stall,
                "overwrite": overwrite,
            },
        )


@extension("is_controller")
def is_controller(name: str, allow_code: bool = False) -> bool:
    """Return whether a controller of that name exists.

    With `allow_code`, code that the name refers to is imported and counts.
    """
    raise NotImplementedError


@extension("program_of")
def program_of(controller: object, options: dict[str, Any]) -> Program:
    """Return the program for a name, a class, a function or a `Program`.

    See `Robot.set_controller`.
    """
    raise NotImplementedError


@extension("employ")
def employ(robot: Robot, program: Program, *, anew: bool = False) -> None:
    """Let a program drive a robot from the next step on.

    Raise the errors of `Simulation.populate`. With `anew`, an episode has just started,
    and errors are treated as a crash of the controller.
    """
    raise NotImplementedError


@extension("render")
def render(
    sim: Simulation,
    path: str | Path | None,
    options: Mapping[str, Any],
    overwrite: bool,
) -> Image:
    """Draw a simulation, and write the picture to a file; see `Simulation.render`."""
    raise NotImplementedError


@extension("record")
def record(sim: Simulation, path: str | Path, choices: Mapping[str, Any]) -> Recording:
    """Start to record a simulation.

    `choices` are the other arguments of `Simulation.record`.
    """
    raise NotImplementedError


@extension("png")
def png(sim: Simulation, robot: str | None) -> bytes:
    """Return a PNG picture for notebooks: the whole world, or a robot's surroundings."""
    raise NotImplementedError


__all__ = [
    "Controlling",
    "Robot",
    "Simulation",
    "employ",
    "is_controller",
    "png",
    "program_of",
    "record",
    "render",
]
