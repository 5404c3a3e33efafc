"""Random draws of all devices of a table at once; each gets the draws of its `View`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8, U8
from botyard.engine.rng import stream_keys, uniform
from botyard.engine.tables import Row, Table

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine


def streams_of(rows: Sequence[Row[Table]]) -> U8:
    """Return the number of the random stream of each row's device, (n,).

    Parameters
    ----------
    rows : sequence of Row
        Rows with the keys of `botyard.devices.devicereader.memory_key`.
    """
    # Protocols read the kinds of devices without the engine, which this module loads.
    from botyard.devices.view import stream_of

    # The key is the name of the robot, which has no blank, and the name of the device.
    return np.array(
        [stream_of(str(row.key).partition(" ")[2]) for row in rows], np.uint64
    )


def normals(engine: Engine, table: Table, count: int, part: int = 0) -> F8:
    """Return normal draws of this tick for each row of a table.

    They equal `botyard.devices.view.View.normal` of each device.

    Parameters
    ----------
    engine : Engine
        Engine that has the table.
    table : Table
        Table of devices.
    count : int
        Number of draws for each row.
    part : int
        Number of an independent sequence.

    Returns
    -------
    (n, count) float64
        Draws with mean 0 and standard deviation 1.
    """
    # As in `streams_of`.
    from botyard.devices.view import NORMAL_PARTS

    n = len(table)
    keys = stream_keys(
        np.full(n, engine.seed_word, np.uint64),
        engine.state.uid[table.body],
        streams_of(table.rows),
        engine.clock.tick,
    )
    found: NDArray[np.float64] = np.zeros((n, count))
    numbers = np.arange(count * NORMAL_PARTS, dtype=np.uint64) + np.uint64(part << 32)
    draws = 2.0 * uniform(keys[:, None], numbers) - 1.0
    # The order of the sum decides its last bit.
    for i in range(NORMAL_PARTS):
        found += draws[:, i::NORMAL_PARTS]

    # The sum of twelve draws in [−1, 1) has the variance 4.
    return found / 2.0


__all__ = ["normals", "streams_of"]
