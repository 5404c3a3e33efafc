"""Neighbours of robots against their naive twins: nearest, within a radius, in sight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import botyard
from botyard import ArgumentError, Scene
from botyard.engine.kernels import strips as kernels
from botyard.learning.tasks.geometry import seen_others
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import SpecialWalls
from botyard.sim import neighbours
from tests import naive

F8 = NDArray[Any]
MANY = kernels.FEW + 40
"""Number of points for which strips are made."""


def at(places: Any) -> F8:
    """Return poses at places, (n, 3)."""
    xy = np.array(places, np.float64).reshape(-1, 2)
    return np.column_stack([xy, np.zeros(len(xy))])


def check_nearest(poses: F8, k: int) -> None:
    near, far = neighbours.nearest(poses[None], k)
    expected, distances = naive.nearest(poses, k)
    assert (near[0] == expected).all()
    assert (far[0] == distances).all()


def check_within(poses: F8, radius: float) -> None:
    found = neighbours.within(poses, radius)
    indices, distances = naive.nearest(poses, max(len(poses) - 1, 1))
    inside = distances <= radius
    assert np.diff(found.offsets).tolist() == inside.sum(axis=1).tolist()
    assert (found.indices == indices[inside]).all()
    assert (found.distances == distances[inside]).all()


def arrangements(n: int) -> dict[str, F8]:
    """Points at very different densities."""
    rng = np.random.default_rng(n)
    one_side = rng.random((n, 1)) < 0.5
    return {
        "uniform": rng.uniform(0.0, 9.0, (n, 2)),
        "lattice": np.stack(np.divmod(np.arange(n), 8), axis=1),
        "one place": np.zeros((n, 2)),
        "few places": rng.integers(-1, 2, (n, 2)),
        "column": np.column_stack([np.zeros(n), rng.uniform(0.0, 9.0, n)]),
        "row": np.column_stack([rng.uniform(0.0, 9.0, n), np.zeros(n)]),
        "two crowds": np.where(one_side, 0.0, 1e5) + rng.normal(0.0, 1e-3, (n, 2)),
        "crowd and outliers": np.concatenate(
            [
                rng.normal(0.0, 0.01, (n // 2, 2)),
                rng.uniform(-1e5, 1e5, (n - n // 2, 2)),
            ]
        ),
        "all scales": rng.choice([-1, 1], (n, 2))
        * 10.0 ** rng.uniform(-200, 5, (n, 2)),
    }


@pytest.mark.parametrize("name", arrangements(1))
@pytest.mark.parametrize("n", [2, MANY, 2 * MANY])
def test_neighbours_at_any_density(name: str, n: int) -> None:
    poses = at(arrangements(n)[name])
    for k in (1, 5, n - 1, n, n + 3):
        check_nearest(poses, k)
    for radius in (0.0, 0.3, 2.0, 1e6):
        check_within(poses, radius)


PLACES = st.lists(
    st.tuples(*[st.sampled_from([-0.0, 0.0, 0.1, 0.3, 1e-9]) | st.floats(-50, 50)] * 2),
    min_size=MANY,
    max_size=MANY + 60,
)


@given(PLACES, st.integers(1, 30), st.floats(0.0, 60.0))
@example([(0.0, 0.0), (-0.0, 0.0)] * MANY, 3, 0.0)
@settings(max_examples=25, deadline=None)
def test_neighbours_anywhere(
    places: list[tuple[float, float]], k: int, radius: float
) -> None:
    check_nearest(at(places), k)
    check_within(at(places), radius)


def test_the_number_of_strips_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of all pairs and the search in strips agree, ties included."""
    lattice = at(arrangements(kernels.FEW)["lattice"])
    few = neighbours.nearest(lattice[None], 6)
    # Distant points do not change the result for the lattice, but they require strips.
    far = at([(1e5 + 3.0 * k, 0.0) for k in range(40)])
    many = neighbours.nearest(np.concatenate([lattice, far])[None], 6)
    assert (few[0][0] == many[0][0, : kernels.FEW]).all()
    assert (few[1][0] == many[1][0, : kernels.FEW]).all()


def test_a_crowd_at_one_place_does_not_cost_all_pairs() -> None:
    """A search ends where only later numbers are left at an equal distance."""
    strips = kernels.build_strips(4000)
    poses = np.zeros((4000, 3))
    naive.py(kernels.sort_by_place)(poses, strips)
    naive.py(kernels.cut_into_strips)(poses, strips, 50)
    naive.py(kernels.rewind)(strips)
    seen: list[int] = []

    class Noted(np.ndarray[Any, Any]):
        def __getitem__(self, index: Any) -> Any:
            seen.append(1)
            return super().__getitem__(index)

    noted = strips._replace(y=strips.y.view(Noted))
    naive.py(kernels.collect)(noted, 70, 70 * 50, 1.0, 3, 12)
    assert len(seen) < 1000


def test_threads_share_no_workspace() -> None:
    fleets = [world(60 + 7 * k, size=12.0).fleet for k in range(3)]
    alone = [fleet.nearest(9) for fleet in fleets]
    with ThreadPoolExecutor(3) as threads:
        for _ in range(20):
            found = threads.map(lambda fleet: fleet.nearest(9), fleets)
            for one, other in zip(alone, found, strict=True):
                assert (one[0] == other[0]).all()
                assert (one[1] == other[1]).all()


def world(n: int = 0, seed: int = 0, size: float = 6.0) -> botyard.Simulation:
    sim = botyard.Simulation(warn=lambda _: None)
    if n:
        poses = np.random.default_rng(seed).uniform(0.0, size, (n, 3))
        sim.add_robots("p3dx", poses.tolist())
    return sim


def test_a_fleet_without_robots_or_others() -> None:
    for n in (0, 1):
        fleet = world(n).fleet
        for k in (1, 4):
            near, far = fleet.nearest(k)
            assert near.shape == far.shape == (n, k)
            assert (near == -1).all()
            assert np.isinf(far).all()
        assert fleet.within(5.0).offsets.tolist() == [0] * (n + 1)
        assert fleet.range_and_bearing(5.0).offsets.tolist() == [0] * (n + 1)
        assert not len(fleet.range_and_bearing(5.0).senders)


def test_neighbours_follow_moves_additions_and_removals() -> None:
    sim = world()
    names = [sim.add_robot("p3dx", pose=(4.0 * k, 0.0, 0.0)).name for k in range(60)]
    assert sim.fleet.nearest()[0][0, 0] == 1
    sim.robots[names[40]].command.set_pose(1.5, 0.0)
    sim.step()
    assert sim.fleet.nearest()[0][0, 0] == 40
    assert sim.fleet.within(2.0).indices[0] == 40
    assert sim.fleet.range_and_bearing(2.0).senders[0] == 40
    sim.remove_robot(names[40])
    for found in (sim.fleet.nearest()[0][0, 0], sim.fleet.within(4.5).indices[0]):
        assert found == 1
    assert sim.fleet.range_and_bearing(4.5).senders[0] == 1
    sim.robots[names[1]].command(v=0.5)
    for _ in range(20):
        sim.step()
        away = sim.fleet.poses[1, 0]
        assert sim.fleet.nearest()[1][0, 0] == away
        assert sim.fleet.within(away).distances[0] == away
        assert sim.fleet.range_and_bearing(6.0).ranges[0] == away


@pytest.mark.parametrize("occlusion", ["none", "walls", "all"])
@pytest.mark.parametrize("n", [12, MANY])
def test_links_against_a_naive_twin(n: int, occlusion: Any) -> None:
    rng = np.random.default_rng(n)
    size = 1.2 * n**0.5
    walls = rng.uniform(0.0, size, (n // 2, 4))
    walls[:, 2:] = walls[:, :2] + rng.normal(0.0, 0.5, (n // 2, 2))
    sim = botyard.Simulation(Scene(segments=walls), warn=lambda _: None)
    sim.add_box(
        BoxObject(name="b", pose=botyard.Pose(2.0, 2.0, 0.3), length=1.0, width=0.5)
    )
    poses = rng.uniform(0.0, size, (n, 3))
    sim.add_robots("p3dx", poses.tolist())
    found = sim.fleet.range_and_bearing(4.0, occlusion=occlusion)
    outline = sim.core.engine.specs[sim.core.engine.rows[next(iter(sim.robots))]].parts
    assert len(outline) == 1
    bodies = [(np.array(outline[0]), pose) for pose in sim.fleet.poses]
    bodies.append(
        (
            np.array([(-0.5, -0.25), (0.5, -0.25), (0.5, 0.25), (-0.5, 0.25)]),
            (2.0, 2.0, 0.3),
        )
    )
    expected = naive.links(
        sim.fleet.poses,
        4.0,
        walls if occlusion != "none" else walls[:0],
        bodies if occlusion == "all" else [],
    )
    assert list(zip(found.receivers, found.senders, strict=True)) == [
        (i, j) for i, j, _, _ in expected
    ]
    assert found.ranges == pytest.approx([r for *_, r, _ in expected], abs=1e-9)
    assert found.bearings == pytest.approx([b for *_, b in expected], abs=1e-9)
    # Both see each other, or neither does.
    pairs = set(zip(found.receivers.tolist(), found.senders.tolist(), strict=True))
    assert pairs == {(j, i) for i, j in pairs}


def test_messages_are_received_by_indexing() -> None:
    sim = world()
    sim.add_robots(
        "p3dx", [(0, 0, 0), (2, 0, np.pi / 2), (4, 0, 0), (0, 3, -np.pi / 2)]
    )
    messages = np.array([10, 11, 12, 13])
    links = sim.fleet.range_and_bearing(5.0)
    received = messages[links.senders]
    first = slice(links.offsets[0], links.offsets[1])
    # The robot at 4 m is behind the one at 2 m.
    assert received[first].tolist() == [11, 13]
    assert links.ranges[first].tolist() == [2.0, 3.0]
    assert links.bearings[first] == pytest.approx([0.0, np.pi / 2])
    through = sim.fleet.range_and_bearing(5.0, occlusion="walls")
    assert messages[through.senders[:3]].tolist() == [11, 13, 12]
    # Straight behind is π, as for headings.
    assert through.bearings[through.receivers == 2].tolist()[0] == np.pi


def test_light_passes_through_glass_but_not_through_mass() -> None:
    glass = (SpecialWalls(first=0, last=1, returns=Returns(laser=0)),)
    walls = np.array([[1.0, -5.0, 1.0, 5.0]])
    for special, seen in ((glass, 2), ((), 0)):
        sim = botyard.Simulation(
            Scene(segments=walls, special_walls=special), warn=lambda _: None
        )
        sim.add_robots("p3dx", [(0, 0, 0), (2, 0, 0)])
        assert len(sim.fleet.range_and_bearing(3.0).senders) == seen


def test_robots_at_one_place_are_linked() -> None:
    sim = world()
    for name in ("a", "b"):
        sim.add_robot("p3dx", name, pose=(1.0, 1.0, 0.5))
        sim.robots[name].command.set_pose(1.0, 1.0, 0.5)
    sim.step()
    links = sim.fleet.range_and_bearing(1.0)
    assert links.senders.tolist() == [1, 0]
    assert links.bearings.tolist() == [0.0, 0.0]


def test_wrong_arguments() -> None:
    fleet = world(3).fleet
    for k in (0, -1, 1.5, True, "2", 10_001):
        with pytest.raises(ArgumentError, match="k: expected"):
            fleet.nearest(k)
    for radius in (-1.0, np.nan, np.inf, "2", None, 2e6):
        with pytest.raises(ArgumentError, match="radius: expected"):
            fleet.within(radius)
        with pytest.raises(ArgumentError, match="radius: expected"):
            fleet.range_and_bearing(radius)
    with pytest.raises(ArgumentError, match="occlusion: expected"):
        fleet.range_and_bearing(1.0, occlusion="wall")


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MAX_PAIRS", 20)
    fleet = world(5).fleet
    assert len(fleet.within(100.0).indices) == 20
    fleet = world(6).fleet
    for call in (fleet.within, fleet.range_and_bearing):
        with pytest.raises(ArgumentError, match=r"radius: expected .* have at most 20"):
            call(100.0)


@pytest.mark.parametrize("robots", [2, 5, kernels.FEW + 3])
def test_neighbours_as_observations_of_worlds(robots: int) -> None:
    rng = np.random.default_rng(robots)
    worlds = botyard.Worlds(Scene(), ["p3dx"] * robots, 3)
    poses = rng.uniform(-0.5, 0.5, (3, robots, 3))
    poses[..., :2] += 2.0 * np.stack(np.divmod(np.arange(robots), 7), axis=1)
    worlds.reset(poses=poses)
    worlds.command[..., 0] = rng.uniform(-0.5, 0.5, (3, robots))
    worlds.step(5)
    k = 4
    found = worlds.nearest(k)
    count = min(k, robots - 1)
    for w in range(3):
        near, far = naive.nearest(worlds.pose[w], k)
        assert (found.indices[w] == near).all()
        assert (found.distances[w] == far).all()
        poses, velocities = naive.relate(worlds.pose[w], worlds.vel[w], near)
        assert found.poses[w] == pytest.approx(poses, abs=1e-12)
        assert found.velocities[w] == pytest.approx(velocities, abs=1e-12)

    assert np.isfinite(found.poses).all()
    seen = seen_others(worlds, count, 2.0).reshape(3, robots, count, 4)
    assert (seen[..., :2] == found.poses[:, :, :count, :2] / 2.0).all()
    assert (seen[..., 2:] == found.velocities[:, :, :count, :2]).all()
    with pytest.raises(ArgumentError, match="k: expected"):
        worlds.nearest(0)
