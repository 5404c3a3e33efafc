"""``botyard models``: list the robot models, and import models of ROS."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from botyard.cli.listing import FORCE, file_stem, print_table, write_pictures
from botyard.cli.options import max_read_option
from botyard.errors import BotyardError, CommandLineError
from botyard.formats import arparams
from botyard.formats.budget import Budget
from botyard.formats.models import (
    XACRO,
    find_robot,
    is_model_file,
    model_names,
    read_models,
    user_models,
)
from botyard.model.robot import RobotSpec
from botyard.names import escaped, shown
from botyard.processes.safefile import MARK, write_text

DIGITS: Final = 9
"""Number of significant digits in robot files."""
TITLES: Final = (
    "model",
    "size m",
    "top speed",
    "sonar",
    "lasers",
    "client sees",
    "description",
)
"""Titles of the table of models."""


class _Models(click.Group):
    """Group of model commands, whose default command is ``list``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``list`` if the first word is not a subcommand."""
        # Models need no subcommand, because a name is what users try first.
        if not args or (
            args[0] not in self.commands and args[0] not in ("--help", "-h", "-help")
        ):
            args = ["list", *args]

        return super().parse_args(ctx, args)


@click.group("models", cls=_Models)
def command() -> None:
    """List the robot models or NAMED ones; import a model from a ROS description.

    Without a subcommand, "list" is meant.
    """


@command.command("list")
@click.option(
    "--png",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a picture of each model to this folder.",
)
@click.option(
    "--parameter-files",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write ARIA's parameter file (.p) of each model to this folder; ARIA "
    "clients need it for new subclasses.",
)
@click.option(
    "--urdf",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a ROS description (URDF) of each model to this folder: body, "
    "wheels, sensors and gripper.",
)
@max_read_option
@FORCE
@click.argument("names", nargs=-1)
def list_models(
    names: tuple[str, ...],
    png: Path | None,
    parameter_files: Path | None,
    urdf: Path | None,
    max_read: tuple[str, ...],
    force: bool,
) -> None:
    """List robot models (all, NAMED ones, or models in files) with size, speed and
    sensors.

    Files may be .p, .toml, .urdf or .inc.
    """
    budget = Budget().raised(max_read)
    specs = (
        [spec for n in names for spec in _models_of(n, budget)]
        if names
        else _all_models()
    )
    print_table(TITLES, map(_row, specs))
    if png is not None:
        from botyard.pictures.draw import render_robot

        write_pictures(png, ((s.name, render_robot(s)) for s in specs), force=force)

    # Models without a drive, such as obstacles, have no client and no wheels to
    # describe.
    driven = [s for s in specs if s.drive]
    if urdf is not None:
        _write_urdf(urdf, driven, force)
    if parameter_files is not None:
        _write_parameter_files(parameter_files, driven, force)


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Write the model to this file; without it, to NAME.toml in this folder.",
)
@click.option(
    "--controllers",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.yaml",
    help="Take drive and speeds from these parameters of ros2_control.",
)
@click.option(
    "--height",
    type=click.FloatRange(0.0, 1000.0, min_open=True),
    metavar="M",
    help="Take shapes up to this height above the floor as the body, m; without it, up "
    "to the plane of the highest lidar.",
)
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="NAME:=VALUE",
    help="Argument of a xacro file; repeatable.",
)
@max_read_option
@FORCE
def import_model(
    file: Path,
    output: Path | None,
    controllers: Path | None,
    height: float | None,
    arguments: tuple[str, ...],
    max_read: tuple[str, ...],
    force: bool,
) -> None:
    """Import the robot model of a ROS description (URDF or xacro) as a robot file.

    The command lists line by line the parts that a plane cannot hold. A xacro file is a
    program: import only those that you trust.
    """
    from botyard.formats.importers.urdf import read_urdf
    from botyard.model.robotfile import to_table
    from botyard.model.robottext import toml_text

    budget = Budget().raised(max_read)
    data = None
    if file.suffix.lower() == XACRO:
        from botyard.cli.xacrofile import expanded

        data = expanded(file, arguments, budget)
    elif arguments:
        raise CommandLineError(f"--argument needs a {XACRO} file, found {file}")
    found = read_urdf(file, budget, data=data, controllers=controllers, height=height)
    for remark in found.remarks:
        click.echo(f"botyard: warning: {escaped(remark)}", err=True)
    spec = found.spec
    path = Path(f"{file_stem(spec.name)}.toml") if output is None else output
    if path.suffix.lower() != ".toml":
        raise CommandLineError(f"--output: expected a .toml file, found {path}")
    # The name of a robot file is the name of its model.
    table = to_table(replace(spec, name=path.stem))
    write_text(path, toml_text(table, (MARK,), DIGITS), force=force)
    print_table(TITLES, [_row(spec)])
    # A plain name would be the name of a model.
    shell = shlex.quote(str(path) if path.parent != Path() else f"./{path}")
    click.echo(f"written: {path}; simulate it with: botyard -r {shell}")


def _write_urdf(folder: Path, specs: Sequence[RobotSpec], force: bool) -> None:
    """Write URDF files with the frame names of Nav2's bring-up."""
    from botyard.formats.urdf import to_urdf
    from botyard.protocols.ros_messages.naming import PROFILES

    # Nav2's names are what robot_state_publisher and its launch files expect without
    # remapping.
    profile = PROFILES["nav2"]
    folder.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        path = folder / f"{file_stem(spec.name)}.urdf"
        write_text(
            path,
            to_urdf(spec, spec.name, profile=profile.name, footprint=profile.footprint),
            force=force,
        )
        click.echo(f"written: {path}")


def _write_parameter_files(
    folder: Path, specs: Sequence[RobotSpec], force: bool
) -> None:
    """Write ARIA's parameter files; each file has the name that clients look up."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[Path, str] = {}
    for spec in specs:
        # ARIA looks for the subclass in lower case.
        path = folder / f"{file_stem(spec.pioneer.subclass.lower())}.p"
        if path in written:
            text = (
                f"{shown(spec.name)}: clients read {path.name}, which already "
                f"describes {written[path]}; that file is kept"
            )
            click.echo(f"botyard: warning: {text}", err=True)
            continue

        written[path] = shown(spec.name)
        write_text(path, arparams.from_robot(spec), force=force)
        click.echo(f"written: {path}")


def _models_of(name: str, budget: Budget) -> Sequence[RobotSpec]:
    """Return the robot model with a name, or all models in a file."""
    if not is_model_file(name):
        return (find_robot(name),)
    found = read_models(name, budget)
    for remark in found.remarks:
        click.echo(f"botyard: warning: {escaped(remark)}", err=True)
    return found.robots


def _all_models() -> list[RobotSpec]:
    """Return all robot models that can be read; print a warning for each other one."""
    specs = []
    for problem in user_models().problems:
        click.echo(f"botyard: warning: {escaped(str(problem))}", err=True)
    for name in model_names():
        try:
            specs.append(find_robot(name))
        # One broken file of the user must not hide all other models.
        except BotyardError as error:
            click.echo(f"botyard: warning: {escaped(str(error))}", err=True)

    return specs


def _row(s: RobotSpec) -> tuple[str, ...]:
    """Return the table row that describes a robot model."""
    corners = [corner for part in (s.outline, *s.parts) for corner in part]
    xs, ys = zip(*corners, strict=True)
    top = s.limits.max_speed
    return (
        s.name,
        f"{max(xs) - min(xs):.2f} × {max(ys) - min(ys):.2f}",
        f"{top.x:g} m/s, {math.degrees(top.a):.0f}°/s" if s.drive else "–",
        str(len(s.sonar.transducers)) if s.sonar else "–",
        ", ".join(laser.type_name for laser in s.lasers) or "–",
        f"{s.pioneer.class_name} {s.pioneer.subclass}" if s.drive else "–",
        shown(s.description, 200),
    )
