"""Registry of supervisors: built-in classes, entry points, and ``module:Class``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from botyard.api.plugins import Group
from botyard.processes.codeload import is_code, load_named, said_of
from botyard.traffic.supervisors.base import Supervisor, SupervisorError
from botyard.traffic.supervisors.fixedorder import FixedOrder
from botyard.traffic.supervisors.reserving import (
    Bankers,
    Chained,
    Dummy,
    FirstComeFirstServed,
    Nobody,
    Priority,
)

BUILT_IN: Final[Mapping[str, type[Supervisor]]] = {
    "none": Nobody,
    "dummy": Dummy,
    "fcfs": FirstComeFirstServed,
    "priority": Priority,
    "chained": Chained,
    "bankers": Bankers,
    "order": FixedOrder,
}


PACKAGED: Final[Group[Callable[[], object]]] = Group(
    name="botyard.supervisors",
    noun="supervisor",
    expected="a class of supervisors",
    fits=lambda _name, found: callable(found),
    error=SupervisorError,
    own=lambda: BUILT_IN,
)
"""Supervisors of installed packages: a class, or a function that makes a supervisor."""


def supervisor_names() -> tuple[str, ...]:
    """Names of all built-in and installed supervisors."""
    return (*BUILT_IN, *PACKAGED.names())


def all_supervisors() -> Iterator[tuple[str, Supervisor]]:
    """Make all supervisors, by name.

    A broken supervisor of a package is left out with a warning.
    """
    for name in (*BUILT_IN, *PACKAGED.load_all()):
        try:
            yield name, find_supervisor(name)
        except SupervisorError as error:
            PACKAGED.leave_out(str(error))


def find_supervisor(name: str) -> Supervisor:
    """Make a supervisor by name, without arguments.

    Parameters
    ----------
    name : str
        Name of a built-in supervisor or of an entry point in ``botyard.supervisors``,
        ``module:Class`` or ``file.py:Class``.

    Raises
    ------
    SupervisorError
        The name is unknown, or the class is not a supervisor.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    kind = None if is_code(name) else PACKAGED.find(name)
    if not is_code(name) and kind is None:
        raise SupervisorError(
            "supervisor: expected file.py:Class, module:Class or one of "
            f'{", ".join(supervisor_names())}, found "{name}"'
        )

    try:
        made = (kind or load_named(name))()
    # Code of users may raise anything, also SystemExit.
    except (Exception, SystemExit) as error:
        raise SupervisorError(
            f'supervisor "{name}" cannot be used: {said_of(error)}'
        ) from error

    if not isinstance(made, Supervisor):
        raise SupervisorError(
            f'supervisor "{name}": expected a subclass of botyard.traffic.Supervisor, '
            f"found {type(made).__name__}"
        )

    return made


__all__ = [
    "BUILT_IN",
    "PACKAGED",
    "all_supervisors",
    "find_supervisor",
    "supervisor_names",
]
