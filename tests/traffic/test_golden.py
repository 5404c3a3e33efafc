"""Recordings of the original program:

its exact events in compatibility mode, the closed forms to 1e-6 s in exact mode.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from botyard.cli.main import program
from botyard.traffic.compat import Car, CompatTraffic
from botyard.traffic.engine import Traffic
from botyard.traffic.outcome import Ending
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task, parse_task

pytestmark = pytest.mark.shared
NAMES = [
    "asym2",
    "collide2",
    "cross2",
    "late_grant",
    "no_supervisor",
    "readme3",
    "readme3_prefill",
    "ring4_deadlock",
    "short_sectors",
]
KINDS = {"cp": "critical", "rp": "release", "brake": "stop", "go": "start"}
BRAKING = ["braking_distance_from_acceleration", "braking_distance_from_deceleration"]


@pytest.fixture
def recording(shared: Path) -> Callable[[str], tuple[dict[str, Any], Task]]:
    def read(name: str) -> tuple[dict[str, Any], Task]:
        data = json.loads((shared / "golden" / "mmrs" / f"{name}.json").read_text())
        return data, parse_task(data["task"], name)

    return read


Recording = Callable[[str], tuple[dict[str, Any], Task]]


def test_all_recordings_are_looked_at(shared: Path) -> None:
    assert sorted(p.stem for p in (shared / "golden" / "mmrs").glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_compatibility_mode_does_what_the_original_does(
    recording: Recording, name: str
) -> None:
    data, task = recording(name)
    policy, lockstep = data["policy"], data["lockstep"]
    grants = [
        (-1, robot) for robot, count in policy.get("initial", []) for _ in range(count)
    ]
    grants += [tuple(row) for row in policy.get("script", [])]
    states: list[list[list[Any]]] = []

    def watch(_step: int, cars: list[Car]) -> None:
        states.append(
            [[c.x, c.v, int(c.moving), c.permits, list(c.occupied)] for c in cars]
        )

    run = CompatTraffic(
        task,
        find_supervisor(policy["kind"]),
        latency_steps=policy.get("latency_steps", 1),
        grants=grants,
        watch=watch,
    )
    out = run.run()
    named = ("critical", "enter", "release")
    got = [
        (
            r["t"],
            r["kind"],
            r["robot"],
            r["sector"] if r["kind"] in named else r.get("other"),
        )
        for r in out.events.rows()
    ]
    want = [
        (
            e["t"],
            kind := KINDS.get(e["type"], e["type"]),
            e["robot"],
            e["sector"] if kind in named else e.get("other"),
        )
        for e in lockstep["events"]
    ]
    assert [g[1:] for g in got] == [w[1:] for w in want]
    assert [g[0] for g in got] == pytest.approx([w[0] for w in want], abs=1e-9)
    assert len(states) == len(lockstep["states"]) == lockstep["last_step"] + 1
    for mine, theirs in zip(states, lockstep["states"], strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a[:2] == pytest.approx(b[:2], abs=1e-9)
            assert a[2:] == b[2:]

    assert (out.ending is Ending.COMPLETED) == lockstep["completed"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("braking", BRAKING)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_exact_times(
    recording: Recording, name: str, braking: str, compiled: bool
) -> None:
    data, task = recording(name)
    policy, exact = data["policy"], data["exact"][braking]
    grants = [
        (-1.0, robot)
        for robot, count in policy.get("initial", [])
        for _ in range(count)
    ]
    grants += [((step + 1) * 0.1, robot) for step, robot in policy.get("script", [])]
    rules = Rules(
        original_braking=braking == BRAKING[0], goes_on=True, compiled=compiled
    )
    out = Traffic(task, find_supervisor(policy["kind"]), rules, grants=grants).run()
    rows = [
        r
        for r in out.events.rows()
        if not (r["kind"] == "grant" and r["t"] == 0.0 and "initial" in policy)
    ]
    want = [(e[0], KINDS.get(e[1], e[1]), e[2]) for e in exact["events"]]
    assert [(r["kind"], r["robot"]) for r in rows] == [w[1:] for w in want]
    # The recorded times have six digits.
    assert [r["t"] for r in rows] == pytest.approx(
        [w[0] for w in want],
        abs=1.01e-6,
    )
    assert (out.ending is Ending.COMPLETED) == exact["completed"]


def test_the_deadlock_is_named(recording: Recording) -> None:
    _, task = recording("ring4_deadlock")
    out = Traffic(task, find_supervisor("fcfs")).run()
    assert out.ending is Ending.DEADLOCK
    assert out.cycle == (0, 1, 2, 3)
    assert out.waiting == {0: (2, (1,)), 1: (2, (2,)), 2: (2, (3,)), 3: (2, (0,))}
    for name in ("bankers", "chained", "order"):
        assert Traffic(task, find_supervisor(name)).run().ending is Ending.COMPLETED


@pytest.mark.parametrize("name", NAMES)
def test_recorded_permissions_as_a_script_on_the_command_line(
    recording: Recording, name: str, tmp_path: Path
) -> None:
    """The times of grants suffice to repeat the run under any supervisor; robots at
    rest wait for none.
    """
    data, _ = recording(name)
    (tmp_path / "task.json").write_text(json.dumps(data["task"]))
    events = data["lockstep"]["events"]
    (tmp_path / "grants.json").write_text(
        json.dumps([[e["step"], e["robot"]] for e in events if e["type"] == "grant"])
    )
    args = [
        "traffic",
        "run",
        tmp_path / "task.json",
        "--compat",
        "--grants",
        tmp_path / "grants.json",
        "--result",
        tmp_path / "out.json",
    ]
    done = CliRunner().invoke(program, [*map(str, args)], standalone_mode=False)
    result = json.loads((tmp_path / "out.json").read_text())
    assert [(e["kind"], e["robot"]) for e in result["events"]] == [
        (KINDS.get(e["type"], e["type"]), e["robot"]) for e in events
    ]
    assert [e["t"] for e in result["events"]] == pytest.approx(
        [e["t"] for e in events], abs=1e-9
    )
    expected = (
        "collision" if any(e["type"] == "collision" for e in events) else "deadlock"
    )
    assert result["outcome"] == (
        "completed" if data["lockstep"]["completed"] else expected
    )
    assert result["deadlock_cycle"] == []
    assert (
        done.return_value
        == {"completed": 0, "collision": 10, "deadlock": 11}[result["outcome"]]
    )


def test_a_collision_ends_the_task(recording: Recording) -> None:
    _, task = recording("collide2")
    out = Traffic(task, find_supervisor("dummy")).run()
    assert out.ending is Ending.COLLISION
    assert out.collisions == 1
    assert out.time == pytest.approx(8.548077, abs=1e-6)
    assert out.describe() == "collision of robots 1 and 0 at 8.548 s"
    assert Path(task.name).name == "collide2"
