"""The traffic engine: events a second for 100, 1000 and 10 000 robots × 50 sectors, and
the time of the Banker's decisions.

Against a reference of the same run: a queue of as many robots in plain Python (heapq),
which takes each event out and puts the next one in and does nothing else. Random
sectors of 2–5 m, each with half a conflict on average, seed 1, one thread; compiled
before.
"""

from __future__ import annotations

import heapq
import resource
import statistics
import time

import numpy as np

from bench.common import judged
from botyard.native.kinds import Pack
from botyard.traffic.engine import Traffic
from botyard.traffic.kernels import events as k
from botyard.traffic.kernels import runarrays
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task, Vehicle

SECTORS = 50
ROBOTS, EVENTS = (100, 1000, 10_000), 300_000
GOALS = {10_000: 5.0}
"""Million events a second, by the number of robots."""


def random_task(
    robots: int, sectors: int = SECTORS, density: float = 0.5, seed: int = 1
) -> Task:
    """Return robots whose inner sectors conflict at random with other robots' sectors at about
    the same stage.
    """
    rng = np.random.default_rng(seed)
    vehicles = tuple(
        Vehicle(ends=np.cumsum(rng.uniform(2.0, 5.0, sectors))) for _ in range(robots)
    )
    count = int(robots * sectors * density)
    a, b = rng.integers(0, robots, count), rng.integers(0, robots, count)
    s = rng.integers(1, sectors - 1, count)
    t = np.clip(s + rng.integers(-1, 2, count), 1, sectors - 2)
    different = a != b
    return Task(vehicles, np.stack([a, s, b, t], axis=1)[different].astype(np.int64))


def reference(robots: int, events: int) -> float:
    """Return events a second of an event queue in plain Python."""
    queue = [(float(i), i) for i in range(robots)]
    heapq.heapify(queue)
    begin = time.perf_counter()
    for _ in range(events):
        t, i = queue[0]
        heapq.heapreplace(queue, (t + 1.5 * robots, i))

    return events / (time.perf_counter() - begin)


def measured(
    task: Task, name: str, rules: Rules, log: bool
) -> tuple[float, int, str, float]:
    """Return the seconds of the run, its events, how it ended, and the seconds of its
    preparation.
    """
    begin = time.perf_counter()
    traffic = Traffic(task, find_supervisor(name), rules, log=log)
    ready = time.perf_counter()
    out = traffic.run()
    return time.perf_counter() - ready, out.count, out.ending.value, ready - begin


def main() -> None:
    measured(random_task(3, 5), "fcfs", Rules(), True)
    measured(random_task(3, 5), "fcfs", Rules(compiled=False), True)
    for robots in ROBOTS:
        task = random_task(robots)
        plain = reference(robots, EVENTS)
        print(
            f"   {robots:6} robots × {SECTORS} sectors; reference (heapq alone): "
            f"{plain / 1e6:.2f} million events/s"
        )
        for name in ("dummy", "fcfs", "chained"):
            # The dummy supervisor resolves no conflicts, so with them its robots collide at once.
            free = Task(task.vehicles) if name == "dummy" else task
            best = min(
                (measured(free, name, Rules(), False) for _ in range(3)),
                key=lambda m: m[0],
            )
            seconds, count, ending, ready = best
            rate = count / seconds
            print(
                f"          {name:8} {rate / 1e6:6.2f} million events/s "
                f"{judged(rate / 1e6, GOALS.get(robots), least=True)} "
                f"({rate / plain:4.1f} × reference); {count} events, {ending}, "
                f"{seconds:.2f} s + {ready:.2f} s to make ready"
            )

        seconds, count, _, _ = measured(task, "fcfs", Rules(), True)
        print(
            "          fcfs, with a log of all events: "
            f"{count / seconds / 1e6:.2f} million events/s"
        )
        if robots <= 1000:
            seconds, count, _, _ = measured(
                Task(task.vehicles), "dummy", Rules(compiled=False), False
            )
            print(
                "          a supervisor in Python (grants all): "
                f"{count / seconds / 1e3:.0f} thousand events/s"
            )

    print(
        "   memory at most: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, "
        "Numba and NumPy included"
    )
    banker()


def banker() -> None:
    """Measure the time of a decision of the banker's algorithm: 100 robots × 20 stages."""
    traffic = Traffic(random_task(100, 20, 1.0), find_supervisor("bankers"), log=False)
    w = traffic.world
    packed = Pack(w)
    k.begin(packed)
    times, before = [], 0
    while True:
        begin = time.perf_counter()
        code = k.advance(packed, float(w.key[0]))
        spent = time.perf_counter() - begin
        tests = int(w.c[runarrays.TESTS])
        if tests > before:
            times.append(spent / (tests - before))
            before = tests

        if code != runarrays.TIME:
            break

    print(
        "   Banker's test, 100 robots × 20 sectors, each with a conflict: "
        f"{len(times)} decisions, median "
        f"{1e6 * statistics.median(times):.1f} µs, longest {1e6 * max(times):.0f} µs"
    )
