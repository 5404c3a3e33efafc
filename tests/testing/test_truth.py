"""The true motion of robots, against naive geometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine.kernels.clearance import edge_distance
from botyard.errors import ArgumentError, UnknownNameError, WorldError
from botyard.model.mapbuilder import MapBuilder
from botyard.sim.contacts import WALL
from botyard.sim.simulation import Simulation
from botyard.testing import Coverage, inside, near, stands
from botyard.testing.conditions import Scenery
from botyard.testing.observer import TruthLog
from botyard.testing.paths import path_length, shortest_path
from tests import naive

coordinates = st.integers(-8, 8).map(float)
edges = st.lists(
    st.tuples(coordinates, coordinates, coordinates, coordinates),
    min_size=1,
    max_size=4,
)


def naive_distance(a: list[tuple[float, ...]], b: list[tuple[float, ...]]) -> float:
    """Return the distance by many points on each edge."""
    t = np.linspace(0.0, 1.0, 401)[:, None]
    points = [
        np.concatenate(
            [np.array(e[:2]) + t * (np.array(e[2:]) - np.array(e[:2])) for e in side]
        )
        for side in (a, b)
    ]
    away = points[0][:, None, :] - points[1][None, :, :]
    return float(np.sqrt((away**2).sum(axis=2).min()))


@given(edges, edges)
@settings(max_examples=60)
def test_distance_of_edges(
    a: list[tuple[float, ...]], b: list[tuple[float, ...]]
) -> None:
    found = naive.edge_distance(np.array(a), np.array(b))
    distance = naive.py(edge_distance)
    kernel = min(distance(*one, *other) for one in a for other in b)
    assert kernel == pytest.approx(found, abs=1e-9)
    assert found <= naive_distance(a, b) + 1e-9
    assert found >= naive_distance(a, b) - 0.12, "points are up to 0.06 m apart on each"


def robot_servers() -> Simulation:
    """A square of 10 m with a wall at x = 5."""
    walls = MapBuilder("square")
    walls.rectangle(-5.0, -5.0, 10.0, 10.0)
    return Simulation(walls.scene(), odometry_error="none")


def test_who_touched_what() -> None:
    sim = robot_servers()
    bob = sim.add_robot("p3dx", "bob", pose=(0, 0, 0))
    sim.add_robot("p3dx", "ann", pose=(0, 3, 0))
    sim.add_robot("box", "crate", pose=(2, 3, 0))
    truth = TruthLog(sim)
    truth.watch_clearance("bob", 1.0)
    bob.command(v=0.5)
    sim.robots["ann"].command(v=0.5)
    for _ in range(150):
        bob.command(v=0.5)
        sim.robots["ann"].command(v=0.5)
        sim.step()

    assert [(c.robot, c.other) for c in truth.contacts] == [
        ("ann", "crate"),
        ("bob", WALL),
    ]
    one, two = truth["bob"], truth["ann"]
    assert one.contacts == [truth.contacts[1]] and two.contacts == [truth.contacts[0]]
    assert one.distance == pytest.approx(bob.truth.x, abs=1e-9) and len(one.way) == 151
    front = 5.0 - bob.truth.x
    assert 0.15 < front < 0.3 and one.clearance < 0.01
    at = one.contacts[0].time
    assert one.stall_time == pytest.approx(sim.time - at + sim.dt, abs=0.15)
    with pytest.raises(UnknownNameError, match="known: bob, ann, crate"):
        truth["eve"]


def test_conditions() -> None:
    sim = robot_servers()
    bob = sim.add_robot("p3dx", "bob", pose=(0, 0, 0.5))
    scenery = Scenery(sim, TruthLog(sim))
    assert near("bob", (0.3, 0.4), 0.51)(scenery) and not near("bob", (0.3, 0.4), 0.49)(
        scenery
    )
    assert near("bob", (0, 0, 0.6 + math.tau), 0.1, heading=0.11)(scenery)
    assert not near("bob", (0, 0, 0.6), 0.1, heading=0.09)(scenery)
    with pytest.raises(ArgumentError, match='found "Dock"'):
        near("bob", "Dock", 1.0)(scenery)
    with pytest.raises(ArgumentError, match="has no heading"):
        near("bob", (0, 0), 1.0, heading=1.0)(scenery)
    assert inside("bob", (-1, -1, 1, 1))(scenery) and not inside("bob", (1, 1, 2, 2))(
        scenery
    )
    assert inside("bob", [(-1, -1), (3, 0), (-1, 1)])(scenery) and not inside(
        "bob", [(1, -1), (3, 0), (1, 1)]
    )(scenery)
    with pytest.raises(ArgumentError, match="area"):
        inside("bob", [(1, 2)])
    still = stands("bob", 0.5)
    still.begin(scenery)  # type: ignore[attr-defined]
    held = []
    for k in range(20):
        if k == 5:
            bob.command(v=0.2)
        if k == 8:
            bob.command(v=0.0)
        sim.step()
        held.append(still(scenery))

    assert held[4] and not held[6] and held[-1]


def test_coverage() -> None:
    sim = robot_servers()
    bob = sim.add_robot("p3dx", "bob", pose=(-2, 0, 0))
    scenery = Scenery(sim, TruthLog(sim))
    covered = Coverage("bob", (-2.0, -0.5, 2.0, 0.5), reach=0.75, share=0.9)
    assert covered.share == 0.0
    shares = []
    for _ in range(200):
        bob.command(v=0.3)
        sim.step()
        if covered(scenery):
            break
        shares.append(covered.share)

    assert shares == sorted(shares) and covered.share >= 0.9
    assert 0.85 < bob.truth.x < 1.1, "with what is around it, nine tenths"


def test_the_shortest_way() -> None:
    """Around a wall from (0, -2) to (0, 2), between (-1, 1) and (1, -1): two straight
    lines past its end, a radius away.
    """
    walls = MapBuilder("wall")
    walls.rectangle(-5.0, -5.0, 10.0, 10.0)
    walls.line((0.0, -2.0), (0.0, 5.0))
    scene = walls.scene()
    way = shortest_path(scene, (-2.0, 0.0), (2.0, 0.0), 0.2)
    corner = math.hypot(2.0, 2.2) * 2
    assert corner * 0.98 <= path_length(way) <= corner * 1.03
    assert way[0] == (-2.0, 0.0) and way[-1] == (2.0, 0.0)
    assert min(math.dist((0.0, -2.0), p) for p in way) >= 0.15
    straight = shortest_path(scene, (-4.0, -4.0), (-1.0, 3.0), 0.2)
    assert path_length(straight) == pytest.approx(
        math.dist((-4, -4), (-1, 3)), rel=0.005
    )
    with pytest.raises(WorldError, match="no path for a disc"):
        shortest_path(scene, (-2.0, 0.0), (2.0, 0.0), 2.0)
    assert path_length(
        shortest_path(scene, (-9.0, 0.0), (-9.0, 4.0), 0.2)
    ) == pytest.approx(4.0), "outside of the map"
