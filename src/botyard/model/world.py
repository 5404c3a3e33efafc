"""Description of a complete world, as a world file holds it.

A world has a scene, robots and moving objects, their controllers, and settings of the
simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.geometry import Outline, Pose
from botyard.model.kinematics import Axes, Drive, MotionLimits
from botyard.model.obstacles import Returns, rectangle
from botyard.model.parameters import parameter
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.scene import Scene

THING: Final = "thing"
"""Model name of moving objects, to which no client can connect."""
ODOMETRY_ERRORS: Final = ("random_each_update", "random_init", "constant", "none")
"""Modes of drawing odometry errors, see `botyard.Simulation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Controller of a robot by name, with its options.

    Attributes
    ----------
    name : str
        Name of the controller, for example ``wander``.
    options : mapping of str to value
        Options of the controller.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRobot:
    """Robot in a world, with its start pose and controller.

    Attributes
    ----------
    spec : RobotSpec
        Model of the robot.
    name : str
        Name of the robot; empty: derived from the name of its model.
    pose : Pose or None
        True start pose; None: a free place at the map's home.
    program : Program or None
        Controller that drives the robot while no client does.
    served : bool
        Whether clients can connect to the robot.
    """

    spec: RobotSpec
    name: str = ""
    pose: Pose | None = None
    program: Program | None = None
    served: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulation; None leaves the choice to the user or the program.

    Attributes
    ----------
    seed : int or None
        Seed of all random draws.
    step : float or None
        Simulated time of a step, s.
    speed : float or None
        Simulated time per wall time; 0: as fast as possible.
    duration : float or None
        Simulated time after which the run ends, s.
    paused : bool
        Whether the simulation starts paused.
    odometry_error : str or None
        Mode of drawing odometry errors, see `botyard.Simulation`.
    sensor_noise : bool or None
        Whether range sensors have errors.
    threads : int or None
        Largest number of threads for range sensors.
    """

    seed: int | None = parameter(None, low=MIN_SEED, high=MAX_SEED)
    step: float | None = parameter(None, unit="s", low=1e-6, high=60.0)
    # Bounds are the same as for the options of the command line.
    speed: float | None = parameter(None, low=0.0, high=1000.0)
    duration: float | None = parameter(None, unit="s", low=1e-6, high=1e9)
    paused: bool = parameter(False, is_brief=True)
    odometry_error: str | None = parameter(
        None, words={word: word for word in ODOMETRY_ERRORS}
    )
    sensor_noise: bool | None = None
    threads: int | None = parameter(None, low=1, high=256)


MAX_PATHS: Final = 200
"""Largest number of sector paths of a run of traffic."""
MAX_PATH_POINTS: Final = 200
"""Largest number of points of a sector path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectorPaths:
    """Run of robots on sector paths, which starts with the world.

    Attributes
    ----------
    paths : tuple of (str, tuple of (x, y))
        Name of each robot, and the points of its path from where it stands, m.
    supervisor : str
        Name of the supervisor.
    speed : float
        Highest speed of the robots, m/s.
    """

    paths: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    supervisor: str = "bankers"
    speed: float = 0.65


# A world contains arrays, which have no plain equality.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Contents of a world file or a scenario; a map file gives a world without robots.

    Attributes
    ----------
    scene : Scene
        Map and objects.
    robots : tuple of PlacedRobot
        Robots and moving objects, in the order in which ports are assigned.
    settings : Settings
        Settings of the simulation.
    options : mapping of str to value
        Command-line options of the run, by their long names
        (`botyard.formats.worldoptions`).
    traffic : SectorPaths or None
        Run of robots on sector paths.
    beside : tuple of str
        Notes about parts of a running world that this description cannot hold.
    """

    scene: Scene
    robots: tuple[PlacedRobot, ...] = ()
    settings: Settings = Settings()
    options: Mapping[str, Any] = field(default_factory=dict)
    traffic: SectorPaths | None = None
    beside: tuple[str, ...] = ()


def thing(
    outline: Outline | None = None,
    *,
    parts: tuple[Outline, ...] = (),
    color: str = "sandy brown",
    returns: Returns = Returns(),
    max_speed: float = 2.0,
    max_turn: float = 3.0,
) -> RobotSpec:
    """Return the model of a moving object, which is omnidirectional and has perfect odometry.

    Its speed changes without acceleration limits.

    Parameters
    ----------
    outline, parts : outlines
        Body, m; by default a square of 0.5 m.
    color : str
        X11 colour name or ``#rrggbb``.
    returns : Returns
        Visibility.
    max_speed, max_turn : float
        Top speeds, m/s and rad/s.
    """
    # Accelerations of zero mean "no limit". The watchdog is off, because no client
    # sends the commands that it waits for.
    fast = Axes(max_speed, max_speed, max_turn)
    return RobotSpec(
        name=THING,
        color=color,
        drive=Drive.OMNI,
        outline=outline or rectangle(0.5, 0.5),
        parts=parts,
        limits=MotionLimits(
            max_speed=fast, accel=Axes(), decel=Axes(), top_accel=Axes()
        ),
        perfect_odometry=True,
        pioneer=PioneerSpec(subclass=THING, watchdog=0.0),
        returns=returns,
    )


__all__ = [
    "MAX_PATHS",
    "MAX_PATH_POINTS",
    "THING",
    "PlacedRobot",
    "Program",
    "SectorPaths",
    "Settings",
    "World",
    "thing",
]
