"""Robots that swap their places in the warehouse, each on a planned path.

Run: python examples/go_to.py
"""

from __future__ import annotations

from collections import Counter

import botyard

COUNT = 8
LIMIT_S = 300.0

sim = botyard.Simulation.load("warehouse", seed=2)
places = sim.random_free_poses(COUNT, 0.4)
robots = [
    sim.add_robot("p3dx", f"robot{k}", pose=tuple(pose))
    for k, pose in enumerate(places)
]
for k, robot in enumerate(robots):
    x, y, theta = places[(k + 1) % COUNT]
    robot.go_to(x, y, theta, speed=0.6)

while sim.time < LIMIT_S:
    sim.step(round(10.0 / sim.dt))
    trips = [robot.trip for robot in robots]
    states = Counter(str(trip.state) for trip in trips)
    left = sum(trip.distance_left for trip in trips)
    print(f"{sim.time:5.0f} s  {left:6.1f} m left  {dict(states)}")
    if states["arrived"] == COUNT:
        break

for robot in robots:
    x, y, _ = robot.truth
    print(f"{robot.name}: ({x:.2f}, {y:.2f}), {robot.trip.replans} paths planned again")
