"""``botyard maps``: the maps that come with botyard, or what is in a map file."""

from __future__ import annotations

from pathlib import Path

import click

from botyard.cli.listing import print_table, write_pictures
from botyard.formats.registry import builtin_maps, load_scene
from botyard.model.scene import Scene


@click.command("maps")
@click.option(
    "--png",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a picture of each map there.",
)
@click.argument("files", nargs=-1)
def command(files: tuple[str, ...], png: Path | None) -> None:
    """List the shipped maps (or the given FILES) and what is in them."""
    scenes = [
        load_scene(f, warn=lambda text: click.echo(f"warning: {text}", err=True)) for f in files or builtin_maps()
    ]
    titles = ("map", "size m", "lines", "points", "boxes", "goals and docks", "georeference")
    print_table(titles, map(_row, scenes))
    if png is not None:
        from botyard.ui.render import render_scene

        write_pictures(png, ((scene.name, render_scene(scene)) for scene in scenes))


def _row(scene: Scene) -> tuple[str, ...]:
    b, geo = scene.bounds, scene.georeference
    return (
        f"[bold]{scene.name}[/bold]",
        f"{b[2] - b[0]:.1f} × {b[3] - b[1]:.1f}" if b else "–",
        str(len(scene.segments)),
        str(len(scene.points)),
        str(len(scene.boxes)),
        ", ".join(p.name or p.kind for p in scene.places) or "–",
        f"{geo.latitude:.5f}° {geo.longitude:.5f}°" if geo else "–",
    )
