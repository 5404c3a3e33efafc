"""Creation of the first world of a run, from options to a simulation.

The functions stand in the order in which a run calls them. None of them knows the command line: the
caller passes functions for its own services, such as running a coroutine.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botyard.app.builtin import default_step
from botyard.app.checks import check_world
from botyard.app.config import with_world_options
from botyard.app.options import RunOptions
from botyard.errors import CommandLineError, FormatError, ModelsMissingError
from botyard.formats.models import (
    URDF,
    default_map,
    folders_without_models,
    missing_folders,
    read_models,
)
from botyard.formats.registry import load_world as read_world
from botyard.formats.usermodels import with_user_things
from botyard.model.objects import Described
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.processes.codeload import is_code
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from botyard.formats.crashstate import SavedState
    from botyard.sim.simulation import Simulation

Remark = Callable[[str], None]
"""Function that receives a warning."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Services of the program that starts a run.

    Attributes
    ----------
    remark : callable
        Receives each warning about files.
    is_given : callable
        Returns whether an option stands on the command line, by name of its field.
    run : callable
        Runs a coroutine to its end, such as `asyncio.run`.
    """

    remark: Remark
    is_given: Callable[[str], bool]
    run: Callable[[Coroutine[Any, Any, Scene]], Scene]


# -- From options to a source


def asks_for_map(o: RunOptions) -> bool:
    """Return whether to show the start dialog, which asks the user for a map.

    Raises
    ------
    CommandLineError
        ``--start-dialog`` contradicts other options.
    """
    # An empty `--map ""` is a choice as well: AMRISim starts without a map then.
    if (
        o.map
        or o.map_argument
        or o.stageworld
        or o.nomap
        or o.map == ""
        or o.unattended
    ):
        if o.start_dialog:
            raise CommandLineError(
                "--start-dialog: cannot be combined with a map or with --no-gui, "
                "because the page asks for the map"
            )

        return False

    # Without a terminal, the run may belong to a script that would wait for an answer
    # for ever.
    return o.start_dialog or (sys.stdin.isatty() and default_map() is None)


def map_name(o: RunOptions, remark: Remark) -> str | None:
    """Return the map to load: chosen by an option, the user's default map, or the shipped office.

    Parameters
    ----------
    o : RunOptions
        Options of the run.
    remark : callable
        Receives a warning if the map was not chosen by an option.

    Returns
    -------
    str or None
        Name or file of the map; None: no map. The start dialog or an empty world takes
        its place.

    Raises
    ------
    CommandLineError
        The options name two maps, or an unattended run has none.
    """
    # Two maps are an error: silently preferring one of them would simulate a world that
    # the user did not expect.
    names = [n for n in (o.stageworld, o.map, o.map_argument) if n]
    if len(names) > 1:
        raise CommandLineError(
            f'expected one map, found two: "{names[0]}" and "{names[1]}"'
        )
    if names:
        return names[0]
    if o.nomap or o.map == "" or asks_for_map(o):
        return None

    # Look for the user's default map before the shipped one, so that an installation
    # can have a default of its own.
    users = default_map()
    if users is not None:
        remark(f"no map given: using {users}")
        return str(users)

    if o.unattended:
        raise CommandLineError(
            "--noninteractive: expected a map (-m FILE) or --nomap, found neither"
        )

    remark('no map given: using the shipped map "office" (see "botyard maps")')
    return "office"


# -- From a source to a world


def load_world(o: RunOptions, caller: Caller) -> tuple[World, RunOptions]:
    """Return the world that the options name, and the options completed by the world file.

    Raises
    ------
    CommandLineError
        The options name two maps, or no map where one is needed.
    FormatError
        The file has errors, with file and line.
    """
    from botyard.controllers.registry import is_controller, register

    remark = caller.remark
    check_models(o, remark)
    # Register the controller here, where its name is from the user's command line. Code
    # that a world file names needs --allow-code.
    if o.controller is not None and is_code(o.controller):
        register(o.controller)

    name = map_name(o, remark)
    reading = replace(
        o.reading(),
        warn=remark,
        is_program=partial(is_controller, allow_code=o.allow_code),
    )
    if name is None:
        # The start dialog itself adds the robots of the command line to its world.
        empty = World(scene=Scene())
        return (empty if asks_for_map(o) else with_user_things(empty, reading)), o
    if name.startswith("ros:"):
        from botyard.app.rosmaster import map_from_ros

        world = World(scene=map_from_ros(name, o, caller.run))
        return with_user_things(world, reading), o

    with telling(f"reading {name}"):
        world = read_world(name, reading)
    # A world file of Stage is complete: the user's include files add nothing to it.
    if not o.stageworld:
        world = with_user_things(world, reading)
    elif Path(name).suffix.lower() in (".map", ".yaml", ".yml"):
        remark(f"{name}: --stageworld expects a world file of Stage")
    return world, with_world_options(
        o, world.options, world.scene.source, caller.is_given
    )


def check_models(o: RunOptions, remark: Remark) -> None:
    """Warn about resource folders without robot models, and about models of ROS.

    Raises
    ------
    ModelsMissingError
        A folder is missing in an unattended run.
    ModelError, ModelFileError
        A description of ROS is invalid.
    """
    chosen = (*(choice.model for choice in o.robots), *o.factories)
    for name in dict.fromkeys(chosen):
        if name.lower().endswith(URDF):
            for text in read_models(name).remarks:
                remark(text)
    for missing in missing_folders():
        # In an unattended run, shipped models must not silently replace the user's.
        if o.unattended:
            raise ModelsMissingError(missing)
        remark(f"{missing}; using the shipped models")

    for bare in folders_without_models():
        remark(f"{bare}; using the shipped models")


def with_map_of(
    saved: SavedState, world: World, o: RunOptions, remark: Remark
) -> World:
    """Return the world with the map that was in use before a crash.

    Parameters
    ----------
    saved : SavedState
        State that the crashed run saved.
    world : World
        World of the options.
    o : RunOptions
        Options of the run, with the limits for reading files.
    remark : callable
        Receives a warning if the map cannot be read.

    Returns
    -------
    World
        `world` itself if it has the same map, if the former map came from a ROS topic,
        or if that map cannot be read.
    """
    # A map of a ROS topic cannot be read again as a file: its publisher may have ended
    # since the crash.
    if saved.map == world.scene.source or saved.map.startswith("ros:"):
        return world
    if not saved.map:
        return replace(world, scene=Scene())
    try:
        return replace(
            world, scene=read_world(saved.map, replace(o.reading(), warn=remark)).scene
        )
    # A restart must not fail over a map that has been deleted: the robots' clients wait
    # for their ports.
    except (FormatError, OSError, ValueError) as error:
        remark(f"cannot read the map that was loaded before the crash: {error}")
        return world


# -- From a world to a simulation


def make_simulation(
    world: World, o: RunOptions, warm_up: Callable[[bool], object], tick: int = 0
) -> Simulation:
    """Return the simulation of a world, without its robots.

    Parameters
    ----------
    world : World
        The world.
    o : RunOptions
        Options of the run.
    warm_up : callable
        Loads or compiles the kernels; receives whether any body has mass.
    tick : int
        Number of steps that were already simulated, before a restart.
    """
    log = logging.getLogger("botyard")
    from botyard.sim.simulation import Simulation

    def warn(text: str) -> None:
        log.warning("%s", text)

    described = descriptions(o, {b.name for b in world.scene.boxes}, warn)
    scene = replace(world.scene, boxes=(*world.scene.boxes, *described.bodies))
    # Check this before compiling: a mistyped option must not cost the seconds of a compilation.
    warm_up(check_world(o, world, scene.boxes, asks_for_map(o)))
    s = world.settings
    settings: dict[str, Any] = {
        "seed": o.seed if o.seed is not None else s.seed,
        "odometry_error": "none"
        if o.no_error
        else o.odom_error_mode or s.odometry_error,
        "sensor_noise": o.sensor_noise == "stock" if o.sensor_noise else s.sensor_noise,
        "threads": o.threads or s.threads,
    }
    sim = Simulation(
        scene,
        step=step_of(o, s.step),
        # AMRISim's --resolution sets the distance at which its sensors sample a ray.
        range_step=(o.resolution or 20) / 1000.0 if o.compat == "amrisim" else 0.0,
        begin=tick,
        warn=warn,
        # Settings that neither option nor world defines keep the defaults of
        # `Simulation`, which are declared only there.
        **{name: value for name, value in settings.items() if value is not None},
    )
    sim.core.describe(described)
    return sim


def step_of(o: RunOptions, of_world: float | None) -> float:
    """Return the simulated time of a step, s.

    Parameters
    ----------
    o : RunOptions
        Options of the run, in ms; they take precedence.
    of_world : float or None
        Step of the world file, s; used if the options give none.

    Returns
    -------
    float
        Step, s. Without option and world, the smallest step that an interface needs.
    """
    chosen_ms = o.update_sim_time or o.update_interval
    if chosen_ms:
        return chosen_ms / 1000.0
    if of_world:
        return of_world
    usual = default_step(o)
    if usual.interface:
        logging.getLogger("botyard").info(
            "time step: %g ms, as the interface %s expects; --update-interval changes it",
            usual.step_s * 1000.0,
            usual.interface,
        )
    return usual.step_s


def descriptions(o: RunOptions, names: set[str], remark: Remark) -> Described:
    """Read the body description files that ``--adf`` names.

    `names` are the names of the bodies that the map already contains.

    Raises
    ------
    CommandLineError
        Two bodies have the same name.
    """
    found = Described()
    others: dict[str, str] = {}
    if o.adf:
        from botyard.formats.adf import read_adf

    for name in o.adf:
        more = read_adf(name, replace(o.reading(), warn=remark), others)
        taken = (names | {b.name for b in found.bodies}) & {b.name for b in more.bodies}
        if taken:
            raise CommandLineError(
                f'--adf {name}: a body named "{min(taken)}" already exists'
            )

        found |= more

    return found


__all__ = ["Caller", "asks_for_map", "load_world", "make_simulation", "with_map_of"]
