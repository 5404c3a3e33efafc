"""Early compilation (warm-up) of the navigation kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from botyard.geometry import Pose
from botyard.native.rows import RowsEntry, RowTable
from botyard.navigation import crowds, local
from botyard.navigation.carplanning import find_car_path
from botyard.navigation.kernels.goals import (
    Judged,
    distance_of_goal,
    judge_goal,
    observe_goal,
)
from botyard.navigation.planning import Costmap


def warm_up() -> None:
    """Compile or load each navigation kernel by a call.

    `near_walls` is left out: it needs the grid of a map, and `botyard.worlds.warmup`
    calls it.
    """
    place, row, one = np.zeros((1, 1, 2)), np.zeros((1, 2)), np.ones(1)
    crowds.discs(np.zeros((1, 1, 3)), np.zeros((1, 1, 3)), np.zeros((1, 1)))
    crowds.commands(row, one, one, one, 0.1)
    crowds.orca(place, place, np.ones((1, 1)), row, one, dt=0.1)
    crowds.social_force(place, place, np.ones((1, 1)), row, one, dt=0.1)
    local.dynamic_window(place, row, row, dt=0.1, radius=0.3, max_v=1.0, max_w=1.0)
    local.vector_field_histogram(place, one, one, local.Histograms(1), radius=0.3)
    local.pure_pursuit(np.ones((1, 2, 2)), np.zeros((1, 3)), one, np.zeros(1))
    # The goal is around a corner, so that both searches and the test of a line are called.
    around = np.array([[0, 0], [255, 0]], np.uint8)
    Costmap(around, 0.0, 0.0, 1.0).path((0.5, 0.5), (1.5, 1.5))
    floor = Costmap(np.zeros((8, 8), np.uint8), 0.0, 0.0, 0.25)
    find_car_path(floor, [(0.0,)], Pose(0.5, 0.5), (1.4, 0.5), 0.0, 0.2, max_states=99)
    pose, ranges, far, byte = (
        np.zeros((1, 3)),
        np.ones((1, 1), np.float32),
        np.zeros(1),
        np.zeros(1, np.uint8),
    )
    goal, four = np.zeros(2), np.ones(4)
    _call(distance_of_goal, pose, goal, far)
    _call(observe_goal, pose, pose, ranges, goal, far, four, np.zeros(6, np.float32))
    _call(
        judge_goal,
        pose,
        goal,
        np.zeros(1, np.int64),
        far,
        far.copy(),
        byte,
        four,
        Judged(far.copy(), byte.copy(), byte.copy()),
    )


def _call(entry: RowsEntry, *row: Any) -> None:
    """Call a kernel with one row of arguments, so that it is compiled."""
    table = RowTable(entry, 1, lambda _: row)
    table.fill(0, 1)
    entry(table, np.zeros(1, np.int64))
