"""Generators of random maps: mazes, offices, halls and warehouses.

The same parameters and seed give the same map on every machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from botyard.errors import WorldError
from botyard.model.mapbuilder import MapBuilder
from botyard.model.scene import Scene


def _at_least(low: int, **values: int) -> None:
    for name, value in values.items():
        if value < low:
            raise WorldError(f"{name}: expected at least {low}, found {value}")


def maze(
    columns: int = 10,
    rows: int = 10,
    *,
    cell: float = 1.5,
    loops: float = 0.0,
    seed: int = 1,
) -> Scene:
    """Return a maze in which every cell can be reached.

    The maze is made by a depth-first walk (D. Knuth's *perfect maze*). The lower left corner is
    the origin. Robots start in the first cell, and the goal ``Exit`` is in the last
    one.

    Parameters
    ----------
    columns, rows : int
        Number of cells.
    cell : float
        Edge of a cell, m.
    loops : float
        Fraction of the remaining inner walls to remove, 0 to 1, so that there are
        several routes.
    seed : int
        Seed of the random draws.

    Raises
    ------
    WorldError
        There are no columns or no rows.
    """
    _at_least(1, columns=columns, rows=rows)
    draw = random.Random(f"{seed} maze")
    # Wall to the left of column i; the last one is the east border.
    upright = np.ones((rows, columns + 1), np.bool_)
    level = np.ones((rows + 1, columns), np.bool_)
    seen = np.zeros((rows, columns), np.bool_)
    # An explicit stack, because recursion would exceed Python's limit for large mazes.
    path = [(0, 0)]
    seen[0, 0] = True
    while path:
        r, c = path[-1]
        ways = [
            (r + dr, c + dc)
            for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0))
            if 0 <= r + dr < rows and 0 <= c + dc < columns and not seen[r + dr, c + dc]
        ]
        if not ways:
            path.pop()
            continue

        nr, nc = draw.choice(ways)
        if nr == r:
            upright[r, max(c, nc)] = False
        else:
            level[max(r, nr), c] = False

        seen[nr, nc] = True
        path.append((nr, nc))

    # The border must stay closed, so only inner walls may be removed.
    inner = [
        ("upright", r, c)
        for r in range(rows)
        for c in range(1, columns)
        if upright[r, c]
    ]
    inner += [
        ("level", r, c) for r in range(1, rows) for c in range(columns) if level[r, c]
    ]
    # Sampling without replacement removes exactly the requested share.
    for kind, r, c in draw.sample(inner, round(len(inner) * min(max(loops, 0.0), 1.0))):
        (upright if kind == "upright" else level)[r, c] = False
    # Single lines keep large mazes small.
    b = MapBuilder("maze", thickness=0.0)
    for c in range(columns + 1):
        _runs(
            b,
            upright[:, c],
            lambda a, z, at=c: ((at * cell, a * cell), (at * cell, z * cell)),
        )

    for r in range(rows + 1):
        _runs(
            b,
            level[r],
            lambda a, z, at=r: ((a * cell, at * cell), (z * cell, at * cell)),
        )

    b.home(cell / 2, cell / 2)
    b.goal("Exit", (columns - 0.5) * cell, (rows - 0.5) * cell)
    return b.scene()


def _runs(
    b: MapBuilder, walls: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], ends: object
) -> None:
    """Merge adjacent pieces of wall into lines, and draw the lines.

    Parameters
    ----------
    b : MapBuilder
        Builder that gets the lines.
    walls : (n,) bool
        Whether each piece of a row or a column is a wall.
    ends : callable
        Returns both ends of a line, m, for the number of its first piece and the number
        after the last one.
    """
    assert callable(ends)
    change = np.flatnonzero(
        np.diff(np.concatenate([[False], walls, [False]]).astype(np.int8))
    )
    for a, z in zip(change[::2].tolist(), change[1::2].tolist(), strict=True):
        b.line(*ends(a, z))


def warehouse(
    aisles: int = 8,
    *,
    racks: int = 2,
    rack_length: float = 10.0,
    rack_depth: float = 2.2,
    aisle: float = 2.4,
    cross_aisle: float = 3.0,
    docks: int = 4,
    pallets: int = 0,
    seed: int = 1,
) -> Scene:
    """Return a hall with rows of racks, aisles, cross aisles and charging stations.

    The charging stations stand along the south wall, and robots start between them and
    the racks. The lower left corner is the origin. Each aisle has a goal, ``Aisle 1``
    ….

    Parameters
    ----------
    aisles : int
        Number of aisles; there is one more row of racks.
    racks : int
        Number of racks in a row, with a cross aisle between them.
    rack_length, rack_depth : float
        Size of a rack along y and along x, m.
    aisle, cross_aisle : float
        Widths, m.
    docks : int
        Number of charging stations, ``Charger 1`` ….
    pallets : int
        Number of movable pallets in the cross aisles.
    seed : int
        Seed of the random draws.

    Raises
    ------
    WorldError
        A number is too small, or a size is not positive.
    """
    _at_least(1, aisles=aisles, racks=racks)
    _at_least(0, docks=docks, pallets=pallets)
    if min(rack_length, rack_depth, aisle, cross_aisle) <= 0.0:
        raise WorldError(
            "warehouse: sizes must be positive, found "
            f"{min(rack_length, rack_depth, aisle, cross_aisle):g} m"
        )
    draw = random.Random(f"{seed} warehouse")
    # The apron, 6 m deep, is the free area between the racks and the charging stations.
    pitch, apron = rack_depth + aisle, 6.0
    width = 2 * cross_aisle + (aisles + 1) * rack_depth + aisles * aisle
    height = apron + racks * rack_length + racks * cross_aisle
    b = MapBuilder("warehouse").rectangle(0.0, 0.0, width, height)
    for i in range(aisles + 1):
        x = cross_aisle + i * pitch
        for k in range(racks):
            b.rectangle(
                x, apron + k * (rack_length + cross_aisle), rack_depth, rack_length
            )

    for i in range(aisles):
        x = cross_aisle + i * pitch + rack_depth + aisle / 2
        b.goal(f"Aisle {i + 1}", x, apron + rack_length / 2, math.pi / 2)

    for i in range(docks):
        # Robots face the south wall while they charge.
        b.dock(f"Charger {i + 1}", (i + 0.5) * width / max(docks, 1), 0.6, -math.pi / 2)
    b.home(width / 2, apron / 2)
    for i in range(pallets):
        # Pallets have the size of a EUR pallet, 1.2 m × 0.8 m, and stand in cross
        # aisles.
        k = draw.randrange(racks)
        y = apron + (k + 1) * rack_length + (k + 0.5) * cross_aisle
        b.box(
            draw.uniform(1.0, width - 1.0),
            y,
            1.2,
            0.8,
            draw.uniform(0.0, math.pi),
            name=f"Pallet {i + 1}",
        )

    return b.scene()


def office(
    rooms: int = 6,
    *,
    width: float = 5.0,
    depth: float = 6.0,
    corridor: float = 2.4,
    door: float = 1.0,
    seed: int = 1,
    furniture: int = 2,
) -> Scene:
    """Return rooms on both sides of a corridor, each with a door and some furniture.

    The lower left corner is the origin, and the corridor runs along x. Each room has a
    goal at its centre, ``South 1`` … and ``North 1`` ….

    Parameters
    ----------
    rooms : int
        Number of rooms on each side.
    width, depth : float
        Size of a room, m.
    corridor, door : float
        Widths, m.
    seed : int
        Seed of the random draws.
    furniture : int
        Number of pieces of furniture in each room.

    Raises
    ------
    WorldError
        A size does not fit, or there is no space for the furniture.
    """
    _at_least(1, rooms=rooms)
    # At least 0.2 m of wall remain at both sides of a door.
    if not 0.0 < door < width - 0.4 or min(depth, corridor) <= 0.5:
        raise WorldError(
            "office: a door must be narrower than its room by more than 0.4 m; "
            f"rooms and corridor must be deeper than 0.5 m; found a door of {door:g} m, "
            f"rooms of {width:g} m × {depth:g} m, and a corridor of {corridor:g} m"
        )

    draw = random.Random(f"{seed} office")
    b = MapBuilder("office")
    length, low, high = rooms * width, depth, depth + corridor
    b.rectangle(0.0, 0.0, length, high + depth)
    for y, name in ((low, "South"), (high, "North")):
        openings = [
            (i * width + draw.uniform(0.2, width - door - 0.2), door)
            for i in range(rooms)
        ]
        b.wall((0.0, y), (length, y), doors=openings)
        y0, y1 = (0.0, low) if name == "South" else (high, high + depth)
        for i in range(1, rooms):
            b.wall((i * width, y0), (i * width, y1))
        for i in range(rooms):
            b.goal(f"{name} {i + 1}", (i + 0.5) * width, (y0 + y1) / 2)

    b.home(1.5, (low + high) / 2)
    for i in range(rooms):
        for y0 in (0.0, high):
            b.obstacles(
                furniture,
                seed=draw.randrange(2**31),
                size=(0.4, 1.2),
                # Furniture may stand closer together than obstacles that robots pass
                # between.
                clearance=0.15,
                area=(
                    i * width + 0.1,
                    y0 + 0.6,
                    (i + 1) * width - 0.1,
                    y0 + depth - 0.6,
                ),
            )

    return b.scene()


def hall(
    width: float = 20.0, height: float = 20.0, *, obstacles: int = 20, seed: int = 1
) -> Scene:
    """Return one room with blocks and pillars at random places.

    The lower left corner is the origin, and robots start near it.

    Parameters
    ----------
    width, height : float
        Size along x and along y, m, at least 3.
    obstacles : int
        Number of blocks and pillars.
    seed : int
        Seed of the random draws.

    Raises
    ------
    WorldError
        The hall is too small, or has no space for the obstacles.
    """
    # The home at (1, 1) needs free space around it.
    if min(width, height) < 3.0:
        raise WorldError(
            f"hall: expected at least 3 m × 3 m, found {width:g} × {height:g}"
        )

    b = (
        MapBuilder("hall")
        .rectangle(0.0, 0.0, width, height)
        .home(1.0, 1.0, math.pi / 4)
    )
    return b.obstacles(obstacles, seed=seed).scene()


GENERATORS: Final[Mapping[str, Callable[..., Scene]]] = {
    "maze": maze,
    "warehouse": warehouse,
    "office": office,
    "hall": hall,
}
"""Generators of maps by name."""


__all__ = ["GENERATORS", "hall", "maze", "office", "warehouse"]
