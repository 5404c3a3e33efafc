"""Boxes between robots that push at random, for as many steps as wanted: no box ever
gets faster than robots can make it.

A robot without mass cannot yield, so an impact with it gives a free body at most twice
its speed at the contact. Worlds of PushBox: each robot holds a random action for 10 to
50 steps. ``python -m bench.squeezes [STEPS]``: environment steps in all; 10 million
take a quarter of an hour on two cores. It prints the greatest ratio of a box's speed to
the greatest speed of a robot's outline, and ends with status 1 if that is above 2, or
if a world had to be stopped.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np

from botyard.learning import VectorEnvironment
from botyard.learning.tasks.pushbox import ROBOT_RADIUS_M

WORLDS = 1000
STEPS = 10_000_000
MAX_RATIO = 2.0
ROUNDING = 1e-9
LEAST_SPEED = 1e-6
"""Slower robots count as if they were so fast, m/s: the step lets slower bodies rest.
"""


class Result(NamedTuple):
    """What a run found.

    Attributes
    ----------
    steps : int
        Environment steps.
    ratio : float
        Greatest speed of a box in shares of the greatest speed of a robot's outline in
        that step, or of the box before.
    lost : int
        Worlds that were stopped because something was wrong with them.
    stalled : float
        Share of robots that stood because what they pushed did not yield.
    """

    steps: int
    ratio: float
    lost: int
    stalled: float


def squeeze(
    steps: int,
    *,
    worlds: int = WORLDS,
    seed: int = 1,
    threads: int = 1,
    **options: object,
) -> Result:
    """Let robots push boxes at random for `steps` environment steps in all. `options`:
    of PushBox.
    """
    envs = VectorEnvironment(
        "PushBox",
        worlds,
        threads=threads,
        copy=False,
        autoreset_mode="NextStep",
        **{"goal_m": 1e-3, **options},
    )
    rng = np.random.default_rng(seed)
    envs.reset(seed=seed)
    w = envs.worlds
    shape = envs.action_space.shape
    actions, left = np.zeros(shape), np.zeros(shape[:2], np.int64)
    ratio, lost, stalled = 0.0, 0, 0.0
    rounds = max(1, steps // worlds)
    for _ in range(rounds):
        anew = left == 0
        actions[anew] = rng.uniform(-1.0, 1.0, (int(anew.sum()), 2))
        left[anew] = rng.integers(10, 51, int(anew.sum()))
        left -= 1
        before = np.hypot(w.box_vel[:, 0, 0], w.box_vel[:, 0, 1])
        *_, infos = envs.step(actions)
        speed = np.hypot(w.box_vel[:, 0, 0], w.box_vel[:, 0, 1])
        robots = (abs(w.command[..., 0]) + abs(w.command[..., 2]) * ROBOT_RADIUS_M).max(
            axis=1
        )
        went = w.tick > 0
        most = np.maximum(robots, before / MAX_RATIO)
        ratio = max(
            ratio, float((speed / np.maximum(most, LEAST_SPEED))[went].max(initial=0.0))
        )
        lost += int(sum(why is not None for why in infos.get("fault", ())))
        stalled += (
            float(((w.vel[..., 0] == 0.0) & (w.command[..., 0] != 0.0)).mean()) / rounds
        )

    envs.close()
    return Result(rounds * worlds, ratio, lost, stalled)


def main() -> None:
    """Run, and print what was found."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else STEPS
    begin = time.perf_counter()
    for options in ({}, {"mass": 0.5, "friction": 0.0}, {"robots": 4, "size": 0.3}):
        found = squeeze(steps // 3, threads=2, **options)
        print(
            f"   {options!s:34}{found.steps:10} steps, ratio {found.ratio:.3f}, "
            f"{found.lost} lost, {found.stalled:.1%} stalled"
        )
        if found.ratio > MAX_RATIO + ROUNDING or found.lost:
            sys.exit("   a box was thrown")

    print(f"   {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
