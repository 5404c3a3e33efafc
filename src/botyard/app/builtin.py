"""Built-in interfaces: declarations, options of the run, and servers.

`botyard.interfaces.registry` lists them as entry points, like the interfaces of other
packages. Their options are options of the run (`botyard.app.options`) under shorter
names: ``--interface ros2:domain=7`` means ``--ros2 --ros-domain-id 7``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botyard.app.kinds import Flag, OneOf, Real, Whole
from botyard.app.options import OPTIONS, RunOptions
from botyard.control import Level
from botyard.interfaces import discovery
from botyard.interfaces.interface import Carrier, Interface, Option, Switch
from botyard.interfaces.registry import BUILT_IN, parse_choice
from botyard.protocols.ambf.link import PORT as AMBF_PORT
from botyard.protocols.foxglove import PORT as FOXGLOVE_PORT
from botyard.protocols.rosbridge import PORT as ROSBRIDGE_PORT
from botyard.protocols.tcpros import MASTER_PORT

if TYPE_CHECKING:
    from botyard.app.served import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceOptions:
    """Rules by which the options of a run select and configure an interface.

    Attributes
    ----------
    is_asked : callable
        Return whether the options select the interface.
    is_offered : callable
        Return whether the interface can be switched on in a run with these options.
    asking : mapping of str to object
        Values of options (by field) that select the interface.
    fields : mapping of str to str
        Fields of `RunOptions`, by option name of the interface.
    step_s : callable
        Return the default time step with the interface, s; None: it has no requirement.
    tolerated : callable
        Return the hint of the warning if its port cannot be opened; None: the run
        fails.
    """

    is_asked: Callable[[RunOptions], bool] = lambda _o: False
    is_offered: Callable[[RunOptions], bool] = lambda _o: True
    asking: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    step_s: Callable[[RunOptions], float | None] = lambda _o: None
    tolerated: Callable[[RunOptions], str | None] = lambda _o: None


DEFAULT_STEP_S: Final = 0.1
"""Default time step, s."""
AMBF_STEP_S: Final = 0.005
"""Default time step with AMBF's objects, s; AMBF clients expect small steps."""
ROS2_STEP_S: Final = 0.02
"""Default time step with ROS 2, s.

Nav2's controllers and filters expect odometry and transforms at 20 to 50 Hz.
"""
NO_OPTIONS: Final = InterfaceOptions()
"""Value for interfaces of other packages and for interfaces that a command runs: no options."""
INTERFACE_OPTIONS: Final[dict[str, InterfaceOptions]] = {}
"""Options of the run that concern each interface, by name of the interface."""


def _option(name: str, of: str) -> Option:
    """Return the declaration of an interface's option, made from the same option of the run."""
    # Use one declaration for the command line and `--interface`, so that bounds,
    # defaults and texts cannot differ between the two.
    option = OPTIONS[of]
    kind = option.kind
    value = (
        bool
        if isinstance(kind, Flag)
        else int
        if isinstance(kind, Whole)
        else float
        if isinstance(kind, Real)
        else str
    )
    low, high = -float("inf"), float("inf")
    if isinstance(kind, (Whole, Real)):
        low, high = (
            x if y is None else float(y)
            for x, y in ((low, kind.low), (high, kind.high))
        )

    # Only words need a list: numbers are checked against their bounds, and any other
    # text is checked where it is used.
    words = kind.words if isinstance(kind, OneOf) else ()
    default = option.default
    return Option(name, value, default, option.about or option.help, low, high, words)


def _built_in(
    name: str,
    about: str,
    *extras: str,
    serve: Callable[[Run, Interface], Switch] | None = None,
    carrier: Carrier = Carrier.OWN,
    level: Level = Level.CHANGE,
    port: int = 0,
    **chosen_by: Any,
) -> Interface:
    """Return the declaration of a built-in interface, and store its `InterfaceOptions`."""
    INTERFACE_OPTIONS[name] = InterfaceOptions(**chosen_by)
    options = tuple(_option(n, of) for n, of in INTERFACE_OPTIONS[name].fields.items())
    return Interface(
        name=name,
        about=about,
        carrier=carrier,
        server=serve,
        extras=extras,
        level=level,
        port=port,
        options=options,
    )


# -- servers of each interface, imported on first use


def _pioneer(run: Run, interface: Interface) -> Switch:
    # Pass the method, not its result: only the first start restores the ports from
    # before a restart. A later start opens the usual ports.
    ports = run.take_ports
    return Switch(
        interface.about,
        False,
        lambda: run.parts.robot_servers.open_ports(ports()),
        run.parts.robot_servers.close_ports,
    )


def _mdns(run: Run, interface: Interface) -> Switch:
    from botyard.app.served import MdnsService

    announced = MdnsService(run.parts.robot_servers)
    return Switch(interface.about, False, announced.start, announced.stop)


def _lockstep(run: Run, interface: Interface) -> Switch:
    parts = run.parts

    async def start() -> None:
        parts.control.stepper = parts.lockstep

    async def stop() -> None:
        # Clients that wait for a step are released first. Otherwise they would block
        # the world after stepping is switched off.
        parts.lockstep.release_all()
        parts.control.stepper = None

    return Switch(interface.about, False, start, stop)


def _metrics(run: Run, interface: Interface) -> Switch:
    from botyard.app.served import MetricsService

    figures = MetricsService(run.parts.robot_servers, run.o)
    return Switch(
        interface.about,
        False,
        figures.start,
        figures.stop,
        address=lambda: figures.address,
    )


def _page(run: Run, interface: Interface) -> Switch:
    async def start() -> None:
        await run.page().start()

    async def stop() -> None:
        await run.page().stop()

    return Switch(
        interface.about,
        False,
        start,
        stop,
        # `run.page()` creates the page, so `address` must not call it before the page
        # has started.
        address=lambda: run.page().address if run.has_page else None,
    )


PIONEER: Final = _built_in(
    "pioneer",
    "Pioneer protocol (ARIA, p2os) over TCP, one port per robot",
    serve=_pioneer,
    port=8101,
    is_asked=lambda _o: True,
    fields={
        "port": "port",
        "robot_name": "robot_name",
        "warn_unsupported": "warn_unsupported_commands",
        "gripper_layout": "gripper_layout",
        "srisim_compat": "srisim_compat",
    },
)
INTERFACE_OPTIONS["discovery"] = InterfaceOptions(
    is_asked=lambda o: not o.no_network_discovery,
    asking={"no_network_discovery": False},
    tolerated=lambda _o: "network discovery is off",
)
DISCOVERY: Final = discovery.interface
MDNS: Final = _built_in(
    "mdns",
    "announcement of the robots by multicast DNS",
    "discovery",
    serve=_mdns,
    level=Level.WATCH,
    is_asked=lambda o: o.mdns,
    asking={"mdns": True},
)
LOCKSTEP: Final = _built_in(
    "lockstep",
    "stepping of the world by clients of any protocol",
    serve=_lockstep,
    is_asked=lambda _o: True,
    fields={"watchdog": "ambf_watchdog"},
)


AMBF: Final = replace(
    _built_in(
        "ambf",
        "AMBF objects without ROS",
        serve=lambda run, it: run.ros.link_switch(it),
        carrier=Carrier.TCP,
        port=AMBF_PORT,
        # A port of -1 switches off this interface alone: AMBF's objects remain
        # available over ROS.
        is_asked=lambda o: o.ambf is not None and o.ambf_port >= 0,
        asking={"ambf": "2.0"},
        is_offered=lambda o: (
            o.ambf is not None
            # AMBF's message types and time step apply to the whole run, so they cannot
            # change later.
        ),
        step_s=lambda o: None if o.ambf is None else AMBF_STEP_S,
        fields={
            "generation": "ambf",
            "port": "ambf_port",
            "namespace": "ambf_namespace",
            "min_freq": "ambf_min_freq",
            "max_freq": "ambf_max_freq",
        },
        tolerated=lambda o: (
            "--ambf-port selects another port" if o.ambf_port == AMBF_PORT else None
            # A port that the user has chosen must not be replaced silently.
        ),
    ),
    clients=64,
    # Room for states and commands of many objects at 1000 Hz.
    byte_rate=16.0 * 2**20,
    work_share=0.5,
)
_ROS_FIELDS: Final = {
    "names": "ros_names",
    "time": "ros_time",
    "frames": "ros_frames",
    "localization": "localization",
    "map": "ros_map",
    "cmd_vel_timeout": "cmd_vel_timeout",
    "scan_rate": "scan_rate",
    "nav2_actions": "nav2_actions",
}
"""Options that all ROS interfaces share, because they offer the same topics and services."""
ROSMASTER: Final = _built_in(
    "rosmaster",
    "a ROS 1 master in the simulator",
    serve=lambda run, it: run.ros.master_switch(it),
    port=MASTER_PORT,
)
ROS1: Final = _built_in(
    "ros1",
    "ROS 1 (TCPROS)",
    serve=lambda run, it: run.ros.ros1_switch(it),
    is_asked=lambda o: (
        o.ros1
        or o.ros_master is not None
        or (
            o.ambf is not None
            # The original AMBF speaks ROS 1 only, so `--ambf` alone selects it. A
            # chosen ROS 2 transport replaces it.
            and not (o.ros2 or o.ros_domain_id is not None or o.zenoh or o.zenoh_router)
        )
    ),
    asking={"ros1": True},
    fields={"master": "ros_master", "wait": "ros_wait", **_ROS_FIELDS},
)
ROS2: Final = _built_in(
    "ros2",
    "ROS 2 (DDS)",
    serve=lambda run, it: run.ros.ros2_switch(it),
    is_asked=lambda o: o.ros2 or o.ros_domain_id is not None,
    asking={"ros2": True},
    step_s=lambda o: ROS2_STEP_S if o.ros2 or o.ros_domain_id is not None else None,
    fields={"domain": "ros_domain_id", "distro": "ros_distro", **_ROS_FIELDS},
)
ZENOH: Final = _built_in(
    "zenoh",
    "ROS 2 (Zenoh)",
    "zenoh",
    serve=lambda run, it: run.ros.zenoh_switch(it),
    is_asked=lambda o: o.zenoh or o.zenoh_router,
    asking={"zenoh": True},
    step_s=lambda o: ROS2_STEP_S if o.zenoh or o.zenoh_router else None,
    fields={
        "router": "zenoh_router",
        "domain": "ros_domain_id",
        "distro": "ros_distro",
        **_ROS_FIELDS,
    },
)


def _web_ros(name: str, about: str, port: int) -> Interface:
    """Declare ROS for WebSocket clients: its option is the port, with a token."""
    declared = _built_in(
        name,
        about,
        serve=lambda run, it: run.ros.web_switch(it),
        carrier=Carrier.WEBSOCKET,
        port=port,
        is_asked=lambda o: getattr(o, name) is not None,
        asking={name: port},
        fields={
            "port": name,
            "token": f"{name}_token",
            "distro": "ros_distro",
            **_ROS_FIELDS,
        },
    )
    return replace(declared, clients=100)


ROSBRIDGE: Final = _web_ros(
    "rosbridge", "ROS over the rosbridge protocol", ROSBRIDGE_PORT
)
FOXGLOVE: Final = _web_ros(
    "foxglove", "live data for Foxglove and Lichtblick", FOXGLOVE_PORT
)
METRICS: Final = _built_in(
    "metrics",
    "metrics for Prometheus over HTTP",
    serve=_metrics,
    level=Level.WATCH,
    is_asked=lambda o: o.metrics_port is not None,
    # The metrics have no usual port of their own, so a start without an option takes
    # any free one.
    asking={"metrics_port": 0},
    fields={"port": "metrics_port"},
)
PAGE: Final = _built_in(
    "page",
    "the page",
    serve=_page,
    level=Level.OWN,
    port=8100,
    is_asked=lambda o: not o.no_gui,
    asking={"no_gui": False},
    fields={
        "port": "gui_port",
        "address": "gui_address",
        "token": "gui_token",
        "lite_graphics": "lite_graphics",
        "no_graphics": "no_graphics",
    },
)
VDA5050: Final = Interface(
    name="vda5050",
    about="AGVs of VDA 5050 over MQTT",
    carrier=Carrier.OWN,
    extras=("vda5050",),
    command="botyard traffic vda5050",
)
TRAFFICROS: Final = Interface(
    name="trafficros",
    about="a traffic task over ROS",
    carrier=Carrier.OWN,
    command="botyard traffic run",
)


def with_interfaces(o: RunOptions) -> RunOptions:
    """Return the options of a run with the values that ``--interface`` gives for built-in
    interfaces.

    Raises
    ------
    CommandLineError
        An option is unknown, or its value is not valid.
    """
    for text in o.interface:
        name = text.partition(":")[0]
        if name not in BUILT_IN:
            continue
        # Interfaces of other packages keep their own options: `begin_interfaces` reads
        # those.
        _, said = parse_choice(text)
        chosen_by = INTERFACE_OPTIONS[name]
        changed = replace(
            o,
            **{
                chosen_by.fields[option]: value
                for option, value in said.items()
                if option in chosen_by.fields
            },
        )
        # An option such as the port may already select the interface. `asking` would
        # then overwrite the value that the user gave.
        o = (
            changed
            if chosen_by.is_asked(changed)
            else replace(changed, **chosen_by.asking)
        )

    return o


class DefaultStep(NamedTuple):
    """Default time step of a run, and the interface that needs it.

    Attributes
    ----------
    step_s : float
        Simulated time of a step, s.
    interface : str
        Name of the interface; empty: none needs this step.
    """

    step_s: float
    interface: str


def default_step(o: RunOptions) -> DefaultStep:
    """Return the smallest default step of the selected interfaces.

    With ``--update-sim-time`` they have no influence: the user has chosen the step.

    Parameters
    ----------
    o : RunOptions
        Options of the run.

    Returns
    -------
    DefaultStep
        Step in s and the interface that needs it; `DEFAULT_STEP_S` without an interface
        if none needs a smaller one.
    """
    wanted = (
        []
        if o.update_sim_time
        else [
            (chosen_by.step_s(o), name) for name, chosen_by in INTERFACE_OPTIONS.items()
        ]
    )
    return min(
        # The smallest step wins: every selected interface can work with a smaller step
        # than its own, none with a larger one.
        (DefaultStep(step, name) for step, name in wanted if step is not None),
        default=DefaultStep(DEFAULT_STEP_S, ""),
    )


__all__ = [
    "INTERFACE_OPTIONS",
    "NO_OPTIONS",
    "DefaultStep",
    "InterfaceOptions",
    "default_step",
    "with_interfaces",
]
