"""Tables of interfaces and their options, for ``botyard interfaces`` and the reference."""

from __future__ import annotations

from botyard.app.builtin import INTERFACE_OPTIONS
from botyard.app.options import RunOptions
from botyard.errors import WorldError
from botyard.interfaces.interface import Interface
from botyard.interfaces.registry import BUILT_IN, find_interface, interface_names
from botyard.names import shown


def _row(interface: Interface) -> tuple[str, ...]:
    """Return the table row that describes an interface."""
    chosen_by = INTERFACE_OPTIONS.get(interface.name)
    # Pass default options: the table describes a run without arguments.
    started = (
        "yes" if chosen_by is not None and chosen_by.is_asked(RunOptions()) else "no"
    )
    # Other carriers are named by a protocol, such as TCP, which needs no explanation.
    carrier = {"own": "own server", "websocket": "WebSocket"}.get(
        interface.carrier.value, interface.carrier.name
    )
    return (
        interface.name,
        carrier,
        str(interface.port) if interface.port else "",
        interface.command or started,
        interface.lacks() or "yes",
        shown(interface.about, 200),
    )


def interface_rows(built_in: bool = False) -> list[tuple[str, ...]]:
    """Return a row for each interface.

    Columns: name, carrier, usual port, whether a run starts it by default (or the
    command that runs it), missing parts, description.

    Parameters
    ----------
    built_in : bool
        Only interfaces of this package.
    """
    rows = []
    for name in (
        BUILT_IN
        if built_in
        else [*BUILT_IN, *(n for n in interface_names() if n not in BUILT_IN)]
    ):
        try:
            rows.append(_row(find_interface(name)))
        except WorldError as error:
            # A package that cannot be loaded must not hide the others.
            rows.append((name, "", "", "no", shown(str(error), 200), ""))

    return rows


def option_rows(name: str) -> list[tuple[str, ...]]:
    """Return a row for each option of an interface: name, value, default, description.

    Raises
    ------
    CommandLineError, WorldError
        See `find_interface`.
    """
    options = find_interface(name).known_options.values()
    return [
        (
            o.name,
            o.expected,
            "" if o.default is None else str(o.default),
            shown(o.help, 300),
        )
        for o in options
    ]


__all__ = ["interface_rows", "option_rows"]
