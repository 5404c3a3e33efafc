"""Runs of the benchmark of studies: functions as plans name them."""

from __future__ import annotations

import time
from typing import Any

from botyard.sim.simulation import Simulation


def world(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run as many steps of a world as take a second on a quiet machine."""
    sim = Simulation.load("warehouse", seed=seed)
    for k in range(20):
        robot = sim.add_robot("p3dx")
        robot.command(v=0.3, w=0.1 + 0.005 * k)

    for _ in range(params["steps"]):
        sim.step()
    return {"x": float(sim.poses[0, 0])}


def asleep(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Sleep a second without work, so that other programs of the machine have no effect."""
    time.sleep(1.0)
    return {"y": seed}


def nothing(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return at once: a run that takes no time."""
    return {"y": seed}


def called(work: tuple[str, int, int]) -> dict[str, Any]:
    """Run the same function in a pool."""
    name, steps, seed = work
    return {"world": world, "asleep": asleep, "nothing": nothing}[name](
        None, {"steps": steps}, seed
    )
