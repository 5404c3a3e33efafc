"""``botyard traffic run``: a task under a supervisor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import Needs
from botyard.cli.listing import FORCE
from botyard.cli.options import max_read_option
from botyard.cli.runoptions import with_some_options
from botyard.cli.trafficinput import (
    PAGE_OPTIONS,
    compile_first,
    progress_bar,
    read_task,
)
from botyard.cli.trafficoutput import (
    FILE,
    TABLES_BEGIN,
    check_chart,
    csv_text,
    print_outcome,
    result_text,
    write_file,
)
from botyard.cli.trafficrules import rules_of, rules_options
from botyard.errors import CommandLineError, FormatError, WorldError

if TYPE_CHECKING:
    from botyard.traffic.on_robots import RobotTraffic
    from botyard.traffic.outcome import Outcome
    from botyard.traffic.task import Task


def _read_grants(path: Path, n: int, max_read: Sequence[str]) -> list[tuple[int, int]]:
    """Read a script of permissions for robots: ``[[step, robot], …]``.

    Raises
    ------
    CommandLineError
        The file is not valid.
    """
    from botyard.api.arguments import found
    from botyard.formats.base import read_bytes
    from botyard.formats.budget import Budget, Meter
    from botyard.formats.jsonfile import loads

    meter = Meter(Budget().raised(max_read), str(path), FormatError)
    try:
        data = loads(
            read_bytes(path, meter, FormatError).decode("utf-8"), meter, FormatError
        )
    except (FormatError, UnicodeDecodeError) as error:
        raise CommandLineError(f"--grants: {error}") from None

    if not isinstance(data, list):
        raise CommandLineError(
            f"--grants: {path}: expected a list [[step, robot], …], found {found(data)}"
        )
    for k, row in enumerate(data):
        if not (
            isinstance(row, list)
            and len(row) == 2
            # `type` instead of `isinstance`, because JSON's true would pass for the
            # integer 1.
            and all(type(x) is int for x in row)
            # Step -1 means before the first step.
            and row[0] >= -1
            and 0 <= row[1] < n
        ):
            raise CommandLineError(
                f"--grants: {path}: [{k}]: expected [step from −1, robot from 0 "
                f"to {n - 1}], found {row}"
            )

    return [(row[0], row[1]) for row in data]


@click.command("run")
@click.argument("task", type=FILE)
@click.option(
    "--supervisor",
    metavar="NAME|FILE.py:CLASS",
    help="Supervisor that grants permissions. [default: bankers; none with --grants or --compat]",
)
@click.option(
    "--grants",
    type=FILE,
    metavar="FILE",
    help="Script of permissions: JSON [[step, robot], …], each granted after that step of 0.1 s.",
)
@click.option(
    "--compat",
    is_flag=True,
    help="Behave like the MMRS Simulator: 10 steps per second, with its quirks.",
)
@click.option(
    "--latency-steps",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="With --compat: number of steps until an answer arrives.",
)
@rules_options
@click.option(
    "--on-robots",
    metavar="MODEL",
    help="Drive simulated robots of this model along the paths (needs Geometry), for example p3dx.",
)
@click.option(
    "--knows",
    type=click.Choice(["truth", "odometry"]),
    default="truth",
    show_default=True,
    help="With --on-robots: source of the robots' own position.",
)
@click.option(
    "--page",
    is_flag=True,
    help="With --on-robots or ROS: show the run on the page, in real time; Ctrl-C ends it.",
)
@with_some_options(*PAGE_OPTIONS)
@click.option(
    "--ros1", is_flag=True, help="Use a ROS 1 node as the supervisor, in real time."
)
@click.option(
    "--ros-master",
    metavar="URI|embedded[:PORT]",
    help="ROS master. [default: $ROS_MASTER_URI; embedded: start one]",
)
@click.option(
    "--ros2",
    is_flag=True,
    help="Use a ROS 2 node (DDS) as the supervisor, in real time.",
)
@click.option(
    "--wait-for-supervisor",
    is_flag=True,
    help="Start when the first subscriber to critical_points connects.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.0, 1000.0, min_open=True),
    default=1.0,
    show_default=True,
    help="With ROS: speed as a multiple of real time.",
)
@click.option(
    "--idle-limit",
    type=click.FloatRange(0.0),
    default=10.0,
    show_default=True,
    metavar="S",
    help="With ROS: all robots at rest for this long count as a deadlock; 0: never.",
)
@click.option(
    "--result",
    type=FILE,
    metavar="FILE",
    help="Write the result, with all events, as JSON.",
)
@click.option(
    "--events", type=FILE, metavar="FILE", help="Write the events as JSON lines."
)
@click.option(
    "--csv", "table", type=FILE, metavar="FILE", help="Write a table of the robots."
)
@click.option(
    "--sectors",
    type=FILE,
    metavar="FILE",
    help="Write a table of the conflicting sectors and their time of use.",
)
@click.option(
    "--gantt",
    type=FILE,
    metavar="FILE",
    help="Draw robots and sectors over time (.svg, .html, .png, .pdf; extra plots).",
)
@click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Record the run (.mcap), for botyard replay, render, export, and Foxglove.",
)
@click.option(
    "--replay",
    type=FILE,
    metavar="FILE",
    help="Write an HTML page that replays the run.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as JSON, without its events.",
)
@max_read_option
@FORCE
def run(task: Path, **o: Any) -> int:
    """Run TASK and report its outcome.

    Exit status: 0 completed, 10 collision, 11 deadlock, 12 given up.
    """
    _check_run(o)
    loaded = read_task(task, o["max_read"])
    # The mode --compat steps in Python and compiles nothing.
    if not o["compat"]:
        compile_first()
    out = _run(loaded, o)
    if o["as_json"]:
        click.echo(json.dumps(out.to_json(events=False), indent=2))
    else:
        print_outcome(out)

    if o["result"] is not None:
        write_file(o["result"], result_text(out), o["force"])
    if o["events"] is not None:
        out.events.write_lines(o["events"], overwrite=o["force"])
    if o["table"] is not None:
        write_file(o["table"], csv_text(out.robot_rows()), o["force"], TABLES_BEGIN)
    if o["sectors"] is not None:
        write_file(o["sectors"], csv_text(out.sector_rows()), o["force"], TABLES_BEGIN)
    if o["gantt"] is not None:
        from botyard.traffic.gantt import draw

        draw(out, o["gantt"], overwrite=o["force"])

    if o["replay"] is not None:
        from botyard.traffic.replay import write_replay

        write_replay(out, o["replay"], overwrite=o["force"])

    # With --on-robots, `_run_recorded` has already written the recording during the
    # run.
    if o["record"] is not None and o["on_robots"] is None:
        from botyard.traffic.recorded import write_recording

        write_recording(out, o["record"], overwrite=o["force"])

    return out.ending.exit_status


def _check_run(o: dict[str, Any]) -> None:
    """Check the options before anything runs.

    Raises
    ------
    CommandLineError
        An extra is missing, options contradict each other, or a file cannot be written.
    """
    needs = Needs()
    needs.add_options(o)
    needs.check()
    over_ros = o["ros1"] or o["ros_master"] or o["ros2"]
    if over_ros and o["supervisor"] is not None:
        raise CommandLineError(
            "--supervisor: cannot be combined with --ros1 or --ros2, because the "
            "supervisor is then a ROS node"
        )

    if o["page"] and (
        not (over_ros or o["on_robots"]) or o["compat"] or o["record"] is not None
    ):
        raise CommandLineError(
            "--page: expected --on-robots, --ros1, --ros-master or --ros2, and neither "
            "--compat nor --record; the page itself can record the run"
        )

    for option, given in (
        ("--ros1, --ros-master or --ros2", over_ros),
        ("--grants", o["grants"]),
        ("--compat", o["compat"]),
        ("--replay", o["replay"]),
    ):
        if o["on_robots"] is not None and given:
            raise CommandLineError(f"--on-robots: cannot be combined with {option}")

    if o["on_robots"] is not None:
        from botyard.formats.models import find_robot

        # Look the model up only to report a wrong name now: the run itself finds it
        # again.
        find_robot(o["on_robots"])

    from botyard.traffic.outcome import EVENTS_BEGIN

    # The files are written after the run, which may take hours, so their folders are
    # checked before.
    for option, name in (
        ("result", "result"),
        ("events", "events"),
        ("csv", "table"),
        ("sectors", "sectors"),
        ("gantt", "gantt"),
        ("replay", "replay"),
        ("record", "record"),
    ):
        begins = {
            "events": (EVENTS_BEGIN,),
            "csv": TABLES_BEGIN,
            "sectors": TABLES_BEGIN,
        }.get(option, ())
        check_can_be_written(f"--{option}", o[name], force=o["force"], begins=begins)

    check_chart("--gantt", o["gantt"])


def _run(task: Task, o: dict[str, Any]) -> Outcome:
    """Run a task in the mode that the options select."""
    from botyard.traffic.compat import CompatTraffic
    from botyard.traffic.engine import Traffic
    from botyard.traffic.supervisors.registry import find_supervisor

    script = (
        []
        if o["grants"] is None
        else _read_grants(o["grants"], len(task), o["max_read"])
    )
    # Handle ROS before a supervisor is looked up: the ROS node replaces it.
    if o["ros1"] or o["ros_master"] or o["ros2"]:
        from botyard.cli.trafficlive import run_over_ros

        return run_over_ros(task, script, rules_of(o), o)

    supervisor = find_supervisor(
        o["supervisor"]
        or ("none" if o["compat"] or o["grants"] is not None else "bankers")
    )
    with progress_bar(task.name, len(task)) as progress:
        if o["on_robots"] is not None:
            from botyard.sim.simulation import Simulation
            from botyard.traffic.on_robots import RobotTraffic

            sim = Simulation(seed=o["seed"])
            real = RobotTraffic(
                task, supervisor, sim, model=o["on_robots"], knows=o["knows"]
            )
            if o["page"]:
                return _run_on_page(real, o)
            if o["record"] is None:
                return real.run(o["time_limit"], progress)
            return _run_recorded(real, o, progress)

        if o["compat"]:
            # Ten steps per second, as in the original. The bound keeps --time-limit inf
            # from an endless run.
            steps = int(min(o["time_limit"] * 10, 10_000_000))
            old = CompatTraffic(
                task,
                supervisor,
                latency_steps=o["latency_steps"],
                grants=script,
                max_steps=steps,
            )
            return old.run(progress)

        # A script counts steps of 0.1 s from 0, and a permission takes effect after its
        # step.
        times = [
            (-1.0 if step < 0 else (step + 1) / 10, robot) for step, robot in script
        ]
        return Traffic(task, supervisor, rules_of(o), grants=times).run(progress)


def _run_on_page(real: RobotTraffic, o: dict[str, Any]) -> Outcome:
    """Run a task on simulated robots with the page, until Ctrl-C or the page ends it."""
    from botyard.cli import interrupts
    from botyard.cli.trafficlive import logging_lines, serve_page

    with logging_lines():
        return interrupts.run_loop(
            serve_page(real, real.sim, o["supervisor"] or "bankers", o)
        )


def _run_recorded(
    real: RobotTraffic, o: dict[str, Any], progress: Callable[[float, int], None]
) -> Outcome:
    """Run a task on simulated robots and record it."""
    from botyard.traffic.recorded import Notes

    try:
        recording = real.sim.record(o["record"], overwrite=o["force"])
    except OSError as error:
        raise WorldError(
            f"{o['record']}: cannot be written: {error.strerror}"
        ) from None

    with recording:
        notes = Notes(recording, real.task)
        real.on_event = notes.event
        out = real.run(o["time_limit"], progress)
        notes.end(out)

    if recording.error:
        raise WorldError(f"{o['record']}: {recording.error}")
    return out
