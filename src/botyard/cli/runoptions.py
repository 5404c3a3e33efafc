"""The options of ``botyard run``: their names, which are AMRISim's in all its spellings, and their values (feature table, area CLI)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import click
from click.core import ParameterSource

from botyard.app.options import RobotChoice, RunOptions
from botyard.cli.options import MAX_READ_HELP, SEED, LimitParam, RobotParam, StartParam
from botyard.errors import CommandLineError, did_you_mean
from botyard.geometry import Pose
from botyard.names import shown
from botyard.units import deg, mm

ERROR_MODES = ("random_each_update", "random_init", "constant", "none")


class RunOption(click.Option):
    """An option of a run.

    Parameters
    ----------
    world : bool
        Whether a world file may set it (`botyard.formats.worldoptions`): it describes the world or its pace. Never true for what names a
        file, an address, a port or a token, opens or closes something, or belongs to the log or the page.
    """

    def __init__(self, *args: Any, world: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self.world = world


def _option(*names: str, world: bool, **more: Any) -> Callable[[Any], Any]:
    """An option; whoever adds one has to say whether a world may set it."""
    return click.option(*names, cls=RunOption, world=world, **more)


def _without_effect(_context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """An option of AMRISim for what is not there: its menu bar, its message window, the world file that it wrote for Stage."""
    if value:
        click.echo(f"botyard: warning: {max(parameter.opts, key=len)} has no effect here", err=True)


OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _option(
        "--config",
        world=False,
        metavar="FILE",
        is_eager=True,
        callback=lambda *a: read_config(*a),
        help="Take options from a YAML file, by their long names; what is typed wins.",
    ),
    _option(
        "--print-config",
        world=False,
        is_flag=True,
        help="Print all options as they are in force, and where each comes from, and end.",
    ),
    _option(
        "-m",
        "--map",
        "-map",
        "map",
        world=False,
        metavar="FILE",
        help='Map, world or scenario file of any format ("botyard convert --help" lists them), the name of a shipped map, '
        "or a ROS topic: ros:/map.",
    ),
    _option(
        "-W",
        "--stageworld",
        "-stageworld",
        world=False,
        metavar="FILE",
        help="World file of Stage: its walls, objects and robots, and nothing else.",
    ),
    _option("--nomap", "-nomap", world=False, is_flag=True, help="No map: an empty plane."),
    _option(
        "-r",
        "--robot",
        "-robot",
        "robots",
        world=False,
        type=RobotParam(),
        multiple=True,
        help='Add a robot of this model ("botyard models"), with a name of your choice. Repeatable. [default: p3dx]',
    ),
    _option(
        "-R",
        "--robot-factory",
        "-robot-factory",
        "factories",
        world=True,
        multiple=True,
        metavar="MODEL",
        help="Make a robot of this model for every client that connects, and take it away when the client leaves. Repeatable.",
    ),
    _option(
        "-p",
        "--port",
        "-port",
        "port",
        world=False,
        type=click.IntRange(1, 65535),
        default=8101,
        show_default=True,
        help="TCP port of the first robot; the others follow.",
    ),
    _option(
        "--bind-to-address",
        "-bind-to-address",
        world=False,
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Listen on this address only; 0.0.0.0 is all.",
    ),
    _option(
        "--start",
        "-start",
        world=True,
        type=StartParam(),
        metavar="X,Y,TH|outside|random",
        help="Start pose of the first robot: mm, mm, degrees; 2 m outside of the map; or random free places.",
    ),
    _option(
        "--joystick",
        world=False,
        metavar="NAME",
        help="The keys of this terminal are the joystick of this robot; its client reads it, or lets it drive (JOYDRIVE).",
    ),
    _option(
        "--controller", world=True, metavar="NAME", help="Drive robots that no client commands: wander, walk, follow."
    ),
    _option(
        "--update-interval",
        "-update-interval",
        world=True,
        type=click.IntRange(1, 60000),
        metavar="MS",
        help="Wall time between two steps. [default: what the world file says, else 100; 5 with --ambf]",
    ),
    _option(
        "--update-sim-time",
        "-update-sim-time",
        world=True,
        type=click.IntRange(1, 60000),
        metavar="MS",
        help="Simulated time of a step. [default: the update interval]",
    ),
    _option("--fast", world=True, is_flag=True, help="Step as fast as possible instead of in real time."),
    _option(
        "--duration",
        world=True,
        type=click.FloatRange(min=0.0, min_open=True),
        metavar="S",
        help="End after so much simulated time.",
    ),
    _option(
        "--snapshot",
        world=False,
        metavar="FILE",
        help="Write a picture of the world when the run ends; the suffix says the format.",
    ),
    _option(
        "--save-scenario",
        world=False,
        metavar="FILE",
        help="Write the world as it is when the run ends as a scenario, which can be run again.",
    ),
    _option(
        "--force",
        world=False,
        is_flag=True,
        help="Let --snapshot, --save-scenario and --record-packets replace files that botyard did not write.",
    ),
    _option("--seed", world=True, type=SEED, help="Seed of all random draws: same seed, same run. [default: 1]"),
    _option(
        "--sensor-noise",
        world=True,
        type=click.Choice(["stock", "none"]),
        help="Range sensors err like the devices they stand for, or not at all. [default: stock]",
    ),
    _option(
        "--odom-error-mode",
        "-odom-error-mode",
        world=True,
        type=click.Choice(ERROR_MODES),
        help="When odometry errors are drawn. [default: what the world file says, else random_each_update]",
    ),
    _option("--no-error", "-no-error", world=True, is_flag=True, help="The same as --odom-error-mode none."),
    _option(
        "--resolution",
        "-resolution",
        world=False,
        type=click.IntRange(1, 100000),
        metavar="MM",
        help="Size of map points, pixels, cells or units of drawings whose file does not give it. [default: 20 for points]",
    ),
    _option(
        "--ignore-command",
        "-ignore-command",
        world=False,
        type=click.IntRange(0, 255),
        multiple=True,
        metavar="N",
        help="Drop Pioneer command number N. Repeatable.",
    ),
    _option(
        "--warn-unsupported-commands",
        "-warn-unsupported-commands",
        world=False,
        is_flag=True,
        help="Log every unsupported command, not only the first of each number.",
    ),
    _option(
        "--compat",
        world=False,
        type=click.Choice(["amrisim"]),
        help="Also copy habits of the original: look for another port when one is taken, round ranges to --resolution.",
    ),
    _option(
        "--srisim-compat",
        "-srisim-compat",
        world=False,
        is_flag=True,
        help="Obey the old SRIsim commands 62 (end) and 66–69 (move the robot).",
    ),
    _option(
        "--no-srisim-laser-compat",
        "-no-srisim-laser-compat",
        world=True,
        is_flag=True,
        help="Commands 35–38 are those of real robots (analogue port, gripper), not of old simulated lasers.",
    ),
    _option(
        "--gripper-layout",
        world=True,
        type=click.Choice(["aria", "p2os"]),
        default="aria",
        show_default=True,
        help="Whose bits the gripper's byte in reports has.",
    ),
    _option(
        "--simulate-batteries",
        world=True,
        is_flag=True,
        help="Batteries drain, and charge on docks, also of models that do not ask for it.",
    ),
    _option(
        "--read-only",
        world=False,
        is_flag=True,
        help="Clients drive their robots and read everything, but the world stays as it is: no maps, poses, robots, pauses, ends, files.",
    ),
    _option(
        "--allow-client-exit",
        world=False,
        is_flag=True,
        help="Obey clients on other machines too when they ask for the end of the simulation.",
    ),
    _option(
        "--no-network-discovery",
        "-no-network-discovery",
        world=False,
        is_flag=True,
        help="Do not answer programs that look for robots in the network (UDP port 30718).",
    ),
    _option(
        "--mdns", world=False, is_flag=True, help='Announce the robots by multicast DNS (needs the extra "discovery").'
    ),
    _option("--ros1", "-ros1", world=False, is_flag=True, help="Be a ROS 1 node at the master of ROS_MASTER_URI."),
    _option(
        "--ros-master",
        world=False,
        metavar="URI|embedded",
        help="The same, at this master; embedded: a master in the simulator (embedded:PORT).",
    ),
    _option(
        "--ros-names",
        world=True,
        type=click.Choice(["default", "amrisim", "stage", "rosaria"]),
        default="default",
        show_default=True,
        help="Names of topics, services and frames: /<robot>/…, or those of another program.",
    ),
    _option(
        "--ros-time",
        world=True,
        type=click.Choice(["sim", "wall"]),
        help="Stamps of messages: simulated time, with /clock, or wall time. [default: sim; wall with names amrisim and rosaria]",
    ),
    _option(
        "--ros-wait",
        world=False,
        is_flag=True,
        help="Wait for a ROS master that is not there, also when noninteractive.",
    ),
    _option(
        "--ros2",
        world=False,
        is_flag=True,
        help="Be a ROS 2 node (DDS), in the domain and range that ROS_DOMAIN_ID … say.",
    ),
    _option(
        "--zenoh",
        world=False,
        is_flag=True,
        help="Be a ROS 2 node over Zenoh (rmw_zenoh), by the router at localhost:7447.",
    ),
    _option("--zenoh-router", world=False, is_flag=True, help="The same, and be that router: no rmw_zenohd is needed."),
    _option(
        "--ros-domain-id",
        world=False,
        type=click.IntRange(0, 232),
        metavar="N",
        help="The same, instead of ROS_DOMAIN_ID.",
    ),
    _option(
        "--ros-distro",
        world=False,
        type=click.Choice(["humble", "iron", "jazzy", "kilted", "rolling"]),
        help="ROS 2 distribution of the peers. [default: ROS_DISTRO, or jazzy; iron and later understand each other]",
    ),
    _option(
        "--cmd-vel-timeout",
        world=False,
        type=click.FloatRange(0.0),
        default=0.6,
        show_default=True,
        metavar="S",
        help="A robot stops after so much simulated time without cmd_vel; 0 is never.",
    ),
    _option(
        "--ambf",
        world=False,
        type=click.Choice(["master", "1.0", "2.0"]),
        help="Offer robots and the world as objects of AMBF, by this generation of its messages; over ROS 1 if nothing else is said.",
    ),
    _option(
        "--ambf-watchdog",
        world=False,
        type=click.FloatRange(0.0),
        default=0.5,
        show_default=True,
        metavar="S",
        help="Without a command from the client that steps the world, it runs free again after so long; 0 is never.",
    ),
    _option(
        "--adf",
        world=False,
        multiple=True,
        metavar="FILE",
        help="Put the bodies, joints and sensors of an AMBF description file into the world. Repeatable.",
    ),
    _option(
        "--ambf-port",
        world=False,
        type=click.IntRange(-1, 65535),
        default=7707,
        show_default=True,
        metavar="N",
        help="Where clients without ROS (botyard.clients.ambf) find AMBF's objects; 0: any free port, -1: nowhere.",
    ),
    _option("--ambf-namespace", world=True, metavar="NAME", help="In front of the names of all of AMBF's topics."),
    _option(
        "--ambf-min-freq",
        "--override_min_comm_freq",
        world=False,
        type=click.FloatRange(0.1, 10000.0),
        metavar="HZ",
        help="Rate of AMBF's states while nobody commands the object. [default: 50, or what its description says]",
    ),
    _option(
        "--ambf-max-freq",
        "--override_max_comm_freq",
        world=False,
        type=click.FloatRange(0.1, 10000.0),
        metavar="HZ",
        help="The same from the first command on. [default: 1000]",
    ),
    _option(
        "--cwd",
        "-cwd",
        world=False,
        metavar="FOLDER",
        help="Change to this folder first; clients may load maps from it.",
    ),
    _option(
        "--map-dir",
        world=False,
        metavar="FOLDER",
        multiple=True,
        help="Clients may load maps from this folder too. Repeatable.",
    ),
    _option(
        "--job-time",
        world=False,
        type=click.FloatRange(0.1, 86_400.0),
        default=30.0,
        show_default=True,
        metavar="S",
        help="A map that a client or the page loads, or a picture that it asks for, may take so long.",
    ),
    _option(
        "--job-memory",
        world=False,
        type=click.IntRange(256, 1_048_576),
        default=2048,
        show_default=True,
        metavar="MIB",
        help="It may take so much memory, where the system can see to that (Linux).",
    ),
    _option(
        "-l",
        "--log-file",
        "-log-file",
        world=False,
        metavar="FILE",
        help="Write the log to a file instead of to stderr.",
    ),
    _option(
        "--log-file-max-size",
        "-log-file-max-size",
        world=False,
        type=click.IntRange(min=0),
        metavar="BYTES",
        help="Begin a new log file at this size, keeping five old ones; 0 is never. [default: 5 MB when noninteractive]",
    ),
    _option(
        "--log-format",
        world=False,
        type=click.Choice(["plain", "html", "json"]),
        default="plain",
        show_default=True,
        help="Lines of the log as text, as HTML, or as JSON objects, one a line.",
    ),
    _option("--html", "-html", world=False, is_flag=True, help="The same as --log-format html."),
    _option(
        "--log-timing-stats",
        "-log-timing-stats",
        world=False,
        type=click.FloatRange(0.1),
        is_flag=False,
        flag_value=30.0,
        metavar="[S]",
        help="Log how well time is kept, every so many seconds. [30 if no number is given]",
    ),
    _option(
        "--metrics-port",
        world=False,
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Answer /metrics (Prometheus) and /healthz on this port too; the page answers them on its own. 0: any free port.",
    ),
    _option("--less-verbose", "-less-verbose", world=False, is_flag=True, help="Log warnings and errors only."),
    _option(
        "--daemonize/--no-daemonize",
        "-daemonize/-no-daemonize",
        world=False,
        is_flag=True,
        help="Go on in the background, without a terminal; the command ends when the simulator is ready. Implies --noninteractive.",
    ),
    _option(
        "--no-crash-handler",
        "-no-crash-handler",
        "--disable-crash-handler",
        "-disable-crash-handler",
        world=False,
        is_flag=True,
        help="Do not turn faults of the program into an entry of the log and status 236; Python's own trace is printed.",
    ),
    _option(
        "--no-crash-debug",
        "-no-crash-debug",
        world=False,
        is_flag=True,
        help="Leave no traces of all threads at fatal signals.",
    ),
    _option(
        "--no-crash-restart",
        "-no-crash-restart",
        world=False,
        is_flag=True,
        help="Do not start a noninteractive simulator again when it dies.",
    ),
    _option(
        "--state-file",
        world=False,
        metavar="FILE",
        help="Where a noninteractive simulator keeps what it needs to be started again. [default: beside the log, or a temporary file]",
    ),
    _option(
        "--restarting-after-crash",
        "-restarting-after-crash",
        world=False,
        is_flag=True,
        help="Go on with what --state-file tells, and let clients know; a simulator that is started again gets this.",
    ),
    _option("--supervisor", world=False, type=int, hidden=True),
    *(
        _option(
            f"--{name}",
            f"-{name}",
            world=False,
            is_flag=True,
            hidden=True,
            expose_value=False,
            callback=_without_effect,
        )
        for name in ("no-menu", "no-messages", "echo-stage-worldfile")
    ),
    _option(
        "--log-packets-received",
        "-log-packets-received",
        world=False,
        is_flag=True,
        help="Log every packet that clients send.",
    ),
    _option(
        "--record-packets",
        world=False,
        metavar="FILE",
        help="Record all bytes between clients and robots; botyard packets FILE prints them in words.",
    ),
    _option("--max-read", world=False, type=LimitParam(), multiple=True, metavar="NAME=NUMBER", help=MAX_READ_HELP),
    _option(
        "--lines-chunksize",
        "-lines-chunksize",
        world=False,
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        metavar="N",
        help="Lines of a map that are read at a time while the simulation goes on.",
    ),
    _option(
        "--points-chunksize",
        "-points-chunksize",
        world=False,
        type=click.IntRange(1),
        default=100_000,
        show_default=True,
        metavar="N",
        help="The same for points.",
    ),
    _option(
        "--log-movement-sent",
        "-log-movement-sent",
        world=False,
        is_flag=True,
        help="Log position and speed of every report.",
    ),
    _option(
        "--robot-name",
        world=True,
        default="AMRISim",
        show_default=True,
        help="Name that robots report to clients; some look for MobileSim.",
    ),
    _option(
        "--noninteractive",
        "-noninteractive",
        "--non-interactive",
        "-non-interactive",
        world=False,
        is_flag=True,
        help="Never ask or open anything; a map (or --nomap) must be given.",
    ),
    _option(
        "--no-gui",
        "-no-gui",
        world=False,
        is_flag=True,
        help="Run without the page (implies --noninteractive).",
    ),
    _option(
        "--gui-port",
        world=False,
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="Port of the page. [default: 8100, or the next one that is free]",
    ),
    _option(
        "--gui-address",
        world=False,
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Serve the page on this address only; 0.0.0.0 is all, for people on other machines.",
    ),
    _option(
        "--gui-host",
        world=False,
        multiple=True,
        metavar="NAME",
        help="A name of this machine under which browsers may ask for the page. Repeatable.",
    ),
    _option(
        "--gui-token",
        world=False,
        metavar="TOKEN|off",
        help="The secret that the page's address ends with; off, on this machine only, asks for none. [default: random]",
    ),
    _option("--no-browser", world=False, is_flag=True, help="Do not open the page in a browser."),
    _option(
        "--start-dialog",
        world=False,
        is_flag=True,
        help="Ask in the page for map and robots, as botyard without a map does in a terminal.",
    ),
    _option(
        "--fullscreen-gui",
        "-fullscreen-gui",
        "--fullscreen",
        "-fullscreen",
        world=False,
        is_flag=True,
        help="Show the page in a window of its own, full screen.",
    ),
    _option(
        "--maximize-gui",
        "-maximize-gui",
        "--maximize",
        "-maximize",
        world=False,
        is_flag=True,
        help="Show the page in a window of its own, maximised.",
    ),
    _option(
        "--minimize-gui",
        "-minimize-gui",
        "--minimize",
        "-minimize",
        world=False,
        is_flag=True,
        help="Show the page in a window of its own, minimised.",
    ),
    _option(
        "--lite-graphics",
        "-lite-graphics",
        world=False,
        is_flag=True,
        help="The page draws less: no grid, no filled fields, no trails.",
    ),
    _option(
        "--no-graphics",
        "-no-graphics",
        "--disable-graphics",
        "-disable-graphics",
        world=False,
        is_flag=True,
        help="The page does not draw the world; lists, values and log are there.",
    ),
    _option("--json", world=False, is_flag=True, help='Print the line that says "ready" as one JSON object.'),
    _option(
        "--threads",
        world=True,
        type=click.IntRange(1, 256),
        help="Threads for many lasers at once; results do not depend on it. [default: 1]",
    ),
    _option("--verbose", "-verbose", world=False, is_flag=True, help="Log more."),
    click.argument("map_argument", required=False, metavar="[MAP]"),
)
"""In the order of the help text."""


GROUPS: Final[tuple[tuple[str, str], ...]] = (
    ("World", "config print-config map stageworld nomap resolution max-read lines-chunksize points-chunksize adf save-scenario snapshot "
     "force"),
    ("Robots", "robot robot-factory start controller joystick robot-name simulate-batteries gripper-layout"),
    ("Time and chance", "update-interval update-sim-time fast duration seed sensor-noise odom-error-mode no-error threads"),
    ("Pioneer clients", "port bind-to-address ignore-command warn-unsupported-commands compat srisim-compat no-srisim-laser-compat "
     "read-only allow-client-exit no-network-discovery mdns map-dir job-time job-memory"),
    ("ROS", "ros1 ros-master ros-names ros-time ros-wait ros2 zenoh zenoh-router ros-domain-id ros-distro cmd-vel-timeout"),
    ("AMBF's objects", "ambf ambf-watchdog ambf-port ambf-namespace ambf-min-freq ambf-max-freq"),
    ("The page", "noninteractive no-gui gui-port gui-address gui-host gui-token no-browser start-dialog fullscreen-gui maximize-gui "
     "minimize-gui lite-graphics no-graphics"),
    ("Log and operation", "cwd log-file log-file-max-size log-format html less-verbose verbose log-timing-stats metrics-port "
     "daemonize no-crash-handler no-crash-debug no-crash-restart state-file restarting-after-crash "
     "log-packets-received log-movement-sent record-packets json help"),
)  # fmt: skip
"""Sections of the help text, with the long names of their options."""


ARGUMENTS: Final = "botyard.arguments"
"""Where the context keeps the command line as it was typed."""


class RunCommand(click.Command):
    """The command with its options in sections; with ``--compat amrisim``, options that do not exist are passed over (CLI-055)."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        rows = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                rows[_long_name(parameter)] = record
        for title, names in GROUPS:
            with formatter.section(title):
                formatter.write_dl([rows.pop(name) for name in names.split()])
        assert not rows, f"in no section: {', '.join(rows)}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse."""
        ctx.meta[ARGUMENTS] = list(args)
        known = {o for p in self.get_params(ctx) for o in (*p.opts, *p.secondary_opts)}
        if _is_compatible(args):
            kept = [a for a in args if _may_be_option(a, known)]
            for gone in (a for a in args if a not in kept):
                click.echo(f"botyard: warning: unknown option {gone} is ignored", err=True)
            args = kept
        for text in args:
            if _is_misspelt(text, known):  # else "-robt" would be "-r obt"
                raise click.NoSuchOption(text, ctx=ctx)
        return super().parse_args(ctx, args)


def _is_misspelt(text: str, known: set[str]) -> bool:
    """Whether an argument is nearly one of the options of one dash and several letters."""
    if not text.startswith("-") or text.startswith("--") or len(text) < 4 or text in known:
        return False
    words = [o[1:] for o in known if len(o) > 2 and o[1] != "-"]
    return bool(difflib.get_close_matches(text[1:].lower(), words, n=1, cutoff=0.75))


def _may_be_option(text: str, known: set[str]) -> bool:
    """Whether an argument is no option, or one of those that there are; ``-p9000`` is one, ``-5`` is a number."""
    name = text.partition("=")[0]
    return not text.startswith("-") or name in known or name[:2] in known or not name.strip("-")[:1].isalpha()


def _is_compatible(args: Sequence[str]) -> bool:
    return "--compat=amrisim" in args or any(a == "--compat" and b == "amrisim" for a, b in pairwise(args))


def _cast(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """A value of an option from a file, as the option has it.

    Raises
    ------
    click.UsageError
        The option cannot have it.
    """
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"expected true or false, found {value!r}")
        return value
    if parameter.multiple != isinstance(value, list):
        raise click.UsageError(f"expected {'a list' if parameter.multiple else 'one value'}, found {value!r}")
    return parameter.type_cast_value(context, value)


def read_config(context: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """``--config``: the file's values stand for those that the command line does not give.

    Raises
    ------
    CommandLineError
        The file cannot be read, has an option that does not exist, or a value that it cannot have; with the line.
    """
    if path is None:
        return None
    from botyard.errors import FormatError
    from botyard.formats.base import read_source
    from botyard.formats.budget import Budget, Meter
    from botyard.formats.yamlfile import YamlFile

    try:
        file = YamlFile(read_source(path).text, Meter(Budget(), path, FormatError), FormatError)
        if not isinstance(file.data, dict):
            raise FormatError("expected options by their long names, for example port: 9000", path, 1)
        parameters = _parameters(context, frozenset({"config", "print_config"}))
        values: dict[str, Any] = {}
        for key, value in file.data.items():
            where, parameter = f"$.{key}", parameters.get(str(key))
            if parameter is None:
                raise file.fail(where, f"there is no such option{did_you_mean(str(key), parameters)}")
            try:
                _cast(context, parameter, value)
            except click.UsageError as error:
                raise file.fail(where, error.message) from None
            values[parameter.name or ""] = value
    except FormatError as error:
        raise CommandLineError(f"--config: {error}") from None
    context.default_map = {**(context.default_map or {}), **values}
    return path


def config_text(o: RunOptions, context: click.Context, world: Mapping[str, Any], source: str) -> str:
    """All options as they are in force, as a configuration file, each with where its value comes from (``--print-config``)."""
    import yaml

    origins = {
        ParameterSource.COMMANDLINE: "command line",
        ParameterSource.DEFAULT_MAP: shown(o.config, 500),
        ParameterSource.ENVIRONMENT: "environment",
    }
    lines = []
    for long, parameter in _parameters(context, frozenset({"config", "print_config", "map_argument", "help"})).items():
        name = parameter.name or ""
        value = getattr(o, name)
        origin = origins.get(context.get_parameter_source(name) or ParameterSource.DEFAULT, "default")
        if origin == "default" and long in world:
            origin = shown(source, 500)
        if value is None:
            lines.append(f"# {long}:  # {origin}")
            continue
        plain = [_plain(v) for v in value] if isinstance(value, tuple | list) and parameter.multiple else _plain(value)
        text = yaml.safe_dump({long: plain}, default_flow_style=True, allow_unicode=True, width=1000).strip()
        lines.append(f"{text[1:-1]}  # {origin}")
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    """A value as a person writes it."""
    if isinstance(value, RobotChoice):
        return value.model if value.name is None else f"{value.model}:{value.name}"
    if isinstance(value, Pose):
        return ",".join(f"{v:g}" for v in (mm(value.x), mm(value.y), deg(value.th)))
    return value


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command function all options; it gets them as keyword arguments."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


_OF_SETTINGS = frozenset(
    {"seed", "update_sim_time", "duration", "odom_error_mode", "no_error", "sensor_noise", "threads", "fast", "start"}
)
"""What a saved scenario says by keys of its own, or by the poses of its robots."""


_OF_SAVED = frozenset(
    {
        "config",
        "print_config",
        "map",
        "map_argument",
        "stageworld",
        "nomap",
        "robots",
        "resolution",
        "save_scenario",
        "cwd",
    }
)
"""What a saved scenario holds in its own words, and what is of that one run."""


def world_options(context: click.Context) -> dict[str, Any]:
    """The options that were given on the command line and that a scenario can hold, by their long names."""
    found: dict[str, Any] = {}
    for long, parameter in _world_parameters(context).items():
        name = parameter.name or ""
        if _given(context, name) and name not in _OF_SETTINGS:
            value = context.params[name]
            found[long] = list(value) if isinstance(value, tuple) else value
    return found


def lost_options(context: click.Context) -> list[str]:
    """The options that were given on the command line and that no scenario can hold, for whoever saves one."""
    words = _world_parameters(context)
    return [
        f"--{long}"
        for long, p in _parameters(context, _OF_SAVED).items()
        if long not in words and _given(context, p.name or "")
    ]


def _world_parameters(context: click.Context) -> dict[str, click.Parameter]:
    """The options that a world may set, by long names."""
    return {_long_name(p): p for p in context.command.params if isinstance(p, RunOption) and p.world}


def _parameters(context: click.Context, without: frozenset[str]) -> dict[str, click.Parameter]:
    """What can be said in a configuration file, by long names."""
    return {
        _long_name(p): p for p in context.command.params if p.name not in without and not getattr(p, "hidden", False)
    }


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not ParameterSource.DEFAULT


def _long_name(parameter: click.Parameter) -> str:
    return next((o[2:] for o in parameter.opts if o.startswith("--")), parameter.name or "")


def with_world_options(o: RunOptions, options: Mapping[str, Any], context: click.Context, source: str) -> RunOptions:
    """The options of the command line, and where it says nothing those of a world.

    Raises
    ------
    CommandLineError
        The world has an option that is not its to set, or a value that it cannot have. Readers of files say so with the line.
    """
    from botyard.formats.worldoptions import refusal

    parameters = _world_parameters(context)
    changes: dict[str, Any] = {}
    for key, value in options.items():
        where = f"{source}: options: {key}"
        parameter = parameters.get(key)
        if parameter is None:
            raise CommandLineError(f"{where}: {refusal(key)}")
        try:
            changes[parameter.name or ""] = _cast(context, parameter, value)
        except click.UsageError as error:
            raise CommandLineError(f"{where}: {error.message}") from None
    return replace(o, **{k: v for k, v in changes.items() if not _given(context, k)})
