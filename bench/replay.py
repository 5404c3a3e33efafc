"""Reading of recordings: jumps to any moment of an hour of 20 robots, repetition of the run,
arrays, and a table.

Wall time of one thread, in this process.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from botyard.recording import export, load, resimulate
from botyard.recording.player import Player
from botyard.recording.track import Track, read_track
from botyard.sim.simulation import Simulation

T = TypeVar("T")
ROBOTS: Final = 20
HOUR_S: Final = 3600.0
SCANS_S: Final = 300.0
"""Simulated time of the run with scans, s."""
SEEKS: Final = 500
LIMIT_MS: Final = 100.0
"""Time to any moment."""


def timed(act: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a call, and the time that it took, s."""
    begin = time.perf_counter()
    found = act()
    return found, time.perf_counter() - begin


def record(path: Path, seconds: float, scans: bool) -> None:
    """Record robots in the shipped office that get a command every second."""
    sim = Simulation.load("office", seed=1, warn=lambda text: None)
    robots = [
        sim.add_robot(
            "p3dx",
            f"r{k}",
            pose=(5.0 + k % 5 * 3.0, 8.0 + k // 5 * 2.0, 0.1 * k),
            lasers=["lms200"],
        )
        for k in range(ROBOTS)
    ]
    if scans:
        for robot in robots:
            robot.laser.subscribe("bench")

    with sim.record(path):
        for second in range(round(seconds)):
            for k, robot in enumerate(robots):
                robot.command(
                    v=0.3 * math.sin(second / 5 + k), w=0.5 * math.cos(second / 3 + k)
                )

            sim.step(round(1.0 / sim.dt))


def seeks(track: Track, watched: int) -> str:
    """Return the times of jumps to random moments; `watched`: number of robots whose lasers are
    read, as on the page.
    """
    player, somewhere = Player(track), random.Random(1)
    for robot in list(player.sim.robots.values())[:watched]:
        robot.laser.subscribe("bench")
    times = []
    for _ in range(SEEKS):
        moment = somewhere.uniform(player.begin, player.end)

        def look(moment: float = moment) -> None:
            player.seek(moment)
            player.sim.settle()

        times.append(1e3 * timed(look)[1])

    assert not player.corrections
    times.sort()
    what = (
        f"{times[SEEKS // 2]:.1f} ms (median), {times[SEEKS * 95 // 100]:.1f} "
        f"(of 95 %), {times[-1]:.1f} (longest)"
    )
    return f"{what}, {LIMIT_MS:.0f} wanted"


def measure(folder: Path, seconds: float, scans: bool) -> None:
    """Measure all ways to read a recording."""
    path = folder / "run.mcap"
    record(path, seconds, scans)
    print(
        f"   {ROBOTS} robots, {seconds:.0f} s, {'with' if scans else 'without'} "
        f"scans: {path.stat().st_size / 1e6:.1f} MB"
    )
    track, taken = timed(lambda: read_track(path))
    states = (sum(map(len, track.frames)) + sum(map(len, track.entries))) / 1e6
    print(
        f"      read for the time line in {taken:.1f} s; {len(track.moments)} "
        f"states and {len(track.entries)} changes, {states:.1f} MB"
    )
    print(f"      to any moment: {seeks(track, 0)}")
    print(f"      with a laser read: {seeks(track, 1)}")
    proof, taken = timed(lambda: resimulate(path))
    assert proof.divergence is None
    print(
        f"      simulated again and compared: {taken:.1f} s, {seconds / taken:.0f} "
        "times as fast as real time"
    )
    run, taken = timed(lambda: load(path))
    print(f"      as arrays {run.poses.shape}: {taken:.1f} s")
    if scans:
        found, taken = timed(lambda: run.scans().ranges.shape)
        print(f"      scans {found}: {taken:.1f} s")

    rows, taken = timed(lambda: export(run, folder / "run.csv"))
    print(f"      {rows} rows of CSV: {taken:.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), SCANS_S, True)
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), HOUR_S, False)


if __name__ == "__main__":
    main()
