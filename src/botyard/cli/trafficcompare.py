"""``botyard traffic compare``: supervisors on families of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from botyard.app.checks import check_can_be_written
from botyard.cli.listing import FORCE, print_table
from botyard.cli.options import max_read_option
from botyard.cli.trafficinput import compile_first, progress_bar
from botyard.cli.trafficoutput import (
    FILE,
    TABLES_BEGIN,
    csv_text,
    write_file,
)
from botyard.cli.trafficrules import rules_of, rules_options
from botyard.errors import CommandLineError


@click.command("compare")
@click.argument("tasks", nargs=-1, type=FILE)
@click.option(
    "--supervisors",
    "-s",
    default="fcfs,priority,chained,bankers,order",
    show_default=True,
    metavar="NAMES",
    help="Supervisors, comma-separated.",
)
@click.option(
    "--families",
    "-f",
    metavar="NAMES",
    help="Families, comma-separated. [default: all, unless TASKS are given]",
)
@click.option(
    "--robots",
    "-n",
    "sizes",
    default="4,8,16",
    show_default=True,
    metavar="NUMBERS",
    help="Numbers of robots, comma-separated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of tasks per family and size.",
)
@click.option(
    "--processes",
    type=click.IntRange(0),
    default=0,
    help="Maximum number of concurrent runs. [default: one per core]",
)
@rules_options
@click.option(
    "--csv",
    "csv_file",
    type=FILE,
    metavar="FILE",
    help="Write a table with one row per run.",
)
@click.option(
    "--json", "json_file", type=FILE, metavar="FILE", help="Write all runs as JSON."
)
@max_read_option
@FORCE
def compare(tasks: tuple[Path, ...], **o: Any) -> None:
    """Compare supervisors on the shipped families of tasks, or on TASKS; report the
    cycle of each deadlock.
    """
    from botyard.formats.budget import Budget
    from botyard.studies.comparison import compare as carry_out
    from botyard.traffic.compare import COLUMNS, Case, summarise, table
    from botyard.traffic.generate import FAMILIES
    from botyard.traffic.supervisors.registry import find_supervisor

    # Report a mistake before anything runs.
    Budget().raised(o["max_read"])
    names = [n for n in o["supervisors"].split(",") if n]

    for name in names:
        find_supervisor(name)
    families = [
        f
        for f in (o["families"] or ("" if tasks else ",".join(FAMILIES))).split(",")
        if f
    ]
    try:
        sizes = [int(n) for n in o["sizes"].split(",") if n]
    except ValueError:
        raise CommandLineError(
            f'--robots: expected comma-separated numbers, found "{o["sizes"]}"'
        ) from None

    cases = [Case(str(t), 0, o["seed"], s) for t in tasks for s in names]
    # Tasks in files have a fixed number of robots, so sizes and seeds apply to
    # generated families only.
    cases += [
        Case(f, n, seed, s)
        for f in families
        for n in sizes
        for s in names
        # Supervisors are compared on the same seeds, so that they solve the same tasks.
        for seed in range(o["seed"], o["seed"] + o["seeds"])
    ]
    for option, name in (("--csv", "csv_file"), ("--json", "json_file")):
        check_can_be_written(option, o[name], force=o["force"], begins=TABLES_BEGIN)
    compile_first()

    with progress_bar("runs", len(cases)) as progress:
        # Runs finish in any order, so the bar counts them instead of showing their
        # index.
        done = iter(range(1, len(cases) + 1))
        rows = carry_out(
            cases,
            rules_of(o),
            o["processes"] or None,
            lambda: progress(0.0, next(done)),
            o["max_read"],
        )

    print_table(COLUMNS, table(summarise(rows)))
    seen = set()
    for row in rows:
        c = row.case
        if (
            row.outcome in ("deadlock", "refused")
            and (c.family, c.robots, c.supervisor) not in seen
        ):
            # One example per family, size and supervisor is enough.
            seen.add((c.family, c.robots, c.supervisor))
            size = f" of {c.robots}" if c.robots else ""
            click.echo(f"{c.family}{size}, seed {c.seed}, {c.supervisor}: {row.text}")

    flat = [
        {
            "family": r.case.family,
            "robots": r.case.robots,
            "seed": r.case.seed,
            "supervisor": r.case.supervisor,
            "outcome": r.outcome,
            "makespan_s": r.makespan,
            "completion_s": r.completion,
            "waiting_s": r.waiting,
            "stops": r.stops,
            "grants": r.grants,
            "events": r.events,
            "cycle": " ".join(map(str, r.cycle)),
        }
        for r in rows
    ]

    # Written after the table is printed: a failure to write must not hide hours of
    # results.
    if o["csv_file"] is not None:
        write_file(o["csv_file"], csv_text(flat), o["force"], TABLES_BEGIN)
    if o["json_file"] is not None:
        write_file(
            o["json_file"], json.dumps(flat, indent=1) + "\n", o["force"], TABLES_BEGIN
        )
