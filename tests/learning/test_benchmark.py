"""The benchmark of navigation:

its measures, its repeatability, and its errors for faulty policies.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from botyard.cli.main import main
from botyard.errors import ArgumentError
from botyard.learning.baselines import BASELINES, Straight
from botyard.learning.benchmark import (
    CLASSES,
    LEAST_M,
    MAX_STEPS,
    Setup,
    digest_of,
    run,
    task_of,
)
from botyard.navigation.walls import distances_to

CODE = """
import numpy as np

class Still:
    def __init__(self, setup):
        self.n = setup.worlds
    def act(self, observations):
        return np.zeros((self.n, 2))

class Wrong(Still):
    def act(self, observations):
        return np.zeros(3)

class Raises(Still):
    def act(self, observations):
        return 1 / 0

class Exits(Still):
    def act(self, observations):
        raise SystemExit(0)

class Ragged(Still):
    def act(self, observations):
        return [[0, 0], [0]]

class InNumpy(Still):
    def act(self, observations):
        return np.concatenate([np.zeros(2), np.zeros((2, 2))])

class WrongWalls(Still):
    def __init__(self, setup):
        setup.truth.near_walls(reach=-1.0)

class NoAct:
    def __init__(self, setup):
        pass

class NoSetup(Still):
    def __init__(self):
        pass

number = 3
"""


def line_of(part: str) -> int:
    """Return the number of the line of `CODE` that contains a text."""
    return next(
        number for number, line in enumerate(CODE.splitlines(), 1) if part in line
    )


def call(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "navigation", *args])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("straight", "crowds"), ("dwa", "clutter"), ("vfh", "rooms"), ("orca", "crowds")],
)
def test_results_do_not_depend_on_threads_or_on_other_worlds(
    name: str, kind: str
) -> None:
    few = run(BASELINES[name], kind, 3)
    assert digest_of(run(BASELINES[name], kind, 3, threads=2)) == digest_of(few)
    assert run(BASELINES[name], kind, 2, first=2)[0] == few[2]
    assert run(BASELINES[name], kind, 5)[:3] == few, (
        "maps and episodes are functions of the number of the world"
    )


def test_another_seed_gives_other_worlds() -> None:
    assert digest_of(run(Straight, "crowds", 3, seed=2)) != digest_of(
        run(Straight, "crowds", 3)
    )


class Recorded(Straight):
    """A policy that records every step."""

    made: ClassVar[list[Recorded]] = []

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.way: list[Any] = []
        self.made.append(self)

    def act(self, observations: Any) -> Any:
        w = self.setup.truth
        near = distances_to(w.near_walls(reach=20.0, count=64), w.pose[:, :, :2])[:, 0]
        self.way.append((w.pose.copy(), w.vel[:, 0, 2].copy(), near, w.tick.copy()))
        return super().act(observations)


def test_numbers_are_those_of_the_way() -> None:
    results = run(Recorded, "crowds", 3)
    driver = Recorded.made.pop()
    goals = driver.setup.goals
    assert {r.outcome for r in results} <= {"goal", "collision", "timeout"}
    for i, r in enumerate(results):
        steps = round(r.time_s / 0.1)
        pose = np.array([p[i] for p, *_ in driver.way] + [driver.setup.truth.pose[i]])[
            : steps + 1
        ]
        assert math.dist(pose[0, 0, :2], goals[i]) >= LEAST_M
        assert (math.dist(pose[-1, 0, :2], goals[i]) < 0.5) == (r.outcome == "goal")
        assert r.way_m == pytest.approx(
            np.hypot(*np.diff(pose[:, 0, :2], axis=0).T).sum()
        )
        turns = [v[i] for _, v, *_ in driver.way] + [driver.setup.truth.vel[i, 0, 2]]
        assert r.turning == pytest.approx(
            np.abs(np.diff(turns[: steps + 1])).mean() / 0.1
        )
        people = (
            np.linalg.norm(pose[1:, 1:, :2] - pose[1:, :1, :2], axis=2).min()
            - 0.2
            - 0.25
        )
        walls = min(n[i] for _, _, n, _ in driver.way[1:steps]) - 0.2
        assert r.clearance_m <= max(0.0, min(people, walls)) + 1e-9
        assert r.clearance_m >= min(people, walls) - 0.11, (
            "but for the last step, in which it goes at most 0.1 m"
        )


def test_who_stands_comes_nowhere_and_who_goes_straight_hits_pillars() -> None:
    class Still(Straight):
        def act(self, observations: Any) -> Any:
            return np.zeros((self.setup.worlds, 2))

    still = run(Still, "clutter", 3)
    assert {(r.outcome, r.time_s, r.way_m) for r in still} == {
        ("timeout", 60.0, 0.0)
    } and MAX_STEPS == 600
    assert "collision" in {r.outcome for r in run(Straight, "clutter", 6)}
    assert sum(r.outcome == "goal" for r in run(BASELINES["vfh"], "clutter", 6)) >= 5


def test_wrong_policies_and_arguments() -> None:
    with pytest.raises(ArgumentError, match="kind: expected"):
        task_of("forest", [0])
    with pytest.raises(ArgumentError, match="count: expected"):
        run(Straight, "rooms", 0)

    class Nan(Straight):
        def act(self, observations: Any) -> Any:
            return np.full((self.setup.worlds, 2), np.nan)

    with pytest.raises(ArgumentError, match="act: expected finite numbers"):
        run(Nan, "rooms", 2)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CODE)
    assert (
        call(
            "-p",
            "straight",
            "-p",
            "mine.py:Still",
            "-n",
            "6",
            "--json",
            "--csv",
            "rows.csv",
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["policies"]["straight"]["digest"] == digest_of(
        [r for kind in CLASSES for r in run(Straight, kind, 2)]
    )
    still = {row["class"]: row for row in told["policies"]["mine.py:Still"]["rows"]}
    assert list(still) == [*CLASSES, "all"] and still["all"]["worlds"] == 6
    assert still["clutter"]["success"][0] == 0.0 and still["clutter"]["time_s"] == [
        None,
        None,
        None,
    ]
    assert 0.3 < still["all"]["success"][2] < 0.5, "Wilson's interval for 0 of 6"
    rows = list(csv.DictReader(Path("rows.csv").read_text().splitlines()))
    assert len(rows) == 12 and {row["policy"] for row in rows} == {
        "straight",
        "mine.py:Still",
    }
    assert call("-p", "straight", "-n", "3", "--csv", "rows.csv") == 0, (
        "it replaces its own file"
    )
    out = capsys.readouterr().out
    assert "straight  rooms" in out and "digest" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-n", "10"], "--worlds: expected a multiple of 3"),
        (["-p", "dwq"], 'no policy "dwq"; did you mean "dwa"'),
        (
            ["-p", "mine.py:None_", "-n", "3"],
            "--policy: policy mine.py:None_: ImportError",
        ),
        (["-p", "mine.py:number", "-n", "3"], "expected a class, found 3 (int)"),
        (
            ["-p", "mine.py:Wrong", "-n", "3"],
            r"--policy mine.py:Wrong: act: expected an array of numbers, (1, 2), found",
        ),
        (
            ["-p", "mine.py:Raises", "-n", "3"],
            "--policy mine.py:Raises: ZeroDivisionError",
        ),
        (["-p", "mine.py:Raises", "-n", "3"], "mine.py, line "),
        (["-p", "mine.py:Exits", "-n", "3"], "--policy mine.py:Exits: SystemExit"),
        (
            ["-p", "mine.py:Ragged", "-n", "6"],
            r"--policy mine.py:Ragged: act: expected an array of numbers, (2, 2), found",
        ),
        (
            ["-p", "mine.py:InNumpy", "-n", "3"],
            f"mine.py, line {line_of('concatenate')}, in act)",
        ),
        (
            ["-p", "mine.py:WrongWalls", "-n", "3"],
            f"mine.py, line {line_of('near_walls')}, in __init__)",
        ),
        (
            ["-p", "mine.py:NoAct", "-n", "3"],
            "policy: expected a class with a method act(), found NoAct without one",
        ),
        (
            ["-p", "mine.py:NoSetup", "-n", "3"],
            "NoSetup.__init__() takes 1 positional argument but 2 were given\n",
        ),
        (
            ["-p", "leaves.py:P", "-n", "3"],
            "--policy: policy leaves.py:P: ImportError: SystemExit: 0 (",
        ),
        (["-p", "leaves.py:P", "-n", "3"], "leaves.py, line 2, in <module>)"),
        (["-p", "broken.py:P", "-n", "3"], "broken.py, line 1)"),
        (["--csv", "no/such.csv"], "--csv: cannot write no/such.csv"),
        (["--csv", "mine.py"], "--csv: "),
    ],
)
def test_what_the_command_refuses(
    args: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CODE)
    Path("leaves.py").write_text("import sys\nsys.exit(0)\n")
    Path("broken.py").write_text("class P(\n")
    assert call(*args) == 255
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("form", [["--json"], []])
def test_results_of_others_are_there_when_a_policy_fails(
    form: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name with a comma is one cell of the table."""
    monkeypatch.chdir(tmp_path)
    Path("a,b.py").write_text(CODE)
    args = [
        "-p",
        "a,b.py:Still",
        "-p",
        "a,b.py:Raises",
        "-p",
        "straight",
        "-n",
        "3",
        "--csv",
        "rows.csv",
        *form,
    ]
    assert call(*args) == 255
    told = capsys.readouterr()
    assert "--policy a,b.py:Raises: ZeroDivisionError" in told.err
    if form:
        assert list(json.loads(told.out)["policies"]) == ["a,b.py:Still"]
    else:
        assert "a,b.py:Still  rooms" in told.out and "a,b.py:Still: digest " in told.out

    rows = list(csv.DictReader(Path("rows.csv").read_text().splitlines()))
    assert [(row["policy"], row["class"], row["outcome"]) for row in rows] == [
        ("a,b.py:Still", kind, "timeout") for kind in CLASSES
    ]
    assert not any(None in row for row in rows)


def test_a_study_has_the_worlds_of_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = (Path(__file__).parents[2] / "examples/study/navigation.yaml").read_text()
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(
        plan.replace("seeds: 100", "seeds: 2").replace(
            "[rooms, clutter, crowds]", "[crowds]"
        )
    )
    with pytest.raises(SystemExit) as ended:
        main(["study", "plan.yaml", "-n", "1"])
    assert not ended.value.code
    (table,) = Path("plan-results").glob("table.*")
    rows = (
        list(csv.DictReader(table.read_text().splitlines()))
        if table.suffix == ".csv"
        else pq_rows(table)
    )
    for name in ("straight", "vfh"):
        mine = [row for row in rows if row["policy"] == name]
        wanted = run(BASELINES[name], "crowds", 2)
        assert [row["outcome"] for row in mine] == [r.outcome for r in wanted]
        assert [float(row["clearance"]) for row in mine] == [
            r.clearance_m for r in wanted
        ]


def pq_rows(path: Path) -> list[dict[str, Any]]:
    pq = pytest.importorskip("pyarrow.parquet")
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def test_a_policy_changes_neither_worlds_nor_goals_nor_what_has_ended() -> None:
    """Its actions for ended worlds have no effect, not even NaN."""

    class Cheat(Straight):
        def __init__(self, setup: Setup) -> None:
            super().__init__(setup)
            setup.goals[:] = 0.0
            for name in ("reset", "step", "command", "state", "param"):
                assert not hasattr(setup.truth, name)
            for array in (
                setup.truth.pose,
                setup.truth.vel,
                setup.truth.contact,
                setup.truth.tick,
            ):
                # The arrays are copies, so this must not change the worlds.
                array[:] = 1

            with pytest.raises(AttributeError):
                setup.truth.pose = np.zeros((setup.worlds, 1, 3))  # type: ignore[misc]
            self.setup, self.over = setup, np.zeros(setup.worlds, bool)

        def act(self, observations: Any) -> Any:
            self.over |= self.setup.truth.contact[:, 0] != 0
            return np.where(self.over[:, None], np.nan, super().act(observations))

    assert run(Cheat, "rooms", 4) == run(Straight, "rooms", 4)
