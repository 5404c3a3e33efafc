"""``botyard bench``: benchmarks of navigation policies."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.app.checks import check_can_be_written
from botyard.cli.listing import FORCE, print_table
from botyard.errors import BotyardError, CommandLineError
from botyard.processes import codeload

if TYPE_CHECKING:
    from botyard.learning.benchmark import Result
    from botyard.studies.statistics import Interval

MAX_WORLDS: Final = 30_000
"""Maximum number of worlds of a benchmark."""
ALL: Final = "all"
"""Name of the row that summarises all classes."""


@click.group("bench")
def command() -> None:
    """Benchmarks of navigation policies in seeded worlds, with confidence intervals."""


@command.command("navigation")
@click.option(
    "--policy",
    "-p",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Navigation policy: straight, dwa, vfh, orca, or your own as "
    "module:Class or file.py:Class. Repeatable. [default: these four]",
)
@click.option(
    "--worlds",
    "-n",
    type=click.IntRange(3, MAX_WORLDS),
    default=300,
    show_default=True,
    metavar="NUMBER",
    help="Number of worlds, one third of each class: rooms, clutter, crowds.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=1,
    show_default=True,
    help="Seed of the benchmark.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of threads; it does not change the results.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a table with one row per world.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, for programs."
)
@FORCE
def navigation(
    policies: tuple[str, ...],
    worlds: int,
    seed: int,
    threads: int,
    csv_file: Path | None,
    as_json: bool,
    force: bool,
) -> int:
    """Run policies on a robot with a lidar in seeded worlds.

    Reports success, time, clearance and smoothness, with 95 % intervals. If a policy
    fails, the results of earlier policies are still printed and written, and the exit
    status reports the failure.
    """
    if worlds % 3:
        raise CommandLineError(
            f"--worlds: expected a multiple of 3 (one third per class), found {worlds}"
        )

    titles = _line(_titles())
    check_can_be_written("--csv", csv_file, force=force, begins=(titles.encode(),))
    from botyard.learning.baselines import BASELINES
    from botyard.learning.benchmark import CLASSES, digest_of, lines_of

    names = list(dict.fromkeys(policies or BASELINES))
    made = {name: _policy(name) for name in names}
    tables: dict[str, dict[str, Any]] = {}
    lines = [titles]

    try:
        for name in names:
            results: list[Result] = []
            for kind in CLASSES:
                began = time.monotonic()
                results += _run(name, made[name], kind, worlds // 3, seed, threads)
                if not as_json:
                    click.echo(
                        f"{name}: {kind}, {worlds // 3} worlds, {time.monotonic() - began:.1f} s",
                        err=True,
                    )

            tables[name] = {
                "digest": digest_of(results),
                "rows": _summaries(results, CLASSES),
            }
            lines += [f"{_line([name])},{line}" for line in lines_of(results)]
    finally:
        # Write the results also after Ctrl-C, so that an hour of finished policies is
        # not lost.
        if tables:
            if csv_file is not None:
                from botyard.processes.safefile import write_text

                write_text(
                    csv_file,
                    "\n".join([*lines, ""]),
                    force=force,
                    begins=(titles.encode(),),
                )

            if as_json:
                click.echo(
                    json.dumps(
                        {"worlds": worlds, "seed": seed, "policies": tables},
                        allow_nan=False,
                    )
                )
            else:
                _print(tables)

    return 0


def _titles() -> Sequence[str]:
    """Return the column titles of the table that has a row for each world."""
    from botyard.learning.benchmark import TITLES

    return "policy", *TITLES


def _line(cells: Sequence[str]) -> str:
    """Return a line of CSV, without the line end.

    Cells with commas, such as some names of policies, are quoted.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _policy(name: str) -> Any:
    """Return the policy class with a name.

    Raises
    ------
    CommandLineError
        There is no such policy.
    """
    from botyard.learning.baselines import find_policy

    try:
        return find_policy(name)
    except CommandLineError as error:
        raise CommandLineError(f"--policy: {error}") from error


def _run(
    name: str, policy: Any, kind: str, count: int, seed: int, threads: int
) -> list[Result]:
    """Run one policy in all worlds, and return its results.

    Raises
    ------
    CommandLineError
        The policy raises an error or returns invalid actions.
    """
    from botyard.learning.benchmark import run

    try:
        return run(policy, kind, count, seed=seed, threads=threads)
    except BotyardError as error:
        place = codeload.place_of(
            error
            # Line of the policy's code that raised the error; empty if botyard raised it
            # because the policy returned invalid actions.
        )
        raise CommandLineError(
            f"--policy {name}: {error}{place and f' ({place})'}"
        ) from error
    except (Exception, SystemExit) as error:
        # A policy that calls sys.exit(0) must not end the benchmark as a success.
        raise CommandLineError(f"--policy {name}: {codeload.said_of(error)}") from error


def _summaries(results: Sequence[Result], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return the summary of each class of worlds, and of all classes together."""
    from botyard.studies.statistics import mean_interval, share_interval

    rows = []
    for kind in (*kinds, ALL):
        of = [r for r in results if kind in (ALL, r.kind)]
        there = [r.time_s for r in of if r.outcome == "goal"]
        rows.append(
            {
                "class": kind,
                "worlds": len(of),
                "success": _numbers(share_interval(len(there), len(of))),
                "collisions": _numbers(
                    share_interval(sum(r.outcome == "collision" for r in of), len(of))
                ),
                "time_s": _numbers(mean_interval(there)),
                "clearance_m": _numbers(mean_interval([r.clearance_m for r in of])),
                "turning_rad_s2": _numbers(mean_interval([r.turning for r in of])),
            }
        )

    return rows


def _numbers(interval: Interval) -> list[float | None]:
    """Return a mean with both ends of its interval; None in place of an unknown number.

    All these quantities are positive, so 0 replaces a negative end of an interval.
    """
    # NaN is the only number that differs from itself.
    return [None if number != number else max(number, 0.0) for number in interval[:3]]


def _print(tables: dict[str, dict[str, Any]]) -> None:
    """Print the table of all policies, and a hash of their results."""
    rows = []
    for name, table in tables.items():
        for row in table["rows"]:
            shares = [_shown(row[key], 100.0, 0) for key in ("success", "collisions")]
            means = [
                _shown(row[key], 1.0, digits)
                for key, digits in (
                    ("time_s", 1),
                    ("clearance_m", 2),
                    ("turning_rad_s2", 2),
                )
            ]
            rows.append((name, row["class"], str(row["worlds"]), *shares, *means))

    print_table(
        (
            "policy",
            "class",
            "worlds",
            "success, %",
            "collisions, %",
            "time, s",
            "clearance, m",
            "turning, rad/s²",
        ),
        rows,
    )
    for name, table in tables.items():
        click.echo(f"{name}: digest {table['digest']}")


def _shown(numbers: Sequence[float | None], factor: float, digits: int) -> str:
    """Return a mean with its interval as text for the table."""
    value, low, high = numbers
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{factor * value:.{digits}f}"
    return f"{factor * value:.{digits}f} ({factor * low:.{digits}f}-{factor * high:.{digits}f})"
