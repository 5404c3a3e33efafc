"""Tasks with robots of the 2-D engine:

the endings of the exact engine, slightly later; odometry errors have their effect.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.errors import WorldError
from botyard.sim.simulation import Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.geometry import arc, spline, task_of_paths
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.outcome import Ending
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task, TaskError, Vehicle
from tests.traffic.tasks import random_task

SIZES = {
    "deadlock": 4,
    "warehouse": 5,
    "crossings": 6,
    "ring": 4,
    "corridor": 4,
    "star": 4,
}


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(
    ("family", "robots"),
    [
        ("deadlock", 4),
        ("warehouse", 5),
        ("crossings", 6),
        ("ring", 4),
        ("corridor", 4),
        ("star", 4),
    ],
)
@pytest.mark.parametrize("name", ["bankers", "fcfs"])
@pytest.mark.parametrize("knows", ["truth", "odometry"])
def test_robots_end_as_the_exact_engine_says(
    family: str, robots: int, name: str, knows: str
) -> None:
    """No robots touch, waits have the same reasons, and the run takes at most a tenth
    longer plus the stops.
    """
    task = generate(family, robots)
    exact = Traffic(task, find_supervisor(name)).run()
    run = RobotTraffic(task, find_supervisor(name), knows=knows)
    out = run.run(900.0)
    assert out.ending is exact.ending
    assert out.cycle == exact.cycle
    if exact.makespan is not None:
        assert out.makespan is not None
        assert exact.makespan - 1.0 < out.makespan < 1.1 * exact.makespan + 3.0
        assert out.metrics["grants"] == exact.metrics["grants"]

    for d in run.drivers:
        if d.done:
            end = d.path.at(np.array([d.path.length]))[0]
            assert (
                math.hypot(*(end - np.array([d.robot.truth.x, d.robot.truth.y]))) < 0.4
            )


def test_curves_are_followed() -> None:
    """Within 10 cm, with a robot whose wheels slip."""
    task = task_of_paths(
        [
            spline(np.array([[0.0, 0.0], [5.0, 2.0], [9.0, -2.0], [14.0, 0.0]])),
            arc((30.0, 0.0), 4.0, 0.0, 2 * math.pi - 0.4),
        ]
    )
    run = RobotTraffic(task, find_supervisor("bankers"), Simulation(step=0.05))
    worst = 0.0
    while run.step() is None:
        for d in run.drivers:
            line = d.path.at(np.linspace(0.0, d.path.length, 2000))
            worst = max(
                worst,
                float(
                    np.hypot(
                        line[:, 0] - d.robot.truth.x, line[:, 1] - d.robot.truth.y
                    ).min()
                ),
            )

    assert worst < 0.12


def test_a_collision_is_one_of_real_robots() -> None:
    task = generate("crossings", 4)
    free = Task(task.vehicles, name="free")
    met = RobotTraffic(task, find_supervisor("dummy")).run(300.0)
    assert met.ending is Ending.COLLISION
    assert "collision of robots" in met.describe()
    head_on = [np.array([[0.0, 0.0], [8.0, 0.0]]), np.array([[8.0, 0.0], [0.0, 0.0]])]
    lane = task_of_paths(head_on, longest=3.0)
    touched = RobotTraffic(Task(lane.vehicles), find_supervisor("dummy")).run(300.0)
    assert touched.ending is Ending.COLLISION, (
        "they do touch, whatever conflicts are listed"
    )
    assert len(free.listed) == 0


def test_what_is_needed() -> None:
    with pytest.raises(TaskError, match="robot 0 has no path in the plane"):
        RobotTraffic(random_task(1), find_supervisor("fcfs"))
    short = Task(
        (Vehicle(ends=np.array([9.0]), path=np.array([[0.0, 0.0], [5.0, 0.0]])),)
    )
    with pytest.raises(
        TaskError, match="expected a path of 9 m, as long as its sectors, found 5 m"
    ):
        RobotTraffic(short, find_supervisor("fcfs"))

    with pytest.raises(WorldError, match="expected odometry or truth"):
        RobotTraffic(generate("star", 2), find_supervisor("fcfs"), knows="nothing")
    assert (
        RobotTraffic(Task(()), find_supervisor("fcfs")).run().ending is Ending.COMPLETED
    )


def test_odometry_that_errs_much_brings_robots_together_or_astray() -> None:
    """A simulation of sectors cannot show this:

    robots with wrong pose estimates are outside their sectors.
    """
    task = generate("ring", 4)
    sim = Simulation(seed=3, odometry_error="random_init")
    run = RobotTraffic(task, find_supervisor("bankers"), sim, knows="odometry")
    run.run(600.0)
    truths = [(d.robot.truth, d.robot.odom_in_world) for d in run.drivers]
    assert max(math.hypot(a.x - b.x, a.y - b.y) for a, b in truths) > 0.01


def test_a_start_in_conflicting_sectors_is_a_collision() -> None:
    paths = [np.array([[0.0, y], [8.0, y]]) for y in (0.0, 3.0)]
    vehicles = tuple(Vehicle(ends=np.array([4.0, 8.0]), path=path) for path in paths)
    task = Task(vehicles, np.array([[1, 0, 0, 0]], np.int64), (), "start")
    out = RobotTraffic(task, find_supervisor("bankers")).run(60.0)
    assert (out.ending, out.collisions, out.time) == (Ending.COLLISION, 1, 0.0)
    assert out.describe() == "collision of robots 0 and 1 at 0.000 s"
