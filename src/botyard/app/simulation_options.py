"""Options of the world, its robots and its time."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.app.declaration import (
    ERROR_MODES,
    MAX_READ_HELP,
    ROBOTS,
    TIME,
    WORLD,
    option,
)
from botyard.app.kinds import (
    Flag,
    LimitText,
    OneOf,
    OptionText,
    Real,
    RobotChoice,
    RobotText,
    StartText,
    Whole,
)
from botyard.geometry import Pose


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Options of the world, its robots and its time.

    For the units see `botyard.app.options.RunOptions`.
    """

    map_argument: str | None = option(
        WORLD, world=False, serve=False, instead="Simulation.load", metavar="[MAP]"
    )

    # -- World
    config: str | None = option(
        WORLD,
        "--config",
        world=False,
        serve=False,
        metavar="FILE",
        help="Read options from a YAML file, by long name; options on the "
        "command line take precedence.",
    )
    print_config: bool = option(
        WORLD,
        "--print-config",
        kind=Flag(),
        world=False,
        serve=False,
        help="Print all effective options with the origin of each value, and exit.",
    )
    map: str | None = option(
        WORLD,
        "-m",
        "--map",
        # Single-dash spellings are from AMRISim, whose scripts must run unchanged. New
        # options have two dashes only.
        "-map",
        world=False,
        serve=False,
        instead="Simulation.load",
        metavar="FILE",
        help='Map, world or scenario file of any format (see "botyard convert --help"), the name of a shipped map, or a ROS topic: '
        "ros:/map.",
    )
    stageworld: str | None = option(
        WORLD,
        "-W",
        "--stageworld",
        "-stageworld",
        world=False,
        serve=False,
        instead="Simulation.load",
        metavar="FILE",
        help="World file of Stage, from which only walls, objects and robots are read.",
    )
    nomap: bool = option(
        WORLD,
        "--nomap",
        "-nomap",
        kind=Flag(),
        world=False,
        serve=False,
        instead="Simulation()",
        help="No map: an empty plane.",
    )
    resolution: float | None = option(
        WORLD,
        "--resolution",
        "-resolution",
        kind=Whole(1, 100000, unit=0.001),
        world=False,
        serve=True,
        metavar="MM",
        help="Size of map points, pixels, cells or drawing units, if the file "
        "does not define it. [default: 20 for points]",
        about="Size of points, pixels, cells or drawing units in maps that are "
        "loaded later, if the file does not define it.",
    )
    max_read: tuple[str, ...] = option(
        WORLD,
        "--max-read",
        kind=LimitText(),
        many=True,
        world=False,
        serve=True,
        metavar="NAME=NUMBER",
        help=MAX_READ_HELP,
    )
    lines_chunksize: int = option(
        WORLD,
        "--lines-chunksize",
        "-lines-chunksize",
        kind=Whole(1),
        default=10000,
        world=False,
        serve=True,
        metavar="N",
        help="Number of map lines to read at a time while the simulation runs.",
    )
    points_chunksize: int = option(
        WORLD,
        "--points-chunksize",
        "-points-chunksize",
        kind=Whole(1),
        default=100000,
        world=False,
        serve=True,
        metavar="N",
        help="Number of map points to read at a time while the simulation runs.",
    )
    adf: tuple[str, ...] = option(
        WORLD,
        "--adf",
        many=True,
        world=False,
        serve=False,
        instead="Simulation.core.describe",
        metavar="FILE",
        help="Add the bodies, joints and sensors of an AMBF description file to "
        "the world. Repeatable.",
    )
    save_scenario: str | None = option(
        WORLD,
        "--save-scenario",
        world=False,
        serve=False,
        instead="Simulation.save_scenario",
        metavar="FILE",
        help="Save the world at the end of the run as a scenario, which can be run again.",
    )
    snapshot: str | None = option(
        WORLD,
        "--snapshot",
        world=False,
        serve=False,
        instead="Simulation.render",
        metavar="FILE",
        help="Save a picture of the world at the end of the run; the suffix selects the format.",
    )
    force: bool = option(
        WORLD,
        "--force",
        kind=Flag(),
        world=False,
        serve=True,
        help="Allow --snapshot, --save-scenario, --record and --record-packets "
        "to replace files that botyard did not write.",
        about="Allow `record` and `record_packets` to replace files that botyard did not write.",
    )

    # -- Robots
    robots: tuple[RobotChoice, ...] = option(
        ROBOTS,
        "-r",
        "--robot",
        "-robot",
        kind=RobotText(),
        many=True,
        world=False,
        serve=True,
        help='Add a robot of this model (see "botyard models"), optionally with a name. Repeatable. [default: p3dx]',
        about="Add these robots to the world; by default, a robot is named after its model.",
    )
    factories: tuple[str, ...] = option(
        ROBOTS,
        "-R",
        "--robot-factory",
        "-robot-factory",
        many=True,
        world=True,
        serve=True,
        metavar="MODEL",
        help="Create a robot of this model for each client that connects; remove "
        "it when the client leaves. Repeatable.",
        about="Create a robot of this model for each client that connects; "
        "remove it when the client leaves.",
    )
    start: tuple[Pose | str, ...] = option(
        ROBOTS,
        "--start",
        "-start",
        kind=StartText(),
        many=True,
        world=True,
        serve=True,
        metavar="X,Y,TH|outside|random",
        help="Start pose of the first robot: mm, mm, degrees; 2 m outside of the "
        "map; or a random free place. Repeatable: the nth value is for the nth "
        "robot; the remaining robots stand next to the last one.",
        about="Start pose of the first of `robots`; 2 m outside of the map; or a "
        "random free place. Of several values, the nth is for the nth robot; the "
        "remaining robots stand next to the last one.",
    )
    controller: str | None = option(
        ROBOTS,
        "--controller",
        world=True,
        serve=True,
        metavar="NAME",
        help="Controller of all robots that no client commands: wander, walk, "
        "follow, waypoints, go_to, orca, socialforce, dwa, vfh, purepursuit, or "
        "module:name or file.py:name.",
    )
    controller_option: tuple[str, ...] = option(
        ROBOTS,
        "--controller-option",
        kind=OptionText(),
        many=True,
        world=False,
        serve=True,
        metavar="NAME=VALUE",
        help="Option of this controller: speed=0.4, order=once, points=[[0,0],[4,0]]. Repeatable.",
    )
    allow_code: bool = option(
        ROBOTS,
        "--allow-code",
        kind=Flag(),
        world=False,
        serve=False,
        instead="Simulation.load",
        help="Allow the map or scenario to name controllers as module:name or "
        "file.py:name, which are imported and run. Only for files that you trust.",
    )
    joystick: str | None = option(
        ROBOTS,
        "--joystick",
        world=False,
        serve=False,
        instead="robot.electrics.joystick",
        metavar="NAME",
        help="Use the keys of this terminal as the joystick of this robot. Its "
        "client can read the joystick, or let it drive the robot (JOYDRIVE).",
    )
    robot_name: str = option(
        ROBOTS,
        "--robot-name",
        # Clients show this name, and some programs decide by it whether they talk to a
        # simulator.
        default="AMRISim",
        world=True,
        serve=True,
        help="Name that robots report to clients; some clients expect MobileSim.",
    )
    simulate_batteries: bool = option(
        ROBOTS,
        "--simulate-batteries",
        kind=Flag(),
        world=True,
        serve=True,
        help="Simulate draining batteries, and charging on docks, for all models.",
    )
    gripper_layout: str = option(
        ROBOTS,
        "--gripper-layout",
        kind=OneOf("aria", "p2os"),
        default="aria",
        world=True,
        serve=True,
        help="Layout of the gripper byte in reports.",
    )

    # -- Time and chance
    update_interval: float | None = option(
        TIME,
        "--update-interval",
        "-update-interval",
        kind=Whole(1, 60000, unit=0.001),
        world=True,
        serve="interval",
        metavar="MS",
        help="Wall time between two steps. [default: as in the world file, "
        "otherwise 100; 20 with --ros2 or --zenoh; 5 with --ambf]",
        about="Wall time between two steps; by default `sim.dt`, which is real time.",
    )
    update_sim_time: int | None = option(
        TIME,
        "--update-sim-time",
        "-update-sim-time",
        kind=Whole(1, 60000, unit=0.001),
        world=True,
        serve=False,
        instead="Simulation(step=…)",
        metavar="MS",
        help="Simulated time per step. [default: the update interval]",
    )
    paused: bool = option(
        TIME,
        "--paused",
        kind=Flag(),
        world=False,
        serve=True,
        help="Start paused, until the page, a client or Resume continues.",
        about="Start paused, until `Running.resume`, the page or a client continues.",
    )
    fast: bool = option(
        TIME,
        "--fast",
        kind=Flag(),
        world=True,
        serve=True,
        help="Step as fast as possible instead of in real time.",
    )
    duration: float | None = option(
        TIME,
        "--duration",
        kind=Real(0, above=True),
        world=True,
        serve=True,
        metavar="S",
        help="End after this simulated time.",
    )
    seed: int | None = option(
        TIME,
        "--seed",
        kind=Whole(MIN_SEED, MAX_SEED),
        world=True,
        serve=False,
        instead="Simulation(seed=…)",
        help="Seed of all random numbers; the same seed gives the same run. [default: 1]",
    )
    sensor_noise: str | None = option(
        TIME,
        "--sensor-noise",
        kind=OneOf("stock", "none"),
        world=True,
        serve=False,
        instead="Simulation(sensor_noise=…)",
        help="Noise of range sensors: as in the real devices (stock), or none. [default: stock]",
    )
    odom_error_mode: str | None = option(
        TIME,
        "--odom-error-mode",
        "-odom-error-mode",
        kind=OneOf(*ERROR_MODES),
        world=True,
        serve=False,
        instead="Simulation(odometry_error=…)",
        help="When odometry errors are drawn. [default: as in the world file, "
        "otherwise random_each_update]",
    )
    no_error: bool = option(
        TIME,
        "--no-error",
        "-no-error",
        kind=Flag(),
        world=True,
        serve=False,
        instead='Simulation(odometry_error="none")',
        help="Same as --odom-error-mode none.",
    )
    threads: int | None = option(
        TIME,
        "--threads",
        kind=Whole(1, 256),
        world=True,
        serve=False,
        instead="Simulation(threads=…)",
        help="Number of threads for scans, and for the motion of 20,000 robots and more; "
        "it does not change the results. [default: 1]",
    )


__all__ = ["SimulationOptions"]
