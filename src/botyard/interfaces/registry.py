"""Registry of interfaces by name.

It holds the interfaces of this package and of other packages (entry-point group
``botyard.interfaces``). `botyard.interfaces.interface` defines the declaration of an
interface.
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
"""Entry points of the built-in interfaces, in the form ``module:object``.

A run starts the interfaces in this order, and the interfaces of other packages after
them.
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
    """Return the interface with a name.

    Parameters
    ----------
    name : str
        Name of an interface of botyard or of an installed package.

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
    """Raise WorldError if an interface of another package has servers of its own."""
    if found.server is not None or found.carrier is Carrier.OWN:
        raise WorldError(
            f'interface "{found.name}": expected no server and a carrier other than '
            "Carrier.OWN, because only built-in interfaces have their own servers"
        )


def plug_ins() -> list[Interface]:
    """Return the interfaces that installed packages provide.

    An interface that cannot be used is skipped with a warning.

    Returns
    -------
    list of Interface
        Usable declarations. The packages are loaded by the first call.
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

    Parameters
    ----------
    text : str
        Value of ``--interface``.

    Returns
    -------
    interface : Interface
        Declaration of the interface.
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
    # An interface with a command has its own program, for example a traffic supervisor.
    if interface.command:
        raise CommandLineError(
            f"interface {name}: expected an interface that runs inside of the "
            f'simulator; start this one with "{interface.command}"'
        )
    given: dict[str, object] = {}

    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        # An option needs its value: a name without "=" may be a mistyped value of the
        # option before.
        if not equals:
            raise CommandLineError(
                f'interface {name}: expected OPTION=VALUE, found "{shown(part)}"'
            )

        if option in given:
            raise CommandLineError(
                f'interface {name}: option "{shown(option)}" is given twice'
            )

        given[option] = value

    # `chosen` raises an error for unknown options, so the lookup below cannot fail.
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
