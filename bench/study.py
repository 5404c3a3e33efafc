"""Studies: runs a minute on 1 and 2 workers against plain multiprocessing, overhead of a run, resuming 100,000 rows.

Both start new interpreters for the same function, and their start is counted. They are measured in turns; figures are medians.
Ratios of runs that compute mean something on a quiet machine only: each worker is a session of its own, to which
Linux (sched_autogroup) may give more of a busy processor than to the processes of a pool. Runs that sleep show what handing out costs.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from botyard.sim.simulation import Simulation
from botyard.studies.plan import read_plan
from botyard.studies.study import Study

RUNS: Final = 16
"""Runs of about a second."""
ROUNDS: Final = 3
SHORT: Final = 5000
"""Runs that do nothing."""
ROWS: Final = 100_000


def world(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """A world with as many steps as take a second on a quiet machine."""
    sim = Simulation.load("warehouse", seed=seed)
    for k in range(20):
        robot = sim.add_robot("p3dx")
        robot.command(v=0.3, w=0.1 + 0.005 * k)
    for _ in range(params["steps"]):
        sim.step()
    return {"x": float(sim.poses[0, 0])}


def asleep(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """A second without work: what other programs of the machine do does not matter."""
    time.sleep(1.0)
    return {"y": seed}


def nothing(sim: Any, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """A run that takes no time."""
    return {"y": seed}


def steps_of_a_second() -> int:
    """Steps of `world` in a second."""
    world(None, {"steps": 10}, 1)
    begin = time.perf_counter()
    world(None, {"steps": 0}, 1)
    setup = time.perf_counter() - begin
    steps = 500
    begin = time.perf_counter()
    world(None, {"steps": steps}, 1)
    return max(1, round(steps * (1.0 - setup) / (time.perf_counter() - begin - setup)))


def study(folder: Path, function: str, count: int, workers: int, steps: int = 0) -> float:
    """Wall time of a study, s."""
    plan = folder / "plan.yaml"
    plan.write_text(f"study: 1\nrun: bench.study:{function}\ngrid: {{steps: [{steps}]}}\nseeds: {count}\n")
    one = Study.open(read_plan(plan), folder / "results")
    one.folder.clear()
    one = Study.open(one.plan, folder / "results")
    begin = time.perf_counter()
    one = one.carry_out(one.left(), workers)
    wall = time.perf_counter() - begin
    assert one.counts()["ok"] == count
    return wall


def _called(work: tuple[str, int, int]) -> dict[str, Any]:
    name, steps, seed = work
    return {"world": world, "asleep": asleep, "nothing": nothing}[name](None, {"steps": steps}, seed)


def pool(function: str, count: int, workers: int, steps: int = 0) -> float:
    """Wall time of the same with a plain pool, s."""
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(workers) as processes:
        done = list(processes.imap_unordered(_called, [(function, steps, seed) for seed in range(1, count + 1)]))
    assert len(done) == count
    return time.perf_counter() - begin


def rates(folder: Path, function: str, steps: int) -> None:
    """Runs of a second."""
    for workers in (1, 2):
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(study(folder, function, RUNS, workers, steps))
            theirs.append(pool(function, RUNS, workers, steps))
        a, b = statistics.median(ours), statistics.median(theirs)
        pairs = [t / o for o, t in zip(ours, theirs, strict=True)]
        print(
            f"   {RUNS} runs of a second ({function}), {workers} workers: {60 * RUNS / a:.1f} runs a minute; plain multiprocessing "
            f"{60 * RUNS / b:.1f}; ratio {statistics.median(pairs):.3f} (of pairs {', '.join(f'{p:.3f}' for p in pairs)})",
            flush=True,
        )


def overhead(folder: Path) -> None:
    """Runs that do nothing."""
    for workers in (1, 2):
        start = study(folder, "nothing", workers, workers)
        wall = study(folder, "nothing", SHORT, workers)
        print(
            f"   {SHORT} empty runs, {workers} workers: {1e3 * workers * (wall - start) / SHORT:.2f} ms of a worker for a run "
            f"(start {start:.2f} s); plain multiprocessing {1e3 * workers * pool('nothing', SHORT, workers) / SHORT:.2f} with its start"
        )


def resuming(folder: Path) -> None:
    """Going on when all is done: the whole command, and its parts."""
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
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
    print(
        f"   resuming {ROWS} rows, the whole command: median {statistics.median(times):.2f} s, least {min(times):.2f}; "
        f"processor time {statistics.median(cpu):.2f} s"
    )
    begin = time.perf_counter()
    plan = read_plan(folder / "plan.yaml")
    one = Study.open(plan, folder / "results")
    assert not one.left()
    opened = time.perf_counter()
    one.write_table()
    print(f"      keys and rows {opened - begin:.2f} s, table {time.perf_counter() - opened:.2f} s")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="botyard-bench-") as name:
        folder = Path(name)
        (folder / "bench").mkdir()  # the plan's own module: this one
        (folder / "bench" / "__init__.py").touch()
        (folder / "bench" / "study.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
        overhead(folder)
        resuming(folder)
        rates(folder, "asleep", 0)
        rates(folder, "world", steps_of_a_second())


if __name__ == "__main__":
    main()
