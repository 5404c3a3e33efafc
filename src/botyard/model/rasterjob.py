"""A worker process that rasterises a scene (see `botyard.processes.child_process`), so
that large maps do not block a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from botyard.model.raster import Raster, rasterise
from botyard.model.scene import Scene
from botyard.processes.child_process import Send, serve

MODULE: Final = "botyard.model.rasterjob"


@dataclass(frozen=True, slots=True)
class RasterRequest:
    """A request: the scene, and the edge of a cell, m."""

    scene: Scene
    resolution: float


@dataclass(frozen=True, slots=True)
class RasterAnswer:
    """A `Raster` as a message: its cells row by row, a byte each."""

    rows: int
    columns: int
    cells: bytes
    x: float
    y: float
    resolution: float

    @property
    def raster(self) -> Raster:
        """The decoded raster. ValueError: the number of cells is wrong."""
        solid = (
            np.frombuffer(self.cells, np.uint8).reshape(self.rows, self.columns) != 0
        )
        return Raster(solid, self.x, self.y, self.resolution)


TYPES: Final = {"raster": RasterAnswer}
"""Body types of the worker's messages."""


def _answer(request: RasterRequest, send: Send) -> None:
    solid, x, y, resolution = rasterise(request.scene, request.resolution)
    rows, columns = solid.shape
    send("raster", RasterAnswer(rows, columns, solid.tobytes(), x, y, resolution))


def main() -> None:
    """Entry point of the worker process."""
    serve({"rasterise": RasterRequest}, _answer)
