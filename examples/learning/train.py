"""Trains a robot to drive to goals among walls by its lidar, tries it on maps that it
has never seen, and records how it drives.

    python examples/learning/train.py                    # two million steps: about a minute on one core
    python examples/learning/train.py --steps 6e6 run

Needs the extras learning and plots: pip install ".[learning,plots]" in the checkout. It
writes policy.npz, curve.csv, curve.png, and drive.mcap, a recorded episode: botyard
replay drive.mcap
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path

# One thread multiplies matrices of this size faster than several threads that wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from botyard.extras import lacking, missing

if absent := missing(["learning", "plots"]):
    sys.exit(lacking("train.py", *absent))

from typing import Any

import gymnasium
import matplotlib as mpl
import numpy as np
from ppo import Policy, Progress, Trainer, success_rate

import botyard.learning
from botyard.learning.tasks.robots import clutter

RAYS = 32
UNSEEN = [clutter(1000 + k) for k in range(64)]
WANTED = 0.9
"""Share of goals on unseen maps that two million steps are to reach; seeds 1 to 5
reached 0.947 to 0.967.
"""


def environments(n: int, **options: Any) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Return a batch of `Navigate` worlds."""
    return gymnasium.make_vec(
        "botyard/Navigate-v0",
        num_envs=n,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        rays=RAYS,
        **options,
    )


def show(progress: Progress) -> None:
    """A line about an update."""
    print(
        f"\r{progress.steps / 1e6:6.2f} M steps {progress.seconds:6.1f} s   "
        f"return {progress.mean_return:6.2f}"
        f"   goals {progress.success:5.1%}",
        end="" if sys.stdout.isatty() else "\n",
        flush=True,
    )


def draw_curve(curve: list[Progress], file: Path) -> None:
    """How the share of goals grew."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.2), dpi=110)
    axes.plot([p.seconds for p in curve], [100 * p.success for p in curve])
    axes.set(xlabel="time of training, s", ylabel="goals reached, %", ylim=(0, 100))
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file)


def record_drive(policy: Policy, file: Path, seed: int = 3) -> None:
    """Record one episode on an unseen map; `botyard replay` shows it, `botyard render`
    makes a movie of it.

    A world of a batch equals a single `Simulation` to the last bit. That simulation is
    driven next to it, and recorded.
    """
    env = botyard.learning.Environment("Navigate", rays=RAYS, scenes=UNSEEN)
    observed, info = env.reset(seed=seed)
    sim = env.worlds.world(0)
    (robot,) = sim.robots.values()
    # Only sensors that have a reader are recorded.
    robot.laser.subscribe("the policy")
    ended, steps = False, 0
    with sim.record(file):
        while not ended:
            observed, _, terminated, truncated, info = env.step(
                np.clip(policy.act(observed[None])[0], -1, 1)
            )
            robot.command(v=env.worlds.command[0, 0, 0], w=env.worlds.command[0, 0, 2])
            sim.step()
            ended, steps = terminated or truncated, steps + 1

    assert tuple(robot.truth) == tuple(env.worlds.pose[0, 0])
    env.close()
    print(
        f"episode of seed {seed}: {steps} steps, "
        f"{'goal reached' if info['success'] else 'goal not reached'}"
    )


def main() -> int:
    """Train a policy, try it, and draw its runs. Returns 1 if it reached fewer goals than
    wanted.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--steps", type=float, default=2e6, help="number of environment steps"
    )
    parser.add_argument(
        "--worlds", type=int, default=256, help="number of environments in a batch"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "out",
        type=Path,
        nargs="?",
        default=Path(),
        help="folder for the files that the program writes",
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    curve: list[Progress] = []

    def report(progress: Progress) -> None:
        curve.append(progress)
        if len(curve) % 5 == 0:
            show(progress)

    envs = environments(given.worlds)
    policy = Trainer(envs, seed=given.seed).train(int(given.steps), report)
    envs.close()
    print()
    policy.save(given.out / "policy.npz")
    with (given.out / "curve.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["steps", "seconds", "mean_return", "success"])
        writer.writerows(
            [p.steps, round(p.seconds, 2), round(p.mean_return, 3), round(p.success, 4)]
            for p in curve
        )

    trial = environments(512, scenes=UNSEEN)
    before, after = (
        success_rate(trial, one, seed=1000) for one in (Policy(RAYS + 5, 2), policy)
    )
    trial.close()
    print(
        f"goals on 64 unseen maps, 512 episodes: {after:.1%} (untrained "
        f"{before:.1%}); wanted {WANTED:.0%}"
    )
    draw_curve(curve, given.out / "curve.png")
    record_drive(policy, given.out / "drive.mcap")
    return 0 if after >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
