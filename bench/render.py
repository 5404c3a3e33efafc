"""Movies: cost of frames of 20 robots with scans in the shipped office, for each format.

CPU time of all threads of this process, of a recorded run that is done again: steps,
scans, drawing and writing. The limit was set for another machine; it is scaled by the
speed of the C kernel of `bench.reference` in the same run.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from bench.reference import Yardstick
from botyard.extras import is_installed
from botyard.pictures.filming import film_options, render_recording
from botyard.pictures.options import picture_options
from botyard.pictures.painter import Painter
from botyard.pictures.still import take
from botyard.sim.simulation import Simulation

ROBOTS: Final = 20
FRAMES: Final = 1000
SIZE: Final = (960, 600)
LIMIT_S: Final = 20.0
"""CPU time of all frames, to the file, s."""


def run(sim: Simulation) -> None:
    """Step robots with lasers that wander about."""
    for k in range(ROBOTS):
        robot = sim.add_robot("p3dx", f"r{k}", lasers=["lms200"])
        robot.laser.subscribe("bench")
        robot.command(v=0.3, w=0.3 * (-1) ** k)


def drawing(options: dict[str, object]) -> float:
    """Return the CPU seconds for a frame that is drawn and not written."""
    sim = Simulation.load("office")
    run(sim)
    painter, count, spent = Painter(picture_options(**options)), 100, 0.0  # type: ignore[arg-type]
    # Draw once before the measurement, because the walls and other fixed parts are drawn once and
    # kept.
    painter.draw(take(sim))
    for _ in range(count):
        sim.step()
        still = take(sim)
        begin = time.process_time()
        painter.draw(still)
        spent += time.process_time() - begin

    return spent / count


def main() -> None:
    yardstick = Yardstick()
    print(
        f"   {ROBOTS} robots with a laser of 181 beams in the office, {SIZE[0]} × {SIZE[1]} pixels"
    )
    for name, options in {
        "all of it": {},
        "with trails of 30 s": {"trails": 30.0},
        "follows a robot": {"follow": "r3"},
        "without scans": {"scans": False},
    }.items():
        print(
            f"   drawing, {name:22} {1e3 * drawing({'size': SIZE, **options}):6.1f} ms a frame"
        )

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "run.mcap"
        sim = Simulation.load("office")
        run(sim)
        with sim.record(source):
            sim.step(FRAMES)
        for suffix in (".mp4", ".webp", ".gif"):
            if suffix == ".mp4" and not is_installed("movie"):
                print("   MP4: the extra movie is not installed")
                continue

            target = source.with_suffix(suffix)
            begin, wall = time.process_time(), time.perf_counter()
            film = film_options(end=0.1 * (FRAMES - 1))
            render_recording(source, target, picture_options(size=SIZE), film)
            spent, wall = time.process_time() - begin, time.perf_counter() - wall
            yardstick.measure()
            size = target.stat().st_size / 1e6
            judged = yardstick.judge(spent, LIMIT_S)
            print(
                f"   {FRAMES} frames to {suffix:5} {spent:6.1f} s of CPU "
                f"({wall:.1f} s), {size:.1f} MB; limit {judged}"
            )

        print(f"   {yardstick}")
