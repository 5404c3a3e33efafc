"""Random tasks."""

from __future__ import annotations

import numpy as np

from botyard.traffic.task import Task, Vehicle


def random_task(
    seed: int, robots: int | None = None, *, short: bool = False, varied: bool = True
) -> Task:
    """Return paths of random sectors, a random share of which conflicts.

    First and last sectors conflict with none.
    """
    rng = np.random.default_rng(seed)
    n = robots or int(rng.integers(2, 9))
    vehicles = []
    for _ in range(n):
        count = int(rng.integers(3, 9))
        low = 0.2 if short else 1.2
        lengths = rng.uniform(low, 5.0, count)
        lengths[[0, -1]] += 1.5
        own = {}
        if varied:
            own = {
                "radius": float(rng.uniform(0.2, 0.5)),
                "velocity": float(rng.uniform(0.3, 1.0)),
                "acceleration": float(rng.uniform(0.1, 1.0)),
                "deceleration": float(rng.uniform(0.45, 1.0)),
            }

        vehicles.append(Vehicle(ends=np.cumsum(lengths), **own))

    rows = set()
    for _ in range(int(rng.integers(0, 4 * n))):
        i, j = rng.choice(n, 2, replace=False).tolist()
        a = int(rng.integers(1, len(vehicles[i].ends) - 1))
        b = int(rng.integers(1, len(vehicles[j].ends) - 1))
        rows.add((i, a, j, b))

    return Task(
        tuple(vehicles),
        np.array(sorted(rows), np.int64).reshape(-1, 4),
        (),
        f"random {seed}",
    )
