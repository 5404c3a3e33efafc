"""Options of the interfaces for robot programs: Pioneer, ROS and AMBF."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.app.declaration import AMBF, PIONEER, ROS, option
from botyard.app.kinds import (
    Flag,
    Host,
    OneOf,
    Port,
    Real,
    Whole,
)


@dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """Options of the interfaces for robot programs.

    For the units see `botyard.app.options.RunOptions`.
    """

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
        help="Also copy two behaviours of AMRISim: use the next port if one is in "
        "use, and round ranges to --resolution.",
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
        help="Let clients drive their robots and read all values, but not load maps, "
        "set poses, add or remove robots, pause or end the simulation, or write "
        "files.",
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
        help="Memory limit of loading a map, or drawing a picture, for a client or "
        "the page (Linux).",
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
        kind=OneOf("default", "nav2", "loopback", "amrisim", "stage", "rosaria"),
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
        help="plain: each robot has its own namespace, with plain frame names and its "
        "own tf topic; prefixed: one /tf for all, with frames <robot>/…. "
        "[default: depends on --ros-names]",
        about="plain: each robot has its own namespace, with plain frame names and its "
        "own tf topic; prefixed: one /tf for all, with frames ``<robot>/…``.",
    )
    localization: str | None = option(
        ROS,
        "--localization",
        kind=OneOf("truth", "none"),
        world=True,
        serve=True,
        help="Source of the robots' map pose. truth: botyard, from the true poses; "
        "none: another program such as AMCL or slam_toolbox. [default: none; truth with "
        "--ros-names loopback]",
        about="Source of the robots' map pose. truth: botyard, from the true poses; "
        "none: another program such as AMCL or slam_toolbox.",
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
    nav2_actions: bool = option(
        ROS,
        "--nav2-actions",
        kind=Flag(),
        world=False,
        serve=True,
        help="Offer Nav2's actions of each robot, such as navigate_to_pose, on the "
        "simulator's own planner, for programs without Nav2 (ROS 2).",
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
        "which the world runs freely again; 0: never.",
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
        # The option has AMBF's spelling, like --override_min_comm_freq.
        "--override_max_comm_freq",
        kind=Real(0.1, 10000),
        world=False,
        serve=True,
        metavar="HZ",
        help="Rate of AMBF states after the first command to an object. [default: 1000]",
    )


__all__ = ["ClientOptions"]
