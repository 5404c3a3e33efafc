"""Which map and which models of robots an episode has, and where robots are put: the
kernels that draw it by the seeds of episodes.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from botyard.engine.batch import EPISODE, FAILED, SAMPLES
from botyard.engine.kernels.jit import entry_kernel, inline_kernel, rows_kernel
from botyard.engine.kernels.noise import episode_seed, hashed, stream_key, symmetric
from botyard.engine.layout import F8, I4, I8, U1, U8

PLACE_STREAM: Final = 1 << 32
"""Body number of places in the random streams."""
MAP_STREAM: Final = (1 << 32) + 1
"""Word that the seed of an episode is hashed with for the choice of its map."""
LINEUP_STREAM: Final = (1 << 32) + 2
"""The same for the choice of the models of its robots."""
MAX_TRIES: Final = 200
"""Places that are tried for a robot among the others of its world."""
RUNS_IN_BLOCK: Final = 16
"""Runs of free cells in a block: that many are added up one by one to find a cell."""
MAX_RUN: Final = 255
"""Cells in a run, and taken cells before it, at most: the most that a byte holds."""


class Spaces(NamedTuple):
    """Where each of the m robots of a world may be put in a map: cells of a raster, as
    runs of free cells in blocks of `RUNS_IN_BLOCK`.

    Cells are numbered row after row. Robots that need the same room have the same
    blocks.

    Attributes
    ----------
    frame : (3,) float64
        Lower left corner of the raster, m, m, and edge of a cell, m.
    columns : (1,) int64
        Cells in a row.
    blocks : (m, 2) int64
        Robot j has the blocks blocks[j, 0] … blocks[j, 1] − 1.
    begin : (k,) int32
        Number of the cell where each block begins.
    before : (k,) int32
        Number of free cells of these robots before each block.
    runs : (k, RUNS_IN_BLOCK, 2) uint8
        How many cells are taken, and how many after these are free, again and again.
    cells : (m,) int64
        Number of free cells of each robot; not 0.
    radius : (b + m,) float64
        Radius of each of b boxes, and of each robot, m.
    """

    frame: F8
    columns: I8
    blocks: I8
    begin: I4
    before: I4
    runs: U1
    cells: I8
    radius: F8


@inline_kernel
def cell_of(spaces: Spaces, robot: int, number: int) -> int:
    """The cell that has a number among the free ones of a robot: its block by
    bisection, then run after run.
    """
    low, high = spaces.blocks[robot, 0], spaces.blocks[robot, 1]
    while high - low > 1:
        middle = (low + high) // 2
        if spaces.before[middle] <= number:
            low = middle
        else:
            high = middle

    cell, left = int(spaces.begin[low]), number - int(spaces.before[low])
    for r in range(RUNS_IN_BLOCK):
        cell += int(spaces.runs[low, r, 0])
        free = int(spaces.runs[low, r, 1])
        if left < free:
            break
        cell += free
        left -= free

    return cell + left


@rows_kernel
def draw_places(
    counts: I8, seeds: U8, spaces: Spaces, clearance: float, places: F8, task: I8
) -> None:
    """Draw a place for each robot of a world, at least `clearance` m from circles
    around the boxes, and around the robots before it.

    `places`, (b + m, 3) m, m, rad, has those of b boxes, and gets those of m robots.
    Draws are functions of the seed of the world, its episode, how often places were
    drawn in it, the robot, and the number of the draw. Where there is no room, `task`
    says so at `FAILED`.
    """
    x0, y0, cell, columns = (
        spaces.frame[0],
        spaces.frame[1],
        spaces.frame[2],
        spaces.columns[0],
    )
    seed = episode_seed(seeds[0], counts[EPISODE])
    boxes = places.shape[0] - spaces.cells.shape[0]
    for n in range(boxes, places.shape[0]):
        j = n - boxes
        key = stream_key(
            seed, np.uint64(PLACE_STREAM), np.uint64(counts[SAMPLES]), np.uint64(j)
        )
        is_free = False
        for k in range(0, 4 * MAX_TRIES, 4):
            part = 0.5 * (symmetric(key, np.uint64(k)) + 1.0)
            at = cell_of(spaces, j, int(part * spaces.cells[j]))
            x = (
                x0
                + (at % columns + 0.5 * (symmetric(key, np.uint64(k + 1)) + 1.0)) * cell
            )
            y = (
                y0
                + (at // columns + 0.5 * (symmetric(key, np.uint64(k + 2)) + 1.0))
                * cell
            )
            is_free = True
            for other in range(n):
                dx, dy = x - places[other, 0], y - places[other, 1]
                apart = spaces.radius[n] + spaces.radius[other] + clearance
                is_free = is_free and dx * dx + dy * dy >= apart * apart

            if is_free:
                places[n, 0], places[n, 1], places[n, 2] = (
                    x,
                    y,
                    -math.pi * symmetric(key, np.uint64(k + 3)),
                )
                break

        if not is_free:
            task[FAILED] = 1

    counts[SAMPLES] += 1


@entry_kernel
def draw_numbers(
    seeds: U8, episodes: I8, stream: int, count: int, pool: int, numbers: I8
) -> None:
    """Write the numbers of the maps of episodes, (n,), of worlds with these seeds, or
    of something else that `stream` says.

    One of `count` is drawn. With `count` 0 there is no end of them: one of `pool` is
    drawn in the first `pool` episodes of each world, one of the next `pool` then, and
    so on.
    """
    for n in range(seeds.shape[0]):
        drawn = hashed(episode_seed(seeds[n], episodes[n]), np.uint64(stream))
        if count > 0:
            numbers[n] = np.int64(drawn % np.uint64(count))
        else:
            numbers[n] = np.int64(drawn % np.uint64(pool)) + episodes[n] // pool * pool


__all__ = [
    "LINEUP_STREAM",
    "MAP_STREAM",
    "MAX_RUN",
    "RUNS_IN_BLOCK",
    "Spaces",
    "draw_numbers",
    "draw_places",
]
