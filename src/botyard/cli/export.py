"""``botyard export``: convert a recording to a table."""

from __future__ import annotations

from pathlib import Path

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.listing import FORCE
from botyard.cli.options import max_read_option
from botyard.errors import CommandLineError
from botyard.formats.budget import Budget
from botyard.names import shown
from botyard.processes.slow_notice import telling


@click.command("export")
@click.argument("source", metavar="FILE")
@click.argument("target", metavar="OUTPUT")
@max_read_option
@FORCE
def command(source: str, target: str, max_read: tuple[str, ...], force: bool) -> int:
    """Write a recording of --record as a table: .csv, .parquet or .arrow.

    The table has one row per time and robot.
    """
    from botyard.recording.arrays import load
    from botyard.recording.table import NEED_PYARROW, SUFFIXES, export

    path = Path(target)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise CommandLineError(
            f'OUTPUT: expected one of the suffixes {" ".join(SUFFIXES)}, found "{path.suffix}"'
        )

    if suffix in NEED_PYARROW:
        require("tables", what=target)
    check_can_be_written("OUTPUT", path, force=force)
    with telling(f"reading {source}"):
        run = load(source, budget=Budget().raised(max_read))
        try:
            rows = export(run, path, overwrite=force)
        except OSError as error:
            raise CommandLineError(
                f"OUTPUT: {shown(target)}: {error.strerror or error}"
            ) from None

    # A damaged recording still gives a table of its intact part.
    for problem in run.problems:
        click.echo(f"{shown(source)}: {shown(problem, 500)}", err=True)
    click.echo(f"{shown(target)}: {rows} rows")
    return 0
