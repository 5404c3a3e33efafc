"""A simulator inside a program, ten times as fast as real time; a client of the Pioneer
protocol drives a robot in it.

python examples/serve.py
"""

import botyard
from botyard.clients.pioneer import PioneerClient

sim = botyard.Simulation.load("office", seed=1)
sim.add_robot("p3dx", "bob")

with botyard.serve(sim, port=0, page=False, interval=0.01) as running:
    with PioneerClient(*running.ports["bob"]) as client:
        client.enable()
        client.vel(300)
        while client.update() and client.x_mm < 500:
            pass

    print(
        f"bob says that it has gone {client.x_mm:.0f} mm; it stands at "
        f"{running.call(lambda: sim.robots['bob'].truth)}"
    )
