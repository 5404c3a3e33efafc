"""Grid maps of the MovingAI benchmarks (``type octile``; N. Sturtevant, *Benchmarks for Grid-Based Pathfinding*, IEEE T-CIAIG 2012).

``.`` and ``G`` are free, ``S`` (swamp) too; ``@``, ``O`` (out of bounds), ``T`` (trees) and ``W`` (water) are solid.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.formats.base import Options, Source
from botyard.model.scene import Scene
from botyard.model.tracing import mask_to_segments
from botyard.model.world import World

CELL: Final = 1.0
"""Usual size of a cell, m: a robot goes through a passage of one cell."""
MAX_CELLS: Final = 100_000_000
_FREE: Final = b".GS"
_SOLID: Final = b"@OTW"


def fits(source: Source) -> bool:
    """Whether a ``.map`` is one of these: it begins with ``type``."""
    return source.data.lstrip()[:5].lower() in (b"type ", b"type\t")


def parse(text: str, path: str | None = None) -> NDArray[np.bool_]:
    """The solid cells of a map, (height, width), row 0 at the bottom.

    Raises
    ------
    MapError
        With the line, what was expected and what was found.
    """
    lines = text.split("\n")
    size: dict[str, int] = {}
    start = 0
    for number, line in enumerate(lines[:10], start=1):
        words = line.split()
        if words == ["map"]:
            start = number
            break
        if len(words) == 2 and words[0] in ("height", "width"):
            if not words[1].isdigit() or not 0 < int(words[1]) <= MAX_CELLS:
                raise MapError(f"expected {words[0]} and a number of cells, found {words[1]!r}", path, number)
            size[words[0]] = int(words[1])
        elif not words or words[0] != "type":
            raise MapError(f'expected "type", "height", "width" or "map", found {line.strip()[:40]!r}', path, number)
    if not start or len(size) != 2:
        raise MapError('expected "height", "width" and "map" in the first lines', path, 1)
    height, width = size["height"], size["width"]
    if height * width > MAX_CELLS:
        raise MapError(f"{width} × {height} cells; at most {MAX_CELLS:.0e} are read", path, 2)
    rows = [line.rstrip().encode("latin-1", "replace") for line in lines[start : start + height]]
    for number, row in enumerate(rows, start=start + 1):
        if len(row) != width:
            raise MapError(f"expected {width} cells, found {len(row)}", path, number)
        rest = row.translate(None, _FREE + _SOLID)
        if rest:
            raise MapError(f"expected cells out of {(_FREE + _SOLID).decode()}, found {chr(rest[0])!r}", path, number)
    if len(rows) != height:
        raise MapError(f"expected {height} rows, found {len(rows)}", path, len(lines))
    cells = np.frombuffer(b"".join(rows), np.uint8).reshape(height, width)[::-1]
    return ~np.isin(cells, np.frombuffer(_FREE, np.uint8))


def read(source: Source, options: Options) -> World:
    """A map as a world of walls.

    Raises
    ------
    MapError
        With file and line.
    """
    solid = parse(source.text, source.name)
    size = options.scale(CELL, source.name, "a cell")
    return World(
        scene=Scene(name=source.stem, source=source.name, segments=mask_to_segments(solid) * size, resolution=size)
    )


__all__ = ["CELL", "fits", "parse", "read"]
