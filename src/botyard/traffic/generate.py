"""Task generator: families of traffic on a grid of cells, repeatable by seed.

A route is a list of neighbouring cells. Each of its cells is a sector, from border to
border; the first and the last sector start and end in the middle of a cell. Two sectors
conflict if they are the same cell. A disk whose radius is at most half a cell lies
inside the cells that it occupies, so no collision of sectors means no collision of
disks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from botyard.traffic.task import I8, Task, TaskError, Vehicle

Cell = tuple[int, int]
Route = list[Cell]

CELL: Final = 2.0
"""Edge of a cell, m."""
ATTEMPTS: Final = 200
"""Number of random tasks to try until one has a safe start."""


def task_of_routes(
    routes: Sequence[Route],
    name: str,
    vehicle: Vehicle | None = None,
    cell: float = CELL,
) -> Task:
    """Make the task of robots that follow routes.

    Parameters
    ----------
    routes : sequence of lists of (int, int)
        Cells of each robot, neighbours one after the other, at least two.
    vehicle : Vehicle, optional
        Radius and motion of all robots; its path is ignored.
    cell : float
        Edge of a cell, m; at least twice the radius.

    Raises
    ------
    TaskError
        A route is too short, or the cells are too small for the robots.
    """
    usual = vehicle or Vehicle(ends=np.ones(1))
    if cell < 2.0 * usual.radius:
        raise TaskError(
            f"cells of {cell:g} m are too small for robots of {2.0 * usual.radius:g} m",
            name,
        )

    vehicles = []
    users: dict[Cell, list[tuple[int, int]]] = {}
    for i, route in enumerate(routes):
        if len(route) < 2:
            raise TaskError(
                f"route {i}: expected at least two cells, found {len(route)}", name
            )

        ends = (np.arange(len(route), dtype=np.float64) + 0.5) * cell
        # The last sector ends in the middle of its cell, where the path ends.
        ends[-1] -= 0.5 * cell
        path = np.array(route, np.float64) * cell
        vehicles.append(replace(usual, ends=ends, path=path, start=0.0))
        for k, at in enumerate(route):
            users.setdefault(at, []).append((i, k))

    listed = [
        (i, k, j, m)
        for at in users.values()
        if len(at) > 1
        for i, k in at
        for j, m in at
        if i != j
    ]
    rows: I8 = np.array(listed, np.int64).reshape(-1, 4)
    # Sort the rows, so that the order of conflicts does not depend on the order of
    # routes.
    order = np.lexsort(rows.T[::-1])
    return Task(tuple(vehicles), rows[order], (), name)


# -- families


def crossings(n: int, random: np.random.Generator) -> list[Route]:
    """Make routes on straight streets that cross.

    Half of the robots go east or west, half north or south, each in its own street.

    Parameters
    ----------
    n : int
        Number of robots.
    random : Generator
        Source of the order of streets and of the directions.
    """
    across, along = n - n // 2, n // 2
    # Robots start and end two cells outside the crossings, where they block no other
    # robot.
    margin = 2
    rows = random.permutation(np.arange(2 * across))[:across]
    columns = random.permutation(np.arange(2 * max(along, 1)))[:along]
    width, height = 2 * max(along, 1), 2 * across
    routes = []
    for y in rows.tolist():
        route = [(x, y) for x in range(-margin, width + margin)]
        routes.append(route if random.random() < 0.5 else route[::-1])

    for x in columns.tolist():
        route = [(x, y) for y in range(-margin, height + margin)]
        routes.append(route if random.random() < 0.5 else route[::-1])

    return routes


def ring(n: int, random: np.random.Generator) -> list[Route]:
    """Make routes through a roundabout.

    Each robot enters by its own road, drives counter-clockwise, and leaves by another
    road.

    Parameters
    ----------
    n : int
        Number of robots.
    random : Generator
        Source of the roads.
    """
    # The loop has 4 · side cells: an entry and an exit for each robot.
    side = max(2, -(-n // 2))
    loop = (
        [(x, 0) for x in range(side)]
        + [(side, y) for y in range(side)]
        + [(x, side) for x in range(side, 0, -1)]
        + [(0, y) for y in range(side, 0, -1)]
    )

    def outward(k: int) -> Cell:
        x, y = loop[k]
        side_of = k // side
        return ((0, -1), (1, 0), (0, 1), (-1, 0))[side_of] if (x, y) else (0, -1)

    # Entries use the even cells and exits the odd ones, so no road serves both.
    places = random.permutation(np.arange(0, len(loop), 2))[:n].tolist()
    exits = random.permutation(np.arange(1, len(loop), 2)).tolist()
    routes = []
    for entry, leave in zip(places, exits, strict=False):
        go = [
            loop[(entry + k) % len(loop)]
            for k in range((leave - entry) % len(loop) + 1)
        ]
        (ex, ey), (lx, ly) = outward(entry), outward(leave)
        (ax, ay), (bx, by) = loop[entry], loop[leave]
        come = [(ax + 2 * ex, ay + 2 * ey), (ax + ex, ay + ey)]
        away = [(bx + lx, by + ly), (bx + 2 * lx, by + 2 * ly)]
        routes.append(come + go + away)

    return routes


def corridor(n: int, random: np.random.Generator) -> list[Route]:
    """Make routes of two groups that meet in a one-lane corridor.

    Opposing robots in the corridor block each other for ever.

    Parameters
    ----------
    n : int
        Number of robots; half of them start at each end.
    random : Generator
        Source of the order of robots.
    """
    length = 4
    left, right = n - n // 2, n // 2
    routes: list[Route] = []
    for k in range(left):
        y = 2 * k
        come = [(-x, y) for x in range(3, 1, -1)] + [(-1, r) for r in range(y, -1, -1)]
        away = [(length, r) for r in range(0, -2 * k - 2, -1)] + [
            (length + x, -2 * k - 1) for x in range(1, 4)
        ]
        routes.append(come + [(x, 0) for x in range(length)] + away)

    for k in range(right):
        y = 2 * k + 2
        come = [(length + x, y) for x in range(3, 0, -1)] + [
            (length, r) for r in range(y, -1, -1)
        ]
        away = [(-1, r) for r in range(0, -2 * k - 3, -1)] + [
            (-1 - x, -2 * k - 2) for x in range(1, 4)
        ]
        routes.append(come + [(x, 0) for x in range(length - 1, -1, -1)] + away)

    return [routes[k] for k in random.permutation(len(routes)).tolist()]


def star(n: int, random: np.random.Generator) -> list[Route]:
    """Make routes through one common cell.

    Robots enter from the west, each in its row, and leave to the east, each in another
    row.

    Parameters
    ----------
    n : int
        Number of robots.
    random : Generator
        Source of the rows in the east.
    """
    exits = random.permutation(n).tolist()
    routes = []
    for k, e in enumerate(exits):
        come = (
            [(-4, 2 * k), (-3, 2 * k)]
            + [(-2, r) for r in range(2 * k, -1, -1)]
            + [(-1, 0)]
        )
        away = (
            [(1, 0)] + [(2, r) for r in range(0, 2 * e + 1)] + [(3, 2 * e), (4, 2 * e)]
        )
        routes.append([*come, (0, 0), *away])

    return routes


def warehouse(n: int, random: np.random.Generator) -> list[Route]:
    """Make routes on the aisles between racks.

    Each robot drives from one bay at the rim to another one on a shortest path.

    Parameters
    ----------
    n : int
        Number of robots; the warehouse grows with it.
    random : Generator
        Source of the bays, and of the choice between paths of equal length.
    """
    side = max(3, -(-n // 2))
    step = 3
    size = step * side
    streets = {
        (x, y)
        for x in range(0, size + 1)
        for y in range(0, size + 1)
        if x % step == 0 or y % step == 0
    }
    rim = [k for k in range(1, size) if k % step]
    bays = (
        [(k, -1) for k in rim]
        + [(k, size + 1) for k in rim]
        + [(-1, k) for k in rim]
        + [(size + 1, k) for k in rim]
    )
    # Draw all bays at once, so that no two robots share a start or a goal.
    chosen = [bays[k] for k in random.permutation(len(bays))[: 2 * n].tolist()]
    routes = []
    for start, goal in zip(chosen[:n], chosen[n:], strict=True):
        routes.append(shortest_way(streets | {start, goal}, start, goal, random))
    return routes


def deadlock(n: int, random: np.random.Generator) -> list[Route]:
    """Make groups of four robots that deadlock under first come, first served.

    Each robot holds the cell that the next one needs.

    Parameters
    ----------
    n : int
        Number of robots; the last group may have fewer than four.
    random : Generator
        Not used: the routes are always the same.
    """
    routes = []
    for block in range(-(-n // 4)):
        x0 = 12 * block
        square = [(0, 0), (1, 0), (1, 1), (0, 1)]
        outward = [(0, -1), (1, 0), (0, 1), (-1, 0)]
        for k in range(min(4, n - 4 * block)):
            (ax, ay), (bx, by) = square[k], square[(k + 1) % 4]
            (cx, cy) = square[(k + 2) % 4]
            ox, oy = outward[k]
            px, py = outward[(k + 1) % 4]
            come = [(ax + d * ox, ay + d * oy) for d in (3, 2, 1)]
            away = [(cx + d * px, cy + d * py) for d in (1, 2, 3)]
            routes.append(
                [(x0 + x, y) for x, y in [*come, (ax, ay), (bx, by), (cx, cy), *away]]
            )

    return routes


def shortest_way(
    cells: set[Cell], start: Cell, goal: Cell, random: np.random.Generator
) -> Route:
    """Search breadth-first for a shortest path over neighbouring cells.

    Parameters
    ----------
    cells : set of (int, int)
        Cells that robots can use.
    start, goal : (int, int)
        First and last cell of the path.
    random : Generator
        Source of the choice between several shortest paths.

    Returns
    -------
    list of (int, int)
        Cells of the path with both ends; empty if none exists.
    """
    distance = {goal: 0}
    queue = deque([goal])
    while queue:
        x, y = queue.popleft()
        if (x, y) == start:
            break
        for after in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if after in cells and after not in distance:
                distance[after] = distance[x, y] + 1
                queue.append(after)

    if start not in distance:
        return []
    route = [start]
    while route[-1] != goal:
        x, y = route[-1]
        near = [
            c
            for c in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))
            if distance.get(c, 1 << 30) < distance[x, y]
        ]
        route.append(near[int(random.integers(len(near)))])

    return route


FAMILIES: Final[dict[str, Callable[[int, np.random.Generator], list[Route]]]] = {
    "crossings": crossings,
    "ring": ring,
    "corridor": corridor,
    "star": star,
    "warehouse": warehouse,
    "deadlock": deadlock,
}
"""Generators of routes, by the name of their family."""


def generate(
    family: str,
    robots: int,
    seed: int = 1,
    vehicle: Vehicle | None = None,
    cell: float = CELL,
) -> Task:
    """Generate a solvable task of a family.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`.
    robots : int
        Number of robots, from 2.
    seed : int
        The same seed gives the same task.
    vehicle, cell
        See `task_of_routes`.

    Raises
    ------
    TaskError
        The family or the number of robots is not valid; no attempt gave a solvable
        task.
    """
    if family not in FAMILIES:
        raise TaskError(
            f'family: expected one of {", ".join(FAMILIES)}, found "{family}"'
        )

    if not 2 <= robots <= 100_000:
        raise TaskError(f"robots: expected a number from 2 to 100000, found {robots}")
    from botyard.traffic.check import is_safe

    # The robots are part of the seed: tasks of different sizes share no random numbers.
    for attempt in range(ATTEMPTS):
        random = np.random.Generator(np.random.PCG64([seed, attempt, robots]))
        task = task_of_routes(
            FAMILIES[family](robots, random), f"{family}-{robots}-{seed}", vehicle, cell
        )
        if is_safe(task):
            return task

    raise TaskError(
        f"{family}: found no solvable task of {robots} robots in {ATTEMPTS} attempts"
    )


__all__ = ["CELL", "FAMILIES", "generate", "shortest_way", "task_of_routes"]
