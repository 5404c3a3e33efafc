"""Scans of sparse worlds by spans of beams: a step of `botyard.Worlds` against exact
scans in C, in turns.

The C kernel (`bench/spans.c`) has neither grid nor errors nor motion. It shows what one
core can do in a walled square of 40 m with 100 walls, seed 7, from 1024 poses, over
180° and 8 m. A step of `Worlds` moves a round robot, casts its beams and adds errors.
Both are measured by CPU time, in turns, and each figure is the least of many rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.goal_task import Single
from bench.peers import FOV, R_MAX, SIZE
from bench.worlds_batch import disc, ours, scene

SOURCE = Path(__file__).with_name("spans.c")
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fPIC"]
POSES, STEPS, ROUNDS = 1024, 8, 15
RATIOS = {32: 2.0, 181: 2.5, 1081: 3.0}
"""Greatest ratio of a whole step to the C kernel's scan, by the number of rays."""
ENVIRONMENT_STEPS = {181: 350e3, 32: 600e3}
"""Least environment steps per CPU second, the task's own array code included."""
SEGMENT_STEPS = {1000: 100e3}
"""Least steps per CPU second, by the number of segments in the square."""


def build() -> ctypes.CDLL | None:
    """Return the compiled kernel; None without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    library = Path(tempfile.mkdtemp()) / "spans.so"
    # Link without -ffast-math: a library linked with it makes all code of the process flush
    # subnormal numbers to zero.
    made = library.with_suffix(".o")
    subprocess.run([gcc, *FLAGS, "-c", str(SOURCE), "-o", str(made)], check=True)
    subprocess.run([gcc, "-shared", str(made), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def scanner(
    library: ctypes.CDLL, poses: np.ndarray, walls: np.ndarray, rays: int
) -> Callable[[], np.ndarray]:
    """Return a function that scans from all poses and returns the ranges, m."""
    angles = np.linspace(-FOV / 2, FOV / 2, rays)
    arrays = [
        np.ascontiguousarray(a, np.float64)
        for a in (poses, walls, np.cos(angles), np.sin(angles))
    ]
    out = np.zeros((len(poses), rays))
    where = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, out)]

    def scan() -> np.ndarray:
        library.scan(
            len(poses),
            where[0],
            len(walls),
            where[1],
            rays,
            ctypes.c_double(FOV),
            ctypes.c_double(R_MAX),
            *where[2:],
        )
        return out

    return scan


def free_poses(n: int, robots: int = 1) -> np.ndarray:
    """Return free poses of the robots of `n` worlds, (n, robots, 3)."""
    single = Single(1)
    return np.array([single.free() for _ in range(n * robots)]).reshape(n, robots, 3)


def stepper(
    segments: np.ndarray, rays: int, poses: np.ndarray
) -> tuple[Any, Callable[[], object], Callable[[], object]]:
    """Return worlds, a step of them with random commands, and their reset to the poses."""
    import botyard
    from botyard.model.scene import Scene

    n, robots, _ = poses.shape
    spec = disc(rays, bearing_noise=False)
    worlds = botyard.Worlds(
        Scene(segments=segments), spec if robots == 1 else [spec] * robots, n, step=0.1
    )
    rng = np.random.default_rng(0)
    worlds.reset(poses=poses)
    worlds.command[..., 0] = rng.uniform(0.0, 1.0, (n, robots))
    worlds.command[..., 2] = rng.uniform(-1.0, 1.0, (n, robots))
    return worlds, worlds.step, lambda: worlds.reset(poses=poses)


def in_turns(
    runs: Sequence[Callable[[], object]],
    rounds: int,
    steps: int = STEPS,
    between: Callable[[], object] = lambda: None,
) -> list[float]:
    """Return the CPU seconds of each run, the least of several rounds of a few calls."""
    best = [math.inf] * len(runs)
    for run in runs:
        run()
    for _ in range(rounds):
        between()
        for k, run in enumerate(runs):
            began = time.process_time()
            for _ in range(steps):
                run()
            best[k] = min(best[k], (time.process_time() - began) / steps)

    return best


def squares(count: int) -> np.ndarray:
    """Return segments in the square, the shorter the more there are, and its four walls."""
    rng = np.random.default_rng(1)
    middle, angle = rng.uniform(0.0, SIZE, (count, 2)), rng.uniform(0.0, math.pi, count)
    half = rng.uniform(0.5, 1.5, count) * min(1.0, math.sqrt(100.0 / count))
    along = half[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    edge = [
        [0.0, 0.0, SIZE, 0.0],
        [SIZE, 0.0, SIZE, SIZE],
        [SIZE, SIZE, 0.0, SIZE],
        [0.0, SIZE, 0.0, 0.0],
    ]
    return np.concatenate([np.hstack([middle - along, middle + along]), edge])


def judged(value: float, goal: float | None, *, least: bool) -> str:
    """Return the text of a goal and whether a figure meets it; empty without a goal."""
    if goal is None:
        return ""
    met = value >= goal if least else value <= goal
    shown = f"{goal / 1e3:.0f} k" if least else f"{goal:.1f}"
    return f"(goal: {shown}, {'met' if met else 'missed'})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench spans", description=__doc__)
    parser.add_argument(
        "--poses", type=int, default=POSES, help="number of worlds in a batch"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--rays", type=int, nargs="+", default=[8, 16, 32, 64, 181, 360, 1081]
    )
    parser.add_argument(
        "--segments", type=int, nargs="*", default=[10, 100, 1000, 10_000]
    )
    parser.add_argument("--robots", type=int, nargs="*", default=[4, 16, 64])
    parser.add_argument(
        "--no-task",
        action="store_true",
        help="leave out the environment steps of the goal task",
    )
    asked = parser.parse_args(argv)
    library, n = build(), asked.poses
    if library is None:
        print("   without gcc there is no C kernel to compare with")
    walls, poses = scene(7).segments, free_poses(n)
    print("   µs a scan in C, µs a step of Worlds, and their ratio")
    for rays in asked.rays:
        worlds, step, reset = stepper(walls, rays, poses)
        runs = [step]
        if library is not None:
            runs.append(scanner(library, poses[:, 0], walls, rays))
        took, *reference = in_turns(runs, asked.rounds, between=reset)
        worlds.close()
        for c in reference:
            ratio = took / c
            print(
                f"   {rays:5} rays  {c / n * 1e6:6.2f}  {took / n * 1e6:6.2f}  "
                f"{ratio:5.2f}  {judged(ratio, RATIOS.get(rays), least=False)}",
                flush=True,
            )

    print("   steps per CPU second with 181 rays")
    for count in asked.segments:
        places = np.random.default_rng(1).uniform(1.0, SIZE - 1.0, (n, 1, 3))
        worlds, step, reset = stepper(squares(count), 181, places - [0.0, 0.0, 20.0])
        rate = n / in_turns([step], asked.rounds, between=reset)[0]
        worlds.close()
        print(
            f"   {count:6} segments      {rate / 1e3:8.1f} k  "
            f"{judged(rate, SEGMENT_STEPS.get(count), least=True)}",
            flush=True,
        )

    for robots in asked.robots:
        places = free_poses(max(n // robots, 1), robots)
        worlds, step, reset = stepper(walls, 181, places)
        rate = places.size / 3 / in_turns([step], asked.rounds, between=reset)[0]
        worlds.close()
        print(f"   {robots:6} robots a world {rate / 1e3:7.1f} k robots' steps")

    for rays in () if asked.no_task else ENVIRONMENT_STEPS:
        rate = max(ours(n, rays)["cpu"] for _ in range(2))
        print(
            f"   {rays:6} rays, the task  {rate / 1e3:7.1f} k  "
            f"{judged(rate, ENVIRONMENT_STEPS[rays], least=True)}",
            flush=True,
        )


__all__ = ["main"]
