"""``botyard models``: list the robot models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click

from botyard.cli.listing import FORCE, file_stem, print_table, write_pictures
from botyard.cli.options import max_read_option
from botyard.errors import BotyardError
from botyard.formats import arparams
from botyard.formats.budget import Budget
from botyard.formats.models import (
    find_robot,
    is_model_file,
    model_names,
    read_models,
    user_models,
)
from botyard.model.robot import RobotSpec
from botyard.names import escaped, shown
from botyard.processes.safefile import write_text


@click.command("models")
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
def command(
    names: tuple[str, ...],
    png: Path | None,
    parameter_files: Path | None,
    urdf: Path | None,
    max_read: tuple[str, ...],
    force: bool,
) -> None:
    """List robot models (all, NAMED ones, or models in files) with size, speed and
    sensors.

    Files may be .p, .toml or .inc.
    """
    budget = Budget().raised(max_read)
    specs = (
        [spec for n in names for spec in _models_of(n, budget)]
        if names
        else _all_models()
    )
    titles = (
        "model",
        "size m",
        "top speed",
        "sonar",
        "lasers",
        "client sees",
        "description",
    )
    print_table(titles, map(_row, specs))
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
    """Write ARIA's parameter files, named by the subclass that clients look up."""
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
    """Return the model of a name, or all models of a file."""
    if not is_model_file(name):
        return (find_robot(name),)
    found = read_models(name, budget)
    for remark in found.remarks:
        click.echo(f"botyard: warning: {escaped(remark)}", err=True)
    return found.robots


def _all_models() -> list[RobotSpec]:
    """Return all readable models; print warnings about the others."""
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
    """Return the row of a model in the list."""
    xs, ys = zip(*s.outline, strict=True)
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
