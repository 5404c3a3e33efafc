"""Two robots drive a square side by side: one by commands, one by a controller.

Run: python examples/two_robots.py
"""

import math

import botyard

SIDE_M = 2.0
APART_M = 1.5

sim = botyard.Simulation(seed=1, odometry_error="none")
leader = sim.add_robot("p3dx", "leader", pose=(0.0, 0.0, 0.0))
shadow = sim.add_robot("amigo", "shadow", pose=(-APART_M, 0.0, 0.0))
shadow.set_controller("follow", leader="leader", distance=APART_M, speed=0.5)

for corner in range(4):
    leader.command.move(SIDE_M)
    sim.run(10.0)
    leader.command.turn_by(math.pi / 2)
    sim.run(4.0)
    gap = math.dist(leader.truth[:2], shadow.truth[:2])
    print(f"corner {corner + 1}: leader at {leader.truth}, shadow {gap:.2f} m behind")
