"""Cost of the history of the last minutes: steps with 100 laser robots, memory, looks at past
moments, and going on from one.

CPU time of the calling thread. Worlds with and without a history step in turns; the
figure is the median of pairs.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

from botyard.sim.simulation import Simulation

ROBOTS: Final = 100
ROUNDS: Final = 40
STEPS: Final = 20
"""Steps of a round, 2 s."""
MINUTES: Final = 10


def world(
    model: str = "p3dx-sh-lms200", robots: int = ROBOTS, read: bool = True
) -> Simulation:
    """Return robots that drive in circles in the shipped warehouse; `read`: all sensors have a
    reader.
    """
    sim = Simulation.load("warehouse", seed=1, step=0.1)
    for k in range(robots):
        robot = sim.add_robot(model)
        robot.command(v=0.3, w=0.1 + 0.005 * k)
        if read:
            for reader in robot.devices.values():
                reader.subscribe("bench", True)

    sim.step(5)
    return sim


def timed(sim: Simulation, steps: int) -> float:
    """Return the CPU seconds of a step."""
    begin = time.thread_time()
    for _ in range(steps):
        sim.step()
    return (time.thread_time() - begin) / steps


def cost(read: bool) -> None:
    """Print the CPU seconds of a step without and with a history."""
    plain, kept = world(read=read), world(read=read)
    kept.history.keep()
    pairs = [(timed(plain, STEPS), timed(kept, STEPS)) for _ in range(ROUNDS)]
    without, extra = (
        statistics.median(a for a, _ in pairs),
        statistics.median(b - a for a, b in pairs),
    )
    what = "lasers and sonar read" if read else "nothing read"
    print(
        f"   a step of {ROBOTS} robots, {what}: {without * 1e3:.2f} ms; the "
        f"history {extra * 1e3:+.3f} ms, {100 * extra / without:+.1f} %"
    )


def size(robots: int, read: bool) -> None:
    """Print the memory of a history of the last minutes, and how long a look at one of its
    moments takes.
    """
    sim = world(robots=robots, read=read)
    sim.history.keep(minutes=MINUTES)
    for _ in range(MINUTES * 600):
        sim.step()
    history = sim.history
    first, last = history.span or (None, None)
    assert first is not None
    assert last is not None
    times = [first.time + (last.time - first.time) * k / 40 for k in range(40)]
    begin = time.perf_counter()
    there = history.look(times[0])
    made = time.perf_counter() - begin
    looks = []
    for k in range(40):
        begin = time.perf_counter()
        history.look(times[17 * k % 40], there)
        looks.append(time.perf_counter() - begin)

    moments, megabytes = len(history.moments), history.size / 1e6
    begin = time.perf_counter()
    history.go_on_from(times[20])
    on = time.perf_counter() - begin
    print(
        f"   {robots} robots: {last.time - first.time:.0f} s in {moments} "
        f"moments, {megabytes:.1f} MB"
    )
    first_ms, median_ms, longest_ms = (
        1e3 * made,
        1e3 * statistics.median(looks),
        1e3 * max(looks),
    )
    print(
        f"      looking back: the first time {first_ms:.0f} ms, then median "
        f"{median_ms:.1f}, at most {longest_ms:.1f} ms"
    )
    print(f"      continuing from a moment {on * 1000.0:.1f} ms")


def main() -> None:
    cost(True)
    cost(False)
    size(20, False)
    size(ROBOTS, False)


if __name__ == "__main__":
    main()
