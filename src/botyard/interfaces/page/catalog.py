"""Catalogue of robot models and maps for pages, cached for a short time."""

from __future__ import annotations

import time as wall
from concurrent.futures import Future
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from botyard.control.parts import Background, Maps, Portions
from botyard.errors import BotyardError
from botyard.formats.models import find_robot, model_names
from botyard.geometry import transform_point
from botyard.interfaces.page.viewsource import model_shape
from botyard.model.world import World
from botyard.names import shown
from botyard.protocols.webgui import pushes

CATALOG_AGE: Final = 2.0
"""Time for which the catalogue of models and maps is cached, s."""
MAX_PROBLEM: Final = 300
"""Longest error text of a model in the catalogue, characters."""
PICTURE_UNITS: Final = 1000
"""Number of units that the longer edge of a map has in its picture; coordinates are whole units."""
MAX_STROKES: Final = 2000
"""Largest number of walls, and of points, in a picture of a map."""
MAX_BOXES: Final = 300
"""Largest number of boxes in a picture of a map."""


class Catalog:
    """Catalogue of the robot models and maps that a page can choose.

    Parameters
    ----------
    background : Background
        Runs the work in small slices between the steps.
    maps : Maps
        The maps on this machine.
    """

    def __init__(self, background: Background, maps: Maps) -> None:
        self._background, self._maps = background, maps
        self._work: Future[msgspec.Raw] | None = None
        self._made = 0.0

    def portions(self) -> Portions[msgspec.Raw]:
        """Return the catalogue of models and maps as JSON, cached for `CATALOG_AGE`.

        The catalogue is made in small slices between the steps, because it takes the
        reading of many files and folders.

        Returns
        -------
        portions of Raw
            Generator that yields the work to wait for, and returns the JSON text.
        """
        now = wall.monotonic()
        made = self._work
        # Pages that request the catalogue while it is being made share it.
        if made is None or (made.done() and now > self._made + CATALOG_AGE):
            self._made = now
            made = self._work = self._background.portions(
                self._make(), "the list of models and maps"
            )

        yield made
        return made.result()

    def _make(self) -> Portions[msgspec.Raw]:
        models = []
        for name in model_names():
            # The first time each model is read from its file, which takes about 1 ms:
            # one slice for each model.
            yield None
            try:
                models.append(model_shape(find_robot(name), name))
            except BotyardError as error:
                models.append(pushes.broken_model(name, shown(error, MAX_PROBLEM)))

        found = self._maps.run_in_thread(self._maps.names)
        yield found
        maps = [
            pushes.MapFile(name=name, shipped=shipped)
            for name, shipped in found.result()
        ]
        return msgspec.Raw(
            pushes.encoder.encode(pushes.CatalogResult(models=models, maps=maps))
        )


def picture_of(world: World, name: str) -> pushes.MapPicture:
    """Return a small picture of a world for the page.

    Parameters
    ----------
    world : World
        The world.
    name : str
        Name by which a page has asked for it.
    """
    scene = world.scene
    bounds = scene.bounds
    walls: list[int] = []
    points: list[int] = []
    if bounds is not None:
        x0, y0, x1, y1 = bounds
        edge = max(x1 - x0, y1 - y0, 1e-9)
        corner, scale = np.array([x0, y0]), PICTURE_UNITS / edge

        def thinned(rows: NDArray[np.float64], columns: int) -> list[int]:
            # Keep the longest walls, which show a map best, or every n-th point.
            if columns == 4 and len(rows) > MAX_STROKES:
                length = np.abs(rows[:, 2:] - rows[:, :2]).sum(axis=1)
                rows = rows[np.argsort(-length, kind="stable")[:MAX_STROKES]]
            rows = rows[:: -(-max(len(rows), 1) // MAX_STROKES)]
            at = (rows.reshape(-1, 2) - corner) * scale
            found: list[int] = np.rint(at).astype(int).ravel().tolist()
            return found

        boxes = [
            [*placed[k], *placed[(k + 1) % len(placed)]]
            for box in scene.boxes[:MAX_BOXES]
            for part in box.outlines
            for placed in [[transform_point(box.pose, x, y) for x, y in part]]
            for k in range(len(placed))
        ]
        walls = thinned(np.concatenate([scene.segments, np.reshape(boxes, (-1, 4))]), 4)
        points = thinned(scene.points, 2)
    return pushes.MapPicture(
        name=shown(name, 200),
        bounds=bounds,
        robots=len(world.robots),
        goals=len(scene.places),
        walls=walls,
        points=points,
    )


__all__ = ["Catalog", "picture_of"]
