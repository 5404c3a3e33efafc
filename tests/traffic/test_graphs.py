"""Navigation graphs of Open-RMF."""

from __future__ import annotations

from pathlib import Path

import pytest

from botyard.traffic import Ending, TaskError, Traffic, find_supervisor
from botyard.traffic.graphs import read_graph, task_of_graph

GRAPH = """
building_name: lab
levels:
  L1:
    lanes:
    - [0, 1, {is_bidirectional: true, graph_idx: 0, mutex: aisle}]
    - [1, 2, {is_bidirectional: true}]
    - [1, 3, {is_bidirectional: false, mutex: ""}]
    - [4, 5, {mutex: aisle}]
    vertices:
    - [0.0, 0.0, {name: dock, is_charger: true}]
    - [20.0, 0.0, {name: ""}]
    - [20.0, 15.0, {name: shelf}]
    - [30.0, 0.0]
    - [0.0, 40.0, {name: west}]
    - [20.0, 40.0, {name: east}]
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "nav.yaml"
    path.write_text(GRAPH)
    return path


def test_ways_and_mutex_groups(graph: Path) -> None:
    read = read_graph(graph)
    assert read.names == {"dock": 0, "shelf": 2, "west": 4, "east": 5}
    assert read.shortest_path(0, 2) == [0, 1, 2]
    assert read.shortest_path(2, 0) == [2, 1, 0]
    task = task_of_graph(read, [["dock", "3"], ["west", "east"]])
    assert [v.ends[-1] for v in task.vehicles] == [30.0, 20.0]
    assert len(task.one_sided) == 0
    conflicting = {(r, s) for r, s, _, _ in task.listed.tolist()}
    begins = {
        0: [0.0, *task.vehicles[0].ends.tolist()],
        1: [0.0, *task.vehicles[1].ends.tolist()],
    }
    assert {(0, s) for s, a in enumerate(begins[0][:-1]) if a < 20.0} <= conflicting, (
        "forty metres apart, but of one group"
    )
    assert all(begins[0][s] < 20.0 for r, s in conflicting if r == 0)
    assert {(1, s) for s in range(len(task.vehicles[1].ends))} <= conflicting
    there = task_of_graph(read, [["dock", "shelf", "dock"]])
    assert there.vehicles[0].ends[-1] == 70.0
    assert Traffic(there, find_supervisor("bankers")).run().ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("levels:", "floors:"), "expected levels"),
        (
            ("[1, 2, {is", "[1, 9, {is"),
            r"levels\.L1\.lanes\[1\]: expected two places from 0 to 5, found 1 and 9",
        ),
        (
            ("[30.0, 0.0]", "[30.0]"),
            r"levels\.L1\.vertices\[3\]: expected \[x, y, {…}\] in m, found \[30\.0\]$",
        ),
        (
            ("[30.0, 0.0]", "[30.0, shelf]"),
            r"levels\.L1\.vertices\[3\]: expected .* found \[30\.0, \"shelf\"\]$",
        ),
        (
            ("[0, 1, {is", "[0, 1.5, {is"),
            r"levels\.L1\.lanes\[0\]: expected \[from, to, {…}\], found \[0, 1\.5, {…}\]$",
        ),
        (
            ("vertices:", "places:"),
            r"levels\.L1: expected lists of vertices and of lanes, found {lanes: …, places: …}",
        ),
        (
            ("\n    vertices:", "\n    walls: []\n    vertices:"),
            "a building of the traffic editor: .*building_map_generator nav",
        ),
        (("levels:", "levels: ["), "not YAML"),
    ],
)
def test_graphs_that_are_none(
    graph: Path, change: tuple[str, str], message: str
) -> None:
    graph.write_text(GRAPH.replace(*change))
    with pytest.raises(TaskError, match=message):
        read_graph(graph)


def test_routes_that_are_none(graph: Path) -> None:
    read = read_graph(graph)
    for routes, message in (
        (
            [["dock", "nowhere"]],
            'place: expected a name of the graph or a number from 0 to ., found "nowhere"',
        ),
        ([["3", "dock"]], "no path from place 3 to place 0"),
        ([["dock"]], "at least two places, each different from the previous one"),
        ([["dock", "west"]], "no path"),
    ):
        with pytest.raises(TaskError, match=message):
            task_of_graph(read, routes)

    with pytest.raises(TaskError, match='level: expected one of L1, found "L9"'):
        read_graph(graph, "L9")
    with pytest.raises(TaskError, match="cannot be read"):
        read_graph(graph.parent / "none.yaml")
