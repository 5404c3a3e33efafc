"""A user's program under strict type checking, run through mypy by
`tests/test_types.py`.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import botyard
from botyard.learning import (
    Environment,
    Exchange,
    ParallelEnvironment,
    VectorEnvironment,
)


def one_world() -> None:
    """Step, command and read a simulation with robots."""
    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx", name="bob", lasers=["lms200"])
    assert_type(robot, botyard.Robot)
    while sim.time < 1.0:
        scan = robot.laser.read()
        nearest: float = float(scan.ranges.min())
        robot.command(v=0.3, w=0.5 if nearest < 0.6 else 0.0)
        sim.step()

    x: float = robot.truth.x + robot.odom.th
    assert_type(sim.poses, NDArray[np.float64])
    assert_type(sim.episode, int)
    tick: int = sim.reset(seed=3, poses=[[x, 0.0, 0.0]]).tick
    with botyard.Simulation() as other:
        other.step(tick)


def many_worlds() -> NDArray[np.float64]:
    """Use a batch, its parameters, and a repeated episode."""
    worlds = botyard.Worlds("office", ["p3dx"], 8, threads=2)
    worlds.keep_episodes()
    worlds.command[:, 0, 0] = 0.3
    worlds.param("range_noise")[:] = 0.01
    worlds.step(5, mask=worlds.tick < 300)
    worlds.reset([1, 2], poses="free")
    for snapshot in worlds.repeat(3):
        print(snapshot.state.pose)
    assert_type(worlds.repeat(3).run(), botyard.Simulation)
    return worlds.sample_free(clearance=0.2)


def environments() -> None:
    """Use environments of Gymnasium and PettingZoo."""
    envs = VectorEnvironment("Navigate", 4, rays=16)
    observations, infos = envs.reset(seed=1)
    print(observations, infos, Environment(Exchange(robots=4)).step(np.zeros((4, 2))))
    team = ParallelEnvironment(Exchange)
    names: list[str] = team.agents
    print(names)
