"""Worker process that rasterises a scene.

The work runs in a child process (`botyard.processes.child_process`), so that a large
map does not block the simulation.
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
    """Request to the worker process: the scene to rasterise, and the edge of a cell, m."""

    scene: Scene
    resolution: float


@dataclass(frozen=True, slots=True)
class RasterAnswer:
    """Answer of the worker process: the cells of a `Raster` row by row, one byte per cell."""

    rows: int
    columns: int
    cells: bytes
    x: float
    y: float
    resolution: float

    @property
    def raster(self) -> Raster:
        """Raster that the answer contains.

        Raises
        ------
        ValueError
            The number of cells does not match the rows and columns.
        """
        # Every byte other than 0 is solid, because the sender is another process.
        solid = (
            np.frombuffer(self.cells, np.uint8).reshape(self.rows, self.columns) != 0
        )
        return Raster(solid, self.x, self.y, self.resolution)


TYPES: Final = {"raster": RasterAnswer}
"""Types of the bodies of the worker's messages, by kind of message."""


def _answer(request: RasterRequest, send: Send) -> None:
    solid, x, y, resolution = rasterise(request.scene, request.resolution)
    rows, columns = solid.shape
    send("raster", RasterAnswer(rows, columns, solid.tobytes(), x, y, resolution))


def main() -> None:
    """Run the worker process until its parent closes the connection."""
    serve({"rasterise": RasterRequest}, TYPES, _answer)
