"""The goal task of `bench.worlds_batch`: drive to a goal; and the measurement of its steps."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

from bench.peers import (
    RADIUS,
    SIZE,
    World,
    distance,
)

CPU_SECONDS = 3.0
EPISODE_STEPS = 300
GOAL_M = 0.5
"""Distance at which a goal is reached."""
Env = Callable[[float, float], tuple[Any, tuple[float, float, float], bool]]
"""A step with m/s and rad/s: ranges, pose, whether it touches a wall."""


def measure(step: Callable[[int], None], n: int) -> dict[str, float]:
    for k in range(3):
        step(k)
    steps, cpu, wall = 0, time.process_time(), time.perf_counter()
    while time.process_time() - cpu < CPU_SECONDS:
        step(steps)
        steps += 1

    return {
        "cpu": steps * n / (time.process_time() - cpu),
        "wall": steps * n / (time.perf_counter() - wall),
    }


class Single(World):
    """One world of the workload of `bench.peers`, with a given number of rays."""

    def __init__(self, rays: int) -> None:
        super().__init__(0)
        self.rays = rays
        self._draw = random.Random(1)

    def free(self) -> tuple[float, float, float]:
        """Return a free pose."""
        while True:
            x, y = (
                self._draw.uniform(0.6, SIZE - 0.6),
                self._draw.uniform(0.6, SIZE - 0.6),
            )
            if all(distance(x, y, s) > RADIUS + 0.1 for s in self.walls):
                return x, y, self._draw.uniform(-math.pi, math.pi)
