"""Show ``deadlock``: one task of four robots under two supervisors, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from botyard.demos.floors import rectangle
from botyard.engine.snapshot import Snapshot
from botyard.model.floor import Floor
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.traffic.generate import CELL, generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.outcome import Ending
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task

SIDES: Final = (("fcfs", "light salmon"), ("bankers", "pale green"))
"""Supervisor of each side, and the colour of its crossing.

A supervisor permits robots to enter crossings. Names of robots start with the name of
their supervisor.
"""
STREET: Final = "gray85"
APART_M: Final = 20.0
"""Distance between the two sides, m."""
PAUSE_S: Final = 10.0
"""Time between the end of both runs and the next start, s."""


def shifted(task: Task, x: float) -> Task:
    """Return a task whose paths are shifted along x.

    Parameters
    ----------
    task : Task
        The task; every vehicle has a path.
    x : float
        Shift, m.
    """
    return replace(
        task,
        vehicles=tuple(
            replace(v, path=None if v.path is None else v.path + np.array([x, 0.0]))
            for v in task.vehicles
        ),
    )


class TwoSides:
    """Runs of the task under both supervisors in one world, which other code steps.

    Both runs start again `PAUSE_S` after the later one has ended.

    Parameters
    ----------
    sim : Simulation
        World of the robots.
    task : Task
        Task that the robots of both sides have.
    """

    def __init__(self, sim: Simulation, task: Task) -> None:
        self.sim = sim
        self.tasks = [shifted(task, k * APART_M) for k in range(len(SIDES))]
        self.runs: list[RobotTraffic] = []
        self.endings: list[Ending | None] = []
        self._ended = 0.0
        self._tick = 0
        self._start()

    def _start(self) -> None:
        sim = self.sim
        sim.remove_robots([d.robot.name for run in self.runs for d in run.drivers])
        self.runs = [
            RobotTraffic(
                task, find_supervisor(name), sim, model="p3dx", prefix=f"{name} "
            )
            for task, (name, _) in zip(self.tasks, SIDES, strict=True)
        ]
        self.endings = [None] * len(self.runs)

    def act(self) -> None:
        """Command all robots before a step."""
        sim = self.sim
        has_ended = None not in self.endings
        # The time goes back when a user resets the world; the runs must then start again.
        if sim.tick < self._tick or (has_ended and sim.time > self._ended + PAUSE_S):
            self._start()
        self._tick = sim.tick
        for run in self.runs:
            run.act()

    def observe(self, _: Snapshot) -> None:
        """Report a finished step to both supervisors, and note which runs have ended."""
        for k, run in enumerate(self.runs):
            ending = run.observe()
            if self.endings[k] is None and ending is not None:
                self.endings[k] = ending
                self._ended = self.sim.time


def make(seed: int) -> tuple[Simulation, TwoSides]:
    """Return the world of the show, and the runs in it.

    Parameters
    ----------
    seed : int
        Seed of the world.
    """
    task = generate("deadlock", 4)
    low, high = -3.5 * CELL, 4.5 * CELL
    zones = []
    for k, (name, color) in enumerate(SIDES):
        x = k * APART_M
        zones += [
            rectangle(f"{name}: east and west", x + low, -1.5, x + high, 3.5, STREET),
            rectangle(f"{name}: north and south", x - 1.5, low, x + 3.5, high, STREET),
            rectangle(f"{name}: crossing", x - 1.0, -1.0, x + 3.0, 3.0, color),
        ]
    floor = Floor(zones=tuple(zones))
    sim = Simulation(
        Scene(name="One crossing, two supervisors", floor=floor), seed=seed
    )
    sides = TwoSides(sim, task)
    sim.before_step(sides.act)
    sim.after_step(sides.observe)
    return sim, sides
