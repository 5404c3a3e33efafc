"""Controllers by name: those of the package, and those of other packages (entry-point group ``botyard.controllers``)."""

from __future__ import annotations

from importlib.metadata import entry_points

from botyard.controllers.base import ControllerFactory
from botyard.controllers.wander import Wander
from botyard.errors import CommandLineError, did_you_mean

_BUILTIN: dict[str, ControllerFactory] = {"wander": Wander}


def controller_names() -> list[str]:
    """Names of all controllers, sorted."""
    return sorted({*_BUILTIN, *(e.name for e in entry_points(group="botyard.controllers"))})


def find_controller(name: str) -> ControllerFactory:
    """A controller by name.

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
