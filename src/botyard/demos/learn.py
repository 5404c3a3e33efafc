"""Show ``learn``: evolution of a small policy that drives a robot around a track.

Nothing is trained before. All robots start with random policies; in each generation
the best policies survive, and the others become mutated copies of them: a (μ + λ)
evolution strategy (H.-G. Beyer, H.-P. Schwefel, "Evolution strategies: A comprehensive
introduction", Natural Computing 1, 2002).
"""

from __future__ import annotations

import logging
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8
from botyard.model.mapbuilder import MapBuilder
from botyard.numerics import elementwise
from botyard.sim.simulation import Simulation

log = logging.getLogger("botyard.demos")

ROBOTS: Final = 24
PARENTS: Final = 6
"""Number of policies that survive a generation."""
GENERATION_S: Final = 10.0
"""Longest duration of a generation, s; it ends earlier when all robots have crashed."""
SECTORS: Final = 6
"""Number of sectors of the laser; the least range of each is an input of a policy."""
RANGE_M: Final = 3.0
"""Largest range as an input, m; larger ranges are limited to it."""
CRASH_M: Final = 0.3
"""Range of the laser below which a robot counts as crashed and stops, m."""
MAX_V: Final = 1.0
"""Largest speed, m/s."""
MAX_W: Final = 1.5
"""Largest turn rate, rad/s."""
SPREAD: Final = 0.7
"""Largest change of a weight by a mutation."""
START: Final = (6.0, 1.25, 0.0)
"""Start of all robots: m, m, rad."""
CENTER: Final = (6.0, 4.0)
"""Middle of the track, m."""
OUTSIDE: Final = ((2, 0), (10, 0), (12, 2), (12, 6), (10, 8), (2, 8), (0, 6), (0, 2))
INSIDE: Final = (
    (3.5, 2.5),
    (8.5, 2.5),
    (9.5, 3.5),
    (9.5, 4.5),
    (8.5, 5.5),
    (6.0, 4.5),
    (3.5, 5.5),
    (2.5, 4.5),
    (2.5, 3.5),
)
"""Corners of the outer and of the inner wall of the track, m."""


class Evolution:
    """Policies of all robots, and their evolution while the robots drive.

    A policy is linear: speed and turn rate are weighted sums of the inputs, limited to
    `MAX_V` and `MAX_W`. Its score is the angle by which its robot has moved around the
    middle of the track, rad.

    Parameters
    ----------
    sim : Simulation
        World of the robots.
    seed : int
        Seed of the policies and mutations.

    Attributes
    ----------
    best : list of float
        Best score of each generation that has ended, in laps.
    mean : list of float
        Mean score of each generation that has ended, in laps.
    """

    def __init__(self, sim: Simulation, seed: int) -> None:
        self._sim, self._seed = sim, seed
        self._restart()

    def _restart(self) -> None:
        self.best: list[float] = []
        self.mean: list[float] = []
        self._draws = np.random.default_rng(self._seed)
        self._weights: F8 = self._draws.uniform(
            -1.0, 1.0, size=(ROBOTS, 2, SECTORS + 1)
        )
        self._tick = 0
        self._until = 0.0
        self._begin_generation()

    def _begin_generation(self) -> None:
        sim = self._sim
        for name in sim.robots:
            sim.put(name, START)
        self._score = np.zeros(ROBOTS)
        self._drives: NDArray[np.bool_] = np.ones(ROBOTS, np.bool_)
        self._bearing: F8 | None = None
        self._until = sim.time + GENERATION_S

    def _evolve(self) -> None:
        """Replace all policies except the best `PARENTS` by mutated copies of the best ones."""
        order = np.argsort(-self._score, kind="stable")
        self.best.append(float(self._score[order[0]]) / math.tau)
        self.mean.append(math.fsum(self._score.tolist()) / ROBOTS / math.tau)
        log.info(
            "generation %d: %.2f laps on average, best %.2f",
            len(self.best),
            self.mean[-1],
            self.best[-1],
        )
        parents = self._weights[order[:PARENTS]]
        chosen = self._draws.integers(PARENTS, size=ROBOTS - PARENTS)
        children = parents[chosen] + SPREAD * self._draws.uniform(
            -1.0, 1.0, size=(len(chosen), *parents.shape[1:])
        )
        self._weights = np.concatenate([parents, children])

    def act(self) -> None:
        """Command the robots before a step; after a generation, start the next one."""
        sim = self._sim
        # The time goes back when a user resets the world.
        if sim.tick < self._tick:
            self._restart()
        self._tick = sim.tick
        # In the first step of a generation, readings are from the robots' former poses.
        is_new = self._bearing is None
        self._measure()
        if sim.time >= self._until or not self._drives.any():
            self._evolve()
            self._begin_generation()
            is_new = True
        if is_new:
            sim.fleet.command(v=0.0, w=0.0)
            return
        inputs = np.ones((ROBOTS, SECTORS + 1))
        inputs[:, :SECTORS] = self._ranges() / RANGE_M
        self._drives &= inputs.min(axis=1) * RANGE_M > CRASH_M
        out = np.clip((self._weights * inputs[:, None, :]).sum(axis=2), -1.0, 1.0)
        moves = self._drives.astype(float)
        sim.fleet.command(
            v=MAX_V * moves * np.maximum(out[:, 0], 0.0), w=MAX_W * moves * out[:, 1]
        )

    def _ranges(self) -> F8:
        """Return the least range of each sector of the lasers, (robots, sectors), m."""
        ranges = np.minimum(self._sim.fleet.ranges("laser"), RANGE_M)
        return np.stack(
            [part.min(axis=1) for part in np.array_split(ranges, SECTORS, axis=1)],
            axis=1,
        )

    def _measure(self) -> None:
        """Add the robots' last movements around the middle, rad, to their scores."""
        poses = self._sim.fleet.poses
        bearing = elementwise.atan2(poses[:, 1] - CENTER[1], poses[:, 0] - CENTER[0])
        if self._bearing is not None:
            turned = bearing - self._bearing
            turned -= math.tau * np.round(turned / math.tau)
            self._score += np.where(self._drives, turned, 0.0)
        self._bearing = bearing


def make(seed: int) -> tuple[Simulation, Evolution]:
    """Return the world of the show, and its evolution.

    Parameters
    ----------
    seed : int
        Seed of the world and of the evolution.
    """
    track = (
        MapBuilder("Evolution on a track").polygon(*OUTSIDE).polygon(*INSIDE).scene()
    )
    # Ignore warnings: all robots start at the same place, on purpose.
    sim = Simulation(track, seed=seed, warn=lambda _: None)
    for k in range(ROBOTS):
        # Ghosts drive through each other, so each policy has the track for itself.
        sim.add_robot("p3dx", f"policy {k + 1}", pose=START).ghost()
    evolution = Evolution(sim, seed)
    sim.before_step(evolution.act)
    return sim, evolution


__all__ = ["Evolution", "make"]
