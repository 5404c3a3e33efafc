"""Kinds of runs:

worlds, external programs, traffic; each compared with the same run by hand.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from botyard.errors import MapError
from botyard.sim.simulation import Simulation
from botyard.studies.plan import read_plan
from botyard.studies.run_spec import (
    GoalPart,
    ProgramPart,
    RobotPart,
    Setup,
    TrafficPart,
)
from botyard.studies.runners import BadResultError, Conditions, carry_out
from botyard.testing import near
from botyard.testing.conditions import Scenery
from botyard.testing.observer import TruthLog
from botyard.traffic.compare import Case, run_case
from botyard.traffic.rules import Rules

CI = Path(__file__).resolve().parents[2] / "examples" / "robot_ci"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_world_is_what_the_public_api_makes_of_it(seed: int) -> None:
    setup = Setup(
        map="office",
        robots={"bob": RobotPart(model="p3dx", pose=(4.5, 14.2, 90.0)), "ann": "amigo"},
        controllers={
            "bob": {
                "name": "waypoints",
                "points": [[4.5, 14.2], [8.0, 14.2]],
                "speed": 0.5,
            }
        },
        goal=GoalPart(robot="bob", target=[7.0, 14.2], within=0.3),
        measures=["reached", "time", "distance", "contacts", "clearance", "stall_time"],
    )
    conditions = Conditions(Path(), 40.0)
    found = carry_out(setup, {}, seed, conditions)
    sim = Simulation.load("office", seed=seed)
    sim.add_robot("p3dx", "bob", pose=(4.5, 14.2, math.pi / 2))
    sim.add_robot("amigo", "ann")
    sim.robots["bob"].set_controller(
        "waypoints", points=[[4.5, 14.2], [8.0, 14.2]], speed=0.5
    )
    truth = TruthLog(sim)
    truth.watch_clearance("bob", 5.0)
    goal = near("bob", (7.0, 14.2), 0.3)
    while not goal(Scenery(sim, truth)):
        sim.step()
    one = truth["bob"]
    assert found == {
        "reached": True,
        "time": sim.time,
        "distance": one.distance,
        "contacts": 0,
        "clearance": one.clearance,
        "stall_time": 0.0,
    }
    assert found == carry_out(setup, {}, seed, conditions)


def test_a_goal_that_is_not_reached_is_a_result_and_all_robots_are_measured_without_one() -> (
    None
):
    setup = Setup(
        robots={"bob": "p3dx"},
        goal=GoalPart(robot="bob", target=[9.0, 0.0], within=0.3),
        measures=["reached", "time"],
    )
    assert carry_out(setup, {}, 1, Conditions(Path(), 1.0)) == {
        "reached": False,
        "time": None,
    }
    setup = Setup(
        robots={"bob": "p3dx", "ann": "p3dx"},
        measures=["time", "distance", "clearance"],
    )
    found = carry_out(setup, {}, 1, Conditions(Path(), 1.0))
    assert found.pop("time") == pytest.approx(1.0)
    assert list(found) == [
        "bob.distance",
        "ann.distance",
        "bob.clearance",
        "ann.clearance",
    ]
    setup = Setup(
        robots={"bob": "p3dx"}, controllers={"eve": "wander"}, measures=["time"]
    )
    with pytest.raises(
        BadResultError, match=r'expected one of the robots bob, found "eve"'
    ):
        carry_out(setup, {}, 1, Conditions(Path(), 1.0))


def test_a_robot_may_have_a_model_table(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def ahead(robot):\n    robot.command(v=9)\n")
    (tmp_path / "plan.yaml").write_text(
        "study: 1\nmeasures: [distance]\nlimits: {simulated: 10}\ngrid: {v: [0.2, 0.4]}\n"
        "robots: {bob: {model: {extends: p3dx, limits: {max_speed: [$v, 0, "
        "90]}}}}\ncontrollers: {bob: own.py:ahead}\n"
    )
    plan = read_plan(tmp_path / "plan.yaml")
    found = [
        carry_out(plan.setup_of({"v": v}, 1), {}, 1, Conditions(tmp_path, 10.0))[
            "distance"
        ]
        for v in (0.2, 0.4)
    ]
    assert found == [pytest.approx(2.0, abs=0.2), pytest.approx(4.0, abs=0.4)]


def test_a_controller_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def ahead(robot, *, v):\n    robot.command(v=v)\n"
    )
    setup = Setup(
        robots={"bob": "p3dx"},
        controllers={"bob": {"name": "own.py:ahead", "v": 0.2}},
        measures=["distance"],
    )
    assert carry_out(setup, {}, 1, Conditions(tmp_path, 5.0))[
        "distance"
    ] == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("supervisor", ["bankers", "fcfs"])
def test_traffic_is_what_compare_runs(supervisor: str) -> None:
    part = TrafficPart(task="deadlock", robots=4, supervisor=supervisor, latency=0.1)
    found = carry_out(Setup(traffic=part), {}, 3, Conditions(Path()))
    row = run_case(
        Case("deadlock", 4, 3, supervisor), Rules(latency=0.1, time_limit=1e6, seed=3)
    )
    assert (found["outcome"], found["events"], found["waiting"]) == (
        row.outcome,
        row.events,
        row.waiting,
    )
    assert found["makespan"] == (row.makespan if row.outcome == "completed" else None)


def test_a_program_drives_on_a_port_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    part = ProgramPart(
        command=[sys.executable, str(CI / "driver.py"), "--port", "$port.bob"], speed=10
    )
    setup = Setup(
        map="lab.yaml",
        program=part,
        goal=GoalPart(robot="bob", target="Dock", within=0.4),
        measures=["reached", "time", "distance", "contacts"],
    )
    recording = tmp_path / "run.mcap"
    found = carry_out(setup, {}, 1, Conditions(CI, 60.0), recording)
    assert found["reached"] is True
    assert 3.5 < found["distance"] < 4.5
    assert found["contacts"] == 0
    assert recording.exists()
    found = carry_out(setup, {}, 1, Conditions(CI, 1.0))
    assert (found["reached"], found["time"]) == (False, None)
    part = ProgramPart(
        command=[sys.executable, "-c", "print('broken'); raise SystemExit(3)"],
        speed=10,
        ready=["bob"],
    )
    setup = Setup(map="lab.yaml", program=part, measures=["time"])
    with pytest.raises(AssertionError, match="ended with status 3"):
        carry_out(setup, {}, 1, Conditions(CI, 5.0))
    assert "broken" in capfd.readouterr().out


def test_a_map_that_is_not_there() -> None:
    setup = Setup(map="no-such-map", measures=["time"])
    with pytest.raises(MapError, match="no-such-map"):
        carry_out(setup, {}, 1, Conditions(Path(), 1.0))
