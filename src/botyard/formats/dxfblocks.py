"""Number of entities that the blocks of a DXF drawing contain, counted before expansion."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from botyard.errors import MapError
from botyard.formats.budget import Meter
from botyard.names import shown

COPY_COST: Final = 20
"""Cost of copying an entity of an inserted block, in entities of the budget: about 0.2 ms."""
_PARTS: Final = {
    "vertices": 10,
    "lwpoints": 10,
    "attribs": 10,
    "control_points": 1,
    "fit_points": 1,
    "knots": 1,
    "weights": 1,
    "faces": 1,
    "edges": 1,
}
"""Attributes of the library's entities whose length the file controls, with the cost of each.

The cost is the cost of copying one element, in entities of the budget.
"""


def copy_cost(entity: Any) -> int:
    """Return the cost of copying an entity's points, knots, faces and so on.

    Parameters
    ----------
    entity : DXFEntity
        Entity of ezdxf, with any of the attributes in `_PARTS`.

    Returns
    -------
    int
        Cost, in entities of the budget.
    """
    total = 0
    for name, weight in _PARTS.items():
        value = getattr(entity, name, None)
        with contextlib.suppress(TypeError):
            total += 0 if value is None else weight * len(value)

    if entity.dxftype() == "MESH":
        total += int(entity.faces.tag_count())  # number of corners of all faces
    return total


def count_blocks(document: Any, meter: Meter) -> None:
    """Count the expansion of all inserted blocks, before any of them is expanded.

    Parameters
    ----------
    document : Drawing
        Drawing of ezdxf.
    meter : Meter
        Limits of uses (``references``), of entities, and of the depth of blocks.

    Raises
    ------
    MapError
        A block is inserted in itself.
    BudgetError
        There are too many blocks or entities, or blocks are nested too deeply.
    """
    contents: dict[str, list[tuple[str, int]]] = {}
    numbers: dict[str, int] = {}

    def look_at(name: str, entities: Iterable[Any]) -> None:
        inserts: list[tuple[str, int]] = []
        numbers[name] = 0
        for entity in entities:
            numbers[name] += COPY_COST + copy_cost(entity) if name else 1
            if entity.dxftype() == "INSERT" and entity.dxf.name is not None:
                rows, columns = int(entity.dxf.row_count), int(entity.dxf.column_count)
                times = 1 if entity.mcount <= 1 else max(rows, 1) * max(columns, 1)
                inserts.append((document.blocks.key(entity.dxf.name), times))

        contents[name] = inserts

    for block in document.blocks:
        look_at(document.blocks.key(block.name), block)
    # No block has an empty name, so the empty name denotes the drawing itself.
    look_at("", document.modelspace())

    # Number of uses of blocks, and of entities, in each block.
    totals: dict[str, tuple[int, int]] = {}
    path: list[tuple[str, Iterator[tuple[str, int]]]] = [("", iter(contents[""]))]
    inside = {""}
    while path:
        name, rest = path[-1]
        following = next(
            ((n, t) for n, t in rest if n in contents and n not in totals), None
        )
        if following is not None:
            if following[0] in inside:
                raise MapError(
                    f'the block "{shown(following[0])}" is inserted in itself',
                    meter.path,
                )

            path.append((following[0], iter(contents[following[0]])))
            inside.add(following[0])
            meter.check("nesting", len(path))
            continue

        path.pop()
        inside.discard(name)
        uses = sum(t * (1 + totals[n][0]) for n, t in contents[name] if n in totals)
        things = numbers[name] + sum(
            t * (1 + totals[n][1]) for n, t in contents[name] if n in totals
        )
        totals[name] = uses, things
        if not name:
            meter.check("references", uses)
            meter.check("entities", things)


__all__ = ["COPY_COST", "copy_cost", "count_blocks"]
