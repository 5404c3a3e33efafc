"""Robots that return to their starts: the places, and robots in the way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import botyard
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation


def overlapping(sim: Simulation) -> list[str]:
    """Return the robots that touch another body."""
    rows = [sim.core.engine.rows[name] for name in sim.robots]
    return [
        n
        for n, touches in zip(
            sim.robots, sim.core.engine.touching(np.array(rows)).tolist(), strict=True
        )
        if touches
    ]


def share_a_home(count: int, scene: Scene | None = None) -> Simulation:
    """Robots that started at the same place in turn, each after the previous one had
    left.
    """
    sim = Simulation(scene or Scene(), odometry_error="none")
    for k in range(count):
        sim.add_robot("p3dx", f"r{k}", pose=(0, 0, 1))
        sim.put(f"r{k}", (5.0 * (k + 1), 20, 0))
        sim.step()

    return sim


def test_robots_that_share_a_home_go_back_beside_each_other() -> None:
    sim = share_a_home(5)
    sim.put_back()
    sim.step()
    assert sim.robots["r0"].truth[:3] == (0, 0, 1), "the first one gets its start"
    assert overlapping(sim) == []
    assert np.hypot(*sim.poses[:, :2].T).max() < 2.0 and set(sim.poses[:, 2]) == {
        1.0
    }, "near, and turned as at the start"
    assert all(tuple(r.odom[:3]) == (0, 0, 0) for r in sim.robots.values())


def test_one_robot_does_not_go_back_onto_another() -> None:
    sim = share_a_home(2)
    sim.put_back("r0")
    sim.step()
    sim.robots["r1"].port("pioneer").reset_pose()
    sim.step()
    assert (
        sim.robots["r0"].truth[:2] == (0, 0)
        and np.hypot(*sim.robots["r1"].truth[:2]) == 1.0
    )
    sim.put_back(["r1", "r0"])
    sim.step()
    assert sim.robots["r1"].truth[:2] == (0, 0) and overlapping(sim) == [], (
        "both go; the first that is named gets it"
    )


def test_starts_are_kept_also_close_together_and_in_walls() -> None:
    """No other body is there: a repeated run starts equally."""
    wall = np.array([[0.0, -5, 0, 5]])
    sim = Simulation(
        Scene(
            segments=wall,
            boxes=(BoxObject(name="Box:1", pose=Pose(3, 0, 0), length=1.0, width=1.0),),
        )
    )
    with pytest.warns(botyard.PlacementWarning):
        sim.add_robot("p3dx", "stuck", pose=(0, 0, 0))
    sim.add_robot("p3dx", "one", pose=(2, 5, 0))
    sim.add_robot("p3dx", "other", pose=(2, 5.45, 0))
    ghost = sim.add_robot("p3dx", "ghost", pose=(2, -5, 0))
    ghost.ghost()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim.add_robot("p3dx", "seen", pose=(2, -5, 0))
        sim.add_robot("amigo", "boxed", pose=(3, 0, 0))

    starts = sim.poses
    for k, name in enumerate((*sim.robots, "Box:1")):
        sim.put(name, (20, 3.0 * k, 0))
    sim.step()
    sim.put_back()
    sim.step()
    assert np.array_equal(sim.poses[:5], starts[:5])
    assert np.hypot(*(sim.poses[5] - (3, 0, 0))[:2]) == 1.0, (
        "the box is where the map has it"
    )


def test_hundreds_go_back_quickly_and_the_same_each_time() -> None:
    poses = []
    for _ in range(2):
        sim = Simulation(Scene(), odometry_error="none")
        sim.add_robots(
            "p3dx", [(2.0 * (k % 20), 2.0 * (k // 20), 0) for k in range(400)]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sim.add_robots("p3dx", [(0, 0, 0)] * 100)

        sim.put_back()
        sim.step()
        assert overlapping(sim) == []
        poses.append(sim.poses)

    assert np.array_equal(*poses)
