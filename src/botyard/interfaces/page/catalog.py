"""Catalogue of models and maps for pages, cached for a short time."""

from __future__ import annotations

import time as wall
from concurrent.futures import Future
from typing import Final

import msgspec

from botyard.control.parts import Background, Maps, Portions
from botyard.errors import BotyardError
from botyard.formats.models import find_robot, model_names
from botyard.interfaces.page.viewsource import model_shape
from botyard.names import shown
from botyard.protocols.webgui import pushes

CATALOG_AGE: Final = 2.0
"""Time for which the catalogue of models and maps is cached, s."""
MAX_PROBLEM: Final = 300
"""Limit of the error text of a model, characters."""


class Catalog:
    """Catalogue of models and maps.

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
        """Return the catalogue of models and maps as JSON, cached for a while.

        It is made in small slices between the steps, because it reads files and
        folders.
        """
        now = wall.monotonic()
        made = self._work
        # A catalogue that is still in work is shared by all pages that ask for it.
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
            # one slice for each.
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


__all__ = ["Catalog"]
