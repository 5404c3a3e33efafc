"""Controllers by name: those of the package, and those of other packages (entry-point group ``botyard.controllers``)."""

from __future__ import annotations

import inspect
from importlib.metadata import entry_points

from botyard.controllers.base import Controller, ControllerFactory
from botyard.controllers.follow import Follow
from botyard.controllers.walk import Walk
from botyard.controllers.wander import Wander
from botyard.controllers.waypoints import Waypoints
from botyard.errors import CommandLineError, WorldError, did_you_mean
from botyard.model.world import Program
from botyard.sim import simulation
from botyard.sim.simulation import Robot

_BUILTIN: dict[str, ControllerFactory] = {"follow": Follow, "walk": Walk, "wander": Wander, "waypoints": Waypoints}


def controller_names() -> list[str]:
    """Names of all controllers, sorted."""
    return sorted({*_BUILTIN, *(e.name for e in entry_points(group="botyard.controllers"))})


@simulation.is_controller.implementation
def is_controller(name: str) -> bool:
    """Whether a controller of this name exists."""
    return name in controller_names()


def find_controller(name: str) -> ControllerFactory:
    """Look up a controller by name.

    Raises
    ------
    CommandLineError
        There is none of that name.
    """
    if name in _BUILTIN:
        return _BUILTIN[name]
    for entry in entry_points(group="botyard.controllers", name=name):
        factory: ControllerFactory = entry.load()
        return factory
    known = controller_names()
    raise CommandLineError(f'no controller "{name}"{did_you_mean(name, known)} (known: {", ".join(known)})')


def make_controller(robot: Robot, program: Program, seed: int) -> Controller:
    """Make the controller that a program names, for a robot.

    Raises
    ------
    CommandLineError
        There is none of that name.
    WorldError
        An option is unknown, missing, or has an invalid value.
    """
    factory = find_controller(program.name)
    where = f"robot {robot.name}: controller {program.name}"
    parameters = inspect.signature(factory).parameters
    options = {n: p for n, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for name in program.options:
            if name not in options:
                known = ", ".join(options) or "it has none"
                raise WorldError(f'{where}: no option "{name}"{did_you_mean(name, options)} (options: {known})')
    for name, parameter in options.items():
        if parameter.default is inspect.Parameter.empty and name not in program.options:
            raise WorldError(f'{where}: expected the option "{name}", found none')
    try:
        return factory(robot, seed, **program.options)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise WorldError(f"{where}: {error}") from None
