"""``botyard maps``: list maps and their contents, and generate maps."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.convert import kind_of, write_scene
from botyard.cli.listing import FORCE, print_table, write_pictures
from botyard.cli.options import max_read_option
from botyard.formats.budget import OPTION, Budget
from botyard.formats.mapsearch import builtin_maps
from botyard.formats.registry import load_scene
from botyard.model.mapgenerators import GENERATORS
from botyard.model.scene import Scene
from botyard.names import escaped, shown
from botyard.processes.slow_notice import telling


class _Maps(click.Group):
    """Group of map commands, whose default command is ``list``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``list`` if the first word is not a subcommand."""
        # Files need no subcommand, because a file name is what users try first.
        if not args or (
            args[0] not in self.commands and args[0] not in ("--help", "-h", "-help")
        ):
            args = ["list", *args]

        return super().parse_args(ctx, args)


@click.group("maps", cls=_Maps)
def command() -> None:
    """List the shipped maps or FILES; generate maps of any size."""


@command.command("list")
@click.option(
    "--png",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a picture of each map to this folder.",
)
@max_read_option
@FORCE
@click.argument("files", nargs=-1)
def list_maps(
    files: tuple[str, ...], png: Path | None, max_read: tuple[str, ...], force: bool
) -> None:
    """List the shipped maps, or FILES of any format, with their contents."""
    require(what="maps", also=files)
    budget = Budget().raised(max_read)
    scenes = []
    for file in files or builtin_maps():
        with telling(f"reading {file}"):
            scenes.append(
                load_scene(
                    file,
                    warn=lambda text: click.echo(f"warning: {escaped(text)}", err=True),
                    budget=budget,
                )
            )

    titles = (
        "map",
        "size m",
        "lines",
        "points",
        "boxes",
        "goals and docks",
        "georeference",
    )
    print_table(titles, map(_row, scenes))
    if png is not None:
        from botyard.pictures.draw import render_scene

        with telling(f"writing pictures to {png}"):
            write_pictures(
                png,
                ((scene.name, render_scene(scene)) for scene in scenes),
                force=force,
            )


def _row(scene: Scene) -> tuple[str, ...]:
    """Return the table row that describes a map: its name and contents."""
    b, geo = scene.bounds, scene.georeference
    return (
        shown(scene.name),
        f"{b[2] - b[0]:.1f} × {b[3] - b[1]:.1f}" if b else "–",
        str(len(scene.segments)),
        str(len(scene.points)),
        str(len(scene.boxes)),
        ", ".join(shown(p.name or p.kind) for p in scene.places) or "–",
        f"{geo.latitude:z.5f}° {geo.longitude:z.5f}°" if geo else "–",
    )


@command.group("generate")
def generate() -> None:
    """Generate a map; the same options and seed give the same map. OUTPUT is an ArMap
    (.map) or a ROS map (.yaml).
    """


def _limits_for(scene: Scene) -> str:
    """Return the ``--max-read`` options that a reader of this map needs; empty: none."""
    usual, b = Budget(), scene.bounds or (0.0, 0.0, 0.0, 0.0)
    extent = max(b[2] - b[0], b[3] - b[1], *map(abs, b))
    found = {
        # A wall has two vertices, as the reader counts them.
        "vertices": 2 * len(scene.segments) + len(scene.points),
        "extent": math.ceil(extent),
    }

    # A limit of twice the size leaves room for edits of the map.
    return " ".join(
        f"{OPTION} {name}={2 * n}"
        for name, n in found.items()
        if n > getattr(usual, name)
    )


def _generator(name: str, make: Callable[..., Scene]) -> click.Command:
    """Return the command for a map generator, with one option per parameter."""
    parameters = inspect.signature(make).parameters

    def run(target: str, force: bool, **values: Any) -> None:
        path = Path(target)
        kind_of(path)
        # Check the file before the map is generated, which can take minutes for large
        # sizes.
        check_can_be_written("OUTPUT", path, force=force)
        with telling(f"generating {path}; a large map takes a while"):
            scene = make(**values)
            notes = write_scene(scene, path, force=force)

        for note in notes:
            click.echo(f"warning: {escaped(note)}", err=True)
        b = scene.bounds
        size = f", {b[2] - b[0]:.1f} m × {b[3] - b[1]:.1f} m" if b else ""
        click.echo(f"{path} written: {len(scene.segments)} walls{size}")
        more = _limits_for(scene)
        if more:
            click.echo(
                f"warning: the map exceeds the default limits for reading; read it with {more}",
                err=True,
            )

    options: list[click.Parameter] = [
        click.Option(
            [f"--{p.replace('_', '-')}"],
            # All parameters of generators have defaults, whose types are int, float or
            # str.
            type=type(q.default),
            default=q.default,
            show_default=True,
        )
        for p, q in parameters.items()
    ]
    options.append(
        click.Option(
            ["--force"], is_flag=True, help="Replace files that botyard did not write."
        )
    )
    about = (make.__doc__ or "").strip().split("\n")[0]
    return click.Command(
        name,
        callback=run,
        params=[*options, click.Argument(["target"], metavar="OUTPUT")],
        help=about,
    )


for _name, _make in GENERATORS.items():
    generate.add_command(_generator(_name, _make))
