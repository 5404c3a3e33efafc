"""Find a robot on a known map by its laser: a particle filter.

S. Thrun, W. Burgard, D. Fox, "Probabilistic Robotics", MIT Press 2005, chapter 8.3.

Run: python examples/particle_filter.py
"""

import numpy as np

import botyard

PARTICLES = 3000
RAYS = slice(0, 181, 12)
RANGE_M = 8.0
SIGMA_M = 0.4

sim = botyard.Simulation.load("office", seed=4)
robot = sim.add_robot("p3dx", "lost", controller="wander")
draws = np.random.default_rng(1)
# The robot is somewhere within 6 m of its home, with an unknown heading.
home = np.array(robot.truth)
particles = home + draws.uniform(-1, 1, (PARTICLES, 3)) * (6.0, 6.0, np.pi)
before = np.array(robot.odom)

for update in range(40):
    sim.run(0.5)
    # Motion: the odometry's step in the robot's frame, with noise.
    now = np.array(robot.odom)
    (dx, dy), turn = (now - before)[:2], now[2] - before[2]
    c, s = np.cos(before[2]), np.sin(before[2])
    step = np.array([c * dx + s * dy, c * dy - s * dx, turn])
    before = now
    moves = step + draws.normal(size=(PARTICLES, 3)) * (0.02, 0.02, 0.03)
    c, s = np.cos(particles[:, 2]), np.sin(particles[:, 2])
    particles[:, 0] += c * moves[:, 0] - s * moves[:, 1]
    particles[:, 1] += s * moves[:, 0] + c * moves[:, 1]
    particles[:, 2] += moves[:, 2]
    # Measurement: the ranges that the map predicts for each particle.
    scan = robot.laser.read()
    bearings = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
    seen = np.minimum(scan.ranges[RAYS], RANGE_M)
    predicted = sim.cast(
        particles[:, None, :2],
        particles[:, 2:] + bearings[RAYS],
        range_max=RANGE_M,
    )
    error = np.abs(predicted - seen).clip(max=1.0)
    weights = np.exp(-0.5 * (error**2).mean(axis=1) / SIGMA_M**2 * 4)
    chosen = draws.choice(PARTICLES, PARTICLES, p=weights / weights.sum())
    particles = particles[chosen]
    guess = particles.mean(axis=0)
    wrong = np.hypot(*(guess - np.array(robot.truth))[:2])
    spread = particles[:, :2].std(axis=0).max()
    if update % 5 == 4:
        print(f"{sim.time:4.1f} s: error {wrong:.2f} m, spread {spread:.2f} m")
