"""Result files and tables of ``botyard traffic``, and the report on the terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.errors import CommandLineError, WorldError
from botyard.processes.safefile import MARK, Beginnings, write_text

if TYPE_CHECKING:
    from botyard.traffic.outcome import Outcome


FILE = click.Path(dir_okay=False, path_type=Path)
# An empty list of runs is a valid table too, so "[]" is among them.
TABLES_BEGIN: Final[tuple[bytes, ...]] = (
    b"robot,done,",
    b"robot,sector,visits",
    b"family,robots,seed",
    b'[\n {\n  "family"',
    b"[]",
)
"""First bytes of result tables, by which botyard recognises files that it wrote.

CSV and JSON tables have no place for a marker.
"""


def check_chart(option: str, path: Path | None) -> None:
    """Check that the suffix of a chart file is supported.

    Parameters
    ----------
    option : str
        Spelling of the option, for the error.
    path : Path, optional
        File of the chart; None is valid.

    Raises
    ------
    CommandLineError
        The suffix is not supported.
    """
    from botyard.traffic.gantt import FORMATS

    if path is not None and path.suffix.lower() not in FORMATS:
        raise CommandLineError(
            f"{option}: {path}: expected one of the suffixes {', '.join(FORMATS)}, "
            f'found "{path.suffix}"'
        )


def print_outcome(out: Outcome) -> None:
    """Print the outcome of a traffic run and its figures."""
    click.echo(out.describe())
    m = out.metrics
    click.echo(
        f"{m['finished']} of {m['robots']} robots finished; they waited "
        f"{m['waiting_time_s']:.1f} s in {m['stops']} stops; {m['grants']} grants, "
        f"{m['events']} events"
    )
    if out.decisions.count:
        d = out.decisions
        click.echo(
            f"the supervisor decided {d.count} times; a decision took "
            f"{1000000.0 * d.mean:.0f} µs on average, {1000000.0 * d.longest:.0f} µs "
            "at most"
        )

    # A deadlock may involve hundreds of robots; the first robots show the cycle.
    for i, (sector, others) in list(out.waiting.items())[:20]:
        who = (
            f"robot{'s' if len(others) > 1 else ''} {', '.join(map(str, others))}"
            if others
            else "a permission"
        )
        click.echo(f"robot {i} waits before sector {sector} for {who}")

    if len(out.waiting) > 20:
        click.echo(f"… and {len(out.waiting) - 20} more")


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV text.

    Parameters
    ----------
    rows : sequence of dict
        Rows with equal keys, in the order of the columns; the first row gives the head.

    Returns
    -------
    str
        Text with one line per row; empty without rows.
    """
    text = io.StringIO()
    if rows:
        # csv ends lines with CRLF by default, which shows as a change in version
        # control.
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    return text.getvalue()


def result_text(out: Outcome) -> str:
    """Return the contents of a result file.

    Parameters
    ----------
    out : Outcome
        Outcome of a run, with its events.

    Returns
    -------
    str
        JSON on one line, whose first bytes mark it as a file of this program.
    """
    return (
        # The marker comes first, so that it is found in the first bytes of a file of
        # any length.
        json.dumps({"generator": MARK, **out.to_json()}, separators=(",", ":")) + "\n"
    )


def write_file(path: Path, text: str, force: bool, begins: Beginnings = ()) -> None:
    """Write a text file; report errors of the system as WorldError.

    Raises
    ------
    WorldError
        The system cannot write the file.
    KeptFileError
        A file exists that this program did not write.
    """
    try:
        write_text(path, text, force=force, begins=begins)
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None
