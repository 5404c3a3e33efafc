"""``botyard models``: the robots that can be simulated."""

from __future__ import annotations

import math
from pathlib import Path

import click

from botyard.cli.listing import print_table, write_pictures
from botyard.model.library import load_robot, robot_names
from botyard.model.robot import RobotSpec


@click.command("models")
@click.option(
    "--png",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a picture of each model there.",
)
@click.argument("names", nargs=-1)
def command(names: tuple[str, ...], png: Path | None) -> None:
    """List the robot models (or those NAMED), with their size, speed and sensors."""
    specs = [load_robot(n) for n in names or robot_names()]
    titles = ("model", "size m", "top speed", "sonar", "lasers", "client sees", "description")
    print_table(titles, map(_row, specs))
    if png is not None:
        from botyard.ui.render import render_robot

        write_pictures(png, ((s.name, render_robot(s)) for s in specs))


def _row(s: RobotSpec) -> tuple[str, ...]:
    xs, ys = zip(*s.outline, strict=True)
    top = s.limits.max_speed
    return (
        f"[bold]{s.name}[/bold]",
        f"{max(xs) - min(xs):.2f} × {max(ys) - min(ys):.2f}",
        f"{top.x:g} m/s, {math.degrees(top.a):.0f}°/s" if s.drive else "–",
        str(len(s.sonar.transducers)) if s.sonar else "–",
        ", ".join(laser.type_name for laser in s.lasers) or "–",
        f"{s.pioneer.class_name} {s.pioneer.subclass}" if s.drive else "–",
        s.description,
    )
