"""Registry of interfaces by name.

It holds the interfaces of this package and of other packages (entry-point group
``botyard.interfaces``). See `botyard.interfaces.interface` for the declaration of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final

from botyard.api.plugins import Group
from botyard.errors import CommandLineError, WorldError, did_you_mean
from botyard.interfaces.interface import Carrier, Interface
from botyard.names import shown

BUILT_IN: Final[Mapping[str, str]] = {
    name: f"botyard.app.builtin:{name.upper()}"
    for name in (
        "pioneer",
        "discovery",
        "mdns",
        "lockstep",
        "ambf",
        "rosmaster",
        "ros1",
        "ros2",
        "zenoh",
        "rosbridge",
        "foxglove",
        "metrics",
        "page",
        "vda5050",
        "trafficros",
    )
}
"""Built-in interfaces, as entry points like the interfaces of other packages.

A run starts them in this order, and the interfaces of other packages after them.
"""


def _is_interface(name: str, found: object) -> bool:
    return isinstance(found, Interface) and found.name == name


PACKAGED: Final[Group[Interface]] = Group(
    name="botyard.interfaces",
    noun="interface",
    expected="an Interface of that name",
    fits=_is_interface,
    error=WorldError,
    own=lambda: BUILT_IN,
)
"""Interfaces of installed packages."""


def interface_names() -> list[str]:
    """Return the names of all interfaces, sorted; no package is imported."""
    return sorted([*BUILT_IN, *PACKAGED.names()])


def find_interface(name: str) -> Interface:
    """Look up an interface by name.

    Raises
    ------
    CommandLineError
        No interface has this name.
    WorldError
        Its package cannot be imported, or the entry point is not an interface of this
        name.
    """
    if name in BUILT_IN:
        return PACKAGED.load(EntryPoint(name, BUILT_IN[name], PACKAGED.name))
    found = PACKAGED.find(name)
    if found is None:
        known = interface_names()
        raise CommandLineError(
            f'no interface "{shown(name)}"{did_you_mean(name, known)} (known: {", ".join(known)})'
        )

    _check_carrier(found)
    return found


def _check_carrier(found: Interface) -> None:
    """Raise WorldError if an interface of another package brings its own servers."""
    if found.server is not None or found.carrier is Carrier.OWN:
        raise WorldError(
            f'interface "{found.name}" brings its own servers, which is reserved for built-in interfaces: choose a carrier'
        )


def plug_ins() -> list[Interface]:
    """Return the interfaces of installed packages.

    An interface that cannot be used is left out with a warning.
    """
    found = []
    for one in PACKAGED.load_all().values():
        try:
            _check_carrier(one)
        except WorldError as error:
            PACKAGED.leave_out(str(error))
        else:
            found.append(one)

    return found


def parse_choice(text: str) -> tuple[Interface, dict[str, Any]]:
    """Parse ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE``.

    Returns
    -------
    interface : Interface
    options : dict of str to object
        The given options, converted to their types.

    Raises
    ------
    CommandLineError
        The interface or an option is unknown, another command runs the interface, or a
        value is invalid.
    WorldError
        The interface's package cannot be loaded.
    """
    name, _, rest = text.partition(":")
    interface = find_interface(name)
    # Such an interface has its own program, for example a traffic supervisor.
    if interface.command:
        raise CommandLineError(f"interface {name}: {interface.command} runs it")
    given: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        # Options have no short form, so that a typing error is not taken for a value.
        if not equals:
            raise CommandLineError(
                f'interface {name}: expected OPTION=VALUE, found "{shown(part)}"'
            )

        if option in given:
            raise CommandLineError(
                f'interface {name}: option "{shown(option)}" is given twice'
            )

        given[option] = value

    # Also reports options that do not exist, before the lookup below.
    interface.chosen(given)
    return interface, {
        name: interface.known_options[name].of(value, f"interface {interface.name}")
        for name, value in given.items()
    }


__all__ = [
    "BUILT_IN",
    "PACKAGED",
    "find_interface",
    "interface_names",
    "parse_choice",
    "plug_ins",
]
