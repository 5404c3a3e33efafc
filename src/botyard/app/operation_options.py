"""Options of the page, the log, the recording and the process."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.app.declaration import LOGGING, OPERATION, PAGE, option
from botyard.app.kinds import (
    Flag,
    OneOf,
    Port,
    Real,
    Whole,
)


@dataclass(frozen=True, kw_only=True)
class OperationOptions:
    """Options of the page, the log, the recording and the process.

    For the units see `botyard.app.options.RunOptions`.
    """

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
        # The limit is one day, because the history is kept in memory.
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
        help="Ask for the map and the robots on the page, as botyard does when it "
        "starts without a map in a terminal.",
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
        help="Simplify the drawing on the page: no grid, no filled areas of laser "
        "scans, no trails.",
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
        "port of the page serves them without this option. 0: any free port.",
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
        help="On an internal error, print Python's traceback, instead of a log entry "
        "and exit status 236.",
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
        help="Continue from the state in --state-file, and notify clients. A "
        "supervisor gives this option to the simulator that it restarts.",
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


__all__ = ["OperationOptions"]
