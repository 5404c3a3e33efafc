"""Kernels that draw maps, robot models and places of episodes by their seeds."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from botyard.engine.batchlayout import EPISODE, FAILED, SAMPLES
from botyard.engine.kernels.jit import entry_kernel, inline_kernel, rows_kernel
from botyard.engine.kernels.noise import episode_seed, hashed, stream_key, symmetric
from botyard.engine.layout import F8, I4, I8, U1, U8

# Identities of bodies are hashes of 64 bits, which practically never have these small
# values.
PLACE_STREAM: Final = 1 << 32
"""Number that the random streams of places use instead of the identity of a body."""
MAP_STREAM: Final = (1 << 32) + 1
"""Word that is hashed with the seed of an episode to choose its map."""
LINEUP_STREAM: Final = (1 << 32) + 2
"""Word that is hashed with the seed of an episode to choose its robot models."""
# Enough for dense worlds; a world that fails this often has practically no room.
MAX_TRIES: Final = 200
"""Highest number of places that are tried for one robot, so that it touches no other body."""
RUNS_IN_BLOCK: Final = 16
"""Number of runs of free cells in a block.

To find a cell, the runs of one block are summed one by one.
"""
MAX_RUN: Final = 255
"""Highest number of cells in a run, and of occupied cells before it: a byte's maximum."""


class Spaces(NamedTuple):
    """Free cells of a map's raster for each of the m robots of a world.

    They are runs of free cells in blocks of `RUNS_IN_BLOCK`. Cells are numbered row by
    row. Robots that need the same room share blocks.

    Attributes
    ----------
    frame : (3,) float64
        Lower left corner of the raster, m, m, and edge of a cell, m.
    columns : (1,) int64
        Number of cells in a row.
    blocks : (m, 2) int64
        Robot j has the blocks blocks[j, 0] … blocks[j, 1] − 1.
    begin : (k,) int32
        Number of the first cell of each block.
    before : (k,) int32
        Number of free cells of these robots before each block.
    runs : (k, RUNS_IN_BLOCK, 2) uint8
        Number of occupied cells before each run, and number of free cells in the run.
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
    """Return the cell with a number among the free cells of a robot.

    The block is found by bisection, then the runs of the block are summed.

    Parameters
    ----------
    spaces : Spaces
        Free cells of the map.
    robot : int
        Number of the robot.
    number : int
        Number of the cell among the robot's free cells, 0 … `Spaces.cells` − 1.

    Returns
    -------
    int
        Number of the cell in the raster, row by row.
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
    """Draw a place for each robot of a world.

    Draws are functions of the world's seed, its episode, the number of drawings in it,
    the robot, and the number of the draw.

    Parameters
    ----------
    counts : (5,) int64
        `Own.counts`. In-place: `SAMPLES` grows by 1.
    seeds : (2,) uint64
        `Own.seeds`.
    spaces : Spaces
        Free cells of the world's map.
    clearance : float
        Least distance between circles around bodies, m.
    places : (b + m, 3) float64
        Places: m, m, rad. It holds the places of b boxes. Output: the places of m
        robots, with headings in (−π, π].
    task : (6,) int64
        `Own.task`. Output: `FAILED` is 1 if a robot found no room in `MAX_TRIES` tries.
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

        # Each try takes four draws: cell, x and y within it, and heading.
        for k in range(0, 4 * MAX_TRIES, 4):
            # `symmetric` is uniform in [−1, 1).
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

            # Boxes come first, then robots that have a place already.
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
            # Kernels cannot raise: the host repeats the draw to find the world.
            task[FAILED] = 1

    # The next draw of this episode must take other numbers.
    counts[SAMPLES] += 1


@entry_kernel
def draw_numbers(
    seeds: U8, episodes: I8, stream: int, count: int, pool: int, numbers: I8
) -> None:
    """Draw a number, such as of a map, for an episode of each world.

    Parameters
    ----------
    seeds : (n,) uint64
        Seeds of the worlds.
    episodes : (n,) int64
        Number of the episode of each world.
    stream : int
        Word that separates draws for different purposes, such as `MAP_STREAM`.
    count : int
        Number of numbers to choose from: 0 … count − 1. With 0 the numbers have no end:
        the first `pool` episodes of each world draw from the first `pool` numbers, the
        next episodes from the next ones, and so on.
    pool : int
        Number of episodes that share numbers; it is used with `count` 0 only.
    numbers : (n,) int64
        Output: the drawn numbers.
    """
    for n in range(seeds.shape[0]):
        drawn = hashed(episode_seed(seeds[n], episodes[n]), np.uint64(stream))
        if count > 0:
            # The bias of the remainder is below count / 2⁶⁴.
            numbers[n] = np.int64(drawn % np.uint64(count))
        else:
            # An endless generator of maps gives `pool` maps to as many episodes, then
            # new ones.
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
