"""``botyard study``: many seeded runs of a plan in several processes."""

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
"""Where stderr is no terminal, a line says so often how far it is."""
SHOWN_ERRORS: Final = 5
"""Errors of runs that are shown at the end."""


class _Study(click.Group):
    """``botyard study plan.yaml`` means ``botyard study run plan.yaml``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the word in where it is missing."""
        if (
            args
            and args[0] not in self.commands
            and args[0] not in ctx.help_option_names
        ):
            args = ["run", *args]

        return super().parse_args(ctx, args)


@click.group("study", cls=_Study)
def command() -> None:
    """Many seeded runs of a plan (YAML), in several processes: "botyard study
    plan.yaml". A plan can name code, which is run.
    """


def _output(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-o",
        "--output",
        type=FOLDER,
        metavar="FOLDER",
        help="Folder of the results. [default: PLAN-results]",
    )(function)


def _read(path: Path, max_read: tuple[str, ...]) -> Plan:
    from botyard.formats.budget import Budget
    from botyard.studies.plan import read_plan

    return read_plan(path, Budget().raised(max_read))


def _open(path: Path, output: Path | None, max_read: tuple[str, ...]) -> Study:
    from botyard.studies.study import Study, results_folder

    plan = _read(path, max_read)
    return Study.open(plan, output or results_folder(plan))


@command.command("run")
@click.argument("plan", type=FILE)
@_output
@click.option(
    "--workers",
    "-n",
    type=click.IntRange(1, 1_000_000),
    metavar="NUMBER",
    help="Runs at a time. [default: one for each core, or each processor of the cluster]",
)
@click.option(
    "--ray",
    is_flag=False,
    flag_value="auto",
    metavar="[HOST:PORT]",
    help="On a cluster of Ray (extra ray). [without an address: the one of "
    "RAY_ADDRESS, or the one that this computer is a node of]",
)
@click.option(
    "--resume", is_flag=True, help="Go on: runs that have ended are not done again."
)
@click.option(
    "--only",
    type=click.Choice(["failed"]),
    help="Of the runs that have ended, repeat those that are not ok.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print events as lines of JSON, for programs.",
)
@click.option(
    "--force", is_flag=True, help="Begin anew: results in the folder are deleted."
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
            "--force begins anew: not together with --resume or --only"
        )

    from botyard.studies.results import Folder
    from botyard.studies.study import Study, results_folder

    read = _read(plan, max_read)
    folder = output or results_folder(read)
    if ray is not None and force:  # before results are deleted
        from botyard.studies.onray import check_cluster

        check_cluster(ray)

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
    """What is left of a study; the status."""
    if study.rows and not (resume or only):
        raise CommandLineError(
            f"{study.folder.path} holds {len(study.rows)} results: --resume goes "
            "on, --only failed repeats, --force begins anew"
        )

    study.folder.check_table()
    runs = study.left(only_failed=only == "failed")
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
            f"ended before; {len(runs)} to do",
            err=True,
        )

    try:
        with _progress(len(runs), as_json) as done:
            study = study.carry_out(runs, workers, done, ray=ray)
        table = study.write_table()
    except BaseException as error:
        if not as_json:
            click.echo(
                f"what has ended is kept in {study.folder.path}; --resume goes on",
                err=True,
            )

        if isinstance(error, OSError):
            raise CommandLineError(
                f"{study.folder.path}: results cannot be written: {error}"
            ) from None

        raise

    counts = study.counts()
    if as_json:
        _say(event="end", table=str(table), **counts)
    else:
        _report_counts(study, counts)
        click.echo(f"{table}: {len(study.runs) - counts['left']} rows")

    return 0 if counts["ok"] == len(study.runs) else 1


def _say(**event: Any) -> None:
    click.echo(json.dumps(event))
    sys.stdout.flush()


def _report_counts(study: Study, counts: dict[str, int]) -> None:
    click.echo(
        ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    )
    bad = [
        row
        for run in study.runs
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
    """Follows runs: events for programs, a bar on a terminal, else lines."""
    if as_json:
        yield lambda d: _say(
            event="run",
            key=d.key,
            status=d.status,
            wall=round(d.wall, 6),
            error=d.error,
        )
    elif sys.stderr.isatty():
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
    """How far it is, in a line now and then."""

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
            left = (now - self._begin) / self._done * (self._total - self._done)
            bad = f", {self._bad} not ok" if self._bad else ""
            click.echo(
                f"{self._done} of {self._total} runs{bad}; about {duration(left)} left",
                err=True,
            )


def duration(seconds: float) -> str:
    """A time for people."""
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
    help="Processes. [default: one for each core]",
)
@click.option("--no-run", is_flag=True, help="Do not measure the time by a run.")
@max_read_option
def check(
    plan: Path,
    output: Path | None,
    workers: int | None,
    no_run: bool,
    max_read: tuple[str, ...],
) -> int:
    """Say what PLAN asks for: its runs, those that have ended, and, by one run that is
    measured, the time that they take.
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
            f"{len(study.runs) - len(left)} have ended before "
            f"({study.folder.path}); {len(left)} are left for --resume"
        )

    if no_run or not left:
        return 0
    wall = _measured(study)
    workers = min(workers or os.cpu_count() or 1, len(left))
    click.echo(
        f"a run takes {wall:.3g} s; all: about "
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
    help="The page. [default: report.html in the results]",
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
    """Write what has ended of PLAN as a page that stands alone: a table and plots, with
    95 % intervals; and the table of all runs anew.
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
    """Wall time of the first run that is left, s; its result is not kept."""
    from botyard.studies.study import Study as AStudy

    found: list[Done] = []
    with tempfile.TemporaryDirectory(prefix="botyard-study-") as folder:
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
