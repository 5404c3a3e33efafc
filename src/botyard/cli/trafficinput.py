"""Reading of tasks, compiling and progress bars for ``botyard traffic``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from botyard.names import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botyard.traffic.task import Task

F = TypeVar("F", bound=Callable[..., Any])

PAGE_OPTIONS: Final = (
    "gui_port",
    "gui_address",
    "gui_host",
    "gui_token",
    "no_browser",
)
"""Options of ``botyard run`` that ``--page`` also has."""


def length_option(name: str, default: float, about: str) -> Callable[[F], F]:
    """Declare an option for a length greater than 0, m.

    Parameters
    ----------
    name : str
        Spelling, such as ``--radius``.
    default : float
        Default value, m.
    about : str
        Help text.
    """
    return click.option(
        name,
        type=click.FloatRange(0.0, min_open=True),
        default=default,
        show_default=True,
        help=about,
    )


def _warn(text: str) -> None:
    """Print a warning."""
    click.echo(f"warning: {escaped(text)}", err=True)


def read_task(path: Path, max_read: Sequence[str]) -> Task:
    """Read a task within the limits of ``--max-read``.

    Parameters
    ----------
    path : Path
        File of the task.
    max_read : sequence of str
        Values of ``--max-read``.

    Raises
    ------
    CommandLineError
        A limit does not exist.
    BotyardError
        The task cannot be read.
    """
    from botyard.formats.budget import Budget
    from botyard.traffic.task import load_task

    return load_task(path, _warn, Budget().raised(max_read))


def compile_first() -> None:
    """Compile the kernels, if necessary, before a progress bar occupies the terminal."""
    from botyard.processes.compiling import watch
    from botyard.traffic.compare import compile_kernels

    # Report the compilation also if stderr is not a terminal, because it can take minutes.
    watch.always = True
    compile_kernels()
    watch.finish()


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[float, int], None]]:
    """Show a progress bar on stderr; no bar if stderr is not a terminal.

    Parameters
    ----------
    title : str
        Description of the work.
    total : int
        Number of parts of the work.

    Yields
    ------
    callable
        Receives the simulated time, s, and the number of finished parts.
    """
    if not sys.stderr.isatty():
        # A pipe or a log file would fill with control characters of the bar.
        yield lambda _t, _n: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[time]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, time="")
        yield lambda t, n: bar.update(
            task, completed=n, time=f"{t:.0f} s of simulated time"
        )
