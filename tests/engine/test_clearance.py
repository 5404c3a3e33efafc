"""The object nearest to a robot's outline, against all walls and bodies in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard import Scene
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import SpecialWalls
from botyard.sim.contacts import WALL, nearest
from tests import naive


def world(seed: int, robots: int = 12, walls: int = 8) -> botyard.Simulation:
    """Robots, boxes, walls and a wall that stops no robot, at random places of 10 m."""
    rng = np.random.default_rng(seed)
    segments = rng.uniform(0.0, 10.0, (walls, 4))
    segments[:, 2:] = segments[:, :2] + rng.normal(0.0, 1.0, (walls, 2))
    special = (SpecialWalls(first=0, last=1, returns=Returns(obstacle=False)),)
    boxes = tuple(
        BoxObject(
            name=f"b{k}",
            pose=botyard.Pose(*rng.uniform(0.0, 10.0, 2), rng.uniform(-3.0, 3.0)),
            length=rng.uniform(0.2, 2.0),
            width=0.3,
        )
        for k in range(3)
    )
    sim = botyard.Simulation(
        Scene(segments=segments, special_walls=special, boxes=boxes),
        warn=lambda _: None,
    )
    poses = rng.uniform(0.0, 10.0, (robots, 3))
    sim.add_robots("p3dx", poses.tolist())
    return sim


def twin(sim: botyard.Simulation, row: int, within: float) -> tuple[float, str]:
    """Return the nearest object by all edges of all objects."""
    specs, pose = sim.core.engine.specs, sim.core.snapshot.state.pose
    mine = naive.placed(specs[row].parts, pose[row])
    things: list[tuple[float, str]] = [
        (naive.edge_distance(mine, sim.scene.segments[1:]), WALL)
    ]
    things += [
        (naive.edge_distance(mine, naive.placed(spec.parts, pose[k])), spec.name)
        for k, spec in enumerate(specs)
        if k != row
    ]
    found = min(things, key=lambda thing: thing[0])
    return found if found[0] <= within else (math.inf, WALL)


@pytest.mark.parametrize("within", [0.02, 0.5, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_thing(seed: int, within: float) -> None:
    sim = world(seed)
    for moves in range(2):
        for row in sim.fleet.robot_rows.tolist():
            away, name = nearest(sim.core, row, within)
            expected, thing = twin(sim, row, within)
            assert away == pytest.approx(expected, abs=1e-9)
            # Several objects may overlap the robot.
            assert name == thing or away == 0.0
        # Bodies may leave their bins within a step.
        if not moves:
            sim.fleet.command(v=0.7, w=0.4)
            sim.run(1.0)


def test_nothing_is_near_in_an_empty_world() -> None:
    sim = botyard.Simulation()
    sim.add_robot("p3dx", pose=(0, 0, 0))
    assert nearest(sim.core, 0, 1e3) == (math.inf, WALL)


def test_bodies_with_mass_come_after_obstacles() -> None:
    def found(**mass: Any) -> str:
        near = BoxObject(name="near", pose=botyard.Pose(0.6, 0), length=0.2, width=0.2)
        far = BoxObject(name="far", pose=botyard.Pose(-0.9, 0), length=0.2, width=0.2)
        sim = botyard.Simulation(Scene(boxes=(near, far)), warn=lambda _: None)
        sim.add_robot("p3dx", "bob", pose=(0, 0, 0))
        for name, kilograms in mass.items():
            sim.masses.set_dynamics(name, DynamicsSpec(mass=kilograms))
        return nearest(sim.core, sim.core.engine.rows["bob"], 2.0)[1]

    assert found() == "near"
    assert found(near=1.0) == "far"
    assert found(near=1.0, far=1.0) == "near"


def test_points_of_a_bitmap_are_walls() -> None:
    solid = np.zeros((40, 40), bool)
    solid[20, 30] = True
    sim = botyard.Simulation(Scene.from_array(solid, 0.1), warn=lambda _: None)
    sim.add_robot("p3dx", pose=(1.0, 1.95, 0.0))
    away, name = nearest(sim.core, 0, 4.0)
    front = max(x for x, _ in sim.core.engine.specs[0].parts[0])
    assert name == WALL
    x = min(*sim.scene.points[:, 0]) if len(sim.scene.points) > 1 else 3.0
    assert away == pytest.approx(x - 1.0 - front, abs=0.1)
