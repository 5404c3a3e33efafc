"""Navigation graphs of Open-RMF: lanes between places, and mutex groups.

Only one robot at a time may use the lanes of a mutex group. The module reads the YAML
files of the traffic editor (``building_map_generator nav``): ``levels`` with
``vertices`` ``[x, y, {name, …}]`` and ``lanes`` ``[from, to, {is_bidirectional, mutex,
…}]``.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import brief
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import distance
from botyard.model.tablecheck import MAX_NUMBER
from botyard.traffic.geometry import task_of_paths
from botyard.traffic.motion import Path2
from botyard.traffic.task import F8, I8, Task, TaskError, Vehicle


@dataclass(slots=True, eq=False)
class NavGraph:
    """Navigation graph of places (vertices) and lanes (directed edges).

    Attributes
    ----------
    places : list of (float, float)
        Positions, m.
    names : dict
        Index of a place by its name.
    lanes : dict
        Adjacency list: for each place, the places that its lanes lead to.
    mutex : dict
        Mutex group of a lane, by its start and end.
    """

    places: list[tuple[float, float]]
    names: dict[str, int] = field(default_factory=dict)
    lanes: dict[int, list[int]] = field(default_factory=dict)
    mutex: dict[tuple[int, int], str] = field(default_factory=dict)

    def find(self, name: str) -> int:
        """Return the index of a place.

        Parameters
        ----------
        name : str
            Name of the place, or its number as a text.

        Raises
        ------
        TaskError
            The graph has no such place.
        """
        # Names take precedence over numbers, because a name may look like a number.
        if name in self.names:
            return self.names[name]
        if name.isdigit() and int(name) < len(self.places):
            return int(name)
        raise TaskError(
            "place: expected a name of the graph or a number from 0 to "
            f'{len(self.places) - 1}, found "{name}"'
        )

    def shortest_path(self, start: int, goal: int) -> list[int]:
        """Return the shortest path between two places (E. W. Dijkstra, 1959).

        Parameters
        ----------
        start, goal : int
            Indices of the places.

        Returns
        -------
        list of int
            Places of the path with both ends. The length of lanes counts, m.

        Raises
        ------
        TaskError
            No path exists.
        """
        best = {start: 0.0}
        before: dict[int, int] = {}
        queue = [(0.0, start)]
        while queue:
            length, at = heapq.heappop(queue)
            if at == goal:
                found = [goal]
                while found[-1] != start:
                    found.append(before[found[-1]])
                return found[::-1]

            # The queue keeps an outdated entry after a shorter path was found.
            if length > best[at]:
                continue
            for after in self.lanes.get(at, ()):
                new = length + distance(self.places[at], self.places[after])
                if new < best.get(after, math.inf):
                    best[after], before[after] = new, at
                    heapq.heappush(queue, (new, after))

        raise TaskError(f"no path from place {start} to place {goal}")


def read_graph(
    path: str | Path, level: str | None = None, budget: Budget = Budget()
) -> NavGraph:
    """Read a level of a navigation graph.

    Parameters
    ----------
    path : str or Path
        YAML file of the traffic editor.
    level : str, optional
        Name of the level; by default the first one.
    budget : Budget
        Limits for reading the file.

    Raises
    ------
    TaskError
        The file cannot be read, or is not a navigation graph.
    """
    meter = Meter(budget, str(path), TaskError)
    try:
        data: Any = YamlFile(
            read_bytes(path, meter, TaskError).decode("utf-8"), meter, TaskError
        ).data
    except UnicodeDecodeError:
        raise TaskError("expected YAML in UTF-8, found other bytes", path) from None

    levels = data.get("levels") if isinstance(data, dict) else None
    if not isinstance(levels, dict) or not levels:
        raise TaskError("expected levels: with vertices and lanes, found none", path)
    chosen = next(iter(levels)) if level is None else level
    if chosen not in levels:
        raise TaskError(
            f'level: expected one of {", ".join(map(str, levels))}, found "{chosen}"',
            path,
        )

    table = levels[chosen]
    where = f"levels.{chosen}"
    places, lanes = (
        table.get(key) if isinstance(table, dict) else None
        for key in ("vertices", "lanes")
    )
    if not isinstance(places, list) or not isinstance(lanes, list):
        raise TaskError(
            f"{where}: expected lists of vertices and of lanes, found {brief(table)}",
            path,
        )

    # Users often give the building file, from which the editor makes the graph.
    if "drawing" in table or "walls" in table:
        raise TaskError(
            f"{where}: expected a navigation graph, found a building of the traffic editor: "
            "`ros2 run rmf_building_map_tools building_map_generator nav` makes the graph from it",
            path,
        )

    graph = NavGraph([])
    for i, place in enumerate(places):
        x, y, options = _entry(
            place, f"{where}.vertices[{i}]", "[x, y, {…}] in m", float, path
        )
        graph.places.append((float(x), float(y)))
        if options.get("name"):
            graph.names[str(options["name"])] = i

    for k, lane in enumerate(lanes):
        here = f"{where}.lanes[{k}]"
        a, b, options = _entry(lane, here, "[from, to, {…}]", int, path)
        if not 0 <= min(a, b) <= max(a, b) < len(graph.places):
            raise TaskError(
                f"{here}: expected two places from 0 to {len(graph.places) - 1}, found {a} and {b}",
                path,
            )

        ways = [(a, b), (b, a)] if options.get("is_bidirectional") else [(a, b)]
        for way in ways:
            graph.lanes.setdefault(way[0], []).append(way[1])
            if options.get("mutex"):
                graph.mutex[way] = str(options["mutex"])

    return graph


def _entry(
    entry: Any, where: str, expected: str, kind: type[Any], path: str | Path
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the two numbers of a vertex or a lane, and its options.

    Parameters
    ----------
    entry : object
        Entry of the file: a list of two numbers and a mapping. Further values are
        ignored.
    where : str
        Path of the entry, for the error.
    expected : str
        Form of the entry, for the error.
    kind : type
        `float` for coordinates, m; `int` for numbers of places.
    path : str or Path
        File, for the error.

    Raises
    ------
    TaskError
        The entry has another form.
    """
    # JSON and YAML booleans are integers in Python, so the check below excludes them.
    kinds = (int,) if kind is int else (int, float)
    if not (isinstance(entry, list) and len(entry) >= 2):
        raise TaskError(f"{where}: expected {expected}, found {brief(entry)}", path)
    a, b, *rest = entry
    if not all(
        isinstance(v, kinds) and not isinstance(v, bool) and abs(v) <= MAX_NUMBER
        for v in (a, b)
    ):
        raise TaskError(f"{where}: expected {expected}, found {brief(entry)}", path)

    return a, b, next((one for one in rest if isinstance(one, dict)), {})


def task_of_graph(
    graph: NavGraph,
    routes: Sequence[Sequence[str]],
    vehicle: Vehicle | None = None,
    *,
    longest: float = 8.0,
    name: str = "graph",
) -> Task:
    """Make the task of robots that drive from place to place on shortest paths.

    Sectors conflict if disks would touch (see `task_of_paths`), or if their lanes
    belong to the same mutex group.

    Parameters
    ----------
    graph : NavGraph
        Places and lanes.
    routes : sequence of sequences of str
        Places that each robot visits, by names or numbers, at least two.
    vehicle : Vehicle, optional
        Radius and motion limits of all robots. Default: the default of `task_of_paths`.
    longest : float
        Greatest length of a sector, m.
    name : str
        Name of the task.

    Raises
    ------
    TaskError
        A place is unknown, no path exists, or a route has only one place.
    """
    ways = []
    for i, stops in enumerate(routes):
        places = [graph.find(s) for s in stops]
        if len(places) < 2 or any(a == b for a, b in itertools.pairwise(places)):
            raise TaskError(
                f"route {i}: expected at least two places, each different from the previous one, "
                f"found {', '.join(stops)}",
                name,
            )

        way = places[:1]
        for a, b in itertools.pairwise(places):
            way += graph.shortest_path(a, b)[1:]
        ways.append(way)

    paths: list[F8] = [np.array([graph.places[p] for p in way]) for way in ways]
    task = task_of_paths(paths, vehicle, longest=longest, name=name)
    groups: dict[str, list[tuple[int, int]]] = {}
    for i, (way, v, path) in enumerate(zip(ways, task.vehicles, paths, strict=True)):
        along = Path2(path).along
        begin = np.concatenate([[0.0], v.ends[:-1]])
        for k, lane in enumerate(itertools.pairwise(way)):
            if (group := graph.mutex.get(lane)) is not None:
                # The tolerance keeps out a sector that only touches the end of the
                # lane.
                inside = np.flatnonzero(
                    (begin < along[k + 1] - 1e-9) & (v.ends > along[k] + 1e-9)
                )
                groups.setdefault(group, []).extend((i, int(s)) for s in inside)

    more = [
        (i, s, j, m)
        for members in groups.values()
        for i, s in members
        for j, m in members
        if i != j
    ]
    # Two sectors can conflict by distance and by group; list the pair once.
    listed: I8 = np.unique(
        np.concatenate([task.listed, np.array(more, np.int64).reshape(-1, 4)]), axis=0
    )
    return Task(task.vehicles, listed, (), name)


__all__ = ["NavGraph", "read_graph", "task_of_graph"]
