"""The schedule of a study on a cluster, simulated: efficiency against workers, from
measured run times and costs.

Workers are slots that take the tasks that were handed out first. The driver
(`botyard.studies.raydriver`) is sequential: it hands out a task, receives a message,
receives a row. `bench.study` measures the processor time of each. Groups come from
`botyard.studies.groups`. Network latency, starts of workers and other programs are not
simulated.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botyard.studies import groups
from botyard.studies.groups import Pace, group_seconds, take_group
from botyard.studies.raydriver import (
    GROUP_STRETCH,
    MESSAGES_PER_S,
    MIN_TASKS,
    SEND_PERIOD_S,
    TASK_S,
    TASKS_AT_A_TIME,
    TASKS_PER_WORKER,
)


@dataclass(frozen=True)
class Costs:
    """Processor time, s: of the driver, for a task, a message and a row; of a worker, between
    two tasks.
    """

    task: float = 1.0e-3
    message: float = 0.3e-3
    row: float = 0.03e-3
    between: float = 5e-3


WORKERS = (10, 100, 1000, 10_000)


def efficiency(runs: Sequence[float], workers: int, costs: Costs) -> float:
    """Return the share of the workers' time, up to the end of the last run, that runs take."""
    waiting, pace, period = (
        deque(runs),
        Pace(),
        max(SEND_PERIOD_S, workers / MESSAGES_PER_S),
    )
    longest = GROUP_STRETCH * group_seconds(workers, TASK_S)
    free = [0.0] * workers
    messages: list[tuple[float, int, list[float], list[float] | None]] = []
    now, last, tasks, number = 0.0, 0.0, 0, 0
    while waiting or tasks:
        most = max(MIN_TASKS, TASKS_PER_WORKER * workers)
        for _ in range(min(TASKS_AT_A_TIME, most - tasks)):
            if not waiting:
                break
            group = take_group(waiting, workers, pace, TASK_S)
            now += costs.task
            tasks += 1
            at = begin = max(now, heapq.heappop(free)) + costs.between
            sent, rows = begin, []
            for k, wall in enumerate(group, 1):
                at += wall
                rows.append(wall)
                is_last = k == len(group) or at - begin > longest
                if is_last or at - sent >= period:
                    number += 1
                    heapq.heappush(
                        messages, (at, number, rows, group[k:] if is_last else None)
                    )
                    sent, rows = at, []

                if is_last:
                    break

            heapq.heappush(free, at)
            last = max(last, at)

        if waiting and tasks < most and messages[0][0] > now:
            continue
        at, _, rows, left = heapq.heappop(messages)
        now = max(now, at) + costs.message + costs.row * len(rows)
        for wall in rows:
            pace.add(wall)
        if left is not None:
            tasks -= 1
            waiting.extendleft(reversed(left))

    return sum(runs) / (workers * max(last, now))


def drawn(shape: Sequence[float], count: int, mean: float) -> list[float]:
    """Return run times with the distribution of measured ones, scaled to another mean, s."""
    generator = random.Random(1)
    factor = mean * len(shape) / sum(shape)
    return [factor * wall for wall in generator.choices(shape, k=count)]


def table(shape: Sequence[float], costs: Costs) -> None:
    """Print the table of efficiencies."""
    columns: list[tuple[str, float, int, dict[str, Any], Costs]] = [
        ("0.1 s", 0.1, 1000, {}, costs),
        ("1 s", 1.0, 100, {}, costs),
        ("10 s", 10.0, 100, {}, costs),
        ("60 s", 60.0, 100, {}, costs),
        ("60 s, 10 a worker", 60.0, 10, {}, costs),
        ("0.1 s, groups of 5 s", 0.1, 1000, {"GROUPS_PER_S": 10**9}, costs),
        ("1 s, at no cost", 1.0, 100, {}, Costs(0.0, 0.0, 0.0, 0.0)),
    ]
    print("   workers | " + " | ".join(name for name, *_ in columns))
    for workers in WORKERS:
        cells = []
        for _, mean, each, changes, prices in columns:
            before = {name: getattr(groups, name) for name in changes}
            for name, value in changes.items():
                setattr(groups, name, value)
            try:
                count = min(workers * each, MAX_RUNS)
                cells.append(
                    f"{100 * efficiency(drawn(shape, count, mean), workers, prices):.1f} %"
                )
            finally:
                for name, value in before.items():
                    setattr(groups, name, value)

        print(f"   {workers} | " + " | ".join(cells), flush=True)


MAX_RUNS = 1_000_000
"""Most runs of a plan."""
