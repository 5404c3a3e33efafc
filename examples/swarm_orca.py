"""500 robots swap places by ORCA: one call a step for all of them.

Run: python examples/swarm_orca.py
"""

import math

import numpy as np

import botyard
from botyard.navigation import crowds

COUNT, SPEED, TOP = 500, 0.5, 0.7

sim = botyard.Simulation(seed=1)
angles = np.arange(COUNT) * (math.tau / COUNT)
circle = 25.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
robots = sim.add_robots("khepera4", np.column_stack([circle, angles + math.pi]))
goals = np.random.default_rng(1).permutation(circle)
spec = robots[0].spec
# A robot on wheels is a disc around a point ahead of its axle.
ahead = np.full(COUNT, crowds.AHEAD_SHARE * spec.radius)
radius = spec.radius + ahead + 0.02
max_w = np.full(COUNT, spec.limits.max_speed.a)

while sim.time < 90.0:
    poses = sim.fleet.poses
    position, velocity = crowds.discs(
        poses[None], sim.fleet.velocities[None], ahead[None]
    )
    to = goals - position[0]
    away = np.linalg.norm(to, axis=1).clip(1e-9)
    preferred = to * (np.minimum(SPEED, away) / away)[:, None]
    wanted = crowds.orca(
        position, velocity, radius[None], preferred, np.full(COUNT, TOP), dt=sim.dt
    )
    v, _, w = crowds.commands(wanted, poses[:, 2], ahead, max_w, sim.dt).T
    sim.fleet.command(v=v, w=w)
    sim.step()
    if sim.tick % 100 == 0:
        print(
            f"{sim.time:3.0f} s: {away.mean():5.2f} m to go, {sim.fleet.stalled.sum()} stalled"
        )
