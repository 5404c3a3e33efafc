"""Reader of grid maps of the MovingAI benchmarks (``type octile``).

Source: N. Sturtevant, *Benchmarks for Grid-Based Pathfinding*, IEEE T-CIAIG 2012. The
cells ``.``, ``G`` and ``S`` (swamp) are free; ``@``, ``O`` (out of bounds), ``T``
(trees) and ``W`` (water) are solid.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.formats.base import Options, Source, Warn
from botyard.formats.budget import Budget, Meter
from botyard.model.scene import Scene
from botyard.model.tracing import trace
from botyard.model.world import World
from botyard.names import shown

DEFAULT_CELL: Final = 1.0
"""Default size of a cell, m, so that a robot fits through a passage of one cell."""
_FREE: Final = b".GS"
_OCCUPIED: Final = b"@OTW"


def fits(source: Source) -> bool:
    """Return whether a ``.map`` file has this format: it starts with ``type``."""
    return source.data[:1000].lstrip()[:5].lower() in (b"type ", b"type\t")


def parse(
    text: str,
    path: str | None = None,
    meter: Meter | None = None,
    warn: Warn | None = None,
) -> NDArray[np.bool_]:
    """Return the occupied cells of a map.

    Parameters
    ----------
    text : str
        Contents of the file.
    path : str or None
        File for messages.
    meter : Meter or None
        Counts the cells before they are read.
    warn : callable or None
        Called if the file has more rows than its header announces.

    Returns
    -------
    (height, width) bool
        Solid cells, with row 0 at the bottom.

    Raises
    ------
    MapError
        The file is invalid. The error names the line, the expected and the found text.
    """
    meter = meter or Meter(Budget(), path or "map")
    # The header has four lines. Splitting only the first ten keeps the rest in one
    # piece.
    lines = text.split("\n", 10)
    size: dict[str, int] = {}
    start = 0
    for number, line in enumerate(lines[:10], start=1):
        words = line.split()
        if words == ["map"]:
            start = number
            break

        if len(words) == 2 and words[0] in ("height", "width"):
            if re.fullmatch(r"[0-9]{1,12}", words[1]) is None or int(words[1]) == 0:
                raise MapError(
                    f"{words[0]}: expected a whole number of cells above 0, of at "
                    "most 12 digits, "
                    f'found "{shown(words[1])}"',
                    path,
                    number,
                )

            size[words[0]] = int(words[1])
        elif not words or words[0] != "type":
            raise MapError(
                'expected "type", "height", "width" or "map", '
                f"found {line.strip()[:40]!r}",
                path,
                number,
            )

    if not start or len(size) != 2:
        raise MapError(
            'expected "height", "width" and "map" in the first ten lines, found '
            f"{', '.join([*size, *(['map'] if start else [])]) or 'none of them'}",
            path,
            1,
        )

    height, width = size["height"], size["width"]
    # Check the size before the rows are read, because the header can announce any size.
    meter.add("cells", height * width, 2)
    meter.add("entities", height)
    lines = text.split("\n", start + height)
    rest = lines[start + height :]
    if warn is not None and rest and rest[0].strip():
        warn(
            f"{path or 'map'}:{start + height + 1}: expected {height} rows, "
            "found more; the others are ignored"
        )

    rows = [
        line.rstrip().encode("latin-1", "replace")
        for line in lines[start : start + height]
    ]
    for number, row in enumerate(rows, start=start + 1):
        if len(row) != width:
            raise MapError(f"expected {width} cells, found {len(row)}", path, number)
        odd = row.translate(None, _FREE + _OCCUPIED)
        if odd:
            raise MapError(
                f"expected cells of {(_FREE + _OCCUPIED).decode()}, "
                f"found {chr(odd[0])!r}",
                path,
                number,
            )

    if len(rows) != height:
        raise MapError(f"expected {height} rows, found {len(rows)}", path, len(lines))
    # The file starts with the top row; worlds have y upwards.
    cells = np.frombuffer(b"".join(rows), np.uint8).reshape(height, width)[::-1]
    return ~np.isin(cells, np.frombuffer(_FREE, np.uint8))


def read(source: Source, options: Options) -> World:
    """Read a map as a world of walls.

    Raises
    ------
    MapError
        The file is invalid; the error names the file and the line.
    """
    meter = Meter(options.budget, source.name)
    solid = parse(source.text, source.name, meter, options.warn)
    size = options.scale(DEFAULT_CELL, source.name, "a cell")
    meter.check("extent", max(solid.shape) * size)
    segments, traced = trace(solid, size, allow=lambda n: meter.add("vertices", 2 * n))
    return World(
        scene=Scene(
            name=source.stem,
            source=source.name,
            segments=segments,
            traced=traced,
            resolution=size,
        )
    )


__all__ = ["DEFAULT_CELL", "fits", "parse", "read"]
