"""Implementation of `Simulation.render`."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from botyard.errors import ArgumentError
from botyard.pictures.draw import render_still
from botyard.pictures.files import save_picture
from botyard.pictures.still import take
from botyard.sim import simulation


@simulation.render.implementation
def render(sim: simulation.Simulation, path: str | Path | None, width: int, overwrite: bool) -> Image.Image:
    """Draw a simulation, and write the picture to a file; see `Simulation.render`."""
    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix not in Image.registered_extensions():
            raise ArgumentError(f'path: expected a suffix of pictures such as .png, found "{suffix}" in {path}')
    image = render_still(take(sim), width=width)
    if path is not None:
        save_picture(image, path, force=overwrite)
    return image


__all__ = ["render"]
