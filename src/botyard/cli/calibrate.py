"""``botyard calibrate``: fit a robot model to logs of the real robot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.listing import FORCE, print_table
from botyard.cli.options import StartParam, max_read_option
from botyard.errors import CommandLineError
from botyard.formats.budget import Budget
from botyard.geometry import Pose
from botyard.names import escaped, shown
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from botyard.calibration.choice import Choice
    from botyard.model.scene import Scene

FILE: Final = click.Path(dir_okay=False, path_type=Path)
LOG: Final = click.Path(path_type=Path)
OF_LOG, OF_SCANS = "log", "scans"
"""Values of ``--truth`` that are not file names."""


def with_log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all commands reading logs share.

    Parameters
    ----------
    function : callable
        Function of the command; it receives the options as keyword arguments.

    Returns
    -------
    callable
        The same function, for the decorator of the command.
    """
    options = (
        click.option(
            "--robot",
            "-r",
            "model",
            required=True,
            metavar="MODEL",
            help="Robot model: a name or a file, as for run.",
        ),
        click.option(
            "--map", "-m", "map_name", metavar="MAP", help="Map for matching scans."
        ),
        click.option(
            "--start",
            type=StartParam(),
            metavar="X,Y,TH",
            help="Approximate start pose for matching scans: mm, mm, degrees. [default: the map's]",
        ),
        click.option(
            "--of",
            "robot",
            metavar="NAME",
            help="Robot to use from logs of several robots.",
        ),
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="ROLE=TOPIC",
            help="Topic to use from bags with several: odometry=TOPIC, "
            "commands=, scans= or truth=.",
        ),
        click.option(
            "--step",
            type=click.FloatRange(0.001, 1.0),
            default=0.1,
            show_default=True,
            help="Time step of simulations with the fitted model, s.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("calibrate")
@click.argument("logs", nargs=-1, required=True, type=LOG, metavar="LOG...")
@with_log_options
@click.option(
    "--truth",
    "truths",
    multiple=True,
    metavar="FILE",
    help='True poses: a CSV file or a log, one for all logs or one per log; "log": from the logs; "scans": from matching scans '
    "against --map. [default: log]",
)
@click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    help="Write the fitted robot model: a .toml file for -r.",
)
@click.option(
    "--report",
    type=FILE,
    metavar="FILE",
    help="Write an HTML report of values, intervals and residuals.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the fitted values as JSON."
)
@click.option(
    "--odometry-law",
    type=click.Choice(["distance", "step"]),
    default="distance",
    show_default=True,
    help='Random errors of odometry: "distance": variances for each metre and radian, for any step; "step": AMRISim\'s law, '
    "drawn in each step, for the step of --step.",
)
@max_read_option
@FORCE
def command(
    logs: tuple[Path, ...],
    model: str,
    map_name: str | None,
    start: Pose | str | None,
    robot: str | None,
    topics: tuple[str, ...],
    step: float,
    truths: tuple[str, ...],
    output: Path | None,
    report: Path | None,
    as_json: bool,
    **others: Any,
) -> int:
    """Fit a robot model to LOGs: odometry, accelerations, latency and laser.

    LOGs are recordings, ROS bags, Pioneer packet logs or CSV tables.
    """
    require("calibrate", what="calibrate")
    force: bool = others["force"]
    # `-r` selects the reader by the suffix, so a file with another suffix could not be
    # used.
    if output is not None and output.suffix.lower() != ".toml":
        raise CommandLineError(
            f"--output: expected a .toml file, found {shown(output.name)}"
        )

    for option, path in (("--output", output), ("--report", report)):
        # Check the file before the fit, which may take minutes.
        check_can_be_written(option, path, force=force)
    # These modules take long to import, so mistakes in the options are reported first.
    from botyard.calibration.calibration import calibrate
    from botyard.calibration.readers import read_log, read_truth
    from botyard.formats.models import find_robot

    budget = Budget().raised(others["max_read"])
    spec = find_robot(model, budget)
    choice, scene, begin = (
        chosen(robot, topics),
        scene_of(map_name, budget),
        start_of(start),
    )
    files = _truths(truths, len(logs))

    with _output_of("--output", output), telling("reading the logs"):
        found = calibrate(
            [read_log(path, spec, choice, budget) for path in logs],
            spec,
            truths=[
                None if name is None else read_truth(Path(name), spec, choice, budget)
                for name in files
            ],
            # Matching against a map needs no file of poses, only --map.
            from_scans=truths == (OF_SCANS,),
            scene=scene,
            start=begin,
            step=step,
            odometry_law=others["odometry_law"],
        )

    if output is not None:
        from botyard.calibration.robotfile import robot_text
        from botyard.processes.safefile import write_text

        sources = ", ".join(str(path) for path in logs)
        # The file names its logs, so that a user who finds it later knows the source of
        # the numbers.
        remarks = [
            f"fitted to {escaped(sources)} by botyard calibrate",
            *map(escaped, found.notes),
        ]
        with _output_of("--output", output):
            write_text(
                output, robot_text(found.robot, spec, output.stem, remarks), force=force
            )

    if report is not None:
        from botyard.calibration.report import write_report

        with _output_of("--report", report):
            write_report(found, report, force=force)

    if as_json:
        # Print one object and nothing else on standard output, because a program reads
        # it.
        click.echo(json.dumps(found.as_dict()))
        return 0

    from botyard.calibration.report import HEADS, value_rows

    print_table(HEADS[:-1], (row[:-1] for row in value_rows(found.values)))
    # Logs that were not used in the fit show whether the model predicts, rather than
    # repeats, the data.
    for one in found.held_out:
        click.echo(
            f"held out: {one.name}: {one.before:.4g} {one.unit} before, "
            f"{one.after:.4g} {one.unit} after"
        )

    for note in found.notes:
        click.echo(f"note: {escaped(note)}", err=True)
    for written in (output, report):
        if written is not None:
            click.echo(shown(str(written)))

    return 0


def _truths(names: tuple[str, ...], count: int) -> list[str | None]:
    """Return the series of true poses for each log; None: the log contains them itself."""
    # Without external poses, the logs contain true poses, or matched scans replace
    # them.
    if not names or names in ((OF_LOG,), (OF_SCANS,)):
        return [None] * count
    if any(name in (OF_LOG, OF_SCANS) for name in names) or len(names) not in (
        1,
        count,
    ):
        raise CommandLineError(
            f'--truth: expected "log", "scans", one file, or one file for each of the {count} logs, found {len(names)} values'
        )

    # A motion-capture system often writes one file for a whole day of logs.
    return [*names] * (count if len(names) == 1 else 1)


def chosen(robot: str | None, topics: tuple[str, ...]) -> Choice:
    """Return which robot and topics to read from logs of several robots or topics.

    Parameters
    ----------
    robot : str, optional
        Name of the robot; None: the only one.
    topics : tuple of str
        Texts ``ROLE=TOPIC``; a later text replaces an earlier text for the same role.

    Raises
    ------
    CommandLineError
        A text has another form or an unknown role.
    """
    from botyard.calibration.choice import ROLES, Choice

    roles: dict[str, str] = {}
    for text in topics:
        role, equals, topic = text.partition("=")
        if not equals or not topic or role not in ROLES:
            raise CommandLineError(
                "--topic: expected "
                f"{', '.join(f'{one}=TOPIC' for one in ROLES)}, found {shown(text)}"
            )

        roles[role] = topic

    return Choice(robot, roles)


def scene_of(name: str | None, budget: Budget) -> Scene | None:
    """Load the map of ``--map``; None without the option.

    Parameters
    ----------
    name : str, optional
        Name or file of the map.
    budget : Budget
        Limits for reading files.

    Raises
    ------
    MapError
        The map cannot be found or read.
    """
    if name is None:
        return None
    from botyard.formats.registry import load_scene

    return load_scene(name, budget=budget)


def start_of(start: Pose | str | None) -> Pose | None:
    """Return the pose of ``--start``.

    Parameters
    ----------
    start : Pose or str, optional
        Parsed value of the option, m, m, rad.

    Raises
    ------
    CommandLineError
        The value is one of the words that only ``run`` accepts.
    """
    if isinstance(start, str):
        raise CommandLineError(
            f'--start: expected x,y,th (mm, mm, degrees), found "{start}"'
        )

    return start


@contextmanager
def _output_of(option: str, path: Path | None) -> Iterator[None]:
    """Turn a system error during the writing of a file into an error that names the option."""
    try:
        yield
    except OSError as error:
        raise CommandLineError(
            f"{option}: {shown(str(path))}: {error.strerror or error}"
        ) from None


__all__ = ["LOG", "chosen", "command", "scene_of", "start_of", "with_log_options"]
