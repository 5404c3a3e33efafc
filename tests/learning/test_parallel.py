"""PettingZoo environments of tasks with several robots:

PettingZoo's checkers, and equality with the Gymnasium environment of the task.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from botyard.errors import ArgumentError
from botyard.learning import (
    Environment,
    ParallelEnvironment,
    TeamTask,
    VectorEnvironment,
)

TEAMS = ("Exchange", "Formation", "PushBox")


def test_options_that_are_not_read_are_refused() -> None:
    env = ParallelEnvironment("Exchange", max_steps=40)
    first, _ = env.reset(seed=3)
    with pytest.raises(
        ArgumentError, match='options: expected none, found "reset_mask"'
    ):
        env.reset(seed=4, options={"reset_mask": [True]})

    again, _ = env.reset(seed=3, options={})
    for name, observed in first.items():
        assert np.array_equal(observed, again[name])


@pytest.mark.parametrize("name", TEAMS)
def test_pettingzoos_checkers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(ParallelEnvironment(name, max_steps=40), num_cycles=100)
        parallel_seed_test(
            lambda: ParallelEnvironment(name, max_steps=40), num_cycles=100
        )


@pytest.mark.parametrize("name", TEAMS)
def test_robots_get_their_rows(name: str) -> None:
    """Observations are rows of the Gymnasium environment, and its reward is the mean of
    the rewards.

    An episode ends for all robots at once.
    """
    team, one = ParallelEnvironment(name, max_steps=30), Environment(name, max_steps=30)
    team.reset(seed=1)
    assert team.state_space.contains(team.state())
    dice, different = np.random.default_rng(4), False
    # Test the first episode of a seed, and the next episode.
    for seed in (3, None):
        rows, wanted = team.reset(seed=seed)[0], one.reset(seed=seed)[0]
        while team.agents:
            assert (np.stack(list(rows.values())) == wanted).all() and (
                team.state() == wanted
            ).all()
            actions = dice.uniform(-1, 1, one.action_space.shape).astype(np.float32)
            rows, rewards, terminated, truncated, infos = team.step(
                dict(zip(team.agents, actions, strict=True))
            )
            wanted, reward, *ends, info = one.step(actions)
            assert np.mean(list(rewards.values())) == pytest.approx(reward, abs=1e-12)
            different |= len(set(rewards.values())) > 1
            assert [set(terminated.values()), set(truncated.values())] == [
                {end} for end in ends
            ]
            assert all(told == info for told in infos.values())

        assert any(ends)

    assert different and team.step({}) == ({}, {}, {}, {}, {})


def test_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match="of several robots"):
        ParallelEnvironment("Dock")  # type: ignore[arg-type]
    team = ParallelEnvironment("Exchange", robots=2)
    team.reset(seed=1)
    first, second = team.agents
    with pytest.raises(ArgumentError, match=f"found none of {second}"):
        team.step({first: np.zeros(2)})
    with pytest.raises(
        ArgumentError,
        match=rf"{second}: expected an array of shape \(2,\), found one of shape \(3,\)",
    ):
        team.step({first: np.zeros(2), second: np.zeros(3)})

    with pytest.raises(
        ArgumentError, match="actions: expected a mapping from agents to their actions"
    ):
        team.step([np.zeros(2)] * 2)  # type: ignore[arg-type]


class Own(TeamTask):
    """A task with two robots whose `begin` knows no arrays of the base class."""

    robots = ("p3dx", "p3dx")
    poses = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    step = 0.04

    def observation_bounds(self, w: Any) -> Any:
        return np.full((2, 1), -9.0, np.float32), np.full((2, 1), 9.0, np.float32)

    def action_bounds(self, w: Any) -> Any:
        return -np.ones((2, 1), np.float32), np.ones((2, 1), np.float32)

    def begin(self, w: Any) -> None:
        self.told: Any = {"places": np.zeros((len(w), 2))}

    def on_reset(self, w: Any, mask: Any, rng: Any) -> None:
        pass

    def act(self, w: Any, actions: Any) -> None:
        w.command[:, :, 0] = actions[..., 0]

    def observe(self, w: Any, out: Any) -> None:
        out[..., 0] = w.pose[:, :, 0]

    def rewards(self, w: Any, out: Any) -> None:
        out[:] = w.vel[:, :, 0]

    def done(self, w: Any, terminated: Any, truncated: Any) -> None:
        terminated[:], truncated[:] = False, w.tick >= 5

    def info(self, w: Any) -> Any:
        if self.told and len(w):
            self.told["places"][:] = w.pose[:, :, 0]
        return self.told


def test_own_teams_need_not_begin_as_the_base_class_does() -> None:
    team = ParallelEnvironment(Own)
    assert team.metadata["render_fps"] == 25, "a step is 0.04 s"
    _, first = team.reset(seed=1)
    kept = {name: told["places"].copy() for name, told in first.items()}
    rewards = [
        team.step({name: np.ones(1) for name in team.agents})[1] for _ in range(3)
    ][-1]
    assert min(rewards.values()) > 0.0
    assert all((told["places"] == kept[name]).all() for name, told in first.items()), (
        "infos are the caller's"
    )


@pytest.mark.parametrize("told", [None, {"a": 3}, {"a": [1]}])
def test_infos_of_own_teams_are_checked(told: Any) -> None:
    class Telling(Own):
        def info(self, w: Any) -> Any:
            return told

    with pytest.raises(ArgumentError, match=r"Telling\.info: "):
        ParallelEnvironment(Telling).reset(seed=1)


def test_rewards_that_are_returned_instead_of_written_are_told() -> None:
    class Returning(Own):
        def rewards(self, w: Any, out: Any) -> Any:
            return w.vel[:, :, 0]

    for envs in (ParallelEnvironment(Returning), VectorEnvironment(Returning, 1)):
        envs.reset(seed=1)
        actions: Any = (
            {name: np.zeros(1) for name in envs.agents}
            if isinstance(envs, ParallelEnvironment)
            else None
        )
        with pytest.raises(
            ArgumentError,
            match=r"Returning\.rewards: expected a method that writes into its array arguments",
        ):
            envs.step(np.zeros((1, 2, 1)) if actions is None else actions)
