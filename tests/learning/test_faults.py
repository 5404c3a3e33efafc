"""A faulty command, parameter or state of one world ends only the episode of that
world.

`step` of many worlds never raises for it.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

import botyard
from botyard.errors import ArgumentError, WorldFaultError
from botyard.learning import (
    Coverage,
    Environment,
    Navigate,
    ParallelEnvironment,
    PushBox,
    VectorEnvironment,
)
from botyard.worlds.worlds import Worlds


class Broken(Navigate):
    """A task whose commands are NaN in given worlds."""

    broken: tuple[int, ...] = ()

    def act(self, w: Worlds, actions: Any) -> None:
        super().act(w, actions)
        w.command[list(self.broken)] = math.nan


def task(kind: type[Navigate] = Navigate) -> Navigate:
    return kind(rays=8, maps=2, max_steps=30)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("copy", [True, False])
def test_a_command_that_is_wrong_truncates_its_world_alone(
    mode: str, copy: bool
) -> None:
    broken, right = task(Broken), task()
    envs = VectorEnvironment(broken, 5, autoreset_mode=mode, copy=copy)
    twin = VectorEnvironment(right, 5, autoreset_mode=mode)
    others = [0, 1, 2, 4]
    for each in (envs, twin):
        each.reset(seed=3)
    dice = np.random.default_rng(1)
    for k in range(25):
        actions = dice.uniform(-1, 1, (5, 2)).astype(np.float32)
        broken.broken = (3,) if k == 10 else ()
        observed, rewards, terminated, truncated, infos = envs.step(actions)
        wanted = twin.step(actions)
        for found, same in zip(
            (observed, rewards, terminated, truncated), wanted, strict=False
        ):
            assert (found[others] == same[others]).all(), "the others go on"

        assert np.isfinite(observed).all()
        told = infos.get("final_info", {}) if mode == "SameStep" else infos
        if k == 10:
            assert truncated[3] and not terminated[3] and rewards[3] == 0.0
            assert told["_fault"].tolist() == [False, False, False, True, False]
            assert (
                "command of p3dx" in told["fault"][3] or "found nan" in told["fault"][3]
            )
            assert told["fault"][0] is None
        else:
            assert "fault" not in told

        ended = terminated | truncated
        if mode == "Disabled" and ended.any():
            infos = envs.reset(options={"reset_mask": ended})[1]
            assert "fault" not in infos
            if (wanted[2] | wanted[3]).any():
                twin.reset(options={"reset_mask": wanted[2] | wanted[3]})

    assert envs.worlds.tick[3] < 25
    envs.close()
    twin.close()


def test_a_parameter_that_stays_wrong_truncates_its_world_again_and_again() -> None:
    envs = VectorEnvironment(task(), 1000, autoreset_mode="SameStep")
    envs.reset(seed=1)
    envs.worlds.param("range_max")[17] = -1.0
    for _ in range(3):
        *_, truncated, infos = envs.step(np.zeros((1000, 2)))
        assert np.flatnonzero(truncated).tolist() == [17]
        assert "range_max" in infos["final_info"]["fault"][17]

    envs.worlds.param("range_max")[17] = 8.0
    *_, truncated, infos = envs.step(np.zeros((1000, 2)))
    assert not truncated.any() and "final_info" not in infos
    envs.close()


@pytest.mark.parametrize("kind", [Coverage, PushBox])
def test_a_pose_that_is_wrong_does_not_reach_the_task(kind: type[Any]) -> None:
    """For example, NaN has no cell to cover."""
    envs = VectorEnvironment(kind(), 3, autoreset_mode="NextStep")
    envs.reset(seed=1)
    actions = np.zeros(envs.action_space.shape, np.float32)
    envs.step(actions)
    envs.worlds._batch.state.all("pose")[1] = math.nan
    observed, _, _, truncated, infos = envs.step(actions)
    assert truncated.tolist() == [False, True, False]
    assert infos["fault"][1] and envs.single_observation_space.contains(observed[1])
    _, rewards, _, truncated, infos = envs.step(actions)
    assert not truncated.any() and "fault" not in infos and rewards[1] == 0.0
    envs.close()


def test_one_world_is_truncated_too() -> None:
    env = Environment(task())
    env.reset(seed=1)
    env.worlds.param("accel")[0] = math.nan
    *_, terminated, truncated, info = env.step(np.zeros(2))
    assert truncated and not terminated and "accel" in info["fault"]
    env.worlds.param("accel")[0] = 1.0
    assert "fault" not in env.reset()[1]
    assert not env.step(np.zeros(2))[3]


def test_agents_are_truncated_together() -> None:
    env = ParallelEnvironment("PushBox")
    env.reset(seed=1)
    env.worlds.param("accel")[0] = math.nan
    _, rewards, _, truncated, infos = env.step(
        {name: np.zeros(2) for name in env.agents}
    )
    assert all(truncated.values()) and not any(rewards.values()) and not env.agents
    assert all("accel" in info["fault"] for info in infos.values())


def test_gymnasium_keeps_the_reason() -> None:
    env = gymnasium.make("botyard/PushBox-v0")
    env.reset(seed=1)
    env.unwrapped.worlds.param("accel")[0] = math.nan
    *_, truncated, info = env.step(np.zeros((2, 2)))
    assert truncated and "accel" in info["fault"]


def test_worlds_name_all_that_are_wrong() -> None:
    worlds = Worlds(botyard.Scene(), "p3dx", 6)
    worlds.param("accel")[[1, 4]] = math.nan
    with pytest.raises(
        WorldFaultError, match=r"^world 1: .*; the world has not moved$"
    ) as caught:
        worlds.step()

    assert sorted(caught.value.faults) == [1, 4] and isinstance(
        caught.value, ArgumentError
    )
    assert worlds.tick.tolist() == [1, 0, 1, 1, 0, 1]
