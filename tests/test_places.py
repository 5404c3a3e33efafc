"""Places and names of many robots equal places and names of robots added one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import botyard
from botyard.app.assembly import _start_poses, about
from botyard.engine.simulation import Engine
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.sim import placement
from botyard.sim.placement import FreePlaces
from botyard.sim.worldfiles import add_at_home

MODELS = ("p3dx", "seekur", "p3at", "amigo", "p3dx-equipped")


def poses(sim: botyard.Simulation) -> list[Pose]:
    return [robot.start for robot in sim.robots.values()]


@pytest.mark.parametrize("scene", ["office", "warehouse", None])
@pytest.mark.parametrize("model", MODELS)
def test_many_places_are_the_places_one_by_one(model: str, scene: str | None) -> None:
    def world() -> botyard.Simulation:
        if scene is None:
            return botyard.Simulation(warn=lambda _: None)
        return botyard.Simulation.load(scene, warn=lambda _: None)

    spec = find_robot(model)
    one_by_one = world()
    for _ in range(30):
        one_by_one.add_robot(spec)

    together = world()
    add_at_home(together, [spec] * 30)

    assert poses(together) == poses(one_by_one)
    assert list(together.robots) == list(one_by_one.robots)


def test_mixed_models_share_a_search_only_with_their_neighbours() -> None:
    specs = [find_robot(m) for m in ("p3dx", "p3dx", "seekur", "p3dx", "seekur")]
    one_by_one, together = botyard.Simulation(), botyard.Simulation()
    for spec in specs:
        one_by_one.add_robot(spec)
    add_at_home(together, specs)
    assert poses(together) == poses(one_by_one)


def test_the_home_of_an_empty_world_is_given_once() -> None:
    scene = botyard.Scene(start=Pose(1.0, 2.0, 0.5))
    sim = botyard.Simulation(scene)
    places = sim.core.places.next(find_robot("p3dx"), 3)
    assert places[0] == Pose(1.0, 2.0, 0.5)
    assert len(set(places)) == 3


def test_the_search_does_not_end_before_all_have_a_place() -> None:
    # The former spiral had 14,641 places.
    sim = botyard.Simulation(botyard.Scene())
    places = sim.core.places.next(find_robot("p3dx"), 30_000)
    assert len(set(places)) == 30_000


def test_large_robots_far_out_have_places_too() -> None:
    sim = botyard.Simulation(botyard.Scene())
    assert len(set(sim.core.places.next(find_robot("seekur"), 8_000))) == 8_000


def test_rings_hold_each_place_once_nearest_first() -> None:
    spiral = FreePlaces(
        botyard.Simulation(botyard.Scene()).core.engine, find_robot("p3dx"), Pose(), 0
    )
    found = spiral.take(2_000)
    # The naive twin: all places of a square, sorted.
    square = [(i, j) for i in range(-40, 41) for j in range(-40, 41)]
    square.sort(key=lambda o: (o[0] ** 2 + o[1] ** 2, o[1] > 0, abs(o[0]), o[0]))
    assert [(p.x, p.y) for p in found] == square[:2_000]


def test_random_places_are_the_places_one_by_one() -> None:
    spec = find_robot("p3dx")
    one_by_one = botyard.Simulation.load("office")
    for k in range(40):
        one_by_one.add_robot(spec, pose=one_by_one.core.places.random(spec, k))
    together = botyard.Simulation.load("office")
    assert together.core.places.random_many(spec, 0, 40) == poses(one_by_one)


def test_starts_of_many_are_the_starts_one_by_one() -> None:
    spec, sim = find_robot("p3dx"), botyard.Simulation.load("office")
    starts = [Pose(3.0, 3.0, 0.1), "random", Pose(5.0, 5.0, 1.0)]
    together = _start_poses(sim, spec, starts, 0, 6)
    for index in range(6):
        (pose,) = _start_poses(sim, spec, starts, index, 1)
        assert pose == together[index]
        sim.add_robot(spec, pose=pose)
    assert together[0] == starts[0]
    assert together[2] == starts[2]
    assert len(set(together)) == 6


def test_a_freed_number_is_used_again() -> None:
    sim = botyard.Simulation()
    spec = find_robot("p3dx")
    for k in range(6):
        sim.add_robot(spec, pose=(k * 1.0, 0.0, 0.0))
    sim.remove_robot("p3dx_003")
    assert sim.core.unique_names("p3dx", 2) == ["p3dx_003", "p3dx_007"]
    # A requested name that is not used stays free.
    assert sim.core.unique_name("p3dx") == "p3dx_003"
    sim.add_robot(spec, pose=(0.0, 5.0, 0.0))
    assert list(sim.robots)[-1] == "p3dx_003"
    sim.add_robot(spec, "p3dx_007", pose=(2.0, 5.0, 0.0))
    assert sim.core.unique_name("p3dx") == "p3dx_008"


def test_an_older_state_has_its_free_numbers_again() -> None:
    sim = botyard.Simulation()
    sim.add_robot("p3dx")
    with_one = sim.save_state()
    for _ in range(3):
        sim.add_robot("p3dx")
    sim.restore(with_one)
    assert sim.core.unique_name("p3dx") == "p3dx_002"


def test_worlds_start_like_a_simulation() -> None:
    models = ["p3dx", "p3dx", "seekur", "p3dx"]
    worlds = botyard.Worlds("office", models, n=1)
    sim = botyard.Simulation.load("office", warn=lambda _: None)
    for model in models:
        sim.add_robot(model)
    for pose, start in itertools.zip_longest(worlds.pose[0], poses(sim)):
        assert pose.tolist() == pytest.approx(list(start))


def test_the_first_line_of_the_log_names_twenty_robots() -> None:
    sim = botyard.Simulation()
    add_at_home(sim, [find_robot("p3dx")] * 25)
    line = about(SimpleNamespace(hub=SimpleNamespace(sim=sim)))
    assert "p3dx_020 (p3dx) and 5 more, seed" in line
    assert "p3dx_021" not in line


def test_robots_added_one_by_one_do_not_search_the_places_of_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Pose] = []
    trial = Engine.trial

    def counted(self: Engine, *args: Any, **options: Any) -> Callable[[Pose], bool]:
        is_free = trial(self, *args, **options)
        return lambda pose: tried.append(pose) or is_free(pose)  # type: ignore[func-returns-value]

    monkeypatch.setattr(Engine, "trial", counted)
    sim = botyard.Simulation()
    for _ in range(40):
        sim.add_robot("p3dx")
    # The place of the previous robot, and the next one.
    assert len(tried) <= 2 * 40


def leave(sim: botyard.Simulation) -> None:
    sim.remove_robot("p3dx_004")


def move(sim: botyard.Simulation) -> None:
    sim.put("p3dx_003", (30.0, 30.0, 0.0))
    sim.step()


def fade(sim: botyard.Simulation) -> None:
    sim.robots["p3dx_002"].ghost(True)
    sim.step()


def wall(sim: botyard.Simulation) -> None:
    sim.add_wall((-9.0, 0.5), (9.0, 0.5))


def other_model(sim: botyard.Simulation) -> None:
    sim.add_robot("amigo")


def go_back(sim: botyard.Simulation) -> None:
    state = sim.save_state()
    for _ in range(3):
        sim.add_robot("p3dx")
    sim.restore(state)


@pytest.mark.parametrize("change", [leave, move, fade, wall, other_model, go_back])
def test_remembered_searches_give_the_places_of_fresh_ones(
    change: Callable[[botyard.Simulation], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def places() -> list[list[float]]:
        sim = botyard.Simulation()
        for _ in range(6):
            sim.add_robot("p3dx")
        change(sim)
        for _ in range(6):
            sim.add_robot("p3dx")
        found: list[list[float]] = sim.poses.tolist()
        return found

    found = places()
    monkeypatch.setattr(placement._Grid, "first_for", lambda *_: 0)
    assert found == places()
