"""`Fleet.ranges` gives the readings of each robot, in whatever order they lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

import botyard

MIXES = (
    ["amigo"] * 4,
    ["p3dx-sh"] * 3,
    ["p3dx-sh"],
    ["amigo", "p3dx-sh", "p3dx-sh"],
    ["p3dx-sh", "p3dx-sh", "amigo"],
    ["p3dx-sh", "amigo", "p3dx-sh"],
    ["p3dx", "seekur", "p3dx-sh"],
)


def readings(robot: botyard.Robot, kind: str) -> np.ndarray:
    if kind == "sonar":
        return np.zeros(0) if robot.sonar is None else robot.sonar.read().ranges
    return robot.lasers[0].read().ranges if robot.lasers else np.zeros(0)


@pytest.mark.parametrize("models", MIXES, ids=" ".join)
@pytest.mark.parametrize("kind", ["sonar", "laser"])
@pytest.mark.slow_without_jit
def test_rows_are_the_readings_of_robots(models: list[str], kind: str) -> None:
    sim = botyard.Simulation.load("office", seed=1, warn=lambda _: None)
    for i, model in enumerate(models):
        sim.add_robot(model, pose=(4.5 + 1.5 * i, 14.2, 0.5 * i))
    for _ in range(2):
        sim.step()
        found = sim.fleet.ranges(kind)
        for row, robot in zip(found, sim.robots.values(), strict=True):
            expected = readings(robot, kind)
            assert np.array_equal(row[: len(expected)], expected)
            assert np.isnan(row[len(expected) :]).all()
        # The result is a copy.
        found[...] = -1.0
        assert not (sim.fleet.ranges(kind) == -1.0).any()
        if len(sim.robots) > 1:
            sim.remove_robot(next(iter(sim.robots)))
