"""``botyard scenario``: check scenario and world files, print the schema or an example."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING

import click

from botyard.cli.options import max_read_option
from botyard.errorpages import with_page
from botyard.errors import BotyardError
from botyard.names import escaped, shown
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from botyard.formats.models import FileModels

EXAMPLE = (resources.files("botyard") / "maps" / "visitors.yaml").read_text("utf-8")
"""Shipped scenario with explanatory comments."""


@click.group("scenario")
def command() -> None:
    """Check and describe scenario files: the contents of a world and its simulation
    settings.
    """


@command.command("check")
@max_read_option
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def check(files: tuple[str, ...], max_read: tuple[str, ...]) -> int:
    """Check scenarios, world files, maps or model files (.inc, .p, .toml), and report
    mistakes.
    """
    from botyard.app.config import with_world_options
    from botyard.app.options import RunOptions
    from botyard.cli.run import command as run_command
    from botyard.cli.runoptions import is_given
    from botyard.controllers.registry import is_controller
    from botyard.formats.base import Options
    from botyard.formats.budget import Budget
    from botyard.formats.models import find_robot, is_model_file, read_models
    from botyard.formats.registry import load_world
    from botyard.servers.pioneer.factory import check_factory_model
    from botyard.sim.simulation import Simulation
    from botyard.sim.worldfiles import populate

    status = 0
    budget = Budget().raised(max_read)
    for name in files:
        remarks: list[str] = []
        try:
            with telling(f"reading {name}"):
                if is_model_file(name):
                    _say(name, read_models(name, budget))
                    continue

                world = load_world(
                    name,
                    Options(
                        warn=remarks.append, is_program=is_controller, budget=budget
                    ),
                )
                # The file's options are checked like options of ``botyard run``.
                context = run_command.make_context("run", ["--nomap"])
                asked = with_world_options(
                    RunOptions(**context.params),
                    world.options,
                    world.scene.source,
                    partial(is_given, context),
                )
                for model in asked.factories:
                    check_factory_model(find_robot(model, budget))
                sim = Simulation(world.scene)
                populate(sim, world)
        except BotyardError as error:
            click.echo(f"error: {with_page(error, str(error))}", err=True)
            status = status or int(error.exit_code)
            continue

        for text in remarks:
            click.echo(f"note: {escaped(text)}")
        robots = [p for p in world.robots if p.served]
        scene = world.scene
        moving = len(world.robots) - len(robots)
        b = scene.bounds
        size = f"{b[2] - b[0]:.1f} m × {b[3] - b[1]:.1f} m" if b else "empty"
        click.echo(
            f"{escaped(name)}: {_verdict(remarks)}. {size}, "
            f"walls: {len(scene.segments)}, points: {len(scene.points)}, boxes: "
            f"{len(scene.boxes)}, moving obstacles: {moving}, robots: {len(robots)}"
        )

    return status


def _verdict(remarks: Sequence[str]) -> str:
    """Return the summary of a file that can be used; it is "good" only without any note."""
    if not remarks:
        return "good"
    return (
        "can be used, with a note"
        if len(remarks) == 1
        else f"can be used, with {len(remarks)} notes"
    )


def _say(name: str, found: FileModels) -> None:
    """Print a summary of a model file's contents."""
    for text in found.remarks:
        click.echo(f"note: {escaped(text)}")
    names = ", ".join(shown(robot.name) for robot in found.robots)
    rest = f", {len(found.others)} other definitions" if found.others else ""
    click.echo(
        f"{escaped(name)}: {_verdict(found.remarks)}. {len(found.robots)} "
        f"models{f': {names}' if names else ''}{rest}"
    )


@command.command("schema")
def schema() -> int:
    """Print the JSON schema of scenario files, for editors."""
    from botyard.formats.scenariokeys import schema as make

    click.echo(json.dumps(make(), indent=2, ensure_ascii=False))
    return 0


@command.command("example")
def example() -> int:
    """Print an example scenario as a starting point."""
    click.echo(EXAMPLE, nl=False)
    return 0
