"""Paths in the plane:

sectors and conflicts against brute force, motion against the engine, discs independent
of sectors; plans.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.traffic.check import is_safe
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import FAMILIES, generate
from botyard.traffic.geometry import (
    SearchLimit,
    arc,
    paths_of_svg,
    spline,
    task_of_paths,
)
from botyard.traffic.kernels import events as k
from botyard.traffic.motion import Path2, motions, touches
from botyard.traffic.outcome import Ending
from botyard.traffic.plans import read_plan, read_scenario, task_of_plan
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task, TaskError, Vehicle
from tests.traffic.tasks import random_task

CROSS = [np.array([[0.0, 0.0], [20.0, 0.0]]), np.array([[10.0, -10.0], [10.0, 10.0]])]


def between(path: Path2, a: float, b: float, n: int = 60) -> np.ndarray:
    return path.at(np.linspace(a, b, n))


def random_paths(seed: int, n: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        np.cumsum(
            np.concatenate(
                [
                    rng.uniform(0, 15, (1, 2)),
                    rng.uniform(-6, 6, (rng.integers(1, 5), 2)),
                ]
            ),
            axis=0,
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_conflicts_are_those_of_swept_disks(seed: int) -> None:
    """Against points along the paths, dense enough that the error is below the margin."""
    vehicles = [Vehicle(ends=np.ones(1), radius=0.3 + 0.1 * i) for i in range(5)]
    task = task_of_paths(random_paths(seed), vehicles)
    starts, others = task.conflicts
    assert len(task.one_sided) == 0
    curves = [Path2(v.path) for v in task.vehicles if v.path is not None]
    sectors = [
        (i, between(curves[i], a, b))
        for i, v in enumerate(task.vehicles)
        for a, b in zip([0.0, *v.ends], v.ends.tolist(), strict=False)
    ]
    for g, (i, mine) in enumerate(sectors):
        found = set(others[starts[g] : starts[g + 1]].tolist())
        for h, (j, theirs) in enumerate(sectors):
            if i == j:
                assert h not in found
                continue

            gap = (
                np.hypot(*(mine[:, None] - theirs[None]).transpose(2, 0, 1)).min()
                - vehicles[i].radius
                - vehicles[j].radius
            )
            if gap < -0.05:
                assert h in found
            elif gap > 0.1:
                assert h not in found


def test_a_limit_of_pairs_changes_no_task() -> None:
    rng = np.random.default_rng(1)
    paths = [rng.random((20, 2)) * 60.0 for _ in range(8)]
    free, limited = (
        task_of_paths(paths, limit=limit) for limit in (None, SearchLimit(10**6))
    )
    assert len(free.listed) > 100
    assert (free.listed == limited.listed).all()
    for a, b in zip(free.vehicles, limited.vehicles, strict=True):
        assert (a.ends == b.ends).all()
    with pytest.raises(TaskError, match="at most 100 pairs"):
        task_of_paths(paths, limit=SearchLimit(100))


def test_division_is_fine_where_paths_meet_and_coarse_elsewhere() -> None:
    task = task_of_paths(CROSS, longest=20.0)
    ends = task.vehicles[0].ends
    assert ends[-1] == pytest.approx(20.0)
    lengths = np.diff(ends, prepend=0.0)
    critical = {int(s) for r, s, _, _ in task.listed.tolist() if r == 0}
    assert all(1.0 <= lengths[s] < 2.0 for s in critical)
    assert ends[min(critical) - 1] <= 9.0 <= 11.0 <= ends[max(critical)], (
        "disks of 0.5 m meet within 1 m of the crossing"
    )
    assert ends[max(critical)] - ends[min(critical) - 1] < 6.0
    assert lengths[0] > 6.0
    alone = task_of_paths(CROSS[:1], longest=1.0)
    assert alone.vehicles[0].ends.tolist() == [20.0]


@pytest.mark.parametrize("name", ["fcfs", "bankers", "chained"])
@pytest.mark.parametrize("seed", range(8))
def test_no_disks_touch_under_safe_supervisors(name: str, seed: int) -> None:
    """Positions are computed from the events and compared in the plane, independent of
    sectors.
    """
    paths = [
        p + np.array([100.0 * (i // 3), 0.0])
        for i, p in enumerate(random_paths(seed, 6))
    ]
    task = task_of_paths(paths)
    if len(task.start_conflicts):
        pytest.skip("two start in conflicting sectors")
    if name == "bankers" and not is_safe(task):
        pytest.skip("cannot be solved one after the other")
    out = Traffic(task, find_supervisor(name)).run()
    assert out.collisions == 0
    assert touches(out) == []


def test_disks_that_touch_are_found() -> None:
    """Two robots reach a crossing at the same time, and no supervisor stops them."""
    task = task_of_paths(CROSS)
    out = Traffic(task, find_supervisor("dummy"), Rules(goes_on=True)).run()
    free = Traffic(Task(task.vehicles), find_supervisor("dummy")).run()
    assert out.collisions == 1
    (touch,) = touches(free)
    assert (touch.robot, touch.other) == (0, 1)
    # 20 m at 0.65 m/s: at the crossing after 10 m. Their discs meet when both are √½ m
    # before it.
    assert touch.t == pytest.approx((10.0 - math.sqrt(0.5)) / 0.65 + 1.625, abs=0.01)
    with pytest.raises(TaskError, match="a path for every robot"):
        touches(
            Traffic(random_task(1), find_supervisor("dummy"), Rules(goes_on=True)).run()
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_disks_apart(family: str) -> None:
    task = generate(family, 6, 2)
    for name in ("bankers", "chained", "order"):
        assert touches(Traffic(task, find_supervisor(name)).run()) == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("at_end", [False, True])
def test_motion_from_events_is_the_engines(seed: int, at_end: bool) -> None:
    """At each event a robot is at the event's place."""
    task = random_task(seed)
    out = Traffic(task, find_supervisor("bankers"), Rules(stop_at_end=at_end)).run()
    moving = motions(out)
    for row in out.events.rows():
        v = task.vehicles[row["robot"]]
        place = float(moving[row["robot"]].place(np.array([row["t"]]))[0])
        want = {
            "enter": lambda s, v=v: v.ends[s - 1] - v.radius,
            "release": lambda s, v=v: v.ends[s] + v.radius,
            "critical": lambda s, v=v: v.ends[s - 1] - v.radius - v.braking_distance,
            "finish": lambda s, v=v: v.ends[-1],
        }.get(row["kind"])
        if want is not None:
            assert place == pytest.approx(want(row["sector"]), abs=1e-6)

    traffic = Traffic(task, find_supervisor("bankers"), Rules(stop_at_end=at_end))
    traffic.run()
    x, speed = np.zeros(len(task)), np.zeros(len(task))
    k.places(traffic.world, out.time + 100.0, x, speed)
    assert [
        float(m.place(np.array([out.time + 100.0]))[0]) for m in moving
    ] == pytest.approx(x.tolist(), abs=1e-6)


@given(
    st.floats(0.5, 50.0),
    st.floats(-6.0, 6.0),
    st.floats(0.2, 6.2),
    st.sampled_from([0.001, 0.01, 0.1]),
)
def test_arcs_are_as_fine_as_asked(
    radius: float, start: float, sweep: float, tolerance: float
) -> None:
    line = arc((3.0, -2.0), radius, start, sweep, tolerance)
    distance = np.hypot(*(line - np.array([3.0, -2.0])).T)
    assert distance == pytest.approx(np.full(len(line), radius))
    middles = (line[1:] + line[:-1]) / 2
    assert (
        radius - np.hypot(*(middles - np.array([3.0, -2.0])).T)
    ).max() <= tolerance * 1.001
    assert line[0] == pytest.approx(
        [3.0 + radius * math.cos(start), -2.0 + radius * math.sin(start)]
    )


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
        min_size=2,
        max_size=6,
        unique=True,
    )
)
def test_splines_go_through_their_points(points: list[tuple[float, float]]) -> None:
    line = spline(np.array(points), 8)
    for p in points:
        assert (
            np.hypot(*(line - np.array(p)).T).min()
            < 1e-6 * (1 + abs(p[0]) + abs(p[1])) + 1e-4
        )


def test_drawings(tmp_path: Path) -> None:
    path = tmp_path / "hall.svg"
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000">'
        '<line x1="0" y1="500" x2="2000" y2="500" stroke="black"/><path d="M 1000 0 L 1000 1000 C 1000 1500 1500 1500 1500 2000"/></svg>'
    )
    paths = paths_of_svg(path)
    assert paths[0] == pytest.approx(np.array([[0.0, -5.0], [20.0, -5.0]]))
    assert paths[1][0] == pytest.approx([10.0, 0.0])
    assert paths[1][-1] == pytest.approx([15.0, -20.0])
    task = task_of_paths(paths)
    assert Traffic(task, find_supervisor("bankers")).run().ending is Ending.COMPLETED
    for text, message in (
        ("<svg", "not an SVG drawing: unclosed token"),
        ("<svg xmlns='http://www.w3.org/2000/svg'/>", "expected lines to drive along"),
    ):
        path.write_text(text)
        with pytest.raises(TaskError, match=message):
            paths_of_svg(path)

    with pytest.raises(TaskError, match="cannot be read"):
        paths_of_svg(tmp_path / "none.svg")


def test_paths_that_are_none() -> None:
    assert len(task_of_paths([])) == 0
    with pytest.raises(
        TaskError, match="path 0: expected at least two different points"
    ):
        task_of_paths([np.zeros((3, 2))])

    with pytest.raises(TaskError, match="expected one for each of 2 paths, found 1"):
        task_of_paths(CROSS, [Vehicle(ends=np.ones(1))])


PLAN = (
    "Agent 0: (0,0)->(1,0)->(1,0)->(2,0)->(3,0)\nAgent 1: "
    "(2,-1)->(2,0)->(2,1)->(2,2)->(2,2);\nAgent 2: (9,9)->(9,9)\n"
)
LEAGUE = {"start": [[0, 0, "E"], [1, 2, "N"]], "actualPaths": ["F,W,F,F", "F,F,F,W"]}


SEGMENTS = '{"start": [[0, 0, "E"]], "actualPaths": ["[(0,0,0,E,0):%s]"]}'


def test_plans_of_the_league_of_2026(tmp_path: Path) -> None:
    """Start-Kit, Input_Output_Format.md, "Path string format"."""
    path = tmp_path / "plan.json"
    old = {"start": [[0, 0, "E"], [3, 0, "E"]], "actualPaths": ["F,F,W", "W,F,F"]}
    new = {
        "start": old["start"],
        "actualPaths": ["[(0,0,0,E,0):(F 2,W 1)]", "[(0,3,0,E,0):(W 1,F 2)]"],
    }
    plans = []
    for plan in (old, new):
        path.write_text(json.dumps(plan))
        plans.append(read_plan(path))

    assert (
        plans[0]
        == plans[1]
        == [[(0, 0), (1, 0), (2, 0), (2, 0)], [(0, -3), (0, -3), (1, -3), (2, -3)]]
    )
    ticks = "[(0,0,0,0,0):(F 2,W 1)] [(3,0,0,E,2):(F 1, C 3)][(7,0,1,N,0):(F 3)]"
    path.write_text(
        json.dumps(
            {"start": [[0, 0, "E"]], "actualPaths": [ticks], "agentMaxCounter": 3}
        )
    )
    assert read_plan(path) == [[(0, 0)] * 4 + [(1, 0)] * 6 + [(1, 1)]], (
        "a move takes three ticks, beside those of waiting"
    )
    assert task_of_plan(read_plan(path)).order == ((0, 1), (0, 2))


def test_plans_become_tasks_with_an_order(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text(PLAN)
    task = task_of_plan(read_plan(path))
    assert len(task) == 2, "who never moves is no robot"
    assert task.listed.tolist() == [[0, 2, 1, 1], [1, 1, 0, 2]]
    assert task.order == ((0, 1), (1, 1), (1, 2), (0, 2), (1, 3), (0, 3))
    out = Traffic(task, find_supervisor("order")).run()
    assert out.ending is Ending.COMPLETED
    entered = [
        (r["robot"], r["sector"]) for r in out.events.rows() if r["kind"] == "enter"
    ]
    assert entered.index((1, 1)) < entered.index((0, 2))
    path.write_text(json.dumps(LEAGUE))
    assert read_plan(path) == [
        [(0, 0), (1, 0), (1, 0), (2, 0), (3, 0)],
        [(2, -1), (2, 0), (2, 1), (2, 2), (2, 2)],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without gaps"),
        ("Agent 1: (0,0)->(1,0)", "without gaps"),
        ("Agent 0: nowhere", 'found "nowhere"'),
        ("Agent 0: (0,0)->(2,0)", r"agent 0 jumps from \(0, 0\) to \(2, 0\) at step 1"),
        (
            "Agent 0: (0,0)->(1,0)\nAgent 1: (1,1)->(1,0)",
            r"agents 0 and 1 are both at \(1, 0\) at step 1",
        ),
        (
            '{"start": []}',
            "expected a plan of the League of Robot Runners: actualPaths is missing",
        ),
        (
            '{"mapFile": "a.map", "agentFile": "b", "teamSize": 2}',
            "with start: found its input, with mapFile",
        ),
        (
            '{"start": 1, "actualPaths": []}',
            "start: expected an array with an entry for each robot, found 1",
        ),
        (
            '{"start": [[0, 0, "E"]], "actualPaths": []}',
            "expected a path for each of 1 starts",
        ),
        (
            '{"start": [[0, 0, "X"]], "actualPaths": ["F"]}',
            r"start\[0\]: expected \[row, column, E, S, W or N\]",
        ),
        (
            '{"start": [[0]], "actualPaths": ["F"]}',
            r"start\[0\]: expected \[row, column, E, S, W or N\]",
        ),
        (
            '{"start": [[0, 0, "E"]], "actualPaths": [7]}',
            r"actualPaths\[0\]: expected a string of moves, found 7",
        ),
        (
            '{"start": [], "actualPaths": [], "actionModel": "MAPF"}',
            'actionModel: expected MAPF_T, found "MAPF"',
        ),
        (
            '{"start": [], "actualPaths": [], "agentMaxCounter": 0}',
            "agentMaxCounter: expected a number of ticks from 1",
        ),
        (
            SEGMENTS % "(F 1",
            r'\[\(t,row,column,heading,counter\):\(F 10,W 2\)\], found "\[\(0,0,0,E,0\):\(F1\]"',
        ),
        (
            SEGMENTS % "(F)",
            'expected a move and its number of ticks, such as "F 10", found "F"',
        ),
        (SEGMENTS % "(X 1)", 'expected moves F, R, C, W or T, found "X"'),
        (
            SEGMENTS % "(W 999999999)",
            "expected a plan of at most 10000000 steps, found more",
        ),
        (
            SEGMENTS % "(F 1)][(2,0,1,E,0):(F 1)",
            "tick 2: expected the state after the moves before it, tick 1",
        ),
        (
            SEGMENTS % "(F 1)][(1,1,1,E,0):(F 1)",
            r"tick 1: expected the state .* \(0, 1, 0\), found",
        ),
        (
            '{"start": [[0, 0, "E"]], "actualPaths": ["F,X"]}',
            'expected moves F, R, C, W or T, found "X"',
        ),
    ],
)
def test_plans_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.txt"
    path.write_text(text)
    with pytest.raises(TaskError, match=message):
        task_of_plan(read_plan(path))


ARENA = "type octile\nheight 4\nwidth 6\nmap\n@@@@@@\n@....@\n@.T..@\n@@@@@@\n"


def test_scenarios_of_movingai(tmp_path: Path) -> None:
    (tmp_path / "arena.map").write_text(ARENA)
    scen = tmp_path / "arena.scen"
    scen.write_text(
        "version 1\n0\tmaps/arena.map\t6\t4\t1\t2\t4\t2\t5.0\n0\tarena.map\t6\t4\t4\t1\t1\t1\t3.0\n"
    )
    first, second = read_scenario(scen, 2)
    assert first == [(1, 1), (1, 2), (2, 2), (3, 2), (3, 1), (4, 1)] or first == [
        (1, 1),
        (1, 2),
        (2, 2),
        (3, 2),
        (4, 2),
        (4, 1),
    ]
    assert second == [(4, 2), (3, 2), (2, 2), (1, 2)]
    assert first == read_scenario(scen, 1)[0]
    for text, message in (
        ("version 1\n", "at least 1 robots, found 0"),
        ("0 arena.map 6 4 1 x", "expected bucket, map"),
        ("0 no.map 6 4 1 1 2 1 1", "cannot be read"),
        (
            "0 arena.map 6 4 1 1 2 2 1",
            r"arena\.scen:1: no path from \(1, 1\) to \(2, 2\)",
        ),
    ):
        scen.write_text(text)
        with pytest.raises(TaskError, match=message):
            read_scenario(scen, 1)
