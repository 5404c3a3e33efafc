"""The public API of botyard: a world with robots in it, to be stepped, commanded and
read from Python.

    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    while sim.time < 10:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

Everything is in SI units and REP-103 axes. Knows no protocol, but `Robot.port` gives a
session what it needs (`botyard.model.robotport.RobotPort`). Here a world begins, is
stepped, written as a scenario and drawn; its other rooms are the modules `core`,
`bodies`, `population` and `state`, whose classes `Simulation` inherits from each other
in this order.
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
"""Threads that can be asked for."""
MAX_PLACED_ONE_BY_ONE = 50
"""Places of more large robots than this are found together, which is faster and leaves
a little more room between them.
"""


class Robot(BaseRobot):
    """A robot in a simulation: commands in, readings out. Made by
    `Simulation.add_robot`.

    Drive it: ``robot.command(v=0.3, w=0.1)``, ``command.move``, ``turn_to``,
    ``turn_by``, ``stop``, ``set_pose``; see `Commands`. All commands take effect at the
    beginning of the next `Simulation.step`.

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
    `set_controller`  a controller, class or function drives it while no client does
    `state`           everything about its motion at once; `describe` says it in words
    ================  ==================================================================================

    `name`, `spec` and `start` say what it is and where it began. `claim`, `release`,
    `port` and `clients` are for interfaces that drive it. After it was removed from its
    simulation, each use of the handle says so (UnknownNameError).
    """

    _sim: Simulation

    @property
    def simulation(self) -> Simulation:
        """The world that it is in."""
        self._sim.tick  # noqa: B018 - raises when it was removed
        return self._sim

    def port(self, source: str) -> Port:
        """The access of a protocol session to this robot; `source` names the session in
        the order of commands and in logs.
        """
        return Port(self, source, self._sim.fleet)

    def set_controller(self, controller: Controlling | None, **options: Any) -> None:
        """Let a controller drive the robot from the next step on, instead of the one so
        far; a client that connects comes first.

        Parameters
        ----------
        controller : str, class, function or None
            Name of one (``wander``, ``walk``, ``follow``, ``waypoints``, ``orca``,
            ``socialforce``, ``dwa``, ``vfh``, ``purepursuit``, those of installed
            packages); ``module:name`` or ``file.py:name``;
            a class, made with ``(robot, seed, **options)`` or ``(robot, **options)``,
            whose ``act()`` is called before every step; a function, called with
            ``(robot, **options)`` before every step. None: it gets no other, and stops.
        **options
            Its options.

        Raises
        ------
        ArgumentError
            It is something else.
        CommandLineError
            There is none of that name.
        WorldError
            An option is unknown, missing, or has an invalid value.
        """
        sim = self.simulation
        if controller is None:
            has_driven = self.name in sim.programs
            sim.end_program(self.name)
            if has_driven and not self.clients:
                self.command.stop()
        else:
            employ(self, program_of(controller, options))
            self.take_over()

    def _repr_png_(self) -> bytes:
        """The picture that notebooks show: the robot with its sensors, and what is
        around it.
        """
        return png(self._sim, self.name)


class Simulation(Restorable[Robot]):
    """A world and its robots.

    Build it (`load`, or `Simulation()` and a scene), add robots (`add_robot`,
    `add_robots`), then in turns: read (`Robot.laser`, `Robot.odom`, `fleet` for all at
    once), command (`Robot.command`, `Fleet.command`), `step`. `render` draws it.

    Parameters
    ----------
    scene : Scene, optional
        The static world; without it, an empty plane.
    seed : int
        Seed of all random draws; the same seed and the same commands give the same run,
        bit for bit.
    step : float
        Simulated time of one step, s (whole microseconds).
    odometry_error : str
        ``random_each_update``, ``random_init``, ``constant`` or ``none``: when odometry
        errors are drawn.
    sensor_noise : bool
        False: sensors are exact.
    threads : int
        Threads that ray casting may use; results are the same for any number.
    range_step : float
        Ranges are rounded to multiples of this, m; 0: exact.
    begin : int
        Initial number of steps done: time begins there.
    warn : callable, optional
        Receives a line for what is possible but probably a mistake, such as a robot
        that begins in a wall; without it, `warnings` do.

    Raises
    ------
    ArgumentError
        A parameter is out of its range or of another type.
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
        "dt": "the step is said when the simulation is made: Simulation(step=…)",
        "seed": "the seed is said when the simulation is made: "
        "Simulation(seed=…), or when an episode begins: reset(seed=…)",
        "episode": "call reset()",
        "sensor_noise": "it is said when the simulation is made: Simulation(sensor_noise=…)",
        "step": "call step(), and say its time when the simulation is made: Simulation(step=…)",
        "snapshot": "call step() or settle()",
        "colors": "a robot's model says its colour",
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
                scene, "scene", Scene, "Simulation.load(name) reads a map of a file"
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
            if mode is OdometryErrorMode.PERFECT:
                raise KeyError(odometry_error)
        except KeyError:
            known = ", ".join(
                m.name.lower()
                for m in OdometryErrorMode
                if m is not OdometryErrorMode.PERFECT
            )
            raise WorldError(
                f'odometry error mode: expected one of {known}, found "{odometry_error}"'
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
        """A simulation of a map, a world file or a scenario, or of a map of the package
        by its name (``office``, ``warehouse``).

        The robots of a world file are in it, and the programs that drive them run.

        Parameters
        ----------
        resolution : float, optional
            Size of a map point, a pixel, a cell or a unit of a drawing whose file does
            not give it, m.
        warn : callable, optional
            Receives a line for everything in the file that was skipped, doubtful or
            assumed, and later the warnings of `Simulation`.
        budget : Budget
            Limits of what is read; ``Budget(cells=10**9)`` raises that one.
        allow_code : bool
            Let the file name controllers as ``module:name`` or ``file.py:name``, which
            are imported and run: only for files that you trust.

        The other parameters are those of `Simulation`; their defaults are what the file
        says.

        Raises
        ------
        FormatError
            No such file, or it is wrong or too large; with file and line.
        ArgumentError
            A parameter is out of its range or of another type.
        CommandLineError
            Code that the file names, and that is allowed, cannot be imported.
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
            is_program=lambda name: is_controller(name, allow_code),
            budget=budget,
        )
        world = load_world(
            map, options if warn is None else replace(options, warn=warn)
        )
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
        """Add the robots of a world, with the programs that drive them; its scene is
        ignored.

        Raises
        ------
        WorldError, CommandError
            A name is taken, a pose is out of bounds, a program does not know an option.
        """
        robots: list[Robot] = []
        for _, several in groupby(
            world.robots, key=lambda p: (id(p.spec), p.pose is None, not p.name)
        ):
            group = list(several)
            poses = [p.pose for p in group if p.pose is not None]
            # many at once are much faster than one by one
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
        for robot, placed in zip(
            robots, world.robots, strict=True
        ):  # after all were added: options of one may name another
            if placed.program is not None:
                employ(robot, placed.program)

        return robots

    def _add_at_home(self, group: Sequence[PlacedRobot]) -> list[Robot]:
        """Add robots of one model on free places around the map's home: as `add_robot`
        does one by one, but faster.
        """
        spec, names = group[0].spec, [p.name for p in group if p.name] or None
        first = self.add_robot(spec, names and names[0])
        places = FreePlaces(self._engine, spec, self.home)
        if not places.is_exact and len(group) <= MAX_PLACED_ONE_BY_ONE:
            return [first, *(self.add_robot(p.spec, p.name or None) for p in group[1:])]
        return [
            first,
            *self.add_robots(spec, places.take(len(group) - 1), names and names[1:]),
        ]

    def world(self) -> World:
        """The present world, to be saved as a scenario: what is in it and where, seed
        and step; without velocities and commands.
        """
        state, rows = self.snapshot.state, self.snapshot.rows

        def pose(name: str) -> Pose:
            return Pose(*state.pose[rows[name]].tolist())

        boxes = tuple(
            replace(
                box,
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
        """Write the present world as a scenario (YAML). Returns lines about what the
        file cannot hold.

        A map that is unchanged since it was read is referred to; another one is written
        beside the scenario, and replaces no file but the map that the same scenario had
        before.

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
        return saving.save(
            self.world(),
            arguments.path(path, "path"),
            overwrite=arguments.flag(overwrite, "overwrite"),
        )

    # -- time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps and return its state, which is valid until the
        step after the next.

        Raises
        ------
        ArgumentError
            `n` is not a whole number of at least 0.
        NotNowError
            It is called within a step: by a controller, or by a function of
            `before_step`.
        """
        if self._is_ours is not None:
            self._check_thread()
        if (
            type(n) is not int or n < 0
        ):  # written out, because this is called in every step
            n = arguments.whole(n, "n", low=0)

        programs, looks = self._programs, self._looks
        if not programs.acts and not looks:
            return self._engine.step(n)
        if self._is_stepping:
            raise NotNowError(
                "a step is being made: what is called in it cannot make another one"
            )

        self._is_stepping = True
        try:
            for _ in range(n):
                programs.call()
                looks.tell(self._engine.step())
        finally:
            self._is_stepping = False

        return self.snapshot

    def drive(self, name: str, act: Callable[[], None], program: Program) -> None:
        """Call `act` before every step, for a program that drives a robot; it replaces
        the robot's program so far.

        UnknownNameError (a KeyError) when there is no robot of that name.
        """
        if name not in self._robots:
            raise arguments.unknown(name, self._robots, "robot")
        arguments.function(act, "act")
        self._programs.drive(name, program, act)

    def rest_program(self, name: str) -> None:
        """Let the program that drives a robot, if there is one, end its subscriptions
        until it is called again.
        """
        self._programs.rest(name)

    def end_program(self, name: str) -> None:
        """End the program that drives a robot, if there is one."""
        self._programs.end(name)

    def crash_program(self, name: str) -> None:
        """End the program that drives a robot, if there is one, until the next `reset`:
        it has raised.
        """
        self._programs.crash(name)

    @property
    def programs(self) -> Mapping[str, Program]:
        """Programs that drive robots while no client does, by the robots' names."""
        return {name: program for name, (program, _) in self._programs.driving.items()}

    def before_step(self, act: Callable[[], None]) -> None:
        """Call `act` before every step: programs that control robots from within."""
        self._programs.add(arguments.function(act, "act"))

    def not_before_step(self, act: Callable[[], None]) -> None:
        """Stop calling `act` before steps; nothing happens if it was not called."""
        self._programs.take_off(act)

    def after_step(self, look: Callable[[Snapshot], object]) -> Callable[[], None]:
        """Call `look` with the snapshot after every step: what looks on and changes
        nothing, such as a recording.

        It is no part of the world: clones do not have it. An exception is logged, and
        ends the calls.

        Returns
        -------
        callable
            Ends the calls.
        """
        return self._looks.add(arguments.function(look, "look"))

    def run(self, seconds: float) -> Snapshot:
        """Advance the world by so much simulated time, s, rounded to whole steps, and
        return its state.

        As long as no Python asks to be called (controllers, `before_step`,
        `after_step`, `events`, recordings), steps are made in compiled code, but for
        the first and the last one; and so does `step` with a number.

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
        """Contacts of robots: who touched what, when and where; logged from the first
        use on, over all episodes. Clones begin anew.
        """
        if self._contacts is None:
            self._contacts = ContactLog(self, self._episodes)
            self.after_step(self._contacts.look)

        return self._contacts

    def close(self) -> None:
        """End what goes on with this simulation: its recordings are completed. ``with
        Simulation(…) as sim:`` does so at its end.
        """
        self._closing.tell(None)

    def on_close(self, act: Callable[[None], object]) -> Callable[[], None]:
        """Call `act` with None when the simulation is closed. Returns a function that
        takes it off.
        """
        return self._closing.add(arguments.function(act, "act"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def history(self) -> History[Simulation]:
        """The last minutes, to look back at and to go on from; off until
        `history.keep()` is called.
        """
        if self._history is None:
            self._history = make_history(self)
        return self._history

    def settle(self) -> Snapshot:
        """Apply queued commands and take readings, without a step: for placing bodies
        while time stands still.
        """
        self._check_thread()
        self._note(None, Settle)
        return self._engine.settle()

    def reset(
        self, seed: int | None = None, poses: ArrayLike | None = None
    ) -> Snapshot:
        """Begin the next episode: all bodies at rest where they began, odometry zero,
        tick 0, no command waiting; then sensors measure.

        The random draws of an episode are a function of the seed of the world and of
        its number: those of episode 0 are those of a new simulation; `botyard.Worlds`
        counts in the same way, bit for bit. `seed` and `episode` say what the present
        one has. Limits, ramps and errors of odometry stay as they were set, and so do
        holds, ghosts and the log of `events`; pressed stop buttons are released.
        Controllers begin anew, also those that have crashed; functions of `before_step`
        are called on. A controller that cannot begin anew is logged, and leaves its
        robot standing until the next reset.

        Parameters
        ----------
        seed : int, optional
            Another seed of the world, whose first episode, 0, begins; without it, the
            number of the episode grows by one.
        poses : (m, 3) array, optional
            Where the m robots begin, in the order of `robots`: m, m, rad; else where
            they were added.

        Raises
        ------
        ArgumentError
            An argument is out of its range or of another shape.
        NotNowError
            The world has grippers, joints, draining batteries or devices that remember
            something: `restore` a state of its beginning instead.
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
        """`reset` for an episode of a number, with poses that are checked."""
        tick = self.tick
        self._episodes.begin(
            world, number, self._starts, self._robots, given, self._holds
        )
        for robot in self._robots.values():
            robot._teleports += 1
        self.feed.tell(Subject.TIME)
        if self._journal.is_read:
            told = (
                None if given is None else tuple(Pose(*row) for row in given.tolist())
            )
            self._journal.note(tick, None, Reset(world, number, told))

        # last: what controllers do when they begin is a part of the new episode, and if
        # one cannot, all else is done
        for name, program in self._programs.again():
            employ(self._robots[name], program, anew=True)
        return self.snapshot

    def _starts(self) -> Mapping[str, Pose]:
        """Where all bodies began, by their names."""
        robots = {name: robot.start for name, robot in self._robots.items()}
        return robots | {
            name: box.pose
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    @property
    def episode(self) -> int:
        """Number of the present episode, see `reset`; of a simulation that went on from
        a state of another one 0.
        """
        return self._episodes.seed_and_number[1]

    @property
    def poses(self) -> F8:
        """True poses of all robots in the order of creation, (n, 3): m, m, rad. A copy."""
        return self.fleet.poses

    # -- pictures

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
            Also write the picture to this file; its suffix is the format.
        area : four numbers, optional
            The part of the world: least x, least y, greatest x, greatest y, m; with
            `follow` two numbers, width and height, m. Without it, all of the world, or
            12 m around the robot.
        follow : str, optional
            Name of the robot that is in the middle.
        trails : float
            Where robots were so long before, s; it is known while the history is on
            (``sim.history.keep()``).
        scans : bool or names of robots
            Beams of the sensors that somebody reads (True), of none (False), or of all
            range sensors of these robots.
        size : int or tuple of two
            Greatest width, or width and height, pixels. With a width alone, the picture
            of a world that is more than four times as high as wide gets narrower, and
            so does one that would have more than 10⁸ pixels.
        theme : str
            ``light`` or ``dark``.
        colors : str
            Robots have the colour of their ``model``, or each ``robot`` has one of its
            own.
        goals : (k, 2) or (k, 3) array
            Further places to mark, as goals of the map are: x, y, m, and a heading,
            rad.
        overwrite : bool
            Replace a file at `path` that botyard did not write.

        Raises
        ------
        ArgumentError
            The size is not from 16 to 20,000 or has more than 10⁸ pixels, the area is
            empty, there is no such theme, trails are asked for without a history, or
            the suffix is of no
            format for pictures.
        UnknownNameError
            There is no robot of this name.
        KeptFileError
            There is a file at `path` that botyard did not write.
        OSError
            It cannot be written.
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
        """What notebooks show: the picture, and a table of the robots."""
        poses = self.fleet.poses.tolist()
        rows = [
            (name, robot.spec.name, *pose, "yes" if robot.stalled else "")
            for pose, (name, robot) in zip(
                poses[: MAX_ROWS + 1], self._robots.items(), strict=False
            )
        ]
        rows += [("", "", "", "", "", "")] * (len(poses) - len(rows))
        title = f"{self.scene.name or 'no map'}, {self.time:.2f} s, seed {self.seed}"
        return page(
            title,
            ("robot", "model", "x, m", "y, m", "heading, rad", "stalled"),
            rows,
            png(self, None),
        )

    def _repr_png_(self) -> bytes:
        """The picture that notebooks show."""
        return png(self, None)

    # -- recordings

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
        """Record what happens from now on to an MCAP file, until the recording is
        closed: ``with sim.record("run.mcap"): …``.

        The file has topics as ROS 2 has them, and all that is needed to repeat the run;
        Foxglove, PlotJuggler and ``ros2 bag`` open it.

        Parameters
        ----------
        path : str or Path
            The file. Further ones have a number behind its name.
        topics : sequence of str, optional
            Patterns of topics, such as ``"/p3dx/*"``; a sensor whose topic is named
            measures for the recording. Without it: odometry, true poses, commands,
            transforms, the map, the log, and scans of lasers that somebody else reads.
        robots : sequence of str
            Patterns of names of robots.
        rate : float or mapping of str to float, optional
            Most messages of a topic for each simulated second, or by patterns of topics
            (the first that fits counts); 0: one for every step. Without it: transforms
            5, odometry and true poses 2, all else 10.
        split_mb, split : float, optional
            Begin another file after so many megabytes (10⁶ bytes), or after so much
            simulated time, s.
        last : float, optional
            Keep only so much simulated time, s, in memory (at most 500 MiB), until
            `Recording.save` writes it.
        on_stall : bool
            Save what is kept two seconds after a robot has stalled, at most 20 times.
        overwrite : bool
            Replace a file that botyard did not write.

        Raises
        ------
        ArgumentError
            A parameter is out of its range or of another type.
        KeptFileError
            There is a file that botyard did not write.
        OSError
            It cannot be written. Later errors end the recording, and nothing else.
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
    """Whether there is a controller of a name; with `allow_code`, code that it names is
    imported and counts.
    """
    raise NotImplementedError


@extension("program_of")
def program_of(controller: object, options: dict[str, Any]) -> Program:
    """The program that a user means by a name, a class, a function or a `Program`; see
    `Robot.set_controller`.
    """
    raise NotImplementedError


@extension("employ")
def employ(robot: Robot, program: Program, *, anew: bool = False) -> None:
    """Let a program drive a robot from the next step on; raises what
    `Simulation.populate` raises.

    With `anew` an episode has begun, and what would be raised is treated as a crash of
    the controller.
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
    """Begin to record a simulation; `choices` are the other arguments of
    `Simulation.record`.
    """
    raise NotImplementedError


@extension("png")
def png(sim: Simulation, robot: str | None) -> bytes:
    """A picture for notebooks, as a PNG file: all of the world, or what is around a
    robot.
    """
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
