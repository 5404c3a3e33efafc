"""``botyard traffic``: robots on sector paths under a supervisor.

Subcommands run, check, generate, convert and compare tasks.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import Needs, require
from botyard.cli.listing import FORCE, print_table
from botyard.cli.options import SEED, max_read_option, parse_address
from botyard.errors import CommandLineError, FormatError, WorldError
from botyard.names import escaped, is_name, shown
from botyard.processes.safefile import MARK, Beginnings, write_text
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botyard.traffic.on_robots import RobotTraffic
    from botyard.traffic.outcome import Outcome
    from botyard.traffic.rules import Rules
    from botyard.traffic.task import Task

FILE = click.Path(dir_okay=False, path_type=Path)
# An empty list of runs is a valid table too, so "[]" is among them.
TABLES_BEGIN: Final[tuple[bytes, ...]] = (
    b"robot,done,",
    b"robot,sector,visits",
    b"family,robots,seed",
    b'[\n {\n  "family"',
    b"[]",
)
"""First bytes of tables, by which botyard recognises its own files.

CSV and JSON tables have no place for a marker.
"""


@click.group("traffic")
def command() -> None:
    """Run robots on paths divided into sectors, under a supervisor that grants
    permissions.

    Reads the tasks of the MMRS simulator, and others.
    """


def _rules(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the rules of a run."""
    options = (
        click.option(
            "--time-limit",
            type=click.FloatRange(0.0),
            # About 11 days of simulated time: a run that needs more has no end.
            default=1e6,
            metavar="S",
            help="Maximum simulated time; then the run is given up.",
        ),
        click.option(
            "--stop-at-end",
            is_flag=True,
            help="Robots stop exactly at the end of their path, instead of "
            "starting to brake there.",
        ),
        click.option(
            "--leaves",
            is_flag=True,
            help="Remove finished robots; otherwise they stay in their last sector.",
        ),
        click.option(
            "--on-collision",
            type=click.Choice(["end", "continue"]),
            default="end",
            show_default=True,
            help="End the run at a collision, or count it and let both robots brake.",
        ),
        click.option(
            "--original-braking",
            is_flag=True,
            help="Place critical points as the original does: by the acceleration.",
        ),
        click.option(
            "--latency",
            type=click.FloatRange(0.0),
            default=0.0,
            metavar="S",
            help="Latency of each message.",
        ),
        click.option(
            "--jitter",
            type=click.FloatRange(0.0),
            default=0.0,
            metavar="S",
            help="Maximum random addition to the latency.",
        ),
        click.option(
            "--loss",
            type=click.FloatRange(0.0, 1.0),
            default=0.0,
            metavar="SHARE",
            help="Share of lost messages, from 0 to 1.",
        ),
        click.option(
            "--seed",
            type=SEED,
            default=1,
            show_default=True,
            help="Seed of all random numbers.",
        ),
    )
    # Decorators apply from the bottom up, so the reverse order keeps the order of the
    # help text.
    for option in reversed(options):
        function = option(function)
    return function


def _made_rules(o: dict[str, Any]) -> Rules:
    """Return the rules that the options describe."""
    from botyard.traffic.rules import Rules

    return Rules(
        time_limit=o["time_limit"],
        stop_at_end=o["stop_at_end"],
        leaves=o["leaves"],
        goes_on=o["on_collision"] == "continue",
        original_braking=o["original_braking"],
        latency=o["latency"],
        jitter=o["jitter"],
        loss=o["loss"],
        seed=o["seed"],
    )


def _warn(text: str) -> None:
    """Print a warning."""
    click.echo(f"warning: {escaped(text)}", err=True)


def _load(path: Path, max_read: Sequence[str]) -> Task:
    """Read a task within the limits of ``--max-read``."""
    from botyard.formats.budget import Budget
    from botyard.traffic.task import load_task

    return load_task(path, _warn, Budget().raised(max_read))


def _read_grants(path: Path, n: int, max_read: Sequence[str]) -> list[tuple[int, int]]:
    """Read a script of permissions: ``[[step, robot], …]``.

    Raises
    ------
    CommandLineError
        The file is not valid.
    """
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
        raise CommandLineError(f"--grants: {path}: expected [[step, robot], …]")
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


def _compile() -> None:
    """Compile the kernels, if necessary, before a progress bar occupies the terminal."""
    from botyard.processes.compiling import watch
    from botyard.traffic.compare import compile_kernels

    # Compilation takes up to minutes, which a silent pipe or log would not explain.
    watch.always = True
    compile_kernels()
    watch.finish()


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[float, int], None]]:
    """Show a progress bar on stderr; no bar if stderr is not a terminal."""
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
        yield lambda t, n: bar.update(task, completed=n, time=f"{t:.0f} s simulated")


@command.command("run")
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
    help="Behave like the original: 10 steps per second, with its quirks.",
)
@click.option(
    "--latency-steps",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="With --compat: number of steps until an answer arrives.",
)
@_rules
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
    loaded = _load(task, o["max_read"])
    # The mode --compat steps in Python and compiles nothing.
    if not o["compat"]:
        _compile()
    out = _run(loaded, o)
    if o["as_json"]:
        click.echo(json.dumps(out.to_json(events=False), indent=2))
    else:
        _print_outcome(out)

    if o["result"] is not None:
        _write(o["result"], _result_text(out), o["force"])
    if o["events"] is not None:
        out.events.write_lines(o["events"], overwrite=o["force"])
    if o["table"] is not None:
        _write(o["table"], _csv(out.robot_rows()), o["force"], TABLES_BEGIN)
    if o["sectors"] is not None:
        _write(o["sectors"], _csv(out.sector_rows()), o["force"], TABLES_BEGIN)
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
            "--supervisor does not go together with --ros1 or --ros2: the supervisor is a ROS node"
        )

    for option, given in (
        ("--ros1, --ros-master or --ros2", over_ros),
        ("--grants", o["grants"]),
        ("--compat", o["compat"]),
        ("--replay", o["replay"]),
    ):
        if o["on_robots"] is not None and given:
            raise CommandLineError(f"--on-robots does not go together with {option}")

    if o["on_robots"] is not None:
        from botyard.formats.models import find_robot

        # Only to report a wrong name now: the run itself finds the model again.
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

    _check_chart("--gantt", o["gantt"])


def _check_chart(option: str, path: Path | None) -> None:
    """Check that the suffix of a chart file is supported."""
    from botyard.traffic.gantt import FORMATS

    if path is not None and path.suffix.lower() not in FORMATS:
        raise CommandLineError(
            f"{option}: {path}: expected one of the suffixes {', '.join(FORMATS)}"
        )


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
    # Before a supervisor is looked up: over ROS, the node takes its place.
    if o["ros1"] or o["ros_master"] or o["ros2"]:
        from botyard.cli.trafficlive import run_over_ros

        return run_over_ros(task, script, _made_rules(o), o)

    supervisor = find_supervisor(
        o["supervisor"]
        or ("none" if o["compat"] or o["grants"] is not None else "bankers")
    )
    with _progress(task.name, len(task)) as progress:
        if o["on_robots"] is not None:
            from botyard.sim.simulation import Simulation
            from botyard.traffic.on_robots import RobotTraffic

            sim = Simulation(seed=o["seed"])
            real = RobotTraffic(
                task, supervisor, sim, model=o["on_robots"], knows=o["knows"]
            )
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
        return Traffic(task, supervisor, _made_rules(o), grants=times).run(progress)


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


def _print_outcome(out: Outcome) -> None:
    """Print the outcome and the figures of a run."""
    click.echo(out.describe())
    m = out.metrics
    click.echo(
        f"{m['finished']} of {m['robots']} robots finished, "
        f"{m['waiting_time_s']:.1f} s waited in {m['stops']} stops, "
        f"{m['grants']} grants, {m['events']} events"
    )
    if out.decisions.count:
        d = out.decisions
        click.echo(
            f"the supervisor decided {d.count} times, in {1e6 * d.mean:.0f} µs "
            f"on average, {1e6 * d.longest:.0f} µs at most"
        )

    # A deadlock may involve hundreds of robots; the first ones show the cycle.
    for i, (sector, others) in list(out.waiting.items())[:20]:
        who = (
            f"robot{'s' if len(others) > 1 else ''} {', '.join(map(str, others))}"
            if others
            else "a permission"
        )
        click.echo(f"robot {i} waits before sector {sector} for {who}")

    if len(out.waiting) > 20:
        click.echo(f"… and {len(out.waiting) - 20} more")


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV text."""
    text = io.StringIO()
    if rows:
        # csv ends lines with CRLF by default, which shows as a change in version
        # control.
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    return text.getvalue()


def _result_text(out: Outcome) -> str:
    """Return the contents of a result file."""
    return (
        # The marker comes first, so that it is found in the first bytes of a file of
        # any length.
        json.dumps({"generator": MARK, **out.to_json()}, separators=(",", ":")) + "\n"
    )


def _write(path: Path, text: str, force: bool, begins: Beginnings = ()) -> None:
    """Write a text file; report errors of the system as WorldError."""
    try:
        write_text(path, text, force=force, begins=begins)
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None


@command.command("vda5050")
@click.option(
    "--broker",
    default="localhost:1883",
    show_default=True,
    metavar="HOST[:PORT]",
    help="MQTT broker.",
)
@click.option(
    "--agvs",
    type=click.IntRange(1, 1000),
    default=2,
    show_default=True,
    help="How many.",
)
@click.option(
    "--manufacturer",
    default="botyard",
    show_default=True,
    help="Manufacturer in topics such as uagv/v2/MANUFACTURER/agv0/order.",
)
@click.option(
    "--radius",
    type=click.FloatRange(0.0, min_open=True),
    default=0.5,
    show_default=True,
    help="Of the disks, m.",
)
@click.option(
    "--velocity",
    type=click.FloatRange(0.0, min_open=True),
    default=0.65,
    show_default=True,
    help="Maximum speed, m/s.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.0, 1000.0, min_open=True),
    default=1.0,
    show_default=True,
    help="Speed as a multiple of real time.",
)
@click.option(
    "--result",
    type=FILE,
    metavar="FILE",
    help="Write the result, with all events, as JSON.",
)
@FORCE
def vda5050(
    broker: str,
    agvs: int,
    manufacturer: str,
    radius: float,
    velocity: float,
    speed: float,
    result: Path | None,
    force: bool,
) -> int:
    """Simulate AGVs of VDA 5050 (extra vda5050).

    Each AGV waits for an order and drives as far as its base is released.
    """
    require("vda5050", what="traffic vda5050")
    check_can_be_written("--result", result, force=force)
    from botyard.cli.trafficlive import run_over_mqtt

    try:
        # 1883 is the registered port of MQTT without TLS.
        host, port = parse_address(broker, host="localhost", port=1883)
    except CommandLineError as error:
        raise CommandLineError(f"--broker: {error}") from None
    # These characters separate levels of topics, or are wildcards.
    if not is_name(manufacturer) or set(manufacturer) & set("/+#"):
        raise CommandLineError(
            "--manufacturer: expected a name of 1 to 64 characters without /, + and #, "
            f'found "{shown(manufacturer, 100)}"'
        )

    out = run_over_mqtt(host, port, agvs, manufacturer, radius, velocity, speed)
    if out is None:
        return 0
    _print_outcome(out)
    if result is not None:
        _write(result, _result_text(out), force)
    return out.ending.exit_status


@command.command("gantt")
@click.argument("result", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Picture: .svg, .html, .png or .pdf. [default: RESULT.svg]",
)
@max_read_option
@FORCE
def gantt(
    result: Path, output: Path | None, max_read: tuple[str, ...], force: bool
) -> None:
    """Draw the RESULT of a run (--result) as a Gantt chart of robots and sectors."""
    from botyard.formats.budget import Budget
    from botyard.traffic.gantt import draw, load_result

    # SVG stays sharp at any zoom, which a chart of hundreds of sectors needs.
    path = output or result.with_suffix(".svg")
    require("plots", what="traffic gantt")
    _check_chart("--output", path)
    check_can_be_written("--output", path, force=force)
    draw(load_result(result, Budget().raised(max_read)), path, overwrite=force)
    click.echo(path)


@command.command("supervisors")
def supervisors() -> None:
    """List all supervisors and the guarantee of each."""
    from botyard.traffic.supervisors.registry import all_supervisors

    print_table(
        ("supervisor", "guarantee"),
        [(name, one.guarantee) for name, one in all_supervisors()],
    )


@command.command("check")
@click.argument("task", type=FILE)
@click.option("--leaves", is_flag=True, help="Remove finished robots.")
@click.option(
    "--exhaustive/--no-exhaustive",
    default=None,
    help="Try all orders of moves. [default: if there are few]",
)
@max_read_option
def check(
    task: Path, leaves: bool, exhaustive: bool | None, max_read: tuple[str, ...]
) -> int:
    """Check whether TASK is well formed, its start is safe, and it can be solved.

    Solvability is checked only if the number of states is small enough.
    """
    from botyard.traffic.check import check as look

    loaded = _load(task, max_read)
    # The number of states grows exponentially with the robots, so the search can take
    # minutes.
    with telling(
        f"trying all orders of moves of {len(loaded)} robots; --no-exhaustive skips this"
    ):
        report = look(loaded, leaves, exhaustive)

    click.echo(
        f"{len(loaded)} robots, {loaded.n_sectors} sectors, {len(loaded.listed)} conflicts listed"
    )
    for text in report.remarks:
        click.echo(f"remark: {escaped(text)}")
    if report.stuck:
        click.echo(
            "the start is not safe: robots "
            f"{', '.join(map(str, report.stuck[:20]))} cannot finish one after another"
        )
    else:
        click.echo("the start is safe: all robots can finish one after another")

    if report.states:
        words = {
            # None means unknown: the search stopped at its limit.
            True: "can be solved",
            False: "cannot be solved in any order of moves",
            None: "has too many states to search",
        }
        click.echo(
            f"search of {report.states} states: the task {words[report.solvable]}"
        )

    # An unsafe start is no failure if the search found an order of moves. 11 is also
    # the status of a deadlock in a run.
    return 0 if not report.stuck or report.solvable else 11


@command.command("generate")
@click.argument("family")
@click.option(
    "--robots",
    "-n",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="How many.",
)
@click.option(
    "--seed",
    type=SEED,
    default=1,
    show_default=True,
    help="Seed; the same seed gives the same task.",
)
@click.option(
    "--radius",
    type=click.FloatRange(0.0, min_open=True),
    default=0.5,
    show_default=True,
    help="Of the disks, m.",
)
@click.option(
    "--cell",
    type=click.FloatRange(0.0, min_open=True),
    default=2.0,
    show_default=True,
    help="Edge of a cell, m.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="File for the task. [default: standard output]",
)
@FORCE
def make(
    family: str,
    robots: int,
    seed: int,
    radius: float,
    cell: float,
    output: Path | None,
    force: bool,
) -> None:
    """Generate a task of a FAMILY: crossings, ring, corridor, star, warehouse,
    deadlock.
    """
    import numpy as np

    from botyard.traffic.generate import generate
    from botyard.traffic.task import Vehicle

    with telling(f"generating a task for {robots} robots"):
        task = generate(
            family, robots, seed, Vehicle(ends=np.ones(1), radius=radius), cell
        )

    if output is None:
        click.echo(json.dumps(task.to_json(), separators=(",", ":")))
    else:
        task.save(output, overwrite=force)
        click.echo(
            f"{output}: {len(task)} robots, {task.n_sectors} sectors, "
            f"{len(task.listed) // 2} conflicts"
        )


@command.command("convert")
@click.argument("source", type=FILE)
@click.argument("output", type=FILE)
@click.option(
    "--scale",
    type=click.FloatRange(0.0, min_open=True),
    default=0.01,
    show_default=True,
    help="Drawings: length of one unit, m.",
)
@click.option(
    "--cell",
    type=click.FloatRange(0.0, min_open=True),
    default=2.0,
    show_default=True,
    help="Plans: edge of a cell, m.",
)
@click.option(
    "--radius",
    type=click.FloatRange(0.0, min_open=True),
    default=0.5,
    show_default=True,
    help="Of the disks, m.",
)
@click.option(
    "--longest",
    type=click.FloatRange(0.0, min_open=True),
    default=8.0,
    show_default=True,
    help="Drawings: maximum length of a sector, m.",
)
@click.option(
    "--robots",
    "-n",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Scenarios: number of robots.",
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="A,B,…",
    help="Graphs: places that a robot visits. Repeatable, one per robot.",
)
@click.option(
    "--level", metavar="NAME", help="Graphs: level to use. [default: the first]"
)
@max_read_option
@FORCE
def convert(
    source: Path,
    output: Path,
    scale: float,
    cell: float,
    radius: float,
    longest: float,
    robots: int,
    routes: tuple[str, ...],
    level: str | None,
    max_read: tuple[str, ...],
    force: bool,
) -> None:
    """Convert a drawing, a navigation graph or a multi-agent plan to a task.

    Reads drawings (.svg: each line is a path), navigation graphs of Open-RMF (.yaml,
    with --route), and plans of multi-agent path finding (.txt, .json).
    """
    import numpy as np

    from botyard.formats.budget import Budget
    from botyard.traffic.task import Vehicle

    budget, vehicle = Budget().raised(max_read), Vehicle(ends=np.ones(1), radius=radius)
    drawing, graph = (
        source.suffix.lower() == ".svg",
        source.suffix.lower() in (".yaml", ".yml"),
    )
    # Plans are plain text, so only drawings and graphs need the extra.
    require(*(("traffic",) if drawing or graph else ()), what=str(source))
    check_can_be_written("OUTPUT", output, force=force)
    if drawing:
        from botyard.traffic.geometry import paths_of_svg, task_of_paths

        task = task_of_paths(
            paths_of_svg(source, scale, budget),
            vehicle,
            longest=longest,
            name=str(source),
        )
    elif source.suffix.lower() == ".scen":
        from botyard.traffic.generate import task_of_routes
        from botyard.traffic.plans import read_scenario

        task = task_of_routes(
            read_scenario(source, robots, budget=budget), str(source), vehicle, cell
        )
    elif graph:
        from botyard.traffic.graphs import read_graph, task_of_graph

        if not routes:
            raise CommandLineError(
                "--route A,B: expected the places that each robot visits, found none"
            )

        # Graphs name places, not robots, so each --route makes one robot.
        stops = [[place.strip() for place in route.split(",")] for route in routes]
        task = task_of_graph(
            read_graph(source, level, budget),
            stops,
            vehicle,
            longest=longest,
            name=str(source),
        )
    else:
        from botyard.traffic.plans import read_plan, task_of_plan

        task = task_of_plan(read_plan(source, budget), str(source), vehicle, cell)

    task.save(output, overwrite=force)
    click.echo(
        f"{output}: {len(task)} robots, {task.n_sectors} sectors, {len(task.listed) // 2} conflicts"
    )


@command.command("compare")
@click.argument("tasks", nargs=-1, type=FILE)
@click.option(
    "--supervisors",
    "-s",
    default="fcfs,priority,chained,bankers,order",
    show_default=True,
    metavar="NAMES",
    help="With commas.",
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
@_rules
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
    _compile()
    with _progress("runs", len(cases)) as progress:
        # Runs finish in any order, so the bar counts them instead of showing their
        # index.
        done = iter(range(1, len(cases) + 1))
        rows = carry_out(
            cases,
            _made_rules(o),
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
        _write(o["csv_file"], _csv(flat), o["force"], TABLES_BEGIN)
    if o["json_file"] is not None:
        _write(
            o["json_file"], json.dumps(flat, indent=1) + "\n", o["force"], TABLES_BEGIN
        )
