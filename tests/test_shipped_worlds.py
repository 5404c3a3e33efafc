"""The shipped worlds: each loads, drives, and shows what its page in the docs says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from botyard.formats.mapsearch import builtin_maps
from botyard.formats.registry import load_world
from botyard.formats.scenarioplaces import places_in
from botyard.sim.simulation import Simulation

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "name", [name for name, path in builtin_maps().items() if path.suffix == ".yaml"]
)
def test_a_shipped_scenario_is_read_without_a_warning(name: str) -> None:
    notes: list[str] = []
    from botyard.formats.base import Options

    world = load_world(name, Options(warn=notes.append))
    assert world.robots
    assert not notes


@pytest.mark.parametrize(("name", "model"), [("carpark", "sedan"), ("depot", "")])
def test_vehicles_drive_their_loops_without_a_collision(name: str, model: str) -> None:
    sim = Simulation.load(name)
    vehicles = [robot for robot in sim.robots.values() if robot.spec.kinematics.steers]
    assert len(vehicles) >= 4
    travelled = dict.fromkeys((robot.name for robot in vehicles), 0.0)
    for _ in range(120):
        before = {robot.name: robot.truth for robot in vehicles}
        sim.step()
        for robot in vehicles:
            travelled[robot.name] += math.dist(robot.truth[:2], before[robot.name][:2])
            assert not robot.stalled, f"{robot.name} at {robot.truth}"
    assert min(travelled.values()) > 4.0
    assert all(robot.spec.name == model for robot in vehicles if model)


def test_cars_slow_down_at_the_crossing() -> None:
    sim = Simulation.load("carpark")
    taxi = sim.robots["taxi"]
    speeds = []
    for _ in range(150):
        sim.step()
        if sim.floor.under(taxi).speed_limit == 1.4:
            speeds.append(taxi.velocity[0])
    assert speeds[-1] == pytest.approx(1.4)
    assert max(speeds) <= 2.5


def test_500_e_pucks_leave_trails() -> None:
    sim = Simulation.load("swarm")
    assert len(sim.robots) == 500
    first = next(iter(sim.robots.values()))
    assert first.spec.limits.max_speed.x == pytest.approx(0.15457)
    sim.step(3)
    levels = sim.floor.levels("trail")
    # Each pen adds a tenth in each step of 0.1 s, and little has evaporated.
    assert levels.sum() == pytest.approx(500 * 0.3, rel=0.02)
    walls = sim.scene.bounds
    assert walls is not None
    x, y = sim.poses[:, :2].T
    assert walls[0] < x.min() and x.max() < walls[2]
    assert walls[1] < y.min() and y.max() < walls[3]


@pytest.mark.parametrize("count", [1, 2, 7, 500])
def test_places_of_an_area_are_even_and_inside(count: int) -> None:
    places = places_in((1.0, 2.0, 5.0, 4.0), count)
    assert len(set(places)) == len(places) == count
    xy = np.array([p[:2] for p in places])
    assert (xy > (1.0, 2.0)).all() and (xy < (5.0, 4.0)).all()
    if count > 1:
        apart = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        assert apart.min() > 0.6 * math.sqrt(8.0 / count)


@pytest.mark.parametrize(
    "name",
    [
        "airport",
        "deliveries",
        "harbour",
        "maze",
        "museum",
        "orchard",
        "plaza",
        "shift",
        "soccer",
        "supermarket",
    ],
)
def test_robots_of_a_world_drive_and_rarely_touch_things(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[str] = []
    sim = Simulation.load(name, warn=notes.append)
    assert not notes, "no robot starts on something"
    travelled, before, stalls = np.zeros(len(sim.robots)), sim.poses, 0.0
    steps = round(20.0 / sim.dt)
    for _ in range(steps):
        sim.step()
        after = sim.poses
        travelled += np.abs(after - before)[:, :2].sum(axis=1)
        before = after
        stalls += float(sim.fleet.stalled.mean())
    assert not [r.message for r in caplog.records if "no path" in r.getMessage()]
    assert travelled.min() > 0.2, list(sim.robots)[int(travelled.argmin())]
    # Strikers and ball of the soccer field push each other.
    assert stalls / steps < (0.3 if name == "soccer" else 0.02)


def test_the_page_of_worlds_lists_each_one() -> None:
    page = (ROOT / "docs/howto/shipped-worlds.md").read_text("utf-8")
    listed = {
        name
        for row in page.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert listed == set(builtin_maps())
