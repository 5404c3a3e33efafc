"""Show ``crowd``: 100 robots change sides and avoid each other by ORCA."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from botyard.demos.floors import rectangle
from botyard.engine.layout import F8
from botyard.model.floor import Floor
from botyard.model.scene import Scene
from botyard.navigation import crowds
from botyard.numerics import elementwise
from botyard.sim.simulation import Simulation

ROBOTS: Final = 100
CIRCLE_M: Final = 5.0
"""Radius of the circle of starts and goals, m."""
SPEED: Final = 0.5
"""Preferred speed, m/s."""
TOP: Final = 0.7
"""Maximum speed, m/s. It exceeds `SPEED`, so that a robot can speed up to evade others."""
CLEARANCE_M: Final = 0.02
"""Margin that is added to the radius of each robot, m."""
HORIZON_S: Final = 2.0
"""Time for which ORCA keeps robots free of collisions, s."""
ARRIVED_M: Final = 0.3
"""Distance from its goal at which a robot counts as arrived, m."""
APPROACH_S: Final = 1.0
"""Time to the goal below which a robot slows down, s."""
SIDESTEP: Final = 0.1
"""Tangent of the angle between a robot's preferred direction and the direction to its goal.

Without this angle, robots meet exactly head on, and none of them gives way.
"""


class Crowd:
    """Controller of all robots: one call of `botyard.navigation.crowds.orca` in each step.

    It uses the true poses and velocities. ORCA needs discs that move in any direction, so
    a disc is centred at a point ahead of the axle, as in `botyard.controllers.crowd`.

    Parameters
    ----------
    sim : Simulation
        World with robots of one model, and nothing else.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        robot = next(iter(sim.robots.values())).spec
        self._max_w = robot.limits.max_speed.a
        self._ahead: F8 = np.full(len(sim.robots), crowds.AHEAD_SHARE * robot.radius)
        self._radius: F8 = robot.radius + self._ahead + CLEARANCE_M
        self._restart()

    def _restart(self) -> None:
        self._goals: F8 = -self._sim.fleet.poses[:, :2]
        self.crossings = 0
        self._tick = 0

    def act(self) -> None:
        """Command all robots before a step."""
        sim = self._sim
        # The time goes back when a user resets the world.
        if sim.tick < self._tick:
            self._restart()
        self._tick = sim.tick
        pose, n = sim.fleet.poses, len(sim.robots)
        position, velocity = crowds.discs(
            pose[None], sim.fleet.velocities[None], self._ahead[None]
        )
        to = self._goals - position[0]
        away = np.maximum(elementwise.hypot(to[:, 0], to[:, 1]), 1e-9)
        if (away < ARRIVED_M).all():
            self._goals = -self._goals
            self.crossings += 1
        preferred = to * (np.minimum(SPEED, away / APPROACH_S) / away)[:, None]
        preferred += SIDESTEP * np.stack([-preferred[:, 1], preferred[:, 0]], axis=1)
        wanted = crowds.orca(
            position,
            velocity,
            self._radius[None],
            preferred,
            np.full(n, TOP),
            dt=sim.dt,
            horizon=HORIZON_S,
        )
        v, _, w = crowds.commands(
            wanted, pose[:, 2], self._ahead, np.full(n, self._max_w), sim.dt
        ).T
        sim.fleet.command(v=v, w=w)


def make(seed: int) -> tuple[Simulation, Crowd]:
    """Return the world of the show, and the controller of its robots.

    Parameters
    ----------
    seed : int
        Seed of the world.
    """
    edge = CIRCLE_M + 0.5
    floor = Floor(zones=(rectangle("square", -edge, -edge, edge, edge, "lavender"),))
    sim = Simulation(Scene(name="Changing sides", floor=floor), seed=seed)
    bearings = np.arange(ROBOTS) * (math.tau / ROBOTS)
    c, s = elementwise.cosine_sine(bearings)
    sim.add_robots(
        "khepera4", np.stack([CIRCLE_M * c, CIRCLE_M * s, bearings + math.pi], axis=1)
    )
    crowd = Crowd(sim)
    sim.before_step(crowd.act)
    return sim, crowd


__all__ = ["Crowd", "make"]
