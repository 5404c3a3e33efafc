"""``botyard compare``: compare a real log with a simulated one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.calibrate import (
    FILE,
    LOG,
    chosen,
    scene_of,
    start_of,
    with_log_options,
)
from botyard.cli.listing import FORCE, print_table
from botyard.cli.options import max_read_option
from botyard.errors import CommandLineError
from botyard.formats.budget import Budget
from botyard.geometry import Pose
from botyard.names import escaped, shown
from botyard.processes.slow_notice import telling


@click.command("compare")
@click.argument("real", type=LOG, metavar="REAL")
@click.argument("simulated", type=LOG, metavar="SIM")
@with_log_options
@click.option(
    "--truth",
    type=FILE,
    metavar="FILE",
    help="True poses of REAL: a CSV file or a log. [default: from REAL itself]",
)
@click.option(
    "--report",
    type=FILE,
    metavar="FILE",
    help="Write the comparison as an HTML report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@max_read_option
@FORCE
def command(
    real: Path,
    simulated: Path,
    model: str,
    map_name: str | None,
    start: Pose | str | None,
    robot: str | None,
    topics: tuple[str, ...],
    step: float,
    truth: Path | None,
    report: Path | None,
    as_json: bool,
    **others: Any,
) -> int:
    """Compare a real log with a simulated one.

    Compares the drift of odometry per metre and per turn, scans against the map, rates,
    jitter and latency.
    """
    # The comparison uses the same fitting code as `calibrate`, and thus its packages.
    require("calibrate", what="compare")
    force: bool = others["force"]
    check_can_be_written("--report", report, force=force)
    from botyard.calibration.clock import clock_offset
    from botyard.calibration.comparing import HEADS, compare, write_comparison
    from botyard.calibration.readers import read_log, read_truth
    from botyard.formats.models import find_robot

    budget = Budget().raised(others["max_read"])
    spec, choice = find_robot(model, budget), chosen(robot, topics)
    with telling("reading the logs"):
        both = [
            read_log(path, spec, choice, budget).checked() for path in (real, simulated)
        ]
        if truth is not None:
            poses = read_truth(truth, spec, choice, budget)

            # A separate truth file may use another clock than the log; align it by the
            # motion.
            both[0] = replace(
                both[0], truth=poses.shifted(clock_offset(both[0].odometry, poses))
            )

        # The order of the logs matters: differences are stated relative to the real
        # one.
        found = compare(
            both[0],
            both[1],
            spec,
            scene=scene_of(map_name, budget),
            start=start_of(start),
            step=step,
        )

    if report is not None:
        try:
            write_comparison(found, report, force=force)
        except OSError as error:
            raise CommandLineError(
                f"--report: {shown(str(report))}: {error.strerror or error}"
            ) from None

    if as_json:
        click.echo(json.dumps(found.as_dict()))
        return 0

    print_table(HEADS, (one.row() for one in found.quantities))
    for note in found.notes:
        click.echo(f"note: {escaped(note)}", err=True)
    if report is not None:
        click.echo(shown(str(report)))
    return 0


__all__ = ["command"]
