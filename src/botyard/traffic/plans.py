"""Import of multi-agent path finding (MAPF) benchmarks and plans as tasks.

Cells become sectors, and the order of a plan is kept. A MovingAI scenario (``.scen``
and its ``.map``) gives starts and goals; each robot takes a shortest path, as if it
were alone. Plans come in two forms: lines ``Agent 0: (x,y)->(x,y)->…`` with one cell
for each time step, as many MAPF programs print them (for example SMART), and the JSON
of the League of Robot Runners (``start`` and ``actualPaths`` of the moves F, R, C, W
and T).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np

from botyard.errors import BudgetError
from botyard.formats import movingai
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import loads
from botyard.traffic.generate import CELL, Cell, shortest_way, task_of_routes
from botyard.traffic.league import plan_of_league
from botyard.traffic.task import Task, TaskError, Vehicle

_LINE: Final = re.compile(r"^\s*[Aa]gent\s+(\d+)\s*:\s*(.*?)\s*;?\s*$")
_PLACE: Final = re.compile(r"\(\s*(-?\d+)\s*,\s*(-?\d+)\s*(?:,\s*-?\d+\s*)?\)")


def read_plan(path: str | Path, budget: Budget = Budget()) -> list[list[Cell]]:
    """Read a plan of many agents in one of its two forms.

    Parameters
    ----------
    path : str or Path
        File to read.
    budget : Budget
    Limits for reading the file.

    Returns
    -------
    list of lists of (int, int)
        Cell (x, y) of each agent at each time step, y up.

    Raises
    ------
    TaskError
        The file cannot be read, or is not a plan.
    """
    meter = Meter(budget, str(path), TaskError)
    try:
        text = read_bytes(path, meter, TaskError).decode("utf-8")
    except UnicodeDecodeError:
        raise TaskError("expected text in UTF-8, found other bytes", path) from None

    # Charge the lines to the budget before they are parsed, so that a file with
    # too many is refused before it takes memory.
    meter.add("entities", text.count("\n"))
    # No line of the text form starts with a brace.
    if text.lstrip().startswith("{"):
        return plan_of_league(
            loads(text, Meter(budget, str(path), TaskError), TaskError), str(path)
        )

    agents: dict[int, list[Cell]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        places = _PLACE.findall(match[2])
        rest = _PLACE.sub("", match[2]).replace("->", "").strip()
        if not places or rest:
            raise TaskError(
                f'expected cells as (x,y)->(x,y), found "{(rest or match[2])[:40]}"',
                path,
                number,
            )

        agents[int(match[1])] = [(int(x), int(y)) for x, y in places]

    if not agents or sorted(agents) != list(range(len(agents))):
        raise TaskError(
            "expected lines Agent 0: …, Agent 1: … and so on, without gaps, found "
            "other numbers",
            path,
        )

    return [agents[i] for i in range(len(agents))]


def task_of_plan(
    plan: list[list[Cell]],
    name: str = "plan",
    vehicle: Vehicle | None = None,
    cell: float = CELL,
) -> Task:
    """Make the task of a plan, with its order.

    An agent that never moves would be a robot with a path of half a cell. Such agents
    are left out, and their cells with them.

    Parameters
    ----------
    plan : list of lists of (int, int)
        Cell of each agent at each time step.
    vehicle, cell
        See `botyard.traffic.generate.task_of_routes`.

    Raises
    ------
    TaskError
        An agent jumps, or two agents are in one cell at the same step.
    """
    routes: list[list[Cell]] = []
    entries: list[tuple[int, int, int]] = []
    taken: dict[tuple[int, Cell], int] = {}
    for agent, cells in enumerate(plan):
        for t, at in enumerate(cells):
            other = taken.setdefault((t, at), agent)
            if other != agent:
                raise TaskError(
                    f"agents {other} and {agent} are both at {at} at step {t}", name
                )

        route, times = [cells[0]], [0]
        for t, at in enumerate(cells):
            if at == route[-1]:
                continue
            if abs(at[0] - route[-1][0]) + abs(at[1] - route[-1][1]) != 1:
                raise TaskError(
                    f"agent {agent} jumps from {route[-1]} to {at} at step {t}", name
                )

            route.append(at)
            times.append(t)

        if len(route) > 1:
            entries += [(t, len(routes), k) for k, t in enumerate(times)]
            routes.append(route)

    task = task_of_routes(routes, name, vehicle, cell)
    # Robots start inside their first sector, so it needs no place in the order.
    order = tuple((robot, k) for _, robot, k in sorted(entries) if k > 0)
    return Task(task.vehicles, task.listed, order, name)


def read_scenario(
    path: str | Path, robots: int, seed: int = 1, budget: Budget = Budget()
) -> list[list[Cell]]:
    """Return shortest paths of the first robots of a MovingAI scenario.

    The map is read from the folder of the scenario. Lines are ``bucket map width height
    start-x start-y goal-x goal-y optimal-length``, y down from the top row (N.
    Sturtevant, "Benchmarks for Grid-Based Pathfinding", IEEE T-CIAIG 4(2), 2012).

    Parameters
    ----------
    path : str or Path
        File of the scenario.
    robots : int
        Number of robots; as many lines are read.
    seed : int
        Seed of the choice between paths of the same length.
    budget : Budget
        Limits of both files.

    Returns
    -------
    list of lists of (int, int)
        Cells (x, y) of each robot's path, y up from the bottom row.

    Raises
    ------
    TaskError
        The file cannot be read or has too few lines, or a robot has no path.
    MapError
        The map is invalid.
    """
    meter = Meter(budget, str(path), TaskError)
    try:
        lines = read_bytes(path, meter, TaskError).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise TaskError(f"cannot be read: {error}", path) from None

    meter.add("entities", len(lines))
    rows = [
        (n, line.split())
        for n, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("version")
    ]
    if len(rows) < robots:
        raise TaskError(
            f"expected a scenario of at least {robots} robots, found {len(rows)}", path
        )

    free: set[Cell] = set()
    height = 0
    routes = []
    random = np.random.Generator(np.random.PCG64(seed))
    for number, words in rows[:robots]:
        try:
            name, x0, y0, x1, y1 = words[1], *(int(w) for w in words[4:8])
        except (IndexError, ValueError):
            raise TaskError(
                "expected bucket, map, width, height, start x and y, goal x and y",
                path,
                number,
            ) from None

        if not free:
            # Use only the last part of the name: the file must not lead out of its
            # folder.
            beside = Path(path).parent / Path(name).name
            try:
                data = read_bytes(beside, meter, TaskError)
            except BudgetError:
                raise
            except TaskError as error:
                raise TaskError(
                    f"its map {beside} {error.reason}", path, number
                ) from None

            solid = movingai.parse(data.decode("latin-1"), str(beside), meter)
            # Scenarios count rows from the top; cells count from the bottom.
            height = len(solid)
            free = {(x, y) for y, x in np.argwhere(~solid).tolist()}

        start, goal = (x0, height - 1 - y0), (x1, height - 1 - y1)
        route = shortest_way(free, start, goal, random) if {start, goal} <= free else []
        if len(route) < 2:
            raise TaskError(f"no path from ({x0}, {y0}) to ({x1}, {y1})", path, number)
        routes.append(route)

    return routes


__all__ = ["read_plan", "read_scenario", "task_of_plan"]
