"""Registry of interfaces by name: those of the package, and those of other packages (entry-point group ``botyard.interfaces``).

What an interface is: `botyard.interfaces.interface`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from botyard.errors import CommandLineError, WorldError, did_you_mean
from botyard.interfaces.interface import Carrier, Interface
from botyard.names import shown

GROUP: Final = "botyard.interfaces"
"""Entry-point group of packages that provide interfaces."""
MAX_TEXT: Final = 300
"""Longest reason why an interface of another package cannot be used, characters."""

log = logging.getLogger("botyard.interfaces")

BUILT_IN: Final[Mapping[str, str]] = {
    name: f"botyard.app.builtin:{name.upper()}"
    for name in (
        "pioneer", "discovery", "mdns", "lockstep", "ambf", "rosmaster", "ros1", "ros2", "zenoh", "rosbridge", "foxglove", "metrics",
        "page", "vda5050", "trafficros",
    )
}  # fmt: skip
"""Interfaces of the package, as entry points like those of other packages; a run starts them in this order, and others after them."""


def _of_packages() -> dict[str, EntryPoint]:
    """Entry points of other packages, by name: looks through all that are installed, which takes milliseconds."""
    return {e.name: e for e in entry_points(group=GROUP) if e.name not in BUILT_IN}


def interface_names() -> list[str]:
    """Names of all interfaces, sorted; no package is imported."""
    return sorted([*BUILT_IN, *_of_packages()])


def find_interface(name: str) -> Interface:
    """Look up an interface by name.

    Raises
    ------
    CommandLineError
        No interface has this name.
    WorldError
        Its package cannot be imported, or the entry point is not an interface of this name.
    """
    if name in BUILT_IN:
        return _load(EntryPoint(name, BUILT_IN[name], GROUP))
    entry = _of_packages().get(name)
    if entry is None:
        known = interface_names()
        raise CommandLineError(f'no interface "{shown(name)}"{did_you_mean(name, known)} (known: {", ".join(known)})')
    return _load(entry)


def _load(entry: EntryPoint) -> Interface:
    """Import an interface. WorldError: see `find_interface`."""
    name = entry.name
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # importing a third-party module may raise anything
        raise WorldError(f"interface {name}: {entry.value} cannot be loaded: {shown(repr(error), MAX_TEXT)}") from error
    if not isinstance(found, Interface) or found.name != name:
        raise WorldError(
            f"interface {name}: expected an Interface of that name in {entry.value}, found {shown(repr(found))}"
        )
    if (found.server is not None or found.carrier is Carrier.OWN) and name not in BUILT_IN:
        raise WorldError(
            f"interface {name}: {entry.value} brings its own servers, which only interfaces of botyard may: choose a carrier"
        )
    return found


def plug_ins() -> list[Interface]:
    """Interfaces of other packages; one that cannot be loaded is skipped with a warning."""
    found = []
    for _, entry in sorted(_of_packages().items()):
        try:
            found.append(_load(entry))
        except WorldError as error:
            log.warning("%s", error)
    return found


def parse_choice(text: str) -> tuple[Interface, dict[str, Any]]:
    """Parse ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE`` to an interface and its given options.

    Raises
    ------
    CommandLineError
        The interface or an option is unknown, another command runs the interface, or a value is invalid.
    WorldError
        Its package cannot be loaded.
    """
    name, _, rest = text.partition(":")
    interface = find_interface(name)
    if interface.command:
        raise CommandLineError(f"interface {name}: {interface.command} runs it")
    given: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals:
            raise CommandLineError(f'interface {name}: expected OPTION=VALUE, found "{shown(part)}"')
        if option in given:
            raise CommandLineError(f'interface {name}: option "{shown(option)}" is given twice')
        given[option] = value
    interface.chosen(given)
    return interface, {
        name: interface.known_options[name].of(value, f"interface {interface.name}") for name, value in given.items()
    }


__all__ = ["BUILT_IN", "GROUP", "find_interface", "interface_names", "parse_choice", "plug_ins"]
