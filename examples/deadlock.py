"""A deadlock of four robots on sector paths, and a supervisor that prevents it.

Run: python examples/deadlock.py
"""

import botyard
from botyard.traffic.generate import generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.supervisors.registry import find_supervisor

task = generate("deadlock", 4)
for name in ("fcfs", "bankers"):
    supervisor = find_supervisor(name)
    sim = botyard.Simulation(seed=1)
    outcome = RobotTraffic(task, supervisor, sim, model="p3dx").run(time_limit=200.0)
    print(
        f"{name} ({supervisor.guarantee}): {outcome.ending} after {outcome.time:.1f} s"
    )
    if outcome.cycle:
        print(
            "  wait for each other:", " -> ".join(f"robot {k}" for k in outcome.cycle)
        )
