"""Maps of episodes and places in them: draws and memory."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import botyard
from botyard.engine import rng
from botyard.engine.episode_starts import (
    MAP_STREAM,
    RUNS_IN_BLOCK,
    Spaces,
    cell_of,
    draw_numbers,
)
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.sim.freespace import _blocks, free_space, spaces_of
from botyard.worlds.maps import Maps
from botyard.worlds.worlds import Worlds
from tests.test_worlds import ROOMS, room


@given(
    st.lists(
        st.tuples(st.integers(1, 1100), st.integers(1, 1100)), min_size=1, max_size=60
    ),
    st.booleans(),
)
@example([(255, 255), (256, 256), (510, 511), (1, 1)], True)
@example([(1, 1)] * (2 * RUNS_IN_BLOCK), False)
def test_blocks_have_the_cells_that_they_were_made_of(
    runs: list[tuple[int, int]], begins_free: bool
) -> None:
    """Each free cell is found by its number, also with runs longer than a byte can
    hold.
    """
    cells: list[int] = []
    at = -runs[0][0] if begins_free else 0
    for taken, free in runs:
        cells.extend(range(at + taken, at + taken + free))
        at += taken + free

    begin, before, found = _blocks(np.array(cells))
    spaces = Spaces(
        np.zeros(3),
        np.ones(1, np.int64),
        np.array([[0, len(begin)]]),
        begin,
        before,
        found,
        np.array([len(cells)]),
        np.zeros(1),
    )
    last = len(cells) - 1
    numbers = sorted(
        {*range(0, len(cells), 37), *before.tolist(), *(before - 1).tolist(), last}
        & {*range(last + 1)}
    )
    assert [cell_of(spaces, 0, number) for number in numbers] == [
        cells[number] for number in numbers
    ]


def test_robots_that_need_the_same_room_share_blocks() -> None:
    sim = botyard.Simulation(ROOMS[1])
    grid = sim.core.engine.grid
    spaces = spaces_of(ROOMS[1], grid, [0.3, 0.5, 0.3, 0.7], 0.1, reachable=False)
    assert (
        spaces.blocks[0].tolist()
        == spaces.blocks[2].tolist()
        != spaces.blocks[1].tolist()
    )
    for robot, radius in enumerate((0.3, 0.5, 0.3, 0.7)):
        cells = free_space(ROOMS[1], grid, radius, 0.1, reachable=False).cells
        assert [
            cell_of(spaces, robot, number) for number in range(spaces.cells[robot])
        ] == cells.tolist()


@pytest.mark.parametrize("count", [5, 0])
def test_maps_are_drawn_as_streams_say(count: int) -> None:
    seeds, pool = np.array([1, 2, 3, 2**64 - 1], np.uint64), 7
    for episodes in ([0, 0, 0, 0], [1, 6, 7, 700_000_000_000]):
        numbers = np.full(4, -1)
        draw_numbers(seeds, np.array(episodes), MAP_STREAM, count, pool, numbers)
        keys = rng.stream_keys(
            rng.episode_seeds(seeds, np.array(episodes)), MAP_STREAM
        ).tolist()
        assert numbers.tolist() == [
            key % count if count else key % pool + episode // pool * pool
            for key, episode in zip(keys, episodes, strict=True)
        ]


def test_maps_share_classes_of_ordinary_walls_alone() -> None:
    glass = replace(
        ROOMS[1],
        special_walls=(SpecialWalls(first=1, last=2, returns=Returns(laser=0)),),
    )
    maps = Maps([ROOMS[0], glass, ROOMS[2], ROOMS[1]], 4)
    plain, special, *others = (maps[number].grid for number in range(4))
    for scene, grid in ((ROOMS[0], plain), (glass, special), (ROOMS[2], others[0])):
        own = botyard.Simulation(scene).core.engine.grid
        assert np.array_equal(grid.mask, own.mask) and np.array_equal(
            grid.bright, own.bright
        )

    assert not np.shares_memory(plain.mask, special.mask)
    assert any(np.shares_memory(one.mask, plain.mask) for one in others)


def test_a_map_takes_little_memory_beside_its_grid() -> None:
    """A room of 40 m:

    places take less than a byte for twenty cells, and only cells and walls of a grid
    are kept.
    """
    walls = np.random.default_rng(3).uniform(2.0, 38.0, (100, 2))
    scene = Scene(
        segments=np.concatenate(
            [
                [[0, 0, 40, 0], [40, 0, 40, 40], [40, 40, 0, 40], [0, 40, 0, 0]],
                np.hstack([walls, walls + 1.5]),
            ]
        )
    )
    maps = Maps([scene], 1)
    robot_set = Worlds(scene, ["p3dx"] * 3, 1)._robot_sets[0]
    grid, spaces = maps[0].grid, maps[0].space(robot_set, 0.1, reachable=True).value
    assert sum(array.nbytes for array in spaces) < 160_000 / 20
    own = [grid.mask, grid.bright, grid.near]
    assert all(array.base is not None or not array.size for array in own)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("poses", ["free", None])
def test_worlds_that_are_reset_one_by_one_begin_as_all_at_once(
    threads: int, poses: str | None
) -> None:
    def worlds() -> Worlds:
        return Worlds(
            lambda number: room(7.0 + 0.1 * number),
            ["p3dx", "amigo"],
            6,
            seeds=3,
            threads=threads,
            map_pool=3,
        )

    together, alone = worlds(), worlds()
    for _ in range(7):
        together.reset(poses=poses)
        for i in (4, 0, 5, 2, 1, 3):
            alone.reset([i], poses=poses)
        assert together.state.tobytes() == alone.state.tobytes()
        for both in (together, alone):
            both.command[:] = 0.3
            both.step(3)


def test_a_world_that_is_written_back_and_forth_stays_in_maps_that_are_there() -> None:
    """A map may be dropped while a written state says that no world uses it."""
    worlds = Worlds(
        lambda number: room(7.0 + 0.1 * number),
        "p3dx",
        2,
        seeds=1,
        map_pool=1,
        sensor_noise=False,
    )
    worlds.reset([0], map_id=3, poses=[(2.0, 3.0, 0.0)])
    first, ranges = worlds.state[0].copy(), worlds.ranges[0].copy()
    worlds.reset([0], map_id=4, poses=[(2.0, 3.0, 0.0)])
    second = worlds.state[0].copy()
    for k in range(5, 9):
        worlds.state[0] = first if k % 2 else second
        worlds.reset([1], map_id=k)

    worlds.state[0] = first
    worlds.command[0] = 0.0
    worlds.step()
    assert np.array_equal(worlds.ranges[0], ranges) and worlds.map_id.tolist() == [3, 8]


def test_maps_that_no_world_is_in_are_forgotten_when_worlds_move_to_others() -> None:
    worlds = Worlds(ROOMS, "p3dx", 3, map_pool=1)
    worlds.reset(map_id=[0, 1, 2])
    assert len(worlds._batch._grids) == 3
    for i in range(3):
        worlds.reset([i], map_id=0)
    assert list(worlds._batch._grids) == [0]


def test_maps_of_the_next_episodes_are_made_by_a_thread() -> None:
    made: dict[int, str] = {}

    def scenes(number: int) -> Scene:
        made[number] = threading.current_thread().name
        return room(7.0 + number)

    with Worlds(scenes, "p3dx", 1, map_pool=1) as worlds:
        for _ in range(3):
            worlds.reset([0])
        assert worlds.map_id.tolist() == [3]
        assert all(made[number].startswith("maps") for number in (1, 2, 3))


def test_numbers_of_many_worlds_are_different_ones() -> None:
    worlds = Worlds(Scene(), "p3dx", 60)
    numbers = np.arange(60)[::-2]
    worlds.step(mask=numbers)
    assert np.flatnonzero(worlds.tick).tolist() == sorted(numbers.tolist())
    for wrong in (-1, 60, 31):
        with pytest.raises(botyard.ArgumentError, match="mask: expected"):
            worlds.step(mask=[wrong, *numbers])


def test_a_place_is_found_after_a_world_was_stopped() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 2)
    worlds.param("max_speed")[1] = np.nan
    with pytest.raises(botyard.ArgumentError, match="world 1: a limit"):
        worlds.step()
    assert worlds.sample_free([0]).shape == (1, 1, 3)
