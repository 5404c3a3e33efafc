"""Calibration: how often the 95 % intervals of calibrated values hold the true value, for
twenty robots of each seed, and how much time a calibration costs.
"""

from __future__ import annotations

import time
from collections import Counter

from tests.calibration.making import HALL, known_robots

from botyard.calibration import calibrate
from botyard.model.library import load_robot

SEEDS = (4, 5, 6, 7)
ROBOTS = 20
SECONDS = 100.0


def main() -> None:
    base, total, cpu = load_robot("p3dx"), Counter[str](), 0.0
    for seed in SEEDS:
        held: Counter[str] = Counter()
        robots = known_robots(ROBOTS, SECONDS, seed)
        begin = time.process_time()
        for one in robots:
            found = calibrate(
                [one.log],
                base,
                truths=[one.truth],
                scene=HALL,
                hold_out=False,
                odometry_law="step",
            )
            held.update(
                name
                for name, value in one.values.items()
                if found.value(name).holds(value)
            )

        cpu += time.process_time() - begin
        least = min(held, key=lambda name: held[name])
        print(
            f"seed {seed}: the intervals of {ROBOTS} robots contain the true value "
            f"at least {held[least]} times ({least})",
            flush=True,
        )
        total += held

    count = ROBOTS * len(SEEDS)
    for name, number in total.items():
        print(f"{name:18} {number:4} of {count}  {100 * number / count:5.1f} %")
    every = sum(total.values())
    print(
        f"all                {every:4} of {count * len(total)}  "
        f"{100 * every / count / len(total):5.1f} %"
    )
    print(f"a calibration of {SECONDS:g} s with 100 scans: {cpu / count:.2f} s of CPU")
