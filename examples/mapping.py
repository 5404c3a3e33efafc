"""Build an occupancy map from the scans of a robot that wanders in the office.

The pose is known. Each ray makes the cells before its end free, and its end occupied:
H. Moravec, A. Elfes, "High resolution maps from wide angle sonar", ICRA 1985.

Run: python examples/mapping.py
"""

import numpy as np

import botyard

CELL_M = 0.1
HIT, MISS = 0.9, -0.4
RANGE_M = 8.0

sim = botyard.Simulation.load("office", seed=1)
robot = sim.add_robot("p3dx", "mapper", controller="wander")
log_odds = np.zeros((260, 410))

while sim.time < 120.0:
    sim.step(5)
    scan = robot.laser.read()
    x, y, th = robot.truth
    bearings = th + scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
    ranges = np.minimum(scan.ranges, RANGE_M)
    ahead = np.stack([np.cos(bearings), np.sin(bearings)], axis=-1)
    # Places along all rays, one cell apart.
    along = np.arange(0.0, RANGE_M, CELL_M)
    places = (x, y) + ahead[:, None] * along[:, None]
    free = np.unique(
        (places[along < ranges[:, None] - CELL_M] / CELL_M).astype(int), axis=0
    )
    ends = (((x, y) + ahead * ranges[:, None]) / CELL_M).astype(int)[ranges < RANGE_M]
    for cells, change in ((free, MISS), (np.unique(ends, axis=0), HIT)):
        column, row = cells[:, 0].clip(0, 409), cells[:, 1].clip(0, 259)
        log_odds[row, column] += change

solid = log_odds > 1.0
known = log_odds != 0.0
print(f"{known.mean():.0%} of the map seen, {solid.sum()} cells are walls")
found = botyard.Simulation(botyard.Scene.from_array(solid, CELL_M))
found.render("map.png")
