"""The options of a run: declared here once, for the command line, ``--config``,
`botyard.serve` and the reference.

The names are those of AMRISim in all its spellings (feature table, area CLI). Each
field of `RunOptions` says what kind of value it takes, in which section of the help
text it stands, whether a world may set it, and whether `botyard.serve` has it, under
which keyword, or what a program says instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.app.kinds import (
    Flag,
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
    "Another limit of what a file may ask for: "
    f"{', '.join(WHAT)}. The error of a limit says its name. Repeatable."
)

WORLD, ROBOTS, TIME, PIONEER = "World", "Robots", "Time and chance", "Pioneer clients"
ROS, AMBF, PAGE, OPERATION = "ROS", "AMBF's objects", "The page", "Log and operation"
"""Sections of the help text."""

COMMAND_LINE: Final = "the command line alone has it"
LOGGING: Final = "logging is the program's own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declaration of an option.

    Attributes
    ----------
    name : str
        Name of its field of `RunOptions`.
    section : str
        Its section in the help text and the reference.
    flags : tuple of str
        Its spellings on the command line. None: it is the command's argument.
    kind : Kind
        Type of its values.
    default : object
        Default value.
    many : bool
        Whether it may be given several times; its value is a tuple then.
    world : bool
        Whether a world file may set it (`botyard.formats.worldoptions`): it describes
        the world or its pace. Never true for what names a file, an address, a port or a
        token, opens or closes something, or belongs to the log or the page.
    keyword : str, optional
        Its keyword of `botyard.serve`.
    negated : bool
        Whether the keyword is the opposite of the option: `page=True` means that
        ``--no-gui`` is not given.
    serve_default : object
        Its default for `botyard.serve`.
    instead : str
        Without a keyword: what a program uses instead, or why it needs nothing.
    metavar, help : str
        For the help text.
    about : str
        Description of the keyword for the reference, where the help text does not fit.
    bare : object
        Its value when it is given on the command line without one.
    hidden : bool
        Whether it is left out of the help text and not allowed in configuration files.
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
        """Its long name, as in configuration files."""
        return next(
            (f[2:].partition("/")[0] for f in self.flags if f.startswith("--")),
            self.name,
        )

    def of(self, value: object) -> Any:
        """Convert a value of the keyword to the option's; None stays None where that is
        the default.

        Raises
        ------
        ArgumentError
            The value is not valid.
        """
        what = self.keyword or self.name
        if value is None and self.default is None:
            return None
        if self.many and self.kind.is_one(value):
            return (self.kind.of(value, what),)
        if self.many:
            return sequence_of(self.kind, value, what)
        found = self.kind.of(value, what)
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
    """Declare an option of `RunOptions`. `serve`: whether `botyard.serve` has it, or
    its keyword there; the others are those of `Option`.

    `world` and `serve` have no defaults, so that both are decided for every new option.
    """
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
    """The options of a run, in the order of the help text. Lengths, times and angles
    are those of the command line: mm, ms, degrees.
    """

    @property
    def unattended(self) -> bool:
        """Whether no user can be asked (CLI-017, CLI-022)."""
        return self.noninteractive or self.no_gui

    def chosen_robots(self, world_has_some: bool) -> Sequence[RobotChoice]:
        """The robots of the command line; a P3-DX when nobody names any."""
        return self.robots or (
            () if self.factories or world_has_some else (RobotChoice("p3dx", None),)
        )

    def reading(self) -> Options:
        """Options of reading map files."""
        from botyard.formats.base import (
            # what only asks for help need not load the models of worlds
            Options,
        )

        return Options(
            budget=Budget().raised(self.max_read),
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
        help="Take options from a YAML file, by their long names; what is typed wins.",
    )
    print_config: bool = option(
        WORLD,
        "--print-config",
        kind=Flag(),
        world=False,
        serve=False,
        help="Print all options as they are in force, and where each comes from, and end.",
    )
    map: str | None = option(
        WORLD,
        "-m",
        "--map",
        "-map",
        world=False,
        serve=False,
        instead="Simulation.load",
        metavar="FILE",
        help='Map, world or scenario file of any format ("botyard convert --help" lists them), the name of a shipped map, or a ROS topic: '
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
        help="World file of Stage: its walls, objects and robots, and nothing else.",
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
        help="Size of map points, pixels, cells or units of drawings whose file "
        "does not give it. [default: 20 for points]",
        about="Size of points, pixels, cells or units of drawings of maps that "
        "are loaded later, whose file does not give it.",
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
        help="Lines of a map that are read at a time while the simulation goes on.",
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
        help="The same for points.",
    )
    adf: tuple[str, ...] = option(
        WORLD,
        "--adf",
        many=True,
        world=False,
        serve=False,
        instead="Simulation.describe",
        metavar="FILE",
        help="Put the bodies, joints and sensors of an AMBF description file "
        "into the world. Repeatable.",
    )
    save_scenario: str | None = option(
        WORLD,
        "--save-scenario",
        world=False,
        serve=False,
        instead="Simulation.world",
        metavar="FILE",
        help="Write the world as it is when the run ends as a scenario, which can be run again.",
    )
    snapshot: str | None = option(
        WORLD,
        "--snapshot",
        world=False,
        serve=False,
        instead="Simulation.render",
        metavar="FILE",
        help="Write a picture of the world when the run ends; the suffix says the format.",
    )
    force: bool = option(
        WORLD,
        "--force",
        kind=Flag(),
        world=False,
        serve=True,
        help="Let --snapshot, --save-scenario, --record and "
        "--record-packets "
        "replace files that botyard did not write.",
        about="Let `record` and `record_packets` replace files that botyard did not write.",
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
        help='Add a robot of this model ("botyard models"), with a name of your choice. Repeatable. [default: p3dx]',
        about="Add these robots to the world; without a name they get one of their model's.",
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
        help="Make a robot of this model for every client that connects, and "
        "take it away when the client leaves. Repeatable.",
        about="Make a robot of this model for every client that connects, and "
        "take it away when the client leaves.",
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
        "map; or random free places. Repeatable: the nth is of "
        "the nth robot, the last one also of the rest, who stand beside it.",
        about="Start pose of the first of `robots`; 2 m outside of the map; or "
        "random free places. Of several the nth is of the nth "
        "robot, the last one also of the rest, who stand beside it.",
    )
    controller: str | None = option(
        ROBOTS,
        "--controller",
        world=True,
        serve=True,
        metavar="NAME",
        help="Drive robots that no client commands: wander, walk, "
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
        help="An option of that controller: speed=0.4, order=once, points=[[0,0],[4,0]].",
    )
    allow_code: bool = option(
        ROBOTS,
        "--allow-code",
        kind=Flag(),
        world=False,
        serve=False,
        instead="Simulation.load",
        help="Let the map or scenario name controllers as module:name or "
        "file.py:name, which are "
        "imported and run: with files you trust.",
    )
    joystick: str | None = option(
        ROBOTS,
        "--joystick",
        world=False,
        serve=False,
        instead="robot.electrics.joystick",
        metavar="NAME",
        help="The keys of this terminal are the joystick of this robot; its "
        "client reads it, or lets it drive (JOYDRIVE).",
    )
    robot_name: str = option(
        ROBOTS,
        "--robot-name",
        default="AMRISim",
        world=True,
        serve=True,
        help="Name that robots report to clients; some look for MobileSim.",
    )
    simulate_batteries: bool = option(
        ROBOTS,
        "--simulate-batteries",
        kind=Flag(),
        world=True,
        serve=True,
        help="Batteries drain, and charge on docks, also of models that do not ask for it.",
    )
    gripper_layout: str = option(
        ROBOTS,
        "--gripper-layout",
        kind=OneOf("aria", "p2os"),
        default="aria",
        world=True,
        serve=True,
        help="Whose bits the gripper's byte in reports has.",
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
        help="Wall time between two steps. [default: what the world file says, "
        "else 100; 20 with --ros2 or --zenoh; 5 with --ambf]",
        about="Wall time between two steps; `sim.dt`, which is real time, if it is not given.",
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
        help="Simulated time of a step. [default: the update interval]",
    )
    paused: bool = option(
        TIME,
        "--paused",
        kind=Flag(),
        world=False,
        serve=True,
        help="Begin paused, until the page, a client or Resume lets time go on.",
        about="Begin paused, until `Running.resume`, the page or a client lets time go on.",
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
        help="End after so much simulated time.",
    )
    seed: int | None = option(
        TIME,
        "--seed",
        kind=Whole(MIN_SEED, MAX_SEED),
        world=True,
        serve=False,
        instead="Simulation(seed=…)",
        help="Seed of all random draws: same seed, same run. [default: 1]",
    )
    sensor_noise: str | None = option(
        TIME,
        "--sensor-noise",
        kind=OneOf("stock", "none"),
        world=True,
        serve=False,
        instead="Simulation(sensor_noise=…)",
        help="Range sensors err like the devices they stand for, or not at all. [default: stock]",
    )
    odom_error_mode: str | None = option(
        TIME,
        "--odom-error-mode",
        "-odom-error-mode",
        kind=OneOf(*ERROR_MODES),
        world=True,
        serve=False,
        instead="Simulation(odometry_error=…)",
        help="When odometry errors are drawn. [default: what the world file "
        "says, else random_each_update]",
    )
    no_error: bool = option(
        TIME,
        "--no-error",
        "-no-error",
        kind=Flag(),
        world=True,
        serve=False,
        instead='Simulation(odometry_error="none")',
        help="The same as --odom-error-mode none.",
    )
    threads: int | None = option(
        TIME,
        "--threads",
        kind=Whole(1, 256),
        world=True,
        serve=False,
        instead="Simulation(threads=…)",
        help="Threads for many lasers at once; results do not depend on it. [default: 1]",
    )

    # -- Pioneer clients
    port: int = option(
        PIONEER,
        "-p",
        "--port",
        "-port",
        kind=Port(),
        default=8101,
        world=False,
        serve=True,
        help="TCP port of the first robot; the others follow.",
        about="TCP port of the first robot; the others follow. 0: each gets any free port.",
    )
    bind_to_address: str = option(
        PIONEER,
        "--bind-to-address",
        "-bind-to-address",
        default="127.0.0.1",
        world=False,
        serve=True,
        metavar="ADDRESS",
        help="Listen on this address only; 0.0.0.0 is all.",
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
        help="Drop Pioneer command number N. Repeatable.",
    )
    warn_unsupported_commands: bool = option(
        PIONEER,
        "--warn-unsupported-commands",
        "-warn-unsupported-commands",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log every unsupported command, not only the first of each number.",
    )
    compat: str | None = option(
        PIONEER,
        "--compat",
        kind=OneOf("amrisim"),
        world=False,
        serve=False,
        instead="Simulation(range_step=…)",
        help="Also copy habits of the original: look for another port when one "
        "is taken, round ranges to --resolution.",
    )
    srisim_compat: bool = option(
        PIONEER,
        "--srisim-compat",
        "-srisim-compat",
        kind=Flag(),
        world=False,
        serve=True,
        help="Obey the old SRIsim commands 62 (end) and 66–69 (move the robot).",
    )
    no_srisim_laser_compat: bool = option(
        PIONEER,
        "--no-srisim-laser-compat",
        "-no-srisim-laser-compat",
        kind=Flag(),
        world=True,
        serve=True,
        help="Commands 35–38 are those of real robots (analogue port, "
        "gripper), "
        "not of old simulated lasers.",
    )
    read_only: bool = option(
        PIONEER,
        "--read-only",
        kind=Flag(),
        world=False,
        serve=True,
        help="Clients drive their robots and read everything, but the world "
        "stays as it is: no maps, poses, robots, pauses, ends, files.",
    )
    allow_client_exit: bool = option(
        PIONEER,
        "--allow-client-exit",
        kind=Flag(),
        world=False,
        serve=True,
        help="Obey clients on other machines too when they ask for the end of the simulation.",
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
        help="Do not answer programs that look for robots in the network (UDP port 30718).",
        about="Answer programs that look for robots in the network (UDP port 30718).",
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
        help="Clients may load maps from this folder too. Repeatable.",
    )
    job_time: float = option(
        PIONEER,
        "--job-time",
        kind=Real(0.1, 86400),
        default=30.0,
        world=False,
        serve=True,
        metavar="S",
        help="A map that a client or the page loads, or a picture that it asks "
        "for, may take so long.",
    )
    job_memory: int = option(
        PIONEER,
        "--job-memory",
        kind=Whole(256, 1048576),
        default=2048,
        world=False,
        serve=True,
        metavar="MIB",
        help="It may take so much memory, where the system can see to that (Linux).",
    )

    # -- ROS
    ros1: bool = option(
        ROS,
        "--ros1",
        "-ros1",
        kind=Flag(),
        world=False,
        serve=True,
        help="Be a ROS 1 node at the master of ROS_MASTER_URI.",
    )
    ros_master: str | None = option(
        ROS,
        "--ros-master",
        world=False,
        serve=True,
        metavar="URI|embedded",
        help="The same, at this master; embedded: a master in the simulator (embedded:PORT).",
    )
    ros_names: str = option(
        ROS,
        "--ros-names",
        kind=OneOf("default", "nav2", "amrisim", "stage", "rosaria"),
        default="default",
        world=True,
        serve=True,
        help="Names of topics, services and frames: /<robot>/…, those of Nav2's "
        "bring-up, or those of another program.",
    )
    ros_frames: str | None = option(
        ROS,
        "--ros-frames",
        kind=OneOf("plain", "prefixed"),
        world=True,
        serve=True,
        help="Frames and transforms of each robot in its namespace (plain), or "
        "/tf and frames <robot>/… for all. [default: as the names]",
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
        help="Who locates robots in the map: botyard, by their true poses, or a "
        "program such as AMCL or slam_toolbox (none).",
    )
    ros_map: str | None = option(
        ROS,
        "--ros-map",
        kind=OneOf("on", "off"),
        world=True,
        serve=True,
        help="Publish the map, or leave it to a map_server. [default: on; with "
        "names nav2 only with --localization truth]",
        about="Publish the map, or leave it to a map_server.",
    )
    ros_time: str | None = option(
        ROS,
        "--ros-time",
        kind=OneOf("sim", "wall"),
        world=True,
        serve=True,
        help="Stamps of messages: simulated time, with /clock, or wall time. "
        "[default: sim; wall with names amrisim and rosaria]",
    )
    scan_rate: float | None = option(
        ROS,
        "--scan-rate",
        kind=Real(0, 1e6),
        world=True,
        serve=True,
        metavar="HZ",
        help="Scans of lasers and readings of sonar are published so many times "
        "a second of simulated time; 0 is in every step. "
        "[default: what their models say, else 0]",
        about="Scans of lasers and readings of sonar are published so many times "
        "a second of simulated time; 0: in every step.",
    )
    ros_wait: bool = option(
        ROS,
        "--ros-wait",
        kind=Flag(),
        world=False,
        serve=True,
        help="Wait for a ROS master that is not there, also when noninteractive.",
        about="Wait for a ROS master that is not there. Otherwise that is an error.",
    )
    ros2: bool = option(
        ROS,
        "--ros2",
        kind=Flag(),
        world=False,
        serve=True,
        help="Be a ROS 2 node (DDS), in the domain and range that ROS_DOMAIN_ID … say.",
    )
    zenoh: bool = option(
        ROS,
        "--zenoh",
        kind=Flag(),
        world=False,
        serve=True,
        help="Be a ROS 2 node over Zenoh (rmw_zenoh), by the router at localhost:7447.",
    )
    zenoh_router: bool = option(
        ROS,
        "--zenoh-router",
        kind=Flag(),
        world=False,
        serve=True,
        help="The same, and be that router: no rmw_zenohd is needed.",
    )
    rosbridge: int | None = option(
        ROS,
        "--rosbridge",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="[PORT]",
        bare=9090,
        help="Serve the rosbridge protocol (roslibpy, roslib, Foxglove) over "
        "WebSockets; no ROS is needed. "
        "[port 9090 if none is given; 0: any free port]",
        about="Port of the rosbridge protocol over WebSockets (usually 9090); 0: any free port.",
    )
    rosbridge_token: str | None = option(
        ROS,
        "--rosbridge-token",
        world=False,
        serve=True,
        metavar="TEXT",
        help="Clients of rosbridge must show this token: "
        "ws://host:9090/?token=TEXT. "
        "Pages of any site may come with it.",
    )
    foxglove: int | None = option(
        ROS,
        "--foxglove",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="[PORT]",
        bare=8765,
        help="Serve Foxglove and Lichtblick: topics, transforms, parameters and "
        "services; no ROS is needed. "
        "[port 8765 if none is given; 0: any free port]",
        about="Port of Foxglove's WebSocket protocol (usually 8765); 0: any free port.",
    )
    foxglove_token: str | None = option(
        ROS,
        "--foxglove-token",
        world=False,
        serve=True,
        metavar="TEXT",
        help="Clients of --foxglove must show this token: "
        "ws://host:8765/?token=TEXT. "
        "Pages of any site may come with it.",
    )
    ros_domain_id: int | None = option(
        ROS,
        "--ros-domain-id",
        kind=Whole(0, 232),
        world=False,
        serve=True,
        metavar="N",
        help="The same, instead of ROS_DOMAIN_ID.",
    )
    ros_distro: str | None = option(
        ROS,
        "--ros-distro",
        kind=OneOf("humble", "iron", "jazzy", "kilted", "lyrical", "rolling"),
        world=False,
        serve=True,
        help="ROS 2 distribution of the peers. [default: ROS_DISTRO, or jazzy; "
        "iron and later understand each other]",
    )
    cmd_vel_timeout: float = option(
        ROS,
        "--cmd-vel-timeout",
        kind=Real(0),
        default=0.6,
        world=False,
        serve=True,
        metavar="S",
        help="A robot stops after so much simulated time without cmd_vel; 0 is never.",
    )

    # -- AMBF's objects
    ambf: str | None = option(
        AMBF,
        "--ambf",
        kind=OneOf("master", "1.0", "2.0"),
        world=False,
        serve=True,
        help="Offer robots and the world as objects of AMBF, by this "
        "generation "
        "of its messages; over ROS 1 if nothing else is said.",
    )
    ambf_watchdog: float = option(
        AMBF,
        "--ambf-watchdog",
        kind=Real(0),
        default=0.5,
        world=False,
        serve=True,
        metavar="S",
        help="Without a command from the client that steps the world, it runs "
        "free again after so long; 0 is never.",
    )
    ambf_port: int = option(
        AMBF,
        "--ambf-port",
        kind=Whole(-1, 65535),
        default=7707,
        world=False,
        serve=True,
        metavar="N",
        help="Where clients without ROS (botyard.clients.ambf) find AMBF's "
        "objects; 0: any free port, -1: nowhere.",
    )
    ambf_namespace: str | None = option(
        AMBF,
        "--ambf-namespace",
        world=True,
        serve=True,
        metavar="NAME",
        help="In front of the names of all of AMBF's topics.",
    )
    ambf_min_freq: float | None = option(
        AMBF,
        "--ambf-min-freq",
        "--override_min_comm_freq",
        kind=Real(0.1, 10000),
        world=False,
        serve=True,
        metavar="HZ",
        help="Rate of AMBF's states while nobody commands the "
        "object. "
        "[default: "
        "50, or what its description says]",
    )
    ambf_max_freq: float | None = option(
        AMBF,
        "--ambf-max-freq",
        "--override_max_comm_freq",
        kind=Real(0.1, 10000),
        world=False,
        serve=True,
        metavar="HZ",
        help="The same from the first command on. [default: 1000]",
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
        help="Never ask or open anything; a map (or --nomap) must be given.",
    )
    no_gui: bool = option(
        PAGE,
        "--no-gui",
        "-no-gui",
        kind=Flag(),
        world=False,
        serve="page",
        negated=True,
        help="Run without the page (implies --noninteractive).",
        about="Serve the page.",
    )
    history: float = option(
        PAGE,
        "--history",
        kind=Real(0.0, 1440.0),
        default=10.0,
        world=False,
        serve=True,
        metavar="MINUTES",
        help="Keep the last minutes of simulated time, to look back at on the "
        "page and to go on from; 0: keep none.",
    )
    gui_port: int | None = option(
        PAGE,
        "--gui-port",
        kind=Port(),
        world=False,
        serve=True,
        metavar="PORT",
        help="Port of the page. [default: 8100, or the next one that is free]",
        about="Port of the page; 0 is any free one. None: 8100, or the next one that is free.",
    )
    gui_address: str = option(
        PAGE,
        "--gui-address",
        default="127.0.0.1",
        world=False,
        serve=True,
        metavar="ADDRESS",
        help="Serve the page on this address only; 0.0.0.0 is all, for people on other machines.",
    )
    gui_host: tuple[str, ...] = option(
        PAGE,
        "--gui-host",
        many=True,
        world=False,
        serve=True,
        metavar="NAME",
        help="A name of this machine under which browsers may ask for the page. Repeatable.",
    )
    gui_token: str | None = option(
        PAGE,
        "--gui-token",
        world=False,
        serve=True,
        metavar="TOKEN|off",
        help="The secret that the page's address ends with; off, on this "
        "machine "
        "only, asks for none. [default: random]",
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
        help="Ask in the page for map and robots, as botyard without a map does in a terminal.",
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
        help="Show the page in a window of its own, full screen.",
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
        help="Show the page in a window of its own, maximised.",
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
        help="Show the page in a window of its own, minimised.",
    )
    lite_graphics: bool = option(
        PAGE,
        "--lite-graphics",
        "-lite-graphics",
        kind=Flag(),
        world=False,
        serve=True,
        help="The page draws less: no grid, no filled fields, no trails.",
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
        help="The page does not draw the world; lists, values and log are there.",
    )

    # -- Log and operation
    interface: tuple[str, ...] = option(
        OPERATION,
        "--interface",
        many=True,
        world=False,
        serve="interfaces",
        metavar="NAME[:OPTION=VALUE,…]",
        help='Start an interface, with its options: one of botyard ("botyard interfaces" lists them) or of another package. Repeatable.',
        about="Start these interfaces, with their options: of "
        "botyard "
        "(`botyard "
        "interfaces` lists them) or of other packages.",
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
        help="Write the log to a file instead of to stderr.",
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
        help="Begin a new log file at this size, keeping five old ones; 0 is "
        "never. [default: 5 MB when noninteractive]",
    )
    log_format: str = option(
        OPERATION,
        "--log-format",
        kind=OneOf("plain", "html", "json"),
        default="plain",
        world=False,
        serve=False,
        instead=LOGGING,
        help="Lines of the log as text, as HTML, or as JSON objects, one a line.",
    )
    html: bool = option(
        OPERATION,
        "--html",
        "-html",
        kind=Flag(),
        world=False,
        serve=False,
        instead=LOGGING,
        help="The same as --log-format html.",
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
        help="Log more.",
    )
    log_timing_stats: float | None = option(
        OPERATION,
        "--log-timing-stats",
        "-log-timing-stats",
        kind=Real(0.1),
        world=False,
        serve=True,
        metavar="[S]",
        bare=30.0,
        help="Log how well time is kept, every so many seconds. [30 if no number is given]",
    )
    metrics_port: int | None = option(
        OPERATION,
        "--metrics-port",
        kind=Whole(0, 65535),
        world=False,
        serve=True,
        metavar="N",
        help="Answer /metrics (Prometheus) and /healthz on this port too; the "
        "page answers them on its own. 0: any free port.",
    )
    daemonize: bool = option(
        OPERATION,
        "--daemonize/--no-daemonize",
        "-daemonize/-no-daemonize",
        kind=Flag(),
        world=False,
        serve=False,
        help="Go on in the background, without a terminal; the command ends when "
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
        help="Do not turn faults of the program into an entry of the log and "
        "status 236; Python's own trace is printed.",
    )
    no_crash_debug: bool = option(
        OPERATION,
        "--no-crash-debug",
        "-no-crash-debug",
        kind=Flag(),
        world=False,
        serve=False,
        help="Leave no traces of all threads at fatal signals.",
    )
    no_crash_restart: bool = option(
        OPERATION,
        "--no-crash-restart",
        "-no-crash-restart",
        kind=Flag(),
        world=False,
        serve=False,
        help="Do not start a noninteractive simulator again when it dies.",
    )
    state_file: str | None = option(
        OPERATION,
        "--state-file",
        world=False,
        serve=False,
        metavar="FILE",
        help="Where a noninteractive simulator keeps what it needs to be "
        "started "
        "again. [default: beside the log, or a temporary file]",
    )
    restarting_after_crash: bool = option(
        OPERATION,
        "--restarting-after-crash",
        "-restarting-after-crash",
        kind=Flag(),
        world=False,
        serve=False,
        help="Go on with what --state-file tells, and let clients know; a "
        "simulator that is started again gets this.",
    )
    log_packets_received: bool = option(
        OPERATION,
        "--log-packets-received",
        "-log-packets-received",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log every packet that clients send.",
    )
    log_movement_sent: bool = option(
        OPERATION,
        "--log-movement-sent",
        "-log-movement-sent",
        kind=Flag(),
        world=False,
        serve=True,
        help="Log position and speed of every report.",
    )
    record_packets: str | None = option(
        OPERATION,
        "--record-packets",
        world=False,
        serve=True,
        metavar="FILE",
        help="Record all bytes between clients and robots, also in "
        "recordings "
        "(--record); botyard packets "
        "FILE prints them in words, "
        "and plays them (--play).",
        about="Record all bytes between clients and robots, also in "
        "recordings; "
        "``botyard packets FILE`` prints and plays them.",
    )
    record: str | None = option(
        OPERATION,
        "--record",
        world=False,
        serve=True,
        metavar="FILE",
        help="Record the run to an MCAP file, for Foxglove, PlotJuggler and ros2 "
        "bag, and to be repeated.",
    )
    record_topic: tuple[str, ...] = option(
        OPERATION,
        "--record-topic",
        many=True,
        world=False,
        serve="record_topics",
        metavar="PATTERN",
        help="Record the topics that fit, such as /bob/*, and start their sensors. Repeatable. "
        "[default: odometry, poses, commands, transforms, map, log, scans that somebody reads]",
        about="Record the topics that fit, such as ``/bob/*``, and start their "
        "sensors, instead of the usual ones.",
    )
    record_robot: tuple[str, ...] = option(
        OPERATION,
        "--record-robot",
        many=True,
        world=False,
        serve="record_robots",
        metavar="PATTERN",
        help="Record the robots whose names fit. Repeatable. [default: all]",
        about="Record the robots whose names fit; all if there is no pattern.",
    )
    record_rate: float | None = option(
        OPERATION,
        "--record-rate",
        kind=Real(0),
        world=False,
        serve=True,
        metavar="HZ",
        help="Most messages of a topic for each simulated second; 0: one for each step. "
        "[default: transforms 3, odometry and poses 1, else 10]",
    )
    record_split: float | None = option(
        OPERATION,
        "--record-split",
        kind=Real(0, above=True),
        world=False,
        serve=True,
        metavar="MB",
        help="Begin another file after so many megabytes.",
    )
    record_split_time: float | None = option(
        OPERATION,
        "--record-split-time",
        kind=Real(0, above=True),
        world=False,
        serve=True,
        metavar="S",
        help="Begin another file after so much simulated time.",
    )
    record_last: float | None = option(
        OPERATION,
        "--record-last",
        kind=Real(0, 86400, above=True),
        world=False,
        serve=True,
        metavar="S",
        help="Keep only so much simulated time in memory; the page and ROS save "
        "it, and a robot that stalls (--record-on-stall).",
        about="Keep only so much simulated time in memory, until "
        "`SaveRecording` "
        "or a robot that stalls saves it.",
    )
    record_on_stall: bool = option(
        OPERATION,
        "--record-on-stall",
        kind=Flag(),
        world=False,
        serve=True,
        help="Save what --record-last keeps two seconds after a robot has stalled.",
        about="Save what `record_last` keeps two seconds after a robot has stalled.",
    )
    json: bool = option(
        OPERATION,
        "--json",
        kind=Flag(),
        world=False,
        serve=False,
        help='Print the line that says "ready" as one JSON object.',
    )
    supervisor: int | None = option(
        OPERATION, "--supervisor", kind=Whole(), world=False, serve=False, hidden=True
    )


def _declared() -> dict[str, Option]:
    """What is declared of each option, by the names of fields."""
    found = {}
    for one in fields(RunOptions):
        about: dict[str, Any] = dict(one.metadata["option"])
        serve = about.pop("serve")
        found[one.name] = Option(
            name=one.name, keyword=one.name if serve is True else serve or None, **about
        )

    return found


OPTIONS: Final[Mapping[str, Option]] = _declared()
"""All options, by the names of their fields, in the order of the help text."""

SECTIONS: Final = (WORLD, ROBOTS, TIME, PIONEER, ROS, AMBF, PAGE, OPERATION)
"""In the order of the help text."""


__all__ = [
    "ERROR_MODES",
    "MAX_READ_HELP",
    "OPTIONS",
    "SECTIONS",
    "Option",
    "RobotChoice",
    "RunOptions",
]
