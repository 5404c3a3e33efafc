"""Implementation of `Simulation.render`, and of the pictures of objects in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from PIL import Image

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.model import robot as robots
from botyard.model import scene as scenes
from botyard.pictures.draw import encoded, render_robot, render_scene, render_still
from botyard.pictures.files import save_picture
from botyard.pictures.options import PictureOptions, picture_options
from botyard.pictures.painter import Painter
from botyard.pictures.still import take
from botyard.sim import observation
from botyard.sim.simulation import Simulation

NOTEBOOK_WIDTH: Final = 800
"""Width of pictures in notebooks, pixels."""


@observation.render.implementation
def render(
    sim: Simulation,
    path: str | Path | None,
    options: Mapping[str, Any],
    overwrite: bool,
) -> Image.Image:
    """Draw a simulation, and write the picture to a file; see `Simulation.render`.

    Parameters
    ----------
    sim : Simulation
        The world. Sensors of the robots in the option `scans` measure for the picture.
    path : path-like or None
        File for the picture; None writes none.
    options : mapping of str to object
        Options of `picture_options`.
    overwrite : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    ArgumentError
        An option is invalid, or the suffix belongs to no format.
    UnknownNameError
        An option names a robot that does not exist.
    KeptFileError
        The file exists, botyard did not write it, and `overwrite` is False.
    """
    checked = picture_options(**options)
    for name in checked.named:
        if name not in sim.robots:
            raise arguments.unknown(name, sim.robots, "robot")

    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix not in Image.registered_extensions():
            raise ArgumentError(
                f'path: expected a suffix of pictures such as .png, found "{suffix}" in {path}'
            )

    painter = Painter(checked)
    if checked.trails:
        _look_back(sim, checked.trails, painter)
    still = take(sim, checked.scans)
    # Goals in the options are drawn like places of the map.
    if checked.goals:
        still = replace(
            still, scene=replace(still.scene, places=still.scene.places + checked.goals)
        )

    image = painter.draw(still)
    if path is not None:
        save_picture(image, path, force=overwrite)
    return image


def _look_back(sim: Simulation, seconds: float, painter: Painter) -> None:
    """Give a painter the recent positions of robots from the history, for their trails.

    Parameters
    ----------
    sim : Simulation
        The world.
    seconds : float
        Length of the trails, simulated s.
    painter : Painter
        Painter that draws the picture afterwards.

    Raises
    ------
    ArgumentError
        The simulation keeps no history.
    """
    if not sim.history.is_on:
        raise ArgumentError(
            "trails: expected a simulation with a history of positions, found none: call "
            "sim.history.keep() at its start"
        )

    past: Simulation | None = None
    for moment in sim.history.moments:
        if sim.time - seconds <= moment.time < sim.time:
            past = sim.history.look(moment.time, past)
            painter.see(take(past, False))


@observation.png.implementation
def png(sim: Simulation, robot: str | None) -> bytes:
    """Return a picture for notebooks; see `botyard.sim.observation.png`."""
    if robot is None:
        return encoded(render_still(take(sim), PictureOptions(size=NOTEBOOK_WIDTH)))
    return encoded(
        render_still(
            take(sim, (robot,)), PictureOptions(size=NOTEBOOK_WIDTH, follow=robot)
        )
    )


@scenes.scene_png.implementation
def scene_png(scene: scenes.Scene) -> bytes:
    """Return a picture of a scene; see `botyard.model.scene.scene_png`."""
    return encoded(render_scene(scene, size=NOTEBOOK_WIDTH))


@robots.robot_png.implementation
def robot_png(spec: robots.RobotSpec) -> bytes:
    """Return a picture of a robot model; see `botyard.model.robot.robot_png`."""
    return encoded(render_robot(spec))


__all__ = ["NOTEBOOK_WIDTH", "png", "render", "robot_png", "scene_png"]
