"""``botyard traffic check``, ``generate`` and ``convert``: tasks."""

from __future__ import annotations

import json
from pathlib import Path

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.listing import FORCE
from botyard.cli.options import SEED, max_read_option
from botyard.cli.trafficinput import length_option, read_task
from botyard.cli.trafficoutput import (
    FILE,
)
from botyard.errors import CommandLineError
from botyard.names import escaped
from botyard.processes.slow_notice import telling


@click.command("check")
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

    loaded = read_task(task, max_read)
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


@click.command("generate")
@click.argument("family")
@click.option(
    "--robots",
    "-n",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="Number of robots.",
)
@click.option(
    "--seed",
    type=SEED,
    default=1,
    show_default=True,
    help="Seed; the same seed gives the same task.",
)
@length_option("--radius", 0.5, "Radius of the robots (disks), m.")
@length_option("--cell", 2.0, "Edge of a cell of the floor plan, m.")
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


@click.command("convert")
@click.argument("source", type=FILE)
@click.argument("output", type=FILE)
@length_option("--scale", 0.01, "Drawings: length of one unit, m.")
@length_option("--cell", 2.0, "Plans: edge of a cell, m.")
@length_option("--radius", 0.5, "Radius of the robots (disks), m.")
@length_option("--longest", 8.0, "Drawings: maximum length of a sector, m.")
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
