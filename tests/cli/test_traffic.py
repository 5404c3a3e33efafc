"""``botyard traffic`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from botyard.cli.main import program
from botyard.errors import BotyardError, CommandLineError
from botyard.traffic.gantt import _figure, chart_of
from botyard.traffic.generate import generate


def traffic(*args: str | Path) -> Result:
    return CliRunner().invoke(
        program, ["traffic", *map(str, args)], standalone_mode=False
    )


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "four.json"
    done = traffic("generate", "deadlock", "-n", "4", "-o", path)
    assert "four.json: 4 robots, 36 sectors, 12 conflicts" in done.output
    return path


def test_a_run_and_what_it_writes(task: Path, tmp_path: Path) -> None:
    tables = ("--csv", tmp_path / "t.csv", "--sectors", tmp_path / "s.csv")
    done = traffic(
        "run",
        task,
        "--result",
        tmp_path / "r.json",
        "--events",
        tmp_path / "e.jsonl",
        *tables,
    )
    assert done.return_value == 0
    assert done.stdout.startswith("completed in 44.960 s\n4 of 4 robots finished")
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["outcome"], result["deadlock_cycle"]) == ("completed", [])
    assert result["makespan_s"] == pytest.approx(44.96, abs=0.01)
    lines = [
        json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()
    ]
    assert lines == result["events"]
    assert set(lines[0]) == {"t", "robot", "kind", "sector"}
    assert {e["kind"] for e in lines} == {
        "critical",
        "enter",
        "release",
        "grant",
        "stop",
        "start",
        "finish",
    }
    rows = (tmp_path / "t.csv").read_text().splitlines()
    assert rows[0] == "robot,done,completion_s,waited_s,stops"
    assert len(rows) == 5
    sectors = (tmp_path / "s.csv").read_text().splitlines()
    assert sectors[0] == "robot,sector,visits,occupied_s,share"
    assert len(sectors) == 1 + 12, "three of each robot's sectors conflict with others"
    metrics = result["metrics"]
    assert 2.0 < metrics["robots_on_the_move"] < 4.0
    assert 0.0 < metrics["busiest_sector_share"] < 0.5
    assert metrics["grants"] == 32
    assert metrics["sum_of_completion_times_s"] == pytest.approx(
        sum(float(r.split(",")[2]) for r in rows[1:]), abs=1e-4
    )


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (
            ["--supervisor", "fcfs"],
            11,
            "deadlock at 12.167 s: robots 0 → 1 → 2 → 3 → 0 wait for each other",
        ),
        (["--supervisor", "dummy"], 10, "collision of robots 0 and 1 at 11.625 s"),
        (
            ["--supervisor", "none"],
            11,
            "the supervisor grants no sector that robots wait for",
        ),
        (["--time-limit", "5"], 12, "ended as unfinished at 5.000 s"),
        (
            ["--supervisor", "dummy", "--on-collision", "continue"],
            10,
            "collision of robots 0 and 1",
        ),
        (["--compat", "--supervisor", "fcfs"], 11, "deadlock at"),
        (
            [
                "--supervisor",
                "chained",
                "--stop-at-end",
                "--leaves",
                "--latency",
                "0.1",
            ],
            0,
            "completed in",
        ),
    ],
)
def test_how_it_ends_is_the_exit_status(
    task: Path, options: list[str], status: int, text: str
) -> None:
    done = traffic("run", task, *options)
    assert (done.return_value, done.exception) == (status, None)
    assert text in done.output


def test_permissions_by_a_script(task: Path, tmp_path: Path) -> None:
    grants = tmp_path / "grants.json"
    grants.write_text(json.dumps([[-1, 0], [-1, 0], [9, 1]]))
    for mode in ([], ["--compat"]):
        done = traffic(
            "run", task, "--grants", grants, "--result", tmp_path / "r.json", *mode
        )
        assert done.return_value == 11
        events = json.loads((tmp_path / "r.json").read_text())["events"]
        assert [(e["t"], e["robot"]) for e in events if e["kind"] == "grant"] == [
            (0.0, 0),
            (0.0, 0),
            (1.0, 1),
        ]
        assert (
            max(e["sector"] for e in events if e["robot"] == 0 and e["kind"] == "enter")
            == 2
        )

    for bad in ("5", "[[0]]", "[[-2, 0]]", "[[0, 4]]", "[[true, 0]]", "{"):
        grants.write_text(bad)
        with pytest.raises(BotyardError, match="--grants"):
            raise traffic("run", task, "--grants", grants).exception or AssertionError


def test_by_robots_of_the_other_engine(task: Path, tmp_path: Path) -> None:
    done = traffic("run", task, "--on-robots", "p3dx", "--knows", "odometry", "--json")
    assert done.return_value == 0
    assert 44.0 < json.loads(done.stdout)["makespan_s"] < 55.0
    with pytest.raises(BotyardError, match="cannot be combined with"):
        raise (
            traffic(
                "run", task, "--on-robots", "p3dx", "--replay", tmp_path / "x.html"
            ).exception
            or AssertionError
        )


def test_tasks_of_drawings_and_plans(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="M 0 500 H 2000"/><path d="M 1000 0 V 1000"/></svg>'
    )
    done = traffic("convert", tmp_path / "a.svg", tmp_path / "a.json")
    assert "2 robots" in done.output
    assert traffic("run", tmp_path / "a.json").return_value == 0
    (tmp_path / "a.map").write_text(
        "type octile\nheight 3\nwidth 3\nmap\n...\n...\n...\n"
    )
    (tmp_path / "a.scen").write_text(
        "version 1\n0 a.map 3 3 0 1 2 1 2\n0 a.map 3 3 1 0 1 2 2\n"
    )
    assert (
        "2 robots, 6 sectors, 1 conflicts"
        in traffic(
            "convert", tmp_path / "a.scen", tmp_path / "s.json", "-n", "2"
        ).output
    )
    (tmp_path / "nav.yaml").write_text(
        "levels: {L1: {vertices: [[0, 0], [9, 0], [9, 9]], lanes: [[0, 1], [1, 2]]}}"
    )
    assert (
        "1 robots"
        in traffic(
            "convert", tmp_path / "nav.yaml", tmp_path / "n.json", "--route", "0, 2"
        ).output
    )
    with pytest.raises(BotyardError, match="--route"):
        raise (
            traffic("convert", tmp_path / "nav.yaml", tmp_path / "n.json").exception
            or AssertionError
        )

    (tmp_path / "plan.txt").write_text(
        "Agent 0: (0,0)->(1,0)->(2,0)\nAgent 1: (1,-2)->(1,-1)->(1,-1)->(1,0)->(1,1)\n"
    )
    assert (
        "2 robots, 7 sectors, 1 conflicts"
        in traffic("convert", tmp_path / "plan.txt", tmp_path / "b.json").output
    )
    assert json.loads((tmp_path / "b.json").read_text())["Order"]
    assert (
        traffic("run", tmp_path / "b.json", "--supervisor", "order").return_value == 0
    )


def test_a_result_as_text(task: Path) -> None:
    done = traffic("run", task, "--json", "--supervisor", "fcfs")
    result: Any = json.loads(done.stdout)
    assert result["deadlock_cycle"] == [0, 1, 2, 3]
    assert result["waiting"][0] == {"robot": 0, "sector": 4, "for": [1]}
    assert "events" not in result


def test_a_list_of_supervisors() -> None:
    done = traffic("supervisors")
    for name in ("none", "dummy", "fcfs", "priority", "chained", "bankers", "order"):
        assert f"\n{name} " in done.output
    assert "no collision; no deadlock" in done.output


def test_check(task: Path, tmp_path: Path) -> None:
    done = traffic("check", task)
    assert done.return_value == 0
    assert "the start is safe" in done.output
    assert "can be solved" in done.output
    lane = tmp_path / "lane.json"
    sectors = [{"Endpoint": 3 * (k + 1), "Colliding": [[1, 2 - k]]} for k in range(3)]
    back = [{"Endpoint": 3 * (k + 1), "Colliding": [[0, 2 - k]]} for k in range(3)]
    lane.write_text(
        json.dumps(
            {"NumberOfVehicles": 2, "Vehicles": {"Vehicle0": sectors, "Vehicle1": back}}
        )
    )
    done = traffic("check", lane)
    assert done.return_value == 11
    assert "robots 0, 1 cannot finish one after another" in done.output
    assert "cannot be solved in any order of moves" in done.output


def test_charts(task: Path, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    traffic("run", task, "--result", result, "--gantt", tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().lstrip().startswith("<?xml")
    assert traffic("gantt", result).output.strip() == str(tmp_path / "r.svg")
    traffic("gantt", result, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<svg" in page
    assert "sum of completion times s" in page
    for bad, text in (
        (tmp_path / "x.bmp", "expected one of the suffixes"),
        (tmp_path / "no" / "x.svg", "cannot write"),
    ):
        with pytest.raises(BotyardError, match=text):
            raise traffic("gantt", result, "-o", bad).exception or AssertionError

    with pytest.raises(BotyardError, match="expected a result"):
        raise traffic("gantt", task).exception or AssertionError


def test_what_a_chart_shows() -> None:
    rows = [
        {"t": 1.0, "robot": 0, "kind": "critical", "sector": 1},
        {"t": 1.0, "robot": 0, "kind": "stop", "sector": 0},
        {"t": 3.0, "robot": 0, "kind": "start", "sector": 0},
        {"t": 4.0, "robot": 0, "kind": "enter", "sector": 1},
        {"t": 5.0, "robot": 0, "kind": "release", "sector": 0},
        {"t": 6.0, "robot": 0, "kind": "finish", "sector": 1},
        {"t": 6.0, "robot": 0, "kind": "stop", "sector": 1},
    ]
    chart = chart_of(rows, 1, 8.0)
    assert chart.goes == [(0, 0.0, 1.0), (0, 3.0, 6.0)]
    assert chart.waits == [(0, 1.0, 3.0)]
    assert chart.sectors == [(0, 0, 0.0, 5.0), (0, 1, 4.0, 8.0)]
    assert chart.asks == [(0, 1.0)]


@pytest.mark.parametrize("robots", [1, 454, 3000])
def test_charts_of_many_robots_are_no_larger_than_pictures_can_be(robots: int) -> None:
    figure = _figure(chart_of([], robots, 8.0))
    width, height = figure.get_size_inches()
    assert width * height * figure.dpi**2 < 20e6, "pixels"
    assert len(figure.axes[0].get_yticks()) == {1: 1, 454: 454, 3000: 429}[robots], (
        "every seventh of 3000 has its name"
    )


def test_a_comparison_is_a_table_that_names_deadlocks(tmp_path: Path) -> None:
    done = traffic(
        "compare",
        "-f",
        "deadlock,warehouse",
        "-n",
        "4",
        "--seeds",
        "2",
        "-s",
        "fcfs,bankers",
        "--processes",
        "1",
        "--csv",
        tmp_path / "all.csv",
        "--json",
        tmp_path / "all.json",
    )
    lines = done.output.splitlines()
    assert lines[0].split()[:4] == ["family", "robots", "supervisor", "runs"]
    assert lines[1].split()[:7] == ["deadlock", "4", "fcfs", "2", "0", "2", "0"]
    assert lines[2].split()[:7] == ["deadlock", "4", "bankers", "2", "2", "0", "0"]
    assert (
        "deadlock of 4, seed 1, fcfs: deadlock at 12.167 s: robots 0 → 1 → 2 → 3 "
        "→ 0 wait for each other" in done.output
    )
    rows = json.loads((tmp_path / "all.json").read_text())
    assert len(rows) == 8
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 9
    assert next(r for r in rows if r["outcome"] == "deadlock")["cycle"] == "0 1 2 3"


def test_a_comparison_in_several_processes_is_the_same(tmp_path: Path) -> None:
    generate("corridor", 4).save(tmp_path / "mine.json")
    found = []
    for processes in ("1", "2"):
        cases = ("-f", "ring", "-n", "4", "--seeds", "3", "-s", "chained")
        done = traffic(
            "compare",
            tmp_path / "mine.json",
            *cases,
            "--processes",
            processes,
            "--json",
            tmp_path / "all.json",
        )
        assert done.exception is None
        found.append((tmp_path / "all.json").read_text())

    assert found[0] == found[1]
    assert len(json.loads(found[0])) == 4


def test_a_supervisor_that_raises_ends_a_comparison_with_its_traceback(
    tmp_path: Path,
) -> None:
    (tmp_path / "bad.py").write_text(
        "from botyard.traffic import Supervisor\nclass Bad(Supervisor):\n    def "
        "on_critical(self, robot, sector):\n        1 / 0\n"
    )
    error = traffic(
        "compare",
        "-f",
        "ring",
        "-n",
        "2",
        "--seeds",
        "1",
        "-s",
        f"{tmp_path / 'bad.py'}:Bad",
    ).exception
    assert isinstance(error, CommandLineError)
    assert str(error).startswith(
        f"ring, seed 1, {tmp_path / 'bad.py'}:Bad: ZeroDivisionError: "
    )
    assert "in on_critical" in str(error)


def test_mistakes_on_the_command_line(task: Path) -> None:
    for args, text in (
        (
            ["run", task, "--supervisor", "nobodyy"],
            "expected file.py:Class, module:Class",
        ),
        (["compare", "-s", "x"], "expected file.py:Class, module:Class"),
        (["compare", "-n", "four"], "expected comma-separated numbers"),
        (["generate", "jam"], 'found "jam"'),
        (["run", task.parent / "none.json"], "cannot be read"),
    ):
        with pytest.raises(BotyardError, match=text):
            raise traffic(*args).exception or AssertionError
