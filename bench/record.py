"""Recordings: their cost for the thread that steps the world and in all, their size, and how much
simulated time a killed program loses.

100 robots with lasers of 181 rays drive among the shelves of the shipped warehouse,
steps of 100 ms; with scans (all lasers are read) and without (none is). Runs with a
recording and without one go on in turns in one process; CPU seconds for each simulated
one, the median of several pairs, so that what others do on the machine counts little.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from bench.reference import Yardstick
from botyard.recording.reader import Reader
from botyard.sim.simulation import Simulation

ROBOTS: Final = 100
SIMULATED_S, SPEED, PAIRS = 20.0, 10.0, 7
SIZE_S: Final = 15.0
STEP_LIMIT, CPU_LIMIT_S = 0.10, 0.03
"""Part of the step's thread; CPU s for each simulated second."""
SIZE_LIMITS_MB: Final = {True: 0.8, False: 0.05}
"""MB for each simulated second, with scans and without."""
LOSS_LIMIT_S, KILLS = 1.0, 5

Drive = Callable[[Simulation, int], None]


def world(scans: bool) -> Simulation:
    """Return a world of robots, whose lasers have a reader or not."""
    sim = Simulation.load("warehouse", seed=1)
    sim.add_robot("p3dx-sh", "r0")
    spec = sim.robots["r0"].spec
    for k in range(1, ROBOTS):
        sim.add_robot("p3dx-sh", f"r{k}", pose=sim.core.places.random(spec, k))
    for robot in sim.robots.values():
        if scans:
            robot.laser.subscribe("bench")

    drive_together(sim, 0)
    sim.step(20)
    return sim


def drive_together(sim: Simulation, tick: int) -> None:
    """Give all robots a command every second."""
    if tick % 10 == 0:
        turns = np.random.default_rng(tick).uniform(-0.8, 0.8, ROBOTS)
        sim.fleet.command(v=0.4, w=turns)


def drive_each(sim: Simulation, tick: int) -> None:
    """A command to each robot in every step, as 100 clients give them."""
    for k, robot in enumerate(sim.robots.values()):
        robot.command(v=0.4, w=0.5 * ((k + tick // 30) % 3 - 1))


class Cost(NamedTuple):
    """CPU seconds for each simulated second: of the thread that steps, and of the process."""

    step: float
    all: float


def run(
    sim: Simulation, drive: Drive, seconds: float = SIMULATED_S, speed: float = SPEED
) -> Cost:
    """Return the cost of a stretch of a run at `speed` times real time, so that the thread that
    writes gets its time, as in a run with clients.
    """
    steps, inside, process = round(seconds / sim.dt), 0.0, time.process_time()
    due = time.monotonic()
    for _ in range(steps):
        begin = time.thread_time()
        drive(sim, sim.tick)
        sim.step()
        inside += time.thread_time() - begin
        due = max(due + sim.dt / speed, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0.0)

    return Cost(inside / seconds, (time.process_time() - process) / seconds)


class Result(NamedTuple):
    """Result of a kind of run: its cost without a recording, the cost that a recording adds,
    and MB for each simulated second without the map at its start.
    """

    plain: Cost
    more: Cost
    size: float


def measure(scans: bool, drive: Drive, folder: Path) -> Result:
    """Measure pairs of stretches without and with a recording."""
    sim, path = world(scans), folder / "run.mcap"
    plain, recorded = list[Cost](), list[Cost]()
    for _ in range(PAIRS):
        plain.append(run(sim, drive))
        with sim.record(path):
            recorded.append(run(sim, drive))

    more = [
        Cost(b.step - a.step, b.all - a.all)
        for a, b in zip(plain, recorded, strict=True)
    ]
    # Run in real time as well: its chunks are smaller, so it needs more MB.
    with sim.record(path) as recording:
        begin = written(recording)
        run(sim, drive, SIZE_S, 1.0)
        size = written(recording) - begin

    return Result(middle(plain), middle(more), size / 1e6 / SIZE_S)


def middle(costs: list[Cost]) -> Cost:
    """Return the medians of several costs."""
    return Cost(median(c.step for c in costs), median(c.all for c in costs))


def written(recording: Any) -> int:
    """Return the length of a recording in bytes, once all entries so far are written."""
    size: int = recording._writer.call(
        lambda output: (output.flush(), output.size)[1]
    ).result()
    return size


CHILD: Final = """
import sys, time
from bench.record import drive_together, world
sim = world(True)
recording = sim.record(sys.argv[1])
due = time.monotonic()
while True:
    drive_together(sim, sim.tick)
    sim.step()
    sys.stdout.write(f"{sim.tick}\\n")
    sys.stdout.flush()
    due += sim.dt
    time.sleep(max(due - time.monotonic(), 0.0))
"""


def lost_when_killed(path: Path) -> float:
    """Return how many seconds of simulated time, in a run in real time, are missing at the end
    of the recording of a killed program.
    """
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        end, tick = None, 0
        for line in child.stdout:
            tick = int(line)
            if end is None:
                end = time.monotonic() + random.uniform(2.0, 4.0)
            if time.monotonic() > end:
                break

        child.kill()
        tick = max(
            [
                tick,
                *(int(line) for line in child.stdout.read().split("\n")[:-1] if line),
            ]
        )

    with Reader(path) as reader:
        last = max(
            message.time for message in reader.messages(("/r0/base_scan", "/tf"))
        )

    return tick * 0.1 - last / 1e9


KINDS: Final[tuple[tuple[str, bool, Drive], ...]] = (
    ("with scans", True, drive_together),
    ("without scans", False, drive_together),
    ("with scans, a command to each in each step", True, drive_each),
)


def main() -> None:
    yardstick = Yardstick()
    print(
        f"   {ROBOTS} robots; for each simulated second: CPU ms of the step's "
        "thread, of all threads (limit, scaled), MB"
    )
    print(f"   {'':44} steps     + recording             + in all                  MB")
    with tempfile.TemporaryDirectory() as name:
        for what, scans, drive in KINDS:
            yardstick.measure()
            plain, more, size = measure(scans, drive, Path(name))
            print(
                f"   {what:44} {plain.step * 1e3:5.1f}   {more.step * 1e3:5.2f} "
                f"= {more.step / plain.step:4.0%} ({STEP_LIMIT:.0%})"
                f"   {more.all * 1e3:6.2f} "
                f"({yardstick.judge(more.all * 1e3, CPU_LIMIT_S * 1e3).strip()})"
                f"   {size:.3f} ({SIZE_LIMITS_MB[scans]})",
                flush=True,
            )

        lost = [lost_when_killed(Path(name) / f"kill{k}.mcap") for k in range(KILLS)]

    print(
        f"   lost by kill -9: {median(lost):.2f} s in the median, "
        f"{max(lost):.2f} at most of {KILLS} ({LOSS_LIMIT_S:g})"
    )
    print(f"   {yardstick}")


if __name__ == "__main__":
    main()
