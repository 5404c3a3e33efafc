"""A map format: each line of a `.walls` file is a wall, x0,y0,x1,y1 in m.

botyard room.walls -r p3dx
botyard convert room.walls room.map
"""

from __future__ import annotations

import numpy as np

from botyard.errors import MapError
from botyard.formats.base import Format, Options, Source
from botyard.formats.budget import Meter
from botyard.model.scene import Scene
from botyard.model.world import World


def read(source: Source, options: Options) -> World:
    """Read a file.

    Raises
    ------
    MapError
        A line is not a wall; the message names the line and what it has.
    """
    # The reader counts before it creates, so a hostile file ends with a message.
    meter = Meter(options.budget, source.name)
    walls = []
    for number, line in enumerate(source.data.decode("latin-1").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        meter.add("entities", 1, number)
        try:
            wall = [float(word) for word in line.split(",")]
        except ValueError:
            wall = []
        if len(wall) != 4 or not np.isfinite(wall).all():
            problem = f'expected x0,y0,x1,y1 in m, found "{line[:60]}"'
            raise MapError(problem, source.name, number)
        walls.append(wall)
    return World(scene=Scene(segments=np.array(walls).reshape(-1, 4), name=source.name))


FORMAT = Format(
    name="wallscsv",
    about="walls as lines of four numbers",
    suffixes=(".walls",),
    read=read,
)
