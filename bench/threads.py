"""Wall time of a step with one thread and with two, in turns: the arena of `bench.scenes`
without sensors and with sonar, and one large world of `Worlds` with lasers.

The two runs make the same steps in turns, and the least time of each counts, because a
thread that waits for a processor says nothing about the program. The last column is the
CPU time of all threads: what the division costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.scenes import Run, arena, spec
from botyard.worlds.worlds import Worlds

ROBOTS = {"none": (10_000, 30_000, 100_000), "sonar": (10_000, 30_000)}
IN_WORLDS = {"laser": (100, 1000), "none": (30_000,)}
"""Numbers of robots of one world of `Worlds`, by sensor."""
TURNS, STEPS = 40, 2
"""Number of turns, and of steps of each run in a turn."""
WARM_UP = 5
"""Number of steps before the measurement."""


class Seen(NamedTuple):
    """Times of a step, s."""

    wall: float
    cpu: float


def in_turns(runs: list[Callable[[], object]], turns: int) -> list[Seen]:
    """Return the least wall time and the least CPU time of each run."""
    times: list[list[Seen]] = [[] for _ in runs]
    for _ in range(turns):
        for run, seen in zip(runs, times, strict=True):
            began, used = time.perf_counter(), time.process_time()
            run()
            seen.append(Seen(time.perf_counter() - began, time.process_time() - used))

    return [Seen(min(s.wall for s in t), min(s.cpu for s in t)) for t in times]


def simulations(robots: int, sensor: str) -> list[Callable[[], object]]:
    """Return a step of the arena with one thread, and one with two."""
    runs = [Run(*arena(robots), sensor, threads=threads) for threads in (1, 2)]
    for run in runs:
        run.step(WARM_UP)
    assert (runs[0].sim.fleet.poses == runs[1].sim.fleet.poses).all()
    return [lambda run=run: run.step(STEPS) for run in runs]  # type: ignore[misc]


def batches(robots: int, sensor: str) -> list[Callable[[], object]]:
    """Return a step of one world of `Worlds` with one thread, and one with two."""
    scene, poses = arena(robots)
    steps: list[Callable[[], object]] = []
    turns = np.random.default_rng(1).uniform(-0.5, 0.5, robots)
    for threads in (1, 2):
        made = Worlds(scene, [spec(sensor)] * robots, 1, seeds=1, threads=threads)
        made.reset(poses=poses)
        made.command[0, :, 0], made.command[0, :, 2] = 0.3, turns
        made.step(WARM_UP)
        steps.append(lambda made=made: made.step(STEPS))  # type: ignore[misc]

    return steps


def main() -> None:
    print(
        "                  sensor  robots   ms a step: 1 thread, 2 threads   x   "
        "CPU of 2 / of 1"
    )
    for what, make, sizes in (
        ("simulation", simulations, ROBOTS),
        ("one world", batches, IN_WORLDS),
    ):
        for sensor, numbers in sizes.items():
            for robots in numbers:
                one, two = in_turns(make(robots, sensor), TURNS)
                print(
                    f"   {what:12}  {sensor:6} {robots:7}   {one.wall / STEPS * 1e3:19.3f}"
                    f" {two.wall / STEPS * 1e3:9.3f} {one.wall / two.wall:7.2f}"
                    f" {two.cpu / one.cpu:15.2f}",
                    flush=True,
                )
