"""The scenes that Stage was measured on (reference performance.md §1), through the
public API: noise, odometry errors, snapshots on.

All: steps of 0.1 s, box robots of 0.44 m × 0.38 m, differential drive, immediate ramps,
seed 1, one thread. Controller: 0.3 m/s and every 2 s a new turn rate in ±0.5 rad/s from
a linear congruential generator; a stalled robot backs up at 0.2 m/s turning at ±0.8
rad/s. Scenes: ``arena``, an open square with walls, 4 m² a robot; hospitals, the dark
pixels of a picture; ``warehouse``, the shipped map.

Cars and trains then drive in the same arena, in turns with robots of differential drive.

Stage's figures are from another machine. They are scaled by the speed of the C kernel of
`bench.reference`, which is known there and measured here in the same run.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from PIL import Image

from bench.common import SHARED, Row, apart, memory
from bench.reference import Yardstick
from botyard.engine.bodyspec import robot_body
from botyard.formats.registry import load_scene
from botyard.geometry import Pose
from botyard.model.kinematics import Axes, Drive, MotionLimits
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec, SonarSpec, Transducer
from botyard.model.steeredaxle import Steering
from botyard.model.tracing import squares_to_segments
from botyard.model.trailers import TrailerSpec
from botyard.sim.simulation import Simulation

RING = ((0.069, 0.136, 90), (0.114, 0.119, 50), (0.148, 0.078, 30), (0.166, 0.027, 10))
"""The Pioneer's front left quarter: x, y (m), bearing (°); the others are its mirror
images.
"""
SPACING, CLEARANCE = 0.7, 0.35
BITMAPS = {
    "hospital": ("hospital.png", (140.0, 60.0)),
    "hospital_section": ("hospital_section.png", (40.0, 18.0)),
}


ROWS: tuple[tuple[str, str, int, float, float | None, float | None], ...] = (
    ("hospital", "laser", 1000, 2.0, 2.95, 0.37),
    ("hospital_section", "laser", 100, 10.0, 0.198, 0.028),
    ("arena", "none", 1000, 10.0, 0.200, 0.0025),
    ("arena", "none", 10_000, 3.0, 1.30, 0.016),
    ("arena", "none", 100_000, 1.0, None, 0.2),
    ("arena", "sonar", 1000, 3.0, 0.665, 0.033),
    ("arena", "sonar", 10_000, 1.0, 6.62, 0.33),
    ("warehouse", "none", 300, 10.0, None, None),
    ("warehouse", "sonar", 300, 5.0, None, None),
    ("warehouse", "laser", 300, 5.0, None, None),
)
"""Scene, sensor, robots, simulated s measured, CPU s for a simulated second: Stage's,
and the floor set for botyard.
"""


BOX = ((-0.22, -0.19), (0.22, -0.19), (0.22, 0.19), (-0.22, 0.19))
AXLE = Steering(wheelbase=0.3, limit=math.radians(40.0), rate=2.0)
DRIVES: dict[str, dict[str, Any]] = {
    "differential": {},
    "ackermann": {"drive": Drive.ACKERMANN, "steering": AXLE},
    "tricycle": {"drive": Drive.TRICYCLE, "steering": AXLE},
    "tugger with a trailer": {
        "drive": Drive.TRICYCLE,
        "steering": AXLE,
        "trailers": (TrailerSpec(outline=BOX, hitch=0.3, length=0.5),),
    },
}
"""Drives that are compared with the first one: fields of the model. All have one body."""
DRIVE_ROBOTS, DRIVE_SECONDS = 1000, 3.0


def ring() -> SonarSpec:
    quarter = [(x, y, math.radians(a)) for x, y, a in RING]
    back = [(-0.089 - x, y, math.pi - a) for x, y, a in quarter]
    half = quarter + back
    places = half + [(x, -y, -a) for x, y, a in half]
    return SonarSpec(
        type_name="ring",
        transducers=tuple(Transducer(pose=Pose(*p)) for p in places),
        range_min=0.1,
        range_max=5.0,
        rays=1,
        noise=0.0025,
    )


def spec(sensor: str, r_max: float = 8.0) -> RobotSpec:
    """Return the box robot with the sensor ``none``, ``sonar`` or ``laser``."""
    laser = LaserSpec(
        type_name="lms", samples=181, fov=math.pi, range_max=r_max, range_noise=0.005
    )
    return RobotSpec(
        name="base",
        outline=BOX,
        limits=MotionLimits(
            max_speed=Axes(1.0, 0.0, math.pi), accel=Axes(), decel=Axes()
        ),
        odometry_error=Axes(0.0075, 0.0075, 0.0075),
        lasers=(laser,) if sensor == "laser" else (),
        sonar=ring() if sensor == "sonar" else None,
    )


def box(
    x0: float, y0: float, x1: float, y1: float
) -> list[tuple[float, float, float, float]]:
    return [(x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)]


def arena(n: int) -> tuple[Scene, np.ndarray]:
    """Return the scene of a square with walls, and the poses of `n` robots."""
    side = math.ceil(math.sqrt(n))
    rng = np.random.default_rng(1)
    at = np.stack(np.divmod(np.arange(n), side), axis=1) * 2.0 + 1.0 - side
    poses = np.column_stack(
        [at + rng.uniform(-0.4, 0.4, (n, 2)), rng.uniform(-math.pi, math.pi, n)]
    )
    edge = float(side)
    return Scene(
        segments=np.array(
            box(-edge, -edge, edge, edge)
            + box(-edge - 0.2, -edge - 0.2, edge + 0.2, edge + 0.2)
        )
    ), poses


def bitmap(name: str) -> Scene | None:
    """Return the outlines of the dark pixels of a picture; None without the shared data."""
    file, (width, height) = BITMAPS[name]
    path = SHARED / "data/worlds/bitmaps" / file
    if not path.exists():
        return None
    dark = np.asarray(Image.open(path).convert("L"))[::-1] < 127
    j, i = np.nonzero(dark)
    i, j = i - i.min(), j - j.min()
    unit = squares_to_segments(np.stack([i, j], axis=1).astype(float), 1.0)
    scale = np.array([width / (i.max() + 1), height / (j.max() + 1)] * 2)
    return Scene(segments=unit * scale - np.array([width / 2, height / 2] * 2))


def free_poses(scene: Scene, n: int) -> np.ndarray:
    """Return random poses with free space around them, apart from each other, in the largest
    connected free area within the walls.
    """
    trial = Simulation(scene)
    side = 2 * CLEARANCE
    probe = RobotSpec(
        name="probe",
        outline=tuple(
            (sx * side / 2, sy * side / 2)
            for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ),
    )
    x0, y0, x1, y1 = scene.bounds or (0.0, 0.0, 1.0, 1.0)
    h = 0.25
    nx, ny = int((x1 - x0) / h), int((y1 - y0) / h)
    body = robot_body(probe, " probe ")
    free = np.array(
        [
            [
                trial.core.engine.is_free(
                    body, Pose(x0 + (i + 0.5) * h, y0 + (j + 0.5) * h, 0.0)
                )
                for i in range(nx)
            ]
            for j in range(ny)
        ]
    )
    part = largest_inside(free)
    cells = np.argwhere(part)
    rng = np.random.default_rng(1)
    chosen: list[tuple[float, float]] = []
    taken: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for _ in range(2_000_000):
        if len(chosen) == n:
            break
        j, i = cells[rng.integers(len(cells))]
        x, y = x0 + (i + 0.5) * h, y0 + (j + 0.5) * h
        c = (int(x // SPACING), int(y // SPACING))
        near = [
            p
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
            for p in taken.get((c[0] + a, c[1] + b), ())
        ]
        if all(math.hypot(x - a, y - b) > SPACING for a, b in near):
            chosen.append((x, y))
            taken.setdefault(c, []).append((x, y))

    return np.column_stack(
        [np.array(chosen), rng.uniform(-math.pi, math.pi, len(chosen))]
    )


def largest_inside(free: np.ndarray) -> np.ndarray:
    """Return the largest connected part of `free` that does not touch the border; the largest
    of all if each does.
    """
    label = np.zeros(free.shape, int)
    sizes: list[tuple[bool, int, int]] = []
    for seed in map(tuple, np.argwhere(free)):
        if label[seed]:
            continue
        number, size, inside = len(sizes) + 1, 0, True
        label[seed] = number
        queue = deque([seed])
        while queue:
            j, i = queue.popleft()
            size += 1
            inside &= 0 < j < free.shape[0] - 1 and 0 < i < free.shape[1] - 1
            for at in ((j + 1, i), (j - 1, i), (j, i + 1), (j, i - 1)):
                if (
                    0 <= at[0] < free.shape[0]
                    and 0 <= at[1] < free.shape[1]
                    and free[at]
                    and not label[at]
                ):
                    label[at] = number
                    queue.append(at)

        sizes.append((inside, size, number))

    return label == max(sizes)[2]


def scene_of(name: str, n: int) -> tuple[Scene, np.ndarray] | None:
    """Return the scene of a name and `n` poses; None where the data is missing."""
    if name == "arena":
        return arena(n)
    scene = load_scene("warehouse") if name == "warehouse" else bitmap(name)
    return None if scene is None else (scene, free_poses(scene, n))


@njit(cache=True)
def control(
    stalled: np.ndarray,
    lcg: np.ndarray,
    phase: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
) -> bool:
    """Run one tick of the controller (compiled, as it is in Stage); return whether a command
    changed.
    """
    changed = False
    for i in range(len(lcg)):
        if stalled[i]:
            v[i], w[i] = -0.2, 0.8 if lcg[i] & np.uint32(1) else -0.8
            phase[i] = 19
        elif phase[i] % 20 == 0:
            v[i] = 0.3
            phase[i] += 1
        else:
            phase[i] += 1
            continue

        lcg[i] = np.uint32(lcg[i] * np.uint32(1664525) + np.uint32(1013904223))
        if v[i] > 0.0:
            w[i] = (lcg[i] >> np.uint32(8)) / 16777216.0 - 0.5
        changed = True

    return changed


class Run:
    """A scene whose robots are driven by its controller."""

    def __init__(
        self,
        scene: Scene,
        poses: np.ndarray,
        sensor: str,
        r_max: float = 8.0,
        threads: int = 1,
        **fields: Any,
    ) -> None:
        self.sim = Simulation(scene, seed=1, threads=threads, warn=lambda _: None)
        robots = self.sim.add_robots(replace(spec(sensor, r_max), **fields), poses)
        # With trailers, which ignore commands.
        n = len(self.sim.robots)
        for robot in robots:
            if sensor == "laser":
                robot.laser.subscribe("bench")
            elif robot.sonar is not None:
                robot.sonar.subscribe("bench")

        self.lcg = (12345 + 7919 * np.arange(n)).astype(np.uint32)
        self.phase = np.arange(n) % 20
        self.v, self.w = np.zeros(n), np.zeros(n)

    def control(self) -> None:
        if control(self.sim.fleet.stalled, self.lcg, self.phase, self.v, self.w):
            self.sim.fleet.command(self.v, self.w)

    def step(self, n: int) -> None:
        for _ in range(n):
            self.control()
            self.sim.step()


def measure(name: str, sensor: str, n: int, seconds: float) -> Row | None:
    """Return the CPU seconds for a simulated second, the least of three stretches of `seconds`
    after a first one; memory; and the number of stalled robots. Run in a process of its own.
    """
    made = scene_of(name, n)
    if made is None:
        return None
    run = Run(*made, sensor)
    run.step(10)
    began, steps, best, stalled = (
        time.process_time(),
        round(seconds * 10),
        math.inf,
        0.0,
    )
    for _ in range(3):
        began = time.process_time()
        run.step(steps)
        best = min(best, (time.process_time() - began) / seconds)
        stalled += float(run.sim.fleet.stalled.mean()) / 3

    rays = {"none": 0, "sonar": 16, "laser": 181}[sensor] * len(made[1]) * 10
    return {
        "cpu": best,
        "rays": rays / best / 1e6,
        "stalled": stalled,
        "memory": memory(),
        "robots": len(made[1]),
    }


def compare_drives(n: int, seconds: float, rounds: int = 5) -> dict[str, float]:
    """Return the CPU seconds for a simulated second by drive: the least of some stretches,
    which the drives make in turns.
    """
    runs = {name: Run(*arena(n), "none", **DRIVES[name]) for name in DRIVES}
    best = dict.fromkeys(runs, math.inf)
    for run in runs.values():
        run.step(10)
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.process_time()
            run.step(round(seconds * 10))
            best[name] = min(best[name], (time.process_time() - began) / seconds)
    return best


def print_drives(n: int, seconds: float) -> None:
    """Print the CPU time of each drive as a ratio to the first one."""
    cpu = apart("bench.scenes", f"compare_drives({n}, {seconds})")
    first = next(iter(cpu))
    for name, value in cpu.items():
        print(
            f"   arena, {n} robots, {name:22} {value:11.5f} CPU s/sim s   "
            f"{value / cpu[first]:5.2f} x {first}",
            flush=True,
        )


def main() -> None:
    yardstick = Yardstick()
    yardstick.measure()
    print(
        "   scene              sensor  robots   CPU s/sim s   M rays/CPU s   x "
        "real time   stalled     MB   Stage there  x Stage   floor"
    )
    for name, sensor, n, seconds, stage, floor in ROWS:
        # Measure twice: a slow phase of a shared machine may last longer than a run.
        runs = [
            apart("bench.scenes", f"measure({name!r}, {sensor!r}, {n}, {seconds})")
            for _ in range(2)
        ]
        r = None if runs[0] is None else min(runs, key=lambda run: run["cpu"])
        yardstick.measure()
        if r is None:
            print(f"   {name:18} {sensor:7} {n:6}   skipped: needs the shared data")
            continue

        rays = f"{r['rays']:12.1f}" if r["rays"] else f"{'–':>12}"
        compared = (
            f"{stage:11.3f} {stage * yardstick.scale / r['cpu']:7.0f} x"
            if stage
            else f"{'–':>11} {'–':>9}"
        )
        wanted = yardstick.judge(r["cpu"], floor) if floor else "–"
        print(
            f"   {name:18} {sensor:7} {r['robots']:6}   {r['cpu']:11.5f}   "
            f"{rays}   {1 / r['cpu']:11.0f}   {r['stalled']:7.3f}"
            f" {r['memory']:6.0f}   {compared}   {wanted}",
            flush=True,
        )

    print_drives(DRIVE_ROBOTS, DRIVE_SECONDS)
    print(f"   {yardstick}")
