"""Episodes of many worlds repeated alone: equal to the last bit, and as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.errors import ArgumentError, NotNowError
from botyard.model.mapbuilder import MapBuilder
from botyard.recording.verify import resimulate

ROOMS = [
    MapBuilder(f"room {k}")
    .rectangle(-4.0, -3.0, 8.0, 6.0)
    .disc(1.0, 1.0 - k, 0.4)
    .scene()
    for k in range(3)
]


def same(sim: botyard.Simulation, worlds: botyard.Worlds, i: int) -> None:
    state = sim.snapshot.state
    assert (sim.tick, sim.seed) == (worlds.tick[i], worlds.seeds[i])
    assert (
        (state.pose == worlds.pose[i]).all()
        and (state.vel == worlds.vel[i]).all()
        and (state.odom == worlds.odom[i]).all()
    )
    for k, robot in enumerate(sim.robots.values()):
        assert (robot.laser.ranges == worlds.ranges[i, k]).all()


def made(**options: Any) -> botyard.Worlds:
    robot = botyard.Simulation().add_robot("p3dx", lasers=["lms200"]).spec
    return botyard.Worlds(
        ROOMS, [robot] * 2, 4, dtype=np.float64, sensors=["laser"], **options
    )


def test_any_episode_is_repeated_to_the_last_bit() -> None:
    """The current and the previous episode, with other maps, starts and parameters,
    drawn at resets and written in between.
    """
    worlds = made(threads=2)
    worlds.keep_episodes()
    dice = np.random.default_rng(2)
    ends: dict[tuple[int, int], tuple[Any, ...]] = {}
    for k in range(90):
        worlds.command[...] = dice.uniform([0.0, 0.0, -1.0], [1.0, 0.0, 1.0], (4, 2, 3))
        if k % 25 == 20:
            worlds.param("range_noise")[k % 4] = 0.1
            worlds.param("max_speed")[1, :, 0] = 0.2 + 0.01 * k

        if k % 3:
            worlds.step()
        else:
            worlds.step(2, mask=dice.random(4) < 0.8)

        for i in range(4):
            ends[i, int(worlds.episode[i])] = (
                worlds.tick[i],
                worlds.pose[i].copy(),
                worlds.ranges[i].copy(),
            )

        done = dice.random(4) < 0.04
        if done.any():
            worlds.param("range_max")[done] = dice.uniform(2.0, 8.0)
            worlds.reset(done, poses="free")

    assert worlds.episode.min() >= 2
    for i in range(4):
        same(worlds.repeat(i).run(), worlds, i)
        number = int(worlds.episode[i]) - 1
        before = worlds.repeat(i, number).run()
        tick, pose, ranges = ends[i, number]
        assert before.tick == tick and (before.snapshot.state.pose == pose).all()
        assert all(
            (robot.laser.ranges == ranges[k]).all()
            for k, robot in enumerate(before.robots.values())
        )
        with pytest.raises(NotNowError, match=f"found episode {number - 1}"):
            worlds.repeat(i, number - 1)


def test_it_is_recorded(tmp_path: Path) -> None:
    """`botyard replay` shows the file, and its re-simulation finds no difference."""
    worlds = made(seeds=5)
    worlds.keep_episodes()
    worlds.command[:, :, 0] = 0.4
    for _ in range(15):
        worlds.step()
    path = worlds.repeat(2).record(tmp_path / "run.mcap")
    proof = resimulate(path)
    assert proof.divergence is None and proof.steps == 15
    same(worlds.repeat(2).run(), worlds, 2)


def test_what_is_not_kept_is_said() -> None:
    worlds = made()
    with pytest.raises(NotNowError, match="keep_episodes"):
        worlds.repeat(0)
    worlds.step()
    worlds.keep_episodes()
    worlds.step()
    with pytest.raises(NotNowError, match="found episode 0"):
        worlds.repeat(0)
    worlds.reset()
    worlds.command[:, :, 0] = [[0.1], [0.2], [0.3], [0.4]]
    worlds.step(3)
    worlds.state[1] = worlds.state[3]
    worlds.step()
    with pytest.raises(NotNowError, match=r"world 1: .*found episode 1"):
        worlds.repeat(1)
    same(worlds.repeat(3).run(), worlds, 3)
    with pytest.raises(ArgumentError, match="i: expected"):
        worlds.repeat(4)


def test_a_call_that_fails_is_no_part_of_an_episode() -> None:
    """Neither a step nor a reset that raises; other worlds have executed it."""
    worlds = made()
    worlds.keep_episodes()
    worlds.step(3)
    worlds.command[1, 0, 0] = np.nan
    worlds.param("range_noise")[2] = -1.0
    with pytest.raises(ArgumentError, match="world 1: a command"):
        worlds.step(4)
    worlds.step(4, mask=np.zeros(4, bool))
    worlds.command[1, 0, 0], worlds.param("range_noise")[2] = 0.3, 0.1
    worlds.step(2)
    assert worlds.tick.tolist() == [9, 5, 5, 9]
    for i in range(4):
        same(worlds.repeat(i).run(), worlds, i)
    worlds.param("range_noise")[2] = np.nan
    with pytest.raises(
        ArgumentError,
        match=r"world 2: ranges or errors of a sensor .* episode has started, without readings",
    ):
        worlds.reset()

    assert worlds.episode.tolist() == [1] * 4 and not worlds.tick.any()
    assert np.isnan(worlds.ranges).all(axis=(1, 2)).tolist() == [
        False,
        False,
        True,
        False,
    ]
    worlds.param("range_noise")[2] = 0.1
    worlds.step(2)
    for i in (0, 1, 3):
        same(worlds.repeat(i).run(), worlds, i)
    with pytest.raises(NotNowError, match=r"world 2: .*found episode 1"):
        worlds.repeat(2)


def test_of_two_episodes_with_one_number_the_present_one_is_meant() -> None:
    worlds = made()
    worlds.keep_episodes()
    for seed in (7, 9, 11):
        worlds.reset([2], seeds=[seed])
        worlds.command[2, :, 0] = 0.05 * seed
        worlds.step(seed)
        for episode in (None, 0):
            same(worlds.repeat(2, episode).run(), worlds, 2)

    worlds.state[2] = worlds.state[0]
    with pytest.raises(NotNowError, match=r"world 2: .*found episode 0"):
        # The written state is not the result of the world's last step, so it cannot be repeated.
        worlds.repeat(2)


def test_maps_that_were_given_up_are_made_again_for_an_episode() -> None:
    robot = botyard.Simulation().add_robot("p3dx", lasers=["lms200"]).spec
    worlds = botyard.Worlds(
        lambda k: ROOMS[k % 3], [robot] * 2, 1, map_pool=1, dtype=np.float64
    )
    worlds.keep_episodes()
    for k in range(5):
        worlds.step(k)
        before = worlds.ranges.copy()
        worlds.reset()
        assert worlds.map_id[0] == k + 1
        assert all(
            (robot.laser.ranges == before[0, m]).all()
            for m, robot in enumerate(worlds.repeat(0, k).run().robots.values())
        )
        same(worlds.repeat(0).run(), worlds, 0)


def test_measuring_again_is_done_again() -> None:
    """`step(0)` measures late readings with the current parameters; commands wait."""
    worlds = made(max_latency=0.4)
    worlds.keep_episodes()
    dice = np.random.default_rng(4)
    for k in range(30):
        worlds.command[...] = dice.uniform([0.0, 0.0, -1.0], [1.0, 0.0, 1.0], (4, 2, 3))
        worlds.param("command_latency")[:] = worlds.param("command_jitter")[:] = (
            dice.uniform(0.0, 0.2, (4, 2))
        )
        worlds.param("range_noise")[:] = dice.uniform(0.0, 0.3, (4, 2))
        if k % 7 == 3:
            worlds.param("range_latency")[:] = dice.uniform(0.0, 0.4, (4, 2))
        worlds.step(k % 3)

    worlds.step()
    for i in range(4):
        same(worlds.repeat(i).run(), worlds, i)
