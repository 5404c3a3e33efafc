"""Assembly of a run from its options: parts of the simulator, robots and ports."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from botyard.app.builtin import default_step
from botyard.app.compose import Parts, compose
from botyard.app.interfaces import begin_interfaces
from botyard.app.kinds import RobotChoice, named_values
from botyard.app.options import RunOptions
from botyard.app.served import Run
from botyard.errors import CommandLineError
from botyard.formats.models import resource_folders
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.world import Program, World
from botyard.processes.safefile import is_device
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.addresses import is_loopback
from botyard.servers.jobs.child_jobs import MIB, JobLimits
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.pioneer.robotclient import RobotPortServer
from botyard.sim.simulation import Simulation
from botyard.version import __version__

MAX_NAMED = 20
"""Highest number of robots whose names the first log line contains."""
DEFAULT_CAPACITY = 252.0
"""Battery capacity with --simulate-batteries, Wh: three lead-acid batteries of 7 Ah."""


def assemble(
    sim: Simulation, place: World, o: RunOptions, rotate_logs: Callable[[], None] | None
) -> Parts:
    """Assemble the parts of a simulator from options, without opening any port.

    Parameters
    ----------
    sim : Simulation
        The world, without the robots of the options.
    place : World
        World from which `sim` was made. Its settings apply where no option is given.
    o : RunOptions
        Options of the run.
    rotate_logs : callable, optional
        Reopens the log file on request; None without a log file.

    Returns
    -------
    Parts
        Parts that are connected to each other, at the speed that options and world ask
        for.
    """
    settings = place.settings
    interval = (
        o.update_interval / 1000.0
        if o.update_interval
        else settings.step or default_step(o).step_s
    )
    parts = compose(
        sim,
        # None makes the hub step without waiting for wall time.
        interval=None if o.fast else interval,
        duration=o.duration or settings.duration,
        settings=_settings(o),
        host=o.bind_to_address,
        port=o.port,
        patient=o.compat == "amrisim",
        equip=lambda spec: _with_battery(spec, o.simulate_batteries),
        program=Program(name=o.controller, options=named_values(o.controller_option))
        if o.controller
        else None,
        read_only=o.read_only,
        allow_exit=o.allow_client_exit,
        folders=_map_folders(sim, o),
        reading=o.reading(),
        limits=JobLimits(time=o.job_time, memory=o.job_memory * MIB),
        # Clients choose only the name of a picture. The folder of the log is the one
        # place where the user has already allowed files.
        pictures=Path()
        if o.log_file is None or is_device(o.log_file)
        else Path(o.log_file).parent,
        rotate_logs=rotate_logs,
        watchdog=o.ambf_watchdog,
    )
    # `--fast` on the command line takes precedence over the speed of a world file.
    if settings.speed is not None and not o.fast:
        parts.hub.set_speed(settings.speed)
    if o.paused:
        parts.hub.pause()
    return parts


def _settings(o: RunOptions) -> PioneerSettings:
    """Return the settings of the Pioneer protocol that the options of the run describe."""
    return PioneerSettings(
        robot_name=o.robot_name,
        firmware=f"S.{__version__}",
        version=__version__,
        ignore_commands=frozenset(o.ignore_command),
        warn_unsupported=o.warn_unsupported_commands,
        laser_compat=not o.no_srisim_laser_compat,
        srisim_compat=o.srisim_compat,
        gripper_layout=o.gripper_layout,
        log_packets=o.log_packets_received,
        log_movement=o.log_movement_sent,
        # Flags of the SIMINFO packet: bit 0 for a simulator with a user interface, bit
        # 1 for one that was restarted after a crash.
        siminfo_flags=(0 if o.unattended else 1)
        | (2 if o.restarting_after_crash else 0),
    )


def _map_folders(sim: Simulation, o: RunOptions) -> list[Path]:
    """Return the folders from which clients may load maps.

    The folders are the working folder, ``--map-dir``, the folder of the first map, and
    the user's resource folders.

    Parameters
    ----------
    sim : Simulation
        Simulation of the first map.
    o : RunOptions
        Options of the run.

    Returns
    -------
    list of Path
        Folders in the order in which a name is looked up.
    """
    folders = [Path.cwd(), *map(Path, o.map_dir), *resource_folders()]
    if sim.scene.source:
        folders.append(Path(sim.scene.source).resolve().parent)
    return folders


def _with_battery(spec: RobotSpec, simulate: bool) -> RobotSpec:
    """Give a model a draining battery if `simulate` is set and it has none."""
    # A model that has a capacity keeps it. Bodies without a drive use no energy, so a
    # battery would never drain.
    if not simulate or spec.battery.capacity_wh > 0.0 or not spec.drive:
        return spec
    return replace(spec, battery=replace(spec.battery, capacity_wh=DEFAULT_CAPACITY))


def add_robots(
    robot_servers: RobotServers,
    world: World,
    o: RunOptions,
    choices: Sequence[RobotChoice],
) -> None:
    """Add the robots of the world, the robots chosen by options, and robot factories.

    Parameters
    ----------
    robot_servers : RobotServers
        Owner of robots and ports.
    world : World
        World whose own robots are added first.
    o : RunOptions
        Options of the run: start poses, and models of factories.
    choices : sequence of RobotChoice
        Robots of the options, in order. The robot with number i has the start with
        number i; robots beyond the last start stand next to it.

    Raises
    ------
    BotyardError
        A model does not exist, a name is taken, or a pose is out of range.
    """
    robot_servers.populate(world)
    # Find all models first, so that a wrong name is reported before any robot is added.
    specs = [robot_servers.find_model(c.model) for c in choices]
    sim, first = robot_servers.hub.sim, 0
    # Robots of one model that follow each other share one search for places.
    for _, group in itertools.groupby(
        zip(choices, specs, strict=True), lambda chosen: chosen[0].model
    ):
        chosen = list(group)
        spec = chosen[0][1]
        names = _names(sim, spec.name, [choice.name for choice, _ in chosen])
        poses = _start_poses(sim, spec, o.start, first, len(chosen))
        robot_servers.add_robots(spec, poses, names)
        first += len(chosen)

    made = itertools.count()

    def places(spec: RobotSpec, count: int) -> list[Pose]:
        if not o.start:
            return sim.core.places.next(spec, count)
        last = o.start[-1]
        if isinstance(last, Pose):
            return sim.core.places.near(spec, last, count)
        # The counter advances by the whole group, so that the next client of any
        # factory starts on a place of its own.
        index = next(itertools.islice(made, count - 1, None)) - count + 1
        return _start_poses(sim, spec, (last,), index, count)

    for model in o.factories:
        robot_servers.add_factory(model, places)


def _names(sim: Simulation, base: str, chosen: Sequence[str | None]) -> list[str]:
    """Return one name per robot of a model: the chosen name, or a generated unused one.

    Parameters
    ----------
    sim : Simulation
        The world, whose names are taken.
    base : str
        Start of generated names: ``p3dx``, ``p3dx_002``, …
    chosen : sequence of str or None
        Name of each robot; None for a generated one.

    Returns
    -------
    list of str
        One name for each element of `chosen`.
    """
    given = {name for name in chosen if name is not None}
    # A chosen name may look like a generated one, such as p3dx_002, and must not be
    # given twice.
    free = (n for n in sim.core.unique_names(base, len(chosen)) if n not in given)
    return [next(free) if name is None else name for name in chosen]


def _start_poses(
    sim: Simulation, spec: RobotSpec, starts: Sequence[Pose | str], first: int, n: int
) -> list[Pose]:
    """Return the start poses of `n` robots of a model, from number `first`.

    Each robot has the start with its number; robots beyond the last start stand next to
    it. Without starts the map decides.

    Parameters
    ----------
    sim : Simulation
        The world.
    spec : RobotSpec
        Model of the robots; its outline decides which places are free.
    starts : sequence of Pose or str
        Poses in the frame of the world (m, m, rad), ``outside`` or ``random``.
    first : int
        Number of the first robot, counted over all robots of the options.
    n : int
        Number of robots.

    Returns
    -------
    list of Pose
        `n` poses in the frame of the world (m, m, rad).
    """
    if not starts:
        return sim.core.places.next(spec, n)
    poses: list[Pose] = []
    for index in range(first, min(first + n, len(starts))):
        poses += _places_at(sim, spec, starts[index], index, 1, poses, exact=True)
    left, last = n - len(poses), starts[-1]
    return poses + _places_at(sim, spec, last, first + len(poses), left, poses)


def _places_at(
    sim: Simulation,
    spec: RobotSpec,
    start: Pose | str,
    first: int,
    n: int,
    given: Sequence[Pose],
    *,
    exact: bool = False,
) -> list[Pose]:
    """Return `n` poses at one start, for the robots from number `first`.

    `given` are poses already assigned to robots that are not in the world yet. With `exact`, the
    robots get the start pose itself; otherwise free poses next to it.
    """
    if isinstance(start, Pose):
        return (
            [start] * n if exact else sim.core.places.near(spec, start, n, given=given)
        )
    if start == "outside":
        bounds = sim.scene.bounds
        # `check_world` has rejected this start without a map.
        assert bounds is not None
        # Each further robot starts 1 m further away, so that they do not overlap.
        return [
            Pose(bounds[0] - 2.0, bounds[1] - 2.0 - index, 0.0)
            for index in range(first, first + n)
        ]

    return sim.core.places.random_many(spec, first, n, given=given)


async def open_interfaces(
    stack: contextlib.AsyncExitStack,
    parts: Parts,
    o: RunOptions,
    ports: Mapping[RobotPortServer, int],
    kept: Sequence[Any] = (),
    rest: Collection[str] = (),
) -> Run:
    """Register all interfaces, and start the selected ones; they stop when `stack` is closed.

    Parameters
    ----------
    stack : AsyncExitStack
        Owner of everything that is opened.
    parts : Parts
        Parts of the simulator, from `assemble`.
    o : RunOptions
        Options of the run.
    ports, kept
        See `Run`.
    rest : collection of str
        Interfaces that are not started yet.

    Returns
    -------
    Run
        The shared state of all interfaces.
    """
    if not is_loopback(o.bind_to_address):
        logging.getLogger("botyard").warning(
            "every computer that can reach %s can command the robots: the "
            "Pioneer protocol has no passwords",
            o.bind_to_address,
        )

    if o.record_packets is not None:
        from botyard.servers.pioneer.packetlog import PacketLog

        sim = parts.hub.sim
        packets = PacketLog(o.record_packets, lambda: sim.time, force=o.force)
        # The stack closes in reverse order: the interfaces stop first, and their last
        # bytes still reach the log.
        stack.callback(packets.close)
        parts.robot_servers.desk.taps.add(packets.take)
        parts.recordings.has_packets = True

    _record(parts, o)
    stack.callback(parts.recordings.close)
    run = Run(parts, o, ports, kept)
    if o.log_timing_stats is not None:
        from botyard.servers.web.metrics import TimingLog

        stack.callback(TimingLog(parts.robot_servers, o.log_timing_stats).close)

    # Interfaces start last, so that recordings and packet logs contain the first bytes
    # of the first client.
    await begin_interfaces(stack, run, rest)
    return run


def _record(parts: Parts, o: RunOptions) -> None:
    """Start the recording that the options request.

    Raises
    ------
    CommandLineError
        The file cannot be written.
    """
    if o.record is None:
        return
    from botyard.recording.start import choose

    path = Path(o.record)
    # Do not overwrite the recording of the crash.
    while o.restarting_after_crash and path.exists():
        path = path.with_stem(f"{path.stem}_again")
    choices = choose(
        topics=o.record_topic or None,
        robots=o.record_robot or ("*",),
        rate=o.record_rate,
        split_mb=o.record_split,
        split=o.record_split_time,
        last=o.record_last,
        on_stall=o.record_on_stall,
        overwrite=o.force,
        patient=o.fast,
    )
    try:
        # The options may have been checked long ago, and the disk can have changed
        # since.
        parts.recordings.begin(path, choices)
    except OSError as error:
        raise CommandLineError(
            f"--record: cannot write {path}: {error.strerror}"
        ) from None


def about(robot_servers: RobotServers) -> str:
    """Return a description of the run for the log (LOG-007).

    Parameters
    ----------
    robot_servers : RobotServers
        Robots of the run.

    Returns
    -------
    str
        One line: version, system, process, map, robots that drive (at most `MAX_NAMED`
        by name) and seed.
    """
    sim = robot_servers.hub.sim
    named = [
        f"{name} ({robot.spec.name})"
        for name, robot in sim.robots.items()
        if robot.spec.drive
    ]
    robots = ", ".join(named[:MAX_NAMED])
    if len(named) > MAX_NAMED:
        robots += f" and {len(named) - MAX_NAMED} more"
    system = (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    return (
        f"botyard {__version__} ({system}), process {os.getpid()}, map "
        f"{sim.scene.source or 'none'}, "
        f"robots: {robots or 'none'}, seed {sim.seed}"
    )


__all__ = ["about", "add_robots", "assemble", "open_interfaces"]
