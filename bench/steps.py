"""Time of a step for 1 … 1000 robots, without sensors and with a laser each; shipped warehouse, seed 1, one thread."""

from __future__ import annotations

import numpy as np

from bench.common import cpu, reference_loop
from botyard.simulation import Simulation


def fleet(n: int, laser: bool) -> Simulation:
    sim = Simulation.load("warehouse", seed=1)
    for i in range(n):
        robot = sim.add_robot("p3dx", pose=sim.random_free_place(SPEC, i))
        if laser:
            robot.laser.subscribe("bench")
    return sim


def drive(sim: Simulation, steps: int) -> None:
    rng = np.random.default_rng(1)
    for k in range(steps):
        if k % 20 == 0:
            for robot in sim.robots.values():
                robot.command(v=0.3, w=float(rng.uniform(-0.5, 0.5)))
        sim.step()


def main() -> None:
    global SPEC
    from botyard.model.library import load_robot

    SPEC = load_robot("p3dx")
    unit = reference_loop()
    print("warehouse, p3dx at random free places, 0.3 m/s with random turns, stock noise; laser: 181 rays, 32.8 m")
    print(f"   reference: ten 400 x 400 matrix products, {unit * 1e3:.2f} ms")
    print("   robots   no sensor ms   x reference      laser ms   x reference   x real time")
    for n in (1, 10, 100, 1000):
        times = []
        for laser in (False, True):
            sim = fleet(n, laser)
            steps = 200 if n <= 10 else 40 if n <= 100 else 20
            times.append(cpu(lambda s=sim, k=steps: drive(s, k), 3) / steps)
        plain, laser_time = times
        print(
            f"   {n:6}   {plain * 1e3:12.3f}   {plain / unit:11.4f}   {laser_time * 1e3:11.3f}   {laser_time / unit:11.4f}"
            f"   {0.1 / laser_time:11.0f}"
        )
