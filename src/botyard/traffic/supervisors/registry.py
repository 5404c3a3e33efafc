"""Registry of supervisors: built-in ones, those of installed packages (entry points), and any class as ``module:Class``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from botyard.codeload import is_code, load_named, said_of
from botyard.plugins import Group
from botyard.traffic.supervisors.base import Supervisor, SupervisorError
from botyard.traffic.supervisors.fixedorder import FixedOrder
from botyard.traffic.supervisors.reserving import Bankers, Chained, Dummy, FirstComeFirstServed, Nobody, Priority

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
    """Make all supervisors, by name; a broken one of a package is left out with a warning."""
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
        A built-in one's name, that of an entry point in ``botyard.supervisors``, ``module:Class`` or ``file.py:Class``.

    Raises
    ------
    SupervisorError
        The name is unknown, or it is not a supervisor.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    kind = None if is_code(name) else PACKAGED.find(name)
    if not is_code(name) and kind is None:
        raise SupervisorError(
            f'no supervisor "{name}": expected file.py:Class, module:Class or one of {", ".join(supervisor_names())}'
        )
    try:
        made = (kind or load_named(name))()
    except (Exception, SystemExit) as error:  # code of others may raise anything
        raise SupervisorError(f'supervisor "{name}" cannot be used: {said_of(error)}') from error
    if not isinstance(made, Supervisor):
        raise SupervisorError(f'"{name}" is no supervisor: expected a subclass of botyard.traffic.Supervisor')
    return made


__all__ = ["BUILT_IN", "PACKAGED", "all_supervisors", "find_supervisor", "supervisor_names"]
