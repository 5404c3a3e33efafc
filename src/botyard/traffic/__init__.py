"""Event-driven traffic engine: robots on fixed paths under a supervisor.

Paths are divided into sectors, and a supervisor grants permissions to enter them. This
is a second engine next to the 2-D one.

The reference mmrs.md defines paths, sectors and the times of messages;
docs/howto/traffic.md shows how to use the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botyard.traffic.engine import Traffic as Traffic
    from botyard.traffic.generate import generate as generate_task  # noqa: F401
    from botyard.traffic.outcome import Ending as Ending
    from botyard.traffic.outcome import Outcome as Outcome
    from botyard.traffic.rules import Rules as Rules
    from botyard.traffic.supervisors.base import Supervisor as Supervisor
    from botyard.traffic.supervisors.base import SupervisorError as SupervisorError
    from botyard.traffic.supervisors.registry import find_supervisor as find_supervisor
    from botyard.traffic.task import Task as Task
    from botyard.traffic.task import TaskError as TaskError
    from botyard.traffic.task import Vehicle as Vehicle
    from botyard.traffic.task import load_task as load_task
    from botyard.traffic.task import parse_task as parse_task

_WHERE = {
    "Rules": "rules",
    "Traffic": "engine",
    "generate_task": "generate",
    "Ending": "outcome",
    "Outcome": "outcome",
    "Supervisor": "supervisors.base",
    "SupervisorError": "supervisors.base",
    "find_supervisor": "supervisors.registry",
    "Task": "task",
    "TaskError": "task",
    "Vehicle": "task",
    "load_task": "task",
    "parse_task": "task",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, because the engine compiles code."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The module itself is named "generate", so it exports its function under another
    # name.
    own = "generate" if name == "generate_task" else name
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), own)
