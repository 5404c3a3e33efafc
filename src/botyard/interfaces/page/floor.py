"""Pheromone fields in the frames of the page."""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.engine.fields import FieldTable
from botyard.protocols.webgui.frames import Block, Column
from botyard.sim.simulation import Simulation

FIELD_PERIOD: Final = 7
"""Every how many frames a frame contains the pheromone fields.

Fields change slowly, and take most of a frame's bytes. The number is a prime, so that a
page that draws only every second, third … frame still gets them.
"""
MAX_SIDE: Final = 256
"""Largest number of rows and columns of a field in a frame."""


class Shown(Protocol):
    """Parts of the run loop that this module uses."""

    @property
    def sim(self) -> Simulation: ...
    @property
    def is_paused(self) -> bool: ...


def field_columns(hub: Shown, number: int, *, always: bool) -> list[Column]:
    """Return the blocks of a frame with the levels of all pheromone fields.

    Parameters
    ----------
    hub : Shown
        Running simulation.
    number : int
        Number of the frame.
    always : bool
        Whether each frame contains the fields, as for frames that show an earlier
        moment.

    Returns
    -------
    list of Column
        One block for each field; empty for frames without fields. While the world is
        paused, each frame contains the fields, so that a page that opens then gets
        them.
    """
    floor = hub.sim.core.scene.floor
    if floor is None or not floor.fields:
        return []
    if not (always or hub.is_paused or number % FIELD_PERIOD == 0):
        return []
    found: list[Column] = []
    for k, table in enumerate(
        t for t in hub.sim.core.engine.tables.values() if isinstance(t, FieldTable)
    ):
        shown = quantised(table)
        found.append((Block.FIELD, k, len(shown), [shown]))
    return found


def quantised(table: FieldTable) -> NDArray[np.uint8]:
    """Return the levels of a field as opacities, at most `MAX_SIDE` rows and columns.

    Parameters
    ----------
    table : FieldTable
        Levels of the field in its cells.

    Returns
    -------
    (rows, columns) uint8
        Opacities: 0 for no pheromone, 255 for the level `PheromoneField.full` or more.
        Each number is the highest of a block of `stride` × `stride` cells. Row 0 has
        the lowest y.
    """
    rows, columns = table.field.shape
    levels = table.level[0].reshape(rows, columns)
    k = stride(rows, columns)
    if k > 1:
        padded = np.zeros((-(-rows // k) * k, -(-columns // k) * k))
        padded[:rows, :columns] = levels
        levels = padded.reshape(len(padded) // k, k, -1, k).max(axis=(1, 3))
    opacity = np.minimum(levels / table.field.full, 1.0) * 255.0
    # Round up, so that a weak trail fades out instead of ending abruptly.
    found: NDArray[np.uint8] = np.ceil(opacity).astype(np.uint8)
    return found


def stride(rows: int, columns: int) -> int:
    """Return the number of cells along an edge of a block, see `quantised`."""
    return math.ceil(max(rows, columns) / MAX_SIDE)


__all__ = ["FIELD_PERIOD", "MAX_SIDE", "field_columns", "quantised", "stride"]
