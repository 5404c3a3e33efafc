"""PettingZoo's environments of tasks of several robots: its own checkers, and what Gymnasium's environment of the same task says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from botyard.errors import ArgumentError
from botyard.learning import Environment, ParallelEnvironment

TEAMS = ("Exchange", "Formation", "PushBox")


@pytest.mark.parametrize("name", TEAMS)
def test_pettingzoos_checkers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(ParallelEnvironment(name, max_steps=40), num_cycles=100)
        parallel_seed_test(lambda: ParallelEnvironment(name, max_steps=40), num_cycles=100)


@pytest.mark.parametrize("name", TEAMS)
def test_robots_get_their_rows(name: str) -> None:
    """Observations are the rows of Gymnasium's environment, the mean of the rewards is its reward; an episode ends for all."""
    team, one = ParallelEnvironment(name, max_steps=30), Environment(name, max_steps=30)
    team.reset(seed=1)
    assert team.state_space.contains(team.state())
    dice, different = np.random.default_rng(4), False
    for seed in (3, None):  # the first episode of a seed, and the next one
        rows, wanted = team.reset(seed=seed)[0], one.reset(seed=seed)[0]
        while team.agents:
            assert (np.stack(list(rows.values())) == wanted).all() and (team.state() == wanted).all()
            actions = dice.uniform(-1, 1, one.action_space.shape).astype(np.float32)
            rows, rewards, terminated, truncated, infos = team.step(dict(zip(team.agents, actions, strict=True)))
            wanted, reward, *ends, info = one.step(actions)
            assert np.mean(list(rewards.values())) == pytest.approx(reward, abs=1e-12)
            different |= len(set(rewards.values())) > 1
            assert [set(terminated.values()), set(truncated.values())] == [{end} for end in ends]
            assert all(told == info for told in infos.values())
        assert any(ends)
    assert different and team.step({}) == ({}, {}, {}, {}, {})


def test_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match="of several robots"):
        ParallelEnvironment("Dock")  # type: ignore[arg-type]
    team = ParallelEnvironment("Exchange", robots=2)
    team.reset(seed=1)
    first, second = team.agents
    with pytest.raises(ArgumentError, match=f"found none for {second}"):
        team.step({first: np.zeros(2)})
    with pytest.raises(ArgumentError, match=rf"{second}: expected the shape \(2,\)"):
        team.step({first: np.zeros(2), second: np.zeros(3)})
