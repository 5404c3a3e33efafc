"""Options of a run: one declaration for command line, ``--config``, `serve` and
reference.

The names are AMRISim's in all spellings (feature table, area CLI). Each field of
`RunOptions` declares the kind of value, the section of the help text, whether a world
file may set it, and whether `botyard.serve` has it: under which keyword, or what a
program uses instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.app.kinds import (
    Flag,
    Host,
    Kind,
    LimitText,
    OneOf,
    OptionText,
    Port,
    Real,
    RobotChoice,
    RobotText,
    StartText,
    Text,
    Whole,
    sequence_of,
)
from botyard.formats.budget import WHAT, Budget
from botyard.geometry import Pose

if TYPE_CHECKING:
    from botyard.formats.base import Options

ERROR_MODES: Final = ("random_each_update", "random_init", "constant", "none")

MAX_READ_HELP: Final = (
    f"Change a limit for reading files: {', '.join(WHAT)}. An "
    "error names the limit that was exceeded. Repeatable."
)

WORLD, ROBOTS, TIME, PIONEER = "World", "Robots", "Time and chance", "Pioneer clients"
ROS, AMBF, PAGE, OPERATION = "ROS", "AMBF's objects", "The page", "Log and operation"
"""Sections of the help text."""

COMMAND_LINE: Final = "only on the command line"
LOGGING: Final = "a program sets up its own logging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declaration of an option.

    Attributes
    ----------
    name : str
        Field of `RunOptions`.
    section : str
        Section of the help text and the reference.
    flags : tuple of str
        Spellings on the command line; empty: the argument of the command.
    kind : Kind
        Kind of the values.
    default : object
        Default value.
    many : bool
        Whether the option may be repeated; its value is then a tuple.
    world : bool
        Whether a world file may set the option (`botyard.formats.worldoptions`). True
        for
        options that describe the world or its pace. Never true for an option that names
        a
        file, address, port or token, that opens or closes something, or that concerns
        the
        log or the page.
    keyword : str, optional
        Keyword of `botyard.serve`.
    negated : bool
        Whether the keyword is the opposite of the option: `page=True` means no
        ``--no-gui``.
    serve_default : object
        Default of the keyword.
    instead : str
        Alternative for programs if there is no keyword, or why they need none.
    metavar, help : str
        Placeholder and help text.
    about : str
        Description of the keyword in the reference, if the help text does not fit.
    bare : object
        Value of the option if the command line gives none.
    hidden : bool
        Whether the option is missing from the help text and configuration files.
    """

    name: str
    section: str
    flags: tuple[str, ...]
    kind: Kind
    default: Any
    many: bool
    world: bool
    keyword: str | None
    negated: bool
    serve_default: Any
    instead: str
    metavar: str | None
    help: str
    about: str
    bare: Any
    hidden: bool

    @property
    def long(self) -> str:
        """Long name, as in configuration files."""
        return next(
            (f[2:].partition("/")[0] for f in self.flags if f.startswith("--")),
            self.name,
        )

    def of(self, value: object) -> Any:
        """Convert a value of the keyword to the option's value.

        None stays None if it is the default.

        Raises
        ------
        ArgumentError
            The value is not valid.
        """
        what = self.keyword or self.name
        # None is valid only where it is the default. Elsewhere it is a mistake that the
        # kind reports with its expected type.
        if value is None and self.default is None:
            return None
        if self.many and self.kind.is_one(value):
            return (self.kind.of(value, what),)
        if self.many:
            return sequence_of(self.kind, value, what)
        found = self.kind.of(value, what)
        # Only Python has positive names: the command line keeps AMRISim's spelling with
        # "no".
        return not found if self.negated else found


_UNSET: Final = object()
_TEXT: Final = Text()


def option(  # noqa: PLR0913 - a parameter for each column of the table of options
    section: str,
    *flags: str,
    world: bool,
    serve: bool | str,
    kind: Kind = _TEXT,
    default: Any = _UNSET,
    many: bool = False,
    negated: bool = False,
    serve_default: Any = _UNSET,
    instead: str = COMMAND_LINE,
    metavar: str | None = None,
    help: str = "",
    about: str = "",
    bare: Any = None,
    hidden: bool = False,
) -> Any:
    """Declare an option of `RunOptions`.

    `serve` is the keyword of `botyard.serve`, True for the name of the field, or False.
    The other parameters are attributes of `Option`. `world` and `serve` have no
    defaults, so that both are decided for each new option.
    """
    # A marker instead of None, because None is a valid default.
    if default is _UNSET:
        default = () if many else False if isinstance(kind, Flag) else None
    declared = {
        "section": section,
        "flags": flags,
        "kind": kind,
        "default": default,
        "many": many,
        "world": world,
        "serve": serve,
        "negated": negated,
        "serve_default": default if serve_default is _UNSET else serve_default,
        "instead": instead,
        "metavar": metavar,
        "help": help,
        "about": about,
        "bare": bare,
        "hidden": hidden,
    }
    return field(default=default, metadata={"option": declared})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run, in the order of the help text.

    Lengths, times and angles have the units of the command line: mm, ms, degrees.
    """

    @property
    def unattended(self) -> bool:
        """Whether there is no user to answer questions (CLI-017, CLI-022)."""
        return self.noninteractive or self.no_gui

    def chosen_robots(self, world_has_some: bool) -> Sequence[RobotChoice]:
        """Return the robots of the command line; by default a P3-DX."""
        # The default robot lets a client connect to a bare map at once. A world with
        # robots, or factories, must not get another one.
        return self.robots or (
            () if self.factories or world_has_some else (RobotChoice("p3dx", None),)
        )

    def reading(self) -> Options:
        """Return the options for reading map files."""
        from botyard.formats.base import (
            # what only asks for help need not load the models of worlds
            Options,
        )

        return Options(
            budget=Budget().raised(self.max_read),
            # Formats of files use metres; options keep the millimetres of AMRISim.
            resolution=None if self.resolution is None else self.resolution / 1000.0,
            lines_chunk=self.lines_chunksize,
            points_chunk=self.points_chunksize,
        )

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
        help="World file of Stage; only its walls, objects and robots.",
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
        "follow, "
        "waypoints, orca, socialforce, "
        "dwa, vfh, purepursuit, or "
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
        help="Use the keys of this terminal as the joystick of this robot; its "
        "client reads it, or lets the robot drive by it (JOYDRIVE).",
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
        help="Noise of range sensors: as of the real devices (stock), or none. [default: stock]",
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
        help="Number of threads for laser scans; it does not change the results. [default: 1]",
    )

    # -- Pioneer clients
    port: int = option(
        PIONEER,
        "-p",
        "--port",
        "-port",
        kind=Port(),
        # The first port of AMRISim and MobileSim, which ARIA's clients try by default.
        default=8101,
        world=False,
        serve=True,
        help="TCP port of the first robot; the other robots use the next ports.",
        about="TCP port of the first robot; the other robots use the next ports. "
        "0: any free port for each robot.",
    )
    bind_to_address: str = option(
        PIONEER,
        "--bind-to-address",
        "-bind-to-address",
        kind=Host(),
        default="127.0.0.1",
        world=False,
        serve=True,
        metavar="ADDRESS",
        help="Listen on this address only; 0.0.0.0: on all.",
    )
    ignore_command: tuple[int, ...] = option(
        PIONEER,
        "--ignore-command",
        "-ignore-command",
        kind=Whole(0, 255),
        many=True,
        world=False,
        serve=True,
        metavar="N",
        help="Ignore Pioneer command number N. Repeatable.",
    )
    warn_unsupported_commands: bool = option(
        PIONEER,
        "--warn-unsupported-commands",
        "-warn-unsupported-commands",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log each unsupported command, not only the first one of each number.",
    )
    compat: str | None = option(
        PIONEER,
        "--compat",
        kind=OneOf("amrisim"),
        world=False,
        serve=False,
        instead="Simulation(range_step=…)",
        help="Also copy habits of the original: use the next port if one is in "
        "use, round ranges to --resolution.",
    )
    srisim_compat: bool = option(
        PIONEER,
        "--srisim-compat",
        "-srisim-compat",
        kind=Flag(),
        world=False,
        serve=True,
        help="Accept the old SRIsim commands 62 (end) and 66–69 (move the robot).",
    )
    no_srisim_laser_compat: bool = option(
        PIONEER,
        "--no-srisim-laser-compat",
        "-no-srisim-laser-compat",
        kind=Flag(),
        world=True,
        serve=True,
        help="Treat commands 35–38 as on real robots (analogue port, gripper), "
        "not as commands of old simulated lasers.",
    )
    read_only: bool = option(
        PIONEER,
        "--read-only",
        kind=Flag(),
        world=False,
        serve=True,
        help="Let clients drive their robots and read everything, but not change "
        "the world: no maps, poses, robots, pauses, ends or files.",
    )
    allow_client_exit: bool = option(
        PIONEER,
        "--allow-client-exit",
        kind=Flag(),
        world=False,
        serve=True,
        help="Also let clients on other computers end the simulation.",
    )
    no_network_discovery: bool = option(
        PIONEER,
        "--no-network-discovery",
        "-no-network-discovery",
        kind=Flag(),
        world=False,
        serve="discovery",
        negated=True,
        serve_default=True,
        help="Do not answer programs that search for robots in the network (UDP port 30718).",
        about="Answer programs that search for robots in the network (UDP port 30718).",
    )
    mdns: bool = option(
        PIONEER,
        "--mdns",
        kind=Flag(),
        world=False,
        serve=True,
        help='Announce the robots by multicast DNS (needs the extra "discovery").',
    )
    map_dir: tuple[str, ...] = option(
        PIONEER,
        "--map-dir",
        many=True,
        world=False,
        serve=True,
        metavar="FOLDER",
        help="Also let clients load maps from this folder. Repeatable.",
    )
    job_time: float = option(
        PIONEER,
        "--job-time",
        kind=Real(0.1, 86400),
        default=30.0,
        world=False,
        serve=True,
        metavar="S",
        help="Time limit of loading a map, or drawing a picture, for a client or the page.",
    )
    job_memory: int = option(
        PIONEER,
        "--job-memory",
        kind=Whole(256, 1048576),
        # Each job is a child process: a file that needs more ends its job, not the
        # simulator.
        default=2048,
        world=False,
        serve=True,
        metavar="MIB",
        help="Memory limit of such a job (Linux).",
    )

    # -- ROS
    ros1: bool = option(
        ROS,
        "--ros1",
        "-ros1",
        kind=Flag(),
        world=False,
        serve=True,
        help="Connect to the ROS 1 master at ROS_MASTER_URI.",
    )
    ros_master: str | None = option(
        ROS,
        "--ros-master",
        world=False,
        serve=True,
        metavar="URI|embedded",
        help="Connect to this ROS 1 master; embedded: start a master in the "
        "simulator (embedded:PORT).",
    )
    ros_names: str = option(
        ROS,
        "--ros-names",
        kind=OneOf("default", "nav2", "amrisim", "stage", "rosaria"),
        default="default",
        world=True,
        serve=True,
        help="Names of topics, services and frames: /<robot>/…, as in Nav2's "
        "bring-up, or as in another program.",
    )
    ros_frames: str | None = option(
        ROS,
        "--ros-frames",
        kind=OneOf("plain", "prefixed"),
        world=True,
        serve=True,
        help="Frames and transforms of each robot in its namespace (plain), or "
        "/tf and frames <robot>/… for all (prefixed). [default: by --ros-names]",
        about="Frames and transforms of each robot in its namespace (plain), or "
        "/tf and frames ``<robot>/…`` for all (prefixed).",
    )
    localization: str = option(
        ROS,
        "--localization",
        kind=OneOf("truth", "none"),
        default="none",
        world=True,
        serve=True,
        help="Source of the robots' map pose: botyard, from the true poses, or "
        "another program such as AMCL or slam_toolbox (none).",
    )
    ros_map: str | None = option(
        ROS,
        "--ros-map",
        kind=OneOf("on", "off"),
        world=True,
        serve=True,
        help="Publish the map, or leave it to a map_server. [default: on; with "
        "--ros-names nav2 only with --localization truth]",
        about="Publish the map, or leave it to a map_server.",
    )
    ros_time: str | None = option(
        ROS,
        "--ros-time",
        kind=OneOf("sim", "wall"),
        world=True,
        serve=True,
        help="Time stamps of messages: simulated time, with /clock, or wall "
        "time. [default: sim; wall with --ros-names amrisim or rosaria]",
    )
    scan_rate: float | None = option(
        ROS,
        "--scan-rate",
        kind=Real(0, 1e6),
        world=True,
        serve=True,
        metavar="HZ",
        help="Publishing rate of laser scans and sonar readings, in simulated "
        "time; 0: each step. [default: by robot model, otherwise 0]",
        about="Publishing rate of laser scans and sonar readings, in simulated time; 0: each step.",
    )
    ros_wait: bool = option(
        ROS,
        "--ros-wait",
        kind=Flag(),
        world=False,
        serve=True,
        help="Wait for a missing ROS master, even with --noninteractive.",
        about="Wait for a missing ROS master, instead of raising an error.",
    )
    ros2: bool = option(
        ROS,
        "--ros2",
        kind=Flag(),
        world=False,
        serve=True,
        help="Join ROS 2 over DDS, in the domain and range given by "
        "ROS_DOMAIN_ID and other variables.",
    )
    zenoh: bool = option(
        ROS,
        "--zenoh",
        kind=Flag(),
        world=False,
        serve=True,
        help="Join ROS 2 over Zenoh (rmw_zenoh), through the router at localhost:7447.",
    )
    zenoh_router: bool = option(
        ROS,
        "--zenoh-router",
        kind=Flag(),
        world=False,
        serve=True,
        help="Join ROS 2 over Zenoh and act as its router: no rmw_zenohd is needed.",
    )
    rosbridge: int | None = option(
        ROS,
        "--rosbridge",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="[PORT]",
        # Default port of rosbridge_suite.
        bare=9090,
        help="Serve the rosbridge protocol (roslibpy, roslib, Foxglove) over "
        "WebSockets; needs no ROS. [default port: 9090; 0: any free port]",
        about="Port of the rosbridge protocol over WebSockets (usually 9090); 0: any free port.",
    )
    rosbridge_token: str | None = option(
        ROS,
        "--rosbridge-token",
        world=False,
        serve=True,
        metavar="TEXT",
        help="Token that rosbridge clients must send: "
        "ws://host:9090/?token=TEXT. With it, pages of any site may connect.",
    )
    foxglove: int | None = option(
        ROS,
        "--foxglove",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="[PORT]",
        # Default port of Foxglove's bridge and SDK.
        bare=8765,
        help="Serve Foxglove and Lichtblick: topics, transforms, parameters and "
        "services; needs no ROS. [default port: 8765; 0: any free port]",
        about="Port of Foxglove's WebSocket protocol (usually 8765); 0: any free port.",
    )
    foxglove_token: str | None = option(
        ROS,
        "--foxglove-token",
        world=False,
        serve=True,
        metavar="TEXT",
        help="Token that clients of --foxglove must send: "
        "ws://host:8765/?token=TEXT. With it, pages of any site may connect.",
    )
    ros_domain_id: int | None = option(
        ROS,
        "--ros-domain-id",
        # DDS maps domain N to UDP ports from 7400 + 250 N. Domain 232 is the last one
        # whose ports are below 65536.
        kind=Whole(0, 232),
        world=False,
        serve=True,
        metavar="N",
        help="Join this ROS 2 domain, instead of ROS_DOMAIN_ID.",
    )
    ros_distro: str | None = option(
        ROS,
        "--ros-distro",
        kind=OneOf("humble", "iron", "jazzy", "kilted", "lyrical", "rolling"),
        world=False,
        serve=True,
        help="ROS 2 distribution of the peers. [default: ROS_DISTRO, or jazzy; "
        "iron and later are compatible]",
    )
    cmd_vel_timeout: float = option(
        ROS,
        "--cmd-vel-timeout",
        kind=Real(0),
        # RosAria's default of the same name.
        default=0.6,
        world=False,
        serve=True,
        metavar="S",
        help="Stop a robot after this simulated time without cmd_vel; 0: never.",
    )

    # -- AMBF's objects
    ambf: str | None = option(
        AMBF,
        "--ambf",
        kind=OneOf("master", "1.0", "2.0"),
        world=False,
        serve=True,
        help="Offer robots and the world as AMBF objects, with this generation "
        "of messages; by default over ROS 1.",
    )
    ambf_watchdog: float = option(
        AMBF,
        "--ambf-watchdog",
        kind=Real(0),
        default=0.5,
        world=False,
        serve=True,
        metavar="S",
        help="Time without a command from the client that steps the world, after "
        "which it runs freely again; 0: never.",
    )
    ambf_port: int = option(
        AMBF,
        "--ambf-port",
        # Only this port has an "off" value, because `--ambf` alone already selects the
        # interface.
        kind=Whole(-1, 65535),
        default=7707,
        world=False,
        serve=True,
        metavar="N",
        help="Port of AMBF objects for clients without ROS "
        "(botyard.clients.ambf); 0: any free port, -1: none.",
    )
    ambf_namespace: str | None = option(
        AMBF,
        "--ambf-namespace",
        world=True,
        serve=True,
        metavar="NAME",
        help="Prefix of all AMBF topics.",
    )
    ambf_min_freq: float | None = option(
        AMBF,
        "--ambf-min-freq",
        # AMBF's own spelling, so that its start scripts need no change.
        "--override_min_comm_freq",
        kind=Real(0.1, 10000),
        world=False,
        serve=True,
        metavar="HZ",
        help="Rate of AMBF states before the first command to an object. "
        "[default: 50, or as in its description]",
    )
    ambf_max_freq: float | None = option(
        AMBF,
        "--ambf-max-freq",
        # Also AMBF's spelling.
        "--override_max_comm_freq",
        kind=Real(0.1, 10000),
        world=False,
        serve=True,
        metavar="HZ",
        help="Rate of AMBF states after the first command to an object. [default: 1000]",
    )

    # -- The page
    noninteractive: bool = option(
        PAGE,
        "--noninteractive",
        "-noninteractive",
        "--non-interactive",
        "-non-interactive",
        kind=Flag(),
        world=False,
        serve=False,
        help="Ask no questions and open no windows; requires a map or --nomap.",
    )
    no_gui: bool = option(
        PAGE,
        "--no-gui",
        "-no-gui",
        kind=Flag(),
        world=False,
        serve="page",
        negated=True,
        help="Do not serve the page (implies --noninteractive).",
        about="Serve the page.",
    )
    history: float = option(
        PAGE,
        "--history",
        # At most one day: the history is kept in memory.
        kind=Real(0.0, 1440.0),
        default=10.0,
        world=False,
        serve=True,
        metavar="MINUTES",
        help="Keep the last minutes of simulated time, to view on the page and "
        "to continue from; 0: none.",
    )
    gui_port: int | None = option(
        PAGE,
        "--gui-port",
        kind=Port(),
        world=False,
        serve=True,
        metavar="PORT",
        help="Port of the page. [default: 8100, or the next free one]",
        about="Port of the page; 0: any free one. None: 8100, or the next free one.",
    )
    gui_address: str = option(
        PAGE,
        "--gui-address",
        default="127.0.0.1",
        world=False,
        serve=True,
        metavar="ADDRESS",
        help="Serve the page on this address only; 0.0.0.0: on all, for other computers.",
    )
    gui_host: tuple[str, ...] = option(
        PAGE,
        "--gui-host",
        many=True,
        world=False,
        serve=True,
        metavar="NAME",
        help="Host name of this computer under which browsers may open the page. Repeatable.",
    )
    gui_token: str | None = option(
        PAGE,
        "--gui-token",
        world=False,
        serve=True,
        metavar="TOKEN|off",
        help="Secret token at the end of the page's URL; off: none, only on this "
        "computer. [default: random]",
    )
    no_browser: bool = option(
        PAGE,
        "--no-browser",
        kind=Flag(),
        world=False,
        serve=False,
        help="Do not open the page in a browser.",
    )
    start_dialog: bool = option(
        PAGE,
        "--start-dialog",
        kind=Flag(),
        world=False,
        serve=False,
        help="Ask for map and robots on the page, like botyard without a map in a terminal.",
    )
    fullscreen_gui: bool = option(
        PAGE,
        "--fullscreen-gui",
        "-fullscreen-gui",
        "--fullscreen",
        "-fullscreen",
        kind=Flag(),
        world=False,
        serve=False,
        help="Show the page in its own window, full screen.",
    )
    maximize_gui: bool = option(
        PAGE,
        "--maximize-gui",
        "-maximize-gui",
        "--maximize",
        "-maximize",
        kind=Flag(),
        world=False,
        serve=False,
        help="Show the page in its own window, maximised.",
    )
    minimize_gui: bool = option(
        PAGE,
        "--minimize-gui",
        "-minimize-gui",
        "--minimize",
        "-minimize",
        kind=Flag(),
        world=False,
        serve=False,
        help="Show the page in its own window, minimised.",
    )
    lite_graphics: bool = option(
        PAGE,
        "--lite-graphics",
        "-lite-graphics",
        kind=Flag(),
        world=False,
        serve=True,
        help="Draw less on the page: no grid, no filled fields, no trails.",
    )
    no_graphics: bool = option(
        PAGE,
        "--no-graphics",
        "-no-graphics",
        "--disable-graphics",
        "-disable-graphics",
        kind=Flag(),
        world=False,
        serve=True,
        help="Do not draw the world on the page, only lists, values and log.",
    )

    # -- Log and operation
    interface: tuple[str, ...] = option(
        OPERATION,
        "--interface",
        many=True,
        world=False,
        serve="interfaces",
        metavar="NAME[:OPTION=VALUE,…]",
        help='Start an interface of botyard or another package (see "botyard interfaces"), with its options. Repeatable.',
        about="Start these interfaces of botyard or other packages (see `botyard "
        "interfaces`), with their options.",
    )
    cwd: str | None = option(
        OPERATION,
        "--cwd",
        "-cwd",
        world=False,
        serve=False,
        metavar="FOLDER",
        help="Change to this folder first; clients may load maps from it.",
    )
    log_file: str | None = option(
        OPERATION,
        "-l",
        "--log-file",
        "-log-file",
        world=False,
        serve=False,
        instead=LOGGING,
        metavar="FILE",
        help="Write the log to a file instead of stderr.",
    )
    log_file_max_size: int | None = option(
        OPERATION,
        "--log-file-max-size",
        "-log-file-max-size",
        kind=Whole(0),
        world=False,
        serve=False,
        instead=LOGGING,
        metavar="BYTES",
        help="Rotate the log file at this size, keeping five old ones; 0: never. "
        "[default: 5 MB with --noninteractive]",
    )
    log_format: str = option(
        OPERATION,
        "--log-format",
        kind=OneOf("plain", "html", "json"),
        default="plain",
        world=False,
        serve=False,
        instead=LOGGING,
        help="Format of the log: text, HTML, or JSON lines.",
    )
    html: bool = option(
        OPERATION,
        "--html",
        "-html",
        kind=Flag(),
        world=False,
        serve=False,
        instead=LOGGING,
        help="Same as --log-format html.",
    )
    less_verbose: bool = option(
        OPERATION,
        "--less-verbose",
        "-less-verbose",
        kind=Flag(),
        world=False,
        serve=False,
        instead=LOGGING,
        help="Log warnings and errors only.",
    )
    verbose: bool = option(
        OPERATION,
        "--verbose",
        "-verbose",
        kind=Flag(),
        world=False,
        serve=False,
        instead=LOGGING,
        help="Log debug messages as well.",
    )
    log_timing_stats: float | None = option(
        OPERATION,
        "--log-timing-stats",
        "-log-timing-stats",
        kind=Real(0.1),
        world=False,
        serve=True,
        metavar="[S]",
        # Default period of AMRISim.
        bare=30.0,
        help="Log timing statistics at this period. [default period: 30]",
    )
    metrics_port: int | None = option(
        OPERATION,
        "--metrics-port",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="N",
        help="Also serve /metrics (Prometheus) and /healthz on this port; the "
        "page serves them on its own. 0: any free port.",
    )
    daemonize: bool = option(
        OPERATION,
        "--daemonize/--no-daemonize",
        "-daemonize/-no-daemonize",
        kind=Flag(),
        world=False,
        serve=False,
        help="Run in the background, without a terminal; the command ends when "
        "the simulator is ready. Implies --noninteractive.",
    )
    no_crash_handler: bool = option(
        OPERATION,
        "--no-crash-handler",
        "-no-crash-handler",
        "--disable-crash-handler",
        "-disable-crash-handler",
        kind=Flag(),
        world=False,
        serve=False,
        help="Do not turn internal errors into a log entry and status 236; print "
        "Python's own trace instead.",
    )
    no_crash_debug: bool = option(
        OPERATION,
        "--no-crash-debug",
        "-no-crash-debug",
        kind=Flag(),
        world=False,
        serve=False,
        help="Do not write stack traces of all threads on fatal signals.",
    )
    no_crash_restart: bool = option(
        OPERATION,
        "--no-crash-restart",
        "-no-crash-restart",
        kind=Flag(),
        world=False,
        serve=False,
        help="Do not restart an unattended simulator when it dies.",
    )
    state_file: str | None = option(
        OPERATION,
        "--state-file",
        world=False,
        serve=False,
        metavar="FILE",
        help="File for the state that an unattended simulator needs for a "
        "restart. [default: next to the log, or a temporary file]",
    )
    restarting_after_crash: bool = option(
        OPERATION,
        "--restarting-after-crash",
        "-restarting-after-crash",
        kind=Flag(),
        world=False,
        serve=False,
        help="Continue from the state in --state-file, and notify clients; a "
        "restarted simulator receives this option.",
    )
    log_packets_received: bool = option(
        OPERATION,
        "--log-packets-received",
        "-log-packets-received",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log each packet that clients send.",
    )
    log_movement_sent: bool = option(
        OPERATION,
        "--log-movement-sent",
        "-log-movement-sent",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log the position and speed in each report.",
    )
    record_packets: str | None = option(
        OPERATION,
        "--record-packets",
        world=False,
        serve=True,
        metavar="FILE",
        help="Record all bytes between clients and robots, also in recordings "
        "(--record); botyard packets FILE prints or replays them (--play).",
        about="Record all bytes between clients and robots, also in recordings; "
        "``botyard packets FILE`` prints or replays them.",
    )
    record: str | None = option(
        OPERATION,
        "--record",
        world=False,
        serve=True,
        metavar="FILE",
        help="Record the run to an MCAP file, for Foxglove, PlotJuggler, ros2 bag, and replay.",
    )
    record_topic: tuple[str, ...] = option(
        OPERATION,
        "--record-topic",
        many=True,
        world=False,
        serve="record_topics",
        metavar="PATTERN",
        help="Record the matching topics, such as /bob/*, and start their "
        "sensors. Repeatable. [default: odometry, poses, commands, transforms, "
        "map, log, scans with a subscriber]",
        about="Record the matching topics, such as ``/bob/*``, and start their "
        "sensors, instead of the default topics.",
    )
    record_robot: tuple[str, ...] = option(
        OPERATION,
        "--record-robot",
        many=True,
        world=False,
        serve="record_robots",
        metavar="PATTERN",
        help="Record the robots with matching names. Repeatable. [default: all]",
        about="Record the robots with matching names; all if there is no pattern.",
    )
    record_rate: float | None = option(
        OPERATION,
        "--record-rate",
        kind=Real(0),
        world=False,
        serve=True,
        metavar="HZ",
        help="Maximum rate of a topic, in simulated time; 0: each step. "
        "[default: transforms 3, odometry and poses 1, otherwise 10]",
    )
    record_split: float | None = option(
        OPERATION,
        "--record-split",
        kind=Real(0, above=True),
        world=False,
        serve=True,
        metavar="MB",
        help="Start a new file after this many megabytes.",
    )
    record_split_time: float | None = option(
        OPERATION,
        "--record-split-time",
        kind=Real(0, above=True),
        world=False,
        serve=True,
        metavar="S",
        help="Start a new file after this simulated time.",
    )
    record_last: float | None = option(
        OPERATION,
        "--record-last",
        kind=Real(0, 86400, above=True),
        world=False,
        serve=True,
        metavar="S",
        help="Keep only this simulated time in memory; saved through the page, "
        "ROS, or a stalled robot (--record-on-stall).",
        about="Keep only this simulated time in memory, until `SaveRecording` or "
        "a stalled robot saves it.",
    )
    record_on_stall: bool = option(
        OPERATION,
        "--record-on-stall",
        kind=Flag(),
        world=False,
        serve=True,
        help="Save the recording of --record-last two seconds after a robot has stalled.",
        about="Save the recording of `record_last` two seconds after a robot has stalled.",
    )
    json: bool = option(
        OPERATION,
        "--json",
        kind=Flag(),
        world=False,
        serve=False,
        help='Print the "ready" line as one JSON object.',
    )
    supervisor: int | None = option(
        # The process number of the supervisor, which passes it to the simulator that it
        # starts. Users never give it.
        OPERATION,
        "--supervisor",
        kind=Whole(),
        world=False,
        serve=False,
        hidden=True,
    )


def _declared() -> dict[str, Option]:
    """Return the declarations of all options, by field name."""
    found = {}
    for one in fields(RunOptions):
        # A copy, because the metadata of a dataclass is shared and read-only.
        about: dict[str, Any] = dict(one.metadata["option"])
        serve = about.pop("serve")
        found[one.name] = Option(
            name=one.name, keyword=one.name if serve is True else serve or None, **about
        )

    return found


OPTIONS: Final[Mapping[str, Option]] = _declared()
"""All options by field name, in the order of the help text."""

SECTIONS: Final = (WORLD, ROBOTS, TIME, PIONEER, ROS, AMBF, PAGE, OPERATION)
"""Sections in the order of the help text."""


__all__ = [
    "ERROR_MODES",
    "MAX_READ_HELP",
    "OPTIONS",
    "SECTIONS",
    "Option",
    "RobotChoice",
    "RunOptions",
]
