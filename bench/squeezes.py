"""Boxes between robots that push at random, for as many steps as wanted: no box ever
gets faster than robots can make it.

A robot without mass cannot yield, so an impact with it gives a free body at most twice
its speed at the contact. Worlds of PushBox: each robot holds a random action for 10 to
50 steps. ``python -m bench.squeezes [STEPS]``: environment steps in all; 10 million
take a quarter of an hour on two cores. It prints the greatest ratio of a box's speed to
the greatest speed of a robot's outline, and the greatest impulse of a contact. It ends
with status 1 if a ratio is above 2, an impulse above `MAX_IMPULSE`, or if a world had
to be stopped.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.learning import VectorEnvironment
from botyard.learning.tasks.pushbox import ROBOT_RADIUS_M, PushBox

WORLDS = 1000
STEPS = 10_000_000
MAX_RATIO = 2.0
MAX_IMPULSE = 10.0
"""Highest impulse of a contact for each kilogram of a box, m/s."""
ROUNDING = 1e-9
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"mass": 0.5, "friction": 0.0},
    {"robots": 4, "size": 0.3},
    {"robots": 3, "restitution": 0.5},
    {"robots": 4, "mass": 0.5, "friction": 0.0, "restitution": 1.0},
)
"""Options of `Bouncing`."""
LEAST_SPEED = 1e-6
"""Slower robots count as if they were so fast, m/s: the step lets slower bodies rest.
"""


class Result(NamedTuple):
    """Result of a run.

    Attributes
    ----------
    steps : int
        Environment steps.
    ratio : float
        Greatest speed of a box in shares of the greatest speed of a robot's outline in
        that step, or of the box before. It is the speed that the box would have with
        its energy if it did not turn.
    impulse : float
        Greatest impulse of a contact along its normal for each kilogram of the box, m/s.
    lost : int
        Worlds that were stopped because something was wrong with them.
    stalled : float
        Share of robots that stood because what they pushed did not yield.
    """

    steps: int
    ratio: float
    impulse: float
    lost: int
    stalled: float


class Bouncing(PushBox):
    """PushBox with boxes that bounce."""

    def __init__(self, *, restitution: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        (box,) = self.boxes
        assert box.dynamics is not None
        dynamics = replace(box.dynamics, restitution=restitution)
        self.boxes = (replace(box, dynamics=dynamics),)


def squeeze(
    steps: int,
    *,
    worlds: int = WORLDS,
    seed: int = 1,
    threads: int = 1,
    **options: Any,
) -> Result:
    """Let robots push boxes at random for `steps` environment steps in all. `options`: arguments
    of `Bouncing`.
    """
    task = Bouncing(**{"goal_m": 1e-3, **options})
    envs = VectorEnvironment(
        task,
        worlds,
        threads=threads,
        copy=False,
        autoreset_mode="NextStep",
    )
    rng = np.random.default_rng(seed)
    envs.reset(seed=seed)
    w = envs.worlds
    (box,) = task.boxes
    assert box.dynamics is not None
    gyration = box.length / math.sqrt(6.0)
    table = w._batch.state
    contacts, impulses = table.all("mass.size")[:, 0], table.all("mass.impulse")[..., 0]
    rows = np.arange(impulses.shape[1])
    shape = envs.action_space.shape
    assert shape is not None
    actions, left = np.zeros(shape), np.zeros(shape[:2], np.int64)
    ratio, impulse, lost, stalled = 0.0, 0.0, 0, 0.0
    rounds = max(1, steps // worlds)

    def speeds() -> NDArray[np.float64]:
        vel = w.box_vel[:, 0]
        return np.hypot(np.hypot(vel[:, 0], vel[:, 1]), gyration * vel[:, 2])

    for _ in range(rounds):
        anew = left == 0
        actions[anew] = rng.uniform(-1.0, 1.0, (int(anew.sum()), 2))
        left[anew] = rng.integers(10, 51, int(anew.sum()))
        left -= 1
        before = speeds()
        *_, infos = envs.step(actions)
        robots = (abs(w.command[..., 0]) + abs(w.command[..., 2]) * ROBOT_RADIUS_M).max(
            axis=1
        )
        went = w.tick > 0
        most = np.maximum(robots, before / MAX_RATIO)
        ratio = max(
            ratio,
            float((speeds() / np.maximum(most, LEAST_SPEED))[went].max(initial=0.0)),
        )
        impulse = max(impulse, impulses[rows < contacts[:, None]].max(initial=0.0))
        lost += int(sum(why is not None for why in infos.get("fault", ())))
        stalled += (
            float(((w.vel[..., 0] == 0.0) & (w.command[..., 0] != 0.0)).mean()) / rounds
        )

    envs.close()
    return Result(
        rounds * worlds, ratio, float(impulse) / box.dynamics.mass, lost, stalled
    )


def main() -> None:
    """Run, and print what was found."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else STEPS
    begin = time.perf_counter()
    for options in VARIANTS:
        found = squeeze(steps // len(VARIANTS), threads=2, **options)
        print(
            f"   {options!s:34}{found.steps:10} steps, ratio {found.ratio:.3f}, "
            f"impulse {found.impulse:.2f} m/s, {found.lost} lost, {found.stalled:.1%} stalled"
        )
        if (
            found.ratio > MAX_RATIO + ROUNDING
            or found.impulse > MAX_IMPULSE
            or found.lost
        ):
            sys.exit("   a box was thrown")

    print(f"   {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
