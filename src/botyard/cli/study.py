"""``botyard study``: many seeded runs of a plan, in several processes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.cli.listing import FORCE
from botyard.cli.options import max_read_option
from botyard.errors import CommandLineError
from botyard.names import escaped

if TYPE_CHECKING:
    from botyard.studies.messages import Done
    from botyard.studies.plan import Plan
    from botyard.studies.study import Study

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
LINE_PERIOD_S: Final = 10.0
"""Time between two progress lines if stderr is not a terminal, s."""
SHOWN_ERRORS: Final = 5
"""Maximum number of failed runs shown at the end."""


class _Study(click.Group):
    """Group that inserts ``run``: ``botyard study plan.yaml`` runs the plan."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert "run" if the first word is not a subcommand."""
        if (
            args
            and args[0] not in self.commands
            # Otherwise "botyard study --help" would show the help of "run" and hide the
            # other subcommands.
            and args[0] not in ctx.help_option_names
        ):
            args = ["run", *args]

        return super().parse_args(ctx, args)


@click.group("study", cls=_Study)
def command() -> None:
    """Carry out many seeded runs of a plan (YAML): "botyard study plan.yaml".

    The runs share several processes. A plan can name code, which the study runs.
    """


def _output(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--output`` to a command."""
    return click.option(
        "-o",
        "--output",
        type=FOLDER,
        metavar="FOLDER",
        help="Folder of the results. [default: PLAN-results]",
    )(function)


def _read(path: Path, max_read: tuple[str, ...]) -> Plan:
    """Read the plan of a study, within the limits of ``--max-read``."""
    from botyard.formats.budget import Budget
    from botyard.studies.plan import read_plan

    return read_plan(path, Budget().raised(max_read))


def _open(path: Path, output: Path | None, max_read: tuple[str, ...]) -> Study:
    """Open the study of a plan, with the results that it already has."""
    from botyard.studies.study import Study, results_folder

    plan = _read(path, max_read)
    return Study.open(plan, output or results_folder(plan))


@command.command("run")
@click.argument("plan", type=FILE)
@_output
@click.option(
    "--workers",
    "-n",
    # Only a Ray cluster has this many CPUs; on one computer, the number of runs limits
    # it further.
    type=click.IntRange(1, 1_000_000),
    metavar="NUMBER",
    help="Maximum number of concurrent runs. [default: one per core, or per CPU of the cluster]",
)
@click.option(
    "--ray",
    is_flag=False,
    # With this word, Ray looks for the cluster itself.
    flag_value="auto",
    metavar="[HOST:PORT]",
    help="Run on a Ray cluster (extra ray). [without an address: the cluster of "
    "RAY_ADDRESS, or the one this computer belongs to]",
)
@click.option(
    "--resume", is_flag=True, help="Continue: do not repeat runs that have ended."
)
@click.option(
    "--only",
    type=click.Choice(["failed"]),
    help="Repeat the ended runs whose status is not ok.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print events as JSON lines, for programs.",
)
@click.option(
    "--force", is_flag=True, help="Start again: delete the results in the folder."
)
@max_read_option
def run(
    plan: Path,
    output: Path | None,
    workers: int | None,
    ray: str | None,
    resume: bool,
    only: str | None,
    as_json: bool,
    force: bool,
    max_read: tuple[str, ...],
) -> int:
    """Carry out PLAN. Status 0: all of its runs are ok; 1: some are not."""
    if force and (resume or only):
        raise CommandLineError(
            "--force deletes all results: it cannot be combined with --resume or --only"
        )

    from botyard.studies.results import Folder
    from botyard.studies.study import Study, results_folder

    read = _read(plan, max_read)
    folder = output or results_folder(read)
    # Check this before any results are deleted.
    if ray is not None and force:
        from botyard.studies.onray import check_cluster

        check_cluster(ray)

    # The folder is claimed before anything in it is deleted: another study may still
    # write results.
    with Folder(folder).claimed():
        return _carry_out(
            Study.open(read, folder, anew=force), workers, ray, resume, only, as_json
        )


def _carry_out(
    study: Study,
    workers: int | None,
    ray: str | None,
    resume: bool,
    only: str | None,
    as_json: bool,
) -> int:
    """Carry out the runs of a study that have not ended; return the exit status."""
    if study.rows and not (resume or only):
        raise CommandLineError(
            f"{study.folder.path} already holds {len(study.rows)} results: "
            "--resume continues, --only failed repeats failed runs, --force starts again"
        )

    # Check this before the first run, because the table is written after hours of work.
    study.folder.check_table()
    runs = study.left(only_failed=only == "failed")

    # More processes than runs would take time to start without any use. On a cluster, Ray
    # chooses the number.
    if ray is None:
        workers = min(workers or os.cpu_count() or 1, max(1, len(runs)))
    if as_json:
        _say(
            event="begin",
            runs=len(study.runs),
            to_do=len(runs),
            workers=workers,
            folder=str(study.folder.path),
        )
    elif resume or only:
        click.echo(
            f"{len(study.runs)} runs, {len(study.runs) - len(study.left())} have "
            f"already ended; {len(runs)} to do",
            err=True,
        )

    try:
        with _progress(len(runs), as_json) as done:
            study = study.carry_out(runs, workers, done, ray=ray)
        table = study.write_table()
    # Print this also after Ctrl-C, when the user most needs to know that nothing is
    # lost.
    except BaseException as error:
        if not as_json:
            click.echo(
                f"the results so far are kept in {study.folder.path}; --resume continues",
                err=True,
            )

        # A full disk is the user's problem, not an internal error with a trace.
        if isinstance(error, OSError):
            raise CommandLineError(
                f"{study.folder.path}: cannot write results: {error}"
            ) from None

        raise

    counts = study.counts()
    if as_json:
        _say(event="end", table=str(table), **counts)
    else:
        _report_counts(study, counts)
        click.echo(f"{table}: {len(study.runs) - counts['left']} rows")

    # All runs of the plan count, also from earlier calls: a script that calls --resume
    # asks whether the study is complete.
    return 0 if counts["ok"] == len(study.runs) else 1


def _say(**event: Any) -> None:
    """Print an event as a line of JSON."""
    click.echo(json.dumps(event))
    # A program that reads the events through a pipe needs them at once.
    sys.stdout.flush()


def _report_counts(study: Study, counts: dict[str, int]) -> None:
    """Print the number of runs by status, and the first errors."""
    click.echo(
        ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    )
    bad = [
        row
        for run in study.runs
        # Print errors in the order of the plan, because processes finish in a different
        # order each time.
        if (row := study.rows.get(run.key)) is not None and row.status != "ok"
    ]
    for row in bad[:SHOWN_ERRORS]:
        values = ", ".join(
            f"{name}={value}"
            for name, value in [*row.values.items(), ("seed", row.seed)]
        )
        click.echo(
            f"{row.status}: {escaped(values)}: {escaped(row.error)} (log: "
            f"{study.folder.log(row.key)})"
        )

    if len(bad) > SHOWN_ERRORS:
        click.echo(f"… and {len(bad) - SHOWN_ERRORS} more")


@contextmanager
def _progress(total: int, as_json: bool) -> Iterator[Callable[[Done], None]]:
    """Show the progress of a study; yield a function to call with each finished run.

    The progress appears as JSON events for programs, as a bar on a terminal, or as a line from time
    to time.
    """
    if as_json:
        yield lambda d: _say(
            event="run",
            key=d.key,
            status=d.status,
            wall=round(d.wall, 6),
            error=d.error,
        )
    elif sys.stderr.isatty():
        # Import rich only for a terminal: it takes longer to import than many checks of
        # a plan.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[bad]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("runs", total=total, bad="")
            bad = 0

            def show(d: Done) -> None:
                nonlocal bad
                bad += d.status != "ok"
                bar.update(task, advance=1, bad=f"{bad} not ok" if bad else "")

            yield show
    else:
        yield _Lines(total)


class _Lines:
    """Progress lines for stderr that is a log file or a pipe."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begin = self._last = time.monotonic()
        self._done = self._bad = 0

    def __call__(self, done: Done) -> None:
        self._done += 1
        self._bad += done.status != "ok"
        now = time.monotonic()
        if now - self._last >= LINE_PERIOD_S:
            self._last = now

            # Use the mean of all runs, because single runs differ too much for an
            # estimate from the last line.
            left = (now - self._begin) / self._done * (self._total - self._done)
            bad = f", {self._bad} not ok" if self._bad else ""
            click.echo(
                f"{self._done} of {self._total} runs{bad}; about {duration(left)} left",
                err=True,
            )


def duration(seconds: float) -> str:
    """Return a duration as text for a reader.

    Parameters
    ----------
    seconds : float
        Duration, s.

    Returns
    -------
    str
        Number with one unit: s, min or h.
    """
    # Each unit is used up to 1.5 of the next one: "1 min" for 89 s would be too coarse.
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@command.command("check")
@click.argument("plan", type=FILE)
@_output
@click.option(
    "--workers",
    "-n",
    type=click.IntRange(1, 1024),
    metavar="NUMBER",
    help="Number of processes. [default: one per core]",
)
@click.option("--no-run", is_flag=True, help="Do not measure the time with a run.")
@max_read_option
def check(
    plan: Path,
    output: Path | None,
    workers: int | None,
    no_run: bool,
    max_read: tuple[str, ...],
) -> int:
    """Check PLAN and estimate the time it takes.

    Prints the number of runs, and how many have ended. The estimate measures one run.
    """
    study = _open(plan, output, max_read)
    keys = study.plan.keys
    parts = [f"{name} ({len(values)} values)" for name, values in keys.grid.items()]
    if keys.sample is not None:
        parts.append(
            f"{', '.join(keys.sample.values)} ({keys.sample.count} samples, {keys.sample.method})"
        )

    parts.append(f"seed ({len(study.plan.seeds)})")
    click.echo(
        f"{len(study.runs)} runs of {escaped(study.plan.name)}: {' × '.join(parts)}"
    )
    left = study.left()
    if len(left) < len(study.runs):
        click.echo(
            f"{len(study.runs) - len(left)} have already ended "
            f"({study.folder.path}); {len(left)} are left for --resume"
        )

    if no_run or not left:
        return 0
    # The measurement is a real run of the plan. A guess from the simulated time would
    # miss the cost of its robots and sensors.
    wall = _measured(study)
    workers = min(workers or os.cpu_count() or 1, len(left))
    click.echo(
        f"one run takes {wall:.3g} s; all take about "
        f"{duration(wall * len(left) / workers)} with {workers} workers"
    )
    return 0


@command.command("report")
@click.argument("plan", type=FILE)
@_output
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="FILE",
    help="File to write the report to. [default: report.html in the results folder]",
)
@FORCE
@max_read_option
def report(
    plan: Path,
    output: Path | None,
    page: Path | None,
    force: bool,
    max_read: tuple[str, ...],
) -> None:
    """Write a report of PLAN's finished runs: an HTML page with a table and plots.

    Also updates the table of all runs. Means and shares have 95 % intervals.
    """
    from botyard.studies.report import write_report

    study = _open(plan, output, max_read)
    page = page or study.folder.path / "report.html"
    write_report(study, page, force=force)
    table = study.write_table()
    click.echo(
        f"{page}, {table}: {len(study.runs) - study.counts()['left']} of {len(study.runs)} runs"
    )


def _measured(study: Study) -> float:
    """Return the wall time of the first open run, s; its result is not kept."""
    from botyard.studies.study import Study as AStudy

    found: list[Done] = []
    with tempfile.TemporaryDirectory(prefix="botyard-study-") as folder:
        # A folder of its own keeps the measured run out of the results: its process was
        # the only one, so its wall time is not typical.
        trial = AStudy.open(study.plan, Path(folder))
        wanted = study.left()[0]
        trial.carry_out([wanted], 1, found.append)
        (done,) = found
        if done.status != "ok":
            log = trial.folder.log(done.key)
            text = log.read_text("utf-8", "replace") if log.exists() else ""
            raise CommandLineError(
                f"the first run is not ok: {done.status}: {done.error}\n{text}".rstrip()
            )

    return done.wall


__all__ = ["command", "duration"]
