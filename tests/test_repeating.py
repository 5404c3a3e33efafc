"""Episodes of many worlds, done again alone: to the last bit, and as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.errors import ArgumentError, NotNowError
from botyard.model.mapbuilder import MapBuilder
from botyard.recording.proof import resimulate

ROOMS = [MapBuilder(f"room {k}").rectangle(-4.0, -3.0, 8.0, 6.0).disc(1.0, 1.0 - k, 0.4).scene() for k in range(3)]


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
    return botyard.Worlds(ROOMS, [robot] * 2, 4, dtype=np.float64, sensors=["laser"], **options)


def test_any_episode_is_repeated_to_the_last_bit() -> None:
    """With other maps, starts and parameters, which are drawn at resets and written in between; the present one, and the one before."""
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
            ends[i, int(worlds.episode[i])] = worlds.tick[i], worlds.pose[i].copy(), worlds.ranges[i].copy()
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
        assert all((robot.laser.ranges == ranges[k]).all() for k, robot in enumerate(before.robots.values()))
        with pytest.raises(NotNowError, match=f"episode {number - 1} is not kept"):
            worlds.repeat(i, number - 1)


def test_it_is_recorded(tmp_path: Path) -> None:
    """`botyard replay` shows the file, and doing the recording again finds no difference."""
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
    with pytest.raises(NotNowError, match="episode 0 is not kept"):
        worlds.repeat(0)
    worlds.reset()
    worlds.command[:, :, 0] = [[0.1], [0.2], [0.3], [0.4]]
    worlds.step(3)
    worlds.state[1] = worlds.state[3]
    worlds.step()
    with pytest.raises(NotNowError, match="world 1: episode 1 is not kept"):
        worlds.repeat(1)
    same(worlds.repeat(3).run(), worlds, 3)
    with pytest.raises(ArgumentError, match="i: expected"):
        worlds.repeat(4)
