"""Studies: runs a minute on 1 and 2 workers against plain multiprocessing, overhead of
a run, resuming 100,000 rows; the same on Ray; and, simulated, the schedule of a study
on many more workers.

All start new interpreters for the same function, and their start is counted; for Ray it
is separate, and rates are measured after it (`rate`). Runs that sleep show what handing
out costs: both are measured at the same time, so that the machine is the same for both.
Runs that compute are measured in turns (ours, theirs, theirs, ours), so that what
slowly changes counts for both; their ratios mean something on a quiet machine only:
each worker is a session of its own, to which Linux (sched_autogroup) may give more of a
busy processor than to the processes of a pool. Figures are medians.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench import schedule, studyruns
from bench.schedule import Costs
from bench.studyruns import called, world
from botyard.studies import onray
from botyard.studies.plan import read_plan
from botyard.studies.study import Study

RUNS: Final = 16
"""Runs of about a second."""
RAY_RUNS: Final = 18
"""The same on Ray, for each worker: they begin seconds apart."""
ROUNDS: Final = 3
"""Pairs of runs that sleep."""
SHORT: Final = 5000
"""Runs that do nothing."""
ROWS: Final = 100_000


def steps_of_a_second() -> int:
    """Return how many steps of `world` take a second of processor time."""

    def used(steps: int) -> float:
        begin = time.process_time()
        world(None, {"steps": steps}, 1)
        return time.process_time() - begin

    # The first call compiles the kernels.
    used(10)
    setup, steps = min(used(0) for _ in range(3)), 20_000
    return round(steps * (1.0 - setup) / min(used(steps) - setup for _ in range(3)))


def study(
    folder: Path,
    function: str,
    count: int,
    workers: int,
    steps: int = 0,
    ray: str | None = None,
    ends: list[float] | None = None,
) -> float:
    """Return the wall time of a study, s; `ends` gets the times at which rows arrive, since the
    study's start.
    """
    plan = folder / "plan.yaml"
    plan.write_text(
        f"study: 1\nrun: studyruns:{function}\ngrid: {{steps: [{steps}]}}\nseeds: {count}\n"
    )
    one = Study.open(read_plan(plan), folder / "results")
    one.folder.clear()
    one = Study.open(one.plan, folder / "results")
    begin = time.perf_counter()
    one = one.carry_out(
        one.left(),
        workers,
        lambda _: (
            ends.append(time.perf_counter() - begin) if ends is not None else None
        ),
        ray=ray,
    )
    wall = time.perf_counter() - begin
    assert one.counts()["ok"] == count
    return wall


def pool(
    function: str,
    count: int,
    workers: int,
    steps: int = 0,
    ends: list[float] | None = None,
) -> float:
    """Return the wall time of the same runs with a plain pool, s; `ends` as in `study`."""
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(workers) as processes:
        done = 0
        for _ in processes.imap_unordered(
            called, [(function, steps, seed) for seed in range(1, count + 1)]
        ):
            done += 1
            if ends is not None:
                ends.append(time.perf_counter() - begin)

    assert done == count
    return time.perf_counter() - begin


def pairs(
    ours: Callable[[], float], theirs: Callable[[], float], function: str
) -> list[tuple[float, float]]:
    """Return pairs of our and the pool's figures, measured at the same time for runs that
    sleep, otherwise in turns.
    """
    found = []
    if function != "asleep":
        a, b, c, d = ours(), theirs(), theirs(), ours()
        return [(a, b), (d, c)]

    for _ in range(ROUNDS):
        other: list[float] = []
        thread = threading.Thread(target=lambda other=other: other.append(theirs()))  # type: ignore[misc]
        thread.start()
        one = ours()
        thread.join()
        found.append((one, *other))

    return found


def told(what: str, rates: list[tuple[float, float]]) -> str:
    """Return a line with the runs a minute of botyard and of the pool, and their ratios."""
    ours, theirs = (statistics.median(side) for side in zip(*rates, strict=True))
    ratios = [a / b for a, b in rates]
    return (
        f"   {what}: {ours:.1f} runs a minute; plain multiprocessing "
        f"{theirs:.1f}; ratio {statistics.median(ratios):.3f} "
        f"(of pairs {', '.join(f'{ratio:.3f}' for ratio in ratios)})"
    )


def rates(folder: Path, function: str, steps: int) -> None:
    """Measure runs that take a second."""
    for workers in (1, 2):
        found = pairs(
            lambda workers=workers: (
                60 * RUNS / study(folder, function, RUNS, workers, steps)
            ),  # type: ignore[misc]
            lambda workers=workers: 60 * RUNS / pool(function, RUNS, workers, steps),  # type: ignore[misc]
            function,
        )
        print(
            told(f"{RUNS} runs of a second ({function}), {workers} workers", found),
            flush=True,
        )


def rate(ends: list[float], workers: int) -> float:
    """Return the runs a minute while all workers work: the slope of the line through the
    moments at which rows arrive. The first third, in which workers start, is left out, and so
    is the last row of each worker, after which the worker may have no more work.
    """
    first, last = len(ends) // 3, len(ends) - workers
    return (
        60.0 / statistics.linear_regression(range(first, last), ends[first:last]).slope
    )


class Cluster:
    """A Ray cluster of two nodes with a processor each."""

    def __init__(self) -> None:
        from tests.studies.raycluster import token_env

        os.environ.update(token_env())
        line = [sys.executable, "-m", "tests.studies.raycluster", "1"]
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self._said("address ")

    def _said(self, word: str) -> str:
        assert self._process.stdout is not None
        return (
            next(line for line in self._process.stdout if line.startswith(word))
            .removeprefix(word)
            .strip()
        )

    def end_second_node(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._said("removed")

    def close(self) -> None:
        self._process.communicate(timeout=60)


def ray_rates(
    folder: Path, function: str, steps: int, address: str, workers: int
) -> None:
    """Measure runs that take a second on Ray, with as many workers as the cluster has."""
    starts = []
    count = RAY_RUNS * workers

    def ours() -> float:
        ends: list[float] = []
        study(folder, function, count, None, steps, address, ends)
        starts.append(ends[0] - 1.0)
        return rate(ends, workers)

    def theirs() -> float:
        ends: list[float] = []
        pool(function, count, workers, steps, ends)
        return rate(ends, workers)

    text = told(
        f"{count} runs of a second ({function}) on Ray, {workers} workers",
        pairs(ours, theirs, function),
    )
    print(
        f"{text}; the first run started after {statistics.median(starts):.1f} s",
        flush=True,
    )


def _children_cpu() -> float:
    used = os.times()
    return used.children_user + used.children_system


def ray_costs(folder: Path, address: str) -> Costs:
    """Return the cost of a task and a row for the process that speaks to Ray: its processor
    time for empty runs, one in a task, and many.
    """

    def cpu(count: int, alone: bool) -> float:
        code = (
            "from botyard.studies import groups, raydriver; groups.MAX_GROUP "
            "= 1; raydriver.main()"
        )
        before, command = _children_cpu(), onray.python_command
        if alone:
            onray.python_command = lambda _: [sys.executable, "-c", code]  # type: ignore[assignment]
        try:
            study(folder, "nothing", count, 2, ray=address)
        finally:
            onray.python_command = command

        return _children_cpu() - before

    start = cpu(2, alone=False)
    row = (cpu(SHORT, alone=False) - start) / SHORT
    task = (cpu(SHORT // 5, alone=True) - start) / (SHORT // 5) - row
    # A task has two messages, its start and its rows, so each message counts for a fifth.
    costs = Costs(task=0.6 * task, message=0.2 * task, row=row)
    print(
        "   on Ray, CPU time of the process that distributes tasks: "
        f"{1000.0 * task:.2f} ms for a task, {1000.0 * row:.3f} ms for a row"
    )
    return costs


def measured_shape(folder: Path) -> list[float]:
    """Return the wall times of the runs of a traffic study, of which a few are long."""
    plan = folder / "traffic.yaml"
    plan.write_text(
        "study: 1\ntraffic: {task: $family, robots: $robots, supervisor: $supervisor}\nseeds: 10\n"
        "grid: {family: [ring, warehouse, crossings, corridor], robots: [8, 16, "
        "32], supervisor: [bankers, chained, order]}\n"
    )
    one = Study.open(read_plan(plan), folder / "traffic")
    rows = one.carry_out(one.left()).rows.values()
    walls = [row.wall for row in rows]
    mean = statistics.mean(walls)
    print(
        f"   run times of {len(walls)} runs of traffic: mean {1e3 * mean:.1f} "
        f"ms, median {statistics.median(walls) / mean:.2f} of it, "
        f"longest {max(walls) / mean:.0f} times"
    )
    return walls


def overhead(folder: Path, counts: Sequence[int] = (1, 2)) -> None:
    """Print what runs cost that do nothing, by numbers of workers."""
    for workers in counts:
        start = study(folder, "nothing", workers, workers)
        wall = study(folder, "nothing", SHORT, workers)
        print(
            f"   {SHORT} empty runs, {workers} workers: "
            f"{1e3 * workers * (wall - start) / SHORT:.2f} ms of a worker for a run "
            f"(start {start:.2f} s); plain multiprocessing "
            f"{1e3 * workers * pool('nothing', SHORT, workers) / SHORT:.2f} with its start"
        )


def resuming(folder: Path) -> None:
    """Measure how long a finished study takes to resume: the whole command, and its parts."""
    wall = study(folder, "nothing", ROWS, 2)
    print(f"   {ROWS} empty runs on 2 workers: {wall:.1f} s")
    line = [
        sys.executable,
        "-m",
        "botyard",
        "study",
        str(folder / "plan.yaml"),
        "-o",
        str(folder / "results"),
        "--resume",
    ]
    times, cpu = [], []
    for _ in range(5):
        before, begin = os.times(), time.perf_counter()
        subprocess.run(line, check=True, capture_output=True)
        after = os.times()
        times.append(time.perf_counter() - begin)
        cpu.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )

    print(
        f"   resuming {ROWS} rows, the whole command: median "
        f"{statistics.median(times):.2f} s, least {min(times):.2f}; "
        f"processor time {statistics.median(cpu):.2f} s"
    )
    begin = time.perf_counter()
    plan = read_plan(folder / "plan.yaml")
    one = Study.open(plan, folder / "results")
    assert not one.left()
    opened = time.perf_counter()
    one.write_table()
    print(
        f"      keys and rows {opened - begin:.2f} s, table {time.perf_counter() - opened:.2f} s"
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="botyard-bench-") as name:
        folder = Path(name)
        # The plan names this module, and modules of a plan are imported from its folder.
        shutil.copy(studyruns.__file__, folder)
        overhead(folder)
        resuming(folder)
        rates(folder, "asleep", 0)
        rates(folder, "world", steps := steps_of_a_second())
        cluster = Cluster()
        try:
            costs = ray_costs(folder, cluster.address)
            ray_rates(folder, "asleep", 0, cluster.address, 2)
            ray_rates(folder, "world", steps, cluster.address, 2)
            cluster.end_second_node()
            ray_rates(folder, "asleep", 0, cluster.address, 1)
        finally:
            cluster.close()

        schedule.table(measured_shape(folder), costs)


if __name__ == "__main__":
    main()
