"""Neighbours of robots: the nearest ones, all within a radius, and those in sight.

Robots are uniform at 4 m² each. The searches run in turns with a k-d tree (scipy, if it
is there), and with the comparison of all pairs in NumPy. The figures are CPU ms of one
thread, the least of several rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import botyard
from bench.spans import in_turns

ROBOTS = (1000, 3000, 10_000)
COUNTS = (1, 8, 24)
AREA = 4.0
"""Area of each robot, m²."""
RADIUS = 3.0
"""Radius of `within` and of links, m."""
GOALS = {(10_000, 24): 10.0}
"""Greatest CPU ms of `nearest` by the numbers of robots and neighbours."""
ARGOS = 0.51
"""CPU s per simulated second of ARGoS 3 for 1000 robots with links of 3 m at 10 Hz,
as measured on such a machine.
"""
BLOCK = 256
"""Number of robots that the comparison of all pairs takes at once."""
ROUNDS = 7


def world(n: int, spread: float = 1.0) -> botyard.Simulation:
    """Return robots at random places; with a smaller `spread` half of them crowd together."""
    rng = np.random.default_rng(7)
    poses = rng.uniform(0.0, math.sqrt(AREA * n), (n, 3))
    poses[: n // 2, :2] *= spread
    sim = botyard.Simulation(warn=lambda _: None)
    sim.add_robots("p3dx", poses.tolist())
    return sim


def all_pairs(places: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest others of each place by all pairs, as `Fleet.nearest` once did."""
    near = np.empty((len(places), k), np.int64)
    far = np.empty((len(places), k))
    for first in range(0, len(places), BLOCK):
        part = places[first : first + BLOCK]
        away = part[:, None] - places[None]
        squares = (away * away).sum(axis=2)
        rows = np.arange(len(part))
        squares[rows, first + rows] = np.inf
        some = np.argpartition(squares, k - 1, axis=1)[:, :k]
        found = np.take_along_axis(squares, some, axis=1)
        order = np.lexsort((some, found), axis=1)
        near[first : first + BLOCK] = np.take_along_axis(some, order, axis=1)
        far[first : first + BLOCK] = np.sqrt(np.take_along_axis(found, order, axis=1))

    return near, far


def trees() -> Callable[[np.ndarray], object] | None:
    """Return scipy's k-d tree; None without scipy."""
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        return None
    return cKDTree  # type: ignore[no-any-return]


def nearest(sim: botyard.Simulation, k: int) -> str:
    """Return a row of the table: `nearest` of all robots, and other methods with the same
    result.
    """
    fleet, tree = sim.fleet, trees()
    places = np.ascontiguousarray(fleet.poses[:, :2])
    runs: list[Callable[[], object]] = [
        lambda: fleet.nearest(k),
        lambda: all_pairs(places, k),
    ]
    if tree is not None:
        # The tree finds each place as its own nearest neighbour, hence k + 1.
        runs.append(lambda: tree(places).query(places, k + 1))  # type: ignore[attr-defined]
    # The comparison of all pairs is slow, so it decides the number of rounds.
    rounds = max(1, ROUNDS * 1000 // len(places))
    ours, pairs, *others = [1e3 * t for t in in_turns(runs, rounds, 1)]
    goal = GOALS.get((len(places), k))
    judged = (
        f"  (goal: {goal:g}, {'met' if ours <= goal else 'missed'})" if goal else ""
    )
    kd = f"{others[0]:9.2f}" if others else "        –"
    return f"{len(places):7} {k:4} {ours:10.3f} {kd} {pairs:10.2f}{judged}"


def main() -> None:
    print(
        f"CPU ms, {AREA:g} m² a robot\n\n robots    k    nearest  k-d tree  all pairs"
    )
    for n in ROBOTS:
        sim = world(n)
        for k in COUNTS:
            print(nearest(sim, k), flush=True)

    k = COUNTS[-1]
    print(f"\nhalf of them crowded together, k = {k}")
    for spread in (0.1, 1e-6):
        crowd = world(ROBOTS[0], spread)
        (ours,) = in_turns([lambda c=crowd: c.fleet.nearest(k)], ROUNDS, 1)  # type: ignore[misc]
        print(f"{ROBOTS[0]:7} in {spread:g} of the side {1e3 * ours:10.3f}")

    print(f"\nwithin {RADIUS:g} m; links of them in the line of sight")
    print(" robots     within   pairs   in sight   links")
    for n in ROBOTS:
        fleet = world(n).fleet
        within, links = in_turns(
            [
                lambda f=fleet: f.within(RADIUS),  # type: ignore[misc]
                lambda f=fleet: f.range_and_bearing(RADIUS),  # type: ignore[misc]
            ],
            ROUNDS,
            1,
        )
        pairs = len(fleet.within(RADIUS).indices)
        seen = len(fleet.range_and_bearing(RADIUS).senders)
        judged = ""
        if n == 1000:
            ratio = ARGOS / (10.0 * links)
            judged = (
                f"  ({10.0 * links:.4f} s a simulated s at 10 Hz; ARGoS: {ratio:.0f} ×)"
            )
        print(
            f"{n:7} {1e3 * within:10.3f} {pairs:7} {1e3 * links:10.3f} {seen:7}{judged}"
        )


if __name__ == "__main__":
    main()
