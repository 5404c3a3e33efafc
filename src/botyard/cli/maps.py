"""``botyard maps``: the maps that come with botyard, or what is in a map file."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from botyard.formats.registry import builtin_maps, load_scene


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
    table = Table(box=None, pad_edge=False)
    for title in ("map", "size m", "lines", "points", "boxes", "goals and docks", "georeference"):
        table.add_column(title, overflow="fold")
    scenes = [
        load_scene(f, warn=lambda text: click.echo(f"warning: {text}", err=True)) for f in files or builtin_maps()
    ]
    for scene in scenes:
        b = scene.bounds
        geo = scene.georeference
        table.add_row(
            f"[bold]{scene.name}[/bold]",
            f"{b[2] - b[0]:.1f} × {b[3] - b[1]:.1f}" if b else "–",
            str(len(scene.segments)),
            str(len(scene.points)),
            str(len(scene.boxes)),
            ", ".join(p.name or p.kind for p in scene.places) or "–",
            f"{geo.latitude:.5f}° {geo.longitude:.5f}°" if geo else "–",
        )
    console = Console(soft_wrap=False)
    if not console.is_terminal:
        console.width = 160
    console.print(table)
    if png is not None:
        from botyard.ui.render import render_scene

        png.mkdir(parents=True, exist_ok=True)
        for scene in scenes:
            path = png / f"{scene.name}.png"
            render_scene(scene).save(path)
            click.echo(path)
