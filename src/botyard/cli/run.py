"""``botyard run``, and bare ``botyard``: simulate robots in a map and serve them on TCP ports.

The options of AMRISim keep their names and meanings, in all its spellings (feature table, area CLI).
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from botyard import __version__
from botyard.cli.options import RobotChoice, RobotParam, StartParam
from botyard.errors import CommandLineError, WorldError
from botyard.geometry import Pose

if TYPE_CHECKING:
    from botyard.controllers.base import ControllerFactory
    from botyard.model.robot import RobotSpec
    from botyard.servers.hub import Hub
    from botyard.servers.tcp import PioneerServer
    from botyard.simulation import Simulation

ERROR_MODES = ("random_each_update", "random_init", "constant", "none")

EPILOG = """\b
Examples:
  botyard                                  a robot in the shipped office
  botyard -m lab.map -r p3dx -r amigo:bob  two robots, on ports 8101 and 8102
  botyard -m office -r p3dx --controller wander
  botyard --nomap -r seekur --start 0,0,90 --noninteractive

\b
Other commands: botyard models | maps | drive HOST:PORT | warmup (each has --help), botyard --version
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, as typed; see the command for their meanings."""

    map: str | None
    map_argument: str | None
    nomap: bool
    robots: tuple[RobotChoice, ...]
    port: int
    noninteractive: bool
    no_gui: bool
    start: Pose | str | None
    update_interval: int
    update_sim_time: int | None
    bind_to_address: str
    odom_error_mode: str
    no_error: bool
    resolution: int
    ignore_command: tuple[int, ...]
    warn_unsupported_commands: bool
    seed: int
    sensor_noise: str
    fast: bool
    duration: float | None
    robot_name: str
    json: bool
    controller: str | None
    threads: int
    verbose: bool


@click.command(
    "run", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help", "-help"], "max_content_width": 110}
)
@click.option(
    "-m", "--map", "-map", "map", metavar="FILE", help='Map file, or the name of a shipped map ("botyard maps").'
)
@click.option("--nomap", "-nomap", is_flag=True, help="No map: an empty plane.")
@click.option(
    "-r",
    "--robot",
    "-robot",
    "robots",
    type=RobotParam(),
    multiple=True,
    help='Add a robot of this model ("botyard models"), with a name of your choice. Repeatable. [default: p3dx]',
)
@click.option(
    "-p",
    "--port",
    "-port",
    "port",
    type=click.IntRange(1, 65535),
    default=8101,
    show_default=True,
    help="TCP port of the first robot; the others follow.",
)
@click.option(
    "--bind-to-address",
    "-bind-to-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Listen on this address only; 0.0.0.0 is all.",
)
@click.option(
    "--start",
    "-start",
    type=StartParam(),
    metavar="X,Y,TH|outside|random",
    help="Start pose of the first robot: mm, mm, degrees; 2 m outside of the map; or random free places.",
)
@click.option("--controller", metavar="NAME", help="Drive robots that no client commands: wander.")
@click.option(
    "--update-interval",
    "-update-interval",
    type=click.IntRange(1, 60000),
    default=100,
    show_default=True,
    metavar="MS",
    help="Wall time between two steps.",
)
@click.option(
    "--update-sim-time",
    "-update-sim-time",
    type=click.IntRange(1, 60000),
    metavar="MS",
    help="Simulated time of a step. [default: the update interval]",
)
@click.option("--fast", is_flag=True, help="Step as fast as possible instead of in real time.")
@click.option(
    "--duration", type=click.FloatRange(min=0.0, min_open=True), metavar="S", help="End after so much simulated time."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all random draws: same seed, same run.")
@click.option(
    "--sensor-noise",
    type=click.Choice(["stock", "none"]),
    default="stock",
    show_default=True,
    help="Range sensors err like the devices they stand for, or not at all.",
)
@click.option(
    "--odom-error-mode",
    "-odom-error-mode",
    type=click.Choice(ERROR_MODES),
    default=ERROR_MODES[0],
    show_default=True,
    help="When odometry errors are drawn.",
)
@click.option("--no-error", "-no-error", is_flag=True, help="The same as --odom-error-mode none.")
@click.option(
    "--resolution",
    "-resolution",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    metavar="MM",
    help="Size of map points whose file does not give it.",
)
@click.option(
    "--ignore-command",
    "-ignore-command",
    type=click.IntRange(0, 255),
    multiple=True,
    metavar="N",
    help="Drop Pioneer command number N. Repeatable.",
)
@click.option(
    "--warn-unsupported-commands",
    "-warn-unsupported-commands",
    is_flag=True,
    help="Log every unsupported command, not only the first of each number.",
)
@click.option(
    "--robot-name",
    default="AMRISim",
    show_default=True,
    help="Name that robots report to clients; some look for MobileSim.",
)
@click.option(
    "--noninteractive",
    "-noninteractive",
    "--non-interactive",
    is_flag=True,
    help="Never ask or open anything; a map (or --nomap) must be given.",
)
@click.option(
    "--no-gui",
    "-no-gui",
    is_flag=True,
    help="Run without the page (there is none in this version; implies --noninteractive).",
)
@click.option("--json", is_flag=True, help='Print the line that says "ready" as one JSON object.')
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Threads for many lasers at once; results do not depend on it.",
)
@click.option("--verbose", "-verbose", is_flag=True, help="Log more.")
@click.argument("map_argument", required=False, metavar="[MAP]")
def command(**options: Any) -> int:
    """Simulate robots in a map and serve each on a TCP port by the Pioneer protocol (ARIA, p2os and others)."""
    return run(RunOptions(**options))


def run(o: RunOptions) -> int:
    """Set the world up, serve it, return the exit status."""
    signal.signal(signal.SIGTERM, _interrupt)  # until the event loop takes signals over
    _logging(o.verbose)
    log = logging.getLogger("botyard")
    map_name = _map_name(o)
    from botyard.cli.warmup import warm_up_with_progress
    from botyard.controllers.registry import find_controller
    from botyard.simulation import Simulation

    factory = find_controller(o.controller) if o.controller else None
    sim_ms = o.update_sim_time or o.update_interval
    settings: dict[str, Any] = {
        "seed": o.seed,
        "step": sim_ms / 1000.0,
        "odometry_error": "none" if o.no_error else o.odom_error_mode,
        "sensor_noise": o.sensor_noise == "stock",
        "threads": o.threads,
    }
    warm_up_with_progress()
    if map_name is None:
        sim = Simulation(**settings)
    else:
        sim = Simulation.load(map_name, resolution=o.resolution / 1000.0, warn=log.warning, **settings)
    _add_robots(sim, o)
    return asyncio.run(_serve(sim, o, factory))


def _map_name(o: RunOptions) -> str | None:
    """Which map: the option, the bare argument, none at all, or the shipped office."""
    if o.map and o.map_argument:
        raise CommandLineError(f'two maps were given: "{o.map}" and "{o.map_argument}"')
    name = o.map or o.map_argument
    if name:
        return name
    if o.nomap or o.map == "":
        return None
    if o.noninteractive or o.no_gui:
        raise CommandLineError("--noninteractive needs a map: give one with -m FILE, or say --nomap")
    logging.getLogger("botyard").info('no map was given: using the shipped map "office" (see "botyard maps")')
    return "office"


def _add_robots(sim: Simulation, o: RunOptions) -> None:
    from botyard.model.library import load_robot

    choices: Sequence[RobotChoice] = o.robots or (RobotChoice("p3dx", None),)
    specs = [load_robot(c.model) for c in choices]
    if o.port + len(choices) - 1 > 65535:
        raise CommandLineError(f"{len(choices)} robots do not fit on the ports from {o.port} to 65535")
    for i, (choice, spec) in enumerate(zip(choices, specs, strict=True)):
        sim.add_robot(spec, choice.name, pose=_start_pose(sim, spec, o.start, i))


def _start_pose(sim: Simulation, spec: RobotSpec, start: Pose | str | None, index: int) -> Pose | None:
    """Where robot `index` starts; None leaves it to the map."""
    if start is None:
        return None
    if isinstance(start, Pose):
        return start if index == 0 else sim.free_place(spec, start)
    if start == "outside":
        bounds = sim.scene.bounds
        if bounds is None:
            raise WorldError("--start outside needs a map")
        return Pose(bounds[0] - 2.0, bounds[1] - 2.0 - index, 0.0)
    return sim.random_free_place(spec, index)


async def _serve(sim: Simulation, o: RunOptions, factory: ControllerFactory | None) -> int:
    """Open the ports, say "ready", run until told to end."""
    from botyard.controllers.base import Yielding
    from botyard.protocols.pioneer.session import PioneerSettings
    from botyard.servers.hub import Hub
    from botyard.servers.tcp import PioneerServer

    hub = Hub(sim, interval=None if o.fast else o.update_interval / 1000.0, duration=o.duration)
    settings = PioneerSettings(
        robot_name=o.robot_name,
        firmware=f"S.{__version__}",
        ignore_commands=frozenset(o.ignore_command),
        warn_unsupported=o.warn_unsupported_commands,
    )
    drivable = [r for r in sim.robots.values() if r.spec.drive]
    servers = [PioneerServer(hub, robot, settings) for robot in drivable]
    _on_signals(hub)
    try:
        for i, server in enumerate(servers):
            await server.listen(o.bind_to_address, o.port + i)
        if factory is not None:
            for robot in drivable:
                hub.before_step(Yielding(robot, factory(robot, o.seed)).act)
        print(_ready(sim, servers, o.json), flush=True)
        return await hub.run()
    finally:
        for server in servers:
            server.close()
        await asyncio.sleep(0)  # let the last bytes go


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _on_signals(hub: Hub) -> None:
    """SIGINT and SIGTERM end the run cleanly."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, hub.stop)
        except NotImplementedError:  # Windows: wake the loop from the handler
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(hub.stop))


def _ready(sim: Simulation, servers: Sequence[PioneerServer], as_json: bool) -> str:
    robots = [
        {"name": s.robot.name, "model": s.robot.spec.name, "host": s.address[0], "port": s.address[1]} for s in servers
    ]
    if as_json:
        return json.dumps({"ready": True, "seed": sim.seed, "map": sim.scene.source or None, "robots": robots})
    listed = ", ".join(f"{r['name']} ({r['model']}) on {r['host']}:{r['port']}" for r in robots)
    return f"botyard ready: {listed}; seed {sim.seed}"


def _logging(verbose: bool) -> None:
    """Log lines with time stamps to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    root = logging.getLogger("botyard")
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False
