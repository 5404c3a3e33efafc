"""``botyard traffic``: robots on sector paths under a supervisor.

Subcommands run, check, generate, convert and compare tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.listing import FORCE, print_table
from botyard.cli.options import max_read_option, parse_address
from botyard.cli.runoptions import with_some_options
from botyard.cli.trafficcompare import compare
from botyard.cli.trafficinput import PAGE_OPTIONS, length_option
from botyard.cli.trafficoutput import (
    FILE,
    check_chart,
    print_outcome,
    result_text,
    write_file,
)
from botyard.cli.trafficrun import run
from botyard.cli.traffictasks import check, convert, make
from botyard.errors import CommandLineError
from botyard.names import is_name, shown


@click.group("traffic")
def command() -> None:
    """Run robots on paths divided into sectors, under a supervisor that grants
    permissions.

    Reads the tasks of the MMRS simulator, and others.
    """


@click.command("vda5050")
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
    help="Number of AGVs.",
)
@click.option(
    "--manufacturer",
    default="botyard",
    show_default=True,
    help="Manufacturer in topics such as uagv/v2/MANUFACTURER/agv0/order.",
)
@length_option("--radius", 0.5, "Radius of the AGVs (disks), m.")
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
    "--page",
    is_flag=True,
    help="Show orders and AGVs on the page; Ctrl-C ends it.",
)
@with_some_options(*PAGE_OPTIONS)
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
    **o: Any,
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
    # In topics of MQTT, / separates levels, and + and # are wildcards.
    if not is_name(manufacturer) or set(manufacturer) & set("/+#"):
        raise CommandLineError(
            "--manufacturer: expected a name of 1 to 64 characters without /, + and #, "
            f'found "{shown(manufacturer, 100)}"'
        )

    out = run_over_mqtt(host, port, agvs, manufacturer, radius, velocity, speed, o)
    if out is None:
        return 0
    print_outcome(out)
    if result is not None:
        write_file(result, result_text(out), force)
    return out.ending.exit_status


@click.command("gantt")
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
    check_chart("--output", path)
    check_can_be_written("--output", path, force=force)
    draw(load_result(result, Budget().raised(max_read)), path, overwrite=force)
    click.echo(path)


@click.command("supervisors")
def supervisors() -> None:
    """List all supervisors and the guarantee of each."""
    from botyard.traffic.supervisors.registry import all_supervisors

    print_table(
        ("supervisor", "guarantee"),
        [(name, one.guarantee) for name, one in all_supervisors()],
    )


for subcommand in (check, compare, convert, gantt, make, run, supervisors, vda5050):
    command.add_command(subcommand)
