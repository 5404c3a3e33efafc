"""Registry of supervisors: built-in ones, those of installed packages (entry points), and any class as ``module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final

from botyard.codeload import is_code, load_named, said_of
from botyard.traffic.supervisors.base import Supervisor, SupervisorError
from botyard.traffic.supervisors.fixedorder import FixedOrder
from botyard.traffic.supervisors.reserving import Bankers, Chained, Dummy, FirstComeFirstServed, Nobody, Priority

GROUP: Final = "botyard.supervisors"
"""Entry-point group of packages that provide supervisors."""
BUILT_IN: Final[Mapping[str, type[Supervisor]]] = {
    "none": Nobody,
    "dummy": Dummy,
    "fcfs": FirstComeFirstServed,
    "priority": Priority,
    "chained": Chained,
    "bankers": Bankers,
    "order": FixedOrder,
}


def supervisor_names() -> tuple[str, ...]:
    """Names of all built-in and installed supervisors."""
    return (*BUILT_IN, *sorted(e.name for e in entry_points(group=GROUP)))


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
    entries = () if is_code(name) else tuple(entry_points(group=GROUP, name=name))
    if not is_code(name) and len(entries) != 1:
        raise SupervisorError(
            f'no supervisor "{name}": expected file.py:Class, module:Class or one of {", ".join(supervisor_names())}'
        )
    try:
        made = (entries[0].load() if entries else load_named(name))()
    except (Exception, SystemExit) as error:  # code of others may raise anything
        raise SupervisorError(f'supervisor "{name}" cannot be used: {said_of(error)}') from error
    if not isinstance(made, Supervisor):
        raise SupervisorError(f'"{name}" is no supervisor: expected a subclass of botyard.traffic.Supervisor')
    return made


__all__ = ["BUILT_IN", "GROUP", "find_supervisor", "supervisor_names"]
