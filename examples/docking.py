"""A robot patrols, drives to its dock when the battery is low, and charges there.

Run: python examples/docking.py
"""

from pathlib import Path

import botyard

LOW, FULL = 40.0, 60.0
"""Charge at which the robot goes to the dock, and leaves it, %."""

sim = botyard.Simulation.load(Path(__file__).with_name("docking.yaml"), seed=1)
bob = sim.robots["bob"]
dock = next(place for place in sim.scene.places if place.kind == "Dock").pose


def patrol() -> None:
    """Let the robot drive around the hall for ever."""
    points = [(10, 2), (10, 6), (4, 6), (4, 2)]
    bob.set_controller("go_to", points=points, order="loop", speed=0.8)


patrol()
is_docking = False
visits = 0
while visits < 2:
    sim.run(5.0)
    charge, state = (
        bob.electrics.charge,
        bob.electrics.battery.charge_state.name.lower(),
    )
    print(
        f"{sim.time:4.0f} s: {charge:.0f} %, {state}, at ({bob.truth.x:.1f}, {bob.truth.y:.1f})"
    )
    if not is_docking and charge < LOW:
        is_docking = True
        bob.go_to(*dock, speed=0.5)
    elif is_docking and charge > FULL:
        is_docking = False
        visits += 1
        patrol()
    assert sim.time < 3600.0, "it does not charge"
