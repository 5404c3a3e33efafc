"""Learning tasks by name: botyard's own, and tasks of installed packages."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from botyard.api.plugins import Group
from botyard.errors import ArgumentError

if TYPE_CHECKING:
    from botyard.learning.tasks.base import Task

TASKS: Final = {
    "Coverage": "coverage",
    "Dock": "dock",
    "Exchange": "exchange",
    "Follow": "follow",
    "Formation": "formation",
    "Navigate": "navigate",
    "PushBox": "pushbox",
    "SocialNavigate": "social",
}
"""Names of the modules of `botyard.learning.tasks`, by the class of task that they define.

Gymnasium knows these tasks as ``botyard/NAME-v0``.
"""

PACKAGED: Final[Group[type[Task]]] = Group(
    name="botyard.learning_tasks",
    noun="task",
    expected="a class of tasks",
    fits=lambda _name, found: _is_task(found),
    error=ArgumentError,
    own=lambda: TASKS,
)
"""Learning tasks of installed packages."""


def _is_task(kind: object) -> bool:
    # Import the module late: `import botyard.learning` needs only the names, and stays
    # fast.
    from botyard.learning.tasks.base import Task

    return isinstance(kind, type) and issubclass(kind, Task)


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks: first botyard's tasks, then tasks of installed packages.

    Nothing is imported.
    """
    return (*TASKS, *PACKAGED.names())


def find_task(task: str | Task | type[Task], **options: Any) -> Task:
    """Return a task, given its name, its class or the task itself.

    Parameters
    ----------
    task : str, Task or class of tasks
        Name of a task of botyard or of an installed package, see `task_names`; a class
        of tasks, which is called; or a task.
    **options
        Arguments of the class.

    Raises
    ------
    ArgumentError
        The name is unknown, or options are given for a task that exists already.
    """
    from botyard.learning.tasks.base import Task

    if isinstance(task, Task):
        if options:
            raise ArgumentError(
                f"{', '.join(options)}: options apply to the name or the class "
                "of a task, not to a task object"
            )

        return task

    kind: Any = task
    if isinstance(task, str) and task in TASKS:
        kind = getattr(
            importlib.import_module(f"botyard.learning.tasks.{TASKS[task]}"), task
        )
    # Built-in names come first: a package cannot replace a task of botyard.
    elif isinstance(task, str):
        kind = PACKAGED.find(task)

    if not _is_task(kind):
        raise ArgumentError(
            f"task: expected one of {', '.join(task_names())}, a Task or a class "
            f"of tasks, found {task!r}"
        )

    made: Task = kind(**options)
    return made


__all__ = ["PACKAGED", "TASKS", "find_task", "task_names"]
