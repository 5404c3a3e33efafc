"""Bodies with mass: our kernels against Chipmunk 2D (pymunk, of the extra "dev"). Both step the
same worlds in turns in one process.

Both worlds have the same initial state and run for the same simulated time; wall time
of a step, the least of several rounds, in turns.
"""

from __future__ import annotations

import math
import time

import numpy as np

from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

ROUNDS = 5
SECONDS = 1.0
"""Simulated time of a round; a tenth of it with steps of 1 ms."""


def robot_servers(
    boxes: int, robots: int, step: float, robot_mass: float | None = None
) -> Simulation:
    """Return boxes in a square room, and robots that drive into the boxes from one side."""
    columns = math.isqrt(boxes - 1) + 1
    size = 0.6 * columns + 3.0
    walls = np.array(
        [
            [-2, -1, size, -1],
            [size, -1, size, size],
            [size, size, -2, size],
            [-2, size, -2, -1],
        ],
        float,
    )
    spec = DynamicsSpec(mass=2.0, floor_friction=0.3)
    things = tuple(
        BoxObject(
            name=f"b{k}",
            pose=Pose(0.6 * (k // columns), 0.6 * (k % columns), 0.1 * k),
            length=0.4,
            width=0.4,
            dynamics=spec,
        )
        for k in range(boxes)
    )
    sim = Simulation(Scene(segments=walls, boxes=things), step=step)
    for k in range(robots):
        robot = sim.add_robot(
            "p3dx", f"r{k}", pose=(-1.2, (k + 0.5) * (size - 1.0) / robots, 0.0)
        )
        if robot_mass is not None:
            sim.masses.set_dynamics(robot.name, DynamicsSpec(mass=robot_mass))
        robot.command(v=0.4, w=0.02 * (k - robots / 2))

    return sim


def thrown(boxes: int, step: float) -> Simulation:
    """Return boxes that fly about."""
    sim = robot_servers(boxes, 0, step)
    for k in range(boxes):
        sim.masses.throw(f"b{k}", math.cos(2.4 * k), math.sin(2.4 * k), 0.5)
    sim.step()
    for k in range(boxes):
        sim.masses.push(f"b{k}", 0.1 * math.cos(1.7 * k), 0.1 * math.sin(1.7 * k))
    return sim


WORLDS = {
    "20 boxes, 5 robots push": lambda step: robot_servers(20, 5, step),
    "20 boxes, 5 robots with mass": lambda step: robot_servers(20, 5, step, 9.0),
    "200 boxes, 5 robots push": lambda step: robot_servers(200, 5, step),
    "200 boxes, thrown": lambda step: thrown(200, step),
    "200 boxes at rest": lambda step: robot_servers(200, 0, step),
    "20 boxes, kept moving": lambda step: thrown(20, step),
}


def main() -> None:
    from tests.chipmunk import ChipmunkDynamics

    # Compile the kernels before the first measurement.
    robot_servers(1, 1, 0.01).step(5)
    print(f"   {'':34}{'step':>6} {'Chipmunk':>10} {'kernels':>9}  ratio")
    for name, make in WORLDS.items():
        for step in (0.001, 0.01, 0.1):
            if step == 0.001 and "200" in name:
                continue
            ours, theirs = make(step), make(step)
            ChipmunkDynamics.take_over(theirs.core.engine)
            steps = max(1, round(SECONDS / step / (10 if step == 0.001 else 1)))
            best = [math.inf, math.inf]
            for _ in range(ROUNDS):
                for which, sim in enumerate((theirs, ours)):
                    begin = time.perf_counter()
                    sim.step(steps)
                    best[which] = min(
                        best[which], (time.perf_counter() - begin) / steps
                    )

            print(
                f"   {name:34}{step * 1e3:4.0f} ms {best[0] * 1e3:7.3f} ms "
                f"{best[1] * 1e3:6.3f} ms  {best[0] / best[1]:5.1f}"
            )


if __name__ == "__main__":
    main()
