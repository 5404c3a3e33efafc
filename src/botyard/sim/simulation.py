"""Public API of botyard: a world with robots to step, command and read from Python.

    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    while sim.time < 10:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

Units are SI, axes follow REP-103. The module knows no protocol; `Robot.port` returns
the access of a session (`botyard.model.robotport.RobotPort`). This module makes a
world, steps it and writes it as a scenario. Other groups of methods are in `bodies`,
`population`, `state` and `observation`; all work on one `SimulationCore`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from botyard.api import arguments
from botyard.devices.ranging import RangeDevices
from botyard.devices.worldtables import WORLD_TABLES
from botyard.engine.layout import F8, OdometryErrorMode
from botyard.engine.rng import DEFAULT_SEED
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.errors import NotNowError, WorldError
from botyard.formats.base import Options, Warn
from botyard.formats.budget import Budget
from botyard.formats.registry import load_world
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.processes.parallel import Workers
from botyard.sim.controlled import ControlledRobot
from botyard.sim.episodes import checked_poses
from botyard.sim.fleet import Fleet
from botyard.sim.journal import Settle
from botyard.sim.moved import MOVED
from botyard.sim.notebook import MAX_ROWS, page
from botyard.sim.observation import Observable, png
from botyard.sim.port import Port
from botyard.sim.programs import is_controller
from botyard.sim.simulationcore import SimulationCore
from botyard.sim.worldfiles import populate, world_of

MAX_THREADS = 1024
"""Highest number of threads that a caller can request."""


class Robot(ControlledRobot):
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
    `gripper_state`   further devices, like `gps`, `digital_inputs`, `electrics`;
                      None if the model lacks them
    `go_to`           drives it to a goal around walls; `trip` reports the state
    `set_controller`  lets a controller, class or function drive it without a client
    `state`           all values of its motion; `describe` returns them as text
    ================  ==============================================================

    `name`, `spec` and `start` are its name, model and start pose. `claim`, `release`,
    `port` and `clients` are for interfaces that drive it. After its removal from the
    simulation, each use of the handle raises UnknownNameError.
    """

    def __init__(
        self, simulation: Simulation, name: str, spec: RobotSpec, start: Pose
    ) -> None:
        self._simulation = simulation
        super().__init__(simulation.core, name, spec, start)

    @property
    def simulation(self) -> Simulation:
        """World that contains the robot."""
        # The access raises if the robot was removed.
        self._core.tick  # noqa: B018
        return self._simulation

    def port(self, source: str) -> Port:
        """Return the access of a protocol's session to this robot.

        `source` names the session in the order of commands and in logs.
        """
        return Port(self, source, self.simulation.fleet)

    def _repr_png_(self) -> bytes:
        """Return the picture for notebooks: robot, sensors and surroundings."""
        return png(self.simulation, self.name)


class Simulation(Observable[Robot]):
    """World with its robots.

    Create it (`load`, or `Simulation()` with a scene) and add robots (`add_robot`,
    `add_robots`). Then repeat: read (`Robot.laser`, `Robot.odom`, `fleet` for all at
    once), command (`Robot.command`, `Fleet.command`), `step`. `render` draws the world.

    ============  ==================================================================
    Time          `step`, `run`, `settle`; `time`, `tick`, `dt`; `snapshot`;
                  `before_step` and `after_step` call functions
    Episodes      `reset`, `episode`, `seed`
    Robots        `add_robot`, `add_robots`, `remove_robot`, `remove_robots`,
                  `robots`, `fleet`, `poses`
    Map           `scene`, `replace_scene`, `add_wall`, `add_box`, `remove_box`,
                  `floor`; `cast`, `near_walls`, `random_free_poses`
    Bodies        `put`, `put_back`, `hold`, `attach`, `detach`; `masses`
    States        `save_state`, `restore`, `clone`, `digest`
    Observation   `events`, `history`, `record`, `render`, `show`
    Files         `load`, `save_scenario`, `close`
    ============  ==================================================================

    `core` is the internal API for ports, servers, recording and the page.

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
        Number of threads for rays, and for the motion of 20,000 robots and more; results
        are the same for any number.
    range_step : float
        Step to which ranges are rounded, m; 0: no rounding.
    begin : int
        Number of steps done at the start, which sets the initial time.
    warn : callable, optional
        Receives a line for each probable mistake, such as a robot that starts in a wall.
        Default: Python's `warnings`.

    Raises
    ------
    ArgumentError
        A parameter is out of range or of another type.
    """

    _moved: ClassVar[Mapping[str, str]] = MOVED
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "robot": 'robots["name"] is a robot',
        "map": "scene is the map",
    }
    _instead: ClassVar[Mapping[str, str]] = {
        "scene": "call replace_scene(scene) to put another map under the robots",
        "robots": "call add_robot or remove_robot",
        "floor": "call floor.replace(floor), floor.set_zone or floor.mark",
        "fleet": "call fleet.command, add_robots or remove_robots",
        "poses": "call put(name, pose) for each",
        "masses": "call masses.set_dynamics(name, spec)",
        "time": "call step()",
        "tick": "call step()",
        "dt": "set the step when you make the simulation: Simulation(step=…)",
        "seed": "set the seed when you make the simulation: "
        "Simulation(seed=…), or when you start an episode: reset(seed=…)",
        "episode": "call reset()",
        "sensor_noise": "set it when you make the simulation: "
        "Simulation(sensor_noise=…)",
        "step": "call step(); set its time with Simulation(step=…)",
        "snapshot": "call step() or settle()",
        "core": "a simulation keeps its core",
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
            # `PERFECT` is a property of models, not a mode for users.
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
        # Moves and sensors use the same threads, because they never run at the same time.
        workers = Workers(threads, "step")
        devices = RangeDevices(workers)
        engine = Engine(
            scene,
            seed=seed,
            step_us=round(step * 1e6),
            begin=begin,
            odometry_error_mode=mode,
            tables=tuple(table() for table in WORLD_TABLES),
            senses=(devices,),
            workers=workers,
        )
        core = SimulationCore(
            scene,
            engine,
            devices,
            partial(Robot, self),
            sensor_noise=sensor_noise,
            range_step=range_step,
            warn=warn,
        )
        super().__init__(core)
        vars(self)["fleet"] = Fleet(core)
        self._is_stepping = False

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
            There is no such file, it has errors, or it is too large; names file and line.
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
        populate(sim, world)
        return sim

    def save_scenario(self, path: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the world as a scenario (YAML), and return lines about omissions.

        The scenario refers to the file of the map if the map is unchanged since it was
        read. Otherwise the map is written next to the scenario; it replaces no file
        except the map that the same scenario had before.

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
        # Writers of YAML take long to import.
        from botyard.formats import saving

        return saving.save(
            world_of(self),
            arguments.path(path, "path"),
            overwrite=arguments.flag(overwrite, "overwrite"),
        )

    @property
    def scene(self) -> Scene:
        """Static world."""
        return self.core.scene

    # -- Time

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.core.engine.clock.time

    @property
    def tick(self) -> int:
        """Number of steps done."""
        return self.core.engine.clock.tick

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self.core.engine.clock.dt

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self.core.engine.seed

    @property
    def snapshot(self) -> Snapshot:
        """State after the last step; valid until the step after the next."""
        return self.core.engine.snapshot

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
        core = self.core
        if core.is_ours is not None:
            core.check_thread()
        # The check is written out here, because every step runs it.
        if type(n) is not int or n < 0:
            n = arguments.whole(n, "n", low=0)

        programs, looks = core.programs, self._looks
        if not programs.acts and not looks:
            return core.engine.step(n)
        if self._is_stepping:
            raise NotNowError(
                "a step is in progress: functions that it calls cannot start "
                "another step"
            )

        # A controller that steps would make a step within a step.
        self._is_stepping = True
        try:
            for _ in range(n):
                programs.call()
                looks.notify(core.engine.step())
        # An exception of a controller must not block all later steps.
        finally:
            self._is_stepping = False

        return core.engine.snapshot

    def before_step(self, act: Callable[[], None]) -> Callable[[], None]:
        """Call `act` before every step, for programs that control robots in this process.

        Returns
        -------
        callable
            Ends the calls; does nothing if they have already ended.
        """
        programs = self.core.programs
        programs.add(arguments.function(act, "act"))
        return partial(programs.take_off, act)

    def run(self, seconds: float) -> Snapshot:
        """Advance the world by a simulated time, s, and return its state.

        The time is rounded to whole steps. All steps except the first and the last one
        run in compiled code, unless Python functions must be called (controllers,
        `before_step`, `after_step`, `events`, recordings). `step` with a
        number of steps does the same.

        Raises
        ------
        ArgumentError
            `seconds` is not a number from 0 to 10⁹.
        """
        return self.step(
            round(
                arguments.number(seconds, "seconds", low=0.0, high=1e9, unit="s")
                / self.core.dt
            )
        )

    def close(self) -> None:
        """End everything that belongs to this simulation, and complete its recordings.

        ``with Simulation(…) as sim:`` does so at its end.
        """
        self.core.closing.notify(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def settle(self) -> Snapshot:
        """Apply queued commands and take readings without a step.

        Use it to place bodies while time stands still.
        """
        core = self.core
        core.check_thread()
        core.note(None, Settle)
        return core.engine.settle()

    def reset(
        self, seed: int | None = None, poses: ArrayLike | None = None
    ) -> Snapshot:
        """Start the next episode, and return its first state.

        All bodies are at rest at their starts, odometry and tick are zero, and no
        command waits. Then sensors measure.

        The random draws of an episode are a function of the world's seed and the number
        of the episode. Episode 0 has the draws of a new simulation. `botyard.Worlds`
        numbers its episodes in the same way, with the same draws. `seed` and `episode`
        report the present values. Limits, ramps, odometry errors, holds, ghosts and the
        log of `events` are kept. Pressed stop buttons are released.

        Controllers restart, also crashed ones; functions of `before_step` are still
        called. A controller that cannot restart is logged, and its robot does not move
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
        core = self.core
        if core.is_ours is not None:
            core.check_thread()
        world, number = core.episodes.next(
            None if seed is None else arguments.seed(seed)
        )
        core.begin_episode(
            world,
            number,
            None if poses is None else checked_poses(poses, len(core.robots)),
        )
        return core.engine.snapshot

    @property
    def episode(self) -> int:
        """Number of the present episode, see `reset`.

        It is 0 for a simulation that continued from a state of another one.
        """
        return self.core.episodes.seed_and_number[1]

    @property
    def poses(self) -> F8:
        """Copy of the true poses of all robots in order of creation, (n, 3): m, m, rad."""
        return self.fleet.poses

    def __repr__(self) -> str:
        place, n = self.scene.name or "no map", len(self.core.robots)
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
                poses[: MAX_ROWS + 1], self.core.robots.items(), strict=False
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


__all__ = ["Robot", "Simulation"]
