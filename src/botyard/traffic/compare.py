"""Benchmark of supervisors: one run on one task, and a table of many runs.

`botyard.studies.comparison` carries the runs out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from botyard.errors import BotyardError
from botyard.formats.budget import Budget
from botyard.native.kinds import Pack
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.kernels.events import count_stuck, places
from botyard.traffic.outcome import Ending
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor
from botyard.traffic.task import Task, load_task


@dataclass(frozen=True, slots=True)
class Case:
    """One run.

    Attributes
    ----------
    family : str
        A family of `botyard.traffic.generate`, or the path of a task file.
    robots : int
        Number of robots; 0 with a task file.
    seed : int
        Seed of the task, and of the loss and jitter of messages.
    supervisor : str
        Name of the supervisor.
    """

    family: str
    robots: int
    seed: int
    supervisor: str


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one run.

    Attributes
    ----------
    case : Case
        Case that was run.
    outcome : str
        ``completed``, ``collision``, ``deadlock``, ``timeout``, or ``refused`` if the
        supervisor rejects the task.
    text : str
        Readable description of the outcome.
    makespan : float
        Time at which the last robot finished, s; 0 if not completed.
    completion, waiting : float
        Sums over all robots of their completion times and of their waiting times, s.
    stops, grants, events : int
        Numbers of stops, of granted permissions, and of all events.
    cycle : tuple of int
        Robots that wait for each other in a circle; empty without a deadlock.
    wall : float
        Wall time of the run, s.
    """

    case: Case
    outcome: str
    text: str
    makespan: float = 0.0
    completion: float = 0.0
    waiting: float = 0.0
    stops: int = 0
    grants: int = 0
    events: int = 0
    cycle: tuple[int, ...] = ()
    wall: float = 0.0


def run_case(case: Case, rules: Rules = Rules(), budget: Budget = Budget()) -> Row:
    """Execute one run on the calling thread.

    Parameters
    ----------
    case : Case
        Task and supervisor.
    rules : Rules
        Options of the run.
    budget : Budget
        Limits for reading a task file.

    Returns
    -------
    Row
        Result. An invalid task or a supervisor that rejects it gives the outcome
        ``refused`` and no exception.
    """
    try:
        task: Task = (
            generate(case.family, case.robots, case.seed)
            if case.robots
            else load_task(case.family, budget=budget)
        )
        # Building the task does not count: the wall time compares supervisors.
        begin = time.perf_counter()
        out = Traffic(task, find_supervisor(case.supervisor), rules).run()
        wall = time.perf_counter() - begin
    except BotyardError as error:
        # A refusal, such as an unsafe start, is a result and not a failure of the
        # comparison.
        return Row(case, "refused", str(error))

    m = out.metrics
    return Row(
        case,
        out.ending.value,
        out.describe(),
        out.makespan or 0.0,
        float(m["sum_of_completion_times_s"]),
        float(m["waiting_time_s"]),
        int(m["stops"]),
        int(m["grants"]),
        out.count,
        out.cycle,
        wall,
    )


def compile_kernels() -> None:
    """Compile or load the kernels of traffic with a small run."""
    # With the dummy supervisor no robot waits, so each kernel is called without a
    # deadlock.
    traffic = Traffic(generate("deadlock", 2, 1), find_supervisor("dummy"))
    count_stuck(Pack(traffic.world))
    traffic.start()
    traffic.permit(0)
    traffic.advance(0.0)
    places(traffic.world, 0.0, np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Summary:
    """Aggregate of the runs of one family, size and supervisor.

    Means are over the completed runs.

    Attributes
    ----------
    family, robots, supervisor : str, int, str
        Values that all runs of the group have in common.
    runs : int
        Number of runs.
    outcomes : dict
        Number of runs by outcome.
    makespan, completion, waiting, stops : float
        Means: s, s per robot, s per robot, stops per robot.
    wall : float
        Mean wall time of all runs, s.
    """

    family: str
    robots: int
    supervisor: str
    runs: int
    outcomes: dict[str, int]
    makespan: float
    completion: float
    waiting: float
    stops: float
    wall: float


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Group rows by family, size and supervisor.

    Parameters
    ----------
    rows : iterable of Row
        Results in any order.

    Returns
    -------
    list of Summary
        One for each group, in order of first appearance.
    """
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        # Means are taken over seeds only.
        groups.setdefault(
            (row.case.family, row.case.robots, row.case.supervisor), []
        ).append(row)

    return [_summary(key, group) for key, group in groups.items()]


def _summary(key: tuple[str, int, str], group: Sequence[Row]) -> Summary:
    # Times of runs that did not complete would make bad supervisors look fast.
    good = [r for r in group if r.outcome == Ending.COMPLETED.value]
    outcomes: dict[str, int] = {}
    for r in group:
        outcomes[r.outcome] = outcomes.get(r.outcome, 0) + 1

    def mean(values: Iterable[float]) -> float:
        found = list(values)
        return fmean(found) if found else 0.0

    # A case with a task file has 0 robots in its key, so its means are totals.
    n = key[1] or 1
    return Summary(
        *key,
        len(group),
        outcomes,
        mean(r.makespan for r in good),
        mean(r.completion / n for r in good),
        mean(r.waiting / n for r in good),
        mean(r.stops / n for r in good),
        mean(r.wall for r in group),
    )


COLUMNS = (
    "family",
    "robots",
    "supervisor",
    "runs",
    "completed",
    "deadlocks",
    "collisions",
    "others",
    "makespan s",
    "completion s",
    "waiting s",
    "stops",
    "run ms",
)
"""Column titles of the table."""


def table(summaries: Iterable[Summary]) -> list[tuple[str, ...]]:
    """Return summaries as rows of the table, see `COLUMNS`."""
    out = []
    for s in summaries:
        o = s.outcomes
        others = s.runs - sum(
            o.get(k, 0) for k in ("completed", "deadlock", "collision")
        )
        numbers: tuple[Any, ...] = ("–",) * 4
        if o.get("completed"):
            numbers = (
                f"{s.makespan:.1f}",
                f"{s.completion:.1f}",
                f"{s.waiting:.1f}",
                f"{s.stops:.2f}",
            )

        counts = [
            str(o.get(name, 0)) for name in ("completed", "deadlock", "collision")
        ]
        out.append(
            (
                s.family,
                str(s.robots or "–"),
                s.supervisor.rpartition(":")[2],
                str(s.runs),
                *counts,
                str(others),
                *numbers,
                f"{1e3 * s.wall:.1f}",
            )
        )

    return out


__all__ = [
    "COLUMNS",
    "Case",
    "Row",
    "Summary",
    "compile_kernels",
    "run_case",
    "summarise",
    "table",
]
