"""``botyard run``, and bare ``botyard``: simulate robots in a map and serve them.

The options of AMRISim keep their names and meanings, in all spellings (feature table,
area CLI).
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from botyard.app.checks import check_options
from botyard.app.options import RunOptions
from botyard.cli import interrupts
from botyard.cli.crash import crash_handler
from botyard.cli.logs import set_up_logging
from botyard.cli.runoptions import (
    ARGUMENTS,
    RunCommand,
    config_text,
    is_given,
    lost_options,
    with_options,
    world_options,
)
from botyard.errors import (
    BotyardError,
    CommandLineError,
    FolderError,
    did_you_mean,
)

if TYPE_CHECKING:
    from botyard.app.firstworld import Caller
    from botyard.formats.crashstate import SavedState
    from botyard.model.world import World
    from botyard.servers.hub import Hub
    from botyard.servers.jobs.statefile import StateKeeper
    from botyard.servers.pioneer.robot_servers import RobotServers
    from botyard.servers.pioneer.robotclient import RobotPortServer
    from botyard.sim.simulation import Simulation

DEFAULT_LOG_SIZE = 5_000_000
"""Size at which an unattended run rotates its log file, bytes (CLI-026)."""
EPILOG = """\b
Examples:
  botyard                                  asks for a map and robots on the page
  botyard -m lab.map -r p3dx -r amigo:bob  two robots, on ports 8101 and 8102
  botyard -m office -r p3dx --controller wander
  botyard --nomap -r seekur --start 0,0,90 --noninteractive
  botyard -m lab.map -R p3at               a new robot for each client of port 8101
"""


@click.command(
    "run",
    cls=RunCommand,
    epilog=EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help", "-help"],
        "max_content_width": 110,
    },
)
@with_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int:
    """Simulate robots in a map and serve each on a TCP port.

    The ports speak the Pioneer protocol (ARIA, p2os and others).
    """
    return run(RunOptions(**options), context)


def run(o: RunOptions, context: click.Context) -> int:
    """Set up the world, serve it, and return the exit status.

    With ``--daemonize``, or under a supervisor, another process simulates.

    Parameters
    ----------
    o : RunOptions
        Options of the command line, without the options that the world file sets.
    context : click.Context
        Context that knows which options were given.

    Returns
    -------
    int
        Exit status (feature table, area EXIT).

    Raises
    ------
    CommandLineError
        Options contradict each other, or an extra or a file is missing.
    BotyardError
        The world cannot be read, or a port is taken.
    """
    o = _with_interfaces(o)
    if o.daemonize:
        from botyard.cli.daemon import daemonize

        # Start the background process before any other work, because it repeats the
        # whole command line.
        return daemonize(context.meta[ARGUMENTS], o.log_file)

    state_file: Callable[[], Path] | None = None
    if _is_supervised(o):
        from botyard.servers.jobs.supervise import become_supervisor, supervise

        here = _working_folder()
        if o.cwd is not None:
            _change_folder(o.cwd)
        started = context.meta[ARGUMENTS], o.log_file, o.state_file, here
        # Windows cannot replace the program of a process.
        if not interrupts.is_own_program() or os.name != "posix":
            # Stop handling signals here: a signal would otherwise end this process
            # before the supervisor installs its own handlers.
            interrupts.hand_over()
            return supervise(*started)

        supervisor = os.getpid()
        state_file = become_supervisor(*started)
        # This is a fork, which has no thread that watches for signals.
        interrupts.begin()
        o = replace(o, cwd=None, supervisor=supervisor)

    interrupts.terminate_too()
    _raise_file_limit()
    if o.cwd is not None:
        _change_folder(o.cwd)
    # Fail early: interfaces search this folder for files.
    _working_folder()
    remarks: list[str] = []
    if not o.print_config:
        check_options(o)
    typed = o
    # Readers of files take long to import: `--help` does without them.
    from botyard.app.firstworld import load_world, with_map_of

    world, o = load_world(o, caller_of(context, remarks.append))
    o = o if o is typed else _with_interfaces(o)
    if o.print_config:
        click.echo(config_text(o, context, world.options, world.scene.source), nl=False)
        return 0

    # The world file has set options, so check the combination again.
    if o is not typed:
        check_options(o)
    if state_file is not None:
        o = replace(o, state_file=str(state_file()))
    world = replace(world, options={**world.options, **world_options(context)})
    saved = _state_before(o, remarks.append)
    if saved is not None:
        world = with_map_of(saved, world, o, remarks.append)
    size = o.log_file_max_size
    if size is None:
        size = DEFAULT_LOG_SIZE if o.unattended else 0
    form = "html" if o.html else o.log_format
    logs = set_up_logging(
        verbose=o.verbose,
        quiet=o.less_verbose,
        file=o.log_file,
        max_size=size,
        form=form,
    )
    guard = (
        contextlib.nullcontext()
        if o.no_crash_handler
        else crash_handler(
            logs, o.log_file, traces=not o.no_crash_debug, alone=o.supervisor is None
        )
    )
    try:
        with guard:
            return _simulate(
                world,
                o,
                remarks,
                logs.rotate if o.log_file is not None else None,
                saved,
            )
    finally:
        logs.close()


def _with_interfaces(o: RunOptions) -> RunOptions:
    """Return the options with the values that ``--interface`` gives for built-in interfaces."""
    if not o.interface:
        return o
    from botyard.app.builtin import with_interfaces

    return with_interfaces(o)


def _is_supervised(o: RunOptions) -> bool:
    """Return whether this process supervises another process that simulates.

    The result is True for an unattended run without another supervisor and without a fixed end.
    """
    return o.unattended and not (
        o.no_crash_restart
        or o.no_crash_handler
        or o.supervisor is not None
        or o.restarting_after_crash
        or o.duration
        or o.print_config
    )


def _state_before(o: RunOptions, remark: Callable[[str], None]) -> SavedState | None:
    """Return the state that a crashed simulator saved; None: this is not a restart."""
    if o.state_file is None or not o.restarting_after_crash:
        return None
    from botyard.servers.jobs.statefile import read_state

    return read_state(o.state_file, remark)


def _simulate(
    world: World,
    o: RunOptions,
    remarks: list[str],
    rotate_logs: Callable[[], None] | None,
    saved: SavedState | None,
) -> int:
    """Create the simulation, serve it, and return the exit status."""
    for text in remarks:
        logging.getLogger("botyard").warning("%s", text)
    from botyard.app.firstworld import make_simulation

    tick = saved.tick if saved is not None else 0
    sim = make_simulation(world, o, warm_up, tick)
    return interrupts.run_loop(_serve(sim, world, o, rotate_logs, saved))


def _raise_file_limit() -> None:
    """Raise the limit of open files to its maximum.

    Each client and each port needs one.
    """
    try:
        import resource
    # Windows does not limit the number of open files.
    except ImportError:
        return

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))


def _change_folder(folder: str) -> None:
    """Change the working folder (``--cwd``)."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise FolderError(
            f'--cwd: cannot change to "{folder}": {error.strerror}'
        ) from None


def _working_folder() -> Path:
    """Return the working folder; raise FolderError if it was removed."""
    try:
        return Path.cwd()
    except OSError as error:
        raise FolderError(
            f"the working folder cannot be used: {error.strerror}; start in a folder that exists"
        ) from None


def caller_of(context: click.Context, remark: Callable[[str], None]) -> Caller:
    """Return the services of the command line that the creation of the first world needs.

    Parameters
    ----------
    context : click.Context
        Context that knows which options were given.
    remark : callable
        Receives each warning about files.
    """
    from botyard.app.firstworld import Caller

    return Caller(remark, partial(is_given, context), interrupts.run_loop)


def warm_up(masses: bool) -> None:
    """Load or compile the kernels, and show a progress line.

    Parameters
    ----------
    masses : bool
        Whether any body has mass; its kernels take longer.
    """
    from botyard.cli.warmup import warm_up_with_progress

    warm_up_with_progress(masses=masses)


async def _serve(
    sim: Simulation,
    place: World,
    o: RunOptions,
    rotate_logs: Callable[[], None] | None,
    saved: SavedState | None,
) -> int:
    """Open the ports, print "ready", and run until the program is asked to end."""
    import asyncio

    from botyard.app.assembly import about, add_robots, assemble, open_interfaces
    from botyard.app.firstworld import asks_for_map
    from botyard.controllers.base import call_in
    from botyard.servers.throttledlog import watch_over

    log = logging.getLogger("botyard")
    watch_over(asyncio.get_running_loop(), log)
    parts = assemble(sim, place, o, rotate_logs)
    robot_servers, hub = parts.robot_servers, parts.hub
    asks = asks_for_map(o)
    if not asks:
        add_robots(robot_servers, place, o, o.chosen_robots(bool(place.robots)))
    ports: dict[RobotPortServer, int] = {}
    if saved is not None:
        from botyard.servers.jobs.statefile import restore

        named = restore(robot_servers, saved)
        ports = {
            robot_servers.servers[n]: port
            for n, port in named.items()
            if n in robot_servers.servers
        }
        ports |= dict(zip(robot_servers.factories, saved.factories, strict=False))

    async with contextlib.AsyncExitStack() as stack:
        try:
            page, kept = None, saved.page if saved is not None else ()
            doors = await open_interfaces(stack, parts, o, ports, kept)
            if o.joystick is not None:
                _plug_joystick(stack, hub, o.joystick)
            if not o.no_gui:
                from botyard.cli.page import greet

                served = doors.page()
                page, kept = served.url, served.kept
                greet(
                    stack,
                    served,
                    robot_servers,
                    o,
                    asks,
                    lambda: _ready(robot_servers, o.json, served.url),
                )

            interrupts.ready(hub.stop, call_in)
            if place.settings.paused and page is not None and not o.noninteractive:
                hub.pause()
                log.info(
                    "the simulation is paused, as the world file demands: resume it on the page"
                )

            if not asks:
                _say_ready(_ready(robot_servers, o.json, page), again=saved is not None)
            log.info("%s", about(robot_servers))
            keeper = _keep_state(stack, robot_servers, o, kept)
            # Modules, kernels and the world live as long as the run. Without freezing
            # them, each full garbage collection delays a step by 60 to 100 ms.
            gc.freeze()
            status = await hub.run()
            if hub.is_crash and not o.no_crash_handler:
                from botyard.servers.jobs.supervise import keep_log

                keep_log(o.log_file)

            if keeper is not None and not hub.is_crash:
                # A regular end needs no restart, so the state is deleted.
                keeper.forget()
            _write_results(sim, o, place)
            return status
        finally:
            parts.close()
            await asyncio.sleep(0)  # one turn of the event loop sends the last bytes

    # Never reached: the stack suppresses no exception.
    raise AssertionError


def _say_ready(line: str, *, again: bool) -> None:
    """Print the line that announces that the simulator is ready.

    After a restart, an error is only logged: the program that read the first ready line
    may have closed the pipe.
    """
    try:
        # The line and its newline go out in one write, so that log lines on the same
        # pipe cannot split it.
        click.echo(line)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not again:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # as long as the program runs
        logging.getLogger("botyard").warning(
            'cannot write "ready" to standard output: %s', error.strerror
        )


def _keep_state(
    stack: contextlib.AsyncExitStack,
    robot_servers: RobotServers,
    o: RunOptions,
    page: Sequence[Any],
) -> StateKeeper | None:
    """Save the state regularly, for a restart after a crash (``--state-file``)."""
    if o.state_file is None:
        return None
    from botyard.processes.safefile import Hold
    from botyard.servers.jobs.statefile import StateKeeper

    # A supervisor, if any, locks the file from one start to the next.
    if o.supervisor is None:
        # Two simulators with one state file would overwrite each other's state.
        stack.enter_context(Hold(o.state_file))
    keeper = StateKeeper(robot_servers, o.state_file, page, o.supervisor)
    stack.callback(keeper.close)
    return keeper


def _write_results(sim: Simulation, o: RunOptions, place: World) -> None:
    """Write the files requested for the end of the run.

    A file that cannot be written does not prevent the writing of the others.

    Raises
    ------
    BotyardError
        The first failure; further ones are logged.
    """
    first: BotyardError | None = None
    for name, write in (
        (o.snapshot, partial(_write_snapshot, sim, force=o.force)),
        (o.save_scenario, partial(_save_scenario, sim, place=place, force=o.force)),
    ):
        try:
            if name is not None:
                write(name)
        except BotyardError as error:
            if first is not None:
                logging.getLogger("botyard").error("%s", error)
            first = first or error

    if first is not None:
        raise first


def _write_snapshot(sim: Simulation, name: str, *, force: bool) -> None:
    """Write the picture that ``--snapshot`` requests."""
    try:
        sim.render(name, overwrite=force)
    except (
        OSError,
        ValueError,
        # Pillow raises ValueError for an unknown suffix.
    ) as error:
        raise CommandLineError(f"--snapshot: cannot write {name}: {error}") from None

    logging.getLogger("botyard").info("picture written to %s", name)


def _save_scenario(sim: Simulation, name: str, *, place: World, force: bool) -> None:
    """Write the scenario file that ``--save-scenario`` requests.

    `place` is the world that the run started with. Its speed, duration, pause and options go into
    the new scenario.
    """
    from botyard.formats import saving
    from botyard.sim.worldfiles import world_of

    log = logging.getLogger("botyard")
    world, before = world_of(sim), place.settings
    settings = replace(
        world.settings,
        speed=before.speed,
        duration=before.duration,
        paused=before.paused,
    )
    for note in saving.save(
        replace(world, settings=settings, options=place.options), name, overwrite=force
    ):
        log.warning("%s: %s", name, note)

    log.info("scenario written to %s", name)
    lost = lost_options(click.get_current_context())
    if lost:
        log.info(
            "%s: a scenario cannot hold these options, give them again on the command line: %s",
            name,
            " ".join(lost),
        )


def _plug_joystick(stack: contextlib.AsyncExitStack, hub: Hub, name: str) -> None:
    """Connect the keyboard to a robot's joystick (``--joystick``)."""
    from botyard.cli.joystick import HELP, KeyJoystick
    from botyard.cli.keyboard import Keyboard

    # The start dialog may add robots after the options were checked.
    if name not in hub.sim.robots:
        raise CommandLineError(
            f'--joystick: no robot "{name}"{did_you_mean(name, hub.sim.robots)}'
        )

    keys = stack.enter_context(Keyboard())
    hub.sim.before_step(KeyJoystick(hub.sim.robots[name], keys.read).act)
    logging.getLogger("botyard").info(HELP)


def _ready(robot_servers: RobotServers, as_json: bool, page: str | None) -> str:
    """Return the line that announces that the simulator is ready."""
    sim = robot_servers.hub.sim
    robots = [
        {
            "name": s.robot.name,
            "model": s.robot.spec.name,
            "host": s.address[0],
            "port": s.address[1],
        }
        for s in robot_servers.servers.values()
    ]
    made = [
        {"model": f.model.name, "host": f.address[0], "port": f.address[1]}
        for f in robot_servers.factories
    ]
    if as_json:
        source = sim.scene.source or None
        about = {
            "ready": True,
            "process": os.getpid(),
            "seed": sim.seed,
            "step": sim.dt,
            "map": source,
            "robots": robots,
            "factories": made,
            "page": page,
        }
        return json.dumps(about)

    listed = [f"{r['name']} ({r['model']}) on {r['host']}:{r['port']}" for r in robots]
    listed += [
        f"a {f['model']} for each client of {f['host']}:{f['port']}" for f in made
    ]
    shown = f"\npage: {page}" if page else ""
    pace = f"seed {sim.seed}, steps of {1000.0 * sim.dt:g} ms"
    return (
        f"botyard ready: {', '.join(listed) or 'no robots'}; {pace}, process "
        f"{os.getpid()}{shown}"
    )
