"""A robot patrols between places of the office on planned paths, around people.

Run: python examples/patrol.py
"""

import botyard

STOPS = ("Laboratory", "Meeting Room", "Store", "Office 1")

sim = botyard.Simulation.load("office", seed=3)
places = {place.name: place.pose for place in sim.scene.places}
robot = sim.add_robot("p3dx", "guard")
robot.set_controller(
    "go_to",
    points=[places[name][:2] for name in STOPS],
    order="loop",
    pause=2.0,
    speed=0.8,
)
reached = 0
while reached < len(STOPS):
    sim.run(1.0)
    assert robot.trip is not None
    assert sim.time < 400.0
    if robot.trip.goals_reached > reached:
        print(f"{sim.time:5.0f} s: at {STOPS[reached]}, {robot.truth}")
        reached = robot.trip.goals_reached
